//! Radix partitions: flushed entries in insertion order, partitioned by the highest bits of their
//! keys.
//!
//! A partition is a list of entries, of which a prefix may have been combined already: in key
//! order, each key once. New entries are appended. When a partition has grown to a few times its
//! size after the last combining, it is combined again. Each entry is thus combined once or twice,
//! whatever the capacity of the accumulation array. Memory is proportional to the distinct entries
//! where many are equal. Values of one key are always folded in insertion order.
//!
//! There is one partition at first. It is split when its entries no longer fit the caches.

use super::WorkspaceError;
use super::block_lists::{AppendCursor, BLOCK, BlockArena, BlockList, EntryRun, KeyedValue};
use super::combine::{CombinedOutput, Combiner};
use super::engine::prefetch_to_write;
use super::merge_op::Fold;
use super::packed_key::{Packing, SortKey};
use super::policy::CoordArray;
use crate::runtime::scratch::{OutOfMemory, ScratchVec};

/// Number of entries at which the first partition is split.
pub(super) const SPLIT_ENTRIES: usize = 1 << 16;

/// Maximum binary logarithm of the number of partitions: about as many streams as can be written at
/// once.
const MAX_PARTITION_BITS: u32 = 11;

/// Minimum number of low bits in which keys of one partition may differ.
const MIN_LOW_BITS: u32 = 16;

/// Prefetch distance of writes, in entries.
const PREFETCH_DISTANCE: usize = 8;

/// No partition is combined early while all partitions together have fewer entries: that would save
/// little memory. (Tests use a smaller value.)
const MIN_TOTAL_ENTRIES: usize = if cfg!(test) { 1 << 18 } else { 1 << 24 };

/// Minimum number of entries of a partition that is combined early.
const MIN_COMBINED_ENTRIES: usize = 1 << 14;

/// A partition is combined again when it has this many times its entries after the last combining.
const GROWTH: usize = 5;

/// All partitions of a workspace.
pub(super) struct Partitions<K: SortKey, T: Copy> {
    blocks: BlockArena<KeyedValue<K, T>>,
    /// The append position of each partition; their number is a power of two.
    cursors: Vec<AppendCursor<KeyedValue<K, T>>>,
    partitions: Vec<Partition>,
    /// The lowest bit of the partition number in a key.
    shift: u32,
    /// Scratch memory for combined entries.
    keys: ScratchVec<K>,
    values: ScratchVec<T>,
    runs: Vec<EntryRun<KeyedValue<K, T>>>,
    /// The number of entries that have been combined.
    combined: u64,
}

// SAFETY: cursors and runs point into the blocks, which the partitions own.
unsafe impl<K: SortKey, T: Copy + Send> Send for Partitions<K, T> {}

#[derive(Clone, Copy)]
struct Partition {
    list: BlockList,
    /// The number of entries at which it is combined.
    limit: usize,
}

impl<K: SortKey, T: Copy + Send + 'static> Partitions<K, T> {
    pub(super) fn new() -> Partitions<K, T> {
        Partitions {
            blocks: BlockArena::new(),
            cursors: vec![AppendCursor::NONE],
            partitions: vec![Partition { list: BlockList::EMPTY, limit: usize::MAX }],
            shift: 0,
            keys: ScratchVec::new(),
            values: ScratchVec::new(),
            runs: Vec::new(),
            combined: 0,
        }
    }

    /// Removes all entries.
    pub(super) fn reset(&mut self) {
        self.blocks.reset();
        self.cursors.truncate(1);
        self.partitions.truncate(1);
        self.cursors[0] = AppendCursor::NONE;
        self.partitions[0] = Partition { list: BlockList::EMPTY, limit: usize::MAX };
        self.shift = 0;
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.partitions
            .iter()
            .zip(&self.cursors)
            .map(|(partition, cursor)| self.blocks.len(&partition.list, cursor))
            .sum()
    }

    /// True if there is more than one partition.
    pub(super) fn is_split(&self) -> bool {
        self.partitions.len() > 1
    }

    /// Returns and resets the number of entries combined since the last call.
    pub(super) fn take_combined(&mut self) -> u64 {
        std::mem::take(&mut self.combined)
    }

    pub(super) fn bytes(&self) -> u64 {
        let tables = self.cursors.len() * (size_of::<AppendCursor<KeyedValue<K, T>>>() + size_of::<Partition>());
        self.blocks.bytes() + self.keys.bytes() + self.values.bytes() + tables as u64
    }

    /// Appends entries of an accumulation array to their partitions.
    ///
    /// # Safety
    /// The coordinate arrays and the values have `count` elements.
    pub(super) unsafe fn append_batch<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        packing: &Packing,
        (coord_arrays, values, count): (&[CoordArray], *const T, usize),
    ) -> Result<(), WorkspaceError> {
        if !self.is_split() && self.len() + count > SPLIT_ENTRIES {
            self.split(combiner, packing)?;
        }
        let (shift, mask, bits) = (self.shift, self.partitions.len() - 1, self.bits(packing.total));
        // SAFETY: guaranteed by the caller. Partition numbers are masked, and cursors before the
        // end of their block point to a position in it.
        unsafe {
            packing.pack::<K>(coord_arrays, count, |start, keys| {
                let mut k = 0;
                while k < keys.len() {
                    let number = keys[k].digit(shift) & mask;
                    if self.cursors[number].next == self.cursors[number].end {
                        self.append_block(combiner, fold, number, bits)?;
                    }
                    let AppendCursor { next: mut at, end } = self.cursors[number];
                    prefetch_to_write(at.wrapping_add(PREFETCH_DISTANCE));
                    // Neighbours often belong to the same partition: the cursor stays in a
                    // register.
                    loop {
                        at.write(KeyedValue { key: keys[k], value: values.add(start + k).read() });
                        at = at.add(1);
                        k += 1;
                        if at == end || k == keys.len() || keys[k].digit(shift) & mask != number {
                            break;
                        }
                    }
                    self.cursors[number].next = at;
                }
                Ok(())
            })
        }
    }

    /// Appends one entry to the only partition.
    pub(super) fn append(&mut self, key: K, value: T) -> Result<(), OutOfMemory> {
        if self.cursors[0].next == self.cursors[0].end {
            self.cursors[0] = self.blocks.extend(&mut self.partitions[0].list)?;
        }
        // SAFETY: a cursor before the end of its block points to a position in it.
        unsafe {
            self.cursors[0].next.write(KeyedValue { key, value });
            self.cursors[0].next = self.cursors[0].next.add(1);
        }
        Ok(())
    }

    /// The entries of the only partition.
    pub(super) fn all(&mut self) -> &[EntryRun<KeyedValue<K, T>>] {
        self.blocks.runs(&self.partitions[0].list, &self.cursors[0], &mut self.runs);
        &self.runs
    }

    /// The number of low bits in which keys of one partition differ.
    fn bits(&self, total: u32) -> u32 {
        if self.is_split() { self.shift } else { total }
    }

    /// Makes space for another entry in a partition whose last block is full: combines the
    /// partition, or appends a block.
    #[cold]
    fn append_block<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        number: usize,
        bits: u32,
    ) -> Result<(), OutOfMemory> {
        let Partition { list, limit } = &self.partitions[number];
        if list.len_in_full_blocks() >= *limit && self.blocks.in_use() >= MIN_TOTAL_ENTRIES / BLOCK {
            self.combine_partition(combiner, fold, number, bits)?;
            if self.cursors[number].next != self.cursors[number].end {
                return Ok(());
            }
        }
        self.cursors[number] = self.blocks.extend(&mut self.partitions[number].list)?;
        Ok(())
    }

    /// Combines the entries of a partition in place.
    fn combine_partition<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        number: usize,
        bits: u32,
    ) -> Result<(), OutOfMemory> {
        let (list, cursor) = (&mut self.partitions[number].list, &mut self.cursors[number]);
        let before = self.blocks.len(list, cursor);
        self.keys.reserve(before)?;
        self.values.reserve(before)?;
        self.blocks.runs(list, cursor, &mut self.runs);
        let out = CombinedOutput { keys: self.keys.as_ptr(), values: self.values.as_ptr() };
        // SAFETY: the runs are those of the partition, and the output has space for all entries.
        let after = unsafe { combiner.combine(fold, &self.runs, bits, out)? };
        self.combined += before as u64;
        self.blocks.clear(list, cursor);
        for start in (0..after).step_by(BLOCK) {
            *cursor = self.blocks.extend(list)?;
            let len = BLOCK.min(after - start);
            // SAFETY: these entries were written, and a block has space for them.
            unsafe {
                for k in start..start + len {
                    let entry = KeyedValue { key: out.keys.add(k).read(), value: out.values.add(k).read() };
                    cursor.next.add(k - start).write(entry);
                }
                cursor.next = cursor.next.add(len);
            }
        }
        self.partitions[number].limit = MIN_COMBINED_ENTRIES.max(after.saturating_mul(GROWTH));
        Ok(())
    }

    /// Splits the only partition.
    #[cold]
    fn split(&mut self, combiner: &mut Combiner<K, T>, packing: &Packing) -> Result<(), WorkspaceError> {
        let total = packing.total;
        let partition_bits = total.saturating_sub(MIN_LOW_BITS).clamp(4, MAX_PARTITION_BITS).min(total);
        if partition_bits == 0 || !K::HAS_DIGITS {
            // Keys have no bits to partition by: the partition is combined now and then.
            if self.partitions[0].limit == usize::MAX {
                self.partitions[0].limit = SPLIT_ENTRIES;
            }
            return Ok(());
        }
        self.blocks.runs(&self.partitions[0].list, &self.cursors[0], &mut self.runs);
        combiner.expect(SPLIT_ENTRIES, packing.innermost_bits());
        let partition = Partition { list: BlockList::EMPTY, limit: MIN_COMBINED_ENTRIES };
        let entries: Vec<EntryRun<KeyedValue<K, T>>> = std::mem::take(&mut self.runs);
        let mut old = std::mem::replace(&mut self.partitions[0], partition);
        let mut old_cursor = std::mem::replace(&mut self.cursors[0], AppendCursor::NONE);
        self.partitions.resize(1 << partition_bits, partition);
        self.cursors.resize(1 << partition_bits, AppendCursor::NONE);
        self.shift = total - partition_bits;
        for run in &entries {
            for k in 0..run.len {
                // SAFETY: the runs are those of the old partition, whose blocks are still
                // allocated.
                let entry = unsafe { run.first.add(k).read() };
                let number = entry.key.digit(self.shift) & ((1 << partition_bits) - 1);
                if self.cursors[number].next == self.cursors[number].end {
                    self.cursors[number] = self.blocks.extend(&mut self.partitions[number].list)?;
                }
                // SAFETY: a cursor before the end of its block points to a position in it.
                unsafe {
                    self.cursors[number].next.write(entry);
                    self.cursors[number].next = self.cursors[number].next.add(1);
                }
            }
        }
        self.runs = entries;
        self.blocks.clear(&mut old.list, &mut old_cursor);
        Ok(())
    }

    /// Combines the entries of all partitions in order, and clears them. `reserve(used, more)`
    /// makes space for `more` values after the first `used`, and returns their address. `take`
    /// receives the keys, and the number of entries before them.
    pub(super) fn drain<F: Fold<T>>(
        &mut self,
        combiner: &mut Combiner<K, T>,
        fold: F,
        packing: &Packing,
        mut reserve: impl FnMut(usize, usize) -> Result<*mut T, OutOfMemory>,
        mut take: impl FnMut(usize, &[K]),
    ) -> Result<usize, WorkspaceError> {
        let (mut done, bits) = (0, self.bits(packing.total));
        let total = self.len();
        combiner.expect(total, packing.innermost_bits());
        // An upper bound; unused pages are never touched. If this allocation fails, the smaller
        // ones below may still succeed.
        let _ = reserve(0, total);
        for number in 0..self.partitions.len() {
            let (list, cursor) = (&self.partitions[number].list, &self.cursors[number]);
            let before = self.blocks.len(list, cursor);
            if before == 0 {
                continue;
            }
            self.keys.reserve(before)?;
            self.blocks.runs(list, cursor, &mut self.runs);
            let values = reserve(done, before)?;
            let out = CombinedOutput { keys: self.keys.as_ptr(), values };
            if let Some(next) = self.partitions.get(number + 1) {
                self.blocks.prefetch(&next.list);
            }
            // SAFETY: the runs are those of the partition, and the output has space for all
            // entries.
            let after = unsafe { combiner.combine(fold, &self.runs, bits, out)? };
            self.combined += before as u64;
            // SAFETY: these keys were written.
            take(done, unsafe { self.keys.initialized(after) });
            done += after;
        }
        self.reset();
        Ok(done)
    }
}
