//! `bound(i, n, exactly)`: how many values an index takes, checked before the program runs.

use super::BoundKind;
use super::edit::Work;
use tamis_ir::diag::{Code, Result};
use tamis_ir::program::{Bound, LoopExtent, StmtKind};

pub(super) fn run(work: &mut Work, index: &str, renamed: Option<&str>, length: i64, kind: BoundKind) -> Result<()> {
    let index = work.find(index, 0)?;
    let at = 1 + usize::from(renamed.is_some());
    let Ok(number) = u64::try_from(length) else {
        let message = format!("a loop cannot take {length} values");
        return Err(work.fault(Code::E1207, message, Some(at), "not a length").help("write 0 or a positive number"));
    };
    let name = work.program.indices[index.index()].clone();
    // What is known now is told now; other sizes are checked when they come.
    if let Some(LoopExtent::Static { start, stop }) = work.checked.extents.loops.get(index.index()) {
        let found = stop.saturating_sub(*start);
        let holds = match kind {
            BoundKind::Exactly => found == length,
            BoundKind::AtMost => found <= length,
        };
        if !holds {
            let message = format!("`{name}` takes {found} values");
            let d = work.fault(Code::E0406, message, Some(at), "not what the tensors say");
            return Err(d.help(format!("write `bound({name}, {found})`, or call the program with other tensors")));
        }
    }
    let bound = match kind {
        BoundKind::Exactly => Bound::Exactly(number),
        BoundKind::AtMost => Bound::AtMost(number),
    };
    if let Some(renamed) = renamed {
        work.check_new(renamed, 1, index, &[index])?;
        work.program.indices[index.index()] = renamed.to_string();
    }
    work.edit_loop(index, |_, block, at| {
        if let StmtKind::For { attributes, .. } = &mut block[at].kind {
            attributes.bound = Some(bound);
        }
    });
    Ok(())
}
