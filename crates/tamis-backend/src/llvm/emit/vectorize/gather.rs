//! Gathers: vectorised loops over elements at the indices of a coordinate list, and prefetching.
//!
//! Elements are loaded one by one and inserted into a vector. On the Zen 4 where both were measured
//! this is faster than gather instructions, except for vectors that exceed the L2 cache but not the
//! last-level cache.
//!
//! The tail of a row is one vector. With mask registers (AVX-512) its lanes are masked. Elsewhere
//! masked loads are slow: in C on a Zen 3, a million rows of three take 5.3 ms with masked loads,
//! 2.6 ms with plain vector loads, and 2.4 ms with scalars. There the tail vector over-reads past
//! the row, and the surplus lanes are discarded. Rows of equal length have predictable tails, which
//! are scalar.

use super::super::{Emitter, SHORT_TRIP_LANES, Val, stored, ty};
use super::masked::ActiveLanes;
use super::{Stride, VectorPlan, VectorValues};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, Role, Stmt, VarId};

/// Minimum bytes of a list that is prefetched, since it does not fit the caches. Only short rows
/// are prefetched in software: hardware prefetchers follow long rows, but lose track between short
/// ones.
const MIN_PREFETCHED_BYTES: i64 = 16 << 20;

/// Prefetch distance in elements.
const PREFETCH_DISTANCE: i64 = 256;

/// Lengths of short rows. Still shorter rows would prefetch the same cache line repeatedly.
const SHORT_ROWS: std::ops::Range<i64> = 4..32;

impl Emitter<'_> {
    /// Evaluates an index for each lane.
    pub(super) fn lane_indices(
        &mut self,
        plan: &VectorPlan,
        lanes: usize,
        id: ExprId,
        known: &VectorValues,
    ) -> Vec<String> {
        let stride = plan.expr_strides.get(&id).copied().flatten();
        match self.kernel.expr(id) {
            Expr::Var(var) if stride == Some(Stride::Gathered) => known.gathered.get(var).cloned().unwrap_or_default(),
            Expr::Load(buffer, index) if stride == Some(Stride::Gathered) => {
                let (buffer, first) = (*buffer, self.index(*index));
                match &known.active {
                    ActiveLanes::All | ActiveLanes::OverRead(_) => self.load_coordinates(buffer, &first, lanes),
                    ActiveLanes::Masked(mask) => self.load_coordinates_masked(buffer, &first, lanes, mask),
                }
            }
            Expr::Call(op, _, operands) if stride == Some(Stride::Gathered) => {
                let operands: Vec<Vec<String>> =
                    operands.iter().map(|id| self.lane_indices(plan, lanes, *id, known)).collect();
                let (op, dtype) = (*op, tamis_ir::DType::I64);
                let lane = |lane: usize| operands.iter().map(move |operand| Val::One(operand[lane].clone())).collect();
                let values: Vec<Vec<Val>> = (0..lanes).map(lane).collect();
                values.iter().map(|values| self.apply(op, dtype, values, None).re().to_string()).collect()
            }
            _ => {
                let first = self.index(id);
                let unit = stride == Some(Stride::Unit);
                let lane = |k: usize| match k {
                    k if unit && k > 0 => self.op(format!("add nsw i64 {first}, {k}")),
                    _ => first.clone(),
                };
                (0..lanes).map(lane).collect()
            }
        }
    }

    /// Loads contiguous coordinates. Two of 32 bits are one load, since loads are the bottleneck.
    fn load_coordinates(&mut self, buffer: BufferId, first: &str, lanes: usize) -> Vec<String> {
        let mut found = Vec::with_capacity(lanes);
        let in_pairs = self.kernel.buffer(buffer).elem == Elem::Index(Width::U32) && cfg!(target_endian = "little");
        let step = if in_pairs { 2 } else { 1 };
        for k in (0..lanes).step_by(step) {
            let index = if k == 0 { first.to_string() } else { self.op(format!("add nsw i64 {first}, {k}")) };
            if !in_pairs {
                found.push(self.load(buffer, &index).re().to_string());
                continue;
            }
            let (address, align) = self.element_address(buffer, &index);
            let metadata = self.load_metadata(buffer);
            let pair = self.op(format!("load i64, ptr {address}, align {align}{metadata}"));
            found.push(self.op(format!("and i64 {pair}, {}", u32::MAX)));
            found.push(self.op(format!("lshr i64 {pair}, 32")));
        }
        found
    }

    /// Loads the first coordinates that a mask selects, at least one. The other lanes repeat the
    /// first coordinate, so that their gathers are valid.
    fn load_coordinates_masked(&mut self, buffer: BufferId, first: &str, lanes: usize, mask: &str) -> Vec<String> {
        let elem = self.kernel.buffer(buffer).elem;
        let (address, align) = self.element_address(buffer, first);
        let metadata = self.load_metadata(buffer);
        let scalar = stored(elem);
        let (vector, masks) = (format!("<{lanes} x {scalar}>"), format!("<{lanes} x i1>"));
        let first_coordinate = self.op(format!("load {scalar}, ptr {address}, align {align}{metadata}"));
        let fallback = self.splat(scalar, lanes, &first_coordinate);
        let name = format!("llvm.masked.load.v{lanes}{scalar}.p0");
        self.declare(&name, || format!("declare {vector} @{name}(ptr, i32 immarg, {masks}, {vector})"));
        let (address, masks) = (format!("ptr {address}, i32 {align}"), format!("{masks} {mask}"));
        let all = self.op(format!("call {vector} @{name}({address}, {masks}, {vector} {fallback})"));
        let half = lanes / 2;
        if elem.size() == 8 || !cfg!(target_endian = "little") {
            let each = (0..lanes).map(|k| self.op(format!("extractelement {vector} {all}, i64 {k}")));
            let each: Vec<String> = each.collect();
            let wide = |number: &String| match elem.size() {
                8 => number.clone(),
                _ => self.op(format!("zext {scalar} {number} to i64")),
            };
            return each.iter().map(wide).collect();
        }
        // Coordinates are extracted from the vector in pairs, too.
        let pairs = self.op(format!("bitcast {vector} {all} to <{half} x i64>"));
        let mut found = Vec::with_capacity(lanes);
        for k in 0..half {
            let pair = self.op(format!("extractelement <{half} x i64> {pairs}, i64 {k}"));
            found.push(self.op(format!("and i64 {pair}, {}", u32::MAX)));
            found.push(self.op(format!("lshr i64 {pair}, 32")));
        }
        found
    }

    /// True if a loop consists of reductions over gathered elements only, and its masked coordinate
    /// loads are fast.
    pub(super) fn is_gathered_reduction(&self, plan: &VectorPlan) -> bool {
        let stride = |id: &ExprId| plan.expr_strides.get(id).copied().flatten();
        let suits = |id: &ExprId| match self.kernel.expr(*id) {
            Expr::Load(buffer, _) if stride(id) == Some(Stride::Gathered) => {
                self.kernel.buffer(*buffer).elem.size() >= 4
            }
            // A unit-stride index has no first lane to repeat.
            Expr::Call(_, _, operands) if stride(id) == Some(Stride::Gathered) => {
                operands.iter().all(|id| stride(id) != Some(Stride::Unit))
            }
            _ => true,
        };
        self.is_reduction_loop(plan) && plan.expr_strides.keys().all(suits)
    }

    /// Emits a vector loop, and one vector for the tail of one to all lanes. Rows are often short,
    /// and a branch on the length of the tail would be mispredicted, so all lengths execute the
    /// same code.
    pub(super) fn gathered_reduction(
        &mut self,
        plan: &VectorPlan,
        var: VarId,
        start: ExprId,
        stop: ExprId,
        body: &[Stmt],
    ) {
        let regular = if self.has_mask_registers() { None } else { self.has_regular_rows(var, start, stop, body) };
        let (start, stop) = (self.index(start), self.index(stop));
        let name = self.kernel.var(var).name.clone();
        let (nonempty, after) = (self.fresh("nonempty"), self.fresh("after"));
        let any = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&any, &nonempty, &after);
        self.start(&nonempty);
        let vector = format!("<{SHORT_TRIP_LANES} x {}>", ty(plan.dtype));
        let slots: Vec<String> = plan.reductions.iter().map(|_| self.new_accumulator(&vector)).collect();
        let last = self.op(format!("sub nsw i64 {stop}, 1"));
        let length = self.op(format!("sub nsw i64 {last}, {start}"));
        let vector_length = self.op(format!("and i64 {length}, {}", -(SHORT_TRIP_LANES as i64)));
        let tail_start = self.op(format!("add nsw i64 {start}, {vector_length}"));
        self.count(&name, &start, &tail_start, SHORT_TRIP_LANES, Hint::default(), |e, i| {
            e.vector_iteration(plan, SHORT_TRIP_LANES, var, i, body, &slots, ActiveLanes::All);
        });
        match self.has_mask_registers() {
            true => {
                let tail_length = self.op(format!("sub nsw i64 {stop}, {tail_start}"));
                let mask = self.lower_lanes(plan.dtype, SHORT_TRIP_LANES, &tail_length);
                self.vector_iteration(
                    plan,
                    SHORT_TRIP_LANES,
                    var,
                    &tail_start,
                    body,
                    &slots,
                    ActiveLanes::Masked(mask),
                );
            }
            false => self.gathered_tail(plan, (var, &tail_start, &stop), body, &slots, regular.as_deref()),
        }
        for ((sum, subtracts), slot) in plan.reductions.iter().zip(&slots) {
            self.reduce_lanes(plan.dtype, SHORT_TRIP_LANES, *sum, *subtracts, slot);
        }
        self.jump(&after);
        self.start(&after);
    }

    /// Emits the tail of one to all lanes for targets without mask registers. It is one
    /// over-reading vector; or scalars, if rows are regular and the tail is therefore predictable,
    /// or if nothing follows the row.
    fn gathered_tail(
        &mut self,
        plan: &VectorPlan,
        (var, tail_start, stop): (VarId, &str, &str),
        body: &[Stmt],
        slots: &[String],
        regular: Option<&str>,
    ) {
        let after = self.fresh("joined");
        if let Some(guard) = self.over_read_guard(plan, var, tail_start, SHORT_TRIP_LANES, body) {
            let (overread, scalar) = (self.fresh("overread"), self.fresh("scalar"));
            let invariant = match (regular, guard.invariant) {
                (Some(regular), before) => {
                    let irregular = self.op(format!("xor i1 {regular}, true"));
                    Some(self.all_of(before, irregular))
                }
                (None, before) => before,
            };
            if let Some(invariant) = invariant {
                let check = self.fresh("check");
                self.fork(&invariant, &check, &scalar);
                self.start(&check);
            }
            self.fork(&guard.per_loop, &overread, &scalar);
            self.start(&overread);
            let tail_length = self.op(format!("sub nsw i64 {stop}, {tail_start}"));
            let mask = self.mask(plan.dtype, SHORT_TRIP_LANES, &tail_length);
            self.vector_iteration(plan, SHORT_TRIP_LANES, var, tail_start, body, slots, ActiveLanes::OverRead(mask));
            self.jump(&after);
            self.start(&scalar);
        }
        let name = self.kernel.var(var).name.clone();
        self.count(&name, tail_start, stop, 1, Hint::default(), |e, i| {
            e.define(var, Val::One(i.to_string()));
            e.stmts(body);
        });
        self.jump(&after);
        self.start(&after);
    }

    /// A run-time test whether rows seem to have equal lengths: compares two rows with the mean.
    /// `None` if the loop does not iterate over the rows of a list. It is loop-invariant in the
    /// kernel.
    fn has_regular_rows(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) -> Option<String> {
        let (Expr::Load(pos, row), Expr::Load(other, next)) = (self.kernel.expr(start), self.kernel.expr(stop)) else {
            return None;
        };
        let one = |id: &ExprId| matches!(self.kernel.expr(*id), Expr::Const(value) if value.as_i64() == Some(1));
        let follows = match self.kernel.expr(*next) {
            Expr::Call(Op::Add, _, sum) => sum.len() == 2 && sum.contains(row) && sum.iter().any(one),
            _ => false,
        };
        let input = self.kernel.buffer(*pos).role == Role::Input;
        let lists = self.unit_stride_inputs(counter, body).into_iter();
        let (pos, (list, _)) = (*pos, lists.take(1).find(|_| pos == other && follows && input)?);
        let (ends, entries) = (self.len(pos), self.len(list));
        let rows = self.op(format!("sub nsw i64 {ends}, 1"));
        let first = self.op(format!("udiv i64 {rows}, 3"));
        let second = self.op(format!("shl nuw nsw i64 {first}, 1"));
        let [a, b] = [first, second].map(|row| {
            let next = self.op(format!("add nuw nsw i64 {row}, 1"));
            let (start, stop) = (self.load(pos, &row), self.load(pos, &next));
            self.op(format!("sub nsw i64 {}, {}", stop.re(), start.re()))
        });
        let same = self.op(format!("icmp eq i64 {a}, {b}"));
        let all = self.op(format!("mul i64 {a}, {rows}"));
        let off = self.op(format!("sub i64 {all}, {entries}"));
        let tolerance = self.op(format!("lshr i64 {entries}, 4"));
        let above = self.op(format!("add i64 {off}, {tolerance}"));
        let twice = self.op(format!("shl i64 {tolerance}, 1"));
        let within = self.op(format!("icmp ule i64 {above}, {twice}"));
        Some(self.op(format!("and i1 {same}, {within}")))
    }

    /// Gathers the elements at the lanes of an index.
    pub(super) fn gather(
        &mut self,
        plan: &VectorPlan,
        lanes: usize,
        buffer: BufferId,
        index: ExprId,
        known: &VectorValues,
    ) -> String {
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let indices = self.lane_indices(plan, lanes, index, known);
        let mut all = "poison".to_string();
        for (lane, index) in indices.iter().enumerate() {
            let value = self.load(buffer, index);
            all = self.op(format!("insertelement {vector} {all}, {} {}, i64 {lane}", ty(plan.dtype), value.re()));
        }
        all
    }

    /// Prefetches the data of later rows, where rows are short and the data exceed the caches.
    /// Applies to loops over a coordinate list and the arrays read along it, and to loops over a
    /// contiguous range without coordinates, as in a band.
    pub(in super::super) fn prefetch(&mut self, counter: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        let constant = matches!(self.kernel.expr(start), Expr::Const(_));
        let is_counting_loop = !self.kernel.var(counter).mutable;
        if constant || !is_counting_loop || body.iter().any(|stmt| stmt.blocks().next().is_some()) {
            return;
        }
        let mut read = self.unit_stride_inputs(counter, body);
        let is_coordinates =
            |(buffer, _): &(BufferId, ExprId)| matches!(self.kernel.buffer(*buffer).elem, Elem::Index(_));
        if !read.iter().any(is_coordinates) {
            read = self.shifted_unit_stride_inputs(counter, body);
        }
        let size = |(buffer, _): &(BufferId, ExprId)| self.kernel.buffer(*buffer).elem.size() as i64;
        let Some(largest) = read.iter().copied().max_by_key(size) else { return };
        let min_length = MIN_PREFETCHED_BYTES / size(&largest);
        let (start, stop) = (self.index(start), self.index(stop));
        self.define(counter, Val::One(start.clone()));
        self.forget();
        let first: Vec<(BufferId, String)> = read.iter().map(|(buffer, index)| (*buffer, self.index(*index))).collect();
        self.forget();
        let (prefetch, after) = (self.fresh("prefetch"), self.fresh("prefetched"));
        let len = self.len(largest.0);
        let large = self.op(format!("icmp sgt i64 {len}, {min_length}"));
        let trip_count = self.op(format!("sub nsw i64 {stop}, {start}"));
        let excess = self.op(format!("sub i64 {trip_count}, {}", SHORT_ROWS.start));
        let short = self.op(format!("icmp ult i64 {excess}, {}", SHORT_ROWS.end - SHORT_ROWS.start));
        let both = self.op(format!("and i1 {large}, {short}"));
        self.fork(&both, &prefetch, &after);
        self.start(&prefetch);
        for (buffer, first) in first {
            self.prefetch_element(buffer, &first, PREFETCH_DISTANCE, 3);
        }
        self.jump(&after);
        self.start(&after);
    }

    /// Prefetches the element at a distance behind an index; past the end, that has no effect.
    pub(in super::super) fn prefetch_element(&mut self, buffer: BufferId, index: &str, distance: i64, locality: u8) {
        let name = "llvm.prefetch.p0";
        self.declare(name, || format!("declare void @{name}(ptr, i32 immarg, i32 immarg, i32 immarg)"));
        let ty = format!("[{} x i8]", self.kernel.buffer(buffer).elem.size());
        let data = self.data(buffer);
        let later = self.op(format!("add i64 {index}, {distance}"));
        let address = self.op(format!("getelementptr {ty}, ptr {data}, i64 {later}"));
        self.line(format!("call void @{name}(ptr {address}, i32 0, i32 {locality}, i32 1)"));
    }

    /// The inputs that statements read at the counter.
    fn unit_stride_inputs(&self, counter: VarId, body: &[Stmt]) -> Vec<(BufferId, ExprId)> {
        self.inputs(body, |index| *index == Expr::Var(counter))
    }

    /// The inputs that statements read at a loop-invariant offset from the counter.
    fn shifted_unit_stride_inputs(&self, counter: VarId, body: &[Stmt]) -> Vec<(BufferId, ExprId)> {
        let declared = |var: VarId| {
            body.iter().any(|stmt| matches!(stmt, Stmt::Let { var: v, .. } | Stmt::Search { var: v, .. } if *v == var))
        };
        let invariant = |id: ExprId| {
            let mut invariant = true;
            self.kernel.visit_expr(id, &mut |expr| {
                invariant &= match expr {
                    Expr::Var(var) => *var != counter && !declared(*var) && !self.kernel.var(*var).mutable,
                    Expr::Load(..) => false,
                    _ => true,
                };
            });
            invariant
        };
        let is_counter = |id: ExprId| *self.kernel.expr(id) == Expr::Var(counter);
        self.inputs(body, |index| match index {
            Expr::Call(Op::Add, _, sum) => match sum[..] {
                [a, b] => is_counter(a) && invariant(b) || is_counter(b) && invariant(a),
                _ => false,
            },
            _ => false,
        })
    }

    /// The inputs that statements read at certain indices, ordered by buffer id.
    fn inputs(&self, body: &[Stmt], wanted: impl Fn(&Expr) -> bool) -> Vec<(BufferId, ExprId)> {
        let mut found = Vec::new();
        for stmt in body {
            stmt.each_expr(|id| {
                self.kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr
                        && self.kernel.buffer(*buffer).role == Role::Input
                        && wanted(self.kernel.expr(*index))
                    {
                        found.push((*buffer, *index));
                    }
                });
            });
        }
        found.sort_unstable_by_key(|(buffer, index)| (buffer.index(), index.index()));
        found.dedup();
        found
    }
}
