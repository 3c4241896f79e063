//! Early exit from reductions, and re-specialisation of loops around short-circuit scalars.
//!
//! A short-circuit scalar is *final* once its value is the annihilator of its operator: no update changes it any more. A loop that
//! does nothing but update it is left there. A loop that does more runs in *versions*, one for each set of scalars that are final:
//! at the end of the iteration that makes another one final, the version notes where the next one resumes, and is left; the next
//! version is lowered without the updates, so that whatever they alone asked for (other operands, inner loops, temporaries)
//! is not visited. Versions only lose scalars, so that each is entered once at most, in the order in which they are emitted.

use super::Lowerer;
use super::assign::declared;
use super::bind::Stored;
use super::node::{Node, Source, Step, Sub, Update, visit_assigns, visit_steps, visit_targets};
use super::region::Region;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{Builder, ExprId, LabelId, Stmt, VarId};
use tamis_ir::program::{self, Declaration, IndexId, ScalarKind, Storage, TensorId};

/// No loop has more versions because of the scalars that it updates.
const VERSIONS: usize = 8;

/// No statement has more copies because of the versions of all loops around it. Copies because of sequences are counted apart: a
/// version that looked structure up would visit more than it saves.
const NESTED: usize = 16;

/// A scalar, and when no update changes it any more.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Final {
    pub(super) scalar: TensorId,
    test: Test,
}

#[derive(Clone, Copy, PartialEq)]
enum Test {
    /// It is the annihilator.
    Is(Value),
    /// It was chosen.
    IsNot(Value),
}

/// A loop that is left as soon as a scalar is final, from wherever that is updated.
pub(super) struct Exit {
    what: Final,
    label: LabelId,
}

/// A version of a loop that is left at the end of an iteration, once all scalars of a group are final.
pub(super) struct Version {
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
        // The sets of groups that are final, the smaller ones first; one with which nothing is left to do has no version.
        let mut sets: Vec<usize> = (0..1 << groups.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        let split = |set: usize| -> (Vec<Vec<Final>>, Vec<Vec<Final>>) {
            let (mut gone, mut live) = (Vec::new(), Vec::new());
            for (k, group) in groups.iter().enumerate() {
                if set >> k & 1 == 1 { gone.push(group.clone()) } else { live.push(group.clone()) }
            }
            (gone, live)
        };
        let versions: Vec<(usize, Vec<Step>)> = sets
            .into_iter()
            .map(|set| (set, without(&body, &scalars(&split(set).0))))
            .filter(|(_, steps)| !steps.is_empty())
            .collect();
        let resume = (versions.len() > 1).then(|| self.b.variable_from("resume", region.start));
        let copies = self.version_copies;
        self.version_copies *= versions.len();
        let mut parts = self.begin_parts();
        for (set, steps) in versions {
            let (gone, live) = split(set);
            // Scalars that are final belong to other versions, even before the first iteration.
            let mut conds: Vec<ExprId> = gone.iter().map(|group| self.all_final(group)).collect();
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
                        Region { start, whole: false, point: false, filled: false, piece: None, ..region }
                    }
                    None => region,
                };
                if let Some(resume) = resume {
                    this.b.assign(resume, region.stop);
                }
                this.version(from, steps, live, resume);
            });
            self.end_part(&mut parts);
            match cond {
                Some(cond) => self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() }),
                None => then.into_iter().for_each(|stmt| self.b.emit(stmt)),
            }
        }
        self.end_parts(parts);
        self.version_copies = copies;
    }

    /// The iterations from here on, until one more group of scalars is final.
    fn version(&mut self, region: Region, steps: Vec<Step>, live: Vec<Vec<Final>>, resume: Option<VarId>) {
        let alone = match &live[..] {
            [] => return self.region(region, steps),
            // Nothing is left to do in the iteration, either.
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
                    self.exits.push(Exit { what, label });
                    self.region(region, steps);
                    self.exits.pop();
                }
                None => {
                    self.versions.push(Version { index: region.index, groups: live, label, resume });
                    self.region(region, steps);
                    self.versions.pop();
                }
            }
            std::mem::swap(&mut self.b, b);
        });
        self.b = outer;
    }

    /// The scalars of a loop that can become final in it, unless a loop around is left at once then.
    fn short_circuits(&self, body: &[Step]) -> Vec<Final> {
        let inner = declared(body);
        let mut found: Vec<(TensorId, Option<Final>)> = Vec::new();
        visit_assigns(body, &mut |target, update| {
            let tensor = target.tensor;
            if inner.contains(&tensor) || !self.is_short_circuit(tensor) {
                return;
            }
            // A value is final under one and the same operator only.
            let new = update.and_then(|update| self.finality(tensor, update));
            match found.iter_mut().find(|(other, _)| *other == tensor) {
                Some((_, known)) => *known = known.filter(|known| Some(*known) == new),
                None => found.push((tensor, new)),
            }
        });
        let left = |what: &Final| self.exits.iter().any(|exit| exit.what.scalar == what.scalar);
        found.into_iter().filter_map(|(_, what)| what).filter(|what| !left(what)).collect()
    }

    fn is_short_circuit(&self, tensor: TensorId) -> bool {
        matches!(
            self.program.tensor(tensor).declaration,
            Some(Declaration { storage: Storage::Scalar(ScalarKind::ShortCircuit), .. })
        )
    }

    /// When no update of this kind changes a scalar any more.
    fn finality(&self, scalar: TensorId, update: &Update) -> Option<Final> {
        let (dtype, operand) = (self.bound[scalar.index()].dtype, update.operand);
        let test = match (update.op, &update.extra[..]) {
            // What was chosen stays, unless it is what stands for nothing.
            (Op::Choose, []) if dtype == operand => Test::IsNot(Value::zero(dtype)),
            (Op::Choose, [Node::Known(nothing)]) if dtype == operand => Test::IsNot(nothing.cast(dtype)),
            (op, []) => {
                // Strictly, what annihilates numbers does not annihilate NaN.
                let zero = self.policy.annihilator(op, operand)?;
                let kept = zero.cast(dtype);
                Test::Is(Some(kept).filter(|kept| kept.cast(operand).same_number(zero))?)
            }
            _ => return None,
        };
        Some(Final { scalar, test })
    }

    /// Scalars that lose their updates together: each by itself, as far as there is room for the versions. `ends`: without any of
    /// them nothing is left to do. None if the loop has one version.
    fn grouped(&self, mut found: Vec<Final>, ends: bool, unordered: bool) -> Option<Vec<Vec<Final>>> {
        let most = VERSIONS.min(NESTED / self.version_copies.max(1)).max(1);
        let versions = |groups: usize| (1 << groups) - usize::from(ends);
        let groups = (1..=found.len().min(VERSIONS)).rev().find(|groups| versions(*groups) <= most)?;
        // Coordinates that come in any order cannot be resumed at.
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
        let Stored::Scalar { var, .. } = self.bound[what.scalar.index()].storage else { return None };
        let (op, value) = match what.test {
            Test::Is(value) => (Op::Eq, value),
            Test::IsNot(value) => (Op::Ne, value),
        };
        let (dtype, now) = (value.dtype(), self.b.get(var));
        let value = self.b.constant(value);
        Some(self.b.call_in(op, dtype, &[now, value]))
    }

    /// A scalar was updated: leaves the loops that do nothing else once it is final.
    pub(super) fn leave_when_final(&mut self, tensor: TensorId) {
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

    /// The iteration at `i` is over: leaves the version if it made a group of scalars final.
    pub(super) fn leave_version(&mut self, index: IndexId, i: ExprId, watched: &[Vec<Final>]) {
        let Some(version) = self.versions.iter().rev().find(|version| version.index == index) else { return };
        let (label, resume) = (version.label, version.resume);
        let conds: Vec<ExprId> = watched.iter().map(|group| self.all_final(group)).collect();
        let Some(cond) = self.any(conds) else { return };
        let then = self.in_block(|this| {
            if let Some(resume) = resume {
                let next = match this.run {
                    // All iterations of a run were done at once.
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

    /// Whether a loop is resumed somewhere, so that its iterations come in order.
    pub(super) fn resumes(&self, index: IndexId) -> bool {
        self.versions.iter().any(|version| version.index == index && version.resume.is_some())
    }
}

/// What is left of statements without the updates of some scalars: no loop, condition, name or temporary that served nothing else.
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

/// The statements that are kept, without loops and conditions in which none is.
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
            if let Source::Tensor(tensor, _) = &access.source {
                tensors.push(*tensor);
            }
        }
        _ => {}
    };
    visit_steps(steps, &mut note);
    visit_targets(steps, &mut |target| target.subs.iter().flat_map(Sub::nodes).for_each(|node| node.visit(&mut note)));
    (tensors, vars)
}
