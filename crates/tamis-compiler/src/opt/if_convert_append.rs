//! If-conversion of conditional appends: the element is stored speculatively, the condition only
//! advances the count.
//!
//! `if c { list[count] = x; count = count + 1 }` becomes
//! `list[count] = x; count = select(c, count + 1, count)`. In: a kernel whose flags jump threading
//! has removed. The pass fires where the buffer has a spare element (`Assumption::SpareCapacity`),
//! and leaves predictable conditions alone. The next append overwrites an element that is not
//! counted, or finalisation truncates it. A value that might not fit its type is stored as 0.

use super::{Editor, Options};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::format::Width;
use tamis_ir::kernel::{Assumption, Block, BufferId, Elem, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let spare: Vec<BufferId> = kernel
        .assumptions
        .iter()
        .filter_map(|fact| match fact {
            Assumption::SpareCapacity(buffer) => Some(*buffer),
            _ => None,
        })
        .collect();
    if spare.is_empty() {
        return kernel;
    }
    let (mut editor, body) = Editor::new(kernel, options);
    let mut values = FxHashMap::default();
    for stmt in &body {
        stmt.visit(&mut |stmt| {
            if let Stmt::Let { var, value } = stmt {
                values.insert(*var, *value);
            }
        });
    }
    let body = IfConvertAppend { editor: &mut editor, spare, values }.block(body, false);
    editor.finish(body)
}

struct IfConvertAppend<'a> {
    editor: &'a mut Editor,
    spare: Vec<BufferId>,
    /// The initial values of declared variables.
    values: FxHashMap<VarId, ExprId>,
}

impl IfConvertAppend<'_> {
    /// `innermost` marks a body without inner loops: only there does a misprediction dominate.
    fn block(&mut self, block: Block, innermost: bool) -> Block {
        let mut out: Block = Vec::with_capacity(block.len());
        for mut stmt in block {
            let inside = match &stmt {
                Stmt::For { body, .. } | Stmt::While { body, .. } => !has_long_loop(body),
                _ => innermost,
            };
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner), inside);
            }
            match stmt {
                Stmt::If { cond, then, otherwise }
                    if innermost && otherwise.is_empty() && self.appends(cond, &then) =>
                {
                    out.extend(then.into_iter().map(|stmt| self.always(cond, stmt)));
                }
                stmt => out.push(stmt),
            }
        }
        out
    }

    /// True if a block only appends to buffers (a store at the count, then an increment) and sets
    /// flags.
    fn appends(&self, cond: ExprId, block: &[Stmt]) -> bool {
        let kernel = self.editor.kernel();
        let counts: Vec<VarId> = block
            .iter()
            .filter_map(|stmt| match stmt {
                Stmt::Assign { var, value } if self.is_next(*var, *value) => Some(*var),
                _ => None,
            })
            .collect();
        let [count] = counts[..] else { return false };
        let mut fine = true;
        kernel.visit_expr(cond, &mut |expr| fine &= !matches!(expr, Expr::Var(var) if *var == count));
        let (mut stored, mut counted) = (false, false);
        for stmt in block {
            match stmt {
                // A load may be out of bounds where the condition is false.
                Stmt::Store { buffer, index, value } => {
                    kernel.visit_expr(*value, &mut |expr| fine &= !matches!(expr, Expr::Load(..)));
                    let at = matches!(kernel.expr(*index), Expr::Var(var) if *var == count);
                    fine &= at && !counted && self.spare.contains(buffer);
                    stored = true;
                }
                Stmt::Assign { var, .. } if *var == count => counted = true,
                Stmt::Assign { var, value } => {
                    let yes = matches!(kernel.expr(*value), Expr::Const(Value::Bool(true)));
                    kernel.visit_expr(cond, &mut |expr| fine &= !matches!(expr, Expr::Var(other) if other == var));
                    fine &= yes;
                }
                _ => fine = false,
            }
        }
        fine && stored
    }

    fn is_next(&self, var: VarId, value: ExprId) -> bool {
        let kernel = self.editor.kernel();
        match kernel.expr(value) {
            Expr::Call(Op::Add, DType::I64, operands) => {
                matches!(kernel.expr(operands[0]), Expr::Var(other) if *other == var)
                    && matches!(kernel.expr(operands[1]), Expr::Const(Value::I64(1)))
            }
            _ => false,
        }
    }

    /// The unconditional form of a statement that was guarded by the condition.
    fn always(&mut self, cond: ExprId, stmt: Stmt) -> Stmt {
        let (var, value) = match stmt {
            Stmt::Assign { var, value } => (var, value),
            Stmt::Store { buffer, index, value } => {
                let elem = self.editor.kernel().buffer(buffer).elem;
                let value = match elem {
                    Elem::Index(width) if !self.fits(value, width) => {
                        let zero = self.editor.int(0);
                        self.editor.call_in(Op::Select, DType::I64, &[cond, value, zero])
                    }
                    _ => value,
                };
                return Stmt::Store { buffer, index, value };
            }
            other => return other,
        };
        let before = self.editor.get(var);
        let dtype = self.editor.dtype(before);
        let value = match dtype {
            DType::Bool => self.editor.call_in(Op::Or, DType::Bool, &[before, cond]),
            _ => self.editor.call_in(Op::Select, dtype, &[cond, value, before]),
        };
        Stmt::Assign { var, value }
    }
}

impl IfConvertAppend<'_> {
    /// True if an integer may exceed the width of a buffer's elements.
    fn fits(&self, id: ExprId, width: Width) -> bool {
        let kernel = self.editor.kernel();
        match kernel.expr(id) {
            Expr::Const(Value::I64(value)) => u64::try_from(*value).is_ok_and(|value| value <= width.max()),
            Expr::Load(buffer, _) => {
                matches!(kernel.buffer(*buffer).elem, Elem::Index(other) if other.max() <= width.max())
            }
            Expr::Call(Op::Min | Op::Max, DType::I64, operands) => operands.iter().all(|e| self.fits(*e, width)),
            Expr::Var(var) if !kernel.var(*var).mutable => {
                self.values.get(var).is_some_and(|value| self.fits(*value, width))
            }
            _ => false,
        }
    }
}

/// True if a block contains a loop with a nontrivial body.
fn has_long_loop(block: &[Stmt]) -> bool {
    let mut found = false;
    for stmt in block {
        stmt.visit(&mut |stmt| match stmt {
            Stmt::For { .. } => found = true,
            Stmt::While { body, .. } => found |= body.len() > 1,
            _ => {}
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    fn appending(make: &mut Make, list: BufferId) {
        let (zero, one, n, m) = (make.int(0), make.int(1), make.n, make.m);
        let count = make.b.variable("count", Value::I64(0));
        make.count("i", zero, n, |make, i| {
            let cond = make.call(Op::Lt, &[i, m]);
            make.when(cond, |make| {
                let (place, value) = (make.b.get(count), make.float(1.0));
                make.b.store(list, place, value);
                let next = make.b.add(place, one);
                make.b.assign(count, next);
            });
        });
    }

    #[test]
    fn an_append_with_spare_capacity_has_no_branch() {
        let mut make = Make::new();
        let y = make.y;
        make.b.assume(Assumption::SpareCapacity(y));
        appending(&mut make, y);
        let expected = [
            "var count: i64 = 0",
            "for i in 0..n",
            "    y[count] = 1.0",
            "    count = select(i < m, count + 1, count)",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn an_append_without_spare_capacity_keeps_its_branch() {
        let mut make = Make::new();
        let y = make.y;
        appending(&mut make, y);
        assert_eq!(after(&[run], make)[2], "    if i < m");
    }
}
