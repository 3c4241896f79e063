//! Loop fusion: a temporary is computed inside the loops that it shares with its consumer.

use super::nest::{Item, Nest, Scheduler};
use super::order::{Choice, Problem};
use super::path::{bare, replaced, uses};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::notation::Assignment;
use tamis_ir::text::syntax::{Expr, ExprKind};

/// A consumer in which a temporary is a scalar.
struct Consumer {
    item: Item,
    problem: Problem,
    choice: Choice,
    /// The number of loops shared with the temporary, which are outermost.
    depth: usize,
}

impl Scheduler<'_> {
    /// Fuses temporaries into their consumers, if their indices are the consumer's outer loops.
    pub(super) fn fuse(&mut self, nests: &mut Vec<Nest>) {
        let mut slots: Vec<Option<Nest>> = std::mem::take(nests).into_iter().map(Some).collect();
        let mut written: FxHashMap<String, usize> = FxHashMap::default();
        let mut readers: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (k, nest) in slots.iter().enumerate() {
            let Some(nest) = nest else { continue };
            *written.entry(nest.item.assignment.target.text.clone()).or_default() += 1;
            add_reader(&mut readers, k, nest);
        }
        let mut needed = FxHashSet::default();
        slots.iter().flatten().for_each(|nest| measured(nest, &mut needed));
        loop {
            let mut changed = false;
            for at in 0..slots.len() {
                let Some(made) = &slots[at] else { continue };
                let name = made.item.assignment.target.text.clone();
                let alone = written.get(&name) == Some(&1) && !self.is_result(&name) && !made.item.assignment.again;
                let Some(&[user]) = readers.get(&name).map(Vec::as_slice).filter(|_| alone) else { continue };
                // Its size needs it as a tensor.
                if needed.contains(&name) {
                    continue;
                }
                let Some(nest) = &slots[user] else { continue };
                // A computation nested in the consumer may need the temporary in other loops.
                if nest.inner.iter().any(|(_, inner)| reads(inner, &name)) {
                    continue;
                }
                let (made, nest) = (made.clone(), nest.clone());
                let Some(fused) = self.fused(&made, &nest) else { continue };
                self.note(
                    &name,
                    "a scalar inside of the loops that use it",
                    &format!("{:.3e} instead of {:.3e}", fused.cost, made.cost + nest.cost),
                );
                for list in readers.values_mut() {
                    list.retain(|reader| *reader != at);
                }
                add_reader(&mut readers, user, &fused);
                slots[user] = Some(fused);
                slots[at] = None;
                changed = true;
            }
            if !changed {
                break;
            }
        }
        nests.extend(slots.into_iter().flatten());
    }

    /// One nest that computes a temporary inside its consumer, if that is legal and cheaper.
    fn fused(&mut self, made: &Nest, user: &Nest) -> Option<Nest> {
        let name = &made.item.assignment.target.text;
        let dims = bare(&made.item.assignment.subscripts)?;
        let accesses = user.item.assignment.accesses();
        let mut own = accesses.iter().filter(|(tensor, _)| tensor == name);
        let (_, subscripts) = own.next().filter(|_| own.next().is_none())?;
        let outer = bare(subscripts)?;
        if !made.copies.is_empty() || !user.copies.is_empty() || dims.is_empty() {
            return None;
        }
        // While the consumer's loops are chosen, the temporary is a scalar without statistics.
        let operand = self.operands.remove(name);
        let consumer = self.consumer(made, user, &dims, &outer);
        if let Some(operand) = operand {
            self.operands.insert(name.clone(), operand);
        }
        let Consumer { item, problem, choice, depth } = consumer?;
        let inner_item = self.producer(made, user, &dims, &outer)?;
        let (inner_problem, _, fill, _) = self.formatted(&inner_item);
        let shared: Vec<usize> = choice.order[..depth]
            .iter()
            .filter_map(|k| inner_problem.indices.iter().position(|i| *i == problem.indices[*k]))
            .collect();
        if shared.len() != depth || made.inner.iter().any(|(at, _)| *at < depth) {
            return None;
        }
        let (inner_problem, found) = inner_problem.search_formats(self.costs, &shared);
        let inner_choice = found.into_iter().next()?;
        let before = inner_problem.steps(self.costs, &shared);
        let (often, alone) = (choice.trips[depth - 1], inner_choice.trips[depth - 1]);
        let share = if alone > 0.0 { often / alone } else { 1.0 };
        let inside = (inner_choice.cost.compute - before).max(0.0) * share + inner_choice.cost.convert;
        let cost = choice.cost.total() + inside;
        // A temporary that is not materialised costs no writes and no reads.
        let kept = self.operands.get(name).map_or(0.0, |operand| operand.entries) * self.costs.vector_step;
        if cost >= made.cost + kept + user.cost
            || (!made.inner.is_empty() && inner_choice.order.len() != made.order.len())
        {
            return None;
        }
        let (inner_body, copies) = self.convert(&inner_item, &inner_problem, &inner_choice);
        let (outer_body, more) = self.convert(&item, &problem, &choice);
        if !copies.is_empty() || !more.is_empty() {
            return None;
        }
        // Earlier fused computations keep their depth only if the loops keep their order.
        let inner_order: Vec<String> = inner_choice.order.iter().map(|k| inner_problem.indices[*k].clone()).collect();
        if made.inner.iter().any(|(at, _)| made.order[..*at] != inner_order[..*at]) {
            return None;
        }
        let inner = Nest {
            order: inner_order,
            cost: inside,
            inner: made.inner.clone(),
            format: None,
            fill,
            body: inner_body,
            copies,
            item: inner_item,
            tile: None,
        };
        let order: Vec<String> = choice.order.iter().map(|k| problem.indices[*k].clone()).collect();
        if user.inner.iter().any(|(at, _)| user.order[..*at] != order[..*at]) {
            return None;
        }
        let mut all = user.inner.clone();
        all.push((depth, inner));
        Some(Nest { tile: None, order, cost, inner: all, body: outer_body, item, ..user.clone() })
    }
    /// The consumer with the temporary as a scalar, and its loop order with the shared loops
    /// outermost; none if a loop would become unbounded.
    fn consumer(&mut self, made: &Nest, user: &Nest, dims: &[&str], outer: &[&str]) -> Option<Consumer> {
        let name = &made.item.assignment.target.text;
        let item = user.item.clone();
        let scalar = Expr { kind: ExprKind::Name(name.clone()), span: item.assignment.span };
        let body = replaced(&item.assignment.body, &FxHashMap::default(), Some((name, &scalar)));
        let item = Item { assignment: Assignment { body, ..item.assignment.clone() }, ..item };
        let (problem, ..) = self.formatted(&item);
        // All loops of the consumer stay bounded, those bounded by the temporary through its
        // operands.
        let inside = |index: &String| {
            let at = outer.iter().position(|o| o == index);
            at.is_some_and(|k| bounded(&made.item.assignment, dims[k]))
        };
        let ends = |index: &String| bounded(&item.assignment, index) || inside(index);
        if user.order.iter().any(|index| !problem.indices.contains(index) || !ends(index)) {
            return None;
        }
        let mut prefix: Vec<usize> = outer.iter().filter_map(|o| problem.indices.iter().position(|i| i == o)).collect();
        prefix.sort_by_key(|k| user.order.iter().position(|name| *name == problem.indices[*k]));
        let pinned = self.pinned_loops(&problem);
        let depth = prefix.len();
        let (problem, found) = problem.search_formats(self.costs, if pinned.is_empty() { &prefix } else { &pinned });
        let choice = found.into_iter().find(|c| c.order[..depth].iter().all(|k| prefix.contains(k)))?;
        Some(Consumer { item, problem, choice, depth })
    }

    /// The statement of the temporary in the consumer's outer loops; its reduced indices that would
    /// clash are renamed.
    fn producer(&mut self, made: &Nest, user: &Nest, dims: &[&str], outer: &[&str]) -> Option<Item> {
        let span = made.item.assignment.span;
        let name_of = |index: &str| Expr { kind: ExprKind::Name(index.to_string()), span };
        let mut names: FxHashMap<String, Expr> =
            dims.iter().zip(outer).filter(|(d, o)| d != o).map(|(d, o)| (d.to_string(), name_of(o))).collect();
        let mut assignment = made.item.assignment.clone();
        let mut extents = made.item.extents.clone();
        for reduced in assignment.reduced() {
            if outer.contains(&reduced.as_str()) {
                let taken = user.item.extents.iter().chain(&extents).map(|(name, n)| (name.clone(), *n)).collect();
                let fresh = self.fresh_index(&reduced, &taken);
                extents.insert(fresh.clone(), extents.get(&reduced).copied().unwrap_or(1.0));
                names.insert(reduced, name_of(&fresh));
            }
        }
        if !names.is_empty() && !made.inner.is_empty() {
            return None;
        }
        for range in &mut assignment.ranges {
            if let Some(Expr { kind: ExprKind::Name(index), .. }) = names.get(&range.index) {
                range.index = index.clone();
            }
        }
        assignment.body = replaced(&assignment.body, &names, None);
        assignment.subscripts = assignment.subscripts.iter().map(|s| replaced(s, &names, None)).collect();
        for (d, o) in dims.iter().zip(outer) {
            if let Some(n) = made.item.extents.get(*d) {
                extents.insert(o.to_string(), *n);
            }
        }
        Some(Item { assignment, extents, dtype: made.item.dtype })
    }
}

fn add_reader(readers: &mut FxHashMap<String, Vec<usize>>, at: usize, nest: &Nest) {
    for (tensor, _) in nest.item.assignment.accesses() {
        let list = readers.entry(tensor.to_string()).or_default();
        if !list.contains(&at) {
            list.push(at);
        }
    }
    nest.inner.iter().for_each(|(_, inner)| add_reader(readers, at, inner));
}

fn reads(nest: &Nest, name: &str) -> bool {
    nest.item.assignment.accesses().iter().any(|(tensor, _)| *tensor == name)
        || nest.inner.iter().any(|(_, inner)| reads(inner, name))
}

/// The tensors whose sizes a nest reads.
fn measured(nest: &Nest, found: &mut FxHashSet<String>) {
    found.extend(nest.item.assignment.measured().into_iter().map(String::from));
    nest.inner.iter().for_each(|(_, inner)| measured(inner, found));
}

/// True if an index is a subscript of some read.
fn bounded(assignment: &Assignment, index: &str) -> bool {
    assignment.accesses().iter().any(|(_, subscripts)| subscripts.iter().any(|s| uses(s, index, true)))
}
