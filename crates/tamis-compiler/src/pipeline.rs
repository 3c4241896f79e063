//! The compilation pipeline: the ordered list of passes from a program and tensor layouts to an
//! optimised kernel. Each pass is timed by name; the back end times code generation. A kernel is
//! verified after the last pass that changes it, so the back end only sees valid kernels.

use crate::counts::{self, Counting};
use crate::lower::entries::coordinates_fit;
use crate::lower::saturate::is_huge;
use crate::lower::sequence::{DISJOINT_PADDING, pads};
use crate::lower::{Lowered, ParamLayout, Policy, WriteMode, lower, lower_counted, lower_partition, plans};
use crate::opt;
use crate::schedule::block;
use crate::schedule::insert::{self, Inserted, LARGEST_DENSE, WorkspaceRequest};
use crate::schedule::{copy_in, relax_guards, rename_updated, sizes_in_guards};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{Builder, Kernel};
use tamis_ir::program::{
    Access, Checked, Expr, ExprId, Extent, IndexId, LoopExtent, ParamType, Program, Stmt, StmtKind, TensorId,
};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format};

/// The report of one pass.
///
/// ```
/// use std::time::Duration;
/// use tamis_compiler::pipeline::PassReport;
/// let passes = [("lower", 3), ("licm", 1)].map(|(name, ms)| PassReport {
///     name,
///     time: Duration::from_millis(ms),
///     statements: None,
/// });
/// assert_eq!(passes.iter().max_by_key(|pass| pass.time).map(|pass| pass.name), Some("lower"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassReport {
    /// Its name.
    pub name: &'static str,
    /// Its duration.
    pub time: Duration,
    /// The number of kernel statements after the pass; none before lowering.
    pub statements: Option<usize>,
}

/// Options of the pipeline.
///
/// ```
/// use tamis_compiler::pipeline::Options;
/// let options = Options { snapshots: true, ..Options::default() };
/// assert!(!options.strict);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Strict IEEE arithmetic: the fill does not annihilate NaN, and no sum is reassociated.
    pub strict: bool,
    /// True if the kernel is instrumented with counters, in one more buffer
    /// ([`Compilation::counting`]).
    pub count: bool,
    /// The kernel does a part of the outermost loop (`lower::outer_partition`). A program that cannot be cut
    /// is refused, which says why.
    pub part: bool,
    /// Whether the kernel after each pass is kept, in [`Compilation::snapshots`].
    pub snapshots: bool,
}

/// A compiled kernel with the history of its compilation.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let options = pipeline::Options { snapshots: true, ..Default::default() };
/// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
/// assert!(compilation.inserted.is_empty() && compilation.counting.is_none());
/// assert_eq!(compilation.snapshots[0].0, "lower");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compilation {
    /// The kernel and its parameters.
    pub lowered: Lowered,
    /// The lowered program: the given one, or one with inserted workspaces, whose additional
    /// tensors come last.
    pub program: Arc<Program>,
    /// The inserted workspaces.
    pub inserted: Vec<Inserted>,
    /// The inferred properties of the lowered program.
    pub checked: Checked,
    /// The meaning of the counters and the kernel without them, if it is instrumented.
    pub counting: Option<Box<(Counting, Kernel)>>,
    /// The passes, in order.
    pub passes: Vec<PassReport>,
    /// The kernel after lowering and after each pass of the optimiser, with the name of the pass,
    /// if that is requested.
    pub snapshots: Vec<(&'static str, Kernel)>,
    /// Performance warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Compiles a program for parameters of these types and layouts, in order.
///
/// ```
/// use tamis_compiler::{lower::ParamLayout, pipeline};
/// use tamis_ir::{Format, Program, Value, interp};
/// use tamis_tensor::Tensor;
/// let program = Program::parse("
/// def rowsum(A):
///     y = tensor('dense')
///     for i, j in _:
///         y[i] += A[i,j]
///     return y
/// ")?;
/// let a = Tensor::from_dense(&[2, 2], vec![0.0, 5.0, 0.0, 7.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let compilation =
///     pipeline::compile(&program, &[interp::param_type(&a)], &[ParamLayout::of(&a)], pipeline::Options::default())?;
/// let names: Vec<&str> = compilation.passes.iter().map(|pass| pass.name).collect();
/// assert_eq!((names[0], names[2], *names.last().unwrap()), ("check", "lower", "verify"));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn compile(
    program: &Program,
    params: &[ParamType],
    layouts: &[ParamLayout],
    options: Options,
) -> Result<Compilation, Diagnostics> {
    let start = Instant::now();
    let checked = program.check(params)?;
    let pass = PassReport { name: "check", time: start.elapsed(), statements: None };
    let mut compilation = compile_checked(program, checked, params, layouts, options)?;
    compilation.passes.insert(0, pass);
    Ok(compilation)
}

/// [`compile`] for a checked program.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let checked = program.check(&params)?;
/// let options = pipeline::Options::default();
/// let compilation = pipeline::compile_checked(&program, checked, &params, &layouts, options)?;
/// assert_eq!(compilation.passes.last().unwrap().name, "verify");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn compile_checked(
    program: &Program,
    checked: Checked,
    params: &[ParamType],
    layouts: &[ParamLayout],
    options: Options,
) -> Result<Compilation, Diagnostics> {
    let mut passes = Vec::new();
    let policy = Policy { strict: options.strict };
    let start = Instant::now();
    let copied = copy_in(program, layouts)?;
    let (program, checked) = match &copied {
        Cow::Owned(copied) => (copied, copied.check(params)?),
        Cow::Borrowed(_) => (program, checked),
    };
    let renamed = rename_updated(program, &checked).and_then(|mut renamed| {
        let checked = check_again(&mut renamed, &checked, params)?;
        Some((renamed, checked))
    });
    let (program, checked) = match &renamed {
        Some((renamed, checked)) => (renamed, checked.clone()),
        None => (program, checked),
    };
    let relaxed = relax_guards(program, &checked).and_then(|mut relaxed| {
        let again = check_again(&mut relaxed, &checked, params)?;
        // Loops that only checked subscripts bound would go further over permissive ones.
        (again.extents.loops == checked.extents.loops).then_some((relaxed, again))
    });
    let (program, checked) = match &relaxed {
        Some((relaxed, checked)) => (relaxed, checked.clone()),
        None => (program, checked),
    };
    let blocked = in_blocks(program, &checked, params, layouts, policy);
    let (program, checked) = match blocked {
        Some((program, checked)) => (Cow::Owned(program), checked),
        None => (Cow::Borrowed(program), checked),
    };
    let program = program.as_ref();
    let (program, checked, inserted) = match with_workspaces(program, &checked, params, layouts, policy)? {
        Some((program, checked, inserted)) => (Arc::new(program), checked, inserted),
        None => (Arc::new(program.clone()), checked, Vec::new()),
    };
    let program = &program;
    passes.push(PassReport { name: "schedule", time: start.elapsed(), statements: None });
    let mut snapshots = Vec::new();
    let mut timed = |name: &'static str, time: Duration, kernel: &Kernel| {
        if options.snapshots {
            snapshots.push((name, kernel.clone()));
        }
        passes.push(PassReport { name, time, statements: Some(kernel.size()) });
    };
    let start = Instant::now();
    let mut lowered = match options {
        Options { count: true, .. } => lower_counted(program, &checked, layouts, policy)?,
        Options { part: true, .. } => lower_partition(program, &checked, layouts, policy)?,
        _ => lower(program, &checked, layouts, policy)?,
    };
    timed("lower", start.elapsed(), &lowered.kernel);
    check_size(program, &lowered.kernel)?;
    let kernel = std::mem::replace(&mut lowered.kernel, Builder::new("").finish());
    let optimiser = opt::Options { strict: options.strict, count: options.count, ..opt::Options::default() };
    lowered.kernel = opt::optimise_with(kernel, &optimiser, &mut timed);
    let counting = lowered.visits.map(|buffer| {
        let start = Instant::now();
        let (kernel, counting) = counts::instrument(&lowered.kernel, buffer, program.indices.len());
        timed("count", start.elapsed(), &kernel);
        Box::new((counting, std::mem::replace(&mut lowered.kernel, kernel)))
    });
    let start = Instant::now();
    lowered.kernel.verify().map_err(|wrong| invalid(program, &wrong))?;
    timed("verify", start.elapsed(), &lowered.kernel);
    let warnings = std::mem::take(&mut lowered.warnings);
    Ok(Compilation { lowered, program: program.clone(), inserted, checked, counting, passes, snapshots, warnings })
}

/// The program with loops split for blocked parameters, checked, if some are blocked and every
/// result that was appended still is.
fn in_blocks(
    program: &Program,
    checked: &Checked,
    params: &[ParamType],
    layouts: &[ParamLayout],
    policy: Policy,
) -> Option<(Program, Checked)> {
    if layouts.iter().all(|layout| layout.format.dim_order().is_some()) {
        return None;
    }
    let formats: Vec<&Format> = layouts.iter().map(|layout| &layout.format).collect();
    let mut blocked = block::block(program, checked, &formats)?;
    let mut checked_again = check_again(&mut blocked, checked, params)?;
    checked_again.equal = block::sizes(program);
    let scatters = |program: &Program, checked: &Checked| {
        let plans = plans(program, checked, layouts, policy).ok()?;
        Some(plans.iter().flatten().filter(|plan| plan.mode == WriteMode::Scatter).count())
    };
    (scatters(&blocked, &checked_again)? <= scatters(program, checked)?).then_some((blocked, checked_again))
}

/// Checks a transformed program, keeping the inferred types of its tensors: inference of mutually
/// dependent types may depend on the rest of the program.
fn check_again(program: &mut Program, before: &Checked, params: &[ParamType]) -> Option<Checked> {
    let checked = program.check(params).ok()?;
    let mut changed = false;
    for (k, dtype) in before.types.tensors.iter().enumerate() {
        if checked.types.tensors.get(k).is_some_and(|now| now != dtype)
            && let Some(declaration) = program.tensors.get_mut(k).and_then(|info| info.declaration.as_mut())
        {
            declaration.dtype = Some(*dtype);
            changed = true;
        }
    }
    if changed { program.check(params).ok() } else { Some(checked) }
}

/// The program with inserted workspaces, checked, if it needs any.
fn with_workspaces(
    program: &Program,
    checked: &Checked,
    params: &[ParamType],
    layouts: &[ParamLayout],
    policy: Policy,
) -> Result<Option<(Program, Checked, Vec<Inserted>)>, Diagnostics> {
    let plans = plans(program, checked, layouts, policy)?;
    if !plans.iter().flatten().any(|plan| plan.mode == WriteMode::Scatter) {
        return Ok(None);
    }
    let scattered = insert::scattered(&plans);
    let Some((mut with, inserted)) =
        insert::insert(program, &insert::as_written(program, checked), &scattered, &WorkspaceRequest::Any)
    else {
        return Ok(None);
    };
    let Some(checked) = check_again(&mut with, checked, params) else { return Ok(None) };
    // Write order is not the only cause of scattering; if another one remains, the insertion was
    // useless.
    let again = crate::lower::plans(&with, &checked, layouts, policy)?;
    let left = inserted
        .iter()
        .any(|done| again[done.tensor.index()].as_ref().is_none_or(|plan| plan.mode == WriteMode::Scatter));
    Ok((!left).then_some((with, checked, inserted)))
}

/// Maximum statements of a kernel: code generation takes about a minute for this many.
const MAX_STATEMENTS: usize = 400_000;

/// Refuses kernels that would take too much time and memory to compile.
fn check_size(program: &Program, kernel: &Kernel) -> Result<(), Diagnostic> {
    let size = kernel.size();
    if size <= MAX_STATEMENTS {
        return Ok(());
    }
    let message = format!("`{}` becomes {size} statements of code, more than {MAX_STATEMENTS}", program.name);
    Err(Diagnostic::new(Code::E0105, message)
        .help("split it into several programs, and pass the results of one to the next")
        .help("`--interpret` runs it without the compiler"))
}

/// An internal error: the kernel is invalid.
fn invalid(program: &Program, wrong: &str) -> Diagnostic {
    Diagnostic::new(Code::E1101, format!("the kernel of `{}` is not well-formed: {wrong}", program.name))
        .note("this is a bug in Tamis")
        .note(format!("the program is\n{program}"))
        .help("please report the program, with the formats of its tensors")
        .help("`--interpret` runs it without the compiler")
}

/// The facts about tensor sizes that a kernel is specialised for. All other sizes are run-time
/// parameters: equal signatures and equal specialisations give equal kernels.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let checked = program.check(&params)?;
/// let small = pipeline::Specialisation::of(&program, &checked, &layouts);
/// # let a = Tensor::from_dense(&[3, 1], vec![0.0, 5.0, 0.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let other = program.check(&[interp::param_type(&a)])?;
/// let larger = pipeline::Specialisation::of(&program, &other, &layouts);
/// assert_eq!(small, larger, "matrices of other sizes have the same kernel");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specialisation {
    /// Extents of loops without a dimension; they are constants in the kernel.
    loops: Vec<(IndexId, LoopExtent)>,
    /// For each level, whether its coordinates, ends and positions need more than 32 bits, and
    /// whether it is too large for a dense workspace.
    wide: Vec<[bool; 4]>,
    /// For each subscript by a stored coordinate, whether it is proven in bounds.
    coordinates_fit: Vec<bool>,
    /// For each blocked dimension, whether it has a full block, and whether all blocks are full.
    blocks: Vec<[bool; 2]>,
    /// For each dimension, whether it is small, if there are permissive reads.
    small: Vec<bool>,
    /// Guarded subscripts that need no bounds check, because they are proven in bounds.
    inside: Vec<(TensorId, usize, ExprId)>,
    /// Sizes that conditions state as numbers, one for each guarded window; `u64::MAX` for a number
    /// below the size.
    stated: Vec<Option<u64>>,
    /// True if some size is so large that sums of sizes may overflow.
    huge: bool,
}

impl Specialisation {
    /// The specialisation of a checked program for parameters with these layouts.
    ///
    /// ```
    /// # use tamis_compiler::{lower::ParamLayout, pipeline};
    /// # use tamis_ir::{Format, Notation, Value, interp};
    /// # use tamis_tensor::Tensor;
    /// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
    /// let checked = program.check(&params)?;
    /// let facts = pipeline::Specialisation::of(&program, &checked, &layouts);
    /// assert_eq!(facts, facts.clone());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn of(program: &Program, checked: &Checked, layouts: &[ParamLayout]) -> Specialisation {
        let subscripted = stated(program);
        let mut loops = Vec::new();
        program.visit(&mut |stmt| {
            let StmtKind::For { index, extent: Extent::Infer, .. } = &stmt.kind else { return };
            let extent = checked.extents.loops[index.index()];
            let by_dimension = matches!(extent, LoopExtent::Static { start: 0, .. }) && subscripted[index.index()];
            if !by_dimension {
                loops.push((*index, extent));
            }
        });
        let mut wide = Vec::new();
        for (shape, format) in checked.extents.shapes.iter().zip(&checked.formats) {
            // Formats distinguish tensors whose dimension maps differ.
            let extents = format.as_ref().and_then(|format| format.level_extents(shape).ok());
            let mut cells = 1u64;
            for size in extents.as_ref().unwrap_or(shape) {
                let size = *size;
                cells = cells.saturating_mul(size);
                wide.push([size.saturating_sub(1) > NARROW, size > NARROW, cells > NARROW, size > LARGEST_DENSE]);
            }
        }
        let mut blocks = Vec::new();
        let shapes = &checked.extents.shapes;
        let params = program.params.iter().zip(layouts).map(|(id, layout)| (&shapes[id.index()], &layout.format));
        let declared =
            shapes.iter().zip(&checked.formats).filter_map(|(shape, format)| Some((shape, format.as_ref()?)));
        for (shape, format) in params.chain(declared) {
            for stored in format.map() {
                if let DimExpr::Div(dim, by) | DimExpr::Mod(dim, by) = *stored
                    && let Some(size) = shape.get(dim)
                {
                    blocks.push([*size >= by, size.checked_rem(by) == Some(0)]);
                }
            }
        }
        let stated = sizes_in_guards(program, checked);
        // Guarded windows may become padding, too.
        let sizes = shapes.iter().flatten().filter(|_| pads(program) || !stated.is_empty());
        let small = sizes.map(|size| *size < DISJOINT_PADDING).collect();
        let inside = checked.extents.inside.clone();
        let huge = shapes.iter().flatten().any(|size| is_huge(*size));
        let coordinates_fit = coordinates_fit(program, checked);
        Specialisation { loops, wide, coordinates_fit, blocks, small, inside, stated, huge }
    }
}

/// The largest 32-bit coordinate.
const NARROW: u64 = u32::MAX as u64;

/// The loop indices that are a bare subscript of some dimension, whose size is their extent.
fn stated(program: &Program) -> Vec<bool> {
    let mut stated = vec![false; program.indices.len()];
    let mut see = |access: &Access| {
        for subscript in access.subscripts.iter().filter(|subscript| !subscript.permissive) {
            if let Expr::Index(index) = program.expr(subscript.expr) {
                stated[index.index()] = true;
            }
        }
    };
    for id in program.exprs.ids() {
        if let Expr::Read(access) = program.expr(id) {
            see(access);
        }
    }
    program.visit(&mut |stmt: &Stmt| {
        if let StmtKind::Assign { target, .. } = &stmt.kind {
            see(target);
        }
    });
    stated
}
