//! LLVM IR of expressions: evaluation order, short-circuit evaluation, and speculation of cheap
//! operands.

use super::lanes::LaneType;
use super::ops::is_called;
use super::{Emitter, MAX_TEXT_BYTES, Val, VariableLocation, from_parts, parts_of, stored};
use tamis_ir::algebra::{ComparisonOp, Form, Op};
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Role, VectorExpr};
use tamis_ir::{DType, Value};

/// Maximum operations of an operand that is evaluated speculatively, which is cheaper than a
/// branch.
const MAX_SPECULATED_OPS: usize = 12;

impl Emitter<'_> {
    /// Evaluates an expression, in its own type.
    pub(super) fn value(&mut self, id: ExprId) -> Val {
        let outer = std::mem::replace(&mut self.index, false);
        let value = self.eval(id);
        self.index = outer;
        value
    }

    /// Evaluates an `i64` expression that is a position, coordinate or size.
    pub(super) fn index(&mut self, id: ExprId) -> String {
        let outer = std::mem::replace(&mut self.index, true);
        let value = self.eval(id);
        self.index = outer;
        value.re().to_string()
    }

    pub(super) fn eval(&mut self, id: ExprId) -> Val {
        if let Some(value) = self.memo.get(&id) {
            return value.clone();
        }
        if self.body.len() > MAX_TEXT_BYTES {
            // The text is discarded from here on.
            return self.constant(Value::zero(self.kernel.exprs.dtype(id)));
        }
        let lanes = self.kernel.exprs.lanes(id);
        let outer = std::mem::replace(&mut self.lanes, lanes);
        let value = match self.kernel.expr(id) {
            Expr::Const(value) => {
                self.lanes = outer;
                return self.constant(*value);
            }
            Expr::Var(var) => {
                let value = self.variable(*var);
                if !matches!(self.vars[var.index()], Some(VariableLocation::Memory(_))) {
                    self.lanes = outer;
                    return value;
                }
                value
            }
            Expr::Load(buffer, index) if lanes > 1 => self.load_lanes(*buffer, *index),
            Expr::Load(buffer, index) => {
                let (buffer, index) = (*buffer, self.index(*index));
                self.in_bounds(buffer, &index);
                self.load(buffer, &index)
            }
            Expr::Call(op, operand, operands) => self.call(id, *op, *operand, operands),
            Expr::Vector(vector) => self.vector_expr(*vector),
        };
        self.lanes = outer;
        self.memo.insert(id, value.clone());
        self.trail.push(id);
        value
    }

    pub(super) fn read_slot(&mut self, dtype: DType, slot: &Val) -> Val {
        let ty = self.ty(dtype);
        let re = self.op(format!("load {ty}, ptr {}", slot.re()));
        match slot {
            Val::One(_) => Val::One(re),
            Val::Two(_, address) => Val::Two(re, self.op(format!("load {ty}, ptr {address}"))),
        }
    }

    pub(super) fn load(&mut self, buffer: BufferId, index: &str) -> Val {
        let elem = self.kernel.buffer(buffer).elem;
        let (ty, metadata, data) = (stored(elem), self.load_metadata(buffer), self.data(buffer));
        let align = crate::runtime::memory::align(elem);
        if parts_of(elem.dtype()) == 2 {
            let address = self.op(format!("getelementptr inbounds [2 x {ty}], ptr {data}, i64 {index}"));
            let re = self.op(format!("load {ty}, ptr {address}, align {align}{metadata}"));
            let address = self.op(format!("getelementptr inbounds [2 x {ty}], ptr {data}, i64 {index}, i64 1"));
            let im = self.op(format!("load {ty}, ptr {address}, align {align}{metadata}"));
            return Val::Two(re, im);
        }
        let address = self.op(format!("getelementptr inbounds {ty}, ptr {data}, i64 {index}"));
        let value = self.op(format!("load {ty}, ptr {address}, align {align}{metadata}"));
        Val::One(match elem {
            // A byte other than 0 and 1 is true, too.
            Elem::Value(DType::Bool) => self.op(format!("icmp ne i8 {value}, 0")),
            Elem::Index(width) if width.size() < 8 => self.op(format!("zext {ty} {value} to i64")),
            _ => value,
        })
    }

    fn call(&mut self, id: ExprId, op: Op, operand: DType, operands: &[ExprId]) -> Val {
        let dtype = |e: &Self, k: usize| e.kernel.exprs.dtype(operands[k]);
        let info = op.info();
        match &info.form {
            Form::Elementwise(lowerings) => {
                // Only sums and products carry the no-overflow flag further down.
                let index = self.index && self.facts.is_index(id) && matches!(op, Op::Add | Op::Sub | Op::Mul);
                let outer = std::mem::replace(&mut self.index, index);
                let divisor = operands.get(1).and_then(|e| self.constant_of(*e)).map(|value| value.cast(operand));
                let values: Vec<Val> = operands.iter().map(|e| self.operand(*e, operand)).collect();
                let result = self.elementwise(op, lowerings, operand, &values, divisor);
                self.index = outer;
                result
            }
            Form::Comparison(comparison) => {
                let types = (dtype(self, 0), dtype(self, 1));
                let (a, b) = (self.own(operands[0]), self.own(operands[1]));
                Val::One(self.compare(*comparison, operand, (&a, types.0), (&b, types.1)))
            }
            Form::Predicate(predicate) => {
                let value = self.own(operands[0]);
                let dtype = dtype(self, 0);
                Val::One(self.predicate(*predicate, dtype, &value))
            }
            Form::And => self.and(operands),
            Form::Or => {
                let parts: Vec<String> = operands.iter().map(|e| self.truth_of(*e)).collect();
                let bit = self.ty(DType::Bool);
                let folded = parts.into_iter().reduce(|a, b| self.op(format!("or {bit} {a}, {b}")));
                Val::One(folded.unwrap_or_else(|| self.all(DType::Bool, false)))
            }
            Form::Not => {
                let truth = self.truth_of(operands[0]);
                Val::One(self.not(&truth))
            }
            Form::Select => self.select(operand, operands),
            Form::Coalesce => {
                let value = self.own(operands[0]);
                self.cast(&value, dtype(self, 0), operand)
            }
            Form::Choose => {
                let values: Vec<Val> = operands.iter().map(|e| self.operand(*e, operand)).collect();
                let zero = match values.get(2) {
                    Some(zero) => zero.clone(),
                    None => {
                        let zero = self.constant(Value::zero(operand));
                        self.broadcast(&zero, operand, 1)
                    }
                };
                let equal = self.compare(ComparisonOp::Eq, operand, (&values[0], operand), (&zero, operand));
                self.blend_lanes(&equal, operand, &values[1], &values[0])
            }
            Form::Conversion(to) => {
                let value = self.own(operands[0]);
                self.cast(&value, dtype(self, 0), *to)
            }
            // The lowerer replaces user-defined operators by their bodies; the verifier knows.
            Form::Defined(_) => self.constant(Value::zero(operand)),
        }
    }

    fn constant_of(&self, id: ExprId) -> Option<Value> {
        match self.kernel.expr(id) {
            Expr::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// Evaluates an operand in its own type.
    fn own(&mut self, id: ExprId) -> Val {
        let outer = std::mem::replace(&mut self.index, false);
        let value = self.operand(id, self.kernel.exprs.dtype(id));
        self.index = outer;
        value
    }

    /// Evaluates the test that an expression is nonzero.
    fn truth_of(&mut self, id: ExprId) -> String {
        let value = self.own(id);
        self.truth(&value, self.kernel.exprs.dtype(id))
    }

    /// True if an expression can be speculated: it reads no memory, and is cheap.
    pub(super) fn is_speculatable(&self, id: ExprId, budget: &mut usize) -> bool {
        if self.memo.contains_key(&id) {
            return true;
        }
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        match self.kernel.expr(id) {
            Expr::Const(_) | Expr::Var(_) => true,
            Expr::Load(buffer, index) => {
                // The verifier has checked constant indices against the size.
                matches!(self.kernel.buffer(*buffer).role, Role::Tile(_))
                    && matches!(self.kernel.expr(*index), Expr::Const(_))
            }
            Expr::Vector(VectorExpr::Masked { .. }) => false,
            Expr::Vector(vector) => vector.operands().all(|e| self.is_speculatable(e, budget)),
            Expr::Call(op, operand, operands) => {
                !is_called(*op, *operand) && operands.iter().all(|e| self.is_speculatable(*e, budget))
            }
        }
    }

    fn select(&mut self, operand: DType, operands: &[ExprId]) -> Val {
        if self.lanes > 1 {
            let mask = self.truth_of(operands[0]);
            let then = self.with_active(&mask, |e| e.operand(operands[1], operand));
            let inactive = self.not(&mask);
            let otherwise = self.with_active(&inactive, |e| e.operand(operands[2], operand));
            return self.blend_lanes(&mask, operand, &then, &otherwise);
        }
        let condition = self.truth_of(operands[0]);
        let mut budget = MAX_SPECULATED_OPS;
        if self.is_speculatable(operands[1], &mut budget) && self.is_speculatable(operands[2], &mut budget) {
            let (then, otherwise) = (self.operand(operands[1], operand), self.operand(operands[2], operand));
            let zero = matches!(self.kernel.expr(operands[2]), Expr::Const(value) if is_zero(*value));
            if self.needs_blend && zero && matches!(operand, DType::F32 | DType::F64) {
                return self.blend(&condition, operand, then.re());
            }
            return self.blend_lanes(&condition, operand, &then, &otherwise);
        }
        let (yes, no, after) = (self.fresh("chosen"), self.fresh("other"), self.fresh("selected"));
        self.fork(&condition, &yes, &no);
        let (then, from_then) = self.branch(&yes, &after, |e| e.operand(operands[1], operand));
        let (otherwise, from_otherwise) = self.branch(&no, &after, |e| e.operand(operands[2], operand));
        self.start(&after);
        let ty = self.ty(operand);
        self.merge(ty, &[(then, from_then), (otherwise, from_otherwise)])
    }

    /// A number if a condition holds, else 0. LLVM would branch where the target has no conditional
    /// move of floats (AVX-512 has one, and integers do). Merged loops select with unpredictable
    /// conditions, so a branch is slow.
    fn blend(&mut self, condition: &str, dtype: DType, value: &str) -> Val {
        let (scalar, lanes, bits) = (super::ty(dtype), 16 / dtype.size(), 8 * dtype.size());
        let vector = format!("<{lanes} x {scalar}>");
        let name = if dtype == DType::F64 { "llvm.x86.sse41.blendvpd" } else { "llvm.x86.sse41.blendvps" };
        self.declare(name, || format!("declare {vector} @{name}({vector}, {vector}, {vector})"));
        let mask = self.op(format!("sext i1 {condition} to i{bits}"));
        let mask = self.op(format!("bitcast i{bits} {mask} to {scalar}"));
        let [value, mask] =
            [value, &mask].map(|x| self.op(format!("insertelement {vector} zeroinitializer, {scalar} {x}, i64 0")));
        let chosen =
            self.op(format!("call {vector} @{name}({vector} zeroinitializer, {vector} {value}, {vector} {mask})"));
        Val::One(self.op(format!("extractelement {vector} {chosen}, i64 0")))
    }

    fn and(&mut self, operands: &[ExprId]) -> Val {
        let mut condition = self.truth_of(operands[0]);
        let mut exits: Vec<(Val, String)> = Vec::new();
        let after = self.fresh("both");
        let depth = self.trail.len();
        for operand in &operands[1..] {
            let mut budget = MAX_SPECULATED_OPS;
            if self.lanes > 1 {
                let truth = self.with_active(&condition, |e| e.truth_of(*operand));
                let bit = self.ty(DType::Bool);
                condition = self.op(format!("and {bit} {condition}, {truth}"));
            } else if self.is_speculatable(*operand, &mut budget) {
                let truth = self.truth_of(*operand);
                condition = self.op(format!("and i1 {condition}, {truth}"));
            } else {
                let next = self.fresh("and");
                exits.push((Val::One("false".into()), self.block.clone()));
                self.fork(&condition, &next, &after);
                self.start(&next);
                condition = self.truth_of(*operand);
            }
        }
        if exits.is_empty() {
            return Val::One(condition);
        }
        exits.push((Val::One(condition), self.block.clone()));
        self.jump(&after);
        self.forget_since(depth);
        self.start(&after);
        let bit = self.ty(DType::Bool);
        self.merge(bit, &exits)
    }

    /// Evaluates in a separate block that continues at `after`; the values of the block are invalid
    /// afterwards.
    pub(super) fn branch(&mut self, label: &str, after: &str, value: impl FnOnce(&mut Self) -> Val) -> (Val, String) {
        let depth = self.trail.len();
        self.start(label);
        let value = value(self);
        self.jump(after);
        self.forget_since(depth);
        (value, self.block.clone())
    }

    pub(super) fn forget_since(&mut self, depth: usize) {
        for id in self.trail.drain(depth..) {
            self.memo.remove(&id);
        }
    }

    /// The phi of the values of the predecessor blocks.
    pub(super) fn merge(&mut self, ty: LaneType, sources: &[(Val, String)]) -> Val {
        let mut part = |pick: &dyn Fn(&Val) -> String| {
            let sources: Vec<String> =
                sources.iter().map(|(value, block)| format!("[ {}, %{block} ]", pick(value))).collect();
            self.op(format!("phi {ty} {}", sources.join(", ")))
        };
        let mut parts = vec![part(&|value| value.re().to_string())];
        if matches!(sources.first(), Some((Val::Two(..), _))) {
            parts.push(part(&|value| value.im().to_string()));
        }
        from_parts(parts)
    }
}

/// True if all bits are zero, including the sign.
fn is_zero(value: Value) -> bool {
    match value {
        Value::F64(x) => x.to_bits() == 0,
        Value::F32(x) => x.to_bits() == 0,
        _ => false,
    }
}
