//! The level `runs`: every coordinate, in runs without gaps, with one child for each run
//! (run-length encoding).
//!
//! Hard invariants, in the order they are checked:
//! - the widths are those that the format writes (E0701);
//! - `pos` has one number more than there are parent positions (E0701), and is a partition of `end`
//!   (E0702);
//! - no run ends beyond the size of the dimension (E0703);
//! - the ends of a fiber increase strictly, from above 0 (E0704);
//! - the last run of a fiber ends at the size of the dimension (E0704); with size 0 there are no
//!   runs.
//!
//! Soft invariant: the sub-fibers of adjacent runs differ. Assembly and conversion maintain it;
//! foreign arrays need not, at the cost of more runs.
//!
//! The child position of a coordinate is the index of its run in `end`.

use super::compressed::partition;
use super::{
    ArrayRole, Assemble, Assembled, Capabilities, Children, FiberRange, Level, LevelArrays, LevelType, Padding, Runs,
    Shape, arrays, check, unfurl, write,
};
use crate::memory::{reserve, too_large};
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec, Width};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Runs,
    arrays: &[arrays::FIBER_OFFSETS, arrays::RUN_ENDS],
    children: Children::Elements(ArrayRole::RunEnds),
    capabilities: Capabilities {
        full: true,
        padding: Padding::Adds,
        holes: false,
        one_per_fiber: false,
        shared: true,
        random_access: false,
        insert: false,
        append: true,
        gallop: false,
    },
    assemble: Assemble::Runs(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::runs,
    locate: unfurl::locate_runs,
    positions: None,
    write: &write::Unwritable,
};

#[derive(Debug)]
struct RunList {
    pos: IndexArray,
    end: IndexArray,
    extent: u64,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, end] = check::take(arrays, &TYPE)?;
    check::width("pos", &pos, spec.pos)?;
    check::width("end", &end, spec.crd)?;
    check::length("pos", &pos, shape.parents.checked_add(1), "one number more than there are fibers")?;
    check::partition(&pos, "end", end.len())?;
    check::ends_in_range(&end, shape.extent)?;
    check_gapless(&pos, &end, shape.extent)?;
    Ok(Arc::new(RunList { pos, end, extent: shape.extent }))
}

/// `pos` determines the length of `end`.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, end] = check::take(arrays, &TYPE)?;
    let pos = check::first("pos", pos, shape.parents.checked_add(1))?;
    let end = check::first("end", end, usize::try_from(pos.get(shape.parents)).ok())?;
    Ok(Arc::new(RunList { pos, end, extent: shape.extent }))
}

fn check_gapless(pos: &IndexArray, end: &IndexArray, extent: u64) -> Result<()> {
    const RULE: &str = "the runs of a fiber cover its dimension without gaps, and none is empty";
    with_indices!(pos, pos => with_indices!(end, end => {
        for (fiber, w) in pos.windows(2).enumerate() {
            let start = w[0].to_usize();
            let ends = &end[start..w[1].to_usize()];
            if let Some(first) = ends.first().filter(|first| first.to_u64() == 0) {
                return Err(check::misplaced(format!("run {start}, the first of fiber {fiber}, ends at {}", first.to_u64()), RULE));
            }
            if let Some(at) = ends.windows(2).position(|w| w[0] >= w[1]) {
                let (a, b) = (ends[at].to_u64(), ends[at + 1].to_u64());
                let message = format!("end {b} follows {a} in fiber {fiber} (index {} of `end`)", start + at + 1);
                return Err(check::misplaced(message, RULE));
            }
            let last = ends.last().map_or(0, |last| last.to_u64());
            if last != extent {
                let message = format!("the runs of fiber {fiber} end at {last}, not at {extent}, the size of the dimension");
                return Err(check::misplaced(message, RULE));
            }
        }
        Ok(())
    }))
}

/// A level of arrays whose hard invariants are guaranteed.
pub(super) fn trusted(pos: IndexArray, end: IndexArray, extent: u64) -> Arc<dyn Level> {
    Arc::new(RunList { pos, end, extent })
}

/// Gaps become runs of their own, whose sub-fibers are empty.
fn assemble(runs: Runs<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let least = if runs.extent == 0 { 0 } else { runs.parent_count };
    // Around each run there may be a gap, but only one between two runs of a fiber.
    let most = runs.parents.len().checked_mul(2).and_then(|gaps| gaps.checked_add(least));
    let most = most.ok_or_else(|| too_large(u64::MAX, 8, "the runs of a level"))?;
    let mut parents: Vec<usize> = reserve(most, "the runs of a level")?;
    let mut ends: Vec<u64> = reserve(most, "the runs of a level")?;
    let mut positions = reserve(runs.parents.len(), "the positions of runs")?;
    let mut next = 0;
    for parent in 0..least {
        let mut reached = 0;
        while runs.parents.get(next) == Some(&parent) {
            if runs.starts[next] > reached {
                parents.push(parent);
                ends.push(runs.starts[next]);
            }
            positions.push(ends.len());
            parents.push(parent);
            ends.push(runs.stops[next]);
            reached = runs.stops[next];
            next += 1;
        }
        if reached < runs.extent {
            parents.push(parent);
            ends.push(runs.extent);
        }
    }
    let end = IndexArray::with_width(&ends, spec.crd.unwrap_or(Width::automatic(runs.extent)))?;
    let pos = partition(&parents, runs.parent_count, spec.pos)?;
    Ok(Assembled { level: trusted(pos, end, runs.extent), positions })
}

impl RunList {
    fn fiber(&self, parent: usize) -> Range<usize> {
        with_indices!(&self.pos, pos => pos[parent].to_usize()..pos[parent + 1].to_usize())
    }
}

impl Level for RunList {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.end.len()
    }

    fn stored(&self, parents: usize) -> Option<usize> {
        parents.checked_mul(usize::try_from(self.extent).ok()?)
    }

    fn occupied(&self, _: usize) -> Option<usize> {
        Some(self.end.len())
    }

    fn fiber_length(&self, _: usize) -> usize {
        self.extent as usize
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        let mut start = 0;
        with_indices!(&self.end, end => for q in self.fiber(parent) {
            let stop = end[q].to_u64();
            each(FiberRange { start, stop, child: q, shared: true });
            start = stop;
        })
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        if parents.is_empty() {
            return 0..0;
        }
        let fiber = self.fiber(parents.start);
        let at = fiber.start
            + with_indices!(&self.end, end => end[fiber.clone()].partition_point(|e| e.to_u64() <= coordinate));
        if at < fiber.end { at..at + 1 } else { 0..0 }
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("pos", self.pos.clone()), ("end", self.end.clone())])
    }
}
