//! The level `sparse_runs`: runs of coordinates with gaps between them, with one child for each
//! run.
//!
//! Hard invariants, in the order they are checked:
//! - the widths are those that the format writes (E0701);
//! - `pos` has one number more than there are parent positions (E0701), and is a partition of
//!   `start` (E0702);
//! - `end` is as long as `start` (E0701);
//! - no run ends beyond the size of the dimension (E0703);
//! - no run is empty, and none starts before the one before it in its fiber ends (E0704).
//!
//! Soft invariant: the sub-fibers of adjacent runs differ. Assembly and conversion maintain it;
//! foreign arrays and those of kernels need not, at the cost of more runs.
//!
//! The child position of a coordinate is the index of its run in `start`.

use super::compressed::partition;
use super::{
    ArrayRole, Assemble, Assembled, Capabilities, Children, FiberRange, Level, LevelArrays, LevelType, Padding, Runs,
    Shape, arrays, check, unfurl, write,
};
use crate::memory::reserve;
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec, Width};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::SparseRuns,
    arrays: &[arrays::FIBER_OFFSETS, arrays::RUN_STARTS, arrays::RUN_ENDS],
    children: Children::Elements(ArrayRole::RunStarts),
    capabilities: Capabilities {
        full: false,
        padding: Padding::Removes,
        holes: false,
        one_per_fiber: false,
        shared: true,
        random_access: false,
        insert: false,
        append: true,
        gallop: true,
    },
    assemble: Assemble::Runs(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::sparse_runs,
    locate: unfurl::locate_sparse_runs,
    positions: None,
    write: &write::RunsWrite,
};

#[derive(Debug)]
struct SparseRunList {
    pos: IndexArray,
    start: IndexArray,
    end: IndexArray,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, start, end] = check::take(arrays, &TYPE)?;
    check::width("pos", &pos, spec.pos)?;
    check::width("start", &start, spec.crd)?;
    check::width("end", &end, spec.crd)?;
    check::length("pos", &pos, shape.parents.checked_add(1), "one number more than there are fibers")?;
    check::partition(&pos, "start", start.len())?;
    check::length("end", &end, Some(start.len()), "one for each run, as in `start`")?;
    check::ends_in_range(&end, shape.extent)?;
    check_order(&pos, &start, &end)?;
    Ok(trusted(pos, start, end))
}

/// `pos` determines the length of the other arrays.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, start, end] = check::take(arrays, &TYPE)?;
    let pos = check::first("pos", pos, shape.parents.checked_add(1))?;
    let runs = usize::try_from(pos.get(shape.parents)).ok();
    Ok(trusted(pos, check::first("start", start, runs)?, check::first("end", end, runs)?))
}

fn check_order(pos: &IndexArray, start: &IndexArray, end: &IndexArray) -> Result<()> {
    const RULE: &str = "the runs of a fiber are sorted, do not overlap, and none is empty";
    with_indices!(pos, pos => with_indices!(start, start => with_indices!(end, end => {
        for (fiber, w) in pos.windows(2).enumerate() {
            let mut reached = 0;
            for q in w[0].to_usize()..w[1].to_usize() {
                let (first, stop) = (start[q].to_u64(), end[q].to_u64());
                if first >= stop {
                    let message = format!("run {q} of fiber {fiber} starts at {first} and ends at {stop}, so it is empty");
                    return Err(check::misplaced(message, RULE));
                }
                if first < reached {
                    let message = format!("run {q} of fiber {fiber} starts at {first}, before the end {reached} of the run before");
                    return Err(check::misplaced(message, RULE));
                }
                reached = stop;
            }
        }
        Ok(())
    })))
}

/// A level of arrays whose hard invariants are guaranteed.
pub(super) fn trusted(pos: IndexArray, start: IndexArray, end: IndexArray) -> Arc<dyn Level> {
    Arc::new(SparseRunList { pos, start, end })
}

fn assemble(runs: Runs<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let width = spec.crd.unwrap_or(Width::automatic(runs.extent));
    let (start, end) = (IndexArray::with_width(runs.starts, width)?, IndexArray::with_width(runs.stops, width)?);
    let pos = partition(runs.parents, runs.parent_count, spec.pos)?;
    let mut positions = reserve(runs.parents.len(), "the positions of runs")?;
    positions.extend(0..runs.parents.len());
    Ok(Assembled { level: trusted(pos, start, end), positions })
}

impl SparseRunList {
    fn fiber(&self, parent: usize) -> Range<usize> {
        with_indices!(&self.pos, pos => pos[parent].to_usize()..pos[parent + 1].to_usize())
    }

    fn length(&self, runs: Range<usize>) -> Option<usize> {
        with_indices!(&self.start, start => with_indices!(&self.end, end => {
            let lengths = start[runs.clone()].iter().zip(&end[runs]).map(|(start, end)| end.to_u64() - start.to_u64());
            // In vectors that are short enough that no sum overflows: more 32-bit numbers do not
            // fit into memory.
            match self.end.width() {
                Width::U64 => lengths.map(|length| length as usize).try_fold(0usize, usize::checked_add),
                _ => usize::try_from(lengths.sum::<u64>()).ok(),
            }
        }))
    }
}

impl Level for SparseRunList {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.start.len()
    }

    fn stored(&self, _: usize) -> Option<usize> {
        self.length(0..self.start.len())
    }

    fn occupied(&self, _: usize) -> Option<usize> {
        Some(self.start.len())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        // The runs of a fiber do not overlap, so their lengths cannot overflow together.
        self.length(self.fiber(parent)).unwrap_or(usize::MAX)
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        with_indices!(&self.start, start => with_indices!(&self.end, end => for q in self.fiber(parent) {
            each(FiberRange { start: start[q].to_u64(), stop: end[q].to_u64(), child: q, shared: true });
        }))
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        if parents.is_empty() {
            return 0..0;
        }
        let fiber = self.fiber(parents.start);
        let at = fiber.start
            + with_indices!(&self.end, end => end[fiber.clone()].partition_point(|e| e.to_u64() <= coordinate));
        if at < fiber.end && self.start.get(at) <= coordinate { at..at + 1 } else { 0..0 }
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("pos", self.pos.clone()), ("start", self.start.clone()), ("end", self.end.clone())])
    }
}
