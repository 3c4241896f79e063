//! Out-of-memory tests of workspaces: an error, after which the workspace remains usable. (A
//! separate process, since the limit is global.)

use std::num::NonZero;
use tamis_backend::runtime::limit_arrays;
use tamis_backend::runtime::workspace::{MergeOp, OwnedWorkspace, WorkspaceError, WorkspaceSpec};
use tamis_ir::algebra::Op;
use tamis_ir::{DType, Value};

fn fill(workspace: &mut OwnedWorkspace, len: u64) -> Result<usize, WorkspaceError> {
    workspace.reset(&[1 << 20, 1 << 20])?;
    for k in 0..len {
        workspace.update(&[k.wrapping_mul(0x9E37_79B9) % (1 << 20), k % 1000], Value::F64(1.0))?;
    }
    workspace.finalize().map(|entries| entries.len())
}

#[test]
fn no_memory_is_an_error() {
    let mut expected = None;
    for policy in ["coord", "hash", "bucket", "vector", "map"] {
        for (capacity, pipelined) in
            [(None, false), (None, true), (NonZero::new(3000), false), (NonZero::new(3000), true)]
        {
            let description = WorkspaceSpec {
                policy: policy.into(),
                capacity,
                pipelined,
                ..WorkspaceSpec::new(2, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)))
            };
            let mut workspace = OwnedWorkspace::new(&description).unwrap();
            // Each limit makes another allocation fail first: the arrays, the tables, sorting,
            // merging.
            for limit in [1 << 8, 1 << 12, 1 << 14, 1 << 15, 1 << 17, 1 << 19] {
                let before = limit_arrays(limit);
                let got = fill(&mut workspace, 100_000);
                limit_arrays(before);
                assert!(
                    matches!(got, Err(WorkspaceError::Memory { entries }) if entries > 0),
                    "{policy} {limit}: {got:?}"
                );
            }
            let all = fill(&mut workspace, 100_000).unwrap();
            assert_eq!(all, *expected.get_or_insert(all), "{policy} {capacity:?} {pipelined}");
        }
    }
}
