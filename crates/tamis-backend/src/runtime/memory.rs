//! Kernel buffers: the descriptor that machine code sees, its owner, and growth by doubling.

use super::Address;
use super::pool::{self, HeapBlock};
use crate::failure::RawFailure;
use num_complex::Complex;
use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Value};

/// The descriptor of a buffer in machine code. Kernels in C have the same structure under the name
/// `tamis_buffer`.
///
/// ```
/// use tamis_backend::RawBuffer;
/// let x = [1.0, 2.0, 3.0];
/// let raw = RawBuffer::input(&x);
/// assert_eq!((raw.len, raw.cap), (3, 0), "borrowed memory has no capacity");
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBuffer {
    /// The first element; arbitrary if there are none.
    pub data: *mut u8,
    /// The number of elements.
    pub len: u64,
    /// The capacity in elements. Memory with a nonzero capacity comes from the global allocator,
    /// with the layout of an array of that many elements. Capacity 0 marks borrowed memory, which
    /// cannot grow in place.
    pub cap: u64,
}

impl RawBuffer {
    /// An empty buffer without memory: for outputs that start empty, scratch and tiles.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// assert_eq!(RawBuffer::empty().len, 0);
    /// ```
    pub const fn empty() -> RawBuffer {
        RawBuffer { data: NonNull::<u64>::dangling().as_ptr().cast(), len: 0, cap: 0 }
    }

    /// Borrowed elements that a kernel reads. They must outlive every call that receives them.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// let x = [1.0, 2.0, 3.0];
    /// assert_eq!(RawBuffer::input(&x).len, 3);
    /// ```
    pub fn input<T: Element>(elements: &[T]) -> RawBuffer {
        RawBuffer { data: elements.as_ptr().cast::<u8>().cast_mut(), len: elements.len() as u64, cap: 0 }
    }

    /// Borrowed elements that a kernel writes in place; a kernel that grows them copies them first.
    /// They must outlive every call that receives them.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// let mut y = [0u32; 4];
    /// assert_eq!(RawBuffer::output(&mut y).len, 4);
    /// ```
    pub fn output<T: Element>(elements: &mut [T]) -> RawBuffer {
        RawBuffer { data: elements.as_mut_ptr().cast(), len: elements.len() as u64, cap: 0 }
    }
}

/// Rust types of buffer elements.
///
/// # Safety
/// The type has no padding and no drop glue, and [`Element::DTYPE`] has its size, its alignment and
/// its meaning.
///
/// ```
/// use tamis_backend::runtime::Element;
/// assert_eq!(f32::DTYPE, tamis_ir::DType::F32);
/// ```
pub unsafe trait Element: Copy + 'static {
    /// The value type with this memory representation.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty: $dtype:ident),*) => {$(
        // SAFETY: the type is a number (or a pair of numbers) of the size that the value type has.
        unsafe impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
elements!(bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64,
    Complex<f32>: C64, Complex<f64>: C128);

/// The alignment of an element in memory.
pub(crate) fn align(elem: Elem) -> usize {
    match elem {
        Elem::Value(dtype) => dtype.real().size(),
        Elem::Index(width) => width.size(),
    }
}

/// An owned buffer that a kernel can grow.
///
/// ```
/// use tamis_backend::runtime::RawStorage;
/// let storage = RawStorage::from_vec(vec![1.0, 2.0]);
/// assert_eq!(storage.len(), 2);
/// assert_eq!(storage.into_vec::<f64>().unwrap(), [1.0, 2.0]);
/// ```
#[derive(Debug)]
pub struct RawStorage {
    raw: RawBuffer,
    size: usize,
    align: usize,
}

// SAFETY: a storage owns its memory, which holds plain numbers.
unsafe impl Send for RawStorage {}
// SAFETY: shared references only read.
unsafe impl Sync for RawStorage {}

impl RawStorage {
    /// No elements.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// use tamis_ir::{DType, kernel::Elem};
    /// assert!(RawStorage::new(Elem::Value(DType::F64)).is_empty());
    /// ```
    pub fn new(elem: Elem) -> RawStorage {
        RawStorage { raw: RawBuffer::empty(), size: elem.size(), align: align(elem) }
    }

    /// Memory of the caller that a kernel writes in place. It is not owned: it is not freed, and is
    /// neither in [`RawStorage::bytes`] nor in [`RawStorage::into_vec`].
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// use tamis_ir::{DType, kernel::Elem};
    /// let mut y = [0.0, 1.0];
    /// // SAFETY: the array outlives the storage, and nothing else uses it meanwhile.
    /// let storage = unsafe { RawStorage::borrowed(Elem::Value(DType::F64), y.as_mut_ptr().cast(), 2) };
    /// assert_eq!(storage.len(), 2);
    /// ```
    ///
    /// # Safety
    /// `data` points to `len` aligned elements, which outlive the storage. While it exists, no other
    /// code reads or writes them.
    pub unsafe fn borrowed(elem: Elem, data: *mut u8, len: u64) -> RawStorage {
        RawStorage { raw: RawBuffer { data, len, cap: 0 }, size: elem.size(), align: align(elem) }
    }

    /// Takes the elements of a vector without a copy.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert_eq!(RawStorage::from_vec(vec![1u8, 2, 3]).bytes(), [1, 2, 3]);
    /// ```
    pub fn from_vec<T: Element>(elements: Vec<T>) -> RawStorage {
        let mut elements = ManuallyDrop::new(elements);
        let (len, cap) = (elements.len() as u64, elements.capacity() as u64);
        let raw = RawBuffer { data: elements.as_mut_ptr().cast(), len, cap };
        RawStorage { raw, size: size_of::<T>(), align: align_of::<T>() }
    }

    /// Returns the elements as a vector without a copy. Returns the storage itself if its elements
    /// have another size or alignment, or are not all valid values of the type (a `bool` is 0 or
    /// 1).
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let bytes = RawStorage::from_vec(vec![0u8, 1, 2]);
    /// let bytes = bytes.into_vec::<bool>().unwrap_err();
    /// assert_eq!(bytes.into_vec::<u8>().unwrap(), [0, 1, 2], "2 is no truth value");
    /// ```
    pub fn into_vec<T: Element>(self) -> Result<Vec<T>, RawStorage> {
        if size_of::<T>() != self.size || align_of::<T>() != self.align {
            return Err(self);
        }
        if T::DTYPE == DType::Bool && self.raw.cap > 0 {
            // SAFETY: the storage has `len` initialised bytes.
            let bytes = unsafe { std::slice::from_raw_parts(self.raw.data, self.len()) };
            if bytes.iter().any(|byte| *byte > 1) {
                return Err(self);
            }
        }
        let this = ManuallyDrop::new(self);
        if this.raw.cap == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the memory is of the global allocator with the layout of `cap` elements of this
        // size and alignment, of which the first `len` are initialised.
        Ok(unsafe { Vec::from_raw_parts(this.raw.data.cast::<T>(), this.raw.len as usize, this.raw.cap as usize) })
    }

    /// Grows to at least `len` elements; new elements are uninitialised. Returns `false` if
    /// allocation fails.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// use tamis_ir::{DType, kernel::Elem};
    /// let mut storage = RawStorage::new(Elem::Value(DType::F64));
    /// assert!(storage.grow(100) && storage.len() == 100);
    /// ```
    #[must_use]
    pub fn grow(&mut self, len: usize) -> bool {
        grow(&mut self.raw, len as u64, self.size, self.align, None)
    }

    /// The size of an element in bytes.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert_eq!(RawStorage::from_vec(vec![1.0f32]).element_size(), 4);
    /// ```
    pub fn element_size(&self) -> usize {
        self.size
    }

    /// The elements as bytes.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert_eq!(RawStorage::from_vec(vec![1u16, 0]).bytes().len(), 4);
    /// ```
    pub fn bytes(&self) -> &[u8] {
        match self.raw.cap {
            0 => &[],
            // SAFETY: the storage owns these bytes, which hold plain numbers.
            _ => unsafe { std::slice::from_raw_parts(self.raw.data, self.len() * self.size) },
        }
    }

    /// The elements as mutable bytes. Any bytes are valid elements, except for `bool`, which needs
    /// 0 or 1.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let mut storage = RawStorage::from_vec(vec![1u8, 2]);
    /// storage.bytes_mut()[0] = 7;
    /// assert_eq!(storage.bytes(), [7, 2]);
    /// ```
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.raw.cap {
            0 => &mut [],
            // SAFETY: as for `bytes`, and the borrow is unique.
            _ => unsafe { std::slice::from_raw_parts_mut(self.raw.data, self.len() * self.size) },
        }
    }

    /// The elements as a slice, if they have this size and alignment. Only for number types of
    /// which every bit pattern is valid.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let storage = RawStorage::from_vec(vec![3u32, 5]);
    /// assert_eq!(storage.indices::<u32>(), Some(&[3, 5][..]));
    /// assert_eq!(storage.indices::<u64>(), None);
    /// ```
    pub fn indices<T: Element + Into<u64>>(&self) -> Option<&[T]> {
        let fits = size_of::<T>() == self.size && align_of::<T>() == self.align && T::DTYPE != DType::Bool;
        match self.raw.cap {
            0 => fits.then_some(&[]),
            // SAFETY: the storage owns `len` elements of this size and alignment, which may be
            // any numbers.
            _ => fits.then(|| unsafe { std::slice::from_raw_parts(self.raw.data.cast(), self.len()) }),
        }
    }

    /// The elements as a mutable slice, if they have this size and alignment.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let mut storage = RawStorage::from_vec(vec![3u32, 5]);
    /// storage.indices_mut::<u32>().unwrap()[1] = 6;
    /// assert_eq!(storage.indices::<u32>(), Some(&[3, 6][..]));
    /// ```
    pub fn indices_mut<T: Element + Into<u64>>(&mut self) -> Option<&mut [T]> {
        let fits = size_of::<T>() == self.size && align_of::<T>() == self.align && T::DTYPE != DType::Bool;
        match self.raw.cap {
            0 => fits.then_some(&mut []),
            // SAFETY: as for `indices`, and the borrow is unique.
            _ => fits.then(|| unsafe { std::slice::from_raw_parts_mut(self.raw.data.cast(), self.len()) }),
        }
    }

    /// The number of elements.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert_eq!(RawStorage::from_vec(vec![1.0, 2.0]).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.raw.len as usize
    }

    /// True if there are no elements.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert!(RawStorage::from_vec(Vec::<f64>::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all but the first `len` elements.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let mut storage = RawStorage::from_vec(vec![1u8, 2, 3]);
    /// storage.truncate(2);
    /// assert_eq!(storage.bytes(), [1, 2]);
    /// ```
    pub fn truncate(&mut self, len: usize) {
        self.raw.len = self.raw.len.min(len as u64);
    }

    /// The descriptor for a call of a kernel. The caller writes it back with
    /// [`RawStorage::set_raw`].
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// assert_eq!(RawStorage::from_vec(vec![1.0, 2.0]).raw().len, 2);
    /// ```
    pub fn raw(&self) -> RawBuffer {
        self.raw
    }

    /// Writes back the descriptor that a kernel has changed.
    ///
    /// # Safety
    /// The descriptor was taken by [`RawStorage::raw`] from this storage, and only a kernel has
    /// changed it since.
    ///
    /// ```
    /// use tamis_backend::RawStorage;
    /// let mut storage = RawStorage::from_vec(vec![1.0, 2.0]);
    /// let raw = storage.raw();
    /// // SAFETY: the descriptor is that of the storage, unchanged.
    /// unsafe { storage.set_raw(raw) };
    /// assert_eq!(storage.len(), 2);
    /// ```
    pub unsafe fn set_raw(&mut self, raw: RawBuffer) {
        self.raw = raw;
    }
}

impl Drop for RawStorage {
    fn drop(&mut self) {
        release(&mut self.raw, self.size, self.align);
    }
}

/// Frees the memory that a descriptor owns, if it owns any.
pub(crate) fn release(raw: &mut RawBuffer, size: usize, align: usize) {
    if let Some(block) = owned(raw, size, align) {
        pool::free(block);
    }
    *raw = RawBuffer::empty();
}

fn owned(raw: &RawBuffer, size: usize, align: usize) -> Option<HeapBlock> {
    let bytes = usize::try_from(raw.cap).ok()?.checked_mul(size).filter(|bytes| *bytes > 0)?;
    Some(HeapBlock { data: NonNull::new(raw.data)?, layout: Layout::from_size_align(bytes, align).ok()? })
}

/// Grows a buffer to at least `len` elements, and to at least twice its length (bounded by the
/// capacity while that suffices). New elements hold `fill`, or are uninitialised. Returns `false`,
/// with nothing changed, if allocation fails.
pub(crate) fn grow(raw: &mut RawBuffer, len: u64, size: usize, align: usize, fill: Option<&[u8]>) -> bool {
    if len <= raw.len {
        return true;
    }
    let mut target = len.max(raw.len.saturating_mul(2));
    if len <= raw.cap {
        target = target.min(raw.cap);
    }
    let used = raw.len as usize * size;
    if target > raw.cap {
        let layout = usize::try_from(target).ok().and_then(|n| n.checked_mul(size));
        let layout = layout.and_then(|bytes| Layout::from_size_align(bytes, align).ok());
        let Some(layout) = layout else { return false };
        let zero = fill.is_some_and(|fill| fill.iter().all(|byte| *byte == 0));
        let block = match owned(raw, size, align) {
            Some(block) => pool::reallocate(block, used, layout.size(), size).ok(),
            None if used == 0 && zero => pool::allocate_zeroed(layout, size),
            None => pool::allocate(layout, size).inspect(|block| {
                // SAFETY: the buffer has `used` bytes, and the new block has more and does not
                // overlap.
                unsafe { block.data.copy_from_nonoverlapping(NonNull::new_unchecked(raw.data), used) };
            }),
        };
        let Some(block) = block else { return false };
        let cleared = used == 0 && zero && raw.cap == 0;
        *raw = RawBuffer { data: block.data.as_ptr(), len: raw.len, cap: (block.layout.size() / size) as u64 };
        if cleared {
            raw.len = target;
            return true;
        }
    }
    if let Some(fill) = fill {
        let new = (target as usize) * size - used;
        // SAFETY: the capacity is at least `target` elements, of which `used` bytes are in use.
        write_pattern(unsafe { raw.data.add(used) }, new, fill);
    }
    raw.len = target;
    true
}

/// Repeats a pattern over `bytes` bytes, which are a multiple of its length.
fn write_pattern(data: *mut u8, bytes: usize, pattern: &[u8]) {
    if bytes == 0 {
        return;
    }
    if pattern.iter().all(|byte| *byte == pattern[0]) {
        // SAFETY: the caller owns these bytes.
        unsafe { data.write_bytes(pattern[0], bytes) };
        return;
    }
    let mut done = pattern.len();
    // SAFETY: the writes stay within the caller's bytes, and copy initialised bytes,
    // without overlap.
    unsafe {
        data.copy_from_nonoverlapping(pattern.as_ptr(), done);
        while done < bytes {
            // Doubles the written prefix, in blocks that fit the cache.
            let part = done.min(bytes - done).min(1 << 16);
            data.add(done).copy_from_nonoverlapping(data.add(done - part), part);
            done += part;
        }
    }
}

/// The bytes of a value as an element.
pub(crate) fn element_bytes(elem: Elem, value: Value) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    let mut put = |part: &[u8]| bytes[..part.len()].copy_from_slice(part);
    match value {
        Value::I64(x) => put(&x.to_le_bytes()),
        Value::Bool(x) => put(&[x as u8]),
        Value::I8(x) => put(&x.to_le_bytes()),
        Value::I16(x) => put(&x.to_le_bytes()),
        Value::I32(x) => put(&x.to_le_bytes()),
        Value::U8(x) => put(&x.to_le_bytes()),
        Value::U16(x) => put(&x.to_le_bytes()),
        Value::U32(x) => put(&x.to_le_bytes()),
        Value::U64(x) => put(&x.to_le_bytes()),
        Value::F32(x) => put(&x.to_le_bytes()),
        Value::F64(x) => put(&x.to_le_bytes()),
        Value::C64(c) => {
            put(&c.re.to_le_bytes());
            bytes[4..8].copy_from_slice(&c.im.to_le_bytes());
        }
        Value::C128(c) => {
            put(&c.re.to_le_bytes());
            bytes[8..16].copy_from_slice(&c.im.to_le_bytes());
        }
    }
    // Little-endian: the low bytes of an i64 are the index of a smaller width.
    (bytes, elem.size())
}

/// Packs the arguments of growth into one number, since every argument costs code: the buffer id,
/// the element size, and the alignment.
pub(crate) fn growth(buffer: usize, elem: Elem) -> u64 {
    (buffer as u64) << 16 | (elem.size() as u64) << 8 | align(elem) as u64
}

/// Called by kernels: returns the first element, or null after it has written the failure.
///
/// # Safety
/// `buffers` is the buffer table of a kernel. The buffer that [`growth`] names is not aliased and
/// has elements of this size and alignment. `fill` points to an element, or is null; `failure` is
/// the kernel's.
unsafe extern "C" fn grow_buffer(
    buffers: *mut RawBuffer,
    len: i64,
    growth: u64,
    fill: *const u8,
    failure: *mut RawFailure,
) -> *mut u8 {
    let (id, size, align) = ((growth >> 16) as usize, (growth >> 8 & 0xff) as usize, (growth & 0xff) as usize);
    // SAFETY: guaranteed by the caller.
    let (raw, fill) =
        unsafe { (&mut *buffers.add(id), (!fill.is_null()).then(|| std::slice::from_raw_parts(fill, size))) };
    if u64::try_from(len).is_ok_and(|len| !grow(raw, len, size, align, fill)) {
        // SAFETY: guaranteed by the caller.
        unsafe { *failure = RawFailure { id: id as i64, index: len, len: 0 } };
        return std::ptr::null_mut();
    }
    // Null means that growth failed, so an empty buffer has another pointer.
    NonNull::new(raw.data).unwrap_or(NonNull::<u64>::dangling().cast()).as_ptr()
}

/// Grows two buffers without a fill value; returns whether both have the length now.
///
/// # Safety
/// As [`grow_buffer`], for both.
unsafe extern "C" fn grow_both(
    buffers: *mut RawBuffer,
    len: i64,
    first: u64,
    second: u64,
    failure: *mut RawFailure,
) -> u8 {
    // SAFETY: guaranteed by the caller.
    let grow = |growth| unsafe { !grow_buffer(buffers, len, growth, std::ptr::null(), failure).is_null() };
    u8::from(grow(first) && grow(second))
}

pub(super) static SYMBOLS: &[(&str, Address)] =
    &[("tamis_grow", Address(grow_buffer as *const ())), ("tamis_grow_both", Address(grow_both as *const ()))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_keeps_and_fills() {
        let mut storage = RawStorage::from_vec(vec![1u16, 2, 3]);
        assert!(grow(&mut storage.raw, 4, 2, 2, Some(&7u16.to_le_bytes())));
        assert!(grow(&mut storage.raw, 5, 2, 2, Some(&8u16.to_le_bytes())), "already long enough");
        assert!(grow(&mut storage.raw, 7, 2, 2, Some(&0x0102u16.to_le_bytes())));
        let expected = [1, 2, 3, 7, 7, 7, 0x102, 0x102, 0x102, 0x102, 0x102, 0x102];
        assert_eq!(storage.into_vec::<u16>().unwrap(), expected);
    }

    #[test]
    fn borrowed_memory_is_copied() {
        let mut values = [1.0f64, 2.0];
        let mut raw = RawBuffer::output(&mut values);
        assert!(grow(&mut raw, 3, 8, 8, Some(&5.0f64.to_le_bytes())));
        assert_ne!(raw.data, values.as_mut_ptr().cast());
        let mut storage = RawStorage::new(Elem::Value(DType::F64));
        storage.raw = raw;
        assert_eq!(storage.into_vec::<f64>().unwrap(), [1.0, 2.0, 5.0, 5.0]);
    }

    #[test]
    fn growth_without_a_fill_keeps_the_elements() {
        let mut storage = RawStorage::from_vec(vec![1u16, 2, 3]);
        assert!(grow(&mut storage.raw, 5, 2, 2, None));
        assert_eq!(storage.len(), 6);
        storage.truncate(3);
        assert_eq!(storage.into_vec::<u16>().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn grow_buffer_returns_the_data_pointer_or_a_failure() {
        let elem = Elem::Value(DType::C64);
        let mut buffers = [RawBuffer::empty(), RawBuffer::empty()];
        let mut failure = RawFailure::default();
        let mut call = |buffers: &mut [RawBuffer; 2], len: i64| {
            // SAFETY: the table has two entries, of which the second is not aliased.
            unsafe { grow_buffer(buffers.as_mut_ptr(), len, growth(1, elem), [1; 8].as_ptr(), &mut failure) }
        };
        assert!(!call(&mut buffers, -1).is_null(), "a negative length is no failure");
        let data = call(&mut buffers, 3);
        assert_eq!((data, buffers[1].len, buffers[0]), (buffers[1].data, 3, RawBuffer::empty()));
        assert!(call(&mut buffers, 1 << 60).is_null());
        assert_eq!(buffers[1].data, data);
        assert_eq!(failure, RawFailure { id: 1, index: 1 << 60, len: 0 });
        release(&mut buffers[1], elem.size(), align(elem));
    }

    #[test]
    fn failed_growth_changes_nothing() {
        let mut storage = RawStorage::from_vec(vec![1u64, 2]);
        for len in [1 << 60, 1 << 61, u64::MAX, 1 << 45] {
            assert!(!grow(&mut storage.raw, len, 8, 8, Some(&[0; 8])));
        }
        assert_eq!(storage.into_vec::<u64>().unwrap(), [1, 2]);
        assert!(RawStorage::from_vec(vec![1u32]).into_vec::<f64>().is_err());
        assert!(RawStorage::from_vec(vec![2u8]).into_vec::<bool>().is_err());
        assert_eq!(RawStorage::from_vec(vec![1u8, 0]).into_vec::<bool>().unwrap(), [true, false]);
        assert_eq!(RawStorage::from_vec(Vec::<f64>::new()).into_vec::<f64>().unwrap(), []);
    }
}
