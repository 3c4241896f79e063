//! Constant propagation and copy propagation through straight-line code, branches and loops, with
//! folding of the branches it decides.
//!
//! A fact says that a variable or an element equals a constant or another variable, since a program
//! point. It holds while its operands are not assigned. At a join, the facts of both sides hold; a
//! loop forgets what its body assigns. Decided conditions, empty loops and blocks without a `break`
//! are simplified away.

use super::effects::{Effects, WriteTimes, diverges};
use super::{Editor, Options, fold};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Assumption, Block, BufferId, Expr, ExprId, Kernel, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// The maximum number of element facts kept per buffer.
const ELEMENTS: usize = 4;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (vars, buffers, times) = (kernel.vars.len(), kernel.buffers.len(), WriteTimes::new(&kernel));
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = ConstProp {
        editor,
        times,
        known: vec![None; vars],
        elements: vec![Vec::new(); buffers],
        learned: Vec::new(),
        memo: FxHashMap::default(),
    };
    pass.assumptions();
    let body = pass.block(body);
    pass.editor.finish(body)
}

/// The value of a variable, as far as it is known.
#[derive(Clone, Copy)]
struct VarFact {
    value: ExprId,
    at: u64,
}

/// The value of a buffer element, as far as it is known.
#[derive(Clone, Copy)]
struct ElementFact {
    index: ExprId,
    value: ExprId,
    at: u64,
}

/// The previous fact about a variable and the time of its assignment, for rollback.
type SavedVarFact = (VarId, Option<VarFact>, u64);

/// The previous facts about a buffer and the time of its last write, for rollback.
type SavedElementFacts = (BufferId, u64, Vec<ElementFact>);

struct ConstProp {
    editor: Editor,
    times: WriteTimes,
    known: Vec<Option<VarFact>>,
    elements: Vec<Vec<ElementFact>>,
    /// Undo log: facts that hold again when the block ends whose condition replaced them.
    learned: Vec<(VarId, Option<VarFact>)>,
    /// Memoised rewrites, valid until a fact changes.
    memo: FxHashMap<ExprId, ExprId>,
}

impl ConstProp {
    // Facts

    /// Merges parameters that the assumptions state to be equal.
    fn assumptions(&mut self) {
        for fact in self.editor.kernel().assumptions.clone() {
            if let Assumption::Holds(cond) = fact
                && let Expr::Call(Op::Eq, DType::I64, operands) = self.editor.kernel().expr(cond).clone()
            {
                let (a, b) = (self.expr(operands[0]), self.expr(operands[1]));
                if let (Expr::Var(first), Expr::Var(second)) =
                    (self.editor.kernel().expr(a), self.editor.kernel().expr(b))
                    && first != second
                {
                    let (var, value) = if first < second { (*second, a) } else { (*first, b) };
                    let at = self.tick();
                    self.known[var.index()] = Some(VarFact { value, at });
                }
            }
        }
        // Other assumptions are rewritten to the representative; equalities still name both.
        let mut facts = self.editor.kernel().assumptions.clone();
        for fact in &mut facts {
            let equality = fact.expr().is_some_and(|e| matches!(self.editor.kernel().expr(e), Expr::Call(Op::Eq, ..)));
            if !equality {
                *fact = fact.map_expr(|expr| self.expr(expr));
            }
        }
        self.editor.set_assumptions(facts);
    }

    fn tick(&mut self) -> u64 {
        self.memo.clear();
        self.times.tick()
    }

    fn unchanged(&self, id: ExprId, since: u64) -> bool {
        self.times.unchanged(self.editor.kernel(), id, since)
    }

    /// The current fact about a variable.
    fn value_of(&self, var: VarId) -> Option<ExprId> {
        let mut found = None;
        let mut var = var;
        // Copies are followed transitively; each step reaches a different variable.
        for _ in 0..self.known.len() {
            let Some(known) = self.known[var.index()].filter(|known| self.unchanged(known.value, known.at)) else {
                break;
            };
            found = Some(known.value);
            match self.editor.kernel().expr(known.value) {
                Expr::Var(other) => var = *other,
                _ => break,
            }
        }
        found
    }

    /// Records an assignment to a variable.
    fn set(&mut self, var: VarId, value: Option<ExprId>) {
        let at = self.tick();
        self.times.assigned[var.index()] = at;
        let fact = value.filter(|value| match self.editor.kernel().expr(*value) {
            Expr::Const(_) => true,
            Expr::Var(other) => *other != var,
            _ => false,
        });
        self.known[var.index()] = fact.map(|value| VarFact { value, at });
    }

    fn element(&self, buffer: BufferId, index: ExprId) -> Option<ExprId> {
        let facts = &self.elements[buffer.index()];
        let found = facts.iter().find(|fact| fact.index == index && self.unchanged(index, fact.at))?;
        self.unchanged(found.value, found.at).then_some(found.value)
    }

    fn set_element(&mut self, buffer: BufferId, index: ExprId, value: ExprId) {
        let at = self.tick();
        self.times.written[buffer.index()] = at;
        let constant = |p: &ConstProp, id| p.editor.as_constant(id);
        // Elements at other constant indices survive; any other index may alias this one.
        let here = constant(self, index);
        let mut facts = std::mem::take(&mut self.elements[buffer.index()]);
        facts.retain(|fact| here.is_some() && constant(self, fact.index).is_some_and(|k| Some(k) != here));
        let simple = matches!(self.editor.kernel().expr(value), Expr::Const(_) | Expr::Var(_));
        // An index that reads the buffer itself may denote a different element now.
        if simple && facts.len() < ELEMENTS && self.unchanged(index, at - 1) {
            facts.push(ElementFact { index, value, at });
        }
        self.elements[buffer.index()] = facts;
    }

    fn forget(&mut self, effects: &Effects) {
        self.memo.clear();
        self.times.forget(effects);
        effects.assigned.iter().for_each(|var| self.known[var.index()] = None);
        effects.written.iter().for_each(|buffer| self.elements[buffer.index()].clear());
    }

    /// Assumes a condition to be true or false until the block ends.
    fn assume(&mut self, cond: ExprId, holds: bool) {
        if self.editor.dtype(cond) != DType::Bool {
            return;
        }
        match self.editor.kernel().expr(cond).clone() {
            Expr::Var(var) => {
                let value = self.editor.constant(Value::Bool(holds));
                self.learn(var, value);
            }
            Expr::Call(Op::Not, _, operands) => operands.into_iter().for_each(|e| self.assume(e, !holds)),
            Expr::Call(op @ (Op::And | Op::Or), _, operands) if (op == Op::And) == holds => {
                operands.into_iter().for_each(|e| self.assume(e, holds));
            }
            Expr::Call(op @ (Op::Eq | Op::Ne), _, operands) if (op == Op::Eq) == holds => {
                self.assume_equal(operands[0], operands[1]);
            }
            _ => {}
        }
    }

    /// Records an integer equality. Equal floats may be zeros of opposite sign, so they are
    /// skipped.
    fn assume_equal(&mut self, a: ExprId, b: ExprId) {
        let dtype = self.editor.dtype(a);
        if dtype != self.editor.dtype(b) || dtype.kind() > Kind::Int {
            return;
        }
        for (var, value) in [(a, b), (b, a)] {
            if let Expr::Var(var) = *self.editor.kernel().expr(var)
                && self.editor.as_constant(value).is_some()
            {
                self.learn(var, value);
            }
        }
    }

    fn learn(&mut self, var: VarId, value: ExprId) {
        self.learned.push((var, self.known[var.index()]));
        let at = self.tick();
        self.known[var.index()] = Some(VarFact { value, at });
    }

    /// Rolls the facts back to a mark. The caller invalidates variables assigned since then.
    fn unlearn(&mut self, since: usize) {
        self.tick();
        for (var, known) in self.learned.drain(since..).rev() {
            self.known[var.index()] = known;
        }
    }

    // Expressions

    fn expr(&mut self, id: ExprId) -> ExprId {
        match self.editor.kernel().expr(id) {
            Expr::Const(_) => return id,
            Expr::Var(var) => return self.value_of(*var).unwrap_or(id),
            _ => {}
        }
        if let Some(done) = self.memo.get(&id) {
            return *done;
        }
        let new = match self.editor.kernel().expr(id).clone() {
            Expr::Load(buffer, index) => {
                let index = self.expr(index);
                match self.element(buffer, index) {
                    Some(value) => value,
                    None => self.editor.load(buffer, index),
                }
            }
            Expr::Call(op, dtype, operands) => {
                let operands: Vec<ExprId> = operands.iter().map(|e| self.expr(*e)).collect();
                fold::call(&mut self.editor, op, dtype, &operands)
            }
            Expr::Vector(vector) => {
                let vector = vector.map(|operand| self.expr(operand));
                self.editor.vector(vector)
            }
            Expr::Const(_) | Expr::Var(_) => id,
        };
        self.memo.insert(id, new);
        new
    }

    // Statements

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        self.stmts(block, &mut out);
        out
    }

    fn stmts(&mut self, block: Block, out: &mut Block) {
        for stmt in block {
            self.stmt(stmt, out);
            if diverges(out) {
                // The remaining statements are unreachable.
                return;
            }
        }
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        if !matches!(stmt, Stmt::While { .. }) {
            stmt.map_exprs(|id| self.expr(id));
        }
        match stmt {
            Stmt::Let { var, value } => {
                self.set(var, Some(value));
                out.push(stmt);
            }
            Stmt::Assign { var, value } => {
                let itself = matches!(self.editor.kernel().expr(value), Expr::Var(other) if *other == var);
                if !itself && self.value_of(var) != Some(value) {
                    self.set(var, Some(value));
                    out.push(stmt);
                }
            }
            Stmt::Store { buffer, index, value } => {
                let itself = *self.editor.kernel().expr(value) == Expr::Load(buffer, index);
                if !itself && self.element(buffer, index) != Some(value) {
                    self.set_element(buffer, index, value);
                    out.push(stmt);
                }
            }
            Stmt::For { var, start, stop, body, hint } => match self.trip_count(start, stop) {
                Some(0) => {}
                // An instrumented loop stays a loop, since its iterations are counted.
                Some(1) if self.editor.kernel().var(var).origin.is_none_or(|origin| !origin.visits) => {
                    self.set(var, Some(start));
                    out.push(Stmt::Let { var, value: start });
                    self.stmts(body, out);
                }
                _ => {
                    let effects = Effects::of(&body);
                    self.forget(&effects);
                    self.set(var, None);
                    let learned = self.learned.len();
                    let body = self.block(body);
                    self.unlearn(learned);
                    self.forget(&effects);
                    if !body.is_empty() {
                        out.push(Stmt::For { var, start, stop, body, hint });
                    }
                }
            },
            Stmt::While { cond, body } => self.repeat(cond, body, out),
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise, out),
            Stmt::Labelled { label, mut body } => {
                if body.last() == Some(&Stmt::Break(label)) {
                    body.pop();
                }
                let effects = Effects::of(&body);
                if !effects.left.contains(&label) {
                    // Names are unique, so the body can be spliced in.
                    return self.stmts(body, out);
                }
                let learned = self.learned.len();
                let body = self.block(body);
                self.unlearn(learned);
                self.forget(&effects);
                if Effects::of(&body).left.contains(&label) {
                    out.push(Stmt::Labelled { label, body });
                } else {
                    out.extend(body);
                }
            }
            Stmt::Grow { len, .. } => {
                if self.editor.as_constant(len).and_then(Value::as_i64).is_none_or(|len| len > 0) {
                    out.push(stmt);
                }
            }
            Stmt::Fill { buffer, len, .. } => {
                if self.editor.as_constant(len).and_then(Value::as_i64).is_none_or(|len| len > 0) {
                    self.forget(&Effects { written: vec![buffer], ..Effects::default() });
                    out.push(stmt);
                }
            }
            Stmt::Search { var, start, stop, .. } if self.trip_count(start, stop) == Some(0) => {
                self.set(var, Some(start));
                out.push(Stmt::Let { var, value: start });
            }
            Stmt::Search { var, .. } => {
                self.set(var, None);
                out.push(stmt);
            }
            Stmt::Sort { buffer, start, stop, .. } => {
                // A single coordinate is always sorted; the range is still checked, unless it is
                // empty.
                if start != stop {
                    self.forget(&Effects { written: vec![buffer], ..Effects::default() });
                    out.push(stmt);
                }
            }
            Stmt::Reset { .. } | Stmt::Insert { .. } | Stmt::Finalize { .. } => {
                self.forget(&Effects { written: stmt.writes().collect(), ..Effects::default() });
                if let Some(var) = stmt.declares() {
                    self.set(var, None);
                }
                out.push(stmt);
            }
            Stmt::Require { cond, .. } => {
                if fold::truth(&self.editor, cond) != Some(true) {
                    self.assume(cond, true);
                    out.push(stmt);
                }
            }
            Stmt::Gemm(_) => {
                self.forget(&Effects { written: stmt.writes().collect(), ..Effects::default() });
                out.push(stmt);
            }
            Stmt::MaskedStore { buffer, .. } | Stmt::Update { buffer, .. } => {
                self.forget(&Effects { written: vec![buffer], ..Effects::default() });
                out.push(stmt);
            }
            // Other threads may have written any buffer.
            Stmt::Barrier => {
                let written = (0..self.editor.kernel().buffers.len() as u32).map(BufferId).collect();
                self.forget(&Effects { written, ..Effects::default() });
                out.push(stmt);
            }
            Stmt::Break(_) | Stmt::Prefetch { .. } => out.push(stmt),
        }
    }

    /// The trip count of a loop, if it is known to be 0 or 1.
    fn trip_count(&self, start: ExprId, stop: ExprId) -> Option<u32> {
        let int = |id| self.editor.as_constant(id).and_then(Value::as_i64);
        if start == stop {
            return Some(0);
        }
        match (int(start), int(stop), self.editor.kernel().expr(stop)) {
            (Some(a), Some(b), _) if a >= b => Some(0),
            (Some(a), Some(b), _) if a.checked_add(1) == Some(b) => Some(1),
            // Position arithmetic does not overflow.
            (None, _, Expr::Call(Op::Add, DType::I64, operands))
                if operands[0] == start && int(operands[1]) == Some(1) =>
            {
                Some(1)
            }
            _ => None,
        }
    }

    fn repeat(&mut self, cond: ExprId, body: Block, out: &mut Block) {
        let first = self.expr(cond);
        if fold::truth(&self.editor, first) == Some(false) {
            return;
        }
        let effects = Effects::of(&body);
        self.forget(&effects);
        let cond = self.expr(cond);
        let learned = self.learned.len();
        self.assume(cond, true);
        let body = self.block(body);
        self.unlearn(learned);
        self.forget(&effects);
        // The loop ends when its condition is false.
        self.assume(cond, false);
        out.push(Stmt::While { cond, body });
    }

    fn branch(&mut self, cond: ExprId, then: Block, otherwise: Block, out: &mut Block) {
        if let Some(holds) = fold::truth(&self.editor, cond) {
            // Names are unique, so the body can be spliced in.
            return self.stmts(if holds { then } else { otherwise }, out);
        }
        let effects = [Effects::of(&then), Effects::of(&otherwise)];
        let mut assigned: Vec<VarId> = effects.iter().flat_map(|e| e.assigned.iter().copied()).collect();
        assigned.sort_unstable();
        assigned.dedup();
        let buffers: Vec<BufferId> = effects.iter().flat_map(|e| e.written.iter().copied()).collect();
        let vars_before: Vec<SavedVarFact> =
            assigned.iter().map(|v| (*v, self.known[v.index()], self.times.assigned[v.index()])).collect();
        let elements_before: Vec<SavedElementFacts> =
            buffers.iter().map(|b| (*b, self.times.written[b.index()], self.elements[b.index()].clone())).collect();

        let learned = self.learned.len();
        self.assume(cond, true);
        let then = self.block(then);
        let after_then = self.values_of(&assigned, &effects[0]);
        self.unlearn(learned);
        for (var, known, changed) in vars_before {
            self.known[var.index()] = known;
            self.times.assigned[var.index()] = changed;
        }
        for (buffer, written, elements) in elements_before {
            self.times.written[buffer.index()] = written;
            self.elements[buffer.index()] = elements;
        }

        self.assume(cond, false);
        let otherwise = self.block(otherwise);
        let after_otherwise = self.values_of(&assigned, &effects[1]);
        // If one branch exits, the facts of the other one hold afterwards.
        if !diverges(&then) {
            self.unlearn(learned);
        }

        let at = self.tick();
        for (k, var) in assigned.iter().enumerate() {
            let value = match (diverges(&then), diverges(&otherwise)) {
                (true, _) => after_otherwise[k],
                (_, true) => after_then[k],
                _ => after_then[k].filter(|value| after_otherwise[k] == Some(*value)),
            };
            self.times.assigned[var.index()] = at;
            self.known[var.index()] = value.map(|value| VarFact { value, at });
        }
        for buffer in buffers {
            self.times.written[buffer.index()] = at;
            self.elements[buffer.index()].clear();
        }
        if diverges(&otherwise) && !diverges(&then) && !effects[0].touch(self.editor.kernel(), cond) {
            self.assume(cond, true);
        }
        match (then.is_empty(), otherwise.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let cond = fold::not(&mut self.editor, cond);
                out.push(Stmt::If { cond, then: otherwise, otherwise: then });
            }
            _ => out.push(Stmt::If { cond, then, otherwise }),
        }
    }

    /// The facts at the end of a branch, expressed in variables that are visible after it.
    fn values_of(&self, vars: &[VarId], branch: &Effects) -> Vec<Option<ExprId>> {
        let visible = |value: &ExprId| match self.editor.kernel().expr(*value) {
            Expr::Var(var) => !branch.declared.contains(var),
            _ => true,
        };
        vars.iter().map(|var| self.value_of(*var).filter(visible)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::super::{Options, testing};
    use super::*;

    /// `if x[0] < 1`, an unknown condition.
    fn unknown(make: &mut Make) -> ExprId {
        let (zero, one) = (make.int(0), make.float(1.0));
        let x = make.load(make.x, zero);
        make.call(Op::Lt, &[x, one])
    }

    #[test]
    fn flags_and_first_values() {
        let mut make = Make::new();
        let dirty = make.b.variable("dirty", Value::Bool(false));
        let value = make.b.variable("value", Value::F64(0.0));
        let zero = make.int(0);
        let (so_far, x) = (make.b.get(value), make.load(make.x, zero));
        let sum = make.call(Op::Add, &[so_far, x]);
        make.b.assign(value, sum);
        let yes = make.bool(true);
        make.b.assign(dirty, yes);
        let flag = make.b.get(dirty);
        make.when(flag, |make| {
            let value = make.b.get(value);
            make.b.store(make.y, zero, value);
        });
        let expected =
            ["var dirty: bool = False", "var value: f64 = 0.0", "value = x[0]", "dirty = True", "y[0] = value"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn branches_meet() {
        let mut make = Make::new();
        let (a, b) = (make.b.variable("a", Value::F64(0.0)), make.b.variable("b", Value::F64(0.0)));
        let cond = unknown(&mut make);
        let (one, two, zero) = (make.float(1.0), make.float(2.0), make.int(0));
        let then = make.b.block(|block| {
            block.assign(a, one);
            block.assign(b, one);
        });
        let otherwise = make.b.block(|block| {
            block.assign(a, one);
            block.assign(b, two);
        });
        make.b.emit(Stmt::If { cond, then, otherwise });
        let (a, b) = (make.b.get(a), make.b.get(b));
        make.b.store(make.y, zero, a);
        make.b.store(make.y, zero, b);
        let lines = after(&[run], make);
        assert_eq!(lines[lines.len() - 2..], ["y[0] = 1.0", "y[0] = b"]);
    }

    #[test]
    fn what_a_block_learns_before_it_is_left_stays_inside() {
        let mut make = Make::new();
        let cond = unknown(&mut make);
        let flag = make.b.name("flag", cond);
        let (zero, one) = (make.int(0), make.int(1));
        let y = make.y;
        make.b.labelled(|b, label| {
            b.branch(flag, |b| b.emit(Stmt::Break(label)), |_| {});
            let value = b.call_in(Op::Cast(DType::F64), DType::Bool, &[flag]);
            b.store(y, zero, value);
        });
        let value = make.b.call_in(Op::Cast(DType::F64), DType::Bool, &[flag]);
        make.b.store(y, one, value);
        let lines = after(&[run], make);
        assert_eq!(lines[1..], ["block l0", "    if flag", "        break l0", "    y[0] = 0.0", "y[1] = f64(flag)"]);
    }

    #[test]
    fn loops_forget_what_they_assign() {
        let mut make = Make::new();
        let (q, copy) = (make.b.variable("q", Value::I64(0)), make.b.variable("k", Value::I64(5)));
        let zero = make.int(0);
        let n = make.n;
        make.count("i", zero, n, |make, _| {
            let (at, k, one) = (make.b.get(q), make.b.get(copy), make.int(1));
            let x = make.load(make.x, k);
            make.b.store(make.y, at, x);
            let next = make.b.add(at, one);
            make.b.assign(q, next);
        });
        let expected = ["var q: i64 = 0", "var k: i64 = 5", "for i in 0..n", "    y[q] = x[5]", "    q = q + 1"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn loops_that_run_once_or_never() {
        let mut make = Make::new();
        let (zero, one) = (make.int(0), make.int(1));
        let n = make.n;
        let next = make.b.add(n, one);
        make.count("i", n, next, |make, i| {
            let x = make.load(make.x, i);
            make.b.store(make.y, i, x);
        });
        make.count("i", one, zero, |make, i| {
            let x = make.load(make.x, i);
            make.b.store(make.y, i, x);
        });
        assert_eq!(after(&[run], make), ["let i: i64 = n", "y[n] = x[n]"]);
    }

    #[test]
    fn elements_that_were_written() {
        let mut make = Make::new();
        let (zero, one, value) = (make.int(0), make.int(1), make.float(3.0));
        let n = make.n;
        make.b.store(make.y, zero, value);
        make.add_to(make.y, one, value);
        make.add_to(make.y, zero, value);
        make.add_to(make.y, n, value);
        make.add_to(make.y, zero, value);
        let expected = ["y[0] = 3.0", "y[1] = y[1] + 3.0", "y[0] = 6.0", "y[n] = y[n] + 3.0", "y[0] = y[0] + 3.0"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn strict_sums_keep_zeros() {
        let mut make = Make::new();
        let (zero, nothing) = (make.int(0), make.float(0.0));
        let x = make.load(make.x, zero);
        let sum = make.call(Op::Add, &[nothing, x]);
        make.b.store(make.y, zero, sum);
        let kernel = make.b.finish();
        assert_eq!(
            testing::lines(&run(kernel.clone(), &Options { strict: true, ..Options::default() })),
            ["y[0] = 0.0 + x[0]"]
        );
        assert_eq!(testing::lines(&run(kernel, &Options::default())), ["y[0] = x[0]"]);
    }

    #[test]
    fn sizes_that_are_assumed_equal_become_one() {
        let mut make = Make::new();
        let (n, m, zero) = (make.n, make.m, make.int(0));
        let equal = make.call(Op::Eq, &[m, n]);
        make.b.assume(Assumption::Holds(equal));
        make.count("i", zero, m, |make, i| {
            let x = make.load(make.x, i);
            make.b.store(make.y, i, x);
        });
        assert_eq!(after(&[run], make), ["for i in 0..n", "    y[i] = x[i]"]);
    }
}
