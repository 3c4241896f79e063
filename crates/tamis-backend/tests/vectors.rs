//! Differential tests of explicit vectorisation against the interpreter: every type, and lengths
//! around the vector widths.

use crate::common::{run_llvm, same};
use tamis_backend::{CodegenOptions, llvm};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Array, Builder, Elem, ExprId, Hint, Kernel, Memory, Role, Stmt, run};
use tamis_ir::{DType, Value};

/// Fills `z`, updates `y` in a loop that starts at `from`, and computes two reductions, one of
/// which subtracts.
fn kernel(dtype: DType) -> Kernel {
    let mut b = Builder::new("vectors");
    let x = b.buffer("x", Elem::Value(dtype), Role::Input);
    let y = b.buffer("y", Elem::Value(dtype), Role::Output);
    let z = b.buffer("z", Elem::Value(dtype), Role::Output);
    let sums = b.buffer("sums", Elem::Value(dtype), Role::Output);
    let (from, to) = (b.param("from", DType::I64), b.param("to", DType::I64));
    let (zero, one, start, stop) = (b.int(0), b.int(1), b.get(from), b.get(to));
    let three = b.constant(Value::I64(3).cast(dtype));
    let hint = Hint { vectorise: true, ..Hint::default() };
    let len = b.call(Op::Sub, &[stop, start]);
    b.emit(Stmt::Fill { buffer: z, start, len, value: three });
    let k = b.new_var("k", DType::I64, false);
    let index = b.get(k);
    let body = b.block(|b| {
        let place = b.add(one, index);
        let place = b.name("place", place);
        let (old, new) = (b.load(y, place), b.load(x, index));
        let factor = b.load(x, zero);
        let product = b.call(Op::Mul, &[new, factor]);
        let twice = b.call(Op::Add, &[product, product]);
        let more = b.call(Op::Sub, &[old, twice]);
        let most = b.call(Op::Max, &[more, three]);
        let least = b.call(Op::Min, &[most, new]);
        b.store(y, place, least);
    });
    b.emit(Stmt::For { var: k, start, stop, body, hint });
    let (up, down) = (b.variable("up", Value::I64(1).cast(dtype)), b.variable("down", Value::I64(9).cast(dtype)));
    let q = b.new_var("q", DType::I64, false);
    let index = b.get(q);
    let body = b.block(|b| {
        let (a, c) = (b.load(x, index), b.load(z, index));
        let product = b.call(Op::Mul, &[a, c]);
        let so_far = b.get(up);
        let sum = b.call(Op::Add, &[product, so_far]);
        b.assign(up, sum);
        let so_far = b.get(down);
        let rest = b.call(Op::Sub, &[so_far, a]);
        b.assign(down, rest);
    });
    b.emit(Stmt::For { var: q, start, stop, body, hint });
    let (up, down) = (b.get(up), b.get(down));
    b.store(sums, zero, up);
    b.store(sums, one, down);
    b.finish()
}

fn memory(dtype: DType, size: usize, from: i64, to: i64) -> Memory {
    // Small integers, so that float sums are exact in any order.
    let numbers =
        |factor: usize| Array::from_values((0..size).map(|k| Value::I64((k * factor % 7) as i64).cast(dtype)));
    let arrays = vec![numbers(3), numbers(5), numbers(1), numbers(1)];
    Memory { arrays, scalars: vec![Value::I64(from), Value::I64(to)] }
}

#[test]
fn vector_loops_match_the_interpreter() {
    let types = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64];
    for dtype in types.into_iter().chain([DType::F32, DType::F64]) {
        let kernel = kernel(dtype);
        kernel.verify().unwrap();
        for options in [CodegenOptions::host().unwrap(), CodegenOptions::host().unwrap().checked()] {
            let texts = llvm::listings(&kernel, &options).unwrap();
            assert_eq!(texts.emitted.contains("shufflevector"), !options.check, "{dtype}:\n{}", texts.emitted);
            for (from, to) in [(0, 0), (5, 2), (0, 1), (0, 7), (3, 67), (0, 64), (1, 130), (2, 255), (0, 600)] {
                let memory = memory(dtype, 640, from, to);
                let expected = run(&kernel, memory.clone(), 100_000).unwrap();
                let after = run_llvm(&kernel, memory, &options).unwrap();
                same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{dtype}, {from}..{to}: {wrong}"));
            }
        }
    }
}

/// Loop-carried dependences through memory are respected, whatever the hint says.
#[test]
fn dependent_iterations_are_not_vectorised() {
    let mut b = Builder::new("running");
    let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
    let (one, stop) = (b.int(1), b.int(200));
    let k = b.new_var("k", DType::I64, false);
    let index = b.get(k);
    let body = b.block(|b| {
        let before = b.call(Op::Sub, &[index, one]);
        let (last, own) = (b.load(y, before), b.load(y, index));
        let sum = b.call(Op::Add, &[last, own]);
        b.store(y, index, sum);
    });
    b.emit(Stmt::For { var: k, start: one, stop, body, hint: Hint { vectorise: true, ..Hint::default() } });
    let kernel = b.finish();
    let memory = Memory { arrays: vec![Array::from_values((0..200).map(Value::I64))], scalars: Vec::new() };
    let expected = run(&kernel, memory.clone(), 100_000).unwrap();
    let after = run_llvm(&kernel, memory, &CodegenOptions::host().unwrap()).unwrap();
    same(&expected, &after, &kernel).unwrap();
}

/// `y[from..from + width] += x[..]` through a tile of 16, of which `width` elements are used.
fn partial(dtype: DType) -> Kernel {
    let mut b = Builder::new("partial");
    let x = b.buffer("x", Elem::Value(dtype), Role::Input);
    let y = b.buffer("y", Elem::Value(dtype), Role::Output);
    let tile = b.buffer("tile", Elem::Value(dtype), Role::Tile(16));
    let (from, width, iterations) =
        (b.param("from", DType::I64), b.param("width", DType::I64), b.param("iterations", DType::I64));
    let (zero, from, width, iterations) = (b.int(0), b.get(from), b.get(width), b.get(iterations));
    let over = |b: &mut Builder, body: &dyn Fn(&mut Builder, ExprId)| {
        let var = b.new_var("k", DType::I64, false);
        let k = b.get(var);
        let body = b.block(|b| body(b, k));
        b.emit(Stmt::For { var, start: zero, stop: width, body, hint: Hint { vectorise: true, ..Hint::default() } });
    };
    over(&mut b, &|b, k| {
        let place = b.add(from, k);
        let old = b.load(y, place);
        b.store(tile, k, old);
    });
    b.count("q", zero, iterations, |b, q| {
        over(b, &|b, k| {
            let place = b.add(q, k);
            let (so_far, more) = (b.load(tile, k), b.load(x, place));
            let sum = b.call(Op::Add, &[so_far, more]);
            b.store(tile, k, sum);
        });
    });
    over(&mut b, &|b, k| {
        let place = b.add(from, k);
        let sum = b.load(tile, k);
        b.store(y, place, sum);
    });
    b.finish()
}

/// Inactive lanes of a tile are neither read nor written: the arrays end with the last element.
#[test]
fn partial_tiles_are_masked() {
    for dtype in [DType::I8, DType::I16, DType::I32, DType::U64, DType::F32, DType::F64, DType::C128] {
        let kernel = partial(dtype);
        kernel.verify().unwrap();
        let options = CodegenOptions::host().unwrap();
        let emitted = llvm::listings(&kernel, &options).unwrap().emitted;
        let tile = emitted.contains("masked.store");
        assert!(tile <= (dtype.size() >= 4), "{dtype}:\n{emitted}");
        for width in -2..=16_i64 {
            let (iterations, from) = (5, 3);
            let size = (from + width.max(0)) as usize;
            let numbers = |count: usize| Array::from_values((0..count).map(|k| Value::I64((k % 7) as i64).cast(dtype)));
            let arrays = vec![numbers((iterations + width.max(1) - 1) as usize), numbers(size), numbers(0)];
            let scalars = [from, width, iterations].map(Value::I64).to_vec();
            let memory = Memory { arrays, scalars };
            let expected = run(&kernel, memory.clone(), 100_000).unwrap();
            for options in [options.clone(), options.clone().checked()] {
                let after = run_llvm(&kernel, memory.clone(), &options).unwrap();
                same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{dtype}, {width}: {wrong}"));
            }
        }
    }
}

/// Rows of `x` delimited by `pos`, each summed by nested loops. The kind of other accesses decides
/// whether the accumulator can outlive the inner loops.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SumUse {
    /// No other accesses.
    Alone,
    /// The sum is read after each row.
    Read,
    /// A second loop subtracts from it.
    BothWays,
    /// A sign breaks out of all rows.
    BreaksAll,
    /// A sign breaks out of a row, and the next one follows.
    BreakRow,
    /// The loop over rows ends when the sum is large.
    Bounded,
}

fn rows(dtype: DType, kind: SumUse) -> Kernel {
    let mut b = Builder::new("rows");
    let pos = b.buffer("pos", Elem::Index(tamis_ir::format::Width::U32), Role::Input);
    let x = b.buffer("x", Elem::Value(dtype), Role::Input);
    let sums = b.buffer("sums", Elem::Value(dtype), Role::Output);
    let (zero, one, stop) = (b.int(0), b.int(1), b.int(9));
    let hint = Hint { vectorise: true, ..Hint::default() };
    let (up, down) = (b.variable("up", Value::I64(1).cast(dtype)), b.variable("down", Value::I64(9).cast(dtype)));
    let mut label = None;
    b.block(|b| b.labelled(|_, made| label = Some(made)));
    let label = label.unwrap();
    let i = b.variable("i", Value::I64(0));
    let row = b.get(i);
    let inner = |b: &mut Builder, takes: bool| {
        let next = b.add(row, one);
        let (start, stop) = (b.load(pos, row), b.load(pos, next));
        let q = b.new_var("q", DType::I64, false);
        let index = b.get(q);
        let body = b.block(|b| {
            let (a, so_far, rest) = (b.load(x, index), b.get(up), b.get(down));
            let square = b.call(Op::Mul, &[a, a]);
            let op = if takes { Op::Sub } else { Op::Add };
            let sum = b.call(op, &[so_far, square]);
            b.assign(up, sum);
            let rest = b.call(Op::Sub, &[rest, a]);
            b.assign(down, rest);
        });
        b.emit(Stmt::For { var: q, start, stop, body, hint });
    };
    let body = b.block(|b| {
        let sign = b.load(pos, row);
        let seventh = b.int(70);
        let sign = b.call(Op::Eq, &[sign, seventh]);
        match kind {
            SumUse::BreaksAll => b.emit(Stmt::If { cond: sign, then: vec![Stmt::Break(label)], otherwise: Vec::new() }),
            SumUse::BreakRow => {
                let leaving = Stmt::If { cond: sign, then: vec![Stmt::Break(label)], otherwise: Vec::new() };
                let mut work = vec![leaving];
                work.extend(b.block(|b| inner(b, false)));
                b.emit(Stmt::Labelled { label, body: work });
            }
            _ => {}
        }
        if kind != SumUse::BreakRow {
            inner(b, false);
        }
        if kind == SumUse::Read {
            let (so_far, two) = (b.get(up), b.int(2));
            b.store(sums, two, so_far);
        }
        inner(b, kind == SumUse::BothWays);
        let next = b.add(row, one);
        b.assign(i, next);
    });
    let more = b.call(Op::Lt, &[row, stop]);
    let cond = match kind {
        SumUse::Bounded => {
            let (so_far, most) = (b.get(up), b.constant(Value::I64(90).cast(dtype)));
            let small = b.call(Op::Lt, &[so_far, most]);
            b.call(Op::And, &[more, small])
        }
        _ => more,
    };
    let all = Stmt::While { cond, body };
    match kind {
        SumUse::BreaksAll => b.emit(Stmt::Labelled { label, body: vec![all] }),
        _ => b.emit(all),
    }
    let (up, down) = (b.get(up), b.get(down));
    b.store(sums, zero, up);
    b.store(sums, one, down);
    b.finish()
}

#[test]
fn accumulators_outlive_inner_loops() {
    let options = CodegenOptions::host().unwrap();
    // Empty rows, and rows that are shorter than, as long as, and longer than vectors.
    let pos = [0u32, 3, 3, 10, 26, 34, 70, 71, 135, 135 + 150];
    for dtype in [DType::F64, DType::F32, DType::I32, DType::I64, DType::I16, DType::U8] {
        let mut additions = Vec::new();
        for kind in
            [SumUse::Alone, SumUse::Read, SumUse::BothWays, SumUse::BreaksAll, SumUse::BreakRow, SumUse::Bounded]
        {
            let kernel = rows(dtype, kind);
            kernel.verify().unwrap_or_else(|wrong| panic!("{kind:?}: {wrong}\n{kernel}"));
            let values = (0..300).map(|k| Value::I64(i64::from(k % 5 == 1)).cast(dtype));
            let pos = Array::from_values(pos.iter().map(|p| Value::I64(i64::from(*p))));
            let sums = Array::from_values((0..3).map(|_| Value::I64(0).cast(dtype)));
            let memory = Memory { arrays: vec![pos, Array::from_values(values), sums], scalars: Vec::new() };
            let expected = run(&kernel, memory.clone(), 100_000).unwrap();
            let after = run_llvm(&kernel, memory, &options).unwrap();
            same(&expected, &after, &kernel).unwrap_or_else(|wrong| panic!("{dtype} {kind:?}: {wrong}"));
            additions.push(llvm::listings(&kernel, &options).unwrap().emitted.matches(" @llvm.vector.reduce").count());
        }
        if dtype.size() >= 4 && additions[0] > 0 {
            let [alone, read, both, left, skipped, bounded] = additions[..] else { panic!() };
            // Declarations are counted, too.
            assert!(
                alone < both && both <= read && alone < left && alone <= skipped && alone < bounded,
                "{additions:?}"
            );
        }
    }
}
