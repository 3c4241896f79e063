//! Interned expressions: each distinct expression exists once, so equality is one comparison.

use super::Expr;
use crate::intern::{Interner, ids};

ids! {
    /// An expression in a pool. Ids increase: operands precede the expressions that use them.
    ExprId
}

/// All expressions of a program.
///
/// ```
/// use tamis_ir::program::{Expr, ExprPool};
/// use tamis_ir::{Value, algebra::Op};
/// let mut pool = ExprPool::default();
/// let two = pool.intern(Expr::Literal(Value::I64(2)));
/// let sum = pool.intern(Expr::Call(Op::Add, vec![two, two]));
/// assert_eq!(pool.intern(Expr::Call(Op::Add, vec![two, two])), sum);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExprPool {
    exprs: Interner<Expr>,
}

impl ExprPool {
    /// The id of an expression, which is added if it is new.
    pub fn intern(&mut self, expr: Expr) -> ExprId {
        ExprId(self.exprs.intern(expr))
    }

    /// The expression with this id.
    pub fn get(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.0)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ids, operands before their users.
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..self.len() as u32).map(ExprId)
    }
}
