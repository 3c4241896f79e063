//! The operator table: one row per operator, the single source of its properties.
//!
//! A row states the name, the type rule, the definition (one expression per class of types), the
//! lowering in both back ends, the algebraic laws, the cost, the derivative, and the names in
//! Python. The enum [`Op`] is made from the rows, so adding an operator is adding a row. Tests
//! check every row: laws on every type, compiled code against the definition, derivatives against
//! finite differences.

// Expressions of rows are instantiated for every type of a class, some of which need less.
#![allow(clippy::needless_update, clippy::redundant_closure_call, clippy::unnecessary_min_or_max)]

use super::elementary::Elementary;
use super::eval::{Evaluation, binary, unary};
use super::lowering::{BoolExpansion, ComplexExpansion, FloatExpansion, IntExpansion};
use super::lowering::{C, ComparisonOp, Elementwise, Form, Lowering, Predicate};
use super::ops::{Absorbing, Constant, Domain, NanPolicy, OpCost, OpInfo, Typing};
use super::scalar::{Float, Int, floor_div_mod, logaddexp2, minimum, sign};
use super::{DType, UserOp, complex};
use num_complex::{Complex, ComplexFloat};

/// Makes the enum of operators and the table from the rows.
macro_rules! operators {
    ($($op:ident => $row:expr,)*) => {
        /// An operator or function of the language.
        ///
        /// ```
        /// use tamis_ir::Value;
        /// use tamis_ir::algebra::{DType, Op, eval};
        /// assert_eq!(eval(Op::Max, DType::I64, &[Value::I64(2), Value::I64(7)]), Value::I64(7));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Op {
            $($op,)*
            /// Conversion to a type, written as its name: `f32(x)`.
            Cast(DType),
            /// A user-defined operator.
            User(UserOp),
        }

        /// The operator table, in the order of the variants of [`Op`].
        ///
        /// ```
        /// for row in tamis_ir::algebra::TABLE {
        ///     println!("{:12} {}", row.name, row.summary);
        /// }
        /// ```
        pub static TABLE: &[OpInfo] = &[$(OpInfo { op: Op::$op, ..$row }),*];

        /// The positions of the rows.
        enum OpRow {
            $($op,)*
        }

        impl Op {
            /// The row of this operator.
            ///
            /// ```
            /// assert_eq!(tamis_ir::algebra::Op::Add.info().symbol, Some("+"));
            /// ```
            pub fn info(self) -> &'static OpInfo {
                match self {
                    $(Op::$op => &TABLE[OpRow::$op as usize],)*
                    Op::Cast(dtype) => &CONVERSIONS[dtype as usize],
                    Op::User(user) => user.info(),
                }
            }
        }
    };
}

const ARITHMETIC: Typing = Typing::Arithmetic { complex: true };
const REAL_ARITHMETIC: Typing = Typing::Arithmetic { complex: false };
const FLOAT: Typing = Typing::Float { complex: true };
const REAL_FLOAT: Typing = Typing::Float { complex: false };
const EQUALITY: Typing = Typing::Comparison { ordered: false };
const ORDER: Typing = Typing::Comparison { ordered: true };

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

/// Smith's division, which does not form the square of the divisor's absolute value.
const COMPLEX_DIVISION: C = C::Body(
    "    const P ar = creal@(a), ai = cimag@(a), br = creal@(b), bi = cimag@(b);
    if (fabs@(br) >= fabs@(bi)) {
        if (br == 0 && bi == 0)
            return MAKE(ar / fabs@(br), ai / fabs@(br));
        const P ratio = bi / br, scale = 1 / (br + bi * ratio);
        return MAKE((ar + ai * ratio) * scale, (ai - ar * ratio) * scale);
    }
    const P ratio = br / bi, scale = 1 / (bi + br * ratio);
    return MAKE((ar * ratio + ai) * scale, (ai * ratio - ar) * scale);",
);

/// Python's `//` on floats.
const FLOOR_DIVISION: C = C::Body(
    "    if (b == 0)
        return a / b;
    const T rest = fmod@(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign@(0, a / b);
    const T down = floor@(quotient);
    return quotient - down > 0.5@ ? down + 1 : down;",
);

/// Python's `%` on floats.
const FLOOR_MODULO: C = C::Body(
    "    T rest = fmod@(a, b);
    if (b == 0)
        return rest;
    if (rest == 0)
        return copysign@(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;",
);

/// An instruction of LLVM and an operator of C.
const fn instruction<E>(llvm: &'static str, c: &'static str) -> Lowering<E> {
    Lowering::Instruction { llvm, c }
}

/// An intrinsic of LLVM and a function of the C library.
const fn intrinsic<E>(llvm: &'static str, function: &'static str) -> Lowering<E> {
    Lowering::Intrinsic { llvm, c: C::Function(function) }
}

/// An intrinsic of LLVM and an expression in C.
const fn intrinsic_or<E>(llvm: &'static str, expression: &'static str) -> Lowering<E> {
    Lowering::Intrinsic { llvm, c: C::Expression(expression) }
}

/// A call of the runtime library, and in C a function of the C library.
const fn library<E>(function: &'static str) -> Lowering<E> {
    Lowering::Call { c: C::Function(function) }
}

/// A call of the runtime library, and an expression in C.
const fn call_or<E>(expression: &'static str) -> Lowering<E> {
    Lowering::Call { c: C::Expression(expression) }
}

/// An operator of two operands with a symbol.
const fn infix(
    name: &'static str,
    symbol: &'static str,
    typing: Typing,
    summary: &'static str,
    f: Evaluation,
) -> OpInfo {
    function(name, typing, summary, f).symbol(symbol)
}

/// A function of one or two operands.
const fn function(name: &'static str, typing: Typing, summary: &'static str, f: Evaluation) -> OpInfo {
    let count = match f {
        Evaluation::Unary(_) => 1,
        Evaluation::Binary(_) => 2,
    };
    OpInfo::new(name, typing, summary, Form::Elementwise(Elementwise::new(f))).arity(count, count)
}

/// A function of the C library, which takes much longer than an addition.
const fn math(name: &'static str, typing: Typing, summary: &'static str, f: Evaluation) -> OpInfo {
    let row = function(name, typing, summary, f).float(library(name)).cost(OpCost::Expensive);
    match typing {
        Typing::Float { complex: true } => row.complex(library(name)),
        _ => row,
    }
}

/// A function that every back end builds from its definition.
const fn elementary(
    name: &'static str,
    typing: Typing,
    summary: &'static str,
    function: Elementary,
    f: Evaluation,
) -> OpInfo {
    math(name, typing, summary, f).float(Lowering::Expansion(FloatExpansion::Elementary(function)))
}

const fn comparison(
    name: &'static str,
    symbol: &'static str,
    typing: Typing,
    summary: &'static str,
    form: ComparisonOp,
) -> OpInfo {
    let row = OpInfo::new(name, typing, summary, Form::Comparison(form)).symbol(symbol).arity(2, 2);
    row.nan(NanPolicy::Unordered)
}

operators! {
    Add => infix("add", "+", ARITHMETIC, "sum", binary! {
            int |x, y| x.wrapping_add(y);
            float |x, y| x + y;
            complex |z, w| z + w;
        })
        .int(instruction("add", "+"))
        .float(instruction("fadd", "+"))
        .complex(instruction("fadd", "+"))
        .semigroup()
        .identity(Constant::Zero)
        .absorbing(ABSORBING_SUM)
        .over(&[(Op::Min, Domain::Floats), (Op::Max, Domain::Floats), (Op::Logaddexp2, Domain::Floats)])
        .derivative(&["1", "1"])
        .on_booleans("{0} or {1}"),
    Sub => infix("sub", "-", ARITHMETIC, "difference", binary! {
            int |x, y| x.wrapping_sub(y);
            float |x, y| x - y;
            complex |z, w| z - w;
        })
        .int(instruction("sub", "-"))
        .float(instruction("fsub", "-"))
        .complex(instruction("fsub", "-"))
        .right_identity(Constant::Zero)
        .absorbing(ABSORBING_DIFFERENCE)
        .derivative(&["1", "-1"])
        .python("subtract")
        .no_booleans(),
    Mul => infix("mul", "*", ARITHMETIC, "product", binary! {
            int |x, y| x.wrapping_mul(y);
            float |x, y| x * y;
            complex |z, w| z * w;
        })
        .int(instruction("mul", "*"))
        .float(instruction("fmul", "*"))
        .complex(Lowering::Expansion(ComplexExpansion::Multiply))
        .semigroup()
        .identity(Constant::One)
        .annihilator(Constant::Zero)
        .over(&[(Op::Add, Domain::All), (Op::Sub, Domain::All)])
        .cost(OpCost::ExpensiveOnComplex)
        .derivative(&["y", "x"])
        .python("multiply")
        .on_booleans("{0} and {1}"),
    Div => infix("div", "/", Typing::Division, "quotient, always a float", binary! {
            float |x, y| x / y;
            complex |z, w| complex::divide(z, w);
        })
        .float(instruction("fdiv", "/"))
        .complex(Lowering::Call { c: COMPLEX_DIVISION })
        .right_identity(Constant::One)
        .cost(OpCost::Expensive)
        .derivative(&["1 / y", "-x / (y * y)"])
        .python("divide")
        .ufuncs(&["true_divide"]),
    FloorDiv => infix("floordiv", "//", REAL_ARITHMETIC, "quotient rounded down; an integer divided by 0 gives 0", binary! {
            int |x, y| x.floor_div(y);
            float |x, y| floor_div_mod(x, y).0;
        })
        .int(Lowering::Expansion(IntExpansion::FloorDivide))
        .float(Lowering::Call { c: FLOOR_DIVISION })
        .cost(OpCost::Expensive)
        .derivative(&["0", "0"])
        .python("floor_divide")
        .no_booleans(),
    Mod => infix("mod", "%", REAL_ARITHMETIC, "remainder with the divisor's sign; an integer modulo 0 gives 0", binary! {
            int |x, y| x.floor_mod(y);
            float |x, y| floor_div_mod(x, y).1;
        })
        .int(Lowering::Expansion(IntExpansion::Modulo))
        .float(Lowering::Call { c: FLOOR_MODULO })
        .cost(OpCost::Expensive)
        .derivative(&["1", "-(x // y)"])
        .python("remainder")
        .no_booleans(),
    Pow => infix("pow", "**", ARITHMETIC, "power; an integer to a negative power is rounded towards 0", binary! {
            int |x, y| x.power(y);
            float |x, y| x.to_power(y);
            complex |z, w| complex::power(z, w);
        })
        .int(Lowering::Expansion(IntExpansion::Power))
        .float(Lowering::Expansion(FloatExpansion::Elementary(Elementary::Pow)))
        .complex(call_or("b == 0 ? 1 : cpow@(a, b)"))
        .right_identity(Constant::One)
        .cost(OpCost::Expensive)
        .derivative(&["select(y == 0, 0, y * x ** (y - 1))", "select(x == 0, 0, x ** y * log(x))"])
        .aliases(&["power"])
        .ufuncs(&["power", "float_power"])
        .no_booleans(),
    Min => function("min", Typing::Ordered, "the least; NaN wins", binary! {
            bool |x, y| x & y;
            int |x, y| x.min(y);
            float |x, y| minimum(x, y);
        })
        .bool(instruction("and", "&"))
        .int(intrinsic_or("min", "a < b ? a : b"))
        .float(intrinsic_or("minimum", "isnan(a) || a < b || (a == b && signbit(a)) ? a : b"))
        .arity(2, usize::MAX)
        .semigroup()
        .idempotent()
        .identity(Constant::Greatest)
        .annihilator(Constant::Least)
        .over(&[(Op::Max, Domain::All)])
        .derivative(&["select(x < y, 1, select(x == y, 0.5, 0))", "select(y < x, 1, select(x == y, 0.5, 0))"])
        .python("minimum")
        .aliases(&["minimum"]),
    Max => function("max", Typing::Ordered, "the greatest; NaN wins", binary! {
            bool |x, y| x | y;
            int |x, y| x.max(y);
            float |x, y| -minimum(-x, -y);
        })
        .bool(instruction("or", "|"))
        .int(intrinsic_or("max", "a > b ? a : b"))
        .float(intrinsic_or("maximum", "isnan(a) || a > b || (a == b && !signbit(a)) ? a : b"))
        .arity(2, usize::MAX)
        .semigroup()
        .idempotent()
        .identity(Constant::Least)
        .annihilator(Constant::Greatest)
        .over(&[(Op::Min, Domain::All)])
        .derivative(&["select(x > y, 1, select(x == y, 0.5, 0))", "select(y > x, 1, select(x == y, 0.5, 0))"])
        .python("maximum")
        .aliases(&["maximum"]),
    Eq => comparison("eq", "==", EQUALITY, "equal", ComparisonOp::Eq).python("equal"),
    Ne => comparison("ne", "!=", EQUALITY, "not equal", ComparisonOp::Ne).python("not_equal"),
    Lt => comparison("lt", "<", ORDER, "less", ComparisonOp::Lt).python("less"),
    Le => comparison("le", "<=", ORDER, "less or equal", ComparisonOp::Le).python("less_equal"),
    Gt => comparison("gt", ">", ORDER, "greater", ComparisonOp::Gt).python("greater"),
    Ge => comparison("ge", ">=", ORDER, "greater or equal", ComparisonOp::Ge).python("greater_equal"),
    And => OpInfo::new("logical_and", Typing::Logical, "both are true (not zero)", Form::And)
        .symbol("and")
        .arity(2, 2)
        .nan(NanPolicy::Ordinary)
        .semigroup()
        .idempotent()
        .identity(Constant::Ones)
        .annihilator(Constant::Zero)
        .over(&[(Op::Or, Domain::All)])
        .python_text("({0} != 0) and ({1} != 0)")
        .on_booleans("{0} and {1}"),
    Or => OpInfo::new("logical_or", Typing::Logical, "one is true (not zero)", Form::Or)
        .symbol("or")
        .arity(2, 2)
        .nan(NanPolicy::Ordinary)
        .semigroup()
        .idempotent()
        .identity(Constant::Zero)
        .annihilator(Constant::Ones)
        .over(&[(Op::And, Domain::All)])
        .python_text("({0} != 0) or ({1} != 0)")
        .on_booleans("{0} or {1}"),
    Not => OpInfo::new("logical_not", Typing::Logical, "true for zero", Form::Not)
        .symbol("not")
        .nan(NanPolicy::Ordinary)
        .python_text("{0} == 0")
        .on_booleans("not {0}"),
    BitAnd => infix("bitand", "&", Typing::Bitwise, "bitwise and", binary! {
            bool |x, y| x & y;
            int |x, y| x & y;
        })
        .bool(instruction("and", "&"))
        .int(instruction("and", "&"))
        .semigroup()
        .idempotent()
        .identity(Constant::Ones)
        .annihilator(Constant::Zero)
        .over(&[(Op::BitOr, Domain::All), (Op::BitXor, Domain::All)])
        .python("bitwise_and"),
    BitOr => infix("bitor", "|", Typing::Bitwise, "bitwise or", binary! {
            bool |x, y| x | y;
            int |x, y| x | y;
        })
        .bool(instruction("or", "|"))
        .int(instruction("or", "|"))
        .semigroup()
        .idempotent()
        .identity(Constant::Zero)
        .annihilator(Constant::Ones)
        .over(&[(Op::BitAnd, Domain::All)])
        .python("bitwise_or"),
    BitXor => infix("bitxor", "^", Typing::Bitwise, "bitwise exclusive or", binary! {
            bool |x, y| x ^ y;
            int |x, y| x ^ y;
        })
        .bool(instruction("xor", "^"))
        .int(instruction("xor", "^"))
        .semigroup()
        .identity(Constant::Zero)
        .python("bitwise_xor"),
    BitNot => function("bitnot", Typing::Bitwise, "every bit flipped", unary! {
            bool |x| !x;
            int |x| !x;
        })
        .symbol("~")
        .bool(Lowering::Expansion(BoolExpansion::Not))
        .int(Lowering::Expansion(IntExpansion::Complement))
        .python("bitwise_invert")
        .aliases(&["invert"])
        .ufuncs(&["invert"]),
    Shl => infix("shl", "<<", Typing::Shift, "bits moved up; all gone past the width", binary! {
            int |x, y| x.shift_left(y);
        })
        .int(Lowering::Expansion(IntExpansion::ShiftLeft))
        .right_identity(Constant::Zero)
        .python("bitwise_left_shift")
        .ufuncs(&["left_shift"])
        .no_booleans(),
    Shr => infix("shr", ">>", Typing::Shift, "bits moved down, keeping the sign", binary! {
            int |x, y| x.shift_right(y);
        })
        .int(Lowering::Expansion(IntExpansion::ShiftRight))
        .right_identity(Constant::Zero)
        .python("bitwise_right_shift")
        .ufuncs(&["right_shift"])
        .no_booleans(),
    Neg => function("neg", ARITHMETIC, "negative", unary! {
            int |x| x.wrapping_neg();
            float |x| -x;
            complex |z| -z;
        })
        .symbol("-")
        .int(Lowering::Expansion(IntExpansion::Negate))
        .float(instruction("fneg", "-"))
        .complex(instruction("fneg", "-"))
        .derivative(&["-1"])
        .python("negative")
        .no_booleans(),
    Abs => function("abs", Typing::Magnitude, "absolute value", unary! {
            int |x| x.magnitude();
            float |x| x.abs();
            complex |z| Complex::new(z.re.hypot(z.im), 0.0);
        })
        .int(Lowering::Expansion(IntExpansion::Abs))
        .float(intrinsic("fabs", "fabs"))
        .complex(Lowering::Expansion(ComplexExpansion::Abs))
        .cost(OpCost::ExpensiveOnComplex)
        .derivative(&["sign(x)"])
        .aliases(&["absolute"])
        .ufuncs(&["absolute", "fabs"])
        .on_booleans("{0}"),
    Sign => function("sign", ARITHMETIC, "-1, 0 or 1; z / abs(z) for complex numbers", unary! {
            int |x| Int::signum(x);
            float |x| sign(x);
            complex |z| complex::sign(z);
        })
        .int(Lowering::Expansion(IntExpansion::Sign))
        .float(Lowering::Expansion(FloatExpansion::Sign))
        .complex(call_or("a == 0 ? a : MAKE(creal@(a) / cabs@(a), cimag@(a) / cabs@(a))"))
        .cost(OpCost::ExpensiveOnComplex)
        .derivative(&["0"])
        .no_booleans(),
    Relu => function("relu", REAL_ARITHMETIC, "positive part: max(x, 0)", unary! {
            int |x| x.max(0);
            float |x| if x <= 0.0 { 0.0 } else { x };
        })
        .int(Lowering::Expansion(IntExpansion::Relu))
        .float(Lowering::Expansion(FloatExpansion::Relu))
        .derivative(&["select(x > 0, 1, 0)"]),
    Floor => function("floor", Typing::Rounding, "rounded down", unary! {
            int |x| x;
            float |x| x.floor();
        })
        .int(Lowering::Operand)
        .float(intrinsic("floor", "floor"))
        .derivative(&["0"])
        .on_booleans("{0}"),
    Ceil => function("ceil", Typing::Rounding, "rounded up", unary! {
            int |x| x;
            float |x| x.ceil();
        })
        .int(Lowering::Operand)
        .float(intrinsic("ceil", "ceil"))
        .derivative(&["0"])
        .on_booleans("{0}"),
    // The C library's rounding with ties to even is that of the default rounding mode.
    Round => function("round", Typing::Rounding, "rounded to nearest, ties to even", unary! {
            int |x| x;
            float |x| x.round_ties_even();
        })
        .int(Lowering::Operand)
        .float(intrinsic("roundeven", "rint"))
        .derivative(&["0"])
        .ufuncs(&["rint"])
        .on_booleans("{0}")
        .on_complex("round(real({0})) + round(imag({0})) * 1.0j"),
    Trunc => function("trunc", Typing::Rounding, "rounded towards 0", unary! {
            int |x| x;
            float |x| x.trunc();
        })
        .int(Lowering::Operand)
        .float(intrinsic("trunc", "trunc"))
        .derivative(&["0"])
        .on_booleans("{0}"),
    Sqrt => function("sqrt", FLOAT, "square root", unary! {
            float |x| x.sqrt();
            complex |z| ComplexFloat::sqrt(z);
        })
        .float(intrinsic("sqrt", "sqrt"))
        .complex(library("sqrt"))
        .cost(OpCost::Expensive)
        .derivative(&["0.5 / sqrt(x)"]),
    Cbrt => math("cbrt", REAL_FLOAT, "cube root", unary! { float |x| x.cbrt(); })
        .derivative(&["1 / (3 * cbrt(x) * cbrt(x))"]),
    Exp => elementary("exp", FLOAT, "exponential, e to the power of x", Elementary::Exp, unary! {
            float |x| x.elementary(Elementary::Exp);
            complex |z| complex::exp(z);
        })
        .derivative(&["exp(x)"]),
    Exp2 => elementary("exp2", REAL_FLOAT, "2 to the power of x", Elementary::Exp2, unary! {
            float |x| x.elementary(Elementary::Exp2);
        })
        .derivative(&["0.6931471805599453 * exp2(x)"]),
    Expm1 => elementary("expm1", REAL_FLOAT, "exponential minus 1: exp(x) - 1, exact near 0", Elementary::Expm1, unary! {
            float |x| x.elementary(Elementary::Expm1);
        })
        .derivative(&["exp(x)"])
        .on_complex("exp({0}) - 1"),
    Log => elementary("log", FLOAT, "natural logarithm", Elementary::Log, unary! {
            float |x| x.elementary(Elementary::Log);
            complex |z| complex::log(z);
        })
        .derivative(&["1 / x"]),
    Log2 => elementary("log2", REAL_FLOAT, "binary logarithm", Elementary::Log2, unary! {
            float |x| x.elementary(Elementary::Log2);
        })
        .derivative(&["1.4426950408889634 / x"])
        .on_complex("log({0}) * 1.4426950408889634"),
    Log10 => elementary("log10", REAL_FLOAT, "decimal logarithm", Elementary::Log10, unary! {
            float |x| x.elementary(Elementary::Log10);
        })
        .derivative(&["0.4342944819032518 / x"])
        .on_complex("log({0}) * 0.4342944819032518"),
    Log1p => elementary("log1p", REAL_FLOAT, "logarithm of 1 + x, exact near 0", Elementary::Log1p, unary! {
            float |x| x.elementary(Elementary::Log1p);
        })
        .derivative(&["1 / (1 + x)"])
        .on_complex("log(1 + {0})"),
    Sin => elementary("sin", FLOAT, "sine", Elementary::Sin, unary! {
            float |x| x.elementary(Elementary::Sin);
            complex |z| complex::sin(z);
        })
        .derivative(&["cos(x)"]),
    Cos => elementary("cos", FLOAT, "cosine", Elementary::Cos, unary! {
            float |x| x.elementary(Elementary::Cos);
            complex |z| complex::cos(z);
        })
        .derivative(&["-sin(x)"]),
    Tan => elementary("tan", FLOAT, "tangent", Elementary::Tan, unary! {
            float |x| x.elementary(Elementary::Tan);
            complex |z| complex::tan(z);
        })
        .derivative(&["1 + tan(x) * tan(x)"]),
    Asin => math("asin", FLOAT, "inverse sine", unary! { float |x| x.asin(); complex |z| complex::asin(z); })
        .derivative(&["1 / sqrt(1 - x * x)"])
        .aliases(&["arcsin"])
        .ufuncs(&["arcsin"]),
    Acos => math("acos", FLOAT, "inverse cosine", unary! { float |x| x.acos(); complex |z| complex::acos(z); })
        .derivative(&["-1 / sqrt(1 - x * x)"])
        .aliases(&["arccos"])
        .ufuncs(&["arccos"]),
    Atan => math("atan", FLOAT, "inverse tangent", unary! { float |x| x.atan(); complex |z| complex::atan(z); })
        .derivative(&["1 / (1 + x * x)"])
        .aliases(&["arctan"])
        .ufuncs(&["arctan"]),
    Sinh => math("sinh", FLOAT, "hyperbolic sine", unary! { float |x| x.sinh(); complex |z| complex::sinh(z); })
        .derivative(&["cosh(x)"]),
    Cosh => math("cosh", FLOAT, "hyperbolic cosine", unary! { float |x| x.cosh(); complex |z| complex::cosh(z); })
        .derivative(&["sinh(x)"]),
    Tanh => elementary("tanh", FLOAT, "hyperbolic tangent", Elementary::Tanh, unary! {
            float |x| x.elementary(Elementary::Tanh);
            complex |z| complex::tanh(z);
        })
        .derivative(&["1 - tanh(x) * tanh(x)"]),
    Asinh => math("asinh", FLOAT, "inverse hyperbolic sine", unary! {
            float |x| x.area_sinh();
            complex |z| complex::asinh(z);
        })
        .derivative(&["1 / sqrt(x * x + 1)"])
        .ufuncs(&["arcsinh"]),
    Acosh => math("acosh", FLOAT, "inverse hyperbolic cosine", unary! {
            float |x| x.area_cosh();
            complex |z| complex::acosh(z);
        })
        .derivative(&["1 / (sqrt(x - 1) * sqrt(x + 1))"])
        .ufuncs(&["arccosh"]),
    Atanh => math("atanh", FLOAT, "inverse hyperbolic tangent", unary! {
            float |x| x.atanh();
            complex |z| complex::atanh(z);
        })
        .derivative(&["1 / (1 - x * x)"])
        .ufuncs(&["arctanh"]),
    Sigmoid => elementary("sigmoid", REAL_FLOAT, "logistic function: 1 / (1 + exp(-x))", Elementary::Sigmoid, unary! {
            float |x| x.elementary(Elementary::Sigmoid);
        })
        .derivative(&["sigmoid(x) * (1 - sigmoid(x))"]),
    Erf => elementary("erf", REAL_FLOAT, "error function", Elementary::Erf, unary! {
            float |x| x.elementary(Elementary::Erf);
        })
        .derivative(&["1.1283791670955126 * exp(-x * x)"]),
    Atan2 => math("atan2", REAL_FLOAT, "angle of the point (x, y), written atan2(y, x)", binary! { float |x, y| x.atan2(y); })
        .derivative(&["y / (x * x + y * y)", "-x / (x * x + y * y)"])
        .aliases(&["arctan2"])
        .ufuncs(&["arctan2"]),
    Hypot => math("hypot", REAL_FLOAT, "length of the vector (x, y): sqrt(x*x + y*y)", binary! {
            float |x, y| x.hypot(y);
        })
        .commutative()
        .derivative(&["x / hypot(x, y)", "y / hypot(x, y)"]),
    Logaddexp2 => function(
            "logaddexp2",
            REAL_FLOAT,
            "binary logarithm of a sum of powers: log2(2**x + 2**y)",
            binary! { float |x, y| logaddexp2(x, y); },
        )
        .float(call_or(
            "a == b ? a + 1 : fmax@(a, b) + log1p@(exp2@(-fabs@(a - b))) * (T)1.4426950408889634",
        ))
        .semigroup()
        .identity(Constant::Least)
        .cost(OpCost::Expensive)
        .derivative(&["exp2(x - logaddexp2(x, y))", "exp2(y - logaddexp2(x, y))"]),
    IsNan => OpInfo::new("isnan", Typing::Predicate, "whether any part is NaN", Form::Predicate(Predicate::IsNan))
        .nan(NanPolicy::Ordinary),
    IsInf => OpInfo::new("isinf", Typing::Predicate, "whether any part is infinite", Form::Predicate(Predicate::IsInf))
        .nan(NanPolicy::Ordinary),
    IsFinite => OpInfo::new("isfinite", Typing::Predicate, "neither infinite nor NaN", Form::Predicate(Predicate::IsFinite))
        .nan(NanPolicy::Ordinary),
    Real => function("real", Typing::Part, "real part", unary! {
            int |x| x;
            float |x| x;
            complex |z| z;
        })
        .int(Lowering::Operand)
        .float(Lowering::Operand)
        .complex(Lowering::Expansion(ComplexExpansion::Real))
        .derivative(&["1"]),
    Imag => function("imag", Typing::Part, "imaginary part", unary! {
            int |_x| 0;
            float |_x| 0.0;
            complex |z| Complex::new(z.im, 0.0);
        })
        .int(Lowering::Zero)
        .float(Lowering::Zero)
        .complex(Lowering::Expansion(ComplexExpansion::Imaginary))
        .nan(NanPolicy::Ordinary)
        .derivative(&["0"]),
    Conj => function("conj", ARITHMETIC, "complex conjugate", unary! {
            int |x| x;
            float |x| x;
            complex |z| z.conj();
        })
        .int(Lowering::Operand)
        .float(Lowering::Operand)
        .complex(Lowering::Expansion(ComplexExpansion::Conjugate))
        .derivative(&["1"])
        .aliases(&["conjugate"])
        .ufuncs(&["conjugate"]),
    Select => OpInfo::new("select", Typing::Select, "select(c, a, b): a where c is true, else b", Form::Select)
        .arity(3, 3)
        .nan(NanPolicy::Ordinary)
        .derivative(&["0", "select(x, 1, 0)", "select(x, 0, 1)"])
        .python("where")
        .aliases(&["where", "ifelse"]),
    Coalesce => OpInfo::new("coalesce", Typing::Coalesce, "the first operand that is not missing", Form::Coalesce)
        .arity(1, usize::MAX)
        .nan(NanPolicy::Ordinary)
        .no_python(),
    Choose => OpInfo::new(
            "choose",
            Typing::Choice,
            "choose(a, b): a unless it is 0, else b; choose(a, b, z): a unless it is z",
            Form::Choose,
        )
        .arity(2, 3)
        .nan(NanPolicy::Ordinary)
        .associative()
        .idempotent()
        .identity(Constant::Zero)
        .derivative(&["select(x == 0, 0, 1)", "select(x == 0, 1, 0)"])
        .no_python(),
}

/// The rows of conversions, by their type.
static CONVERSIONS: [OpInfo; DType::ALL.len()] = {
    let mut rows = [conversion(DType::Bool); DType::ALL.len()];
    let mut k = 0;
    while k < rows.len() {
        let dtype = DType::ALL[k];
        rows[dtype as usize] = conversion(dtype);
        k += 1;
    }
    rows
};

const fn conversion(dtype: DType) -> OpInfo {
    let row = OpInfo::new(dtype.name(), Typing::Conversion(dtype), "conversion to a type", Form::Conversion(dtype));
    OpInfo { op: Op::Cast(dtype), ..row.nan(NanPolicy::Ordinary).derivative(&["1"]).no_python() }
}
