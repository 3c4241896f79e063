//! Loop coalescing: a loop over the fibers of a level and the loop over the entries of each fiber
//! become one loop over all entries.
//!
//! In: `for i in a..b` around `for q in pos[i]..pos[i + 1]`, with a body that does not use `i`, and
//! nothing else. Out: `for q in pos[a]..pos[b]`, under the condition `a < b` unless both bounds are
//! known to be elements of `pos`. The order of iterations stays, so sums are the same numbers; `pos`
//! must be an input that is known to be nondecreasing. Short rows then fill whole vectors. Kernels
//! that count their iterations keep all loops.

use super::{Editor, Options};
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Assumption, Block, BufferId, Builder, Expr, ExprId, Kernel, LoopKind, Role, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let sorted = kernel.assumptions.iter().any(|fact| matches!(fact, Assumption::Nondecreasing(_)));
    if options.count || !sorted {
        return kernel;
    }
    let (mut editor, body) = Editor::new(kernel, options);
    let body = block(&mut editor, body);
    editor.finish(body)
}

fn block(b: &mut Builder, body: Block) -> Block {
    let mut out = Block::with_capacity(body.len());
    for mut stmt in body {
        let mut conditions = Vec::new();
        while let Some(nest) = LoopPair::of(b.kernel(), &stmt) {
            if !nest.has_bounds(b.kernel()) {
                conditions.push(b.call_in(Op::Lt, DType::I64, &[nest.start, nest.stop]));
            }
            let (start, stop) = (b.load(nest.pos, nest.start), b.load(nest.pos, nest.stop));
            let inner = stmt.blocks_mut().next().and_then(Block::pop);
            if let Some(Stmt::For { var, body, hint, .. }) = inner {
                stmt = Stmt::For { var, start, stop, body, hint };
            }
        }
        for inner in stmt.blocks_mut() {
            *inner = block(b, std::mem::take(inner));
        }
        // Each pair has its condition: the bounds of the inner one are loaded if that of the outer
        // one holds.
        let mut guarded = vec![stmt];
        for condition in conditions.into_iter().rev() {
            guarded = b.block(|b| b.branch(condition, |b| guarded.into_iter().for_each(|stmt| b.emit(stmt)), |_| {}));
        }
        out.extend(guarded);
    }
    out
}

/// Two loops that can be one.
struct LoopPair {
    /// The positions between which the inner loop runs.
    pos: BufferId,
    start: ExprId,
    stop: ExprId,
}

impl LoopPair {
    fn of(kernel: &Kernel, stmt: &Stmt) -> Option<LoopPair> {
        let Stmt::For { var, start, stop, body, hint } = stmt else { return None };
        let [Stmt::For { start: first, stop: last, body: inner, hint: inner_hint, .. }] = &body[..] else {
            return None;
        };
        let serial = hint.kind == LoopKind::Serial && inner_hint.kind == LoopKind::Serial && !hint.vectorise;
        let (Expr::Load(pos, here), Expr::Load(same, next)) = (kernel.expr(*first), kernel.expr(*last)) else {
            return None;
        };
        let is_counter = |id: ExprId| *kernel.expr(id) == Expr::Var(*var);
        let is_next = match kernel.expr(*next) {
            Expr::Call(Op::Add, DType::I64, sum) => sum.len() == 2 && is_counter(sum[0]) && is_one(kernel, sum[1]),
            _ => false,
        };
        let sorted =
            kernel.buffer(*pos).role == Role::Input && kernel.assumptions.contains(&Assumption::Nondecreasing(*pos));
        let fits = serial && pos == same && is_counter(*here) && is_next && sorted && !kernel.var(*var).mutable;
        (fits && !inner.iter().any(|stmt| uses(kernel, stmt, *var))).then_some(LoopPair {
            pos: *pos,
            start: *start,
            stop: *stop,
        })
    }

    /// True if `pos` is known to have elements at both bounds, even if the range is empty: it starts
    /// at 0, and `pos` has an element more than the stop, which is not negative.
    fn has_bounds(&self, kernel: &Kernel) -> bool {
        let holds = |fact: &Assumption| match fact {
            Assumption::Holds(condition) => match kernel.expr(*condition) {
                Expr::Call(Op::Ge, _, sides) => sides[0] == self.stop && is_zero(kernel, sides[1]),
                _ => false,
            },
            _ => false,
        };
        let long = |fact: &Assumption| match fact {
            Assumption::Length { buffer, least } if *buffer == self.pos => match kernel.expr(*least) {
                Expr::Call(Op::Add, _, sum) => sum[0] == self.stop && is_one(kernel, sum[1]),
                _ => false,
            },
            _ => false,
        };
        is_zero(kernel, self.start) && kernel.assumptions.iter().any(holds) && kernel.assumptions.iter().any(long)
    }
}

fn is_zero(kernel: &Kernel, id: ExprId) -> bool {
    matches!(kernel.expr(id), Expr::Const(Value::I64(0)))
}

fn is_one(kernel: &Kernel, id: ExprId) -> bool {
    matches!(kernel.expr(id), Expr::Const(Value::I64(1)))
}

/// True if a statement uses a variable.
fn uses(kernel: &Kernel, stmt: &Stmt, var: VarId) -> bool {
    let mut found = false;
    stmt.visit(&mut |stmt| {
        stmt.each_expr(|id| kernel.visit_expr(id, &mut |expr| found |= *expr == Expr::Var(var)));
    });
    found
}
