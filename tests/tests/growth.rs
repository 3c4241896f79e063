//! Asymptotic tests: how work grows with the size of operands, counted rather than timed.

use std::path::Path;
use tamis::Program;
use tamis::compile::{CompileOptions, Signature};
use tamis_ir::{Format, Value};
use tamis_tensor::gallery::random_nnz;
use tamis_tensor::{Combine, Tensor};

/// An Erdős–Rényi matrix with four entries per row.
fn matrix(rows: u64, seed: u64, format: &Format) -> Tensor {
    let entries = random_nnz(&[rows, rows], rows * 4, seed).unwrap();
    Tensor::from_coordinates(&entries, format, Value::F64(0.0), Combine::Error).unwrap()
}

fn example(name: &str) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("examples").join(name)).unwrap();
    Program::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

/// Work per row: statements and bytes of the kernel, insertions and merges of its workspaces.
fn per_row(program: &Program, rows: u64) -> [f64; 4] {
    let (a, b) = (matrix(rows, 1, &Format::csc()), matrix(rows, 2, &Format::csr()));
    let tensors = [&a, &b];
    let options = CompileOptions::default();
    let reported = |d: tamis_ir::diag::Diagnostics| -> ! { panic!("{}", d.render(false)) };
    let analysis = tamis::analyze::analyze_program(program, &tensors, &options).unwrap_or_else(|d| reported(d));
    let moved: u64 = analysis.arrays.iter().map(|array| array.moved.read + array.moved.written).sum();
    let executable = tamis::compile(program, &Signature::of(&tensors), &options).unwrap_or_else(|d| reported(d));
    let called = executable.call_timed(&tensors).unwrap_or_else(|d| reported(d));
    let inserts: u64 = called.workspaces.iter().map(|(_, report)| report.inserts).sum();
    let merged: u64 = called.workspaces.iter().map(|(_, report)| report.merged).sum();
    [analysis.statements, moved, inserts, merged].map(|count| count as f64 / rows as f64)
}

/// With a hundred times as many rows the cost per row stays the same: no loop covers all columns,
/// or all pairs.
#[test]
fn outer_products_grow_linearly_with_nnz() {
    for name in ["spgemm.py", "spgemm_outer.py"] {
        let program = example(name);
        let few = per_row(&program, 1_000);
        assert!(few[0] > 16.0 && few[2] > 8.0, "{name}: nothing is counted: {few:?}");
        for rows in [10_000, 100_000] {
            let many = per_row(&program, rows);
            for (few, many) in few.iter().zip(many) {
                assert!(many <= few * 1.1 + 1.0, "{name}: {rows} rows take {many} for each, a thousand {few}");
            }
        }
    }
}

/// The statements that a program executes.
fn executed(program: &Program, tensors: &[&Tensor]) -> f64 {
    let analysis = tamis::analyze::analyze_program(program, tensors, &CompileOptions::default());
    analysis.unwrap_or_else(|d| panic!("{}", d.render(false))).statements as f64
}

fn random(shape: &[u64], entries: u64, seed: u64, format: &str) -> Tensor {
    let format = Format::parse(format, shape.len()).unwrap();
    let entries = random_nnz(shape, entries, seed).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
}

fn dense(shape: &[u64]) -> Tensor {
    let values = vec![1.0; shape.iter().product::<u64>() as usize];
    Tensor::from_dense(shape, values.into(), &Format::dense(shape.len()), Value::F64(0.0)).unwrap()
}

/// The slope of a line through points in a log-log plot.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
    let (above, below) =
        logs.iter().fold((0.0, 0.0), |(a, b), (px, py)| (a + (px - x) * (py - y), b + (px - x) * (px - x)));
    above / below
}

/// Executed statements grow linearly with nnz if dimensions grow, too.
#[test]
fn work_grows_linearly_with_nnz() {
    type Operands = fn(u64) -> Vec<Tensor>;
    let kernels: [(&str, Operands, f64); 7] = [
        ("spmv.py", |n| vec![random(&[n, n], 8 * n, 1, "csr"), dense(&[n])], 1.0),
        ("spmm.py", |n| vec![random(&[n, n], 8 * n, 1, "csr"), dense(&[n, 20])], 1.0),
        ("add.py", |n| vec![random(&[n, n], 8 * n, 1, "csr"), random(&[n, n], 8 * n, 2, "csr")], 1.0),
        ("gustavson.py", |n| vec![random(&[n, n], 8 * n, 1, "csr"), random(&[n, n], 8 * n, 2, "csr")], 1.0),
        ("sddmm.py", |n| vec![random(&[n, n], 8 * n, 1, "csr"), dense(&[n, 4]), dense(&[4, n])], 1.0),
        ("ttv.py", |n| vec![random(&[n, n, n], 8 * n, 1, "csf"), dense(&[n])], 1.0),
        // With dense storage, entries grow quadratically.
        ("spmv.py", |n| vec![dense(&[n, n]), dense(&[n])], 2.0),
    ];
    for (name, operands, wanted) in kernels {
        let program = example(name);
        let points: Vec<(f64, f64)> = [300u64, 600, 1200, 2400]
            .into_iter()
            .map(|n| {
                let tensors = operands(n);
                (n as f64, executed(&program, &tensors.iter().collect::<Vec<_>>()))
            })
            .collect();
        let found = slope(&points);
        assert!((wanted - 0.1..=wanted + 0.05).contains(&found), "{name} grows as n^{found:.2}: {points:?}");
    }
}

/// Empty rows and columns cost nothing, if the format does not list them.
#[test]
fn empty_rows_cost_nothing() {
    for (name, format) in
        [("row_sums", "dcsr"), ("row_sums", "coo"), ("total", "dcsr"), ("total", "coo"), ("total", "csr")]
    {
        let text = match name {
            "total" => "def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        s += A[i,j]\n    return s\n",
            _ => "def f(A):\n    s = tensor('sparse')\n    for i, j in _:\n        s[i] += A[i,j]\n    return s\n",
        };
        let program = Program::parse(text).unwrap();
        let of = |rows: u64, columns: u64| {
            let entries = random_nnz(&[500, 500], 2000, 3).unwrap();
            let entries = tamis_tensor::Coordinates { shape: vec![rows, columns], ..entries };
            let format = Format::parse(format, 2).unwrap();
            let a = Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap();
            executed(&program, &[&a])
        };
        let few = of(500, 500);
        assert!((of(500, 500_000) - few).abs() < 1.0, "{name} {format}: columns");
        if format == "csr" {
            let more = (of(1000, 500) - few) / 500.0;
            assert!(more <= 4.0, "{name} {format}: each empty row takes {more} statements");
        } else {
            assert!((of(500_000, 500) - few).abs() < 1.0, "{name} {format}: rows");
        }
    }
}

/// One operand more is one list more to look at, not twice as much to do; kernels grow with what
/// can be missing of them.
#[test]
fn work_grows_linearly_with_operands() {
    let mut points = Vec::new();
    for count in 1..=6u64 {
        let names: Vec<String> = (0..count).map(|k| format!("A{k}")).collect();
        let sum = names.iter().map(|name| format!("{name}[i]")).collect::<Vec<_>>().join(" + ");
        let text = format!(
            "def f({}):\n    y = tensor('sparse')\n    for i in _:\n        y[i] = {sum}\n    return y\n",
            names.join(", ")
        );
        let tensors: Vec<Tensor> = (0..count).map(|k| random(&[20_000], 1000, k + 1, "sparse")).collect();
        let program = Program::parse(&text).unwrap();
        let done = executed(&program, &tensors.iter().collect::<Vec<_>>());
        points.push((count as f64, done / (1000.0 * count as f64)));
    }
    // A single list is copied without merging: coordinates are shared, and each value takes one
    // statement.
    assert!(points[0].1 <= 1.1, "a list is copied: {points:?}");
    // Each iteration compares all remaining lists, so the cost of an entry may grow with their
    // number.
    assert!(slope(&points[1..]) <= 1.1, "a union of k lists grows faster than k for each entry: {points:?}");
}

/// A further dimension adds one loop over the same entries.
#[test]
fn work_grows_linearly_with_dimensions() {
    let mut points = Vec::new();
    for rank in 1..=6usize {
        let shape = vec![60u64.pow(4 / rank as u32).clamp(12, 1_000_000); rank];
        let indices: Vec<String> = (0..rank).map(|k| format!("i{k}")).collect();
        let text = format!(
            "def f(A):\n    s = scalar(0.0)\n    for {} in _:\n        s += A[{}]\n    return s\n",
            indices.join(", "),
            indices.join(",")
        );
        let entries = 1000.min(shape.iter().product::<u64>() / 4);
        let a = random(&shape, entries, 1, &vec!["sparse"; rank].join(", "));
        let done = executed(&Program::parse(&text).unwrap(), &[&a]);
        points.push((rank as f64, done / entries as f64));
    }
    assert!(slope(&points) <= 1.1, "entries of more dimensions cost more than one loop each: {points:?}");
}

/// Index notation iterates over the diagonals of a matrix instead of all its elements, whatever the
/// order of its levels.
#[test]
fn diagonals() {
    for (text, format) in [
        ("y[i] = A[i,j] * x[j]", "(i,j) -> (j-i, i): sparse, dense"),
        ("y[j] = A[i,j] * x[i]", "(i,j) -> (j-i, i): sparse, dense"),
        ("y[i] = A[i,j] * x[j]", "(i,j) -> (i-j, j): sparse, dense"),
    ] {
        let points: Vec<(f64, f64)> = [200u64, 400, 800]
            .into_iter()
            .map(|n| {
                let entries = tamis_tensor::gallery::generate(&format!("banded({n},1)")).unwrap();
                let format = Format::parse(format, 2).unwrap();
                let a = Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap();
                let x = dense(&[n]);
                let analysis =
                    tamis::analyze(text, &[("A", &a), ("x", &x)], &tamis::notation::EinsumOptions::default());
                let analysis = analysis.unwrap_or_else(|d| panic!("{}", d.render(false)));
                (n as f64, analysis.statements as f64)
            })
            .collect();
        let found = slope(&points);
        assert!((0.9..=1.1).contains(&found), "{text} of `{format}` grows as n^{found:.2}: {points:?}");
    }
}
