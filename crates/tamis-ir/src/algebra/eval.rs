//! Evaluation of operators on scalars: the definition that compiled code must reproduce.
//!
//! Everything is total. Integers wrap around; an integer divided by 0 gives 0; a shift by the width or
//! more gives what shifting bit by bit would; floats follow IEEE 754, with `min` and `max` letting NaN win
//! and ordering -0.0 before 0.0.

use super::{DType, Kind, Op, Value, complex};
use num_complex::{Complex, ComplexFloat};
use std::cmp::Ordering;

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
    match op {
        Op::Cast(dtype) => return a.cast(dtype),
        Op::User(user) => return user.eval(operand, operands),
        Op::Select => {
            let chosen = if a.is_truthy() { operands[1] } else { operands[2] };
            return chosen.cast(operand);
        }
        Op::Coalesce => return a.cast(operand),
        Op::Choose => {
            let zero = operands.get(2).map_or(Value::zero(operand), |z| z.cast(operand));
            let a = a.cast(operand);
            return if equal(a, zero) { operands[1].cast(operand) } else { a };
        }
        Op::Not => return Value::Bool(!a.is_truthy()),
        Op::And => return Value::Bool(operands.iter().all(|v| v.is_truthy())),
        Op::Or => return Value::Bool(operands.iter().any(|v| v.is_truthy())),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => return compare(op, operand, a, operands[1]),
        Op::IsNan => return Value::Bool(a.is_nan()),
        Op::IsInf => {
            let c = a.as_c128();
            return Value::Bool(c.re.is_infinite() || c.im.is_infinite());
        }
        Op::IsFinite => {
            let c = a.as_c128();
            return Value::Bool(c.re.is_finite() && c.im.is_finite());
        }
        _ => {}
    }
    let mut folded = a.cast(operand);
    if operands.len() == 1 {
        return unary(op, folded);
    }
    for b in &operands[1..] {
        folded = binary(op, folded, b.cast(operand));
    }
    folded
}

fn equal(a: Value, b: Value) -> bool {
    compare(Op::Eq, a.dtype(), a, b) == Value::Bool(true)
}

/// Integers are compared exactly, whatever their types; everything else in the common type.
fn compare(op: Op, common: DType, a: Value, b: Value) -> Value {
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
    Value::Bool(match op {
        Op::Eq => ordering == Some(Equal),
        Op::Ne => ordering != Some(Equal),
        Op::Lt => ordering == Some(Less),
        Op::Le => matches!(ordering, Some(Less | Equal)),
        Op::Gt => ordering == Some(Greater),
        _ => matches!(ordering, Some(Greater | Equal)),
    })
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

/// Applies `$f` to a pair of equal type, for each class of types.
macro_rules! by_class {
    ($a:expr, $b:expr, int $int:ident, float $float:ident, complex $complex:ident, bool $bool:expr, $($args:expr),*) => {
        match ($a, $b) {
            (Value::I8(a), Value::I8(b)) => Value::I8($int($($args,)* a, b)),
            (Value::I16(a), Value::I16(b)) => Value::I16($int($($args,)* a, b)),
            (Value::I32(a), Value::I32(b)) => Value::I32($int($($args,)* a, b)),
            (Value::I64(a), Value::I64(b)) => Value::I64($int($($args,)* a, b)),
            (Value::U8(a), Value::U8(b)) => Value::U8($int($($args,)* a, b)),
            (Value::U16(a), Value::U16(b)) => Value::U16($int($($args,)* a, b)),
            (Value::U32(a), Value::U32(b)) => Value::U32($int($($args,)* a, b)),
            (Value::U64(a), Value::U64(b)) => Value::U64($int($($args,)* a, b)),
            (Value::F32(a), Value::F32(b)) => Value::F32($float($($args,)* a, b)),
            (Value::F64(a), Value::F64(b)) => Value::F64($float($($args,)* a, b)),
            (Value::C64(a), Value::C64(b)) => Value::C64($complex($($args,)* a, b)),
            (Value::C128(a), Value::C128(b)) => Value::C128($complex($($args,)* a, b)),
            (Value::Bool(a), Value::Bool(b)) => Value::Bool($bool(a, b)),
            // Both were converted to one type.
            (a, _) => a,
        }
    };
}

fn binary(op: Op, a: Value, b: Value) -> Value {
    let on_bool = |a: bool, b: bool| match op {
        Op::Min | Op::BitAnd => a & b,
        Op::Max | Op::BitOr => a | b,
        _ => a ^ b,
    };
    by_class!(a, b, int int_binary, float float_binary, complex complex_binary, bool on_bool, op)
}

fn unary(op: Op, a: Value) -> Value {
    match (op, a) {
        (Op::Abs, Value::C64(c)) => return Value::F32(c.norm()),
        (Op::Abs, Value::C128(c)) => return Value::F64(c.norm()),
        (Op::Real, Value::C64(c)) => return Value::F32(c.re),
        (Op::Real, Value::C128(c)) => return Value::F64(c.re),
        (Op::Imag, Value::C64(c)) => return Value::F32(c.im),
        (Op::Imag, Value::C128(c)) => return Value::F64(c.im),
        (Op::Imag, v) => return Value::zero(v.dtype()),
        (Op::BitNot, Value::Bool(x)) => return Value::Bool(!x),
        _ => {}
    }
    // The second operand is not used.
    by_class!(a, a, int int_unary, float float_unary, complex complex_unary, bool |a: bool, _| a, op)
}

/// What integer evaluation needs of an integer type.
trait Int: Copy + Ord + From<bool> {
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn floor_div(self, b: Self) -> Self;
    fn floor_mod(self, b: Self) -> Self;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn not(self) -> Self;
    fn shift_left(self, bits: u32) -> Self;
    fn shift_right(self, bits: u32) -> Self;
    /// The shift amount: more than any width when negative or too large.
    fn amount(self) -> u32;
    /// The exponent, if it is not negative.
    fn exponent(self) -> Option<u64>;
}

macro_rules! int {
    ($($t:ty: $bits:literal),*) => {$(
        impl Int for $t {
            fn add(self, b: Self) -> Self { self.wrapping_add(b) }
            fn sub(self, b: Self) -> Self { self.wrapping_sub(b) }
            fn mul(self, b: Self) -> Self { self.wrapping_mul(b) }
            fn floor_div(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let q = self.wrapping_div(b);
                let r = self.wrapping_rem(b);
                #[allow(unused_comparisons)]
                if r != 0 && ((r < 0) != (b < 0)) { q.wrapping_sub(1) } else { q }
            }
            fn floor_mod(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let r = self.wrapping_rem(b);
                #[allow(unused_comparisons)]
                if r != 0 && ((r < 0) != (b < 0)) { r.wrapping_add(b) } else { r }
            }
            fn and(self, b: Self) -> Self { self & b }
            fn or(self, b: Self) -> Self { self | b }
            fn xor(self, b: Self) -> Self { self ^ b }
            fn not(self) -> Self { !self }
            fn shift_left(self, bits: u32) -> Self { self.checked_shl(bits).unwrap_or(0) }
            fn shift_right(self, bits: u32) -> Self { self >> bits.min($bits - 1) >> u32::from(bits >= $bits) }
            fn amount(self) -> u32 { u32::try_from(self).unwrap_or(u32::MAX) }
            fn exponent(self) -> Option<u64> { u64::try_from(self).ok() }
        }
    )*};
}
int!(i8: 8, i16: 16, i32: 32, i64: 64, u8: 8, u16: 16, u32: 32, u64: 64);

fn int_binary<T: Int>(op: Op, a: T, b: T) -> T {
    match op {
        Op::Add => a.add(b),
        Op::Sub => a.sub(b),
        Op::Mul => a.mul(b),
        Op::FloorDiv => a.floor_div(b),
        Op::Mod => a.floor_mod(b),
        Op::Pow => int_pow(a, b),
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        Op::BitAnd => a.and(b),
        Op::BitOr => a.or(b),
        Op::BitXor => a.xor(b),
        Op::Shl => a.shift_left(b.amount()),
        _ => a.shift_right(b.amount()),
    }
}

fn int_pow<T: Int>(base: T, exponent: T) -> T {
    let one = T::from(true);
    let Some(mut n) = exponent.exponent() else {
        // 1 / base**|n|, rounded towards 0: only 1 and -1 have an integer inverse.
        let minus_one = T::from(false).sub(one);
        let odd = exponent.and(one) == one;
        return if base == one || (base == minus_one && !odd) {
            one
        } else if base == minus_one {
            minus_one
        } else {
            T::from(false)
        };
    };
    let (mut result, mut square) = (one, base);
    while n > 0 {
        if n & 1 == 1 {
            result = result.mul(square);
        }
        square = square.mul(square);
        n >>= 1;
    }
    result
}

fn int_unary<T: Int>(op: Op, a: T, _: T) -> T {
    let zero = T::from(false);
    match op {
        Op::Neg => zero.sub(a),
        Op::Abs if a < zero => zero.sub(a),
        Op::Sign if a < zero => zero.sub(T::from(true)),
        Op::Sign => T::from(a > zero),
        Op::Relu => a.max(zero),
        Op::BitNot => a.not(),
        _ => a,
    }
}

/// What float evaluation needs of a float type, beyond what `ComplexFloat` offers.
pub(super) trait Float: ComplexFloat<Real = Self> + PartialOrd {
    fn from_i32(x: i32) -> Self;
    fn area_sinh(self) -> Self;
    fn area_cosh(self) -> Self;
    fn fmod(self, b: Self) -> Self;
    fn copy_sign(self, sign: Self) -> Self;
    fn negative(self) -> bool;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round_even(self) -> Self;
    fn trunc(self) -> Self;
    fn cube_root(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln_1p(self) -> Self;
    fn power(self, b: Self) -> Self;
    fn angle(self, x: Self) -> Self;
    fn hypotenuse(self, b: Self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn from_i32(x: i32) -> Self { x as $t }
            // Far out, the square under the root would overflow.
            fn area_sinh(self) -> Self {
                if self.abs() > 1e8 { (self.abs().ln() + std::f64::consts::LN_2 as $t).copysign(self) } else { <$t>::asinh(self) }
            }
            fn area_cosh(self) -> Self {
                if self > 1e8 { self.ln() + std::f64::consts::LN_2 as $t } else { <$t>::acosh(self) }
            }
            fn fmod(self, b: Self) -> Self { self % b }
            fn copy_sign(self, sign: Self) -> Self { <$t>::copysign(self, sign) }
            fn negative(self) -> bool { self.is_sign_negative() }
            fn floor(self) -> Self { <$t>::floor(self) }
            fn ceil(self) -> Self { <$t>::ceil(self) }
            fn round_even(self) -> Self { self.round_ties_even() }
            fn trunc(self) -> Self { <$t>::trunc(self) }
            fn cube_root(self) -> Self { <$t>::cbrt(self) }
            fn exp_m1(self) -> Self { <$t>::exp_m1(self) }
            fn ln_1p(self) -> Self { <$t>::ln_1p(self) }
            fn power(self, b: Self) -> Self { <$t>::powf(self, b) }
            fn angle(self, x: Self) -> Self { <$t>::atan2(self, x) }
            fn hypotenuse(self, b: Self) -> Self { <$t>::hypot(self, b) }
        }
    )*};
}
float!(f32, f64);

fn float_binary<T: Float>(op: Op, a: T, b: T) -> T {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::FloorDiv => floor_div_mod(a, b).0,
        Op::Mod => floor_div_mod(a, b).1,
        Op::Pow => a.power(b),
        Op::Min => minimum(a, b),
        Op::Max => -minimum(-a, -b),
        Op::Atan2 => a.angle(b),
        _ => a.hypotenuse(b),
    }
}

/// NaN wins, and -0.0 is less than 0.0.
fn minimum<T: Float>(a: T, b: T) -> T {
    let nan = |x: T| x.partial_cmp(&x).is_none();
    if nan(a) || a < b || (a == b && a.negative()) { a } else { b }
}

/// Python's `//` and `%`: the remainder has the divisor's sign, and is exact.
fn floor_div_mod<T: Float>(a: T, b: T) -> (T, T) {
    let zero = T::zero();
    if b == zero {
        return (a / b, a.fmod(b));
    }
    let mut rest = a.fmod(b);
    let mut quotient = (a - rest) / b;
    if rest == zero {
        rest = zero.copy_sign(b);
    } else if (b < zero) != (rest < zero) {
        rest = rest + b;
        quotient = quotient - T::one();
    }
    if quotient == zero {
        return (zero.copy_sign(a / b), rest);
    }
    let down = quotient.floor();
    let half = T::one() / (T::one() + T::one());
    (if quotient - down > half { down + T::one() } else { down }, rest)
}

fn float_unary<T: Float>(op: Op, a: T, _: T) -> T {
    let (zero, one) = (T::zero(), T::one());
    match op {
        Op::Neg => -a,
        Op::Abs => a.abs(),
        Op::Sign if a == zero || a.partial_cmp(&a).is_none() => a,
        Op::Sign => one.copy_sign(a),
        Op::Relu if a <= zero => zero,
        Op::Relu => a,
        Op::Floor => Float::floor(a),
        Op::Ceil => Float::ceil(a),
        Op::Round => a.round_even(),
        Op::Trunc => Float::trunc(a),
        Op::Cbrt => a.cube_root(),
        Op::Exp2 => a.exp2(),
        Op::Expm1 => Float::exp_m1(a),
        Op::Log2 => a.log2(),
        Op::Log10 => a.log10(),
        Op::Log1p => Float::ln_1p(a),
        Op::Sigmoid => one / (one + (-a).exp()),
        Op::Asinh => a.area_sinh(),
        Op::Acosh => a.area_cosh(),
        Op::Real | Op::Conj => a,
        _ => elementary(op, a),
    }
}

fn complex_binary<T>(op: Op, a: Complex<T>, b: Complex<T>) -> Complex<T>
where
    T: Float,
    Complex<T>: ComplexFloat<Real = T>,
{
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => complex::divide(a, b),
        _ => complex::power(a, b),
    }
}

fn complex_unary<T>(op: Op, a: Complex<T>, _: Complex<T>) -> Complex<T>
where
    T: Float,
    Complex<T>: ComplexFloat<Real = T>,
{
    match op {
        Op::Neg => Complex::new(-a.re, -a.im),
        Op::Conj => Complex::new(a.re, -a.im),
        Op::Sign => complex::sign(a),
        Op::Exp => complex::exp(a),
        Op::Sin => complex::sin(a),
        Op::Cos => complex::cos(a),
        Op::Tan => complex::tan(a),
        Op::Sinh => complex::sinh(a),
        Op::Cosh => complex::cosh(a),
        Op::Tanh => complex::tanh(a),
        Op::Asin => complex::asin(a),
        Op::Acos => complex::acos(a),
        Op::Asinh => complex::asinh(a),
        Op::Acosh => complex::acosh(a),
        Op::Atan => complex::atan(a),
        Op::Atanh => complex::atanh(a),
        Op::Log => complex::log(a),
        _ => elementary(op, a),
    }
}

/// Functions that real and complex numbers share.
fn elementary<T: ComplexFloat>(op: Op, a: T) -> T {
    match op {
        Op::Sqrt => a.sqrt(),
        Op::Exp => a.exp(),
        Op::Log => a.ln(),
        Op::Sin => a.sin(),
        Op::Cos => a.cos(),
        Op::Tan => a.tan(),
        Op::Asin => a.asin(),
        Op::Acos => a.acos(),
        Op::Atan => a.atan(),
        Op::Sinh => a.sinh(),
        Op::Cosh => a.cosh(),
        Op::Tanh => a.tanh(),
        Op::Asinh => a.asinh(),
        Op::Acosh => a.acosh(),
        Op::Atanh => a.atanh(),
        _ => a,
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
