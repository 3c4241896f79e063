//! Measurement of candidate formats: converts, compiles, verifies, and times each in alternation.
//!
//! In: a tensor, the product to time, candidates, a deadline. Out: each candidate's times, or why
//! it failed. Rounds alternate between the candidates, so that all see the same state of the
//! machine.

use super::task::LOWER;
use super::{Candidate, FormatTimes, Measurement, ProductTask};
use crate::compile::{CompileOptions, Executable, Signature, compile};
use crate::results::Results;
use std::time::{Duration, Instant};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format, Program, Value};
use tamis_tensor::{StoredPart, Tensor};

/// The most rounds.
const ROUNDS: usize = 101;
/// After this time, [`WANTED`] rounds suffice.
const ENOUGH: Duration = Duration::from_secs(2);
/// The rounds that suffice after [`ENOUGH`].
const WANTED: usize = 15;

/// A candidate that has been converted, compiled and verified.
struct Runner {
    candidate: usize,
    executable: Executable,
    tensor: Tensor,
    convert: Duration,
    compile: Duration,
    /// The first run, with cold caches.
    first: Duration,
    runs: Vec<Duration>,
}

/// Measures the candidates until the deadline. The result of the first one verifies those of the
/// others, so its failure is an error.
pub(super) fn measure(
    tensor: &Tensor,
    task: &ProductTask,
    candidates: &mut [Candidate],
    deadline: Option<Instant>,
    progress: Option<&dyn Fn(u64, u64)>,
) -> Result<(), Diagnostics> {
    let over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    // Preparation is about half of the work.
    let all = 2 * candidates.len() as u64;
    let tell = |done: u64| progress.iter().for_each(|tell| tell(done, all));
    let x = task.vector(tensor)?;
    let mut expected: Option<Tensor> = None;
    let mut runners: Vec<Runner> = Vec::new();
    for (k, candidate) in candidates.iter_mut().enumerate() {
        tell(k as u64);
        if k > 0 && over() {
            break;
        }
        match prepare(tensor, &x, k, candidate, expected.as_ref()) {
            Ok((runner, result)) => {
                candidate.bytes = runner.tensor.nbytes() as u64;
                candidate.exact = true;
                expected.get_or_insert(result);
                runners.push(runner);
            }
            Err(errors) if k == 0 => return Err(errors),
            Err(errors) => {
                if let Some(d) = errors.0.into_iter().next() {
                    candidate.outcome = Measurement::Failed(d);
                }
            }
        }
    }
    let start = Instant::now();
    for round in 0..ROUNDS {
        if round > 0 && (over() || start.elapsed() > ENOUGH && round >= WANTED) {
            break;
        }
        // Alternate rounds run in reverse order, so that no candidate always runs first.
        for k in 0..runners.len() {
            let k = if round % 2 == 0 { k } else { runners.len() - 1 - k };
            if round > 0 && over() {
                break;
            }
            let runner = &mut runners[k];
            let report = tamis_tensor::with_threads(1, || runner.executable.call_timed(&[&runner.tensor, &x]))?;
            runner.runs.push(report.kernel);
        }
        tell(all / 2 + all * (round as u64 + 1) / (2 * ROUNDS as u64));
    }
    for runner in runners {
        let mut runs = runner.runs;
        if runs.is_empty() {
            runs.push(runner.first);
        }
        runs.sort_unstable();
        candidates[runner.candidate].outcome = Measurement::Measured(FormatTimes {
            convert: runner.convert,
            compile: runner.compile,
            run: runs[runs.len() / 2],
            least: runs[0],
            runs: runs.len(),
        });
    }
    Ok(())
}

/// Converts, compiles, runs once, and verifies.
fn prepare(
    tensor: &Tensor,
    x: &Tensor,
    k: usize,
    candidate: &Candidate,
    expected: Option<&Tensor>,
) -> Result<(Runner, Tensor), Diagnostics> {
    let triangle = match candidate.part {
        StoredPart::Whole => None,
        StoredPart::Lower(_) => Some(triangle_of(tensor)?),
    };
    let start = Instant::now();
    let part = triangle.as_ref().map(|(by_rows, lower)| lower.call(&[by_rows])).transpose()?;
    let part = part.map(Results::into_tensor).transpose()?;
    let converted = part.as_ref().unwrap_or(tensor).convert(&candidate.format)?;
    let convert = start.elapsed();
    let program = Program::parse(&candidate.program)?;
    let start = Instant::now();
    let executable = compile(&program, &Signature::of(&[&converted, x]), &CompileOptions::default())?;
    let compile = start.elapsed();
    let report = tamis_tensor::with_threads(1, || executable.call_timed(&[&converted, x]))?;
    let (result, first) = (report.results.into_tensor()?, report.kernel);
    if let Some(expected) = expected {
        verify(&result, expected, candidate)?;
    }
    let runner = Runner { candidate: k, executable, tensor: converted, convert, compile, first, runs: Vec::new() };
    Ok((runner, result))
}

/// The matrix as CSR, and code that extracts its lower triangle. Compiling that code is not timed.
fn triangle_of(tensor: &Tensor) -> Result<(Tensor, Executable), Diagnostics> {
    let by_rows = tensor.convert(&Format::csr())?;
    let lower = compile(&Program::parse(LOWER)?, &Signature::of(&[&by_rows]), &CompileOptions::default())?;
    Ok((by_rows, lower))
}

/// Checks that results agree up to rounding: formats differ in the order of additions.
fn verify(found: &Tensor, expected: &Tensor, candidate: &Candidate) -> Result<(), Diagnostics> {
    let single = matches!(found.dtype(), tamis_ir::DType::F32 | tamis_ir::DType::C64);
    let tolerance = if single { 1e-3 } else { 1e-9 };
    let close = |a: Value, b: Value| {
        let (p, q) = (a.as_c128(), b.as_c128());
        // Cancellation loses digits; a missing element would differ by more.
        a.same_number(b) || (p - q).norm() <= tolerance * (1.0 + p.norm().max(q.norm())) || !p.norm().is_finite()
    };
    match found.first_difference(expected, &close)? {
        None => Ok(()),
        Some(at) => {
            let message = format!("`{}` gives another result at {at:?} than the usual format does", candidate.format);
            let d = Diagnostic::new(Code::E1004, message).note("this is a bug in Tamis");
            Err(d.help("please report the matrix and the format; until then, use another format").into())
        }
    }
}
