//! Run algebra: a loop whose iterations are all the same is replaced by one, with its length as
//! operand.
//!
//! A repeated addition becomes a multiplication, a repeated product a power, a repeated exclusive
//! or a parity, and an idempotent update runs once. A result level that stores runs is given one
//! run. IEEE arithmetic (`strict`) keeps loops in which the number of roundings matters.

use super::Lowerer;
use super::assign::declared;
use super::node::{LoopBounds, Node, ReadSource, Step, Sub, UpdateOp, WriteTarget, visit_steps};
use super::region::Region;
use super::write_plan::WriteMode;
use tamis_ir::algebra::{DType, Kind, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::program::{IndexId, TensorId};

/// The single update that replaces repeated updates by one value.
enum RunUpdate {
    /// By the value, multiplied by the count.
    Times,
    /// By the value, raised to the power of the count.
    Power,
    /// By the value, if the count is odd.
    Parity,
    /// By the value, once.
    Once,
}

impl Lowerer<'_> {
    /// True if all iterations of a loop are the same, and can be replaced by one.
    pub(super) fn collapses(&self, index: IndexId, steps: &[Step]) -> bool {
        let inner = declared(steps);
        let mut written: Vec<(TensorId, Option<Op>)> = Vec::new();
        if !self.all_collapse(index, steps, &inner, &mut written) {
            return false;
        }
        // The loop must not read what it writes, and must write each tensor by one operator.
        let mut reads = false;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let ReadSource::Tensor(tensor, _) = &access.source
            {
                reads |= written.iter().any(|(other, _)| other == tensor);
            }
        });
        let one_way = written.iter().all(|(tensor, op)| written.iter().all(|(t, o)| t != tensor || o == op));
        !reads && one_way
    }

    fn all_collapse(
        &self,
        index: IndexId,
        steps: &[Step],
        inner: &[TensorId],
        written: &mut Vec<(TensorId, Option<Op>)>,
    ) -> bool {
        steps.iter().all(|step| match step {
            Step::Declare(..) | Step::Freeze(_) => true,
            Step::Let(_, value) => !depends(value, index),
            Step::For(_, bounds, body) => {
                let fixed = match bounds {
                    LoopBounds::Inferred => true,
                    LoopBounds::Range(start, stop) => !depends(start, index) && !depends(stop, index),
                };
                fixed && self.all_collapse(index, body, inner, written)
            }
            Step::If(cond, then, otherwise) => {
                !depends(cond, index)
                    && self.all_collapse(index, then, inner, written)
                    && self.all_collapse(index, otherwise, inner, written)
            }
            Step::Assign(target, update, value) => {
                let fixed =
                    !depends(value, index) && update.iter().flat_map(|u| &u.extra).all(|extra| !depends(extra, index));
                if inner.contains(&target.tensor) {
                    return fixed && target.subs.iter().all(|sub| !depends(&sub.node, index));
                }
                written.push((target.tensor, update.as_ref().map(|u| u.op)));
                fixed && self.collapses_write(index, target, update.as_ref())
            }
        })
    }

    /// True if a write that is the same in every iteration can be done once.
    fn collapses_write(&self, index: IndexId, target: &WriteTarget, update: Option<&UpdateOp>) -> bool {
        if target.subs.iter().all(|sub| !depends(&sub.node, index)) {
            // If the fill value annihilates, the first iteration differs from later ones.
            let plain = |update| self.annihilating_fill(target.tensor, update).is_none();
            // Strictly, each addition rounds by itself.
            let rounds = |update: &UpdateOp| self.policy.strict && update.operand.kind() > Kind::Int;
            let at_once = |update: &UpdateOp| match run_update(update) {
                Some(RunUpdate::Times | RunUpdate::Power) => !rounds(update),
                other => other.is_some(),
            };
            return update.is_none_or(|update| at_once(update) && plain(update));
        }
        // A run of the result.
        let Some(plan) = &self.plans[target.tensor.index()] else { return false };
        let [level] = plan.fixed(index)[..] else { return false };
        plan.mode == WriteMode::Append
            && target.subs.iter().enumerate().all(|(k, sub)| match k == level {
                true => sub.node == Node::Index(index) && sub.inside,
                false => !depends(&sub.node, index),
            })
            && self.row(target.tensor, level).is_some_and(|row| row.write.takes_runs())
    }

    /// The operand of the single update that replaces a repeated one.
    pub(super) fn scaled_operand(&mut self, update: &UpdateOp, value: ExprId) -> ExprId {
        let (times, dtype) = (update.times.clone(), update.operand);
        let Some(first) = times.first().copied() else { return value };
        match run_update(update) {
            Some(RunUpdate::Times) => {
                let product = |this: &mut Self, dtype, times: Vec<ExprId>| {
                    let more = times.into_iter().skip(1);
                    more.fold(first, |product, length| this.b.call_in(Op::Mul, dtype, &[product, length]))
                };
                let count = match dtype.kind() {
                    // Lengths are integers, but their product may overflow.
                    Kind::Float | Kind::Complex => product(self, DType::F64, times),
                    _ => product(self, DType::I64, times),
                };
                let count = self.wrapped_count(count, dtype);
                self.b.call_in(Op::Mul, dtype, &[value, count])
            }
            Some(RunUpdate::Power) => times.into_iter().fold(value, |value, length| {
                let count = self.wrapped_count(length, dtype);
                self.b.call_in(Op::Pow, dtype, &[value, count])
            }),
            Some(RunUpdate::Parity) => {
                // An even number of applications cancels.
                let (one, zero) = (self.b.int(1), self.b.constant(Value::zero(dtype)));
                let odd =
                    times.into_iter().fold(one, |odd, length| self.b.call_in(Op::BitAnd, DType::I64, &[length, odd]));
                let odd = self.as_bool(odd);
                self.b.call_in(Op::Select, dtype, &[odd, value, zero])
            }
            Some(RunUpdate::Once) | None => value,
        }
    }

    /// The count in an integer type: it wraps around, as the sum that it replaces does.
    fn wrapped_count(&mut self, length: ExprId, dtype: DType) -> ExprId {
        let bits = 8 * dtype.size() as i64;
        match dtype.kind() {
            Kind::Int if bits < 64 && dtype.is_signed_int() => {
                let by = self.b.int(64 - bits);
                let up = self.b.call_in(Op::Shl, DType::I64, &[length, by]);
                self.b.call_in(Op::Shr, DType::I64, &[up, by])
            }
            Kind::Int if bits < 64 => {
                let mask = self.b.int((1 << bits) - 1);
                self.b.call_in(Op::BitAnd, DType::I64, &[length, mask])
            }
            _ => length,
        }
    }

    /// Emits one iteration for all of a loop.
    pub(super) fn collapse(&mut self, region: Region, steps: Vec<Step>) {
        let inner = declared(&steps);
        let length = self.b.sub(region.stop, region.start);
        let length = self.b.name("length", length);
        let steps = with_count(steps, region.index, &inner, length);
        let before = self.collapsed.replace((region.index, region.stop));
        self.conditional += 1;
        let body = self.at(region.index, region.start, steps);
        self.conditional -= 1;
        self.collapsed = before;
        if region.filled {
            return body.into_iter().for_each(|stmt| self.b.emit(stmt));
        }
        if !body.is_empty() {
            let zero = self.b.int(0);
            let some = self.b.call_in(Op::Lt, DType::I64, &[zero, length]);
            self.b.emit(Stmt::If { cond: some, then: body, otherwise: Vec::new() });
        }
    }
}

fn run_update(update: &UpdateOp) -> Option<RunUpdate> {
    let (info, dtype, plain) = (update.op.info(), update.operand, update.extra.is_empty());
    match (update.op, dtype.kind()) {
        // A complex number times a real one is not a complex product if a part is infinite.
        (Op::Add | Op::Sub, kind) if plain && kind != Kind::Complex => Some(RunUpdate::Times),
        // Powers of complex numbers are inexact, and a wrapped count is another power.
        (Op::Mul, Kind::Float) if plain => Some(RunUpdate::Power),
        (Op::Mul, Kind::Int) if plain && dtype.size() == 8 => Some(RunUpdate::Power),
        (Op::BitXor, _) if plain => Some(RunUpdate::Parity),
        _ if (info.idempotent && info.associative) || update.op == Op::Choose => Some(RunUpdate::Once),
        _ => None,
    }
}

/// Multiplies updates of outer tensors by the length of the loop.
fn with_count(steps: Vec<Step>, index: IndexId, inner: &[TensorId], length: ExprId) -> Vec<Step> {
    steps
        .into_iter()
        .map(|step| match step {
            Step::For(i, bounds, body) => Step::For(i, bounds, with_count(body, index, inner, length)),
            Step::If(cond, then, otherwise) => {
                let (then, otherwise) =
                    (with_count(then, index, inner, length), with_count(otherwise, index, inner, length));
                Step::If(cond, then, otherwise)
            }
            Step::Assign(target, Some(update), value) if !inner.contains(&target.tensor) => {
                let runs = target.subs.iter().any(|sub| depends(&sub.node, index));
                // Enclosing loops may be collapsed, too.
                let mut times = update.times;
                times.extend((!runs).then_some(length));
                Step::Assign(target, Some(UpdateOp { times, ..update }), value)
            }
            other => other,
        })
        .collect()
}

/// True if an expression changes with a loop's index, as far as it is not resolved.
pub(super) fn depends(node: &Node, index: IndexId) -> bool {
    match node {
        Node::Index(i) => *i == index,
        Node::Call(_, _, operands) => operands.iter().any(|n| depends(n, index)),
        Node::Entry(entry) => entry.at.iter().any(|n| depends(n, index)),
        Node::Access(access) => {
            access.looplet.is_some()
                || match &access.source {
                    ReadSource::Tensor(_, subs) => {
                        subs.iter().skip(access.level).flat_map(Sub::nodes).any(|n| depends(n, index))
                    }
                    ReadSource::Mask(_, on, other) => *on == index || depends(other, index),
                }
        }
        _ => false,
    }
}
