//! Advice: which formats suit a tensor, and how long a product with a vector takes in each of them on this machine.

mod measure;
mod task;

pub use task::Task;

use std::time::Duration;
use tamis_ir::{Diagnostic, Diagnostics, Format};
use tamis_tensor::{Part, Proposal, Statistics, Tensor, propose};

/// How advice is found.
#[derive(Clone, Copy)]
pub struct AdviseOptions<'a> {
    /// Whether formats are tried out; else they are only proposed, with the bytes that they take.
    pub measure: bool,
    /// How long that may take, all in all. Whatever is being converted or run when the time is over is finished.
    pub time_limit: Duration,
    /// Is told how much is done, and of how much.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for AdviseOptions<'_> {
    fn default() -> Self {
        AdviseOptions { measure: true, time_limit: Duration::from_secs(10), progress: None }
    }
}

/// Which formats suit a tensor.
#[derive(Debug)]
pub struct Advice {
    /// What was found out about the tensor.
    pub statistics: Statistics,
    /// What was measured; none for a scalar.
    pub task: Option<Task>,
    /// Formats, the fastest first; those that were not measured follow, the smallest first.
    pub candidates: Vec<Candidate>,
    /// Why nothing was measured, if that is so.
    pub unmeasured: Option<String>,
}

/// A format, and how it did.
#[derive(Debug)]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// What of the tensor is stored.
    pub part: Part,
    /// Why it was proposed, in a few words.
    pub why: String,
    /// Bytes of all arrays.
    pub bytes: u64,
    /// Whether it takes exactly that many bytes, or about that many.
    pub exact: bool,
    /// Whether this is the usual format, which others are compared with.
    pub usual: bool,
    /// The program that was measured, for a tensor in this format.
    pub program: String,
    /// The program that makes the part of the tensor that is stored, if that is not all of it.
    pub prepare: Option<&'static str>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of trying a format out.
#[derive(Debug)]
pub enum Outcome {
    /// It ran.
    Measured(Times),
    /// It could not be had, or the program could not be compiled for it.
    Failed(Diagnostic),
    /// It was not tried.
    Untried,
}

/// How long a format took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Converting the tensor to the format.
    pub convert: Duration,
    /// Compiling the program for it, or finding it in the cache.
    pub compile: Duration,
    /// One run: the median.
    pub run: Duration,
    /// The fastest run.
    pub least: Duration,
    /// How many runs there were.
    pub runs: usize,
}

impl Candidate {
    fn new(proposal: Proposal, usual: bool, program: String) -> Candidate {
        let Proposal { format, part, why, bytes, exact } = proposal;
        let prepare = (part != Part::Whole).then_some(task::LOWER);
        Candidate { format, part, why, bytes, exact, usual, program, prepare, outcome: Outcome::Untried }
    }

    /// How long it took, if it ran.
    pub fn times(&self) -> Option<&Times> {
        match &self.outcome {
            Outcome::Measured(times) => Some(times),
            _ => None,
        }
    }
}

/// A format that is this much faster than the usual one is worth a change; less may be chance.
const WORTHWHILE: f64 = 1.05;

impl Advice {
    /// The usual format, which the others are compared with.
    pub fn usual(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.usual)
    }

    /// The format to take: the fastest, unless the usual one is about as fast. Where nothing was measured, none.
    pub fn best(&self) -> Option<&Candidate> {
        let fastest = self.candidates.first().filter(|candidate| candidate.times().is_some())?;
        match self.speedup(fastest) {
            Some(times) if times < WORTHWHILE => self.usual(),
            _ => Some(fastest),
        }
    }

    /// How many times as fast as the usual format a candidate is, where both were measured.
    pub fn speedup(&self, candidate: &Candidate) -> Option<f64> {
        let usual = self.usual()?.times()?.run.as_secs_f64();
        Some(usual / candidate.times()?.run.as_secs_f64().max(1e-9))
    }

    /// After how many runs the time is saved that the conversion takes; none if no time is saved.
    pub fn pays_after(&self, candidate: &Candidate) -> Option<u64> {
        let (usual, times) = (self.usual()?.times()?, candidate.times()?);
        let saved = usual.run.checked_sub(times.run).filter(|saved| !saved.is_zero())?.as_secs_f64();
        let more = times.convert.as_secs_f64() - usual.convert.as_secs_f64();
        Some((more.max(0.0) / saved).ceil() as u64)
    }
}

/// Proposes formats for a tensor, and measures them: a matrix times a vector (the sum of products with a vector; of a
/// tensor of higher rank, the contraction of its last dimension), compiled for each format and run on this machine.
///
/// Results are compared with each other before anything is timed. Formats that cannot be had are among the
/// candidates, with the reason.
///
/// ```
/// use tamis::prelude::*;
/// use tamis::{AdviseOptions, advise_with};
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = advise_with(&a, &AdviseOptions { measure: false, ..AdviseOptions::default() })?;
/// let band = advice.candidates.iter().find(|c| c.format.to_string() == "dense, band").unwrap();
/// assert_eq!(band.bytes, a.convert(&band.format)?.nbytes() as u64);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn advise_with(tensor: &Tensor, options: &AdviseOptions) -> Result<Advice, Diagnostics> {
    let start = std::time::Instant::now();
    let statistics = tensor.statistics()?;
    let proposals = propose(tensor, &statistics)?;
    let task = Task::of(tensor, &statistics);
    let mut candidates: Vec<Candidate> = Vec::new();
    for (k, proposal) in proposals.into_iter().enumerate() {
        let constant = statistics.structure.constant;
        // A triangle is only of use where both updates can be written.
        match task.as_ref().map(|task| task.program(&proposal, constant)) {
            Some(Some(program)) => candidates.push(Candidate::new(proposal, k == 0, program)),
            _ => continue,
        }
    }
    let mut advice = Advice { statistics, task, candidates, unmeasured: None };
    if !options.measure {
        advice.unmeasured = Some("nothing was measured, as requested".to_string());
    } else if let Some(task) = &advice.task {
        let deadline = start.checked_add(options.time_limit);
        match task.obstacle(tensor, advice.statistics.structure.entries) {
            Some(obstacle) => advice.unmeasured = Some(obstacle),
            None => measure::measure(tensor, task, &mut advice.candidates, deadline, options.progress)?,
        }
    }
    advice.candidates.sort_by_key(|candidate| match candidate.times() {
        Some(times) => (0, times.run.as_nanos()),
        None => (1, u128::from(candidate.bytes)),
    });
    Ok(advice)
}

/// [`advise_with`] the usual options: ten seconds at most.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("triangular(300)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = tamis::advise(&a)?;
/// let best = advice.best().expect("something ran");
/// println!("{}: {:?}", best.format, best.times().map(|times| times.run));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn advise(tensor: &Tensor) -> Result<Advice, Diagnostics> {
    advise_with(tensor, &AdviseOptions::default())
}
