//! Forward mode: the tangent of each assignment, in order.
//!
//! The tangent of a sum is the sum of tangents, in the same index space; that of a minimum is the mean of the tangents of the
//! elements that attain it; that of a product is the sum of the tangents of its factors, each times all others.

use super::emit::{AdjointStatement, of_assignment, prune};
use super::normal::result_name;
use super::reverse::Reverse;
use super::tree::{access, binary, bounds, call, integer, negative, product, reduction, select, variable};
use super::{Differentiate, Fresh, Tangents, normal, text};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Result};
use crate::notation::{Assignment, IndexRange, Notation};
use crate::text::syntax::Expr;
use rustc_hash::{FxHashMap, FxHashSet};

/// The tangents of notation.
pub(super) fn tangents(request: &Differentiate, notation: &Notation) -> Result<Tangents> {
    let mut fresh = Fresh::of(notation);
    let assignments = normal::assignments(notation, &mut fresh)?;
    let mut state = Reverse::new(request, notation, assignments, fresh);
    let mut names: FxHashMap<String, String> = FxHashMap::default();
    let mut operands = Vec::new();
    for operand in &request.wrt {
        let name = state.fresh.exactly(&format!("d{operand}"));
        operands.push((operand.clone(), name.clone()));
        names.insert(operand.clone(), name);
    }
    // Tensors whose tangents have a statement.
    let mut started: FxHashSet<String> = FxHashSet::default();
    for at in 0..state.assignments.len() {
        let assignment = state.assignments[at].clone();
        let target = assignment.target.text.clone();
        let Some((value, ranges)) = tangent(&mut state, &assignment, &names)? else { continue };
        let first = !state.assignments[..at].iter().any(|a| a.target.text == target);
        let name = match names.get(&target) {
            Some(name) => name.clone(),
            None => {
                let name = state.fresh.exactly(&format!("d{target}"));
                names.insert(target.clone(), name.clone());
                name
            }
        };
        if started.insert(target.clone()) && !first {
            // What the statements before this one assign does not depend on the operands.
            let start = zeros(&mut state, &target, &name, &assignment)?;
            state.statements.push(start);
        }
        let op = started_by(&state, &target, at, first);
        let subscripts = assignment.subscripts.clone();
        let statement = AdjointStatement { target: name, subscripts, op, value, ranges };
        state.statements.push(statement);
    }
    let (mut results, mut zero_results) = (Vec::new(), Vec::new());
    for result in notation.results().into_iter().filter(|result| request.wants(result)) {
        let own = result_name(notation, &state.assignments, result);
        match names.get(&own).filter(|_| started.contains(&own)) {
            Some(name) => results.push((result.to_string(), name.clone())),
            None => zero_results.push(result.to_string()),
        }
    }
    if results.is_empty() && !request.allow_zero {
        return Err(Diagnostic::new(Code::E0116, "the tangents of all results are zero everywhere")
            .note("comparisons, roundings, integer division and conversions to integers have derivative 0")
            .help("differentiate with respect to an operand whose values are used"));
    }
    let wanted: Vec<String> = results.iter().map(|(_, name)| name.clone()).collect();
    prune(&mut state.statements, &wanted);
    Ok(Tangents { text: assembled(&state), operands, results, zeros: zero_results })
}

/// The operator of a statement: the first one assigns.
fn started_by(state: &Reverse, target: &str, at: usize, first: bool) -> Option<Op> {
    let before = state.assignments[..at].iter().any(|a| a.target.text == target);
    // Where several values are one element, even the first ones are an update.
    let accumulates = state.assignments[at].op.is_some() && !normal::is_plain(&state.assignments[at]);
    (accumulates || !first && before).then_some(Op::Add)
}

/// The statements of values that are read, then those of tangents.
fn assembled(state: &Reverse) -> String {
    let assigned = |name: &String| state.assignments.iter().any(|a| a.target.text == *name);
    let mut needed: Vec<String> = state.statements.iter().flat_map(AdjointStatement::reads).filter(assigned).collect();
    let mut again: Vec<String> = Vec::new();
    while let Some(value) = needed.pop() {
        if again.contains(&value) {
            continue;
        }
        for assignment in state.assignments.iter().filter(|a| a.target.text == value) {
            needed.extend(of_assignment(state, assignment).reads().into_iter().filter(assigned));
        }
        again.push(value);
    }
    let values = state.assignments.iter().filter(|a| again.contains(&a.target.text));
    let values = values.map(|a| of_assignment(state, a).text());
    let body = values.chain(state.statements.iter().map(AdjointStatement::text)).collect::<Vec<_>>().join("\n");
    super::definitions(&body, state.notation.operators()) + &body
}

/// A tensor of zeros with the sizes of another one.
fn zeros(state: &mut Reverse, of: &str, name: &str, assignment: &Assignment) -> Result<AdjointStatement> {
    let span = assignment.span;
    let (mut subscripts, mut ranges) = (Vec::new(), Vec::new());
    for dim in 0..assignment.subscripts.len() {
        let stop = state.sizes.dim(of, dim).ok_or_else(|| {
            Diagnostic::new(Code::E0117, format!("the size of dimension {dim} of `{of}` is not known"))
                .label(span, "differentiated here")
                .help("assign the tensor in one statement")
        })?;
        let index = state.fresh.name("d");
        subscripts.push(variable(&index, span));
        ranges.push(IndexRange { index, start: None, stop });
    }
    Ok(AdjointStatement { target: name.to_string(), subscripts, op: None, value: integer(0, span), ranges })
}

/// The tangent of what an assignment adds to its target, with its reductions; `None` if it is zero.
fn tangent(
    state: &mut Reverse,
    assignment: &Assignment,
    names: &FxHashMap<String, String>,
) -> Result<Option<(Expr, Vec<IndexRange>)>> {
    let name = |tensor: &str| names.get(tensor).cloned();
    let body = &assignment.body;
    let Some(own) = state.with_chain(assignment, |chain| chain.forward(body, &name))? else { return Ok(None) };
    let (span, reduced) = (assignment.span, assignment.reduced());
    let mut ranges = assignment.ranges.clone();
    let (own, scale) = match assignment.op {
        None | Some(Op::Add) => (own, None),
        Some(Op::Sub) => (negative(own), None),
        Some(op @ (Op::Min | Op::Max)) => {
            let attained = state.attained(op, assignment);
            let ties = state.ties(assignment, &attained);
            (select(attained, own, integer(0, span)), Some(ties))
        }
        Some(Op::Mul) => {
            let others = state.all_others(assignment, &reduced, &mut ranges);
            (product(own, others), None)
        }
        Some(Op::Logaddexp2) => {
            let total = access(&assignment.target.text, assignment.subscripts.clone(), span);
            let share = call(Op::Exp2, vec![binary(Op::Sub, body.clone(), total)], span);
            (product(own, share), None)
        }
        Some(Op::And | Op::Or | Op::BitAnd | Op::BitOr | Op::BitXor) => return Ok(None),
        Some(op) => {
            let name = op.info().symbol.unwrap_or(op.info().name);
            return Err(Diagnostic::new(Code::E0115, format!("a reduction by `{name}` has no derivative"))
                .label(span, "reduced here")
                .help("reductions by `+`, `*`, `min`, `max` and log-sum-exp are differentiated"));
        }
    };
    let mut own = own;
    let mut kept = Vec::new();
    let free = assignment.free();
    for index in assignment.indices() {
        let written = free.contains(&index);
        if !written && !super::tree::mentions(&own, &index) {
            let extent = state.sizes.extent(assignment, &index).ok_or_else(|| {
                Diagnostic::new(Code::E0117, format!("the extent of index `{index}` is not known in the derivative"))
                    .label(span, "differentiated here")
                    .help(format!("write its range: `... for {index} in range(10)`"))
            })?;
            own = product(own, extent);
            ranges.retain(|range| range.index != index);
            continue;
        }
        if !bounds(&own, &index)
            && !ranges.iter().any(|range| range.index == index)
            && let Some(stop) = state.sizes.stop(assignment, &index)
        {
            ranges.push(IndexRange { index: index.clone(), start: None, stop });
        }
        if !written {
            kept.push(index);
        }
    }
    let whole = match kept.is_empty() || text::is_product(&own) && scale.is_none() {
        true => own,
        false => reduction(Op::Add, &kept, own),
    };
    let whole = match scale {
        Some(ties) => binary(Op::Div, whole, ties),
        None => whole,
    };
    Ok(Some((whole, ranges)))
}
