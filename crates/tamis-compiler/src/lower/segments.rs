//! Segments: co-iteration of contiguous ranges of coordinates, such as runs and blocks.
//!
//! - Required coordinate lists lead: the lowerer looks segments up at their coordinates.
//! - One list of segments, and no work in the gaps (or no gaps): a loop over segments.
//! - Some required segments: their intersection, with the other structures inside of it.
//! - No required segments: their union. The region is split at every start and end of a segment.
//!
//! Each subregion is lowered as a region of its own, in which the contents of a segment are
//! constant or lie in one block.

use super::Lowerer;
use super::node::{Node, PartialAccess, ReadSource, Step, map_steps, visit_steps};
use super::region::{Presence, Region};
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId};
use tamis_ir::looplet::{Extents, Looplet, Payload, Phase, Segments, Stepper};

/// Segments with their cursor.
pub(super) struct SegmentCursor {
    pub(super) id: u32,
    pub(super) segments: Segments,
    pub(super) position: VarId,
    /// Segments that start at or after this coordinate are not visited.
    pub(super) until: Option<ExprId>,
}

/// Cursors that may be at the same segment.
struct CoincidingCursors<'a> {
    all: &'a [usize],
    /// The outermost cursors, with the condition that they are at two adjacent segments, so that
    /// all others are at one of these.
    between: Option<((usize, usize), ExprId)>,
}

/// A structure inside of the subregions that others split off, with its cursor.
pub(super) enum Follower {
    List(u32, Stepper, VarId),
    Segments(u32, Segments, VarId),
}

impl Lowerer<'_> {
    pub(super) fn segments(&mut self, region: Region, steps: Vec<Step>) {
        let (found, lists) = (segments_in(&steps), steppers_in(&steps));
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let leading: Vec<(u32, Stepper)> =
            lists.iter().filter(|(id, _)| self.idle_without(&steps, &[*id])).cloned().collect();
        if !leading.is_empty() {
            return self.led_by_lists(region, &found, &leading, steps);
        }
        let gaps = self.without(&steps, &ids);
        self.conditional += 1;
        let needed: Vec<u32> = ids.iter().copied().filter(|id| self.idle_without(&steps, &[*id])).collect();
        match &found[..] {
            [(id, only)] if gaps.is_empty() || only.covers => self.each_segment(region, *id, only, steps),
            _ if needed.is_empty() => {
                // Coordinate lists with work in the gaps take part in the union.
                let both = [&ids[..], &lists.iter().map(|(id, _)| *id).collect::<Vec<_>>()].concat();
                let points = lists.iter().filter_map(|(id, list)| Some((*id, as_segments(list)?)));
                let all: Vec<(u32, Segments)> = found.iter().cloned().chain(points).collect();
                let split = all.len() == both.len()
                    && match gaps.is_empty() {
                        true => self.lists_bound_runs(&steps, &found, &lists),
                        false => self.splits_into_constant_gaps(region, &steps, &both),
                    };
                if split {
                    self.record_ordered_walk(region, &lists, &steps);
                }
                self.union_of_segments(region, if split { all } else { found }, steps);
            }
            _ if needed.len() == found.len()
                && let Some(common_runs) = self.common_runs(&steps, &found) =>
            {
                self.each_common_run(region, &ids, &common_runs, steps);
            }
            _ => {
                let lead = found.into_iter().filter(|(id, _)| needed.contains(id)).collect();
                self.intersect_segments(region, lead, steps);
            }
        }
        self.conditional -= 1;
    }

    /// Required coordinate lists lead, and segments are looked up at their coordinates. Windows
    /// cannot be looked up at one coordinate: windows that the lists meet are intersected with
    /// them.
    fn led_by_lists(&mut self, region: Region, found: &[(u32, Segments)], lists: &[(u32, Stepper)], steps: Vec<Step>) {
        let is_open = Segments::overlapping;
        let points: Option<Vec<(u32, Segments)>> =
            lists.iter().map(|(id, list)| Some((*id, as_segments(list)?))).collect();
        let windows: Vec<(u32, Segments)> = found.iter().filter(|(_, segments)| is_open(segments)).cloned().collect();
        let lead = points.filter(|_| !windows.is_empty());
        let steps = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) => {
                if let Some((_, segments)) = found.iter().find(|(id, _)| *id == access.id) {
                    match (is_open(segments), &lead) {
                        (true, Some(_)) => {}
                        // Without leading segments, windows are searched for when they are needed.
                        (true, None) => access.looplet = None,
                        // An access that may be out of bounds is resolved with a check.
                        (false, _) if is_windowed(segments) && is_permissive(&access) => access.looplet = None,
                        (false, _) => access.looplet = Some(Looplet::Lookup),
                    }
                }
                Node::Access(access)
            }
            other => other,
        });
        let Some(mut lead) = lead else { return self.region(region, steps) };
        self.record_ordered_walk(region, lists, &steps);
        lead.extend(windows.into_iter().filter(|(id, _)| self.idle_without(&steps, &[*id])));
        self.conditional += 1;
        self.intersect_segments(region, lead, steps);
        self.conditional -= 1;
    }

    /// Splits a region at every coordinate of its lists, if all can be represented as segments.
    pub(super) fn split_at_coordinates(&mut self, region: Region, lists: &[(u32, Stepper)], steps: &[Step]) -> bool {
        let points: Option<Vec<(u32, Segments)>> =
            lists.iter().map(|(id, list)| Some((*id, as_segments(list)?))).collect();
        let Some(points) = points else { return false };
        self.record_ordered_walk(region, lists, steps);
        self.conditional += 1;
        self.union_of_segments(region, points, steps.to_vec());
        self.conditional -= 1;
        true
    }

    /// Records that lists are walked in order.
    fn record_ordered_walk(&mut self, region: Region, lists: &[(u32, Stepper)], steps: &[Step]) {
        let ids: Vec<u32> = lists.iter().map(|(id, _)| *id).collect();
        self.record_walk(region, &ids, false, steps);
    }

    /// A loop over one list of segments.
    fn each_segment(&mut self, region: Region, id: u32, segments: &Segments, steps: Vec<Step>) {
        let exact = region.whole && is_plain(segments);
        let (segments, until) = self.clip_segments(region, segments.clone());
        let segments = &segments;
        let (inner, steps) = self.inner(&[id], steps);
        let keeps = segments.consecutive() || segments.overlapping();
        let from = keeps.then(|| self.b.variable_from("from", region.start));
        // Windows are walked again in inner loops, so a segment may append more than one element.
        let reserved = if is_windowed(segments) || until.is_some() {
            Vec::new()
        } else {
            let most = self.b.sub(segments.stop, segments.start);
            self.reserve_segments(region, &[id], &steps, most)
        };
        let var = self.b.new_var("q", DType::I64, until.is_some());
        let q = self.b.get(var);
        let going = until.map(|until| self.continues_from(segments, q, from, until));
        let body = self.in_block(|this| {
            let segment = segments.segment(&mut this.b, q);
            let before = from.map(|from| this.b.get(from));
            let mut first = match (before, segment.first) {
                (Some(before), Some(first)) => this.b.call_in(Op::Max, DType::I64, &[first, before]),
                (before, first) => before.or(first).unwrap_or(region.start),
            };
            let mut end = segment.end;
            if !exact {
                end = this.b.call_in(Op::Min, DType::I64, &[end, region.stop]);
            }
            if !exact && before.is_none() {
                first = this.b.call_in(Op::Max, DType::I64, &[first, region.start]);
            }
            let (first, end) = (this.b.name("first", first), this.b.name("end", end));
            let subregion = Region { start: first, stop: end, filled: exact, ..region.subregion() };
            let steps = this.enter(steps, id, segments, (q, segment.end), None);
            match segments.point(&mut this.b, q).filter(|_| until.is_some()) {
                // Of several coordinates, at most one is met by a window.
                Some((cond, at)) => {
                    let one = this.b.int(1);
                    let then = this.in_block(|this| {
                        let at = this.b.name("at", at);
                        let stop = this.b.add(at, one);
                        let subregion = Region { start: at, stop, point: true, filled: true, ..subregion };
                        this.subregion(subregion, &inner, steps);
                    });
                    this.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
                }
                None => this.subregion(subregion, &inner, steps),
            }
            if let Some(from) = from {
                this.b.assign(from, end);
            }
            if segments.set().is_some() {
                this.pass_set(segments, segment.end, region.stop);
            }
        });
        self.unreserve(reserved);
        let Some(cond) = going else {
            return self.b.emit(Stmt::For {
                var,
                start: segments.start,
                stop: segments.stop,
                body,
                hint: Hint::default(),
            });
        };
        if segments.set().is_some() {
            return self.b.emit(Stmt::While { cond, body });
        }
        let (one, mut body) = (self.b.int(1), body);
        let next = self.b.add(q, one);
        body.push(Stmt::Assign { var, value: next });
        self.b.emit(Stmt::Let { var, value: segments.start });
        self.b.emit(Stmt::While { cond, body });
    }

    /// True if there is a segment, and it starts before the end.
    fn continues_from(&mut self, segments: &Segments, q: ExprId, from: Option<VarId>, until: ExprId) -> ExprId {
        let more = segments.has(&mut self.b, q);
        let first = match (segments.segment(&mut self.b, q).first, from) {
            (Some(first), None) => first,
            (None, Some(from)) => self.b.get(from),
            (Some(first), Some(from)) => {
                let from = self.b.get(from);
                self.b.call_in(Op::Max, DType::I64, &[first, from])
            }
            (None, None) => return more,
        };
        let inside = self.b.call_in(Op::Lt, DType::I64, &[first, until]);
        self.b.call_in(Op::And, DType::Bool, &[more, inside])
    }

    /// The intersection of several lists of segments.
    fn intersect_segments(&mut self, region: Region, found: Vec<(u32, Segments)>, steps: Vec<Step>) {
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let (inner, steps) = self.inner(&ids, steps);
        let cursors = self.segment_cursors(region, found);
        let keeps = cursors.iter().any(|w| w.segments.consecutive() || w.segments.overlapping());
        let from = keeps.then(|| self.b.variable_from("from", region.start));
        let moving = cursors.iter().any(|cursor| is_windowed(&cursor.segments) || cursor.until.is_some());
        let reserved = if moving {
            Vec::new()
        } else {
            let most = self.lengths(&cursors);
            self.reserve_segments(region, &ids, &steps, most)
        };
        let coinciding = if region.short || moving { Vec::new() } else { self.coinciding(&steps, &cursors) };
        let outer = self.outermost(&steps, &cursors, &coinciding);
        let mut cond = self.b.constant(Value::Bool(true));
        for cursor in &cursors {
            let alive = match cursor.until {
                Some(until) => {
                    let q = self.b.get(cursor.position);
                    self.continues_from(&cursor.segments, q, from, until)
                }
                None => self.has_segment(cursor),
            };
            cond = self.b.call_in(Op::And, DType::Bool, &[cond, alive]);
        }
        let body = self.in_block(|this| {
            let mut firsts: Vec<ExprId> = from.iter().map(|from| this.b.get(*from)).collect();
            let mut ends = Vec::new();
            for cursor in &cursors {
                let q = this.b.get(cursor.position);
                let segment = cursor.segments.segment(&mut this.b, q);
                firsts.extend(segment.first);
                ends.push(this.b.name("end", segment.end));
            }
            let exact = region.whole && cursors.iter().all(|w| is_plain(&w.segments));
            if !exact && from.is_none() {
                firsts.push(region.start);
            }
            let first = this.extreme(Op::Max, firsts, region.start);
            let first = this.b.name("first", first);
            let end = this.extreme(Op::Min, ends.clone(), region.stop);
            // The cursors between the outermost ones do not matter where those two are adjacent.
            let between = outer.map(|(first, last)| {
                let between = this.are_adjacent(&cursors[first], &cursors[last]);
                let asked = |k: &usize| [first, last].contains(k) || !coinciding.contains(k);
                let ends: Vec<ExprId> = (0..ends.len()).filter(asked).map(|k| ends[k]).collect();
                (between, this.extreme(Op::Min, ends, region.stop))
            });
            let end = match between {
                Some((between, further)) => this.b.call_in(Op::Select, DType::I64, &[between, further, end]),
                None => end,
            };
            let between = between.map(|(between, _)| between);
            let end = this.b.name("least", end);
            let clipped = this.b.call_in(Op::Min, DType::I64, &[end, region.stop]);
            let stop = if exact { end } else { clipped };
            let stop = this.b.name("stop", stop);
            let overlapping = this.b.call_in(Op::Lt, DType::I64, &[first, stop]);
            let subregion = Region { start: first, stop, ..region.subregion() };
            let same = CoincidingCursors { all: &coinciding, between: outer.zip(between) };
            let then =
                this.in_block(|this| this.intersection_subregion(subregion, &inner, &cursors, &ends, &same, steps));
            this.b.emit(Stmt::If { cond: overlapping, then, otherwise: Vec::new() });
            for (cursor, segment_end) in cursors.iter().zip(&ends) {
                this.advance_segment(region, cursor, *segment_end, end, first);
            }
            if let Some(from) = from {
                this.b.assign(from, end);
            }
        });
        self.unreserve(reserved);
        self.b.emit(Stmt::While { cond, body });
    }

    /// A subregion in which all cursors have a segment. Where coinciding cursors are at the same
    /// segment, so are the contents.
    fn intersection_subregion(
        &mut self,
        subregion: Region,
        inner: &[Follower],
        cursors: &[SegmentCursor],
        ends: &[ExprId],
        coinciding: &CoincidingCursors,
        steps: Vec<Step>,
    ) {
        let positions: Vec<ExprId> = cursors.iter().map(|cursor| self.b.get(cursor.position)).collect();
        let enter = |this: &mut Self, at: &dyn Fn(usize) -> ExprId| {
            let mut steps = steps.clone();
            for (k, cursor) in cursors.iter().enumerate() {
                steps = this.enter(steps, cursor.id, &cursor.segments, (at(k), ends[k]), None);
            }
            this.subregion(subregion, inner, steps);
        };
        let all = coinciding.all;
        let Some((first, others)) = all.split_first() else { return enter(self, &|k| positions[k]) };
        let mut same = self.b.constant(Value::Bool(true));
        for other in others {
            let equal = self.b.call_in(Op::Eq, DType::I64, &[positions[*first], positions[*other]]);
            same = self.b.call_in(Op::And, DType::Bool, &[same, equal]);
        }
        let copies = self.copies;
        self.copies *= if coinciding.between.is_some() { 3 } else { 2 };
        let mut completeness = self.begin_subregions();
        let then = self.in_block(|this| {
            enter(this, &|k| if all.contains(&k) { positions[*first] } else { positions[k] });
        });
        self.end_subregion(&mut completeness);
        let between = coinciding.between.map(|((outer, last), between)| {
            let then = self.in_block(|this| {
                enter(this, &|k| if all.contains(&k) && k != last { positions[outer] } else { positions[k] });
            });
            self.end_subregion(&mut completeness);
            (between, then)
        });
        let mut otherwise = self.in_block(|this| enter(this, &|k| positions[k]));
        self.end_subregion(&mut completeness);
        self.end_subregions(completeness);
        self.copies = copies;
        if let Some((cond, then)) = between {
            otherwise = vec![Stmt::If { cond, then, otherwise }];
        }
        if !then.is_empty() || !otherwise.is_empty() {
            self.b.emit(Stmt::If { cond: same, then, otherwise });
        }
    }

    /// The union of several lists of segments: a subregion between any two consecutive starts or
    /// ends.
    fn union_of_segments(&mut self, region: Region, found: Vec<(u32, Segments)>, steps: Vec<Step>) {
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let gaps = self.without(&steps, &ids);
        let idle = gaps.is_empty();
        if !idle && !self.collapses(region.index, &gaps) {
            self.warn_of_dense_loop(region, &gaps);
        }
        let separate = !idle && self.separates_gaps(region, &found, &steps, &gaps);
        let (inner, steps) = self.inner(&ids, steps);
        let cursors = self.segment_cursors(region, found);
        let from = self.b.variable_from("from", region.start);
        let start = self.b.get(from);
        let mut cond = self.b.call_in(Op::Lt, DType::I64, &[start, region.stop]);
        if idle {
            let alive = cursors.iter().map(|w| self.has_segment(w)).collect();
            let some = self.any(alive).unwrap_or(cond);
            cond = self.b.call_in(Op::And, DType::Bool, &[cond, some]);
        }
        let body = self.in_block(|this| {
            let here = this.b.get(from);
            let here = this.b.name("here", here);
            let never = this.b.int(i64::MAX);
            let (mut edges, mut ends, mut present) = (Vec::new(), Vec::new(), Vec::new());
            for cursor in &cursors {
                let (alive, q) = (this.has_segment(cursor), this.b.get(cursor.position));
                let segment = cursor.segments.segment(&mut this.b, q);
                let end = this.b.call_in(Op::Select, DType::I64, &[alive, segment.end, never]);
                let end = this.b.name("end", end);
                ends.push(end);
                match segment.first {
                    Some(first) => {
                        let first = this.b.call_in(Op::Select, DType::I64, &[alive, first, never]);
                        let first = this.b.name("first", first);
                        let begun = this.b.call_in(Op::Le, DType::I64, &[first, here]);
                        let begun = this.b.name("present", begun);
                        present.push(Some(begun));
                        edges.push(this.b.call_in(Op::Select, DType::I64, &[begun, end, first]));
                    }
                    None => {
                        present.push((!cursor.segments.covers).then_some(alive));
                        edges.push(end);
                    }
                }
            }
            let next = this.extreme(Op::Min, edges, region.stop);
            let next = this.b.call_in(Op::Min, DType::I64, &[next, region.stop]);
            let next = this.b.name("stop", next);
            // If windows skip coordinates, several may end at the same one.
            let filled = cursors.iter().all(|w| w.segments.window.is_none());
            let subregion = Region { start: here, stop: next, filled, ..region.subregion() };
            let some = present.iter().copied().collect::<Option<Vec<ExprId>>>().and_then(|all| this.any(all));
            let some = some.filter(|_| idle || separate);
            // The contents of some segments vary along the subregion. Where none of these is
            // present, the body may be constant.
            let (moving, constant_part) = match cursors.len() {
                1 => (Vec::new(), None),
                _ => this.constant_part(subregion, &cursors, &ends, &present, &steps),
            };
            let copies = this.copies;
            this.copies *= if separate || constant_part.is_some() { 2 } else { 1 };
            let mut completeness = (separate || constant_part.is_some()).then(|| this.begin_subregions());
            let mut then = this.in_block(|this| {
                let known = this.assumed.len();
                this.assumed.extend(some);
                // A list that splits alone is at its coordinate.
                let point = separate && matches!(&cursors[..], [cursor] if cursor.segments.is_points());
                let subregion = Region { point: subregion.point || point, ..subregion };
                let steps = this.enter_all(steps, &cursors, &ends, &present);
                this.subregion(subregion, &inner, steps);
                this.assumed.truncate(known);
            });
            if let Some(completeness) = &mut completeness {
                this.end_subregion(completeness);
            }
            if let (Some(steps), Some(completeness)) = (constant_part, &mut completeness) {
                let known = this.assumed.len();
                this.assumed.extend(some);
                let otherwise = this.in_block(|this| this.subregion(subregion, &inner, steps));
                this.assumed.truncate(known);
                this.end_subregion(completeness);
                let cond = this.any(moving).unwrap_or_else(|| this.b.constant(Value::Bool(true)));
                then = vec![Stmt::If { cond, then, otherwise }];
            }
            let mut otherwise = Vec::new();
            if let Some(mut completeness) = completeness {
                if separate && some.is_some() {
                    otherwise = this.in_block(|this| this.region(subregion, gaps));
                    this.end_subregion(&mut completeness);
                }
                this.end_subregions(completeness);
            }
            this.copies = copies;
            match some {
                Some(some) => this.b.emit(Stmt::If { cond: some, then, otherwise }),
                None => then.into_iter().for_each(|stmt| this.b.emit(stmt)),
            }
            for (cursor, end) in cursors.iter().zip(&ends) {
                if cursor.segments.set().is_some() {
                    this.pass_set(&cursor.segments, *end, next);
                    continue;
                }
                let (q, one) = (this.b.get(cursor.position), this.b.int(1));
                let done = this.b.call_in(Op::Le, DType::I64, &[*end, next]);
                let after = this.b.add(q, one);
                let after = this.b.call_in(Op::Select, DType::I64, &[done, after, q]);
                this.b.assign(cursor.position, after);
            }
            this.b.assign(from, next);
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// Resolves all segments at their cursors, over a subregion.
    pub(super) fn enter_all(
        &mut self,
        mut steps: Vec<Step>,
        cursors: &[SegmentCursor],
        ends: &[ExprId],
        present: &[Option<ExprId>],
    ) -> Vec<Step> {
        for ((cursor, end), present) in cursors.iter().zip(ends).zip(present) {
            let q = self.b.get(cursor.position);
            steps = self.enter(steps, cursor.id, &cursor.segments, (q, *end), *present);
        }
        steps
    }

    /// A subregion; structures that do not split it are moved to its start first.
    pub(super) fn subregion(&mut self, subregion: Region, inner: &[Follower], steps: Vec<Step>) {
        let mut steps = steps;
        for inner in inner {
            match inner {
                Follower::List(id, list, cursor) => {
                    let start = self.b.get(*cursor);
                    let clipped = self.clip(subregion, Stepper { start, sought: None, ..list.clone() });
                    self.b.assign(*cursor, clipped.stop);
                    steps = self.set_looplet(steps, *id, &Looplet::Stepper(clipped));
                }
                Follower::Segments(id, segments, _) if segments.set().is_some() => {
                    self.seek_set(segments, subregion.start);
                    let looplet = Looplet::Segments(Segments { sought: Some(subregion.start), ..segments.clone() });
                    steps = self.set_looplet(steps, *id, &looplet);
                }
                Follower::Segments(id, segments, cursor) => {
                    let q = self.b.get(*cursor);
                    let start = segments.seek(&mut self.b, "from", q, subregion.start);
                    self.b.assign(*cursor, start);
                    let looplet =
                        Looplet::Segments(Segments { start, sought: Some(subregion.start), ..segments.clone() });
                    steps = self.set_looplet(steps, *id, &looplet);
                }
            }
        }
        self.region(subregion, steps);
    }

    /// The coordinate lists and segments that do not split the region; their cursors advance with
    /// the subregions.
    pub(super) fn inner(&mut self, splitting: &[u32], steps: Vec<Step>) -> (Vec<Follower>, Vec<Step>) {
        let mut inner = Vec::new();
        for (id, list) in steppers_in(&steps).into_iter().filter(|(id, _)| !splitting.contains(id)) {
            let cursor = self.b.variable_from("q", list.start);
            inner.push(Follower::List(id, list, cursor));
        }
        for (id, segments) in segments_in(&steps).into_iter().filter(|(id, _)| !splitting.contains(id)) {
            let cursor = self.b.variable_from("q", segments.start);
            inner.push(Follower::Segments(id, segments, cursor));
        }
        (inner, steps)
    }

    /// Resolves a segment over a subregion of it.
    pub(super) fn enter(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        segments: &Segments,
        (q, end): (ExprId, ExprId),
        present: Option<ExprId>,
    ) -> Vec<Step> {
        if let Some(set) = segments.set() {
            return self.enter_set(steps, id, set, present);
        }
        if segments.overlapping() {
            return self.enter_windows(steps, id, segments, q, present);
        }
        if let Some(child) = segments.child(&mut self.b, q) {
            let presence = present.map(|cond| Presence { cond: Some(cond), group_stop: None, safe: false });
            return self.replace(steps, id, &Payload::Child(child), presence);
        }
        let Some(base) = segments.base(&mut self.b, q, end) else { return steps };
        // An absent block has no base, either.
        let base = match present {
            Some(cond) => {
                let zero = self.b.int(0);
                self.b.call_in(Op::Select, DType::I64, &[cond, base, zero])
            }
            None => base,
        };
        let base = self.b.name("base", base);
        let steps = match present {
            Some(cond) => self.guard(steps, id, cond),
            None => steps,
        };
        self.set_looplet(steps, id, &Looplet::Block { base, stride: segments.stride() })
    }

    /// Resolves windows that meet a segment; windows inside of a run are resolved completely.
    fn enter_windows(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        segments: &Segments,
        q: ExprId,
        present: Option<ExprId>,
    ) -> Vec<Step> {
        let window = Payload::Window(Some(segments.edge(&mut self.b, q)));
        let inside = segments.inside(&mut self.b, q).filter(|_| segments.splits());
        let Some(inside) = inside else {
            let presence = present.map(|cond| Presence { cond: Some(cond), group_stop: None, safe: false });
            return self.replace(steps, id, &window, presence);
        };
        let mut placed = |at: ExprId| match present {
            // An absent segment is not loaded.
            Some(cond) => {
                let never = self.b.int(i64::MAX);
                self.b.call_in(Op::Select, DType::I64, &[cond, at, never])
            }
            None => at,
        };
        let (first, end) = (inside.first.map(&mut placed), placed(inside.end));
        let child = segments.number(&mut self.b, q);
        let mut phases = Vec::new();
        phases.extend(first.map(|first| Phase { stop: Some(first), body: Looplet::Run(window.clone()) }));
        phases.push(Phase { stop: Some(end), body: Looplet::Run(Payload::Child(child)) });
        phases.push(Phase { stop: None, body: Looplet::Run(window) });
        let steps = match present {
            Some(cond) => self.guard(steps, id, cond),
            None => steps,
        };
        self.set_looplet(steps, id, &Looplet::Sequence { phases, inside: false })
    }

    /// The segments that overlap the region; and the coordinate at which to stop, if that is
    /// decided at run time.
    fn clip_segments(&mut self, region: Region, segments: Segments) -> (Segments, Option<ExprId>) {
        let sought = segments.sought == Some(region.start);
        if segments.set().is_some() {
            if !sought {
                self.seek_set(&segments, region.start);
            }
            return (Segments { sought: Some(region.start), ..segments }, Some(region.stop));
        }
        if region.whole && segments.shift.is_none() && segments.window.is_none() && !sought {
            return (segments, None);
        }
        // Comparing is cheaper than searching, where segments are loaded anyway.
        if sought || segments.window.is_some() || segments.mirrored {
            let start = match sought {
                true => segments.start,
                false => segments.seek(&mut self.b, "from", segments.start, region.start),
            };
            return (Segments { start, sought: Some(region.start), ..segments }, Some(region.stop));
        }
        let one = self.b.int(1);
        let start = segments.seek(&mut self.b, "from", segments.start, region.start);
        let last = self.b.sub(region.stop, one);
        let last = segments.seek(&mut self.b, "to", start, last);
        // The segment in which the region ends belongs to it, if there is one.
        let after = self.b.add(last, one);
        let stop = self.b.call_in(Op::Min, DType::I64, &[after, segments.stop]);
        let stop = self.b.name("stop", stop);
        (Segments { start, stop, ..segments }, None)
    }

    /// Cursors at the first segments of the region.
    fn segment_cursors(&mut self, region: Region, found: Vec<(u32, Segments)>) -> Vec<SegmentCursor> {
        let mut cursors = Vec::new();
        for (id, segments) in found {
            let (segments, until) = self.clip_segments(region, segments);
            let position = self.b.variable_from("q", segments.start);
            cursors.push(SegmentCursor { id, segments, position, until });
        }
        cursors
    }

    fn has_segment(&mut self, cursor: &SegmentCursor) -> ExprId {
        let q = self.b.get(cursor.position);
        cursor.segments.has(&mut self.b, q)
    }

    /// Advances past a segment that ends at or before `stop`; by search, if the cursor leads.
    fn advance_segment(&mut self, region: Region, cursor: &SegmentCursor, end: ExprId, stop: ExprId, first: ExprId) {
        if cursor.segments.set().is_some() {
            let stop = self.b.call_in(Op::Min, DType::I64, &[stop, region.stop]);
            return self.pass_set(&cursor.segments, end, stop);
        }
        let (q, one) = (self.b.get(cursor.position), self.b.int(1));
        let after = if cursor.segments.leads {
            // No intersection starts before the latest start.
            let behind = self.b.call_in(Op::Max, DType::I64, &[stop, first]);
            let at = cursor.segments.seek(&mut self.b, "next", q, behind);
            return self.b.assign(cursor.position, at);
        } else {
            self.b.add(q, one)
        };
        let done = self.b.call_in(Op::Le, DType::I64, &[end, stop]);
        let after = self.b.call_in(Op::Select, DType::I64, &[done, after, q]);
        self.b.assign(cursor.position, after);
    }

    fn extreme(&mut self, op: Op, values: Vec<ExprId>, none: ExprId) -> ExprId {
        values.into_iter().reduce(|a, b| self.b.call_in(op, DType::I64, &[a, b])).unwrap_or(none)
    }
}

/// True if segments never extend beyond the dimension.
pub(super) fn is_plain(segments: &Segments) -> bool {
    segments.scale == 1 && segments.shift.is_none() && segments.window.is_none()
}

/// True if segments are read through a window.
fn is_windowed(segments: &Segments) -> bool {
    segments.window.is_some() || segments.sought.is_some()
}

fn is_permissive(access: &PartialAccess) -> bool {
    matches!(&access.source, ReadSource::Tensor(_, subs) if subs.get(access.level).is_some_and(|sub| sub.permissive))
}

fn segments_in(steps: &[Step]) -> Vec<(u32, Segments)> {
    let mut found: Vec<(u32, Segments)> = Vec::new();
    visit_steps(steps, &mut |node| {
        if let Node::Access(access) = node
            && let Some(Looplet::Segments(segments)) = &access.looplet
            && found.iter().all(|(id, _)| *id != access.id)
        {
            found.push((access.id, segments.clone()));
        }
    });
    found
}

fn steppers_in(steps: &[Step]) -> Vec<(u32, Stepper)> {
    let mut found: Vec<(u32, Stepper)> = Vec::new();
    visit_steps(steps, &mut |node| {
        if let Node::Access(access) = node
            && let Some(Looplet::Stepper(list)) = &access.looplet
            && found.iter().all(|(id, _)| *id != access.id)
        {
            found.push((access.id, list.clone()));
        }
    });
    found
}

/// A coordinate list as segments of one coordinate each.
fn as_segments(list: &Stepper) -> Option<Segments> {
    (!list.grouped).then_some(Segments {
        start: list.start,
        stop: list.stop,
        extents: Extents::Points(list.coordinates, list.below),
        covers: false,
        scale: 1,
        shift: list.shift,
        leads: false,
        window: None,
        mirrored: list.mirrored,
        sought: list.sought,
        ended: list.ended,
    })
}
