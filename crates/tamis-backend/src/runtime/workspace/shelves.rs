//! Where entries wait to be combined: on shelves by the highest bits of their keys, in the order in which they came.
//!
//! A shelf is a list of entries, of which the first ones may have been combined already: in order, each key once. What comes
//! later is appended, and when a shelf has a few times as many as were left it is combined anew. So each entry is combined
//! once or twice, whatever the size of the accumulation array; where entries meet, memory is proportional to those
//! that are left; and values of one key are always folded in the order in which they came.
//!
//! At first there is one shelf. There are many once entries would not stay in the caches.

use super::Stop;
use super::blocks::{BLOCK, Blocks, Chain, Cursor, Entry, Piece};
use super::combine::{Combiner, Out};
use super::engine::prefetch_to_write;
use super::key::{Key, Packing};
use super::merge::Fold;
use super::policy::Lane;
use crate::runtime::typed::{OutOfMemory, Room};

/// So many entries are on one shelf before there are many.
pub(super) const SPLIT: usize = 1 << 16;

/// There are up to two to the power of this many shelves: about as many lists as can be written to at once.
const MOST: u32 = 11;

/// Keys of one shelf differ in no fewer low bits.
const FINE: u32 = 16;

/// So many places after the one that is written, memory is asked for.
const AHEAD: usize = 8;

/// While there are fewer entries on all shelves, none is combined: that would save little. (Tests are not that patient.)
const BUDGET: usize = if cfg!(test) { 1 << 18 } else { 1 << 24 };

/// A shelf is not combined before it has so many entries.
const LEAST: usize = 1 << 14;

/// It is combined anew when it has so many times as many as were left.
const GROWTH: usize = 5;

/// Entries on shelves.
pub(super) struct Shelves<K: Key, T: Copy> {
    blocks: Blocks<Entry<K, T>>,
    /// Where the next entry of each shelf goes. As many as there are chains, a power of two.
    cursors: Vec<Cursor<Entry<K, T>>>,
    chains: Vec<Shelf>,
    /// The lowest bit that says which shelf a key belongs to.
    shift: u32,
    /// What combined entries are written to before they are put back.
    keys: Room<K>,
    values: Room<T>,
    pieces: Vec<Piece<Entry<K, T>>>,
    /// How many entries have been combined.
    combined: u64,
}

// SAFETY: cursors and pieces point into the blocks, which are the shelves' own.
unsafe impl<K: Key, T: Copy + Send> Send for Shelves<K, T> {}

#[derive(Clone, Copy)]
struct Shelf {
    chain: Chain,
    /// It is combined when it has so many entries.
    limit: usize,
}

impl<K: Key, T: Copy + Send + 'static> Shelves<K, T> {
    pub(super) fn new() -> Shelves<K, T> {
        Shelves {
            blocks: Blocks::new(),
            cursors: vec![Cursor::NONE],
            chains: vec![Shelf { chain: Chain::EMPTY, limit: usize::MAX }],
            shift: 0,
            keys: Room::new(),
            values: Room::new(),
            pieces: Vec::new(),
            combined: 0,
        }
    }

    /// Forgets all entries.
    pub(super) fn reset(&mut self) {
        self.blocks.reset();
        self.cursors.truncate(1);
        self.chains.truncate(1);
        self.cursors[0] = Cursor::NONE;
        self.chains[0] = Shelf { chain: Chain::EMPTY, limit: usize::MAX };
        self.shift = 0;
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.chains.iter().zip(&self.cursors).map(|(shelf, cursor)| self.blocks.len(&shelf.chain, cursor)).sum()
    }

    /// Whether there is more than one shelf.
    pub(super) fn split(&self) -> bool {
        self.chains.len() > 1
    }

    /// How many entries have been combined since this was asked last.
    pub(super) fn take_combined(&mut self) -> u64 {
        std::mem::take(&mut self.combined)
    }

    pub(super) fn bytes(&self) -> u64 {
        let tables = self.cursors.len() * (size_of::<Cursor<Entry<K, T>>>() + size_of::<Shelf>());
        self.blocks.bytes() + self.keys.bytes() + self.values.bytes() + tables as u64
    }

    /// Puts entries of an accumulation array onto their shelves.
    ///
    /// # Safety
    /// The lanes and the values have so many elements.
    pub(super) unsafe fn put<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        packing: &Packing,
        (lanes, values, count): (&[Lane], *const T, usize),
    ) -> Result<(), Stop> {
        if !self.split() && self.len() + count > SPLIT {
            self.spread(combiner, packing)?;
        }
        let (shift, mask, bits) = (self.shift, self.chains.len() - 1, self.bits(packing.total));
        // SAFETY: promised by the caller; shelves are chosen among those there are, and cursors that are not at the end
        // of their block point to a place in it.
        unsafe {
            packing.pack::<K>(lanes, count, |start, keys| {
                let mut k = 0;
                while k < keys.len() {
                    let number = keys[k].digit(shift) & mask;
                    if self.cursors[number].at == self.cursors[number].end {
                        self.extend(combiner, fold, number, bits)?;
                    }
                    let Cursor { mut at, end } = self.cursors[number];
                    prefetch_to_write(at.wrapping_add(AHEAD));
                    // Mostly some in a row have the same shelf: the place in memory is not waited for.
                    loop {
                        at.write(Entry { key: keys[k], value: values.add(start + k).read() });
                        at = at.add(1);
                        k += 1;
                        if at == end || k == keys.len() || keys[k].digit(shift) & mask != number {
                            break;
                        }
                    }
                    self.cursors[number].at = at;
                }
                Ok(())
            })
        }
    }

    /// Puts one entry onto the only shelf.
    pub(super) fn append(&mut self, key: K, value: T) -> Result<(), OutOfMemory> {
        if self.cursors[0].at == self.cursors[0].end {
            self.cursors[0] = self.blocks.extend(&mut self.chains[0].chain)?;
        }
        // SAFETY: a cursor that is not at the end of its block points to a place in it.
        unsafe {
            self.cursors[0].at.write(Entry { key, value });
            self.cursors[0].at = self.cursors[0].at.add(1);
        }
        Ok(())
    }

    /// The entries of the only shelf.
    pub(super) fn all(&mut self) -> &[Piece<Entry<K, T>>] {
        self.blocks.pieces(&self.chains[0].chain, &self.cursors[0], &mut self.pieces);
        &self.pieces
    }

    /// In how many low bits keys of one shelf differ.
    fn bits(&self, total: u32) -> u32 {
        if self.split() { self.shift } else { total }
    }

    /// Room for another entry on a shelf whose last block is full.
    #[cold]
    fn extend<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        number: usize,
        bits: u32,
    ) -> Result<(), OutOfMemory> {
        let Shelf { chain, limit } = &self.chains[number];
        if chain.len_in_full_blocks() >= *limit && self.blocks.in_use() >= BUDGET / BLOCK {
            self.compact(combiner, fold, number, bits)?;
            if self.cursors[number].at != self.cursors[number].end {
                return Ok(());
            }
        }
        self.cursors[number] = self.blocks.extend(&mut self.chains[number].chain)?;
        Ok(())
    }

    /// Combines the entries of a shelf.
    fn compact<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        number: usize,
        bits: u32,
    ) -> Result<(), OutOfMemory> {
        let (chain, cursor) = (&mut self.chains[number].chain, &mut self.cursors[number]);
        let before = self.blocks.len(chain, cursor);
        self.keys.make(before)?;
        self.values.make(before)?;
        self.blocks.pieces(chain, cursor, &mut self.pieces);
        let out = Out { keys: self.keys.pointer(), values: self.values.pointer() };
        // SAFETY: the pieces are those of the shelf, and there is room for as many entries.
        let after = unsafe { combiner.combine(fold, &self.pieces, bits, out)? };
        self.combined += before as u64;
        self.blocks.clear(chain, cursor);
        for start in (0..after).step_by(BLOCK) {
            *cursor = self.blocks.extend(chain)?;
            let len = BLOCK.min(after - start);
            // SAFETY: so many were written, and a block has room for them.
            unsafe {
                for k in start..start + len {
                    let entry = Entry { key: out.keys.add(k).read(), value: out.values.add(k).read() };
                    cursor.at.add(k - start).write(entry);
                }
                cursor.at = cursor.at.add(len);
            }
        }
        self.chains[number].limit = LEAST.max(after.saturating_mul(GROWTH));
        Ok(())
    }

    /// Makes many shelves of one.
    #[cold]
    fn spread(&mut self, combiner: &mut Combiner<K, T>, packing: &Packing) -> Result<(), Stop> {
        let total = packing.total;
        let ways = total.saturating_sub(FINE).clamp(4, MOST).min(total);
        if ways == 0 || !K::DIGITS {
            // Nothing to tell shelves apart by: it is combined now and then.
            if self.chains[0].limit == usize::MAX {
                self.chains[0].limit = SPLIT;
            }
            return Ok(());
        }
        self.blocks.pieces(&self.chains[0].chain, &self.cursors[0], &mut self.pieces);
        combiner.expect(SPLIT, packing.inner());
        let shelf = Shelf { chain: Chain::EMPTY, limit: LEAST };
        let entries: Vec<Piece<Entry<K, T>>> = std::mem::take(&mut self.pieces);
        let mut old = std::mem::replace(&mut self.chains[0], shelf);
        let mut old_cursor = std::mem::replace(&mut self.cursors[0], Cursor::NONE);
        self.chains.resize(1 << ways, shelf);
        self.cursors.resize(1 << ways, Cursor::NONE);
        self.shift = total - ways;
        for piece in &entries {
            for k in 0..piece.len {
                // SAFETY: the pieces are those of the old shelf, whose blocks are not free yet.
                let entry = unsafe { piece.first.add(k).read() };
                let number = entry.key.digit(self.shift) & ((1 << ways) - 1);
                if self.cursors[number].at == self.cursors[number].end {
                    self.cursors[number] = self.blocks.extend(&mut self.chains[number].chain)?;
                }
                // SAFETY: a cursor that is not at the end of its block points to a place in it.
                unsafe {
                    self.cursors[number].at.write(entry);
                    self.cursors[number].at = self.cursors[number].at.add(1);
                }
            }
        }
        self.pieces = entries;
        self.blocks.clear(&mut old.chain, &mut old_cursor);
        Ok(())
    }

    /// Combines the entries of all shelves, one after the other: `room` is asked for room for so many values after those that
    /// are there, and `take` is given the keys and told how many there are before.
    pub(super) fn empty<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        packing: &Packing,
        mut room: impl FnMut(usize, usize) -> Result<*mut T, OutOfMemory>,
        mut take: impl FnMut(usize, &[K]),
    ) -> Result<usize, Stop> {
        let (mut done, bits) = (0, self.bits(packing.total));
        let total = self.len();
        combiner.expect(total, packing.inner());
        // There are no more than that, and what is not needed is not touched; if there is less memory, there may still be
        // enough.
        let _ = room(0, total);
        for number in 0..self.chains.len() {
            let (chain, cursor) = (&self.chains[number].chain, &self.cursors[number]);
            let before = self.blocks.len(chain, cursor);
            if before == 0 {
                continue;
            }
            self.keys.make(before)?;
            self.blocks.pieces(chain, cursor, &mut self.pieces);
            let values = room(done, before)?;
            let out = Out { keys: self.keys.pointer(), values };
            if let Some(next) = self.chains.get(number + 1) {
                self.blocks.prefetch(&next.chain);
            }
            // SAFETY: the pieces are those of the shelf, and there is room for as many entries.
            let after = unsafe { combiner.combine(fold, &self.pieces, bits, out)? };
            self.combined += before as u64;
            // SAFETY: so many were written.
            take(done, unsafe { self.keys.written(after) });
            done += after;
        }
        self.reset();
        Ok(done)
    }
}
