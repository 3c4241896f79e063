//! Matrix multiplications in machine code and C, against the interpreter: types, strides in every
//! order, sizes around the tiles, and matrices that do not fit their buffers.

use crate::common::native::run_c;
use crate::common::{run_llvm, same};
use tamis_backend::{CodegenOptions, KernelFailure};
use tamis_ir::kernel::{Array, Kernel, Memory, run};
use tamis_ir::{DType, Value};

/// `C += alpha * A * B`, with strides of the four orders of `A` and `B`.
fn kernel(dtype: DType, order: usize) -> Kernel {
    let a = ["a[offset; k, 1]", "a[offset; 1, m]"][order % 2];
    let b = ["b[1; n, 1]", "b[1; 1, k]"][order / 2 % 2];
    let c = ["c[2; n, 1]", "c[2; 1, m]"][order / 4 % 2];
    let text = format!(
        "kernel f\n    in a: {dtype}[]\n    in b: {dtype}[]\n    out c: {dtype}[]\n    in m: i64\n    in n: i64\n    in k: i64\n    in offset: i64\n    in alpha: {dtype}\nbegin\n    gemm {c}, {a}, {b} of m, n, k times alpha\n"
    );
    Kernel::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

/// Small integers, so that sums are exact in any order.
fn memory(dtype: DType, [m, n, k]: [i64; 3], alpha: f64) -> Memory {
    let numbers = |count: i64, factor: i64| {
        Array::from_values((0..count.max(0)).map(|at| Value::I64(at * factor % 7 - 2).cast(dtype)))
    };
    let arrays = vec![numbers(m * k + 3, 3), numbers(k * n + 1, 5), numbers(m * n + 2, 1)];
    let scalars = [m, n, k, 3].into_iter().map(Value::I64).chain([Value::F64(alpha).cast(dtype)]);
    Memory { arrays, scalars: scalars.collect() }
}

const SIZES: [[i64; 3]; 9] =
    [[1, 1, 1], [0, 3, 3], [3, 0, 3], [3, 3, 0], [-2, 3, 3], [5, 7, 3], [16, 8, 9], [33, 17, 40], [4, 65, 130]];

#[test]
fn products_match_the_interpreter() {
    for dtype in [DType::F32, DType::F64] {
        for order in 0..8 {
            let kernel = kernel(dtype, order);
            for sizes in SIZES {
                let memory = memory(dtype, sizes, [1.0, -2.0][order % 2]);
                let expected = run(&kernel, memory.clone(), 10_000_000).unwrap();
                for options in [CodegenOptions::host().unwrap(), CodegenOptions::host().unwrap().checked()] {
                    let after = run_llvm(&kernel, memory.clone(), &options).unwrap();
                    same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{sizes:?}: {wrong}\n{kernel}"));
                }
            }
        }
    }
}

#[test]
fn products_in_c_match_the_interpreter() {
    for (dtype, order) in [(DType::F32, 3), (DType::F64, 0), (DType::F64, 5)] {
        let kernel = kernel(dtype, order);
        for sizes in [[0, 3, 3], [5, 7, 3]] {
            let memory = memory(dtype, sizes, -2.0);
            let expected = run(&kernel, memory.clone(), 10_000_000).unwrap();
            let after = run_c(&kernel, memory).unwrap();
            same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{sizes:?}: {wrong}\n{kernel}"));
        }
    }
}

/// In check mode a matrix that leaves its buffer is a failure; nothing is read or written.
#[test]
fn matrices_out_of_bounds_are_failures() {
    let kernel = kernel(DType::F64, 0);
    for shortened in 0..3 {
        let mut memory = memory(DType::F64, [5, 7, 3], 1.0);
        let array = &memory.arrays[shortened];
        memory.arrays[shortened] = Array::from_values(array.values()[..array.len() - 1].iter().copied());
        let failure = run_llvm(&kernel, memory, &CodegenOptions::host().unwrap().checked()).unwrap_err();
        assert!(matches!(failure, KernelFailure::Bounds { .. }), "{failure:?}");
    }
}
