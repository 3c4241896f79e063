//! Differential tests of sorting in machine code and C against the standard library: lengths around
//! every change of algorithm.

use crate::common::native::NativeKernel;
use crate::common::run_llvm;
use tamis_backend::{CodegenOptions, runtime::run_on_arrays};
use tamis_ir::format::Width;
use tamis_ir::kernel::{Array, Builder, Elem, Kernel, Memory, Role, Stmt};
use tamis_ir::{DType, Value};

/// A kernel that sorts the elements from the second one up to the position in its scalar.
fn sort(width: Width) -> Kernel {
    let mut b = Builder::new("sort");
    let y = b.buffer("y", Elem::Index(width), Role::Output);
    let stop = b.param("stop", DType::I64);
    let (start, stop) = (b.int(1), b.get(stop));
    b.emit(Stmt::Sort { buffer: y, start, stop, flags: None });
    b.finish()
}

/// A list between two guard elements.
fn guarded(list: &[u64]) -> Array {
    Array::from_values([9].iter().chain(list).chain(&[5]).map(|x| Value::I64(*x as i64)))
}

#[test]
fn both_backends_sort_like_the_standard_library() {
    let options = CodegenOptions::host().unwrap();
    for (width, bits) in [(Width::U8, 8), (Width::U16, 13), (Width::U32, 15), (Width::U32, 32), (Width::U64, 40)] {
        let kernel = sort(width);
        let native = NativeKernel::new(&kernel, &["-O2"]);
        for len in [0, 1, 2, 7, 31, 32, 33, 100, 255, 256, 1000, 1024, 1025, 5000] {
            let mask = (1u64 << bits) - 1;
            let list: Vec<u64> =
                (1..=len as u64).map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) & mask).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            let memory = || Memory { arrays: vec![guarded(&list)], scalars: vec![Value::I64(len + 1)] };
            let llvm = run_llvm(&kernel, memory(), &options).unwrap();
            let c = run_on_arrays(&kernel, memory(), |buffers, scalars| native.call(buffers, scalars)).unwrap();
            for (who, after) in [("machine code", llvm), ("C", c)] {
                assert_eq!(after.arrays, [guarded(&expected)], "{who}, {width:?}, {len} elements");
            }
        }
    }
}

/// A kernel that sorts a list by its flags.
fn sort_by_flags(width: Width) -> Kernel {
    let mut b = Builder::new("listed");
    let list = b.buffer("list", Elem::Index(width), Role::Output);
    let flags = b.buffer("flags", Elem::Index(Width::U8), Role::Output);
    let stop = b.param("stop", DType::I64);
    let (zero, one, stop) = (b.int(0), b.int(1), b.get(stop));
    // The kernel sets the flags itself: its stores must be visible to the sort.
    b.count("t", zero, stop, |b, t| {
        let at = b.load(list, t);
        b.store(flags, at, one);
    });
    b.emit(Stmt::Sort { buffer: list, start: zero, stop, flags: Some(flags) });
    b.count("t", zero, stop, |b, t| {
        let at = b.load(list, t);
        b.store(flags, at, zero);
    });
    b.finish()
}

#[test]
fn sorting_by_flags_gives_the_same_order() {
    let options = CodegenOptions::host().unwrap();
    for (width, extent) in [(Width::U8, 200), (Width::U16, 40_000), (Width::U32, 100_000), (Width::U64, 100_000)] {
        let kernel = sort_by_flags(width);
        kernel.verify().unwrap();
        let native = NativeKernel::new(&kernel, &["-O2"]);
        for len in [0u64, 1, 2, 16, 17, 48, 49, 100, 199, 1000, 10_000] {
            // Distinct, since the step is coprime to every extent.
            let list: Vec<u64> = (0..len.min(extent)).map(|k| (k * 7_919 + 13) % extent).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            let array = |list: &[u64]| Array::from_values(list.iter().map(|x| Value::I64(*x as i64)));
            let none = || Array::from_values((0..extent).map(|_| Value::I64(0)));
            let memory = || Memory { arrays: vec![array(&list), none()], scalars: vec![Value::I64(list.len() as i64)] };
            let llvm = run_llvm(&kernel, memory(), &options).unwrap();
            let c = run_on_arrays(&kernel, memory(), |buffers, scalars| native.call(buffers, scalars)).unwrap();
            let interpreted = tamis_ir::kernel::run(&kernel, memory(), 1 << 20).unwrap();
            for (who, after) in [("machine code", llvm), ("C", c), ("the interpreter", interpreted)] {
                assert_eq!(after.arrays, [array(&expected), none()], "{who}, {width:?}, {len} elements");
            }
        }
    }
}
