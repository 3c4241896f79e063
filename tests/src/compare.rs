//! Differential testing: compiled programs against the interpreter. Failing programs are shrunk
//! before they are reported.

use crate::generate::Case;
use crate::lowered::{self, Engine, RunError, Stage};
use crate::random::Random;
use crate::shrink::shrink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tamis::compile::{CompileOptions, Executable, Signature};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{Code, Program, Value};
use tamis_tensor::Tensor;
use tamis_tensor::threads::with_threads_always;

/// The kernel interpreter, with a budget of statements.
pub const INTERPRETED: Engine = Engine::Interpreter(3_000_000);

/// Compiler errors for programs that the interpreter accepts: a level that cannot gallop.
const REFUSALS: &[Code] = &[Code::E0608];

/// True if two values are equal up to rounding.
pub fn close(a: Value, b: Value, rough: f64) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    // Infinities and NaNs depend on the order of complex arithmetic.
    let complex = matches!(a, Value::C64(_) | Value::C128(_)) && !x.is_finite() && !y.is_finite();
    complex || a.same_number(b) || (a.dtype() == b.dtype() && (x - y).norm() <= rough * (1.0 + x.norm()))
}

/// The interpreter's result, unless it depends on the sparse policy: static knowledge about stored
/// elements depends on the formats of temporaries.
pub fn oracle(program: &Program, tensors: &[Tensor]) -> Option<Vec<Vec<Value>>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let run = |strict| -> Option<Vec<Vec<Value>>> {
        let outcome = interp::run(program, &operands, Options { strict, budget: Some(300_000) }).ok()?;
        outcome.results.iter().map(|grid| grid.to_values()).collect()
    };
    let (sparse, strict) = (run(false)?, run(true)?);
    let same = sparse.iter().flatten().zip(strict.iter().flatten()).all(|(x, y)| x.same_number(*y));
    same.then_some(sparse)
}

/// Compiles a program and compares its results with those of the interpreter, on one thread and on
/// three, with equal values up to `rough`.
pub fn compiled_on_threads(text: &str, tensors: &[Tensor], options: &CompileOptions, rough: f64) -> Executable {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let references: Vec<&Tensor> = tensors.iter().collect();
    let executable = tamis::compile(&program, &Signature::of(&references), options);
    let executable = executable.unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let wanted = oracle(&program, tensors).expect("the interpreter runs it");
    // Reused memory is dirty.
    let noise: Vec<Vec<f64>> = (1..40).map(|k| vec![1e300; 8 * k]).collect();
    drop(noise);
    for threads in [1, 3] {
        let results = with_threads_always(threads, || executable.call(&references)).unwrap_or_else(|d| panic!("{d}"));
        for ((name, result), wanted) in results.iter().zip(&wanted) {
            let got = result.to_dense().unwrap();
            assert_eq!(wanted.len(), got.len());
            for (k, wanted) in wanted.iter().enumerate() {
                assert!(close(*wanted, got.get(k), rough), "{name}[{k}]: {wanted} is {}\n{text}", got.get(k));
            }
        }
    }
    executable
}

/// The stages and engines to run.
pub type Ways = [(Stage, Engine)];

/// The formats of inputs, by rank.
pub type Formats = fn(usize) -> &'static [&'static str];

/// A flag that the program was compared, or a description of the mismatch.
fn difference(seed: u64, case: &Case, formats: Formats, ways: &Ways) -> Result<bool, String> {
    let Ok(program) = Program::parse(&case.text) else { return Ok(false) };
    let mut random = Random(seed);
    let mut tensors = Vec::new();
    for (_, input) in &case.inputs {
        let format: &&str = random.pick(formats(input.shape.len()));
        tensors.push(input.tensor(format).map_err(|d| d.to_string())?);
    }
    let Some(expected) = oracle(&program, &tensors) else { return Ok(false) };
    // A NaN operand that arrives once a value is final is ignored, unless arithmetic is strict.
    let nan = |value: &Value| value.as_c128().is_nan();
    let strict = ways.iter().all(|(stage, _)| *stage == Stage::Strict);
    if !strict && case.text.contains("short_circuit_scalar") && expected.iter().flatten().any(nan) {
        return Ok(false);
    }
    // Results depend on the order of additions: a run is added by one multiplication.
    let single = case.text.contains("f32")
        || case.inputs.iter().any(|(_, input)| input.values.iter().any(|v| matches!(v, Value::F32(_) | Value::C64(_))));
    let rough = if single { 1e-4 } else { 1e-9 };
    let mut compared = false;
    for (stage, engine) in ways {
        let reported = |what: String| {
            let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
            Err(format!("{stage:?}, {engine:?}, inputs in {formats:?}:\n{what}"))
        };
        let run = || lowered::run_stage(&program, &tensors, *stage, *engine);
        let (lowered, results) = match catch_unwind(AssertUnwindSafe(run)) {
            Err(_) => return reported("the compiler panics".into()),
            Ok(Ok(made)) => made,
            Ok(Err(RunError::Wrong(message) | RunError::Required(message))) => return reported(message),
            Ok(Err(RunError::Budget)) => continue,
            Ok(Err(RunError::Refused(errors))) if errors.0.iter().all(|d| REFUSALS.contains(&d.code)) => continue,
            Ok(Err(RunError::Refused(errors))) => return reported(errors.render(false)),
        };
        for (wanted, got) in expected.iter().zip(&results) {
            let same = wanted.len() == got.len() && wanted.iter().zip(got).all(|(a, b)| close(*a, *b, rough));
            if !same {
                return reported(format!("{}\nwanted {wanted:?}\ngot {got:?}", lowered.kernel));
            }
        }
        compared = true;
    }
    Ok(compared)
}

/// Compares a program; returns a description of the mismatch after shrinking.
pub fn compare(seed: u64, case: &Case, formats: Formats, ways: &Ways) -> bool {
    let first = match difference(seed, case, formats, ways) {
        Ok(compared) => return compared,
        Err(first) => first,
    };
    let small = shrink(case, &|candidate| difference(seed, candidate, formats, ways).is_err());
    let reported = difference(seed, &small, formats, ways).err().unwrap_or(first);
    let inputs: Vec<String> =
        small.inputs.iter().map(|(name, i)| format!("{name} = {:?} {:?}", i.shape, i.values)).collect();
    panic!("seed {seed}, shrunk from\n{}to\n{}{}\n{reported}", case.text, small.text, inputs.join("\n"));
}

/// The seeds of random programs: `TAMIS_RANDOM=20000` sets their number, `TAMIS_START=10000` the
/// first.
fn seeds(default: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    number("TAMIS_START").unwrap_or(default.start)..number("TAMIS_RANDOM").unwrap_or(default.end)
}

/// The number of compared programs among the selected seeds of a generator.
pub fn compared(
    range: std::ops::Range<u64>,
    wanted: fn(u64) -> bool,
    source: fn(u64) -> Case,
    formats: Formats,
    ways: &Ways,
) -> usize {
    seeds(range).filter(|seed| wanted(*seed) && compare(*seed, &source(*seed), formats, ways)).count()
}
