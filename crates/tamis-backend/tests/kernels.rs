//! Tests of hand-written kernels: listings, growth, failures, and check mode.

use crate::common::native::{NativeKernel, run_c};
use crate::common::{floats, run_llvm, same, spmm, spmv};
use tamis_backend::runtime::run_on_arrays;
use tamis_backend::{CodegenOptions, KernelFailure, RawBuffer, RawStorage, c, llvm};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::{Array, Builder, Elem, Kernel, Memory, Role, Stmt, run};
use tamis_ir::{Code, DType, Value};

fn options() -> CodegenOptions {
    CodegenOptions::host().unwrap()
}

fn small() -> Memory {
    Memory {
        arrays: vec![
            Array::from_indices(&[0, 2, 2, 3]),
            Array::from_indices(&[0, 3, 0]),
            floats(&[1.0, 2.0, 3.0]),
            floats(&[1.0; 4]),
            floats(&[7.0; 3]),
        ],
        scalars: vec![Value::I64(3)],
    }
}

#[test]
fn spmv_runs() {
    for vectorise in [false, true] {
        let kernel = spmv(vectorise);
        let after = run_llvm(&kernel, small(), &options()).unwrap();
        same(&run(&kernel, small(), 1000).unwrap(), &after, &kernel).unwrap();
        assert_eq!(after.arrays[4], floats(&[3.0, 0.0, 3.0]));
        assert_eq!(run_c(&kernel, small()).unwrap().arrays[4], floats(&[3.0, 0.0, 3.0]));
    }
}

/// Two `for` loops, one accumulator, no `while`, no search.
#[test]
fn spmv_listings_are_minimal() {
    let expected = "/* The kernel `spmv`, written by Tamis. */
#include <stdint.h>

typedef struct {
    void *data;
    int64_t len, cap;
} tamis_buffer;

typedef struct {
    int64_t which, index, len;
} tamis_failure;

void spmv(const uint32_t *restrict A_pos, const uint32_t *restrict A_crd, const double *restrict A_val, const double *restrict x, double *restrict y, int64_t m)
{
    for (int64_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (int64_t p = A_pos[i]; p < A_pos[i + 1]; p++) {
            sum += A_val[p] * x[A_crd[p]];
        }
        y[i] = sum;
    }
}

/* What Tamis calls: tables of buffers and of pointers to scalars, and a place to say what failed. */
int32_t spmv_call(tamis_buffer *buffers, const void *const *scalars, tamis_failure *failure)
{
    (void)failure;
    spmv(buffers[0].data, buffers[1].data, buffers[2].data, buffers[3].data, buffers[4].data, *(const int64_t *)scalars[0]);
    return 0;
}
";
    assert_eq!(c::print(&spmv(true)).unwrap(), expected);
    let expected = "kernel spmv
    in A_pos: u32[]
    in A_crd: u32[]
    in A_val: f64[]
    in x: f64[]
    out y: f64[]
    in m: i64
begin
    for i in 0..m
        var sum: f64 = 0.0
        for p in A_pos[i]..A_pos[i + 1] vector
            sum = sum + (A_val[p] * x[A_crd[p]])
        y[i] = sum
";
    assert_eq!(spmv(true).to_string(), expected);
    let texts = llvm::listings(&spmv(true), &options()).unwrap();
    assert!(texts.emitted.contains("phi i64") && texts.llvm.contains("define i32"));
    assert!(texts.assembly.contains("ret"));
    if cfg!(target_arch = "x86_64") && options().target.features.contains("+avx2") {
        assert!(texts.assembly.contains("fmadd"), "reductions may be contracted in loops that may be vectorised");
    }
}

/// A tile of the output stays in registers across the sparse loop: the loop has no store.
#[test]
fn tiles_stay_in_registers() {
    let kernel = spmm(16);
    let texts = llvm::listings(&kernel, &options()).unwrap();
    assert!(!texts.llvm.contains("alloca"), "{}", texts.llvm);
    let memory = Memory {
        arrays: vec![
            Array::from_indices(&[0, 2, 2, 3]),
            Array::from_indices(&[0, 3, 0]),
            floats(&[1.0, 2.0, 3.0]),
            floats(&(0..128).map(f64::from).collect::<Vec<_>>()),
            floats(&[7.0; 96]),
            Array::default(),
        ],
        scalars: vec![Value::I64(3), Value::I64(32)],
    };
    let after = run_llvm(&kernel, memory.clone(), &options()).unwrap();
    same(&run(&kernel, memory.clone(), 100_000).unwrap(), &after, &kernel).unwrap();
    same(&after, &run_c(&kernel, memory).unwrap(), &kernel).unwrap();
}

/// Appends `n` squares to an empty output, then grows it to `len`.
fn append() -> Kernel {
    let mut b = Builder::new("append");
    let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    let crd = b.buffer("y_crd", Elem::Index(Width::U16), Role::Output);
    let (n, len) = (b.param("n", DType::I64), b.param("len", DType::I64));
    let (zero, one, stop) = (b.int(0), b.int(1), b.get(n));
    b.count("i", zero, stop, |b, i| {
        let next = b.add(i, one);
        b.emit(Stmt::Grow { buffer: y, len: next, fill: Some(Value::F64(-1.0)) });
        b.emit(Stmt::Grow { buffer: crd, len: next, fill: None });
        let square = b.call_in(Op::Mul, DType::F64, &[i, i]);
        b.store(y, i, square);
        b.store(crd, i, i);
    });
    let len = b.get(len);
    b.emit(Stmt::Grow { buffer: y, len, fill: Some(Value::F64(-2.0)) });
    b.finish()
}

#[test]
fn outputs_grow() {
    let kernel = append();
    for (n, len) in [(0, 0), (1, 0), (1000, 0), (3, 17), (0, -5)] {
        let scalars = vec![Value::I64(n), Value::I64(len)];
        let memory = Memory { arrays: vec![Array::default(); 2], scalars };
        // Coordinates grow without a fill value: unwritten ones are uninitialised.
        let written = |mut memory: Memory| {
            assert!(memory.arrays[1].len() >= n as usize);
            memory.arrays[1] = Array::from_values(memory.arrays[1].values()[..n as usize].iter().copied());
            memory
        };
        let expected = written(run(&kernel, memory.clone(), 100_000).unwrap());
        let machine = written(run_llvm(&kernel, memory.clone(), &options()).unwrap());
        same(&expected, &machine, &kernel).unwrap();
        same(&expected, &written(run_c(&kernel, memory).unwrap()), &kernel).unwrap();
    }
}

#[test]
fn outputs_convert_to_vectors_without_a_copy() {
    let compiled = llvm::compile(&append(), &options()).unwrap();
    let mut y = RawStorage::from_vec::<f64>(vec![5.0]);
    let mut crd = RawStorage::new(Elem::Index(Width::U16));
    let mut buffers = [y.raw(), crd.raw()];
    // SAFETY: the descriptors are of the kernel's types, and are written back.
    unsafe {
        compiled.call(&mut buffers, &[Value::I64(3), Value::I64(0)]).unwrap();
        y.set_raw(buffers[0]);
        crd.set_raw(buffers[1]);
    }
    y.truncate(3);
    assert_eq!(y.into_vec::<f64>().unwrap(), [0.0, 1.0, 4.0]);
    assert_eq!(crd.into_vec::<u16>().unwrap()[..3], [0, 1, 2]);
}

#[test]
fn exhausted_memory_is_a_failure() {
    let kernel = append();
    let native = NativeKernel::new(&kernel, &["-O3"]);
    for len in [1i64 << 60, i64::MAX, 1 << 45] {
        let memory = Memory { arrays: vec![Array::default(); 2], scalars: vec![Value::I64(5), Value::I64(len)] };
        let failure = run_llvm(&kernel, memory.clone(), &options()).unwrap_err();
        let bytes = (len as u64).saturating_mul(8);
        assert_eq!(failure, KernelFailure::Memory { buffer: "y".into(), elements: len as u64, bytes });
        let diagnostic = failure.diagnostic();
        assert_eq!(diagnostic.code, Code::E0706);
        assert!(!diagnostic.help.is_empty() && diagnostic.message.contains("`y`"), "{diagnostic}");
        if len > 1 << 50 {
            let failure = run_on_arrays(&kernel, memory, |b, s| native.call(b, s)).unwrap_err();
            assert!(matches!(failure, KernelFailure::Call(text) if text.starts_with("status 2")));
        }
    }
}

/// A kernel that loads `x[i]`, stores `y[j] = v` (an 8-bit coordinate), fills, searches and sorts,
/// with operands from its scalars.
fn unchecked_accesses() -> Kernel {
    let mut b = Builder::new("careless");
    let x = b.buffer("x", Elem::Index(Width::U32), Role::Input);
    let y = b.buffer("y", Elem::Index(Width::U8), Role::Output);
    let names = ["i", "j", "v", "start", "stop", "first", "last"];
    let vars: Vec<_> = names.iter().map(|name| b.param(*name, DType::I64)).collect();
    let e: Vec<_> = vars.iter().map(|var| b.get(*var)).collect();
    let (read, zero) = (b.load(x, e[0]), b.int(0));
    let same = b.call(Op::Ge, &[read, zero]);
    b.emit(Stmt::Require { cond: same, message: "never".into() });
    b.store(y, e[1], e[2]);
    b.emit(Stmt::Fill { buffer: y, start: e[3], len: e[4], value: zero });
    let found = b.new_var("found", DType::I64, false);
    b.emit(Stmt::Search { var: found, buffer: x, start: e[5], stop: e[6], key: e[2], back: false });
    b.emit(Stmt::Sort { buffer: y, start: e[5], stop: e[6], flags: None });
    b.finish()
}

#[test]
fn check_mode_reports_the_access() {
    let kernel = unchecked_accesses();
    let bounds = |buffer: &str, index: i64| KernelFailure::Bounds { buffer: buffer.into(), index, len: 4 };
    let width = |value: i64| KernelFailure::Width { buffer: "y".into(), value, width: "u8" };
    let table: [(&[i64; 7], Option<KernelFailure>); 12] = [
        (&[0, 0, 5, 0, 4, 0, 4], None),
        (&[3, 3, 255, 9, -3, 3, 2], None),
        (&[4, 0, 5, 0, 4, 0, 4], Some(bounds("x", 4))),
        (&[-1, 0, 5, 0, 4, 0, 4], Some(bounds("x", -1))),
        (&[i64::MAX, 0, 5, 0, 4, 0, 4], Some(bounds("x", i64::MAX))),
        (&[0, 9, 5, 0, 4, 0, 4], Some(bounds("y", 9))),
        (&[0, 0, 256, 0, 4, 0, 4], Some(width(256))),
        (&[0, 0, -1, 0, 4, 0, 4], Some(width(-1))),
        (&[0, 0, 5, 2, 3, 0, 4], Some(bounds("y", 4))),
        (&[0, 0, 5, -2, 3, 0, 4], Some(bounds("y", -2))),
        (&[0, 0, 5, 0, 4, 1, 6], Some(bounds("x", 5))),
        (&[0, 0, 5, 0, 4, -1, 4], Some(bounds("x", -1))),
    ];
    for (scalars, expected) in table {
        let memory = Memory {
            arrays: vec![Array::from_indices(&[1, 2, 3, 4]), Array::from_indices(&[4, 3, 2, 1])],
            scalars: scalars.iter().map(|x| Value::I64(*x)).collect(),
        };
        let result = run_llvm(&kernel, memory, &options().checked());
        assert_eq!(result.err(), expected, "{scalars:?}");
        if let Some(failure) = expected {
            let diagnostic = failure.diagnostic();
            assert!(diagnostic.message.contains('`') && !diagnostic.help.is_empty(), "{diagnostic}");
        }
    }
}

#[test]
fn sorts_are_always_checked() {
    let mut b = Builder::new("sort");
    let y = b.buffer("y", Elem::Index(Width::U64), Role::Output);
    let (start, stop) = (b.int(1), b.int(9));
    b.emit(Stmt::Sort { buffer: y, start, stop, flags: None });
    let memory = Memory { arrays: vec![Array::from_indices(&[3, 2, 1])], scalars: vec![] };
    let failure = run_llvm(&b.finish(), memory, &options()).unwrap_err();
    assert_eq!(failure, KernelFailure::Bounds { buffer: "y".into(), index: 9, len: 3 });
}

#[test]
fn mismatched_calls_are_rejected() {
    let compiled = llvm::compile(&spmv(false), &options()).unwrap();
    let mut five = [RawBuffer::empty(); 5];
    // SAFETY: no code is called.
    unsafe {
        assert!(matches!(compiled.call(&mut five[..4], &[Value::I64(0)]), Err(KernelFailure::Call(_))));
        assert!(matches!(compiled.call(&mut five, &[]), Err(KernelFailure::Call(_))));
        assert!(matches!(compiled.call(&mut five, &[Value::I32(0)]), Err(KernelFailure::Call(_))));
        compiled.call(&mut five, &[Value::I64(0)]).unwrap();
    }
}

#[test]
fn malformed_kernels_are_rejected() {
    let mut b = Builder::new("wrong");
    let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
    let zero = b.int(0);
    let value = b.load(x, zero);
    b.store(x, zero, value);
    let kernel = b.finish();
    assert!(llvm::compile(&kernel, &options()).is_err());
    assert!(c::print(&kernel).is_err());
    // Deeper than any stack allows.
    let mut b = Builder::new("deep");
    let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    let zero = b.int(0);
    let mut sum = b.load(y, zero);
    for _ in 0..100_000 {
        sum = b.call(Op::Neg, &[sum]);
    }
    b.store(y, zero, sum);
    let deep = b.finish();
    assert!(llvm::compile(&deep, &options()).unwrap_err().message.contains("deep"));
    assert!(c::print(&deep).is_err());
    // Shared operands are emitted once.
    let mut b = Builder::new("shared");
    let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
    let zero = b.int(0);
    let mut sum = b.load(y, zero);
    for _ in 0..100 {
        sum = b.call(Op::BitXor, &[sum, sum]);
    }
    b.store(y, zero, sum);
    let shared = b.finish();
    let memory = Memory { arrays: vec![Array::from_values([Value::I64(3)])], scalars: vec![] };
    assert_eq!(run_llvm(&shared, memory, &options()).unwrap().arrays[0].get(0), Some(Value::I64(0)));
    assert!(c::print(&shared).unwrap_err().message.contains("too large"));
}

/// A kernel with `count` tiles of 16 kB, and one larger tile.
fn tiles(count: usize) -> (Kernel, Memory) {
    let mut b = Builder::new("tiles");
    let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
    let zero = b.int(0);
    for k in 0..count {
        let size = if k == 7 { 1 << 22 } else { 2000 };
        let tile = b.buffer(format!("w{k}"), Elem::Value(DType::F64), Role::Tile(size));
        let (last, one) = (b.int(i64::from(size) - 1), b.constant(Value::F64(1.0)));
        b.store(tile, last, one);
        let (first, last, sum) = (b.load(tile, zero), b.load(tile, last), b.load(y, zero));
        let sum = b.call(Op::Add, &[sum, first]);
        let sum = b.call(Op::Add, &[sum, last]);
        b.store(y, zero, sum);
    }
    let arrays = [vec![floats(&[5.0])], vec![Array::default(); count]].concat();
    (b.finish(), Memory { arrays, scalars: vec![] })
}

/// All tiles together exceed the stack of a thread.
#[test]
fn tiles_do_not_overflow_the_stack() {
    let (kernel, memory) = tiles(200);
    assert_eq!(run_llvm(&kernel, memory, &options()).unwrap().arrays[0], floats(&[205.0]));
    let (kernel, memory) = tiles(20);
    assert_eq!(run_c(&kernel, memory).unwrap().arrays[0], floats(&[25.0]));
}

/// Arbitrary names are escaped in C and in IR.
#[test]
fn arbitrary_names_are_escaped() {
    let names =
        ["int", "x y", "\"; } /*", "", "0", "exp", "I", "tamis_fail", "ü", "%t1", "x\n", "sinf", "failure", "after_0"];
    let mut b = Builder::new("main");
    let buffers: Vec<_> = names.iter().map(|name| b.buffer(*name, Elem::Value(DType::F64), Role::Output)).collect();
    let params: Vec<_> = names.iter().map(|name| b.param(*name, DType::F64)).collect();
    let zero = b.int(0);
    for (k, (buffer, param)) in buffers.iter().zip(&params).enumerate() {
        let value = b.get(*param);
        let value = b.name(names[k], value);
        let value = b.call(Op::Exp, &[value]);
        b.store(*buffer, zero, value);
    }
    let cond = b.load(buffers[0], zero);
    let cond = b.call(Op::Gt, &[cond, zero]);
    b.emit(Stmt::Require { cond, message: "*/ \\\n \"%s\"".into() });
    let kernel = b.finish();
    let memory = Memory { arrays: vec![floats(&[1.0]); names.len()], scalars: vec![Value::F64(0.0); names.len()] };
    let expected = run(&kernel, memory.clone(), 1000).unwrap();
    same(&expected, &run_llvm(&kernel, memory.clone(), &options()).unwrap(), &kernel).unwrap();
    same(&expected, &run_c(&kernel, memory).unwrap(), &kernel).unwrap();
}

/// Kernels are reentrant and thread-safe.
#[test]
fn threads_share_a_kernel() {
    let compiled = llvm::compile(&append(), &options()).unwrap();
    std::thread::scope(|scope| {
        for n in 1..5i64 {
            let compiled = &compiled;
            scope.spawn(move || {
                for _ in 0..100 {
                    let memory =
                        Memory { arrays: vec![Array::default(); 2], scalars: vec![Value::I64(100 * n), Value::I64(0)] };
                    // SAFETY: the arrays are of the kernel's types, and grow as needed.
                    let after =
                        run_on_arrays(compiled.kernel(), memory, |b, s| unsafe { compiled.call(b, s) }).unwrap();
                    assert_eq!(after.arrays[0].get(99), Some(Value::F64(99.0 * 99.0)));
                }
            });
        }
    });
}

/// Nested loops without bounds: breaking out of two at once, with `break` and with `goto` in C.
#[test]
fn breaks_exit_nested_blocks() {
    let mut b = Builder::new("break");
    let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
    let (zero, one, ten) = (b.int(0), b.int(1), b.int(10));
    let count = b.variable("count", Value::I64(0));
    b.labelled(|b, outer| {
        b.count("i", zero, ten, |b, i| {
            b.labelled(|b, inner| {
                b.count("j", zero, ten, |b, j| {
                    let now = b.get(count);
                    let more = b.add(now, one);
                    b.assign(count, more);
                    let same = b.call(Op::Eq, &[i, j]);
                    b.branch(same, |b| b.emit(Stmt::Break(inner)), |_| {});
                    let far = b.int(40);
                    let enough = b.call(Op::Ge, &[now, far]);
                    b.branch(enough, |b| b.emit(Stmt::Break(outer)), |_| {});
                });
            });
        });
    });
    let total = b.get(count);
    b.store(y, zero, total);
    let kernel = b.finish();
    let text = c::print(&kernel).unwrap();
    assert!(text.contains("break;") && text.contains("goto after_0;"), "{text}");
    let memory = Memory { arrays: vec![Array::from_values([Value::I64(0)])], scalars: vec![] };
    let expected = run(&kernel, memory.clone(), 10_000).unwrap();
    same(&expected, &run_llvm(&kernel, memory.clone(), &options()).unwrap(), &kernel).unwrap();
    same(&expected, &run_c(&kernel, memory).unwrap(), &kernel).unwrap();
}

/// Searches of every width, from every start, for every key.
#[test]
fn searches_find_every_key() {
    for (width, back) in Width::ALL.into_iter().flat_map(|width| [(width, false), (width, true)]) {
        let mut b = Builder::new("search");
        let crd = b.buffer("crd", Elem::Index(width), Role::Input);
        let y = b.buffer("y", Elem::Value(DType::I64), Role::Output);
        let (zero, keys, end) = (b.int(0), b.int(60), b.int(23));
        let one = b.int(1);
        b.count("start", zero, end, |b, start| {
            b.count("stop", start, end, |b, stop| {
                b.count("key", zero, keys, |b, key| {
                    let var = b.new_var("found", DType::I64, false);
                    b.emit(Stmt::Search { var, buffer: crd, start, stop, key, back });
                    let found = b.get(var);
                    let at = b.call(Op::Mul, &[start, end]);
                    let at = b.add(at, stop);
                    let at = b.call(Op::Mul, &[at, keys]);
                    let at = b.add(at, key);
                    let len = b.add(at, one);
                    b.emit(Stmt::Grow { buffer: y, len, fill: Some(Value::I64(-1)) });
                    b.store(y, at, found);
                });
            });
        });
        let kernel = b.finish();
        let crd: Vec<u64> = (0..22).map(|k| 2 * k + k % 3).collect();
        let memory = Memory { arrays: vec![Array::from_indices(&crd), Array::default()], scalars: vec![] };
        let expected = run(&kernel, memory.clone(), 1_000_000).unwrap();
        same(&expected, &run_llvm(&kernel, memory.clone(), &options()).unwrap(), &kernel).unwrap();
        same(&expected, &run_c(&kernel, memory).unwrap(), &kernel).unwrap();
    }
}
