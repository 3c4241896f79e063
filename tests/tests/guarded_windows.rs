//! Visits of windows whose bounds only conditions check: they are found by what is stored, in every
//! dimension, as those of padded reads are.

use tamis_ir::interp::{self, Operand, Options};
use tamis_ir::{DType, Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::convolve::check;
use tamis_tests::counted::count;
use tamis_tests::generate::Input;
use tamis_tests::lowered::{Engine, Stage, run_stage};

const N: u64 = 90;

/// A matrix with these entries.
fn matrix(entries: &[(u64, u64)], format: &str) -> Tensor {
    let mut values = vec![Value::I64(0); (N * N) as usize];
    for (k, (i, j)) in entries.iter().enumerate() {
        values[(i * N + j) as usize] = Value::I64(k as i64 + 1);
    }
    Input { shape: vec![N, N], values, dtype: DType::I64 }.tensor(format).unwrap()
}

fn filter() -> Tensor {
    let values = (0..9).map(|k| Value::I64(k % 4 - 1)).collect();
    Input { shape: vec![3, 3], values, dtype: DType::I64 }.tensor("dense").unwrap()
}

fn program(format: &str, guard: &str, value: &str) -> String {
    format!(
        "def f(A, F):\n    O = tensor(\"{format}\", shape=({N},{N}))\n    for i in range({N}):\n        for j in range({N}):\n            for k in range(3):\n                for l in range(3):\n                    if {guard}:\n                        O[i,j] += {value}\n    return O\n"
    )
}

const ROWS: &str = "i+k-1 >= 0 and i+k-1 < A.shape[0]";
const COLUMNS: &str = "j+l-1 >= 0 and j+l-1 < A.shape[1]";

#[test]
fn guarded_windows_of_matrices_are_found_by_what_is_stored() {
    let entries = [(0, 0), (0, 5), (17, 40), (18, 41), (60, 89), (89, 0), (89, 89)];
    let element = "A[i+k-1,j+l-1]*F[k,l]";
    let near = |x: u64, y: i64| (y - 1..=y + 1).contains(&(x as i64));
    // Every window with an entry, and the rows that have one.
    let (mut windows, mut rows) = (0, 0);
    for i in 0..N as i64 {
        rows += u64::from(entries.iter().any(|(x, _)| near(*x, i)));
        for j in 0..N as i64 {
            windows += u64::from(entries.iter().any(|(x, y)| near(*x, i) && near(*y, j)));
        }
    }
    let tensors = |format: &str| [matrix(&entries, format), filter()];
    for guard in [
        format!("{ROWS} and {COLUMNS}"),
        format!("k != 1 and {ROWS} and {COLUMNS}"),
        "0 <= i+k-1 < A.shape[0] and 0 <= j+l-1 and A.shape[1] > j+l-1".to_string(),
        format!("i + k >= 1 and {COLUMNS} and i + k < A.shape[0] + 1 and F[k,l] > 0"),
    ] {
        for result in ["dcsr", "dense"] {
            let text = program(result, &guard, element);
            for format in ["dcsr", "csr", "coo", "sparse, hash", "sparse, sparse_runs"] {
                let tensors = tensors(format);
                check(&text, &tensors, Engine::Interpreter(1 << 24));
                let counted = count(&Program::parse(&text).unwrap(), &tensors, Engine::Interpreter(1 << 24)).unwrap();
                let (i, j) = (counted.visits("i"), counted.visits("j"));
                // The rows of CSR are dense.
                let most = if format == "csr" { N } else { rows };
                assert!(i <= most, "{format}: i is visited {i} times, not {most}\n{text}");
                assert!(j <= windows + 2 * rows, "{format}: j is visited {j} times, not {windows}\n{text}");
            }
        }
    }
}

/// The guarded statement, the statements under it and the arithmetic do not matter.
#[test]
fn whatever_is_guarded_windows_are_found_by_what_is_stored() {
    let entries = [(0, 0), (0, 5), (17, 40), (18, 41), (60, 89), (89, 0), (89, 89)];
    let tensors = |format: &str| [matrix(&entries, format), filter()];
    let near = |x: u64, y: i64| (y - 1..=y + 1).contains(&(x as i64));
    let rows = (0..N as i64).filter(|i| entries.iter().any(|(x, _)| near(*x, *i))).count() as u64;
    let inside = format!("{ROWS} and {COLUMNS}");
    let element = "A[i+k-1,j+l-1]";
    let statements = [
        format!("if {inside}:\n    O[i,j] max= {element}*F[k,l]"),
        format!("if {inside}:\n    O[i,j] += select({element} > 1, {element} + F[k,l], 0)"),
        format!("if {inside}:\n    if {element} != 0:\n        O[i,j] += {element} + F[k,l]"),
        format!("if {ROWS}:\n    if {COLUMNS}:\n        O[i,j] += {element} * F[k,l]"),
        format!("if {inside} and {element} > 2:\n    O[i,j] = k + l"),
        format!("if {inside}:\n    d = {element} * 2\n    O[i,j] += d * F[k,l]\n    O[i,j] -= d"),
    ];
    for (case, statement) in statements.iter().enumerate() {
        let pad = " ".repeat(20);
        let body = statement.lines().map(|line| format!("{pad}{line}\n")).collect::<String>();
        let text = format!(
            "def f(A, F):\n    O = tensor(\"dense\", shape=({N},{N}))\n    for i in range({N}):\n        for j in range({N}):\n            for k in range(3):\n                for l in range(3):\n{body}    return O\n"
        );
        let program = Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
        for format in ["dcsr", "coo", "sparse, hash"] {
            let tensors = tensors(format);
            check(&text, &tensors, Engine::Interpreter(1 << 26));
            for stage in [Stage::Optimised, Stage::Strict] {
                let run = run_stage(&program, &tensors, stage, Engine::Interpreter(1 << 26));
                let strict = Options { strict: stage == Stage::Strict, budget: None };
                let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
                let wanted = interp::run(&program, &operands, strict).unwrap();
                let wanted: Vec<_> = wanted.results.iter().filter_map(|grid| grid.to_values()).collect();
                assert_eq!(run.unwrap_or_else(|p| panic!("{p:?}")).1, wanted, "{format} {stage:?}\n{text}");
            }
            let counted = count(&program, &tensors, Engine::Interpreter(1 << 26)).unwrap();
            let (i, j) = (counted.visits("i"), counted.visits("j"));
            assert!(i <= rows && j <= 20 * rows, "{case} {format}: {i} and {j} visits\n{text}");
        }
    }
}

/// Ranges of the rows and columns that a condition permits cut the windows, whether they are the
/// bounds of the dimensions or lie inside of them, and whatever the read is in the other dimension.
#[test]
fn ranges_inside_of_dimensions_cut_windows() {
    let entries = [(0, 0), (0, 5), (4, 7), (17, 40), (18, 41), (19, 2), (60, 89), (70, 33), (89, 0), (89, 89)];
    let (element, permissive) = ("A[i+k-1,j+l-1]*F[k,l]", "coalesce(A[i+k-1,~(j+l-1)], 0)*F[k,l]");
    let cases: [(&str, [i64; 4], &str); 8] = [
        (&format!("i+k-1 >= 2 and i+k-1 < A.shape[0] - 4 and {COLUMNS}"), [2, 86, 0, 90], element),
        ("3 <= i+k-1 < 20 and 5 <= j+l-1 < 60", [3, 20, 5, 60], element),
        (&format!("{ROWS} and 5 <= j+l-1 < 60"), [0, 90, 5, 60], element),
        (&format!("i+k > 3 and i+k <= 50 and {COLUMNS}"), [3, 50, 0, 90], element),
        (&format!("{ROWS} and 90 > j+l-1 and j > 7-l"), [0, 90, 7, 90], element),
        (&format!("i+k-1 == 18 and {COLUMNS}"), [18, 19, 0, 90], element),
        (ROWS, [0, 90, -1, 91], permissive),
        ("1 <= i+k-1 < 60", [1, 60, -1, 91], permissive),
    ];
    for (guard, [top, bottom, left, right], value) in cases {
        // Iterations with a window that holds an entry, and with one that the ranges permit.
        let meets = |x: i64, start: i64, stop: i64| (x - 1..=x + 1).any(|at| (start..stop).contains(&at));
        let near = |x: u64, y: i64| (y - 1..=y + 1).contains(&(x as i64));
        let (mut rows, mut windows) = (0, 0);
        for i in (0..N as i64).filter(|i| meets(*i, top, bottom)) {
            rows += u64::from(entries.iter().any(|(x, _)| near(*x, i)));
            for j in (0..N as i64).filter(|j| meets(*j, left, right)) {
                windows += u64::from(entries.iter().any(|(x, y)| near(*x, i) && near(*y, j)));
            }
        }
        let text = program("dense", guard, value);
        for format in ["dcsr", "coo", "sparse, hash", "sparse, sparse_runs"] {
            let tensors = [matrix(&entries, format), filter()];
            check(&text, &tensors, Engine::Interpreter(1 << 24));
            let counted = count(&Program::parse(&text).unwrap(), &tensors, Engine::Interpreter(1 << 24)).unwrap();
            let (i, j) = (counted.visits("i"), counted.visits("j"));
            assert!(i <= rows, "{format}: i is visited {i} times, not {rows}\n{text}");
            assert!(j <= windows + 2 * rows, "{format}: j is visited {j} times, not {windows}\n{text}");
        }
    }
}

/// The same in one dimension, with inferred and with explicit loop bounds.
#[test]
fn ranges_cut_windows_of_vectors() {
    let places: Vec<u64> = (0..N).filter(|x| x % 11 == 4).collect();
    let mut values = vec![Value::I64(0); N as usize];
    places.iter().for_each(|x| values[*x as usize] = Value::I64(*x as i64));
    let a = |format: &str| Input { shape: vec![N], values: values.clone(), dtype: DType::I64 }.tensor(format).unwrap();
    let filter = Input { shape: vec![3], values: vec![Value::I64(2); 3], dtype: DType::I64 }.tensor("dense").unwrap();
    let cases: [(&str, &str, i64, i64, [i64; 2]); 9] = [
        ("i+k < 30", "i+k", 1, 1, [0, 30]),
        ("3 <= i+k", "i+k", 1, 1, [3, 90]),
        ("i > 20 - k", "i+k", 1, 1, [21, 90]),
        ("50 < i+k <= 70", "i+k", 1, 1, [51, 71]),
        ("2*i+k < 40", "2*i+k", 2, 1, [0, 40]),
        ("i+2*k >= 60", "i+2*k", 1, 2, [60, 90]),
        ("2*i+2*k > 61", "2*i+2*k", 2, 2, [62, 90]),
        ("85-i-k <= 20", "85-i-k", -1, -1, [0, 21]),
        ("85-2*i+k > 20", "85-2*i+k", -2, 1, [21, 90]),
    ];
    for (guard, subscript, by, inner, [start, stop]) in cases {
        let constant = if by < 0 { 85 } else { 0 };
        // The iterations for which every subscript is in bounds.
        let trips = (0..N as i64)
            .take_while(|i| (0..3).all(|k| (0..N as i64).contains(&(constant + by * i + inner * k))))
            .count();
        let window = |i: i64| (0..3).map(move |k| constant + by * i + inner * k);
        let most = (0..trips as i64)
            .filter(|i| {
                window(*i).any(|x| places.contains(&(x as u64))) && window(*i).any(|x| (start..stop).contains(&x))
            })
            .count() as u64;
        for bounds in ["_", "range(3)"] {
            let text = format!(
                "def f(A, F):\n    O = tensor(\"dense\", shape=({trips},))\n    for i in range({trips}):\n        for k in {bounds}:\n            if {guard}:\n                O[i] += A[{subscript}]*F[k]\n    return O\n"
            );
            for format in ["sparse", "hash", "bytemap", "blocks", "sparse_runs"] {
                let tensors = [a(format), filter.clone()];
                check(&text, &tensors, Engine::Interpreter(1 << 24));
                let counted = count(&Program::parse(&text).unwrap(), &tensors, Engine::Interpreter(1 << 24));
                let visits = counted.unwrap().visits("i");
                assert!(visits <= most, "{format}: i is visited {visits} times, not {most}\n{text}");
            }
        }
    }
}

/// What else needs a check keeps it, and other bounds are other conditions.
#[test]
fn other_guards_are_kept() {
    let entries = [(0, 0), (3, 5), (17, 40), (89, 89)];
    for (guard, value) in [
        (format!("{ROWS} and {COLUMNS}"), "A[i+k-1,j+l-1]*F[k,l] + A[j+l-1,i+k-1]"),
        (format!("{ROWS} and {COLUMNS}"), "select(k > 1, A[i+k-1,j+l-1], 3)"),
        (format!("i+k-1 >= 2 and i+k-1 < A.shape[0] and {COLUMNS}"), "A[i+k-1,j+l-1]*F[k,l]"),
        (format!("i+k-1 >= 0 and i+k-1 < A.shape[0] - 4 and {COLUMNS}"), "A[i+k-1,j+l-1]*F[k,l]"),
        (format!("{ROWS} and {COLUMNS}"), "A[i+k-1,j+l-1] + 1"),
        (ROWS.to_string(), "coalesce(A[i+k-1,~(j+l-1)], 2)"),
        (format!("({ROWS}) and ({COLUMNS}) and (k < 2 or l < 1)"), "A[i+k-1,j+l-1]*A[i+k-1,j+l-1] - F[k,l]"),
    ] {
        for format in ["dcsr", "csr", "dense", "sparse_runs, blocks"] {
            let tensors = [matrix(&entries, format), filter()];
            check(&program("dense", &guard, value), &tensors, Engine::Interpreter(1 << 26));
        }
    }
}
