//! Tests of affine subscripts: the contents of windows, and the number of visited ones. Exhaustive
//! loop orders of convolutions are in `convolutions.rs`.

use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Format, Program, Value};
use tamis_tensor::{Combine, Coordinates, Tensor};
use tamis_tests::convolve::{check, random, visited};
use tamis_tests::counted::count;
use tamis_tests::generate::Input;
use tamis_tests::lowered::{Engine, Stage, run_stage};
use tamis_tests::random::Random;

/// A vector of integers with these nonzeros.
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

/// Formats of a vector that locate entries without a scan of all coordinates.
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
fn visits_equal_the_windows_with_entries() {
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
        // The first window has it at j = 1, k = 1; the second at either; the third at j = 0, k = 0.
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
    // Ten windows over the start of a long list.
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
fn box_filter_work_is_proportional_to_runs() {
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
fn results_and_windows_are_intersected() {
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

/// Levels with one contiguous range, and with one coordinate.
#[test]
fn one_range_and_one_coordinate() {
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

/// Protocols are respected: windows can be galloped to, and looked up.
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

/// Coefficients that make subscripts leave every tensor, or that wrap around, are found out as the
/// interpreter does.
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

/// The number of windows of some width that contain an entry.
fn windows_with_entries(n: u64, width: u64, entries: &[(u32, i64)]) -> u64 {
    (0..n - width + 1).filter(|i| entries.iter().any(|(x, _)| (*i..i + width).contains(&u64::from(*x)))).count() as u64
}

/// Isolated entries, a few adjacent ones, and both ends.
fn apart(n: u32) -> Vec<(u32, i64)> {
    let mut entries: Vec<(u32, i64)> = (0..n / 50).map(|k| (k * 50 + k % 7, i64::from(k % 5) + 1)).collect();
    entries.extend([(n / 2 + 20, 3), (n / 2 + 21, 3), (n - 1, 2)]);
    entries.sort_unstable();
    entries.dedup_by_key(|(x, _)| *x);
    entries
}

/// Formats of a vector that do not store every coordinate.
const ANY: [&str; 7] =
    ["sparse", "hash", "bytemap", "runs", "sparse_runs", "blocks", "(i) -> (i/2, i%2): sparse, dense"];

/// Identities, constants, products of sums, negations and bound names do not affect the normal form
/// of a subscript.
#[test]
fn subscripts_have_one_normal_form() {
    let (n, width) = (1_000, 5);
    let entries = apart(n as u32);
    let f = vector(width, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], "dense");
    let wanted = windows_with_entries(n, width, &entries);
    for subscript in [
        "C[1*i+k]",
        "C[i+k+0]",
        "C[i*1+1*k]",
        "C[1*(i+k)]",
        "C[-(-i-k)]",
        "C[k- -i]",
        "C[i+1+k-1]",
        "C[0+i+(k+0)]",
        "C[2*i+k-i]",
        "C[p]",
        "C[p+0]",
        "C[1*p]",
        "C[m]",
        "C[i-q]",
        "C[walk(p+0)]",
        "C[i64(i)+k]",
    ] {
        let text = format!(
            "def f(C, F):\n    O = tensor(\"dense\")\n    for i, k in _:\n        p = i + k\n        q = -k\n        m = 2*p - i - k\n        O[i] += {subscript} * F[k]\n    return O\n"
        );
        for format in ["sparse", "sparse_runs", "blocks"] {
            let c = vector(n, &entries, format);
            assert_eq!(visited(&text, &[c, f.clone()], "i"), wanted, "{subscript} {format}");
        }
    }
    // A single index.
    for subscript in ["1*i", "i+0", "p", "-(-i)", "2*i-i", "i+3-3"] {
        let text = format!(
            "def f(C, B):\n    O = tensor(\"dense\")\n    for i in _:\n        p = 1*i\n        O[i] += C[{subscript}] * B[i]\n    return O\n"
        );
        let b = vector(n, &(0..n as u32).map(|i| (i, 1)).collect::<Vec<_>>(), "dense");
        for format in ["sparse", "hash", "bytemap"] {
            let c = vector(n, &entries, format);
            assert_eq!(visited(&text, &[c, b.clone()], "i"), entries.len() as u64, "{subscript} {format}");
        }
    }
    // Permissive reads, and strides.
    for (subscript, plain) in
        [("~(1*i+k-1+0)", "~(i+k-1)"), ("2*i+k+0", "2*i+k"), ("2*(i+k)", "2*i+2*k"), ("~(2*p)", "~(2*i+2*k)")]
    {
        let text = |subscript: &str| {
            format!(
                "def f(C, F):\n    O = tensor(\"sparse\")\n    for i, k in _:\n        p = i + k\n        O[i] += coalesce(C[{subscript}], 0) * F[k]\n    return O\n"
            )
        };
        let c = vector(n, &entries, "sparse");
        let seen = |subscript| visited(&text(subscript), &[c.clone(), f.clone()], "i");
        assert_eq!(seen(subscript), seen(plain), "{subscript}");
    }
}

/// A condition around a read restricts windows like loop bounds, without checks in the loop.
#[test]
fn conditions_restrict_windows() {
    let (n, width) = (1_000u64, 5);
    let entries = apart(n as u32);
    let most = windows_with_entries(n, width, &entries);
    let f = vector(width, &[(0, 1), (1, 2), (2, -3), (3, 4), (4, 5)], "dense");
    for body in [
        "if k != 1:\n            O[i] += C[i+k] * F[k]",
        "if F[k] > 0:\n            O[i] += C[i+k] * F[k]",
        "if C[i+k] != 0:\n            O[i] += F[k]",
        "if C[i+k] > 1 and F[k] > 0:\n            O[i] += 1",
        "if F[k] > 0 and C[i+k] > 1:\n            O[i] += 1",
        "if k <= i:\n            O[i] += C[i+k] * F[k]",
        "if k <= i and i <= 700:\n            O[i] += C[i+k] * F[k]",
        "if i % 2 == 0:\n            O[i] += C[i+k] * F[k]",
        "if F[k] > 0:\n            if k != 2:\n                O[i] += C[i+k] * F[k]",
        "if F[k] > 2:\n            O[i] += C[i+k]\n        else:\n            O[i] += 2*C[i+k]",
        "p = i + k\n        if p != 700:\n            O[i] += C[p] * F[k]",
        "c = C[i+k]\n        if c > 1:\n            O[i] += c * F[k]",
        "O[i] += C[i+k] * F[k] if k != 1 else 0",
        "O[i] += C[i+k] * F[k] if F[k] > 0 else 0",
        "O[i] += 0 if F[k] < 0 else C[i+k]",
        "O[i] += select(k != 1, C[i+k] * F[k], 0)",
        "O[i] += select(C[i+k] > 1, C[i+k], 0) * F[k]",
        "O[i] |= (C[i+k] > 1 and F[k] > 0)",
    ] {
        let text =
            format!("def f(C, F):\n    O = tensor(\"dense\")\n    for i, k in _:\n        {body}\n    return O\n");
        for format in ANY {
            let c = vector(n, &entries, format);
            let seen = visited(&text, &[c.clone(), f.clone()], "i");
            // Every coordinate is in some run, and in some block of two.
            let most = match format {
                "runs" => n,
                "(i) -> (i/2, i%2): sparse, dense" => 2 * most,
                _ => most,
            };
            assert!(seen <= most, "{seen} instead of {most}: {format}\n{text}");
            let program = Program::parse(&text).unwrap();
            let (lowered, _) =
                run_stage(&program, &[c, f.clone()], Stage::Optimised, Engine::Interpreter(1 << 22)).unwrap();
            let kernel = lowered.kernel.to_string();
            let checked = |line: &str| line.contains("leaves dimension") && line.starts_with("     ");
            assert!(!kernel.lines().any(checked), "{format}\n{text}{kernel}");
        }
    }
}

/// The same in two dimensions, in formats of matrices.
#[test]
fn conditions_restrict_windows_of_matrices() {
    let (n, m) = (60u64, 50u64);
    let mut image = Input { shape: vec![n, m], values: vec![Value::I64(0); (n * m) as usize], dtype: DType::I64 };
    let entries = [(3u64, 7u64), (3, 8), (20, 0), (21, 1), (40, 49), (59, 20)];
    for (y, x) in entries {
        image.values[(y * m + x) as usize] = Value::I64((y + x) as i64);
    }
    let f = Input { shape: vec![3, 3], values: (1..10).map(Value::I64).collect(), dtype: DType::I64 }
        .tensor("dense")
        .unwrap();
    let rows = (0..n - 2).filter(|y| entries.iter().any(|(a, _)| (*y..y + 3).contains(a))).count() as u64;
    let windows = (0..n - 2)
        .flat_map(|y| (0..m - 2).map(move |x| (y, x)))
        .filter(|(y, x)| entries.iter().any(|(a, b)| (*y..y + 3).contains(a) && (*x..x + 3).contains(b)))
        .count() as u64;
    for guard in ["r != 1", "q <= x", "F[r,q] > 2", "I[y+r,x+q] > 10", "y <= x and q != 2"] {
        for order in ["y, r, x, q", "y, x, r, q"] {
            let text = format!(
                "def f(I, F):\n    O = tensor(\"dense\")\n    for {order} in _:\n        if {guard}:\n            O[y,x] += I[y+r,x+q] * F[r,q]\n    return O\n"
            );
            for format in ["dcsr", "sparse, sparse_runs", "sparse, blocks", "hash, sparse", "bytemap, hash", "coo"] {
                let i = image.tensor(format).unwrap();
                let seen = visited(&text, &[i.clone(), f.clone()], "y");
                assert!(seen <= rows, "y: {seen} instead of {rows}: {format}\n{text}");
                let seen = visited(&text, &[i, f.clone()], "x");
                let most = if order == "y, x, r, q" { windows } else { 3 * windows };
                assert!(seen <= most, "x: {seen} instead of {most}: {format}\n{text}");
            }
        }
    }
}

/// A condition that keeps a read in bounds: windows inside the tensor are not scanned one by one,
/// and reads outside of it are checked when they execute.
#[test]
fn conditions_that_keep_reads_in_bounds() {
    let (n, width) = (1_000u64, 5);
    let entries = apart(n as u32);
    let f = vector(width, &[(0, 1), (1, 2), (2, -3), (3, 4), (4, 5)], "dense");
    let most = windows_with_entries(n, width, &entries) + 2 * width;
    for (guard, subscript) in [
        ("i + k >= 2 and i + k - 2 < C.shape[0]", "i+k-2"),
        ("k <= i", "i-k"),
        ("i + k < C.shape[0]", "i+k"),
        ("i + k < C.shape[0] and F[k] > 0", "i+k"),
        ("i >= 2*k", "i-2*k"),
    ] {
        let text = format!(
            "def f(C, F):\n    O = tensor(\"dense\", shape=(1000,))\n    for i in range(1000):\n        for k in range(5):\n            if {guard}:\n                O[i] += C[{subscript}] * F[k]\n    return O\n"
        );
        let most = if subscript == "i-2*k" { 2 * most } else { most };
        for format in ["sparse", "hash", "bytemap", "sparse_runs", "blocks", "runs", "band"] {
            let seen = visited(&text, &[vector(n, &entries, format), f.clone()], "i");
            assert!(seen <= most || ["runs", "band"].contains(&format), "{seen} instead of {most}: {format}\n{text}");
        }
    }
    // A condition that does not keep it inside.
    let text = "def f(C, F):\n    O = tensor(\"dense\", shape=(30,))\n    for i in range(30):\n        for k in range(5):\n            if i + k < 31:\n                O[i] += C[i+k] * F[k]\n    return O\n";
    let program = Program::parse(text).unwrap();
    for format in ["dense", "sparse", "hash", "bytemap", "sparse_runs", "blocks", "runs", "band"] {
        for (size, fits) in [(29, false), (30, false), (31, true), (40, true)] {
            let c = vector(size, &[(3, 7), (4, 1), (28, 3)], format);
            let got = run_stage(&program, &[c.clone(), f.clone()], Stage::Optimised, Engine::Interpreter(1 << 20));
            assert_eq!(got.is_ok(), fits, "{format} {size}");
            if fits {
                check(text, &[c, f.clone()], Engine::Interpreter(1 << 20));
            }
        }
    }
}

/// The fill value is absorbed by an extremum that starts with it: pooling visits windows with
/// entries only.
#[test]
fn pooling_visits_stored_entries() {
    let n = 2_000;
    let entries = apart(n as u32);
    let most = windows_with_entries(n, 4, &entries);
    for (update, format) in
        [("max=", "sparse"), ("max=", "sparse_runs"), ("max=", "hash"), ("min=", "sparse"), ("|=", "blocks")]
    {
        for subscript in ["i + k", "2*i + k", "4*i + k"] {
            let text = format!(
                "def f(C):\n    O = tensor(\"dense\", shape=(400,))\n    for i in range(400):\n        for k in range(4):\n            O[i] {update} C[{subscript}]\n    return O\n"
            );
            let seen = visited(&text, &[vector(n, &entries, format)], "i");
            assert!(seen <= most, "{seen} instead of {most}: {format}\n{text}");
        }
    }
    // Another update in between.
    let text = "def f(C):\n    O = tensor(\"dense\", shape=(400,))\n    for i in range(400):\n        O[i] += -1\n    for i in range(400):\n        for k in range(4):\n            O[i] max= C[i + k]\n    return O\n";
    check(text, &[vector(n, &entries, "sparse")], Engine::Interpreter(1 << 20));
}

/// Gaps whose iterations are identical are one step, even if a dense operand takes part where
/// entries are.
#[test]
fn gaps_are_one_step() {
    let (n, m) = (40u64, 3_000u64);
    let mut values = vec![Value::I64(0); (n * m) as usize];
    for k in 0..60u64 {
        let at = (k * 1999) % (n * m);
        values[at as usize] = Value::I64(k as i64 % 7 - 3);
        values[((at + 1) % (n * m)) as usize] = Value::I64(2);
    }
    let stored = values.iter().filter(|v| **v != Value::I64(0)).count() as u64;
    let a = Input { shape: vec![n, m], values, dtype: DType::I64 };
    let x = vector(m, &(0..m as u32).map(|j| (j, i64::from(j % 5) - 2)).collect::<Vec<_>>(), "dense");
    for body in [
        "y[i] max= A[i,j] * x[j]",
        "y[i] min= A[i,j] * x[j]",
        "y[i] += A[i,j] * x[j] + 2",
        "y[i] += select(A[i,j] > 1, x[j], 3)",
        "y[i] |= (A[i,j] * x[j] >= 0)",
        "y[i] max= x[j] if A[i,j] > 1 else -1",
    ] {
        let fill = if body.contains("= A") { -700 } else { 0 };
        let text = format!(
            "def f(A, x):\n    y = tensor(\"dense\", fill={fill})\n    for i, j in _:\n        {body}\n    return y\n"
        );
        for format in
            ["csr", "dcsr", "dense, sparse_runs", "dense, blocks", "dense, hash", "dense, bytemap", "sparse, band"]
        {
            let seen = visited(&text, &[a.tensor(format).unwrap(), x.clone()], "j");
            // A band stores the elements between its entries.
            let most = if format == "sparse, band" { n * m / 2 } else { 2 * stored + n + 2 * stored };
            assert!(seen <= most, "{seen} instead of {most}: {format}\n{text}");
        }
    }
    // Into a result of runs.
    for result in ["dense, runs", "dense, sparse_runs"] {
        let text = format!(
            "def f(A, x):\n    y = tensor(\"{result}\")\n    for i, j in _:\n        y[i,j] = A[i,j] * x[j] + 2\n    return y\n"
        );
        for format in ["csr", "dense, sparse_runs", "dense, blocks"] {
            let seen = visited(&text, &[a.tensor(format).unwrap(), x.clone()], "j");
            assert!(seen <= 4 * stored + n, "{seen}: {format} {result}");
        }
    }
}

/// An empty filter has no windows.
#[test]
fn empty_filters() {
    let b = vector(6, &[(1, 2), (5, 3)], "dense");
    for body in [
        "O[i] += C[i - k + 5] * F[k] + B[i]",
        "O[i] += C[i - k + 5] * F[k]",
        "O[i] += C[i + k] * F[k] + B[i]",
        "if k != 1:\n            O[i] += C[i - k + 5] * F[k] + B[i]",
        "if F[k] > 0:\n            O[i] += C[i + 2*k + 3] + B[i]",
    ] {
        let text =
            format!("def f(C, F, B):\n    O = tensor(\"dense\")\n    for i, k in _:\n        {body}\n    return O\n");
        for format in ["dense", "sparse", "hash", "bytemap", "runs", "sparse_runs", "blocks", "band"] {
            for entries in [&[][..], &[(0, 4), (5, 1), (10, 2)]] {
                let (c, f) = (vector(11, entries, format), vector(0, &[], "dense"));
                check(&text, &[c, f, b.clone()], Engine::Interpreter(1 << 20));
            }
        }
    }
}

/// Index notation does the same: normal forms and conditions leave nothing to scan.
#[test]
fn notation_preserves_windows() {
    let n = 20_000;
    let entries: Vec<(u32, i64)> = (0..20).map(|k| (k * 990 + k % 7, i64::from(k % 5) + 1)).collect();
    let f = vector(5, &[(0, 1), (1, 2), (2, -3), (3, 4), (4, 5)], "dense");
    let mut dense = Vec::new();
    for text in [
        "O[i] = A[i+k] * F[k]",
        "O[i] = A[1*i+k] * F[k]",
        "O[i] = A[i+k+0] * F[k]",
        "O[i] = A[1*(k+i)] * F[k]",
        "O[i] = A[i+2*k-k] * F[k]",
        "O[1*i] = A[i+0] * A[1*i]",
        "O[i] = sum[k](select(k != 1, A[i+k] * F[k], 0))",
        "O[i] = sum[k](select(F[k] > 0, A[i+k] * F[k], 0))",
        "O[i] = sum[k](select(A[i+k] > 1, F[k], 0))",
        "O[i] = any[k](A[i+k] > 1 and F[k] > 0)",
        "O[i] = any[k](F[k] > 0 and A[i+k] > 1)",
    ] {
        let notation = tamis_ir::Notation::parse(text).unwrap_or_else(|d| panic!("{text}\n{d}"));
        for format in ["sparse", "hash", "bytemap", "sparse_runs", "blocks"] {
            let a = vector(n, &entries, format);
            let refs: Vec<&Tensor> = notation.params().iter().map(|name| if *name == "A" { &a } else { &f }).collect();
            let plan = tamis::notation::plan(&notation, &refs, &tamis::notation::Pins::default())
                .unwrap_or_else(|d| panic!("{text}\n{d}"));
            let made = tamis::notation::converted_operands(&plan, &notation, &refs).unwrap();
            let params: Vec<Tensor> = made.into_iter().map(|tensor| tensor.into_owned()).collect();
            let executed = tamis_tests::lowered::count(&plan.program, &params, 10_000_000).unwrap();
            if executed >= n {
                dense.push(format!("{executed} {format}: {text}\n{}", plan.program));
            }
            check(&plan.program.to_string(), &params, Engine::Interpreter(1 << 24));
        }
    }
    assert!(dense.is_empty(), "{}", dense.join("\n"));
}

/// Random conditions and arithmetic around an affine read of a long vector with a few entries: the
/// visits are bounded by the number of windows with an entry, as counted directly.
#[test]
fn visits_are_bounded_by_nnz() {
    let cases = std::env::var("TAMIS_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(250);
    for seed in 0..cases {
        let mut random = Random(seed ^ 0x0077_1d00);
        let (width, a, b) = (1 + random.below(5) as i64, *random.pick(&[1, 1, 2, 3]), *random.pick(&[1, 1, 2, -1]));
        let rows = 400 + random.below(400) as i64;
        let low = if b < 0 { b * (width - 1) } else { 0 };
        let constant = random.below(4) as i64 - low;
        // Some reads are out of bounds, unless a condition keeps them inside.
        let leaves = random.one_in(4);
        let reach = a * (rows - 1) + constant + if b > 0 { b * (width - 1) } else { 0 };
        let size = if leaves { reach - 3 } else { reach + 1 + random.below(3) as i64 };
        let constant = if leaves { constant - 2 } else { constant };
        let mut stored: Vec<i64> = (0..random.below(9)).map(|_| random.below(size as usize) as i64).collect();
        if random.one_in(2) {
            stored.extend(stored.clone().iter().map(|x| (x + 1).min(size - 1)));
        }
        stored.sort_unstable();
        stored.dedup();
        let entries: Vec<(u32, i64)> = stored.iter().map(|x| (*x as u32, 1 + x % 4)).collect();
        let sum = format!("{a}*i {} {}*k + {constant}", if b < 0 { "-" } else { "+" }, b.abs());
        let sum = match random.below(6) {
            0 => format!("1*({sum})"),
            1 => format!("{sum} + 0"),
            2 => format!("-(-({sum}))"),
            3 => format!("2*({sum}) - ({sum})"),
            _ => sum,
        };
        let bound = random.one_in(4);
        let read = if bound { "w".to_string() } else { sum.clone() };
        let mut body = String::new();
        let mut pad = "            ".to_string();
        let mut line = |pad: &str, text: String| body += &format!("{pad}{text}\n");
        if bound {
            line(&pad, format!("w = {sum}"));
        }
        if leaves {
            line(&pad, format!("if {read} >= 0 and {read} < C.shape[0]:"));
            pad += "    ";
        }
        let element = format!("C[{read}]");
        let conditions =
            ["k != 1", "F[k] > 1", "k <= i", "i % 2 == 0", "i != 7", "i + k > 3", &format!("{element} > 1")];
        let condition = |random: &mut Random| {
            let first = random.pick(&conditions).to_string();
            if random.one_in(3) {
                format!("({first} {} {})", random.pick(&["and", "or"]), random.pick(&conditions))
            } else {
                first
            }
        };
        let value = format!("{element} * F[k]");
        match random.below(6) {
            0 => line(&pad, format!("O[i] += {value}")),
            1 => line(&pad, format!("O[i] += {value} if {} else 0", condition(&mut random))),
            2 => line(&pad, format!("O[i] += select({}, {value}, 0)", condition(&mut random))),
            3 => line(&pad, format!("O[i] |= ({element} > 1 and {})", condition(&mut random))),
            _ => {
                line(&pad, format!("if {}:", condition(&mut random)));
                line(&pad, format!("    O[i] += {value}"));
            }
        }
        let result = *random.pick(&["dense", "sparse", "bytemap"]);
        let first = random.one_in(4);
        let (outer, inner) =
            if first { ("k in range(WIDTH)", "i in range(ROWS)") } else { ("i in range(ROWS)", "k in range(WIDTH)") };
        let text = format!("def f(C, F):\n    O = tensor(\"{result}\", shape=(ROWS,))\n    for {outer}:\n        for {inner}:\n{body}    return O\n")
            .replace("ROWS", &rows.to_string())
            .replace("WIDTH", &width.to_string());
        let format = *random.pick(&LISTS);
        let filter: Vec<(u32, i64)> = (0..width as u32).filter(|k| k % 3 != 1).map(|k| (k, 1 + i64::from(k))).collect();
        let filtered = *random.pick(&["dense", "sparse"]);
        let tensors = [vector(size as u64, &entries, format), vector(width as u64, &filter, filtered)];
        let at = |i: i64, k: i64| a * i + b * k + constant;
        let pairs = (0..rows).map(|i| (0..width).filter(|k| stored.contains(&at(i, *k))).count() as u64);
        let pairs: Vec<u64> = pairs.collect();
        let (windows, met) = (pairs.iter().filter(|n| **n > 0).count() as u64, pairs.iter().sum::<u64>());
        // Windows across an edge are visited one by one.
        let edges = if leaves { 4 * (width * b.abs()) as u64 + 8 } else { 0 };
        check(&text, &tensors, Engine::Interpreter(1 << 24));
        let counted = count(&Program::parse(&text).unwrap(), &tensors, Engine::Interpreter(1 << 24)).unwrap();
        let (i, k) = (counted.visits("i"), counted.visits("k"));
        let most = if first { met + edges * width as u64 } else { windows + edges };
        assert!(i <= most, "seed {seed}, {format}: i is visited {i} times, not {most}\n{entries:?}\n{text}");
        // The entries of a sparse filter may drive the loop, with lookups in the vector.
        let most = match (first, filtered) {
            (true, _) => width as u64,
            (_, "sparse") => i * width as u64,
            _ => 2 * met + (edges + 4) * width as u64,
        };
        assert!(k <= most, "seed {seed}, {format}: k is visited {k} times, not {most}\n{entries:?}\n{text}");
    }
}

/// In a merge of lists at two offsets, elements that one of them lacks are not read out of bounds.
#[test]
fn merged_offsets_stay_in_bounds() {
    let b = vector(5, &[(0, 1), (4, 2)], "dense");
    for (subscript, other) in
        [("5 - i", "6 - i"), ("i + 1", "i + 2"), ("i", "i - 1"), ("i", "i + 3"), ("5 - i", "4 - i")]
    {
        for result in ["runs", "dense", "sparse"] {
            let text = format!(
                "def f(C, B):\n    O = tensor(\"{result}\", shape=(5,))\n    for i in _:\n        O[i] += B[i] * (C[{subscript}] + coalesce(C[~({other})], 0))\n    return O\n"
            );
            let text = if result == "runs" { text.replace("B[i] * ", "") } else { text };
            for format in ["sparse", "bytemap", "hash", "blocks", "runs", "band"] {
                for entries in [&[(5, 4)][..], &[(0, 1), (5, 4)], &[(0, 3)], &[(1, 2), (2, 2), (4, 1)]] {
                    let size = if subscript == "i" { 5 } else { 6 };
                    let entries: Vec<(u32, i64)> = entries.iter().copied().filter(|(x, _)| *x < size).collect();
                    check(&text, &[vector(u64::from(size), &entries, format), b.clone()], Engine::Interpreter(1 << 20));
                }
            }
        }
    }
}

/// A window over an absent fiber is empty, even if fibers are groups of one list.
#[test]
fn windows_over_absent_groups_are_empty() {
    let text = "\
def f(T):
    O = tensor(\"dense\", shape=(2,4,))
    for j in range(4):
        for l in range(3):
            for k in range(4):
                for i in range(2):
                    O[i,j] += coalesce(T[3*i + k, ~(2*l)], 0) + 1
    return O
";
    let mut values = vec![Value::I64(0); 45];
    (values[13], values[17]) = (Value::I64(4), Value::I64(2));
    let input = Input { shape: vec![9, 5], values, dtype: DType::I64 };
    for format in ["(i,j) -> (j,i): sparse(nonunique), singleton", "coo", "csc", "dcsc", "dense"] {
        check(text, &[input.tensor(format).unwrap()], Engine::Interpreter(1 << 20));
    }
}
