//! Descriptions of recognised structure, for people.

use super::{MatrixStatistics, Structure};

/// The minimum mean length of mentioned ranges and runs.
const LONG: f64 = 1.8;
/// The minimum fill ratio of mentioned structure.
const FILLED: f64 = 0.5;

impl Structure {
    /// A few words about each exploitable structure; empty if there is none.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::{Combine, Tensor, gallery};
    /// let a = Tensor::from_coordinates(&gallery::generate("blocked(60, 3)")?, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let statistics = a.statistics()?;
    /// let remarks = statistics.structure.remarks(a.shape(), statistics.matrix.as_ref());
    /// assert!(remarks.contains(&"blocks of 3 x 3, all full".to_string()));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn remarks(&self, shape: &[u64], matrix: Option<&MatrixStatistics>) -> Vec<String> {
        let mut remarks = Vec::new();
        // A dense tensor has no other structure.
        let cells = shape.iter().try_fold(1u64, |cells, n| cells.checked_mul(*n));
        if self.entries < 2 || cells == Some(self.entries as u64) && self.constant.is_none() {
            return remarks;
        }
        if let Some(constant) = self.constant {
            remarks.push(format!("every entry is {constant}"));
        }
        if let (Some(matrix), [height, width]) = (matrix, shape) {
            if matrix.rows_with_one == *height {
                remarks.push("one entry in each row".to_string());
            }
            if matrix.columns_with_one == *width {
                remarks.push("one entry in each column".to_string());
            }
            if matrix.empty_rows as f64 >= FILLED * *height as f64 {
                remarks.push(format!("{} of the rows are empty", percent(matrix.empty_rows as f64 / *height as f64)));
            }
            let filled = matrix.band_filled(shape, self.entries);
            if filled >= FILLED && !matrix.diagonal {
                remarks.push(format!("the band is {} full", percent(filled)));
            }
        }
        // Many dense diagonals are a dense band.
        let few = |count: usize| count as u64 <= shape.iter().fold(0u64, |sum, n| sum.saturating_add(*n)) / 10 + 1;
        if let Some(diagonals) = self.diagonals.filter(|d| d.filled >= FILLED && few(d.count)) {
            let word = if diagonals.count == 1 { "diagonal" } else { "diagonals" };
            remarks.push(format!("{} {word}, {} full", diagonals.count, percent(diagonals.filled)));
        }
        if let Some(fit) = self.blocks.first() {
            remarks.push(format!("blocks of {} x {}, {} full", fit.rows, fit.columns, percent(fit.filled)));
        }
        let rank = shape.len();
        let same_both_ways = matrix.is_some_and(|matrix| matrix.structurally_symmetric);
        let banded = matrix.is_some_and(|matrix| matrix.band_filled(shape, self.entries) >= FILLED);
        for lines in self.lines.iter().rev().take(if same_both_ways { 1 } else { rank }) {
            let along = match (rank, lines.dimension) {
                (1, _) => String::new(),
                (2, 1) => " along rows".to_string(),
                (2, _) => " along columns".to_string(),
                (_, dimension) => format!(" along dimension {dimension}"),
            };
            if lines.filled() >= FILLED && !banded && lines.entries as f64 >= LONG * lines.lines as f64 {
                remarks.push(format!("{} full between the ends{along}", percent(lines.filled())));
            }
            if lines.mean_range() >= LONG {
                remarks.push(format!("contiguous ranges of {:.1}{along}", lines.mean_range()));
            }
            if lines.mean_run() >= LONG && self.constant.is_none() {
                remarks.push(format!("runs of {:.1} equal values{along}", lines.mean_run()));
            }
        }
        if let (Some(slices), Some(height)) = (self.slices, shape.first())
            && slices.equal as f64 >= 0.1 * *height as f64
        {
            let what = if rank == 2 { "rows equal the row" } else { "slices equal the slice" };
            remarks.push(format!("{} of {height} {what} before", slices.equal));
        }
        remarks
    }
}

/// A fraction in percent: 100 only if it is 1.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        all if all >= 100.0 => "all".to_string(),
        most if most > 99.0 => format!("{:.2} %", (most * 100.0).floor() / 100.0),
        some if some < 1.0 => format!("{some:.2} %"),
        some => format!("{some:.0} %"),
    }
}
