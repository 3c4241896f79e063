//! Recognition of matrix properties: symmetry, triangles, permutations, bandwidths, rows and
//! columns.

use super::SortedEntries;
use crate::convert::numbers;
use crate::{Index, IndexArray, ValueArray, with_indices};
use tamis_ir::{DType, Value, diag::Result};

/// The structure of a matrix: of its stored entries without padding (a `dense` level stores the
/// fill as well; values that equal it do not count).
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::laplacian(10)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let matrix = a.statistics()?.matrix.unwrap();
/// assert!(matrix.symmetric && matrix.lower_bandwidth == 10);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct MatrixStatistics {
    /// The lower bandwidth: the largest row minus column.
    pub lower_bandwidth: u64,
    /// The upper bandwidth: the largest column minus row.
    pub upper_bandwidth: u64,
    pub empty_rows: u64,
    pub empty_columns: u64,
    /// The minimum and maximum number of entries in a row, and the mean.
    pub least_per_row: usize,
    pub most_per_row: usize,
    pub mean_per_row: f64,
    /// The minimum and maximum number of entries in a column, and the mean.
    pub least_per_column: usize,
    pub most_per_column: usize,
    pub mean_per_column: f64,
    /// The numbers of rows and of columns with exactly one entry.
    pub rows_with_one: u64,
    pub columns_with_one: u64,
    /// The number of entries on the diagonal.
    pub diagonal_entries: usize,
    /// The number of nonzero entries on the diagonal.
    pub diagonal_nonzeros: usize,
    /// The pattern is symmetric: if (i,j) is stored, (j,i) is, too.
    pub structurally_symmetric: bool,
    /// The value at (j,i) is that at (i,j).
    pub symmetric: bool,
    /// The value at (j,i) is minus that at (i,j).
    pub skew_symmetric: bool,
    /// The value at (j,i) is the complex conjugate of that at (i,j).
    pub hermitian: bool,
    /// No entry lies above the diagonal.
    pub lower_triangular: bool,
    /// No entry lies below the diagonal.
    pub upper_triangular: bool,
    /// Triangular, without entries on the diagonal.
    pub strictly_triangular: bool,
    /// The diagonal consists of ones.
    pub unit_diagonal: bool,
    /// No entry lies off the diagonal.
    pub diagonal: bool,
    /// Each row and each column holds exactly one entry, which is one.
    pub permutation: bool,
}

impl MatrixStatistics {
    /// The fraction of the cells between the bandwidths that are entries, from 0 to 1.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::{Combine, Tensor, gallery};
    /// let entries = gallery::banded(100, 2)?;
    /// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let matrix = a.statistics()?.matrix.unwrap();
    /// assert_eq!(matrix.band_filled(a.shape(), a.nnz()), 1.0);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn band_filled(&self, shape: &[u64], entries: usize) -> f64 {
        let (rows, columns) = (shape.first().copied().unwrap_or(0), shape.last().copied().unwrap_or(0));
        let cells = band_cells(rows, columns, self.lower_bandwidth, self.upper_bandwidth);
        if cells == 0 { 0.0 } else { entries as f64 / cells as f64 }
    }

    /// The most specific word for its shape: `permutation`, `diagonal`, `upper triangular`; `None`
    /// for most matrices.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::{Combine, Tensor, gallery};
    /// let entries = gallery::permutation(20, 0)?;
    /// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// assert_eq!(a.statistics()?.matrix.unwrap().shape_word(), Some("permutation"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn shape_word(&self) -> Option<&'static str> {
        let words = [
            (self.diagonal && self.permutation, "identity"),
            (self.diagonal, "diagonal"),
            (self.permutation, "permutation"),
            (self.lower_triangular && self.strictly_triangular, "strictly lower triangular"),
            (self.upper_triangular && self.strictly_triangular, "strictly upper triangular"),
            (self.lower_triangular && self.unit_diagonal, "unit lower triangular"),
            (self.upper_triangular && self.unit_diagonal, "unit upper triangular"),
            (self.lower_triangular, "lower triangular"),
            (self.upper_triangular, "upper triangular"),
        ];
        words.iter().find(|(holds, _)| *holds).map(|(_, word)| *word)
    }

    /// The most specific word for its symmetry.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::{Combine, Tensor, gallery};
    /// let entries = gallery::laplacian(4)?;
    /// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// assert_eq!(a.statistics()?.matrix.unwrap().symmetry_word(), Some("symmetric"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn symmetry_word(&self) -> Option<&'static str> {
        let words = [
            (self.symmetric, "symmetric"),
            (self.hermitian, "hermitian"),
            (self.skew_symmetric, "skew-symmetric"),
            (self.structurally_symmetric, "structurally symmetric"),
        ];
        words.iter().find(|(holds, _)| *holds).map(|(_, word)| *word)
    }
}

/// Statistics of the matrix of these entries, which are given by row and by column.
pub(super) fn matrix_statistics(
    shape: &[u64],
    fill: Value,
    by_row: &SortedEntries,
    by_column: &SortedEntries,
) -> Result<MatrixStatistics> {
    let ([rows, columns], [transposed_rows, transposed_columns]) = (&by_row.columns[..], &by_column.columns[..]) else {
        return Ok(empty_matrix(shape));
    };
    let dtype = fill.dtype();
    let one = Value::one(dtype);
    let near = near_diagonal(rows, columns, by_row.values.as_ref(), one);
    let (row_counts, column_counts) = (Frequencies::of(rows), Frequencies::of(transposed_rows));
    let square = shape[0] == shape[1];
    let structural = square && same_numbers(rows, transposed_rows) && same_numbers(columns, transposed_columns);
    let pairs = |agree: fn(Value, Value) -> bool| match (&by_row.values, &by_column.values) {
        (Some(a), Some(b)) => structural && (0..a.len()).all(|k| agree(a.get(k), b.get(k))),
        _ => structural,
    };
    let all_ones =
        by_row.values.as_ref().map_or(Ok(true), |values| Ok(numbers::differing(values, one)?.count() == 0))?;
    let len = by_row.len;
    let (upper_triangular, lower_triangular) = (square && near.lower == 0, square && near.upper == 0);
    Ok(MatrixStatistics {
        lower_bandwidth: near.lower,
        upper_bandwidth: near.upper,
        empty_rows: shape[0] - row_counts.distinct,
        empty_columns: shape[1] - column_counts.distinct,
        least_per_row: if row_counts.distinct < shape[0] { 0 } else { row_counts.least },
        most_per_row: row_counts.most,
        mean_per_row: mean(len, shape[0]),
        least_per_column: if column_counts.distinct < shape[1] { 0 } else { column_counts.least },
        most_per_column: column_counts.most,
        mean_per_column: mean(len, shape[1]),
        rows_with_one: row_counts.single,
        columns_with_one: column_counts.single,
        diagonal_entries: near.entries,
        diagonal_nonzeros: near.nonzeros,
        structurally_symmetric: structural,
        symmetric: pairs(Value::same_number),
        // For a skew-symmetric matrix, the fill must equal its own negation.
        skew_symmetric: dtype != DType::Bool && negated(fill, fill) && by_row.values.is_some() && pairs(negated),
        hermitian: conjugated(fill, fill) && pairs(conjugated),
        lower_triangular,
        upper_triangular,
        strictly_triangular: (upper_triangular || lower_triangular) && near.entries == 0,
        unit_diagonal: square && near.ones as u64 == shape[0] && shape[0] > 0,
        diagonal: lower_triangular && upper_triangular,
        permutation: square
            && len as u64 == shape[0]
            && row_counts.distinct == shape[0]
            && column_counts.distinct == shape[1]
            && all_ones,
    })
}

fn empty_matrix(shape: &[u64]) -> MatrixStatistics {
    let square = shape.first() == shape.last();
    MatrixStatistics {
        lower_bandwidth: 0,
        upper_bandwidth: 0,
        empty_rows: shape.first().copied().unwrap_or(0),
        empty_columns: shape.last().copied().unwrap_or(0),
        least_per_row: 0,
        most_per_row: 0,
        mean_per_row: 0.0,
        least_per_column: 0,
        most_per_column: 0,
        mean_per_column: 0.0,
        rows_with_one: 0,
        columns_with_one: 0,
        diagonal_entries: 0,
        diagonal_nonzeros: 0,
        structurally_symmetric: square,
        symmetric: square,
        skew_symmetric: square,
        hermitian: square,
        lower_triangular: square,
        upper_triangular: square,
        strictly_triangular: square,
        unit_diagonal: false,
        diagonal: square,
        permutation: false,
    }
}

/// The number of cells between the bandwidths.
fn band_cells(rows: u64, columns: u64, lower: u64, upper: u64) -> u128 {
    // Outside of the band lie diagonals of 1, 2, ... cells, none longer than the matrix is high.
    let beyond = |across: u64, down: u64, bandwidth: u64| {
        let (steps, down) = (across.saturating_sub(bandwidth).saturating_sub(1) as u128, down as u128);
        let short = steps.min(down);
        short * (short + 1) / 2 + (steps - short) * down
    };
    let all = rows as u128 * columns as u128;
    all.saturating_sub(beyond(columns, rows, upper)).saturating_sub(beyond(rows, columns, lower))
}

fn mean(entries: usize, extent: u64) -> f64 {
    if extent == 0 { 0.0 } else { entries as f64 / extent as f64 }
}

/// The entries near the diagonal.
#[derive(Default)]
struct NearDiagonal {
    /// The bandwidths.
    lower: u64,
    upper: u64,
    /// The numbers of entries, of nonzeros and of ones on the diagonal.
    entries: usize,
    nonzeros: usize,
    ones: usize,
}

fn near_diagonal(rows: &IndexArray, columns: &IndexArray, values: Option<&ValueArray>, one: Value) -> NearDiagonal {
    let mut near = NearDiagonal::default();
    with_indices!(rows, rows => with_indices!(columns, columns => {
        for (k, (row, column)) in rows.iter().zip(columns.iter()).enumerate() {
            let (row, column) = (row.to_u64(), column.to_u64());
            near.lower = near.lower.max(row.saturating_sub(column));
            near.upper = near.upper.max(column.saturating_sub(row));
            if row == column {
                let value = values.map_or(Value::Bool(true), |values| values.get(k));
                near.entries += 1;
                near.nonzeros += usize::from(value.is_truthy());
                near.ones += usize::from(values.is_none() || value.same_number(one));
            }
        }
    }));
    near
}

/// A histogram of a sorted list of numbers.
struct Frequencies {
    /// The number of distinct numbers.
    distinct: u64,
    /// The frequencies of the rarest and the most frequent number.
    least: usize,
    most: usize,
    /// The number of numbers that occur once.
    single: u64,
}

impl Frequencies {
    fn of(sorted: &IndexArray) -> Frequencies {
        let mut counts = Frequencies { distinct: 0, least: usize::MAX, most: 0, single: 0 };
        with_indices!(sorted, sorted => for run in sorted.chunk_by(|a, b| a == b) {
            counts.distinct += 1;
            counts.least = counts.least.min(run.len());
            counts.most = counts.most.max(run.len());
            counts.single += u64::from(run.len() == 1);
        });
        if counts.distinct == 0 {
            counts.least = 0;
        }
        counts
    }
}

fn same_numbers(a: &IndexArray, b: &IndexArray) -> bool {
    with_indices!(a, a => with_indices!(b, b => {
        a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.to_u64() == b.to_u64())
    }))
}

fn negated(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::U64(a), Value::U64(b)) => a == 0 && b == 0,
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.checked_neg() == Some(b),
            _ => a.as_c128() == -b.as_c128(),
        },
    }
}

fn conjugated(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::C64(a), Value::C64(b)) => a == b.conj(),
        (Value::C128(a), Value::C128(b)) => a == b.conj(),
        _ => a.same_number(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_bands() {
        for rows in 0..7u64 {
            for columns in 0..7u64 {
                for (lower, upper) in [(0, 0), (1, 2), (3, 0), (9, 9), (0, 6)] {
                    let inside = |i: u64, j: u64| i.saturating_sub(j) <= lower && j.saturating_sub(i) <= upper;
                    let cells = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
                    let counted = cells.filter(|(i, j)| inside(*i, *j)).count();
                    let found = band_cells(rows, columns, lower, upper);
                    assert_eq!(found, counted as u128, "{rows} x {columns}, {lower} below, {upper} above");
                }
            }
        }
        assert_eq!(band_cells(u64::MAX, u64::MAX, 0, 0), u64::MAX as u128);
    }
}
