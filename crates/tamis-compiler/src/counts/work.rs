//! Static work of statements per execution: elements read and written, operations.

use std::collections::BTreeMap;
use tamis_ir::kernel::{BufferId, Expr, ExprId, Kernel, Stmt};

/// The work of statements, each executed once.
///
/// A shared expression of a statement counts once; conditionally evaluated operands count as
/// evaluated. Machine code may do less: it keeps repeated loads in registers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Elements read, by buffer.
    pub loads: BTreeMap<BufferId, u64>,
    /// Elements written, by buffer.
    pub stores: BTreeMap<BufferId, u64>,
    /// Operators applied.
    pub operations: u64,
    /// Elements inserted into workspaces.
    pub insertions: u64,
}

impl Work {
    /// Adds the work of a statement, without nested blocks.
    pub(super) fn add(&mut self, kernel: &Kernel, stmt: &Stmt) {
        let mut roots = Vec::new();
        // The condition of a loop is counted with its iterations, not with its entries.
        if !matches!(stmt, Stmt::While { .. }) {
            stmt.each_expr(|expr| roots.push(expr));
        }
        self.evaluate(kernel, &roots);
        match stmt {
            Stmt::Store { buffer, .. } => *self.stores.entry(*buffer).or_default() += 1,
            Stmt::Insert { workspace, .. } => {
                self.insertions += 1;
                for buffer in &workspace.coordinates {
                    *self.stores.entry(*buffer).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// Adds the evaluation of expressions, shared ones once.
    pub(super) fn evaluate(&mut self, kernel: &Kernel, roots: &[ExprId]) {
        let mut seen: Vec<ExprId> = Vec::new();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            match kernel.expr(id) {
                Expr::Const(_) | Expr::Var(_) => {}
                expr if !seen.contains(&id) => {
                    seen.push(id);
                    match expr {
                        Expr::Load(buffer, index) => {
                            *self.loads.entry(*buffer).or_default() += 1;
                            open.push(*index);
                        }
                        Expr::Call(_, _, operands) => {
                            self.operations += 1;
                            open.extend(operands);
                        }
                        Expr::Vector(vector) => {
                            vector.buffer().into_iter().for_each(|buffer| *self.loads.entry(buffer).or_default() += 1);
                            self.operations += 1;
                            open.extend(vector.operands());
                        }
                        Expr::Const(_) | Expr::Var(_) => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// The cost in operations: a load counts as two, an insertion as many.
    pub fn cost(&self) -> f64 {
        let moved: u64 = self.loads.values().chain(self.stores.values()).sum();
        self.operations as f64 + 2.0 * moved as f64 + 16.0 * self.insertions as f64
    }
}
