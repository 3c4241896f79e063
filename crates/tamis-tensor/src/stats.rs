//! Statistics of tensors: nnz, fiber lengths, and the structure of matrices.
//!
//! All statistics take time and memory linear in nnz and the arrays of the levels; nothing is
//! proportional to a dimension that is not stored, so a matrix of a trillion rows is feasible.

use crate::convert::{self, numbers};
use crate::levels::tree;
use crate::structure::{self, MatrixStatistics, Structure};
use crate::{Tensor, ValueArray};
use std::fmt;
use tamis_ir::format::DimExpr;
use tamis_ir::{Value, diag::Result};

/// The statistics of [`Tensor::statistics`].
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let a = Tensor::from_coordinates(&gallery::laplacian(10)?, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let found = a.statistics()?;
/// assert_eq!((found.stored, found.levels[1].most), (460, 5));
/// assert!(found.structure.diagonals.is_some());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The number of stored entries, as in [`Tensor::nnz`].
    pub stored: usize,
    /// The number of stored zeros.
    pub explicit_zeros: usize,
    /// The number of stored entries that equal the fill.
    pub explicit_fills: usize,
    /// Stored entries per coordinate, from 0 to 1 (0 when there are no coordinates).
    pub density: f64,
    /// Bytes of all arrays.
    pub nbytes: usize,
    /// One for each level, outermost first.
    pub levels: Vec<LevelStatistics>,
    /// For rank 2.
    pub matrix: Option<MatrixStatistics>,
    /// The recognised structure.
    pub structure: Structure,
}

/// The occupancy of the fibers of one level.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::banded(5, 1)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let columns = &a.statistics()?.levels[1];
/// assert_eq!((columns.fibers, columns.least, columns.most), (5, 2, 3));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStatistics {
    /// The level in the text form of formats.
    pub name: String,
    /// The dimension it stores; of a difference, the first one.
    pub dimension: usize,
    /// The expression of dimensions that it stores.
    pub stores: DimExpr,
    /// The size of the level.
    pub size: u64,
    /// The number of fibers: one for each stored position above; a run counts once.
    pub fibers: usize,
    /// The number of stored coordinates of all fibers.
    pub coordinates: usize,
    /// The number of empty fibers.
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

impl Tensor {
    /// Statistics and structure of the stored entries; a diagnostic if memory is exhausted.
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
        let (structure, matrix) = structure::recognise(self)?;
        Ok(Statistics {
            stored,
            explicit_zeros: zeros,
            explicit_fills: fills,
            density: if cells > 0.0 { stored as f64 / cells } else { 0.0 },
            nbytes: self.nbytes(),
            levels: level_statistics(self)?,
            matrix,
            structure,
        })
    }

    /// The number of stored values that equal `zero`, and of those that equal the fill.
    fn count_stored(&self, zero: Value) -> Result<(usize, usize)> {
        let Some(values) = self.values() else { return Ok((0, 0)) };
        if tree::shares(self.format().levels()) && self.format().is_onto(self.shape()) {
            // The value of a run counts for each of its coordinates.
            let weights = tree::weights(self.levels())?;
            let equal = |number: Value| {
                let differing = numbers::differing(values, number)?;
                let equal = weights.iter().enumerate().filter(|(at, _)| !differing.is_set(*at));
                Ok(equal.fold(0usize, |sum, (_, weight)| sum.saturating_add(*weight)))
            };
            return Ok((equal(zero)?, equal(self.fill())?));
        }
        let gathered;
        // Positions that are not stored (the holes of a bytemap) hold implicit fills.
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
    // The stored parent positions: a count for all of them, until a level with holes requires a
    // list.
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
            // All fibers are equal, and their number may exceed the memory.
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
        let facts: Vec<&str> = matrix.shape_word().into_iter().chain(matrix.symmetry_word()).collect();
        if facts.is_empty() { Ok(()) } else { write!(f, "\n  {}", facts.join(", ")) }
    }
}
