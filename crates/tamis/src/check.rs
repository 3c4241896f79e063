//! Check mode: compares the results of compiled code with those of the reference interpreter.
//!
//! Integers and booleans must be equal; floating-point numbers up to rounding, since compiled code
//! reassociates reductions. Where the interpreter would visit more points than the limit, the check
//! fails: a caller must not believe that results were compared.

use crate::interpret;
use crate::results::Results;
use tamis_ir::program::{Block, Checked, LoopExtent, ParamType, Stmt, StmtKind};
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Program, Value, interp};
use tamis_tensor::Tensor;

/// The maximum number of loop iterations of the reference interpreter in check mode by default:
/// about a minute.
///
/// ```
/// # use tamis::prelude::*;
/// let program = Notation::parse("s = x[i]")?.plain()?;
/// use tamis::check::{CHECK_LIMIT, interpreter_points};
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
/// assert!(interpreter_points(&program, &[&x])? <= CHECK_LIMIT as f64, "the check is cheap");
/// # Ok::<(), Diagnostics>(())
/// ```
pub const CHECK_LIMIT: u64 = 200_000_000;

/// About how many points the interpreter visits per second.
const POINTS_PER_SECOND: f64 = 3e6;

/// Compares results with the interpreter's.
pub(crate) fn compare(
    program: &Program,
    tensors: &[&Tensor],
    results: &Results,
    strict: bool,
    limit: Option<u64>,
) -> Result<(), Diagnostics> {
    let limit = limit.unwrap_or(CHECK_LIMIT);
    let points = interpreter_points(program, tensors)?;
    if points > limit as f64 {
        return Err(limit_exceeded(program, Some(points), limit).into());
    }
    let expected = match interpret::run_with(program, tensors, interp::Options { strict, budget: Some(limit) }) {
        // The trip counts of its loops depend on data.
        Err(errors) if errors.0.iter().any(|d| d.code == Code::E1003) => {
            return Err(limit_exceeded(program, None, limit).into());
        }
        outcome => outcome?,
    };
    for ((name, found), expected) in results.iter().zip(expected.tensors()) {
        if let Some(difference) = difference(found, expected)? {
            return Err(mismatch(program, tensors, name, &difference).into());
        }
    }
    Ok(())
}

/// A lower bound on the points of loops that the reference interpreter visits on these tensors. It
/// visits every point, stored or not; statements under a condition and loops over computed ranges
/// count as zero.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def total(A):
///     s = scalar(0.0)
///     for i, j in _:
///         s += A[i,j]
///     return s
/// ")?;
/// let a = Tensor::from_dense(&[2, 3], vec![1.0; 6].into(), &Format::csr(), 0.0.into())?;
/// assert_eq!(tamis::check::interpreter_points(&program, &[&a])?, 8.0);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn interpreter_points(program: &Program, tensors: &[&Tensor]) -> Result<f64, Diagnostics> {
    let types: Vec<ParamType> = tensors.iter().map(|tensor| interp::param_type(*tensor)).collect();
    Ok(points(&program.body, &program.check(&types)?))
}

fn points(block: &Block, checked: &Checked) -> f64 {
    let of = |stmt: &Stmt| match &stmt.kind {
        StmtKind::For { index, body, .. } => {
            let trip_count = match checked.extents.loops.get(index.index()) {
                Some(LoopExtent::Static { start, stop }) => (*stop as f64 - *start as f64).max(0.0),
                Some(LoopExtent::Dynamic) | None => 0.0,
            };
            trip_count * (1.0 + points(body, checked))
        }
        StmtKind::If { then, otherwise, .. } => points(then, checked).min(points(otherwise, checked)),
        _ => 0.0,
    };
    block.iter().map(of).sum()
}

/// The diagnostic for a check that exceeds the limit.
fn limit_exceeded(program: &Program, points: Option<f64>, limit: u64) -> Diagnostic {
    let name = &program.name;
    let message = match points {
        Some(points) => format!(
            "the results of `{name}` are not compared: the reference interpreter would visit about {points:.1e} points of \
             its loops, and may visit {limit}"
        ),
        None => format!(
            "the results of `{name}` are not compared: the reference interpreter visited {limit} points of its loops, as \
             many as it may, and was not done"
        ),
    };
    let visits = "it visits every point of every loop, stored or not";
    let d = Diagnostic::new(Code::E1003, message);
    let d = match points {
        Some(points) => d.note(format!("{visits}: that would take about {}", duration(points / POINTS_PER_SECOND))),
        None => d.note(visits),
    };
    d.note("the code that checks every access has run, and every access was right")
        .help("check the program with smaller inputs")
        .help("`--check-limit none` compares however long it takes; in Rust, `check_limit: Some(u64::MAX)`")
        .help("leave `--check` out to have the results unchecked")
}

/// A duration, rounded for people.
fn duration(seconds: f64) -> String {
    let units =
        [(86_400.0 * 365.0, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1.0, "seconds"));
    let count = (seconds / size).round();
    if count < 1e6 { format!("{count} {unit}") } else { format!("{count:.0e} {unit}") }
}

/// The first difference of two tensors, in words.
fn difference(found: &Tensor, expected: &Tensor) -> Result<Option<String>, Diagnostic> {
    if found.shape() != expected.shape() {
        return Ok(Some(format!("has the shape {:?} instead of {:?}", found.shape(), expected.shape())));
    }
    if found.dtype() != expected.dtype() {
        return Ok(Some(format!("holds {} instead of {}", found.dtype(), expected.dtype())));
    }
    if found.format() != expected.format() {
        return Ok(Some(format!("is stored as `{}` instead of `{}`", found.format(), expected.format())));
    }
    let scale = largest(expected);
    let Some((at, a, b)) = found.first_difference(expected, &|a, b| close(a, b, scale))? else { return Ok(None) };
    let at: Vec<String> = at.iter().map(u64::to_string).collect();
    let place = if at.is_empty() { String::new() } else { format!(" at [{}]", at.join(", ")) };
    Ok(Some(format!("is {a}{place}, but the interpreter computes {b}")))
}

/// The largest finite magnitude of the stored values, the scale of rounding errors.
fn largest(tensor: &Tensor) -> f64 {
    let mut largest = 0.0f64;
    tensor.for_each(&mut |_, value| {
        let norm = value.as_c128().norm();
        if norm.is_finite() {
            largest = largest.max(norm);
        }
    });
    largest
}

/// True if two values are equal up to the rounding of reassociated sums.
fn close(a: Value, b: Value, scale: f64) -> bool {
    let tolerance = match a.dtype() {
        DType::F32 | DType::C64 => 1e-4,
        DType::F64 | DType::C128 => 1e-9,
        _ => return a.same_number(b),
    };
    let distance = (a.as_c128() - b.as_c128()).norm();
    a.same_number(b) || distance <= tolerance * (1.0 + scale)
}

fn mismatch(program: &Program, tensors: &[&Tensor], name: &str, difference: &str) -> Diagnostic {
    let mut d =
        Diagnostic::new(Code::E1004, format!("the compiled `{}` is wrong: `{name}` {difference}", program.name));
    if let Some(id) = program.results.iter().find(|id| program.tensor(**id).name == name) {
        d = program.origin.attach(d.label(program.origin.tensor(*id), "this result differs"));
    }
    for (id, tensor) in program.params.iter().zip(tensors) {
        d = d.note(format!("`{}` is {}", program.tensor(*id).name, tensor.summary()));
    }
    d.note(format!("the program is\n{program}"))
        .help("this is a bug in Tamis: please report the lines above, and the tensors if you can")
        .help("`--interpret` gives the interpreter's results meanwhile")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::Format;

    fn vector(values: Vec<f64>) -> Tensor {
        Tensor::from_dense(&[values.len() as u64], values.into(), &Format::dense(1), Value::F64(0.0)).unwrap()
    }

    #[test]
    fn differences_are_reported_with_their_coordinates() {
        let a = vector(vec![1.0, 2.0, f64::NAN]);
        assert_eq!(difference(&a, &a).unwrap(), None);
        assert_eq!(difference(&a, &vector(vec![1.0 + 1e-12, 2.0, f64::NAN])).unwrap(), None);
        let reported = difference(&a, &vector(vec![1.0, 2.5, f64::NAN])).unwrap().unwrap();
        assert_eq!(reported, "is 2.0 at [1], but the interpreter computes 2.5");
        let reported = difference(&a, &vector(vec![1.0, 2.0, 3.0])).unwrap().unwrap();
        assert!(reported.contains("[2]") && reported.contains("nan"), "{reported}");
        assert!(difference(&a, &vector(vec![1.0, 2.0])).unwrap().unwrap().contains("shape"));
        assert!(difference(&a, &a.cast(DType::F32)).unwrap().unwrap().contains("holds"));
        let sparse = a.convert(&Format::parse("sparse", 1).unwrap()).unwrap();
        assert!(difference(&a, &sparse).unwrap().unwrap().contains("stored as"));
    }

    #[test]
    fn durations_are_rounded() {
        assert_eq!(duration(90.0), "90 seconds");
        assert_eq!(duration(41_700.0), "12 hours");
        assert_eq!(duration(3.0 * 86_400.0), "3 days");
        assert_eq!(duration(1e20), "3e12 years");
        assert_eq!(duration(f64::INFINITY), "inf years");
    }

    #[test]
    fn checks_beyond_the_limit_fail() {
        let text = "def f(x, n):\n    s = scalar(0.0)\n    for i in _:\n        for j in range(0, i * n):\n            s += x[i]\n    return s\n";
        let program = Program::parse(text).unwrap();
        let x = vector(vec![1.0; 100]);
        let n = Tensor::from_dense(&[], vec![100i64].into(), &Format::dense(0), Value::I64(0)).unwrap();
        let tensors = [&x, &n];
        let results = interpret::run(&program, &tensors, false).unwrap();
        let compare = |limit| compare(&program, &tensors, &results, false, limit);
        assert!(compare(None).is_ok() && compare(Some(u64::MAX)).is_ok() && compare(Some(495_100)).is_ok());
        // The static bound is 100 points; the interpreter finds out that there are more.
        for (limit, message) in [(99, "would visit about 1.0e2 points"), (495_099, "visited 495099 points")] {
            let errors = compare(Some(limit)).unwrap_err();
            assert!(errors.0.iter().all(|d| d.code == Code::E1003 && d.message.contains(message)), "{errors:?}");
        }
    }

    #[test]
    fn integers_are_compared_exactly() {
        assert!(!close(Value::I64(1 << 60), Value::I64((1 << 60) + 1), 1e30));
        assert!(close(Value::F32(1.0), Value::F32(1.00001), 1.0));
        assert!(!close(Value::F64(1.0), Value::F64(1.00001), 1.0));
        assert!(!close(Value::F64(1.0), Value::F64(f64::INFINITY), 1.0));
    }

    #[test]
    fn a_mismatch_names_result_program_and_inputs() {
        let program =
            Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y\n");
        let program = program.unwrap();
        let x = vector(vec![1.0]);
        let d = mismatch(&program, &[&x], "y", "is 2.0 at [0], where the interpreter says 1.0");
        let text = d.render(false);
        for part in ["E1004", "y[i] = x[i]", "1 f64 dense", "report", "--interpret", "this result differs"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
