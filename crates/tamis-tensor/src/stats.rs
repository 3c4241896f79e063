//! Facts about what a tensor stores: how much, in which fibers, and for matrices the structure.
//!
//! Everything here is linear, in time and memory, in the stored entries and the arrays of the levels; nothing has the
//! size of a dimension that is not stored, so a matrix of a trillion rows is no obstacle.

use crate::convert::{self, numbers, reorder};
use crate::levels::tree;
use crate::{IndexArray, Tensor, ValueArray, with_indices};
use std::fmt;
use tamis_ir::format::DimExpr;
use tamis_ir::{DType, Value, diag::Result};

/// What [`Tensor::statistics`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// How many entries are stored, as [`Tensor::nnz`] counts them.
    pub stored: usize,
    /// How many of them are zero.
    pub explicit_zeros: usize,
    /// How many of them equal the fill.
    pub explicit_fills: usize,
    /// Stored entries per coordinate, from 0 to 1 (0 when there are no coordinates).
    pub density: f64,
    /// Bytes of all arrays.
    pub nbytes: usize,
    /// One for each level, outermost first.
    pub levels: Vec<LevelStatistics>,
    /// For rank 2.
    pub matrix: Option<MatrixStatistics>,
}

/// How the fibers of one level are filled.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStatistics {
    /// The level as formats write it.
    pub name: String,
    /// The dimension it stores; of a difference, the first one.
    pub dimension: usize,
    /// What it stores of the dimensions.
    pub stores: DimExpr,
    /// How many coordinates the level has.
    pub size: u64,
    /// How many fibers there are: one for each stored position above, which a run is, however long.
    pub fibers: usize,
    /// How many coordinates are stored in all of them.
    pub coordinates: usize,
    /// How many fibers store nothing.
    pub empty_fibers: usize,
    /// The fewest coordinates in a fiber (0 without fibers).
    pub least: usize,
    /// Coordinates per fiber, on average.
    pub mean: f64,
    /// The most coordinates in a fiber.
    pub most: usize,
    /// Bytes of the level's arrays.
    pub nbytes: usize,
}

/// The structure of a matrix: of its stored entries, except those that are only padding (a `dense` level stores the
/// fill as well; what equals it does not count).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct MatrixStatistics {
    /// How far entries lie below the diagonal at most: the largest row minus column.
    pub lower_bandwidth: u64,
    /// How far entries lie above the diagonal at most: the largest column minus row.
    pub upper_bandwidth: u64,
    pub empty_rows: u64,
    pub empty_columns: u64,
    /// The most entries in a row, and the entries per row on average.
    pub most_per_row: usize,
    pub mean_per_row: f64,
    /// The most entries in a column, and the entries per column on average.
    pub most_per_column: usize,
    pub mean_per_column: f64,
    /// Entries on the diagonal that are not zero.
    pub diagonal_nonzeros: usize,
    /// Where (i,j) is stored, (j,i) is, too.
    pub structurally_symmetric: bool,
    /// The value at (j,i) is that at (i,j).
    pub symmetric: bool,
    /// The value at (j,i) is minus that at (i,j).
    pub skew_symmetric: bool,
    /// The value at (j,i) is the complex conjugate of that at (i,j).
    pub hermitian: bool,
    /// Nothing lies above the diagonal.
    pub lower_triangular: bool,
    /// Nothing lies below the diagonal.
    pub upper_triangular: bool,
    /// Nothing lies off the diagonal.
    pub diagonal: bool,
    /// Each row and each column holds exactly one entry, which is one.
    pub permutation: bool,
}

impl Tensor {
    /// Counts and structure of what is stored; a diagnostic if there is not enough memory to find out.
    ///
    /// ```
    /// use tamis_ir::{Format, Value};
    /// use tamis_tensor::Tensor;
    /// let values = vec![2.0, -1.0, 0.0, -1.0, 2.0, -1.0, 0.0, -1.0, 2.0].into();
    /// let a = Tensor::from_dense(&[3, 3], values, &Format::csr(), Value::F64(0.0))?;
    /// let matrix = a.statistics()?.matrix.unwrap();
    /// assert!(matrix.symmetric && !matrix.diagonal);
    /// assert_eq!((matrix.lower_bandwidth, matrix.upper_bandwidth), (1, 1));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn statistics(&self) -> Result<Statistics> {
        let stored = self.nnz();
        let cells: f64 = self.shape().iter().map(|n| *n as f64).product();
        let (zeros, fills) = self.count_stored(Value::zero(self.dtype()))?;
        Ok(Statistics {
            stored,
            explicit_zeros: zeros,
            explicit_fills: fills,
            density: if cells > 0.0 { stored as f64 / cells } else { 0.0 },
            nbytes: self.nbytes(),
            levels: level_statistics(self)?,
            matrix: if self.rank() == 2 { Some(matrix_statistics(self)?) } else { None },
        })
    }

    /// How many stored values are the number `zero`, and how many the fill.
    fn count_stored(&self, zero: Value) -> Result<(usize, usize)> {
        let Some(values) = self.values() else { return Ok((0, 0)) };
        if tree::shares(self.format().levels()) && self.format().is_onto(self.shape()) {
            // The value of a run stands for each of its coordinates.
            let weights = tree::weights(self.levels())?;
            let equal = |number: Value| {
                let differing = numbers::differing(values, number)?;
                let equal = weights.iter().enumerate().filter(|(at, _)| !differing.is_set(*at));
                Ok(equal.fold(0usize, |sum, (_, weight)| sum.saturating_add(*weight)))
            };
            return Ok((equal(zero)?, equal(self.fill())?));
        }
        let gathered;
        // Positions that are not stored (the holes of a bytemap) hold fills that nobody stored.
        let values: &ValueArray = if values.len() == self.nnz() {
            values
        } else {
            let stored = convert::stored_entries(self)?;
            gathered = stored.values;
            match &gathered {
                Some(values) => values,
                None => return Ok((0, 0)),
            }
        };
        let equal = |number: Value| Ok(values.len() - numbers::differing(values, number)?.count());
        Ok((equal(zero)?, equal(self.fill())?))
    }
}

fn level_statistics(tensor: &Tensor) -> Result<Vec<LevelStatistics>> {
    let mut all = Vec::with_capacity(tensor.levels().len());
    // The stored positions above: all of them up to a count, until a level with holes makes a list necessary.
    let mut fibers = 1;
    let mut reached: Option<Vec<usize>> = None;
    for (k, level) in tensor.levels().iter().enumerate() {
        let capabilities = level.level_type().capabilities;
        let (mut coordinates, mut least, mut most, mut empty) = (0usize, usize::MAX, 0, 0);
        let mut count = |length: usize, times: usize| {
            coordinates = coordinates.saturating_add(length.saturating_mul(times));
            (least, most) = (least.min(length), most.max(length));
            empty += if length == 0 { times } else { 0 };
        };
        match &reached {
            // All fibers are alike, and there may be more of them than anything has room for.
            _ if (capabilities.full || capabilities.one_per_fiber) && fibers > 0 => {
                count(level.fiber_length(0), fibers)
            }
            Some(list) => list.iter().for_each(|parent| count(level.fiber_length(*parent), 1)),
            None => (0..fibers).for_each(|parent| count(level.fiber_length(parent), 1)),
        }
        let stores = tensor.format().map()[k];
        all.push(LevelStatistics {
            name: tensor.format().levels()[k].to_string(),
            dimension: stores.dimension(),
            stores,
            size: tensor.extents()[k],
            fibers,
            coordinates,
            empty_fibers: empty,
            least: if fibers == 0 { 0 } else { least },
            mean: if fibers == 0 { 0.0 } else { coordinates as f64 / fibers as f64 },
            most,
            nbytes: level.arrays().nbytes(),
        });
        if coordinates == 0 {
            reached = Some(Vec::new());
        } else if capabilities.holes || reached.is_some() {
            let parents = reached.take().unwrap_or_else(|| (0..fibers).collect());
            reached = Some(tree::reached_below(level, &parents)?);
        }
        fibers = reached.as_ref().map_or(level.children(), Vec::len);
    }
    Ok(all)
}

fn matrix_statistics(tensor: &Tensor) -> Result<MatrixStatistics> {
    let (shape, dtype) = (tensor.shape(), tensor.dtype());
    let entries = convert::entries(tensor, tensor.fill())?;
    let by_row = reorder::reorder(entries, shape, &[DimExpr::Dim(0), DimExpr::Dim(1)])?;
    let by_column = reorder::reorder(by_row.clone(), shape, &[DimExpr::Dim(1), DimExpr::Dim(0)])?;
    let (row_columns, column_columns) = (by_row.columns()?, by_column.columns()?);
    let ([rows, columns], [transposed_rows, transposed_columns]) = (&row_columns[..], &column_columns[..]) else {
        return Ok(empty_matrix(shape));
    };
    let (lower, upper, on_diagonal) = offsets(rows, columns, by_row.values.as_ref());
    let (row_count, most_per_row) = runs(rows);
    let (column_count, most_per_column) = runs(transposed_rows);
    let square = shape[0] == shape[1];
    let structural = square && same_numbers(rows, transposed_rows) && same_numbers(columns, transposed_columns);
    let pairs = |agree: fn(Value, Value) -> bool| match (&by_row.values, &by_column.values) {
        (Some(a), Some(b)) => structural && (0..a.len()).all(|k| agree(a.get(k), b.get(k))),
        _ => structural,
    };
    let one = Value::one(dtype);
    let all_ones =
        by_row.values.as_ref().map_or(Ok(true), |values| Ok(numbers::differing(values, one)?.count() == 0))?;
    let len = by_row.len;
    let fill = tensor.fill();
    Ok(MatrixStatistics {
        lower_bandwidth: lower,
        upper_bandwidth: upper,
        empty_rows: shape[0] - row_count,
        empty_columns: shape[1] - column_count,
        most_per_row,
        mean_per_row: mean(len, shape[0]),
        most_per_column,
        mean_per_column: mean(len, shape[1]),
        diagonal_nonzeros: on_diagonal,
        structurally_symmetric: structural,
        symmetric: pairs(Value::same_number),
        // Where nothing is stored, the fill must be minus itself.
        skew_symmetric: dtype != DType::Bool && negated(fill, fill) && by_row.values.is_some() && pairs(negated),
        hermitian: conjugated(fill, fill) && pairs(conjugated),
        lower_triangular: square && upper == 0,
        upper_triangular: square && lower == 0,
        diagonal: square && lower == 0 && upper == 0,
        permutation: square && len as u64 == shape[0] && row_count == shape[0] && column_count == shape[1] && all_ones,
    })
}

fn empty_matrix(shape: &[u64]) -> MatrixStatistics {
    let square = shape.first() == shape.last();
    MatrixStatistics {
        lower_bandwidth: 0,
        upper_bandwidth: 0,
        empty_rows: shape.first().copied().unwrap_or(0),
        empty_columns: shape.last().copied().unwrap_or(0),
        most_per_row: 0,
        mean_per_row: 0.0,
        most_per_column: 0,
        mean_per_column: 0.0,
        diagonal_nonzeros: 0,
        structurally_symmetric: square,
        symmetric: square,
        skew_symmetric: square,
        hermitian: square,
        lower_triangular: square,
        upper_triangular: square,
        diagonal: square,
        permutation: false,
    }
}

fn mean(entries: usize, extent: u64) -> f64 {
    if extent == 0 { 0.0 } else { entries as f64 / extent as f64 }
}

/// The bandwidths, and how many entries on the diagonal are not zero.
fn offsets(rows: &IndexArray, columns: &IndexArray, values: Option<&ValueArray>) -> (u64, u64, usize) {
    let (mut lower, mut upper, mut on_diagonal) = (0, 0, 0);
    with_indices!(rows, rows => with_indices!(columns, columns => {
        for (k, (row, column)) in rows.iter().zip(columns.iter()).enumerate() {
            let (row, column) = (crate::Index::to_u64(*row), crate::Index::to_u64(*column));
            lower = lower.max(row.saturating_sub(column));
            upper = upper.max(column.saturating_sub(row));
            on_diagonal += usize::from(row == column && values.is_none_or(|values| values.get(k).is_truthy()));
        }
    }));
    (lower, upper, on_diagonal)
}

/// How many distinct numbers a sorted list has, and how often the most frequent one occurs.
fn runs(sorted: &IndexArray) -> (u64, usize) {
    with_indices!(sorted, sorted => {
        sorted.chunk_by(|a, b| a == b).fold((0, 0), |(count, most), run| (count + 1, most.max(run.len())))
    })
}

fn same_numbers(a: &IndexArray, b: &IndexArray) -> bool {
    with_indices!(a, a => with_indices!(b, b => {
        a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| crate::Index::to_u64(*a) == crate::Index::to_u64(*b))
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

/// A few lines for people.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} stored ({} zero), density {:.3e}, {} bytes",
            self.stored, self.explicit_zeros, self.density, self.nbytes
        )?;
        for (k, level) in self.levels.iter().enumerate() {
            write!(
                f,
                "\n  level {k} {}: size {}, {} fibers ({} empty), {} coordinates, {} to {} per fiber, {:.2} on average",
                level.name,
                level.size,
                level.fibers,
                level.empty_fibers,
                level.coordinates,
                level.least,
                level.most,
                level.mean
            )?;
        }
        let Some(matrix) = &self.matrix else { return Ok(()) };
        write!(
            f,
            "\n  matrix: bandwidth {} below and {} above the diagonal, {} nonzeros on it",
            matrix.lower_bandwidth, matrix.upper_bandwidth, matrix.diagonal_nonzeros
        )?;
        write!(
            f,
            "\n  rows: at most {}, {:.2} on average, {} empty; columns: at most {}, {:.2} on average, {} empty",
            matrix.most_per_row,
            matrix.mean_per_row,
            matrix.empty_rows,
            matrix.most_per_column,
            matrix.mean_per_column,
            matrix.empty_columns
        )?;
        let facts = [
            (matrix.permutation, "permutation"),
            (matrix.diagonal, "diagonal"),
            (matrix.lower_triangular, "lower triangular"),
            (matrix.upper_triangular, "upper triangular"),
            (matrix.symmetric, "symmetric"),
            (matrix.skew_symmetric, "skew-symmetric"),
            (matrix.hermitian, "hermitian"),
            (matrix.structurally_symmetric, "structurally symmetric"),
        ];
        let facts: Vec<&str> = facts.iter().filter(|(holds, _)| *holds).map(|(_, name)| *name).collect();
        if facts.is_empty() { Ok(()) } else { write!(f, "\n  {}", facts.join(", ")) }
    }
}
