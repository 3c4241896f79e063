//! The level `interval`: at most one run of coordinates per parent position, with one child for all
//! of them.
//!
//! Hard invariants, in the order they are checked:
//! - the widths are those that the format writes (E0701);
//! - `start` and `end` have one number for each parent position (E0701);
//! - no run ends beyond the size of the dimension (E0703);
//! - a run starts before it ends, or is empty, which is written 0, 0 (E0704).
//!
//! The child position is the parent position, so an empty run has a child position that is not
//! stored.

use super::{
    ArrayRole, Assemble, Assembled, Capabilities, Children, FiberRange, Level, LevelArrays, LevelType, Padding, Runs,
    Shape, arrays, check, unfurl, write,
};
use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{LevelKind, LevelSpec, Width};
use tamis_ir::{Code, Diagnostic, diag::Result};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Interval,
    arrays: &[arrays::RUN_STARTS.for_each_parent(), arrays::RUN_ENDS.for_each_parent()],
    children: Children::Elements(ArrayRole::RunStarts),
    capabilities: Capabilities {
        full: false,
        padding: Padding::Removes,
        holes: true,
        one_per_fiber: false,
        shared: true,
        random_access: true,
        insert: false,
        append: true,
        gallop: false,
    },
    assemble: Assemble::Runs(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::interval,
    locate: unfurl::locate_interval,
    positions: None,
    write: &write::Unwritable,
};

#[derive(Debug)]
struct Interval {
    start: IndexArray,
    end: IndexArray,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [start, end] = check::take(arrays, &TYPE)?;
    check::width("start", &start, spec.crd)?;
    check::width("end", &end, spec.crd)?;
    check::length("start", &start, Some(shape.parents), "one run for each position of the level above")?;
    check::length("end", &end, Some(shape.parents), "one run for each position of the level above")?;
    check::ends_in_range(&end, shape.extent)?;
    let wrong = with_indices!(&start, start => with_indices!(&end, end => {
        let pairs = start.iter().zip(end.iter()).map(|(start, end)| (start.to_u64(), end.to_u64()));
        pairs.enumerate().find(|(_, (start, end))| start >= end && (*start, *end) != (0, 0))
    }));
    if let Some((fiber, (start, end))) = wrong {
        let message = format!("the run of fiber {fiber} starts at {start} and ends at {end}");
        return Err(check::misplaced(message, "a run starts before it ends; one that is empty is written 0, 0"));
    }
    Ok(trusted(start, end))
}

/// One run for each parent.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [start, end] = check::take(arrays, &TYPE)?;
    let parents = Some(shape.parents);
    Ok(trusted(check::first("start", start, parents)?, check::first("end", end, parents)?))
}

/// A level of arrays whose invariants are guaranteed.
pub(super) fn trusted(start: IndexArray, end: IndexArray) -> Arc<dyn Level> {
    Arc::new(Interval { start, end })
}

/// The diagnostic for a fiber with a second run.
pub(crate) fn second_run(fiber: usize, first: Range<u64>, second: Range<u64>) -> Diagnostic {
    let message = format!(
        "`interval` holds one run per fiber, but fiber {fiber} has {}..{} and {}..{}",
        first.start, first.end, second.start, second.end
    );
    Diagnostic::new(Code::E0707, message)
        .help("use `sparse_runs` for this level, as in `dense, sparse_runs`, which holds any number of runs")
}

fn assemble(runs: Runs<'_>, spec: &LevelSpec) -> Result<Assembled> {
    if let Some(at) = runs.parents.windows(2).position(|w| w[0] == w[1]) {
        let run = |at: usize| runs.starts[at]..runs.stops[at];
        return Err(second_run(runs.parents[at], run(at), run(at + 1)));
    }
    let mut start: Vec<u64> = zeroed(runs.parent_count, "`start`")?;
    let mut end: Vec<u64> = zeroed(runs.parent_count, "`end`")?;
    for (at, parent) in runs.parents.iter().enumerate() {
        (start[*parent], end[*parent]) = (runs.starts[at], runs.stops[at]);
    }
    let width = spec.crd.unwrap_or(Width::automatic(runs.extent));
    let level = trusted(IndexArray::with_width(&start, width)?, IndexArray::with_width(&end, width)?);
    let mut positions = reserve(runs.parents.len(), "the positions of runs")?;
    positions.extend_from_slice(runs.parents);
    Ok(Assembled { level, positions })
}

impl Level for Interval {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.start.len()
    }

    fn stored(&self, _: usize) -> Option<usize> {
        (0..self.start.len()).map(|parent| self.fiber_length(parent)).try_fold(0usize, usize::checked_add)
    }

    fn occupied(&self, _: usize) -> Option<usize> {
        Some((0..self.start.len()).filter(|parent| self.fiber_length(*parent) > 0).count())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        (self.end.get(parent) - self.start.get(parent)) as usize
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        let (start, stop) = (self.start.get(parent), self.end.get(parent));
        if start < stop {
            each(FiberRange { start, stop, child: parent, shared: true });
        }
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        let covers = |parent: usize| (self.start.get(parent)..self.end.get(parent)).contains(&coordinate);
        if !parents.is_empty() && covers(parents.start) { parents.start..parents.start + 1 } else { 0..0 }
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("start", self.start.clone()), ("end", self.end.clone())])
    }
}
