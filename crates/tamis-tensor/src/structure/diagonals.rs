//! Recognition of diagonals: the stored diagonals of a matrix, and their fill ratio.

use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use tamis_ir::diag::Result;

/// The diagonals of a matrix with entries.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::{Combine, Tensor, gallery};
/// let entries = gallery::laplacian(10)?;
/// let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let diagonals = a.statistics()?.structure.diagonals.unwrap();
/// assert_eq!(diagonals.count, 5);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagonals {
    /// The number of diagonals.
    pub count: usize,
    /// The fill ratio: the fraction of their cells that are entries.
    pub filled: f64,
}

/// Counts the diagonals of a matrix.
pub(super) fn diagonals(rows: &IndexArray, columns: &IndexArray, shape: &[u64]) -> Result<Diagonals> {
    let (height, width) = (shape.first().copied().unwrap_or(0), shape.get(1).copied().unwrap_or(0));
    let all = height as u128 + width as u128;
    let entries = rows.len();
    // Diagonals are numbered from the bottom left one.
    let bottom = height.saturating_sub(1) as u128;
    let (mut count, mut cells) = (0, 0u128);
    let mut add = |diagonal: u128| {
        count += 1;
        // The main diagonal starts at the corner; the start of any other has the distance of the
        // diagonal.
        cells += match diagonal.checked_sub(bottom) {
            Some(above) => (width as u128 - above).min(height as u128),
            None => (height as u128 + diagonal - bottom).min(width as u128),
        };
    };
    if all <= (entries as u128).saturating_mul(4).saturating_add(1024) {
        let mut marks: Vec<u8> = zeroed(all as usize, "marks of diagonals")?;
        with_indices!(rows, rows => with_indices!(columns, columns => {
            for (row, column) in rows.iter().zip(columns.iter()) {
                marks[(bottom as u64 + column.to_u64() - row.to_u64()) as usize] = 1;
            }
        }));
        marks.iter().enumerate().filter(|(_, mark)| **mark == 1).for_each(|(k, _)| add(k as u128));
    } else {
        let mut offsets: Vec<u128> = reserve(entries, "the diagonals of entries")?;
        with_indices!(rows, rows => with_indices!(columns, columns => {
            offsets.extend(rows.iter().zip(columns.iter()).map(|(i, j)| bottom + j.to_u64() as u128 - i.to_u64() as u128));
        }));
        offsets.sort_unstable();
        offsets.dedup();
        offsets.into_iter().for_each(&mut add);
    }
    Ok(Diagonals { count, filled: if cells > 0 { entries as f64 / cells as f64 } else { 0.0 } })
}
