//! Compile times of the case-study programs, in a process that has compiled before, without any
//! cache.

use super::interleaved::TimingOptions;
use super::load::{rendered, tensor};
use crate::measure::median;
use crate::ours::compile_time;
use tamis::tensor::Coordinates;
use tamis::{Format, Tensor, Value, gallery};

/// The budget in milliseconds.
const MOST: f64 = 25.0;

/// The program, its text, and its inputs by their formats; one that names none is the number of a
/// node.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("spmv_triangle", include_str!("../../../examples/spmv_triangle.py"), &["csr", "vector", "vector"]),
    ("bfs", include_str!("../../../examples/bfs.py"), &["csr; pattern", ""]),
    ("bfs_both_ways", include_str!("../../../examples/bfs_both_ways.py"), &["csr; pattern", "csr; pattern", ""]),
    ("shortest_paths", include_str!("../../../examples/shortest_paths.py"), &["csr", ""]),
    ("erosion_runs", include_str!("../../../examples/erosion_runs.py"), &["dense, sparse_runs; pattern"]),
    ("erosion_rows", include_str!("../../../examples/erosion_rows.py"), &["runs, sparse_runs; pattern"]),
    ("erosion_words", include_str!("../../../examples/erosion_words.py"), &["words"]),
    (
        "histogram_runs",
        include_str!("../../../examples/histogram_runs.py"),
        &["dense, runs", "dense, sparse_runs; pattern"],
    ),
];

/// Prints the table: CPU time of the thread, and elapsed time.
pub fn table(clock: TimingOptions) -> bool {
    println!("{:<16} {:>10} {:>10} {:>8} {:>7}", "program", "thread ms", "passed ms", "of LLVM", "target");
    let mut fine = true;
    for (name, text, formats) in PROGRAMS {
        match measure(text, formats, clock.rounds) {
            Ok([thread, passed, backend]) => {
                println!("{name:<16} {thread:>10.2} {passed:>10.2} {backend:>8.2} {MOST:>7.0}");
            }
            Err(problem) => {
                println!("{name:<16} {problem}");
                fine = false;
            }
        }
    }
    fine
}

fn measure(text: &str, formats: &[&str], rounds: usize) -> Result<[f64; 3], String> {
    let entries: Coordinates = rendered(gallery::generate("laplacian(4)"))?;
    let mut tensors = Vec::new();
    for format in formats {
        tensors.push(match *format {
            "" => Tensor::scalar(Value::I64(0)),
            "vector" => rendered(Tensor::from_dense(&[16], vec![1.0; 16].into(), &Format::dense(1), Value::F64(0.0)))?,
            "words" => rendered(Tensor::from_dense(&[4, 4], vec![7u64; 16].into(), &Format::dense(2), Value::U64(0)))?,
            format => tensor(&entries, format)?,
        });
    }
    compile_time(text, &tensors)?;
    let (mut thread, mut passed, mut backend) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let time = compile_time(text, &tensors)?;
        thread.push(time.thread.as_secs_f64() * 1e3);
        passed.push(time.total.as_secs_f64() * 1e3);
        backend.push(time.backend.total().as_secs_f64() * 1e3);
    }
    Ok([median(thread), median(passed), median(backend)])
}
