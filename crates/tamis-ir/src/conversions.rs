//! Conversions of the standard library: `FromStr` for texts, `TryFrom` for values, iterators of
//! diagnostics.
//!
//! Parsing with `str::parse` is the same as the type's own `parse`, without operators of the user.
//! A [`Value`] converts to a Rust number only if that loses nothing.

use crate::algebra::{DType, UnknownDType, Value};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::format::FormatSpec;
use crate::notation::Notation;
use crate::program::Program;
use num_complex::Complex;
use std::fmt;
use std::str::FromStr;

/// Parses a loop program.
///
/// ```
/// use tamis_ir::Program;
/// let program: Program = "def f(x):\n    y = scalar(0.0)\n    y += x\n    return y\n".parse()?;
/// assert_eq!(program.name, "f");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
impl FromStr for Program {
    type Err = Diagnostics;

    fn from_str(text: &str) -> Result<Program, Diagnostics> {
        Program::parse(text)
    }
}

/// Parses index notation.
impl FromStr for Notation {
    type Err = Diagnostics;

    fn from_str(text: &str) -> Result<Notation, Diagnostics> {
        Notation::parse(text)
    }
}

/// Parses a format whose rank may be open, such as `csf`.
impl FromStr for FormatSpec {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<FormatSpec, Diagnostic> {
        FormatSpec::parse(text)
    }
}

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a value type", self.0)
    }
}

impl std::error::Error for UnknownDType {}

macro_rules! exact {
    ($($variant:ident: $rust:ty),*) => {$(
        /// The number, if the type holds it exactly; otherwise E0302.
        impl TryFrom<Value> for $rust {
            type Error = Diagnostic;

            fn try_from(value: Value) -> Result<$rust, Diagnostic> {
                match value.cast_exact(DType::$variant) {
                    Some(Value::$variant(x)) => Ok(x),
                    _ => Err(inexact(value, DType::$variant)),
                }
            }
        }
    )*};
}
exact!(Bool: bool, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
    F32: f32, F64: f64, C64: Complex<f32>, C128: Complex<f64>);

fn inexact(value: Value, dtype: DType) -> Diagnostic {
    Diagnostic::new(Code::E0302, format!("{dtype} does not hold the {} {value} exactly", value.dtype()))
        .help(format!("convert to {}, or round with `Value::cast`", value.dtype()))
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(all: I) -> Diagnostics {
        Diagnostics(all.into_iter().collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_convert_exactly_or_not_at_all() {
        assert_eq!(f64::try_from(Value::F32(0.5)).unwrap(), 0.5);
        assert_eq!(i64::try_from(Value::F64(3.0)).unwrap(), 3);
        assert_eq!(u8::try_from(Value::I64(255)).unwrap(), 255);
        for refused in [
            u8::try_from(Value::I64(256)).map(drop),
            i64::try_from(Value::F64(0.5)).map(drop),
            f64::try_from(Value::U64(u64::MAX)).map(drop),
        ] {
            let d = refused.unwrap_err();
            assert!(d.code == Code::E0302 && !d.help.is_empty(), "{d}");
        }
    }

    #[test]
    fn texts_parse_with_the_standard_trait() {
        assert!("y[i] = A[i,j] * x[j]".parse::<Notation>().is_ok());
        assert_eq!("csr".parse::<FormatSpec>().unwrap(), FormatSpec::parse("csr").unwrap());
        assert!("cvs".parse::<FormatSpec>().is_err() && "def".parse::<Program>().is_err());
    }

    #[test]
    fn diagnostics_are_collected_and_iterated() {
        let all: Diagnostics = [1, 2].map(|k| Diagnostic::new(Code::E0901, format!("{k}"))).into_iter().collect();
        assert_eq!((&all).into_iter().count(), 2);
        assert_eq!(all.into_iter().map(|d| d.message.clone()).collect::<Vec<_>>(), ["1", "2"]);
    }
}
