//! Index notation: the description of a computation without loops or formats. `y[i] = A[i,j] *
//! x[j]`.
//!
//! [`Notation::parse`] parses it into [`Assignment`]s without reductions inside: an index that is
//! missing on the left is reduced over the smallest sub-expression that holds its uses (`reduce`),
//! and a nested reduction becomes a temporary. [`Notation::program`] makes a loop program
//! (`build`); a scheduler chooses the loops and their order.

mod adjoint;
mod build;
mod einsum;
mod ellipsis;
mod loops;
mod reduce;
mod sizes;
mod subscripts;
mod versions;

pub use adjoint::{Adjoint, Differentiate, Tangents};
pub use build::{ProgramNode, text};
pub use ellipsis::{EinsumOperand, ExpandedEinsum};

use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Source, Span};
use crate::text::parser;
use crate::text::syntax::{self, Expr, ExprKind, Name};
use std::sync::Arc;

/// Statements of index notation.
///
/// ```
/// use tamis_ir::Notation;
/// let notation = Notation::parse("D[i] = A[i,j] + B[i,j] + C[i]")?;
/// let lines: Vec<String> = notation.assignments.iter().map(|a| a.to_string()).collect();
/// assert_eq!(lines, ["t0[i] += A[i, j] + B[i, j]", "D[i] = t0[i] + C[i]"]);
/// assert_eq!((notation.params(), notation.results()), (vec!["A", "B", "C"], vec!["D"]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Notation {
    /// The text.
    pub source: Arc<Source>,
    /// The assignments, in order.
    pub assignments: Vec<Assignment>,
    operators: Vec<Op>,
    params: Vec<Name>,
    /// The name of each parameter in the assignments: its own, unless a statement gives that name a
    /// new value.
    operands: Vec<String>,
    results: Vec<Name>,
}

/// `target[subscripts] = body`, or with an operator `target op= body` for all values of the indices
/// that are used.
///
/// ```
/// use tamis_ir::{Notation, algebra::Op};
/// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
/// assert_eq!((spmv.target.text.as_str(), spmv.op), ("y", Some(Op::Add)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Assignment {
    pub target: Name,
    pub subscripts: Vec<Expr>,
    /// The operator that combines the values of one element; `None` if each element has one value.
    pub op: Option<Op>,
    /// Contains no reductions.
    pub body: Expr,
    pub span: Span,
    /// True if the target is a temporary for a sub-expression of a statement.
    pub temporary: bool,
    /// True if an earlier assignment has given values to the target.
    pub again: bool,
    /// Indices with specified extents.
    pub ranges: Vec<IndexRange>,
}

/// `for index in range(start, stop)`: the specified extent of an index.
///
/// ```
/// use tamis_ir::Notation;
/// let moving = &Notation::parse("y[i] = x[i + k] for k in range(3)")?.assignments[0];
/// assert_eq!(moving.ranges[0].index, "k");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IndexRange {
    pub index: String,
    pub start: Option<Expr>,
    pub stop: Expr,
}

impl Assignment {
    /// The indices of the target, in their order, each once.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
    /// assert_eq!(spmv.free(), ["i"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn free(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.subscripts.iter().for_each(|s| indices_in(s, true, &mut names));
        names.into_iter().map(|name| name.text).collect()
    }

    /// The indices of the body that the target lacks.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
    /// assert_eq!(spmv.reduced(), ["j"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn reduced(&self) -> Vec<String> {
        let free = self.free();
        let mut names = Vec::new();
        indices_in(&self.body, false, &mut names);
        let mut reduced: Vec<String> = names.into_iter().map(|name| name.text).collect();
        reduced.extend(self.ranges.iter().map(|range| range.index.clone()));
        let mut seen = free;
        reduced.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        reduced
    }

    /// All indices: those of the target, then the others.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
    /// assert_eq!(spmv.indices(), ["i", "j"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn indices(&self) -> Vec<String> {
        let mut all = self.free();
        all.extend(self.reduced());
        all
    }

    /// Comparisons of indices that are factors of a body: nothing is computed where one is false.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let diagonal = &Notation::parse("D[i,j] = d[i] * e[j] * (i == j)")?.assignments[0];
    /// assert_eq!(diagonal.masks(&diagonal.body).len(), 1);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn masks<'b>(&self, body: &'b Expr) -> Vec<&'b Expr> {
        let mut found = Vec::new();
        if matches!(self.op, None | Some(Op::Add | Op::Sub)) {
            masks_in(body, &self.indices(), &mut found);
        }
        found
    }

    /// The accesses of the body: tensors with their subscripts, each once.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
    /// let (tensor, subscripts) = spmv.accesses()[0];
    /// assert_eq!((tensor, subscripts.len()), ("A", 2));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn accesses(&self) -> Vec<(&str, &[Expr])> {
        let mut found = Vec::new();
        accesses_in(&self.body, &mut found);
        let mut once: Vec<(&str, &[Expr])> = Vec::new();
        for access in found {
            if !once.iter().any(|known| known.0 == access.0 && same_all(known.1, access.1)) {
                once.push(access);
            }
        }
        once
    }
}

impl std::fmt::Display for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target = build::access_text(&self.target.text, &self.subscripts);
        let op = self.op.and_then(|op| op.info().symbol.or(Some(op.info().name))).unwrap_or("");
        write!(f, "{target} {op}= {}", build::text(&self.body))?;
        for IndexRange { index, start, stop } in &self.ranges {
            let start = start.as_ref().map_or(String::new(), |start| build::text(start) + ", ");
            write!(f, " for {index} in range({start}{})", build::text(stop))?;
        }
        Ok(())
    }
}

impl Notation {
    /// Reads index notation.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
    /// assert_eq!((spmv.params(), spmv.results()), (vec!["A", "x"], vec!["y"]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse(text: &str) -> std::result::Result<Notation, Diagnostics> {
        Notation::parse_source(&Source::new("notation", text), &[])
    }

    /// Parses index notation from a named source, with externally defined operators.
    ///
    /// ```
    /// use tamis_ir::{Notation, Source, algebra::Laws, program::define};
    /// let square = define("square", &["a"], "a * a", Laws::default())?;
    /// let text = Source::new("square.txt", "y[i] = square(x[i])");
    /// assert_eq!(Notation::parse_source(&text, &[square])?.operators(), [square]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse_source(source: &Arc<Source>, operators: &[Op]) -> std::result::Result<Notation, Diagnostics> {
        Notation::parse_given(source, operators, &[])
    }

    /// [`Notation::parse_source`] with existing tensors of these names: an update of one of them
    /// starts from it.
    ///
    /// ```
    /// use tamis_ir::{Notation, Source};
    /// let text = Source::new("notation", "y[i] += A[i,j] * x[j]");
    /// assert_eq!(Notation::parse_given(&text, &[], &["A", "x", "y"])?.params(), ["y", "A", "x"]);
    /// assert_eq!(Notation::parse_given(&text, &[], &["A", "x"])?.params(), ["A", "x"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse_given(
        source: &Arc<Source>,
        operators: &[Op],
        given: &[&str],
    ) -> std::result::Result<Notation, Diagnostics> {
        let (defined, statements) = parser::parse_notation(source)?;
        let mut operators = operators.to_vec();
        if !defined.is_empty() {
            operators.extend(crate::program::parse_operators(&Source::new(
                source.name.clone(),
                definitions(source, &statements),
            ))?);
        }
        let fail = |d: Diagnostic| Diagnostics(vec![d.with_source(source)]);
        Notation::of_statements(source, operators, &statements, given).map_err(fail)
    }

    /// True if a text looks like index notation, and not like a loop program.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// assert!(Notation::looks_like("y[i] = A[i,j] * x[j]") && Notation::looks_like("ij,j->i"));
    /// assert!(Notation::looks_like("s = 3 + 4"));
    /// assert!(!Notation::looks_like("def f(A):\n    return A") && !Notation::looks_like("examples/spmv.py"));
    /// ```
    pub fn looks_like(text: &str) -> bool {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut lines = lines.peekable();
        if lines.clone().any(|line| line.starts_with("def ")) && !lines.clone().any(|line| line.starts_with("@op")) {
            return false;
        }
        lines.peek().is_some()
            && (einsum::is_einsum(text)
                || text.split(['\n', ';']).any(|part| {
                    let left =
                        part.split_once('=').map(|(left, _)| left.trim().trim_end_matches(['+', '*', '-']).trim());
                    left.is_some_and(|left| part.contains(['[', '(']) || is_name(left))
                }))
            && !text.lines().any(|line| line.trim_start().starts_with("return ") && !text.contains("@op"))
    }

    fn of_statements(
        source: &Arc<Source>,
        operators: Vec<Op>,
        statements: &[syntax::Stmt],
        given: &[&str],
    ) -> Result<Notation> {
        let statements: Vec<syntax::Stmt> = statements.iter().map(subscripts::normal).collect();
        let versions::SsaForm { mut assignments, params, operands, results } = versions::name(&statements, given)?;
        sizes::of_operands(&mut assignments);
        let notation = Notation { source: source.clone(), assignments, operators, params, operands, results };
        notation.bounded()?;
        Ok(notation)
    }

    /// Checks that every index subscripts a dimension of an operand, or has a range.
    fn bounded(&self) -> Result<()> {
        for assignment in self.assignments.iter().filter(|assignment| !assignment.again) {
            let unbounded = versions::unbounded(&assignment.subscripts, &assignment.body, &assignment.ranges);
            if let Some(index) = unbounded.first() {
                return Err(Diagnostic::new(Code::E0113, format!("index `{}` has no extent", index.text))
                    .label(index.span, "subscripts no tensor on the right")
                    .help(format!("subscript a tensor with it, as in `x[{}]`", index.text))
                    .help(format!("or write its range: `... for {} in range(10)`", index.text)));
            }
        }
        Ok(())
    }

    /// The operators that users defined.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// assert!(Notation::parse("y[i] = A[i,j] * x[j]")?.operators().is_empty());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn operators(&self) -> &[Op] {
        &self.operators
    }

    /// The parameters, in order of appearance.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// assert_eq!(Notation::parse("y[i] = A[i,j] * x[j]")?.params(), ["A", "x"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn params(&self) -> Vec<&str> {
        self.params.iter().map(|name| name.text.as_str()).collect()
    }

    /// The names of the parameters in the assignments, in the order of [`Notation::params`].
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let spmv = Notation::parse("y[i] = A[i,j] * x[j]")?;
    /// assert_eq!(spmv.operands(), spmv.params(), "no statement changes a parameter");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn operands(&self) -> Vec<&str> {
        self.operands.iter().map(String::as_str).collect()
    }

    /// The names that are assigned and not read by a later statement.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let notation = Notation::parse("t[i] = A[i,j]; s = t[i] * t[i]")?;
    /// assert_eq!(notation.results(), ["s"], "`t` is read by a later statement");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn results(&self) -> Vec<&str> {
        self.results.iter().map(|name| name.text.as_str()).collect()
    }
}

/// True if two expressions are equal, regardless of their spans.
///
/// ```
/// use tamis_ir::notation::{Notation, same};
/// let square = &Notation::parse("s[i] = x[i] * x[i]")?.assignments[0];
/// assert!(same(&square.body, &square.body) && !same(&square.body, &square.subscripts[0]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn same(a: &Expr, b: &Expr) -> bool {
    use ExprKind::{Call, Entry, Index, Operator, Reduce};
    match (&a.kind, &b.kind) {
        (Index { base: x, subscripts: s }, Index { base: y, subscripts: t }) => x.text == y.text && same_all(s, t),
        (Operator(x, s), Operator(y, t)) => x == y && same_all(s, t),
        (Call { function: x, args: s, .. }, Call { function: y, args: t, .. }) => x.text == y.text && same_all(s, t),
        (Reduce { op: x, indices: i, body: s }, Reduce { op: y, indices: j, body: t }) => {
            x == y && i.len() == j.len() && i.iter().zip(j).all(|(i, j)| i.text == j.text) && same(s, t)
        }
        (Entry { base: x, part: p, at: s }, Entry { base: y, part: q, at: t }) => {
            x.text == y.text && p == q && same_all(s, t)
        }
        (ExprKind::Size { base: x, dim: p }, ExprKind::Size { base: y, dim: q }) => x.text == y.text && p == q,
        (x, y) => x == y,
    }
}

/// True if two lists of expressions are equal, regardless of their spans.
///
/// ```
/// use tamis_ir::notation::{Notation, same_all};
/// let spmv = &Notation::parse("y[i] = A[i,j] * x[j]")?.assignments[0];
/// assert!(!same_all(&spmv.subscripts, spmv.accesses()[0].1), "`i` is not `i, j`");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn same_all(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// True if a text is a name, as on the left of `s = 3 + 4`.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The text before the first statement, which defines operators.
fn definitions(source: &Source, statements: &[syntax::Stmt]) -> String {
    let end = statements.first().map_or(source.text.len(), |stmt| stmt.span.start as usize);
    source.text.get(..end).unwrap_or_default().to_string()
}

/// The indices of an expression, each once: names in subscripts, or, `within` subscripts, names.
pub(crate) fn indices_in(expr: &Expr, within: bool, found: &mut Vec<Name>) {
    let mut add = |name: &Name| {
        if !found.iter().any(|other| other.text == name.text) {
            found.push(name.clone());
        }
    };
    match &expr.kind {
        ExprKind::Name(text) if within => add(&Name { text: text.clone(), span: expr.span }),
        ExprKind::Index { subscripts, .. } => subscripts.iter().for_each(|s| indices_in(s, true, found)),
        ExprKind::Operator(_, operands) => operands.iter().for_each(|e| indices_in(e, within, found)),
        ExprKind::Call { args, .. } => args.iter().for_each(|e| indices_in(e, within, found)),
        ExprKind::Entry { at, .. } => at.iter().for_each(|e| indices_in(e, true, found)),
        ExprKind::Reduce { indices, body, .. } => {
            indices_in(body, within, found);
            indices.iter().for_each(|name| {
                if !found.iter().any(|other| other.text == name.text) {
                    found.push(name.clone());
                }
            });
        }
        _ => {}
    }
}

fn masks_in<'a>(expr: &'a Expr, indices: &[String], found: &mut Vec<&'a Expr>) {
    let ExprKind::Operator(op, operands) = &expr.kind else { return };
    match op {
        Op::Mul => operands.iter().for_each(|e| masks_in(e, indices, found)),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge if operands.iter().all(|e| is_of_indices(e, indices)) => {
            found.push(expr);
        }
        _ => {}
    }
}

/// True if an expression is a sum of indices and integers.
fn is_of_indices(expr: &Expr, indices: &[String]) -> bool {
    match &expr.kind {
        ExprKind::Name(text) => indices.contains(text),
        ExprKind::Number(value) => value.as_i64().is_some(),
        ExprKind::Operator(Op::Add | Op::Sub | Op::Neg, operands) => operands.iter().all(|e| is_of_indices(e, indices)),
        _ => false,
    }
}

fn accesses_in<'a>(expr: &'a Expr, found: &mut Vec<(&'a str, &'a [Expr])>) {
    match &expr.kind {
        ExprKind::Index { base, subscripts } => {
            found.push((&base.text, subscripts));
            subscripts.iter().for_each(|s| accesses_in(s, found));
        }
        ExprKind::Name(text) => found.push((text, &[])),
        ExprKind::Operator(_, operands) => operands.iter().for_each(|e| accesses_in(e, found)),
        ExprKind::Call { args, .. } => args.iter().for_each(|e| accesses_in(e, found)),
        ExprKind::Reduce { body, .. } => accesses_in(body, found),
        _ => {}
    }
}
