//! Kernel IR: typed scalars, buffers, `for`, `while`, `if`. No tensors, no formats, no looplets.
//!
//! Machine code is generated from a kernel. Statements are trees; pure expressions are interned in
//! the kernel, each with its type. Operators are those of the operator table (`algebra`) with the
//! same meaning: `algebra::eval` on operands converted to the operand type. Positions, coordinates
//! and sizes are `i64`.
//!
//! [`Kernel::verify`] checks the invariants; [`run()`] interprets a kernel, as the oracle of back
//! ends and passes; `Display` prints it.

mod assumptions;
mod build;
mod gemm;
mod interp;
mod lanes;
mod legalize;
mod loops;
pub mod rewrite;
pub(crate) mod text;
mod verify;
mod workspace;

pub use assumptions::Assumption;
pub use build::Builder;
pub use gemm::{Gemm, MatrixView};
pub use interp::{Array, ExecutionCounts, Failure, Memory, run, run_counted, run_serially};
pub use lanes::{MAX_LANES, VectorExpr};
pub use loops::{Chunks, Hint, LoopKind, Tail};
pub use workspace::{Merge, Workspace};

use crate::algebra::{DType, Op, Value};
use crate::format::Width;
use crate::intern::{Interner, ids};
use std::sync::Arc;

ids! {"kernel":
    /// A scalar variable.
    ///
    /// ```
    /// use tamis_ir::{DType, kernel::{Builder, VarId}};
    /// assert_eq!(Builder::new("f").param("n", DType::I64), VarId(0));
    /// ```
    VarId
    /// An array in memory (or, if it is small and of constant size, in registers).
    ///
    /// ```
    /// use tamis_ir::kernel::{BufferId, Kernel};
    /// let kernel = Kernel::parse("kernel f\n    in x: f64[]\nbegin\n")?;
    /// assert_eq!(kernel.buffer(BufferId(0)).name, "x");
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    BufferId
    /// An expression of the kernel; operands have smaller ids.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, ExprId};
    /// let mut b = Builder::new("f");
    /// assert_eq!((b.int(7), b.int(8), b.int(7)), (ExprId(0), ExprId(1), ExprId(0)));
    /// ```
    ExprId
    /// A labelled block, the target of a break.
    ///
    /// ```
    /// use tamis_ir::kernel::{Kernel, LabelId, Stmt};
    /// let kernel = Kernel::parse("kernel f\nbegin\n    block l0\n        break l0\n")?;
    /// assert!(matches!(kernel.body[0], Stmt::Labelled { label: LabelId(0), .. }));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    LabelId
}

/// The element type of a buffer.
///
/// ```
/// use tamis_ir::DType;
/// use tamis_ir::format::Width;
/// use tamis_ir::kernel::Elem;
/// assert_eq!(Elem::Index(Width::U32).dtype(), DType::I64, "the type of a loaded coordinate");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// Values of a type; booleans are bytes 0 and 1.
    Value(DType),
    /// Positions or coordinates; loads give `i64`, stores take `i64` that fits.
    Index(Width),
}

impl Elem {
    /// The type of a loaded element.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_ir::kernel::Elem;
    /// assert_eq!(Elem::Value(DType::F32).dtype(), DType::F32);
    /// ```
    pub fn dtype(self) -> DType {
        match self {
            Elem::Value(dtype) => dtype,
            Elem::Index(_) => DType::I64,
        }
    }

    /// Bytes of one element.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_ir::kernel::Elem;
    /// assert_eq!(Elem::Index(Width::U16).size(), 2);
    /// ```
    pub fn size(self) -> usize {
        match self {
            Elem::Value(dtype) => dtype.size(),
            Elem::Index(width) => width.size(),
        }
    }
}

/// The role of a buffer. No two buffers alias.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let roles = kernel.buffers.iter().map(|buffer| buffer.role);
/// assert!(roles.eq([Role::Input, Role::Output]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Given by the caller; only read.
    Input,
    /// Returned to the caller; starts with the caller's elements (often none) and can grow.
    Output,
    /// Starts empty, can grow, and is freed when the kernel returns.
    Scratch,
    /// A constant number of elements, for register tiles.
    Tile(u32),
    /// A constant number of elements that the threads of a block share.
    Shared(u32),
}

/// The memory in which a buffer lies. Registers are private to an iteration of a concurrent loop.
///
/// ```
/// use tamis_ir::kernel::{Role, Space};
/// assert_eq!(Role::Tile(16).space(), Space::Local);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Seen by all.
    Global,
    /// Seen by the threads of one block.
    Shared,
    /// Seen by one thread: registers.
    Local,
}

impl Role {
    /// The memory of buffers of this role.
    ///
    /// ```
    /// use tamis_ir::kernel::{Role, Space};
    /// assert_eq!(Role::Input.space(), Space::Global);
    /// ```
    pub const fn space(self) -> Space {
        match self {
            Role::Input | Role::Output | Role::Scratch => Space::Global,
            Role::Shared(_) => Space::Shared,
            Role::Tile(_) => Space::Local,
        }
    }

    /// The number of elements, if it is constant.
    ///
    /// ```
    /// use tamis_ir::kernel::Role;
    /// assert_eq!((Role::Tile(16).size(), Role::Output.size()), (Some(16), None));
    /// ```
    pub const fn size(self) -> Option<u32> {
        match self {
            Role::Tile(size) | Role::Shared(size) => Some(size),
            Role::Input | Role::Output | Role::Scratch => None,
        }
    }
}

/// An array.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let names: Vec<&str> = kernel.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
/// assert_eq!(names, ["x", "y"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct BufferInfo {
    pub name: String,
    pub elem: Elem,
    pub role: Role,
}

/// A scalar variable.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let n = kernel.var(kernel.params[0]);
/// assert_eq!((n.name.as_str(), n.dtype, n.mutable), ("n", DType::I64, false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Var {
    pub name: String,
    pub dtype: DType,
    /// The number of lanes; 1 for a single value.
    pub lanes: u16,
    /// Assigned after its declaration.
    pub mutable: bool,
    /// The loop of the program that it belongs to; set only where loops are counted.
    pub origin: Option<Origin>,
}

/// The program loop of a variable. Machine code does not depend on it.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// assert!(kernel.vars.iter().all(|var| var.origin.is_none()), "no program was lowered to it");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The position of the loop's index in the program's table.
    pub index: u32,
    /// It counts a loop each of whose iterations is an iteration of the program's loop.
    pub visits: bool,
}

/// A pure expression.
///
/// ```
/// use tamis_ir::kernel::Expr;
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let loads = kernel.exprs.ids().filter(|id| matches!(kernel.expr(*id), Expr::Load(..)));
/// assert_eq!(loads.count(), 1, "the operands of the sum are one expression");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Const(Value),
    /// The value of a variable.
    Var(VarId),
    /// An element of a buffer. Reading past the buffer's length is a bug of the kernel (checked in
    /// check mode).
    Load(BufferId, ExprId),
    /// An operator on operands converted to the given type.
    Call(Op, DType, Vec<ExprId>),
    /// A vector, or what is made of one.
    Vector(VectorExpr),
}

/// A list of statements.
///
/// ```
/// use tamis_ir::kernel::{Block, Stmt};
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let body: &Block = &kernel.body;
/// assert!(matches!(body[..], [Stmt::For { .. }]));
/// ```
pub type Block = Vec<Stmt>;

/// A statement.
///
/// ```
/// use tamis_ir::kernel::Stmt;
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// let mut stores = 0;
/// kernel.visit(&mut |stmt| stores += usize::from(matches!(stmt, Stmt::Store { .. })));
/// assert_eq!(stores, 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Stmt {
    /// Declares a variable; one that is not mutable keeps this value.
    Let {
        var: VarId,
        value: ExprId,
    },
    /// Changes a mutable variable.
    Assign {
        var: VarId,
        value: ExprId,
    },
    /// Writes an element that exists; an element for each lane, if the index has lanes.
    Store {
        buffer: BufferId,
        index: ExprId,
        value: ExprId,
    },
    /// Writes elements for the lanes whose mask is true.
    MaskedStore {
        buffer: BufferId,
        index: ExprId,
        value: ExprId,
        mask: ExprId,
    },
    /// Replaces an element by an operator on it and a value, atomically; lane by lane, if the index
    /// has lanes.
    Update {
        buffer: BufferId,
        index: ExprId,
        op: Op,
        value: ExprId,
    },
    /// Brings the element `distance` behind an index into a cache. It need not exist: only time
    /// depends on this.
    Prefetch {
        buffer: BufferId,
        index: ExprId,
        distance: u32,
        /// From 0 (used once) to 3 (kept in all caches).
        locality: u8,
    },
    /// Waits until all threads of the block are here.
    Barrier,
    /// Counts from `start` up to, not including, `stop`.
    For {
        var: VarId,
        start: ExprId,
        stop: ExprId,
        body: Block,
        hint: Hint,
    },
    /// Repeats while the condition holds.
    While {
        cond: ExprId,
        body: Block,
    },
    If {
        cond: ExprId,
        then: Block,
        otherwise: Block,
    },
    /// A block that [`Stmt::Break`] can exit from within.
    Labelled {
        label: LabelId,
        body: Block,
    },
    /// Jumps behind the enclosing block with this label.
    Break(LabelId),
    /// Makes a buffer at least `len` elements long, growing by doubling; new elements hold `fill`.
    /// Without a fill they are uninitialised: each is written before it is read, and callers
    /// truncate an output to the written elements.
    Grow {
        buffer: BufferId,
        len: ExprId,
        fill: Option<Value>,
    },
    /// Sets `len` elements from `start` on to a value.
    Fill {
        buffer: BufferId,
        start: ExprId,
        len: ExprId,
        value: ExprId,
    },
    /// Declares `var` as the first position in `start..stop` whose element is at least `key` (or
    /// `stop`); the elements increase. The search gallops from the start, or from the stop if
    /// `back`: only time depends on that.
    Search {
        var: VarId,
        buffer: BufferId,
        start: ExprId,
        stop: ExprId,
        key: ExprId,
        back: bool,
    },
    /// Sorts the elements in `start..stop`, which are distinct integers. `flags` is the same set as
    /// bytes, 1 at these elements and 0 elsewhere, which can be scanned in order instead.
    Sort {
        buffer: BufferId,
        start: ExprId,
        stop: ExprId,
        flags: Option<BufferId>,
    },
    /// Multiplies dense matrices, and adds the product to a third.
    Gemm(Box<Gemm>),
    /// Clears the entries of a workspace, and sets the sizes of its dimensions.
    Reset {
        workspace: Arc<Workspace>,
        sizes: Vec<ExprId>,
    },
    /// Declares `var` as the position of an element in the values of a workspace, valid until the
    /// next insertion. A new entry holds the workspace's initial value.
    Insert {
        var: VarId,
        workspace: Arc<Workspace>,
        coordinates: Vec<ExprId>,
    },
    /// Declares `var` as the number of entries; the arrays of the workspace now hold them in order,
    /// without duplicates, until the next insertion. They stay entries up to the next reset.
    Finalize {
        var: VarId,
        workspace: Arc<Workspace>,
    },
    /// Fails with a message unless the condition holds.
    Require {
        cond: ExprId,
        message: String,
    },
}

/// A function over buffers and scalars.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// // `kernel` doubles a vector; its text form reads back to the same kernel.
/// let text = kernel.to_string();
/// assert_eq!(tamis_ir::kernel::Kernel::parse(&text)?.to_string(), text);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Kernel {
    pub name: String,
    pub buffers: Vec<BufferInfo>,
    pub vars: Vec<Var>,
    /// Scalar parameters, in order.
    pub params: Vec<VarId>,
    /// The assumptions; the caller guarantees them.
    pub assumptions: Vec<Assumption>,
    pub exprs: Exprs,
    pub labels: u32,
    pub body: Block,
}

/// Interned expressions with their types.
///
/// ```
/// # use tamis_ir::DType;
/// # use tamis_ir::algebra::Op;
/// # use tamis_ir::kernel::{Builder, Elem, Role};
/// # let mut b = Builder::new("double");
/// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// # let n = b.param("n", DType::I64);
/// # let (zero, stop) = (b.int(0), b.get(n));
/// # b.count("i", zero, stop, |b, i| {
/// #     let value = b.load(x, i);
/// #     let twice = b.call(Op::Add, &[value, value]);
/// #     b.store(y, i, twice);
/// # });
/// # let kernel = b.finish();
/// assert!(kernel.exprs.ids().all(|id| kernel.exprs.lanes(id) == 1), "no vectors");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exprs {
    exprs: Interner<Expr>,
    types: Vec<DType>,
    lanes: Vec<u16>,
}

impl Exprs {
    /// The id of an expression of a known type, which is added if it is new.
    fn intern(&mut self, expr: Expr, dtype: DType, lanes: u16) -> ExprId {
        let id = self.exprs.intern(expr);
        if id as usize == self.types.len() {
            self.types.push(dtype);
            self.lanes.push(lanes);
        }
        ExprId(id)
    }

    /// The number of lanes of an expression; 1 for a single value.
    ///
    /// ```
    /// use tamis_ir::kernel::{Builder, VectorExpr};
    /// let mut b = Builder::new("ramp");
    /// let start = b.int(0);
    /// let ramp = b.vector(VectorExpr::Ramp { start, step: 1, lanes: 4 });
    /// assert_eq!(b.kernel().exprs.lanes(ramp), 4);
    /// ```
    pub fn lanes(&self, id: ExprId) -> u16 {
        self.lanes[id.index()]
    }

    /// The most lanes of some expressions.
    fn most_lanes(&self, ids: &[ExprId]) -> u16 {
        ids.iter().map(|id| self.lanes(*id)).max().unwrap_or(1)
    }

    /// The expression with this id.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::{Builder, Expr};
    /// let mut b = Builder::new("constant");
    /// let two = b.int(2);
    /// assert_eq!(b.kernel().exprs.get(two), &Expr::Const(Value::I64(2)));
    /// ```
    pub fn get(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.0)
    }

    /// The type of an expression.
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("constant");
    /// let half = b.constant(Value::F64(0.5));
    /// assert_eq!(b.kernel().exprs.dtype(half), DType::F64);
    /// ```
    pub fn dtype(&self, id: ExprId) -> DType {
        self.types[id.index()]
    }

    /// The number of elements.
    ///
    /// ```
    /// use tamis_ir::kernel::Builder;
    /// let mut b = Builder::new("constant");
    /// assert_eq!(b.int(2), b.int(2));
    /// assert_eq!(b.kernel().exprs.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// True if there are none.
    ///
    /// ```
    /// assert!(tamis_ir::kernel::Builder::new("empty").finish().exprs.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ids, operands before their users.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// for id in kernel.exprs.ids() {
    ///     assert!(kernel.expr(id).operands().iter().all(|operand| *operand < id));
    /// }
    /// ```
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..self.types.len() as u32).map(ExprId)
    }
}

impl Kernel {
    /// An expression.
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_ir::kernel::{Builder, Expr};
    /// let mut b = Builder::new("constant");
    /// let two = b.int(2);
    /// assert_eq!(b.finish().expr(two), &Expr::Const(Value::I64(2)));
    /// ```
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id)
    }

    /// A buffer.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// assert_eq!(kernel.buffer(y).role, Role::Output);
    /// ```
    pub fn buffer(&self, id: BufferId) -> &BufferInfo {
        &self.buffers[id.index()]
    }

    /// A variable.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// assert_eq!(kernel.var(n).name, "n");
    /// ```
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    /// Checks the invariants of kernels; see the list in `verify.rs`. A violation is a bug of the
    /// compiler.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// assert_eq!(kernel.verify(), Ok(()));
    /// ```
    pub fn verify(&self) -> Result<(), String> {
        verify::verify(self)
    }

    /// The number of statements, nested ones included: the measure of code size.
    ///
    /// ```
    /// # use tamis_ir::DType;
    /// # use tamis_ir::algebra::Op;
    /// # use tamis_ir::kernel::{Builder, Elem, Role};
    /// # let mut b = Builder::new("double");
    /// # let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    /// # let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    /// # let n = b.param("n", DType::I64);
    /// # let (zero, stop) = (b.int(0), b.get(n));
    /// # b.count("i", zero, stop, |b, i| {
    /// #     let value = b.load(x, i);
    /// #     let twice = b.call(Op::Add, &[value, value]);
    /// #     b.store(y, i, twice);
    /// # });
    /// # let kernel = b.finish();
    /// assert_eq!(kernel.size(), 2, "a loop and a store");
    /// ```
    pub fn size(&self) -> usize {
        fn count(block: &Block) -> usize {
            block
                .iter()
                .map(|stmt| {
                    1 + match stmt {
                        Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::Labelled { body, .. } => count(body),
                        Stmt::If { then, otherwise, .. } => count(then) + count(otherwise),
                        _ => 0,
                    }
                })
                .sum()
        }
        count(&self.body)
    }
}
