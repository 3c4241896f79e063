//! Generator of random kernels: well-formed, terminating, within their buffers (which have at
//! least [`LEN`] elements), with every form of statement, most operators and nested loops.

use super::operators::edge_values;
use tamis_ir::algebra::{Op, Ty};
use tamis_ir::format::Width;
use tamis_ir::kernel::{
    Array, BufferId, Builder, Elem, ExprId, Hint, Kernel, LabelId, LoopKind, Memory, Role, Stmt, VarId,
};
use tamis_ir::{DType, Kind, Value};

/// Minimum number of elements of every buffer.
pub const LEN: i64 = 8;

/// A deterministic pseudo-random generator.
pub struct KernelRng(pub u64);

impl KernelRng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

struct KernelGenerator {
    random: KernelRng,
    b: Builder,
    /// Variables in scope.
    vars: Vec<(VarId, DType)>,
    mutable: Vec<(VarId, DType)>,
    buffers: Vec<(BufferId, Elem, Role)>,
    /// Buffers whose elements are strictly increasing.
    sorted: BufferId,
    labels: Vec<LabelId>,
    types: Vec<DType>,
    /// Functions whose last digit differs between math libraries.
    library: bool,
    exact: bool,
}

/// A random kernel, and memory for it.
pub fn kernel(seed: u64, library: bool) -> (Kernel, Memory) {
    let mut random = KernelRng(seed);
    let mut types = vec![DType::I64, DType::Bool];
    for _ in 0..3 {
        types.push(random.pick(&DType::ALL));
    }
    let exact = types.iter().all(|dtype| dtype.kind() <= Kind::Int);
    let mut b = Builder::new(format!("random {seed}"));
    let mut arrays = Vec::new();
    let mut buffers = Vec::new();
    let sorted = b.buffer("sorted", Elem::Index(random.pick(&Width::ALL)), Role::Input);
    arrays.push(Array::from_indices(&[0, 1, 3, 4, 5, 6, 10, 200]));
    for (k, dtype) in types.clone().into_iter().enumerate() {
        let elem = Elem::Value(dtype);
        let edges = edge_values(dtype);
        for role in [Role::Input, Role::Output] {
            let id = b.buffer(format!("{}{k}", if role == Role::Input { "x" } else { "y" }), elem, role);
            buffers.push((id, elem, role));
            arrays.push(Array::from_values((0..LEN).map(|_| random.pick(&edges))));
        }
        let role = if random.one_in(2) { Role::Scratch } else { Role::Tile(random.pick(&[8, 12, 5000])) };
        buffers.push((b.buffer(format!("w{k}"), elem, role), elem, role));
        arrays.push(Array::default());
    }
    for role in [Role::Input, Role::Output, Role::Scratch] {
        let elem = Elem::Index(random.pick(&Width::ALL));
        buffers.push((b.buffer("crd", elem, role), elem, role));
        let values: Vec<u64> = (0..LEN).map(|_| random.below(8) as u64).collect();
        arrays.push(if role == Role::Scratch { Array::default() } else { Array::from_indices(&values) });
    }
    let mut vars = Vec::new();
    let mut scalars = Vec::new();
    for dtype in &types {
        vars.push((b.param("s", *dtype), *dtype));
        scalars.push(match dtype {
            DType::I64 => Value::I64(random.below(12) as i64),
            _ => random.pick(&edge_values(*dtype)),
        });
    }
    let mut g = KernelGenerator {
        random,
        b,
        vars,
        mutable: Vec::new(),
        buffers,
        sorted,
        labels: Vec::new(),
        types,
        library,
        exact,
    };
    for (buffer, elem, role) in g.buffers.clone() {
        if role == Role::Scratch {
            let (len, fill) = (g.b.int(LEN), Some(g.value_for(elem)));
            g.b.emit(Stmt::Grow { buffer, len, fill });
        }
    }
    g.statements(8, 0);
    (g.b.finish(), Memory { arrays, scalars })
}

impl KernelGenerator {
    fn value_for(&mut self, elem: Elem) -> Value {
        match elem {
            Elem::Index(_) => Value::I64(self.random.below(8) as i64),
            Elem::Value(dtype) => self.random.pick(&edge_values(dtype)),
        }
    }

    fn dtype(&mut self) -> DType {
        self.random.pick(&self.types.clone())
    }

    fn buffer(&mut self, fits: impl Fn(Elem, Role) -> bool) -> Option<(BufferId, Elem, Role)> {
        let fitting: Vec<_> = self.buffers.iter().copied().filter(|(_, elem, role)| fits(*elem, *role)).collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting)) }
    }

    fn of_type(&mut self, vars: &[(VarId, DType)], dtype: DType) -> Option<VarId> {
        let fitting: Vec<VarId> = vars.iter().filter(|(_, d)| *d == dtype).map(|(v, _)| *v).collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting)) }
    }

    /// An index within every buffer.
    fn index(&mut self, depth: usize) -> ExprId {
        if self.random.one_in(3) {
            let k = self.random.below(LEN as usize) as i64;
            return self.b.int(k);
        }
        let any = self.expr(DType::I64, depth);
        let len = self.b.int(LEN);
        self.b.call_in(Op::Mod, DType::I64, &[any, len])
    }

    fn expr(&mut self, dtype: DType, depth: usize) -> ExprId {
        let choice = if depth == 0 { self.random.below(4) } else { self.random.below(12) };
        match choice {
            0 => {
                let value = self.random.pick(&edge_values(dtype));
                self.b.constant(value)
            }
            1 | 2 => match self.of_type(&self.vars.clone(), dtype) {
                Some(var) => self.b.get(var),
                None => self.expr(dtype, 0),
            },
            3 => self.load(dtype, depth.saturating_sub(1)),
            4 => self.choice(dtype, depth - 1),
            5 if dtype == DType::Bool => self.guarded(depth - 1),
            _ if dtype == DType::Bool => self.truth(depth - 1),
            5 => {
                let from = self.dtype();
                let operand = self.expr(from, depth - 1);
                self.b.call_in(Op::Cast(dtype), from, &[operand])
            }
            _ => self.arithmetic(dtype, depth - 1),
        }
    }

    fn load(&mut self, dtype: DType, depth: usize) -> ExprId {
        match self.buffer(|elem, _| elem.dtype() == dtype) {
            Some((buffer, ..)) => {
                let index = self.index(depth);
                self.b.load(buffer, index)
            }
            None => {
                let value = self.random.pick(&edge_values(dtype));
                self.b.constant(value)
            }
        }
    }

    /// A select, some of whose operands must not be evaluated.
    fn choice(&mut self, dtype: DType, depth: usize) -> ExprId {
        if self.random.one_in(2)
            && let Some((buffer, ..)) = self.buffer(|elem, role| elem == Elem::Value(dtype) && role == Role::Input)
        {
            let (index, len, zero) = (self.expr(DType::I64, depth), self.b.int(LEN), self.b.int(0));
            let above = self.b.call_in(Op::Ge, DType::I64, &[index, zero]);
            let below = self.b.call_in(Op::Lt, DType::I64, &[index, len]);
            let inside = self.b.call_in(Op::And, DType::Bool, &[above, below]);
            let (there, otherwise) = (self.b.load(buffer, index), self.expr(dtype, depth));
            return self.b.call_in(Op::Select, dtype, &[inside, there, otherwise]);
        }
        let condition = self.expr(DType::Bool, depth);
        let other = self.dtype();
        let (then, otherwise) = (self.expr(dtype, depth), self.expr(other, depth));
        self.b.call_in(Op::Select, dtype, &[condition, then, otherwise])
    }

    /// A short-circuit condition: its second operand must not be evaluated unless the first holds.
    fn guarded(&mut self, depth: usize) -> ExprId {
        let dtype = self.dtype();
        let Some((buffer, ..)) = self.buffer(|elem, role| elem == Elem::Value(dtype) && role == Role::Input) else {
            return self.truth(depth);
        };
        let (index, len, zero) = (self.expr(DType::I64, depth), self.b.int(LEN), self.b.int(0));
        let above = self.b.call_in(Op::Le, DType::I64, &[zero, index]);
        let below = self.b.call_in(Op::Gt, DType::I64, &[len, index]);
        let inside = self.b.call_in(Op::And, DType::Bool, &[above, below]);
        let there = self.b.load(buffer, index);
        let there = self.b.call_in(Op::Cast(DType::Bool), dtype, &[there]);
        self.b.call_in(Op::And, DType::Bool, &[inside, there])
    }

    fn truth(&mut self, depth: usize) -> ExprId {
        let (a, b) = (self.dtype(), self.dtype());
        let (x, y) = (self.expr(a, depth), self.expr(b, depth));
        let op = self.random.pick(&[
            Op::Eq,
            Op::Ne,
            Op::Lt,
            Op::Le,
            Op::Gt,
            Op::Ge,
            Op::And,
            Op::Or,
            Op::Not,
            Op::IsNan,
            Op::IsFinite,
        ]);
        let operands = if op.info().arity.0 == 1 { vec![x] } else { vec![x, y] };
        let types: Vec<Ty> = operands.iter().map(|e| Ty::strong(self.b.dtype(*e))).collect();
        match op.type_of(&types) {
            Ok(op_type) => self.b.call_in(op, op_type.operand, &operands),
            Err(_) => self.b.call_in(Op::Eq, a.promote(b), &[x, y]),
        }
    }

    fn arithmetic(&mut self, dtype: DType, depth: usize) -> ExprId {
        let mut ops = vec![Op::Add, Op::Sub, Op::Mul, Op::Choose, Op::Neg];
        if dtype.kind() != Kind::Complex {
            ops.extend([Op::Min, Op::Max, Op::FloorDiv, Op::Mod, Op::Relu, Op::Sign, Op::Abs]);
        }
        match dtype.kind() {
            Kind::Int => ops.extend([Op::BitAnd, Op::BitOr, Op::BitXor, Op::BitNot, Op::Shl, Op::Shr, Op::Pow]),
            Kind::Float => ops.extend([Op::Div, Op::Floor, Op::Round, Op::Sqrt]),
            _ => ops.push(Op::Div),
        }
        if self.library && dtype.kind() >= Kind::Float {
            ops.extend([Op::Exp, Op::Sin, Op::Tanh, Op::Pow]);
        }
        let op = self.random.pick(&ops);
        let (least, most) = op.info().arity;
        let count = if least == most { least } else { 2 + self.random.below(2) };
        let operands: Vec<ExprId> = (0..count)
            .map(|_| {
                let from = if self.random.one_in(4) { self.dtype() } else { dtype };
                self.expr(from, depth)
            })
            .collect();
        self.b.call_in(op, dtype, &operands)
    }

    fn block(&mut self, count: usize, depth: usize) -> Vec<Stmt> {
        let (vars, mutable) = (self.vars.len(), self.mutable.len());
        let mut builder = std::mem::replace(&mut self.b, Builder::new(""));
        let statements = builder.block(|inner| self.within(inner, count, depth));
        self.b = builder;
        self.vars.truncate(vars);
        self.mutable.truncate(mutable);
        statements
    }

    /// Emits statements into a builder whose block is open.
    fn within(&mut self, builder: &mut Builder, count: usize, depth: usize) {
        std::mem::swap(builder, &mut self.b);
        self.statements(count, depth);
        std::mem::swap(builder, &mut self.b);
    }

    fn statements(&mut self, count: usize, depth: usize) {
        for _ in 0..1 + self.random.below(count) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth < 3 { 19 } else { 12 }) {
            0 | 1 => {
                let dtype = self.dtype();
                let value = self.expr(dtype, 2);
                let mutable = self.random.one_in(2);
                let var = self.b.new_var("v", dtype, mutable);
                self.b.emit(Stmt::Let { var, value });
                self.vars.push((var, dtype));
                if mutable {
                    self.mutable.push((var, dtype));
                }
            }
            2 | 3 => {
                if !self.mutable.is_empty() {
                    let (var, dtype) = self.random.pick(&self.mutable.clone());
                    let value = self.update(dtype, |g| g.b.get(var));
                    self.b.assign(var, value);
                }
            }
            4..=7 => {
                let Some((buffer, elem, _)) = self.buffer(|_, role| role != Role::Input) else { return };
                let index = self.index(1);
                let value = match elem {
                    Elem::Index(_) => self.index(2),
                    Elem::Value(dtype) => self.update(dtype, |g| g.b.load(buffer, index)),
                };
                self.b.store(buffer, index, value);
            }
            8 => self.memory(),
            9 => self.order(),
            10 => {
                if self.labels.is_empty() {
                    return;
                }
                let label = self.random.pick(&self.labels.clone());
                let cond = self.expr(DType::Bool, 2);
                self.b.branch(cond, |b| b.emit(Stmt::Break(label)), |_| {});
            }
            11 => {
                let (condition, always) = (self.expr(DType::Bool, 1), self.random.below(10) > 0);
                let always = self.b.constant(Value::Bool(always));
                let cond = self.b.call_in(Op::Or, DType::Bool, &[condition, always]);
                let message = format!("message {}", self.random.below(3));
                self.b.emit(Stmt::Require { cond, message });
            }
            12 | 13 => {
                let cond = self.expr(DType::Bool, 2);
                let then = self.block(3, depth + 1);
                let otherwise = if self.random.one_in(2) { self.block(3, depth + 1) } else { Vec::new() };
                self.b.emit(Stmt::If { cond, then, otherwise });
            }
            14 | 15 => self.count(depth),
            16 => self.repeat(depth),
            _ => {
                let (vars, mutable) = (self.vars.len(), self.mutable.len());
                let mut builder = std::mem::replace(&mut self.b, Builder::new(""));
                builder.labelled(|inner, label| {
                    self.labels.push(label);
                    self.within(inner, 4, depth + 1);
                    self.labels.pop();
                });
                self.b = builder;
                self.vars.truncate(vars);
                self.mutable.truncate(mutable);
            }
        }
    }

    /// A new value of a variable or element, often derived from the current one.
    fn update(&mut self, dtype: DType, place: impl Fn(&mut KernelGenerator) -> ExprId) -> ExprId {
        let value = self.expr(dtype, 2);
        if self.random.one_in(2) || dtype == DType::Bool {
            return value;
        }
        let before = place(self);
        let op = self.random.pick(&[Op::Add, Op::Add, Op::Mul, Op::Sub, Op::Choose]);
        self.b.call_in(op, dtype, &[before, value])
    }

    fn memory(&mut self) {
        let grows = |role| matches!(role, Role::Output | Role::Scratch);
        let Some((buffer, elem, role)) = self.buffer(|_, role| role != Role::Input) else { return };
        if grows(role) && self.random.one_in(2) {
            let len = self.b.int(self.random.below(30) as i64 - 2);
            let more = self.index(1);
            let (len, fill) = (self.b.add(len, more), Some(self.value_for(elem)));
            self.b.emit(Stmt::Grow { buffer, len, fill });
        } else {
            let start = self.random.below(LEN as usize);
            let len = self.random.below(LEN as usize - start + 1) as i64 - 1;
            let (start, len) = (self.b.int(start as i64), self.b.int(len));
            let value = match elem {
                Elem::Index(_) => self.index(1),
                Elem::Value(dtype) => self.expr(dtype, 1),
            };
            self.b.emit(Stmt::Fill { buffer, start, len, value });
        }
    }

    fn order(&mut self) {
        let (start, stop) = (self.index(1), self.index(1));
        if self.random.one_in(2) {
            let key = self.expr(DType::I64, 2);
            let var = self.b.new_var("found", DType::I64, false);
            let back = self.random.one_in(2);
            self.b.emit(Stmt::Search { var, buffer: self.sorted, start, stop, key, back });
            self.vars.push((var, DType::I64));
        } else if let Some((buffer, ..)) =
            self.buffer(|elem, role| matches!(elem, Elem::Index(_)) && role != Role::Input)
        {
            self.b.emit(Stmt::Sort { buffer, start, stop, flags: None });
        }
    }

    fn count(&mut self, depth: usize) {
        let constant = self.random.one_in(2);
        let (start, stop) = if constant {
            (self.b.int(self.random.below(3) as i64), self.b.int(self.random.below(6) as i64))
        } else {
            (self.index(1), self.index(2))
        };
        let var = self.b.new_var("i", DType::I64, self.random.one_in(8));
        self.vars.push((var, DType::I64));
        let body = self.block(4, depth + 1);
        self.vars.pop();
        let hint = Hint {
            vectorise: self.exact && self.random.one_in(2),
            kind: if constant && self.random.one_in(2) { LoopKind::Unrolled } else { LoopKind::Serial },
            ..Hint::default()
        };
        self.b.emit(Stmt::For { var, start, stop, body, hint });
    }

    fn repeat(&mut self, depth: usize) {
        let counter = self.b.variable("turn", Value::I64(0));
        let (now, iterations, one) = (self.b.get(counter), self.b.int(self.random.below(5) as i64), self.b.int(1));
        let again = self.b.call_in(Op::Lt, DType::I64, &[now, iterations]);
        let condition = self.expr(DType::Bool, 2);
        let cond = self.b.call_in(Op::And, DType::Bool, &[again, condition]);
        // The counter is not among the variables, so no statement assigns it.
        let mut body = self.block(4, depth + 1);
        let next = self.b.add(now, one);
        body.insert(0, Stmt::Assign { var: counter, value: next });
        self.b.emit(Stmt::While { cond, body });
    }
}
