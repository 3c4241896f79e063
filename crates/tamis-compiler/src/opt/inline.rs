//! Inlining of single-use names: the value replaces the name.
//!
//! Bounds of loops, stored values and conditions are inlined. A name inside a larger expression
//! stays if its value is a load (`let j = A_crd[q]`). Nothing moves into a loop, past a change of
//! its operands, or to a place that is executed more often.

use super::effects::WriteTimes;
use super::{Editor, Options, cost, effects, fold};
use rustc_hash::FxHashMap;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Stmt, VarId};

/// The maximum number of operations of an expression after inlining.
const LARGEST: usize = 10;

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let (vars, times) = (kernel.vars.len(), WriteTimes::new(&kernel));
    let reads = effects::reads(&kernel, &kernel.body);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = Inline { editor, reads, pending: FxHashMap::default(), gone: vec![false; vars], times, depth: 0 };
    let body = pass.block(body);
    pass.editor.finish(body)
}

/// A value whose single use has not been reached yet.
#[derive(Clone, Copy)]
struct Pending {
    value: ExprId,
    at: u64,
    /// The loop depth of the declaration.
    depth: usize,
}

struct Inline {
    editor: Editor,
    reads: Vec<u32>,
    pending: FxHashMap<VarId, Pending>,
    /// Variables whose use was inlined.
    gone: Vec<bool>,
    times: WriteTimes,
    depth: usize,
}

impl Inline {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            out.push(self.stmt(stmt));
        }
        out.retain(|stmt| !matches!(stmt, Stmt::Let { var, .. } if self.gone[var.index()]));
        out
    }

    fn stmt(&mut self, mut stmt: Stmt) -> Stmt {
        let repeated = matches!(stmt, Stmt::While { .. });
        self.depth += usize::from(repeated);
        stmt.map_exprs(|id| self.expr(id));
        self.depth -= usize::from(repeated);
        self.times.pass(&stmt);
        match &mut stmt {
            Stmt::Let { var, value } => {
                let info = self.editor.kernel().var(*var);
                if !info.mutable && self.reads[var.index()] == 1 {
                    let pending = Pending { value: *value, at: self.times.now, depth: self.depth };
                    self.pending.insert(*var, pending);
                }
            }
            Stmt::For { body, .. } | Stmt::While { body, .. } => {
                self.depth += 1;
                *body = self.block(std::mem::take(body));
                self.depth -= 1;
            }
            Stmt::If { then, otherwise, .. } => {
                *then = self.block(std::mem::take(then));
                *otherwise = self.block(std::mem::take(otherwise));
            }
            Stmt::Labelled { body, .. } => *body = self.block(std::mem::take(body)),
            _ => {}
        }
        stmt
    }

    /// An expression with profitable names inlined.
    fn expr(&mut self, id: ExprId) -> ExprId {
        if let Expr::Var(var) = *self.editor.kernel().expr(id) {
            return self.take(var, true).unwrap_or(id);
        }
        if self.pending.is_empty() || cost::operations(self.editor.kernel(), id, LARGEST) >= LARGEST {
            return id;
        }
        let mut found: Vec<(VarId, ExprId)> = Vec::new();
        let mut vars = Vec::new();
        self.editor.kernel().visit_expr(id, &mut |expr| {
            if let Expr::Var(var) = expr {
                vars.push(*var);
            }
        });
        for var in vars {
            if let Some(value) = self.take(var, false) {
                found.push((var, value));
            }
        }
        if found.is_empty() {
            return id;
        }
        fold::rewrite(&mut self.editor, id, &mut |editor, id| match editor.kernel().expr(id) {
            Expr::Var(var) => found.iter().find(|(other, _)| other == var).map(|(_, value)| *value),
            _ => None,
        })
    }

    /// The value of a variable whose single use is this one, if inlining is profitable, as a whole
    /// operand or inside one.
    fn take(&mut self, var: VarId, whole: bool) -> Option<ExprId> {
        let pending = *self.pending.get(&var)?;
        let kernel = self.editor.kernel();
        let same = pending.depth == self.depth && self.times.unchanged(kernel, pending.value, pending.at);
        let simple = || cost::is_free(kernel, pending.value) && cost::operations(kernel, pending.value, 4) <= 3;
        if !same || !(whole || simple()) {
            return None;
        }
        self.pending.remove(&var);
        self.gone[var.index()] = true;
        Some(pending.value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::algebra::Op;

    #[test]
    fn bounds_stand_in_place_and_coordinates_keep_their_names() {
        let mut make = Make::new();
        let (zero, one) = (make.int(0), make.int(1));
        let (start, stop) = (make.load(make.pos, zero), make.load(make.pos, one));
        let (start, stop) = (make.b.name("start", start), make.b.name("stop", stop));
        make.count("q", start, stop, |make, q| {
            let j = make.load(make.crd, q);
            let j = make.b.name("j", j);
            let x = make.load(make.x, j);
            make.b.store(make.y, q, x);
        });
        let expected = ["for q in A_pos[0]..A_pos[1]", "    let j: i64 = A_crd[q]", "    y[q] = x[j]"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn conditions_stand_in_place_and_values_wait_for_no_change() {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        let less = make.call(Op::Lt, &[n, m]);
        let less = make.b.name("less", less);
        let old = make.load(make.y, zero);
        let old = make.b.name("old", old);
        let value = make.float(1.0);
        make.b.store(make.y, zero, value);
        make.when(less, |make| make.b.store(make.y, n, old));
        let expected = ["let old: f64 = y[0]", "y[0] = 1.0", "if n < m", "    y[n] = old"];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn nothing_moves_into_a_loop() {
        let mut make = Make::new();
        let (zero, n, value) = (make.int(0), make.n, make.float(1.0));
        let old = make.load(make.y, zero);
        let old = make.b.name("old", old);
        make.count("i", zero, n, |make, i| {
            make.b.store(make.y, i, old);
            make.b.store(make.y, zero, value);
        });
        assert_eq!(after(&[run], make)[..3], ["let old: f64 = y[0]", "for i in 0..n", "    y[i] = old"]);
    }
}
