//! Workspaces: elements inserted in any order, located by their coordinates, and finally sorted
//! without duplicates.

use super::{BufferId, Kernel};
use crate::algebra::Op;
use crate::algebra::Value;

/// The storage of elements that are inserted in any order: coordinates (one array for each
/// dimension, outermost first) and values, which the kernel reads and writes at the positions that
/// insertions return.
///
/// A policy may create a second entry for existing coordinates; duplicates are merged before the
/// arrays are read.
///
/// ```
/// use tamis_ir::kernel::Kernel;
/// let text = "kernel f
///     scratch crd: index u32[]
///     scratch values: f64[]
///     workspace w(crd; values) from 0.0 by hash capacity 64 merging add
/// begin
///     reset w[9]
/// ";
/// let workspaces = Kernel::parse(text)?.workspaces();
/// assert_eq!(workspaces[0].policy.as_deref(), Some("hash"));
/// assert_eq!(workspaces[0].capacity, Some(64));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workspace {
    /// Its name.
    pub name: String,
    /// The lookup policy; if `None`, the runtime chooses.
    pub policy: Option<String>,
    /// The number of entries that are buffered before they are sorted and merged with the earlier
    /// ones; if `None`, the runtime chooses.
    pub capacity: Option<u64>,
    /// A worker thread sorts and merges while the kernel inserts.
    pub pipelined: bool,
    /// The coordinates of the entries.
    pub coordinates: Vec<BufferId>,
    /// The values of the entries.
    pub values: BufferId,
    /// The initial value of a new element.
    pub start: Value,
    /// The merge of duplicate entries.
    pub merge: Merge,
}

/// The merge of two values of one element.
///
/// ```
/// use tamis_ir::{algebra::Op, kernel::Merge};
/// let merge = Merge::With(Op::Add);
/// assert!(merge != Merge::Never, "duplicates are added");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merge {
    /// Not needed: lookups find every entry, so elements have one entry each.
    Never,
    /// The later value wins.
    Later,
    /// An operator on values of the workspace's type, whose identity is the initial value.
    With(Op),
}

impl Workspace {
    /// The arrays: coordinates, then values.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, Kernel};
    /// let text = "kernel f
    ///     scratch crd: index u32[]
    ///     scratch values: f64[]
    ///     workspace w(crd; values) from 0.0
    /// begin
    ///     reset w[9]
    /// ";
    /// let workspaces = Kernel::parse(text)?.workspaces();
    /// assert!(workspaces[0].buffers().eq([BufferId(0), BufferId(1)]));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.coordinates.iter().copied().chain([self.values])
    }
}

impl Kernel {
    /// The workspaces, each once, in order of first use.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// assert!(Kernel::parse("kernel f\nbegin\n    let two: i64 = 2\n")?.workspaces().is_empty());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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
