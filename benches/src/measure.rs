//! Interleaved timing of two sides: medians, minima and ratios, as rows of a table.

use crate::ours::TamisCall;
use std::time::Instant;

/// The number of runs per side.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Timed runs.
    pub timed: usize,
    /// Compilations, of which the median is shown.
    pub compilations: usize,
}

/// The times of one kernel on one input, in milliseconds.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Row {
    pub kernel: &'static str,
    pub input: String,
    pub outcome: Result<Times, String>,
}

/// Measured times in milliseconds.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Times {
    pub ours: f64,
    pub ours_least: f64,
    pub theirs: f64,
    pub theirs_least: f64,
    /// The median of the ratios of all rounds.
    pub ratio: f64,
    pub compile: f64,
}

/// The median; NaN of an empty list.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The minimum.
pub fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Runs both sides alternately; each is first in every other round, so that neither always inherits
/// the other's cache contents.
pub fn compare(
    ours: &mut TamisCall,
    theirs: &mut dyn FnMut(),
    compile: impl Fn() -> Result<TamisCall, String>,
    rounds: Rounds,
) -> Result<Times, String> {
    let (mut mine, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds.timed.max(1) {
        let (mut first, mut second) = (0.0, 0.0);
        for turn in 0..2 {
            let start = Instant::now();
            if turn == round % 2 {
                ours.call()?;
                first = start.elapsed().as_secs_f64() * 1e3;
            } else {
                theirs();
                second = start.elapsed().as_secs_f64() * 1e3;
            }
        }
        mine.push(first);
        other.push(second);
        ratios.push(first / second);
    }
    let mut compilations = Vec::new();
    for _ in 0..rounds.compilations.max(1) {
        compilations.push(compile()?.time().as_secs_f64() * 1e3);
    }
    Ok(Times {
        ours_least: least(&mine),
        theirs_least: least(&other),
        ours: median(mine),
        theirs: median(other),
        ratio: median(ratios),
        compile: median(compilations),
    })
}

/// The first position where two lists differ by more than this tolerance.
pub fn difference(ours: &[f64], theirs: &[f64], rounding: f64) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} numbers, not {}", ours.len(), theirs.len()));
    }
    let differs = |(a, b): (&f64, &f64)| {
        (a - b).abs().partial_cmp(&(rounding * (1.0 + b.abs()))) != Some(std::cmp::Ordering::Less)
    };
    match ours.iter().zip(theirs).position(differs) {
        Some(k) => Err(format!("number {k} is {}, not {}", ours[k], theirs[k])),
        None => Ok(()),
    }
}

/// The head of the table.
pub fn head() -> String {
    format!(
        "{:<10} {:<34} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9}",
        "kernel", "input", "ours ms", "(least)", "C ms", "(least)", "ratio", "compile"
    )
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<10} {:<34} ", self.kernel, self.input)?;
        match &self.outcome {
            Ok(t) => write!(
                f,
                "{:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>7.2} {:>6.2} ms",
                t.ours, t.ours_least, t.theirs, t.theirs_least, t.ratio, t.compile
            ),
            Err(problem) => f.write_str(problem),
        }
    }
}
