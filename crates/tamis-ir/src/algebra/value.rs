//! Scalar values of any type, and conversions between types.

use super::dtype::{DType, Kind};
use num_complex::Complex;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A scalar with its type.
///
/// Equality and hashing are by type and bits (so expressions can be interned): `NaN == NaN`, and
/// `0.0 != -0.0`. A program's `==` is the operator `eq`; see [`Value::same_number`].
///
/// ```
/// use tamis_ir::{DType, Value};
/// assert_eq!(Value::from(2.5), Value::F64(2.5));
/// assert_eq!(Value::from(2.5).dtype(), DType::F64);
/// assert_eq!(f64::try_from(Value::I32(3)), Ok(3.0));
/// assert!(i64::try_from(Value::F64(2.5)).is_err(), "no digit is lost silently");
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
}

/// Runs `$body` with `$x` bound to the payload of a real [`Value`]; `$complex` for the complex
/// ones.
macro_rules! for_real {
    ($value:expr, $x:ident => $body:expr, complex $c:ident => $complex:expr) => {
        match $value {
            Value::Bool(b) => {
                let $x = b as u8;
                $body
            }
            Value::I8($x) => $body,
            Value::I16($x) => $body,
            Value::I32($x) => $body,
            Value::I64($x) => $body,
            Value::U8($x) => $body,
            Value::U16($x) => $body,
            Value::U32($x) => $body,
            Value::U64($x) => $body,
            Value::F32($x) => $body,
            Value::F64($x) => $body,
            Value::C64(c) => {
                let $c = Complex::new(c.re as f64, c.im as f64);
                $complex
            }
            Value::C128($c) => $complex,
        }
    };
}

impl Value {
    /// The type of this scalar.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// assert_eq!(Value::from(2.5f32).dtype(), DType::F32);
    /// ```
    pub const fn dtype(&self) -> DType {
        match self {
            Value::Bool(_) => DType::Bool,
            Value::I8(_) => DType::I8,
            Value::I16(_) => DType::I16,
            Value::I32(_) => DType::I32,
            Value::I64(_) => DType::I64,
            Value::U8(_) => DType::U8,
            Value::U16(_) => DType::U16,
            Value::U32(_) => DType::U32,
            Value::U64(_) => DType::U64,
            Value::F32(_) => DType::F32,
            Value::F64(_) => DType::F64,
            Value::C64(_) => DType::C64,
            Value::C128(_) => DType::C128,
        }
    }

    /// The zero (or `false`) of a type.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// assert_eq!(Value::zero(DType::Bool), Value::Bool(false));
    /// ```
    pub fn zero(dtype: DType) -> Value {
        Value::I64(0).cast(dtype)
    }

    /// The one (or `true`) of a type.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// assert_eq!(Value::one(DType::F32), Value::F32(1.0));
    /// ```
    pub fn one(dtype: DType) -> Value {
        Value::I64(1).cast(dtype)
    }

    /// Converts to `dtype`, always with a defined result: integers wrap, floats saturate (NaN
    /// becomes 0), complex numbers lose their imaginary part, and anything but zero is `true`.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// assert_eq!(Value::I64(300).cast(DType::U8), Value::U8(44));
    /// assert_eq!(Value::F64(1e9).cast(DType::I8), Value::I8(127));
    /// ```
    pub fn cast(self, dtype: DType) -> Value {
        if self.dtype() == dtype {
            return self;
        }
        if dtype == DType::Bool {
            return Value::Bool(self.is_truthy());
        }
        for_real!(self, x => match dtype {
            DType::Bool => Value::Bool(self.is_truthy()),
            DType::I8 => Value::I8(x as i8),
            DType::I16 => Value::I16(x as i16),
            DType::I32 => Value::I32(x as i32),
            DType::I64 => Value::I64(x as i64),
            DType::U8 => Value::U8(x as u8),
            DType::U16 => Value::U16(x as u16),
            DType::U32 => Value::U32(x as u32),
            DType::U64 => Value::U64(x as u64),
            DType::F32 => Value::F32(x as f32),
            DType::F64 => Value::F64(x as f64),
            DType::C64 => Value::C64(Complex::new(x as f32, 0.0)),
            DType::C128 => Value::C128(Complex::new(x as f64, 0.0)),
        }, complex c => match dtype {
            DType::C64 => Value::C64(Complex::new(c.re as f32, c.im as f32)),
            DType::C128 => Value::C128(c),
            _ => Value::F64(c.re).cast(dtype),
        })
    }

    /// [`Value::cast`] when nothing is lost, otherwise `None`: the number read back is the same.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// assert_eq!(Value::I64(300).cast_exact(DType::U8), None);
    /// assert_eq!(Value::I64(3).cast_exact(DType::F32), Some(Value::F32(3.0)));
    /// ```
    pub fn cast_exact(self, dtype: DType) -> Option<Value> {
        let there = self.cast(dtype);
        let back = there.cast(self.dtype());
        let in_range = match (self.dtype().kind(), dtype.kind()) {
            // A wrap can survive the round trip (-1i8 -> 255u8 -> -1i8): the sign must agree, too.
            (Kind::Int, Kind::Int) => self.is_negative() == there.is_negative(),
            // `u64::MAX as f64` saturates on its way back.
            (Kind::Int, Kind::Float | Kind::Complex) => match (self, there.cast(DType::F64)) {
                (Value::U64(x), Value::F64(f)) => f < u64::MAX as f64 && f as u64 == x,
                (Value::I64(x), Value::F64(f)) => f < i64::MAX as f64 && f as i64 == x,
                _ => true,
            },
            (Kind::Float, Kind::Int) => match self.cast(DType::F64) {
                Value::F64(f) => f.is_finite() && f.abs() < u64::MAX as f64,
                _ => true,
            },
            _ => true,
        };
        (in_range && back.same_number(self)).then_some(there)
    }

    /// True if this number is below zero (false for complex numbers).
    ///
    /// ```
    /// use tamis_ir::Value;
    /// assert!(Value::I8(-1).is_negative() && !Value::U8(255).is_negative());
    /// ```
    pub fn is_negative(self) -> bool {
        match self {
            Value::I8(x) => x < 0,
            Value::I16(x) => x < 0,
            Value::I32(x) => x < 0,
            Value::I64(x) => x < 0,
            Value::F32(x) => x < 0.0,
            Value::F64(x) => x < 0.0,
            _ => false,
        }
    }

    /// Python's truth: everything but zero, NaN included.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// assert!(Value::F64(f64::NAN).is_truthy() && !Value::F64(-0.0).is_truthy());
    /// ```
    pub fn is_truthy(self) -> bool {
        match self {
            Value::F32(x) => x != 0.0,
            Value::F64(x) => x != 0.0,
            other => for_real!(other, x => x as f64 != 0.0, complex c => c.re != 0.0 || c.im != 0.0),
        }
    }

    /// True if any part is NaN.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// assert!(Value::F32(f32::NAN).is_nan() && !Value::I32(0).is_nan());
    /// ```
    pub fn is_nan(self) -> bool {
        match self {
            Value::F32(x) => x.is_nan(),
            Value::F64(x) => x.is_nan(),
            Value::C64(c) => c.re.is_nan() || c.im.is_nan(),
            Value::C128(c) => c.re.is_nan() || c.im.is_nan(),
            _ => false,
        }
    }

    /// True if both are the same number of the same type: zeros of either sign are one number, and
    /// so are all NaNs. This is the meaning of "equals the fill" throughout Tamis.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// let (zero, minus_zero) = (Value::F64(0.0), Value::F64(-0.0));
    /// assert!(zero.same_number(minus_zero) && zero != minus_zero);
    /// ```
    pub fn same_number(self, other: Value) -> bool {
        if self.dtype() != other.dtype() {
            return false;
        }
        match (self, other) {
            (Value::F32(a), Value::F32(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Value::F64(a), Value::F64(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Value::C64(a), Value::C64(b)) => a == b || (self.is_nan() && other.is_nan()),
            (Value::C128(a), Value::C128(b)) => a == b || (self.is_nan() && other.is_nan()),
            _ => self == other,
        }
    }

    /// The integer this is, if it is an integer (or bool) that fits.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// assert_eq!((Value::U8(7).as_i64(), Value::F64(7.0).as_i64()), (Some(7), None));
    /// ```
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::U64(x) => i64::try_from(x).ok(),
            v if matches!(v.dtype().kind(), Kind::Int | Kind::Bool) => match v.cast(DType::I64) {
                Value::I64(x) => Some(x),
                _ => None,
            },
            _ => None,
        }
    }

    /// This number as complex double precision, for comparing across types.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// assert_eq!(Value::I32(3).as_c128().re, 3.0);
    /// ```
    pub fn as_c128(self) -> Complex<f64> {
        for_real!(self, x => Complex::new(x as f64, 0.0), complex c => c)
    }

    fn bits(self) -> u128 {
        match self {
            Value::Bool(x) => x as u128,
            Value::I8(x) => x as u8 as u128,
            Value::I16(x) => x as u16 as u128,
            Value::I32(x) => x as u32 as u128,
            Value::I64(x) => x as u64 as u128,
            Value::U8(x) => x as u128,
            Value::U16(x) => x as u128,
            Value::U32(x) => x as u128,
            Value::U64(x) => x as u128,
            Value::F32(x) => x.to_bits() as u128,
            Value::F64(x) => x.to_bits() as u128,
            Value::C64(c) => (c.re.to_bits() as u128) << 64 | c.im.to_bits() as u128,
            Value::C128(c) => (c.re.to_bits() as u128) << 64 | c.im.to_bits() as u128,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.dtype() == other.dtype() && self.bits() == other.bits()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dtype().hash(state);
        self.bits().hash(state);
    }
}

/// Writes a number so that the parser reads it back: `3`, `3.0`, `inf`, `-2.5`, `1.0+2.0j`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn float(f: &mut fmt::Formatter<'_>, x: f64, shortest: String) -> fmt::Result {
            if x.is_nan() {
                f.write_str("nan")
            } else if x.is_infinite() {
                f.write_str(if x > 0.0 { "inf" } else { "-inf" })
            } else {
                f.write_str(&shortest)
            }
        }
        match self {
            Value::Bool(x) => f.write_str(if *x { "True" } else { "False" }),
            Value::F32(x) => float(f, *x as f64, format!("{x:?}")),
            Value::F64(x) => float(f, *x, format!("{x:?}")),
            Value::C64(c) => complex(f, Value::F32(c.re), Value::F32(c.im)),
            Value::C128(c) => complex(f, Value::F64(c.re), Value::F64(c.im)),
            other => match other.cast_exact(DType::I64) {
                Some(Value::I64(x)) => write!(f, "{x}"),
                _ => match other.cast(DType::U64) {
                    Value::U64(x) => write!(f, "{x}"),
                    _ => Ok(()),
                },
            },
        }
    }
}

fn complex(f: &mut fmt::Formatter<'_>, re: Value, im: Value) -> fmt::Result {
    let im = im.to_string();
    let sign = if im.starts_with('-') { "" } else { "+" };
    write!(f, "{re}{sign}{im}j")
}

macro_rules! from_rust {
    ($($variant:ident: $rust:ty),*) => {$(
        impl From<$rust> for Value {
            fn from(x: $rust) -> Value {
                Value::$variant(x)
            }
        }
    )*};
}
from_rust!(Bool: bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
    F32: f32, F64: f64, C64: Complex<f32>, C128: Complex<f64>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_casts() {
        let u8_ = DType::U8;
        assert_eq!(Value::I64(255).cast_exact(u8_), Some(Value::U8(255)));
        assert_eq!(Value::I64(256).cast_exact(u8_), None);
        assert_eq!(Value::I64(-1).cast_exact(u8_), None);
        assert_eq!(Value::I8(-1).cast_exact(u8_), None);
        assert_eq!(Value::F64(0.5).cast_exact(DType::I32), None);
        assert_eq!(Value::F64(f64::INFINITY).cast_exact(DType::I64), None);
        assert_eq!(Value::U64(u64::MAX).cast_exact(DType::F64), None);
        assert_eq!(Value::I64(i64::MAX).cast_exact(DType::F64), None);
        assert_eq!(Value::U64(u64::MAX).cast_exact(DType::I64), None);
        assert_eq!(Value::F64(0.1).cast_exact(DType::F32), None);
        assert_eq!(Value::F64(f64::NAN).cast_exact(DType::F32).map(|v| v.is_nan()), Some(true));
    }

    #[test]
    fn prints() {
        let table = [
            (Value::Bool(true), "True"),
            (Value::U64(u64::MAX), "18446744073709551615"),
            (Value::F64(3.0), "3.0"),
            (Value::F32(0.1), "0.1"),
            (Value::F64(1e300), "1e300"),
            (Value::F64(f64::NEG_INFINITY), "-inf"),
            (Value::C128(Complex::new(1.0, -2.5)), "1.0-2.5j"),
            (Value::I8(-7), "-7"),
        ];
        for (value, text) in table {
            assert_eq!(value.to_string(), text);
        }
    }
}
