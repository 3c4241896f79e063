//! Lists whose coordinates stand in any order: who may walk them, and which lists need not be sorted because of that.
//!
//! A loop that one list leads alone, over all of its coordinates, can take them as they come if nobody can tell: its turns
//! write different elements, or update the same ones by an operator that does not care, and whatever the loop fixes of a
//! result takes coordinates in any order. A temporary that lists what is inserted is sorted when it is frozen only if some
//! loop over it can tell; a level that is stored in any order can be read by no other loops.

use super::Lowerer;
use super::assign::declared;
use super::bind::Stored;
use super::node::{Node, Source, Step, Target, Update, visit_steps};
use super::region::Region;
use super::write_plan::{Mode, Plan};
use tamis_ir::algebra::{Kind, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::kernel::{ExprId, Stmt};
use tamis_ir::program::{IndexId, StmtId, TensorId};
use tamis_tensor::levels::Placement;

/// What a loop does to one tensor.
struct Meeting {
    tensor: TensorId,
    /// The dimensions that every write so far subscripts with the loop's index alone: turns that write different
    /// coordinates there never meet.
    apart: Vec<usize>,
    /// The one operator of all writes so far, if its updates may change places.
    op: Option<Op>,
}

impl Lowerer<'_> {
    /// Whether a level keeps coordinates in any order.
    pub(super) fn is_nonordered(&self, tensor: TensorId, level: usize) -> bool {
        match &self.bound[tensor.index()].storage {
            Stored::Levels { format, .. } => format.levels().get(level).is_some_and(|spec| spec.nonordered),
            Stored::Scalar { .. } => false,
        }
    }

    /// Whether a list that is written in any order has to be sorted: a condition that is constant in the end.
    pub(super) fn sorts(&mut self, tensor: TensorId, level: usize, in_order: bool) -> ExprId {
        match self.states[tensor.index()].sorts.filter(|_| level == 0 && !in_order) {
            Some(var) => self.b.get(var),
            None => self.b.constant(Value::Bool(!in_order)),
        }
    }

    /// A temporary whose outermost level lists its coordinates decides late whether they are sorted. Further down, sorting
    /// also brings those of one fiber together.
    pub(super) fn set_up_sorting(&mut self, tensor: TensorId, plan: &Plan) {
        let lists = self.row(tensor, 0).is_some_and(|row| row.write.lists());
        if lists && plan.mode == Mode::Insert && !plan.in_order && !self.program.results.contains(&tensor) {
            let name = format!("{}_sorts", self.program.tensor(tensor).name);
            let var = self.b.new_var(name, tamis_ir::DType::Bool, false);
            self.states[tensor.index()].sorts = Some(var);
        }
    }

    /// What was found out about sorting.
    pub(super) fn sorting(&mut self) -> Vec<Stmt> {
        let states = self.states.iter();
        let found: Vec<_> = states.filter_map(|state| Some((state.sorts?, state.order_matters))).collect();
        let mut stmts = Vec::new();
        for (var, order_matters) in found {
            let value = self.b.constant(Value::Bool(order_matters));
            stmts.push(Stmt::Let { var, value });
        }
        stmts
    }

    /// Lists are about to be walked; `alone`, if there is one, and nothing to do between its coordinates.
    pub(super) fn walk(&mut self, region: Region, lists: &[u32], alone: bool, steps: &[Step]) {
        let free = alone && region.whole && self.takes_any_order(region.index, steps);
        if free {
            return;
        }
        for id in lists {
            let level = self.levels_of.get(id).copied().unwrap_or(0);
            let Some(Source::Tensor(tensor, _)) = self.accesses.get(*id as usize) else { continue };
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
                self.refuse_unordered(tensor, stmt, &why);
            }
        }
    }

    /// One coordinate is about to be searched for.
    pub(super) fn check_search(&mut self, tensor: TensorId, level: usize, stmt: StmtId) {
        if self.is_nonordered(tensor, level) {
            self.refuse_unordered(tensor, stmt, "unsorted coordinates cannot be searched");
        }
    }

    fn refuse_unordered(&mut self, tensor: TensorId, stmt: StmtId, why: &str) {
        let Stored::Levels { format, .. } = &self.bound[tensor.index()].storage else { return };
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

    /// Whether the turns of a loop may come in any order, as far as can be seen from what they write.
    pub(super) fn takes_any_order(&self, index: IndexId, steps: &[Step]) -> bool {
        let inner = declared(steps);
        let mut assignments = Vec::new();
        collect(steps, &mut assignments);
        // What is made anew in each turn is nobody else's.
        assignments.retain(|(target, _)| !inner.contains(&target.tensor));
        let mut meetings: Vec<Meeting> = Vec::new();
        for (target, update) in &assignments {
            if !self.accepts_any_order(index, target, steps) {
                return false;
            }
            let dims = target.subs.iter().filter(|sub| sub.node == Node::Index(index) && !sub.permissive);
            let dims: Vec<usize> = dims.map(|sub| sub.dim).collect();
            let op = update.filter(|update| self.changes_places(target.tensor, update)).map(|update| update.op);
            match meetings.iter_mut().find(|meeting| meeting.tensor == target.tensor) {
                Some(meeting) => {
                    meeting.apart.retain(|dim| dims.contains(dim));
                    meeting.op = meeting.op.filter(|other| Some(*other) == op);
                }
                None => meetings.push(Meeting { tensor: target.tensor, apart: dims, op }),
            }
        }
        let mut read_back = false;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && let Source::Tensor(tensor, _) = &access.source
            {
                read_back |= meetings.iter().any(|meeting| meeting.tensor == *tensor);
            }
        });
        !read_back
            && !self.resumes(index)
            && meetings.iter().all(|meeting| !meeting.apart.is_empty() || meeting.op.is_some())
    }

    /// Whether some level that a loop goes over is stored in any order.
    pub(super) fn reads_unordered(&self, index: IndexId, body: &[Step]) -> bool {
        let mut found = false;
        visit_steps(body, &mut |node| {
            if let Node::Access(access) = node
                && let Source::Tensor(tensor, subs) = &access.source
            {
                let along = |k: usize| subs[k].node == Node::Index(index) && self.is_nonordered(*tensor, k);
                found |= (0..subs.len()).any(along);
            }
        });
        found
    }

    /// Whether a write that follows the loops in storage order does not do so after all, because one of them takes
    /// coordinates as they come.
    pub(super) fn loses_order(
        &self,
        target: &Target,
        fixed_by: &[IndexId],
        unordered: impl Fn(IndexId) -> bool,
    ) -> bool {
        (0..fixed_by.len()).any(|k| unordered(fixed_by[k]) && !self.fits_any_order(target, k))
    }

    /// Whether a level takes its coordinates in any order, with all that lies below.
    fn fits_any_order(&self, target: &Target, level: usize) -> bool {
        let computed = |k: usize| {
            let row = self.row(target.tensor, k);
            row.is_some_and(|row| row.write.placement() == Placement::Computed && !row.write.lists())
        };
        self.is_nonordered(target.tensor, level) || (level..target.subs.len()).all(computed)
    }

    /// Whether the storage of what is written takes coordinates of a loop in any order.
    fn accepts_any_order(&self, index: IndexId, target: &Target, steps: &[Step]) -> bool {
        let tensor = target.tensor;
        // A scalar has no order.
        let Some(plan) = &self.plans[tensor.index()] else { return true };
        match plan.mode {
            // What arrives in order is not sorted later.
            Mode::Insert => !plan.in_order || self.fits_any_order(target, 0),
            Mode::Scatter => true,
            Mode::Append => {
                let fixed = plan.fixed(index);
                let later_in_order = || {
                    let mut found = false;
                    loops(steps, &mut |inner| found |= plan.fixed_by.contains(&inner));
                    found
                };
                // A loop that fixes no coordinate lies inside of an element, or has others come again and again.
                match fixed.is_empty() {
                    true => !later_in_order(),
                    false => fixed.iter().all(|k| self.fits_any_order(target, *k)),
                }
            }
        }
    }

    /// Whether updates of one element may change places.
    fn changes_places(&self, tensor: TensorId, update: &Update) -> bool {
        let info = update.op.info();
        let exact = !matches!(update.operand.kind(), Kind::Float | Kind::Complex);
        // By definition fills annihilate even NaN, which then depends on what came before.
        let plain = exact || (!self.policy.strict && self.annihilator(update.op, update.operand).is_none());
        info.commutative
            && info.associative
            && plain
            && update.extra.is_empty()
            && update.operand == self.bound[tensor.index()].dtype
    }
}

fn collect<'a>(steps: &'a [Step], found: &mut Vec<(&'a Target, Option<&'a Update>)>) {
    for step in steps {
        match step {
            Step::Assign(target, update, _) => found.push((target, update.as_ref())),
            Step::For(_, _, body) => collect(body, found),
            Step::If(_, then, otherwise) => {
                collect(then, found);
                collect(otherwise, found);
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
