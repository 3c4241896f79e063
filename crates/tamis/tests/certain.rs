//! Results that store every element in any format: too large ones are refused before anything runs.

use tamis::diagnostic::Code;
use tamis::prelude::*;

fn nearly_empty(n: u64) -> Tensor {
    let entries = Coordinates {
        shape: vec![n, n],
        columns: vec![vec![0u64, n / 2].into(), vec![1u64, n - 1].into()],
        values: vec![1.0, 2.0].into(),
    };
    Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Error).unwrap()
}

fn run(format: &str, value: &str, n: u64, s: f64) -> Result<Tensor, Diagnostics> {
    let text = format!(
        "def f(A, s):\n    C = tensor('{format}')\n    for i, j in _:\n        C[i,j] = {value}\n    return C\n"
    );
    let program = Program::parse(&text)?;
    let results =
        tamis::run(&program, &[("A", &nearly_empty(n)), ("s", &Tensor::scalar(s.into()))], &RunOptions::default());
    results.map(|results| results.into_tensor().unwrap())
}

#[test]
fn results_that_store_every_element_fail_before_the_kernel_runs() {
    // Without the early diagnostic, the kernel would fill memory.
    tamis::cache::limit_arrays(1 << 28);
    for format in ["csr", "dcsr", "coo", "dense, bytemap", "dense, blocks"] {
        for value in ["A[i,j] + s", "max(A[i,j], s)", "select(A[i,j] > 1, A[i,j], s)", "(A[i,j] + 1) * s"] {
            for s in [0.0, 2.5] {
                let errors = run(format, value, 1_000_000, s).unwrap_err();
                let text = errors.render(false);
                assert!(matches!(errors.0[0].code, Code::E0706 | Code::E0404), "{format}, {value}: {text}");
                // All of it, not what had been reached when memory ended.
                assert!(text.contains("1000000000000") || text.contains("TB"), "{format}, {value}: {text}");
                assert!(!errors.0[0].help.is_empty(), "{text}");
            }
            let small = run(format, value, 7, 2.5).unwrap();
            assert_eq!(small.shape(), [7, 7], "{format}, {value}");
        }
    }
    // Remedies: the number in the program, and as the fill.
    assert_eq!(run("csr', fill=2.5, dtype='f64", "A[i,j] + 2.5", 1_000_000, 2.5).unwrap().nnz(), 2);
    // Entries that equal the fill are not stored.
    assert_eq!(run("csr", "A[i,j] * s", 1_000_000, 2.5).unwrap().nnz(), 2);
    assert_eq!(run("csr", "select(A[i,j] > 0, s, 0) * A[i,j]", 1_000_000, 2.5).unwrap().nnz(), 2);
}
