//! The level `band`: at most one block of contiguous coordinates per parent position. Triangles and
//! ragged rows are bands of blocks that start with 0.
//!
//! Hard invariants, in the order they are checked:
//! - the widths are those that the format writes (E0701);
//! - `crd` has one number for each parent position, `ofs` one more (E0701);
//! - `ofs` starts at 0 and never decreases (E0702);
//! - every last coordinate is below the size of the dimension (E0703);
//! - no block reaches below 0; one that is empty has last coordinate 0 (E0704).
//!
//! The block of parent p ends with coordinate `crd[p]`, and its children are at the positions from
//! `ofs[p]` to `ofs[p+1]`, in order. Gaps between written coordinates are stored as well: they hold
//! the fill.

use super::{
    ArrayRole, ArraySpec, Assemble, Assembled, Capabilities, Children, FiberRange, Level, LevelArrays, LevelType,
    Nodes, Padding, Shape, arrays, check, unfurl, write,
};
use crate::memory::{reserve, too_large, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec, Width};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Band,
    arrays: &[
        // The last coordinate of an empty block is 0, even if the extent is 0, too.
        ArraySpec { below_extent: false, ..arrays::BLOCK_ENDS.for_each_parent() },
        arrays::BLOCK_OFFSETS.for_each_parent(),
    ],
    children: Children::LastOffset(ArrayRole::BlockOffsets),
    capabilities: Capabilities {
        full: false,
        padding: Padding::Between,
        holes: false,
        one_per_fiber: false,
        shared: false,
        random_access: true,
        insert: false,
        append: true,
        gallop: false,
    },
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::band,
    locate: unfurl::locate_band,
    positions: None,
    write: &write::Unwritable,
};

#[derive(Debug)]
struct Band {
    crd: IndexArray,
    ofs: IndexArray,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [crd, ofs] = check::take(arrays, &TYPE)?;
    check::width("crd", &crd, spec.crd)?;
    check::width("ofs", &ofs, spec.pos)?;
    check::length("crd", &crd, Some(shape.parents), "the last coordinate for each position of the level above")?;
    check::length("ofs", &ofs, shape.parents.checked_add(1), "one number more than there are blocks")?;
    check::offsets(&ofs, true)?;
    let level = Band { crd, ofs };
    if shape.extent > 0 {
        check::in_range(&level.crd, shape.extent)?;
    }
    const RULE: &str = "a block holds contiguous coordinates from 0 on; one that is empty has last coordinate 0";
    for fiber in 0..shape.parents {
        let (last, length) = (level.crd.get(fiber), level.children_of(fiber).len() as u64);
        if length == 0 && last != 0 {
            let message = format!("the block of fiber {fiber} is empty, but ends with coordinate {last}");
            return Err(check::misplaced(message, RULE));
        }
        if length > (last + 1).min(shape.extent) {
            let message =
                format!("the block of fiber {fiber} has {length} coordinates up to {last}, so it starts below 0");
            return Err(check::misplaced(message, RULE));
        }
    }
    Ok(Arc::new(level))
}

/// One block for each parent.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [crd, ofs] = check::take(arrays, &TYPE)?;
    let crd = check::first("crd", crd, Some(shape.parents))?;
    Ok(trusted(crd, check::first("ofs", ofs, shape.parents.checked_add(1))?))
}

/// A level of arrays whose invariants are guaranteed.
pub(super) fn trusted(crd: IndexArray, ofs: IndexArray) -> Arc<dyn Level> {
    Arc::new(Band { crd, ofs })
}

fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let mut last: Vec<u64> = zeroed(nodes.parent_count, "`crd`")?;
    let length = nodes.parent_count.checked_add(1).ok_or_else(|| too_large(u64::MAX, 8, "`ofs`"))?;
    let mut ofs: Vec<u64> = reserve(length, "`ofs`")?;
    ofs.push(0);
    let mut positions: Vec<usize> = reserve(nodes.parents.len(), "the positions of entries")?;
    let (mut start, mut children) = (0, 0u64);
    while start < nodes.parents.len() {
        let parent = nodes.parents[start];
        let count = nodes.parents[start..].iter().take_while(|p| **p == parent).count();
        let coordinates = &nodes.coordinates[start..start + count];
        ofs.resize(parent + 1, children);
        let (first, end) = (coordinates[0], coordinates[count - 1]);
        positions.extend(coordinates.iter().map(|c| (children + (c - first)) as usize));
        last[parent] = end;
        children = children
            .checked_add(end - first + 1)
            .filter(|children| usize::try_from(*children).is_ok())
            .ok_or_else(|| too_large(u64::MAX, 1, "the positions of a band"))?;
        start += count;
    }
    ofs.resize(length, children);
    let level = narrowed(&last, &ofs, nodes.extent, spec)?;
    Ok(Assembled { level, positions })
}

/// A level of these blocks, in the widths of the format.
pub(super) fn narrowed(last: &[u64], ofs: &[u64], extent: u64, spec: &LevelSpec) -> Result<Arc<dyn Level>> {
    let crd = IndexArray::with_width(last, spec.crd.unwrap_or(Width::automatic(extent.saturating_sub(1))))?;
    let children = ofs.last().copied().unwrap_or(0);
    Ok(trusted(crd, IndexArray::with_width(ofs, spec.pos.unwrap_or(Width::automatic(children)))?))
}

impl Band {
    fn children_of(&self, parent: usize) -> Range<usize> {
        with_indices!(&self.ofs, ofs => ofs[parent].to_usize()..ofs[parent + 1].to_usize())
    }
}

impl Level for Band {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.ofs.get(self.ofs.len() - 1) as usize
    }

    fn stored(&self, _: usize) -> Option<usize> {
        Some(self.children())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        self.children_of(parent).len()
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        let children = self.children_of(parent);
        if !children.is_empty() {
            let stop = self.crd.get(parent) + 1;
            each(FiberRange { start: stop - children.len() as u64, stop, child: children.start, shared: false });
        }
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        if parents.is_empty() {
            return 0..0;
        }
        let children = self.children_of(parents.start);
        match self.crd.get(parents.start).checked_sub(coordinate) {
            Some(back) if back < children.len() as u64 => {
                children.end - 1 - back as usize..children.end - back as usize
            }
            _ => 0..0,
        }
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("crd", self.crd.clone()), ("ofs", self.ofs.clone())])
    }
}
