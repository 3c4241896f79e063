//! Conformance tests of structured reads: runs, blocks, bands and index maps at every position,
//! each pair of levels together, triples of the small ones; under offsets, windows, masks and
//! padding.

use tamis_ir::{DType, Value};
use tamis_tensor::Tensor;
use tamis_tests::conform::{Data, Expected, Judge, edges, structured};

/// All levels of one dimension.
const LEVELS: [&str; 10] =
    ["dense", "sparse", "singleton", "runs", "sparse_runs", "interval", "blocks", "band", "hash", "bytemap"];

/// Matrices with levels and index maps of every kind.
const MATRICES: [&str; 27] = [
    "dense, runs",
    "dense, sparse_runs",
    "dense, interval",
    "dense, blocks",
    "dense, band",
    "runs, dense",
    "runs, runs",
    "runs, sparse",
    "sparse_runs, sparse_runs",
    "sparse_runs, band",
    "interval, blocks",
    "interval, runs",
    "blocks, dense",
    "blocks, blocks",
    "blocks, runs",
    "band, band",
    "band, sparse",
    "band, interval",
    "sparse, sparse_runs",
    "bytemap, runs",
    "(i,j) -> (j,i): dense, sparse_runs",
    "(i,j) -> (j,i): runs, blocks",
    "bsr(2,2)",
    "bsr(3,2)",
    "(i,j) -> (i/2, j/3, i%2, j%3): sparse, sparse, dense, sparse",
    "(i,j) -> (j-i, i): sparse, dense",
    "(i,j) -> (j-i, i): dense, band",
];

fn all(rank: usize) -> Vec<Data> {
    [edges(rank), structured(rank)].concat()
}

/// Every pair of data of one shape, in two formats.
fn pairs(all: &[Data], a: &str, b: &str, fill: (f64, f64)) -> Vec<Vec<Tensor>> {
    let mut sets = Vec::new();
    for (k, first) in all.iter().enumerate() {
        // Each with itself and with two others.
        for second in all.iter().cycle().skip(k).step_by(3).take(3).filter(|other| other.shape == first.shape) {
            let one = first.tensor(a, DType::F64, Value::F64(fill.0));
            let two = second.tensor(b, DType::F64, Value::F64(fill.1));
            sets.extend(one.zip(two).map(|(one, two)| vec![one, two]));
        }
    }
    sets
}

#[test]
fn every_pair_of_levels() {
    let mut judge = Judge::sharing(5);
    let data = all(1);
    let operators = ["A[i] * B[i]", "A[i] + B[i]", "min(A[i], B[i])", "select(A[i] > 1, B[i], 2)", "A[i] * B[i] + 1"];
    for a in LEVELS {
        for b in LEVELS {
            for (k, expr) in operators.iter().enumerate() {
                let text = format!(
                    "def f(A, B):\n    y = tensor(\"dense\")\n    s = scalar(0.0)\n    for i in _:\n        y[i] = {expr}\n    for i in _:\n        s += {expr}\n    return y, s\n"
                );
                let fill = [(0.0, 0.0), (0.0, 0.0), (0.0, 1.5), (0.0, -1.0), (2.0, 0.0)][k];
                judge.case(&format!("{a} and {b}"), &text, &pairs(&data, a, b, fill), Expected::Same);
            }
        }
    }
    judge.verdict(3000);
}

#[test]
fn triples_of_levels() {
    let mut judge = Judge::sharing(7);
    let data = all(1);
    let levels = ["sparse", "runs", "sparse_runs", "blocks", "band", "interval"];
    for (x, a) in levels.iter().enumerate() {
        for (y, b) in levels.iter().enumerate() {
            for (z, c) in levels.iter().enumerate() {
                let expr =
                    ["A[i] + B[i] + C[i]", "(A[i] + B[i]) * C[i]", "A[i] * B[i] * C[i]", "max(A[i], B[i]) + C[i]"]
                        [(x + y + z) % 4];
                let text = format!(
                    "def f(A, B, C):\n    y = tensor(\"dense\")\n    m = scalar(-inf)\n    for i in _:\n        y[i] = {expr}\n    for i in _:\n        m max= {expr}\n    return y, m\n"
                );
                let mut sets = pairs(&data, a, b, (0.0, 0.0));
                sets.retain_mut(|set| {
                    let third = data.iter().rev().find(|d| d.shape == set[0].shape());
                    let third = third.and_then(|d| d.tensor(c, DType::F64, Value::F64(0.0)));
                    third.map(|third| set.push(third)).is_some()
                });
                sets.truncate(12);
                judge.case(&format!("{a}, {b}, {c}"), &text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(1000);
}

#[test]
fn matrices() {
    let mut judge = Judge::sharing(3);
    let data = all(2);
    let texts = [
        "def f(A):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i,j] = 2 * A[i,j] + 1\n    return y\n",
        "def f(A):\n    y = tensor(\"dense\")\n    for j, i in _:\n        y[i,j] = A[i,j]\n    return y\n",
        "def f(A):\n    s = scalar(0.0)\n    y = tensor(\"dense\")\n    for i, j in _:\n        s += A[i,j]\n        y[j] max= A[i,j]\n    return s, y\n",
        "def f(A):\n    y = tensor(\"dense\")\n    for i, j in _:\n        if i <= j:\n            y[i] += A[i,j]\n    return y\n",
        "def f(A):\n    y = tensor(\"dense\")\n    for i in _:\n        for j in range(1, A.shape[1]):\n            y[i] += A[i,j] - A[i,j-1]\n    return y\n",
        "def f(A):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i,j] = coalesce(A[i,~(j+1)], 7) + coalesce(A[~(i-1),j], 3) + A[i,j]\n    return y\n",
        "def f(A):\n    C = tensor(\"csr\")\n    for i, j in _:\n        C[i,j] = A[i,j]\n    return C\n",
        "def f(A):\n    s = scalar(0.0)\n    for i, k, j in _:\n        s += A[i,j] * A[k,j]\n    return s\n",
    ];
    for (k, format) in MATRICES.iter().enumerate() {
        for (t, text) in texts.iter().enumerate() {
            let fill = if (k + t).is_multiple_of(3) { 1.5 } else { 0.0 };
            let sets: Vec<Vec<Tensor>> =
                data.iter().filter_map(|d| Some(vec![d.tensor(format, DType::F64, Value::F64(fill))?])).collect();
            judge.case(format, text, &sets, Expected::Same);
        }
    }
    judge.verdict(1500);
}

/// Padding shifts a diagonal past the last one.
#[test]
fn padded_diagonals() {
    let mut judge = Judge::default();
    let data = edges(2);
    for outer in LEVELS {
        for (map, access) in [
            ("(i,j) -> (j-i, i)", "A[~(i-1),j]"),
            ("(i,j) -> (j-i, i)", "A[~(i-1),~(j+1)]"),
            ("(i,j) -> (i-j, j)", "A[i,~(j-1)]"),
            ("(i,j) -> (i-j, j)", "A[i,~(j+2)]"),
        ] {
            let format = format!("{map}: {outer}, dense");
            for order in ["i, j", "j, i"] {
                let text = format!(
                    "def f(A):\n    y = tensor(\"dense\")\n    for {order} in _:\n        y[i] += coalesce({access}, 2)\n    return y\n"
                );
                let sets: Vec<Vec<Tensor>> =
                    data.iter().filter_map(|d| Some(vec![d.tensor(&format, DType::F64, Value::F64(0.0))?])).collect();
                judge.case(&format, &text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(200);
}

#[test]
fn pairs_of_matrices() {
    let mut judge = Judge::sharing(5);
    let data = all(2);
    for (k, a) in MATRICES.iter().enumerate() {
        for step in [1, 5, 11] {
            let b = MATRICES[(k + step) % MATRICES.len()];
            let expr = ["A[i,j] * B[i,j]", "A[i,j] + B[i,j]"][(k + step) % 2];
            let text = format!(
                "def f(A, B):\n    y = tensor(\"dense\")\n    s = scalar(0.0)\n    for i, j in _:\n        y[i,j] = {expr}\n        s += {expr}\n    return y, s\n"
            );
            judge.case(&format!("{a} and {b}"), &text, &pairs(&data, a, b, (0.0, 0.0)), Expected::Same);
        }
    }
    judge.verdict(700);
}

/// Results of every level and index map, from every kind of source, in order and not.
#[test]
fn structures_are_written() {
    let mut judge = Judge::sharing(3);
    let data = all(2);
    let results = [&MATRICES[..], &["dense, sparse", "hash, hash", "sparse, sparse"]].concat();
    for (k, result) in results.iter().enumerate() {
        let texts = [
            format!(
                "def f(A):\n    C = tensor(\"{result}\")\n    for i, j in _:\n        C[i,j] = A[i,j]\n    return C\n"
            ),
            format!(
                "def f(A):\n    C = tensor(\"{result}\")\n    for j, i in _:\n        C[i,j] += 2 * A[i,j]\n    return C\n"
            ),
            format!(
                "def f(A):\n    C = tensor(\"{result}\", fill=1)\n    for i, j in _:\n        if j <= i:\n            C[i,j] = A[i,j]\n    return C\n"
            ),
            format!(
                "def f(A):\n    C = tensor(\"{result}\")\n    for i, j in _:\n        C[i,j] = select(i < 3, 4, 0) + 0 * A[i,j]\n    return C\n"
            ),
            format!(
                "def f(A):\n    C = tensor(\"{result}\")\n    y = tensor(\"dense\")\n    for i, j in _:\n        C[i,j] = A[i,j] + 1\n    for i, j in _:\n        y[j] += C[i,j] * A[i,j]\n    return y, C\n"
            ),
        ];
        for (t, text) in texts.iter().enumerate() {
            for source in ["dense", "csr", "dense, sparse_runs", "runs, runs"].iter().skip((k + t) % 2).step_by(2) {
                let sets: Vec<Vec<Tensor>> =
                    data.iter().filter_map(|d| Some(vec![d.tensor(source, DType::F64, Value::F64(0.0))?])).collect();
                judge.case(&format!("{source} to {result}"), text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(2000);
}

/// Vectors as temporaries, reset in each iteration of a loop.
#[test]
fn structures_are_temporary() {
    let mut judge = Judge::sharing(3);
    let data = all(2);
    for level in LEVELS {
        let text = format!(
            "def f(A):\n    y = tensor(\"dense\")\n    for i in _:\n        w = tensor(\"{level}\")\n        for j in _:\n            w[j] = A[i,j]\n        for j in _:\n            y[i,j] = 2 * w[j] + 1\n    return y\n"
        );
        for source in ["dense", "csr", "dense, runs", "dense, sparse_runs", "blocks, band"] {
            let sets: Vec<Vec<Tensor>> =
                data.iter().filter_map(|d| Some(vec![d.tensor(source, DType::F64, Value::F64(0.0))?])).collect();
            judge.case(&format!("{source} by {level}"), &text, &sets, Expected::Same);
        }
    }
    judge.verdict(300);
}

/// Updates by every operator over runs: closed forms instead of loops.
#[test]
fn runs_use_closed_forms() {
    let mut judge = Judge::sharing(3);
    let data = all(1);
    for dtype in [DType::I8, DType::U8, DType::I64, DType::F32, DType::F64, DType::C128, DType::Bool] {
        for (update, start) in [
            ("+=", "0"),
            ("-=", "0"),
            ("*=", "1"),
            ("min=", "3"),
            ("max=", "-3"),
            ("|=", "0"),
            ("^=", "0"),
            ("&=", "-1"),
        ] {
            let whole = !matches!(update, "+=" | "-=" | "*=");
            if dtype == DType::Bool && !whole {
                continue;
            }
            if (dtype.kind() >= tamis_ir::Kind::Float && whole && !update.starts_with('m'))
                || (dtype == DType::C128 && whole)
            {
                continue;
            }
            let start = if dtype.is_unsigned_int() || dtype == DType::Bool { "0" } else { start };
            for format in ["runs", "sparse_runs", "interval", "sparse"] {
                let text = format!(
                    "def f(A):\n    s = scalar({start}, dtype=\"{dtype}\")\n    for i in _:\n        s {update} A[i]\n    return s\n"
                );
                let sets: Vec<Vec<Tensor>> =
                    data.iter().filter_map(|d| Some(vec![d.tensor(format, dtype, Value::zero(dtype))?])).collect();
                judge.case(&format!("{format} of {dtype}"), &text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(1000);
}

fn summed(format: &str, values: tamis_tensor::ValueArray, strict: bool) -> Value {
    let text = "def f(A):\n    s = scalar(0)\n    for i in _:\n        s += A[i]\n    return s\n";
    let program = tamis::Program::parse(text).unwrap();
    let (format, shape) =
        (tamis::format::FormatSpec::parse(format).unwrap().with_rank(1).unwrap(), [values.len() as u64]);
    let zero = Value::zero(values.dtype());
    let tensor = Tensor::from_dense(&shape, values, &format, zero).unwrap();
    let options = tamis::compile::CompileOptions { strict, ..tamis::compile::CompileOptions::default() };
    let executable = tamis::compile(&program, &tamis::compile::Signature::of(&[&tensor]), &options).unwrap();
    executable.call(&[&tensor]).unwrap()[0].get(&[]).unwrap()
}

/// A run is added by one multiplication, which rounds once; strict arithmetic adds element by
/// element.
#[test]
fn strict_sums_match_the_loop() {
    for format in ["dense", "sparse", "band", "runs", "sparse_runs", "interval"] {
        let sum = (0..10).fold(0.0, |sum, _| sum + 0.1);
        assert_eq!(summed(format, vec![0.1; 10].into(), true), Value::F64(sum), "{format}");
    }
    // The parts of complex numbers are independent.
    for format in ["dense", "sparse", "runs", "sparse_runs"] {
        let number = num_complex::Complex::new(f64::INFINITY, 1.0);
        for strict in [false, true] {
            let got = summed(format, vec![number, number, number].into(), strict).as_c128();
            assert!(got.re == f64::INFINITY && got.im == 3.0, "{format} {strict}: {got}");
        }
    }
}
