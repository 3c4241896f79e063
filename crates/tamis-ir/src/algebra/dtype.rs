//! Value types: names, sizes, and type promotion.

use std::fmt;
use std::str::FromStr;

/// The type of a stored value.
///
/// ```
/// use tamis_ir::DType;
/// assert_eq!("f32".parse::<DType>().unwrap(), DType::F32);
/// assert_eq!(DType::I32.promote(DType::F32), DType::F64);
/// assert_eq!(DType::C64.size(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    C64,
    C128,
}

/// The family a [`DType`] belongs to; promotion never goes to a lower one.
///
/// ```
/// use tamis_ir::{DType, Kind};
/// assert_eq!(DType::U8.kind(), Kind::Int);
/// assert!(Kind::Int < Kind::Float);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Complex,
}

impl DType {
    /// Every value type, in the order of INTERFACE section 1.
    ///
    /// ```
    /// use tamis_ir::{DType, Kind};
    /// let floats = DType::ALL.into_iter().filter(|dtype| dtype.kind() == Kind::Float);
    /// assert!(floats.eq([DType::F32, DType::F64]));
    /// ```
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// The word users type.
    ///
    /// ```
    /// assert_eq!(tamis_ir::DType::C128.name(), "c128");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }

    /// Bytes of one stored value.
    ///
    /// ```
    /// assert_eq!(tamis_ir::DType::F64.size(), 8);
    /// ```
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The family of this type.
    ///
    /// ```
    /// use tamis_ir::{DType, Kind};
    /// assert_eq!(DType::U8.kind(), Kind::Int);
    /// ```
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::F32 | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
            _ => Kind::Int,
        }
    }

    /// True if this is `i8`..`i64`.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert!(DType::I8.is_signed_int() && !DType::F64.is_signed_int());
    /// ```
    pub const fn is_signed_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// True if this is `u8`..`u64`.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert!(DType::U8.is_unsigned_int() && !DType::Bool.is_unsigned_int());
    /// ```
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The type of the real and imaginary parts; itself when not complex.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert_eq!(DType::C64.real(), DType::F32);
    /// ```
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex type whose parts have this type's precision.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert_eq!(DType::F32.complex(), DType::C64);
    /// ```
    pub const fn complex(self) -> DType {
        match self {
            DType::F32 | DType::C64 => DType::C64,
            _ => DType::C128,
        }
    }

    /// The floating-point type that functions such as `sqrt` compute in.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert_eq!((DType::I32.float(), DType::F32.float()), (DType::F64, DType::F32));
    /// ```
    pub const fn float(self) -> DType {
        match self {
            DType::F32 | DType::C64 | DType::C128 => self,
            _ => DType::F64,
        }
    }

    /// The smallest type that holds the values of both, by NumPy's table
    /// (so `i64` and `u64` meet in `f64`).
    ///
    /// ```
    /// use tamis_ir::DType;
    /// assert_eq!(DType::I8.promote(DType::U8), DType::I16);
    /// assert_eq!(DType::I64.promote(DType::U64), DType::F64);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        let (low, high) = if self.kind() <= other.kind() { (self, other) } else { (other, self) };
        match (low.kind(), high.kind()) {
            (Kind::Bool, _) => high,
            (Kind::Int, Kind::Int) => promote_ints(low, high),
            (Kind::Int, Kind::Float) => {
                if low.size() <= 2 {
                    high
                } else {
                    F64
                }
            }
            (Kind::Int, Kind::Complex) => {
                if low.size() <= 2 {
                    high
                } else {
                    C128
                }
            }
            (Kind::Float, Kind::Complex) => {
                if low == F64 {
                    C128
                } else {
                    high
                }
            }
            _ => {
                if low.size() >= high.size() {
                    low
                } else {
                    high
                }
            }
        }
    }
}

fn promote_ints(a: DType, b: DType) -> DType {
    use DType::*;
    if a.is_signed_int() == b.is_signed_int() {
        return if a.size() >= b.size() { a } else { b };
    }
    let (signed, unsigned) = if a.is_signed_int() { (a, b) } else { (b, a) };
    if signed.size() > unsigned.size() {
        return signed;
    }
    match unsigned.size() {
        1 => I16,
        2 => I32,
        4 => I64,
        _ => F64,
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word was not the name of a value type.
///
/// ```
/// use tamis_ir::DType;
/// let unknown = "float16".parse::<DType>().unwrap_err();
/// assert_eq!(unknown.to_string(), "`float16` is not a value type");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads a name of section 1, or NumPy's name for the same type.
    fn from_str(text: &str) -> Result<DType, UnknownDType> {
        Ok(match text {
            "int8" => DType::I8,
            "int16" => DType::I16,
            "int32" => DType::I32,
            "int64" | "int" => DType::I64,
            "uint8" => DType::U8,
            "uint16" => DType::U16,
            "uint32" => DType::U32,
            "uint64" => DType::U64,
            "float32" => DType::F32,
            "float64" | "float" => DType::F64,
            "complex64" => DType::C64,
            "complex128" | "complex" => DType::C128,
            other => match DType::ALL.iter().find(|t| t.name() == other) {
                Some(t) => *t,
                None => return Err(UnknownDType(text.to_string())),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_a_join() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                let ab = a.promote(b);
                assert_eq!(ab, b.promote(a), "{a} {b}");
                assert_eq!(ab.promote(a), ab, "{a} {b}");
                assert_eq!(ab.promote(b), ab, "{a} {b}");
            }
        }
    }

    #[test]
    fn promotion_is_numpys() {
        let table = [
            ("i8", "u8", "i16"),
            ("i16", "u8", "i16"),
            ("i32", "u32", "i64"),
            ("i64", "u64", "f64"),
            ("u8", "f32", "f32"),
            ("i32", "f32", "f64"),
            ("f64", "c64", "c128"),
            ("f32", "c64", "c64"),
            ("i64", "c64", "c128"),
            ("bool", "u8", "u8"),
        ];
        for (a, b, expected) in table {
            let (a, b): (DType, DType) = (a.parse().unwrap(), b.parse().unwrap());
            assert_eq!(a.promote(b).name(), expected, "{a} {b}");
        }
    }
}
