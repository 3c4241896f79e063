//! Instrumentation of kernels: counts of loop iterations, visits, and elements read and written
//! while machine code runs.
//!
//! `instrument` is a pass over a finished kernel. It adds counters (ordinary
//! variables, which ordinary statements update and, at the end, store in one more buffer), so every
//! back end and the interpreter run it. Loops without early exits are counted at entry, not in
//! every iteration: their bodies stay unchanged and vectorised. [`Counting`] maps the counters to
//! loops and statements; [`Counting::read`] computes [`Counts`] from them.
//!
//! - `instrument` adds counters and records the work of each basic block;
//! - `work` is the static work of statements: elements read and written, operations;
//! - `read` multiplies both, per loop of the kernel and per loop of the program.

mod instrument;
mod prefix;
mod read;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use instrument::instrument;
pub use prefix::{NestRange, nests, prefix};
pub use read::{Counts, LoopCounts, LoopPart, Traffic};
pub(crate) use work::Work;

use tamis_ir::kernel::{BufferId, VarId};

/// A symbolic execution count: the value of a counter (or 1) times a constant factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicCount {
    /// The index of the counter in the counter buffer.
    pub counter: Option<usize>,
    /// The constant factor.
    pub factor: u64,
}

impl SymbolicCount {
    /// Once.
    const ONCE: SymbolicCount = SymbolicCount { counter: None, factor: 1 };

    /// The value of a counter.
    fn counted(counter: usize) -> SymbolicCount {
        SymbolicCount { counter: Some(counter), factor: 1 }
    }

    fn scaled(self, by: u64) -> SymbolicCount {
        SymbolicCount { factor: self.factor.saturating_mul(by), ..self }
    }
}

/// A loop of an instrumented kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CountedLoop {
    /// The enclosing loop of the kernel.
    pub parent: Option<usize>,
    /// The index of the program's loop that it was lowered from.
    pub index: Option<u32>,
    /// True if each iteration runs the body of the program's loop.
    pub visits: bool,
    /// True if it is a `while` loop: a co-iteration of sparse levels.
    pub walks: bool,
    /// Its header as text.
    pub text: String,
    /// The top-level statement of the kernel that contains it.
    pub statement: usize,
    /// The number of entries.
    pub entered: SymbolicCount,
    /// The number of iterations.
    pub iterations: SymbolicCount,
}

/// A basic block: straight-line statements and their work per execution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BasicBlock {
    /// The innermost enclosing loop of the kernel.
    pub within: Option<usize>,
    /// The top-level statement of the kernel that contains them.
    pub statement: usize,
    /// The number of executions.
    pub times: SymbolicCount,
    /// The work of one execution.
    pub work: Work,
    /// The number of statements.
    pub statements: u64,
    /// The variables that they declare, loop counters included, as the interpreter counts them.
    pub declares: Vec<VarId>,
}

/// A bulk operation, whose work depends on a length: a counter accumulates the lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bulk {
    /// The innermost enclosing loop of the kernel.
    pub within: Option<usize>,
    /// The top-level statement of the kernel that contains it.
    pub statement: usize,
    /// The buffer.
    pub buffer: BufferId,
    /// The operation.
    pub kind: BulkKind,
    /// The number of executions of the statement.
    pub times: SymbolicCount,
    /// The index of the counter in the counter buffer.
    pub counter: usize,
}

/// The kind of a bulk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkKind {
    /// Writes all elements.
    Fill,
    /// Searches a coordinate by bisection.
    Search,
    /// Sorts the elements: reads and writes each.
    Sort,
    /// Sorts and merges a workspace with all of its arrays.
    Finalize,
}

/// The meaning of the counters of an instrumented kernel.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// # let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let options = pipeline::Options { count: true, ..Default::default() };
/// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
/// let (counting, kernel) = &*compilation.counting.unwrap();
/// assert!(counting.len >= counting.indices);
/// assert!(counting.buffer.index() < kernel.buffers.len(), "the counters have a buffer");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Counting {
    /// The buffer that holds the counters; the kernel grows it.
    pub buffer: BufferId,
    /// The number of indices of the program; their visit counters come first.
    pub indices: usize,
    /// The number of counters.
    pub len: usize,
    /// Loops in preorder.
    pub(crate) loops: Vec<CountedLoop>,
    /// The basic blocks.
    pub(crate) basic_blocks: Vec<BasicBlock>,
    /// The bulk operations.
    pub(crate) bulk: Vec<Bulk>,
    /// Counters of the maximum length requested for each buffer.
    pub lengths: Vec<(BufferId, usize)>,
}
