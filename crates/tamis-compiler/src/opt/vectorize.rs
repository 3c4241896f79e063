//! Loop vectorisation in the kernel IR (not in the pipeline yet): loops that may be vectorised
//! become loops over vectors, with a tail. The LLVM back end makes its own vectors.
//!
//! In: a kernel whose loops `vectorize_legality` has marked. Out: the same kernel, in which such a
//! loop of declarations, reductions and stores handles `lanes` iterations at once: the counter is a
//! ramp, loads are contiguous, strided or gathered, and each reduction has several vector
//! accumulators, which are combined behind the loop. The tail is masked where masks are free, and a
//! remainder loop elsewhere. Legality ([`plan`]) and profitability ([`is_profitable`]) are separate;
//! the second asks the [`VectorTarget`].

use super::target::VectorTarget;
use super::{Editor, Options};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Block, BufferId, Builder, Expr, ExprId, Hint, Kernel, Stmt, VarId, VectorExpr};
use tamis_ir::{DType, Kind};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    if !kernel.is_plain() {
        return kernel;
    }
    let (mut editor, body) = Editor::new(kernel, options);
    let body = block(&mut editor, body, &options.target);
    editor.finish(body)
}

fn block(b: &mut Builder, body: Block, target: &VectorTarget) -> Block {
    let mut out = Block::with_capacity(body.len());
    for mut stmt in body {
        for inner in stmt.blocks_mut() {
            *inner = block(b, std::mem::take(inner), target);
        }
        match &stmt {
            Stmt::For { var, start, stop, body, hint } if hint.vectorise => {
                match plan(b.kernel(), *var, body, target).filter(|plan| is_profitable(plan, target)) {
                    Some(plan) => {
                        let vectors = Vectors { plan, target: *target, var: *var, body, hint: *hint };
                        out.extend(vectors.emit(b, *start, *stop));
                    }
                    None => out.push(stmt),
                }
            }
            _ => out.push(stmt),
        }
    }
    out
}

/// What a vectorised loop consists of.
struct Plan {
    lanes: u16,
    /// The variables that lanes accumulate, by which operator.
    reductions: Vec<(VarId, Op)>,
    /// The number of gathered loads.
    gathers: usize,
    /// The coordinate lists that are read at the counter.
    lists: Vec<BufferId>,
}

/// The vectorised form of a marked loop, if this pass has one. The mark says that iterations are
/// independent but for reductions.
fn plan(kernel: &Kernel, counter: VarId, body: &[Stmt], target: &VectorTarget) -> Option<Plan> {
    if kernel.var(counter).mutable {
        return None;
    }
    let mut plan = Plan { lanes: 0, reductions: Vec::new(), gathers: 0, lists: Vec::new() };
    let mut widest = 1;
    for stmt in body {
        match stmt {
            Stmt::Let { var, .. } if !kernel.var(*var).mutable => {}
            Stmt::Assign { var, value } => {
                let Expr::Call(op, dtype, _) = kernel.expr(*value) else { return None };
                // The difference of a sum is not a reduction of differences.
                let known = matches!(op, Op::Add | Op::Mul | Op::Min | Op::Max | Op::BitAnd | Op::BitOr | Op::BitXor);
                let once = plan.reductions.iter().all(|(other, _)| other != var);
                if !known || !once || kernel.var(*var).dtype != *dtype {
                    return None;
                }
                op.info().left_identity?.value(*dtype)?;
                plan.reductions.push((*var, *op));
                widest = widest.max(dtype.size());
            }
            Stmt::Store { buffer, .. } => widest = widest.max(kernel.buffer(*buffer).elem.size()),
            _ => return None,
        }
        let mut fits = true;
        stmt.each_expr(|id| {
            kernel.visit_expr(id, &mut |expr| match expr {
                Expr::Load(buffer, index) => {
                    let elem = kernel.buffer(*buffer).elem;
                    if !elem.is_index() {
                        widest = widest.max(elem.size());
                    }
                    if *kernel.expr(*index) == Expr::Var(counter) {
                        plan.lists.extend(elem.is_index().then_some(*buffer));
                    }
                    plan.gathers += usize::from(is_gathered(kernel, *index, counter, body));
                    fits &= elem.dtype().kind() != Kind::Complex;
                }
                Expr::Call(_, dtype, _) => fits &= dtype.kind() != Kind::Complex,
                Expr::Vector(_) => fits = false,
                Expr::Const(_) | Expr::Var(_) => {}
            });
        });
        if !fits {
            return None;
        }
    }
    plan.lanes = target.vector_bytes / u16::try_from(widest).ok()?;
    Some(plan)
}

/// True if an index is loaded, or declared by a load, so that neighbours lie apart.
fn is_gathered(kernel: &Kernel, index: ExprId, counter: VarId, body: &[Stmt]) -> bool {
    let declared = |var: VarId| {
        body.iter().find_map(|stmt| match stmt {
            Stmt::Let { var: other, value } if *other == var => Some(*value),
            _ => None,
        })
    };
    match kernel.expr(index) {
        Expr::Load(..) => true,
        Expr::Var(var) if *var != counter => {
            declared(*var).is_some_and(|value| matches!(kernel.expr(value), Expr::Load(..)))
        }
        _ => false,
    }
}

/// Whether vectors of the target pay for a loop.
fn is_profitable(plan: &Plan, target: &VectorTarget) -> bool {
    plan.lanes >= 2 && plan.gathers <= usize::from(target.gathers)
}

/// A loop that is being vectorised.
struct Vectors<'a> {
    plan: Plan,
    target: VectorTarget,
    var: VarId,
    body: &'a [Stmt],
    hint: Hint,
}

/// One copy of the body: what stands for its variables, and which lanes are active.
struct Copy<'a> {
    vars: FxHashMap<VarId, ExprId>,
    mask: Option<ExprId>,
    /// The accumulators of the reductions, in the order of the plan; none if the variables themselves are updated.
    accumulators: &'a [VarId],
}

impl Vectors<'_> {
    fn emit(&self, b: &mut Builder, start: ExprId, stop: ExprId) -> Block {
        b.block(|b| {
            let (zero, lanes) = (b.int(0), b.int(i64::from(self.plan.lanes)));
            let (start, stop) = (b.name("first", start), b.name("stop", stop));
            let distance = b.sub(stop, start);
            let length = b.call_in(Op::Max, DType::I64, &[distance, zero]);
            let length = b.name("length", length);
            if self.hint.short_trip && !self.target.masks {
                // Too short for a vector, as many rows are.
                let short = b.call_in(Op::Lt, DType::I64, &[length, lanes]);
                b.branch(short, |b| self.scalars(b, start, stop), |b| self.vectors(b, start, stop, length));
            } else {
                self.vectors(b, start, stop, length);
            }
        })
    }

    /// The iterations one after the other.
    fn scalars(&self, b: &mut Builder, start: ExprId, stop: ExprId) {
        let name = b.kernel().var(self.var).name.clone();
        b.count(&name, start, stop, |b, i| self.copy(b, i, None, &[]));
    }

    fn vectors(&self, b: &mut Builder, start: ExprId, stop: ExprId, length: ExprId) {
        let lanes = b.int(i64::from(self.plan.lanes));
        let vectors = b.call_in(Op::FloorDiv, DType::I64, &[length, lanes]);
        let vectors = b.name("vectors", vectors);
        let several = if self.plan.reductions.is_empty() { 1 } else { usize::from(self.target.accumulators.max(1)) };
        let sums: Vec<Vec<VarId>> = (0..several).map(|_| self.accumulators(b)).collect();
        if self.target.prefetch_distance > 0 && self.plan.gathers > 0 {
            for buffer in &self.plan.lists {
                let (buffer, distance) = (*buffer, self.target.prefetch_distance);
                b.emit(Stmt::Prefetch { buffer, index: start, distance, locality: 3 });
            }
        }
        let first = if several > 1 {
            let count = b.int(several as i64);
            let rounds = b.call_in(Op::FloorDiv, DType::I64, &[vectors, count]);
            let rounds = b.name("rounds", rounds);
            let zero = b.int(0);
            b.count("round", zero, rounds, |b, round| {
                let before = b.call_in(Op::Mul, DType::I64, &[round, count]);
                for (k, sums) in sums.iter().enumerate() {
                    let k = b.int(k as i64);
                    let number = b.add(before, k);
                    self.vector(b, start, number, sums);
                }
            });
            b.call_in(Op::Mul, DType::I64, &[rounds, count])
        } else {
            b.int(0)
        };
        b.count("vector", first, vectors, |b, number| self.vector(b, start, number, &sums[0]));
        let done = b.call_in(Op::Mul, DType::I64, &[vectors, lanes]);
        let rest = b.add(start, done);
        if self.target.masks {
            let some = b.call_in(Op::Lt, DType::I64, &[rest, stop]);
            b.branch(
                some,
                |b| {
                    let ramp = b.vector(VectorExpr::Ramp { start: rest, step: 1, lanes: self.plan.lanes });
                    let mask = b.call_in(Op::Lt, DType::I64, &[ramp, stop]);
                    let mask = b.name("mask", mask);
                    self.copy(b, ramp, Some(mask), &sums[0]);
                },
                |_| {},
            );
            self.combine(b, &sums);
        } else {
            self.combine(b, &sums);
            self.scalars(b, rest, stop);
        }
    }

    /// A vector accumulator for each reduction.
    fn accumulators(&self, b: &mut Builder) -> Vec<VarId> {
        let accumulator = |(var, op): &(VarId, Op)| {
            let (name, dtype) = (b.kernel().var(*var).name.clone(), b.kernel().var(*var).dtype);
            let identity = op.info().left_identity.and_then(|e| e.value(dtype)).unwrap_or(Value::zero(dtype));
            let value = b.constant(identity);
            let start = b.vector(VectorExpr::Splat { value, lanes: self.plan.lanes });
            b.variable_from(format!("{name}_lanes"), start)
        };
        self.plan.reductions.iter().map(accumulator).collect()
    }

    /// The iterations of the vector of a number.
    fn vector(&self, b: &mut Builder, start: ExprId, number: ExprId, sums: &[VarId]) {
        let lanes = b.int(i64::from(self.plan.lanes));
        let offset = b.call_in(Op::Mul, DType::I64, &[number, lanes]);
        let first = b.add(start, offset);
        let ramp = b.vector(VectorExpr::Ramp { start: first, step: 1, lanes: self.plan.lanes });
        self.copy(b, ramp, None, sums);
    }

    /// Combines accumulators, then their lanes, then that with the variable.
    fn combine(&self, b: &mut Builder, sums: &[Vec<VarId>]) {
        for (k, (var, op)) in self.plan.reductions.iter().enumerate() {
            let dtype = b.kernel().var(*var).dtype;
            let mut all = b.get(sums[0][k]);
            for sums in &sums[1..] {
                let other = b.get(sums[k]);
                all = b.call_in(*op, dtype, &[all, other]);
            }
            let total = b.vector(VectorExpr::Reduce { op: *op, value: all });
            let name = format!("{}_total", b.kernel().var(*var).name);
            let total = b.name(name, total);
            let before = b.get(*var);
            let value = b.call_in(*op, dtype, &[before, total]);
            b.assign(*var, value);
        }
    }

    /// The body, with a value for its counter.
    fn copy(&self, b: &mut Builder, counter: ExprId, mask: Option<ExprId>, accumulators: &[VarId]) {
        let mut copy = Copy { vars: FxHashMap::from_iter([(self.var, counter)]), mask, accumulators };
        for stmt in self.body {
            match stmt {
                Stmt::Let { var, value } => {
                    let value = copy.expr(b, *value);
                    let named = b.name(b.kernel().var(*var).name.clone(), value);
                    copy.vars.insert(*var, named);
                }
                Stmt::Assign { var, value } => {
                    let at = self.plan.reductions.iter().position(|(other, _)| other == var);
                    let target = at.and_then(|k| copy.accumulators.get(k).copied()).unwrap_or(*var);
                    let before = b.get(target);
                    copy.vars.insert(*var, before);
                    let mut value = copy.expr(b, *value);
                    if let Some(mask) = mask {
                        let dtype = b.dtype(value);
                        value = b.call_in(Op::Select, dtype, &[mask, value, before]);
                    }
                    b.assign(target, value);
                }
                Stmt::Store { buffer, index, value } => {
                    let (buffer, index, value) = (*buffer, copy.expr(b, *index), copy.expr(b, *value));
                    b.emit(match mask {
                        Some(mask) => Stmt::MaskedStore { buffer, index, value, mask },
                        None => Stmt::Store { buffer, index, value },
                    });
                }
                // The plan has no other statements.
                _ => {}
            }
        }
    }
}

impl Copy<'_> {
    fn expr(&self, b: &mut Builder, id: ExprId) -> ExprId {
        match b.kernel().expr(id).clone() {
            Expr::Const(_) | Expr::Vector(_) => id,
            Expr::Var(var) => self.vars.get(&var).copied().unwrap_or(id),
            Expr::Load(buffer, index) => {
                let index = self.expr(b, index);
                match self.mask.filter(|_| b.kernel().exprs.lanes(index) > 1) {
                    Some(mask) => {
                        let otherwise = b.constant(Value::zero(b.kernel().buffer(buffer).elem.dtype()));
                        b.vector(VectorExpr::Masked { buffer, index, mask, otherwise })
                    }
                    None => b.load(buffer, index),
                }
            }
            Expr::Call(op, dtype, operands) => {
                let operands: Vec<ExprId> = operands.iter().map(|operand| self.expr(b, *operand)).collect();
                b.call_in(op, dtype, &operands)
            }
        }
    }
}
