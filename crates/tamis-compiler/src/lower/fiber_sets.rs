//! Fiber sets: a loop reduces the subscript of a level while windows over outer levels are still
//! open, so several fibers are walked at once.
//!
//! Each fiber of the set has a cursor: the first of its segments (coordinates, runs, blocks) that
//! the window has not passed. The set behaves as one sequence of segments: the nearest start and
//! the nearest end at the cursors determine the next windows, so the set co-iterates with other
//! structures (`segments`). Once the outer levels are resolved, the inner loop continues from the
//! cursor of its fiber. The fibers are enumerated once, by a walk over the positions that the open
//! windows reach (`open_windows`).

use super::Lowerer;
use super::node::{FiberCursors, Node, PartialAccess, Projection, ReadSource, Step, map_steps, visit_steps};
use super::open_windows::{Reached, single_range};
use super::region::Region;
use super::run_algebra::depends;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Hint, Role, Stmt, VarId};
use tamis_ir::looplet::{Edge, Extents, Located, Looplet, NEVER, Segments, Window};
use tamis_ir::program::{IndexId, Protocol, TensorId};

/// A set of fibers, with its state in the kernel.
#[derive(Clone, Debug)]
pub(super) struct FiberSet {
    tensor: TensorId,
    level: usize,
    /// The number of subscript coordinates per stored coordinate.
    scale: u64,
    mirrored: bool,
    /// The cursor of each fiber, indexed by its parent position minus the first one; none if a
    /// fiber has at most one segment.
    cursors: Option<BufferId>,
    first: ExprId,
    count: ExprId,
    /// The parent positions of the fibers, and the ends of their groups; none if the parents are
    /// consecutive.
    parents: Option<(BufferId, Option<BufferId>)>,
    /// The nearest start of a segment, and the nearest end, unless segments are single coordinates.
    begins: VarId,
    ends: Option<VarId>,
    /// The end of the region that the set was created for.
    stop: ExprId,
    /// The number of enclosing loops that move the level.
    loops: usize,
}

impl FiberSet {
    /// True if these are its cursors.
    pub(super) fn has_cursors(&self, cursors: BufferId) -> bool {
        self.cursors == Some(cursors)
    }
}

/// The segment at a cursor: a condition that there is one, its start and its end.
pub(super) struct SegmentRange {
    pub(super) there: ExprId,
    pub(super) first: ExprId,
    pub(super) end: ExprId,
}

impl Lowerer<'_> {
    /// The structure of an access along a loop that moves a level below its next one, while windows
    /// over that are open. `fill_outside`: reads out of bounds have the same effect as reads of
    /// elements that are not stored.
    pub(super) fn unfurl_fiber_set(
        &mut self,
        access: &PartialAccess,
        index: IndexId,
        fill_outside: bool,
    ) -> Option<Looplet> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let level = (access.level..subs.len()).find(|level| depends(&subs[*level].node, index))?;
        // Before any of its loops is entered, a level is all of its fibers.
        if level == access.level || self.entered(access) == 0 {
            return None;
        }
        for (k, sub) in subs.iter().enumerate().take(level + 1).skip(access.level) {
            let plain = matches!(sub.projection, Projection::Whole | Projection::Quotient(_))
                && (sub.inside || (sub.permissive && fill_outside));
            if !plain || sub.protocol == Some(Protocol::Follow) || self.is_nonordered(*tensor, k) {
                return None;
            }
            if k < level {
                self.footprint_below(&sub.node, index)?;
                if !self.can_be_reached(*tensor, k) {
                    return None;
                }
            }
        }
        let sub = &subs[level];
        let (window, mirrored) = self.window(sub, index)?;
        let zero = self.b.int(0);
        let group_stop = self.lies_below_group(*tensor, level).then_some(zero);
        let at = Located { position: zero, present: None, group_stop };
        let looplet = self.level_structure(*tensor, level, at, scale_of(&sub.projection), mirrored)?;
        let (_, body) = unthunked(looplet);
        if !matches!(body, Looplet::Stepper(_) | Looplet::Segments(_)) && single_range(&mut self.b, &body).is_none() {
            return None;
        }
        self.states[tensor.index()].order_matters = true;
        Some(Looplet::Fibers { level, window, mirrored })
    }

    /// The structure of a level below a position, along its subscript.
    pub(super) fn level_structure(
        &mut self,
        tensor: TensorId,
        level: usize,
        at: Located,
        scale: u64,
        mirrored: bool,
    ) -> Option<Looplet> {
        let zero = self.b.int(0);
        let looplet = self.fiber(tensor, level, at, zero, |row, fiber| (row.unfurl)(fiber))?;
        let looplet = looplet.affine_map(&mut self.b, scale, None)?;
        if mirrored { looplet.mirrored(&mut self.b) } else { Some(looplet) }
    }

    /// The start or the end of a window over a fiber of a set.
    pub(super) fn edge(&mut self, fibers: &FiberCursors, position: ExprId) -> Edge {
        let at = self.b.sub(position, fibers.first);
        let cursor = self.b.load(fibers.cursors, at);
        if fibers.mirrored { Edge::To(cursor) } else { Edge::From(cursor) }
    }

    /// Enumerates the fibers of a set, moves their cursors to the start of the region, and iterates
    /// over them as segments.
    pub(super) fn fibers(
        &mut self,
        region: Region,
        steps: Vec<Step>,
        id: u32,
        level: usize,
        window: Window,
        mirrored: bool,
    ) {
        let mut found: Option<PartialAccess> = None;
        visit_steps(&steps, &mut |node| match node {
            Node::Access(access) if access.id == id => found = Some((**access).clone()),
            _ => {}
        });
        let set = found.and_then(|access| self.begin_set(&access, region, level, window, mirrored));
        let Some((set, segments)) = set else {
            let steps = map_steps(steps, &mut |node| match node {
                Node::Access(mut access) if access.id == id => {
                    access.looplet = None;
                    Node::Access(access)
                }
                other => other,
            });
            self.warn_of_open_windows(&steps, region.index);
            return self.region(region, steps);
        };
        self.fiber_sets.push(set);
        let steps = self.set_looplet(steps, id, &Looplet::Segments(segments));
        self.region(region, steps);
    }

    fn begin_set(
        &mut self,
        access: &PartialAccess,
        region: Region,
        level: usize,
        window: Window,
        mirrored: bool,
    ) -> Option<(FiberSet, Segments)> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(level)?);
        let scale = scale_of(&sub.projection);
        let name = format!("{}{level}", self.program.tensor(tensor).name);
        let (zero, never) = (self.b.int(0), self.b.int(NEVER));
        let begins = self.b.variable_from("nearest", never);
        let groups = self.lies_below_group(tensor, level);
        let at = Located { position: zero, present: None, group_stop: groups.then_some(zero) };
        let (_, body) = unthunked(self.level_structure(tensor, level, at, scale, mirrored)?);
        let single = matches!(body, Looplet::Stepper(_));
        let ends = (!single).then(|| self.b.variable_from("nearest_end", never));
        let fiber = Elem::Value(DType::I64);
        let keeps = matches!(body, Looplet::Stepper(_) | Looplet::Segments(_));
        let cursors = keeps.then(|| self.b.buffer(format!("{name}_cursors"), fiber, Role::Scratch));
        let loops = self.entered_at(access, level) + 1;
        let mut set = FiberSet {
            tensor,
            level,
            scale,
            mirrored,
            cursors,
            first: zero,
            count: zero,
            parents: None,
            begins,
            ends,
            stop: region.stop,
            loops,
        };
        let begin = window.begin(&mut self.b, region.start);
        let begin = self.b.name("begin", begin);
        match self.reached(access, region.index, level)? {
            Reached::Between(first, stop) => {
                set.first = self.b.name("first", first);
                let count = self.b.sub(stop, set.first);
                set.count = self.b.name("count", count);
                if let Some(cursors) = cursors {
                    self.b.emit(Stmt::Grow { buffer: cursors, len: set.count, fill: None });
                }
                self.each_of(&set.clone(), |this, set, offset, looplet| this.begin_fiber(set, offset, &looplet, begin));
            }
            Reached::Scattered => {
                let parents = self.b.buffer(format!("{name}_parents"), fiber, Role::Scratch);
                let groups = groups.then(|| self.b.buffer(format!("{name}_stops"), fiber, Role::Scratch));
                set.parents = Some((parents, groups));
                let count = self.b.variable_from("count", zero);
                let none = self.b.int(-1);
                let first = self.b.variable_from("first", none);
                set.first = self.b.get(first);
                let block = self.in_block(|this| {
                    this.each_reached(access, region.index, level, &mut |this, at| {
                        this.add_fiber(&set, (count, first), at, begin);
                    });
                });
                match access.present {
                    // Absent fibers are not enumerated.
                    Some(cond) => self.b.emit(Stmt::If { cond, then: block, otherwise: Vec::new() }),
                    None => block.into_iter().for_each(|stmt| self.b.emit(stmt)),
                }
                let (first, count) = (self.b.get(first), self.b.get(count));
                (set.first, set.count) = (self.b.name("first", first), self.b.name("count", count));
            }
        }
        let extents = Extents::Fibers { set: self.fiber_sets.len(), first: begins, end: ends };
        let segments = Segments {
            start: zero,
            stop: zero,
            extents,
            covers: false,
            scale: 1,
            shift: None,
            leads: false,
            window: Some(window),
            mirrored: false,
            sought: Some(region.start),
            ended: None,
        };
        Some((set, segments))
    }

    /// Adds the fiber below a position to a set.
    fn add_fiber(&mut self, set: &FiberSet, (count, first): (VarId, VarId), at: Located, begin: ExprId) {
        let Some((parents, groups)) = set.parents else { return };
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let (fiber, base) = (self.b.get(count), self.b.get(first));
        let position = self.b.name("below", at.position);
        // Positions increase, so the first one is the least.
        let none = self.b.call_in(Op::Lt, DType::I64, &[base, zero]);
        let then = self.b.block(|b| b.assign(first, position));
        self.b.emit(Stmt::If { cond: none, then, otherwise: Vec::new() });
        let after = self.b.add(fiber, one);
        self.b.emit(Stmt::Grow { buffer: parents, len: after, fill: None });
        self.b.store(parents, fiber, position);
        if let (Some(groups), Some(stop)) = (groups, at.group_stop) {
            self.b.emit(Stmt::Grow { buffer: groups, len: after, fill: None });
            self.b.store(groups, fiber, stop);
        }
        let offset = self.b.sub(position, base);
        if let Some(cursors) = set.cursors {
            let capacity = self.b.add(offset, one);
            self.b.emit(Stmt::Grow { buffer: cursors, len: capacity, fill: None });
        }
        let at = Located { position, present: None, group_stop: at.group_stop };
        if let Some(looplet) = self.level_structure(set.tensor, set.level, at, set.scale, set.mirrored) {
            let looplet = self.emit_preamble(looplet);
            self.begin_fiber(set, offset, &looplet, begin);
        }
        self.b.assign(count, after);
    }

    /// Moves the cursor of a fiber to the start of the windows.
    fn begin_fiber(&mut self, set: &FiberSet, offset: ExprId, looplet: &Looplet, begin: ExprId) {
        let from = match looplet {
            Looplet::Stepper(list) => list.seek(&mut self.b, "from", list.start, begin),
            Looplet::Segments(segments) => segments.seek(&mut self.b, "from", segments.start, begin),
            _ => begin,
        };
        let from = self.b.name("from", from);
        self.save_cursor(set, offset, looplet, from, begin);
    }

    /// A loop over the fibers of a set, each with the offset of its cursor and its structure.
    pub(super) fn each_of(&mut self, set: &FiberSet, emit: impl FnOnce(&mut Self, &FiberSet, ExprId, Looplet)) {
        let var = self.b.new_var("fiber", DType::I64, false);
        let fiber = self.b.get(var);
        let body = self.in_block(|this| {
            let (offset, at) = match set.parents {
                None => {
                    let position = this.b.add(set.first, fiber);
                    (fiber, Located { position, present: None, group_stop: None })
                }
                Some((parents, groups)) => {
                    let position = this.b.load(parents, fiber);
                    let position = this.b.name("below", position);
                    let group_stop = groups.map(|groups| this.b.load(groups, fiber));
                    (this.b.sub(position, set.first), Located { position, present: None, group_stop })
                }
            };
            let looplet = this.level_structure(set.tensor, set.level, at, set.scale, set.mirrored);
            if let Some(looplet) = looplet {
                let looplet = this.emit_preamble(looplet);
                emit(this, set, offset, looplet);
            }
        });
        let start = self.b.int(0);
        self.b.emit(Stmt::For { var, start, stop: set.count, body, hint: Hint::default() });
    }

    /// Emits the preamble of a looplet, and gives its body.
    fn emit_preamble(&mut self, looplet: Looplet) -> Looplet {
        let (preamble, body) = unthunked(looplet);
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        body
    }

    /// Moves all fibers of a set to their first segments that end behind a coordinate; `far`:
    /// possibly over several segments.
    fn advance_set(&mut self, set: usize, coordinate: ExprId, far: bool) {
        let Some(set) = self.fiber_sets.get(set).cloned() else { return };
        let passed = self.b.name("passed", coordinate);
        let never = self.b.int(NEVER);
        self.b.assign(set.begins, never);
        if let Some(ends) = set.ends {
            self.b.assign(ends, never);
        }
        self.each_of(&set, |this, set, offset, looplet| {
            let Some(cursors) = set.cursors else { return this.save_cursor(set, offset, &looplet, passed, passed) };
            let here = this.cursor_of(set, cursors, offset);
            let one = this.b.int(1);
            let grouped = matches!(&looplet, Looplet::Stepper(list) if list.grouped);
            let after = if far || grouped {
                let cursor = this.b.variable_from("q", here);
                let q = this.b.get(cursor);
                let cond = this.is_behind(&looplet, q, passed);
                let next = this.b.add(q, one);
                this.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: cursor, value: next }] });
                q
            } else {
                let cond = this.is_behind(&looplet, here, passed);
                let next = this.b.add(here, one);
                this.b.call_in(Op::Select, DType::I64, &[cond, next, here])
            };
            let after = this.b.name("after", after);
            this.save_cursor(set, offset, &looplet, after, passed);
        });
    }

    /// True if a fiber has a segment at this position, and it ends at or before a coordinate.
    fn is_behind(&mut self, looplet: &Looplet, q: ExprId, coordinate: ExprId) -> ExprId {
        let Some(segment_range) = self.segment_range(looplet, q, coordinate) else {
            return self.b.constant(false.into());
        };
        let behind = self.b.call_in(Op::Le, DType::I64, &[segment_range.end, coordinate]);
        self.b.call_in(Op::And, DType::Bool, &[segment_range.there, behind])
    }

    /// Stores the cursor of a fiber, and updates the nearest segment.
    fn save_cursor(&mut self, set: &FiberSet, offset: ExprId, looplet: &Looplet, q: ExprId, passed: ExprId) {
        if let Some(cursors) = set.cursors {
            let stored = self.signed(set, q);
            self.b.store(cursors, offset, stored);
        }
        let Some(SegmentRange { there, first, end }) = self.segment_range(looplet, q, passed) else { return };
        let then = self.b.block(|b| {
            for (nearest, here) in [(Some(set.begins), first), (set.ends, end)] {
                if let Some(nearest) = nearest {
                    let known = b.get(nearest);
                    let nearer = b.call_in(Op::Min, DType::I64, &[known, here]);
                    b.assign(nearest, nearer);
                }
            }
        });
        self.b.emit(Stmt::If { cond: there, then, otherwise: Vec::new() });
    }

    /// The cursor of a fiber, along the loop.
    pub(super) fn cursor_of(&mut self, set: &FiberSet, cursors: BufferId, offset: ExprId) -> ExprId {
        let here = self.b.load(cursors, offset);
        let here = self.signed(set, here);
        self.b.name("here", here)
    }

    /// Cursors are stored unmirrored, whatever their sign is along the loop.
    fn signed(&mut self, set: &FiberSet, q: ExprId) -> ExprId {
        if !set.mirrored {
            return q;
        }
        let zero = self.b.int(0);
        self.b.sub(zero, q)
    }

    /// A segment of a fiber, of which coordinates before `passed` do not matter.
    pub(super) fn segment_range(&mut self, looplet: &Looplet, q: ExprId, passed: ExprId) -> Option<SegmentRange> {
        let one = self.b.int(1);
        Some(match looplet {
            Looplet::Stepper(list) => {
                let there = self.b.call_in(Op::Lt, DType::I64, &[q, list.stop]);
                let first = list.coordinate(&mut self.b, q);
                SegmentRange { there, first, end: self.b.add(first, one) }
            }
            Looplet::Segments(segments) => {
                let there = segments.has(&mut self.b, q);
                let segment = segments.segment(&mut self.b, q);
                SegmentRange { there, first: segment.first.unwrap_or(passed), end: segment.end }
            }
            other => {
                let (first, end) = single_range(&mut self.b, other)?;
                let last = self.b.call_in(Op::Max, DType::I64, &[first, passed]);
                SegmentRange { there: self.b.call_in(Op::Lt, DType::I64, &[last, end]), first, end }
            }
        })
    }

    // Sets as segments

    /// Advances a set past its segment, if that ends at or before a coordinate of the loop. A
    /// segment that extends beyond a region belongs to the next region, too.
    pub(super) fn pass_set(&mut self, segments: &Segments, end: ExprId, stop: ExprId) {
        let zero = self.b.int(0);
        let stored = Segments { window: None, ..segments.clone() }.segment(&mut self.b, zero).end;
        let Some((set, made_for)) = segments.set().and_then(|set| Some((set, self.fiber_sets.get(set)?.stop))) else {
            return;
        };
        // Nothing reads beyond the region that the set was created for.
        if stop == made_for {
            return self.advance_set(set, stored, false);
        }
        let cond = self.b.call_in(Op::Le, DType::I64, &[end, stop]);
        let then = self.in_block(|this| this.advance_set(set, stored, false));
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// Moves a set to the first segment that windows from an index on meet.
    pub(super) fn seek_set(&mut self, segments: &Segments, index: ExprId) {
        let (Some(set), Some(window)) = (segments.set(), segments.window) else { return };
        let begin = window.begin(&mut self.b, index);
        let begin = self.b.name("begin", begin);
        let zero = self.b.int(0);
        let end = Segments { window: None, ..segments.clone() }.segment(&mut self.b, zero).end;
        let cond = self.b.call_in(Op::Le, DType::I64, &[end, begin]);
        let then = self.in_block(|this| this.advance_set(set, begin, true));
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// Resolves windows that meet the segment of a set: inner loops continue from the cursors.
    pub(super) fn enter_set(&mut self, steps: Vec<Step>, id: u32, set: usize, present: Option<ExprId>) -> Vec<Step> {
        let Some(FiberSet { level, cursors, first, mirrored, loops, .. }) = self.fiber_sets.get(set).cloned() else {
            return steps;
        };
        map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.id = access.own;
                access.looplet = None;
                access.fibers.retain(|fibers| fibers.level != level);
                access.fibers.extend(cursors.map(|cursors| FiberCursors { level, cursors, first, mirrored, loops }));
                access.present = self.both(access.present, present);
                access.safe &= present.is_none();
                Node::Access(access)
            }
            other => other,
        })
    }
}

/// The number of subscript coordinates per stored coordinate.
pub(super) fn scale_of(projection: &Projection) -> u64 {
    match projection {
        Projection::Quotient(by) => *by,
        _ => 1,
    }
}

/// The preamble and the body of a looplet.
pub(super) fn unthunked(looplet: Looplet) -> (Vec<Stmt>, Looplet) {
    match looplet {
        Looplet::Thunk { mut preamble, body } => {
            let (inner, body) = unthunked(*body);
            preamble.extend(inner);
            (preamble, body)
        }
        other => (Vec::new(), other),
    }
}
