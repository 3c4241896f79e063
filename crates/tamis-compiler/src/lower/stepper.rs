//! Steppers: lists of coordinates, alone or together.
//!
//! - One list, and nothing to do between its coordinates: a loop over positions.
//! - Several lists, and something that is needed of each of some: advance until those agree.
//! - Two lists, neither of them needed: a merge while both last, and then what is left of each as a loop over positions.
//! - More lists, none of them needed: the least coordinate is next, until all are at their ends; each list holds its own.
//! - Something to do everywhere: a loop over all coordinates, with the lists following.

use super::Lowerer;
use super::node::{Node, Source, Step, visit_steps};
use super::region::{Presence, Region};
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId};
use tamis_ir::looplet::{Below, Looplet, Payload, Stepper};

/// How a list that is behind catches up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Advance {
    /// One coordinate at a time.
    Step,
    /// By search.
    Search,
}

/// A stepper with its cursor.
struct Walker {
    id: u32,
    stepper: Stepper,
    cursor: VarId,
}

impl Lowerer<'_> {
    pub(super) fn steppers(&mut self, region: Region, steps: Vec<Step>) {
        self.listed(region, steps, Advance::Step);
    }

    pub(super) fn listed(&mut self, region: Region, steps: Vec<Step>, advance: Advance) {
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
        if !gaps.is_empty() && self.repeats(region.index, &gaps) && self.cut(region, &found, &steps) {
            return;
        }
        let gaps_are_empty = gaps.is_empty();
        self.walk(region, &all, gaps_are_empty && found.len() == 1, &steps);
        if let [(id, stepper)] = &found[..]
            && gaps_are_empty
            && stepper.mirrored
            && stepper.ended == Some(region.stop)
            && self.takes_any_order(region.index, &steps)
        {
            let turned = self.turned(region, stepper);
            self.conditional += 1;
            self.positions(region, *id, &turned, steps);
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

    /// A list inside the region; where one part of it ends, the next one starts.
    fn clip_list(&mut self, region: Region, id: u32, stepper: Stepper) -> Stepper {
        // What a parameter holds does not change between the parts.
        let fixed = matches!(self.accesses.get(id as usize),
            Some(Source::Tensor(tensor, _)) if self.program.params.contains(tensor));
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

    /// A stepper's positions inside the region.
    pub(super) fn clip(&mut self, region: Region, stepper: Stepper) -> Stepper {
        let extent = (region.start, region.stop);
        if (region.whole && stepper.shift.is_none() && !stepper.mirrored) || stepper.within == Some(extent) {
            return stepper;
        }
        if stepper.sought == Some(region.start) {
            // A window: comparing is cheaper than searching.
            return Stepper { within: Some(extent), until: Some(region.stop), ..stepper };
        }
        let start = stepper.seek(&mut self.b, "from", stepper.start, region.start);
        let stop = match stepper.ended == Some(region.stop) {
            true => stepper.stop,
            false => stepper.seek_end(&mut self.b, "to", start, region.stop),
        };
        Stepper { start, stop, within: Some(extent), ..stepper }
    }

    /// A window whose beginning is known, of a list that is mirrored: in the order in which it is stored.
    fn turned(&mut self, region: Region, stepper: &Stepper) -> Stepper {
        let one = self.b.int(1);
        let (start, stop) = (self.b.sub(one, stepper.stop), self.b.sub(one, stepper.start));
        Stepper { start, stop, turned: true, until: Some(region.start), ..stepper.clone() }
    }

    fn positions(&mut self, region: Region, id: u32, stepper: &Stepper, steps: Vec<Step>) {
        let var = self.b.new_var("q", DType::I64, stepper.until.is_some());
        let q = self.b.get(var);
        let going = stepper.until.map(|_| self.goes_on(stepper, q));
        let name = self.program.indices[region.index.index()].clone();
        let coordinate = stepper.coordinate(&mut self.b, q);
        let index = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(index);
        let child = self.below(stepper, q, i);
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
    fn below(&mut self, stepper: &Stepper, position: ExprId, i: ExprId) -> ExprId {
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

    /// How many coordinates a stepper has in a region, at most.
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

    /// Whether there is a coordinate at a position, and it is not behind the end.
    fn goes_on(&mut self, stepper: &Stepper, q: ExprId) -> ExprId {
        let more = self.b.call_in(Op::Lt, DType::I64, &[q, stepper.stop]);
        match stepper.until {
            Some(until) => {
                let here = stepper.coordinate(&mut self.b, q);
                let op = if stepper.turned { Op::Ge } else { Op::Lt };
                let inside = self.b.call_in(op, DType::I64, &[here, until]);
                self.b.call_in(Op::And, DType::Bool, &[more, inside])
            }
            None => more,
        }
    }

    fn walkers(&mut self, steppers: Vec<(u32, Stepper)>) -> Vec<Walker> {
        steppers
            .into_iter()
            .map(|(id, stepper)| {
                let cursor = self.b.variable_from("q", stepper.start);
                Walker { id, stepper, cursor }
            })
            .collect()
    }

    /// Whether a walker is not at its end.
    fn alive(&mut self, walker: &Walker) -> ExprId {
        let q = self.b.get(walker.cursor);
        self.goes_on(&walker.stepper, q)
    }

    /// The coordinate of a walker that is not at its end.
    fn here(&mut self, walker: &Walker) -> ExprId {
        let q = self.b.get(walker.cursor);
        let here = walker.stepper.coordinate(&mut self.b, q);
        self.b.name("c", here)
    }

    /// The walker's coordinate, or one past all coordinates at its end.
    fn coordinate(&mut self, walker: &Walker) -> ExprId {
        let (alive, q) = (self.alive(walker), self.b.get(walker.cursor));
        let here = walker.stepper.coordinate(&mut self.b, q);
        let never = self.b.int(i64::MAX);
        self.b.call_in(Op::Select, DType::I64, &[alive, here, never])
    }

    fn same(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let same = self.b.call_in(Op::Eq, DType::I64, &[a, b]);
        self.b.name("present", same)
    }

    /// The body at coordinate `i`, where each walker is present under its condition, and where walkers go after it.
    fn visit(
        &mut self,
        region: Region,
        walkers: &[Walker],
        i: ExprId,
        present: &[ExprId],
        safe: bool,
        steps: Vec<Step>,
    ) -> Vec<ExprId> {
        let mut steps = steps;
        let mut next = Vec::new();
        for (walker, cond) in walkers.iter().zip(present) {
            let q = self.b.get(walker.cursor);
            let one = self.b.int(1);
            let group_stop = walker.stepper.grouped.then(|| self.group_end(walker, i));
            next.push(match group_stop {
                Some(end) => end,
                None => self.b.add(q, one),
            });
            let child = self.below(&walker.stepper, q, i);
            let cond = Some(*cond).filter(|c| self.b.as_constant(*c).is_none());
            let presence = Presence { cond, group_stop, safe: safe && self.is_anywhere_inside(walker) };
            steps = self.replace(steps, walker.id, &Payload::Child(child), Some(presence));
        }
        let block = self.at(region.index, i, steps);
        block.into_iter().for_each(|stmt| self.b.emit(stmt));
        next
    }

    /// Whether what lies below a walker may be looked at wherever the loop is: at its cursor, or at a coordinate that is never
    /// outside of the tensor.
    fn is_anywhere_inside(&self, walker: &Walker) -> bool {
        let permissive = match self.accesses.get(walker.id as usize) {
            Some(Source::Tensor(_, subs)) => subs.iter().any(|sub| sub.permissive),
            _ => false,
        };
        let plain = walker.stepper.shift.is_none() && !walker.stepper.mirrored && !permissive;
        walker.stepper.below == Below::Position || plain
    }

    /// [`Self::visit`] where some walker is present for certain.
    fn visit_some(
        &mut self,
        region: Region,
        walkers: &[Walker],
        i: ExprId,
        present: &[ExprId],
        safe: bool,
        steps: Vec<Step>,
    ) -> Vec<ExprId> {
        let known = self.assumed.len();
        let some = self.any(present.to_vec());
        self.assumed.extend(some);
        let next = self.visit(region, walkers, i, present, safe, steps);
        self.assumed.truncate(known);
        next
    }

    /// Moves walkers on that were present.
    fn advance(&mut self, walkers: &[Walker], present: &[ExprId], next: &[ExprId]) {
        for ((walker, cond), next) in walkers.iter().zip(present).zip(next) {
            let q = self.b.get(walker.cursor);
            let next = self.b.call_in(Op::Select, DType::I64, &[*cond, *next, q]);
            self.b.assign(walker.cursor, next);
        }
    }

    /// Moves a walker on by one if it was present.
    fn move_on(&mut self, walker: &Walker, present: ExprId) {
        let (q, one) = (self.b.get(walker.cursor), self.b.int(1));
        let next = self.b.add(q, one);
        self.advance(std::slice::from_ref(walker), &[present], &[next]);
    }

    /// Where the group of coordinates `i` ends that starts at the cursor.
    fn group_end(&mut self, walker: &Walker, i: ExprId) -> ExprId {
        let start = self.b.get(walker.cursor);
        let end = self.b.variable_from("end", start);
        let at = self.b.get(end);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[at, walker.stepper.stop]);
        let found = walker.stepper.coordinate(&mut self.b, at);
        let same = self.b.call_in(Op::Eq, DType::I64, &[found, i]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[inside, same]);
        let one = self.b.int(1);
        let next = self.b.add(at, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: end, value: next }] });
        self.b.name("group", at)
    }

    /// A walker that is behind `i` goes to its first coordinate from there on.
    fn catch_up(&mut self, walker: &Walker, i: ExprId, advance: Advance) {
        let q = self.b.get(walker.cursor);
        if advance == Advance::Search {
            let at = walker.stepper.seek(&mut self.b, "next", q, i);
            return self.b.assign(walker.cursor, at);
        }
        let alive = self.alive(walker);
        let here = walker.stepper.coordinate(&mut self.b, q);
        let behind = self.b.call_in(Op::Lt, DType::I64, &[here, i]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[alive, behind]);
        let one = self.b.int(1);
        let next = self.b.add(q, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: walker.cursor, value: next }] });
    }

    /// All coordinates of the region, the walkers following.
    fn dense_with_followers(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, steps: Vec<Step>) {
        // The loop itself ends with the region.
        let steppers = steppers.into_iter().map(|(id, s)| (id, Stepper { until: None, ..s })).collect();
        let walkers = self.walkers(steppers);
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(var);
        let partial = usize::from(!region.shared);
        self.conditional += partial;
        let most = self.b.call_in(Op::Sub, DType::I64, &[region.stop, region.start]);
        let reserved = self.reserve(region.index, &steps, most, &[]);
        let body = self.in_block(|this| {
            let present: Vec<ExprId> = walkers
                .iter()
                .map(|walker| {
                    let (alive, q) = (this.alive(walker), this.b.get(walker.cursor));
                    let here = walker.stepper.coordinate(&mut this.b, q);
                    let same = this.b.call_in(Op::Eq, DType::I64, &[here, i]);
                    let present = this.b.call_in(Op::And, DType::Bool, &[alive, same]);
                    this.b.name("present", present)
                })
                .collect();
            let next = this.visit(region, &walkers, i, &present, false, steps);
            this.advance(&walkers, &present, &next);
        });
        self.unreserve(reserved);
        self.conditional -= partial;
        self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint: Hint::default() });
    }

    /// The coordinates of either list: while both last, the lesser is next; then what is left.
    fn union_of_two(&mut self, region: Region, a: (u32, Stepper), b: (u32, Stepper), steps: Vec<Step>) {
        let (first, second) = (self.length(region, &a.1), self.length(region, &b.1));
        let most = self.b.add(first, second);
        let reserved = self.reserve(region.index, &steps, most, &[a.0, b.0]);
        let walkers = self.walkers(vec![a, b]);
        let (first, second) = (self.alive(&walkers[0]), self.alive(&walkers[1]));
        let both = self.b.call_in(Op::And, DType::Bool, &[first, second]);
        let name = self.program.indices[region.index.index()].clone();
        let body = self.in_block(|this| {
            let here: Vec<ExprId> = walkers.iter().map(|walker| this.here(walker)).collect();
            let lesser = |this: &mut Self| {
                let least = this.b.call_in(Op::Min, DType::I64, &here);
                let i = this.b.name(name, least);
                let present: Vec<ExprId> = here.iter().map(|c| this.same(*c, i)).collect();
                let next = this.visit_some(region, &walkers, i, &present, true, steps.clone());
                this.advance(&walkers, &present, &next);
            };
            if !is_short(&steps) {
                return lesser(this);
            }
            // Where lists agree again and again, the processor knows, and does not wait for coordinates to go on. Elsewhere
            // which one is less cannot be known, so there is no branch for that.
            let cond = this.b.call_in(Op::Eq, DType::I64, &here);
            let then = this.in_block(|this| {
                let yes = this.b.constant(Value::Bool(true));
                let next = this.visit(region, &walkers, here[0], &[yes, yes], true, steps.clone());
                this.advance(&walkers, &[yes, yes], &next);
            });
            let otherwise = this.in_block(lesser);
            this.b.emit(Stmt::If { cond, then, otherwise });
        });
        self.b.emit(Stmt::While { cond: both, body });
        for (rest, done) in [(0, 1), (1, 0)] {
            let alone = self.replace(steps.clone(), walkers[done].id, &Payload::Fill, None);
            let alone = simplify::steps(alone, self.policy);
            if !alone.is_empty() {
                let start = self.b.get(walkers[rest].cursor);
                let stepper = Stepper { start, ..walkers[rest].stepper.clone() };
                self.positions(region, walkers[rest].id, &stepper, alone);
            }
        }
        self.unreserve(reserved);
    }

    /// Coordinates that any of several lists holds: the least is next, until all are at their ends. Whoever was there goes on and looks
    /// at its next coordinate, in a branch: where lists agree again and again the processor knows, and waits for nothing.
    fn union(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, steps: Vec<Step>) {
        let mut most = self.b.int(0);
        for (_, stepper) in &steppers {
            let length = self.length(region, stepper);
            most = self.b.add(most, length);
        }
        let all: Vec<u32> = steppers.iter().map(|(id, _)| *id).collect();
        let reserved = self.reserve(region.index, &steps, most, &all);
        let walkers = self.walkers(steppers);
        let held: Vec<VarId> = walkers
            .iter()
            .map(|walker| {
                let first = self.coordinate(walker);
                self.b.variable_from("c", first)
            })
            .collect();
        let here: Vec<ExprId> = held.iter().map(|c| self.b.get(*c)).collect();
        let never = self.b.int(i64::MAX);
        let least = here.iter().copied().reduce(|a, b| self.b.call_in(Op::Min, DType::I64, &[a, b])).unwrap_or(never);
        let cond = self.b.call_in(Op::Lt, DType::I64, &[least, never]);
        let name = self.program.indices[region.index.index()].clone();
        let body = self.in_block(|this| {
            let i = this.b.name(name, least);
            let present: Vec<ExprId> = here.iter().map(|c| this.same(*c, i)).collect();
            let next = this.visit_some(region, &walkers, i, &present, false, steps);
            for (((walker, c), cond), next) in walkers.iter().zip(&held).zip(present).zip(next) {
                let then = this.in_block(|this| {
                    this.b.assign(walker.cursor, next);
                    let coordinate = this.coordinate(walker);
                    this.b.assign(*c, coordinate);
                });
                this.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
            }
        });
        self.unreserve(reserved);
        self.b.emit(Stmt::While { cond, body });
    }

    /// Coordinates that all walkers hold that are needed; the others follow.
    fn intersect(
        &mut self,
        region: Region,
        steppers: Vec<(u32, Stepper)>,
        needed: &[u32],
        steps: Vec<Step>,
        advance: Advance,
    ) {
        // As many as one has that is needed.
        let first = steppers.iter().find(|(id, _)| needed.first() == Some(id));
        let most = match first {
            Some((_, stepper)) => self.length(region, &stepper.clone()),
            None => self.b.int(0),
        };
        let reserved = self.reserve(region.index, &steps, most, needed.get(..1).unwrap_or_default());
        let walkers = self.walkers(steppers);
        let leads: Vec<bool> = walkers.iter().map(|w| needed.contains(&w.id)).collect();
        let alive: Vec<ExprId> =
            walkers.iter().zip(&leads).filter(|(_, leads)| **leads).map(|(walker, _)| self.alive(walker)).collect();
        let cond = alive.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
        let name = self.program.indices[region.index.index()].clone();
        let yes = self.b.constant(Value::Bool(true));
        let body = self.in_block(|this| {
            // The loop goes on only while those that are needed are not at their ends; others are not looked at before they have caught up.
            let mut coordinates: Vec<ExprId> = Vec::new();
            for (walker, leads) in walkers.iter().zip(&leads) {
                coordinates.push(if *leads { this.here(walker) } else { yes });
            }
            let searching = advance == Advance::Search && needed.len() > 1;
            let pick = if searching { Op::Max } else { Op::Min };
            let leading = || (0..walkers.len()).filter(|k| leads[*k]);
            let next = leading().map(|k| coordinates[k]).reduce(|a, b| this.b.call_in(pick, DType::I64, &[a, b]));
            let zero = this.b.int(0);
            let i = this.b.name(name, next.unwrap_or(zero));
            // Walkers that only follow are brought up to the coordinate.
            for k in (0..walkers.len()).filter(|k| !leads[*k]) {
                this.catch_up(&walkers[k], i, advance);
                let coordinate = this.coordinate(&walkers[k]);
                coordinates[k] = this.b.name("c", coordinate);
            }
            let present: Vec<ExprId> = coordinates.iter().map(|c| this.same(*c, i)).collect();
            if needed.len() < 2 {
                let next = this.visit_some(region, &walkers, i, &present, false, steps);
                return this.advance(&walkers, &present, &next);
            }
            let agree = leading().map(|k| present[k]).reduce(|a, b| this.b.call_in(Op::And, DType::Bool, &[a, b]));
            let agree = agree.unwrap_or(yes);
            let certain: Vec<ExprId> = (0..walkers.len()).map(|k| if leads[k] { yes } else { present[k] }).collect();
            let mut next = Vec::new();
            let mut then = this.in_block(|this| next = this.visit(region, &walkers, i, &certain, false, steps));
            // What only adds to a variable can do without a branch, so going on does without one, too. Otherwise, where lists agree
            // again and again, the processor knows, and does not wait for coordinates to go on.
            let grouped = walkers.iter().any(|w| w.stepper.grouped);
            let adds = then.iter().all(|stmt| matches!(stmt, Stmt::Let { .. } | Stmt::Assign { .. }));
            let apart = adds && !searching && !grouped;
            if !apart {
                then.extend(this.in_block(|this| this.advance(&walkers, &certain, &next)));
            }
            let otherwise = this.in_block(|this| {
                for k in leading() {
                    if searching {
                        this.catch_up(&walkers[k], i, advance);
                    } else if !apart {
                        this.move_on(&walkers[k], present[k]);
                    }
                }
            });
            this.b.emit(Stmt::If { cond: agree, then, otherwise });
            if apart {
                // Whoever was at the coordinate moves on, whether or not the others were.
                (0..walkers.len()).for_each(|k| this.move_on(&walkers[k], present[k]));
            }
        });
        self.unreserve(reserved);
        if let Some(cond) = cond {
            self.b.emit(Stmt::While { cond, body });
        }
    }
}

/// Whether steps are few, and without loops: what is cheap to have twice.
fn is_short(steps: &[Step]) -> bool {
    steps.len() <= 2 && steps.iter().all(|step| matches!(step, Step::Let(..) | Step::Assign(..)))
}
