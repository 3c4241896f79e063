//! Bucket sort of matrix entries by (row, column), in linear time.
//!
//! Moving millions of entries directly to their rows would miss the cache for each of them. So
//! entries are first partitioned into buckets of rows that fit the cache. Each bucket is then
//! sorted by itself: into rows by counting sort, and each row, as most are short, by comparing all
//! pairs.

use super::matrix::{as_type, slice, with_common_index};
use super::words::map_words;
use crate::memory::{recycle, reserve, zeroed};
use crate::{Index, IndexArray, ValueArray};
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::Range;
use tamis_ir::diag::Result;

/// Entries sorted by row and column: those of row r are `crd[pos[r]..pos[r+1]]`.
pub(crate) struct BucketSorted {
    pub pos: IndexArray,
    pub crd: IndexArray,
    pub values: ValueArray,
    /// True if there are duplicates, which are adjacent in input order.
    pub repeats: bool,
}

/// Sorts entries whose rows are below `extent`.
pub(crate) fn bucket(
    rows: &IndexArray,
    columns: &IndexArray,
    extent: usize,
    values: &ValueArray,
) -> Result<BucketSorted> {
    let largest = (extent as u64).max(rows.len() as u64).max(columns.largest().unwrap_or(0));
    with_common_index!(largest, I => {
        let (rows, columns) = (as_type::<I>(rows)?, as_type::<I>(columns)?);
        let (rows, columns) = (slice::<I>(&rows), slice::<I>(&columns));
        let arrays: (Vec<I>, Vec<I>, bool);
        let values = map_words!(values, words => {
            let (pos, crd, words, repeats) = sort(rows, columns, extent, words)?;
            arrays = (pos, crd, repeats);
            words
        });
        Ok(BucketSorted { pos: arrays.0.into(), crd: arrays.1.into(), values, repeats: arrays.2 })
    })
}

/// An entry of a bucket.
#[derive(Clone, Copy)]
struct RowEntry<I, W> {
    row: I,
    column: I,
    word: W,
}

/// The number of entries per bucket, so that a bucket and its sorted copy fit a core's own cache.
const BUCKET_SIZE: usize = 1 << 13;

/// The maximum number of buckets: more would write to more cache lines at once than the cache has.
const MAX_BUCKETS: usize = 1 << 10;

/// Output arrays that threads write at disjoint positions.
struct BucketTarget<I, W> {
    pos: *mut I,
    crd: *mut I,
    words: *mut W,
}

// SAFETY: each thread writes to the rows of its own buckets only.
unsafe impl<I: Send, W: Send> Sync for BucketTarget<I, W> {}

/// Positions by row, columns, words, and a flag for duplicates.
pub(super) type CompressedArrays<I, W> = (Vec<I>, Vec<I>, Vec<W>, bool);

/// Sorts entries whose rows are below `extent`.
pub(super) fn sort<I: Index, W: Pod + Send + Sync>(
    rows: &[I],
    columns: &[I],
    extent: usize,
    words: &[W],
) -> Result<CompressedArrays<I, W>> {
    let total = rows.len();
    // Rows per bucket, a power of two so that the bucket of a row is a shift.
    let wanted = (total / BUCKET_SIZE).clamp(1, MAX_BUCKETS);
    let shift = extent.div_ceil(wanted).next_power_of_two().trailing_zeros();
    let buckets = (extent >> shift) + 1;
    let starts = count_buckets(rows, shift, buckets)?;
    let entries = partition(rows, columns, words, shift, &starts)?;

    let mut pos: Vec<I> = reserve(extent + 1, "`pos`")?;
    let mut crd: Vec<I> = reserve(total, "coordinates")?;
    let mut sorted: Vec<W> = reserve(total, "values")?;
    let target = BucketTarget { pos: pos.as_mut_ptr(), crd: crd.as_mut_ptr(), words: sorted.as_mut_ptr() };
    let sort_part = |scratch: &mut Scratch<I, W>, bucket: usize| {
        let bucket_rows = bucket << shift..((bucket + 1) << shift).min(extent);
        // SAFETY: the ranges of rows, and with them the ranges of entries, of all buckets are
        // disjoint; they cover 0..extent and 0..total.
        unsafe { scratch.sort(&entries, starts[bucket]..starts[bucket + 1], bucket_rows, &target) }
    };
    let repeats = if total >= super::matrix::PARALLEL && crate::threads() > 1 {
        (0..buckets).into_par_iter().map_init(Scratch::default, sort_part).reduce(|| false, |a, b| a | b)
    } else {
        let mut scratch = Scratch::default();
        (0..buckets).fold(false, |repeats, bucket| sort_part(&mut scratch, bucket) | repeats)
    };
    // SAFETY: the buckets have written the start of every row, and all entries.
    unsafe {
        target.pos.add(extent).write(I::from_u64(total as u64));
        pos.set_len(extent + 1);
        crd.set_len(total);
        sorted.set_len(total);
    }
    recycle(entries);
    Ok((pos, crd, sorted, repeats))
}

/// The start of each bucket, and finally the number of entries.
fn count_buckets<I: Index>(rows: &[I], shift: u32, buckets: usize) -> Result<Vec<usize>> {
    let mut starts: Vec<usize> = zeroed(buckets + 1, "counters")?;
    for row in rows {
        starts[(row.to_usize() >> shift) + 1] += 1;
    }
    for bucket in 0..buckets {
        starts[bucket + 1] += starts[bucket];
    }
    Ok(starts)
}

/// The entries bucket by bucket, each in input order.
fn partition<I: Index, W: Pod>(
    rows: &[I],
    columns: &[I],
    words: &[W],
    shift: u32,
    starts: &[usize],
) -> Result<Vec<RowEntry<I, W>>> {
    let mut next = starts.to_vec();
    let mut entries: Vec<RowEntry<I, W>> = reserve(rows.len(), "entries")?;
    let target = entries.as_mut_ptr();
    for ((row, column), word) in rows.iter().zip(columns).zip(words) {
        let next = &mut next[row.to_usize() >> shift];
        // SAFETY: the starts were counted from the same rows, so the positions are distinct and
        // below their number.
        unsafe { target.add(*next).write(RowEntry { row: *row, column: *column, word: *word }) };
        *next += 1;
    }
    // SAFETY: as above, every position was written: columns and words are as long as rows.
    unsafe { entries.set_len(rows.len()) };
    Ok(entries)
}

/// Buffers for sorting a bucket, reused for all buckets.
struct Scratch<I, W> {
    next: Vec<usize>,
    pairs: Vec<(I, W)>,
}

impl<I, W> Default for Scratch<I, W> {
    fn default() -> Scratch<I, W> {
        Scratch { next: Vec::new(), pairs: Vec::new() }
    }
}

impl<I: Index, W: Pod> Scratch<I, W> {
    /// Sorts a range of entries, all entries of a range of rows, into the same range of the target.
    /// Returns true if there are duplicates.
    ///
    /// # Safety
    /// The target has capacity for the range of entries and the starts of the rows, and no other
    /// thread writes there.
    unsafe fn sort(
        &mut self,
        entries: &[RowEntry<I, W>],
        range: Range<usize>,
        rows: Range<usize>,
        target: &BucketTarget<I, W>,
    ) -> bool {
        let entries = &entries[range.clone()];
        self.next.clear();
        self.next.resize(rows.len() + 1, 0);
        for entry in entries {
            self.next[entry.row.to_usize() - rows.start + 1] += 1;
        }
        for row in 0..rows.len() {
            // SAFETY: the row is in the caller's range.
            unsafe { target.pos.add(rows.start + row).write(I::from_u64((range.start + self.next[row]) as u64)) };
            self.next[row + 1] += self.next[row];
        }
        if let Some(first) = entries.first() {
            self.pairs.resize(entries.len(), (first.column, first.word));
        }
        for entry in entries {
            let next = &mut self.next[entry.row.to_usize() - rows.start];
            self.pairs[*next] = (entry.column, entry.word);
            *next += 1;
        }
        let mut start = 0;
        let mut repeats = false;
        for end in &self.next[..rows.len()] {
            let row = &mut self.pairs[start..*end];
            // SAFETY: the row's range is within the caller's range.
            let (crd, words) = unsafe { (target.crd.add(range.start + start), target.words.add(range.start + start)) };
            // SAFETY: as above, both have capacity for the row.
            repeats |=
                unsafe { if row.len() <= SHORT { write_short(row, crd, words) } else { write_long(row, crd, words) } };
            start = *end;
        }
        repeats
    }
}

/// Rows up to this length are sorted by comparing all pairs.
const SHORT: usize = 12;

/// Writes a short row in order, each entry directly to its rank. No branch depends on the data:
/// mispredicted branches make sorting many short rows slow. Returns true if there are duplicates.
///
/// # Safety
/// Both pointers have capacity for the row, which has at most [`SHORT`] entries.
#[inline(always)]
unsafe fn write_short<I: Index, W: Pod>(row: &[(I, W)], crd: *mut I, words: *mut W) -> bool {
    let mut ranks = [0usize; SHORT];
    let mut repeats = false;
    for i in 1..row.len() {
        for j in 0..i {
            // Equal columns keep their order.
            let before = row[j].0 <= row[i].0;
            ranks[i] += before as usize;
            ranks[j] += !before as usize;
            repeats |= row[j].0 == row[i].0;
        }
    }
    for ((column, word), rank) in row.iter().zip(ranks) {
        // SAFETY: ranks are distinct and below the length of the row.
        unsafe {
            crd.add(rank).write(*column);
            words.add(rank).write(*word);
        }
    }
    repeats
}

/// Writes a row in order, equal columns in input order. Returns true if there are duplicates.
///
/// # Safety
/// Both pointers have capacity for the row.
unsafe fn write_long<I: Index, W: Pod>(row: &mut [(I, W)], crd: *mut I, words: *mut W) -> bool {
    row.sort_by_key(|(column, _)| *column);
    for (k, (column, word)) in row.iter().enumerate() {
        // SAFETY: `k` is below the length of the row.
        unsafe {
            crd.add(k).write(*column);
            words.add(k).write(*word);
        }
    }
    row.windows(2).any(|w| w[0].0 == w[1].0)
}
