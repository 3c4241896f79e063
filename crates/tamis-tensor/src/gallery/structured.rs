//! Generators of regular structure: dense, banded, triangular, diagonal.

use super::entries::{EntryCollector, cells};
use super::stream::{Stream, StreamPurpose};
use crate::Coordinates;
use std::ops::Range;
use tamis_ir::diag::Result;

/// A tensor of any rank that is 1 everywhere.
///
/// ```
/// assert_eq!(tamis_tensor::gallery::ones(&[2, 3]).unwrap().len(), 6);
/// ```
pub fn ones(shape: &[u64]) -> Result<Coordinates> {
    let count = cells(shape)?;
    let mut entries = EntryCollector::new(shape, count)?;
    (0..count).for_each(|cell| entries.push_cell(cell, 1.0));
    Ok(entries.finish())
}

/// A square matrix with `b` diagonals on each side of the main one (all |i - j| <= b, so up to 2`b`
/// + 1 entries in a row), and values uniform in (0, 1) from seed 0.
///
/// ```
/// assert_eq!(tamis_tensor::gallery::banded(5, 1).unwrap().len(), 13);
/// ```
pub fn banded(n: u64, b: u64) -> Result<Coordinates> {
    banded_between(n, b, b, 0)
}

/// A square matrix with `lower` diagonals below the main one and `upper` above it, and values
/// uniform in (0, 1).
///
/// ```
/// let a = tamis_tensor::gallery::banded_between(5, 0, 1, 42)?;
/// assert_eq!(a.len(), 5 + 4, "the main diagonal, and one above it");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn banded_between(n: u64, lower: u64, upper: u64, seed: u64) -> Result<Coordinates> {
    // A side of b diagonals holds (n-1) + (n-2) + ... (b terms), but only n-1 diagonals exist.
    let side = |b: u64| {
        let (n, b) = (u128::from(n), u128::from(b.min(n.saturating_sub(1))));
        b * (2 * n - b).saturating_sub(1) / 2
    };
    let count = u128::from(n) + side(lower) + side(upper);
    rows_of_ranges(n, count, seed, |i| i.saturating_sub(lower)..i.saturating_add(upper).saturating_add(1).min(n))
}

/// The stored half of a triangular matrix; the diagonal always is.
///
/// ```
/// use tamis_tensor::gallery::{Triangle, triangular};
/// let lower = triangular(4, Triangle::Lower, 0)?;
/// assert_eq!(lower.columns[1].to_vec()[..3], [0, 0, 1], "row 0 ends at column 0");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Triangle {
    Lower,
    Upper,
}

/// A square matrix with one dense triangle, the diagonal included, and values uniform in (0, 1).
///
/// ```
/// use tamis_tensor::gallery::{Triangle, triangular};
/// assert_eq!(triangular(4, Triangle::Upper, 0).unwrap().len(), 10);
/// ```
pub fn triangular(n: u64, triangle: Triangle, seed: u64) -> Result<Coordinates> {
    let count = u128::from(n) * (u128::from(n) + 1) / 2;
    rows_of_ranges(n, count, seed, |i| match triangle {
        Triangle::Lower => 0..i + 1,
        Triangle::Upper => i..n,
    })
}

/// A square matrix with values uniform in (0, 1) on its diagonal and nothing else.
///
/// ```
/// let a = tamis_tensor::gallery::diagonal(4, 7)?;
/// assert_eq!(a.columns[0], a.columns[1]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn diagonal(n: u64, seed: u64) -> Result<Coordinates> {
    rows_of_ranges(n, u128::from(n), seed, |i| i..i + 1)
}

/// The identity: 1 on the diagonal.
///
/// ```
/// assert_eq!(tamis_tensor::gallery::identity(4).unwrap().values, vec![1.0; 4].into());
/// ```
pub fn identity(n: u64) -> Result<Coordinates> {
    let mut entries = EntryCollector::new(&[n, n], u128::from(n))?;
    if let Some((rows, columns, values)) = entries.matrix() {
        rows.range(0..n);
        columns.range(0..n);
        values.extend((0..n).map(|_| 1.0));
    }
    Ok(entries.finish())
}

/// A square matrix each of whose rows is one range of columns; `count` is their total length.
fn rows_of_ranges(n: u64, count: u128, seed: u64, range: impl Fn(u64) -> Range<u64>) -> Result<Coordinates> {
    let mut entries = EntryCollector::new(&[n, n], count)?;
    let mut stream = Stream::new(seed, StreamPurpose::Values);
    if let Some((rows, columns, values)) = entries.matrix() {
        for row in 0..n {
            let range = range(row);
            rows.repeat(row, range.end - range.start);
            values.extend(range.clone().map(|_| stream.unit()));
            columns.range(range);
        }
    }
    Ok(entries.finish())
}
