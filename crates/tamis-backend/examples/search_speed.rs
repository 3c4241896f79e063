//! Benchmark of galloping search: time per search by distance of the key, in machine code, and by
//! plain bisection in Rust.
//!
//!     cargo run --release -p tamis-backend --example search_speed

use std::hint::black_box;
use std::time::Instant;
use tamis_backend::RawBuffer;
use tamis_backend::llvm::{self, CodegenOptions};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{Builder, Elem, Kernel, Role};
use tamis_ir::{DType, Value};

/// Searches every key from the position of the previous one; returns the sum of all positions.
fn kernel() -> Kernel {
    let mut b = Builder::new("search");
    let crd = b.buffer("crd", Elem::Index(Width::U32), Role::Input);
    let keys = b.buffer("keys", Elem::Index(Width::U32), Role::Input);
    let out = b.buffer("sum", Elem::Value(DType::I64), Role::Output);
    let (n, count) = (b.param("n", DType::I64), b.param("count", DType::I64));
    let (zero, n, count) = (b.int(0), b.get(n), b.get(count));
    let (sum, at) = (b.variable("total", Value::I64(0)), b.variable("at", Value::I64(0)));
    b.count("k", zero, count, |b, k| {
        let (key, from) = (b.load(keys, k), b.get(at));
        let found = b.search("found", crd, from, n, key);
        b.assign(at, found);
        let so_far = b.get(sum);
        let more = b.call(Op::Add, &[so_far, found]);
        b.assign(sum, more);
    });
    let total = b.get(sum);
    b.store(out, zero, total);
    b.finish()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let crd: Vec<u32> = (0..8_000_000u32).map(|k| 3 * k).collect();
    let compiled = llvm::compile(&kernel(), &CodegenOptions::host().unwrap()).unwrap();
    for gap in [1usize, 4, 16, 64, 1024, 65_536, 1_000_000] {
        let keys: Vec<u32> = (0..crd.len() / gap).take(100_000).map(|k| (3 * k * gap) as u32).collect();
        let mut sum = [0i64];
        let scalars = [Value::I64(crd.len() as i64), Value::I64(keys.len() as i64)];
        let mut buffers = [RawBuffer::input(&crd), RawBuffer::input(&keys), RawBuffer::output(&mut sum)];
        let (mut ours, mut halving) = (Vec::new(), Vec::new());
        let mut expected = 0;
        for _ in 0..15 {
            let start = Instant::now();
            // SAFETY: the arrays have the kernel's types, and outlive the call.
            unsafe { compiled.call(&mut buffers, &scalars) }.unwrap();
            ours.push(start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64);
            let start = Instant::now();
            let (mut at, mut total) = (0, 0);
            for key in &keys {
                at += black_box(&crd[at..]).partition_point(|c| c < key);
                total += at as i64;
            }
            expected = black_box(total);
            halving.push(start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64);
        }
        assert_eq!(sum[0], expected);
        println!("{gap:>8} further: {:>7.1} ns, halving {:>7.1} ns", median(ours), median(halving));
    }
}
