//! Lowering: loop programs to kernels, one loop at a time, outermost first.
//!
//! In: a checked program and the layouts of its parameters. Out: a kernel, the buffers and sizes
//! that it takes, and how each result is written. The kernel visits only what is stored wherever
//! the operators permit that. Vectors, register tiles and machine code are chosen by later passes.
//!
//! To lower a loop, the lowerer describes every access whose next subscript is the loop's index by
//! a looplet. Then it takes the looplets apart, the one of highest priority first
//! (`Looplet::priority`), and simplifies the body after each step, so that fill values delete the
//! work that depends on them. Each looplet has its file: `stepper`, `segments`, `run`, `spike`,
//! `sequence`, `switch`, `thunk`, `jumper`, `lookup`.
//!
//! `write_plan` decides how results and temporaries are written: appended in storage order
//! (`append_slot`), stored at computed positions (`storage`), or inserted into a workspace
//! (`scatter`).

mod affine_map;
mod append_slot;
mod assign;
mod assumptions;
pub(crate) mod bind;
mod dense_loops;
mod dilation;
mod emit;
pub(crate) mod entries;
mod fiber_sets;
mod invariant_access;
mod jumper;
mod lookup;
mod node;
mod open_windows;
pub mod outer_partition;
mod prepare;
mod random_access;
mod region;
mod run;
mod run_algebra;
pub(crate) mod saturate;
mod scatter;
mod segment_gaps;
mod segments;
pub(crate) mod sequence;
mod shared_sparsity;
mod shifted_reads;
mod short_circuit;
mod simplify;
mod spike;
mod stepper;
mod storage;
mod switch;
mod thunk;
mod unordered_lists;
mod visit_counts;
mod window;
mod window_masks;
mod write_plan;

pub use bind::{BoundStorage, BoundTensor, ParamLayout, SizeParam};
pub use shared_sparsity::SharedSparsity;
pub use simplify::Policy;
pub use write_plan::{WriteMode, WritePlan};

use node::{ReadSource, Step};
use rustc_hash::FxHashMap;
use tamis_ir::diag::{Diagnostic, Diagnostics};
use tamis_ir::kernel::{self, BufferId, Builder, ExprId, Kernel, Stmt};
use tamis_ir::program::{self, Attributes, Checked, IndexId, Program, StmtId, TensorId, VarId};

/// A kernel with the meaning of its parameters.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// let lowered = &compilation.lowered;
/// assert!(lowered.warnings.is_empty() && lowered.partition.is_none());
/// assert_eq!(lowered.bound.len(), program.tensors.len());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The kernel.
    pub kernel: Kernel,
    /// Tensors of the program in the kernel.
    pub bound: Vec<BoundTensor>,
    /// The kernel's scalar parameters: sizes of dimensions.
    pub sizes: Vec<SizeParam>,
    /// The write plan of each tensor that the program declares.
    pub plans: Vec<Option<WritePlan>>,
    /// Diagnostics about programs that work, but not efficiently.
    pub warnings: Vec<Diagnostic>,
    /// For each loop as it was lowered, its accesses and their looplets, as text.
    pub looplets: Vec<String>,
    /// The buffer of visit counts, by index, of loops that no loop of the kernel counts; only if
    /// the kernel counts visits.
    pub visits: Option<BufferId>,
    /// The combination of the partitions' results, if the kernel runs a partition of the outermost
    /// loop.
    pub partition: Option<outer_partition::OuterPartition>,
}

/// Lowers a checked program for parameters of given layouts.
///
/// ```
/// # use tamis_compiler::lower::{Policy, lower};
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let lowered = lower(&program, &program.check(&params)?, &layouts, Policy::default())?;
/// assert!(lowered.looplets.iter().any(|text| text.contains("stepper")), "{:?}", lowered.looplets);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn lower(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, KernelMode::Whole)
}

/// [`lower`], into a kernel that runs a partition of the outermost loop; see [`outer_partition`].
/// Fails where [`lower`] succeeds if the loop cannot be partitioned (`E1206`), or if a partition
/// has requirements that the whole loop does not, such as sorted operands.
///
/// ```
/// # use tamis_compiler::lower::{Policy, lower_partition};
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let lowered = lower_partition(&program, &program.check(&params)?, &layouts, Policy::default())?;
/// assert_eq!(lowered.partition.unwrap().index.0, 0, "rows are partitioned");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn lower_partition(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, KernelMode::Partition)
}

/// The iterations that a kernel runs, and whether it counts them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelMode {
    Whole,
    Counted,
    Partition,
}

/// [`lower`], into a kernel that counts how often the bodies of loops run, and whose variables know
/// their loops.
pub(crate) fn lower_counted(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Lowered, Diagnostics> {
    lower_with(program, checked, layouts, policy, KernelMode::Counted)
}

fn lower_with(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
    mode: KernelMode,
) -> Result<Lowered, Diagnostics> {
    let plan_writes = |shared: &[Option<SharedSparsity>]| -> Result<_, Diagnostics> {
        let (mut lowerer, sizes) = start(program, checked, layouts, policy, shared)?;
        if mode == KernelMode::Counted {
            lowerer.count_visits();
        }
        let mut body = lowerer.prepare(&program.body);
        lowerer.classify(&mut body);
        Ok((lowerer, sizes, body))
    };
    let (mut lowerer, mut sizes, mut body) = plan_writes(&[])?;
    // A tensor that shares the levels of an operand is bound to the operand's arrays.
    let shared: Vec<Option<SharedSparsity>> = lowerer.plans.iter().map(|plan| plan.as_ref()?.shared_sparsity).collect();
    if shared.iter().any(Option::is_some) {
        (lowerer, sizes, body) = plan_writes(&shared)?;
    }
    // Tensors that cannot be stored have no storage to set up.
    if !lowerer.errors.is_empty() {
        return Err(Diagnostics(lowerer.errors));
    }
    if mode == KernelMode::Partition {
        lowerer.partition_loop(&body)?;
    }
    lowerer.set_up();
    let simplified = simplify::root(body.clone(), policy);
    lowerer.record_unread(&body, &simplified);
    for step in simplified {
        lowerer.step(step);
    }
    lowerer.store_scalars();
    if !lowerer.errors.is_empty() {
        return Err(Diagnostics(lowerer.errors));
    }
    let visits = lowerer.store_visits();
    lowerer.assume_spare_capacity();
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
        partition: lowerer.partition.map(|partition| partition.partition),
    })
}

/// The write plan of each tensor that a program declares.
pub(crate) fn plans(
    program: &Program,
    checked: &Checked,
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Vec<Option<WritePlan>>, Diagnostics> {
    let (mut lowerer, _) = start(program, checked, layouts, policy, &[])?;
    let mut body = lowerer.prepare(&program.body);
    lowerer.classify(&mut body);
    Ok(lowerer.plans)
}

/// A lowerer with all tensors bound; those with shared sparsity, to the levels of their operands.
fn start<'a>(
    program: &'a Program,
    checked: &'a Checked,
    layouts: &[ParamLayout],
    policy: Policy,
    shared: &[Option<SharedSparsity>],
) -> Result<(Lowerer<'a>, Vec<SizeParam>), Diagnostics> {
    let mut builder = Builder::new(program.name.clone());
    // Kernels are specialised for huge sizes (`pipeline::Specialisation`).
    let huge = checked.extents.shapes.iter().flatten().any(|size| saturate::is_huge(*size));
    if huge {
        builder.set_huge();
    }
    let (bound, sizes) =
        bind::bind(&mut builder, program, checked, layouts, shared).map_err(|d| Diagnostics(vec![d]))?;
    assumptions::assume(&mut builder, program, &bound);
    let tensors = program.tensors.len();
    // Kernels are specialised for small dimensions (`pipeline::Specialisation`).
    let all = bound.iter().zip(&checked.extents.shapes).flat_map(|(bound, shape)| bound.dims.iter().zip(shape));
    let not_small = match sequence::pads(program) {
        true => all.filter(|(_, size)| **size >= sequence::DISJOINT_PADDING).map(|(dim, _)| *dim).collect(),
        false => Vec::new(),
    };
    let lowerer = Lowerer {
        b: builder,
        program,
        checked,
        policy,
        bound,
        plans: vec![None; tensors],
        states: vec![storage::StorageState::default(); tensors],
        prologue: Vec::new(),
        indices: vec![None; program.indices.len()],
        bounded: vec![false; program.indices.len()],
        ranges: vec![None; program.indices.len()],
        chunks: vec![None; program.indices.len()],
        chunk_limits: vec![None; program.indices.len()],
        not_small,
        huge,
        saturates: false,
        attributes: vec![Attributes::default(); program.indices.len()],
        lets: entries::lets(program),
        masks: program::Masks::new(program),
        updated_by: prepare::updated_by(program),
        cursors: Vec::new(),
        counting: Vec::new(),
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
        collapsed: None,
        depth: 0,
        copies: 1,
        looplets: Vec::new(),
        visits: None,
        partition: None,
        warnings: Vec::new(),
        warned: Vec::new(),
        sparse_along: vec![Vec::new(); program.indices.len()],
        unread: Vec::new(),
        errors: Vec::new(),
    };
    Ok((lowerer, sizes))
}

struct Lowerer<'a> {
    b: Builder,
    program: &'a Program,
    checked: &'a Checked,
    policy: Policy,
    bound: Vec<BoundTensor>,
    /// The write plan of each declared tensor.
    plans: Vec<Option<WritePlan>>,
    /// The state of each tensor's storage during lowering.
    states: Vec<storage::StorageState>,
    /// Initialisations of variables that live as long as the kernel runs.
    prologue: Vec<Stmt>,
    /// The value of each loop index, inside its loop.
    indices: Vec<Option<ExprId>>,
    /// Loops with explicit bounds.
    bounded: Vec<bool>,
    /// The explicit bounds.
    ranges: Vec<Option<(node::Node, node::Node)>>,
    /// For each inner loop of a strip-mined pair: the index that counts the chunks, and the chunk
    /// length.
    chunks: Vec<Option<(IndexId, u64)>>,
    /// For each such loop, a dimension whose bounds it respects, if its chunks start at 0.
    chunk_limits: Vec<Option<(TensorId, usize)>>,
    /// Sizes of dimensions that are not small, if the program pads.
    not_small: Vec<ExprId>,
    /// True if some size is so large that sums of sizes may overflow.
    huge: bool,
    /// True while the arithmetic of a bounds check saturates.
    saturates: bool,
    /// The attributes of each loop.
    attributes: Vec<Attributes>,
    /// The value of each bound name.
    lets: FxHashMap<VarId, program::ExprId>,
    /// The comparisons that are masks.
    masks: program::Masks<'a>,
    /// The operator of all updates of each tensor, if it is only updated, and by one operator.
    updated_by: Vec<Option<tamis_ir::algebra::Op>>,
    /// The parent positions that move with loops over positions.
    cursors: Vec<entries::Cursor>,
    /// Expressions that count stored elements of a parameter, and so are at most its nnz.
    counting: Vec<(TensorId, ExprId)>,
    /// The value of each bound name, once it is emitted.
    vars: Vec<Option<node::Node>>,
    /// The sources of accesses, by access id.
    accesses: Vec<ReadSource>,
    /// The level of each access in the loop that last walked it.
    levels_of: FxHashMap<u32, usize>,
    /// The statement that is being prepared.
    stmt: StmtId,
    /// The number of enclosing conditionals and partial loops.
    conditional: usize,
    /// Conditions that hold here.
    assumed: Vec<ExprId>,
    /// Conditions that a `require` in this or an enclosing block already checks.
    required: Vec<ExprId>,
    /// Conditions under which the current expression is evaluated at all.
    when: Vec<ExprId>,
    /// Accesses that this or an enclosing block already resolved, with their results.
    resolved: Vec<(node::PartialAccess, node::Node)>,
    /// Scalars that exit loops once they are final.
    exits: Vec<short_circuit::EarlyExit>,
    /// Loop versions that end once more scalars are final.
    versions: Vec<short_circuit::LoopVersion>,
    /// The number of copies of this code because of enclosing loop versions.
    version_copies: usize,
    /// Coordinate lists clipped in this or an enclosing block: access, start position, end
    /// coordinate, end position.
    ends: Vec<(u32, ExprId, ExprId, ExprId)>,
    /// The sets of fibers that windows move over together.
    fiber_sets: Vec<fiber_sets::FiberSet>,
    /// The loop whose iterations are collapsed into one, with its end.
    collapsed: Option<(IndexId, ExprId)>,
    /// The loop depth.
    depth: usize,
    /// The number of copies of this code because of enclosing sequences.
    copies: usize,
    looplets: Vec<String>,
    /// Visit counters by index, if visits are counted.
    visits: Option<Vec<Option<kernel::VarId>>>,
    /// The partition of the outermost loop that the kernel runs, if it does not run all of it.
    partition: Option<outer_partition::PartitionedLoop>,
    warnings: Vec<Diagnostic>,
    /// Accesses that a warning has been issued for.
    warned: Vec<u32>,
    /// The sparse accesses that can bound the loop over each index, while that loop is lowered.
    sparse_along: Vec<Vec<dense_loops::SparseAccess>>,
    /// The accesses that simplification of the whole program removed.
    unread: Vec<node::PartialAccess>,
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
