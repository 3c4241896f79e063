//! Formats of results and temporaries: for each level, how many coordinates to expect, and whether they are better listed.

use super::model::{self, Costs};
use super::order::Problem;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec};

/// A format, and what to expect of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) format: Format,
    /// For each level, how many positions there will be.
    pub(super) positions: Vec<f64>,
}

impl Expected {
    /// How many elements are stored.
    pub(super) fn entries(&self) -> f64 {
        self.positions.last().copied().unwrap_or(1.0)
    }
}

/// The format of a target whose dimensions are stored in this order. Everything is stored of what has no constant elsewhere.
pub(super) fn choose(problem: &Problem, dims: &[usize], listed: bool, costs: &Costs) -> Expected {
    let rank = problem.target.len();
    let (mut levels, mut positions) = (Vec::new(), Vec::new());
    let (mut mask, mut above) = (0u32, 1.0);
    for d in dims {
        let (n, expected) = match problem.target[*d].filter(|_| listed) {
            Some(index) => {
                let before = mask;
                mask |= 1 << index;
                (problem.extents[index], expect(problem, before, mask).min(above * problem.extents[index]))
            }
            None => {
                let n = problem.target[*d].map_or(1.0, |index| problem.extents[index]);
                (n, above * n)
            }
        };
        let dense = !listed || model::is_dense(costs, n, above, expected);
        levels.push(LevelSpec::new(if dense { LevelKind::Dense } else { LevelKind::Sparse }));
        above = if dense { above * n } else { expected };
        positions.push(above);
    }
    let map = dims.iter().map(|d| DimExpr::Dim(*d)).collect();
    let format = Format::new(rank, map, levels, Leaf::Element(None)).unwrap_or_else(|_| Format::dense(rank));
    Expected { format, positions }
}

/// The format of a target of these sizes that is written at sums of indices, if so few elements are written that it is not dense.
pub(super) fn scattered(sizes: &[f64], points: f64) -> Option<Expected> {
    let cells: f64 = sizes.iter().product();
    if cells < LARGE || points * MANY_TIMES > cells {
        return None;
    }
    let levels = sizes.iter().map(|_| LevelSpec::new(LevelKind::Sparse)).collect();
    let map = (0..sizes.len()).map(DimExpr::Dim).collect();
    let format = Format::new(sizes.len(), map, levels, Leaf::Element(None)).ok()?;
    Some(Expected { format, positions: sizes.iter().map(|n| points.min(*n)).collect() })
}

/// Targets of fewer elements are dense, however few of them are written at sums of indices: a workspace costs more than clearing.
const LARGE: f64 = 1e6;

/// Larger ones are dense unless they have so many times as many elements as are written.
const MANY_TIMES: f64 = 32.0;

/// How many different coordinates the loops `after` have where something is computed, given those of `before`.
pub(super) fn expect(problem: &Problem, before: u32, after: u32) -> f64 {
    let all = problem.all();
    let possible = problem.points(after);
    // Windows that have something in them are as many as are expected: what is reduced was part of that.
    if problem.free == all || problem.places.iter().any(|place| place.meets(after) < 1.0) {
        return possible;
    }
    // One coordinate reached through one reduced index: what several paths lead to is there once.
    let reduced = all & !problem.free;
    if reduced.count_ones() == 1 && after == problem.free {
        let (sources, through) = (problem.points(before), problem.points(before | reduced));
        if sources > 0.0 && through > 0.0 {
            let n: f64 = possible / sources;
            return sources * model::reached(n, through / sources, problem.points(all) / through).min(n);
        }
    }
    model::distinct(possible, problem.points(all))
}
