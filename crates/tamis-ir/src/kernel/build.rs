//! Kernel builder: tables, interned expressions with constant folding, and statements in the
//! current block.

use super::{
    Assumption, Block, BufferId, BufferInfo, Elem, Expr, ExprId, Exprs, Hint, Kernel, LabelId, Role, Stmt, Var, VarId,
    VectorExpr, Workspace,
};
use crate::algebra::{BodyTerm, DType, Op, Ty, UserOp, Value, eval};
use rustc_hash::FxHashMap;

/// A kernel under construction.
///
/// ```
/// use tamis_ir::kernel::{Array, Builder, Elem, Memory, Role, run};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let mut b = Builder::new("sum");
/// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// let n = b.param("n", DType::I64);
/// let (zero, stop) = (b.int(0), b.get(n));
/// let acc = b.variable("acc", Value::F64(0.0));
/// b.count("i", zero, stop, |b, i| {
///     let value = b.load(x, i);
///     let sum = b.get(acc);
///     let sum = b.call(Op::Add, &[sum, value]);
///     b.assign(acc, sum);
/// });
/// let sum = b.get(acc);
/// b.store(y, zero, sum);
/// let kernel = b.finish();
/// kernel.verify().unwrap();
/// let values = |v: &[f64]| Array::from_values(v.iter().map(|x| Value::F64(*x)));
/// let memory = Memory { arrays: vec![values(&[1.0, 2.0]), values(&[0.0])], scalars: vec![Value::I64(2)] };
/// let after = run(&kernel, memory, 1000).unwrap();
/// assert_eq!(after.arrays[1].get(0), Some(Value::F64(3.0)));
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    kernel: Kernel,
    /// The open blocks, innermost last.
    open: Vec<Block>,
    /// The number of variables by base name, so that names are unique; computed lazily for a kernel
    /// that exists already.
    names: Option<FxHashMap<String, u32>>,
    /// The operands of constant variables that are a minimum or a maximum.
    limits: FxHashMap<VarId, ExprId>,
    /// The lower bounds of constant variables.
    least: FxHashMap<VarId, i64>,
    /// True if some size is so large that the end of a dimension may not fit an `i64`.
    huge: bool,
}

impl Builder {
    /// An empty kernel.
    ///
    /// ```
    /// let kernel = tamis_ir::kernel::Builder::new("empty").finish();
    /// assert_eq!((kernel.name.as_str(), kernel.size()), ("empty", 0));
    /// ```
    pub fn new(name: impl Into<String>) -> Builder {
        let kernel = Kernel {
            name: name.into(),
            buffers: Vec::new(),
            vars: Vec::new(),
            params: Vec::new(),
            assumptions: Vec::new(),
            exprs: Exprs::default(),
            labels: 0,
            body: Vec::new(),
        };
        Builder {
            kernel,
            open: vec![Vec::new()],
            names: Some(FxHashMap::default()),
            limits: FxHashMap::default(),
            least: FxHashMap::default(),
            huge: false,
        }
    }

    /// A builder that continues the tables of a kernel.
    pub(super) fn of(kernel: Kernel) -> Builder {
        Builder {
            kernel,
            open: vec![Vec::new()],
            names: None,
            limits: FxHashMap::default(),
            least: FxHashMap::default(),
            huge: false,
        }
    }

    /// The assumptions, for changes.
    pub(super) fn assumptions_mut(&mut self) -> &mut Vec<Assumption> {
        &mut self.kernel.assumptions
    }

    /// A variable, for changes.
    pub(super) fn var_mut(&mut self, var: VarId) -> &mut Var {
        &mut self.kernel.vars[var.index()]
    }

    /// The kernel; its body is the emitted statements.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// let kernel = Builder::new("empty").finish();
    /// assert!(kernel.body.is_empty());
    /// ```
    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.open.pop().unwrap_or_default();
        self.kernel
    }

    /// The kernel under construction, without its body.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// assert_eq!(Builder::new("empty").kernel().name, "empty");
    /// ```
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    // Tables

    /// Adds a buffer.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("copy");
    /// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// assert_eq!(b.kernel().buffer(x).name, "x");
    /// ```
    pub fn buffer(&mut self, name: impl Into<String>, elem: Elem, role: Role) -> BufferId {
        let name = self.unique(name.into());
        self.kernel.buffers.push(BufferInfo { name, elem, role });
        BufferId(self.kernel.buffers.len() as u32 - 1)
    }

    /// Adds a scalar parameter.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("copy");
    /// let n = b.param("n", DType::I64);
    /// assert_eq!(b.finish().params, [n]);
    /// ```
    pub fn param(&mut self, name: impl Into<String>, dtype: DType) -> VarId {
        let var = self.new_var(name, dtype, false);
        self.kernel.params.push(var);
        var
    }

    /// Adds a variable without declaring it.
    pub fn new_var(&mut self, name: impl Into<String>, dtype: DType, mutable: bool) -> VarId {
        let name = self.unique(name.into());
        self.kernel.vars.push(Var { name, dtype, lanes: 1, mutable, origin: None });
        VarId(self.kernel.vars.len() as u32 - 1)
    }

    /// [`Builder::new_var`] for several lanes.
    pub fn new_vector(&mut self, name: impl Into<String>, dtype: DType, lanes: u16, mutable: bool) -> VarId {
        let var = self.new_var(name, dtype, mutable);
        self.var_mut(var).lanes = lanes;
        var
    }

    /// The name, or the name with a number if it is taken.
    fn unique(&mut self, name: String) -> String {
        let kernel = &self.kernel;
        let names = self.names.get_or_insert_with(|| {
            let taken = kernel.buffers.iter().map(|b| &b.name).chain(kernel.vars.iter().map(|v| &v.name));
            taken.map(|name| (name.clone(), 1)).collect()
        });
        let count = names.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name;
        }
        let numbered = format!("{name}_{count}");
        if names.contains_key(&numbered) {
            return self.unique(name);
        }
        names.insert(numbered.clone(), 1);
        numbered
    }

    // Expressions

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
    pub fn set_huge(&mut self) {
        self.huge = true;
    }

    /// True if rounding some size up may overflow.
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// `at * scale`, where `at` is the end of a block of `scale` coordinates. The last coordinate
    /// of the block may exceed every dimension: then the result saturates at the largest integer,
    /// which is the end of the largest possible dimension.
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
    pub fn distance(&self, a: ExprId, b: ExprId) -> Option<i64> {
        let number = |id: ExprId| self.as_constant(id).and_then(|v| v.as_i64());
        if let (Some(a), Some(b)) = (number(a), number(b)) {
            return b.checked_sub(a);
        }
        let ((a, from), (b, to)) = (self.base(a), self.base(b));
        (a == b).then(|| to.checked_sub(from)).flatten()
    }

    /// True if `a <= b` follows by symbolic comparison. Sums of coordinates do not overflow.
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
    pub fn at_least(&mut self, var: VarId, other: ExprId) {
        let least = match self.kernel.expr(other) {
            Expr::Const(value) => value.as_i64(),
            Expr::Var(other) => self.least.get(other).copied(),
            _ => None,
        };
        self.least.extend(least.map(|least| (var, least)));
    }

    /// The operands of an integer that is a minimum or a maximum, or a variable with such a value.
    fn limits_of(&self, id: ExprId) -> Option<(Op, &[ExprId])> {
        let id = match self.kernel.expr(id) {
            Expr::Var(var) => *self.limits.get(var)?,
            _ => id,
        };
        match self.kernel.expr(id) {
            Expr::Call(op @ (Op::Min | Op::Max), DType::I64, of) => Some((*op, of)),
            _ => None,
        }
    }

    // Statements

    /// Emits a statement into the current block.
    pub fn emit(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    /// Emits into a new block, which is returned.
    pub fn block(&mut self, body: impl FnOnce(&mut Builder)) -> Block {
        self.open.push(Vec::new());
        body(self);
        self.open.pop().unwrap_or_default()
    }

    /// Declares a constant variable; a constant or a variable is returned as it is.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("names");
    /// let n = b.param("n", DType::I64);
    /// let n = b.get(n);
    /// let square = b.call(Op::Mul, &[n, n]);
    /// let named = b.name("square", square);
    /// assert_eq!(b.kernel().show(named), "square");
    /// ```
    pub fn name(&mut self, name: impl Into<String>, value: ExprId) -> ExprId {
        match self.kernel.expr(value) {
            Expr::Const(_) => return value,
            Expr::Var(var) if !self.kernel.var(*var).mutable => return value,
            _ => {}
        }
        let var = self.new_vector(name, self.dtype(value), self.kernel.exprs.lanes(value), false);
        if self.limits_of(value).is_some() {
            self.limits.insert(var, value);
        }
        self.emit(Stmt::Let { var, value });
        self.get(var)
    }

    /// Declares a mutable variable with a constant initial value.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("sum");
    /// let sum = b.variable("sum", Value::F64(0.0));
    /// assert!(b.kernel().var(sum).mutable);
    /// ```
    pub fn variable(&mut self, name: impl Into<String>, start: Value) -> VarId {
        let start = self.constant(start);
        self.variable_from(name, start)
    }

    /// Declares a mutable variable.
    pub fn variable_from(&mut self, name: impl Into<String>, start: ExprId) -> VarId {
        let var = self.new_vector(name, self.dtype(start), self.kernel.exprs.lanes(start), true);
        self.emit(Stmt::Let { var, value: start });
        var
    }

    /// Changes a mutable variable.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("sum");
    /// let sum = b.variable("sum", Value::F64(0.0));
    /// let one = b.constant(Value::F64(1.0));
    /// b.assign(sum, one);
    /// assert_eq!(b.finish().size(), 2);
    /// ```
    pub fn assign(&mut self, var: VarId, value: ExprId) {
        self.emit(Stmt::Assign { var, value });
    }

    /// Writes an element.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("one");
    /// let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// let (zero, one) = (b.int(0), b.constant(Value::F64(1.0)));
    /// b.store(y, zero, one);
    /// assert!(b.finish().to_string().contains("y[0] = 1.0"));
    /// ```
    pub fn store(&mut self, buffer: BufferId, index: ExprId, value: ExprId) {
        self.emit(Stmt::Store { buffer, index, value });
    }

    /// Declares the first position in `start..stop` whose coordinate is at least `key`.
    pub fn search(
        &mut self,
        name: impl Into<String>,
        buffer: BufferId,
        start: ExprId,
        stop: ExprId,
        key: ExprId,
    ) -> ExprId {
        self.search_from(name, buffer, [start, stop, key], false)
    }

    /// The same by galloping search from the start, or from the stop if `back`, because the result
    /// is probably near.
    pub fn search_from(&mut self, name: impl Into<String>, buffer: BufferId, at: [ExprId; 3], back: bool) -> ExprId {
        let [start, stop, key] = at;
        let var = self.new_var(name, DType::I64, false);
        self.emit(Stmt::Search { var, buffer, start, stop, key, back });
        self.get(var)
    }

    /// Declares the position of an element in a workspace.
    pub fn insert(&mut self, workspace: &std::sync::Arc<Workspace>, coordinates: Vec<ExprId>) -> ExprId {
        let var = self.new_var("place", DType::I64, false);
        self.emit(Stmt::Insert { var, workspace: workspace.clone(), coordinates });
        self.get(var)
    }

    /// Sorts and combines the entries of a workspace, and declares their number.
    pub fn finalize(&mut self, workspace: &std::sync::Arc<Workspace>) -> ExprId {
        let var = self.new_var(format!("{}_count", workspace.name), DType::I64, false);
        self.emit(Stmt::Finalize { var, workspace: workspace.clone() });
        self.get(var)
    }

    /// A counting loop.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("iota");
    /// let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
    /// let n = b.param("n", DType::I64);
    /// let (zero, stop) = (b.int(0), b.get(n));
    /// b.count("i", zero, stop, |b, i| b.store(y, i, i));
    /// assert!(b.finish().to_string().contains("for i"));
    /// ```
    pub fn count(&mut self, name: &str, start: ExprId, stop: ExprId, body: impl FnOnce(&mut Builder, ExprId)) {
        let var = self.new_var(name, DType::I64, false);
        let index = self.get(var);
        let body = self.block(|b| body(b, index));
        self.emit(Stmt::For { var, start, stop, body, hint: Hint::default() });
    }

    /// A conditional; a constant condition is folded.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("folding");
    /// let sum = b.variable("sum", Value::I64(0));
    /// let (always, one) = (b.constant(Value::Bool(true)), b.int(1));
    /// b.branch(always, |b| b.assign(sum, one), |_| {});
    /// assert!(!b.finish().to_string().contains("if"), "the condition is folded");
    /// ```
    pub fn branch(&mut self, cond: ExprId, then: impl FnOnce(&mut Builder), otherwise: impl FnOnce(&mut Builder)) {
        match self.as_constant(cond) {
            Some(c) if c.is_truthy() => then(self),
            Some(_) => otherwise(self),
            None => {
                let (then, otherwise) = (self.block(then), self.block(otherwise));
                if !then.is_empty() || !otherwise.is_empty() {
                    self.emit(Stmt::If { cond, then, otherwise });
                }
            }
        }
    }

    /// A block that [`Stmt::Break`] can exit from within.
    pub fn labelled(&mut self, body: impl FnOnce(&mut Builder, LabelId)) {
        let label = LabelId(self.kernel.labels);
        self.kernel.labels += 1;
        let body = self.block(|b| body(b, label));
        self.emit(Stmt::Labelled { label, body });
    }
}

/// The type of an operator's result on `count` operands that are converted to `operand`.
pub(super) fn result_type(op: Op, operand: DType, count: usize) -> DType {
    match op {
        Op::Cast(dtype) => dtype,
        _ => op.type_of(&vec![Ty::strong(operand); count]).map_or(operand, |t| t.result.dtype),
    }
}
