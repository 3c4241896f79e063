//! Analysis of a run: iterations of each loop beside the cost model's predictions, bytes moved by
//! each array, and time.
//!
//! In: a program or index notation with its tensors. Out: an [`Analysis`]. `measure` compiles the
//! kernel with and without counters and runs both, `report` aggregates the counters, `text` prints.

mod measure;
mod report;
mod text;

use crate::compile::{CompileOptions, check_policies, schedule};
use crate::notation::{EinsumOptions, converted_operands, parse, plan, positions};
use crate::results::Results;
use crate::run::by_position;
use crate::signature::Signature;
use std::time::{Duration, Instant};
use tamis_compiler::auto::{self, OperandStatistics, Prediction};
use tamis_compiler::pipeline::Compilation;
use tamis_compiler::schedule::Schedule;
use tamis_ir::notation::Notation;
use tamis_ir::{Diagnostics, Program};
use tamis_tensor::Tensor;

/// A loop whose visits deviate from the prediction by this factor gets a remark.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// use tamis::analyze::NOTABLE_RATIO;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
/// assert!(analysis.loops.iter().all(|one| one.ratio().is_none_or(|ratio| ratio < NOTABLE_RATIO)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub const NOTABLE_RATIO: f64 = 4.0;

/// The analysis of a run.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::default())?;
/// assert_eq!(analysis.loops.len(), 2);
/// let values = analysis.arrays.iter().find(|array| array.name == "A values").unwrap();
/// assert_eq!(values.moved.read, 8 * a.nnz() as u64);
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Debug)]
pub struct Analysis {
    /// The program that ran, with inserted workspaces.
    pub program: String,
    /// Its loops, in the order of the program.
    pub loops: Vec<LoopAnalysis>,
    /// Bytes moved outside of all loops.
    pub outside: BytesMoved,
    /// The arrays, in the order of the kernel's buffers; register tiles are left out.
    pub arrays: Vec<ArrayAnalysis>,
    /// The time of the kernel without counters: the least of several runs.
    pub time: Duration,
    /// The time of one run with counters.
    pub time_counting: Duration,
    /// The number of runs without counters.
    pub runs: usize,
    /// The number of loop nests of the kernel.
    pub nests: usize,
    /// True if the time of each nest was measured.
    pub nests_measured: bool,
    /// Conversions of operands, with their times.
    pub conversions: Vec<(String, Duration)>,
    /// The number of applied operators.
    pub operations: u64,
    /// The number of executed statements of the kernel.
    pub statements: u64,
    /// Deviations from the predictions, in sentences.
    pub remarks: Vec<String>,
    /// The results.
    pub results: Results,
}

/// Bytes that the kernel reads and writes. Caches and registers absorb a part of them.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
/// let moved = analysis.loops[0].moved;
/// assert!(moved.read >= 8 * a.nnz() as u64);
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesMoved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// The analysis of a loop of the program.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::default())?;
/// let inner = &analysis.loops[1];
/// assert_eq!((inner.visits, inner.ratio()), (a.nnz() as u64, Some(1.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopAnalysis {
    /// Its index.
    pub index: String,
    /// The number of loops around it.
    pub depth: usize,
    /// Its line in the program's text, if it has one.
    pub line: Option<usize>,
    /// The number of times it was entered.
    pub entered: u64,
    /// The number of times its body ran, for one coordinate or a run of them.
    pub visits: u64,
    /// The steps of merges and searches that found these coordinates; 0 for a plain loop over
    /// positions.
    pub steps: u64,
    /// The predicted visits.
    pub predicted: Option<f64>,
    /// The sparse tensors behind the prediction, and whether their statistics were counted (or
    /// assumed).
    pub predicted_from: Vec<(String, bool)>,
    /// The inner loop for each of whose register tiles this loop runs once, if register tiling
    /// interchanged them.
    pub in_tiles_of: Option<String>,
    /// Bytes, without inner loops.
    pub own: BytesMoved,
    /// The same by array, named as in [`Analysis::arrays`].
    pub own_by_array: Vec<(String, BytesMoved)>,
    /// Bytes, with inner loops.
    pub moved: BytesMoved,
    /// Seconds, with inner loops.
    pub seconds: f64,
    /// True if the time was measured; otherwise it is apportioned by counted work.
    pub measured: bool,
    /// The loops of the kernel that it was lowered to.
    pub kernel_loops: Vec<LoopReport>,
}

impl LoopAnalysis {
    /// Visits divided by predicted visits.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
    /// assert_eq!(analysis.loops[1].ratio(), Some(1.0));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn ratio(&self) -> Option<f64> {
        let predicted = self.predicted?;
        Some(self.visits as f64 / predicted.max(f64::MIN_POSITIVE)).filter(|_| predicted > 0.0 || self.visits > 0)
    }
}

/// A loop of the kernel.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
/// let lowered = &analysis.loops[1].kernel_loops[0];
/// println!("{}", lowered.text);
/// assert_eq!((lowered.entered, lowered.iterations), (200, a.nnz() as u64));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LoopReport {
    /// Its first line.
    pub text: String,
    /// The number of times it was entered.
    pub entered: u64,
    /// The number of its iterations.
    pub iterations: u64,
    /// True if each iteration runs the body of the program's loop.
    pub visits: bool,
}

/// The analysis of an array.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
/// let values = analysis.arrays.iter().find(|array| array.name == "A values").unwrap();
/// assert_eq!((values.moved.read, values.moved.written), (values.size, 0), "each is read once");
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayAnalysis {
    /// The tensor and its array, as in `A crd`.
    pub name: String,
    /// Bytes read and written.
    pub moved: BytesMoved,
    /// Its size in bytes, a lower bound on the bytes moved if all of it is needed.
    pub size: u64,
}

/// Runs index notation or a loop program on tensors given by name, and analyses the run.
///
/// Machine code counts while it runs, at nearly full speed; times are those of the code without
/// counters.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let analysis = tamis::analyze("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &EinsumOptions::default())?;
/// let j = &analysis.loops[1];
/// assert_eq!((j.index.as_str(), j.visits, j.predicted), ("j", 2, Some(2.0)));
/// assert!(analysis.to_string().contains("A crd"));
/// assert_eq!(analysis.results[0].get(&[1]), Some(Value::F64(20.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn analyze(text: &str, inputs: &[(&str, &Tensor)], options: &EinsumOptions) -> Result<Analysis, Diagnostics> {
    if Notation::looks_like(text) {
        let notation = parse(text, inputs)?;
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let positions = positions(&notation.params(), &names)?;
        let tensors: Vec<&Tensor> = positions.into_iter().filter_map(|at| inputs.get(at)).map(|(_, t)| *t).collect();
        return analyze_notation(&notation, &tensors, options);
    }
    let program = Program::parse(text)?;
    analyze_program(&program, &by_position(&program, inputs)?, &options.compile)
}

/// [`analyze()`] for parsed notation, with tensors in the order of its parameters.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let notation = Notation::parse("y[i] = A[i,j]")?;
/// let analysis = tamis::analyze::analyze_notation(&notation, &[&a], &EinsumOptions::default())?;
/// assert_eq!(analysis.loops[0].index, "i");
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn analyze_notation(
    notation: &Notation,
    tensors: &[&Tensor],
    options: &EinsumOptions,
) -> Result<Analysis, Diagnostics> {
    let plan = plan(notation, tensors, &options.pins)?;
    let start = Instant::now();
    let converted = converted_operands(&plan, notation, tensors)?;
    let took = start.elapsed();
    let refs: Vec<&Tensor> = converted.iter().map(|tensor| tensor.as_ref()).collect();
    let costs = crate::calibrate::costs()?;
    let predict = |compilation: &Compilation| {
        let operands: Vec<OperandStatistics> = refs.iter().map(|tensor| OperandStatistics::of(tensor)).collect();
        auto::predict(&compilation.program, &compilation.checked, &operands, &costs)
    };
    let mut analysis = measured(&plan.program, &refs, &options.compile, &predict, false)?;
    let shown = |c: &auto::Conversion| format!("{} = convert({}, \"{}\")", c.name, c.source, c.format);
    // They were timed together; each gets an equal share.
    let each = took / u32::try_from(plan.conversions.len().max(1)).unwrap_or(1);
    analysis.conversions = plan.conversions.iter().map(|c| (shown(c), each)).collect();
    Ok(analysis)
}

/// [`analyze()`] for a loop program, with tensors in the order of its parameters. The loops of a
/// program have no predictions.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let program = Program::parse("
/// def total(A):
///     s = scalar(0.0)
///     for i, j in _:
///         s += A[i,j]
///     return s
/// ")?;
/// let analysis = tamis::analyze::analyze_program(&program, &[&a], &CompileOptions::default())?;
/// assert_eq!((analysis.loops[0].visits, analysis.loops[0].predicted), (200, None));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn analyze_program(
    program: &Program,
    tensors: &[&Tensor],
    options: &CompileOptions,
) -> Result<Analysis, Diagnostics> {
    measured(program, tensors, options, &|_| Vec::new(), true)
}

/// Predicts the visits of the loops of a compilation.
type Predict<'a> = dyn Fn(&Compilation) -> Vec<Option<Prediction>> + 'a;

fn measured(
    program: &Program,
    tensors: &[&Tensor],
    options: &CompileOptions,
    predict: &Predict,
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
    let expected = predict(&run.counted);
    Ok(report::report(&run, measured, &expected, written))
}
