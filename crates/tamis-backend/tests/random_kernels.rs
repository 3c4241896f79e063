//! Differential fuzzing: random kernels in machine code and C against the interpreter.
//! `TAMIS_SEEDS=1000..2000` selects other seeds.

use crate::common::native::NativeKernel;
use crate::common::random::kernel;
use crate::common::{run_outlined, same};
use tamis_backend::llvm::OptLevel;
use tamis_backend::runtime::run_on_arrays;
use tamis_backend::{CodegenOptions, KernelFailure};
use tamis_ir::kernel::{self, Kernel, Memory, run};

/// The interpreter's result, unless the kernel runs for too long.
fn expected(kernel: &Kernel, memory: &Memory, seed: u64) -> Option<Result<Memory, String>> {
    kernel.verify().unwrap_or_else(|reason| panic!("seed {seed}: {reason}\n{kernel}"));
    match run(kernel, memory.clone(), 20_000) {
        Ok(after) => Some(Ok(after)),
        Err(kernel::Failure::Required(message)) => Some(Err(message)),
        Err(kernel::Failure::Budget) => None,
        Err(kernel::Failure::Wrong(reason)) => panic!("seed {seed}: {reason}\n{kernel}"),
    }
}

fn seeds(default: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let text = std::env::var("TAMIS_SEEDS").unwrap_or_default();
    let parsed = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    parsed.unwrap_or(default)
}

fn llvm(seeds: std::ops::Range<u64>, options: &CodegenOptions, size: Option<usize>) {
    let mut ran = 0;
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let (kernel, memory) = kernel(seed, true);
        let Some(expected) = expected(&kernel, &memory, seed) else { continue };
        ran += 1;
        match (expected, run_outlined(&kernel, memory, options, size)) {
            (Ok(expected), Ok(after)) => {
                same(&expected, &after, &kernel).unwrap_or_else(|reason| panic!("seed {seed}: {reason}\n{kernel}"));
            }
            (Err(expected), Err(KernelFailure::Required(message))) => assert_eq!(expected, message, "seed {seed}"),
            (expected, after) => panic!("seed {seed}: {expected:?} became {after:?}\n{kernel}"),
        }
    }
    assert!(2 * ran >= count, "only {ran} of {count} kernels ended in time");
}

#[test]
fn machine_code() {
    llvm(seeds(0..1500), &CodegenOptions::host().unwrap(), None);
}

#[test]
fn checked_machine_code() {
    llvm(seeds(10_000..11_500), &CodegenOptions::host().unwrap().checked(), None);
}

#[test]
fn outlined_functions() {
    for (k, size) in [1, 3, 6].into_iter().enumerate() {
        let start = 40_000 + 1000 * k as u64;
        llvm(seeds(start..start + 300), &CodegenOptions::host().unwrap(), Some(size));
    }
}

#[test]
fn other_levels() {
    for (k, opt_level) in [OptLevel::None, OptLevel::O2].into_iter().enumerate() {
        let start = 20_000 + 1000 * k as u64;
        llvm(seeds(start..start + 200), &CodegenOptions { opt_level, ..CodegenOptions::host().unwrap() }, None);
    }
}

#[test]
fn c() {
    for seed in seeds(30_000..30_200) {
        let (kernel, memory) = kernel(seed, false);
        let Some(expected) = expected(&kernel, &memory, seed) else { continue };
        let native = NativeKernel::new(&kernel, &["-O3"]);
        match (expected, run_on_arrays(&kernel, memory, |buffers, scalars| native.call(buffers, scalars))) {
            (Ok(expected), Ok(after)) => {
                same(&expected, &after, &kernel).unwrap_or_else(|reason| panic!("seed {seed}: {reason}\n{kernel}"));
            }
            (Err(_), Err(KernelFailure::Call(status))) => {
                assert!(status.starts_with("status 1"), "seed {seed}: {status}")
            }
            (expected, after) => panic!("seed {seed}: {expected:?} became {after:?}\n{kernel}"),
        }
    }
}
