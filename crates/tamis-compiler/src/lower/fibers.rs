//! Several fibers at once: a loop reduces the subscript of a level while a window over the level above is still open, so that
//! it is not known yet in which fiber the inner loops will look.
//!
//! The fibers of an open window lie below positions that follow each other. Each has a cursor, the first of its coordinates that
//! the window has not passed; the least of these coordinates says which windows come next. Once the level above is
//! resolved, the inner loop goes on from the cursor of its fiber.

use super::Lowerer;
use super::node::{Access, Fibers, Node, Part, Source, Step, map_steps, visit_steps};
use super::region::Region;
use super::repeat::depends;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::format::Width;
use tamis_ir::kernel::{BufferId, Elem, ExprId, Hint, Role, Stmt, VarId};
use tamis_ir::looplet::{Below, Edge, Located, Looplet, Stepper, Window};
use tamis_ir::program::{IndexId, TensorId};

/// A coordinate behind all others, from which some can be subtracted.
const NEVER: i64 = i64::MAX / 4;

impl Lowerer<'_> {
    /// The structure of an access along a loop that moves the level below its next one, while a window over that is open.
    pub(super) fn unfurl_fibers(&mut self, access: &Access, index: IndexId) -> Option<Looplet> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let (above, sub) = (subs.get(access.level)?, subs.get(access.level + 1)?);
        // Before any of its loops is entered, a level is all of its fibers.
        if self.entered(access) == 0 {
            return None;
        }
        let plain = above.part == Part::Whole && sub.part == Part::Whole && above.inside && sub.inside;
        if !plain || access.present.is_some() || access.group_stop.is_some() || depends(&above.node, index) {
            return None;
        }
        let ordered = !self.is_nonordered(*tensor, access.level) && !self.is_nonordered(*tensor, access.level + 1);
        let position = self.b.int(0);
        let at = Located { position, present: None, group_stop: None };
        let fiber = self.fiber(*tensor, access.level, at, position, |row, fiber| (row.unfurl)(fiber))?;
        if !ordered || !lies_below_positions(&fiber) || self.cover_below(&above.node, index).is_none() {
            return None;
        }
        self.list_below(*tensor, access.level + 1, position)?;
        let (window, mirrored) = self.window(sub, index)?;
        (!mirrored).then(|| {
            self.states[tensor.index()].order_matters = true;
            Looplet::Fibers(window)
        })
    }

    /// The positions that the fibers of an open window lie below, from the first to one past the last.
    fn fibers_of(&mut self, tensor: TensorId, access: &Access, index: IndexId) -> Option<(ExprId, ExprId)> {
        let Source::Tensor(_, subs) = &access.source else { return None };
        let (low, last) = self.cover_below(&subs.get(access.level)?.node, index)?;
        let position = access.position.unwrap_or(self.b.int(0));
        let one = self.b.int(1);
        let at = Located { position, present: None, group_stop: None };
        let looplet = self.fiber(tensor, access.level, at, one, |row, fiber| (row.unfurl)(fiber))?;
        let after = self.b.add(last, one);
        match looplet {
            Looplet::Lookup => {
                let first = self.locate(tensor, access.level, at, low).position;
                let count = self.b.sub(after, low);
                Some((first, self.b.add(first, count)))
            }
            Looplet::Thunk { preamble, body } => {
                let Looplet::Stepper(list) = *body else { return None };
                preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
                let first = match access.window {
                    Some((Edge::From(first), loops)) if loops == self.entered(access) => first,
                    _ => list.seek(&mut self.b, "from", list.start, low),
                };
                let stop = list.seek(&mut self.b, "to", first, after);
                Some((first, stop))
            }
            _ => None,
        }
    }

    /// The list below a position, if that is what a level has.
    fn list_below(&mut self, tensor: TensorId, level: usize, position: ExprId) -> Option<(Vec<Stmt>, Stepper)> {
        let at = Located { position, present: None, group_stop: None };
        let zero = self.b.int(0);
        match self.fiber(tensor, level, at, zero, |row, fiber| (row.unfurl)(fiber))? {
            Looplet::Thunk { preamble, body } => match *body {
                Looplet::Stepper(list) if !list.grouped => Some((preamble, list)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn fibers(&mut self, region: Region, steps: Vec<Step>, id: u32, window: Window) {
        let mut found: Option<Access> = None;
        let mut others = false;
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node {
                if access.id == id {
                    found = Some((**access).clone());
                } else {
                    others |= access.looplet.as_ref().is_some_and(|looplet| looplet.priority() > 2);
                }
            }
        });
        // Together with others, windows are searched for when they are needed.
        if others || !self.idle_without(&steps, &[id]) || found.as_ref().is_none_or(|a| !self.is_open(a, region.index))
        {
            return self.without_fibers(region, steps, id);
        }
        let Some(access) = found else { return };
        let Source::Tensor(tensor, _) = access.source else { return };
        let Some((first, stop)) = self.fibers_of(tensor, &access, region.index) else {
            return self.without_fibers(region, steps, id);
        };
        let (first, stop) = (self.b.name("first", first), self.b.name("stop", stop));
        let name = format!("{}{}_cursors", self.program.tensor(tensor).name, access.level + 1);
        let cursors = self.b.buffer(name, Elem::Index(Width::U64), Role::Scratch);
        let count = self.b.sub(stop, first);
        self.b.emit(Stmt::Grow { buffer: cursors, len: count, fill: None });
        let next = self.b.variable("next", Value::I64(NEVER));
        let begin = window.begin(&mut self.b, region.start);
        self.each_fiber(tensor, access.level + 1, (first, stop), |this, list, at| {
            let from = list.seek(&mut this.b, "from", list.start, begin);
            let from = this.b.name("from", from);
            this.note_cursor(list, cursors, at, from, next);
        });
        let loops = self.entered_at(&access, access.level + 1) + 1;
        let steps = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.looplet = None;
                access.fibers = Some(Fibers { cursors, first, loops });
                Node::Access(access)
            }
            other => other,
        });
        let from = self.b.variable_from("from", region.start);
        let nearest = self.b.get(next);
        let met = window.reaching(&mut self.b, nearest);
        let cond = self.b.call_in(Op::Lt, DType::I64, &[met, region.stop]);
        self.conditional += 1;
        let body = self.in_block(|this| {
            let one = this.b.int(1);
            let nearest = this.b.get(next);
            let x = this.b.name("nearest", nearest);
            let (met, before) = (window.reaching(&mut this.b, x), this.b.get(from));
            let after = this.b.add(x, one);
            let passed = window.from(&mut this.b, after);
            let start = this.b.call_in(Op::Max, DType::I64, &[met, before]);
            let end = this.b.call_in(Op::Min, DType::I64, &[passed, region.stop]);
            let (start, end) = (this.b.name("first", start), this.b.name("end", end));
            let part = Region {
                start,
                stop: end,
                whole: false,
                point: false,
                filled: false,
                shared: false,
                piece: None,
                ..region
            };
            this.region(part, steps);
            let end = this.b.call_in(Op::Max, DType::I64, &[end, before]);
            this.b.assign(from, end);
            let never = this.b.int(NEVER);
            this.b.assign(next, never);
            this.each_fiber(tensor, access.level + 1, (first, stop), |this, list, at| {
                let here = this.b.load(cursors, at);
                let here = this.b.name("here", here);
                let more = this.b.call_in(Op::Lt, DType::I64, &[here, list.stop]);
                let coordinate = list.coordinate(&mut this.b, here);
                let passed = this.b.call_in(Op::Le, DType::I64, &[coordinate, x]);
                let passed = this.b.call_in(Op::And, DType::Bool, &[more, passed]);
                let one = this.b.int(1);
                let after = this.b.add(here, one);
                let after = this.b.call_in(Op::Select, DType::I64, &[passed, after, here]);
                let after = this.b.name("after", after);
                this.note_cursor(list, cursors, at, after, next);
            });
        });
        self.conditional -= 1;
        self.b.emit(Stmt::While { cond, body });
    }

    /// A loop over the fibers, each with its list and its number.
    fn each_fiber(
        &mut self,
        tensor: TensorId,
        level: usize,
        (first, stop): (ExprId, ExprId),
        emit: impl FnOnce(&mut Self, &Stepper, ExprId),
    ) {
        let var = self.b.new_var("p", DType::I64, false);
        let p = self.b.get(var);
        let body = self.in_block(|this| {
            let Some((preamble, list)) = this.list_below(tensor, level, p) else { return };
            preamble.into_iter().for_each(|stmt| this.b.emit(stmt));
            let at = this.b.sub(p, first);
            emit(this, &list, at);
        });
        self.b.emit(Stmt::For { var, start: first, stop, body, hint: Hint::default() });
    }

    /// Keeps where a fiber stands; the nearest coordinate may be its own.
    fn note_cursor(&mut self, list: &Stepper, cursors: BufferId, at: ExprId, position: ExprId, next: VarId) {
        self.b.store(cursors, at, position);
        let more = self.b.call_in(Op::Lt, DType::I64, &[position, list.stop]);
        let coordinate = list.coordinate(&mut self.b, position);
        let nearest = self.b.get(next);
        let nearer = self.b.call_in(Op::Min, DType::I64, &[nearest, coordinate]);
        let then = self.b.block(|b| b.assign(next, nearer));
        self.b.emit(Stmt::If { cond: more, then, otherwise: Vec::new() });
    }

    /// Whether the level above is still open.
    fn is_open(&self, access: &Access, index: IndexId) -> bool {
        let Source::Tensor(_, subs) = &access.source else { return false };
        access.present.is_none() && subs.get(access.level).is_some_and(|sub| self.open_index(sub, index).is_some())
    }

    fn without_fibers(&mut self, region: Region, steps: Vec<Step>, id: u32) {
        let steps = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.looplet = None;
                Node::Access(access)
            }
            other => other,
        });
        self.warn_of_open_windows(&steps, region.index);
        self.region(region, steps);
    }
}

/// Whether the children of coordinates that follow each other lie at positions that do.
fn lies_below_positions(looplet: &Looplet) -> bool {
    match looplet {
        Looplet::Lookup => true,
        Looplet::Thunk { body, .. } => {
            matches!(&**body, Looplet::Stepper(list) if !list.grouped && list.below == Below::Position)
        }
        _ => false,
    }
}
