//! Affine forms: `sum of coefficient * atom, plus a constant`, the normal form of subscripts.
//!
//! The resolver of programs and the reader of index notation put every subscript into this form
//! once. Later passes see only this form; dimension inference computes with it. Arithmetic is
//! checked: an expression whose form would overflow has no form, and stays as it was written.

use crate::algebra::{DType, Op, Value, eval};

/// Longer sums have no affine form.
const MAX_TERMS: usize = 64;

/// `sum of coefficient * atom, plus a constant`. Each atom occurs once, in insertion order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Affine<A> {
    pub(crate) terms: Vec<(A, i64)>,
    pub(crate) constant: i64,
}

impl<A> Default for Affine<A> {
    fn default() -> Affine<A> {
        Affine { terms: Vec::new(), constant: 0 }
    }
}

/// A term of an affine form; the first term of a sum is not subtracted.
pub(crate) enum AffineTerm<A> {
    /// A constant.
    Constant(i64),
    /// A multiple of an atom.
    Multiple(A, i64),
}

impl<A: Clone + PartialEq> Affine<A> {
    pub(crate) fn constant(constant: i64) -> Affine<A> {
        Affine { terms: Vec::new(), constant }
    }

    pub(crate) fn atom(atom: A) -> Affine<A> {
        Affine { terms: vec![(atom, 1)], constant: 0 }
    }

    /// Applies an operator to affine forms; `None` if the result is not affine or overflows.
    pub(crate) fn apply(op: Op, operands: &[Affine<A>]) -> Option<Affine<A>> {
        match (op, operands) {
            (Op::Add, [a, b]) => a.clone().plus(b, 1),
            (Op::Sub, [a, b]) => a.clone().plus(b, -1),
            (Op::Neg, [a]) => Affine::default().plus(a, -1),
            (Op::Mul, [a, b]) if a.terms.is_empty() => Affine::default().plus(b, a.constant),
            (Op::Mul, [a, b]) if b.terms.is_empty() => Affine::default().plus(a, b.constant),
            (Op::FloorDiv | Op::Mod | Op::Min | Op::Max, _) if operands.iter().all(|o| o.terms.is_empty()) => {
                let values: Vec<Value> = operands.iter().map(|o| Value::I64(o.constant)).collect();
                eval(op, DType::I64, &values).as_i64().map(Affine::constant)
            }
            _ => None,
        }
    }

    /// `self + scale * other`, if nothing overflows.
    fn plus(mut self, other: &Affine<A>, scale: i64) -> Option<Affine<A>> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(scale)?)?;
        for (atom, coefficient) in &other.terms {
            let added = coefficient.checked_mul(scale)?;
            match self.terms.iter_mut().find(|(a, _)| a == atom) {
                Some((_, c)) => *c = c.checked_add(added)?,
                None => self.terms.push((atom.clone(), added)),
            }
        }
        self.terms.retain(|(_, c)| *c != 0);
        (self.terms.len() <= MAX_TERMS).then_some(self)
    }

    /// The terms in source order, each with a flag that says whether it is subtracted: `2*i - j +
    /// 3`, `5 - i`.
    pub(crate) fn parts(&self) -> Vec<(bool, AffineTerm<A>)> {
        let mut parts: Vec<(bool, AffineTerm<A>)> = Vec::new();
        let first = self.terms.iter().position(|(_, c)| *c > 0);
        if let Some(first) = first {
            let (atom, coefficient) = &self.terms[first];
            parts.push((false, AffineTerm::Multiple(atom.clone(), *coefficient)));
        } else if self.constant > 0 || self.terms.is_empty() {
            parts.push((false, AffineTerm::Constant(self.constant)));
        }
        let constant_is_first = first.is_none() && !parts.is_empty();
        for (k, (atom, coefficient)) in self.terms.iter().enumerate() {
            // `i64::MIN` has no positive counterpart, and the first term cannot be subtracted.
            let subtracted = *coefficient < 0 && *coefficient != i64::MIN && !parts.is_empty();
            let coefficient = if subtracted { -coefficient } else { *coefficient };
            if Some(k) != first {
                parts.push((subtracted, AffineTerm::Multiple(atom.clone(), coefficient)));
            }
        }
        if self.constant != 0 && !constant_is_first {
            let subtracted = self.constant < 0 && self.constant != i64::MIN;
            let constant = if subtracted { -self.constant } else { self.constant };
            parts.push((subtracted, AffineTerm::Constant(constant)));
        }
        parts
    }
}
