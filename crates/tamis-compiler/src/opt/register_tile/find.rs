//! Candidates of register tiling: loop nests that update one row, whose elements exist, with
//! vectorisable work per element.

use super::super::effects::Effects;
use super::super::{cost, fold, in_bounds};
use super::{Tile, mentions};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::rewrite::evaluated_first;
use tamis_ir::kernel::{BufferId, Elem, Expr, ExprId, Hint, Kernel, Role, Stmt, VarId};

/// The maximum number of operations per element, since they are replicated for every vector of a
/// tile.
const OPERATIONS: usize = 24;

/// Rows of a known shorter length do not pay for a vector.
const SHORTEST: i64 = 4;

/// The dense loop inside a nest.
pub(super) struct DenseRow {
    pub(super) buffer: BufferId,
    /// The dense loop.
    pub(super) counter: VarId,
    pub(super) start: ExprId,
    pub(super) stop: ExprId,
    /// The value that one iteration stores, with names expanded.
    pub(super) value: ExprId,
    /// The index of the store, in terms of the counter and of values that are invariant in the
    /// nest.
    pub(super) index: ExprId,
    /// True if the body of the outermost loop is the dense loop alone, so that its first iteration
    /// reaches it.
    pub(super) direct: bool,
}

/// The proof that the elements exist from which a tile is loaded.
pub(super) enum RowExists {
    /// They exist unconditionally.
    Always,
    /// A statement before the nest has just filled them with this value.
    Filled { at: usize, value: ExprId },
    /// They are accessed if this condition holds.
    If(ExprId),
}

impl Tile {
    /// The row that a loop nest updates, if the nest has no other effect and a tile is profitable.
    pub(super) fn find(&mut self, nest: &Stmt, before: &[Stmt]) -> Option<(DenseRow, RowExists)> {
        let row = self.row(nest)?;
        let kernel = self.editor.kernel();
        let effects = Effects::of(std::slice::from_ref(nest));
        let Elem::Value(_) = kernel.buffer(row.buffer).elem else { return None };
        if !matches!(kernel.buffer(row.buffer).role, Role::Output | Role::Scratch)
            || effects.touch(kernel, row.start)
            || effects.touch(kernel, row.stop)
            || !is_only_touched_by(kernel, nest, &row)
            || !follows_coordinates(kernel, nest, row.counter)
            || !is_for_vectors(kernel, &row)
        {
            return None;
        }
        let first = self.at(row.index, row.counter, row.start);
        if effects.touch(self.editor.kernel(), first) {
            return None;
        }
        let (start, stop) = (self.int(row.start), self.int(row.stop));
        if let (Some(start), Some(stop)) = (start, stop)
            && stop.saturating_sub(start) < SHORTEST
        {
            return None;
        }
        let there = self.there(nest, &row, first, before)?;
        Some((row, there))
    }

    /// The dense loop of a nest whose other statements are all pure.
    fn row(&mut self, nest: &Stmt) -> Option<DenseRow> {
        let mut names: FxHashMap<VarId, ExprId> = FxHashMap::default();
        let mut at = nest;
        let mut depth = 0;
        loop {
            let body = match at {
                Stmt::For { var, start, stop, body, .. } => match &body[..] {
                    [lets @ .., Stmt::Store { buffer, index, value }] => {
                        return self.dense(lets, &mut names, (*var, *start, *stop), (*buffer, *index, *value), depth);
                    }
                    _ => body,
                },
                Stmt::While { body, .. } => body,
                _ => return None,
            };
            depth += 1;
            let mut inner = None;
            for stmt in body {
                match stmt {
                    Stmt::Let { var, value } if !self.editor.kernel().var(*var).mutable => {
                        let value = self.resolved(*value, &names);
                        names.insert(*var, value);
                    }
                    Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::Search { .. } => {}
                    Stmt::For { .. } | Stmt::While { .. } if inner.is_none() => inner = Some(stmt),
                    _ => return None,
                }
            }
            at = inner?;
        }
    }

    fn dense(
        &mut self,
        lets: &[Stmt],
        names: &mut FxHashMap<VarId, ExprId>,
        (counter, start, stop): (VarId, ExprId, ExprId),
        (buffer, index, value): (BufferId, ExprId, ExprId),
        depth: usize,
    ) -> Option<DenseRow> {
        if depth == 0 || self.editor.kernel().var(counter).mutable {
            return None;
        }
        let mut own = FxHashMap::default();
        for stmt in lets {
            let Stmt::Let { var, value } = stmt else { return None };
            if self.editor.kernel().var(*var).mutable {
                return None;
            }
            let value = self.resolved(*value, &own);
            own.insert(*var, value);
        }
        let (place, value) = (self.resolved(index, &own), self.resolved(value, &own));
        // The update reads its own element and no other.
        let kernel = self.editor.kernel();
        let (mut uses, mut others) = (false, false);
        kernel.visit_expr(value, &mut |expr| {
            if let Expr::Load(other, at) = expr
                && *other == buffer
            {
                uses |= *at == place;
                others |= *at != place;
            }
        });
        if !uses || others {
            return None;
        }
        // Names are expanded, since the nest may declare them; their definitions are checked
        // against its effects.
        let [index, start, stop] = [place, start, stop].map(|id| self.resolved(id, names));
        Some(DenseRow { buffer, counter, start, stop, value, index, direct: depth == 1 })
    }

    /// Proves that the elements of a row exist before the nest runs; also returns the buffers that
    /// the index loads.
    fn there(&mut self, nest: &Stmt, row: &DenseRow, first: ExprId, before: &[Stmt]) -> Option<RowExists> {
        let len = self.length(row);
        let kernel = self.editor.kernel();
        let mut known = true;
        for id in [row.start, row.stop, first] {
            kernel.visit_expr(id, &mut |expr| {
                if let Expr::Load(buffer, index) = expr {
                    known &= self.reach.has(kernel, *buffer, *index);
                }
            });
        }
        if known {
            if let Some(filled) = self.filled(row, first, len, before) {
                return Some(filled);
            }
            let mark = self.reach.enter();
            let (var, start, stop) = (row.counter, row.start, row.stop);
            self.reach.pass(kernel, &Stmt::For { var, start, stop, body: Vec::new(), hint: Hint::default() });
            let has = self.reach.has(kernel, row.buffer, row.index);
            self.reach.leave(mark);
            if has {
                return Some(RowExists::Always);
            }
        }
        // The first iteration accesses all of them.
        match *nest {
            _ if !row.direct => None,
            Stmt::For { start, stop, .. } if in_bounds::runs(kernel, start, stop) => Some(RowExists::Always),
            Stmt::For { start, stop, .. } => {
                Some(RowExists::If(fold::call(&mut self.editor, Op::Lt, DType::I64, &[start, stop])))
            }
            Stmt::While { cond, .. } => Some(RowExists::If(cond)),
            _ => None,
        }
    }

    /// The fill of exactly this row, if only declarations stand between it and the nest.
    fn filled(&self, row: &DenseRow, first: ExprId, len: ExprId, before: &[Stmt]) -> Option<RowExists> {
        for (at, stmt) in before.iter().enumerate().rev() {
            match *stmt {
                Stmt::Let { value, .. } if !reads(self.editor.kernel(), value, row.buffer) => {}
                Stmt::Fill { buffer, start, len: filled, value } => {
                    let same = buffer == row.buffer && start == first && filled == len;
                    let constant = self.editor.as_constant(value).is_some();
                    return (same && constant).then_some(RowExists::Filled { at, value });
                }
                _ => return None,
            }
        }
        None
    }
}

fn reads(kernel: &Kernel, id: ExprId, buffer: BufferId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= matches!(expr, Expr::Load(other, _) if *other == buffer));
    found
}

/// True if only the dense loop of a nest accesses the buffer of its row.
fn is_only_touched_by(kernel: &Kernel, stmt: &Stmt, row: &DenseRow) -> bool {
    if matches!(stmt, Stmt::For { var, .. } if *var == row.counter) {
        return true;
    }
    let mut touched = matches!(stmt, Stmt::Search { buffer, .. } if *buffer == row.buffer);
    stmt.each_expr(|id| touched |= reads(kernel, id, row.buffer));
    !touched && stmt.blocks().flatten().all(|stmt| is_only_touched_by(kernel, stmt, row))
}

/// True if the nest reads positions or coordinates outside the dense loop: then the rows of other
/// operands are at arbitrary places.
fn follows_coordinates(kernel: &Kernel, nest: &Stmt, counter: VarId) -> bool {
    let mut found = false;
    nest.visit(&mut |stmt| {
        stmt.each_expr(|id| {
            kernel.visit_expr(id, &mut |expr| {
                if let Expr::Load(buffer, index) = expr {
                    found |= kernel.buffer(*buffer).elem.is_index() && !mentions(kernel, *index, counter);
                }
            });
        });
    });
    found
}

/// True if the work per element is small and uniform along the row: contiguous loads, no select of
/// addresses.
fn is_for_vectors(kernel: &Kernel, row: &DenseRow) -> bool {
    // Counted first: the checks below visit shared operands repeatedly.
    let small = |id: ExprId| cost::operations(kernel, id, OPERATIONS) <= OPERATIONS;
    if !small(row.index) || !small(row.value) || step(kernel, row.index, row.counter) != Some(1) {
        return false;
    }
    let mut fits = true;
    kernel.visit_expr(row.value, &mut |expr| match expr {
        Expr::Load(_, index) => fits &= matches!(step(kernel, *index, row.counter), Some(0 | 1)),
        Expr::Call(op, dtype, operands) => {
            fits &= !op.is_expensive(*dtype);
            let chosen = operands.iter().skip(evaluated_first(*op, *dtype, operands));
            chosen.for_each(|operand| fits &= !cost::has_load(kernel, *operand));
        }
        Expr::Vector(_) => fits = false,
        Expr::Const(_) | Expr::Var(_) => {}
    });
    fits
}

/// The stride of an index along the loop, if it is known.
fn step(kernel: &Kernel, id: ExprId, counter: VarId) -> Option<i64> {
    match kernel.expr(id) {
        Expr::Var(var) if *var == counter => Some(1),
        Expr::Call(op @ (Op::Add | Op::Sub), DType::I64, operands) => match operands[..] {
            [a, b] => {
                let (a, b) = (step(kernel, a, counter)?, step(kernel, b, counter)?);
                if *op == Op::Add { a.checked_add(b) } else { a.checked_sub(b) }
            }
            _ => None,
        },
        _ if mentions(kernel, id, counter) => None,
        _ => Some(0),
    }
}
