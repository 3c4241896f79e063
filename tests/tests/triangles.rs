//! Tests of results that rows of a triangle and of its transpose accumulate into. Each element is
//! assigned by its own row if no earlier iteration can add to it. Results agree with the
//! interpreter.

use tamis::compile::CompileOptions;
use tamis_ir::{FormatSpec, Value};
use tamis_tensor::gallery::random_nnz;
use tamis_tensor::{Combine, Coordinates, Tensor};
use tamis_tests::compare::compiled_on_threads;

fn matrix(rows: u64, columns: u64, entries: u64, format: &str) -> Tensor {
    let format = FormatSpec::parse(format).unwrap().with_rank(2).unwrap();
    let found = random_nnz(&[rows, columns], entries, 5).unwrap();
    let values: Vec<f64> = (0..found.len() as u64).map(|k| ((k * 5) % 9) as f64 - 3.5).collect();
    let entries = Coordinates { values: values.into(), ..found };
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
}

fn dense(shape: &[u64]) -> Tensor {
    let values: Vec<f64> = (0..shape.iter().product::<u64>()).map(|k| ((k * 7) % 11) as f64 - 5.0).collect();
    let format = FormatSpec::parse("dense").unwrap().with_rank(shape.len()).unwrap();
    Tensor::from_dense(shape, values.into(), &format, Value::F64(0.0)).unwrap()
}

/// Runs a program on one thread and on three, compares it with the interpreter, and returns whether
/// its result is initialised with the fill value first.
fn filled_before(text: &str, tensors: &[Tensor]) -> bool {
    let executable = compiled_on_threads(text, tensors, &CompileOptions::default(), 1e-9);
    let kernel = executable.kernel().expect("it is compiled").to_string();
    kernel.lines().any(|line| line.starts_with("    fill "))
}

/// A product of a triangle of a matrix and of its transpose, with a choice of masks and of
/// statements beside the column loop.
fn product(mask: &str, own: &str) -> String {
    format!(
        "def f(L, x):
    y = tensor('dense', shape=(L.shape[0],))
    for i in _:
        s = scalar(0.0)
        for j in _:
            if {mask}:
                s += L[i,j] * x[j]
                y[j] += L[i,j] * x[i]
        {own}
    return y
"
    )
}

const OWN: &str = "y[i] += s + x[i]";

#[test]
fn lower_triangles_need_no_initialisation() {
    for n in [0, 1, 2, 7, 60] {
        let x = dense(&[n]);
        for format in ["csr", "dense, sparse[u64,u64]", "dense, sparse[u8,u8]", "dense", "csr; pattern"] {
            let l = match format {
                "csr; pattern" => matrix(n, n, 4 * n.min(n * n / 4), "csr").convert(&pattern()).unwrap(),
                _ => matrix(n, n, 4 * n.min(n * n / 4), format),
            };
            for mask in ["j < i", "i > j", "j <= i", "j + 1 <= i", "j < i and j < i + 1"] {
                let text = product(mask, OWN);
                assert!(!filled_before(&text, &[l.clone(), x.clone()]), "{format}, {n}\n{text}");
            }
        }
    }
}

fn pattern() -> tamis_ir::Format {
    FormatSpec::parse("csr; pattern").unwrap().with_rank(2).unwrap()
}

#[test]
fn results_with_early_updates_are_initialised() {
    let (l, x) = (matrix(50, 50, 300, "csr"), dense(&[50]));
    for mask in ["j > i", "j != i", "i <= j", "j < i or j == 30", "j < 2 * i", "j < i + 2", "j < x[i]", "L[i,j] > 0"] {
        let text = product(mask, OWN);
        assert!(filled_before(&text, &[l.clone(), x.clone()]), "{text}");
    }
    // Only the part of a row before its own element accumulates; other reads see earlier elements.
    for own in ["y[i] += s + y[0]", "y[i] += y[49 - i]", "y[49 - i] += s"] {
        let text = product("j < i", own);
        assert!(filled_before(&text, &[l.clone(), x.clone()]), "{text}");
    }
}

#[test]
fn rows_in_every_format() {
    let x = dense(&[40]);
    // In every other format.
    for format in [
        "dcsr",
        "csc",
        "coo",
        "dense, band",
        "dense, blocks",
        "dense, runs",
        "dense, hash",
        "dense, bytemap",
        "bsr(3,4)",
    ] {
        for mask in ["j < i", "j <= i", "j > i"] {
            filled_before(&product(mask, OWN), &[matrix(40, 40, 200, format), x.clone()]);
        }
    }
}

#[test]
fn under_conditions_and_never() {
    let (l, x) = (matrix(50, 50, 300, "csr"), dense(&[50]));
    for own in ["if x[i] > 0:\n            y[i] += s", "y[i] max= s", "y[i] = s", "s += 1.0"] {
        let text = product("j < i", own);
        assert!(!filled_before(&text, &[l.clone(), x.clone()]), "{text}");
    }
}

#[test]
fn matrices_are_initialised_by_rows() {
    let text = "def f(L, X):
    Y = tensor('dense', shape=(L.shape[0], X.shape[1]))
    for i in _:
        for j in _:
            if j < i:
                for k in _:
                    Y[i,k] += L[i,j] * X[j,k]
                for k in _:
                    Y[j,k] += L[i,j] * X[i,k]
    return Y
";
    for columns in [1, 3, 8] {
        let tensors = [matrix(30, 30, 150, "csr"), dense(&[30, columns])];
        assert!(!filled_before(text, &tensors), "{columns} columns");
    }
}

/// Both sums in the result itself: accumulations into a possibly identical element are alternated.
#[test]
fn rows_and_columns_of_one_result() {
    let x = dense(&[50]);
    for format in
        ["csr", "dense", "dense, sparse[u16,u16]", "dense, band", "dense, blocks", "csc", "dcsr", "dense, hash"]
    {
        let l = matrix(50, 50, 400, format);
        for mask in ["j < i", "j <= i", "j > i", "i <= j", "j != i", "j < 2 * i", "j < i or j == 30", "True"] {
            for (row, column) in [("i", "j"), ("j", "i")] {
                let text = format!(
                    "def f(L, x):
    y = tensor('dense', shape=(L.shape[0],))
    for i in _:
        for j in _:
            if {mask}:
                y[{row}] += L[i,j] * x[{column}]
                y[{column}] max= L[i,j] * x[{row}]
        y[i] += 2.0 * x[i]
    return y
"
                );
                filled_before(&text, &[l.clone(), x.clone()]);
            }
        }
    }
}
