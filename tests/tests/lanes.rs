//! Tests of vectorised reductions over gathered elements and contiguous ranges: every value type,
//! coordinate width and row length; unrolled blocks; lists that exceed the caches.

use tamis::Program;
use tamis::compile::{CompileOptions, Signature};
use tamis_ir::{DType, FormatSpec, Value};
use tamis_tensor::{Buffer, Combine, Coordinates, Tensor, ValueArray, gallery};
use tamis_tests::compare::oracle;

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

fn run(program: &Program, tensors: &[&Tensor]) -> Tensor {
    let executable = tamis::compile(program, &Signature::of(tensors), &CompileOptions::default());
    let executable = executable.unwrap_or_else(|d| panic!("{}", d.render(false)));
    let results = executable.call(tensors).unwrap_or_else(|d| panic!("{}", d.render(false)));
    results.into_tensors().remove(0)
}

fn stored(entries: &Coordinates, format: &str, dtype: DType) -> Tensor {
    let format = FormatSpec::parse(format).unwrap().with_rank(entries.shape.len()).unwrap();
    let tensor = Tensor::from_coordinates(
        entries,
        &FormatSpec::parse("coo").unwrap().with_rank(2).unwrap(),
        Value::F64(0.0),
        Combine::Error,
    );
    tensor.unwrap().cast(dtype).convert(&format).unwrap()
}

/// Row `i` has `i` entries (up to 13), at irregular columns; values are small, so that sums are
/// exact.
fn staircase(rows: u64, columns: u64) -> Coordinates {
    let (mut outer, mut inner, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        let mut row: Vec<u64> = (0..i % 14).map(|k| (k * 17 + i * 5) % columns).collect();
        row.sort_unstable();
        row.dedup();
        for j in row {
            outer.push(i);
            inner.push(j);
            values.push(((i * 3 + j * 7) % 9) as f64 + 1.0);
        }
    }
    Coordinates { shape: vec![rows, columns], columns: vec![outer.into(), inner.into()], values: values.into() }
}

fn vector(length: u64, dtype: DType) -> Tensor {
    let values: Vec<f64> = (0..length).map(|k| ((k * 7) % 11) as f64 - 3.0).collect();
    let format = FormatSpec::parse("dense").unwrap().with_rank(1).unwrap();
    Tensor::from_dense(&[length], values.into(), &format, Value::F64(0.0)).unwrap().cast(dtype)
}

fn values(tensor: &Tensor) -> Vec<Value> {
    let all = tensor.to_dense().unwrap();
    (0..all.len()).map(|k| all.get(k)).collect()
}

/// Compares a program with the interpreter.
fn check(program: &Program, tensors: &[Tensor], what: &str) {
    let operands: Vec<&Tensor> = tensors.iter().collect();
    let found = values(&run(program, &operands));
    let wanted = oracle(program, tensors).unwrap_or_else(|| panic!("{what}: the interpreter cannot say"));
    let wrong = found.iter().zip(&wanted[0]).position(|(a, b)| !a.same_number(*b));
    assert!(found.len() == wanted[0].len() && wrong.is_none(), "{what}: {wrong:?}\n{found:?}\n{:?}", wanted[0]);
}

const SPMV: &str =
    "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";
const BASE: &str =
    "def f(A, X):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * X[1,j]\n    return y\n";
const PATTERN: &str = "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        if A[i,j] != 0:\n            y[i] += x[j]\n    return y\n";

#[test]
fn every_type_and_width() {
    let entries = staircase(43, 37);
    for dtype in [DType::F64, DType::F32, DType::I32, DType::I64, DType::U8, DType::I16, DType::C128] {
        for width in ["", "[u32,u8]", "[u32,u16]", "[u64,u32]", "[u64]"] {
            let a = stored(&entries, &format!("dense, sparse{width}"), dtype);
            for (name, text) in [("product", SPMV), ("sum", PATTERN)] {
                check(&parse(text), &[a.clone(), vector(37, dtype)], &format!("{name} {dtype} {width}"));
            }
        }
    }
}

const BEFORE: &str = "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        if j >= 3:\n            y[i] += A[i,j] * x[j-3]\n    return y\n";
const BACKWARDS: &str =
    "def f(A, x):\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j] * x[36-j]\n    return y\n";

fn number(value: Value) -> f64 {
    match value {
        Value::F64(x) => x,
        Value::F32(x) => f64::from(x),
        other => panic!("{other:?}"),
    }
}

/// The factors of a row per column, and whether the entry contributes more than its presence.
type Reads = (&'static str, &'static str, fn(usize) -> Option<usize>, bool);

/// Lanes that a row leaves empty take nothing, whatever lies where they would look: a row that has
/// no infinite number sums up to a number, and one that has one to that.
#[test]
fn inactive_lanes_are_not_added() {
    let entries = staircase(43, 37);
    let [rows, columns] = [0, 1].map(|k| entries.columns[k].to_vec());
    let ways: [Reads; 4] = [
        ("product", SPMV, Some, false),
        ("sum", PATTERN, Some, true),
        ("before", BEFORE, |j| j.checked_sub(3), false),
        ("backwards", BACKWARDS, |j| Some(36 - j), false),
    ];
    for (width, dtype) in [("", DType::F64), ("", DType::F32), ("[u32,u16]", DType::F64), ("[u64]", DType::F32)] {
        let a = stored(&entries, &format!("dense, sparse{width}"), dtype);
        for at in [0, 5, 12, 36] {
            let mut x: Vec<f64> = (0..37).map(|k| ((k * 7) % 11) as f64 - 3.0).collect();
            x[at] = f64::INFINITY;
            let format = FormatSpec::parse("dense").unwrap().with_rank(1).unwrap();
            let operand = Tensor::from_dense(&[37], x.clone().into(), &format, Value::F64(0.0)).unwrap().cast(dtype);
            for (name, text, place, pattern) in &ways {
                let mut wanted = vec![0.0; 43];
                for (k, (i, j)) in rows.iter().zip(&columns).enumerate() {
                    let Some(place) = place(*j as usize) else { continue };
                    let value = if *pattern { 1.0 } else { number(entries.values.get(k)) };
                    wanted[*i as usize] += value * x[place];
                }
                let got = values(&run(&parse(text), &[&a, &operand]));
                let same = got.iter().zip(&wanted).all(|(got, wanted)| number(*got) == *wanted);
                assert!(same, "{name} {dtype} {width}, infinite at {at}: {got:?} {wanted:?}");
            }
        }
    }
    // Empty rows, and nothing to multiply with.
    let none = || Vec::<u32>::new().into();
    let empty = Coordinates { shape: vec![3, 0], columns: vec![none(), none()], values: Vec::<f64>::new().into() };
    check(&parse(SPMV), &[stored(&empty, "csr", DType::F64), vector(0, DType::F64)], "nothing");
}

/// Rows of equal or almost equal length: their tails are scalar.
#[test]
fn regular_rows() {
    for length in 1..=9u64 {
        for rows in [1, 2, 3, 4, 7, 40] {
            for odd in [false, true] {
                let (mut outer, mut inner, mut values) = (Vec::new(), Vec::new(), Vec::new());
                for i in 0..rows {
                    let longer = u64::from(odd && i % 17 == 5);
                    for k in 0..length + longer {
                        outer.push(i);
                        inner.push(k * 3 + i % 3);
                        values.push(((i * 3 + k * 7) % 9) as f64 + 1.0);
                    }
                }
                let columns = vec![outer.into(), inner.into()];
                let entries = Coordinates { shape: vec![rows, 37], columns, values: values.into() };
                for dtype in [DType::F64, DType::F32, DType::I32] {
                    let a = stored(&entries, "csr", dtype);
                    for text in [SPMV, PATTERN] {
                        let what = format!("{rows} rows of {length}, {odd}, {dtype}");
                        check(&parse(text), &[a.clone(), vector(37, dtype)], &what);
                    }
                }
            }
        }
    }
}

/// Elements after a row may be loaded with it, but are not added, even if they are NaN or infinite.
#[test]
fn over_read_elements_are_not_added() {
    for lengths in [&[2, 3, 1][..], &[1, 5, 2, 7, 3, 6], &[3], &[5], &[4, 4, 1]] {
        let rows = 24u64;
        let (mut outer, mut inner, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..rows {
            for k in 0..lengths[i as usize % lengths.len()] {
                outer.push(i);
                inner.push(2 * k + i % 2);
                values.push(if i % 2 == 1 { f64::NAN } else { (i + k) as f64 });
            }
        }
        let columns = vec![outer.into(), inner.into()];
        let entries = Coordinates { shape: vec![rows, 20], columns, values: values.into() };
        let x: Vec<f64> = (0..20).map(|j| if j % 2 == 1 { f64::INFINITY } else { 1.0 + j as f64 }).collect();
        let format = FormatSpec::parse("dense").unwrap().with_rank(1).unwrap();
        let x = Tensor::from_dense(&[20], x.into(), &format, Value::F64(0.0)).unwrap();
        for format in ["csr", "dense, band", "dense, blocks"] {
            let found = self::values(&run(&parse(SPMV), &[&stored(&entries, format, DType::F64), &x]));
            for (i, value) in found.into_iter().enumerate() {
                // A band stores zeros, which are multiplied by infinities.
                let exact = format == "csr" || lengths.iter().all(|length| *length == 1);
                let Value::F64(value) = value else { panic!("{value}") };
                assert!(i % 2 == 1 || value.is_finite() || !exact, "{format} {lengths:?}: row {i} is {value}");
                assert!(i % 2 == 0 || value.is_nan(), "{format} {lengths:?}: row {i} is {value}");
            }
        }
    }
}

/// A vector with fewer elements than a row has columns: coordinates past the end of the loop are
/// invalid indices.
#[test]
fn vectors_shorter_than_rows() {
    let entries = staircase(43, 37);
    for length in [1, 4, 9, 30] {
        let text = format!(
            "def f(A, x):\n    y = tensor(\"dense\")\n    for i in _:\n        for j in range(0, {length}):\n            y[i] += A[i,j] * x[j]\n    return y\n"
        );
        for format in ["csr", "dcsr", "dense, band", "dense, blocks"] {
            let a = stored(&entries, format, DType::F64);
            check(&parse(&text), &[a, vector(length, DType::F64)], &format!("{format}, {length}"));
        }
    }
}

#[test]
fn computed_subscripts() {
    let a = stored(&staircase(43, 37), "csr", DType::F64);
    let x = Tensor::from_dense(
        &[3, 37],
        (0..111).map(|k| f64::from(k % 13)).collect::<Vec<f64>>().into(),
        &FormatSpec::parse("dense").unwrap().with_rank(2).unwrap(),
        Value::F64(0.0),
    );
    check(&parse(BASE), &[a, x.unwrap()], "a row of a matrix");
}

#[test]
fn blocks_of_any_size() {
    let entries = staircase(43, 37);
    for dtype in [DType::F64, DType::F32, DType::I64] {
        for rows in 1..=5 {
            for columns in [1, 2, 3, 4, 5, 8] {
                let a = stored(&entries, &format!("bsr({rows},{columns})"), dtype);
                check(&parse(SPMV), &[a, vector(37, dtype)], &format!("{rows} x {columns} {dtype}"));
            }
        }
    }
}

/// Row `i` is a contiguous range of `i` elements (up to 75), with a gap in the middle of every
/// third: one block, or two.
fn row_ranges(rows: u64, columns: u64) -> Coordinates {
    let (mut outer, mut inner, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        let (start, length) = ((i * 3) % 11, i % 76);
        for j in start..start + length {
            if i % 3 == 0 && j == start + length / 2 {
                continue;
            }
            outer.push(i);
            inner.push(j);
            values.push(((i * 3 + j * 7) % 9) as f64 + 1.0);
        }
    }
    Coordinates { shape: vec![rows, columns], columns: vec![outer.into(), inner.into()], values: values.into() }
}

const TOTAL: &str = "def f(A, x):\n    s = scalar(0)\n    for i, j in _:\n        s += A[i,j] * x[j]\n    return s\n";
const TWO: &str = "def f(A, x):\n    s = scalar(0)\n    t = scalar(0)\n    for i, j in _:\n        s += A[i,j] * x[j]\n        t -= A[i,j]\n    return s, t\n";

#[test]
fn contiguous_ranges_of_any_length() {
    let entries = row_ranges(90, 90);
    for dtype in [DType::F64, DType::F32, DType::I32, DType::I64, DType::I16] {
        for format in ["dense, band", "dense, blocks", "dense", "blocks, blocks", "dense, sparse"] {
            let a = stored(&entries, format, dtype);
            for (name, text) in [("rows", SPMV), ("total", TOTAL), ("two totals", TWO)] {
                check(&parse(text), &[a.clone(), vector(90, dtype)], &format!("{name} {dtype} {format}"));
            }
        }
    }
}

/// Rows of 85 to 300 elements: enough for several aligned vectors per iteration.
#[test]
fn long_contiguous_ranges() {
    let (mut outer, mut inner, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..216u64 {
        let length = if i < 176 { 85 + i } else { 324 + i };
        for j in (i * 31) % 40..(i * 31) % 40 + length {
            outer.push(i);
            inner.push(j);
            values.push(((i * 3 + j * 7) % 9) as f64 - 3.0);
        }
    }
    let entries =
        Coordinates { shape: vec![216, 580], columns: vec![outer.into(), inner.into()], values: values.into() };
    for dtype in [DType::F64, DType::F32, DType::I32, DType::I64] {
        for format in ["dense, band", "dense, blocks", "blocks, blocks"] {
            let a = stored(&entries, format, dtype);
            for (name, text) in [("rows", SPMV), ("two totals", TWO)] {
                check(&parse(text), &[a.clone(), vector(580, dtype)], &format!("{name} {dtype} {format}"));
            }
        }
    }
}

/// Rounding does not depend on alignment: the same values at another address have the same sum.
#[test]
fn sums_do_not_depend_on_alignment() {
    let entries = gallery::generate("triangular(540)").unwrap();
    let numbers: Vec<f64> = (0..entries.len() as u64).map(|k| 1.0 / (1 + k * 7919 % 1009) as f64).collect();
    let entries = Coordinates { values: numbers.into(), ..entries };
    let x: Vec<f64> = (0..540).map(|k| 1.0 / (3 + k * 31 % 97) as f64).collect();
    let x = Tensor::from_dense(
        &[540],
        x.into(),
        &FormatSpec::parse("dense").unwrap().with_rank(1).unwrap(),
        Value::F64(0.0),
    );
    let x = x.unwrap();
    for dtype in [DType::F64, DType::F32] {
        let (a, x) = (stored(&entries, "dense, band", dtype), x.cast(dtype));
        let wanted = values(&run(&parse(SPMV), &[&a, &x]));
        for shift in 1..17usize {
            let moved = match a.values().unwrap() {
                ValueArray::F64(all) => ValueArray::F64(elsewhere(all, shift)),
                ValueArray::F32(all) => ValueArray::F32(elsewhere(all, shift)),
                _ => panic!("other values"),
            };
            let moved = a.with_values(moved, Value::F64(0.0)).unwrap();
            let got = values(&run(&parse(SPMV), &[&moved, &x]));
            assert!(wanted.iter().zip(&got).all(|(a, b)| a == b), "{dtype}, {shift} elements on");
        }
    }
}

/// The same values, at an offset from an aligned address.
fn elsewhere<T: Copy + Send + Sync + 'static>(all: &[T], shift: usize) -> Buffer<T> {
    let larger: Box<Vec<T>> = Box::new(all[..shift].iter().chain(all).copied().collect());
    let place = larger[shift..].as_ptr();
    // SAFETY: the vector holds as many after the first ones, and moves with its owner alone.
    unsafe { Buffer::from_foreign(place, all.len(), larger) }
}

#[test]
fn lists_larger_than_the_caches() {
    // More than two million entries, five in most rows: later rows are prefetched.
    let entries = gallery::generate("laplacian(660)").unwrap();
    let (rows, count) = (660 * 660, entries.len());
    assert!(count > 2_150_000);
    let a = stored(&entries, "csr", DType::F64);
    let ones = Tensor::from_dense(
        &[rows],
        vec![1.0; rows as usize].into(),
        &FormatSpec::parse("dense").unwrap().with_rank(1).unwrap(),
        Value::F64(0.0),
    );
    let y = values(&run(&parse(SPMV), &[&a, &ones.unwrap()]));
    // Neighbours outside the grid are missing: boundary rows sum to 1, corner rows to 2, all others
    // to 0.
    let (side, last) = (660u64, 659u64);
    for (k, value) in y.iter().enumerate() {
        let (r, c) = (k as u64 / side, k as u64 % side);
        let missing = u8::from(r == 0) + u8::from(r == last) + u8::from(c == 0) + u8::from(c == last);
        assert!(value.same_number(Value::F64(f64::from(missing))), "row {k}: {value:?}");
    }
}
