//! Assignments and updates: of variables, of appended elements, of computed positions and of
//! workspace entries.
//!
//! In: an assignment with its target and value. Out: statements that store it, unless it is known
//! to change nothing. Missing values and permissive subscripts out of bounds store nothing.

use super::Lowerer;
use super::bind::BoundStorage;
use super::emit::Emitted;
use super::node::{Node, Step, UpdateOp, WriteTarget};
use super::write_plan::WriteMode;
use tamis_ir::algebra::{DType, Kind, Op, Value};
use tamis_ir::kernel::{BufferId, ExprId, Stmt, VarId};
use tamis_ir::program::TensorId;

/// The destination of a write.
#[derive(Clone, Copy)]
enum WriteDestination {
    Var(VarId),
    Element(BufferId, ExprId),
    /// A pattern has no values; its coordinates say everything.
    Nothing,
}

impl Lowerer<'_> {
    pub(super) fn assign(&mut self, target: &WriteTarget, update: Option<&UpdateOp>, value: &Node) {
        let value = self.resolve(value);
        let update = update.map(|u| UpdateOp { extra: u.extra.iter().map(|n| self.resolve(n)).collect(), ..u.clone() });
        let emitted = self.emit(&value);
        // A write that is known to change nothing is skipped.
        let idle = match (&update, emitted.unless, target.fresh) {
            (Some(update), Some((cond, known)), _) if update.extra.is_empty() && update.keeps => {
                let [_, identity] = self.policy.identities(update.op, update.operand);
                identity.filter(|e| known.cast(update.operand).same_number(*e)).map(|_| cond)
            }
            (None, Some((cond, known)), Some(fill)) => known.cast(fill.dtype()).same_number(fill).then_some(cond),
            _ => None,
        };
        let mut conds: Vec<ExprId> = idle.into_iter().collect();
        for extra in update.iter().flat_map(|u| &u.extra) {
            let missing = self.emit(extra).missing;
            conds.extend(missing.map(|m| self.b.call_in(Op::Not, DType::Bool, &[m])));
        }
        conds.extend(emitted.missing.map(|m| self.b.call_in(Op::Not, DType::Bool, &[m])));
        let insert = self.plans[target.tensor.index()].as_ref().is_some_and(|plan| plan.mode == WriteMode::Insert);
        if insert && matches!(self.bound[target.tensor.index()].storage, BoundStorage::Levels { values: None, .. }) {
            // A pattern stores an element only if it is true.
            conds.push(self.as_bool(emitted.value));
        }
        let mut coordinates = Vec::new();
        let append = self.plans[target.tensor.index()].as_ref().is_some_and(|plan| plan.mode == WriteMode::Append);
        if !append {
            let mut outside = Vec::new();
            for sub in &target.subs {
                coordinates.push(if sub.permissive {
                    let (index, size) = (self.integer(&sub.node), self.bound[target.tensor.index()].dims[sub.dim]);
                    let index = self.b.name("at", index);
                    self.clamp_permissive(index, size, &mut outside)
                } else {
                    self.subscript(target.tensor, sub)
                });
            }
            conds.extend(outside.into_iter().map(|o| self.b.call_in(Op::Not, DType::Bool, &[o])));
            if let Some(row) = coordinates.first_mut() {
                *row = self.partition_row(target.tensor, *row);
            }
        }
        let cond = conds.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
        match cond.filter(|cond| !self.holds(*cond)) {
            None => self.write(target.tensor, &coordinates, update.as_ref(), &value),
            Some(cond) => {
                if self.b.as_constant(cond) == Some(Value::Bool(false)) {
                    return;
                }
                let known = self.assumed.len();
                let consequences = self.consequences(cond);
                self.assumed.extend(consequences);
                let then = self.under(|this| this.write(target.tensor, &coordinates, update.as_ref(), &value));
                self.assumed.truncate(known);
                self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
        }
    }

    fn write(&mut self, tensor: TensorId, coordinates: &[ExprId], update: Option<&UpdateOp>, value: &Node) {
        let dtype = self.bound[tensor.index()].dtype;
        let kept = update.and_then(|update| self.kept_by_fill(tensor, update));
        let fresh = kept.map(|_| self.b.variable("fresh", Value::Bool(false)));
        let destination = self.destination(tensor, coordinates, fresh);
        let old = match destination {
            WriteDestination::Var(var) => self.b.get(var),
            WriteDestination::Element(buffer, position) => self.b.load(buffer, position),
            WriteDestination::Nothing => return,
        };
        let emitted = self.emit(value);
        let value = emitted.value;
        let new = match update {
            None => value,
            Some(update) => {
                let operand = self.scaled_operand(update, value);
                let mut operands = vec![old, operand];
                for extra in &update.extra {
                    operands.push(self.emit(extra).value);
                }
                let new = self.b.call_in(update.op, update.operand, &operands);
                let new = self.annihilated(update, &emitted, new);
                match (kept, fresh) {
                    (Some(fill), Some(fresh)) => {
                        let (fill, fresh) = (self.b.constant(fill), self.b.get(fresh));
                        self.b.call_in(Op::Select, update.operand, &[fresh, fill, new])
                    }
                    _ => new,
                }
            }
        };
        let new = self.b.call_in(Op::Cast(dtype), dtype, &[new]);
        match destination {
            WriteDestination::Var(var) => self.b.assign(var, new),
            WriteDestination::Element(buffer, position) => self.b.store(buffer, position, new),
            WriteDestination::Nothing => {}
        }
        if update.is_some() {
            self.break_when_final(tensor);
        }
    }

    /// The result of an update. An operand that is not stored and annihilates gives the
    /// annihilator, even if the old value is NaN.
    fn annihilated(&mut self, update: &UpdateOp, emitted: &Emitted, new: ExprId) -> ExprId {
        let dtype = update.operand;
        let Some(zero) = self.annihilator(update.op, dtype) else { return new };
        // Exact arithmetic gives the annihilator by itself.
        if !matches!(dtype.kind(), Kind::Float | Kind::Complex) {
            return new;
        }
        let annihilates = |value: Value| value.cast(dtype).same_number(zero);
        let constant = self.b.constant(zero);
        if self.b.as_constant(emitted.value).is_some_and(annihilates) {
            return constant;
        }
        match emitted.unless {
            Some((cond, fill)) if annihilates(fill) => self.b.call_in(Op::Select, dtype, &[cond, new, constant]),
            _ => new,
        }
    }

    /// The fill value, if it annihilates the update of an element that is not stored yet, whatever
    /// the operand is, even NaN. None if plain arithmetic gives the same.
    fn kept_by_fill(&self, tensor: TensorId, update: &UpdateOp) -> Option<Value> {
        let levels = match &self.bound[tensor.index()].storage {
            // A plain scalar is always stored.
            BoundStorage::Scalar { written, .. } => {
                return written.and_then(|_| self.annihilating_fill(tensor, update));
            }
            BoundStorage::Levels { arrays, .. } => arrays.len(),
        };
        // Every element of a dense tensor is stored, too.
        let partial = (0..levels).any(|level| self.commits(tensor, level));
        self.annihilating_fill(tensor, update).filter(|_| partial)
    }

    /// The fill value of a tensor, if it annihilates an update and plain arithmetic does not give
    /// the same.
    pub(super) fn annihilating_fill(&self, tensor: TensorId, update: &UpdateOp) -> Option<Value> {
        let dtype = update.operand;
        let zero = self.annihilator(update.op, dtype)?;
        let inexact = matches!(dtype.kind(), Kind::Float | Kind::Complex);
        (inexact && self.bound[tensor.index()].fill.cast(dtype).same_number(zero)).then_some(zero)
    }

    /// The destination of a write; sets `fresh` if the element was not stored before.
    fn destination(&mut self, tensor: TensorId, coordinates: &[ExprId], fresh: Option<VarId>) -> WriteDestination {
        let yes = self.b.constant(Value::Bool(true));
        let values = match self.bound[tensor.index()].storage {
            BoundStorage::Scalar { var, written, .. } => {
                if let Some(written) = written {
                    self.set_fresh(fresh, written);
                    self.b.assign(written, yes);
                }
                return WriteDestination::Var(var);
            }
            BoundStorage::Levels { values, .. } => values,
        };
        let element = |buffer: Option<BufferId>, at| {
            buffer.map_or(WriteDestination::Nothing, |buffer| WriteDestination::Element(buffer, at))
        };
        match self.plans[tensor.index()].as_ref().map(|plan| plan.mode) {
            Some(WriteMode::Append) => {
                let state = &self.states[tensor.index()];
                let (dirty, value) = (state.open.iter().rev().find_map(|open| open.dirty), state.value);
                if let Some(dirty) = dirty {
                    self.set_fresh(fresh, dirty);
                    self.b.assign(dirty, yes);
                }
                value.map_or(WriteDestination::Nothing, WriteDestination::Var)
            }
            Some(WriteMode::Scatter) => {
                let mut fresh = fresh;
                if let Some(first) = self.first_of_fiber(tensor, coordinates) {
                    self.insert_entry(tensor, &first, fresh.take());
                }
                self.insert_entry(tensor, coordinates, fresh)
                    .map_or(WriteDestination::Nothing, |(buffer, at)| WriteDestination::Element(buffer, at))
            }
            _ => {
                let at = self.insert(tensor, coordinates, fresh);
                let at = self.b.name("place", at);
                element(values, at)
            }
        }
    }

    fn set_fresh(&mut self, fresh: Option<VarId>, written: VarId) {
        if let Some(fresh) = fresh {
            let written = self.b.get(written);
            let not = self.b.call_in(Op::Not, DType::Bool, &[written]);
            self.b.assign(fresh, not);
        }
    }
}

/// Tensors that the statements declare, at any depth.
pub(super) fn declared(steps: &[Step]) -> Vec<TensorId> {
    steps
        .iter()
        .flat_map(|step| match step {
            Step::Declare(tensor, _) => vec![*tensor],
            Step::For(_, _, body) => declared(body),
            Step::If(_, then, otherwise) => [declared(then), declared(otherwise)].concat(),
            _ => Vec::new(),
        })
        .collect()
}
