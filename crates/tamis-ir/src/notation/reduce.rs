//! Where reductions belong: around the smallest sub-expression that holds all uses of an index.

use super::{Assignment, indices_in, same};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Result, Span};
use crate::text::syntax::{Expr, ExprKind, Name};
use rustc_hash::FxHashSet;

/// Makes assignments of statements, and names for temporaries.
#[derive(Default)]
pub(super) struct Maker {
    taken: FxHashSet<String>,
    /// Reductions that were made temporaries of, to be computed once.
    made: Vec<(Op, Expr, Vec<String>, Name)>,
}

/// Subscripts of targets are sums of indices and numbers.
pub(super) fn target_subscript(expr: &Expr) -> Result<()> {
    let fits = match &expr.kind {
        ExprKind::Name(_) | ExprKind::Number(_) => true,
        ExprKind::Operator(Op::Add | Op::Sub | Op::Mul | Op::Neg, operands) => {
            return operands.iter().try_for_each(target_subscript);
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(Diagnostic::new(Code::E0111, "a result is subscripted by indices")
        .label(expr.span, "not an index")
        .help("write `y[i] = ...`; sums as in `y[i+j] += ...` work, too"))
}

impl Maker {
    /// Says that a name is used.
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_string());
    }

    fn fresh(&mut self) -> String {
        let mut number = self.made.len();
        loop {
            let name = format!("t{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// The assignments that a statement is.
    pub(super) fn statement(
        &mut self,
        target: &Name,
        subscripts: &[Expr],
        update: Option<Op>,
        value: &Expr,
        span: Span,
        again: bool,
    ) -> Result<Vec<Assignment>> {
        explicit_indices(value, subscripts)?;
        let op = match update {
            None | Some(Op::Sub) => Op::Add,
            Some(op) => op,
        };
        let mut free = Vec::new();
        subscripts.iter().for_each(|s| indices_in(s, true, &mut free));
        let mut all = Vec::new();
        indices_in(value, false, &mut all);
        let mut value = value.clone();
        let explicit = reduced_in(&value);
        for index in &all {
            if free.iter().any(|f| f.text == index.text) || explicit.contains(&index.text) {
                continue;
            }
            if let Some(update) = update
                && update != Op::Sub
                && !reduces(update)
            {
                let symbol = update.info().symbol.unwrap_or(update.info().name);
                return Err(Diagnostic::new(
                    Code::E0112,
                    format!("`{symbol}=` cannot reduce over `{}`: it matters which value comes first", index.text),
                )
                .label(index.span, "not on the left")
                .help(format!("say how it is reduced: `sum[{}](...)`, or min, max, prod, any, all", index.text)));
            }
            value = place(value, &index.text, op)?;
        }
        let value = flatten(value);
        let mut assignments = Vec::new();
        let root_op = update.unwrap_or(op);
        let (op, body) = match value.kind {
            // The reduction of the whole is what the target is updated by.
            ExprKind::Reduce { op: reduced, body, .. }
                if reduced == op && (update.is_none() || update == Some(root_op)) =>
            {
                (Some(root_op), *body)
            }
            ExprKind::Reduce { op: reduced, body, .. } if update.is_none() => (Some(reduced), *body),
            kind => (update, Expr { kind, span: value.span }),
        };
        let body = self.extract(body, &mut assignments);
        assignments.push(Assignment {
            target: target.clone(),
            subscripts: subscripts.to_vec(),
            op,
            body,
            span,
            temporary: false,
            again,
        });
        Ok(assignments)
    }

    /// Makes temporaries of the reductions in an expression.
    fn extract(&mut self, expr: Expr, assignments: &mut Vec<Assignment>) -> Expr {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Reduce { op, indices, body } => {
                let reduced: Vec<String> = indices.into_iter().map(|name| name.text).collect();
                let body = self.extract(*body, assignments);
                let known = self.made.iter().find(|(o, b, r, _)| *o == op && same(b, &body) && *r == reduced);
                let mut free = Vec::new();
                indices_in(&body, false, &mut free);
                free.retain(|name| !reduced.contains(&name.text));
                let subscripts: Vec<Expr> =
                    free.into_iter().map(|n| Expr { kind: ExprKind::Name(n.text), span: n.span }).collect();
                let name = match known {
                    Some((.., name)) => name.clone(),
                    None => {
                        let name = Name { text: self.fresh(), span };
                        self.made.push((op, body.clone(), reduced, name.clone()));
                        assignments.push(Assignment {
                            target: name.clone(),
                            subscripts: subscripts.clone(),
                            op: Some(op),
                            body,
                            span,
                            temporary: true,
                            again: false,
                        });
                        name
                    }
                };
                match subscripts.is_empty() {
                    true => ExprKind::Name(name.text),
                    false => ExprKind::Index { base: name, subscripts },
                }
            }
            ExprKind::Operator(op, operands) => {
                ExprKind::Operator(op, operands.into_iter().map(|e| self.extract(e, assignments)).collect())
            }
            ExprKind::Call { function, args, keywords } => {
                let args = args.into_iter().map(|e| self.extract(e, assignments)).collect();
                ExprKind::Call { function, args, keywords }
            }
            other => other,
        };
        Expr { kind, span }
    }
}

/// Whether the order of values does not matter to an operator.
pub(super) fn reduces(op: Op) -> bool {
    let info = op.info();
    info.commutative && info.associative
}

/// Explicit reductions name indices that their body uses, and no others have.
fn explicit_indices(expr: &Expr, target: &[Expr]) -> Result<()> {
    match &expr.kind {
        ExprKind::Reduce { indices, body, .. } => {
            let mut used = Vec::new();
            indices_in(body, false, &mut used);
            let mut free = Vec::new();
            target.iter().for_each(|s| indices_in(s, true, &mut free));
            for index in indices {
                if !used.iter().any(|name| name.text == index.text) {
                    return Err(Diagnostic::new(
                        Code::E0113,
                        format!("`{}` is reduced over, but nothing in the parentheses uses it", index.text),
                    )
                    .label(index.span, "not used")
                    .help(format!("leave `{}` out", index.text)));
                }
                if let Some(left) = free.iter().find(|name| name.text == index.text) {
                    return Err(Diagnostic::new(
                        Code::E0111,
                        format!("`{}` is reduced over, so it cannot stand on the left", index.text),
                    )
                    .label(index.span, "reduced here")
                    .label(left.span, "on the left")
                    .help("use another name for one of them"));
                }
            }
            explicit_indices(body, target)
        }
        ExprKind::Operator(_, operands) => operands.iter().try_for_each(|e| explicit_indices(e, target)),
        ExprKind::Call { args, .. } => args.iter().try_for_each(|e| explicit_indices(e, target)),
        _ => Ok(()),
    }
}

/// The indices that reductions in an expression name.
fn reduced_in(expr: &Expr) -> Vec<String> {
    match &expr.kind {
        ExprKind::Reduce { indices, body, .. } => {
            let mut names: Vec<String> = indices.iter().map(|name| name.text.clone()).collect();
            names.extend(reduced_in(body));
            names
        }
        ExprKind::Operator(_, operands) => operands.iter().flat_map(reduced_in).collect(),
        ExprKind::Call { args, .. } => args.iter().flat_map(reduced_in).collect(),
        _ => Vec::new(),
    }
}

fn uses(expr: &Expr, index: &str) -> bool {
    let mut names = Vec::new();
    indices_in(expr, false, &mut names);
    names.iter().any(|name| name.text == index) || as_number(expr, index)
}

/// Whether an index is used as a number, outside of subscripts.
fn as_number(expr: &Expr, index: &str) -> bool {
    match &expr.kind {
        ExprKind::Name(text) => text == index,
        ExprKind::Operator(_, operands) => operands.iter().any(|e| as_number(e, index)),
        ExprKind::Call { args, .. } => args.iter().any(|e| as_number(e, index)),
        ExprKind::Reduce { body, .. } => as_number(body, index),
        _ => false,
    }
}

/// Puts a reduction around the smallest sub-expression with all uses of an index.
fn place(expr: Expr, index: &str, op: Op) -> Result<Expr> {
    let span = expr.span;
    let wrap = |body: Expr| {
        let name = Name { text: index.to_string(), span: body.span };
        let span = body.span;
        Expr { kind: ExprKind::Reduce { op, indices: vec![name], body: Box::new(body) }, span }
    };
    match expr.kind {
        ExprKind::Operator(sum @ (Op::Add | Op::Sub | Op::Mul), operands) => {
            let chain = Expr { kind: ExprKind::Operator(sum, operands), span };
            let (mut parts, product) = (Vec::new(), sum == Op::Mul);
            if product {
                factors(chain, &mut parts)
            } else {
                terms(chain, false, &mut parts)
            }
            let first = parts.iter().position(|(_, e)| uses(e, index)).unwrap_or(0);
            let (mut with, mut without): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(_, e)| uses(e, index));
            if with.is_empty() {
                return Ok(join(without, product, span));
            }
            if !product && with.len() > 1 && !op.info().idempotent {
                // A sum over another index that has terms without this one is not to be counted once for each of its values.
                let mut own = Vec::new();
                for (minus, part) in with {
                    if mixes(&part, index) {
                        return Err(ambiguous(index, op, &part, span));
                    }
                    let (uses, rest) = split(part, index, op);
                    if let Some(rest) = rest.as_ref().filter(|_| op != Op::Add) {
                        return Err(ambiguous(index, op, rest, span));
                    }
                    own.extend(uses.map(|part| (minus, part)));
                    without.extend(rest.map(|part| (minus, part)));
                }
                with = own;
            }
            let alone = with.len() == 1;
            if product && !without.is_empty() && !distributes(Op::Mul, op) {
                return Err(ambiguous(index, op, &join(with, product, span), span));
            }
            // What is subtracted stays so: negative numbers are not of every type.
            let minus = !product && with.first().is_some_and(|(minus, _)| *minus);
            if minus && !distributes(Op::Neg, op) {
                if alone || !op.info().idempotent {
                    return Err(ambiguous(index, op, &join(with, product, span), span));
                }
                let at = first.min(without.len());
                without.splice(at..at, with);
                return Ok(wrap(join(without, product, span)));
            }
            let with: Vec<_> = with.into_iter().map(|(m, part)| (m != minus, part)).collect();
            let inner =
                if alone { place(join(with, product, span), index, op)? } else { wrap(join(with, product, span)) };
            let mut parts = without;
            parts.insert(first.min(parts.len()), (minus, inner));
            Ok(join(parts, product, span))
        }
        ExprKind::Operator(Op::Neg, mut operands) if distributes(Op::Neg, op) => {
            let Some(inner) = operands.pop() else { return Ok(Expr { kind: ExprKind::Error, span }) };
            let inner = place(inner, index, op)?;
            Ok(Expr { kind: ExprKind::Operator(Op::Neg, vec![inner]), span })
        }
        ExprKind::Operator(Op::Div, operands) if op == Op::Add && operands.len() == 2 && !uses(&operands[1], index) => {
            let mut operands = operands.into_iter();
            let (Some(a), Some(b)) = (operands.next(), operands.next()) else {
                return Ok(Expr { kind: ExprKind::Error, span });
            };
            let a = place(a, index, op)?;
            Ok(Expr { kind: ExprKind::Operator(Op::Div, vec![a, b]), span })
        }
        ExprKind::Reduce { op: other, indices, body } => {
            let body = Box::new(place(*body, index, op)?);
            Ok(Expr { kind: ExprKind::Reduce { op: other, indices, body }, span })
        }
        kind => {
            let operands: &[Expr] = match &kind {
                ExprKind::Operator(_, operands) => operands,
                ExprKind::Call { args, .. } => args,
                _ => &[],
            };
            let mut using = operands.iter().filter(|e| uses(e, index));
            if let (Some(only), None) = (using.next(), using.next()) {
                return Err(ambiguous(index, op, only, span));
            }
            Ok(wrap(Expr { kind, span }))
        }
    }
}

/// Whether an operator can be exchanged with a reduction: `a * sum(x)` is `sum(a * x)`.
fn distributes(inner: Op, reduction: Op) -> bool {
    match inner {
        Op::Mul | Op::Neg => reduction == Op::Add,
        _ => false,
    }
}

fn ambiguous(index: &str, op: Op, part: &Expr, whole: Span) -> Diagnostic {
    let word = crate::text::parser::expressions::REDUCTIONS.iter().find(|(_, o)| *o == op).map_or("sum", |(w, _)| w);
    Diagnostic::new(Code::E0112, format!("`{index}` is not on the left, and it matters what is reduced over it"))
        .label(part.span, "this")
        .label(whole, "or all of this?")
        .help(format!(
            "write `{word}[{index}](...)` around what is meant, as in `{word}[{index}]({})`",
            super::build::text(part)
        ))
}

/// The factors of a product.
fn factors(expr: Expr, found: &mut Vec<(bool, Expr)>) {
    match expr.kind {
        ExprKind::Operator(Op::Mul, operands) => operands.into_iter().for_each(|e| factors(e, found)),
        _ => found.push((false, expr)),
    }
}

/// The terms of a sum, and whether they are subtracted.
fn terms(expr: Expr, minus: bool, found: &mut Vec<(bool, Expr)>) {
    match expr.kind {
        ExprKind::Operator(Op::Add, operands) => operands.into_iter().for_each(|e| terms(e, minus, found)),
        ExprKind::Operator(Op::Sub, operands) => {
            for (k, e) in operands.into_iter().enumerate() {
                terms(e, minus != (k == 1), found);
            }
        }
        _ => found.push((minus, expr)),
    }
}

/// Whether part of a term does not use an index that the rest of it does, so that counting it once and for each value of the index are
/// both what it may mean: a sum in parentheses that no other factor makes depend on the index, or one that is reduced over what not all of it uses.
fn mixes(expr: &Expr, index: &str) -> bool {
    match &expr.kind {
        ExprKind::Operator(Op::Add | Op::Sub, operands) => {
            let using = operands.iter().filter(|e| uses(e, index)).count();
            using > 0 && using < operands.len() || operands.iter().any(|e| mixes(e, index))
        }
        ExprKind::Operator(Op::Neg | Op::Mul | Op::Div, operands) => {
            let mut using = operands.iter().filter(|e| uses(e, index));
            matches!((using.next(), using.next()), (Some(only), None) if mixes(only, index))
        }
        ExprKind::Reduce { indices, body, .. } => {
            let mut parts = Vec::new();
            terms(body.as_ref().clone(), false, &mut parts);
            let (own, rest): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, e)| uses(e, index));
            let whole = |(_, e): &(bool, Expr)| indices.iter().all(|i| uses(e, &i.text));
            !own.is_empty() && !rest.is_empty() && !parts.iter().all(whole) || own.iter().any(|(_, e)| mixes(e, index))
        }
        _ => false,
    }
}

/// What of an expression uses an index, and what does not: reductions of sums are taken apart.
fn split(expr: Expr, index: &str, reduction: Op) -> (Option<Expr>, Option<Expr>) {
    if !uses(&expr, index) {
        return (None, Some(expr));
    }
    let span = expr.span;
    match expr.kind {
        ExprKind::Reduce { op, indices, body } if op == reduction => {
            let mut parts = Vec::new();
            terms(*body, false, &mut parts);
            let (mut own, mut rest) = (Vec::new(), Vec::new());
            for (minus, part) in parts {
                let (uses, others) = split(part, index, reduction);
                own.extend(uses.map(|part| (minus, part)));
                rest.extend(others.map(|part| (minus, part)));
            }
            let reduced = |mut parts: Vec<(bool, Expr)>| {
                // What is subtracted comes after what is not.
                parts.sort_by_key(|(minus, _)| *minus);
                let (some, indices) = (!parts.is_empty(), indices.clone());
                let body = Box::new(join(parts, false, span));
                some.then_some(Expr { kind: ExprKind::Reduce { op, indices, body }, span })
            };
            (reduced(own), reduced(rest))
        }
        kind => (Some(Expr { kind, span }), None),
    }
}

/// A product or sum of its parts.
fn join(parts: Vec<(bool, Expr)>, product: bool, span: Span) -> Expr {
    let mut whole: Option<Expr> = None;
    for (minus, part) in parts {
        whole = Some(match whole {
            None if minus => {
                let span = part.span;
                Expr { kind: ExprKind::Operator(Op::Neg, vec![part]), span }
            }
            None => part,
            Some(before) => {
                let op = if product {
                    Op::Mul
                } else if minus {
                    Op::Sub
                } else {
                    Op::Add
                };
                let span = before.span.to(part.span);
                Expr { kind: ExprKind::Operator(op, vec![before, part]), span }
            }
        });
    }
    whole.unwrap_or(Expr { kind: ExprKind::Error, span })
}

/// Sums of sums are one, and a product with one sum among its factors is a sum of products.
fn flatten(expr: Expr) -> Expr {
    let span = expr.span;
    match expr.kind {
        ExprKind::Reduce { op, indices, body } => match flatten(*body).kind {
            ExprKind::Reduce { op: inner, indices: more, body } if inner == op => {
                let mut all = indices;
                all.extend(more);
                Expr { kind: ExprKind::Reduce { op, indices: all, body }, span }
            }
            kind => {
                let body = Box::new(Expr { kind, span });
                Expr { kind: ExprKind::Reduce { op, indices, body }, span }
            }
        },
        ExprKind::Operator(Op::Mul, operands) => {
            let operands: Vec<Expr> = operands.into_iter().map(flatten).collect();
            let mut parts = Vec::new();
            factors(Expr { kind: ExprKind::Operator(Op::Mul, operands), span }, &mut parts);
            let is_sum = |e: &Expr| matches!(&e.kind, ExprKind::Reduce { op: Op::Add, .. });
            let reduced = |e: &Expr| matches!(&e.kind, ExprKind::Reduce { .. });
            let sums = parts.iter().filter(|(_, e)| reduced(e)).count();
            let Some(at) = parts.iter().position(|(_, e)| is_sum(e)).filter(|_| sums == 1) else {
                return join(parts, true, span);
            };
            let sum = parts.remove(at).1;
            let ExprKind::Reduce { op, indices, body } = sum.kind else { return join(parts, true, span) };
            // A name that the other factors use, too, means something else there.
            if parts.iter().any(|(_, e)| indices.iter().any(|i| uses(e, &i.text))) {
                parts.insert(at, (false, Expr { kind: ExprKind::Reduce { op, indices, body }, span: sum.span }));
                return join(parts, true, span);
            }
            parts.insert(at.min(parts.len()), (false, *body));
            let body = Box::new(join(parts, true, span));
            Expr { kind: ExprKind::Reduce { op, indices, body }, span }
        }
        ExprKind::Operator(op, operands) => {
            Expr { kind: ExprKind::Operator(op, operands.into_iter().map(flatten).collect()), span }
        }
        ExprKind::Call { function, args, keywords } => {
            let args = args.into_iter().map(flatten).collect();
            Expr { kind: ExprKind::Call { function, args, keywords }, span }
        }
        kind => Expr { kind, span },
    }
}
