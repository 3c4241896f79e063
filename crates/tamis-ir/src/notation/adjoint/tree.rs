//! Construction and substitution of expression trees: products and sums that fold their units, renaming of indices.
//!
//! Trees that differentiation makes have the span of the statement that they come from, so that a mistake is shown there.

use crate::algebra::{Op, Value};
use crate::diag::Span;
use crate::notation::{indices_in, same};
use crate::text::syntax::{Expr, ExprKind, Name};
use rustc_hash::FxHashMap;

pub(super) fn name(text: &str, span: Span) -> Name {
    Name { text: text.to_string(), span }
}

pub(super) fn variable(text: &str, span: Span) -> Expr {
    Expr { kind: ExprKind::Name(text.to_string()), span }
}

pub(super) fn integer(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Number(Value::I64(value)), span }
}

/// An access; a scalar has no subscripts.
pub(super) fn access(base: &str, subscripts: Vec<Expr>, span: Span) -> Expr {
    match subscripts.is_empty() {
        true => variable(base, span),
        false => Expr { kind: ExprKind::Index { base: name(base, span), subscripts }, span },
    }
}

/// `base.shape[dim]`
pub(super) fn size(base: &str, dim: usize, span: Span) -> Expr {
    Expr { kind: ExprKind::Size { base: name(base, span), dim: dim as u64 }, span }
}

pub(super) fn binary(op: Op, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    Expr { kind: ExprKind::Operator(op, vec![a, b]), span }
}

/// A function by its name in the operator table.
pub(super) fn call(op: Op, args: Vec<Expr>, span: Span) -> Expr {
    Expr { kind: ExprKind::Call { function: name(op.info().name, span), args, keywords: Vec::new() }, span }
}

pub(in crate::notation) fn select(condition: Expr, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    call(Op::Select, vec![condition, a, b], span)
}

/// The number of a literal.
pub(super) fn literal(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Number(value @ (Value::I64(_) | Value::F64(_))) => Some(value.as_c128().re),
        _ => None,
    }
}

pub(super) fn is_zero(expr: &Expr) -> bool {
    literal(expr) == Some(0.0)
}

/// `a * b`, without factors of 1.
pub(super) fn product(a: Expr, b: Expr) -> Expr {
    match (literal(&a), literal(&b), &b.kind) {
        (Some(1.0), ..) => b,
        (_, Some(1.0), _) => a,
        (_, Some(-1.0), _) => negative(a),
        (Some(-1.0), ..) => negative(b),
        (Some(0.0), ..) => a,
        (_, Some(0.0), _) => b,
        // `a * (1 / b)` is `a / b`.
        (_, _, ExprKind::Operator(Op::Div, operands)) if operands.len() == 2 && literal(&operands[0]) == Some(1.0) => {
            binary(Op::Div, a, operands[1].clone())
        }
        // Products are written from left to right.
        (_, _, ExprKind::Operator(Op::Mul, operands)) if operands.len() == 2 => {
            product(product(a, operands[0].clone()), operands[1].clone())
        }
        // Signs go to the front.
        (_, _, ExprKind::Operator(Op::Neg, operands)) if operands.len() == 1 => {
            negative(product(a, operands[0].clone()))
        }
        _ => binary(Op::Mul, a, b),
    }
}

/// `-a`
pub(super) fn negative(a: Expr) -> Expr {
    let span = a.span;
    match &a.kind {
        ExprKind::Operator(Op::Neg, operands) if operands.len() == 1 => operands[0].clone(),
        _ => Expr { kind: ExprKind::Operator(Op::Neg, vec![a]), span },
    }
}

/// The sum of terms; none is 0. Equal terms are counted.
pub(super) fn sum(terms: Vec<Expr>, span: Span) -> Expr {
    let mut counted: Vec<(i64, Expr)> = Vec::new();
    for term in terms.into_iter().filter(|term| !is_zero(term)) {
        match counted.iter_mut().find(|(_, known)| same(known, &term)) {
            Some((count, _)) => *count += 1,
            None => counted.push((1, term)),
        }
    }
    let counted = counted.into_iter().map(|(n, term)| if n == 1 { term } else { product(integer(n, span), term) });
    let whole = counted.reduce(|before, term| match &term.kind {
        ExprKind::Operator(Op::Neg, operands) if operands.len() == 1 => binary(Op::Sub, before, operands[0].clone()),
        _ => binary(Op::Add, before, term),
    });
    whole.unwrap_or_else(|| integer(0, span))
}

/// `sum[indices](body)`
pub(super) fn reduction(op: Op, indices: &[String], body: Expr) -> Expr {
    let span = body.span;
    let indices = indices.iter().map(|index| name(index, span)).collect();
    Expr { kind: ExprKind::Reduce { op, indices, body: Box::new(body) }, span }
}

/// The operands of a node, as a mutable list of all its children.
pub(super) fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Index { subscripts, .. } => subscripts.iter().collect(),
        ExprKind::Entry { at, .. } => at.iter().collect(),
        ExprKind::Operator(_, operands) => operands.iter().collect(),
        ExprKind::Call { args, .. } => args.iter().collect(),
        ExprKind::Tuple(items) => items.iter().collect(),
        ExprKind::Reduce { body, .. } => vec![body],
        ExprKind::Number(_) | ExprKind::Str(_) | ExprKind::Name(_) | ExprKind::Size { .. } | ExprKind::Error => {
            Vec::new()
        }
    }
}

/// A tree with each child replaced.
pub(super) fn with_children(expr: &Expr, of: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
    let mut each = |list: &[Expr]| list.iter().map(&mut *of).collect::<Vec<_>>();
    let kind = match &expr.kind {
        ExprKind::Index { base, subscripts } => ExprKind::Index { base: base.clone(), subscripts: each(subscripts) },
        ExprKind::Entry { base, part, at } => ExprKind::Entry { base: base.clone(), part: *part, at: each(at) },
        ExprKind::Operator(op, operands) => ExprKind::Operator(*op, each(operands)),
        ExprKind::Call { function, args, keywords } => {
            ExprKind::Call { function: function.clone(), args: each(args), keywords: keywords.clone() }
        }
        ExprKind::Tuple(items) => ExprKind::Tuple(each(items)),
        ExprKind::Reduce { op, indices, body } => {
            ExprKind::Reduce { op: *op, indices: indices.clone(), body: Box::new(of(body)) }
        }
        other => other.clone(),
    };
    Expr { kind, span: expr.span }
}

/// The number of nodes.
pub(super) fn count(expr: &Expr) -> usize {
    1 + children(expr).into_iter().map(count).sum::<usize>()
}

/// Names replaced by expressions, all at once, bound indices of reductions included if they are replaced by names.
pub(super) fn substituted(expr: &Expr, by: &FxHashMap<String, Expr>) -> Expr {
    if by.is_empty() {
        return expr.clone();
    }
    match &expr.kind {
        ExprKind::Name(text) => by.get(text).cloned().unwrap_or_else(|| expr.clone()),
        ExprKind::Reduce { op, indices, body } => {
            let renamed = |index: &Name| match by.get(&index.text).map(|to| &to.kind) {
                Some(ExprKind::Name(text)) => name(text, index.span),
                _ => index.clone(),
            };
            let indices = indices.iter().map(renamed).collect();
            let body = Box::new(substituted(body, by));
            Expr { kind: ExprKind::Reduce { op: *op, indices, body }, span: expr.span }
        }
        _ => with_children(expr, &mut |child| substituted(child, by)),
    }
}

/// Names as a substitution.
pub(super) fn renaming(names: &[(String, String)], span: Span) -> FxHashMap<String, Expr> {
    let changed = names.iter().filter(|(from, to)| from != to);
    changed.map(|(from, to)| (from.clone(), variable(to, span))).collect()
}

/// True if a name occurs, as an index or a tensor.
pub(in crate::notation) fn mentions(expr: &Expr, text: &str) -> bool {
    match &expr.kind {
        ExprKind::Name(other) => other == text,
        ExprKind::Index { base, .. } | ExprKind::Size { base, .. } | ExprKind::Entry { base, .. }
            if base.text == text =>
        {
            true
        }
        ExprKind::Reduce { indices, .. } if indices.iter().any(|index| index.text == text) => true,
        _ => children(expr).into_iter().any(|child| mentions(child, text)),
    }
}

/// The tensors and scalars that an expression reads, sizes included; indices are not.
pub(super) fn reads(expr: &Expr, indices: &[String], found: &mut Vec<String>) {
    let mut add = |text: &String| {
        if !found.contains(text) {
            found.push(text.clone());
        }
    };
    match &expr.kind {
        ExprKind::Name(text) if !indices.contains(text) => add(text),
        ExprKind::Index { base, .. } | ExprKind::Size { base, .. } | ExprKind::Entry { base, .. } => add(&base.text),
        _ => {}
    }
    children(expr).into_iter().for_each(|child| reads(child, indices, found));
}

/// An index of a plain subscript.
pub(super) fn plain_index<'e>(subscript: &'e Expr, indices: &[String]) -> Option<&'e str> {
    match &subscript.kind {
        ExprKind::Name(text) if indices.contains(text) => Some(text),
        _ => None,
    }
}

/// True if an index is a whole subscript of some access, so that the access bounds it.
pub(super) fn bounds(expr: &Expr, index: &str) -> bool {
    let here = match &expr.kind {
        ExprKind::Index { subscripts, .. } => {
            subscripts.iter().any(|s| matches!(&s.kind, ExprKind::Name(text) if text == index))
        }
        _ => false,
    };
    here || children(expr).into_iter().any(|child| bounds(child, index))
}

/// True if a subscript may leave the tensor.
pub(super) fn is_permissive(subscript: &Expr) -> bool {
    match &subscript.kind {
        ExprKind::Operator(Op::BitNot, _) => true,
        ExprKind::Call { args, .. } => args.iter().any(is_permissive),
        _ => false,
    }
}

/// The accesses that may leave their tensors.
pub(super) fn permissive<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    if let ExprKind::Index { subscripts, .. } = &expr.kind
        && subscripts.iter().any(is_permissive)
        && !found.iter().any(|known| same(known, expr))
    {
        found.push(expr);
    }
    children(expr).into_iter().for_each(|child| permissive(child, found));
}

/// All names of indices in subscripts and reductions.
pub(super) fn index_names(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    indices_in(expr, false, &mut names);
    names.into_iter().map(|name| name.text).collect()
}

/// An access that is 0 where its subscripts leave the tensor.
pub(super) fn coalesced_access(expr: Expr) -> Expr {
    let leaves = matches!(&expr.kind, ExprKind::Index { subscripts, .. } if subscripts.iter().any(is_permissive));
    let span = expr.span;
    if leaves { call(Op::Coalesce, vec![expr, integer(0, span)], span) } else { expr }
}
