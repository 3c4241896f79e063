//! Loop unswitching: a loop-invariant condition is tested before the loop.
//!
//! `for i { names; if c { x } else { y } }` becomes `if c { for i { names; x } } else { for i {
//! names; y } }`, if nothing in the loop changes `c` and every element that `c` loads exists even
//! if the loop has no iterations. Only names are duplicated; without an `else`, variables that the
//! body starts with move along.
//!
//! [`drop_redundant_guards`] does the reverse: a guard that only tests whether a loop has
//! iterations is removed, if nothing was hoisted between the guard and the loop.

use super::effects::Effects;
use super::in_bounds::{InBounds, InBoundsPass};
use super::{Editor, Options, clone, cost, fold};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt, VarId};

/// The maximum number of operators of a condition with expanded names.
const OPERATIONS: usize = 12;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = InBounds::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Unswitch { editor, reach };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Unswitch {
    editor: Editor,
    reach: InBounds,
}

/// Replaces `if a < b { for i in a..b }` by the loop.
pub(super) fn drop_redundant_guards(mut kernel: Kernel, _: &Options) -> Kernel {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = without_redundant_guards(&kernel, body);
    kernel
}

fn without_redundant_guards(kernel: &Kernel, block: Block) -> Block {
    let mut out = Vec::with_capacity(block.len());
    for mut stmt in block {
        for inner in stmt.blocks_mut() {
            *inner = without_redundant_guards(kernel, std::mem::take(inner));
        }
        match stmt {
            Stmt::If { cond, mut then, otherwise } if otherwise.is_empty() && is_trip_guard(kernel, cond, &then) => {
                out.append(&mut then);
            }
            stmt => out.push(stmt),
        }
    }
    out
}

/// True if a condition only tests that the guarded block, a single loop, has an iteration.
fn is_trip_guard(kernel: &Kernel, cond: ExprId, then: &Block) -> bool {
    match (kernel.expr(cond), &then[..]) {
        (Expr::Call(Op::Lt, _, bounds), [Stmt::For { start, stop, .. }]) => bounds[..] == [*start, *stop],
        _ => false,
    }
}

impl InBoundsPass for Unswitch {
    fn parts(&mut self) -> (&Kernel, &mut InBounds) {
        (self.editor.kernel(), &mut self.reach)
    }

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            self.inside(&mut stmt);
            out.extend(self.stmt(stmt));
        }
        out
    }
}

impl Unswitch {
    /// Unswitches a loop; none if its body becomes empty.
    fn stmt(&mut self, stmt: Stmt) -> Option<Stmt> {
        let Stmt::For { var, start, stop, mut body, hint } = stmt else { return Some(stmt) };
        let Some(cond) = self.invariant_condition(var, &body) else {
            return Some(Stmt::For { var, start, stop, body, hint });
        };
        let Some(Stmt::If { then, otherwise, .. }) = body.pop() else { return None };
        let mut names = body;
        let second = if otherwise.is_empty() {
            None
        } else {
            let mut again = FxHashMap::default();
            let counter = clone::renew(&mut self.editor, var, &mut again);
            let mut body = names.clone();
            for stmt in &mut body {
                if let Stmt::Let { var, .. } = stmt {
                    *var = clone::renew(&mut self.editor, *var, &mut again);
                }
            }
            body.extend(otherwise);
            clone::rename(&mut self.editor, &mut body, &again);
            self.stmt(Stmt::For { var: counter, start, stop, body, hint })
        };
        let first = if then.is_empty() {
            None
        } else {
            names.extend(then);
            self.stmt(Stmt::For { var, start, stop, body: names, hint })
        };
        let (then, otherwise): (Block, Block) = (first.into_iter().collect(), second.into_iter().collect());
        (!then.is_empty() || !otherwise.is_empty()).then_some(Stmt::If { cond, then, otherwise })
    }

    /// The loop-invariant condition of the `if` that is the whole body, apart from declarations.
    fn invariant_condition(&mut self, counter: VarId, body: &Block) -> Option<ExprId> {
        let (Stmt::If { cond, otherwise, .. }, names) = body.split_last()? else { return None };
        let mut meanings: FxHashMap<VarId, ExprId> = FxHashMap::default();
        for stmt in names {
            let Stmt::Let { var, value } = stmt else { return None };
            if self.editor.kernel().var(*var).mutable {
                // It moves, but is not duplicated.
                if !otherwise.is_empty() {
                    return None;
                }
                continue;
            }
            let value = self.meaning(*value, &meanings);
            meanings.insert(*var, value);
        }
        let cond = self.meaning(*cond, &meanings);
        let mut effects = Effects::of(body);
        effects.declared.push(counter);
        let kernel = self.editor.kernel();
        let cheap = cost::operations(kernel, cond, OPERATIONS) <= OPERATIONS;
        (cheap && !effects.touch(kernel, cond) && self.elements_exist(cond, &effects)).then_some(cond)
    }

    /// True if every element that a condition loads exists before a loop with these effects.
    fn elements_exist(&self, cond: ExprId, effects: &Effects) -> bool {
        let kernel = self.editor.kernel();
        let mut all = true;
        kernel.visit_expr(cond, &mut |expr| {
            if let Expr::Load(buffer, index) = expr {
                all &= !effects.grown.contains(buffer) && self.reach.has(kernel, *buffer, *index);
            }
        });
        all
    }

    fn meaning(&mut self, id: ExprId, names: &FxHashMap<VarId, ExprId>) -> ExprId {
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => names.get(var).copied(),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::Value;
    use tamis_ir::kernel::Assumption;

    #[test]
    fn what_does_not_change_is_asked_once() {
        let mut make = Make::new();
        let (zero, n, m, one) = (make.int(0), make.n, make.m, make.float(1.0));
        make.count("i", zero, n, |make, i| {
            let twice = make.b.add(m, m);
            let twice = make.b.name("twice", twice);
            let cond = make.call(Op::Lt, &[twice, n]);
            let (then, otherwise) = (
                vec![Stmt::Store { buffer: make.y, index: i, value: one }],
                vec![Stmt::Store { buffer: make.y, index: twice, value: one }],
            );
            make.b.emit(Stmt::If { cond, then, otherwise });
        });
        let expected = [
            "if (m + m) < n",
            "    for i in 0..n",
            "        let twice: i64 = m + m",
            "        y[i] = 1.0",
            "else",
            "    for i_2 in 0..n",
            "        let twice_2: i64 = m + m",
            "        y[twice_2] = 1.0",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    /// An accumulator that the body starts with moves, and so does a load of an element that exists.
    #[test]
    fn variables_and_elements_that_exist_do_not_matter() {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        make.b.assume(Assumption::Length { buffer: make.x, least: n });
        make.count("k", zero, n, |make, k| {
            make.count("i", zero, n, |make, i| {
                let value = make.b.variable("value", Value::F64(0.0));
                let element = make.load(make.x, k);
                let cond = make.call(Op::Lt, &[element, one]);
                make.when(cond, |make| {
                    make.b.assign(value, one);
                    let value = make.b.get(value);
                    make.b.store(make.y, i, value);
                });
            });
        });
        let expected = [
            "for k in 0..n",
            "    if x[k] < 1.0",
            "        for i in 0..n",
            "            var value: f64 = 0.0",
            "            value = 1.0",
            "            y[i] = value",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn a_loop_without_iterations_needs_no_guard() {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        let cond = make.call(Op::Lt, &[zero, n]);
        make.when(cond, |make| make.count("i", zero, n, |make, i| make.b.store(make.y, i, one)));
        assert_eq!(after(&[drop_redundant_guards], make), ["for i in 0..n", "    y[i] = 1.0"]);
    }

    #[test]
    fn what_changes_or_reads_stays() {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        make.count("i", zero, n, |make, i| {
            let cond = make.call(Op::Lt, &[i, make.m]);
            make.when(cond, |make| make.b.store(make.y, i, one));
        });
        make.count("i", zero, n, |make, i| {
            let first = make.load(make.x, zero);
            let cond = make.call(Op::Lt, &[first, one]);
            make.when(cond, |make| make.b.store(make.y, i, one));
        });
        let text = after(&[run], make);
        assert!(text[0].starts_with("for") && text[3].starts_with("for"), "{text:?}");
    }
}
