//! Expression builder: interned expressions with constant folding and symbolic comparison.

use super::Builder;
use crate::algebra::{BodyTerm, DType, Op, Ty, UserOp, Value, eval};
use crate::kernel::{BufferId, Expr, ExprId, VarId, VectorExpr};

impl Builder {
    /// A constant.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("constant");
    /// let half = b.constant(Value::F32(0.5));
    /// assert_eq!(b.as_constant(half), Some(Value::F32(0.5)));
    /// ```
    pub fn constant(&mut self, value: Value) -> ExprId {
        self.kernel.exprs.intern(Expr::Const(value), value.dtype(), 1)
    }

    /// An `i64` constant.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("constant");
    /// let two = b.int(2);
    /// assert_eq!(b.as_constant(two), Some(Value::I64(2)));
    /// ```
    pub fn int(&mut self, value: i64) -> ExprId {
        self.constant(Value::I64(value))
    }

    /// The value of a variable.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Expr};
    /// let mut b = Builder::new("copy");
    /// let n = b.param("n", DType::I64);
    /// let stop = b.get(n);
    /// assert_eq!(b.kernel().expr(stop), &Expr::Var(n));
    /// ```
    pub fn get(&mut self, var: VarId) -> ExprId {
        let info = self.kernel.var(var);
        let (dtype, lanes) = (info.dtype, info.lanes);
        self.kernel.exprs.intern(Expr::Var(var), dtype, lanes)
    }

    /// An element of a buffer.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("copy");
    /// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// let zero = b.int(0);
    /// let first = b.load(x, zero);
    /// assert_eq!(b.kernel().show(first), "x[0]");
    /// ```
    pub fn load(&mut self, buffer: BufferId, index: ExprId) -> ExprId {
        let dtype = self.kernel.buffer(buffer).elem.dtype();
        let lanes = self.kernel.exprs.lanes(index);
        self.kernel.exprs.intern(Expr::Load(buffer, index), dtype, lanes)
    }

    /// A vector, or what is made of one.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, VectorExpr};
    /// let mut b = Builder::new("f");
    /// let start = b.int(3);
    /// let ramp = b.vector(VectorExpr::Ramp { start, step: 2, lanes: 4 });
    /// assert_eq!(b.kernel().show(ramp), "ramp(3, 2, 4)");
    /// ```
    pub fn vector(&mut self, vector: VectorExpr) -> ExprId {
        let exprs = &self.kernel.exprs;
        let (dtype, lanes) = match vector {
            VectorExpr::Ramp { lanes, .. } => (DType::I64, lanes),
            VectorExpr::Splat { value, lanes } => (exprs.dtype(value), lanes),
            VectorExpr::Masked { buffer, index, .. } => (self.kernel.buffer(buffer).elem.dtype(), exprs.lanes(index)),
            VectorExpr::Reduce { op, value } => (result_type(op, exprs.dtype(value), 2), 1),
        };
        self.kernel.exprs.intern(Expr::Vector(vector), dtype, lanes)
    }

    /// The value of a constant expression.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::algebra::Op;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("folding");
    /// let (two, three) = (b.int(2), b.int(3));
    /// let product = b.call(Op::Mul, &[two, three]);
    /// assert_eq!(b.as_constant(product), Some(Value::I64(6)));
    /// ```
    pub fn as_constant(&self, id: ExprId) -> Option<Value> {
        match self.kernel.expr(id) {
            Expr::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// The type of an expression.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let two = b.int(2);
    /// assert_eq!(b.dtype(two), DType::I64);
    /// ```
    pub fn dtype(&self, id: ExprId) -> DType {
        self.kernel.exprs.dtype(id)
    }

    /// An operator on operands, in the type of the type rule.
    ///
    /// # Panics
    /// If the operator does not accept these operands: callers check types first.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("folding");
    /// let n = b.param("n", DType::I64);
    /// let (n, one) = (b.get(n), b.int(1));
    /// assert_eq!(b.call(Op::Mul, &[n, one]), n, "an identity is folded");
    /// ```
    pub fn call(&mut self, op: Op, operands: &[ExprId]) -> ExprId {
        let types: Vec<Ty> = operands.iter().map(|e| Ty::strong(self.dtype(*e))).collect();
        let operand = match op.type_of(&types) {
            Ok(op_type) => op_type.operand,
            Err(reason) => panic!("{op:?} {reason}"),
        };
        self.call_in(op, operand, operands)
    }

    /// An operator on operands that are converted to `operand`. Constants are folded, and so are
    /// identities (`x + 0`, `x * 1` on integers, conversions to the same type).
    ///
    /// A user-defined operator is inlined: kernels hold built-in operators only.
    ///
    /// ```
    /// use tamis_ir::{DType, Value, algebra::Op};
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let (two, three) = (b.int(2), b.int(3));
    /// let sum = b.call_in(Op::Add, DType::F32, &[two, three]);
    /// assert_eq!(b.as_constant(sum), Some(Value::F32(5.0)));
    /// ```
    pub fn call_in(&mut self, op: Op, operand: DType, operands: &[ExprId]) -> ExprId {
        if let Op::User(user) = op {
            return self.expand(user, operand, operands);
        }
        let lanes = self.kernel.exprs.most_lanes(operands);
        if lanes > 1 {
            // What is folded below is single values.
            let result = result_type(op, operand, operands.len());
            return self.kernel.exprs.intern(Expr::Call(op, operand, operands.to_vec()), result, lanes);
        }
        let constants: Option<Vec<Value>> = operands.iter().map(|e| self.as_constant(*e)).collect();
        if let Some(constants) = constants {
            return self.constant(eval(op, operand, &constants));
        }
        let same = |b: &Builder, e: ExprId| b.dtype(e) == operand;
        match (op, operands) {
            (Op::Cast(dtype), [a]) if self.dtype(*a) == dtype => return *a,
            // Converting first to the same type changes nothing.
            (Op::Cast(dtype), [a]) if dtype == operand => return self.call_in(op, self.dtype(*a), operands),
            (Op::Add | Op::Sub | Op::Mul, [a, b]) if operand == DType::I64 && same(self, *a) && same(self, *b) => {
                let (x, y) = (self.as_constant(*a), self.as_constant(*b));
                match (op, x, y) {
                    (Op::Add | Op::Sub, _, Some(Value::I64(0))) | (Op::Mul, _, Some(Value::I64(1))) => return *a,
                    (Op::Add, Some(Value::I64(0)), _) | (Op::Mul, Some(Value::I64(1)), _) => return *b,
                    (Op::Mul, Some(Value::I64(0)), _) => return *a,
                    (Op::Mul, _, Some(Value::I64(0))) => return *b,
                    (Op::Sub, ..) if a == b => return self.int(0),
                    _ => {}
                }
            }
            (Op::Min | Op::Max, [a, b]) if a == b && same(self, *a) => return *a,
            (Op::Eq | Op::Le | Op::Ge, [a, b]) if a == b && operand == DType::I64 => {
                return self.constant(Value::Bool(true));
            }
            (Op::Not, [a]) => {
                // A double negation.
                if let Expr::Call(Op::Not, _, inner) = self.kernel.expr(*a)
                    && self.dtype(inner[0]) == DType::Bool
                {
                    return inner[0];
                }
            }
            (Op::And, [a, b]) => match (self.as_constant(*a), self.as_constant(*b)) {
                (Some(Value::Bool(true)), _) if self.dtype(*b) == DType::Bool => return *b,
                (_, Some(Value::Bool(true))) if self.dtype(*a) == DType::Bool => return *a,
                (Some(Value::Bool(false)), _) | (_, Some(Value::Bool(false))) => {
                    return self.constant(Value::Bool(false));
                }
                _ => {}
            },
            (Op::Select, [c, a, b]) => match self.as_constant(*c) {
                Some(c) if same(self, if c.is_truthy() { *a } else { *b }) => {
                    return if c.is_truthy() { *a } else { *b };
                }
                None if a == b && same(self, *a) => return *a,
                // `c or c`.
                None if c == b && operand == DType::Bool && self.as_constant(*a) == Some(Value::Bool(true)) => {
                    return *c;
                }
                _ => {}
            },
            _ => {}
        }
        let result = result_type(op, operand, operands.len());
        self.kernel.exprs.intern(Expr::Call(op, operand, operands.to_vec()), result, 1)
    }

    /// The body of an operator, on operands that are converted to one type.
    fn expand(&mut self, user: UserOp, operand: DType, operands: &[ExprId]) -> ExprId {
        let given: Vec<ExprId> = operands.iter().map(|e| self.call_in(Op::Cast(operand), operand, &[*e])).collect();
        // The caller has typed the call, and so the body.
        let types = user.types(operand).unwrap_or_default();
        let mut terms: Vec<ExprId> = Vec::with_capacity(types.len());
        for (term, op_type) in user.body().iter().zip(types) {
            let built = match term {
                BodyTerm::Param(k) => given[*k],
                BodyTerm::Literal(value) => self.constant(*value),
                BodyTerm::Call(op, of) => {
                    let mut of: Vec<ExprId> = of.iter().map(|k| terms[*k]).collect();
                    let conditions = match op {
                        Op::And | Op::Or => of.len(),
                        Op::Select => 1,
                        _ => 0,
                    };
                    for e in of.iter_mut().take(conditions) {
                        *e = self.call_in(Op::Cast(DType::Bool), DType::Bool, &[*e]);
                    }
                    match (op, &of[..]) {
                        (Op::Or, [a, b]) => {
                            let yes = self.constant(Value::Bool(true));
                            self.call_in(Op::Select, DType::Bool, &[*a, yes, *b])
                        }
                        // Operands in kernels are never missing.
                        (Op::Coalesce, [first, ..]) => {
                            self.call_in(Op::Cast(op_type.operand), op_type.operand, &[*first])
                        }
                        _ => self.call_in(*op, op_type.operand, &of),
                    }
                }
            };
            terms.push(built);
        }
        let zero = Value::zero(operand);
        terms.last().copied().unwrap_or_else(|| self.constant(zero))
    }

    /// The sum of two `i64`.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("folding");
    /// let n = b.param("n", DType::I64);
    /// let (n, zero) = (b.get(n), b.int(0));
    /// assert_eq!(b.add(n, zero), n);
    /// ```
    pub fn add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.negated(a), self.negated(b), self.as_constant(b)) {
            (_, Some(b), _) => self.sub(a, b),
            (Some(a), _, _) => self.sub(b, a),
            (_, _, Some(Value::I64(by))) => self.plus(a, by),
            _ => self.call_in(Op::Add, DType::I64, &[a, b]),
        }
    }

    /// `a - b` of two integers.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let (n, one) = (b.get(n), b.int(1));
    /// let next = b.add(n, one);
    /// assert_eq!(b.sub(next, one), n, "n + 1 - 1 is n");
    /// ```
    pub fn sub(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.negated(b), self.as_constant(b)) {
            (Some(b), _) => self.call_in(Op::Add, DType::I64, &[a, b]),
            (_, Some(Value::I64(by))) => match by.checked_neg() {
                Some(by) => self.plus(a, by),
                None => self.call_in(Op::Sub, DType::I64, &[a, b]),
            },
            _ => match self.subtracted_difference(a, b) {
                Some((of, by)) => self.plus(of, by),
                None => self.call_in(Op::Sub, DType::I64, &[a, b]),
            },
        }
    }

    /// `a - b` as an expression and a constant if `a` is a constant and `b` a difference from one:
    /// `4 - (3 - x)` is `x + 1`.
    fn subtracted_difference(&self, a: ExprId, b: ExprId) -> Option<(ExprId, i64)> {
        let Expr::Call(Op::Sub, DType::I64, operands) = self.kernel.expr(b) else { return None };
        let number = |id: ExprId| self.as_constant(id).and_then(|v| v.as_i64());
        let by = number(a)?.checked_sub(number(operands[0])?)?;
        (self.dtype(operands[1]) == DType::I64).then_some((operands[1], by))
    }

    /// An integer plus a constant; constants of nested sums are combined.
    fn plus(&mut self, a: ExprId, by: i64) -> ExprId {
        let (base, before) = self.base(a);
        let (base, by) = match before.checked_add(by) {
            Some(by) => (base, by),
            None => (a, by),
        };
        match by {
            i64::MIN | 0.. => {
                let by = self.int(by);
                self.call_in(Op::Add, DType::I64, &[base, by])
            }
            _ => {
                let by = self.int(-by);
                self.call_in(Op::Sub, DType::I64, &[base, by])
            }
        }
    }

    /// An integer as a base plus a constant offset.
    fn base(&self, id: ExprId) -> (ExprId, i64) {
        if let Expr::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) = self.kernel.expr(id)
            && let Some(Value::I64(by)) = self.as_constant(operands[1])
            && self.dtype(operands[0]) == DType::I64
        {
            return match (op, by.checked_neg()) {
                (Op::Sub, Some(by)) => (operands[0], by),
                (Op::Sub, None) => (id, 0),
                _ => (operands[0], by),
            };
        }
        (id, 0)
    }

    /// The operand of a negation.
    fn negated(&self, id: ExprId) -> Option<ExprId> {
        match self.kernel.expr(id) {
            Expr::Call(Op::Sub, DType::I64, operands) if self.as_constant(operands[0]) == Some(Value::I64(0)) => {
                Some(operands[1])
            }
            _ => None,
        }
    }

    /// Notes that rounding some size up may overflow.
    ///
    /// ```
    /// let mut b = tamis_ir::kernel::Builder::new("f");
    /// b.set_huge();
    /// assert!(b.is_huge());
    /// ```
    pub fn set_huge(&mut self) {
        self.huge = true;
    }

    /// True if rounding some size up may overflow.
    ///
    /// ```
    /// assert!(!tamis_ir::kernel::Builder::new("f").is_huge(), "sizes fit unless specified");
    /// ```
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// `at * scale`, where `at` is the end of a block of `scale` coordinates. The last coordinate
    /// of the block may exceed every dimension: then the result saturates at the largest integer,
    /// which is the end of the largest possible dimension.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let n = b.get(n);
    /// let end = b.end_of_block(n, 4);
    /// assert_eq!(b.kernel().show(end), "n * 4");
    /// ```
    pub fn end_of_block(&mut self, at: ExprId, scale: u64) -> ExprId {
        let by = self.int(scale as i64);
        if !self.huge || scale <= 1 {
            return self.call_in(Op::Mul, DType::I64, &[at, by]);
        }
        let (one, rest, most) = (self.int(1), self.int(scale as i64 - 1), self.int(i64::MAX - 1));
        let last = self.sub(at, one);
        let first = self.call_in(Op::Mul, DType::I64, &[last, by]);
        let last = self.call_in(Op::Add, DType::I64, &[first, rest]);
        let last = self.call_in(Op::Min, DType::I64, &[last, most]);
        self.call_in(Op::Add, DType::I64, &[last, one])
    }

    /// `b - a`, if it is a constant by symbolic comparison.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let (n, three) = (b.get(n), b.int(3));
    /// let later = b.add(n, three);
    /// assert_eq!(b.distance(n, later), Some(3));
    /// ```
    pub fn distance(&self, a: ExprId, b: ExprId) -> Option<i64> {
        let number = |id: ExprId| self.as_constant(id).and_then(|v| v.as_i64());
        if let (Some(a), Some(b)) = (number(a), number(b)) {
            return b.checked_sub(a);
        }
        let ((a, from), (b, to)) = (self.base(a), self.base(b));
        (a == b).then(|| to.checked_sub(from)).flatten()
    }

    /// True if `a <= b` follows by symbolic comparison. Sums of coordinates do not overflow.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let (n, m) = (b.param("n", DType::I64), b.param("m", DType::I64));
    /// let (n, m) = (b.get(n), b.get(m));
    /// let least = b.call(Op::Min, &[n, m]);
    /// assert!(b.is_at_most(least, n) && !b.is_at_most(n, least));
    /// ```
    pub fn is_at_most(&self, a: ExprId, b: ExprId) -> bool {
        if let (Some(a), Some(b)) =
            (self.as_constant(a).and_then(|v| v.as_i64()), self.as_constant(b).and_then(|v| v.as_i64()))
        {
            return a <= b;
        }
        let ((base, less), (limit, more)) = (self.base(a), self.base(b));
        if base == limit && less <= more {
            return true;
        }
        if let (Some(Value::I64(a)), Expr::Var(var)) = (self.as_constant(a), self.kernel.expr(limit))
            && self.least.get(var).is_some_and(|least| least.checked_add(more).is_some_and(|least| a <= least))
        {
            return true;
        }
        match (self.limits_of(a), self.limits_of(b)) {
            (Some((Op::Min, of)), _) if of.iter().any(|a| self.is_at_most(*a, b)) => true,
            (Some((Op::Max, of)), _) if of.iter().all(|a| self.is_at_most(*a, b)) => true,
            (_, Some((Op::Max, of))) if of.iter().any(|b| self.is_at_most(a, *b)) => true,
            (_, Some((Op::Min, of))) if of.iter().all(|b| self.is_at_most(a, *b)) => true,
            _ => false,
        }
    }

    /// Records the lower bound of another number as a lower bound of a variable.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let (stop, zero) = (b.get(n), b.int(0));
    /// b.at_least(n, zero);
    /// assert!(b.is_at_most(zero, stop));
    /// ```
    pub fn at_least(&mut self, var: VarId, other: ExprId) {
        let least = match self.kernel.expr(other) {
            Expr::Const(value) => value.as_i64(),
            Expr::Var(other) => self.least.get(other).copied(),
            _ => None,
        };
        self.least.extend(least.map(|least| (var, least)));
    }

    /// The operands of an integer that is a minimum or a maximum, or a variable with such a value.
    pub(super) fn limits_of(&self, id: ExprId) -> Option<(Op, &[ExprId])> {
        let id = match self.kernel.expr(id) {
            Expr::Var(var) => *self.limits.get(var)?,
            _ => id,
        };
        match self.kernel.expr(id) {
            Expr::Call(op @ (Op::Min | Op::Max), DType::I64, of) => Some((*op, of)),
            _ => None,
        }
    }
}

/// The type of an operator's result on `count` operands that are converted to `operand`.
pub(in crate::kernel) fn result_type(op: Op, operand: DType, count: usize) -> DType {
    match op {
        Op::Cast(dtype) => dtype,
        _ => op.type_of(&vec![Ty::strong(operand); count]).map_or(operand, |t| t.result.dtype),
    }
}
