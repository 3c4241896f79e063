//! Recognition: what of the entries of a tensor a format could make use of. Bands, blocks, runs, diagonals, equal rows,
//! equal values.
//!
//! Everything is linear in what is stored, in time and memory, like the rest of [`crate::Statistics`].

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
pub use propose::{Mirror, Part, Proposal, propose};

use crate::convert::{self, numbers, reorder};
use crate::{IndexArray, Tensor, ValueArray};
use tamis_ir::format::DimExpr;
use tamis_ir::{Value, diag::Result};

/// What the entries of a tensor are like; entries that are only padding (fills that a `dense` level stores) are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// How many entries there are.
    pub entries: usize,
    /// The value of all entries, if they have one value: a pattern would do.
    pub constant: Option<Value>,
    /// For each dimension, how many different tuples its coordinates and those of the dimensions before it form.
    pub prefixes: Vec<usize>,
    /// For each dimension, what lies along it.
    pub lines: Vec<Lines>,
    /// Whether neighbouring slices along the first dimension (the rows of a matrix) are equal; from rank 2 on.
    pub slices: Option<Slices>,
    /// Of a matrix, aligned blocks at least half of whose cells are entries, best first.
    pub blocks: Vec<BlockFit>,
    /// The diagonals of a matrix.
    pub diagonals: Option<Diagonals>,
}

/// Entries sorted by their columns.
pub(crate) struct Sorted {
    /// The coordinates of every entry, one column for each dimension, most significant first.
    pub(crate) columns: Vec<IndexArray>,
    pub(crate) values: Option<ValueArray>,
    pub(crate) len: usize,
}

impl Sorted {
    fn new(entries: &convert::Entries) -> Result<Sorted> {
        Ok(Sorted { columns: entries.columns()?, values: entries.values.clone(), len: entries.len })
    }
}

/// What is recognised of a tensor, and the statistics of a matrix.
pub(crate) fn recognise(tensor: &Tensor) -> Result<(Structure, Option<MatrixStatistics>)> {
    let (shape, rank) = (tensor.shape(), tensor.rank());
    let entries = convert::entries(tensor, tensor.fill())?;
    let entries = reorder::reorder(entries, shape, &convert::axes::whole(rank))?;
    let sorted = Sorted::new(&entries)?;
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
        let turned = Sorted::new(&reorder::reorder(entries.clone(), shape, &axes)?)?;
        found.lines.push(lines::along_last(&turned, shape, dimension)?.1);
        if rank == 2 {
            matrix = Some(matrix::matrix_statistics(shape, tensor.fill(), &sorted, &turned)?);
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

/// The value that all entries have.
fn constant(sorted: &Sorted) -> Result<Option<Value>> {
    match &sorted.values {
        _ if sorted.len == 0 => Ok(None),
        None => Ok(Some(Value::Bool(true))),
        Some(values) => {
            let first = values.get(0);
            Ok((numbers::differing(values, first)?.count() == 0).then_some(first))
        }
    }
}
