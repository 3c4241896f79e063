//! Benchmark of conversions between structured formats: `cargo run --release --example
//! structured_speed`.
//!
//! An image of 10,000 x 10,000 pixels in about 100,000 runs, a banded matrix, and a matrix of 4 x 4
//! blocks.

use std::time::{Duration, Instant};
use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, LevelArrays, Tensor};

fn format(text: &str) -> Format {
    Format::parse(text, 2).unwrap_or_else(|d| panic!("{text}: {d}"))
}

fn time(name: &str, mut run: impl FnMut() -> Tensor) -> Tensor {
    let result = run();
    let (begin, mut best, mut iterations) = (Instant::now(), Duration::MAX, 0);
    while iterations < 3 || (begin.elapsed() < Duration::from_secs(1) && iterations < 100) {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed());
        iterations += 1;
    }
    println!("{name:60} {:10.3} ms", best.as_secs_f64() * 1e3);
    result
}

/// Ten runs in each row, at random columns.
fn image() -> Tensor {
    let (n, per_row) = (10_000u32, 10u32);
    let (mut pos, mut end, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in 0..n {
        for k in 1..=per_row {
            end.push(if k == per_row { n } else { k * (n / per_row) - (row * 7 + k * 13) % 500 });
            values.push(if (row / 3 + k) % 3 == 0 { 0u8 } else { (k * 20) as u8 });
        }
        pos.push(end.len() as u32);
    }
    let runs = LevelArrays::new([("pos", pos.into()), ("end", end.into())]);
    let shape = [u64::from(n), u64::from(n)];
    Tensor::from_parts(
        &shape,
        &format("dense, runs"),
        vec![LevelArrays::default(), runs],
        Some(values.into()),
        Value::U8(0),
    )
    .unwrap_or_else(|d| panic!("{d}"))
}

/// A banded matrix with all of these diagonals.
fn banded(n: u32, half: u32) -> Coordinates {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(half)..n.min(i + half + 1) {
            rows.push(i);
            columns.push(j);
        }
    }
    let values: Vec<f64> = (0..rows.len()).map(|k| 1.0 + (k % 7) as f64).collect();
    Coordinates { shape: vec![n as u64; 2], columns: vec![rows.into(), columns.into()], values: values.into() }
}

/// Blocks of 4 x 4, five in each row of blocks.
fn blocked(n: u32) -> Coordinates {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for i in 0..n {
        for b in 0..5u32 {
            let block = ((i / 4).wrapping_mul(2654435761) >> 8).wrapping_add(b * (n / 20)) % (n / 4);
            for j in 0..4 {
                rows.push(i);
                columns.push(block * 4 + j);
            }
        }
    }
    let values: Vec<f64> = (0..rows.len()).map(|k| 1.0 + (k % 7) as f64).collect();
    Coordinates { shape: vec![n as u64; 2], columns: vec![rows.into(), columns.into()], values: values.into() }
}

fn main() {
    let convert = |tensor: &Tensor, text: &str| {
        let to = format(text);
        let name = format!("{} -> {to}", tensor.format());
        time(&name, || tensor.convert(&to).unwrap_or_else(|d| panic!("{name}: {d}")))
    };
    let runs = image();
    println!("image: {}", runs.summary());
    let sparse_runs = convert(&runs, "dense, sparse_runs");
    convert(&sparse_runs, "dense, runs");
    let both = convert(&runs, "runs, runs");
    convert(&both, "dense, sparse_runs");
    convert(&sparse_runs, "sparse_runs, sparse_runs");
    let dense = convert(&runs, "dense, dense");
    convert(&dense, "dense, runs");
    convert(&dense, "dense, sparse_runs");
    convert(&dense, "runs, runs");
    let csr = convert(&sparse_runs, "csr");
    convert(&csr, "dense, sparse_runs");

    for (name, entries) in [("banded", banded(200_000, 10)), ("blocked", blocked(200_000))] {
        let csr = Tensor::from_coordinates(&entries, &Format::csr(), Value::F64(0.0), Combine::Sum);
        let csr = csr.unwrap_or_else(|d| panic!("{d}"));
        println!("{name}: {}", csr.summary());
        let blocks = convert(&csr, "dense, blocks");
        convert(&blocks, "csr");
        if name == "banded" {
            let band = convert(&csr, "dense, band");
            convert(&band, "csr");
            continue;
        }
        let bsr = convert(&csr, "bsr(4,4)");
        convert(&bsr, "csr");
        convert(&bsr, "bsr(2,2)");
        let coo = convert(&csr, "coo");
        convert(&coo, "bsr(4,4)");
    }
}
