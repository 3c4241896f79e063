//! How work grows with size: counted, not timed.

use std::path::Path;
use tamis::{CompileOptions, Program, Signature};
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

/// What is done for each row: statements and bytes of the kernel, insertions and combinations of its workspaces.
fn per_row(program: &Program, rows: u64) -> [f64; 4] {
    let (a, b) = (matrix(rows, 1, &Format::csc()), matrix(rows, 2, &Format::csr()));
    let tensors = [&a, &b];
    let options = CompileOptions::default();
    let told = |d: tamis_ir::diag::Diagnostics| -> ! { panic!("{}", d.render(false)) };
    let analysis = tamis::analyze_program(program, &tensors, &options).unwrap_or_else(|d| told(d));
    let moved: u64 = analysis.arrays.iter().map(|array| array.moved.read + array.moved.written).sum();
    let executable = tamis::compile(program, &Signature::of(&tensors), &options).unwrap_or_else(|d| told(d));
    let called = executable.call_timed(&tensors).unwrap_or_else(|d| told(d));
    let inserts: u64 = called.workspaces.iter().map(|(_, report)| report.inserts).sum();
    let merged: u64 = called.workspaces.iter().map(|(_, report)| report.merged).sum();
    [analysis.statements, moved, inserts, merged].map(|count| count as f64 / rows as f64)
}

/// Rows are multiplied by a hundred, and what each costs stays the same: nothing goes over all columns, or over all pairs.
#[test]
fn outer_products_grow_with_what_they_hold() {
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
