//! Index facts: the definitions of immutable variables, and orderings between integers that follow from them.

use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Role, Stmt, VarId};

/// What variables of a block that never change stand for.
#[derive(Default)]
pub(super) struct IndexFacts {
    /// Names of values.
    names: FxHashMap<VarId, ExprId>,
    /// Where those that count start and stop.
    counters: FxHashMap<VarId, (ExprId, ExprId)>,
    /// Positions in inputs before which all elements, from a start on, are below a key.
    ends: FxHashMap<VarId, (BufferId, ExprId, ExprId)>,
}

impl IndexFacts {
    pub(super) fn of(kernel: &Kernel, block: &Block) -> IndexFacts {
        let mut known = IndexFacts::default();
        for stmt in block {
            stmt.visit(&mut |stmt| match stmt {
                Stmt::Let { var, value } if !kernel.var(*var).mutable => {
                    known.names.insert(*var, *value);
                }
                Stmt::For { var, start, stop, .. } if !kernel.var(*var).mutable => {
                    known.counters.insert(*var, (*start, *stop));
                }
                Stmt::Search { var, buffer, start, key, .. } if kernel.buffer(*buffer).role == Role::Input => {
                    known.ends.insert(*var, (*buffer, *start, *key));
                }
                _ => {}
            });
        }
        known
    }

    /// What a name stands for. That is the same inside: what is made of it below is made of counters and of what does not change.
    pub(super) fn meaning(&self, kernel: &Kernel, mut id: ExprId) -> ExprId {
        while let Expr::Var(var) = kernel.expr(id)
            && let Some(value) = self.names.get(var)
        {
            id = *value;
        }
        id
    }

    /// The `a` of an index `a * size + k` where `k` counts from 0 to the size.
    pub(super) fn outer(&self, kernel: &Kernel, index: ExprId, size: ExprId) -> Option<ExprId> {
        let Expr::Call(Op::Add, DType::I64, sum) = kernel.expr(index) else { return None };
        let Expr::Var(counter) = kernel.expr(sum[1]) else { return None };
        let Expr::Call(Op::Mul, DType::I64, product) = kernel.expr(sum[0]) else { return None };
        let (start, stop) = self.counters.get(counter)?;
        let from_0 = matches!(kernel.expr(*start), Expr::Const(value) if value.as_i64() == Some(0));
        (product[1] == size && *stop == size && from_0).then_some(product[0])
    }

    /// Whether a number is certainly below another, which means what it says: because it counts up to it, or because it is one of a list before the
    /// position of the other.
    pub(super) fn is_below(&self, kernel: &Kernel, id: ExprId, limit: ExprId) -> bool {
        // Both mean now what they meant where the list was searched, or the loop began.
        if !is_fixed(kernel, limit) {
            return false;
        }
        match kernel.expr(id) {
            Expr::Var(var) => self.counters.get(var).is_some_and(|(_, stop)| self.meaning(kernel, *stop) == limit),
            Expr::Load(list, position) => {
                let Expr::Var(position) = kernel.expr(*position) else { return false };
                let Some((start, stop)) = self.counters.get(position) else { return false };
                let Expr::Var(end) = kernel.expr(*stop) else { return false };
                let Some((searched, from, key)) = self.ends.get(end) else { return false };
                (searched, from) == (list, start) && is_fixed(kernel, *start) && self.meaning(kernel, *key) == limit
            }
            _ => false,
        }
    }
}

/// Whether something is made of inputs and of variables that never change.
fn is_fixed(kernel: &Kernel, id: ExprId) -> bool {
    let mut fixed = true;
    kernel.visit_expr(id, &mut |expr| {
        fixed &= match expr {
            Expr::Var(var) => !kernel.var(*var).mutable,
            Expr::Load(buffer, _) => kernel.buffer(*buffer).role == Role::Input,
            _ => true,
        };
    });
    fixed
}
