//! Assumptions (preconditions) of kernels: conditions on parameters and inputs that callers
//! guarantee, and spare capacity of outputs that the lowerer guarantees.
//!
//! Passes rely on assumptions. The interpreter checks them; machine code does not. Every tensor that
//! keeps the invariants of its levels fulfils them, and so do sizes that were checked with the
//! program.

use super::interp::{Failure, Memory};
use super::{BufferId, Builder, Expr, ExprId, Kernel};
use crate::algebra::{Value, eval};

/// An assumption. Its expressions consist of parameters and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assumption {
    /// A condition on parameters holds.
    Holds(ExprId),
    /// An input has a minimum length.
    Length {
        /// The input.
        buffer: BufferId,
        /// The minimum length.
        least: ExprId,
    },
    /// An input is at least as long as another one, plus a constant.
    Longer {
        /// The input.
        buffer: BufferId,
        /// The other input.
        other: BufferId,
        /// The constant.
        more: u32,
    },
    /// The elements of an input never decrease.
    Nondecreasing(BufferId),
    /// All elements of an input are below a bound.
    Below {
        /// The input.
        buffer: BufferId,
        /// The bound.
        bound: ExprId,
    },
    /// A conditional append to this buffer has reserved capacity even if the condition is false.
    SpareCapacity(BufferId),
}

impl Assumption {
    /// The same assumption with its expression replaced.
    pub fn map_expr(self, map: impl FnOnce(ExprId) -> ExprId) -> Assumption {
        match self {
            Assumption::Holds(cond) => Assumption::Holds(map(cond)),
            Assumption::Length { buffer, least } => Assumption::Length { buffer, least: map(least) },
            Assumption::Below { buffer, bound } => Assumption::Below { buffer, bound: map(bound) },
            Assumption::Longer { .. } | Assumption::Nondecreasing(_) | Assumption::SpareCapacity(_) => self,
        }
    }

    /// The expression in it.
    pub fn expr(self) -> Option<ExprId> {
        match self {
            Assumption::Holds(expr)
            | Assumption::Length { least: expr, .. }
            | Assumption::Below { bound: expr, .. } => Some(expr),
            Assumption::Longer { .. } | Assumption::Nondecreasing(_) | Assumption::SpareCapacity(_) => None,
        }
    }
}

impl Builder {
    /// Adds an assumption.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Assumption};
    /// use tamis_ir::{DType, algebra::Op};
    /// let mut b = Builder::new("f");
    /// let (n, m) = (b.param("n", DType::I64), b.param("m", DType::I64));
    /// let (n, m) = (b.get(n), b.get(m));
    /// let equal = b.call(Op::Eq, &[n, m]);
    /// b.assume(Assumption::Holds(equal));
    /// assert_eq!(b.finish().assumptions.len(), 1);
    /// ```
    pub fn assume(&mut self, assumption: Assumption) {
        if !self.kernel().assumptions.contains(&assumption) {
            self.assumptions_mut().push(assumption);
        }
    }

    /// Replaces the assumptions by equivalent ones.
    pub fn set_assumptions(&mut self, assumptions: Vec<Assumption>) {
        *self.assumptions_mut() = assumptions;
    }
}

/// Checks all assumptions, on at most `budget` elements of each array.
pub(super) fn check(kernel: &Kernel, memory: &Memory, budget: u64) -> Result<(), Failure> {
    let broken = |assumption: &Assumption| Err(Failure::Wrong(format!("the assumption {assumption:?} is violated")));
    let elements = |buffer: BufferId| {
        let values = memory.arrays[buffer.index()].values().iter();
        values.take(budget as usize).filter_map(|v| v.as_i64())
    };
    for assumption in &kernel.assumptions {
        let number = |expr: ExprId| value(kernel, memory, expr).and_then(Value::as_i64);
        let len = |buffer: BufferId| memory.arrays[buffer.index()].len() as i64;
        let kept = match *assumption {
            Assumption::Holds(cond) => value(kernel, memory, cond).is_some_and(Value::is_truthy),
            Assumption::Length { buffer, least } => number(least).is_some_and(|least| len(buffer) >= least),
            Assumption::Longer { buffer, other, more } => len(buffer) >= len(other) + i64::from(more),
            Assumption::Nondecreasing(buffer) => elements(buffer).is_sorted(),
            // A store that has no room fails by itself.
            Assumption::SpareCapacity(_) => true,
            Assumption::Below { buffer, bound } => {
                number(bound).is_some_and(|bound| elements(buffer).all(|element| element < bound))
            }
        };
        if !kept {
            return broken(assumption);
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
        Expr::Load(..) => None,
        Expr::Call(op, operand, operands) => {
            let values: Option<Vec<Value>> = operands.iter().map(|e| value(kernel, memory, *e)).collect();
            Some(eval(*op, *operand, &values?))
        }
    }
}
