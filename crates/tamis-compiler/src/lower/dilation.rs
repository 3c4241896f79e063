//! Windows without entries: of `a*i + b*k + c` with `b > 1`, only every `b`-th coordinate belongs to
//! the window of `i` (dilation), and the window of a fiber that a loop just entered may hold nothing.
//!
//! A window is located by the contiguous range of coordinates that it covers, so a window may be
//! reached that stores elements only between its own coordinates. At each `i` the lowerer skips the
//! elements that no inner loop reaches. If none remains, it skips the body; otherwise the inner
//! loops continue from the first element in the window, so each element is visited once. Where a
//! loop resolves an outer level, the body is skipped if the fiber that it enters stores nothing in
//! its window. Coordinate lists, segments and sets of fibers are narrowed this way, if nothing
//! happens without them; `runs` keep their range.

use super::Lowerer;
use super::fiber_sets::{scale_of, unthunked};
use super::node::{FiberCursors, Node, PartialAccess, Projection, ReadSource, Step, Sub, map_steps, visit_steps};
use super::open_windows::single_range;
use super::run_algebra::depends;
use super::simplify;
use super::window::OpenFootprint;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Stmt, VarId};
use tamis_ir::looplet::{Edge, Located, Looplet, Payload};
use tamis_ir::program::{IndexId, TensorId};

/// The coordinates that an inner loop adds to the start of a window: `count` multiples of `by`.
#[derive(Clone, Copy)]
struct Dilation {
    by: i64,
    count: ExprId,
}

/// The coordinates of a window: those from `low` to `last` that the dilations of the inner loops
/// reach; all of them if there are none.
#[derive(Clone)]
pub(super) struct Dilated {
    low: ExprId,
    last: ExprId,
    dilations: Vec<Dilation>,
}

impl Dilated {
    /// True if the window has all coordinates of its range.
    pub(super) fn is_contiguous(&self) -> bool {
        self.dilations.is_empty()
    }
}

impl Lowerer<'_> {
    /// Moves the windows of some accesses at a loop's index to their first element that inner loops
    /// reach. Gives a condition that there is one, unless it always holds or does not matter.
    pub(super) fn narrow_windows(
        &mut self,
        index: IndexId,
        steps: Vec<Step>,
        chosen: &dyn Fn(&PartialAccess) -> bool,
    ) -> (Vec<Step>, Option<ExprId>) {
        let mut found: Vec<PartialAccess> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && matches!(access.source, ReadSource::Tensor(..))
                && chosen(access)
                && found.iter().all(|other| other.id != access.id)
            {
                found.push((**access).clone());
            }
        });
        let (mut steps, mut all) = (steps, None);
        for access in found {
            if !self.is_idle_outside(&steps, &access) {
                continue;
            }
            if let Some((edge, some)) = self.first_reached(index, &access) {
                if let Some(edge) = edge {
                    steps = map_steps(steps, &mut |node| match node {
                        Node::Access(mut other) if other.id == access.id && other.window == access.window => {
                            other.window = other.window.map(|(_, loops)| (edge, loops));
                            Node::Access(other)
                        }
                        other => other,
                    });
                }
                all = self.both(all, Some(some));
            }
            for cursors in access.fibers.clone() {
                let some = self.any_fiber_reached(index, &access, &cursors);
                all = self.both(all, some);
            }
        }
        (steps, all)
    }

    /// True if nothing happens where an access holds its fill value, nor where it is out of bounds.
    fn is_idle_outside(&mut self, steps: &[Step], access: &PartialAccess) -> bool {
        let ReadSource::Tensor(_, subs) = &access.source else { return false };
        let permissive = subs.iter().any(|sub| sub.permissive);
        self.idle_without(steps, &[access.id])
            && (!permissive || {
                let missing = self.replace(steps.to_vec(), access.id, &Payload::Missing, None);
                simplify::steps(missing, self.policy).is_empty()
            })
    }

    /// The first element of a window that inner loops reach, as its edge if it is known, and a
    /// condition that there is one. None if every window holds one.
    fn first_reached(&mut self, index: IndexId, access: &PartialAccess) -> Option<(Option<Edge>, ExprId)> {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return None };
        let (tensor, sub) = (*tensor, subs.get(access.level)?);
        if !(sub.inside || sub.permissive) || self.is_nonordered(tensor, access.level) {
            return None;
        }
        // The window of a fiber that this loop entered may be empty; one that this loop reduced is
        // not, unless it is dilated.
        let reduced = depends(&sub.node, index);
        let entered = access.level > 0 && depends(&subs[access.level - 1].node, index) && !reduced;
        // Windows that no loop has begun are not located yet.
        if !(reduced || entered && self.entered(access) > 0) {
            return None;
        }
        let window = self.dilated(sub, index)?;
        if reduced && window.is_contiguous() {
            return None;
        }
        let window = self.named(&window);
        let position = access.position.unwrap_or(self.b.int(0));
        let at = Located { position, present: access.present, group_stop: access.group_stop };
        match access.window {
            Some((edge, loops)) if loops == self.entered(access) => {
                let mirrored = matches!(edge, Edge::To(_));
                let looplet = self.narrowed_structure(tensor, access.level, at, sub, mirrored)?;
                let (from, zero) = match edge {
                    Edge::From(at) => (at, self.b.int(0)),
                    Edge::To(at) => {
                        let zero = self.b.int(0);
                        (self.b.sub(zero, at), zero)
                    }
                };
                let window = if mirrored { self.mirrored_window(&window) } else { window };
                let (first, some) = self.skip(&looplet, from, access.present, &window)?;
                let edge = if mirrored { Edge::To(self.b.sub(zero, first)) } else { Edge::From(first) };
                Some((Some(edge), some))
            }
            None if entered => {
                // A fiber with a single range has no cursor.
                let at = Located { present: None, ..at };
                if access.present.is_some() {
                    return None;
                }
                let looplet = self.fiber(tensor, access.level, at, position, |row, fiber| (row.unfurl)(fiber))?;
                let (preamble, body) = unthunked(looplet.affine_map(&mut self.b, scale_of(&sub.projection), None)?);
                let (first, end) = single_range(&mut self.b, &body)?;
                preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
                Some((None, self.meets(first, end, &window)))
            }
            _ => None,
        }
    }

    /// The coordinate list or the segments of a level along its subscript, after their preamble.
    fn narrowed_structure(
        &mut self,
        tensor: TensorId,
        level: usize,
        at: Located,
        sub: &Sub,
        mirrored: bool,
    ) -> Option<Looplet> {
        if !matches!(sub.projection, Projection::Whole | Projection::Quotient(_)) {
            return None;
        }
        let looplet = self.level_structure(tensor, level, at, scale_of(&sub.projection), mirrored)?;
        let (preamble, body) = unthunked(looplet);
        let known = match &body {
            Looplet::Stepper(_) => true,
            Looplet::Segments(segments) => segments.set().is_none() && !segments.consecutive(),
            _ => false,
        };
        if !known {
            return None;
        }
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        Some(body)
    }

    /// A condition that some fiber of a set stores an element that inner loops reach, in the
    /// dilated windows of a loop. None if every window holds one.
    fn any_fiber_reached(&mut self, index: IndexId, access: &PartialAccess, known: &FiberCursors) -> Option<ExprId> {
        let ReadSource::Tensor(_, subs) = &access.source else { return None };
        let sub = subs.get(known.level)?.clone();
        if !depends(&sub.node, index) || known.loops != self.entered_at(access, known.level) {
            return None;
        }
        let window = self.dilated(&sub, index).filter(|window| !window.is_contiguous())?;
        let window = self.named(&window);
        let window = if known.mirrored { self.mirrored_window(&window) } else { window };
        let set = self.fiber_sets.iter().find(|set| set.has_cursors(known.cursors))?.clone();
        let no = self.b.constant(Value::Bool(false));
        let any = self.b.variable_from("some", no);
        let none = {
            let any = self.b.get(any);
            self.b.call_in(Op::Not, DType::Bool, &[any])
        };
        let body = |this: &mut Self| {
            this.each_of(&set, |this, set, offset, looplet| {
                let then = this.in_block(|this| {
                    let from = this.cursor_of(set, known.cursors, offset);
                    if let Some((_, some)) = this.skip(&looplet, from, None, &window) {
                        this.b.assign(any, some);
                    }
                });
                this.b.emit(Stmt::If { cond: none, then, otherwise: Vec::new() });
            });
        };
        match access.present {
            Some(cond) => {
                let then = self.in_block(body);
                self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
            None => body(self),
        }
        Some(self.b.get(any))
    }

    /// The coordinates that a subscript covers inside of a loop; none if no inner loop moves it.
    pub(super) fn dilated(&mut self, sub: &Sub, index: IndexId) -> Option<Dilated> {
        let inner = self.open_index(sub, index)?;
        let OpenFootprint { terms, low, last } = self.open_footprint(&sub.node, index, inner)?;
        let dilations = self.dilations(&terms)?;
        Some(Dilated { low, last, dilations })
    }

    /// The same window, with its bounds computed once.
    fn named(&mut self, window: &Dilated) -> Dilated {
        let (low, last) = (self.b.name("low", window.low), self.b.name("last", window.last));
        Dilated { low, last, ..window.clone() }
    }

    /// The dilations of inner loops, the smallest first; none if they reach every coordinate.
    fn dilations(&mut self, open: &[(IndexId, i64)]) -> Option<Vec<Dilation>> {
        let mut open = open.to_vec();
        open.sort_by_key(|(_, by)| by.unsigned_abs());
        if open.iter().all(|(_, by)| by.unsigned_abs() < 2) {
            return Some(Vec::new());
        }
        let one = self.b.int(1);
        let mut dilations = Vec::new();
        // The number of coordinates that are reached without a gap, if it is known.
        let mut reach = Some(1i64);
        for (other, by) in open {
            let (start, stop) = self.extent_before(other)?;
            let length = self.b.sub(stop, start);
            let count = self.b.call_in(Op::Max, DType::I64, &[length, one]);
            let by = i64::try_from(by.unsigned_abs()).ok()?;
            if count == one {
                continue;
            }
            let known = self.b.as_constant(count).and_then(|count| count.as_i64());
            reach = reach
                .zip(known)
                .filter(|(reach, known)| by <= *reach || *known == 1)
                .and_then(|(reach, known)| by.checked_mul(known - 1)?.checked_add(reach));
            dilations.push(Dilation { by, count });
        }
        Some(if reach.is_some() { Vec::new() } else { dilations })
    }

    /// The same window along negated coordinates.
    fn mirrored_window(&mut self, window: &Dilated) -> Dilated {
        let zero = self.b.int(0);
        Dilated { low: self.b.sub(zero, window.last), last: self.b.sub(zero, window.low), ..window.clone() }
    }

    /// Skips the segments of a fiber, from a position on, that a window does not reach. Gives the
    /// first other one, and a condition that there is one.
    fn skip(
        &mut self,
        looplet: &Looplet,
        from: ExprId,
        present: Option<ExprId>,
        window: &Dilated,
    ) -> Option<(ExprId, ExprId)> {
        let from = match (present, looplet) {
            (Some(cond), Looplet::Stepper(list)) => self.b.call_in(Op::Select, DType::I64, &[cond, from, list.stop]),
            (Some(cond), Looplet::Segments(s)) => self.b.call_in(Op::Select, DType::I64, &[cond, from, s.stop]),
            _ => from,
        };
        let cursor = self.b.variable_from("reached", from);
        let (at, one) = (self.b.get(cursor), self.b.int(1));
        let range = self.segment_range(looplet, at, window.low)?;
        let within = self.b.call_in(Op::Le, DType::I64, &[range.first, window.last]);
        let alive = self.b.call_in(Op::And, DType::Bool, &[range.there, within]);
        let next = self.b.add(at, one);
        let step = Stmt::Assign { var: cursor, value: next };
        match &window.dilations[..] {
            [] => {}
            [single] => {
                let hit = self.reaches((range.first, range.end), window.low, *single, false);
                let between = self.b.call_in(Op::Not, DType::Bool, &[hit]);
                let cond = self.b.call_in(Op::And, DType::Bool, &[alive, between]);
                self.b.emit(Stmt::While { cond, body: vec![step] });
            }
            [first, others @ ..] => {
                let yes = self.b.constant(Value::Bool(true));
                let missed = self.b.variable_from("missed", yes);
                let still = self.b.get(missed);
                let cond = self.b.call_in(Op::And, DType::Bool, &[alive, still]);
                let body = self.in_block(|this| {
                    this.search_iterations((range.first, range.end), window.low, *first, others, missed);
                    this.b.emit(Stmt::If { cond: still, then: vec![step], otherwise: Vec::new() });
                });
                self.b.emit(Stmt::While { cond, body });
            }
        }
        let some = self.b.name("some", alive);
        Some((at, some))
    }

    /// A condition that a contiguous range has a coordinate in a window.
    pub(super) fn meets(&mut self, first: ExprId, end: ExprId, window: &Dilated) -> ExprId {
        let starts = self.b.call_in(Op::Le, DType::I64, &[first, window.last]);
        let ends = self.b.call_in(Op::Gt, DType::I64, &[end, window.low]);
        let filled = self.b.call_in(Op::Lt, DType::I64, &[first, end]);
        let overlap = self.b.call_in(Op::And, DType::Bool, &[starts, ends]);
        let overlap = self.b.call_in(Op::And, DType::Bool, &[overlap, filled]);
        let [smallest, others @ ..] = &window.dilations[..] else { return overlap };
        if others.is_empty() {
            let hit = self.reaches((first, end), window.low, *smallest, true);
            return self.b.call_in(Op::And, DType::Bool, &[overlap, hit]);
        }
        let missed = self.b.variable("missed", Value::Bool(true));
        let then = self.in_block(|this| this.search_iterations((first, end), window.low, *smallest, others, missed));
        self.b.emit(Stmt::If { cond: overlap, then, otherwise: Vec::new() });
        let missed = self.b.get(missed);
        self.b.call_in(Op::Not, DType::Bool, &[missed])
    }

    /// Loops over the iterations of all dilations but the smallest, until that one reaches a range;
    /// then `missed` becomes false. Only iterations from which the other dilations can reach the
    /// range are tried.
    fn search_iterations(
        &mut self,
        range: (ExprId, ExprId),
        low: ExprId,
        smallest: Dilation,
        others: &[Dilation],
        missed: VarId,
    ) {
        let Some((outer, inner)) = others.split_last() else {
            let hit = self.reaches(range, low, smallest, true);
            let no = self.b.constant(Value::Bool(false));
            let body = vec![Stmt::Assign { var: missed, value: no }];
            return self.b.emit(Stmt::If { cond: hit, then: body, otherwise: Vec::new() });
        };
        let (zero, one, by) = (self.b.int(0), self.b.int(1), self.b.int(outer.by));
        // The distance from which the inner dilations reach the range.
        let mut reach = zero;
        for dilation in inner.iter().chain([&smallest]) {
            let most = self.b.sub(dilation.count, one);
            reach = self.plus_times(reach, most, dilation.by);
        }
        let (first, end) = range;
        let after = self.b.sub(end, low);
        let before = self.b.sub(first, low);
        let before = self.b.sub(before, reach);
        let less = self.b.int(outer.by - 1);
        let from = self.b.add(before, less);
        let from = self.b.call_in(Op::FloorDiv, DType::I64, &[from, by]);
        let from = self.b.call_in(Op::Max, DType::I64, &[from, zero]);
        let until = self.b.add(after, less);
        let until = self.b.call_in(Op::FloorDiv, DType::I64, &[until, by]);
        let until = self.b.call_in(Op::Min, DType::I64, &[until, outer.count]);
        let until = self.b.name("until", until);
        let iteration = self.b.variable_from("t", from);
        let (t, still) = (self.b.get(iteration), self.b.get(missed));
        let more = self.b.call_in(Op::Lt, DType::I64, &[t, until]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[still, more]);
        let body = self.in_block(|this| {
            let moved = this.plus_times(low, t, outer.by);
            let moved = this.b.name("from", moved);
            this.search_iterations(range, moved, smallest, inner, missed);
            let next = this.b.add(t, one);
            this.b.assign(iteration, next);
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// A condition that one of the multiples of a dilation after `low` lies in a range that is not
    /// empty; `counted`: only as many as there are iterations.
    fn reaches(&mut self, (first, end): (ExprId, ExprId), low: ExprId, dilation: Dilation, counted: bool) -> ExprId {
        let zero = self.b.int(0);
        let distance = self.b.sub(first, low);
        let distance = self.b.call_in(Op::Max, DType::I64, &[distance, zero]);
        let (by, less) = (self.b.int(dilation.by), self.b.int(dilation.by - 1));
        let up = self.b.add(distance, less);
        let times = self.b.call_in(Op::FloorDiv, DType::I64, &[up, by]);
        let up = self.b.call_in(Op::Mul, DType::I64, &[times, by]);
        let coordinate = self.b.add(low, up);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[coordinate, end]);
        if !counted {
            return inside;
        }
        let exists = self.b.call_in(Op::Lt, DType::I64, &[times, dilation.count]);
        self.b.call_in(Op::And, DType::Bool, &[inside, exists])
    }
}
