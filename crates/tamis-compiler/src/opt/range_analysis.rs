//! Range analysis: decides comparisons, `min`, `max` and selects from the ranges of integers.
//!
//! Facts come from loop bounds, conditions and assumptions, and are combined as difference bounds
//! ([`super::difference_bounds`]).

use super::difference_bounds::DifferenceBounds;
use super::effects::{Effects, WriteTimes, diverges};
use super::{Editor, Options, fold};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Assumption, Block, Expr, ExprId, Kernel, Stmt};

/// The maximum nesting of selects whose conditions refine the facts.
const NESTED: usize = 3;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (bounds, times) = (DifferenceBounds::new(&kernel), WriteTimes::new(&kernel));
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Ranges { editor, bounds, times, truths: Vec::new(), memo: FxHashMap::default(), nested: 0 };
    for fact in pass.editor.kernel().assumptions.clone() {
        if let Assumption::Holds(cond) = fact {
            pass.assume(cond, true);
        }
    }
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Ranges {
    editor: Editor,
    bounds: DifferenceBounds,
    times: WriteTimes,
    /// Conditions of known truth value, and the times since when they hold.
    truths: Vec<(ExprId, bool, u64)>,
    /// Memoised rewrites, valid until a fact is added or a value changes.
    memo: FxHashMap<ExprId, ExprId>,
    nested: usize,
}

impl Ranges {
    // Facts

    /// Assumes a condition to be true or false.
    fn assume(&mut self, cond: ExprId, holds: bool) {
        self.memo.clear();
        if self.editor.dtype(cond) != DType::Bool {
            return;
        }
        match self.editor.kernel().expr(cond).clone() {
            Expr::Const(_) => return,
            Expr::Call(Op::Not, _, operands) => return operands.into_iter().for_each(|e| self.assume(e, !holds)),
            Expr::Call(op @ (Op::And | Op::Or), _, operands) if (op == Op::And) == holds => {
                operands.into_iter().for_each(|e| self.assume(e, holds));
            }
            Expr::Call(op, DType::I64, operands)
                if operands.len() == 2 && operands.iter().all(|e| self.editor.dtype(*e) == DType::I64) =>
            {
                let (kernel, times) = (self.editor.kernel(), &self.times);
                let a = self.bounds.term(kernel, times, operands[0]);
                let b = self.bounds.term(kernel, times, operands[1]);
                match (op, holds) {
                    (Op::Lt, true) | (Op::Ge, false) => self.bounds.learn(a, b, -1),
                    (Op::Le, true) | (Op::Gt, false) => self.bounds.learn(a, b, 0),
                    (Op::Gt, true) | (Op::Le, false) => self.bounds.learn(b, a, -1),
                    (Op::Ge, true) | (Op::Lt, false) => self.bounds.learn(b, a, 0),
                    (Op::Eq, true) | (Op::Ne, false) => self.bounds.learn_equal(a, b),
                    _ => {}
                }
            }
            _ => {}
        }
        self.truths.push((cond, holds, self.times.now));
    }

    fn is_known(&self, cond: ExprId) -> Option<bool> {
        let found = self.truths.iter().rev().find(|(known, ..)| *known == cond)?;
        self.times.unchanged(self.editor.kernel(), cond, found.2).then_some(found.1)
    }

    /// Runs a closure under an assumed condition, then rolls the facts back.
    fn under<T>(&mut self, cond: ExprId, holds: bool, work: impl FnOnce(&mut Self) -> T) -> T {
        let (mark, truths) = (self.bounds.enter(), self.truths.len());
        self.assume(cond, holds);
        let result = work(self);
        self.bounds.leave(mark);
        self.truths.truncate(truths);
        self.memo.clear();
        result
    }

    fn at_most(&mut self, a: ExprId, b: ExprId, more: i64) -> bool {
        self.bounds.at_most(self.editor.kernel(), &self.times, a, b, more)
    }

    // Expressions

    fn expr(&mut self, id: ExprId) -> ExprId {
        if matches!(self.editor.kernel().expr(id), Expr::Const(_)) {
            return id;
        }
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let new = self.rewritten(id);
        self.memo.insert(id, new);
        new
    }

    fn rewritten(&mut self, id: ExprId) -> ExprId {
        if self.editor.dtype(id) == DType::Bool
            && let Some(holds) = self.is_known(id)
        {
            return self.editor.constant(Value::Bool(holds));
        }
        match self.editor.kernel().expr(id).clone() {
            Expr::Vector(_) | Expr::Const(_) | Expr::Var(_) => id,
            Expr::Load(buffer, index) => {
                let new = self.expr(index);
                if new == index { id } else { self.editor.load(buffer, new) }
            }
            Expr::Call(Op::Select, dtype, operands) => {
                let cond = self.expr(operands[0]);
                let (then, otherwise) = if self.nested < NESTED {
                    self.nested += 1;
                    let then = self.under(cond, true, |pass| pass.expr(operands[1]));
                    let otherwise = self.under(cond, false, |pass| pass.expr(operands[2]));
                    self.nested -= 1;
                    (then, otherwise)
                } else {
                    (self.expr(operands[1]), self.expr(operands[2]))
                };
                let new = [cond, then, otherwise];
                if new[..] == operands[..] { id } else { fold::call(&mut self.editor, Op::Select, dtype, &new) }
            }
            Expr::Call(Op::And, dtype, operands) if operands.len() == 2 && self.nested < NESTED => {
                let first = self.expr(operands[0]);
                self.nested += 1;
                let second = self.under(first, true, |pass| pass.expr(operands[1]));
                self.nested -= 1;
                let new = [first, second];
                if new[..] == operands[..] { id } else { fold::call(&mut self.editor, Op::And, dtype, &new) }
            }
            Expr::Call(op, dtype, operands) => {
                let new: Vec<ExprId> = operands.iter().map(|e| self.expr(*e)).collect();
                if op == Op::Or && self.names_the_least(&new) {
                    return self.editor.constant(Value::Bool(true));
                }
                if dtype == DType::I64
                    && let [a, b] = new[..]
                    && self.editor.dtype(a) == DType::I64
                    && self.editor.dtype(b) == DType::I64
                    && let Some(folded) = self.compare(op, a, b)
                {
                    return folded;
                }
                if new == operands { id } else { fold::call(&mut self.editor, op, dtype, &new) }
            }
        }
    }

    /// Decides a comparison, `min` or `max`, if the facts imply its result.
    fn compare(&mut self, op: Op, a: ExprId, b: ExprId) -> Option<ExprId> {
        let outcome = match op {
            Op::Min if self.at_most(a, b, 0) => return Some(a),
            Op::Min if self.at_most(b, a, 0) => return Some(b),
            Op::Max if self.at_most(a, b, 0) => return Some(b),
            Op::Max if self.at_most(b, a, 0) => return Some(a),
            Op::Lt if self.at_most(a, b, 1) => true,
            Op::Lt if self.at_most(b, a, 0) => false,
            Op::Le if self.at_most(a, b, 0) => true,
            Op::Le if self.at_most(b, a, 1) => false,
            Op::Gt if self.at_most(b, a, 1) => true,
            Op::Gt if self.at_most(a, b, 0) => false,
            Op::Ge if self.at_most(b, a, 0) => true,
            Op::Ge if self.at_most(a, b, 1) => false,
            Op::Eq | Op::Ne if self.at_most(a, b, 1) || self.at_most(b, a, 1) => op == Op::Ne,
            Op::Eq | Op::Ne if self.at_most(a, b, 0) && self.at_most(b, a, 0) => op == Op::Eq,
            _ => return None,
        };
        Some(self.editor.constant(Value::Bool(outcome)))
    }

    /// True if a disjunction is a tautology, because one of its operands attains the minimum:
    /// `c == i or d == i` where `i` is `min(c, d)`.
    fn names_the_least(&self, conditions: &[ExprId]) -> bool {
        let (kernel, times) = (self.editor.kernel(), &self.times);
        let mut open = conditions.to_vec();
        let mut equal: Vec<(ExprId, ExprId)> = Vec::new();
        while let Some(id) = open.pop() {
            match kernel.expr(self.bounds.meaning(kernel, times, id)) {
                Expr::Call(Op::Or, _, operands) => open.extend(operands),
                Expr::Call(Op::Eq, DType::I64, operands) => {
                    equal.extend([(operands[0], operands[1]), (operands[1], operands[0])]);
                }
                _ => {}
            }
            if equal.len() > 64 {
                return false;
            }
        }
        equal.iter().any(|(_, least)| {
            let mut open = vec![self.bounds.meaning(kernel, times, *least)];
            if !matches!(kernel.expr(open[0]), Expr::Call(Op::Min, DType::I64, _)) {
                return false;
            }
            // Every operand of the (nested) minimum occurs in one of the comparisons.
            while let Some(id) = open.pop() {
                if equal.contains(&(id, *least)) {
                    continue;
                }
                match kernel.expr(id) {
                    Expr::Call(Op::Min, DType::I64, operands)
                        if operands.iter().all(|e| kernel.exprs.dtype(*e) == DType::I64) =>
                    {
                        open.extend(operands);
                    }
                    _ => return false,
                }
            }
            true
        })
    }

    // Statements

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            if let Some(stmt) = self.stmt(stmt) {
                out.push(stmt);
            }
        }
        out
    }

    /// Visits a block under an assumed condition.
    fn inner(&mut self, block: Block, cond: Option<(ExprId, bool)>) -> Block {
        let (mark, truths) = (self.bounds.enter(), self.truths.len());
        if let Some((cond, holds)) = cond {
            self.assume(cond, holds);
        }
        let block = self.block(block);
        self.bounds.leave(mark);
        self.truths.truncate(truths);
        self.memo.clear();
        block
    }

    /// Records side effects at the current program point.
    fn pass(&mut self, stmt: &Stmt) {
        self.times.pass(stmt);
        self.memo.clear();
    }

    fn forget(&mut self, effects: &Effects) {
        self.times.forget(effects);
        self.memo.clear();
    }

    fn stmt(&mut self, mut stmt: Stmt) -> Option<Stmt> {
        if !matches!(stmt, Stmt::While { .. }) {
            stmt.map_exprs(|id| self.expr(id));
        }
        match &mut stmt {
            Stmt::Let { var, value } | Stmt::Assign { var, value } => {
                let (var, value) = (*var, *value);
                if self.editor.dtype(value) != DType::I64 {
                    self.pass(&stmt);
                    if !self.editor.kernel().var(var).mutable {
                        self.bounds.declare(var, value, &self.times);
                    }
                    return Some(stmt);
                }
                let held = self.bounds.term(self.editor.kernel(), &self.times, value);
                self.pass(&stmt);
                let name = self.editor.get(var);
                let own = self.bounds.term(self.editor.kernel(), &self.times, name);
                self.bounds.learn_equal(own, held);
                if !self.editor.kernel().var(var).mutable {
                    self.bounds.declare(var, value, &self.times);
                }
            }
            Stmt::For { var, start, stop, body, .. } => {
                let (var, start, stop) = (*var, *start, *stop);
                if self.at_most(stop, start, 0) {
                    return None;
                }
                let effects = Effects::of(body);
                let body = std::mem::take(body);
                let low = self.bounds.term(self.editor.kernel(), &self.times, start);
                let high = self.bounds.term(self.editor.kernel(), &self.times, stop);
                self.pass(&stmt);
                self.forget(&effects);
                let (mark, truths) = (self.bounds.enter(), self.truths.len());
                self.bounds.learn(low, high, -1);
                if !self.editor.kernel().var(var).mutable {
                    let name = self.editor.get(var);
                    let own = self.bounds.term(self.editor.kernel(), &self.times, name);
                    self.bounds.learn(low, own, 0);
                    self.bounds.learn(own, high, -1);
                }
                let new = self.inner(body, None);
                self.bounds.leave(mark);
                self.truths.truncate(truths);
                self.forget(&effects);
                if let Stmt::For { body, .. } = &mut stmt {
                    *body = new;
                }
            }
            Stmt::While { cond, body } => {
                let effects = Effects::of(body);
                self.forget(&effects);
                let before = *cond;
                *cond = self.expr(before);
                let (test, body_before) = (*cond, std::mem::take(body));
                *body = self.inner(body_before, Some((test, true)));
                self.forget(&effects);
                self.assume(test, false);
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = *cond;
                let effects = Effects::of(then);
                let then_before = std::mem::take(then);
                *then = self.inner(then_before, Some((cond, true)));
                // A value that one branch changes is unchanged in the other; dropping that fact is
                // conservative.
                self.forget(&effects);
                let otherwise_before = std::mem::take(otherwise);
                *otherwise = self.inner(otherwise_before, Some((cond, false)));
                let (leaves, other_leaves) = (diverges(then), diverges(otherwise));
                let touched = |pass: &Self, block: &Block| Effects::of(block).touch(pass.editor.kernel(), cond);
                if leaves && !touched(self, otherwise) {
                    self.assume(cond, false);
                } else if other_leaves && !touched(self, then) {
                    self.assume(cond, true);
                }
            }
            Stmt::Labelled { body, .. } => {
                let before = std::mem::take(body);
                *body = self.inner(before, None);
            }
            Stmt::Search { var, buffer, start, stop, key, back: _ } => {
                let (var, buffer, start, stop, key) = (*var, *buffer, *start, *stop, *key);
                let ordered = self.at_most(start, stop, 0);
                let zero = self.editor.int(0);
                let below = self.editor.kernel().assumptions.iter().find_map(|fact| match fact {
                    Assumption::Below { buffer: other, bound } if *other == buffer => Some(*bound),
                    _ => None,
                });
                let found = if self.at_most(key, zero, 0) || self.at_most(stop, start, 0) {
                    Some(start)
                } else if ordered && below.is_some_and(|bound| self.at_most(bound, key, 0)) {
                    Some(stop)
                } else {
                    None
                };
                if let Some(value) = found {
                    return self.stmt(Stmt::Let { var, value });
                }
                let low = self.bounds.term(self.editor.kernel(), &self.times, start);
                let high = self.bounds.term(self.editor.kernel(), &self.times, stop);
                self.pass(&stmt);
                let name = self.editor.get(var);
                let own = self.bounds.term(self.editor.kernel(), &self.times, name);
                self.bounds.learn(low, own, 0);
                if ordered {
                    self.bounds.learn(own, high, 0);
                }
            }
            Stmt::Require { cond, .. } => {
                let cond = *cond;
                self.assume(cond, true);
            }
            _ => self.pass(&stmt),
        }
        Some(stmt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    #[test]
    fn bounds_of_loops() {
        let mut make = Make::new();
        let (zero, one, n, m) = (make.int(0), make.int(1), make.n, make.m);
        make.count("i", zero, n, |make, i| {
            let low = make.call(Op::Max, &[i, zero]);
            let phase = make.call(Op::Min, &[low, m]);
            let phase = make.b.name("phase", phase);
            let next = make.b.add(i, one);
            let low = make.call(Op::Max, &[next, phase]);
            let stop = make.call(Op::Min, &[low, n]);
            let value = make.load(make.x, stop);
            make.b.store(make.y, phase, value);
        });
        let expected = ["for i in 0..n", "    let phase: i64 = min(i, m)", "    y[phase] = x[i + 1]"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn conditions_inside_their_blocks() {
        let mut make = Make::new();
        let (n, m, nothing) = (make.n, make.m, make.float(0.0));
        let less = make.call(Op::Lt, &[n, m]);
        make.when(less, |make| {
            let greater = make.call(Op::Ge, &[n, m]);
            let x = make.load(make.x, n);
            let choice = make.call(Op::Select, &[greater, nothing, x]);
            make.b.store(make.y, n, choice);
        });
        let again = make.call(Op::Ge, &[n, m]);
        let x = make.load(make.x, n);
        let choice = make.call(Op::Select, &[again, nothing, x]);
        make.b.store(make.y, n, choice);
        let expected = ["if n < m", "    y[n] = x[n]", "y[n] = select(n >= m, 0.0, x[n])"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn cursors_that_move_are_compared_again() {
        let mut make = Make::new();
        let q = make.b.variable("q", Value::I64(0));
        let (at, n, one, nothing) = (make.b.get(q), make.n, make.int(1), make.float(0.0));
        let (x, y) = (make.x, make.y);
        let cond = make.call(Op::Lt, &[at, n]);
        let body = make.b.block(|b| {
            let value = b.load(x, at);
            let choice = b.call(Op::Select, &[cond, value, nothing]);
            b.store(y, at, choice);
            let next = b.add(at, one);
            b.assign(q, next);
            b.store(y, at, choice);
        });
        make.b.emit(Stmt::While { cond, body });
        let lines = after(&[run], make);
        assert_eq!(lines[2], "    y[q] = x[q]");
        assert_eq!(lines[4], "    y[q] = select(q < n, x[q], 0.0)");
    }

    #[test]
    fn sums_may_wrap_around() {
        let mut make = Make::new();
        let (n, one) = (make.n, make.int(1));
        let next = make.b.add(n, one);
        let less = make.call(Op::Lt, &[n, next]);
        make.when(less, |make| {
            let zero = make.float(0.0);
            make.b.store(make.y, n, zero);
        });
        assert_eq!(after(&[run], make), ["if n < (n + 1)", "    y[n] = 0.0"]);
    }

    #[test]
    fn searches_past_all_coordinates() {
        let mut make = Make::new();
        let (zero, one, n) = (make.int(0), make.int(1), make.n);
        make.b.assume(Assumption::Below { buffer: make.crd, bound: n });
        make.b.assume(Assumption::Nondecreasing(make.pos));
        let (start, stop) = (make.load(make.pos, zero), make.load(make.pos, one));
        let from = make.b.search("from", make.crd, start, stop, zero);
        let to = make.b.search("to", make.crd, from, stop, n);
        make.count("q", from, to, |make, q| {
            let x = make.load(make.x, q);
            make.b.store(make.y, q, x);
        });
        let lines = after(&[run], make);
        assert_eq!(lines[..2], ["let from: i64 = A_pos[0]", "let to: i64 = A_pos[1]"]);
    }

    #[test]
    fn one_of_several_is_the_least() {
        let mut make = Make::new();
        let (n, m) = (make.n, make.m);
        let least = make.call(Op::Min, &[n, m]);
        let least = make.b.name("least", least);
        let (a, b) = (make.call(Op::Eq, &[n, least]), make.call(Op::Eq, &[m, least]));
        let (a, b) = (make.b.name("a", a), make.b.name("b", b));
        let either = make.call(Op::Or, &[a, b]);
        let value = make.call(Op::Cast(DType::F64), &[either]);
        make.b.store(make.y, n, value);
        assert_eq!(after(&[run], make).last().map(String::as_str), Some("y[n] = 1.0"));
    }
}
