//! Fallible allocation of large arrays, and reuse of their memory (a memory pool).

use bytemuck::{Pod, Zeroable};
use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tamis_ir::{Code, Diagnostic, diag::Result};

/// Arrays of at least this size are backed by large pages if the system supports them, and pooled
/// for reuse when a tensor is dropped: clearing fresh memory in the system costs more than
/// converting a matrix.
const LARGE: usize = 2 << 20;

/// Allocations below this size do not check the free memory of the system.
const CHECKED: usize = 256 << 20;

/// The capacity of the pool, over all threads.
const POOL_CAPACITY: usize = 256 << 20;

/// The size limit of one array of a tensor, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the maximum bytes of one array of a tensor; returns the previous limit. A conversion that
/// needs a larger one is refused with a diagnostic. The default is no limit but the memory of the
/// machine.
///
/// ```
/// let before = tamis_tensor::limit_arrays(1 << 30);
/// assert_eq!(tamis_tensor::limit_arrays(before), 1 << 30);
/// ```
pub fn limit_arrays(bytes: usize) -> usize {
    LIMIT.swap(bytes, Ordering::Relaxed)
}

/// The pool: memory of dropped tensors, oldest first.
static POOL: Mutex<Vec<PooledBlock>> = Mutex::new(Vec::new());

/// A memory pool that replaces the pool of this module.
static REPLACEMENT: OnceLock<MemoryPool> = OnceLock::new();

/// Memory with the layout that it was allocated with.
type Taken = (NonNull<u8>, Layout);

/// A pool of memory of the global allocator.
///
/// # Safety
/// `take` returns memory of the global allocator without another owner, with its layout: at least
/// of the requested size, of the requested alignment, and a multiple of the unit (the second
/// argument). `give` accepts such memory.
///
/// ```
/// use std::alloc::Layout;
/// use tamis_tensor::MemoryPool;
/// /// A pool that is always empty.
/// let pool = MemoryPool {
///     take: |_, _| None,
///     // SAFETY: `give` receives memory of the global allocator with its layout.
///     give: |data, layout| unsafe { std::alloc::dealloc(data.as_ptr(), layout) },
///     smallest: 2 << 20,
/// };
/// assert!((pool.take)(Layout::new::<u64>(), 8).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MemoryPool {
    /// Takes memory for a layout, a multiple of a unit; `None` if the pool has none.
    pub take: fn(Layout, usize) -> Option<Taken>,
    /// Returns memory to the pool, or frees it.
    pub give: fn(NonNull<u8>, Layout),
    /// The minimum size of pooled memory.
    pub smallest: usize,
}

/// Replaces the pool, so that all producers of tensors share one. The first call decides for the
/// whole process.
///
/// # Safety
/// The functions satisfy the contract of [`MemoryPool`].
///
/// ```
/// use tamis_tensor::{MemoryPool, set_memory_pool};
/// # let give: fn(_, _) = |data: std::ptr::NonNull<u8>, layout| unsafe {
/// #     std::alloc::dealloc(data.as_ptr(), layout)
/// # };
/// // SAFETY: it has no memory to give, and frees what it receives.
/// unsafe { set_memory_pool(MemoryPool { take: |_, _| None, give, smallest: usize::MAX }) };
/// ```
pub unsafe fn set_memory_pool(pool: MemoryPool) {
    let _ = REPLACEMENT.set(pool);
}

/// Unused memory with its layout.
struct PooledBlock {
    memory: *mut u8,
    layout: Layout,
}

// SAFETY: a block owns its memory.
unsafe impl Send for PooledBlock {}

impl Drop for PooledBlock {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated by the global allocator with this layout, and is unused.
        unsafe { std::alloc::dealloc(self.memory, self.layout) }
    }
}

/// Returns the memory of a vector to the pool, for a later [`reserve`].
pub(crate) fn recycle<T>(values: Vec<T>) {
    let mut values = ManuallyDrop::new(values);
    let Ok(layout) = Layout::array::<T>(values.capacity()) else { return };
    if let Some(pool) = REPLACEMENT.get()
        && !std::mem::needs_drop::<T>()
        && layout.size() >= pool.smallest.max(1)
        && let Some(memory) = NonNull::new(values.as_mut_ptr() as *mut u8)
    {
        return (pool.give)(memory, layout);
    }
    if std::mem::needs_drop::<T>() || !(LARGE..=POOL_CAPACITY).contains(&layout.size()) {
        drop(ManuallyDrop::into_inner(values));
        return;
    }
    let block = PooledBlock { memory: values.as_mut_ptr() as *mut u8, layout };
    let mut freed = Vec::new();
    if let Ok(mut kept) = POOL.lock() {
        kept.push(block);
        let mut total: usize = kept.iter().map(|block| block.layout.size()).sum();
        while total > POOL_CAPACITY {
            let oldest = kept.remove(0);
            total -= oldest.layout.size();
            // Memory is freed outside of the lock.
            freed.push(oldest);
        }
    }
}

/// Pooled memory for `len` values, if a block fits with less than a quarter unused.
fn recycled<T>(len: usize) -> Option<Vec<T>> {
    let wanted = Layout::array::<T>(len).ok()?;
    if let Some(pool) = REPLACEMENT.get() {
        let (memory, layout) =
            Some(wanted).filter(|w| w.size() >= pool.smallest.max(1)).and_then(|w| (pool.take)(w, size_of::<T>()))?;
        // SAFETY: the memory is of the global allocator, has no other owner, and its layout is that
        // of `size / size_of::<T>()` values of `T`, by the contract of the pool.
        return Some(unsafe { Vec::from_raw_parts(memory.as_ptr() as *mut T, 0, layout.size() / size_of::<T>()) });
    }
    if wanted.size() < LARGE {
        return None;
    }
    let mut kept = POOL.lock().ok()?;
    let fits = |block: &PooledBlock| {
        let size = block.layout.size();
        block.layout.align() == wanted.align()
            && size >= wanted.size()
            && size - wanted.size() <= wanted.size() / 4
            && size.is_multiple_of(size_of::<T>())
    };
    let at = kept.iter().rposition(fits)?;
    let block = ManuallyDrop::new(kept.remove(at));
    // SAFETY: the block owns its memory, and its layout is that of `size / size_of::<T>()` values
    // of `T`.
    Some(unsafe { Vec::from_raw_parts(block.memory as *mut T, 0, block.layout.size() / size_of::<T>()) })
}

/// The values with less unused capacity. Few values are moved out of a large allocation, which is
/// pooled as a whole: returned in part, it would be fresh pages the next time.
pub(crate) fn fitted<T: Clone>(mut values: Vec<T>) -> Vec<T> {
    let spare = values.capacity() - values.len();
    if spare > values.len()
        && spare.saturating_mul(size_of::<T>()) >= LARGE
        && let Ok(mut exact) = reserve(values.len(), "a result")
    {
        exact.extend_from_slice(&values);
        recycle(values);
        return exact;
    }
    values.shrink_to_fit();
    values
}

/// An empty vector of this capacity, or a diagnostic.
pub(crate) fn reserve<T>(len: usize, what: &str) -> Result<Vec<T>> {
    if let Some(values) = recycled(len) {
        return Ok(values);
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    let Some(bytes) = bytes.filter(|bytes| available(*bytes)) else {
        return Err(too_large(len as u64, size_of::<T>(), what));
    };
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| too_large(len as u64, size_of::<T>(), what))?;
    prefer_large_pages(values.as_mut_ptr() as *mut u8, bytes);
    Ok(values)
}

/// An empty vector of this capacity, in memory like that of tensors: on large pages if it is large,
/// which makes random access faster.
///
/// ```
/// let mut numbers: Vec<u32> = tamis_tensor::with_capacity(3);
/// numbers.extend([1, 2, 3]);
/// assert!(numbers.capacity() >= 3);
/// ```
pub fn with_capacity<T>(len: usize) -> Vec<T> {
    reserve(len, "values").unwrap_or_default()
}

/// `len` copies of `value`.
pub(crate) fn filled<T: Pod>(len: usize, value: T, what: &str) -> Result<Vec<T>> {
    if bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0) {
        return zeroed(len, what);
    }
    let mut values = reserve(len, what)?;
    values.resize(len, value);
    Ok(values)
}

/// `len` zeros, from pages that the system has already cleared, if there are many.
pub(crate) fn zeroed<T: Zeroable + Clone>(len: usize, what: &str) -> Result<Vec<T>> {
    if let Some(mut values) = recycled(len) {
        values.resize(len, T::zeroed());
        return Ok(values);
    }
    let refused = || too_large(len as u64, size_of::<T>(), what);
    let layout = Layout::array::<T>(len).map_err(|_| refused())?;
    if layout.size() == 0 || !available(layout.size()) {
        return if layout.size() == 0 { Ok(Vec::new()) } else { Err(refused()) };
    }
    // SAFETY: the layout has a size above zero.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) } as *mut T;
    if memory.is_null() {
        return Err(refused());
    }
    prefer_large_pages(memory as *mut u8, layout.size());
    // SAFETY: the memory comes from the global allocator with the layout of `len` values of `T`,
    // and all bytes zero are a value of `T`.
    Ok(unsafe { Vec::from_raw_parts(memory, len, len) })
}

/// The diagnostic for an array of `count` values that cannot be allocated.
pub(crate) fn too_large(count: u64, size: usize, what: &str) -> Diagnostic {
    let bytes = count as f64 * size as f64;
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let unit = (bytes.max(1.0).log10() as usize / 3).min(units.len() - 1);
    let amount = bytes / 1000f64.powi(unit as i32);
    Diagnostic::new(
        Code::E0706,
        format!("{what} would need {amount:.1} {}, more than this machine can give", units[unit]),
    )
    .help("store the large dimensions in levels that store only nonzeros, such as `sparse` (short names: `coo`, `csf`)")
}

/// The product of two sizes, or a diagnostic that the size of a dense level overflows.
pub(crate) fn product(parents: usize, extent: u64) -> Result<usize> {
    let total = (parents as u64).checked_mul(extent).ok_or_else(|| {
        Diagnostic::new(
            Code::E0404,
            format!("a dense level of size {extent} below {parents} positions has more than 2^64 positions"),
        )
        .help("store the large dimensions in levels that store only nonzeros, such as `sparse` (short names: `coo`, `csf`)")
    })?;
    usize::try_from(total).map_err(|_| too_large(total, 1, "the positions of a dense level"))
}

/// True if an array of this many bytes is within the limit, and the system reports as many free
/// bytes. If it reports nothing, the allocation decides.
pub(crate) fn available(bytes: usize) -> bool {
    bytes <= LIMIT.load(Ordering::Relaxed)
        && (bytes < CHECKED || free_kilobytes().is_none_or(|free| bytes / 1024 <= free))
}

/// True if an array of this many bytes takes at most a quarter of the free memory.
pub(crate) fn is_modest(bytes: usize) -> bool {
    available(bytes) && (bytes < CHECKED || free_kilobytes().is_none_or(|free| bytes / 1024 <= free / 4))
}

/// The free memory of the machine, or of the control group that the process belongs to; `None` if
/// the system reports none.
fn free_kilobytes() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()?;
    let bytes = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let group = bytes("/sys/fs/cgroup/memory.max").zip(bytes("/sys/fs/cgroup/memory.current"));
    Some(group.map_or(machine, |(most, used)| machine.min(most.saturating_sub(used) / 1024)))
}

#[cfg(target_os = "linux")]
fn prefer_large_pages(memory: *mut u8, bytes: usize) {
    if bytes < LARGE {
        return;
    }
    let start = (memory as usize).next_multiple_of(4096);
    let end = (memory as usize + bytes) & !4095;
    if end > start {
        // SAFETY: the range lies within memory that the caller has just allocated; the advice does
        // not change its contents, and a failure has no effect.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_large_pages(_memory: *mut u8, _bytes: usize) {
    let _ = LARGE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        // A unique length, so that no other test takes the memory in between.
        let length = LARGE / 8 + 4321;
        let first: Vec<u64> = reserve(length, "it").unwrap();
        let (place, capacity) = (first.as_ptr() as usize, first.capacity());
        recycle(first);
        let second: Vec<i64> = zeroed(length, "it").unwrap();
        assert_eq!((second.as_ptr() as usize, second.capacity()), (place, capacity));
        assert!(second.len() == length && second.iter().all(|x| *x == 0));
        recycle(second);
        let other: Vec<u32> = reserve(2 * length, "it").unwrap();
        assert_ne!(other.as_ptr() as usize, place, "of another alignment");
        for _ in 0..10 {
            recycle(vec![0u8; POOL_CAPACITY / 4]);
        }
        let kept: usize = POOL.lock().unwrap().iter().map(|block| block.layout.size()).sum();
        assert!(kept <= POOL_CAPACITY);
    }

    #[test]
    fn absurd_sizes_are_diagnostics() {
        assert_eq!(reserve::<u64>(usize::MAX, "it").unwrap_err().code, Code::E0706);
        assert_eq!(reserve::<u64>(1 << 50, "it").unwrap_err().code, Code::E0706);
        assert_eq!(zeroed::<u64>(1 << 50, "it").unwrap_err().code, Code::E0706);
        assert_eq!(filled::<f64>(1 << 60, 1.0, "it").unwrap_err().code, Code::E0706);
        assert_eq!(product(1 << 40, 1 << 40).unwrap_err().code, Code::E0404);
        assert_eq!(filled(3, 7u8, "it").unwrap(), [7, 7, 7]);
        assert_eq!(zeroed::<u32>(0, "it").unwrap(), [0u32; 0]);
        assert!(zeroed::<u64>(1 << 20, "it").unwrap().iter().all(|x| *x == 0));
    }
}
