//! Tests of instrumented kernels: their counters agree with the interpreter and with known numbers
//! of windows, and change no result.

use std::collections::BTreeSet;
use std::path::Path;
use tamis::prelude::*;
use tamis_tests::counted::{Counted, count};
use tamis_tests::filetest::{Section, sections};
use tamis_tests::lowered::{Engine, RunError, Stage, run_stage};
use tamis_tests::random::Random;
use tamis_tests::{affine, conform, early_exit, generate};

const BUDGET: u64 = 60_000_000;

fn same(program: &Program, tensors: &[Tensor], counted: &Counted, engine: Engine) -> Option<String> {
    if counted.counts.executed != counted.interpreted {
        return Some(format!("counted {:?}\ninterpreted {:?}", counted.counts.executed, counted.interpreted));
    }
    let (_, plain) = match run_stage(program, tensors, Stage::Optimised, engine) {
        Ok(ran) => ran,
        Err(problem) => return Some(format!("without counters {problem:?}")),
    };
    let close = plain.len() == counted.results.len()
        && plain
            .iter()
            .zip(&counted.results)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| conform::close(*a, *b)));
    (!close).then(|| format!("with counters {:?}\nwithout {plain:?}", counted.results))
}

fn zoo() -> Vec<Section> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    ["zoo.md", "papers.md", "papers-looplets.md", "case-studies.md", "convolutions.md"]
        .iter()
        .flat_map(|name| sections(&folder.join(name)).unwrap_or_else(|problem| panic!("{name}: {problem}")))
        .collect()
}

/// Counters of machine code agree with the interpreter, for statements and declarations of every
/// variable.
#[test]
fn counters_agree_with_the_interpreter() {
    let (mut failures, mut compared) = (Vec::new(), 0);
    for section in zoo() {
        let program = Program::parse(&section.program).unwrap_or_else(|d| panic!("{}", d.render(false)));
        let Some(inputs) = section.combinations.first() else { continue };
        let tensors: Vec<Tensor> = inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
        match count(&program, &tensors, Engine::Native) {
            Ok(counted) => {
                let wrong = same(&program, &tensors, &counted, Engine::Native);
                failures.extend(wrong.map(|wrong| format!("{}: {wrong}", section.heading)));
                compared += 1;
            }
            Err(RunError::Required(_)) => {}
            Err(problem) => failures.push(format!("{}: {problem:?}", section.heading)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(compared >= 40, "{compared} programs");
}

/// Programs that break out of loops, merge, mask and scatter, in formats of every kind.
#[test]
fn random_programs_are_counted() {
    let mut compared = 0;
    for seed in 0..400 {
        let (case, formats): (_, fn(usize) -> &'static [&'static str]) = match seed % 4 {
            0 => (affine::case(seed), affine::formats),
            _ => (generate::case(seed), generate::formats),
        };
        let mut random = Random(seed);
        let tensors: Option<Vec<Tensor>> = case
            .inputs
            .iter()
            .map(|(_, input)| input.tensor(random.pick::<&str>(formats(input.shape.len()))).ok())
            .collect();
        let (Some(tensors), Ok(program)) = (tensors, Program::parse(&case.text)) else { continue };
        match count(&program, &tensors, Engine::Interpreter(BUDGET)) {
            Ok(counted) => {
                if let Some(wrong) = same(&program, &tensors, &counted, Engine::Interpreter(BUDGET)) {
                    panic!("seed {seed}\n{}\n{wrong}", case.text);
                }
                compared += 1;
            }
            Err(RunError::Wrong(wrong)) if !wrong.contains("no order") => panic!("seed {seed}\n{}\n{wrong}", case.text),
            Err(_) => {}
        }
    }
    assert!(compared >= 200, "{compared} programs");
}

/// Coordinates of a random matrix, some rows of which are empty.
fn entries(rows: u64, columns: u64, wanted: usize, seed: u64) -> BTreeSet<(u64, u64)> {
    let mut random = Random(seed);
    let mut found = BTreeSet::new();
    while found.len() < wanted {
        let (i, j) = (random.below(rows as usize) as u64, random.below(columns as usize) as u64);
        if i % 3 != 1 {
            found.insert((i, j));
        }
    }
    found
}

fn matrix(rows: u64, columns: u64, entries: &BTreeSet<(u64, u64)>, format: &str) -> Tensor {
    let column = |of: fn(&(u64, u64)) -> u64| entries.iter().map(|e| of(e) as u32).collect::<Vec<u32>>().into();
    let values: Vec<f64> = (0..entries.len()).map(|k| 1.0 + k as f64).collect();
    let shape = vec![rows, columns];
    let entries = Coordinates { shape, columns: vec![column(|e| e.0), column(|e| e.1)], values: values.into() };
    Tensor::from_coordinates(&entries, &Format::parse(format, 2).unwrap(), Value::F64(0.0), Combine::Error).unwrap()
}

fn vector(n: u64, entries: &BTreeSet<u64>, format: &str) -> Tensor {
    let columns = vec![entries.iter().map(|i| *i as u32).collect::<Vec<u32>>().into()];
    let values: Vec<f64> = (0..entries.len()).map(|k| 1.0 + k as f64).collect();
    let entries = Coordinates { shape: vec![n], columns, values: values.into() };
    Tensor::from_coordinates(&entries, &Format::parse(format, 1).unwrap(), Value::F64(0.0), Combine::Error).unwrap()
}

fn dense(shape: &[u64]) -> Tensor {
    let n = shape.iter().product::<u64>() as usize;
    Tensor::from_dense(shape, vec![0.5; n].into(), &Format::dense(shape.len()), Value::F64(0.0)).unwrap()
}

fn visits(text: &str, inputs: &[(&str, &Tensor)]) -> Vec<(String, u64)> {
    let analysis =
        tamis::analyze(text, inputs, &EinsumOptions::default()).unwrap_or_else(|d| panic!("{}", d.render(false)));
    analysis.loops.iter().map(|row| (row.index.clone(), row.visits)).collect()
}

#[test]
fn windows_of_a_vector() {
    let (n, width) = (200_000u64, 5u64);
    let mut random = Random(11);
    let stored: BTreeSet<u64> = (0..900).map(|_| random.below(n as usize) as u64).collect();
    let windows = (0..=n - width).filter(|i| stored.range(*i..i + width).next().is_some()).count() as u64;
    let inside: u64 = (0..=n - width).map(|i| stored.range(i..i + width).count() as u64).sum();
    let text = "
def convolve(x, w):
    y = tensor('dense')
    for i, k in _:
        y[i] += x[i+k] * w[k]
    return y
";
    for format in ["sparse", "sparse(nonunique)", "hash", "blocks"] {
        let (x, w) = (vector(n, &stored, format), dense(&[width]));
        let found = visits(text, &[("x", &x), ("w", &w)]);
        let k = if format == "blocks" { found[1].1 } else { inside };
        assert_eq!(found, [("i".into(), windows), ("k".into(), k)], "{format}");
        assert!(windows < n / 10 && k >= windows);
    }
}

#[test]
fn windows_of_a_matrix() {
    let (rows, columns, height, width) = (120u64, 400u64, 3u64, 4u64);
    let stored = entries(rows, columns, 300, 5);
    let row = |i: u64| stored.range((i, 0)..(i + 1, 0)).map(|e| e.1).collect::<BTreeSet<u64>>();
    let all: Vec<BTreeSet<u64>> = (0..rows).map(row).collect();
    let (tall, wide) = (0..=rows - height, 0..=columns - width);
    let meets = |i: u64, j: u64| all[i as usize].range(j..j + width).next().is_some();
    let mut along_rows = 0u64;
    let mut both = 0u64;
    for i in tall.clone() {
        for j in wide.clone() {
            along_rows += (i..i + height).filter(|r| meets(*r, j)).count() as u64;
            both += u64::from((i..i + height).any(|r| meets(r, j)));
        }
    }
    let bands = tall.clone().filter(|i| (*i..i + height).any(|r| !all[r as usize].is_empty())).count() as u64;
    let pairs: u64 = tall.map(|i| (i..i + height).filter(|r| !all[*r as usize].is_empty()).count() as u64).sum();
    let program = |order: &str| {
        format!(
            "
def convolve(A, F):
    O = tensor('dense')
    for {order} in _:
        O[i,j] += A[i+r, j+s] * F[r,s]
    return O
"
        )
    };
    let f = dense(&[height, width]);
    for format in ["csr", "coo", "dcsr"] {
        let a = matrix(rows, columns, &stored, format);
        let inputs = [("A", &a), ("F", &f)];
        // Rows are located first, then windows along each of them.
        let found = visits(&program("i, r, j, s"), &inputs);
        let all_rows = format == "csr";
        assert_eq!(found[0], ("i".into(), if all_rows { rows - height + 1 } else { bands }), "{format}");
        assert_eq!(found[1], ("r".into(), if all_rows { (rows - height + 1) * height } else { pairs }), "{format}");
        assert_eq!(found[2], ("j".into(), along_rows), "{format}");
        // Two-dimensional windows.
        let found = visits(&program("i, j, r, s"), &inputs);
        assert_eq!(found[1], ("j".into(), both), "{format}");
    }
}

/// Merges of two lists: matches and advances.
#[test]
fn merges() {
    let (rows, columns) = (60, 80);
    let (a, b) = (entries(rows, columns, 900, 1), entries(rows, columns, 700, 2));
    let program = Program::parse(
        "
def inner(A, B):
    s = scalar(0.0)
    for i, j in _:
        s += A[i,j] * B[i,j]
    return s
",
    )
    .unwrap();
    let tensors = [matrix(rows, columns, &a, "csr"), matrix(rows, columns, &b, "csr")];
    let counted = count(&program, &tensors, Engine::Native).unwrap();
    assert_eq!(counted.visits("j"), a.intersection(&b).count() as u64);
    let steps = counted.counts.loops[1].steps;
    assert!(steps >= counted.visits("j") && steps <= (a.len() + b.len()) as u64, "{steps}");
}

/// The (min, +) and (max, +) products go over what is stored: an infinity that is not stored
/// decides a sum, and changes no extremum. So do differences, and sums of three.
#[test]
fn infinities_are_skipped() {
    let (rows, columns) = (60, 80);
    let stored = entries(rows, columns, 300, 5);
    let programs = [
        ("min", "A[i,j] + l[j]", f64::INFINITY),
        ("min", "l[j] + A[i,j]", f64::INFINITY),
        ("min", "A[i,j] - l[j]", f64::INFINITY),
        ("min", "l[j] - A[i,j]", f64::NEG_INFINITY),
        ("min", "(A[i,j] + l[j]) + 1", f64::INFINITY),
        ("min", "max(A[i,j], l[j])", f64::INFINITY),
        ("max", "A[i,j] + l[j]", f64::NEG_INFINITY),
        ("max", "l[j] - A[i,j]", f64::INFINITY),
        ("max", "min(A[i,j], l[j])", f64::NEG_INFINITY),
    ];
    let l: Vec<f64> = (0..columns).map(|j| (j as f64 * 7.0) % 11.0 - 3.0).collect();
    let lengths = Tensor::from_dense(&[columns], l.clone().into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    for format in ["csr", "dcsr", "coo", "dense, hash", "dense, blocks", "dense, sparse_runs", "dense, bytemap"] {
        for (op, value, fill) in programs {
            let zeros = matrix(rows, columns, &stored, format);
            let mut all = vec![fill; (rows * columns) as usize];
            for (i, j) in &stored {
                all[(i * columns + j) as usize] = zeros.get(&[*i, *j]).unwrap().as_c128().re;
            }
            let format_of = Format::parse(format, 2).unwrap();
            let a = Tensor::from_dense(&[rows, columns], all.into(), &format_of, Value::F64(fill)).unwrap();
            let start = if op == "min" { "inf" } else { "-inf" };
            let text = format!(
                "def f(A, l):\n    m = tensor(\"dense\", fill={start})\n    for i, j in _:\n        m[i] {op}= {value}\n    return m\n"
            );
            let program = Program::parse(&text).unwrap();
            let tensors = [a.clone(), lengths.clone()];
            let counted = count(&program, &tensors, Engine::Native).unwrap();
            assert_eq!(counted.visits("j"), stored.len() as u64, "{format}: {value}");
            let inputs = [("A", &a), ("l", &lengths)];
            let options = tamis::run::RunOptions { interpret: true, ..Default::default() };
            let expected = tamis::run(&program, &inputs, &options).unwrap();
            let expected = expected[0].to_dense().unwrap();
            for (i, got) in counted.results[0].iter().enumerate() {
                assert!(got.same_number(expected.get(i)), "{format}: {value}, row {i}: {got}");
            }
            for text in [format!("m[i] {op}= {value}"), format!("m[i] = {op}[j]({value})")] {
                let inner = visits(&text, &inputs).iter().map(|(_, visits)| *visits).max();
                assert_eq!(inner, Some(stored.len() as u64), "{format}: {text}");
            }
        }
    }
}

/// Byte counts are those of accessed elements, and predictions those of the schedule.
#[test]
fn bytes_and_predictions() {
    let stored = entries(500, 400, 3000, 9);
    let (a, x) = (matrix(500, 400, &stored, "csr"), dense(&[400]));
    let options = EinsumOptions::default();
    let analysis = tamis::analyze("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &options).unwrap();
    let array = |name: &str| analysis.arrays.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((array("A crd").moved.read, array("A crd").size), (4 * 3000, 4 * 3000));
    assert_eq!((array("A values").moved.read, array("A values").size), (8 * 3000, 8 * 3000));
    assert_eq!((array("x values").moved.read, array("x values").size), (8 * 3000, 8 * 400));
    assert_eq!((array("y values").moved.written, array("y values").size), (8 * 500, 8 * 500));
    let [i, j] = &analysis.loops[..] else { panic!("{analysis}") };
    assert_eq!((i.entered, i.visits, i.predicted), (1, 500, Some(500.0)));
    assert_eq!((j.entered, j.visits, j.predicted), (500, 3000, Some(3000.0)));
    assert!(j.seconds <= i.seconds && i.measured && !j.measured);
    assert_eq!(i.moved.read, i.own.read + j.own.read);
    assert!(analysis.remarks.is_empty(), "{analysis}");
    let plain = tamis::einsum("y[i] = A[i,j] * x[j]", &[("A", &a), ("x", &x)], &options).unwrap();
    assert_eq!(plain[0].get(&[3]), analysis.results[0].get(&[3]));
}

/// Entries concentrated on the same few coordinates match far more often than the model expects;
/// the analysis reports it.
#[test]
fn unexpected_counts_are_reported() {
    let n = 3000u64;
    let thick: BTreeSet<(u64, u64)> =
        (0..n).map(|i| (i, i % 3)).chain((0..3).flat_map(|i| (0..n).map(move |j| (i, j)))).collect();
    let (a, b) = (matrix(n, n, &thick, "csr"), matrix(n, n, &thick, "csr"));
    let analysis =
        tamis::analyze("C[i,k] = A[i,j] * B[j,k]", &[("A", &a), ("B", &b)], &EinsumOptions::default()).unwrap();
    let far = analysis.loops.iter().find(|row| row.ratio().is_some_and(|ratio| ratio > tamis::analyze::NOTABLE_RATIO));
    assert!(far.is_some(), "{analysis}");
    assert!(analysis.remarks.iter().any(|remark| remark.contains("A, B were counted")), "{analysis}");
    assert!(analysis.to_string().contains('!'), "{analysis}");
}

/// A dense vector of zeros, with ones at some coordinates.
fn marked(n: u64, at: &[u64], format: &str) -> Tensor {
    let values: Vec<f64> = (0..n).map(|i| f64::from(u8::from(at.contains(&i)))).collect();
    Tensor::from_dense(&[n], values.into(), &Format::parse(format, 1).unwrap(), Value::F64(0.0)).unwrap()
}

/// The trip counts of a loop, and the results as numbers.
fn counted(text: &str, tensors: &[Tensor], index: &str) -> (u64, Vec<f64>) {
    let program = Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let counted = count(&program, tensors, Engine::Interpreter(BUDGET)).unwrap();
    let results = counted.results.iter().map(|values| values[0].as_c128().re).collect();
    // Several loops of the program may have the same index.
    let loops = counted.indices.iter().zip(&counted.counts.loops).filter(|(name, _)| *name == index);
    (loops.map(|(_, row)| row.visits).sum(), results)
}

/// Two reductions in one loop that become final at different coordinates: the loop ends with the
/// later one, in every format.
#[test]
fn short_circuits_compose() {
    let n = 1000;
    let text = "
def both(a, b):
    s = short_circuit_scalar(False)
    t = short_circuit_scalar(0)
    for i in _:
        s |= a[i] > 0.5
        t = choose(t, b[i] * i)
    return s, t
";
    for (first, second) in [(10, 20), (20, 10), (15, 15)] {
        for formats in [["dense", "dense"], ["runs", "dense"], ["dense", "blocks"], ["band", "dense"]] {
            let a = marked(n, &[first, 400], formats[0]);
            let b = marked(n, &[second, 500], formats[1]);
            let (visits, results) = counted(text, &[a, b], "i");
            assert!(visits <= first.max(second) + 1, "{visits} visits of {formats:?}, {first}, {second}");
            assert_eq!(results, [1.0, second as f64]);
        }
    }
    // Coordinate lists: the entries stored up to there.
    let (a, b) = (marked(n, &[3, 5, 900], "sparse"), marked(n, &[1, 4, 6, 8, 950], "sparse"));
    let (visits, results) = counted(text, &[a, b], "i");
    assert!(visits <= 3, "{visits}");
    assert_eq!(results, [1.0, 1.0]);
    // Final from the start: no iterations.
    let (a, b) = (marked(n, &[700], "dense"), marked(n, &[2], "dense"));
    let (visits, results) = counted(&text.replace("scalar(False)", "scalar(True)"), &[a, b], "i");
    assert_eq!((visits, results), (3, vec![1.0, 2.0]));
    // Never final: all iterations.
    let (visits, results) = counted(text, &[marked(n, &[], "dense"), marked(n, &[2], "dense")], "i");
    assert_eq!((visits, results), (n, vec![0.0, 2.0]));
}

/// More reductions than a loop has specialisations for: it still ends with the last of them.
#[test]
fn many_early_exits_end_their_loop() {
    let (mut text, mut results) = (String::from("def many(a):\n"), Vec::new());
    for k in 0..9 {
        text += &format!("    s{k} = short_circuit_scalar(False)\n");
        results.push(format!("s{k}"));
    }
    text += "    for i in _:\n";
    for k in 0..9 {
        text += &format!("        s{k} |= a[i] + i > {}\n", 10 * k);
    }
    text += &format!("    return {}\n", results.join(", "));
    let (visits, results) = counted(&text, &[marked(1000, &[3], "dense")], "i");
    assert_eq!((visits, results), (82, vec![1.0; 9]));
}

/// With another statement in the loop, the remaining iterations are specialised for that statement
/// alone.
#[test]
fn remaining_iterations_are_specialised() {
    let n = 2000;
    let sparse = [7, 30, 1500, 1600, 1999];
    for format in ["sparse", "hash", "blocks", "sparse_runs"] {
        let text = "
def beside(a, B):
    found = short_circuit_scalar(False)
    total = scalar(0.0)
    for i in _:
        found |= a[i] > 0.5
        total += B[i] * i
    return found, total
";
        let (visits, results) = counted(text, &[marked(n, &[11], "dense"), marked(n, &sparse, format)], "i");
        let after = sparse.iter().filter(|i| **i > 11).count() as u64;
        assert!(visits <= 12 + after, "{visits} visits of {format}");
        assert_eq!(results, [1.0, sparse.iter().sum::<u64>() as f64]);
    }
    // At any depth; code that only served the reduction disappears with it.
    let text = "
def rows(A, b, y):
    found = short_circuit_scalar(False)
    R = tensor('dense')
    for i in _:
        t = scalar(0.0)
        for k in _:
            t += A[i,k] * b[k]
        found |= t > 0.5
        for j in _:
            R[i] += A[i,j] * y[j]
    return found, R
";
    let stored = entries(300, 40, 2000, 3);
    let a = matrix(300, 40, &stored, "csr");
    let row = stored.iter().find(|(_, k)| *k == 5).unwrap().0;
    let (visits, results) = counted(text, &[a.clone(), marked(40, &[5], "dense"), dense(&[40])], "k");
    assert_eq!(visits, stored.iter().filter(|(i, _)| *i <= row).count() as u64);
    assert_eq!(results[0], 1.0);
    let (visits, _) = counted(text, &[a, marked(40, &[5], "dense"), dense(&[40])], "j");
    assert_eq!(visits, stored.len() as u64);
    // Both loops of a nest: the inner one in the row where the reduction becomes final, the outer
    // one after that row.
    let text = "
def nest(A, B):
    found = short_circuit_scalar(False)
    total = scalar(0.0)
    for i, j in _:
        found |= A[i,j] > 0.5
        total += B[i,j]
    return found, total
";
    let b = entries(300, 40, 100, 4);
    let (visits, results) = counted(text, &[dense(&[300, 40]), matrix(300, 40, &b, "csr")], "j");
    assert_eq!(visits, 300 * 40, "never final: 0.5 is not above 0.5");
    assert_eq!(results[0], 0.0);
    let found = text.replace("> 0.5", "> 0.25");
    let (visits, results) = counted(&found, &[dense(&[300, 40]), matrix(300, 40, &b, "csr")], "j");
    assert!(visits <= 1 + b.len() as u64, "{visits}");
    assert_eq!(results, [1.0, (1..=100).sum::<u64>() as f64]);
}

/// Early exits never add iterations.
#[test]
fn early_exits_never_visit_more() {
    let mut compared = 0;
    for seed in 0..300 {
        let case = early_exit::case(seed);
        let mut random = Random(seed);
        let tensors: Option<Vec<Tensor>> = case
            .inputs
            .iter()
            .map(|(_, input)| input.tensor(random.pick::<&str>(generate::formats(input.shape.len()))).ok())
            .collect();
        let Some(tensors) = tensors else { continue };
        let visits = |text: &str| -> Option<Vec<(String, u64)>> {
            let counted = count(&Program::parse(text).ok()?, &tensors, Engine::Interpreter(BUDGET)).ok()?;
            let rows = counted.counts.loops.iter().map(|row| row.visits);
            Some(counted.indices.iter().cloned().zip(rows).collect())
        };
        let plain = visits(&case.text.replace("short_circuit_scalar", "scalar"));
        let (Some(plain), Some(early)) = (plain, visits(&case.text)) else { continue };
        for ((index, most), (_, seen)) in plain.iter().zip(&early) {
            assert!(seen <= most, "seed {seed}: {seen} visits of `{index}` instead of {most}\n{}", case.text);
        }
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}
