//! Combiner (reduce by key): turns entries in any order into entries in key order, each key once.
//! Values of equal keys are folded in insertion order.
//!
//! The cheapest algorithm depends on the number of entries and keys:
//!
//! - A small and well-filled key range uses a *window*: a direct-address table with an occupancy
//!   flag per key. No entry is moved or compared.
//! - Entries that fit a core's private cache are radix sorted: their keys and ids move, the values
//!   stay.
//! - Larger inputs are partitioned by their highest bits (MSD radix partitioning) until one of the
//!   others applies.

use super::block_lists::{EntryRun, KeyedValue};
use super::direct_table::DirectTable;
use super::engine::prefetch;
use super::merge_op::Fold;
use super::packed_key::{KeyedId, SortKey};
use crate::runtime::scratch::{OutOfMemory, ScratchVec};
use crate::runtime::sort::ids;

/// Maximum bits of a window: it stays in a core's private cache.
const MAX_WINDOW_BITS: u32 = 17;

/// A window needs at least one entry per this many keys, which are two words of the coarsest flags.
const MAX_KEYS_PER_ENTRY: usize = 2 * 64 * 64;

/// A window with at least one entry per this many slots is scanned linearly.
const LINEAR_SCAN_SLOTS_PER_ENTRY: usize = 16;

/// The width of windows is limited to about this many slots per expected entry.
const SLOTS_PER_ENTRY: usize = 2;

/// Maximum number of entries that are sorted without partitioning.
const MAX_SORTED_ENTRIES: usize = 1 << 14;

/// Minimum number of entries that are partitioned for windows.
const MIN_PARTITIONED_ENTRIES: usize = 256;

/// Maximum bits of one partitioning pass.
const MAX_RADIX_BITS: u32 = 8;

/// The scratch memory of combining.
pub(super) struct Combiner<K: SortKey, T: Copy> {
    /// Double buffer of partitioned entries.
    partitioned: [ScratchVec<KeyedValue<K, T>>; 2],
    fused: [ScratchVec<u64>; 2],
    pairs: [ScratchVec<KeyedId<K>>; 2],
    window: DirectTable<T>,
    /// Current maximum bits of windows: creating one costs time proportional to its slots.
    max_window_bits: u32,
    /// The bits of the innermost coordinate.
    innermost_bits: u32,
}

/// The output of combining, with space for all input entries.
#[derive(Clone, Copy)]
pub(super) struct CombinedOutput<K, T> {
    pub(super) keys: *mut K,
    pub(super) values: *mut T,
}

impl<K: SortKey, T: Copy + Send + 'static> Combiner<K, T> {
    pub(super) fn new() -> Combiner<K, T> {
        Combiner {
            partitioned: [ScratchVec::new(), ScratchVec::new()],
            fused: [ScratchVec::new(), ScratchVec::new()],
            pairs: [ScratchVec::new(), ScratchVec::new()],
            window: DirectTable::new(),
            max_window_bits: 0,
            innermost_bits: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let partitioned: u64 = self.partitioned.iter().map(ScratchVec::bytes).sum();
        let fused: u64 = self.fused.iter().map(ScratchVec::bytes).sum();
        let pairs: u64 = self.pairs.iter().map(ScratchVec::bytes).sum();
        partitioned + fused + pairs + self.window.bytes()
    }

    /// Announces the number of entries to combine in total, and the bits of the innermost
    /// coordinate.
    pub(super) fn expect(&mut self, entries: usize, innermost_bits: u32) {
        self.innermost_bits = innermost_bits;
        let affordable = usize::BITS - entries.saturating_mul(SLOTS_PER_ENTRY).leading_zeros();
        self.max_window_bits = self.max_window_bits.max(affordable.min(MAX_WINDOW_BITS));
    }

    /// Combines entries whose keys agree in all but `bits` low bits; returns the number of distinct
    /// keys.
    ///
    /// # Safety
    /// The runs hold initialised entries, outside of this combiner; the output has space for all of
    /// them.
    pub(super) unsafe fn combine<F: Fold<T>>(
        &mut self,
        fold: F,
        runs: &[EntryRun<KeyedValue<K, T>>],
        bits: u32,
        out: CombinedOutput<K, T>,
    ) -> Result<usize, OutOfMemory> {
        let count = runs.iter().map(|run| run.len).sum();
        // SAFETY: guaranteed by the caller.
        unsafe { self.combine_range(fold, runs, count, bits, 0, 0, out) }
    }

    /// Combines a subset of the entries. `side` says where they are: 0 for the caller's memory, 1
    /// or 2 for that partition buffer, from `start` on, where the other buffer is free, too.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn combine_range<F: Fold<T>>(
        &mut self,
        fold: F,
        runs: &[EntryRun<KeyedValue<K, T>>],
        count: usize,
        bits: u32,
        side: usize,
        start: usize,
        out: CombinedOutput<K, T>,
    ) -> Result<usize, OutOfMemory> {
        if count == 0 {
            return Ok(0);
        }
        let well_filled = |bits: u32| bits < usize::BITS && (1usize << bits) / MAX_KEYS_PER_ENTRY <= count;
        let (mut bits, max_window_bits) = (bits, self.max_window_bits);
        // SAFETY: guaranteed by the caller, here and below.
        unsafe {
            if K::HAS_DIGITS
                && side == 0
                && count > MIN_PARTITIONED_ENTRIES
                && bits > max_window_bits
                && self.innermost_bits < bits
            {
                let outer = bits - self.innermost_bits;
                let suits =
                    |range: &CoordRange| outer + range.stride <= max_window_bits && well_filled(outer + range.stride);
                // Entries mostly come in some order, so the first and the last run predict the
                // range of innermost coordinates. If the prediction fails, all entries are scanned.
                let sampled = innermost_range(&[runs[0], runs[runs.len() - 1]], self.innermost_bits);
                if suits(&sampled) {
                    let window_bits = outer + sampled.stride;
                    if let Some(left) =
                        self.combine_through_window(fold, runs, count, bits, window_bits, Some(sampled.centred()), out)?
                    {
                        return Ok(left);
                    }
                    let range = innermost_range(runs, self.innermost_bits);
                    let window_bits = outer + range.stride;
                    if suits(&range)
                        && let Some(left) =
                            self.combine_through_window(fold, runs, count, bits, window_bits, Some(range), out)?
                    {
                        return Ok(left);
                    }
                }
            }
            if K::HAS_DIGITS && !(well_filled(bits) && (bits <= max_window_bits || count > MIN_PARTITIONED_ENTRIES)) {
                let (differing, unsorted) = survey(runs);
                if !unsorted {
                    return Ok(fold_sorted(
                        fold,
                        runs.iter().flat_map(|run| (0..run.len).map(|k| run.first.add(k))),
                        out,
                    ));
                }
                bits = u128::BITS - differing.leading_zeros();
                if count <= if well_filled(bits) { MIN_PARTITIONED_ENTRIES } else { MAX_SORTED_ENTRIES }
                    && !(bits <= max_window_bits && well_filled(bits))
                {
                    return self.sort(fold, runs, count, Some(differing), out);
                }
            }
            if K::HAS_DIGITS && bits <= max_window_bits && well_filled(bits) {
                let left = self.combine_through_window(fold, runs, count, bits, bits, None, out)?;
                return Ok(left.unwrap_or(0));
            }
            if !K::HAS_DIGITS {
                return self.sort(fold, runs, count, None, out);
            }
            let radix_bits = if well_filled(bits) {
                bits - max_window_bits
            } else {
                (count / MAX_SORTED_ENTRIES).max(1).ilog2() + 2
            };
            let radix_bits = radix_bits.clamp(1, MAX_RADIX_BITS).min(bits);
            let shift = bits - radix_bits;
            let counts = self.partition(runs, count, shift, radix_bits, side, start)?;
            let (mut done, mut from) = (0, start);
            for len in &counts[..1 << radix_bits] {
                let first = self.partitioned[side % 2].as_ptr().add(from).cast_const();
                let rest = CombinedOutput { keys: out.keys.add(done), values: out.values.add(done) };
                done +=
                    self.combine_range(fold, &[EntryRun { first, len: *len }], *len, shift, side % 2 + 1, from, rest)?;
                from += len;
            }
            Ok(done)
        }
    }

    /// Partitions entries by `radix_bits` bits from `shift` on, into the other buffer; returns the
    /// number of entries of each partition.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn partition(
        &mut self,
        runs: &[EntryRun<KeyedValue<K, T>>],
        count: usize,
        shift: u32,
        radix_bits: u32,
        side: usize,
        start: usize,
    ) -> Result<[usize; 1 << MAX_RADIX_BITS], OutOfMemory> {
        let mask = (1usize << radix_bits.min(MAX_RADIX_BITS)) - 1;
        let target = &mut self.partitioned[side % 2];
        // Only entries from the caller's memory can need more capacity: partitioned ones have the
        // same positions in both buffers.
        if target.capacity() < start + count {
            target.reserve(start + count)?;
        }
        let to = target.as_ptr();
        let (mut counts, mut others) = ([0usize; 1 << MAX_RADIX_BITS], [0usize; 1 << MAX_RADIX_BITS]);
        // SAFETY: guaranteed by the caller; as many positions are written as there are entries.
        unsafe {
            for (run, next) in runs.iter().zip(runs.iter().skip(1).map(Some).chain([None])) {
                let next = next.map_or(run.first, |next| next.first);
                let digit = |k: usize| (*run.first.add(k)).key.digit(shift) & mask;
                // Two alternating histograms: neighbours often have the same digit, and would
                // otherwise serialise on store forwarding.
                let whole = run.len - run.len % 4;
                for k in (0..whole).step_by(4) {
                    prefetch(next.wrapping_add(k));
                    counts[digit(k)] += 1;
                    others[digit(k + 1)] += 1;
                    counts[digit(k + 2)] += 1;
                    others[digit(k + 3)] += 1;
                }
                for k in whole..run.len {
                    counts[digit(k)] += 1;
                }
            }
            for (count, other) in counts.iter_mut().zip(&others) {
                *count += other;
            }
            let (mut positions, mut position) = ([0usize; 1 << MAX_RADIX_BITS], start);
            for (first, count) in positions.iter_mut().zip(&counts) {
                *first = position;
                position += count;
            }
            for run in runs {
                let mut k = 0;
                while k < run.len {
                    let mut entry = run.first.add(k).read();
                    let digit = entry.key.digit(shift) & mask;
                    let mut position = positions[digit];
                    // Neighbours often share a digit: the position stays in a register.
                    loop {
                        to.add(position).write(entry);
                        position += 1;
                        k += 1;
                        if k == run.len {
                            break;
                        }
                        entry = run.first.add(k).read();
                        if entry.key.digit(shift) & mask != digit {
                            break;
                        }
                    }
                    positions[digit] = position;
                }
            }
        }
        Ok(counts)
    }

    /// Combines through a window: a slot per key, or per key whose innermost coordinate is in
    /// `range`. Returns `None` if a coordinate is out of the range.
    ///
    /// # Safety
    /// As for [`Combiner::combine`]; keys differ only in `bits` low bits.
    #[allow(clippy::too_many_arguments)]
    unsafe fn combine_through_window<F: Fold<T>>(
        &mut self,
        fold: F,
        runs: &[EntryRun<KeyedValue<K, T>>],
        count: usize,
        bits: u32,
        window_bits: u32,
        range: Option<CoordRange>,
        out: CombinedOutput<K, T>,
    ) -> Result<Option<usize>, OutOfMemory> {
        let size = 1usize << window_bits;
        self.window.prepare(fold, size)?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            Ok(if count >= size / LINEAR_SCAN_SLOTS_PER_ENTRY {
                self.fold_through_window::<F, 1>(fold, runs, bits, size, range, out)
            } else {
                self.fold_through_window::<F, 2>(fold, runs, bits, size, range, out)
            })
        }
    }

    /// The loops of [`Combiner::combine_through_window`], for a prepared window with this many
    /// levels of flags.
    ///
    /// # Safety
    /// As for [`Combiner::combine_through_window`].
    unsafe fn fold_through_window<F: Fold<T>, const LEVELS: usize>(
        &mut self,
        fold: F,
        runs: &[EntryRun<KeyedValue<K, T>>],
        bits: u32,
        size: usize,
        range: Option<CoordRange>,
        out: CombinedOutput<K, T>,
    ) -> Option<usize> {
        // SAFETY: guaranteed by the caller; slots are below the size of the window.
        unsafe {
            let Some(base) = runs.first().map(|run| (*run.first).key.pop(bits).1) else { return Some(0) };
            let mut done = 0;
            let Some(CoordRange { innermost_bits, low, stride, .. }) = range else {
                for run in runs {
                    for k in 0..run.len {
                        let KeyedValue { key, value } = run.first.add(k).read();
                        self.window.fold_into::<F, LEVELS>(fold, key.digit(0) & (size - 1), value);
                    }
                }
                self.window.drain::<F, LEVELS>(fold, size, |slot, value| {
                    out.keys.add(done).write(base.push(bits, slot as u64));
                    out.values.add(done).write(value);
                    done += 1;
                });
                return Some(done);
            };
            let (outer, mask) = ((1usize << (bits - innermost_bits)) - 1, (1usize << innermost_bits) - 1);
            for (run, next) in runs.iter().zip(runs.iter().skip(1).map(Some).chain([None])) {
                let (next, mut out_of_range) = (next.map_or(run.first, |next| next.first), 0);
                for k in 0..run.len {
                    if k % 4 == 0 {
                        prefetch(next.wrapping_add(k));
                    }
                    let KeyedValue { key, value } = run.first.add(k).read();
                    let offset = (key.digit(0) & mask).wrapping_sub(low);
                    out_of_range |= offset >> stride;
                    let slot = (key.digit(innermost_bits) & outer) << stride | offset & ((1 << stride) - 1);
                    self.window.fold_into::<F, LEVELS>(fold, slot, value);
                }
                if out_of_range != 0 {
                    self.window.drain::<F, LEVELS>(fold, size, |_, _| ());
                    return None;
                }
            }
            self.window.drain::<F, LEVELS>(fold, size, |slot, value| {
                let low_bits = (slot >> stride) << innermost_bits | ((slot & ((1 << stride) - 1)) + low);
                out.keys.add(done).write(base.push(bits, low_bits as u64));
                out.values.add(done).write(value);
                done += 1;
            });
            Some(done)
        }
    }

    /// Sorts by the bits that differ (radix sort), or by comparison, and folds the sorted entries.
    ///
    /// # Safety
    /// As for [`Combiner::combine`].
    unsafe fn sort<F: Fold<T>>(
        &mut self,
        fold: F,
        runs: &[EntryRun<KeyedValue<K, T>>],
        count: usize,
        differing: Option<u128>,
        out: CombinedOutput<K, T>,
    ) -> Result<usize, OutOfMemory> {
        // SAFETY: guaranteed by the caller; as many items are written as there are entries.
        unsafe {
            let entries = match runs {
                [run] => run.first,
                _ => {
                    self.partitioned[0].reserve(count)?;
                    let (entries, mut done) = (self.partitioned[0].as_ptr(), 0);
                    for run in runs {
                        entries.add(done).copy_from_nonoverlapping(run.first, run.len);
                        done += run.len;
                    }
                    entries.cast_const()
                }
            };
            let id_bits = usize::BITS - (count - 1).leading_zeros();
            let high = differing.map_or(u128::BITS, |differing| u128::BITS - differing.leading_zeros());
            if let Some(differing) = differing.filter(|_| high + id_bits <= u64::BITS) {
                let [items, spare] = &mut self.fused;
                items.reserve(count)?;
                let mask = (1u64 << high) - 1;
                for k in 0..count {
                    let key = (*entries.add(k)).key.digit(0) as u64 & mask;
                    items.as_ptr().add(k).write(key << id_bits | k as u64);
                }
                ids::sort(items, spare, count, Some(differing << id_bits))?;
                let mask = (1u64 << id_bits) - 1;
                let sorted = items.initialized(count).iter().map(|item| entries.add((item & mask) as usize));
                return Ok(fold_sorted(fold, sorted, out));
            }
            let [items, spare] = &mut self.pairs;
            items.reserve(count)?;
            for k in 0..count {
                items.as_ptr().add(k).write(KeyedId { key: (*entries.add(k)).key, id: k as u32 });
            }
            ids::sort(items, spare, count, differing)?;
            let sorted = items.initialized(count).iter().map(|item| entries.add(item.id as usize));
            Ok(fold_sorted(fold, sorted, out))
        }
    }
}

/// A range of innermost coordinates: their bits in a key, the minimum, the bits of the offset from
/// the minimum, and the maximum.
#[derive(Clone, Copy)]
struct CoordRange {
    innermost_bits: u32,
    low: usize,
    stride: u32,
    high: usize,
}

impl CoordRange {
    /// The same range, centred in the window.
    fn centred(self) -> CoordRange {
        let spare = (1usize << self.stride) - 1 - (self.high - self.low);
        CoordRange { low: self.low.saturating_sub(spare / 2), ..self }
    }
}

/// The range of the id_bits in the low bits of keys.
///
/// # Safety
/// The runs hold initialised entries, outside of this combiner; the output has space for all of
/// them.
unsafe fn innermost_range<K: SortKey, T>(runs: &[EntryRun<KeyedValue<K, T>>], innermost_bits: u32) -> CoordRange {
    let mask = if innermost_bits < usize::BITS { (1usize << innermost_bits) - 1 } else { usize::MAX };
    let (mut low, mut high) = (usize::MAX, 0);
    for (run, next) in runs.iter().zip(runs.iter().skip(1).map(Some).chain([None])) {
        let next = next.map_or(run.first, |next| next.first);
        for k in 0..run.len {
            // SAFETY: guaranteed by the caller.
            let coordinate = unsafe { (*run.first.add(k)).key.digit(0) & mask };
            if k % 4 == 0 {
                prefetch(next.wrapping_add(k));
            }
            (low, high) = (low.min(coordinate), high.max(coordinate));
        }
    }
    let low = low.min(high);
    CoordRange { innermost_bits, low, stride: (usize::BITS - (high - low).leading_zeros()).max(1), high }
}

/// The bits in which keys differ, and whether some keys are out of order.
///
/// # Safety
/// The runs hold initialised entries, outside of this combiner; the output has space for all of
/// them.
unsafe fn survey<K: SortKey, T>(runs: &[EntryRun<KeyedValue<K, T>>]) -> (u128, bool) {
    let (mut differing, mut unsorted) = (0, false);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Some(mut previous) = runs.first().map(|run| (*run.first).key) else { return (0, false) };
        for run in runs {
            for k in 0..run.len {
                let key = (*run.first.add(k)).key;
                differing |= previous.differing(key);
                unsorted |= previous > key;
                previous = key;
            }
        }
    }
    (differing, unsorted)
}

/// Folds entries that arrive in key order; returns the number of distinct keys.
///
/// # Safety
/// The entries are initialised, and the output has space for them.
#[inline(always)]
unsafe fn fold_sorted<K: SortKey, T: Copy, F: Fold<T>>(
    fold: F,
    mut entries: impl Iterator<Item = *const KeyedValue<K, T>>,
    out: CombinedOutput<K, T>,
) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Some(KeyedValue { mut key, mut value }) = entries.next().map(|entry| entry.read()) else { return 0 };
        let mut last = 0;
        // The current entry is written in every iteration; the write position advances when the
        // next key differs. No branch depends on the comparison.
        for entry in entries {
            let next = entry.read();
            let same = next.key == key;
            if F::CHEAP {
                out.keys.add(last).write(key);
                out.values.add(last).write(value);
                let folded = fold.fold(value, next.value);
                value = if same { folded } else { next.value };
                last += usize::from(!same);
            } else if same {
                value = fold.fold(value, next.value);
            } else {
                out.keys.add(last).write(key);
                out.values.add(last).write(value);
                value = next.value;
                last += 1;
            }
            key = next.key;
        }
        out.keys.add(last).write(key);
        out.values.add(last).write(value);
        last + 1
    }
}
