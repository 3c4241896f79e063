//! Loop-invariant code motion: hoists expressions that every iteration computes to the same value,
//! and names them.
//!
//! A load moves only if the element exists even when the loop does not run. An expensive operation
//! moves only if every iteration executes it. Index arithmetic stays in place: it is free in
//! addressing modes and reads better there.

use super::effects::Effects;
use super::in_bounds::{self, InBounds, InBoundsPass};
use super::{Editor, Options, cost, fold};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::Kind;
use tamis_ir::algebra::Op;
use tamis_ir::kernel::rewrite::evaluated_first;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Stmt};

pub(super) fn run(kernel: Kernel, options: &Options) -> Kernel {
    let reach = InBounds::new(&kernel);
    let (editor, body) = Editor::new(kernel, options);
    let mut pass = LoopInvariantMotion { editor, reach };
    let body = pass.block(body);
    pass.editor.finish(body)
}

struct LoopInvariantMotion {
    editor: Editor,
    reach: InBounds,
}

/// The properties of a loop that decide whether an expression may be hoisted.
struct LoopBody {
    effects: Effects,
    /// Elements that are accessed whenever the loop is entered.
    certain: Vec<(BufferId, ExprId)>,
}

impl InBoundsPass for LoopInvariantMotion {
    fn parts(&mut self) -> (&Kernel, &mut InBounds) {
        (self.editor.kernel(), &mut self.reach)
    }

    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for mut stmt in block {
            if matches!(stmt, Stmt::For { .. } | Stmt::While { .. }) {
                self.hoist(&mut stmt, &mut out);
            }
            self.inside(&mut stmt);
            out.push(stmt);
        }
        out
    }
}

impl LoopInvariantMotion {
    fn hoist(&mut self, stmt: &mut Stmt, out: &mut Block) {
        let kernel = self.editor.kernel();
        let mut certain = Vec::new();
        let mut see = |buffer, index| certain.push((buffer, index));
        match &*stmt {
            Stmt::For { start, stop, body, .. } if in_bounds::runs(kernel, *start, *stop) => {
                in_bounds::certain_accesses(kernel, body, &mut see);
            }
            // The condition is evaluated at least once.
            Stmt::While { cond, .. } => in_bounds::certain_loads(kernel, *cond, &mut see),
            _ => {}
        }
        let mut effects = Effects::of(stmt.blocks().next().map_or(&[], |body| body));
        effects.declared.extend(stmt.declares());
        let mut scope = LoopBody { effects, certain };
        self.hoist_declarations(stmt, &mut scope, out);
        let mut named: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let cond = match stmt {
            Stmt::While { cond, .. } => Some(*cond),
            _ => None,
        };
        let mut found = Vec::new();
        if let Some(cond) = cond {
            self.find(cond, true, &scope, &mut found, &mut FxHashSet::default());
        }
        for body in stmt.blocks() {
            self.find_in(body, true, &scope, &mut found);
        }
        for id in found {
            if let std::collections::hash_map::Entry::Vacant(entry) = named.entry(id) {
                let name = name(self.editor.kernel(), id);
                let dtype = self.editor.dtype(id);
                let var = self.editor.new_var(name, dtype, false);
                entry.insert(self.editor.get(var));
                let declaration = Stmt::Let { var, value: id };
                self.reach.pass(self.editor.kernel(), &declaration);
                out.push(declaration);
            }
        }
        if named.is_empty() {
            return;
        }
        if let Stmt::While { cond, .. } = stmt {
            *cond = self.replaced(*cond, &named);
        }
        for body in stmt.blocks_mut() {
            self.replace(body, &named);
        }
    }

    /// Hoists declarations of invariant values; they keep their names.
    fn hoist_declarations(&mut self, stmt: &mut Stmt, scope: &mut LoopBody, out: &mut Block) {
        for body in stmt.blocks_mut() {
            let mut certain = true;
            let mut rest = Vec::with_capacity(body.len());
            for stmt in std::mem::take(body) {
                if let Stmt::Let { var, value } = stmt
                    && !self.editor.kernel().var(var).mutable
                    && self.is_worth_it(value)
                    && !scope.effects.touch(self.editor.kernel(), value)
                    && self.is_safe(value, certain, scope)
                {
                    scope.effects.declared.retain(|declared| *declared != var);
                    self.reach.pass(self.editor.kernel(), &stmt);
                    out.push(stmt);
                    continue;
                }
                certain &= Effects::of(std::slice::from_ref(&stmt)).left.is_empty();
                rest.push(stmt);
            }
            *body = rest;
        }
    }

    fn find_in(&self, block: &Block, certain: bool, scope: &LoopBody, found: &mut Vec<ExprId>) {
        let mut certain = certain;
        for stmt in block {
            let mut seen = FxHashSet::default();
            stmt.each_expr(|id| self.find(id, certain, scope, found, &mut seen));
            for inner in stmt.blocks() {
                self.find_in(inner, false, scope, found);
            }
            certain &= Effects::of(std::slice::from_ref(stmt)).left.is_empty();
        }
    }

    /// Finds the maximal expressions that are invariant and profitable to hoist.
    fn find(
        &self,
        id: ExprId,
        certain: bool,
        scope: &LoopBody,
        found: &mut Vec<ExprId>,
        seen: &mut FxHashSet<(ExprId, bool)>,
    ) {
        let kernel = self.editor.kernel();
        if matches!(kernel.expr(id), Expr::Const(_) | Expr::Var(_)) || !seen.insert((id, certain)) {
            return;
        }
        if self.is_worth_it(id) && !scope.effects.touch(kernel, id) && self.is_safe(id, certain, scope) {
            found.push(id);
            return;
        }
        match kernel.expr(id) {
            Expr::Load(_, index) => self.find(*index, certain, scope, found, seen),
            Expr::Call(op, dtype, operands) => {
                let first = evaluated_first(*op, *dtype, operands);
                for (k, operand) in operands.iter().enumerate() {
                    self.find(*operand, certain && k < first, scope, found, seen);
                }
            }
            _ => {}
        }
    }

    fn is_worth_it(&self, id: ExprId) -> bool {
        let kernel = self.editor.kernel();
        match kernel.expr(id) {
            Expr::Load(..) => true,
            // A select between available values is as cheap as a name.
            Expr::Call(Op::Select | Op::And | Op::Or | Op::Not, ..) => cost::has_load(kernel, id),
            _ => cost::deserves_a_name(kernel, id),
        }
    }

    fn is_safe(&self, id: ExprId, certain: bool, scope: &LoopBody) -> bool {
        let kernel = self.editor.kernel();
        let mut safe = true;
        kernel.visit_expr(id, &mut |expr| match expr {
            Expr::Load(buffer, index) => {
                safe &= self.reach.has(kernel, *buffer, *index) || scope.certain.contains(&(*buffer, *index));
            }
            Expr::Call(op, dtype, _) => safe &= certain || !op.is_expensive(*dtype),
            _ => {}
        });
        safe
    }

    fn replace(&mut self, block: &mut Block, named: &FxHashMap<ExprId, ExprId>) {
        for stmt in block {
            stmt.map_exprs(|id| self.replaced(id, named));
            stmt.blocks_mut().for_each(|inner| self.replace(inner, named));
        }
    }

    fn replaced(&mut self, id: ExprId, named: &FxHashMap<ExprId, ExprId>) -> ExprId {
        fold::rewrite(&mut self.editor, id, &mut |_, id| named.get(&id).copied())
    }
}

/// A name for a hoisted value: after the buffer that it is loaded from, or after its operator.
pub(super) fn name(kernel: &Kernel, id: ExprId) -> String {
    match kernel.expr(id) {
        Expr::Load(buffer, _) => {
            let name = &kernel.buffer(*buffer).name;
            let words = [("_values", "value"), ("_crd", "coordinate"), ("_pos", "position")];
            let found = words.iter().find_map(|(end, word)| Some((name.strip_suffix(end)?, word)));
            match found {
                Some((stem, word)) => format!("{stem}_{word}"),
                None => format!("{name}_value"),
            }
        }
        Expr::Call(op, ..) => match (op, kernel.exprs.dtype(id).kind()) {
            (_, Kind::Bool) => "holds",
            (_, Kind::Int) => "offset",
            (Op::Mul, _) => "product",
            (Op::Add | Op::Sub, _) => "sum",
            (Op::Cast(_) | Op::Select, _) => "value",
            (op, _) => op.info().name,
        }
        .into(),
        _ => "value".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;
    use tamis_ir::kernel::Assumption;

    /// A loop over stored elements with a dense loop inside, which multiplies by the element.
    fn scaled(longer: bool) -> Make {
        let mut make = Make::new();
        let (zero, n, m) = (make.int(0), make.n, make.m);
        if longer {
            make.b.assume(Assumption::Longer { buffer: make.x, other: make.crd, more: 0 });
        }
        make.count("q", zero, n, |make, q| {
            let coordinate = make.load(make.crd, q);
            let i = make.b.name("i", coordinate);
            make.count("k", zero, m, |make, k| {
                let row = make.call(Op::Mul, &[i, m]);
                let place = make.b.add(row, k);
                let value = make.load(make.x, q);
                make.add_to(make.y, place, value);
            });
        });
        make
    }

    #[test]
    fn elements_that_are_there_are_read_before() {
        let expected = [
            "for q in 0..n",
            "    let i: i64 = A_crd[q]",
            "    let x_value: f64 = x[q]",
            "    for k in 0..m",
            "        y[(i * m) + k] = y[(i * m) + k] + x_value",
        ];
        assert_eq!(after(&[run], scaled(true)), expected);
    }

    #[test]
    fn elements_that_may_not_be_there_are_not() {
        let line = "        y[(i * m) + k] = y[(i * m) + k] + x[q]";
        assert_eq!(after(&[run], scaled(false)).last().map(String::as_str), Some(line));
    }

    #[test]
    fn names_move_and_conditions_are_read_once() {
        let mut make = Make::new();
        let (zero, one, n) = (make.int(0), make.int(1), make.n);
        let q = make.b.variable("q", tamis_ir::Value::I64(0));
        let at = make.b.get(q);
        let stop = make.load(make.pos, one);
        let cond = make.call(Op::Lt, &[at, stop]);
        let pos = make.pos;
        let y = make.y;
        let body = make.b.block(|b| {
            let start = b.load(pos, zero);
            let start = b.name("start", start);
            let value = b.call_in(Op::Cast(tamis_ir::DType::F64), tamis_ir::DType::I64, &[start]);
            b.store(y, at, value);
            let next = b.add(at, one);
            b.assign(q, next);
        });
        // Elements that the body reads may not exist if the condition is false at entry.
        make.b.emit(Stmt::While { cond, body });
        let _ = n;
        let expected = [
            "var q: i64 = 0",
            "let A_position: i64 = A_pos[1]",
            "while q < A_position",
            "    let start: i64 = A_pos[0]",
            "    y[q] = f64(start)",
            "    q = q + 1",
        ];
        assert_eq!(after(&[run], make), expected);
    }

    #[test]
    fn what_is_written_inside_stays() {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        let first = make.load(make.y, zero);
        make.b.store(make.y, zero, first);
        make.count("i", zero, n, |make, i| make.b.store(make.y, i, first));
        assert_eq!(after(&[run], make), ["y[0] = y[0]", "for i in 0..n", "    y[i] = y[0]"]);
    }
}
