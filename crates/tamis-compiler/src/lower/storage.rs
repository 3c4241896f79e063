//! The storage of tensors that a program declares: making it, resetting it, and completing it for readers.

use super::Lowerer;
use super::bind::Stored;
use super::node::Source;
use super::write_plan::Mode;
use std::sync::Arc;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Role, Stmt, VarId, Workspace};
use tamis_ir::looplet::Writer;
use tamis_ir::program::TensorId;
use tamis_tensor::levels::{LevelType, Placement, level_type};

/// What the kernel keeps about a declared tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// For each level, how many coordinates are stored.
    pub(super) counts: Vec<VarId>,
    /// For each level that lists what is inserted, the list.
    lists: Vec<BufferId>,
    /// For each level and the leaf: a constant that says whether some positions may never be written.
    skipped: Vec<VarId>,
    /// For each level, how many coordinates are expected; the value of this variable is decided at the end.
    expected: Vec<VarId>,
    /// What it is, if anything is expected.
    pub(super) expectation: Vec<Option<ExprId>>,
    /// Whether that constant is false, as far as the declaration that was lowered last goes.
    pub(super) complete: Vec<bool>,
    /// Whether an earlier one left positions unwritten: a body that is lowered for several regions declares its tensors
    /// in each of them, and does not write them in all.
    partial: Vec<bool>,
    declared: bool,
    /// Where elements are collected that come in any order.
    pub(super) workspace: Option<Arc<Workspace>>,
    /// How many entries it has, if updates ask whether an element is new.
    pub(super) entries: Option<VarId>,
    /// The coordinates that are being written, outermost level first.
    pub(super) open: Vec<super::append_slot::Open>,
    /// The element that is being written.
    pub(super) value: Option<VarId>,
    /// How many conditions were around the declaration.
    pub(super) depth: usize,
    /// For each level and the leaf: there is room for what is appended.
    pub(super) reserved: Vec<bool>,
    /// For each level: there is room for the positions of the level above that are appended.
    pub(super) parents: Vec<bool>,
    /// For each level and the leaf: there was room made for what is appended, somewhere.
    pub(super) spare: Vec<bool>,
    /// For levels of one coordinate: whether it was written.
    pub(super) used: Vec<Option<VarId>>,
    /// Whether what its outermost level lists is sorted, where that is decided at the end.
    pub(super) sorts: Option<VarId>,
    /// Some loop over it can tell in which order its coordinates come.
    pub(super) order_matters: bool,
}

/// What was complete before some parts, and what every part so far has completed.
pub(super) struct Parts {
    before: Vec<Vec<bool>>,
    all: Option<Vec<Vec<bool>>>,
}

/// Elements of an array at most, as far as kernels count. No memory holds as many, and a sum of a few such numbers does not overflow.
pub(super) const MOST_ELEMENTS: i64 = 1 << 61;

/// No more values than this are expected of full levels below a list: each of few coordinates may have many, and all of them seldom
/// come.
const MOST_EXPECTED: i64 = 1 << 26;

impl Lowerer<'_> {
    /// Variables and buffers that declared tensors need throughout the kernel.
    pub(super) fn set_up(&mut self) {
        for k in 0..self.bound.len() {
            let Some(plan) = self.plans[k].clone() else { continue };
            let Stored::Levels { arrays, .. } = self.bound[k].storage.clone() else { continue };
            let name = self.program.tensors[k].name.clone();
            let mut state = State {
                used: vec![None; arrays.len()],
                reserved: vec![false; arrays.len() + 1],
                parents: vec![false; arrays.len() + 1],
                spare: vec![false; arrays.len() + 1],
                ..State::default()
            };
            for level in 0..=arrays.len() {
                let skipped = self.b.new_var(format!("{name}{level}_skipped"), DType::Bool, false);
                state.skipped.push(skipped);
                state.complete.push(false);
                state.partial.push(false);
                let Some(named) = arrays.get(level) else { continue };
                state.expected.push(self.b.new_var(format!("{name}{level}_expected"), DType::I64, false));
                state.expectation.push(None);
                let count = self.b.new_var(format!("{name}{level}_count"), DType::I64, true);
                state.counts.push(count);
                let crd = named.iter().find(|(n, _)| *n == "crd").map(|(_, buffer)| *buffer);
                let zero = self.b.int(0);
                if !named.is_empty() {
                    self.prologue.push(Stmt::Let { var: count, value: zero });
                }
                let list = match (crd, plan.mode) {
                    // Below the root there is one fiber: its list is what readers want.
                    (Some(crd), _) if level == 0 => crd,
                    (Some(_), Mode::Insert) => {
                        let wide = Elem::Index(tamis_ir::format::Width::U64);
                        self.b.buffer(format!("{name}{level}_list"), wide, Role::Scratch)
                    }
                    _ => BufferId(u32::MAX),
                };
                state.lists.push(list);
            }
            if plan.mode == Mode::Scatter {
                state.workspace = Some(self.new_workspace(TensorId(k as u32), plan.merge));
                if plan.fibers_matter {
                    let entries = self.b.new_var(format!("{name}_entries"), DType::I64, true);
                    let zero = self.b.int(0);
                    self.prologue.push(Stmt::Let { var: entries, value: zero });
                    state.entries = Some(entries);
                }
            }
            self.states[k] = state;
            self.set_up_sorting(TensorId(k as u32), &plan);
        }
    }

    /// Parts of a region are about to be lowered, one after the other: what is written in all of them is complete.
    pub(super) fn begin_parts(&mut self) -> Parts {
        let before: Vec<Vec<bool>> = self.states.iter().map(|state| state.complete.clone()).collect();
        self.states.iter_mut().for_each(|state| state.complete.fill(false));
        Parts { before, all: None }
    }

    /// One of the parts is lowered.
    pub(super) fn end_part(&mut self, parts: &mut Parts) {
        let here: Vec<Vec<bool>> = self
            .states
            .iter_mut()
            .map(|state| {
                let none = vec![false; state.complete.len()];
                std::mem::replace(&mut state.complete, none)
            })
            .collect();
        parts.all = Some(match parts.all.take() {
            None => here,
            Some(all) => all.iter().zip(&here).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *a && *b).collect()).collect(),
        });
    }

    /// All of the parts are.
    pub(super) fn end_parts(&mut self, parts: Parts) {
        for (k, state) in self.states.iter_mut().enumerate() {
            for (level, complete) in state.complete.iter_mut().enumerate() {
                let before = parts.before[k].get(level).copied().unwrap_or(false);
                let all = parts.all.as_ref().and_then(|all| all[k].get(level).copied()).unwrap_or(false);
                *complete = before || all;
            }
        }
    }

    /// Statements that come before all others.
    pub(super) fn finish_prologue(&mut self) -> Vec<Stmt> {
        let mut stmts = std::mem::take(&mut self.prologue);
        stmts.extend(self.sorting());
        for state in &self.states {
            for (level, var) in state.skipped.iter().enumerate() {
                let value = self.b.constant(Value::Bool(state.partial[level] || !state.complete[level]));
                stmts.push(Stmt::Let { var: *var, value });
            }
        }
        for k in 0..self.states.len() {
            for (var, expectation) in
                self.states[k].expected.clone().into_iter().zip(self.states[k].expectation.clone())
            {
                let value = match expectation {
                    Some(all) => self.share_of(all),
                    None => self.b.int(0),
                };
                stmts.push(Stmt::Let { var, value });
            }
        }
        stmts
    }

    /// Asks a level of a declared tensor to write.
    pub(super) fn writer<T>(
        &mut self,
        tensor: TensorId,
        level: usize,
        ask: impl FnOnce(&'static LevelType, &mut Writer) -> T,
    ) -> Option<T> {
        let Stored::Levels { format, arrays, .. } = self.bound[tensor.index()].storage.clone() else { return None };
        let extent = *self.bound[tensor.index()].extents.get(level)?;
        let row = level_type(format.levels()[level].kind).ok()?;
        let state = &self.states[tensor.index()];
        let (count, skipped, reserved) = (state.counts[level], state.skipped[level], state.reserved[level]);
        let parents = state.parents[level];
        let skipped = self.b.get(skipped);
        let name = format!("{}{level}", self.program.tensor(tensor).name);
        let mut writer = Writer {
            arrays: &arrays[level],
            extent,
            count,
            skipped,
            reserved,
            parents,
            narrow: format.levels()[level].pos.is_some() || format.levels()[level].crd.is_some(),
            name: &name,
            builder: &mut self.b,
        };
        Some(ask(row, &mut writer))
    }

    pub(super) fn level_count(&self, tensor: TensorId) -> usize {
        self.states[tensor.index()].counts.len()
    }

    pub(super) fn row(&self, tensor: TensorId, level: usize) -> Option<&'static LevelType> {
        match &self.bound[tensor.index()].storage {
            Stored::Levels { format, .. } => level_type(format.levels().get(level)?.kind).ok(),
            Stored::Scalar { .. } => None,
        }
    }

    pub(super) fn values(&self, tensor: TensorId) -> Option<BufferId> {
        match &self.bound[tensor.index()].storage {
            Stored::Levels { values, .. } => *values,
            Stored::Scalar { .. } => None,
        }
    }

    /// Makes a tensor anew.
    pub(super) fn declare(&mut self, tensor: TensorId) {
        let bound = self.bound[tensor.index()].clone();
        if let Stored::Scalar { written, output, .. } = bound.storage {
            // A body that is lowered for several regions declares its scalars in each of them.
            let name = self.program.tensor(tensor).name.clone();
            let fill = self.b.constant(bound.fill);
            let no = self.b.constant(Value::Bool(false));
            let written = written.map(|_| self.b.variable_from(format!("{name}_written"), no));
            let var = self.b.variable_from(name, fill);
            self.bound[tensor.index()].storage = Stored::Scalar { var, written, output };
            return;
        }
        let state = &mut self.states[tensor.index()];
        state.depth = self.conditional;
        for (partial, complete) in state.partial.iter_mut().zip(&mut state.complete) {
            *partial |= state.declared && !*complete;
            *complete = false;
        }
        state.declared = true;
        let (zero, one) = (self.b.int(0), self.b.int(1));
        match self.plans[tensor.index()].as_ref().map(|plan| plan.mode) {
            Some(Mode::Append) => match self.alike(tensor) {
                Some(alike) => self.make_alike(tensor, alike),
                None => self.assemble_all(tensor),
            },
            Some(Mode::Scatter) => self.reset_workspace(tensor),
            _ => {
                let mut parents = one;
                let mut listed = false;
                for level in 0..self.level_count(tensor) {
                    let list = self.states[tensor.index()].lists[level];
                    listed |= self.row(tensor, level).is_some_and(|row| row.write.lists());
                    parents = self.prepare_level(tensor, level, list, parents);
                }
                let Some(values) = self.values(tensor) else { return };
                // Where coordinates are listed, all elements but those listed are as they were at first.
                let fill = listed.then_some(bound.fill);
                self.b.emit(Stmt::Grow { buffer: values, len: parents, fill });
                if !listed {
                    let value = self.b.constant(bound.fill);
                    self.b.emit(Stmt::Fill { buffer: values, start: zero, len: parents, value });
                }
            }
        }
    }

    /// Empty levels, ready for appending.
    pub(super) fn assemble_all(&mut self, tensor: TensorId) {
        let (zero, one) = (self.b.int(0), self.b.int(1));
        for level in 0..self.level_count(tensor) {
            let Stored::Levels { arrays, .. } = &self.bound[tensor.index()].storage else { continue };
            if !arrays[level].is_empty() {
                let count = self.states[tensor.index()].counts[level];
                self.b.assign(count, zero);
            }
        }
        let reached = self.assemble(tensor, 0, zero, one);
        // Further down nothing exists yet.
        for level in reached + 1..self.level_count(tensor) {
            self.writer(tensor, level, |row, w| row.write.assemble(w, zero, zero));
        }
        if self.program.results.contains(&tensor) {
            self.expect(tensor);
        }
    }

    /// Room for as many coordinates as are expected, so that arrays need not grow again and again.
    fn expect(&mut self, tensor: TensorId) {
        let levels = self.level_count(tensor);
        for level in 0..levels {
            let appended = self.row(tensor, level).is_some_and(|row| row.write.placement() != Placement::Computed);
            if !appended {
                continue;
            }
            let room = self.b.get(self.states[tensor.index()].expected[level]);
            self.writer(tensor, level, |row, w| row.write.reserve(w, room));
            if let (Some(below), Some(values)) = (self.below_each(tensor, level), self.values(tensor)) {
                let mut len = self.times(room, below);
                if level + 1 < levels {
                    let most = self.b.int(MOST_EXPECTED);
                    len = self.b.call_in(Op::Min, DType::I64, &[len, most]);
                }
                self.b.emit(Stmt::Grow { buffer: values, len, fill: None });
            }
        }
    }

    /// How many values lie below each coordinate of a level, if all levels below are full.
    fn below_each(&mut self, tensor: TensorId, level: usize) -> Option<ExprId> {
        let mut each = self.b.int(1);
        for below in level + 1..self.level_count(tensor) {
            let extent = *self.bound[tensor.index()].extents.get(below)?;
            let full = self.row(tensor, below).is_some_and(|row| {
                row.capabilities.full && row.write.placement() == Placement::Computed && !row.write.lists()
            });
            each = full.then(|| self.times(each, extent))?;
        }
        Some(each)
    }

    /// A product of sizes that may be of more elements than there can be: no product is larger than [`MOST_ELEMENTS`], of which no memory
    /// holds as many, so that growing to it fails.
    pub(super) fn times(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let product = self.b.call_in(Op::Mul, DType::I64, &[a, b]);
        let constant = |id: ExprId| self.b.as_constant(id).and_then(|value| value.as_i64());
        match (constant(a), constant(b)) {
            (Some(a), Some(b)) => return self.b.int(a.saturating_mul(b).min(MOST_ELEMENTS)),
            (Some(0 | 1), _) | (_, Some(0 | 1)) => return product,
            _ => {}
        }
        let (one, most) = (self.b.int(1), self.b.int(MOST_ELEMENTS));
        let by = self.b.call_in(Op::Max, DType::I64, &[b, one]);
        let limit = self.b.call_in(Op::FloorDiv, DType::I64, &[most, by]);
        let fits = self.b.call_in(Op::Le, DType::I64, &[a, limit]);
        self.b.call_in(Op::Select, DType::I64, &[fits, product, most])
    }

    /// How many coordinates a level of a parameter stores in all.
    pub(super) fn stored(&mut self, tensor: TensorId, level: usize) -> Option<ExprId> {
        let Stored::Levels { format, arrays, .. } = self.bound[tensor.index()].storage.clone() else { return None };
        if !self.program.params.contains(&tensor) {
            return None;
        }
        let mut count = self.b.int(1);
        for (k, (spec, arrays)) in format.levels().iter().zip(&arrays).enumerate().take(level + 1) {
            let full = level_type(spec.kind).is_ok_and(|row| row.capabilities.full);
            let named = |name: &str| arrays.iter().find(|(other, _)| *other == name).map(|(_, buffer)| *buffer);
            let (pos, blocks) = (named("pos"), named("ofs"));
            count = match pos {
                Some(pos) => self.b.load(pos, count),
                None if blocks.is_some() => count,
                None if full => {
                    let size = *self.bound[tensor.index()].extents.get(k)?;
                    self.b.call_in(Op::Mul, DType::I64, &[count, size])
                }
                None => count,
            };
            if let Some(offsets) = blocks {
                count = self.b.load(offsets, count);
            }
        }
        Some(count)
    }

    /// Room for `count` positions of a level from `start` on, and for what exists below with them; gives the last level
    /// that was reached.
    pub(super) fn assemble(&mut self, tensor: TensorId, level: usize, start: ExprId, count: ExprId) -> usize {
        let (mut start, mut count) = (start, count);
        for level in level..self.level_count(tensor) {
            let below = self.writer(tensor, level, |row, w| row.write.assemble(w, start, count)).flatten();
            match below {
                Some(range) => (start, count) = range,
                None => return level,
            }
        }
        let leaf = self.level_count(tensor);
        let Some(values) = self.values(tensor) else { return leaf };
        let skipped = self.states[tensor.index()].skipped[self.level_count(tensor)];
        let (cond, fill) = (self.b.get(skipped), self.b.constant(self.bound[tensor.index()].fill));
        let len = self.b.add(start, count);
        self.b.emit(Stmt::Grow { buffer: values, len, fill: None });
        self.b.branch(cond, |b| b.emit(Stmt::Fill { buffer: values, start, len: count, value: fill }), |_| {});
        leaf
    }

    /// Completes a tensor for its readers.
    pub(super) fn freeze(&mut self, tensor: TensorId) {
        let Some(plan) = self.plans[tensor.index()].clone() else { return };
        for (access, _) in &mut self.resolved {
            if matches!(access.source, Source::Tensor(t, _) if t == tensor) {
                // What was found before is out of date, and must not be found again.
                access.id = u32::MAX;
            }
        }
        if plan.mode == Mode::Scatter {
            self.append_entries(tensor);
            if self.is_settled_in_place(tensor) {
                return;
            }
        }
        if plan.alike.is_some() {
            return;
        }
        let mut parents = self.b.int(1);
        for level in 0..self.level_count(tensor) {
            let list = self.states[tensor.index()].lists[level];
            let sorts = self.sorts(tensor, level, plan.in_order);
            let children = self.writer(tensor, level, |row, w| match plan.mode {
                Mode::Insert => row.write.settle(w, list, parents, sorts),
                _ => row.write.freeze(w, parents),
            });
            parents = children.unwrap_or(parents);
        }
    }

    /// Makes a level ready for insertions in any order; gives how many positions it has.
    fn prepare_level(&mut self, tensor: TensorId, level: usize, list: BufferId, parents: ExprId) -> ExprId {
        // What lies below a coordinate, down to the next level that lists its own.
        let mut cells = self.b.int(1);
        let mut lists_below = false;
        for next in level + 1..self.level_count(tensor) {
            lists_below |= self.row(tensor, next).is_some_and(|row| row.write.lists());
            if let Some(extent) = self.writer(tensor, next, |_, w| w.extent) {
                cells = self.b.call_in(Op::Mul, DType::I64, &[cells, extent]);
            }
        }
        let values = self.values(tensor).filter(|_| !lists_below);
        let fill = self.b.constant(self.bound[tensor.index()].fill);
        let prepared = self.writer(tensor, level, |row, w| {
            row.write.prepare(w, list, parents, &mut |b, at| {
                let Some(values) = values else { return };
                if cells == b.int(1) {
                    b.store(values, at, fill);
                } else {
                    let start = b.call_in(Op::Mul, DType::I64, &[at, cells]);
                    b.emit(Stmt::Fill { buffer: values, start, len: cells, value: fill });
                }
            })
        });
        prepared.unwrap_or(parents)
    }

    /// Where an element is that may be written in any order; `fresh` becomes true if it was not stored before.
    pub(super) fn insert(&mut self, tensor: TensorId, coordinates: &[ExprId], fresh: Option<VarId>) -> ExprId {
        let mut position = self.b.int(0);
        for (level, coordinate) in coordinates.iter().enumerate() {
            let list = self.states[tensor.index()].lists[level];
            // The innermost level that lists its coordinates knows.
            let lists = |k: usize| self.row(tensor, k).is_some_and(|row| row.write.lists());
            let fresh = fresh.filter(|_| !(level + 1..self.level_count(tensor)).any(lists));
            let inserted = self.writer(tensor, level, |row, w| row.write.insert(w, list, position, *coordinate, fresh));
            position = inserted.unwrap_or(position);
        }
        position
    }

    /// Whether a level's coordinates are kept one by one, once something was written below them.
    pub(super) fn commits(&self, tensor: TensorId, level: usize) -> bool {
        self.alike(tensor).is_none()
            && self
                .row(tensor, level)
                .is_some_and(|row| row.write.placement() != Placement::Computed || row.write.lists())
    }

    /// Scalars that are results go to their outputs.
    pub(super) fn store_scalars(&mut self) {
        for id in self.program.results.clone() {
            if let Stored::Scalar { var, output: Some(output), .. } = self.bound[id.index()].storage {
                let (zero, one, value) = (self.b.int(0), self.b.int(1), self.b.get(var));
                self.b.emit(Stmt::Grow { buffer: output, len: one, fill: None });
                self.b.store(output, zero, value);
            }
        }
    }
}
