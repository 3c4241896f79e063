//! What whoever calls a kernel promises about its parameters and inputs, and what whoever wrote it promises about what it writes.
//!
//! Passes rely on promises, and the interpreter checks them; machine code does not. They are true of every tensor that
//! keeps the invariants of its levels, and of sizes that were checked when the program was.

use super::interp::{Failure, Memory};
use super::{BufferId, Builder, Expr, ExprId, Kernel};
use crate::algebra::{Value, eval};

/// A promise. Expressions in it are made of parameters and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// A condition on parameters holds.
    Holds(ExprId),
    /// An input has at least so many elements.
    Length {
        /// The input.
        buffer: BufferId,
        /// The number.
        least: ExprId,
    },
    /// An input has at least as many elements as another, and some more.
    Longer {
        /// The input.
        buffer: BufferId,
        /// The other.
        other: BufferId,
        /// The difference.
        more: u32,
    },
    /// No element of an input is less than the one before it.
    Increasing(BufferId),
    /// All elements of an input are below a bound.
    Below {
        /// The input.
        buffer: BufferId,
        /// The bound.
        bound: ExprId,
    },
    /// A conditional append to this buffer has reserved capacity even if the condition is false.
    Spare(BufferId),
}

impl Fact {
    /// The same promise with its expression replaced.
    pub fn map_expr(self, map: impl FnOnce(ExprId) -> ExprId) -> Fact {
        match self {
            Fact::Holds(cond) => Fact::Holds(map(cond)),
            Fact::Length { buffer, least } => Fact::Length { buffer, least: map(least) },
            Fact::Below { buffer, bound } => Fact::Below { buffer, bound: map(bound) },
            Fact::Longer { .. } | Fact::Increasing(_) | Fact::Spare(_) => self,
        }
    }

    /// The expression in it.
    pub fn expr(self) -> Option<ExprId> {
        match self {
            Fact::Holds(expr) | Fact::Length { least: expr, .. } | Fact::Below { bound: expr, .. } => Some(expr),
            Fact::Longer { .. } | Fact::Increasing(_) | Fact::Spare(_) => None,
        }
    }
}

impl Builder {
    /// Adds a promise of the caller.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Fact};
    /// use tamis_ir::{DType, algebra::Op};
    /// let mut b = Builder::new("f");
    /// let (n, m) = (b.param("n", DType::I64), b.param("m", DType::I64));
    /// let (n, m) = (b.get(n), b.get(m));
    /// let equal = b.call(Op::Eq, &[n, m]);
    /// b.promise(Fact::Holds(equal));
    /// assert_eq!(b.finish().facts.len(), 1);
    /// ```
    pub fn promise(&mut self, fact: Fact) {
        if !self.kernel().facts.contains(&fact) {
            self.facts_mut().push(fact);
        }
    }

    /// Replaces the promises by others that say the same.
    pub fn set_facts(&mut self, facts: Vec<Fact>) {
        *self.facts_mut() = facts;
    }
}

/// Checks that promises are kept, as far as `budget` elements can be looked at.
pub(super) fn check(kernel: &Kernel, memory: &Memory, budget: u64) -> Result<(), Failure> {
    let broken = |fact: &Fact| Err(Failure::Wrong(format!("the assumption {fact:?} is violated")));
    let elements = |buffer: BufferId| {
        let values = memory.arrays[buffer.index()].values().iter();
        values.take(budget as usize).filter_map(|v| v.as_i64())
    };
    for fact in &kernel.facts {
        let number = |expr: ExprId| value(kernel, memory, expr).and_then(Value::as_i64);
        let len = |buffer: BufferId| memory.arrays[buffer.index()].len() as i64;
        let kept = match *fact {
            Fact::Holds(cond) => value(kernel, memory, cond).is_some_and(Value::is_truthy),
            Fact::Length { buffer, least } => number(least).is_some_and(|least| len(buffer) >= least),
            Fact::Longer { buffer, other, more } => len(buffer) >= len(other) + i64::from(more),
            Fact::Increasing(buffer) => elements(buffer).is_sorted(),
            // A store that has no room fails by itself.
            Fact::Spare(_) => true,
            Fact::Below { buffer, bound } => {
                number(bound).is_some_and(|bound| elements(buffer).all(|element| element < bound))
            }
        };
        if !kept {
            return broken(fact);
        }
    }
    Ok(())
}

/// The value of an expression of parameters.
fn value(kernel: &Kernel, memory: &Memory, id: ExprId) -> Option<Value> {
    match kernel.expr(id) {
        Expr::Const(value) => Some(*value),
        Expr::Var(var) => {
            let at = kernel.params.iter().position(|param| param == var)?;
            memory.scalars.get(at).copied()
        }
        Expr::Load(..) | Expr::Vector(_) => None,
        Expr::Call(op, operand, operands) => {
            let values: Option<Vec<Value>> = operands.iter().map(|e| value(kernel, memory, *e)).collect();
            Some(eval(*op, *operand, &values?))
        }
    }
}
