//! Benchmark of parallel speed-up: one thread against several, on the same operands, interleaved.
//!
//!     ./dev bench threads [--threads N] [--rounds N] [KERNEL ...]
//!
//! One line per kernel and input: minimum milliseconds of both, their ratio, and the number of
//! partitions.

use std::time::Instant;
use tamis::compile::{CompileOptions, Executable, Signature};
use tamis::threads::with_threads;
use tamis::{Program, Tensor, gallery};
use tamis_benches::inputs::{dense, random_rows, tensor};
use tamis_ir::DType;

/// A kernel, its input, and its operands.
type Case = (&'static str, &'static str, String, Vec<Tensor>);

fn product(result: &str) -> String {
    format!(
        "def product(A, B):\n    C = tensor('{result}')\n    for i, k, j in _:\n        C[i,j] += A[i,k] * B[k,j]\n    return C\n"
    )
}

fn cases() -> Result<Vec<Case>, tamis::Diagnostic> {
    let example = |text: &str| text.to_string();
    let spmv = example(include_str!("../../../examples/spmv.py"));
    let columns = example(include_str!("../../../examples/spmv_columns.py"));
    let symmetric = example(include_str!("../../../examples/spmv_symmetric.py"));
    let gustavson = example(include_str!("../../../examples/gustavson.py"));
    let sddmm = example(include_str!("../../../examples/sddmm.py"));
    let add = example(include_str!("../../../examples/add.py"));
    let add_three = example(include_str!("../../../examples/add_three.py"));
    let mttkrp = example(include_str!("../../../examples/mttkrp.py"));
    let rand200k = random_rows(200_000, 10, 1)?;
    let lap1000 = gallery::laplacian(1000)?;
    let rmat17 = gallery::rmat(17, 16, 1)?;
    let rows20k = random_rows(20_000, 20, 1)?;
    let (other, third) = (random_rows(20_000, 20, 2)?, random_rows(20_000, 20, 3)?);
    let rows10 = random_rows(20_000, 10, 4)?;
    let rmat14 = gallery::rmat(14, 16, 1)?;
    let lap300 = gallery::laplacian(300)?;
    let tens3 = gallery::random_nnz(&[1000, 2000, 3000], 2_000_000, 1)?;
    let vector = |n: u64| dense(&[n], DType::F64, "dense", 7);
    let matrix = |n: u64, m: u64| dense(&[n, m], DType::F64, "dense", 8);
    let small = random_rows(500, 10, 1)?;
    Ok(vec![
        ("spmv", "500 rows", spmv.clone(), vec![tensor(&small, "csr")?, vector(500)?]),
        ("spmv", "rand200k", spmv.clone(), vec![tensor(&rand200k, "csr")?, vector(200_000)?]),
        ("spmv", "lap1000", spmv.clone(), vec![tensor(&lap1000, "csr")?, vector(1_000_000)?]),
        ("spmv", "rmat17", spmv.clone(), vec![tensor(&rmat17, "csr")?, vector(1 << 17)?]),
        ("spmv", "rmat17 coo", spmv, vec![tensor(&rmat17, "coo")?, vector(1 << 17)?]),
        ("columns", "rand200k", columns, vec![tensor(&rand200k, "csc")?, vector(200_000)?]),
        ("symmetric", "lap1000", symmetric, vec![tensor(&lap1000, "csr")?, vector(1_000_000)?]),
        ("spmm", "rows20k 32", product("dense"), vec![tensor(&rows20k, "csr")?, matrix(20_000, 32)?]),
        ("spmm", "rows20k 128", product("dense"), vec![tensor(&rows20k, "csr")?, matrix(20_000, 128)?]),
        ("spgemm", "rows10", gustavson.clone(), vec![tensor(&rows10, "csr")?, tensor(&rows10, "csr")?]),
        ("spgemm", "rmat14", gustavson.clone(), vec![tensor(&rmat14, "csr")?, tensor(&rmat14, "csr")?]),
        ("spgemm", "lap300", gustavson, vec![tensor(&lap300, "csr")?, tensor(&lap300, "csr")?]),
        ("sddmm", "rows20k 64", sddmm, vec![tensor(&rows20k, "csr")?, matrix(20_000, 64)?, matrix(64, 20_000)?]),
        ("add", "rows20k", add, vec![tensor(&rows20k, "csr")?, tensor(&other, "csr")?]),
        (
            "add_three",
            "rows20k",
            add_three,
            vec![tensor(&rows20k, "csr")?, tensor(&other, "csr")?, tensor(&third, "csr")?],
        ),
        ("mttkrp", "tens3", mttkrp, vec![tensor(&tens3, "csf")?, matrix(2000, 32)?, matrix(3000, 32)?]),
    ])
}

/// The milliseconds of a call, and the number of partitions.
fn time(executable: &Executable, tensors: &[&Tensor], threads: usize) -> Result<(f64, usize), String> {
    let start = Instant::now();
    let timed = with_threads(threads, || executable.call_timed(tensors)).map_err(|d| d.render(false))?;
    let parts = timed.chunks;
    // The result is freed as on the other side.
    drop(timed);
    Ok((start.elapsed().as_secs_f64() * 1e3, parts))
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: usize| {
        let at = arguments.iter().position(|a| a == name).map(|at| at + 1);
        at.and_then(|at| arguments.get(at)?.parse().ok()).unwrap_or(otherwise)
    };
    let (threads, rounds) = (number("--threads", tamis::threads::threads()), number("--rounds", 15));
    let wanted = |kernel: &str| {
        let mut words = arguments.iter().filter(|a| !a.starts_with("--") && a.parse::<usize>().is_err()).peekable();
        words.peek().is_none() || words.any(|word| word == kernel)
    };
    println!(
        "{:10} {:12} {:>9} {:>9} {:>6} {:>5}",
        "kernel",
        "input",
        "1 thread",
        format!("{threads}"),
        "ratio",
        "parts"
    );
    for (kernel, input, text, tensors) in cases().map_err(|d| d.to_string())? {
        if !wanted(kernel) {
            continue;
        }
        let program = Program::parse(&text).map_err(|d| d.render(false))?;
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let compile = || tamis::compile(&program, &Signature::of(&tensors), &CompileOptions::default());
        let (one, several) = (compile().map_err(|d| d.render(false))?, compile().map_err(|d| d.render(false))?);
        let (mut alone, mut together, mut cut) = (f64::INFINITY, f64::INFINITY, 1);
        for round in 0..rounds {
            alone = alone.min(time(&one, &tensors, 1)?.0);
            let (ms, parts) = time(&several, &tensors, threads)?;
            if round > 2 {
                together = together.min(ms);
            }
            cut = parts;
        }
        println!("{kernel:10} {input:12} {alone:9.3} {together:9.3} {:6.2} {cut:5}", alone / together);
    }
    Ok(())
}
