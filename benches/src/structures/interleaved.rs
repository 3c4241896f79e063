//! Interleaved timing: several variants of one computation, compared with each other and then run
//! alternately.

use super::load::rendered;
use crate::measure::{least, median};
use crate::ours::{TamisCall, ours, process_time};
use std::time::Instant;
use tamis::tensor::ValueArray;
use tamis::{DType, Tensor, Value};

/// The options of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct TimingOptions {
    /// Rounds in which each variant runs once.
    pub rounds: usize,
    /// Measure CPU time instead of elapsed time, for a shared machine.
    pub processor: bool,
}

impl TimingOptions {
    /// Runs an action; returns the seconds.
    pub fn time(self, work: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
        // Reading the CPU clock takes most of a microsecond, and some calls take only ten.
        let time = if self.processor {
            let busy = process_time();
            work()?;
            process_time().saturating_sub(busy)
        } else {
            let start = Instant::now();
            work()?;
            start.elapsed()
        };
        Ok(time.as_secs_f64())
    }
}

/// A variant of a computation.
#[derive(Debug)]
pub struct TimedVariant {
    /// Its name in the table.
    pub name: String,
    program: TamisCall,
    seconds: Vec<f64>,
}

impl TimedVariant {
    /// A compiled program with its tensors.
    pub fn new(name: &str, program: &str, tensors: &[Tensor]) -> Result<TimedVariant, String> {
        let program = ours(program, tensors).map_err(|problem| format!("{name}: {problem}"))?;
        Ok(TimedVariant { name: name.to_string(), program, seconds: Vec::new() })
    }

    /// The median of its times, in milliseconds.
    pub fn median(&self) -> f64 {
        median(self.seconds.clone()) * 1e3
    }

    /// The minimum of its times, in milliseconds.
    pub fn least(&self) -> f64 {
        least(&self.seconds) * 1e3
    }

    /// The milliseconds of compilation.
    pub fn compile(&self) -> f64 {
        self.program.time().as_secs_f64() * 1e3
    }

    /// Runs once; returns the first result.
    pub fn result(&mut self) -> Result<Tensor, String> {
        self.program.call().map_err(|problem| format!("{}: {problem}", self.name))?;
        self.program.results()?.into_iter().next().ok_or_else(|| format!("{}: there is no result", self.name))
    }
}

/// Checks that the first results of all variants are equal up to rounding, in whatever formats.
pub fn agree(sides: &mut [TimedVariant]) -> Result<(), String> {
    let Some((first, rest)) = sides.split_first_mut() else { return Ok(()) };
    let wanted = first.result()?;
    first.program.forget();
    for side in rest {
        let result = side.result()?;
        side.program.forget();
        let wrong = |what: String| Err(format!("WRONG: {} and {} differ: {what}", first.name, side.name));
        if wanted.shape() != result.shape() {
            return wrong(format!("{:?} and {:?}", wanted.shape(), result.shape()));
        }
        if wanted.format() == result.format() {
            // Large results are compared as stored.
            for level in 0..wanted.rank() {
                if wanted.level_arrays(level) != result.level_arrays(level) {
                    return wrong("entries at other places".into());
                }
            }
            let (a, b) = (numbers(wanted.values()), numbers(result.values()));
            if let Some(k) = (0..a.len().max(b.len()))
                .find(|k| !a.get(*k).zip(b.get(*k)).is_some_and(|(a, b)| near(*a, *b, rough(wanted.dtype()))))
            {
                return wrong(format!("number {k} is {:?} and {:?}", a.get(k), b.get(k)));
            }
        } else {
            if let Some(difference) = rendered(wanted.first_difference(&result, &close))? {
                return wrong(format!("{difference:?}"));
            }
        }
    }
    Ok(())
}

fn near(a: f64, b: f64, rough: f64) -> bool {
    a == b || (a - b).abs() <= rough * (1.0 + a.abs())
}

/// The tolerance of a value type.
fn rough(dtype: DType) -> f64 {
    if dtype == DType::F32 { 1e-4 } else { 1e-9 }
}

/// True if two values are equal up to rounding.
pub fn close(a: Value, b: Value) -> bool {
    near(a.as_c128().re, b.as_c128().re, rough(a.dtype()))
}

fn numbers(values: Option<&ValueArray>) -> Vec<f64> {
    values.map_or_else(Vec::new, |values| (0..values.len()).map(|k| values.get(k).as_c128().re).collect())
}

/// The minimum seconds per variant and round: after the first of several calls, data that fit a
/// cache are in it again, as in a loop over calls.
const TURN: f64 = 1e-3;

/// Runs all variants alternately, starting with another one in each round; freeing is not timed.
/// The time of a variant in a round is the median of its calls.
pub fn run(sides: &mut [TimedVariant], clock: TimingOptions) -> Result<(), String> {
    let count = sides.len();
    for round in 0..clock.rounds {
        for turn in 0..count {
            let side = &mut sides[(round + turn) % count];
            let program = &mut side.program;
            let mut calls = Vec::new();
            while calls.iter().sum::<f64>() < TURN {
                // The memory of the last results is reused, as in any program that calls a kernel
                // twice.
                program.forget();
                calls.push(clock.time(|| program.call())?);
            }
            program.forget();
            side.seconds.push(median(calls));
        }
    }
    Ok(())
}
