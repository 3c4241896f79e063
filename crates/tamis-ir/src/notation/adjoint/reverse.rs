//! Reverse mode: visits assignments last to first, and collects what flows to each tensor.
//!
//! A cotangent is complete when all readers of its tensor have been visited, which the reverse of static single assignment
//! order gives. Minima and maxima divide what flows evenly among the elements that attain them, as `amin` and `amax` of PyTorch
//! do; products multiply by the product of all other elements, never by a quotient.

use super::chain::{ChainRule, Occurrence};
use super::emit::AdjointStatement;
use super::normal::{IndexSizes, equals, result_name};
use super::support::Support;
use super::tree::{
    access, binary, call, coalesced_access, count, integer, negative, product, reduction, renaming, select, substituted,
};
use super::{Adjoint, Differentiate, Fresh, emit, normal, save};
use crate::algebra::{Op, Value};
use crate::diag::{Code, Diagnostic, Result, Span};
use crate::notation::{Assignment, IndexRange, Notation};
use crate::text::syntax::{Expr, ExprKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// An inlined cotangent has at most this many nodes.
const MAX_INLINED: usize = 24;

/// What flows to the elements `subscripts` of a tensor in each point of the index space of an assignment.
#[derive(Clone)]
pub(super) struct Contribution {
    /// The assignment, by its position.
    pub(super) of: usize,
    pub(super) subscripts: Vec<Expr>,
    pub(super) body: Expr,
    /// The ranges of the assignment, and of indices that the body binds.
    pub(super) ranges: Vec<IndexRange>,
}

/// Where a cotangent is.
pub(super) enum Cotangent {
    /// A tensor.
    Stored(String),
    /// An expression of these indices, which is written wherever it is read.
    Inlined(Vec<String>, Expr),
}

/// The state of reverse mode.
pub(super) struct Reverse<'a> {
    pub(super) request: &'a Differentiate,
    pub(super) notation: &'a Notation,
    pub(super) assignments: Vec<Assignment>,
    pub(super) sizes: IndexSizes,
    pub(super) support: Support,
    pub(super) fresh: Fresh,
    pub(super) active: FxHashSet<String>,
    pub(super) complex: FxHashSet<String>,
    pub(super) statements: Vec<AdjointStatement>,
    /// The operands whose patterns are read, with the names of the patterns.
    pub(super) patterns: Vec<(String, String)>,
    pending: FxHashMap<String, Vec<Contribution>>,
    cotangents: FxHashMap<String, Cotangent>,
}

/// The adjoint of notation.
pub(super) fn adjoint(request: &Differentiate, notation: &Notation) -> Result<Adjoint> {
    let mut fresh = Fresh::of(notation);
    let assignments = normal::assignments(notation, &mut fresh)?;
    let mut reverse = Reverse::new(request, notation, assignments, fresh);
    let mut cotangents = Vec::new();
    for result in notation.results().into_iter().filter(|result| request.wants(result)) {
        let own = result_name(notation, &reverse.assignments, result);
        if reverse.active.contains(&own) {
            let name = reverse.fresh.exactly(&format!("g{own}"));
            reverse.cotangents.insert(own, Cotangent::Stored(name.clone()));
            cotangents.push((result.to_string(), name));
        }
    }
    for target in reverse.targets_last_first() {
        reverse.visit(&target)?;
    }
    let (mut gradients, mut zeros) = (Vec::new(), Vec::new());
    for operand in &request.wrt {
        match reverse.pending.remove(operand) {
            Some(contributions) => {
                let name = reverse.fresh.exactly(&format!("g{operand}"));
                emit::operand(&mut reverse, operand, &name, &contributions)?;
                gradients.push((operand.clone(), name));
            }
            None if request.allow_zero => zeros.push(operand.clone()),
            None => return Err(reverse.no_gradient(operand)),
        }
    }
    // Cotangents that no gradient needs are not computed.
    let wanted: Vec<String> = gradients.iter().map(|(_, name)| name.clone()).collect();
    emit::prune(&mut reverse.statements, &wanted);
    Ok(save::assemble(reverse, cotangents, gradients, zeros))
}

impl<'a> Reverse<'a> {
    pub(super) fn new(
        request: &'a Differentiate,
        notation: &'a Notation,
        assignments: Vec<Assignment>,
        fresh: Fresh,
    ) -> Reverse<'a> {
        let sizes = IndexSizes::of(&assignments, &notation.params());
        let active = reached(&assignments, &request.wrt, notation.operators(), false);
        let complex = reached(&assignments, &request.complex, notation.operators(), true);
        let support = Support::of(&assignments, request);
        Reverse {
            request,
            notation,
            assignments,
            sizes,
            support,
            fresh,
            active,
            complex,
            statements: Vec::new(),
            patterns: Vec::new(),
            pending: FxHashMap::default(),
            cotangents: FxHashMap::default(),
        }
    }

    /// Everything that is assigned, in the reverse of the order in which it is complete.
    fn targets_last_first(&self) -> Vec<String> {
        let mut targets: Vec<String> = Vec::new();
        for assignment in self.assignments.iter().rev() {
            if !targets.contains(&assignment.target.text) {
                targets.push(assignment.target.text.clone());
            }
        }
        targets
    }

    fn visit(&mut self, target: &str) -> Result<()> {
        if !self.cotangents.contains_key(target) {
            let Some(contributions) = self.pending.remove(target) else { return Ok(()) };
            let cotangent = match self.inlined(target, &contributions) {
                Some(inlined) => inlined,
                None => {
                    let name = self.fresh.exactly(&format!("g{target}"));
                    emit::temporary(self, target, &name, &contributions)?;
                    Cotangent::Stored(name)
                }
            };
            self.cotangents.insert(target.to_string(), cotangent);
        }
        for at in (0..self.assignments.len()).rev() {
            if self.assignments[at].target.text == target && self.active.contains(target) {
                self.differentiate(at)?;
            }
        }
        Ok(())
    }

    /// A cotangent that is written where it is read: a copy, or an outer product, which would be dense as a tensor.
    fn inlined(&self, target: &str, contributions: &[Contribution]) -> Option<Cotangent> {
        let [only] = contributions else { return None };
        let assignment = &self.assignments[only.of];
        let indices = assignment.indices();
        let mut own: Vec<String> = Vec::new();
        for subscript in &only.subscripts {
            let index = super::tree::plain_index(subscript, &indices)?;
            if own.iter().any(|known| known == index) {
                return None;
            }
            own.push(index.to_string());
        }
        let elementwise = indices.iter().all(|index| own.contains(index)) && only.ranges.is_empty();
        let plain_targets = self.assignments.iter().filter(|a| a.target.text == target).all(|a| {
            let free = a.indices();
            a.subscripts.iter().all(|s| super::tree::plain_index(s, &free).is_some())
                && a.free().len() == a.subscripts.len()
        });
        if !elementwise || !plain_targets || count(&only.body) > MAX_INLINED {
            return None;
        }
        let copied = matches!(&only.body.kind, ExprKind::Index { .. } | ExprKind::Name(_));
        let covered = emit::covers(&only.body, &own);
        (copied || !covered || own.is_empty()).then(|| Cotangent::Inlined(own, only.body.clone()))
    }

    /// The cotangent of the target of an assignment, in each point of its index space.
    fn cotangent(&self, assignment: &Assignment) -> Option<Expr> {
        let span = assignment.span;
        Some(match self.cotangents.get(&assignment.target.text)? {
            Cotangent::Stored(name) => coalesced_access(access(name, assignment.subscripts.clone(), span)),
            Cotangent::Inlined(indices, body) => {
                let by = indices.iter().cloned().zip(assignment.subscripts.iter().cloned());
                substituted(
                    body,
                    &by.filter(|(from, to)| !matches!(&to.kind, ExprKind::Name(n) if n == from)).collect(),
                )
            }
        })
    }

    fn differentiate(&mut self, at: usize) -> Result<()> {
        let assignment = self.assignments[at].clone();
        let Some(cotangent) = self.cotangent(&assignment) else { return Ok(()) };
        if assignment.op.is_none() && self.overwrites(&assignment) {
            return Err(Diagnostic::new(
                Code::E0117,
                format!("several values are assigned to one element of `{}`", assignment.target.text),
            )
            .label(assignment.span, "the last value stays, which has no derivative")
            .help("add them, as in `y[i+j] += ...`"));
        }
        let reduced = assignment.reduced();
        let mut ranges = assignment.ranges.clone();
        let body = &assignment.body;
        let weight = match assignment.op {
            None | Some(Op::Add) => cotangent,
            Some(Op::Sub) => negative(cotangent),
            Some(op @ (Op::Min | Op::Max)) => {
                let attained = self.attained(op, &assignment);
                let ties = self.ties(&assignment, &attained);
                let zero = integer(0, assignment.span);
                select(attained, binary(Op::Div, cotangent, ties), zero)
            }
            Some(Op::Mul) => {
                let others = self.all_others(&assignment, &reduced, &mut ranges);
                product(cotangent, others)
            }
            Some(Op::Logaddexp2) => {
                let total = access(&assignment.target.text, assignment.subscripts.clone(), assignment.span);
                let share = call(Op::Exp2, vec![binary(Op::Sub, body.clone(), total)], assignment.span);
                product(cotangent, share)
            }
            Some(Op::And | Op::Or | Op::BitAnd | Op::BitOr | Op::BitXor) => return Ok(()),
            Some(op) => return Err(no_reduction(op, assignment.span)),
        };
        let mut found: Vec<Occurrence> = Vec::new();
        self.with_chain(&assignment, |chain| chain.backward(body, weight, &mut found))?;
        for Occurrence { tensor, subscripts, cotangent } in found {
            let real =
                !self.complex.contains(&tensor) && self.with_chain(&assignment, |chain| chain.is_complex(&cotangent));
            let body = if real { call(Op::Real, vec![cotangent], assignment.span) } else { cotangent };
            let ranges = ranges.clone();
            self.pending.entry(tensor).or_default().push(Contribution { of: at, subscripts, body, ranges });
        }
        Ok(())
    }

    /// Calls with what differentiation knows of an assignment. Cotangents are as complex as what they belong to.
    pub(super) fn with_chain<T>(&self, assignment: &Assignment, call: impl FnOnce(&ChainRule) -> T) -> T {
        let indices = assignment.indices();
        let stored = |name: &str| {
            let of = self.cotangents.iter().find(|(_, c)| matches!(c, Cotangent::Stored(n) if n == name));
            of.is_some_and(|(of, _)| self.complex.contains(of))
        };
        call(&ChainRule {
            active: &|name| self.active.contains(name),
            complex: &|name| self.complex.contains(name) || stored(name),
            indices: &indices,
            operators: self.notation.operators(),
        })
    }

    /// True if an element of the target gets several values: an index of a sum is not determined by the element.
    fn overwrites(&self, assignment: &Assignment) -> bool {
        assignment.subscripts.len() < assignment.free().len()
    }

    /// True where an element attains the minimum or maximum. The identity of the reduction is no element.
    pub(super) fn attained(&self, op: Op, assignment: &Assignment) -> Expr {
        let span = assignment.span;
        let extreme = access(&assignment.target.text, assignment.subscripts.clone(), span);
        let infinity = if op == Op::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        let infinity = Expr { kind: ExprKind::Number(Value::F64(infinity)), span };
        let body = assignment.body.clone();
        let equal = binary(Op::Eq, body.clone(), extreme);
        let finite = binary(if op == Op::Min { Op::Lt } else { Op::Gt }, body, infinity);
        binary(Op::And, equal, finite)
    }

    /// The number of elements that attain a minimum or maximum: a statement of its own.
    pub(super) fn ties(&mut self, assignment: &Assignment, attained: &Expr) -> Expr {
        let span = assignment.span;
        let name = self.fresh.suffixed(&assignment.target.text, "ties");
        let one = select(attained.clone(), integer(1, span), integer(0, span));
        let counted = Assignment {
            target: super::tree::name(&name, span),
            op: Some(Op::Add),
            body: one,
            temporary: true,
            again: false,
            ..assignment.clone()
        };
        let statement = emit::of_assignment(self, &counted);
        self.statements.push(statement);
        access(&name, assignment.subscripts.clone(), span)
    }

    /// The product over all other elements, in each point of the index space of an assignment.
    pub(super) fn all_others(
        &mut self,
        assignment: &Assignment,
        reduced: &[String],
        ranges: &mut Vec<IndexRange>,
    ) -> Expr {
        let span = assignment.span;
        let others: Vec<(String, String)> =
            reduced.iter().map(|index| (index.clone(), self.fresh.name(index))).collect();
        let factor = substituted(&assignment.body, &renaming(&others, span));
        let same = others.iter().map(|(index, other)| equals(other, super::tree::variable(index, span)));
        let same = same.reduce(|a, b| binary(Op::And, a, b));
        for (index, other) in &others {
            let known = assignment.ranges.iter().find(|range| range.index == *index).cloned();
            let stop = || self.sizes.stop(assignment, index);
            // The index itself is compared with the others, as a number.
            if known.is_none()
                && let Some(stop) = stop()
            {
                ranges.push(IndexRange { index: index.clone(), start: None, stop });
            }
            let range = known.or_else(|| Some(IndexRange { index: String::new(), start: None, stop: stop()? }));
            if let Some(range) = range.filter(|_| !super::tree::bounds(&factor, other)) {
                ranges.push(IndexRange { index: other.clone(), ..range });
            }
        }
        let names: Vec<String> = others.into_iter().map(|(_, other)| other).collect();
        match same {
            Some(same) => reduction(Op::Mul, &names, select(same, integer(1, span), factor)),
            None => integer(1, span),
        }
    }

    /// The reason why nothing flows to an operand.
    fn no_gradient(&self, operand: &str) -> Diagnostic {
        let place = self.notation.params.iter().find(|param| param.text == operand);
        let value = self.assignments.iter().any(|a| {
            let chain = |name: &str| name == operand;
            let indices = a.indices();
            let complex = |_: &str| false;
            ChainRule { active: &chain, complex: &complex, indices: &indices, operators: &[] }.depends(&a.body)
        });
        let d = Diagnostic::new(Code::E0116, format!("the gradient with respect to `{operand}` is zero everywhere"));
        let d = match place {
            Some(place) => d.label(place.span, if value { "used" } else { "used as a subscript or a size" }),
            None => d,
        };
        match value {
            true => d
                .note("comparisons, roundings, integer division and conversions to integers have derivative 0")
                .help("differentiate with respect to another operand"),
            false => d.help("differentiate with respect to a tensor whose values are used"),
        }
    }
}

/// The tensors that depend on some of them by their values.
fn reached(assignments: &[Assignment], from: &[String], operators: &[Op], as_complex: bool) -> FxHashSet<String> {
    let mut reached: FxHashSet<String> = from.iter().cloned().collect();
    for assignment in assignments {
        let indices = assignment.indices();
        let active = |name: &str| reached.contains(name);
        let chain = ChainRule { active: &active, complex: &active, indices: &indices, operators };
        let depends = match as_complex {
            true => chain.is_complex(&assignment.body),
            false => chain.depends(&assignment.body),
        };
        if depends {
            reached.insert(assignment.target.text.clone());
        }
    }
    reached
}

fn no_reduction(op: Op, span: Span) -> Diagnostic {
    let name = op.info().symbol.unwrap_or(op.info().name);
    Diagnostic::new(Code::E0115, format!("a reduction by `{name}` has no derivative"))
        .label(span, "reduced here")
        .help("reductions by `+`, `*`, `min`, `max` and log-sum-exp are differentiated")
}
