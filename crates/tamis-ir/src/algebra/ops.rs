//! The operator table: one row per operator, with everything that may be known about it.
//!
//! The parser looks names up here, the type checker asks for [`Typing`], the simplifier asks for laws.
//! Adding an operator is adding a variant, a row, and its evaluation in `eval.rs`. Every law that a
//! row declares is checked by a property test over every type the operator takes (`tests/laws.rs`).

use super::{DType, Kind, UserOp, Value};

/// An operator or function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    Shl,
    Shr,
    Neg,
    Abs,
    Sign,
    Relu,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sqrt,
    Cbrt,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Sigmoid,
    Atan2,
    Hypot,
    IsNan,
    IsInf,
    IsFinite,
    Real,
    Imag,
    Conj,
    Select,
    Coalesce,
    Choose,
    /// Conversion to a type, written as its name: `f32(x)`.
    Cast(DType),
    /// An operator that a user defined.
    User(UserOp),
}

/// A constant of an operator (identity, annihilator), to be taken in some type.
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
    /// A number that a user wrote.
    Number(Value),
}

impl Constant {
    /// The constant that a number stands for: infinities are the ends of whatever type there is.
    pub fn of(value: Value) -> Constant {
        match value {
            Value::F64(x) if x == f64::INFINITY => Constant::Greatest,
            Value::F64(x) if x == f64::NEG_INFINITY => Constant::Least,
            other => Constant::Number(other),
        }
    }

    /// The constant in a type, if the type has it.
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

/// How the types of operands decide the type of the result. [`Op::type_of`] applies the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Typing {
    /// Promote; booleans count as integers. `complex`: whether complex numbers are taken.
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
    Conversion,
    /// Promote any values; the body says what comes out.
    Defined,
}

/// What an operator does with NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NanPolicy {
    /// A NaN operand gives NaN.
    Propagates,
    /// A NaN operand compares as unordered: `!=` is true, all others are false.
    Unordered,
    /// NaN is a value like any other (it is true, is not zero, can be chosen).
    Ordinary,
}

/// For which types a law holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// All types that the operators take.
    All,
    /// Floats only: integers wrap around, which breaks an order.
    Floats,
}

/// An operand that decides the result of a float operator whatever finite number the other operand is, as `inf + a = inf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Absorbing {
    /// Which operand it is.
    pub operand: usize,
    /// Its value.
    pub value: Constant,
    /// The result.
    pub result: Constant,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The operator.
    pub op: Op,
    /// The name as a function.
    pub name: &'static str,
    /// The spelling between (or before) operands, if there is one.
    pub symbol: Option<&'static str>,
    /// The least and the greatest number of operands.
    pub arity: (usize, usize),
    /// The type rule.
    pub typing: Typing,
    /// What it does with NaN.
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
    /// `op(z, a) = z` and `op(a, z) = z` for every finite `a`; for NaN and infinities by the sparse policy only.
    pub annihilator: Option<Constant>,
    /// Infinities that decide the result on floats; like the annihilator, beside NaN and infinities by the sparse policy only.
    pub absorbing: &'static [Absorbing],
    /// `op(a, other(b, c)) = other(op(a, b), op(a, c))`, for floats up to rounding; see [`OpInfo::distributes`].
    pub distributes_over: &'static [(Op, Domain)],
    /// One line for the book.
    pub summary: &'static str,
}

const PLAIN: OpInfo = OpInfo {
    op: Op::Add,
    name: "",
    symbol: None,
    arity: (1, 1),
    typing: Typing::Arithmetic { complex: true },
    nan: NanPolicy::Propagates,
    commutative: false,
    associative: false,
    idempotent: false,
    left_identity: None,
    right_identity: None,
    annihilator: None,
    absorbing: &[],
    distributes_over: &[],
    summary: "",
};

/// `inf + a = inf` and `-inf + a = -inf`, on either side.
const ABSORBING_SUM: &[Absorbing] = &[
    Absorbing { operand: 0, value: Constant::Greatest, result: Constant::Greatest },
    Absorbing { operand: 1, value: Constant::Greatest, result: Constant::Greatest },
    Absorbing { operand: 0, value: Constant::Least, result: Constant::Least },
    Absorbing { operand: 1, value: Constant::Least, result: Constant::Least },
];

/// `inf - a = inf`, `a - inf = -inf`, and with the signs exchanged.
const ABSORBING_DIFFERENCE: &[Absorbing] = &[
    Absorbing { operand: 0, value: Constant::Greatest, result: Constant::Greatest },
    Absorbing { operand: 1, value: Constant::Greatest, result: Constant::Least },
    Absorbing { operand: 0, value: Constant::Least, result: Constant::Least },
    Absorbing { operand: 1, value: Constant::Least, result: Constant::Greatest },
];

const fn binary(op: Op, name: &'static str, symbol: &'static str, typing: Typing, summary: &'static str) -> OpInfo {
    OpInfo { op, name, symbol: Some(symbol), arity: (2, 2), typing, summary, ..PLAIN }
}

const fn function(op: Op, name: &'static str, typing: Typing, summary: &'static str) -> OpInfo {
    OpInfo { op, name, typing, summary, ..PLAIN }
}

impl OpInfo {
    /// The result if the operand at `position` has `value` and the others are finite, whatever they are: that of an annihilator,
    /// or of an infinity in a sum.
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

    /// The laws of a pair of operators: whether a reduction is left alone by `inner(value, a)` (`value` at `position`) for every
    /// finite `a`, because `value` decides the inner result and that is the identity of the reduction. So the semirings (+, *),
    /// (min, +), (max, +), (min, max), (or, and) skip what is not stored.
    pub fn idle_under(&self, reduction: Op, dtype: DType, position: usize, value: Value) -> bool {
        let identity = reduction.info().right_identity.and_then(|e| e.value(dtype));
        self.absorbed(dtype, position, value).zip(identity).is_some_and(|(result, e)| result.same_number(e))
    }

    /// Whether this operator distributes over another one on values of a type.
    pub fn distributes(&self, other: Op, dtype: DType) -> bool {
        self.distributes_over
            .iter()
            .any(|(op, domain)| *op == other && (*domain == Domain::All || dtype.kind() == Kind::Float))
    }

    const fn semigroup(self) -> OpInfo {
        OpInfo { commutative: true, associative: true, ..self }
    }

    const fn idempotent(self) -> OpInfo {
        OpInfo { idempotent: true, ..self }
    }

    const fn identity(self, e: Constant) -> OpInfo {
        OpInfo { left_identity: Some(e), right_identity: Some(e), ..self }
    }

    const fn right_identity(self, e: Constant) -> OpInfo {
        OpInfo { right_identity: Some(e), ..self }
    }

    const fn annihilator(self, z: Constant) -> OpInfo {
        OpInfo { annihilator: Some(z), ..self }
    }

    const fn absorbing(self, absorbing: &'static [Absorbing]) -> OpInfo {
        OpInfo { absorbing, ..self }
    }

    const fn over(self, ops: &'static [(Op, Domain)]) -> OpInfo {
        OpInfo { distributes_over: ops, ..self }
    }

    const fn nan(self, nan: NanPolicy) -> OpInfo {
        OpInfo { nan, ..self }
    }

    const fn arity(self, min: usize, max: usize) -> OpInfo {
        OpInfo { arity: (min, max), ..self }
    }

    const fn prefix(self, symbol: &'static str) -> OpInfo {
        OpInfo { symbol: Some(symbol), ..self }
    }
}

const ARITHMETIC: Typing = Typing::Arithmetic { complex: true };
const REAL_ARITHMETIC: Typing = Typing::Arithmetic { complex: false };
const FLOAT: Typing = Typing::Float { complex: true };
const REAL_FLOAT: Typing = Typing::Float { complex: false };

/// The operator table.
pub const TABLE: &[OpInfo] = {
    use Constant::*;
    use Domain::*;
    use NanPolicy::*;
    use Op::*;
    &[
        binary(Add, "add", "+", ARITHMETIC, "sum")
            .semigroup()
            .identity(Zero)
            .absorbing(ABSORBING_SUM)
            .over(&[(Min, Floats), (Max, Floats)]),
        binary(Sub, "sub", "-", ARITHMETIC, "difference").right_identity(Zero).absorbing(ABSORBING_DIFFERENCE),
        binary(Mul, "mul", "*", ARITHMETIC, "product")
            .semigroup()
            .identity(One)
            .annihilator(Zero)
            .over(&[(Add, All), (Sub, All)]),
        binary(Div, "div", "/", Typing::Division, "quotient, always a float").right_identity(One),
        binary(FloorDiv, "floordiv", "//", REAL_ARITHMETIC, "quotient rounded down; an integer divided by 0 gives 0"),
        binary(Mod, "mod", "%", REAL_ARITHMETIC, "remainder with the divisor's sign; an integer modulo 0 gives 0"),
        binary(Pow, "pow", "**", ARITHMETIC, "power; an integer to a negative power is rounded towards 0")
            .right_identity(One),
        function(Min, "min", Typing::Ordered, "the least; NaN wins")
            .arity(2, usize::MAX)
            .semigroup()
            .idempotent()
            .identity(Greatest)
            .annihilator(Least)
            .over(&[(Max, All)]),
        function(Max, "max", Typing::Ordered, "the greatest; NaN wins")
            .arity(2, usize::MAX)
            .semigroup()
            .idempotent()
            .identity(Least)
            .annihilator(Greatest)
            .over(&[(Min, All)]),
        binary(Eq, "eq", "==", Typing::Comparison { ordered: false }, "equal").nan(Unordered),
        binary(Ne, "ne", "!=", Typing::Comparison { ordered: false }, "not equal").nan(Unordered),
        binary(Lt, "lt", "<", Typing::Comparison { ordered: true }, "less").nan(Unordered),
        binary(Le, "le", "<=", Typing::Comparison { ordered: true }, "less or equal").nan(Unordered),
        binary(Gt, "gt", ">", Typing::Comparison { ordered: true }, "greater").nan(Unordered),
        binary(Ge, "ge", ">=", Typing::Comparison { ordered: true }, "greater or equal").nan(Unordered),
        binary(And, "logical_and", "and", Typing::Logical, "both are true (not zero)")
            .nan(Ordinary)
            .semigroup()
            .idempotent()
            .identity(Ones)
            .annihilator(Zero)
            .over(&[(Or, All)]),
        binary(Or, "logical_or", "or", Typing::Logical, "one is true (not zero)")
            .nan(Ordinary)
            .semigroup()
            .idempotent()
            .identity(Zero)
            .annihilator(Ones)
            .over(&[(And, All)]),
        function(Not, "logical_not", Typing::Logical, "true for zero").prefix("not").nan(Ordinary),
        binary(BitAnd, "bitand", "&", Typing::Bitwise, "bitwise and")
            .semigroup()
            .idempotent()
            .identity(Ones)
            .annihilator(Zero)
            .over(&[(BitOr, All), (BitXor, All)]),
        binary(BitOr, "bitor", "|", Typing::Bitwise, "bitwise or")
            .semigroup()
            .idempotent()
            .identity(Zero)
            .annihilator(Ones)
            .over(&[(BitAnd, All)]),
        binary(BitXor, "bitxor", "^", Typing::Bitwise, "bitwise exclusive or").semigroup().identity(Zero),
        function(BitNot, "bitnot", Typing::Bitwise, "every bit flipped").prefix("~"),
        binary(Shl, "shl", "<<", Typing::Shift, "bits moved up; all gone past the width").right_identity(Zero),
        binary(Shr, "shr", ">>", Typing::Shift, "bits moved down, keeping the sign").right_identity(Zero),
        function(Neg, "neg", ARITHMETIC, "negative").prefix("-"),
        function(Abs, "abs", Typing::Magnitude, "absolute value"),
        function(Sign, "sign", ARITHMETIC, "-1, 0 or 1; z/|z| for complex numbers"),
        function(Relu, "relu", REAL_ARITHMETIC, "max(x, 0)"),
        function(Floor, "floor", Typing::Rounding, "rounded down"),
        function(Ceil, "ceil", Typing::Rounding, "rounded up"),
        function(Round, "round", Typing::Rounding, "rounded to nearest, ties to even"),
        function(Trunc, "trunc", Typing::Rounding, "rounded towards 0"),
        function(Sqrt, "sqrt", FLOAT, "square root"),
        function(Cbrt, "cbrt", REAL_FLOAT, "cube root"),
        function(Exp, "exp", FLOAT, "e to the power of x"),
        function(Exp2, "exp2", REAL_FLOAT, "2 to the power of x"),
        function(Expm1, "expm1", REAL_FLOAT, "exp(x) - 1, exact near 0"),
        function(Log, "log", FLOAT, "natural logarithm"),
        function(Log2, "log2", REAL_FLOAT, "binary logarithm"),
        function(Log10, "log10", REAL_FLOAT, "decimal logarithm"),
        function(Log1p, "log1p", REAL_FLOAT, "log(1 + x), exact near 0"),
        function(Sin, "sin", FLOAT, "sine"),
        function(Cos, "cos", FLOAT, "cosine"),
        function(Tan, "tan", FLOAT, "tangent"),
        function(Asin, "asin", FLOAT, "inverse sine"),
        function(Acos, "acos", FLOAT, "inverse cosine"),
        function(Atan, "atan", FLOAT, "inverse tangent"),
        function(Sinh, "sinh", FLOAT, "hyperbolic sine"),
        function(Cosh, "cosh", FLOAT, "hyperbolic cosine"),
        function(Tanh, "tanh", FLOAT, "hyperbolic tangent"),
        function(Asinh, "asinh", FLOAT, "inverse hyperbolic sine"),
        function(Acosh, "acosh", FLOAT, "inverse hyperbolic cosine"),
        function(Atanh, "atanh", FLOAT, "inverse hyperbolic tangent"),
        function(Sigmoid, "sigmoid", REAL_FLOAT, "1 / (1 + exp(-x))"),
        function(Atan2, "atan2", REAL_FLOAT, "angle of the point (x, y), written atan2(y, x)").arity(2, 2),
        OpInfo { commutative: true, ..function(Hypot, "hypot", REAL_FLOAT, "sqrt(x*x + y*y)").arity(2, 2) },
        function(IsNan, "isnan", Typing::Predicate, "whether any part is NaN").nan(Ordinary),
        function(IsInf, "isinf", Typing::Predicate, "whether any part is infinite").nan(Ordinary),
        function(IsFinite, "isfinite", Typing::Predicate, "neither infinite nor NaN").nan(Ordinary),
        function(Real, "real", Typing::Part, "real part"),
        function(Imag, "imag", Typing::Part, "imaginary part").nan(Ordinary),
        function(Conj, "conj", ARITHMETIC, "complex conjugate"),
        function(Select, "select", Typing::Select, "select(c, a, b): a where c is true, else b")
            .arity(3, 3)
            .nan(Ordinary),
        function(Coalesce, "coalesce", Typing::Coalesce, "the first operand that is not missing")
            .arity(1, usize::MAX)
            .nan(Ordinary),
        OpInfo {
            associative: true,
            idempotent: true,
            ..function(
                Choose,
                "choose",
                Typing::Choice,
                "choose(a, b): a unless it is 0, else b; choose(a, b, z): a unless it is z",
            )
            .arity(2, 3)
            .nan(Ordinary)
            .identity(Zero)
        },
    ]
};

const CAST: OpInfo = OpInfo {
    name: "cast",
    typing: Typing::Conversion,
    nan: NanPolicy::Ordinary,
    summary: "conversion to a type",
    ..PLAIN
};

impl Op {
    /// The row of this operator.
    pub fn info(self) -> OpInfo {
        match self {
            Op::Cast(dtype) => OpInfo { op: self, name: dtype.name(), ..CAST },
            Op::User(user) => user.info(),
            // The table has a row for every variant, in their order; a test says so.
            _ => TABLE.binary_search_by(|row| row.op.cmp(&self)).map_or(CAST, |k| TABLE[k]),
        }
    }

    /// The operator with this name as a function, or NumPy's or Python's name for it.
    pub fn named(name: &str) -> Option<Op> {
        let alias = match name {
            "minimum" => "min",
            "maximum" => "max",
            "where" | "ifelse" => "select",
            "absolute" => "abs",
            "power" => "pow",
            "conjugate" => "conj",
            "arctan2" => "atan2",
            "arcsin" => "asin",
            "arccos" => "acos",
            "arctan" => "atan",
            "invert" => "bitnot",
            other => other,
        };
        let row = TABLE.iter().find(|row| row.name == alias);
        row.map(|row| row.op).or_else(|| alias.parse().ok().map(Op::Cast))
    }

    /// The binary operator with this spelling.
    pub fn infix(symbol: &str) -> Option<Op> {
        TABLE.iter().find(|row| row.arity == (2, 2) && row.symbol == Some(symbol)).map(|row| row.op)
    }

    /// Whether operands after the first are evaluated only if they are needed, as in Python.
    pub fn is_lazy(self) -> bool {
        matches!(self, Op::And | Op::Or | Op::Select | Op::Coalesce)
    }

    /// The type that values of `dtype` are converted to before the operator is applied: truth values for logical operators.
    pub fn operand_type(self, dtype: DType) -> DType {
        if self.info().typing == Typing::Logical { DType::Bool } else { dtype }
    }

    /// The identity that a reduction by this operator into a tensor of type `dtype` starts from, in that type.
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
        // From nothing, differences are sums.
        let identity = if self == Op::Sub { Some(Constant::Zero) } else { info.left_identity.or(info.right_identity) };
        identity.and_then(|e| e.value(self.operand_type(dtype))).map(|e| e.cast(dtype))
    }

    /// Whether `X = op(X, e)` is an update that a program may make.
    pub fn can_update(self) -> bool {
        use Typing::*;
        let info = self.info();
        info.arity.0 <= 2
            && info.arity.1 >= 2
            && matches!(
                info.typing,
                Arithmetic { .. } | Division | Logical | Bitwise | Shift | Ordered | Choice | Float { .. } | Defined
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete() {
        for (k, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..k].iter().all(|other| other.op != row.op && other.name != row.name), "{}", row.name);
            assert_eq!(row.op.info().name, row.name);
            assert_eq!(Op::named(row.name), Some(row.op));
            assert!(!row.summary.is_empty());
            assert_eq!(row.op.info().op, row.op);
        }
        assert!(TABLE.windows(2).all(|rows| rows[0].op < rows[1].op), "rows are in the order of the variants");
        assert_eq!(TABLE.len(), 65);
        assert_eq!(Op::named("f32"), Some(Op::Cast(DType::F32)));
        assert_eq!(Op::named("nothing"), None);
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
