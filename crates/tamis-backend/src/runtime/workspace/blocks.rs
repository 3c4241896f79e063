//! Lists of entries in blocks, all from a few slabs: a list grows without moving, and blocks that are free are used again.

use super::engine::prefetch;
use crate::runtime::typed::{OutOfMemory, Room};

/// An entry on its way: packed coordinates, and a value.
#[derive(Clone, Copy)]
pub(super) struct Entry<K, T> {
    pub(super) key: K,
    pub(super) value: T,
}

/// So many entries are in a block: a page, mostly.
pub(super) const BLOCK: usize = 256;

/// The blocks of the first slab; later ones have a share of all before, so that there are few, and little is made in vain.
const FIRST: usize = 16;

/// No block.
const NONE: u32 = u32::MAX;

/// Where blocks come from.
pub(super) struct Blocks<E: Copy> {
    slabs: Vec<Room<E>>,
    /// Where each block is, and which one follows it in its list.
    places: Vec<*mut E>,
    next: Vec<u32>,
    /// Of those, so many have been given out since the last reset.
    used: usize,
    free: Vec<u32>,
}

// SAFETY: the places are in the slabs, which belong to the blocks.
unsafe impl<E: Copy + Send> Send for Blocks<E> {}

/// A list of blocks, of which all but the last are full.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
    blocks: u32,
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain { head: NONE, tail: NONE, blocks: 0 };

    /// How many entries it has if its last block is full.
    pub(super) fn len_in_full_blocks(&self) -> usize {
        self.blocks as usize * BLOCK
    }
}

/// Where the next entry of a chain goes, and where its last block ends; both null while there is no block.
#[derive(Clone, Copy)]
pub(super) struct Cursor<E> {
    pub(super) at: *mut E,
    pub(super) end: *mut E,
}

impl<E> Cursor<E> {
    pub(super) const NONE: Cursor<E> = Cursor { at: std::ptr::null_mut(), end: std::ptr::null_mut() };
}

/// Entries that lie side by side.
#[derive(Clone, Copy)]
pub(super) struct Piece<E> {
    pub(super) first: *const E,
    pub(super) len: usize,
}

impl<E: Copy> Blocks<E> {
    pub(super) fn new() -> Blocks<E> {
        Blocks { slabs: Vec::new(), places: Vec::new(), next: Vec::new(), used: 0, free: Vec::new() }
    }

    /// Forgets all lists; their memory stays.
    pub(super) fn reset(&mut self) {
        self.used = 0;
        self.free.clear();
    }

    /// How many blocks are in lists.
    pub(super) fn in_use(&self) -> usize {
        self.used - self.free.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.slabs.iter().map(Room::bytes).sum::<u64>() + (self.places.len() * 12) as u64
    }

    fn take(&mut self) -> Result<u32, OutOfMemory> {
        if let Some(block) = self.free.pop() {
            return Ok(block);
        }
        if self.used == self.places.len() {
            self.slab()?;
        }
        self.used += 1;
        Ok((self.used - 1) as u32)
    }

    #[cold]
    fn slab(&mut self) -> Result<(), OutOfMemory> {
        let known = self.places.len();
        let mut blocks = FIRST.max(known / 4);
        let mut slab = Room::<E>::new();
        // Where there is not so much left, what is needed now may still be there.
        while let Err(shortage) = slab.make(blocks * BLOCK) {
            if blocks <= 1 {
                return Err(shortage);
            }
            blocks = (blocks / 4).max(1);
        }
        let shortage = OutOfMemory { elements: ((known + blocks) * BLOCK) as u64 };
        if known + blocks >= NONE as usize {
            return Err(shortage);
        }
        self.places.try_reserve(blocks).map_err(|_| shortage)?;
        self.next.try_reserve(blocks).map_err(|_| shortage)?;
        // SAFETY: the slab has room for so many blocks.
        self.places.extend((0..blocks).map(|block| unsafe { slab.pointer().add(block * BLOCK) }));
        self.next.resize(known + blocks, NONE);
        self.slabs.push(slab);
        Ok(())
    }

    /// Appends an empty block to a chain whose last block is full.
    pub(super) fn extend(&mut self, chain: &mut Chain) -> Result<Cursor<E>, OutOfMemory> {
        let block = self.take()?;
        self.next[block as usize] = NONE;
        match chain.blocks {
            0 => chain.head = block,
            _ => self.next[chain.tail as usize] = block,
        }
        chain.tail = block;
        chain.blocks += 1;
        let at = self.places[block as usize];
        // SAFETY: a block has room for so many entries.
        Ok(Cursor { at, end: unsafe { at.add(BLOCK) } })
    }

    /// How many entries a chain has.
    pub(super) fn len(&self, chain: &Chain, cursor: &Cursor<E>) -> usize {
        // SAFETY: both are in the last block, or null.
        let left = unsafe { cursor.end.offset_from(cursor.at) } as usize;
        chain.blocks as usize * BLOCK - left
    }

    /// Where the entries of a chain are, in their order.
    pub(super) fn pieces(&self, chain: &Chain, cursor: &Cursor<E>, pieces: &mut Vec<Piece<E>>) {
        pieces.clear();
        let (mut block, mut left) = (chain.head, self.len(chain, cursor));
        while left > 0 {
            let (first, len) = (self.places[block as usize].cast_const(), left.min(BLOCK));
            match pieces.last_mut() {
                Some(before) if before.first.wrapping_add(before.len) == first => before.len += len,
                _ => pieces.push(Piece { first, len }),
            }
            left -= len;
            block = self.next[block as usize];
        }
    }

    /// Asks for the first block of a chain, if there is one.
    pub(super) fn prefetch(&self, chain: &Chain) {
        if let Some(place) = self.places.get(chain.head as usize) {
            for k in (0..BLOCK).step_by((64 / size_of::<E>()).max(1)) {
                prefetch(place.wrapping_add(k));
            }
        }
    }

    /// Frees the blocks of a chain.
    pub(super) fn clear(&mut self, chain: &mut Chain, cursor: &mut Cursor<E>) {
        let mut block = chain.head;
        for _ in 0..chain.blocks {
            self.free.push(block);
            block = self.next[block as usize];
        }
        (*chain, *cursor) = (Chain::EMPTY, Cursor::NONE);
    }
}
