//! Simplification by the operator table: what is not stored annihilates, identities vanish, and with them whole statements.

use super::node::{Node, Step, map_steps};
use tamis_ir::algebra::{Op, Value, eval};
use tamis_ir::program::VarId;

/// Simplifies an expression whose operands are simple.
fn node(node: Node) -> Node {
    let Node::Call(op, dtype, operands) = node else { return node };
    let known = |n: &Node| match n {
        Node::Known(value) => Some(value.cast(dtype)),
        _ => None,
    };
    match op {
        Op::Coalesce => {
            let mut rest = operands.into_iter().filter(|n| *n != Node::Missing).collect::<Vec<_>>();
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
            return Node::Call(op, dtype, operands);
        }
        _ => {}
    }
    if operands.contains(&Node::Missing) {
        return Node::Missing;
    }
    let values: Option<Vec<Value>> = operands
        .iter()
        .map(|n| match n {
            Node::Known(value) => Some(*value),
            _ => None,
        })
        .collect();
    if let Some(values) = values {
        return Node::Known(eval(op, dtype, &values));
    }
    let info = op.info();
    if let Some(zero) = info.annihilator.and_then(|a| a.value(dtype))
        && operands.iter().filter_map(known).any(|v| v.same_number(zero))
    {
        return Node::Known(zero);
    }
    if let [a, b] = &operands[..] {
        let is = |n: &Node, e: Option<tamis_ir::algebra::Constant>| {
            e.and_then(|e| e.value(dtype)).zip(known(n)).is_some_and(|(e, v)| e.same_number(v))
        };
        if is(b, info.right_identity) {
            return convert(a.clone(), dtype);
        }
        if is(a, info.left_identity) {
            return convert(b.clone(), dtype);
        }
    }
    Node::Call(op, dtype, operands)
}

fn convert(node: Node, dtype: tamis_ir::DType) -> Node {
    match node {
        Node::Known(value) => Node::Known(value.cast(dtype)),
        Node::Missing => Node::Missing,
        // A conversion to the same type is folded when the kernel is built.
        other => Node::Call(Op::Cast(dtype), dtype, vec![other]),
    }
}

/// Simplifies statements; what does nothing is dropped.
pub fn steps(given: Vec<Step>) -> Vec<Step> {
    let mut given = map_steps(given, &mut node);
    let mut out: Vec<Step> = Vec::new();
    given.reverse();
    while let Some(step) = given.pop() {
        match step {
            // A name that is known takes part in what follows.
            Step::Let(var, value @ (Node::Known(_) | Node::Missing)) => {
                given = map_steps(substitute(std::mem::take(&mut given), var, &value), &mut node);
            }
            Step::If(cond, then, otherwise) => match cond {
                Node::Known(value) => {
                    let chosen = if value.is_truthy() { then } else { otherwise };
                    // A block is a scope, but names are unique, so its statements can stand here.
                    given.extend(chosen.into_iter().rev());
                }
                cond => {
                    let (then, otherwise) = (steps(then), steps(otherwise));
                    if !then.is_empty() || !otherwise.is_empty() {
                        out.push(Step::If(cond, then, otherwise));
                    }
                }
            },
            Step::For(index, bounds, body) => {
                let body = steps(body);
                if !body.is_empty() {
                    out.push(Step::For(index, bounds, body));
                }
            }
            Step::Assign(target, Some(update), value) => {
                let identity = update.op.info().right_identity.and_then(|e| e.value(update.operand));
                let nothing = match (&value, identity) {
                    (Node::Known(v), Some(e)) => v.cast(update.operand).same_number(e) && update.extra.is_empty(),
                    _ => false,
                };
                if !nothing {
                    out.push(Step::Assign(target, Some(update), value));
                }
            }
            other => out.push(other),
        }
    }
    // A block that only binds names or declares does nothing.
    if out.iter().all(|step| matches!(step, Step::Let(..))) {
        out.clear();
    }
    out
}

fn substitute(steps: Vec<Step>, var: VarId, value: &Node) -> Vec<Step> {
    map_steps(steps, &mut |n| if n == Node::Var(var) { value.clone() } else { n })
}
