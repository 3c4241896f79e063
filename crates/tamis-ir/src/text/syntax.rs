//! Syntax trees: the output of the parser, with a span on every node and unresolved names.

use crate::algebra::{Op, Value};
use crate::diag::Span;
use crate::program::EntryPart;

/// A name and its span.
///
/// ```
/// use tamis_ir::Source;
/// use tamis_ir::text::{parser::parse_expression, syntax::ExprKind};
/// let expr = parse_expression(&Source::new("access", "A[i]"))?;
/// assert!(matches!(expr.kind, ExprKind::Index { base, .. } if base.text == "A"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// `def name(params): body`
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Function {
    pub name: Name,
    pub params: Vec<Name>,
    pub body: Vec<Stmt>,
    pub span: Span,
}

/// The contents of a text: operators, and at most one program.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct File {
    pub operators: Vec<Operator>,
    pub function: Option<Function>,
}

/// `@op(laws) def name(params): return body`
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Operator {
    pub name: Name,
    pub params: Vec<Name>,
    pub laws: Vec<Law>,
    pub body: Expr,
    /// The line with `@op`.
    pub decorator: Span,
}

/// A declared law: `commutative`, or with its value, `identity=0`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Law {
    pub name: Name,
    pub value: Option<Expr>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Stmt {
    pub kind: StmtKind,
    /// The statement, or the header of a block.
    pub span: Span,
}

/// The forms of statements.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) enum StmtKind {
    /// `target = value`, or `target op= value`; the target is a name or a subscripted name.
    Assign { target: Expr, op: Option<Op>, value: Expr },
    /// `for i, j in extent: body`, the extent inside its attributes: `parallel(unroll(_, 4))`.
    For { indices: Vec<Name>, attributes: Vec<Attribute>, extent: Extent, body: Vec<Stmt> },
    /// `if cond: then else: otherwise`
    If { cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt> },
    /// `return a, b`
    Return(Vec<Name>),
}

/// The execution attributes of a loop.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub(crate) struct Attribute {
    pub name: Name,
    pub number: Option<(u64, Span)>,
}

/// The extent of a loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Extent {
    /// `_`: from the tensors that the index subscripts.
    Infer,
    /// `range(stop)` or `range(start, stop)`.
    Range(Option<Expr>, Expr),
}

/// An expression.
///
/// ```
/// use tamis_ir::{Source, Span};
/// use tamis_ir::text::parser::parse_expression;
/// let expr = parse_expression(&Source::new("access", "A[i]"))?;
/// assert_eq!(expr.span, Span::new(0..4));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

/// The forms of expressions.
///
/// ```
/// use tamis_ir::{Source, Value};
/// use tamis_ir::text::{parser::parse_expression, syntax::ExprKind};
/// let expr = parse_expression(&Source::new("number", "12"))?;
/// assert_eq!(expr.kind, ExprKind::Number(Value::I64(12)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExprKind {
    Number(Value),
    Str(String),
    Name(String),
    /// `A[i, j]`
    Index {
        base: Name,
        subscripts: Vec<Expr>,
    },
    /// `A.shape[k]`
    Size {
        base: Name,
        dim: u64,
    },
    /// `A.nnz`, `A.coords[0, p]`, `A.data[p]`, `A.first[i]`
    Entry {
        base: Name,
        part: EntryPart,
        at: Vec<Expr>,
    },
    /// A unary or binary operator.
    Operator(Op, Vec<Expr>),
    /// `f(a, b, key=c)`
    Call {
        function: Name,
        args: Vec<Expr>,
        keywords: Vec<(Name, Expr)>,
    },
    /// `(a, b)`: only where a shape is expected.
    Tuple(Vec<Expr>),
    /// `min[j](e)`, in index notation: `e` for all `j`, reduced.
    Reduce {
        op: Op,
        indices: Vec<Name>,
        body: Box<Expr>,
    },
    /// A placeholder for an expression with a syntax error, which is already reported.
    Error,
}
