//! Sums of neighbours: several vectors at once, single ones, and what is left in one that is not full.
//!
//! Adding up the lanes of a vector takes as long as several vectors of elements do, so a sum that goes on from one loop to the next (over the
//! blocks of a row, over rows) keeps its vector: the loop around them carries it.

use super::super::{Emitter, Val, ty};
use super::some::Part;
use super::{Change, Plan, SUMS, has_masks};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Expr, ExprId, Hint, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// The bytes of a vector of half the size, where there are any larger.
const HALF: usize = 32;

/// So many vectors are many: whether they are loaded from where vectors lie in memory shows, if they are as long as lines of the cache.
const MANY: usize = 16;

/// So many shorter ones are: masks for the first and the last cost more than others gain.
const MORE: usize = 64;

/// A sum whose vector outlives the loops that add to it.
#[derive(Clone)]
pub(in super::super) struct Carried {
    var: VarId,
    dtype: DType,
    subtracts: bool,
    slot: String,
}

/// Whether a loop may be left from within, past what comes after it.
fn leaves(body: &[Stmt]) -> bool {
    let (mut left, mut inside) = (Vec::new(), Vec::new());
    for stmt in body {
        stmt.visit(&mut |stmt| match stmt {
            Stmt::Break(label) => left.push(*label),
            Stmt::Labelled { label, .. } => inside.push(*label),
            _ => {}
        });
    }
    left.iter().any(|label| !inside.contains(label))
}

impl Emitter<'_> {
    /// The lanes of the processor's vectors.
    fn native(&self, dtype: DType) -> usize {
        self.vector_bytes / dtype.size()
    }

    /// Makes vectors for the sums that loops inside this one add to, if nothing else in it knows of them.
    pub(in super::super) fn carry(&mut self, condition: Option<ExprId>, body: &[Stmt]) -> Vec<Carried> {
        let mut found: Vec<(VarId, DType, bool)> = Vec::new();
        if !self.check && !leaves(body) {
            body.iter().for_each(|stmt| self.sums_inside(stmt, &mut found));
        }
        let mut carried: Vec<Carried> = Vec::new();
        for &(var, dtype, subtracts) in &found {
            let known = self.carried.iter().chain(&carried).any(|carried| carried.var == var);
            let alike = found.iter().filter(|sum| **sum == (var, dtype, subtracts)).count();
            // A sum reads its variable once, and changes it once.
            if known || self.mentions(var, condition, body) != 2 * alike {
                continue;
            }
            let slot = self.sums(&format!("<{} x {}>", self.native(dtype), ty(dtype)));
            carried.push(Carried { var, dtype, subtracts, slot });
        }
        self.carried.extend(carried.iter().cloned());
        carried
    }

    /// Adds them up.
    pub(in super::super) fn deliver(&mut self, carried: Vec<Carried>) {
        self.carried.truncate(self.carried.len() - carried.len());
        for Carried { var, dtype, subtracts, slot } in carried {
            self.add_up(dtype, self.native(dtype), var, subtracts, &slot);
        }
    }

    /// The sums of loops that [`Emitter::sum_strips`] is for.
    fn sums_inside(&self, stmt: &Stmt, found: &mut Vec<(VarId, DType, bool)>) {
        match stmt {
            Stmt::For { var, body, hint, .. } if hint.vectorise => {
                if !hint.short_trip
                    && !hint.unroll
                    && let Some(plan) = Plan::new(self.kernel, *var, body, false)
                    && self.is_sum(&plan)
                {
                    found.extend(plan.sums.iter().map(|(var, subtracts)| (*var, plan.dtype, *subtracts)));
                }
            }
            _ => stmt.blocks().flatten().for_each(|stmt| self.sums_inside(stmt, found)),
        }
    }

    /// Whether a loop is nothing but sums, of what lies in memory.
    pub(super) fn is_sum(&self, plan: &Plan) -> bool {
        let in_memory = plan.tiles().all(|tile| self.tiles.contains(&tile));
        !plan.sums.is_empty() && plan.stores.is_empty() && in_memory && has_masks(plan.dtype, self.vector_bytes)
    }

    /// How often a loop reads a variable, or gives it a value.
    fn mentions(&self, wanted: VarId, condition: Option<ExprId>, body: &[Stmt]) -> usize {
        let mut found = 0;
        let mut read = |id: ExprId| {
            self.kernel.visit_expr(id, &mut |expr| found += usize::from(*expr == Expr::Var(wanted)));
        };
        condition.into_iter().for_each(&mut read);
        let mut given = 0;
        for stmt in body {
            stmt.visit(&mut |stmt| {
                stmt.each_expr(&mut read);
                if let Stmt::Let { var, .. } | Stmt::Assign { var, .. } | Stmt::Search { var, .. } = stmt {
                    given += usize::from(*var == wanted);
                }
            });
        }
        found + given
    }

    /// Vectors to add to, zeros at first.
    pub(super) fn sums(&mut self, vector: &str) -> String {
        let slot = format!("%{}", self.fresh("sums"));
        self.at_entry(format!("{slot} = alloca {vector}, align 64"));
        self.line(format!("store {vector} zeroinitializer, ptr {slot}, align 64"));
        slot
    }

    /// The first lanes, as many as this number says, from none to all of them.
    pub(super) fn lower_lanes(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if self.vector_bytes < 64 {
            return self.mask(dtype, lanes, count);
        }
        let above = self.op(format!("shl nsw i64 -1, {count}"));
        let below = self.op(format!("xor i64 {above}, -1"));
        self.lanes_of_bits(lanes, &below)
    }

    /// All lanes but the first, as many as this number says.
    fn upper_lanes(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if self.vector_bytes < 64 {
            let below = self.mask(dtype, lanes, count);
            return self.op(format!("xor <{lanes} x i1> {below}, splat (i1 true)"));
        }
        let above = self.op(format!("shl nsw i64 -1, {count}"));
        self.lanes_of_bits(lanes, &above)
    }

    /// The lanes whose bits are set: a register of its own holds one for each.
    fn lanes_of_bits(&mut self, lanes: usize, bits: &str) -> String {
        let bits = self.op(format!("trunc i64 {bits} to i{lanes}"));
        self.op(format!("bitcast i{lanes} {bits} to <{lanes} x i1>"))
    }

    /// A loop over several vectors at once, one over single vectors, and what is left. Loops that fill no more than one vector are that one; or half a
    /// vector, if its lanes are added up at once, which takes less time for fewer of them.
    pub(super) fn sum_strips(&mut self, plan: &Plan, var: VarId, start: ExprId, stop: ExprId, body: &[Stmt]) {
        // Loops that start anywhere end anywhere; those of a tensor's size are as long every time.
        let varies = !matches!(self.kernel.expr(start), Expr::Const(_));
        let (start, stop) = (self.index(start), self.index(stop));
        let native = self.native(plan.dtype);
        let (lanes, scalar) = (SUMS * native, ty(plan.dtype));
        let name = self.kernel.var(var).name.clone();
        let (some, strips, single, after) =
            (self.fresh("some"), self.fresh("strips"), self.fresh("single"), self.fresh("after"));
        let any = self.op(format!("icmp slt i64 {start}, {stop}"));
        self.fork(&any, &some, &after);
        self.start(&some);
        let length = self.op(format!("sub nuw nsw i64 {stop}, {start}"));
        let (narrow, wide) = (format!("<{native} x {scalar}>"), format!("<{lanes} x {scalar}>"));
        let of = |sum: &(VarId, bool), e: &Self| e.carried.iter().find(|c| c.var == sum.0).map(|c| c.slot.clone());
        let carried: Vec<Option<String>> = plan.sums.iter().map(|sum| of(sum, self)).collect();
        if varies {
            let goes_on = carried.iter().all(Option::is_some);
            let halved = if self.has_mask_registers() { native / 2 } else { native };
            let lanes = if goes_on { native } else { halved };
            let (short, long) = (self.fresh("short"), self.fresh("long"));
            let few = self.op(format!("icmp ule i64 {length}, {lanes}"));
            self.fork(&few, &short, &long);
            self.start(&short);
            let vector = format!("<{lanes} x {scalar}>");
            let own = |e: &mut Self| plan.sums.iter().map(|_| e.sums(&vector)).collect();
            let slots: Vec<String> = if goes_on { carried.iter().flatten().cloned().collect() } else { own(self) };
            let mask = self.lower_lanes(plan.dtype, lanes, &length);
            self.turn_of_some(plan, lanes, (var, &start), body, &slots, mask);
            for ((sum, subtracts), slot) in plan.sums.iter().zip(&slots).filter(|_| !goes_on) {
                self.add_up(plan.dtype, lanes, *sum, *subtracts, slot);
            }
            self.jump(&after);
            self.start(&long);
            if carried.iter().all(Option::is_none) {
                self.stretch(plan, var, (&start, &stop, &length), body);
                self.jump(&after);
                self.start(&after);
                return;
            }
        }
        let slots: Vec<String> =
            carried.iter().map(|slot| slot.clone().unwrap_or_else(|| self.sums(&narrow))).collect();
        let strips_long = self.op(format!("and i64 {length}, {}", -(lanes as i64)));
        let rest = self.op(format!("add nsw i64 {start}, {strips_long}"));
        let long = self.op(format!("icmp ne i64 {strips_long}, 0"));
        self.fork(&long, &strips, &single);
        self.start(&strips);
        let wide_slots: Vec<String> = plan.sums.iter().map(|_| self.sums(&wide)).collect();
        self.count(&name, &start, &rest, lanes, Hint::default(), |e, i| {
            e.turn(plan, lanes, var, i, body, &wide_slots, Part::All);
        });
        for ((slot, wide_slot), carried) in slots.iter().zip(&wide_slots).zip(&carried) {
            let all = self.op(format!("load {wide}, ptr {wide_slot}, align 64"));
            let mut sum = carried.as_ref().map(|slot| self.op(format!("load {narrow}, ptr {slot}, align 64")));
            for part in 0..SUMS {
                let picked: Vec<String> = (0..native).map(|k| format!("i32 {}", part * native + k)).collect();
                let picked = picked.join(", ");
                let part = self.op(format!("shufflevector {wide} {all}, {wide} poison, <{native} x i32> <{picked}>"));
                sum = Some(match sum {
                    Some(sum) => self.vector_op(Op::Add, plan.dtype, native, &sum, &part),
                    None => part,
                });
            }
            self.line(format!("store {narrow} {}, ptr {slot}, align 64", sum.unwrap_or_default()));
        }
        self.jump(&single);
        self.start(&single);
        // What is left comes first: it waits for nothing.
        let left = self.op(format!("and i64 {length}, {}", native - 1));
        let full = self.op(format!("sub nsw i64 {stop}, {left}"));
        let (part, whole) = (self.fresh("part"), self.fresh("whole"));
        if varies {
            self.jump(&part);
        } else {
            let uneven = self.op(format!("icmp ne i64 {left}, 0"));
            self.fork(&uneven, &part, &whole);
        }
        self.start(&part);
        let mask = self.lower_lanes(plan.dtype, native, &left);
        self.turn(plan, native, var, &full, body, &slots, Part::Masked(mask));
        self.jump(&whole);
        self.start(&whole);
        self.count(&name, &rest, &full, native, Hint::default(), |e, i| {
            e.turn(plan, native, var, i, body, &slots, Part::All);
        });
        for (((sum, subtracts), slot), carried) in plan.sums.iter().zip(&slots).zip(&carried) {
            if carried.is_none() {
                self.add_up(plan.dtype, native, *sum, *subtracts, slot);
            }
        }
        self.jump(&after);
        self.start(&after);
    }

    /// A sum over neighbours that begin anywhere, more than a vector of them: many, or not so many.
    ///
    /// Some take vectors of half the size: what is left of them is less, and so is what is to be added up at the end. Many are loaded from where
    /// vectors lie in memory (one that lies across two lines of the cache takes twice as long), so that the first vector has lanes that belong to what
    /// comes before. How many depends on the memory, but the result does not: elements that are two vectors apart share a
    /// lane, whichever it is, and lanes are added up by halves, which takes the same pairs if all of them move on by a few.
    ///
    /// What is left is a part of a vector. Where masks have no registers, and it does not matter which lane an element is in, these are the last
    /// ones that fill a vector, of which those that were added before are dropped.
    fn stretch(&mut self, plan: &Plan, var: VarId, (start, stop, length): (&str, &str, &str), body: &[Stmt]) {
        let native = self.native(plan.dtype);
        let (some, many, after) = (self.fresh("some"), self.fresh("many"), self.fresh("added"));
        let few = self.op(format!("icmp ult i64 {length}, {}", MANY * native));
        self.fork(&few, &some, &many);
        self.start(&some);
        self.pairs(plan, var, (start, stop), body, native.min(HALF / plan.dtype.size()), None);
        self.jump(&after);
        self.start(&many);
        if !self.has_mask_registers() {
            let (some, more) = (self.fresh("some"), self.fresh("more"));
            let few = self.op(format!("icmp ult i64 {length}, {}", MORE * native));
            self.fork(&few, &some, &more);
            self.start(&some);
            self.pairs(plan, var, (start, stop), body, 2 * native, None);
            self.jump(&after);
            self.start(&more);
        }
        let before = self.off_lines(plan, var, start, body);
        self.pairs(plan, var, (start, stop), body, 2 * native, Some(&before));
        self.jump(&after);
        self.start(&after);
    }

    /// A sum in two vectors by turns, of so many lanes each, which one of them has at least. The first one begins so many elements before the loop
    /// does, if there are enough for both.
    fn pairs(
        &mut self,
        plan: &Plan,
        var: VarId,
        (start, stop): (&str, &str),
        body: &[Stmt],
        lanes: usize,
        before: Option<&str>,
    ) {
        let name = self.kernel.var(var).name.clone();
        let vector = format!("<{lanes} x {}>", ty(plan.dtype));
        let [even, odd] = [0, 1].map(|_| plan.sums.iter().map(|_| self.sums(&vector)).collect::<Vec<_>>());
        let mut from = start.to_string();
        if let Some(before) = before {
            let first = self.op(format!("sub nsw i64 {start}, {before}"));
            let mask = self.upper_lanes(plan.dtype, lanes, before);
            self.turn(plan, lanes, var, &first, body, &even, Part::Masked(mask));
            let second = self.op(format!("add nsw i64 {first}, {lanes}"));
            self.turn(plan, lanes, var, &second, body, &odd, Part::All);
            from = self.op(format!("add nsw i64 {second}, {lanes}"));
        }
        let length = self.op(format!("sub nsw i64 {stop}, {from}"));
        let pairs = self.op(format!("and i64 {length}, {}", -2 * lanes as i64));
        let rest = self.op(format!("add nsw i64 {from}, {pairs}"));
        self.count(&name, &from, &rest, 2 * lanes, Hint::default(), |e, i| {
            e.turn(plan, lanes, var, i, body, &even, Part::All);
            let next = e.op(format!("add nsw i64 {i}, {lanes}"));
            e.turn(plan, lanes, var, &next, body, &odd, Part::All);
        });
        // What is left is another vector and a part of one, or a part.
        let (one, part, added) = (self.fresh("one"), self.fresh("part"), self.fresh("sums"));
        let left = self.op(format!("and i64 {length}, {}", lanes - 1));
        let full = self.op(format!("and i64 {length}, {lanes}"));
        let is_full = self.op(format!("icmp ne i64 {full}, 0"));
        if self.has_mask_registers() || before.is_some() {
            let mask = self.lower_lanes(plan.dtype, lanes, &left);
            self.fork(&is_full, &one, &part);
            self.start(&one);
            self.turn(plan, lanes, var, &rest, body, &even, Part::All);
            let last = self.op(format!("add nsw i64 {rest}, {lanes}"));
            self.turn(plan, lanes, var, &last, body, &odd, Part::Masked(mask.clone()));
            self.jump(&added);
            self.start(&part);
            self.turn(plan, lanes, var, &rest, body, &even, Part::Masked(mask));
            self.jump(&added);
            self.start(&added);
        } else {
            self.fork(&is_full, &one, &part);
            self.start(&one);
            self.turn(plan, lanes, var, &rest, body, &even, Part::All);
            self.jump(&part);
            self.start(&part);
            let last = self.op(format!("sub nsw i64 {stop}, {lanes}"));
            let before = self.op(format!("sub nsw i64 {lanes}, {left}"));
            let mask = self.upper_lanes(plan.dtype, lanes, &before);
            self.turn(plan, lanes, var, &last, body, &odd, Part::Beyond(mask));
        }
        for (((sum, subtracts), even), odd) in plan.sums.iter().zip(&even).zip(&odd) {
            let [a, b] = [even, odd].map(|slot| self.op(format!("load {vector}, ptr {slot}, align 64")));
            let both = self.vector_op(Op::Add, plan.dtype, lanes, &a, &b);
            self.line(format!("store {vector} {both}, ptr {even}, align 64"));
            self.add_up(plan.dtype, lanes, *sum, *subtracts, even);
        }
    }

    /// How many elements of a vector would come before the first, were it loaded from where vectors lie in memory. Of several arrays this is for one
    /// whose elements are not counted as the loop counts: the others are more often those that are read again and again.
    fn off_lines(&mut self, plan: &Plan, var: VarId, start: &str, body: &[Stmt]) -> String {
        let kernel = self.kernel;
        let mut loads = plan.loads(body, Change::Next);
        loads.retain(|(_, index)| plan.is_known_before(var, *index));
        let shifted = loads.iter().find(|(_, index)| *kernel.expr(*index) != Expr::Var(var));
        let Some(&(buffer, index)) = shifted.or(loads.first()) else { return "0".to_string() };
        self.define(var, Val::One(start.to_string()));
        self.forget();
        let index = self.index(index);
        let (place, _) = self.neighbours(buffer, &index);
        let address = self.op(format!("ptrtoint ptr {place} to i64"));
        let elements = self.op(format!("lshr i64 {address}, {}", plan.dtype.size().trailing_zeros()));
        self.op(format!("and i64 {elements}, {}", self.native(plan.dtype) - 1))
    }

    /// Adds what is in all lanes to a variable.
    pub(super) fn add_up(&mut self, dtype: DType, lanes: usize, sum: VarId, subtracts: bool, slot: &str) {
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
        let so_far = self.variable(sum);
        let op = if subtracts { Op::Sub } else { Op::Add };
        let total = self.apply(op, dtype, &[so_far, Val::One(added)], None);
        self.assign(sum, &total);
    }
}
