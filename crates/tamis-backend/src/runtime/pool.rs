//! Memory blocks, kept for reuse when nobody needs them: fresh pages cost more than most kernels.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Blocks from this size on are kept; smaller ones are cheap to get.
pub const MIN_POOLED_BYTES: usize = 64 << 10;

/// How much memory is kept for reuse, over all threads.
const KEEP: usize = 256 << 20;

/// This share of the machine's memory is kept beyond that, where the system can have it back at any time.
const SHARE: usize = 4;

/// Blocks from this size on are backed by large pages where the system has them.
const LARGE: usize = 2 << 20;

/// Below this size the system is not asked how much memory is left.
const ASK: usize = 256 << 20;

/// The largest block that kernels are given, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets how many bytes an array of a kernel may have; gives what the limit was before. A kernel that needs more fails, and
/// nothing else happens. There is no limit at first, but for the memory that the machine has.
///
/// ```
/// let before = tamis_backend::runtime::limit_arrays(1 << 30);
/// assert_eq!(tamis_backend::runtime::limit_arrays(before), 1 << 30);
/// ```
pub fn limit_arrays(bytes: usize) -> usize {
    LIMIT.swap(bytes, Ordering::Relaxed)
}

/// Blocks that nobody uses, oldest first.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Memory of the global allocator with this layout, owned by whoever holds the block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) data: NonNull<u8>,
    pub(super) layout: Layout,
}

/// A block that nobody uses.
#[derive(Debug)]
struct Kept {
    block: Block,
    /// The system may take its pages; what is written there first is lost then, and nothing else happens.
    lent: bool,
}

// SAFETY: a block owns its memory, which no other thread knows of.
unsafe impl Send for Block {}

/// What a kept block is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// An array whose size is known: the smallest block, and at most a quarter too large, which results may be.
    Known,
    /// An array that has grown and is likely to grow on: the block that was used last of all up to [`FURTHER`] times what
    /// is needed now, so that the array grows once into what the one of the last call was. A result that stays far
    /// smaller moves out of it.
    Growing,
}

/// How much larger than needed the block of a growing array may be.
const FURTHER: usize = 64;

/// Memory for `layout` (not of size 0), from a kept block whose size is a multiple of `unit` and at most a quarter more
/// than needed, or from the system. `None`: there is not so much.
pub(super) fn take(layout: Layout, unit: usize) -> Option<Block> {
    if layout.size() > LIMIT.load(Ordering::Relaxed) {
        return None;
    }
    if layout.size() >= MIN_POOLED_BYTES
        && let Some(block) = reuse(layout, unit, Purpose::Known)
    {
        return Some(block);
    }
    if layout.size() == 0 || !available(layout.size()) {
        return None;
    }
    // SAFETY: the layout has a size above zero.
    let data = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    prefer_large_pages(data, layout.size());
    Some(Block { data, layout })
}

/// Like [`take`], with all bytes zero.
pub(super) fn take_zeroed(layout: Layout, unit: usize) -> Option<Block> {
    if layout.size() > LIMIT.load(Ordering::Relaxed) {
        return None;
    }
    if layout.size() >= MIN_POOLED_BYTES
        && let Some(block) = reuse(layout, unit, Purpose::Known)
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
    prefer_large_pages(data, layout.size());
    Some(Block { data, layout })
}

/// The block with at least `size` bytes (which are more than it has) and a multiple of `unit`, its first `used` bytes kept;
/// or the block as it was.
///
/// Copying into a kept block costs less than the fresh pages that the rest of a larger one would need. Without one the
/// allocator moves large blocks by remapping their pages, so that nothing is copied.
pub(super) fn enlarge(block: Block, used: usize, size: usize, unit: usize) -> Result<Block, Block> {
    let Ok(layout) = Layout::from_size_align(size, block.layout.align()) else { return Err(block) };
    if size > LIMIT.load(Ordering::Relaxed) {
        return Err(block);
    }
    if size >= MIN_POOLED_BYTES
        && let Some(larger) = reuse(layout, unit, Purpose::Growing)
    {
        // SAFETY: both blocks have so many bytes, and nobody else knows of either.
        unsafe { larger.data.copy_from_nonoverlapping(block.data, used.min(block.layout.size())) };
        give_back(block);
        return Ok(larger);
    }
    if !available(size - block.layout.size().min(size)) {
        return Err(block);
    }
    // SAFETY: the block is of the global allocator with its layout, and the new size is valid and not zero.
    let data = unsafe { std::alloc::realloc(block.data.as_ptr(), block.layout, size) };
    let Some(data) = NonNull::new(data) else { return Err(block) };
    prefer_large_pages(data, size);
    Ok(Block { data, layout })
}

/// Takes back a block that nobody uses.
pub(super) fn give_back(block: Block) {
    let mut unwanted = Vec::new();
    match KEPT.lock() {
        Ok(mut kept) if (MIN_POOLED_BYTES..=most()).contains(&block.layout.size()) => {
            kept.push(Kept { block, lent: false });
            let size = |kept: &Kept| kept.block.layout.size();
            let mut total: usize = kept.iter().map(size).sum();
            while total > most() {
                let oldest = kept.remove(0);
                total -= size(&oldest);
                unwanted.push(oldest.block);
            }
            let mut ours: usize = kept.iter().filter(|kept| !kept.lent).map(size).sum();
            for oldest in kept.iter_mut().filter(|kept| !kept.lent) {
                if ours <= KEEP {
                    break;
                }
                ours -= size(oldest);
                oldest.lent = true;
                lend(&oldest.block);
            }
        }
        _ => unwanted.push(block),
    }
    // Freeing takes time that other threads need not wait for: the lock is gone by now.
    for block in unwanted {
        // SAFETY: the block is of the global allocator with its layout, and nobody uses it.
        unsafe { std::alloc::dealloc(block.data.as_ptr(), block.layout) };
    }
}

/// How much memory is kept in all.
fn most() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| KEEP.max(if CAN_LEND { kilobytes("MemTotal:").map_or(0, |n| n / SHARE * 1024) } else { 0 }))
}

/// Whether pages can be lent to the system.
const CAN_LEND: bool = cfg!(target_os = "linux");

/// Says that the system may have the pages of a block if it needs memory. Until then they are there without a fault.
fn lend(block: &Block) {
    let (start, end) = pages(block.data, block.layout.size());
    if end > start {
        // SAFETY: the pages lie within a block that nobody uses, whose contents do not matter.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_FREE)
        };
    }
}

/// The pages that lie within some bytes.
fn pages(data: NonNull<u8>, bytes: usize) -> (usize, usize) {
    ((data.as_ptr() as usize).next_multiple_of(PAGE), (data.as_ptr() as usize + bytes) & !(PAGE - 1))
}

/// A multiple of the size of a page on all machines that run this.
const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// Takes memory of the global allocator that nobody uses: it is kept for the arrays of kernels, or freed.
///
/// # Safety
/// The memory was allocated with this layout, whose size is not 0, and nobody uses it.
pub unsafe fn release_memory(data: NonNull<u8>, layout: Layout) {
    give_back(Block { data, layout });
}

/// Memory that was kept, for a layout and up to a quarter more, a multiple of `unit` bytes long; it belongs to the caller.
pub fn acquire_memory(layout: Layout, unit: usize) -> Option<(NonNull<u8>, Layout)> {
    let wanted = layout.size() >= MIN_POOLED_BYTES && unit > 0;
    wanted.then(|| reuse(layout, unit, Purpose::Known)).flatten().map(|block| (block.data, block.layout))
}

/// A kept block for a purpose.
fn reuse(layout: Layout, unit: usize, purpose: Purpose) -> Option<Block> {
    let mut kept = KEPT.lock().ok()?;
    let most = match purpose {
        Purpose::Known => layout.size().saturating_add(layout.size() / 4),
        Purpose::Growing => layout.size().saturating_mul(FURTHER),
    };
    let sizes = layout.size()..=most.min(LIMIT.load(Ordering::Relaxed));
    let fits = |Kept { block, .. }: &Kept| {
        let size = block.layout.size();
        block.layout.align() == layout.align() && sizes.contains(&size) && size.is_multiple_of(unit)
    };
    let at = match purpose {
        Purpose::Known => {
            let fitting = kept.iter().enumerate().rev().filter(|(_, kept)| fits(kept));
            fitting.min_by_key(|(_, kept)| kept.block.layout.size())?.0
        }
        Purpose::Growing => kept.iter().rposition(fits)?,
    };
    Some(kept.remove(at).block)
}

/// Whether the system says that this many bytes are left. When it says nothing, allocation will tell.
fn available(bytes: usize) -> bool {
    if bytes < ASK || !cfg!(target_os = "linux") {
        return true;
    }
    kilobytes("MemAvailable:").is_none_or(|kilobytes| bytes / 1024 <= kilobytes)
}

/// What the system says about memory.
fn kilobytes(what: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn prefer_large_pages(data: NonNull<u8>, bytes: usize) {
    if bytes < LARGE || !cfg!(target_os = "linux") {
        return;
    }
    let (start, end) = pages(data, bytes);
    if end > start {
        // SAFETY: the range lies within memory that was just allocated; the advice does not change its contents, and
        // failure leaves everything as it was.
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
    fn blocks_are_used_again() {
        // A size of its own, so that no other test takes the block in between.
        let layout = Layout::from_size_align(MIN_POOLED_BYTES + 4328, 8).unwrap();
        let block = take(layout, 8).unwrap();
        // SAFETY: the block has this many bytes.
        unsafe { block.data.write_bytes(7, layout.size()) };
        let place = block.data;
        give_back(block);
        let block = take_zeroed(layout, 8).unwrap();
        assert_eq!(block.data, place);
        // SAFETY: the block has this many initialised bytes.
        assert!(unsafe { std::slice::from_raw_parts(place.as_ptr(), layout.size()) }.iter().all(|byte| *byte == 0));
        give_back(block);
        for _ in 0..6 {
            give_back(take(Layout::from_size_align(KEEP / 4, 8).unwrap(), 8).unwrap());
        }
        let kept = KEPT.lock().unwrap();
        assert!(kept.iter().map(|kept| kept.block.layout.size()).sum::<usize>() <= most());
        assert!(kept.iter().filter(|kept| !kept.lent).map(|kept| kept.block.layout.size()).sum::<usize>() <= KEEP);
    }

    /// What the system may have, it gives back: with what was written, or without, and zeroed where that was asked for.
    #[test]
    fn lent_blocks_are_whole_again() {
        // An alignment of its own, so that no other test takes the blocks in between.
        let layout = Layout::from_size_align(KEEP / 2 + 4096, 1 << 14).unwrap();
        let blocks: Vec<Block> = (0..3).filter_map(|_| take(layout, 1)).collect();
        for block in blocks {
            // SAFETY: the block has so many bytes.
            unsafe { block.data.write_bytes(9, 1 << 20) };
            give_back(block);
        }
        let block = take_zeroed(layout, 1).unwrap();
        // SAFETY: the block has so many initialised bytes.
        assert!(unsafe { std::slice::from_raw_parts(block.data.as_ptr(), 1 << 20) }.iter().all(|byte| *byte == 0));
        give_back(block);
    }

    #[test]
    fn growing_takes_what_was_freed() {
        // An alignment of its own, so that no other test takes the blocks in between.
        let layout = |size| Layout::from_size_align(size, 32).unwrap();
        let kept = take(layout(160 * MIN_POOLED_BYTES), 32).unwrap();
        let place = kept.data;
        give_back(kept);
        let small = take(layout(MIN_POOLED_BYTES), 32).unwrap();
        // SAFETY: the block has this many bytes.
        unsafe { small.data.write_bytes(7, MIN_POOLED_BYTES) };
        // Far smaller: it moves elsewhere.
        let small = enlarge(small, MIN_POOLED_BYTES, 2 * MIN_POOLED_BYTES, 32).unwrap();
        assert_ne!(small.data, place);
        let large = enlarge(small, MIN_POOLED_BYTES, 4 * MIN_POOLED_BYTES, 32).unwrap();
        assert_eq!((large.data, large.layout), (place, layout(160 * MIN_POOLED_BYTES)));
        // SAFETY: so many bytes were written.
        assert!(unsafe { std::slice::from_raw_parts(place.as_ptr(), MIN_POOLED_BYTES) }.iter().all(|byte| *byte == 7));
        assert!(
            acquire_memory(layout(MIN_POOLED_BYTES + 32), 32).is_none(),
            "what was grown out of is larger by more than a quarter"
        );
        let (data, left) = acquire_memory(layout(2 * MIN_POOLED_BYTES), 32).unwrap();
        assert_eq!(left.size(), 2 * MIN_POOLED_BYTES);
        give_back(Block { data, layout: left });
        give_back(large);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        assert!(take(Layout::from_size_align(1 << 60, 8).unwrap(), 8).is_none());
        assert!(take_zeroed(Layout::from_size_align(1 << 45, 8).unwrap(), 8).is_none());
        let block = take(Layout::from_size_align(16, 8).unwrap(), 8).unwrap();
        let block = enlarge(block, 16, 1 << 60, 8).unwrap_err();
        assert_eq!(block.layout.size(), 16);
        give_back(block);
    }
}
