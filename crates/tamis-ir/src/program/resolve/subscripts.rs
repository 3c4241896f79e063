//! Name resolution of subscripts, in affine normal form: `sum of coefficient * index, plus a
//! constant`.
//!
//! Identities (`1*i`, `i + 0`), constants, negations, products with sums (`2*(i+k)`) and bound
//! names (`p = i + k`) are resolved once, here: dimension inference, masks, schedules and the
//! lowerer see `2*i + 2*k`. A subscript of anything but indices, sizes and integers stays as it was
//! written, and so does one in which an index cancels out.

use super::super::{Expr, ExprId, Protocol, Subscript};
use super::Resolver;
use crate::affine::{Affine, AffineTerm};
use crate::algebra::{DType, Op, Value};
use crate::diag::{Code, Diagnostic, Span};
use crate::text::syntax::{self, ExprKind};

impl Resolver {
    /// Resolves `e`, `~e`, `follow(e)`, or both.
    pub(super) fn subscript(&mut self, expr: &syntax::Expr) -> Option<Subscript> {
        match &expr.kind {
            ExprKind::Operator(Op::BitNot, operands) => {
                let inner = self.subscript(&operands[0])?;
                Some(Subscript { permissive: true, ..inner })
            }
            ExprKind::Call { function, args, keywords } if keywords.is_empty() && args.len() == 1 => {
                match Protocol::ALL.into_iter().find(|p| p.name() == function.text) {
                    Some(protocol) => {
                        let inner = self.subscript(&args[0])?;
                        if inner.protocol.is_some() {
                            return self.error(
                                Diagnostic::new(Code::E0101, "a subscript has one protocol")
                                    .label(expr.span, "two protocols")
                                    .help("write one of walk, follow, gallop"),
                            );
                        }
                        Some(Subscript { protocol: Some(protocol), ..inner })
                    }
                    None => self.plain_subscript(expr),
                }
            }
            _ => self.plain_subscript(expr),
        }
    }

    fn plain_subscript(&mut self, expr: &syntax::Expr) -> Option<Subscript> {
        let id = self.expr(expr)?;
        Some(Subscript { expr: self.normal_form(id, expr.span), protocol: None, permissive: false })
    }

    /// An integer expression in normal form, if it is affine.
    fn normal_form(&mut self, id: ExprId, span: Span) -> ExprId {
        let Some(form) = self.affine(id) else { return id };
        if self.is_normal(id, &form) {
            return id;
        }
        let mut sum: Option<ExprId> = None;
        for (subtracted, part) in form.parts() {
            let part = match part {
                AffineTerm::Constant(constant) => self.intern(Expr::Literal(Value::I64(constant)), span),
                AffineTerm::Multiple(atom, 1) => atom,
                AffineTerm::Multiple(atom, coefficient) => {
                    let coefficient = self.intern(Expr::Literal(Value::I64(coefficient)), span);
                    self.intern(Expr::Call(Op::Mul, vec![coefficient, atom]), span)
                }
            };
            sum = Some(match sum {
                Some(sum) => {
                    let op = if subtracted { Op::Sub } else { Op::Add };
                    self.intern(Expr::Call(op, vec![sum, part]), span)
                }
                None => part,
            });
        }
        sum.unwrap_or(id)
    }

    /// The affine form of an expression of indices, sizes and integers, memoised.
    fn affine(&mut self, id: ExprId) -> Option<Affine<ExprId>> {
        if let Some(known) = self.forms.get(&id) {
            return known.clone();
        }
        let form = match self.program.expr(id).clone() {
            Expr::Literal(Value::I64(value)) => Some(Affine::constant(value)),
            Expr::Index(_) | Expr::Size(..) => Some(Affine::atom(id)),
            Expr::Var(var) => self.lets.get(&var).copied().and_then(|value| self.affine(value)),
            Expr::Call(Op::Cast(DType::I64), operands) => self.affine(operands[0]),
            Expr::Call(op, operands) => {
                let operands: Option<Vec<Affine<ExprId>>> = operands.iter().map(|e| self.affine(*e)).collect();
                operands.and_then(|operands| {
                    let form = Affine::apply(op, &operands)?;
                    // An index that cancels out still needs its loop.
                    let atoms = operands.iter().flat_map(|operand| &operand.terms);
                    let kept = atoms.clone().all(|(atom, _)| form.terms.iter().any(|(other, _)| other == atom));
                    kept.then_some(form)
                })
            }
            _ => None,
        };
        self.forms.insert(id, form.clone());
        form
    }

    /// True if an expression is already in normal form, with its terms in any order.
    fn is_normal(&self, id: ExprId, form: &Affine<ExprId>) -> bool {
        let expr = |id: ExprId| self.program.expr(id);
        let is_atom = |id: ExprId| matches!(expr(id), Expr::Index(_) | Expr::Size(..));
        let is_factor = |id: ExprId| matches!(expr(id), Expr::Literal(Value::I64(by)) if !(-1..=1).contains(by));
        let (mut id, mut atoms, mut constants) = (id, 0, 0);
        loop {
            let (rest, last) = match expr(id) {
                Expr::Call(Op::Add | Op::Sub, operands) => (operands.first().copied(), operands.last().copied()),
                _ => (None, Some(id)),
            };
            let Some(last) = last else { return false };
            match expr(last) {
                Expr::Literal(Value::I64(value)) if rest.is_none() || *value > 0 => constants += 1,
                Expr::Call(Op::Mul, operands) => match operands[..] {
                    [a, b] if (is_factor(a) && is_atom(b)) || (is_atom(a) && is_factor(b)) => atoms += 1,
                    _ => return false,
                },
                Expr::Call(Op::Neg, operands) if rest.is_none() && is_atom(operands[0]) => atoms += 1,
                _ if is_atom(last) => atoms += 1,
                _ => return false,
            }
            match rest {
                Some(rest) => id = rest,
                None => break,
            }
        }
        let sole = atoms == 0 || form.constant != 0;
        atoms == form.terms.len() && (constants == 0 || (constants == 1 && sole))
    }
}
