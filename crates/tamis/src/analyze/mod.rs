//! What a run does, counted: loops against what was expected of them, bytes against the arrays they are in, time against work.
//!
//! `measure` compiles and runs, `report` puts together what was counted, `text` shows it.

mod measure;
mod report;
mod text;

use crate::compile::{CompileOptions, check_policies, schedule};
use crate::notation::{EinsumOptions, operands_of, parse, places, plan};
use crate::run::by_position;
use crate::signature::Signature;
use std::time::{Duration, Instant};
use tamis_compiler::auto::{self, Operand, Prediction};
use tamis_compiler::pipeline::Compilation;
use tamis_compiler::schedule::Schedule;
use tamis_ir::notation::Notation;
use tamis_ir::{Diagnostics, Program};
use tamis_tensor::Tensor;

/// A loop that took this many times more or fewer turns than expected deserves a remark.
pub const SURPRISING: f64 = 4.0;

/// What a run did.
#[derive(Debug)]
pub struct Analysis {
    /// The program that ran, with the workspaces that it needs.
    pub program: String,
    /// Its loops, in the order of the program.
    pub loops: Vec<LoopAnalysis>,
    /// Bytes that were read and written outside of all loops.
    pub outside: Moved,
    /// The arrays, in the order of the kernel's buffers; those that stay in registers are not among them.
    pub arrays: Vec<ArrayAnalysis>,
    /// How long the kernel took, without counters: the least of several runs.
    pub time: Duration,
    /// How long it took once, with counters.
    pub time_counting: Duration,
    /// How many runs that were.
    pub runs: usize,
    /// How many loop nests the kernel has, and whether each one's time was measured.
    pub nests: usize,
    /// See `nests`.
    pub nests_measured: bool,
    /// Tensors that were converted first: how, and how long that took.
    pub conversions: Vec<(String, Duration)>,
    /// Operators that were applied.
    pub operations: u64,
    /// Statements of the kernel that were executed.
    pub statements: u64,
    /// What is surprising, in sentences.
    pub remarks: Vec<String>,
    /// The results.
    pub results: Vec<(String, Tensor)>,
}

/// Bytes that were read and written, as the kernel says it; caches and registers see to it that memory sees fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Moved {
    pub read: u64,
    pub written: u64,
}

/// What happened in a loop of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopAnalysis {
    /// Its index.
    pub index: String,
    /// How many loops are around it.
    pub depth: usize,
    /// The line of the text that it was written in, if it was.
    pub line: Option<usize>,
    /// How often it was entered.
    pub entered: u64,
    /// How often its body ran, for one coordinate or a whole run of them.
    pub visits: u64,
    /// How often it went on along lists to find those coordinates, where that is more than a loop over positions.
    pub steps: u64,
    /// How often its body was expected to run.
    pub predicted: Option<f64>,
    /// The sparse tensors that say so, and whether their statistics were counted, or assumed.
    pub predicted_from: Vec<(String, bool)>,
    /// The index of a loop inside this one in whose tiles it runs again and again, each tile staying in registers.
    pub in_tiles_of: Option<String>,
    /// Bytes, without those of the loops inside.
    pub own: Moved,
    /// The same by array, by the names in [`Analysis::arrays`].
    pub own_by_array: Vec<(String, Moved)>,
    /// Bytes, with those of the loops inside.
    pub moved: Moved,
    /// Seconds, with those of the loops inside.
    pub seconds: f64,
    /// Whether the time was measured, or apportioned by counted work.
    pub measured: bool,
    /// The loops of the kernel that it became.
    pub parts: Vec<PartAnalysis>,
}

impl LoopAnalysis {
    /// Visits for each that was expected.
    pub fn ratio(&self) -> Option<f64> {
        let predicted = self.predicted?;
        Some(self.visits as f64 / predicted.max(f64::MIN_POSITIVE)).filter(|_| predicted > 0.0 || self.visits > 0)
    }
}

/// A loop of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct PartAnalysis {
    /// Its first line.
    pub text: String,
    /// How often it was entered.
    pub entered: u64,
    /// How often it went around.
    pub turns: u64,
    /// Whether each turn runs the body of the program's loop.
    pub visits: bool,
}

/// What happened to an array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayAnalysis {
    /// The tensor and what it is of it, as in `A crd`.
    pub name: String,
    /// Bytes read and written.
    pub moved: Moved,
    /// Its size in bytes: less than that cannot be moved if all of it is needed.
    pub size: u64,
}

/// Runs index notation or a loop program on tensors given by name, and says what happened.
///
/// Machine code counts while it runs, at nearly full speed; times are those of the code without counters.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let analysis = tamis::analyze("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// let j = &analysis.loops[1];
/// assert_eq!((j.index.as_str(), j.visits, j.predicted), ("j", 2, Some(2.0)));
/// assert!(analysis.to_string().contains("A crd"));
/// assert_eq!(analysis.results[0].1.get(&[1]), Some(Value::F64(20.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn analyze(text: &str, inputs: &[(&str, &Tensor)], options: &EinsumOptions) -> Result<Analysis, Diagnostics> {
    if Notation::looks_like(text) {
        let notation = parse(text, inputs)?;
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let places = places(&notation.params(), &names)?;
        let tensors: Vec<&Tensor> = places.into_iter().filter_map(|at| inputs.get(at)).map(|(_, t)| *t).collect();
        return analyze_notation(&notation, &tensors, options);
    }
    let program = Program::parse(text)?;
    analyze_program(&program, &by_position(&program, inputs)?, &options.compile)
}

/// [`analyze`], for notation with tensors in the order of its parameters.
pub fn analyze_notation(
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<Analysis, Diagnostics> {
    let plan = plan(notation, tensors, &options.pins)?;
    let start = Instant::now();
    let made = operands_of(&plan, notation, tensors)?;
    let took = start.elapsed();
    let refs: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
    let costs = crate::calibrate::costs()?;
    let expect = |compilation: &Compilation| {
        let operands: Vec<Operand> = refs.iter().map(|tensor| Operand::of(tensor)).collect();
        auto::predict(&compilation.program, &compilation.checked, &operands, &costs)
    };
    let mut analysis = measured(&plan.program, &refs, &options.compile, &expect, false)?;
    let shown = |c: &auto::Conversion| format!("{} = convert({}, \"{}\")", c.name, c.source, c.format);
    // They are done together; each takes its share.
    let each = took / u32::try_from(plan.conversions.len().max(1)).unwrap_or(1);
    analysis.conversions = plan.conversions.iter().map(|c| (shown(c), each)).collect();
    Ok(analysis)
}

/// [`analyze`], for a loop program with tensors in the order of its parameters. Nothing is expected of loops that somebody wrote.
pub fn analyze_program(
    program: &Program,
    tensors: &[&Tensor],
    options: &CompileOptions,
) -> Result<Analysis, Diagnostics> {
    measured(program, tensors, options, &|_| Vec::new(), true)
}

/// What is expected of the loops of a compilation.
type Expect<'a> = dyn Fn(&Compilation) -> Vec<Option<Prediction>> + 'a;

fn measured(
    program: &Program,
    tensors: &[&Tensor],
    options: &CompileOptions,
    expect: &Expect,
    written: bool,
) -> Result<Analysis, Diagnostics> {
    let signature = Signature::of(tensors);
    let checked = program.check(&signature.types)?;
    check_policies(program, &checked, &Schedule::default())?;
    let (program, checked) = match schedule(program, &checked, &signature, options)? {
        Some(changed) => changed,
        None => (program.clone(), checked),
    };
    check_policies(&program, &checked, &options.schedule)?;
    let run = measure::Run::new(&program, &checked, &signature, tensors, options.strict)?;
    let measured = run.measure()?;
    let expected = expect(&run.counted);
    Ok(report::report(&run, measured, &expected, written))
}
