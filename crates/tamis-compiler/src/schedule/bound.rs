//! The command `bound(i, n, exactly)`: asserts the trip count of a loop; checked before the program
//! runs.

use super::BoundKind;
use super::edit::ProgramEdit;
use tamis_ir::algebra::{Op, eval};
use tamis_ir::diag::{Code, Result};
use tamis_ir::program::{Bound, Expr, ExprId, Extent, IndexId, LoopExtent, StmtKind};
use tamis_ir::{DType, Value};

pub(super) fn run(
    work: &mut ProgramEdit,
    index: &str,
    renamed: Option<&str>,
    length: i64,
    kind: BoundKind,
) -> Result<()> {
    let index = work.find(index, 0)?;
    let at = 1 + usize::from(renamed.is_some());
    let Ok(number) = u64::try_from(length) else {
        let message = format!("a loop cannot have {length} iterations");
        return Err(work.fault(Code::E1207, message, Some(at), "not a length").help("write 0 or a positive number"));
    };
    let name = work.program.indices[index.index()].clone();
    let Some(found) = length_of(work, index) else {
        let message = format!("the extent of `{name}` is known only when its loop starts");
        let d = work.fault(Code::E0406, message, Some(0), "its bounds are computed");
        return Err(d.help("bound a loop whose extent is the size of a dimension, or bound it before it is split"));
    };
    // Known sizes are checked now, run-time sizes when the program is called.
    let holds = match kind {
        BoundKind::Exactly => found == length,
        BoundKind::AtMost => found <= length,
    };
    if !holds {
        let message = format!("`{name}` has {found} iterations");
        let d = work.fault(Code::E0406, message, Some(at), "contradicted by the tensors");
        return Err(d.help(format!("write `bound({name}, {found})`, or call the program with other tensors")));
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

/// The trip count of a loop for the given tensors, if it does not depend on other loops or on
/// elements.
fn length_of(work: &mut ProgramEdit, index: IndexId) -> Option<i64> {
    match &work.loop_of(index).ok()?.kind {
        StmtKind::For { extent: Extent::Range(start, stop), .. } => {
            Some(constant(work, *stop)?.checked_sub(constant(work, *start)?)?.max(0))
        }
        _ => match work.checked.extents.loops.get(index.index()) {
            Some(LoopExtent::Static { start, stop }) => stop.checked_sub(*start),
            Some(LoopExtent::Dynamic) => None,
            // An earlier command added the loop.
            None => work.size_along(index).and_then(|size| constant(work, size)),
        },
    }
}

fn constant(work: &ProgramEdit, id: ExprId) -> Option<i64> {
    match work.program.expr(id) {
        Expr::Literal(value) => value.as_i64(),
        Expr::Size(tensor, dim) => {
            let size = work.checked.extents.shapes.get(tensor.index())?.get(*dim)?;
            i64::try_from(*size).ok()
        }
        Expr::Call(op @ (Op::Add | Op::Sub | Op::Mul | Op::FloorDiv | Op::Min | Op::Max), operands) => {
            let values: Option<Vec<Value>> =
                operands.iter().map(|operand| constant(work, *operand).map(Value::I64)).collect();
            eval(*op, DType::I64, &values?).as_i64()
        }
        _ => None,
    }
}
