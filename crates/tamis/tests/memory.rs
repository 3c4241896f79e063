//! Results that do not fit in memory are diagnostics, and the process lives. A process of its own,
//! since limits are global.

use std::sync::Mutex;
use tamis::diagnostic::Code;
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
    tamis::run(&program, &[("x", &sparse_vector(n))], &options).map(|results| results.into_tensor().unwrap())
}

#[test]
fn a_dense_result_of_huge_shape() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for check in [false, true] {
        let options = RunOptions { check, ..RunOptions::default() };
        // Ever larger: more than memory, more than 64 bits of bytes, more than 64 bits of cells
        // (some of them 0 after wrapping around).
        for (n, code) in [
            (10_000_000, Code::E0706),
            (1 << 31, Code::E0706),
            (1 << 32, Code::E0404),
            (3_037_000_500, Code::E0404),
            (1 << 62, Code::E0404),
        ] {
            let errors = outer(n, options).unwrap_err();
            let text = errors.render(false);
            assert_eq!(errors.0[0].code, code, "{n}: {text}");
            assert!(!errors.0[0].help.is_empty() && text.contains("tensor('dense')"), "{text}");
        }
        let result = outer(30, options).unwrap();
        assert_eq!(result.get(&[29, 15]), Some(Value::F64(6.0)), "what fits still runs");
    }
}

#[test]
fn a_limit_for_arrays() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(outer(200, RunOptions::default()).is_ok());
    let before = tamis::cache::limit_arrays(100_000);
    let refused = outer(200, RunOptions::default());
    let small = outer(100, RunOptions::default());
    tamis::cache::limit_arrays(before);
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

/// A sparse result grows as it is written; what exceeds the limit is a diagnostic, and is freed.
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
        assert_eq!(run(300, check).unwrap()[0].nnz(), 90_000);
        let before = tamis::cache::limit_arrays(200_000);
        let (refused, small) = (run(300, check), run(50, check));
        tamis::cache::limit_arrays(before);
        let errors = refused.unwrap_err();
        let text = errors.render(false);
        assert!(errors.0[0].code == Code::E0706 && text.contains("does not fit in memory"), "{text}");
        assert_eq!(small.unwrap()[0].nnz(), 2500);
        let result = run(300, check).unwrap().into_tensor().unwrap();
        // Unused capacity is not part of the result.
        assert_eq!(result.values().map(|values| values.len()), Some(90_000));
    }
}

// Numbers at the limits of integers

/// A tensor with these entries.
fn entries(shape: &[u64], at: &[&[u64]], values: &[f64], format: &str) -> Result<Tensor, Diagnostic> {
    let column = |d: usize| at.iter().map(|at| at[d]).collect::<Vec<u64>>().into();
    let entries = Coordinates {
        shape: shape.to_vec(),
        columns: (0..shape.len()).map(column).collect(),
        values: values.to_vec().into(),
    };
    Tensor::from_coordinates(&entries, &Format::parse(format, shape.len())?, 0.0.into(), Combine::Error)
}

/// A result, or why there is none.
fn computed(text: &str, tensors: &[(&str, &Tensor)], check: bool) -> Result<Tensor, Diagnostics> {
    let program = Program::parse(text).unwrap();
    tamis::run(&program, tensors, &RunOptions { check, ..RunOptions::default() })
        .map(|results| results.into_tensor().unwrap())
}

/// Sizes multiply through all levels, up to and beyond 2^64: a result is right, or does not fit in
/// memory.
#[test]
fn products_of_sizes_do_not_wrap_around() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = tamis::cache::limit_arrays(1 << 24);
    let levels = ["dense", "sparse", "bytemap", "hash", "sparse_runs", "blocks", "runs", "band"];
    // Products of 2^96, of 2^64 + 16, of less than 2^63, and of the largest sizes there are; no
    // dense level of them fits in memory, but for the small ones.
    let shapes: [[u64; 3]; 5] = [
        [3, 1 << 48, 1 << 48],
        [3, 272, ((1 << 60) + 1) / 17],
        [16, 1 << 48, 1 << 12],
        [1 << 48, 1 << 48, 3],
        [2, (1 << 63) - 1, (1 << 63) - 1],
    ];
    let (mut right, mut refused) = (0, 0);
    for (k, shape) in shapes.iter().cycle().take(8 * 8 * 2 * 2).enumerate() {
        let first = ["sparse", "dense"][k / 5 % 2];
        let (second, third) = (levels[k % 8], levels[(k / 8 + k % 5) % 8]);
        let format = format!("{first}, {second}, {third}");
        let at: [&[u64]; 3] = [&[0, 1, 2], &[1, 3, shape[2] - 1], &[1, shape[1] - 1, 0]];
        let b = entries(shape, &at, &[1.0, 2.0, 3.0], "csf").unwrap();
        let text = format!(
            "def scaled(B):\n    C = tensor('{format}')\n    for i, j, k in _:\n        C[i,j,k] = 2 * B[i,j,k]\n    return C\n"
        );
        match computed(&text, &[("B", &b)], false) {
            Ok(result) => {
                right += 1;
                let values = at.iter().map(|at| result.get(at)).collect::<Vec<_>>();
                assert_eq!(values, [2.0, 4.0, 6.0].map(|value| Some(Value::F64(value))), "{format} {shape:?}");
            }
            Err(errors) => {
                refused += 1;
                let text = errors.render(false);
                assert!(matches!(errors.0[0].code, Code::E0404 | Code::E0706), "{format} {shape:?}: {text}");
            }
        }
    }
    tamis::cache::limit_arrays(before);
    assert!(right > 20 && refused > 20, "{right} {refused}");
}

/// Conversions at the limits: an array with an element for each coordinate of a huge dimension is
/// refused in every format, before anything is allocated; all others are right.
#[test]
fn conversions_of_huge_dimensions() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = tamis::cache::limit_arrays(1 << 24);
    let levels = ["dense", "sparse", "bytemap", "hash", "sparse_runs", "blocks", "runs", "band", "interval"];
    let shapes: [[u64; 2]; 6] = [
        [1 << 32, 100],
        [100, 1 << 32],
        [1 << 32, 1 << 32],
        [272, ((1 << 60) + 1) / 17],
        [(1 << 63) - 1, 3],
        [(1 << 63) - 1, (1 << 63) - 1],
    ];
    let peak_memory = || {
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:").map(str::trim).map(String::from));
        line.and_then(|line| line.trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let start = peak_memory();
    let (mut right, mut refused) = (0, 0);
    for shape in shapes {
        for source in ["coo", "dcsr", "hash, hash", "sparse, sparse_runs"] {
            let at: [&[u64]; 2] = [&[0, 1], &[shape[0] - 1, 2]];
            let tensor = entries(&shape, &at, &[1.0, 2.0], source).unwrap();
            let named =
                ["csr", "csc", "dcsc", "coo", "bsr(2,2)", "dia", "(i,j) -> (j-i, i): sparse, band"].map(String::from);
            let pairs = levels.iter().flat_map(|a| levels.iter().map(move |b| format!("{a}, {b}")));
            for format in named.into_iter().chain(pairs) {
                let Ok(parsed) = Format::parse(&format, 2) else { continue };
                match tensor.convert(&parsed) {
                    Ok(result) => {
                        right += 1;
                        let values = at.map(|at| result.get(at));
                        assert_eq!(values, [Some(1.0.into()), Some(2.0.into())], "{format} {shape:?}");
                    }
                    Err(d) => {
                        refused += 1;
                        let runs = d.code == Code::E0707 && format.contains("interval");
                        assert!(runs || matches!(d.code, Code::E0404 | Code::E0706), "{format} {shape:?}: {d}");
                    }
                }
            }
        }
    }
    tamis::cache::limit_arrays(before);
    // Without a limit, too, where almost all of a large array would say that nothing is stored.
    let wide = entries(&[1 << 40, 3], &[&[0, 1], &[(1 << 40) - 1, 2]], &[1.0, 2.0], "coo").unwrap();
    for format in ["csr", "dense, hash", "dense, runs"] {
        assert_eq!(wide.convert(&Format::parse(format, 2).unwrap()).unwrap_err().code, Code::E0706, "{format}");
    }
    assert!(right > 100 && refused > 100, "{right} {refused}");
    assert!(peak_memory() - start < 1 << 20, "{} kB", peak_memory() - start);
}

/// A result that has the levels of an operand multiplies their number by its dense levels.
#[test]
fn products_with_entries_do_not_wrap_around() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let at: Vec<Vec<u64>> = (0..16).map(|i| vec![i]).collect();
    let at: Vec<&[u64]> = at.iter().map(Vec::as_slice).collect();
    let a = entries(&[100], &at, &[1.0; 16], "sparse").unwrap();
    let x = entries(&[1 << 60], &[&[3]], &[2.0], "sparse").unwrap();
    for format in ["sparse, dense", "dense, dense", "hash, dense", "sparse, bytemap"] {
        let text = format!(
            "def outer(A, x):\n    C = tensor('{format}')\n    for i, j in _:\n        C[i,j] = A[i] * x[j]\n    return C\n"
        );
        let errors = computed(&text, &[("A", &a), ("x", &x)], false).unwrap_err();
        assert!(matches!(errors.0[0].code, Code::E0404 | Code::E0706), "{format}: {}", errors.render(false));
    }
}

/// Subscripts and ranges beyond 2^63, written and as numbers that are known only when the kernel
/// runs, mean what the interpreter says.
#[test]
fn subscripts_do_not_wrap_around() {
    let numbers = [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, 1 << 62, -(1 << 62), 3];
    let bodies = [
        "for i in range(5):\n        y += x[i + s]",
        "for i in range(5):\n        y += x[s - i]",
        "for i in range(5):\n        y += x[2*i + s]",
        "for i in range(5):\n        y += coalesce(x[~(i + s)], 7)",
        "for i in range(2):\n        for k in range(2):\n            y += x[i + k + s]",
        "for i in range(s, 6):\n        y += x[i]",
        "for i in range(s, s):\n        y += x[i]",
        "for i in range(s, 6):\n        y += x[i + 1] * x[i]",
    ];
    let values: Vec<f64> = (1..11).map(f64::from).collect();
    for (k, body) in bodies.iter().enumerate() {
        for (n, number) in numbers.iter().enumerate() {
            // A loop of so many iterations is not entered.
            if body.contains("range(s, 6)") && *number < 0 {
                continue;
            }
            let formats = ["dense", "runs", "sparse", "sparse_runs", "blocks", "band", "hash"];
            for format in [formats[(k + n) % 7], formats[(k + n + 3) % 7], "runs", "dense"] {
                let written = format!("def f(x):\n    y = scalar(0.0)\n    s = {number}\n    {body}\n    return y\n");
                let read = format!("def f(x, t):\n    y = scalar(0.0)\n    s = t[0]\n    {body}\n    return y\n");
                let x = Tensor::from_dense(&[10], values.clone().into(), &Format::dense(1), 0.0.into()).unwrap();
                let x = x.convert(&Format::parse(format, 1).unwrap()).unwrap();
                let t = Tensor::from_dense(&[1], vec![*number].into(), &Format::dense(1), 0i64.into()).unwrap();
                for (text, tensors) in [(written, vec![("x", &x)]), (read, vec![("x", &x), ("t", &t)])] {
                    let rendered = |result: Result<Tensor, Diagnostics>| match result {
                        Ok(tensor) => Ok(tensor.get(&[])),
                        Err(errors) => Err(matches!(errors.0[0].code, Code::E0405 | Code::E1001)),
                    };
                    let program = Program::parse(&text).unwrap();
                    let oracle = RunOptions { interpret: true, ..RunOptions::default() };
                    let expected =
                        rendered(tamis::run(&program, &tensors, &oracle).map(|all| all.into_tensor().unwrap()));
                    let found = rendered(computed(&text, &tensors, false));
                    assert_eq!(found, expected, "{format}\n{text}");
                }
            }
        }
    }
}

/// Dimensions of 2^63 - 1 coordinates: nothing that is stored near the ends is lost, and nothing is
/// gone over one by one.
#[test]
fn the_largest_dimensions() {
    let n = (1u64 << 63) - 1;
    let (a, b): ([&[u64]; 4], [&[u64]; 4]) = ([&[0], &[4], &[n - 2], &[n - 1]], [&[0], &[5], &[n - 3], &[n - 1]]);
    let blocks = "(i) -> (i/4, i%4): sparse, dense";
    for format in ["sparse", "hash", "sparse_runs", "blocks", blocks] {
        for other in ["sparse", "sparse_runs", "blocks", blocks] {
            let x = entries(&[n], &a, &[1.0, 2.0, 3.0, 4.0], format).unwrap();
            let y = entries(&[n], &b, &[10.0, 20.0, 30.0, 40.0], other).unwrap();
            let inputs = [("x", &x), ("y", &y)];
            let scalar = |update: &str| {
                let text =
                    format!("def f(x, y):\n    s = scalar(0.0)\n    for i in _:\n        {update}\n    return s\n");
                computed(&text, &inputs, false).unwrap().get(&[]).unwrap()
            };
            assert_eq!(scalar("s += x[i] * y[i]"), Value::F64(170.0), "{format}, {other}");
            assert_eq!(scalar("s += x[i] + y[i]"), Value::F64(110.0), "{format}, {other}");
            assert_eq!(scalar("s max= x[i] + y[i]"), Value::F64(44.0), "{format}, {other}");
            assert_eq!(scalar("s min= x[i] - y[i]"), Value::F64(-36.0), "{format}, {other}");
            let text =
                "def f(x, y):\n    z = tensor('sparse')\n    for i in _:\n        z[i] = x[i] + y[i]\n    return z\n";
            let sum = computed(text, &inputs, false).unwrap();
            let found: Vec<Option<Value>> = [0, 4, 5, n - 3, n - 2, n - 1].iter().map(|i| sum.get(&[*i])).collect();
            assert_eq!(found, [11.0, 2.0, 20.0, 30.0, 3.0, 44.0].map(|v| Some(Value::F64(v))), "{format}, {other}");
        }
    }
}

/// Products of the largest matrices.
#[test]
fn the_largest_matrices() {
    let n = (1u64 << 63) - 1;
    let at: [&[u64]; 4] = [&[0, 0], &[2, n - 2], &[n - 2, 2], &[n - 1, n - 1]];
    let blocks = "(i,j) -> (i/4, j/4, i%4, j%4): sparse, sparse, dense, dense";
    for (first, second) in [("hash, hash", blocks), (blocks, blocks), ("dcsr", blocks), ("hash, hash", "dcsr")] {
        let a = entries(&[n, n], &at, &[1.0, 2.0, 3.0, 4.0], first).unwrap();
        let b = entries(&[n, n], &at, &[1.0, 2.0, 3.0, 4.0], second).unwrap();
        let text = "def f(A, B):\n    C = tensor('dcsr')\n    for i in _:\n        for k in _:\n            for j in _:\n                C[i,j] += A[i,k] * B[k,j]\n    return C\n";
        let product = computed(text, &[("A", &a), ("B", &b)], false).unwrap();
        let at: [&[u64]; 4] = [&[0, 0], &[2, 2], &[n - 2, n - 2], &[n - 1, n - 1]];
        let found: Vec<Option<Value>> = at.iter().map(|at| product.get(at)).collect();
        assert_eq!(found, [1.0, 6.0, 6.0, 16.0].map(|v| Some(Value::F64(v))), "{first} times {second}");
    }
}

/// Runs are counted in numbers that hold the product of their lengths.
#[test]
fn lengths_of_runs_multiply() {
    let n = 1u64 << 40;
    let at: [&[u64]; 1] = [&[3, 5]];
    for format in ["dcsr", "sparse_runs, sparse_runs", "sparse, runs", "csf"] {
        let a = entries(&[n, n], &at, &[2.0], format).unwrap();
        let text = "def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        s += A[i,j] + 1\n    return s\n";
        let sum = computed(text, &[("A", &a)], false).unwrap().get(&[]).unwrap();
        assert_eq!(sum, Value::F64(2f64.powi(80)), "{format}");
    }
}
