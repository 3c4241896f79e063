//! Merge operators: the fold of values with equal coordinates, with exactly the semantics of
//! `algebra::eval`.

use super::engine::{MergeEngine, TypedEngine};
use super::packed_key::SortKey;
use crate::runtime::memory::element_bytes;
use num_complex::Complex;
use std::ops::{BitAnd, BitOr, BitXor};
use tamis_ir::algebra::{Op, Ty, eval};
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Value};

/// The operator that merges two values of the same coordinates; the earlier one is the left
/// operand.
///
/// ```
/// use tamis_backend::runtime::workspace::MergeOp;
/// use tamis_ir::{Value, algebra::Op};
/// let (two, three, zero) = (Value::I64(2), Value::I64(3), Value::I64(0));
/// assert_eq!(MergeOp::Op(Op::Add).apply(two, three, zero), Value::I64(5));
/// assert_eq!(MergeOp::KeepLast.apply(two, three, zero), three);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOp {
    /// An operator whose identity is the initial value of entries. For `choose`, that value is the
    /// one that is not chosen.
    Op(Op),
    /// The later value replaces the earlier one.
    KeepLast,
}

impl MergeOp {
    /// Merges two values of a type: the reference semantics of all specialised folds. `init` is the
    /// initial value of entries.
    ///
    /// ```
    /// use tamis_backend::runtime::workspace::MergeOp;
    /// use tamis_ir::{Value, algebra::Op};
    /// let sum = MergeOp::Op(Op::Add).apply(Value::U8(255), Value::U8(2), Value::U8(0));
    /// assert_eq!(sum, Value::U8(1));
    /// ```
    pub fn apply(self, earlier: Value, later: Value, init: Value) -> Value {
        let dtype = earlier.dtype();
        match self {
            MergeOp::KeepLast => later,
            MergeOp::Op(Op::Choose) => eval(Op::Choose, dtype, &[earlier, later, init]),
            MergeOp::Op(op) => eval(op, self.operand_type(dtype).unwrap_or(dtype), &[earlier, later]).cast(dtype),
        }
    }

    /// The operand type of the operator; `None` if it does not take two values of this type.
    pub(super) fn operand_type(self, dtype: DType) -> Option<DType> {
        let MergeOp::Op(op) = self else { return Some(dtype) };
        let (least, most) = op.info().arity;
        let types = [Ty::strong(dtype); 2];
        (least..=most).contains(&2).then(|| op.type_of(&types).ok().map(|types| types.operand)).flatten()
    }
}

/// A fold of two elements in memory.
pub(super) trait Fold<T>: Copy + Send + 'static {
    /// True if it costs less than a mispredicted branch, so that computing it speculatively pays.
    const CHEAP: bool;
    fn fold(&self, a: T, b: T) -> T;
    /// The identity element, exact to the last bit, if there is one.
    fn identity(&self) -> Option<T>;
}

macro_rules! folds {
    ($($name:ident: $($t:ty),* => |$a:ident, $b:ident| $body:expr, $identity:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        $(impl Fold<$t> for $name {
            const CHEAP: bool = true;
            #[inline(always)]
            fn fold(&self, $a: $t, $b: $t) -> $t {
                $body
            }
            #[inline(always)]
            fn identity(&self) -> Option<$t> {
                $identity
            }
        })*
    )*};
}
folds! {
    // The low bits of sums and products do not depend on signedness.
    WrappingAdd: u8, u16, u32, u64 => |a, b| a.wrapping_add(b), Some(0);
    WrappingMul: u8, u16, u32, u64 => |a, b| a.wrapping_mul(b), Some(1);
    // The identity is -0.0, since 0.0 would turn -0.0 into 0.0.
    FloatAdd: f32, f64 => |a, b| a + b, Some(-0.0);
    FloatMul: f32, f64 => |a, b| a * b, Some(1.0);
    ComplexAdd: Complex<f32>, Complex<f64> => |a, b| a + b, Some(Complex::new(-0.0, -0.0));
    // No identity: multiplying an infinite part by one produces NaN in the other part.
    ComplexMul: Complex<f32>, Complex<f64> => |a, b| a * b, None;
    OrdMin: i8, i16, i32, i64, u8, u16, u32, u64 => |a, b| a.min(b), None;
    OrdMax: i8, i16, i32, i64, u8, u16, u32, u64 => |a, b| a.max(b), None;
    // NaN propagates, and -0.0 is less than 0.0.
    FloatMin: f32, f64 => |a, b| if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }, None;
    FloatMax: f32, f64 => |a, b| -FloatMin.fold(-a, -b), None;
    Ands: u8, u16, u32, u64 => |a, b| a.bitand(b), Some(!0);
    Ors: u8, u16, u32, u64 => |a, b| a.bitor(b), Some(0);
    Xors: u8, u16, u32, u64 => |a, b| a.bitxor(b), Some(0);
    Last: u8, u16, u32, u64, [u32; 2], [u64; 2] => |_a, b| b, None;
}

/// The first operand that differs from this value.
#[derive(Clone, Copy)]
struct FirstNot<T>(T);

impl<T: Copy + PartialEq + Send + 'static> Fold<T> for FirstNot<T> {
    const CHEAP: bool = true;
    #[inline(always)]
    fn fold(&self, a: T, b: T) -> T {
        if a == self.0 { b } else { a }
    }
    #[inline(always)]
    fn identity(&self) -> Option<T> {
        // A NaN equals no value, so it is no identity either.
        Some(self.0).filter(|value| *value == self.0)
    }
}

/// A fold that calls the reference semantics.
#[derive(Clone, Copy)]
struct GenericFold {
    merge: MergeOp,
    dtype: DType,
    init: Value,
}

impl<const N: usize> Fold<[u8; N]> for GenericFold {
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
    fn identity(&self) -> Option<[u8; N]> {
        None
    }
}

/// Creates the merge engine for keys of up to `bits` bits. `None` if the type has no such operator,
/// or no key type is wide enough.
pub(super) fn engine(bits: u32, dtype: DType, merge: Option<MergeOp>, init: Value) -> Option<Box<dyn MergeEngine>> {
    // Without an operator entries are unique.
    let merge = merge.unwrap_or(MergeOp::KeepLast);
    merge.operand_type(dtype)?;
    match bits {
        0..=64 => Some(specialised::<u64>(dtype, merge, init).unwrap_or_else(|| generic::<u64>(dtype, merge, init))),
        65..=128 => Some(generic::<u128>(dtype, merge, init)),
        129..=256 => Some(generic::<[u64; 4]>(dtype, merge, init)),
        257..=1024 => Some(generic::<[u64; 16]>(dtype, merge, init)),
        1025..=4096 => Some(generic::<[u64; 64]>(dtype, merge, init)),
        _ => None,
    }
}

/// Engines with specialised loops for common operators.
fn specialised<K: SortKey>(dtype: DType, merge: MergeOp, init: Value) -> Option<Box<dyn MergeEngine>> {
    macro_rules! engine {
        ($t:ty, $fold:expr) => {
            Some(Box::new(TypedEngine::<K, $t, _>::new($fold)) as Box<dyn MergeEngine>)
        };
    }
    macro_rules! by_width {
        ($fold:expr) => {
            match dtype.size() {
                1 => engine!(u8, $fold),
                2 => engine!(u16, $fold),
                4 => engine!(u32, $fold),
                _ => engine!(u64, $fold),
            }
        };
    }
    macro_rules! numbers {
        ($integers:expr, $floats:expr, $complex:expr, $booleans:expr) => {
            match dtype {
                DType::F32 => engine!(f32, $floats),
                DType::F64 => engine!(f64, $floats),
                DType::C64 => engine!(Complex<f32>, $complex),
                DType::C128 => engine!(Complex<f64>, $complex),
                DType::Bool => engine!(u8, $booleans),
                _ => by_width!($integers),
            }
        };
    }
    macro_rules! ordered {
        ($integers:expr, $floats:expr, $booleans:expr) => {
            match dtype {
                DType::Bool => engine!(u8, $booleans),
                DType::I8 => engine!(i8, $integers),
                DType::I16 => engine!(i16, $integers),
                DType::I32 => engine!(i32, $integers),
                DType::I64 => engine!(i64, $integers),
                DType::U8 => engine!(u8, $integers),
                DType::U16 => engine!(u16, $integers),
                DType::U32 => engine!(u32, $integers),
                DType::U64 => engine!(u64, $integers),
                DType::F32 => engine!(f32, $floats),
                DType::F64 => engine!(f64, $floats),
                _ => None,
            }
        };
    }
    let integers = dtype.is_signed_int() || dtype.is_unsigned_int() || dtype == DType::Bool;
    match merge {
        // Complex numbers have the alignment of their parts.
        MergeOp::KeepLast if dtype == DType::C64 => engine!([u32; 2], Last),
        MergeOp::KeepLast if dtype == DType::C128 => engine!([u64; 2], Last),
        MergeOp::KeepLast => by_width!(Last),
        // A boolean sum is a disjunction, a product a conjunction.
        MergeOp::Op(Op::Add) => numbers!(WrappingAdd, FloatAdd, ComplexAdd, Ors),
        MergeOp::Op(Op::Mul) => numbers!(WrappingMul, FloatMul, ComplexMul, Ands),
        MergeOp::Op(Op::Min) => ordered!(OrdMin, FloatMin, Ands),
        MergeOp::Op(Op::Max) => ordered!(OrdMax, FloatMax, Ors),
        MergeOp::Op(Op::And) if dtype == DType::Bool => engine!(u8, Ands),
        MergeOp::Op(Op::Or) if dtype == DType::Bool => engine!(u8, Ors),
        MergeOp::Op(Op::BitAnd) if integers => by_width!(Ands),
        MergeOp::Op(Op::BitOr) if integers => by_width!(Ors),
        MergeOp::Op(Op::BitXor) if integers => by_width!(Xors),
        MergeOp::Op(Op::Choose) => match init {
            Value::Bool(x) => engine!(u8, FirstNot(u8::from(x))),
            Value::I8(x) => engine!(i8, FirstNot(x)),
            Value::I16(x) => engine!(i16, FirstNot(x)),
            Value::I32(x) => engine!(i32, FirstNot(x)),
            Value::I64(x) => engine!(i64, FirstNot(x)),
            Value::U8(x) => engine!(u8, FirstNot(x)),
            Value::U16(x) => engine!(u16, FirstNot(x)),
            Value::U32(x) => engine!(u32, FirstNot(x)),
            Value::U64(x) => engine!(u64, FirstNot(x)),
            Value::F32(x) => engine!(f32, FirstNot(x)),
            Value::F64(x) => engine!(f64, FirstNot(x)),
            Value::C64(x) => engine!(Complex<f32>, FirstNot(x)),
            Value::C128(x) => engine!(Complex<f64>, FirstNot(x)),
        },
        MergeOp::Op(_) => None,
    }
}

fn generic<K: SortKey>(dtype: DType, merge: MergeOp, init: Value) -> Box<dyn MergeEngine> {
    let fold = GenericFold { merge, dtype, init };
    match dtype.size() {
        1 => Box::new(TypedEngine::<K, [u8; 1], _>::new(fold)),
        2 => Box::new(TypedEngine::<K, [u8; 2], _>::new(fold)),
        4 => Box::new(TypedEngine::<K, [u8; 4], _>::new(fold)),
        8 => Box::new(TypedEngine::<K, [u8; 8], _>::new(fold)),
        _ => Box::new(TypedEngine::<K, [u8; 16], _>::new(fold)),
    }
}
