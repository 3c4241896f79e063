//! Calibration: fits the constants of the cost model to measured kernels. A schedule's cost is
//! linear in the constants, so each measured kernel gives a linear equation. The system is
//! underdetermined, so the fit is regularised towards the current constants.

use super::model::{Costs, FIELDS};

/// A measured kernel.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::fit::{predict, sample};
/// // A kernel of a million iterations over coordinate lists took 1.2 ms.
/// let measured = sample(&Costs::default(), 1.2e-3, |costs| 1e6 * costs.list_step);
/// assert!((predict(&Costs::default(), &measured) - 1e6 * Costs::default().list_step).abs() < 1.0);
/// ```
#[derive(Clone, Debug)]
pub struct Sample {
    /// The coefficient of each constant, in the order of [`FIELDS`].
    pub counts: Vec<f64>,
    /// Its run time in seconds.
    pub seconds: f64,
}

/// The result of a fit.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::fit::{fit, sample};
/// let costs = Costs::default();
/// let kernels = [1e5, 1e6].map(|n| sample(&costs, n * 1e-9, |costs| n * costs.list_step));
/// let found = fit(&costs, &kernels);
/// assert!(found.after <= found.before * 1.001 && found.step > 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct Fit {
    /// The fitted constants.
    pub costs: Costs,
    /// The duration of one cost unit, in seconds.
    pub step: f64,
    /// The geometric mean of the prediction error factors before the fit.
    pub before: f64,
    /// The geometric mean of the prediction error factors after the fit.
    pub after: f64,
}

/// The weight of the regularisation relative to one kernel's relative error.
const INERTIA: f64 = 0.03;

/// The maximum factor by which a constant changes.
const MOST: f64 = 10.0;

/// A sample whose prediction is a linear function of the constants.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::fit::sample;
/// let measured = sample(&Costs::default(), 1e-3, |costs| 1e6 * costs.list_step);
/// assert_eq!((measured.seconds, measured.counts.iter().filter(|n| **n > 1.0).count()), (1e-3, 1));
/// ```
pub fn sample(costs: &Costs, seconds: f64, mut cost: impl FnMut(&Costs) -> f64) -> Sample {
    let whole = cost(costs);
    let counts = FIELDS.iter().map(|(_, fitted, place)| {
        let mut other = *costs;
        let step = *place(&mut other) * 1e-3;
        *place(&mut other) += step;
        if *fitted { (cost(&other) - whole) / step } else { 0.0 }
    });
    Sample { counts: counts.collect(), seconds }
}

/// Fits the constants to the samples.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::fit::{fit, sample};
/// let kernel = sample(&Costs::default(), 1e-3, |costs| 1e6 * costs.list_step);
/// println!("a step takes {:.2} ns", fit(&Costs::default(), &[kernel]).step * 1e9);
/// ```
pub fn fit(start: &Costs, samples: &[Sample]) -> Fit {
    let samples: Vec<&Sample> = samples.iter().filter(|s| s.seconds > 0.0 && predict(start, s) > 0.0).collect();
    let step = mean(samples.iter().map(|s| (s.seconds / predict(start, s)).ln())).exp();
    let before = error(start, step, &samples);
    let mut costs = *start;
    // Coordinate descent on the least-squares error. Factors of 2 and 1/2 count as equal errors:
    // residuals are relative to the mean of the measured and the last predicted time.
    for _ in 0..500 {
        let scales: Vec<f64> =
            samples.iter().map(|s| (predict(&costs, s) * step * s.seconds).sqrt().max(s.seconds * 1e-3)).collect();
        for (k, (_, fitted, place)) in FIELDS.iter().enumerate() {
            let was = *place(&mut start.clone());
            let now = *place(&mut costs);
            if !fitted || samples.iter().all(|s| s.counts[k] == 0.0) {
                continue;
            }
            let (mut above, mut below) = (INERTIA, INERTIA);
            for (s, scale) in samples.iter().zip(&scales) {
                let slope = s.counts[k] * was * step / scale;
                let rest = predict(&costs, s) * step / scale - slope * now / was;
                above += slope * (s.seconds / scale - rest);
                below += slope * slope;
            }
            *place(&mut costs) = was * (above / below).clamp(1.0 / MOST, MOST);
        }
    }
    Fit { after: error(&costs, step, &samples), costs, step, before }
}

/// The predicted cost of a sample.
///
/// ```
/// use tamis_compiler::auto::Costs;
/// use tamis_compiler::auto::fit::{predict, sample};
/// let kernel = sample(&Costs::default(), 1e-3, |costs| 1e6 * costs.list_step);
/// let slower = Costs { list_step: 2.0 * Costs::default().list_step, ..Costs::default() };
/// assert!(predict(&slower, &kernel) > 1.9 * predict(&Costs::default(), &kernel));
/// ```
pub fn predict(costs: &Costs, sample: &Sample) -> f64 {
    let mut costs = *costs;
    FIELDS.iter().zip(&sample.counts).map(|((_, _, place), count)| count * *place(&mut costs)).sum()
}

fn error(costs: &Costs, step: f64, samples: &[&Sample]) -> f64 {
    mean(samples.iter().map(|s| (predict(costs, s) * step / s.seconds).max(1e-9).ln().abs())).exp()
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants of a synthetic machine are recovered.
    #[test]
    fn constants_are_found_again() {
        let start = Costs::default();
        let truth = Costs { merge_step: 9.0, append: 3.0, insert: 4.0, ..start };
        let samples: Vec<Sample> = (0..60u64)
            .map(|k| {
                let random = |n: u64| ((k * 31 + n + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000;
                let counts: Vec<f64> = (0..FIELDS.len() as u64)
                    .map(|n| if FIELDS[n as usize].1 && random(n) % 3 == 0 { random(n) as f64 } else { 0.0 })
                    .collect();
                let mut s = Sample { counts, seconds: 1.0 };
                s.seconds = predict(&truth, &s) * 1e-9;
                s
            })
            .collect();
        let found = fit(&start, &samples);
        assert!(found.after < 1.1 && found.after < found.before, "{} to {}", found.before, found.after);
        for (name, found, truth) in [
            ("merge_step", found.costs.merge_step, truth.merge_step),
            ("append", found.costs.append, truth.append),
            ("insert", found.costs.insert, truth.insert),
        ] {
            assert!((found / truth - 1.0).abs() < 0.35, "{name}: {found} for {truth}");
        }
        assert!((found.step / 1e-9 - 1.0).abs() < 0.3, "{}", found.step);
    }

    #[test]
    fn nothing_measured_changes_nothing() {
        assert_eq!(fit(&Costs::default(), &[]).costs, Costs::default());
    }
}
