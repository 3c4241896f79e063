//! Compilation: from a loop program and the layouts of its tensors to an [`Executable`].
//!
//! In: a program, a [`Signature`], options. Out: an executable that takes tensors of these layouts,
//! whatever their sizes. A program is checked, scheduled, lowered, optimised, and translated to
//! machine code, which the cache may hold already. [`compile()`] compiles every time; the memoising
//! entry point is [`run`](crate::run()).
//!
//! ```
//! use tamis::prelude::*;
//! let program = Program::parse("
//! def double(x):
//!     y = tensor('dense')
//!     for i in _:
//!         y[i] = 2 * x[i]
//!     return y
//! ")?;
//! let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), Value::F64(0.0))?;
//! let options = CompileOptions::new().check(true).schedule(Schedule::new().unroll("i", 2));
//! let double = tamis::compile(&program, &Signature::of(&[&x]), &options)?;
//! assert_eq!(double.call(&[&x])?["y"].get(&[1]), Some(Value::F64(4.0)));
//! # Ok::<(), Diagnostics>(())
//! ```

pub use crate::donate::OutputSlice;
pub use crate::executable::{CallReport, Executable};
pub use crate::prepared_program::PreparedProgram;
pub use crate::signature::Signature;
pub use crate::warnings::annotate_warnings;
pub use tamis_backend::runtime::workspace::WorkspaceReport;
pub use tamis_compiler::pipeline::PassReport;

use crate::call::BoundKernel;
use crate::donate::InPlaceKernels;
use crate::parallel::ParallelKernel;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tamis_backend::cache::{Cache, CacheHit};
use tamis_backend::llvm::{self, Timings};
use tamis_backend::runtime;
use tamis_compiler::lower::{ParamLayout, Policy};
use tamis_compiler::pipeline::{self, Specialisation};
use tamis_compiler::schedule::{Schedule, copy_in, with_fill};
use tamis_ir::diag::did_you_mean;
use tamis_ir::program::{Checked, ParamType, Program, TensorId};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format};

/// The options of compilation.
///
/// ```
/// use tamis::prelude::*;
/// let options = CompileOptions::new().strict(true).check(true).schedule(Schedule::new().unroll("i", 4));
/// assert!(options.strict && !options.interpret);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// IEEE arithmetic throughout: a fill of 0 does not annihilate NaN, and nothing is
    /// reassociated.
    pub strict: bool,
    /// Check every access of an array, and compare every result with the reference interpreter's.
    pub check: bool,
    /// The maximum number of loop iterations of the interpreter to check a call;
    /// [`CHECK_LIMIT`](crate::check::CHECK_LIMIT) by default. Beyond, the call is an error.
    pub check_limit: Option<u64>,
    /// Do not compile: the reference interpreter runs the program.
    pub interpret: bool,
    /// Scheduling commands to apply to the program first.
    pub schedule: Schedule,
}

/// Setters that chain: `CompileOptions::new().check(true).strict(true)`.
impl CompileOptions {
    /// The default options: fast arithmetic, no checks, machine code, no scheduling commands.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// assert_eq!(CompileOptions::new(), CompileOptions::default());
    /// ```
    pub fn new() -> CompileOptions {
        CompileOptions::default()
    }

    /// Sets [`strict`](CompileOptions::strict).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let sparse = Format::parse("sparse", 1)?;
    /// let a = Tensor::from_dense(&[2], vec![0.0, 1.0].into(), &sparse, 0.0.into())?;
    /// let values = vec![f64::NAN, 5.0].into();
    /// let x = Tensor::from_dense(&[2], values, &Format::dense(1), 0.0.into())?;
    /// let strict = EinsumOptions::new().compile(CompileOptions::new().strict(true));
    /// let s = tamis::einsum("s = a[i] * x[i]", &[("a", &a), ("x", &x)], &strict)?.into_tensor()?;
    /// assert!(s.get(&[]).is_some_and(|s| s.is_nan()), "0 * NaN is NaN");
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn strict(self, strict: bool) -> CompileOptions {
        CompileOptions { strict, ..self }
    }

    /// Sets [`check`](CompileOptions::check).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let checked = EinsumOptions::new().compile(CompileOptions::new().check(true));
    /// // Had the reference interpreter another answer, this would be an error.
    /// let y = tamis::einsum("y[i] = A[i,j]", &[("A", &a)], &checked)?.into_tensor()?;
    /// assert_eq!(y.get(&[1]), Some(Value::F64(4.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn check(self, check: bool) -> CompileOptions {
        CompileOptions { check, ..self }
    }

    /// Sets [`check_limit`](CompileOptions::check_limit).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), 0.0.into())?;
    /// let options = CompileOptions::new().check(true).check_limit(3);
    /// let options = EinsumOptions::new().compile(options);
    /// let outcome = tamis::einsum("s = A[i,j]", &[("A", &a)], &options);
    /// assert!(outcome.is_err(), "the interpreter would visit 4 points");
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn check_limit(self, points: u64) -> CompileOptions {
        CompileOptions { check_limit: Some(points), ..self }
    }

    /// Sets [`interpret`](CompileOptions::interpret).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let options = CompileOptions::new().interpret(true);
    /// let interpreted = tamis::compile(&program, &Signature::of(&[&x]), &options)?;
    /// assert!(interpreted.kernel().is_none());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn interpret(self, interpret: bool) -> CompileOptions {
        CompileOptions { interpret, ..self }
    }

    /// Sets [`schedule`](CompileOptions::schedule).
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let options = CompileOptions::new().schedule(Schedule::parse("unroll(i, 2)")?);
    /// let unrolled = tamis::compile(&program, &Signature::of(&[&x]), &options)?;
    /// assert_eq!(unrolled.call(&[&x])?["y"].get(&[0]), Some(Value::F64(6.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn schedule(self, schedule: Schedule) -> CompileOptions {
        CompileOptions { schedule, ..self }
    }
}

/// The report of a compilation, with the time of each stage.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let sum = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::default())?;
/// assert!(sum.build().interpreted.is_none());
/// for pass in &sum.build().passes {
///     println!("{:20} {:?}", pass.name, pass.time);
/// }
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// The passes of the compiler, in order.
    pub passes: Vec<PassReport>,
    /// The stages of the backend. Stages that the cache made unnecessary took no time.
    pub machine: Timings,
    /// The time of the look-up in the cache of machine code, including compilation after a miss.
    pub obtain: Duration,
    /// The cache level of machine code; `None` if the program is interpreted.
    pub found: Option<CacheHit>,
    /// Why the program is interpreted, if it is.
    pub interpreted: Option<String>,
    /// Performance warnings.
    pub warnings: Vec<Diagnostic>,
}

impl Build {
    /// The time of all stages.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// assert!(double.build().total() >= double.build().obtain);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn total(&self) -> Duration {
        self.passes.iter().map(|pass| pass.time).sum::<Duration>() + self.obtain
    }
}

/// The code of a program for one specialisation: for all sizes of which the compiler assumes the
/// same.
pub(crate) struct SpecialisedCode {
    pub(crate) specialisation: Specialisation,
    /// The program with inserted workspaces and versions of updated tensors, if it needs any.
    pub(crate) with_workspaces: Option<Arc<Program>>,
    pub(crate) engine: Engine,
    pub(crate) build: Build,
    /// The parallel kernel, or why there is none; compiled when the heuristic first chooses it.
    pub(crate) parallel: OnceLock<Result<ParallelKernel, Diagnostics>>,
    /// The kernels that update operands in place.
    pub(crate) in_place: InPlaceKernels,
}

/// The executor of a program.
pub(crate) enum Engine {
    Machine(Box<BoundKernel>),
    Interpreter,
}

/// Compiles a program for tensors of a signature. Machine code of an equal kernel is taken from the
/// cache, whichever process put it there.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let sum = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::default())?;
/// assert_eq!(sum.call(&[&x])?.into_tensor()?.get(&[]), Some(Value::F64(3.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn compile(program: &Program, signature: &Signature, options: &CompileOptions) -> Result<Executable, Diagnostics> {
    share_memory_pool();
    let start = Instant::now();
    let checked = program.check(&signature.types)?;
    check_policies(program, &checked, &Schedule::default())?;
    let check_pass = PassReport { name: "check", time: start.elapsed(), statements: None };
    let program = Arc::new(program.clone());
    let start = Instant::now();
    let (scheduled, checked, schedule_pass) = match schedule(&program, &checked, signature, options)? {
        None => (program.clone(), checked, None),
        Some((scheduled, checked)) => {
            check_policies(&scheduled, &checked, &options.schedule)?;
            (
                Arc::new(scheduled),
                checked,
                Some(PassReport { name: "commands", time: start.elapsed(), statements: None }),
            )
        }
    };
    let mut code = SpecialisedCode::new(&scheduled, &checked, &signature.types, &signature.layouts, options)?;
    code.build.passes.splice(0..0, [check_pass].into_iter().chain(schedule_pass));
    Executable::new(program, scheduled, &checked, signature, options, Arc::new(code))
}

/// Checks that the runtime knows the policies of all workspaces. An unknown one is in the program,
/// in its schedule, or in a format that was given beside both.
pub(crate) fn check_policies(program: &Program, checked: &Checked, schedule: &Schedule) -> Result<(), Diagnostics> {
    let mut errors = Vec::new();
    for (k, format) in checked.formats.iter().enumerate() {
        let Some(ism) = format.as_ref().and_then(|format| format.ism()) else { continue };
        let known = runtime::workspace::policies();
        if known.contains(&ism.policy) {
            continue;
        }
        let mut d = Diagnostic::new(Code::E0602, format!("`{}` is not a policy of workspaces", ism.policy));
        let id = TensorId(k as u32);
        let (span, source) = (program.origin.tensor(id), program.origin.source.as_ref());
        let written = source.filter(|source| source.text.get(span.range()).is_some_and(|text| text.contains("ism(")));
        d = match (schedule.blame_policy(&ism.policy, &d, "unknown policy"), written) {
            (Some(blamed), _) => blamed,
            (None, Some(source)) => d.label(source.find(span, &ism.policy), "unknown policy").with_source(source),
            (None, None) => d.note(format!("in the format that was given for `{}`", program.tensor(id).name)),
        };
        if let Some(meant) = did_you_mean(&ism.policy, known.iter().map(String::as_str)) {
            d = d.help(format!("did you mean `ism({meant})`?"));
        }
        d = d.help(format!("policies are {}", known.join(", ")));
        errors.push(d.help("a policy of your own is registered before the program is compiled"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Diagnostics(errors)) }
}

/// The program to compile for a signature, checked, if it differs from the given one: parameters
/// that it updates are copied in, and its schedule is applied.
pub(crate) fn schedule(
    program: &Program,
    checked: &Checked,
    signature: &Signature,
    options: &CompileOptions,
) -> Result<Option<(Program, Checked)>, Diagnostics> {
    let (copied, checked) = match copy_in(program, &signature.layouts)? {
        Cow::Owned(copied) => {
            let checked = copied.check(&signature.types)?;
            (Cow::Owned(copied), Cow::Owned(checked))
        }
        copied => (copied, Cow::Borrowed(checked)),
    };
    if options.schedule.is_empty() {
        let changed = matches!(copied, Cow::Owned(_));
        return Ok(changed.then(|| (copied.into_owned(), checked.into_owned())));
    }
    let formats: Vec<Format> = signature.layouts.iter().map(|layout| with_fill(&layout.format, layout.fill)).collect();
    let (schedule, policy) = (&options.schedule, Policy { strict: options.strict });
    let scheduled = schedule.apply_to(&copied, &checked, &formats, policy)?;
    let checked = scheduled.check(&signature.types).map_err(|errors| {
        let noted = |d: Diagnostic| d.note(format!("the program was changed by the schedule `{schedule}`"));
        Diagnostics(errors.0.into_iter().map(noted).collect())
    })?;
    Ok(Some((scheduled, checked)))
}

/// Lets tensors and kernels share one memory pool: fresh pages cost more than most kernels.
pub(crate) fn share_memory_pool() {
    let pool = tamis_tensor::MemoryPool {
        take: runtime::acquire_memory,
        // SAFETY: callers that give memory to the pool have it from the global allocator, with this
        // layout.
        give: |data, layout| unsafe { runtime::release_memory(data, layout) },
        smallest: runtime::MIN_POOLED_BYTES,
    };
    // SAFETY: the pool of the backend holds memory of the global allocator, and gives each block to
    // one taker.
    unsafe { tamis_tensor::set_memory_pool(pool) };
}

impl SpecialisedCode {
    pub(crate) fn new(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        layouts: &[ParamLayout],
        options: &CompileOptions,
    ) -> Result<SpecialisedCode, Diagnostics> {
        let specialisation = Specialisation::of(program, checked, layouts);
        if options.interpret {
            return Ok(SpecialisedCode {
                specialisation,
                with_workspaces: None,
                engine: Engine::Interpreter,
                build: Build { interpreted: Some("the interpreter was requested".to_string()), ..Build::default() },
                parallel: OnceLock::new(),
                in_place: InPlaceKernels::default(),
            });
        }
        let passes = pipeline::Options { strict: options.strict, ..pipeline::Options::default() };
        let compilation = pipeline::compile_checked(program, checked.clone(), types, layouts, passes)?;
        let host = llvm::CodegenOptions::host()?;
        let target = if options.check { host.checked() } else { host };
        let start = Instant::now();
        let (compiled, found) = llvm::single_threaded(tamis_tensor::threads() == 1, || {
            Cache::global().get_or_compile(&compilation.lowered.kernel, &target)
        })?;
        let build = Build {
            passes: compilation.passes,
            machine: if found == CacheHit::InMemory { Timings::default() } else { compiled.timings() },
            obtain: start.elapsed(),
            found: Some(found),
            interpreted: None,
            warnings: compilation.warnings,
        };
        let machine = BoundKernel::new(&compilation.program, &compilation.checked, &compilation.lowered, compiled)?;
        // Workspaces and versions of updated tensors come after the tensors of the program.
        let added = compilation.program.tensors.len() > program.tensors.len();
        let with_workspaces = added.then_some(compilation.program);
        Ok(SpecialisedCode {
            specialisation,
            with_workspaces,
            engine: Engine::Machine(Box::new(machine)),
            build,
            parallel: OnceLock::new(),
            in_place: InPlaceKernels::default(),
        })
    }
}
