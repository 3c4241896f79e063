//! Affine subscripts: what windows hold, and how many are visited. All orders of convolutions are in `convolutions.rs`.

use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Format, Program, Value};
use tamis_tensor::{Combine, Coordinates, Tensor};
use tamis_tests::convolve::{check, random, visited};
use tamis_tests::generate::Input;
use tamis_tests::lowered::{Engine, Stage, run_stage};

/// A vector of integers, 0 but for these.
fn vector(n: u64, entries: &[(u32, i64)], format: &str) -> Tensor {
    let entries = Coordinates {
        shape: vec![n],
        columns: vec![entries.iter().map(|(i, _)| *i).collect::<Vec<u32>>().into()],
        values: entries.iter().map(|(_, x)| *x).collect::<Vec<i64>>().into(),
    };
    let format = Format::parse(format, 1).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::I64(0), Combine::Error).unwrap()
}

const CONVOLUTION: &str = "\
def f(C, F):
    O = tensor(\"dense\")
    for i, k in _:
        O[i] += C[i+k] * F[k]
    return O
";

/// Formats of a vector whose entries are found without looking at every coordinate.
const LISTS: [&str; 5] = ["sparse", "hash", "bytemap", "sparse_runs", "blocks"];

#[test]
fn windows_without_entries_are_not_visited() {
    // Offsets 1, 2, 7, 8 (with a dimension that is large enough for the last).
    for format in LISTS {
        let c = vector(10, &[(2, 1), (8, 2), (9, 3)], format);
        let f = vector(2, &[(0, 10), (1, 100)], "dense");
        assert_eq!(visited(CONVOLUTION, &[c, f], "i"), 4, "{format}");
    }
}

#[test]
fn visits_are_as_many_as_windows_with_entries() {
    let n = 100_000;
    let entries: Vec<(u32, i64)> = (0..40).map(|k| (k * k * 60 + 11 * (k % 3), i64::from(k) + 1)).collect();
    let width = 5;
    let wanted = (0..n - width + 1)
        .filter(|i| entries.iter().any(|(x, _)| (*i..i + width).contains(&u64::from(*x))))
        .count() as u64;
    let f = vector(width, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], "dense");
    for format in ["sparse", "hash", "bytemap", "sparse_runs", "blocks"] {
        assert_eq!(visited(CONVOLUTION, &[vector(n, &entries, format), f.clone()], "i"), wanted, "{format}");
    }
}

#[test]
fn two_free_indices_make_windows_of_their_exact_size() {
    // One entry, at 5; `j` and `k` take two values each: windows of three coordinates.
    let text = "\
def f(C):
    O = tensor(\"dense\")
    for i in _:
        for j in range(2):
            for k in range(2):
                O[i] += C[i+j+k]
    return O
";
    for format in LISTS {
        let c = vector(12, &[(5, 7)], format);
        assert_eq!(visited(text, std::slice::from_ref(&c), "i"), 3, "{format}");
        // Of these, the first has it at j = 1, k = 1; the second at either; the third at j = 0, k = 0.
        assert_eq!(visited(text, std::slice::from_ref(&c), "j"), 4, "{format}");
    }
}

#[test]
fn strides_round_inwards() {
    let text = "\
def f(C, F):
    O = tensor(\"dense\")
    for i, j in _:
        O[i] += C[2*i+j+1] * F[j]
    return O
";
    for format in LISTS {
        let c = vector(9, &[(1, 1), (4, 2), (7, 3)], format);
        let f = vector(2, &[(0, 10), (1, 100)], "dense");
        assert_eq!(visited(text, &[c, f], "i"), 3, "{format}");
    }
}

#[test]
fn a_dimension_much_longer_than_its_loop_is_not_searched() {
    // Ten windows over the beginning of a long list.
    let entries: Vec<(u32, i64)> = (0..5_000).map(|k| (k * 3, 1)).collect();
    let text = "\
def f(C, B):
    O = tensor(\"dense\")
    for i in _:
        for k in range(4):
            O[i] += C[i+k] * B[i]
    return O
";
    let b = vector(10, &(0..10).map(|i| (i, 1)).collect::<Vec<_>>(), "dense");
    let c = vector(15_000, &entries, "sparse");
    let program = Program::parse(text).unwrap();
    let work = tamis_tests::lowered::run(&program, &[c, b], Engine::Interpreter(400));
    assert!(work.is_ok(), "{work:?}");
}

#[test]
fn a_box_filter_over_runs_costs_runs() {
    let (n, runs) = (60_000u64, 12u32);
    let mut entries = Vec::new();
    for run in 0..runs {
        entries.extend((run * 5_000..run * 5_000 + 4_000).map(|i| (i, i64::from(run) + 1)));
    }
    let text = "\
def f(C):
    O = tensor(\"sparse_runs\")
    for i in _:
        for k in range(9):
            O[i] += C[i+k]
    return O
";
    let c = vector(n, &entries, "sparse_runs");
    let program = Program::parse(text).unwrap();
    let work = tamis_tests::lowered::run(&program, &[c], Engine::Interpreter(u64::from(runs) * 16 * 40));
    assert!(work.is_ok(), "{:?}", work.err());
}

#[test]
fn a_result_and_a_window_meet_where_both_are() {
    let text = "\
def f(B, C, F):
    O = tensor(\"sparse\")
    for i, k in _:
        O[i] += B[i] * C[i+k] * F[k]
    return O
";
    let b = vector(96, &[(0, 1), (10, 2), (11, 3), (50, 4), (95, 5)], "sparse");
    let f = vector(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], "dense");
    for format in LISTS {
        let c = vector(100, &[(13, 7), (14, 1), (60, 2), (97, 3), (99, 9)], format);
        assert_eq!(visited(text, &[b.clone(), c, f.clone()], "i"), 3, "{format}");
    }
}

#[test]
fn batches_and_channels() {
    let text = "\
def f(I, F):
    O = tensor(\"dense\")
    for n, h, r, w, q, c, g in _:
        O[n,h,w,g] += I[n,h+r,w+q,c] * F[r,q,c,g]
    return O
";
    for format in
        ["dense, dense, dense, sparse", "dense, sparse, sparse, sparse", "dense, sparse, sparse, dense", "csf", "coo"]
    {
        let i = random(1, &[2, 5, 6, 3], 3).tensor(format).unwrap();
        let f = random(2, &[3, 2, 3, 2], 2).tensor("dense").unwrap();
        check(text, &[i, f], Engine::Checked);
    }
}

/// Levels of one stretch, and of one coordinate.
#[test]
fn one_stretch_and_one_coordinate() {
    let f = vector(2, &[(0, 10), (1, 100)], "dense");
    for format in ["interval", "band", "sparse_runs"] {
        let c = vector(12, &[(2, 9), (3, 9), (4, 9)], format);
        assert_eq!(visited(CONVOLUTION, &[c, f.clone()], "i"), 4, "{format}");
    }
    let text = "\
def f(P, F):
    O = tensor(\"csr\")
    for i, j, l in _:
        O[i,j] += P[i,j+l] * F[l]
    return O
";
    let values = (0..6 * 40).map(|at| Value::I64(i64::from(at % 40 == (at / 40) * 7 + 1)));
    let image = Input { shape: vec![6, 40], values: values.collect(), dtype: DType::I64 };
    for format in ["dense, singleton", "dense, interval", "dense, band", "csr", "sparse, singleton"] {
        let p = image.tensor(format).unwrap();
        assert_eq!(visited(text, &[p, f.clone()], "j"), 12, "{format}");
    }
}

/// Protocols are kept: a window can be galloped to, and looked up.
#[test]
fn protocols() {
    let b = vector(96, &[(0, 1), (10, 2), (11, 3), (50, 4), (95, 5)], "sparse");
    for (outer, inner) in [("gallop", "gallop"), ("walk", "gallop"), ("gallop", "walk"), ("walk", "follow")] {
        let text = format!(
            "def f(B, C):\n    O = tensor(\"sparse\")\n    for i in _:\n        for k in range(5):\n            O[i] += B[{outer}(i)] * C[{inner}(i+k)]\n    return O\n"
        );
        for format in ["sparse", "sparse_runs", "blocks", "hash"] {
            let c = vector(100, &[(13, 7), (14, 1), (60, 2), (97, 3), (99, 9)], format);
            check(&text, &[b.clone(), c], Engine::Interpreter(1_000_000));
        }
    }
}

/// Coefficients that make subscripts leave every tensor, or that wrap around, are found out as the interpreter does.
#[test]
fn hostile_coefficients() {
    let c = vector(10, &[(2, 1), (8, 2), (9, 3)], "sparse");
    for subscript in [
        "9223372036854775807*i + k",
        "4611686018427387904*i + k",
        "i + 9223372036854775807*k",
        "i - 9223372036854775807 + k",
        "0*i + k",
        "i - i + k",
        "2*i - 3*k + 3",
    ] {
        for lengths in [(1, 1), (1, 2), (2, 1), (3, 3)] {
            let text = format!(
                "def f(C, n, m):\n    s = scalar(0)\n    for i in range(n):\n        for k in range(m):\n            s += C[{subscript}]\n    return s\n"
            );
            let program = Program::parse(&text).unwrap();
            let number = |n: i64| {
                let input = Input { shape: vec![], values: vec![Value::I64(n)], dtype: DType::I64 };
                input.tensor("dense").unwrap()
            };
            let tensors = [c.clone(), number(lengths.0), number(lengths.1)];
            let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
            let options = Options { strict: false, budget: Some(100_000) };
            let wanted = interp::run(&program, &operands, options).ok();
            let got = run_stage(&program, &tensors, Stage::Optimised, Engine::Interpreter(100_000)).ok();
            let wanted: Option<Vec<Vec<Value>>> =
                wanted.map(|outcome| outcome.results.iter().map(|grid| grid.to_values().unwrap()).collect());
            assert_eq!(wanted, got.map(|(_, results)| results), "{subscript} {lengths:?}");
        }
    }
}
