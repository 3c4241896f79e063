//! Vectorised reductions: multiple accumulators, aligned vectors, masked tails, and accumulators
//! that outlive a loop.
//!
//! A horizontal sum of lanes takes as long as adding several vectors. A reduction that continues
//! across inner loops (the blocks of a row, or rows) therefore keeps its accumulator in the loop
//! around them.

use super::super::{Emitter, Val, ty};
use super::masked::ActiveLanes;
use super::{ACCUMULATOR_VECTORS, Stride, VectorPlan, has_masks};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Expr, ExprId, Hint, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// Half the width of the widest vectors, in bytes.
const HALF_VECTOR_BYTES: usize = 32;

/// Minimum length, in vectors, for which aligned loads pay if a vector is as long as a cache line.
const MIN_ALIGNED_VECTORS: usize = 16;

/// The same for shorter vectors, without mask registers: the masks of the first and the last vector
/// cost more.
const MIN_ALIGNED_VECTORS_WITHOUT_MASKS: usize = 64;

/// An accumulator that outlives the loops that add to it.
#[derive(Clone)]
pub(in super::super) struct LoopAccumulator {
    var: VarId,
    dtype: DType,
    subtracts: bool,
    slot: String,
}

/// True if a loop may break out to an enclosing block, past the code after it.
fn breaks_out(body: &[Stmt]) -> bool {
    let (mut targets, mut labels) = (Vec::new(), Vec::new());
    for stmt in body {
        stmt.visit(&mut |stmt| match stmt {
            Stmt::Break(label) => targets.push(*label),
            Stmt::Labelled { label, .. } => labels.push(*label),
            _ => {}
        });
    }
    targets.iter().any(|label| !labels.contains(label))
}

impl Emitter<'_> {
    /// The lanes of a native vector.
    fn native(&self, dtype: DType) -> usize {
        self.vector_bytes / dtype.size()
    }

    /// Creates accumulators for the reductions of nested loops, if no other code in the loop uses
    /// their variables.
    pub(in super::super) fn accumulators_in(
        &mut self,
        condition: Option<ExprId>,
        body: &[Stmt],
    ) -> Vec<LoopAccumulator> {
        let mut found: Vec<(VarId, DType, bool)> = Vec::new();
        if !self.check && !breaks_out(body) {
            body.iter().for_each(|stmt| self.nested_reductions(stmt, &mut found));
        }
        let mut accumulators: Vec<LoopAccumulator> = Vec::new();
        for &(var, dtype, subtracts) in &found {
            let known = self.accumulators.iter().chain(&accumulators).any(|accumulator| accumulator.var == var);
            let occurrences = found.iter().filter(|sum| **sum == (var, dtype, subtracts)).count();
            // A reduction reads its variable once, and assigns it once.
            if known || self.count_uses(var, condition, body) != 2 * occurrences {
                continue;
            }
            let slot = self.new_accumulator(&format!("<{} x {}>", self.native(dtype), ty(dtype)));
            accumulators.push(LoopAccumulator { var, dtype, subtracts, slot });
        }
        self.accumulators.extend(accumulators.iter().cloned());
        accumulators
    }

    /// Reduces the accumulators into their variables.
    pub(in super::super) fn accumulators_out(&mut self, accumulators: Vec<LoopAccumulator>) {
        self.accumulators.truncate(self.accumulators.len() - accumulators.len());
        for LoopAccumulator { var, dtype, subtracts, slot } in accumulators {
            self.reduce_lanes(dtype, self.native(dtype), var, subtracts, &slot);
        }
    }

    /// Collects the reductions of the loops that [`Emitter::reduction_loop`] handles.
    fn nested_reductions(&self, stmt: &Stmt, found: &mut Vec<(VarId, DType, bool)>) {
        match stmt {
            Stmt::For { var, body, hint, .. } if hint.vectorise => {
                if !hint.short_trip
                    && !hint.is_unrolled()
                    && let Some(plan) = VectorPlan::new(self.kernel, *var, body, false)
                    && self.is_reduction_loop(&plan)
                {
                    found.extend(plan.reductions.iter().map(|(var, subtracts)| (*var, plan.dtype, *subtracts)));
                }
            }
            _ => stmt.blocks().flatten().for_each(|stmt| self.nested_reductions(stmt, found)),
        }
    }

    /// True if a loop consists of reductions over contiguous memory only.
    pub(super) fn is_reduction_loop(&self, plan: &VectorPlan) -> bool {
        let in_memory = plan.tiles().all(|tile| self.tiles.contains(&tile));
        !plan.reductions.is_empty() && plan.stores.is_empty() && in_memory && has_masks(plan.dtype, self.vector_bytes)
    }

    /// The number of reads and assignments of a variable in a loop.
    fn count_uses(&self, wanted: VarId, condition: Option<ExprId>, body: &[Stmt]) -> usize {
        let mut found = 0;
        let mut read = |id: ExprId| {
            self.kernel.visit_expr(id, &mut |expr| found += usize::from(*expr == Expr::Var(wanted)));
        };
        condition.into_iter().for_each(&mut read);
        let mut assigned = 0;
        for stmt in body {
            stmt.visit(&mut |stmt| {
                stmt.each_expr(&mut read);
                if let Stmt::Let { var, .. } | Stmt::Assign { var, .. } | Stmt::Search { var, .. } = stmt {
                    assigned += usize::from(*var == wanted);
                }
            });
        }
        found + assigned
    }

    /// Allocates a vector accumulator, initialised with zeros.
    pub(super) fn new_accumulator(&mut self, vector: &str) -> String {
        let slot = format!("%{}", self.fresh("sums"));
        self.at_entry(format!("{slot} = alloca {vector}, align 64"));
        self.line(format!("store {vector} zeroinitializer, ptr {slot}, align 64"));
        slot
    }

    /// The mask of the first `count` lanes, from none to all.
    pub(super) fn lower_lanes(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if self.vector_bytes < 64 {
            return self.mask(dtype, lanes, count);
        }
        let above = self.op(format!("shl nsw i64 -1, {count}"));
        let below = self.op(format!("xor i64 {above}, -1"));
        self.lanes_of_bits(lanes, &below)
    }

    /// The mask of all lanes but the first `count`.
    fn upper_lanes(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if self.vector_bytes < 64 {
            let below = self.mask(dtype, lanes, count);
            return self.op(format!("xor <{lanes} x i1> {below}, splat (i1 true)"));
        }
        let above = self.op(format!("shl nsw i64 -1, {count}"));
        self.lanes_of_bits(lanes, &above)
    }

    /// Moves the low bits of an integer into a mask register.
    fn lanes_of_bits(&mut self, lanes: usize, bits: &str) -> String {
        let bits = self.op(format!("trunc i64 {bits} to i{lanes}"));
        self.op(format!("bitcast i{lanes} {bits} to <{lanes} x i1>"))
    }

    /// Emits a reduction loop: an iteration over several vectors, one over single vectors, and a
    /// masked tail. A loop that fits one vector is a single masked iteration; or half a vector if
    /// its lanes are reduced immediately, since the horizontal sum of fewer lanes is faster.
    pub(super) fn reduction_loop(&mut self, plan: &VectorPlan, var: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        // A loop with a variable start has a variable length; one over a dimension has the same
        // length every time.
        let varies = !matches!(self.kernel.expr(start), Expr::Const(_));
        let (start, stop) = (self.index(start), self.index(stop));
        let native = self.native(plan.dtype);
        let (lanes, scalar) = (ACCUMULATOR_VECTORS * native, ty(plan.dtype));
        let name = self.kernel.var(var).name.clone();
        let (nonempty, unrolled, single, after) =
            (self.fresh("nonempty"), self.fresh("unrolled"), self.fresh("single"), self.fresh("after"));
        let any = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&any, &nonempty, &after);
        self.start(&nonempty);
        let length = self.op(format!("sub nuw nsw i64 {stop}, {start}"));
        let (narrow, wide) = (format!("<{native} x {scalar}>"), format!("<{lanes} x {scalar}>"));
        let of = |sum: &(VarId, bool), e: &Self| e.accumulators.iter().find(|c| c.var == sum.0).map(|c| c.slot.clone());
        let outer_slots: Vec<Option<String>> = plan.reductions.iter().map(|sum| of(sum, self)).collect();
        if varies {
            let continues = outer_slots.iter().all(Option::is_some);
            let halved = if self.has_mask_registers() { native / 2 } else { native };
            let lanes = if continues { native } else { halved };
            let (short, long) = (self.fresh("short"), self.fresh("long"));
            let fits = self.op(format!("icmp ule i64 {length}, {lanes}"));
            self.fork(&fits, &short, &long);
            self.start(&short);
            let vector = format!("<{lanes} x {scalar}>");
            let own = |e: &mut Self| plan.reductions.iter().map(|_| e.new_accumulator(&vector)).collect();
            let slots: Vec<String> =
                if continues { outer_slots.iter().flatten().cloned().collect() } else { own(self) };
            let mask = self.lower_lanes(plan.dtype, lanes, &length);
            self.masked_iteration(plan, lanes, (var, &start), body, &slots, mask);
            for ((sum, subtracts), slot) in plan.reductions.iter().zip(&slots).filter(|_| !continues) {
                self.reduce_lanes(plan.dtype, lanes, *sum, *subtracts, slot);
            }
            self.jump(&after);
            self.start(&long);
            if outer_slots.iter().all(Option::is_none) {
                self.long_reduction(plan, var, (&start, &stop, &length), body);
                self.jump(&after);
                self.start(&after);
                return;
            }
        }
        let slots: Vec<String> =
            outer_slots.iter().map(|slot| slot.clone().unwrap_or_else(|| self.new_accumulator(&narrow))).collect();
        let unrolled_length = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        let unrolled_end = self.op(format!("add nsw i64 {start}, {unrolled_length}"));
        let long = self.op(format!("icmp ne i64 {unrolled_length}, 0"));
        self.fork(&long, &unrolled, &single);
        self.start(&unrolled);
        let wide_slots: Vec<String> = plan.reductions.iter().map(|_| self.new_accumulator(&wide)).collect();
        self.count(&name, &start, &unrolled_end, lanes, Hint::default(), |e, i| {
            e.vector_iteration(plan, lanes, var, i, body, &wide_slots, ActiveLanes::All);
        });
        for ((slot, wide_slot), outer_slot) in slots.iter().zip(&wide_slots).zip(&outer_slots) {
            let all = self.op(format!("load {wide}, ptr {wide_slot}, align 64"));
            let mut sum = outer_slot.as_ref().map(|slot| self.op(format!("load {narrow}, ptr {slot}, align 64")));
            for chunk in 0..ACCUMULATOR_VECTORS {
                let picked: Vec<String> = (0..native).map(|k| format!("i32 {}", chunk * native + k)).collect();
                let picked = picked.join(", ");
                let partial =
                    self.op(format!("shufflevector {wide} {all}, {wide} poison, <{native} x i32> <{picked}>"));
                sum = Some(match sum {
                    Some(sum) => self.vector_op(Op::Add, plan.dtype, native, &sum, &partial),
                    None => partial,
                });
            }
            self.line(format!("store {narrow} {}, ptr {slot}, align 64", sum.unwrap_or_default()));
        }
        self.jump(&single);
        self.start(&single);
        // The tail comes first: it depends on nothing.
        let tail_length = self.op(format!("and i64 {length}, {}", native - 1));
        let tail_start = self.op(format!("sub nsw i64 {stop}, {tail_length}"));
        let (tail, full) = (self.fresh("tail"), self.fresh("full"));
        if varies {
            self.jump(&tail);
        } else {
            let uneven = self.op(format!("icmp ne i64 {tail_length}, 0"));
            self.fork(&uneven, &tail, &full);
        }
        self.start(&tail);
        let mask = self.lower_lanes(plan.dtype, native, &tail_length);
        self.vector_iteration(plan, native, var, &tail_start, body, &slots, ActiveLanes::Masked(mask));
        self.jump(&full);
        self.start(&full);
        self.count(&name, &unrolled_end, &tail_start, native, Hint::default(), |e, i| {
            e.vector_iteration(plan, native, var, i, body, &slots, ActiveLanes::All);
        });
        for (((sum, subtracts), slot), outer_slot) in plan.reductions.iter().zip(&slots).zip(&outer_slots) {
            if outer_slot.is_none() {
                self.reduce_lanes(plan.dtype, native, *sum, *subtracts, slot);
            }
        }
        self.jump(&after);
        self.start(&after);
    }

    /// Emits a reduction over a contiguous range that starts anywhere and is longer than a vector.
    ///
    /// Short ranges use vectors of half the width: their tail is shorter, and so is the horizontal
    /// sum. Long ranges use aligned loads, since a load across two cache lines takes twice as long;
    /// inactive lanes of the first vector mask the elements before the range. The alignment depends
    /// on the memory, but the result does not. Elements that are two vectors apart share a lane,
    /// whichever it is, and lanes are summed by halves, which forms the same pairs after a
    /// rotation.
    ///
    /// The tail is a partial vector. Without mask registers, and where lanes do not matter, it is
    /// the last full vector of the range, in which the elements that were added before are masked.
    fn long_reduction(
        &mut self,
        plan: &VectorPlan,
        var: VarId,
        (start, stop, length): (&str, &str, &str),
        body: &[Stmt],
    ) {
        let native = self.native(plan.dtype);
        let (short, long, after) = (self.fresh("short"), self.fresh("long"), self.fresh("added"));
        let is_short = self.op(format!("icmp ult i64 {length}, {}", MIN_ALIGNED_VECTORS * native));
        self.fork(&is_short, &short, &long);
        self.start(&short);
        self.alternate_accumulators(
            plan,
            var,
            (start, stop),
            body,
            native.min(HALF_VECTOR_BYTES / plan.dtype.size()),
            None,
        );
        self.jump(&after);
        self.start(&long);
        if !self.has_mask_registers() {
            let (medium, aligned) = (self.fresh("medium"), self.fresh("aligned"));
            let is_medium = self.op(format!("icmp ult i64 {length}, {}", MIN_ALIGNED_VECTORS_WITHOUT_MASKS * native));
            self.fork(&is_medium, &medium, &aligned);
            self.start(&medium);
            self.alternate_accumulators(plan, var, (start, stop), body, 2 * native, None);
            self.jump(&after);
            self.start(&aligned);
        }
        let before = self.misalignment(plan, var, start, body);
        self.alternate_accumulators(plan, var, (start, stop), body, 2 * native, Some(&before));
        self.jump(&after);
        self.start(&after);
    }

    /// Emits a reduction with two alternating accumulators of `lanes` lanes; the range has at least
    /// that many elements. The first vector starts `before` elements ahead of the range, if there
    /// are enough elements for both.
    fn alternate_accumulators(
        &mut self,
        plan: &VectorPlan,
        var: VarId,
        (start, stop): (&str, &str),
        body: &[Stmt],
        lanes: usize,
        before: Option<&str>,
    ) {
        let name = self.kernel.var(var).name.clone();
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let [even, odd] =
            [0, 1].map(|_| plan.reductions.iter().map(|_| self.new_accumulator(&vector)).collect::<Vec<_>>());
        let mut from = start.to_string();
        if let Some(before) = before {
            let first = self.op(format!("sub nsw i64 {start}, {before}"));
            let mask = self.upper_lanes(plan.dtype, lanes, before);
            self.vector_iteration(plan, lanes, var, &first, body, &even, ActiveLanes::Masked(mask));
            let second = self.op(format!("add nsw i64 {first}, {lanes}"));
            self.vector_iteration(plan, lanes, var, &second, body, &odd, ActiveLanes::All);
            from = self.op(format!("add nsw i64 {second}, {lanes}"));
        }
        let length = self.op(format!("sub nsw i64 {stop}, {from}"));
        let paired_length = self.op(format!("and i64 {length}, {}", -2 * lanes as i64));
        let unrolled_end = self.op(format!("add nsw i64 {from}, {paired_length}"));
        self.count(&name, &from, &unrolled_end, 2 * lanes, Hint::default(), |e, i| {
            e.vector_iteration(plan, lanes, var, i, body, &even, ActiveLanes::All);
            let next = e.op(format!("add nsw i64 {i}, {lanes}"));
            e.vector_iteration(plan, lanes, var, &next, body, &odd, ActiveLanes::All);
        });
        // The tail is a full vector and a partial one, or just a partial one.
        let (full, tail, added) = (self.fresh("full"), self.fresh("tail"), self.fresh("sums"));
        let tail_length = self.op(format!("and i64 {length}, {}", lanes - 1));
        let full_length = self.op(format!("and i64 {length}, {lanes}"));
        let is_full = self.op(format!("icmp ne i64 {full_length}, 0"));
        if self.has_mask_registers() || before.is_some() {
            let mask = self.lower_lanes(plan.dtype, lanes, &tail_length);
            self.fork(&is_full, &full, &tail);
            self.start(&full);
            self.vector_iteration(plan, lanes, var, &unrolled_end, body, &even, ActiveLanes::All);
            let last = self.op(format!("add nsw i64 {unrolled_end}, {lanes}"));
            self.vector_iteration(plan, lanes, var, &last, body, &odd, ActiveLanes::Masked(mask.clone()));
            self.jump(&added);
            self.start(&tail);
            self.vector_iteration(plan, lanes, var, &unrolled_end, body, &even, ActiveLanes::Masked(mask));
            self.jump(&added);
            self.start(&added);
        } else {
            self.fork(&is_full, &full, &tail);
            self.start(&full);
            self.vector_iteration(plan, lanes, var, &unrolled_end, body, &even, ActiveLanes::All);
            self.jump(&tail);
            self.start(&tail);
            let last = self.op(format!("sub nsw i64 {stop}, {lanes}"));
            let before = self.op(format!("sub nsw i64 {lanes}, {tail_length}"));
            let mask = self.upper_lanes(plan.dtype, lanes, &before);
            self.vector_iteration(plan, lanes, var, &last, body, &odd, ActiveLanes::OverRead(mask));
        }
        for (((sum, subtracts), even), odd) in plan.reductions.iter().zip(&even).zip(&odd) {
            let [a, b] = [even, odd].map(|slot| self.op(format!("load {vector}, ptr {slot}, align 64")));
            let both = self.vector_op(Op::Add, plan.dtype, lanes, &a, &b);
            self.line(format!("store {vector} {both}, ptr {even}, align 64"));
            self.reduce_lanes(plan.dtype, lanes, *sum, *subtracts, even);
        }
    }

    /// The number of elements between the aligned address below and the first element. With several
    /// arrays, aligns one whose index is shifted from the counter: the others are more often read
    /// repeatedly, and so in the cache.
    fn misalignment(&mut self, plan: &VectorPlan, var: VarId, start: &str, body: &[Stmt]) -> String {
        let kernel = self.kernel;
        let mut loads = plan.loads(body, Stride::Unit);
        loads.retain(|(_, index)| plan.is_known_at_entry(var, *index));
        let shifted = loads.iter().find(|(_, index)| *kernel.expr(*index) != Expr::Var(var));
        let Some(&(buffer, index)) = shifted.or(loads.first()) else { return "0".to_string() };
        self.define(var, Val::One(start.to_string()));
        self.forget();
        let index = self.index(index);
        let (address_ptr, _) = self.element_address(buffer, &index);
        let address = self.op(format!("ptrtoint ptr {address_ptr} to i64"));
        let elements = self.op(format!("lshr i64 {address}, {}", plan.dtype.size().trailing_zeros()));
        self.op(format!("and i64 {elements}, {}", self.native(plan.dtype) - 1))
    }

    /// Adds the horizontal sum of an accumulator to a variable.
    pub(super) fn reduce_lanes(&mut self, dtype: DType, lanes: usize, sum: VarId, subtracts: bool, slot: &str) {
        let (scalar, float) = (ty(dtype), dtype.kind() == Kind::Float);
        let vector = format!("<{lanes} x {scalar}>");
        let all = self.op(format!("load {vector}, ptr {slot}, align 64"));
        let added = if float {
            let name = format!("llvm.vector.reduce.fadd.v{lanes}f{}", 8 * dtype.size());
            self.declare(&name, || format!("declare {scalar} @{name}({scalar}, {vector})"));
            self.op(format!("call reassoc {scalar} @{name}({scalar} -0.0, {vector} {all})"))
        } else {
            let name = format!("llvm.vector.reduce.add.v{lanes}i{}", 8 * dtype.size());
            self.declare(&name, || format!("declare {scalar} @{name}({vector})"));
            self.op(format!("call {scalar} @{name}({vector} {all})"))
        };
        let accumulated = self.variable(sum);
        let op = if subtracts { Op::Sub } else { Op::Add };
        let total = self.apply(op, dtype, &[accumulated, Val::One(added)], None);
        self.assign(sum, &total);
    }
}
