//! Assumptions of kernels: preconditions on parameters and inputs, and guarantees about outputs.
//!
//! Passes rely on assumptions and the interpreter checks them; machine code does not. They hold for
//! every tensor that keeps the invariants of its levels, and for sizes that passed the checks of
//! the program.

use super::interp::{Failure, Memory};
use super::{BufferId, Builder, Expr, ExprId, Kernel};
use crate::algebra::{Value, eval};

/// An assumption. Its expressions consist of parameters and constants.
///
/// ```
/// use tamis_ir::kernel::{Assumption, BufferId, Kernel};
/// let text = "kernel f\n    in pos: index u32[]\n    assume nondecreasing(pos)\nbegin\n";
/// assert_eq!(Kernel::parse(text)?.assumptions, [Assumption::Nondecreasing(BufferId(0))]);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assumption {
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
    ///
    /// ```
    /// use tamis_ir::kernel::{Assumption, ExprId};
    /// let fact = Assumption::Holds(ExprId(1));
    /// assert_eq!(fact.map_expr(|_| ExprId(2)), Assumption::Holds(ExprId(2)));
    /// ```
    pub fn map_expr(self, map: impl FnOnce(ExprId) -> ExprId) -> Assumption {
        match self {
            Assumption::Holds(cond) => Assumption::Holds(map(cond)),
            Assumption::Length { buffer, least } => Assumption::Length { buffer, least: map(least) },
            Assumption::Below { buffer, bound } => Assumption::Below { buffer, bound: map(bound) },
            Assumption::Longer { .. } | Assumption::Nondecreasing(_) | Assumption::SpareCapacity(_) => self,
        }
    }

    /// The expression in it.
    ///
    /// ```
    /// use tamis_ir::kernel::{Assumption, BufferId, ExprId};
    /// assert_eq!(Assumption::Holds(ExprId(1)).expr(), Some(ExprId(1)));
    /// assert_eq!(Assumption::Nondecreasing(BufferId(0)).expr(), None);
    /// ```
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
    pub fn assume(&mut self, fact: Assumption) {
        if !self.kernel().assumptions.contains(&fact) {
            self.assumptions_mut().push(fact);
        }
    }

    /// Replaces the assumptions by equivalent ones.
    ///
    /// ```
    /// use tamis_ir::kernel::{Assumption, Builder, Kernel};
    /// let text = "kernel f\n    in pos: index u32[]\n    assume nondecreasing(pos)\nbegin\n";
    /// let (mut b, body) = Builder::resume(Kernel::parse(text)?);
    /// b.set_assumptions(Vec::new());
    /// assert!(b.finish_with(body).assumptions.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn set_assumptions(&mut self, facts: Vec<Assumption>) {
        *self.assumptions_mut() = facts;
    }
}

/// Checks the assumptions on the first `budget` elements of each buffer.
pub(super) fn check(kernel: &Kernel, memory: &Memory, budget: u64) -> Result<(), Failure> {
    let broken = |fact: &Assumption| Err(Failure::Wrong(format!("the assumption {fact:?} is violated")));
    let elements = |buffer: BufferId| {
        let values = memory.arrays[buffer.index()].values().iter();
        values.take(budget as usize).filter_map(|v| v.as_i64())
    };
    for fact in &kernel.assumptions {
        let number = |expr: ExprId| value(kernel, memory, expr).and_then(Value::as_i64);
        let len = |buffer: BufferId| memory.arrays[buffer.index()].len() as i64;
        let kept = match *fact {
            Assumption::Holds(cond) => value(kernel, memory, cond).is_some_and(Value::is_truthy),
            Assumption::Length { buffer, least } => number(least).is_some_and(|least| len(buffer) >= least),
            Assumption::Longer { buffer, other, more } => len(buffer) >= len(other) + i64::from(more),
            Assumption::Nondecreasing(buffer) => elements(buffer).is_sorted(),
            // A store out of bounds fails by itself.
            Assumption::SpareCapacity(_) => true,
            Assumption::Below { buffer, bound } => {
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
