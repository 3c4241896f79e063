//! Subscripts of index notation, in affine normal form: `1*i + k + 0` is `i + k`.
//!
//! In a subscript every name is an index, so the atoms of the form are names. A subscript of
//! anything but indices and integers stays as it was written, and so does one in which an index
//! cancels out.

use crate::affine::{Affine, AffineTerm};
use crate::algebra::{Op, Value};
use crate::diag::Span;
use crate::text::syntax::{Expr, ExprKind, Stmt, StmtKind};

/// A statement whose subscripts are in normal form.
pub(super) fn normal(stmt: &Stmt) -> Stmt {
    let mut stmt = stmt.clone();
    match &mut stmt.kind {
        StmtKind::Assign { target, value, .. } => {
            inside(target);
            inside(value);
        }
        // Ranges of indices enclose the statement.
        StmtKind::For { body, .. } => body.iter_mut().for_each(|inner| *inner = normal(inner)),
        _ => {}
    }
    stmt
}

fn inside(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Index { subscripts, .. } => subscripts.iter_mut().for_each(subscript),
        ExprKind::Operator(_, operands) => operands.iter_mut().for_each(inside),
        ExprKind::Call { args, .. } => args.iter_mut().for_each(inside),
        ExprKind::Entry { at, .. } => at.iter_mut().for_each(inside),
        ExprKind::Reduce { body, .. } => inside(body),
        _ => {}
    }
}

fn subscript(expr: &mut Expr) {
    match &mut expr.kind {
        // `~e` and `follow(e)` specify how `e` is read.
        ExprKind::Operator(Op::BitNot, operands) => operands.iter_mut().for_each(subscript),
        ExprKind::Call { args, .. } if args.len() == 1 => args.iter_mut().for_each(subscript),
        ExprKind::Operator(..) => match affine(expr) {
            Some(form) if !is_normal(expr) => *expr = sum(&form, expr.span),
            Some(_) => {}
            None => inside(expr),
        },
        _ => inside(expr),
    }
}

fn affine(expr: &Expr) -> Option<Affine<&str>> {
    match &expr.kind {
        ExprKind::Number(Value::I64(value)) => Some(Affine::constant(*value)),
        ExprKind::Name(name) => Some(Affine::atom(name)),
        ExprKind::Operator(op @ (Op::Add | Op::Sub | Op::Neg | Op::Mul), operands) => {
            let operands: Vec<Affine<&str>> = operands.iter().map(affine).collect::<Option<_>>()?;
            let form = Affine::apply(*op, &operands)?;
            let mut atoms = operands.iter().flat_map(|operand| &operand.terms);
            atoms.all(|(atom, _)| form.terms.iter().any(|(other, _)| other == atom)).then_some(form)
        }
        _ => None,
    }
}

/// True if a sum is in normal form: each index once, with a coefficient other than 0 and 1 or
/// without one, and one constant.
fn is_normal(expr: &Expr) -> bool {
    let (mut names, mut constants, mut rest) = (Vec::new(), 0, Some(expr));
    while let Some(sum) = rest {
        let last;
        (rest, last) = match &sum.kind {
            ExprKind::Operator(Op::Add | Op::Sub, operands) => match &operands[..] {
                [first, last] => (Some(first), last),
                _ => return false,
            },
            _ => (None, sum),
        };
        let factor = |e: &Expr| matches!(&e.kind, ExprKind::Number(Value::I64(by)) if !(-1..=1).contains(by));
        let name = match &last.kind {
            ExprKind::Number(Value::I64(value)) if *value > 0 => {
                constants += 1;
                continue;
            }
            ExprKind::Name(name) => name,
            ExprKind::Operator(Op::Neg, operands) if rest.is_none() => match &operands[0].kind {
                ExprKind::Name(name) => name,
                _ => return false,
            },
            ExprKind::Operator(Op::Mul, operands) => match &operands[..] {
                [by, Expr { kind: ExprKind::Name(name), .. }] if factor(by) => name,
                [Expr { kind: ExprKind::Name(name), .. }, by] if factor(by) => name,
                _ => return false,
            },
            _ => return false,
        };
        if names.contains(&name) {
            return false;
        }
        names.push(name);
    }
    constants <= 1
}

fn sum(form: &Affine<&str>, span: Span) -> Expr {
    let number = |value: i64| Expr { kind: ExprKind::Number(Value::I64(value)), span };
    let binary = |op: Op, a: Expr, b: Expr| Expr { kind: ExprKind::Operator(op, vec![a, b]), span };
    let mut sum: Option<Expr> = None;
    for (subtracted, part) in form.parts() {
        let part = match part {
            AffineTerm::Constant(constant) => number(constant),
            AffineTerm::Multiple(name, coefficient) => {
                let name = Expr { kind: ExprKind::Name(name.to_string()), span };
                if coefficient == 1 { name } else { binary(Op::Mul, number(coefficient), name) }
            }
        };
        sum = Some(match sum {
            Some(sum) => binary(if subtracted { Op::Sub } else { Op::Add }, sum, part),
            None => part,
        });
    }
    sum.unwrap_or_else(|| number(0))
}
