//! A workspace with arrays of its own: to be used from Rust.

use super::{Description, Merge, Stop, Workspace, WorkspaceReport};
use crate::runtime::arrays;
use crate::runtime::memory::{RawBuffer, align, element_bytes, release};
use tamis_ir::Value;
use tamis_ir::kernel::Elem;

/// A workspace that is no kernel's.
///
/// ```
/// use tamis_backend::runtime::workspace::{Description, Merge, OwnedWorkspace};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let description = Description::new(1, DType::I64, Value::I64(i64::MAX), Some(Merge::Op(Op::Min)));
/// let mut workspace = OwnedWorkspace::new(&description).unwrap();
/// workspace.reset(&[100]).unwrap();
/// for (i, value) in [(7, 5), (3, 1), (7, 4)] {
///     workspace.update(&[i], Value::I64(value)).unwrap();
/// }
/// assert_eq!(workspace.finalize().unwrap(), [(vec![3], Value::I64(1)), (vec![7], Value::I64(4))]);
/// ```
#[derive(Debug)]
pub struct OwnedWorkspace {
    pub(super) workspace: Workspace,
    /// Where the workspace finds them: they do not move.
    buffers: Box<[RawBuffer]>,
}

impl OwnedWorkspace {
    /// A workspace as described, or why there is none.
    pub fn new(description: &Description) -> Result<OwnedWorkspace, String> {
        let which: Vec<usize> = (0..=description.widths.len()).collect();
        let mut buffers: Box<[RawBuffer]> = which.iter().map(|_| RawBuffer::empty()).collect();
        // SAFETY: the descriptors are empty, in a box that lives as long as the workspace, and nobody else has them.
        let workspace = unsafe { Workspace::new(description, buffers.as_mut_ptr(), &which)? };
        Ok(OwnedWorkspace { workspace, buffers })
    }

    /// Forgets all entries, and learns the sizes of the dimensions.
    pub fn reset(&mut self, sizes: &[u64]) -> Result<(), Stop> {
        self.workspace.reset(sizes.iter().copied())
    }

    /// Combines a value with the entry at these coordinates, as compiled code does; without an operator it replaces it.
    pub fn update(&mut self, coordinates: &[u64], value: Value) -> Result<(), Stop> {
        let place = self.workspace.insert(coordinates)? as usize;
        let Description { dtype, init, merge, .. } = self.workspace.description;
        let value = merge.unwrap_or(Merge::Later).apply(self.value(place), value.cast(dtype), init);
        let (bytes, size) = element_bytes(Elem::Value(dtype), value);
        // SAFETY: the place is one of the workspace's values.
        unsafe { self.workspace.values().add(place * size).copy_from_nonoverlapping(bytes.as_ptr(), size) };
        Ok(())
    }

    /// All entries in order, each once.
    pub fn finalize(&mut self) -> Result<Vec<(Vec<u64>, Value)>, Stop> {
        let count = self.workspace.finalize()? as usize;
        self.workspace.refresh();
        let coordinates = |place: usize| self.workspace.lanes.iter().map(|lane| lane.get(place)).collect();
        let entries = (0..count).map(|place| (coordinates(place), self.value(place))).collect();
        self.workspace.close();
        Ok(entries)
    }

    /// What was done and needed so far.
    pub fn report(&self) -> WorkspaceReport {
        self.workspace.report()
    }

    /// The value of an entry that is there.
    fn value(&self, place: usize) -> Value {
        let elem = Elem::Value(self.workspace.description.dtype);
        let mut bytes = [0; 16];
        // SAFETY: the place is one of the workspace's values.
        unsafe {
            self.workspace.values().add(place * elem.size()).copy_to_nonoverlapping(bytes.as_mut_ptr(), elem.size())
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
