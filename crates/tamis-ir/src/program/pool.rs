//! Interned expressions: each distinct expression exists once, so equality is one comparison.

use super::Expr;
use crate::intern::{Interner, ids};

ids! {"program":
    /// An expression in a pool. Ids increase: operands precede the expressions that use them.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::program::{Expr, ExprId, ExprPool};
    /// let mut pool = ExprPool::default();
    /// assert_eq!(pool.intern(Expr::Literal(Value::I64(2))), ExprId(0));
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::{Value, program::{Expr, ExprPool}};
    /// let mut pool = ExprPool::default();
    /// let two = pool.intern(Expr::Literal(Value::I64(2)));
    /// assert_eq!(pool.intern(Expr::Literal(Value::I64(2))), two);
    /// ```
    pub fn intern(&mut self, expr: Expr) -> ExprId {
        ExprId(self.exprs.intern(expr))
    }

    /// The expression with this id.
    ///
    /// ```
    /// use tamis_ir::{Value, program::{Expr, ExprPool}};
    /// let mut pool = ExprPool::default();
    /// let two = pool.intern(Expr::Literal(Value::I64(2)));
    /// assert_eq!(pool.get(two), &Expr::Literal(Value::I64(2)));
    /// ```
    pub fn get(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.0)
    }

    /// The number of elements.
    ///
    /// ```
    /// use tamis_ir::{Value, program::{Expr, ExprPool}};
    /// let mut pool = ExprPool::default();
    /// pool.intern(Expr::Literal(Value::I64(2)));
    /// pool.intern(Expr::Literal(Value::I64(2)));
    /// assert_eq!(pool.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// True if there are none.
    ///
    /// ```
    /// assert!(tamis_ir::program::ExprPool::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ids, operands before their users.
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// for id in program.exprs.ids() {
    ///     assert!(program.exprs.get(id).operands().iter().all(|operand| *operand < id));
    /// }
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..self.len() as u32).map(ExprId)
    }
}
