//! Evaluation of operators on scalars: the definition that compiled code must reproduce.
//!
//! Every operator is total. Integers wrap around. An integer divided by 0 gives 0. A shift by the
//! width or more gives the result of shifting bit by bit. Floats follow IEEE 754; `min` and `max`
//! propagate NaN and order -0.0 before 0.0.
//!
//! A row of the operator table holds the functions of an elementwise operator, one for each type,
//! which `unary!` and `binary!` make of one expression per class of types. Functions of 64-bit
//! integers, floats and complex numbers have the C calling convention: the runtime library exports
//! them to compiled code.

use super::lowering::{ComparisonOp, Form, Predicate};
use super::{DType, Kind, Op, Typing, Value};
use num_complex::Complex;
use std::cmp::Ordering;

/// The functions that define an elementwise operator. Operators of more than two operands fold them
/// from the left.
///
/// ```
/// use tamis_ir::algebra::{Evaluation, Form, Op};
/// let Form::Elementwise(add) = &Op::Add.info().form else { panic!() };
/// let Evaluation::Binary(functions) = add.evaluation else { panic!() };
/// assert_eq!(functions.f64.unwrap()(2.0, 3.0), 5.0);
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Evaluation {
    Unary(Unary),
    Binary(Binary),
}

/// A complex function of one operand, by its parts.
///
/// ```
/// use num_complex::Complex;
/// use tamis_ir::algebra::{Evaluation, Form, Op};
/// let Form::Elementwise(sqrt) = &Op::Sqrt.info().form else { panic!() };
/// let Evaluation::Unary(functions) = sqrt.evaluation else { panic!() };
/// let mut root = Complex::default();
/// functions.c128.unwrap()(-4.0, 0.0, &mut root);
/// assert_eq!(root, Complex::new(0.0, 2.0));
/// ```
pub type ComplexUnary<T> = extern "C" fn(T, T, &mut Complex<T>);

/// A complex function of two operands, by their parts.
///
/// ```
/// use num_complex::Complex;
/// use tamis_ir::algebra::{Evaluation, Form, Op};
/// let Form::Elementwise(product) = &Op::Mul.info().form else { panic!() };
/// let Evaluation::Binary(functions) = product.evaluation else { panic!() };
/// let mut square = Complex::default();
/// functions.c128.unwrap()(0.0, 1.0, 0.0, 1.0, &mut square);
/// assert_eq!(square, Complex::new(-1.0, 0.0));
/// ```
pub type ComplexBinary<T> = extern "C" fn(T, T, T, T, &mut Complex<T>);

/// A function of one operand on each type; `None` where the type rule excludes the type.
///
/// ```
/// use tamis_ir::algebra::{Evaluation, Form, Op};
/// let Form::Elementwise(sqrt) = &Op::Sqrt.info().form else { panic!() };
/// let Evaluation::Unary(functions) = sqrt.evaluation else { panic!() };
/// assert_eq!(functions.f64.unwrap()(9.0), 3.0);
/// assert!(functions.i64.is_none(), "integers are converted to floats first");
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Unary {
    pub bool: Option<fn(bool) -> bool>,
    pub i8: Option<fn(i8) -> i8>,
    pub i16: Option<fn(i16) -> i16>,
    pub i32: Option<fn(i32) -> i32>,
    pub i64: Option<extern "C" fn(i64) -> i64>,
    pub u8: Option<fn(u8) -> u8>,
    pub u16: Option<fn(u16) -> u16>,
    pub u32: Option<fn(u32) -> u32>,
    pub u64: Option<extern "C" fn(u64) -> u64>,
    pub f32: Option<extern "C" fn(f32) -> f32>,
    pub f64: Option<extern "C" fn(f64) -> f64>,
    pub c64: Option<ComplexUnary<f32>>,
    pub c128: Option<ComplexUnary<f64>>,
}

/// A function of two operands on each type; `None` where the type rule excludes the type.
///
/// ```
/// use tamis_ir::algebra::{Evaluation, Form, Op};
/// let Form::Elementwise(max) = &Op::Max.info().form else { panic!() };
/// let Evaluation::Binary(functions) = max.evaluation else { panic!() };
/// assert_eq!(functions.u64.unwrap()(2, 3), 3);
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Binary {
    pub bool: Option<fn(bool, bool) -> bool>,
    pub i8: Option<fn(i8, i8) -> i8>,
    pub i16: Option<fn(i16, i16) -> i16>,
    pub i32: Option<fn(i32, i32) -> i32>,
    pub i64: Option<extern "C" fn(i64, i64) -> i64>,
    pub u8: Option<fn(u8, u8) -> u8>,
    pub u16: Option<fn(u16, u16) -> u16>,
    pub u32: Option<fn(u32, u32) -> u32>,
    pub u64: Option<extern "C" fn(u64, u64) -> u64>,
    pub f32: Option<extern "C" fn(f32, f32) -> f32>,
    pub f64: Option<extern "C" fn(f64, f64) -> f64>,
    pub c64: Option<ComplexBinary<f32>>,
    pub c128: Option<ComplexBinary<f64>>,
}

/// A function of one type, from an expression.
macro_rules! function {
    ($t:ty, |$($x:ident),*| $body:expr) => {{
        fn function($($x: $t),*) -> $t {
            $body
        }
        function
    }};
    (C $t:ty, |$($x:ident),*| $body:expr) => {{
        extern "C" fn function($($x: $t),*) -> $t {
            $body
        }
        function
    }};
    (complex $t:ty, |$z:ident| $body:expr) => {{
        extern "C" fn function(re: $t, im: $t, out: &mut num_complex::Complex<$t>) {
            let $z = num_complex::Complex::new(re, im);
            *out = $body;
        }
        function
    }};
    (complex $t:ty, |$z:ident, $w:ident| $body:expr) => {{
        extern "C" fn function(a: $t, b: $t, c: $t, d: $t, out: &mut num_complex::Complex<$t>) {
            let ($z, $w) = (num_complex::Complex::new(a, b), num_complex::Complex::new(c, d));
            *out = $body;
        }
        function
    }};
}
pub(super) use function;

macro_rules! evaluation {
    ($arity:ident
        $(bool |$($b:ident),*| $bool:expr;)?
        $(int |$($i:ident),*| $int:expr;)?
        $(float |$($x:ident),*| $float:expr;)?
        $(complex |$($z:ident),*| $complex:expr;)?
    ) => {
        $crate::algebra::eval::Evaluation::$arity($crate::algebra::eval::$arity {
            $(bool: Some($crate::algebra::eval::function!(bool, |$($b),*| $bool)),)?
            $(
                i8: Some($crate::algebra::eval::function!(i8, |$($i),*| $int)),
                i16: Some($crate::algebra::eval::function!(i16, |$($i),*| $int)),
                i32: Some($crate::algebra::eval::function!(i32, |$($i),*| $int)),
                i64: Some($crate::algebra::eval::function!(C i64, |$($i),*| $int)),
                u8: Some($crate::algebra::eval::function!(u8, |$($i),*| $int)),
                u16: Some($crate::algebra::eval::function!(u16, |$($i),*| $int)),
                u32: Some($crate::algebra::eval::function!(u32, |$($i),*| $int)),
                u64: Some($crate::algebra::eval::function!(C u64, |$($i),*| $int)),
            )?
            $(
                f32: Some($crate::algebra::eval::function!(C f32, |$($x),*| $float)),
                f64: Some($crate::algebra::eval::function!(C f64, |$($x),*| $float)),
            )?
            $(
                c64: Some($crate::algebra::eval::function!(complex f32, |$($z),*| $complex)),
                c128: Some($crate::algebra::eval::function!(complex f64, |$($z),*| $complex)),
            )?
            ..$crate::algebra::eval::$arity::NONE
        })
    };
}
pub(super) use evaluation;

/// The evaluation of an operator of one operand: `unary! { int |x| x; float |x| x.floor(); }`.
macro_rules! unary {
    ($($classes:tt)*) => { $crate::algebra::eval::evaluation!(Unary $($classes)*) };
}
pub(super) use unary;

/// The evaluation of an operator of two operands: `binary! { float |x, y| x.atan2(y); }`.
macro_rules! binary {
    ($($classes:tt)*) => { $crate::algebra::eval::evaluation!(Binary $($classes)*) };
}
pub(super) use binary;

macro_rules! none {
    ($arity:ident) => {
        impl $arity {
            pub(super) const NONE: $arity = $arity {
                bool: None,
                i8: None,
                i16: None,
                i32: None,
                i64: None,
                u8: None,
                u16: None,
                u32: None,
                u64: None,
                f32: None,
                f64: None,
                c64: None,
                c128: None,
            };
        }
    };
}
none!(Unary);
none!(Binary);

/// Applies `op` to operands after converting them to `operand` (see [`super::OpType`]).
///
/// `operands` must be as many as the operator takes.
///
/// ```
/// use tamis_ir::algebra::{DType, Op, Value, eval};
/// assert_eq!(eval(Op::FloorDiv, DType::I64, &[Value::I64(-7), Value::I64(2)]), Value::I64(-4));
/// assert_eq!(eval(Op::Add, DType::U8, &[Value::U8(255), Value::U8(1)]), Value::U8(0));
/// ```
pub fn eval(op: Op, operand: DType, operands: &[Value]) -> Value {
    let a = operands[0];
    let info = op.info();
    match info.form {
        Form::Elementwise(function) => {
            // The type rule and the functions of each row agree; a test checks every type.
            let folded = match function.evaluation {
                Evaluation::Unary(f) => unary_value(&f, a.cast(operand)),
                Evaluation::Binary(f) => operands[1..]
                    .iter()
                    .try_fold(a.cast(operand), |folded, b| binary_value(&f, folded, b.cast(operand))),
            };
            let folded = folded.unwrap_or(Value::zero(operand));
            match info.typing {
                // The magnitude and the parts of a complex number are real.
                Typing::Magnitude | Typing::Part => folded.cast(operand.real()),
                _ => folded,
            }
        }
        Form::Comparison(comparison) => Value::Bool(compare(comparison, operand, a, operands[1])),
        Form::Predicate(predicate) => Value::Bool(test(predicate, a)),
        Form::And => Value::Bool(operands.iter().all(|v| v.is_truthy())),
        Form::Or => Value::Bool(operands.iter().any(|v| v.is_truthy())),
        Form::Not => Value::Bool(!a.is_truthy()),
        Form::Select => (if a.is_truthy() { operands[1] } else { operands[2] }).cast(operand),
        Form::Coalesce => a.cast(operand),
        Form::Choose => {
            let zero = operands.get(2).map_or(Value::zero(operand), |z| z.cast(operand));
            let a = a.cast(operand);
            if compare(ComparisonOp::Eq, operand, a, zero) { operands[1].cast(operand) } else { a }
        }
        Form::Conversion(dtype) => a.cast(dtype),
        Form::Defined(user) => user.eval(operand, operands),
    }
}

/// Applies a function of one operand; `None` if the type has none.
pub(super) fn unary_value(f: &Unary, a: Value) -> Option<Value> {
    Some(match a {
        Value::Bool(x) => Value::Bool(f.bool?(x)),
        Value::I8(x) => Value::I8(f.i8?(x)),
        Value::I16(x) => Value::I16(f.i16?(x)),
        Value::I32(x) => Value::I32(f.i32?(x)),
        Value::I64(x) => Value::I64(f.i64?(x)),
        Value::U8(x) => Value::U8(f.u8?(x)),
        Value::U16(x) => Value::U16(f.u16?(x)),
        Value::U32(x) => Value::U32(f.u32?(x)),
        Value::U64(x) => Value::U64(f.u64?(x)),
        Value::F32(x) => Value::F32(f.f32?(x)),
        Value::F64(x) => Value::F64(f.f64?(x)),
        Value::C64(z) => {
            let mut out = z;
            f.c64?(z.re, z.im, &mut out);
            Value::C64(out)
        }
        Value::C128(z) => {
            let mut out = z;
            f.c128?(z.re, z.im, &mut out);
            Value::C128(out)
        }
    })
}

/// Applies a function of two operands of one type; `None` if the type has none.
pub(super) fn binary_value(f: &Binary, a: Value, b: Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::Bool(x), Value::Bool(y)) => Value::Bool(f.bool?(x, y)),
        (Value::I8(x), Value::I8(y)) => Value::I8(f.i8?(x, y)),
        (Value::I16(x), Value::I16(y)) => Value::I16(f.i16?(x, y)),
        (Value::I32(x), Value::I32(y)) => Value::I32(f.i32?(x, y)),
        (Value::I64(x), Value::I64(y)) => Value::I64(f.i64?(x, y)),
        (Value::U8(x), Value::U8(y)) => Value::U8(f.u8?(x, y)),
        (Value::U16(x), Value::U16(y)) => Value::U16(f.u16?(x, y)),
        (Value::U32(x), Value::U32(y)) => Value::U32(f.u32?(x, y)),
        (Value::U64(x), Value::U64(y)) => Value::U64(f.u64?(x, y)),
        (Value::F32(x), Value::F32(y)) => Value::F32(f.f32?(x, y)),
        (Value::F64(x), Value::F64(y)) => Value::F64(f.f64?(x, y)),
        (Value::C64(z), Value::C64(w)) => {
            let mut out = z;
            f.c64?(z.re, z.im, w.re, w.im, &mut out);
            Value::C64(out)
        }
        (Value::C128(z), Value::C128(w)) => {
            let mut out = z;
            f.c128?(z.re, z.im, w.re, w.im, &mut out);
            Value::C128(out)
        }
        // The caller converts both operands to one type.
        _ => return None,
    })
}

fn test(predicate: Predicate, a: Value) -> bool {
    let c = a.as_c128();
    match predicate {
        Predicate::IsNan => a.is_nan(),
        Predicate::IsInf => c.re.is_infinite() || c.im.is_infinite(),
        Predicate::IsFinite => c.re.is_finite() && c.im.is_finite(),
    }
}

/// Integers are compared exactly, whatever their types; everything else in the common type.
fn compare(comparison: ComparisonOp, common: DType, a: Value, b: Value) -> bool {
    let ordering = match (a.dtype().kind().max(b.dtype().kind()), common.kind()) {
        (Kind::Bool | Kind::Int, _) => Some(as_i128(a).cmp(&as_i128(b))),
        (_, Kind::Complex) => {
            let (a, b) = (a.cast(common), b.cast(common));
            let same = match (a, b) {
                (Value::C64(a), Value::C64(b)) => a == b,
                _ => a.as_c128() == b.as_c128(),
            };
            if same { Some(Ordering::Equal) } else { None }
        }
        _ => match (a.cast(common), b.cast(common)) {
            (Value::F32(a), Value::F32(b)) => a.partial_cmp(&b),
            (a, b) => a.as_c128().re.partial_cmp(&b.as_c128().re),
        },
    };
    use Ordering::*;
    match comparison {
        ComparisonOp::Eq => ordering == Some(Equal),
        ComparisonOp::Ne => ordering != Some(Equal),
        ComparisonOp::Lt => ordering == Some(Less),
        ComparisonOp::Le => matches!(ordering, Some(Less | Equal)),
        ComparisonOp::Gt => ordering == Some(Greater),
        ComparisonOp::Ge => matches!(ordering, Some(Greater | Equal)),
    }
}

fn as_i128(v: Value) -> i128 {
    match v {
        Value::U64(x) => x as i128,
        other => match other.cast(DType::I64) {
            Value::I64(x) => x as i128,
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per fact: operator, operand type, operands, result.
    #[test]
    fn facts() {
        use Value::{Bool, F64, I8, I64, U8, U64};
        let table: &[(Op, DType, &[Value], Value)] = &[
            (Op::Mod, DType::I64, &[I64(-7), I64(3)], I64(2)),
            (Op::Mod, DType::I64, &[I64(7), I64(-3)], I64(-2)),
            (Op::FloorDiv, DType::I64, &[I64(7), I64(0)], I64(0)),
            (Op::FloorDiv, DType::I8, &[I8(-128), I8(-1)], I8(-128)),
            (Op::FloorDiv, DType::F64, &[F64(1.0), F64(0.1)], F64(9.0)),
            (Op::Mod, DType::F64, &[F64(-1.0), F64(3.0)], F64(2.0)),
            (Op::Pow, DType::I64, &[I64(2), I64(-1)], I64(0)),
            (Op::Pow, DType::I64, &[I64(-1), I64(-3)], I64(-1)),
            (Op::Pow, DType::U8, &[U8(3), U8(200)], U8(161)),
            (Op::Shl, DType::I8, &[I8(1), I8(8)], I8(0)),
            (Op::Shr, DType::I8, &[I8(-1), I8(100)], I8(-1)),
            (Op::Shr, DType::U8, &[U8(255), U8(8)], U8(0)),
            (Op::Lt, DType::F64, &[I64(-1), U64(u64::MAX)], Bool(true)),
            (Op::Eq, DType::F64, &[I64(i64::MAX), U64(i64::MAX as u64 + 1)], Bool(false)),
            (Op::Ne, DType::F64, &[F64(f64::NAN), F64(f64::NAN)], Bool(true)),
            (Op::Min, DType::F64, &[F64(0.0), F64(-0.0)], F64(-0.0)),
            (Op::Max, DType::F64, &[F64(-0.0), F64(0.0)], F64(0.0)),
            (Op::Min, DType::I64, &[I64(3), I64(1), I64(2)], I64(1)),
            (Op::Round, DType::F64, &[F64(2.5)], F64(2.0)),
            (Op::Choose, DType::I64, &[I64(0), I64(5)], I64(5)),
            (Op::Choose, DType::I64, &[I64(0), I64(5), I64(-1)], I64(0)),
            (Op::Choose, DType::I64, &[I64(-1), I64(5), I64(-1)], I64(5)),
            (Op::Select, DType::F64, &[Bool(false), I64(1), F64(2.0)], F64(2.0)),
            (Op::Relu, DType::F64, &[F64(-3.0)], F64(0.0)),
            (Op::Cast(DType::I8), DType::F64, &[F64(-3.9)], I8(-3)),
        ];
        for (op, dtype, operands, expected) in table {
            let got = eval(*op, *dtype, operands);
            assert_eq!(got, *expected, "{op:?} {operands:?}");
        }
        for op in [Op::Min, Op::Max] {
            for operands in [[F64(f64::NAN), F64(1.0)], [F64(1.0), F64(f64::NAN)]] {
                assert!(eval(op, DType::F64, &operands).is_nan());
            }
        }
        assert!(eval(Op::Relu, DType::F64, &[F64(f64::NAN)]).is_nan());
    }
}
