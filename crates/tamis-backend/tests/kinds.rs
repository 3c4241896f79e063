//! Loops of every kind and vectors of every form: machine code and C compute what the interpreter does.

#[path = "../../tamis-ir/tests/common/kinds.rs"]
mod random_kinds;

use crate::common::native::NativeKernel;
use crate::common::{run_llvm, same};
use random_kinds::{HEADER, memory, random_body};
use tamis_backend::runtime::run_on_arrays;
use tamis_backend::{CodegenOptions, c, llvm};
use tamis_ir::kernel::{Array, Kernel, Memory, run};

/// A random kernel, the plain kernel for back ends, its inputs, and what the interpreter makes of them.
fn random(state: &mut u64) -> (Kernel, Kernel, Memory, Memory) {
    let text = format!("{HEADER}{}", random_body(state));
    let kernel = Kernel::parse(&text).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let plain = kernel.legalized().into_owned();
    let n = [0, 1, 5, 16][(*state >> 40) as usize % 4];
    let expected = run(&kernel, memory(n), 100_000).unwrap_or_else(|failure| panic!("{failure:?}\n{kernel}"));
    let mut inputs = memory(n);
    inputs.arrays.resize(plain.buffers.len(), Array::default());
    (kernel, plain, inputs, expected)
}

#[test]
fn machine_code() {
    let mut state = 11;
    for k in 0..200 {
        let (kernel, plain, mut inputs, expected) = random(&mut state);
        let host = CodegenOptions::host().unwrap();
        let options = if k % 2 == 0 { host } else { host.checked() };
        // Vectors as they are, unless a block has barriers.
        let explicit = k % 4 < 3 && !kernel.has_threads();
        let compiled = if explicit { &kernel } else { &plain };
        inputs.arrays.truncate(compiled.buffers.len());
        let found = run_llvm(compiled, inputs, &options).unwrap_or_else(|failure| panic!("{failure:?}\n{kernel}"));
        same(&expected, &found, &kernel).unwrap_or_else(|reason| panic!("{reason}\n{kernel}\n{compiled}"));
    }
}

#[test]
fn c_code() {
    let mut state = 12;
    for _ in 0..40 {
        let (kernel, plain, inputs, expected) = random(&mut state);
        let native = NativeKernel::new(&kernel, &["-O3"]);
        let found = run_on_arrays(&plain, inputs, |buffers, scalars| native.call(buffers, scalars));
        let found = found.unwrap_or_else(|failure| panic!("{failure:?}\n{kernel}"));
        same(&expected, &found, &kernel).unwrap_or_else(|reason| panic!("{reason}\n{kernel}\n{plain}"));
    }
}

/// Lanes are visible in C, and prefetches stay.
#[test]
fn vectors_in_c() {
    let body = "    let v: i64x8 = masked(x[ramp(n, 1, 8)], ramp(n, 1, 8) < 24, 0)
    prefetch x[n] ahead 64 locality 3
    let total: i64 = reduce(add, v)
    y[0] = total
";
    let kernel = Kernel::parse(&format!("{HEADER}{body}")).unwrap();
    let text = c::print(&kernel).unwrap();
    assert!(text.contains("int64_t v[8] = {0};"), "{text}");
    assert!(text.contains("for (int64_t lane = 0; lane < 8; lane++)"), "{text}");
    assert!(text.contains("__builtin_prefetch"), "{text}");
    let emitted = llvm::listings(&kernel.legalized(), &CodegenOptions::host().unwrap()).unwrap().emitted;
    assert!(emitted.contains("llvm.prefetch"), "{emitted}");
}

/// Barriers are legalised first: what a back end does not take is a diagnostic.
#[test]
fn threads_of_a_block_are_legalised_first() {
    let body = "    for t in 0..4 block\n        s[t] = n\n        barrier\n        h[t] = s[3 - t]\n";
    let kernel = Kernel::parse(&format!("{HEADER}{body}")).unwrap();
    assert!(llvm::compile(&kernel, &CodegenOptions::host().unwrap()).is_err());
    assert!(llvm::compile(&kernel.legalized(), &CodegenOptions::host().unwrap()).is_ok());
}
