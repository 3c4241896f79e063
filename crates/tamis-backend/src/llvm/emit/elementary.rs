//! LLVM IR of elementary functions: a builder that emits one instruction for each operation, on the
//! current lanes.
//!
//! Instructions carry no fast-math flags, whatever the loop permits: range reductions are exact only
//! in the order in which they are written. Where the target has no fused multiply-add, functions of
//! the runtime library compute the same bits.

use super::super::TargetCpu;
use super::super::cpu_names::WITHOUT_FMA;
use super::{Emitter, Val};
use tamis_ir::algebra::{BitOp, Elementary, FloatBuilder};
use tamis_ir::{DType, Value};

/// True if a CPU has fused multiply-adds.
pub(super) fn has_fma(target: &TargetCpu) -> bool {
    let has = |feature: &str| target.features.split(',').any(|word| word == feature);
    let disabled = has("-fma") || has("-avx");
    !target.triple.starts_with("x86_64") || has("+fma") || !disabled && !WITHOUT_FMA.contains(&target.cpu.as_str())
}

impl Emitter<'_> {
    /// An elementary function of floats.
    pub(super) fn elementary(&mut self, function: Elementary, dtype: DType, operands: &[&str]) -> String {
        if self.has_fma {
            let operands: Vec<String> = operands.iter().map(|operand| operand.to_string()).collect();
            function.build(&mut Instructions { emitter: self, dtype }, &operands)
        } else {
            self.call_runtime(function.op(), dtype, operands)
        }
    }
}

/// Emits instructions on floats of a type, and on integers as wide.
struct Instructions<'e, 'k> {
    emitter: &'e mut Emitter<'k>,
    dtype: DType,
}

impl Instructions<'_, '_> {
    fn int_type(&self) -> DType {
        if self.dtype == DType::F64 { DType::I64 } else { DType::I32 }
    }

    fn float_op(&mut self, name: &str, operands: &[&str]) -> String {
        let ty = self.emitter.ty(self.dtype);
        self.emitter.op(format!("{name} {ty} {}", operands.join(", ")))
    }

    fn int_op(&mut self, name: &str, a: &str, b: &str) -> String {
        let ty = self.emitter.ty(self.int_type());
        self.emitter.op(format!("{name} {ty} {a}, {b}"))
    }
}

impl FloatBuilder for Instructions<'_, '_> {
    type Real = String;
    type Bits = String;
    type Truth = String;

    fn is_double(&self) -> bool {
        self.dtype == DType::F64
    }

    fn real(&mut self, value: f64) -> String {
        let constant = self.emitter.constant(Value::F64(value).cast(self.dtype));
        self.emitter.all(self.dtype, constant.re())
    }

    fn int(&mut self, value: i64) -> String {
        self.emitter.all(self.int_type(), value)
    }

    fn add(&mut self, a: &String, b: &String) -> String {
        self.float_op("fadd", &[a, b])
    }

    fn sub(&mut self, a: &String, b: &String) -> String {
        self.float_op("fsub", &[a, b])
    }

    fn mul(&mut self, a: &String, b: &String) -> String {
        self.float_op("fmul", &[a, b])
    }

    fn div(&mut self, a: &String, b: &String) -> String {
        self.float_op("fdiv", &[a, b])
    }

    fn neg(&mut self, a: &String) -> String {
        self.float_op("fneg", &[a])
    }

    fn fma(&mut self, a: &String, b: &String, c: &String) -> String {
        self.emitter.intrinsic("fma", self.dtype, &[a, b, c])
    }

    fn abs(&mut self, a: &String) -> String {
        self.emitter.intrinsic("fabs", self.dtype, &[a])
    }

    fn copysign(&mut self, a: &String, sign: &String) -> String {
        self.emitter.intrinsic("copysign", self.dtype, &[a, sign])
    }

    fn bits_of(&mut self, a: &String) -> String {
        let (float, int) = (self.emitter.ty(self.dtype), self.emitter.ty(self.int_type()));
        self.emitter.op(format!("bitcast {float} {a} to {int}"))
    }

    fn float_of(&mut self, a: &String) -> String {
        let (float, int) = (self.emitter.ty(self.dtype), self.emitter.ty(self.int_type()));
        self.emitter.op(format!("bitcast {int} {a} to {float}"))
    }

    fn bits(&mut self, op: BitOp, a: &String, b: &String) -> String {
        let name = match op {
            BitOp::Add => "add",
            BitOp::Sub => "sub",
            BitOp::And => "and",
            BitOp::Xor => "xor",
            BitOp::ShiftLeft => "shl",
            BitOp::ShiftRight => "ashr",
        };
        self.int_op(name, a, b)
    }

    fn less(&mut self, a: &String, b: &String) -> String {
        self.float_op("fcmp olt", &[a, b])
    }

    fn equal(&mut self, a: &String, b: &String) -> String {
        self.float_op("fcmp oeq", &[a, b])
    }

    fn is_nonzero(&mut self, a: &String) -> String {
        let zero = self.int(0);
        self.int_op("icmp ne", a, &zero)
    }

    fn select(&mut self, condition: &String, a: &String, b: &String) -> String {
        let (a, b) = (Val::One(a.clone()), Val::One(b.clone()));
        self.emitter.blend_lanes(condition, self.dtype, &a, &b).re().to_string()
    }

    fn guarded(&mut self, condition: &String, value: &String, function: Elementary, x: &String) -> String {
        let (e, dtype) = (&mut *self.emitter, self.dtype);
        let all = match e.lanes {
            1 => condition.clone(),
            lanes => {
                let name = format!("llvm.vector.reduce.and.v{lanes}i1");
                e.declare(&name, || format!("declare i1 @{name}(<{lanes} x i1>)"));
                e.op(format!("call i1 @{name}(<{lanes} x i1> {condition})"))
            }
        };
        let (before, called, after) = (e.block.clone(), e.fresh("called"), e.fresh("guarded"));
        e.fork_likely(&all, &after, &called);
        e.start(&called);
        let other = e.call_runtime(function.op(), dtype, &[x]);
        let last = e.block.clone();
        e.jump(&after);
        e.start(&after);
        let ty = e.ty(dtype);
        e.merge(ty, &[(Val::One(value.clone()), before), (Val::One(other), last)]).re().to_string()
    }
}
