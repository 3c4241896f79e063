//! Saved or recomputed: which values of the forward pass the adjoint reads, and which it computes again.
//!
//! A value is saved if computing it again costs more than storing and reading it: it is a reduction, whose index space is
//! larger than the value, or it calls an expensive operator. All others are recomputed, usually inside of the loops that use
//! them. Without permission to save, everything is recomputed.

use super::Adjoint;
use super::emit::{AdjointStatement, of_assignment};
use super::reverse::Reverse;
use super::text;
use super::tree::{access, children, name, variable};
use crate::algebra::{DType, Op};
use crate::notation::Assignment;
use crate::text::syntax::{Expr, ExprKind};

/// The texts of an adjoint whose statements are complete.
pub(super) fn assemble(
    mut reverse: Reverse,
    cotangents: Vec<(String, String)>,
    gradients: Vec<(String, String)>,
    zeros: Vec<String>,
) -> Adjoint {
    let may_save = reverse.request.save && reverse.notation.params() == reverse.notation.operands();
    let mut needed: Vec<String> = Vec::new();
    for statement in &reverse.statements {
        needed.extend(statement.reads().into_iter().filter(|name| is_assigned(&reverse, name)));
    }
    let (mut saved, mut recomputed): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    while let Some(value) = needed.pop() {
        if saved.contains(&value) || recomputed.contains(&value) {
            continue;
        }
        if may_save && is_costly(&reverse, &value) {
            saved.push(value);
            continue;
        }
        for assignment in reverse.assignments.iter().filter(|a| a.target.text == value) {
            let reads = of_assignment(&reverse, assignment).reads();
            needed.extend(reads.into_iter().filter(|name| *name != value && is_assigned(&reverse, name)));
        }
        recomputed.push(value);
    }
    let again = |a: &&Assignment| recomputed.contains(&a.target.text);
    let mut lines: Vec<String> =
        reverse.assignments.iter().filter(again).map(|a| of_assignment(&reverse, a).text()).collect();
    lines.extend(reverse.statements.iter().map(AdjointStatement::text));
    let (forward, saved) = forward(&mut reverse, saved);
    recomputed.sort();
    let body = lines.join("\n");
    let text = super::definitions(&body, reverse.notation.operators()) + &body;
    let patterns = reverse.patterns.clone().into_iter().filter(|(_, name)| mentioned(&reverse, name)).collect();
    Adjoint { text, cotangents, gradients, zeros, patterns, forward, saved, recomputed }
}

fn mentioned(reverse: &Reverse, name: &str) -> bool {
    reverse.statements.iter().any(|statement| statement.reads().iter().any(|read| read == name))
}

fn is_assigned(reverse: &Reverse, name: &str) -> bool {
    reverse.assignments.iter().any(|a| a.target.text == name)
}

/// True if a value costs more to compute than to store and to read.
fn is_costly(reverse: &Reverse, value: &str) -> bool {
    let of = |a: &&Assignment| a.target.text == value;
    reverse.assignments.iter().filter(of).any(|a| !a.reduced().is_empty() || is_expensive(&a.body))
}

fn is_expensive(expr: &Expr) -> bool {
    let op = match &expr.kind {
        ExprKind::Operator(op, _) => Some(*op),
        ExprKind::Call { function, .. } => Op::named(&function.text),
        _ => None,
    };
    // A division is about as expensive as the memory traffic that saving it takes.
    let expensive = op.is_some_and(|op| op != Op::Div && op.is_expensive(DType::F64));
    expensive || children(expr).into_iter().any(is_expensive)
}

/// The forward pass, with copies of the values that are saved but are no results.
fn forward(reverse: &mut Reverse, mut saved: Vec<String>) -> (String, Vec<(String, String)>) {
    if saved.is_empty() {
        return (reverse.notation.source.text.clone(), Vec::new());
    }
    saved.sort();
    let mut lines: Vec<String> = reverse.assignments.iter().map(|a| of_assignment(reverse, a).text()).collect();
    let mut named = Vec::new();
    for value in saved {
        if reverse.notation.results().contains(&value.as_str()) {
            named.push((value.clone(), value));
            continue;
        }
        let copy = reverse.fresh.suffixed(&value, "saved");
        let span = reverse.notation.params.first().map(|param| param.span).unwrap_or_default();
        let rank = reverse.sizes.rank(&value).unwrap_or(0);
        let indices: Vec<Expr> = (0..rank).map(|_| variable(&reverse.fresh.name("d"), span)).collect();
        let value_read = access(&value, indices.clone(), span);
        let target = name(&copy, span).text;
        lines.push(format!("{} = {}", text::access(&target, &indices), text::expression(&value_read)));
        named.push((copy, value));
    }
    let body = lines.join("\n");
    (super::definitions(&body, reverse.notation.operators()) + &body, named)
}
