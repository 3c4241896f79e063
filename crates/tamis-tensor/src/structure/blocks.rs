//! Recognition of blocks: aligned blocks of one size that hold the entries of a matrix, and their
//! fill ratio.

use crate::memory::zeroed;
use crate::{Index, IndexArray, with_indices};
use tamis_ir::diag::Result;

/// The candidate heights and widths of blocks.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{BLOCK_SIDES, Combine, Tensor, gallery};
/// let entries = gallery::blocked(64, 4, 0.2, 0)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let blocks = a.statistics()?.structure.blocks;
/// assert!(blocks.iter().any(|fit| BLOCK_SIDES.contains(&fit.rows) && fit.rows == 4));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub const BLOCK_SIDES: [u64; 5] = [2, 3, 4, 6, 8];

/// The minimum fill ratio of blocks.
const FITTING: f64 = 0.5;

/// Aligned blocks of one size.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::blocked(64, 4, 0.2, 0)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let best = &a.statistics()?.structure.blocks[0];
/// assert_eq!((best.rows, best.columns, best.filled), (4, 4, 1.0));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockFit {
    /// The height of a block.
    pub rows: u64,
    /// The width of a block.
    pub columns: u64,
    /// The number of blocks with entries.
    pub blocks: usize,
    /// The fill ratio: the fraction of their cells that are entries.
    pub filled: f64,
}

/// The fitting sizes, in order of memory.
///
/// Splitting blocks never adds cells, so a size is counted only if all of its divisors fit: for a
/// matrix without blocks, four of the twenty-five sizes are counted.
pub(super) fn fits(rows: &IndexArray, columns: &IndexArray, shape: &[u64]) -> Result<Vec<BlockFit>> {
    let mut found: Vec<BlockFit> = Vec::new();
    let (Some(height), Some(width), true) = (shape.first(), shape.get(1), !rows.is_empty()) else { return Ok(found) };
    let mut refused: Vec<(u64, u64)> = Vec::new();
    for r in BLOCK_SIDES.into_iter().filter(|r| r <= height) {
        for c in BLOCK_SIDES.into_iter().filter(|c| c <= width) {
            if refused.iter().any(|(a, b)| r % a == 0 && c % b == 0) {
                continue;
            }
            let blocks = with_indices!(rows, rows => with_indices!(columns, columns => {
                count(rows, columns, r, c, *width)?
            }));
            let filled = rows.len() as f64 / (blocks as f64 * (r * c) as f64);
            if filled < FITTING {
                refused.push((r, c));
            } else {
                found.push(BlockFit { rows: r, columns: c, blocks, filled });
            }
        }
    }
    // A coordinate of a block costs about half a value.
    let cost = |fit: &BlockFit| fit.blocks as f64 * ((fit.rows * fit.columns) as f64 + 0.5);
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    Ok(found)
}

/// The number of blocks with entries; the entries are sorted by row.
fn count<I: Index, J: Index>(rows: &[I], columns: &[J], r: u64, c: u64, width: u64) -> Result<usize> {
    let across = width.div_ceil(c);
    // A mark for each block of a block row, unless there are far more blocks than entries.
    let marked = across <= (rows.len() as u64).saturating_mul(4).saturating_add(1024);
    let mut marks: Vec<u32> = zeroed(if marked { across as usize } else { 0 }, "marks of blocks")?;
    let mut seen: Vec<u64> = Vec::new();
    let (mut blocks, mut start, mut mark_of_row) = (0, 0, 0u32);
    while let Some(first) = rows.get(start) {
        let strip = first.to_u64() / r;
        let stop = start + rows[start..].iter().position(|row| row.to_u64() / r != strip).unwrap_or(rows.len() - start);
        if marked {
            if mark_of_row == u32::MAX {
                marks.fill(0);
                mark_of_row = 0;
            }
            mark_of_row += 1;
            for column in &columns[start..stop] {
                let mark = &mut marks[(column.to_u64() / c) as usize];
                blocks += usize::from(*mark != mark_of_row);
                *mark = mark_of_row;
            }
        } else {
            seen.clear();
            seen.extend(columns[start..stop].iter().map(|column| column.to_u64() / c));
            // A stable sort merges the few sorted rows.
            seen.sort();
            seen.dedup();
            blocks += seen.len();
        }
        start = stop;
    }
    Ok(blocks)
}
