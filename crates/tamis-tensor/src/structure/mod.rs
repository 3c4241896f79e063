//! Recognition of structure in the entries of a tensor: bands, blocks, runs, diagonals, equal rows,
//! equal values.
//!
//! All analyses take time and memory linear in nnz, like the rest of [`crate::Statistics`].

mod blocks;
mod diagonals;
mod lines;
mod matrix;
mod propose;
mod remarks;

pub use blocks::{BLOCK_SIDES, BlockFit};
pub use diagonals::Diagonals;
pub use lines::{Lines, Slices};
pub use matrix::MatrixStatistics;
pub use propose::{Mirror, Proposal, StoredPart, propose};

use crate::convert::{self, numbers, reorder};
use crate::{IndexArray, Tensor, ValueArray};
use tamis_ir::format::DimExpr;
use tamis_ir::{Value, diag::Result};

/// The structure of the entries of a tensor, without padding (fills that a `dense` level stores).
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::identity(50)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let structure = a.statistics()?.structure;
/// assert_eq!((structure.entries, structure.constant), (50, Some(Value::F64(1.0))));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// The number of entries.
    pub entries: usize,
    /// The value of all entries, if they are equal: a pattern would suffice.
    pub constant: Option<Value>,
    /// For each dimension, the number of distinct tuples of its coordinates and those of the
    /// earlier dimensions.
    pub prefixes: Vec<usize>,
    /// For each dimension, the lines along it.
    pub lines: Vec<Lines>,
    /// Equal adjacent slices along the first dimension (the rows of a matrix); from rank 2 on.
    pub slices: Option<Slices>,
    /// The fitting block sizes of a matrix, with a fill ratio of at least a half, best first.
    pub blocks: Vec<BlockFit>,
    /// The diagonals of a matrix.
    pub diagonals: Option<Diagonals>,
}

/// Entries sorted by their columns.
pub(crate) struct SortedEntries {
    /// The coordinates of every entry, one column for each dimension, most significant first.
    pub(crate) columns: Vec<IndexArray>,
    pub(crate) values: Option<ValueArray>,
    pub(crate) len: usize,
}

impl SortedEntries {
    fn new(entries: &convert::EntryColumns) -> Result<SortedEntries> {
        Ok(SortedEntries { columns: entries.columns()?, values: entries.values.clone(), len: entries.len })
    }
}

/// The structure of a tensor, and the statistics of a matrix.
pub(crate) fn recognise(tensor: &Tensor) -> Result<(Structure, Option<MatrixStatistics>)> {
    let (shape, rank) = (tensor.shape(), tensor.rank());
    let entries = convert::entries(tensor, tensor.fill())?;
    let entries = reorder::reorder(entries, shape, &convert::axes::whole(rank))?;
    let sorted = SortedEntries::new(&entries)?;
    let (prefixes, last) = lines::along_last(&sorted, shape, rank.wrapping_sub(1))?;
    let mut found = Structure {
        entries: sorted.len,
        constant: constant(&sorted)?,
        prefixes,
        lines: Vec::new(),
        slices: lines::slices(&sorted, shape),
        blocks: Vec::new(),
        diagonals: None,
    };
    let mut matrix = None;
    for dimension in 0..rank.saturating_sub(1) {
        let others = (0..rank).filter(|d| *d != dimension);
        let axes: Vec<DimExpr> = others.chain([dimension]).map(DimExpr::Dim).collect();
        let transposed = SortedEntries::new(&reorder::reorder(entries.clone(), shape, &axes)?)?;
        found.lines.push(lines::along_last(&transposed, shape, dimension)?.1);
        if rank == 2 {
            matrix = Some(matrix::matrix_statistics(shape, tensor.fill(), &sorted, &transposed)?);
        }
    }
    if rank > 0 {
        found.lines.push(last);
    }
    if let [rows, columns] = &sorted.columns[..] {
        found.blocks = blocks::fits(rows, columns, shape)?;
        found.diagonals = Some(diagonals::diagonals(rows, columns, shape)?);
    }
    Ok((found, matrix))
}

/// The common value of all entries.
fn constant(sorted: &SortedEntries) -> Result<Option<Value>> {
    match &sorted.values {
        _ if sorted.len == 0 => Ok(None),
        None => Ok(Some(Value::Bool(true))),
        Some(values) => {
            let first = values.get(0);
            Ok((numbers::differing(values, first)?.count() == 0).then_some(first))
        }
    }
}
