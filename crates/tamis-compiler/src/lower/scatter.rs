//! Scattered writes: elements written in any order are inserted into a workspace.
//!
//! In: a tensor whose write plan is `Scatter`. Out: statements that reset the workspace, insert
//! elements, finalize it (sort and merge its entries), and append its entries to the tensor's
//! levels, whatever these are. If the workspace's arrays are those of the levels, nothing is
//! copied.

use super::Lowerer;
use super::bind::{BoundStorage, chain_head, is_grouped};
use super::node::{Node, UpdateOp};
use std::sync::Arc;
use tamis_ir::algebra::{DType, Kind, Op, Value};
use tamis_ir::format::{Leaf, Width};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Merge, Role, Stmt, VarId, Workspace};
use tamis_ir::program::TensorId;
use tamis_tensor::levels::Placement;

impl Lowerer<'_> {
    /// Creates the workspace of a tensor that is written in any order.
    pub(super) fn new_workspace(&mut self, tensor: TensorId, merge: Merge) -> Arc<Workspace> {
        let k = tensor.index();
        let name = self.program.tensors[k].name.clone();
        let bound = self.bound[k].clone();
        let order = self.order(tensor);
        let BoundStorage::Levels { format, arrays, values } = bound.storage else {
            unreachable!("a scalar is not a scatter target")
        };
        let own = format.ism().is_some() && format.leaf() != Leaf::Pattern;
        let (mut coordinates, mut entries) = (Vec::new(), values.filter(|_| own));
        for (level, dim) in order.into_iter().enumerate() {
            let crd = arrays[level].iter().find(|(n, _)| *n == "crd").map(|(_, buffer)| *buffer).filter(|_| own);
            let width = Width::automatic(self.checked.extents.shapes[k][dim].saturating_sub(1));
            let new = || self.b.buffer(format!("{name}_c{level}"), Elem::Index(width), Role::Scratch);
            coordinates.push(crd.unwrap_or_else(new));
        }
        let new = || self.b.buffer(format!("{name}_entries"), Elem::Value(bound.dtype), Role::Scratch);
        let values = *entries.get_or_insert_with(new);
        let ism = format.ism();
        // A hashed level determines the policy of the workspace.
        let is_hashed = (0..format.levels().len()).any(|level| {
            let row = self.row(tensor, level);
            row.is_some_and(|row| row.capabilities.insert && row.write.placement() == Placement::Appended)
        });
        Arc::new(Workspace {
            name,
            policy: ism.map(|ism| ism.policy.clone()).or_else(|| is_hashed.then(|| "hash".to_string())),
            capacity: ism.and_then(|ism| ism.capacity),
            pipelined: ism.is_some_and(|ism| ism.pipelined),
            coordinates,
            values,
            start: bound.fill,
            merge,
        })
    }

    fn workspace(&self, tensor: TensorId) -> Option<Arc<Workspace>> {
        self.states[tensor.index()].workspace.clone()
    }

    /// Empties the workspace.
    pub(super) fn reset_workspace(&mut self, tensor: TensorId) {
        let Some(workspace) = self.workspace(tensor) else { return };
        let order = self.order(tensor);
        if let Some(entries) = self.states[tensor.index()].entries {
            let zero = self.b.int(0);
            self.b.assign(entries, zero);
        }
        let sizes = order.into_iter().map(|dim| self.bound[tensor.index()].dims[dim]).collect();
        self.b.emit(Stmt::Reset { workspace, sizes });
    }

    /// The first element of the dense fiber that an element belongs to, if updates depend on the
    /// presence of that fiber. The fiber is present if this element has an entry.
    pub(super) fn first_of_fiber(&mut self, tensor: TensorId, coordinates: &[ExprId]) -> Option<Vec<ExprId>> {
        let asked = self.plans[tensor.index()].as_ref().is_some_and(|plan| plan.tests_fibers);
        let last = (0..coordinates.len()).rev().find(|level| self.commits(tensor, *level))?;
        if !asked || last + 1 == coordinates.len() {
            return None;
        }
        let zero = self.b.int(0);
        Some(coordinates.iter().enumerate().map(|(level, c)| if level > last { zero } else { *c }).collect())
    }

    /// Finds or inserts the entry of an element; sets `fresh` if it is new. Gives its value's
    /// buffer and position.
    pub(super) fn insert_entry(
        &mut self,
        tensor: TensorId,
        coordinates: &[ExprId],
        fresh: Option<VarId>,
    ) -> Option<(BufferId, ExprId)> {
        let workspace = self.workspace(tensor)?;
        let position = self.b.insert(&workspace, coordinates.to_vec());
        if let Some(entries) = self.states[tensor.index()].entries {
            // Entries that are never merged take consecutive positions.
            let (known, one) = (self.b.get(entries), self.b.int(1));
            let is_new = self.b.call_in(Op::Ge, DType::I64, &[position, known]);
            if let Some(fresh) = fresh {
                self.b.assign(fresh, is_new);
            }
            let next = self.b.add(position, one);
            let count = self.b.call_in(Op::Max, DType::I64, &[known, next]);
            self.b.assign(entries, count);
        }
        Some((workspace.values, position))
    }

    /// True if the workspace's arrays are those of the levels.
    pub(super) fn is_finalized_in_place(&self, tensor: TensorId) -> bool {
        let BoundStorage::Levels { values, .. } = &self.bound[tensor.index()].storage else { return false };
        self.workspace(tensor).is_some_and(|workspace| *values == Some(workspace.values))
    }

    /// Appends the finalized entries to the levels.
    pub(super) fn append_entries(&mut self, tensor: TensorId) {
        let Some(workspace) = self.workspace(tensor) else { return };
        let BoundStorage::Levels { format, arrays, values } = self.bound[tensor.index()].storage.clone() else {
            return;
        };
        let count = self.b.finalize(&workspace);
        let zero = self.b.int(0);
        if self.is_finalized_in_place(tensor) {
            // The outermost level says how many entries there are.
            let (one, two) = (self.b.int(1), self.b.int(2));
            for (_, pos) in arrays.iter().flatten().filter(|(name, _)| *name == "pos") {
                self.b.emit(Stmt::Grow { buffer: *pos, len: two, fill: None });
                self.b.store(*pos, zero, zero);
                self.b.store(*pos, one, count);
            }
            return;
        }
        self.assemble_all(tensor);
        let levels = format.levels().len();
        // No level gets more coordinates than there are entries.
        let appended: Vec<usize> = (0..levels)
            .filter(|k| self.row(tensor, *k).is_some_and(|row| row.write.placement() == Placement::Appended))
            .collect();
        for level in &appended {
            self.writer(tensor, *level, |row, w| row.write.reserve(w, count));
            self.states[tensor.index()].reserved[*level] = true;
        }
        let whole = appended.last() == Some(&(levels - 1));
        if let (Some(values), true) = (values, whole) {
            self.b.emit(Stmt::Grow { buffer: values, len: count, fill: None });
            self.states[tensor.index()].reserved[levels] = true;
        }
        let last: Vec<VarId> = (0..levels).map(|k| self.b.variable(format!("last{k}"), Value::I64(-1))).collect();
        let var = self.b.new_var("t", DType::I64, false);
        let t = self.b.get(var);
        let body = self.in_block(|this| {
            let mut coordinates = Vec::new();
            for crd in &workspace.coordinates {
                let coordinate = this.b.load(*crd, t);
                coordinates.push(this.b.name("c", coordinate));
            }
            let value = this.b.load(workspace.values, t);
            match values {
                Some(_) => this.append_entry(tensor, &last, &coordinates, value),
                // A pattern stores an element only if it is true.
                None => {
                    let then = this.in_block(|this| this.append_entry(tensor, &last, &coordinates, value));
                    this.b.emit(Stmt::If { cond: value, then, otherwise: Vec::new() });
                }
            }
        });
        self.b.emit(Stmt::For { var, start: zero, stop: count, body, hint: tamis_ir::kernel::Hint::default() });
        self.states[tensor.index()].reserved.fill(false);
        self.states[tensor.index()].parents.fill(false);
    }

    /// Appends one entry to the levels, except for the outer coordinates that it shares with the
    /// previous entry.
    fn append_entry(&mut self, tensor: TensorId, last: &[VarId], coordinates: &[ExprId], value: ExprId) {
        let BoundStorage::Levels { format, values, .. } = self.bound[tensor.index()].storage.clone() else { return };
        let levels = format.levels().len();
        let this = self;
        let zero = this.b.int(0);
        let mut parent = zero;
        let yes = this.b.constant(Value::Bool(true));
        // Coordinates before the first are negative.
        let before = this.b.get(last[0]);
        let first = this.b.call_in(Op::Lt, DType::I64, &[before, zero]);
        let mut new = this.b.name("first", first);
        for level in 0..levels {
            let coordinate = coordinates[level];
            // At the end of a chain of singletons, every entry has a position.
            let grouped = is_grouped(&format, level);
            let single = |k| this.row(tensor, k).is_some_and(|row| row.capabilities.one_per_fiber);
            if grouped && (level + 1..levels).all(single) {
                new = yes;
                continue;
            }
            let (before, above) = (this.b.get(last[level]), new);
            let other = this.b.call_in(Op::Ne, DType::I64, &[before, coordinate]);
            let changed = this.b.call_in(Op::Select, DType::Bool, &[above, yes, other]);
            new = this.b.name("new", changed);
            if grouped {
                // Entries below one tuple of a chain share its position, which its last level
                // provides.
                this.b.assign(last[level], coordinate);
                continue;
            }
            let head = chain_head(&format, level);
            let in_chain = head != level && format.levels()[head].nonunique;
            let leader = if in_chain { head } else { level };
            let placement = this.row(tensor, leader).map(|row| row.write.placement());
            let child = this.writer(tensor, leader, |row, w| row.write.child(w, parent, coordinate));
            let child = child.unwrap_or(parent);
            // The count increases when the coordinate is committed.
            let position = if placement == Some(Placement::Appended) {
                let one = this.b.int(1);
                let back = this.b.call_in(Op::Sub, DType::I64, &[child, one]);
                let here = this.b.call_in(Op::Select, DType::I64, &[new, child, back]);
                this.b.name("at", here)
            } else {
                this.b.name("at", child)
            };
            let then = this.in_block(|this| {
                this.b.assign(last[level], coordinate);
                if placement == Some(Placement::Appended) && level + 1 < levels {
                    let one = this.b.int(1);
                    this.assemble(tensor, level + 1, position, one);
                }
                if placement == Some(Placement::Parent) {
                    let name = this.program.tensor(tensor).name.clone();
                    let message =
                        format!("level {level} of `{name}` stores one coordinate per fiber, but several were written");
                    this.b.emit(Stmt::Require { cond: above, message });
                }
                if in_chain {
                    for link in (head + 1..=level).rev() {
                        this.writer(tensor, link, |row, w| row.write.commit(w, position, coordinates[link], None));
                    }
                    this.writer(tensor, head, |row, w| row.write.commit(w, parent, coordinates[head], None));
                    this.writer(tensor, head, |row, w| row.write.end(w, parent));
                } else {
                    this.writer(tensor, level, |row, w| row.write.commit(w, parent, coordinate, None));
                    this.writer(tensor, level, |row, w| row.write.end(w, parent));
                }
            });
            if this.commits(tensor, level) {
                this.b.emit(Stmt::If { cond: new, then, otherwise: Vec::new() });
            } else {
                this.b.assign(last[level], coordinate);
            }
            parent = position;
        }
        if let Some(values) = values {
            let one = this.b.int(1);
            let len = this.b.add(parent, one);
            if !this.states[tensor.index()].reserved[levels] {
                this.b.emit(Stmt::Grow { buffer: values, len, fill: None });
            }
            this.b.store(values, parent, value);
        }
    }

    /// The merge of two entries of one element, under these updates.
    pub(super) fn merge_of(&self, tensor: TensorId, update: Option<&UpdateOp>, value: &Node) -> Merge {
        let bound = &self.bound[tensor.index()];
        let Some(update) = update else { return Merge::Later };
        // The runtime merges by operators of the table only.
        if update.operand != bound.dtype || !update.extra.is_empty() || matches!(update.op, Op::User(_)) {
            return Merge::Never;
        }
        // Starting from nothing, differences add up.
        let op = if update.op == Op::Sub { Op::Add } else { update.op };
        let info = op.info();
        let is_start = |e: Option<Value>| e.is_some_and(|e| e.same_number(bound.fill));
        let identities = [info.left_identity, info.right_identity];
        if !info.associative || !identities.iter().all(|e| is_start(e.and_then(|e| e.value(bound.dtype)))) {
            return Merge::Never;
        }
        // An annihilating fill value also annihilates NaN, which the operator does not.
        let zero = self.annihilator(op, bound.dtype);
        let mut annihilates = false;
        value.visit(&mut |node| {
            if let (Node::Access(access), Some(zero)) = (node, zero)
                && let super::node::ReadSource::Tensor(read, _) = &access.source
            {
                annihilates |= self.bound[read.index()].fill.cast(bound.dtype).same_number(zero);
            }
        });
        match annihilates && matches!(bound.dtype.kind(), Kind::Float | Kind::Complex) {
            true => Merge::Never,
            false => Merge::With(op),
        }
    }
}
