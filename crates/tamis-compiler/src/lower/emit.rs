//! Statements and expressions that are resolved: they become statements of the kernel.

use super::Lowerer;
use super::bind::Stored;
use super::node::{self, Bounds, Node, Source, Step, Target, Update};
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::Located;
use tamis_ir::program::{Access, Expr, IndexId, LoopExtent, StmtKind, TensorId};

/// A value in the kernel.
#[derive(Clone, Copy)]
pub(super) struct Emitted {
    pub(super) value: ExprId,
    /// Where this holds, the value is known without looking at stored data, and is this constant.
    pub(super) absent: Option<(ExprId, Value)>,
    /// Where this holds, there is no value at all.
    pub(super) missing: Option<ExprId>,
}

impl Lowerer<'_> {
    /// Scalars that are results go to their outputs.
    pub(super) fn store_scalars(&mut self) {
        for id in self.program.results.clone() {
            if let Stored::Scalar(var) = self.bound[id.index()].storage {
                let dtype = self.bound[id.index()].dtype;
                let name = format!("{}_out", self.program.tensor(id).name);
                let out = self.b.buffer(name, tamis_ir::kernel::Elem::Value(dtype), tamis_ir::kernel::Role::Output);
                let (zero, value) = (self.b.int(0), self.b.get(var));
                self.b.store(out, zero, value);
            }
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Declare(tensor) => self.declare(tensor),
            Step::Let(var, value) => {
                let emitted = self.emit(&value);
                let name = self.program.vars[var.index()].clone();
                let named = self.b.name(name, emitted.value);
                self.vars[var.index()] = Some(Node::Value(named));
                // A name that may be absent or missing keeps that knowledge.
                if emitted.absent.is_some() || emitted.missing.is_some() {
                    self.vars[var.index()] = Some(value);
                }
            }
            Step::If(cond, then, otherwise) => {
                let cond = self.truth(&cond);
                let then = self.scoped(then);
                let otherwise = self.scoped(otherwise);
                if let Some(known) = self.b.as_constant(cond) {
                    let block = if known.is_truthy() { then } else { otherwise };
                    block.into_iter().for_each(|stmt| self.b.emit(stmt));
                } else if !then.is_empty() || !otherwise.is_empty() {
                    self.b.emit(Stmt::If { cond, then, otherwise });
                }
            }
            Step::For(index, bounds, body) => {
                let (start, stop, whole) = self.bounds(index, &bounds);
                self.lower_loop(index, start, stop, whole, body);
            }
            Step::Assign(target, update, value) => self.assign(&target, update.as_ref(), &value),
        }
    }

    /// Statements in a block of their own.
    pub(super) fn scoped(&mut self, steps: Vec<Step>) -> Vec<Stmt> {
        let mut inner = std::mem::replace(&mut self.b, tamis_ir::kernel::Builder::new(""));
        let block = inner.block(|b| {
            std::mem::swap(&mut self.b, b);
            self.steps(steps);
            std::mem::swap(&mut self.b, b);
        });
        self.b = inner;
        block
    }

    fn declare(&mut self, tensor: TensorId) {
        let bound = self.bound[tensor.index()].clone();
        let fill = self.b.constant(bound.fill);
        match bound.storage {
            Stored::Scalar(_) => {
                // A body that is lowered for several regions declares its scalars in each of them.
                let name = self.program.tensor(tensor).name.clone();
                let var = self.b.variable_from(name, fill);
                self.bound[tensor.index()].storage = Stored::Scalar(var);
            }
            Stored::Dense(buffer) => {
                let one = self.b.int(1);
                let len = bound.dims.iter().fold(one, |a, n| self.b.call_in(Op::Mul, DType::I64, &[a, *n]));
                let zero = self.b.int(0);
                self.b.emit(Stmt::Grow { buffer, len, fill: Some(bound.fill) });
                self.b.emit(Stmt::Fill { buffer, start: zero, len, value: fill });
            }
            Stored::Levels { .. } => {}
        }
    }

    fn bounds(&mut self, index: IndexId, bounds: &Bounds) -> (ExprId, ExprId, bool) {
        match bounds {
            Bounds::Range(start, stop) => {
                let (start, stop) = (self.integer(start), self.integer(stop));
                (start, stop, false)
            }
            Bounds::Inferred => match (self.checked.extents.loops[index.index()], self.dimension(index)) {
                // A size is a parameter of the kernel, not part of what it is.
                (LoopExtent::Static { start: 0, .. }, Some(size)) => (self.b.int(0), size, true),
                (LoopExtent::Static { start, stop }, _) => (self.b.int(start), self.b.int(stop), start == 0),
                (LoopExtent::Dynamic, _) => (self.b.int(0), self.b.int(0), false),
            },
        }
    }

    /// The size of a dimension that an index subscripts alone, which is how far it goes.
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
        let value = self.emit(node).value;
        self.b.call_in(Op::Cast(DType::I64), DType::I64, &[value])
    }

    pub(super) fn truth(&mut self, node: &Node) -> ExprId {
        let value = self.emit(node).value;
        self.b.call_in(Op::Cast(DType::Bool), DType::Bool, &[value])
    }

    // Expressions

    pub(super) fn emit(&mut self, node: &Node) -> Emitted {
        let plain = |value| Emitted { value, absent: None, missing: None };
        match node {
            Node::Value(value) => plain(*value),
            Node::Known(value) => {
                let always = self.b.constant(Value::Bool(true));
                let expr = self.b.constant(*value);
                Emitted { value: expr, absent: Some((always, *value)), missing: None }
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
                Emitted { value: zero, absent: None, missing: Some(always) }
            }
            Node::Access(access) => self.emit_access(access),
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
                return Emitted { value: value.unwrap_or(zero), absent: None, missing };
            }
            Op::Or => {
                let yes = self.b.constant(Value::Bool(true));
                let (a, b) = (self.as_bool(values[0]), self.as_bool(values[1]));
                let value = self.b.call_in(Op::Select, DType::Bool, &[a, yes, b]);
                return Emitted { value, absent: None, missing: any_missing };
            }
            Op::And => {
                let (a, b) = (self.as_bool(values[0]), self.as_bool(values[1]));
                let value = self.b.call_in(Op::And, DType::Bool, &[a, b]);
                return Emitted { value, absent: None, missing: any_missing };
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
                    absent: None,
                    missing: self.any([missing, emitted[0].missing].into_iter().flatten().collect()),
                };
            }
            _ => {}
        }
        let mut value = self.b.call_in(op, dtype, &values);
        let mut absent = None;
        if let Some(zero) = op.info().annihilator.and_then(|a| a.value(dtype)) {
            let gone: Vec<ExprId> = emitted
                .iter()
                .filter_map(|e| e.absent)
                .filter(|(_, fill)| fill.cast(dtype).same_number(zero))
                .map(|(cond, _)| cond)
                .collect();
            if let Some(gone) = self.any(gone) {
                let constant = self.b.constant(zero);
                value = self.b.call_in(Op::Select, dtype, &[gone, constant, value]);
                absent = Some((gone, zero));
            }
        }
        if absent.is_none() && emitted.iter().all(|e| e.absent.is_some()) {
            let conds: Vec<ExprId> = emitted.iter().filter_map(|e| e.absent.map(|(c, _)| c)).collect();
            let fills: Vec<Value> = emitted.iter().filter_map(|e| e.absent.map(|(_, f)| f)).collect();
            let all = conds.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
            absent = all.map(|all| (all, tamis_ir::algebra::eval(op, dtype, &fills)));
        }
        Emitted { value, absent, missing: any_missing }
    }

    fn as_bool(&mut self, value: ExprId) -> ExprId {
        self.b.call_in(Op::Cast(DType::Bool), DType::Bool, &[value])
    }

    fn any(&mut self, conds: Vec<ExprId>) -> Option<ExprId> {
        let yes = self.b.constant(Value::Bool(true));
        conds.into_iter().reduce(|a, b| self.b.call_in(Op::Select, DType::Bool, &[a, yes, b]))
    }

    // Accesses

    fn emit_access(&mut self, access: &node::Access) -> Emitted {
        let (tensor, subs) = match &access.source {
            Source::Tensor(tensor, subs) => (*tensor, subs),
            Source::Mask(op, index, other) => {
                let (a, b) = (self.emit(&Node::Index(*index)).value, self.emit(other).value);
                let value = self.b.call_in(*op, DType::I64, &[a, b]);
                return Emitted { value, absent: None, missing: None };
            }
        };
        let bound = self.bound[tensor.index()].clone();
        if let Stored::Scalar(var) = bound.storage {
            return Emitted { value: self.b.get(var), absent: None, missing: None };
        }
        let mut missing = Vec::new();
        let mut at = Located {
            position: access.position.unwrap_or(self.b.int(0)),
            present: access.present,
            group_stop: access.group_stop,
        };
        for (k, sub) in subs.iter().enumerate().skip(access.level) {
            let index = self.integer(&sub.node);
            let index = self.b.name("at", index);
            let index = if sub.permissive {
                let inside = self.permit(index, bound.dims[sub.dim], &mut missing);
                // Nothing is looked for where there is nothing.
                at.present = self.also(at.present, missing.last().copied());
                inside
            } else {
                index
            };
            at = self.locate(tensor, k, sub.dim, at, index);
        }
        let missing = self.any(missing);
        let value = match &bound.storage {
            Stored::Levels { values: Some(values), .. } => self.b.load(*values, at.position),
            Stored::Levels { values: None, .. } => self.b.constant(Value::Bool(true)),
            Stored::Dense(buffer) => self.b.load(*buffer, at.position),
            Stored::Scalar(_) => at.position,
        };
        let fill = self.b.constant(bound.fill);
        let value = match at.present {
            Some(present) => self.b.call_in(Op::Select, bound.dtype, &[present, value, fill]),
            None => value,
        };
        let absent = at.present.map(|present| {
            let gone = self.b.call_in(Op::Not, DType::Bool, &[present]);
            (gone, bound.fill)
        });
        let value = match missing {
            Some(missing) => self.b.call_in(Op::Select, bound.dtype, &[missing, fill, value]),
            None => value,
        };
        Emitted { value, absent, missing }
    }

    /// Present, and not outside.
    fn also(&mut self, present: Option<ExprId>, outside: Option<ExprId>) -> Option<ExprId> {
        let inside = outside.map(|o| self.b.call_in(Op::Not, DType::Bool, &[o]));
        match (present, inside) {
            (Some(a), Some(b)) => Some(self.b.call_in(Op::And, DType::Bool, &[a, b])),
            (a, b) => a.or(b),
        }
    }

    /// A coordinate that is inside whatever happens; where it was not, the value is missing.
    fn permit(&mut self, index: ExprId, size: ExprId, missing: &mut Vec<ExprId>) -> ExprId {
        let zero = self.b.int(0);
        let low = self.b.call_in(Op::Lt, DType::I64, &[index, zero]);
        let high = self.b.call_in(Op::Ge, DType::I64, &[index, size]);
        let yes = self.b.constant(Value::Bool(true));
        let outside = self.b.call_in(Op::Select, DType::Bool, &[low, yes, high]);
        let outside = self.b.name("outside", outside);
        missing.push(outside);
        self.b.call_in(Op::Select, DType::I64, &[outside, zero, index])
    }

    /// Finds a coordinate of one level.
    fn locate(&mut self, tensor: TensorId, level: usize, dim: usize, at: Located, index: ExprId) -> Located {
        let bound = self.bound[tensor.index()].clone();
        if let Stored::Levels { format, arrays, .. } = &bound.storage
            && let Some(located) =
                self.fiber(tensor, format, &arrays[level], level, at, index, |row, fiber| (row.locate)(fiber))
        {
            return located;
        }
        let position = self.b.call_in(Op::Mul, DType::I64, &[at.position, bound.dims[dim]]);
        Located { position: self.b.add(position, index), ..at }
    }

    // Assignments

    fn assign(&mut self, target: &Target, update: Option<&Update>, value: &Node) {
        let bound = self.bound[target.tensor.index()].clone();
        let value = self.emit(value).value;
        let mut missing = Vec::new();
        let mut position = self.b.int(0);
        for sub in &target.subs {
            let index = self.integer(&sub.node);
            let size = bound.dims[sub.dim];
            let index = if sub.permissive { self.permit(index, size, &mut missing) } else { index };
            position = self.b.call_in(Op::Mul, DType::I64, &[position, size]);
            position = self.b.add(position, index);
        }
        let outside = self.any(missing);
        let old = match &bound.storage {
            Stored::Scalar(var) => self.b.get(*var),
            Stored::Dense(buffer) => self.b.load(*buffer, position),
            Stored::Levels { .. } => return,
        };
        let new = match update {
            None => value,
            Some(update) => {
                let mut operands = vec![old, value];
                for extra in &update.extra {
                    operands.push(self.emit(extra).value);
                }
                self.b.call_in(update.op, update.operand, &operands)
            }
        };
        let new = self.b.call_in(Op::Cast(bound.dtype), bound.dtype, &[new]);
        let new = match outside {
            Some(outside) => self.b.call_in(Op::Select, bound.dtype, &[outside, old, new]),
            None => new,
        };
        match &bound.storage {
            Stored::Scalar(var) => self.b.assign(*var, new),
            Stored::Dense(buffer) => self.b.store(*buffer, position, new),
            Stored::Levels { .. } => {}
        }
    }
}
