//! Benchmark of machine code against the same kernel in C, compiled by the system's C compiler with
//! full optimisation; and of compile time.
//!
//!     cargo run --release -p tamis-backend --example kernel_speed

#[path = "../tests/common/mod.rs"]
mod common;

use common::native::NativeKernel;
use common::random::KernelRng;
use std::time::Instant;
use tamis_backend::llvm::{self, CodegenOptions, OptLevel};
use tamis_backend::{CompiledKernel, RawBuffer};
use tamis_ir::Value;
use tamis_ir::kernel::Kernel;

const FLAGS: [&str; 4] = ["-O3", "-march=native", "-ffast-math", "-fno-loop-unroll-and-jam"];

/// A CSR matrix: positions, coordinates, values.
struct CsrMatrix {
    pos: Vec<u32>,
    crd: Vec<u32>,
    val: Vec<f64>,
}

fn random(rows: usize, per_row: usize) -> CsrMatrix {
    let mut random = KernelRng(7);
    let mut matrix = CsrMatrix { pos: vec![0], crd: Vec::new(), val: Vec::new() };
    for _ in 0..rows {
        let mut row: Vec<u32> = (0..per_row).map(|_| random.below(rows) as u32).collect();
        row.sort_unstable();
        matrix.crd.extend(row);
        matrix.pos.push(matrix.crd.len() as u32);
    }
    matrix.val = matrix.crd.iter().map(|j| f64::from(j % 17)).collect();
    matrix
}

/// The five-point stencil on a square.
fn laplacian(side: usize) -> CsrMatrix {
    let mut matrix = CsrMatrix { pos: vec![0], crd: Vec::new(), val: Vec::new() };
    for k in 0..side * side {
        let (i, j) = (k / side, k % side);
        let neighbours = [
            (i > 0, k.wrapping_sub(side)),
            (j > 0, k.wrapping_sub(1)),
            (true, k),
            (j + 1 < side, k + 1),
            (i + 1 < side, k + side),
        ];
        for (there, column) in neighbours {
            if there {
                matrix.crd.push(column as u32);
                matrix.val.push(if column == k { 4.0 } else { -1.0 });
            }
        }
        matrix.pos.push(matrix.crd.len() as u32);
    }
    matrix
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both alternately; returns the time of machine code and its ratio to that of C.
fn compare(name: &str, kernel: &Kernel, matrix: &CsrMatrix, width: usize) {
    let rows = matrix.pos.len() - 1;
    let dense = vec![1.5; rows * width];
    let mut out = vec![0.0; rows * width];
    let compiled = llvm::compile(kernel, &CodegenOptions::host().unwrap()).unwrap();
    let native = NativeKernel::new(kernel, &FLAGS);
    let mut scalars = vec![Value::I64(rows as i64)];
    scalars.extend((width > 1).then_some(Value::I64(width as i64)));
    let mut buffers = vec![
        RawBuffer::input(&matrix.pos),
        RawBuffer::input(&matrix.crd),
        RawBuffer::input(&matrix.val),
        RawBuffer::input(&dense),
        RawBuffer::output(&mut out),
    ];
    buffers.resize(kernel.buffers.len(), RawBuffer::empty());
    let (mut ours, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..31 {
        let start = Instant::now();
        // SAFETY: the arrays are those of a matrix, and have the kernel's types.
        unsafe { compiled.call(&mut buffers, &scalars) }.unwrap();
        let machine = start.elapsed().as_secs_f64();
        let start = Instant::now();
        native.call(&mut buffers, &scalars).unwrap();
        ours.push(machine);
        ratios.push(machine / start.elapsed().as_secs_f64());
    }
    println!("{name:<34} {:>8.3} ms   {:.2} of C", 1e3 * median(ours), median(ratios));
}

fn compile_times(name: &str, kernel: &Kernel) {
    for (level, word) in [(OptLevel::Tuned, "tuned"), (OptLevel::O2, "O2")] {
        let options = CodegenOptions { opt_level: level, ..CodegenOptions::host().unwrap() };
        let mut all: Vec<CompiledKernel> = (0..21).map(|_| llvm::compile(kernel, &options).unwrap()).collect();
        all.sort_by_key(|compiled| compiled.timings().total());
        println!("compile {name:<12} {word:<6} {}", all[10].timings());
    }
}

fn main() {
    for vectorise in [false, true] {
        let word = if vectorise { "may vectorise" } else { "exact" };
        let kernel = common::spmv(vectorise);
        compare(&format!("spmv random 200k x 10, {word}"), &kernel, &random(200_000, 10), 1);
        compare(&format!("spmv random 20k x 200, {word}"), &kernel, &random(20_000, 200), 1);
        compare(&format!("spmv laplacian 1000, {word}"), &kernel, &laplacian(1000), 1);
    }
    compare("spmm 20k x 20, 64 columns, tile 32", &common::spmm(32), &random(20_000, 20), 64);
    compare("spmm 20k x 20, 128 columns, tile 64", &common::spmm(64), &random(20_000, 20), 128);
    compile_times("spmv exact", &common::spmv(false));
    compile_times("spmv", &common::spmv(true));
    compile_times("spmm", &common::spmm(32));
}
