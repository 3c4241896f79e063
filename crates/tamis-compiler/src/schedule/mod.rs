//! What is decided about a program before it is lowered: commands of the user's, and workspaces that are inserted.
//!
//! Scheduling commands are transformations of loop programs, from text or by methods. Every schedule gives a program that can
//! be printed, read back, interpreted and compiled.
//!
//! A [`Schedule`] is a list of commands as data. One file per command says what it does to a program; `legal` is the one
//! place that says what may be moved, `extents` names how far loops go, `edit` finds and changes loops.

mod annotate;
pub mod block;
mod bound;
pub mod classify;
mod convert;
mod copy_in;
mod describe;
mod edit;
mod extents;
mod fuse;
mod idle;
pub mod insert;
mod insert_workspace;
pub(crate) mod legal;
mod matching;
mod parse;
mod pos;
mod precompute;
mod print;
mod recovered;
mod reorder;
mod split;
mod tile;

pub use copy_in::copy_in;

use crate::lower::Policy;
use edit::Work;
use std::sync::Arc;
use tamis_ir::format::Leaf;
use tamis_ir::program::{Checked, Program};
use tamis_ir::{Diagnostic, Diagnostics, Format, Source, Span, Value};

/// A list of scheduling commands.
///
/// ```
/// use tamis_compiler::schedule::Schedule;
/// let built = Schedule::new().reorder(["i", "k", "j"]).split("k", "k0", "k1", 32);
/// assert_eq!(built, Schedule::parse("reorder(i,k,j); split(k,k0,k1,32)")?);
/// assert_eq!(built.to_string(), "reorder(i, k, j); split(k, k0, k1, 32)");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    steps: Vec<Step>,
    /// The text it was read from.
    source: Option<Arc<Source>>,
}

/// Schedules are equal if they say the same, wherever they stand.
impl PartialEq for Schedule {
    fn eq(&self, other: &Schedule) -> bool {
        self.commands().eq(other.commands())
    }
}

impl Eq for Schedule {}

impl std::hash::Hash for Schedule {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.steps.len().hash(state);
        self.commands().for_each(|command| command.hash(state));
    }
}

/// A command and where it stands.
#[derive(Clone, Debug)]
struct Step {
    command: Command,
    /// The command in the text; nothing if it was made by a method.
    span: Option<Span>,
    /// Its arguments in the text.
    args: Vec<Span>,
}

/// A scheduling command. Loops are named by their indices; `k#2` is the second loop over `k` in the program's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Command {
    /// The loops of one nest in another order.
    Reorder { loops: Vec<String> },
    /// A loop cut into pieces of equal length: a loop over pieces, and one over what is in a piece.
    Split { index: String, outer: String, inner: String, factor: i64 },
    /// Two loops cut, and the loops over pieces put outside.
    Tile { loops: [String; 2], first: [String; 2], second: [String; 2], factors: [i64; 2] },
    /// Two loops made one.
    Fuse { outer: String, inner: String, fused: String },
    /// How many values an index takes.
    Bound { index: String, renamed: Option<String>, length: i64, kind: BoundKind },
    /// So many turns of a loop written out.
    Unroll { index: String, factor: i64 },
    /// The turns of a loop run in the lanes of a vector.
    Vectorize { index: String, lanes: Option<i64> },
    /// The turns of a loop run on several threads.
    Parallelize { index: String, races: Races },
    /// The values of an expression stored in a temporary first.
    Precompute { expression: String, indices: Vec<String>, workspace: Vec<String>, format: Option<String> },
    /// A tensor copied into another format first.
    Convert { tensor: String, format: String },
    /// A loop over the stored entries of a parameter instead of coordinates.
    Pos { index: String, position: String, access: String },
    /// A workspace between a loop nest and its result.
    InsertWorkspace { policy: String, capacity: Option<i64>, pipelined: bool },
}

/// What `bound` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// Exactly so many.
    Exactly,
    /// No more than that.
    AtMost,
}

/// What the turns of a parallel loop may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Races {
    /// Reductions, which are made private and combined.
    Reductions,
    /// Nothing: each turn writes elements of its own.
    NoRaces,
}

impl Schedule {
    /// A schedule that changes nothing.
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Reads a schedule: commands separated by `;`, `,` or lines.
    pub fn parse(text: &str) -> Result<Schedule, Diagnostics> {
        Schedule::parse_source(&Source::new("schedule", text))
    }

    /// Reads a schedule from a named source.
    pub fn parse_source(source: &Arc<Source>) -> Result<Schedule, Diagnostics> {
        let steps = parse::parse(source)?;
        Ok(Schedule { steps, source: Some(source.clone()) })
    }

    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.steps.iter().map(|step| &step.command)
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The same schedule without one of its commands.
    pub fn without(&self, at: usize) -> Schedule {
        let mut shorter = self.clone();
        if at < shorter.steps.len() {
            shorter.steps.remove(at);
        }
        shorter
    }

    /// Points a diagnostic about a policy of workspaces to the command that asks for it; `None` if no command does.
    pub fn blame_policy(&self, policy: &str, d: &Diagnostic, label: &str) -> Option<Diagnostic> {
        let asks = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == policy);
        let (step, arg) = self.steps.iter().find_map(|step| {
            let (text, arg) = match &step.command {
                Command::InsertWorkspace { policy, .. } => (policy, 0),
                Command::Precompute { format: Some(format), .. } => (format, 3),
                Command::Convert { format, .. } => (format, 1),
                _ => return None,
            };
            asks(text).then_some((step, arg))
        })?;
        let span = step.args.get(arg).copied().or(step.span);
        Some(match (span, &self.source) {
            (Some(span), Some(source)) => d.clone().label(source.find(span, policy), label).with_source(source),
            _ => d.clone().note(format!("in the scheduling command `{}`", step.command)),
        })
    }

    /// Adds a command.
    pub fn then(mut self, command: Command) -> Schedule {
        self.steps.push(Step { command, span: None, args: Vec::new() });
        self
    }

    /// Puts the loops of one nest in this order; loops of the nest that are not named stay where they are.
    pub fn reorder<S: Into<String>>(self, loops: impl IntoIterator<Item = S>) -> Schedule {
        self.then(Command::Reorder { loops: loops.into_iter().map(Into::into).collect() })
    }

    /// Cuts a loop into pieces of `factor` values: `outer` goes over the pieces, `inner` over the coordinates of a piece.
    pub fn split(self, index: &str, outer: &str, inner: &str, factor: i64) -> Schedule {
        let (index, outer, inner) = (index.into(), outer.into(), inner.into());
        self.then(Command::Split { index, outer, inner, factor })
    }

    /// Cuts two loops, one directly inside the other, into tiles: `first` and `second` are the names of the loops over
    /// pieces and inside of pieces that the first and the second loop become.
    pub fn tile(self, loops: [&str; 2], first: [&str; 2], second: [&str; 2], factors: [i64; 2]) -> Schedule {
        let owned = |names: [&str; 2]| names.map(String::from);
        self.then(Command::Tile { loops: owned(loops), first: owned(first), second: owned(second), factors })
    }

    /// Makes one loop of two, one directly inside the other.
    pub fn fuse(self, outer: &str, inner: &str, fused: &str) -> Schedule {
        let (outer, inner, fused) = (outer.into(), inner.into(), fused.into());
        self.then(Command::Fuse { outer, inner, fused })
    }

    /// States how many values an index takes.
    pub fn bound(self, index: &str, length: i64, kind: BoundKind) -> Schedule {
        self.then(Command::Bound { index: index.into(), renamed: None, length, kind })
    }

    /// Writes out so many turns of a loop.
    pub fn unroll(self, index: &str, factor: i64) -> Schedule {
        self.then(Command::Unroll { index: index.into(), factor })
    }

    /// Runs the turns of a loop in the lanes of a vector.
    pub fn vectorize(self, index: &str) -> Schedule {
        self.then(Command::Vectorize { index: index.into(), lanes: None })
    }

    /// Runs the turns of a loop on several threads.
    pub fn parallelize(self, index: &str) -> Schedule {
        self.then(Command::Parallelize { index: index.into(), races: Races::Reductions })
    }

    /// Stores the values of an expression for all values of some indices in a temporary first. The temporary is filled by
    /// loops with the indices `workspace`; `format` is its format, `dense` unless written.
    pub fn precompute(self, expression: &str, indices: &[&str], workspace: &[&str], format: Option<&str>) -> Schedule {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        self.then(Command::Precompute {
            expression: expression.into(),
            indices: owned(indices),
            workspace: owned(workspace),
            format: format.map(String::from),
        })
    }

    /// Makes a loop go over the stored entries of a parameter, numbered by `position`, instead of coordinates.
    pub fn pos(self, index: &str, position: &str, access: &str) -> Schedule {
        self.then(Command::Pos { index: index.into(), position: position.into(), access: access.into() })
    }

    /// Puts a sparse workspace of a policy between every nest and the result that it scatters into.
    pub fn insert_workspace(self, policy: &str, capacity: Option<i64>) -> Schedule {
        self.then(Command::InsertWorkspace { policy: policy.into(), capacity, pipelined: false })
    }

    /// [`Schedule::insert_workspace`] whose entries are sorted and merged on a second thread while others come.
    pub fn insert_pipelined_workspace(self, policy: &str, capacity: Option<i64>) -> Schedule {
        self.then(Command::InsertWorkspace { policy: policy.into(), capacity, pipelined: true })
    }

    /// Copies a tensor into another format before anything else.
    pub fn convert(self, tensor: &str, format: &str) -> Schedule {
        self.then(Command::Convert { tensor: tensor.into(), format: format.into() })
    }

    /// Applies the commands, one after the other, to a program that was checked for the tensors it is called with.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// use tamis_ir::{DType, Program, program::ParamType};
    /// let program = Program::parse("
    /// def rowsum(A):
    ///     y = tensor('dense')
    ///     for i, j in _:
    ///         y[i] += A[i,j]
    ///     return y
    /// ")?;
    /// let a = ParamType { dtype: DType::F64, shape: vec![Some(3), Some(100)], value: None, weak: false };
    /// let schedule = Schedule::new().split("j", "j0", "j1", 32).reorder(["j0", "i"]);
    /// let scheduled = schedule.apply(&program, &program.check(&[a])?)?;
    /// assert_eq!(scheduled.to_string(), "\
    /// def rowsum(A):
    ///     y = tensor(\"dense\")
    ///     for j0 in range((A.shape[1] + 31) // 32):
    ///         for i in _:
    ///             for j1 in range(j0 * 32, min(j0 * 32 + 32, A.shape[1])):
    ///                 y[i] += A[i, j1]
    ///     return y
    /// ");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn apply(&self, program: &Program, checked: &Checked) -> Result<Program, Diagnostics> {
        self.apply_to(program, checked, &[], Policy::default())
    }

    /// [`Schedule::apply`], for parameters whose formats are known, in order: copies of them go through what is stored
    /// in its order, and loops can go over its positions, if by this policy nothing happens elsewhere. A fill other than 0 is
    /// part of a format ([`with_fill`]).
    pub fn apply_to(
        &self,
        program: &Program,
        checked: &Checked,
        formats: &[Format],
        policy: Policy,
    ) -> Result<Program, Diagnostics> {
        let original = program;
        let mut program = program.clone();
        for step in &self.steps {
            let mut work = Work::new(program, original, checked, formats, policy, step, self.source.as_ref());
            run(&mut work)?;
            program = work.finish()?;
        }
        program.renumber();
        program.verify()?;
        Ok(program)
    }
}

/// A format that says what a tensor is filled with, if that is not 0.
pub fn with_fill(format: &Format, fill: Value) -> Format {
    match format.leaf() {
        Leaf::Element(None) if fill.is_truthy() => format.clone().with_leaf(Leaf::Element(Some(fill))),
        _ => format.clone(),
    }
}

fn run(work: &mut Work) -> tamis_ir::diag::Result<()> {
    let step = work.step;
    match &step.command {
        Command::Reorder { loops } => reorder::run(work, loops),
        Command::Split { index, outer, inner, factor } => split::run(work, index, [outer, inner], *factor),
        Command::Tile { loops, first, second, factors } => tile::run(work, loops, first, second, *factors),
        Command::Fuse { outer, inner, fused } => fuse::run(work, outer, inner, fused),
        Command::Bound { index, renamed, length, kind } => bound::run(work, index, renamed.as_deref(), *length, *kind),
        Command::Unroll { index, factor } => annotate::unroll(work, index, *factor),
        Command::Vectorize { index, lanes } => annotate::vectorize(work, index, *lanes),
        Command::Parallelize { index, races } => annotate::parallelize(work, index, *races),
        Command::Precompute { expression, indices, workspace, format } => {
            precompute::run(work, expression, indices, workspace, format.as_deref())
        }
        Command::Convert { tensor, format } => convert::run(work, tensor, format),
        Command::InsertWorkspace { policy, capacity, pipelined } => {
            insert_workspace::run(work, policy, *capacity, *pipelined)
        }
        Command::Pos { index, position, access } => pos::run(work, index, position, access),
    }
}
