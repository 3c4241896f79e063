//! Where an expression is not constant: a set of coordinates, made of what its operands store.

use super::model::Costs;
use super::operand::Operand;
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
    /// What an access stores.
    Stored(usize),
    /// What is in all of them.
    And(Vec<Set>),
    /// What is in one of them.
    Or(Vec<Set>),
}

/// An access of the statement: which operand, subscripted by what.
#[derive(Clone, Debug)]
pub struct Place {
    /// The tensor's name.
    pub tensor: String,
    /// Its subscripts.
    pub subscripts: Vec<Expr>,
    /// What is known of the tensor.
    pub operand: Operand,
    /// For each dimension, the loops whose indices are in its subscript, as bits.
    pub dims: Vec<u32>,
    /// Whether the operand is not stored as it is said to be, but would be converted.
    pub relaid: bool,
    /// Whether it must not be converted.
    pub kept: bool,
    /// Whether it is no tensor, but a comparison of indices.
    pub mask: bool,
    /// How far the loops go, all of the statement's.
    pub extents: Vec<f64>,
}

/// Where an expression differs from a constant, and which one.
pub fn differs(expr: &Expr, places: &[Place]) -> (Set, Option<Value>) {
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

fn of_access(tensor: &str, subscripts: &[Expr], places: &[Place]) -> (Set, Option<Value>) {
    let found = places.iter().position(|place| place.tensor == tensor && same_all(&place.subscripts, subscripts));
    match found.map(|k| (k, places[k].operand.background())) {
        Some((k, Some(fill))) => (Set::Stored(k), Some(fill)),
        _ => (Set::All, None),
    }
}

fn combine(op: Op, operands: &[Expr], places: &[Place]) -> (Set, Option<Value>) {
    combined(op, operands.iter().map(|e| differs(e, places)).collect())
}

/// Where an operator on operands differs from a constant, and which one, if that is known of the operands.
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
            // Infinities of both signs decide in turn.
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

/// What is in all of some sets.
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

/// What is in one of some sets.
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
    /// How likely coordinates of the loops `bound` are in the set, as far as those loops tell.
    pub fn likely(&self, bound: u32, places: &[Place]) -> f64 {
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
            Set::And(sets) => sets.iter().map(|set| set.likely(bound, places)).product(),
            Set::Or(sets) => 1.0 - sets.iter().map(|set| 1.0 - set.likely(bound, places)).product::<f64>(),
        }
    }

    /// How many steps the loop `index` takes for one value of the loops outside, and what they cost; nothing if it goes over everything.
    pub fn steps(&self, bound: u32, index: u32, extent: f64, places: &[Place], costs: &Costs) -> Option<(f64, f64)> {
        match self {
            Set::All => None,
            Set::Nothing => Some((0.0, 0.0)),
            Set::Stored(k) => {
                let place = &places[*k];
                let with = bound | 1 << index;
                let (before, after) = (place.bound(bound), place.bound(with));
                let fewer = place.meets(with) / place.meets(bound).max(1e-12);
                if before == after {
                    // Of windows, those with something in them are visited, and each list that loops further inside may come to
                    // is moved on. Where loops have not begun with the levels above, all are, and what is in them is
                    // searched for.
                    return place.opens(bound, index).map(|opened| {
                        let (each, visited) = (costs.list_step * costs.pieces, extent * fewer.min(1.0));
                        match opened {
                            Opened::AtHand => (visited, visited * each),
                            Opened::Together(lists) => (visited, visited * (each + lists * costs.list_step)),
                            Opened::Searched(lists) => (extent, extent * lists * (each + costs.hop)),
                        }
                    });
                }
                if !place.lists(before, after) {
                    return None;
                }
                let (above, below) = (place.operand.distinct(before), place.operand.distinct(after));
                let (n, share) = (place.cells(after & !before), if above > 0.0 { below / above } else { 0.0 });
                // A window sees its part of a list.
                let steps = share.min(n) * (extent / n.max(1.0)).min(1.0) * fewer.max(1.0);
                Some((steps, steps * place.step(before, after, costs)))
            }
            Set::And(sets) => {
                let lists: Vec<(f64, f64)> =
                    sets.iter().filter_map(|set| set.steps(bound, index, extent, places, costs)).collect();
                match lists.len() {
                    0 => None,
                    1 => Some(lists[0]),
                    _ => Some(merged(lists.into_iter(), costs)),
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

/// Lists that windows are opened onto.
enum Opened {
    /// There is one.
    AtHand,
    /// Windows over the levels above are open: so many are gone along together.
    Together(f64),
    /// So many are searched, each for itself.
    Searched(f64),
}

/// What it takes to go through several lists at once.
fn merged(lists: impl Iterator<Item = (f64, f64)>, costs: &Costs) -> (f64, f64) {
    let (steps, cost) = lists.fold((0.0, 0.0), |(steps, cost), (s, c)| (steps + s, cost + c));
    (steps, cost * costs.merge_step / costs.list_step)
}

impl Place {
    /// The dimensions whose subscripts are known when these loops are.
    pub fn bound(&self, loops: u32) -> u32 {
        let known = |mask: &u32| mask & !loops == 0;
        self.dims.iter().enumerate().filter(|(_, mask)| known(mask)).fold(0, |dims, (d, _)| dims | 1 << d)
    }

    /// The dimensions whose subscripts are sums of which these loops are a part, and how wide the windows are that the others see.
    fn windows(&self, loops: u32) -> impl Iterator<Item = (usize, f64)> {
        let open = self.dims.iter().enumerate().filter(move |(_, mask)| **mask & loops != 0 && **mask & !loops != 0);
        open.map(move |(d, mask)| {
            let left = (0..self.extents.len()).filter(|k| mask & !loops & 1 << k != 0);
            (d, 1.0 + left.map(|k| (self.extents[k] - 1.0).max(0.0)).sum::<f64>())
        })
    }

    /// How likely the windows that are open when these loops are known have something in them.
    pub(super) fn meets(&self, loops: u32) -> f64 {
        let (known, order) = (self.bound(loops), self.operand.order());
        let level = |dim: usize| order.iter().position(|d| *d == dim);
        let reached = self.windows(loops).filter(|(d, _)| self.reached(*d, loops));
        // Down to the last list that is gone along, they are windows of several dimensions.
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

    /// What a loop finds that opens windows onto lists.
    fn opens(&self, loops: u32, index: u32) -> Option<Opened> {
        let mut opened = self.windows(loops | 1 << index).filter(|(d, _)| self.dims[*d] & 1 << index != 0);
        let (dim, _) = opened.find(|(d, _)| self.listed(*d))?;
        let order = self.operand.order();
        let above = order.iter().take_while(|d| **d != dim).fold(0, |all, d| all | self.dims[*d]);
        let left = (0..self.extents.len()).filter(|k| above & !(loops | 1 << index) & 1 << k != 0);
        let lists = left.map(|k| self.extents[k]).reduce(|a, b| a * b);
        Some(match lists {
            None => Opened::AtHand,
            Some(lists) if self.reached(dim, loops) => Opened::Together(lists),
            Some(lists) => Opened::Searched(lists),
        })
    }

    /// Whether the coordinates of a dimension are listed, and loops are through the levels above, or have windows onto them.
    fn reached(&self, dim: usize, loops: u32) -> bool {
        let order = self.operand.order();
        let above = order.iter().take_while(|d| **d != dim);
        self.listed(dim) && above.into_iter().all(|d| self.dims[*d] & loops != 0 || self.dims[*d] == 0)
    }

    /// Whether the coordinates of a dimension are listed, rather than looked up.
    fn listed(&self, dim: usize) -> bool {
        use tamis_ir::format::LevelKind;
        let level = self.operand.order().iter().position(|d| *d == dim);
        let level = level.and_then(|at| self.operand.format.levels().get(at));
        !self.operand.is_dense() && level.is_none_or(|level| level.kind != LevelKind::Dense)
    }

    fn cells(&self, dims: u32) -> f64 {
        (0..self.dims.len()).filter(|d| dims & 1 << d != 0).map(|d| self.operand.shape[d]).product()
    }

    /// Whether what lies between two sets of dimensions is listed, rather than looked up. Levels keep their kinds where a
    /// tensor is converted: the first dimension that is bound is that of the first level.
    fn lists(&self, before: u32, after: u32) -> bool {
        use tamis_ir::format::LevelKind;
        let levels = self.operand.format.levels();
        if levels.len() != self.dims.len() {
            return true;
        }
        let new = before.count_ones() as usize..after.count_ones() as usize;
        levels[new].iter().any(|level| level.kind != LevelKind::Dense)
    }

    /// What a step costs of a loop over what lies between two sets of dimensions.
    fn step(&self, before: u32, after: u32, costs: &Costs) -> f64 {
        use tamis_ir::format::LevelKind;
        let levels = self.operand.format.levels();
        let new = before.count_ones() as usize..(after.count_ones() as usize).min(levels.len());
        let list = |kind: LevelKind| matches!(kind, LevelKind::Dense | LevelKind::Sparse | LevelKind::Singleton);
        let structured = levels.get(new).is_none_or(|levels| levels.iter().any(|level| !list(level.kind)));
        if structured { costs.list_step * costs.pieces } else { costs.list_step }
    }
}
