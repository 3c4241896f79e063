//! The cost of expressions: which are free to recompute anywhere, and which are worth a name.

use tamis_ir::Kind;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Expr, ExprId, Kernel};

/// Expressions with more operations than this are not rematerialised to save a name.
const SMALL: usize = 12;

/// True if an expression may be evaluated speculatively: it reads no memory and is cheap.
pub(super) fn is_free(kernel: &Kernel, id: ExprId) -> bool {
    free(kernel, id, &mut { SMALL })
}

fn free(kernel: &Kernel, id: ExprId, budget: &mut usize) -> bool {
    if *budget == 0 {
        return false;
    }
    *budget -= 1;
    match kernel.expr(id) {
        Expr::Const(_) | Expr::Var(_) => true,
        Expr::Load(..) | Expr::Vector(_) => false,
        Expr::Call(op, dtype, operands) => {
            !op.is_expensive(*dtype) && operands.iter().all(|e| free(kernel, *e, budget))
        }
    }
}

/// True if an expression reads memory.
pub(super) fn has_load(kernel: &Kernel, id: ExprId) -> bool {
    match kernel.expr(id) {
        Expr::Const(_) | Expr::Var(_) => false,
        Expr::Load(..) => true,
        Expr::Call(..) | Expr::Vector(_) => {
            let mut found = false;
            kernel.visit_expr(id, &mut |e| found |= matches!(e, Expr::Load(..)));
            found
        }
    }
}

/// The number of operations of an expression, up to a limit.
pub(super) fn operations(kernel: &Kernel, id: ExprId, limit: usize) -> usize {
    match kernel.expr(id) {
        Expr::Const(_) | Expr::Var(_) => 0,
        _ if limit == 0 => 1,
        Expr::Load(_, index) => 1 + operations(kernel, *index, limit - 1),
        Expr::Call(..) | Expr::Vector(_) => {
            let mut count = 1;
            for operand in kernel.expr(id).operands() {
                if count > limit {
                    break;
                }
                count += operations(kernel, operand, limit - count);
            }
            count
        }
    }
}

/// True if an expression with several uses is worth a name: it reads memory, computes with values,
/// or has more than a few sums and products of positions. Comparisons and conversions are not.
pub(super) fn deserves_a_name(kernel: &Kernel, id: ExprId) -> bool {
    match kernel.expr(id) {
        Expr::Const(_) | Expr::Var(_) => false,
        Expr::Load(..) | Expr::Vector(_) => true,
        Expr::Call(op, dtype, operands) => {
            if op.is_expensive(*dtype) {
                return true;
            }
            let value = kernel.exprs.dtype(id).kind() >= Kind::Float;
            match op {
                Op::Cast(_) => operands.iter().any(|e| deserves_a_name(kernel, *e)),
                Op::Add | Op::Sub | Op::Mul if value => true,
                _ => has_load(kernel, id) || operations(kernel, id, 5) > 4,
            }
        }
    }
}
