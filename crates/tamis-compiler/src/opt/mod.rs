//! The optimiser: kernels to kernels that an expert would have written, one pass per file.
//!
//! Every pass keeps what a kernel means: the same memory afterwards, the same failure. None reads an element that was
//! not read before (it might not be there), and none changes the order of operations on floats; a hint may permit the
//! backend to. What a compiler of machine code does well by itself is left to it, unless the text reads better.

mod bounds;
mod compact;
mod cost;
mod dead;
mod effects;
mod fold;
mod hints;
mod hoist;
mod inline;
mod localise;
mod promote;
mod propagate;
mod ranges;
mod reach;
mod share;
mod thread;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use tamis_ir::kernel::{Block, Builder, Kernel};

/// What the optimiser may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Floats exactly as written: zeros keep their sign, and no sum is reassociated.
    pub strict: bool,
}

/// A pass over kernels.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What it is called where times are shown.
    pub name: &'static str,
    /// Does it.
    pub run: fn(Kernel, &Options) -> Kernel,
}

/// All passes, in order. Some run twice: what one finds is something to do for another.
pub const PASSES: &[Pass] = &[
    Pass { name: "propagate", run: propagate::run },
    Pass { name: "ranges", run: ranges::run },
    Pass { name: "thread", run: thread::run },
    // What is certain now decides conditions, and loops that run once.
    Pass { name: "propagate", run: propagate::run },
    Pass { name: "dead", run: dead::run },
    Pass { name: "localise", run: localise::run },
    Pass { name: "promote", run: promote::run },
    // The first value of what was promoted is often known.
    Pass { name: "propagate", run: propagate::run },
    Pass { name: "dead", run: dead::run },
    Pass { name: "share", run: share::run },
    Pass { name: "hoist", run: hoist::run },
    Pass { name: "inline", run: inline::run },
    Pass { name: "hints", run: hints::run },
    Pass { name: "compact", run: compact::run },
];

/// Runs all passes.
pub fn optimise(kernel: Kernel, options: &Options) -> Kernel {
    optimise_with(kernel, options, |_, _, _| {})
}

/// Runs all passes, and tells after each its name, how long it took, and the kernel as it is then.
pub fn optimise_with(
    mut kernel: Kernel,
    options: &Options,
    mut observe: impl FnMut(&'static str, Duration, &Kernel),
) -> Kernel {
    for pass in PASSES {
        let start = Instant::now();
        kernel = (pass.run)(kernel, options);
        observe(pass.name, start.elapsed(), &kernel);
    }
    kernel
}

/// A kernel that a pass works on: a builder, and what may be done.
struct Editor {
    builder: Builder,
    strict: bool,
}

impl Editor {
    fn new(kernel: Kernel, options: &Options) -> (Editor, Block) {
        let (builder, body) = Builder::resume(kernel);
        (Editor { builder, strict: options.strict }, body)
    }

    fn finish(self, body: Block) -> Kernel {
        self.builder.finish_with(body)
    }
}

impl Deref for Editor {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.builder
    }
}
