//! Append slots: elements written in storage order, with speculative positions.
//!
//! A slot opens when a loop fixes a coordinate of the result. Everything below goes to the position
//! that the next coordinate would have; the coordinate is committed only if something was written.
//! The element itself is a scalar variable until the slot closes. Capacity for the appends of a
//! loop is reserved once, before it.

use super::Lowerer;
use super::bind::{BoundStorage, chain_head, is_grouped};
use super::node::{Node, ReadSource, Step, Sub, visit_targets};
use super::write_plan::WriteMode;
use tamis_ir::algebra::{DType, Op, Value, eval};
use tamis_ir::kernel::{Assumption, Expr, ExprId, Stmt, VarId};
use tamis_ir::program::{IndexId, TensorId};
use tamis_tensor::levels::Placement;

/// A coordinate that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendSlot {
    level: usize,
    parent: ExprId,
    coordinate: ExprId,
    /// One past the last coordinate, if it starts a run.
    stop: Option<ExprId>,
    /// The position for everything below; none, if lower levels share it.
    position: Option<ExprId>,
    /// The flag that something was written, unless the coordinate is always stored.
    pub(super) dirty: Option<VarId>,
}

/// The slots opened by one loop coordinate.
pub(super) struct OpenSlots(Vec<(TensorId, usize)>);

impl Lowerer<'_> {
    /// The tensors that a loop fixes levels of, with their subscripts.
    pub(super) fn appended_tensors(&self, index: IndexId, steps: &[Step]) -> Vec<(TensorId, Vec<Sub>)> {
        let mut found: Vec<(TensorId, Vec<Sub>)> = Vec::new();
        visit_targets(steps, &mut |target| {
            let plan = self.plans[target.tensor.index()].as_ref();
            let fixes = plan.is_some_and(|plan| plan.mode == WriteMode::Append && plan.fixed_by.contains(&index));
            if fixes && found.iter().all(|(tensor, _)| *tensor != target.tensor) {
                found.push((target.tensor, target.subs.clone()));
            }
        });
        found
    }

    fn fixed(&self, tensor: TensorId, index: IndexId) -> Vec<usize> {
        self.plans[tensor.index()].as_ref().map(|plan| plan.fixed(index)).unwrap_or_default()
    }

    /// The position below the open slots.
    fn current_position(&mut self, tensor: TensorId) -> ExprId {
        let last = self.states[tensor.index()].open.iter().rev().find_map(|open_slot| open_slot.position);
        last.unwrap_or(self.b.int(0))
    }

    /// Before a loop that fixes levels: creates flags for singletons, which have at most one
    /// coordinate.
    pub(super) fn begin_fibers(&mut self, index: IndexId, steps: &[Step]) -> Vec<TensorId> {
        let tensors: Vec<TensorId> =
            self.appended_tensors(index, steps).into_iter().map(|(tensor, _)| tensor).collect();
        for tensor in &tensors {
            let Some(level) = self.fixed(*tensor, index).first().copied() else { continue };
            if self.is_lone_singleton(*tensor, level) {
                let used = self.b.variable("used", Value::Bool(false));
                self.states[tensor.index()].used[level] = Some(used);
            }
        }
        tensors
    }

    /// After such a loop: its fibers are complete.
    pub(super) fn end_fibers(&mut self, index: IndexId, tensors: &[TensorId]) {
        for tensor in tensors {
            let Some(level) = self.fixed(*tensor, index).first().copied() else { continue };
            let parent = self.current_position(*tensor);
            self.states[tensor.index()].used[level] = None;
            self.end_fiber(*tensor, level, parent);
        }
    }

    fn end_fiber(&mut self, tensor: TensorId, level: usize, parent: ExprId) {
        if self.is_chained(tensor, level) || self.shared_sparsity(tensor).is_some() {
            return;
        }
        self.writer(tensor, level, |row, w| row.write.end(w, parent));
        let below_appended =
            level > 0 && self.row(tensor, level - 1).is_some_and(|row| row.write.placement() != Placement::Computed);
        let all = self.visits_all(tensor, level);
        self.states[tensor.index()].complete[level] |= all || below_appended;
    }

    /// True if the current code runs for every position of a level.
    fn visits_all(&self, tensor: TensorId, level: usize) -> bool {
        let bare = self.plans[tensor.index()].as_ref().is_some_and(|plan| plan.bare[..level].iter().all(|b| *b));
        let computed = (0..level).all(|k| !self.commits(tensor, k));
        bare && computed && self.conditional == self.states[tensor.index()].depth
    }

    /// True if a level is not the first one of its chain of singletons.
    fn is_chained(&self, tensor: TensorId, level: usize) -> bool {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { format, .. } => {
                let head = chain_head(format, level);
                head != level && format.levels()[head].nonunique
            }
            BoundStorage::Scalar { .. } => false,
        }
    }

    fn is_lone_singleton(&self, tensor: TensorId, level: usize) -> bool {
        !self.is_chained(tensor, level)
            && self.row(tensor, level).is_some_and(|row| row.write.placement() == Placement::Parent)
    }

    /// Reserves capacity, once, for the appends of a loop with at most `most` iterations. Gives the
    /// levels (or leaves) with reserved capacity.
    pub(super) fn reserve(
        &mut self,
        index: IndexId,
        steps: &[Step],
        most: ExprId,
        lists: &[u32],
    ) -> Vec<(TensorId, usize)> {
        let expected = self.nnz_of(lists);
        let most = self.countable(index, most);
        let mut reserved = Vec::new();
        for (tensor, _) in self.appended_tensors(index, steps) {
            if self.shared_sparsity(tensor).is_some() {
                continue;
            }
            let BoundStorage::Levels { format, values, .. } = self.bound[tensor.index()].storage.clone() else {
                continue;
            };
            let fixed = self.fixed(tensor, index);
            let (Some(first), Some(last)) = (fixed.first(), fixed.last()) else { continue };
            // A chain is written with its last level, and reserved with it.
            let first = if self.is_chained(tensor, *last) { chain_head(&format, *last) } else { *first };
            for level in first..=*last {
                let head = if self.is_chained(tensor, level) { chain_head(&format, level) } else { level };
                let appended = self.row(tensor, head).is_some_and(|row| row.write.placement() == Placement::Appended);
                if !appended || is_grouped(&format, *last) || self.states[tensor.index()].reserved[level] {
                    continue;
                }
                let expected = self.certain_nnz(tensor, level, most, lists, steps).or(expected);
                let most = self.b.name("most", most);
                let count = self.states[tensor.index()].counts[head];
                let count = self.b.get(count);
                let capacity = self.b.add(count, most);
                self.writer(tensor, level, |row, w| row.write.reserve(w, capacity));
                let expectation = &mut self.states[tensor.index()].expectation[level];
                *expectation = expectation.or(expected);
                reserved.push((tensor, level));
                if let (true, Some(values)) = (level + 1 == self.level_count(tensor), values) {
                    self.b.emit(Stmt::Grow { buffer: values, len: capacity, fill: None });
                    reserved.push((tensor, level + 1));
                }
                if level + 1 < self.level_count(tensor)
                    && self.writer(tensor, level + 1, |row, w| row.write.reserve_parents(w, capacity)) == Some(true)
                {
                    self.states[tensor.index()].parents[level + 1] = true;
                }
            }
        }
        for (tensor, level) in &reserved {
            self.states[tensor.index()].reserved[*level] = true;
            self.states[tensor.index()].spare[*level] = true;
        }
        reserved
    }

    /// The final number of coordinates of a level, if all enclosing loops store an element in every
    /// iteration, whatever operands store. A size that exceeds memory is then reported before
    /// anything is computed.
    fn certain_nnz(
        &mut self,
        tensor: TensorId,
        level: usize,
        most: ExprId,
        lists: &[u32],
        steps: &[Step],
    ) -> Option<ExprId> {
        let bare = self.plans[tensor.index()].as_ref().is_some_and(|plan| plan.bare.iter().all(|b| *b));
        // A pattern stores only true elements.
        let bare = bare && self.values(tensor).is_some();
        let always = steps.iter().any(|step| match step {
            Step::Assign(target, _, value) => target.tensor == tensor && self.is_always_stored(value),
            _ => false,
        });
        if !lists.is_empty() || !bare || !always || self.conditional != self.states[tensor.index()].depth {
            return None;
        }
        let mut nnz = most;
        for size in self.bound[tensor.index()].extents.get(..level)?.to_vec() {
            nnz = self.bounded_product(size, nnz);
        }
        // The number is computed at the start of the kernel, from its parameters alone.
        let kernel = self.b.kernel();
        let mut known = true;
        kernel.visit_expr(nnz, &mut |expr| match expr {
            Expr::Var(var) => known &= kernel.params.contains(var),
            Expr::Load(..) => known = false,
            _ => {}
        });
        known.then_some(nnz)
    }

    /// True if an element is stored whatever operands store.
    fn is_always_stored(&self, value: &Node) -> bool {
        match value {
            Node::Value(_) | Node::Index(_) | Node::Size(..) => true,
            Node::Known(_) | Node::Var(_) | Node::Entry(_) | Node::Missing => false,
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(tensor, _) => match &self.bound[tensor.index()].storage {
                    BoundStorage::Scalar { written, .. } => written.is_none(),
                    BoundStorage::Levels { format, .. } => {
                        let full = |k: usize| self.row(*tensor, k).is_some_and(|row| row.capabilities.full);
                        access.present.is_none() && (0..format.levels().len()).all(full)
                    }
                },
                ReadSource::Mask(..) => false,
            },
            // The chosen operand is read in any case.
            Node::Call(Op::Select, _, operands) => operands.iter().skip(1).all(|n| !may_be_missing(n)),
            Node::Call(op, ..) if op.is_lazy() => false,
            Node::Call(op, dtype, operands) => {
                let absorbs = |(k, n): (usize, &Node)| match self.value_without_elements(n) {
                    Some(fill) => self.policy.absorbed(*op, *dtype, k, fill).is_some(),
                    None => self.policy.absorbs(*op, *dtype),
                };
                let (stored, others): (Vec<_>, Vec<_>) =
                    operands.iter().enumerate().partition(|(_, n)| self.is_always_stored(n));
                !stored.is_empty() && !others.into_iter().any(absorbs)
            }
        }
    }

    /// The value of an expression where operands store nothing, if it is known.
    fn value_without_elements(&self, node: &Node) -> Option<Value> {
        match node {
            Node::Known(value) => Some(*value),
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(tensor, _) => Some(self.bound[tensor.index()].fill),
                ReadSource::Mask(..) => Some(Value::Bool(false)),
            },
            Node::Call(op, dtype, operands) if !op.is_lazy() => {
                let operands: Vec<Option<Value>> = operands.iter().map(|n| self.value_without_elements(n)).collect();
                let decided = self.policy.decided(*op, *dtype, operands.iter().copied());
                let known: Option<Vec<Value>> = operands.into_iter().collect();
                decided.or_else(|| Some(eval(*op, *dtype, &known?)))
            }
            _ => None,
        }
    }

    /// Assumes spare capacity: each iteration of a loop with reserved capacity appends at most
    /// once, so a conditional append may store unconditionally.
    pub(super) fn assume_spare_capacity(&mut self) {
        for k in 0..self.states.len() {
            let BoundStorage::Levels { arrays, values, .. } = &self.bound[k].storage else { continue };
            let (arrays, values) = (arrays.clone(), *values);
            for (level, spare) in self.states[k].spare.clone().into_iter().enumerate() {
                if !spare {
                    continue;
                }
                match arrays.get(level) {
                    Some(named) => {
                        let Some(row) = self.row(TensorId(k as u32), level) else { continue };
                        let appended = row.arrays.iter().filter(|array| array.role.is_appended());
                        let buffers = appended.filter_map(|array| row.find(array.role, named));
                        buffers.for_each(|buffer| self.b.assume(Assumption::SpareCapacity(buffer)));
                    }
                    None => values.into_iter().for_each(|values| self.b.assume(Assumption::SpareCapacity(values))),
                }
            }
        }
    }

    /// The total number of coordinates in the current levels of parameters.
    fn nnz_of(&mut self, lists: &[u32]) -> Option<ExprId> {
        let mut sum = None;
        for id in lists {
            let ReadSource::Tensor(tensor, _) = self.accesses.get(*id as usize)?.clone() else { return None };
            let count = self.nnz(tensor, self.levels_of.get(id).copied()?)?;
            sum = Some(match sum {
                Some(sum) => self.b.add(sum, count),
                None => count,
            });
        }
        sum
    }

    pub(super) fn unreserve(&mut self, reserved: Vec<(TensorId, usize)>) {
        for (tensor, level) in reserved {
            let state = &mut self.states[tensor.index()];
            state.reserved[level] = false;
            if let Some(below) = state.parents.get_mut(level + 1) {
                *below = false;
            }
        }
    }

    /// Opens the slots of a loop's coordinate.
    pub(super) fn open_slots(&mut self, index: IndexId, steps: &[Step]) -> OpenSlots {
        let mut opened = Vec::new();
        for (tensor, subs) in self.appended_tensors(index, steps) {
            let levels = self.fixed(tensor, index);
            for level in &levels {
                self.open_slot(tensor, *level, &subs[*level], steps);
            }
            opened.push((tensor, levels.len()));
        }
        OpenSlots(opened)
    }

    fn open_slot(&mut self, tensor: TensorId, level: usize, sub: &Sub, steps: &[Step]) {
        let BoundStorage::Levels { format, .. } = self.bound[tensor.index()].storage.clone() else { return };
        let mut coordinate = self.subscript(tensor, sub);
        if level == 0 {
            coordinate = self.partition_row(tensor, coordinate);
        }
        let parent = self.current_position(tensor);
        let fixed_by = self.plans[tensor.index()].as_ref().and_then(|plan| plan.fixed_by.get(level).copied());
        let stop = self.collapsed.filter(|(index, _)| Some(*index) == fixed_by).map(|(_, stop)| stop);
        if is_grouped(&format, level) {
            let open_slot = AppendSlot { level, parent, coordinate, stop, position: None, dirty: None };
            self.states[tensor.index()].open.push(open_slot);
            return;
        }
        // A chain has the positions of its first level.
        let leader = if self.is_chained(tensor, level) { chain_head(&format, level) } else { level };
        let appended = self.row(tensor, leader).is_some_and(|row| row.write.placement() == Placement::Appended);
        let position = match self.shared_sparsity(tensor) {
            Some(shared) if appended => self.shared_position(shared, level, steps),
            _ => self.writer(tensor, leader, |row, w| row.write.child(w, parent, coordinate)),
        };
        let position = position.unwrap_or(parent);
        let dirty = self.commits(tensor, level).then(|| self.b.variable("dirty", Value::Bool(false)));
        self.states[tensor.index()].open.push(AppendSlot {
            level,
            parent,
            coordinate,
            stop,
            position: Some(position),
            dirty,
        });
        let last = level + 1 == self.level_count(tensor);
        if appended && !last && self.shared_sparsity(tensor).is_none() {
            let one = self.b.int(1);
            self.assemble(tensor, level + 1, position, one);
        }
        if last {
            let name = format!("{}_value", self.program.tensor(tensor).name);
            let value = self.b.variable(name, self.bound[tensor.index()].fill);
            self.states[tensor.index()].value = Some(value);
        }
    }

    /// Closes slots, and commits what was written.
    pub(super) fn close_slots(&mut self, opened: OpenSlots) {
        for (tensor, levels) in opened.0.into_iter().rev() {
            for k in (0..levels).rev() {
                self.close_slot(tensor);
                // A fiber that was opened with its parent ends with it.
                if k > 0
                    && let Some(open_slot) = self.states[tensor.index()].open.pop()
                {
                    self.end_fiber(tensor, open_slot.level, open_slot.parent);
                } else {
                    self.states[tensor.index()].open.pop();
                }
            }
        }
    }

    fn close_slot(&mut self, tensor: TensorId) {
        let state = &self.states[tensor.index()];
        let Some(open_slot) = state.open.last().copied() else { return };
        let Some(position) = open_slot.position else { return };
        let above = state.open[..state.open.len() - 1].iter().rev().find_map(|open_slot| open_slot.dirty);
        let chain: Vec<AppendSlot> =
            state.open.iter().copied().rev().skip(1).take_while(|o| o.position.is_none()).collect();
        let last = open_slot.level + 1 == self.level_count(tensor);
        let value = if last { self.states[tensor.index()].value.take() } else { None };
        let BoundStorage::Levels { values, .. } = self.bound[tensor.index()].storage.clone() else { return };
        let Some(dirty) = open_slot.dirty else {
            if let (Some(values), Some(value)) = (values, value) {
                let value = self.b.get(value);
                self.b.store(values, position, value);
                let all = self.visits_all(tensor, self.level_count(tensor));
                let leaf = self.level_count(tensor);
                self.states[tensor.index()].complete[leaf] |= all;
            }
            return;
        };
        let used = self.states[tensor.index()].used[open_slot.level];
        let then = self.in_block(|this| {
            if let Some(used) = used {
                let already = this.b.get(used);
                let cond = this.b.call_in(Op::Not, DType::Bool, &[already]);
                let name = this.program.tensor(tensor).name.clone();
                let message = format!(
                    "level {} of `{name}` stores one coordinate per fiber, but several were written",
                    open_slot.level
                );
                this.b.emit(Stmt::Require { cond, message });
                let yes = this.b.constant(Value::Bool(true));
                this.b.assign(used, yes);
            }
            if let (Some(values), Some(value)) = (values, value) {
                let one = this.b.int(1);
                let (value, len) = (this.b.get(value), this.b.add(position, one));
                if !this.states[tensor.index()].reserved[this.level_count(tensor)] {
                    this.b.emit(Stmt::Grow { buffer: values, len, fill: None });
                }
                this.b.store(values, position, value);
            }
            let (parent, at) = if chain.is_empty() {
                (open_slot.parent, open_slot.coordinate)
            } else {
                (position, open_slot.coordinate)
            };
            this.writer(tensor, open_slot.level, |row, w| row.write.commit(w, parent, at, open_slot.stop));
            // The first level of a chain counts, so it is committed last.
            for link in chain {
                this.writer(tensor, link.level, |row, w| row.write.commit(w, position, link.coordinate, link.stop));
            }
            if let Some(above) = above {
                let yes = this.b.constant(Value::Bool(true));
                this.b.assign(above, yes);
            }
        });
        let mut cond = self.b.get(dirty);
        if let (None, Some(value)) = (values, value) {
            // A pattern stores only true elements.
            let value = self.b.get(value);
            cond = self.b.call_in(Op::And, DType::Bool, &[cond, value]);
        }
        self.b.emit(Stmt::If { cond, then, otherwise: Vec::new() });
    }
}

/// True if an expression may be missing.
fn may_be_missing(node: &Node) -> bool {
    let mut found = false;
    node.visit(&mut |node| match node {
        Node::Missing => found = true,
        Node::Access(access) => match &access.source {
            ReadSource::Tensor(_, subs) => found |= subs.iter().any(|sub| sub.permissive),
            ReadSource::Mask(..) => found = true,
        },
        Node::Var(_) => found = true,
        _ => {}
    });
    found
}
