//! Loop programs: `for`, `if`, `let`, declarations and assignments over tensors that look dense.
//!
//! Statements are trees; pure expressions are interned in an [`ExprPool`], so equality is one
//! comparison. [`Program::parse`] makes a program and `Display` prints it; a printed program parses
//! to the same program. [`Program::check`] infers types and dimensions for the tensors of a call.

mod attributes;
mod compact;
pub(crate) mod dims;
mod expr;
mod lifecycle;
mod masks;
mod operators;
mod pool;
mod print;
mod resolve;
mod spans;
pub(crate) mod types;
mod verify;
mod visit;

pub use attributes::{Attributes, Bound, Vectorize};
pub use dims::{InferredExtents, LoopExtent};
pub use expr::{Access, Entry, EntryPart, Expr, Protocol, Subscript};
pub use masks::{Atom, Comparison, Linear, Mask, Masks};
pub(crate) use operators::definition as definition_text;
pub use operators::{define, define_with_derivatives, parse_operators, parse_operators_with};
pub use pool::{ExprId, ExprPool};
pub use spans::ProgramSpans;
pub use types::Types;
pub use visit::visit_block;

use crate::algebra::{DType, Op, Value};
use crate::diag::{Diagnostics, Source};
use crate::format::{Format, FormatSpec};
use crate::intern::ids;
use rustc_hash::FxHashMap;
use std::sync::Arc;

ids! {"program":
    /// A tensor or scalar: a parameter, or declared by the program.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// use tamis_ir::program::TensorId;
    /// let program = Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y")?;
    /// assert_eq!(program.tensors[TensorId(1).index()].name, "y");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    TensorId
    /// A loop index; each loop has its own.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// use tamis_ir::program::IndexId;
    /// let program = Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y")?;
    /// assert_eq!(program.indices[IndexId(0).index()], "i");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    IndexId
    /// A name bound by `d = ...`.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// use tamis_ir::program::VarId;
    /// let program = Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y")?;
    /// assert!(program.vars.get(VarId(0).index()).is_none(), "it binds no names");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    VarId
    /// A statement, for finding its spans.
    ///
    /// ```
    /// use tamis_ir::Program;
    /// use tamis_ir::program::StmtId;
    /// let program = Program::parse("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[i]\n    return y")?;
    /// assert_ne!(program.body[0].id, StmtId(1000));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    StmtId
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
///
/// ```
/// use tamis_ir::{FormatSpec, program::Storage};
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let declaration = program.tensor(program.results[0]).declaration.as_ref().unwrap();
/// assert_eq!(declaration.storage, Storage::Tensor(FormatSpec::parse("dense")?));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// use tamis_ir::program::{Program, ScalarKind, Storage};
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    s += x\n    return s\n")?;
/// let declaration = program.tensor(program.results[0]).declaration.as_ref().unwrap();
/// assert_eq!(declaration.storage, Storage::Scalar(ScalarKind::Plain));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// A tensor in a format.
    Tensor(FormatSpec),
    /// A scalar.
    Scalar(ScalarKind),
}

/// The scalars of section 3.
///
/// ```
/// use tamis_ir::program::ScalarKind;
/// assert_eq!(ScalarKind::Sparse.name(), "sparse_scalar");
/// ```
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
    ///
    /// ```
    /// use tamis_ir::program::ScalarKind;
    /// assert!(ScalarKind::ALL.iter().all(|kind| kind.name().ends_with("scalar")));
    /// ```
    pub const ALL: [ScalarKind; 3] = [ScalarKind::Plain, ScalarKind::Sparse, ScalarKind::ShortCircuit];

    /// The word users type.
    ///
    /// ```
    /// use tamis_ir::program::ScalarKind;
    /// assert_eq!(ScalarKind::ShortCircuit.name(), "short_circuit_scalar");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            ScalarKind::Plain => "scalar",
            ScalarKind::Sparse => "sparse_scalar",
            ScalarKind::ShortCircuit => "short_circuit_scalar",
        }
    }
}

/// A list of statements.
///
/// ```
/// use tamis_ir::program::Block;
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let body: &Block = &program.body;
/// assert_eq!(body.len(), 2, "a declaration and a loop");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub type Block = Vec<Stmt>;

/// A statement.
///
/// ```
/// use tamis_ir::program::StmtKind;
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// assert!(matches!(program.body[0].kind, StmtKind::Declare(y) if y == program.results[0]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// use tamis_ir::{algebra::Op, program::StmtKind};
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// program.visit(&mut |stmt| {
///     if let StmtKind::Assign { update: Some(update), .. } = &stmt.kind {
///         assert_eq!(update.op, Op::Add);
///     }
/// });
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Update {
    pub op: Op,
    /// Operands after the value: `choose(X[i], e, -1)`.
    pub extra: Vec<ExprId>,
}

/// The extent of a loop.
///
/// ```
/// use tamis_ir::program::{Extent, StmtKind};
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let StmtKind::For { extent, .. } = &program.body[1].kind else { unreachable!() };
/// assert_eq!(*extent, Extent::Infer);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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

/// The properties of an argument that a program depends on.
///
/// ```
/// use tamis_ir::{DType, program::ParamType};
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let shape = vec![Some(2), Some(3)];
/// let matrix = ParamType { dtype: DType::F32, shape, value: None, weak: false };
/// assert_eq!(program.check(&[matrix])?.extents.shapes[1], [2]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// use tamis_ir::{DType, Format, program::ParamType};
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let shape = vec![Some(2), Some(3)];
/// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
/// let checked = program.check(&[matrix])?;
/// let y = program.results[0].index();
/// assert_eq!((checked.types.tensors[y], &checked.extents.shapes[y]), (DType::F64, &vec![2]));
/// assert_eq!(checked.formats[y], Some(Format::dense(1)));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
    ///
    /// ```
    /// use tamis_ir::{DType, program::ParamType};
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// # let shape = vec![Some(2), Some(3)];
    /// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
    /// let (checked, a) = (program.check(&[matrix])?, program.params[0]);
    /// assert!(checked.is_one_size((a, 0), (a, 0)) && !checked.is_one_size((a, 0), (a, 1)));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_one_size(&self, a: (TensorId, usize), b: (TensorId, usize)) -> bool {
        a == b || self.equal.iter().any(|class| class.contains(&a) && class.contains(&b))
    }
}

impl Program {
    /// The outer index and the block length of a strip-mined loop, if the extent is one block: from
    /// `x*n` to `x*n + n`, or to a smaller end. The loop over blocks and the loop over the block
    /// together iterate over everything in order.
    ///
    /// ```
    /// use tamis_ir::program::{Program, StmtKind};
    /// let program = Program::parse("
    /// def total(x):
    ///     s = scalar(0.0)
    ///     for b in range(x.shape[0] // 8):
    ///         for i in range(b * 8, b * 8 + 8):
    ///             s += x[i]
    ///     return s
    /// ")?;
    /// let mut lengths = Vec::new();
    /// program.visit(&mut |stmt| {
    ///     if let StmtKind::For { extent, .. } = &stmt.kind {
    ///         lengths.push(program.piece_of(extent).map(|(_, length)| length));
    ///     }
    /// });
    /// assert_eq!(lengths, [None, Some(8)]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::Program;
    /// let program = Program::parse("
    /// def rowsum(A):
    ///     y = tensor('dense')
    ///     for i, j in _:
    ///         y[i] += A[i,j]
    ///     return y
    /// ")?;
    /// assert_eq!((program.name.as_str(), program.params.len()), ("rowsum", 1));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse(text: &str) -> std::result::Result<Program, Diagnostics> {
        Program::parse_source(&Source::new("program", text))
    }

    /// Parses a program from a named source.
    ///
    /// ```
    /// use tamis_ir::{Program, Source};
    /// let text = Source::new("kernels/f.py", "def f(x):\n    return y\n");
    /// let errors = Program::parse_source(&text).unwrap_err();
    /// assert!(errors.render(false).contains("kernels/f.py:2"));
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::{Program, Source, algebra::Laws, program::define};
    /// let square = define("square", &["a"], "a * a", Laws::default())?;
    /// let text = "def f(x):\n    s = scalar(0.0)\n    s += square(x)\n    return s\n";
    /// let program = Program::parse_source_with(&Source::new("f.py", text), &[square])?;
    /// assert!(program.to_string().contains("x * x"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let mut broken = program.clone();
    /// broken.body.remove(0);
    /// assert!(program.verify().is_ok() && broken.verify().is_err(), "`y` is never declared");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn verify(&self) -> std::result::Result<(), Diagnostics> {
        let mut errors = verify::verify(self);
        if errors.is_empty() {
            errors = lifecycle::check(self);
        }
        if errors.is_empty() { Ok(()) } else { Err(Diagnostics(errors)) }
    }

    /// Infers types, dimensions and formats for the tensors of a call, in order.
    ///
    /// ```
    /// use tamis_ir::{DType, program::ParamType};
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let shape = vec![Some(2), Some(3)];
    /// let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
    /// let checked = program.check(&[matrix])?;
    /// assert_eq!(checked.extents.shapes[program.results[0].index()], [2]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
    ///
    /// ```
    /// use tamis_ir::{DType, program::ParamType};
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// let shape = vec![None, None];
    /// let matrix = ParamType { dtype: DType::I32, shape, value: None, weak: false };
    /// let types = program.infer_types(&[matrix])?;
    /// assert_eq!(types.tensors[program.results[0].index()], DType::I32);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn infer_types(&self, params: &[ParamType]) -> std::result::Result<Types, Diagnostics> {
        types::infer(self, params)
    }

    /// The number of dimensions of each tensor. A parameter that is never subscripted (only its
    /// shape is used, or nothing) has the rank of its argument.
    ///
    /// ```
    /// use tamis_ir::{DType, program::ParamType};
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// # let shape = vec![Some(2), Some(3)];
    /// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
    /// assert_eq!(program.ranks(&[matrix]), [2, 1]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
    ///
    /// ```
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// assert_eq!(program.tensor(program.params[0]).name, "A");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn tensor(&self, id: TensorId) -> &TensorInfo {
        &self.tensors[id.index()]
    }

    /// An expression.
    ///
    /// ```
    /// use tamis_ir::program::{Expr, StmtKind};
    /// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// program.visit(&mut |stmt| {
    ///     if let StmtKind::Assign { value, .. } = &stmt.kind {
    ///         assert!(matches!(program.expr(*value), Expr::Read(_)));
    ///     }
    /// });
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id)
    }
}
