//! The text of random kernels parses back to them, before and after the optimiser.

use super::optimise_random::{nests, random, rows};
use tamis_compiler::opt::{Options, PASSES};
use tamis_ir::kernel::{Kernel, run};

/// A kernel without what its text leaves out: the order of its tables.
fn canonical(kernel: &Kernel) -> Kernel {
    let compact = PASSES.iter().find(|pass| pass.name == "compact_ids").unwrap();
    let mut kernel = (compact.run)(kernel.clone(), &Options::default());
    kernel.labels = 0;
    // Which numbers a name needs depends on what else there was; the texts have been compared.
    kernel.vars.iter_mut().for_each(|var| var.name.clear());
    kernel
}

fn check(seed: u64, kernel: &Kernel) -> Kernel {
    let text = kernel.to_string();
    let parsed = Kernel::parse(&text).unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d.render(false)));
    assert_eq!(parsed.to_string(), text, "seed {seed}");
    assert_eq!(canonical(&parsed), canonical(kernel), "seed {seed}\n{text}");
    parsed
}

#[test]
fn random_kernels_read_back() {
    let mut ran = 0;
    for seed in 0..600 {
        let (kernel, memory) = random::kernel(seed, true);
        let parsed = check(seed, &kernel);
        let (before, after) = (run(&kernel, memory.clone(), 5000), run(&parsed, memory, 5000));
        assert_eq!(format!("{before:?}"), format!("{after:?}"), "seed {seed}");
        ran += usize::from(before.is_ok());
    }
    assert!(ran > 300, "{ran}");
}

#[test]
fn random_kernels_read_back_after_every_pass() {
    for seed in 0..100 {
        for make in [|seed| random::kernel(seed, true), nests::kernel, rows::kernel] {
            let (mut kernel, _) = make(seed);
            check(seed, &kernel);
            for pass in PASSES {
                kernel = (pass.run)(kernel, &Options::default());
                check(seed, &kernel);
            }
        }
    }
}
