//! Tests of gathers (subscripts that are looked up or computed): agreement with the interpreter,
//! and one search per known subscript rather than one per element.

use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{Code, DType, Format, Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::affine::formats;
use tamis_tests::compare::{INTERPRETED, compared};
use tamis_tests::counted::count;
use tamis_tests::gather::{case, hostile};
use tamis_tests::lowered::{Engine, RunError, Stage, run_stage};
use tamis_tests::random::Random;

#[test]
fn gathers_agree_with_the_interpreter() {
    let ways = [(Stage::Lowered, INTERPRETED), (Stage::Optimised, INTERPRETED)];
    let compared = compared(0..3000, |_| true, case, formats, &ways);
    assert!(compared > 2000, "{compared}");
}

#[test]
fn machine_code_of_gathers() {
    let compared = compared(0..1200, |seed| seed % 8 == 1, case, formats, &[(Stage::Optimised, Engine::Native)]);
    assert!(compared > 80, "{compared}");
}

/// An index out of bounds is reported where the interpreter meets it, and only there: not for loops
/// without iterations, and not for reads that a condition suppresses.
#[test]
fn indices_out_of_bounds_are_reported_like_the_interpreter() {
    let (mut failed, mut passed) = (0, 0);
    for seed in 0..3000 {
        let case = hostile(seed);
        let program = Program::parse(&case.text).unwrap_or_else(|d| panic!("{}\n{}", case.text, d.render(false)));
        let (mut random, full) = (Random(seed), seed % 3 == 0);
        let stored = |(_, input): &(String, tamis_tests::generate::Input)| {
            let format: &&str = random.pick(formats(input.shape.len()));
            input.tensor(if full { "dense" } else { format }).unwrap()
        };
        let tensors: Vec<Tensor> = case.inputs.iter().map(stored).collect();
        let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
        let wanted = interp::run(&program, &operands, Options { strict: false, budget: Some(300_000) });
        let got = run_stage(&program, &tensors, Stage::Optimised, INTERPRETED);
        match (wanted, got) {
            (Ok(_), Ok(_)) => passed += 1,
            (Err(errors), Err(RunError::Required(_))) => {
                assert!(matches!(errors.0[0].code, Code::E1001 | Code::E1002), "{}", errors.render(false));
                failed += 1;
            }
            // Loops skip positions where nothing is stored, so no subscript is checked there.
            (Err(_), Ok(_)) if !full => {}
            // Errors that do not depend on index values.
            (Err(_), Err(RunError::Refused(_))) => {}
            (wanted, got) => panic!("seed {seed}\n{}\n{:?}\n{:?}", case.text, wanted.is_ok(), got.is_ok()),
        }
    }
    assert!(failed > 300 && passed > 300, "{failed} {passed}");
}

/// A row costs one search and its entries, whatever the number of columns.
#[test]
fn each_row_is_searched_once() {
    let text = "def f(A, r):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[r[i], j]\n    return y\n";
    let program = Program::parse(text).unwrap();
    for format in ["csr", "dcsr", "coo", "dense, sparse_runs", "sparse_runs, sparse", "hash, sparse"] {
        let format = Format::parse(format, 2).unwrap();
        let statements = |columns: u64| {
            let rows = 30u64;
            let mut cells = vec![0.0; (rows * columns) as usize];
            (0..rows).for_each(|i| cells[(i * columns + i % columns) as usize] = 1.0);
            let a = Tensor::from_dense(&[rows, columns], cells.into(), &format, Value::F64(0.0)).unwrap();
            let r: Vec<i64> = (0..rows as i64).rev().collect();
            let r = Tensor::from_dense(&[rows], r.into(), &Format::dense(1), Value::zero(DType::I64)).unwrap();
            count(&program, &[a, r], INTERPRETED).unwrap_or_else(|p| panic!("{p:?}")).interpreted.statements
        };
        let (few, many) = (statements(4), statements(400));
        assert!(many <= few + 60, "{format}: {few} statements with 4 columns, {many} with 400");
    }
}
