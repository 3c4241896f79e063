//! Benchmark of convolutions of cubes of one to three dimensions with filters of three per side,
//! from dense to nearly empty, against C.

use super::variants::{GIVEN, NOTATIONS, ONE, THREE, TWO, Variant, entries_first};
use crate::baseline::Baseline;
use crate::inputs::{dense, tensor, values};
use crate::measure::difference;
use crate::ours::{TamisCall, compile_time, ours};
use crate::structures::interleaved::TimingOptions;
use tamis::notation::Pins;
use tamis::tensor::Coordinates;
use tamis::{Notation, Tensor, gallery};

/// The percentages of zeros.
pub const SPARSITIES: [f64; 7] = [0.0, 50.0, 80.0, 90.0, 95.0, 99.0, 99.9];

/// Ranks, sizes, and the programs for them.
const CUBES: [(usize, u64, &[Variant<'static>]); 3] = [(1, 999_999, &ONE), (2, 999, &TWO), (3, 99, &THREE)];

/// A Tamis variant, with the times of its rounds.
struct CubeVariant {
    name: &'static str,
    program: TamisCall,
    /// The CPU milliseconds of compilation.
    compile: f64,
    times: Vec<f64>,
}

/// Measures cubes of these ranks (of all, if the list is empty), and passes each row to `report`:
/// size, percentage of zeros, nnz, variant, milliseconds of compilation, and those of each round.
/// Returns whether all results were correct.
pub fn measure(ranks: &[usize], clock: TimingOptions, report: &mut dyn FnMut(String)) -> Result<bool, String> {
    let baseline = Baseline::compile()?;
    let mut fine = true;
    for (rank, size, variants) in CUBES.into_iter().filter(|(rank, ..)| ranks.is_empty() || ranks.contains(rank)) {
        for sparsity in SPARSITIES {
            if let Err(problem) = cube(&baseline, rank, size, variants, sparsity, clock, report) {
                report(format!("error\t{rank}-D, {sparsity} %: {}", problem.replace('\n', "; ")));
                fine = false;
            }
        }
    }
    Ok(fine)
}

fn cube(
    baseline: &Baseline,
    rank: usize,
    size: u64,
    variants: &[Variant<'static>],
    sparsity: f64,
    clock: TimingOptions,
    report: &mut dyn FnMut(String),
) -> Result<(), String> {
    let rendered = |d: tamis::Diagnostic| d.render(false);
    let shape = vec![size; rank];
    let entries = gallery::random(&shape, 1.0 - sparsity / 100.0, 1).map_err(rendered)?;
    let filter = dense(&vec![3; rank], tamis::DType::F64, "dense", 2).map_err(rendered)?;
    let full = tensor(&entries, "dense").map_err(rendered)?;
    let (input, weights) = (values::<f64>(&full)?, values::<f64>(&filter)?);
    let cells = (size - 2).pow(rank as u32) as usize;
    let (mut plain, mut unrolled) = (vec![1.0; cells], vec![1.0; cells]);
    baseline.convolution(rank, false, size, &input, &weights, &mut plain);
    baseline.convolution(rank, true, size, &input, &weights, &mut unrolled);
    difference(&unrolled, &plain, 1e-9).map_err(|d| format!("WRONG: the baselines: {d}"))?;
    let mut sides = Vec::new();
    let (text, tensors) = automatic(rank, &entries, &filter)?;
    sides.push(side("automatic", &text, &tensors, &plain)?);
    let unrolled_ours = entries_first(rank);
    let unrolled_ours: Variant<'_> = ("entries first, filters of three", GIVEN[rank - 1], &unrolled_ours);
    for (name, format, text) in variants.iter().chain([&unrolled_ours]) {
        let tensors = [tensor(&entries, format).map_err(rendered)?, filter.clone()];
        sides.push(side(name, text, &tensors, &plain)?);
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in 0..clock.rounds {
        for (times, is_unrolled, out) in [(&mut first, false, &mut plain), (&mut second, true, &mut unrolled)] {
            let time = clock.time(|| {
                baseline.convolution(rank, is_unrolled, size, &input, &weights, out);
                Ok(())
            });
            times.push(time? * 1e3);
        }
        let count = sides.len();
        for k in 0..count {
            let side = &mut sides[(k + round) % count];
            side.times.push(clock.time(|| side.program.call())? * 1e3);
            side.program.forget();
        }
    }
    let size = shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
    let mut line = |who: &str, compile: f64, times: &[f64]| {
        let times: Vec<String> = times.iter().map(|time| format!("{time:.5}")).collect();
        report(format!("{size}\t{sparsity}\t{}\t{who}\t{compile:.2}\t{}", entries.len(), times.join("\t")));
    };
    line("plain C", 0.0, &first);
    line("unrolled C", 0.0, &second);
    sides.iter().for_each(|side| line(side.name, side.compile, &side.times));
    Ok(())
}

/// The times of a program with the correct result.
fn side(name: &'static str, text: &str, tensors: &[Tensor], wanted: &[f64]) -> Result<CubeVariant, String> {
    let mut program = ours(text, tensors)?;
    program.call()?;
    let result = program.results()?.into_iter().next().ok_or("there is no result")?;
    difference(&numbers(&result)?, wanted, 1e-9).map_err(|d| format!("WRONG: {name}: {d}"))?;
    let compile = compile_time(text, tensors)?.thread.as_secs_f64() * 1e3;
    Ok(CubeVariant { name, program, compile, times: Vec::new() })
}

/// The program and tensors that Tamis derives from index notation.
fn automatic(rank: usize, entries: &Coordinates, filter: &Tensor) -> Result<(String, Vec<Tensor>), String> {
    let rendered = |d: tamis::Diagnostics| d.render(false);
    let input = tensor(entries, GIVEN[rank - 1]).map_err(|d| d.render(false))?;
    let (notation, given) = (Notation::parse(NOTATIONS[rank - 1]).map_err(rendered)?, [&input, filter]);
    let pins = Pins { keep: true, ..Pins::default() };
    let plan = tamis::notation::plan(&notation, &given, &pins).map_err(rendered)?;
    let operands = tamis::notation::converted_operands(&plan, &notation, &given).map_err(|d| d.render(false))?;
    let tensors = operands.into_iter().map(|operand| operand.into_owned()).collect();
    Ok((plan.program.to_string(), tensors))
}

/// All values of a tensor, in row-major order.
fn numbers(result: &Tensor) -> Result<Vec<f64>, String> {
    let format = tamis::Format::dense(result.shape().len());
    let full = result.convert(&format).map_err(|d| d.render(false))?;
    Ok(values::<f64>(&full)?.to_vec())
}
