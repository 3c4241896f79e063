//! Placement of reductions: each binds the smallest subexpression with all uses of its index.

use super::{Assignment, IndexRange, indices_in, same};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Result, Span};
use crate::text::syntax::{Expr, ExprKind, Name};
use rustc_hash::FxHashSet;

/// Converts statements to assignments, and names temporaries.
#[derive(Default)]
pub(super) struct Maker {
    taken: FxHashSet<String>,
    /// Reductions with a temporary, for reuse.
    made: Vec<Made>,
}

/// A reduction with a temporary.
struct Made {
    op: Op,
    body: Expr,
    reduced: Vec<String>,
    /// The ranges that the statement gives its indices.
    ranges: Vec<IndexRange>,
    name: Name,
    /// The indices of the temporary. Another statement may have them in another order.
    subscripts: Vec<Expr>,
}

/// The left-hand side of a statement, and its update.
pub(super) struct StatementUpdate<'a> {
    pub(super) target: &'a Name,
    pub(super) subscripts: &'a [Expr],
    pub(super) op: Option<Op>,
    /// The elements that an update starts from, if they are read and not updated in place.
    pub(super) start: Option<Expr>,
    /// True if the target has values already.
    pub(super) again: bool,
    pub(super) ranges: &'a [IndexRange],
}

/// Subscripts of targets are sums of indices and numbers; those of updates may read other tensors (a scatter).
pub(super) fn target_subscript(expr: &Expr, update: bool) -> Result<()> {
    let fits = match &expr.kind {
        ExprKind::Name(_) | ExprKind::Number(_) => true,
        ExprKind::Index { .. } => update,
        ExprKind::Operator(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::BitNot, operands) => {
            return operands.iter().try_for_each(|operand| target_subscript(operand, update));
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(Diagnostic::new(Code::E0111, "the subscripts of a result are indices")
        .label(expr.span, "not an index")
        .help("write `y[i] = ...`; sums as in `y[i+j] += ...` and gathers as in `y[p[i]] += ...` work, too"))
}

impl Maker {
    /// Marks a name as used.
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

    /// An unused name: another one and a number.
    pub(super) fn numbered(&mut self, base: &str) -> String {
        let mut number = 1;
        loop {
            let name = format!("{base}_{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// An unused name: another one and a word.
    pub(super) fn suffixed(&mut self, base: &str, word: &str) -> String {
        let name = format!("{base}_{word}");
        if self.taken.insert(name.clone()) { name } else { self.numbered(&name) }
    }

    /// Renames bound indices of reductions that are also used outside, so that no reduction shadows
    /// an index. `renamed` lists the new names with the old ones.
    fn scoped(&mut self, expr: &Expr, whole: &Expr, renamed: &mut Vec<(String, String)>) -> Expr {
        let span = expr.span;
        let kind = match &expr.kind {
            ExprKind::Reduce { op, indices, body } => {
                let mut body = self.scoped(body, whole, renamed);
                let mut indices = indices.clone();
                for index in &mut indices {
                    if free_in(whole, &index.text) {
                        let fresh = self.numbered(&index.text);
                        body = super::versions::renamed_indices(&body, &index.text, &fresh);
                        renamed.push((fresh.clone(), std::mem::replace(&mut index.text, fresh)));
                    }
                }
                ExprKind::Reduce { op: *op, indices, body: Box::new(body) }
            }
            ExprKind::Operator(op, operands) => {
                ExprKind::Operator(*op, operands.iter().map(|e| self.scoped(e, whole, renamed)).collect())
            }
            ExprKind::Call { function, args, keywords } => {
                let args = args.iter().map(|e| self.scoped(e, whole, renamed)).collect();
                ExprKind::Call { function: function.clone(), args, keywords: keywords.clone() }
            }
            other => other.clone(),
        };
        Expr { kind, span }
    }

    /// The assignments of a statement.
    pub(super) fn statement(&mut self, left: StatementUpdate, value: &Expr, span: Span) -> Result<Vec<Assignment>> {
        let StatementUpdate { target, subscripts, op: update, start, again, ranges } = left;
        explicit_indices(value, subscripts)?;
        let mut bound = Vec::new();
        let value = &self.scoped(value, value, &mut bound);
        let op = match update {
            None | Some(Op::Sub) => Op::Add,
            Some(op) => op,
        };
        let mut free = Vec::new();
        subscripts.iter().for_each(|s| indices_in(s, true, &mut free));
        let mut all = Vec::new();
        indices_in(value, false, &mut all);
        for IndexRange { index, stop, .. } in ranges {
            if !all.iter().chain(&free).any(|name| name.text == *index) {
                if !as_number(value, index) {
                    return Err(Diagnostic::new(Code::E0113, format!("index `{index}` subscripts no tensor"))
                        .label(stop.span, "its range")
                        .help(format!("leave `for {index} in ...` out")));
                }
                all.push(Name { text: index.clone(), span: stop.span });
            }
        }
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
                    format!(
                        "`{symbol}=` cannot reduce over `{}`: the result would depend on the order of the values",
                        index.text
                    ),
                )
                .label(index.span, "not on the left")
                .help(format!("write the reduction: `sum[{}](...)`, or min, max, prod, any, all", index.text)));
            }
            value = place(value, &index.text, op)?;
        }
        free.iter().for_each(|name| {
            if !all.iter().any(|other| other.text == name.text) {
                all.push(name.clone());
            }
        });
        let value = flatten(value, &all);
        // If the old values are read, the update becomes an assignment of the combined value.
        let (value, update) = match (start, update) {
            (Some(start), Some(op)) => (Expr { kind: ExprKind::Operator(op, vec![start, value]), span }, None),
            (_, update) => (value, update),
        };
        let mut assignments = Vec::new();
        let root_op = update.unwrap_or(op);
        let (op, body) = match value.kind {
            // A reduction of the whole right-hand side becomes an update of the target.
            ExprKind::Reduce { op: reduced, body, .. }
                if reduced == op && (update.is_none() || update == Some(root_op)) =>
            {
                (Some(root_op), *body)
            }
            ExprKind::Reduce { op: reduced, body, .. } if update.is_none() => (Some(reduced), *body),
            kind => (update, Expr { kind, span: value.span }),
        };
        let known = ReductionExtents { indices: &all, ranges, whole: &body.clone(), bound: &bound };
        let body = self.extract(body, &known, &mut assignments);
        let mut root = Assignment {
            target: target.clone(),
            subscripts: subscripts.to_vec(),
            op,
            body,
            span,
            temporary: false,
            again,
            ranges: Vec::new(),
        };
        root.ranges = known.ranges_of(&root.subscripts, &root.body)?;
        for assignment in &mut assignments {
            assignment.ranges = known.ranges_of(&assignment.subscripts, &assignment.body)?;
        }
        assignments.push(root);
        Ok(assignments)
    }

    /// Replaces the reductions in an expression by temporaries.
    fn extract(&mut self, expr: Expr, known_extents: &ReductionExtents, assignments: &mut Vec<Assignment>) -> Expr {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Reduce { op, indices, body } => {
                let reduced: Vec<String> = indices.into_iter().map(|name| name.text).collect();
                let body = self.extract(*body, known_extents, assignments);
                let mut ranges = known_extents.ranges.to_vec();
                ranges.retain(|range| uses(&body, &range.index));
                let known = self.made.iter().find(|made| {
                    made.op == op
                        && made.reduced == reduced
                        && same(&made.body, &body)
                        && same_ranges(&made.ranges, &ranges)
                });
                let mut free: Vec<Name> = known_extents.indices.to_vec();
                free.retain(|name| uses(&body, &name.text) && !reduced.contains(&name.text));
                let subscripts: Vec<Expr> =
                    free.into_iter().map(|n| Expr { kind: ExprKind::Name(n.text), span: n.span }).collect();
                let (name, subscripts) = match known {
                    Some(made) => (made.name.clone(), made.subscripts.clone()),
                    None => {
                        let name = Name { text: self.fresh(), span };
                        let (named, own) = (name.clone(), subscripts.clone());
                        let made = Made { op, body: body.clone(), reduced, ranges, name: named, subscripts: own };
                        self.made.push(made);
                        assignments.push(Assignment {
                            target: name.clone(),
                            subscripts: subscripts.clone(),
                            op: Some(op),
                            body,
                            span,
                            temporary: true,
                            again: false,
                            ranges: Vec::new(),
                        });
                        (name, subscripts)
                    }
                };
                match subscripts.is_empty() {
                    true => ExprKind::Name(name.text),
                    false => ExprKind::Index { base: name, subscripts },
                }
            }
            ExprKind::Operator(op, operands) => ExprKind::Operator(
                op,
                operands.into_iter().map(|e| self.extract(e, known_extents, assignments)).collect(),
            ),
            ExprKind::Call { function, args, keywords } => {
                let args = args.into_iter().map(|e| self.extract(e, known_extents, assignments)).collect();
                ExprKind::Call { function, args, keywords }
            }
            other => other,
        };
        Expr { kind, span }
    }
}

/// The extents of the indices that a statement specifies.
struct ReductionExtents<'a> {
    indices: &'a [Name],
    ranges: &'a [IndexRange],
    whole: &'a Expr,
    /// Renamed indices of reductions, with their old names.
    bound: &'a [(String, String)],
}

impl ReductionExtents<'_> {
    /// The ranges of the indices of an assignment: specified ones, and those of indices that occur
    /// only as numbers, which are the extents of the dimensions that they subscript elsewhere in
    /// the statement.
    fn ranges_of(&self, subscripts: &[Expr], body: &Expr) -> Result<Vec<IndexRange>> {
        let mut used = Vec::new();
        subscripts.iter().for_each(|s| indices_in(s, true, &mut used));
        indices_in(body, false, &mut used);
        let mut ranges = Vec::new();
        for index in self.indices {
            let number = as_number(body, &index.text);
            if !number && !used.iter().any(|name| name.text == index.text) {
                continue;
            }
            let written = self.bound.iter().find(|(new, _)| *new == index.text).map_or(&index.text, |(_, old)| old);
            if let Some(range) = self.ranges.iter().find(|range| range.index == *written) {
                ranges.push(IndexRange { index: index.text.clone(), ..range.clone() });
            } else if number && !subscripts_something(body, &index.text) {
                let Some(stop) = extent_of(self.whole, written) else {
                    return Err(Diagnostic::new(Code::E0113, format!("index `{}` has no extent", index.text))
                        .label(index.span, "subscripts no tensor on the right")
                        .help(format!("subscript a tensor with it, as in `x[{}]`", index.text))
                        .help(format!("or write its range: `... for {} in range(10)`", index.text)));
                };
                ranges.push(IndexRange { index: index.text.clone(), start: None, stop });
            }
        }
        Ok(ranges)
    }
}

/// True if indices have the same ranges.
fn same_ranges(a: &[IndexRange], b: &[IndexRange]) -> bool {
    let same_start = |a: &Option<Expr>, b: &Option<Expr>| match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let equal = |(a, b): (&IndexRange, &IndexRange)| {
        a.index == b.index && same_start(&a.start, &b.start) && same(&a.stop, &b.stop)
    };
    a.len() == b.len() && a.iter().zip(b).all(equal)
}

/// True if an index subscripts a tensor in an expression.
fn subscripts_something(expr: &Expr, index: &str) -> bool {
    match &expr.kind {
        ExprKind::Index { subscripts, .. } => subscripts.iter().any(|s| as_number(s, index)),
        ExprKind::Operator(_, operands) => operands.iter().any(|e| subscripts_something(e, index)),
        ExprKind::Call { args, .. } => args.iter().any(|e| subscripts_something(e, index)),
        ExprKind::Reduce { body, .. } => subscripts_something(body, index),
        _ => false,
    }
}

/// The size of a dimension that an index subscripts.
pub(super) fn extent_of(expr: &Expr, index: &str) -> Option<Expr> {
    match &expr.kind {
        ExprKind::Index { base, subscripts } => {
            let dim = subscripts.iter().position(|s| matches!(&s.kind, ExprKind::Name(text) if text == index))?;
            Some(Expr { kind: ExprKind::Size { base: base.clone(), dim: dim as u64 }, span: expr.span })
        }
        ExprKind::Operator(_, operands) => operands.iter().find_map(|e| extent_of(e, index)),
        ExprKind::Call { args, .. } => args.iter().find_map(|e| extent_of(e, index)),
        ExprKind::Reduce { body, .. } => extent_of(body, index),
        _ => None,
    }
}

/// True if an operator does not depend on the order of values.
pub(super) fn reduces(op: Op) -> bool {
    let info = op.info();
    info.commutative && info.associative
}

/// Checks that explicit reductions name indices of their body, and that others have none.
fn explicit_indices(expr: &Expr, target: &[Expr]) -> Result<()> {
    match &expr.kind {
        ExprKind::Reduce { indices, body, .. } => {
            let mut free = Vec::new();
            target.iter().for_each(|s| indices_in(s, true, &mut free));
            for index in indices {
                if !uses(body, &index.text) {
                    return Err(Diagnostic::new(
                        Code::E0113,
                        format!("`{}` is reduced, but the reduced expression does not use it", index.text),
                    )
                    .label(index.span, "not used")
                    .help(format!("leave `{}` out", index.text)));
                }
                if let Some(left) = free.iter().find(|name| name.text == index.text) {
                    return Err(Diagnostic::new(
                        Code::E0111,
                        format!("index `{}` is reduced, so it cannot be on the left", index.text),
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

/// True if an index is used outside of reductions that bind it.
fn free_in(expr: &Expr, index: &str) -> bool {
    match &expr.kind {
        ExprKind::Name(text) => text == index,
        ExprKind::Index { subscripts: list, .. }
        | ExprKind::Operator(_, list)
        | ExprKind::Call { args: list, .. }
        | ExprKind::Entry { at: list, .. } => list.iter().any(|e| free_in(e, index)),
        ExprKind::Reduce { indices, body, .. } => !indices.iter().any(|i| i.text == index) && free_in(body, index),
        _ => false,
    }
}

/// True if an index is used as a number, outside of subscripts.
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
                // A reduction over another index that has terms without this one must not count
                // them once for each of its values.
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
            // A subtraction stays a subtraction, because unsigned types have no negative numbers.
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

/// True if an operator commutes with a reduction: `a * sum(x)` is `sum(a * x)`.
fn distributes(inner: Op, reduction: Op) -> bool {
    match inner {
        Op::Mul | Op::Neg => reduction == Op::Add,
        _ => false,
    }
}

fn ambiguous(index: &str, op: Op, part: &Expr, whole: Span) -> Diagnostic {
    let word = crate::text::parser::expressions::REDUCTIONS.iter().find(|(_, o)| *o == op).map_or("sum", |(w, _)| w);
    Diagnostic::new(Code::E0112, format!("index `{index}` is reduced, but two reductions are possible"))
        .label(part.span, "this")
        .label(whole, "or this larger one?")
        .help(format!(
            "write `{word}[{index}](...)` around the intended expression, as in `{word}[{index}]({})`",
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

/// True if part of a term does not use an index that other parts use, so that the term is
/// ambiguous: it may count once, or once for each value of the index. That is a sum in parentheses
/// without another factor that depends on the index, or a reduction of a body that depends on it
/// only in part.
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

/// Splits an expression into terms with and without an index: reductions of sums are split.
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
                // Subtracted terms come after added ones.
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

/// The product or sum of these operands.
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

/// Flattens nested sums, and distributes a product over the one sum among its factors.
fn flatten(expr: Expr, known: &[Name]) -> Expr {
    let span = expr.span;
    match expr.kind {
        ExprKind::Reduce { op, indices, body } => match flatten(*body, known).kind {
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
            let operands: Vec<Expr> = operands.into_iter().map(|e| flatten(e, known)).collect();
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
            // Two cases prevent distribution: an index of the sum shadows one of the other factors;
            // or only another factor uses an index, as a number, so that the sum would need an
            // additional loop.
            let foreign =
                |e: &Expr| known.iter().any(|i| as_number(e, &i.text) && !subscripts_something(&body, &i.text));
            if parts.iter().any(|(_, e)| foreign(e) || indices.iter().any(|i| uses(e, &i.text))) {
                parts.insert(at, (false, Expr { kind: ExprKind::Reduce { op, indices, body }, span: sum.span }));
                return join(parts, true, span);
            }
            parts.insert(at.min(parts.len()), (false, *body));
            let body = Box::new(join(parts, true, span));
            Expr { kind: ExprKind::Reduce { op, indices, body }, span }
        }
        ExprKind::Operator(op, operands) => {
            Expr { kind: ExprKind::Operator(op, operands.into_iter().map(|e| flatten(e, known)).collect()), span }
        }
        ExprKind::Call { function, args, keywords } => {
            let args = args.into_iter().map(|e| flatten(e, known)).collect();
            Expr { kind: ExprKind::Call { function, args, keywords }, span }
        }
        kind => Expr { kind, span },
    }
}
