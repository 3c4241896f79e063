//! Which elements are known to be there: those that were read or written before, and still are at the same index.
//!
//! Reading an element that was not read before is allowed only if it is there; buffers never shrink, so what was there
//! once stays.

use super::effects::{Effects, Times};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Value;
use tamis_ir::kernel::rewrite::{evaluated_first, is_always_there};
use tamis_ir::kernel::{BufferId, Expr, ExprId, Kernel, Stmt};

/// Elements that are there, found on the way through a kernel.
pub(super) struct Reach {
    pub(super) times: Times,
    /// When an element was accessed last.
    there: FxHashMap<(BufferId, ExprId), u64>,
    /// What `there` held before, to go back to where a block began.
    trail: Vec<((BufferId, ExprId), Option<u64>)>,
}

impl Reach {
    pub(super) fn new(kernel: &Kernel) -> Reach {
        Reach { times: Times::new(kernel), there: FxHashMap::default(), trail: Vec::new() }
    }

    /// Whether an element is there now.
    pub(super) fn has(&self, kernel: &Kernel, buffer: BufferId, index: ExprId) -> bool {
        is_always_there(kernel.buffer(buffer), kernel.expr(index))
            || self.there.get(&(buffer, index)).is_some_and(|at| self.times.unchanged(kernel, index, *at))
    }

    fn add(&mut self, buffer: BufferId, index: ExprId) {
        let before = self.there.insert((buffer, index), self.times.now);
        self.trail.push(((buffer, index), before));
    }

    /// An expression is evaluated here.
    pub(super) fn evaluate(&mut self, kernel: &Kernel, id: ExprId) {
        certain_loads(kernel, id, &mut |buffer, index| self.add(buffer, index));
    }

    /// The expressions of a statement are evaluated, and then it changes what it does. Of blocks inside it nothing is
    /// known.
    pub(super) fn pass(&mut self, kernel: &Kernel, stmt: &Stmt) {
        stmt.each_expr(|id| self.evaluate(kernel, id));
        if let Stmt::Store { buffer, index, .. } = stmt {
            self.add(*buffer, *index);
        }
        self.times.pass(stmt);
    }

    /// Enters a block.
    pub(super) fn enter(&self) -> usize {
        self.trail.len()
    }

    /// Leaves a block: what happened in it may not have.
    pub(super) fn leave(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((element, before)) = self.trail.pop() {
                match before {
                    Some(at) => self.there.insert(element, at),
                    None => self.there.remove(&element),
                };
            }
        }
    }

    /// Some code that changes things ran, or will run again.
    pub(super) fn forget(&mut self, effects: &Effects) {
        self.times.forget(effects);
    }
}

/// The elements that an expression reads in any case.
pub(super) fn certain_loads(kernel: &Kernel, id: ExprId, visit: &mut impl FnMut(BufferId, ExprId)) {
    let mut open = vec![id];
    let mut seen = FxHashSet::default();
    while let Some(id) = open.pop() {
        match kernel.expr(id) {
            Expr::Const(_) | Expr::Var(_) => {}
            _ if !seen.insert(id) => {}
            Expr::Load(buffer, index) => {
                visit(*buffer, *index);
                open.push(*index);
            }
            Expr::Call(op, dtype, operands) => {
                open.extend(&operands[..evaluated_first(*op, *dtype, operands)]);
            }
        }
    }
}

/// The elements that a block reads or writes in any case when it runs.
pub(super) fn certain_accesses(kernel: &Kernel, block: &[Stmt], visit: &mut impl FnMut(BufferId, ExprId)) {
    for stmt in block {
        stmt.each_expr(|id| certain_loads(kernel, id, visit));
        if let Stmt::Store { buffer, index, .. } = stmt {
            visit(*buffer, *index);
        }
        // Past a way out nothing is certain.
        if !Effects::of(std::slice::from_ref(stmt)).left.is_empty() {
            return;
        }
    }
}

/// Whether a loop that counts runs at least once.
pub(super) fn runs(kernel: &Kernel, start: ExprId, stop: ExprId) -> bool {
    let int = |id| match kernel.expr(id) {
        Expr::Const(value) => Value::as_i64(*value),
        _ => None,
    };
    matches!((int(start), int(stop)), (Some(a), Some(b)) if a < b)
}
