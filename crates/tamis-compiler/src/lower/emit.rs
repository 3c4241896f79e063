//! Emission: resolved statements and expressions become statements and expressions of the kernel.
//!
//! In: steps whose accesses may be unresolved; they are resolved here. Out: kernel statements,
//! appended to the builder. A value that may be missing or not stored carries the conditions for
//! that, so that annihilation and `coalesce` follow the policy of the program.

use super::Lowerer;
use super::node::{LoopBounds, Node, Step};
use tamis_ir::algebra::{DType, Op, Value, eval};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::program::{Access, Bound, Expr, IndexId, LoopExtent, StmtKind};

/// A value in the kernel.
#[derive(Clone, Copy)]
pub(super) struct Emitted {
    pub(super) value: ExprId,
    /// The condition that the value is stored, with the constant that it is otherwise.
    pub(super) unless: Option<(ExprId, Value)>,
    /// The condition that the value is missing.
    pub(super) missing: Option<ExprId>,
}

impl Lowerer<'_> {
    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Declare(tensor, _) => self.declare(tensor),
            Step::Freeze(tensor) => self.freeze(tensor),
            Step::Let(var, value) => {
                let value = self.resolve(&value);
                let emitted = self.emit(&value);
                // A name that may be absent or missing keeps that information.
                let kept = if emitted.unless.is_some() || emitted.missing.is_some() {
                    value
                } else {
                    let name = self.program.vars[var.index()].clone();
                    Node::Value(self.b.name(name, emitted.value))
                };
                self.vars[var.index()] = Some(kept);
            }
            Step::If(cond, then, otherwise) => {
                let cond = self.truth(&cond);
                if let Some(known) = self.b.as_constant(cond) {
                    return self.steps(if known.is_truthy() { then } else { otherwise });
                }
                let then = self.under(|this| this.steps(then));
                let otherwise = self.under(|this| this.steps(otherwise));
                if !then.is_empty() || !otherwise.is_empty() {
                    self.b.emit(Stmt::If { cond, then, otherwise });
                }
            }
            Step::For(index, bounds, body) => {
                let (start, stop, whole) = match self.partition_range(index) {
                    Some((start, stop)) => (start, stop, false),
                    None => self.bounds(index, &bounds),
                };
                self.lower_loop(index, start, stop, whole, body);
            }
            Step::Assign(target, update, value) => self.assign(&target, update.as_ref(), &value),
        }
    }

    /// Emits into a new block.
    pub(super) fn in_block(&mut self, emit: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        let (required, resolved, ends) = (self.required.len(), self.resolved.len(), self.ends.len());
        let mut inner = std::mem::replace(&mut self.b, tamis_ir::kernel::Builder::new(""));
        let block = inner.block(|b| {
            std::mem::swap(&mut self.b, b);
            emit(self);
            std::mem::swap(&mut self.b, b);
        });
        self.b = inner;
        self.required.truncate(required);
        self.resolved.truncate(resolved);
        self.ends.truncate(ends);
        block
    }

    /// Emits into a block that does not always run.
    pub(super) fn under(&mut self, emit: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.conditional += 1;
        let block = self.in_block(emit);
        self.conditional -= 1;
        block
    }

    fn bounds(&mut self, index: IndexId, bounds: &LoopBounds) -> (ExprId, ExprId, bool) {
        match bounds {
            LoopBounds::Range(start, stop) => {
                let (start, stop) = (self.integer(start), self.integer(stop));
                (start, stop, false)
            }
            LoopBounds::Inferred => self.inferred(index),
        }
    }

    /// The extent of a loop without explicit bounds, and true if it covers a whole dimension.
    pub(super) fn inferred(&mut self, index: IndexId) -> (ExprId, ExprId, bool) {
        let bound = self.attributes[index.index()].bound;
        match (self.checked.extents.loops[index.index()], self.dimension(index)) {
            // The program was checked to have this size.
            (LoopExtent::Static { start: 0, stop }, _) if matches!(bound, Some(Bound::Exactly(_))) => {
                (self.b.int(0), self.b.int(stop), true)
            }
            // Sizes are parameters of the kernel; it is not specialised for them.
            (LoopExtent::Static { start: 0, .. }, Some(size)) => (self.b.int(0), size, true),
            (LoopExtent::Static { start, stop }, _) => (self.b.int(start), self.b.int(stop), start == 0),
            (LoopExtent::Dynamic, _) => (self.b.int(0), self.b.int(0), false),
        }
    }

    /// The size of a dimension that an index subscripts alone: the loop's extent.
    fn dimension(&mut self, index: IndexId) -> Option<ExprId> {
        let program = self.program;
        let bare = |access: &Access| {
            let dim = access
                .subscripts
                .iter()
                .position(|s| !s.permissive && matches!(program.expr(s.expr), Expr::Index(i) if *i == index));
            dim.map(|dim| (access.tensor, dim))
        };
        let reads = program.exprs.ids().find_map(|id| match program.expr(id) {
            Expr::Read(access) => bare(access),
            _ => None,
        });
        let mut found = reads;
        program.visit(&mut |stmt| {
            if let StmtKind::Assign { target, .. } = &stmt.kind {
                found = found.or(bare(target));
            }
        });
        found.map(|(tensor, dim)| self.bound[tensor.index()].dims[dim])
    }

    pub(super) fn integer(&mut self, node: &Node) -> ExprId {
        let node = self.resolve(node);
        let value = self.emit(&node).value;
        self.b.call_in(Op::Cast(DType::I64), DType::I64, &[value])
    }

    pub(super) fn truth(&mut self, node: &Node) -> ExprId {
        let node = self.resolve(node);
        let emitted = self.emit(&node);
        let value = self.as_bool(emitted.value);
        match emitted.missing {
            // A missing condition does not hold.
            Some(missing) => {
                let no = self.b.constant(Value::Bool(false));
                self.b.call_in(Op::Select, DType::Bool, &[missing, no, value])
            }
            None => value,
        }
    }

    // Expressions

    /// The value of an expression whose accesses are resolved.
    pub(super) fn emit(&mut self, node: &Node) -> Emitted {
        let plain = |value| Emitted { value, unless: None, missing: None };
        match node {
            Node::Value(value) => plain(*value),
            Node::Known(value) => {
                let never = self.b.constant(Value::Bool(false));
                let expr = self.b.constant(*value);
                Emitted { value: expr, unless: Some((never, *value)), missing: None }
            }
            Node::Index(index) => match self.indices[index.index()] {
                Some(value) => plain(value),
                None => plain(self.b.int(0)),
            },
            Node::Var(var) => match self.vars[var.index()].clone() {
                Some(bound) => self.emit(&bound),
                None => plain(self.b.int(0)),
            },
            Node::Size(tensor, dim) => plain(self.bound[tensor.index()].dims[*dim]),
            Node::Missing => {
                let (zero, always) = (self.b.int(0), self.b.constant(Value::Bool(true)));
                Emitted { value: zero, unless: None, missing: Some(always) }
            }
            Node::Access(access) => self.emit_access(access),
            Node::Entry(entry) => {
                let answer = self.resolve_entry(entry);
                self.emit(&answer)
            }
            Node::Call(op, dtype, operands) => self.emit_call(*op, *dtype, operands),
        }
    }

    fn emit_call(&mut self, op: Op, dtype: DType, operands: &[Node]) -> Emitted {
        let emitted: Vec<Emitted> = operands.iter().map(|n| self.emit(n)).collect();
        let values: Vec<ExprId> = emitted.iter().map(|e| e.value).collect();
        let any_missing = self.any(emitted.iter().filter_map(|e| e.missing).collect());
        match op {
            Op::Coalesce => {
                let mut value = None;
                let mut missing = None;
                for e in emitted.iter().rev() {
                    let converted = self.b.call_in(Op::Cast(dtype), dtype, &[e.value]);
                    (value, missing) = match (value, e.missing) {
                        (Some(rest), Some(gone)) => {
                            let chosen = self.b.call_in(Op::Select, dtype, &[gone, rest, converted]);
                            let both = missing.map(|m| self.b.call_in(Op::And, DType::Bool, &[gone, m]));
                            (Some(chosen), both)
                        }
                        (None, gone) => (Some(converted), gone),
                        (_, None) => (Some(converted), None),
                    };
                }
                let zero = self.b.int(0);
                return Emitted { value: value.unwrap_or(zero), unless: None, missing };
            }
            Op::Or => {
                let yes = self.b.constant(Value::Bool(true));
                let (a, b) = (self.as_bool(values[0]), self.as_bool(values[1]));
                let value = self.b.call_in(Op::Select, DType::Bool, &[a, yes, b]);
                return Emitted { value, unless: None, missing: any_missing };
            }
            Op::And => {
                let (a, b) = (self.as_bool(values[0]), self.as_bool(values[1]));
                let value = self.b.call_in(Op::And, DType::Bool, &[a, b]);
                return Emitted { value, unless: None, missing: any_missing };
            }
            Op::Select => {
                let cond = self.as_bool(values[0]);
                let value = self.b.call_in(Op::Select, dtype, &[cond, values[1], values[2]]);
                let missing = match (emitted[1].missing, emitted[2].missing) {
                    (None, None) => None,
                    (a, b) => {
                        let no = self.b.constant(Value::Bool(false));
                        Some(self.b.call_in(Op::Select, DType::Bool, &[cond, a.unwrap_or(no), b.unwrap_or(no)]))
                    }
                };
                return Emitted {
                    value,
                    unless: None,
                    missing: self.any([missing, emitted[0].missing].into_iter().flatten().collect()),
                };
            }
            _ => {}
        }
        let mut value = self.b.call_in(op, dtype, &values);
        let mut unless = None;
        // Operands that annihilate the result where they are not stored.
        let policy = self.policy;
        let absorbed = |(k, e): (usize, &Emitted)| {
            e.unless.and_then(|(cond, fill)| Some((cond, policy.absorbed(op, dtype, k, fill)?)))
        };
        let absorbing: Vec<(ExprId, Value)> = emitted.iter().enumerate().filter_map(absorbed).collect();
        match absorbing[..] {
            [] => {}
            // Infinities of both signs: the first operand that is not stored decides.
            [(first, a), (second, b)] if !a.same_number(b) => {
                let (a, b) = (self.b.constant(a), self.b.constant(b));
                let one = self.b.call_in(Op::Select, dtype, &[second, value, b]);
                value = self.b.call_in(Op::Select, dtype, &[first, one, a]);
            }
            [(first, result), ..] => {
                let others = absorbing[1..].iter().map(|(cond, _)| *cond);
                let all = others.fold(first, |a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
                let constant = self.b.constant(result);
                value = self.b.call_in(Op::Select, dtype, &[all, value, constant]);
                unless = Some((all, result));
            }
        }
        if unless.is_none() && emitted.iter().all(|e| e.unless.is_some()) {
            let conds: Vec<ExprId> = emitted.iter().filter_map(|e| e.unless.map(|(c, _)| c)).collect();
            let fills: Vec<Value> = emitted.iter().filter_map(|e| e.unless.map(|(_, f)| f)).collect();
            unless = self.any(conds).map(|any| (any, eval(op, dtype, &fills)));
        }
        Emitted { value, unless, missing: any_missing }
    }

    /// The operand value that decides the result of an operator.
    pub(super) fn annihilator(&self, op: Op, dtype: DType) -> Option<Value> {
        self.policy.annihilator(op, dtype)
    }

    pub(super) fn as_bool(&mut self, value: ExprId) -> ExprId {
        self.b.call_in(Op::Cast(DType::Bool), DType::Bool, &[value])
    }

    pub(super) fn any(&mut self, conds: Vec<ExprId>) -> Option<ExprId> {
        let yes = self.b.constant(Value::Bool(true));
        conds.into_iter().reduce(|a, b| self.b.call_in(Op::Select, DType::Bool, &[a, yes, b]))
    }
}
