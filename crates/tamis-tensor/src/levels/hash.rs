//! The level `hash`: coordinates that may be written in any order.
//!
//! It is stored as [`sparse`] is, sorted, with the same invariants; only its capabilities differ.
//! There is no hash table of coordinates yet.

use super::{ArrayRole, Assemble, Capabilities, Children, LevelType, positions, sparse, unfurl, write};
use tamis_ir::format::LevelKind;

pub(super) static TYPE: LevelType = LevelType {
    kind: LevelKind::Hash,
    arrays: sparse::ARRAYS,
    children: Children::Elements(ArrayRole::Coordinates),
    capabilities: Capabilities { insert: true, ..sparse::CAPABILITIES },
    assemble: Assemble::Coordinates(sparse::assemble),
    from_arrays: sparse::from_arrays,
    finish: sparse::finish,
    unfurl: unfurl::compressed,
    locate: unfurl::locate_compressed,
    positions: Some(&positions::CompressedPositions),
    write: &write::CompressedWrite,
};
