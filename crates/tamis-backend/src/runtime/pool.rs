//! Memory pool: freed blocks are kept for reuse, since page faults on fresh memory cost more than
//! most kernels.
//!
//! Blocks come from the global allocator. The pool keeps a bounded number of bytes resident; beyond
//! that, on Linux, it marks blocks as purgeable (`MADV_FREE`), so that the system can reclaim their
//! pages.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Minimum size of pooled blocks; smaller ones are cheap to allocate.
///
/// ```
/// use std::alloc::Layout;
/// use tamis_backend::runtime::{MIN_POOLED_BYTES, acquire_memory};
/// let layout = Layout::array::<u8>(MIN_POOLED_BYTES - 1).unwrap();
/// assert!(acquire_memory(layout, 1).is_none(), "small blocks are not pooled");
/// ```
pub const MIN_POOLED_BYTES: usize = 64 << 10;

/// Maximum bytes of resident free blocks, over all threads.
const MAX_RESIDENT_BYTES: usize = 256 << 20;

/// The pool keeps up to this fraction of the machine's memory as purgeable
/// blocks.
const PURGEABLE_FRACTION: usize = 4;

/// Minimum size of blocks that request huge pages.
const MIN_HUGE_PAGE_BYTES: usize = 2 << 20;

/// Minimum size of allocations that check the available memory first.
const MIN_CHECKED_BYTES: usize = 256 << 20;

/// The size limit of one block of a kernel, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the maximum bytes of one array of a kernel; returns the previous limit. A kernel that needs
/// more fails with an out-of-memory diagnostic. The default is no limit but the memory of the
/// machine.
///
/// ```
/// let before = tamis_backend::runtime::limit_arrays(1 << 30);
/// assert_eq!(tamis_backend::runtime::limit_arrays(before), 1 << 30);
/// ```
pub fn limit_arrays(bytes: usize) -> usize {
    LIMIT.swap(bytes, Ordering::Relaxed)
}

/// Free blocks, oldest first.
static FREE_BLOCKS: Mutex<Vec<FreeBlock>> = Mutex::new(Vec::new());

/// Memory of the global allocator with this layout, owned by the holder of the block.
#[derive(Debug)]
pub(super) struct HeapBlock {
    pub(super) data: NonNull<u8>,
    pub(super) layout: Layout,
}

/// A free block in the pool.
#[derive(Debug)]
struct FreeBlock {
    block: HeapBlock,
    /// The block is purgeable: the system may reclaim its pages, whose contents are then lost.
    purgeable: bool,
}

// SAFETY: a block owns its memory, which no other thread knows of.
unsafe impl Send for HeapBlock {}

/// The kind of allocation that reuses a free block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReuseFor {
    /// An array of known size: best fit, with at most a quarter of slack, since results may keep
    /// it.
    KnownSize,
    /// An array that grows and is likely to grow further: the most recently freed block of up to
    /// [`MAX_GROWTH_SLACK`] times the size needed now. The array then grows once into the block of
    /// the previous call. A result that stays far smaller is moved out of it.
    Growing,
}

/// Maximum ratio of the block of a growing array to the size needed now.
const MAX_GROWTH_SLACK: usize = 64;

/// Allocates `layout` (not of size 0): from a free block whose size is a multiple of `unit` and at
/// most a quarter larger than needed, or from the global allocator. `None` if memory is exhausted.
pub(super) fn allocate(layout: Layout, unit: usize) -> Option<HeapBlock> {
    if layout.size() > LIMIT.load(Ordering::Relaxed) {
        return None;
    }
    if layout.size() >= MIN_POOLED_BYTES
        && let Some(block) = reuse(layout, unit, ReuseFor::KnownSize)
    {
        return Some(block);
    }
    if layout.size() == 0 || !available(layout.size()) {
        return None;
    }
    // SAFETY: the layout has a size above zero.
    let data = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    advise_huge_pages(data, layout.size());
    Some(HeapBlock { data, layout })
}

/// Allocates like [`allocate`], with all bytes zero.
pub(super) fn allocate_zeroed(layout: Layout, unit: usize) -> Option<HeapBlock> {
    if layout.size() > LIMIT.load(Ordering::Relaxed) {
        return None;
    }
    if layout.size() >= MIN_POOLED_BYTES
        && let Some(block) = reuse(layout, unit, ReuseFor::KnownSize)
    {
        // SAFETY: the block has this many bytes.
        unsafe { block.data.write_bytes(0, block.layout.size()) };
        return Some(block);
    }
    if layout.size() == 0 || !available(layout.size()) {
        return None;
    }
    // SAFETY: the layout has a size above zero.
    let data = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    advise_huge_pages(data, layout.size());
    Some(HeapBlock { data, layout })
}

/// Reallocates the block to at least `size` bytes (more than it has) and a multiple of `unit`, with
/// its first `used` bytes kept. Returns the unchanged block if memory is exhausted.
///
/// Copying into a free block costs less than page faults on a fresh one. Without a free block the
/// allocator moves large blocks by remapping their pages, without a copy.
pub(super) fn reallocate(block: HeapBlock, used: usize, size: usize, unit: usize) -> Result<HeapBlock, HeapBlock> {
    let Ok(layout) = Layout::from_size_align(size, block.layout.align()) else { return Err(block) };
    if size > LIMIT.load(Ordering::Relaxed) {
        return Err(block);
    }
    if size >= MIN_POOLED_BYTES
        && let Some(larger) = reuse(layout, unit, ReuseFor::Growing)
    {
        // SAFETY: both blocks have these bytes, and neither is aliased.
        unsafe { larger.data.copy_from_nonoverlapping(block.data, used.min(block.layout.size())) };
        free(block);
        return Ok(larger);
    }
    if !available(size - block.layout.size().min(size)) {
        return Err(block);
    }
    // SAFETY: the block is of the global allocator with its layout, and the new size is valid and
    // not zero.
    let data = unsafe { std::alloc::realloc(block.data.as_ptr(), block.layout, size) };
    let Some(data) = NonNull::new(data) else { return Err(block) };
    advise_huge_pages(data, size);
    Ok(HeapBlock { data, layout })
}

/// Returns a block to the pool.
pub(super) fn free(block: HeapBlock) {
    let mut evicted = Vec::new();
    match FREE_BLOCKS.lock() {
        Ok(mut blocks) if (MIN_POOLED_BYTES..=max_pooled_bytes()).contains(&block.layout.size()) => {
            blocks.push(FreeBlock { block, purgeable: false });
            let size = |free: &FreeBlock| free.block.layout.size();
            let mut total: usize = blocks.iter().map(size).sum();
            while total > max_pooled_bytes() {
                let oldest = blocks.remove(0);
                total -= size(&oldest);
                evicted.push(oldest.block);
            }
            let mut resident: usize = blocks.iter().filter(|free| !free.purgeable).map(size).sum();
            for oldest in blocks.iter_mut().filter(|free| !free.purgeable) {
                if resident <= MAX_RESIDENT_BYTES {
                    break;
                }
                resident -= size(oldest);
                oldest.purgeable = true;
                mark_purgeable(&oldest.block);
            }
        }
        _ => evicted.push(block),
    }
    // Freeing takes time; the lock is released by now, so that other threads need not wait.
    for block in evicted {
        // SAFETY: the block is of the global allocator with its layout, and is not used any more.
        unsafe { std::alloc::dealloc(block.data.as_ptr(), block.layout) };
    }
}

/// Maximum bytes of all free blocks.
fn max_pooled_bytes() -> usize {
    static MAX_POOLED_BYTES: OnceLock<usize> = OnceLock::new();
    *MAX_POOLED_BYTES.get_or_init(|| {
        MAX_RESIDENT_BYTES.max(if HAS_PURGEABLE_PAGES {
            kilobytes("MemTotal:").map_or(0, |n| n / PURGEABLE_FRACTION * 1024)
        } else {
            0
        })
    })
}

/// True if the system supports purgeable pages.
const HAS_PURGEABLE_PAGES: bool = cfg!(target_os = "linux");

/// Marks the pages of a block as purgeable. Until the system reclaims them they are accessible
/// without a fault.
fn mark_purgeable(block: &HeapBlock) {
    let (start, end) = pages(block.data, block.layout.size());
    if end > start {
        // SAFETY: the pages are within a free block, whose contents do not matter.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_FREE)
        };
    }
}

/// The whole pages within a range of bytes.
fn pages(data: NonNull<u8>, bytes: usize) -> (usize, usize) {
    ((data.as_ptr() as usize).next_multiple_of(PAGE), (data.as_ptr() as usize + bytes) & !(PAGE - 1))
}

/// A multiple of the page size on all supported machines.
const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// Releases memory of the global allocator to the pool, which keeps it for the arrays of kernels,
/// or frees it.
///
/// # Safety
/// The memory was allocated with this layout, whose size is not 0, and is not used any more.
///
/// ```
/// use std::alloc::{Layout, alloc};
/// use std::ptr::NonNull;
/// use tamis_backend::runtime::release_memory;
/// let layout = Layout::array::<u8>(1 << 20).unwrap();
/// // SAFETY: the size is not 0; the memory has this layout, and is not used any more.
/// unsafe { release_memory(NonNull::new(alloc(layout)).unwrap(), layout) };
/// ```
pub unsafe fn release_memory(data: NonNull<u8>, layout: Layout) {
    free(HeapBlock { data, layout });
}

/// Acquires a free block from the pool, of at most a quarter more than the layout and a multiple of
/// `unit` bytes. The caller owns it.
///
/// ```
/// use std::alloc::Layout;
/// use tamis_backend::runtime::{acquire_memory, release_memory};
/// let layout = Layout::array::<u8>(1 << 20).unwrap();
/// if let Some((data, found)) = acquire_memory(layout, 1) {
///     assert!(found.size() >= layout.size());
///     // SAFETY: the memory has this layout, and is not used any more.
///     unsafe { release_memory(data, found) };
/// }
/// ```
pub fn acquire_memory(layout: Layout, unit: usize) -> Option<(NonNull<u8>, Layout)> {
    let wanted = layout.size() >= MIN_POOLED_BYTES && unit > 0;
    wanted.then(|| reuse(layout, unit, ReuseFor::KnownSize)).flatten().map(|block| (block.data, block.layout))
}

/// Takes a free block for an allocation of this kind out of the pool.
fn reuse(layout: Layout, unit: usize, purpose: ReuseFor) -> Option<HeapBlock> {
    let mut blocks = FREE_BLOCKS.lock().ok()?;
    let max_size = match purpose {
        ReuseFor::KnownSize => layout.size().saturating_add(layout.size() / 4),
        ReuseFor::Growing => layout.size().saturating_mul(MAX_GROWTH_SLACK),
    };
    let sizes = layout.size()..=max_size.min(LIMIT.load(Ordering::Relaxed));
    let fits = |FreeBlock { block, .. }: &FreeBlock| {
        let size = block.layout.size();
        block.layout.align() == layout.align() && sizes.contains(&size) && size.is_multiple_of(unit)
    };
    let position = match purpose {
        ReuseFor::KnownSize => {
            let fitting = blocks.iter().enumerate().rev().filter(|(_, free)| fits(free));
            fitting.min_by_key(|(_, free)| free.block.layout.size())?.0
        }
        ReuseFor::Growing => blocks.iter().rposition(fits)?,
    };
    Some(blocks.remove(position).block)
}

/// True if the system reports this many available bytes. Without a report the allocation itself
/// decides.
fn available(bytes: usize) -> bool {
    if bytes < MIN_CHECKED_BYTES || !cfg!(target_os = "linux") {
        return true;
    }
    kilobytes("MemAvailable:").is_none_or(|kilobytes| bytes / 1024 <= kilobytes)
}

/// A field of `/proc/meminfo` in kilobytes.
fn kilobytes(field: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn advise_huge_pages(data: NonNull<u8>, bytes: usize) {
    if bytes < MIN_HUGE_PAGE_BYTES || !cfg!(target_os = "linux") {
        return;
    }
    let (start, end) = pages(data, bytes);
    if end > start {
        // SAFETY: the range is within memory that was just allocated; the advice does not change
        // its contents, and failure leaves everything as it was.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_blocks_are_reused() {
        // A unique size, so that no other test takes the block in between.
        let layout = Layout::from_size_align(MIN_POOLED_BYTES + 4328, 8).unwrap();
        let block = allocate(layout, 8).unwrap();
        // SAFETY: the block has this many bytes.
        unsafe { block.data.write_bytes(7, layout.size()) };
        let data = block.data;
        free(block);
        let block = allocate_zeroed(layout, 8).unwrap();
        assert_eq!(block.data, data);
        // SAFETY: the block has this many initialised bytes.
        assert!(unsafe { std::slice::from_raw_parts(data.as_ptr(), layout.size()) }.iter().all(|byte| *byte == 0));
        free(block);
        for _ in 0..6 {
            free(allocate(Layout::from_size_align(MAX_RESIDENT_BYTES / 4, 8).unwrap(), 8).unwrap());
        }
        let blocks = FREE_BLOCKS.lock().unwrap();
        assert!(blocks.iter().map(|free| free.block.layout.size()).sum::<usize>() <= max_pooled_bytes());
        assert!(
            blocks.iter().filter(|free| !free.purgeable).map(|free| free.block.layout.size()).sum::<usize>()
                <= MAX_RESIDENT_BYTES
        );
    }

    /// Purgeable blocks are valid when reused: with their contents or without, and zeroed on
    /// request.
    #[test]
    fn purgeable_blocks_are_reusable() {
        // A unique alignment, so that no other test takes the blocks in between.
        let layout = Layout::from_size_align(MAX_RESIDENT_BYTES / 2 + 4096, 1 << 14).unwrap();
        let blocks: Vec<HeapBlock> = (0..3).filter_map(|_| allocate(layout, 1)).collect();
        for block in blocks {
            // SAFETY: the block has these bytes.
            unsafe { block.data.write_bytes(9, 1 << 20) };
            free(block);
        }
        let block = allocate_zeroed(layout, 1).unwrap();
        // SAFETY: the block has these initialised bytes.
        assert!(unsafe { std::slice::from_raw_parts(block.data.as_ptr(), 1 << 20) }.iter().all(|byte| *byte == 0));
        free(block);
    }

    #[test]
    fn growth_reuses_free_blocks() {
        // A unique alignment, so that no other test takes the blocks in between.
        let layout = |size| Layout::from_size_align(size, 32).unwrap();
        let kept = allocate(layout(160 * MIN_POOLED_BYTES), 32).unwrap();
        let data = kept.data;
        free(kept);
        let small = allocate(layout(MIN_POOLED_BYTES), 32).unwrap();
        // SAFETY: the block has this many bytes.
        unsafe { small.data.write_bytes(7, MIN_POOLED_BYTES) };
        // A far smaller block moves elsewhere.
        let small = reallocate(small, MIN_POOLED_BYTES, 2 * MIN_POOLED_BYTES, 32).unwrap();
        assert_ne!(small.data, data);
        let large = reallocate(small, MIN_POOLED_BYTES, 4 * MIN_POOLED_BYTES, 32).unwrap();
        assert_eq!((large.data, large.layout), (data, layout(160 * MIN_POOLED_BYTES)));
        // SAFETY: these bytes were written.
        assert!(unsafe { std::slice::from_raw_parts(data.as_ptr(), MIN_POOLED_BYTES) }.iter().all(|byte| *byte == 7));
        assert!(
            acquire_memory(layout(MIN_POOLED_BYTES + 32), 32).is_none(),
            "the outgrown block is larger by more than a quarter"
        );
        let (acquired, left) = acquire_memory(layout(2 * MIN_POOLED_BYTES), 32).unwrap();
        assert_eq!(left.size(), 2 * MIN_POOLED_BYTES);
        free(HeapBlock { data: acquired, layout: left });
        free(large);
    }

    #[test]
    fn exhausted_memory_is_an_error() {
        assert!(allocate(Layout::from_size_align(1 << 60, 8).unwrap(), 8).is_none());
        assert!(allocate_zeroed(Layout::from_size_align(1 << 45, 8).unwrap(), 8).is_none());
        let block = allocate(Layout::from_size_align(16, 8).unwrap(), 8).unwrap();
        let block = reallocate(block, 16, 1 << 60, 8).unwrap_err();
        assert_eq!(block.layout.size(), 16);
        free(block);
    }
}
