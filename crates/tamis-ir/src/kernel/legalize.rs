//! Legalisation of vectors and loop kinds, for back ends that have neither: vectors become tiles,
//! operations on them loops over lanes, and concurrent loops serial ones.
//!
//! In: a well-formed kernel. Out: a well-formed kernel that computes the same, whose expressions are
//! single values, whose loops are serial, unrolled or marked as vectorisable, without masked stores,
//! atomic updates, barriers and shared buffers. Loops over lanes have constant trip counts, so that a
//! compiler makes vectors of them again. Prefetches stay.

use super::lanes::VectorExpr;
use super::{Block, BufferId, Builder, Elem, Expr, ExprId, Hint, Kernel, LoopKind, Role, Stmt, VarId};
use crate::DType;
use crate::algebra::{Op, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

impl Kernel {
    /// True if all values are single ones and all loops serial or unrolled.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let text = "kernel f\n    out y: f64[]\nbegin\n    y[ramp(0, 1, 4)] = splat(1.0, 4)\n";
    /// let kernel = Kernel::parse(text)?;
    /// assert!(!kernel.is_plain() && kernel.legalized().is_plain());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn is_plain(&self) -> bool {
        let mut plain = self.vars.iter().all(|var| var.lanes == 1);
        plain &= self.buffers.iter().all(|buffer| !matches!(buffer.role, Role::Shared(_)));
        self.visit(&mut |stmt| {
            plain &= match stmt {
                Stmt::MaskedStore { .. } | Stmt::Update { .. } | Stmt::Barrier => false,
                Stmt::For { hint, .. } => matches!(hint.kind, LoopKind::Serial | LoopKind::Unrolled),
                Stmt::Store { index, .. } => self.exprs.lanes(*index) == 1,
                _ => true,
            };
        });
        plain &= self.exprs.ids().all(|id| !matches!(self.expr(id), Expr::Vector(_)));
        plain
    }

    /// True if it has loops over the threads of a block, whose barriers need another loop structure.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let serial = Kernel::parse("kernel f\nbegin\n    for i in 0..9\n        let x: i64 = i\n")?;
    /// assert!(!serial.has_threads());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn has_threads(&self) -> bool {
        let mut found = self.buffers.iter().any(|buffer| matches!(buffer.role, Role::Shared(_)));
        self.visit(&mut |stmt| {
            found |= matches!(stmt, Stmt::For { hint, .. } if hint.kind == LoopKind::Block);
        });
        found
    }

    /// The kernel without vectors and concurrent loops.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[ramp(0, 1, 4)] = x[ramp(0, 2, 4)]\n";
    /// let plain = Kernel::parse(text)?.legalized().to_string();
    /// assert!(plain.ends_with("    for lane in 0..4 vector\n        y[lane] = x[lane * 2]\n"));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn legalized(&self) -> Cow<'_, Kernel> {
        if self.is_plain() { Cow::Borrowed(self) } else { Cow::Owned(Legalizer::run(self)) }
    }
}

struct Legalizer<'a> {
    old: &'a Kernel,
    new: Builder,
    vars: Vec<Option<VarId>>,
    /// The tiles of vector variables.
    tiles: FxHashMap<VarId, BufferId>,
    /// Expressions that are single values.
    known: FxHashMap<ExprId, ExprId>,
}

impl Legalizer<'_> {
    fn run(old: &Kernel) -> Kernel {
        let new = Builder::new(old.name.clone());
        let (tiles, known) = (FxHashMap::default(), FxHashMap::default());
        let mut legalizer = Legalizer { old, new, vars: vec![None; old.vars.len()], tiles, known };
        for buffer in &old.buffers {
            let role = match buffer.role {
                Role::Shared(size) => Role::Tile(size),
                role => role,
            };
            legalizer.new.buffer(buffer.name.clone(), buffer.elem, role);
        }
        for param in &old.params {
            let info = old.var(*param);
            let new = legalizer.new.param(info.name.clone(), info.dtype);
            legalizer.new.set_mutable(new, info.mutable);
            legalizer.vars[param.index()] = Some(new);
        }
        for assumption in &old.assumptions {
            let assumption = assumption.map_expr(|expr| legalizer.single(expr));
            legalizer.new.assume(assumption);
        }
        let body = legalizer.block(&old.body);
        let mut kernel = legalizer.new.finish_with(body);
        kernel.labels = old.labels;
        kernel
    }

    fn var(&mut self, old: VarId) -> VarId {
        if let Some(new) = self.vars[old.index()] {
            return new;
        }
        let info = self.old.var(old);
        let new = self.new.new_var(info.name.clone(), info.dtype, info.mutable);
        self.new.set_origin(new, info.origin);
        self.vars[old.index()] = Some(new);
        new
    }

    /// The tile of a vector variable.
    fn tile(&mut self, var: VarId) -> BufferId {
        if let Some(tile) = self.tiles.get(&var) {
            return *tile;
        }
        let info = self.old.var(var);
        let tile = self.new.buffer(info.name.clone(), Elem::Value(info.dtype), Role::Tile(u32::from(info.lanes)));
        self.tiles.insert(var, tile);
        tile
    }

    /// An expression that is a single value.
    fn single(&mut self, id: ExprId) -> ExprId {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let zero = self.new.int(0);
        let new = self.lane(id, zero);
        self.known.insert(id, new);
        new
    }

    /// An expression in a lane.
    fn lane(&mut self, id: ExprId, lane: ExprId) -> ExprId {
        let old = self.old;
        match old.expr(id) {
            Expr::Const(value) => self.new.constant(*value),
            Expr::Var(var) if old.var(*var).lanes > 1 => {
                let tile = self.tile(*var);
                self.new.load(tile, lane)
            }
            Expr::Var(var) => {
                let var = self.var(*var);
                self.new.get(var)
            }
            Expr::Load(buffer, index) => {
                let index = self.lane(*index, lane);
                self.new.load(*buffer, index)
            }
            Expr::Call(op, dtype, operands) => {
                let operands: Vec<ExprId> = operands.iter().map(|operand| self.lane(*operand, lane)).collect();
                self.new.call_in(*op, *dtype, &operands)
            }
            Expr::Vector(VectorExpr::Ramp { start, step, .. }) => {
                let (start, step) = (self.lane(*start, lane), self.new.int(*step));
                let by = self.new.call_in(Op::Mul, DType::I64, &[lane, step]);
                self.new.add(start, by)
            }
            Expr::Vector(VectorExpr::Splat { value, .. }) => self.lane(*value, lane),
            Expr::Vector(VectorExpr::Masked { buffer, index, mask, otherwise }) => {
                let [index, mask, otherwise] = [*index, *mask, *otherwise].map(|operand| self.lane(operand, lane));
                let element = self.new.load(*buffer, index);
                let dtype = self.new.dtype(element);
                self.new.call_in(Op::Select, dtype, &[mask, element, otherwise])
            }
            // The statement computes it; the verifier permits it nowhere else.
            Expr::Vector(VectorExpr::Reduce { value, .. }) => self.lane(*value, lane),
        }
    }

    fn block(&mut self, block: &[Stmt]) -> Block {
        block.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    /// Statements that a closure emits.
    fn emitted(&mut self, body: impl FnOnce(&mut Self)) -> Block {
        let mut builder = std::mem::replace(&mut self.new, Builder::new(""));
        let block = builder.block(|inner| {
            std::mem::swap(inner, &mut self.new);
            body(self);
            std::mem::swap(inner, &mut self.new);
        });
        self.new = builder;
        block
    }

    /// A loop over lanes that do not depend on each other.
    fn over_lanes(&mut self, lanes: u16, body: impl FnOnce(&mut Self, ExprId)) {
        self.over_lanes_as(lanes, true, body);
    }

    /// A loop over lanes, which may be vectorised again if they do not depend on each other.
    fn over_lanes_as(&mut self, lanes: u16, vectorise: bool, body: impl FnOnce(&mut Self, ExprId)) {
        let var = self.new.new_var("lane", DType::I64, false);
        let lane = self.new.get(var);
        let (start, stop) = (self.new.int(0), self.new.int(i64::from(lanes)));
        let body = self.emitted(|it| body(it, lane));
        let hint = Hint { vectorise, ..Hint::default() };
        self.new.emit(Stmt::For { var, start, stop, body, hint });
    }

    fn stmt(&mut self, stmt: &Stmt) -> Block {
        let old = self.old;
        match stmt {
            Stmt::Let { var, value } | Stmt::Assign { var, value } => {
                let declares = matches!(stmt, Stmt::Let { .. });
                self.emitted(|it| it.set(*var, *value, declares))
            }
            Stmt::Store { buffer, index, value } => self.emitted(|it| it.store(*buffer, *index, *value, None)),
            Stmt::MaskedStore { buffer, index, value, mask } => {
                self.emitted(|it| it.store(*buffer, *index, *value, Some(*mask)))
            }
            Stmt::Update { buffer, index, op, value } => self.emitted(|it| {
                let lanes = old.exprs.lanes(*index);
                let update = |it: &mut Self, lane: ExprId| {
                    let (index, value) = (it.lane(*index, lane), it.lane(*value, lane));
                    let before = it.new.load(*buffer, index);
                    let dtype = it.new.dtype(before);
                    let after = it.new.call_in(*op, dtype, &[before, value]);
                    it.new.store(*buffer, index, after);
                };
                if lanes > 1 {
                    // Lanes may update one element.
                    it.over_lanes_as(lanes, false, update);
                } else {
                    let zero = it.new.int(0);
                    update(it, zero);
                }
            }),
            Stmt::Barrier => Block::new(),
            Stmt::For { var, start, stop, body, hint } if hint.kind == LoopKind::Block => {
                // All threads arrive at a barrier before the first goes on.
                let (start, stop) = (self.single(*start), self.single(*stop));
                let segments = body.split(|stmt| matches!(stmt, Stmt::Barrier));
                segments.map(|segment| self.segment(*var, start, stop, segment)).collect()
            }
            Stmt::For { var, start, stop, body, hint } => {
                let (start, stop) = (self.single(*start), self.single(*stop));
                let vectorise = hint.vectorise || matches!(hint.kind, LoopKind::Vector { .. });
                let kind = if hint.is_unrolled() { LoopKind::Unrolled } else { LoopKind::Serial };
                let var = self.var(*var);
                vec![Stmt::For { var, start, stop, body: self.block(body), hint: Hint { vectorise, kind, ..*hint } }]
            }
            Stmt::While { cond, body } => {
                let cond = self.single(*cond);
                vec![Stmt::While { cond, body: self.block(body) }]
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.single(*cond);
                vec![Stmt::If { cond, then: self.block(then), otherwise: self.block(otherwise) }]
            }
            Stmt::Labelled { label, body } => vec![Stmt::Labelled { label: *label, body: self.block(body) }],
            Stmt::Break(_)
            | Stmt::Grow { .. }
            | Stmt::Fill { .. }
            | Stmt::Search { .. }
            | Stmt::Sort { .. }
            | Stmt::Gemm(_)
            | Stmt::Reset { .. }
            | Stmt::Insert { .. }
            | Stmt::Finalize { .. }
            | Stmt::Prefetch { .. }
            | Stmt::Require { .. } => {
                let mut new = stmt.clone();
                new.map_exprs(|id| self.single(id));
                if let Stmt::Search { var, .. } | Stmt::Insert { var, .. } | Stmt::Finalize { var, .. } = &mut new {
                    *var = self.var(*var);
                }
                vec![new]
            }
        }
    }

    /// A loop over the threads of a block up to a barrier, with a counter of its own.
    fn segment(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) -> Stmt {
        self.vars[counter.index()] = None;
        // What was computed from the counter of the segment before is another value.
        self.known.clear();
        let var = self.var(counter);
        Stmt::For { var, start, stop, body: self.block(body), hint: Hint::default() }
    }

    /// A declaration or an assignment.
    fn set(&mut self, var: VarId, value: ExprId, declares: bool) {
        let lanes = self.old.var(var).lanes;
        if lanes > 1 {
            let tile = self.tile(var);
            return self.over_lanes(lanes, |it, lane| {
                let value = it.lane(value, lane);
                it.new.store(tile, lane, value);
            });
        }
        let value = match self.old.expr(value) {
            Expr::Vector(VectorExpr::Reduce { op, value }) => self.reduce(*op, *value),
            _ => self.single(value),
        };
        let var = self.var(var);
        self.new.emit(if declares { Stmt::Let { var, value } } else { Stmt::Assign { var, value } });
    }

    /// The lanes of a vector, combined by halves.
    fn reduce(&mut self, op: Op, value: ExprId) -> ExprId {
        let (dtype, lanes) = (self.old.exprs.dtype(value), self.old.exprs.lanes(value));
        let tile = self.new.buffer("lanes", Elem::Value(dtype), Role::Tile(u32::from(lanes)));
        self.over_lanes(lanes, |it, lane| {
            let value = it.lane(value, lane);
            it.new.store(tile, lane, value);
        });
        let mut half = lanes / 2;
        while half > 0 {
            let by = self.new.int(i64::from(half));
            self.over_lanes(half, |it, lane| {
                let upper = it.new.add(lane, by);
                let (a, b) = (it.new.load(tile, lane), it.new.load(tile, upper));
                let both = it.new.call_in(op, dtype, &[a, b]);
                it.new.store(tile, lane, both);
            });
            half /= 2;
        }
        let zero = self.new.int(0);
        self.new.load(tile, zero)
    }

    /// A store of one or several lanes. All lanes are read before one is written.
    fn store(&mut self, buffer: BufferId, index: ExprId, value: ExprId, mask: Option<ExprId>) {
        let lanes = self.old.exprs.lanes(index);
        if lanes == 1 {
            let (index, value) = (self.single(index), self.single(value));
            match mask.map(|mask| self.single(mask)) {
                None => self.new.store(buffer, index, value),
                Some(mask) => self.new.branch(mask, |b| b.store(buffer, index, value), |_| {}),
            }
            return;
        }
        let reads = |old: &Kernel, id: ExprId| {
            let mut reads = false;
            old.visit_expr(id, &mut |expr| reads |= matches!(expr, Expr::Load(from, _) if *from == buffer));
            reads
        };
        let parts = [Some(index), Some(value), mask];
        let early = parts.into_iter().flatten().any(|part| reads(self.old, part));
        let tiles = parts.map(|part| part.filter(|_| early).map(|part| self.lanes_of(part, lanes, mask)));
        // Lanes of a scatter may write one element: the last one stays.
        let distinct = matches!(self.old.expr(index), Expr::Vector(VectorExpr::Ramp { step, .. }) if *step != 0);
        self.over_lanes_as(lanes, distinct && mask.is_none(), |it, lane| {
            let [index, value, mask] = [0, 1, 2].map(|k| match (tiles[k], parts[k]) {
                (Some(tile), _) => Some(it.new.load(tile, lane)),
                (None, part) => part.map(|part| it.lane(part, lane)),
            });
            let (Some(index), Some(value)) = (index, value) else { return };
            match mask {
                None => it.new.store(buffer, index, value),
                Some(mask) => it.new.branch(mask, |b| b.store(buffer, index, value), |_| {}),
            }
        });
    }

    /// A tile that holds the lanes of an expression whose mask is true, and zeros elsewhere.
    fn lanes_of(&mut self, id: ExprId, lanes: u16, mask: Option<ExprId>) -> BufferId {
        let dtype = self.old.exprs.dtype(id);
        let tile = self.new.buffer("lanes", Elem::Value(dtype), Role::Tile(u32::from(lanes)));
        let zero = self.new.constant(Value::zero(dtype));
        self.over_lanes(lanes, |it, lane| {
            let mut value = it.lane(id, lane);
            if let Some(mask) = mask.filter(|mask| *mask != id) {
                let mask = it.lane(mask, lane);
                value = it.new.call_in(Op::Select, dtype, &[mask, value, zero]);
            }
            it.new.store(tile, lane, value);
        });
        tile
    }
}
