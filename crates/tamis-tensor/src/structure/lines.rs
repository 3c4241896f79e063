//! What lies along a dimension: stretches of neighbouring coordinates, runs of equal values, and equal neighbouring slices.

use super::Sorted;
use crate::convert::words::with_words;
use crate::memory::zeroed;
use crate::{Index, IndexArray, ValueArray, with_indices};
use tamis_ir::diag::Result;

/// The entries along one dimension, line by line; the coordinates of the other dimensions are what a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lines {
    /// The dimension that lines go along.
    pub dimension: usize,
    /// How many lines hold entries.
    pub lines: usize,
    /// The entries of all lines.
    pub entries: usize,
    /// Stretches of entries without a gap between them: what `blocks` stores.
    pub stretches: usize,
    /// Stretches of entries with one value: what `sparse_runs` stores.
    pub runs: usize,
    /// Runs with the gaps before, between and behind them, in lines that hold entries: what `runs` stores.
    pub gapless: usize,
    /// Cells between the first and the last entry of each line, both included: what `band` stores.
    pub span: u64,
}

impl Lines {
    /// How long stretches are, on average.
    pub fn mean_stretch(&self) -> f64 {
        share(self.entries as f64, self.stretches as f64)
    }

    /// How long runs are, on average.
    pub fn mean_run(&self) -> f64 {
        share(self.entries as f64, self.runs as f64)
    }

    /// The share of the cells between the first and the last entry of each line that are entries.
    pub fn filled(&self) -> f64 {
        share(self.entries as f64, self.span as f64)
    }
}

/// Neighbouring slices along the first dimension: the rows of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Slices {
    /// Slices with entries that are equal to the slice before, entries and values.
    pub equal: u64,
    /// Runs of equal slices, empty ones included.
    pub runs: u64,
    /// The entries of one slice of each run.
    pub entries: usize,
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// For each number of leading columns, from 1 on, how many different tuples they form; and what lies along the last one,
/// which is that of `dimension`.
pub(super) fn along_last(sorted: &Sorted, shape: &[u64], dimension: usize) -> Result<(Vec<usize>, Lines)> {
    let mut prefixes = Vec::with_capacity(sorted.columns.len());
    let Some((last, before)) = sorted.columns.split_last() else { return Ok((prefixes, Lines::default())) };
    // 1 where an entry begins a line: one of the columns before the last differs from those of the entry before.
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

/// Counts stretches, runs and spans. A line begins where `begins` says so, and `equal` says of what the value before.
fn count<I: Index>(coordinates: &[I], begins: &[u8], equal: &[u8], extent: u64) -> Lines {
    let mut lines = Lines { entries: coordinates.len(), ..Lines::default() };
    let (mut start, mut previous) = (0u64, 0u64);
    // What a line holds behind its last entry.
    let tail = |previous: u64| usize::from(previous + 1 < extent);
    for (k, coordinate) in coordinates.iter().enumerate() {
        let at = coordinate.to_u64();
        if begins[k] == 1 {
            if k > 0 {
                lines.span = lines.span.saturating_add(previous - start + 1);
                lines.gapless += tail(previous);
            }
            lines.lines += 1;
            lines.stretches += 1;
            lines.runs += 1;
            lines.gapless += 1 + usize::from(at > 0);
            start = at;
        } else {
            let gap = at != previous + 1;
            let differs = gap || equal[k] == 0;
            lines.stretches += usize::from(gap);
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

/// Compares neighbouring slices along the first dimension; there are none below rank 2.
pub(super) fn slices(sorted: &Sorted, shape: &[u64]) -> Option<Slices> {
    let (first, rest) = sorted.columns.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let extent = *shape.first()?;
    let mut found = Slices::default();
    // The slice before: its coordinate, and where its entries are.
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

/// How many numbers from `start` on are equal.
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
