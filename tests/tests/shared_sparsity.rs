//! Tests of shared sparsity: results with the pattern of an operand share its coordinate arrays,
//! and agree with the interpreter.

use tamis::Program;
use tamis::compile::{CompileOptions, Signature};
use tamis::tensor::LevelArrays;
use tamis_ir::{FormatSpec, Value};
use tamis_tensor::gallery::random_nnz;
use tamis_tensor::threads::with_threads_always;
use tamis_tensor::{Combine, Coordinates, IndexArray, Tensor, with_indices};
use tamis_tests::compare::{close, oracle};

fn tensor(shape: &[u64], entries: u64, format: &str, seed: u64) -> Tensor {
    let format = FormatSpec::parse(format).unwrap().with_rank(shape.len()).unwrap();
    let found = random_nnz(shape, entries, seed).unwrap();
    let values: Vec<f64> = (0..found.len() as u64).map(|k| ((k * 5 + seed) % 9) as f64 + 1.0).collect();
    let entries = Coordinates { values: values.into(), ..found };
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
}

fn dense(shape: &[u64], seed: u64) -> Tensor {
    let values: Vec<f64> = (0..shape.iter().product::<u64>()).map(|k| ((k * 7 + seed) % 11) as f64 - 5.0).collect();
    let format = FormatSpec::parse("dense").unwrap().with_rank(shape.len()).unwrap();
    Tensor::from_dense(shape, values.into(), &format, Value::F64(0.0)).unwrap()
}

fn place(array: &IndexArray) -> usize {
    with_indices!(array, x => x.as_ptr() as usize)
}

/// Runs a program on one thread and on several, compares it with the interpreter, and says how many
/// levels of the result are those of the first operand, in memory.
fn shared(text: &str, tensors: &[&Tensor], strict: bool) -> usize {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let options = CompileOptions { strict, ..CompileOptions::default() };
    let signature = Signature::of(tensors);
    let executable =
        tamis::compile(&program, &signature, &options).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let owned: Vec<Tensor> = tensors.iter().map(|t| (*t).clone()).collect();
    let wanted = oracle(&program, &owned);
    let mut levels = None;
    for threads in [1, 2, 3, 8] {
        let results = with_threads_always(threads, || executable.call(tensors)).unwrap_or_else(|d| panic!("{d}"));
        for (k, (name, result)) in results.iter().enumerate() {
            let Some(wanted) = wanted.as_ref().map(|wanted| &wanted[k]) else { continue };
            let got = result.to_dense().unwrap();
            assert_eq!(wanted.len(), got.len());
            for (k, wanted) in wanted.iter().enumerate() {
                let got = got.get(k);
                assert!(close(*wanted, got, 1e-9), "{name} on {threads} threads: {wanted} is {got}\n{text}");
            }
        }
        let (result, operand) = (&results[0], tensors[0]);
        let same = |k: &usize| {
            let (ours, theirs) = (result.level_arrays(*k), operand.level_arrays(*k));
            ours.arrays.len() == theirs.arrays.len()
                && ours.arrays.iter().zip(&theirs.arrays).all(|((_, a), (_, b))| place(a) == place(b))
        };
        let most = result.levels().len().min(operand.levels().len());
        let lists = (0..most).rev().find(|k| !result.level_arrays(*k).arrays.is_empty() && (0..=*k).all(|k| same(&k)));
        let here = lists.map_or(0, |k| k + 1);
        assert_eq!(*levels.get_or_insert(here), here, "on {threads} threads\n{text}");
    }
    let reported = tamis::explain(&program, &signature, &options).unwrap().productions();
    let reported = reported.iter().any(|line| line.contains("shares its coordinates"));
    assert_eq!(reported, levels.unwrap() > 0, "the report agrees with the kernel\n{text}");
    levels.unwrap()
}

fn one(target: &str, format: &str, params: &str, loops: &str, statement: &str) -> String {
    format!(
        "def f({params}):\n    {target} = tensor('{format}')\n    for {loops} in _:\n        {statement}\n    return {target}\n"
    )
}

/// Programs whose result has the pattern of their first operand, with the number of shared levels.
#[test]
fn results_share_the_pattern_of_an_operand() {
    for format in ["csr", "dcsr", "dense, sparse[u64,u64]", "sparse[u16,u16], sparse[u16,u8]", "csc"] {
        let a = tensor(&[37, 23], 150, format, 3);
        let (x, u, v) = (dense(&[23], 1), dense(&[37, 5], 2), dense(&[5, 23], 3));
        let loops = if format == "csc" { "j, i" } else { "i, j" };
        for (params, value, tensors) in [
            ("A", "2 * A[i,j]", vec![&a]),
            ("A", "abs(A[i,j]) + A[i,j] * A[i,j]", vec![&a]),
            ("A", "-A[i,j]", vec![&a]),
            ("A", "sqrt(A[i,j])", vec![&a]),
            ("A, x", "A[i,j] * x[j]", vec![&a, &x]),
            ("A, x", "A[i,j] * (x[j] + i)", vec![&a, &x]),
        ] {
            let text = one("R", format, params, loops, &format!("R[i,j] = {value}"));
            assert_eq!(shared(&text, &tensors, false), 2, "{format}\n{text}");
        }
        let sampled = one("R", format, "A, U, V", &format!("{loops}, k"), "R[i,j] += A[i,j] * U[i,k] * V[k,j]");
        assert_eq!(shared(&sampled, &[&a, &u, &v], false), 2, "{sampled}");
        let scalar = format!(
            "def f(A, U, V):\n    R = tensor('{format}')\n    for {loops} in _:\n        s = scalar(0.0)\n        for k in _:\n            s += U[i,k] * V[k,j]\n        R[i,j] = A[i,j] * s\n    return R\n"
        );
        assert_eq!(shared(&scalar, &[&a, &u, &v], false), 2, "{scalar}");
    }
    // A pattern tensor has coordinates, too.
    let a = tensor(&[37, 23], 150, "csr", 3);
    let places = a.convert(&FormatSpec::parse("csr; pattern").unwrap().with_rank(2).unwrap()).unwrap();
    let text = one("R", "csr", "A, x", "i, j", "R[i,j] = A[i,j] * x[j]");
    assert_eq!(shared(&text, &[&places, &dense(&[23], 1)], false), 2);
}

#[test]
fn fibers_of_more_dimensions() {
    for (format, two, three) in [
        ("csf", "dcsr", "sparse, sparse, dense"),
        ("dense, sparse, sparse", "csr", "dense, sparse, dense"),
        ("sparse, sparse, dense", "dcsr", "sparse, sparse, dense"),
        ("sparse, dense, sparse", "sparse, dense", "sparse, dense, dense"),
    ] {
        let levels = if format == "sparse, dense, sparse" { 1 } else { 2 };
        let a = tensor(&[21, 8, 9], 200, format, 5);
        let (x, m) = (dense(&[9], 1), dense(&[9, 6], 2));
        let text = one("R", two, "A, x", "i, j, k", "R[i,j] += A[i,j,k] * x[k]");
        assert_eq!(shared(&text, &[&a, &x], false), levels, "{format}\n{text}");
        // With and without a workspace.
        for loops in ["i, j, k, r", "i, j, r, k"] {
            let text = one("R", three, "A, M", loops, "R[i,j,r] += A[i,j,k] * M[k,r]");
            assert_eq!(shared(&text, &[&a, &m], false), levels, "{format}\n{text}");
        }
    }
}

/// Programs whose result has, or may have, another pattern: it has its own arrays.
#[test]
fn other_patterns_are_not_shared() {
    let a = tensor(&[23, 23], 120, "csr", 3);
    let b = tensor(&[23, 23], 90, "csr", 4);
    let x = dense(&[23], 1);
    let v = tensor(&[23], 9, "sparse", 2);
    for (format, params, value, tensors) in [
        ("csr", "A", "A[i,j] + 1", vec![&a]),
        ("csr", "A, B", "A[i,j] + B[i,j]", vec![&a, &b]),
        ("csr", "A, B", "A[i,j] * B[i,j]", vec![&a, &b]),
        ("csr", "A", "A[i,j] * A[j,i]", vec![&a]),
        ("csr", "A", "A[j,i] * 2", vec![&a]),
        ("csr", "A, v", "A[i,j] * v[j]", vec![&a, &v]),
        ("csr", "A", "select(i < j, A[i,j], 0)", vec![&a]),
        ("csr", "A", "coalesce(A[i,~(j+1)], 0)", vec![&a]),
        ("dcsr", "A", "2 * A[i,j]", vec![&a]),
        ("coo", "A", "2 * A[i,j]", vec![&a]),
        ("csc", "A", "2 * A[i,j]", vec![&a]),
        ("dense, sparse_runs", "A", "2 * A[i,j]", vec![&a]),
        ("dense, band", "A", "2 * A[i,j]", vec![&a]),
        ("dense, sparse[u64,u64]", "A", "2 * A[i,j]", vec![&a]),
        ("csr; pattern", "A", "A[i,j] > 4", vec![&a]),
        ("csr; element(1.0)", "A", "A[i,j] + 1", vec![&a]),
        ("dense", "A, x", "A[i,j] * x[j]", vec![&a, &x]),
    ] {
        let text = one("R", format, params, "i, j", &format!("R[i,j] = {value}"));
        let levels = shared(&text, &tensors, false);
        // An operand that is 1 where nothing is stored adds to every element.
        let expected = if format.contains("element") { 2 } else { 0 };
        assert_eq!(levels, expected, "{text}");
    }
    for text in [
        "def f(A):\n    R = tensor('csr')\n    for i, j in _:\n        if A[i,j] > 3:\n            R[i,j] = A[i,j]\n    return R\n",
        "def f(A):\n    R = tensor('csr')\n    for i in range(3, 17):\n        for j in _:\n            R[i,j] = A[i,j]\n    return R\n",
        "def f(A):\n    R = tensor('csr')\n    for i in _:\n        for j in range(2, 9):\n            R[i,j] = A[i,j]\n    return R\n",
        "def f(A):\n    R = tensor('csr', shape=(24, 23))\n    for i, j in _:\n        R[i+1,j] = A[i,j]\n    return R\n",
        "def f(A):\n    R = tensor('csr')\n    for i in _:\n        s = short_circuit_scalar(0)\n        for k in _:\n            s choose= A[i,k]\n        for j in _:\n            R[i,j] = A[i,j] * s\n    return R\n",
        "def f(A):\n    R = tensor('csr')\n    S = tensor('csr')\n    for i, j in _:\n        R[i,j] = A[i,j]\n    for i, j in _:\n        S[i,j] = R[i,j] + A[i,j]\n    return R, S\n",
        "def f(A):\n    R = tensor('csr')\n    for i, j in _:\n        R[i,j] = A[i,j]\n    for i, j in _:\n        R[i,j] += 1\n    return R\n",
    ] {
        assert_eq!(shared(text, &[&a], false), 0, "{text}");
    }
    // No factor annihilates an infinity.
    let text = one("R", "csr", "A, x", "i, j", "R[i,j] = A[i,j] * x[j]");
    assert_eq!((shared(&text, &[&a, &x], true), shared(&text, &[&a, &x], false)), (0, 2));
}

/// Several results of one nest, of which some share a pattern.
#[test]
fn several_results() {
    let (a, x) = (tensor(&[37, 23], 150, "csr", 3), dense(&[23], 1));
    let text = "def f(A, x):\n    R = tensor('csr')\n    y = tensor('dense')\n    for i, j in _:\n        R[i,j] = A[i,j] * x[j]\n        y[i] += A[i,j]\n    return R, y\n";
    assert_eq!(shared(text, &[&a, &x], false), 2);
    // Every row of the second result is written, whatever is stored.
    let text = "def f(A, x):\n    R = tensor('csr')\n    Z = tensor('dense')\n    for i, j in _:\n        R[i,j] = A[i,j] * x[j]\n        Z[i,j] = x[j]\n    return R, Z\n";
    assert_eq!(shared(text, &[&a, &x], false), 0);
}

/// Empty tensors, tensors without rows, and empty fibers.
#[test]
fn empty_operands() {
    let text = one("R", "csr", "A, x", "i, j", "R[i,j] = A[i,j] * x[j]");
    for shape in [[5, 4], [0, 4], [5, 0], [0, 0]] {
        assert_eq!(shared(&text, &[&tensor(&shape, 0, "csr", 1), &dense(&shape[1..], 1)], false), 2);
    }
    let format = FormatSpec::parse("csf").unwrap().with_rank(3).unwrap();
    let levels = vec![
        LevelArrays::new([("pos", vec![0u32, 2].into()), ("crd", vec![1u32, 3].into())]),
        LevelArrays::new([("pos", vec![0u32, 2, 3].into()), ("crd", vec![0u32, 2, 1].into())]),
        LevelArrays::new([("pos", vec![0u32, 0, 2, 2].into()), ("crd", vec![0u32, 3].into())]),
    ];
    let a = Tensor::from_parts(&[5, 3, 4], &format, levels, Some(vec![2.0, 3.0].into()), Value::F64(0.0)).unwrap();
    let text = one("R", "dcsr", "A, x", "i, j, k", "R[i,j] += A[i,j,k] * x[k]");
    assert_eq!(shared(&text, &[&a, &dense(&[4], 1)], false), 2);
    let text = one("R", "sparse, sparse, dense", "A, M", "i, j, k, r", "R[i,j,r] += A[i,j,k] * M[k,r]");
    assert_eq!(shared(&text, &[&a, &dense(&[4, 3], 1)], false), 2);
}
