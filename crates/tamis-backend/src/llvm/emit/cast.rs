//! LLVM IR of constants, conversions, truth tests and comparisons.

use super::{Emitter, Val};
use tamis_ir::algebra::{ComparisonOp, Predicate};
use tamis_ir::{DType, Kind, Value};

/// A float literal in LLVM syntax: the bits of a double.
fn bits(x: f64) -> String {
    format!("0x{:016X}", x.to_bits())
}

/// Single precision is written as the double of the same value; NaNs keep their payload.
fn bits_of_single(x: f32) -> String {
    if !x.is_nan() {
        return bits(f64::from(x));
    }
    let (sign, payload) = (u64::from(x.to_bits() >> 31), u64::from(x.to_bits() & 0x7f_ffff));
    format!("0x{:016X}", sign << 63 | 0x7ff << 52 | payload << 29)
}

impl Emitter<'_> {
    pub(super) fn constant(&self, value: Value) -> Val {
        Val::One(match value {
            Value::Bool(x) => x.to_string(),
            Value::I8(x) => x.to_string(),
            Value::I16(x) => x.to_string(),
            Value::I32(x) => x.to_string(),
            Value::I64(x) => x.to_string(),
            Value::U8(x) => x.to_string(),
            Value::U16(x) => x.to_string(),
            Value::U32(x) => x.to_string(),
            Value::U64(x) => x.to_string(),
            Value::F32(x) => bits_of_single(x),
            Value::F64(x) => bits(x),
            Value::C64(c) => return Val::Two(bits_of_single(c.re), bits_of_single(c.im)),
            Value::C128(c) => return Val::Two(bits(c.re), bits(c.im)),
        })
    }

    /// Converts with the semantics of `Value::cast`.
    pub(super) fn cast(&mut self, value: &Val, from: DType, to: DType) -> Val {
        if from == to {
            return value.clone();
        }
        if to == DType::Bool {
            return Val::One(self.truth(value, from));
        }
        match (from.kind(), to.kind()) {
            (Kind::Complex, Kind::Complex) => {
                let (re, im) = (value.re().to_string(), value.im().to_string());
                Val::Two(self.cast_real(&re, from.real(), to.real()), self.cast_real(&im, from.real(), to.real()))
            }
            (_, Kind::Complex) => Val::Two(self.cast_real(value.re(), from, to.real()), self.all(to, "0.0")),
            _ => Val::One(self.cast_real(value.re(), from.real(), to)),
        }
    }

    fn cast_real(&mut self, value: &str, from: DType, to: DType) -> String {
        if from == to {
            return value.to_string();
        }
        let (a, b) = (self.ty(from), self.ty(to));
        let signed = from.is_signed_int();
        match (from.kind(), to.kind()) {
            (Kind::Float, Kind::Float) => {
                let instruction = if to.size() > from.size() { "fpext" } else { "fptrunc" };
                self.op(format!("{instruction} {a} {value} to {b}"))
            }
            (Kind::Float, _) => {
                let sign = if to.is_signed_int() { "s" } else { "u" };
                let name = format!("llvm.fpto{sign}i.sat.{}.{}", self.mangled(to), self.mangled(from));
                self.declare(&name, || format!("declare {b} @{name}({a})"));
                self.op(format!("call {b} @{name}({a} {value})"))
            }
            (_, Kind::Float) => self.op(format!("{} {a} {value} to {b}", if signed { "sitofp" } else { "uitofp" })),
            _ if from != DType::Bool && to.size() == from.size() => value.to_string(),
            _ if from != DType::Bool && to.size() < from.size() => self.op(format!("trunc {a} {value} to {b}")),
            _ => self.op(format!("{} {a} {value} to {b}", if signed { "sext" } else { "zext" })),
        }
    }

    /// Tests that a value is nonzero.
    pub(super) fn truth(&mut self, value: &Val, dtype: DType) -> String {
        let (ty, bit) = (self.ty(dtype), self.ty(DType::Bool));
        let zero = self.all(dtype, if dtype.kind() <= Kind::Int { "0" } else { "0.0" });
        match (dtype.kind(), value) {
            (Kind::Bool, _) => value.re().to_string(),
            (Kind::Int, _) => self.op(format!("icmp ne {ty} {}, {zero}", value.re())),
            (Kind::Complex, Val::Two(re, im)) => {
                let re = self.op(format!("fcmp une {ty} {re}, {zero}"));
                let im = self.op(format!("fcmp une {ty} {im}, {zero}"));
                self.op(format!("or {bit} {re}, {im}"))
            }
            _ => self.op(format!("fcmp une {ty} {}, {zero}", value.re())),
        }
    }

    /// Compares values of their own types: integers exactly, whatever they are, all else in the
    /// common type.
    pub(super) fn compare(&mut self, op: ComparisonOp, common: DType, a: (&Val, DType), b: (&Val, DType)) -> String {
        if a.1.kind().max(b.1.kind()) <= Kind::Int {
            return self.compare_integers(op, (a.0.re(), a.1), (b.0.re(), b.1));
        }
        let (x, y) = (self.cast(a.0, a.1, common), self.cast(b.0, b.1, common));
        if common.kind() == Kind::Complex {
            let (number, bit) = (self.ty(common), self.ty(DType::Bool));
            let re = self.op(format!("fcmp oeq {number} {}, {}", x.re(), y.re()));
            let im = self.op(format!("fcmp oeq {number} {}, {}", x.im(), y.im()));
            let equal = self.op(format!("and {bit} {re}, {im}"));
            return match op {
                ComparisonOp::Eq | ComparisonOp::Le | ComparisonOp::Ge => equal,
                ComparisonOp::Ne => self.not(&equal),
                // Unequal complex numbers have no order.
                ComparisonOp::Lt | ComparisonOp::Gt => self.all(DType::Bool, false),
            };
        }
        let in_which = if common == DType::F32 { common } else { DType::F64 };
        let (x, y) = (self.cast_real(x.re(), common, in_which), self.cast_real(y.re(), common, in_which));
        let predicate = match op {
            ComparisonOp::Eq => "oeq",
            ComparisonOp::Ne => "une",
            ComparisonOp::Lt => "olt",
            ComparisonOp::Le => "ole",
            ComparisonOp::Gt => "ogt",
            ComparisonOp::Ge => "oge",
        };
        let ty = self.ty(in_which);
        self.op(format!("fcmp {predicate} {ty} {x}, {y}"))
    }

    fn compare_integers(&mut self, op: ComparisonOp, a: (&str, DType), b: (&str, DType)) -> String {
        // The narrowest comparison that holds both types exactly.
        let (wide, signed) = match (a.1, b.1) {
            (x, y) if x == y => (super::ty(x), x.is_signed_int()),
            (x, y) if !x.is_signed_int() && !y.is_signed_int() => ("i64", false),
            (x, y) if x != DType::U64 && y != DType::U64 => ("i64", true),
            _ => ("i128", true),
        };
        let mut widen = |(value, dtype): (&str, DType)| {
            let extend = if dtype.is_signed_int() { "sext" } else { "zext" };
            if super::ty(dtype) == wide {
                value.to_string()
            } else {
                let (narrow, wide) = (self.ty(dtype), self.ty_of(wide));
                self.op(format!("{extend} {narrow} {value} to {wide}"))
            }
        };
        let (x, y) = (widen(a), widen(b));
        let sign = if signed { "s" } else { "u" };
        let predicate = match op {
            ComparisonOp::Eq => "eq".to_string(),
            ComparisonOp::Ne => "ne".to_string(),
            ComparisonOp::Lt => format!("{sign}lt"),
            ComparisonOp::Le => format!("{sign}le"),
            ComparisonOp::Gt => format!("{sign}gt"),
            ComparisonOp::Ge => format!("{sign}ge"),
        };
        let wide = self.ty_of(wide);
        self.op(format!("icmp {predicate} {wide} {x}, {y}"))
    }

    /// A test for NaN, infinite or finite values.
    pub(super) fn predicate(&mut self, op: Predicate, dtype: DType, value: &Val) -> String {
        if dtype.kind() <= Kind::Int {
            return self.all(DType::Bool, op == Predicate::IsFinite);
        }
        let mut each = |part: &str| {
            let (ty, zero) = (self.ty(dtype), self.all(dtype, "0.0"));
            let infinity = self.all(dtype, "0x7FF0000000000000");
            if op == Predicate::IsNan {
                return self.op(format!("fcmp uno {ty} {part}, {zero}"));
            }
            let size = self.intrinsic("fabs", dtype.real(), &[part]);
            let comparison = if op == Predicate::IsInf { "oeq" } else { "one" };
            self.op(format!("fcmp {comparison} {ty} {size}, {infinity}"))
        };
        match value {
            Val::One(x) => each(x),
            Val::Two(re, im) => {
                let (re, im) = (each(re), each(im));
                let bit = self.ty(DType::Bool);
                self.op(format!("{} {bit} {re}, {im}", if op == Predicate::IsFinite { "and" } else { "or" }))
            }
        }
    }
}
