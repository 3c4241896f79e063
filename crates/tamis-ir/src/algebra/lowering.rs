//! Lowering of operators: the instruction, intrinsic, library function or expansion that computes
//! each one.
//!
//! A row of the operator table holds a [`Form`]. The evaluator and both back ends match on it
//! without a default arm, so an operator that a back end cannot emit does not compile. Most
//! operators are [`Form::Elementwise`]: functions of operands of one type, with one [`Lowering`]
//! per kind of type.

use super::{DType, Elementary, Evaluation, Kind, UserOp};

/// The class of an operator, by how its operands are evaluated.
///
/// ```
/// use tamis_ir::algebra::{ComparisonOp, Form, Op};
/// assert!(matches!(Op::Lt.info().form, Form::Comparison(ComparisonOp::Lt)));
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "forms stand in a static table and are borrowed from it")]
pub enum Form {
    /// A function of operands that are converted to one type.
    Elementwise(Elementwise),
    /// A comparison of two operands.
    Comparison(ComparisonOp),
    /// A test of one operand.
    Predicate(Predicate),
    /// True if all operands are true; later operands are evaluated only if needed.
    And,
    /// True if one operand is true; later operands are evaluated only if needed.
    Or,
    /// True if the operand is not.
    Not,
    /// The second operand if the first is true, otherwise the third.
    Select,
    /// The first operand that is not missing.
    Coalesce,
    /// The first operand, unless it equals the third (zero without one): then the second.
    Choose,
    /// A conversion to a type.
    Conversion(DType),
    /// The body of a user-defined operator.
    Defined(UserOp),
}

/// An ordering or equality test.
///
/// ```
/// use tamis_ir::algebra::{ComparisonOp, Form, Op};
/// assert!(matches!(Op::Ge.info().form, Form::Comparison(ComparisonOp::Ge)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ComparisonOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A test of a floating-point class.
///
/// ```
/// use tamis_ir::algebra::{Form, Op, Predicate};
/// assert!(matches!(Op::IsNan.info().form, Form::Predicate(Predicate::IsNan)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Predicate {
    IsNan,
    IsInf,
    IsFinite,
}

/// The definition of an elementwise operator, and its lowering on each kind of type.
///
/// ```
/// use tamis_ir::algebra::{Form, Lowering, Op};
/// let Form::Elementwise(add) = &Op::Add.info().form else { panic!() };
/// assert_eq!(add.float, Lowering::Instruction { llvm: "fadd", c: "+" });
/// ```
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Elementwise {
    /// The functions that define the operator; compiled code calls the same ones.
    pub evaluation: Evaluation,
    pub bool: Lowering<BoolExpansion>,
    pub int: Lowering<IntExpansion>,
    pub float: Lowering<FloatExpansion>,
    pub complex: Lowering<ComplexExpansion>,
}

/// The lowering of an operator on operands of one kind.
///
/// ```
/// use tamis_ir::algebra::{Form, FloatExpansion, Lowering, Op};
/// let Form::Elementwise(relu) = &Op::Relu.info().form else { panic!() };
/// assert_eq!(relu.float, Lowering::Expansion(FloatExpansion::Relu));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering<E> {
    /// The type rule excludes operands of this kind.
    Never,
    /// The operand itself.
    Operand,
    /// Zero, for any operand.
    Zero,
    /// One instruction, on complex numbers one for each part.
    Instruction {
        /// The opcode of LLVM.
        llvm: &'static str,
        /// The operator of C.
        c: &'static str,
    },
    /// An intrinsic function of LLVM. On integers, LLVM's name gets a prefix `s` (signed) or `u`.
    Intrinsic {
        /// The name between `llvm.` and the type.
        llvm: &'static str,
        /// The equivalent in C.
        c: C,
    },
    /// A call of the function that defines the operator, which the runtime library exports.
    Call {
        /// The equivalent in C.
        c: C,
    },
    /// A sequence of instructions, which each back end writes.
    Expansion(E),
}

/// An operator in C. In texts, `T` is the operand type, `P` the type of its parts, `U` the unsigned
/// integer of its size, `MAKE` the macro that makes a complex number, and `@` the suffix of
/// functions of its precision (`f` or nothing); `a` and `b` are the operands.
///
/// ```
/// use tamis_ir::algebra::{C, Form, Lowering, Op};
/// let Form::Elementwise(sinh) = &Op::Sinh.info().form else { panic!() };
/// assert_eq!(sinh.float, Lowering::Call { c: C::Function("sinh") });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum C {
    /// A function of `<math.h>`, and of `<complex.h>` with a prefix `c`.
    Function(&'static str),
    /// An expression.
    Expression(&'static str),
    /// The statements of a function body.
    Body(&'static str),
}

/// Expansions on booleans.
///
/// ```
/// use tamis_ir::algebra::{BoolExpansion, Form, Lowering, Op};
/// let Form::Elementwise(invert) = &Op::BitNot.info().form else { panic!() };
/// assert_eq!(invert.bool, Lowering::Expansion(BoolExpansion::Not));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BoolExpansion {
    Not,
}

/// Expansions on integers. All are total: they wrap around, and never trap.
///
/// ```
/// use tamis_ir::algebra::{Form, IntExpansion, Lowering, Op};
/// let Form::Elementwise(abs) = &Op::Abs.info().form else { panic!() };
/// assert_eq!(abs.int, Lowering::Expansion(IntExpansion::Abs));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntExpansion {
    Negate,
    Complement,
    Abs,
    Relu,
    Sign,
    FloorDivide,
    Modulo,
    Power,
    ShiftLeft,
    ShiftRight,
}

/// Expansions on floats.
///
/// ```
/// use tamis_ir::algebra::{FloatExpansion, Form, Lowering, Op};
/// let Form::Elementwise(sign) = &Op::Sign.info().form else { panic!() };
/// assert_eq!(sign.float, Lowering::Expansion(FloatExpansion::Sign));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatExpansion {
    Relu,
    Sign,
    /// A function that is built of exact operations, or called where fused multiply-adds are slow.
    Elementary(Elementary),
}

/// Expansions on complex numbers.
///
/// ```
/// use tamis_ir::algebra::{ComplexExpansion, Form, Lowering, Op};
/// let Form::Elementwise(product) = &Op::Mul.info().form else { panic!() };
/// assert_eq!(product.complex, Lowering::Expansion(ComplexExpansion::Multiply));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ComplexExpansion {
    Multiply,
    Abs,
    Conjugate,
    Real,
    Imaginary,
}

impl Elementwise {
    /// No lowering yet: the row adds one for each kind that its type rule leads to.
    pub(super) const fn new(evaluation: Evaluation) -> Elementwise {
        let (bool, int) = (Lowering::Never, Lowering::Never);
        Elementwise { evaluation, bool, int, float: Lowering::Never, complex: Lowering::Never }
    }

    /// True if the type rule leads to operands of a kind.
    ///
    /// ```
    /// use tamis_ir::algebra::{Form, Kind, Op};
    /// let Form::Elementwise(and) = &Op::BitAnd.info().form else { panic!() };
    /// assert!(and.is_defined_on(Kind::Int) && !and.is_defined_on(Kind::Float));
    /// ```
    pub fn is_defined_on(&self, kind: Kind) -> bool {
        match kind {
            Kind::Bool => self.bool.is_defined(),
            Kind::Int => self.int.is_defined(),
            Kind::Float => self.float.is_defined(),
            Kind::Complex => self.complex.is_defined(),
        }
    }
}

impl<E> Lowering<E> {
    /// True if operands of this kind occur at all.
    ///
    /// ```
    /// use tamis_ir::algebra::{FloatExpansion, Lowering};
    /// assert!(Lowering::<FloatExpansion>::Zero.is_defined());
    /// assert!(!Lowering::<FloatExpansion>::Never.is_defined());
    /// ```
    pub fn is_defined(&self) -> bool {
        !matches!(self, Lowering::Never)
    }
}
