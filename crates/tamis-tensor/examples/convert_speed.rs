//! Benchmark of conversions of a 5-point Laplacian with a million rows: `cargo run --release
//! --example convert_speed`.
//!
//! A word as argument selects the conversions whose name contains it. Set `RAYON_NUM_THREADS=1` for
//! single-threaded times. The same with SciPy: `A.tocsc()`, `A.tocoo().tocsr()`.

use std::time::{Duration, Instant};
use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, Tensor};

const SIDE: u32 = 1000;

fn laplacian() -> Coordinates {
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for y in 0..SIDE {
        for x in 0..SIDE {
            let row = y * SIDE + x;
            let mut push = |inside: bool, column: u32, value: f64| {
                if inside {
                    rows.push(row);
                    columns.push(column);
                    values.push(value);
                }
            };
            push(y > 0, row.wrapping_sub(SIDE), -1.0);
            push(x > 0, row.wrapping_sub(1), -1.0);
            push(true, row, 4.0);
            push(x + 1 < SIDE, row + 1, -1.0);
            push(y + 1 < SIDE, row + SIDE, -1.0);
        }
    }
    let n = (SIDE * SIDE) as u64;
    Coordinates { shape: vec![n, n], columns: vec![rows.into(), columns.into()], values: values.into() }
}

/// The same entries in a random order without locality.
fn shuffled(entries: &Coordinates) -> Coordinates {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for k in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(k, (state % (k as u64 + 1)) as usize);
    }
    let take = |d: usize| order.iter().map(|e| entries.columns[d].get(*e) as u32).collect::<Vec<u32>>().into();
    let values: Vec<f64> = order.iter().map(|e| entries.values.get(*e).as_c128().re).collect();
    Coordinates { shape: entries.shape.clone(), columns: vec![take(0), take(1)], values: values.into() }
}

fn time<T>(name: &str, mut run: impl FnMut() -> T) -> T {
    let mut best = Duration::MAX;
    let result = run();
    if std::env::args().nth(1).is_some_and(|wanted| !name.contains(&wanted)) {
        return result;
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed());
    }
    println!("{name:28} {:8.2} ms", best.as_secs_f64() * 1e3);
    result
}

fn main() -> Result<(), tamis_ir::Diagnostic> {
    let entries = laplacian();
    let mixed = shuffled(&entries);
    let zero = Value::F64(0.0);
    let (csr, csc, coo) = (Format::csr(), Format::csc(), Format::coo(2));
    println!("{} entries, {} threads", entries.len(), rayon::current_num_threads());
    time("sorted coordinates to CSR", || Tensor::from_coordinates(&entries, &csr, zero, Combine::Sum))?;
    let a = time("shuffled coordinates to CSR", || Tensor::from_coordinates(&mixed, &csr, zero, Combine::Sum))?;
    time("shuffled coordinates to CSC", || Tensor::from_coordinates(&mixed, &csc, zero, Combine::Sum))?;
    time("shuffled coordinates to DCSR", || {
        Tensor::from_coordinates(&mixed, &Format::parse("dcsr", 2)?, zero, Combine::Sum)
    })?;
    let b = time("CSR to CSC", || a.convert(&csc))?;
    time("CSC to CSR", || b.convert(&csr))?;
    let c = time("CSR to COO", || a.convert(&coo))?;
    time("COO to CSR", || c.convert(&csr))?;
    time("COO to CSC", || c.convert(&csc))?;
    let scattered =
        Coordinates { columns: vec![entries.columns[0].clone(), mixed.columns[1].clone()], ..entries.clone() };
    let r = Tensor::from_coordinates(&scattered, &csr, zero, Combine::Sum)?;
    time("random CSR to CSC", || r.convert(&csc))?;
    time("CSR to DCSR", || a.convert(&Format::parse("dcsr", 2)?))?;
    time("CSR to CSR through parts", || {
        let levels = vec![a.level_arrays(0), a.level_arrays(1)];
        Tensor::from_parts(a.shape(), &csr, levels, a.values().cloned(), zero)
    })?;
    let n = 3000u64;
    let dense: Vec<f64> = (0..n * n).map(|k| if k % 17 == 0 { k as f64 } else { 0.0 }).collect();
    let d = Tensor::from_dense(&[n, n], dense.into(), &Format::dense(2), zero)?;
    let column_major = Format::parse("(i,j) -> (j,i): dense, dense", 2)?;
    time("dense 3000x3000 to CSR", || d.convert(&csr))?;
    time("dense 3000x3000 to CSC", || d.convert(&csc))?;
    time("dense 3000x3000 transposed", || d.convert(&column_major))?;
    let s = d.convert(&csr)?;
    time("CSR 3000x3000 to dense", || s.convert(&Format::dense(2)))?;
    Ok(())
}
