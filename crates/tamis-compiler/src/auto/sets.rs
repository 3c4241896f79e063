//! Iteration spaces: the set of coordinates where an expression differs from its constant
//! background, as intersections and unions of operand patterns.

use super::model::Costs;
use super::operand::OperandStatistics;
use crate::lower::bind::is_grouped;
use tamis_ir::DType;
use tamis_ir::Value;
use tamis_ir::algebra::{Op, eval};
use tamis_ir::notation::{same_all, text};
use tamis_ir::text::syntax::{Expr, ExprKind};

/// A set of coordinates.
#[derive(Clone, Debug, PartialEq)]
pub enum Set {
    /// All of them.
    All,
    /// None.
    Nothing,
    /// The stored coordinates of an access.
    Stored(usize),
    /// An intersection.
    And(Vec<Set>),
    /// A union.
    Or(Vec<Set>),
}

/// An access of the statement: an operand and its subscripts.
#[derive(Clone, Debug)]
pub struct OperandAccess {
    /// The tensor's name.
    pub tensor: String,
    /// Its subscripts.
    pub subscripts: Vec<Expr>,
    /// The statistics of the tensor.
    pub operand: OperandStatistics,
    /// For each dimension, the loops whose indices occur in its subscript, as a bit mask.
    pub dims: Vec<u32>,
    /// True if the statistics describe a hypothetical conversion of the operand.
    pub relaid: bool,
    /// True if conversion is forbidden.
    pub kept: bool,
    /// True if it is a mask: a comparison of indices.
    pub mask: bool,
    /// The extents of all loops of the statement.
    pub extents: Vec<f64>,
}

/// The set where an expression differs from a constant, and that constant.
pub fn differs(expr: &Expr, places: &[OperandAccess]) -> (Set, Option<Value>) {
    match &expr.kind {
        ExprKind::Number(value) => (Set::Nothing, Some(*value)),
        ExprKind::Name(name) => of_access(name, &[], places),
        ExprKind::Index { base, subscripts } => of_access(&base.text, subscripts, places),
        ExprKind::Operator(Op::Eq, operands) if places.iter().any(|p| p.mask && same_all(&p.subscripts, operands)) => {
            of_access(&text(expr), operands, places)
        }
        ExprKind::Operator(op, operands) => combine(*op, operands, places),
        ExprKind::Call { function, args, .. } => match Op::named(&function.text) {
            Some(op) => combine(op, args, places),
            None => (Set::All, None),
        },
        _ => (Set::All, None),
    }
}

fn of_access(tensor: &str, subscripts: &[Expr], places: &[OperandAccess]) -> (Set, Option<Value>) {
    let found = places.iter().position(|place| place.tensor == tensor && same_all(&place.subscripts, subscripts));
    match found.map(|k| (k, places[k].operand.background())) {
        Some((k, Some(fill))) => (Set::Stored(k), Some(fill)),
        _ => (Set::All, None),
    }
}

fn combine(op: Op, operands: &[Expr], places: &[OperandAccess]) -> (Set, Option<Value>) {
    combined(op, operands.iter().map(|e| differs(e, places)).collect())
}

/// The set where an operator application differs from a constant, given the sets of its operands.
pub(super) fn combined(op: Op, parts: Vec<(Set, Option<Value>)>) -> (Set, Option<Value>) {
    let info = op.info();
    let operand = op.operand_type(DType::F64);
    if parts.len() == 2 {
        let absorbed = |k: usize| parts[k].1.and_then(|fill| info.absorbed(operand, k, fill));
        match (absorbed(0), absorbed(1)) {
            (Some(result), None) => return (parts[0].0.clone(), Some(result)),
            (None, Some(result)) => return (parts[1].0.clone(), Some(result)),
            (Some(a), Some(b)) if a.same_number(b) => {
                return (and(parts.into_iter().map(|(set, _)| set).collect()), Some(a));
            }
            // Both infinities are tried as annihilators.
            (Some(a), Some(_)) => return (or(parts.into_iter().map(|(set, _)| set).collect()), Some(a)),
            (None, None) => {}
        }
    }
    let constants: Option<Vec<Value>> = parts.iter().map(|(_, value)| value.map(|v| v.cast(DType::F64))).collect();
    match constants {
        Some(values) if !matches!(op, Op::User(_) | Op::Cast(_)) => {
            let value = eval(op, DType::F64, &values);
            (or(parts.into_iter().map(|(set, _)| set).collect()), Some(value))
        }
        _ => (Set::All, None),
    }
}

/// The intersection of sets, simplified.
pub fn and(sets: Vec<Set>) -> Set {
    let mut flat = Vec::new();
    for set in sets {
        match set {
            Set::And(inner) => flat.extend(inner),
            Set::All => {}
            other => flat.push(other),
        }
    }
    flat.dedup();
    match flat.len() {
        0 => Set::All,
        1 => flat.remove(0),
        _ if flat.contains(&Set::Nothing) => Set::Nothing,
        _ => Set::And(flat),
    }
}

/// The union of sets, simplified.
pub fn or(sets: Vec<Set>) -> Set {
    let mut flat = Vec::new();
    for set in sets {
        match set {
            Set::Or(inner) => flat.extend(inner),
            Set::Nothing => {}
            other => flat.push(other),
        }
    }
    flat.dedup();
    match flat.len() {
        0 => Set::Nothing,
        1 => flat.remove(0),
        _ if flat.contains(&Set::All) => Set::All,
        _ => Set::Or(flat),
    }
}

impl Set {
    /// The probability that coordinates of the loops `bound` are in the projection of the set.
    pub fn likely(&self, bound: u32, places: &[OperandAccess]) -> f64 {
        match self {
            Set::All => 1.0,
            Set::Nothing => 0.0,
            Set::Stored(k) => {
                let place = &places[*k];
                let dims = place.bound(bound);
                let cells: f64 = place.cells(dims);
                if cells <= 0.0 {
                    return 0.0;
                }
                (place.operand.distinct(dims) / cells).min(1.0) * place.meets(bound)
            }
            Set::And(sets) => independent(sets, bound, places).map(|set| set.likely(bound, places)).product(),
            Set::Or(sets) => 1.0 - sets.iter().map(|set| 1.0 - set.likely(bound, places)).product::<f64>(),
        }
    }

    /// The number of steps of the loop `index` per iteration of the outer loops, and their cost;
    /// none if the loop is dense.
    pub fn steps(
        &self,
        bound: u32,
        index: u32,
        extent: f64,
        places: &[OperandAccess],
        costs: &Costs,
    ) -> Option<(f64, f64)> {
        match self {
            Set::All => None,
            Set::Nothing => Some((0.0, 0.0)),
            Set::Stored(k) => {
                let place = &places[*k];
                let with = bound | 1 << index;
                let (before, after) = (place.bound(bound), place.bound(with));
                let fewer = place.meets(with) / place.meets(bound).max(1e-12);
                if before == after {
                    // Only non-empty windows are visited; the cursor of each list below advances
                    // with them. If the outer levels are not iterated yet, all windows are visited
                    // and searched.
                    return place.opens(bound, index).map(|opened| {
                        let (each, visited) = (costs.list_step * costs.pieces, extent * fewer.min(1.0));
                        match opened {
                            ListAccess::AtHand => (visited, visited * each),
                            ListAccess::Together(lists) => (visited, visited * (each + lists * costs.list_step)),
                            ListAccess::Searched(lists) => (extent, extent * lists * (each + costs.hop)),
                        }
                    });
                }
                if !place.lists(before, after) {
                    return None;
                }
                let (above, below) = (place.operand.distinct(before), place.operand.distinct(after));
                let (n, share) = (place.cells(after & !before), if above > 0.0 { below / above } else { 0.0 });
                // A window covers a part of the list.
                let steps = share.min(n) * (extent / n.max(1.0)).min(1.0) * fewer.max(1.0);
                let walked = place.walked(before, after) * (steps / share.max(1e-12)).min(1.0);
                Some((steps, steps * place.step(before, after, costs) + walked * costs.list_step))
            }
            Set::And(sets) => {
                let lists: Vec<(f64, f64)> = independent(sets, bound | 1 << index, places)
                    .filter_map(|set| set.steps(bound, index, extent, places, costs))
                    .collect();
                match lists.len() {
                    0 => None,
                    1 => Some(lists[0]),
                    _ => Some(merged(until_first_end(&lists), costs)),
                }
            }
            Set::Or(sets) => {
                let here = self.likely(bound, places);
                let mut lists = Vec::new();
                for set in sets {
                    let (steps, cost) = set.steps(bound, index, extent, places, costs)?;
                    let there = if here > 0.0 { (set.likely(bound, places) / here).min(1.0) } else { 0.0 };
                    lists.push((steps * there, cost * there));
                }
                Some(merged(lists.into_iter(), costs))
            }
        }
    }
}

/// The coordinate lists that a window loop accesses.
enum ListAccess {
    /// A single list.
    AtHand,
    /// Windows over outer levels are open: this many lists are co-iterated.
    Together(f64),
    /// This many lists are searched separately.
    Searched(f64),
}

/// The sets of an intersection without those that another one implies while these loops are bound:
/// `A[i,j]` and `A[i,k]` are one set of `i`.
fn independent<'a>(sets: &'a [Set], loops: u32, places: &'a [OperandAccess]) -> impl Iterator<Item = &'a Set> {
    let implies = move |a: &Set, b: &Set| match (a, b) {
        (Set::Stored(a), Set::Stored(b)) => places[*a].implies(&places[*b], loops),
        _ => false,
    };
    let implied = move |(k, set): (usize, &Set)| {
        let mut others = sets.iter().enumerate().filter(|(other, _)| *other != k);
        others.any(|(other, by)| implies(by, set) && (other < k || !implies(set, by)))
    };
    sets.iter().enumerate().filter(move |(k, set)| !implied((*k, set))).map(|(_, set)| set)
}

/// The steps and costs of lists that are walked until the first of them ends: of `n` coordinates,
/// the last one is at about `n / (n + 1)` of the extent.
fn until_first_end(lists: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    (0..lists.len()).map(|k| {
        let others = lists.iter().enumerate().filter(|(other, _)| *other != k);
        let share: f64 = others.map(|(_, (steps, _))| steps / (steps + 1.0)).fold(1.0, f64::min);
        (lists[k].0 * share, lists[k].1 * share)
    })
}

/// The steps and the cost of co-iterating several lists.
fn merged(lists: impl Iterator<Item = (f64, f64)>, costs: &Costs) -> (f64, f64) {
    let (steps, cost) = lists.fold((0.0, 0.0), |(steps, cost), (s, c)| (steps + s, cost + c));
    (steps, cost * costs.merge_step / costs.list_step)
}

impl OperandAccess {
    /// The dimensions whose subscripts are bound by these loops.
    pub fn bound(&self, loops: u32) -> u32 {
        let known = |mask: &u32| mask & !loops == 0;
        self.dims.iter().enumerate().filter(|(_, mask)| known(mask)).fold(0, |dims, (d, _)| dims | 1 << d)
    }

    /// True if coordinates of these loops that this access stores are stored by another one, too:
    /// it reads the same tensor, at the same subscripts as far as the other one's are bound.
    fn implies(&self, other: &OperandAccess, loops: u32) -> bool {
        let (here, there) = (self.bound(loops), other.bound(loops));
        let same = |d: usize| same_all(&self.subscripts[d..=d], &other.subscripts[d..=d]);
        self.tensor == other.tensor
            && self.relaid == other.relaid
            && there & !here == 0
            && (0..other.dims.len()).filter(|d| there & 1 << d != 0).all(same)
            && other.windows(loops).next().is_none()
    }

    /// The dimensions whose affine subscripts these loops bind partially, with the width of the
    /// remaining window.
    fn windows(&self, loops: u32) -> impl Iterator<Item = (usize, f64)> {
        let open = self.dims.iter().enumerate().filter(move |(_, mask)| **mask & loops != 0 && **mask & !loops != 0);
        open.map(move |(d, mask)| {
            let left = (0..self.extents.len()).filter(|k| mask & !loops & 1 << k != 0);
            (d, 1.0 + left.map(|k| (self.extents[k] - 1.0).max(0.0)).sum::<f64>())
        })
    }

    /// The probability that the windows opened by these loops are non-empty.
    pub(super) fn meets(&self, loops: u32) -> f64 {
        let (known, order) = (self.bound(loops), self.operand.order());
        let level = |dim: usize| order.iter().position(|d| *d == dim);
        let reached = self.windows(loops).filter(|(d, _)| self.reached(*d, loops));
        // Down to the last co-iterated list, they are multi-dimensional windows.
        let Some(last) = reached.map(|(d, _)| level(d)).max() else { return 1.0 };
        let (mut dims, mut cells, mut size) = (known, 1.0, 1.0);
        for (d, width) in self.windows(loops).filter(|(d, _)| level(*d) <= last) {
            dims |= 1 << d;
            cells *= self.operand.shape[d];
            size *= width;
        }
        let (above, below) = (self.operand.distinct(known), self.operand.distinct(dims));
        let share = (below / (above * cells).max(1.0)).min(1.0);
        1.0 - (1.0 - share).powf(size)
    }

    /// The lists that a window loop opens.
    fn opens(&self, loops: u32, index: u32) -> Option<ListAccess> {
        let mut opened = self.windows(loops | 1 << index).filter(|(d, _)| self.dims[*d] & 1 << index != 0);
        let (dim, _) = opened.find(|(d, _)| self.listed(*d))?;
        let order = self.operand.order();
        let above = order.iter().take_while(|d| **d != dim).fold(0, |all, d| all | self.dims[*d]);
        let left = (0..self.extents.len()).filter(|k| above & !(loops | 1 << index) & 1 << k != 0);
        let lists = left.map(|k| self.extents[k]).reduce(|a, b| a * b);
        Some(match lists {
            None => ListAccess::AtHand,
            Some(lists) if self.reached(dim, loops) => ListAccess::Together(lists),
            Some(lists) => ListAccess::Searched(lists),
        })
    }

    /// True if a dimension has a coordinate list whose outer levels are bound by loops or windows.
    fn reached(&self, dim: usize, loops: u32) -> bool {
        let order = self.operand.order();
        let above = order.iter().take_while(|d| **d != dim);
        self.listed(dim) && above.into_iter().all(|d| self.dims[*d] & loops != 0 || self.dims[*d] == 0)
    }

    /// True if a dimension is stored as a coordinate list.
    fn listed(&self, dim: usize) -> bool {
        use tamis_ir::format::LevelKind;
        let level = self.operand.order().iter().position(|d| *d == dim);
        let level = level.and_then(|at| self.operand.format.levels().get(at));
        !self.operand.is_dense() && level.is_none_or(|level| level.kind != LevelKind::Dense)
    }

    fn cells(&self, dims: u32) -> f64 {
        (0..self.dims.len()).filter(|d| dims & 1 << d != 0).map(|d| self.operand.shape[d]).product()
    }

    /// True if the levels between two sets of bound dimensions are coordinate lists. A conversion
    /// keeps level types in place: the first bound dimension is that of the first level.
    fn lists(&self, before: u32, after: u32) -> bool {
        use tamis_ir::format::LevelKind;
        let levels = self.operand.format.levels();
        if levels.len() != self.dims.len() {
            return true;
        }
        let new = before.count_ones() as usize..after.count_ones() as usize;
        levels[new].iter().any(|level| level.kind != LevelKind::Dense)
    }

    /// The elements that loops over the levels between two sets of bound dimensions walk to find the
    /// ends of groups of equal coordinates.
    fn walked(&self, before: u32, after: u32) -> f64 {
        let levels = before.count_ones() as usize..after.count_ones() as usize;
        let format = &self.operand.format;
        if format.levels().len() != self.dims.len() || !levels.clone().any(|k| is_grouped(format, k)) {
            return 0.0;
        }
        self.operand.entries / self.operand.distinct(before).max(1.0)
    }

    /// The cost of a step over the levels between two sets of bound dimensions.
    fn step(&self, before: u32, after: u32, costs: &Costs) -> f64 {
        use tamis_ir::format::LevelKind;
        let levels = self.operand.format.levels();
        let new = before.count_ones() as usize..(after.count_ones() as usize).min(levels.len());
        let list = |kind: LevelKind| matches!(kind, LevelKind::Dense | LevelKind::Sparse | LevelKind::Singleton);
        let structured = levels.get(new).is_none_or(|levels| levels.iter().any(|level| !list(level.kind)));
        if structured { costs.list_step * costs.pieces } else { costs.list_step }
    }
}
