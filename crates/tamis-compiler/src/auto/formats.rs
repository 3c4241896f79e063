//! Format selection for results and temporaries: for each level, the expected number of coordinates
//! and the level type.

use super::model::{self, Costs};
use super::order::Problem;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec};

/// A format and its expected sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) format: Format,
    /// For each level, the expected number of positions.
    pub(super) positions: Vec<f64>,
}

impl Expected {
    /// The expected nnz.
    pub(super) fn entries(&self) -> f64 {
        self.positions.last().copied().unwrap_or(1.0)
    }
}

/// The format of a target with this storage order. A target without a constant background is dense.
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

/// The format of a target that is written at affine subscripts, if few enough elements are written
/// that it is not dense.
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

/// Targets with fewer elements are dense even if few elements are scattered: a workspace costs more
/// than clearing.
const LARGE: f64 = 1e6;

/// Larger targets are dense unless they have this many times more elements than are written.
const MANY_TIMES: f64 = 32.0;

/// The expected number of distinct coordinates of the loops `after`, given those of the loops
/// `before`.
pub(super) fn expect(problem: &Problem, before: u32, after: u32) -> f64 {
    let all = problem.all();
    let possible = problem.points(after);
    // The expected number of non-empty windows already accounts for the reduced indices.
    if problem.free == all || problem.places.iter().any(|place| place.meets(after) < 1.0) {
        return possible;
    }
    // Several paths through one reduced index may reach the same coordinate, which counts once.
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
