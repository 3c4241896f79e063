//! Shared memory of tensors: owned or borrowed, and never copied by clones.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An immutable array that clones without copying.
///
/// ```
/// use tamis_tensor::Buffer;
/// let a: Buffer<u32> = vec![1, 2, 3].into();
/// let b = a.clone();
/// assert_eq!(a.as_ptr(), b.as_ptr());
/// assert_eq!(&b[..], [1, 2, 3]);
/// ```
pub struct Buffer<T> {
    memory: Arc<BufferMemory<T>>,
}

enum BufferMemory<T> {
    Owned(Vec<T>),
    /// Memory that `owner` keeps alive: a mapped file, an array of another language.
    Foreign {
        data: *const T,
        len: usize,
        _owner: Box<dyn Any + Send + Sync>,
    },
}

// SAFETY: foreign memory is only read, and its owner is itself Send and Sync.
unsafe impl<T: Send + Sync> Send for BufferMemory<T> {}
// SAFETY: as above; no method returns a mutable reference to foreign memory.
unsafe impl<T: Send + Sync> Sync for BufferMemory<T> {}

impl<T> Buffer<T> {
    /// Borrows foreign memory, zero-copy.
    ///
    /// # Safety
    /// `data` points to `len` initialised, properly aligned values of `T` that stay valid and
    /// unchanged for as long as `owner` is alive.
    ///
    /// ```
    /// use tamis_tensor::Buffer;
    /// let owner = vec![1.0, 2.0, 3.0].into_boxed_slice();
    /// let (data, len) = (owner.as_ptr(), owner.len());
    /// // SAFETY: the boxed slice keeps its address while `owner` is alive, and nothing changes it.
    /// let buffer = unsafe { Buffer::from_foreign(data, len, Box::new(owner)) };
    /// assert_eq!((buffer.as_ptr(), &buffer[1..]), (data, &[2.0, 3.0][..]));
    /// ```
    pub unsafe fn from_foreign(data: *const T, len: usize, owner: Box<dyn Any + Send + Sync>) -> Buffer<T> {
        Buffer { memory: Arc::new(BufferMemory::Foreign { data, len, _owner: owner }) }
    }
}

impl<T: Clone> Buffer<T> {
    /// The values as a vector: zero-copy if this buffer has no other owner.
    ///
    /// ```
    /// use tamis_tensor::Buffer;
    /// let buffer = Buffer::from(vec![1u32, 2, 3]);
    /// let address = buffer.as_ptr();
    /// assert_eq!(buffer.into_vec().as_ptr(), address, "its only owner gives the memory away");
    /// ```
    pub fn into_vec(self) -> Vec<T> {
        match Arc::try_unwrap(self.memory) {
            Ok(mut memory) => match &mut memory {
                BufferMemory::Owned(values) => std::mem::take(values),
                foreign => foreign.as_slice().to_vec(),
            },
            Err(shared) => shared.as_slice().to_vec(),
        }
    }
}

impl<T: Clone> Buffer<T> {
    /// The values, for changes: zero-copy if this buffer owns its memory and has no other owner.
    ///
    /// ```
    /// use tamis_tensor::Buffer;
    /// let mut buffer = Buffer::from(vec![1u32, 2, 3]);
    /// let (address, shared) = (buffer.as_ptr(), buffer.clone());
    /// buffer.make_mut()[0] = 5;
    /// assert_eq!((&buffer[..], &shared[..]), (&[5, 2, 3][..], &[1, 2, 3][..]));
    /// assert!(buffer.as_ptr() != address && shared.as_ptr() == address, "it was shared");
    /// ```
    pub fn make_mut(&mut self) -> &mut [T] {
        let is_own = matches!(Arc::get_mut(&mut self.memory), Some(BufferMemory::Owned(_)));
        if !is_own {
            *self = self.to_vec().into();
        }
        match Arc::get_mut(&mut self.memory) {
            Some(BufferMemory::Owned(values)) => values,
            _ => &mut [],
        }
    }
}

/// Freeing less than this many bytes is not worth a call of the allocator.
const LITTLE: usize = 4096;

/// The number of bytes that are moved in about a microsecond.
const QUICK: usize = 32 << 10;

impl<T: Clone> Buffer<T> {
    /// The first `len` values (all, if there are fewer). If this buffer has no other owner, the
    /// values stay in place, unless they are few or most of the memory would be unused: freeing it
    /// takes longer than a call should.
    pub(crate) fn truncated(self, len: usize) -> Buffer<T> {
        if self.len() <= len && !self.is_wasteful(len) {
            return self;
        }
        let mut values = self.into_vec();
        values.truncate(len);
        let spare = values.capacity() - values.len();
        let few = values.len() * size_of::<T>() <= QUICK;
        if spare * size_of::<T>() > LITTLE && spare > if few { values.len() / 4 } else { 3 * values.len() } {
            values = crate::memory::fitted(values);
        }
        values.into()
    }

    fn is_wasteful(&self, len: usize) -> bool {
        match &*self.memory {
            BufferMemory::Owned(values) => (values.capacity() - values.len().min(len)) * size_of::<T>() > LITTLE,
            BufferMemory::Foreign { .. } => false,
        }
    }
}

impl<T> Drop for BufferMemory<T> {
    fn drop(&mut self) {
        if let BufferMemory::Owned(values) = self {
            crate::memory::recycle(std::mem::take(values));
        }
    }
}

impl<T> BufferMemory<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            BufferMemory::Owned(values) => values,
            // SAFETY: the caller of `from_foreign` guarantees it; an empty array may have any
            // pointer.
            BufferMemory::Foreign { data, len, .. } if *len > 0 => unsafe { std::slice::from_raw_parts(*data, *len) },
            BufferMemory::Foreign { .. } => &[],
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory.as_slice()
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        Buffer { memory: self.memory.clone() }
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Buffer<T> {
        Buffer { memory: Arc::new(BufferMemory::Owned(values)) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        self[..] == other[..]
    }
}
