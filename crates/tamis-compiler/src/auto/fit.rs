//! Constants of the cost model, fitted to kernels that were measured.
//!
//! What a schedule costs is a sum of constants, each times how often something happens: so each measured kernel is a linear
//! equation. Far more constants would fit them than make sense, so the ones that are sought are close to those there are.

use super::model::{Costs, FIELDS};

/// A kernel that was measured.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How often each constant counts, in the order of [`FIELDS`].
    pub counts: Vec<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Constants that fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// They are.
    pub costs: Costs,
    /// How long a step takes, in seconds.
    pub step: f64,
    /// The factor by which predictions were off, before and now, as a geometric mean.
    pub before: f64,
    /// As above.
    pub after: f64,
}

/// How much it costs to differ from what was, against a kernel that is predicted as wrong.
const INERTIA: f64 = 0.03;

/// No constant changes by a larger factor.
const MOST: f64 = 10.0;

/// A sample of what is predicted by a function that is linear in the constants.
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

/// Constants that predict the samples better.
pub fn fit(start: &Costs, samples: &[Sample]) -> Fit {
    let samples: Vec<&Sample> = samples.iter().filter(|s| s.seconds > 0.0 && predict(start, s) > 0.0).collect();
    let step = mean(samples.iter().map(|s| (s.seconds / predict(start, s)).ln())).exp();
    let before = error(start, step, &samples);
    let mut costs = *start;
    // One constant after the other, each to where the sum of squares is least. Half as much is as wrong as twice as much: so
    // differences are relative to the mean of what is measured and what was predicted last.
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

/// What a sample is expected to cost.
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

    /// A machine whose constants are known is found.
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
