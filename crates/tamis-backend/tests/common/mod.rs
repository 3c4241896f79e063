//! Shared test kernels and helpers.
#![allow(dead_code)]

pub mod native;
pub mod operators;
pub mod random;

use tamis_backend::{CodegenOptions, KernelFailure, llvm, runtime::run_on_arrays};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{Array, Builder, Elem, ExprId, Hint, Kernel, LoopKind, Memory, Role, Stmt};
use tamis_ir::{DType, Value};

/// SpMV, `y[i] = sum of A[i,j] * x[j]` with A in CSR: two loops, one accumulator.
pub fn spmv(vectorise: bool) -> Kernel {
    let mut b = Builder::new("spmv");
    let pos = b.buffer("A_pos", Elem::Index(Width::U32), Role::Input);
    let crd = b.buffer("A_crd", Elem::Index(Width::U32), Role::Input);
    let val = b.buffer("A_val", Elem::Value(DType::F64), Role::Input);
    let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    let m = b.param("m", DType::I64);
    let (zero, one, stop) = (b.int(0), b.int(1), b.get(m));
    b.count("i", zero, stop, |b, i| {
        let next = b.add(i, one);
        let (start, stop) = (b.load(pos, i), b.load(pos, next));
        let sum = b.variable("sum", Value::F64(0.0));
        let p = b.new_var("p", DType::I64, false);
        let position = b.get(p);
        let body = b.block(|b| {
            let column = b.load(crd, position);
            let (a, v) = (b.load(val, position), b.load(x, column));
            let product = b.call(Op::Mul, &[a, v]);
            let so_far = b.get(sum);
            let more = b.call(Op::Add, &[so_far, product]);
            b.assign(sum, more);
        });
        b.emit(Stmt::For { var: p, start, stop, body, hint: Hint { vectorise, ..Hint::default() } });
        let total = b.get(sum);
        b.store(y, i, total);
    });
    b.finish()
}

/// SpMM, `C[i,k] = sum of A[i,j] * B[j,k]` with A in CSR, B and C dense, in register tiles of so
/// many columns.
pub fn spmm(tile: u32) -> Kernel {
    let mut b = Builder::new("spmm");
    let pos = b.buffer("A_pos", Elem::Index(Width::U32), Role::Input);
    let crd = b.buffer("A_crd", Elem::Index(Width::U32), Role::Input);
    let val = b.buffer("A_val", Elem::Value(DType::F64), Role::Input);
    let dense = b.buffer("B", Elem::Value(DType::F64), Role::Input);
    let c = b.buffer("C", Elem::Value(DType::F64), Role::Output);
    let acc = b.buffer("acc", Elem::Value(DType::F64), Role::Tile(tile));
    let (m, n) = (b.param("m", DType::I64), b.param("n", DType::I64));
    let (zero, one, width) = (b.int(0), b.int(1), b.int(i64::from(tile)));
    let (rows, columns) = (b.get(m), b.get(n));
    let hint = Hint { vectorise: true, kind: LoopKind::Unrolled, ..Hint::default() };
    let tiles = b.call(Op::FloorDiv, &[columns, width]);
    let over_tile = |b: &mut Builder, body: &dyn Fn(&mut Builder, ExprId)| {
        let var = b.new_var("k", DType::I64, false);
        let k = b.get(var);
        let body = b.block(|b| body(b, k));
        b.emit(Stmt::For { var, start: zero, stop: width, body, hint });
    };
    b.count("i", zero, rows, |b, i| {
        b.count("t", zero, tiles, |b, t| {
            let first = b.call(Op::Mul, &[t, width]);
            let nothing = b.constant(Value::F64(0.0));
            over_tile(b, &|b, k| b.store(acc, k, nothing));
            let next = b.add(i, one);
            let (start, stop) = (b.load(pos, i), b.load(pos, next));
            b.count("p", start, stop, |b, p| {
                let (a, j) = (b.load(val, p), b.load(crd, p));
                let (a, j) = (b.name("a", a), b.name("j", j));
                over_tile(b, &|b, k| {
                    let row = b.call(Op::Mul, &[j, columns]);
                    let at = b.add(row, first);
                    let at = b.add(at, k);
                    let element = b.load(dense, at);
                    let product = b.call(Op::Mul, &[a, element]);
                    let so_far = b.load(acc, k);
                    let sum = b.call(Op::Add, &[so_far, product]);
                    b.store(acc, k, sum);
                });
            });
            over_tile(b, &|b, k| {
                let row = b.call(Op::Mul, &[i, columns]);
                let at = b.add(row, first);
                let at = b.add(at, k);
                let sum = b.load(acc, k);
                b.store(c, at, sum);
            });
        });
    });
    b.finish()
}

/// Compiles a kernel, and runs it on the interpreter's arrays.
pub fn run_llvm(kernel: &Kernel, memory: Memory, options: &CodegenOptions) -> Result<Memory, KernelFailure> {
    run_outlined(kernel, memory, options, None)
}

/// [`run_llvm`], with the kernel split into functions of `size` statements.
pub fn run_outlined(
    kernel: &Kernel,
    memory: Memory,
    options: &CodegenOptions,
    size: Option<usize>,
) -> Result<Memory, KernelFailure> {
    let compiled = llvm::compile_outlined(kernel, options, size);
    let compiled = compiled.unwrap_or_else(|error| panic!("{}\n{kernel}", error.render(false)));
    // SAFETY: the arrays are of the kernel's types, and the kernel stays within them (or is
    // checked).
    run_on_arrays(kernel, memory, |buffers, scalars| unsafe { compiled.call(buffers, scalars) })
}

/// An array of floats.
pub fn floats(values: &[f64]) -> Array {
    Array::from_values(values.iter().map(|x| Value::F64(*x)))
}

/// Checks that two memories hold the same values.
pub fn same(a: &Memory, b: &Memory, kernel: &Kernel) -> Result<(), String> {
    for (k, buffer) in kernel.buffers.iter().enumerate() {
        if buffer.role != Role::Output {
            continue;
        }
        let (x, y) = (&a.arrays[k], &b.arrays[k]);
        if x.len() != y.len() {
            return Err(format!("{} has {} elements, not {}", buffer.name, y.len(), x.len()));
        }
        for (i, (x, y)) in x.values().iter().zip(y.values()).enumerate() {
            if !same_value(*x, *y) {
                return Err(format!("{}[{i}] is {y}, not {x}", buffer.name));
            }
        }
    }
    Ok(())
}

/// True if two values have the same bits; all NaNs are equal.
pub fn same_value(a: Value, b: Value) -> bool {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    match (a, b) {
        (Value::C64(_), Value::C64(_)) | (Value::C128(_), Value::C128(_)) => {
            let (a, b) = (a.as_c128(), b.as_c128());
            same(a.re, b.re) && same(a.im, b.im)
        }
        _ => a == b || (a.dtype() == b.dtype() && a.is_nan() && b.is_nan()),
    }
}
