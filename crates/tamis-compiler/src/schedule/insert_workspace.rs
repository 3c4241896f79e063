//! `insert_workspace(policy[, capacity][, pipelined])`: every result that a nest scatters into is written through a sparse workspace
//! of this policy, where the compiler would choose one by itself.

use super::edit::Work;
use super::insert::{Wish, as_written, insert, scattered_by_loops};
use tamis_ir::diag::{Code, Result};
use tamis_ir::format::Ism;

pub(super) fn run(work: &mut Work, policy: &str, capacity: Option<i64>, pipelined: bool) -> Result<()> {
    let capacity = match capacity.map(|n| (n, u64::try_from(n).ok().filter(|n| *n > 0))) {
        None => None,
        Some((_, Some(n))) => Some(n),
        Some((n, None)) => {
            let d = work.fault(Code::E1207, format!("a workspace cannot collect {n} entries"), Some(1), "at least 1");
            return Err(d.help("leave the capacity out: the workspace grows with the result"));
        }
    };
    let wish = Wish::Sparse(Ism { policy: policy.to_string(), capacity, pipelined });
    // Order is that of what a kernel writes, as it is where the compiler inserts a workspace by itself.
    let checked = as_written(&work.program, work.checked);
    let scattered = scattered_by_loops(&work.program, &checked);
    match insert(&work.program, &checked, &scattered, &wish) {
        Some((program, _)) => {
            work.program = program;
            Ok(())
        }
        None => {
            let message = "no result is written out of order into a format that cannot be";
            let d = work.fault(Code::E1209, message, None, "there is nothing to insert");
            Err(d.help("leave the command out, or put it after the command that changes the order of the loops"))
        }
    }
}
