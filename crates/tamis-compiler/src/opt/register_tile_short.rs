//! Register tiling of short rows: a constant number of adjacent elements that every iteration
//! updates stays in registers.
//!
//! ```text
//! for q in pos[i]..pos[i + 1]                    tile = y[first], y[first + 1]
//!     for r in first..first + 2       becomes    for q in pos[i]..pos[i + 1]
//!         y[r] += a[q, r] * ...                      for r in first..first + 2
//!                                                        tile[r - first] += a[q, r] * ...
//!                                                y[first], y[first + 1] = tile
//! ```
//!
//! Nothing else in the loop may access the buffer. The row must exist: every iteration accesses all
//! of it, or it ends below a known length of the buffer; otherwise a copy of the original loop
//! runs. Every element sees the same operations in the same order, unless sums may be reassociated.

use super::effects::Effects;
use super::in_bounds::{self, InBounds, InBoundsPass};
use super::{Editor, Options, clone, fold};
use rustc_hash::FxHashMap;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::kernel::{Block, BufferId, Elem, Expr, ExprId, Hint, Kernel, LoopKind, Role, Stmt, VarId};
use tamis_ir::{DType, Kind};

/// The maximum number of elements of a row: loops over it are unrolled.
const LONGEST: i64 = 16;

/// The maximum number of statements of a loop that is versioned because its row may not exist.
const LARGEST: usize = 40;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = InBounds::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = ShortRowTiles { editor, reach };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct ShortRowTiles {
    editor: Editor,
    reach: InBounds,
}

/// A row that a loop updates.
#[derive(Clone, Copy, PartialEq)]
struct UpdatedRow {
    /// The index of its first element, in loop-invariant terms.
    first: ExprId,
    length: i64,
}

/// The accesses of a loop to a buffer.
struct BufferUses {
    /// The only row that is accessed; none if there is any other access.
    row: Option<UpdatedRow>,
    loads: bool,
    stores: bool,
}

/// A loop over a row.
#[derive(Clone, Copy)]
struct RowLoop {
    counter: VarId,
    start: ExprId,
    length: i64,
}

impl InBoundsPass for ShortRowTiles {
    fn parts(&mut self) -> (&Kernel, &mut InBounds) {
        (self.editor.kernel(), &mut self.reach)
    }

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            if let Some((buffer, row)) = self.find(&stmt) {
                self.tile_row(stmt, buffer, row, &mut out);
                continue;
            }
            self.inside(&mut stmt);
            out.push(stmt);
        }
        out
    }
}

impl ShortRowTiles {
    // Analysis

    /// A row that a loop updates repeatedly, if it accesses nothing else of the buffer.
    fn find(&mut self, stmt: &Stmt) -> Option<(BufferId, UpdatedRow)> {
        let Stmt::For { var, body, .. } = stmt else { return None };
        if !Effects::of(body).left.is_empty() {
            return None;
        }
        let mut found: FxHashMap<BufferId, BufferUses> = FxHashMap::default();
        self.collect_uses(body, &mut FxHashMap::default(), &mut Vec::new(), &mut found);
        let mut effects = Effects::of(body);
        effects.declared.push(*var);
        let kernel = self.editor.kernel();
        let mut rows: Vec<(BufferId, UpdatedRow)> = found
            .into_iter()
            .filter(|(_, found)| found.loads && found.stores)
            .filter_map(|(buffer, found)| Some((buffer, found.row?)))
            .filter(|(_, row)| !effects.touch(kernel, row.first))
            .collect();
        rows.sort_unstable_by_key(|(buffer, _)| *buffer);
        rows.into_iter().find(|(buffer, row)| {
            let known = self.reach.length(self.editor.kernel(), *buffer).is_some();
            self.row_exists(stmt, *buffer, *row) || known && statements(stmt) <= LARGEST
        })
    }

    fn collect_uses(
        &mut self,
        block: &Block,
        names: &mut FxHashMap<VarId, ExprId>,
        loops: &mut Vec<RowLoop>,
        found: &mut FxHashMap<BufferId, BufferUses>,
    ) {
        for stmt in block {
            let kernel = self.editor.kernel();
            let mut touched: Vec<(BufferId, Option<ExprId>, bool)> = Vec::new();
            match stmt {
                Stmt::Store { buffer, index, .. } => touched.push((*buffer, Some(*index), true)),
                Stmt::Search { buffer, .. } => touched.push((*buffer, None, false)),
                _ => {
                    touched.extend(stmt.writes().map(|buffer| (buffer, None, true)));
                    touched.extend(stmt.scans().map(|buffer| (buffer, None, true)));
                }
            }
            stmt.each_expr(|id| {
                kernel.visit_expr(id, &mut |expr| {
                    if let Expr::Load(buffer, index) = expr {
                        touched.push((*buffer, Some(*index), false));
                    }
                });
            });
            for (buffer, index, store) in touched {
                let info = self.editor.kernel().buffer(buffer);
                if !matches!(info.role, Role::Output | Role::Scratch) || !matches!(info.elem, Elem::Value(_)) {
                    continue;
                }
                let row = index.and_then(|index| self.row(index, names, loops));
                let known = found.entry(buffer).or_insert(BufferUses { row, loads: false, stores: false });
                known.row = known.row.filter(|known| row == Some(*known));
                known.loads |= !store;
                known.stores |= store;
            }
            match stmt {
                Stmt::Let { var, value } if !self.editor.kernel().var(*var).mutable => {
                    let value = self.meaning(*value, names);
                    names.insert(*var, value);
                }
                Stmt::For { var, start, stop, body, .. } => {
                    let length = self.short_trip_count(*start, *stop, names);
                    let start = self.meaning(*start, names);
                    loops.extend(length.map(|length| RowLoop { counter: *var, start, length }));
                    self.collect_uses(body, names, loops, found);
                    loops.truncate(loops.len() - usize::from(length.is_some()));
                    continue;
                }
                _ => {}
            }
            for inner in stmt.blocks() {
                self.collect_uses(inner, names, loops, found);
            }
        }
    }

    /// The row of an index whose elements an enclosing loop iterates over.
    fn row(&mut self, index: ExprId, names: &FxHashMap<VarId, ExprId>, loops: &[RowLoop]) -> Option<UpdatedRow> {
        let index = self.meaning(index, names);
        let over = self.loop_over_row(index, loops)?;
        if !is_sum(self.editor.kernel(), index, over.counter) {
            return None;
        }
        let first = self.meaning(index, &FxHashMap::from_iter([(over.counter, over.start)]));
        Some(UpdatedRow { first, length: over.length })
    }

    /// The innermost enclosing loop whose counter occurs in an index with expanded names.
    fn loop_over_row(&self, index: ExprId, loops: &[RowLoop]) -> Option<RowLoop> {
        loops.iter().rev().find(|over| mentions(self.editor.kernel(), index, over.counter)).copied()
    }

    /// The trip count of a loop, if it is a small constant.
    fn short_trip_count(&mut self, start: ExprId, stop: ExprId, names: &FxHashMap<VarId, ExprId>) -> Option<i64> {
        let (start, stop) = (self.meaning(start, names), self.meaning(stop, names));
        self.editor.distance(start, stop).filter(|length| (2..=LONGEST).contains(length))
    }

    fn meaning(&mut self, id: ExprId, names: &FxHashMap<VarId, ExprId>) -> ExprId {
        if names.is_empty() {
            return id;
        }
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => names.get(var).copied(),
            _ => None,
        })
    }

    // Transformation

    /// Emits the loop with its row in a tile.
    fn tile_row(&mut self, mut stmt: Stmt, buffer: BufferId, row: UpdatedRow, out: &mut Block) {
        let info = self.editor.buffer_of(buffer);
        let (name, elem) = (format!("{}_row", info.name.trim_end_matches("_values")), info.elem);
        let tile = self.editor.buffer(name, elem, Role::Tile(row.length as u32));
        let mut around: Block = Vec::new();
        let first = match self.editor.kernel().expr(row.first) {
            Expr::Const(_) | Expr::Var(_) => row.first,
            _ => {
                let var = self.editor.new_var("first", DType::I64, false);
                around.push(Stmt::Let { var, value: row.first });
                self.editor.get(var)
            }
        };
        let (guard, otherwise) = self.guard(&stmt, buffer, row);
        around.push(self.over(row.length, |pass, k| {
            let at = fold::call(&mut pass.editor, Op::Add, DType::I64, &[first, k]);
            let value = pass.editor.load(buffer, at);
            Stmt::Store { buffer: tile, index: k, value }
        }));
        for inner in stmt.blocks_mut() {
            self.redirect(inner, [buffer, tile], &mut FxHashMap::default(), &mut Vec::new());
            if !self.editor.strict {
                self.split_accumulator(inner, tile);
            }
        }
        around.push(stmt);
        around.push(self.over(row.length, |pass, k| {
            let at = fold::call(&mut pass.editor, Op::Add, DType::I64, &[first, k]);
            let value = pass.editor.load(tile, k);
            Stmt::Store { buffer, index: at, value }
        }));
        let effects = Effects::of(&around);
        self.reach.forget(&effects);
        match fold::truth(&self.editor, guard) {
            Some(true) => out.append(&mut around),
            Some(false) => out.extend(otherwise),
            None => out.push(Stmt::If { cond: guard, then: around, otherwise: otherwise.into_iter().collect() }),
        }
    }

    /// Builds a loop over the elements of a tile.
    fn over(&mut self, length: i64, body: impl FnOnce(&mut Self, ExprId) -> Stmt) -> Stmt {
        let var = self.editor.new_var("k", DType::I64, false);
        let (k, zero, length) = (self.editor.get(var), self.editor.int(0), self.editor.int(length));
        let body = vec![body(self, k)];
        Stmt::For { var, start: zero, stop: length, body, hint: Hint { kind: LoopKind::Unrolled, ..Hint::default() } }
    }

    /// True if all elements of a row exist if the loop has an iteration: each iteration accesses
    /// all of them.
    fn row_exists(&self, stmt: &Stmt, buffer: BufferId, row: UpdatedRow) -> bool {
        let Stmt::For { body, .. } = stmt else { return false };
        let mut covered = false;
        for inner in body {
            let Stmt::For { var, start, stop, body, .. } = inner else { continue };
            if self.editor.distance(*start, *stop) == Some(row.length) {
                in_bounds::certain_accesses(self.editor.kernel(), body, &mut |other, index| {
                    covered |= other == buffer && mentions(self.editor.kernel(), index, *var);
                });
            }
        }
        covered
    }

    /// The condition under which a row exists, and the code otherwise: none, if the loop has no
    /// iterations then.
    fn guard(&mut self, stmt: &Stmt, buffer: BufferId, row: UpdatedRow) -> (ExprId, Option<Stmt>) {
        let length = self.reach.length(self.editor.kernel(), buffer);
        match (stmt, length) {
            (Stmt::For { .. }, Some(length)) if !self.row_exists(stmt, buffer, row) => {
                let (zero, count) = (self.editor.int(0), self.editor.int(row.length));
                let end = fold::call(&mut self.editor, Op::Add, DType::I64, &[row.first, count]);
                let above = fold::call(&mut self.editor, Op::Ge, DType::I64, &[row.first, zero]);
                let below = fold::call(&mut self.editor, Op::Le, DType::I64, &[end, length]);
                let inside = fold::call(&mut self.editor, Op::And, DType::Bool, &[above, below]);
                (inside, Some(clone::copy(&mut self.editor, stmt, &mut FxHashMap::default())))
            }
            (Stmt::For { start, stop, .. }, _) => {
                (fold::call(&mut self.editor, Op::Lt, DType::I64, &[*start, *stop]), None)
            }
            _ => (self.editor.constant(Value::Bool(true)), None),
        }
    }

    /// Redirects statements from a row to its tile. Several loops may iterate over one row (`y[j]
    /// += y[k]`), so each access is translated by the counter in its own index.
    fn redirect(
        &mut self,
        block: &mut Block,
        [buffer, tile]: [BufferId; 2],
        names: &mut FxHashMap<VarId, ExprId>,
        loops: &mut Vec<RowLoop>,
    ) {
        for stmt in block {
            let mut places: FxHashMap<ExprId, ExprId> = FxHashMap::default();
            for index in indices(self.editor.kernel(), stmt, buffer) {
                let meaning = self.meaning(index, names);
                // `collect_uses` has found a loop for every index.
                let Some(over) = self.loop_over_row(meaning, loops) else { continue };
                let counter = self.editor.get(over.counter);
                let place = fold::call(&mut self.editor, Op::Sub, DType::I64, &[counter, over.start]);
                places.insert(index, place);
            }
            stmt.map_exprs(|id| {
                fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
                    Expr::Load(other, index) if *other == buffer => {
                        places.get(index).copied().map(|place| editor.load(tile, place))
                    }
                    _ => None,
                })
            });
            if let Stmt::Store { buffer: other, index, .. } = stmt
                && *other == buffer
                && let Some(place) = places.get(index)
            {
                (*other, *index) = (tile, *place);
            }
            match stmt {
                Stmt::Let { var, value } if !self.editor.kernel().var(*var).mutable => {
                    let value = self.meaning(*value, names);
                    names.insert(*var, value);
                }
                Stmt::For { var, start, stop, body, hint } => {
                    let length = self.short_trip_count(*start, *stop, names);
                    if length.is_some() && self.is_row(body, buffer, *var) {
                        hint.kind = LoopKind::Unrolled;
                    }
                    loops.extend(length.map(|length| RowLoop { counter: *var, start: *start, length }));
                    self.redirect(body, [buffer, tile], names, loops);
                    loops.truncate(loops.len() - usize::from(length.is_some()));
                    continue;
                }
                _ => {}
            }
            stmt.blocks_mut().for_each(|block| self.redirect(block, [buffer, tile], names, loops));
        }
    }

    /// Splits a reduction: each iteration sums into a fresh accumulator and adds it to the tile
    /// once, which shortens the dependence chain: `sum = tile[k]; for j { sum += e }; tile[k] =
    /// sum` becomes `sum = 0; for j { sum += e }; tile[k] += sum`.
    fn split_accumulator(&mut self, block: &mut Block, tile: BufferId) {
        block.iter_mut().flat_map(|stmt| stmt.blocks_mut()).for_each(|inner| self.split_accumulator(inner, tile));
        for first in 0..block.len() {
            let Stmt::Let { var, value } = block[first] else { continue };
            let kernel = self.editor.kernel();
            let dtype = kernel.var(var).dtype;
            let (Expr::Load(from, at), Kind::Float) = (kernel.expr(value).clone(), dtype.kind()) else { continue };
            let stores = |stmt: &Stmt| match stmt {
                Stmt::Store { buffer, index, value } => {
                    *buffer == tile && *index == at && *kernel.expr(*value) == Expr::Var(var)
                }
                _ => false,
            };
            let Some(last) = block.iter().position(stores).filter(|last| from == tile && first < *last) else {
                continue;
            };
            let only_added = block[first + 1..last].iter().all(|stmt| is_only_added_to(kernel, stmt, var, tile));
            if !only_added || block[last + 1..].iter().any(|stmt| uses(kernel, stmt, var)) {
                continue;
            }
            let nothing = self.editor.constant(Value::zero(dtype));
            let (before, sum) = (self.editor.load(tile, at), self.editor.get(var));
            let total = fold::call(&mut self.editor, Op::Add, dtype, &[before, sum]);
            block[first] = Stmt::Let { var, value: nothing };
            block[last] = Stmt::Store { buffer: tile, index: at, value: total };
        }
    }

    /// True if a loop iterates over the row: its counter occurs in an index of the buffer.
    fn is_row(&self, body: &Block, buffer: BufferId, counter: VarId) -> bool {
        let kernel = self.editor.kernel();
        let mut names: Vec<VarId> = vec![counter];
        let mut found = false;
        for stmt in body {
            stmt.visit(&mut |stmt| {
                if let Stmt::Let { var, value } = stmt
                    && names.iter().any(|name| mentions(kernel, *value, *name))
                {
                    names.push(*var);
                }
                let mut see = |index: ExprId| found |= names.iter().any(|name| mentions(kernel, index, *name));
                if let Stmt::Store { buffer: other, index, .. } = stmt
                    && *other == buffer
                {
                    see(*index);
                }
                stmt.each_expr(|id| {
                    kernel.visit_expr(id, &mut |expr| {
                        if let Expr::Load(other, index) = expr
                            && *other == buffer
                        {
                            see(*index);
                        }
                    });
                });
            });
        }
        found
    }
}

/// True if a statement only adds to a variable and does not access the tile.
fn is_only_added_to(kernel: &Kernel, stmt: &Stmt, var: VarId, tile: BufferId) -> bool {
    let mut fine = true;
    stmt.visit(&mut |stmt| {
        fine &= match stmt {
            Stmt::Assign { var: other, value } if *other == var => match kernel.expr(*value) {
                Expr::Call(Op::Add, dtype, terms) => {
                    *dtype == kernel.var(var).dtype
                        && *kernel.expr(terms[0]) == Expr::Var(var)
                        && terms[1..].iter().all(|term| !mentions(kernel, *term, var))
                }
                _ => false,
            },
            Stmt::Store { buffer, .. } if *buffer == tile => false,
            other => {
                let mut read = false;
                other.each_expr(|id| read |= mentions(kernel, id, var));
                !read
            }
        };
    });
    fine
}

fn uses(kernel: &Kernel, stmt: &Stmt, var: VarId) -> bool {
    let mut found = false;
    stmt.visit(&mut |stmt| {
        stmt.each_expr(|id| found |= mentions(kernel, id, var));
        found |= matches!(stmt, Stmt::Assign { var: other, .. } if *other == var);
    });
    found
}

/// The indices at which a statement, without nested blocks, loads and stores elements of a buffer.
fn indices(kernel: &Kernel, stmt: &Stmt, buffer: BufferId) -> Vec<ExprId> {
    let mut found = Vec::new();
    if let Stmt::Store { buffer: other, index, .. } = stmt
        && *other == buffer
    {
        found.push(*index);
    }
    stmt.each_expr(|id| {
        kernel.visit_expr(id, &mut |expr| {
            if let Expr::Load(other, index) = expr
                && *other == buffer
            {
                found.push(*index);
            }
        });
    });
    found
}

fn statements(stmt: &Stmt) -> usize {
    let mut count = 0;
    stmt.visit(&mut |_| count += 1);
    count
}

/// True if an index is the counter plus an expression without it.
fn is_sum(kernel: &Kernel, id: ExprId, counter: VarId) -> bool {
    match kernel.expr(id) {
        Expr::Var(var) => *var == counter,
        Expr::Call(Op::Add, DType::I64, operands) => match operands[..] {
            [a, b] => match (mentions(kernel, a, counter), mentions(kernel, b, counter)) {
                (true, false) => is_sum(kernel, a, counter),
                (false, true) => is_sum(kernel, b, counter),
                _ => false,
            },
            _ => false,
        },
        Expr::Call(Op::Sub, DType::I64, operands) => match operands[..] {
            [a, b] => !mentions(kernel, b, counter) && is_sum(kernel, a, counter),
            _ => false,
        },
        _ => false,
    }
}

fn mentions(kernel: &Kernel, id: ExprId, var: VarId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= *expr == Expr::Var(var));
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    /// A loop over positions that adds to two elements from `first` on.
    fn rows(make: &mut Make, first: ExprId, when: bool) {
        let (zero, m, two) = (make.int(0), make.m, make.int(2));
        make.count("q", zero, m, |make, q| {
            let end = make.b.add(first, two);
            make.count("i", first, end, |make, i| {
                let x = make.load(make.x, q);
                let cond = make.call(Op::Lt, &[i, q]);
                match when {
                    true => make.when(cond, |make| make.add_to(make.y, i, x)),
                    false => make.add_to(make.y, i, x),
                }
            });
        });
    }

    #[test]
    fn short_rows_live_in_tiles() {
        let mut make = Make::new();
        let first = make.n;
        rows(&mut make, first, false);
        let expected = [
            "if 0 < m",
            "    for k in 0..2 unroll",
            "        y_row[k] = y[n + k]",
            "    for q in 0..m",
            "        for i in n..n + 2 unroll",
            "            y_row[i - n] = y_row[i - n] + x[q]",
            "    for k_2 in 0..2 unroll",
            "        y[n + k_2] = y_row[k_2]",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn elements_that_may_not_exist_are_guarded() {
        let mut make = Make::new();
        let (first, length) = (make.n, make.m);
        rows(&mut make, first, true);
        assert_eq!(after(&[run], make)[0], "for q in 0..m", "nothing is known of the length");
        let mut make = Make::new();
        make.b.emit(Stmt::Grow { buffer: make.y, len: length, fill: None });
        rows(&mut make, first, true);
        let text = after(&[run], make);
        assert_eq!(text[1], "if (n >= 0) and ((n + 2) <= m)", "{text:#?}");
        let otherwise = text.iter().position(|line| line == "else").unwrap_or_default();
        assert!(text[otherwise + 1..].iter().all(|line| !line.contains("y_row")), "{text:#?}");
        assert!(text[otherwise..].iter().any(|line| line.contains("y[i_2] = y[i_2] + x[q_2]")), "{text:#?}");
    }

    #[test]
    fn two_loops_over_one_row_keep_their_own_elements() {
        let mut make = Make::new();
        let (zero, m, three) = (make.int(0), make.m, make.int(3));
        make.b.emit(Stmt::Grow { buffer: make.y, len: three, fill: None });
        make.count("q", zero, m, |make, q| {
            make.count("j", zero, three, |make, j| {
                make.count("k", zero, three, |make, k| {
                    let x = make.load(make.x, q);
                    make.add_to(make.y, j, x);
                    let other = make.load(make.y, j);
                    make.add_to(make.y, k, other);
                });
            });
        });
        let text = after(&[run], make);
        let sums = text.iter().map(|line| line.trim()).filter(|line| line.contains(" + ") && line.starts_with("y_row"));
        assert_eq!(
            sums.collect::<Vec<&str>>(),
            ["y_row[j] = y_row[j] + x[q]", "y_row[k] = y_row[k] + y_row[j]"],
            "{text:#?}"
        );
    }

    #[test]
    fn rows_that_move_or_are_touched_otherwise_stay() {
        let mut make = Make::new();
        let (zero, m, two) = (make.int(0), make.m, make.int(2));
        make.count("q", zero, m, |make, q| {
            let end = make.b.add(q, two);
            make.count("i", q, end, |make, i| {
                let x = make.load(make.x, q);
                make.add_to(make.y, i, x);
            });
        });
        make.count("q", zero, m, |make, q| {
            let end = make.b.add(make.n, two);
            make.count("i", make.n, end, |make, i| {
                let other = make.load(make.y, q);
                make.add_to(make.y, i, other);
            });
        });
        let text = after(&[run], make);
        assert!(text.iter().all(|line| !line.contains("y_row")), "{text:#?}");
    }
}
