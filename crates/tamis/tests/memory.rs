//! Results that do not fit in memory are diagnostics, and the process lives. A process of its own, since limits are global.

use std::sync::Mutex;
use tamis::Code;
use tamis::prelude::*;

/// Tests that change the limit, or mind it, go one by one.
static ALONE: Mutex<()> = Mutex::new(());

const OUTER: &str =
    "def outer(x):\n    A = tensor('dense')\n    for i, j in _:\n        A[i,j] = x[i] * x[j]\n    return A\n";

fn sparse_vector(n: u64) -> Tensor {
    let entries = Coordinates {
        shape: vec![n],
        columns: vec![vec![0u64, n / 2, n - 1].into()],
        values: vec![1.0, 2.0, 3.0].into(),
    };
    Tensor::from_coordinates(&entries, &Format::parse("sparse", 1).unwrap(), 0.0.into(), Combine::Error).unwrap()
}

fn outer(n: u64, options: RunOptions) -> Result<Tensor, Diagnostics> {
    let program = Program::parse(OUTER).unwrap();
    tamis::run(&program, &[("x", &sparse_vector(n))], &options).map(|mut results| results.remove(0).1)
}

#[test]
fn a_dense_result_of_huge_shape() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for check in [false, true] {
        let options = RunOptions { check, ..RunOptions::default() };
        // Ever larger: more than memory, more than 64 bits of bytes, more than 64 bits of cells (some of them 0 after
        // wrapping around).
        for (n, code) in [
            (10_000_000, Code::E0706),
            (1 << 31, Code::E0706),
            (1 << 32, Code::E0404),
            (3_037_000_500, Code::E0404),
            (1 << 62, Code::E0404),
        ] {
            let errors = outer(n, options).unwrap_err();
            let told = errors.render(false);
            assert_eq!(errors.0[0].code, code, "{n}: {told}");
            assert!(!errors.0[0].help.is_empty() && told.contains("tensor('dense')"), "{told}");
        }
        let result = outer(30, options).unwrap();
        assert_eq!(result.get(&[29, 15]), Some(Value::F64(6.0)), "what fits still runs");
    }
}

#[test]
fn a_limit_for_arrays() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(outer(200, RunOptions::default()).is_ok());
    let before = tamis::limit_arrays(100_000);
    let refused = outer(200, RunOptions::default());
    let small = outer(100, RunOptions::default());
    tamis::limit_arrays(before);
    let errors = refused.unwrap_err();
    assert_eq!(errors.0[0].code, Code::E0706, "{}", errors.render(false));
    assert!(errors.render(false).contains("320.0 kB"), "{}", errors.render(false));
    assert_eq!(small.unwrap().get(&[50, 99]), Some(Value::F64(6.0)));
    assert!(outer(200, RunOptions::default()).is_ok(), "the limit is gone, and so is the failure");
}

/// Memory of results is used again, and never by two at once.
#[test]
fn memory_of_results_goes_round() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut kept: Vec<Tensor> = Vec::new();
    for round in 0..40u64 {
        let n = 200 + 10 * (round % 3);
        let result = outer(n, RunOptions::default()).unwrap();
        assert_eq!(result.get(&[n - 1, n / 2]), Some(Value::F64(6.0)));
        assert_eq!(result.values().map(|values| (values.get(1), values.len() as u64)), Some((Value::F64(0.0), n * n)));
        if round.is_multiple_of(4) {
            kept.push(result);
        }
    }
    for tensor in &kept {
        let n = tensor.shape()[0];
        assert_eq!((tensor.get(&[0, 0]), tensor.get(&[n - 1, n - 1])), (Some(Value::F64(1.0)), Some(Value::F64(9.0))));
        let sum: f64 = (0..n * n).map(|k| tensor.get(&[k / n, k % n]).unwrap().as_c128().re).sum();
        assert_eq!(sum, 36.0);
    }
}

/// A sparse result grows as it is written; what goes beyond the limit is told, and freed.
#[test]
fn a_sparse_result_that_grows() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let text = "def outer(x):\n    A = tensor('csr')\n    for i, j in _:\n        A[i,j] = x[i] * x[j]\n    return A\n";
    let program = Program::parse(text).unwrap();
    let x =
        |n: u64| Tensor::from_dense(&[n], vec![1.0; n as usize].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let run =
        |n: u64, check: bool| tamis::run(&program, &[("x", &x(n))], &RunOptions { check, ..RunOptions::default() });
    for check in [false, true] {
        assert_eq!(run(300, check).unwrap()[0].1.nnz(), 90_000);
        let before = tamis::limit_arrays(200_000);
        let (refused, small) = (run(300, check), run(50, check));
        tamis::limit_arrays(before);
        let errors = refused.unwrap_err();
        let told = errors.render(false);
        assert!(errors.0[0].code == Code::E0706 && told.contains("does not fit in memory"), "{told}");
        assert_eq!(small.unwrap()[0].1.nnz(), 2500);
        let result = run(300, check).unwrap().remove(0).1;
        // What was grown into, but not needed, is not part of the result.
        assert_eq!(result.values().map(|values| values.len()), Some(90_000));
    }
}
