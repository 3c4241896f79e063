//! Types of expressions: NumPy's promotion, with weak literals that adapt to the other operand.

use super::{DType, Kind, Op, Typing};

/// The type of an expression.
///
/// ```
/// use tamis_ir::algebra::{DType, Ty};
/// let literal = Ty { dtype: DType::I64, weak: true, nullable: false };
/// assert_eq!(literal, Ty::weak(DType::I64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The type of its value.
    pub dtype: DType,
    /// A literal (or an expression of literals): takes the type of the other operand, within its
    /// kind.
    pub weak: bool,
    /// The value may be missing (a permissive access out of bounds).
    pub nullable: bool,
}

impl Ty {
    /// The type of stored values.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Ty};
    /// assert!(!Ty::strong(DType::F32).weak);
    /// ```
    pub const fn strong(dtype: DType) -> Ty {
        Ty { dtype, weak: false, nullable: false }
    }

    /// The type of a literal.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Ty};
    /// assert_eq!(Ty::weak(DType::F64).join(Ty::strong(DType::F32)), Ty::strong(DType::F32));
    /// ```
    pub const fn weak(dtype: DType) -> Ty {
        Ty { dtype, weak: true, nullable: false }
    }

    /// The type both operands are converted to.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Ty};
    /// let two = Ty::weak(DType::I64);
    /// assert_eq!(two.join(Ty::strong(DType::F32)).dtype, DType::F32);
    /// assert_eq!(two.join(Ty::strong(DType::Bool)).dtype, DType::I64);
    /// ```
    pub fn join(self, other: Ty) -> Ty {
        let nullable = self.nullable || other.nullable;
        let (dtype, weak) = match (self.weak, other.weak) {
            // Literals beyond i64 are u64, and so are expressions of them.
            (true, true) if self.dtype.kind() == Kind::Int && other.dtype.kind() == Kind::Int => {
                (if self.dtype == other.dtype { self.dtype } else { DType::U64 }, true)
            }
            (true, true) | (false, false) => (self.dtype.promote(other.dtype), self.weak),
            (true, false) => (adapt(self.dtype, other.dtype), false),
            (false, true) => (adapt(other.dtype, self.dtype), false),
        };
        Ty { dtype, weak, nullable }
    }
}

/// The type that a literal of type `literal` takes beside an operand of type `other`.
fn adapt(literal: DType, other: DType) -> DType {
    if other.kind() >= literal.kind() {
        return other;
    }
    match literal.kind() {
        Kind::Complex if other.kind() == Kind::Float => other.complex(),
        _ => literal,
    }
}

/// The types that an operator computes in and returns, for operands of given types.
///
/// ```
/// use tamis_ir::algebra::{DType, Op, Ty};
/// let op_type = Op::Lt.type_of(&[Ty::strong(DType::F32), Ty::strong(DType::F64)])?;
/// assert_eq!((op_type.operand, op_type.result.dtype), (DType::F64, DType::Bool));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpType {
    /// Operands are converted to this type first. Exceptions: the condition of `select` is
    /// converted to `bool`, and compared integers are not converted.
    pub operand: DType,
    /// The type of the result.
    pub result: Ty,
}

/// The reason why an operator does not accept its operands: a sentence about `op`.
///
/// ```
/// use tamis_ir::algebra::{DType, Op, Ty};
/// let error = Op::Lt.type_of(&[Ty::strong(DType::C64); 2]).unwrap_err();
/// assert_eq!(error, "needs an order, and c64 is complex");
/// ```
pub type TypeError = String;

impl Op {
    /// The type rule of this operator.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Op, Ty};
    /// let (int, float) = (Ty::strong(DType::I32), Ty::strong(DType::F32));
    /// assert_eq!(Op::Add.type_of(&[int, float]).unwrap().result.dtype, DType::F64);
    /// assert_eq!(Op::Div.type_of(&[int, int]).unwrap().result.dtype, DType::F64);
    /// assert!(Op::BitAnd.type_of(&[int, float]).is_err());
    /// ```
    pub fn type_of(self, operands: &[Ty]) -> Result<OpType, TypeError> {
        let info = self.info();
        let values = if info.typing == Typing::Select { &operands[1.min(operands.len())..] } else { operands };
        let Some(common) = values.iter().copied().reduce(Ty::join) else {
            return Err("has no operands".to_string());
        };
        let nullable = match info.typing {
            Typing::Coalesce => operands.iter().all(|t| t.nullable),
            _ => operands.iter().any(|t| t.nullable),
        };
        let same = |dtype: DType| OpType { operand: dtype, result: Ty { dtype, weak: common.weak, nullable } };
        let to = |operand: DType, result: DType, weak: bool| OpType {
            operand,
            result: Ty { dtype: result, weak, nullable },
        };
        let number = if common.dtype == DType::Bool { DType::I64 } else { common.dtype };
        let no_complex = |what: &str| Err(format!("{what}, and {} is complex", common.dtype));
        let kind = common.dtype.kind();
        Ok(match info.typing {
            Typing::Arithmetic { complex: false } if kind == Kind::Complex => return no_complex("takes real numbers"),
            Typing::Arithmetic { .. } => same(number),
            Typing::Division => match kind {
                Kind::Bool | Kind::Int => same(DType::F64),
                _ => same(common.dtype),
            },
            Typing::Float { complex: false } if kind == Kind::Complex => return no_complex("takes real numbers"),
            Typing::Float { .. } => same(common.dtype.float()),
            Typing::Comparison { ordered: true } if kind == Kind::Complex => return no_complex("needs an order"),
            Typing::Comparison { .. } => to(common.dtype, DType::Bool, false),
            Typing::Logical => to(DType::Bool, DType::Bool, false),
            Typing::Bitwise if kind > Kind::Int => {
                return Err(format!("takes integers and booleans, not {}", common.dtype));
            }
            Typing::Bitwise => same(common.dtype),
            Typing::Shift if kind > Kind::Int => return Err(format!("takes integers, not {}", common.dtype)),
            Typing::Shift => same(number),
            Typing::Ordered if kind == Kind::Complex => return no_complex("needs an order"),
            Typing::Ordered => same(common.dtype),
            Typing::Rounding if kind == Kind::Complex => return no_complex("takes real numbers"),
            Typing::Rounding => same(number),
            Typing::Magnitude => to(number, number.real(), common.weak),
            Typing::Predicate => to(common.dtype, DType::Bool, false),
            Typing::Part => to(number, number.real(), common.weak),
            Typing::Select | Typing::Coalesce | Typing::Choice => same(common.dtype),
            Typing::Conversion(dtype) => to(common.dtype, dtype, false),
            Typing::Defined(user) => return user.type_of(common, nullable),
        })
    }
}

/// True if a value of type `from` may be stored in a tensor of type `to` without an explicit
/// conversion.
///
/// Narrowing within a kind is fine (`f64` into `f32`), losing a kind is not (`f64` into `i32`).
pub(crate) fn can_store(from: Ty, to: DType) -> bool {
    from.dtype.kind() <= to.kind() && !(from.dtype.is_signed_int() && to.is_unsigned_int() && !from.weak)
}
