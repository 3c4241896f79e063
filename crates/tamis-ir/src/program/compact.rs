//! Rebuilding a program's expression pool in the order of its statements, without what nothing uses: programs that
//! say the same are then equal.

use super::{Access, Block, Expr, ExprId, ExprPool, Extent, Program, Stmt, StmtKind};
use rustc_hash::FxHashMap;

impl Program {
    /// Drops expressions that no statement uses, and numbers the others by their first use.
    pub fn compact(&mut self) {
        let mut body = std::mem::take(&mut self.body);
        let mut renamer =
            Renamer { old: std::mem::take(&mut self.exprs), new: ExprPool::default(), ids: FxHashMap::default() };
        renamer.block(self, &mut body);
        self.body = body;
        self.exprs = renamer.new;
        let spans = std::mem::take(&mut self.origin.exprs);
        let renamed = spans.into_iter().filter_map(|((stmt, id), span)| Some(((stmt, *renamer.ids.get(&id)?), span)));
        self.origin.exprs = renamed.collect();
    }
}

struct Renamer {
    old: ExprPool,
    new: ExprPool,
    ids: FxHashMap<ExprId, ExprId>,
}

impl Renamer {
    fn block(&mut self, program: &mut Program, block: &mut Block) {
        block.iter_mut().for_each(|stmt| self.stmt(program, stmt));
    }

    fn stmt(&mut self, program: &mut Program, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::Declare(tensor) => {
                let declaration = program.tensors[tensor.index()].declaration.as_mut();
                for dim in declaration.and_then(|d| d.shape.as_mut()).into_iter().flatten() {
                    *dim = self.expr(*dim);
                }
            }
            StmtKind::Let { value, .. } => *value = self.expr(*value),
            StmtKind::For { extent, body, .. } => {
                if let Extent::Range(start, stop) = extent {
                    (*start, *stop) = (self.expr(*start), self.expr(*stop));
                }
                self.block(program, body);
            }
            StmtKind::If { cond, then, otherwise } => {
                *cond = self.expr(*cond);
                self.block(program, then);
                self.block(program, otherwise);
            }
            StmtKind::Assign { target, update, value } => {
                self.access(target);
                *value = self.expr(*value);
                for extra in update.iter_mut().flat_map(|u| &mut u.extra) {
                    *extra = self.expr(*extra);
                }
            }
        }
    }

    fn access(&mut self, access: &mut Access) {
        for subscript in &mut access.subscripts {
            subscript.expr = self.expr(subscript.expr);
        }
    }

    fn expr(&mut self, id: ExprId) -> ExprId {
        if let Some(new) = self.ids.get(&id) {
            return *new;
        }
        let mut expr = self.old.get(id).clone();
        match &mut expr {
            Expr::Call(_, operands) => operands.iter_mut().for_each(|operand| *operand = self.expr(*operand)),
            Expr::Read(access) => self.access(access),
            _ => {}
        }
        let new = self.new.intern(expr);
        self.ids.insert(id, new);
        new
    }
}
