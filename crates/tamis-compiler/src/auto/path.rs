//! Substitution of temporaries and contraction paths: a temporary is substituted for its uses, and
//! a product of many factors is contracted pairwise, where that is cheaper.

use super::nest::{Inlining, Item, Scheduler};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::notation::{Assignment, IndexRange, same_all};
use tamis_ir::text::syntax::{Expr, ExprKind, Name};
use tamis_ir::{DType, Kind};

/// The maximum number of factors of an exhaustive contraction search.
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

/// True if an expression uses an index.
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

/// Substitutes indices, and optionally one access, in an expression.
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

/// The subscripts as distinct bare indices, if they are.
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
    /// Substitutes temporaries into their consumers, as long as a consumer stays small.
    pub(super) fn inline(&mut self, items: &mut Vec<Item>, inlining: Inlining) {
        if inlining == Inlining::None {
            return;
        }
        let mut slots: Vec<Option<Item>> = std::mem::take(items).into_iter().map(Some).collect();
        let mut uses = TensorReaders::of(&slots);
        // A temporary whose consumers were merged may be substituted in the next round.
        loop {
            let mut changed = false;
            for at in 0..slots.len() {
                let Some((user, assignment, extents)) = self.inlined(&slots, at, &uses, inlining) else { continue };
                let Some(made) = slots[at].take() else { continue };
                let name = &made.assignment.target.text;
                self.note(name, "written out where it is used", "it is used once, and nothing is computed twice");
                uses.moved(at, user, &assignment);
                if let Some(item) = &mut slots[user] {
                    (item.assignment, item.extents) = (assignment, extents);
                }
                changed = true;
            }
            if !changed {
                break;
            }
        }
        items.extend(slots.into_iter().flatten());
    }

    fn inlined(
        &self,
        slots: &[Option<Item>],
        at: usize,
        uses: &TensorReaders,
        inlining: Inlining,
    ) -> Option<(usize, Assignment, FxHashMap<String, f64>)> {
        let made_item = slots[at].as_ref()?;
        let Item { assignment: made, extents: inner, .. } = made_item;
        let name = &made.target.text;
        // The size of a temporary needs it as a tensor.
        if uses.measured.contains(name) {
            return None;
        }
        if self.is_result(name) || made.again || uses.written.get(name).copied().unwrap_or(0) > 1 {
            return None;
        }
        let &[user] = uses.readers.get(name).map(Vec::as_slice)? else { return None };
        let item = slots[user].as_ref()?;
        // A temporary that is substituted several times is recomputed unless CSE finds it, and
        // nested substitution grows expressions.
        let times = occurrences(&item.assignment.body, name);
        let grown = size(&item.assignment.body) + times * size(&made.body);
        if grown > LARGEST_BODY || (times > 1 && size(&made.body) > LARGEST_COPIED) {
            return None;
        }
        let accesses = item.assignment.accesses();
        let mut own = accesses.iter().filter(|(tensor, _)| tensor == name);
        let (_, subscripts) = own.next().filter(|_| own.next().is_none())?;
        let dims = bare(&made.subscripts)?;
        let pure = match made.op {
            None => true,
            // A sum of products inside a sum of products.
            Some(Op::Add) if inlining == Inlining::All => {
                let outer = matches!(item.assignment.op, Some(Op::Add) | None);
                // Integer sums wrap around in their own type, which differs from that of the outer
                // sum.
                let same_type = made_item.dtype == item.dtype || made_item.dtype.kind() > Kind::Int;
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
        let mut ranges = item.assignment.ranges.clone();
        for range in &made.ranges {
            if let Some(Expr { kind: ExprKind::Name(index), .. }) = names.get(&range.index)
                && !ranges.iter().any(|known| known.index == *index)
            {
                ranges.push(IndexRange { index: index.clone(), ..range.clone() });
            }
        }
        Some((user, Assignment { body, op, ranges, ..item.assignment.clone() }, extents))
    }

    /// The type of the tensor of an access.
    fn dtype_of(&self, access: &Expr) -> Option<DType> {
        let ExprKind::Index { base, .. } = &access.kind else { return None };
        self.operands.get(&base.text).map(|operand| operand.dtype)
    }

    pub(super) fn fresh_index(&self, name: &str, taken: &FxHashMap<String, f64>) -> String {
        let mut fresh = name.to_string();
        let mut number = 0;
        while taken.contains_key(&fresh) || (number > 0 && self.is_taken(&fresh)) {
            number += 1;
            fresh = format!("{name}{number}");
        }
        fresh
    }

    /// Splits products of three and more factors into pairwise contractions where that is cheaper.
    pub(super) fn split(&mut self, item: Item) -> Vec<Item> {
        let whole = self.price_whole(&item);
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

    /// The cost of an assignment without splitting; infinite if it has more loops than the search
    /// supports.
    fn price_whole(&self, item: &Item) -> f64 {
        if self.is_long(item) { f64::INFINITY } else { self.price(item) }
    }

    /// True if a product is too long for the exhaustive contraction search.
    fn is_long(&self, item: &Item) -> bool {
        self.cuttable(item).is_some_and(|(tensors, _)| tensors.len() > MOST)
            && item.assignment.indices().len() > LONGEST_SEARCH
    }

    /// The tensor factors and the other factors of a sum of products that may be split.
    fn cuttable(&self, item: &Item) -> Option<(Vec<Expr>, Vec<Expr>)> {
        let list = factors(&item.assignment.body)?;
        let (tensors, others): (Vec<&Expr>, Vec<&Expr>) =
            list.into_iter().partition(|e| matches!(e.kind, ExprKind::Index { .. }));
        if item.assignment.op != Some(Op::Add) || tensors.len() < 3 {
            return None;
        }
        // Integer products wrap around, so reassociation is exact only within one type.
        let mut integers = tensors.iter().filter_map(|e| self.dtype_of(e)).filter(|dtype| dtype.kind() == Kind::Int);
        if integers.clone().count() > 1 && integers.any(|dtype| dtype != item.dtype) {
            return None;
        }
        Some((tensors.into_iter().cloned().collect(), others.into_iter().cloned().collect()))
    }

    /// The best contraction path: exhaustive for few factors, otherwise, and once the budget of
    /// searches is spent, greedy by the fewest points.
    fn best(&mut self, item: &Item, whole: f64) -> (f64, Vec<Item>) {
        let mut best = (whole, vec![item.clone()]);
        let Some((tensors, others)) = self.cuttable(item) else { return best };
        let exhausted = self.is_exhausted();
        if tensors.len() > MOST || exhausted {
            if !self.is_long(item) && !exhausted {
                return best;
            }
            let cheapest = cheapest_pair(item, &tensors);
            let Some((first, last)) = cheapest.and_then(|pair| self.contracted(item, &tensors, &others, pair)) else {
                return best;
            };
            self.taken_name(&first);
            let before = self.price_temporary(&first);
            let whole = self.price_whole(&last);
            let (after, mut items) = self.best(&last, whole);
            if exhausted && before + after >= best.0 * WORTH {
                return best;
            }
            items.insert(0, first);
            return (before + after, items);
        }
        for pair in pairs(tensors.len()) {
            let Some((first, last)) = self.contracted(item, &tensors, &others, pair) else { continue };
            let name = first.assignment.target.text.clone();
            self.taken_name(&first);
            let before = self.price_temporary(&first);
            if before < best.0 {
                let whole = self.price(&last);
                let (after, mut items) = self.best(&last, whole);
                if before + after < best.0 * WORTH {
                    items.insert(0, first);
                    best = (before + after, items);
                }
            }
            self.forget(&name);
        }
        // The statistics of the chosen temporaries are restored.
        for item in &best.1[..best.1.len() - 1] {
            let item = item.clone();
            self.price_temporary(&item);
        }
        best
    }

    /// Contracts two factors first, over the indices that occur only in them; none if there are no
    /// such indices. A factor that occurs several times is contracted at once.
    fn contracted(
        &mut self,
        item: &Item,
        tensors: &[Expr],
        others: &[Expr],
        (a, b): (usize, usize),
    ) -> Option<(Item, Item)> {
        let same = |e: &Expr, k: usize| same_all(std::slice::from_ref(e), &tensors[k..=k]);
        let (pair, rest): (Vec<&Expr>, Vec<&Expr>) = tensors.iter().partition(|e| same(e, a) || same(e, b));
        if rest.is_empty() {
            return None;
        }
        let (free, reduced) = (item.assignment.free(), item.assignment.reduced());
        let in_pair = |index: &String| pair.iter().any(|e| uses(e, index, false));
        let in_rest = |index: &String| rest.iter().any(|e| uses(e, index, false));
        if !reduced.iter().any(|index| in_pair(index) && !in_rest(index)) {
            return None;
        }
        let kept: Vec<String> = free
            .iter()
            .chain(&reduced)
            .filter(|index| in_pair(index) && (free.contains(index) || in_rest(index)))
            .cloned()
            .collect();
        let span = item.assignment.span;
        let subscripts: Vec<Expr> = kept.iter().map(|name| Expr { kind: ExprKind::Name(name.clone()), span }).collect();
        let name = Name { text: self.next_name(), span };
        let body = product(pair.iter().copied().cloned().collect())?;
        let first = Assignment {
            target: name.clone(),
            subscripts: subscripts.clone(),
            op: Some(Op::Add),
            body,
            span,
            temporary: true,
            again: false,
            ranges: of_indices(&item.assignment.ranges, &in_pair),
        };
        let access = match subscripts.is_empty() {
            true => Expr { kind: ExprKind::Name(name.text.clone()), span },
            false => Expr { kind: ExprKind::Index { base: name, subscripts }, span },
        };
        let factors = others.iter().chain(rest.iter().copied()).cloned().chain([access]);
        let body = product(factors.collect())?;
        let in_last = |index: &String| free.contains(index) || uses(&body, index, false);
        let ranges = of_indices(&item.assignment.ranges, &in_last);
        let last = Assignment { body: body.clone(), ranges, ..item.assignment.clone() };
        Some((Item { assignment: first, ..item.clone() }, Item { assignment: last, ..item.clone() }))
    }
}

/// Reads and writes of tensors, by statement number.
struct TensorReaders {
    readers: FxHashMap<String, Vec<usize>>,
    written: FxHashMap<String, usize>,
    /// The tensors whose sizes are read.
    measured: FxHashSet<String>,
}

impl TensorReaders {
    fn of(slots: &[Option<Item>]) -> TensorReaders {
        let mut uses = TensorReaders {
            readers: FxHashMap::default(),
            written: FxHashMap::default(),
            measured: FxHashSet::default(),
        };
        for (k, item) in slots.iter().enumerate() {
            let Some(Item { assignment, .. }) = item else { continue };
            *uses.written.entry(assignment.target.text.clone()).or_default() += 1;
            uses.measured.extend(assignment.measured().into_iter().map(String::from));
            uses.reads(k, assignment);
        }
        uses
    }

    fn reads(&mut self, at: usize, assignment: &Assignment) {
        for (tensor, _) in assignment.accesses() {
            let readers = self.readers.entry(tensor.to_string()).or_default();
            if !readers.contains(&at) {
                readers.push(at);
            }
        }
    }

    /// Records that a statement was substituted into another one.
    fn moved(&mut self, from: usize, to: usize, now: &Assignment) {
        for (tensor, _) in now.accesses() {
            if let Some(readers) = self.readers.get_mut(tensor) {
                readers.retain(|at| *at != from);
            }
        }
        self.reads(to, now);
    }
}

/// The pair of factors with the fewest points among those that are the only ones with some reduced
/// index. Each index is looked at once for each factor that has it.
fn cheapest_pair(item: &Item, tensors: &[Expr]) -> Option<(usize, usize)> {
    let indices = item.assignment.indices();
    let reduced = item.assignment.reduced();
    let users: Vec<Vec<usize>> =
        indices.iter().map(|index| (0..tensors.len()).filter(|k| uses(&tensors[*k], index, false)).collect()).collect();
    let extent = |k: usize| item.extents.get(&indices[k]).copied().unwrap_or(1.0);
    let points = |(a, b): (usize, usize)| {
        let own = (0..indices.len()).filter(|k| users[*k].contains(&a) || users[*k].contains(&b));
        own.map(extent).product::<f64>()
    };
    // An index of one factor alone can be reduced together with any other factor.
    let partners = (0..indices.len()).filter(|k| reduced.contains(&indices[*k])).flat_map(|k| match users[k][..] {
        [a, b] => vec![(a, b)],
        [a] => (0..tensors.len()).filter(|b| *b != a).map(|b| (a.min(b), a.max(b))).collect(),
        _ => Vec::new(),
    });
    let mut candidates: Vec<(usize, usize)> = partners.collect();
    candidates.sort_unstable();
    candidates.dedup();
    candidates.into_iter().min_by(|a, b| points(*a).total_cmp(&points(*b)))
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)))
}

/// The number of reads of a tensor in an expression.
fn occurrences(expr: &Expr, name: &str) -> usize {
    let here = usize::from(mentions(expr, name));
    here + match &expr.kind {
        ExprKind::Index { subscripts: list, .. } | ExprKind::Operator(_, list) | ExprKind::Call { args: list, .. } => {
            list.iter().map(|e| occurrences(e, name)).sum()
        }
        _ => 0,
    }
}

/// The number of operators and accesses of an expression.
fn size(expr: &Expr) -> usize {
    1 + match &expr.kind {
        ExprKind::Operator(_, list) | ExprKind::Call { args: list, .. } => list.iter().map(size).sum(),
        _ => 0,
    }
}

/// The maximum size of a statement after substitution, in operators and accesses.
const LARGEST_BODY: usize = 256;

/// The maximum size of a temporary that is substituted for several uses in a statement.
const LARGEST_COPIED: usize = 32;

/// The maximum number of indices of an exhaustive contraction search.
const LONGEST_SEARCH: usize = 8;

/// The ranges of the selected indices.
fn of_indices(ranges: &[IndexRange], some: &dyn Fn(&String) -> bool) -> Vec<IndexRange> {
    ranges.iter().filter(|range| some(&range.index)).cloned().collect()
}

/// The cost ratio below which a temporary pays.
const WORTH: f64 = 0.9;

fn mentions(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        ExprKind::Index { base, .. } => base.text == name,
        ExprKind::Name(text) => text == name,
        _ => false,
    }
}
