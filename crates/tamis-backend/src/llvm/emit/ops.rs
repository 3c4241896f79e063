//! Operators on operands of one type: which instructions they are.

use super::{Emitter, Val, ty};
use crate::runtime::math;
use tamis_ir::algebra::Op;
use tamis_ir::{DType, Kind, Value};

impl Emitter<'_> {
    /// Applies an operator to operands of its type. `divisor` is the second operand, if it is a constant.
    pub(super) fn apply(&mut self, op: Op, dtype: DType, operands: &[Val], divisor: Option<Value>) -> Val {
        let mut folded = operands[0].clone();
        if operands.len() == 1 {
            return match dtype.kind() {
                Kind::Bool => Val::One(match op {
                    Op::BitNot => self.op(format!("xor i1 {}, true", folded.re())),
                    Op::Imag => "false".into(),
                    _ => folded.re().to_string(),
                }),
                Kind::Int => Val::One(self.int_unary(op, dtype, folded.re())),
                Kind::Float => Val::One(self.float_unary(op, dtype, folded.re())),
                Kind::Complex => self.complex_unary(op, dtype, &folded),
            };
        }
        for operand in &operands[1..] {
            folded = match dtype.kind() {
                Kind::Bool => Val::One(self.bool_binary(op, folded.re(), operand.re())),
                Kind::Int => Val::One(self.int_binary(op, dtype, folded.re(), operand.re(), divisor)),
                Kind::Float => Val::One(self.float_binary(op, dtype, folded.re(), operand.re())),
                Kind::Complex => self.complex_binary(op, dtype, &folded, operand),
            };
        }
        folded
    }

    /// Whether an operator is a call of the runtime.
    pub(super) fn is_called(op: Op, dtype: DType) -> bool {
        let real = matches!(
            op,
            Op::Cbrt
                | Op::Exp
                | Op::Exp2
                | Op::Expm1
                | Op::Log
                | Op::Log2
                | Op::Log10
                | Op::Log1p
                | Op::Sin
                | Op::Cos
                | Op::Tan
                | Op::Asin
                | Op::Acos
                | Op::Atan
                | Op::Sinh
                | Op::Cosh
                | Op::Tanh
                | Op::Asinh
                | Op::Acosh
                | Op::Atanh
                | Op::Sigmoid
                | Op::Pow
                | Op::Atan2
                | Op::Hypot
        );
        real || match dtype.kind() {
            Kind::Float => matches!(op, Op::FloorDiv | Op::Mod),
            Kind::Complex => matches!(op, Op::Sqrt | Op::Abs | Op::Sign),
            _ => false,
        }
    }

    /// Calls a function of LLVM whose operands and result have one type.
    pub(super) fn intrinsic(&mut self, function: &str, dtype: DType, operands: &[&str]) -> String {
        let ty = ty(dtype);
        let letter = if dtype.kind() == Kind::Float { "f" } else { "i" };
        let name = format!("llvm.{function}.{letter}{}", 8 * dtype.size());
        let types = vec![ty; operands.len()].join(", ");
        self.declare(&name, || format!("declare {ty} @{name}({types})"));
        let arguments: Vec<String> = operands.iter().map(|operand| format!("{ty} {operand}")).collect();
        self.op(format!("call {ty} @{name}({})", arguments.join(", ")))
    }

    /// Calls a function of the runtime on real numbers.
    pub(super) fn call_runtime(&mut self, op: Op, dtype: DType, operands: &[&str]) -> String {
        let ty = ty(dtype);
        let name = math::name(op, dtype);
        let types = vec![ty; operands.len()].join(", ");
        self.declare(&name, || format!("declare {ty} @{name}({types}) nounwind willreturn memory(none)"));
        let arguments: Vec<String> = operands.iter().map(|operand| format!("{ty} {operand}")).collect();
        self.op(format!("call {ty} @{name}({})", arguments.join(", ")))
    }

    fn bool_binary(&mut self, op: Op, a: &str, b: &str) -> String {
        self.op(match op {
            Op::Min | Op::BitAnd => format!("and i1 {a}, {b}"),
            Op::Max | Op::BitOr => format!("or i1 {a}, {b}"),
            _ => format!("xor i1 {a}, {b}"),
        })
    }

    fn int_unary(&mut self, op: Op, dtype: DType, a: &str) -> String {
        let ty = ty(dtype);
        let signed = dtype.is_signed_int();
        match op {
            Op::Neg => self.op(format!("sub {ty} 0, {a}")),
            Op::BitNot => self.op(format!("xor {ty} {a}, -1")),
            Op::Abs if signed => {
                let negative = self.op(format!("sub {ty} 0, {a}"));
                let below = self.op(format!("icmp slt {ty} {a}, 0"));
                self.op(format!("select i1 {below}, {ty} {negative}, {ty} {a}"))
            }
            Op::Relu if signed => self.intrinsic("smax", dtype, &[a, "0"]),
            Op::Sign => {
                let above = self.op(format!("icmp {} {ty} {a}, 0", if signed { "sgt" } else { "ne" }));
                let above = self.op(format!("zext i1 {above} to {ty}"));
                if !signed {
                    return above;
                }
                let below = self.op(format!("ashr {ty} {a}, {}", 8 * dtype.size() - 1));
                self.op(format!("or {ty} {above}, {below}"))
            }
            Op::Imag => "0".into(),
            _ => a.to_string(),
        }
    }

    fn int_binary(&mut self, op: Op, dtype: DType, a: &str, b: &str, divisor: Option<Value>) -> String {
        let ty = ty(dtype);
        let signed = dtype.is_signed_int();
        let no_overflow = if self.index { " nsw" } else { "" };
        match op {
            Op::Add => self.op(format!("add{no_overflow} {ty} {a}, {b}")),
            Op::Sub => self.op(format!("sub{no_overflow} {ty} {a}, {b}")),
            Op::Mul => self.op(format!("mul{no_overflow} {ty} {a}, {b}")),
            Op::BitAnd => self.op(format!("and {ty} {a}, {b}")),
            Op::BitOr => self.op(format!("or {ty} {a}, {b}")),
            Op::BitXor => self.op(format!("xor {ty} {a}, {b}")),
            Op::Min => self.intrinsic(if signed { "smin" } else { "umin" }, dtype, &[a, b]),
            Op::Max => self.intrinsic(if signed { "smax" } else { "umax" }, dtype, &[a, b]),
            Op::FloorDiv | Op::Mod => self.divide(op, dtype, a, b, divisor),
            Op::Pow => self.int_power(dtype, a, b),
            Op::Shl => {
                // Negative amounts are large unsigned ones.
                let (fits, amount) = self.shift_amount(dtype, b);
                let shifted = self.op(format!("shl {ty} {a}, {amount}"));
                self.op(format!("select i1 {fits}, {ty} {shifted}, {ty} 0"))
            }
            _ if signed => {
                let most = (8 * dtype.size() - 1).to_string();
                let amount = self.intrinsic("umin", dtype, &[b, &most]);
                self.op(format!("ashr {ty} {a}, {amount}"))
            }
            _ => {
                let (fits, amount) = self.shift_amount(dtype, b);
                let shifted = self.op(format!("lshr {ty} {a}, {amount}"));
                self.op(format!("select i1 {fits}, {ty} {shifted}, {ty} 0"))
            }
        }
    }

    /// Whether a shift is by less than the width, and an amount that always is.
    fn shift_amount(&mut self, dtype: DType, b: &str) -> (String, String) {
        let ty = ty(dtype);
        let width = 8 * dtype.size();
        let fits = self.op(format!("icmp ult {ty} {b}, {width}"));
        (fits, self.op(format!("and {ty} {b}, {}", width - 1)))
    }

    /// `//` and `%`: rounded down, 0 where the divisor is 0, and never a trap.
    fn divide(&mut self, op: Op, dtype: DType, a: &str, b: &str, divisor: Option<Value>) -> String {
        let ty = ty(dtype);
        let signed = dtype.is_signed_int();
        let known = divisor.and_then(|value| value.as_i64()).filter(|x| *x != 0 && *x != -1);
        if let Some(x) = known.filter(|x| *x > 0 && x.count_ones() == 1) {
            return match op {
                Op::Mod => self.op(format!("and {ty} {a}, {}", x - 1)),
                _ => self.op(format!("{} {ty} {a}, {}", if signed { "ashr" } else { "lshr" }, x.trailing_zeros())),
            };
        }
        let (quotient, rest) = if signed { ("sdiv", "srem") } else { ("udiv", "urem") };
        // A divisor that does not trap, in place of 0 and (for the least number) -1; 1 gives the right answer for the latter.
        let (zero, safe) = if known.is_some() {
            (None, b.to_string())
        } else {
            let zero = self.op(format!("icmp eq {ty} {b}, 0"));
            let mut traps = zero.clone();
            if signed {
                let least = (i64::MIN >> (64 - 8 * dtype.size())).to_string();
                let is_least = self.op(format!("icmp eq {ty} {a}, {least}"));
                let minus_one = self.op(format!("icmp eq {ty} {b}, -1"));
                let overflows = self.op(format!("and i1 {is_least}, {minus_one}"));
                traps = self.op(format!("or i1 {zero}, {overflows}"));
            }
            let safe = self.op(format!("select i1 {traps}, {ty} 1, {ty} {b}"));
            (Some(zero), safe)
        };
        let r = self.op(format!("{rest} {ty} {a}, {safe}"));
        let result = match (op, signed) {
            (Op::Mod, false) => r,
            (_, false) => self.op(format!("{quotient} {ty} {a}, {safe}")),
            (_, true) => {
                let some = self.op(format!("icmp ne {ty} {r}, 0"));
                let signs = self.op(format!("xor {ty} {r}, {safe}"));
                let differ = self.op(format!("icmp slt {ty} {signs}, 0"));
                let adjust = self.op(format!("and i1 {some}, {differ}"));
                if op == Op::Mod {
                    let more = self.op(format!("add {ty} {r}, {safe}"));
                    self.op(format!("select i1 {adjust}, {ty} {more}, {ty} {r}"))
                } else {
                    let q = self.op(format!("{quotient} {ty} {a}, {safe}"));
                    let less = self.op(format!("sext i1 {adjust} to {ty}"));
                    self.op(format!("add {ty} {q}, {less}"))
                }
            }
        };
        match zero {
            Some(zero) => self.op(format!("select i1 {zero}, {ty} 0, {ty} {result}")),
            None => result,
        }
    }

    fn int_power(&mut self, dtype: DType, a: &str, b: &str) -> String {
        let wide = if dtype.is_signed_int() { DType::I64 } else { DType::U64 };
        let (x, y) = (Val::One(a.to_string()), Val::One(b.to_string()));
        let (x, y) = (self.cast(&x, dtype, wide), self.cast(&y, dtype, wide));
        let power = self.call_runtime(Op::Pow, wide, &[x.re(), y.re()]);
        self.cast(&Val::One(power), wide, dtype).re().to_string()
    }
}
