//! Derivatives of the operator table against finite differences of the definitions.

use tamis_ir::algebra::{Op, TABLE, eval};
use tamis_ir::diag::Source;
use tamis_ir::program::parse_operators;
use tamis_ir::{DType, Value};

/// The operands of derivative texts.
const NAMES: [&str; 3] = ["x", "y", "z"];

/// A derivative as an operator of the same operands.
fn compiled(name: &str, text: &str, count: usize) -> Op {
    let operands = NAMES[..count].join(", ");
    let source = format!("@op\ndef partial({operands}):\n    return {text}\n");
    let operators = parse_operators(&Source::new(name, source));
    operators.unwrap_or_else(|error| panic!("{name}: {error:?}"))[0]
}

fn number(value: Value) -> f64 {
    value.as_c128().re
}

/// Points away from jumps and kinks, inside and outside of (-1, 1).
const POINTS: [f64; 9] = [-2.7, -1.3, -0.6, -0.2, 0.3, 0.8, 1.4, 2.2, 3.1];

#[test]
fn derivatives_match_finite_differences() {
    let mut checked = 0;
    for row in TABLE {
        let Some(partial) = row.derivative else { continue };
        let count = partial.len();
        let mut of_row = 0;
        for (at, text) in partial.iter().enumerate() {
            let derivative = compiled(row.name, text, count);
            for k in 0..POINTS.len().pow(count as u32) {
                let point: Vec<f64> = (0..count)
                    .map(|d| POINTS[k / POINTS.len().pow(d as u32) % POINTS.len()] + 0.013 * d as f64)
                    .collect();
                let apply = |op: Op, point: &[f64]| {
                    let values: Vec<Value> = point.iter().map(|x| Value::F64(*x)).collect();
                    number(eval(op, DType::F64, &values))
                };
                let step = 1e-5;
                let shifted = |by: f64| {
                    let mut point = point.clone();
                    point[at] += by;
                    apply(row.op, &point)
                };
                let difference = (shifted(step) - shifted(-step)) / (2.0 * step);
                let got = apply(derivative, &point);
                // Outside of its domain, a function has no value and no derivative.
                if !difference.is_finite() {
                    continue;
                }
                let scale = 1.0 + difference.abs().max(got.abs());
                assert!(
                    (difference - got).abs() < 1e-5 * scale,
                    "d {}{point:?} / d{} = {got} by `{text}`, but {difference} by differences",
                    row.name,
                    NAMES[at],
                );
                of_row += 1;
            }
        }
        assert!(of_row >= 3, "{} is hardly defined at the points", row.name);
        checked += 1;
    }
    assert!(checked >= 45, "{checked}");
}

/// Operators whose results are discrete have no derivative, all others do.
#[test]
fn smooth_operators_have_derivatives() {
    for row in TABLE {
        let smooth = matches!(row.op.type_of(&vec![tamis_ir::algebra::Ty::strong(DType::F64); row.arity.0]),
            Ok(types) if types.result.dtype == DType::F64);
        // `coalesce` is excluded: its result depends on missing operands.
        let expected = smooth && row.op != Op::Coalesce;
        assert_eq!(row.derivative.is_some(), expected, "{}", row.name);
    }
}
