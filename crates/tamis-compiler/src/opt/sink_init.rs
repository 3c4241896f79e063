//! Sinking of initialisations: `fill y[0; n]` before a loop over `y` becomes `y[i] = 0` inside it.
//!
//! Memory is then touched once, and an accumulator that starts there can live in a register. A
//! tensor of several dimensions is initialised row by row. An iteration may read rows of earlier
//! iterations, as the product of a lower triangle and its transpose does. An array that is filled
//! right after it grew is not filled by the growth.

use super::effects::Effects;
use super::index_facts::IndexFacts;
use super::{Editor, Options, fold};
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = SinkInit { editor };
    let body = pass.drop_fill_of_growth(body);
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct SinkInit {
    editor: Editor,
}

impl SinkInit {
    // Growth

    /// Drops the fill of growth for buffers whose every growth is followed by a fill of the whole
    /// buffer.
    fn drop_fill_of_growth(&mut self, mut body: Block) -> Block {
        let buffers = self.editor.kernel().buffers.len();
        let (mut grown, mut filled) = (vec![0; buffers], vec![0; buffers]);
        let zero = self.editor.int(0);
        count_growth(&body, zero, &mut grown, &mut filled);
        let without_fill: Vec<bool> = grown.iter().zip(&filled).map(|(grown, filled)| grown == filled).collect();
        clear_growth(&mut body, &without_fill);
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
            // The filled range must denote the same elements at the loop, and the loop must be
            // reached.
            let mut same = between.left.is_empty();
            fill.each_expr(|id| same &= !between.touch(self.editor.kernel(), id));
            if let Some(later) = user.filter(|_| same)
                && let Some(Stmt::For { var, start, stop, body, .. }) = &mut rest[later]
                && let Some((at, inner)) = self.inside(&fill, *var, *start, *stop, body)
            {
                body.insert(at, inner);
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

    /// The part of a fill that each iteration of a loop uses first, and the statement before which
    /// it must be filled. In: each iteration uses its own part and those of earlier iterations, and
    /// together they use the whole range.
    fn inside(&mut self, fill: &Stmt, var: VarId, start: ExprId, stop: ExprId, body: &Block) -> Option<(usize, Stmt)> {
        let Stmt::Fill { buffer, start: first, len, value } = *fill else { return None };
        let zero = self.editor.int(0);
        let effects = Effects::of(body);
        if start != zero || self.editor.kernel().var(var).mutable || !stays(body) {
            return None;
        }
        // The start and the length of the fill must be loop-invariant.
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
        let iteration = self.editor.get(var);
        let own = if first == zero { iteration } else { self.editor.add(first, iteration) };
        let one = self.editor.int(1);
        let next = self.editor.add(own, one);
        let known = IndexFacts::of(self.editor.kernel(), body);
        let mut at = body.len();
        for (k, stmt) in body.iter().enumerate() {
            let mut indices = Vec::new();
            if !self.indices(std::slice::from_ref(stmt), buffer, &mut indices) {
                return None;
            }
            for index in indices {
                let kernel = self.editor.kernel();
                let mut row = known.meaning(kernel, index);
                for size in sizes.iter().rev() {
                    row = known.meaning(kernel, known.outer(kernel, row, *size)?);
                }
                if row == own || known.is_below(kernel, row, next) {
                    at = at.min(k);
                } else if !known.is_below(kernel, row, own) {
                    return None;
                }
            }
        }
        if sizes.is_empty() {
            return Some((at, Stmt::Store { buffer, index: own, value }));
        }
        if first != zero {
            // A range that does not start at 0 must be one-dimensional.
            return None;
        }
        let (mut start, mut part) = (iteration, self.editor.int(1));
        for size in sizes {
            start = fold::call(&mut self.editor, Op::Mul, DType::I64, &[start, size]);
            part = fold::call(&mut self.editor, Op::Mul, DType::I64, &[part, size]);
        }
        Some((at, Stmt::Fill { buffer, start, len: part, value }))
    }

    /// Collects the indices at which a block loads and stores elements of a buffer; false if there
    /// is any other access.
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

    /// True if a statement, nested ones included, accesses a buffer.
    fn uses(&self, stmt: &Stmt, buffer: BufferId) -> bool {
        let mut found = Vec::new();
        !self.indices(std::slice::from_ref(stmt), buffer, &mut found) || !found.is_empty()
    }
}

/// True if control always reaches the end of a block.
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

fn clear_growth(block: &mut Block, without_fill: &[bool]) {
    for stmt in block {
        if let Stmt::Grow { buffer, fill, .. } = stmt
            && without_fill[buffer.index()]
        {
            *fill = None;
        }
        stmt.blocks_mut().for_each(|inner| clear_growth(inner, without_fill));
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
            // A different length, or a different element.
            make.count("i", zero, if other { n } else { m }, |make, i| {
                let value = if other { make.load(make.y, zero) } else { one };
                make.add_to(make.y, i, value);
            });
            assert_eq!(after(&[run], make)[..2], ["grow y to n", "fill y[0; n] with 0.0"]);
        }
    }

    /// `add` writes to elements before the iteration's own; the fill sinks to the first use of its
    /// own element.
    fn triangle(add: impl Fn(&mut Make, ExprId)) -> Vec<String> {
        let mut make = Make::new();
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        fill(&mut make, n);
        make.count("i", zero, n, |make, i| {
            add(make, i);
            make.add_to(make.y, i, one);
        });
        after(&[run], make)
    }

    #[test]
    fn iterations_use_elements_of_earlier_iterations() {
        let counted = triangle(|make, i| {
            let (zero, one) = (make.int(0), make.float(1.0));
            make.count("j", zero, i, |make, j| make.add_to(make.y, j, one));
        });
        let lines = ["for j in 0..i", "    y[j] = y[j] + 1.0", "y[i] = 0.0", "y[i] = y[i] + 1.0"];
        assert_eq!(counted[2..], lines.map(|line| format!("    {line}")));
        let listed = |key: fn(&mut Make, ExprId) -> ExprId, late: bool| {
            triangle(|make, i| {
                let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
                let key = key(make, i);
                let to = make.b.search_from("to", make.crd, [zero, n, key], true);
                let start = if late { make.m } else { zero };
                make.count("q", start, to, |make, q| {
                    let j = make.load(make.crd, q);
                    let j = make.b.name("j", j);
                    make.add_to(make.y, j, one);
                });
            })
        };
        let lines = listed(|_, i| i, false);
        assert_eq!(lines[1..3], ["for i in 0..n", "    let to = search back A_crd[0..n] for i"]);
        assert_eq!(lines[6..], ["    y[i] = 0.0", "    y[i] = y[i] + 1.0"]);
        // The key is a different integer, or the loop starts elsewhere: the first use is unknown.
        for lines in [listed(|make, i| make.b.add(i, i), false), listed(|_, i| i, true)] {
            assert_eq!(lines[..2], ["grow y to n", "fill y[0; n] with 0.0"]);
        }
    }
}
