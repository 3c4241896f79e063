//! Tests of machine code for other CPUs, as far as this one can run it: baseline x86-64 vectors,
//! AVX2, and AVX-512. The CPU is selected once per process, so each instruction set has its own
//! process.

use std::process::Command;
use tamis::compile::{CompileOptions, Signature};
use tamis::{Program, Tensor};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, FormatSpec, Value};
use tamis_tensor::gallery::random_nnz;
use tamis_tensor::{Combine, ValueArray};

/// An instruction set, and a CPU feature that it needs.
const PROCESSORS: [(&str, &str); 4] =
    [("x86-64", "sse2"), ("x86-64-v2", "sse4_2"), ("x86-64-v3", "avx2"), ("x86-64-v4", "avx512vl")];

const KERNELS: [(&str, &str, &[&str]); 11] = [
    ("spmv", "y[i] += A[i,j] * x[j]", &["A", "x"]),
    ("spmm", "Y[i,k] += A[i,j] * D[j,k]", &["A", "D"]),
    ("columns", "y[j] += A[i,j] * z[i]", &["A", "z"]),
    ("sddmm", "S[i,j] += A[i,j] * E[i,k] * D[j,k]", &["A", "E", "D"]),
    ("add", "S[i,j] = A[i,j] + B[i,j]", &["A", "B"]),
    ("multiply", "S[i,j] = A[i,j] * B[i,j]", &["A", "B"]),
    ("greatest", "y[i] max= A[i,j] * x[j]", &["A", "x"]),
    ("row", "y[i] += E[i,k] * E[i,k]", &["E"]),
    ("regular", "y[i] += R[i,j] * x[j]", &["R", "x"]),
    ("band", "y[i] += T[i,j] * x[j]", &["T", "x"]),
    ("scaled", "S[i,j] = A[i,j] * x[j]", &["A", "x"]),
];

fn program(statement: &str, params: &[&str]) -> Program {
    let (target, _) = statement.split_once(' ').unwrap();
    let (name, _) = target.split_once('[').unwrap();
    let format = if name == "S" { "csr" } else { "dense" };
    // Sparse formats by rows first, dense columns last.
    let used = |index: &&str| statement.split(|c: char| !c.is_alphanumeric()).any(|word| word == *index);
    let order: Vec<&str> = ["i", "j", "k"].into_iter().filter(used).collect();
    let (params, loops) = (params.join(", "), order.join(", "));
    let text = format!(
        "def f({params}):\n    {name} = tensor('{format}')\n    for {loops} in _:\n        {statement}\n    return {name}\n"
    );
    Program::parse(&text).unwrap_or_else(|d| panic!("{text}{}", d.render(false)))
}

/// Small integers of a type.
fn values(count: usize, dtype: DType, seed: u64) -> ValueArray {
    let numbers: Vec<Value> =
        (0..count as u64).map(|k| Value::I64(((k * 7 + seed) % 9) as i64 - 3).cast(dtype)).collect();
    ValueArray::from_values(&numbers, dtype)
}

fn operand(name: &str, columns: u64, dtype: DType) -> Tensor {
    let (rows, inner) = (13, 11);
    let fill = Value::zero(dtype);
    let dense = |shape: &[u64], seed| {
        let format = tamis_ir::Format::dense(shape.len());
        Tensor::from_dense(shape, values(shape.iter().product::<u64>() as usize, dtype, seed), &format, fill).unwrap()
    };
    match name {
        "x" => dense(&[inner], 1),
        "z" => dense(&[rows], 2),
        "D" => dense(&[inner, columns], 3),
        "E" => dense(&[rows, columns], 4),
        // Rows of five, or of neighbours of the diagonal.
        "R" | "T" => {
            let (width, format) = if name == "R" { (5, "csr") } else { (3, "dense, band") };
            let places = (0..rows).flat_map(|i| (0..width).map(move |k| (i, (i + k).min(inner - width + k))));
            let (outer, columns): (Vec<u64>, Vec<u64>) = places.unzip();
            let values = values(outer.len(), dtype, 8);
            let columns = vec![outer.into(), columns.into()];
            let entries = tamis_tensor::Coordinates { shape: vec![rows, inner], columns, values };
            let format = FormatSpec::parse(format).unwrap().with_rank(2).unwrap();
            Tensor::from_coordinates(&entries, &format, fill, Combine::Error).unwrap()
        }
        _ => {
            let found = random_nnz(&[rows, inner], 60, if name == "A" { 5 } else { 6 }).unwrap();
            let entries = tamis_tensor::Coordinates { values: values(found.len(), dtype, 7), ..found };
            let format = FormatSpec::parse("csr").unwrap().with_rank(2).unwrap();
            Tensor::from_coordinates(&entries, &format, fill, Combine::Error).unwrap()
        }
    }
}

/// Runs in a child process of the test below, once per instruction set.
#[test]
#[ignore = "run by `every_cpu`, for each of them"]
fn kernels_of_one_cpu() {
    let mut compared = 0;
    for (name, statement, params) in KERNELS {
        let program = program(statement, params);
        for dtype in [DType::F64, DType::F32, DType::I32, DType::U8, DType::C128] {
            if name == "greatest" && dtype == DType::C128 {
                continue;
            }
            // Shorter than a vector, a vector, slightly longer, a tile, and longer than a tile.
            for columns in [1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 65] {
                let tensors: Vec<Tensor> = params.iter().map(|param| operand(param, columns, dtype)).collect();
                let refs: Vec<&Tensor> = tensors.iter().collect();
                let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
                let wanted =
                    interp::run(&program, &operands, Options::default()).unwrap().results[0].to_values().unwrap();
                let executable = tamis::compile(&program, &Signature::of(&refs), &CompileOptions::default()).unwrap();
                let got = executable.call(&refs).unwrap().into_tensor().unwrap();
                let got = got.convert(&tamis_ir::Format::dense(got.rank())).unwrap();
                let got = got.values().map(|v| (0..v.len()).map(|k| v.get(k)).collect::<Vec<_>>()).unwrap();
                assert!(
                    wanted.len() == got.len() && wanted.iter().zip(&got).all(|(a, b)| a.same_number(*b)),
                    "{name} of {dtype} with {columns} columns:\n{wanted:?}\n{got:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 300);
}

#[test]
fn every_cpu() {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| known.split_whitespace().any(|word| word == flag);
    if !cfg!(target_arch = "x86_64") || known.is_empty() {
        eprintln!("only this machine's own processor is tested, since it is another kind");
        return;
    }
    let mut tested = Vec::new();
    for (name, flag) in PROCESSORS {
        if !has(flag) {
            eprintln!("{name} is not tested: this processor has no {flag}");
            continue;
        }
        let test = std::env::current_exe().unwrap();
        let output = Command::new(test)
            .args(["--exact", "processors::kernels_of_one_cpu", "--ignored", "--nocapture"])
            .env("TAMIS_CPU", name)
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && reported.contains("1 passed"), "{name}:\n{reported}");
        tested.push(name);
    }
    assert!(tested.contains(&"x86-64"), "every x86-64 has these instructions");
}
