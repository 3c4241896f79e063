//! Affine forms: `sum of coefficient * atom, plus a constant`, the normal form of subscripts.
//!
//! The resolver of programs and the reader of index notation put every subscript into this form once, before anything
//! asks what it covers; dimension inference computes with it. Arithmetic is checked: a form that would overflow is none,
//! and the expression stays as it was written.

use crate::algebra::{DType, Op, Value, eval};

/// Sums of more terms are left alone.
const MAX_TERMS: usize = 64;

/// `sum of coefficient * atom, plus a constant`. Atoms are in the order in which they were added, each once.
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

/// An affine form as arithmetic: the parts of a sum, the first of which is not subtracted.
pub(crate) enum Part<A> {
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

    /// An operator on affine forms, if the result is one and nothing overflows.
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

    /// The terms as people write them, each with whether it is subtracted: `2*i - j + 3`, `5 - i`.
    pub(crate) fn parts(&self) -> Vec<(bool, Part<A>)> {
        let mut parts: Vec<(bool, Part<A>)> = Vec::new();
        let first = self.terms.iter().position(|(_, c)| *c > 0);
        if let Some(first) = first {
            let (atom, coefficient) = &self.terms[first];
            parts.push((false, Part::Multiple(atom.clone(), *coefficient)));
        } else if self.constant > 0 || self.terms.is_empty() {
            parts.push((false, Part::Constant(self.constant)));
        }
        let constant_is_first = first.is_none() && !parts.is_empty();
        for (k, (atom, coefficient)) in self.terms.iter().enumerate() {
            // The least number has no positive counterpart; nor is there anything yet to subtract from.
            let subtracted = *coefficient < 0 && *coefficient != i64::MIN && !parts.is_empty();
            let coefficient = if subtracted { -coefficient } else { *coefficient };
            if Some(k) != first {
                parts.push((subtracted, Part::Multiple(atom.clone(), coefficient)));
            }
        }
        if self.constant != 0 && !constant_is_first {
            let subtracted = self.constant < 0 && self.constant != i64::MIN;
            let constant = if subtracted { -self.constant } else { self.constant };
            parts.push((subtracted, Part::Constant(constant)));
        }
        parts
    }
}
