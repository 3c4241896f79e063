//! Scalar promotion of reductions (register accumulation): an element that a loop updates is loaded
//! before the loop, kept in a variable, and stored after it.
//!
//! Nothing else in the loop may touch the buffer, except at indices that are proven smaller, as for
//! the rows of a lower triangle. The element must exist even if the loop does not run: it was
//! accessed before, or the pass guards the loop. Loops are promoted from the outside in.

use super::effects::Effects;
use super::in_bounds::{self, InBounds};
use super::index_facts::IndexFacts;
use super::{Editor, Options, fold};
use rustc_hash::FxHashMap;
use tamis_ir::DType;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, LabelId, Role, Stmt, VarId};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = InBounds::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let known = IndexFacts::of(editor.kernel(), &body);
    let mut pass = ScalarPromotion { editor, reach, known };
    let body = pass.block(body);
    pass.editor.finish(body)
}

/// The accesses of a code fragment to a buffer.
#[derive(Default)]
struct BufferAccesses {
    /// Indices of loads and stores.
    indices: Vec<Indexed>,
    /// True if there is any other access.
    otherwise: bool,
}

/// The accesses of a code fragment to an element.
struct Indexed {
    index: ExprId,
    loads: bool,
    stores: bool,
}

/// An element that is held in a variable.
struct Promoted {
    buffer: BufferId,
    index: ExprId,
    var: VarId,
}

struct ScalarPromotion {
    editor: Editor,
    reach: InBounds,
    known: IndexFacts,
}

impl ScalarPromotion {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, &mut out);
        }
        out
    }

    fn stmt(&mut self, stmt: Stmt, out: &mut Block) {
        let (mut stmt, promoted, guard) = match stmt {
            Stmt::For { .. } | Stmt::While { .. } => self.promote(stmt),
            Stmt::Labelled { ref body, .. } if body.iter().any(is_loop) => self.promote(stmt),
            _ => (stmt, Vec::new(), None),
        };
        let mut around = Vec::new();
        for element in &promoted {
            let value = self.editor.load(element.buffer, element.index);
            around.push(Stmt::Let { var: element.var, value });
        }
        let mark = self.reach.enter();
        around.iter().for_each(|stmt| self.reach.pass(self.editor.kernel(), stmt));
        self.reach.pass(self.editor.kernel(), &stmt);
        self.inside(&mut stmt);
        around.push(stmt);
        for element in promoted {
            let value = self.editor.get(element.var);
            let store = Stmt::Store { buffer: element.buffer, index: element.index, value };
            self.reach.pass(self.editor.kernel(), &store);
            around.push(store);
        }
        match guard {
            Some(cond) => {
                self.reach.leave(mark);
                out.push(Stmt::If { cond, then: around, otherwise: Vec::new() });
            }
            None => out.append(&mut around),
        }
    }

    fn inside(&mut self, stmt: &mut Stmt) {
        let again = matches!(stmt, Stmt::For { .. } | Stmt::While { .. });
        for block in stmt.blocks_mut() {
            let effects = Effects::of(block);
            if again {
                self.reach.forget(&effects);
            }
            let mark = self.reach.enter();
            *block = self.block(std::mem::take(block));
            self.reach.leave(mark);
            self.reach.forget(&effects);
        }
    }

    /// Promotes the elements that a statement reads and writes; returns them, and the trip guard,
    /// if one must be tested first.
    fn promote(&mut self, stmt: Stmt) -> (Stmt, Vec<Promoted>, Option<ExprId>) {
        let kernel = self.editor.kernel();
        let mut accesses: FxHashMap<BufferId, BufferAccesses> = FxHashMap::default();
        let mut labels: Vec<LabelId> = Vec::new();
        stmt.visit(&mut |stmt| {
            note(kernel, stmt, &mut accesses);
            if let Stmt::Labelled { label, .. } = stmt {
                labels.push(*label);
            }
        });
        let alone = |access: &BufferAccesses, one: &Indexed| {
            let other =
                |other: &Indexed| self.known.is_below(kernel, self.known.meaning(kernel, other.index), one.index);
            !access.otherwise && access.indices.iter().all(|index| index.index == one.index || other(index))
        };
        let mut candidates: Vec<(BufferId, ExprId)> = Vec::new();
        for (buffer, access) in &accesses {
            let kept = access.indices.iter().filter(|one| one.loads && one.stores && alone(access, one));
            candidates.extend(kept.map(|one| (*buffer, one.index)));
        }
        if candidates.is_empty() {
            return (stmt, Vec::new(), None);
        }
        let effects = Effects::of(std::slice::from_ref(&stmt));
        if !effects.left.iter().all(|label| labels.contains(label)) {
            return (stmt, Vec::new(), None);
        }
        candidates.retain(|(_, index)| !effects.touch(kernel, *index));
        candidates.sort_unstable();

        // An element that every iteration accesses exists if there is an iteration.
        let mut certain: Vec<(BufferId, ExprId)> = Vec::new();
        let mut see = |buffer, index| certain.push((buffer, index));
        let runs = match &stmt {
            Stmt::For { start, stop, body, .. } => {
                in_bounds::certain_accesses(kernel, body, &mut see);
                in_bounds::runs(kernel, *start, *stop)
            }
            Stmt::While { body, .. } => {
                in_bounds::certain_accesses(kernel, body, &mut see);
                false
            }
            Stmt::Labelled { body, .. } => {
                in_bounds::certain_accesses(kernel, body, &mut see);
                true
            }
            _ => false,
        };
        let is_there = |(buffer, index): &(BufferId, ExprId)| {
            self.reach.has(kernel, *buffer, *index) || runs && certain.contains(&(*buffer, *index))
        };
        let (mut there, rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| is_there(c));
        let guarded: Vec<(BufferId, ExprId)> = rest.into_iter().filter(|c| certain.contains(c)).collect();
        let mut guard = None;
        if !guarded.is_empty() {
            guard = match &stmt {
                Stmt::For { start, stop, .. } => {
                    let (start, stop) = (*start, *stop);
                    Some(fold::call(&mut self.editor, Op::Lt, DType::I64, &[start, stop]))
                }
                Stmt::While { cond, .. } => Some(*cond),
                _ => None,
            };
            if guard.is_some() {
                there.extend(guarded);
            }
        }
        let mut promoted = Vec::new();
        for (buffer, index) in there {
            let name = self.name(&stmt, buffer, index);
            let dtype = self.editor.buffer_of(buffer).elem.dtype();
            let var = self.editor.new_var(name, dtype, true);
            promoted.push(Promoted { buffer, index, var });
        }
        let mut stmt = stmt;
        for element in &promoted {
            self.replace(&mut stmt, element);
        }
        (stmt, promoted, guard)
    }

    /// The name of the variable, after the reduction that the loop performs.
    fn name(&self, stmt: &Stmt, buffer: BufferId, index: ExprId) -> String {
        let kernel = self.editor.kernel();
        let mut found = None;
        stmt.visit(&mut |stmt| {
            if let Stmt::Store { buffer: other, value, .. } = stmt
                && *other == buffer
                && let Expr::Call(op, _, operands) = kernel.expr(*value)
                && operands.first().is_some_and(|e| *kernel.expr(*e) == Expr::Load(buffer, index))
            {
                found = match op {
                    Op::Add | Op::Sub => Some("sum"),
                    Op::Mul => Some("product"),
                    Op::Min => Some("least"),
                    Op::Max => Some("most"),
                    Op::Or | Op::BitOr => Some("any"),
                    Op::And | Op::BitAnd => Some("all"),
                    _ => None,
                };
            }
        });
        match found {
            Some(name) => name.into(),
            None => format!("{}_value", kernel.buffer(buffer).name.trim_end_matches("_values")),
        }
    }

    fn replace(&mut self, stmt: &mut Stmt, element: &Promoted) {
        let value = self.editor.get(element.var);
        let editor = &mut self.editor;
        stmt.map_exprs(|id| {
            fold::rewrite(editor, id, &mut |editor, id| {
                let here = *editor.kernel().expr(id) == Expr::Load(element.buffer, element.index);
                here.then_some(value)
            })
        });
        if let Stmt::Store { buffer, index, value } = stmt
            && (*buffer, *index) == (element.buffer, element.index)
        {
            *stmt = Stmt::Assign { var: element.var, value: *value };
        }
        stmt.blocks_mut().for_each(|block| block.iter_mut().for_each(|stmt| self.replace(stmt, element)));
    }
}

fn is_loop(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { .. } | Stmt::While { .. })
}

/// Adds the accesses of a statement, without nested blocks.
fn note(kernel: &Kernel, stmt: &Stmt, accesses: &mut FxHashMap<BufferId, BufferAccesses>) {
    let mut add = |buffer: BufferId, index: Option<ExprId>, store: bool| {
        if kernel.buffer(buffer).role == Role::Input {
            return;
        }
        let access = accesses.entry(buffer).or_default();
        let Some(index) = index else {
            access.otherwise = true;
            return;
        };
        match access.indices.iter_mut().find(|known| known.index == index) {
            Some(known) => {
                known.loads |= !store;
                known.stores |= store;
            }
            None => access.indices.push(Indexed { index, loads: !store, stores: store }),
        }
    };
    match stmt {
        Stmt::Store { buffer, index, .. } => add(*buffer, Some(*index), true),
        Stmt::Search { buffer, .. } => add(*buffer, None, false),
        _ if stmt.workspace().is_some() => stmt.scans().for_each(|buffer| {
            add(buffer, None, false);
            add(buffer, None, true);
        }),
        _ => {
            stmt.writes().for_each(|buffer| add(buffer, None, true));
        }
    }
    stmt.each_expr(|id| {
        kernel.visit_expr(id, &mut |expr| {
            if let Expr::Load(buffer, index) = expr {
                add(*buffer, Some(*index), false);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    #[test]
    fn sums_live_in_variables() {
        let mut make = Make::new();
        let (zero, n, m, nothing) = (make.int(0), make.n, make.m, make.float(0.0));
        make.count("i", zero, n, |make, i| {
            make.b.store(make.y, i, nothing);
            make.count("j", zero, m, |make, j| {
                let x = make.load(make.x, j);
                make.add_to(make.y, i, x);
            });
        });
        let expected = [
            "for i in 0..n",
            "    y[i] = 0.0",
            "    var sum: f64 = y[i]",
            "    for j in 0..m",
            "        sum = sum + x[j]",
            "    y[i] = sum",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    /// A loop over coordinates, up to the position of `key`, that adds to `y[own]` and to
    /// `y[crd[q]]`.
    fn both(make: &mut Make, own: ExprId, key: ExprId) {
        let (zero, n, one) = (make.int(0), make.n, make.float(1.0));
        let to = make.b.search_from("to", make.crd, [zero, n, key], true);
        make.count("q", zero, to, |make, q| {
            let j = make.load(make.crd, q);
            let j = make.b.name("j", j);
            make.add_to(make.y, own, one);
            make.add_to(make.y, j, one);
        });
    }

    #[test]
    fn what_lies_before_is_another_element() {
        let mut make = Make::new();
        let (zero, n, nothing) = (make.int(0), make.n, make.float(0.0));
        make.count("i", zero, n, |make, i| {
            make.b.store(make.y, i, nothing);
            both(make, i, i);
        });
        let expected = [
            "    var sum: f64 = y[i]",
            "    for q in 0..to",
            "        let j: i64 = A_crd[q]",
            "        sum = sum + 1.0",
            "        y[j] = y[j] + 1.0",
            "    y[i] = sum",
        ];
        assert_eq!(after(&[run], make)[3..], expected);
    }

    #[test]
    fn what_may_not_lie_before_stays_in_memory() {
        // The key is the next integer, or it may change between the search and the loop.
        for changes in [false, true] {
            let mut make = Make::new();
            let (zero, n, one, nothing) = (make.int(0), make.n, make.int(1), make.float(0.0));
            let var = make.b.variable_from("p", zero);
            make.count("i", zero, n, |make, i| {
                make.b.store(make.y, i, nothing);
                if changes {
                    let p = make.b.get(var);
                    make.b.store(make.y, p, nothing);
                    both(make, p, p);
                    let next = make.b.add(p, one);
                    make.b.assign(var, next);
                } else {
                    let next = make.b.add(i, one);
                    both(make, i, next);
                }
            });
            assert!(!after(&[run], make).iter().any(|line| line.contains("sum")));
        }
    }

    #[test]
    fn elements_that_may_not_be_there_are_read_under_a_condition() {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        make.count("j", zero, m, |make, j| {
            let x = make.load(make.x, j);
            make.add_to(make.y, n, x);
        });
        let expected =
            ["if 0 < m", "    var sum: f64 = y[n]", "    for j in 0..m", "        sum = sum + x[j]", "    y[n] = sum"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn elements_below_a_length_are_there() {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        make.b.emit(Stmt::Grow { buffer: make.y, len: n, fill: None });
        make.count("i", zero, n, |make, i| {
            make.count("j", zero, m, |make, j| {
                let x = make.load(make.x, j);
                make.add_to(make.y, i, x);
            });
        });
        assert_eq!(after(&[run], make)[1..3], ["for i in 0..n", "    var sum: f64 = y[i]"]);
    }

    #[test]
    fn what_may_be_the_same_element_stays_in_memory() {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        make.count("j", zero, m, |make, j| {
            let other = make.load(make.y, j);
            make.add_to(make.y, n, other);
        });
        assert_eq!(after(&[run], make), ["for j in 0..m", "    y[n] = y[n] + y[j]"]);
    }

    #[test]
    fn elements_that_are_read_under_a_condition_may_not_be_there() {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        make.count("j", zero, m, |make, j| {
            let x = make.load(make.x, j);
            let cond = make.call(Op::Lt, &[x, x]);
            make.when(cond, |make| make.add_to(make.y, n, x));
        });
        assert_eq!(after(&[run], make).last().map(String::as_str), Some("        y[n] = y[n] + x[j]"));
    }
}
