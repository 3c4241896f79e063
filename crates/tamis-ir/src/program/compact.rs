//! Compaction of a program's tables: unused entries are dropped, the others are renumbered in the
//! order of statements, so that equivalent programs are equal.

use super::{
    Access, Block, Expr, ExprId, ExprPool, Extent, IndexId, Program, Stmt, StmtKind, TensorId, VarId, visit_block,
};
use rustc_hash::FxHashMap;

impl Program {
    /// Drops unused expressions, and renumbers the others by first use.
    ///
    /// ```
    /// use tamis_ir::{Notation, Value, program::Expr};
    /// let mut program = Notation::parse("s = x[i]")?.plain()?;
    /// let expressions = program.exprs.len();
    /// program.exprs.intern(Expr::Literal(Value::I64(12345)));
    /// program.compact();
    /// assert_eq!(program.exprs.len(), expressions);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn compact(&mut self) {
        self.rename(Numbers::default());
    }

    /// Renumbers loop indices, bound names and tensors in textual order, drops unused ones, and
    /// [compacts](Program::compact) the expressions. A transformed program then equals the one that
    /// its text parses to.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let mut program = Notation::parse("s = x[i]")?.plain()?;
    /// program.indices.push("unused".to_string());
    /// program.renumber();
    /// assert_eq!(program.indices, ["i"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn renumber(&mut self) {
        let mut numbers = Numbers::default();
        for param in &self.params {
            numbers.tensors.insert(*param, TensorId(numbers.tensors.len() as u32));
        }
        visit_block(&self.body, &mut |stmt| match &stmt.kind {
            StmtKind::Declare(tensor) => {
                let next = TensorId(numbers.tensors.len() as u32);
                numbers.tensors.entry(*tensor).or_insert(next);
            }
            StmtKind::Let { var, .. } => {
                let next = VarId(numbers.vars.len() as u32);
                numbers.vars.entry(*var).or_insert(next);
            }
            StmtKind::For { index, .. } => {
                let next = IndexId(numbers.indices.len() as u32);
                numbers.indices.entry(*index).or_insert(next);
            }
            _ => {}
        });
        self.tensors = ordered(&self.tensors, numbers.tensors.iter().map(|(old, new)| (old.index(), new.index())));
        self.indices = ordered(&self.indices, numbers.indices.iter().map(|(old, new)| (old.index(), new.index())));
        self.vars = ordered(&self.vars, numbers.vars.iter().map(|(old, new)| (old.index(), new.index())));
        for id in self.params.iter_mut().chain(&mut self.results) {
            *id = numbers.tensor(*id);
        }
        let origin = &mut self.origin;
        let spans = std::mem::take(&mut origin.tensors);
        origin.tensors = spans.into_iter().filter_map(|(id, span)| Some((*numbers.tensors.get(&id)?, span))).collect();
        let spans = std::mem::take(&mut origin.indices);
        origin.indices = spans.into_iter().filter_map(|(id, span)| Some((*numbers.indices.get(&id)?, span))).collect();
        self.rename(numbers);
        self.infer_queried_ranks();
    }

    /// Renumbers expressions by first use, and the entries they refer to.
    fn rename(&mut self, numbers: Numbers) {
        let mut body = std::mem::take(&mut self.body);
        let old = std::mem::take(&mut self.exprs);
        let mut renamer = Renamer { old, new: ExprPool::default(), ids: FxHashMap::default(), numbers };
        renamer.block(self, &mut body);
        self.body = body;
        self.exprs = renamer.new;
        let spans = std::mem::take(&mut self.origin.exprs);
        let renamed = spans.into_iter().filter_map(|((stmt, id), span)| Some(((stmt, *renamer.ids.get(&id)?), span)));
        self.origin.exprs = renamed.collect();
    }
}

/// The items with a new id, in its order.
fn ordered<T: Clone>(items: &[T], numbers: impl Iterator<Item = (usize, usize)>) -> Vec<T> {
    let mut kept: Vec<(usize, T)> =
        numbers.filter_map(|(old, new)| items.get(old).map(|item| (new, item.clone()))).collect();
    kept.sort_by_key(|(new, _)| *new);
    kept.into_iter().map(|(_, item)| item).collect()
}

/// New ids; entries without one keep their own.
#[derive(Default)]
struct Numbers {
    tensors: FxHashMap<TensorId, TensorId>,
    indices: FxHashMap<IndexId, IndexId>,
    vars: FxHashMap<VarId, VarId>,
}

impl Numbers {
    fn tensor(&self, id: TensorId) -> TensorId {
        self.tensors.get(&id).copied().unwrap_or(id)
    }

    fn index(&self, id: IndexId) -> IndexId {
        self.indices.get(&id).copied().unwrap_or(id)
    }

    fn var(&self, id: VarId) -> VarId {
        self.vars.get(&id).copied().unwrap_or(id)
    }
}

struct Renamer {
    old: ExprPool,
    new: ExprPool,
    ids: FxHashMap<ExprId, ExprId>,
    numbers: Numbers,
}

impl Renamer {
    fn block(&mut self, program: &mut Program, block: &mut Block) {
        block.iter_mut().for_each(|stmt| self.stmt(program, stmt));
    }

    fn stmt(&mut self, program: &mut Program, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::Declare(tensor) => {
                *tensor = self.numbers.tensor(*tensor);
                let declaration = program.tensors[tensor.index()].declaration.as_mut();
                for dim in declaration.and_then(|d| d.shape.as_mut()).into_iter().flatten() {
                    *dim = self.expr(*dim);
                }
            }
            StmtKind::Let { var, value } => {
                *var = self.numbers.var(*var);
                *value = self.expr(*value);
            }
            StmtKind::For { index, extent, body, .. } => {
                *index = self.numbers.index(*index);
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
        access.tensor = self.numbers.tensor(access.tensor);
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
            Expr::Entry(entry) => {
                entry.tensor = self.numbers.tensor(entry.tensor);
                entry.at.iter_mut().for_each(|operand| *operand = self.expr(*operand));
            }
            Expr::Index(index) => *index = self.numbers.index(*index),
            Expr::Var(var) => *var = self.numbers.var(*var),
            Expr::Size(tensor, _) => *tensor = self.numbers.tensor(*tensor),
            Expr::Literal(_) => {}
        }
        let new = self.new.intern(expr);
        self.ids.insert(id, new);
        new
    }
}
