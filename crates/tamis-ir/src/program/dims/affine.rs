//! Affine forms of integer expressions over loop indices, and their ranges.

use super::super::{Expr, ExprId, Extent, IndexId};
use super::DimInference;
use crate::algebra::{DType, Op};

pub(super) type IndexAffine = crate::affine::Affine<IndexId>;

impl DimInference<'_> {
    /// Computes the affine forms of bound names, in program order: each is analysed once,
    /// regardless of the number of its uses.
    pub(super) fn understand_lets(&mut self) {
        for k in 0..self.lets.len() {
            let (var, value) = self.lets[k];
            if let Some(affine) = self.affine(value) {
                self.understood.insert(var, affine);
            }
        }
    }

    /// The value of an integer expression that does not depend on loops or tensor elements.
    pub(super) fn constant(&mut self, id: ExprId) -> Option<i64> {
        self.affine(id).filter(|affine| affine.terms.is_empty()).map(|affine| affine.constant)
    }

    /// The affine form of an expression, if it has one. Only `i64` expressions have: other types
    /// wrap around elsewhere.
    pub(super) fn affine(&mut self, id: ExprId) -> Option<IndexAffine> {
        let program = self.program;
        match program.expr(id) {
            Expr::Literal(value) => value.as_i64().map(IndexAffine::constant),
            Expr::Index(index) => Some(IndexAffine::atom(*index)),
            Expr::Var(var) => self.understood.get(var).cloned(),
            Expr::Size(tensor, dim) if *dim < self.ranks[tensor.index()] => {
                let node = self.dim_node(*tensor, *dim);
                let node = self.find(node);
                self.known[node].as_ref().map(|known| IndexAffine::constant(known.size as i64))
            }
            Expr::Read(access) if access.subscripts.is_empty() => {
                let scalar = self.scalars.get(&access.tensor).filter(|scalar| scalar.dtype == DType::I64)?;
                Some(IndexAffine::constant(scalar.value))
            }
            Expr::Call(Op::Cast(DType::I64), operands) => match program.expr(operands[0]) {
                Expr::Read(access) if access.subscripts.is_empty() => {
                    self.scalars.get(&access.tensor).map(|scalar| IndexAffine::constant(scalar.value))
                }
                _ => self.affine(operands[0]),
            },
            Expr::Call(op, operands) => {
                let operands: Option<Vec<IndexAffine>> = operands.iter().map(|operand| self.affine(*operand)).collect();
                IndexAffine::apply(*op, &operands?)
            }
            _ => None,
        }
    }

    /// The first value of an index and one past its last, `None` if unknown.
    pub(super) fn index_range(&mut self, index: IndexId) -> Option<(i64, i64)> {
        match self.extents.get(&index)?.0 {
            Extent::Infer => {
                let node = self.find(index.index());
                self.known[node].as_ref().map(|known| (known.start, (known.size as i64).max(known.start)))
            }
            Extent::Range(start, stop) => {
                let (start, stop) = (self.constant(start)?, self.constant(stop)?);
                Some((start, stop.max(start)))
            }
        }
    }

    /// The least and greatest value of an affine form, without the term of `except`; an index
    /// without values counts as its start.
    pub(super) fn range(&mut self, affine: &IndexAffine, except: Option<IndexId>) -> Option<(i64, i64)> {
        let (mut least, mut greatest) = (affine.constant, affine.constant);
        for (index, coefficient) in &affine.terms {
            if Some(*index) == except {
                continue;
            }
            let (first, stop) = self.index_range(*index)?;
            let last = if stop > first { stop - 1 } else { first };
            let (a, b) = (coefficient.checked_mul(first)?, coefficient.checked_mul(last)?);
            least = least.checked_add(a.min(b))?;
            greatest = greatest.checked_add(a.max(b))?;
        }
        Some((least, greatest))
    }
}

pub(super) fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) == (b < 0)) { q + 1 } else { q }
}
