//! The level `blocks`: blocks of contiguous coordinates, each of any length.
//!
//! Hard invariants, in the order they are checked:
//! - the widths are those that the format writes (E0701);
//! - `pos` has one number more than there are parent positions (E0701), and is a partition of `crd`
//!   (E0702);
//! - `ofs` has one number more than there are blocks (E0701), starts at 0 and increases strictly
//!   (E0702);
//! - every last coordinate is below the size of the dimension (E0703);
//! - no block reaches below 0, or starts at or before the last coordinate of the block before it in
//!   its fiber (E0704).
//!
//! Soft invariant: blocks of a fiber are not adjacent. Assembly and conversion maintain it; foreign
//! arrays need not.
//!
//! Block q ends with coordinate `crd[q]`, and its children are at the positions from `ofs[q]` to
//! `ofs[q+1]`, in order.

use super::compressed::partition;
use super::{
    ArrayRole, Assemble, Assembled, Capabilities, Children, FiberRange, Level, LevelArrays, LevelType, Nodes, Padding,
    Shape, arrays, check, unfurl, write,
};
use crate::memory::reserve;
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec, Width};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Blocks,
    arrays: &[arrays::FIBER_OFFSETS, arrays::BLOCK_ENDS, arrays::BLOCK_OFFSETS],
    children: Children::LastOffset(ArrayRole::BlockOffsets),
    capabilities: Capabilities {
        full: false,
        padding: Padding::Removes,
        holes: false,
        one_per_fiber: false,
        shared: false,
        random_access: false,
        insert: false,
        append: true,
        gallop: true,
    },
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::blocks,
    locate: unfurl::locate_blocks,
    positions: None,
    write: &write::Unwritable,
};

#[derive(Debug)]
struct Blocks {
    pos: IndexArray,
    crd: IndexArray,
    ofs: IndexArray,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, crd, ofs] = check::take(arrays, &TYPE)?;
    check::width("pos", &pos, spec.pos)?;
    check::width("crd", &crd, spec.crd)?;
    check::width("ofs", &ofs, spec.pos)?;
    check::length("pos", &pos, shape.parents.checked_add(1), "one number more than there are fibers")?;
    check::partition(&pos, "crd", crd.len())?;
    check::length("ofs", &ofs, crd.len().checked_add(1), "one number more than there are blocks")?;
    check::offsets(&ofs, false)?;
    check::in_range(&crd, shape.extent)?;
    let level = Blocks { pos, crd, ofs };
    level.check_order(shape.parents)?;
    Ok(Arc::new(level))
}

/// `pos` determines the number of blocks.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, crd, ofs] = check::take(arrays, &TYPE)?;
    let pos = check::first("pos", pos, shape.parents.checked_add(1))?;
    let blocks = usize::try_from(pos.get(shape.parents)).ok();
    let ofs = check::first("ofs", ofs, blocks.and_then(|blocks| blocks.checked_add(1)))?;
    Ok(Arc::new(Blocks { pos, crd: check::first("crd", crd, blocks)?, ofs }))
}

/// A level of arrays whose hard invariants are guaranteed.
pub(super) fn trusted(pos: IndexArray, crd: IndexArray, ofs: IndexArray) -> Arc<dyn Level> {
    Arc::new(Blocks { pos, crd, ofs })
}

/// Children are at consecutive positions, as those of a coordinate list are.
fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let mut parents: Vec<usize> = Vec::new();
    let (mut last, mut ofs): (Vec<u64>, Vec<u64>) = (Vec::new(), vec![0]);
    for (at, (parent, coordinate)) in nodes.parents.iter().zip(nodes.coordinates).enumerate() {
        match last.last_mut() {
            Some(end) if parents.last() == Some(parent) && *end + 1 == *coordinate => *end = *coordinate,
            _ => {
                if at > 0 {
                    ofs.push(at as u64);
                }
                parents.push(*parent);
                last.push(*coordinate);
            }
        }
    }
    if !last.is_empty() {
        ofs.push(nodes.parents.len() as u64);
    }
    let crd = IndexArray::with_width(&last, spec.crd.unwrap_or(Width::automatic(nodes.extent.saturating_sub(1))))?;
    let ofs = IndexArray::with_width(&ofs, spec.pos.unwrap_or(Width::automatic(nodes.parents.len() as u64)))?;
    let level = trusted(partition(&parents, nodes.parent_count, spec.pos)?, crd, ofs);
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    positions.extend(0..nodes.parents.len());
    Ok(Assembled { level, positions })
}

impl Blocks {
    fn fiber(&self, parent: usize) -> Range<usize> {
        with_indices!(&self.pos, pos => pos[parent].to_usize()..pos[parent + 1].to_usize())
    }

    fn children_of(&self, block: usize) -> Range<usize> {
        with_indices!(&self.ofs, ofs => ofs[block].to_usize()..ofs[block + 1].to_usize())
    }

    fn check_order(&self, parents: usize) -> Result<()> {
        const RULE: &str = "the blocks of a fiber are sorted and do not overlap";
        for fiber in 0..parents {
            let mut free = 0;
            for block in self.fiber(fiber) {
                let (last, length) = (self.crd.get(block), self.children_of(block).len() as u64);
                if length > last + 1 {
                    let message = format!("block {block} has {length} coordinates up to {last}, so it starts below 0");
                    return Err(check::misplaced(message, RULE));
                }
                let first = last + 1 - length;
                if first < free {
                    let message = format!(
                        "block {block} of fiber {fiber} starts at {first}, but the one before ends with {}",
                        free - 1
                    );
                    return Err(check::misplaced(message, RULE));
                }
                free = last + 1;
            }
        }
        Ok(())
    }
}

impl Level for Blocks {
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
        let blocks = self.fiber(parent);
        (self.ofs.get(blocks.end) - self.ofs.get(blocks.start)) as usize
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        with_indices!(&self.crd, crd => with_indices!(&self.ofs, ofs => for block in self.fiber(parent) {
            let (stop, child) = (crd[block].to_u64() + 1, ofs[block].to_usize());
            each(FiberRange { start: stop - (ofs[block + 1].to_usize() - child) as u64, stop, child, shared: false });
        }))
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        if parents.is_empty() {
            return 0..0;
        }
        let blocks = self.fiber(parents.start);
        let block = blocks.start
            + with_indices!(&self.crd, crd => crd[blocks.clone()].partition_point(|last| last.to_u64() < coordinate));
        if block == blocks.end {
            return 0..0;
        }
        let children = self.children_of(block);
        let back = self.crd.get(block) - coordinate;
        if back < children.len() as u64 { children.end - 1 - back as usize..children.end - back as usize } else { 0..0 }
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("pos", self.pos.clone()), ("crd", self.crd.clone()), ("ofs", self.ofs.clone())])
    }
}
