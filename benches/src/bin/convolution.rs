//! Sparse convolutions beside dense ones in C, by turns, from full inputs to nearly empty ones.
//!
//!     ./dev bench convolution [--rounds N] [1 | 2 | 3]
//!
//! One line for each number of dimensions and sparsity: milliseconds of the dense convolution as people write it, for filters of
//! any size, and of one for filters of three to a side; milliseconds of ours, which take filters of any size; and how many
//! times faster ours is than either. Of our programs (loop orders and formats of the result) the fastest is shown.

use std::time::Instant;
use tamis::{Tensor, gallery};
use tamis_benches::baseline::Baseline;
use tamis_benches::inputs::{dense, tensor, values};
use tamis_benches::measure::{difference, least, median};
use tamis_benches::ours::{Ours, compile_time, ours};

const SPARSITIES: [f64; 7] = [0.0, 50.0, 80.0, 90.0, 95.0, 99.0, 99.9];

/// A way to compute it: a name, the input's format, and the program.
type Way = (&'static str, &'static str, &'static str);

const ONE: [Way; 3] = [
    (
        "windows, sparse result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"sparse\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "windows, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i in _:\n        O[i] += I[i+k] * F[k]\n    return O\n",
    ),
];

const TWO: [Way; 5] = [
    (
        "windows, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, j, l in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csr",
        "def f(I, F):\n    O = tensor(\"csr\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for k, l, j in _:\n            w[j] += I[i+k,j+l] * F[k,l]\n        for j in _:\n            O[i,j] = w[j]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, l, j in _:\n        O[i,j] += I[i+k,j+l] * F[k,l]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csr",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1))\n    for i, j, k, l in _:\n        O[~(i-k),~(j-l)] += I[i,j] * F[k,l]\n    return O\n",
    ),
];

const THREE: [Way; 6] = [
    (
        "windows, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"csf\")\n    for i in _:\n        w = tensor(\"dense, bytemap\")\n        for k, j, l, m, n in _:\n            w[j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for j, m in _:\n            O[i,j,m] = w[j,m]\n    return O\n",
    ),
    (
        "filter first, sparse result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense, dense, sparse\")\n    for i, j in _:\n        w = tensor(\"bytemap\")\n        for k, l, n, m in _:\n            w[m] += I[i+k,j+l,m+n] * F[k,l,n]\n        for m in _:\n            O[i,j,m] = w[m]\n    return O\n",
    ),
    (
        "windows, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, k, j, l, m, n in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter first, dense result",
        "dense, dense, sparse",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for i, j, k, l, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
    (
        "entries first, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\", shape=(I.shape[0] - F.shape[0] + 1, I.shape[1] - F.shape[1] + 1, I.shape[2] - F.shape[2] + 1))\n    for i, j, m, k, l, n in _:\n        O[~(i-k),~(j-l),~(m-n)] += I[i,j,m] * F[k,l,n]\n    return O\n",
    ),
    (
        "filter outside, dense result",
        "csf",
        "def f(I, F):\n    O = tensor(\"dense\")\n    for k, i, l, j, n, m in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n",
    ),
];

fn main() -> std::process::ExitCode {
    let (mut rounds, mut wanted) = (9, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), word.parse::<usize>()) {
            ("--rounds", _) => match words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0) {
                Some(n) => rounds = n,
                None => return usage("`--rounds` takes a number"),
            },
            (_, Ok(rank @ 1..=3)) => wanted.push(rank),
            _ => return usage(&format!("`{word}` is not known")),
        }
    }
    let baseline = match Baseline::compile() {
        Ok(baseline) => baseline,
        Err(problem) => return usage(&problem),
    };
    println!(
        "{rounds} rounds by turns; milliseconds, medians (least): dense C for any filter, dense C for filters of 3, ours"
    );
    println!(
        "{:<12} {:>8} {:>17} {:>17} {:>17} {:>7} {:>7}  {:<28} {:>8}",
        "size", "sparsity", "plain C", "unrolled C", "ours", "x plain", "x unr.", "by", "compile"
    );
    let cases: [(usize, u64, &[Way]); 3] = [(1, 999_999, &ONE), (2, 999, &TWO), (3, 99, &THREE)];
    let mut wrong = false;
    for (rank, size, ways) in cases.into_iter().filter(|(rank, ..)| wanted.is_empty() || wanted.contains(rank)) {
        for sparsity in SPARSITIES {
            if let Err(problem) = measure(&baseline, rank, size, ways, sparsity, rounds) {
                println!("{rank}-D, {sparsity} %: {problem}");
                wrong = true;
            }
        }
    }
    u8::from(wrong).into()
}

fn usage(problem: &str) -> std::process::ExitCode {
    eprintln!("{problem}\n./dev bench convolution [--rounds N] [1 | 2 | 3]");
    2.into()
}

/// One side with the times of its rounds.
struct Side {
    name: &'static str,
    program: Ours,
    /// Milliseconds that compiling took a processor.
    compile: f64,
    times: Vec<f64>,
}

fn measure(
    baseline: &Baseline,
    rank: usize,
    size: u64,
    ways: &[Way],
    sparsity: f64,
    rounds: usize,
) -> Result<(), String> {
    let told = |d: tamis::Diagnostic| d.render(false);
    let shape = vec![size; rank];
    let entries = gallery::random(&shape, 1.0 - sparsity / 100.0, 1).map_err(told)?;
    let filter = dense(&vec![3; rank], tamis::DType::F64, "dense", 2).map_err(told)?;
    let full = tensor(&entries, "dense").map_err(told)?;
    let (input, weights) = (values::<f64>(&full)?, values::<f64>(&filter)?);
    let cells = (size - 2).pow(rank as u32) as usize;
    let (mut plain, mut unrolled) = (vec![1.0; cells], vec![1.0; cells]);
    baseline.convolution(rank, false, size, &input, &weights, &mut plain);
    baseline.convolution(rank, true, size, &input, &weights, &mut unrolled);
    difference(&unrolled, &plain, 1e-9).map_err(|d| format!("WRONG: the baselines: {d}"))?;
    let mut sides = Vec::new();
    for (name, format, text) in ways {
        let tensors = [tensor(&entries, format).map_err(told)?, filter.clone()];
        let mut program = ours(text, &tensors)?;
        program.call()?;
        let result = program.results()?.into_iter().next().ok_or("there is no result")?;
        difference(&numbers(&result)?, &plain, 1e-9).map_err(|d| format!("WRONG: {name}: {d}"))?;
        let compile = compile_time(text, &tensors)?.thread.as_secs_f64() * 1e3;
        sides.push(Side { name, program, compile, times: Vec::new() });
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    for round in 0..rounds {
        let start = Instant::now();
        baseline.convolution(rank, false, size, &input, &weights, &mut plain);
        first.push(milliseconds(start));
        let start = Instant::now();
        baseline.convolution(rank, true, size, &input, &weights, &mut unrolled);
        second.push(milliseconds(start));
        let count = sides.len();
        for k in 0..count {
            let side = &mut sides[(k + round) % count];
            let start = Instant::now();
            side.program.call()?;
            side.times.push(milliseconds(start));
            side.program.forget();
        }
    }
    let best = sides.iter().min_by(|a, b| median(a.times.clone()).total_cmp(&median(b.times.clone())));
    let best = best.ok_or("there is no program")?;
    let shown = |times: &[f64]| format!("{:.3} ({:.3})", median(times.to_vec()), least(times));
    let ours = median(best.times.clone());
    println!(
        "{:<12} {:>7}% {:>17} {:>17} {:>17} {:>7.2} {:>7.2}  {:<28} {:>8.1}",
        shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
        sparsity,
        shown(&first),
        shown(&second),
        shown(&best.times),
        median(first.clone()) / ours,
        median(second.clone()) / ours,
        best.name,
        best.compile
    );
    if std::env::var_os("TAMIS_ALL_WAYS").is_some() {
        for side in &sides {
            println!("{:>60} {}", side.name, shown(&side.times));
        }
    }
    Ok(())
}

/// All values of a tensor, in row-major order.
fn numbers(result: &Tensor) -> Result<Vec<f64>, String> {
    let format = tamis::Format::dense(result.shape().len());
    let full = result.convert(&format).map_err(|d| d.render(false))?;
    Ok(values::<f64>(&full)?.to_vec())
}
