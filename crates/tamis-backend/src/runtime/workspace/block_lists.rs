//! Unrolled linked lists: lists of fixed-size blocks from a slab arena, with a free list.
//!
//! A list grows without moving its entries. Cleared lists return their blocks to the free list.

use super::engine::prefetch;
use crate::runtime::scratch::{OutOfMemory, ScratchVec};

/// A workspace entry outside of the accumulation array: packed coordinates, and a value.
#[derive(Clone, Copy)]
pub(super) struct KeyedValue<K, T> {
    pub(super) key: K,
    pub(super) value: T,
}

/// Entries per block: about a page.
pub(super) const BLOCK: usize = 256;

/// Blocks of the first slab. Later slabs have a quarter of all blocks before, so that there are few
/// slabs and little unused memory.
const FIRST_SLAB_BLOCKS: usize = 16;

/// The null block id.
const NONE: u32 = u32::MAX;

/// The arena that allocates blocks.
pub(super) struct BlockArena<E: Copy> {
    slabs: Vec<ScratchVec<E>>,
    /// The address of each block, and the next block in its list.
    addresses: Vec<*mut E>,
    next: Vec<u32>,
    /// The number of blocks allocated since the last reset.
    used: usize,
    free: Vec<u32>,
}

// SAFETY: the addresses point into the slabs, which the arena owns.
unsafe impl<E: Copy + Send> Send for BlockArena<E> {}

/// A list of blocks, all full but the last.
#[derive(Clone, Copy)]
pub(super) struct BlockList {
    head: u32,
    tail: u32,
    blocks: u32,
}

impl BlockList {
    pub(super) const EMPTY: BlockList = BlockList { head: NONE, tail: NONE, blocks: 0 };

    /// The number of entries if the last block is full.
    pub(super) fn len_in_full_blocks(&self) -> usize {
        self.blocks as usize * BLOCK
    }
}

/// The position of the next entry of a list, and the end of its last block; both null while the
/// list is empty.
#[derive(Clone, Copy)]
pub(super) struct AppendCursor<E> {
    pub(super) next: *mut E,
    pub(super) end: *mut E,
}

impl<E> AppendCursor<E> {
    pub(super) const NONE: AppendCursor<E> = AppendCursor { next: std::ptr::null_mut(), end: std::ptr::null_mut() };
}

/// A contiguous run of entries.
#[derive(Clone, Copy)]
pub(super) struct EntryRun<E> {
    pub(super) first: *const E,
    pub(super) len: usize,
}

impl<E: Copy> BlockArena<E> {
    pub(super) fn new() -> BlockArena<E> {
        BlockArena { slabs: Vec::new(), addresses: Vec::new(), next: Vec::new(), used: 0, free: Vec::new() }
    }

    /// Clears all lists, and keeps their memory.
    pub(super) fn reset(&mut self) {
        self.used = 0;
        self.free.clear();
    }

    /// The number of blocks in lists.
    pub(super) fn in_use(&self) -> usize {
        self.used - self.free.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.slabs.iter().map(ScratchVec::bytes).sum::<u64>() + (self.addresses.len() * 12) as u64
    }

    fn allocate(&mut self) -> Result<u32, OutOfMemory> {
        if let Some(block) = self.free.pop() {
            return Ok(block);
        }
        if self.used == self.addresses.len() {
            self.add_slab()?;
        }
        self.used += 1;
        Ok((self.used - 1) as u32)
    }

    #[cold]
    fn add_slab(&mut self) -> Result<(), OutOfMemory> {
        let existing = self.addresses.len();
        let mut blocks = FIRST_SLAB_BLOCKS.max(existing / 4);
        let mut slab = ScratchVec::<E>::new();
        // If memory is short, a smaller slab may still fit.
        while let Err(out_of_memory) = slab.reserve(blocks * BLOCK) {
            if blocks <= 1 {
                return Err(out_of_memory);
            }
            blocks = (blocks / 4).max(1);
        }
        let out_of_memory = OutOfMemory { elements: ((existing + blocks) * BLOCK) as u64 };
        if existing + blocks >= NONE as usize {
            return Err(out_of_memory);
        }
        self.addresses.try_reserve(blocks).map_err(|_| out_of_memory)?;
        self.next.try_reserve(blocks).map_err(|_| out_of_memory)?;
        // SAFETY: the slab has the capacity of these blocks.
        self.addresses.extend((0..blocks).map(|block| unsafe { slab.as_ptr().add(block * BLOCK) }));
        self.next.resize(existing + blocks, NONE);
        self.slabs.push(slab);
        Ok(())
    }

    /// Appends an empty block to a list whose last block is full.
    pub(super) fn extend(&mut self, list: &mut BlockList) -> Result<AppendCursor<E>, OutOfMemory> {
        let block = self.allocate()?;
        self.next[block as usize] = NONE;
        match list.blocks {
            0 => list.head = block,
            _ => self.next[list.tail as usize] = block,
        }
        list.tail = block;
        list.blocks += 1;
        let at = self.addresses[block as usize];
        // SAFETY: a block has `BLOCK` entries.
        Ok(AppendCursor { next: at, end: unsafe { at.add(BLOCK) } })
    }

    /// The number of entries of a list.
    pub(super) fn len(&self, list: &BlockList, cursor: &AppendCursor<E>) -> usize {
        // SAFETY: both are in the last block, or null.
        let left = unsafe { cursor.end.offset_from(cursor.next) } as usize;
        list.blocks as usize * BLOCK - left
    }

    /// Collects the contiguous runs of a list, in order.
    pub(super) fn runs(&self, list: &BlockList, cursor: &AppendCursor<E>, runs: &mut Vec<EntryRun<E>>) {
        runs.clear();
        let (mut block, mut left) = (list.head, self.len(list, cursor));
        while left > 0 {
            let (first, len) = (self.addresses[block as usize].cast_const(), left.min(BLOCK));
            match runs.last_mut() {
                Some(before) if before.first.wrapping_add(before.len) == first => before.len += len,
                _ => runs.push(EntryRun { first, len }),
            }
            left -= len;
            block = self.next[block as usize];
        }
    }

    /// Prefetches the first block of a list, if there is one.
    pub(super) fn prefetch(&self, list: &BlockList) {
        if let Some(address) = self.addresses.get(list.head as usize) {
            for k in (0..BLOCK).step_by((64 / size_of::<E>()).max(1)) {
                prefetch(address.wrapping_add(k));
            }
        }
    }

    /// Returns the blocks of a list to the free list.
    pub(super) fn clear(&mut self, list: &mut BlockList, cursor: &mut AppendCursor<E>) {
        let mut block = list.head;
        for _ in 0..list.blocks {
            self.free.push(block);
            block = self.next[block as usize];
        }
        (*list, *cursor) = (BlockList::EMPTY, AppendCursor::NONE);
    }
}
