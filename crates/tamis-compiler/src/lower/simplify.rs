//! Simplification by the operator table: fill values annihilate, identities vanish, constants fold,
//! and dead statements disappear.
//!
//! In: steps, after some accesses became constants. Out: equivalent steps under the arithmetic
//! policy; none if nothing outside is written.

use super::node::{Node, PartialAccess, ReadSource, Step, Sub, WriteTarget, map_steps, visit_steps, visit_targets};
use tamis_ir::algebra::{DType, Kind, Op, Value, eval};
use tamis_ir::program::{TensorId, VarId};

/// The arithmetic policy: the rules that simplification may assume.
///
/// ```
/// use tamis_compiler::lower::Policy;
/// assert!(!Policy::default().strict, "0 * x is 0 where the 0 is not stored");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// IEEE arithmetic throughout: fill values do not annihilate NaN or infinities.
    pub strict: bool,
}

impl Policy {
    /// The operand value that decides the result, whatever the other operands are.
    pub(crate) fn annihilator(self, op: Op, dtype: DType) -> Option<Value> {
        let exact = !self.strict || !matches!(dtype.kind(), Kind::Float | Kind::Complex);
        op.info().annihilator.filter(|_| exact).and_then(|a| a.value(dtype))
    }

    /// The result of a call whose operand at `position` is not stored and has `fill`, if that
    /// decides it: an annihilator, or an infinity in a sum.
    pub(crate) fn absorbed(self, op: Op, dtype: DType, position: usize, fill: Value) -> Option<Value> {
        let exact = !self.strict || !matches!(dtype.kind(), Kind::Float | Kind::Complex);
        if exact { op.info().absorbed(dtype, position, fill) } else { None }
    }

    /// The result of a call with some known operands, if the first one of them that can decides it.
    pub(crate) fn decided(self, op: Op, dtype: DType, known: impl IntoIterator<Item = Option<Value>>) -> Option<Value> {
        let fills = known.into_iter().enumerate();
        let mut results = fills.filter_map(|(k, fill)| self.absorbed(op, dtype, k, fill?));
        results.next()
    }

    /// True if an operand can decide the result of an operator on a type.
    pub(crate) fn absorbs(self, op: Op, dtype: DType) -> bool {
        self.annihilator(op, dtype).is_some()
            || (!self.strict && dtype.kind() == Kind::Float && !op.info().absorbing.is_empty())
    }

    /// The left and right identity of an operator.
    pub(crate) fn identities(self, op: Op, dtype: DType) -> [Option<Value>; 2] {
        // The product of an infinite part and the other part, 0, is NaN.
        let changes = self.strict && op == Op::Mul && dtype.kind() == Kind::Complex;
        let info = op.info();
        [info.left_identity, info.right_identity].map(|e| e.filter(|_| !changes).and_then(|e| e.value(dtype)))
    }
}

/// Simplifies an expression whose operands are simplified.
fn node(node: Node, policy: Policy) -> Node {
    let Node::Call(op, dtype, operands) = node else { return node };
    let known = |n: &Node| match n {
        Node::Known(value) => Some(value.cast(dtype)),
        _ => None,
    };
    match op {
        Op::Coalesce => {
            let mut rest = operands.into_iter().filter(|n| *n != Node::Missing).collect::<Vec<_>>();
            // A missing operand and its alternative have the same value.
            if let [first @ Node::Call(Op::Select, ..), Node::Known(other), ..] = &rest[..]
                && let Some(value) = unless_missing(first)
                && value.cast(dtype).same_number(other.cast(dtype))
            {
                return Node::Known(value.cast(dtype));
            }
            return match rest.first() {
                None => Node::Missing,
                Some(Node::Known(value)) => Node::Known(value.cast(dtype)),
                _ if rest.len() == 1 => convert(rest.remove(0), dtype),
                _ => Node::Call(op, dtype, rest),
            };
        }
        Op::Select => {
            if let Node::Known(cond) = operands[0] {
                let chosen = operands.into_iter().nth(if cond.is_truthy() { 1 } else { 2 });
                return convert(chosen.unwrap_or(Node::Missing), dtype);
            }
            if operands[0] == Node::Missing {
                return Node::Missing;
            }
            // Both branches are the same constant, so the condition does not matter.
            if let [cond, Node::Known(a), Node::Known(b)] = &operands[..]
                && a.cast(dtype) == b.cast(dtype)
                && !may_be_missing(cond)
            {
                return Node::Known(a.cast(dtype));
            }
            return Node::Call(op, dtype, operands);
        }
        _ => {}
    }
    if operands.contains(&Node::Missing) {
        return Node::Missing;
    }
    let values: Vec<Option<Value>> = operands
        .iter()
        .map(|n| match n {
            Node::Known(value) => Some(*value),
            _ => None,
        })
        .collect();
    if let Some(result) = policy.decided(op, dtype, values.iter().copied()) {
        return Node::Known(result);
    }
    let values: Option<Vec<Value>> = values.into_iter().collect();
    if let Some(values) = values {
        return Node::Known(eval(op, dtype, &values));
    }
    if let [a, b] = &operands[..] {
        let is = |n: &Node, e: Option<Value>| e.zip(known(n)).is_some_and(|(e, v)| e.same_number(v));
        let [left, right] = policy.identities(op, dtype);
        if is(b, right) {
            return convert(a.clone(), dtype);
        }
        if is(a, left) {
            return convert(b.clone(), dtype);
        }
    }
    Node::Call(op, dtype, operands)
}

/// The constant that an expression has wherever it is not missing.
fn unless_missing(node: &Node) -> Option<Value> {
    match node {
        Node::Known(value) => Some(*value),
        Node::Call(Op::Select, _, operands) if operands.get(1) == Some(&Node::Missing) => {
            unless_missing(operands.get(2)?)
        }
        _ => None,
    }
}

/// True if an expression may be missing, because a read in it is out of bounds.
fn may_be_missing(node: &Node) -> bool {
    let mut found = false;
    node.visit(&mut |node| {
        found |= match node {
            Node::Missing | Node::Var(_) => true,
            Node::Access(access) => {
                let permissive = |subs: &[Sub]| subs.iter().any(|sub| sub.permissive);
                access.missing.is_some() || matches!(&access.source, ReadSource::Tensor(_, subs) if permissive(subs))
            }
            _ => false,
        };
    });
    found
}

fn convert(node: Node, dtype: DType) -> Node {
    match node {
        Node::Known(value) => Node::Known(value.cast(dtype)),
        Node::Missing => Node::Missing,
        // Indices and sizes have this type already, and stay recognisable in subscripts.
        Node::Index(_) | Node::Size(..) if dtype == DType::I64 => node,
        // A conversion to the same type is folded by the builder.
        other => Node::Call(Op::Cast(dtype), dtype, vec![other]),
    }
}

/// Simplifies the statements of a block; a block without effects outside of it is empty.
pub(super) fn steps(given: Vec<Step>, policy: Policy) -> Vec<Step> {
    let out = root(given, policy);
    let inner: Vec<TensorId> = out
        .iter()
        .filter_map(|step| match step {
            Step::Declare(tensor, _) => Some(*tensor),
            _ => None,
        })
        .collect();
    let mut effects = false;
    visit_targets(&out, &mut |target| effects |= !inner.contains(&target.tensor));
    if effects { out } else { Vec::new() }
}

/// Simplifies statements, and removes those without effect.
pub(super) fn root(given: Vec<Step>, policy: Policy) -> Vec<Step> {
    let mut given = map_steps(given, &mut |n| node(n, policy));
    let mut out: Vec<Step> = Vec::new();
    given.reverse();
    while let Some(step) = given.pop() {
        match step {
            // A constant name is propagated.
            Step::Let(var, value @ (Node::Known(_) | Node::Missing)) => {
                given = map_steps(substitute(std::mem::take(&mut given), var, &value), &mut |n| node(n, policy));
            }
            Step::If(cond, then, otherwise) => match cond {
                Node::Known(value) => {
                    let chosen = if value.is_truthy() { then } else { otherwise };
                    // A block is a scope, but names are unique, so its statements can be moved out.
                    given.extend(chosen.into_iter().rev());
                }
                cond => {
                    let (then, otherwise) = (steps(then, policy), steps(otherwise, policy));
                    if !then.is_empty() || !otherwise.is_empty() {
                        out.push(Step::If(cond, then, otherwise));
                    }
                }
            },
            Step::For(index, bounds, body) => {
                let body = steps(body, policy);
                if !body.is_empty() {
                    out.push(Step::For(index, bounds, body));
                }
            }
            Step::Assign(target, Some(update), value) => {
                let [_, identity] = policy.identities(update.op, update.operand);
                let nothing = match (&value, identity) {
                    (Node::Known(v), Some(e)) if update.keeps && update.extra.is_empty() => {
                        v.cast(update.operand).same_number(e)
                    }
                    _ => false,
                };
                let absorbed = match (&value, update.absorbed) {
                    (Node::Known(v), Some(fill)) => {
                        let v = v.cast(update.operand);
                        let decided = policy.absorbed(update.op, update.operand, 1, v);
                        // An annihilator wins over a fill value of NaN.
                        decided.unwrap_or_else(|| eval(update.op, update.operand, &[fill, v])).same_number(fill)
                    }
                    _ => false,
                };
                if !nothing && !absorbed {
                    out.push(Step::Assign(target, Some(update), value));
                }
            }
            // A fill value is not stored where nothing was written before.
            Step::Assign(WriteTarget { fresh: Some(fill), .. }, None, Node::Known(value))
                if value.cast(fill.dtype()).same_number(fill) => {}
            other => out.push(other),
        }
    }
    match propagate_fill(&mut out) {
        true => root(out, policy),
        false => out,
    }
}

/// Replaces reads of declared tensors by their fill values, before the first write. Gives true if
/// something changed.
fn propagate_fill(steps: &mut [Step]) -> bool {
    let mut blank: Vec<(TensorId, Value)> = Vec::new();
    let mut any = false;
    for step in steps {
        if let Step::Declare(tensor, fill) = step {
            blank.push((*tensor, *fill));
        }
        if blank.is_empty() {
            continue;
        }
        let here = std::slice::from_ref(step);
        visit_targets(here, &mut |target| blank.retain(|(tensor, _)| *tensor != target.tensor));
        let mut read = false;
        visit_steps(here, &mut |n| {
            read |= tensor_of(n).is_some_and(|tensor| blank.iter().any(|(other, _)| *other == tensor));
        });
        if read {
            any = true;
            let mut filled = map_steps(vec![step.clone()], &mut |n| {
                let fill = tensor_of(&n).and_then(|tensor| blank.iter().find(|(other, _)| *other == tensor));
                fill.map_or(n, |(_, fill)| Node::Known(*fill))
            });
            if let Some(filled) = filled.pop() {
                *step = filled;
            }
        }
    }
    any
}

/// The tensor that a node reads in bounds; reads out of bounds are still missing.
fn tensor_of(node: &Node) -> Option<TensorId> {
    match node {
        Node::Access(access) if !is_permissive(access) => match &access.source {
            ReadSource::Tensor(tensor, _) => Some(*tensor),
            ReadSource::Mask(..) => None,
        },
        _ => None,
    }
}

fn is_permissive(access: &PartialAccess) -> bool {
    matches!(&access.source, ReadSource::Tensor(_, subs) if subs.iter().any(|sub| sub.permissive || !sub.inside))
}

fn substitute(steps: Vec<Step>, var: VarId, value: &Node) -> Vec<Step> {
    map_steps(steps, &mut |n| if n == Node::Var(var) { value.clone() } else { n })
}
