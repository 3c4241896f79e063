//! Format advice: proposes formats for a tensor from its structure, and times a product in each.
//!
//! In: a tensor and a time limit. Out: candidate formats with their sizes, and the times of a
//! product with a vector (SpMV, for a matrix) on this machine, fastest first.

mod measure;
mod task;

pub use task::ProductTask;

use std::time::Duration;
use tamis_ir::{Diagnostic, Diagnostics, Format};
use tamis_tensor::{Proposal, Statistics, StoredPart, Tensor, propose};

/// The options of advice.
///
/// ```
/// use std::time::Duration;
/// use tamis::advise::AdviseOptions;
/// let options = AdviseOptions::new().time_limit(Duration::from_secs(2)).progress(&|done, all| println!("{done} of {all}"));
/// assert!(options.measure);
/// ```
#[derive(Clone, Copy)]
pub struct AdviseOptions<'a> {
    /// True if to time the formats; otherwise they are only proposed, with their sizes.
    pub measure: bool,
    /// The time limit. A conversion or run that has begun is completed.
    pub time_limit: Duration,
    /// Receives the work that is done, and all work, in arbitrary units.
    pub progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for AdviseOptions<'_> {
    fn default() -> Self {
        AdviseOptions { measure: true, time_limit: Duration::from_secs(10), progress: None }
    }
}

/// Setters that chain: `AdviseOptions::new().measure(false)`.
impl<'a> AdviseOptions<'a> {
    /// The default options: time the formats, for at most ten seconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::advise::AdviseOptions;
    /// assert_eq!(AdviseOptions::new().time_limit, Duration::from_secs(10));
    /// ```
    pub fn new() -> AdviseOptions<'a> {
        AdviseOptions::default()
    }

    /// Sets [`measure`](AdviseOptions::measure).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// use tamis::advise::{AdviseOptions, advise_with};
    /// let advice = advise_with(&a, &AdviseOptions::new().measure(false))?;
    /// assert!(advice.candidates.len() > 1 && advice.unmeasured.is_some());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn measure(self, measure: bool) -> AdviseOptions<'a> {
        AdviseOptions { measure, ..self }
    }

    /// Sets [`time_limit`](AdviseOptions::time_limit).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::advise::AdviseOptions;
    /// let options = AdviseOptions::new().time_limit(Duration::from_millis(500));
    /// assert!(options.time_limit < AdviseOptions::new().time_limit);
    /// ```
    pub fn time_limit(self, time_limit: Duration) -> AdviseOptions<'a> {
        AdviseOptions { time_limit, ..self }
    }

    /// Sets [`progress`](AdviseOptions::progress).
    ///
    /// ```
    /// use tamis::advise::AdviseOptions;
    /// let bar = |done, all| eprintln!("{} %", 100 * done / all);
    /// assert!(AdviseOptions::new().progress(&bar).progress.is_some());
    /// ```
    pub fn progress(self, progress: &'a dyn Fn(u64, u64)) -> AdviseOptions<'a> {
        AdviseOptions { progress: Some(progress), ..self }
    }
}

/// The outcome of [`advise()`].
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = tamis::advise::advise_with(&a, &tamis::advise::AdviseOptions::new().measure(false))?;
/// assert_eq!(advice.usual().map(|usual| usual.format.to_string()).as_deref(), Some("csr"));
/// assert!(advice.best().is_none(), "nothing was timed");
/// for candidate in &advice.candidates {
///     println!("{} bytes as `{}`: {}", candidate.bytes, candidate.format, candidate.why);
/// }
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Debug)]
pub struct Advice {
    /// The structure of the tensor.
    pub statistics: Statistics,
    /// The product that was timed; none for a scalar.
    pub task: Option<ProductTask>,
    /// Candidate formats, fastest first; those that were not timed follow, smallest first.
    pub candidates: Vec<Candidate>,
    /// Why nothing was timed, if so.
    pub unmeasured: Option<String>,
}

/// A candidate format, and its measurement.
///
/// ```
/// use tamis::prelude::*;
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = tamis::advise::advise_with(&a, &tamis::advise::AdviseOptions::new().measure(false))?;
/// let smallest = advice.candidates.iter().min_by_key(|candidate| candidate.bytes);
/// assert!(smallest.is_some_and(|candidate| candidate.times().is_none() && !candidate.usual));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Debug)]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// The stored part of the tensor: all of it, or a triangle.
    pub part: StoredPart,
    /// Why it was proposed.
    pub why: String,
    /// Bytes of all arrays.
    pub bytes: u64,
    /// True if `bytes` is exact, or an estimate.
    pub exact: bool,
    /// True if this is the usual format, the baseline of speedups.
    pub usual: bool,
    /// The timed program.
    pub program: String,
    /// The program that extracts the stored part, if it is not the whole tensor.
    pub prepare: Option<&'static str>,
    /// The measurement.
    pub outcome: Measurement,
}

/// The measurement of a candidate.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// use tamis::advise::Measurement;
/// for candidate in &tamis::advise(&a)?.candidates {
///     match &candidate.outcome {
///         Measurement::Measured(times) => println!("{}: {:?}", candidate.format, times.run),
///         Measurement::Failed(why) => println!("{}: {}", candidate.format, why.message),
///         Measurement::Untried => println!("{}: no time was left", candidate.format),
///     }
/// }
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Debug)]
pub enum Measurement {
    /// It was timed.
    Measured(FormatTimes),
    /// The conversion or the compilation failed.
    Failed(Diagnostic),
    /// It was not timed.
    Untried,
}

/// The times of a candidate.
///
/// ```
/// # use tamis::prelude::*;
/// # let a = tamis::gallery::generate("banded(200, 4)")?;
/// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = tamis::advise(&a)?;
/// for times in advice.candidates.iter().filter_map(|candidate| candidate.times()) {
///     println!("{:?} to convert, {:?} a run", times.convert, times.run);
///     assert!(times.least <= times.run && times.runs > 0);
/// }
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatTimes {
    /// The time of the conversion.
    pub convert: Duration,
    /// The time of compilation, or of the look-up in the cache.
    pub compile: Duration,
    /// The median time of a run.
    pub run: Duration,
    /// The least time of a run.
    pub least: Duration,
    /// The number of runs.
    pub runs: usize,
}

impl Candidate {
    fn new(proposal: Proposal, usual: bool, program: String) -> Candidate {
        let Proposal { format, part, why, bytes, exact } = proposal;
        let prepare = (part != StoredPart::Whole).then_some(task::LOWER);
        Candidate { format, part, why, bytes, exact, usual, program, prepare, outcome: Measurement::Untried }
    }

    /// Its times, if it was measured.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let advice = tamis::advise(&a)?;
    /// assert!(advice.usual().is_some_and(|csr| csr.times().is_some()));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn times(&self) -> Option<&FormatTimes> {
        match &self.outcome {
            Measurement::Measured(times) => Some(times),
            _ => None,
        }
    }
}

/// The least speedup over the usual format that is not taken for noise.
const SIGNIFICANT_SPEEDUP: f64 = 1.05;

impl Advice {
    /// The usual format, the baseline.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let advice = tamis::advise(&a)?;
    /// assert_eq!(advice.usual().map(|usual| usual.format.to_string()), Some("csr".to_string()));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn usual(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.usual)
    }

    /// The recommended format: the fastest, unless the usual one is about as fast; none where
    /// nothing was timed.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let advice = tamis::advise(&a)?;
    /// let best = advice.best().expect("something was timed");
    /// let a = a.convert(&best.format)?;
    /// assert_eq!(a.format(), &best.format);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn best(&self) -> Option<&Candidate> {
        let fastest = self.candidates.first().filter(|candidate| candidate.times().is_some())?;
        match self.speedup(fastest) {
            Some(times) if times < SIGNIFICANT_SPEEDUP => self.usual(),
            _ => Some(fastest),
        }
    }

    /// The speedup of a candidate over the usual format, if both were measured.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let advice = tamis::advise(&a)?;
    /// let usual = advice.usual().expect("csr is always proposed for a matrix");
    /// assert_eq!(advice.speedup(usual), Some(1.0));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn speedup(&self, candidate: &Candidate) -> Option<f64> {
        let usual = self.usual()?.times()?.run.as_secs_f64();
        Some(usual / candidate.times()?.run.as_secs_f64().max(1e-9))
    }

    /// The number of runs that amortise the conversion; none if runs are not faster.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let advice = tamis::advise(&a)?;
    /// for candidate in &advice.candidates {
    ///     if let Some(runs) = advice.pays_after(candidate) {
    ///         println!("convert to {} for {runs} products or more", candidate.format);
    ///     }
    /// }
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn pays_after(&self, candidate: &Candidate) -> Option<u64> {
        let (usual, times) = (self.usual()?.times()?, candidate.times()?);
        let saved = usual.run.checked_sub(times.run).filter(|saved| !saved.is_zero())?.as_secs_f64();
        let more = times.convert.as_secs_f64() - usual.convert.as_secs_f64();
        Some((more.max(0.0) / saved).ceil() as u64)
    }
}

/// Proposes formats for a tensor and times them: the contraction of its last dimension with a
/// vector (SpMV, for a matrix), compiled for each format and run on this machine.
///
/// Results are verified before anything is timed. Formats that fail are among the candidates, with
/// the reason.
///
/// ```
/// use tamis::prelude::*;
/// use tamis::advise::{AdviseOptions, advise_with};
/// let a = tamis::gallery::generate("banded(200, 4)")?;
/// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
/// let advice = advise_with(&a, &AdviseOptions::new().measure(false))?;
/// let band = advice.candidates.iter().find(|c| c.format.to_string() == "dense, band").unwrap();
/// assert_eq!(band.bytes, a.convert(&band.format)?.nbytes() as u64);
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn advise_with(tensor: &Tensor, options: &AdviseOptions) -> Result<Advice, Diagnostics> {
    let start = std::time::Instant::now();
    let statistics = tensor.statistics()?;
    let proposals = propose(tensor, &statistics)?;
    let task = ProductTask::of(tensor, &statistics);
    let mut candidates: Vec<Candidate> = Vec::new();
    for (k, proposal) in proposals.into_iter().enumerate() {
        let constant = statistics.structure.constant;
        // A triangle needs a dense result, which takes both updates.
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

/// [`advise_with`] the default options: ten seconds at most.
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
