//! The order of loops: the cheapest one, with what must be converted for it.
//!
//! Orders are searched depth first, the most promising index first, and cut off where the loops chosen so far already cost more than the
//! best order found: for few loops that finds the best one, and for many a good one, as the search ends after so many steps.

use super::model::Costs;
use super::sets::{Place, Set};
use crate::schedule::insert::LARGEST_DENSE;
use std::fmt;

/// A statement as the search sees it. Loops are numbered; sets of them are bits.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The names of the loops.
    pub indices: Vec<String>,
    /// How far they go.
    pub extents: Vec<f64>,
    /// Those that subscript the target.
    pub free: u32,
    /// What is read.
    pub places: Vec<Place>,
    /// Where something is to be computed.
    pub set: Set,
    /// Whether what is reduced elsewhere counts, too, as zeros do for a maximum: a stretch of it is done at once, but for every
    /// element of the target.
    pub everywhere: bool,
    /// How many operations a point takes.
    pub operations: f64,
    /// The loops of the target's dimensions; nothing for one that is a sum.
    pub target: Vec<Option<usize>>,
    /// Whether the target is dense.
    pub dense: bool,
    /// How many elements of the target are expected.
    pub expected: f64,
    /// The format that the target must have, as the order of its dimensions.
    pub stored: Option<Vec<usize>>,
}

/// What an order costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Cost {
    pub compute: f64,
    pub workspace: f64,
    pub convert: f64,
}

impl Cost {
    /// All of it.
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

/// How the elements of a target come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Writing {
    /// In the order in which they are stored, or anywhere in something dense.
    InOrder,
    /// Through a dense workspace of one dimension.
    DenseWorkspace,
    /// Through a sparse workspace.
    SparseWorkspace,
}

/// An order, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Choice {
    pub order: Vec<usize>,
    pub cost: Cost,
    /// Accesses that are stored in another order, and the one that suits.
    pub conversions: Vec<(usize, Vec<usize>)>,
    pub writing: Writing,
    /// How often the body of each loop runs, outermost first.
    pub trips: Vec<f64>,
}

/// So many loops are tried before the best order so far is taken.
const PATIENCE: usize = 4000;

impl Problem {
    /// The best order, and the next best ones that were looked at, best first. `pinned` are loops that come first.
    pub fn search(&self, costs: &Costs, pinned: &[usize]) -> Vec<Choice> {
        let mut search = Search { problem: self, costs, found: Vec::new(), left: PATIENCE };
        let mut state = State { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        for index in pinned {
            search.step(&mut state, *index);
        }
        search.deepen(&state);
        search.found.sort_by(|a, b| a.cost.total().total_cmp(&b.cost.total()));
        search.found
    }

    /// [`Problem::search`], where operands whose outermost level is a list may be converted to have all of its coordinates: what lies
    /// below is found at once then, and not by searching or merging. Gives the problem that was solved, too.
    pub fn search_formats(&self, costs: &Costs, pinned: &[usize]) -> (Problem, Vec<Choice>) {
        let cost = |found: &[Choice]| found.first().map_or(f64::INFINITY, |choice| choice.cost.total());
        let mut best = (self.clone(), self.search(costs, pinned));
        let first = |k: usize| self.places.iter().position(|place| place.tensor == self.places[k].tensor) == Some(k);
        let listed: Vec<usize> = (0..self.places.len()).filter(|k| first(*k) && !self.places[*k].mask).collect();
        // One after the other; and back, where another conversion has made one useless.
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

    /// What the steps of these loops cost, without what is done inside of them.
    pub fn steps(&self, costs: &Costs, order: &[usize]) -> f64 {
        let search = Search { problem: self, costs, found: Vec::new(), left: 0 };
        let mut state = State { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        order.iter().for_each(|index| search.step(&mut state, *index));
        state.compute
    }

    /// How often the body of each of these loops runs, outermost first.
    pub fn trips(&self, costs: &Costs, order: &[usize]) -> Vec<f64> {
        let search = Search { problem: self, costs, found: Vec::new(), left: 0 };
        let mut state = State { order: Vec::new(), bound: 0, trips: vec![1.0], compute: 0.0 };
        order.iter().for_each(|index| search.step(&mut state, *index));
        state.trips.split_off(1)
    }

    /// How often all of these loops run together.
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
struct State {
    order: Vec<usize>,
    bound: u32,
    trips: Vec<f64>,
    compute: f64,
}

struct Search<'a> {
    problem: &'a Problem,
    costs: &'a Costs,
    found: Vec<Choice>,
    left: usize,
}

impl Search<'_> {
    fn step(&self, state: &mut State, index: usize) {
        let Problem { extents, places, set, .. } = self.problem;
        let outer = state.trips[state.trips.len() - 1];
        let all = self.problem.everywhere && self.problem.free & 1 << index != 0;
        let steps = set.steps(state.bound, index as u32, extents[index], places, self.costs).filter(|_| !all);
        state.bound |= 1 << index;
        let innermost = state.bound == self.problem.all();
        let (count, cost) =
            steps.unwrap_or_else(|| (extents[index], extents[index] * self.dense_step(index, innermost)));
        state.compute += outer * (self.costs.start + cost);
        // A loop over a list goes no further than the list is long, whatever is likely.
        let likely = if all { f64::INFINITY } else { self.problem.points(state.bound) };
        state.trips.push(if steps.is_none() { likely.min(outer * count) } else { likely.min(outer * count.max(1.0)) });
        state.order.push(index);
    }

    /// What a step costs of a loop over all coordinates.
    fn dense_step(&self, index: usize, innermost: bool) -> f64 {
        if !innermost {
            return self.costs.dense_step;
        }
        // What lies in the cache may be taken from anywhere.
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

    fn deepen(&mut self, state: &State) {
        if state.order.len() == self.problem.indices.len() {
            let choice = self.finish(state);
            self.found.push(choice);
            return;
        }
        let mut next: Vec<State> = Vec::new();
        for index in (0..self.problem.indices.len()).filter(|k| state.bound & 1 << k == 0) {
            let mut with = state.clone();
            self.step(&mut with, index);
            next.push(with);
        }
        // By how many points are left to visit: what is selective goes first.
        let key = |s: &State| s.trips[s.trips.len() - 1] + s.compute;
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

    fn finish(&self, state: &State) -> Choice {
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
                // Stored in parts: elements are searched for.
                compute += points * costs.stride * 4.0;
                continue;
            }
            let mut wanted = stored.clone();
            wanted.sort_by_key(|d| when(d));
            let again = conversions.iter().any(|(other, order)| {
                let other: &Place = &problem.places[*other];
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

    /// How the target is written, and what that costs beyond computing its elements, where the innermost loop computes neighbours together
    /// or does not.
    fn writing(&self, order: &[usize], points: f64, vector: bool) -> (Writing, f64) {
        let (problem, costs) = (self.problem, self.costs);
        if problem.dense || problem.target.is_empty() {
            return (Writing::InOrder, 0.0);
        }
        let free = |k: &usize| problem.free & 1 << k != 0;
        let mut hoisted = order.iter().take_while(|k| free(k)).count();
        let all_free = order.iter().filter(|k| free(k)).count();
        if let Some(stored) = &problem.stored {
            // Only as far as the loops go in the order of storage.
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
            // It is made once, however little goes through it.
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

/// Orders that cost up to so many times as much as the best are still looked at, to be shown.
const KEPT: f64 = 1.0;
