//! Elements and padding of formats whose map splits or subtracts dimensions: the number of
//! elements, and the check that padding holds the fill.

use crate::ValueArray;
use crate::levels::{Level, tree};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{DimExpr, Format, map};
use tamis_ir::{Code, Diagnostic, Value, diag::Result};

/// The levels of a tensor, their map and its shape.
pub(super) struct Elements<'a> {
    levels: &'a [Arc<dyn Level>],
    map: &'a [DimExpr],
    shape: &'a [u64],
    extents: &'a [u64],
    /// From this level on, all are `dense`: their coordinates are computed, not listed.
    tail: usize,
}

impl<'a> Elements<'a> {
    pub fn new(format: &'a Format, shape: &'a [u64], extents: &'a [u64], levels: &'a [Arc<dyn Level>]) -> Elements<'a> {
        let dense = |level: &&Arc<dyn Level>| {
            let capabilities = level.level_type().capabilities;
            capabilities.full && !capabilities.shared
        };
        let tail = levels.len() - levels.iter().rev().take_while(dense).count();
        Elements { levels, map: format.map(), shape, extents, tail }
    }

    /// The number of stored elements; saturates on overflow.
    pub fn count(&self) -> usize {
        let mut total = 0usize;
        tree::visit(&self.levels[..self.tail], &mut |stored, _| {
            if !self.is_inside(stored) {
                return;
            }
            let below =
                self.ranges_below(stored).try_fold(1u64, |count, range| count.checked_mul(range.end - range.start));
            total = total.saturating_add(below.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX));
        });
        total
    }

    /// True if the dimensions that the levels above the tail determine are in bounds.
    fn is_inside(&self, stored: &[u64]) -> bool {
        let above = |wanted: DimExpr| self.map[..self.tail].iter().position(|e| *e == wanted).map(|k| stored[k]);
        self.map[..self.tail].iter().zip(stored).all(|(e, x)| match *e {
            DimExpr::Div(d, k) => {
                let remainder = above(DimExpr::Mod(d, k)).unwrap_or(0);
                x.saturating_mul(k).saturating_add(remainder) < self.shape[d]
            }
            DimExpr::Diff(a, b) => above(DimExpr::Dim(b)).is_none_or(|b_coordinate| {
                let sum = x.saturating_add(b_coordinate);
                sum.checked_sub(self.shape[b] - 1).is_some_and(|found| found < self.shape[a])
            }),
            _ => true,
        })
    }

    /// The range of coordinates of each level of the tail that are elements.
    fn ranges_below<'b>(&'b self, stored: &'b [u64]) -> impl Iterator<Item = Range<u64>> + 'b {
        let above = |wanted: DimExpr| self.map[..self.tail].iter().position(|e| *e == wanted).map(|k| stored[k]);
        let size = |d: usize| self.shape[d];
        self.map[self.tail..].iter().map(move |e| match *e {
            DimExpr::Dim(b) => {
                // A difference above determines the range of coordinates in which the other
                // dimension is in bounds.
                let differences = self.map[..self.tail].iter().zip(stored);
                differences.fold(0..size(b), |range, (e, x)| match *e {
                    DimExpr::Diff(a, other) if other == b => {
                        let start = (size(b) - 1).saturating_sub(*x);
                        let stop = (size(b) - 1).saturating_add(size(a)).saturating_sub(*x);
                        let start = range.start.max(start);
                        start..range.end.min(stop).max(start)
                    }
                    _ => range,
                })
            }
            DimExpr::Mod(d, k) => match above(DimExpr::Div(d, k)) {
                Some(quotient) => 0..size(d).saturating_sub(quotient.saturating_mul(k)).min(k),
                // Quotient and remainder are both in the tail: together they are the dimension.
                None => 0..1,
            },
            DimExpr::Div(d, k) => match above(DimExpr::Mod(d, k)) {
                Some(remainder) => 0..size(d).saturating_sub(remainder).div_ceil(k),
                None => 0..size(d),
            },
            DimExpr::Diff(a, _) => 0..size(a),
        })
    }

    /// Checks that padding holds the fill; the diagnostic is of the first violation.
    pub fn check_rest(&self, values: &ValueArray, fill: Value) -> Result<()> {
        let sizes: Vec<u64> = self.extents[self.tail..].to_vec();
        let all: u64 = sizes.iter().fold(1, |count, extent| count.saturating_mul(*extent));
        let mut coordinates = vec![0; self.shape.len()];
        let mut wrong: Option<(usize, Vec<u64>)> = None;
        tree::visit(&self.levels[..self.tail], &mut |stored, position| {
            let inside: u64 = self.ranges_below(stored).fold(1, |count, r| count.saturating_mul(r.end - r.start));
            if (inside == all && self.is_inside(stored)) || wrong.is_some() {
                return;
            }
            let mut tuple: Vec<u64> = stored.iter().copied().chain(sizes.iter().map(|_| 0)).collect();
            for offset in 0..all {
                let mut rest = offset;
                for (at, extent) in tuple[self.tail..].iter_mut().zip(&sizes).rev() {
                    *at = rest % extent;
                    rest /= extent;
                }
                let position = position * all as usize + offset as usize;
                if !map::restore(self.map, self.shape, &tuple, &mut coordinates)
                    && !values.get(position).same_number(fill)
                {
                    wrong = Some((position, tuple.clone()));
                    return;
                }
            }
        });
        let Some((position, tuple)) = wrong else { return Ok(()) };
        let tuple: Vec<String> = tuple.iter().map(u64::to_string).collect();
        let message = format!(
            "value {position} is {}, but its stored coordinates ({}) are out of bounds",
            values.get(position),
            tuple.join(", ")
        );
        Err(Diagnostic::new(Code::E0701, message)
            .note("blocks and diagonals may reach beyond the tensor; what lies there holds the fill")
            .help(format!("make the value {fill}, the fill"))
            .help("or enlarge the shape so that it is in bounds"))
    }
}
