//! Elementary functions: range reduction and minimax polynomials, written once for all back ends.
//!
//! Every function is a straight line of exact operations (sums, products, fused multiply-adds, bits
//! of floats, selections), generic over a [`FloatBuilder`]: the reference interpreter evaluates the
//! line, and LLVM emits it for single values and for vectors. Both give the same bits. (C calls its
//! own library, whose last bits may differ.)
//! Errors are at most 2 units in the last place (ulp) on `f64`, and 1.5 ulp on `f32` (2 for the
//! sigmoid), which `tests/elementary.rs` checks against values of many digits.
//!
//! Arguments of `sin`, `cos` and `tan` that are too large for the range reduction go to the C
//! library ([`FloatBuilder::guarded`]). Subnormal numbers, infinities, NaN and signs of zeros are
//! as in the C library.

mod coefficients;
mod evaluate;

use super::Op;
use coefficients::*;
pub(super) use evaluate::evaluate;

/// An elementary function of one operand, or two.
///
/// ```
/// use tamis_ir::algebra::{DType, Op, eval};
/// use tamis_ir::Value;
/// assert_eq!(eval(Op::Exp2, DType::F64, &[Value::F64(10.0)]), Value::F64(1024.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Elementary {
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Tanh,
    Sigmoid,
    Erf,
    Pow,
}

/// Integer operations on the bits of floats.
///
/// ```
/// use tamis_ir::algebra::BitOp;
/// assert_ne!(BitOp::ShiftLeft, BitOp::ShiftRight);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BitOp {
    Add,
    Sub,
    And,
    Xor,
    ShiftLeft,
    /// A shift to the right that keeps the sign.
    ShiftRight,
}

/// Builds computations on floats of one precision: evaluates them, or emits code for them.
///
/// Operations are exact, or rounded once; a builder must neither reassociate nor contract them.
///
/// ```
/// use tamis_ir::algebra::FloatBuilder;
/// /// `x^2 + 1`, rounded once.
/// fn parabola<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
///     let one = b.real(1.0);
///     b.fma(x, x, &one)
/// }
/// ```
pub trait FloatBuilder {
    /// A float.
    type Real: Clone;
    /// A signed integer as wide as a float.
    type Bits: Clone;
    /// A truth value.
    type Truth: Clone;

    /// Whether floats have 64 bits; else they have 32.
    fn is_double(&self) -> bool;
    /// A constant, rounded to the precision.
    fn real(&mut self, value: f64) -> Self::Real;
    /// An integer constant.
    fn int(&mut self, value: i64) -> Self::Bits;
    /// `a + b`.
    fn add(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Real;
    /// `a - b`.
    fn sub(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Real;
    /// `a * b`.
    fn mul(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Real;
    /// `a / b`.
    fn div(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Real;
    /// `-a`.
    fn neg(&mut self, a: &Self::Real) -> Self::Real;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: &Self::Real, b: &Self::Real, c: &Self::Real) -> Self::Real;
    /// The absolute value.
    fn abs(&mut self, a: &Self::Real) -> Self::Real;
    /// The magnitude of `a` with the sign of `sign`.
    fn copysign(&mut self, a: &Self::Real, sign: &Self::Real) -> Self::Real;
    /// The bits of a float.
    fn bits_of(&mut self, a: &Self::Real) -> Self::Bits;
    /// The float of bits.
    fn float_of(&mut self, a: &Self::Bits) -> Self::Real;
    /// An operation on bits, which wraps around.
    fn bits(&mut self, op: BitOp, a: &Self::Bits, b: &Self::Bits) -> Self::Bits;
    /// Whether `a < b`; false for NaN.
    fn less(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Truth;
    /// Whether `a == b`.
    fn equal(&mut self, a: &Self::Real, b: &Self::Real) -> Self::Truth;
    /// Whether an integer is not zero.
    fn is_nonzero(&mut self, a: &Self::Bits) -> Self::Truth;
    /// `a` if a condition holds, else `b`; both have been computed.
    fn select(&mut self, condition: &Self::Truth, a: &Self::Real, b: &Self::Real) -> Self::Real;
    /// `value` if a condition holds (on vectors: in every lane), else the function of the C library
    /// at `x`. The condition nearly always holds.
    fn guarded(
        &mut self,
        condition: &Self::Truth,
        value: &Self::Real,
        function: Elementary,
        x: &Self::Real,
    ) -> Self::Real;
}

impl Elementary {
    /// The operator of this name.
    ///
    /// ```
    /// use tamis_ir::algebra::{Elementary, Op};
    /// assert_eq!(Elementary::Log1p.op(), Op::Log1p);
    /// ```
    pub fn op(self) -> Op {
        match self {
            Elementary::Exp => Op::Exp,
            Elementary::Exp2 => Op::Exp2,
            Elementary::Expm1 => Op::Expm1,
            Elementary::Log => Op::Log,
            Elementary::Log2 => Op::Log2,
            Elementary::Log10 => Op::Log10,
            Elementary::Log1p => Op::Log1p,
            Elementary::Sin => Op::Sin,
            Elementary::Cos => Op::Cos,
            Elementary::Tan => Op::Tan,
            Elementary::Tanh => Op::Tanh,
            Elementary::Sigmoid => Op::Sigmoid,
            Elementary::Erf => Op::Erf,
            Elementary::Pow => Op::Pow,
        }
    }

    /// Builds the function of operands: one, or for a power two.
    ///
    /// ```
    /// use tamis_ir::algebra::{Elementary, FloatBuilder};
    /// /// A Gaussian bell.
    /// fn bell<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    ///     let square = b.mul(x, x);
    ///     let exponent = b.neg(&square);
    ///     Elementary::Exp.build(b, &[exponent])
    /// }
    /// ```
    pub fn build<B: FloatBuilder>(self, b: &mut B, operands: &[B::Real]) -> B::Real {
        let (x, y) = (&operands[0], &operands[operands.len() - 1]);
        match self {
            Elementary::Exp => exp(b, x),
            Elementary::Exp2 => exp2(b, x),
            Elementary::Expm1 => expm1(b, x),
            Elementary::Log => log(b, x),
            Elementary::Log2 => log_to_base(b, x, Base::Two),
            Elementary::Log10 => log_to_base(b, x, Base::Ten),
            Elementary::Log1p => log1p(b, x),
            Elementary::Sin => sin_or_cos(b, x, Elementary::Sin),
            Elementary::Cos => sin_or_cos(b, x, Elementary::Cos),
            Elementary::Tan => tan(b, x),
            Elementary::Tanh => tanh(b, x),
            Elementary::Sigmoid => sigmoid(b, x),
            Elementary::Erf => erf(b, x),
            Elementary::Pow => pow(b, x, y),
        }
    }
}

/// Chooses a constant by precision.
fn by_precision<B: FloatBuilder>(b: &mut B, double: f64, single: f64) -> B::Real {
    let value = if b.is_double() { double } else { single };
    b.real(value)
}

/// The polynomial in `x`, from the constant coefficient on, by Horner's rule.
fn polynomial<B: FloatBuilder>(b: &mut B, x: &B::Real, coefficients: Coefficients) -> B::Real {
    let all = if b.is_double() { coefficients.double } else { coefficients.single };
    let mut sum = b.real(all[all.len() - 1]);
    for coefficient in all[..all.len() - 1].iter().rev() {
        let coefficient = b.real(*coefficient);
        sum = b.fma(&sum, x, &coefficient);
    }
    sum
}

/// `x` between bounds; NaN stays NaN.
fn clamp<B: FloatBuilder>(b: &mut B, x: &B::Real, low: &B::Real, high: &B::Real) -> B::Real {
    let below = b.less(x, low);
    let x = b.select(&below, low, x);
    let above = b.less(high, &x);
    b.select(&above, high, &x)
}

/// The bits of the mantissa.
fn mantissa_bits<B: FloatBuilder>(b: &mut B) -> B::Bits {
    let bits = if b.is_double() { 52 } else { 23 };
    b.int(bits)
}

/// A number whose unit in the last place is 1, so that sums with it are rounded to integers, which
/// stand in their low bits.
fn rounding_constant<B: FloatBuilder>(b: &mut B) -> (B::Real, B::Bits) {
    let value = if b.is_double() { 6755399441055744.0 } else { 12582912.0 };
    let bits = if b.is_double() { 6755399441055744.0_f64.to_bits() as i64 } else { 12582912.0_f32.to_bits().into() };
    (b.real(value), b.int(bits))
}

/// The integer nearest to `x * factor`, as a float and as an integer.
fn nearest<B: FloatBuilder>(b: &mut B, x: &B::Real, factor: f64) -> (B::Real, B::Bits) {
    let (constant, constant_bits) = rounding_constant(b);
    let factor = b.real(factor);
    let shifted = b.fma(x, &factor, &constant);
    let bits = b.bits_of(&shifted);
    (b.sub(&shifted, &constant), b.bits(BitOp::Sub, &bits, &constant_bits))
}

/// `x - k * constant`, where the constant is a sum of parts, from the largest on.
fn reduced<B: FloatBuilder>(b: &mut B, x: &B::Real, k: &B::Real, parts: &[B::Real]) -> B::Real {
    let mut rest = x.clone();
    for part in parts {
        rest = minus_product(b, k, part, &rest);
    }
    rest
}

/// `c - a * b`, rounded once.
fn minus_product<B: FloatBuilder>(builder: &mut B, a: &B::Real, b: &B::Real, c: &B::Real) -> B::Real {
    let negative = builder.neg(a);
    builder.fma(&negative, b, c)
}

/// Two to an integer power within the range of exponents.
fn power_of_two<B: FloatBuilder>(b: &mut B, k: &B::Bits) -> B::Real {
    let bias = if b.is_double() { 1023 } else { 127 };
    let (bias, mantissa) = (b.int(bias), mantissa_bits(b));
    let biased = b.bits(BitOp::Add, k, &bias);
    let bits = b.bits(BitOp::ShiftLeft, &biased, &mantissa);
    b.float_of(&bits)
}

/// `y * 2^k` in two steps, each within the range of exponents; rounded once.
fn scale<B: FloatBuilder>(b: &mut B, y: &B::Real, k: &B::Bits) -> B::Real {
    let one = b.int(1);
    let half = b.bits(BitOp::ShiftRight, k, &one);
    let rest = b.bits(BitOp::Sub, k, &half);
    let (first, second) = (power_of_two(b, &half), power_of_two(b, &rest));
    let y = b.mul(y, &first);
    b.mul(&y, &second)
}

/// The two parts of log 2.
fn ln2<B: FloatBuilder>(b: &mut B) -> [B::Real; 2] {
    [by_precision(b, LN_2.double[0], LN_2.single[0]), by_precision(b, LN_2.double[1], LN_2.single[1])]
}

/// `x = k log 2 + r` with `|r| <= log(2) / 2`: `r`, and `k` as an integer.
fn reduce_by_ln2<B: FloatBuilder>(b: &mut B, x: &B::Real) -> (B::Real, B::Bits) {
    let (k, bits) = nearest(b, x, std::f64::consts::LOG2_E);
    let parts = ln2(b);
    (reduced(b, x, &k, &parts), bits)
}

fn exp<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (low, high) = (by_precision(b, -746.0, -105.0), by_precision(b, 710.0, 89.0));
    let x = clamp(b, x, &low, &high);
    let (r, k) = reduce_by_ln2(b, &x);
    let (one, q) = (b.real(1.0), polynomial(b, &r, EXP));
    let p = b.fma(&r, &q, &one);
    let y = b.fma(&r, &p, &one);
    scale(b, &y, &k)
}

fn exp2<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (low, high) = (by_precision(b, -1080.0, -155.0), by_precision(b, 1025.0, 129.0));
    let x = clamp(b, x, &low, &high);
    let (k, bits) = nearest(b, &x, 1.0);
    let r = b.sub(&x, &k);
    let (one, ln2, q) = (b.real(1.0), b.real(std::f64::consts::LN_2), polynomial(b, &r, EXP2));
    let p = b.fma(&r, &q, &ln2);
    let y = b.fma(&r, &p, &one);
    scale(b, &y, &bits)
}

fn expm1<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (low, high) = (by_precision(b, -45.0, -20.0), by_precision(b, 710.0, 89.0));
    let clamped = clamp(b, x, &low, &high);
    let (r, k) = reduce_by_ln2(b, &clamped);
    let q = polynomial(b, &r, EXPM1);
    let square = b.mul(&r, &r);
    let p = b.fma(&square, &q, &r);
    // 2^(k - 1) is finite where 2^k is not.
    let (one, half) = (b.int(1), b.real(0.5));
    let k = b.bits(BitOp::Sub, &k, &one);
    let power = power_of_two(b, &k);
    let rest = b.sub(&power, &half);
    let y = b.fma(&power, &p, &rest);
    let y = b.add(&y, &y);
    // The square of a tiny number is lost, and a zero keeps its sign.
    tiny_is_itself(b, x, &y)
}

/// `x` where it is so small that a function with slope 1 at 0 rounds to it, else `y`.
fn tiny_is_itself<B: FloatBuilder>(b: &mut B, x: &B::Real, y: &B::Real) -> B::Real {
    let (magnitude, limit) = (b.abs(x), by_precision(b, 1e-17, 1e-9));
    let tiny = b.less(&magnitude, &limit);
    b.select(&tiny, x, y)
}

/// A positive finite number as `2^k * (1 + f)` with `1 + f` between the roots of 1/2 and 2: `k`, and
/// `f`.
fn split<B: FloatBuilder>(b: &mut B, x: &B::Real) -> (B::Real, B::Real) {
    let least = by_precision(b, f64::MIN_POSITIVE, f32::MIN_POSITIVE.into());
    let (up, down) = (by_precision(b, 18014398509481984.0, 33554432.0), by_precision(b, -54.0, -25.0));
    let (none, one, mantissa) = (b.real(0.0), b.real(1.0), mantissa_bits(b));
    let root = if b.is_double() {
        std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64
    } else {
        std::f32::consts::FRAC_1_SQRT_2.to_bits().into()
    };
    let root = b.int(root);
    let subnormal = b.less(x, &least);
    let scaled = b.mul(x, &up);
    let x = b.select(&subnormal, &scaled, x);
    let offset = b.select(&subnormal, &down, &none);
    let bits = b.bits_of(&x);
    let above = b.bits(BitOp::Sub, &bits, &root);
    let k = b.bits(BitOp::ShiftRight, &above, &mantissa);
    let exponent = b.bits(BitOp::ShiftLeft, &k, &mantissa);
    let bits = b.bits(BitOp::Sub, &bits, &exponent);
    let m = b.float_of(&bits);
    let (constant, constant_bits) = rounding_constant(b);
    let k = b.bits(BitOp::Add, &k, &constant_bits);
    let k = b.float_of(&k);
    let k = b.sub(&k, &constant);
    (b.add(&k, &offset), b.sub(&m, &one))
}

/// `log(1 + f) = f - (h - t)` with `h = f^2 / 2`: `h` and `t`.
fn log_terms<B: FloatBuilder>(b: &mut B, f: &B::Real) -> (B::Real, B::Real) {
    let (two, half) = (b.real(2.0), b.real(0.5));
    let sum = b.add(&two, f);
    let s = b.div(f, &sum);
    let z = b.mul(&s, &s);
    let p = polynomial(b, &z, LOG);
    let r = b.mul(&z, &p);
    let halved = b.mul(&half, f);
    let h = b.mul(&halved, f);
    let sum = b.add(&h, &r);
    (h, b.mul(&s, &sum))
}

/// The logarithm `y` of a positive finite `x`, and what stands for it elsewhere.
fn log_or_special<B: FloatBuilder>(b: &mut B, x: &B::Real, y: &B::Real) -> B::Real {
    let (zero, infinity) = (b.real(0.0), b.real(f64::INFINITY));
    let (least, nan) = (b.real(f64::NEG_INFINITY), b.real(f64::NAN));
    let (is_zero, negative) = (b.equal(x, &zero), b.less(x, &zero));
    let special = b.select(&negative, &nan, x);
    let special = b.select(&is_zero, &least, &special);
    let (finite, positive) = (b.less(x, &infinity), b.less(&zero, x));
    let y = b.select(&finite, y, &special);
    b.select(&positive, &y, &special)
}

fn log<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (k, f) = split(b, x);
    let y = log_of_split(b, &k, &f, None);
    log_or_special(b, x, &y)
}

/// `k log 2 + log(1 + f) + correction`.
fn log_of_split<B: FloatBuilder>(b: &mut B, k: &B::Real, f: &B::Real, correction: Option<&B::Real>) -> B::Real {
    let (h, t) = log_terms(b, f);
    let [high, low] = ln2(b);
    let t = match correction {
        Some(correction) => b.add(&t, correction),
        None => t,
    };
    let t = b.fma(k, &low, &t);
    let difference = b.sub(&h, &t);
    let rest = b.sub(f, &difference);
    b.fma(k, &high, &rest)
}

fn log1p<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (one, two) = (b.real(1.0), b.real(2.0));
    let u = b.add(&one, x);
    // What the sum has lost.
    let (large, before) = (b.less(&two, &u), b.sub(&u, &one));
    let (small_loss, before) = (b.sub(x, &before), b.sub(&u, x));
    let large_loss = b.sub(&one, &before);
    let lost = b.select(&large, &large_loss, &small_loss);
    let correction = b.div(&lost, &u);
    let (k, f) = split(b, &u);
    let y = log_of_split(b, &k, &f, Some(&correction));
    let y = log_or_special(b, &u, &y);
    tiny_is_itself(b, x, &y)
}

/// A base of logarithms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Two,
    Ten,
}

fn log_to_base<B: FloatBuilder>(b: &mut B, x: &B::Real, base: Base) -> B::Real {
    let (k, f) = split(b, x);
    let (h, t) = log_terms(b, &f);
    // log(1 + f) = high + low.
    let high = b.sub(&f, &h);
    let lost = b.sub(&f, &high);
    let lost = b.sub(&lost, &h);
    let low = b.add(&lost, &t);
    // Times the logarithm of e to the base.
    let factor = if base == Base::Two { LOG2_E } else { LOG10_E };
    let factor_high = by_precision(b, factor.double[0], factor.single[0]);
    let factor_low = by_precision(b, factor.double[1], factor.single[1]);
    let product = b.mul(&high, &factor_high);
    let negative = b.neg(&product);
    let error = b.fma(&high, &factor_high, &negative);
    let error = b.fma(&low, &factor_high, &error);
    let error = b.fma(&high, &factor_low, &error);
    // Plus k times the logarithm of 2 to the base, whose first part has few bits.
    let (whole, error) = match base {
        Base::Two => (k, error),
        Base::Ten => {
            let first = by_precision(b, LOG10_2.double[0], LOG10_2.single[0]);
            let second = by_precision(b, LOG10_2.double[1], LOG10_2.single[1]);
            (b.mul(&k, &first), b.fma(&k, &second, &error))
        }
    };
    let sum = b.add(&whole, &product);
    let rest = b.sub(&whole, &sum);
    let rest = b.add(&rest, &product);
    let rest = b.add(&rest, &error);
    let y = b.add(&sum, &rest);
    log_or_special(b, x, &y)
}

/// `x = k pi / 2 + r + low` with `|r| <= pi / 4`.
struct Quadrant<B: FloatBuilder> {
    r: B::Real,
    low: B::Real,
    /// The bits of `k`.
    k: B::Bits,
    /// Whether `x` is small enough.
    fits: B::Truth,
}

fn quadrant<B: FloatBuilder>(b: &mut B, x: &B::Real) -> Quadrant<B> {
    let (k, bits) = nearest(b, x, std::f64::consts::FRAC_2_PI);
    let [first, second, third] = [0, 1, 2].map(|part| by_precision(b, FRAC_PI_2.double[part], FRAC_PI_2.single[part]));
    let exact = minus_product(b, &k, &first, x);
    // The second product and the difference, each with what its rounding loses.
    let product = b.mul(&k, &second);
    let negative = b.neg(&product);
    let product_lost = b.fma(&k, &second, &negative);
    let sum = b.sub(&exact, &product);
    let subtracted = b.sub(&exact, &sum);
    let back = b.add(&sum, &subtracted);
    let (left, right) = (b.sub(&exact, &back), b.sub(&subtracted, &product));
    let lost = b.add(&left, &right);
    let lost = b.sub(&lost, &product_lost);
    let rest = minus_product(b, &k, &third, &lost);
    let r = b.add(&sum, &rest);
    let low = b.sub(&sum, &r);
    let low = b.add(&low, &rest);
    let (magnitude, limit) = (b.abs(x), by_precision(b, 281474976710656.0, 131072.0));
    let fits = b.less(&magnitude, &limit);
    Quadrant { r, low, k: bits, fits }
}

fn sin_or_cos<B: FloatBuilder>(b: &mut B, x: &B::Real, function: Elementary) -> B::Real {
    let Quadrant { r, low, k, fits } = quadrant(b, x);
    let z = b.mul(&r, &r);
    // sin(r + low) = r + (r^3 S(r^2) + low)
    let p = polynomial(b, &z, SIN);
    let cube = b.mul(&z, &r);
    let rest = b.fma(&cube, &p, &low);
    let sine = b.add(&r, &rest);
    // cos(r + low) = w + ((1 - w) - h + (r^4 C(r^2) - r low)), where w is 1 - h rounded.
    let (one, half) = (b.real(1.0), b.real(0.5));
    let h = b.mul(&half, &z);
    let w = b.sub(&one, &h);
    let lost = b.sub(&one, &w);
    let lost = b.sub(&lost, &h);
    let p = polynomial(b, &z, COS);
    let fourth = b.mul(&z, &z);
    let tail = minus_product(b, &r, &low, &lost);
    let tail = b.fma(&fourth, &p, &tail);
    let cosine = b.add(&w, &tail);
    let (bit, next) = (b.int(1), b.int(2));
    let odd = b.bits(BitOp::And, &k, &bit);
    let odd = b.is_nonzero(&odd);
    let (y, k) = if function == Elementary::Sin {
        (b.select(&odd, &cosine, &sine), k)
    } else {
        (b.select(&odd, &sine, &cosine), b.bits(BitOp::Add, &k, &bit))
    };
    // The second bit of k is the sign.
    let sign = b.bits(BitOp::And, &k, &next);
    let places = if b.is_double() { 62 } else { 30 };
    let places = b.int(places);
    let sign = b.bits(BitOp::ShiftLeft, &sign, &places);
    let bits = b.bits_of(&y);
    let bits = b.bits(BitOp::Xor, &bits, &sign);
    let y = b.float_of(&bits);
    let y = if function == Elementary::Sin { tiny_is_itself(b, x, &y) } else { y };
    b.guarded(&fits, &y, function, x)
}

fn tan<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let Quadrant { r, low, k, fits } = quadrant(b, x);
    let z = b.mul(&r, &r);
    let p = polynomial(b, &z, TAN);
    let cube = b.mul(&z, &r);
    // tan(r + low) = r + (r^3 T(r^2) + low (1 + tan(r)^2))
    let tangent = b.fma(&cube, &p, &r);
    let square = b.mul(&tangent, &tangent);
    let low = b.fma(&square, &low, &low);
    let rest = b.fma(&cube, &p, &low);
    let tangent = b.add(&r, &rest);
    let lost = b.sub(&r, &tangent);
    let lost = b.add(&lost, &rest);
    // -1 / (tangent + lost), by one step of Newton's.
    let (one, minus_one) = (b.real(1.0), b.real(-1.0));
    let inverse = b.div(&minus_one, &tangent);
    let error = b.fma(&inverse, &tangent, &one);
    let error = b.fma(&inverse, &lost, &error);
    let inverse = b.fma(&inverse, &error, &inverse);
    let bit = b.int(1);
    let odd = b.bits(BitOp::And, &k, &bit);
    let odd = b.is_nonzero(&odd);
    let y = b.select(&odd, &inverse, &tangent);
    let y = tiny_is_itself(b, x, &y);
    b.guarded(&fits, &y, Elementary::Tan, x)
}

fn tanh<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let z = b.mul(x, x);
    let p = polynomial(b, &z, TANH);
    let cube = b.mul(&z, x);
    let near = b.fma(&cube, &p, x);
    let near = tiny_is_itself(b, x, &near);
    // Beyond 0.55, tanh(a) = 1 - 2 / (exp(2 a) + 1).
    let (magnitude, zero, most) = (b.abs(x), b.real(0.0), by_precision(b, 44.0, 22.0));
    let (one, two, limit) = (b.real(1.0), b.real(2.0), b.real(0.55));
    let doubled = b.add(&magnitude, &magnitude);
    let doubled = clamp(b, &doubled, &zero, &most);
    let power = exp(b, &doubled);
    let sum = b.add(&power, &one);
    let complement = b.div(&two, &sum);
    let far = b.sub(&one, &complement);
    let far = b.copysign(&far, x);
    let is_near = b.less(&magnitude, &limit);
    b.select(&is_near, &near, &far)
}

fn sigmoid<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    // With e = exp(-|x|), which does not overflow: 1 / (1 + e), or e / (1 + e).
    let (magnitude, zero, one) = (b.abs(x), b.real(0.0), b.real(1.0));
    let exponent = b.neg(&magnitude);
    let power = exp(b, &exponent);
    let negative = b.less(x, &zero);
    let numerator = b.select(&negative, &power, &one);
    let sum = b.add(&one, &power);
    b.div(&numerator, &sum)
}

fn erf<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let (magnitude, one) = (b.abs(x), b.real(1.0));
    let z = b.mul(x, x);
    let p = polynomial(b, &z, ERF);
    let near = b.fma(x, &p, x);
    // Beyond 1, the logarithm of 1 - erf(a) is a polynomial.
    let most = by_precision(b, 6.0, 4.0);
    let clamped = clamp(b, &magnitude, &one, &most);
    let t = b.sub(&clamped, &one);
    let p = polynomial(b, &t, LOG_ERFC);
    let complement = exp(b, &p);
    let far = b.sub(&one, &complement);
    let far = b.copysign(&far, x);
    let is_near = b.less(&magnitude, &one);
    b.select(&is_near, &near, &far)
}

/// A number as a sum of two: the second is about as large as the rounding error of the first.
struct Double<B: FloatBuilder> {
    high: B::Real,
    low: B::Real,
}

/// The parts of a constant.
fn parts<B: FloatBuilder>(b: &mut B, constant: Coefficients) -> Double<B> {
    let high = by_precision(b, constant.double[0], constant.single[0]);
    Double { high, low: by_precision(b, constant.double[1], constant.single[1]) }
}

/// `a + b + low` with `|a| >= |b|`, or `a` zero.
fn sum_of<B: FloatBuilder>(builder: &mut B, a: &B::Real, b: &B::Real, low: &B::Real) -> Double<B> {
    let high = builder.add(a, b);
    let lost = builder.sub(a, &high);
    let lost = builder.add(&lost, b);
    Double { high, low: builder.add(&lost, low) }
}

/// The product.
fn product_of<B: FloatBuilder>(builder: &mut B, a: &Double<B>, b: &Double<B>) -> Double<B> {
    let high = builder.mul(&a.high, &b.high);
    let negative = builder.neg(&high);
    let low = builder.fma(&a.high, &b.high, &negative);
    let low = builder.fma(&a.high, &b.low, &low);
    Double { high, low: builder.fma(&a.low, &b.high, &low) }
}

/// The binary logarithm of a positive finite number, with an error far below that of one float.
fn precise_log2<B: FloatBuilder>(b: &mut B, x: &B::Real) -> Double<B> {
    let (k, f) = split(b, x);
    let (zero, one, two) = (b.real(0.0), b.real(1.0), b.real(2.0));
    // s = f / (2 + f)
    let sum = sum_of(b, &two, &f, &zero);
    let inverse = b.div(&one, &sum.high);
    let quotient = b.mul(&f, &inverse);
    let rest = minus_product(b, &quotient, &sum.high, &f);
    let rest = minus_product(b, &quotient, &sum.low, &rest);
    let s = Double { low: b.mul(&rest, &inverse), high: quotient };
    // atanh(s) = s + s z (1/3 + z Q(z)) with z = s^2
    let z = product_of(b, &s, &s);
    let q = polynomial(b, &z.high, ATANH);
    let p = b.mul(&z.high, &q);
    let third = parts(b, THIRD);
    let p = sum_of(b, &third.high, &p, &third.low);
    let p = product_of(b, &z, &p);
    let p = product_of(b, &s, &p);
    let low = b.add(&s.low, &p.low);
    let inverse_tangent = sum_of(b, &s.high, &p.high, &low);
    let factor = parts(b, TWICE_LOG2_E);
    let log = product_of(b, &inverse_tangent, &factor);
    sum_of(b, &k, &log.high, &log.low)
}

/// The integer nearest to a number that is not negative, and below the first whose neighbours are
/// apart by more than 1.
fn nearest_below_limit<B: FloatBuilder>(b: &mut B, x: &B::Real) -> B::Real {
    let constant = by_precision(b, 4503599627370496.0, 8388608.0);
    let sum = b.add(x, &constant);
    b.sub(&sum, &constant)
}

/// `x` to the power of `y`, with the special cases of the C library.
fn pow<B: FloatBuilder>(b: &mut B, x: &B::Real, y: &B::Real) -> B::Real {
    let (zero, half, one) = (b.real(0.0), b.real(0.5), b.real(1.0));
    let (infinity, nan) = (b.real(f64::INFINITY), b.real(f64::NAN));
    let magnitude = b.abs(x);
    let Double { high, low } = precise_log2(b, &magnitude);
    // 2^(y log2 |x|)
    let product = b.mul(y, &high);
    let negative = b.neg(&product);
    let lost = b.fma(y, &high, &negative);
    let lost = b.fma(y, &low, &lost);
    let (least, most) = (by_precision(b, -1080.0, -155.0), by_precision(b, 1025.0, 129.0));
    let clamped = clamp(b, &product, &least, &most);
    // Beyond the limits, what is lost may be infinite.
    let inside = b.equal(&clamped, &product);
    let lost = b.select(&inside, &lost, &zero);
    let (k, bits) = nearest(b, &clamped, 1.0);
    let r = b.sub(&clamped, &k);
    let r = b.add(&r, &lost);
    let (ln2, q) = (b.real(std::f64::consts::LN_2), polynomial(b, &r, EXP2));
    let p = b.fma(&r, &q, &ln2);
    let power = b.fma(&r, &p, &one);
    let power = scale(b, &power, &bits);
    // Zeros and infinities to a power are the same, or each other.
    let (is_zero, is_infinite, negative) =
        (b.equal(&magnitude, &zero), b.equal(&magnitude, &infinity), b.less(y, &zero));
    let of_zero = b.select(&negative, &infinity, &zero);
    let of_infinity = b.select(&negative, &zero, &infinity);
    let power = b.select(&is_zero, &of_zero, &power);
    let power = b.select(&is_infinite, &of_infinity, &power);
    let is_one = b.equal(&magnitude, &one);
    let power = b.select(&is_one, &one, &power);
    // Negative numbers have powers with integers; the power with an odd one is negative.
    let exponent = b.abs(y);
    let (fraction_limit, even_limit) =
        (by_precision(b, 4503599627370496.0, 8388608.0), by_precision(b, 9007199254740992.0, 16777216.0));
    let rounded = nearest_below_limit(b, &exponent);
    let may_have_fraction = b.less(&exponent, &fraction_limit);
    let rounded = b.select(&may_have_fraction, &rounded, &exponent);
    let is_integer = b.equal(&rounded, &exponent);
    let halved = b.mul(&exponent, &half);
    let rounded = nearest_below_limit(b, &halved);
    let is_even = b.equal(&rounded, &halved);
    let may_be_odd = b.less(&exponent, &even_limit);
    let sign = b.select(&is_even, &one, x);
    let sign = b.select(&may_be_odd, &sign, &one);
    let sign = b.select(&is_integer, &sign, &one);
    let power = b.copysign(&power, &sign);
    let without_integer = b.select(&is_integer, &power, &nan);
    let is_negative = b.less(x, &zero);
    let power_of_negative = b.select(&is_infinite, &power, &without_integer);
    let power = b.select(&is_negative, &power_of_negative, &power);
    // NaN, unless the other operand decides.
    let (x_is_number, y_is_number) = (b.equal(x, x), b.equal(y, y));
    let power = b.select(&x_is_number, &power, &nan);
    let power = b.select(&y_is_number, &power, &nan);
    let (to_zero, of_one) = (b.equal(y, &zero), b.equal(x, &one));
    let power = b.select(&to_zero, &one, &power);
    b.select(&of_one, &one, &power)
}
