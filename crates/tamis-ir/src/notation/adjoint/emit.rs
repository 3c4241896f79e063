//! Accumulation of what flows to one tensor, as statements: gathers where subscripts are plain, else scatters.
//!
//! Contributions whose subscripts are plain indices are one statement, with indices renamed to be the same in all of them.
//! Constants and repeated indices become masks (`A[i,i]` flows where `i == j`). Affine, gathered and ranged subscripts are
//! transposed: an affine read is an affine update, a gather a scatter, of a tensor that starts with zeros.

use super::normal::equals;
use super::reverse::{Contribution, Reverse};
use super::text;
use super::tree::{
    access, bounds, coalesced_access, mentions, negative, plain_index, product, reads, reduction, renaming,
    substituted, sum, variable,
};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Result, Span};
use crate::notation::{Assignment, IndexRange};
use crate::text::syntax::{Expr, ExprKind};

/// A statement that differentiation makes: its value holds its reductions.
#[derive(Clone)]
pub(super) struct AdjointStatement {
    pub(super) target: String,
    pub(super) subscripts: Vec<Expr>,
    pub(super) op: Option<Op>,
    pub(super) value: Expr,
    pub(super) ranges: Vec<IndexRange>,
}

impl AdjointStatement {
    /// The statement as text.
    pub(super) fn text(&self) -> String {
        let symbol = self.op.map_or("", |op| op.info().symbol.unwrap_or(op.info().name));
        let space = if symbol.is_empty() { "" } else { " " };
        let target = text::access(&self.target, &self.subscripts);
        let mut out = match symbol {
            "" => format!("{target} = {}", text::expression(&self.value)),
            _ => format!("{target}{space}{symbol}= {}", text::expression(&self.value)),
        };
        for range in &self.ranges {
            out += &format!(" {}", text::clause(range));
        }
        out
    }

    /// Everything that it reads.
    pub(super) fn reads(&self) -> Vec<String> {
        let mut indices = super::tree::index_names(&self.value);
        for subscript in &self.subscripts {
            names_in(subscript, &mut indices);
        }
        indices.extend(self.ranges.iter().map(|range| range.index.clone()));
        // A scalar operand is a name like an index, but no subscript.
        let mut found = Vec::new();
        reads(&self.value, &indices, &mut found);
        self.subscripts.iter().for_each(|s| reads(s, &indices, &mut found));
        for range in &self.ranges {
            range.start.iter().chain([&range.stop]).for_each(|bound| reads(bound, &indices, &mut found));
        }
        found
    }
}

/// The names of a subscript that are indices: those that no access inside of it reads.
fn names_in(subscript: &Expr, found: &mut Vec<String>) {
    match &subscript.kind {
        ExprKind::Name(text) => found.push(text.clone()),
        _ => super::tree::children(subscript).into_iter().for_each(|child| names_in(child, found)),
    }
}

/// A term of a gathered cotangent.
struct Term {
    body: Expr,
    reduced: Vec<String>,
    ranges: Vec<IndexRange>,
}

/// The gradient of an operand, on its pattern if it has one.
pub(super) fn operand(reverse: &mut Reverse, operand: &str, name: &str, flowing: &[Contribution]) -> Result<()> {
    let patterned = reverse.request.patterns.iter().any(|known| known == operand);
    let mask = match patterned && !flowing.iter().all(|one| one.subscripts.is_empty()) {
        true => vec![reverse.pattern(operand)],
        false => Vec::new(),
    };
    accumulate(reverse, operand, name, flowing, &mask, false)
}

/// The cotangent of a value that is computed on the way.
pub(super) fn temporary(reverse: &mut Reverse, target: &str, name: &str, flowing: &[Contribution]) -> Result<()> {
    accumulate(reverse, target, name, flowing, &[], true)
}

/// Writes the statements. `masks` are patterns with the dimensions of the tensor.
fn accumulate(
    reverse: &mut Reverse,
    of: &str,
    name: &str,
    flowing: &[Contribution],
    masks: &[String],
    supported: bool,
) -> Result<()> {
    let Some(first) = flowing.first() else { return Ok(()) };
    let span = reverse.assignments[first.of].span;
    let canonical = canonical_indices(reverse, first);
    let (mut gathered, mut scattered) = (Vec::new(), Vec::new());
    let mut used: Vec<String> = canonical.clone();
    for contribution in flowing {
        match gather(reverse, contribution, &canonical, &mut used)? {
            Some(term) => gathered.push(term),
            None => scattered.push(contribution),
        }
    }
    let subscripts: Vec<Expr> = canonical.iter().map(|index| variable(index, span)).collect();
    let mut factors: Vec<Expr> = masks.iter().map(|mask| access(mask, subscripts.clone(), span)).collect();
    let dense = gathered.iter().any(|term| !term.reduced.is_empty() || !covers(&term.body, &canonical));
    if supported && dense {
        factors.extend(reverse.support_of(of, &canonical, span));
    }
    let masked = |body: Expr| factors.iter().rev().fold(body, |body, mask| product(mask.clone(), body));
    if scattered.is_empty() {
        let statement = gathered_statement(reverse, of, name, gathered, &canonical, &masked, span)?;
        reverse.statements.push(statement);
        return Ok(());
    }
    // Scatters update a tensor of zeros, which is read on the pattern afterwards.
    let whole = if factors.is_empty() { name.to_string() } else { reverse.fresh.suffixed(name, "all") };
    let start = gathered_statement(reverse, of, &whole, gathered, &canonical, &|body| body, span)?;
    reverse.statements.push(start);
    for contribution in scattered {
        let statement = scatter(reverse, contribution, &whole)?;
        reverse.statements.push(statement);
    }
    if !factors.is_empty() {
        let value = masked(access(&whole, subscripts.clone(), span));
        let (target, ranges) = (name.to_string(), Vec::new());
        reverse.statements.push(AdjointStatement { target, subscripts, op: None, value, ranges });
    }
    Ok(())
}

/// A name for each dimension: the index that subscripts it first, if it is plain, else a new one.
fn canonical_indices(reverse: &mut Reverse, first: &Contribution) -> Vec<String> {
    let indices = reverse.assignments[first.of].indices();
    let mut canonical: Vec<String> = Vec::new();
    for subscript in &first.subscripts {
        let index = plain_index(subscript, &indices)
            .filter(|index| !canonical.iter().any(|known| known == index))
            .map(str::to_string)
            .unwrap_or_else(|| {
                ["u", "v", "w"]
                    .iter()
                    .map(|letter| letter.to_string())
                    .find(|letter| reverse.fresh.taken.insert(letter.clone()))
                    .unwrap_or_else(|| reverse.fresh.name("u"))
            });
        canonical.push(index);
    }
    canonical
}

/// A contribution as a term of the statement for the canonical indices; `None` if its subscripts are no plain indices.
fn gather(
    reverse: &mut Reverse,
    contribution: &Contribution,
    canonical: &[String],
    used: &mut Vec<String>,
) -> Result<Option<Term>> {
    let assignment = reverse.assignments[contribution.of].clone();
    let indices = assignment.indices();
    let ranged = |index: &str| assignment.ranges.iter().any(|range| range.index == index);
    let mut names: Vec<(String, String)> = Vec::new();
    let mut conditions: Vec<Expr> = Vec::new();
    for (subscript, to) in contribution.subscripts.iter().zip(canonical) {
        match (plain_index(subscript, &indices), &subscript.kind) {
            (Some(index), _) if ranged(index) => return Ok(None),
            (Some(index), _) => match names.iter().find(|(from, _)| from == index) {
                Some((_, known)) => conditions.push(equals(known, variable(to, subscript.span))),
                None => names.push((index.to_string(), to.clone())),
            },
            (None, ExprKind::Number(_)) => conditions.push(equals(to, subscript.clone())),
            (None, _) => return Ok(None),
        }
    }
    let mut reduced = Vec::new();
    for index in
        indices.iter().filter(|index| !names.iter().any(|(from, _)| from == *index)).cloned().collect::<Vec<_>>()
    {
        let to = match used.contains(&index) || reverse.fresh_needed(&index, canonical) {
            true => reverse.fresh.name(&index),
            false => index.clone(),
        };
        used.push(to.clone());
        reduced.push((index, to));
    }
    let all: Vec<(String, String)> = names.iter().chain(&reduced).cloned().collect();
    let by = renaming(&all, assignment.span);
    let mut body = substituted(&contribution.body, &by);
    for condition in conditions {
        body = product(body, condition);
    }
    let mut ranges = renamed_ranges(&contribution.ranges, &all);
    let mut kept = Vec::new();
    for (index, to) in reduced {
        if mentions(&body, &to) {
            bound(reverse, &assignment, &index, &to, &body, &mut ranges)?;
            kept.push(to);
        } else {
            body = product(body, extent(reverse, &assignment, &index)?);
        }
    }
    ranges.retain(|range| mentions(&body, &range.index));
    Ok(Some(Term { body, reduced: kept, ranges }))
}

fn renamed_ranges(ranges: &[IndexRange], names: &[(String, String)]) -> Vec<IndexRange> {
    let renamed = |range: &IndexRange| {
        let to = names.iter().find(|(from, _)| *from == range.index).map(|(_, to)| to.clone());
        IndexRange { index: to.unwrap_or_else(|| range.index.clone()), ..range.clone() }
    };
    ranges.iter().map(renamed).collect()
}

/// Gives an index a range where no access bounds it.
fn bound(
    reverse: &Reverse,
    assignment: &Assignment,
    index: &str,
    to: &str,
    body: &Expr,
    ranges: &mut Vec<IndexRange>,
) -> Result<()> {
    if ranges.iter().any(|range| range.index == to) || bounds(body, to) {
        return Ok(());
    }
    let Some(stop) = reverse.sizes.stop(assignment, index) else { return Err(unbounded(index, assignment.span)) };
    ranges.push(IndexRange { index: to.to_string(), start: None, stop });
    Ok(())
}

/// The number of values of an index, as a factor.
fn extent(reverse: &Reverse, assignment: &Assignment, index: &str) -> Result<Expr> {
    reverse.sizes.extent(assignment, index).ok_or_else(|| unbounded(index, assignment.span))
}

fn unbounded(index: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0117, format!("the extent of index `{index}` is not known in the derivative"))
        .label(span, "differentiated here")
        .help(format!("write its range: `... for {index} in range(10)`"))
}

/// One statement of all gathered terms, or of zeros if there are none.
fn gathered_statement(
    reverse: &Reverse,
    of: &str,
    name: &str,
    terms: Vec<Term>,
    canonical: &[String],
    masked: &dyn Fn(Expr) -> Expr,
    span: Span,
) -> Result<AdjointStatement> {
    let several = terms.len() > 1;
    let mut ranges = Vec::new();
    let mut bodies = Vec::new();
    for term in terms {
        let sums = !term.reduced.is_empty();
        let body = if sums || !several { masked(term.body) } else { term.body };
        let implicit = !several && text::is_product(&body);
        bodies.push(if sums && !implicit { reduction(Op::Add, &term.reduced, body) } else { body });
        for range in term.ranges {
            if !ranges.iter().any(|known: &IndexRange| known.index == range.index) {
                ranges.push(range);
            }
        }
    }
    let mut value = sum(bodies, span);
    if several {
        value = masked(value);
    }
    for (dim, index) in canonical.iter().enumerate() {
        if !bounds(&value, index) && !ranges.iter().any(|range| range.index == *index) {
            let stop = reverse.sizes.dim(of, dim).ok_or_else(|| unbounded(index, span))?;
            ranges.push(IndexRange { index: index.clone(), start: None, stop });
        }
    }
    let subscripts = canonical.iter().map(|index| variable(index, span)).collect();
    Ok(AdjointStatement { target: name.to_string(), subscripts, op: None, value, ranges })
}

/// An update of the elements that a contribution names.
fn scatter(reverse: &Reverse, contribution: &Contribution, target: &str) -> Result<AdjointStatement> {
    let assignment = &reverse.assignments[contribution.of];
    let mut body = contribution.body.clone();
    let mut ranges = contribution.ranges.clone();
    let written = |index: &str| contribution.subscripts.iter().any(|s| mentions(s, index));
    // A gathered subscript bounds its own indices.
    let inside = access(target, contribution.subscripts.clone(), assignment.span);
    let mut reduced = Vec::new();
    for index in assignment.indices() {
        if mentions(&body, &index) || written(&index) {
            let bounded = contribution.subscripts.iter().any(|s| bounds(s, &index));
            if !bounded {
                bound(reverse, assignment, &index, &index, &body, &mut ranges)?;
            }
            if !written(&index) {
                reduced.push(index);
            }
        } else {
            body = product(body, extent(reverse, assignment, &index)?);
        }
    }
    ranges.retain(|range| mentions(&body, &range.index) || mentions(&inside, &range.index));
    let value = match reduced.is_empty() || text::is_product(&body) {
        true => body,
        false => reduction(Op::Add, &reduced, body),
    };
    let (target, subscripts) = (target.to_string(), contribution.subscripts.clone());
    Ok(AdjointStatement { target, subscripts, op: Some(Op::Add), value, ranges })
}

/// True if some access of an expression has all of these indices.
pub(super) fn covers(expr: &Expr, indices: &[String]) -> bool {
    match &expr.kind {
        ExprKind::Index { subscripts, .. } => indices.iter().all(|index| subscripts.iter().any(|s| mentions(s, index))),
        _ => super::tree::children(expr).into_iter().any(|child| covers(child, indices)),
    }
}

/// An assignment as a statement with its reductions written.
pub(super) fn of_assignment(reverse: &Reverse, assignment: &Assignment) -> AdjointStatement {
    let reduced = assignment.reduced();
    let op = assignment.op.filter(|op| *op != Op::Sub).unwrap_or(Op::Add);
    let implicit = op == Op::Add && text::is_product(&assignment.body);
    let value = match reduced.is_empty() || implicit {
        true => assignment.body.clone(),
        false => reduction(op, &reduced, assignment.body.clone()),
    };
    // Where several values are one element, even the first ones are an update.
    let updates = assignment.again || !super::normal::is_plain(assignment);
    let negated = assignment.op == Some(Op::Sub) && !updates;
    let value = if negated { negative(value) } else { value };
    let mut ranges = assignment.ranges.clone();
    for index in assignment.indices() {
        if !ranges.iter().any(|range| range.index == index)
            && !bounds(&value, &index)
            && let Some(stop) = reverse.sizes.stop(assignment, &index)
        {
            ranges.push(IndexRange { index, start: None, stop });
        }
    }
    let op = assignment.op.filter(|_| updates);
    let (target, subscripts) = (assignment.target.text.clone(), assignment.subscripts.clone());
    AdjointStatement { target, subscripts, op, value, ranges }
}

/// Leaves out statements whose targets nothing reads.
pub(super) fn prune(statements: &mut Vec<AdjointStatement>, wanted: &[String]) {
    let mut needed: Vec<String> = wanted.to_vec();
    let mut kept = Vec::new();
    for statement in statements.drain(..).rev() {
        if needed.contains(&statement.target) {
            needed.extend(statement.reads());
            kept.push(statement);
        }
    }
    kept.reverse();
    *statements = kept;
}

impl Reverse<'_> {
    /// The name of the pattern of an operand.
    pub(super) fn pattern(&mut self, operand: &str) -> String {
        if let Some((_, name)) = self.patterns.iter().find(|(of, _)| of == operand) {
            return name.clone();
        }
        let name = self.fresh.suffixed(operand, "pattern");
        self.patterns.push((operand.to_string(), name.clone()));
        name
    }

    /// True if an index of a sum has the name of a dimension of the target.
    fn fresh_needed(&self, index: &str, canonical: &[String]) -> bool {
        canonical.iter().any(|known| known == index)
    }

    /// The patterns on which a value that is computed on the way can be other than 0.
    fn support_of(&mut self, of: &str, canonical: &[String], span: Span) -> Vec<Expr> {
        let factors = self.support.factors(of).to_vec();
        let pattern = |(operand, dims): (String, Vec<usize>)| {
            let subscripts = dims.iter().map(|dim| variable(&canonical[*dim], span)).collect();
            let name = self.pattern(&operand);
            coalesced_access(access(&name, subscripts, span))
        };
        factors.into_iter().map(pattern).collect()
    }
}
