//! The command `insert_workspace(policy[, capacity][, pipelined])`: inserts a sparse workspace of
//! this policy for every scattered result.

use super::edit::ProgramEdit;
use super::insert::{WorkspaceRequest, as_written, insert, scattered_by_loops};
use tamis_ir::diag::{Code, Result};
use tamis_ir::format::Ism;

pub(super) fn run(work: &mut ProgramEdit, policy: &str, capacity: Option<i64>, pipelined: bool) -> Result<()> {
    let capacity = match capacity.map(|n| (n, u64::try_from(n).ok().filter(|n| *n > 0))) {
        None => None,
        Some((_, Some(n))) => Some(n),
        Some((n, None)) => {
            let d =
                work.fault(Code::E1207, format!("the capacity of a workspace cannot be {n}"), Some(1), "at least 1");
            return Err(d.help("leave the capacity out: the workspace grows with the result"));
        }
    };
    let request = WorkspaceRequest::Sparse(Ism { policy: policy.to_string(), capacity, pipelined });
    // Scatter order refers to the format as the kernel writes it, as for automatic insertion.
    let checked = as_written(&work.program, work.checked);
    let scattered = scattered_by_loops(&work.program, &checked);
    match insert(&work.program, &checked, &scattered, &request) {
        Some((program, _)) => {
            work.program = program;
            Ok(())
        }
        None => {
            let message = "no result is written out of order into an append-only format";
            let d = work.fault(Code::E1209, message, None, "nothing to insert");
            Err(d.help("remove the command, or put it after the command that changes the order of the loops"))
        }
    }
}
