//! Expressions of loop programs: literals, indices, element accesses, operators and queries of
//! stored entries.

use super::{ExprId, IndexId, TensorId, VarId};
use crate::algebra::{Op, Value};

/// An expression; operands are ids in the same [`ExprPool`](super::ExprPool).
///
/// ```
/// use tamis_ir::program::Expr;
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let reads = program.exprs.ids().filter(|id| matches!(program.expr(*id), Expr::Read(_)));
/// assert_eq!(reads.count(), 1, "A[i,j]");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
    ///
    /// ```
    /// use tamis_ir::{Value, algebra::Op, program::{Expr, ExprPool}};
    /// let mut pool = ExprPool::default();
    /// let two = pool.intern(Expr::Literal(Value::I64(2)));
    /// assert_eq!(Expr::Call(Op::Add, vec![two, two]).operands(), [two, two]);
    /// ```
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
///
/// ```
/// use tamis_ir::program::{EntryPart, Expr, Program};
/// let program = Program::parse("def f(A):\n    n = scalar(0)\n    n += A.nnz\n    return n\n")?;
/// let queries = program.exprs.ids().filter_map(|id| match program.expr(id) {
///     Expr::Entry(entry) => Some(entry.what),
///     _ => None,
/// });
/// assert!(queries.eq([EntryPart::Count]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Entry {
    pub tensor: TensorId,
    pub what: EntryPart,
    /// The position of the entry, or the coordinates that [`EntryPart::First`] locates.
    pub at: Vec<ExprId>,
}

/// A query about stored elements.
///
/// ```
/// use tamis_ir::program::EntryPart;
/// assert_eq!(EntryPart::Coordinate(0).name(), "coords");
/// ```
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
    ///
    /// ```
    /// use tamis_ir::program::EntryPart;
    /// assert_eq!(EntryPart::Count.name(), "nnz");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            EntryPart::Count => "nnz",
            EntryPart::Coordinate(_) => "coords",
            EntryPart::Value => "data",
            EntryPart::First => "first",
        }
    }

    /// The syntax, for messages.
    ///
    /// ```
    /// use tamis_ir::program::EntryPart;
    /// println!("the number of entries is `{}`", EntryPart::Count.form());
    /// ```
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
///
/// ```
/// use tamis_ir::program::Expr;
/// let program = tamis_ir::Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let accesses = program.exprs.ids().filter_map(|id| match program.expr(id) {
///     Expr::Read(access) => Some(access.subscripts.len()),
///     _ => None,
/// });
/// assert!(accesses.eq([2]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Access {
    pub tensor: TensorId,
    pub subscripts: Vec<Subscript>,
}

/// A subscript: any integer expression.
///
/// ```
/// use tamis_ir::program::{Expr, Program, Protocol};
/// let program = Program::parse("
/// def sum(A):
///     s = scalar(0.0)
///     for i, j in _:
///         s += A[i, walk(j)]
///     return s
/// ")?;
/// let protocols = program.exprs.ids().filter_map(|id| match program.expr(id) {
///     Expr::Read(access) => Some(access.subscripts.last()?.protocol),
///     _ => None,
/// });
/// assert!(protocols.eq([Some(Protocol::Walk)]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
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
///
/// ```
/// use tamis_ir::program::Protocol;
/// assert_eq!(Protocol::ALL.map(Protocol::name), ["walk", "follow", "gallop"]);
/// ```
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
    ///
    /// ```
    /// use tamis_ir::program::Protocol;
    /// assert!(Protocol::ALL.contains(&Protocol::Gallop));
    /// ```
    pub const ALL: [Protocol; 3] = [Protocol::Walk, Protocol::Follow, Protocol::Gallop];

    /// The word users type.
    ///
    /// ```
    /// use tamis_ir::program::Protocol;
    /// assert_eq!(Protocol::Gallop.name(), "gallop");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Walk => "walk",
            Protocol::Follow => "follow",
            Protocol::Gallop => "gallop",
        }
    }
}
