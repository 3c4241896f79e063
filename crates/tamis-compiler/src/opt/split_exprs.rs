//! Expression splitting: bounds the depth of expressions by naming subexpressions.
//!
//! In: a kernel whose expressions may be as deep as a user's statement is long. Out: the same
//! kernel, in which no expression that a statement evaluates once is nested deeper than `DEEPEST`,
//! so that recursive walks need a bounded stack. An operand that is evaluated conditionally, as in
//! `a and b`, stays in place: no load is added. Conditions of `while` loops stay, too.

use super::{Editor, Options};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt};

/// The maximum depth of an expression.
const DEEPEST: usize = 64;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let depths = depths(&kernel);
    if depths.iter().all(|depth| *depth <= DEEPEST) {
        return kernel;
    }
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Split { editor, depths };
    let body = pass.block(body);
    pass.editor.finish(body)
}

/// The depth of each expression; operands have smaller ids.
fn depths(kernel: &Kernel) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(kernel.exprs.len());
    for id in kernel.exprs.ids() {
        depths.push(depth(kernel.expr(id), &depths));
    }
    depths
}

fn depth(expr: &Expr, depths: &[usize]) -> usize {
    let below = |id: &ExprId| depths.get(id.index()).copied().unwrap_or(0) + 1;
    match expr {
        Expr::Load(_, index) => below(index),
        Expr::Call(_, _, operands) => operands.iter().map(below).max().unwrap_or(0),
        Expr::Vector(vector) => vector.operands().map(|operand| below(&operand)).max().unwrap_or(0),
        Expr::Const(_) | Expr::Var(_) => 0,
    }
}

struct Split {
    editor: Editor,
    depths: Vec<usize>,
}

impl Split {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            if !matches!(stmt, Stmt::While { .. }) {
                stmt.map_exprs(|id| self.split(id, &mut out));
            }
            out.push(stmt);
        }
        out
    }

    /// Splits an expression to the maximum depth; declarations of its operands are emitted first.
    fn split(&mut self, id: ExprId, before: &mut Block) -> ExprId {
        if self.depth_of(id) < DEEPEST {
            return id;
        }
        let split = match self.editor.kernel().expr(id).clone() {
            Expr::Load(buffer, index) => {
                let index = self.split(index, before);
                self.editor.load(buffer, index)
            }
            Expr::Call(op, dtype, mut operands) => {
                let evaluated = match op {
                    Op::And | Op::Or | Op::Select | Op::Coalesce | Op::Choose => 1,
                    _ => operands.len(),
                };
                for operand in operands.iter_mut().take(evaluated) {
                    *operand = self.split(*operand, before);
                }
                self.editor.call_in(op, dtype, &operands)
            }
            // The lanes of a masked load are not all evaluated.
            Expr::Vector(_) | Expr::Const(_) | Expr::Var(_) => id,
        };
        // A deeper remaining operand is conditionally evaluated and stays in place.
        if self.depth_of(split) != DEEPEST {
            return split;
        }
        let dtype = self.editor.dtype(split);
        let lanes = self.editor.kernel().exprs.lanes(split);
        let var = self.editor.new_vector("part", dtype, lanes, false);
        before.push(Stmt::Let { var, value: split });
        self.editor.get(var)
    }

    fn depth_of(&mut self, id: ExprId) -> usize {
        for at in self.depths.len()..=id.index() {
            let known = ExprId(at as u32);
            let depth = depth(self.editor.kernel().expr(known), &self.depths);
            self.depths.push(depth);
        }
        self.depths[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::DType;
    use tamis_ir::kernel::{Builder, Elem, Role};

    /// A sum of many loads, optionally under a condition that guards them.
    fn sum(terms: i64, guarded: bool) -> Kernel {
        let mut b = Builder::new("f");
        let (x, y) =
            (b.buffer("x", Elem::Value(DType::F64), Role::Input), b.buffer("y", Elem::Value(DType::F64), Role::Output));
        let n = b.param("n", DType::I64);
        let zero = b.int(0);
        let mut value = b.load(x, zero);
        for k in 1..terms {
            let at = b.int(k);
            let term = b.load(x, at);
            value = b.call(Op::Add, &[value, term]);
        }
        if guarded {
            let n = b.get(n);
            let (cond, other) = (b.call(Op::Lt, &[zero, n]), b.constant(tamis_ir::Value::F64(0.0)));
            value = b.call(Op::Select, &[cond, value, other]);
        }
        b.store(y, zero, value);
        b.finish()
    }

    #[test]
    fn deep_sums_are_split_and_short_ones_are_not() {
        let options = Options::default();
        let short = sum(20, false);
        assert_eq!(run(short.clone(), &options), short);
        let split = run(sum(1000, false), &options);
        assert!(split.body.len() > 10, "{split}");
        for stmt in &split.body {
            let known = depths(&split);
            stmt.each_expr(|id| assert!(known[id.index()] <= DEEPEST));
        }
    }

    #[test]
    fn what_a_condition_guards_is_not_evaluated_before_it() {
        let split = run(sum(100, true), &Options::default());
        assert_eq!(split.body.len(), 1, "{split}");
    }
}
