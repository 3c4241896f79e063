//! The overhead of a repeated call above its kernel: `cargo run --release -p tamis --example
//! call_overhead`.

use std::time::{Duration, Instant};
use tamis::prelude::*;

const SPMV: &str = "
def spmv(A, x):
    y = tensor('dense')
    for i, j in _:
        y[i] += A[i,j] * x[j]
    return y
";

const TTV: &str = "
def ttv(A, x, s):
    y = tensor('dense')
    t = scalar(0.0)
    for i, j, k in _:
        y[i,j] += s * A[i,j,k] * x[k]
        t += A[i,j,k]
    return y, t
";

const SQUARE: &str = "
def square(A):
    C = tensor('csr')
    for i in _:
        w = tensor('bytemap')
        for j, k in _:
            w[k] += A[i,j] * A[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
";

const BOTH: &str = "
def both(A, B):
    C = tensor('csr')
    for i, j in _:
        C[i,j] = A[i,j] * B[i,j]
    return C
";

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Prints, for one program and its tensors, what the first call takes and what later ones take
/// above the kernel.
fn measure(name: &str, text: &str, inputs: &[(&str, &Tensor)]) -> Result<(), Diagnostics> {
    let start = Instant::now();
    let program = Program::parse(text)?;
    tamis::run(&program, inputs, &RunOptions::default())?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| *tensor).collect();
    let executable = tamis::compile(&program, &Signature::of(&tensors), &CompileOptions::default())?;
    let (mut by_run, mut above, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..(if first > 20.0 { 51 } else { 1001 }) {
        let start = Instant::now();
        let results = tamis::run(&program, inputs, &RunOptions::default())?;
        by_run.push(start.elapsed());
        drop(results);
        let start = Instant::now();
        let timed = executable.call_timed(&tensors)?;
        above.push(start.elapsed() - timed.kernel);
        kernels.push(timed.kernel);
    }
    let (run, above, kernel) = (median(by_run), median(above), median(kernels));
    println!(
        "{name:<28} first {first:>7.2} ms   kernel {kernel:>9.2} us   run +{:>5.2} us   call +{:>5.2} us",
        run - kernel,
        above
    );
    Ok(())
}

fn main() -> Result<(), Diagnostics> {
    for side in [4u64, 32, 300, 1000] {
        let entries = tamis::gallery::generate(&format!("laplacian({side})"))?;
        let n = side * side;
        let x = Tensor::from_dense(&[n], vec![1.0; n as usize].into(), &Format::dense(1), Value::F64(0.0))?;
        for format in ["csr", "dcsr", "coo"] {
            let a = Tensor::from_coordinates(&entries, &Format::parse(format, 2)?, 0.0.into(), Combine::Error)?;
            measure(&format!("spmv {format} laplacian({side})"), SPMV, &[("A", &a), ("x", &x)])?;
        }
    }
    // Results whose size is known only in the end.
    for side in [32u64, 300] {
        let csr = Format::parse("csr", 2)?;
        let entries = tamis::gallery::generate(&format!("laplacian({side})"))?;
        let a = Tensor::from_coordinates(&entries, &csr, 0.0.into(), Combine::Error)?;
        measure(&format!("square laplacian({side})"), SQUARE, &[("A", &a)])?;
        for other in ["1", "2"] {
            let n = side * side;
            let entries = tamis::gallery::generate(&format!("rand({n},{n}; {}; {other})", 5.0 / n as f64))?;
            let b = Tensor::from_coordinates(&entries, &csr, 0.0.into(), Combine::Error)?;
            measure(&format!("A * random {n}"), BOTH, &[("A", &a), ("B", &b)])?;
        }
    }
    let entries = tamis::gallery::generate("rand(10,10,10; 0.1; 1)")?;
    let a = Tensor::from_coordinates(&entries, &Format::parse("csf", 3)?, 0.0.into(), Combine::Error)?;
    let x = Tensor::from_dense(&[10], vec![1.0; 10].into(), &Format::dense(1), Value::F64(0.0))?;
    measure("ttv csf, two results", TTV, &[("A", &a), ("x", &x), ("s", &Tensor::scalar(2.0.into()))])
}
