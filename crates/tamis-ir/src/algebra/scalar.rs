//! Scalar arithmetic on integers and floats beyond the standard library, for definitions of
//! operators.

use super::elementary::{Elementary, evaluate};
use num_complex::ComplexFloat;

/// Integer arithmetic that wraps around and never fails.
pub(super) trait Int: Copy + Ord {
    fn floor_div(self, b: Self) -> Self;
    fn floor_mod(self, b: Self) -> Self;
    fn power(self, b: Self) -> Self;
    fn shift_left(self, b: Self) -> Self;
    fn shift_right(self, b: Self) -> Self;
    fn magnitude(self) -> Self;
    fn signum(self) -> Self;
}

macro_rules! int {
    ($($t:ty),*) => {$(
        impl Int for $t {
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
            /// An integer to a negative power is rounded towards 0: only 1 and -1 have an integer
            /// inverse.
            #[allow(irrefutable_let_patterns)]
            fn power(self, b: Self) -> Self {
                let minus_one = (0 as $t).wrapping_sub(1);
                let Ok(mut n) = u64::try_from(b) else {
                    return match self {
                        1 => 1,
                        _ if self == minus_one => if b & 1 == 1 { minus_one } else { 1 },
                        _ => 0,
                    };
                };
                let (mut result, mut square): ($t, $t) = (1, self);
                while n > 0 {
                    if n & 1 == 1 {
                        result = result.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    n >>= 1;
                }
                result
            }
            fn shift_left(self, b: Self) -> Self {
                // A negative amount exceeds every width.
                u32::try_from(b).ok().and_then(|bits| self.checked_shl(bits)).unwrap_or(0)
            }
            fn shift_right(self, b: Self) -> Self {
                let most = <$t>::BITS - 1;
                let bits = u32::try_from(b).unwrap_or(u32::MAX);
                self >> bits.min(most) >> u32::from(bits > most)
            }
            #[allow(unused_comparisons)]
            fn magnitude(self) -> Self {
                if self < 0 { (0 as $t).wrapping_sub(self) } else { self }
            }
            #[allow(unused_comparisons)]
            fn signum(self) -> Self {
                if self < 0 { (0 as $t).wrapping_sub(1) } else { <$t>::from(self > 0) }
            }
        }
    )*};
}
int!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Float arithmetic that is generic over the precision.
pub(super) trait Float: ComplexFloat<Real = Self> + PartialOrd {
    fn from_i32(x: i32) -> Self;
    fn elementary(self, function: Elementary) -> Self;
    fn to_power(self, b: Self) -> Self;
    fn area_sinh(self) -> Self;
    fn area_cosh(self) -> Self;
    fn fmod(self, b: Self) -> Self;
    fn copy_sign(self, sign: Self) -> Self;
    fn negative(self) -> bool;
    fn rounded_down(self) -> Self;
    fn ln_1p(self) -> Self;
    fn angle(self, x: Self) -> Self;
    fn hypotenuse(self, b: Self) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn from_i32(x: i32) -> Self { x as $t }
            fn elementary(self, function: Elementary) -> Self { evaluate(function, &[self]) }
            fn to_power(self, b: Self) -> Self { evaluate(Elementary::Pow, &[self, b]) }
            // For large numbers, the square under the root would overflow.
            fn area_sinh(self) -> Self {
                if self.abs() > 1e8 { (self.abs().ln() + std::f64::consts::LN_2 as $t).copysign(self) } else { <$t>::asinh(self) }
            }
            fn area_cosh(self) -> Self {
                if self > 1e8 { self.ln() + std::f64::consts::LN_2 as $t } else { <$t>::acosh(self) }
            }
            fn fmod(self, b: Self) -> Self { self % b }
            fn copy_sign(self, sign: Self) -> Self { <$t>::copysign(self, sign) }
            fn negative(self) -> bool { self.is_sign_negative() }
            fn rounded_down(self) -> Self { <$t>::floor(self) }
            fn ln_1p(self) -> Self { <$t>::ln_1p(self) }
            fn angle(self, x: Self) -> Self { <$t>::atan2(self, x) }
            fn hypotenuse(self, b: Self) -> Self { <$t>::hypot(self, b) }
        }
    )*};
}
float!(f32, f64);

/// NaN wins, and -0.0 is less than 0.0.
pub(super) fn minimum<T: Float>(a: T, b: T) -> T {
    let nan = |x: T| x.partial_cmp(&x).is_none();
    if nan(a) || a < b || (a == b && a.negative()) { a } else { b }
}

/// Python's `//` and `%`: the remainder has the divisor's sign, and is exact.
pub(super) fn floor_div_mod<T: Float>(a: T, b: T) -> (T, T) {
    let zero = T::zero();
    if b == zero {
        return (a / b, a.fmod(b));
    }
    let mut remainder = a.fmod(b);
    let mut quotient = (a - remainder) / b;
    if remainder == zero {
        remainder = zero.copy_sign(b);
    } else if (b < zero) != (remainder < zero) {
        remainder = remainder + b;
        quotient = quotient - T::one();
    }
    if quotient == zero {
        return (zero.copy_sign(a / b), remainder);
    }
    let down = quotient.rounded_down();
    let half = T::one() / (T::one() + T::one());
    (if quotient - down > half { down + T::one() } else { down }, remainder)
}

/// -1, 0 or 1; zeros and NaN are their own sign.
pub(super) fn sign<T: Float>(a: T) -> T {
    if a == T::zero() || a.partial_cmp(&a).is_none() { a } else { T::one().copy_sign(a) }
}

/// `log2(2**a + 2**b)` without forming the powers, which would overflow.
pub(super) fn logaddexp2<T: Float>(a: T, b: T) -> T {
    let one = T::one();
    // Equal infinities have no difference.
    if a == b {
        return a + one;
    }
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    large + (small - large).exp2().ln_1p() / (one + one).ln()
}
