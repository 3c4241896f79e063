//! The level `singleton`: exactly one coordinate per parent position.
//!
//! Hard invariants, in the order they are checked:
//! - `crd` has the width that the format writes (E0701);
//! - `crd` has one number for each parent position (E0701);
//! - every coordinate is below the size of the dimension (E0703).
//!
//! The child position is the parent position. A parent without a written coordinate (an empty row,
//! when the level above is `dense`) stores coordinate 0, with the fill as its value.

use super::compressed::equal_range;
use super::{
    ArrayRole, Assemble, Assembled, Capabilities, Children, Enumeration, Level, LevelArrays, LevelType, Nodes, Padding,
    Shape, arrays, check, positions, unfurl, write,
};
use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{LevelKind, LevelSpec, Width};
use tamis_ir::{Code, Diagnostic, diag::Result};

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Singleton,
    arrays: &[arrays::COORDINATES.for_each_parent()],
    children: Children::Elements(ArrayRole::Coordinates),
    capabilities: Capabilities {
        full: false,
        padding: Padding::Keeps,
        holes: false,
        one_per_fiber: true,
        shared: false,
        random_access: false,
        insert: false,
        append: true,
        gallop: false,
    },
    assemble: Assemble::Coordinates(assemble),
    from_arrays,
    finish,
    unfurl: unfurl::singleton,
    locate: unfurl::locate_singleton,
    positions: Some(&positions::SingletonPositions),
    write: &write::SingletonWrite,
};

#[derive(Debug)]
struct Singleton {
    crd: IndexArray,
}

fn from_arrays(arrays: LevelArrays, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    let [crd] = check::take(arrays, &TYPE)?;
    check::width("crd", &crd, spec.crd)?;
    check::length("crd", &crd, Some(shape.parents), "one coordinate for each position of the level above")?;
    check::in_range(&crd, shape.extent)?;
    Ok(Arc::new(Singleton { crd }))
}

/// One coordinate for each parent.
fn finish(arrays: LevelArrays, _: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
    check_room(shape.parents, shape.extent)?;
    let [crd] = check::take(arrays, &TYPE)?;
    Ok(Arc::new(Singleton { crd: check::first("crd", crd, Some(shape.parents))? }))
}

/// Each parent needs a coordinate, but a dimension of size 0 has none.
fn check_room(parents: usize, extent: u64) -> Result<()> {
    if parents == 0 || extent > 0 {
        return Ok(());
    }
    let message =
        format!("`singleton` stores one coordinate for each of {parents} positions, but its dimension has size 0");
    Err(Diagnostic::new(Code::E0707, message).help("use `sparse`, whose fibers may be empty"))
}

/// A level of coordinates whose invariants are guaranteed.
pub(super) fn trusted(crd: IndexArray) -> Arc<dyn Level> {
    Arc::new(Singleton { crd })
}

fn assemble(nodes: Nodes<'_>, spec: &LevelSpec) -> Result<Assembled> {
    check_room(nodes.parent_count, nodes.extent)?;
    if let Some(at) = nodes.parents.windows(2).position(|w| w[0] == w[1]) {
        let message = format!(
            "`singleton` holds one coordinate per fiber, but fiber {} has {} and {}",
            nodes.parents[at],
            nodes.coordinates[at],
            nodes.coordinates[at + 1]
        );
        return Err(Diagnostic::new(Code::E0707, message).help("use `sparse` for this level, as in `dense, sparse`"));
    }
    let width = spec.crd.unwrap_or(Width::automatic(nodes.extent.saturating_sub(1)));
    let crd = if nodes.parents.len() == nodes.parent_count {
        IndexArray::with_width(nodes.coordinates, width)?
    } else {
        let mut crd: Vec<u64> = zeroed(nodes.parent_count, "`crd`")?;
        for (parent, coordinate) in nodes.parents.iter().zip(nodes.coordinates) {
            crd[*parent] = *coordinate;
        }
        IndexArray::with_width(&crd, width)?
    };
    let mut positions = reserve(nodes.parents.len(), "the positions of entries")?;
    positions.extend_from_slice(nodes.parents);
    Ok(Assembled { level: Arc::new(Singleton { crd }), positions })
}

impl Level for Singleton {
    fn level_type(&self) -> &'static LevelType {
        &TYPE
    }

    fn children(&self) -> usize {
        self.crd.len()
    }

    fn stored(&self, parents: usize) -> Option<usize> {
        Some(parents)
    }

    fn fiber_length(&self, _: usize) -> usize {
        1
    }

    fn enumerate(&self, parents: &[usize], out: &mut Enumeration) {
        with_indices!(&self.crd, crd => for (k, parent) in parents.iter().enumerate() {
            out.push(k, crd[*parent].to_u64(), *parent);
        })
    }

    fn visit(&self, parent: usize, each: &mut dyn FnMut(u64, usize)) {
        each(self.crd.get(parent), parent);
    }

    fn locate(&self, parents: Range<usize>, coordinate: u64) -> Range<usize> {
        equal_range(&self.crd, parents, coordinate)
    }

    fn arrays(&self) -> LevelArrays {
        LevelArrays::new([("crd", self.crd.clone())])
    }
}
