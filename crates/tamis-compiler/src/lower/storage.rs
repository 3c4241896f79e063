//! Storage of declared tensors: allocation, initialisation, insertion at computed positions, and
//! completion for readers.
//!
//! In: the write plan of each tensor. Out: statements that assemble its levels (`assemble`), reset
//! them (`declare`), find positions (`insert`) and complete them (`freeze`). Positions that may
//! never be written hold the fill value.

use super::Lowerer;
use super::bind::BoundStorage;
use super::node::ReadSource;
use super::write_plan::WriteMode;
use std::sync::Arc;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Role, Stmt, VarId, Workspace};
use tamis_ir::looplet::Writer;
use tamis_ir::program::TensorId;
use tamis_tensor::levels::{ArrayRole, LevelType, Placement, level_type};

/// The state of a declared tensor's storage during lowering.
#[derive(Clone, Debug, Default)]
pub(super) struct StorageState {
    /// The number of stored coordinates of each level.
    pub(super) counts: Vec<VarId>,
    /// For each level that lists inserted coordinates, the list.
    lists: Vec<BufferId>,
    /// For each level and the leaf: a constant that is true if some positions may never be written.
    skipped: Vec<VarId>,
    /// For each level: the expected number of coordinates; this variable gets its value at the end
    /// of lowering.
    expected: Vec<VarId>,
    /// That value, if it is known.
    pub(super) expectation: Vec<Option<ExprId>>,
    /// True if all positions are written, as far as the latest lowered declaration shows.
    pub(super) complete: Vec<bool>,
    /// True if an earlier declaration left positions unwritten. A body that is lowered for several
    /// regions declares its tensors in each of them, and need not write them in all.
    partial: Vec<bool>,
    declared: bool,
    /// The workspace, if elements are written in any order.
    pub(super) workspace: Option<Arc<Workspace>>,
    /// The number of its entries, if updates test whether an element is new.
    pub(super) entries: Option<VarId>,
    /// The open slots, outermost level first.
    pub(super) open: Vec<super::append_slot::AppendSlot>,
    /// The element that is being written.
    pub(super) value: Option<VarId>,
    /// The number of conditions around the declaration.
    pub(super) depth: usize,
    /// For each level and the leaf: capacity is reserved for what is appended.
    pub(super) reserved: Vec<bool>,
    /// For each level: capacity is reserved for appended positions of the level above.
    pub(super) parents: Vec<bool>,
    /// For each level and the leaf: capacity was reserved somewhere.
    pub(super) spare: Vec<bool>,
    /// For singletons: the flag that a coordinate was written.
    pub(super) used: Vec<Option<VarId>>,
    /// The flag that the outermost list is sorted, if that is decided at the end of lowering.
    pub(super) sorts: Option<VarId>,
    /// True if some loop over it depends on the order of its coordinates.
    pub(super) order_matters: bool,
}

/// The levels complete before some subregions, and those that every subregion so far completes.
pub(super) struct Completeness {
    before: Vec<Vec<bool>>,
    all: Option<Vec<Vec<bool>>>,
}

/// The maximum length of an array in kernels. No memory holds as many elements, and a sum of a few
/// such numbers does not overflow.
pub(super) const MAX_ELEMENTS: i64 = 1 << 61;

/// The maximum number of values reserved for dense levels below a coordinate list: each coordinate
/// may have many values, but seldom all coordinates are present.
const MAX_EXPECTED: i64 = 1 << 26;

impl Lowerer<'_> {
    /// Creates the variables and buffers that declared tensors need throughout the kernel.
    pub(super) fn set_up(&mut self) {
        for k in 0..self.bound.len() {
            let Some(plan) = self.plans[k].clone() else { continue };
            let BoundStorage::Levels { arrays, .. } = self.bound[k].storage.clone() else { continue };
            let name = self.program.tensors[k].name.clone();
            let mut state = StorageState {
                used: vec![None; arrays.len()],
                reserved: vec![false; arrays.len() + 1],
                parents: vec![false; arrays.len() + 1],
                spare: vec![false; arrays.len() + 1],
                ..StorageState::default()
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
                let row = self.row(TensorId(k as u32), level);
                let coordinates = row.and_then(|row| row.find(ArrayRole::Coordinates, named));
                let zero = self.b.int(0);
                if !named.is_empty() {
                    self.prologue.push(Stmt::Let { var: count, value: zero });
                }
                let list = match (coordinates, plan.mode) {
                    // Below the root there is one fiber, so its list is the level's coordinate
                    // array.
                    (Some(coordinates), _) if level == 0 => coordinates,
                    (Some(_), WriteMode::Insert) => {
                        let wide = Elem::Index(tamis_ir::format::Width::U64);
                        self.b.buffer(format!("{name}{level}_list"), wide, Role::Scratch)
                    }
                    _ => BufferId(u32::MAX),
                };
                state.lists.push(list);
            }
            if plan.mode == WriteMode::Scatter {
                state.workspace = Some(self.new_workspace(TensorId(k as u32), plan.merge));
                if plan.tests_fibers {
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

    /// Begins several subregions that are lowered one after the other. Levels that are complete in
    /// all of them are complete.
    pub(super) fn begin_subregions(&mut self) -> Completeness {
        let before: Vec<Vec<bool>> = self.states.iter().map(|state| state.complete.clone()).collect();
        self.states.iter_mut().for_each(|state| state.complete.fill(false));
        Completeness { before, all: None }
    }

    /// Ends one of the subregions.
    pub(super) fn end_subregion(&mut self, completeness: &mut Completeness) {
        let here: Vec<Vec<bool>> = self
            .states
            .iter_mut()
            .map(|state| {
                let none = vec![false; state.complete.len()];
                std::mem::replace(&mut state.complete, none)
            })
            .collect();
        completeness.all = Some(match completeness.all.take() {
            None => here,
            Some(all) => all.iter().zip(&here).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *a && *b).collect()).collect(),
        });
    }

    /// Ends the last one of the subregions.
    pub(super) fn end_subregions(&mut self, completeness: Completeness) {
        for (k, state) in self.states.iter_mut().enumerate() {
            for (level, complete) in state.complete.iter_mut().enumerate() {
                let before = completeness.before[k].get(level).copied().unwrap_or(false);
                let all = completeness.all.as_ref().and_then(|all| all[k].get(level).copied()).unwrap_or(false);
                *complete = before || all;
            }
        }
    }

    /// The statements at the start of the kernel.
    pub(super) fn finish_prologue(&mut self) -> Vec<Stmt> {
        let mut stmts = std::mem::take(&mut self.prologue);
        stmts.extend(self.sorting_decisions());
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
                    Some(all) => self.partition_share(all),
                    None => self.b.int(0),
                };
                stmts.push(Stmt::Let { var, value });
            }
        }
        stmts
    }

    /// Queries a level of a declared tensor about writing.
    pub(super) fn writer<T>(
        &mut self,
        tensor: TensorId,
        level: usize,
        query: impl FnOnce(&'static LevelType, &mut Writer) -> T,
    ) -> Option<T> {
        let BoundStorage::Levels { format, arrays, .. } = self.bound[tensor.index()].storage.clone() else {
            return None;
        };
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
        Some(query(row, &mut writer))
    }

    pub(super) fn level_count(&self, tensor: TensorId) -> usize {
        self.states[tensor.index()].counts.len()
    }

    pub(super) fn row(&self, tensor: TensorId, level: usize) -> Option<&'static LevelType> {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { format, .. } => level_type(format.levels().get(level)?.kind).ok(),
            BoundStorage::Scalar { .. } => None,
        }
    }

    pub(super) fn values(&self, tensor: TensorId) -> Option<BufferId> {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { values, .. } => *values,
            BoundStorage::Scalar { .. } => None,
        }
    }

    /// Declares a tensor anew.
    pub(super) fn declare(&mut self, tensor: TensorId) {
        let bound = self.bound[tensor.index()].clone();
        if let BoundStorage::Scalar { written, output, .. } = bound.storage {
            // A body that is lowered for several regions declares its scalars in each of them.
            let name = self.program.tensor(tensor).name.clone();
            let fill = self.b.constant(bound.fill);
            let no = self.b.constant(Value::Bool(false));
            let written = written.map(|_| self.b.variable_from(format!("{name}_written"), no));
            let var = self.b.variable_from(name, fill);
            self.bound[tensor.index()].storage = BoundStorage::Scalar { var, written, output };
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
            Some(WriteMode::Append) => match self.shared_sparsity(tensor) {
                Some(shared) => self.allocate_shared(tensor, shared),
                None => self.assemble_all(tensor),
            },
            Some(WriteMode::Scatter) => self.reset_workspace(tensor),
            _ => {
                let mut parents = one;
                let mut listed = false;
                for level in 0..self.level_count(tensor) {
                    let list = self.states[tensor.index()].lists[level];
                    listed |= self.row(tensor, level).is_some_and(|row| row.write.lists());
                    parents = self.prepare_level(tensor, level, list, parents);
                }
                let Some(values) = self.values(tensor) else { return };
                // If coordinates are listed, all other elements still hold the fill value.
                let fill = listed.then_some(bound.fill);
                self.b.emit(Stmt::Grow { buffer: values, len: parents, fill });
                if !listed {
                    let value = self.b.constant(bound.fill);
                    self.b.emit(Stmt::Fill { buffer: values, start: zero, len: parents, value });
                }
            }
        }
    }

    /// Empties all levels, for appends.
    pub(super) fn assemble_all(&mut self, tensor: TensorId) {
        let (zero, one) = (self.b.int(0), self.b.int(1));
        for level in 0..self.level_count(tensor) {
            let BoundStorage::Levels { arrays, .. } = &self.bound[tensor.index()].storage else { continue };
            if !arrays[level].is_empty() {
                let count = self.states[tensor.index()].counts[level];
                self.b.assign(count, zero);
            }
        }
        let last = self.assemble(tensor, 0, zero, one);
        // Lower levels do not exist yet.
        for level in last + 1..self.level_count(tensor) {
            self.writer(tensor, level, |row, w| row.write.assemble(w, zero, zero));
        }
        if self.program.results.contains(&tensor) {
            self.reserve_expected(tensor);
        }
    }

    /// Reserves the expected capacity, so that arrays need not grow repeatedly.
    fn reserve_expected(&mut self, tensor: TensorId) {
        let levels = self.level_count(tensor);
        for level in 0..levels {
            let appended = self.row(tensor, level).is_some_and(|row| row.write.placement() != Placement::Computed);
            if !appended {
                continue;
            }
            let capacity = self.b.get(self.states[tensor.index()].expected[level]);
            self.writer(tensor, level, |row, w| row.write.reserve(w, capacity));
            if let (Some(below), Some(values)) = (self.values_below(tensor, level), self.values(tensor)) {
                let mut len = self.bounded_product(capacity, below);
                if level + 1 < levels {
                    let most = self.b.int(MAX_EXPECTED);
                    len = self.b.call_in(Op::Min, DType::I64, &[len, most]);
                }
                self.b.emit(Stmt::Grow { buffer: values, len, fill: None });
            }
        }
    }

    /// The number of values below each coordinate of a level, if all lower levels are dense.
    fn values_below(&mut self, tensor: TensorId, level: usize) -> Option<ExprId> {
        let mut each = self.b.int(1);
        for below in level + 1..self.level_count(tensor) {
            let extent = *self.bound[tensor.index()].extents.get(below)?;
            let is_dense = self.row(tensor, below).is_some_and(|row| {
                row.capabilities.full && row.write.placement() == Placement::Computed && !row.write.lists()
            });
            each = is_dense.then(|| self.bounded_product(each, extent))?;
        }
        Some(each)
    }

    /// A product of sizes, at most [`MAX_ELEMENTS`]: no memory holds as many elements, so an
    /// allocation of this size fails.
    pub(super) fn bounded_product(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let product = self.b.call_in(Op::Mul, DType::I64, &[a, b]);
        let constant = |id: ExprId| self.b.as_constant(id).and_then(|value| value.as_i64());
        match (constant(a), constant(b)) {
            (Some(a), Some(b)) => return self.b.int(a.saturating_mul(b).min(MAX_ELEMENTS)),
            (Some(0 | 1), _) | (_, Some(0 | 1)) => return product,
            _ => {}
        }
        let (one, most) = (self.b.int(1), self.b.int(MAX_ELEMENTS));
        let by = self.b.call_in(Op::Max, DType::I64, &[b, one]);
        let limit = self.b.call_in(Op::FloorDiv, DType::I64, &[most, by]);
        let fits = self.b.call_in(Op::Le, DType::I64, &[a, limit]);
        self.b.call_in(Op::Select, DType::I64, &[fits, product, most])
    }

    /// The total number of coordinates that a level of a parameter stores.
    pub(super) fn nnz(&mut self, tensor: TensorId, level: usize) -> Option<ExprId> {
        let BoundStorage::Levels { format, arrays, .. } = self.bound[tensor.index()].storage.clone() else {
            return None;
        };
        if !self.program.params.contains(&tensor) {
            return None;
        }
        let mut count = self.b.int(1);
        for (k, (spec, arrays)) in format.levels().iter().zip(&arrays).enumerate().take(level + 1) {
            let row = level_type(spec.kind).ok()?;
            count = match row.find(ArrayRole::FiberOffsets, arrays) {
                Some(offsets) => self.b.load(offsets, count),
                None if row.capabilities.full => {
                    let size = *self.bound[tensor.index()].extents.get(k)?;
                    self.b.call_in(Op::Mul, DType::I64, &[count, size])
                }
                None => count,
            };
            if let Some(offsets) = row.find(ArrayRole::BlockOffsets, arrays) {
                count = self.b.load(offsets, count);
            }
        }
        Some(count)
    }

    /// Assembles `count` positions of a level from `start` on, with all lower levels that they
    /// determine. Gives the last level reached.
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
            if matches!(access.source, ReadSource::Tensor(t, _) if t == tensor) {
                // Accesses resolved before are stale, and must not be reused.
                access.id = u32::MAX;
            }
        }
        if plan.mode == WriteMode::Scatter {
            self.append_entries(tensor);
            if self.is_finalized_in_place(tensor) {
                return;
            }
        }
        if plan.shared_sparsity.is_some() {
            return;
        }
        let mut parents = self.b.int(1);
        for level in 0..self.level_count(tensor) {
            let list = self.states[tensor.index()].lists[level];
            let sorts = self.sorts(tensor, level, plan.in_order);
            let children = self.writer(tensor, level, |row, w| match plan.mode {
                WriteMode::Insert => row.write.finalize(w, list, parents, sorts),
                _ => row.write.freeze(w, parents),
            });
            parents = children.unwrap_or(parents);
        }
    }

    /// Prepares a level for insertions in any order; gives the number of its positions.
    fn prepare_level(&mut self, tensor: TensorId, level: usize, list: BufferId, parents: ExprId) -> ExprId {
        // The elements below a coordinate, down to the next level that lists coordinates.
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

    /// The position of an element that may be written in any order; sets `fresh` if it was not
    /// stored before.
    pub(super) fn insert(&mut self, tensor: TensorId, coordinates: &[ExprId], fresh: Option<VarId>) -> ExprId {
        let mut position = self.b.int(0);
        for (level, coordinate) in coordinates.iter().enumerate() {
            let list = self.states[tensor.index()].lists[level];
            // The innermost level that lists coordinates determines that.
            let lists = |k: usize| self.row(tensor, k).is_some_and(|row| row.write.lists());
            let fresh = fresh.filter(|_| !(level + 1..self.level_count(tensor)).any(lists));
            let inserted = self.writer(tensor, level, |row, w| row.write.insert(w, list, position, *coordinate, fresh));
            position = inserted.unwrap_or(position);
        }
        position
    }

    /// True if a level's coordinates are committed one by one, once something was written below
    /// them.
    pub(super) fn commits(&self, tensor: TensorId, level: usize) -> bool {
        self.shared_sparsity(tensor).is_none()
            && self
                .row(tensor, level)
                .is_some_and(|row| row.write.placement() != Placement::Computed || row.write.lists())
    }

    /// Stores scalar results to their outputs.
    pub(super) fn store_scalars(&mut self) {
        for id in self.program.results.clone() {
            if let BoundStorage::Scalar { var, output: Some(output), .. } = self.bound[id.index()].storage {
                let (zero, one, value) = (self.b.int(0), self.b.int(1), self.b.get(var));
                self.b.emit(Stmt::Grow { buffer: output, len: one, fill: None });
                self.b.store(output, zero, value);
            }
        }
    }
}
