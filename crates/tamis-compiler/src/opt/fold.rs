//! Constant folding and algebraic simplification of one operator whose operands are already
//! simplified.
//!
//! The laws come from the operator table. Folding evaluates nothing that was not evaluated before,
//! and never makes an expression larger.

use super::Editor;
use super::cost;
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{Constant, Op, Value, eval};
use tamis_ir::kernel::{Expr, ExprId};
use tamis_ir::{DType, Kind};

/// Folds an operator whose operands are converted to `dtype`.
pub(super) fn call(b: &mut Editor, op: Op, dtype: DType, operands: &[ExprId]) -> ExprId {
    match (op, operands) {
        // An absent operand is a select by now, so the first operand is the value.
        (Op::Coalesce, [a, ..]) => return cast(b, *a, dtype),
        (Op::Cast(to), [a]) => return cast(b, *a, to),
        (Op::Select, [cond, then, otherwise]) => return select(b, dtype, *cond, *then, *otherwise),
        (Op::Not, [a]) => return not(b, *a),
        (Op::And, [a, c]) => return and(b, *a, *c),
        (Op::Or, _) => {
            let truths: Vec<Option<bool>> = operands.iter().map(|e| truth(b, *e)).collect();
            if truths.contains(&Some(true)) {
                return b.constant(Value::Bool(true));
            }
            let rest: Vec<ExprId> = operands.iter().zip(truths).filter(|(_, t)| t.is_none()).map(|(e, _)| *e).collect();
            return match rest[..] {
                [] => b.constant(Value::Bool(false)),
                [a] => cast(b, a, DType::Bool),
                [a, c] if a == c => cast(b, a, DType::Bool),
                _ => b.call_in(op, dtype, &rest),
            };
        }
        (_, [a, c]) => {
            if let Some(folded) = identity(b, op, dtype, *a, *c) {
                return folded;
            }
            if let Some(folded) = integers(b, op, dtype, *a, *c).or_else(|| power(b, op, dtype, *a, *c)) {
                return folded;
            }
        }
        _ => {}
    }
    b.call_in(op, dtype, operands)
}

/// Folds a conversion.
pub(super) fn cast(b: &mut Editor, id: ExprId, dtype: DType) -> ExprId {
    let from = b.dtype(id);
    b.call_in(Op::Cast(dtype), from, &[id])
}

/// The truth value of an expression, if it is known.
pub(super) fn truth(b: &Editor, id: ExprId) -> Option<bool> {
    b.as_constant(id).map(Value::is_truthy)
}

fn select(b: &mut Editor, dtype: DType, cond: ExprId, then: ExprId, otherwise: ExprId) -> ExprId {
    if let Some(holds) = truth(b, cond) {
        return cast(b, if holds { then } else { otherwise }, dtype);
    }
    if let Expr::Call(Op::Not, _, inner) = b.kernel().expr(cond) {
        let inner = inner[0];
        return select(b, dtype, inner, otherwise, then);
    }
    if dtype == DType::Bool && b.dtype(then) == DType::Bool && b.dtype(otherwise) == DType::Bool {
        match (truth(b, then), truth(b, otherwise)) {
            (Some(true), Some(false)) => return cast(b, cond, DType::Bool),
            (Some(false), Some(true)) => return not(b, cond),
            (None, Some(false)) => return and(b, cond, then),
            // Both sides of `or` are evaluated, so only a speculatable operand is moved there.
            (Some(true), None) if cost::is_free(b.kernel(), otherwise) => {
                return call(b, Op::Or, DType::Bool, &[cond, otherwise]);
            }
            _ => {}
        }
    }
    b.call_in(Op::Select, dtype, &[cond, then, otherwise])
}

fn and(b: &mut Editor, first: ExprId, second: ExprId) -> ExprId {
    match (truth(b, first), truth(b, second)) {
        (Some(false), _) | (_, Some(false)) => b.constant(Value::Bool(false)),
        (Some(true), _) => cast(b, second, DType::Bool),
        (_, Some(true)) => cast(b, first, DType::Bool),
        _ if first == second => cast(b, first, DType::Bool),
        _ => b.call_in(Op::And, DType::Bool, &[first, second]),
    }
}

/// The negation, pushed into integer comparisons (float comparisons with NaN are false either way).
pub(super) fn not(b: &mut Editor, id: ExprId) -> ExprId {
    if let Expr::Call(op, dtype, operands) = b.kernel().expr(id).clone() {
        let negated = match op {
            Op::Eq => Some(Op::Ne),
            Op::Ne => Some(Op::Eq),
            Op::Lt => Some(Op::Ge),
            Op::Le => Some(Op::Gt),
            Op::Gt => Some(Op::Le),
            Op::Ge => Some(Op::Lt),
            _ => None,
        };
        if let Some(negated) = negated
            && operands.iter().all(|e| b.dtype(*e).kind() <= Kind::Int)
        {
            return b.call_in(negated, dtype, &operands);
        }
    }
    b.call_in(Op::Not, DType::Bool, &[id])
}

/// Identities and annihilators of the operator table, such as `x + 0` and `1 * x`. The sign of zero
/// is ignored unless semantics are strict: `0.0 + x` is not `x` if `x` is -0.0.
fn identity(b: &mut Editor, op: Op, dtype: DType, left: ExprId, right: ExprId) -> Option<ExprId> {
    let info = op.info();
    let is = |b: &Editor, id: ExprId, constant: Option<Constant>| {
        let identity = constant.and_then(|c| c.value(dtype));
        let value = b.as_constant(id).map(|value| value.cast(dtype));
        matches!((identity, value), (Some(e), Some(v)) if e.same_number(v))
    };
    // A complex multiplication by one may convert infinities to NaN.
    if dtype.kind() == Kind::Complex && matches!(op, Op::Mul | Op::Div | Op::Pow)
        || b.strict && dtype.kind() >= Kind::Float && matches!(op, Op::Add | Op::Sub | Op::Choose)
    {
        return None;
    }
    if is(b, right, info.right_identity) {
        return Some(cast(b, left, dtype));
    }
    if is(b, left, info.left_identity) {
        return Some(cast(b, right, dtype));
    }
    None
}

/// Strength reduction of powers: a square is a product, and the inverse of a float a quotient, which
/// are rounded once, too.
fn power(b: &mut Editor, op: Op, dtype: DType, base: ExprId, exponent: ExprId) -> Option<ExprId> {
    let exponent = b.as_constant(exponent).filter(|_| op == Op::Pow && dtype.kind() < Kind::Complex)?;
    if exponent.same_number(Value::I64(2).cast(exponent.dtype())) {
        let base = cast(b, base, dtype);
        return Some(b.call_in(Op::Mul, dtype, &[base, base]));
    }
    let inverse = Value::I64(-1).cast(exponent.dtype());
    if dtype.kind() == Kind::Float && exponent.is_negative() && exponent.same_number(inverse) {
        let (one, base) = (b.constant(Value::F64(1.0).cast(dtype)), cast(b, base, dtype));
        return Some(b.call_in(Op::Div, dtype, &[one, base]));
    }
    None
}

/// Reassociates sums and products of integers: constants move to the right and are combined.
fn integers(b: &mut Editor, op: Op, dtype: DType, left: ExprId, right: ExprId) -> Option<ExprId> {
    if dtype.kind() != Kind::Int || b.dtype(left) != dtype || b.dtype(right) != dtype {
        return None;
    }
    let (x, y) = (b.as_constant(left), b.as_constant(right));
    let zero = Value::zero(dtype);
    match op {
        Op::Mul if x == Some(zero) || y == Some(zero) => Some(b.constant(zero)),
        Op::Sub if left == right => Some(b.constant(zero)),
        Op::Add if x.is_some() && y.is_none() => Some(call(b, Op::Add, dtype, &[right, left])),
        // Canonical form: a - c is a + (-c).
        Op::Add | Op::Sub => {
            let (inner, first, second) = match b.kernel().expr(left) {
                Expr::Call(inner @ (Op::Add | Op::Sub), d, operands) if *d == dtype && operands.len() == 2 => {
                    (*inner, operands[0], operands[1])
                }
                _ => return None,
            };
            // (a + b) - a, (a + b) - b. An operand of another type was converted.
            if op == Op::Sub && inner == Op::Add && (first == right || second == right) {
                return Some(cast(b, if first == right { second } else { first }, dtype));
            }
            // (a - b) + b
            if op == Op::Add && inner == Op::Sub && second == right {
                return Some(cast(b, first, dtype));
            }
            let (inner_constant, constant) = (b.as_constant(second)?, y?);
            let negative = |v: Value| eval(Op::Neg, dtype, &[v]);
            let first_part = if inner == Op::Sub { negative(inner_constant) } else { inner_constant };
            let second_part = if op == Op::Sub { negative(constant) } else { constant };
            let sum = eval(Op::Add, dtype, &[first_part, second_part]);
            let (op, sum) = if sum.is_negative() { (Op::Sub, negative(sum)) } else { (Op::Add, sum) };
            // The minimum integer is its own negative.
            if sum.is_negative() {
                return None;
            }
            let sum = b.constant(sum);
            Some(call(b, op, dtype, &[first, sum]))
        }
        _ => None,
    }
}

/// Rebuilds and folds an expression bottom-up; `map` replaces sub-expressions.
pub(super) fn rewrite(
    b: &mut Editor,
    id: ExprId,
    map: &mut impl FnMut(&mut Editor, ExprId) -> Option<ExprId>,
) -> ExprId {
    rewrite_once(b, id, map, &mut FxHashMap::default())
}

/// Operands are shared, so rewrites are memoised: without that, the walk would be exponential.
fn rewrite_once(
    b: &mut Editor,
    id: ExprId,
    map: &mut impl FnMut(&mut Editor, ExprId) -> Option<ExprId>,
    done: &mut FxHashMap<ExprId, ExprId>,
) -> ExprId {
    if let Some(new) = map(b, id) {
        return new;
    }
    if matches!(b.kernel().expr(id), Expr::Const(_) | Expr::Var(_)) {
        return id;
    }
    if let Some(new) = done.get(&id) {
        return *new;
    }
    let new = match b.kernel().expr(id).clone() {
        Expr::Load(buffer, index) => {
            let new = rewrite_once(b, index, map, done);
            if new == index { id } else { b.load(buffer, new) }
        }
        Expr::Call(op, dtype, operands) => {
            let new: Vec<ExprId> = operands.iter().map(|e| rewrite_once(b, *e, map, done)).collect();
            if new == operands { id } else { call(b, op, dtype, &new) }
        }
        Expr::Vector(vector) => {
            let vector = vector.map(|operand| rewrite_once(b, operand, map, done));
            b.vector(vector)
        }
        Expr::Const(_) | Expr::Var(_) => id,
    };
    done.insert(id, new);
    new
}
