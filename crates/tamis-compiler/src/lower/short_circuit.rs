//! Early exit from reductions, and re-specialisation of loops around short-circuit scalars.
//!
//! A short-circuit scalar is *final* once its value is the annihilator of its operator: further
//! updates do not change it. A loop that does nothing but update it exits then. A loop that does
//! more runs in *versions*, one for each set of final scalars. At the end of the iteration that
//! makes another scalar final, the version records the coordinate at which the next one resumes,
//! and exits. The next version is lowered without the updates, so nothing that only they need
//! (other operands, inner loops, temporaries) is visited. Versions only lose scalars, so each is
//! entered once at most, in the order in which they are emitted.

use super::Lowerer;
use super::assign::declared;
use super::bind::BoundStorage;
use super::node::{Node, ReadSource, Step, Sub, UpdateOp, visit_assigns, visit_steps, visit_targets};
use super::region::Region;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{Builder, ExprId, LabelId, Stmt, VarId};
use tamis_ir::program::{self, Declaration, IndexId, ScalarKind, Storage, TensorId};

/// The maximum number of versions of a loop because of the scalars that it updates.
const VERSIONS: usize = 8;

/// The maximum number of copies of a statement because of versions of all enclosing loops. Copies
/// because of sequences are counted separately: a version that looked structure up would visit more
/// than it saves.
const NESTED: usize = 16;

/// A scalar with the condition under which no update changes it.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Final {
    pub(super) scalar: TensorId,
    test: FinalTest,
}

#[derive(Clone, Copy, PartialEq)]
enum FinalTest {
    /// Its value is the annihilator.
    Is(Value),
    /// It was chosen.
    IsNot(Value),
}

/// A loop that exits as soon as a scalar is final, wherever that is updated.
pub(super) struct EarlyExit {
    what: Final,
    label: LabelId,
}

/// A version of a loop that exits at the end of an iteration, once all scalars of a group are
/// final.
pub(super) struct LoopVersion {
    index: IndexId,
    groups: Vec<Vec<Final>>,
    label: LabelId,
    /// The first coordinate of the next version, if there is one.
    resume: Option<VarId>,
}

impl Lowerer<'_> {
    /// Lowers the iterations of a loop: once, or in versions.
    pub(super) fn short_circuit(&mut self, region: Region, body: Vec<Step>) {
        let found = self.short_circuits(&body);
        if found.is_empty() {
            return self.region(region, body);
        }
        let scalars = |groups: &[Vec<Final>]| groups.iter().flatten().map(|f| f.scalar).collect::<Vec<TensorId>>();
        let ends = without(&body, &scalars(std::slice::from_ref(&found))).is_empty();
        let Some(groups) = self.grouped(found, ends, self.reads_unordered(region.index, &body)) else {
            return self.region(region, body);
        };
        // The sets of final groups, smaller ones first; a set that leaves no work has no version.
        let mut sets: Vec<usize> = (0..1 << groups.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        let split = |set: usize| -> (Vec<Vec<Final>>, Vec<Vec<Final>>) {
            let (mut final_groups, mut live) = (Vec::new(), Vec::new());
            for (k, group) in groups.iter().enumerate() {
                if set >> k & 1 == 1 { final_groups.push(group.clone()) } else { live.push(group.clone()) }
            }
            (final_groups, live)
        };
        let versions: Vec<(usize, Vec<Step>)> = sets
            .into_iter()
            .map(|set| (set, without(&body, &scalars(&split(set).0))))
            .filter(|(_, steps)| !steps.is_empty())
            .collect();
        let resume = (versions.len() > 1).then(|| self.b.variable_from("resume", region.start));
        let copies = self.version_copies;
        self.version_copies *= versions.len();
        let mut completeness = self.begin_subregions();
        for (set, steps) in versions {
            let (final_groups, live) = split(set);
            // Scalars that are final belong to other versions, even before the first iteration.
            let mut conds: Vec<ExprId> = final_groups.iter().map(|group| self.all_final(group)).collect();
            for group in &live {
                let is_final = self.all_final(group);
                conds.push(self.b.call_in(Op::Not, DType::Bool, &[is_final]));
            }
            let cond = conds.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b]));
            let then = self.in_block(|this| {
                let from = match resume.filter(|_| set != 0) {
                    Some(resume) => {
                        let at = this.b.get(resume);
                        let start = this.b.name("from", at);
                        Region { start, whole: false, point: false, filled: false, chunk: None, ..region }
                    }
                    None => region,
                };
                if let Some(resume) = resume {
                    this.b.assign(resume, region.stop);
                }
                this.version(from, steps, live, resume);
            });
            self.end_subregion(&mut completeness);
            match cond {
                Some(cond) => self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() }),
                None => then.into_iter().for_each(|stmt| self.b.emit(stmt)),
            }
        }
        self.end_subregions(completeness);
        self.version_copies = copies;
    }

    /// The iterations from here on, until one more group of scalars is final.
    fn version(&mut self, region: Region, steps: Vec<Step>, live: Vec<Vec<Final>>, resume: Option<VarId>) {
        let alone = match &live[..] {
            [] => return self.region(region, steps),
            // Without this scalar, the iteration has no work.
            [group] => match group[..] {
                [what] => Some(what).filter(|_| without(&steps, &[what.scalar]).is_empty()),
                _ => None,
            },
            _ => None,
        };
        let mut outer = std::mem::replace(&mut self.b, Builder::new(""));
        outer.labelled(|b, label| {
            std::mem::swap(&mut self.b, b);
            match alone {
                Some(what) => {
                    self.exits.push(EarlyExit { what, label });
                    self.region(region, steps);
                    self.exits.pop();
                }
                None => {
                    self.versions.push(LoopVersion { index: region.index, groups: live, label, resume });
                    self.region(region, steps);
                    self.versions.pop();
                }
            }
            std::mem::swap(&mut self.b, b);
        });
        self.b = outer;
    }

    /// The scalars that can become final in a loop, unless an enclosing loop exits then.
    fn short_circuits(&self, body: &[Step]) -> Vec<Final> {
        let inner = declared(body);
        let mut found: Vec<(TensorId, Option<Final>)> = Vec::new();
        visit_assigns(body, &mut |target, update| {
            let tensor = target.tensor;
            if inner.contains(&tensor) || !self.is_short_circuit(tensor) {
                return;
            }
            // A value is final under one operator only.
            let new = update.and_then(|update| self.finality(tensor, update));
            match found.iter_mut().find(|(other, _)| *other == tensor) {
                Some((_, known)) => *known = known.filter(|known| Some(*known) == new),
                None => found.push((tensor, new)),
            }
        });
        let exited = |what: &Final| self.exits.iter().any(|exit| exit.what.scalar == what.scalar);
        found.into_iter().filter_map(|(_, what)| what).filter(|what| !exited(what)).collect()
    }

    fn is_short_circuit(&self, tensor: TensorId) -> bool {
        matches!(
            self.program.tensor(tensor).declaration,
            Some(Declaration { storage: Storage::Scalar(ScalarKind::ShortCircuit), .. })
        )
    }

    /// The condition under which an update changes a scalar no more.
    fn finality(&self, scalar: TensorId, update: &UpdateOp) -> Option<Final> {
        let (dtype, operand) = (self.bound[scalar.index()].dtype, update.operand);
        let test = match (update.op, &update.extra[..]) {
            // A chosen value stays, unless it represents "nothing chosen".
            (Op::Choose, []) if dtype == operand => FinalTest::IsNot(Value::zero(dtype)),
            (Op::Choose, [Node::Known(nothing)]) if dtype == operand => FinalTest::IsNot(nothing.cast(dtype)),
            (op, []) => {
                // Strictly, an annihilator of numbers does not annihilate NaN.
                let zero = self.policy.annihilator(op, operand)?;
                let kept = zero.cast(dtype);
                FinalTest::Is(Some(kept).filter(|kept| kept.cast(operand).same_number(zero))?)
            }
            _ => return None,
        };
        Some(Final { scalar, test })
    }

    /// Groups of scalars that lose their updates together: one each, as far as the limit on
    /// versions permits. `ends`: without any of them no work is left. None if the loop has one
    /// version only.
    fn grouped(&self, mut found: Vec<Final>, ends: bool, unordered: bool) -> Option<Vec<Vec<Final>>> {
        let most = VERSIONS.min(NESTED / self.version_copies.max(1)).max(1);
        let versions = |groups: usize| (1 << groups) - usize::from(ends);
        let groups = (1..=found.len().min(VERSIONS)).rev().find(|groups| versions(*groups) <= most)?;
        // A loop over unordered coordinates cannot be resumed.
        let groups = if unordered && ends { 1 } else { groups };
        if unordered && !ends {
            return None;
        }
        let rest = found.split_off(groups - 1);
        Some(found.into_iter().map(|what| vec![what]).chain([rest]).collect())
    }

    fn all_final(&mut self, group: &[Final]) -> ExprId {
        let yes = self.b.constant(Value::Bool(true));
        let conds: Vec<ExprId> = group.iter().filter_map(|what| self.is_final(*what)).collect();
        conds.into_iter().reduce(|a, b| self.b.call_in(Op::And, DType::Bool, &[a, b])).unwrap_or(yes)
    }

    fn is_final(&mut self, what: Final) -> Option<ExprId> {
        let BoundStorage::Scalar { var, .. } = self.bound[what.scalar.index()].storage else { return None };
        let (op, value) = match what.test {
            FinalTest::Is(value) => (Op::Eq, value),
            FinalTest::IsNot(value) => (Op::Ne, value),
        };
        let (dtype, now) = (value.dtype(), self.b.get(var));
        let value = self.b.constant(value);
        Some(self.b.call_in(op, dtype, &[now, value]))
    }

    /// Exits the loops that only update a scalar, once an update has made it final.
    pub(super) fn break_when_final(&mut self, tensor: TensorId) {
        let exit = self.exits.iter().find(|exit| exit.what.scalar == tensor).map(|exit| (exit.what, exit.label));
        let Some((what, label)) = exit else { return };
        if let Some(cond) = self.is_final(what) {
            self.b.emit(Stmt::If { cond, then: vec![Stmt::Break(label)], otherwise: Vec::new() });
        }
    }

    /// The groups of scalars that an iteration may make final, if its loop has versions.
    pub(super) fn watched(&self, index: IndexId, steps: &[Step]) -> Vec<Vec<Final>> {
        let Some(version) = self.versions.iter().rev().find(|version| version.index == index) else {
            return Vec::new();
        };
        let mut written = Vec::new();
        visit_targets(steps, &mut |target| written.push(target.tensor));
        let updated = |group: &&Vec<Final>| group.iter().any(|what| written.contains(&what.scalar));
        version.groups.iter().filter(updated).cloned().collect()
    }

    /// Ends the iteration at `i`: exits the version if it made a group of scalars final.
    pub(super) fn break_version(&mut self, index: IndexId, i: ExprId, watched: &[Vec<Final>]) {
        let Some(version) = self.versions.iter().rev().find(|version| version.index == index) else { return };
        let (label, resume) = (version.label, version.resume);
        let conds: Vec<ExprId> = watched.iter().map(|group| self.all_final(group)).collect();
        let Some(cond) = self.any(conds) else { return };
        let then = self.in_block(|this| {
            if let Some(resume) = resume {
                let next = match this.collapsed {
                    // A collapsed loop did all iterations of a run at once.
                    Some((of, stop)) if of == index => stop,
                    _ => {
                        let one = this.b.int(1);
                        this.b.add(i, one)
                    }
                };
                this.b.assign(resume, next);
            }
            this.b.emit(Stmt::Break(label));
        });
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }

    /// True if a loop is resumed somewhere, so its iterations must be in order.
    pub(super) fn resumes(&self, index: IndexId) -> bool {
        self.versions.iter().any(|version| version.index == index && version.resume.is_some())
    }
}

/// The statements without the updates of some scalars, and without loops, conditions, names and
/// temporaries that served nothing else.
fn without(steps: &[Step], scalars: &[TensorId]) -> Vec<Step> {
    if scalars.is_empty() {
        return steps.to_vec();
    }
    let inner = declared(steps);
    let mut rest =
        retained(steps, &|step| !matches!(step, Step::Assign(target, ..) if scalars.contains(&target.tensor)));
    loop {
        let (tensors, vars) = used(&rest);
        let dead = |tensor: &TensorId| inner.contains(tensor) && !tensors.contains(tensor);
        let next = retained(&rest, &|step| match step {
            Step::Assign(target, ..) => !dead(&target.tensor),
            Step::Declare(tensor, _) | Step::Freeze(tensor) => !dead(tensor),
            Step::Let(var, _) => vars.contains(var),
            _ => true,
        });
        if next == rest {
            return rest;
        }
        rest = next;
    }
}

/// The retained statements, without loops and conditions that became empty.
fn retained(steps: &[Step], keep: &dyn Fn(&Step) -> bool) -> Vec<Step> {
    let mut kept = Vec::new();
    for step in steps.iter().filter(|step| keep(step)) {
        match step {
            Step::For(index, bounds, body) => {
                let body = retained(body, keep);
                if !body.is_empty() {
                    kept.push(Step::For(*index, bounds.clone(), body));
                }
            }
            Step::If(cond, then, otherwise) => {
                let (then, otherwise) = (retained(then, keep), retained(otherwise, keep));
                if !then.is_empty() || !otherwise.is_empty() {
                    kept.push(Step::If(cond.clone(), then, otherwise));
                }
            }
            other => kept.push(other.clone()),
        }
    }
    kept
}

/// The tensors that are read, and the names that are used.
fn used(steps: &[Step]) -> (Vec<TensorId>, Vec<program::VarId>) {
    let (mut tensors, mut vars) = (Vec::new(), Vec::new());
    let mut note = |node: &Node| match node {
        Node::Var(var) => vars.push(*var),
        Node::Entry(entry) => tensors.push(entry.tensor),
        Node::Access(access) => {
            if let ReadSource::Tensor(tensor, _) = &access.source {
                tensors.push(*tensor);
            }
        }
        _ => {}
    };
    visit_steps(steps, &mut note);
    visit_targets(steps, &mut |target| target.subs.iter().flat_map(Sub::nodes).for_each(|node| node.visit(&mut note)));
    (tensors, vars)
}
