//! C ABI of workspaces: the functions that compiled code calls.
//!
//! Functions on a workspace take the table of the kernel's buffers, whose descriptors they change
//! through the workspace, so that the arguments of a call tell LLVM what it may modify. Functions
//! that can fail take a pointer to a failure, and return a negative number on failure: minus the
//! status that the kernel returns. No function unwinds, whatever a policy does.

use super::{MergeOp, PolicyViolation, RuntimeWorkspace, WorkspaceError, WorkspaceSpec};
use crate::failure::RawFailure;
use crate::runtime::{Address, RawBuffer, arrays};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tamis_ir::DType;
use tamis_ir::algebra::TABLE;
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// A [`WorkspaceSpec`] in constant data of compiled code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawWorkspaceSpec {
    /// The number of dimensions.
    pub dimensions: u64,
    /// The kernel's buffer ids: one per dimension, and that of the values.
    pub buffers: *const u64,
    /// The bytes of a coordinate per dimension: 4 or 8.
    pub widths: *const u8,
    /// The type of values, as an index into [`DType::ALL`].
    pub dtype: u64,
    /// The initial value of entries: 16 bytes, of which the type uses a prefix.
    pub init: *const u8,
    /// The merge operator: an index into [`TABLE`], [`RawWorkspaceSpec::KEEP_LAST`], or
    /// [`RawWorkspaceSpec::NEVER`].
    pub merge: i64,
    /// The name of the policy, in UTF-8.
    pub policy: *const u8,
    /// The length of that name in bytes.
    pub policy_len: u64,
    /// The capacity, or 0.
    pub capacity: u64,
    /// 1 if a worker thread sorts and merges, else 0.
    pub pipelined: u64,
}

impl RawWorkspaceSpec {
    /// The later of two entries replaces the earlier one.
    const KEEP_LAST: i64 = -1;
    /// Entries are found on insertion, and never merged.
    const NEVER: i64 = -2;

    /// The encoding for [`RawWorkspaceSpec::merge`].
    #[cfg(test)]
    fn encode_merge(merge: Option<MergeOp>) -> i64 {
        match merge {
            None => RawWorkspaceSpec::NEVER,
            Some(MergeOp::KeepLast) => RawWorkspaceSpec::KEEP_LAST,
            Some(MergeOp::Op(op)) => {
                let row = TABLE.iter().position(|row| row.op == op);
                row.map_or(RawWorkspaceSpec::NEVER, |row| row as i64)
            }
        }
    }

    /// Decodes the specification and the buffer ids.
    ///
    /// # Safety
    /// The pointers are valid as the fields describe.
    unsafe fn read(&self) -> Option<(WorkspaceSpec, Vec<usize>)> {
        let dimensions = usize::try_from(self.dimensions).ok()?;
        // SAFETY: guaranteed by the caller.
        let (buffers, widths, init, policy) = unsafe {
            (
                std::slice::from_raw_parts(self.buffers, dimensions + 1),
                std::slice::from_raw_parts(self.widths, dimensions),
                self.init.cast::<[u8; 16]>().read(),
                std::slice::from_raw_parts(self.policy, usize::try_from(self.policy_len).ok()?),
            )
        };
        let dtype = *DType::ALL.get(usize::try_from(self.dtype).ok()?)?;
        let merge = match self.merge {
            RawWorkspaceSpec::NEVER => None,
            RawWorkspaceSpec::KEEP_LAST => Some(MergeOp::KeepLast),
            row => Some(MergeOp::Op(TABLE.get(usize::try_from(row).ok()?)?.op)),
        };
        let spec = WorkspaceSpec {
            widths: widths.iter().map(|bytes| if *bytes == 4 { Width::U32 } else { Width::U64 }).collect(),
            dtype,
            init: arrays::value(Elem::Value(dtype), init),
            merge,
            policy: std::str::from_utf8(policy).ok()?.to_string(),
            capacity: NonZero::new(self.capacity),
            pipelined: self.pipelined != 0,
        };
        Some((spec, buffers.iter().map(|id| *id as usize).collect()))
    }
}

/// Creates a workspace on some of the kernel's buffers; null if the specification is invalid, which
/// the compiler diagnoses.
///
/// # Safety
/// The specification is valid as its fields describe; for the buffers see
/// [`RuntimeWorkspace::new`].
unsafe extern "C" fn create(buffers: *mut RawBuffer, spec: *const RawWorkspaceSpec) -> *mut RuntimeWorkspace {
    let make = || {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (spec, buffer_ids) = (*spec).read()?;
            RuntimeWorkspace::new(&spec, buffers, &buffer_ids).ok()
        }
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Some(workspace)) => Box::into_raw(Box::new(workspace)),
        _ => std::ptr::null_mut(),
    }
}

/// Destroys a workspace, if it is not null; the kernel's buffers stay.
///
/// # Safety
/// The workspace was created by [`create`], and is not used any more.
unsafe extern "C" fn destroy(workspace: *mut RuntimeWorkspace) {
    if !workspace.is_null() {
        // SAFETY: guaranteed by the caller. A policy that panics in its destructor leaks, no more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(workspace) })));
    }
}

/// Runs an action that may fail, and may panic if the policy is not built-in.
///
/// # Safety
/// `failure` is valid for writes.
#[inline(always)]
unsafe fn guarded(
    workspace: &mut RuntimeWorkspace,
    failure: *mut RawFailure,
    action: impl FnOnce(&mut RuntimeWorkspace) -> Result<u64, WorkspaceError>,
) -> i64 {
    let result = if workspace.has_built_in_policy() {
        action(workspace)
    } else {
        let result = catch_unwind(AssertUnwindSafe(|| action(workspace)));
        result.unwrap_or(Err(WorkspaceError::PolicyViolation(PolicyViolation::Panicked)))
    };
    match result {
        Ok(result) => result as i64,
        Err(error) => {
            let (status, raw) = workspace.failure(error);
            // SAFETY: guaranteed by the caller.
            unsafe { failure.write(raw) };
            -(status as i64)
        }
    }
}

/// Removes all entries, and sets the sizes of the dimensions: returns 0, or a failure.
///
/// # Safety
/// The workspace was created by [`create`], and is used by one thread at a time. There are as many
/// sizes as dimensions, and `failure` is valid for writes.
unsafe extern "C" fn reset(
    workspace: *mut RuntimeWorkspace,
    _: *mut RawBuffer,
    sizes: *const i64,
    failure: *mut RawFailure,
) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let workspace = &mut *workspace;
        let sizes = slice(sizes, workspace.spec.widths.len());
        let sizes = sizes.iter().map(|size| (*size).max(0) as u64);
        guarded(workspace, failure, |workspace| workspace.reset(sizes).map(|()| 0))
    }
}

/// Returns the position of the entry with these coordinates, or a failure.
///
/// # Safety
/// As for [`reset`], with coordinates instead of sizes.
unsafe extern "C" fn insert(
    workspace: *mut RuntimeWorkspace,
    _: *mut RawBuffer,
    coordinates: *const i64,
    failure: *mut RawFailure,
) -> i64 {
    // SAFETY: guaranteed by the caller. A negative coordinate becomes one that is out of every
    // range.
    unsafe {
        let workspace = &mut *workspace;
        let coordinates = slice(coordinates.cast::<u64>(), workspace.spec.widths.len());
        guarded(workspace, failure, |workspace| workspace.insert(coordinates))
    }
}

/// Reserves space for an entry that compiled code will append: returns 0, or a failure.
///
/// # Safety
/// As for [`reset`].
unsafe extern "C" fn reserve(workspace: *mut RuntimeWorkspace, _: *mut RawBuffer, failure: *mut RawFailure) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { guarded(&mut *workspace, failure, |workspace| workspace.reserve(false).map(|_| 0)) }
}

/// Sorts and combines the entries: returns their number, or a failure.
///
/// # Safety
/// As for [`reset`].
unsafe extern "C" fn finalize(workspace: *mut RuntimeWorkspace, _: *mut RawBuffer, failure: *mut RawFailure) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { guarded(&mut *workspace, failure, RuntimeWorkspace::finalize) }
}

/// # Safety
/// There are `len` elements; without elements the pointer may be anything.
unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, len) } }
}

pub(in super::super) static SYMBOLS: &[(&str, Address)] = &[
    ("tamis_workspace_create", Address(create as *const ())),
    ("tamis_workspace_destroy", Address(destroy as *const ())),
    ("tamis_workspace_reset", Address(reset as *const ())),
    ("tamis_workspace_insert", Address(insert as *const ())),
    ("tamis_workspace_reserve", Address(reserve as *const ())),
    ("tamis_workspace_finalize", Address(finalize as *const ())),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;
    use crate::runtime::memory::release;
    use crate::runtime::workspace::{AccumulationView, InsertionPolicy, Lookup, register};
    use tamis_ir::algebra::Op;

    struct Panics;

    impl InsertionPolicy for Panics {
        fn lookup(&mut self, _: &[u64], _: &AccumulationView<'_>) -> Result<Lookup, crate::runtime::OutOfMemory> {
            panic!("a custom policy")
        }
        fn clear(&mut self, _: &AccumulationView<'_>) {}
    }

    /// Runs `test` on a workspace of two dimensions that adds `f64`, with three of a kernel's four
    /// buffers.
    fn with(policy: &str, test: impl FnOnce(*mut RuntimeWorkspace, *mut RawBuffer, *mut RawFailure)) {
        let mut buffers = [RawBuffer::empty(); 4];
        let spec = RawWorkspaceSpec {
            dimensions: 2,
            buffers: [3, 1, 2].as_ptr(),
            widths: [4, 8].as_ptr(),
            dtype: DType::ALL.iter().position(|dtype| *dtype == DType::F64).unwrap() as u64,
            init: [0u8; 16].as_ptr(),
            merge: RawWorkspaceSpec::encode_merge(Some(MergeOp::Op(Op::Add))),
            policy: policy.as_ptr(),
            policy_len: policy.len() as u64,
            capacity: 2,
            pipelined: 0,
        };
        let mut failure = RawFailure::default();
        // SAFETY: the specification is valid, and the buffers are empty and outlive the workspace.
        unsafe {
            let workspace = create(buffers.as_mut_ptr(), &spec);
            test(workspace, buffers.as_mut_ptr(), &mut failure);
            destroy(workspace);
        }
        for (buffer, size) in [(3, 4), (1, 8), (2, 8)] {
            release(&mut buffers[buffer], size, size);
        }
    }

    #[test]
    fn a_kernel_scatters() {
        for policy in ["coord", "hash", "bucket"] {
            with(policy, |workspace, buffers, failure| {
                // SAFETY: the workspace was just created; positions are those of values.
                unsafe {
                    for round in 0..2 {
                        assert_eq!(reset(workspace, std::ptr::null_mut(), [3, 3].as_ptr(), failure), 0);
                        for (i, j, value) in [(2, 1, 4.0), (0, 1, 1.0), (1, 2, 9.0), (0, 1, 8.0), (2, 1, 20.0)] {
                            let position = insert(workspace, std::ptr::null_mut(), [i, j].as_ptr(), failure);
                            assert!((0..2).contains(&position), "{policy} {round} {position}");
                            *(*buffers.add(2)).data.cast::<f64>().add(position as usize) += value;
                        }
                        assert_eq!(finalize(workspace, std::ptr::null_mut(), failure), 3);
                        let rows = std::slice::from_raw_parts((*buffers.add(3)).data.cast::<u32>(), 3);
                        let columns = std::slice::from_raw_parts((*buffers.add(1)).data.cast::<u64>(), 3);
                        let values = std::slice::from_raw_parts((*buffers.add(2)).data.cast::<f64>(), 3);
                        assert_eq!((rows, columns, values), (&[0, 1, 2][..], &[1, 2, 1][..], &[9.0, 9.0, 24.0][..]));
                    }
                }
            });
        }
    }

    /// The inline append of compiled code.
    #[test]
    fn compiled_code_appends_within_the_capacity() {
        with("coord", |workspace, buffers, failure| {
            // SAFETY: the workspace was just created, its first fields are `count` and `capacity`,
            // and the arrays have that capacity.
            unsafe {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [100, 100].as_ptr(), failure), 0);
                let fields = workspace.cast::<u64>();
                for k in 0..50u64 {
                    if fields.read() == fields.add(1).read() {
                        assert_eq!(reserve(workspace, std::ptr::null_mut(), failure), 0);
                    }
                    let position = fields.read() as usize;
                    (*buffers.add(3)).data.cast::<u32>().add(position).write(k as u32 % 7);
                    (*buffers.add(1)).data.cast::<u64>().add(position).write(k % 3);
                    (*buffers.add(2)).data.cast::<f64>().add(position).write(1.0);
                    fields.write(position as u64 + 1);
                }
                assert_eq!(finalize(workspace, std::ptr::null_mut(), failure), 21);
                let values = std::slice::from_raw_parts((*buffers.add(2)).data.cast::<f64>(), 21);
                assert_eq!(values.iter().sum::<f64>(), 50.0);
                assert_eq!((*workspace).report().inserts, 50);
            }
        });
    }

    #[test]
    fn failures_are_reported() {
        register("abi-panics", || Box::new(Panics));
        // SAFETY: the workspaces were just created.
        unsafe {
            with("hash", |workspace, _, failure| {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [-4, 9].as_ptr(), failure), 0);
                assert_eq!(insert(workspace, std::ptr::null_mut(), [0, 0].as_ptr(), failure), -(Status::Bounds as i64));
                assert_eq!(*failure, RawFailure { id: 3, index: 0, len: 0 });
                assert_eq!(reset(workspace, std::ptr::null_mut(), [9, i64::MAX].as_ptr(), failure), 0);
                assert_eq!(
                    insert(workspace, std::ptr::null_mut(), [0, -1].as_ptr(), failure),
                    -(Status::Bounds as i64)
                );
                assert_eq!(*failure, RawFailure { id: 1, index: -1, len: i64::MAX });
                assert_eq!(
                    reset(workspace, std::ptr::null_mut(), [i64::MAX, 2].as_ptr(), failure),
                    -(Status::Width as i64)
                );
                assert_eq!(*failure, RawFailure { id: 3, index: i64::MAX - 1, len: 0 });
            });
            with("abi-panics", |workspace, _, failure| {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [9, 9].as_ptr(), failure), 0);
                assert_eq!(insert(workspace, std::ptr::null_mut(), [1, 1].as_ptr(), failure), -(Status::Policy as i64));
                assert_eq!(failure.read().id, 2);
                assert_eq!(finalize(workspace, std::ptr::null_mut(), failure), 0);
            });
            with("no such policy", |workspace, _, _| assert!(workspace.is_null()));
        }
    }
}
