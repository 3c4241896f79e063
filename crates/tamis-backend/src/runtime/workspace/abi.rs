//! Workspaces as compiled code uses them.
//!
//! Functions that work on a workspace take the table of the kernel's buffers, whose descriptors they change through the
//! workspace: compiled code sees only by its arguments what a call may change. Functions that can fail take a place for the failure, and give a negative number then: minus the status that the
//! kernel returns. No function unwinds, whatever a policy does.

use super::{Broken, Description, Merge, Stop, Workspace};
use crate::failure::RawFailure;
use crate::runtime::{Address, RawBuffer, arrays};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tamis_ir::DType;
use tamis_ir::algebra::TABLE;
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// A [`Description`] as compiled code has it among its constants.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawDescription {
    /// How many dimensions there are.
    pub dimensions: u64,
    /// The numbers of the kernel's buffers: one per dimension, and that of the values.
    pub buffers: *const u64,
    /// The bytes of a coordinate, per dimension: 4 or 8.
    pub widths: *const u8,
    /// The type of values, by its number in [`DType::ALL`].
    pub dtype: u64,
    /// The bytes of the value that new entries hold: 16, of which as many are used as it has.
    pub init: *const u8,
    /// How entries are merged: an operator by its row in [`TABLE`], [`RawDescription::LATER`], or
    /// [`RawDescription::NEVER`].
    pub merge: i64,
    /// The name of the policy, in UTF-8.
    pub policy: *const u8,
    /// The bytes of that name.
    pub policy_len: u64,
    /// The capacity, or 0.
    pub capacity: u64,
    /// Whether a second thread sorts and merges: 0 or 1.
    pub pipelined: u64,
}

impl RawDescription {
    /// The later of two entries is taken.
    pub const LATER: i64 = -1;
    /// Entries are found on insertion, and never merged.
    pub const NEVER: i64 = -2;

    /// The number for [`RawDescription::merge`].
    pub fn merge_number(merge: Option<Merge>) -> i64 {
        match merge {
            None => RawDescription::NEVER,
            Some(Merge::Later) => RawDescription::LATER,
            Some(Merge::Op(op)) => {
                let row = TABLE.iter().position(|row| row.op == op);
                row.map_or(RawDescription::NEVER, |row| row as i64)
            }
        }
    }

    /// The description, and the numbers of the buffers.
    ///
    /// # Safety
    /// The pointers are as the fields say.
    unsafe fn read(&self) -> Option<(Description, Vec<usize>)> {
        let dimensions = usize::try_from(self.dimensions).ok()?;
        // SAFETY: promised by the caller.
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
            RawDescription::NEVER => None,
            RawDescription::LATER => Some(Merge::Later),
            row => Some(Merge::Op(TABLE.get(usize::try_from(row).ok()?)?.op)),
        };
        let description = Description {
            widths: widths.iter().map(|bytes| if *bytes == 4 { Width::U32 } else { Width::U64 }).collect(),
            dtype,
            init: arrays::value(Elem::Value(dtype), init),
            merge,
            policy: std::str::from_utf8(policy).ok()?.to_string(),
            capacity: NonZero::new(self.capacity),
            pipelined: self.pipelined != 0,
        };
        Some((description, buffers.iter().map(|number| *number as usize).collect()))
    }
}

/// Makes a workspace on some of the kernel's buffers; null if what is described is not there, which is for the
/// compiler to diagnose.
///
/// # Safety
/// The description is as its fields say; for the buffers see [`Workspace::new`].
unsafe extern "C" fn create(buffers: *mut RawBuffer, description: *const RawDescription) -> *mut Workspace {
    let make = || {
        // SAFETY: promised by the caller.
        unsafe {
            let (description, which) = (*description).read()?;
            Workspace::new(&description, buffers, &which).ok()
        }
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Some(workspace)) => Box::into_raw(Box::new(workspace)),
        _ => std::ptr::null_mut(),
    }
}

/// Frees a workspace, if there is one; the kernel's buffers stay.
///
/// # Safety
/// The workspace was made by [`create`], and nobody uses it any more.
unsafe extern "C" fn destroy(workspace: *mut Workspace) {
    if !workspace.is_null() {
        // SAFETY: promised by the caller. A policy that panics when it is dropped leaks, no more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(workspace) })));
    }
}

/// Does something that may fail, and may panic if the policy is not ours.
///
/// # Safety
/// There is room for a failure at `failure`.
#[inline(always)]
unsafe fn guarded(
    workspace: &mut Workspace,
    failure: *mut RawFailure,
    action: impl FnOnce(&mut Workspace) -> Result<u64, Stop>,
) -> i64 {
    let result = if workspace.trusted() {
        action(workspace)
    } else {
        let result = catch_unwind(AssertUnwindSafe(|| action(workspace)));
        result.unwrap_or(Err(Stop::Broken(Broken::Panicked)))
    };
    match result {
        Ok(number) => number as i64,
        Err(stop) => {
            let (status, raw) = workspace.failure(stop);
            // SAFETY: promised by the caller.
            unsafe { failure.write(raw) };
            -(status as i64)
        }
    }
}

/// Forgets all entries and learns the sizes of the dimensions: 0, or a failure.
///
/// # Safety
/// The workspace was made by [`create`], and is used by one thread at a time; there are as many sizes as dimensions, and
/// room for a failure.
unsafe extern "C" fn reset(
    workspace: *mut Workspace,
    _: *mut RawBuffer,
    sizes: *const i64,
    failure: *mut RawFailure,
) -> i64 {
    // SAFETY: promised by the caller.
    unsafe {
        let workspace = &mut *workspace;
        let sizes = slice(sizes, workspace.description.widths.len());
        let sizes = sizes.iter().map(|size| (*size).max(0) as u64);
        guarded(workspace, failure, |workspace| workspace.reset(sizes).map(|()| 0))
    }
}

/// The place of the entry with these coordinates, or a failure.
///
/// # Safety
/// As for [`reset`], with coordinates for sizes.
unsafe extern "C" fn insert(
    workspace: *mut Workspace,
    _: *mut RawBuffer,
    coordinates: *const i64,
    failure: *mut RawFailure,
) -> i64 {
    // SAFETY: promised by the caller. A negative coordinate becomes one that no dimension has.
    unsafe {
        let workspace = &mut *workspace;
        let coordinates = slice(coordinates.cast::<u64>(), workspace.description.widths.len());
        guarded(workspace, failure, |workspace| workspace.insert(coordinates))
    }
}

/// Makes room for an entry that compiled code will append: 0, or a failure.
///
/// # Safety
/// As for [`reset`].
unsafe extern "C" fn room(workspace: *mut Workspace, _: *mut RawBuffer, failure: *mut RawFailure) -> i64 {
    // SAFETY: promised by the caller.
    unsafe { guarded(&mut *workspace, failure, |workspace| workspace.make_room(false).map(|_| 0)) }
}

/// Puts the entries in order: how many there are, or a failure.
///
/// # Safety
/// As for [`reset`].
unsafe extern "C" fn finalize(workspace: *mut Workspace, _: *mut RawBuffer, failure: *mut RawFailure) -> i64 {
    // SAFETY: promised by the caller.
    unsafe { guarded(&mut *workspace, failure, Workspace::finalize) }
}

/// # Safety
/// There are so many elements; none need a pointer to be anything.
unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    // SAFETY: promised by the caller.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, len) } }
}

pub(in super::super) static SYMBOLS: &[(&str, Address)] = &[
    ("tamis_workspace_create", Address(create as *const ())),
    ("tamis_workspace_destroy", Address(destroy as *const ())),
    ("tamis_workspace_reset", Address(reset as *const ())),
    ("tamis_workspace_insert", Address(insert as *const ())),
    ("tamis_workspace_room", Address(room as *const ())),
    ("tamis_workspace_finalize", Address(finalize as *const ())),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;
    use crate::runtime::memory::release;
    use crate::runtime::workspace::{Entries, Place, Policy, register};
    use tamis_ir::algebra::Op;

    struct Panics;

    impl Policy for Panics {
        fn place(&mut self, _: &[u64], _: &Entries<'_>) -> Result<Place, crate::runtime::OutOfMemory> {
            panic!("a policy of somebody else")
        }
        fn clear(&mut self, _: &Entries<'_>) {}
    }

    /// Runs `test` on a workspace of two dimensions that adds `f64`, among three buffers of a kernel.
    fn with(policy: &str, test: impl FnOnce(*mut Workspace, *mut RawBuffer, *mut RawFailure)) {
        let mut buffers = [RawBuffer::empty(); 4];
        let description = RawDescription {
            dimensions: 2,
            buffers: [3, 1, 2].as_ptr(),
            widths: [4, 8].as_ptr(),
            dtype: DType::ALL.iter().position(|dtype| *dtype == DType::F64).unwrap() as u64,
            init: [0u8; 16].as_ptr(),
            merge: RawDescription::merge_number(Some(Merge::Op(Op::Add))),
            policy: policy.as_ptr(),
            policy_len: policy.len() as u64,
            capacity: 2,
            pipelined: 0,
        };
        let mut failure = RawFailure::default();
        // SAFETY: the description is as its fields say, the buffers are empty and outlive the workspace.
        unsafe {
            let workspace = create(buffers.as_mut_ptr(), &description);
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
                // SAFETY: the workspace was just made; places are those of values.
                unsafe {
                    for round in 0..2 {
                        assert_eq!(reset(workspace, std::ptr::null_mut(), [3, 3].as_ptr(), failure), 0);
                        for (i, j, value) in [(2, 1, 4.0), (0, 1, 1.0), (1, 2, 9.0), (0, 1, 8.0), (2, 1, 20.0)] {
                            let place = insert(workspace, std::ptr::null_mut(), [i, j].as_ptr(), failure);
                            assert!((0..2).contains(&place), "{policy} {round} {place}");
                            *(*buffers.add(2)).data.cast::<f64>().add(place as usize) += value;
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

    /// What compiled code does by itself.
    #[test]
    fn appending_needs_only_room() {
        with("coord", |workspace, buffers, failure| {
            // SAFETY: the workspace was just made, its first fields are `count` and `room`, and arrays have so much room.
            unsafe {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [100, 100].as_ptr(), failure), 0);
                let fields = workspace.cast::<u64>();
                for k in 0..50u64 {
                    if fields.read() == fields.add(1).read() {
                        assert_eq!(room(workspace, std::ptr::null_mut(), failure), 0);
                    }
                    let place = fields.read() as usize;
                    (*buffers.add(3)).data.cast::<u32>().add(place).write(k as u32 % 7);
                    (*buffers.add(1)).data.cast::<u64>().add(place).write(k % 3);
                    (*buffers.add(2)).data.cast::<f64>().add(place).write(1.0);
                    fields.write(place as u64 + 1);
                }
                assert_eq!(finalize(workspace, std::ptr::null_mut(), failure), 21);
                let values = std::slice::from_raw_parts((*buffers.add(2)).data.cast::<f64>(), 21);
                assert_eq!(values.iter().sum::<f64>(), 50.0);
                assert_eq!((*workspace).report().inserts, 50);
            }
        });
    }

    #[test]
    fn failures_are_told() {
        register("abi-panics", || Box::new(Panics));
        // SAFETY: the workspaces were just made.
        unsafe {
            with("hash", |workspace, _, failure| {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [-4, 9].as_ptr(), failure), 0);
                assert_eq!(insert(workspace, std::ptr::null_mut(), [0, 0].as_ptr(), failure), -(Status::Bounds as i64));
                assert_eq!(*failure, RawFailure { which: 3, index: 0, len: 0 });
                assert_eq!(reset(workspace, std::ptr::null_mut(), [9, i64::MAX].as_ptr(), failure), 0);
                assert_eq!(
                    insert(workspace, std::ptr::null_mut(), [0, -1].as_ptr(), failure),
                    -(Status::Bounds as i64)
                );
                assert_eq!(*failure, RawFailure { which: 1, index: -1, len: i64::MAX });
                assert_eq!(
                    reset(workspace, std::ptr::null_mut(), [i64::MAX, 2].as_ptr(), failure),
                    -(Status::Width as i64)
                );
                assert_eq!(*failure, RawFailure { which: 3, index: i64::MAX - 1, len: 0 });
            });
            with("abi-panics", |workspace, _, failure| {
                assert_eq!(reset(workspace, std::ptr::null_mut(), [9, 9].as_ptr(), failure), 0);
                assert_eq!(insert(workspace, std::ptr::null_mut(), [1, 1].as_ptr(), failure), -(Status::Policy as i64));
                assert_eq!(failure.read().which, 2);
                assert_eq!(finalize(workspace, std::ptr::null_mut(), failure), 0);
            });
            with("no such policy", |workspace, _, _| assert!(workspace.is_null()));
        }
    }
}
