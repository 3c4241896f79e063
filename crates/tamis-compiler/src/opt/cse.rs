//! Common subexpression elimination, loads included: an expression that is computed twice is
//! computed once and named.
//!
//! The first computation must dominate the second, and nothing between them may change an operand.
//! The pass walks the kernel twice: once to count how often each value recurs, once to name those
//! that do. A value that has a name already is used by that name. Index arithmetic and comparisons
//! are too cheap for a name.

use super::effects::{Effects, WriteTimes};
use super::{Editor, Options, cost, fold, licm};
use rustc_hash::FxHashMap;
use tamis_ir::kernel::rewrite::evaluated_first;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let times = WriteTimes::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let state = AvailableValues { times: times.clone(), available: FxHashMap::default(), trail: Vec::new(), next: 0 };
    let mut counting = CommonSubexpressions {
        editor,
        state,
        counts: Vec::new(),
        again: false,
        named: None,
        pending: Vec::new(),
        seen: FxHashMap::default(),
    };
    let same = counting.block(body);
    if !counting.again {
        return counting.editor.finish(same);
    }
    let state = AvailableValues { times, available: FxHashMap::default(), trail: Vec::new(), next: 0 };
    let mut naming = CommonSubexpressions { named: Some(vec![None; counting.counts.len()]), state, ..counting };
    let body = naming.block(same);
    naming.editor.finish(body)
}

/// An available value.
#[derive(Clone, Copy)]
struct AvailableValue {
    /// Its value number, or the variable that holds it.
    what: What,
    at: u64,
}

#[derive(Clone, Copy)]
enum What {
    Number(usize),
    Variable(VarId),
}

struct AvailableValues {
    times: WriteTimes,
    available: FxHashMap<ExprId, AvailableValue>,
    /// Undo log of the available values, for rollback at the end of a block.
    trail: Vec<(ExprId, Option<AvailableValue>)>,
    next: usize,
}

struct CommonSubexpressions {
    editor: Editor,
    state: AvailableValues,
    /// The number of recurrences of each value.
    counts: Vec<u32>,
    /// True if any value recurs.
    again: bool,
    /// On the second walk: the names given to recurring values.
    named: Option<Vec<Option<VarId>>>,
    /// Declarations to insert before the current statement.
    pending: Block,
    /// Visited expressions of this statement without a value number, so that shared operands are
    /// visited once.
    seen: FxHashMap<(ExprId, bool), ExprId>,
}

impl CommonSubexpressions {
    fn block(&mut self, block: Block) -> Block {
        let mark = self.state.trail.len();
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            let stmt = self.stmt(stmt);
            out.append(&mut self.pending);
            out.push(stmt);
        }
        while self.state.trail.len() > mark {
            if let Some((id, before)) = self.state.trail.pop() {
                match before {
                    Some(entry) => self.state.available.insert(id, entry),
                    None => self.state.available.remove(&id),
                };
            }
        }
        out
    }

    fn stmt(&mut self, mut stmt: Stmt) -> Stmt {
        self.seen.clear();
        let effects = match &stmt {
            Stmt::For { body, .. } | Stmt::While { body, .. } => Some(Effects::of(body)),
            _ => None,
        };
        let original = match &stmt {
            Stmt::Let { value, .. } => Some(*value),
            _ => None,
        };
        // A loop condition is evaluated in every iteration: nothing that the body changes can be
        // named before the loop.
        let repeated = matches!(stmt, Stmt::While { .. });
        if repeated && let Some(effects) = &effects {
            self.state.times.forget(effects);
        }
        if let (Stmt::Let { var, value }, Some(before)) = (&mut stmt, original)
            && !self.editor.kernel().var(*var).mutable
            && !self.is_available(before)
        {
            // The declaration names the value.
            *value = self.operands(before, true, true);
        } else {
            stmt.map_exprs(|id| self.expr(id, !repeated, true));
        }
        if let (false, Some(effects)) = (repeated, &effects) {
            self.state.times.forget(effects);
        }
        let declarations = std::mem::take(&mut self.pending);
        self.state.times.pass(&stmt);
        if let (Stmt::Let { var, .. }, Some(value)) = (&stmt, original)
            && !self.editor.kernel().var(*var).mutable
            && cost::deserves_a_name(self.editor.kernel(), value)
            && !self.is_available(value)
        {
            self.add(value, What::Variable(*var));
        }
        for inner in stmt.blocks_mut() {
            *inner = self.block(std::mem::take(inner));
        }
        if let Some(effects) = &effects {
            self.state.times.forget(effects);
        }
        self.pending = declarations;
        stmt
    }

    fn is_available(&self, id: ExprId) -> bool {
        let entry = self.state.available.get(&id);
        entry.is_some_and(|entry| self.state.times.unchanged(self.editor.kernel(), id, entry.at))
    }

    fn add(&mut self, id: ExprId, what: What) {
        let entry = AvailableValue { what, at: self.state.times.now };
        let before = self.state.available.insert(id, entry);
        self.state.trail.push((id, before));
    }

    /// Visits an evaluated expression. `certain`: it is evaluated unconditionally. `first`: it can
    /// be named before the statement.
    fn expr(&mut self, id: ExprId, first: bool, certain: bool) -> ExprId {
        let kernel = self.editor.kernel();
        if matches!(kernel.expr(id), Expr::Const(_) | Expr::Var(_)) {
            return id;
        }
        if self.is_available(id)
            && let Some(entry) = self.state.available.get(&id)
        {
            return match (entry.what, &self.named) {
                (What::Variable(var), Some(_)) => self.editor.get(var),
                (What::Variable(_), None) => {
                    self.again = true;
                    id
                }
                (What::Number(number), Some(named)) => match named[number] {
                    Some(var) => self.editor.get(var),
                    None => id,
                },
                (What::Number(number), None) => {
                    self.counts[number] += 1;
                    self.again = true;
                    id
                }
            };
        }
        let number = (first && certain && cost::deserves_a_name(kernel, id)).then(|| {
            let number = self.state.next;
            self.state.next += 1;
            if self.named.is_none() {
                self.counts.push(0);
            }
            number
        });
        if let Some(new) = self.seen.get(&(id, certain)) {
            return *new;
        }
        let new = self.operands(id, first, certain);
        let Some(number) = number else {
            self.seen.insert((id, certain), new);
            return new;
        };
        self.add(id, What::Number(number));
        if self.counts[number] == 0 || self.named.is_none() {
            return new;
        }
        let name = licm::name(self.editor.kernel(), id);
        let dtype = self.editor.dtype(new);
        let var = self.editor.new_var(name, dtype, false);
        if let Some(named) = &mut self.named {
            named[number] = Some(var);
        }
        self.pending.push(Stmt::Let { var, value: new });
        self.editor.get(var)
    }

    /// Visits the operands of an evaluated expression.
    fn operands(&mut self, id: ExprId, first: bool, certain: bool) -> ExprId {
        match self.editor.kernel().expr(id).clone() {
            Expr::Load(buffer, index) => {
                let new = self.expr(index, first, certain);
                if new == index { id } else { self.editor.load(buffer, new) }
            }
            Expr::Call(op, dtype, operands) => {
                let always = evaluated_first(op, dtype, &operands);
                let mut new = Vec::with_capacity(operands.len());
                for (k, operand) in operands.iter().enumerate() {
                    new.push(self.expr(*operand, first, certain && k < always));
                }
                if new == operands { id } else { fold::call(&mut self.editor, op, dtype, &new) }
            }
            // The lanes of a masked load are not all evaluated.
            Expr::Vector(_) | Expr::Const(_) | Expr::Var(_) => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::algebra::Op;

    #[test]
    fn values_are_computed_once() {
        let mut make = Make::new();
        let (zero, one, n) = (make.int(0), make.int(1), make.n);
        let (x, next) = (make.load(make.x, n), make.b.add(n, one));
        let square = make.call(Op::Mul, &[x, x]);
        make.b.store(make.y, zero, square);
        make.b.store(make.y, next, square);
        let expected =
            ["let x_value: f64 = x[n]", "let product: f64 = x_value * x_value", "y[0] = product", "y[n + 1] = product"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn what_has_a_name_is_used_by_it() {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        let x = make.load(make.x, n);
        let named = make.b.name("v", x);
        make.b.store(make.y, zero, named);
        make.b.store(make.y, n, x);
        assert_eq!(after(&[run], make), ["let v: f64 = x[n]", "y[0] = v", "y[n] = v"]);
    }

    #[test]
    fn stores_come_between() {
        let mut make = Make::new();
        let (zero, one, n) = (make.int(0), make.int(1), make.n);
        let y = make.load(make.y, n);
        make.b.store(make.y, zero, y);
        make.b.store(make.y, one, y);
        assert_eq!(after(&[run], make), ["y[0] = y[n]", "y[1] = y[n]"]);
    }

    #[test]
    fn what_may_not_be_evaluated_is_not_first() {
        let mut make = Make::new();
        let (zero, n, m, nothing) = (make.int(0), make.n, make.m, make.float(0.0));
        let x = make.load(make.x, n);
        let cond = make.call(Op::Lt, &[n, m]);
        let choice = make.call(Op::Select, &[cond, x, nothing]);
        make.b.store(make.y, zero, choice);
        make.b.store(make.y, zero, x);
        assert_eq!(after(&[run], make), ["y[0] = select(n < m, x[n], 0.0)", "y[0] = x[n]"]);
    }
}
