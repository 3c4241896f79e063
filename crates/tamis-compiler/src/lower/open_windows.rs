//! Open windows: the positions below levels whose subscripts are known only up to a contiguous
//! range, because inner loops move them.
//!
//! In: an access with open windows, and the level whose fibers are needed. Out: a range of parent
//! positions if they are consecutive, or nested loops over them. Positions are visited in
//! increasing order.

use super::Lowerer;
use super::bind::{BoundStorage, is_grouped};
use super::fiber_sets::{scale_of, unthunked};
use super::node::{PartialAccess, ReadSource, Sub};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{Builder, ExprId, Hint, Stmt};
use tamis_ir::looplet::{Below, Edge, Extents, Located, Looplet, Payload, Segments, Stepper};
use tamis_ir::program::{IndexId, TensorId};

/// The positions that open windows reach.
pub(super) enum Reached {
    /// All positions from the first to one before the last.
    Between(ExprId, ExprId),
    /// Positions that have to be enumerated.
    Scattered,
}

/// A callback for each position.
type Visit<'a, 'b> = &'a mut dyn FnMut(&mut Lowerer<'b>, Located);

/// A callback for each position below a level, and the coordinates of the level that lead there.
type VisitChild<'a, 'b> = &'a mut dyn FnMut(&mut Lowerer<'b>, Located, (ExprId, ExprId));

impl<'p> Lowerer<'p> {
    /// True if the positions below a contiguous range of a level's coordinates can be enumerated.
    pub(super) fn can_be_reached(&mut self, tensor: TensorId, level: usize) -> bool {
        match self.fiber_below(tensor, level).map(unthunked) {
            Some((_, Looplet::Lookup | Looplet::Stepper(_) | Looplet::Segments(_))) => true,
            Some((_, other)) => single_range(&mut self.b, &other).is_some(),
            None => false,
        }
    }

    /// True if the fibers of a level lie below groups of positions.
    pub(super) fn lies_below_group(&self, tensor: TensorId, level: usize) -> bool {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { format, .. } => level > 0 && is_grouped(format, level - 1),
            BoundStorage::Scalar { .. } => false,
        }
    }

    /// The structure of a level below an arbitrary position.
    fn fiber_below(&mut self, tensor: TensorId, level: usize) -> Option<Looplet> {
        let zero = self.b.int(0);
        let group_stop = self.lies_below_group(tensor, level).then_some(zero);
        let at = Located { position: zero, present: None, group_stop };
        self.fiber(tensor, level, at, zero, |row, fiber| (row.unfurl)(fiber))
    }

    /// The parent positions of a level that open windows over the levels from an access's next one
    /// on reach, just before a loop.
    pub(super) fn reached(&mut self, access: &PartialAccess, index: IndexId, level: usize) -> Option<Reached> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        if access.level + 1 != level || access.present.is_some() {
            return Some(Reached::Scattered);
        }
        let sub = subs.get(access.level)?;
        // Positions between the coordinates of dilated windows are left out.
        if self.dilated(sub, index).is_some_and(|window| !window.is_contiguous()) {
            return Some(Reached::Scattered);
        }
        let (low, after) = self.stored_footprint(*tensor, access.level, sub, index)?;
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

    /// The contiguous range of a level's coordinates that a subscript covers: the first, and one
    /// past the last.
    fn stored_footprint(
        &mut self,
        tensor: TensorId,
        level: usize,
        sub: &Sub,
        index: IndexId,
    ) -> Option<(ExprId, ExprId)> {
        let (mut low, mut last) = self.footprint_below(&sub.node, index)?;
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let scale = scale_of(&sub.projection);
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

    /// The first position of a coordinate list at or after `low`, from a known start of its window.
    fn start_of(
        &mut self,
        access: &PartialAccess,
        level: usize,
        position: ExprId,
        list: &Stepper,
        low: ExprId,
    ) -> ExprId {
        match self.edge_of(access, level, position) {
            Some((start, true)) => start,
            Some((start, false)) => list.seek(&mut self.b, "from", start, low),
            None => list.seek(&mut self.b, "from", list.start, low),
        }
    }

    /// A position at or before the first element of the window over a fiber, with a flag that it is
    /// that first position.
    fn edge_of(&mut self, access: &PartialAccess, level: usize, position: ExprId) -> Option<(ExprId, bool)> {
        let known = match access.fibers.iter().find(|fibers| fibers.level == level) {
            Some(fibers) => Some((self.edge(&fibers.clone(), position), fibers.loops)),
            None => access.window.filter(|_| level == access.level),
        };
        match known {
            Some((Edge::From(start), loops)) => Some((start, loops == self.entered_at(access, level))),
            _ => None,
        }
    }

    /// Emits loops over all parent positions of a level that open windows reach, in increasing
    /// order.
    pub(super) fn each_reached(&mut self, access: &PartialAccess, index: IndexId, level: usize, visit: Visit<'_, 'p>) {
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: None, group_stop: access.group_stop };
        self.reach(access, index, (access.level, level), at, visit);
    }

    fn reach(
        &mut self,
        access: &PartialAccess,
        index: IndexId,
        (level, until): (usize, usize),
        at: Located,
        visit: Visit<'_, 'p>,
    ) {
        if level == until {
            return visit(self, at);
        }
        let ReadSource::Tensor(tensor, subs) = &access.source else { return };
        let (tensor, sub) = (*tensor, &subs[level]);
        let Some((low, after)) = self.stored_footprint(tensor, level, sub, index) else { return };
        let Some(looplet) = self.fiber(tensor, level, at, low, |row, fiber| (row.unfurl)(fiber)) else { return };
        let (preamble, body) = unthunked(looplet);
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        let window = self.dilated(sub, index).filter(|window| !window.is_contiguous());
        let scale = scale_of(&sub.projection);
        let mut below = |this: &mut Self, at: Located, (first, end): (ExprId, ExprId)| {
            let Some(window) = &window else { return this.reach(access, index, (level + 1, until), at, visit) };
            let by = this.b.int(scale as i64);
            let first = this.b.call_in(Op::Mul, DType::I64, &[first, by]);
            let end = this.b.call_in(Op::Mul, DType::I64, &[end, by]);
            let cond = this.meets(first, end, window);
            let then = this.in_block(|this| this.reach(access, index, (level + 1, until), at, visit));
            this.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        };
        match body {
            Looplet::Lookup => self.counted_loop(low, after, |this, x| {
                let found = this.locate(tensor, level, at, x);
                let range = this.only(x);
                below(this, found, range);
            }),
            Looplet::Stepper(list) => {
                let start = self.start_of(access, level, at.position, &list, low);
                self.each_in_list(&list, start, after, &mut below);
            }
            Looplet::Segments(segments) => {
                let start = match self.edge_of(access, level, at.position) {
                    Some((start, true)) => start,
                    Some((start, false)) => segments.seek(&mut self.b, "from", start, low),
                    None => segments.seek(&mut self.b, "from", segments.start, low),
                };
                self.each_segment_of(&segments, start, (low, after), &mut below);
            }
            other => self.only_range(&other, (low, after), &mut below),
        }
    }

    /// The range of one coordinate.
    fn only(&mut self, x: ExprId) -> (ExprId, ExprId) {
        let one = self.b.int(1);
        (x, self.b.add(x, one))
    }

    /// A loop over coordinates.
    fn counted_loop(&mut self, start: ExprId, stop: ExprId, emit: impl FnOnce(&mut Self, ExprId)) {
        let var = self.b.new_var("coordinate", DType::I64, false);
        let x = self.b.get(var);
        let body = self.in_block(|this| emit(this, x));
        self.b.emit(Stmt::For { var, start, stop, body, hint: Hint::default() });
    }

    /// A loop over a coordinate list from a position on, up to a coordinate; a group is one child.
    fn each_in_list(&mut self, list: &Stepper, start: ExprId, after: ExprId, below: VisitChild<'_, 'p>) {
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
            let x = list.coordinate(&mut this.b, here);
            let range = this.only(x);
            below(this, Located { position, present: None, group_stop }, range);
            this.b.assign(cursor, group_stop.unwrap_or(next));
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// A loop over segments from a position on, between two coordinates.
    fn each_segment_of(
        &mut self,
        segments: &Segments,
        start: ExprId,
        (low, after): (ExprId, ExprId),
        below: VisitChild<'_, 'p>,
    ) {
        let cursor = self.b.variable_from("q", start);
        let from = self.b.variable_from("from", low);
        let (q, before, one) = (self.b.get(cursor), self.b.get(from), self.b.int(1));
        let more = segments.has(&mut self.b, q);
        let first = segments.segment(&mut self.b, q).first.unwrap_or(before);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[first, after]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[more, inside]);
        let body = self.in_block(|this| {
            let here = this.b.name("here", q);
            let segment = segments.segment(&mut this.b, here);
            match segments.extents {
                Extents::Blocks { .. } => {
                    let base = segments.base(&mut this.b, here, segment.end).unwrap_or(here);
                    let first = this.b.call_in(Op::Max, DType::I64, &[first, low]);
                    let end = this.b.call_in(Op::Min, DType::I64, &[segment.end, after]);
                    let (first, end) = (this.b.name("first", first), this.b.name("end", end));
                    this.counted_loop(first, end, |this, x| {
                        let position = this.b.add(base, x);
                        let range = this.only(x);
                        below(this, Located { position, present: None, group_stop: None }, range);
                    });
                }
                _ => {
                    let position = segments.child(&mut this.b, here).unwrap_or(here);
                    let range = (segment.first.unwrap_or(before), segment.end);
                    below(this, Located { position, present: None, group_stop: None }, range);
                }
            }
            this.b.assign(from, segment.end);
            let next = this.b.add(here, one);
            this.b.assign(cursor, next);
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// A loop over the only contiguous range of a fiber, between two coordinates.
    fn only_range(&mut self, looplet: &Looplet, (low, after): (ExprId, ExprId), below: VisitChild<'_, 'p>) {
        let (Some((first, end)), Some(holds)) = (single_range(&mut self.b, looplet), contents_of(looplet)) else {
            return;
        };
        let first = self.b.call_in(Op::Max, DType::I64, &[first, low]);
        let end = self.b.call_in(Op::Min, DType::I64, &[end, after]);
        let (first, end) = (self.b.name("first", first), self.b.name("end", end));
        match holds {
            RangeContents::Child(position) => {
                let cond = self.b.call_in(Op::Lt, DType::I64, &[first, end]);
                let then = self.in_block(|this| {
                    below(this, Located { position, present: None, group_stop: None }, (first, end));
                });
                self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
            RangeContents::Block(base, stride) => self.counted_loop(first, end, |this, x| {
                let stride = this.b.int(stride);
                let along = this.b.call_in(Op::Mul, DType::I64, &[x, stride]);
                let position = this.b.add(base, along);
                let range = this.only(x);
                below(this, Located { position, present: None, group_stop: None }, range);
            }),
        }
    }
}

/// The contents of a contiguous range: one child, or one for each coordinate.
enum RangeContents {
    Child(ExprId),
    Block(ExprId, i64),
}

/// The contents of the only contiguous range of a fiber.
fn contents_of(looplet: &Looplet) -> Option<RangeContents> {
    match looplet {
        Looplet::Run(Payload::Child(position)) => Some(RangeContents::Child(*position)),
        Looplet::Block { base, stride } => Some(RangeContents::Block(*base, *stride)),
        Looplet::Spike(spike) => match spike.tail {
            Payload::Child(position) => Some(RangeContents::Child(position)),
            _ => None,
        },
        Looplet::Sequence { phases, .. } => phases.iter().find_map(|phase| contents_of(&phase.body)),
        _ => None,
    }
}

/// The contiguous range that a fiber stores, if there is at most one, and its end is known.
pub(super) fn single_range(b: &mut Builder, looplet: &Looplet) -> Option<(ExprId, ExprId)> {
    let Looplet::Sequence { phases, .. } = looplet else { return None };
    let (mut found, mut start) = (None, b.int(0));
    for phase in phases {
        let range = match &phase.body {
            Looplet::Run(Payload::Fill) => None,
            Looplet::Run(Payload::Child(_)) | Looplet::Block { .. } => Some((start, phase.stop?)),
            Looplet::Spike(spike) if spike.body == Payload::Fill => {
                let one = b.int(1);
                Some((spike.at, b.add(spike.at, one)))
            }
            _ => return None,
        };
        if found.is_some() && range.is_some() {
            return None;
        }
        found = found.or(range);
        start = phase.stop.unwrap_or(start);
    }
    found
}
