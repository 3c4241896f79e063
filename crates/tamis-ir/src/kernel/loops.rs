//! Loop kinds and hints: how the iterations of a loop may be executed.
//!
//! Every kind computes what the serial loop computes. The verifier checks what a kind needs by the
//! form of the body; the interpreter checks at run time that no two iterations of a parallel loop
//! access one element, one of them writing.

use super::{BufferId, Expr, ExprId, Kernel, Stmt, VarId};
use crate::algebra::Op;

/// The execution hints of a loop for the back end.
///
/// ```
/// use tamis_ir::kernel::{Hint, LoopKind};
/// assert_eq!(Hint::default().kind, LoopKind::Serial);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// Iterations are independent except for reductions, so the loop may be vectorised.
    pub vectorise: bool,
    /// How iterations are executed.
    pub kind: LoopKind,
    /// Elements are gathered, and the trip count may be small: vectors should be short.
    pub short_trip: bool,
}

impl Hint {
    /// The loop should be unrolled completely (its bounds are constants).
    ///
    /// ```
    /// use tamis_ir::kernel::{Hint, LoopKind};
    /// assert!(Hint { kind: LoopKind::Unrolled, ..Hint::default() }.is_unrolled());
    /// ```
    pub fn is_unrolled(self) -> bool {
        self.kind == LoopKind::Unrolled
    }
}

/// How the iterations of a loop are executed.
///
/// ```
/// use tamis_ir::kernel::LoopKind;
/// assert!(LoopKind::Grid.is_concurrent() && !LoopKind::Serial.is_concurrent());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One after the other.
    #[default]
    Serial,
    /// One after the other, each a copy of the body with the counter as a constant.
    Unrolled,
    /// By threads, in any order. A chunk has at least `grain` iterations.
    Parallel {
        /// How iterations are divided among chunks.
        chunks: Chunks,
        /// The least number of iterations of a chunk.
        grain: u32,
    },
    /// `lanes` iterations at once, statement by statement.
    Vector {
        /// A power of two.
        lanes: u16,
        /// How the remaining iterations are executed.
        tail: Tail,
    },
    /// By the blocks of a grid, in any order.
    Grid,
    /// By the threads of a block, which wait for each other at barriers.
    Block,
    /// By the lanes of a warp.
    Lane,
}

/// How the iterations of a parallel loop are divided among chunks.
///
/// ```
/// use tamis_ir::kernel::{Chunks, LoopKind};
/// let rows = LoopKind::Parallel { chunks: Chunks::Extent, grain: 64 };
/// assert_eq!(rows.name(), "parallel");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chunks {
    /// Chunks have the same number of iterations.
    Extent,
    /// Chunks have about the same work: iteration `i` has `p[i + 1] - p[i]` units of it, where `p`
    /// is an array of positions.
    Work(BufferId),
}

/// How the iterations of a vector loop that do not fill all lanes are executed.
///
/// ```
/// use tamis_ir::kernel::{LoopKind, Tail};
/// let vector = LoopKind::Vector { lanes: 8, tail: Tail::Masked };
/// assert_eq!(vector.name(), "vector");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tail {
    /// By fewer lanes; the others are masked off.
    Masked,
    /// By all lanes, the first of which repeat iterations that are done already. Where there are
    /// fewer iterations than lanes, one after the other.
    Overlapping,
    /// One after the other.
    Remainder,
}

impl Tail {
    /// All of them.
    ///
    /// ```
    /// use tamis_ir::kernel::Tail;
    /// assert_eq!(Tail::ALL.map(Tail::name), ["masked", "overlapping", "remainder"]);
    /// ```
    pub const ALL: [Tail; 3] = [Tail::Masked, Tail::Overlapping, Tail::Remainder];

    /// The word in kernel text.
    ///
    /// ```
    /// use tamis_ir::kernel::Tail;
    /// assert_eq!(Tail::Masked.name(), "masked");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Tail::Masked => "masked",
            Tail::Overlapping => "overlapping",
            Tail::Remainder => "remainder",
        }
    }
}

impl Stmt {
    /// The word for this kind of statement.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Stmt::Let { .. } => "let",
            Stmt::Assign { .. } => "an assignment",
            Stmt::Store { .. } | Stmt::MaskedStore { .. } => "a store",
            Stmt::Update { .. } => "atomic",
            Stmt::Prefetch { .. } => "prefetch",
            Stmt::Barrier => "barrier",
            Stmt::For { .. } => "for",
            Stmt::While { .. } => "while",
            Stmt::If { .. } => "if",
            Stmt::Labelled { .. } => "block",
            Stmt::Break(_) => "break",
            Stmt::Grow { .. } => "grow",
            Stmt::Fill { .. } => "fill",
            Stmt::Search { .. } => "search",
            Stmt::Sort { .. } => "sort",
            Stmt::Gemm(_) => "gemm",
            Stmt::Reset { .. } => "reset",
            Stmt::Insert { .. } => "insert",
            Stmt::Finalize { .. } => "finalize",
            Stmt::Require { .. } => "require",
        }
    }
}

impl LoopKind {
    /// The word in kernel text.
    ///
    /// ```
    /// use tamis_ir::kernel::LoopKind;
    /// assert_eq!(LoopKind::Unrolled.name(), "unroll");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            LoopKind::Serial => "serial",
            LoopKind::Unrolled => "unroll",
            LoopKind::Parallel { .. } => "parallel",
            LoopKind::Vector { .. } => "vector",
            LoopKind::Grid => "grid",
            LoopKind::Block => "block",
            LoopKind::Lane => "lane",
        }
    }

    /// True if iterations run in any order, or at the same time.
    ///
    /// ```
    /// use tamis_ir::kernel::LoopKind;
    /// assert!(LoopKind::Lane.is_concurrent() && !LoopKind::Unrolled.is_concurrent());
    /// ```
    pub const fn is_concurrent(self) -> bool {
        matches!(self, LoopKind::Parallel { .. } | LoopKind::Grid | LoopKind::Block | LoopKind::Lane)
    }
}

/// A reduction of a vector loop: each lane has an accumulator, which are combined behind the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    pub(super) var: VarId,
    pub(super) op: Op,
}

/// The reduction that an assignment is: `v = op(v, e)` or `v = op(e, v)`, where `e` does not use
/// `v` and `op` is associative and commutative.
pub(super) fn reduction(kernel: &Kernel, var: VarId, value: ExprId) -> Option<Reduction> {
    let Expr::Call(op, dtype, operands) = kernel.expr(value) else { return None };
    let [first, second] = operands[..] else { return None };
    let itself = |id: ExprId| *kernel.expr(id) == Expr::Var(var);
    let other = match (itself(first), itself(second)) {
        (true, false) => second,
        (false, true) => first,
        _ => return None,
    };
    let mut elsewhere = false;
    kernel.visit_expr(other, &mut |expr| elsewhere |= *expr == Expr::Var(var));
    let info = op.info();
    let lawful = info.associative && info.commutative && info.left_identity.is_some_and(|e| e.value(*dtype).is_some());
    let typed = kernel.var(var).dtype == *dtype && kernel.exprs.dtype(value) == *dtype;
    (lawful && typed && !elsewhere).then_some(Reduction { var, op: *op })
}

/// The reductions of a loop's body, if each outer variable that it assigns is one of a single
/// operator; `Err` names a variable that is not.
pub(super) fn reductions(kernel: &Kernel, body: &[Stmt], declared: &[VarId]) -> Result<Vec<Reduction>, VarId> {
    let mut found: Vec<Reduction> = Vec::new();
    let mut wrong = None;
    for stmt in body {
        stmt.visit(&mut |stmt| {
            let Stmt::Assign { var, value } = stmt else { return };
            if declared.contains(var) {
                return;
            }
            match reduction(kernel, *var, *value) {
                Some(one) if found.iter().all(|other| other.var != *var || other.op == one.op) => {
                    if !found.contains(&one) {
                        found.push(one);
                    }
                }
                _ => wrong = Some(*var),
            }
        });
    }
    match wrong {
        Some(var) => Err(var),
        None => Ok(found),
    }
}
