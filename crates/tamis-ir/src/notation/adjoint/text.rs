//! Pretty-printing of index notation: expressions and statements as text that reads back to the same tree.
//!
//! In: syntax trees, also those that no parser made. Out: text with the fewest parentheses that keep the tree.

use crate::algebra::{Op, Value};
use crate::notation::IndexRange;
use crate::text::parser::expressions::REDUCTIONS;
use crate::text::syntax::{Expr, ExprKind};

/// The precedence of unary operators, powers and atoms; the others are in [`precedence`].
const TERNARY: u8 = 0;
const COMPARISON: u8 = 4;
const UNARY: u8 = 11;
const POWER: u8 = 12;
const ATOM: u8 = 13;

/// How tightly an operator binds.
fn precedence(op: Op) -> u8 {
    match op {
        Op::Or => 1,
        Op::And => 2,
        Op::Not => 3,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => COMPARISON,
        Op::BitOr => 5,
        Op::BitXor => 6,
        Op::BitAnd => 7,
        Op::Shl | Op::Shr => 8,
        Op::Add | Op::Sub => 9,
        Op::Mul | Op::Div | Op::FloorDiv | Op::Mod => 10,
        Op::Neg | Op::BitNot => UNARY,
        Op::Pow => POWER,
        // Written as functions.
        _ => ATOM,
    }
}

/// An expression.
pub(in crate::notation) fn expression(expr: &Expr) -> String {
    operand(expr, TERNARY)
}

/// `for i in range(a, b)`
pub(in crate::notation) fn clause(range: &IndexRange) -> String {
    let start = range.start.as_ref().map_or(String::new(), |start| expression(start) + ", ");
    format!("for {} in range({start}{})", range.index, expression(&range.stop))
}

/// An access; a scalar has no subscripts.
pub(super) fn access(name: &str, subscripts: &[Expr]) -> String {
    if subscripts.is_empty() { name.to_string() } else { format!("{name}[{}]", list(subscripts)) }
}

/// True if an expression is a product of accesses and numbers, so that a sum of it has one meaning.
pub(super) fn is_product(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Operator(Op::Mul, operands) => operands.iter().all(is_product),
        ExprKind::Number(_) | ExprKind::Index { .. } | ExprKind::Name(_) => true,
        _ => false,
    }
}

fn list(items: &[Expr]) -> String {
    items.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn operand(expr: &Expr, context: u8) -> String {
    let (text, tightness) = written(expr);
    if tightness < context { format!("({text})") } else { text }
}

fn written(expr: &Expr) -> (String, u8) {
    let text = match &expr.kind {
        ExprKind::Number(value) => return number(value),
        ExprKind::Operator(op, operands) => return operator(*op, operands),
        ExprKind::Str(text) => format!("{text:?}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Index { base, subscripts } => access(&base.text, subscripts),
        ExprKind::Size { base, dim } => format!("{}.shape[{dim}]", base.text),
        ExprKind::Entry { base, part, at } => {
            let dim = match part {
                crate::program::EntryPart::Coordinate(dim) => format!("{dim}, "),
                _ => String::new(),
            };
            match at.is_empty() {
                true => format!("{}.{}", base.text, part.name()),
                false => format!("{}.{}[{dim}{}]", base.text, part.name(), list(at)),
            }
        }
        ExprKind::Call { function, args, .. } => format!("{}({})", function.text, list(args)),
        ExprKind::Tuple(items) => format!("({})", list(items)),
        ExprKind::Reduce { op, indices, body } => {
            let word = REDUCTIONS.iter().find(|(_, o)| o == op).map_or("sum", |(word, _)| word);
            let names: Vec<&str> = indices.iter().map(|name| name.text.as_str()).collect();
            format!("{word}[{}]({})", names.join(", "), expression(body))
        }
        ExprKind::Error => String::new(),
    };
    (text, ATOM)
}

fn number(value: &Value) -> (String, u8) {
    let text = value.to_string();
    let tightness = match value {
        Value::C64(_) | Value::C128(_) => precedence(Op::Add),
        _ if text.starts_with('-') => UNARY,
        _ => ATOM,
    };
    (text, tightness)
}

fn operator(op: Op, operands: &[Expr]) -> (String, u8) {
    let tightness = precedence(op);
    let text = match (op.info().symbol, operands) {
        (Some(symbol), [a]) => {
            let space = if symbol.starts_with(char::is_alphabetic) { " " } else { "" };
            let negated_number = op == Op::Neg && matches!(a.kind, ExprKind::Number(_));
            format!("{symbol}{space}{}", operand(a, if negated_number { ATOM + 1 } else { tightness }))
        }
        (Some(symbol), [a, b]) => {
            let (left, right) = match op {
                Op::Pow => (tightness + 1, UNARY),
                _ if tightness == COMPARISON => (tightness + 1, tightness + 1),
                _ => (tightness, tightness + 1),
            };
            format!("{} {symbol} {}", operand(a, left), operand(b, right))
        }
        _ => return (format!("{}({})", op.info().name, list(operands)), ATOM),
    };
    (text, tightness)
}
