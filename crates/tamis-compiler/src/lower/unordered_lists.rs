//! Unordered coordinate lists: the loops that may iterate over them, and the lists that need not be
//! sorted.
//!
//! A loop over all of a single list may take its coordinates in any order if the result is the
//! same: its iterations write different elements, or update the same ones by a commutative and
//! associative operator, and the storage of the result accepts coordinates in any order. A
//! temporary that lists inserted coordinates is sorted by `freeze` only if some loop depends on the
//! order. No other loops may read a level that is stored in any order (E0610).

use super::Lowerer;
use super::assign::declared;
use super::bind::BoundStorage;
use super::node::{Node, ReadSource, Step, UpdateOp, WriteTarget, visit_steps};
use super::region::Region;
use super::write_plan::{WriteMode, WritePlan};
use tamis_ir::algebra::{Kind, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::program::{IndexId, StmtId, TensorId};
use tamis_tensor::levels::Placement;

/// The writes of a loop to one tensor.
struct LoopWrites {
    tensor: TensorId,
    /// The dimensions that every write so far subscripts with the loop's index alone: iterations
    /// that write different coordinates there never conflict.
    distinct: Vec<usize>,
    /// The operator of all writes so far, if its updates may be reordered.
    op: Option<Op>,
}

impl Lowerer<'_> {
    /// True if a level stores coordinates in any order.
    pub(super) fn is_nonordered(&self, tensor: TensorId, level: usize) -> bool {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { format, .. } => format.levels().get(level).is_some_and(|spec| spec.nonordered),
            BoundStorage::Scalar { .. } => false,
        }
    }

    /// The condition that a list written in any order is sorted; it is constant in the end.
    pub(super) fn sorts(&mut self, tensor: TensorId, level: usize, in_order: bool) -> ExprId {
        match self.states[tensor.index()].sorts.filter(|_| level == 0 && !in_order) {
            Some(var) => self.b.get(var),
            None => self.b.constant(Value::Bool(!in_order)),
        }
    }

    /// A temporary whose outermost level lists its coordinates is sorted only if that matters,
    /// which is decided at the end of lowering. In lower levels sorting also groups the coordinates
    /// of each fiber.
    pub(super) fn set_up_sorting(&mut self, tensor: TensorId, plan: &WritePlan) {
        let lists = self.row(tensor, 0).is_some_and(|row| row.write.lists());
        if lists && plan.mode == WriteMode::Insert && !plan.in_order && !self.program.results.contains(&tensor) {
            let name = format!("{}_sorts", self.program.tensor(tensor).name);
            let var = self.b.new_var(name, tamis_ir::DType::Bool, false);
            self.states[tensor.index()].sorts = Some(var);
        }
    }

    /// The decisions about sorting, as statements.
    pub(super) fn sorting_decisions(&mut self) -> Vec<Stmt> {
        let states = self.states.iter();
        let found: Vec<_> = states.filter_map(|state| Some((state.sorts?, state.order_matters))).collect();
        let mut stmts = Vec::new();
        for (var, order_matters) in found {
            let value = self.b.constant(Value::Bool(order_matters));
            stmts.push(Stmt::Let { var, value });
        }
        stmts
    }

    /// Records a loop that walks lists; `alone`: there is one list, and no work in the gaps.
    pub(super) fn record_walk(&mut self, region: Region, lists: &[u32], alone: bool, steps: &[Step]) {
        let free = alone && region.whole && self.takes_any_order(region.index, steps);
        if free {
            return;
        }
        for id in lists {
            let level = self.levels_of.get(id).copied().unwrap_or(0);
            let Some(ReadSource::Tensor(tensor, _)) = self.accesses.get(*id as usize) else { continue };
            let tensor = *tensor;
            self.states[tensor.index()].order_matters = true;
            if self.is_nonordered(tensor, level) {
                let mut stmt = StmtId(0);
                visit_steps(steps, &mut |node| match node {
                    Node::Access(access) if access.id == *id => stmt = access.stmt,
                    _ => {}
                });
                let index = self.program.indices[region.index.index()].clone();
                let why = match alone && region.whole {
                    true => format!("the result of the loop over `{index}` depends on their order"),
                    false => format!("the loop over `{index}` needs them in order"),
                };
                self.reject_unordered(tensor, stmt, &why);
            }
        }
    }

    /// Records a search for a single coordinate.
    pub(super) fn check_search(&mut self, tensor: TensorId, level: usize, stmt: StmtId) {
        if self.is_nonordered(tensor, level) {
            self.reject_unordered(tensor, stmt, "unsorted coordinates cannot be searched");
        }
    }

    fn reject_unordered(&mut self, tensor: TensorId, stmt: StmtId, why: &str) {
        let BoundStorage::Levels { format, .. } = &self.bound[tensor.index()].storage else { return };
        let name = self.program.tensor(tensor).name.clone();
        let mut d = Diagnostic::new(
            Code::E0610,
            format!("`{name}` is stored as `{format}`, with unsorted coordinates, but {why}"),
        )
        .label(self.program.origin.stmt(stmt), format!("`{name}` is read here"));
        let ordered = format.to_string().replace("sparse(nonordered)", "sparse");
        let ordered = tamis_ir::FormatSpec::parse(&ordered).map_or(ordered, |spec| spec.to_string());
        d = match self.program.params.contains(&tensor) {
            true => d
                .help(format!("convert `{name}` first, which sorts it: `-f {name}={ordered}`, or `{name}.convert(...)` to `{ordered}`"))
                .help(format!("or schedule `convert({name}, \"{ordered}\")`")),
            false => d.help(format!("declare `{name}` as `tensor(\"{ordered}\")`")),
        };
        let d = self.program.origin.attach(d);
        if self.errors.iter().all(|e| e.message != d.message) {
            self.errors.push(d);
        }
    }

    /// True if the iterations of a loop may run in any order, as far as their writes show.
    pub(super) fn takes_any_order(&self, index: IndexId, steps: &[Step]) -> bool {
        let inner = declared(steps);
        let mut assignments = Vec::new();
        collect_assignments(steps, &mut assignments);
        // Tensors declared in each iteration are private to it.
        assignments.retain(|(target, _)| !inner.contains(&target.tensor));
        let mut writes: Vec<LoopWrites> = Vec::new();
        for (target, update) in &assignments {
            if !self.accepts_any_order(index, target, steps) {
                return false;
            }
            let dims = target.subs.iter().filter(|sub| sub.node == Node::Index(index) && !sub.permissive);
            let dims: Vec<usize> = dims.map(|sub| sub.dim).collect();
            let op = update.filter(|update| self.is_reorderable(target.tensor, update)).map(|update| update.op);
            match writes.iter_mut().find(|write| write.tensor == target.tensor) {
                Some(write) => {
                    write.distinct.retain(|dim| dims.contains(dim));
                    write.op = write.op.filter(|other| Some(*other) == op);
                }
                None => writes.push(LoopWrites { tensor: target.tensor, distinct: dims, op }),
            }
        }
        let mut read_back = false;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let ReadSource::Tensor(tensor, _) = &access.source
            {
                read_back |= writes.iter().any(|write| write.tensor == *tensor);
            }
        });
        !read_back
            && !self.resumes(index)
            && writes.iter().all(|write| !write.distinct.is_empty() || write.op.is_some())
    }

    /// True if some level that a loop iterates over is stored in any order.
    pub(super) fn reads_unordered(&self, index: IndexId, body: &[Step]) -> bool {
        let mut found = false;
        visit_steps(body, &mut |node| {
            if let Node::Access(access) = node
                && let ReadSource::Tensor(tensor, subs) = &access.source
            {
                let along = |k: usize| subs[k].node == Node::Index(index) && self.is_nonordered(*tensor, k);
                found |= (0..subs.len()).any(along);
            }
        });
        found
    }

    /// True if a write in storage order of the loops loses that order, because one of the loops
    /// takes coordinates in any order.
    pub(super) fn loses_order(
        &self,
        target: &WriteTarget,
        fixed_by: &[IndexId],
        unordered: impl Fn(IndexId) -> bool,
    ) -> bool {
        (0..fixed_by.len()).any(|k| unordered(fixed_by[k]) && !self.fits_any_order(target, k))
    }

    /// True if a level and all lower levels accept coordinates in any order.
    fn fits_any_order(&self, target: &WriteTarget, level: usize) -> bool {
        let computed = |k: usize| {
            let row = self.row(target.tensor, k);
            row.is_some_and(|row| row.write.placement() == Placement::Computed && !row.write.lists())
        };
        self.is_nonordered(target.tensor, level) || (level..target.subs.len()).all(computed)
    }

    /// True if the storage of a write target accepts coordinates of a loop in any order.
    fn accepts_any_order(&self, index: IndexId, target: &WriteTarget, steps: &[Step]) -> bool {
        let tensor = target.tensor;
        // A scalar has no order.
        let Some(plan) = &self.plans[tensor.index()] else { return true };
        match plan.mode {
            // A list that is written in order is not sorted later.
            WriteMode::Insert => !plan.in_order || self.fits_any_order(target, 0),
            WriteMode::Scatter => true,
            WriteMode::Append => {
                let fixed = plan.fixed(index);
                let later_in_order = || {
                    let mut found = false;
                    loops(steps, &mut |inner| found |= plan.fixed_by.contains(&inner));
                    found
                };
                // A loop that fixes no coordinate either lies inside of an element, or repeats
                // other coordinates.
                match fixed.is_empty() {
                    true => !later_in_order(),
                    false => fixed.iter().all(|k| self.fits_any_order(target, *k)),
                }
            }
        }
    }

    /// True if updates of one element may be reordered.
    fn is_reorderable(&self, tensor: TensorId, update: &UpdateOp) -> bool {
        let info = update.op.info();
        let exact = !matches!(update.operand.kind(), Kind::Float | Kind::Complex);
        // By definition fill values annihilate even NaN, so the result then depends on earlier
        // updates.
        let plain = exact || (!self.policy.strict && self.annihilator(update.op, update.operand).is_none());
        info.commutative
            && info.associative
            && plain
            && update.extra.is_empty()
            && update.operand == self.bound[tensor.index()].dtype
    }
}

fn collect_assignments<'a>(steps: &'a [Step], found: &mut Vec<(&'a WriteTarget, Option<&'a UpdateOp>)>) {
    for step in steps {
        match step {
            Step::Assign(target, update, _) => found.push((target, update.as_ref())),
            Step::For(_, _, body) => collect_assignments(body, found),
            Step::If(_, then, otherwise) => {
                collect_assignments(then, found);
                collect_assignments(otherwise, found);
            }
            _ => {}
        }
    }
}

fn loops(steps: &[Step], visit: &mut dyn FnMut(IndexId)) {
    for step in steps {
        match step {
            Step::For(index, _, body) => {
                visit(*index);
                loops(body, visit);
            }
            Step::If(_, then, otherwise) => {
                loops(then, visit);
                loops(otherwise, visit);
            }
            _ => {}
        }
    }
}
