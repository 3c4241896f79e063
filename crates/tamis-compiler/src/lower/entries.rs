//! Position queries: the nnz of a tensor, and the coordinates and values of stored elements by
//! position.
//!
//! The position of an element is its position below the last level. The coordinates of outer levels
//! belong to the parents of that position. In a loop over positions the parents only increase, so
//! each is kept in a *cursor* that advances; without such a loop it is searched for. A query about
//! a level without positions is an error (E0609).

use super::Lowerer;
use super::bind::BoundStorage;
use super::node::{EntryQuery, Node, Step, visit_steps};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{self, BufferId, ExprId, Stmt};
use tamis_ir::looplet::{Fiber, Located};
use tamis_ir::program::{self, Access, Checked, EntryPart, Expr, IndexId, Program, StmtKind, TensorId, VarId};
use tamis_tensor::levels::{LEVELS, Parent, Positions};

/// The parent position of a level, which advances with a loop.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    index: IndexId,
    tensor: TensorId,
    level: usize,
    var: kernel::VarId,
}

impl Lowerer<'_> {
    /// Resolves a position query.
    pub(super) fn resolve_entry(&mut self, entry: &EntryQuery) -> Node {
        let tensor = entry.tensor;
        if !self.check_positions(entry) {
            return Node::Value(self.b.int(0));
        }
        match entry.what {
            EntryPart::Count => Node::Value(self.count(tensor, self.levels(tensor))),
            EntryPart::First => {
                self.warn_of_first_search(entry);
                for level in 0..entry.at.len() {
                    self.check_search(tensor, level, entry.stmt);
                }
                Node::Value(self.first(tensor, &entry.at))
            }
            EntryPart::Coordinate(dim) => {
                let position = self.position(entry);
                let moving = match entry.at.first() {
                    Some(Node::Index(index)) => Some(*index),
                    _ => None,
                };
                Node::Value(self.entry_coordinate(tensor, dim, position, moving))
            }
            EntryPart::Value => {
                let position = self.position(entry);
                Node::Value(match self.bound[tensor.index()].storage {
                    BoundStorage::Levels { values: Some(values), .. } => self.b.load(values, position),
                    _ => self.b.constant(Value::Bool(true)),
                })
            }
        }
    }

    /// Checks that every level has positions; elements of padded formats have none.
    fn check_positions(&mut self, entry: &EntryQuery) -> bool {
        let tensor = entry.tensor;
        if let BoundStorage::Levels { format, .. } = &self.bound[tensor.index()].storage
            && !format.map().iter().all(|dim| matches!(dim, DimExpr::Dim(_)))
        {
            let name = &self.program.tensor(tensor).name;
            let message = format!("`{name}` is stored as `{format}`, whose blocks or diagonals also store padding");
            let help = "store it in a format without padding, such as `csr`";
            return self.reject_without_positions(entry, message, help.to_string());
        }
        let lacking = (0..self.levels(tensor))
            .find_map(|k| self.row(tensor, k).filter(|row| row.positions.is_none()).map(|row| (k, row)));
        let Some((k, row)) = lacking else { return true };
        let able = LEVELS.iter().filter(|row| row.positions.is_some());
        let able: Vec<String> = able.map(|row| format!("`{}`", row.kind.name())).collect();
        let name = &self.program.tensor(tensor).name;
        let message = format!("level {k} of `{name}` is `{}`, whose elements have no positions", row.kind.name());
        self.reject_without_positions(entry, message, format!("store that level as {}", able.join(", ")))
    }

    fn reject_without_positions(&mut self, entry: &EntryQuery, message: String, help: String) -> bool {
        let d = Diagnostic::new(Code::E0609, message)
            .label(self.program.origin.stmt(entry.stmt), "used here")
            .help(help)
            .help("or loop over coordinates");
        let d = self.program.origin.attach(d);
        if self.errors.iter().all(|e| e.message != d.message) {
            self.errors.push(d);
        }
        false
    }

    fn levels(&self, tensor: TensorId) -> usize {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Levels { format, .. } => format.levels().len(),
            BoundStorage::Scalar { .. } => 0,
        }
    }

    /// The queried position, checked to be below nnz.
    fn position(&mut self, entry: &EntryQuery) -> ExprId {
        let position = match entry.at.first() {
            Some(at) => self.integer(at),
            None => self.b.int(0),
        };
        let position = self.b.name("at", position);
        if !entry.inside {
            let (zero, count) = (self.b.int(0), self.count(entry.tensor, self.levels(entry.tensor)));
            let above = self.b.call_in(Op::Ge, DType::I64, &[position, zero]);
            let below = self.b.call_in(Op::Lt, DType::I64, &[position, count]);
            let cond = self.b.call_in(Op::And, DType::Bool, &[above, below]);
            self.require_entry(entry.tensor, cond);
        }
        position
    }

    fn require_entry(&mut self, tensor: TensorId, cond: ExprId) {
        if self.b.as_constant(cond) == Some(Value::Bool(true)) || self.required.contains(&cond) {
            return;
        }
        self.required.push(cond);
        let message = format!("`{}` stores fewer elements", self.program.tensor(tensor).name);
        self.b.emit(Stmt::Require { cond, message });
    }

    /// Checks positions that are a loop's index once, before the loop.
    pub(super) fn check_entry(
        &mut self,
        index: IndexId,
        start: ExprId,
        stop: ExprId,
        empty: ExprId,
        entry: &mut EntryQuery,
    ) {
        let queries = matches!(entry.what, EntryPart::Coordinate(_) | EntryPart::Value);
        if entry.inside || !queries || entry.at[..] != [Node::Index(index)] || !self.check_positions(entry) {
            return;
        }
        let (zero, count) = (self.b.int(0), self.count(entry.tensor, self.levels(entry.tensor)));
        // A count of elements lies between 0 and nnz.
        let counts = |this: &Self, id: ExprId| this.counting.contains(&(entry.tensor, id));
        let yes = self.b.constant(Value::Bool(true));
        let above = if counts(self, start) { yes } else { self.b.call_in(Op::Ge, DType::I64, &[start, zero]) };
        let below = if counts(self, stop) { yes } else { self.b.call_in(Op::Le, DType::I64, &[stop, count]) };
        let inside = self.b.call_in(Op::And, DType::Bool, &[above, below]);
        let cond = self.b.call_in(Op::Select, DType::Bool, &[empty, yes, inside]);
        self.require_entry(entry.tensor, cond);
        entry.inside = true;
    }

    /// Queries a level about its positions.
    fn query<T>(
        &mut self,
        tensor: TensorId,
        level: usize,
        at: Located,
        index: ExprId,
        query: impl FnOnce(&'static dyn Positions, &mut Fiber) -> T,
    ) -> Option<T> {
        self.fiber(tensor, level, at, index, |row, fiber| row.positions.map(|positions| query(positions, fiber)))
            .flatten()
    }

    /// The start of the children of a position.
    fn start_below(&mut self, tensor: TensorId, level: usize, position: ExprId) -> ExprId {
        let (zero, at) = (self.b.int(0), certain(position));
        self.query(tensor, level, at, zero, |positions, fiber| positions.start(fiber)).unwrap_or(position)
    }

    /// The number of positions below the first `levels` levels.
    fn count(&mut self, tensor: TensorId, levels: usize) -> ExprId {
        let root = self.b.int(1);
        (0..levels).fold(root, |count, level| self.start_below(tensor, level, count))
    }

    /// The number of elements before coordinates of the outermost levels.
    fn first(&mut self, tensor: TensorId, coordinates: &[Node]) -> ExprId {
        let order = self.order(tensor);
        let mut at = certain(self.b.int(0));
        for (level, node) in coordinates.iter().enumerate() {
            let last = level + 1 == coordinates.len();
            let index = self.integer(node);
            let (least, size) = (self.b.int(-1), self.bound[tensor.index()].dims[order[level]]);
            let index = self.b.call_in(Op::Max, DType::I64, &[index, least]);
            let index = self.b.call_in(Op::Min, DType::I64, &[index, size]);
            let index = self.b.name("at", index);
            let found = self.query(tensor, level, at, index, |positions, fiber| {
                // Elements at the last coordinate itself do not count.
                fiber.grouped &= !last;
                positions.bound(fiber)
            });
            at = found.unwrap_or(at);
        }
        let below = coordinates.len()..self.levels(tensor);
        let first = below.fold(at.position, |position, level| self.start_below(tensor, level, position));
        let first = self.b.name("first", first);
        self.counting.push((tensor, first));
        first
    }

    /// Warns of a coordinate list among the outer levels, where each query is a search.
    fn warn_of_first_search(&mut self, entry: &EntryQuery) {
        let searched =
            |level: &usize| self.row(entry.tensor, *level).is_some_and(|row| !row.capabilities.random_access);
        let Some(level) = (0..entry.at.len()).find(searched) else { return };
        let program = self.program;
        let name = &program.tensor(entry.tensor).name;
        let message =
            format!("level {level} of `{name}` is a coordinate list, so each `{name}.first[...]` is a binary search");
        if self.warnings.iter().any(|d| d.message == message) {
            return;
        }
        let d = Diagnostic::warning(Code::E0607, message)
            .label(program.origin.stmt(entry.stmt), "used here")
            .note("each query costs O(log nnz), in a `dense` level O(1)")
            .help(format!(
                "iterate over all stored elements in one loop, `range({name}.nnz)`: `fuse` the loops before `pos`"
            ))
            .help(format!("or store `{name}` with a `dense` level there, as `csr` does"));
        self.warnings.push(program.origin.attach(d));
    }

    /// A coordinate of the element at a position, which may be the index of a loop.
    fn entry_coordinate(&mut self, tensor: TensorId, dim: usize, position: ExprId, moving: Option<IndexId>) -> ExprId {
        let level = self.order(tensor).iter().position(|d| *d == dim).unwrap_or(0);
        let mut position = position;
        for k in (level + 1..self.levels(tensor)).rev() {
            position = self.parent(tensor, k, position, moving);
        }
        let (zero, at) = (self.b.int(0), certain(position));
        let found = self.query(tensor, level, at, zero, |positions, fiber| positions.coordinate(fiber, level == 0));
        found.unwrap_or(zero)
    }

    fn parent(&mut self, tensor: TensorId, level: usize, position: ExprId, moving: Option<IndexId>) -> ExprId {
        let (zero, at) = (self.b.int(0), certain(position));
        let starts = match self.query(tensor, level, at, zero, |positions, fiber| positions.parent(fiber)) {
            Some(Parent::Listed(starts)) => starts,
            Some(Parent::At(parent)) => return parent,
            None => return position,
        };
        let name = format!("{}{}_at", self.program.tensor(tensor).name, level - 1);
        let cursor = self
            .cursors
            .iter()
            .rev()
            .find(|cursor| Some(cursor.index) == moving && cursor.tensor == tensor && cursor.level == level);
        match cursor.copied() {
            Some(cursor) => {
                let here = self.b.get(cursor.var);
                let one = self.b.int(1);
                let next = self.b.add(here, one);
                let start = self.b.load(starts, next);
                let cond = self.b.call_in(Op::Le, DType::I64, &[start, position]);
                let body = self.b.block(|b| b.assign(cursor.var, next));
                self.b.emit(Stmt::While { cond, body });
                self.b.name(name, here)
            }
            None => self.parent_by_search(tensor, level, starts, position),
        }
    }

    fn parent_by_search(&mut self, tensor: TensorId, level: usize, starts: BufferId, position: ExprId) -> ExprId {
        let name = format!("{}{}_at", self.program.tensor(tensor).name, level - 1);
        let parents = self.count(tensor, level);
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let key = self.b.add(position, one);
        let after = self.b.search(format!("{name}_after"), starts, zero, parents, key);
        let before = self.b.call_in(Op::Sub, DType::I64, &[after, one]);
        self.b.name(name, before)
    }

    /// Finds the parents of the first position of a loop, for the coordinates that its body
    /// queries. Gives the number of cursors before.
    pub(super) fn begin_cursors(&mut self, index: IndexId, start: ExprId, body: &[Step]) -> usize {
        let before = self.cursors.len();
        // For each tensor, the outermost level that is queried.
        let mut queried: Vec<(TensorId, usize)> = Vec::new();
        visit_steps(body, &mut |node| {
            if let Node::Entry(entry) = node
                && let EntryPart::Coordinate(dim) = entry.what
                && entry.at[..] == [Node::Index(index)]
                && let Some(level) = self.order(entry.tensor).iter().position(|d| *d == dim)
            {
                match queried.iter_mut().find(|(tensor, _)| *tensor == entry.tensor) {
                    Some((_, outermost)) => *outermost = level.min(*outermost),
                    None => queried.push((entry.tensor, level)),
                }
            }
        });
        for (tensor, outermost) in queried {
            let has_positions = |this: &Self, k| this.row(tensor, k).is_some_and(|row| row.positions.is_some());
            if !(0..self.levels(tensor)).all(|k| has_positions(self, k)) {
                continue;
            }
            let mut position = start;
            for level in (outermost + 1..self.levels(tensor)).rev() {
                let (zero, at) = (self.b.int(0), certain(position));
                position = match self.query(tensor, level, at, zero, |positions, fiber| positions.parent(fiber)) {
                    Some(Parent::Listed(starts)) => {
                        let found = self.parent_by_search(tensor, level, starts, position);
                        let name = format!("{}{}_cursor", self.program.tensor(tensor).name, level - 1);
                        let var = self.b.variable_from(name, found);
                        self.cursors.push(Cursor { index, tensor, level, var });
                        found
                    }
                    Some(Parent::At(parent)) => parent,
                    None => position,
                };
            }
        }
        before
    }

    /// True if a dimension is large enough for all coordinates of another one.
    pub(super) fn holds_coordinates(&self, (tensor, dim): (TensorId, usize), (other, from): (TensorId, usize)) -> bool {
        fits(self.checked, (tensor, dim), (other, from))
    }

    /// The bound name that a subscript is, if it is a coordinate of a stored element.
    pub(super) fn entry_subscript(&self, node: &Node) -> Option<(VarId, TensorId)> {
        let Node::Var(var) = node else { return None };
        match self.program.expr(*self.lets.get(var)?) {
            Expr::Entry(entry) if matches!(entry.what, EntryPart::Coordinate(_)) => Some((*var, entry.tensor)),
            _ => None,
        }
    }

    /// Warns of a coordinate list that is searched for coordinates of another tensor's elements.
    pub(super) fn warn_of_search_at(
        &mut self,
        tensor: TensorId,
        id: u32,
        stmt: program::StmtId,
        sub: &super::node::Sub,
    ) {
        let Some((var, leader)) = self.entry_subscript(&sub.node) else { return };
        if self.warned.contains(&id) || sub.permissive || sub.protocol == Some(program::Protocol::Follow) {
            return;
        }
        self.warned.push(id);
        let program = self.program;
        let (name, leader) = (&program.tensor(tensor).name, &program.tensor(leader).name);
        let var = &program.vars[var.index()];
        let message =
            format!("`{name}` is searched for every `{var}`: the loop iterates over the positions of `{leader}`");
        let d = Diagnostic::warning(Code::E0607, message)
            .label(program.origin.stmt(stmt), format!("`{name}` is read here"))
            .note(
                "each access is a binary search in a coordinate list, O(log nnz) per fiber, instead of O(1) iteration",
            )
            .help(format!("loop over coordinates, which co-iterates over `{name}` and `{leader}`"))
            .help(format!("or store `{name}` with a `dense` level for `{var}`"))
            .help(format!("or write `follow({var})` if the search is intended"));
        self.warnings.push(program.origin.attach(d));
    }
}

fn certain(position: ExprId) -> Located {
    Located { position, present: None, group_stop: None }
}

/// The definitions of all bound names.
pub(super) fn lets(program: &Program) -> FxHashMap<VarId, program::ExprId> {
    let mut lets = FxHashMap::default();
    program.visit(&mut |stmt| {
        if let StmtKind::Let { var, value } = &stmt.kind {
            lets.insert(*var, *value);
        }
    });
    lets
}

/// The dimension and tensor whose stored elements an expression is a coordinate of.
pub(super) fn coordinate_of(
    program: &Program,
    lets: &FxHashMap<VarId, program::ExprId>,
    id: program::ExprId,
) -> Option<(TensorId, usize)> {
    match program.expr(id) {
        Expr::Var(var) => match program.expr(*lets.get(var)?) {
            Expr::Entry(_) => coordinate_of(program, lets, *lets.get(var)?),
            _ => None,
        },
        Expr::Entry(program::Entry { tensor, what: EntryPart::Coordinate(dim), .. }) => Some((*tensor, *dim)),
        _ => None,
    }
}

fn fits(checked: &Checked, (tensor, dim): (TensorId, usize), (other, from): (TensorId, usize)) -> bool {
    let size = |tensor: TensorId, dim: usize| checked.extents.shapes.get(tensor.index())?.get(dim).copied();
    size(tensor, dim).zip(size(other, from)).is_some_and(|(here, there)| there <= here)
}

/// For each subscript that is a coordinate of stored elements: true if the dimension is large
/// enough for all of them, so that the kernel need not check.
pub(crate) fn coordinates_fit(program: &Program, checked: &Checked) -> Vec<bool> {
    let lets = lets(program);
    let mut found = Vec::new();
    let mut see = |access: &Access| {
        for (dim, subscript) in access.subscripts.iter().enumerate() {
            if let Some(from) = coordinate_of(program, &lets, subscript.expr) {
                found.push(fits(checked, (access.tensor, dim), from));
            }
        }
    };
    for id in program.exprs.ids() {
        if let Expr::Read(access) = program.expr(id) {
            see(access);
        }
    }
    program.visit(&mut |stmt| {
        if let StmtKind::Assign { target, .. } = &stmt.kind {
            see(target);
        }
    });
    found
}
