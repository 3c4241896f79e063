//! Source locations of a program: spans of statements, expressions and declarations in its text.

use super::{ExprId, IndexId, StmtId, TensorId};
use crate::diag::{Diagnostic, Source, Span};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Spans of a program that was parsed; empty for one that was built.
///
/// ```
/// use tamis_ir::Program;
/// # let program = Program::parse("
/// # def rowsum(A):
/// #     y = tensor('dense')
/// #     for i, j in _:
/// #         y[i] += A[i,j]
/// #     return y
/// # ")?;
/// let span = program.origin.tensor(program.results[0]);
/// let source = program.origin.source.as_ref().unwrap();
/// assert!(source.text[span.range()].starts_with("y = tensor"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProgramSpans {
    /// The text.
    pub source: Option<Arc<Source>>,
    /// Statements (headers of blocks).
    pub stmts: FxHashMap<StmtId, Span>,
    /// Expressions, by the statement they occur in.
    pub exprs: FxHashMap<(StmtId, ExprId), Span>,
    /// Targets of assignments.
    pub targets: FxHashMap<StmtId, Span>,
    /// The declarations of tensors (parameters: in the header).
    pub tensors: FxHashMap<TensorId, Span>,
    /// The declarations of loop indices.
    pub indices: FxHashMap<IndexId, Span>,
}

impl ProgramSpans {
    /// The span of a statement.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// let span = program.origin.stmt(program.body[0].id);
    /// let source = program.origin.source.as_ref().unwrap();
    /// assert_eq!(source.line_column(span.start).0, 3);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn stmt(&self, stmt: StmtId) -> Span {
        self.stmts.get(&stmt).copied().unwrap_or_default()
    }

    /// The span of an expression within a statement, or of the statement.
    ///
    /// ```
    /// use tamis_ir::{Program, program::StmtKind};
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// let source = program.origin.source.clone().unwrap();
    /// program.visit(&mut |stmt| {
    ///     if let StmtKind::Assign { value, .. } = &stmt.kind {
    ///         assert_eq!(&source.text[program.origin.expr(stmt.id, *value).range()], "A[i,j]");
    ///     }
    /// });
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn expr(&self, stmt: StmtId, expr: ExprId) -> Span {
        self.exprs.get(&(stmt, expr)).copied().unwrap_or_else(|| self.stmt(stmt))
    }

    /// The span of the target of an assignment.
    ///
    /// ```
    /// use tamis_ir::{Program, program::StmtKind};
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// let source = program.origin.source.clone().unwrap();
    /// program.visit(&mut |stmt| {
    ///     if let StmtKind::Assign { .. } = &stmt.kind {
    ///         assert_eq!(&source.text[program.origin.target(stmt.id).range()], "y[i]");
    ///     }
    /// });
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn target(&self, stmt: StmtId) -> Span {
        self.targets.get(&stmt).copied().unwrap_or_else(|| self.stmt(stmt))
    }

    /// The span of a tensor's declaration.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// let source = program.origin.source.clone().unwrap();
    /// assert_eq!(&source.text[program.origin.tensor(program.params[0]).range()], "A");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn tensor(&self, tensor: TensorId) -> Span {
        self.tensors.get(&tensor).copied().unwrap_or_default()
    }

    /// Attaches the text to a diagnostic, so that its labels can be shown.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic, Program};
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// let place = program.origin.tensor(program.params[0]);
    /// let d = Diagnostic::new(Code::E0902, "`A` was given no tensor").label(place, "this one");
    /// assert!(program.origin.attach(d).render(false).contains("def rowsum(A):"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn attach(&self, d: Diagnostic) -> Diagnostic {
        match &self.source {
            Some(source) => d.with_source(source),
            None => d,
        }
    }
}
