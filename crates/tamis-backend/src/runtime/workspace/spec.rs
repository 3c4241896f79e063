//! Workspace specification: what a kernel fixes about a workspace, why operations on it fail, and
//! what it reports.

use super::policy::appends;
use super::{MergeOp, OutOfMemory};
use std::num::NonZero;
use tamis_ir::format::Width;
use tamis_ir::{DType, Value};

/// The specification of a workspace, fixed when a kernel is compiled.
///
/// ```
/// use tamis_backend::runtime::workspace::{MergeOp, WorkspaceSpec};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let sum = WorkspaceSpec::new(2, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)));
/// let hash = WorkspaceSpec { policy: "hash".into(), ..sum };
/// assert_eq!(hash.widths.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceSpec {
    /// The width of the coordinates of each dimension, outermost first: `u32` or `u64`.
    pub widths: Vec<Width>,
    /// The type of values.
    pub dtype: DType,
    /// The initial value of entries.
    pub init: Value,
    /// The operator that merges equal entries. Without one, entries must be found on insertion and
    /// never merged: the policy is then always `hash`, without a capacity.
    pub merge: Option<MergeOp>,
    /// The name of the policy.
    pub policy: String,
    /// The capacity of the accumulation array; by default it grows.
    pub capacity: Option<NonZero<u64>>,
    /// True if a worker thread sorts and merges.
    pub pipelined: bool,
}

impl WorkspaceSpec {
    /// A workspace with 32-bit coordinates, the policy `coord`, no capacity, and no worker thread.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::{MergeOp, WorkspaceSpec};
    /// use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)));
    /// assert_eq!((sum.policy.as_str(), sum.capacity), ("coord", None));
    /// ```
    pub fn new(dimensions: usize, dtype: DType, init: Value, merge: Option<MergeOp>) -> WorkspaceSpec {
        let widths = vec![Width::U32; dimensions];
        WorkspaceSpec { widths, dtype, init, merge, policy: "coord".into(), capacity: None, pipelined: false }
    }

    /// The policy that is actually used.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::WorkspaceSpec;
    /// use tamis_ir::{DType, Value};
    /// let never_merged = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), None);
    /// assert_eq!(never_merged.effective_policy(), "hash");
    /// ```
    pub fn effective_policy(&self) -> &str {
        if self.merge.is_some() { &self.policy } else { "hash" }
    }

    /// True if compiled code appends inline; see [`super::RuntimeWorkspace`].
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::{MergeOp, WorkspaceSpec};
    /// use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)));
    /// assert!(sum.appends() && !WorkspaceSpec { policy: "hash".into(), ..sum }.appends());
    /// ```
    pub fn appends(&self) -> bool {
        appends(self.effective_policy()).unwrap_or(false)
    }
}

/// A violation of the contract of [`super::InsertionPolicy`].
///
/// ```
/// use tamis_backend::runtime::workspace::{PolicyViolation, WorkspaceError};
/// let error = WorkspaceError::PolicyViolation(PolicyViolation::Panicked);
/// assert_ne!(error, WorkspaceError::PolicyViolation(PolicyViolation::FullWhenEmpty));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PolicyViolation {
    /// The policy panicked.
    Panicked,
    /// It returned a position that holds no entry.
    InvalidPosition,
    /// It reported a full array when there were no entries.
    FullWhenEmpty,
}

/// The reason why a workspace operation failed.
///
/// ```
/// # use tamis_backend::runtime::workspace::WorkspaceError;
/// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
/// # use tamis_ir::{DType, Value, algebra::Op};
/// let sum = Some(MergeOp::Op(Op::Add));
/// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
/// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
/// workspace.reset(&[100]).unwrap();
/// let error = workspace.update(&[100], Value::I64(1)).unwrap_err();
/// assert_eq!(error, WorkspaceError::Range { dimension: 0, coordinate: 100, size: 100 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WorkspaceError {
    /// Out of memory for this number of entries.
    Memory { entries: u64 },
    /// A coordinate is out of the range of its dimension.
    Range { dimension: usize, coordinate: u64, size: u64 },
    /// The coordinates of a dimension of this size do not fit their width.
    Width { dimension: usize, size: u64 },
    /// The policy violated its contract.
    PolicyViolation(PolicyViolation),
}

impl From<OutOfMemory> for WorkspaceError {
    fn from(error: OutOfMemory) -> WorkspaceError {
        WorkspaceError::Memory { entries: error.elements }
    }
}

/// Counters and peak memory of a workspace since its creation.
///
/// ```
/// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
/// # use tamis_ir::{DType, Value, algebra::Op};
/// let sum = Some(MergeOp::Op(Op::Add));
/// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
/// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
/// workspace.reset(&[100]).unwrap();
/// for i in [7, 3, 7] {
///     workspace.update(&[i], Value::I64(1)).unwrap();
/// }
/// workspace.finalize().unwrap();
/// let report = workspace.report();
/// assert_eq!((report.inserts, report.finalizations), (3, 1));
/// assert!(report.peak_bytes >= report.accumulation_bytes);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceReport {
    /// The number of inserted entries.
    pub inserts: u64,
    /// The number of flushes of a full accumulation array.
    pub flushes: u64,
    /// The number of entries that were combined; an entry counts each time.
    pub merged: u64,
    /// The number of times that the workspace was finalized.
    pub finalizations: u64,
    /// Peak bytes of accumulation arrays.
    pub accumulation_bytes: u64,
    /// Peak bytes of flushed entries.
    pub flushed_bytes: u64,
    /// Peak bytes of the tables of policies.
    pub policy_bytes: u64,
    /// Peak bytes of scratch memory for combining.
    pub sort_bytes: u64,
    /// Peak bytes of all of them together.
    pub peak_bytes: u64,
}
