//! Differentiable normal form of assignments: each version is a sum, or one reduction, or one value for each element.
//!
//! In: assignments in static single assignment form, where a version may still be updated in place. Out: assignments in which
//! a version that is updated in place is updated by `+=` and `-=` only. Updates by another operator read a version of their own:
//! `R = a; R min= b` is `R_1 = a; R = min(R_1, b)`. Meaning and results do not change.

use super::Fresh;
use super::tree::{access, binary, call, mentions, plain_index, variable};
use crate::algebra::{DType, Op};
use crate::diag::{Code, Diagnostic, Result};
use crate::notation::{Assignment, Notation};
use crate::text::syntax::{Expr, ExprKind, Name};
use rustc_hash::FxHashMap;

/// The assignments of notation in normal form, where operands have the names that callers know.
pub(super) fn assignments(notation: &Notation, fresh: &mut Fresh) -> Result<Vec<Assignment>> {
    let mut made: Vec<Assignment> = Vec::new();
    for assignment in interface_names(notation, fresh) {
        let name = assignment.target.text.clone();
        let additive = |a: &Assignment| matches!(a.op, None | Some(Op::Add | Op::Sub));
        let chain_is_sum = made.iter().filter(|a| a.target.text == name).all(additive);
        if assignment.again && !(additive(&assignment) && chain_is_sum) {
            let before = fresh.name(&name);
            for earlier in made.iter_mut().filter(|a| a.target.text == name) {
                earlier.target.text = before.clone();
            }
            split(&assignment, &before, fresh, &mut made)?;
        } else {
            made.push(started(assignment));
        }
    }
    Ok(made)
}

/// The assignments with parameters under their own names; a result that has the name of a parameter gets another one.
fn interface_names(notation: &Notation, fresh: &mut Fresh) -> Vec<Assignment> {
    let mut renames: Vec<(String, String)> = Vec::new();
    for (param, operand) in notation.params().into_iter().zip(notation.operands()) {
        if param != operand {
            renames.push((param.to_string(), fresh.suffixed(param, "new")));
            renames.push((operand.to_string(), param.to_string()));
        }
    }
    let mut assignments = notation.assignments.clone();
    if renames.is_empty() {
        return assignments;
    }
    let to = |text: &str| renames.iter().find(|(from, _)| from == text).map(|(_, to)| to.clone());
    for assignment in &mut assignments {
        let indices = assignment.indices();
        let rename =
            |expr: &Expr| renamed_tensors(expr, &|text| to(text).filter(|_| !indices.iter().any(|i| i == text)));
        assignment.body = rename(&assignment.body);
        assignment.subscripts = assignment.subscripts.iter().map(rename).collect();
        if let Some(name) = to(&assignment.target.text) {
            assignment.target.text = name;
        }
        for range in &mut assignment.ranges {
            range.start = range.start.as_ref().map(rename);
            range.stop = rename(&range.stop);
        }
    }
    assignments
}

/// An expression with tensors and scalars renamed.
pub(super) fn renamed_tensors(expr: &Expr, to: &dyn Fn(&str) -> Option<String>) -> Expr {
    let mut renamed = super::tree::with_children(expr, &mut |child| renamed_tensors(child, to));
    match &mut renamed.kind {
        ExprKind::Name(text) => {
            if let Some(name) = to(text) {
                *text = name;
            }
        }
        ExprKind::Index { base, .. } | ExprKind::Size { base, .. } | ExprKind::Entry { base, .. } => {
            if let Some(name) = to(&base.text) {
                base.text = name;
            }
        }
        _ => {}
    }
    renamed
}

/// The name of a result in the normal form: its own, unless a parameter has that name.
pub(super) fn result_name(notation: &Notation, assignments: &[Assignment], result: &str) -> String {
    if !notation.params().contains(&result) {
        return result.to_string();
    }
    let last = notation.assignments.iter().rposition(|a| a.target.text == result);
    last.and_then(|at| {
        // Splitting keeps the order of targets, so the last assignment with this span is the same one.
        let span = notation.assignments[at].span;
        assignments.iter().rev().find(|a| a.span == span && !a.temporary).map(|a| a.target.text.clone())
    })
    .unwrap_or_else(|| result.to_string())
}

/// An assignment that starts a version: an operator that reduces nothing starts from its identity.
fn started(mut assignment: Assignment) -> Assignment {
    let Some(op) = assignment.op else { return assignment };
    let accumulates = !assignment.reduced().is_empty() || !is_plain(&assignment);
    if matches!(op, Op::Add | Op::Sub) || accumulates {
        return assignment;
    }
    assignment.op = None;
    if op.info().left_identity.is_none()
        && let Some(start) = op.start(DType::F64)
    {
        let start = match start.cast_exact(DType::I64) {
            Some(whole) => whole,
            None => start,
        };
        let start = Expr { kind: ExprKind::Number(start), span: assignment.span };
        assignment.body = combined(op, start, assignment.body);
    }
    assignment
}

/// True if each point of the index space of a target is an element of its own: the subscripts are different indices.
pub(super) fn is_plain(assignment: &Assignment) -> bool {
    let indices = assignment.indices();
    assignment.subscripts.iter().all(|s| plain_index(s, &indices).is_some())
        && assignment.free().len() == assignment.subscripts.len()
}

/// `op(a, b)` as it is written.
pub(in crate::notation) fn combined(op: Op, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    match op.info().symbol {
        Some(_) => binary(op, a, b),
        None => call(op, vec![a, b], span),
    }
}

/// An update in place as an assignment that reads the version `before`.
fn split(assignment: &Assignment, before: &str, fresh: &mut Fresh, made: &mut Vec<Assignment>) -> Result<()> {
    let Some(op) = assignment.op else { return Ok(()) };
    let free = assignment.free();
    let plain = is_plain(assignment) && !assignment.ranges.iter().any(|range| free.contains(&range.index));
    if !plain {
        let symbol = op.info().symbol.unwrap_or(op.info().name);
        return Err(Diagnostic::new(
            Code::E0117,
            format!(
                "`{symbol}=` changes some elements of `{}` in place, which has no derivative",
                assignment.target.text
            ),
        )
        .label(assignment.span, "changed in place")
        .help("update all elements, as in `R[i,j] min= ...`, or use `+=`"));
    }
    let span = assignment.span;
    let old = access(before, assignment.subscripts.clone(), span);
    let value = match assignment.reduced().is_empty() {
        true => assignment.body.clone(),
        false => {
            let name = fresh.name(&assignment.target.text);
            let op = if op == Op::Sub { Op::Add } else { op };
            made.push(Assignment {
                target: Name { text: name.clone(), span },
                op: Some(op),
                temporary: true,
                again: false,
                ..assignment.clone()
            });
            access(&name, assignment.subscripts.clone(), span)
        }
    };
    let ranges = assignment.ranges.iter().filter(|range| mentions(&value, &range.index)).cloned().collect();
    made.push(Assignment { op: None, body: combined(op, old, value), again: false, ranges, ..assignment.clone() });
    Ok(())
}

/// The sizes of the dimensions of everything that is read or assigned, as expressions of sizes of parameters.
#[derive(Default)]
pub(super) struct IndexSizes {
    known: FxHashMap<String, Vec<Option<Expr>>>,
}

impl IndexSizes {
    pub(super) fn of(assignments: &[Assignment], params: &[&str]) -> IndexSizes {
        let mut sizes = IndexSizes::default();
        for assignment in assignments {
            ranks(&assignment.body, params, &mut sizes);
        }
        for assignment in assignments {
            let indices = assignment.indices();
            let own: Vec<Option<Expr>> = assignment
                .subscripts
                .iter()
                .map(|s| plain_index(s, &indices).and_then(|index| sizes.stop(assignment, index)))
                .collect();
            let known = sizes.known.entry(assignment.target.text.clone()).or_insert_with(|| vec![None; own.len()]);
            for (known, own) in known.iter_mut().zip(own) {
                if known.is_none() {
                    *known = own;
                }
            }
        }
        sizes
    }

    /// The size of a dimension.
    pub(super) fn dim(&self, name: &str, dim: usize) -> Option<Expr> {
        self.known.get(name)?.get(dim)?.clone()
    }

    /// The number of dimensions.
    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        self.known.get(name).map(Vec::len)
    }

    /// The end of the range of an index in an assignment.
    pub(super) fn stop(&self, assignment: &Assignment, index: &str) -> Option<Expr> {
        if let Some(range) = assignment.ranges.iter().find(|range| range.index == index) {
            return Some(range.stop.clone());
        }
        self.bound_in(&assignment.body, index).or_else(|| {
            let at = assignment.subscripts.iter().position(|s| matches!(&s.kind, ExprKind::Name(t) if t == index))?;
            self.dim(&assignment.target.text, at)
        })
    }

    /// The number of values of an index in an assignment.
    pub(super) fn extent(&self, assignment: &Assignment, index: &str) -> Option<Expr> {
        let stop = self.stop(assignment, index)?;
        let range = assignment.ranges.iter().find(|range| range.index == index);
        match range.and_then(|range| range.start.clone()) {
            Some(start) => Some(binary(Op::Sub, stop, start)),
            None => Some(stop),
        }
    }

    /// The size of a dimension that an index subscripts.
    pub(super) fn bound_in(&self, expr: &Expr, index: &str) -> Option<Expr> {
        if let ExprKind::Index { base, subscripts } = &expr.kind
            && let Some(at) = subscripts.iter().position(|s| matches!(&s.kind, ExprKind::Name(t) if t == index))
            && let Some(size) = self.dim(&base.text, at)
        {
            return Some(size);
        }
        super::tree::children(expr).into_iter().find_map(|child| self.bound_in(child, index))
    }
}

/// The dimensions of the parameters that an expression reads.
fn ranks(expr: &Expr, params: &[&str], sizes: &mut IndexSizes) {
    if let ExprKind::Index { base, subscripts } = &expr.kind
        && params.contains(&base.text.as_str())
    {
        let dims = (0..subscripts.len()).map(|dim| Some(super::tree::size(&base.text, dim, expr.span))).collect();
        sizes.known.entry(base.text.clone()).or_insert(dims);
    }
    super::tree::children(expr).into_iter().for_each(|child| ranks(child, params, sizes));
}

/// `index == other`
pub(super) fn equals(index: &str, other: Expr) -> Expr {
    let span = other.span;
    binary(Op::Eq, variable(index, span), other)
}
