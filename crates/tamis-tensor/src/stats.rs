//! Facts about what a tensor stores: how much, in which fibers, and for matrices the structure.
//!
//! Everything here is linear, in time and memory, in the stored entries and the arrays of the levels; nothing has the
//! size of a dimension that is not stored, so a matrix of a trillion rows is no obstacle.

use crate::convert::{self, numbers};
use crate::levels::tree;
use crate::structure::{self, MatrixStatistics, Structure};
use crate::{Tensor, ValueArray};
use std::fmt;
use tamis_ir::format::DimExpr;
use tamis_ir::{Value, diag::Result};

/// What [`Tensor::statistics`] finds.
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
    /// What a format could make use of.
    pub structure: Structure,
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
