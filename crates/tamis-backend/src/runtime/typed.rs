//! Arrays of plain numbers that the runtime keeps for itself, from the same pool and under the same limit as those of kernels.

use super::memory::{RawBuffer, grow, release};
use super::pool;
use std::alloc::Layout;
use std::marker::PhantomData;

/// There is no memory for so many elements, or more than an array may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How many elements were asked for.
    pub elements: u64,
}

/// Room for elements, of which the holder knows which are written.
#[derive(Debug)]
pub(super) struct Room<T: Copy> {
    raw: RawBuffer,
    elements: PhantomData<T>,
}

// SAFETY: the memory is owned, and its elements are sent along.
unsafe impl<T: Copy + Send> Send for Room<T> {}

impl<T: Copy> Room<T> {
    pub(super) const fn new() -> Room<T> {
        Room { raw: RawBuffer::empty(), elements: PhantomData }
    }

    /// How many elements there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.raw.cap as usize
    }

    pub(super) fn bytes(&self) -> u64 {
        self.raw.cap.saturating_mul(size_of::<T>() as u64)
    }

    pub(super) fn pointer(&self) -> *mut T {
        self.raw.data.cast()
    }

    /// Room for at least `len` elements; what was there is lost if it has to move. Half as much again is made when more is
    /// needed than before, so that a list that grows does not move each time.
    pub(super) fn make(&mut self, len: usize) -> Result<(), OutOfMemory> {
        if len <= self.capacity() {
            return Ok(());
        }
        self.replace(len.max(self.capacity() + self.capacity() / 2), false).or_else(|_| self.replace(len, false))
    }

    /// Room for at least `len` elements; the first `used` are kept.
    pub(super) fn keep(&mut self, len: usize, used: usize) -> Result<(), OutOfMemory> {
        if len > self.capacity() {
            self.raw.len = used.min(self.capacity()) as u64;
            if !grow(&mut self.raw, len as u64, size_of::<T>(), align_of::<T>(), None) {
                return Err(OutOfMemory { elements: len as u64 });
            }
        }
        Ok(())
    }

    /// Room for exactly `len` elements of zero bytes, anew.
    pub(super) fn zeroed(&mut self, len: usize) -> Result<(), OutOfMemory> {
        self.replace(len, true)
    }

    fn replace(&mut self, len: usize, zero: bool) -> Result<(), OutOfMemory> {
        let shortage = OutOfMemory { elements: len as u64 };
        let layout = Layout::array::<T>(len).map_err(|_| shortage)?;
        if layout.size() == 0 {
            return Ok(());
        }
        // Given back first: what is lost anyway need not be there twice.
        release(&mut self.raw, size_of::<T>(), align_of::<T>());
        let unit = size_of::<T>();
        let block = if zero { pool::take_zeroed(layout, unit) } else { pool::take(layout, unit) };
        let block = block.ok_or(shortage)?;
        let cap = (block.layout.size() / unit) as u64;
        self.raw = RawBuffer { data: block.data.as_ptr(), len: cap, cap };
        Ok(())
    }

    /// The first `len` elements.
    ///
    /// # Safety
    /// They are written.
    pub(super) unsafe fn written(&self, len: usize) -> &[T] {
        let len = len.min(self.capacity());
        // SAFETY: there is room for so many (the pointer of no room is aligned for at most 8 bytes, so it is not used);
        // the caller says that they are written.
        if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.pointer(), len) } }
    }

    /// The first `len` elements.
    ///
    /// # Safety
    /// They are written.
    pub(super) unsafe fn written_mut(&mut self, len: usize) -> &mut [T] {
        let len = len.min(self.capacity());
        // SAFETY: as for `written`, and nobody else has the memory.
        if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(self.pointer(), len) } }
    }
}

impl<T: Copy> Default for Room<T> {
    fn default() -> Room<T> {
        Room::new()
    }
}

impl<T: Copy> Drop for Room<T> {
    fn drop(&mut self) {
        release(&mut self.raw, size_of::<T>(), align_of::<T>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_and_zeroed() {
        let mut room = Room::<u128>::new();
        // SAFETY: none are asked for.
        assert_eq!(unsafe { room.written(0) }, [0u128; 0]);
        room.zeroed(3).unwrap();
        // SAFETY: three were just zeroed.
        let last = unsafe { &mut room.written_mut(3)[2] };
        *last = 7;
        // SAFETY: as above.
        assert_eq!(unsafe { room.written(3) }, [0, 0, 7]);
        room.make(100).unwrap();
        assert!(room.capacity() >= 100 && room.bytes() >= 1600);
        assert_eq!(room.make(1 << 59), Err(OutOfMemory { elements: 1 << 59 }));
    }
}
