//! Counting what a kernel does while it runs as machine code: turns of loops, visits of bodies, elements read and written.
//!
//! [`instrument`](instrument()) is a pass over a finished kernel. It adds counters (ordinary variables, which ordinary statements
//! change and, in the end, store in one more buffer), so that every backend and the interpreter run it. Loops that nothing leaves early
//! are counted where they start, not in every turn: what is inside them stays as it was, vectors included. [`Counting`] says
//! what the counters mean; [`Counting::read`] makes [`Counts`] of them.
//!
//! - `instrument` adds counters, and takes down what each stretch of statements does each time it runs;
//! - `work` is what statements do: elements read and written, operations;
//! - `read` multiplies both, by loops of the kernel and by loops of the program.

mod instrument;
mod prefix;
mod read;
#[cfg(test)]
mod tests;
mod work;

pub use instrument::instrument;
pub use prefix::{Nest, nests, prefix};
pub use read::{Counts, LoopCounts, Part, Traffic};
pub use work::Work;

use tamis_ir::kernel::{BufferId, VarId};

/// How often something happens: as a counter says (once, if there is none), so many times over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The place of the counter.
    pub counter: Option<usize>,
    /// How often for each count.
    pub factor: u64,
}

impl Times {
    /// Once.
    pub const ONCE: Times = Times { counter: None, factor: 1 };

    /// As often as a counter says.
    pub fn counted(counter: usize) -> Times {
        Times { counter: Some(counter), factor: 1 }
    }

    fn scaled(self, by: u64) -> Times {
        Times { factor: self.factor.saturating_mul(by), ..self }
    }
}

/// A loop of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelLoop {
    /// The loop of the kernel around it.
    pub parent: Option<usize>,
    /// The index of the program's loop that it is a part of.
    pub index: Option<u32>,
    /// Whether each of its turns runs the body of the program's loop.
    pub visits: bool,
    /// Whether it goes on as long as a condition holds: a merge, a walk along lists.
    pub walks: bool,
    /// Its first line.
    pub text: String,
    /// Which statement of the kernel it is in.
    pub statement: usize,
    /// How often it was entered.
    pub entered: Times,
    /// How often it went around.
    pub turns: Times,
}

/// Statements that run one after the other, and what they do each time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The innermost loop of the kernel around them.
    pub within: Option<usize>,
    /// Which statement of the kernel they are in.
    pub statement: usize,
    /// How often they run.
    pub times: Times,
    /// What they do.
    pub work: Work,
    /// How many statements there are.
    pub statements: u64,
    /// The variables that they bind, or count with: those that the interpreter counts, too.
    pub declares: Vec<VarId>,
}

/// What a statement does that is not the same each time: a counter has the sum of its lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bulk {
    /// The innermost loop of the kernel around it.
    pub within: Option<usize>,
    /// Which statement of the kernel it is in.
    pub statement: usize,
    /// The buffer.
    pub buffer: BufferId,
    /// What is done.
    pub kind: BulkKind,
    /// How often the statement runs.
    pub times: Times,
    /// The place of the counter.
    pub counter: usize,
}

/// What is done to so many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkKind {
    /// All are written.
    Fill,
    /// A coordinate is searched for among them.
    Search,
    /// They are sorted: read and written.
    Sort,
    /// They are sorted and merged, with all arrays of their workspace.
    Settle,
}

/// What the counters of a kernel mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Counting {
    /// The buffer with the counters, which the kernel grows to hold them.
    pub buffer: BufferId,
    /// How many indices the program has, whose visits come first.
    pub indices: usize,
    /// How many counters there are.
    pub len: usize,
    /// Loops, outer ones first.
    pub loops: Vec<KernelLoop>,
    /// Everything that is done, except for what differs each time.
    pub stretches: Vec<Stretch>,
    /// What differs each time.
    pub bulk: Vec<Bulk>,
    /// Counters with the greatest length that a buffer was asked to have.
    pub lengths: Vec<(BufferId, usize)>,
}
