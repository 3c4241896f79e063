//! Vector values: expressions of several lanes.
//!
//! The number of lanes is part of an expression's type. A load whose index has lanes is contiguous
//! (the index is a ramp of step 1), strided (another step) or a gather. Operators work lane by
//! lane, and a single value beside vectors is the same in every lane. `select` with a mask blends.

use super::{BufferId, Expr, ExprId};
use crate::algebra::Op;

/// The largest number of lanes.
pub const MAX_LANES: u16 = 64;

/// A vector, or a value that is made of one.
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
    pub fn operands(self) -> impl Iterator<Item = ExprId> {
        let (first, more) = match self {
            VectorExpr::Ramp { start, .. } => (start, [None, None]),
            VectorExpr::Splat { value, .. } | VectorExpr::Reduce { value, .. } => (value, [None, None]),
            VectorExpr::Masked { index, mask, otherwise, .. } => (mask, [Some(index), Some(otherwise)]),
        };
        std::iter::once(first).chain(more.into_iter().flatten())
    }

    /// The same with its expressions replaced, in the order of evaluation.
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
    pub fn buffer(self) -> Option<BufferId> {
        match self {
            VectorExpr::Masked { buffer, .. } => Some(buffer),
            VectorExpr::Ramp { .. } | VectorExpr::Splat { .. } | VectorExpr::Reduce { .. } => None,
        }
    }
}

impl Expr {
    /// The expressions inside.
    pub fn operands(&self) -> Vec<ExprId> {
        match self {
            Expr::Const(_) | Expr::Var(_) => Vec::new(),
            Expr::Load(_, index) => vec![*index],
            Expr::Call(_, _, operands) => operands.clone(),
            Expr::Vector(vector) => vector.operands().collect(),
        }
    }
}
