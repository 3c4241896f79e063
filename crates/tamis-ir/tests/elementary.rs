//! Accuracy of elementary functions: at most 2 ulp on `f64` and 1.5 ulp on `f32`.
//!
//! `elementary/values.txt` has values with many digits, made by `elementary/values.py`; the
//! variable `TAMIS_ELEMENTARY_VALUES` names a longer file.

use tamis_ir::algebra::{Op, TABLE, eval};
use tamis_ir::{DType, Value};

/// A value with more digits than a float.
struct Reference {
    op: Op,
    operands: Vec<Value>,
    high: f64,
    low: f64,
}

fn references() -> Vec<Reference> {
    let text = match std::env::var("TAMIS_ELEMENTARY_VALUES") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("elementary/values.txt").to_string(),
    };
    let bits = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, dtype, ref operands @ .., high, low] = words[..] else { panic!("{line}") };
        let op = TABLE.iter().find(|row| row.name == name).unwrap().op;
        let operand = |word: &&str| match dtype {
            "f64" => Value::F64(f64::from_bits(bits(word))),
            _ => Value::F32(f32::from_bits(u32::try_from(bits(word)).unwrap())),
        };
        let operands = operands.iter().map(operand).collect();
        Reference { op, operands, high: f64::from_bits(bits(high)), low: f64::from_bits(bits(low)) }
    };
    text.lines().map(line).collect()
}

/// The distance of neighbours at a number of a type.
fn ulp(x: f64, dtype: DType) -> f64 {
    let (double, single) = (x.abs(), x.abs() as f32);
    match dtype {
        DType::F64 => double.next_up() - double,
        _ => f64::from(single.next_up()) - f64::from(single),
    }
}

#[test]
fn errors_are_small() {
    let mut worst: Vec<(Op, DType, f64, Vec<Value>)> = Vec::new();
    for Reference { op, operands, high, low } in references() {
        let dtype = operands[0].dtype();
        let error = match eval(op, dtype, &operands) {
            Value::F64(y) => ((y - high) - low).abs() / ulp(high, dtype),
            Value::F32(y) => ((f64::from(y) - high) - low).abs() / ulp(high, dtype),
            other => panic!("{other:?}"),
        };
        match worst.iter_mut().find(|(other, of, ..)| (*other, *of) == (op, dtype)) {
            Some(entry) if entry.2 < error => *entry = (op, dtype, error, operands),
            Some(_) => {}
            None => worst.push((op, dtype, error, operands)),
        }
    }
    assert_eq!(worst.len(), 28, "14 functions of two types");
    for (op, dtype, error, operands) in worst {
        println!("{:8} {dtype} {error:.3} ulp at {operands:?}", op.info().name);
        // The sigmoid is a quotient of a rounded exponential.
        let most = if dtype == DType::F64 || op == Op::Sigmoid { 2.0 } else { 1.5 };
        assert!(error <= most, "{op:?} of {dtype} at {operands:?}: {error} ulp");
    }
}

/// At zeros, infinities, NaN, limits of the range and integers, results are those of the C library.
#[test]
fn special_arguments() {
    type Function = (Op, fn(f64) -> f64, fn(f32) -> f32);
    let functions: [Function; 11] = [
        (Op::Exp, f64::exp, f32::exp),
        (Op::Exp2, f64::exp2, f32::exp2),
        (Op::Expm1, f64::exp_m1, f32::exp_m1),
        (Op::Log, f64::ln, f32::ln),
        (Op::Log2, f64::log2, f32::log2),
        (Op::Log10, f64::log10, f32::log10),
        (Op::Log1p, f64::ln_1p, f32::ln_1p),
        (Op::Sin, f64::sin, f32::sin),
        (Op::Cos, f64::cos, f32::cos),
        (Op::Tan, f64::tan, f32::tan),
        (Op::Tanh, f64::tanh, f32::tanh),
    ];
    let exact = [0.0, f64::INFINITY, f64::NAN, 1e300, 5e-324, 1e-310, 1e-30, 1e18];
    let exact_singles = [0.0, f32::INFINITY, f32::NAN, 3e38, 1e-45, 1e-39, 1e-30, 1e9];
    for (op, double, single) in functions {
        for x in exact.into_iter().flat_map(|x| [x, -x]) {
            let (found, expected) = (eval(op, DType::F64, &[Value::F64(x)]), double(x));
            let Value::F64(y) = found else { panic!("{found:?}") };
            // Logarithms of tiny and huge numbers are not exact.
            let near = (y - expected).abs() <= 2.0 * f64::EPSILON * expected.abs();
            let same = y.to_bits() == expected.to_bits()
                || (y.is_nan() && expected.is_nan())
                || (expected.is_finite() && expected != 0.0 && near);
            assert!(same, "{op:?} at {x:?}: {y:?} instead of {expected:?}");
        }
        for x in exact_singles.into_iter().flat_map(|x| [x, -x]) {
            let (found, expected) = (eval(op, DType::F32, &[Value::F32(x)]), single(x));
            let Value::F32(y) = found else { panic!("{found:?}") };
            let near = (y - expected).abs() <= 2.0 * f32::EPSILON * expected.abs();
            let same = y.to_bits() == expected.to_bits()
                || (y.is_nan() && expected.is_nan())
                || (expected.is_finite() && expected != 0.0 && near);
            assert!(same, "{op:?} at {x:?}: {y:?} instead of {expected:?}");
        }
    }
    let of = |op: Op, x: f64| eval(op, DType::F64, &[Value::F64(x)]);
    for k in -1074..=1023 {
        let power = 2.0_f64.powi(k.max(-1000)) * 2.0_f64.powi(k.min(-1000) + 1000);
        assert_eq!(of(Op::Exp2, k.into()), Value::F64(power));
        assert_eq!(of(Op::Log2, power), Value::F64(k.into()));
    }
    for k in 0..=22 {
        assert_eq!(of(Op::Log10, 10.0_f64.powi(k)), Value::F64(k.into()), "exact powers of ten");
    }
    for (op, x, y) in
        [(Op::Sigmoid, 0.0, 0.5), (Op::Erf, f64::INFINITY, 1.0), (Op::Erf, -7.0, -1.0), (Op::Exp, 0.0, 1.0)]
    {
        assert_eq!(of(op, x), Value::F64(y));
    }
    assert!(matches!(of(Op::Erf, f64::NAN), Value::F64(y) if y.is_nan()));
    assert!(matches!(of(Op::Erf, -0.0), Value::F64(y) if y == 0.0 && y.is_sign_negative()));
}

/// Powers at zeros, infinities, NaN, and of negative numbers are those of the C library.
#[test]
fn special_powers() {
    let numbers = [0.0, 0.5, 1.0, 2.0, 3.0, 2.5, 1e300, 9007199254740993.0, 4503599627370497.0, f64::INFINITY, 5e-324];
    let all = || numbers.into_iter().flat_map(|x| [x, -x]).chain([f64::NAN]);
    for (x, y) in all().flat_map(|x| all().map(move |y| (x, y))) {
        let same = |found: f64, expected: f64, epsilon: f64| {
            let near =
                expected.is_finite() && expected != 0.0 && (found - expected).abs() <= 2.0 * epsilon * expected.abs();
            near || found == expected && found.is_sign_negative() == expected.is_sign_negative()
                || found.is_nan() && expected.is_nan()
        };
        let Value::F64(found) = eval(Op::Pow, DType::F64, &[Value::F64(x), Value::F64(y)]) else { panic!() };
        assert!(same(found, x.powf(y), f64::EPSILON), "{x:?} ** {y:?}: {found:?} instead of {:?}", x.powf(y));
        let (x, y) = (x as f32, y as f32);
        let Value::F32(found) = eval(Op::Pow, DType::F32, &[Value::F32(x), Value::F32(y)]) else { panic!() };
        let expected = x.powf(y);
        assert!(
            same(found.into(), expected.into(), f32::EPSILON.into()),
            "{x:?} ** {y:?}: {found:?} instead of {expected:?}"
        );
    }
    for (x, y) in [(3.0, 4.0), (10.0, 15.0), (-2.0, 9.0), (1.5, 2.0), (0.5, -3.0)] {
        assert_eq!(eval(Op::Pow, DType::F64, &[Value::F64(x), Value::F64(y)]), Value::F64(x.powi(y as i32)));
    }
}
