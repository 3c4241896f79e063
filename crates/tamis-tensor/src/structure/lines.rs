//! Recognition along one dimension: contiguous ranges, runs of equal values, and equal adjacent
//! slices.

use super::SortedEntries;
use crate::convert::words::with_words;
use crate::memory::zeroed;
use crate::{Index, IndexArray, ValueArray, with_indices};
use tamis_ir::diag::Result;

/// The entries along one dimension, line by line; the coordinates of the other dimensions identify
/// a line.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::banded(100, 2)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let rows = a.statistics()?.structure.lines[1];
/// assert_eq!((rows.lines, rows.ranges), (100, 100), "each row is one contiguous range");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lines {
    /// The dimension along the lines.
    pub dimension: usize,
    /// The number of lines with entries.
    pub lines: usize,
    /// The number of entries of all lines.
    pub entries: usize,
    /// The number of contiguous ranges of entries: the blocks of `blocks`.
    pub ranges: usize,
    /// The number of contiguous ranges of entries with one value: the runs of `sparse_runs`.
    pub runs: usize,
    /// Runs and the gaps before, between and after them, in lines with entries: the runs of `runs`.
    pub gapless: usize,
    /// Cells from the first to the last entry of each line: the values of `band`.
    pub span: u64,
}

impl Lines {
    /// The mean length of contiguous ranges.
    ///
    /// ```
    /// use tamis_tensor::Lines;
    /// let rows = Lines { entries: 12, ranges: 3, ..Lines::default() };
    /// assert_eq!(rows.mean_range(), 4.0);
    /// ```
    pub fn mean_range(&self) -> f64 {
        share(self.entries as f64, self.ranges as f64)
    }

    /// The mean length of runs.
    ///
    /// ```
    /// use tamis_tensor::Lines;
    /// let rows = Lines { entries: 12, runs: 6, ..Lines::default() };
    /// assert_eq!(rows.mean_run(), 2.0);
    /// ```
    pub fn mean_run(&self) -> f64 {
        share(self.entries as f64, self.runs as f64)
    }

    /// The fraction of the cells from the first to the last entry of each line that are entries.
    ///
    /// ```
    /// use tamis_tensor::Lines;
    /// let rows = Lines { entries: 12, span: 16, ..Lines::default() };
    /// assert_eq!(rows.filled(), 0.75);
    /// ```
    pub fn filled(&self) -> f64 {
        share(self.entries as f64, self.span as f64)
    }
}

/// Adjacent slices along the first dimension: the rows of a matrix.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::Tensor;
/// let values = vec![1.0, 2.0, 1.0, 2.0, 0.0, 3.0].into();
/// let a = Tensor::from_dense(&[3, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let rows = a.statistics()?.structure.slices.unwrap();
/// assert_eq!((rows.equal, rows.runs, rows.entries), (1, 2, 3));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slices {
    /// The number of nonempty slices that equal the previous one, in entries and values.
    pub equal: u64,
    /// Runs of equal slices, empty ones included.
    pub runs: u64,
    /// The entries of one slice of each run.
    pub entries: usize,
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// For each number of leading columns, from 1 on, the number of distinct tuples they form; and the
/// lines along the last column, which is that of `dimension`.
pub(super) fn along_last(sorted: &SortedEntries, shape: &[u64], dimension: usize) -> Result<(Vec<usize>, Lines)> {
    let mut prefixes = Vec::with_capacity(sorted.columns.len());
    let Some((last, before)) = sorted.columns.split_last() else { return Ok((prefixes, Lines::default())) };
    // 1 if an entry starts a line: one of the columns before the last differs from that of the
    // previous entry.
    let mut begins: Vec<u8> = zeroed(sorted.len, "the lines of entries")?;
    if let Some(first) = begins.first_mut() {
        *first = 1;
    }
    for column in before {
        with_indices!(column, column => {
            for (begins, pair) in begins.iter_mut().skip(1).zip(column.windows(2)) {
                *begins |= u8::from(pair[0] != pair[1]);
            }
        });
        prefixes.push(begins.iter().map(|b| usize::from(*b)).sum());
    }
    prefixes.push(sorted.len);
    let mut equal: Vec<u8> = zeroed(sorted.len, "the values of neighbours")?;
    match &sorted.values {
        None => equal.fill(1),
        Some(values) => with_words!(values, words => {
            for (equal, pair) in equal.iter_mut().skip(1).zip(words.windows(2)) {
                *equal = u8::from(pair[0] == pair[1]);
            }
        }),
    }
    let extent = shape.get(dimension).copied().unwrap_or(0);
    let lines = with_indices!(last, last => count(last, &begins, &equal, extent));
    Ok((prefixes, Lines { dimension, ..lines }))
}

/// Counts contiguous ranges, runs and spans. `begins` marks the start of lines, and `equal` the
/// values that equal the previous one.
fn count<I: Index>(coordinates: &[I], begins: &[u8], equal: &[u8], extent: u64) -> Lines {
    let mut lines = Lines { entries: coordinates.len(), ..Lines::default() };
    let (mut start, mut previous) = (0u64, 0u64);
    // The gap after the last entry of a line.
    let tail = |previous: u64| usize::from(previous + 1 < extent);
    for (k, coordinate) in coordinates.iter().enumerate() {
        let at = coordinate.to_u64();
        if begins[k] == 1 {
            if k > 0 {
                lines.span = lines.span.saturating_add(previous - start + 1);
                lines.gapless += tail(previous);
            }
            lines.lines += 1;
            lines.ranges += 1;
            lines.runs += 1;
            lines.gapless += 1 + usize::from(at > 0);
            start = at;
        } else {
            let gap = at != previous + 1;
            let differs = gap || equal[k] == 0;
            lines.ranges += usize::from(gap);
            lines.runs += usize::from(differs);
            lines.gapless += usize::from(differs) + usize::from(gap);
        }
        previous = at;
    }
    if !coordinates.is_empty() {
        lines.span = lines.span.saturating_add(previous - start + 1);
        lines.gapless += tail(previous);
    }
    lines
}

/// Compares adjacent slices along the first dimension; there are none below rank 2.
pub(super) fn slices(sorted: &SortedEntries, shape: &[u64]) -> Option<Slices> {
    let (first, rest) = sorted.columns.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let extent = *shape.first()?;
    let mut found = Slices::default();
    // The previous slice: its coordinate, and the range of its entries.
    let mut before: Option<(u64, usize, usize)> = None;
    let mut start = 0;
    while start < sorted.len {
        let at = first.get(start);
        let stop = start + with_indices!(first, first => same_from(first, start));
        let equal = match before {
            Some((coordinate, from, to)) if coordinate + 1 == at => {
                to - from == stop - start
                    && rest.iter().all(|column| same_range(column, from, start, stop - start))
                    && sorted.values.as_ref().is_none_or(|values| same_values(values, from, start, stop - start))
            }
            // Empty slices lie between, which are a run of their own.
            Some(_) => {
                found.runs += 1;
                false
            }
            None => {
                found.runs += u64::from(at > 0);
                false
            }
        };
        if equal {
            found.equal += 1;
        } else {
            found.runs += 1;
            found.entries += stop - start;
        }
        before = Some((at, start, stop));
        start = stop;
    }
    let covered = before.map_or(0, |(at, ..)| at + 1);
    found.runs += u64::from(covered < extent);
    Some(found)
}

/// The number of equal numbers from `start` on.
fn same_from<I: Index>(numbers: &[I], start: usize) -> usize {
    let rest = &numbers[start..];
    rest.iter().position(|x| *x != rest[0]).unwrap_or(rest.len())
}

fn same_range(column: &IndexArray, a: usize, b: usize, len: usize) -> bool {
    with_indices!(column, column => column[a..a + len] == column[b..b + len])
}

fn same_values(values: &ValueArray, a: usize, b: usize, len: usize) -> bool {
    with_words!(values, words => words[a..a + len] == words[b..b + len])
}
