//! Rows in register tiles: machine code against the interpreter, for lengths around those of tiles,
//! all kinds of values, and rows with nothing in them.

use tamis::kernel::Role;
use tamis::prelude::*;

const SPMM: &str = "
def spmm(A, B):
    C = tensor('dense')
    for i, j, k in _:
        C[i,k] += A[i,j] * B[j,k]
    return C
";

/// More than a product, from another start.
const CLIPPED: &str = "
def clipped(A, B):
    C = tensor('dense', fill=7)
    for i, j in _:
        for k in _:
            C[i,k] -= A[i,j] * max(B[j,k], 2) + A[i,j]
    return C
";

/// Each row is used by what follows in the same iteration.
const WORKSPACE: &str = "
def workspace(A, B):
    C = tensor('dense')
    s = tensor('dense')
    for i in _:
        w = tensor('dense')
        for j, k in _:
            w[k] += A[i,j] * B[j,k]
        for k in _:
            s[i] += w[k]
        for k in _:
            C[i,k] = 2 * w[k]
    return C, s
";

const MTTKRP: &str = "
def mttkrp(B, C, D):
    A = tensor('dense')
    for i, k, l, j in _:
        A[i,j] += B[i,k,l] * C[k,j] * D[l,j]
    return A
";

/// A tensor about a third of whose elements are small numbers, with some fibers that are empty; all
/// of them if it is dense.
fn tensor(shape: &[u64], format: &Format, dtype: DType, seed: u64) -> Tensor {
    let fill = Value::I64(0).cast(dtype);
    let dense = format.to_string() == Format::dense(shape.len()).to_string();
    let cells: u64 = shape.iter().product();
    let last = shape.last().copied().unwrap_or(1).max(1);
    let value = |k: u64| {
        let mixed = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed << 17);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        let stored = dense || mixed.is_multiple_of(3) && (k / last) % 4 != 1;
        if stored { Value::I64((mixed / 3 % 5) as i64).cast(dtype) } else { fill }
    };
    let values: Vec<Value> = (0..cells).map(value).collect();
    Tensor::from_dense(shape, ValueArray::from_values(&values, dtype), format, fill).unwrap()
}

fn options(check: bool, interpret: bool) -> CompileOptions {
    CompileOptions { check, interpret, ..CompileOptions::default() }
}

/// Compiles for the first tensors, and compares what it says about all of them with the
/// interpreter; sums of small integers are exact.
fn compare(text: &str, cases: &[Vec<Tensor>], check: bool) {
    let program = Program::parse(text).unwrap();
    let first: Vec<&Tensor> = cases[0].iter().collect();
    let executable = tamis::compile(&program, &Signature::of(&first), &options(check, false)).unwrap();
    let kernel = executable.kernel().unwrap_or_else(|| panic!("{:?}", executable.build().interpreted));
    assert!(kernel.buffers.iter().any(|buffer| matches!(buffer.role, Role::Tile(_))), "{kernel}");
    let slow = tamis::compile(&program, &Signature::of(&first), &options(false, true)).unwrap();
    for tensors in cases {
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let (found, expected) = (executable.call(&tensors).unwrap(), slow.call(&tensors).unwrap());
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            let difference = found.first_difference(expected, &|a, b| a == b).unwrap();
            assert!(difference.is_none(), "{name} of {:?}: {difference:?}\n{kernel}", found.shape());
        }
    }
}

/// Lengths of rows around those of tiles of so many elements.
fn lengths(tile: u64) -> impl Iterator<Item = u64> {
    [0, 1, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 3].into_iter()
}

#[test]
fn products_of_all_kinds_of_values() {
    let kinds = [(DType::F32, 64), (DType::F64, 32), (DType::I16, 64), (DType::I64, 32), (DType::U8, 64)];
    for (dtype, tile) in kinds {
        for format in [Format::csr(), Format::parse("dcsr", 2).unwrap()] {
            let cases: Vec<Vec<Tensor>> = lengths(tile)
                .map(|n| vec![tensor(&[7, 6], &format, dtype, n), tensor(&[6, n], &Format::dense(2), dtype, n + 1)])
                .collect();
            compare(SPMM, &cases, false);
        }
    }
}

#[test]
fn other_sums_and_results() {
    for text in [CLIPPED, WORKSPACE] {
        let cases: Vec<Vec<Tensor>> = lengths(32)
            .map(|n| {
                let dense = tensor(&[6, n], &Format::dense(2), DType::F64, n + 1);
                vec![tensor(&[7, 6], &Format::csr(), DType::F64, n), dense]
            })
            .collect();
        [false, true].into_iter().for_each(|check| compare(text, &cases, check));
    }
}

#[test]
fn two_loops_around_a_row() {
    let cases: Vec<Vec<Tensor>> = lengths(32)
        .map(|n| {
            let dense = |rows, seed| tensor(&[rows, n], &Format::dense(2), DType::F64, seed);
            vec![tensor(&[5, 4, 6], &Format::parse("csf", 3).unwrap(), DType::F64, n), dense(4, 1), dense(6, 2)]
        })
        .collect();
    [false, true].into_iter().for_each(|check| compare(MTTKRP, &cases, check));
}
