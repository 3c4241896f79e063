//! Arrays are filled where they are used: `fill y[0; n]` before a loop over `y` becomes `y[i] = 0` inside it, so that memory
//! is touched once, and a sum that starts there can live in a register.
//!
//! An array of several dimensions is filled row by row. An array that is filled right after it has grown is not filled
//! when it grows.

use super::effects::Effects;
use super::{Editor, Options, fold};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Localise { editor };
    let body = pass.bare_growth(body);
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct Localise {
    editor: Editor,
}

impl Localise {
    // Growth

    /// Arrays all of whose growth is followed by a fill of everything grow without a fill.
    fn bare_growth(&mut self, mut body: Block) -> Block {
        let buffers = self.editor.kernel().buffers.len();
        let (mut grown, mut filled) = (vec![0; buffers], vec![0; buffers]);
        let zero = self.editor.int(0);
        count_growth(&body, zero, &mut grown, &mut filled);
        let bare: Vec<bool> = grown.iter().zip(&filled).map(|(grown, filled)| grown == filled).collect();
        clear_growth(&mut body, &bare);
        body
    }

    // Fills

    fn block(&mut self, block: Block) -> Block {
        let mut rest: Vec<Option<Stmt>> = block.into_iter().map(Some).collect();
        for k in 0..rest.len() {
            let Some(fill @ Stmt::Fill { buffer, value, .. }) = &rest[k] else { continue };
            if self.editor.as_constant(*value).is_none() {
                continue;
            }
            let (fill, buffer) = (fill.clone(), *buffer);
            let mut user = None;
            let mut between = Effects::default();
            for (later, stmt) in rest.iter().enumerate().skip(k + 1) {
                let Some(stmt) = stmt else { continue };
                if self.uses(stmt, buffer) {
                    user = Some(later);
                    break;
                }
                between.extend(Effects::of(std::slice::from_ref(stmt)));
            }
            // What is filled must mean the same at the loop, which must be reached.
            let mut same = between.left.is_empty();
            fill.each_expr(|id| same &= !between.touch(self.editor.kernel(), id));
            if let Some(later) = user.filter(|_| same)
                && let Some(Stmt::For { var, start, stop, body, .. }) = &mut rest[later]
                && let Some(inner) = self.inside(&fill, *var, *start, *stop, body)
            {
                body.insert(0, inner);
                rest[k] = None;
            }
        }
        let mut out: Block = rest.into_iter().flatten().collect();
        for stmt in &mut out {
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
        }
        out
    }

    /// The part of a fill that one turn of a loop uses, if each uses its own and they use all of it.
    fn inside(&mut self, fill: &Stmt, var: VarId, start: ExprId, stop: ExprId, body: &Block) -> Option<Stmt> {
        let Stmt::Fill { buffer, start: first, len, value } = *fill else { return None };
        let zero = self.editor.int(0);
        let effects = Effects::of(body);
        if start != zero || self.editor.kernel().var(var).mutable || !stays(body) {
            return None;
        }
        // Where the fill starts and what it covers must mean the same inside.
        if effects.touch(self.editor.kernel(), first) || effects.touch(self.editor.kernel(), len) {
            return None;
        }
        // Sizes of dimensions, outermost first: len = ((n * m) * p).
        let mut sizes = Vec::new();
        let mut product = len;
        while let Expr::Call(Op::Mul, DType::I64, operands) = self.editor.kernel().expr(product)
            && product != stop
        {
            sizes.push(operands[1]);
            product = operands[0];
        }
        if product != stop {
            return None;
        }
        sizes.reverse();
        let mut counters = Vec::new();
        self.counters(body, &mut counters);
        let turn = self.editor.get(var);
        let own = if first == zero { turn } else { self.editor.add(first, turn) };
        let mut indices = Vec::new();
        if !self.indices(body, buffer, &mut indices) {
            return None;
        }
        let names = self.names(body);
        for index in indices {
            // Names stand for the same inside: what is found below is made of counters and of what does not change.
            let mut at = index;
            while let Expr::Var(var) = self.editor.kernel().expr(at)
                && let Some(value) = names.get(var)
            {
                at = *value;
            }
            for size in sizes.iter().rev() {
                at = self.outer(at, *size, &counters)?;
            }
            if at != own {
                return None;
            }
        }
        if sizes.is_empty() {
            return Some(Stmt::Store { buffer, index: own, value });
        }
        if first != zero {
            // A part that does not start at 0 has one dimension.
            return None;
        }
        let (mut start, mut part) = (turn, self.editor.int(1));
        for size in sizes {
            start = fold::call(&mut self.editor, Op::Mul, DType::I64, &[start, size]);
            part = fold::call(&mut self.editor, Op::Mul, DType::I64, &[part, size]);
        }
        Some(Stmt::Fill { buffer, start, len: part, value })
    }

    /// The `a` of an index `a * size + k` where `k` counts from 0 to the size.
    fn outer(&self, index: ExprId, size: ExprId, counters: &[(VarId, ExprId)]) -> Option<ExprId> {
        let kernel = self.editor.kernel();
        let Expr::Call(Op::Add, DType::I64, sum) = kernel.expr(index) else { return None };
        let Expr::Var(counter) = kernel.expr(sum[1]) else { return None };
        let Expr::Call(Op::Mul, DType::I64, product) = kernel.expr(sum[0]) else { return None };
        (product[1] == size && counters.contains(&(*counter, size))).then_some(product[0])
    }

    /// What names in a block stand for.
    fn names(&self, block: &Block) -> FxHashMap<VarId, ExprId> {
        let mut names = FxHashMap::default();
        for stmt in block {
            stmt.visit(&mut |stmt| {
                if let Stmt::Let { var, value } = stmt
                    && !self.editor.kernel().var(*var).mutable
                {
                    names.insert(*var, *value);
                }
            });
        }
        names
    }

    /// Variables that count from 0, and where they stop.
    fn counters(&mut self, block: &Block, found: &mut Vec<(VarId, ExprId)>) {
        let zero = self.editor.int(0);
        for stmt in block {
            stmt.visit(&mut |stmt| {
                if let Stmt::For { var, start, stop, .. } = stmt
                    && *start == zero
                    && !self.editor.kernel().var(*var).mutable
                {
                    found.push((*var, *stop));
                }
            });
        }
    }

    /// The indices at which a block loads and stores elements of a buffer; false if it does anything else with it.
    fn indices(&self, block: &[Stmt], buffer: BufferId, found: &mut Vec<ExprId>) -> bool {
        let kernel = self.editor.kernel();
        let mut plain = true;
        for stmt in block {
            stmt.visit(&mut |stmt| {
                match stmt {
                    Stmt::Store { buffer: other, index, .. } if *other == buffer => found.push(*index),
                    _ => plain &= stmt.scans().chain(stmt.writes()).all(|other| other != buffer),
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
            });
        }
        found.sort_unstable();
        found.dedup();
        plain
    }

    /// Whether a statement, or one inside it, has to do with a buffer.
    fn uses(&self, stmt: &Stmt, buffer: BufferId) -> bool {
        let mut found = Vec::new();
        !self.indices(std::slice::from_ref(stmt), buffer, &mut found) || !found.is_empty()
    }
}

/// Whether all ways through a block end at its end.
fn stays(block: &Block) -> bool {
    let mut inside = Vec::new();
    for stmt in block {
        stmt.visit(&mut |stmt| {
            if let Stmt::Labelled { label, .. } = stmt {
                inside.push(*label);
            }
        });
    }
    Effects::of(block).left.iter().all(|label| inside.contains(label))
}

fn count_growth(block: &Block, zero: ExprId, grown: &mut [u32], filled: &mut [u32]) {
    for (k, stmt) in block.iter().enumerate() {
        if let Stmt::Grow { buffer, len, .. } = stmt {
            grown[buffer.index()] += 1;
            if let Some(Stmt::Fill { buffer: other, start, len: all, .. }) = block.get(k + 1)
                && (other, *start, all) == (buffer, zero, len)
            {
                filled[buffer.index()] += 1;
            }
        }
        stmt.blocks().for_each(|inner| count_growth(inner, zero, grown, filled));
    }
}

fn clear_growth(block: &mut Block, bare: &[bool]) {
    for stmt in block {
        if let Stmt::Grow { buffer, fill, .. } = stmt
            && bare[buffer.index()]
        {
            *fill = None;
        }
        stmt.blocks_mut().for_each(|inner| clear_growth(inner, bare));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    fn fill(make: &mut Make, len: ExprId) {
        let (zero, value) = (make.int(0), make.float(0.0));
        make.b.emit(Stmt::Grow { buffer: make.y, len, fill: Some(tamis_ir::Value::F64(0.0)) });
        make.b.emit(Stmt::Fill { buffer: make.y, start: zero, len, value });
    }

    #[test]
    fn vectors_are_filled_in_their_loop() {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        fill(&mut make, n);
        make.count("i", zero, n, |make, i| make.add_to(make.y, i, one));
        assert_eq!(after(&[run], make), ["grow y to n", "for i in 0..n", "    y[i] = 0.0", "    y[i] = y[i] + 1.0"]);
    }

    #[test]
    fn matrices_are_filled_row_by_row() {
        let mut make = Make::new();
        let (zero, n, m, one) = (make.int(0), make.n, make.m, make.float(1.0));
        let len = make.call(Op::Mul, &[n, m]);
        fill(&mut make, len);
        make.count("i", zero, n, |make, i| {
            make.count("q", zero, n, |make, _| {
                make.count("j", zero, m, |make, j| {
                    let row = make.call(Op::Mul, &[i, m]);
                    let place = make.b.add(row, j);
                    let place = make.b.name("place", place);
                    make.add_to(make.y, place, one);
                });
            });
        });
        let lines = after(&[run], make);
        assert_eq!(
            lines[..4],
            ["grow y to n * m", "for i in 0..n", "    fill y[i * m; m] with 0.0", "    for q in 0..n"]
        );
    }

    #[test]
    fn loops_that_use_other_elements_find_them_filled() {
        for other in [false, true] {
            let mut make = Make::new();
            let (zero, n, m, one) = (make.int(0), make.n, make.m, make.float(1.0));
            fill(&mut make, n);
            // Another length, or another element.
            make.count("i", zero, if other { n } else { m }, |make, i| {
                let value = if other { make.load(make.y, zero) } else { one };
                make.add_to(make.y, i, value);
            });
            assert_eq!(after(&[run], make)[..2], ["grow y to n", "fill y[0; n] with 0.0"]);
        }
    }
}
