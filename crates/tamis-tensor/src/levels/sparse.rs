//! `sparse`: a sorted list of coordinates per fiber; with `nonunique`, one per entry (COO).
//!
//! Hard invariants: those of [`Compressed`], whose child positions are the indices of `crd`. In a nonunique level
//! a coordinate may repeat; together with the singletons below, the tuples increase strictly
//! ([`super::tree`] checks that, E0704 and E0708).

use super::compressed::Compressed;
use super::{Assembled, Capabilities, Enumeration, Level, LevelArrays, LevelType, Nodes, Padding, Shape, check};
use crate::IndexArray;
use crate::memory::reserve;
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::diag::Result;
use tamis_ir::format::{LevelKind, LevelSpec};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Sparse,
    arrays: &["pos", "crd"],
    capabilities: Capabilities {
        full: false,
        padding: Padding::Removes,
        holes: false,
        one_per_fiber: false,
        random_access: false,
        insert: false,
        append: true,
    },
    assemble,
    from_arrays,
};

#[derive(Debug)]
struct Sparse(Compressed);

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [pos, crd] = check::take(arrays, &TYPE)?;
    Ok(Arc::new(Sparse(Compressed::checked(pos, crd, spec, shape)?)))
}

/// A level of arrays that are known to keep the invariants.
pub(super) fn trusted(pos: IndexArray, crd: IndexArray) -> Arc<dyn Level> {
    Arc::new(Sparse(Compressed { pos, crd }))
}

fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    let level = Sparse(Compressed::assemble(nodes, spec)?);
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    positions.extend(0..nodes.parents.len());
    Ok(Assembled { level: Arc::new(level), positions })
}

impl Level for Sparse {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.0.crd.len()
    }

    fn stored(&self, _: usize) -> Option<usize> {
        Some(self.0.crd.len())
    }

    fn fiber_length(&self, parent: usize) -> usize {
        self.0.fiber(parent).len()
    }

    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        self.0.enumerate(parents, out, |_, q, _| q);
    }

    fn visit(&self, parent: usize, each: &mut dyn FnMut(u64, usize)) {
        self.0.visit(parent, each);
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        self.0.locate(parents, coordinate)
    }

    fn arrays(&self) -> LevelArrays {
        self.0.arrays()
    }
}
