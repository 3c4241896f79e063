//! Programs to kernels, one loop at a time, outermost first.
//!
//! A loop is lowered by describing every access whose next subscript is its index with a looplet, and then taking the
//! looplets apart, the one of highest priority first (`Looplet::priority`); between steps the whole body is simplified,
//! so that what is not stored deletes the work that depends on it. Each looplet has its file.
//!
//! Results and temporaries are written by `write_plan`s: in storage order through `append_slot`s, or at computed positions, or
//! through a `table`; `storage` makes and completes them.

mod affine_map;
mod append_slot;
mod assign;
mod assumptions;
pub mod bind;
mod dense_loops;
mod dilation;
mod emit;
pub mod entries;
mod fiber_sets;
mod invariant_access;
mod jumper;
mod lookup;
pub mod node;
mod open_windows;
pub mod outer_partition;
mod prepare;
mod random_access;
mod region;
mod run;
mod run_algebra;
pub mod saturate;
mod scatter;
mod segments;
pub mod sequence;
mod shared_sparsity;
mod shifted_reads;
mod short_circuit;
pub mod simplify;
mod spike;
mod stepper;
mod storage;
mod switch;
mod thunk;
mod unordered_lists;
mod visit_counts;
mod window;
mod write_plan;

pub use bind::{Bound, ParamLayout, SizeParam, Stored};
pub use shared_sparsity::Alike;
pub use simplify::Policy;
pub use write_plan::{Mode, Plan};

use node::{Source, Step};
use rustc_hash::FxHashMap;
use tamis_ir::diag::{Diagnostic, Diagnostics};
use tamis_ir::kernel::{self, BufferId, Builder, ExprId, Kernel, Stmt};
use tamis_ir::program::{self, Attributes, Checked, IndexId, Program, StmtId, TensorId, VarId};

/// A kernel and what its parameters are.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The kernel.
    pub kernel: Kernel,
    /// Tensors of the program in the kernel.
    pub bound: Vec<Bound>,
    /// The kernel's scalar parameters: sizes of dimensions.
    pub sizes: Vec<SizeParam>,
    /// How each tensor that the program declares is written.
    pub plans: Vec<Option<Plan>>,
    /// What works, but not well.
    pub warnings: Vec<Diagnostic>,
    /// For each loop as it was lowered, its accesses and their looplets, as text.
    pub looplets: Vec<String>,
    /// Where the kernel writes how often bodies of loops ran that are not counted otherwise, by the numbers of indices; only
    /// if that was asked for.
    pub visits: Option<BufferId>,
    /// How the parts become the whole, if the kernel does a part.
    pub cut: Option<outer_partition::Cut>,
}

/// Lowers a checked program for parameters of given layouts.
pub fn lower(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, Wish::Whole)
}

/// [`lower`], into a kernel that does a part of the outermost loop; see [`outer_partition`]. Of a program that can be lowered this says why it cannot
/// be cut: `E1206`, or what a part of a loop needs and the whole does not, such as operands in order.
pub fn lower_part(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, Wish::Part)
}

/// What a kernel is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Whole,
    Counted,
    Part,
}

/// [`lower`], into a kernel that counts how often the bodies of loops run, and whose variables know their loops.
pub fn lower_counted(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, Wish::Counted)
}

fn lower_with(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
    wish: Wish,
) -> Result<Lowered, Diagnostics> {
    let planned = |alike: &[Option<Alike>]| -> Result<_, Diagnostics> {
        let (mut lowerer, sizes) = start(program, checked, layouts, policy, alike)?;
        if wish == Wish::Counted {
            lowerer.count_visits();
        }
        let mut body = lowerer.prepare(&program.body);
        lowerer.classify(&mut body);
        Ok((lowerer, sizes, body))
    };
    let (mut lowerer, mut sizes, mut body) = planned(&[])?;
    // What has the levels of an operand is bound to its arrays, and has none of its own.
    let alike: Vec<Option<Alike>> = lowerer.plans.iter().map(|plan| plan.as_ref()?.alike).collect();
    if alike.iter().any(Option::is_some) {
        (lowerer, sizes, body) = planned(&alike)?;
    }
    // What cannot be stored cannot be set up, either.
    if !lowerer.errors.is_empty() {
        return Err(Diagnostics(lowerer.errors));
    }
    if wish == Wish::Part {
        lowerer.cut_loop(&body)?;
    }
    lowerer.set_up();
    for step in simplify::root(body, policy) {
        lowerer.step(step);
    }
    lowerer.store_scalars();
    if !lowerer.errors.is_empty() {
        return Err(Diagnostics(lowerer.errors));
    }
    let visits = lowerer.store_visits();
    lowerer.promise_room();
    let prologue = lowerer.finish_prologue();
    let mut kernel = lowerer.b.finish();
    kernel.body.splice(0..0, prologue);
    Ok(Lowered {
        kernel,
        bound: lowerer.bound,
        sizes,
        plans: lowerer.plans,
        warnings: lowerer.warnings,
        looplets: lowerer.looplets,
        visits,
        cut: lowerer.part.map(|part| part.cut),
    })
}

/// How each tensor that a program declares would be written.
pub fn plans(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Vec<Option<Plan>>, Diagnostics> {
    let (mut lowerer, _) = start(program, checked, layouts, policy, &[])?;
    let mut body = lowerer.prepare(&program.body);
    lowerer.classify(&mut body);
    Ok(lowerer.plans)
}

/// A lowerer with all tensors bound, some of them to levels of others.
fn start<'a>(
    program: &'a Program,
    checked: &'a Checked,
    layouts: &[ParamLayout],
    policy: Policy,
    alike: &[Option<Alike>],
) -> Result<(Lowerer<'a>, Vec<SizeParam>), Diagnostics> {
    let mut builder = Builder::new(program.name.clone());
    // That, too, is part of what a kernel is.
    let huge = checked.extents.shapes.iter().flatten().any(|size| saturate::is_huge(*size));
    if huge {
        builder.set_huge();
    }
    let (bound, sizes) =
        bind::bind(&mut builder, program, checked, layouts, alike).map_err(|d| Diagnostics(vec![d]))?;
    assumptions::promise(&mut builder, program, &bound);
    let tensors = program.tensors.len();
    // That is part of what a kernel is (`pipeline::Specialisation`).
    let all = bound.iter().zip(&checked.extents.shapes).flat_map(|(bound, shape)| bound.dims.iter().zip(shape));
    let not_small = match sequence::has_edges(program) {
        true => all.filter(|(_, size)| **size >= sequence::ROOMY).map(|(dim, _)| *dim).collect(),
        false => Vec::new(),
    };
    let lowerer = Lowerer {
        b: builder,
        program,
        checked,
        policy,
        bound,
        plans: vec![None; tensors],
        states: vec![storage::State::default(); tensors],
        prologue: Vec::new(),
        indices: vec![None; program.indices.len()],
        bounded: vec![false; program.indices.len()],
        ranges: vec![None; program.indices.len()],
        pieces: vec![None; program.indices.len()],
        limits: vec![None; program.indices.len()],
        not_small,
        huge,
        saturates: false,
        attributes: vec![Attributes::default(); program.indices.len()],
        lets: entries::lets(program),
        masks: program::Masks::new(program),
        updated_by: prepare::updated_by(program),
        cursors: Vec::new(),
        counted: Vec::new(),
        vars: vec![None; program.vars.len()],
        accesses: Vec::new(),
        levels_of: FxHashMap::default(),
        stmt: StmtId(0),
        conditional: 0,
        assumed: Vec::new(),
        required: Vec::new(),
        when: Vec::new(),
        resolved: Vec::new(),
        exits: Vec::new(),
        versions: Vec::new(),
        version_copies: 1,
        ends: Vec::new(),
        fiber_sets: Vec::new(),
        run: None,
        depth: 0,
        copies: 1,
        looplets: Vec::new(),
        visits: None,
        part: None,
        warnings: Vec::new(),
        warned: Vec::new(),
        sparse_along: vec![Vec::new(); program.indices.len()],
        errors: Vec::new(),
    };
    Ok((lowerer, sizes))
}

struct Lowerer<'a> {
    b: Builder,
    program: &'a Program,
    checked: &'a Checked,
    policy: Policy,
    bound: Vec<Bound>,
    /// How each declared tensor is written.
    plans: Vec<Option<Plan>>,
    /// What the kernel keeps about each of them.
    states: Vec<storage::State>,
    /// Variables that live as long as the kernel runs.
    prologue: Vec<Stmt>,
    /// The value of each loop index, inside its loop.
    indices: Vec<Option<ExprId>>,
    /// Loops whose bounds are written.
    bounded: Vec<bool>,
    /// These bounds.
    ranges: Vec<Option<(node::Node, node::Node)>>,
    /// For each loop over one of the pieces that another index numbers, that index and the length of the pieces.
    pieces: Vec<Option<(IndexId, u64)>>,
    /// For each such loop, a dimension that it does not leave, if it starts in it.
    limits: Vec<Option<(TensorId, usize)>>,
    /// Sizes of dimensions that are not small, if that matters.
    not_small: Vec<ExprId>,
    /// Whether some size is so large that sums of sizes may overflow.
    huge: bool,
    /// Whether sums that are computed are those of a check, and may overflow.
    saturates: bool,
    /// What loops say about how they are to be run.
    attributes: Vec<Attributes>,
    /// What each bound name is bound to.
    lets: FxHashMap<VarId, program::ExprId>,
    /// What is known of comparisons.
    masks: program::Masks<'a>,
    /// The one operator that each tensor is updated by, if nothing else is written to it.
    updated_by: Vec<Option<tamis_ir::algebra::Op>>,
    /// The positions above those that loops go over.
    cursors: Vec<entries::Cursor>,
    /// Expressions that count some of the entries of a parameter.
    counted: Vec<(TensorId, ExprId)>,
    /// The value of each bound name, after its binding.
    vars: Vec<Option<node::Node>>,
    /// What is accessed; an access has the number of its source.
    accesses: Vec<Source>,
    /// The level that an access stood at when a loop last went over it.
    levels_of: FxHashMap<u32, usize>,
    /// The statement that is being prepared.
    stmt: StmtId,
    /// How many conditions and partial loops are around.
    conditional: usize,
    /// Conditions that hold.
    assumed: Vec<ExprId>,
    /// Conditions that were required already, here or in a block around.
    required: Vec<ExprId>,
    /// Conditions under which the expression at hand is evaluated at all.
    when: Vec<ExprId>,
    /// Accesses that were resolved already, here or in a block around, with what they became.
    resolved: Vec<(node::Access, node::Node)>,
    /// Scalars that end loops once they are final.
    exits: Vec<short_circuit::Exit>,
    /// Versions of loops that are left once more scalars are final.
    versions: Vec<short_circuit::Version>,
    /// How many copies of this place there are because of versions of loops around.
    version_copies: usize,
    /// Lists that were cut here or in a block around: the access, where the list starts, up to which coordinate it was
    /// cut, and where that is.
    ends: Vec<(u32, ExprId, ExprId, ExprId)>,
    /// Fibers that windows go over together.
    fiber_sets: Vec<fiber_sets::FiberSet>,
    /// All turns of the loop over this index are done at once, up to a coordinate.
    run: Option<(IndexId, ExprId)>,
    /// How many loops are around.
    depth: usize,
    /// How many copies of this place there are because of sequences around.
    copies: usize,
    looplets: Vec<String>,
    /// How often the body of the loop over each index ran, if that is counted.
    visits: Option<Vec<Option<kernel::VarId>>>,
    /// The part that the kernel does, if it does not do all.
    part: Option<outer_partition::Part>,
    warnings: Vec<Diagnostic>,
    /// Accesses that were warned about.
    warned: Vec<u32>,
    /// The accesses whose sparsity can bound the loop over each index, while it is lowered.
    sparse_along: Vec<Vec<dense_loops::SparseAccess>>,
    errors: Vec<Diagnostic>,
}

impl Lowerer<'_> {
    /// Simplifies and emits the statements of a block.
    fn steps(&mut self, steps: Vec<Step>) {
        for step in simplify::steps(steps, self.policy) {
            self.step(step);
        }
    }
}
