//! LLVM IR of vector values: types of several lanes, ramps, masked loads and stores, gathers,
//! scatters, and reductions across lanes.
//!
//! The emitter has a current number of lanes, that of the expression which is evaluated. Operands
//! of fewer lanes are broadcast. In a branch of a vector `select`, the mask of active lanes guards
//! every access to memory, since the other lanes may be out of bounds.

use super::{Emitter, Val, VariableLocation, from_parts, parts_of, stored, ty};
use std::fmt;
use tamis_ir::algebra::{ComparisonOp, Form, Op};
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, VarId, VectorExpr};
use tamis_ir::{DType, Value};

/// The LLVM type of a value, or of each of its parts: a scalar, or a vector.
#[derive(Clone, Copy)]
pub(super) struct LaneType {
    scalar: &'static str,
    lanes: u16,
}

impl fmt::Display for LaneType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => f.write_str(self.scalar),
            lanes => write!(f, "<{lanes} x {}>", self.scalar),
        }
    }
}

impl LaneType {
    /// A constant in every lane.
    fn all(self, constant: impl fmt::Display) -> String {
        match self.lanes {
            1 => constant.to_string(),
            _ => format!("splat ({} {constant})", self.scalar),
        }
    }
}

impl Emitter<'_> {
    /// The LLVM type of a value of the current lanes.
    pub(super) fn ty(&self, dtype: DType) -> LaneType {
        self.ty_of(ty(dtype))
    }

    /// [`Emitter::ty`] by the LLVM type of a lane.
    pub(super) fn ty_of(&self, scalar: &'static str) -> LaneType {
        LaneType { scalar, lanes: self.lanes }
    }

    /// A constant in all current lanes.
    pub(super) fn all(&self, dtype: DType, constant: impl fmt::Display) -> String {
        self.ty(dtype).all(constant)
    }

    /// The type in names of intrinsic functions: `f64`, `v4i32`.
    pub(super) fn mangled(&self, dtype: DType) -> String {
        mangled(ty(dtype), self.lanes)
    }

    /// The negation of truth values.
    pub(super) fn not(&mut self, truth: &str) -> String {
        let (bit, ones) = (self.ty(DType::Bool), self.all(DType::Bool, true));
        self.op(format!("xor {bit} {truth}, {ones}"))
    }

    /// Runs `body` with another number of current lanes.
    pub(super) fn with_lanes<T>(&mut self, lanes: u16, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.lanes, lanes);
        let result = body(self);
        self.lanes = outer;
        result
    }

    /// A value of some lanes in all current lanes.
    pub(super) fn broadcast(&mut self, value: &Val, dtype: DType, lanes: u16) -> Val {
        if lanes == self.lanes {
            return value.clone();
        }
        let vector = self.ty(dtype);
        let mut all = |part: &str| {
            if !part.starts_with('%') {
                return vector.all(part);
            }
            let first = self.op(format!("insertelement {vector} poison, {} {part}, i64 0", vector.scalar));
            let zeros = format!("<{} x i32> zeroinitializer", vector.lanes);
            self.op(format!("shufflevector {vector} {first}, {vector} poison, {zeros}"))
        };
        match value {
            Val::One(x) => Val::One(all(x)),
            Val::Two(re, im) => {
                let re = all(re);
                Val::Two(re, all(im))
            }
        }
    }

    /// Evaluates an operand and converts it, in all current lanes.
    pub(super) fn operand(&mut self, id: ExprId, dtype: DType) -> Val {
        let (from, lanes) = (self.kernel.exprs.dtype(id), self.kernel.exprs.lanes(id));
        let value = if lanes == 1 && self.active.is_some() { self.eval_if_any(id) } else { self.eval(id) };
        let value = self.with_lanes(lanes, |e| e.cast(&value, from, dtype));
        self.broadcast(&value, dtype, lanes)
    }

    /// Evaluates an expression of one lane in a branch of a vector `select`: not at all if it reads
    /// memory and no lane is active.
    fn eval_if_any(&mut self, id: ExprId) -> Val {
        let mut budget = usize::MAX;
        let Some(active) = self.active.clone().filter(|_| !self.is_speculatable(id, &mut budget)) else {
            return self.eval(id);
        };
        let dtype = self.kernel.exprs.dtype(id);
        let any = self.reduce_bits("or", &active);
        let (yes, after) = (self.fresh("active"), self.fresh("masked"));
        let from = self.block.clone();
        self.fork(&any, &yes, &after);
        let outer = self.active.take();
        let evaluated = self.branch(&yes, &after, |e| e.eval(id));
        self.active = outer;
        self.start(&after);
        let zero = self.constant(Value::zero(dtype));
        self.with_lanes(1, |e| e.merge(e.ty(dtype), &[(zero, from), evaluated]))
    }

    /// Evaluates with fewer active lanes: those where the mask is true, too.
    pub(super) fn with_active<T>(&mut self, mask: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.active.clone();
        let active = match &outer {
            Some(outer) => {
                let bit = self.ty(DType::Bool);
                self.op(format!("and {bit} {outer}, {mask}"))
            }
            None => mask.to_string(),
        };
        self.active = Some(active);
        let depth = self.trail.len();
        let result = body(self);
        self.forget_since(depth);
        self.active = outer;
        result
    }

    /// A vector, or what is made of one.
    pub(super) fn vector_expr(&mut self, vector: VectorExpr) -> Val {
        match vector {
            VectorExpr::Ramp { start, step, lanes } => {
                let start = self.operand(start, DType::I64);
                let ty = self.ty(DType::I64);
                let steps: Vec<String> =
                    (0..i64::from(lanes)).map(|lane| format!("i64 {}", lane.wrapping_mul(step))).collect();
                Val::One(self.op(format!("add {ty} {}, <{}>", start.re(), steps.join(", "))))
            }
            VectorExpr::Splat { value, .. } => self.operand(value, self.kernel.exprs.dtype(value)),
            VectorExpr::Masked { buffer, index, mask, otherwise } => {
                let dtype = self.kernel.buffer(buffer).elem.dtype();
                let mask = self.operand(mask, DType::Bool).re().to_string();
                let loaded = self.with_active(&mask, |e| e.load_lanes(buffer, index));
                if matches!(self.kernel.expr(otherwise), Expr::Const(value) if *value == Value::zero(dtype)) {
                    // Inactive lanes are zeros already.
                    return loaded;
                }
                let inactive = self.not(&mask);
                let otherwise = self.with_active(&inactive, |e| e.operand(otherwise, dtype));
                self.blend_lanes(&mask, dtype, &loaded, &otherwise)
            }
            VectorExpr::Reduce { op, value } => {
                let (dtype, lanes) = (self.kernel.exprs.dtype(value), self.kernel.exprs.lanes(value));
                let value = self.eval(value);
                self.reduce_vector(op, dtype, lanes, value)
            }
        }
    }

    /// Selects lane by lane.
    pub(super) fn blend_lanes(&mut self, mask: &str, dtype: DType, then: &Val, otherwise: &Val) -> Val {
        let (bit, ty) = (self.ty(DType::Bool), self.ty(dtype));
        let mut pick = |a: &str, b: &str| self.op(format!("select {bit} {mask}, {ty} {a}, {ty} {b}"));
        match (then, otherwise) {
            (Val::Two(a, b), Val::Two(c, d)) => {
                let re = pick(a, c);
                Val::Two(re, pick(b, d))
            }
            _ => Val::One(pick(then.re(), otherwise.re())),
        }
    }

    /// The lanes of a vector, combined: the lower half with the upper half, until one is left.
    fn reduce_vector(&mut self, op: Op, dtype: DType, lanes: u16, value: Val) -> Val {
        let (mut value, mut left) = (value, lanes);
        while left > 1 {
            let vector = LaneType { scalar: ty(dtype), lanes: left };
            left /= 2;
            let mut half = |part: &str, from: u16| {
                let lanes: Vec<String> = (from..from + left).map(|lane| format!("i32 {lane}")).collect();
                let chosen = format!("<{left} x i32> <{}>", lanes.join(", "));
                if left == 1 {
                    return self.op(format!("extractelement {vector} {part}, i64 {from}"));
                }
                self.op(format!("shufflevector {vector} {part}, {vector} poison, {chosen}"))
            };
            let [low, high] = [0, left].map(|from| match &value {
                Val::One(x) => Val::One(half(x, from)),
                Val::Two(re, im) => Val::Two(half(re, from), half(im, from)),
            });
            value = self.with_lanes(left, |e| e.combine(op, dtype, low, high));
        }
        value
    }

    /// An associative operator on two values of a type, in the current lanes.
    fn combine(&mut self, op: Op, dtype: DType, a: Val, b: Val) -> Val {
        match &op.info().form {
            Form::Elementwise(lowerings) => self.elementwise(op, lowerings, dtype, &[a, b], None),
            form @ (Form::And | Form::Or) => {
                let (x, y) = (self.truth(&a, dtype), self.truth(&b, dtype));
                let (bit, word) = (self.ty(DType::Bool), if matches!(form, Form::And) { "and" } else { "or" });
                let both = self.op(format!("{word} {bit} {x}, {y}"));
                self.cast(&Val::One(both), DType::Bool, dtype)
            }
            Form::Choose => {
                let zero = self.constant(Value::zero(dtype));
                let zero = self.broadcast(&zero, dtype, 1);
                let equal = self.compare(ComparisonOp::Eq, dtype, (&a, dtype), (&zero, dtype));
                self.blend_lanes(&equal, dtype, &b, &a)
            }
            // The verifier permits no others.
            Form::Comparison(_)
            | Form::Predicate(_)
            | Form::Not
            | Form::Select
            | Form::Coalesce
            | Form::Conversion(_)
            | Form::Defined(_) => a,
        }
    }

    /// Truth values of all current lanes, combined into one.
    fn reduce_bits(&mut self, word: &str, bits: &str) -> String {
        let (bit, lanes) = (self.ty(DType::Bool), self.lanes);
        let name = format!("llvm.vector.reduce.{word}.v{lanes}i1");
        self.declare(&name, || format!("declare i1 @{name}({bit})"));
        self.op(format!("call i1 @{name}({bit} {bits})"))
    }

    /// Applies a function to each lane of its operands, and gathers the results in a vector.
    pub(super) fn each_lane(
        &mut self,
        dtype: DType,
        operands: &[(Val, DType)],
        mut function: impl FnMut(&mut Self, &[Val]) -> Val,
    ) -> Val {
        let (lanes, vector) = (self.lanes, self.ty(dtype));
        let mut results = vec!["poison".to_string(); parts_of(dtype)];
        for lane in 0..lanes {
            let singles: Vec<Val> =
                operands.iter().map(|(operand, dtype)| self.extract(operand, *dtype, lane)).collect();
            let result = self.with_lanes(1, |e| function(e, &singles));
            for (so_far, part) in results.iter_mut().zip(parts(&result)) {
                let scalar = vector.scalar;
                *so_far = self.op(format!("insertelement {vector} {so_far}, {scalar} {part}, i64 {lane}"));
            }
        }
        from_parts(results)
    }

    /// One lane of a value of the current lanes.
    fn extract(&mut self, value: &Val, dtype: DType, lane: u16) -> Val {
        if self.lanes == 1 {
            return value.clone();
        }
        let vector = self.ty(dtype);
        from_parts(parts(value).map(|part| self.op(format!("extractelement {vector} {part}, i64 {lane}"))).collect())
    }

    // Memory

    /// The first index of lanes that are contiguous.
    fn contiguous(&mut self, id: ExprId) -> Option<String> {
        match self.kernel.expr(id) {
            Expr::Vector(VectorExpr::Ramp { start, step: 1, .. }) if !self.is_masked_read(*start) => {
                Some(self.with_lanes(1, |e| e.index(*start)))
            }
            Expr::Var(var) => self.ramps.get(var).cloned(),
            Expr::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => {
                let [a, b] = operands[..] else { return None };
                let single = |e: &Self, id: ExprId| e.kernel.exprs.lanes(id) == 1 && !e.is_masked_read(id);
                let (ramp, offset) = match (single(self, a), single(self, b)) {
                    (false, true) => (a, b),
                    (true, false) if *op == Op::Add => (b, a),
                    _ => return None,
                };
                let start = self.contiguous(ramp)?;
                let offset = self.with_lanes(1, |e| e.index(offset));
                let word = if *op == Op::Add { "add" } else { "sub" };
                Some(self.op(format!("{word} i64 {start}, {offset}")))
            }
            _ => None,
        }
    }

    /// True if an expression of one lane reads memory where no lane may be active.
    fn is_masked_read(&self, id: ExprId) -> bool {
        self.active.is_some() && !self.is_speculatable(id, &mut { usize::MAX })
    }

    /// Records the start of an immutable variable that is a ramp.
    pub(super) fn define_ramp(&mut self, var: VarId, value: ExprId) {
        if self.kernel.var(var).lanes > 1
            && !self.kernel.var(var).mutable
            && let Some(start) = self.contiguous(value)
        {
            self.ramps.insert(var, start);
        }
    }

    /// Loads the elements at an index of the current lanes; inactive lanes are zeros.
    pub(super) fn load_lanes(&mut self, buffer: BufferId, index: ExprId) -> Val {
        if let Some(start) = self.contiguous(index) {
            self.contiguous_in_bounds(buffer, &start);
            return self.load_contiguous(buffer, &start);
        }
        let outer = std::mem::replace(&mut self.index, true);
        let index = self.operand(index, DType::I64).re().to_string();
        self.index = outer;
        self.lanes_in_bounds(buffer, &index);
        match self.active.clone() {
            None => {
                let dtype = self.kernel.buffer(buffer).elem.dtype();
                self.each_lane(dtype, &[(Val::One(index), DType::I64)], |e, index| e.load(buffer, index[0].re()))
            }
            Some(active) => self.load_gathered(buffer, &index, &active),
        }
    }

    fn load_contiguous(&mut self, buffer: BufferId, start: &str) -> Val {
        let elem = self.kernel.buffer(buffer).elem;
        let (scalar, align, data) = (stored(elem), crate::runtime::memory::align(elem), self.data(buffer));
        let (lanes, pieces) = (self.lanes, parts_of(elem.dtype()));
        let wide = LaneType { scalar, lanes: lanes * pieces as u16 };
        let address = self.op(format!("getelementptr [{pieces} x {scalar}], ptr {data}, i64 {start}"));
        let loaded = match self.active.clone() {
            None => {
                let metadata = self.load_metadata(buffer);
                self.op(format!("load {wide}, ptr {address}, align {align}{metadata}"))
            }
            Some(active) => {
                let (mask, scope) = (self.doubled_mask(&active, pieces), self.scope(buffer));
                let (name, bits) = (format!("llvm.masked.load.{}.p0", mangled(scalar, wide.lanes)), wide.lanes);
                self.declare(&name, || format!("declare {wide} @{name}(ptr, i32 immarg, <{bits} x i1>, {wide})"));
                let arguments = format!("ptr {address}, i32 {align}, <{bits} x i1> {mask}, {wide} zeroinitializer");
                self.op(format!("call {wide} @{name}({arguments}){scope}"))
            }
        };
        let separate = (0..pieces).map(|piece| {
            if pieces == 1 {
                return loaded.clone();
            }
            let chosen: Vec<String> = (0..lanes).map(|lane| format!("i32 {}", 2 * lane + piece as u16)).collect();
            let chosen = format!("<{lanes} x i32> <{}>", chosen.join(", "));
            self.op(format!("shufflevector {wide} {loaded}, {wide} poison, {chosen}"))
        });
        let separate = from_parts(separate.collect());
        self.loaded(elem, separate)
    }

    /// A gather of active lanes.
    fn load_gathered(&mut self, buffer: BufferId, index: &str, active: &str) -> Val {
        let elem = self.kernel.buffer(buffer).elem;
        let (align, lanes, scope) = (crate::runtime::memory::align(elem), self.lanes, self.scope(buffer));
        let vector = self.ty_of(stored(elem));
        let name = format!("llvm.masked.gather.{}.v{lanes}p0", mangled(vector.scalar, lanes));
        let types = format!("<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {vector}");
        self.declare(&name, || format!("declare {vector} @{name}({types})"));
        let loaded = (0..parts_of(elem.dtype())).map(|part| {
            let addresses = self.addresses(buffer, index, part);
            let mask = format!("<{lanes} x i1> {active}, {vector} zeroinitializer");
            self.op(format!("call {vector} @{name}(<{lanes} x ptr> {addresses}, i32 {align}, {mask}){scope}"))
        });
        let loaded = from_parts(loaded.collect());
        self.loaded(elem, loaded)
    }

    /// The addresses of a part of the elements at an index.
    fn addresses(&mut self, buffer: BufferId, index: &str, part: usize) -> String {
        let elem = self.kernel.buffer(buffer).elem;
        let (scalar, data, lanes, pieces) = (stored(elem), self.data(buffer), self.lanes, parts_of(elem.dtype()));
        let index = format!("<{lanes} x i64> {index}, i64 {part}");
        self.op(format!("getelementptr [{pieces} x {scalar}], ptr {data}, {index}"))
    }

    /// The mask of each part of each lane.
    fn doubled_mask(&mut self, mask: &str, pieces: usize) -> String {
        if pieces == 1 {
            return mask.to_string();
        }
        let (bit, lanes) = (self.ty(DType::Bool), self.lanes);
        let chosen: Vec<String> = (0..2 * lanes).map(|k| format!("i32 {}", k / 2)).collect();
        let chosen = format!("<{} x i32> <{}>", 2 * lanes, chosen.join(", "));
        self.op(format!("shufflevector {bit} {mask}, {bit} poison, {chosen}"))
    }

    /// Values of the memory representation, in their own type.
    pub(super) fn loaded(&mut self, elem: Elem, value: Val) -> Val {
        let vector = self.ty_of(stored(elem));
        match elem {
            // A byte other than 0 and 1 is true, too.
            Elem::Value(DType::Bool) => {
                let zero = vector.all(0);
                Val::One(self.op(format!("icmp ne {vector} {}, {zero}", value.re())))
            }
            Elem::Index(width) if width.size() < 8 => {
                let wide = self.ty(DType::I64);
                Val::One(self.op(format!("zext {vector} {} to {wide}", value.re())))
            }
            Elem::Index(_) | Elem::Value(_) => value,
        }
    }

    /// Stores lanes of a value: those of the mask, if there is one. All lanes are read before one
    /// is written; of two lanes that write one element, the later stays.
    pub(super) fn store_lanes(&mut self, buffer: BufferId, index: ExprId, value: ExprId, mask: Option<ExprId>) {
        let elem = self.kernel.buffer(buffer).elem;
        let lanes = self.kernel.exprs.lanes(index);
        self.with_lanes(lanes, |e| {
            let mask = mask.map(|mask| e.operand(mask, DType::Bool).re().to_string());
            let store = |e: &mut Self| {
                let contiguous = e.contiguous(index);
                let places = match &contiguous {
                    Some(start) => start.clone(),
                    None => {
                        e.index = true;
                        let places = e.operand(index, DType::I64).re().to_string();
                        e.index = false;
                        places
                    }
                };
                let value = e.operand(value, e.kernel.exprs.dtype(value));
                match contiguous {
                    Some(_) => e.contiguous_in_bounds(buffer, &places),
                    None => e.lanes_in_bounds(buffer, &places),
                }
                let value = e.as_stored_lanes(buffer, elem, value);
                match contiguous {
                    Some(_) => e.store_contiguous(buffer, &places, &value),
                    None => e.store_scattered(buffer, &places, &value),
                }
            };
            match &mask {
                None => store(e),
                Some(mask) => e.with_active(mask, store),
            }
        });
    }

    /// Values in the memory representation.
    fn as_stored_lanes(&mut self, buffer: BufferId, elem: Elem, value: Val) -> Val {
        let (vector, wide) = (self.ty_of(stored(elem)), self.ty(elem.dtype()));
        if self.check
            && let Elem::Index(width) = elem
        {
            let most = self.all(DType::I64, width.max());
            let fits = self.op(format!("icmp ule {wide} {}, {most}", value.re()));
            self.guard_lanes(&fits, value.re(), crate::failure::Status::Width, buffer, "0");
        }
        match elem {
            Elem::Value(DType::Bool) => Val::One(self.op(format!("zext {wide} {} to {vector}", value.re()))),
            Elem::Index(width) if width.size() < 8 => {
                Val::One(self.op(format!("trunc {wide} {} to {vector}", value.re())))
            }
            Elem::Index(_) | Elem::Value(_) => value,
        }
    }

    fn store_contiguous(&mut self, buffer: BufferId, start: &str, value: &Val) {
        let elem = self.kernel.buffer(buffer).elem;
        let (scalar, align, data) = (stored(elem), crate::runtime::memory::align(elem), self.data(buffer));
        let (lanes, pieces, scope) = (self.lanes, parts_of(elem.dtype()), self.scope(buffer));
        let wide = LaneType { scalar, lanes: lanes * pieces as u16 };
        let address = self.op(format!("getelementptr [{pieces} x {scalar}], ptr {data}, i64 {start}"));
        let value = match value {
            Val::One(value) => value.clone(),
            Val::Two(re, im) => {
                let vector = self.ty_of(scalar);
                let chosen: Vec<String> = (0..2 * lanes).map(|k| format!("i32 {}", k / 2 + (k % 2) * lanes)).collect();
                let chosen = format!("<{} x i32> <{}>", 2 * lanes, chosen.join(", "));
                self.op(format!("shufflevector {vector} {re}, {vector} {im}, {chosen}"))
            }
        };
        let Some(active) = self.active.clone() else {
            return self.line(format!("store {wide} {value}, ptr {address}, align {align}{scope}"));
        };
        let (mask, bits) = (self.doubled_mask(&active, pieces), wide.lanes);
        let name = format!("llvm.masked.store.{}.p0", mangled(scalar, bits));
        self.declare(&name, || format!("declare void @{name}({wide}, ptr, i32 immarg, <{bits} x i1>)"));
        let arguments = format!("{wide} {value}, ptr {address}, i32 {align}, <{bits} x i1> {mask}");
        self.line(format!("call void @{name}({arguments}){scope}"));
    }

    fn store_scattered(&mut self, buffer: BufferId, index: &str, value: &Val) {
        let elem = self.kernel.buffer(buffer).elem;
        let (align, lanes, scope) = (crate::runtime::memory::align(elem), self.lanes, self.scope(buffer));
        let vector = self.ty_of(stored(elem));
        let Some(active) = self.active.clone() else {
            for lane in 0..lanes {
                let place = self.extract(&Val::One(index.to_string()), DType::I64, lane);
                for (part, value) in parts(value).enumerate() {
                    let value = self.op(format!("extractelement {vector} {value}, i64 {lane}"));
                    let address = self.with_lanes(1, |e| e.address(buffer, place.re(), part));
                    self.line(format!("store {} {value}, ptr {address}, align {align}{scope}", vector.scalar));
                }
            }
            return;
        };
        let name = format!("llvm.masked.scatter.{}.v{lanes}p0", mangled(vector.scalar, lanes));
        let types = format!("{vector}, <{lanes} x ptr>, i32 immarg, <{lanes} x i1>");
        self.declare(&name, || format!("declare void @{name}({types})"));
        for (part, value) in parts(value).enumerate() {
            let addresses = self.addresses(buffer, index, part);
            let arguments =
                format!("{vector} {value}, <{lanes} x ptr> {addresses}, i32 {align}, <{lanes} x i1> {active}");
            self.line(format!("call void @{name}({arguments}){scope}"));
        }
    }

    /// The address of a part of an element.
    fn address(&mut self, buffer: BufferId, index: &str, part: usize) -> String {
        let elem = self.kernel.buffer(buffer).elem;
        let (scalar, data, pieces) = (stored(elem), self.data(buffer), parts_of(elem.dtype()));
        self.op(format!("getelementptr inbounds [{pieces} x {scalar}], ptr {data}, i64 {index}, i64 {part}"))
    }

    /// Updates elements lane by lane: two lanes may update one element.
    pub(super) fn update(&mut self, buffer: BufferId, index: ExprId, op: Op, value: ExprId) {
        let (dtype, lanes) = (self.kernel.buffer(buffer).elem.dtype(), self.kernel.exprs.lanes(index));
        self.with_lanes(lanes, |e| {
            e.index = true;
            let places = e.operand(index, DType::I64);
            e.index = false;
            let values = e.operand(value, dtype);
            for lane in 0..lanes {
                let (place, value) = (e.extract(&places, DType::I64, lane), e.extract(&values, dtype, lane));
                e.with_lanes(1, |e| {
                    e.in_bounds(buffer, place.re());
                    let before = e.load(buffer, place.re());
                    let after = e.combine(op, dtype, before, value);
                    e.store(buffer, place.re(), &after);
                });
            }
        });
    }

    /// In check mode: fails unless all active lanes are in bounds.
    fn lanes_in_bounds(&mut self, buffer: BufferId, index: &str) {
        if self.check {
            let len = self.len(buffer);
            let all = self.broadcast(&Val::One(len.clone()), DType::I64, 1);
            let ty = self.ty(DType::I64);
            let fine = self.op(format!("icmp ult {ty} {index}, {}", all.re()));
            self.guard_lanes(&fine, index, crate::failure::Status::Bounds, buffer, &len);
        }
    }

    fn contiguous_in_bounds(&mut self, buffer: BufferId, start: &str) {
        if self.check {
            let lanes = self.lanes;
            let first = self.broadcast(&Val::One(start.to_string()), DType::I64, 1);
            let steps: Vec<String> = (0..lanes).map(|lane| format!("i64 {lane}")).collect();
            let ty = self.ty(DType::I64);
            let index = self.op(format!("add {ty} {}, <{}>", first.re(), steps.join(", ")));
            self.lanes_in_bounds(buffer, &index);
        }
    }

    /// Fails with the first active lane for which the condition does not hold.
    fn guard_lanes(&mut self, fine: &str, index: &str, status: crate::failure::Status, buffer: BufferId, len: &str) {
        let bit = self.ty(DType::Bool);
        let fine = match self.active.clone() {
            None => fine.to_string(),
            Some(active) => {
                let inactive = self.not(&active);
                self.op(format!("or {bit} {fine}, {inactive}"))
            }
        };
        for lane in 0..self.lanes {
            let (holds, place) = (
                self.extract(&Val::One(fine.clone()), DType::Bool, lane),
                self.extract(&Val::One(index.to_string()), DType::I64, lane),
            );
            self.guard(holds.re(), status, buffer.index(), place.re(), len);
        }
    }

    /// The value of a variable at its location.
    pub(super) fn read_location(&mut self, var: VarId, location: &VariableLocation) -> Val {
        match location {
            VariableLocation::Memory(slot) => {
                let info = self.kernel.var(var);
                self.with_lanes(info.lanes, |e| e.read_slot(info.dtype, slot))
            }
            VariableLocation::Value(value) => value.clone(),
        }
    }
}

/// The registers of a value.
pub(super) fn parts(value: &Val) -> impl Iterator<Item = &str> {
    let (first, second) = match value {
        Val::One(one) => (one, None),
        Val::Two(re, im) => (re, Some(im)),
    };
    std::iter::once(first.as_str()).chain(second.map(String::as_str))
}

/// A type in names of intrinsic functions.
fn mangled(scalar: &str, lanes: u16) -> String {
    let scalar = match scalar {
        "float" => "f32",
        "double" => "f64",
        other => other,
    };
    match lanes {
        1 => scalar.to_string(),
        lanes => format!("v{lanes}{scalar}"),
    }
}
