//! How values of equal coordinates become one: the operators, each with exactly the meaning of `algebra::eval`.

use super::engine::{Engine, Machine};
use super::key::Key;
use crate::runtime::memory::element_bytes;
use num_complex::Complex;
use std::ops::{BitAnd, BitOr, BitXor};
use tamis_ir::algebra::{Op, Ty, eval};
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Value};

/// How two values of the same coordinates become one, the earlier one on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// By an operator, of which the value that new entries hold is an identity. For `choose`, that value is the one that
    /// is not chosen.
    Op(Op),
    /// The later one is taken.
    Later,
}

impl Merge {
    /// What two values of a type become: the definition that all fast ways must agree with. `init` is what new entries hold.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::Merge;
    /// use tamis_ir::{Value, algebra::Op};
    /// let sum = Merge::Op(Op::Add).apply(Value::U8(255), Value::U8(2), Value::U8(0));
    /// assert_eq!(sum, Value::U8(1));
    /// ```
    pub fn apply(self, earlier: Value, later: Value, init: Value) -> Value {
        let dtype = earlier.dtype();
        match self {
            Merge::Later => later,
            Merge::Op(Op::Choose) => eval(Op::Choose, dtype, &[earlier, later, init]),
            Merge::Op(op) => eval(op, self.operand(dtype).unwrap_or(dtype), &[earlier, later]).cast(dtype),
        }
    }

    /// The type in which the operator is computed; `None` if it does not take two values of this type.
    pub(super) fn operand(self, dtype: DType) -> Option<DType> {
        let Merge::Op(op) = self else { return Some(dtype) };
        let (least, most) = op.info().arity;
        let types = [Ty::strong(dtype); 2];
        (least..=most).contains(&2).then(|| op.type_of(&types).ok().map(|types| types.operand)).flatten()
    }
}

/// An operator on elements in memory.
pub(super) trait Fold<T>: Copy + Send + 'static {
    /// Whether it costs less than a mispredicted branch, so that it may as well be computed for nothing.
    const CHEAP: bool;
    fn fold(&self, a: T, b: T) -> T;
    /// What any value can be folded into to give itself, to the last bit, if there is such a value.
    fn neutral(&self) -> Option<T>;
}

macro_rules! folds {
    ($($name:ident: $($t:ty),* => |$a:ident, $b:ident| $body:expr, $neutral:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        $(impl Fold<$t> for $name {
            const CHEAP: bool = true;
            #[inline(always)]
            fn fold(&self, $a: $t, $b: $t) -> $t {
                $body
            }
            #[inline(always)]
            fn neutral(&self) -> Option<$t> {
                $neutral
            }
        })*
    )*};
}
folds! {
    // The low bits of a sum or a product do not depend on signs.
    WrappingAdd: u8, u16, u32, u64 => |a, b| a.wrapping_add(b), Some(0);
    WrappingMul: u8, u16, u32, u64 => |a, b| a.wrapping_mul(b), Some(1);
    // 0.0 would make 0.0 of -0.0.
    FloatAdd: f32, f64 => |a, b| a + b, Some(-0.0);
    FloatMul: f32, f64 => |a, b| a * b, Some(1.0);
    ComplexAdd: Complex<f32>, Complex<f64> => |a, b| a + b, Some(Complex::new(-0.0, -0.0));
    // With one as a factor, an infinite part would spoil the other.
    ComplexMul: Complex<f32>, Complex<f64> => |a, b| a * b, None;
    OrdMin: i8, i16, i32, i64, u8, u16, u32, u64 => |a, b| a.min(b), None;
    OrdMax: i8, i16, i32, i64, u8, u16, u32, u64 => |a, b| a.max(b), None;
    // NaN wins, and -0.0 is less than 0.0.
    FloatMin: f32, f64 => |a, b| if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }, None;
    FloatMax: f32, f64 => |a, b| -FloatMin.fold(-a, -b), None;
    Ands: u8, u16, u32, u64 => |a, b| a.bitand(b), Some(!0);
    Ors: u8, u16, u32, u64 => |a, b| a.bitor(b), Some(0);
    Xors: u8, u16, u32, u64 => |a, b| a.bitxor(b), Some(0);
    Last: u8, u16, u32, u64, [u32; 2], [u64; 2] => |_a, b| b, None;
}

/// The first that is not this value.
#[derive(Clone, Copy)]
struct Unless<T>(T);

impl<T: Copy + PartialEq + Send + 'static> Fold<T> for Unless<T> {
    const CHEAP: bool = true;
    #[inline(always)]
    fn fold(&self, a: T, b: T) -> T {
        if a == self.0 { b } else { a }
    }
    #[inline(always)]
    fn neutral(&self) -> Option<T> {
        // What is no value equal to is no value's neutral one either.
        Some(self.0).filter(|value| *value == self.0)
    }
}

/// Any operator, by its definition.
#[derive(Clone, Copy)]
struct Evaluated {
    merge: Merge,
    dtype: DType,
    init: Value,
}

impl<const N: usize> Fold<[u8; N]> for Evaluated {
    const CHEAP: bool = false;
    fn fold(&self, a: [u8; N], b: [u8; N]) -> [u8; N] {
        let value = |element: [u8; N]| {
            let mut bytes = [0; 16];
            bytes[..N].copy_from_slice(&element);
            crate::runtime::arrays::value(Elem::Value(self.dtype), bytes)
        };
        let result = self.merge.apply(value(a), value(b), self.init);
        let (bytes, _) = element_bytes(Elem::Value(self.dtype), result);
        std::array::from_fn(|k| bytes[k])
    }
    fn neutral(&self) -> Option<[u8; N]> {
        None
    }
}

/// What merges entries with keys of up to `bits` bits; `None` if there is no such operator for the type, or there are
/// more bits than any key has.
pub(super) fn engine(bits: u32, dtype: DType, merge: Option<Merge>, init: Value) -> Option<Box<dyn Engine>> {
    // Without an operator no two entries are equal.
    let merge = merge.unwrap_or(Merge::Later);
    merge.operand(dtype)?;
    match bits {
        0..=64 => Some(fast::<u64>(dtype, merge, init).unwrap_or_else(|| slow::<u64>(dtype, merge, init))),
        65..=128 => Some(slow::<u128>(dtype, merge, init)),
        129..=256 => Some(slow::<[u64; 4]>(dtype, merge, init)),
        257..=1024 => Some(slow::<[u64; 16]>(dtype, merge, init)),
        1025..=4096 => Some(slow::<[u64; 64]>(dtype, merge, init)),
        _ => None,
    }
}

/// Loops of their own for common operators.
fn fast<K: Key>(dtype: DType, merge: Merge, init: Value) -> Option<Box<dyn Engine>> {
    macro_rules! machine {
        ($t:ty, $fold:expr) => {
            Some(Box::new(Machine::<K, $t, _>::new($fold)) as Box<dyn Engine>)
        };
    }
    macro_rules! by_width {
        ($fold:expr) => {
            match dtype.size() {
                1 => machine!(u8, $fold),
                2 => machine!(u16, $fold),
                4 => machine!(u32, $fold),
                _ => machine!(u64, $fold),
            }
        };
    }
    macro_rules! numbers {
        ($integers:expr, $floats:expr, $complex:expr, $booleans:expr) => {
            match dtype {
                DType::F32 => machine!(f32, $floats),
                DType::F64 => machine!(f64, $floats),
                DType::C64 => machine!(Complex<f32>, $complex),
                DType::C128 => machine!(Complex<f64>, $complex),
                DType::Bool => machine!(u8, $booleans),
                _ => by_width!($integers),
            }
        };
    }
    macro_rules! ordered {
        ($integers:expr, $floats:expr, $booleans:expr) => {
            match dtype {
                DType::Bool => machine!(u8, $booleans),
                DType::I8 => machine!(i8, $integers),
                DType::I16 => machine!(i16, $integers),
                DType::I32 => machine!(i32, $integers),
                DType::I64 => machine!(i64, $integers),
                DType::U8 => machine!(u8, $integers),
                DType::U16 => machine!(u16, $integers),
                DType::U32 => machine!(u32, $integers),
                DType::U64 => machine!(u64, $integers),
                DType::F32 => machine!(f32, $floats),
                DType::F64 => machine!(f64, $floats),
                _ => None,
            }
        };
    }
    let integers = dtype.is_signed_int() || dtype.is_unsigned_int() || dtype == DType::Bool;
    match merge {
        // Complex numbers are aligned as their parts.
        Merge::Later if dtype == DType::C64 => machine!([u32; 2], Last),
        Merge::Later if dtype == DType::C128 => machine!([u64; 2], Last),
        Merge::Later => by_width!(Last),
        // A sum of booleans is true if one of them is, a product if all are.
        Merge::Op(Op::Add) => numbers!(WrappingAdd, FloatAdd, ComplexAdd, Ors),
        Merge::Op(Op::Mul) => numbers!(WrappingMul, FloatMul, ComplexMul, Ands),
        Merge::Op(Op::Min) => ordered!(OrdMin, FloatMin, Ands),
        Merge::Op(Op::Max) => ordered!(OrdMax, FloatMax, Ors),
        Merge::Op(Op::And) if dtype == DType::Bool => machine!(u8, Ands),
        Merge::Op(Op::Or) if dtype == DType::Bool => machine!(u8, Ors),
        Merge::Op(Op::BitAnd) if integers => by_width!(Ands),
        Merge::Op(Op::BitOr) if integers => by_width!(Ors),
        Merge::Op(Op::BitXor) if integers => by_width!(Xors),
        Merge::Op(Op::Choose) => match init {
            Value::Bool(x) => machine!(u8, Unless(u8::from(x))),
            Value::I8(x) => machine!(i8, Unless(x)),
            Value::I16(x) => machine!(i16, Unless(x)),
            Value::I32(x) => machine!(i32, Unless(x)),
            Value::I64(x) => machine!(i64, Unless(x)),
            Value::U8(x) => machine!(u8, Unless(x)),
            Value::U16(x) => machine!(u16, Unless(x)),
            Value::U32(x) => machine!(u32, Unless(x)),
            Value::U64(x) => machine!(u64, Unless(x)),
            Value::F32(x) => machine!(f32, Unless(x)),
            Value::F64(x) => machine!(f64, Unless(x)),
            Value::C64(x) => machine!(Complex<f32>, Unless(x)),
            Value::C128(x) => machine!(Complex<f64>, Unless(x)),
        },
        Merge::Op(_) => None,
    }
}

fn slow<K: Key>(dtype: DType, merge: Merge, init: Value) -> Box<dyn Engine> {
    let fold = Evaluated { merge, dtype, init };
    match dtype.size() {
        1 => Box::new(Machine::<K, [u8; 1], _>::new(fold)),
        2 => Box::new(Machine::<K, [u8; 2], _>::new(fold)),
        4 => Box::new(Machine::<K, [u8; 4], _>::new(fold)),
        8 => Box::new(Machine::<K, [u8; 8], _>::new(fold)),
        _ => Box::new(Machine::<K, [u8; 16], _>::new(fold)),
    }
}
