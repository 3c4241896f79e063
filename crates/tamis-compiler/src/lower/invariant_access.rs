//! Subscripts that are known before a loop starts, `A[r[i], j]` before the one over `j`: what they lead to is found once.
//!
//! A subscript that is no sum of indices has no structure along any loop, so it is looked up; but where, is decided here: as soon as
//! everything it is computed from is known, at the latest loop at which the levels below it, or a search, would see it again and again.

use super::Lowerer;
use super::assign::declared;
use super::bind::Stored;
use super::node::{Access, Bounds, Node, Source, Step, Sub, map_steps, visit_targets};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::looplet::Located;
use tamis_ir::program::{IndexId, TensorId, VarId};

/// What a loop changes, which is not known before it.
struct Changed {
    tensors: Vec<TensorId>,
    names: Vec<VarId>,
}

/// Accesses to be led as far as their subscripts are known.
pub(super) struct Known {
    changed: Changed,
    ids: Vec<u32>,
    /// A coordinate has to be checked, which must not happen if the loop has no turns.
    pub(super) checked: bool,
}

impl Lowerer<'_> {
    /// The accesses of a loop's body whose next subscripts are known before it. Those that are read only sometimes are left
    /// alone, unless their coordinates need no check: a check would fail where nothing is read.
    pub(super) fn known_before(&self, index: IndexId, body: &[Step]) -> Known {
        let mut changed = Changed { tensors: declared(body), names: Vec::new() };
        visit_targets(body, &mut |target| changed.tensors.push(target.tensor));
        names(body, &mut changed.names);
        let mut known = Known { changed, ids: Vec::new(), checked: false };
        self.find_known(index, body, true, &mut known);
        known
    }

    fn find_known(&self, index: IndexId, steps: &[Step], always: bool, known: &mut Known) {
        for step in steps {
            match step {
                Step::Declare(..) | Step::Freeze(_) => {}
                Step::Let(_, value) => self.note_known(index, value, always, known),
                Step::For(_, bounds, body) => {
                    if let Bounds::Range(start, stop) = bounds {
                        self.note_known(index, start, always, known);
                        self.note_known(index, stop, always, known);
                    }
                    self.find_known(index, body, false, known);
                }
                Step::If(cond, then, otherwise) => {
                    self.note_known(index, cond, always, known);
                    self.find_known(index, then, false, known);
                    self.find_known(index, otherwise, false, known);
                }
                Step::Assign(target, update, value) => {
                    target.subs.iter().flat_map(Sub::nodes).for_each(|n| self.note_known(index, n, always, known));
                    update.iter().flat_map(|u| &u.extra).for_each(|n| self.note_known(index, n, always, known));
                    self.note_known(index, value, always, known);
                }
            }
        }
    }

    fn note_known(&self, index: IndexId, node: &Node, always: bool, known: &mut Known) {
        match node {
            Node::Call(op, _, operands) => {
                operands.iter().for_each(|n| self.note_known(index, n, always && !op.is_lazy(), known));
            }
            Node::Entry(entry) => entry.at.iter().for_each(|n| self.note_known(index, n, always, known)),
            Node::Access(access) => {
                if let Source::Tensor(_, subs) = &access.source {
                    subs.iter().skip(access.level).flat_map(Sub::nodes).for_each(|n| {
                        self.note_known(index, n, always, known);
                    });
                }
                let levels = self.known_levels(index, access, &known.changed);
                if levels == 0 || known.ids.contains(&access.id) {
                    return;
                }
                let Source::Tensor(_, subs) = &access.source else { return };
                let checked = subs.iter().skip(access.level).take(levels).any(needs_check);
                if always || !checked {
                    known.ids.push(access.id);
                    known.checked |= checked;
                }
            }
            _ => {}
        }
    }

    /// How many of the next levels of an access are to be resolved before a loop.
    fn known_levels(&self, index: IndexId, access: &Access, changed: &Changed) -> usize {
        let Source::Tensor(tensor, subs) = &access.source else { return 0 };
        let stored = matches!(self.bound[tensor.index()].storage, Stored::Levels { .. });
        let underway = access.window.is_some() || !access.fibers.is_empty() || access.looplet.is_some();
        if !stored || underway || changed.tensors.contains(tensor) {
            return 0;
        }
        let rest = subs.get(access.level..).unwrap_or_default();
        let known = rest.iter().take_while(|sub| sub.nodes().all(|n| self.is_fixed(index, n, changed))).count();
        let searched = |level: usize| self.row(*tensor, level).is_none_or(|row| !row.capabilities.random_access);
        // What is computed without looking anything up, down to the element, stays where it is.
        let pays = known < rest.len() || (access.level..subs.len()).any(searched);
        if pays { known } else { 0 }
    }

    /// Whether an expression has one value throughout a loop, which can be computed before it.
    fn is_fixed(&self, index: IndexId, node: &Node, changed: &Changed) -> bool {
        match node {
            Node::Known(_) | Node::Size(..) | Node::Value(_) => true,
            Node::Missing => false,
            Node::Index(i) => *i != index && self.indices[i.index()].is_some(),
            Node::Var(var) => {
                let value = self.vars[var.index()].as_ref().filter(|_| !changed.names.contains(var));
                value.is_some_and(|value| self.is_fixed(index, value, changed))
            }
            Node::Call(_, _, operands) => operands.iter().all(|n| self.is_fixed(index, n, changed)),
            Node::Entry(entry) => entry.inside && entry.at.iter().all(|n| self.is_fixed(index, n, changed)),
            Node::Access(access) => match &access.source {
                Source::Tensor(tensor, subs) => {
                    let rest = subs.iter().skip(access.level);
                    access.looplet.is_none()
                        && access.window.is_none()
                        && access.fibers.is_empty()
                        && !changed.tensors.contains(tensor)
                        && rest.flat_map(Sub::nodes).all(|n| self.is_fixed(index, n, changed))
                }
                Source::Mask(..) => false,
            },
        }
    }

    /// Leads accesses as far as their subscripts are known.
    pub(super) fn lead_known(&mut self, index: IndexId, body: Vec<Step>, known: &Known) -> Vec<Step> {
        let mut done: Vec<(Access, Node)> = Vec::new();
        map_steps(body, &mut |node| match node {
            Node::Access(access) if known.ids.contains(&access.id) => {
                if let Some((_, found)) = done.iter().find(|(given, _)| *given == *access) {
                    return found.clone();
                }
                let found = self.lead(index, (*access).clone(), known);
                done.push((*access, found.clone()));
                found
            }
            other => other,
        })
    }

    fn lead(&mut self, index: IndexId, mut access: Access, known: &Known) -> Node {
        let levels = self.known_levels(index, &access, &known.changed);
        let Source::Tensor(tensor, subs) = access.source.clone() else { return Node::Access(Box::new(access)) };
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
        // Where nothing may be stored, what says where it is may not be looked at, either.
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

    /// Emits a loop that is entered only if it has a turn, so that what comes before its turns can be checked there.
    pub(super) fn if_any_turn(&mut self, start: ExprId, stop: ExprId, emit: impl FnOnce(&mut Self)) {
        let cond = self.b.call_in(Op::Lt, DType::I64, &[start, stop]);
        // Not entering it is what no turns are: nothing is written less often than it would be.
        let then = self.in_block(emit);
        if !then.is_empty() {
            self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
        }
    }
}

/// Whether finding a coordinate can fail.
fn needs_check(sub: &Sub) -> bool {
    let mut nested = false;
    for node in sub.nodes() {
        node.visit(&mut |node| match node {
            Node::Access(access) => {
                if let Source::Tensor(_, subs) = &access.source {
                    nested |= subs.iter().skip(access.level).any(|sub| !sub.inside && !sub.permissive);
                }
            }
            Node::Entry(entry) => nested |= !entry.inside,
            _ => {}
        });
    }
    nested || (!sub.inside && !sub.permissive)
}

/// Names that are bound somewhere inside.
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
