//! Id compaction: renumbers the expression and variable tables, and drops entries that no statement
//! uses.
//!
//! Buffers and parameters keep their ids, because callers refer to them by position. A name loses
//! its number suffix where it is unique without it.

use super::Options;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::kernel::{Builder, Expr, ExprId, Kernel, Stmt, VarId};

pub(super) fn run(kernel: Kernel, _: &Options) -> Kernel {
    let names = kernel.vars.iter().map(|v| v.name.clone()).chain(kernel.buffers.iter().map(|b| b.name.clone()));
    let mut table = IdTable {
        new: Builder::new(kernel.name.clone()),
        exprs: FxHashMap::default(),
        vars: Vec::new(),
        names: names.collect(),
    };
    for buffer in &kernel.buffers {
        table.new.buffer(buffer.name.clone(), buffer.elem, buffer.role);
    }
    table.vars = vec![None; kernel.vars.len()];
    for param in &kernel.params {
        let info = kernel.var(*param);
        let new = table.new.param(info.name.clone(), info.dtype);
        table.new.set_mutable(new, info.mutable);
        table.vars[param.index()] = Some(new);
    }
    for fact in &kernel.assumptions {
        let fact = fact.map_expr(|expr| table.expr(&kernel, expr));
        table.new.assume(fact);
    }
    let body = kernel.body.iter().map(|stmt| table.stmt(&kernel, stmt)).collect();
    let mut compact = table.new.finish_with(body);
    compact.labels = kernel.labels;
    compact
}

struct IdTable {
    new: Builder,
    exprs: FxHashMap<ExprId, ExprId>,
    vars: Vec<Option<VarId>>,
    names: FxHashSet<String>,
}

impl IdTable {
    fn var(&mut self, kernel: &Kernel, old: VarId) -> VarId {
        if let Some(new) = self.vars[old.index()] {
            return new;
        }
        let info = kernel.var(old);
        let new = self.new.new_var(self.stem(&info.name), info.dtype, info.mutable);
        self.new.set_lanes(new, info.lanes);
        self.new.set_origin(new, info.origin);
        self.vars[old.index()] = Some(new);
        new
    }

    fn expr(&mut self, kernel: &Kernel, old: ExprId) -> ExprId {
        if let Some(new) = self.exprs.get(&old) {
            return *new;
        }
        let new = match kernel.expr(old) {
            Expr::Vector(vector) => {
                let vector = vector.map(|operand| self.expr(kernel, operand));
                self.new.vector(vector)
            }
            Expr::Const(value) => self.new.constant(*value),
            Expr::Var(var) => {
                let var = self.var(kernel, *var);
                self.new.get(var)
            }
            Expr::Load(buffer, index) => {
                let index = self.expr(kernel, *index);
                self.new.load(*buffer, index)
            }
            Expr::Call(op, dtype, operands) => {
                let operands: Vec<ExprId> = operands.iter().map(|e| self.expr(kernel, *e)).collect();
                self.new.call_in(*op, *dtype, &operands)
            }
        };
        self.exprs.insert(old, new);
        new
    }

    fn stmt(&mut self, kernel: &Kernel, old: &Stmt) -> Stmt {
        // Inner blocks are rebuilt below; cloning the statement's own operands is cheap.
        let mut new = match old {
            Stmt::For { var, start, stop, hint, .. } => {
                Stmt::For { var: *var, start: *start, stop: *stop, body: Vec::new(), hint: *hint }
            }
            Stmt::While { cond, .. } => Stmt::While { cond: *cond, body: Vec::new() },
            Stmt::If { cond, .. } => Stmt::If { cond: *cond, then: Vec::new(), otherwise: Vec::new() },
            Stmt::Labelled { label, .. } => Stmt::Labelled { label: *label, body: Vec::new() },
            other => other.clone(),
        };
        new.map_exprs(|id| self.expr(kernel, id));
        match &mut new {
            Stmt::Let { var, .. }
            | Stmt::Assign { var, .. }
            | Stmt::For { var, .. }
            | Stmt::Search { var, .. }
            | Stmt::Insert { var, .. }
            | Stmt::Finalize { var, .. } => {
                *var = self.var(kernel, *var);
            }
            _ => {}
        }
        for (block, before) in new.blocks_mut().zip(old.blocks()) {
            *block = before.iter().map(|stmt| self.stmt(kernel, stmt)).collect();
        }
        new
    }

    /// A name without the number suffixes that made it unique.
    fn stem<'a>(&self, mut name: &'a str) -> &'a str {
        while let Some((stem, number)) = name.rsplit_once('_')
            && number.parse::<u32>().is_ok_and(|n| n >= 2)
            && self.names.contains(stem)
        {
            name = stem;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Make, after};
    use super::*;

    #[test]
    fn what_nothing_uses_is_gone() {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        for _ in 0..2 {
            make.b.new_var("i", tamis_ir::DType::I64, false);
        }
        let unused = make.b.add(n, n);
        let _ = make.b.load(make.x, unused);
        make.count("i", zero, n, |make, i| {
            let x = make.load(make.x, i);
            make.b.store(make.y, i, x);
        });
        let kernel = run(make.b.finish(), &Options::default());
        assert_eq!((kernel.vars.len(), kernel.exprs.len(), kernel.buffers.len()), (3, 4, 5));
        assert_eq!(kernel.vars[2].name, "i");
    }

    #[test]
    fn numbers_of_names_that_are_not_there_stay() {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        make.count("row_7", zero, n, |make, i| {
            let x = make.load(make.x, i);
            make.b.store(make.y, i, x);
        });
        assert_eq!(after(&[run], make), ["for row_7 in 0..n", "    y[row_7] = x[row_7]"]);
    }
}
