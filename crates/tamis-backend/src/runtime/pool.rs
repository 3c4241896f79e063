//! Memory blocks, kept for reuse when nobody needs them: fresh pages cost more than most kernels.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Blocks from this size on are kept; smaller ones are cheap to get.
const SMALLEST: usize = 64 << 10;

/// How much memory is kept for reuse, over all threads.
const KEEP: usize = 256 << 20;

/// Blocks from this size on are backed by large pages where the system has them.
const LARGE: usize = 2 << 20;

/// A block for an array that grows may be so many times larger than is needed now.
const GROWING: usize = 64;

/// Below this size the system is not asked how much memory is left.
const ASK: usize = 256 << 20;

/// Blocks that nobody uses, oldest first.
static KEPT: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// Memory of the global allocator with this layout, owned by whoever holds the block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) data: NonNull<u8>,
    pub(super) layout: Layout,
}

// SAFETY: a block owns its memory, which no other thread knows of.
unsafe impl Send for Block {}

/// Memory for `layout` (not of size 0), from a kept block whose size is a multiple of `unit` and at most twice what is
/// needed, or from the system. `None`: there is not so much.
pub(super) fn take(layout: Layout, unit: usize) -> Option<Block> {
    if layout.size() >= SMALLEST
        && let Some(block) = reuse(layout, unit)
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
    if layout.size() >= SMALLEST
        && let Some(block) = reuse(layout, unit)
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

/// The block with `size` bytes (which are more than it has), its contents kept; or the block as it was.
///
/// A kept block may be much larger, since whoever grows will grow again; or smaller, if it has the `least` bytes that are
/// needed now and some more, as what the last call made has that was cut to its length. Its size is a multiple of `unit`.
pub(super) fn enlarge(block: Block, size: usize, least: usize, unit: usize) -> Result<Block, Block> {
    let Ok(layout) = Layout::from_size_align(size, block.layout.align()) else { return Err(block) };
    if !available(size - block.layout.size().min(size)) {
        return Err(block);
    }
    if size >= SMALLEST
        && let Some(larger) = largest(layout, least.saturating_add(least / 4).max(block.layout.size()), unit)
    {
        // SAFETY: the kept block has at least as many bytes, and nobody else has it.
        unsafe { larger.data.copy_from_nonoverlapping(block.data, block.layout.size()) };
        give_back(block);
        return Ok(larger);
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
        Ok(mut kept) if (SMALLEST..=KEEP).contains(&block.layout.size()) => {
            kept.push(block);
            let mut total: usize = kept.iter().map(|block| block.layout.size()).sum();
            while total > KEEP {
                let oldest = kept.remove(0);
                total -= oldest.layout.size();
                unwanted.push(oldest);
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

fn reuse(layout: Layout, unit: usize) -> Option<Block> {
    let mut kept = KEPT.lock().ok()?;
    let fits = |block: &Block| {
        let size = block.layout.size();
        block.layout.align() == layout.align()
            && (layout.size()..=layout.size().saturating_mul(2)).contains(&size)
            && size.is_multiple_of(unit)
    };
    let at = kept.iter().rposition(fits)?;
    Some(kept.remove(at))
}

/// The largest kept block for an array that grows, with at least so many bytes.
fn largest(layout: Layout, least: usize, unit: usize) -> Option<Block> {
    let mut kept = KEPT.lock().ok()?;
    let sizes = least.max(SMALLEST)..=layout.size().saturating_mul(GROWING);
    let fits = |block: &Block| {
        let size = block.layout.size();
        block.layout.align() == layout.align() && sizes.contains(&size) && size.is_multiple_of(unit)
    };
    let fitting = kept.iter().enumerate().filter(|(_, block)| fits(block));
    let (at, _) = fitting.max_by_key(|(_, block)| block.layout.size())?;
    Some(kept.remove(at))
}

/// Whether the system says that this many bytes are left. When it says nothing, allocation will tell.
fn available(bytes: usize) -> bool {
    if bytes < ASK || !cfg!(target_os = "linux") {
        return true;
    }
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return true };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    kilobytes.is_none_or(|kilobytes| bytes / 1024 <= kilobytes)
}

fn prefer_large_pages(data: NonNull<u8>, bytes: usize) {
    if bytes < LARGE || !cfg!(target_os = "linux") {
        return;
    }
    let start = (data.as_ptr() as usize).next_multiple_of(4096);
    let end = (data.as_ptr() as usize + bytes) & !4095;
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
        let layout = Layout::from_size_align(SMALLEST + 4328, 8).unwrap();
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
        assert!(KEPT.lock().unwrap().iter().map(|block| block.layout.size()).sum::<usize>() <= KEEP);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        assert!(take(Layout::from_size_align(1 << 60, 8).unwrap(), 8).is_none());
        assert!(take_zeroed(Layout::from_size_align(1 << 45, 8).unwrap(), 8).is_none());
        let block = take(Layout::from_size_align(16, 8).unwrap(), 8).unwrap();
        let block = enlarge(block, 1 << 60, 1 << 60, 8).unwrap_err();
        assert_eq!(block.layout.size(), 16);
        give_back(block);
    }

    #[test]
    fn growth_takes_what_is_kept() {
        // A size and an alignment of its own, so that no other test takes the block in between.
        let large = Layout::from_size_align(40 * SMALLEST + 128, 128).unwrap();
        let block = take(large, 128).unwrap();
        let place = block.data;
        give_back(block);
        let small = take(Layout::from_size_align(128, 128).unwrap(), 128).unwrap();
        // SAFETY: the block has this many bytes.
        unsafe { small.data.write_bytes(7, 128) };
        let block = enlarge(small, SMALLEST, 256, 128).unwrap();
        assert_eq!((block.data, block.layout), (place, large));
        // SAFETY: these bytes were copied.
        assert!(unsafe { std::slice::from_raw_parts(place.as_ptr(), 128) }.iter().all(|byte| *byte == 7));
        give_back(block);
    }
}
