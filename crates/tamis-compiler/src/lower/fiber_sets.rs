//! Several fibers at once: a loop reduces the subscript of a level while windows over levels above it are still open, so that
//! it is not known yet in which fiber the inner loops will look.
//!
//! Each fiber of the set has a cursor, the first of its pieces (coordinates, runs, blocks) that the window has not passed. Together they
//! are pieces like any others: the nearest beginning and the nearest end of what the cursors are at say which windows come next, so
//! that what else the loop goes along is met as always (`segments`). Once the levels above are resolved, the inner loop goes on
//! from the cursor of its fiber. Which fibers there are is found once, by walking over what the open windows reach (`open_windows`).

use super::Lowerer;
use super::node::{Access, Fibers, Node, Part, Source, Step, map_steps, visit_steps};
use super::open_windows::{Reached, stretch_of};
use super::region::Region;
use super::run_algebra::depends;
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Hint, Role, Stmt, VarId};
use tamis_ir::looplet::{Edge, Extents, Located, Looplet, NEVER, Pieces, Window};
use tamis_ir::program::{IndexId, Protocol, TensorId};

/// A set of fibers, and what the kernel keeps about it.
#[derive(Clone, Debug)]
pub(super) struct FiberSet {
    tensor: TensorId,
    level: usize,
    /// How many coordinates of the subscript one stored coordinate stands for.
    scale: u64,
    mirrored: bool,
    /// The cursor of each fiber, at the position it lies below minus the first one; none if a fiber has one piece at most.
    cursors: Option<BufferId>,
    first: ExprId,
    count: ExprId,
    /// The positions that fibers lie below, and where groups of them end; if there are none, they follow each other.
    parents: Option<(BufferId, Option<BufferId>)>,
    /// The nearest beginning of a piece, and the nearest end, unless pieces are single coordinates.
    begins: VarId,
    ends: Option<VarId>,
    /// Where the region ends that it was made for.
    stop: ExprId,
    /// How many of the loops that move the level are around.
    loops: usize,
}

/// What a fiber is at: whether it is at anything, from where to where.
struct Stretch {
    there: ExprId,
    first: ExprId,
    end: ExprId,
}

impl Lowerer<'_> {
    /// The structure of an access along a loop that moves a level below its next one, while windows over that are open.
    /// `alike`, if it makes no difference whether a coordinate lies outside of the tensor or is not stored.
    pub(super) fn unfurl_fibers(&mut self, access: &Access, index: IndexId, alike: bool) -> Option<Looplet> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let level = (access.level..subs.len()).find(|level| depends(&subs[*level].node, index))?;
        // Before any of its loops is entered, a level is all of its fibers.
        if level == access.level || self.entered(access) == 0 {
            return None;
        }
        for (k, sub) in subs.iter().enumerate().take(level + 1).skip(access.level) {
            let plain =
                matches!(sub.part, Part::Whole | Part::Quotient(_)) && (sub.inside || (sub.permissive && alike));
            if !plain || sub.protocol == Some(Protocol::Follow) || self.is_nonordered(*tensor, k) {
                return None;
            }
            if k < level {
                self.cover_below(&sub.node, index)?;
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
        let looplet = self.along_level(*tensor, level, at, scale_of(&sub.part), mirrored)?;
        let (_, body) = unthunked(looplet);
        if !matches!(body, Looplet::Stepper(_) | Looplet::Pieces(_)) && stretch_of(&mut self.b, &body).is_none() {
            return None;
        }
        self.states[tensor.index()].order_matters = true;
        Some(Looplet::Fibers { level, window, mirrored })
    }

    /// What a level holds below a position, along its subscript.
    fn along_level(
        &mut self,
        tensor: TensorId,
        level: usize,
        at: Located,
        scale: u64,
        mirrored: bool,
    ) -> Option<Looplet> {
        let zero = self.b.int(0);
        let looplet = self.fiber(tensor, level, at, zero, |row, fiber| (row.unfurl)(fiber))?;
        let looplet = looplet.along(&mut self.b, scale, None)?;
        if mirrored { looplet.mirrored(&mut self.b) } else { Some(looplet) }
    }

    /// Where a window over a fiber of a set begins, or ends.
    pub(super) fn edge(&mut self, fibers: &Fibers, position: ExprId) -> Edge {
        let at = self.b.sub(position, fibers.first);
        let cursor = self.b.load(fibers.cursors, at);
        if fibers.mirrored { Edge::To(cursor) } else { Edge::From(cursor) }
    }

    /// Finds the fibers of a set, brings their cursors to where the region starts, and takes them as pieces.
    pub(super) fn fibers(
        &mut self,
        region: Region,
        steps: Vec<Step>,
        id: u32,
        level: usize,
        window: Window,
        mirrored: bool,
    ) {
        let mut found: Option<Access> = None;
        visit_steps(&steps, &mut |node| match node {
            Node::Access(access) if access.id == id => found = Some((**access).clone()),
            _ => {}
        });
        let set = found.and_then(|access| self.begin_set(&access, region, level, window, mirrored));
        let Some((set, pieces)) = set else {
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
        let steps = self.set_looplet(steps, id, &Looplet::Pieces(pieces));
        self.region(region, steps);
    }

    fn begin_set(
        &mut self,
        access: &Access,
        region: Region,
        level: usize,
        window: Window,
        mirrored: bool,
    ) -> Option<(FiberSet, Pieces)> {
        let Source::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(level)?);
        let scale = scale_of(&sub.part);
        let name = format!("{}{level}", self.program.tensor(tensor).name);
        let (zero, never) = (self.b.int(0), self.b.int(NEVER));
        let begins = self.b.variable_from("nearest", never);
        let groups = self.lies_below_group(tensor, level);
        let at = Located { position: zero, present: None, group_stop: groups.then_some(zero) };
        let (_, body) = unthunked(self.along_level(tensor, level, at, scale, mirrored)?);
        let single = matches!(body, Looplet::Stepper(_));
        let ends = (!single).then(|| self.b.variable_from("nearest_end", never));
        let number = Elem::Value(DType::I64);
        let keeps = matches!(body, Looplet::Stepper(_) | Looplet::Pieces(_));
        let cursors = keeps.then(|| self.b.buffer(format!("{name}_cursors"), number, Role::Scratch));
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
                self.each_of(&set.clone(), |this, set, slot, looplet| this.begin_fiber(set, slot, &looplet, begin));
            }
            Reached::Scattered => {
                let parents = self.b.buffer(format!("{name}_parents"), number, Role::Scratch);
                let groups = groups.then(|| self.b.buffer(format!("{name}_stops"), number, Role::Scratch));
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
                    // Nothing is looked at where there is nothing.
                    Some(cond) => self.b.emit(Stmt::If { cond, then: block, otherwise: Vec::new() }),
                    None => block.into_iter().for_each(|stmt| self.b.emit(stmt)),
                }
                let (first, count) = (self.b.get(first), self.b.get(count));
                (set.first, set.count) = (self.b.name("first", first), self.b.name("count", count));
            }
        }
        let extents = Extents::Fibers { set: self.fiber_sets.len(), first: begins, end: ends };
        let pieces = Pieces {
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
        Some((set, pieces))
    }

    /// Adds the fiber below a position to a set.
    fn add_fiber(&mut self, set: &FiberSet, (count, first): (VarId, VarId), at: Located, begin: ExprId) {
        let Some((parents, groups)) = set.parents else { return };
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let (number, base) = (self.b.get(count), self.b.get(first));
        let position = self.b.name("below", at.position);
        // Positions go up, so that the first is the least.
        let none = self.b.call_in(Op::Lt, DType::I64, &[base, zero]);
        let then = self.b.block(|b| b.assign(first, position));
        self.b.emit(Stmt::If { cond: none, then, otherwise: Vec::new() });
        let after = self.b.add(number, one);
        self.b.emit(Stmt::Grow { buffer: parents, len: after, fill: None });
        self.b.store(parents, number, position);
        if let (Some(groups), Some(stop)) = (groups, at.group_stop) {
            self.b.emit(Stmt::Grow { buffer: groups, len: after, fill: None });
            self.b.store(groups, number, stop);
        }
        let slot = self.b.sub(position, base);
        if let Some(cursors) = set.cursors {
            let room = self.b.add(slot, one);
            self.b.emit(Stmt::Grow { buffer: cursors, len: room, fill: None });
        }
        let at = Located { position, present: None, group_stop: at.group_stop };
        if let Some(looplet) = self.along_level(set.tensor, set.level, at, set.scale, set.mirrored) {
            let looplet = self.prepared(looplet);
            self.begin_fiber(set, slot, &looplet, begin);
        }
        self.b.assign(count, after);
    }

    /// Brings the cursor of a fiber to where windows begin.
    fn begin_fiber(&mut self, set: &FiberSet, slot: ExprId, looplet: &Looplet, begin: ExprId) {
        let from = match looplet {
            Looplet::Stepper(list) => list.seek(&mut self.b, "from", list.start, begin),
            Looplet::Pieces(pieces) => pieces.seek(&mut self.b, "from", pieces.start, begin),
            _ => begin,
        };
        let from = self.b.name("from", from);
        self.keep(set, slot, looplet, from, begin);
    }

    /// A loop over the fibers of a set: each with the place of its cursor, and with what it holds.
    fn each_of(&mut self, set: &FiberSet, emit: impl FnOnce(&mut Self, &FiberSet, ExprId, Looplet)) {
        let var = self.b.new_var("fiber", DType::I64, false);
        let number = self.b.get(var);
        let body = self.in_block(|this| {
            let (slot, at) = match set.parents {
                None => {
                    let position = this.b.add(set.first, number);
                    (number, Located { position, present: None, group_stop: None })
                }
                Some((parents, groups)) => {
                    let position = this.b.load(parents, number);
                    let position = this.b.name("below", position);
                    let group_stop = groups.map(|groups| this.b.load(groups, number));
                    (this.b.sub(position, set.first), Located { position, present: None, group_stop })
                }
            };
            let looplet = this.along_level(set.tensor, set.level, at, set.scale, set.mirrored);
            if let Some(looplet) = looplet {
                let looplet = this.prepared(looplet);
                emit(this, set, slot, looplet);
            }
        });
        let start = self.b.int(0);
        self.b.emit(Stmt::For { var, start, stop: set.count, body, hint: Hint::default() });
    }

    /// Emits what has to be set up, and gives what is inside.
    fn prepared(&mut self, looplet: Looplet) -> Looplet {
        let (preamble, body) = unthunked(looplet);
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        body
    }

    /// Brings all fibers of a set to their first pieces that end behind a coordinate; `far`, if that may be more than the next ones.
    fn pass(&mut self, set: usize, coordinate: ExprId, far: bool) {
        let Some(set) = self.fiber_sets.get(set).cloned() else { return };
        let passed = self.b.name("passed", coordinate);
        let never = self.b.int(NEVER);
        self.b.assign(set.begins, never);
        if let Some(ends) = set.ends {
            self.b.assign(ends, never);
        }
        self.each_of(&set, |this, set, slot, looplet| {
            let Some(cursors) = set.cursors else { return this.keep(set, slot, &looplet, passed, passed) };
            let here = this.b.load(cursors, slot);
            let here = this.signed(set, here);
            let here = this.b.name("here", here);
            let one = this.b.int(1);
            let grouped = matches!(&looplet, Looplet::Stepper(list) if list.grouped);
            let after = if far || grouped {
                let cursor = this.b.variable_from("q", here);
                let q = this.b.get(cursor);
                let cond = this.is_passed(&looplet, q, passed);
                let next = this.b.add(q, one);
                this.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: cursor, value: next }] });
                q
            } else {
                let cond = this.is_passed(&looplet, here, passed);
                let next = this.b.add(here, one);
                this.b.call_in(Op::Select, DType::I64, &[cond, next, here])
            };
            let after = this.b.name("after", after);
            this.keep(set, slot, &looplet, after, passed);
        });
    }

    /// Whether there is a piece of this number in a fiber, and it ends by a coordinate.
    fn is_passed(&mut self, looplet: &Looplet, q: ExprId, coordinate: ExprId) -> ExprId {
        let Some(stretch) = self.stretch(looplet, q, coordinate) else { return self.b.constant(false.into()) };
        let behind = self.b.call_in(Op::Le, DType::I64, &[stretch.end, coordinate]);
        self.b.call_in(Op::And, DType::Bool, &[stretch.there, behind])
    }

    /// Keeps where a fiber stands; the nearest piece may be its own.
    fn keep(&mut self, set: &FiberSet, slot: ExprId, looplet: &Looplet, q: ExprId, passed: ExprId) {
        if let Some(cursors) = set.cursors {
            let stored = self.signed(set, q);
            self.b.store(cursors, slot, stored);
        }
        let Some(Stretch { there, first, end }) = self.stretch(looplet, q, passed) else { return };
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

    /// Cursors are kept as they are stored, whatever their sign is along the loop.
    fn signed(&mut self, set: &FiberSet, q: ExprId) -> ExprId {
        if !set.mirrored {
            return q;
        }
        let zero = self.b.int(0);
        self.b.sub(zero, q)
    }

    /// The piece of a number in a fiber of which nothing before a coordinate matters.
    fn stretch(&mut self, looplet: &Looplet, q: ExprId, passed: ExprId) -> Option<Stretch> {
        let one = self.b.int(1);
        Some(match looplet {
            Looplet::Stepper(list) => {
                let there = self.b.call_in(Op::Lt, DType::I64, &[q, list.stop]);
                let first = list.coordinate(&mut self.b, q);
                Stretch { there, first, end: self.b.add(first, one) }
            }
            Looplet::Pieces(pieces) => {
                let there = pieces.has(&mut self.b, q);
                let piece = pieces.piece(&mut self.b, q);
                Stretch { there, first: piece.first.unwrap_or(passed), end: piece.end }
            }
            other => {
                let (first, end) = stretch_of(&mut self.b, other)?;
                let last = self.b.call_in(Op::Max, DType::I64, &[first, passed]);
                Stretch { there: self.b.call_in(Op::Lt, DType::I64, &[last, end]), first, end }
            }
        })
    }

    // As pieces

    /// Done with the piece that a set is at, if it ends by a coordinate of the loop: what reaches beyond a region belongs to the
    /// next one, too.
    pub(super) fn pass_set(&mut self, pieces: &Pieces, end: ExprId, stop: ExprId) {
        let zero = self.b.int(0);
        let stored = Pieces { window: None, ..pieces.clone() }.piece(&mut self.b, zero).end;
        let Some((set, made_for)) = pieces.set().and_then(|set| Some((set, self.fiber_sets.get(set)?.stop))) else {
            return;
        };
        // Nobody asks for what lies behind the region that the set was made for.
        if stop == made_for {
            return self.pass(set, stored, false);
        }
        let cond = self.b.call_in(Op::Le, DType::I64, &[end, stop]);
        let then = self.in_block(|this| this.pass(set, stored, false));
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// Brings a set to its first piece that windows from an index on meet.
    pub(super) fn seek_set(&mut self, pieces: &Pieces, index: ExprId) {
        let (Some(set), Some(window)) = (pieces.set(), pieces.window) else { return };
        let begin = window.begin(&mut self.b, index);
        let begin = self.b.name("begin", begin);
        let zero = self.b.int(0);
        let end = Pieces { window: None, ..pieces.clone() }.piece(&mut self.b, zero).end;
        let cond = self.b.call_in(Op::Le, DType::I64, &[end, begin]);
        let then = self.in_block(|this| this.pass(set, begin, true));
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// What windows hold that meet the piece that a set is at: inner loops go on from the cursors.
    pub(super) fn enter_set(&mut self, steps: Vec<Step>, id: u32, set: usize, present: Option<ExprId>) -> Vec<Step> {
        let Some(FiberSet { level, cursors, first, mirrored, loops, .. }) = self.fiber_sets.get(set).cloned() else {
            return steps;
        };
        map_steps(steps, &mut |node| match node {
            Node::Access(mut access) if access.id == id => {
                access.id = access.own;
                access.looplet = None;
                access.fibers.retain(|fibers| fibers.level != level);
                access.fibers.extend(cursors.map(|cursors| Fibers { level, cursors, first, mirrored, loops }));
                access.present = self.both(access.present, present);
                access.safe &= present.is_none();
                Node::Access(access)
            }
            other => other,
        })
    }
}

/// How many coordinates of a subscript one stored coordinate stands for.
pub(super) fn scale_of(part: &Part) -> u64 {
    match part {
        Part::Quotient(by) => *by,
        _ => 1,
    }
}

/// What has to be set up, and what is inside.
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
