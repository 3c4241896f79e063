//! The level `sparse`: a sorted coordinate list per fiber; with `nonunique`, one coordinate per
//! entry (COO); with `nonordered`, in any order.
//!
//! Hard invariants: those of [`Compressed`], whose child positions are the indices of `crd`. In a
//! nonunique level a coordinate may repeat; together with the singletons below, the tuples are
//! strictly increasing ([`super::tree`] checks that, E0704 and E0708).
//!
//! [`super::hash`] is stored in the same way, so a level holds a reference to its row.

use super::compressed::Compressed;
use super::{
    ArrayRole, ArraySpec, Assemble, Assembled, Capabilities, Children, Enumeration, FiberRange, Level, LevelArrays,
    LevelType, Nodes, Padding, Shape, arrays, check, level_type, positions, unfurl, write,
};
use crate::IndexArray;
use crate::memory::reserve;
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Sparse,
    arrays: ARRAYS,
    children: Children::Elements(ArrayRole::Coordinates),
    capabilities: CAPABILITIES,
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::compressed,
    locate: unfurl::locate_compressed,
    positions: Some(&positions::CompressedPositions),
    write: &write::CompressedWrite,
};

pub(super) const ARRAYS: &[ArraySpec] = &[arrays::FIBER_OFFSETS, arrays::COORDINATES];

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    full: false,
    padding: Padding::Removes,
    holes: false,
    one_per_fiber: false,
    shared: false,
    random_access: false,
    insert: false,
    append: true,
    gallop: true,
};

#[derive(Debug)]
struct Sparse {
    row: &'static LevelType,
    list: Compressed,
}

pub(super) fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let row = level_type(spec.kind)?;
    let [pos, crd] = check::take(arrays, row)?;
    Ok(Arc::new(Sparse { row, list: Compressed::checked(pos, crd, spec, shape)? }))
}

/// `pos` determines the length of `crd`.
pub(super) fn finish(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let row = level_type(spec.kind)?;
    let [pos, crd] = check::take(arrays, row)?;
    Ok(Arc::new(Sparse { row, list: Compressed::cut(pos, crd, spec, shape)? }))
}

/// A level of arrays whose invariants are guaranteed.
pub(super) fn trusted(row: &'static LevelType, pos: IndexArray, crd: IndexArray, spec: &LevelSpec) -> Arc<dyn Level> {
    Arc::new(Sparse { row, list: Compressed { pos, crd, ordered: !spec.nonordered } })
}

pub(super) fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let level = Sparse { row: level_type(spec.kind)?, list: Compressed::assemble(nodes, spec)? };
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    positions.extend(0..nodes.parents.len());
    Ok(Assembled { level: Arc::new(level), positions })
}

impl Level for Sparse {
    fn level_type(&self) -> &'static LevelType {
        self.row
    }

    fn children(&self) -> usize {
        self.list.crd.len()
    }

    fn stored(&self, _: usize) -> Option<usize> {
        Some(self.list.crd.len())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        self.list.fiber(parent).len()
    }

    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        self.list.enumerate(parents, out, |_, q, _| q);
    }

    fn ranges(&self, parent: usize, each: &mut dyn FnMut(FiberRange)) {
        self.list.ranges(parent, each);
    }

    fn visit(&self, parent: usize, each: &mut dyn FnMut(u64, usize)) {
        self.list.visit(parent, each);
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        self.list.locate(parents, coordinate)
    }

    fn arrays(&self) -> LevelArrays {
        self.list.arrays()
    }
}
