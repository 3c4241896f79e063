//! Properties of operators: type rules, algebraic laws, cost, derivatives, and names.
//!
//! The parser looks up names here, the type checker [`Typing`], the simplifier and the scheduler
//! laws. The rows themselves are in `table.rs`. Laws are checked by a property test on every type
//! that the operator takes (`tests/laws.rs`), derivatives by finite differences
//! (`tests/derivatives.rs`).

use super::lowering::{BoolExpansion, ComplexExpansion, Elementwise, FloatExpansion, Form, IntExpansion, Lowering};
use super::{DType, Kind, Op, TABLE, UserOp, Value};

/// A constant of an operator (identity, annihilator), whose type depends on the context.
///
/// ```
/// use tamis_ir::{DType, Value};
/// use tamis_ir::algebra::{Constant, Op};
/// assert_eq!(Op::Max.info().left_identity, Some(Constant::Least));
/// assert_eq!(Constant::Least.value(DType::I8), Some(Value::I8(-128)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Constant {
    Zero,
    One,
    /// All bits set; `true`.
    Ones,
    /// The least number: `-inf` for floats.
    Least,
    /// The greatest number: `inf` for floats.
    Greatest,
    /// A number from the user's text.
    Number(Value),
}

impl Constant {
    /// The constant for a number: infinities become the least and greatest value of any type.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::algebra::Constant;
    /// assert_eq!(Constant::of(Value::F64(f64::INFINITY)), Constant::Greatest);
    /// ```
    pub fn of(value: Value) -> Constant {
        match value {
            Value::F64(x) if x == f64::INFINITY => Constant::Greatest,
            Value::F64(x) if x == f64::NEG_INFINITY => Constant::Least,
            other => Constant::Number(other),
        }
    }

    /// The constant in a type, if the type has it.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::algebra::Constant;
    /// assert_eq!(Constant::Greatest.value(DType::F32), Some(Value::F32(f32::INFINITY)));
    /// assert_eq!(Constant::Greatest.value(DType::C64), None, "complex numbers have no order");
    /// ```
    pub fn value(self, dtype: DType) -> Option<Value> {
        use Constant::*;
        match (self, dtype.kind()) {
            // Narrowing floats round, but a number of another kind has to be one of the type's.
            (Number(value), kind) if value.dtype().kind() <= kind && kind >= Kind::Float => Some(value.cast(dtype)),
            (Number(value), _) => value.cast_exact(dtype),
            (Zero, _) => Some(Value::zero(dtype)),
            (One, _) => Some(Value::one(dtype)),
            (Ones, Kind::Bool) => Some(Value::Bool(true)),
            (Ones, Kind::Int) => Some(Value::I64(-1).cast(dtype)),
            (Least, Kind::Bool) => Some(Value::Bool(false)),
            (Greatest, Kind::Bool) => Some(Value::Bool(true)),
            (Least, Kind::Float) => Some(Value::F64(f64::NEG_INFINITY).cast(dtype)),
            (Greatest, Kind::Float) => Some(Value::F64(f64::INFINITY).cast(dtype)),
            // Casting from float saturates at the ends of an integer type.
            (Least, Kind::Int) => Some(Value::F64(f64::NEG_INFINITY).cast(dtype)),
            (Greatest, Kind::Int) => Some(Value::F64(f64::INFINITY).cast(dtype)),
            _ => None,
        }
    }
}

/// The rule that gives the type of the result from the types of operands. [`Op::type_of`] applies
/// it.
///
/// ```
/// use tamis_ir::algebra::{Op, Typing};
/// assert_eq!(Op::Add.info().typing, Typing::Arithmetic { complex: true });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Typing {
    /// Promote; booleans count as integers. `complex`: true if complex numbers are accepted.
    Arithmetic {
        #[allow(missing_docs)]
        complex: bool,
    },
    /// Promote, at least to a float.
    Division,
    /// A float (or complex) function; integers are computed in `f64`.
    Float {
        #[allow(missing_docs)]
        complex: bool,
    },
    /// Promote and compare; the result is `bool`. `ordered`: complex numbers are not taken.
    Comparison {
        #[allow(missing_docs)]
        ordered: bool,
    },
    /// Truth values; the result is `bool`.
    Logical,
    /// Integers and booleans, promoted.
    Bitwise,
    /// Integers, promoted.
    Shift,
    /// Promote; any type that has an order, booleans included.
    Ordered,
    /// The operand's type; booleans count as integers.
    Rounding,
    /// Like arithmetic, but the absolute value of a complex number is real.
    Magnitude,
    /// Any number; the result is `bool`.
    Predicate,
    /// The part of a complex number.
    Part,
    /// A truth value, then two values that are promoted.
    Select,
    /// Promote any values; the result is missing only if all are.
    Coalesce,
    /// Promote any values.
    Choice,
    /// The named type.
    Conversion(DType),
    /// Promote any values; the body decides the type of the result.
    Defined(UserOp),
}

/// The treatment of NaN operands.
///
/// ```
/// use tamis_ir::algebra::{NanPolicy, Op};
/// assert_eq!(Op::Lt.info().nan, NanPolicy::Unordered);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NanPolicy {
    /// A NaN operand gives NaN.
    Propagates,
    /// A NaN operand compares as unordered: `!=` is true, all others are false.
    Unordered,
    /// NaN is a value like any other (it is true, is not zero, can be chosen).
    Ordinary,
}

/// The types on which a law holds.
///
/// ```
/// use tamis_ir::algebra::{Domain, Op};
/// assert!(Op::Add.info().distributes_over.contains(&(Op::Min, Domain::Floats)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// All types that the operators take.
    All,
    /// Floats only: integers wrap around, which breaks an order.
    Floats,
}

/// An operand value that decides the result of a float operator for every finite other operand, as
/// in `inf + a = inf`.
///
/// ```
/// use tamis_ir::algebra::{Constant, Op};
/// let infinities = Op::Add.info().absorbing;
/// assert!(infinities.iter().any(|row| row.value == Constant::Greatest));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Absorbing {
    /// The position of the operand.
    pub operand: usize,
    /// Its value.
    pub value: Constant,
    /// The result.
    pub result: Constant,
}

/// The time an operator takes, compared with an addition.
///
/// ```
/// use tamis_ir::algebra::{Op, OpCost};
/// assert_eq!(Op::Add.info().cost, OpCost::Cheap);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCost {
    /// About as long.
    Cheap,
    /// Much longer on complex numbers.
    ExpensiveOnComplex,
    /// Much longer.
    Expensive,
}

/// An operator in the Python package and in NumPy. Texts are index notation; `{0}` is the first
/// operand.
///
/// ```
/// use tamis_ir::algebra::Op;
/// assert_eq!(Op::Mul.info().python.name, Some("multiply"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Python {
    /// The function of the package; `None` if it has none.
    pub name: Option<&'static str>,
    /// NumPy's universal functions of another name that mean the same.
    pub ufuncs: &'static [&'static str],
    /// The text, if it is not the operator itself.
    pub text: Option<&'static str>,
    /// The text on booleans, where NumPy means something else by the operator.
    pub booleans: Option<&'static str>,
    /// True if booleans are refused, as in NumPy.
    pub refuses_booleans: bool,
    /// The text on complex numbers, where the operator itself takes real ones only.
    pub complexes: Option<&'static str>,
}

/// A row of the table.
///
/// ```
/// use tamis_ir::algebra::Op;
/// let times = Op::Mul.info();
/// assert!(times.commutative && times.symbol == Some("*"));
/// assert_eq!(times.derivative, Some(&["y", "x"][..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The operator.
    pub op: Op,
    /// The name as a function.
    pub name: &'static str,
    /// Other names that programs may use, mostly NumPy's.
    pub aliases: &'static [&'static str],
    /// The spelling between (or before) operands, if there is one.
    pub symbol: Option<&'static str>,
    /// The least and the greatest number of operands.
    pub arity: (usize, usize),
    /// The type rule.
    pub typing: Typing,
    /// The class of the operator, its definition and its lowering.
    pub form: Form,
    /// The treatment of NaN.
    pub nan: NanPolicy,
    /// `op(a, b) = op(b, a)`.
    pub commutative: bool,
    /// `op(op(a, b), c) = op(a, op(b, c))`, for floats up to rounding.
    pub associative: bool,
    /// `op(a, a) = a`.
    pub idempotent: bool,
    /// `op(e, a) = a`.
    pub left_identity: Option<Constant>,
    /// `op(a, e) = a`.
    pub right_identity: Option<Constant>,
    /// `op(z, a) = z` and `op(a, z) = z` for every finite `a`; the sparse policy decides NaN and
    /// infinities.
    pub annihilator: Option<Constant>,
    /// Infinities that decide the result on floats, as an annihilator does; the sparse policy
    /// decides NaN and infinities.
    pub absorbing: &'static [Absorbing],
    /// `op(a, other(b, c)) = other(op(a, b), op(a, c))`, for floats up to rounding; see
    /// [`OpInfo::distributes`].
    pub distributes_over: &'static [(Op, Domain)],
    /// The time it takes.
    pub cost: OpCost,
    /// The partial derivatives with respect to each operand, as index notation over the operands
    /// `x`, `y` and `z`, for the smallest arity. At a jump or a kink: a one-sided derivative, or a
    /// mean. `None` if the result is discrete. On complex numbers they hold where the operator is
    /// holomorphic.
    pub derivative: Option<&'static [&'static str]>,
    /// The operator in Python.
    pub python: Python,
    /// One line for the documentation.
    pub summary: &'static str,
}

impl OpInfo {
    /// The result if the operand at `position` has `value` and the other operands are any finite
    /// numbers: that of an annihilator, or of an infinity in a sum.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::algebra::Op;
    /// let zero = Value::F64(0.0);
    /// assert_eq!(Op::Mul.info().absorbed(DType::F64, 0, zero), Some(zero));
    /// assert_eq!(Op::Add.info().absorbed(DType::F64, 0, zero), None);
    /// ```
    pub fn absorbed(&self, dtype: DType, position: usize, value: Value) -> Option<Value> {
        let value = value.cast(dtype);
        let is = |constant: Constant| constant.value(dtype).filter(|z| z.same_number(value));
        if let Some(zero) = self.annihilator.and_then(is) {
            return Some(zero);
        }
        let rows = if dtype.kind() == Kind::Float { self.absorbing } else { &[] };
        let row = rows.iter().find(|row| row.operand == position && is(row.value).is_some())?;
        row.result.value(dtype)
    }

    /// The law of a semiring: true if a reduction is unchanged by `inner(value, a)` (`value` at
    /// `position`) for every finite `a`, because `value` decides the inner result, which is the
    /// identity of the reduction. This lets (+, *), (min, +), (max, +), (min, max) and (or, and)
    /// skip coordinates that are not stored.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::algebra::Op;
    /// let (zero, infinity) = (Value::F64(0.0), Value::F64(f64::INFINITY));
    /// assert!(Op::Mul.info().idle_under(Op::Add, DType::F64, 0, zero));
    /// assert!(Op::Add.info().idle_under(Op::Min, DType::F64, 0, infinity), "shortest paths");
    /// ```
    pub fn idle_under(&self, reduction: Op, dtype: DType, position: usize, value: Value) -> bool {
        let identity = reduction.info().right_identity.and_then(|e| e.value(dtype));
        self.absorbed(dtype, position, value).zip(identity).is_some_and(|(result, e)| result.same_number(e))
    }

    /// True if this operator distributes over another one on values of a type.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// assert!(Op::Mul.info().distributes(Op::Add, DType::I32));
    /// assert!(!Op::Add.info().distributes(Op::Min, DType::I32), "integers wrap around");
    /// ```
    pub fn distributes(&self, other: Op, dtype: DType) -> bool {
        self.distributes_over
            .iter()
            .any(|(op, domain)| *op == other && (*domain == Domain::All || dtype.kind() == Kind::Float))
    }

    /// A row without laws, of one operand, with NaN propagating.
    pub(super) const fn new(name: &'static str, typing: Typing, summary: &'static str, form: Form) -> OpInfo {
        OpInfo {
            // The table macro fills in the operator.
            op: Op::Add,
            name,
            aliases: &[],
            symbol: None,
            arity: (1, 1),
            typing,
            form,
            nan: NanPolicy::Propagates,
            commutative: false,
            associative: false,
            idempotent: false,
            left_identity: None,
            right_identity: None,
            annihilator: None,
            absorbing: &[],
            distributes_over: &[],
            cost: OpCost::Cheap,
            derivative: None,
            python: Python {
                name: Some(name),
                ufuncs: &[],
                text: None,
                booleans: None,
                refuses_booleans: false,
                complexes: None,
            },
            summary,
        }
    }

    pub(super) const fn symbol(self, symbol: &'static str) -> OpInfo {
        OpInfo { symbol: Some(symbol), ..self }
    }

    pub(super) const fn arity(self, min: usize, max: usize) -> OpInfo {
        OpInfo { arity: (min, max), ..self }
    }

    pub(super) const fn aliases(self, aliases: &'static [&'static str]) -> OpInfo {
        OpInfo { aliases, ..self }
    }

    const fn lowered(self, form: Elementwise) -> OpInfo {
        OpInfo { form: Form::Elementwise(form), ..self }
    }

    const fn elementwise(&self) -> Elementwise {
        match self.form {
            Form::Elementwise(form) => form,
            _ => panic!("only elementwise operators have lowerings"),
        }
    }

    pub(super) const fn bool(self, lowering: Lowering<BoolExpansion>) -> OpInfo {
        self.lowered(Elementwise { bool: lowering, ..self.elementwise() })
    }

    pub(super) const fn int(self, lowering: Lowering<IntExpansion>) -> OpInfo {
        self.lowered(Elementwise { int: lowering, ..self.elementwise() })
    }

    pub(super) const fn float(self, lowering: Lowering<FloatExpansion>) -> OpInfo {
        self.lowered(Elementwise { float: lowering, ..self.elementwise() })
    }

    pub(super) const fn complex(self, lowering: Lowering<ComplexExpansion>) -> OpInfo {
        self.lowered(Elementwise { complex: lowering, ..self.elementwise() })
    }

    pub(super) const fn commutative(self) -> OpInfo {
        OpInfo { commutative: true, ..self }
    }

    pub(super) const fn associative(self) -> OpInfo {
        OpInfo { associative: true, ..self }
    }

    /// Commutative and associative.
    pub(super) const fn semigroup(self) -> OpInfo {
        self.commutative().associative()
    }

    pub(super) const fn idempotent(self) -> OpInfo {
        OpInfo { idempotent: true, ..self }
    }

    pub(super) const fn identity(self, e: Constant) -> OpInfo {
        OpInfo { left_identity: Some(e), right_identity: Some(e), ..self }
    }

    pub(super) const fn right_identity(self, e: Constant) -> OpInfo {
        OpInfo { right_identity: Some(e), ..self }
    }

    pub(super) const fn annihilator(self, z: Constant) -> OpInfo {
        OpInfo { annihilator: Some(z), ..self }
    }

    pub(super) const fn absorbing(self, absorbing: &'static [Absorbing]) -> OpInfo {
        OpInfo { absorbing, ..self }
    }

    pub(super) const fn over(self, ops: &'static [(Op, Domain)]) -> OpInfo {
        OpInfo { distributes_over: ops, ..self }
    }

    pub(super) const fn nan(self, nan: NanPolicy) -> OpInfo {
        OpInfo { nan, ..self }
    }

    pub(super) const fn cost(self, cost: OpCost) -> OpInfo {
        OpInfo { cost, ..self }
    }

    pub(super) const fn derivative(self, partial: &'static [&'static str]) -> OpInfo {
        OpInfo { derivative: Some(partial), ..self }
    }

    pub(super) const fn python(self, name: &'static str) -> OpInfo {
        OpInfo { python: Python { name: Some(name), ..self.python }, ..self }
    }

    pub(super) const fn no_python(self) -> OpInfo {
        OpInfo { python: Python { name: None, ..self.python }, ..self }
    }

    pub(super) const fn ufuncs(self, ufuncs: &'static [&'static str]) -> OpInfo {
        OpInfo { python: Python { ufuncs, ..self.python }, ..self }
    }

    pub(super) const fn python_text(self, text: &'static str) -> OpInfo {
        OpInfo { python: Python { text: Some(text), ..self.python }, ..self }
    }

    pub(super) const fn on_booleans(self, text: &'static str) -> OpInfo {
        OpInfo { python: Python { booleans: Some(text), ..self.python }, ..self }
    }

    pub(super) const fn no_booleans(self) -> OpInfo {
        OpInfo { python: Python { refuses_booleans: true, ..self.python }, ..self }
    }

    pub(super) const fn on_complex(self, text: &'static str) -> OpInfo {
        OpInfo { python: Python { complexes: Some(text), ..self.python }, ..self }
    }
}

impl Op {
    /// The operator with this name as a function, or NumPy's or Python's name for it.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// assert_eq!(Op::named("sqrt"), Some(Op::Sqrt));
    /// assert_eq!(Op::named("f32"), Some(Op::Cast(DType::F32)));
    /// ```
    pub fn named(name: &str) -> Option<Op> {
        let row = TABLE.iter().find(|row| row.name == name || row.aliases.contains(&name));
        row.map(|row| row.op).or_else(|| name.parse().ok().map(Op::Cast))
    }

    /// The binary operator with this spelling.
    ///
    /// ```
    /// use tamis_ir::algebra::Op;
    /// assert_eq!(Op::infix("+"), Some(Op::Add));
    /// ```
    pub fn infix(symbol: &str) -> Option<Op> {
        TABLE.iter().find(|row| row.arity == (2, 2) && row.symbol == Some(symbol)).map(|row| row.op)
    }

    /// True if operands after the first are evaluated only if they are needed, as in Python.
    ///
    /// ```
    /// use tamis_ir::algebra::Op;
    /// assert!(Op::And.is_lazy() && !Op::Mul.is_lazy());
    /// ```
    pub fn is_lazy(self) -> bool {
        match self.info().form {
            Form::And | Form::Or | Form::Select | Form::Coalesce => true,
            Form::Elementwise(_) | Form::Comparison(_) | Form::Predicate(_) | Form::Not => false,
            Form::Choose | Form::Conversion(_) | Form::Defined(_) => false,
        }
    }

    /// The type that values of `dtype` are converted to before the operator is applied: truth
    /// values for logical operators.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// assert_eq!(Op::And.operand_type(DType::F64), DType::Bool);
    /// assert_eq!(Op::Sqrt.operand_type(DType::I32), DType::F64);
    /// ```
    pub fn operand_type(self, dtype: DType) -> DType {
        match self.info().typing {
            Typing::Logical => DType::Bool,
            Typing::Float { .. } => dtype.float(),
            _ => dtype,
        }
    }

    /// The identity that a reduction by this operator into a tensor of type `dtype` starts from, in
    /// that type.
    ///
    /// ```
    /// use tamis_ir::algebra::{DType, Op, Value};
    /// assert_eq!(Op::And.start(DType::F32), Some(Value::F32(1.0)));
    /// assert_eq!(Op::Sub.start(DType::I8), Some(Value::I8(0)));
    /// assert_eq!(Op::Min.start(DType::U64), Some(Value::U64(u64::MAX)));
    /// assert_eq!(Op::Min.start(DType::C64), None);
    /// ```
    pub fn start(self, dtype: DType) -> Option<Value> {
        let info = self.info();
        // An empty difference is an empty sum.
        let identity = if self == Op::Sub { Some(Constant::Zero) } else { info.left_identity.or(info.right_identity) };
        let start = identity?.value(self.operand_type(dtype))?;
        // An identity such as -inf has no value among integers.
        let cast = start.cast(dtype);
        cast.cast(start.dtype()).same_number(start).then_some(cast)
    }

    /// True if the operator takes much longer than an addition on operands of a type.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// assert!(Op::Mul.is_expensive(DType::C128) && !Op::Mul.is_expensive(DType::F64));
    /// ```
    pub fn is_expensive(self, dtype: DType) -> bool {
        match self.info().cost {
            OpCost::Cheap => false,
            OpCost::ExpensiveOnComplex => dtype.kind() == Kind::Complex,
            OpCost::Expensive => true,
        }
    }

    /// True if `X = op(X, e)` is an update that a program may make.
    ///
    /// ```
    /// use tamis_ir::algebra::Op;
    /// assert!(Op::Min.can_update() && !Op::Lt.can_update());
    /// ```
    pub fn can_update(self) -> bool {
        use Typing::*;
        let info = self.info();
        info.arity.0 <= 2
            && info.arity.1 >= 2
            && matches!(
                info.typing,
                Arithmetic { .. } | Division | Logical | Bitwise | Shift | Ordered | Choice | Float { .. } | Defined(_)
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Ty;
    use crate::algebra::eval::{Evaluation, binary_value, unary_value};

    #[test]
    fn rows_are_complete() {
        for (k, row) in TABLE.iter().enumerate() {
            let names: Vec<&str> = row.aliases.iter().copied().chain([row.name]).collect();
            let taken = |other: &OpInfo| other.op == row.op || names.contains(&other.name);
            assert!(!TABLE[..k].iter().any(taken), "{} is the name of two operators", row.name);
            assert!(names.iter().all(|name| Op::named(name) == Some(row.op)), "{}", row.name);
            assert_eq!(row.op.info().op, row.op);
            assert!(!row.summary.is_empty());
            let (least, most) = row.arity;
            assert!(row.derivative.is_none_or(|partial| (least..=most).contains(&partial.len())), "{}", row.name);
        }
        for dtype in DType::ALL {
            assert_eq!(Op::named(dtype.name()), Some(Op::Cast(dtype)));
            assert_eq!(Op::Cast(dtype).info().op, Op::Cast(dtype));
        }
        assert_eq!(Op::named("nothing"), None);
    }

    /// Each elementwise operator has a function and a lowering exactly on the types of its type
    /// rule.
    #[test]
    fn elementwise_operators_cover_their_types() {
        for row in TABLE {
            let Form::Elementwise(function) = row.form else { continue };
            let mut kinds = [false; 4];
            for dtype in DType::ALL {
                let Ok(types) = row.op.type_of(&vec![Ty::strong(dtype); row.arity.0]) else { continue };
                kinds[types.operand.kind() as usize] = true;
                let zero = Value::zero(types.operand);
                let value = match function.evaluation {
                    Evaluation::Unary(f) => unary_value(&f, zero),
                    Evaluation::Binary(f) => binary_value(&f, zero, zero),
                };
                assert!(value.is_some(), "{} has no definition on {}", row.name, types.operand);
            }
            let lowered = [Kind::Bool, Kind::Int, Kind::Float, Kind::Complex].map(|kind| function.is_defined_on(kind));
            assert_eq!(lowered, kinds, "lowerings of {} on booleans, integers, floats and complex numbers", row.name);
        }
    }

    #[test]
    fn constants() {
        assert_eq!(Constant::Greatest.value(DType::I8), Some(Value::I8(127)));
        assert_eq!(Constant::Least.value(DType::U8), Some(Value::U8(0)));
        assert_eq!(Constant::Ones.value(DType::U16), Some(Value::U16(u16::MAX)));
        assert_eq!(Constant::Ones.value(DType::F32), None);
        assert_eq!(Constant::Least.value(DType::C64), None);
    }
}
