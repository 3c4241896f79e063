//! Lowered programs against the interpreter: their kernels interpreted, and as machine code.

use tamis_ir::interp::{self, Grid, Operand, Options};
use tamis_ir::{Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::generate::{Case, case, formats};
use tamis_tests::lowered::{self, Engine, Problem};
use tamis_tests::random::Random;

const INTERPRETED: Engine = Engine::Interpreter(3_000_000);

fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    // What is infinite and what is not a number depends on the order of complex arithmetic.
    let complex = matches!(a, Value::C64(_) | Value::C128(_)) && !x.is_finite() && !y.is_finite();
    complex || a.same_number(b) || (a.dtype() == b.dtype() && (x - y).norm() <= 1e-9 * (1.0 + x.norm()))
}

/// What the interpreter says, unless it depends on the sparse policy (temporaries are stored densely here).
fn oracle(program: &Program, tensors: &[Tensor]) -> Option<Vec<Grid>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let run = |strict| interp::run(program, &operands, Options { strict, budget: Some(300_000) }).ok();
    let (sparse, strict) = (run(false)?, run(true)?);
    let same =
        sparse.results.iter().zip(&strict.results).all(|(a, b)| {
            a.to_values().unwrap().into_iter().zip(b.to_values().unwrap()).all(|(x, y)| x.same_number(y))
        });
    same.then_some(sparse.results)
}

fn compare(seed: u64, case: &Case, engine: Engine) -> bool {
    let program = Program::parse(&case.text).unwrap();
    let mut random = Random(seed);
    let pick = |input: &tamis_tests::generate::Input, random: &mut Random| {
        let format: &&str = random.pick(formats(input.shape.len()));
        input.tensor(format).unwrap()
    };
    let tensors: Vec<Tensor> = case.inputs.iter().map(|(_, input)| pick(input, &mut random)).collect();
    let Some(expected) = oracle(&program, &tensors) else { return false };
    let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
    let results = match lowered::run(&program, &tensors, engine) {
        Ok((_, results)) => results,
        Err(Problem::Wrong(message)) => panic!("seed {seed} {formats:?}\n{}\n{message}", case.text),
        Err(_) => return false,
    };
    for (grid, values) in expected.iter().zip(&results) {
        let wanted = grid.to_values().unwrap();
        let same = wanted.len() == values.len() && wanted.iter().zip(values).all(|(a, b)| close(*a, *b));
        if !same {
            let (lowered, _) = lowered::run(&program, &tensors, engine).unwrap();
            panic!("seed {seed} {formats:?}\n{}\n{}\nwanted {wanted:?}\ngot {values:?}", case.text, lowered.kernel);
        }
    }
    true
}

/// Which random programs: more by `TAMIS_RANDOM=20000`, later ones by `TAMIS_START=10000`.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let start = std::env::var("TAMIS_START").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    start..std::env::var("TAMIS_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs() {
    let compared = seeds(1500).filter(|seed| compare(*seed, &case(*seed), INTERPRETED)).count();
    assert!(compared > 500, "{compared}");
}

#[test]
fn wide_programs() {
    let compared = seeds(1500).filter(|seed| compare(*seed, &tamis_tests::wide::case(*seed), INTERPRETED)).count();
    assert!(compared > 300, "{compared}");
}

#[test]
fn machine_code() {
    let compared = seeds(250).filter(|seed| compare(*seed, &case(*seed), Engine::Native)).count();
    assert!(compared > 80, "{compared}");
}

#[test]
fn checked_machine_code() {
    let compared = (250..400).filter(|seed| compare(*seed, &case(*seed), Engine::Checked)).count();
    assert!(compared > 40, "{compared}");
}
