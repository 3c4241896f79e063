//! Interned expressions: each distinct expression exists once, so equality is one comparison.

use super::Expr;
use rustc_hash::FxHashMap;

/// An expression in a pool. Ids are given in order, operands before the expressions that use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// This id as an index into tables that run parallel to the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
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
#[derive(Clone, Debug, Default)]
pub struct ExprPool {
    exprs: Vec<Expr>,
    ids: FxHashMap<Expr, ExprId>,
}

impl ExprPool {
    /// The id of an expression, which is added if it is new.
    pub fn intern(&mut self, expr: Expr) -> ExprId {
        if let Some(id) = self.ids.get(&expr) {
            return *id;
        }
        let id = ExprId(self.exprs.len() as u32);
        self.exprs.push(expr.clone());
        self.ids.insert(expr, id);
        id
    }

    /// The expression with this id.
    pub fn get(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// All ids, operands before their users.
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..self.exprs.len() as u32).map(ExprId)
    }
}

impl PartialEq for ExprPool {
    fn eq(&self, other: &ExprPool) -> bool {
        self.exprs == other.exprs
    }
}
