//! Trying formats out: converting, compiling, comparing results, and running by turns.

use super::task::LOWER;
use super::{Candidate, Outcome, Task, Times};
use crate::{CompileOptions, Executable, Signature, compile};
use std::time::{Duration, Instant};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format, Program, Value};
use tamis_tensor::{Part, Tensor};

/// At most so many rounds are run.
const ROUNDS: usize = 101;
/// Fewer rounds will do once they took this long,
const ENOUGH: Duration = Duration::from_secs(2);
/// but at least so many are wanted then.
const WANTED: usize = 15;

/// A candidate that can be run.
struct Runner {
    candidate: usize,
    executable: Executable,
    tensor: Tensor,
    convert: Duration,
    compile: Duration,
    /// The first run, which finds the caches cold.
    first: Duration,
    runs: Vec<Duration>,
}

/// Tries the candidates out, by turns, until the deadline. The first of them gives the result that the others are compared
/// with; if it fails, nothing can be compared, and that is an error.
pub(super) fn measure(
    tensor: &Tensor,
    task: &Task,
    candidates: &mut [Candidate],
    deadline: Option<Instant>,
    progress: Option<&dyn Fn(u64, u64)>,
) -> Result<(), Diagnostics> {
    let over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    // Preparing is half of the work, roughly.
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
                    candidate.outcome = Outcome::Failed(d);
                }
            }
        }
    }
    let start = Instant::now();
    for round in 0..ROUNDS {
        if round > 0 && (over() || start.elapsed() > ENOUGH && round >= WANTED) {
            break;
        }
        // Whoever runs first in a round has no advantage in the next.
        for place in 0..runners.len() {
            let place = if round % 2 == 0 { place } else { runners.len() - 1 - place };
            if round > 0 && over() {
                break;
            }
            let runner = &mut runners[place];
            let timed = tamis_tensor::with_threads(1, || runner.executable.call_timed(&[&runner.tensor, &x]))?;
            runner.runs.push(timed.kernel);
        }
        tell(all / 2 + all * (round as u64 + 1) / (2 * ROUNDS as u64));
    }
    for runner in runners {
        let mut runs = runner.runs;
        if runs.is_empty() {
            runs.push(runner.first);
        }
        runs.sort_unstable();
        candidates[runner.candidate].outcome = Outcome::Measured(Times {
            convert: runner.convert,
            compile: runner.compile,
            run: runs[runs.len() / 2],
            least: runs[0],
            runs: runs.len(),
        });
    }
    Ok(())
}

/// Converts, compiles, runs once, and compares.
fn prepare(
    tensor: &Tensor,
    x: &Tensor,
    k: usize,
    candidate: &Candidate,
    expected: Option<&Tensor>,
) -> Result<(Runner, Tensor), Diagnostics> {
    let triangle = match candidate.part {
        Part::Whole => None,
        Part::Lower(_) => Some(triangle_of(tensor)?),
    };
    let start = Instant::now();
    let part = triangle.as_ref().map(|(by_rows, lower)| lower.call(&[by_rows])).transpose()?;
    let part = part.into_iter().flatten().next().map(|(_, part)| part);
    let converted = part.as_ref().unwrap_or(tensor).convert(&candidate.format)?;
    let convert = start.elapsed();
    let program = Program::parse(&candidate.program)?;
    let start = Instant::now();
    let executable = compile(&program, &Signature::of(&[&converted, x]), &CompileOptions::default())?;
    let compile = start.elapsed();
    let timed = tamis_tensor::with_threads(1, || executable.call_timed(&[&converted, x]))?;
    let result = timed.results.into_iter().next().map(|(_, result)| result);
    let result = result.ok_or_else(|| {
        let d =
            Diagnostic::new(Code::E1101, format!("`{}` has no result", program.name)).note("this is a bug in Tamis");
        d.help("please report the matrix and the format")
    })?;
    if let Some(expected) = expected {
        compare(&result, expected, candidate)?;
    }
    let runner =
        Runner { candidate: k, executable, tensor: converted, convert, compile, first: timed.kernel, runs: Vec::new() };
    Ok((runner, result))
}

/// The matrix by rows, and code that keeps its lower triangle: converting is timed, compiling that is not.
fn triangle_of(tensor: &Tensor) -> Result<(Tensor, Executable), Diagnostics> {
    let by_rows = tensor.convert(&Format::csr())?;
    let lower = compile(&Program::parse(LOWER)?, &Signature::of(&[&by_rows]), &CompileOptions::default())?;
    Ok((by_rows, lower))
}

/// Results agree up to rounding, whatever the format: sums are added up in another order.
fn compare(found: &Tensor, expected: &Tensor, candidate: &Candidate) -> Result<(), Diagnostics> {
    let single = matches!(found.dtype(), tamis_ir::DType::F32 | tamis_ir::DType::C64);
    let tolerance = if single { 1e-3 } else { 1e-9 };
    let close = |a: Value, b: Value| {
        let (p, q) = (a.as_c128(), b.as_c128());
        // Cancellation loses digits; what is compared here is whether entries were missed, which is not that small.
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
