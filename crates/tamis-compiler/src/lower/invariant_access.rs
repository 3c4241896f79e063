//! Loop-invariant accesses: subscripts known before a loop, as in `A[r[i], j]` before the loop over
//! `j`, are resolved once.
//!
//! A subscript that is no sum of indices has no structure along any loop, so it is located by
//! search or random access. This file decides the place: once everything that it is computed from
//! is known, at the innermost loop that would otherwise repeat it. An access that only some
//! iterations read stays in its place if its subscripts need a check.

use super::Lowerer;
use super::assign::declared;
use super::bind::BoundStorage;
use super::node::{LoopBounds, Node, PartialAccess, ReadSource, Step, Sub, map_steps, visit_targets};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::Located;
use tamis_ir::program::{IndexId, TensorId, VarId};

/// The tensors and names that a loop changes.
struct LoopVariants {
    tensors: Vec<TensorId>,
    names: Vec<VarId>,
}

/// The accesses to resolve before a loop.
pub(super) struct InvariantAccesses {
    changed: LoopVariants,
    ids: Vec<u32>,
    /// True if a subscript must be checked, which must not happen if the loop has no iterations.
    pub(super) checked: bool,
}

impl Lowerer<'_> {
    /// The accesses of a loop's body whose next subscripts are known before the loop. An access
    /// that is only read sometimes is left alone if its subscripts need a check, which would fail
    /// where nothing is read.
    pub(super) fn invariant_accesses(&self, index: IndexId, body: &[Step]) -> InvariantAccesses {
        let mut changed = LoopVariants { tensors: declared(body), names: Vec::new() };
        visit_targets(body, &mut |target| changed.tensors.push(target.tensor));
        names(body, &mut changed.names);
        let mut known = InvariantAccesses { changed, ids: Vec::new(), checked: false };
        self.find_invariant(index, body, true, &mut known);
        known
    }

    fn find_invariant(&self, index: IndexId, steps: &[Step], always: bool, known: &mut InvariantAccesses) {
        for step in steps {
            match step {
                Step::Declare(..) | Step::Freeze(_) => {}
                Step::Let(_, value) => self.note_invariant(index, value, always, known),
                Step::For(_, bounds, body) => {
                    if let LoopBounds::Range(start, stop) = bounds {
                        self.note_invariant(index, start, always, known);
                        self.note_invariant(index, stop, always, known);
                    }
                    self.find_invariant(index, body, false, known);
                }
                Step::If(cond, then, otherwise) => {
                    self.note_invariant(index, cond, always, known);
                    self.find_invariant(index, then, false, known);
                    self.find_invariant(index, otherwise, false, known);
                }
                Step::Assign(target, update, value) => {
                    target.subs.iter().flat_map(Sub::nodes).for_each(|n| self.note_invariant(index, n, always, known));
                    update.iter().flat_map(|u| &u.extra).for_each(|n| self.note_invariant(index, n, always, known));
                    self.note_invariant(index, value, always, known);
                }
            }
        }
    }

    fn note_invariant(&self, index: IndexId, node: &Node, always: bool, known: &mut InvariantAccesses) {
        match node {
            Node::Call(op, _, operands) => {
                operands.iter().for_each(|n| self.note_invariant(index, n, always && !op.is_lazy(), known));
            }
            Node::Entry(entry) => entry.at.iter().for_each(|n| self.note_invariant(index, n, always, known)),
            Node::Access(access) => {
                if let ReadSource::Tensor(_, subs) = &access.source {
                    subs.iter().skip(access.level).flat_map(Sub::nodes).for_each(|n| {
                        self.note_invariant(index, n, always, known);
                    });
                }
                let levels = self.invariant_levels(index, access, &known.changed);
                if levels == 0 || known.ids.contains(&access.id) {
                    return;
                }
                let ReadSource::Tensor(_, subs) = &access.source else { return };
                let checked = subs.iter().skip(access.level).take(levels).any(needs_check);
                if always || !checked {
                    known.ids.push(access.id);
                    known.checked |= checked;
                }
            }
            _ => {}
        }
    }

    /// The number of levels of an access to resolve before a loop.
    fn invariant_levels(&self, index: IndexId, access: &PartialAccess, changed: &LoopVariants) -> usize {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return 0 };
        let stored = matches!(self.bound[tensor.index()].storage, BoundStorage::Levels { .. });
        let underway = access.window.is_some() || !access.fibers.is_empty() || access.looplet.is_some();
        if !stored || underway || changed.tensors.contains(tensor) {
            return 0;
        }
        let rest = subs.get(access.level..).unwrap_or_default();
        let known = rest.iter().take_while(|sub| sub.nodes().all(|n| self.is_invariant(index, n, changed))).count();
        let searched = |level: usize| self.row(*tensor, level).is_none_or(|row| !row.capabilities.random_access);
        // Random access down to the element costs the same at its place.
        let pays = known < rest.len() || (access.level..subs.len()).any(searched);
        if pays { known } else { 0 }
    }

    /// True if an expression has one value throughout a loop, and can be computed before it.
    fn is_invariant(&self, index: IndexId, node: &Node, changed: &LoopVariants) -> bool {
        match node {
            Node::Known(_) | Node::Size(..) | Node::Value(_) => true,
            Node::Missing => false,
            Node::Index(i) => *i != index && self.indices[i.index()].is_some(),
            Node::Var(var) => {
                let value = self.vars[var.index()].as_ref().filter(|_| !changed.names.contains(var));
                value.is_some_and(|value| self.is_invariant(index, value, changed))
            }
            Node::Call(_, _, operands) => operands.iter().all(|n| self.is_invariant(index, n, changed)),
            Node::Entry(entry) => entry.inside && entry.at.iter().all(|n| self.is_invariant(index, n, changed)),
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(tensor, subs) => {
                    let rest = subs.iter().skip(access.level);
                    access.looplet.is_none()
                        && access.window.is_none()
                        && access.fibers.is_empty()
                        && !changed.tensors.contains(tensor)
                        && rest.flat_map(Sub::nodes).all(|n| self.is_invariant(index, n, changed))
                }
                ReadSource::Mask(..) => false,
            },
        }
    }

    /// Resolves accesses as far as their subscripts are known.
    pub(super) fn resolve_invariant(
        &mut self,
        index: IndexId,
        body: Vec<Step>,
        known: &InvariantAccesses,
    ) -> Vec<Step> {
        let mut done: Vec<(PartialAccess, Node)> = Vec::new();
        map_steps(body, &mut |node| match node {
            Node::Access(access) if known.ids.contains(&access.id) => {
                if let Some((_, found)) = done.iter().find(|(given, _)| *given == *access) {
                    return found.clone();
                }
                let found = self.resolve_levels(index, (*access).clone(), known);
                done.push((*access, found.clone()));
                found
            }
            other => other,
        })
    }

    fn resolve_levels(&mut self, index: IndexId, mut access: PartialAccess, known: &InvariantAccesses) -> Node {
        let levels = self.invariant_levels(index, &access, &known.changed);
        let ReadSource::Tensor(tensor, subs) = access.source.clone() else { return Node::Access(Box::new(access)) };
        let position = access.position.unwrap_or(self.b.int(0));
        let mut at = Located { position, present: access.present, group_stop: access.group_stop };
        let mut outside = Vec::new();
        for (level, sub) in subs.iter().enumerate().skip(access.level).take(levels) {
            let coordinate = self.coordinate_in(tensor, sub, &mut at, &mut outside);
            self.warn_of_search(tensor, &access, level, sub);
            self.check_search(tensor, level, access.stmt);
            at = self.locate(tensor, level, at, coordinate);
        }
        access.level += levels;
        // A position that may be absent must not be loaded from, either.
        access.position = Some(if at.present.is_none() { self.b.name("found", at.position) } else { at.position });
        access.group_stop = at.group_stop;
        access.safe = at.present == access.present && (access.safe || access.present.is_none());
        access.present = at.present.map(|present| self.b.name("present", present));
        let element = Node::Access(Box::new(access));
        match self.any(outside) {
            Some(outside) => {
                let dtype = self.bound[tensor.index()].dtype;
                Node::Call(Op::Select, dtype, vec![Node::Value(outside), Node::Missing, element])
            }
            None => element,
        }
    }

    /// Emits a loop under the condition that it has an iteration, so that checks can precede it.
    pub(super) fn if_any_iteration(&mut self, start: ExprId, stop: ExprId, emit: impl FnOnce(&mut Self)) {
        let cond = self.b.call_in(Op::Lt, DType::I64, &[start, stop]);
        // A loop without iterations writes nothing, so nothing else is skipped.
        let then = self.in_block(emit);
        if !then.is_empty() {
            self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        }
    }
}

/// True if locating a coordinate can fail a bounds check.
fn needs_check(sub: &Sub) -> bool {
    let mut nested = false;
    for node in sub.nodes() {
        node.visit(&mut |node| match node {
            Node::Access(access) => {
                if let ReadSource::Tensor(_, subs) = &access.source {
                    nested |= subs.iter().skip(access.level).any(|sub| !sub.inside && !sub.permissive);
                }
            }
            Node::Entry(entry) => nested |= !entry.inside,
            _ => {}
        });
    }
    nested || (!sub.inside && !sub.permissive)
}

/// Names that the statements bind, at any depth.
fn names(steps: &[Step], found: &mut Vec<VarId>) {
    for step in steps {
        match step {
            Step::Let(var, _) => found.push(*var),
            Step::For(_, _, body) => names(body, found),
            Step::If(_, then, otherwise) => {
                names(then, found);
                names(otherwise, found);
            }
            _ => {}
        }
    }
}
