//! The level `dense`: every coordinate, no arrays.
//!
//! Hard invariants:
//! - there are no arrays;
//! - `parents * extent`, the number of child positions, fits memory's index type.
//!
//! The child position of coordinate i below parent p is `p * extent + i`.

use super::{
    Assemble, Assembled, Capabilities, Children, Enumeration, FiberRange, Level, LevelArrays, LevelType, Nodes,
    Padding, Shape, check, positions, unfurl, write,
};
use crate::memory::{product, reserve};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Dense,
    arrays: &[],
    children: Children::Cells,
    capabilities: Capabilities {
        full: true,
        padding: Padding::Adds,
        holes: false,
        one_per_fiber: false,
        shared: false,
        random_access: true,
        insert: true,
        append: true,
        gallop: false,
    },
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    // There are no arrays to truncate.
    finish: from_arrays,
    unfurl: unfurl::dense,
    locate: unfurl::locate_dense,
    positions: Some(&positions::DensePositions),
    write: &write::DenseWrite,
};

#[derive(Debug)]
struct Dense {
    extent: usize,
    children: usize,
}

fn new(parents: usize, extent: u64) -> Result<Dense> {
    let children = product(parents, extent)?;
    // Without parents nothing is visited, so an extent beyond memory is harmless.
    Ok(Dense { extent: usize::try_from(extent).unwrap_or(usize::MAX), children })
}

/// The child position of a coordinate below the only one of `parents`, in a level with a position
/// for every coordinate.
pub(super) fn position(parents: Range<usize>, extent: usize, coordinate: u64) -> Option<usize> {
    let inside = !parents.is_empty() && coordinate < extent as u64;
    inside.then(|| parents.start * extent + coordinate as usize)
}

fn from_arrays(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [] = check::take(arrays, &TYPE)?;
    Ok(Arc::new(new(shape.parents, shape.extent)?))
}

fn assemble(nodes: Nodes<'_>, _: &LevelSpec) -> Result<Assembled> {
    let level = new(nodes.parent_count, nodes.extent)?;
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    positions.extend(nodes.parents.iter().zip(nodes.coordinates).map(|(p, i)| p * level.extent + *i as usize));
    Ok(Assembled { level: Arc::new(level), positions })
}

impl Level for Dense {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.children
    }

    fn stored(&self, parents: usize) -> Option<usize> {
        parents.checked_mul(self.extent)
    }

    fn fiber_length(&self, _: usize) -> usize {
        self.extent
    }

    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        for (k, parent) in parents.iter().enumerate() {
            for i in 0..self.extent {
                out.push(k, i as u64, parent * self.extent + i);
            }
        }
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        if self.extent > 0 {
            each(FiberRange { start: 0, stop: self.extent as u64, child: parent * self.extent, shared: false });
        }
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        position(parents, self.extent, coordinate).map_or(0..0, |position| position..position + 1)
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::default()
    }
}
