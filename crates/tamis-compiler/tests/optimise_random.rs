//! Random kernels mean the same after every pass: the same memory, the same failure.

#[path = "common/nests.rs"]
pub(crate) mod nests;
#[path = "../../tamis-backend/tests/common/operators.rs"]
#[allow(dead_code)]
mod operators;
#[path = "../../tamis-backend/tests/common/random.rs"]
#[allow(dead_code)]
pub(crate) mod random;
#[path = "common/rows.rs"]
pub(crate) mod rows;

use tamis_compiler::opt::{Options, PASSES, Pass, VECTOR_PASSES, VectorTarget};
use tamis_ir::kernel::{Array, Failure, Kernel, Memory, Role, run};
use tamis_ir::{Kind, Value};

const BUDGET: u64 = 20_000;

fn same_value(a: Value, b: Value, strict: bool) -> bool {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()) || (!strict && x == y);
    if a.dtype() != b.dtype() {
        return false;
    }
    match a.dtype().kind() {
        Kind::Float | Kind::Complex => {
            let (a, b) = (a.as_c128(), b.as_c128());
            same(a.re, b.re) && same(a.im, b.im)
        }
        _ => a == b,
    }
}

/// The first difference of the outputs, if there is one.
fn difference(kernel: &Kernel, a: &Memory, b: &Memory, strict: bool) -> Option<String> {
    for (k, buffer) in kernel.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Output) {
        let (x, y) = (a.arrays[k].values(), b.arrays[k].values());
        if x.len() != y.len() {
            return Some(format!("{} has {} elements, not {}", buffer.name, y.len(), x.len()));
        }
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            if !same_value(*x, *y, strict) {
                return Some(format!("{}[{i}] is {y}, not {x}", buffer.name));
            }
        }
    }
    None
}

/// Runs passes on a kernel and compares what it does before and after each; false if there is
/// nothing to compare.
fn check(seed: u64, passes: &[Pass], options: &Options) -> bool {
    let (kernel, memory) = random::kernel(seed, true);
    check_on(seed, kernel, memory, passes, options)
}

fn check_on(seed: u64, kernel: Kernel, memory: Memory, passes: &[Pass], options: &Options) -> bool {
    let Ok(expected) = outcome(&kernel, &memory, BUDGET) else { return false };
    if matches!(expected, Err(Failure::Wrong(_))) {
        return false;
    }
    let mut before = kernel;
    for pass in passes {
        let after = (pass.run)(before.clone(), options);
        let place = || format!("seed {seed}, {}:\n{before}\nbecame\n{after}", pass.name);
        if let Err(wrong) = after.verify() {
            panic!("{wrong}\n{}", place());
        }
        match (&expected, outcome(&after, &memory, 3 * BUDGET)) {
            (Ok(expected), Ok(Ok(found))) => {
                if let Some(difference) = difference(&after, expected, &found, options.strict) {
                    panic!("{difference}\n{}", place());
                }
            }
            (Err(expected), Ok(Err(found))) if *expected == found => {}
            (expected, found) => {
                panic!("{:?} became {:?}\n{}", expected.as_ref().err(), found.map(|f| f.err()), place())
            }
        }
        before = after;
    }
    true
}

/// The outcome of a kernel, unless it takes too long.
fn outcome(kernel: &Kernel, memory: &Memory, budget: u64) -> Result<Result<Memory, Failure>, ()> {
    // Passes may add tiles.
    let mut memory = memory.clone();
    memory.arrays.resize(kernel.buffers.len(), Array::default());
    match run(kernel, memory, budget) {
        Err(Failure::Budget) => Err(()),
        other => Ok(other),
    }
}

const STRICT: Options = Options { strict: true, target: VectorTarget::AVX2, count: false };

#[test]
fn all_passes_in_order() {
    let compared = (0..3000).filter(|seed| check(*seed, PASSES, &STRICT)).count();
    assert!(compared > 2500, "{compared}");
}

#[test]
fn each_pass_alone() {
    for seed in 10_000..10_600 {
        for pass in PASSES {
            check(seed, &[*pass], &STRICT);
        }
    }
}

#[test]
fn passes_in_any_order() {
    let mut random = random::KernelRng(1);
    for seed in 20_000..21_500 {
        let passes: Vec<Pass> = (0..8).map(|_| random.pick(PASSES)).collect();
        check(seed, &passes, &STRICT);
    }
}

/// Inputs that are too short for some of what a kernel could read: what it does not read, it must
/// not read afterwards.
#[test]
fn nothing_is_read_that_was_not() {
    let mut random = random::KernelRng(2);
    let mut compared = 0;
    for seed in 30_000..36_000 {
        let (kernel, mut memory) = random::kernel(seed, false);
        for (buffer, array) in kernel.buffers.iter().zip(&mut memory.arrays) {
            if buffer.role == Role::Input && random.one_in(3) {
                let len = random.below(array.len() + 1);
                *array = Array::from_values(array.values()[..len].iter().copied());
            }
        }
        compared += usize::from(check_on(seed, kernel, memory, PASSES, &STRICT));
    }
    assert!(compared > 2000, "{compared}");
}

/// Zeros of either sign are one number unless the meaning is strict, so only kernels of integers
/// can be compared.
#[test]
fn integers_without_strictness() {
    let mut compared = 0;
    for seed in 40_000..44_000 {
        let (kernel, memory) = random::kernel(seed, false);
        let exact = kernel.buffers.iter().all(|buffer| buffer.elem.dtype().kind() <= Kind::Int);
        compared += usize::from(exact && check_on(seed, kernel, memory, PASSES, &Options::default()));
    }
    assert!(compared > 400, "{compared}");
}

/// Loops around a row, as register tiles are made for, and some that only look so.
#[test]
fn rows_in_tiles() {
    in_tiles("register_tile", 50_000..56_000, nests::kernel);
}

/// Several loops over one short row, whose accesses have indices of their own.
#[test]
fn short_rows_in_tiles() {
    in_tiles("register_tile_short", 60_000..66_000, rows::kernel);
}

fn in_tiles(name: &str, seeds: std::ops::Range<u64>, kernel: fn(u64) -> (Kernel, Memory)) {
    let tile: Vec<Pass> = PASSES.iter().filter(|pass| pass.name == name).copied().collect();
    assert_eq!(tile.len(), 1);
    let (mut compared, mut tiled) = (0, 0);
    for seed in seeds {
        let (kernel, memory) = kernel(seed);
        kernel.verify().unwrap();
        let has_tile = |kernel: &Kernel| kernel.buffers.iter().any(|b| matches!(b.role, Role::Tile(_)));
        let applies = has_tile(&(tile[0].run)(kernel.clone(), &STRICT));
        let alone = check_on(seed, kernel.clone(), memory.clone(), &tile, &STRICT);
        let all = check_on(seed, kernel, memory, PASSES, &STRICT);
        assert_eq!(alone, all);
        compared += usize::from(alone);
        tiled += usize::from(alone && applies);
    }
    assert!(compared > 3000, "{compared}");
    // Most of them are as they should be for tiles, and many are not.
    assert!((compared / 3..compared * 9 / 10).contains(&tiled), "{tiled} of {compared}");
}

/// Loops over vectors compute what the loops did, for every target; strict, so that sums stay in order.
#[test]
fn loops_over_vectors() {
    let legality = PASSES.iter().filter(|pass| pass.name == "vectorize_legality");
    let passes: Vec<Pass> = legality.chain(VECTOR_PASSES).copied().collect();
    let (mut compared, mut vectorised) = (0, 0);
    for seed in 70_000..71_000 {
        for make in [|seed| random::kernel(seed, false), nests::kernel, rows::kernel] {
            for target in [VectorTarget::SSE2, VectorTarget::AVX2, VectorTarget::AVX512] {
                let (kernel, memory) = make(seed);
                let options = Options { strict: true, target, count: false };
                let after = passes.iter().fold(kernel.clone(), |kernel, pass| (pass.run)(kernel, &options));
                if !after.is_plain() && check_on(seed, kernel, memory, &passes, &options) {
                    vectorised += 1;
                    let plain = after.legalized();
                    plain.verify().unwrap_or_else(|reason| panic!("seed {seed}: {reason}\n{plain}"));
                }
                compared += 1;
            }
        }
    }
    assert!(vectorised > 300, "{vectorised} of {compared}");
}
