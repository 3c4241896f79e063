//! Sinking of loop-invariant assignments: a value that every iteration assigns is assigned once,
//! after the loop, if the loop ran.
//!
//! Flags then no longer obstruct other passes in the loop.

use super::effects::Effects;
use super::{Editor, Options, cost, fold};
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Sink { editor };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Sink {
    editor: Editor,
}

impl Sink {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            let mut after = Vec::new();
            if let Stmt::For { var, start, stop, body, .. } = &mut stmt {
                let (start, stop) = (*start, *stop);
                let sunk = self.sink(*var, start, stop, body);
                if !sunk.is_empty() {
                    let cond = fold::call(&mut self.editor, Op::Lt, DType::I64, &[start, stop]);
                    after.push(Stmt::If { cond, then: sunk, otherwise: Vec::new() });
                }
            }
            out.push(stmt);
            out.append(&mut after);
        }
        out
    }

    /// Removes assignments from a loop body that every iteration repeats and no iteration reads.
    fn sink(&self, counter: VarId, start: ExprId, stop: ExprId, body: &mut Block) -> Block {
        let kernel = self.editor.kernel();
        let mut effects = Effects::of(body);
        effects.declared.push(counter);
        // A loop with an early exit may not reach the assignment; bounds that change cannot be
        // compared afterwards.
        if !effects.left.is_empty() || effects.touch(kernel, start) || effects.touch(kernel, stop) {
            return Vec::new();
        }
        let mut sunk = Vec::new();
        for stmt in body.iter() {
            if let Stmt::Assign { var, value } = stmt
                && !effects.declared.contains(var)
                && cost::is_free(kernel, *value)
                && !effects.touch(kernel, *value)
                && self.is_alone(*var, body)
            {
                sunk.push(stmt.clone());
            }
        }
        body.retain(|stmt| !sunk.contains(stmt));
        sunk
    }

    /// True if a block assigns a variable once and does not read it.
    fn is_alone(&self, var: VarId, body: &Block) -> bool {
        let kernel = self.editor.kernel();
        let (mut assigned, mut read) = (0, false);
        for stmt in body {
            stmt.visit(&mut |stmt| {
                assigned += usize::from(matches!(stmt, Stmt::Assign { var: other, .. } if *other == var));
                stmt.each_expr(|id| kernel.visit_expr(id, &mut |expr| read |= *expr == Expr::Var(var)));
            });
        }
        assigned == 1 && !read
    }
}

#[cfg(test)]
mod tests {
    use super::super::jump_threading;
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::Value;

    fn dot(reads: bool) -> Make {
        let mut make = Make::new();
        let (zero, n, yes) = (make.int(0), make.n, make.bool(true));
        let dirty = make.b.variable("dirty", Value::Bool(false));
        let flag = make.b.get(dirty);
        make.count("i", zero, n, |make, i| {
            make.b.assign(dirty, yes);
            let x = make.load(make.x, i);
            if reads {
                make.when(flag, |make| make.add_to(make.y, zero, x));
            } else {
                make.add_to(make.y, zero, x);
            }
        });
        make.when(flag, |make| {
            let one = make.float(1.0);
            make.b.store(make.y, n, one);
        });
        make
    }

    #[test]
    fn flags_leave_loops() {
        let expected = [
            "var dirty: bool = False",
            "for i in 0..n",
            "    y[0] = y[0] + x[i]",
            "if 0 < n",
            "    dirty = True",
            "    y[n] = 1.0",
        ];
        assert_eq!(after(&[run, jump_threading::run], dot(false)), expected);
    }

    #[test]
    fn what_is_read_inside_stays() {
        assert_eq!(after(&[run], dot(true))[2], "    dirty = True");
    }
}
