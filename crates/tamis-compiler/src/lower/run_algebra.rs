//! Loops whose turns are all the same: what a turn does is done once, and counted.
//!
//! Adding the same value again and again is adding a multiple; multiplying by it, multiplying by a power; the least of equal
//! values is any of them. A result whose level takes whole runs is given one.

use super::Lowerer;
use super::assign::declared;
use super::node::{Bounds, Node, Source, Step, Sub, Target, Update, visit_steps};
use super::region::Region;
use super::write_plan::Mode;
use tamis_ir::algebra::{DType, Kind, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::program::{IndexId, TensorId};

/// How an update that is done many times over with the same value is done once.
enum Repeat {
    /// With the value, times their number.
    Times,
    /// With the value, to the power of their number.
    Power,
    /// With the value, if their number is odd.
    Parity,
    /// With the value.
    Once,
}

impl Lowerer<'_> {
    /// Whether every turn of a loop does the same, and doing it many times is doing it once in some other way.
    pub(super) fn repeats(&self, index: IndexId, steps: &[Step]) -> bool {
        let inner = declared(steps);
        let mut written: Vec<(TensorId, Option<Op>)> = Vec::new();
        if !self.all_repeat(index, steps, &inner, &mut written) {
            return false;
        }
        // What is written here is not read here, and in one way only.
        let mut reads = false;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let Source::Tensor(tensor, _) = &access.source
            {
                reads |= written.iter().any(|(other, _)| other == tensor);
            }
        });
        let one_way = written.iter().all(|(tensor, op)| written.iter().all(|(t, o)| t != tensor || o == op));
        !reads && one_way
    }

    fn all_repeat(
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
                    Bounds::Inferred => true,
                    Bounds::Range(start, stop) => !depends(start, index) && !depends(stop, index),
                };
                fixed && self.all_repeat(index, body, inner, written)
            }
            Step::If(cond, then, otherwise) => {
                !depends(cond, index)
                    && self.all_repeat(index, then, inner, written)
                    && self.all_repeat(index, otherwise, inner, written)
            }
            Step::Assign(target, update, value) => {
                let fixed =
                    !depends(value, index) && update.iter().flat_map(|u| &u.extra).all(|extra| !depends(extra, index));
                if inner.contains(&target.tensor) {
                    return fixed && target.subs.iter().all(|sub| !depends(&sub.node, index));
                }
                written.push((target.tensor, update.as_ref().map(|u| u.op)));
                fixed && self.takes(index, target, update.as_ref())
            }
        })
    }

    /// Whether a write that is the same in every turn can be done at once.
    fn takes(&self, index: IndexId, target: &Target, update: Option<&Update>) -> bool {
        if target.subs.iter().all(|sub| !depends(&sub.node, index)) {
            // Where the fill annihilates, the first turn does something else than those after it.
            let plain = |update| self.annihilating_fill(target.tensor, update).is_none();
            // Strictly, each number is added and rounded by itself.
            let rounds = |update: &Update| self.policy.strict && update.operand.kind() > Kind::Int;
            let at_once = |update: &Update| match repeated(update) {
                Some(Repeat::Times | Repeat::Power) => !rounds(update),
                other => other.is_some(),
            };
            return update.is_none_or(|update| at_once(update) && plain(update));
        }
        // A run of the result.
        let Some(plan) = &self.plans[target.tensor.index()] else { return false };
        let [level] = plan.fixed(index)[..] else { return false };
        plan.mode == Mode::Append
            && target.subs.iter().enumerate().all(|(k, sub)| match k == level {
                true => sub.node == Node::Index(index) && sub.inside,
                false => !depends(&sub.node, index),
            })
            && self.row(target.tensor, level).is_some_and(|row| row.write.takes_runs())
    }

    /// The operand of an update that is done as many times over as it says, for doing it once.
    pub(super) fn multiplied(&mut self, update: &Update, value: ExprId) -> ExprId {
        let (times, dtype) = (update.times.clone(), update.operand);
        let Some(first) = times.first().copied() else { return value };
        match repeated(update) {
            Some(Repeat::Times) => {
                let product = |this: &mut Self, dtype, times: Vec<ExprId>| {
                    let more = times.into_iter().skip(1);
                    more.fold(first, |product, length| this.b.call_in(Op::Mul, dtype, &[product, length]))
                };
                let count = match dtype.kind() {
                    // Lengths are integers, but their product need not be one that fits.
                    Kind::Float | Kind::Complex => product(self, DType::F64, times),
                    _ => product(self, DType::I64, times),
                };
                let count = self.turns(count, dtype);
                self.b.call_in(Op::Mul, dtype, &[value, count])
            }
            Some(Repeat::Power) => times.into_iter().fold(value, |value, length| {
                let count = self.turns(length, dtype);
                self.b.call_in(Op::Pow, dtype, &[value, count])
            }),
            Some(Repeat::Parity) => {
                // An even number of times is none.
                let (one, zero) = (self.b.int(1), self.b.constant(Value::zero(dtype)));
                let odd =
                    times.into_iter().fold(one, |odd, length| self.b.call_in(Op::BitAnd, DType::I64, &[length, odd]));
                let odd = self.as_bool(odd);
                self.b.call_in(Op::Select, dtype, &[odd, value, zero])
            }
            Some(Repeat::Once) | None => value,
        }
    }

    /// A count in a type: integers wrap around, as the sums do that it stands for.
    fn turns(&mut self, length: ExprId, dtype: DType) -> ExprId {
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

    /// All turns of a loop at once.
    pub(super) fn repeat(&mut self, region: Region, steps: Vec<Step>) {
        let inner = declared(&steps);
        let length = self.b.sub(region.stop, region.start);
        let length = self.b.name("length", length);
        let steps = counted(steps, region.index, &inner, length);
        let before = self.run.replace((region.index, region.stop));
        self.conditional += 1;
        let body = self.at(region.index, region.start, steps);
        self.conditional -= 1;
        self.run = before;
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

fn repeated(update: &Update) -> Option<Repeat> {
    let (info, dtype, plain) = (update.op.info(), update.operand, update.extra.is_empty());
    match (update.op, dtype.kind()) {
        // A complex number times a real one is no product of complex numbers, where one part is infinite.
        (Op::Add | Op::Sub, kind) if plain && kind != Kind::Complex => Some(Repeat::Times),
        // Powers of complex numbers are not exact enough, and a number of turns that wraps around is another power.
        (Op::Mul, Kind::Float) if plain => Some(Repeat::Power),
        (Op::Mul, Kind::Int) if plain && dtype.size() == 8 => Some(Repeat::Power),
        (Op::BitXor, _) if plain => Some(Repeat::Parity),
        _ if (info.idempotent && info.associative) || update.op == Op::Choose => Some(Repeat::Once),
        _ => None,
    }
}

/// Updates of what lives outside, done so many times.
fn counted(steps: Vec<Step>, index: IndexId, inner: &[TensorId], length: ExprId) -> Vec<Step> {
    steps
        .into_iter()
        .map(|step| match step {
            Step::For(i, bounds, body) => Step::For(i, bounds, counted(body, index, inner, length)),
            Step::If(cond, then, otherwise) => {
                let (then, otherwise) = (counted(then, index, inner, length), counted(otherwise, index, inner, length));
                Step::If(cond, then, otherwise)
            }
            Step::Assign(target, Some(update), value) if !inner.contains(&target.tensor) => {
                let runs = target.subs.iter().any(|sub| depends(&sub.node, index));
                // Loops around may be done at once, too.
                let mut times = update.times;
                times.extend((!runs).then_some(length));
                Step::Assign(target, Some(Update { times, ..update }), value)
            }
            other => other,
        })
        .collect()
}

/// Whether an expression changes with a loop's index, as far as it is not resolved.
pub(super) fn depends(node: &Node, index: IndexId) -> bool {
    match node {
        Node::Index(i) => *i == index,
        Node::Call(_, _, operands) => operands.iter().any(|n| depends(n, index)),
        Node::Entry(entry) => entry.at.iter().any(|n| depends(n, index)),
        Node::Access(access) => {
            access.looplet.is_some()
                || match &access.source {
                    Source::Tensor(_, subs) => {
                        subs.iter().skip(access.level).flat_map(Sub::nodes).any(|n| depends(n, index))
                    }
                    Source::Mask(_, on, other) => *on == index || depends(other, index),
                }
        }
        _ => false,
    }
}
