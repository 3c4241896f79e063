//! Differential fuzzing of schedules: random legal schedules preserve the results of the examples
//! and of random programs, in the interpreter and, for a sample, compiled. Failing cases are
//! shrunk, the schedule first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tamis_compiler::lower::{ParamLayout, Policy};
use tamis_compiler::schedule::{Schedule, copy_in, with_fill};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::program::{Checked, ParamType};
use tamis_ir::{Code, DType, Diagnostics, Format, Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::filetest::sections;
use tamis_tests::generate::{self, Case, formats};
use tamis_tests::lowered::{self, Engine, RunError, Stage};
use tamis_tests::random::Random;
use tamis_tests::schedules;
use tamis_tests::shrink::shrink;
use tamis_tests::wide;

/// Compiler errors for programs that the interpreter accepts: a level that cannot gallop.
const REFUSALS: &[Code] = &[Code::E0608, Code::E0609];

const BUDGET: u64 = 300_000;

fn close(a: Value, b: Value) -> bool {
    let (x, y) = (a.as_c128(), b.as_c128());
    let tolerance = match a.dtype() {
        DType::F32 | DType::C64 => 1e-4,
        _ => 1e-9,
    };
    let complex = matches!(a, Value::C64(_) | Value::C128(_)) && !x.is_finite() && !y.is_finite();
    complex || a.same_number(b) || (a.dtype() == b.dtype() && (x - y).norm() <= tolerance * (1.0 + x.norm()))
}

type Values = Vec<Vec<Value>>;

fn interpret(program: &Program, tensors: &[Tensor], strict: bool, budget: u64) -> Result<Option<Values>, Diagnostics> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let outcome = interp::run(program, &operands, Options { strict, budget: Some(budget) })?;
    Ok(outcome.results.iter().map(|grid| grid.to_values()).collect())
}

/// The interpreter's result, unless it depends on the sparse policy: static knowledge about stored
/// elements depends on the formats of temporaries.
fn oracle(program: &Program, tensors: &[Tensor]) -> Option<Values> {
    let sparse = interpret(program, tensors, false, BUDGET).ok()??;
    let strict = interpret(program, tensors, true, BUDGET).ok()??;
    let same = sparse.iter().flatten().zip(strict.iter().flatten()).all(|(x, y)| x.same_number(*y));
    same.then_some(sparse)
}

/// A program with its inputs, ready to be scheduled.
struct ScheduledCase {
    program: Program,
    tensors: Vec<Tensor>,
    checked: Checked,
    formats: Vec<Format>,
    expected: Values,
}

impl ScheduledCase {
    fn new(program: Program, tensors: Vec<Tensor>) -> Option<ScheduledCase> {
        let params: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
        let expected = oracle(&program, &tensors)?;
        // Schedules apply to the program with copies of updated parameters, as in `tamis::compile`.
        let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
        let program = copy_in(&program, &layouts).ok()?.into_owned();
        let checked = program.check(&params).ok()?;
        let formats = tensors.iter().map(|t| with_fill(t.format(), t.fill())).collect();
        Some(ScheduledCase { program, tensors, checked, formats, expected })
    }

    /// The program and inputs of a case; the seed selects the formats of inputs.
    fn of_case(seed: u64, case: &Case) -> Option<ScheduledCase> {
        let program = Program::parse(&case.text).ok()?;
        let mut random = Random(seed);
        let mut tensors = Vec::new();
        for (_, input) in &case.inputs {
            let format: &&str = random.pick(formats(input.shape.len()));
            tensors.push(input.tensor(format).ok()?);
        }
        ScheduledCase::new(program, tensors)
    }

    /// The mismatch of a schedule; `None` if the schedule is illegal.
    fn wrong(&self, schedule: &Schedule, engine: Option<Engine>) -> Option<String> {
        let apply = || schedule.apply_to(&self.program, &self.checked, &self.formats, Policy::default());
        let scheduled = match catch_unwind(AssertUnwindSafe(apply)) {
            Err(_) => return Some("the scheduler panics".into()),
            Ok(Ok(scheduled)) => scheduled,
            Ok(Err(_)) => return None,
        };
        let text = scheduled.to_string();
        match Program::parse(&text) {
            Ok(again) if again == scheduled => {}
            Ok(_) => return Some(format!("it does not read back to itself:\n{text}")),
            Err(errors) => return Some(format!("it does not read back:\n{text}\n{}", errors.render(false))),
        }
        let results = match engine {
            None => match interpret(&scheduled, &self.tensors, false, 20 * BUDGET) {
                Ok(results) => results?,
                Err(errors) if errors.0.iter().all(|d| d.code == Code::E1003) => return None,
                Err(errors) => return Some(format!("{text}\n{}", errors.render(false))),
            },
            Some(engine) => {
                let run = || lowered::run_stage(&scheduled, &self.tensors, Stage::Optimised, engine);
                match catch_unwind(AssertUnwindSafe(run)) {
                    Err(_) => return Some(format!("{text}\nthe compiler panics")),
                    Ok(Ok((_, results))) => results,
                    Ok(Err(RunError::Wrong(message) | RunError::Required(message))) => {
                        return Some(format!("{text}\n{message}"));
                    }
                    Ok(Err(RunError::Budget)) => return None,
                    Ok(Err(RunError::Refused(errors))) if errors.0.iter().all(|d| REFUSALS.contains(&d.code)) => {
                        return None;
                    }
                    Ok(Err(RunError::Refused(errors))) => return Some(format!("{text}\n{}", errors.render(false))),
                }
            }
        };
        let pairs = || self.expected.iter().zip(&results);
        let same = self.expected.len() == results.len()
            && pairs().all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| close(*x, *y)));
        (!same).then(|| format!("{text}\nwanted {:?}\ngot {results:?}", self.expected))
    }

    /// The shortest schedule that still fails, and its mismatch.
    fn shrunk(&self, schedule: Schedule, engine: Option<Engine>, first: String) -> (Schedule, String) {
        let (mut best, mut reported) = (schedule, first);
        'again: loop {
            for k in 0..best.len() {
                let shorter = best.without(k);
                if let Some(why) = self.wrong(&shorter, engine) {
                    (best, reported) = (shorter, why);
                    continue 'again;
                }
            }
            return (best, reported);
        }
    }

    /// A random schedule; rejections must have a valid code, and help.
    fn schedule(&self, random: &mut Random) -> Schedule {
        let length = 1 + random.below(5);
        let mut refused = |schedule: &Schedule, errors: &Diagnostics| {
            for d in &errors.0 {
                assert!(
                    schedules::is_refusal(d.code) && !d.help.is_empty(),
                    "{schedule}\n{}\n{}",
                    self.program,
                    d.render(false)
                );
            }
        };
        schedules::random(random, &self.program, &self.checked, &self.formats, length, &mut refused).0
    }
}

/// The engine for the schedule of a seed: most are interpreted as programs, the others compiled.
fn engine(seed: u64) -> Option<Engine> {
    match seed % 40 {
        0 => Some(Engine::Native),
        1..10 => Some(Engine::Interpreter(3_000_000)),
        _ => None,
    }
}

/// The seeds of random programs: `TAMIS_RANDOM=20000` sets their number, `TAMIS_START=10000` the
/// first.
fn seeds(default: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    number("TAMIS_START").unwrap_or(default.start)..number("TAMIS_RANDOM").unwrap_or(default.end)
}

/// The number of commands in the correct schedules of random programs.
fn compared(range: std::ops::Range<u64>, source: fn(u64) -> Case) -> usize {
    let mut commands = 0;
    for seed in seeds(range) {
        let case = source(seed);
        let Some(subject) = ScheduledCase::of_case(seed, &case) else { continue };
        let schedule = subject.schedule(&mut Random(seed ^ 0x5eed));
        let engine = engine(seed);
        let Some(first) = subject.wrong(&schedule, engine) else {
            commands += schedule.len();
            continue;
        };
        // Other tests cover mismatches without a schedule.
        if subject.wrong(&Schedule::new(), engine).is_some() {
            continue;
        }
        let (schedule, reported) = subject.shrunk(schedule, engine, first);
        let fails = |candidate: &Case| {
            ScheduledCase::of_case(seed, candidate)
                .is_some_and(|s| s.wrong(&schedule, engine).is_some() && s.wrong(&Schedule::new(), engine).is_none())
        };
        let small = shrink(&case, &fails);
        let subject = ScheduledCase::of_case(seed, &small);
        let reported = subject.and_then(|subject| subject.wrong(&schedule, engine)).unwrap_or(reported);
        panic!("seed {seed}, {engine:?}, {schedule}\n{}\n{reported}", small.text);
    }
    commands
}

#[test]
fn random_programs() {
    let commands = compared(0..3000, generate::case);
    assert!(commands > 2000, "{commands}");
}

#[test]
fn wide_programs() {
    let commands = compared(0..2000, wide::case);
    assert!(commands > 1000, "{commands}");
}

#[test]
fn every_program_of_the_zoo() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let (mut commands, mut failures) = (0, Vec::new());
    for name in ["zoo.md", "papers.md", "papers-looplets.md"] {
        for section in sections(&folder.join(name)).unwrap() {
            let program = Program::parse(&section.program).unwrap();
            for seed in seeds(0..40) {
                let mut random = Random(seed);
                let inputs = random.pick(&section.combinations);
                let tensors = inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
                let Some(subject) = ScheduledCase::new(program.clone(), tensors) else { continue };
                let (schedule, engine) = (subject.schedule(&mut random), engine(seed));
                match subject.wrong(&schedule, engine) {
                    None => commands += schedule.len(),
                    Some(first) => {
                        let (schedule, reported) = subject.shrunk(schedule, engine, first);
                        failures.push(format!("{} seed {seed}, {engine:?}, {schedule}\n{reported}", section.heading));
                        break;
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(commands > 2000, "{commands}");
}
