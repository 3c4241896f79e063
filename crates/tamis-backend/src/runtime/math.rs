//! Functions on numbers that are too large to be inlined, with exactly the meaning of `algebra::eval`.
//!
//! Each is called `tamis_OPERATOR_TYPE`. Complex numbers come as two reals and leave through a pointer, so that no
//! platform's rules for passing structures matter.

use super::Address;
use num_complex::Complex;
use tamis_ir::algebra::{Op, eval};
use tamis_ir::{DType, Value};

/// The name of the function that computes an operator in a type.
pub(crate) fn name(op: Op, dtype: DType) -> String {
    format!("tamis_{}_{dtype}", op.info().name)
}

/// Rows for the real functions of a type, which are methods of it.
macro_rules! real {
    ($t:ident $suffix:literal: $($name:literal $method:ident)*; $($name2:literal $method2:ident)*) => {&[
        $((concat!("tamis_", $name, $suffix), Address({
            extern "C" fn function(x: $t) -> $t {
                x.$method()
            }
            function as *const ()
        })),)*
        $((concat!("tamis_", $name2, $suffix), Address({
            extern "C" fn function(x: $t, y: $t) -> $t {
                x.$method2(y)
            }
            function as *const ()
        })),)*
    ]};
}

macro_rules! real_functions {
    ($t:ident $suffix:literal) => {
        real!($t $suffix:
            "cbrt" cbrt "exp" exp "exp2" exp2 "expm1" exp_m1 "log" ln "log2" log2 "log10" log10 "log1p" ln_1p
            "sin" sin "cos" cos "tan" tan "asin" asin "acos" acos "atan" atan
            "sinh" sinh "cosh" cosh "tanh" tanh "atanh" atanh;
            "pow" powf "atan2" atan2 "hypot" hypot)
    };
}

/// Rows for functions of one number that are evaluated by their definition.
macro_rules! evaluated_unary {
    ($t:ident $value:ident $suffix:literal: $($name:literal $op:ident)*) => {&[
        $((concat!("tamis_", $name, $suffix), Address({
            extern "C" fn function(x: $t) -> $t {
                match eval(Op::$op, DType::$value, &[Value::$value(x)]) {
                    Value::$value(z) => z,
                    _ => x,
                }
            }
            function as *const ()
        })),)*
    ]};
}

/// Rows for operators that are evaluated by their definition.
macro_rules! evaluated {
    ($t:ident $value:ident $suffix:literal: $($name:literal $op:ident)*) => {&[
        $((concat!("tamis_", $name, $suffix), Address({
            extern "C" fn function(x: $t, y: $t) -> $t {
                match eval(Op::$op, DType::$value, &[Value::$value(x), Value::$value(y)]) {
                    Value::$value(z) => z,
                    _ => x,
                }
            }
            function as *const ()
        })),)*
    ]};
}

macro_rules! complex {
    ($t:ident $value:ident $suffix:literal: $($name:literal $op:ident)*) => {&[
        $((concat!("tamis_", $name, $suffix), Address({
            /// # Safety
            /// There is room for two numbers at `out`.
            unsafe extern "C" fn function(re: $t, im: $t, out: *mut $t) {
                let result = eval(Op::$op, DType::$value, &[Value::$value(Complex::new(re, im))]);
                if let Value::$value(z) = result {
                    // SAFETY: promised by the caller.
                    unsafe { (out.write(z.re), out.add(1).write(z.im)) };
                }
            }
            function as *const ()
        })),)*
        (concat!("tamis_pow", $suffix), Address({
            /// # Safety
            /// There is room for two numbers at `out`.
            unsafe extern "C" fn function(a: $t, b: $t, c: $t, d: $t, out: *mut $t) {
                let operands = [Value::$value(Complex::new(a, b)), Value::$value(Complex::new(c, d))];
                if let Value::$value(z) = eval(Op::Pow, DType::$value, &operands) {
                    // SAFETY: promised by the caller.
                    unsafe { (out.write(z.re), out.add(1).write(z.im)) };
                }
            }
            function as *const ()
        })),
        (concat!("tamis_div", $suffix), Address({
            /// # Safety
            /// There is room for two numbers at `out`.
            unsafe extern "C" fn function(a: $t, b: $t, c: $t, d: $t, out: *mut $t) {
                let operands = [Value::$value(Complex::new(a, b)), Value::$value(Complex::new(c, d))];
                if let Value::$value(z) = eval(Op::Div, DType::$value, &operands) {
                    // SAFETY: promised by the caller.
                    unsafe { (out.write(z.re), out.add(1).write(z.im)) };
                }
            }
            function as *const ()
        })),
    ]};
}

macro_rules! complex_functions {
    ($t:ident $value:ident $suffix:literal) => {
        complex!($t $value $suffix:
            "sqrt" Sqrt "exp" Exp "log" Log "sin" Sin "cos" Cos "tan" Tan "asin" Asin "acos" Acos "atan" Atan
            "sinh" Sinh "cosh" Cosh "tanh" Tanh "asinh" Asinh "acosh" Acosh "atanh" Atanh "sign" Sign)
    };
}

pub(super) static SYMBOLS: &[&[(&str, Address)]] = &[
    real_functions!(f32 "_f32"),
    real_functions!(f64 "_f64"),
    evaluated_unary!(f32 F32 "_f32": "asinh" Asinh "acosh" Acosh),
    evaluated_unary!(f64 F64 "_f64": "asinh" Asinh "acosh" Acosh),
    evaluated!(f32 F32 "_f32": "floordiv" FloorDiv "mod" Mod),
    evaluated!(f64 F64 "_f64": "floordiv" FloorDiv "mod" Mod),
    // Narrower integers are extended: the low bits of a power are a power of the low bits.
    evaluated!(i64 I64 "_i64": "pow" Pow),
    evaluated!(u64 U64 "_u64": "pow" Pow),
    complex_functions!(f32 C64 "_c64"),
    complex_functions!(f64 C128 "_c128"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::algebra::TABLE;

    /// The methods are what the definition calls.
    #[test]
    fn real_functions_are_the_operators() {
        for (symbol, address) in SYMBOLS[1] {
            let operator = symbol.trim_start_matches("tamis_").trim_end_matches("_f64");
            let op = TABLE.iter().find(|row| row.name == operator).unwrap().op;
            for x in [-2.5, -1.0, -0.3, -0.0, 0.0, 0.7, 1.0, 3.0, 1e300, f64::INFINITY, f64::NAN] {
                let (got, expected) = if op.info().arity.0 == 1 {
                    // SAFETY: the rows of unary operators are functions of this type.
                    let f: extern "C" fn(f64) -> f64 = unsafe { std::mem::transmute(address.0) };
                    (f(x), eval(op, DType::F64, &[Value::F64(x)]))
                } else {
                    // SAFETY: the rows of binary operators are functions of this type.
                    let f: extern "C" fn(f64, f64) -> f64 = unsafe { std::mem::transmute(address.0) };
                    (f(x, 1.5), eval(op, DType::F64, &[Value::F64(x), Value::F64(1.5)]))
                };
                assert!(Value::F64(got).same_number(expected), "{symbol}({x}) = {got}, not {expected}");
            }
        }
    }
}
