//! Benchmark of index notation: compile times, and the quality of chosen schedules.
//!
//!     ./dev bench notation [compile | search] [--limit SECONDS] [NAME ...]
//!
//! `compile`: parsing, scheduling and compiling four kernels, the median of many compilations and
//! the first in the process, against the times that the Scorch paper reports for an M1 Ultra (Table
//! I; its totals exclude the C++ compiler).
//!
//! `search`: for each kernel and tensor, tries formats and loop orders until the time limit; prints
//! the ratio of Tamis' choice to the fastest one found. Files are searched for in `TAMIS_DATA`, or
//! next to the project; missing ones are listed.

use std::path::Path;
use std::time::{Duration, Instant};
use tamis::io::{ReadOptions, read};
use tamis::notation::Pins;
use tamis::search::{SearchOptions, search};
use tamis::{DType, Diagnostics, Format, Notation, Tensor, gallery};
use tamis_benches::inputs::tensor;
use tamis_benches::measure::median;
use tamis_benches::ours::compile_time;
use tamis_benches::structures::load;

const SPMV: &str = "y[i] = A[i,j] * x[j]";
const SPMM: &str = "C[i,k] = A[i,j] * B[j,k]";
const SPGEMM: &str = "C[i,k] = A[i,j] * A2[j,k]";
const SDDMM: &str = "S[i,j] = A[i,j] * D[i,k] * E[j,k]";
const MTTKRP: &str = "M[i,l] = T[i,j,k] * P[j,l] * Q[k,l]";
const TTM: &str = "Y[i,j,l] = T[i,j,k] * P[k,l]";

/// Kernels with Scorch's times, in milliseconds: scheduling, and total.
const COMPILED: [(&str, &str, f64, f64); 4] = [
    ("SpMV", SPMV, 0.51, 1.39),
    ("SpMM", SPMM, 0.69, 2.17),
    ("SpMSpM", SPGEMM, 0.56, 1.74),
    ("SDDMM", SDDMM, 0.75, 2.22),
];

const MATRICES: [&str; 4] = ["bcsstk16.mtx.gz", "cage10.mtx.gz", "ca-CondMat.mtx.gz", "email-Enron.mtx.gz"];
const TENSORS: [&str; 4] = ["ml-100k.tns.gz", "fb15k237.tns.gz", "nell-995.tns.gz", "splatt-med.tns.gz"];

fn main() -> std::process::ExitCode {
    let (mut limit, mut words) = (8.0, Vec::new());
    let mut rest = std::env::args().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--limit" => limit = rest.next().and_then(|n| n.parse().ok()).unwrap_or(limit),
            _ => words.push(word),
        }
    }
    let asked = |what: &str| words.is_empty() || words.iter().any(|word| word == what);
    let names: Vec<&String> = words.iter().filter(|word| !["compile", "search"].contains(&word.as_str())).collect();
    let outcome = (|| {
        if asked("compile") {
            compile()?;
        }
        if asked("search") || !names.is_empty() {
            searched(&names, Duration::from_secs_f64(limit))?;
        }
        Ok::<(), Diagnostics>(())
    })();
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(errors) => {
            eprintln!("{}", errors.render(false));
            std::process::ExitCode::FAILURE
        }
    }
}

/// Tensors for a kernel, in the order of its parameters.
fn operands(kernel: &str, main: &Tensor) -> Result<Vec<Tensor>, Diagnostics> {
    let shape = main.shape();
    let dense = |rows: u64, columns: u64| -> Result<Tensor, Diagnostics> {
        Ok(tensor(&gallery::generate(&format!("random({rows}, {columns}, density=1, seed=1)"))?, "dense, dense")?)
    };
    let vector = |n: u64| -> Result<Tensor, Diagnostics> {
        Ok(tensor(&gallery::generate(&format!("random({n}, density=1, seed=1)"))?, "dense")?)
    };
    let main = main.clone();
    Ok(match kernel {
        SPMV => vec![main.clone(), vector(shape[1])?],
        SPMM => vec![main.clone(), dense(shape[1], 32)?],
        SPGEMM => vec![main.clone(), main],
        SDDMM => vec![main.clone(), dense(shape[0], 32)?, dense(shape[1], 32)?],
        MTTKRP => vec![main.clone(), dense(shape[1], 16)?, dense(shape[2], 16)?],
        _ => vec![main.clone(), dense(shape[2], 16)?],
    })
}

fn compile() -> Result<(), Diagnostics> {
    println!("From text to something that runs, in ms, without any cache: medians of 30 (the first)");
    println!(
        "{:<8} {:>14} {:>14} {:>14} {:>14}   {:>15} {:>8}",
        "kernel", "parse", "schedule", "compile", "total", "Scorch schedule", "total"
    );
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let a = tensor(&gallery::generate("random(1000, 1000, density=0.01, seed=1)")?, "csr")?;
    for (name, text, scorch_schedule, scorch_total) in COMPILED {
        let tensors = operands(text, &a)?;
        let refs: Vec<&Tensor> = tensors.iter().collect();
        let mut parts: [Vec<f64>; 4] = Default::default();
        for _ in 0..30 {
            let start = Instant::now();
            let notation = Notation::parse(text)?;
            parts[0].push(milliseconds(start));
            let next = Instant::now();
            let plan = tamis::notation::plan(&notation, &refs, &Pins::default())?;
            parts[1].push(milliseconds(next));
            let given = tamis::notation::converted_operands(&plan, &notation, &refs)?;
            let given: Vec<Tensor> = given.into_iter().map(|tensor| tensor.into_owned()).collect();
            let next = Instant::now();
            if let Err(problem) = compile_time(&plan.program.to_string(), &given) {
                println!("{name}: {problem}");
                return Ok(());
            }
            parts[2].push(milliseconds(next));
            let total = parts[..3].iter().filter_map(|part| part.last()).sum();
            parts[3].push(total);
        }
        let shown: Vec<String> =
            parts.iter().map(|part| format!("{:>6.2} ({:>5.2})", median(part.clone()), part[0])).collect();
        println!("{name:<8} {}   {scorch_schedule:>15.2} {scorch_total:>8.2}", shown.join(" "));
    }
    println!();
    Ok(())
}

fn searched(names: &[&String], limit: Duration) -> Result<(), Diagnostics> {
    println!("What is chosen beside the fastest of all formats and orders that were tried");
    println!(
        "{:<8} {:<20} {:>6} {:>10} {:>10} {:>6}  the fastest",
        "kernel", "tensor", "tried", "chosen ms", "best ms", "ratio"
    );
    let data = std::env::var_os("TAMIS_DATA").map_or_else(|| "../shared/data".into(), std::path::PathBuf::from);
    let mut ratios: Vec<f64> = Vec::new();
    let cases = [("SpMV", SPMV), ("SpMM", SPMM), ("SpGEMM", SPGEMM), ("SDDMM", SDDMM)]
        .into_iter()
        .flat_map(|(name, text)| MATRICES.map(|file| (name, text, "matrices", file, "csr")))
        .chain(
            [("MTTKRP", MTTKRP), ("TTM", TTM)]
                .into_iter()
                .flat_map(|(name, text)| TENSORS.map(|file| (name, text, "tensors", file, "csf"))),
        );
    for (name, text, folder, file, format) in cases {
        if !names.is_empty() && !names.iter().any(|word| *word == name || file.starts_with(word.as_str())) {
            continue;
        }
        let path = data.join(folder).join(file);
        if !path.exists() {
            println!("{name:<8} {file:<20} not there: {}", path.display());
            continue;
        }
        let main = stored(&path, format)?;
        let tensors = operands(text, &main)?;
        let refs: Vec<&Tensor> = tensors.iter().collect();
        let options = SearchOptions { time_limit: limit, ..SearchOptions::default() };
        let found = search(&Notation::parse(text)?, &refs, &options)?;
        let (Some(best), Some(chosen)) = (found.states.first(), found.states.iter().find(|state| state.chosen)) else {
            continue;
        };
        let (best_time, time) = (best.kernel.as_secs_f64() * 1e3, chosen.kernel.as_secs_f64() * 1e3);
        ratios.push(time / best_time);
        println!(
            "{name:<8} {file:<20} {:>6} {time:>10.3} {best_time:>10.3} {:>6.2}  {}{} as {}{}",
            found.states.len(),
            time / best_time,
            best.order.join(","),
            if best.schedule.is_empty() { String::new() } else { format!(" with {}", best.schedule) },
            best.formats.iter().map(Format::to_string).collect::<Vec<_>>().join("; "),
            if found.ended { " (time was up)" } else { "" },
        );
    }
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    let worst = ratios.iter().copied().fold(1.0, f64::max);
    println!("geometric mean {mean:.2}, worst {worst:.2}, of {}", ratios.len());
    Ok(())
}

fn stored(path: &Path, format: &str) -> Result<Tensor, Diagnostics> {
    let entries = read(path, &ReadOptions::default())?.try_to_coordinates()?;
    let entries = if entries.values.dtype() == DType::F64 { entries } else { load::ones(&entries) };
    Ok(tensor(&entries, format)?)
}
