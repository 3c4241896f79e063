//! What kernels of common programs look like after all passes.

use tamis_compiler::lower::{ParamLayout, Policy, lower};
use tamis_compiler::opt::{Options, optimise};
use tamis_ir::kernel::Kernel;
use tamis_ir::{DType, Format, Program, Value, interp};
use tamis_tensor::{Tensor, ValueArray};

/// The kernel of a program for tensors of these formats: names, formats and ranks in the order of its parameters.
fn kernel(program: &str, params: &[(&str, usize)]) -> Kernel {
    let program = Program::parse(program).unwrap();
    let tensors: Vec<Tensor> = params
        .iter()
        .map(|(format, rank)| {
            let shape = vec![3; *rank];
            let cells = 3usize.pow(*rank as u32);
            let values: Vec<Value> = (0..cells).map(|k| Value::F64((k % 3) as f64)).collect();
            let values = ValueArray::from_values(&values, DType::F64);
            Tensor::from_dense(&shape, values, &Format::parse(format, *rank).unwrap(), Value::F64(0.0)).unwrap()
        })
        .collect();
    let types: Vec<_> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let checked = program.check(&types).unwrap();
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    lower(&program, &checked, &layouts, Policy::default()).unwrap().kernel
}

#[test]
fn show() {
    let spmv =
        "def spmv(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";
    let spmm = "def spmm(A, B):\n    C = tensor(\"dense\")\n    for i, j, k in _:\n        C[i,k] += A[i,j] * B[j,k]\n    return C\n";
    let sddmm = "def sddmm(S, A, B):\n    X = tensor(\"dense\")\n    for i, j, k in _:\n        X[i,j] += S[i,j] * A[i,k] * B[j,k]\n    return X\n";
    let product =
        "def product(A, B):\n    s = scalar(0.0)\n    for i, j in _:\n        s += A[i,j] * B[i,j]\n    return s\n";
    let upper = "def upper(A):\n    s = scalar(0.0)\n    for i, j in _:\n        if i <= j:\n            s += A[i,j]\n    return s\n";
    let union =
        "def total(a, b):\n    s = tensor(\"dense\")\n    for i in _:\n        s[i] = a[i] + b[i]\n    return s\n";
    for (program, params) in [
        (spmv, vec![("csr", 2), ("dense", 1)]),
        (spmv, vec![("csc", 2), ("dense", 1)]),
        (spmv, vec![("coo", 2), ("dense", 1)]),
        (spmv, vec![("csr", 2), ("sparse", 1)]),
        (spmv, vec![("dense", 2), ("dense", 1)]),
        (spmm, vec![("csr", 2), ("dense", 2)]),
        (spmm, vec![("dense", 2), ("dense", 2)]),
        (sddmm, vec![("csr", 2), ("dense", 2), ("dense", 2)]),
        (product, vec![("csr", 2), ("csr", 2)]),
        (upper, vec![("csr", 2)]),
        (upper, vec![("dense", 2)]),
        (union, vec![("sparse", 1), ("sparse", 1)]),
    ] {
        let kernel = kernel(program, &params);
        println!("{kernel}\n---->\n{}", optimise(kernel.clone(), &Options::default()));
    }
}
