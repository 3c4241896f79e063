//! Jump threading: code that tests a flag moves into the branch that sets the flag.
//!
//! `if c { x; dirty = true }; if dirty { y }` becomes `if c { x; dirty = true; y }` if the flag is
//! known to be false before. Nothing is duplicated: one branch takes the code for a set flag, the
//! other the code for a clear one.

use super::effects::diverges;
use super::{Editor, Options};
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt, VarId};

/// The number of preceding statements searched for the value of a flag.
const NEAR: usize = 32;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (editor, body) = Editor::new(kernel, options);
    let body = JumpThreading { kernel: editor.kernel() }.block(body);
    editor.finish(body)
}

struct JumpThreading<'a> {
    kernel: &'a Kernel,
}

impl JumpThreading<'_> {
    fn block(&self, block: Block) -> Block {
        let mut out: Block = Vec::with_capacity(block.len());
        for mut stmt in block {
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            if let Some(stmt) = self.join(stmt, &mut out) {
                out.push(stmt);
            }
        }
        out
    }

    /// Moves the guarded code of a test into the preceding branches, or returns the test unchanged.
    fn join(&self, stmt: Stmt, out: &mut Block) -> Option<Stmt> {
        let Stmt::If { cond, then, otherwise } = stmt else { return Some(stmt) };
        let flag = self.flag(cond);
        if let (Some((flag, holds)), Some((Stmt::If { then: first, otherwise: second, .. }, before))) =
            (flag, out.split_last_mut())
            && !diverges(first)
            && !diverges(second)
        {
            let known = self.value(flag, before, None);
            let ends = (self.value(flag, first, known), self.value(flag, second, known));
            if let (Some(a), Some(b)) = ends
                && a != b
            {
                let (yes, no) = if a == holds { (first, second) } else { (second, first) };
                yes.extend(then);
                no.extend(otherwise);
                return None;
            }
        }
        Some(Stmt::If { cond, then, otherwise })
    }

    /// The variable that a condition tests, and the value that it tests for.
    fn flag(&self, cond: ExprId) -> Option<(VarId, bool)> {
        match self.kernel.expr(cond) {
            Expr::Var(var) if self.kernel.var(*var).mutable => Some((*var, true)),
            Expr::Call(Op::Not, _, operands) => self.flag(operands[0]).map(|(var, holds)| (var, !holds)),
            _ => None,
        }
    }

    /// The value of a flag at the end of a block, given its value at the start.
    fn value(&self, flag: VarId, block: &[Stmt], before: Option<bool>) -> Option<bool> {
        for (k, stmt) in block.iter().rev().enumerate() {
            match stmt {
                Stmt::Let { var, value } | Stmt::Assign { var, value } if *var == flag => {
                    return match self.kernel.expr(*value) {
                        Expr::Const(Value::Bool(value)) => Some(*value),
                        _ => None,
                    };
                }
                _ => {}
            }
            let mut assigned = false;
            stmt.visit(&mut |stmt| assigned |= matches!(stmt, Stmt::Assign { var, .. } if *var == flag));
            if assigned || k > NEAR {
                return None;
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    #[test]
    fn what_a_flag_guards_moves_to_where_it_is_set() {
        let mut make = Make::new();
        let (zero, n, m, one) = (make.int(0), make.n, make.m, make.float(1.0));
        let dirty = make.b.variable("dirty", Value::Bool(false));
        let cond = make.call(Op::Lt, &[n, m]);
        let yes = make.bool(true);
        make.when(cond, |make| make.b.assign(dirty, yes));
        let flag = make.b.get(dirty);
        make.when(flag, |make| make.b.store(make.y, zero, one));
        let expected = ["var dirty: bool = False", "if n < m", "    dirty = True", "    y[0] = 1.0"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn flags_that_loops_set_are_tested() {
        let mut make = Make::new();
        let (zero, n, m, one) = (make.int(0), make.n, make.m, make.float(1.0));
        let dirty = make.b.variable("dirty", Value::Bool(false));
        let cond = make.call(Op::Lt, &[n, m]);
        let yes = make.bool(true);
        make.when(cond, |make| make.count("i", zero, n, |make, _| make.b.assign(dirty, yes)));
        let flag = make.b.get(dirty);
        make.when(flag, |make| make.b.store(make.y, zero, one));
        assert_eq!(after(&[run], make)[4..], ["if dirty", "    y[0] = 1.0"]);
    }
}
