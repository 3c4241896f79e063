//! Co-iteration of coordinate lists: merge loops over steppers.
//!
//! - One list, and no work in the gaps: a loop over positions.
//! - Several lists, of which some are required: their intersection; the cursors advance until the
//!   required ones agree.
//! - Two lists, none of them required: their union, a two-way merge while both last, and then a
//!   remainder loop over positions for each.
//! - More lists, none of them required: their union; the least coordinate is next until all lists
//!   end.
//! - Work in the gaps: a dense loop, with the cursors as followers.

use super::Lowerer;
use super::node::{Node, ReadSource, Step, visit_steps};
use super::region::{Presence, Region};
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId};
use tamis_ir::looplet::{Below, Looplet, Payload, Stepper};

/// The way in which a cursor that is behind catches up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Advance {
    /// One coordinate at a time.
    Step,
    /// By search.
    Search,
}

/// A stepper with its cursor.
struct StepperCursor {
    id: u32,
    stepper: Stepper,
    position: VarId,
}

impl Lowerer<'_> {
    pub(super) fn steppers(&mut self, region: Region, steps: Vec<Step>) {
        self.coiterate(region, steps, Advance::Step);
    }

    pub(super) fn coiterate(&mut self, region: Region, steps: Vec<Step>, advance: Advance) {
        let mut found: Vec<(u32, Stepper)> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && let Some(Looplet::Stepper(stepper)) = &access.looplet
                && found.iter().all(|(id, _)| *id != access.id)
            {
                found.push((access.id, stepper.clone()));
            }
        });
        let all: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && all.contains(&access.id)
            {
                self.levels_of.insert(access.id, access.level);
            }
        });
        let gaps = self.without(&steps, &all);
        if !gaps.is_empty() && self.collapses(region.index, &gaps) && self.split_at_coordinates(region, &found, &steps)
        {
            return;
        }
        let gaps_are_empty = gaps.is_empty();
        self.record_walk(region, &all, gaps_are_empty && found.len() == 1, &steps);
        if let [(id, stepper)] = &found[..]
            && gaps_are_empty
            && stepper.mirrored
            && stepper.ended == Some(region.stop)
            && self.takes_any_order(region.index, &steps)
        {
            let unmirrored = self.in_storage_order(region, stepper);
            self.conditional += 1;
            self.positions(region, *id, &unmirrored, steps);
            self.conditional -= 1;
            return;
        }
        let clipped: Vec<(u32, Stepper)> =
            found.into_iter().map(|(id, s)| (id, self.clip_list(region, id, s))).collect();
        if !gaps_are_empty {
            self.warn_of_dense_loop(region, &gaps);
            return self.dense_with_followers(region, clipped, steps);
        }
        self.conditional += 1;
        match &clipped[..] {
            [(id, stepper)] if !stepper.grouped => self.positions(region, *id, stepper, steps),
            _ => {
                let needed: Vec<u32> = all.iter().copied().filter(|id| self.idle_without(&steps, &[*id])).collect();
                match &clipped[..] {
                    [a, b] if needed.is_empty() && !a.1.grouped && !b.1.grouped => {
                        self.union_of_two(region, a.clone(), b.clone(), steps);
                    }
                    _ if needed.is_empty() => self.union(region, clipped, steps),
                    _ => self.intersect(region, clipped, &needed, steps, advance),
                }
            }
        }
        self.conditional -= 1;
    }

    /// A coordinate list clipped to the region. Subregions share their boundaries: where one ends,
    /// the next one starts.
    fn clip_list(&mut self, region: Region, id: u32, stepper: Stepper) -> Stepper {
        // The contents of a parameter do not change between subregions.
        let fixed = matches!(self.accesses.get(id as usize),
            Some(ReadSource::Tensor(tensor, _)) if self.program.params.contains(tensor));
        if stepper.sought == Some(region.start) {
            return self.clip(region, stepper);
        }
        let known = self.ends.iter().find(|end| end.0 == id && end.1 == stepper.start && end.2 == region.start);
        let clipped = match known.filter(|_| fixed) {
            Some((_, _, _, end)) if !region.whole && stepper.within.is_none() => {
                let start = *end;
                let stop = stepper.seek(&mut self.b, "to", start, region.stop);
                Stepper { start, stop, within: Some((region.start, region.stop)), ..stepper }
            }
            _ => self.clip(region, stepper.clone()),
        };
        if clipped.start != stepper.start || clipped.stop != stepper.stop {
            self.ends.push((id, stepper.start, region.stop, clipped.stop));
        }
        clipped
    }

    /// A stepper's positions inside of the region.
    pub(super) fn clip(&mut self, region: Region, stepper: Stepper) -> Stepper {
        let extent = (region.start, region.stop);
        if (region.whole && stepper.shift.is_none() && !stepper.mirrored) || stepper.within == Some(extent) {
            return stepper;
        }
        if stepper.sought == Some(region.start) {
            // In a window, a comparison per iteration is cheaper than a search.
            return Stepper { within: Some(extent), until: Some(region.stop), ..stepper };
        }
        let start = stepper.seek(&mut self.b, "from", stepper.start, region.start);
        let stop = match stepper.ended == Some(region.stop) {
            true => stepper.stop,
            false => stepper.seek_end(&mut self.b, "to", start, region.stop),
        };
        Stepper { start, stop, within: Some(extent), ..stepper }
    }

    /// A mirrored list from a known end of its window, in storage order.
    fn in_storage_order(&mut self, region: Region, stepper: &Stepper) -> Stepper {
        let one = self.b.int(1);
        let (start, stop) = (self.b.sub(one, stepper.stop), self.b.sub(one, stepper.start));
        Stepper { start, stop, descending: true, until: Some(region.start), ..stepper.clone() }
    }

    fn positions(&mut self, region: Region, id: u32, stepper: &Stepper, steps: Vec<Step>) {
        let var = self.b.new_var("q", DType::I64, stepper.until.is_some());
        let q = self.b.get(var);
        let going = stepper.until.map(|_| self.continues(stepper, q));
        let name = self.program.indices[region.index.index()].clone();
        let coordinate = stepper.coordinate(&mut self.b, q);
        let index = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(index);
        let child = self.child_position(stepper, q, i);
        let steps = self.replace(steps, id, &Payload::Child(child), None);
        let most = self.length(region, stepper);
        let reserved = self.reserve(region.index, &steps, most, &[id]);
        let mut body = vec![Stmt::Let { var: index, value: coordinate }];
        body.extend(self.at(region.index, i, steps));
        self.unreserve(reserved);
        if let Some(cond) = going.filter(|_| body.len() > 1) {
            let one = self.b.int(1);
            let next = self.b.add(q, one);
            body.push(Stmt::Assign { var, value: next });
            self.b.emit(Stmt::Let { var, value: stepper.start });
            self.b.emit(Stmt::While { cond, body });
        } else if body.len() > 1 {
            let body = self.visited_by(region.index, var, body);
            self.b.emit(Stmt::For {
                var,
                start: stepper.start,
                stop: stepper.stop,
                body,
                hint: self.hint(region.index),
            });
        }
    }

    /// The position below a stepper's position.
    fn child_position(&mut self, stepper: &Stepper, position: ExprId, i: ExprId) -> ExprId {
        match (stepper.below, stepper.shift) {
            (Below::Position, _) => stepper.position(&mut self.b, position),
            (Below::Coordinate(base), None) if !stepper.mirrored => self.b.add(base, i),
            (Below::Coordinate(base), shift) => {
                let shift = shift.unwrap_or(self.b.int(0));
                let stored = if stepper.mirrored { self.b.sub(shift, i) } else { self.b.sub(i, shift) };
                self.b.add(base, stored)
            }
        }
    }

    /// An upper bound on the number of a stepper's coordinates in a region.
    fn length(&mut self, region: Region, stepper: &Stepper) -> ExprId {
        let length = self.b.call_in(Op::Sub, DType::I64, &[stepper.stop, stepper.start]);
        match stepper.until {
            Some(_) => {
                let most = self.b.call_in(Op::Sub, DType::I64, &[region.stop, region.start]);
                self.b.call_in(Op::Min, DType::I64, &[length, most])
            }
            None => length,
        }
    }

    /// True if there is a coordinate at a position, and it lies before the end.
    fn continues(&mut self, stepper: &Stepper, q: ExprId) -> ExprId {
        let more = self.b.call_in(Op::Lt, DType::I64, &[q, stepper.stop]);
        match stepper.until {
            Some(until) => {
                let coordinate_here = stepper.coordinate(&mut self.b, q);
                let op = if stepper.descending { Op::Ge } else { Op::Lt };
                let inside = self.b.call_in(op, DType::I64, &[coordinate_here, until]);
                self.b.call_in(Op::And, DType::Bool, &[more, inside])
            }
            None => more,
        }
    }

    fn cursors(&mut self, steppers: Vec<(u32, Stepper)>) -> Vec<StepperCursor> {
        steppers
            .into_iter()
            .map(|(id, stepper)| {
                let position = self.b.variable_from("q", stepper.start);
                StepperCursor { id, stepper, position }
            })
            .collect()
    }

    /// True if a cursor is not at its end.
    fn alive(&mut self, cursor: &StepperCursor) -> ExprId {
        let q = self.b.get(cursor.position);
        self.continues(&cursor.stepper, q)
    }

    /// The coordinate of a cursor that is not at its end.
    fn coordinate_here(&mut self, cursor: &StepperCursor) -> ExprId {
        let q = self.b.get(cursor.position);
        let coordinate_here = cursor.stepper.coordinate(&mut self.b, q);
        self.b.name("c", coordinate_here)
    }

    /// The cursor's coordinate, or one past all coordinates at its end.
    fn coordinate(&mut self, cursor: &StepperCursor) -> ExprId {
        let (alive, q) = (self.alive(cursor), self.b.get(cursor.position));
        let coordinate_here = cursor.stepper.coordinate(&mut self.b, q);
        let never = self.b.int(i64::MAX);
        self.b.call_in(Op::Select, DType::I64, &[alive, coordinate_here, never])
    }

    fn same(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let same = self.b.call_in(Op::Eq, DType::I64, &[a, b]);
        self.b.name("present", same)
    }

    /// Emits the body at coordinate `i`, with the presence of each cursor's element. Gives the next
    /// position of each cursor.
    fn visit(
        &mut self,
        region: Region,
        cursors: &[StepperCursor],
        i: ExprId,
        present: &[ExprId],
        safe: bool,
        steps: Vec<Step>,
    ) -> Vec<ExprId> {
        let mut steps = steps;
        let mut next = Vec::new();
        for (cursor, cond) in cursors.iter().zip(present) {
            let q = self.b.get(cursor.position);
            let one = self.b.int(1);
            let group_stop = cursor.stepper.grouped.then(|| self.group_end(cursor, i));
            next.push(match group_stop {
                Some(end) => end,
                None => self.b.add(q, one),
            });
            let child = self.child_position(&cursor.stepper, q, i);
            let cond = Some(*cond).filter(|c| self.b.as_constant(*c).is_none());
            let presence = Presence { cond, group_stop, safe: safe && self.is_anywhere_inside(cursor) };
            steps = self.replace(steps, cursor.id, &Payload::Child(child), Some(presence));
        }
        let block = self.at(region.index, i, steps);
        block.into_iter().for_each(|stmt| self.b.emit(stmt));
        next
    }

    /// True if the position below a cursor may be loaded from at every coordinate of the loop: it
    /// depends on the cursor alone, or on a coordinate that is always in bounds.
    fn is_anywhere_inside(&self, cursor: &StepperCursor) -> bool {
        let permissive = match self.accesses.get(cursor.id as usize) {
            Some(ReadSource::Tensor(_, subs)) => subs.iter().any(|sub| sub.permissive),
            _ => false,
        };
        let plain = cursor.stepper.shift.is_none() && !cursor.stepper.mirrored && !permissive;
        cursor.stepper.below == Below::Position || plain
    }

    /// [`Self::visit`] at a coordinate where at least one element is present.
    fn visit_some(
        &mut self,
        region: Region,
        cursors: &[StepperCursor],
        i: ExprId,
        present: &[ExprId],
        safe: bool,
        steps: Vec<Step>,
    ) -> Vec<ExprId> {
        let known = self.assumed.len();
        let some = self.any(present.to_vec());
        self.assumed.extend(some);
        let next = self.visit(region, cursors, i, present, safe, steps);
        self.assumed.truncate(known);
        next
    }

    /// Advances the cursors whose elements were present.
    fn advance(&mut self, cursors: &[StepperCursor], present: &[ExprId], next: &[ExprId]) {
        for ((cursor, cond), next) in cursors.iter().zip(present).zip(next) {
            let q = self.b.get(cursor.position);
            let next = self.b.call_in(Op::Select, DType::I64, &[*cond, *next, q]);
            self.b.assign(cursor.position, next);
        }
    }

    /// Advances a cursor by one if its element was present.
    fn advance_one(&mut self, cursor: &StepperCursor, present: ExprId) {
        let (q, one) = (self.b.get(cursor.position), self.b.int(1));
        let next = self.b.add(q, one);
        self.advance(std::slice::from_ref(cursor), &[present], &[next]);
    }

    /// The end of the group of equal coordinates `i` that starts at the cursor.
    fn group_end(&mut self, cursor: &StepperCursor, i: ExprId) -> ExprId {
        let start = self.b.get(cursor.position);
        let end = self.b.variable_from("end", start);
        let at = self.b.get(end);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[at, cursor.stepper.stop]);
        let found = cursor.stepper.coordinate(&mut self.b, at);
        let same = self.b.call_in(Op::Eq, DType::I64, &[found, i]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[inside, same]);
        let one = self.b.int(1);
        let next = self.b.add(at, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: end, value: next }] });
        self.b.name("group", at)
    }

    /// Advances a cursor to its first coordinate at or after `i`.
    fn catch_up(&mut self, cursor: &StepperCursor, i: ExprId, advance: Advance) {
        let q = self.b.get(cursor.position);
        if advance == Advance::Search {
            let at = cursor.stepper.seek(&mut self.b, "next", q, i);
            return self.b.assign(cursor.position, at);
        }
        let alive = self.alive(cursor);
        let coordinate_here = cursor.stepper.coordinate(&mut self.b, q);
        let behind = self.b.call_in(Op::Lt, DType::I64, &[coordinate_here, i]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[alive, behind]);
        let one = self.b.int(1);
        let next = self.b.add(q, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: cursor.position, value: next }] });
    }

    /// A dense loop over all coordinates of the region, with the cursors as followers.
    fn dense_with_followers(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, steps: Vec<Step>) {
        // The loop itself ends with the region.
        let steppers = steppers.into_iter().map(|(id, s)| (id, Stepper { until: None, ..s })).collect();
        let cursors = self.cursors(steppers);
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(var);
        let partial = usize::from(!region.shared);
        self.conditional += partial;
        let most = self.b.call_in(Op::Sub, DType::I64, &[region.stop, region.start]);
        let reserved = self.reserve(region.index, &steps, most, &[]);
        let body = self.in_block(|this| {
            let present: Vec<ExprId> = cursors
                .iter()
                .map(|cursor| {
                    let (alive, q) = (this.alive(cursor), this.b.get(cursor.position));
                    let coordinate_here = cursor.stepper.coordinate(&mut this.b, q);
                    let same = this.b.call_in(Op::Eq, DType::I64, &[coordinate_here, i]);
                    let present = this.b.call_in(Op::And, DType::Bool, &[alive, same]);
                    this.b.name("present", present)
                })
                .collect();
            let next = this.visit(region, &cursors, i, &present, false, steps);
            this.advance(&cursors, &present, &next);
        });
        self.unreserve(reserved);
        self.conditional -= partial;
        self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint: Hint::default() });
    }

    /// The union of two lists: a merge while both last, then a remainder loop for each.
    fn union_of_two(&mut self, region: Region, a: (u32, Stepper), b: (u32, Stepper), steps: Vec<Step>) {
        let (first, second) = (self.length(region, &a.1), self.length(region, &b.1));
        let most = self.b.add(first, second);
        let reserved = self.reserve(region.index, &steps, most, &[a.0, b.0]);
        let cursors = self.cursors(vec![a, b]);
        let (first, second) = (self.alive(&cursors[0]), self.alive(&cursors[1]));
        let both = self.b.call_in(Op::And, DType::Bool, &[first, second]);
        let name = self.program.indices[region.index.index()].clone();
        let body = self.in_block(|this| {
            let coordinate_here: Vec<ExprId> = cursors.iter().map(|cursor| this.coordinate_here(cursor)).collect();
            let lesser = |this: &mut Self| {
                let least = this.b.call_in(Op::Min, DType::I64, &coordinate_here);
                let i = this.b.name(name, least);
                let present: Vec<ExprId> = coordinate_here.iter().map(|c| this.same(*c, i)).collect();
                let next = this.visit_some(region, &cursors, i, &present, true, steps.clone());
                this.advance(&cursors, &present, &next);
            };
            if !is_short(&steps) {
                return lesser(this);
            }
            // If lists often agree, the branch is predictable, and the next coordinates need not
            // be awaited. Otherwise the smaller list is unpredictable, so that choice has no
            // branch.
            let cond = this.b.call_in(Op::Eq, DType::I64, &coordinate_here);
            let then = this.in_block(|this| {
                let yes = this.b.constant(Value::Bool(true));
                let next = this.visit(region, &cursors, coordinate_here[0], &[yes, yes], true, steps.clone());
                this.advance(&cursors, &[yes, yes], &next);
            });
            let otherwise = this.in_block(lesser);
            this.b.emit(Stmt::If { cond, then, otherwise });
        });
        self.b.emit(Stmt::While { cond: both, body });
        for (rest, done) in [(0, 1), (1, 0)] {
            let alone = self.replace(steps.clone(), cursors[done].id, &Payload::Fill, None);
            let alone = simplify::steps(alone, self.policy);
            if !alone.is_empty() {
                let start = self.b.get(cursors[rest].position);
                let stepper = Stepper { start, ..cursors[rest].stepper.clone() };
                self.positions(region, cursors[rest].id, &stepper, alone);
            }
        }
        self.unreserve(reserved);
    }

    /// The union of several lists: the least coordinate is next, until all lists end. Each cursor
    /// that was there advances and loads its next coordinate in a branch, which is predictable
    /// where lists often agree.
    fn union(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, steps: Vec<Step>) {
        let mut most = self.b.int(0);
        for (_, stepper) in &steppers {
            let length = self.length(region, stepper);
            most = self.b.add(most, length);
        }
        let all: Vec<u32> = steppers.iter().map(|(id, _)| *id).collect();
        let reserved = self.reserve(region.index, &steps, most, &all);
        let cursors = self.cursors(steppers);
        let held: Vec<VarId> = cursors
            .iter()
            .map(|cursor| {
                let first = self.coordinate(cursor);
                self.b.variable_from("c", first)
            })
            .collect();
        let coordinate_here: Vec<ExprId> = held.iter().map(|c| self.b.get(*c)).collect();
        let never = self.b.int(i64::MAX);
        let least = coordinate_here
            .iter()
            .copied()
            .reduce(|a, b| self.b.call_in(Op::Min, DType::I64, &[a, b]))
            .unwrap_or(never);
        let cond = self.b.call_in(Op::Lt, DType::I64, &[least, never]);
        let name = self.program.indices[region.index.index()].clone();
        let body = self.in_block(|this| {
            let i = this.b.name(name, least);
            let present: Vec<ExprId> = coordinate_here.iter().map(|c| this.same(*c, i)).collect();
            let next = this.visit_some(region, &cursors, i, &present, false, steps);
            for (((cursor, c), cond), next) in cursors.iter().zip(&held).zip(present).zip(next) {
                let then = this.in_block(|this| {
                    this.b.assign(cursor.position, next);
                    let coordinate = this.coordinate(cursor);
                    this.b.assign(*c, coordinate);
                });
                this.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
        });
        self.unreserve(reserved);
        self.b.emit(Stmt::While { cond, body });
    }

    /// The intersection of the required lists; the others follow.
    fn intersect(
        &mut self,
        region: Region,
        steppers: Vec<(u32, Stepper)>,
        needed: &[u32],
        steps: Vec<Step>,
        advance: Advance,
    ) {
        // At most as many as the first required list has.
        let first = steppers.iter().find(|(id, _)| needed.first() == Some(id));
        let most = match first {
            Some((_, stepper)) => self.length(region, &stepper.clone()),
            None => self.b.int(0),
        };
        let reserved = self.reserve(region.index, &steps, most, needed.get(..1).unwrap_or_default());
        let cursors = self.cursors(steppers);
        let leads: Vec<bool> = cursors.iter().map(|w| needed.contains(&w.id)).collect();
        let alive: Vec<ExprId> =
            cursors.iter().zip(&leads).filter(|(_, leads)| **leads).map(|(cursor, _)| self.alive(cursor)).collect();
        let cond = alive.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
        let name = self.program.indices[region.index.index()].clone();
        let yes = self.b.constant(Value::Bool(true));
        let body = self.in_block(|this| {
            // The loop continues only while no required list is at its end; other cursors are
            // loaded after they have caught up.
            let mut coordinates: Vec<ExprId> = Vec::new();
            for (cursor, leads) in cursors.iter().zip(&leads) {
                coordinates.push(if *leads { this.coordinate_here(cursor) } else { yes });
            }
            let searching = advance == Advance::Search && needed.len() > 1;
            let pick = if searching { Op::Max } else { Op::Min };
            let leading = || (0..cursors.len()).filter(|k| leads[*k]);
            let next = leading().map(|k| coordinates[k]).reduce(|a, b| this.b.call_in(pick, DType::I64, &[a, b]));
            let zero = this.b.int(0);
            let i = this.b.name(name, next.unwrap_or(zero));
            // Followers catch up with the coordinate.
            for k in (0..cursors.len()).filter(|k| !leads[*k]) {
                this.catch_up(&cursors[k], i, advance);
                let coordinate = this.coordinate(&cursors[k]);
                coordinates[k] = this.b.name("c", coordinate);
            }
            let present: Vec<ExprId> = coordinates.iter().map(|c| this.same(*c, i)).collect();
            if needed.len() < 2 {
                let next = this.visit_some(region, &cursors, i, &present, false, steps);
                return this.advance(&cursors, &present, &next);
            }
            let agree = leading().map(|k| present[k]).reduce(|a, b| this.b.call_in(Op::And, DType::Bool, &[a, b]));
            let agree = agree.unwrap_or(yes);
            let certain: Vec<ExprId> = (0..cursors.len()).map(|k| if leads[k] { yes } else { present[k] }).collect();
            let mut next = Vec::new();
            let mut then = this.in_block(|this| next = this.visit(region, &cursors, i, &certain, false, steps));
            // A body that only adds to variables needs no branch, so the cursors advance without
            // one, too. Otherwise the branch is predictable where lists often agree, and the next
            // coordinates need not be awaited.
            let grouped = cursors.iter().any(|w| w.stepper.grouped);
            let adds = then.iter().all(|stmt| matches!(stmt, Stmt::Let { .. } | Stmt::Assign { .. }));
            let branchless = adds && !searching && !grouped;
            if !branchless {
                then.extend(this.in_block(|this| this.advance(&cursors, &certain, &next)));
            }
            let otherwise = this.in_block(|this| {
                for k in leading() {
                    if searching {
                        this.catch_up(&cursors[k], i, advance);
                    } else if !branchless {
                        this.advance_one(&cursors[k], present[k]);
                    }
                }
            });
            this.b.emit(Stmt::If { cond: agree, then, otherwise });
            if branchless {
                // Each cursor at the coordinate advances, whether or not the others were there.
                (0..cursors.len()).for_each(|k| this.advance_one(&cursors[k], present[k]));
            }
        });
        self.unreserve(reserved);
        if let Some(cond) = cond {
            self.b.emit(Stmt::While { cond, body });
        }
    }
}

/// True if steps are few, and without loops: cheap to duplicate.
fn is_short(steps: &[Step]) -> bool {
    steps.len() <= 2 && steps.iter().all(|step| matches!(step, Step::Let(..) | Step::Assign(..)))
}
