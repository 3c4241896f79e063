//! Random access: reads that no loop iterates to. Each remaining level locates its coordinate.
//!
//! In: expressions with unresolved accesses. Out: accesses with positions, after statements that
//! locate them and check their subscripts. A subscript that moves with a loop is checked once,
//! before the loop. Levels without random access are searched, with a warning (E0607).

use super::Lowerer;
use super::bind::BoundStorage;
use super::emit::Emitted;
use super::fiber_sets::unthunked;
use super::node::{self, Node, ReadSource, Step, Sub};
use super::run_algebra::depends;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::{DimExpr, Format};
use tamis_ir::kernel::{Expr, ExprId, Stmt};
use tamis_ir::looplet::{Below, Edge, Located, Looplet};
use tamis_ir::program::{IndexId, Protocol, TensorId};

impl Lowerer<'_> {
    /// Resolves the accesses of an expression to positions, so that emitting it has no effect of
    /// its own.
    pub(super) fn resolve(&mut self, node: &Node) -> Node {
        if let Node::Call(op, dtype, operands) = node
            && operands.iter().any(is_checked)
        {
            return Node::Call(*op, *dtype, self.resolve_operands(*op, operands));
        }
        node.clone().map(&mut |node| match node {
            Node::Access(access) => self.resolve_access(*access),
            Node::Entry(entry) => self.resolve_entry(&entry),
            other => other,
        })
    }

    /// Resolves the operands of a lazy operator. Operands that are not evaluated are not
    /// bounds-checked, either.
    fn resolve_operands(&mut self, op: Op, operands: &[Node]) -> Vec<Node> {
        let depth = self.when.len();
        let mut resolved: Vec<Node> = Vec::new();
        for (k, operand) in operands.iter().enumerate() {
            let decides = match (op, k) {
                (Op::Select, 1 | 2) => resolved.first().map(|cond| (cond.clone(), k == 1)),
                (Op::And, 1) => resolved.first().map(|first| (first.clone(), true)),
                (Op::Or, 1) => resolved.first().map(|first| (first.clone(), false)),
                _ => None,
            };
            if let Some((decides, holds)) = decides {
                let cond = self.truth(&decides);
                let cond = self.b.name("chosen", cond);
                self.when.push(if holds { cond } else { self.b.call_in(Op::Not, DType::Bool, &[cond]) });
            }
            resolved.push(self.resolve(operand));
            self.when.truncate(depth);
        }
        resolved
    }

    fn resolve_access(&mut self, mut access: node::PartialAccess) -> Node {
        let ReadSource::Tensor(tensor, subs) = access.source.clone() else { return Node::Access(Box::new(access)) };
        if subs.len() == access.level || matches!(self.bound[tensor.index()].storage, BoundStorage::Scalar { .. }) {
            return Node::Access(Box::new(access));
        }
        // The same element was located before (common subexpression).
        if let Some((_, found)) = self.resolved.iter().find(|(given, _)| *given == access) {
            return found.clone();
        }
        let given = access.clone();
        let mut missing = Vec::new();
        let position = access.position.unwrap_or(self.b.int(0));
        let mut at = Located { position, present: access.present, group_stop: access.group_stop };
        for (k, sub) in subs.iter().enumerate().skip(access.level) {
            let index = self.coordinate_in(tensor, sub, &mut at, &mut missing);
            if let Some(found) = self.locate_at_edge(tensor, &access, k, at, index) {
                at = found;
                continue;
            }
            self.warn_of_search(tensor, &access, k, sub);
            self.check_search(tensor, k, access.stmt);
            at = self.locate(tensor, k, at, index);
        }
        access.level = subs.len();
        access.position = Some(at.position);
        access.group_stop = at.group_stop;
        access.present = at.present;
        access.safe = false;
        access.missing = self.any(missing);
        let node = Node::Access(Box::new(access));
        // An element that is located under a condition is not available outside of it.
        if self.when.is_empty() {
            self.resolved.push((given, node.clone()));
        }
        node
    }

    /// The level coordinate of a subscript. A permissive subscript that is out of bounds makes the
    /// value missing.
    pub(super) fn coordinate_in(
        &mut self,
        tensor: TensorId,
        sub: &Sub,
        at: &mut Located,
        missing: &mut Vec<ExprId>,
    ) -> ExprId {
        if !sub.permissive {
            let index = self.subscript(tensor, sub);
            if !sub.inside {
                for cond in self.when.clone() {
                    at.present = self.both(at.present, Some(cond));
                }
            }
            return self.level_coordinate(tensor, sub, index);
        }
        let index = self.integer(&sub.node);
        let index = self.b.name("at", index);
        let size = self.bound[tensor.index()].dims[sub.dim];
        let index = self.clamp_permissive(index, size, missing);
        // Nothing is located where the subscript is out of bounds.
        at.present = self.and_inside(at.present, missing.last().copied());
        self.level_coordinate(tensor, sub, index)
    }

    /// The value of a resolved access.
    pub(super) fn emit_access(&mut self, access: &node::PartialAccess) -> Emitted {
        let tensor = match &access.source {
            ReadSource::Tensor(tensor, _) => *tensor,
            ReadSource::Mask(op, index, other) => {
                let (a, b) = (self.emit(&Node::Index(*index)).value, self.emit(other).value);
                let value = self.b.call_in(*op, DType::I64, &[a, b]);
                return Emitted { value, unless: None, missing: None };
            }
        };
        let bound = self.bound[tensor.index()].clone();
        let (values, dtype) = match bound.storage {
            BoundStorage::Scalar { var, written, .. } => {
                let unless = written.map(|written| (self.b.get(written), bound.fill));
                return Emitted { value: self.b.get(var), unless, missing: None };
            }
            BoundStorage::Levels { values, .. } => (values, bound.dtype),
        };
        let position = access.position.unwrap_or(self.b.int(0));
        let present = access.present.filter(|present| !self.holds(*present));
        let value = match values {
            Some(values) => self.b.load(values, position),
            None => self.b.constant(Value::Bool(true)),
        };
        let missing = access.missing;
        let Some(present) = present else { return Emitted { value, unless: None, missing } };
        // A load that is always safe needs no branch.
        let value = if access.safe { self.b.name("v", value) } else { value };
        let fill = self.b.constant(bound.fill);
        let value = self.b.call_in(Op::Select, dtype, &[present, value, fill]);
        Emitted { value, unless: Some((present, bound.fill)), missing }
    }

    /// True if a condition is known to hold here.
    pub(super) fn holds(&self, cond: ExprId) -> bool {
        if self.assumed.contains(&cond) {
            return true;
        }
        if let Expr::Call(Op::And, _, operands) = self.b.kernel().expr(cond) {
            return operands.iter().all(|operand| self.holds(*operand));
        }
        let operands = self.alternatives(cond);
        self.b.as_constant(cond).is_some_and(|c| c.is_truthy())
            || operands.iter().any(|operand| *operand != cond && self.holds(*operand))
            || self
                .assumed
                .iter()
                .any(|known| self.alternatives(*known).iter().all(|operand| operands.contains(operand)))
    }

    /// The operands of the disjunction `a or b or ...`.
    fn alternatives(&self, cond: ExprId) -> Vec<ExprId> {
        match self.b.kernel().expr(cond) {
            Expr::Call(Op::Select, DType::Bool, operands)
                if self.b.as_constant(operands[1]) == Some(Value::Bool(true)) =>
            {
                [self.alternatives(operands[0]), self.alternatives(operands[2])].concat()
            }
            _ => vec![cond],
        }
    }

    /// The conditions that a condition implies.
    pub(super) fn consequences(&self, cond: ExprId) -> Vec<ExprId> {
        match self.b.kernel().expr(cond) {
            Expr::Call(Op::And, _, operands) => {
                std::iter::once(cond).chain(operands.iter().flat_map(|operand| self.consequences(*operand))).collect()
            }
            _ => vec![cond],
        }
    }

    /// Conjunction of `present` and not `outside`.
    fn and_inside(&mut self, present: Option<ExprId>, outside: Option<ExprId>) -> Option<ExprId> {
        let inside = outside.map(|o| self.b.call_in(Op::Not, DType::Bool, &[o]));
        match (present, inside) {
            (Some(a), Some(b)) => Some(self.b.call_in(Op::And, DType::Bool, &[a, b])),
            (a, b) => a.or(b),
        }
    }

    /// The coordinate clamped into bounds; where it was out of bounds, the value is missing.
    pub(super) fn clamp_permissive(&mut self, index: ExprId, size: ExprId, missing: &mut Vec<ExprId>) -> ExprId {
        let zero = self.b.int(0);
        let low = self.b.call_in(Op::Lt, DType::I64, &[index, zero]);
        let high = self.b.call_in(Op::Ge, DType::I64, &[index, size]);
        let yes = self.b.constant(Value::Bool(true));
        let outside = self.b.call_in(Op::Select, DType::Bool, &[low, yes, high]);
        let outside = self.b.name("outside", outside);
        missing.push(outside);
        self.b.call_in(Op::Select, DType::I64, &[outside, zero, index])
    }

    /// The position of a coordinate in one level.
    pub(super) fn locate(&mut self, tensor: TensorId, level: usize, at: Located, index: ExprId) -> Located {
        self.fiber(tensor, level, at, index, |row, fiber| (row.locate)(fiber)).unwrap_or(at)
    }

    /// The position of a coordinate that is the first one of its window: no search is needed.
    fn locate_at_edge(
        &mut self,
        tensor: TensorId,
        access: &node::PartialAccess,
        level: usize,
        at: Located,
        index: ExprId,
    ) -> Option<Located> {
        let (edge, loops) = access.window.filter(|_| level == access.level)?;
        let Edge::From(q) = edge else { return None };
        if loops != self.entered(access) {
            return None;
        }
        let looplet = self.fiber(tensor, level, at, index, |row, fiber| (row.unfurl)(fiber))?;
        let (preamble, body) = unthunked(looplet);
        let Looplet::Stepper(list) = body else { return None };
        if list.grouped || list.below != Below::Position {
            return None;
        }
        preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
        let more = self.b.call_in(Op::Lt, DType::I64, &[q, list.stop]);
        let here = list.coordinate(&mut self.b, q);
        let same = self.b.call_in(Op::Eq, DType::I64, &[here, index]);
        let found = self.b.call_in(Op::And, DType::Bool, &[more, same]);
        let present = match at.present {
            Some(present) => self.b.call_in(Op::And, DType::Bool, &[present, found]),
            None => found,
        };
        let present = self.b.name("found", present);
        Some(Located { position: q, present: Some(present), group_stop: None })
    }

    // Subscripts

    /// A coordinate that must be in bounds.
    pub(super) fn subscript(&mut self, tensor: TensorId, sub: &Sub) -> ExprId {
        let index = self.integer(&sub.node);
        let index = self.b.name("at", index);
        if !sub.inside {
            let size = self.bound[tensor.index()].dims[sub.dim];
            let checked = if self.may_overflow(&sub.node) { self.saturated(&sub.node) } else { index };
            let cond = self.between(checked, checked, size);
            self.require_inside(tensor, sub, cond);
        }
        index
    }

    /// `0 <= low` and `high < size`.
    fn between(&mut self, low: ExprId, high: ExprId, size: ExprId) -> ExprId {
        let zero = self.b.int(0);
        let above = self.b.call_in(Op::Ge, DType::I64, &[low, zero]);
        let below = self.b.call_in(Op::Lt, DType::I64, &[high, size]);
        self.b.call_in(Op::And, DType::Bool, &[above, below])
    }

    fn require_inside(&mut self, tensor: TensorId, sub: &Sub, cond: ExprId) {
        let yes = self.b.constant(Value::Bool(true));
        let cond = self
            .when
            .clone()
            .into_iter()
            .fold(cond, |cond, chosen| self.b.call_in(Op::Select, DType::Bool, &[chosen, cond, yes]));
        if self.b.as_constant(cond) == Some(Value::Bool(true)) || self.required.contains(&cond) {
            return;
        }
        self.required.push(cond);
        let name = self.program.tensor(tensor).name.clone();
        let message = format!("a subscript leaves dimension {} of `{name}`", sub.dim);
        self.b.emit(Stmt::Require { cond, message });
    }

    /// Checks the subscripts that move with a loop once, before the loop.
    pub(super) fn check_before(&mut self, index: IndexId, start: ExprId, stop: ExprId, steps: &mut [Step]) {
        let empty = self.b.call_in(Op::Ge, DType::I64, &[start, stop]);
        self.check_steps(index, start, stop, empty, steps);
    }

    fn check_steps(&mut self, index: IndexId, start: ExprId, stop: ExprId, empty: ExprId, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Let(_, value) => self.check_node(index, start, stop, empty, value),
                Step::Assign(target, update, value) => {
                    let tensor = target.tensor;
                    for sub in &mut target.subs {
                        self.check_node(index, start, stop, empty, &mut sub.node);
                        self.check_sub(index, start, stop, empty, tensor, sub);
                    }
                    for extra in update.iter_mut().flat_map(|u| &mut u.extra) {
                        self.check_node(index, start, stop, empty, extra);
                    }
                    self.check_node(index, start, stop, empty, value);
                }
                Step::For(inner, _, body) => {
                    // Loops with bounds that are not known yet check for themselves.
                    let Some((low, high)) = self.extent_before(*inner) else { continue };
                    let none = self.b.call_in(Op::Ge, DType::I64, &[low, high]);
                    let yes = self.b.constant(Value::Bool(true));
                    let empty = self.b.call_in(Op::Select, DType::Bool, &[empty, yes, none]);
                    self.check_steps(index, start, stop, empty, body);
                }
                // Statements under a condition are checked where they run, unless they are known to
                // be in bounds.
                Step::If(cond, ..) => self.check_node(index, start, stop, empty, cond),
                _ => {}
            }
        }
    }

    fn check_node(&mut self, index: IndexId, start: ExprId, stop: ExprId, empty: ExprId, node: &mut Node) {
        match node {
            Node::Entry(entry) => self.check_entry(index, start, stop, empty, entry),
            Node::Access(access) => {
                if let ReadSource::Tensor(tensor, subs) = &mut access.source {
                    for k in access.level..subs.len() {
                        self.check_sub(index, start, stop, empty, *tensor, &mut subs[k]);
                        // The loop may skip coordinates outside of all windows, and with them the
                        // loops that move this subscript.
                        if subs.iter().skip(k + 1).any(|below| depends(&below.node, index)) {
                            self.check_inner_loops(index, empty, *tensor, &mut subs[k]);
                        }
                    }
                }
            }
            // Lazy operands are checked where they are read; the first operand is always read.
            Node::Call(op, _, operands) => {
                let read = if op.is_lazy() { 1 } else { operands.len() };
                operands.iter_mut().take(read).for_each(|n| self.check_node(index, start, stop, empty, n));
            }
            _ => {}
        }
    }

    fn check_sub(&mut self, index: IndexId, start: ExprId, stop: ExprId, empty: ExprId, t: TensorId, sub: &mut Sub) {
        if sub.inside || sub.permissive {
            return;
        }
        let Some((low, high)) = self.with_saturation(&sub.node, |this| {
            let footprint = this.footprint(&sub.node, index)?;
            let one = this.b.int(1);
            let last = this.b.call_in(Op::Sub, DType::I64, &[stop, one]);
            let (least, greatest) = if footprint.stride > 0 { (start, last) } else { (last, start) };
            let low = this.plus_times(footprint.low, least, footprint.stride);
            Some((low, this.plus_times(footprint.last, greatest, footprint.stride)))
        }) else {
            return;
        };
        let size = self.bound[t.index()].dims[sub.dim];
        let inside = self.between(low, high, size);
        let yes = self.b.constant(Value::Bool(true));
        let cond = self.b.call_in(Op::Select, DType::Bool, &[empty, yes, inside]);
        self.require_inside(t, sub, cond);
        sub.inside = true;
    }

    /// Computes the footprint of a subscript, with saturation if its arithmetic may overflow.
    fn with_saturation<T>(&mut self, node: &Node, footprint: impl FnOnce(&mut Self) -> T) -> T {
        let saturates = self.may_overflow(node);
        let before = std::mem::replace(&mut self.saturates, saturates);
        let result = footprint(self);
        self.saturates = before;
        result
    }

    /// Checks a subscript that only inner loops move, for all of their iterations.
    fn check_inner_loops(&mut self, index: IndexId, empty: ExprId, tensor: TensorId, sub: &mut Sub) {
        if sub.inside || sub.permissive {
            return;
        }
        let Some((low, last)) = self.with_saturation(&sub.node, |this| this.footprint_below(&sub.node, index)) else {
            return;
        };
        let size = self.bound[tensor.index()].dims[sub.dim];
        let inside = self.between(low, last, size);
        let yes = self.b.constant(Value::Bool(true));
        let cond = self.b.call_in(Op::Select, DType::Bool, &[empty, yes, inside]);
        self.require_inside(tensor, sub, cond);
        sub.inside = true;
    }

    // Warnings

    /// Warns of a search that another order of loops or levels would avoid.
    pub(super) fn warn_of_search(&mut self, tensor: TensorId, access: &node::PartialAccess, level: usize, sub: &Sub) {
        let random = self.row(tensor, level).is_none_or(|row| row.capabilities.random_access);
        if !random {
            self.warn_of_search_at(tensor, access.id, access.stmt, sub);
        }
        let ReadSource::Tensor(_, subs) = &access.source else { return };
        let index = match only_index(sub) {
            Some(index) if !random && sub.protocol != Some(Protocol::Follow) => index,
            _ => return,
        };
        let better = self.in_loop_order(tensor, subs);
        // A shifted read in loop order is searched for where it may be out of bounds.
        let shifted = sub.permissive || !matches!(sub.node, Node::Index(_));
        let late = subs[..level].iter().any(|above| outermost_index(above).is_some_and(|first| first > index));
        let id = access.id;
        if self.warned.contains(&id) || shifted && better.is_none() && !late {
            return;
        }
        self.warned.push(id);
        let program = self.program;
        let name = &program.tensor(tensor).name;
        let loop_name = &program.indices[index.index()];
        let shown = |sub: &Sub| match outermost_index(sub) {
            Some(i) => program.indices[i.index()].clone(),
            None => "...".to_string(),
        };
        let loops: Vec<String> = subs.iter().map(shown).collect();
        let mut d = Diagnostic::warning(
            Code::E0607,
            format!("`{name}` is searched for every `{loop_name}`: its storage order differs from the loop order"),
        )
        .label(program.origin.stmt(access.stmt), format!("`{name}` is read here"))
        .note(format!(
            "each access is a binary search in level {level}, O(log nnz) per fiber, instead of O(1) iteration"
        ));
        if let Some(better) = better {
            d = d.help(format!("store `{name}` as `{better}`"));
        }
        let d = d
            .help(format!("or reorder the loops to the storage order: {}", loops.join(", ")))
            .help(format!("or write `follow({loop_name})` if the search is intended"));
        self.warnings.push(program.origin.attach(d));
    }

    /// The format with the same levels for dimensions in loop order, if it differs.
    fn in_loop_order(&self, tensor: TensorId, subs: &[Sub]) -> Option<Format> {
        let BoundStorage::Levels { format, .. } = &self.bound[tensor.index()].storage else { return None };
        let mut dims: Vec<(usize, usize)> = Vec::new();
        for sub in subs {
            dims.push((outermost_index(sub)?.index(), sub.dim));
        }
        dims.sort_unstable();
        let map = dims.into_iter().map(|(_, dim)| DimExpr::Dim(dim)).collect();
        Format::new(format.rank(), map, format.levels().to_vec(), format.leaf()).ok().filter(|better| better != format)
    }
}

/// The index of the outermost loop that moves an affine subscript.
fn outermost_index(sub: &Sub) -> Option<IndexId> {
    let (mut found, mut other): (Option<IndexId>, bool) = (None, false);
    sub.node.visit(&mut |node| match node {
        // Loop indices are numbered outermost first.
        Node::Index(index) => found = Some(found.map_or(*index, |first| first.min(*index))),
        Node::Access(_) => other = true,
        _ => {}
    });
    found.filter(|_| !other)
}

/// The only index in a subscript, with or without an offset.
fn only_index(sub: &Sub) -> Option<IndexId> {
    let (mut found, mut other) = (Vec::new(), false);
    sub.node.visit(&mut |node| match node {
        Node::Index(index) => found.push(*index),
        Node::Access(_) => other = true,
        _ => {}
    });
    found.dedup();
    match found[..] {
        [index] if !other => Some(index),
        _ => None,
    }
}

/// True if resolving an expression can fail a bounds check.
fn is_checked(node: &Node) -> bool {
    let mut found = false;
    node.visit(&mut |node| {
        if let Node::Access(access) = node
            && let ReadSource::Tensor(_, subs) = &access.source
        {
            found |= subs.iter().skip(access.level).any(|sub| !sub.inside && !sub.permissive);
        }
    });
    found
}
