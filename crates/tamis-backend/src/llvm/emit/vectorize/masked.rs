//! Masked vector iterations: lane masks, masked tails, and tails that over-read instead of masking.

use super::super::{Emitter, Val, ty};
use super::{Stride, VectorPlan, VectorValues};
use tamis_ir::DType;
use tamis_ir::kernel::{Assumption, Expr, Hint, Role, Stmt, VarId};

/// The condition under which a whole vector can be loaded although only some lanes are active.
pub(super) struct OverReadGuard {
    /// The loop-invariant part.
    pub(super) invariant: Option<String>,
    /// The part that varies per loop.
    pub(super) per_loop: String,
}

/// The active lanes of a vector.
#[derive(Clone, Default)]
pub(super) enum ActiveLanes {
    /// All lanes.
    #[default]
    All,
    /// The lanes of a mask; inactive lanes load zeros.
    Masked(String),
    /// The lanes of a mask; inactive lanes load adjacent memory, whose values are discarded.
    OverRead(String),
}

impl VectorValues {
    /// The load mask, unless all lanes are loaded.
    pub(super) fn mask(&self) -> Option<&String> {
        match &self.active {
            ActiveLanes::Masked(mask) => Some(mask),
            _ => None,
        }
    }

    /// The mask of accumulator lanes that change, unless all do. Lanes that load zeros may add 0.
    pub(super) fn kept(&self, zero: bool) -> Option<String> {
        match &self.active {
            ActiveLanes::OverRead(mask) => Some(mask.clone()),
            ActiveLanes::Masked(mask) if !zero => Some(mask.clone()),
            _ => None,
        }
    }
}

impl Emitter<'_> {
    /// Emits a vector iteration for the lanes of a mask. Where masked loads are slow and the arrays
    /// are long enough, the inactive lanes are loaded, too, and discarded.
    pub(super) fn masked_iteration(
        &mut self,
        plan: &VectorPlan,
        lanes: usize,
        (var, first): (VarId, &str),
        body: &[Stmt],
        slots: &[String],
        mask: String,
    ) {
        let guard = if self.has_mask_registers() { None } else { self.over_read_guard(plan, var, first, lanes, body) };
        let Some(OverReadGuard { invariant, per_loop }) = guard else {
            return self.vector_iteration(plan, lanes, var, first, body, slots, ActiveLanes::Masked(mask));
        };
        let condition = self.all_of(invariant, per_loop);
        let (overread, masked, after) = (self.fresh("overread"), self.fresh("masked"), self.fresh("joined"));
        self.fork(&condition, &overread, &masked);
        self.start(&overread);
        self.vector_iteration(plan, lanes, var, first, body, slots, ActiveLanes::OverRead(mask.clone()));
        self.jump(&after);
        self.start(&masked);
        self.vector_iteration(plan, lanes, var, first, body, slots, ActiveLanes::Masked(mask));
        self.jump(&after);
        self.start(&after);
    }

    /// True if the target has mask registers (AVX-512), which make masking free.
    pub(super) fn has_mask_registers(&self) -> bool {
        self.vector_bytes >= 64
    }

    /// Stores a prefix of a tile on targets without mask registers, where some masked stores take
    /// as long as about twenty plain ones: full vectors, then scalars. Returns `false`, with
    /// nothing emitted, unless the loop only copies a tile.
    pub(super) fn store_tile_prefix(
        &mut self,
        plan: &VectorPlan,
        lanes: usize,
        (var, start, stop): (VarId, &str, &str),
        body: &[Stmt],
    ) -> bool {
        let [Stmt::Store { buffer, index, value }] = body else { return false };
        let tile = match self.kernel.expr(*value) {
            Expr::Load(tile, at) => self.is_tile(*tile) && *self.kernel.expr(*at) == Expr::Var(var),
            _ => false,
        };
        if self.has_mask_registers() || !tile {
            return false;
        }
        let (scalar, native) = (ty(plan.dtype), self.vector_bytes / plan.dtype.size());
        let vector = format!("<{lanes} x {scalar}>");
        let (whole, partial, after) = (self.fresh("whole"), self.fresh("partial"), self.fresh("stored"));
        let all = self.op(format!("icmp sge i64 {stop}, {lanes}"));
        self.fork(&all, &whole, &partial);
        self.start(&whole);
        self.vector_iteration(plan, lanes, var, start, body, &[], ActiveLanes::All);
        self.jump(&after);
        self.start(&partial);
        self.define(var, Val::One(start.to_string()));
        self.forget();
        let first = self.index(*index);
        let vector_value = self.vector(plan, lanes, *value, &mut VectorValues::default());
        let copy = format!("%{}", self.fresh("copy"));
        self.at_entry(format!("{copy} = alloca {vector}, align 64"));
        self.line(format!("store {vector} {vector_value}, ptr {copy}, align 64"));
        // A negative length means no iterations.
        let stop = self.intrinsic("smax", DType::I64, &[stop, "0"]);
        let vector_end = self.op(format!("and i64 {stop}, {}", -(native as i64)));
        let name = self.kernel.var(var).name.clone();
        for (from, to, step) in [(start, &vector_end[..], native), (&vector_end[..], &stop[..], 1)] {
            let chunk = if step == 1 { scalar.to_string() } else { format!("<{step} x {scalar}>") };
            self.count(&name, from, to, step, Hint::default(), |e, k| {
                let at = e.op(format!("getelementptr inbounds {scalar}, ptr {copy}, i64 {k}"));
                let align = plan.dtype.size();
                let value = e.op(format!("load {chunk}, ptr {at}, align {align}"));
                let index = e.op(format!("add nsw i64 {first}, {k}"));
                let (address, align) = e.element_address(*buffer, &index);
                let scope = e.scope(*buffer);
                e.line(format!("store {chunk} {value}, ptr {address}, align {align}{scope}"));
            });
        }
        self.jump(&after);
        self.start(&after);
        true
    }

    /// The mask of the first `count` lanes, clamped to 0 and the number of lanes. The comparison
    /// has the width of the elements, so that the mask needs no widening.
    pub(super) fn mask(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if dtype.size() == 8 && self.vector_bytes < 64 {
            let count = self.splat("i64", lanes, count);
            let lane_ids: Vec<String> = (0..lanes).map(|k| format!("i64 {k}")).collect();
            return self.op(format!("icmp slt <{lanes} x i64> <{}>, {count}", lane_ids.join(", ")));
        }
        let count = self.intrinsic("smax", DType::I64, &[count, "0"]);
        let count = self.intrinsic("smin", DType::I64, &[&count, &lanes.to_string()]);
        let count = self.op(format!("trunc i64 {count} to i32"));
        let count = self.splat("i32", lanes, &count);
        let lane_ids: Vec<String> = (0..lanes).map(|k| format!("i32 {k}")).collect();
        self.op(format!("icmp ult <{lanes} x i32> <{}>, {count}", lane_ids.join(", ")))
    }

    /// The condition under which everything that an iteration loads from `first` on has a whole
    /// vector of elements. `None` if it cannot be computed. Coordinates past the end of the loop
    /// are valid indices, too, by the bounds that the kernel declares.
    pub(super) fn over_read_guard(
        &mut self,
        plan: &VectorPlan,
        counter: VarId,
        first: &str,
        lanes: usize,
        body: &[Stmt],
    ) -> Option<OverReadGuard> {
        let kernel = self.kernel;
        let unit_loads = plan.loads(body, Stride::Unit);
        if !unit_loads.iter().all(|(_, index)| plan.is_known_at_entry(counter, *index)) {
            return None;
        }
        let declared = |var: VarId| {
            body.iter().find_map(|stmt| match stmt {
                Stmt::Let { var: v, value } if *v == var => Some(kernel.expr(*value)),
                _ => None,
            })
        };
        let mut bounds = Vec::new();
        for (buffer, index) in plan.loads(body, Stride::Gathered) {
            let list = match kernel.expr(index) {
                Expr::Var(var) => declared(*var)?,
                other => other,
            };
            let Expr::Load(list, _) = list else { return None };
            let input = kernel.buffer(*list).role == Role::Input;
            let bound = kernel.assumptions.iter().find_map(|fact| match fact {
                Assumption::Below { buffer, bound } if buffer == list && input => Some(*bound),
                _ => None,
            })?;
            bounds.push((buffer, bound));
        }
        self.define(counter, Val::One(first.to_string()));
        self.forget();
        let mut invariant: Option<String> = None;
        for (buffer, bound) in bounds {
            let (bound, len) = (self.index(bound), self.len(buffer));
            let fits = self.op(format!("icmp sle i64 {bound}, {len}"));
            invariant = Some(self.all_of(invariant, fits));
        }
        let (at_counter, shifted): (Vec<_>, Vec<_>) =
            unit_loads.into_iter().partition(|(_, index)| *kernel.expr(*index) == Expr::Var(counter));
        let mut min_length: Option<String> = None;
        for (buffer, _) in at_counter {
            let len = self.len(buffer);
            min_length = Some(match min_length {
                Some(other) => self.intrinsic("smin", DType::I64, &[&other, &len]),
                None => len,
            });
        }
        let mut per_loop = None;
        if let Some(min_length) = min_length {
            let end = self.op(format!("add nsw i64 {first}, {lanes}"));
            per_loop = Some(self.op(format!("icmp sle i64 {end}, {min_length}")));
        }
        for (buffer, index) in shifted {
            let (index, len) = (self.index(index), self.len(buffer));
            let end = self.op(format!("add nsw i64 {index}, {lanes}"));
            let fits = self.op(format!("icmp sle i64 {end}, {len}"));
            per_loop = Some(self.all_of(per_loop, fits));
        }
        per_loop.map(|per_loop| OverReadGuard { invariant, per_loop })
    }

    pub(super) fn all_of(&mut self, before: Option<String>, condition: String) -> String {
        match before {
            Some(before) => self.op(format!("and i1 {before}, {condition}")),
            None => condition,
        }
    }
}
