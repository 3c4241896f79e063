//! Every operator on every type and its edge values, against its definition.

mod common;

use common::operators::{cases, kernel, operands};
use common::{run_llvm, same_value};
use tamis_backend::Options;
use tamis_ir::{DType, Kind};

fn check(part: usize, parts: usize) {
    let options = Options::host().unwrap();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() > 1000);
    for case in cases.iter().skip(part).step_by(parts) {
        let rows = operands(case);
        for vectorise in [false, true] {
            // Vectorised loops may multiply and add complex numbers in one step.
            if vectorise && case.types.iter().any(|dtype: &DType| dtype.kind() == Kind::Complex) {
                continue;
            }
            let (kernel, memory, expected) = kernel(case, &rows, vectorise);
            let after = run_llvm(&kernel, memory, &options).unwrap();
            let got = &after.arrays[case.types.len()];
            let bad = rows.iter().zip(expected.values().iter().zip(got.values()));
            for (row, (expected, got)) in bad.filter(|(_, (a, b))| !same_value(**a, **b)).take(2) {
                wrong.push(format!("{:?} in {}: {row:?} gives {got:?}, not {expected:?}", case.op, case.operand));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn operators_even() {
    check(0, 2);
}

#[test]
fn operators_odd() {
    check(1, 2);
}
