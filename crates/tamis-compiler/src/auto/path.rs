//! Temporaries that come and go: one that is used once is written out where it is used, and a product of many factors is cut
//! where that is cheaper.

use super::nest::{Item, Scheduler};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::Op;
use tamis_ir::notation::Assignment;
use tamis_ir::text::syntax::{Expr, ExprKind, Name};
use tamis_ir::{DType, Kind};

/// Products of more factors are not searched for the best way to cut them.
const MOST: usize = 6;

/// The factors of a product of accesses and numbers.
pub(super) fn factors(expr: &Expr) -> Option<Vec<&Expr>> {
    match &expr.kind {
        ExprKind::Operator(Op::Mul, operands) => {
            let mut all = Vec::new();
            for operand in operands {
                all.extend(factors(operand)?);
            }
            Some(all)
        }
        ExprKind::Index { .. } | ExprKind::Name(_) | ExprKind::Number(_) => Some(vec![expr]),
        _ => None,
    }
}

/// A product of factors.
pub(super) fn product(factors: Vec<Expr>) -> Option<Expr> {
    factors.into_iter().reduce(|a, b| {
        let span = a.span.to(b.span);
        Expr { kind: ExprKind::Operator(Op::Mul, vec![a, b]), span }
    })
}

/// The loops that a subscript or an expression uses.
pub(super) fn uses(expr: &Expr, index: &str, within: bool) -> bool {
    match &expr.kind {
        ExprKind::Name(text) => within && text == index,
        ExprKind::Index { subscripts, .. } => subscripts.iter().any(|s| uses(s, index, true)),
        ExprKind::Operator(_, operands) => operands.iter().any(|e| uses(e, index, within)),
        ExprKind::Call { args, .. } => args.iter().any(|e| uses(e, index, within)),
        ExprKind::Entry { at, .. } => at.iter().any(|e| uses(e, index, true)),
        _ => false,
    }
}

/// An expression with indices replaced, and one access by another expression.
pub(super) fn replaced(expr: &Expr, names: &FxHashMap<String, Expr>, access: Option<(&str, &Expr)>) -> Expr {
    let each = |list: &[Expr]| list.iter().map(|e| replaced(e, names, access)).collect::<Vec<_>>();
    let kind = match &expr.kind {
        ExprKind::Name(text) => match (names.get(text), access) {
            (Some(with), _) => return Expr { kind: with.kind.clone(), span: expr.span },
            (None, Some((name, with))) if name == text => return with.clone(),
            _ => expr.kind.clone(),
        },
        ExprKind::Index { base, .. } if access.is_some_and(|(name, _)| name == base.text) => {
            return access.map_or_else(|| expr.clone(), |(_, with)| with.clone());
        }
        ExprKind::Index { base, subscripts } => ExprKind::Index { base: base.clone(), subscripts: each(subscripts) },
        ExprKind::Operator(op, operands) => ExprKind::Operator(*op, each(operands)),
        ExprKind::Call { function, args, keywords } => {
            ExprKind::Call { function: function.clone(), args: each(args), keywords: keywords.clone() }
        }
        ExprKind::Entry { base, part, at } => ExprKind::Entry { base: base.clone(), part: *part, at: each(at) },
        other => other.clone(),
    };
    Expr { kind, span: expr.span }
}

/// The bare indices that something is subscripted by, if each is one, and another one.
pub(super) fn bare(subscripts: &[Expr]) -> Option<Vec<&str>> {
    let mut names: Vec<&str> = Vec::new();
    for s in subscripts {
        match &s.kind {
            ExprKind::Name(text) if !names.contains(&text.as_str()) => names.push(text),
            _ => return None,
        }
    }
    Some(names)
}

impl Scheduler<'_> {
    /// Writes temporaries out where they are used, if that is once and nothing is computed more often than before.
    pub(super) fn inline(&mut self, items: &mut Vec<Item>) {
        let mut at = 0;
        while at < items.len() {
            match self.inlined(items, at) {
                Some((user, assignment, extents)) => {
                    let name = items[at].assignment.target.text.clone();
                    self.note(&name, "written out where it is used", "it is used once, and nothing is computed twice");
                    items[user].assignment = assignment;
                    items[user].extents = extents;
                    items.remove(at);
                    at = 0;
                }
                None => at += 1,
            }
        }
    }

    fn inlined(&self, items: &[Item], at: usize) -> Option<(usize, Assignment, FxHashMap<String, f64>)> {
        let Item { assignment: made, extents: inner, .. } = &items[at];
        let name = &made.target.text;
        if self.is_result(name) || made.again || items.iter().filter(|i| i.assignment.target.text == *name).count() > 1
        {
            return None;
        }
        let mut users = items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.assignment.accesses().iter().any(|(tensor, _)| tensor == name));
        let (user, item) = users.next().filter(|_| users.next().is_none())?;
        let accesses = item.assignment.accesses();
        let mut own = accesses.iter().filter(|(tensor, _)| tensor == name);
        let (_, subscripts) = own.next().filter(|_| own.next().is_none())?;
        let dims = bare(&made.subscripts)?;
        let pure = match made.op {
            None => true,
            // A sum of products in a sum of products.
            Some(Op::Add) => {
                let outer = matches!(item.assignment.op, Some(Op::Add) | None);
                // Sums of integers go round at the end of their type, which is not that of the other sum.
                let same_type = items[at].dtype == item.dtype || items[at].dtype.kind() > Kind::Int;
                outer
                    && same_type
                    && factors(&made.body).is_some()
                    && factors(&item.assignment.body)
                        .is_some_and(|f| f.iter().filter(|e| mentions(e, name)).count() == 1)
            }
            Some(_) => false,
        };
        if !pure {
            return None;
        }
        let mut names: FxHashMap<String, Expr> =
            dims.iter().zip(subscripts.iter()).map(|(dim, s)| (dim.to_string(), s.clone())).collect();
        let mut extents = item.extents.clone();
        for reduced in made.reduced() {
            let fresh = self.fresh_index(&reduced, &extents);
            extents.insert(fresh.clone(), inner.get(&reduced).copied().unwrap_or(1.0));
            names.insert(reduced, Expr { kind: ExprKind::Name(fresh), span: made.span });
        }
        let written = replaced(&made.body, &names, None);
        let body = replaced(&item.assignment.body, &FxHashMap::default(), Some((name, &written)));
        let op = if made.op.is_some() { Some(Op::Add) } else { item.assignment.op };
        Some((user, Assignment { body, op, ..item.assignment.clone() }, extents))
    }

    /// The type of the tensor of an access.
    fn dtype_of(&self, access: &Expr) -> Option<DType> {
        let ExprKind::Index { base, .. } = &access.kind else { return None };
        self.operands.get(&base.text).map(|operand| operand.dtype)
    }

    fn fresh_index(&self, name: &str, taken: &FxHashMap<String, f64>) -> String {
        let mut fresh = name.to_string();
        let mut number = 0;
        while taken.contains_key(&fresh) || (number > 0 && self.is_taken(&fresh)) {
            number += 1;
            fresh = format!("{name}{number}");
        }
        fresh
    }

    /// Cuts products of three and more factors where a temporary makes them cheaper; gives what the whole costs.
    pub(super) fn split(&mut self, item: Item) -> Vec<Item> {
        let whole = self.price(&item);
        let (cost, items) = self.best(&item, whole);
        if items.len() > 1 {
            let lines: Vec<String> = items.iter().map(|item| item.assignment.to_string()).collect();
            self.decide(
                &item.assignment.to_string(),
                &lines.join("; "),
                &format!("in steps that cost {cost:.3e}"),
                vec![format!("at once: {whole:.3e}")],
            );
        }
        items
    }

    fn best(&mut self, item: &Item, whole: f64) -> (f64, Vec<Item>) {
        let mut best = (whole, vec![item.clone()]);
        let Some(list) = factors(&item.assignment.body) else { return best };
        let tensors: Vec<Expr> =
            list.iter().filter(|e| matches!(e.kind, ExprKind::Index { .. })).map(|e| (*e).clone()).collect();
        if item.assignment.op != Some(Op::Add) || tensors.len() < 3 || tensors.len() > MOST {
            return best;
        }
        // Products of integers go round at the end of their type: which of them are multiplied first shows, unless all is of one type.
        let mut integers = tensors.iter().filter_map(|e| self.dtype_of(e)).filter(|dtype| dtype.kind() == Kind::Int);
        if integers.clone().count() > 1 && integers.any(|dtype| dtype != item.dtype) {
            return best;
        }
        let others: Vec<Expr> =
            list.iter().filter(|e| !matches!(e.kind, ExprKind::Index { .. })).map(|e| (*e).clone()).collect();
        let free = item.assignment.free();
        let reduced = item.assignment.reduced();
        for a in 0..tensors.len() {
            for b in a + 1..tensors.len() {
                let pair = [&tensors[a], &tensors[b]];
                let rest: Vec<&Expr> =
                    tensors.iter().enumerate().filter(|(k, _)| *k != a && *k != b).map(|(_, e)| e).collect();
                let in_pair = |index: &String| pair.iter().any(|e| uses(e, index, false));
                let private = reduced.iter().any(|index| in_pair(index) && !rest.iter().any(|e| uses(e, index, false)));
                if !private {
                    continue;
                }
                let kept: Vec<String> = free
                    .iter()
                    .chain(&reduced)
                    .filter(|index| {
                        in_pair(index) && (free.contains(index) || rest.iter().any(|e| uses(e, index, false)))
                    })
                    .cloned()
                    .collect();
                let span = item.assignment.span;
                let subscripts: Vec<Expr> =
                    kept.iter().map(|name| Expr { kind: ExprKind::Name(name.clone()), span }).collect();
                let name = Name { text: self.fresh_name(), span };
                let Some(body) = product(pair.into_iter().cloned().collect()) else { continue };
                let first = Item {
                    assignment: Assignment {
                        target: name.clone(),
                        subscripts: subscripts.clone(),
                        op: Some(Op::Add),
                        body,
                        span,
                        temporary: true,
                        again: false,
                    },
                    ..item.clone()
                };
                let access = match subscripts.is_empty() {
                    true => Expr { kind: ExprKind::Name(name.text.clone()), span },
                    false => Expr { kind: ExprKind::Index { base: name.clone(), subscripts }, span },
                };
                let factors = others.iter().chain(rest.iter().copied()).cloned().chain([access]);
                let Some(body) = product(factors.collect()) else { continue };
                let last = Item { assignment: Assignment { body, ..item.assignment.clone() }, ..item.clone() };
                let before = self.price_temporary(&first);
                if before < best.0 {
                    let whole = self.price(&last);
                    let (after, mut items) = self.best(&last, whole);
                    if before + after < best.0 * WORTH {
                        items.insert(0, first);
                        best = (before + after, items);
                    }
                }
                self.forget(&name.text);
            }
        }
        // What was forgotten is known again for those that stay.
        for item in &best.1[..best.1.len() - 1] {
            let item = item.clone();
            self.price_temporary(&item);
        }
        best
    }
}

/// A temporary must make things cheaper by this much.
const WORTH: f64 = 0.9;

fn mentions(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        ExprKind::Index { base, .. } => base.text == name,
        ExprKind::Name(text) => text == name,
        _ => false,
    }
}
