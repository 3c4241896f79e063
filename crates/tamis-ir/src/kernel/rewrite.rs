//! Visitors and rewriting of kernel statements and expressions, shared by the passes.

use super::{
    Block, BufferId, BufferInfo, Builder, Elem, Expr, ExprId, Kernel, Origin, Role, Stmt, VarId, VectorExpr, Workspace,
};
use crate::algebra::{DType, Op};
use rustc_hash::FxHashSet;

impl Stmt {
    /// The expressions that this statement evaluates itself, without those of nested blocks.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// let (zero, ten) = (b.int(0), b.int(10));
    /// let body = b.block(|b| b.count("i", zero, ten, |_, _| {}));
    /// let mut bounds = Vec::new();
    /// body[0].each_expr(|e| bounds.push(e));
    /// assert_eq!(bounds, [zero, ten]);
    /// ```
    pub fn each_expr(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            Stmt::Let { value, .. } | Stmt::Assign { value, .. } => visit(*value),
            Stmt::Store { index, value, .. } | Stmt::Update { index, value, .. } => {
                [*index, *value].into_iter().for_each(visit);
            }
            Stmt::MaskedStore { index, value, mask, .. } => [*mask, *index, *value].into_iter().for_each(visit),
            Stmt::Prefetch { index, .. } => visit(*index),
            Stmt::For { start, stop, .. } | Stmt::Sort { start, stop, .. } => {
                [*start, *stop].into_iter().for_each(visit);
            }
            Stmt::While { cond, .. } | Stmt::If { cond, .. } | Stmt::Require { cond, .. } => visit(*cond),
            Stmt::Labelled { .. } | Stmt::Break(_) | Stmt::Barrier => {}
            Stmt::Grow { len, .. } => visit(*len),
            Stmt::Fill { start, len, value, .. } => [*start, *len, *value].into_iter().for_each(visit),
            Stmt::Search { start, stop, key, .. } => [*start, *stop, *key].into_iter().for_each(visit),
            Stmt::Gemm(gemm) => gemm.exprs().into_iter().for_each(visit),
            Stmt::Insert { coordinates: exprs, .. } | Stmt::Reset { sizes: exprs, .. } => {
                exprs.iter().copied().for_each(visit);
            }
            Stmt::Finalize { .. } => {}
        }
    }

    /// Replaces the expressions that this statement evaluates itself, in evaluation order.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let mut b = Builder::new("f");
    /// let (zero, ten) = (b.int(0), b.int(10));
    /// b.count("i", zero, ten, |_, _| {});
    /// let (mut kernel, stop) = (b.clone().finish(), b.int(9));
    /// kernel.body[0].map_exprs(|e| if e == ten { stop } else { e });
    /// assert!(matches!(kernel.body[0], Stmt::For { stop: last, .. } if last == stop));
    /// ```
    pub fn map_exprs(&mut self, mut map: impl FnMut(ExprId) -> ExprId) {
        match self {
            Stmt::Let { value, .. } | Stmt::Assign { value, .. } => *value = map(*value),
            Stmt::Store { index, value, .. } | Stmt::Update { index, value, .. } => {
                *index = map(*index);
                *value = map(*value);
            }
            Stmt::MaskedStore { index, value, mask, .. } => {
                *mask = map(*mask);
                *index = map(*index);
                *value = map(*value);
            }
            Stmt::Prefetch { index, .. } => *index = map(*index),
            Stmt::For { start, stop, .. } | Stmt::Sort { start, stop, .. } => {
                *start = map(*start);
                *stop = map(*stop);
            }
            Stmt::While { cond, .. } | Stmt::If { cond, .. } | Stmt::Require { cond, .. } => *cond = map(*cond),
            Stmt::Labelled { .. } | Stmt::Break(_) | Stmt::Barrier => {}
            Stmt::Grow { len, .. } => *len = map(*len),
            Stmt::Fill { start, len, value, .. } => {
                *start = map(*start);
                *len = map(*len);
                *value = map(*value);
            }
            Stmt::Search { start, stop, key, .. } => {
                *start = map(*start);
                *stop = map(*stop);
                *key = map(*key);
            }
            Stmt::Gemm(gemm) => gemm.exprs_mut().for_each(|id| *id = map(*id)),
            Stmt::Insert { coordinates: exprs, .. } | Stmt::Reset { sizes: exprs, .. } => {
                exprs.iter_mut().for_each(|id| *id = map(*id));
            }
            Stmt::Finalize { .. } => {}
        }
    }

    /// The blocks inside this statement; all but those of an `if` run any number of times, or may
    /// exit early.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let kernel = Kernel::parse("kernel f\nbegin\n    for i in 0..9\n        let x: i64 = i\n")?;
    /// assert_eq!(kernel.body[0].blocks().next().unwrap().len(), 1);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second) = match self {
            Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::Labelled { body, .. } => (Some(body), None),
            Stmt::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The blocks inside this statement, for changes.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let mut kernel = Kernel::parse("kernel f\nbegin\n    for i in 0..9\n        let x: i64 = i\n")?;
    /// kernel.body[0].blocks_mut().for_each(|block| block.clear());
    /// assert_eq!(kernel.size(), 1, "only the loop is left");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let (first, second) = match self {
            Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::Labelled { body, .. } => (Some(body), None),
            Stmt::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Visits this statement and all inside it, outer ones first.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// let mut statements = 0;
    /// kernel.body[0].visit(&mut |_| statements += 1);
    /// assert_eq!(statements, 2);
    /// ```
    pub fn visit(&self, visit: &mut impl FnMut(&Stmt)) {
        visit(self);
        self.blocks().for_each(|block| block.iter().for_each(|stmt| stmt.visit(visit)));
    }

    /// The variable that this statement declares, if any.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let kernel = Kernel::parse("kernel f\nbegin\n    let two: i64 = 2\n    require two < 3 else \"m\"\n")?;
    /// let declared = kernel.body[0].declares().unwrap();
    /// assert_eq!(kernel.var(declared).name, "two");
    /// assert_eq!(kernel.body[1].declares(), None);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn declares(&self) -> Option<VarId> {
        match self {
            Stmt::Let { var, .. }
            | Stmt::For { var, .. }
            | Stmt::Search { var, .. }
            | Stmt::Insert { var, .. }
            | Stmt::Finalize { var, .. } => Some(*var),
            _ => None,
        }
    }

    /// The buffers whose elements (or length) this statement itself changes.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, Kernel};
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[0]\n";
    /// let kernel = Kernel::parse(text)?;
    /// assert!(kernel.body[0].writes().eq([BufferId(1)]));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn writes(&self) -> impl Iterator<Item = BufferId> + '_ {
        let one = match self {
            Stmt::Store { buffer, .. }
            | Stmt::MaskedStore { buffer, .. }
            | Stmt::Update { buffer, .. }
            | Stmt::Grow { buffer, .. }
            | Stmt::Fill { buffer, .. }
            | Stmt::Sort { buffer, .. } => Some(*buffer),
            Stmt::Gemm(gemm) => Some(gemm.c.buffer),
            _ => None,
        };
        one.into_iter().chain(self.workspace().into_iter().flat_map(|workspace| workspace.buffers()))
    }

    /// The buffers that this statement reads, except through its expressions.
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, Kernel};
    /// let text = "kernel f\n    in crd: index u32[]\nbegin\n    let p = search crd[0..9] for 4\n";
    /// let kernel = Kernel::parse(text)?;
    /// assert!(kernel.body[0].scans().eq([BufferId(0)]));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn scans(&self) -> impl Iterator<Item = BufferId> + '_ {
        let one = match self {
            Stmt::Search { buffer, .. } | Stmt::Sort { buffer, .. } | Stmt::Update { buffer, .. } => Some(*buffer),
            _ => None,
        };
        let flags = match self {
            Stmt::Sort { flags, .. } => *flags,
            _ => None,
        };
        let matrices = match self {
            Stmt::Gemm(gemm) => gemm.views().map(|view| Some(view.buffer)),
            _ => [None; 3],
        };
        let matrices = matrices.into_iter().flatten();
        one.into_iter()
            .chain(flags)
            .chain(matrices)
            .chain(self.workspace().into_iter().flat_map(|workspace| workspace.buffers()))
    }

    /// The workspace of this statement, if any.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let text = "kernel f
    ///     scratch crd: index u32[]
    ///     scratch values: f64[]
    ///     workspace w(crd; values) from 0.0
    /// begin
    ///     reset w[9]
    /// ";
    /// let kernel = Kernel::parse(text)?;
    /// assert_eq!(kernel.body[0].workspace().unwrap().name, "w");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn workspace(&self) -> Option<&std::sync::Arc<Workspace>> {
        match self {
            Stmt::Reset { workspace, .. } | Stmt::Insert { workspace, .. } | Stmt::Finalize { workspace, .. } => {
                Some(workspace)
            }
            _ => None,
        }
    }
}

impl Kernel {
    /// Visits every statement, outer ones first.
    ///
    /// ```
    /// use tamis_ir::kernel::Stmt;
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// let mut loops = 0;
    /// kernel.visit(&mut |stmt| loops += usize::from(matches!(stmt, Stmt::For { .. })));
    /// assert_eq!(loops, 1);
    /// ```
    pub fn visit(&self, visit: &mut impl FnMut(&Stmt)) {
        self.body.iter().for_each(|stmt| stmt.visit(visit));
    }

    /// Visits an expression and all its operands, each distinct one once; a masked load also as a load.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::algebra::Op;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let n = b.param("n", DType::I64);
    /// let n = b.get(n);
    /// let square = b.call(Op::Mul, &[n, n]);
    /// let mut visited = Vec::new();
    /// b.finish().visit_expr(square, &mut |expr| visited.push(expr.clone()));
    /// assert_eq!(visited.len(), 3, "the product, and a variable twice");
    /// ```
    pub fn visit_expr(&self, id: ExprId, visit: &mut impl FnMut(&Expr)) {
        let mut open = vec![id];
        let mut seen = FxHashSet::default();
        while let Some(id) = open.pop() {
            let expr = self.expr(id);
            match expr {
                // Leaves are not memoised: visiting one twice is cheaper.
                Expr::Const(_) | Expr::Var(_) => {}
                Expr::Load(..) | Expr::Call(..) | Expr::Vector(_) => {
                    if !seen.insert(id) {
                        continue;
                    }
                }
            }
            visit(expr);
            if let Expr::Vector(VectorExpr::Masked { buffer, index, .. }) = expr {
                // A masked load is a load, too.
                visit(&Expr::Load(*buffer, *index));
            }
            match expr {
                Expr::Load(_, index) => open.push(*index),
                Expr::Call(_, _, operands) => open.extend(operands),
                Expr::Vector(vector) => open.extend(vector.operands()),
                Expr::Const(_) | Expr::Var(_) => {}
            }
        }
    }
}

impl Builder {
    /// Splits a kernel into a builder with its tables and its old body, so that a pass can emit a
    /// new one.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Kernel};
    /// let kernel = Kernel::parse("kernel f\n    in n: i64\nbegin\n    let m: i64 = n\n")?;
    /// let (b, body) = Builder::resume(kernel);
    /// assert_eq!((b.kernel().params.len(), body.len()), (1, 1));
    /// assert!(b.finish().body.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn resume(mut kernel: Kernel) -> (Builder, Block) {
        let body = std::mem::take(&mut kernel.body);
        (Builder::of(kernel), body)
    }

    /// Completes the kernel with this body.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, Stmt};
    /// let kernel = Builder::new("f").finish_with(vec![Stmt::Barrier]);
    /// assert_eq!(kernel.size(), 1);
    /// ```
    pub fn finish_with(self, body: Block) -> Kernel {
        Kernel { body, ..self.finish() }
    }

    /// The declaration of a buffer.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Elem, Role};
    /// let mut b = Builder::new("f");
    /// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// assert_eq!(b.buffer_of(x).role, Role::Input);
    /// ```
    pub fn buffer_of(&self, id: BufferId) -> &BufferInfo {
        self.kernel().buffer(id)
    }

    /// Sets whether a variable is assigned after its declaration.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let sum = b.variable("sum", Value::F64(0.0));
    /// b.set_mutable(sum, false);
    /// assert!(b.finish().to_string().ends_with("let sum: f64 = 0.0\n"));
    /// ```
    pub fn set_mutable(&mut self, var: VarId, mutable: bool) {
        self.var_mut(var).mutable = mutable;
    }

    /// Says how many lanes a variable has.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("f");
    /// let x = b.new_var("x", DType::F64, true);
    /// b.set_lanes(x, 4);
    /// assert_eq!(b.kernel().var(x).lanes, 4);
    /// ```
    pub fn set_lanes(&mut self, var: VarId, lanes: u16) {
        self.var_mut(var).lanes = lanes;
    }

    /// Says which loop of the program a variable belongs to.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::{Builder, Origin};
    /// let mut b = Builder::new("f");
    /// let p = b.new_var("p", DType::I64, false);
    /// b.set_origin(p, Some(Origin { index: 1, visits: true }));
    /// assert_eq!(b.kernel().var(p).origin.unwrap().index, 1);
    /// ```
    pub fn set_origin(&mut self, var: VarId, origin: Option<Origin>) {
        self.var_mut(var).origin = origin;
    }
}

/// True if loading this element cannot fail: the verifier has compared its constant index with the
/// size.
///
/// ```
/// use tamis_ir::kernel::rewrite::is_always_there;
/// use tamis_ir::kernel::{BufferInfo, Elem, Expr, Role};
/// use tamis_ir::{DType, Value};
/// let (elem, role) = (Elem::Value(DType::F64), Role::Tile(8));
/// let tile = BufferInfo { name: "acc".into(), elem, role };
/// assert!(is_always_there(&tile, &Expr::Const(Value::I64(7))));
/// ```
pub fn is_always_there(buffer: &BufferInfo, index: &Expr) -> bool {
    matches!(buffer.role, Role::Tile(_)) && matches!(index, Expr::Const(_))
}

/// The operands of an operator that are always evaluated; later ones are evaluated lazily.
///
/// ```
/// use tamis_ir::DType;
/// use tamis_ir::algebra::Op;
/// use tamis_ir::kernel::{Builder, rewrite::evaluated_first};
/// let mut b = Builder::new("f");
/// let (a, c) = (b.int(1), b.int(2));
/// assert_eq!(evaluated_first(Op::Select, DType::I64, &[a, a, c]), 1, "only the condition");
/// assert_eq!(evaluated_first(Op::Add, DType::I64, &[a, c]), 2);
/// ```
pub fn evaluated_first(op: Op, operand: DType, operands: &[ExprId]) -> usize {
    match op {
        Op::Select => 1,
        Op::And if operand == DType::Bool => 1,
        _ => operands.len(),
    }
}

impl Elem {
    /// True if loads yield positions or coordinates, which are never negative.
    ///
    /// ```
    /// use tamis_ir::{DType, format::Width, kernel::Elem};
    /// assert!(Elem::Index(Width::U32).is_index() && !Elem::Value(DType::I64).is_index());
    /// ```
    pub fn is_index(self) -> bool {
        matches!(self, Elem::Index(_))
    }
}
