//! The optimiser: kernel-to-kernel passes, one per file.
//!
//! Every pass preserves the final memory and the failures of a kernel. No pass adds a load of an
//! element that might not exist, and none reorders floating-point operations, except that short
//! register tiles do where reassociation is allowed, and a hint may permit a back end to.
//! Transformations that LLVM does well are left to LLVM, unless the emitted text becomes clearer.

mod clone;
mod coalesce;
mod compact_ids;
mod const_prop;
mod cost;
mod cse;
mod dce;
mod difference_bounds;
mod effects;
mod fold;
mod gemm;
mod if_convert_append;
mod in_bounds;
mod in_place;
mod index_facts;
mod inline;
mod jump_threading;
mod licm;
mod range_analysis;
mod register_tile;
mod register_tile_short;
mod scalar_promotion;
mod sink;
mod sink_init;
mod split_exprs;
mod target;
#[cfg(test)]
mod testing;
mod unroll;
mod unswitch;
mod vectorize;
mod vectorize_legality;

pub use in_place::in_place;
pub use target::VectorTarget;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use tamis_ir::kernel::{Block, Builder, Kernel};

/// Options of the optimiser.
///
/// ```
/// use tamis_compiler::opt::{Options, VectorTarget};
/// let options = Options { target: VectorTarget::AVX512, ..Options::default() };
/// assert!(!options.strict && !options.count);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Floats exactly as written: zeros keep their sign, and no sum is reassociated.
    pub strict: bool,
    /// The processor that vectors are made for.
    pub target: VectorTarget,
    /// Iterations will be counted, so loops stay loops.
    pub count: bool,
}

/// A pass over kernels.
///
/// ```
/// use tamis_compiler::opt::{Options, PASSES};
/// use tamis_ir::kernel::Kernel;
/// let kernel = Kernel::parse("kernel f\n    in n: i64\nbegin\n    let unused: i64 = n * n\n")?;
/// let dce = PASSES.iter().find(|pass| pass.name == "dce").unwrap();
/// assert_eq!((dce.run)(kernel, &Options::default()).size(), 0);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name of the pass in timings and filetests.
    pub name: &'static str,
    /// Runs the pass.
    pub run: fn(Kernel, &Options) -> Kernel,
}

/// The pass pipeline, in order. Some passes run twice, because others expose new opportunities.
///
/// ```
/// use tamis_compiler::opt::PASSES;
/// let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
/// assert!(names.contains(&"licm") && names.contains(&"cse"));
/// ```
pub const PASSES: &[Pass] = &[
    Pass { name: "const_prop", run: const_prop::run },
    Pass { name: "range_analysis", run: range_analysis::run },
    Pass { name: "sink", run: sink::run },
    Pass { name: "jump_threading", run: jump_threading::run },
    // The facts found above decide conditions and single-trip loops.
    Pass { name: "const_prop", run: const_prop::run },
    Pass { name: "dce", run: dce::run },
    // Before fills and sums move into the loops, the nest is still perfect.
    Pass { name: "gemm", run: gemm::run },
    Pass { name: "unswitch", run: unswitch::run },
    Pass { name: "sink_init", run: sink_init::run },
    Pass { name: "scalar_promotion", run: scalar_promotion::run },
    // The initial value of a promoted scalar is often a constant.
    Pass { name: "const_prop", run: const_prop::run },
    Pass { name: "dce", run: dce::run },
    // Jump threading has removed the flags, so appends are recognisable.
    Pass { name: "if_convert_append", run: if_convert_append::run },
    // CSE and LICM run after tiling, on the copies of the tiled loops.
    Pass { name: "register_tile", run: register_tile::run },
    Pass { name: "register_tile_short", run: register_tile_short::run },
    Pass { name: "cse", run: cse::run },
    Pass { name: "licm", run: licm::run },
    Pass { name: "drop_redundant_guards", run: unswitch::drop_redundant_guards },
    Pass { name: "inline", run: inline::run },
    // Bounds are inlined, so that nests of two loops are recognisable.
    Pass { name: "coalesce", run: coalesce::run },
    Pass { name: "vectorize_legality", run: vectorize_legality::run },
    Pass { name: "unroll", run: unroll::run },
    Pass { name: "split_exprs", run: split_exprs::run },
    Pass { name: "compact_ids", run: compact_ids::run },
];

/// Passes that make vectors, for back ends that say what the kernel says. They follow [`PASSES`],
/// and are not part of the pipeline yet.
///
/// ```
/// use tamis_compiler::opt::VECTOR_PASSES;
/// assert_eq!(VECTOR_PASSES[0].name, "vectorize");
/// ```
pub const VECTOR_PASSES: &[Pass] = &[Pass { name: "vectorize", run: vectorize::run }];

/// Runs all passes.
///
/// ```
/// use tamis_compiler::opt::{Options, optimise};
/// use tamis_ir::kernel::Kernel;
/// let text = "kernel f
///     out y: f64[]
/// begin
///     if 1 < 2
///         y[0] = 1.0
/// ";
/// let kernel = optimise(Kernel::parse(text)?, &Options::default());
/// assert!(kernel.to_string().ends_with("begin\n    y[0] = 1.0\n"));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn optimise(kernel: Kernel, options: &Options) -> Kernel {
    optimise_with(kernel, options, |_, _, _| {})
}

/// Runs all passes and reports each one's name, its time, and the resulting kernel. Debug builds
/// verify the kernel after every pass. A kernel with vectors or concurrent loops is left as it is.
///
/// ```
/// use tamis_compiler::opt::{Options, PASSES, optimise_with};
/// use tamis_ir::kernel::Kernel;
/// let kernel = Kernel::parse("kernel f\n    in n: i64\nbegin\n    let unused: i64 = n * n\n")?;
/// let mut passes = Vec::new();
/// optimise_with(kernel, &Options::default(), |name, _, _| passes.push(name));
/// assert!(passes.into_iter().eq(PASSES.iter().map(|pass| pass.name)));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn optimise_with(
    mut kernel: Kernel,
    options: &Options,
    mut observe: impl FnMut(&'static str, Duration, &Kernel),
) -> Kernel {
    // Passes work on single values, as the lowerer makes them.
    if !kernel.is_plain() {
        return kernel;
    }
    for pass in PASSES {
        let start = Instant::now();
        kernel = (pass.run)(kernel, options);
        #[cfg(debug_assertions)]
        if let Err(reason) = kernel.verify() {
            panic!("`{}` made a kernel that is not well-formed: {reason}\n{kernel}", pass.name);
        }
        observe(pass.name, start.elapsed(), &kernel);
    }
    kernel
}

/// A kernel under transformation: its builder and the options.
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

#[cfg(test)]
mod tests {
    use super::testing::{Make, after, all};
    use tamis_ir::Value;
    use tamis_ir::algebra::Op;
    use tamis_ir::kernel::{Assumption, Stmt};

    /// y = A x as the lowerer emits it: with a fill, separate sizes, and a name for every value.
    #[test]
    fn a_product_of_matrix_and_vector_has_two_loops_and_one_sum() {
        let mut make = Make::new();
        let (zero, one, n, m) = (make.int(0), make.int(1), make.n, make.m);
        let nothing = make.float(0.0);
        let equal = make.call(Op::Eq, &[m, n]);
        make.b.assume(Assumption::Holds(equal));
        make.b.emit(Stmt::Grow { buffer: make.y, len: m, fill: Some(Value::F64(0.0)) });
        make.b.emit(Stmt::Fill { buffer: make.y, start: zero, len: m, value: nothing });
        make.count("i", zero, n, |make, i| {
            let next = make.b.add(i, one);
            let (start, stop) = (make.load(make.pos, i), make.load(make.pos, next));
            let (start, stop) = (make.b.name("start", start), make.b.name("stop", stop));
            make.count("q", start, stop, |make, q| {
                let j = make.load(make.crd, q);
                let j = make.b.name("j", j);
                let x = make.load(make.x, j);
                make.add_to(make.y, i, x);
            });
        });
        let expected = [
            "grow y to n",
            "for i in 0..n",
            "    var sum: f64 = 0.0",
            "    for q in A_pos[i]..A_pos[i + 1] vector(short_trip)",
            "        let j: i64 = A_crd[q]",
            "        sum = sum + x[j]",
            "    y[i] = sum",
        ];
        assert_eq!(after(&all(), make), expected);
    }

    /// An append as the lowerer emits it: with a flag, and an accumulator that starts at the fill.
    #[test]
    fn appending_has_no_flag() {
        let mut make = Make::new();
        let (zero, one, n) = (make.int(0), make.int(1), make.n);
        let count = make.b.variable("count", Value::I64(0));
        make.count("i", zero, n, |make, i| {
            let dirty = make.b.variable("dirty", Value::Bool(false));
            let value = make.b.variable("value", Value::F64(0.0));
            let (so_far, x, yes) = (make.b.get(value), make.load(make.x, i), make.bool(true));
            let sum = make.call(Op::Add, &[so_far, x]);
            make.b.assign(value, sum);
            make.b.assign(dirty, yes);
            let flag = make.b.get(dirty);
            make.when(flag, |make| {
                let place = make.b.get(count);
                let next = make.b.add(place, one);
                make.b.emit(Stmt::Grow { buffer: make.y, len: next, fill: None });
                let value = make.b.get(value);
                make.b.store(make.y, place, value);
                make.b.assign(count, next);
            });
        });
        let expected = [
            "var count: i64 = 0",
            "for i in 0..n",
            "    grow y to count + 1",
            "    y[count] = x[i]",
            "    count = count + 1",
        ];
        assert_eq!(after(&all(), make), expected);
    }

    #[test]
    fn every_pass_is_reported() {
        let mut reported = Vec::new();
        let kernel = Make::new().b.finish();
        super::optimise_with(kernel, &super::Options::default(), |name, _, _| reported.push(name));
        assert_eq!(reported.len(), super::PASSES.len());
        assert_eq!((reported[0], reported[reported.len() - 1]), ("const_prop", "compact_ids"));
    }
}
