//! Pieces: stretches of coordinates, alone or together.
//!
//! - Lists of coordinates that are needed lead: pieces are looked up at their coordinates.
//! - One list of pieces, and nothing to do between them (or nothing between them): a loop over pieces.
//! - Some that are needed: where all of them overlap, the rest inside of that.
//! - None of them needed: the region is cut wherever one of them begins or ends.
//!
//! Each part is a region of its own, along which what a piece holds is known, or lies in one block.

use super::Lowerer;
use super::node::{Access, Node, Source, Step, map_steps, visit_steps};
use super::region::{COPIES, Presence, Region};
use super::run_algebra::depends;
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId};
use tamis_ir::looplet::{Extents, Looplet, Payload, Phase, Pieces, Stepper};

/// Pieces with their cursor.
pub(super) struct Walker {
    pub(super) id: u32,
    pub(super) pieces: Pieces,
    pub(super) cursor: VarId,
    /// No piece is looked at that begins here or behind.
    pub(super) until: Option<ExprId>,
}

/// Walkers that may be at the same piece.
struct Meeting<'a> {
    all: &'a [usize],
    /// The outermost of them, and a condition: they are at two pieces that touch, so that all others are at one of these.
    between: Option<((usize, usize), ExprId)>,
}

/// A list or pieces inside of the parts that others cut, with how far they have come.
pub(super) enum Inner {
    List(u32, Stepper, VarId),
    Pieces(u32, Pieces, VarId),
}

impl Lowerer<'_> {
    pub(super) fn pieces(&mut self, region: Region, steps: Vec<Step>) {
        let (found, lists) = (pieces_in(&steps), lists_in(&steps));
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let leading: Vec<(u32, Stepper)> =
            lists.iter().filter(|(id, _)| self.idle_without(&steps, &[*id])).cloned().collect();
        if !leading.is_empty() {
            return self.followed(region, &found, &leading, steps);
        }
        let gaps = self.without(&steps, &ids);
        self.conditional += 1;
        let needed: Vec<u32> = ids.iter().copied().filter(|id| self.idle_without(&steps, &[*id])).collect();
        match &found[..] {
            [(id, only)] if gaps.is_empty() || only.covers => self.each_piece(region, *id, only, steps),
            _ if needed.is_empty() => {
                // Lists that have work to do where there are no pieces take part in cutting.
                let both = [&ids[..], &lists.iter().map(|(id, _)| *id).collect::<Vec<_>>()].concat();
                let points = lists.iter().filter_map(|(id, list)| Some((*id, as_pieces(list)?)));
                let all: Vec<(u32, Pieces)> = found.iter().cloned().chain(points).collect();
                let split = !gaps.is_empty() && all.len() == both.len() && self.cuts(region, &steps, &both);
                if split {
                    self.note_lists(region, &lists, &steps);
                }
                self.cut_all(region, if split { all } else { found }, steps);
            }
            _ if needed.len() == found.len()
                && let Some(common) = self.in_common(&steps, &found) =>
            {
                self.each_in_common(region, &ids, &common, steps);
            }
            _ => {
                let lead = found.into_iter().filter(|(id, _)| needed.contains(id)).collect();
                self.overlaps(region, lead, steps);
            }
        }
        self.conditional -= 1;
    }

    /// Lists that are needed lead, and pieces are looked up at their coordinates. Windows are no coordinate: those that
    /// lists meet are found together with them.
    fn followed(&mut self, region: Region, found: &[(u32, Pieces)], lists: &[(u32, Stepper)], steps: Vec<Step>) {
        let is_open = Pieces::overlapping;
        let points: Option<Vec<(u32, Pieces)>> = lists.iter().map(|(id, list)| Some((*id, as_pieces(list)?))).collect();
        let windows: Vec<(u32, Pieces)> = found.iter().filter(|(_, pieces)| is_open(pieces)).cloned().collect();
        let lead = points.filter(|_| !windows.is_empty());
        let steps = map_steps(steps, &mut |node| match node {
            Node::Access(mut access) => {
                if let Some((_, pieces)) = found.iter().find(|(id, _)| *id == access.id) {
                    match (is_open(pieces), &lead) {
                        (true, Some(_)) => {}
                        // What cannot be met here is searched for when its window is.
                        (true, None) => access.looplet = None,
                        // What may lie outside is looked up with care.
                        (false, _) if is_moving(pieces) && is_permissive(&access) => access.looplet = None,
                        (false, _) => access.looplet = Some(Looplet::Lookup),
                    }
                }
                Node::Access(access)
            }
            other => other,
        });
        let Some(mut lead) = lead else { return self.region(region, steps) };
        self.note_lists(region, lists, &steps);
        lead.extend(windows.into_iter().filter(|(id, _)| self.idle_without(&steps, &[*id])));
        self.conditional += 1;
        self.overlaps(region, lead, steps);
        self.conditional -= 1;
    }

    /// Whether cutting a region at every coordinate of its lists leaves nothing to go over one by one, or nothing at all.
    fn cuts(&mut self, region: Region, steps: &[Step], ids: &[u32]) -> bool {
        let rest = self.without(steps, ids);
        rest.is_empty() || self.repeats(region.index, &rest)
    }

    /// Cuts a region at every coordinate of its lists, if they can be taken as pieces.
    pub(super) fn cut(&mut self, region: Region, lists: &[(u32, Stepper)], steps: &[Step]) -> bool {
        let points: Option<Vec<(u32, Pieces)>> = lists.iter().map(|(id, list)| Some((*id, as_pieces(list)?))).collect();
        let Some(points) = points else { return false };
        self.note_lists(region, lists, steps);
        self.conditional += 1;
        self.cut_all(region, points, steps.to_vec());
        self.conditional -= 1;
        true
    }

    /// Lists are walked in order.
    fn note_lists(&mut self, region: Region, lists: &[(u32, Stepper)], steps: &[Step]) {
        let ids: Vec<u32> = lists.iter().map(|(id, _)| *id).collect();
        self.walk(region, &ids, false, steps);
    }

    /// A loop over the pieces of one list.
    fn each_piece(&mut self, region: Region, id: u32, pieces: &Pieces, steps: Vec<Step>) {
        let exact = region.whole && is_plain(pieces);
        let (pieces, until) = self.clip_pieces(region, pieces.clone());
        let pieces = &pieces;
        let (inner, steps) = self.inner(&[id], steps);
        let keeps = pieces.consecutive() || pieces.overlapping();
        let from = keeps.then(|| self.b.variable_from("from", region.start));
        // What a window meets is gone over again below it, so that there is more to write than one thing for each piece.
        let reserved = if is_moving(pieces) || until.is_some() {
            Vec::new()
        } else {
            let most = self.b.sub(pieces.stop, pieces.start);
            self.reserve_parts(region, &[id], &steps, most)
        };
        let var = self.b.new_var("q", DType::I64, until.is_some());
        let q = self.b.get(var);
        let going = until.map(|until| self.goes_on_from(pieces, q, from, until));
        let body = self.in_block(|this| {
            let piece = pieces.piece(&mut this.b, q);
            let before = from.map(|from| this.b.get(from));
            let mut first = match (before, piece.first) {
                (Some(before), Some(first)) => this.b.call_in(Op::Max, DType::I64, &[first, before]),
                (before, first) => before.or(first).unwrap_or(region.start),
            };
            let mut end = piece.end;
            if !exact {
                end = this.b.call_in(Op::Min, DType::I64, &[end, region.stop]);
            }
            if !exact && before.is_none() {
                first = this.b.call_in(Op::Max, DType::I64, &[first, region.start]);
            }
            let (first, end) = (this.b.name("first", first), this.b.name("end", end));
            let part = Region { start: first, stop: end, filled: exact, ..region.part() };
            let steps = this.enter(steps, id, pieces, (q, piece.end), None);
            match pieces.point(&mut this.b, q).filter(|_| until.is_some()) {
                // Of several coordinates, one is met by a window, or none.
                Some((cond, at)) => {
                    let one = this.b.int(1);
                    let then = this.in_block(|this| {
                        let at = this.b.name("at", at);
                        let stop = this.b.add(at, one);
                        let part = Region { start: at, stop, point: true, filled: true, ..part };
                        this.part(part, &inner, steps);
                    });
                    this.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
                }
                None => this.part(part, &inner, steps),
            }
            if let Some(from) = from {
                this.b.assign(from, end);
            }
            if pieces.set().is_some() {
                this.pass_set(pieces, piece.end, region.stop);
            }
        });
        self.unreserve(reserved);
        let Some(cond) = going else {
            return self.b.emit(Stmt::For { var, start: pieces.start, stop: pieces.stop, body, hint: Hint::default() });
        };
        if pieces.set().is_some() {
            return self.b.emit(Stmt::While { cond, body });
        }
        let (one, mut body) = (self.b.int(1), body);
        let next = self.b.add(q, one);
        body.push(Stmt::Assign { var, value: next });
        self.b.emit(Stmt::Let { var, value: pieces.start });
        self.b.emit(Stmt::While { cond, body });
    }

    /// Whether there is a piece, and it does not begin behind the end.
    fn goes_on_from(&mut self, pieces: &Pieces, q: ExprId, from: Option<VarId>, until: ExprId) -> ExprId {
        let more = pieces.has(&mut self.b, q);
        let first = match (pieces.piece(&mut self.b, q).first, from) {
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

    /// Where all of these overlap.
    fn overlaps(&mut self, region: Region, found: Vec<(u32, Pieces)>, steps: Vec<Step>) {
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let (inner, steps) = self.inner(&ids, steps);
        let walkers = self.piece_walkers(region, found);
        let keeps = walkers.iter().any(|w| w.pieces.consecutive() || w.pieces.overlapping());
        let from = keeps.then(|| self.b.variable_from("from", region.start));
        let moving = walkers.iter().any(|walker| is_moving(&walker.pieces) || walker.until.is_some());
        let reserved = if moving {
            Vec::new()
        } else {
            let most = self.lengths(&walkers);
            self.reserve_parts(region, &ids, &steps, most)
        };
        let meeting = if region.short || moving { Vec::new() } else { self.meeting(&steps, &walkers) };
        let outer = self.outermost(&steps, &walkers, &meeting);
        let mut cond = self.b.constant(Value::Bool(true));
        for walker in &walkers {
            let alive = match walker.until {
                Some(until) => {
                    let q = self.b.get(walker.cursor);
                    self.goes_on_from(&walker.pieces, q, from, until)
                }
                None => self.has_piece(walker),
            };
            cond = self.b.call_in(Op::And, DType::Bool, &[cond, alive]);
        }
        let body = self.in_block(|this| {
            let mut firsts: Vec<ExprId> = from.iter().map(|from| this.b.get(*from)).collect();
            let mut ends = Vec::new();
            for walker in &walkers {
                let q = this.b.get(walker.cursor);
                let piece = walker.pieces.piece(&mut this.b, q);
                firsts.extend(piece.first);
                ends.push(this.b.name("end", piece.end));
            }
            let exact = region.whole && walkers.iter().all(|w| is_plain(&w.pieces));
            if !exact && from.is_none() {
                firsts.push(region.start);
            }
            let first = this.extreme(Op::Max, firsts, region.start);
            let first = this.b.name("first", first);
            let end = this.extreme(Op::Min, ends.clone(), region.stop);
            // Those between the outermost need not be asked where these two are side by side.
            let between = outer.map(|(first, last)| {
                let between = this.side_by_side(&walkers[first], &walkers[last]);
                let asked = |k: &usize| [first, last].contains(k) || !meeting.contains(k);
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
            let meet = this.b.call_in(Op::Lt, DType::I64, &[first, stop]);
            let part = Region { start: first, stop, ..region.part() };
            let same = Meeting { all: &meeting, between: outer.zip(between) };
            let then = this.in_block(|this| this.overlap(part, &inner, &walkers, &ends, &same, steps));
            this.b.emit(Stmt::If { cond: meet, then, otherwise: Vec::new() });
            for (walker, piece_end) in walkers.iter().zip(&ends) {
                this.advance_piece(region, walker, *piece_end, end, first);
            }
            if let Some(from) = from {
                this.b.assign(from, end);
            }
        });
        self.unreserve(reserved);
        self.b.emit(Stmt::While { cond, body });
    }

    /// A part in which all walkers have a piece; where the pieces of those that may meet are the same one, so is what they hold.
    fn overlap(
        &mut self,
        part: Region,
        inner: &[Inner],
        walkers: &[Walker],
        ends: &[ExprId],
        meeting: &Meeting,
        steps: Vec<Step>,
    ) {
        let cursors: Vec<ExprId> = walkers.iter().map(|walker| self.b.get(walker.cursor)).collect();
        let enter = |this: &mut Self, at: &dyn Fn(usize) -> ExprId| {
            let mut steps = steps.clone();
            for (k, walker) in walkers.iter().enumerate() {
                steps = this.enter(steps, walker.id, &walker.pieces, (at(k), ends[k]), None);
            }
            this.part(part, inner, steps);
        };
        let all = meeting.all;
        let Some((first, others)) = all.split_first() else { return enter(self, &|k| cursors[k]) };
        let mut same = self.b.constant(Value::Bool(true));
        for other in others {
            let equal = self.b.call_in(Op::Eq, DType::I64, &[cursors[*first], cursors[*other]]);
            same = self.b.call_in(Op::And, DType::Bool, &[same, equal]);
        }
        let copies = self.copies;
        self.copies *= if meeting.between.is_some() { 3 } else { 2 };
        let mut parts = self.begin_parts();
        let then = self.in_block(|this| {
            enter(this, &|k| if all.contains(&k) { cursors[*first] } else { cursors[k] });
        });
        self.end_part(&mut parts);
        let between = meeting.between.map(|((outer, last), between)| {
            let then = self.in_block(|this| {
                enter(this, &|k| if all.contains(&k) && k != last { cursors[outer] } else { cursors[k] });
            });
            self.end_part(&mut parts);
            (between, then)
        });
        let mut otherwise = self.in_block(|this| enter(this, &|k| cursors[k]));
        self.end_part(&mut parts);
        self.end_parts(parts);
        self.copies = copies;
        if let Some((cond, then)) = between {
            otherwise = vec![Stmt::If { cond, then, otherwise }];
        }
        if !then.is_empty() || !otherwise.is_empty() {
            self.b.emit(Stmt::If { cond: same, then, otherwise });
        }
    }

    /// Everything, cut wherever a piece begins or ends.
    fn cut_all(&mut self, region: Region, found: Vec<(u32, Pieces)>, steps: Vec<Step>) {
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let gaps = self.without(&steps, &ids);
        let idle = gaps.is_empty();
        if !idle && !self.repeats(region.index, &gaps) {
            self.warn_of_dense_loop(region, &gaps);
        }
        let apart = !idle && self.is_gap_apart(region, &found, &steps, &gaps);
        let (inner, steps) = self.inner(&ids, steps);
        let walkers = self.piece_walkers(region, found);
        let from = self.b.variable_from("from", region.start);
        let start = self.b.get(from);
        let mut cond = self.b.call_in(Op::Lt, DType::I64, &[start, region.stop]);
        if idle {
            let alive = walkers.iter().map(|w| self.has_piece(w)).collect();
            let some = self.any(alive).unwrap_or(cond);
            cond = self.b.call_in(Op::And, DType::Bool, &[cond, some]);
        }
        let body = self.in_block(|this| {
            let here = this.b.get(from);
            let here = this.b.name("here", here);
            let never = this.b.int(i64::MAX);
            let (mut edges, mut ends, mut present) = (Vec::new(), Vec::new(), Vec::new());
            for walker in &walkers {
                let (alive, q) = (this.has_piece(walker), this.b.get(walker.cursor));
                let piece = walker.pieces.piece(&mut this.b, q);
                let end = this.b.call_in(Op::Select, DType::I64, &[alive, piece.end, never]);
                let end = this.b.name("end", end);
                ends.push(end);
                match piece.first {
                    Some(first) => {
                        let first = this.b.call_in(Op::Select, DType::I64, &[alive, first, never]);
                        let first = this.b.name("first", first);
                        let begun = this.b.call_in(Op::Le, DType::I64, &[first, here]);
                        let begun = this.b.name("present", begun);
                        present.push(Some(begun));
                        edges.push(this.b.call_in(Op::Select, DType::I64, &[begun, end, first]));
                    }
                    None => {
                        present.push((!walker.pieces.covers).then_some(alive));
                        edges.push(end);
                    }
                }
            }
            let next = this.extreme(Op::Min, edges, region.stop);
            let next = this.b.call_in(Op::Min, DType::I64, &[next, region.stop]);
            let next = this.b.name("stop", next);
            // Where windows skip coordinates, several may end at the same.
            let filled = walkers.iter().all(|w| w.pieces.window.is_none());
            let part = Region { start: here, stop: next, filled, ..region.part() };
            let some = present.iter().copied().collect::<Option<Vec<ExprId>>>().and_then(|all| this.any(all));
            let some = some.filter(|_| idle || apart);
            // Some of them hold something else at each coordinate. Where none of these is present, what is done may be the same everywhere.
            let (moving, quiet) = match walkers.len() {
                1 => (Vec::new(), None),
                _ => this.quiet(part, &walkers, &ends, &present, &steps),
            };
            let copies = this.copies;
            this.copies *= if apart || quiet.is_some() { 2 } else { 1 };
            let mut parts = (apart || quiet.is_some()).then(|| this.begin_parts());
            let mut then = this.in_block(|this| {
                let known = this.assumed.len();
                this.assumed.extend(some);
                // A list that cuts alone is at its coordinate.
                let point = apart && matches!(&walkers[..], [walker] if walker.pieces.is_points());
                let part = Region { point: part.point || point, ..part };
                let steps = this.enter_all(steps, &walkers, &ends, &present);
                this.part(part, &inner, steps);
                this.assumed.truncate(known);
            });
            if let Some(parts) = &mut parts {
                this.end_part(parts);
            }
            if let (Some(steps), Some(parts)) = (quiet, &mut parts) {
                let known = this.assumed.len();
                this.assumed.extend(some);
                let otherwise = this.in_block(|this| this.part(part, &inner, steps));
                this.assumed.truncate(known);
                this.end_part(parts);
                let cond = this.any(moving).unwrap_or_else(|| this.b.constant(Value::Bool(true)));
                then = vec![Stmt::If { cond, then, otherwise }];
            }
            let mut otherwise = Vec::new();
            if let Some(mut parts) = parts {
                if apart && some.is_some() {
                    otherwise = this.in_block(|this| this.region(part, gaps));
                    this.end_part(&mut parts);
                }
                this.end_parts(parts);
            }
            this.copies = copies;
            match some {
                Some(some) => this.b.emit(Stmt::If { cond: some, then, otherwise }),
                None => then.into_iter().for_each(|stmt| this.b.emit(stmt)),
            }
            for (walker, end) in walkers.iter().zip(&ends) {
                if walker.pieces.set().is_some() {
                    this.pass_set(&walker.pieces, *end, next);
                    continue;
                }
                let (q, one) = (this.b.get(walker.cursor), this.b.int(1));
                let done = this.b.call_in(Op::Le, DType::I64, &[*end, next]);
                let after = this.b.add(q, one);
                let after = this.b.call_in(Op::Select, DType::I64, &[done, after, q]);
                this.b.assign(walker.cursor, after);
            }
            this.b.assign(from, next);
        });
        self.b.emit(Stmt::While { cond, body });
    }

    /// Whether gaps between pieces are lowered by themselves: there, every iteration does the same, so that a gap is one
    /// step, and inside of pieces it does not.
    fn is_gap_apart(&mut self, region: Region, found: &[(u32, Pieces)], steps: &[Step], gaps: &[Step]) -> bool {
        if self.copies * 2 > COPIES || !self.repeats(region.index, gaps) {
            return false;
        }
        let zero = self.b.int(0);
        let mut inside = steps.to_vec();
        for (id, pieces) in found {
            if pieces.overlapping() || pieces.set().is_some() || pieces.child(&mut self.b, zero).is_none() {
                return true;
            }
            inside = self.replace(inside, *id, &Payload::Fill, None);
        }
        !self.repeats(region.index, &inside)
    }

    /// What all walkers hold, over a part of their pieces.
    fn enter_all(
        &mut self,
        mut steps: Vec<Step>,
        walkers: &[Walker],
        ends: &[ExprId],
        present: &[Option<ExprId>],
    ) -> Vec<Step> {
        for ((walker, end), present) in walkers.iter().zip(ends).zip(present) {
            let q = self.b.get(walker.cursor);
            steps = self.enter(steps, walker.id, &walker.pieces, (q, *end), *present);
        }
        steps
    }

    /// Where the pieces of walkers that hold something else at each coordinate are present, and what is done where none of them is, if
    /// that is the same at each coordinate, and is not otherwise.
    fn quiet(
        &mut self,
        part: Region,
        walkers: &[Walker],
        ends: &[ExprId],
        present: &[Option<ExprId>],
        steps: &[Step],
    ) -> (Vec<ExprId>, Option<Vec<Step>>) {
        // Lists hold one thing at each of their coordinates, and runs everywhere.
        let may_move = |w: &Walker| matches!(w.pieces.extents, Extents::Blocks { .. }) || w.pieces.scale != 1;
        let windows = walkers.iter().any(|w| w.pieces.window.is_some() || w.pieces.set().is_some());
        if windows || self.copies * 2 > COPIES || !walkers.iter().any(may_move) {
            return (Vec::new(), None);
        }
        let before = self.b.clone();
        let entered = self.enter_all(steps.to_vec(), walkers, ends, present);
        self.b = before;
        let mut ids: Vec<u32> = Vec::new();
        visit_steps(&entered, &mut |node| {
            if let Node::Access(access) = node
                && depends(node, part.index)
            {
                ids.push(access.id);
            }
        });
        let moves = |walker: &Walker| ids.contains(&walker.id);
        let moving: Option<Vec<ExprId>> =
            walkers.iter().zip(present).filter(|(walker, _)| moves(walker)).map(|(_, present)| *present).collect();
        let Some(moving) = moving.filter(|moving| !moving.is_empty()) else { return (Vec::new(), None) };
        let gone: Vec<u32> = walkers.iter().filter(|walker| moves(walker)).map(|walker| walker.id).collect();
        let rest = self.without(steps, &gone);
        let kept: Vec<usize> = (0..walkers.len()).filter(|k| !moves(&walkers[*k])).collect();
        let mut quiet = rest;
        for k in kept {
            let q = self.b.get(walkers[k].cursor);
            quiet = self.enter(quiet, walkers[k].id, &walkers[k].pieces, (q, ends[k]), present[k]);
        }
        let quiet = simplify::steps(quiet, self.policy);
        let same = !quiet.is_empty() && self.repeats(part.index, &quiet);
        (moving, same.then_some(quiet))
    }

    /// A part of the region, with what the pieces around it do not cut brought there first.
    pub(super) fn part(&mut self, part: Region, inner: &[Inner], steps: Vec<Step>) {
        let mut steps = steps;
        for inner in inner {
            match inner {
                Inner::List(id, list, cursor) => {
                    let start = self.b.get(*cursor);
                    let clipped = self.clip(part, Stepper { start, sought: None, ..list.clone() });
                    self.b.assign(*cursor, clipped.stop);
                    steps = self.set_looplet(steps, *id, &Looplet::Stepper(clipped));
                }
                Inner::Pieces(id, pieces, _) if pieces.set().is_some() => {
                    self.seek_set(pieces, part.start);
                    let looplet = Looplet::Pieces(Pieces { sought: Some(part.start), ..pieces.clone() });
                    steps = self.set_looplet(steps, *id, &looplet);
                }
                Inner::Pieces(id, pieces, cursor) => {
                    let q = self.b.get(*cursor);
                    let start = pieces.seek(&mut self.b, "from", q, part.start);
                    self.b.assign(*cursor, start);
                    let looplet = Looplet::Pieces(Pieces { start, sought: Some(part.start), ..pieces.clone() });
                    steps = self.set_looplet(steps, *id, &looplet);
                }
            }
        }
        self.region(part, steps);
    }

    /// Lists and pieces that are not among those that cut: their cursors go up with the parts.
    pub(super) fn inner(&mut self, cutting: &[u32], steps: Vec<Step>) -> (Vec<Inner>, Vec<Step>) {
        let mut inner = Vec::new();
        for (id, list) in lists_in(&steps).into_iter().filter(|(id, _)| !cutting.contains(id)) {
            let cursor = self.b.variable_from("q", list.start);
            inner.push(Inner::List(id, list, cursor));
        }
        for (id, pieces) in pieces_in(&steps).into_iter().filter(|(id, _)| !cutting.contains(id)) {
            let cursor = self.b.variable_from("q", pieces.start);
            inner.push(Inner::Pieces(id, pieces, cursor));
        }
        (inner, steps)
    }

    /// What a piece holds, over a part of it.
    fn enter(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        pieces: &Pieces,
        (q, end): (ExprId, ExprId),
        present: Option<ExprId>,
    ) -> Vec<Step> {
        if let Some(set) = pieces.set() {
            return self.enter_set(steps, id, set, present);
        }
        if pieces.overlapping() {
            return self.enter_windows(steps, id, pieces, q, present);
        }
        if let Some(child) = pieces.child(&mut self.b, q) {
            let presence = present.map(|cond| Presence { cond: Some(cond), group_stop: None, safe: false });
            return self.replace(steps, id, &Payload::Child(child), presence);
        }
        let Some(base) = pieces.base(&mut self.b, q, end) else { return steps };
        // Where it is absent, there is no base, either.
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
        self.set_looplet(steps, id, &Looplet::Block { base, stride: pieces.stride() })
    }

    /// What windows hold that meet a piece: those inside of it are resolved, if it holds one thing.
    fn enter_windows(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        pieces: &Pieces,
        q: ExprId,
        present: Option<ExprId>,
    ) -> Vec<Step> {
        let window = Payload::Window(Some(pieces.edge(&mut self.b, q)));
        let inside = pieces.inside(&mut self.b, q).filter(|_| pieces.splits());
        let Some(inside) = inside else {
            let presence = present.map(|cond| Presence { cond: Some(cond), group_stop: None, safe: false });
            return self.replace(steps, id, &window, presence);
        };
        let mut placed = |at: ExprId| match present {
            // Where it is absent, there is no piece to ask.
            Some(cond) => {
                let never = self.b.int(i64::MAX);
                self.b.call_in(Op::Select, DType::I64, &[cond, at, never])
            }
            None => at,
        };
        let (first, end) = (inside.first.map(&mut placed), placed(inside.end));
        let child = pieces.number(&mut self.b, q);
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

    /// Those pieces that reach into the region; from which coordinate on they do not, if that is to be found out.
    fn clip_pieces(&mut self, region: Region, pieces: Pieces) -> (Pieces, Option<ExprId>) {
        let sought = pieces.sought == Some(region.start);
        if pieces.set().is_some() {
            if !sought {
                self.seek_set(&pieces, region.start);
            }
            return (Pieces { sought: Some(region.start), ..pieces }, Some(region.stop));
        }
        if region.whole && pieces.shift.is_none() && pieces.window.is_none() && !sought {
            return (pieces, None);
        }
        // Comparing is cheaper than searching, where pieces have to be looked at anyway.
        if sought || pieces.window.is_some() || pieces.mirrored {
            let start = match sought {
                true => pieces.start,
                false => pieces.seek(&mut self.b, "from", pieces.start, region.start),
            };
            return (Pieces { start, sought: Some(region.start), ..pieces }, Some(region.stop));
        }
        let one = self.b.int(1);
        let start = pieces.seek(&mut self.b, "from", pieces.start, region.start);
        let last = self.b.sub(region.stop, one);
        let last = pieces.seek(&mut self.b, "to", start, last);
        // The piece that the region ends in belongs to it, if there is one.
        let after = self.b.add(last, one);
        let stop = self.b.call_in(Op::Min, DType::I64, &[after, pieces.stop]);
        let stop = self.b.name("stop", stop);
        (Pieces { start, stop, ..pieces }, None)
    }

    /// Cursors at the first pieces of the region.
    fn piece_walkers(&mut self, region: Region, found: Vec<(u32, Pieces)>) -> Vec<Walker> {
        let mut walkers = Vec::new();
        for (id, pieces) in found {
            let (pieces, until) = self.clip_pieces(region, pieces);
            let cursor = self.b.variable_from("q", pieces.start);
            walkers.push(Walker { id, pieces, cursor, until });
        }
        walkers
    }

    fn has_piece(&mut self, walker: &Walker) -> ExprId {
        let q = self.b.get(walker.cursor);
        walker.pieces.has(&mut self.b, q)
    }

    /// Goes on after a piece that ends by `stop`; by search, if it leads.
    fn advance_piece(&mut self, region: Region, walker: &Walker, end: ExprId, stop: ExprId, first: ExprId) {
        if walker.pieces.set().is_some() {
            let stop = self.b.call_in(Op::Min, DType::I64, &[stop, region.stop]);
            return self.pass_set(&walker.pieces, end, stop);
        }
        let (q, one) = (self.b.get(walker.cursor), self.b.int(1));
        let after = if walker.pieces.leads {
            // Nothing meets before the latest of the beginnings.
            let behind = self.b.call_in(Op::Max, DType::I64, &[stop, first]);
            let at = walker.pieces.seek(&mut self.b, "next", q, behind);
            return self.b.assign(walker.cursor, at);
        } else {
            self.b.add(q, one)
        };
        let done = self.b.call_in(Op::Le, DType::I64, &[end, stop]);
        let after = self.b.call_in(Op::Select, DType::I64, &[done, after, q]);
        self.b.assign(walker.cursor, after);
    }

    fn extreme(&mut self, op: Op, values: Vec<ExprId>, none: ExprId) -> ExprId {
        values.into_iter().reduce(|a, b| self.b.call_in(op, DType::I64, &[a, b])).unwrap_or(none)
    }
}

/// The pieces never reach beyond the dimension.
pub(super) fn is_plain(pieces: &Pieces) -> bool {
    pieces.scale == 1 && pieces.shift.is_none() && pieces.window.is_none()
}

/// The pieces are seen through a window.
fn is_moving(pieces: &Pieces) -> bool {
    pieces.window.is_some() || pieces.sought.is_some()
}

fn is_permissive(access: &Access) -> bool {
    matches!(&access.source, Source::Tensor(_, subs) if subs.get(access.level).is_some_and(|sub| sub.permissive))
}

fn pieces_in(steps: &[Step]) -> Vec<(u32, Pieces)> {
    let mut found: Vec<(u32, Pieces)> = Vec::new();
    visit_steps(steps, &mut |node| {
        if let Node::Access(access) = node
            && let Some(Looplet::Pieces(pieces)) = &access.looplet
            && found.iter().all(|(id, _)| *id != access.id)
        {
            found.push((access.id, pieces.clone()));
        }
    });
    found
}

fn lists_in(steps: &[Step]) -> Vec<(u32, Stepper)> {
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

/// A list as pieces of one coordinate each.
fn as_pieces(list: &Stepper) -> Option<Pieces> {
    (!list.grouped).then_some(Pieces {
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
