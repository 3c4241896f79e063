//! Tests of position spaces: iteration over stored entries by position, for every level at every
//! position of a format, on edge-case data; and loops that `pos` moves to positions.

use tamis::compile::{CompileOptions, Signature};
use tamis_compiler::lower::Policy;
use tamis_compiler::schedule::{Schedule, with_fill};
use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::program::ParamType;
use tamis_ir::{Code, DType, Format, Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::conform::{Expected, Judge, close, edges, formats};

const INDICES: [&str; 3] = ["i", "j", "k"];

fn numbered(format: &str) -> bool {
    !format.contains("bytemap")
}

/// Entries in a loop over positions, in the opposite order (where each is searched for), and the
/// counts before coordinates inside and outside.
fn listing(rank: usize) -> String {
    let mut text =
        String::from("def f(A):\n    n = scalar(0)\n    n = A.nnz\n    V = tensor(\"dense\", shape=(60,))\n");
    let mut loops = String::from("    for p in range(A.nnz):\n        V[p] = A.data[p]\n");
    let mut back = String::from("    for q in range(A.nnz):\n        r = A.nnz - 1 - q\n");
    let mut counts = String::new();
    for dim in 0..rank {
        text += &format!("    C{dim} = tensor(\"dense\", shape=(60,))\n    D{dim} = tensor(\"dense\", shape=(60,))\n");
        loops += &format!("        C{dim}[p] = A.coords[{dim}, p]\n");
        back += &format!("        D{dim}[q] = A.coords[{dim}, r]\n");
        let (sizes, at) = (vec!["9"; dim + 1].join(", "), INDICES[..=dim].join(", "));
        let target: Vec<String> = INDICES[..=dim].iter().map(|i| format!("{i} + 2")).collect();
        text += &format!("    F{dim} = tensor(\"dense\", shape=({sizes},))\n");
        counts += &format!("    for {at} in range(-2, 7):\n        F{dim}[{}] = A.first[{at}]\n", target.join(", "));
    }
    let results: Vec<String> = (0..rank).map(|dim| format!("C{dim}, D{dim}, F{dim}")).collect();
    format!("{text}{loops}{back}{counts}    return n, V, {}\n", results.join(", "))
}

#[test]
fn entries_of_every_format() {
    let mut judge = Judge::default();
    for rank in 1..=3 {
        for format in formats(rank) {
            let wanted = if numbered(&format) { Expected::Same } else { Expected::Refused(Code::E0609) };
            for leaf in ["", "; pattern"] {
                let format = format!("{format}{leaf}");
                let dtype = if leaf.is_empty() { DType::I64 } else { DType::Bool };
                let sets: Vec<Vec<Tensor>> = edges(rank)
                    .iter()
                    .filter_map(|data| Some(vec![data.tensor(&format, dtype, Value::zero(dtype))?]))
                    .collect();
                judge.case(&format, &listing(rank), &sets, wanted);
            }
        }
    }
    judge.verdict(800);
}

/// Levels with contiguous ranges, blocks or diagonals have no positions, and report so for every
/// query.
#[test]
fn levels_without_positions() {
    let texts = [
        "def f(A):\n    s = scalar(0)\n    for q in range(A.nnz):\n        s += A.coords[0, q]\n    return s\n",
        "def f(A):\n    s = scalar(0)\n    for q in range(A.nnz):\n        s += A.data[q]\n    return s\n",
        "def f(A):\n    s = scalar(0)\n    for i, j in _:\n        s += A[i,j] * A.first[i]\n    return s\n",
        "def f(A):\n    s = scalar(0)\n    for i, j in _:\n        s += A[i,j] * A.first[i,j]\n    return s\n",
    ];
    let ranges = ["dense, runs", "dense, sparse_runs", "dense, blocks", "dense, band", "dense, interval"];
    let maps = [
        "bsr(2,2)",
        "bsr(3,1)",
        "(i,j) -> (j-i, i): sparse, dense",
        "(i,j) -> (i, j/2, j%2): dense, sparse, dense",
        "(i,j) -> (i/2, j, i%2): dense, sparse, dense",
    ];
    let mut judge = Judge::default();
    for format in ranges.into_iter().chain(maps) {
        let sets = || {
            edges(2).iter().filter_map(|d| Some(vec![d.tensor(format, DType::I64, Value::I64(0))?])).collect::<Vec<_>>()
        };
        for text in texts {
            judge.case(format, text, &sets(), Expected::Refused(Code::E0609));
        }
    }
    judge.verdict(0);
}

fn interpret(program: &Program, tensors: &[Tensor]) -> Vec<Vec<Value>> {
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let outcome = interp::run(program, &operands, Options::default()).unwrap_or_else(|e| panic!("{}", e.render(false)));
    outcome.results.iter().map(|grid| grid.to_values().unwrap()).collect()
}

fn scheduled(program: &Program, tensors: &[Tensor], schedule: &str) -> Result<Program, tamis_ir::Diagnostics> {
    let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let formats: Vec<Format> = tensors.iter().map(|t| with_fill(t.format(), t.fill())).collect();
    Schedule::parse(schedule)?.apply_to(program, &program.check(&types)?, &formats, Policy::default())
}

/// Loops in level order, the inner ones of which are fused and moved to positions.
#[test]
fn loops_over_positions_of_every_format() {
    let mut judge = Judge::default();
    let mut moved = 0;
    for rank in 1..=3 {
        for format in formats(rank) {
            let order = Format::parse(&format, rank).unwrap().dim_order().unwrap();
            let names: Vec<&str> = order.iter().map(|dim| INDICES[*dim]).collect();
            let subscripts = INDICES[..rank].join(",");
            let text = format!(
                "def f(A, x):\n    y = tensor(\"dense\")\n    s = scalar(0)\n    for {} in _:\n        s += A[{subscripts}]\n        y[i] += A[{subscripts}] * x[{}]\n    return y, s\n",
                names.join(", "),
                INDICES[rank - 1],
            );
            let program = Program::parse(&text).unwrap();
            for from in 0..rank {
                // Outermost first, and innermost first.
                let (mut outwards, mut inwards) = (Vec::new(), Vec::new());
                let mut fused = names[from].to_string();
                for (k, name) in names.iter().enumerate().skip(from + 1) {
                    inwards.push(format!("fuse({fused}, {name}, f{k})"));
                    fused = format!("f{k}");
                }
                inwards.push(format!("pos({fused}, p, A)"));
                let mut inner = names[rank - 1].to_string();
                for k in (from..rank - 1).rev() {
                    outwards.push(format!("fuse({}, {inner}, g{k})", names[k]));
                    inner = format!("g{k}");
                }
                outwards.push(format!("pos({inner}, p, A); split(p, p0, p1, 3)"));
                for schedule in [inwards.join("; "), outwards.join("; ")] {
                    let mut sets = Vec::new();
                    let mut after = None;
                    for data in edges(rank) {
                        let Some(a) = data.tensor(&format, DType::F64, Value::F64(0.0)) else { continue };
                        let n = data.shape[rank - 1];
                        let x: Vec<f64> = (0..n).map(|k| k as f64 + 1.0).collect();
                        let x = Tensor::from_dense(&[n], x.into(), &Format::dense(1), Value::F64(0.0)).unwrap();
                        let tensors = vec![a, x];
                        match scheduled(&program, &tensors, &schedule) {
                            Ok(changed) => {
                                let pairs = interpret(&program, &tensors)
                                    .concat()
                                    .into_iter()
                                    .zip(interpret(&changed, &tensors).concat());
                                assert!(
                                    pairs.into_iter().all(|(a, b)| close(a, b)),
                                    "{format}, {}: {schedule}\n{changed}",
                                    data.what
                                );
                                after = Some(changed.to_string());
                                sets.push(tensors);
                            }
                            Err(errors) => {
                                assert!(errors.0.iter().all(|d| d.code == Code::E1210), "{}", errors.render(false));
                                let levels: Vec<&str> = format.rsplit(": ").next().unwrap().split(", ").collect();
                                let full = levels[from..].iter().all(|level| *level == "dense");
                                assert!(full || !numbered(&format), "{format}: {schedule}\n{}", errors.render(false));
                            }
                        }
                    }
                    if let Some(text) = after {
                        moved += 1;
                        judge.case(&format!("{format} by {schedule}"), &text, &sets, Expected::Same);
                    }
                }
            }
        }
    }
    assert!(moved > 150, "{moved}");
    judge.verdict(800);
}

/// The matrix of three entries takes three iterations, by rows and fused.
#[test]
fn one_iteration_per_entry() {
    let program = Program::parse(
        "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n",
    )
    .unwrap();
    let values = vec![1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0];
    let a = Tensor::from_dense(&[3, 4], values.into(), &Format::csr(), Value::F64(0.0)).unwrap();
    let x = Tensor::from_dense(&[4], vec![1.0; 4].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let tensors = vec![a, x];
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let iterations = |schedule: &str| {
        let changed = scheduled(&program, &tensors, schedule).unwrap();
        let outcome = interp::run(&changed, &operands, Options::default()).unwrap();
        assert_eq!(outcome.results[0].to_values().unwrap(), [3.0, 0.0, 3.0].map(Value::F64));
        outcome.iterations
    };
    assert_eq!(iterations("fuse(i, j, f)"), 12);
    assert_eq!(iterations("fuse(i, j, f); pos(f, p, A)"), 3);
    assert_eq!(iterations("pos(j, p, A)"), 3 + 3);
    assert_eq!(iterations("fuse(i, j, f); pos(f, p, A); split(p, p0, p1, 2)"), 2 + 3);
}

/// A kernel that assumes coordinates to be in bounds is recompiled for smaller tensors.
#[test]
fn smaller_tensors_are_recompiled() {
    let program = Program::parse(
        "def f(A, x):\n    s = scalar(0.0)\n    for p in range(A.nnz):\n        j = A.coords[1, p]\n        s += A.data[p] * x[j]\n    return s\n",
    )
    .unwrap();
    let identity: Vec<f64> = (0..9).map(|k| f64::from(k % 4 == 0)).collect();
    let a = Tensor::from_dense(&[3, 3], identity.into(), &Format::csr(), Value::F64(0.0)).unwrap();
    let ones =
        |n: usize| Tensor::from_dense(&[n as u64], vec![1.0; n].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let executable = tamis::compile(&program, &Signature::of(&[&a, &ones(3)]), &CompileOptions::default()).unwrap();
    for n in [3, 2, 5, 1, 3] {
        match (executable.call(&[&a, &ones(n)]), n >= 3) {
            (Ok(results), true) => assert_eq!(results[0].get(&[]), Some(Value::F64(3.0))),
            (Err(errors), false) => assert!(errors.0.iter().all(|d| d.code == Code::E1001), "{}", errors.render(false)),
            (result, _) => panic!("{n}: {result:?}"),
        }
    }
}

/// In strict arithmetic unstored elements take part in products with NaN and infinities, so a loop
/// over stored entries would be wrong.
#[test]
fn strict_products_do_not_iterate_over_positions() {
    let program = Program::parse(
        "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n",
    )
    .unwrap();
    for (dtype, moves) in [(DType::F64, false), (DType::C64, false), (DType::I32, true), (DType::Bool, true)] {
        let tensor = |shape: &[u64], format: &Format| {
            let values = tamis_tensor::ValueArray::from_values(
                &vec![Value::one(dtype); shape.iter().product::<u64>() as usize],
                dtype,
            );
            Tensor::from_dense(shape, values, format, Value::zero(dtype)).unwrap()
        };
        let (a, x) = (tensor(&[2, 3], &Format::csr()), tensor(&[3], &Format::dense(1)));
        for strict in [false, true] {
            let options =
                CompileOptions { strict, schedule: Schedule::parse("pos(j, p, A)").unwrap(), ..Default::default() };
            match tamis::compile(&program, &Signature::of(&[&a, &x]), &options) {
                Ok(_) => assert!(moves || !strict, "{dtype}"),
                Err(errors) => assert!(strict && !moves && errors.0[0].code == Code::E1210, "{}", errors.render(false)),
            }
        }
    }
}

/// An unstored infinity determines a sum, but is the identity of a minimum: the loop iterates over
/// stored entries, unless arithmetic is strict or the fill value differs.
#[test]
fn shortest_paths_iterate_over_positions() {
    let program = Program::parse(
        "def f(A, x):\n    y = tensor(\"dense\", fill=inf)\n    for i, j in _:\n        y[i] min= A[i,j] + x[j]\n    return y\n",
    )
    .unwrap();
    let (infinity, zero) = (Value::F64(f64::INFINITY), Value::F64(0.0));
    let x = Tensor::from_dense(&[3], vec![1.0, -2.0, 4.0].into(), &Format::dense(1), zero).unwrap();
    for (fill, moves) in [(infinity, true), (zero, false), (Value::F64(f64::NEG_INFINITY), false)] {
        let rest = fill.as_c128().re;
        let values = vec![1.0, rest, rest, rest, rest, 0.5];
        let a = Tensor::from_dense(&[2, 3], values.into(), &Format::csr(), fill).unwrap();
        for strict in [false, true] {
            let options =
                CompileOptions { strict, schedule: Schedule::parse("pos(j, p, A)").unwrap(), ..Default::default() };
            match tamis::compile(&program, &Signature::of(&[&a, &x]), &options) {
                Ok(executable) => {
                    assert!(moves && !strict, "{fill}");
                    let results = executable.call(&[&a, &x]).unwrap();
                    let got: Vec<f64> = (0..2).map(|i| results[0].get(&[i]).unwrap().as_c128().re).collect();
                    assert_eq!(got, [2.0, 4.5]);
                }
                Err(errors) => {
                    assert!((strict || !moves) && errors.0[0].code == Code::E1210, "{}", errors.render(false))
                }
            }
        }
    }
}
