//! Affine subscripts: every order of the loops of convolutions in every format, and how many windows are visited.

use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Format, Program, Value};
use tamis_tensor::{Combine, Coordinates, Tensor};
use tamis_tests::generate::Input;
use tamis_tests::lowered::{Engine, Stage, compile, run_stage, visits};
use tamis_tests::random::Random;

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

fn expected(program: &Program, tensors: &[Tensor]) -> Vec<Vec<Value>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let options = Options { strict: false, budget: Some(5_000_000) };
    let outcome = interp::run(program, &operands, options).unwrap_or_else(|d| panic!("{}", d.render(false)));
    outcome.results.iter().map(|grid| grid.to_values().unwrap()).collect()
}

/// Compiles, runs and compares.
fn check(text: &str, tensors: &[Tensor], engine: Engine) {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let wanted = expected(&program, tensors);
    let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
    let made = run_stage(&program, tensors, Stage::Optimised, engine);
    let (lowered, got) = made.unwrap_or_else(|problem| panic!("{formats:?}\n{text}\n{problem:?}"));
    assert_eq!(wanted, got, "{formats:?}\n{text}\n{}", lowered.kernel);
}

fn visited(text: &str, tensors: &[Tensor], index: &str) -> u64 {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    check(text, tensors, Engine::Interpreter(50_000_000));
    visits(&program, tensors, index).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
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

/// All orders of some words.
fn orders(words: &[&'static str]) -> Vec<Vec<&'static str>> {
    let Some((last, rest)) = words.split_last() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(rest) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, *last);
            all.push(longer);
        }
    }
    all
}

fn random(seed: u64, shape: &[u64], one_in: usize) -> Input {
    let mut random = Random(seed);
    let count: u64 = shape.iter().product();
    let value = |random: &mut Random| if random.one_in(one_in) { 1 + random.below(5) as i64 } else { 0 };
    let values = (0..count).map(|_| Value::I64(value(&mut random))).collect();
    Input { shape: shape.to_vec(), values, dtype: DType::I64 }
}

/// Every order of the loops of a convolution, with inputs in every format and a result in each.
fn all_orders(
    loops: &[&'static str],
    body: &str,
    input: &[u64],
    filter: &[u64],
    formats: &[&str],
    results: &[&str],
    most: usize,
) {
    let all = orders(loops);
    let step = all.len().div_ceil(most);
    for (k, order) in all.iter().enumerate() {
        for (f, format) in formats.iter().enumerate() {
            // Of many orders, each format gets others.
            if (k + f) % step != 0 {
                continue;
            }
            let result = results[(k + f) % results.len()];
            let text = format!(
                "def f(I, F):\n    O = tensor(\"{result}\")\n    for {} in _:\n        {body}\n    return O\n",
                order.join(", ")
            );
            let i = random(7 + k as u64, input, 3).tensor(format).unwrap();
            let weights = if k % 3 == 0 { "dense" } else { ["sparse", "csr", "csf"][filter.len() - 1] };
            let weights = random(3, filter, 2).tensor(weights).unwrap();
            check(&text, &[i, weights], Engine::Interpreter(50_000_000));
        }
    }
}

#[test]
fn every_order_of_one_dimension() {
    let formats = [
        "dense",
        "sparse",
        "hash",
        "bytemap",
        "runs",
        "sparse_runs",
        "blocks",
        "band",
        "coo",
        "(i) -> (i/4, i%4): sparse, dense",
    ];
    for body in [
        "O[i] += I[i+k] * F[k]",
        "O[i] += I[2*i+k+1] * F[k]",
        "O[i] += I[i+2*k] * F[k]",
        "O[i] += I[i-k+3] * F[k]",
        "O[i] = max(O[i], I[i+k] * F[k])",
    ] {
        all_orders(&["i", "k"], body, &[23], &[4], &formats, &["dense", "sparse", "sparse_runs"], 2);
    }
}

#[test]
fn every_order_of_two_dimensions() {
    let formats = [
        "csr",
        "csc",
        "dcsr",
        "dcsc",
        "coo",
        "dense",
        "dense, blocks",
        "blocks, sparse",
        "dense, sparse_runs",
        "sparse, sparse_runs",
        "sparse_runs, sparse",
        "runs, blocks",
        "sparse, band",
        "bsr(2,2)",
    ];
    for body in ["O[i,j] += I[i+k,j+l] * F[k,l]", "O[i,j] += I[2*i+k,3*j+l] * F[k,l]"] {
        all_orders(&["i", "j", "k", "l"], body, &[9, 11], &[3, 2], &formats, &["dense", "csr", "coo"], 24);
    }
}

#[test]
fn every_order_of_three_dimensions() {
    // DDDC, DCCC and DCCD of four dimensions are these below one batch; three are what every order can be tried with.
    let formats = [
        "csf",
        "coo",
        "dense, dense, sparse",
        "dense, sparse, sparse",
        "dense, sparse, dense",
        "sparse, dense, blocks",
        "dense, sparse, sparse_runs",
        "(i,j,k) -> (k,j,i): sparse, sparse, sparse",
    ];
    let body = "O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]";
    all_orders(&["i", "j", "m", "k", "l", "n"], body, &[5, 6, 5], &[2, 3, 2], &formats, &["dense", "csf"], 90);
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

/// While windows over rows are open, those over columns go on from a cursor for each row.
#[test]
fn open_windows_go_over_several_rows_at_once() {
    let text = "\
def f(I, F):
    O = tensor(\"csr\")
    for i, j, k, l in _:
        O[i,j] += I[i+k,j+l] * F[k,l]
    return O
";
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let mut image = random(1, &[30, 500], 1);
    let mut wanted = std::collections::BTreeSet::new();
    for (at, value) in image.values.iter_mut().enumerate() {
        let (y, x) = (at / 500, at % 500);
        if at % 617 == 0 {
            let rows = y.saturating_sub(2)..=y.min(27);
            wanted.extend(rows.flat_map(|i| (x.saturating_sub(2)..=x.min(497)).map(move |j| (i, j))));
        } else {
            *value = Value::I64(0);
        }
    }
    for format in ["csr", "dcsr", "dense, hash"] {
        let i = image.tensor(format).unwrap();
        assert_eq!(visited(text, &[i, f.clone()], "j"), wanted.len() as u64, "{format}");
    }
}

/// What still has to be searched for is told.
#[test]
fn searches_of_windows_are_told() {
    let text = "\
def f(I, F):
    O = tensor(\"dense\")
    for i, j, k, l in _:
        O[i,j] += I[i+k,j+l] * F[k,l]
    return O
";
    let i = random(1, &[6, 7], 3).tensor("coo").unwrap();
    let f = random(2, &[3, 3], 2).tensor("dense").unwrap();
    let program = Program::parse(text).unwrap();
    let (lowered, _) = compile(&program, &[i.clone(), f.clone()], Stage::Lowered).unwrap();
    let told: Vec<String> = lowered.warnings.iter().map(|d| d.to_string()).collect();
    assert!(told.iter().any(|d| d.contains("still open when `j` starts")), "{told:?}");
    let better = Program::parse(&text.replace("i, j, k, l", "i, k, j, l")).unwrap();
    let (lowered, _) = compile(&better, &[i, f], Stage::Lowered).unwrap();
    assert!(lowered.warnings.is_empty(), "{:?}", lowered.warnings);
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
