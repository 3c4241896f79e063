//! Tests of dense contractions: those that are large enough are matrix multiplications, whatever
//! loops are around them, and agree with the interpreter on one thread and on several.

use tamis::Program;
use tamis::compile::CompileOptions;
use tamis_ir::{DType, FormatSpec, Value};
use tamis_tensor::{Tensor, ValueArray};
use tamis_tests::compare::compiled_on_threads;
use tamis_tests::counted::count;
use tamis_tests::lowered::Engine;

/// Small integers, so that sums are exact in any order.
fn tensor(shape: &[u64], dtype: DType, format: &str) -> Tensor {
    let count = shape.iter().product::<u64>();
    let values: Vec<f64> = (0..count).map(|k| ((k * 7) % 11) as f64 - 5.0).collect();
    let values: ValueArray = match dtype {
        DType::F32 => values.iter().map(|x| *x as f32).collect::<Vec<_>>().into(),
        DType::I64 => values.iter().map(|x| *x as i64).collect::<Vec<_>>().into(),
        _ => values.into(),
    };
    let format = FormatSpec::parse(format).unwrap().with_rank(shape.len()).unwrap();
    Tensor::from_dense(shape, values, &format, Value::zero(dtype)).unwrap()
}

/// Runs a program and compares it with the interpreter; returns whether its kernel has a matrix
/// multiplication.
fn multiplies(text: &str, tensors: &[Tensor], strict: bool) -> bool {
    let options = CompileOptions { strict, ..CompileOptions::default() };
    let executable = compiled_on_threads(text, tensors, &options, 0.0);
    executable.kernel().is_some_and(|kernel| kernel.to_string().contains("gemm "))
}

fn program(target: &str, statement: &str, loops: &str) -> String {
    format!("def f(A, B):\n    C = tensor(\"{target}\")\n    for {loops} in _:\n        {statement}\n    return C\n")
}

#[test]
fn dense_contractions_are_matrix_multiplications() {
    let loops = ["i, j, k", "i, k, j", "k, i, j", "j, k, i"];
    for dtype in [DType::F32, DType::F64] {
        for loops in loops {
            for (statement, a, b) in [
                ("C[i,k] += A[i,j] * B[j,k]", [24, 21], [21, 26]),
                ("C[i,k] += A[j,i] * B[j,k]", [21, 24], [21, 26]),
                ("C[i,k] -= 2 * A[i,j] * B[k,j]", [24, 21], [26, 21]),
                ("C[k,i] += B[j,k] * A[i,j]", [24, 21], [21, 26]),
            ] {
                let tensors = [tensor(&a, dtype, "dense"), tensor(&b, dtype, "dense")];
                assert!(multiplies(&program("dense", statement, loops), &tensors, false), "{loops}: {statement}");
            }
        }
    }
}

/// Counts are those of the loops, whose iterations a matrix multiplication stands for.
#[test]
fn iterations_of_contractions_are_counted() {
    let tensors = [tensor(&[24, 21], DType::F64, "dense"), tensor(&[21, 26], DType::F64, "dense")];
    let text = program("dense", "C[i,k] += A[i,j] * B[j,k]", "i, j, k");
    let counted = count(&Program::parse(&text).unwrap(), &tensors, Engine::Native).unwrap();
    let visits = ["i", "j", "k"].map(|index| counted.visits(index));
    assert_eq!(visits, [24, 24 * 21, 24 * 21 * 26]);
}

#[test]
fn contractions_inside_other_loops() {
    let batched = [tensor(&[3, 24, 21], DType::F64, "dense"), tensor(&[3, 21, 26], DType::F64, "dense")];
    assert!(multiplies(&program("dense", "C[b,i,k] += A[b,i,j] * B[b,j,k]", "b, i, j, k"), &batched, false));
    // A sparse outer level: the blocks that it stores.
    let sparse = [tensor(&[3, 24, 21], DType::F64, "sparse, dense, dense"), tensor(&[21, 26], DType::F64, "dense")];
    assert!(multiplies(&program("dense", "C[b,i,k] += A[b,i,j] * B[j,k]", "b, i, j, k"), &sparse, false));
}

#[test]
fn what_is_no_matrix_multiplication() {
    let dense = |dtype| [tensor(&[24, 21], dtype, "dense"), tensor(&[21, 26], dtype, "dense")];
    let product = program("dense", "C[i,k] += A[i,j] * B[j,k]", "i, j, k");
    assert!(!multiplies(&product, &dense(DType::F64), true), "sums keep their order under strict");
    assert!(!multiplies(&product, &dense(DType::I64), false), "integers");
    let minimum = program("dense", "C[i,k] min= A[i,j] * B[j,k]", "i, j, k");
    assert!(!multiplies(&minimum, &dense(DType::F64), false));
    let sparse = [tensor(&[24, 21], DType::F64, "csr"), tensor(&[21, 26], DType::F64, "dense")];
    assert!(!multiplies(&product, &sparse, false));
    // Three operands, an operand without the counter of the sum, elements that coincide.
    let cube = program("dense", "C[i,k] += A[i,j] * B[j,k] * B[j,k]", "i, j, k");
    assert!(!multiplies(&cube, &dense(DType::F64), false));
    let outer = program("dense", "C[i,k] += A[i,j] * B[i,k]", "i, j, k");
    assert!(!multiplies(
        &outer,
        &[tensor(&[24, 21], DType::F64, "dense"), tensor(&[24, 26], DType::F64, "dense")],
        false
    ));
}
