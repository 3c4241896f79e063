//! Expansions of operators on floats and complex numbers, and calls of the runtime library.

use super::{Emitter, Val, ty};
use crate::runtime::math;
use tamis_ir::DType;
use tamis_ir::algebra::{ComplexExpansion, FloatExpansion, Op};

impl Emitter<'_> {
    pub(super) fn expand_float(&mut self, expansion: FloatExpansion, dtype: DType, operands: &[&str]) -> String {
        let a = operands[0];
        let (ty, bit) = (self.ty(dtype), self.ty(DType::Bool));
        let (zero, one) = (self.all(dtype, "0.0"), self.all(dtype, "1.0"));
        match expansion {
            FloatExpansion::Relu => {
                let below = self.op(format!("fcmp ole {ty} {a}, {zero}"));
                self.op(format!("select {bit} {below}, {ty} {zero}, {ty} {a}"))
            }
            FloatExpansion::Sign => {
                // Zeros and NaN are their own sign: neither is less or greater than 0.
                let ordered = self.op(format!("fcmp one {ty} {a}, {zero}"));
                let sign = self.intrinsic("copysign", dtype, &[&one, a]);
                self.op(format!("select {bit} {ordered}, {ty} {sign}, {ty} {a}"))
            }
            FloatExpansion::Elementary(function) => self.elementary(function, dtype, operands),
        }
    }

    pub(super) fn expand_complex(&mut self, expansion: ComplexExpansion, dtype: DType, operands: &[&Val]) -> Val {
        let ty = self.ty(dtype);
        let (a, b) = (operands[0].re(), operands[0].im());
        match expansion {
            ComplexExpansion::Multiply => {
                let (c, d) = (operands[1].re(), operands[1].im());
                let mut product = |x: &str, y: &str| self.instruction("fmul", dtype, &[x, y]);
                let (ac, bd, ad, bc) = (product(a, c), product(b, d), product(a, d), product(b, c));
                let re = self.instruction("fsub", dtype, &[&ac, &bd]);
                Val::Two(re, self.instruction("fadd", dtype, &[&ad, &bc]))
            }
            ComplexExpansion::Abs => Val::One(self.call_runtime(Op::Hypot, dtype.real(), &[a, b])),
            ComplexExpansion::Conjugate => Val::Two(a.to_string(), self.op(format!("fneg {ty} {b}"))),
            ComplexExpansion::Real => Val::One(a.to_string()),
            ComplexExpansion::Imaginary => Val::One(b.to_string()),
        }
    }

    /// Calls a function of the runtime on complex numbers, lane by lane; the result comes through
    /// memory.
    pub(super) fn call_complex(&mut self, op: Op, dtype: DType, parts: &[&str]) -> Val {
        if self.lanes > 1 {
            let parts: Vec<(Val, DType)> =
                parts.iter().map(|part| (Val::One(part.to_string()), dtype.real())).collect();
            return self.each_lane(dtype, &parts, |e, parts| {
                let parts: Vec<&str> = parts.iter().map(|part| part.re()).collect();
                e.call_complex(op, dtype, &parts)
            });
        }
        let ty = ty(dtype);
        let name = math::name(op, dtype);
        let types = vec![ty; parts.len()].join(", ");
        self.declare(&name, || {
            format!("declare void @{name}({types}, ptr nocapture writeonly) nounwind willreturn memory(argmem: write)")
        });
        let out = self.fresh("out");
        self.at_entry(format!("%{out} = alloca [2 x {ty}]"));
        let arguments: Vec<String> = parts.iter().map(|part| format!("{ty} {part}")).collect();
        self.line(format!("call void @{name}({}, ptr %{out})", arguments.join(", ")));
        let re = self.op(format!("load {ty}, ptr %{out}"));
        let address = self.op(format!("getelementptr {ty}, ptr %{out}, i64 1"));
        Val::Two(re, self.op(format!("load {ty}, ptr {address}")))
    }
}
