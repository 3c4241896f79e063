//! Programs to kernels, one loop at a time, outermost first.
//!
//! A loop is lowered by describing every access whose next subscript is its index with a looplet, and then taking the
//! looplets apart, the one of highest priority first (`Looplet::priority`); between steps the whole body is simplified,
//! so that what is not stored deletes the work that depends on it.

pub mod bind;
mod emit;
pub mod node;
mod prepare;
mod promises;
mod region;
pub mod simplify;
mod stepper;

pub use bind::{Bound, ParamLayout, SizeParam, Stored};

use node::Step;
use tamis_ir::kernel::{Builder, ExprId, Kernel};
use tamis_ir::program::{Checked, Program};

/// A kernel and what its parameters are.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The kernel.
    pub kernel: Kernel,
    /// Tensors of the program in the kernel.
    pub bound: Vec<Bound>,
    /// The kernel's scalar parameters: sizes of dimensions.
    pub sizes: Vec<SizeParam>,
}

/// Lowers a checked program for parameters of given layouts.
pub fn lower(program: &Program, checked: &Checked, layouts: &[ParamLayout]) -> Lowered {
    let mut builder = Builder::new(program.name.clone());
    let (bound, sizes) = bind::bind(&mut builder, program, checked, layouts);
    promises::promise(&mut builder, program, &bound);
    let mut lowerer = Lowerer {
        b: builder,
        program,
        checked,
        bound,
        indices: vec![None; program.indices.len()],
        vars: vec![None; program.vars.len()],
        accesses: 0,
    };
    let body = lowerer.prepare(&program.body);
    lowerer.steps(body);
    lowerer.store_scalars();
    Lowered { kernel: lowerer.b.finish(), bound: lowerer.bound, sizes }
}

struct Lowerer<'a> {
    b: Builder,
    program: &'a Program,
    checked: &'a Checked,
    bound: Vec<Bound>,
    /// The value of each loop index, inside its loop.
    indices: Vec<Option<ExprId>>,
    /// The value of each bound name, after its binding.
    vars: Vec<Option<node::Node>>,
    /// How many accesses were numbered.
    accesses: u32,
}

impl Lowerer<'_> {
    /// Simplifies and emits statements.
    fn steps(&mut self, steps: Vec<Step>) {
        for step in simplify::steps(steps) {
            self.step(step);
        }
    }
}
