//! Vectors of which only some lanes are meant: by a mask, or by reading on and dropping what was read.

use super::super::{Emitter, Val, ty};
use super::{Change, Known, Plan};
use tamis_ir::DType;
use tamis_ir::kernel::{Expr, Fact, Hint, Role, Stmt, VarId};

/// When a whole vector can be loaded, though there is something for some lanes only.
pub(super) struct Room {
    /// Something that does not change from one loop to the next.
    pub(super) always: Option<String>,
    /// Something that does.
    pub(super) here: String,
}

/// The lanes of a vector that there is something for.
#[derive(Clone, Default)]
pub(super) enum Part {
    /// All of them.
    #[default]
    All,
    /// Those of a mask; the others read zeros.
    Masked(String),
    /// Those of a mask; the others read what is beside them in memory, whatever it is.
    Beyond(String),
}

impl Known {
    /// The lanes that are read at all, if not all of them.
    pub(super) fn mask(&self) -> Option<&String> {
        match &self.part {
            Part::Masked(mask) => Some(mask),
            _ => None,
        }
    }

    /// The lanes of a sum that have changed, if not all of them; what is added is 0 where zeros are read.
    pub(super) fn kept(&self, zero: bool) -> Option<String> {
        match &self.part {
            Part::Beyond(mask) => Some(mask.clone()),
            Part::Masked(mask) if !zero => Some(mask.clone()),
            _ => None,
        }
    }
}

impl Emitter<'_> {
    /// One turn for the lanes of a mask. Where loading some lanes takes longer than loading all, and there are so many elements, those behind are
    /// loaded, too, and dropped.
    pub(super) fn turn_of_some(
        &mut self,
        plan: &Plan,
        lanes: usize,
        (var, first): (VarId, &str),
        body: &[Stmt],
        slots: &[String],
        mask: String,
    ) {
        let room = if self.has_mask_registers() { None } else { self.room(plan, var, first, lanes, body) };
        let Some(Room { always, here }) = room else {
            return self.turn(plan, lanes, var, first, body, slots, Part::Masked(mask));
        };
        let room = self.all_of(always, here);
        let (beyond, within, after) = (self.fresh("beyond"), self.fresh("within"), self.fresh("turned"));
        self.fork(&room, &beyond, &within);
        self.start(&beyond);
        self.turn(plan, lanes, var, first, body, slots, Part::Beyond(mask.clone()));
        self.jump(&after);
        self.start(&within);
        self.turn(plan, lanes, var, first, body, slots, Part::Masked(mask));
        self.jump(&after);
        self.start(&after);
    }

    /// Whether masks have registers of their own, and cost nothing.
    pub(super) fn has_mask_registers(&self) -> bool {
        self.vector_bytes >= 64
    }

    /// Writes the first elements of a tile, where processors have no masks for that: some that have instructions for it take as long for one as for twenty
    /// others. As many vectors as there are, and what is left one by one; says whether the loop is one that does nothing else.
    pub(super) fn stores_some(
        &mut self,
        plan: &Plan,
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
        let (whole, some, after) = (self.fresh("whole"), self.fresh("some"), self.fresh("stored"));
        let all = self.op(format!("icmp sge i64 {stop}, {lanes}"));
        self.fork(&all, &whole, &some);
        self.start(&whole);
        self.turn(plan, lanes, var, start, body, &[], Part::All);
        self.jump(&after);
        self.start(&some);
        self.define(var, Val::One(start.to_string()));
        self.forget();
        let first = self.index(*index);
        let found = self.vector(plan, lanes, *value, &mut Known::default());
        let copy = format!("%{}", self.fresh("copy"));
        self.at_entry(format!("{copy} = alloca {vector}, align 64"));
        self.line(format!("store {vector} {found}, ptr {copy}, align 64"));
        // A loop that ends before it begins has no turns.
        let stop = self.intrinsic("smax", DType::I64, &[stop, "0"]);
        let full = self.op(format!("and i64 {stop}, {}", -(native as i64)));
        let name = self.kernel.var(var).name.clone();
        for (from, to, step) in [(start, &full[..], native), (&full[..], &stop[..], 1)] {
            let some = if step == 1 { scalar.to_string() } else { format!("<{step} x {scalar}>") };
            self.count(&name, from, to, step, Hint::default(), |e, k| {
                let at = e.op(format!("getelementptr inbounds {scalar}, ptr {copy}, i64 {k}"));
                let align = plan.dtype.size();
                let value = e.op(format!("load {some}, ptr {at}, align {align}"));
                let index = e.op(format!("add nsw i64 {first}, {k}"));
                let (place, align) = e.neighbours(*buffer, &index);
                let scope = e.scope(*buffer);
                e.line(format!("store {some} {value}, ptr {place}, align {align}{scope}"));
            });
        }
        self.jump(&after);
        self.start(&after);
        true
    }

    /// The first lanes, as many as this number says: none at least, and all at most. Numbers as wide as the elements are compared, so that
    /// masks need not be widened.
    pub(super) fn mask(&mut self, dtype: DType, lanes: usize, count: &str) -> String {
        if dtype.size() == 8 && self.vector_bytes < 64 {
            let count = self.splat("i64", lanes, count);
            let numbers: Vec<String> = (0..lanes).map(|k| format!("i64 {k}")).collect();
            return self.op(format!("icmp slt <{lanes} x i64> <{}>, {count}", numbers.join(", ")));
        }
        let count = self.intrinsic("smax", DType::I64, &[count, "0"]);
        let count = self.intrinsic("smin", DType::I64, &[&count, &lanes.to_string()]);
        let count = self.op(format!("trunc i64 {count} to i32"));
        let count = self.splat("i32", lanes, &count);
        let numbers: Vec<String> = (0..lanes).map(|k| format!("i32 {k}")).collect();
        self.op(format!("icmp ult <{lanes} x i32> <{}>, {count}", numbers.join(", ")))
    }

    /// Whether there is so much of everything that a loop reads from an index on that a whole vector can be loaded, if that can be told:
    /// coordinates, too, lead to something, wherever the loop would have ended.
    pub(super) fn room(
        &mut self,
        plan: &Plan,
        counter: VarId,
        first: &str,
        lanes: usize,
        body: &[Stmt],
    ) -> Option<Room> {
        let kernel = self.kernel;
        let nexts = plan.loads(body, Change::Next);
        if !nexts.iter().all(|(_, index)| plan.is_known_before(counter, *index)) {
            return None;
        }
        let declared = |var: VarId| {
            body.iter().find_map(|stmt| match stmt {
                Stmt::Let { var: v, value } if *v == var => Some(kernel.expr(*value)),
                _ => None,
            })
        };
        let mut bounds = Vec::new();
        for (buffer, index) in plan.loads(body, Change::Apart) {
            let list = match kernel.expr(index) {
                Expr::Var(var) => declared(*var)?,
                other => other,
            };
            let Expr::Load(list, _) = list else { return None };
            let input = kernel.buffer(*list).role == Role::Input;
            let bound = kernel.facts.iter().find_map(|fact| match fact {
                Fact::Below { buffer, bound } if buffer == list && input => Some(*bound),
                _ => None,
            })?;
            bounds.push((buffer, bound));
        }
        self.define(counter, Val::One(first.to_string()));
        self.forget();
        let mut always: Option<String> = None;
        for (buffer, bound) in bounds {
            let (bound, len) = (self.index(bound), self.len(buffer));
            let fits = self.op(format!("icmp sle i64 {bound}, {len}"));
            always = Some(self.all_of(always, fits));
        }
        let (counted, others): (Vec<_>, Vec<_>) =
            nexts.into_iter().partition(|(_, index)| *kernel.expr(*index) == Expr::Var(counter));
        let mut least: Option<String> = None;
        for (buffer, _) in counted {
            let len = self.len(buffer);
            least = Some(match least {
                Some(other) => self.intrinsic("smin", DType::I64, &[&other, &len]),
                None => len,
            });
        }
        let mut here = None;
        if let Some(least) = least {
            let end = self.op(format!("add nsw i64 {first}, {lanes}"));
            here = Some(self.op(format!("icmp sle i64 {end}, {least}")));
        }
        for (buffer, index) in others {
            let (index, len) = (self.index(index), self.len(buffer));
            let end = self.op(format!("add nsw i64 {index}, {lanes}"));
            let fits = self.op(format!("icmp sle i64 {end}, {len}"));
            here = Some(self.all_of(here, fits));
        }
        here.map(|here| Room { always, here })
    }

    pub(super) fn all_of(&mut self, before: Option<String>, condition: String) -> String {
        match before {
            Some(before) => self.op(format!("and i1 {before}, {condition}")),
            None => condition,
        }
    }
}
