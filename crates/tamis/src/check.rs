//! Check mode: what compiled code gives is compared with what the reference interpreter gives.

use crate::interpret;
use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Program, Value};
use tamis_tensor::Tensor;

/// Compares results with the interpreter's: integers and booleans exactly, floating-point numbers up to rounding, since
/// reductions may be reassociated.
pub(crate) fn compare(
    program: &Program,
    tensors: &[&Tensor],
    results: &[(String, Tensor)],
    strict: bool,
) -> Result<(), Diagnostics> {
    let expected = interpret::run(program, tensors, strict)?;
    for ((name, found), (_, expected)) in results.iter().zip(&expected) {
        if let Some(difference) = difference(found, expected)? {
            return Err(report(program, tensors, name, &difference).into());
        }
    }
    Ok(())
}

/// What is different, in words.
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
    Ok(Some(format!("is {a}{place}, where the interpreter says {b}")))
}

/// The largest finite magnitude among the stored values, by which sums of them round.
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

/// Whether two values differ by no more than reassociation explains.
fn close(a: Value, b: Value, scale: f64) -> bool {
    let tolerance = match a.dtype() {
        DType::F32 | DType::C64 => 1e-4,
        DType::F64 | DType::C128 => 1e-9,
        _ => return a.same_number(b),
    };
    let distance = (a.as_c128() - b.as_c128()).norm();
    a.same_number(b) || distance <= tolerance * (1.0 + scale)
}

fn report(program: &Program, tensors: &[&Tensor], name: &str, difference: &str) -> Diagnostic {
    let mut d =
        Diagnostic::new(Code::E1004, format!("the compiled `{}` is wrong: `{name}` {difference}", program.name));
    if let Some(id) = program.results.iter().find(|id| program.tensor(**id).name == name) {
        d = program.origin.attach(d.label(program.origin.tensor(*id), "this result differs"));
    }
    for (id, tensor) in program.params.iter().zip(tensors) {
        d = d.note(format!("`{}` is {}", program.tensor(*id).name, tensor.summary()));
    }
    d.note(format!("the program is\n{program}"))
        .help("this is a bug of Tamis: please report the lines above, and the tensors if you can")
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
    fn differences_are_told_with_their_place() {
        let a = vector(vec![1.0, 2.0, f64::NAN]);
        assert_eq!(difference(&a, &a).unwrap(), None);
        assert_eq!(difference(&a, &vector(vec![1.0 + 1e-12, 2.0, f64::NAN])).unwrap(), None);
        let told = difference(&a, &vector(vec![1.0, 2.5, f64::NAN])).unwrap().unwrap();
        assert_eq!(told, "is 2.0 at [1], where the interpreter says 2.5");
        let told = difference(&a, &vector(vec![1.0, 2.0, 3.0])).unwrap().unwrap();
        assert!(told.contains("[2]") && told.contains("nan"), "{told}");
        assert!(difference(&a, &vector(vec![1.0, 2.0])).unwrap().unwrap().contains("shape"));
        assert!(difference(&a, &a.cast(DType::F32)).unwrap().unwrap().contains("holds"));
        let sparse = a.convert(&Format::parse("sparse", 1).unwrap()).unwrap();
        assert!(difference(&a, &sparse).unwrap().unwrap().contains("stored as"));
    }

    #[test]
    fn integers_are_compared_exactly() {
        assert!(!close(Value::I64(1 << 60), Value::I64((1 << 60) + 1), 1e30));
        assert!(close(Value::F32(1.0), Value::F32(1.00001), 1.0));
        assert!(!close(Value::F64(1.0), Value::F64(1.00001), 1.0));
        assert!(!close(Value::F64(1.0), Value::F64(f64::INFINITY), 1.0));
    }

    #[test]
    fn the_report_has_what_is_needed() {
        let program =
            Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y\n");
        let program = program.unwrap();
        let x = vector(vec![1.0]);
        let d = report(&program, &[&x], "y", "is 2.0 at [0], where the interpreter says 1.0");
        let text = d.render(false);
        for part in ["E1004", "y[i] = x[i]", "1 f64 dense", "report", "--interpret", "this result differs"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
