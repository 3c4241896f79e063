//! Dense accumulator: a slot for every possible key, for small key spaces or many entries.

use super::WorkspaceError;
use super::block_lists::{EntryRun, KeyedValue};
use super::direct_table::DirectTable;
use super::engine::prefetch;
use super::merge_op::Fold;
use super::packed_key::{Packing, SortKey};
use super::policy::CoordArray;
use crate::runtime::scratch::OutOfMemory;

/// Maximum key bits of a dense accumulator.
const MAX_KEY_BITS: u32 = 20;

/// Maximum slots per entry: memory stays proportional to the entries.
const MAX_SLOTS_PER_ENTRY: usize = 16;

/// Prefetch distance, in entries.
const PREFETCH_DISTANCE: usize = 16;

/// True if a dense accumulator suits keys of so many bits, with so many entries.
pub(super) fn suits(bits: u32, entries: usize) -> bool {
    bits <= MAX_KEY_BITS && 1usize << bits <= entries.saturating_mul(MAX_SLOTS_PER_ENTRY)
}

/// A slot for each key.
pub(super) struct DenseAccumulator<T: Copy> {
    table: DirectTable<T>,
    /// The number of keys; 0 while the accumulator is not in use.
    size: usize,
    /// Upper bound of the number of distinct entries.
    max_entries: usize,
}

impl<T: Copy + Send + 'static> DenseAccumulator<T> {
    pub(super) fn new() -> DenseAccumulator<T> {
        DenseAccumulator { table: DirectTable::new(), size: 0, max_entries: 0 }
    }

    pub(super) fn reset(&mut self) {
        if self.in_use() {
            self.table.invalidate();
        }
        (self.size, self.max_entries) = (0, 0);
    }

    pub(super) fn in_use(&self) -> bool {
        self.size > 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Starts using the accumulator, for keys of `bits` bits.
    pub(super) fn open<F: Fold<T>>(&mut self, fold: F, bits: u32) -> Result<(), OutOfMemory> {
        let size = 1usize << bits.min(MAX_KEY_BITS);
        self.table.prepare(fold, size)?;
        (self.size, self.max_entries) = (size, 0);
        Ok(())
    }

    /// Folds the entries of an accumulation array.
    ///
    /// # Safety
    /// The coordinate arrays and the values have `count` elements.
    pub(super) unsafe fn fold_batch<K: SortKey, F: Fold<T>>(
        &mut self,
        fold: F,
        packing: &Packing,
        (coord_arrays, values, count): (&[CoordArray], *const T, usize),
    ) -> Result<(), WorkspaceError> {
        self.max_entries = self.size.min(self.max_entries.saturating_add(count));
        let (table, mask) = (&mut self.table, self.size - 1);
        // SAFETY: guaranteed by the caller; slots are masked to the size of the table.
        unsafe {
            packing.pack::<K>(coord_arrays, count, |start, keys| {
                let (now, last) = keys.split_at(keys.len().saturating_sub(PREFETCH_DISTANCE));
                for (k, key) in now.iter().enumerate() {
                    prefetch(table.address(keys[k + PREFETCH_DISTANCE].digit(0) & mask));
                    table.fold_into::<F, 3>(fold, key.digit(0) & mask, values.add(start + k).read());
                }
                for (k, key) in last.iter().enumerate() {
                    table.fold_into::<F, 3>(fold, key.digit(0) & mask, values.add(start + now.len() + k).read());
                }
                Ok(())
            })
        }
    }

    /// Folds the entries of a partition.
    ///
    /// # Safety
    /// The entries are initialised.
    pub(super) unsafe fn fold_runs<K: SortKey, F: Fold<T>>(&mut self, fold: F, runs: &[EntryRun<KeyedValue<K, T>>]) {
        for run in runs {
            self.max_entries = self.size.min(self.max_entries.saturating_add(run.len));
            for k in 0..run.len {
                // SAFETY: guaranteed by the caller; slots are masked to the size of the table.
                unsafe {
                    let KeyedValue { key, value } = run.first.add(k).read();
                    self.table.fold_into::<F, 3>(fold, key.digit(0) & (self.size - 1), value);
                }
            }
        }
    }

    /// Upper bound of the number of distinct entries.
    pub(super) fn max_entries(&self) -> usize {
        self.max_entries
    }

    /// Writes all entries in key order, returns their number, and stops using the accumulator.
    ///
    /// # Safety
    /// The output has space for the maximum number of entries.
    pub(super) unsafe fn drain<K: SortKey, F: Fold<T>>(
        &mut self,
        fold: F,
        packing: &Packing,
        coord_arrays: &[CoordArray],
        to: *mut T,
    ) -> usize {
        let (mut done, mut pending, mut keys) = (0, 0, [K::ZERO; 512]);
        self.table.drain::<F, 3>(fold, self.size, |slot, value| {
            keys[pending] = K::ZERO.push(63, slot as u64);
            pending += 1;
            // SAFETY: guaranteed by the caller.
            unsafe {
                to.add(done).write(value);
                done += 1;
                if pending == keys.len() {
                    packing.unpack(&keys, coord_arrays, done - pending);
                    pending = 0;
                }
            }
        });
        // SAFETY: as above.
        unsafe { packing.unpack(&keys[..pending], coord_arrays, done - pending) };
        (self.size, self.max_entries) = (0, 0);
        done
    }
}
