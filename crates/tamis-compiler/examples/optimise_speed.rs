//! Benchmark of the optimiser, pass by pass, for kernels of growing size.
//!
//!     cargo run --release -p tamis-compiler --example optimise_speed

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tamis_compiler::opt::{Options, optimise, optimise_with};
use tamis_ir::DType;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::format::Width;
use tamis_ir::kernel::{Builder, Elem, Kernel, Role, Stmt};

/// So many merges of two sparse lists into a third, one after the other, each written as it is
/// lowered.
fn merges(count: usize) -> Kernel {
    let mut b = Builder::new("merges");
    let index = Elem::Index(Width::U32);
    let n = b.param("n", DType::I64);
    let (zero, one, n) = (b.int(0), b.int(1), b.get(n));
    for k in 0..count {
        let name = |array: &str, tensor: &str| format!("{tensor}{k}_{array}");
        let lists: Vec<_> = ["A", "B"]
            .map(|tensor| {
                let pos = b.buffer(name("pos", tensor), index, Role::Input);
                let crd = b.buffer(name("crd", tensor), index, Role::Input);
                (pos, crd, b.buffer(name("values", tensor), Elem::Value(DType::F64), Role::Input))
            })
            .into();
        let crd = b.buffer(name("crd", "C"), index, Role::Output);
        let values = b.buffer(name("values", "C"), Elem::Value(DType::F64), Role::Output);
        let length = b.variable("count", Value::I64(0));
        b.count("i", zero, n, |b, i| {
            let next = b.add(i, one);
            let mut ends = Vec::new();
            for (pos, ..) in &lists {
                let (start, stop) = (b.load(*pos, i), b.load(*pos, next));
                let (start, stop) = (b.name("start", start), b.name("stop", stop));
                ends.push((b.variable_from("q", start), stop));
            }
            let conditions = [0, 1].map(|k| {
                let q = b.get(ends[k].0);
                b.call(Op::Lt, &[q, ends[k].1])
            });
            let cond = b.call(Op::And, &conditions);
            let body = b.block(|b| {
                let places = [0, 1].map(|k| b.get(ends[k].0));
                let coordinates = [0, 1].map(|k| {
                    let c = b.load(lists[k].1, places[k]);
                    b.name("c", c)
                });
                let j = b.call(Op::Min, &coordinates);
                let j = b.name("j", j);
                let present = coordinates.map(|c| {
                    let same = b.call(Op::Eq, &[c, j]);
                    b.name("present", same)
                });
                let dirty = b.variable("dirty", Value::Bool(false));
                let value = b.variable("value", Value::F64(0.0));
                let (yes, nothing) = (b.constant(Value::Bool(true)), b.constant(Value::F64(0.0)));
                let either = b.call(Op::Select, &[present[0], yes, present[1]]);
                let terms = [0, 1].map(|k| {
                    let element = b.load(lists[k].2, places[k]);
                    b.call(Op::Select, &[present[k], element, nothing])
                });
                let sum = b.call(Op::Add, &terms);
                b.branch(
                    either,
                    |b| {
                        b.assign(dirty, yes);
                        b.assign(value, sum);
                    },
                    |_| {},
                );
                let flag = b.get(dirty);
                b.branch(
                    flag,
                    |b| {
                        let place = b.get(length);
                        let next = b.add(place, one);
                        let value = b.get(value);
                        for (buffer, value) in [(values, value), (crd, j)] {
                            b.emit(Stmt::Grow { buffer, len: next, fill: None });
                            b.store(buffer, place, value);
                        }
                        b.assign(length, next);
                    },
                    |_| {},
                );
                for k in 0..2 {
                    let next = b.add(places[k], one);
                    let next = b.call(Op::Select, &[present[k], next, places[k]]);
                    b.assign(ends[k].0, next);
                }
            });
            b.emit(Stmt::While { cond, body });
        });
    }
    b.finish()
}

fn main() {
    let options = Options::default();
    for count in [1, 8, 64, 512] {
        let kernel = merges(count);
        let rounds = 400 / count.min(100) + 1;
        let mut passes: BTreeMap<&str, Duration> = BTreeMap::new();
        let mut best = Duration::MAX;
        for _ in 0..rounds {
            let copy = kernel.clone();
            let start = Instant::now();
            let _ = optimise(copy, &options);
            best = best.min(start.elapsed());
        }
        let after = optimise_with(kernel.clone(), &options, |name, time, _| *passes.entry(name).or_default() += time);
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!("{:>6} statements become {:>6}: {:>9.1} µs", kernel.size(), after.size(), micros(best));
        let each: Vec<String> = passes.iter().map(|(name, time)| format!("{name} {:.0}", micros(*time))).collect();
        println!("       {}", each.join(", "));
    }
}
