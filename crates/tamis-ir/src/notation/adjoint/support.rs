//! Structural support: the patterns of operands outside of which a value that is computed on the way is 0.
//!
//! A cotangent of such a value is needed on its support only: elsewhere the value is 0 whatever the stored elements are. So
//! the cotangent of a sampled product is sampled, too. The support is an upper bound: a product of patterns, never a sum.

use super::Differentiate;
use super::tree::plain_index;
use crate::algebra::{DType, Op, Value, eval};
use crate::notation::Assignment;
use crate::text::syntax::{Expr, ExprKind};
use rustc_hash::FxHashMap;

/// An operand with a pattern, and for each of its dimensions that of the value which has the same index.
type Factor = (String, Vec<usize>);

/// The supports of all values that are computed on the way.
#[derive(Default)]
pub(super) struct Support {
    known: FxHashMap<String, Vec<Factor>>,
}

impl Support {
    pub(super) fn of(assignments: &[Assignment], request: &Differentiate) -> Support {
        let mut support = Support::default();
        for assignment in assignments {
            let target = &assignment.target.text;
            let several = assignments.iter().filter(|a| a.target.text == *target).count() > 1;
            let sums = matches!(assignment.op, None | Some(Op::Add | Op::Sub));
            let indices = assignment.indices();
            let free = assignment.free();
            let plain = assignment.subscripts.iter().all(|s| plain_index(s, &indices).is_some())
                && free.len() == assignment.subscripts.len();
            let factors = match !several && sums && plain {
                true => support.factors_of(&assignment.body, &free, request),
                false => Vec::new(),
            };
            support.known.insert(target.clone(), factors);
        }
        support
    }

    /// The factors of the support of a value.
    pub(super) fn factors(&self, name: &str) -> &[Factor] {
        self.known.get(name).map_or(&[], Vec::as_slice)
    }

    fn factors_of(&self, expr: &Expr, free: &[String], request: &Differentiate) -> Vec<Factor> {
        let of = |e: &Expr| self.factors_of(e, free, request);
        match &expr.kind {
            ExprKind::Index { base, subscripts } => {
                let dims: Option<Vec<usize>> = subscripts
                    .iter()
                    .map(|s| plain_index(s, free).and_then(|index| free.iter().position(|known| known == index)))
                    .collect();
                let Some(dims) = dims else { return Vec::new() };
                if let Some(factors) = self.known.get(&base.text) {
                    let through = |(operand, own): &Factor| (operand.clone(), own.iter().map(|d| dims[*d]).collect());
                    return factors.iter().map(through).collect();
                }
                let name = &base.text;
                let known = |list: &[String]| list.iter().any(|other| other == name);
                match known(&request.patterns) && known(&request.zero_fills) {
                    true => vec![(name.clone(), dims)],
                    false => Vec::new(),
                }
            }
            ExprKind::Operator(Op::Mul, operands) => {
                let mut all: Vec<Factor> = Vec::new();
                for factor in operands.iter().flat_map(of) {
                    if !all.contains(&factor) {
                        all.push(factor);
                    }
                }
                all
            }
            ExprKind::Operator(Op::Div, operands) => operands.first().map_or_else(Vec::new, of),
            ExprKind::Operator(Op::Add | Op::Sub, operands) => match &operands[..] {
                [a, b] => {
                    let (a, b) = (of(a), of(b));
                    a.into_iter().filter(|factor| b.contains(factor)).collect()
                }
                _ => Vec::new(),
            },
            ExprKind::Operator(op, operands) => match &operands[..] {
                [only] if keeps_zero(*op) => of(only),
                _ => Vec::new(),
            },
            ExprKind::Call { function, args, .. } => match (&args[..], Op::named(&function.text)) {
                ([only], Some(op)) if keeps_zero(op) => of(only),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// True if an operator gives 0 for 0.
fn keeps_zero(op: Op) -> bool {
    let smooth = op.info().derivative.is_some() && op.info().arity == (1, 1);
    smooth && eval(op, DType::F64, &[Value::F64(0.0)]).same_number(Value::F64(0.0))
}
