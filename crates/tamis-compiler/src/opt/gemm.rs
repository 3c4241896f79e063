//! GEMM recognition: a dense contraction of two operands becomes a matrix multiplication, where it
//! is large enough.
//!
//! In: a kernel. Out: the same kernel, in which three nested loops around
//! `C[..] = C[..] + A[..] * B[..]`, with affine subscripts and more factors that do not depend on
//! the loops, are the alternative to a [`Gemm`] of the same sizes. The innermost loop may also add
//! up a variable, which is stored behind it. Loops around them, sparse or dense, stay. The order of
//! a sum changes, so nothing happens under `strict`; nor where iterations are counted.

use super::{Editor, Options};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Block, BufferId, Builder, Elem, Expr, ExprId, Gemm, Kernel, LoopKind, MatrixView, Stmt, VarId};

/// The least number of products for which packing pays.
const MIN_PRODUCTS: i64 = 8192;

/// The most expressions that are looked at in a nest.
const BUDGET: u32 = 512;

/// The number of factors from which products are not taken apart.
const MAX_FACTORS: usize = 16;

/// The least number of rows and of columns: fewer waste most of a tile of registers.
const MIN_SIDE: i64 = 4;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    if options.strict || options.count {
        return kernel;
    }
    let (mut editor, body) = Editor::new(kernel, options);
    let body = block(&mut editor, body);
    editor.finish(body)
}

fn block(b: &mut Builder, body: Block) -> Block {
    body.into_iter()
        .map(|mut stmt| {
            if let Some(nest) = ContractionNest::of(b.kernel(), &stmt)
                && let Some(gemm) = nest.gemm(b)
            {
                let initial = nest.initialisation(b, &gemm);
                return versions(b, gemm, initial, stmt);
            }
            for inner in stmt.blocks_mut() {
                *inner = block(b, std::mem::take(inner));
            }
            stmt
        })
        .collect()
}

/// The matrix multiplication where it pays, else the loops. `initial` gives the result its values
/// before it.
fn versions(b: &mut Builder, gemm: Gemm, initial: Option<Stmt>, loops: Stmt) -> Stmt {
    let [m, n, k] = gemm.sizes;
    let mut product = m;
    for size in [n, k] {
        product = b.call_in(Op::Mul, DType::I64, &[product, size]);
    }
    let (side, least) = (b.int(MIN_SIDE), b.int(MIN_PRODUCTS));
    let tests = [(m, side), (n, side), (k, side), (product, least)];
    let tests = tests.map(|(size, least)| b.call_in(Op::Ge, DType::I64, &[size, least]));
    let cond = tests.into_iter().reduce(|x, y| b.call(Op::And, &[x, y])).unwrap_or(product);
    let then = initial.into_iter().chain([Stmt::Gemm(Box::new(gemm))]).collect();
    Stmt::If { cond, then, otherwise: vec![loops] }
}

/// A loop of a nest.
struct NestLoop {
    var: VarId,
    start: ExprId,
    stop: ExprId,
}

/// Three perfectly nested loops with declarations, around one store.
struct ContractionNest {
    loops: [NestLoop; 3],
    /// The declarations inside, outer ones first.
    declared: Vec<(VarId, ExprId)>,
    buffer: BufferId,
    index: ExprId,
    value: ExprId,
    /// The variable that the innermost loop adds up, and what it starts with.
    accumulator: Option<(VarId, ExprId)>,
    /// How many more expressions are looked at: shared operands can be met exponentially often.
    budget: Cell<u32>,
}

/// An index as a linear form of the three counters, with loop-invariant coefficients.
struct LinearForm {
    coefficients: [Option<ExprId>; 3],
    rest: ExprId,
}

impl ContractionNest {
    fn of(kernel: &Kernel, stmt: &Stmt) -> Option<ContractionNest> {
        let (mut loops, mut declared) = (Vec::new(), Vec::new());
        let mut at = stmt;
        let (buffer, index, value) = loop {
            let Stmt::For { var, start, stop, body, hint } = at else { return None };
            if !matches!(hint.kind, LoopKind::Serial) || kernel.var(*var).mutable || loops.len() == 3 {
                return None;
            }
            loops.push(NestLoop { var: *var, start: *start, stop: *stop });
            if loops.len() == 2
                && let Some(nest) = ContractionNest::of_accumulation(kernel, &mut loops, &mut declared, body)
            {
                return Some(nest);
            }
            let (last, lets) = body.split_last()?;
            for stmt in lets {
                match stmt {
                    Stmt::Let { var, value } if !kernel.var(*var).mutable => declared.push((*var, *value)),
                    _ => return None,
                }
            }
            match last {
                Stmt::Store { buffer, index, value } => break (*buffer, *index, *value),
                inner => at = inner,
            }
        };
        let loops = loops.try_into().ok()?;
        Some(ContractionNest { loops, declared, buffer, index, value, accumulator: None, budget: Cell::new(BUDGET) })
    }

    /// The body of two loops that adds up a variable in a third, and stores it.
    fn of_accumulation(
        kernel: &Kernel,
        loops: &mut Vec<NestLoop>,
        declared: &mut Vec<(VarId, ExprId)>,
        body: &[Stmt],
    ) -> Option<ContractionNest> {
        let [lets @ .., Stmt::Let { var, value: start }, inner, Stmt::Store { buffer, index, value }] = body else {
            return None;
        };
        let Stmt::For { var: counter, start: first, stop, body, hint } = inner else { return None };
        let [Stmt::Assign { var: assigned, value: sum }] = &body[..] else { return None };
        let serial = hint.kind == LoopKind::Serial && !kernel.var(*counter).mutable;
        if !serial || assigned != var || *kernel.expr(*value) != Expr::Var(*var) {
            return None;
        }
        for stmt in lets {
            match stmt {
                Stmt::Let { var, value } if !kernel.var(*var).mutable => declared.push((*var, *value)),
                _ => return None,
            }
        }
        loops.push(NestLoop { var: *counter, start: *first, stop: *stop });
        let accumulator = Some((*var, *start));
        Some(ContractionNest {
            loops: std::mem::take(loops).try_into().ok()?,
            declared: std::mem::take(declared),
            buffer: *buffer,
            index: *index,
            value: *sum,
            accumulator,
            budget: Cell::new(BUDGET),
        })
    }

    /// The loops that give each element of the result the value that its sum starts with, unless
    /// that is the element itself.
    fn initialisation(&self, b: &mut Builder, gemm: &Gemm) -> Option<Stmt> {
        let (_, start) = self.accumulator?;
        if matches!(b.kernel().expr(start), Expr::Load(buffer, _) if *buffer == self.buffer) {
            return None;
        }
        let zero = b.int(0);
        let [rows, columns, _] = gemm.sizes;
        let body = b.block(|b| {
            b.count("row", zero, rows, |b, row| {
                b.count("column", zero, columns, |b, column| {
                    let [row, column] =
                        [(row, 0), (column, 1)].map(|(at, k)| b.call_in(Op::Mul, DType::I64, &[at, gemm.c.strides[k]]));
                    let place = b.add(row, column);
                    let place = b.add(gemm.c.offset, place);
                    b.store(self.buffer, place, start);
                });
            });
        });
        body.into_iter().next()
    }

    /// The matrix multiplication that the loops compute, if it is one.
    fn gemm(&self, b: &mut Builder) -> Option<Gemm> {
        let Elem::Value(dtype) = b.kernel().buffer(self.buffer).elem else { return None };
        if !Gemm::DTYPES.contains(&dtype) {
            return None;
        }
        let bounds = self.loops.iter().flat_map(|one| [one.start, one.stop]);
        if bounds.into_iter().any(|bound| !self.is_invariant(b, bound)) {
            return None;
        }
        // Each declaration in terms of what stands before the loops.
        let mut inliner = LetInliner::default();
        for (var, value) in &self.declared {
            let value = inliner.inline(b, *value);
            inliner.vars.insert(*var, value);
        }
        let (index, value) = (inliner.inline(b, self.index), inliner.inline(b, self.value));
        if let Some((_, start)) = self.accumulator
            && !self.is_invariant(b, start)
            && inliner.inline(b, start) != b.load(self.buffer, index)
        {
            return None;
        }
        let c = self.linear(b, index)?;
        let (sum, negated) = self.summand(b, dtype, index, value)?;
        let mut factors = Vec::new();
        flatten(b.kernel(), dtype, sum, &mut factors);
        let (mut operands, mut alpha) = (Vec::new(), b.constant(Value::F64(1.0).cast(dtype)));
        for factor in factors {
            match b.kernel().expr(factor).clone() {
                _ if self.is_invariant(b, factor) => {
                    alpha = b.call_in(Op::Mul, dtype, &[alpha, factor]);
                }
                Expr::Load(buffer, index) if buffer != self.buffer => {
                    if b.kernel().buffer(buffer).elem != Elem::Value(dtype) {
                        return None;
                    }
                    operands.push((buffer, self.linear(b, index)?));
                }
                _ => return None,
            }
        }
        if negated {
            alpha = b.call_in(Op::Neg, dtype, &[alpha]);
        }
        let [first, second] = <[_; 2]>::try_from(operands).ok()?;
        // The counter of the sum is in both operands and not in the result; each other one is in the
        // result and in one operand.
        let sum = (0..3).find(|k| c.coefficients[*k].is_none())?;
        let [row, column] = match sum {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        };
        let (a, other) = match (first.1.coefficients[row].is_some(), second.1.coefficients[row].is_some()) {
            (true, false) => (first, second),
            (false, true) => (second, first),
            _ => return None,
        };
        let is = |form: &LinearForm, counters: [usize; 2]| {
            (0..3).all(|k| form.coefficients[k].is_some() == counters.contains(&k))
        };
        if !is(&c, [row, column]) || !is(&a.1, [row, sum]) || !is(&other.1, [sum, column]) {
            return None;
        }
        let sizes = [row, column, sum].map(|k| b.sub(self.loops[k].stop, self.loops[k].start));
        // Small constant sizes are unrolled.
        if sizes.iter().any(|size| b.as_constant(*size).and_then(Value::as_i64).is_some_and(|n| n < MIN_SIDE)) {
            return None;
        }
        if !self.is_injective(b.kernel(), &c, row, column) && !self.is_injective(b.kernel(), &c, column, row) {
            return None;
        }
        let c = self.view(b, self.buffer, &c, [row, column])?;
        let a = self.view(b, a.0, &a.1, [row, sum])?;
        let other = self.view(b, other.0, &other.1, [sum, column])?;
        Some(Gemm { sizes, alpha, c, a, b: other })
    }

    /// What is added to the element, and whether it is subtracted instead.
    fn summand(&self, b: &Builder, dtype: DType, index: ExprId, value: ExprId) -> Option<(ExprId, bool)> {
        let Expr::Call(op @ (Op::Add | Op::Sub), operand, operands) = b.kernel().expr(value) else { return None };
        let [x, y] = operands[..] else { return None };
        let element = |id: ExprId| match self.accumulator {
            Some((var, _)) => *b.kernel().expr(id) == Expr::Var(var),
            None => *b.kernel().expr(id) == Expr::Load(self.buffer, index),
        };
        match (element(x), element(y)) {
            _ if *operand != dtype => None,
            (true, false) => Some((y, *op == Op::Sub)),
            (false, true) if *op == Op::Add => Some((x, false)),
            _ => None,
        }
    }

    /// True if an expression is the same in all iterations.
    fn is_invariant(&self, b: &Builder, id: ExprId) -> bool {
        let mut invariant = true;
        b.kernel().visit_expr(id, &mut |expr| {
            invariant &= match expr {
                Expr::Var(var) => {
                    self.loops.iter().all(|one| one.var != *var)
                        && self.declared.iter().all(|(declared, _)| declared != var)
                        && self.accumulator.is_none_or(|(accumulator, _)| accumulator != *var)
                }
                Expr::Load(buffer, _) => *buffer != self.buffer,
                Expr::Const(_) | Expr::Call(..) => true,
                Expr::Vector(_) => false,
            };
        });
        invariant
    }

    /// An index as a linear form.
    fn linear(&self, b: &mut Builder, id: ExprId) -> Option<LinearForm> {
        self.budget.set(self.budget.get().checked_sub(1)?);
        let zero = b.int(0);
        if self.is_invariant(b, id) {
            return Some(LinearForm { coefficients: [None; 3], rest: id });
        }
        match b.kernel().expr(id).clone() {
            Expr::Var(var) => {
                let mut coefficients = [None; 3];
                coefficients[self.loops.iter().position(|one| one.var == var)?] = Some(b.int(1));
                Some(LinearForm { coefficients, rest: zero })
            }
            Expr::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => {
                let [x, y] = operands[..] else { return None };
                let (x, y) = (self.linear(b, x)?, self.linear(b, y)?);
                let mut combine = |x: Option<ExprId>, y: Option<ExprId>| match (x, y) {
                    (x, None) => x,
                    (None, Some(y)) => Some(if op == Op::Add { y } else { b.sub(zero, y) }),
                    (Some(x), Some(y)) => Some(if op == Op::Add { b.add(x, y) } else { b.sub(x, y) }),
                };
                let coefficients = [0, 1, 2].map(|k| combine(x.coefficients[k], y.coefficients[k]));
                let rest = combine(Some(x.rest), Some(y.rest))?;
                Some(LinearForm { coefficients, rest })
            }
            Expr::Call(Op::Mul, DType::I64, operands) => {
                let [x, y] = operands[..] else { return None };
                let (form, factor) = match (self.is_invariant(b, x), self.is_invariant(b, y)) {
                    (true, false) => (self.linear(b, y)?, x),
                    (false, true) => (self.linear(b, x)?, y),
                    _ => return None,
                };
                let mut scale = |id: ExprId| b.call_in(Op::Mul, DType::I64, &[id, factor]);
                let coefficients = form.coefficients.map(|coefficient| coefficient.map(&mut scale));
                Some(LinearForm { coefficients, rest: scale(form.rest) })
            }
            _ => None,
        }
    }

    /// True if elements of different `outer` do not meet: one step along `outer` is as far as all
    /// iterations of `inner`, which starts at 0, or a multiple of that.
    fn is_injective(&self, kernel: &Kernel, form: &LinearForm, outer: usize, inner: usize) -> bool {
        let (Some(wide), Some(narrow)) = (form.coefficients[outer], form.coefficients[inner]) else { return false };
        let zero = |id: ExprId| *kernel.expr(id) == Expr::Const(Value::I64(0));
        let one = |id: &ExprId| *kernel.expr(*id) != Expr::Const(Value::I64(1));
        let (mut wide, mut narrow) = (factors(kernel, wide), factors(kernel, narrow));
        narrow.extend(factors(kernel, self.loops[inner].stop));
        zero(self.loops[inner].start)
            && narrow.into_iter().filter(one).all(|factor| {
                let at = wide.iter().position(|other| *other == factor);
                at.map(|at| wide.swap_remove(at)).is_some()
            })
    }

    /// The elements of an operand, from the first iteration of each loop on.
    fn view(&self, b: &mut Builder, buffer: BufferId, form: &LinearForm, order: [usize; 2]) -> Option<MatrixView> {
        let mut offset = form.rest;
        for (one, coefficient) in self.loops.iter().zip(form.coefficients) {
            if let Some(coefficient) = coefficient {
                let before = b.call_in(Op::Mul, DType::I64, &[one.start, coefficient]);
                offset = b.add(offset, before);
            }
        }
        let strides = [form.coefficients[order[0]]?, form.coefficients[order[1]]?];
        Some(MatrixView { buffer, offset, strides })
    }
}

/// Expressions with the values of declared variables in their place.
#[derive(Default)]
struct LetInliner {
    vars: FxHashMap<VarId, ExprId>,
    inlined: FxHashMap<ExprId, ExprId>,
}

impl LetInliner {
    fn inline(&mut self, b: &mut Builder, id: ExprId) -> ExprId {
        if let Some(known) = self.inlined.get(&id) {
            return *known;
        }
        let inlined = match b.kernel().expr(id).clone() {
            Expr::Var(var) => self.vars.get(&var).copied().unwrap_or(id),
            Expr::Load(buffer, index) => {
                let index = self.inline(b, index);
                b.load(buffer, index)
            }
            Expr::Call(op, dtype, operands) => {
                let operands: Vec<ExprId> = operands.iter().map(|operand| self.inline(b, *operand)).collect();
                b.call_in(op, dtype, &operands)
            }
            Expr::Const(_) | Expr::Vector(_) => id,
        };
        self.inlined.insert(id, inlined);
        inlined
    }
}

/// The factors of a product of floats.
fn flatten(kernel: &Kernel, dtype: DType, id: ExprId, factors: &mut Vec<ExprId>) {
    match kernel.expr(id) {
        Expr::Call(Op::Mul, operand, operands) if *operand == dtype && factors.len() < MAX_FACTORS => {
            operands.iter().for_each(|operand| flatten(kernel, dtype, *operand, factors));
        }
        _ => factors.push(id),
    }
}

/// The factors of a product of sizes.
fn factors(kernel: &Kernel, id: ExprId) -> Vec<ExprId> {
    let mut found = Vec::new();
    flatten(kernel, DType::I64, id, &mut found);
    found
}
