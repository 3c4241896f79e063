//! Schedules: scheduling commands and workspace insertion, as program-to-program transformations
//! before lowering. Scheduling commands come from text or from methods. Every scheduled program can
//! be printed, parsed, interpreted and compiled. A [`Schedule`] is a list of commands as data. Each
//! command has a file; `legal` decides legality, `extents` computes symbolic loop extents, `edit`
//! finds and rewrites loops.

mod annotate;
mod array_renaming;
pub(crate) mod block;
mod bound;
pub mod classify;
mod convert;
mod copy_in;
mod describe;
mod edit;
mod extents;
mod fuse;
mod guarded_windows;
mod idle;
pub(crate) mod insert;
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

pub use array_renaming::rename_updated;
pub use copy_in::{copy_in, is_elementwise_of};
pub use guarded_windows::relax_guards;
pub(crate) use guarded_windows::sizes_in_guards;
pub use insert::Inserted;

use crate::lower::Policy;
use edit::ProgramEdit;
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
    steps: Vec<LocatedCommand>,
    /// The text it was read from.
    source: Option<Arc<Source>>,
}

/// Equality ignores source locations.
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

/// A command with its source location.
#[derive(Clone, Debug)]
struct LocatedCommand {
    command: Command,
    /// The span of the command; none if a method created it.
    span: Option<Span>,
    /// The spans of its arguments.
    args: Vec<Span>,
}

/// A scheduling command. Loops are named by their indices; `k#2` is the second loop over `k` in the
/// program's text.
///
/// ```
/// use tamis_compiler::schedule::{Command, Schedule};
/// let schedule = Schedule::parse("unroll(i, 4)")?;
/// assert!(schedule.commands().eq([&Command::Unroll { index: "i".into(), factor: 4 }]));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Command {
    /// Reorders the loops of a nest.
    Reorder { loops: Vec<String> },
    /// Splits a loop into an outer loop over strips and an inner loop over one strip
    /// (strip-mining).
    Split { index: String, outer: String, inner: String, factor: i64 },
    /// Tiles two loops: splits both and moves the outer loops outside.
    Tile { loops: [String; 2], first: [String; 2], second: [String; 2], factors: [i64; 2] },
    /// Collapses two loops into one.
    Fuse { outer: String, inner: String, fused: String },
    /// Asserts the trip count of a loop.
    Bound { index: String, renamed: Option<String>, length: i64, kind: BoundKind },
    /// Unrolls a loop by a factor.
    Unroll { index: String, factor: i64 },
    /// Runs the iterations of a loop in vector lanes.
    Vectorize { index: String, lanes: Option<i64> },
    /// Runs the iterations of a loop on several threads.
    Parallelize { index: String, races: Races },
    /// Precomputes the values of an expression in a workspace.
    Precompute { expression: String, indices: Vec<String>, workspace: Vec<String>, format: Option<String> },
    /// Converts a tensor to another format first.
    Convert { tensor: String, format: String },
    /// Replaces a coordinate loop by a loop over the positions of a parameter.
    Pos { index: String, position: String, access: String },
    /// Inserts a workspace between a loop nest and its result.
    InsertWorkspace { policy: String, capacity: Option<i64>, pipelined: bool },
}

/// The kind of a `bound` assertion.
///
/// ```
/// use tamis_compiler::schedule::Schedule;
/// assert!(Schedule::parse("bound(i, 100, exactly); bound(j, 8, at_most)").is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundKind {
    /// The trip count is exactly the number.
    Exactly,
    /// The trip count is at most the number.
    AtMost,
}

/// The permitted data races of a parallel loop.
///
/// ```
/// use tamis_compiler::schedule::Schedule;
/// assert_eq!(Schedule::parse("parallelize(i)")?.to_string(), "parallelize(i)");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Races {
    /// Reductions, which are privatised and combined.
    Reductions,
    /// None: each iteration writes elements of its own.
    NoRaces,
}

impl Schedule {
    /// An empty schedule.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert!(Schedule::new().is_empty());
    /// ```
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Parses a schedule: commands separated by `;`, `,` or line breaks.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::parse("reorder(i, k, j); unroll(j, 4)")?;
    /// assert_eq!(schedule, Schedule::new().reorder(["i", "k", "j"]).unroll("j", 4));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn parse(text: &str) -> Result<Schedule, Diagnostics> {
        Schedule::parse_source(&Source::new("schedule", text))
    }

    /// Parses a schedule from a named source.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// use tamis_ir::Source;
    /// let text = Source::new("gemm.schedule", "unrol(j, 4)");
    /// let errors = Schedule::parse_source(&text).unwrap_err();
    /// assert!(errors.render(false).contains("gemm.schedule:1:1"));
    /// ```
    pub fn parse_source(source: &Arc<Source>) -> Result<Schedule, Diagnostics> {
        let steps = parse::parse(source)?;
        Ok(Schedule { steps, source: Some(source.clone()) })
    }

    /// The commands, in order.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::parse("reorder(i, k, j); unroll(j, 4)")?;
    /// let names: Vec<&str> = schedule.commands().map(|command| command.name()).collect();
    /// assert_eq!(names, ["reorder", "unroll"]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.steps.iter().map(|step| &step.command)
    }

    /// The number of commands.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().unroll("i", 4).vectorize("i").len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True if there is no command.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert!(Schedule::parse("")?.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The same schedule without one of its commands.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().reorder(["j", "i"]).unroll("i", 4);
    /// assert_eq!(schedule.without(0), Schedule::new().unroll("i", 4));
    /// ```
    pub fn without(&self, at: usize) -> Schedule {
        let mut shorter = self.clone();
        if at < shorter.steps.len() {
            shorter.steps.remove(at);
        }
        shorter
    }

    /// Points a diagnostic about a workspace policy to the command that names it; `None` if no
    /// command does.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// use tamis_ir::{Code, Diagnostic};
    /// let schedule = Schedule::parse("insert_workspace(hesh)")?;
    /// let d = Diagnostic::new(Code::E0602, "`hesh` is not a policy of workspaces");
    /// assert!(schedule.blame_policy("hesh", &d, "unknown policy").is_some());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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

    /// Appends a command.
    ///
    /// ```
    /// use tamis_compiler::schedule::{Command, Schedule};
    /// let schedule = Schedule::new().then(Command::Unroll { index: "i".to_string(), factor: 4 });
    /// assert_eq!(schedule.to_string(), "unroll(i, 4)");
    /// ```
    pub fn then(mut self, command: Command) -> Schedule {
        self.steps.push(LocatedCommand { command, span: None, args: Vec::new() });
        self
    }

    /// Reorders the loops of one nest; unnamed loops of the nest keep their places.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().reorder(["i", "k", "j"]).to_string(), "reorder(i, k, j)");
    /// ```
    pub fn reorder<S: Into<String>>(self, loops: impl IntoIterator<Item = S>) -> Schedule {
        self.then(Command::Reorder { loops: loops.into_iter().map(Into::into).collect() })
    }

    /// Splits a loop by `factor`: `outer` iterates over strips, `inner` over the coordinates of a
    /// strip.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().split("i", "i0", "i1", 8).to_string(), "split(i, i0, i1, 8)");
    /// ```
    pub fn split(self, index: &str, outer: &str, inner: &str, factor: i64) -> Schedule {
        let (index, outer, inner) = (index.into(), outer.into(), inner.into());
        self.then(Command::Split { index, outer, inner, factor })
    }

    /// Tiles two directly nested loops: `first` and `second` name the outer and inner loop that
    /// each is split into.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let tiled = Schedule::new().tile(["i", "j"], ["i0", "i1"], ["j0", "j1"], [8, 32]);
    /// assert_eq!(tiled, Schedule::parse(&tiled.to_string())?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn tile(self, loops: [&str; 2], first: [&str; 2], second: [&str; 2], factors: [i64; 2]) -> Schedule {
        let owned = |names: [&str; 2]| names.map(String::from);
        self.then(Command::Tile { loops: owned(loops), first: owned(first), second: owned(second), factors })
    }

    /// Collapses two directly nested loops into one.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().fuse("i", "j", "f").to_string(), "fuse(i, j, f)");
    /// ```
    pub fn fuse(self, outer: &str, inner: &str, fused: &str) -> Schedule {
        let (outer, inner, fused) = (outer.into(), inner.into(), fused.into());
        self.then(Command::Fuse { outer, inner, fused })
    }

    /// Asserts the trip count of a loop.
    ///
    /// ```
    /// use tamis_compiler::schedule::{BoundKind, Schedule};
    /// let bounded = Schedule::new().bound("i", 64, BoundKind::AtMost);
    /// assert_eq!(bounded, Schedule::parse("bound(i, 64, at_most)")?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn bound(self, index: &str, length: i64, kind: BoundKind) -> Schedule {
        self.then(Command::Bound { index: index.into(), renamed: None, length, kind })
    }

    /// Unrolls a loop by a factor.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().unroll("i", 4).to_string(), "unroll(i, 4)");
    /// ```
    pub fn unroll(self, index: &str, factor: i64) -> Schedule {
        self.then(Command::Unroll { index: index.into(), factor })
    }

    /// Runs the iterations of a loop in vector lanes.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().vectorize("i").to_string(), "vectorize(i)");
    /// ```
    pub fn vectorize(self, index: &str) -> Schedule {
        self.then(Command::Vectorize { index: index.into(), lanes: None })
    }

    /// Runs the iterations of a loop on several threads.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// assert_eq!(Schedule::new().parallelize("i").to_string(), "parallelize(i)");
    /// ```
    pub fn parallelize(self, index: &str) -> Schedule {
        self.then(Command::Parallelize { index: index.into(), races: Races::Reductions })
    }

    /// Precomputes an expression for all values of some indices in a workspace. Its producer loops
    /// are named `workspace`; its format is `format`, by default `dense`.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().precompute("B[i,j] * c[j]", &["j"], &["jw"], None);
    /// assert_eq!(schedule, Schedule::parse(&schedule.to_string())?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn precompute(self, expression: &str, indices: &[&str], workspace: &[&str], format: Option<&str>) -> Schedule {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        self.then(Command::Precompute {
            expression: expression.into(),
            indices: owned(indices),
            workspace: owned(workspace),
            format: format.map(String::from),
        })
    }

    /// Replaces a coordinate loop by a loop over the positions of a parameter, named `position`.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().pos("j", "p", "A[i,j]");
    /// assert_eq!(schedule, Schedule::parse(&schedule.to_string())?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn pos(self, index: &str, position: &str, access: &str) -> Schedule {
        self.then(Command::Pos { index: index.into(), position: position.into(), access: access.into() })
    }

    /// Inserts a sparse workspace of a policy for every scattered result.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().insert_workspace("hash", Some(4096));
    /// assert_eq!(schedule.to_string(), "insert_workspace(hash, 4096)");
    /// ```
    pub fn insert_workspace(self, policy: &str, capacity: Option<i64>) -> Schedule {
        self.then(Command::InsertWorkspace { policy: policy.into(), capacity, pipelined: false })
    }

    /// [`Schedule::insert_workspace`] whose elements are sorted and merged on a second thread while
    /// others are inserted.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().insert_pipelined_workspace("coord", Some(4096));
    /// assert_eq!(schedule, Schedule::parse(&schedule.to_string())?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn insert_pipelined_workspace(self, policy: &str, capacity: Option<i64>) -> Schedule {
        self.then(Command::InsertWorkspace { policy: policy.into(), capacity, pipelined: true })
    }

    /// Converts a tensor to another format first.
    ///
    /// ```
    /// use tamis_compiler::schedule::Schedule;
    /// let schedule = Schedule::new().convert("A", "csc");
    /// assert_eq!(schedule, Schedule::parse(&schedule.to_string())?);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn convert(self, tensor: &str, format: &str) -> Schedule {
        self.then(Command::Convert { tensor: tensor.into(), format: format.into() })
    }

    /// Applies the commands in order to a program that was checked for the types of its parameters.
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

    /// [`Schedule::apply`] for parameters with known formats: conversions then follow storage
    /// order, and `pos` is legal if the body is idle at unstored coordinates under this arithmetic
    /// policy. A fill other than 0 is part of a format ([`with_fill`]).
    ///
    /// ```
    /// use tamis_compiler::lower::Policy;
    /// use tamis_compiler::schedule::Schedule;
    /// use tamis_ir::{DType, Format, Program, program::ParamType};
    /// # let program = Program::parse("
    /// # def rowsum(A):
    /// #     y = tensor('dense')
    /// #     for i, j in _:
    /// #         y[i] += A[i,j]
    /// #     return y
    /// # ")?;
    /// # let shape = vec![Some(3), Some(100)];
    /// # let a = ParamType { dtype: DType::F64, shape, value: None, weak: false };
    /// # let checked = program.check(&[a])?;
    /// let schedule = Schedule::new().unroll("j", 4);
    /// let scheduled = schedule.apply_to(&program, &checked, &[Format::csr()], Policy::default())?;
    /// assert!(scheduled.to_string().contains("for j in unroll(_, 4):"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
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
            let mut work = ProgramEdit::new(program, original, checked, formats, policy, step, self.source.as_ref());
            run(&mut work)?;
            program = work.finish()?;
        }
        program.renumber();
        program.verify()?;
        Ok(program)
    }
}

/// A format with a fill other than 0.
///
/// ```
/// use tamis_compiler::schedule::with_fill;
/// use tamis_ir::{Format, Value};
/// let distances = with_fill(&Format::csr(), Value::F64(f64::INFINITY));
/// assert_eq!(distances.to_string(), "csr; element(inf)");
/// ```
pub fn with_fill(format: &Format, fill: Value) -> Format {
    match format.leaf() {
        Leaf::Element(None) if fill.is_truthy() => format.clone().with_leaf(Leaf::Element(Some(fill))),
        _ => format.clone(),
    }
}

fn run(work: &mut ProgramEdit) -> tamis_ir::diag::Result<()> {
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
