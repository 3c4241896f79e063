//! Masks: comparisons of sums over loop indices and sizes, such as `i <= j`.
//!
//! The range of its innermost loop in which a mask holds is known before that loop starts, so a
//! mask is structure, like sparsity.

use super::{Expr, ExprId, IndexId, Program, StmtKind, TensorId, VarId};
use crate::algebra::Op;
use rustc_hash::FxHashMap;

/// A larger coefficient makes it arithmetic instead of a mask: bounds computed from it could
/// overflow.
const MAX_COEFFICIENT: i64 = 1 << 20;
const MAX_CONSTANT: i64 = 1 << 60;

/// Longer sums are no masks, because linear forms of all expressions are kept in memory.
const MAX_TERMS: usize = 16;

/// `divisor * index op bound`, where the bound depends only on outer loops and on sizes.
///
/// ```
/// use tamis_ir::algebra::Op;
/// use tamis_ir::program::{IndexId, Linear, Mask};
/// let bound = Linear { constant: 9, ..Linear::default() };
/// let mask = Mask { op: Op::Lt, index: IndexId(0), divisor: 2, bound };
/// assert!(mask.bound.terms.is_empty(), "2 * i < 9");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The comparison.
    pub op: Op,
    /// The innermost index.
    pub index: IndexId,
    /// At least 1.
    pub divisor: i64,
    /// The right-hand side.
    pub bound: Linear,
}

/// A structural comparison.
///
/// ```
/// use tamis_ir::program::{Comparison, Masks, Program, StmtKind};
/// let program = Program::parse("
/// def f(A):
///     s = scalar(0.0)
///     for i, j in _:
///         if abs(i - j) <= 2:
///             s += A[i,j]
///     return s
/// ")?;
/// let mut masks = Masks::new(&program);
/// program.visit(&mut |stmt| {
///     if let StmtKind::If { cond, .. } = &stmt.kind {
///         assert!(matches!(masks.comparison(*cond), Some(Comparison::Both(..))));
///     }
/// });
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// One mask.
    One(Mask),
    /// Both hold: `abs(i - j) <= 2`.
    Both(Mask, Mask),
    /// One of two holds: `abs(i - j) > 2`.
    Either(Mask, Mask),
}

/// A sum of multiples of indices and sizes, and a constant.
///
/// ```
/// use tamis_ir::program::{Atom, IndexId, Linear};
/// let sum = Linear { terms: vec![(Atom::Index(IndexId(0)), 2)], constant: 1 };
/// assert_ne!(sum, Linear::default(), "2 * i + 1");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// The terms, in order, each once and with a coefficient that is not 0.
    pub terms: Vec<(Atom, i64)>,
    /// The constant term.
    pub constant: i64,
}

/// An atom of a sum.
///
/// ```
/// use tamis_ir::program::{Atom, IndexId, TensorId};
/// assert!(Atom::Index(IndexId(7)) < Atom::Size(TensorId(0), 1), "indices come first");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A loop index.
    Index(IndexId),
    /// The size of a dimension.
    Size(TensorId, usize),
}

impl Linear {
    fn constant(constant: i64) -> Option<Linear> {
        (-MAX_CONSTANT..=MAX_CONSTANT).contains(&constant).then_some(Linear { terms: Vec::new(), constant })
    }

    fn atom(atom: Atom) -> Linear {
        Linear { terms: vec![(atom, 1)], constant: 0 }
    }

    /// `self + scale * other`, if it stays in bounds.
    fn plus(mut self, other: &Linear, scale: i64) -> Option<Linear> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(scale)?)?;
        for (atom, coefficient) in &other.terms {
            let added = coefficient.checked_mul(scale)?;
            match self.terms.binary_search_by_key(atom, |(a, _)| *a) {
                Ok(k) => self.terms[k].1 = self.terms[k].1.checked_add(added)?,
                Err(k) => self.terms.insert(k, (*atom, added)),
            }
        }
        self.terms.retain(|(_, c)| *c != 0);
        let small = self.terms.iter().all(|(_, c)| c.unsigned_abs() <= MAX_COEFFICIENT.unsigned_abs());
        let fits = small && self.constant.unsigned_abs() <= MAX_CONSTANT.unsigned_abs();
        (fits && self.terms.len() <= MAX_TERMS).then_some(self)
    }

    fn times(&self, scale: i64) -> Option<Linear> {
        Linear::default().plus(self, scale)
    }

    /// The greatest common divisor of all terms.
    fn divisor(&self) -> i64 {
        self.terms.iter().map(|(_, c)| c.unsigned_abs()).fold(self.constant.unsigned_abs(), greatest_common) as i64
    }
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

impl Mask {
    /// `left op right`, solved for the innermost index, if there is one.
    fn of(op: Op, left: &Linear, right: &Linear) -> Option<Mask> {
        let mut difference = left.clone().plus(right, -1)?;
        // Loop indices are numbered outermost first.
        let innermost = |(atom, _): &(Atom, i64)| matches!(atom, Atom::Index(_));
        let at = difference.terms.iter().rposition(innermost)?;
        let common = difference.divisor().max(1);
        difference.constant /= common;
        difference.terms.iter_mut().for_each(|(_, c)| *c /= common);
        let (atom, coefficient) = difference.terms.remove(at);
        let Atom::Index(index) = atom else { return None };
        let op = if coefficient < 0 { flipped(op)? } else { op };
        let bound = difference.times(if coefficient < 0 { 1 } else { -1 })?;
        Some(Mask { op, index, divisor: coefficient.abs(), bound })
    }
}

/// The comparison with its sides exchanged.
fn flipped(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        Op::Eq | Op::Ne => op,
        _ => return None,
    })
}

/// The masks of a program.
///
/// ```
/// use tamis_ir::program::{Masks, Program, StmtKind};
/// let program = Program::parse("
/// def f(A):
///     s = scalar(0.0)
///     for i, j in _:
///         if i <= j:
///             s += A[i,j]
///     return s
/// ")?;
/// let mut masks = Masks::new(&program);
/// program.visit(&mut |stmt| {
///     if let StmtKind::If { cond, .. } = &stmt.kind {
///         assert!(masks.is_mask(*cond));
///     }
/// });
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Masks<'a> {
    program: &'a Program,
    lets: FxHashMap<VarId, ExprId>,
    /// The memoised forms, one per expression.
    forms: FxHashMap<ExprId, Option<Linear>>,
}

impl<'a> Masks<'a> {
    /// Analyses a program.
    ///
    /// ```
    /// use tamis_ir::{Notation, Value, program::{Expr, Masks}};
    /// let mut program = Notation::parse("s = x[i]")?.plain()?;
    /// let number = program.exprs.intern(Expr::Literal(Value::I64(7)));
    /// assert!(!Masks::new(&program).is_mask(number));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn new(program: &'a Program) -> Masks<'a> {
        let mut masks = Masks { program, lets: FxHashMap::default(), forms: FxHashMap::default() };
        // Bound names are analysed in program order, so that each finds the forms of its operands,
        // without deep recursion.
        program.visit(&mut |stmt| {
            if let StmtKind::Let { var, value } = &stmt.kind {
                masks.lets.insert(*var, *value);
                masks.linear(*value);
            }
        });
        masks
    }

    /// True if an expression is a mask, or masks combined by `and`, `or` and `not`.
    ///
    /// ```
    /// use tamis_ir::program::{Masks, Program, StmtKind};
    /// let is_mask = |condition: &str| {
    ///     let text = format!("
    /// def f(A):
    ///     s = scalar(0.0)
    ///     for i, j in _:
    ///         if {condition}:
    ///             s += A[i,j]
    ///     return s
    /// ");
    ///     let program = Program::parse(&text).unwrap();
    ///     let mut masks = Masks::new(&program);
    ///     let mut found = false;
    ///     program.visit(&mut |stmt| {
    ///         if let StmtKind::If { cond, .. } = &stmt.kind {
    ///             found = masks.is_mask(*cond);
    ///         }
    ///     });
    ///     found
    /// };
    /// assert!(is_mask("i <= j") && is_mask("2*i < 3*j + 1") && is_mask("abs(i - j) <= 2 or not (j < A.shape[1] - i)"));
    /// assert!(!is_mask("i * j < 4") && !is_mask("A[i,j] < 1") && !is_mask("i < i + 1"));
    /// ```
    pub fn is_mask(&mut self, id: ExprId) -> bool {
        let program = self.program;
        match program.expr(id) {
            Expr::Call(Op::And | Op::Or | Op::Not, operands) => operands.iter().all(|e| self.is_mask(*e)),
            _ => self.comparison(id).is_some(),
        }
    }

    /// The structure of a comparison, if it is structural.
    ///
    /// ```
    /// use tamis_ir::{Notation, Value, program::{Expr, Masks}};
    /// let mut program = Notation::parse("s = x[i]")?.plain()?;
    /// let number = program.exprs.intern(Expr::Literal(Value::I64(7)));
    /// assert_eq!(Masks::new(&program).comparison(number), None);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn comparison(&mut self, id: ExprId) -> Option<Comparison> {
        let program = self.program;
        let Expr::Call(op, operands) = program.expr(id) else { return None };
        flipped(*op)?;
        let [left, right] = operands[..] else { return None };
        if let (Some(left), Some(right)) = (self.linear(left), self.linear(right)) {
            return Mask::of(*op, &left, &right).map(Comparison::One);
        }
        if let (Some(inner), Some(bound)) = (self.absolute(left), self.linear(right)) {
            return within(*op, &inner, &bound);
        }
        if let (Some(bound), Some(inner)) = (self.linear(left), self.absolute(right)) {
            return within(flipped(*op)?, &inner, &bound);
        }
        None
    }

    /// The operand of `abs(...)`.
    fn absolute(&mut self, id: ExprId) -> Option<Linear> {
        let program = self.program;
        match program.expr(id) {
            Expr::Call(Op::Abs, operands) => self.linear(*operands.first()?),
            _ => None,
        }
    }

    /// The linear form of an expression. Its atoms are `i64`, so its arithmetic is.
    fn linear(&mut self, id: ExprId) -> Option<Linear> {
        if let Some(known) = self.forms.get(&id) {
            return known.clone();
        }
        let program = self.program;
        let form = match program.expr(id) {
            Expr::Literal(value) => value.as_i64().and_then(Linear::constant),
            Expr::Index(index) => Some(Linear::atom(Atom::Index(*index))),
            Expr::Size(tensor, dim) => Some(Linear::atom(Atom::Size(*tensor, *dim))),
            Expr::Var(var) => self.lets.get(var).copied().and_then(|value| self.linear(value)),
            Expr::Call(op, operands) => self.combined(*op, operands),
            _ => None,
        };
        self.forms.insert(id, form.clone());
        form
    }

    fn combined(&mut self, op: Op, operands: &[ExprId]) -> Option<Linear> {
        let operands: Option<Vec<Linear>> = operands.iter().map(|e| self.linear(*e)).collect();
        match (op, &operands?[..]) {
            (Op::Add, [a, b]) => a.clone().plus(b, 1),
            (Op::Sub, [a, b]) => a.clone().plus(b, -1),
            (Op::Neg, [a]) => a.times(-1),
            (Op::Mul, [a, b]) if a.terms.is_empty() => b.times(a.constant),
            (Op::Mul, [a, b]) if b.terms.is_empty() => a.times(b.constant),
            _ => None,
        }
    }
}

/// `abs(inner) op bound`.
fn within(op: Op, inner: &Linear, bound: &Linear) -> Option<Comparison> {
    let negative = inner.times(-1)?;
    let two = |op| Some((Mask::of(op, inner, bound)?, Mask::of(op, &negative, bound)?));
    match op {
        Op::Lt | Op::Le => two(op).map(|(a, b)| Comparison::Both(a, b)),
        Op::Gt | Op::Ge => two(op).map(|(a, b)| Comparison::Either(a, b)),
        // No absolute value is below 0, but one of the two sides may be.
        _ if !bound.terms.is_empty() || bound.constant < 0 => None,
        Op::Eq => two(op).map(|(a, b)| Comparison::Either(a, b)),
        _ => two(op).map(|(a, b)| Comparison::Both(a, b)),
    }
}
