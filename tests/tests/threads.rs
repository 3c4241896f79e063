//! Tests of parallel execution: programs whose outermost loop is partitioned give the results of
//! one thread, and of the interpreter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tamis::Program;
use tamis::compile::{CallReport, CompileOptions, Signature};
use tamis_ir::{Code, Format, FormatSpec, Value};
use tamis_tensor::gallery::random_nnz;
use tamis_tensor::threads::with_threads_always;
use tamis_tensor::{Combine, Coordinates, Tensor};
use tamis_tests::compare::{close, oracle};
use tamis_tests::random::Random;

fn example(name: &str) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("examples").join(name)).unwrap();
    parse(&text)
}

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

/// Small integers, so that sums are exact in any order.
fn tensor(shape: &[u64], entries: u64, format: &str, seed: u64) -> Tensor {
    let format = FormatSpec::parse(format).unwrap().with_rank(shape.len()).unwrap();
    if entries == u64::MAX {
        let values: Vec<f64> = (0..shape.iter().product::<u64>()).map(|k| ((k * 7 + seed) % 11) as f64 - 5.0).collect();
        return Tensor::from_dense(shape, values.into(), &format, Value::F64(0.0)).unwrap();
    }
    let found = random_nnz(shape, entries, seed).unwrap();
    let values: Vec<f64> = (0..found.len() as u64).map(|k| ((k * 5 + seed) % 9) as f64 + 1.0).collect();
    let entries = Coordinates { values: values.into(), ..found };
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
}

const FULL: u64 = u64::MAX;

fn call(program: &Program, tensors: &[&Tensor], threads: usize) -> CallReport {
    let executable = tamis::compile(program, &Signature::of(tensors), &CompileOptions::default());
    let executable = executable.unwrap_or_else(|d| panic!("{}", d.render(false)));
    let timed = with_threads_always(threads, || executable.call_timed(tensors));
    timed.unwrap_or_else(|d| panic!("{}", d.render(false)))
}

/// True if all arrays are identical.
fn identical(a: &Tensor, b: &Tensor) -> bool {
    let levels = |t: &Tensor| (0..t.levels().len()).map(|k| t.level_arrays(k).clone()).collect::<Vec<_>>();
    a.shape() == b.shape() && a.format() == b.format() && levels(a) == levels(b) && a.values() == b.values()
}

/// Runs a program on several numbers of threads; every array of every result is identical.
fn check(program: &Program, tensors: &[&Tensor], name: &str) {
    let one = call(program, tensors, 1);
    assert_eq!(one.chunks, 1);
    for threads in [2, 3, 8] {
        let several = call(program, tensors, threads);
        assert!(several.chunks > 1, "{name} was not cut");
        for ((_, wanted), (_, got)) in one.results.iter().zip(&several.results) {
            assert!(identical(wanted, got), "{name} on {threads} threads:\n{wanted:?}\n{got:?}");
        }
    }
}

/// A matrix in formats of all kinds.
const MATRICES: [&str; 9] =
    ["csr", "dcsr", "coo", "dense", "dense, runs", "csr; pattern", "bsr(2,2)", "sparse, dense", "dense, band"];

#[test]
fn rows_of_matrices() {
    for format in MATRICES {
        let a = tensor(&[37, 23], 150, if format.contains("pattern") { "csr" } else { format }, 3);
        let a = match format.contains("pattern") {
            true => a.convert(&FormatSpec::parse(format).unwrap().with_rank(2).unwrap()).unwrap_or(a),
            false => a,
        };
        let (x, d) = (tensor(&[23], FULL, "dense", 1), tensor(&[23, 19], FULL, "dense", 2));
        check(&example("spmv.py"), &[&a, &x], &format!("spmv {format}"));
        check(&example("spmm.py"), &[&a, &d], &format!("spmm {format}"));
    }
}

#[test]
fn sparse_results_are_concatenated() {
    for (result, format) in [
        ("csr", "csr"),
        ("dcsr", "csr"),
        ("coo", "csr"),
        ("csr", "dcsr"),
        ("dcsr", "coo"),
        ("sparse, dense", "csr"),
        ("dense, sparse_runs", "csr"),
        ("csr; pattern", "csr"),
        ("sparse[u16,u16], sparse[u16,u8]", "csr"),
    ] {
        let dtype = if result.contains("pattern") { " != 0" } else { "" };
        let text = format!(
            "def add(A, B):\n    C = tensor('{result}')\n    for i, j in _:\n        C[i,j] = (A[i,j] + B[i,j]){dtype}\n    return C\n"
        );
        let (a, b) = (tensor(&[41, 29], 160, format, 5), tensor(&[41, 29], 130, "csr", 6));
        check(&parse(&text), &[&a, &b], &format!("{format} into {result}"));
    }
}

#[test]
fn products_with_workspaces() {
    let (a, b) = (tensor(&[40, 30], 150, "csr", 5), tensor(&[30, 50], 200, "csr", 6));
    check(&example("gustavson.py"), &[&a, &b], "gustavson");
    for format in ["csr", "dcsr", "dense"] {
        let text = format!(
            "def product(A, B):\n    C = tensor('{format}')\n    for i, k, j in _:\n        C[i,j] += A[i,k] * B[k,j]\n    return C\n"
        );
        check(&parse(&text), &[&a, &b], format);
    }
}

#[test]
fn three_dimensions() {
    for format in ["csf", "coo", "dense, sparse, sparse"] {
        let a = tensor(&[21, 8, 9], 200, format, 5);
        let (b, c) = (tensor(&[8, 6], FULL, "dense", 1), tensor(&[9, 6], FULL, "dense", 2));
        check(&example("mttkrp.py"), &[&a, &b, &c], &format!("mttkrp {format}"));
        let x = tensor(&[9], FULL, "dense", 1);
        check(&example("ttv.py"), &[&a, &x], &format!("ttv {format}"));
    }
}

#[test]
fn sums_are_combined() {
    let (a, x) = (tensor(&[40, 30], 300, "csc", 5), tensor(&[30], FULL, "dense", 1));
    check(&example("spmv_columns.py"), &[&a, &x], "columns");
    for (op, start) in [("+=", "0.0"), ("max=", "-inf"), ("min=", "inf"), ("*=", "1.0"), ("-=", "0.0")] {
        let text = format!(
            "def f(A):\n    s = scalar({start})\n    for i, j in _:\n        s {op} A[i,j] / 8 + 1\n    return s\n"
        );
        let a = tensor(&[12, 3], 9, "csr", 5);
        check(&parse(&text), &[&a], op);
    }
}

/// Operands with unordered rows, or with hashed rows.
#[test]
fn unordered_rows() {
    let listed = tensor(&[37, 23], 150, "dcsr", 3);
    let tensors: Vec<Tensor> = ["hash, dense", "hash, hash", "hash, sparse", "bytemap, sparse", "sparse_runs, sparse"]
        .iter()
        .map(|format| listed.convert(&FormatSpec::parse(format).unwrap().with_rank(2).unwrap()).unwrap())
        .collect();
    let x = tensor(&[23], FULL, "dense", 1);
    for a in &tensors {
        for program in [
            example("spmv.py"),
            parse("def f(A, x):\n    s = scalar(0.0)\n    for i, j in _:\n        s += A[i,j] * x[j]\n    return s\n"),
        ] {
            let one = call(&program, &[a, &x], 1);
            for threads in [2, 3, 8] {
                let several = call(&program, &[a, &x], threads);
                let (wanted, got) = (&one.results[0], &several.results[0]);
                assert!(identical(wanted, got), "{} on {threads} threads:\n{wanted:?}\n{got:?}", a.format());
            }
        }
    }
    // An unsorted list, whose entries are all scanned.
    let format = FormatSpec::parse("sparse(nonordered)").unwrap().with_rank(1).unwrap();
    let list = [("pos", vec![0u32, 5].into()), ("crd", vec![5u32, 0, 9, 3, 1].into())];
    let values = Some(vec![1.0, 2.0, 3.0, 4.0, 5.0].into());
    let levels = vec![tamis::tensor::LevelArrays::new(list)];
    let v = Tensor::from_parts(&[10], &format, levels, values, Value::F64(0.0)).unwrap();
    let x = tensor(&[10], FULL, "dense", 1);
    for text in [
        "def f(v, x):\n    s = scalar(0.0)\n    for i in _:\n        s += v[i] * x[i]\n    return s\n",
        "def f(v, x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = v[i] * x[i]\n    return y\n",
    ] {
        let program = parse(text);
        let one = call(&program, &[&v, &x], 1);
        for threads in [2, 3, 8] {
            let several = call(&program, &[&v, &x], threads);
            let (wanted, got) = (&one.results[0], &several.results[0]);
            assert!(identical(wanted, got), "{text} on {threads} threads:\n{wanted:?}\n{got:?}");
        }
    }
}

/// Each partition scatters into a private sparse result.
#[test]
fn sparse_results_are_combined() {
    let (a, b) = (tensor(&[40, 30], 150, "csc", 5), tensor(&[30, 50], 200, "csr", 6));
    check(&example("spgemm_outer.py"), &[&a, &b], "outer");
    for format in ["csr", "dcsr", "coo", "csc", "hash, hash", "dense, hash"] {
        for (op, fill) in [("+=", ""), ("max=", "; element(-inf)")] {
            let text = format!(
                "def outer(A, B):\n    C = tensor('{format}{fill}')\n    for k, i, j in _:\n        C[i,j] {op} A[i,k] * B[k,j]\n    return C\n"
            );
            let program = parse(&text);
            let one = call(&program, &[&a, &b], 1);
            for threads in [2, 5] {
                let several = call(&program, &[&a, &b], threads);
                assert!(several.chunks > 1, "{format} {op} was not cut");
                let (wanted, got) = (&one.results[0], &several.results[0]);
                assert!(wanted.format() == got.format() && wanted.fill().same_number(got.fill()));
                assert!(wanted.same_values(got), "{format} {op} on {threads} threads");
            }
        }
    }
}

/// Combined results have the declared format, whatever their fill value.
#[test]
fn combined_results_have_the_declared_format() {
    let a = tensor(&[30, 20], 200, "dcsr", 5);
    for (format, fill, op) in [("runs, band", "inf", "min"), ("blocks, dense", "-inf", "max"), ("csr", "0", "+")] {
        let text = format!(
            "def f(A):\n    C = tensor('{format}', fill={fill})\n    for i, j in _:\n        C[j,i] {op}= A[i,j]\n    return C\n"
        );
        check(&parse(&text), &[&a], &text);
    }
}

/// Programs that cannot be partitioned run on one thread, and report the reason.
#[test]
fn programs_that_cannot_be_partitioned() {
    let a = tensor(&[30, 30], 100, "csr", 5);
    for (text, why) in [
        (
            "def f(A):\n    y = tensor('dense')\n    for i in _:\n        y[i] = A[i,0]\n    for i in _:\n        y[i] += A[i,1]\n    return y\n",
            "several sequential loops",
        ),
        ("def f(A):\n    s = scalar(3.0)\n    for i, j in _:\n        s += A[i,j]\n    return s\n", "starts at 3"),
        (
            "def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        s = A[i,j]\n    return s\n",
            "keeps the last value of `s`",
        ),
        ("def f(A):\n    B = tensor('csr')\n    for i, j in _:\n        B[j,i] = A[i,j]\n    return B\n", "outermost"),
    ] {
        let program = parse(text);
        let executable = tamis::compile(&program, &Signature::of(&[&a]), &CompileOptions::default()).unwrap();
        let several = with_threads_always(4, || executable.call_timed(&[&a])).unwrap();
        assert_eq!(several.chunks, 1);
        let reported = executable.on_one_thread().unwrap_or_else(|| panic!("nothing is reported for\n{text}"));
        assert!(
            reported.0.iter().all(|d| d.code == Code::E1206) && reported.render(false).contains(why),
            "{}",
            reported.render(false)
        );
    }
}

/// Empty tensors, one row, fewer rows than threads, all entries in one row.
#[test]
fn edges() {
    let program = example("gustavson.py");
    let spmv = example("spmv.py");
    for rows in [0, 1, 2, 3] {
        let a = tensor(&[rows, 5], rows * 2, "csr", 1);
        let b = tensor(&[5, 5], 7, "csr", 2);
        let x = tensor(&[5], FULL, "dense", 1);
        for threads in [1, 2, 16] {
            for (program, tensors) in [(&program, [&a, &b]), (&spmv, [&a, &x])] {
                let (one, several) = (call(program, &tensors, 1), call(program, &tensors, threads));
                assert!(identical(&one.results[0], &several.results[0]), "{rows} rows, {threads} threads");
            }
        }
    }
}

/// An error in a partition is reported as on one thread.
#[test]
fn failures_are_reported() {
    let text =
        "def f(A):\n    B = tensor('dense, singleton')\n    for i, j in _:\n        B[i,j] = A[i,j]\n    return B\n";
    let a = tensor(&[30, 30], 100, "csr", 5);
    let Ok(program) = Program::parse(text) else { return };
    let Ok(executable) = tamis::compile(&program, &Signature::of(&[&a]), &CompileOptions::default()) else { return };
    let one = executable.call(&[&a]).map(|_| ()).unwrap_err();
    let several = with_threads_always(4, || executable.call(&[&a])).map(|_| ()).unwrap_err();
    assert_eq!(one.render(false), several.render(false));
}

/// Results in every writable format, by rows and through workspaces, partitioned or not.
#[test]
fn results_in_all_formats() {
    let (a, b) = (tensor(&[21, 17], 90, "csr", 5), tensor(&[17, 19], 90, "csr", 6));
    let mut cut = 0;
    for format in [
        "dense",
        "csr",
        "csc",
        "dcsr",
        "coo",
        "dense, hash",
        "sparse, hash",
        "hash, hash",
        "hash, dense",
        "hash, sparse",
        "dense, bytemap",
        "bytemap, dense",
        "bytemap, sparse",
        "dense, runs",
        "runs, dense",
        "runs, runs",
        "sparse_runs, sparse",
        "dense, sparse_runs",
        "sparse, sparse_runs",
        "dense, blocks",
        "blocks, dense",
        "dense, band",
        "bsr(2,3)",
        "(i,j) -> (j-i, i): sparse, dense",
        "dense, sparse(nonordered)",
    ] {
        for statement in ["C[i,j] += A[i,k] * B[k,j]", "C[i,j] max= A[i,k] * B[k,j]"] {
            for loops in ["i, k, j", "k, i, j", "i, j, k", "j, k, i"] {
                let text = format!(
                    "def f(A, B):\n    C = tensor('{format}')\n    for {loops} in _:\n        {statement}\n    return C\n"
                );
                let program = parse(&text);
                let Ok(executable) = tamis::compile(&program, &Signature::of(&[&a, &b]), &CompileOptions::default())
                else {
                    continue;
                };
                let one = with_threads_always(1, || executable.call(&[&a, &b]));
                for threads in [2, 5] {
                    let several = with_threads_always(threads, || executable.call_timed(&[&a, &b]));
                    match (&one, several) {
                        (Ok(one), Ok(several)) => {
                            cut += usize::from(several.chunks > 1);
                            let (wanted, got) = (&one[0], &several.results[0]);
                            assert!(
                                wanted.format() == got.format() && wanted.same_values(got),
                                "{text}on {threads} threads"
                            );
                        }
                        (Err(wanted), Err(got)) => assert_eq!(wanted.0[0].code, got.0[0].code, "{text}"),
                        (one, several) => panic!("{text}one {one:?}\nseveral {several:?}"),
                    }
                }
            }
        }
    }
    assert!(cut > 100, "only {cut} were cut");
}

/// Random programs, partitioned.
#[test]
fn random_programs_are_partitioned() {
    let count: u64 = std::env::var("TAMIS_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let mut cut = 0;
    for seed in 0..count {
        let case = tamis_tests::generate::case(seed);
        let Ok(program) = Program::parse(&case.text) else { continue };
        let mut random = Random(seed);
        let tensors: Result<Vec<Tensor>, _> = case
            .inputs
            .iter()
            .map(|(_, input)| {
                let format: &&str = random.pick(tamis_tests::generate::formats(input.shape.len()));
                input.tensor(format)
            })
            .collect();
        let Ok(tensors) = tensors else { continue };
        let Some(wanted) = oracle(&program, &tensors) else { continue };
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let Ok(executable) = tamis::compile(&program, &Signature::of(&tensors), &CompileOptions::default()) else {
            continue;
        };
        let threads = 2 + (seed % 4) as usize;
        let run = || with_threads_always(threads, || executable.call_timed(&tensors));
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(run)) else { panic!("seed {seed} panics:\n{}", case.text) };
        let several = outcome.unwrap_or_else(|d| panic!("seed {seed}:\n{}\n{}", case.text, d.render(false)));
        if several.chunks == 1 {
            continue;
        }
        cut += 1;
        for (wanted, (_, got)) in wanted.iter().zip(&several.results) {
            let values = got.convert(&Format::dense(got.rank())).unwrap();
            let values: Vec<Value> =
                values.values().map(|v| (0..v.len()).map(|k| v.get(k)).collect()).unwrap_or_default();
            let same = wanted.len() == values.len() && wanted.iter().zip(&values).all(|(a, b)| close(*a, *b, 1e-4));
            assert!(
                same,
                "seed {seed}, {threads} threads:\n{}\n{:?}\nwanted {wanted:?}\ngot {values:?}",
                case.text, case.inputs
            );
        }
    }
    assert!(cut >= count / 30, "only {cut} of {count} programs were cut");
}
