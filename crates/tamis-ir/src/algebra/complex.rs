//! Complex functions that do not overflow in intermediate results.
//!
//! Division is Smith's, as in NumPy. Functions of real or imaginary numbers are computed as real
//! functions. Inverse sines and cosines are Kahan's: no digits cancel far from 0, and their branch
//! cuts are those of C and NumPy.

use super::scalar::Float;
use num_complex::{Complex, ComplexFloat};

/// `a / b`, without forming the square of `b`'s absolute value.
pub(super) fn divide<T: Float>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    let zero = T::zero();
    if magnitude(b.re) >= magnitude(b.im) {
        if b.re == zero && b.im == zero {
            return Complex::new(a.re / magnitude(b.re), a.im / magnitude(b.re));
        }
        let ratio = b.im / b.re;
        let scale = T::one() / (b.re + b.im * ratio);
        Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    } else {
        let ratio = b.re / b.im;
        let scale = T::one() / (b.im + b.re * ratio);
        Complex::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    }
}

/// `a ** b`; small integer powers by multiplication, which is exact where multiplication is.
pub(super) fn power<T: Float>(a: Complex<T>, b: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let (zero, one) = (T::zero(), T::one());
    if b.im == zero
        && let Some(n) = small_integer(b.re)
    {
        let mut result = Complex::new(one, zero);
        let (mut square, mut k) = (a, n.unsigned_abs());
        // x ** 1 is x, not x times one: an infinite part would make that NaN.
        let mut started = false;
        while k > 0 {
            if k & 1 == 1 {
                result = if started { product(result, square) } else { square };
                started = true;
            }
            square = product(square, square);
            k >>= 1;
        }
        return if n < 0 { divide(Complex::new(one, zero), result) } else { result };
    }
    ComplexFloat::powc(a, b)
}

fn small_integer<T: Float>(x: T) -> Option<i32> {
    (-100..=100).find(|n| x == T::from_i32(*n))
}

fn product<T: Float>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

fn magnitude<T: Float>(x: T) -> T {
    if x.negative() { -x } else { x }
}

/// `x * y`, where a zero `x` wins over an infinite `y`.
fn zero_wins<T: Float>(x: T, y: T) -> T {
    if x == T::zero() { x } else { x * y }
}

pub(super) fn exp<T: Float>(a: Complex<T>) -> Complex<T> {
    let size = a.re.exp();
    if a.im == T::zero() { Complex::new(size, a.im) } else { Complex::new(size * a.im.cos(), size * a.im.sin()) }
}

pub(super) fn sinh<T: Float>(a: Complex<T>) -> Complex<T> {
    Complex::new(zero_wins(a.im.cos(), a.re.sinh()), zero_wins(a.im.sin(), a.re.cosh()))
}

pub(super) fn cosh<T: Float>(a: Complex<T>) -> Complex<T> {
    Complex::new(zero_wins(a.im.cos(), a.re.cosh()), zero_wins(a.im.sin(), a.re.sinh()))
}

pub(super) fn tanh<T: Float>(a: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let size = magnitude(a.re);
    if size > T::from_i32(22) {
        // The imaginary part decays twice as fast as the hyperbolic functions grow.
        let decay = (-(size + size)).exp();
        let im = T::from_i32(4) * a.im.sin() * a.im.cos() * decay;
        return Complex::new(T::one().copy_sign(a.re), im);
    }
    ComplexFloat::tanh(a)
}

/// `f(i z) / i` or `f(i z)` for the circular functions.
fn rotated<T: Float>(a: Complex<T>) -> Complex<T> {
    Complex::new(-a.im, a.re)
}

pub(super) fn sin<T: Float>(a: Complex<T>) -> Complex<T> {
    let h = sinh(rotated(a));
    Complex::new(h.im, -h.re)
}

pub(super) fn cos<T: Float>(a: Complex<T>) -> Complex<T> {
    cosh(rotated(a))
}

pub(super) fn tan<T: Float>(a: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let h = tanh(rotated(a));
    Complex::new(h.im, -h.re)
}

/// `z / |z|`; the direction of an infinite part.
pub(super) fn sign<T: Float>(a: Complex<T>) -> Complex<T> {
    let (zero, one) = (T::zero(), T::one());
    if a.re == zero && a.im == zero {
        return a;
    }
    match (a.re.is_infinite(), a.im.is_infinite()) {
        (true, false) => Complex::new(one.copy_sign(a.re), zero),
        (false, true) => Complex::new(zero, one.copy_sign(a.im)),
        _ => {
            let norm = a.re.hypotenuse(a.im);
            Complex::new(a.re / norm, a.im / norm)
        }
    }
}

/// The square roots of `1 - z` and `1 + z`.
fn roots<T: Float>(z: Complex<T>) -> (Complex<T>, Complex<T>)
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let one = T::one();
    (ComplexFloat::sqrt(Complex::new(one - z.re, -z.im)), ComplexFloat::sqrt(Complex::new(one + z.re, z.im)))
}

pub(super) fn asin<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let (minus, plus) = roots(z);
    let across = minus.re * plus.re - minus.im * plus.im;
    Complex::new(z.re.angle(across), (minus.re * plus.im - minus.im * plus.re).area_sinh())
}

pub(super) fn acos<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let (minus, plus) = roots(z);
    let half = minus.re.angle(plus.re);
    Complex::new(half + half, (plus.re * minus.im - plus.im * minus.re).area_sinh())
}

/// The inverse sine, rotated by 90 degrees.
pub(super) fn asinh<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let rotated = asin(Complex::new(-z.im, z.re));
    Complex::new(rotated.im, -rotated.re)
}

/// Kahan's: the roots of `z - 1` and `z + 1` are separate, so that the cut along the real axis
/// keeps the sign of zero.
pub(super) fn acosh<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let one = T::one();
    let minus = ComplexFloat::sqrt(Complex::new(z.re - one, z.im));
    let plus = ComplexFloat::sqrt(Complex::new(z.re + one, z.im));
    let half = minus.im.angle(plus.re);
    Complex::new((minus.re * plus.re + minus.im * plus.im).area_sinh(), half + half)
}

/// `log|z|` and the angle: near the unit circle by `log1p`, in which no digits cancel, and halved
/// where `|z|` would overflow.
pub(super) fn log<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let (x, y) = (magnitude(z.re), magnitude(z.im));
    let (large, small) = if x < y { (y, x) } else { (x, y) };
    let (one, two) = (T::one(), T::one() + T::one());
    let norm = x.hypotenuse(y);
    let size = if norm + norm > one && norm < two {
        ((large - one) * (large + one) + small * small).ln_1p() / two
    } else if norm.is_infinite() && !large.is_infinite() {
        (x / two).hypotenuse(y / two).ln() + two.ln()
    } else {
        norm.ln()
    };
    Complex::new(size, z.im.angle(z.re))
}

/// `log((1 + z) / (1 - z)) / 2`, in parts that neither cancel near 0 and 1 nor overflow far out.
/// The cuts are the real axis beyond 1 and -1, where the sign of a zero imaginary part decides, as
/// in C and NumPy.
pub(super) fn atanh<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let (zero, one) = (T::zero(), T::one());
    let two = one + one;
    let four = two + two;
    let quarter_turn = one.angle(zero);
    let nan = |x: T| x.partial_cmp(&x).is_none();
    if z.im.is_infinite() {
        return Complex::new(zero.copy_sign(z.re), quarter_turn.copy_sign(z.im));
    }
    if z.re.is_infinite() || nan(z.im) && z.re == zero {
        let im = if nan(z.im) { z.im } else { quarter_turn.copy_sign(z.im) };
        return Complex::new(zero.copy_sign(z.re), im);
    }
    if nan(z.re) || nan(z.im) {
        return Complex::new(z.re + z.im, z.re + z.im);
    }
    let (x, y) = (magnitude(z.re), magnitude(z.im));
    let far = T::from_i32(1 << 30);
    let re = if x == zero {
        z.re
    } else if x > far || y > far {
        // x / |z|^2, without the square.
        let norm = x.hypotenuse(y);
        z.re / norm / norm
    } else {
        let ratio = four * x / ((one - x) * (one - x) + y * y);
        match ratio.is_infinite() {
            // The square of the distance from 1 underflows, but the distance does not.
            true => ((two.ln() - y.ln()) / two).copy_sign(z.re),
            false => (ratio.ln_1p() / four).copy_sign(z.re),
        }
    };
    let across = if x > far || y > far { -one } else { (one - x) * (one + x) - y * y };
    let im = if x > far || y > far { quarter_turn.copy_sign(z.im) } else { (two * z.im).angle(across) / two };
    Complex::new(re, im)
}

/// The inverse hyperbolic tangent, rotated by 90 degrees.
pub(super) fn atan<T: Float>(z: Complex<T>) -> Complex<T>
where
    Complex<T>: ComplexFloat<Real = T>,
{
    let rotated = atanh(Complex::new(-z.im, z.re));
    Complex::new(rotated.im, -rotated.re)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(re: f64, im: f64) -> Complex<f64> {
        Complex::new(re, im)
    }

    /// Beside the same functions of C.
    #[test]
    fn inverses_far_from_zero_and_on_their_cuts() {
        use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, FRAC_PI_4, PI};
        let table = [
            (c(2.0, 0.0), c(FRAC_PI_2, 1.3169578969248166), c(0.0, -1.3169578969248166)),
            (c(2.0, -0.0), c(FRAC_PI_2, -1.3169578969248166), c(0.0, 1.3169578969248166)),
            (c(-2.0, 0.0), c(-FRAC_PI_2, 1.3169578969248166), c(PI, -1.3169578969248166)),
            (c(-2731.0, 1.0), c(-1.5704301605472415, 8.605570335553086), c(3.1412264873421383, -8.605570335553086)),
            (c(1.0, 2731.0), c(0.0003661661985604538, 8.605570402591917), c(1.5704301605963362, -8.605570402591917)),
            (c(0.3, -0.4), c(0.28062956229180586, -0.4051123371780309), c(1.2901667645030908, 0.4051123371780309)),
        ];
        let close = |a: Complex<f64>, b: Complex<f64>| (a - b).norm() <= 1e-12 * (1.0 + b.norm());
        for (z, sine, cosine) in table {
            assert!(close(asin(z), sine), "{z}: {}", asin(z));
            assert!(close(acos(z), cosine), "{z}: {}", acos(z));
            assert!(close(super::sinh(asinh(z)), z), "{z}: {}", asinh(z));
        }
        let table = [
            (c(0.0, 2.0), c(FRAC_PI_2, 0.5493061443340548)),
            (c(-0.0, 2.0), c(-FRAC_PI_2, 0.5493061443340548)),
            (c(0.0, -2.0), c(FRAC_PI_2, -0.5493061443340548)),
            (c(-0.0, -2.0), c(-FRAC_PI_2, -0.5493061443340548)),
            (c(0.5, 0.25), c(0.4842544903299662, 0.20058661813123432)),
            (c(1e-20, 1e-20), c(1e-20, 1e-20)),
            (c(1e300, 1e300), c(FRAC_PI_2, 5e-301)),
            (c(f64::INFINITY, 1.0), c(FRAC_PI_2, 0.0)),
        ];
        for (z, tangent) in table {
            let got = atan(z);
            assert!(close(got, tangent) && got.re.is_sign_negative() == tangent.re.is_sign_negative(), "{z}: {got}");
            let got = atanh(c(-z.im, z.re));
            assert!(close(got, c(-tangent.im, tangent.re)), "{z}: {got}");
        }
        let table = [
            (c(-2.0, 0.0), c(1.3169578969248166, PI)),
            (c(-2.0, -0.0), c(1.3169578969248166, -PI)),
            (c(0.5, 0.0), c(0.0, FRAC_PI_3)),
            (c(0.5, -0.0), c(0.0, -FRAC_PI_3)),
        ];
        for (z, expected) in table {
            assert!(close(acosh(z), expected), "{z}: {}", acosh(z));
        }
        let logs = [
            (c(-2.0, -0.0), c(2f64.ln(), -PI)),
            (c(-2.0, 0.0), c(2f64.ln(), PI)),
            (c(1.0, 1e-10), c(5e-21, 1e-10)),
            (c(1.5e308, 1.5e308), c(1.5e308f64.ln() + 2f64.ln() / 2.0, FRAC_PI_4)),
        ];
        for (z, expected) in logs {
            assert!((log(z).re - expected.re).abs() <= 1e-12 * expected.re.abs(), "{z}: {}", log(z));
            assert!(close(log(z), expected), "{z}: {}", log(z));
        }
        let far = asin(c(-660408779.0, -660408779.0));
        assert!(close(far, c(-FRAC_PI_4, -21.348090334220316)), "{far}");
        assert!(asinh(c(-1e9, 1.0)).re < -21.0);
    }

    #[test]
    fn nothing_overflows_on_the_way() {
        assert_eq!(divide(c(1e200, 0.0), c(1e200, 0.0)), c(1.0, 0.0));
        assert_eq!(divide(c(1e-200, 1e-200), c(1e-200, 1e-200)), c(1.0, 0.0));
        assert_eq!(divide(c(1.0, 2.0), c(0.0, 1.0)), c(2.0, -1.0));
        assert_eq!(power(c(3.0, 4.0), c(2.0, 0.0)), c(-7.0, 24.0));
        assert_eq!(power(c(-7.5, 8.5), c(1.0, 0.0)), c(-7.5, 8.5));
        assert_eq!(power(c(0.0, 2.0), c(-1.0, 0.0)), c(0.0, -0.5));
        assert_eq!(power(c(5.0, 6.0), c(0.0, 0.0)), c(1.0, 0.0));
        assert_eq!(exp(c(1e10, 0.0)), c(f64::INFINITY, 0.0));
        assert_eq!(tanh(c(400.0, 1.0)).re, 1.0);
        assert_eq!(tanh(c(400.0, 1.0)).im, 0.0);
        assert_eq!(sign(c(0.0, f64::INFINITY)), c(0.0, 1.0));
        for z in [c(0.3, -0.7), c(-2.0, 1.5), c(4.0, 0.0), c(0.0, 3.0)] {
            let close = |a: Complex<f64>, b: Complex<f64>| (a - b).norm() <= 1e-12 * (1.0 + b.norm());
            assert!(close(sin(z), num_complex::ComplexFloat::sin(z)), "{z}");
            assert!(close(cos(z), num_complex::ComplexFloat::cos(z)), "{z}");
            assert!(close(tan(z), num_complex::ComplexFloat::tan(z)), "{z}");
            assert!(close(sinh(z), num_complex::ComplexFloat::sinh(z)), "{z}");
            assert!(close(cosh(z), num_complex::ComplexFloat::cosh(z)), "{z}");
            assert!(close(exp(z), num_complex::ComplexFloat::exp(z)), "{z}");
        }
    }
}
