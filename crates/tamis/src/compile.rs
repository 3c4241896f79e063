//! Compiling a program for tensors of given layouts: once, for any sizes.

use crate::call::{self, Machine, Problem};
use crate::interpret;
use crate::parts::{self, Pace, Parts};
use crate::signature::{Argument, Signature, integer, values_matter};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};
use tamis_backend::cache::{Cache, CacheHit};
use tamis_backend::llvm::{self, Timings};
use tamis_backend::runtime;
use tamis_compiler::lower::{ParamLayout, Policy};
use tamis_compiler::pipeline::{self, Pass, Specialisation};
use tamis_compiler::schedule::{Schedule, copy_in, with_fill};
use tamis_ir::diag::did_you_mean;
use tamis_ir::kernel::Kernel;
use tamis_ir::program::{Checked, ParamType, Program, TensorId};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format, Value};
use tamis_tensor::Tensor;

/// How to compile a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// IEEE arithmetic throughout: what is not stored does not annihilate NaN, and nothing is reassociated.
    pub strict: bool,
    /// Check every access of an array, and compare every result with the reference interpreter's.
    pub check: bool,
    /// How many points of loops the interpreter may visit for that; [`CHECK_LIMIT`](crate::CHECK_LIMIT) if nothing is
    /// said. What would take longer runs with its checks, and is then refused.
    pub check_limit: Option<u64>,
    /// Do not compile: the reference interpreter runs the program.
    pub interpret: bool,
    /// What to change about the program's loops before it is compiled.
    pub schedule: Schedule,
}

/// How many sets of sizes an executable remembers.
const REMEMBERED: usize = 16;

/// A compiled program: it takes tensors of the layouts it was compiled for, whatever their sizes, and may be
/// called from several threads at once. Clones share everything.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def double(x):
///     y = tensor('dense')
///     for i in _:
///         y[i] = 2 * x[i]
///     return y
/// ")?;
/// let vector = |values: Vec<f64>| {
///     Tensor::from_dense(&[values.len() as u64], values.into(), &Format::dense(1), Value::F64(0.0))
/// };
/// let short = vector(vec![1.0, 2.0])?;
/// let double = tamis::compile(&program, &Signature::of(&[&short]), &CompileOptions::default())?;
/// assert_eq!(double.call(&[&short])?[0].1.get(&[1]), Some(Value::F64(4.0)));
/// let long = vector(vec![1.0; 1000])?;
/// assert_eq!(double.call(&[&long])?[0].1.get(&[999]), Some(Value::F64(2.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone)]
pub struct Executable {
    inner: Arc<Inner>,
}

struct Inner {
    /// As it was written.
    program: Arc<Program>,
    /// As it was scheduled.
    scheduled: Arc<Program>,
    layouts: Vec<ParamLayout>,
    /// For each parameter, whether what is inferred may depend on its value.
    values_matter: Vec<bool>,
    options: CompileOptions,
    /// What it was first compiled to.
    first: Arc<CodeForm>,
    /// Sizes that were checked before, those used last at the end.
    ready: RwLock<Vec<Arc<Ready>>>,
}

/// Sizes that fit the program, and the code for them.
pub(crate) struct Ready {
    shapes: Vec<Vec<u64>>,
    values: Vec<Option<i64>>,
    code: Arc<CodeForm>,
    /// The kernel's scalar arguments.
    pub(crate) scalars: Vec<Value>,
    /// The shapes of the results.
    pub(crate) results: Vec<Vec<u64>>,
    /// How long calls took.
    pace: Pace,
    /// How the loop is cut for several threads, if it can be.
    sizes: OnceLock<Option<parts::Sizes>>,
}

/// What a program was compiled to, for some of the sizes there can be.
struct CodeForm {
    specialisation: Specialisation,
    /// The program with the workspaces that it needs, if it needs any.
    with_workspaces: Option<Arc<Program>>,
    engine: Engine,
    build: Build,
    /// Code for a part of the outermost loop, or why there is none; made when several threads first pay.
    parts: OnceLock<Result<Parts, Diagnostics>>,
}

enum Engine {
    Machine(Box<Machine>),
    Interpreter,
}

/// How a program was compiled.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// The passes of the compiler, in order.
    pub passes: Vec<Pass>,
    /// The stages of the backend; those that were not needed, because machine code was found, took no time.
    pub machine: Timings,
    /// How long the look-up in the cache took, compiling included.
    pub obtain: Duration,
    /// Where machine code was found; none if the program is interpreted.
    pub found: Option<CacheHit>,
    /// Why the program is interpreted, if it is.
    pub interpreted: Option<String>,
    /// What works, but not well.
    pub warnings: Vec<Diagnostic>,
}

impl Build {
    /// All of the time that it took.
    pub fn total(&self) -> Duration {
        self.passes.iter().map(|pass| pass.time).sum::<Duration>() + self.obtain
    }
}

/// What a call gives, and how long it took.
#[derive(Debug)]
pub struct Timed {
    /// The results by name, in the order of `return`.
    pub results: Vec<(String, Tensor)>,
    /// How long the kernel itself ran (or the interpreter).
    pub kernel: Duration,
    /// What each workspace did and needed, by name; once for each part.
    pub workspaces: Vec<(String, runtime::workspace::WorkspaceReport)>,
    /// Into how many parts the outermost loop was cut for several threads; 1 if it was not.
    pub parts: usize,
}

/// Compiles a program for tensors of a signature. What was compiled before, by this process or another one, is taken
/// from the cache.
pub fn compile(program: &Program, signature: &Signature, options: &CompileOptions) -> Result<Executable, Diagnostics> {
    share_memory();
    let start = Instant::now();
    let checked = program.check(&signature.types)?;
    check_policies(program, &checked, &Schedule::default())?;
    let pass = Pass { name: "check", time: start.elapsed(), statements: None };
    let program = Arc::new(program.clone());
    let start = Instant::now();
    let (scheduled, checked, schedule_pass) = match schedule(&program, &checked, signature, options)? {
        None => (program.clone(), checked, None),
        Some((scheduled, checked)) => {
            check_policies(&scheduled, &checked, &options.schedule)?;
            (Arc::new(scheduled), checked, Some(Pass { name: "commands", time: start.elapsed(), statements: None }))
        }
    };
    let mut code = CodeForm::new(&scheduled, &checked, &signature.types, &signature.layouts, options)?;
    code.build.passes.splice(0..0, [pass].into_iter().chain(schedule_pass));
    let code = Arc::new(code);
    let values = signature.types.iter().map(|param| param.value).collect();
    let ready = Ready::new(&scheduled, &checked, &signature.types, signature.shapes(), values, code.clone())?;
    Ok(Executable {
        inner: Arc::new(Inner {
            layouts: signature.layouts.clone(),
            values_matter: values_matter(&scheduled),
            program,
            scheduled,
            options: options.clone(),
            first: code,
            ready: RwLock::new(vec![Arc::new(ready)]),
        }),
    })
}

/// The policies of workspaces are known. What is not stands in the program, in the schedule that made this program of it, or in a
/// format that was given beside both.
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
            (Some(told), _) => told,
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

/// The program that is compiled for a signature, checked, if it is not the one that was written: parameters that it updates
/// are copied in, and its schedule is applied.
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

/// The memory of tensors that are dropped is kept where kernels take theirs from: fresh pages cost more than most
/// kernels.
pub(crate) fn share_memory() {
    let keeper = tamis_tensor::Keeper {
        take: runtime::acquire_memory,
        // SAFETY: whoever gives memory to a keeper has it from the global allocator, with this layout.
        give: |data, layout| unsafe { runtime::release_memory(data, layout) },
        smallest: runtime::MIN_POOLED_BYTES,
    };
    // SAFETY: the pool of the backend holds memory of the global allocator, and gives each block to one taker.
    unsafe { tamis_tensor::keep_memory_with(keeper) };
}

impl CodeForm {
    fn new(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        layouts: &[ParamLayout],
        options: &CompileOptions,
    ) -> Result<CodeForm, Diagnostics> {
        let specialisation = Specialisation::of(program, checked, layouts);
        let wish = pipeline::Options { strict: options.strict, ..pipeline::Options::default() };
        let interpreted = options.interpret.then(|| "the interpreter was asked for".to_string());
        if interpreted.is_some() {
            let build = Build { interpreted, ..Build::default() };
            return Ok(CodeForm {
                specialisation,
                with_workspaces: None,
                engine: Engine::Interpreter,
                build,
                parts: OnceLock::new(),
            });
        }
        let compilation = pipeline::compile_checked(program, checked.clone(), types, layouts, wish)?;
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
        let machine = Machine::new(&compilation.program, &compilation.checked, &compilation.lowered, compiled)?;
        let with_workspaces = (!compilation.inserted.is_empty()).then_some(compilation.program);
        Ok(CodeForm {
            specialisation,
            with_workspaces,
            engine: Engine::Machine(Box::new(machine)),
            build,
            parts: OnceLock::new(),
        })
    }
}

impl Ready {
    fn new(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        shapes: Vec<Vec<u64>>,
        values: Vec<Option<i64>>,
        code: Arc<CodeForm>,
    ) -> Result<Ready, Diagnostics> {
        let scalars = match &code.engine {
            Engine::Machine(machine) => match &code.with_workspaces {
                Some(program) => machine.scalars(program, &program.check(types)?)?,
                None => machine.scalars(program, checked)?,
            },
            Engine::Interpreter => Vec::new(),
        };
        let results = program.results.iter().map(|id| checked.extents.shapes[id.index()].clone()).collect();
        Ok(Ready { shapes, values, code, scalars, results, pace: Pace::default(), sizes: OnceLock::new() })
    }
}

impl Inner {
    /// Whether the program that was compiled is the one that was written.
    fn is_as_written(&self) -> bool {
        Arc::ptr_eq(&self.program, &self.scheduled)
    }
}

impl Executable {
    /// Runs the program on tensors, given in the order of its parameters. Gives its results, by name, in the order of
    /// `return` and in the formats that the program declares.
    ///
    /// Tensors are passed as they are, and results are what the code wrote: nothing is copied.
    pub fn call(&self, tensors: &[&Tensor]) -> Result<Vec<(String, Tensor)>, Diagnostics> {
        self.call_timed(tensors).map(|timed| timed.results)
    }

    /// [`Executable::call`], with the time that the kernel took.
    pub fn call_timed(&self, tensors: &[&Tensor]) -> Result<Timed, Diagnostics> {
        let arguments = Argument::all(tensors);
        self.check_layouts(&arguments)?;
        self.call_fitting(&self.inner.program, tensors, &arguments)
    }

    /// Calls it with tensors whose layouts fit. Mistakes are told in the words of `program`, which says the same as the
    /// one that was compiled, but may stand elsewhere.
    pub(crate) fn call_fitting(
        &self,
        program: &Program,
        tensors: &[&Tensor],
        arguments: &[Argument],
    ) -> Result<Timed, Diagnostics> {
        let ready = self.ready(program, arguments)?;
        let options = &self.inner.options;
        let timed = match &ready.code.engine {
            Engine::Interpreter => {
                let start = Instant::now();
                let program = if self.inner.is_as_written() { program } else { &self.inner.scheduled };
                let results = interpret::run(program, tensors, options.strict)?;
                return Ok(Timed { results, kernel: start.elapsed(), workspaces: Vec::new(), parts: 1 });
            }
            Engine::Machine(machine) => {
                // With all that cutting and joining take.
                let start = Instant::now();
                let together = self.shared(&ready, arguments).map(|(parts, sizes, threads)| {
                    let ran = parts.invoke(sizes, &ready.scalars, arguments, threads, &ready.pace);
                    let finish = |ran| call::finish(&parts.machine, ran, &ready.results, arguments, options.check);
                    let timed = ran.and_then(finish);
                    (timed.inspect(|_| ready.pace.took(true, start.elapsed())), &parts.machine)
                });
                match together {
                    // What cannot be combined can be computed at once.
                    None | Some((Err(Problem::Combined(_)), _)) => {
                        let start = Instant::now();
                        call::call(machine, &ready, arguments, options.check)
                            .inspect(|_| ready.pace.took(false, start.elapsed()))
                            .map_err(|problem| problem.diagnostics(program, tensors, machine))?
                    }
                    Some((timed, machine)) => {
                        timed.map_err(|problem| problem.diagnostics(program, tensors, machine))?
                    }
                }
            }
        };
        if options.check {
            crate::check::compare(program, tensors, &timed.results, options.strict, options.check_limit)?;
        }
        Ok(timed)
    }

    /// Code for several threads, and how many there are, if a call with these tensors is worth sharing.
    fn shared<'a>(&self, ready: &'a Ready, arguments: &[Argument]) -> Option<(&'a Parts, &'a parts::Sizes, usize)> {
        let threads = tamis_tensor::threads();
        if threads < 2 {
            return None;
        }
        let inner = &*self.inner;
        let entries = arguments.iter().map(Argument::entries).sum();
        let asked = parts::is_asked_for(&inner.scheduled) || tamis_tensor::threads::always();
        let parts = match ready.code.parts.get() {
            Some(parts) => parts.as_ref().ok()?,
            None if !asked && !ready.pace.is_worth_compiling(entries) => return None,
            None => {
                let types: Vec<ParamType> = arguments.iter().map(|a| crate::signature::param_type(a.tensor)).collect();
                let make = || {
                    let checked = inner.scheduled.check(&types)?;
                    let wishes = (inner.options.strict, inner.options.check);
                    Parts::compile(&inner.scheduled, &checked, &types, &inner.layouts, wishes)
                };
                ready.code.parts.get_or_init(make).as_ref().ok()?
            }
        };
        if !asked && !ready.pace.is_worth_sharing(entries, parts.rounds()) {
            return None;
        }
        let sizes = ready.sizes.get_or_init(|| {
            let types: Vec<ParamType> = arguments.iter().map(|a| crate::signature::param_type(a.tensor)).collect();
            parts.sizes(&types)
        });
        sizes.as_ref().map(|sizes| (parts, sizes, threads))
    }

    /// Why the program runs on one thread, however many there are; nothing if threads share its outermost loop when that
    /// pays, or if that was not looked into yet.
    pub fn on_one_thread(&self) -> Option<&Diagnostics> {
        self.inner.first.parts.get().and_then(|parts| parts.as_ref().err())
    }

    /// Whether tensors have the layouts that this was compiled for.
    pub(crate) fn takes(&self, arguments: &[Argument]) -> bool {
        let layouts = &self.inner.layouts;
        arguments.len() == layouts.len() && arguments.iter().zip(layouts).all(|(a, layout)| a.fits(layout))
    }

    fn check_layouts(&self, arguments: &[Argument]) -> Result<(), Diagnostics> {
        if self.takes(arguments) {
            return Ok(());
        }
        let (program, layouts) = (&self.inner.program, &self.inner.layouts);
        let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
        if arguments.len() != layouts.len() {
            let message = format!("`{}` takes {} tensors, not {}", program.name, layouts.len(), arguments.len());
            return Err(Diagnostic::new(Code::E0902, message).help(format!("pass {}", names.join(", "))).into());
        }
        let wrong = arguments.iter().zip(layouts).zip(&names).filter(|((argument, layout), _)| !argument.fits(layout));
        Err(Diagnostics(
            wrong.map(|((argument, layout), name)| another_layout(name, argument.tensor, layout)).collect(),
        ))
    }

    /// The code for the sizes of these tensors: at once if they were seen before, else after they were checked.
    fn ready(&self, program: &Program, arguments: &[Argument]) -> Result<Arc<Ready>, Diagnostics> {
        let inner = &*self.inner;
        let same = |ready: &&Arc<Ready>| {
            arguments.iter().zip(&ready.shapes).all(|(argument, shape)| argument.tensor.shape() == shape)
                && inner
                    .values_matter
                    .iter()
                    .zip(arguments)
                    .zip(&ready.values)
                    .all(|((matters, argument), value)| !matters || integer(argument.tensor) == *value)
        };
        if let Ok(known) = inner.ready.read()
            && let Some(ready) = known.iter().rev().find(same)
        {
            return Ok(ready.clone());
        }
        let types: Vec<ParamType> = arguments.iter().map(|a| crate::signature::param_type(a.tensor)).collect();
        let checked = match inner.program.check(&types) {
            Ok(checked) => checked,
            // The same mistake, at its place in the caller's own text.
            Err(errors) => return Err(program.check(&types).err().unwrap_or(errors)),
        };
        let checked = if inner.is_as_written() { checked } else { inner.scheduled.check(&types)? };
        let specialisation = Specialisation::of(&inner.scheduled, &checked, &inner.layouts);
        let known = inner.ready.read().ok().and_then(|known| {
            let found = known.iter().find(|ready| ready.code.specialisation == specialisation);
            found.map(|ready| ready.code.clone())
        });
        let code = match known {
            Some(code) => code,
            None if inner.first.specialisation == specialisation => inner.first.clone(),
            None => Arc::new(CodeForm::new(&inner.scheduled, &checked, &types, &inner.layouts, &inner.options)?),
        };
        let shapes = arguments.iter().map(|argument| argument.tensor.shape().to_vec()).collect();
        let values = types.iter().map(|param| param.value).collect();
        let program = if inner.is_as_written() { program } else { &inner.scheduled };
        let ready = Arc::new(Ready::new(program, &checked, &types, shapes, values, code)?);
        if let Ok(mut known) = inner.ready.write() {
            if known.len() >= REMEMBERED {
                known.remove(0);
            }
            known.push(ready.clone());
        }
        Ok(ready)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// How it was compiled.
    pub fn options(&self) -> &CompileOptions {
        &self.inner.options
    }

    /// How it came about, with times.
    pub fn build(&self) -> &Build {
        &self.inner.first.build
    }

    /// The program with its schedule applied, as it was compiled.
    pub fn scheduled(&self) -> &Program {
        &self.inner.scheduled
    }

    /// The kernel that machine code was made from; none if the program is interpreted.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.inner.first.engine {
            Engine::Machine(machine) => Some(machine.kernel()),
            Engine::Interpreter => None,
        }
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formats: Vec<String> = self.inner.layouts.iter().map(|layout| layout.format.to_string()).collect();
        let mut shown = f.debug_struct("Executable");
        shown.field("program", &self.inner.program.name).field("formats", &formats);
        shown.field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// Says what is different about a tensor.
fn another_layout(name: &str, tensor: &Tensor, layout: &ParamLayout) -> Diagnostic {
    let found = ParamLayout::of(tensor);
    let shown = |layout: &ParamLayout| {
        let mut text = format!("{} in the format `{}`, fill {}", layout.dtype, layout.format, layout.fill);
        for (k, level) in layout.widths.iter().enumerate() {
            for (array, width) in level {
                text += &format!(", {array} of level {k} {}", width.name());
            }
        }
        text
    };
    Diagnostic::new(Code::E0907, format!("`{name}` is not a tensor that the program was compiled for"))
        .note(format!("it is {}", shown(&found)))
        .note(format!("the program was compiled for {}", shown(layout)))
        .help(if found.format == layout.format && found.dtype == layout.dtype {
            "compile the program for this tensor, or use `run`, which does that by itself".to_string()
        } else if found.dtype == layout.dtype {
            format!("convert it to `{}`, or compile the program for it", layout.format)
        } else {
            format!("cast it to {}, or compile the program for it", layout.dtype)
        })
}
