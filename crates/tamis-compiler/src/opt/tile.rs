//! Register tiles: a row of a result that a sparse loop adds to again and again stays in vector registers meanwhile.
//!
//! ```text
//! for q in pos[i]..pos[i + 1]                  for tile in 0..n / T
//!     let j = crd[q]                               T elements of y[i*n + tile*T ..] into a tile
//!     for k in 0..n                   becomes      for q in pos[i]..pos[i + 1]
//!         y[i*n + k] += a[q] * b[j*n + k]              let j = crd[q]
//!                                                      add T elements of b to the tile
//!                                                  the tile into y
//!                                              and the same loops as before over the n % T that are left
//! ```
//!
//! The outermost loops around the dense one are taken that compute nothing but it, and with which the row does not
//! change. Every element sees the same operations in the same order. Rows are walked in strips, which is no loss if they
//! are those of coordinates (they lie anywhere) but would be for a loop over consecutive ones, which is left alone.

use super::effects::Effects;
use super::reach::{self, Reach};
use super::{Editor, Options, cost, fold};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::rewrite::evaluated_first;
use tamis_ir::kernel::{Block, BufferId, Elem, Expr, ExprId, Hint, Kernel, Role, Stmt, VarId};

/// Bytes of a tile: half of the vector registers that processors have, so that operands find room beside it.
const BYTES: usize = 256;

/// Elements of a tile at most; loops over tiles are unrolled.
const MOST: usize = 64;

/// Operations on one element at most, since there are as many copies of them as a tile has vectors.
const OPERATIONS: usize = 24;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = Reach::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Tile { editor, reach };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Tile {
    editor: Editor,
    reach: Reach,
}

/// The dense loop inside a nest, and what of it is needed before the nest.
struct Row {
    buffer: BufferId,
    /// The dense loop.
    counter: VarId,
    start: ExprId,
    stop: ExprId,
    /// What one turn stores, without names.
    value: ExprId,
    /// Where it stores, in terms of the counter and of what the nest does not change.
    index: ExprId,
    /// Whether the dense loop is all that the outermost loop does, so that a first turn reaches it.
    direct: bool,
}

/// Why the elements that a tile is loaded from are there.
enum There {
    /// They are, whatever the nest does.
    Always,
    /// They have just been filled with this value, by a statement before the nest.
    Filled { at: usize, value: ExprId },
    /// They are accessed if this holds.
    If(ExprId),
}

impl Tile {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            if matches!(stmt, Stmt::For { .. } | Stmt::While { .. })
                && let Some((row, there)) = self.find(&stmt, &out)
            {
                let effects = Effects::of(std::slice::from_ref(&stmt));
                self.tile(stmt, &row, there, &effects, &mut out);
                self.reach.forget(&effects);
                continue;
            }
            self.reach.pass(self.editor.kernel(), &stmt);
            let again = matches!(stmt, Stmt::For { .. } | Stmt::While { .. });
            for inner in stmt.blocks_mut() {
                let effects = Effects::of(inner);
                if again {
                    self.reach.forget(&effects);
                }
                let mark = self.reach.enter();
                *inner = self.block(std::mem::take(inner));
                self.reach.leave(mark);
                self.reach.forget(&effects);
            }
            out.push(stmt);
        }
        out
    }

    // Finding

    /// The row that a nest of loops changes, if it does nothing else and a tile pays.
    fn find(&mut self, nest: &Stmt, before: &[Stmt]) -> Option<(Row, There)> {
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
            && stop.saturating_sub(start) < self.size(row.buffer) as i64
        {
            return None;
        }
        let there = self.there(nest, &row, first, before)?;
        Some((row, there))
    }

    /// The dense loop of a nest, all of whose other statements are pure.
    fn row(&mut self, nest: &Stmt) -> Option<Row> {
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
    ) -> Option<Row> {
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
        // The element itself is used, and no other.
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
        // Without names, for these may be of the nest. What they stand for is compared with what the nest changes.
        let [index, start, stop] = [place, start, stop].map(|id| self.resolved(id, names));
        Some(Row { buffer, counter, start, stop, value, index, direct: depth == 1 })
    }

    /// Why the elements of a row are there before the nest runs, with what is read to know where they are.
    fn there(&mut self, nest: &Stmt, row: &Row, first: ExprId, before: &[Stmt]) -> Option<There> {
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
                return Some(There::Always);
            }
        }
        // A first turn accesses all of them.
        match *nest {
            _ if !row.direct => None,
            Stmt::For { start, stop, .. } if reach::runs(kernel, start, stop) => Some(There::Always),
            Stmt::For { start, stop, .. } => {
                Some(There::If(fold::call(&mut self.editor, Op::Lt, DType::I64, &[start, stop])))
            }
            Stmt::While { cond, .. } => Some(There::If(cond)),
            _ => None,
        }
    }

    /// The fill of exactly this row, if there are only declarations between it and the nest.
    fn filled(&self, row: &Row, first: ExprId, len: ExprId, before: &[Stmt]) -> Option<There> {
        for (at, stmt) in before.iter().enumerate().rev() {
            match *stmt {
                Stmt::Let { value, .. } if !reads(self.editor.kernel(), value, row.buffer) => {}
                Stmt::Fill { buffer, start, len: filled, value } => {
                    let same = buffer == row.buffer && start == first && filled == len;
                    let constant = self.editor.as_constant(value).is_some();
                    return (same && constant).then_some(There::Filled { at, value });
                }
                _ => return None,
            }
        }
        None
    }

    // Rewriting

    fn tile(&mut self, nest: Stmt, row: &Row, there: There, effects: &Effects, out: &mut Block) {
        let size = self.size(row.buffer);
        let filled = match &there {
            There::Filled { at, value } => Some((out.remove(*at), *value)),
            _ => None,
        };
        let declared = &effects.declared;
        let outside: Vec<VarId> = effects.assigned.iter().copied().filter(|var| !declared.contains(var)).collect();
        let mut around = Vec::new();

        // How many tiles, and where the rest begins.
        let (zero, one, width) = (self.editor.int(0), self.editor.int(1), self.editor.int(i64::from(size)));
        let length = self.length(row);
        let length = fold::call(&mut self.editor, Op::Max, DType::I64, &[length, zero]);
        let tiles = fold::call(&mut self.editor, Op::FloorDiv, DType::I64, &[length, width]);
        let tiles = self.named("tiles", tiles, &mut around);
        let tiled = fold::call(&mut self.editor, Op::Mul, DType::I64, &[tiles, width]);
        let rest = fold::call(&mut self.editor, Op::Add, DType::I64, &[row.start, tiled]);

        // Each run of the nest begins with the variables as they are now.
        let mut reset = Vec::new();
        for var in outside {
            let info = self.editor.kernel().var(var);
            let (name, dtype) = (format!("{}_before", info.name), info.dtype);
            let before = self.editor.new_var(name, dtype, false);
            let value = self.editor.get(var);
            around.push(Stmt::Let { var: before, value });
            let value = self.editor.get(before);
            reset.push(Stmt::Assign { var, value });
        }

        let mut again = FxHashMap::default();
        let mut left = reset.clone();
        let mut remainder = fold::call(&mut self.editor, Op::Lt, DType::I64, &[rest, row.stop]);
        if !reset.is_empty() {
            // Without a tile, the nest runs for what else it changes.
            let none = fold::call(&mut self.editor, Op::Lt, DType::I64, &[tiles, one]);
            remainder = fold::call(&mut self.editor, Op::Or, DType::Bool, &[remainder, none]);
        }
        if let Some((Stmt::Fill { buffer, start, len, value }, _)) = filled {
            let start = fold::call(&mut self.editor, Op::Add, DType::I64, &[start, tiled]);
            let len = fold::call(&mut self.editor, Op::Sub, DType::I64, &[len, tiled]);
            left.push(Stmt::Fill { buffer, start, len, value });
        }
        let copied = self.copy(&nest, row.counter, rest, &mut again);
        left.push(copied);

        let tile = self.tiles(nest, row, size, tiles, filled_value(&filled), reset);
        around.push(tile);
        match fold::truth(&self.editor, remainder) {
            Some(true) => around.append(&mut left),
            Some(false) => {}
            None => around.push(Stmt::If { cond: remainder, then: left, otherwise: Vec::new() }),
        }
        match there {
            There::If(cond) => out.push(Stmt::If { cond, then: around, otherwise: Vec::new() }),
            There::Always | There::Filled { .. } => out.append(&mut around),
        }
    }

    /// The loop over tiles: each is loaded, changed by the nest, and stored.
    fn tiles(
        &mut self,
        mut nest: Stmt,
        row: &Row,
        size: u32,
        tiles: ExprId,
        filled: Option<ExprId>,
        mut body: Block,
    ) -> Stmt {
        let info = self.editor.buffer_of(row.buffer);
        let (name, elem) = (format!("{}_tile", info.name.trim_end_matches("_values")), info.elem);
        let tile = self.editor.buffer(name, elem, Role::Tile(size));
        let var = self.editor.new_var("tile", DType::I64, false);
        let (zero, width) = (self.editor.int(0), self.editor.int(i64::from(size)));
        let number = self.editor.get(var);
        let offset = fold::call(&mut self.editor, Op::Mul, DType::I64, &[number, width]);
        let offset = fold::call(&mut self.editor, Op::Add, DType::I64, &[row.start, offset]);
        let offset = self.named("first", offset, &mut body);

        let over = |var: VarId, stmt: Stmt| Stmt::For {
            var,
            start: zero,
            stop: width,
            body: vec![stmt],
            hint: Hint { vectorise: false, unroll: true },
        };
        let name = self.editor.kernel().var(row.counter).name.clone();
        let loading = self.editor.new_var(name.clone(), DType::I64, false);
        let index = self.editor.get(loading);
        let value = match filled {
            Some(value) => value,
            None => {
                let place = self.place(row, offset, index);
                self.editor.load(row.buffer, place)
            }
        };
        body.push(over(loading, Stmt::Store { buffer: tile, index, value }));

        let index = self.editor.get(row.counter);
        let element = self.editor.load(tile, index);
        let value = self.shifted(row.value, row, offset, index, element);
        let changed = over(row.counter, Stmt::Store { buffer: tile, index, value });
        replace(&mut nest, row.counter, changed);
        body.push(nest);

        let storing = self.editor.new_var(name, DType::I64, false);
        let index = self.editor.get(storing);
        let place = self.place(row, offset, index);
        let value = self.editor.load(tile, index);
        body.push(over(storing, Stmt::Store { buffer: row.buffer, index: place, value }));
        Stmt::For { var, start: zero, stop: tiles, body, hint: Hint::default() }
    }

    /// A statement again, with variables of its own, and the dense loop from another start on.
    fn copy(&mut self, stmt: &Stmt, dense: VarId, from: ExprId, again: &mut FxHashMap<VarId, VarId>) -> Stmt {
        let mut copy = stmt.clone();
        copy.map_exprs(|id| self.renamed(id, again));
        if let Some(var) = stmt.declares() {
            let info = self.editor.kernel().var(var);
            let (name, dtype, mutable) = (info.name.clone(), info.dtype, info.mutable);
            again.insert(var, self.editor.new_var(name, dtype, mutable));
        }
        match &mut copy {
            Stmt::Let { var, .. } | Stmt::Assign { var, .. } | Stmt::Search { var, .. } => {
                *var = again.get(var).copied().unwrap_or(*var);
            }
            Stmt::For { var, start, .. } => {
                if *var == dense {
                    *start = from;
                }
                *var = again.get(var).copied().unwrap_or(*var);
            }
            _ => {}
        }
        for block in copy.blocks_mut() {
            *block = block.iter().map(|stmt| self.copy(stmt, dense, from, again)).collect();
        }
        copy
    }

    // Expressions

    /// Elements of a tile.
    fn size(&self, buffer: BufferId) -> u32 {
        (BYTES / self.editor.buffer_of(buffer).elem.size().max(1)).min(MOST) as u32
    }

    fn int(&self, id: ExprId) -> Option<i64> {
        self.editor.as_constant(id).and_then(|value| value.as_i64())
    }

    /// How many elements a row has, or a negative number.
    fn length(&mut self, row: &Row) -> ExprId {
        fold::call(&mut self.editor, Op::Sub, DType::I64, &[row.stop, row.start])
    }

    fn named(&mut self, name: &str, value: ExprId, out: &mut Block) -> ExprId {
        if matches!(self.editor.kernel().expr(value), Expr::Const(_) | Expr::Var(_)) {
            return value;
        }
        let var = self.editor.new_var(name, DType::I64, false);
        out.push(Stmt::Let { var, value });
        self.editor.get(var)
    }

    /// An expression with names replaced by what they stand for.
    fn resolved(&mut self, id: ExprId, names: &FxHashMap<VarId, ExprId>) -> ExprId {
        if names.is_empty() {
            return id;
        }
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => names.get(var).copied(),
            _ => None,
        })
    }

    fn renamed(&mut self, id: ExprId, again: &FxHashMap<VarId, VarId>) -> ExprId {
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => again.get(var).copied().map(|var| editor.get(var)),
            _ => None,
        })
    }

    /// An expression with a value in place of the counter.
    fn at(&mut self, id: ExprId, counter: VarId, value: ExprId) -> ExprId {
        let names = FxHashMap::from_iter([(counter, value)]);
        self.resolved(id, &names)
    }

    /// Where an element of a tile is in its row.
    fn place(&mut self, row: &Row, offset: ExprId, index: ExprId) -> ExprId {
        // An index that reads the row is not one that the nest leaves alone, so nothing is replaced.
        self.shifted(row.index, row, offset, index, index)
    }

    /// An expression with `offset + index` in place of the counter, and an element of a tile in place of that of the
    /// row. In a sum, what does not change along the row is added first.
    fn shifted(&mut self, id: ExprId, row: &Row, offset: ExprId, index: ExprId, element: ExprId) -> ExprId {
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Load(buffer, _) if *buffer == row.buffer => Some(element),
            Expr::Var(var) if *var == row.counter => Some(fold::call(editor, Op::Add, DType::I64, &[offset, index])),
            Expr::Call(Op::Add, DType::I64, sum) => match sum[..] {
                [base, last] if is_counted(editor.kernel(), base, last, row.counter) => {
                    let base = fold::call(editor, Op::Add, DType::I64, &[base, offset]);
                    Some(fold::call(editor, Op::Add, DType::I64, &[base, index]))
                }
                _ => None,
            },
            _ => None,
        })
    }
}

/// Whether a sum is one of the counter and of something without it, all of it positions.
fn is_counted(kernel: &Kernel, base: ExprId, last: ExprId, counter: VarId) -> bool {
    *kernel.expr(last) == Expr::Var(counter)
        && kernel.exprs.dtype(base) == DType::I64
        && !mentions(kernel, base, counter)
        && !cost::has_load(kernel, base)
}

fn filled_value(filled: &Option<(Stmt, ExprId)>) -> Option<ExprId> {
    filled.as_ref().map(|(_, value)| *value)
}

/// Puts another loop in the place of the one with this counter.
fn replace(stmt: &mut Stmt, counter: VarId, new: Stmt) {
    if matches!(stmt, Stmt::For { var, .. } if *var == counter) {
        *stmt = new;
        return;
    }
    let inner = stmt.blocks_mut().flatten().find(|stmt| matches!(stmt, Stmt::For { .. } | Stmt::While { .. }));
    if let Some(inner) = inner {
        replace(inner, counter, new);
    }
}

fn reads(kernel: &Kernel, id: ExprId, buffer: BufferId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= matches!(expr, Expr::Load(other, _) if *other == buffer));
    found
}

fn mentions(kernel: &Kernel, id: ExprId, var: VarId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= *expr == Expr::Var(var));
    found
}

/// Whether only the dense loop of a nest has to do with the buffer of its row.
fn is_only_touched_by(kernel: &Kernel, stmt: &Stmt, row: &Row) -> bool {
    if matches!(stmt, Stmt::For { var, .. } if *var == row.counter) {
        return true;
    }
    let mut touched = matches!(stmt, Stmt::Search { buffer, .. } if *buffer == row.buffer);
    stmt.each_expr(|id| touched |= reads(kernel, id, row.buffer));
    !touched && stmt.blocks().flatten().all(|stmt| is_only_touched_by(kernel, stmt, row))
}

/// Whether positions or coordinates are read outside the dense loop: the rows of other operands lie anywhere.
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

/// Whether the work on one element is little, and the same for its neighbours: elements side by side, no choice of what
/// is read.
fn is_for_vectors(kernel: &Kernel, row: &Row) -> bool {
    // Counted first: nothing else here looks at shared operands only once.
    let small = |id: ExprId| cost::operations(kernel, id, OPERATIONS) <= OPERATIONS;
    if !small(row.index) || !small(row.value) || step(kernel, row.index, row.counter) != Some(1) {
        return false;
    }
    let mut fits = true;
    kernel.visit_expr(row.value, &mut |expr| match expr {
        Expr::Load(_, index) => fits &= matches!(step(kernel, *index, row.counter), Some(0 | 1)),
        Expr::Call(op, dtype, operands) => {
            fits &= !cost::is_expensive(*op, *dtype);
            let chosen = operands.iter().skip(evaluated_first(*op, *dtype, operands));
            chosen.for_each(|operand| fits &= !cost::has_load(kernel, *operand));
        }
        Expr::Const(_) | Expr::Var(_) => {}
    });
    fits
}

/// How much an index grows from one turn to the next, if that is known.
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

#[cfg(test)]
mod tests;
