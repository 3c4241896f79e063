//! Tests of instrumentation on small kernels, run by the kernel interpreter.

use super::{Counts, instrument, nests, prefix};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{Array, BufferId, Builder, Elem, Kernel, Memory, Origin, Role, Stmt, run, run_counted};
use tamis_ir::{Value, kernel};

/// `x`, `y` and the counters.
fn buffers(b: &mut Builder) -> (BufferId, BufferId, BufferId) {
    let float = Elem::Value(DType::F64);
    let (x, y) = (b.buffer("x", float, Role::Input), b.buffer("y", float, Role::Output));
    (x, y, b.buffer("counts", Elem::Value(DType::I64), Role::Output))
}

fn memory(kernel: &Kernel, x: &[f64]) -> Memory {
    let mut arrays = vec![Array::default(); kernel.buffers.len()];
    arrays[0] = Array::from_values(x.iter().map(|x| Value::F64(*x)));
    arrays[1] = Array::from_values([Value::F64(0.0)]);
    Memory { arrays, scalars: vec![Value::I64(x.len() as i64)] }
}

/// The counts, after a comparison with those of the interpreter.
fn counted(kernel: &Kernel, counters: BufferId, indices: usize, x: &[f64]) -> Counts {
    let (with, counting) = instrument(kernel, counters, indices);
    with.verify().unwrap_or_else(|wrong| panic!("{wrong}\n{with}"));
    let after = run(&with, memory(&with, x), 100_000).unwrap_or_else(|failure| panic!("{failure:?}\n{with}"));
    let found: Vec<i64> = after.arrays[counters.index()].values().iter().filter_map(|v| v.as_i64()).collect();
    assert_eq!(found.len(), counting.len);
    let counts = counting.read(kernel, &found);
    let (before, interpreted): (Memory, kernel::ExecutionCounts) =
        run_counted(kernel, memory(kernel, x), 100_000).unwrap();
    assert_eq!(counts.executed, interpreted, "{with}");
    assert_eq!(before.arrays[1], after.arrays[1], "{with}");
    counts
}

/// Sums elements up to the first negative one.
fn until_negative() -> (Kernel, BufferId) {
    let mut b = Builder::new("f");
    let (x, y, counters) = buffers(&mut b);
    let n = b.param("n", DType::I64);
    let (zero, n) = (b.int(0), b.get(n));
    let sum = b.variable("sum", Value::F64(0.0));
    b.labelled(|b, done| {
        b.count("i", zero, n, |b, i| {
            let (value, nothing) = (b.load(x, i), b.constant(Value::F64(0.0)));
            let negative = b.call(Op::Lt, &[value, nothing]);
            b.branch(negative, |b| b.emit(Stmt::Break(done)), |_| {});
            let so_far = b.get(sum);
            let more = b.call(Op::Add, &[so_far, value]);
            b.assign(sum, more);
        });
        let (so_far, two) = (b.get(sum), b.constant(Value::F64(2.0)));
        let twice = b.call(Op::Mul, &[so_far, two]);
        b.assign(sum, twice);
    });
    let sum = b.get(sum);
    b.store(y, zero, sum);
    (b.finish(), counters)
}

#[test]
fn loops_that_are_left_are_counted_as_far_as_they_go() {
    let (kernel, counters) = until_negative();
    for x in [&[1.0, 2.0, -1.0, 4.0][..], &[1.0, 2.0], &[-1.0], &[]] {
        let counts = counted(&kernel, counters, 1, x);
        let iterations = x.iter().position(|x| *x < 0.0).map_or(x.len(), |k| k + 1) as u64;
        assert_eq!(counts.outside.parts[0].iterations, iterations, "{x:?}");
    }
}

#[test]
fn walks_conditions_and_fixed_loops() {
    let mut b = Builder::new("f");
    let (x, y, counters) = buffers(&mut b);
    let n = b.param("n", DType::I64);
    let (zero, one, three, n) = (b.int(0), b.int(1), b.int(3), b.get(n));
    let q = b.variable("q", Value::I64(0));
    b.set_origin(q, Some(Origin { index: 0, visits: false }));
    let place = b.get(q);
    let cond = b.call(Op::Lt, &[place, n]);
    let body = b.block(|b| {
        let (value, limit) = (b.load(x, place), b.constant(Value::F64(1.5)));
        let large = b.call(Op::Gt, &[value, limit]);
        b.branch(
            large,
            |b| {
                b.count("k", zero, three, |b, _| {
                    let (so_far, value) = (b.load(y, zero), b.load(x, place));
                    let sum = b.call(Op::Add, &[so_far, value]);
                    b.store(y, zero, sum);
                });
            },
            |_| {},
        );
        let next = b.add(place, one);
        b.assign(q, next);
    });
    b.emit(Stmt::While { cond, body });
    let kernel = b.finish();
    let counts = counted(&kernel, counters, 1, &[1.0, 2.0, 3.0, 0.0]);
    let found = &counts.loops[0];
    assert_eq!((found.steps, found.visits), (4, 0), "a walk has steps; visits have counters of their own");
    // The fixed loop has no origin, so it belongs to the enclosing co-iteration loop.
    assert_eq!((found.parts[1].entered, found.parts[1].iterations), (2, 6));
    let traffic = |buffer: BufferId| found.traffic[&buffer];
    assert_eq!((traffic(x).loads, traffic(y).loads, traffic(y).stores), (4 + 6, 6, 6));
    let (with, _) = instrument(&kernel, counters, 1);
    let mut added = 0;
    with.visit(&mut |stmt| added += usize::from(matches!(stmt, Stmt::For { body, .. } if body.len() != 1)));
    assert_eq!(added, 0, "nothing is added to a loop whose iterations are known:\n{with}");
}

#[test]
fn a_kernel_stops_early_with_what_it_has() {
    let (kernel, _) = until_negative();
    let found = nests(&kernel);
    assert_eq!((found.len(), found[0].first, found[0].stop), (1, 1, 3));
    // The store after the loop uses the sum.
    let short = prefix(&kernel, 2);
    short.verify().unwrap_or_else(|wrong| panic!("{wrong}\n{short}"));
    let after = run(&short, memory(&short, &[1.0, 2.0]), 1000).unwrap();
    assert_eq!(after.arrays[1].get(0), Some(Value::F64(0.0)));
    assert_eq!(after.arrays.last().and_then(|kept| kept.get(0)), Some(Value::F64(6.0)));
}
