//! LLVM IR of operators on operands of one type: instruction selection and dispatch by kind.

use super::{Emitter, Val};
use crate::runtime::math;
use tamis_ir::algebra::{BoolExpansion, ComplexExpansion, Elementwise, FloatExpansion, Form, IntExpansion};
use tamis_ir::algebra::{Lowering, Op};
use tamis_ir::{DType, Kind, Value};

impl Emitter<'_> {
    /// Applies an elementwise operator to operands of its type. `divisor` is the second operand, if
    /// it is a constant.
    pub(super) fn elementwise(
        &mut self,
        op: Op,
        lowerings: &Elementwise,
        dtype: DType,
        operands: &[Val],
        divisor: Option<Value>,
    ) -> Val {
        let mut apply = |operands: &[&Val]| match dtype.kind() {
            Kind::Bool => self.lower(op, lowerings.bool, dtype, operands, None),
            Kind::Int => self.lower(op, lowerings.int, dtype, operands, divisor),
            Kind::Float => self.lower(op, lowerings.float, dtype, operands, None),
            Kind::Complex => self.lower(op, lowerings.complex, dtype, operands, None),
        };
        match operands {
            [a] => apply(&[a]),
            // Operators of many operands fold them from the left.
            _ => {
                let mut folded = operands[0].clone();
                for operand in &operands[1..] {
                    folded = apply(&[&folded, operand]);
                }
                folded
            }
        }
    }

    /// Applies an operator that is known to be elementwise.
    pub(super) fn apply(&mut self, op: Op, dtype: DType, operands: &[Val], divisor: Option<Value>) -> Val {
        match &op.info().form {
            Form::Elementwise(lowerings) => self.elementwise(op, lowerings, dtype, operands, divisor),
            _ => self.constant(Value::zero(dtype)),
        }
    }

    /// An operator on one or two operands of one kind.
    fn lower<E: ExpandInLlvm>(
        &mut self,
        op: Op,
        lowering: Lowering<E>,
        dtype: DType,
        operands: &[&Val],
        divisor: Option<Value>,
    ) -> Val {
        match lowering {
            // The verifier rejects such a kernel.
            Lowering::Never | Lowering::Zero => {
                let zero = self.constant(Value::zero(dtype));
                self.broadcast(&zero, dtype, 1)
            }
            Lowering::Operand => operands[0].clone(),
            Lowering::Instruction { llvm, .. } => self.on_parts(operands, |e, parts| e.instruction(llvm, dtype, parts)),
            Lowering::Intrinsic { llvm, .. } => {
                let prefix = match dtype.kind() {
                    Kind::Int if dtype.is_signed_int() => "s",
                    Kind::Int => "u",
                    _ => "",
                };
                self.on_parts(operands, |e, parts| e.intrinsic(&format!("{prefix}{llvm}"), dtype, parts))
            }
            Lowering::Call { .. } if dtype.kind() == Kind::Complex => {
                let parts: Vec<&str> = operands.iter().flat_map(|value| [value.re(), value.im()]).collect();
                self.call_complex(op, dtype, &parts)
            }
            Lowering::Call { .. } => self.on_parts(operands, |e, parts| e.call_runtime(op, dtype, parts)),
            Lowering::Expansion(expansion) => expansion.expand(self, dtype, operands, divisor),
        }
    }

    /// Applies an instruction to each part of the operands.
    fn on_parts(&mut self, operands: &[&Val], mut apply: impl FnMut(&mut Self, &[&str]) -> String) -> Val {
        let re: Vec<&str> = operands.iter().map(|value| value.re()).collect();
        match operands[0] {
            Val::One(_) => Val::One(apply(self, &re)),
            Val::Two(..) => {
                let im: Vec<&str> = operands.iter().map(|value| value.im()).collect();
                Val::Two(apply(self, &re), apply(self, &im))
            }
        }
    }

    /// An instruction with the flags of this place.
    pub(super) fn instruction(&mut self, name: &str, dtype: DType, operands: &[&str]) -> String {
        let flags = match (dtype.kind(), name) {
            // Not reassociated: a/b*c must not become a*c/b, whose range differs. A sign is exact.
            (_, "fdiv" | "fneg") => "",
            (Kind::Float | Kind::Complex, _) => self.flags,
            (Kind::Int, "add" | "sub" | "mul") if self.index => "nsw ",
            _ => "",
        };
        let ty = self.ty(dtype);
        self.op(format!("{name} {flags}{ty} {}", operands.join(", ")))
    }

    /// Calls a function of LLVM whose operands and result have one type.
    pub(super) fn intrinsic(&mut self, function: &str, dtype: DType, operands: &[&str]) -> String {
        let ty = self.ty(dtype);
        let name = format!("llvm.{function}.{}", self.mangled(dtype));
        let types = vec![ty.to_string(); operands.len()].join(", ");
        self.declare(&name, || format!("declare {ty} @{name}({types})"));
        let arguments: Vec<String> = operands.iter().map(|operand| format!("{ty} {operand}")).collect();
        self.op(format!("call {ty} @{name}({})", arguments.join(", ")))
    }

    /// Calls a runtime function on real numbers, lane by lane.
    pub(super) fn call_runtime(&mut self, op: Op, dtype: DType, operands: &[&str]) -> String {
        if self.lanes > 1 {
            let operands: Vec<(Val, DType)> =
                operands.iter().map(|operand| (Val::One(operand.to_string()), dtype)).collect();
            let call = |e: &mut Self, operands: &[Val]| {
                let operands: Vec<&str> = operands.iter().map(|operand| operand.re()).collect();
                Val::One(e.call_runtime(op, dtype, &operands))
            };
            return self.each_lane(dtype, &operands, call).re().to_string();
        }
        let ty = self.ty(dtype);
        let name = math::name(op, dtype);
        let types = vec![ty.to_string(); operands.len()].join(", ");
        self.declare(&name, || format!("declare {ty} @{name}({types}) nounwind willreturn memory(none)"));
        let arguments: Vec<String> = operands.iter().map(|operand| format!("{ty} {operand}")).collect();
        self.op(format!("call {ty} @{name}({})", arguments.join(", ")))
    }

    fn expand_int(
        &mut self,
        expansion: IntExpansion,
        dtype: DType,
        a: &str,
        b: &str,
        divisor: Option<Value>,
    ) -> String {
        let (ty, bit) = (self.ty(dtype), self.ty(DType::Bool));
        let (signed, zero) = (dtype.is_signed_int(), self.all(dtype, 0));
        match expansion {
            IntExpansion::Negate => self.op(format!("sub {ty} {zero}, {a}")),
            IntExpansion::Complement => {
                let ones = self.all(dtype, -1);
                self.op(format!("xor {ty} {a}, {ones}"))
            }
            IntExpansion::Abs if signed => {
                let negative = self.op(format!("sub {ty} {zero}, {a}"));
                let below = self.op(format!("icmp slt {ty} {a}, {zero}"));
                self.op(format!("select {bit} {below}, {ty} {negative}, {ty} {a}"))
            }
            IntExpansion::Relu if signed => self.intrinsic("smax", dtype, &[a, &zero]),
            IntExpansion::Abs | IntExpansion::Relu => a.to_string(),
            IntExpansion::Sign => {
                let above = self.op(format!("icmp {} {ty} {a}, {zero}", if signed { "sgt" } else { "ne" }));
                let above = self.op(format!("zext {bit} {above} to {ty}"));
                if !signed {
                    return above;
                }
                let by = self.all(dtype, 8 * dtype.size() - 1);
                let below = self.op(format!("ashr {ty} {a}, {by}"));
                self.op(format!("or {ty} {above}, {below}"))
            }
            IntExpansion::FloorDivide | IntExpansion::Modulo => self.divide(expansion, dtype, a, b, divisor),
            IntExpansion::Power => self.int_power(dtype, a, b),
            IntExpansion::ShiftLeft => {
                // Negative amounts are large unsigned ones.
                let (fits, amount) = self.shift_amount(dtype, b);
                let shifted = self.op(format!("shl {ty} {a}, {amount}"));
                self.op(format!("select {bit} {fits}, {ty} {shifted}, {ty} {zero}"))
            }
            IntExpansion::ShiftRight if signed => {
                let most = self.all(dtype, 8 * dtype.size() - 1);
                let amount = self.intrinsic("umin", dtype, &[b, &most]);
                self.op(format!("ashr {ty} {a}, {amount}"))
            }
            IntExpansion::ShiftRight => {
                let (fits, amount) = self.shift_amount(dtype, b);
                let shifted = self.op(format!("lshr {ty} {a}, {amount}"));
                self.op(format!("select {bit} {fits}, {ty} {shifted}, {ty} {zero}"))
            }
        }
    }

    /// A test that a shift amount is below the width, and the amount clamped to it.
    fn shift_amount(&mut self, dtype: DType, b: &str) -> (String, String) {
        let ty = self.ty(dtype);
        let width = 8 * dtype.size();
        let (width, most) = (self.all(dtype, width), self.all(dtype, width - 1));
        let fits = self.op(format!("icmp ult {ty} {b}, {width}"));
        (fits, self.op(format!("and {ty} {b}, {most}")))
    }

    /// `//` and `%`: rounded down, 0 where the divisor is 0, and never a trap.
    fn divide(&mut self, op: IntExpansion, dtype: DType, a: &str, b: &str, divisor: Option<Value>) -> String {
        let (ty, bit) = (self.ty(dtype), self.ty(DType::Bool));
        let (signed, none) = (dtype.is_signed_int(), self.all(dtype, 0));
        let known = divisor.and_then(|value| value.as_i64()).filter(|x| *x != 0 && *x != -1);
        if let Some(x) = known.filter(|x| *x > 0 && x.count_ones() == 1) {
            let (mask, by) = (self.all(dtype, x - 1), self.all(dtype, x.trailing_zeros()));
            return match op {
                IntExpansion::Modulo => self.op(format!("and {ty} {a}, {mask}")),
                _ => self.op(format!("{} {ty} {a}, {by}", if signed { "ashr" } else { "lshr" })),
            };
        }
        let (quotient, rest) = if signed { ("sdiv", "srem") } else { ("udiv", "urem") };
        // A divisor that does not trap, in place of 0 and (for the minimum) -1; for the latter, 1
        // gives the same result.
        let (zero, safe) = if known.is_some() {
            (None, b.to_string())
        } else {
            let zero = self.op(format!("icmp eq {ty} {b}, {none}"));
            let mut traps = zero.clone();
            if signed {
                let (least, ones) = (self.all(dtype, i64::MIN >> (64 - 8 * dtype.size())), self.all(dtype, -1));
                let is_least = self.op(format!("icmp eq {ty} {a}, {least}"));
                let minus_one = self.op(format!("icmp eq {ty} {b}, {ones}"));
                let overflows = self.op(format!("and {bit} {is_least}, {minus_one}"));
                traps = self.op(format!("or {bit} {zero}, {overflows}"));
            }
            let one = self.all(dtype, 1);
            let safe = self.op(format!("select {bit} {traps}, {ty} {one}, {ty} {b}"));
            (Some(zero), safe)
        };
        let r = self.op(format!("{rest} {ty} {a}, {safe}"));
        let result = match (op, signed) {
            (IntExpansion::Modulo, false) => r,
            (_, false) => self.op(format!("{quotient} {ty} {a}, {safe}")),
            (_, true) => {
                let some = self.op(format!("icmp ne {ty} {r}, {none}"));
                let signs = self.op(format!("xor {ty} {r}, {safe}"));
                let differ = self.op(format!("icmp slt {ty} {signs}, {none}"));
                let adjust = self.op(format!("and {bit} {some}, {differ}"));
                if op == IntExpansion::Modulo {
                    let more = self.op(format!("add {ty} {r}, {safe}"));
                    self.op(format!("select {bit} {adjust}, {ty} {more}, {ty} {r}"))
                } else {
                    let q = self.op(format!("{quotient} {ty} {a}, {safe}"));
                    let less = self.op(format!("sext {bit} {adjust} to {ty}"));
                    self.op(format!("add {ty} {q}, {less}"))
                }
            }
        };
        match zero {
            Some(zero) => self.op(format!("select {bit} {zero}, {ty} {none}, {ty} {result}")),
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

/// True if an operator on a type calls the runtime library, or takes as long as a call.
pub(super) fn is_called(op: Op, dtype: DType) -> bool {
    let Form::Elementwise(lowerings) = &op.info().form else { return false };
    match dtype.kind() {
        Kind::Bool => matches!(lowerings.bool, Lowering::Call { .. }),
        Kind::Int => matches!(lowerings.int, Lowering::Call { .. } | Lowering::Expansion(IntExpansion::Power)),
        Kind::Float => {
            matches!(lowerings.float, Lowering::Call { .. } | Lowering::Expansion(FloatExpansion::Elementary(_)))
        }
        Kind::Complex => {
            matches!(lowerings.complex, Lowering::Call { .. } | Lowering::Expansion(ComplexExpansion::Abs))
        }
    }
}

/// True if an elementwise operator on a type has instructions on vectors: it is no function of the
/// runtime library, and no division of integers.
pub(super) fn has_vector_form(op: Op, dtype: DType) -> bool {
    let Form::Elementwise(lowerings) = &op.info().form else { return false };
    match dtype.kind() {
        Kind::Bool => !matches!(lowerings.bool, Lowering::Call { .. }),
        Kind::Int => !matches!(
            lowerings.int,
            Lowering::Call { .. }
                | Lowering::Expansion(IntExpansion::Power | IntExpansion::FloorDivide | IntExpansion::Modulo)
        ),
        Kind::Float => !matches!(lowerings.float, Lowering::Call { .. }),
        Kind::Complex => false,
    }
}

/// An expansion of an operator into instructions.
trait ExpandInLlvm {
    fn expand(self, emitter: &mut Emitter<'_>, dtype: DType, operands: &[&Val], divisor: Option<Value>) -> Val;
}

impl ExpandInLlvm for BoolExpansion {
    fn expand(self, emitter: &mut Emitter<'_>, _: DType, operands: &[&Val], _: Option<Value>) -> Val {
        match self {
            BoolExpansion::Not => Val::One(emitter.not(operands[0].re())),
        }
    }
}

impl ExpandInLlvm for IntExpansion {
    fn expand(self, emitter: &mut Emitter<'_>, dtype: DType, operands: &[&Val], divisor: Option<Value>) -> Val {
        let b = operands.get(1).map_or("", |b| b.re());
        Val::One(emitter.expand_int(self, dtype, operands[0].re(), b, divisor))
    }
}

impl ExpandInLlvm for FloatExpansion {
    fn expand(self, emitter: &mut Emitter<'_>, dtype: DType, operands: &[&Val], _: Option<Value>) -> Val {
        let operands: Vec<&str> = operands.iter().map(|operand| operand.re()).collect();
        Val::One(emitter.expand_float(self, dtype, &operands))
    }
}

impl ExpandInLlvm for ComplexExpansion {
    fn expand(self, emitter: &mut Emitter<'_>, dtype: DType, operands: &[&Val], _: Option<Value>) -> Val {
        emitter.expand_complex(self, dtype, operands)
    }
}
