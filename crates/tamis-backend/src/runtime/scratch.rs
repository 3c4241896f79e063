//! Scratch vectors of the runtime: uninitialised arrays from the same pool, and under the same
//! limit, as the arrays of kernels.

use super::memory::{RawBuffer, grow, release};
use super::pool;
use std::alloc::Layout;
use std::marker::PhantomData;

/// Out of memory, or beyond the array limit.
///
/// ```
/// use tamis_backend::runtime::OutOfMemory;
/// use tamis_backend::runtime::workspace::WorkspaceError;
/// let error = WorkspaceError::from(OutOfMemory { elements: 7 });
/// assert_eq!(error, WorkspaceError::Memory { entries: 7 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The requested number of elements.
    pub elements: u64,
}

/// A vector of plain values whose holder knows which elements are initialised.
#[derive(Debug)]
pub(super) struct ScratchVec<T: Copy> {
    raw: RawBuffer,
    elements: PhantomData<T>,
}

// SAFETY: the vector owns its memory.
unsafe impl<T: Copy + Send> Send for ScratchVec<T> {}

impl<T: Copy> ScratchVec<T> {
    pub(super) const fn new() -> ScratchVec<T> {
        ScratchVec { raw: RawBuffer::empty(), elements: PhantomData }
    }

    /// The capacity in elements.
    pub(super) fn capacity(&self) -> usize {
        self.raw.cap as usize
    }

    pub(super) fn bytes(&self) -> u64 {
        self.raw.cap.saturating_mul(size_of::<T>() as u64)
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.data.cast()
    }

    /// Reserves at least `len` elements, and discards the contents if it reallocates. Growth is by
    /// at least a half, so that a growing vector does not reallocate each time.
    pub(super) fn reserve(&mut self, len: usize) -> Result<(), OutOfMemory> {
        if len <= self.capacity() {
            return Ok(());
        }
        self.replace(len.max(self.capacity() + self.capacity() / 2), false).or_else(|_| self.replace(len, false))
    }

    /// Reserves at least `len` elements, and keeps the first `used`.
    pub(super) fn reserve_keeping(&mut self, len: usize, used: usize) -> Result<(), OutOfMemory> {
        if len > self.capacity() {
            self.raw.len = used.min(self.capacity()) as u64;
            if !grow(&mut self.raw, len as u64, size_of::<T>(), align_of::<T>(), None) {
                return Err(OutOfMemory { elements: len as u64 });
            }
        }
        Ok(())
    }

    /// Replaces the contents by exactly `len` elements of zero bytes.
    pub(super) fn zeroed(&mut self, len: usize) -> Result<(), OutOfMemory> {
        self.replace(len, true)
    }

    fn replace(&mut self, len: usize, zero: bool) -> Result<(), OutOfMemory> {
        let out_of_memory = OutOfMemory { elements: len as u64 };
        let layout = Layout::array::<T>(len).map_err(|_| out_of_memory)?;
        if layout.size() == 0 {
            return Ok(());
        }
        // The old block is freed first, so that both need not exist at the same time.
        release(&mut self.raw, size_of::<T>(), align_of::<T>());
        let unit = size_of::<T>();
        let block = if zero { pool::allocate_zeroed(layout, unit) } else { pool::allocate(layout, unit) };
        let block = block.ok_or(out_of_memory)?;
        let cap = (block.layout.size() / unit) as u64;
        self.raw = RawBuffer { data: block.data.as_ptr(), len: cap, cap };
        Ok(())
    }

    /// The first `len` elements, which are initialised.
    ///
    /// # Safety
    /// The first `len` elements are initialised.
    pub(super) unsafe fn initialized(&self, len: usize) -> &[T] {
        let len = len.min(self.capacity());
        // SAFETY: the capacity is at least `len`, and the caller guarantees initialisation. The
        // dangling pointer of an empty vector is aligned for at most 8 bytes, so it is not used.
        if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.as_ptr(), len) } }
    }

    /// The first `len` elements, which are initialised.
    ///
    /// # Safety
    /// The first `len` elements are initialised.
    pub(super) unsafe fn initialized_mut(&mut self, len: usize) -> &mut [T] {
        let len = len.min(self.capacity());
        // SAFETY: as for `initialized`, and the borrow is unique.
        if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), len) } }
    }
}

impl<T: Copy> Default for ScratchVec<T> {
    fn default() -> ScratchVec<T> {
        ScratchVec::new()
    }
}

impl<T: Copy> Drop for ScratchVec<T> {
    fn drop(&mut self) {
        release(&mut self.raw, size_of::<T>(), align_of::<T>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_reserved_and_zeroed() {
        let mut scratch = ScratchVec::<u128>::new();
        // SAFETY: no elements are read.
        assert_eq!(unsafe { scratch.initialized(0) }, [0u128; 0]);
        scratch.zeroed(3).unwrap();
        // SAFETY: three were just zeroed.
        let last = unsafe { &mut scratch.initialized_mut(3)[2] };
        *last = 7;
        // SAFETY: as above.
        assert_eq!(unsafe { scratch.initialized(3) }, [0, 0, 7]);
        scratch.reserve(100).unwrap();
        assert!(scratch.capacity() >= 100 && scratch.bytes() >= 1600);
        assert_eq!(scratch.reserve(1 << 59), Err(OutOfMemory { elements: 1 << 59 }));
    }
}
