//! Visitors of programs: traversal of statements and of the expressions that they evaluate.

use super::{ExprId, Extent, Program, Stmt, StmtId, StmtKind, TensorId};

impl Program {
    /// The first statement that writes a tensor.
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// assert!(program.first_write(program.results[0]).is_some());
    /// assert!(program.first_write(program.params[0]).is_none());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn first_write(&self, tensor: TensorId) -> Option<StmtId> {
        let mut found = None;
        self.visit(&mut |stmt| {
            if matches!(&stmt.kind, StmtKind::Assign { target, .. } if target.tensor == tensor) {
                found = found.or(Some(stmt.id));
            }
        });
        found
    }

    /// Visits every statement, outer ones first.
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let mut statements = 0;
    /// program.visit(&mut |_| statements += 1);
    /// assert_eq!(statements, 4, "a declaration, two loops, an update");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Stmt)) {
        visit_block(&self.body, visitor);
    }

    /// The expressions that a statement evaluates itself (without those of its blocks), in order.
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let mut roots = 0;
    /// program.visit(&mut |stmt| roots += program.roots(stmt).len());
    /// assert!(roots > 0);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn roots(&self, stmt: &Stmt) -> Vec<ExprId> {
        match &stmt.kind {
            StmtKind::Declare(tensor) => {
                let declaration = self.tensor(*tensor).declaration.as_ref();
                declaration.and_then(|d| d.shape.clone()).unwrap_or_default()
            }
            StmtKind::Let { value, .. } => vec![*value],
            StmtKind::For { extent: Extent::Range(start, stop), .. } => vec![*start, *stop],
            StmtKind::For { .. } => Vec::new(),
            StmtKind::If { cond, .. } => vec![*cond],
            StmtKind::Assign { target, update, value } => {
                let subscripts = target.subscripts.iter().map(|s| s.expr);
                let extra = update.iter().flat_map(|u| u.extra.iter().copied());
                subscripts.chain([*value]).chain(extra).collect()
            }
        }
    }

    /// Visits the expressions of [`Program::roots`] and their operands, users before operands.
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let mut used = Vec::new();
    /// program.visit(&mut |stmt| program.visit_exprs(stmt, &mut |id| used.push(id)));
    /// assert!(!used.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn visit_exprs(&self, stmt: &Stmt, visitor: &mut dyn FnMut(ExprId)) {
        let mut open = self.roots(stmt);
        open.reverse();
        while let Some(id) = open.pop() {
            visitor(id);
            open.extend(self.expr(id).operands().into_iter().rev());
        }
    }
}

/// Visits every statement of a block, outer ones first.
///
/// ```
/// use tamis_ir::program::visit_block;
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let mut statements = 0;
/// visit_block(&program.body[1..], &mut |_| statements += 1);
/// assert_eq!(statements, 3, "two loops and an update");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn visit_block<'a>(block: &'a [Stmt], visitor: &mut dyn FnMut(&'a Stmt)) {
    block.iter().for_each(|stmt| visit_stmt(stmt, visitor));
}

pub(super) fn visit_stmt<'a>(stmt: &'a Stmt, visitor: &mut dyn FnMut(&'a Stmt)) {
    visitor(stmt);
    match &stmt.kind {
        StmtKind::For { body, .. } => visit_block(body, visitor),
        StmtKind::If { then, otherwise, .. } => {
            visit_block(then, visitor);
            visit_block(otherwise, visitor);
        }
        _ => {}
    }
}
