//! Loop order search: finds the cheapest loop order and the conversions that it requires.
//! Depth-first branch and bound, the most promising index first: a prefix is pruned if it already
//! costs more than the best order found. The search is exact for few loops; for many, it stops
//! after a fixed number of steps.

use super::model::Costs;
use super::sets::{OperandAccess, Set};
use crate::schedule::insert::LARGEST_DENSE;
use std::fmt;

/// The search problem of a statement. Loops are numbered; sets of loops are bit masks.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The index names of the loops.
    pub indices: Vec<String>,
    /// Their extents.
    pub extents: Vec<f64>,
    /// The loops that subscript the target.
    pub free: u32,
    /// The accesses that are read.
    pub places: Vec<OperandAccess>,
    /// The iteration space.
    pub set: Set,
    /// True if the constant background also contributes to the reduction, as zeros do to a maximum:
    /// one step per run, but for every element of the target.
    pub everywhere: bool,
    /// The number of operations per point.
    pub operations: f64,
    /// The loops of the target's dimensions; none for an affine subscript.
    pub target: Vec<Option<usize>>,
    /// True if the target is dense.
    pub dense: bool,
    /// The expected nnz of the target.
    pub expected: f64,
    /// The required storage order of the target.
    pub stored: Option<Vec<usize>>,
}

/// The cost of a loop order, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Cost {
    pub compute: f64,
    pub workspace: f64,
    pub convert: f64,
}

impl Cost {
    /// The total.
    pub fn total(&self) -> f64 {
        self.compute + self.workspace + self.convert
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3e}", self.total())?;
        let mut parts = Vec::new();
        for (name, part) in [("workspace", self.workspace), ("conversion", self.convert)] {
            if part > 0.0 {
                parts.push(format!("{name} {part:.1e}"));
            }
        }
        if parts.is_empty() { Ok(()) } else { write!(f, " ({})", parts.join(", ")) }
    }
}

/// The write strategy of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Writing {
    /// Appended in storage order, or written by random access to a dense target.
    InOrder,
    /// Through a dense workspace of one dimension.
    DenseWorkspace,
    /// Through a sparse workspace.
    SparseWorkspace,
}

/// A loop order and its consequences.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Choice {
    pub order: Vec<usize>,
    pub cost: Cost,
    /// Discordant accesses, each with the storage order that would be concordant.
    pub conversions: Vec<(usize, Vec<usize>)>,
    pub writing: Writing,
    /// The number of executions of each loop body, outermost first.
    pub trips: Vec<f64>,
}

/// The step budget of the search.
const PATIENCE: usize = 4000;

impl Problem {
    /// The best order and the runners-up, best first. `pinned`: loops that come first.
    pub fn search(&self, costs: &Costs, pinned: &[usize]) -> Vec<Choice> {
        let mut search = OrderSearch { problem: self, costs, found: Vec::new(), left: PATIENCE };
        let mut state = OrderState { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        for index in pinned {
            search.step(&mut state, *index);
        }
        search.deepen(&state);
        search.found.sort_by(|a, b| a.cost.total().total_cmp(&b.cost.total()));
        search.found
    }

    /// [`Problem::search`] with optional conversions of operands to a dense outermost level, which
    /// gives random access instead of search or co-iteration. Also returns the solved problem.
    pub fn search_formats(&self, costs: &Costs, pinned: &[usize]) -> (Problem, Vec<Choice>) {
        let cost = |found: &[Choice]| found.first().map_or(f64::INFINITY, |choice| choice.cost.total());
        let mut best = (self.clone(), self.search(costs, pinned));
        let first = |k: usize| self.places.iter().position(|place| place.tensor == self.places[k].tensor) == Some(k);
        let listed: Vec<usize> = (0..self.places.len()).filter(|k| first(*k) && !self.places[*k].mask).collect();
        // Conversions are added greedily, then removed where a later one made them useless.
        for (k, there) in listed.iter().map(|k| (*k, true)).chain(listed.iter().map(|k| (*k, false))) {
            let Some(dense) = self.places[k].operand.with_dense_outside() else { continue };
            if self.places[k].kept || best.0.places[k].relaid == there {
                continue;
            }
            let mut other = best.0.clone();
            for place in other.places.iter_mut().filter(|place| place.tensor == self.places[k].tensor) {
                place.operand = if there { dense.clone() } else { self.places[k].operand.clone() };
                place.relaid = there;
            }
            let found = other.search(costs, pinned);
            if cost(&found) < cost(&best.1) {
                best = (other, found);
            }
        }
        best
    }

    /// The cost of the steps of these loops, without their bodies.
    pub fn steps(&self, costs: &Costs, order: &[usize]) -> f64 {
        let search = OrderSearch { problem: self, costs, found: Vec::new(), left: 0 };
        let mut state = OrderState { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        order.iter().for_each(|index| search.step(&mut state, *index));
        state.compute
    }

    /// The number of executions of the body of each of these loops, outermost first.
    pub fn trips(&self, costs: &Costs, order: &[usize]) -> Vec<f64> {
        let search = OrderSearch { problem: self, costs, found: Vec::new(), left: 0 };
        let mut state = OrderState { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        order.iter().for_each(|index| search.step(&mut state, *index));
        state.trips.split_off(1)
    }

    /// The number of iterations of a set of loops.
    pub fn points(&self, bound: u32) -> f64 {
        let cells: f64 = (0..self.extents.len()).filter(|k| bound & 1 << k != 0).map(|k| self.extents[k]).product();
        cells * self.set.likely(bound, &self.places)
    }

    /// All loops.
    pub fn all(&self) -> u32 {
        (0..self.indices.len()).fold(0, |mask, k| mask | 1 << k)
    }
}

#[derive(Clone)]
struct OrderState {
    order: Vec<usize>,
    bound: u32,
    trips: Vec<f64>,
    compute: f64,
}

struct OrderSearch<'a> {
    problem: &'a Problem,
    costs: &'a Costs,
    found: Vec<Choice>,
    left: usize,
}

impl OrderSearch<'_> {
    fn step(&self, state: &mut OrderState, index: usize) {
        let Problem { extents, places, set, .. } = self.problem;
        let outer = state.trips[state.trips.len() - 1];
        let all = self.problem.everywhere && self.problem.free & 1 << index != 0;
        let steps = set.steps(state.bound, index as u32, extents[index], places, self.costs).filter(|_| !all);
        state.bound |= 1 << index;
        let innermost = state.bound == self.problem.all();
        let (count, cost) =
            steps.unwrap_or_else(|| (extents[index], extents[index] * self.dense_step(index, innermost)));
        state.compute += outer * (self.costs.start + cost);
        // A loop over a coordinate list is bounded by the length of the list.
        let likely = if all { f64::INFINITY } else { self.problem.points(state.bound) };
        state.trips.push(if steps.is_none() { likely.min(outer * count) } else { likely.min(outer * count.max(1.0)) });
        state.order.push(index);
    }

    /// The cost of an iteration of a dense loop.
    fn dense_step(&self, index: usize, innermost: bool) -> f64 {
        if !innermost {
            return self.costs.dense_step;
        }
        // Random accesses to a cached operand are cheap.
        let jump = |elements: f64| if elements > self.costs.cache { self.costs.stride } else { self.costs.hop };
        let mut strided = 0.0;
        for place in self.problem.places.iter().filter(|place| !place.mask) {
            let order = place.operand.order();
            let last = order.last().map(|d| place.dims[*d]);
            let used = place.dims.iter().any(|mask| mask & 1 << index != 0);
            if used && last.is_none_or(|mask| mask & 1 << index == 0) {
                strided += jump(place.operand.entries);
            }
        }
        let target = &self.problem.target;
        let last = match &self.problem.stored {
            Some(stored) => stored.last().and_then(|d| target.get(*d)),
            None => target.last(),
        };
        if target.contains(&Some(index)) && last != Some(&Some(index)) && self.problem.dense {
            strided += jump(self.problem.expected);
        }
        if strided == 0.0 { self.costs.vector_step } else { self.costs.dense_step + strided }
    }

    fn deepen(&mut self, state: &OrderState) {
        if state.order.len() == self.problem.indices.len() {
            let choice = self.finish(state);
            self.found.push(choice);
            return;
        }
        let mut next: Vec<OrderState> = Vec::new();
        for index in (0..self.problem.indices.len()).filter(|k| state.bound & 1 << k == 0) {
            let mut with = state.clone();
            self.step(&mut with, index);
            next.push(with);
        }
        // Ordered by the remaining number of points: the most selective index first.
        let key = |s: &OrderState| s.trips[s.trips.len() - 1] + s.compute;
        next.sort_by(|a, b| key(a).total_cmp(&key(b)));
        for state in next {
            if self.left == 0 && !self.found.is_empty() {
                return;
            }
            self.left = self.left.saturating_sub(1);
            let best = self.found.iter().map(|choice| choice.cost.total()).fold(f64::INFINITY, f64::min);
            if state.compute <= best * KEPT {
                self.deepen(&state);
            }
        }
    }

    fn finish(&self, state: &OrderState) -> Choice {
        let (problem, costs) = (self.problem, self.costs);
        let points = state.trips[state.trips.len() - 1];
        let innermost = state.order.last().copied();
        let dense_inner = innermost.is_some_and(|index| {
            let before = state.bound & !(1 << index);
            let all = problem.everywhere && problem.free & 1 << index != 0;
            all || problem.set.steps(before, index as u32, problem.extents[index], &problem.places, costs).is_none()
        });
        let vector = dense_inner && innermost.is_some_and(|k| self.dense_step(k, true) == costs.vector_step);
        let each =
            problem.operations * costs.operation * if vector { costs.vector_step / costs.dense_step } else { 1.0 };
        let mut compute = state.compute + points * each;
        let writes = innermost.is_some_and(|k| problem.free & 1 << k != 0) && problem.free != problem.all();
        if writes {
            compute += points * costs.update * if vector { costs.vector_step / costs.dense_step } else { 1.0 };
        }
        let (writing, workspace) = self.writing(&state.order, points, vector);
        let mut convert = 0.0;
        let mut conversions = Vec::new();
        let listed = problem.places.iter().enumerate().filter(|(_, place)| !place.operand.is_dense() && !place.mask);
        for (k, place) in listed {
            let stored = place.operand.order();
            let when = |d: &usize| {
                state.order.iter().rposition(|index| place.dims[*d] & 1 << index != 0).map_or(0, |at| at + 1)
            };
            if stored.windows(2).all(|pair| when(&pair[0]) <= when(&pair[1])) {
                if place.relaid {
                    convert += costs.relay * place.operand.entries + costs.vector_step * place.operand.shape[stored[0]];
                    conversions.push((k, stored));
                }
                continue;
            }
            if !place.operand.is_plain() {
                // A divided dimension: elements are searched for.
                compute += points * costs.stride * 4.0;
                continue;
            }
            let mut wanted = stored.clone();
            wanted.sort_by_key(|d| when(d));
            let again = conversions.iter().any(|(other, order)| {
                let other: &OperandAccess = &problem.places[*other];
                other.tensor == place.tensor && *order == wanted
            });
            if !again {
                let longest = place.operand.shape.iter().copied().fold(0.0, f64::max);
                convert += costs.convert * place.operand.entries + costs.dense_step * longest;
            }
            if place.kept {
                convert = f64::INFINITY;
            }
            conversions.push((k, wanted));
        }
        Choice {
            order: state.order.clone(),
            cost: Cost { compute, workspace, convert },
            conversions,
            writing,
            trips: state.trips[1..].to_vec(),
        }
    }

    /// The write strategy of the target and its cost beyond computing the elements. `vector`: the
    /// innermost loop is vectorised.
    fn writing(&self, order: &[usize], points: f64, vector: bool) -> (Writing, f64) {
        let (problem, costs) = (self.problem, self.costs);
        if problem.dense || problem.target.is_empty() {
            return (Writing::InOrder, 0.0);
        }
        let free = |k: &usize| problem.free & 1 << k != 0;
        let mut hoisted = order.iter().take_while(|k| free(k)).count();
        let all_free = order.iter().filter(|k| free(k)).count();
        if let Some(stored) = &problem.stored {
            // Appending only holds for the prefix of loops in storage order.
            let wanted: Vec<Option<usize>> = stored.iter().map(|d| problem.target[*d]).collect();
            hoisted = order.iter().zip(&wanted).take(hoisted).take_while(|(k, w)| Some(**k) == **w).count();
        }
        let append = costs.append * problem.expected;
        let left: Vec<usize> = order[hoisted..].iter().filter(|k| free(k)).copied().collect();
        if hoisted == all_free {
            return (Writing::InOrder, append);
        }
        let outer = if hoisted == 0 { 1.0 } else { problem.points(order[..hoisted].iter().fold(0, |m, k| m | 1 << k)) };
        if let [only] = left[..]
            && problem.extents[only] <= LARGEST_DENSE as f64
        {
            // Its allocation is a fixed cost, however few elements pass through it.
            let made = problem.extents[only] * costs.vector_step;
            let together =
                if vector && order.last() == Some(&only) { costs.vector_step / costs.dense_step } else { 1.0 };
            let through = costs.dense_workspace * together * points;
            return (Writing::DenseWorkspace, through + append + outer * costs.start + made);
        }
        let each = (points / outer.max(1.0)).max(2.0);
        (Writing::SparseWorkspace, points * (costs.insert + costs.sort * each.log2()) + append)
    }
}

/// Orders that cost up to this factor more than the best are kept as alternatives.
const KEPT: f64 = 1.0;
