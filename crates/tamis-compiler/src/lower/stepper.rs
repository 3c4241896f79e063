//! Steppers: lists of coordinates, alone or together.
//!
//! - One list, and nothing to do between its coordinates: a loop over positions.
//! - Several lists, and something that is needed of each of some: advance until those agree.
//! - Several lists, none of them needed: the least coordinate is next, until all are at their ends.
//! - Something to do everywhere: a loop over all coordinates, with the lists following.

use super::Lowerer;
use super::node::{Node, Step, visit_steps};
use super::region::{Presence, Region};
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{ExprId, Hint, Stmt, VarId};
use tamis_ir::looplet::{Looplet, Payload, Stepper};

/// A stepper with its cursor.
struct Walker {
    id: u32,
    stepper: Stepper,
    cursor: VarId,
}

impl Lowerer<'_> {
    pub(super) fn steppers(&mut self, region: Region, steps: Vec<Step>) {
        let mut found: Vec<(u32, Stepper)> = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && let Some(Looplet::Stepper(stepper)) = &access.looplet
                && found.iter().all(|(id, _)| *id != access.id)
            {
                found.push((access.id, stepper.clone()));
            }
        });
        let without = |this: &mut Self, ids: &[u32]| {
            let mut rest = steps.clone();
            for id in ids {
                rest = this.replace(rest, *id, &Payload::Fill, None);
            }
            simplify::steps(rest).is_empty()
        };
        let all: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        let gaps_are_empty = without(self, &all);
        let clipped: Vec<(u32, Stepper)> = found.into_iter().map(|(id, s)| (id, self.clip(region, s))).collect();
        match (&clipped[..], gaps_are_empty) {
            ([(id, stepper)], true) if !stepper.grouped => self.positions(region, *id, stepper, steps),
            (_, false) => self.everywhere(region, clipped, steps),
            _ => {
                let needed: Vec<u32> = all.iter().copied().filter(|id| without(self, &[*id])).collect();
                self.together(region, clipped, &needed, steps);
            }
        }
    }

    /// A stepper's positions inside the region.
    fn clip(&mut self, region: Region, stepper: Stepper) -> Stepper {
        if region.whole {
            return stepper;
        }
        let start = self.b.search("from", stepper.coordinates, stepper.start, stepper.stop, region.start);
        let stop = self.b.search("to", stepper.coordinates, start, stepper.stop, region.stop);
        Stepper { start, stop, ..stepper }
    }

    fn positions(&mut self, region: Region, id: u32, stepper: &Stepper, steps: Vec<Step>) {
        let var = self.b.new_var("q", DType::I64, false);
        let q = self.b.get(var);
        let name = self.program.indices[region.index.index()].clone();
        let coordinate = self.b.load(stepper.coordinates, q);
        let index = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(index);
        let child = self.below(stepper.below, q, i);
        let steps = self.replace(steps, id, &Payload::Child(child), None);
        let mut body = vec![Stmt::Let { var: index, value: coordinate }];
        body.extend(self.at(region.index, i, steps));
        if body.len() > 1 {
            self.b.emit(Stmt::For { var, start: stepper.start, stop: stepper.stop, body, hint: Hint::default() });
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
        self.b.call_in(Op::Lt, DType::I64, &[q, walker.stepper.stop])
    }

    /// The walker's coordinate, or one past all coordinates at its end.
    fn coordinate(&mut self, walker: &Walker) -> ExprId {
        let (alive, q) = (self.alive(walker), self.b.get(walker.cursor));
        let here = self.b.load(walker.stepper.coordinates, q);
        let never = self.b.int(i64::MAX);
        self.b.call_in(Op::Select, DType::I64, &[alive, here, never])
    }

    /// The body at coordinate `i`, where each walker is present under its condition, and what moves the walkers on.
    fn visit(&mut self, region: Region, walkers: &[Walker], i: ExprId, present: &[ExprId], steps: Vec<Step>) {
        let mut steps = steps;
        let mut ends = Vec::new();
        for (walker, cond) in walkers.iter().zip(present) {
            let q = self.b.get(walker.cursor);
            // The body must not see the cursor move.
            let here = self.b.name("here", q);
            let group_stop = walker.stepper.grouped.then(|| self.group_end(walker, here, i));
            ends.push(group_stop);
            let child = self.below(walker.stepper.below, here, i);
            let presence = Presence { cond: Some(*cond).filter(|c| self.b.as_constant(*c).is_none()), group_stop };
            steps = self.replace(steps, walker.id, &Payload::Child(child), Some(presence));
        }
        let block = self.at(region.index, i, steps);
        block.into_iter().for_each(|stmt| self.b.emit(stmt));
        for ((walker, cond), end) in walkers.iter().zip(present).zip(ends) {
            let q = self.b.get(walker.cursor);
            let one = self.b.int(1);
            let next = match end {
                Some(end) => end,
                None => self.b.add(q, one),
            };
            let next = self.b.call_in(Op::Select, DType::I64, &[*cond, next, q]);
            self.b.assign(walker.cursor, next);
        }
    }

    /// Where the group of coordinates `i` ends that starts at `here`.
    fn group_end(&mut self, walker: &Walker, here: ExprId, i: ExprId) -> ExprId {
        let end = self.b.variable_from("end", here);
        let at = self.b.get(end);
        let inside = self.b.call_in(Op::Lt, DType::I64, &[at, walker.stepper.stop]);
        let found = self.b.load(walker.stepper.coordinates, at);
        let same = self.b.call_in(Op::Eq, DType::I64, &[found, i]);
        let cond = self.b.call_in(Op::And, DType::Bool, &[inside, same]);
        let one = self.b.int(1);
        let next = self.b.add(at, one);
        self.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: end, value: next }] });
        self.b.name("group", at)
    }

    /// All coordinates of the region, the walkers following.
    fn everywhere(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, steps: Vec<Step>) {
        let walkers = self.walkers(steppers);
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(var);
        let body = self.in_block(|this| {
            let present: Vec<ExprId> = walkers
                .iter()
                .map(|walker| {
                    let (alive, q) = (this.alive(walker), this.b.get(walker.cursor));
                    let here = this.b.load(walker.stepper.coordinates, q);
                    let same = this.b.call_in(Op::Eq, DType::I64, &[here, i]);
                    let present = this.b.call_in(Op::And, DType::Bool, &[alive, same]);
                    this.b.name("present", present)
                })
                .collect();
            this.visit(region, &walkers, i, &present, steps);
        });
        self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint: Hint::default() });
    }

    /// Coordinates that some walker holds; if any walkers are needed, those that all of them hold.
    fn together(&mut self, region: Region, steppers: Vec<(u32, Stepper)>, needed: &[u32], steps: Vec<Step>) {
        let walkers = self.walkers(steppers);
        let is_needed = |walker: &Walker| needed.contains(&walker.id);
        let mut conds = Vec::new();
        for walker in walkers.iter().filter(|w| needed.is_empty() || is_needed(w)) {
            conds.push(self.alive(walker));
        }
        let yes = self.b.constant(Value::Bool(true));
        let cond = conds.into_iter().reduce(|a, b| {
            if needed.is_empty() {
                self.b.call_in(Op::Select, DType::Bool, &[a, yes, b])
            } else {
                self.b.call_in(Op::And, DType::Bool, &[a, b])
            }
        });
        let name = self.program.indices[region.index.index()].clone();
        let body = self.in_block(|this| {
            let leading = |k: usize| needed.is_empty() || needed.contains(&walkers[k].id);
            let mut coordinates = Vec::new();
            for (k, walker) in walkers.iter().enumerate() {
                let coordinate = if !needed.is_empty() && leading(k) {
                    // The loop goes on only while it is not at its end.
                    let q = this.b.get(walker.cursor);
                    this.b.load(walker.stepper.coordinates, q)
                } else {
                    this.coordinate(walker)
                };
                coordinates.push(this.b.name("c", coordinate));
            }
            let least = (0..walkers.len())
                .filter(|k| leading(*k))
                .map(|k| coordinates[k])
                .reduce(|a, b| this.b.call_in(Op::Min, DType::I64, &[a, b]));
            let zero = this.b.int(0);
            let i = match least {
                // The one that leads is the coordinate.
                Some(least) if coordinates.contains(&least) => least,
                least => this.b.name(name, least.unwrap_or(zero)),
            };
            // Walkers that only follow are brought up to the coordinate.
            for (k, walker) in walkers.iter().enumerate().filter(|(k, _)| !leading(*k)) {
                let (alive, q) = (this.alive(walker), this.b.get(walker.cursor));
                let here = this.b.load(walker.stepper.coordinates, q);
                let behind = this.b.call_in(Op::Lt, DType::I64, &[here, i]);
                let cond = this.b.call_in(Op::And, DType::Bool, &[alive, behind]);
                let one = this.b.int(1);
                let next = this.b.add(q, one);
                this.b.emit(Stmt::While { cond, body: vec![Stmt::Assign { var: walker.cursor, value: next }] });
                let coordinate = this.coordinate(walker);
                coordinates[k] = this.b.name("c", coordinate);
            }
            let present: Vec<ExprId> = coordinates
                .iter()
                .map(|c| {
                    let same = this.b.call_in(Op::Eq, DType::I64, &[*c, i]);
                    this.b.name("present", same)
                })
                .collect();
            if needed.len() < 2 {
                this.visit(region, &walkers, i, &present, steps);
                return;
            }
            // Needed walkers that disagree: those behind move on, and nothing else happens.
            let agree = (0..walkers.len())
                .filter(|k| leading(*k))
                .map(|k| present[k])
                .reduce(|a, b| this.b.call_in(Op::And, DType::Bool, &[a, b]));
            let agree = agree.unwrap_or(yes);
            let certain: Vec<ExprId> = (0..walkers.len()).map(|k| if leading(k) { yes } else { present[k] }).collect();
            let then = this.in_block(|this| this.visit(region, &walkers, i, &certain, steps));
            let otherwise = this.in_block(|this| {
                for (k, walker) in walkers.iter().enumerate().filter(|(k, _)| leading(*k)) {
                    let q = this.b.get(walker.cursor);
                    let one = this.b.int(1);
                    let next = this.b.add(q, one);
                    let next = this.b.call_in(Op::Select, DType::I64, &[present[k], next, q]);
                    this.b.assign(walker.cursor, next);
                }
            });
            this.b.emit(Stmt::If { cond: agree, then, otherwise });
        });
        if let Some(cond) = cond {
            self.b.emit(Stmt::While { cond, body });
        }
    }

    /// Emits into a block of its own.
    fn in_block(&mut self, emit: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        let mut inner = std::mem::replace(&mut self.b, tamis_ir::kernel::Builder::new(""));
        let block = inner.block(|b| {
            std::mem::swap(&mut self.b, b);
            emit(self);
            std::mem::swap(&mut self.b, b);
        });
        self.b = inner;
        block
    }
}
