//! Loop programs: `for`, `if`, `let`, declarations and assignments over tensors that look dense.
//!
//! Statements are trees; pure expressions are interned in an [`ExprPool`], so equality is one
//! comparison. [`Program::parse`] makes a program and `Display` prints it; a printed program parses
//! to the same program. [`Program::check`] infers types and dimensions for the tensors of a call.

mod attributes;
mod compact;
pub mod dims;
mod lifecycle;
mod masks;
mod operators;
mod pool;
mod print;
mod resolve;
pub mod types;
mod verify;

pub use attributes::{Attributes, Bound, Vectorize};
pub use dims::{InferredExtents, LoopExtent};
pub use masks::{Atom, Comparison, Linear, Mask, Masks};
pub(crate) use operators::definition as definition_text;
pub use operators::{define, parse_operators, parse_operators_with};
pub use pool::{ExprId, ExprPool};
pub use types::Types;

use crate::algebra::{DType, Op, Value};
use crate::diag::{Diagnostic, Diagnostics, Source, Span};
use crate::format::{Format, FormatSpec};
use crate::intern::ids;
use rustc_hash::FxHashMap;
use std::sync::Arc;

ids! {
    /// A tensor or scalar: a parameter, or declared by the program.
    TensorId
    /// A loop index; each loop has its own.
    IndexId
    /// A name bound by `d = ...`.
    VarId
    /// A statement, for finding its spans.
    StmtId
}

/// An expression; operands are ids in the same [`ExprPool`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A number from the user's text; takes the type of the other operand.
    Literal(Value),
    /// The value of a loop index, an `i64`.
    Index(IndexId),
    /// The value of a name bound by `d = ...`.
    Var(VarId),
    /// An element of a tensor.
    Read(Access),
    /// An operator or function.
    Call(Op, Vec<ExprId>),
    /// The size of a dimension, `A.shape[k]`.
    Size(TensorId, usize),
    /// A query of the stored entries of a parameter, such as `A.nnz` or `A.coords[0, p]`.
    Entry(Entry),
}

impl Expr {
    /// The expressions that this one uses, in their order.
    pub fn operands(&self) -> Vec<ExprId> {
        match self {
            Expr::Call(_, operands) => operands.clone(),
            Expr::Read(access) => access.subscripts.iter().map(|s| s.expr).collect(),
            Expr::Entry(entry) => entry.at.clone(),
            Expr::Literal(_) | Expr::Index(_) | Expr::Var(_) | Expr::Size(..) => Vec::new(),
        }
    }
}

/// A query of the stored entries of a parameter. Entries are numbered in storage order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Entry {
    pub tensor: TensorId,
    pub what: EntryPart,
    /// The position of the entry, or the coordinates that [`EntryPart::First`] locates.
    pub at: Vec<ExprId>,
}

/// A query about stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryPart {
    /// `A.nnz`: the number of stored entries.
    Count,
    /// `A.coords[d, p]`: the coordinate of entry `p` along dimension `d`.
    Coordinate(usize),
    /// `A.data[p]`: its value.
    Value,
    /// `A.first[i]`: the number of entries whose coordinate in the outermost level is below `i`, so
    /// that row `i` is stored in `A.first[i]` to `A.first[i + 1]` (as in `indptr` of CSR).
    /// `A.first[i, j]` compares the coordinates of the two outermost levels lexicographically. The
    /// coordinates are any integers.
    First,
}

impl EntryPart {
    /// The name of the attribute.
    pub const fn name(self) -> &'static str {
        match self {
            EntryPart::Count => "nnz",
            EntryPart::Coordinate(_) => "coords",
            EntryPart::Value => "data",
            EntryPart::First => "first",
        }
    }

    /// The syntax, for messages.
    pub const fn form(self) -> &'static str {
        match self {
            EntryPart::Count => "A.nnz",
            EntryPart::Coordinate(_) => "A.coords[0, p]",
            EntryPart::Value => "A.data[p]",
            EntryPart::First => "A.first[i]",
        }
    }
}

/// An element of a tensor: one subscript per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Access {
    pub tensor: TensorId,
    pub subscripts: Vec<Subscript>,
}

/// A subscript: any integer expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Subscript {
    pub expr: ExprId,
    /// The traversal protocol of the level, if specified.
    pub protocol: Option<Protocol>,
    /// `~`: reads out of bounds give a missing value, and writes out of bounds vanish.
    pub permissive: bool,
}

/// The protocol that traverses a level when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Iterate over stored coordinates, in order.
    Walk,
    /// Locate single coordinates.
    Follow,
    /// Iterate over stored coordinates, leading and skipping ahead by search.
    Gallop,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 3] = [Protocol::Walk, Protocol::Follow, Protocol::Gallop];

    /// The word users type.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Walk => "walk",
            Protocol::Follow => "follow",
            Protocol::Gallop => "gallop",
        }
    }
}

/// A tensor of the program.
///
/// ```
/// let program = tamis_ir::Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// assert_eq!(program.tensor(program.params[0]).rank, 1);
/// assert!(program.tensor(program.results[0]).declaration.is_some());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TensorInfo {
    pub name: String,
    /// The number of its subscripts; for a parameter that is only queried, the number of dimensions
    /// that the queries name.
    pub rank: usize,
    /// The declaration; `None` for a parameter.
    pub declaration: Option<Declaration>,
}

/// `X = tensor(...)` or `x = scalar(...)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Declaration {
    pub storage: Storage,
    /// The specified fill.
    pub fill: Option<Value>,
    pub dtype: Option<DType>,
    /// The specified shape: integer expressions of literals, sizes and scalar parameters.
    pub shape: Option<Vec<ExprId>>,
}

/// The kind of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// A tensor in a format.
    Tensor(FormatSpec),
    /// A scalar.
    Scalar(ScalarKind),
}

/// The scalars of section 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarKind {
    /// `scalar(0.0)`: may be read and written freely.
    Plain,
    /// `sparse_scalar(0.0)`: tracks whether it was written, so that consumers can skip it.
    Sparse,
    /// `short_circuit_scalar(0)`: exits its reduction loop once the value can no longer change.
    ShortCircuit,
}

impl ScalarKind {
    /// All kinds.
    pub const ALL: [ScalarKind; 3] = [ScalarKind::Plain, ScalarKind::Sparse, ScalarKind::ShortCircuit];

    /// The word users type.
    pub const fn name(self) -> &'static str {
        match self {
            ScalarKind::Plain => "scalar",
            ScalarKind::Sparse => "sparse_scalar",
            ScalarKind::ShortCircuit => "short_circuit_scalar",
        }
    }
}

/// A list of statements.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Stmt {
    pub id: StmtId,
    pub kind: StmtKind,
}

/// Statements are equal if they have the same contents, regardless of their spans.
impl PartialEq for Stmt {
    fn eq(&self, other: &Stmt) -> bool {
        self.kind == other.kind
    }
}

/// The forms of statements.
///
/// ```
/// use tamis_ir::{Program, program::StmtKind};
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// let mut loops = Vec::new();
/// program.visit(&mut |stmt| {
///     if let StmtKind::For { index, .. } = &stmt.kind {
///         loops.push(program.indices[index.index()].clone());
///     }
/// });
/// assert_eq!(loops, ["i"]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum StmtKind {
    /// Resets a tensor to its fill. Inside a loop this happens in every iteration.
    Declare(TensorId),
    /// Binds a name to a value, until the end of the block.
    Let {
        var: VarId,
        value: ExprId,
    },
    For {
        index: IndexId,
        extent: Extent,
        /// The execution attributes; the meaning of the loop does not depend on them.
        attributes: Attributes,
        body: Block,
    },
    If {
        cond: ExprId,
        then: Block,
        otherwise: Block,
    },
    /// `target = value`, or with an update `target = op(target, value, extra...)`.
    Assign {
        target: Access,
        update: Option<Update>,
        value: ExprId,
    },
}

/// The operator of an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Update {
    pub op: Op,
    /// Operands after the value: `choose(X[i], e, -1)`.
    pub extra: Vec<ExprId>,
}

/// The extent of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The extent of the dimensions that the index subscripts.
    Infer,
    /// From the first up to (not including) the second.
    Range(ExprId, ExprId),
}

/// A loop program.
///
/// ```
/// use tamis_ir::Program;
/// let text = "\
/// def rowsum(A):
///     y = tensor(\"dense\")
///     for i, j in _:
///         y[i] += A[i,j]
///     return y
/// ";
/// let program = Program::parse(text).unwrap();
/// assert_eq!(Program::parse(&program.to_string()).unwrap(), program);
/// ```
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Program {
    pub name: String,
    pub params: Vec<TensorId>,
    pub results: Vec<TensorId>,
    pub tensors: Vec<TensorInfo>,
    /// Names of the loop indices.
    pub indices: Vec<String>,
    /// Names bound by `d = ...`.
    pub vars: Vec<String>,
    pub exprs: ExprPool,
    pub body: Block,
    /// The spans of declarations in the user's text.
    pub origin: ProgramSpans,
}

impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.name == other.name
            && self.params == other.params
            && self.results == other.results
            && self.tensors == other.tensors
            && self.indices == other.indices
            && self.vars == other.vars
            && self.exprs == other.exprs
            && self.body == other.body
    }
}

/// Spans of a program that was parsed; empty for one that was built.
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
    pub fn stmt(&self, stmt: StmtId) -> Span {
        self.stmts.get(&stmt).copied().unwrap_or_default()
    }

    /// The span of an expression within a statement, or of the statement.
    pub fn expr(&self, stmt: StmtId, expr: ExprId) -> Span {
        self.exprs.get(&(stmt, expr)).copied().unwrap_or_else(|| self.stmt(stmt))
    }

    /// The span of the target of an assignment.
    pub fn target(&self, stmt: StmtId) -> Span {
        self.targets.get(&stmt).copied().unwrap_or_else(|| self.stmt(stmt))
    }

    /// The span of a tensor's declaration.
    pub fn tensor(&self, tensor: TensorId) -> Span {
        self.tensors.get(&tensor).copied().unwrap_or_default()
    }

    /// Attaches the text to a diagnostic, so that its labels can be shown.
    pub fn attach(&self, d: Diagnostic) -> Diagnostic {
        match &self.source {
            Some(source) => d.with_source(source),
            None => d,
        }
    }
}

/// The properties of an argument that a program depends on.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ParamType {
    pub dtype: DType,
    /// Sizes of its dimensions; `None` for a size that the program infers.
    pub shape: Vec<Option<u64>>,
    /// The value of an integer scalar, so that bounds and shapes can depend on it.
    pub value: Option<i64>,
    /// True if it is a scalar whose type is weak, as that of a literal is.
    pub weak: bool,
}

/// A program with all types, dimensions and formats for the tensors of a call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Checked {
    pub types: Types,
    pub extents: InferredExtents,
    /// The format of every declared tensor (parameters keep theirs).
    pub formats: Vec<Option<Format>>,
    /// Dimensions of equal size, beyond those that the program implies.
    pub equal: Vec<Vec<(TensorId, usize)>>,
}

impl Checked {
    /// True if two dimensions have equal sizes.
    pub fn is_one_size(&self, a: (TensorId, usize), b: (TensorId, usize)) -> bool {
        a == b || self.equal.iter().any(|class| class.contains(&a) && class.contains(&b))
    }
}

impl Program {
    /// The outer index and the block length of a strip-mined loop, if the extent is one block: from
    /// `x*n` to `x*n + n`, or to a smaller end. The loop over blocks and the loop over the block
    /// together iterate over everything in order.
    pub fn piece_of(&self, extent: &Extent) -> Option<(IndexId, u64)> {
        let Extent::Range(start, stop) = extent else { return None };
        let int = |id: &ExprId| match self.expr(*id) {
            Expr::Literal(value) => value.as_i64(),
            _ => None,
        };
        let Expr::Call(Op::Mul, factors) = self.expr(*start) else { return None };
        let (outer, length) = match (self.expr(factors[0]), self.expr(factors[1])) {
            (Expr::Index(x), Expr::Literal(n)) | (Expr::Literal(n), Expr::Index(x)) => (*x, n.as_i64()?),
            _ => return None,
        };
        let ends = |id: &ExprId| {
            let Expr::Call(Op::Add, terms) = self.expr(*id) else { return false };
            terms.contains(start) && terms.iter().any(|term| int(term) == Some(length))
        };
        let within = match self.expr(*stop) {
            Expr::Call(Op::Min, operands) => operands.iter().any(ends),
            _ => ends(stop),
        };
        (within && length > 0).then_some((outer, length as u64))
    }

    /// Parses a program: syntax, names, ranks and lifecycles are checked.
    pub fn parse(text: &str) -> std::result::Result<Program, Diagnostics> {
        Program::parse_source(&Source::new("program", text))
    }

    /// Parses a program from a named source.
    pub fn parse_source(source: &Arc<Source>) -> std::result::Result<Program, Diagnostics> {
        Program::parse_source_with(source, &[])
    }

    /// Parses a program that uses externally defined operators.
    ///
    /// ```
    /// use tamis_ir::algebra::Laws;
    /// use tamis_ir::program::{Program, define};
    /// let far = define("far", &["a", "b"], "abs(a - b) > 1", Laws::default()).unwrap();
    /// let program = Program::parse_with("
    /// def count(x, y):
    ///     n = scalar(0)
    ///     for i in _:
    ///         n += far(x[i], y[i])
    ///     return n
    /// ", &[far]).unwrap();
    /// assert!(program.to_string().contains("abs(x[i] - y[i]) > 1"));
    /// ```
    pub fn parse_with(text: &str, operators: &[Op]) -> std::result::Result<Program, Diagnostics> {
        Program::parse_source_with(&Source::new("program", text), operators)
    }

    /// Parses a program from a named source, with externally defined operators.
    pub fn parse_source_with(source: &Arc<Source>, operators: &[Op]) -> std::result::Result<Program, Diagnostics> {
        let (function, operators) = operators::parse(source, operators)?;
        let function = function.ok_or_else(|| crate::text::parser::no_program(source))?;
        let program = resolve::resolve(&function, operators, source)?;
        program.verify()?;
        Ok(program)
    }

    /// A program from a syntax tree that was not parsed from its text, with its operators.
    pub(crate) fn of_syntax(
        function: &crate::text::syntax::Function,
        operators: &[Op],
        source: &Arc<Source>,
    ) -> std::result::Result<Program, Diagnostics> {
        let program = resolve::resolve(function, operators::by_name(operators), source)?;
        program.verify()?;
        Ok(program)
    }

    /// Checks the invariants of programs; see the list in `verify.rs`.
    pub fn verify(&self) -> std::result::Result<(), Diagnostics> {
        let mut errors = verify::verify(self);
        if errors.is_empty() {
            errors = lifecycle::check(self);
        }
        if errors.is_empty() { Ok(()) } else { Err(Diagnostics(errors)) }
    }

    /// Infers types, dimensions and formats for the tensors of a call, in order.
    pub fn check(&self, params: &[ParamType]) -> std::result::Result<Checked, Diagnostics> {
        let types = types::infer(self, params)?;
        let extents = dims::infer(self, params)?;
        let mut formats = Vec::new();
        for info in &self.tensors {
            formats.push(match &info.declaration {
                Some(Declaration { storage: Storage::Tensor(spec), .. }) => Some(spec.with_rank(info.rank)?),
                Some(Declaration { storage: Storage::Scalar(_), .. }) => Some(Format::dense(0)),
                None => None,
            });
        }
        Ok(Checked { types, extents, formats, equal: Vec::new() })
    }

    /// Infers types only, for parameters of known types; sizes are irrelevant.
    pub fn infer_types(&self, params: &[ParamType]) -> std::result::Result<Types, Diagnostics> {
        types::infer(self, params)
    }

    /// The number of dimensions of each tensor. A parameter that is never subscripted (only its
    /// shape is used, or nothing) has the rank of its argument.
    pub fn ranks(&self, params: &[ParamType]) -> Vec<usize> {
        let mut subscripted = vec![false; self.tensors.len()];
        for id in self.exprs.ids() {
            if let Expr::Read(access) = self.expr(id) {
                subscripted[access.tensor.index()] = true;
            }
        }
        self.visit(&mut |stmt| {
            if let StmtKind::Assign { target, .. } = &stmt.kind {
                subscripted[target.tensor.index()] = true;
            }
        });
        let mut ranks: Vec<usize> = self.tensors.iter().map(|info| info.rank).collect();
        for (id, param) in self.params.iter().zip(params) {
            if !subscripted[id.index()] {
                ranks[id.index()] = param.shape.len();
            }
        }
        ranks
    }

    /// Sets the ranks of parameters that are only queried to the number of dimensions that the
    /// queries name.
    fn infer_queried_ranks(&mut self) {
        let mut queried: FxHashMap<TensorId, usize> = FxHashMap::default();
        let mut subscripted = vec![false; self.tensors.len()];
        self.visit(&mut |stmt| {
            if let StmtKind::Assign { target, .. } = &stmt.kind {
                subscripted[target.tensor.index()] = true;
            }
            self.visit_exprs(stmt, &mut |id| {
                let (tensor, rank) = match self.expr(id) {
                    Expr::Read(access) => return subscripted[access.tensor.index()] = true,
                    Expr::Size(tensor, dim) => (*tensor, dim + 1),
                    Expr::Entry(entry) => match entry.what {
                        EntryPart::Coordinate(dim) => (entry.tensor, dim + 1),
                        _ => (entry.tensor, entry.at.len()),
                    },
                    _ => return,
                };
                let known = queried.entry(tensor).or_insert(0);
                *known = rank.max(*known);
            });
        });
        for param in self.params.clone() {
            if !subscripted[param.index()] {
                self.tensors[param.index()].rank = queried.get(&param).copied().unwrap_or(0);
            }
        }
    }

    /// A tensor's entry in the table.
    pub fn tensor(&self, id: TensorId) -> &TensorInfo {
        &self.tensors[id.index()]
    }

    /// An expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id)
    }

    /// The first statement that writes a tensor.
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
    pub fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Stmt)) {
        visit_block(&self.body, visitor);
    }

    /// The expressions that a statement evaluates itself (without those of its blocks), in order.
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
pub fn visit_block<'a>(block: &'a [Stmt], visitor: &mut dyn FnMut(&'a Stmt)) {
    block.iter().for_each(|stmt| visit_stmt(stmt, visitor));
}

fn visit_stmt<'a>(stmt: &'a Stmt, visitor: &mut dyn FnMut(&'a Stmt)) {
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
