//! Helpers for pass tests: short constructors of kernels, and their printed text.

use super::{Options, Pass};
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Builder, Elem, ExprId, Kernel, Role};

/// A kernel under construction with a few buffers and sizes.
pub(super) struct Make {
    pub(super) b: Builder,
    /// `x`, an input of floats.
    pub(super) x: BufferId,
    /// `y`, an output of floats.
    pub(super) y: BufferId,
    /// `w`, scratch for floats.
    pub(super) w: BufferId,
    /// `A_pos`, an input of positions.
    pub(super) pos: BufferId,
    /// `A_crd`, an input of coordinates.
    pub(super) crd: BufferId,
    /// `n` and `m`, sizes.
    pub(super) n: ExprId,
    pub(super) m: ExprId,
}

impl Make {
    pub(super) fn new() -> Make {
        let mut b = Builder::new("f");
        let float = Elem::Value(DType::F64);
        let x = b.buffer("x", float, Role::Input);
        let y = b.buffer("y", float, Role::Output);
        let w = b.buffer("w", float, Role::Scratch);
        let pos = b.buffer("A_pos", Elem::Index(Width::U32), Role::Input);
        let crd = b.buffer("A_crd", Elem::Index(Width::U32), Role::Input);
        let (n, m) = (b.param("n", DType::I64), b.param("m", DType::I64));
        let (n, m) = (b.get(n), b.get(m));
        Make { b, x, y, w, pos, crd, n, m }
    }

    pub(super) fn int(&mut self, value: i64) -> ExprId {
        self.b.int(value)
    }

    pub(super) fn float(&mut self, value: f64) -> ExprId {
        self.b.constant(Value::F64(value))
    }

    pub(super) fn bool(&mut self, value: bool) -> ExprId {
        self.b.constant(Value::Bool(value))
    }

    pub(super) fn call(&mut self, op: Op, operands: &[ExprId]) -> ExprId {
        self.b.call(op, operands)
    }

    /// `buffer[index]`
    pub(super) fn load(&mut self, buffer: BufferId, index: ExprId) -> ExprId {
        self.b.load(buffer, index)
    }

    /// `buffer[index] += value`
    pub(super) fn add_to(&mut self, buffer: BufferId, index: ExprId, value: ExprId) {
        let before = self.b.load(buffer, index);
        let sum = self.b.call(Op::Add, &[before, value]);
        self.b.store(buffer, index, sum);
    }

    /// `for name in start..stop`
    pub(super) fn count(&mut self, name: &str, start: ExprId, stop: ExprId, body: impl FnOnce(&mut Make, ExprId)) {
        self.scoped(|b, work| b.count(name, start, stop, |b, i| work(b, i)), body);
    }

    /// `if cond`
    pub(super) fn when(&mut self, cond: ExprId, then: impl FnOnce(&mut Make)) {
        self.scoped(|b, work| b.branch(cond, |b| work(b, cond), |_| {}), |make, _| then(make));
    }

    /// Lends the builder to a closure that needs the whole fixture.
    fn scoped(
        &mut self,
        around: impl FnOnce(&mut Builder, &mut dyn FnMut(&mut Builder, ExprId)),
        body: impl FnOnce(&mut Make, ExprId),
    ) {
        let mut builder = std::mem::replace(&mut self.b, Builder::new(""));
        let mut body = Some(body);
        around(&mut builder, &mut |inner, value| {
            std::mem::swap(inner, &mut self.b);
            if let Some(body) = body.take() {
                body(self, value);
            }
            std::mem::swap(inner, &mut self.b);
        });
        self.b = builder;
    }
}

/// The statements of a kernel after passes, one per line.
pub(super) fn after(passes: &[fn(Kernel, &Options) -> Kernel], make: Make) -> Vec<String> {
    let mut kernel = make.b.finish();
    kernel.verify().unwrap();
    for pass in passes {
        kernel = pass(kernel, &Options::default());
        kernel.verify().unwrap();
    }
    lines(&kernel)
}

/// The statements of a kernel, one per line.
pub(super) fn lines(kernel: &Kernel) -> Vec<String> {
    let text = kernel.to_string();
    let body = text.split_once("begin\n").map_or("", |(_, body)| body);
    body.lines().map(|line| line.strip_prefix("    ").unwrap_or(line).to_string()).collect()
}

/// All passes as functions.
pub(super) fn all() -> Vec<fn(Kernel, &Options) -> Kernel> {
    super::PASSES.iter().map(|Pass { run, .. }| *run).collect()
}
