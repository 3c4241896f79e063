//! Operators on floats and complex numbers.

use super::{Emitter, Val, ty};
use crate::runtime::math;
use tamis_ir::DType;
use tamis_ir::algebra::Op;

impl Emitter<'_> {
    /// An instruction on floats, with the flags of this place.
    fn arithmetic(&mut self, instruction: &str, dtype: DType, a: &str, b: &str) -> String {
        let flags = self.flags;
        self.op(format!("{instruction} {flags}{} {a}, {b}", ty(dtype)))
    }

    pub(super) fn float_binary(&mut self, op: Op, dtype: DType, a: &str, b: &str) -> String {
        match op {
            Op::Add => self.arithmetic("fadd", dtype, a, b),
            Op::Sub => self.arithmetic("fsub", dtype, a, b),
            Op::Mul => self.arithmetic("fmul", dtype, a, b),
            // Not reassociated: a/b*c must not become a*c/b, whose range differs.
            Op::Div => self.op(format!("fdiv {} {a}, {b}", ty(dtype))),
            Op::Min => self.intrinsic("minimum", dtype, &[a, b]),
            Op::Max => self.intrinsic("maximum", dtype, &[a, b]),
            _ => self.call_runtime(op, dtype, &[a, b]),
        }
    }

    pub(super) fn float_unary(&mut self, op: Op, dtype: DType, a: &str) -> String {
        let ty = ty(dtype);
        match op {
            Op::Neg => self.op(format!("fneg {ty} {a}")),
            Op::Abs => self.intrinsic("fabs", dtype, &[a]),
            Op::Floor => self.intrinsic("floor", dtype, &[a]),
            Op::Ceil => self.intrinsic("ceil", dtype, &[a]),
            Op::Round => self.intrinsic("roundeven", dtype, &[a]),
            Op::Trunc => self.intrinsic("trunc", dtype, &[a]),
            Op::Sqrt => self.intrinsic("sqrt", dtype, &[a]),
            Op::Real | Op::Conj => a.to_string(),
            Op::Imag => "0.0".into(),
            Op::Relu => {
                let below = self.op(format!("fcmp ole {ty} {a}, 0.0"));
                self.op(format!("select i1 {below}, {ty} 0.0, {ty} {a}"))
            }
            Op::Sign => {
                // Zeros and NaN are their own sign: neither is less or greater than 0.
                let ordered = self.op(format!("fcmp one {ty} {a}, 0.0"));
                let one = self.intrinsic("copysign", dtype, &["1.0", a]);
                self.op(format!("select i1 {ordered}, {ty} {one}, {ty} {a}"))
            }
            Op::Sigmoid => {
                let negative = self.op(format!("fneg {ty} {a}"));
                let power = self.call_runtime(Op::Exp, dtype, &[&negative]);
                let sum = self.op(format!("fadd {ty} 1.0, {power}"));
                self.op(format!("fdiv {ty} 1.0, {sum}"))
            }
            _ => self.call_runtime(op, dtype, &[a]),
        }
    }

    pub(super) fn complex_binary(&mut self, op: Op, dtype: DType, x: &Val, y: &Val) -> Val {
        let (a, b, c, d) = (x.re(), x.im(), y.re(), y.im());
        match op {
            Op::Add => Val::Two(self.arithmetic("fadd", dtype, a, c), self.arithmetic("fadd", dtype, b, d)),
            Op::Sub => Val::Two(self.arithmetic("fsub", dtype, a, c), self.arithmetic("fsub", dtype, b, d)),
            Op::Mul => {
                let (ac, bd) = (self.arithmetic("fmul", dtype, a, c), self.arithmetic("fmul", dtype, b, d));
                let (ad, bc) = (self.arithmetic("fmul", dtype, a, d), self.arithmetic("fmul", dtype, b, c));
                Val::Two(self.arithmetic("fsub", dtype, &ac, &bd), self.arithmetic("fadd", dtype, &ad, &bc))
            }
            _ => self.call_complex(op, dtype, &[a, b, c, d]),
        }
    }

    pub(super) fn complex_unary(&mut self, op: Op, dtype: DType, x: &Val) -> Val {
        let ty = ty(dtype);
        let (a, b) = (x.re(), x.im());
        match op {
            Op::Neg => Val::Two(self.op(format!("fneg {ty} {a}")), self.op(format!("fneg {ty} {b}"))),
            Op::Conj => Val::Two(a.to_string(), self.op(format!("fneg {ty} {b}"))),
            Op::Real => Val::One(a.to_string()),
            Op::Imag => Val::One(b.to_string()),
            Op::Abs => Val::One(self.call_runtime(Op::Hypot, dtype.real(), &[a, b])),
            _ => self.call_complex(op, dtype, &[a, b]),
        }
    }

    /// Calls a function of the runtime on complex numbers, whose result comes through memory.
    fn call_complex(&mut self, op: Op, dtype: DType, parts: &[&str]) -> Val {
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
        let place = self.op(format!("getelementptr {ty}, ptr %{out}, i64 1"));
        Val::Two(re, self.op(format!("load {ty}, ptr {place}")))
    }
}
