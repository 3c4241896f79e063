//! Index facts: the definitions of immutable variables, and orderings between integers that follow
//! from them.

use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Role, Stmt, VarId};

/// Definitions and ranges of the immutable variables of a block.
#[derive(Default)]
pub(super) struct IndexFacts {
    /// Definitions of named values.
    names: FxHashMap<VarId, ExprId>,
    /// Ranges of loop counters.
    counters: FxHashMap<VarId, (ExprId, ExprId)>,
    /// Results of lower-bound searches in inputs: all elements from the start up to the position
    /// are below the key.
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

    /// The definition of a name, expanded. It is valid in nested blocks: it consists of counters
    /// and loop invariants.
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

    /// True if `a < b` is certain: `a` is a counter with bound `b`, or an element of a sorted
    /// buffer before the position of `b`.
    pub(super) fn is_below(&self, kernel: &Kernel, id: ExprId, limit: ExprId) -> bool {
        // Both have kept their values since the search or the loop entry.
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

/// True if an expression consists of inputs and immutable variables.
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
