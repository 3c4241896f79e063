//! Differential tests of operators: every operator on every type and its edge values, against the
//! reference semantics.

use crate::common::native::run_c;
use crate::common::operators::{OperatorCase, Rows, cases, kernel, wrong};
use crate::common::{run_llvm, same_value};
use tamis_backend::CodegenOptions;
use tamis_ir::algebra::{Op, Typing};
use tamis_ir::{Kind, Value};

/// Cases per kernel.
const TOGETHER: usize = 24;

fn llvm(over: Rows) {
    let options = CodegenOptions::host().unwrap();
    let cases = cases();
    assert!(cases.len() > 1000);
    // Vectorised loops may contract complex products and sums to fused multiply-adds.
    let complex = |case: &OperatorCase| case.types.iter().any(|dtype| dtype.kind() == Kind::Complex);
    let cases: Vec<&OperatorCase> = cases.iter().filter(|case| over != Rows::Vectorised || !complex(case)).collect();
    let mut all = Vec::new();
    for cases in cases.chunks(TOGETHER) {
        let (kernel, memory, expected) = kernel(cases, over);
        let after = run_llvm(&kernel, memory, &options).unwrap();
        all.extend(wrong(cases, &after, &expected, |_, _, a, b| same_value(a, b)));
    }
    assert!(all.is_empty(), "{} wrong:\n{}", all.len(), all.join("\n"));
}

#[test]
fn llvm_is_exact() {
    llvm(Rows::Serial);
}

#[test]
fn llvm_is_exact_in_vectors() {
    llvm(Rows::Vectorised);
}

/// Explicit vectors: masked loads and stores, gathers and scatters.
#[test]
fn llvm_is_exact_in_lanes() {
    llvm(Rows::Lanes(4));
}

#[test]
fn llvm_is_exact_in_gathered_lanes() {
    llvm(Rows::Backwards(8));
}

/// C's math functions may differ from Rust's in the last digits, and complex ones on branch cuts
/// and at infinities.
fn close(case: &OperatorCase, row: &[Value], a: Value, b: Value) -> bool {
    let library = matches!(case.op.info().typing, Typing::Float { .. })
        || (case.op == Op::Pow && case.operand.kind() >= Kind::Float)
        || (matches!(case.op, Op::Abs | Op::Sign) && case.operand.kind() == Kind::Complex);
    if same_value(a, b) || !library {
        return same_value(a, b);
    }
    let digits = if a.dtype().real().size() == 4 { 1e-5 } else { 1e-12 };
    let (x, y) = (a.as_c128(), b.as_c128());
    if case.operand.kind() == Kind::Complex {
        let ordinary = |part: f64| part != 0.0 && part.abs() < 1e100;
        let compared = row.iter().map(|v| v.as_c128()).all(|c| ordinary(c.re) && ordinary(c.im));
        return !compared || (x - y).norm() <= digits * x.norm();
    }
    (x.re - y.re).abs() <= digits * x.re.abs()
}

#[test]
fn c_matches_the_reference_semantics() {
    let cases = cases();
    let cases: Vec<&OperatorCase> = cases.iter().collect();
    let mut all = Vec::new();
    for cases in cases.chunks(4 * TOGETHER) {
        let (kernel, memory, expected) = kernel(cases, Rows::Serial);
        let after = run_c(&kernel, memory).unwrap();
        all.extend(wrong(cases, &after, &expected, close));
    }
    assert!(all.is_empty(), "{} wrong:\n{}", all.len(), all.join("\n"));
}
