//! Vector values: expressions of several lanes.
//!
//! The number of lanes is part of an expression's type. A load whose index has lanes is contiguous
//! (the index is a ramp of step 1), strided (another step) or a gather. Operators work lane by
//! lane, and a single value beside vectors is the same in every lane. `select` with a mask blends.

use super::{BufferId, Expr, ExprId};
use crate::algebra::Op;

/// The largest number of lanes.
///
/// ```
/// use tamis_ir::kernel::{Builder, MAX_LANES, VectorExpr};
/// let mut b = Builder::new("widest");
/// let value = b.int(7);
/// let widest = b.vector(VectorExpr::Splat { value, lanes: MAX_LANES });
/// assert_eq!(b.kernel().exprs.lanes(widest), MAX_LANES);
/// ```
pub const MAX_LANES: u16 = 64;

/// A vector, or a value that is made of one.
///
/// ```
/// use tamis_ir::kernel::{Builder, VectorExpr};
/// let mut b = Builder::new("splat");
/// let value = b.int(7);
/// let splat = b.vector(VectorExpr::Splat { value, lanes: 4 });
/// assert_eq!(b.kernel().exprs.lanes(splat), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorExpr {
    /// `start`, `start + step`, `start + 2*step`, and so on; integers.
    Ramp {
        /// The value of the first lane.
        start: ExprId,
        /// The distance between lanes.
        step: i64,
        /// The number of lanes.
        lanes: u16,
    },
    /// One value in every lane.
    Splat {
        /// The value.
        value: ExprId,
        /// The number of lanes.
        lanes: u16,
    },
    /// Elements at an index of several lanes. Where the mask is false, nothing is read, and the
    /// lane holds `otherwise`.
    Masked {
        /// The buffer.
        buffer: BufferId,
        /// The index of each lane.
        index: ExprId,
        /// The lanes that are read.
        mask: ExprId,
        /// The value of the other lanes.
        otherwise: ExprId,
    },
    /// The lanes of a vector, combined by an operator into a single value: the upper half with the
    /// lower half, until one lane remains.
    Reduce {
        /// The operator, which is associative.
        op: Op,
        /// The vector.
        value: ExprId,
    },
}

impl VectorExpr {
    /// The expressions inside, in the order of evaluation.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, VectorExpr};
    /// let value = Builder::new("splat").int(7);
    /// assert!(VectorExpr::Splat { value, lanes: 4 }.operands().eq([value]));
    /// ```
    pub fn operands(self) -> impl Iterator<Item = ExprId> {
        let (first, more) = match self {
            VectorExpr::Ramp { start, .. } => (start, [None, None]),
            VectorExpr::Splat { value, .. } | VectorExpr::Reduce { value, .. } => (value, [None, None]),
            VectorExpr::Masked { index, mask, otherwise, .. } => (mask, [Some(index), Some(otherwise)]),
        };
        std::iter::once(first).chain(more.into_iter().flatten())
    }

    /// The same with its expressions replaced, in the order of evaluation.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, VectorExpr};
    /// let mut b = Builder::new("splat");
    /// let (value, other) = (b.int(7), b.int(8));
    /// let splat = VectorExpr::Splat { value, lanes: 4 };
    /// assert_eq!(splat.map(|_| other), VectorExpr::Splat { value: other, lanes: 4 });
    /// ```
    pub fn map(self, mut map: impl FnMut(ExprId) -> ExprId) -> VectorExpr {
        match self {
            VectorExpr::Ramp { start, step, lanes } => VectorExpr::Ramp { start: map(start), step, lanes },
            VectorExpr::Splat { value, lanes } => VectorExpr::Splat { value: map(value), lanes },
            VectorExpr::Masked { buffer, index, mask, otherwise } => {
                let (mask, index) = (map(mask), map(index));
                VectorExpr::Masked { buffer, index, mask, otherwise: map(otherwise) }
            }
            VectorExpr::Reduce { op, value } => VectorExpr::Reduce { op, value: map(value) },
        }
    }

    /// The buffer that is read.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, VectorExpr};
    /// let value = Builder::new("splat").int(7);
    /// assert_eq!(VectorExpr::Splat { value, lanes: 4 }.buffer(), None);
    /// ```
    pub fn buffer(self) -> Option<BufferId> {
        match self {
            VectorExpr::Masked { buffer, .. } => Some(buffer),
            VectorExpr::Ramp { .. } | VectorExpr::Splat { .. } | VectorExpr::Reduce { .. } => None,
        }
    }
}

impl Expr {
    /// The expressions inside.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("copy");
    /// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// let zero = b.int(0);
    /// let first = b.load(x, zero);
    /// assert_eq!(b.kernel().expr(first).operands(), [zero]);
    /// ```
    pub fn operands(&self) -> Vec<ExprId> {
        match self {
            Expr::Const(_) | Expr::Var(_) => Vec::new(),
            Expr::Load(_, index) => vec![*index],
            Expr::Call(_, _, operands) => operands.clone(),
            Expr::Vector(vector) => vector.operands().collect(),
        }
    }
}
