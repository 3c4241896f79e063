//! Kernel builder: tables of buffers and variables, and statements in the current block.
//!
//! `expressions` builds the expressions, interned and with constant folding.

mod expressions;

pub(super) use expressions::result_type;

use super::{
    Assumption, Block, BufferId, BufferInfo, Elem, Expr, ExprId, Exprs, Hint, Kernel, LabelId, Role, Stmt, Var, VarId,
    Workspace,
};
use crate::algebra::{DType, Value};
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
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// let p = b.new_var("p", DType::I64, false);
    /// let value = b.int(3);
    /// b.emit(Stmt::Let { var: p, value });
    /// assert!(b.finish().to_string().ends_with("let p: i64 = 3\n"));
    /// ```
    pub fn new_var(&mut self, name: impl Into<String>, dtype: DType, mutable: bool) -> VarId {
        let name = self.unique(name.into());
        self.kernel.vars.push(Var { name, dtype, lanes: 1, mutable, origin: None });
        VarId(self.kernel.vars.len() as u32 - 1)
    }

    /// [`Builder::new_var`] for several lanes.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let x = b.new_vector("x", DType::F64, 4, true);
    /// assert_eq!(b.kernel().var(x).lanes, 4);
    /// ```
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

    // Statements

    /// Emits a statement into the current block.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// b.emit(Stmt::Barrier);
    /// assert_eq!(b.finish().body, [Stmt::Barrier]);
    /// ```
    pub fn emit(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut() {
            block.push(stmt);
        }
    }

    /// Emits into a new block, which is returned.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// assert_eq!(b.block(|b| b.emit(Stmt::Barrier)), [Stmt::Barrier]);
    /// assert!(b.finish().body.is_empty(), "the block is the caller's");
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let n = b.get(n);
    /// b.variable_from("rest", n);
    /// assert!(b.finish().to_string().ends_with("var rest: i64 = n\n"));
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("f");
    /// let crd = b.buffer("crd", Elem::Index(Width::U32), Role::Input);
    /// let (start, stop, key) = (b.int(0), b.int(9), b.int(4));
    /// b.search("p", crd, start, stop, key);
    /// assert!(b.finish().to_string().ends_with("let p = search crd[0..9] for 4\n"));
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("f");
    /// let crd = b.buffer("crd", Elem::Index(Width::U32), Role::Input);
    /// let at = [b.int(0), b.int(9), b.int(4)];
    /// b.search_from("p", crd, at, true);
    /// assert!(b.finish().to_string().ends_with("let p = search back crd[0..9] for 4\n"));
    /// ```
    pub fn search_from(&mut self, name: impl Into<String>, buffer: BufferId, at: [ExprId; 3], back: bool) -> ExprId {
        let [start, stop, key] = at;
        let var = self.new_var(name, DType::I64, false);
        self.emit(Stmt::Search { var, buffer, start, stop, key, back });
        self.get(var)
    }

    /// Declares the position of an element in a workspace.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tamis_ir::kernel::{Builder, Elem, Merge, Role, Workspace};
    /// use tamis_ir::{DType, Value, format::Width};
    /// let mut b = Builder::new("f");
    /// let crd = b.buffer("crd", Elem::Index(Width::U32), Role::Scratch);
    /// let values = b.buffer("values", Elem::Value(DType::F64), Role::Scratch);
    /// let (name, start) = ("w".to_string(), Value::F64(0.0));
    /// let coordinates = vec![crd];
    /// let (policy, capacity, pipelined, merge) = (None, None, false, Merge::Later);
    /// let w = Workspace { name, policy, capacity, pipelined, coordinates, values, start, merge };
    /// let (three, one) = (b.int(3), b.constant(Value::F64(1.0)));
    /// let place = b.insert(&Arc::new(w), vec![three]);
    /// b.store(values, place, one);
    /// assert!(b.finish().to_string().contains("let place = insert w[3]"));
    /// ```
    pub fn insert(&mut self, workspace: &std::sync::Arc<Workspace>, coordinates: Vec<ExprId>) -> ExprId {
        let var = self.new_var("place", DType::I64, false);
        self.emit(Stmt::Insert { var, workspace: workspace.clone(), coordinates });
        self.get(var)
    }

    /// Sorts and combines the entries of a workspace, and declares their number.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// let text = "kernel f
    ///     scratch crd: index u32[]
    ///     scratch values: f64[]
    ///     workspace w(crd; values) from 0.0
    /// begin
    ///     reset w[9]
    /// ";
    /// let (mut b, body) = Builder::resume(Kernel::parse(text)?);
    /// let w = body[0].workspace().unwrap().clone();
    /// b.finalize(&w);
    /// assert!(b.finish().to_string().ends_with("let w_count = finalize w\n"));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// b.labelled(|b, label| b.emit(Stmt::Break(label)));
    /// assert!(b.finish().to_string().ends_with("    block l0\n        break l0\n"));
    /// ```
    pub fn labelled(&mut self, body: impl FnOnce(&mut Builder, LabelId)) {
        let label = LabelId(self.kernel.labels);
        self.kernel.labels += 1;
        let body = self.block(|b| body(b, label));
        self.emit(Stmt::Labelled { label, body });
    }
}
