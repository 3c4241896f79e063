//! A workspace that owns its arrays, for use from Rust.

use super::{MergeOp, RuntimeWorkspace, WorkspaceError, WorkspaceReport, WorkspaceSpec};
use crate::runtime::arrays;
use crate::runtime::memory::{RawBuffer, align, element_bytes, release};
use tamis_ir::Value;
use tamis_ir::kernel::Elem;

/// A workspace outside of kernels, which owns its arrays.
///
/// ```
/// use tamis_backend::runtime::workspace::{WorkspaceSpec, MergeOp, OwnedWorkspace};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(i64::MAX), Some(MergeOp::Op(Op::Min)));
/// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
/// workspace.reset(&[100]).unwrap();
/// for (i, value) in [(7, 5), (3, 1), (7, 4)] {
///     workspace.update(&[i], Value::I64(value)).unwrap();
/// }
/// assert_eq!(workspace.finalize().unwrap(), [(vec![3], Value::I64(1)), (vec![7], Value::I64(4))]);
/// ```
#[derive(Debug)]
pub struct OwnedWorkspace {
    pub(super) workspace: RuntimeWorkspace,
    /// The descriptors of the arrays; the box pins their addresses.
    buffers: Box<[RawBuffer]>,
}

impl OwnedWorkspace {
    /// Creates a workspace, or returns the reason why the specification is invalid.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::{OwnedWorkspace, WorkspaceSpec};
    /// use tamis_ir::{DType, Value};
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::I64(0), None);
    /// let reason = OwnedWorkspace::new(&spec).unwrap_err();
    /// assert_eq!(reason, "the initial value is f64, not i64");
    /// ```
    pub fn new(spec: &WorkspaceSpec) -> Result<OwnedWorkspace, String> {
        let buffer_ids: Vec<usize> = (0..=spec.widths.len()).collect();
        let mut buffers: Box<[RawBuffer]> = buffer_ids.iter().map(|_| RawBuffer::empty()).collect();
        // SAFETY: the descriptors are empty, in a box that lives as long as the workspace, and not
        // aliased.
        let workspace = unsafe { RuntimeWorkspace::new(spec, buffers.as_mut_ptr(), &buffer_ids)? };
        Ok(OwnedWorkspace { workspace, buffers })
    }

    /// Removes all entries, and sets the sizes of the dimensions.
    ///
    /// ```
    /// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
    /// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    /// workspace.reset(&[100]).unwrap();
    /// workspace.update(&[7], Value::I64(1)).unwrap();
    /// workspace.reset(&[100]).unwrap();
    /// assert!(workspace.finalize().unwrap().is_empty());
    /// ```
    pub fn reset(&mut self, sizes: &[u64]) -> Result<(), WorkspaceError> {
        self.workspace.reset(sizes.iter().copied())
    }

    /// Merges a value into the entry at these coordinates, as compiled code does; without a merge
    /// operator it replaces the value.
    ///
    /// ```
    /// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
    /// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    /// workspace.reset(&[100]).unwrap();
    /// workspace.update(&[7], Value::I64(1)).unwrap();
    /// workspace.update(&[7], Value::I64(2)).unwrap();
    /// assert_eq!(workspace.finalize().unwrap(), [(vec![7], Value::I64(3))]);
    /// ```
    pub fn update(&mut self, coordinates: &[u64], value: Value) -> Result<(), WorkspaceError> {
        let position = self.workspace.insert(coordinates)? as usize;
        let WorkspaceSpec { dtype, init, merge, .. } = self.workspace.spec;
        let value = merge.unwrap_or(MergeOp::KeepLast).apply(self.value(position), value.cast(dtype), init);
        let (bytes, size) = element_bytes(Elem::Value(dtype), value);
        // SAFETY: the position is one of the workspace's values.
        unsafe { self.workspace.values().add(position * size).copy_from_nonoverlapping(bytes.as_ptr(), size) };
        Ok(())
    }

    /// Returns all entries in order of their coordinates, each once.
    ///
    /// ```
    /// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
    /// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    /// workspace.reset(&[100]).unwrap();
    /// for i in [7, 3] {
    ///     workspace.update(&[i], Value::I64(1)).unwrap();
    /// }
    /// let entries = workspace.finalize().unwrap();
    /// assert_eq!(entries, [(vec![3], Value::I64(1)), (vec![7], Value::I64(1))]);
    /// ```
    pub fn finalize(&mut self) -> Result<Vec<(Vec<u64>, Value)>, WorkspaceError> {
        let count = self.workspace.finalize()? as usize;
        self.workspace.reload_arrays();
        let coordinates =
            |position: usize| self.workspace.coord_arrays.iter().map(|array| array.get(position)).collect();
        let entries = (0..count).map(|position| (coordinates(position), self.value(position))).collect();
        self.workspace.close_fast_path();
        Ok(entries)
    }

    /// The counters and memory use so far.
    ///
    /// ```
    /// # use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::I64, Value::I64(0), sum);
    /// let mut workspace = OwnedWorkspace::new(&spec).unwrap();
    /// workspace.reset(&[100]).unwrap();
    /// workspace.update(&[7], Value::I64(1)).unwrap();
    /// workspace.finalize().unwrap();
    /// assert_eq!(workspace.report().inserts, 1);
    /// ```
    pub fn report(&self) -> WorkspaceReport {
        self.workspace.report()
    }

    /// The value of an existing entry.
    fn value(&self, position: usize) -> Value {
        let elem = Elem::Value(self.workspace.spec.dtype);
        let mut bytes = [0; 16];
        // SAFETY: the position is one of the workspace's values.
        unsafe {
            self.workspace.values().add(position * elem.size()).copy_to_nonoverlapping(bytes.as_mut_ptr(), elem.size())
        };
        arrays::value(elem, bytes)
    }
}

impl Drop for OwnedWorkspace {
    fn drop(&mut self) {
        for (buffer, elem) in self.buffers.iter_mut().zip(&self.workspace.elems) {
            release(buffer, elem.size(), align(*elem));
        }
    }
}
