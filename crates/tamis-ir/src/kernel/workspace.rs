//! Workspaces: elements inserted in any order, found by their coordinates, in the end sorted and each there once.

use super::{BufferId, Kernel};
use crate::algebra::Op;
use crate::algebra::Value;

/// The storage of elements that are inserted in any order: coordinates (one array for each dimension, outermost first)
/// and values, which the kernel reads and writes at the places that an insertion gives.
///
/// A policy may make a second entry for coordinates that it has; such entries are merged before the arrays are
/// read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workspace {
    /// Its name.
    pub name: String,
    /// The lookup policy; `None` leaves it to the runtime.
    pub policy: Option<String>,
    /// How many entries are collected before they are sorted and merged with those before; `None` leaves that to the
    /// runtime.
    pub capacity: Option<u64>,
    /// Sorting and merging go on beside insertion.
    pub pipelined: bool,
    /// The coordinates of the entries.
    pub coordinates: Vec<BufferId>,
    /// The values of the entries.
    pub values: BufferId,
    /// The initial value of a new element.
    pub start: Value,
    /// The merge of two values of one element.
    pub merge: Merge,
}

/// The merge of two values of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merge {
    /// They cannot: every element has one entry from the beginning.
    Never,
    /// The later one stays.
    Later,
    /// By an operator on values of the workspace's type, of which the start is an identity.
    With(Op),
}

impl Workspace {
    /// The arrays: coordinates, then values.
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.coordinates.iter().copied().chain([self.values])
    }
}

impl Kernel {
    /// The workspaces, each once, in the order in which they come.
    pub fn workspaces(&self) -> Vec<std::sync::Arc<Workspace>> {
        let mut found: Vec<std::sync::Arc<Workspace>> = Vec::new();
        self.visit(&mut |stmt| {
            if let Some(workspace) = stmt.workspace()
                && !found.iter().any(|other| other.values == workspace.values)
            {
                found.push(workspace.clone());
            }
        });
        found
    }
}
