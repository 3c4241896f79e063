//! What open windows reach: the positions below levels whose subscripts are known only up to a stretch of coordinates, because some of
//! the loops that move them are still to come.

use super::Lowerer;
use super::bind::{Stored, is_grouped};
use super::fiber_sets::{scale_of, unthunked};
use super::node::{Access, Source, Sub};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{Builder, ExprId, Hint, Stmt};
use tamis_ir::looplet::{Below, Edge, Extents, Located, Looplet, Payload, Pieces, Stepper};
use tamis_ir::program::{IndexId, TensorId};

/// The positions that open windows reach.
pub(super) enum Reached {
    /// All from the first to one before the last.
    Between(ExprId, ExprId),
    /// They have to be walked to.
    Scattered,
}

/// What is done at each position.
type Visit<'a, 'b> = &'a mut dyn FnMut(&mut Lowerer<'b>, Located);

impl<'p> Lowerer<'p> {
    /// Whether the positions below a stretch of a level's coordinates can be walked to.
    pub(super) fn can_be_reached(&mut self, tensor: TensorId, level: usize) -> bool {
        match self.fiber_below(tensor, level).map(unthunked) {
            Some((_, Looplet::Lookup | Looplet::Stepper(_) | Looplet::Pieces(_))) => true,
            Some((_, other)) => stretch_of(&mut self.b, &other).is_some(),
            None => false,
        }
    }

    /// Whether the fibers of a level lie below groups of positions.
    pub(super) fn lies_below_group(&self, tensor: TensorId, level: usize) -> bool {
        match &self.bound[tensor.index()].storage {
            Stored::Levels { format, .. } => level > 0 && is_grouped(format, level - 1),
            Stored::Scalar { .. } => false,
        }
    }

    /// What a level holds below some position.
    fn fiber_below(&mut self, tensor: TensorId, level: usize) -> Option<Looplet> {
        let zero = self.b.int(0);
        let group_stop = self.lies_below_group(tensor, level).then_some(zero);
        let at = Located { position: zero, present: None, group_stop };
        self.fiber(tensor, level, at, zero, |row, fiber| (row.unfurl)(fiber))
    }

    /// The positions above a level that the windows over the levels from an access's next one on reach, when a loop is about to be entered.
    pub(super) fn reached(&mut self, access: &Access, index: IndexId, level: usize) -> Option<Reached> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        if access.level + 1 != level || access.present.is_some() {
            return Some(Reached::Scattered);
        }
        let sub = subs.get(access.level)?;
        let (low, after) = self.stored_cover(*tensor, access.level, sub, index)?;
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: None, group_stop: access.group_stop };
        let looplet = self.fiber(*tensor, access.level, at, low, |row, fiber| (row.unfurl)(fiber))?;
        match unthunked(looplet) {
            (_, Looplet::Lookup) => {
                let first = self.locate(*tensor, access.level, at, low).position;
                let count = self.b.sub(after, low);
                Some(Reached::Between(first, self.b.add(first, count)))
            }
            (preamble, Looplet::Stepper(list)) if !list.grouped && list.below == Below::Position => {
                preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
                let first = self.start_of(access, access.level, position, &list, low);
                let first = self.b.name("first", first);
                let stop = list.seek(&mut self.b, "to", first, after);
                Some(Reached::Between(first, stop))
            }
            _ => Some(Reached::Scattered),
        }
    }

    /// The stretch of a level's own coordinates that a subscript covers: the first, and one past the last.
    fn stored_cover(&mut self, tensor: TensorId, level: usize, sub: &Sub, index: IndexId) -> Option<(ExprId, ExprId)> {
        let (mut low, mut last) = self.cover_below(&sub.node, index)?;
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let scale = scale_of(&sub.part);
        if scale != 1 {
            let by = self.b.int(scale as i64);
            low = self.b.call_in(Op::FloorDiv, DType::I64, &[low, by]);
            last = self.b.call_in(Op::FloorDiv, DType::I64, &[last, by]);
        }
        let mut after = self.b.add(last, one);
        if !sub.inside {
            let size = *self.bound[tensor.index()].extents.get(level)?;
            low = self.b.call_in(Op::Max, DType::I64, &[low, zero]);
            after = self.b.call_in(Op::Min, DType::I64, &[after, size]);
        }
        Some((self.b.name("low", low), self.b.name("after", after)))
    }

    /// The first position of a list whose coordinate is not below one, from where a window over it is known to begin.
    fn start_of(&mut self, access: &Access, level: usize, position: ExprId, list: &Stepper, low: ExprId) -> ExprId {
        match self.edge_of(access, level, position) {
            Some((start, true)) => start,
            Some((start, false)) => list.seek(&mut self.b, "from", start, low),
            None => list.seek(&mut self.b, "from", list.start, low),
        }
    }

    /// A position that nothing in the window over a fiber lies before; whether it is the first one in it.
    fn edge_of(&mut self, access: &Access, level: usize, position: ExprId) -> Option<(ExprId, bool)> {
        let known = match access.fibers.iter().find(|fibers| fibers.level == level) {
            Some(fibers) => Some((self.edge(&fibers.clone(), position), fibers.loops)),
            None => access.window.filter(|_| level == access.level),
        };
        match known {
            Some((Edge::From(start), loops)) => Some((start, loops == self.entered_at(access, level))),
            _ => None,
        }
    }

    /// Emits loops over all positions above a level that open windows reach, in order.
    pub(super) fn each_reached(&mut self, access: &Access, index: IndexId, level: usize, visit: Visit<'_, 'p>) {
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: None, group_stop: access.group_stop };
        self.reach(access, index, (access.level, level), at, visit);
    }

    fn reach(
        &mut self,
        access: &Access,
        index: IndexId,
        (level, until): (usize, usize),
        at: Located,
        visit: Visit<'_, 'p>,
    ) {
        if level == until {
            return visit(self, at);
        }
        let Source::Tensor(tensor, subs) = &access.source else { return };
        let (tensor, sub) = (*tensor, &subs[level]);
        let Some((low, after)) = self.stored_cover(tensor, level, sub, index) else { return };
        let Some(looplet) = self.fiber(tensor, level, at, low, |row, fiber| (row.unfurl)(fiber)) else { return };
        let (preamble, body) = unthunked(looplet);
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        let mut below = |this: &mut Self, at: Located| this.reach(access, index, (level + 1, until), at, visit);
        match body {
            Looplet::Lookup => self.counted_loop(low, after, |this, x| {
                let found = this.locate(tensor, level, at, x);
                below(this, found);
            }),
            Looplet::Stepper(list) => {
                let start = self.start_of(access, level, at.position, &list, low);
                self.each_listed(&list, start, after, &mut below);
            }
            Looplet::Pieces(pieces) => {
                let start = match self.edge_of(access, level, at.position) {
                    Some((start, true)) => start,
                    Some((start, false)) => pieces.seek(&mut self.b, "from", start, low),
                    None => pieces.seek(&mut self.b, "from", pieces.start, low),
                };
                self.each_piece_of(&pieces, start, (low, after), &mut below);
            }
            other => self.only_stretch(&other, (low, after), &mut below),
        }
    }

    /// A loop over coordinates.
    fn counted_loop(&mut self, start: ExprId, stop: ExprId, emit: impl FnOnce(&mut Self, ExprId)) {
        let var = self.b.new_var("coordinate", DType::I64, false);
        let x = self.b.get(var);
        let body = self.in_block(|this| emit(this, x));
        self.b.emit(Stmt::For { var, start, stop, body, hint: Hint::default() });
    }

    /// The children of a list from a position on, up to a coordinate; groups are one child.
    fn each_listed(&mut self, list: &Stepper, start: ExprId, after: ExprId, below: &mut dyn FnMut(&mut Self, Located)) {
        let cursor = self.b.variable_from("q", start);
        let q = self.b.get(cursor);
        let one = self.b.int(1);
        let more = self.b.call_in(Op::Lt, DType::I64, &[q, list.stop]);
        let x = list.coordinate(&mut self.b, q);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[x, after]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[more, inside]);
        let body = self.in_block(|this| {
            let here = this.b.name("here", q);
            let next = this.b.add(here, one);
            let group_stop = list.grouped.then(|| {
                let x = list.coordinate(&mut this.b, here);
                let x = this.b.name("coordinate", x);
                let end = this.b.variable_from("end", next);
                let at = this.b.get(end);
                let more = this.b.call_in(Op::Lt, DType::I64, &[at, list.stop]);
                let found = list.coordinate(&mut this.b, at);
                let same = this.b.call_in(Op::Eq, DType::I64, &[found, x]);
                let cond = this.b.call_in(Op::And, DType::Bool, &[more, same]);
                let after = this.b.add(at, one);
                this.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: end, value: after }] });
                this.b.name("group", at)
            });
            let position = match list.below {
                Below::Position => here,
                Below::Coordinate(base) => {
                    let x = list.coordinate(&mut this.b, here);
                    this.b.add(base, x)
                }
            };
            below(this, Located { position, present: None, group_stop });
            this.b.assign(cursor, group_stop.unwrap_or(next));
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// The children of pieces from one on, between two coordinates.
    fn each_piece_of(
        &mut self,
        pieces: &Pieces,
        start: ExprId,
        (low, after): (ExprId, ExprId),
        below: &mut dyn FnMut(&mut Self, Located),
    ) {
        let cursor = self.b.variable_from("q", start);
        let from = self.b.variable_from("from", low);
        let (q, before, one) = (self.b.get(cursor), self.b.get(from), self.b.int(1));
        let more = pieces.has(&mut self.b, q);
        let first = pieces.piece(&mut self.b, q).first.unwrap_or(before);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[first, after]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[more, inside]);
        let body = self.in_block(|this| {
            let here = this.b.name("here", q);
            let piece = pieces.piece(&mut this.b, here);
            match pieces.extents {
                Extents::Blocks { .. } => {
                    let base = pieces.base(&mut this.b, here, piece.end).unwrap_or(here);
                    let first = this.b.call_in(Op::Max, DType::I64, &[first, low]);
                    let end = this.b.call_in(Op::Min, DType::I64, &[piece.end, after]);
                    let (first, end) = (this.b.name("first", first), this.b.name("end", end));
                    this.counted_loop(first, end, |this, x| {
                        let position = this.b.add(base, x);
                        below(this, Located { position, present: None, group_stop: None });
                    });
                }
                _ => {
                    let position = pieces.child(&mut this.b, here).unwrap_or(here);
                    below(this, Located { position, present: None, group_stop: None });
                }
            }
            this.b.assign(from, piece.end);
            let next = this.b.add(here, one);
            this.b.assign(cursor, next);
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// The children of the one stretch that a fiber has, between two coordinates.
    fn only_stretch(
        &mut self,
        looplet: &Looplet,
        (low, after): (ExprId, ExprId),
        below: &mut dyn FnMut(&mut Self, Located),
    ) {
        let (Some((first, end)), Some(holds)) = (stretch_of(&mut self.b, looplet), held_by(looplet)) else { return };
        let first = self.b.call_in(Op::Max, DType::I64, &[first, low]);
        let end = self.b.call_in(Op::Min, DType::I64, &[end, after]);
        let (first, end) = (self.b.name("first", first), self.b.name("end", end));
        match holds {
            Held::Child(position) => {
                let cond = self.b.call_in(Op::Lt, DType::I64, &[first, end]);
                let then = self.in_block(|this| below(this, Located { position, present: None, group_stop: None }));
                self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
            Held::Block(base, stride) => self.counted_loop(first, end, |this, x| {
                let stride = this.b.int(stride);
                let along = this.b.call_in(Op::Mul, DType::I64, &[x, stride]);
                let position = this.b.add(base, along);
                below(this, Located { position, present: None, group_stop: None });
            }),
        }
    }
}

/// What a stretch holds: one thing, or one for each coordinate.
enum Held {
    Child(ExprId),
    Block(ExprId, i64),
}

/// What the only stretch of a fiber holds.
fn held_by(looplet: &Looplet) -> Option<Held> {
    match looplet {
        Looplet::Run(Payload::Child(position)) => Some(Held::Child(*position)),
        Looplet::Block { base, stride } => Some(Held::Block(*base, *stride)),
        Looplet::Spike(spike) => match spike.tail {
            Payload::Child(position) => Some(Held::Child(position)),
            _ => None,
        },
        Looplet::Sequence { phases, .. } => phases.iter().find_map(|phase| held_by(&phase.body)),
        _ => None,
    }
}

/// From where to where a fiber holds anything, if that is one stretch at most, and it ends somewhere.
pub(super) fn stretch_of(b: &mut Builder, looplet: &Looplet) -> Option<(ExprId, ExprId)> {
    let Looplet::Sequence { phases, .. } = looplet else { return None };
    let (mut found, mut start) = (None, b.int(0));
    for phase in phases {
        let stretch = match &phase.body {
            Looplet::Run(Payload::Fill) => None,
            Looplet::Run(Payload::Child(_)) | Looplet::Block { .. } => Some((start, phase.stop?)),
            Looplet::Spike(spike) if spike.body == Payload::Fill => {
                let one = b.int(1);
                Some((spike.at, b.add(spike.at, one)))
            }
            _ => return None,
        };
        if found.is_some() && stretch.is_some() {
            return None;
        }
        found = found.or(stretch);
        start = phase.stop.unwrap_or(start);
    }
    found
}
