//! Register tiling: a row of a result that a sparse loop updates repeatedly stays in vector
//! registers, one tile at a time.
//!
//! ```text
//! for q in pos[i]..pos[i + 1]                  for tile in 0..n / T
//!     let j = crd[q]                               T elements of y[i*n + tile*T ..] into a tile
//!     for k in 0..n                   becomes      for q in pos[i]..pos[i + 1]
//!         y[i*n + k] += a[q] * b[j*n + k]              let j = crd[q]
//!                                                      add T elements of b to the tile
//!                                                  the tile into y
//!                                              and the same for the remainder n % T, in tiles of
//!                                                  half the size, the last one partial
//! ```
//!
//! In: a nest whose innermost loop is dense and updates one row, and whose other loops compute
//! nothing else; the row is invariant in the nest. Out: the same operations on every element, in
//! the same order. The nest runs once per tile, so operand rows are read in strips: that costs
//! nothing for rows at arbitrary coordinates, but loses locality for consecutive rows, so such
//! loops are left alone.

mod find;

use super::effects::Effects;
use super::in_bounds::{InBounds, InBoundsPass};
use super::{Editor, Options, clone, cost, fold};
use find::{DenseRow, RowExists};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Hint, Kernel, LoopKind, Origin, Role, Stmt, VarId};

/// Bytes of a tile: half of the vector register file, so that operands fit beside it.
const BYTES: usize = 256;

/// A remainder tile is emitted only if it has at least this many elements.
const FEWEST: u32 = 16;

/// The maximum number of elements of a tile; loops over a tile are unrolled.
const MOST: usize = 64;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = InBounds::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Tile { editor, reach };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Tile {
    editor: Editor,
    reach: InBounds,
}

/// The division of a row into tiles.
struct Tiles {
    size: u32,
    count: ExprId,
    /// True if every tile is full.
    whole: bool,
    /// The names of the number of tiles and of the loop over them.
    names: (&'static str, &'static str),
}

impl InBoundsPass for Tile {
    fn parts(&mut self) -> (&Kernel, &mut InBounds) {
        (self.editor.kernel(), &mut self.reach)
    }

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
            self.inside(&mut stmt);
            out.push(stmt);
        }
        out
    }
}

impl Tile {
    /// Emits the tiled nest.
    fn tile(&mut self, nest: Stmt, row: &DenseRow, there: RowExists, effects: &Effects, out: &mut Block) {
        let size = self.size(row.buffer);
        let filled = match there {
            RowExists::Filled { at, value } => {
                out.remove(at);
                Some(value)
            }
            _ => None,
        };
        let mut around = Vec::new();

        // The number of tiles and the start of the remainder.
        let (zero, one, width) = (self.editor.int(0), self.editor.int(1), self.editor.int(i64::from(size)));
        let length = self.length(row);
        let length = fold::call(&mut self.editor, Op::Max, DType::I64, &[length, zero]);
        let tiles = fold::call(&mut self.editor, Op::FloorDiv, DType::I64, &[length, width]);
        let tiles = self.named("tiles", tiles, &mut around);
        let tiled = fold::call(&mut self.editor, Op::Mul, DType::I64, &[tiles, width]);
        let rest = fold::call(&mut self.editor, Op::Add, DType::I64, &[row.start, tiled]);

        let reset = self.reset(effects, &mut around);
        let mut left = Vec::new();
        let mut remainder = fold::call(&mut self.editor, Op::Lt, DType::I64, &[rest, row.stop]);
        if !reset.is_empty() {
            // If there is no tile, the nest still runs for its other side effects.
            let none = fold::call(&mut self.editor, Op::Lt, DType::I64, &[tiles, one]);
            remainder = fold::call(&mut self.editor, Op::Or, DType::Bool, &[remainder, none]);
        }
        if fold::truth(&self.editor, remainder) != Some(false) {
            left = self.remainder_tiles(&nest, row, (rest, size), filled, &reset);
        }
        if self.int(tiles) != Some(0) {
            let names = ("tile", "tile");
            let tile = self.tiles(nest, row, Tiles { size, count: tiles, whole: true, names }, filled, reset);
            around.extend(tile);
        }
        match fold::truth(&self.editor, remainder) {
            Some(true) => around.append(&mut left),
            Some(false) => {}
            None => around.push(Stmt::If { cond: remainder, then: left, otherwise: Vec::new() }),
        }
        match there {
            RowExists::If(cond) => out.push(Stmt::If { cond, then: around, otherwise: Vec::new() }),
            RowExists::Always | RowExists::Filled { .. } => out.append(&mut around),
        }
    }

    /// Saves the variables that the nest assigns; every copy of the nest starts from the saved
    /// values. Returns the assignments that restore them.
    fn reset(&mut self, effects: &Effects, around: &mut Block) -> Block {
        let declared = &effects.declared;
        let outside: Vec<VarId> = effects.assigned.iter().copied().filter(|var| !declared.contains(var)).collect();
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
        reset
    }

    /// The tiles of the remainder, from `rest` on, in tiles of half the `size`; a short remainder
    /// gets a tile of a quarter.
    fn remainder_tiles(
        &mut self,
        nest: &Stmt,
        row: &DenseRow,
        (rest, size): (ExprId, u32),
        filled: Option<ExprId>,
        reset: &Block,
    ) -> Block {
        let one = self.editor.int(1);
        let (copy, remainder) = self.again(nest, row, rest);
        let left_over = self.length(&remainder);
        let half = self.half(&remainder, size);
        let width = self.editor.int(i64::from(half));
        let more = self.editor.int(i64::from(half) - 1);
        let length = self.length(&remainder);
        let length = fold::call(&mut self.editor, Op::Add, DType::I64, &[length, more]);
        let mut parts = fold::call(&mut self.editor, Op::FloorDiv, DType::I64, &[length, width]);
        if !reset.is_empty() {
            parts = fold::call(&mut self.editor, Op::Max, DType::I64, &[parts, one]);
        }
        let tiles = Tiles { size: half, count: parts, whole: false, names: ("rest", "part") };
        let part = self.tiles(copy, &remainder, tiles, filled, reset.clone());
        if self.int(left_over).is_some() || half < FEWEST {
            return part;
        }
        // The remainder is often so short that half as many registers hold it.
        let (copy, remainder) = self.again(nest, row, rest);
        let width = self.editor.int(i64::from(half / 2));
        let cond = fold::call(&mut self.editor, Op::Le, DType::I64, &[left_over, width]);
        let short = Tiles { size: half / 2, count: one, whole: false, names: ("few", "part") };
        let short = self.tiles(copy, &remainder, short, filled, reset.clone());
        vec![Stmt::If { cond, then: short, otherwise: part }]
    }

    /// A copy of the nest with fresh variables, whose row starts at another offset.
    fn again(&mut self, nest: &Stmt, row: &DenseRow, start: ExprId) -> (Stmt, DenseRow) {
        let mut again = FxHashMap::default();
        let nest = clone::copy(&mut self.editor, nest, &mut again);
        let [value, index] = [row.value, row.index].map(|id| clone::renamed(&mut self.editor, id, &again));
        let counter = again.get(&row.counter).copied().unwrap_or(row.counter);
        (nest, DenseRow { counter, start, value, index, ..*row })
    }

    /// The loop over tiles: each tile is loaded, updated by the nest, and stored.
    fn tiles(
        &mut self,
        mut nest: Stmt,
        row: &DenseRow,
        tiles: Tiles,
        filled: Option<ExprId>,
        mut body: Block,
    ) -> Block {
        let info = self.editor.buffer_of(row.buffer);
        let (name, elem) = (info.name.trim_end_matches("_values").to_string(), info.elem);
        let (name, of) = (format!("{name}_{}", tiles.names.0), tiles.names.1);
        let tile = self.editor.buffer(name, elem, Role::Tile(tiles.size));
        let var = self.editor.new_var(of, DType::I64, false);
        let (zero, width) = (self.editor.int(0), self.editor.int(i64::from(tiles.size)));
        let single = self.int(tiles.count) == Some(1);
        let number = if single { zero } else { self.editor.get(var) };
        let offset = fold::call(&mut self.editor, Op::Mul, DType::I64, &[number, width]);
        let offset = fold::call(&mut self.editor, Op::Add, DType::I64, &[row.start, offset]);
        let offset = self.named("first", offset, &mut body);
        let mut stop = width;
        if !tiles.whole {
            let length = self.length(row);
            if self.int(length).is_none_or(|length| length != i64::from(tiles.size)) {
                stop = fold::call(&mut self.editor, Op::Sub, DType::I64, &[row.stop, offset]);
                stop = fold::call(&mut self.editor, Op::Min, DType::I64, &[stop, width]);
                stop = self.named("width", stop, &mut body);
            }
        }

        let kind = if stop == width { LoopKind::Unrolled } else { LoopKind::Serial };
        let over = |var: VarId, stmt: Stmt| Stmt::For {
            var,
            start: zero,
            stop,
            body: vec![stmt],
            hint: Hint { kind, ..Hint::default() },
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
        // Loops over tiles, and the copies into and out of them, originate from the dense loop but
        // do not run its body.
        let origin = self.editor.kernel().var(row.counter).origin.map(|origin| Origin { visits: false, ..origin });
        [var, loading, storing].into_iter().for_each(|part| self.editor.set_origin(part, origin));
        let index = self.editor.get(storing);
        let place = self.place(row, offset, index);
        let value = self.editor.load(tile, index);
        body.push(over(storing, Stmt::Store { buffer: row.buffer, index: place, value }));
        match single {
            true => body,
            false => vec![Stmt::For { var, start: zero, stop: tiles.count, body, hint: Hint::default() }],
        }
    }

    // Expressions

    /// The number of elements of a tile.
    fn size(&self, buffer: BufferId) -> u32 {
        (BYTES / self.editor.buffer_of(buffer).elem.size().max(1)).min(MOST) as u32
    }

    /// The number of elements of a remainder tile: half of a full one, so that few lanes of short
    /// rows stay idle, or the exact number if it is a constant.
    fn half(&mut self, rest: &DenseRow, size: u32) -> u32 {
        let length = self.length(rest);
        let known = self.int(length).and_then(|length| u32::try_from(length).ok()).map(u32::next_power_of_two);
        known.unwrap_or(size / 2).clamp(2, size.max(2))
    }

    fn int(&self, id: ExprId) -> Option<i64> {
        self.editor.as_constant(id).and_then(|value| value.as_i64())
    }

    /// The number of elements of a row, or a negative number.
    fn length(&mut self, row: &DenseRow) -> ExprId {
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

    /// Expands the names in an expression to their definitions.
    fn resolved(&mut self, id: ExprId, names: &FxHashMap<VarId, ExprId>) -> ExprId {
        if names.is_empty() {
            return id;
        }
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => names.get(var).copied(),
            _ => None,
        })
    }

    /// Substitutes a value for the counter in an expression.
    fn at(&mut self, id: ExprId, counter: VarId, value: ExprId) -> ExprId {
        let names = FxHashMap::from_iter([(counter, value)]);
        self.resolved(id, &names)
    }

    /// The index in its row of an element of a tile.
    fn place(&mut self, row: &DenseRow, offset: ExprId, index: ExprId) -> ExprId {
        // The index is invariant in the nest, so it does not load from the row and nothing is
        // replaced.
        self.shifted(row.index, row, offset, index, index)
    }

    /// Substitutes `offset + index` for the counter, and the element of the tile for that of the
    /// row. In a sum, the operands that are invariant along the row are added first.
    fn shifted(&mut self, id: ExprId, row: &DenseRow, offset: ExprId, index: ExprId, element: ExprId) -> ExprId {
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

/// True if an expression is the counter plus an integer expression without the counter.
fn is_counted(kernel: &Kernel, base: ExprId, last: ExprId, counter: VarId) -> bool {
    *kernel.expr(last) == Expr::Var(counter)
        && kernel.exprs.dtype(base) == DType::I64
        && !mentions(kernel, base, counter)
        && !cost::has_load(kernel, base)
}

/// Replaces the loop with this counter.
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

fn mentions(kernel: &Kernel, id: ExprId, var: VarId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= *expr == Expr::Var(var));
    found
}

#[cfg(test)]
mod tests;
