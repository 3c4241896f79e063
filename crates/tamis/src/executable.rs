//! Executables: compiled programs, called with tensors of fixed layouts and any sizes.
//!
//! In: tensors in the order of the parameters. Out: results, in the order of `return`. The sizes of
//! a call are checked once; an executable keeps the last sets of sizes with their code. Sizes
//! of which the compiler assumed something else get code of their own. Executables are immutable
//! for their users, and may be called from several threads.

use crate::call::{self, CallError};
use crate::compile::{CompileOptions, Engine, SpecialisedCode, WorkspaceReport};
use crate::donate::{Donations, OutputSlice};
use crate::interpret;
use crate::parallel::{self, ParallelHeuristic, ParallelKernel, ParallelSizes};
use crate::results::Results;
use crate::signature::{CallArgument, Signature, integer, values_matter};
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline::Specialisation;
use tamis_ir::kernel::Kernel;
use tamis_ir::program::{Checked, ParamType, Program};
use tamis_ir::{Code, Diagnostic, Diagnostics, Value};
use tamis_tensor::Tensor;

/// The maximum number of sets of sizes of an executable; the oldest is evicted first.
const KEPT: usize = 16;

/// A compiled program: it takes tensors of the layouts it was compiled for, whatever their sizes,
/// and may be called from several threads at the same time. Clones share everything.
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
/// assert_eq!(double.call(&[&short])?["y"].get(&[1]), Some(Value::F64(4.0)));
/// let long = vector(vec![1.0; 1000])?;
/// assert_eq!(double.call(&[&long])?["y"].get(&[999]), Some(Value::F64(2.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Clone)]
pub struct Executable {
    inner: Arc<ExecutableState>,
}

struct ExecutableState {
    /// The program as the user wrote it.
    program: Arc<Program>,
    /// The program with its schedule applied.
    scheduled: Arc<Program>,
    layouts: Vec<ParamLayout>,
    /// For each parameter, whether what is inferred may depend on its value.
    values_matter: Vec<bool>,
    options: CompileOptions,
    /// The code for the sizes of the signature.
    first: Arc<SpecialisedCode>,
    /// Sizes that were checked before, the most recent last.
    ready: RwLock<Vec<Arc<ReadySizes>>>,
}

/// Sizes that fit the program, and the code for them.
pub(crate) struct ReadySizes {
    shapes: Vec<Vec<u64>>,
    values: Vec<Option<i64>>,
    code: Arc<SpecialisedCode>,
    /// The kernel's scalar arguments.
    pub(crate) scalars: Vec<Value>,
    /// The shapes of the results.
    pub(crate) results: Vec<Vec<u64>>,
    heuristic: ParallelHeuristic,
    /// The sizes for a parallel call; none if the loop cannot be partitioned for them.
    parallel: OnceLock<Option<ParallelSizes>>,
}

/// The results of a call, with its times.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")?;
/// let x = Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), 0.0.into())?;
/// let sum = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::default())?;
/// let report = sum.call_timed(&[&x])?;
/// assert_eq!(report.results["s"].get(&[]), Some(Value::F64(3.0)));
/// println!("{:?} on {} threads", report.kernel, report.chunks);
/// # Ok::<(), Diagnostics>(())
/// ```
#[derive(Debug)]
pub struct CallReport {
    /// The results, in the order of `return`.
    pub results: Results,
    /// The time of the kernel, or of the interpreter.
    pub kernel: Duration,
    /// Statistics of each workspace, by name; once for each chunk.
    pub workspaces: Vec<(String, WorkspaceReport)>,
    /// The number of chunks that threads shared; 1 for a sequential call.
    pub chunks: usize,
}

impl ReadySizes {
    fn new(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        shapes: Vec<Vec<u64>>,
        values: Vec<Option<i64>>,
        code: Arc<SpecialisedCode>,
    ) -> Result<ReadySizes, Diagnostics> {
        let scalars = match &code.engine {
            Engine::Machine(machine) => match &code.with_workspaces {
                Some(program) => machine.scalars(program, &program.check(types)?)?,
                None => machine.scalars(program, checked)?,
            },
            Engine::Interpreter => Vec::new(),
        };
        let results = program.results.iter().map(|id| checked.extents.shapes[id.index()].clone()).collect();
        let (heuristic, parallel) = (ParallelHeuristic::default(), OnceLock::new());
        Ok(ReadySizes { shapes, values, code, scalars, results, heuristic, parallel })
    }
}

impl ExecutableState {
    /// True if the program was compiled as the user wrote it.
    fn is_as_written(&self) -> bool {
        Arc::ptr_eq(&self.program, &self.scheduled)
    }
}

impl Executable {
    /// An executable whose first sizes are those of the signature. `checked` belongs to
    /// `scheduled`.
    pub(crate) fn new(
        program: Arc<Program>,
        scheduled: Arc<Program>,
        checked: &Checked,
        signature: &Signature,
        options: &CompileOptions,
        code: Arc<SpecialisedCode>,
    ) -> Result<Executable, Diagnostics> {
        let values = signature.types.iter().map(|param| param.value).collect();
        let ready = ReadySizes::new(&scheduled, checked, &signature.types, signature.shapes(), values, code.clone())?;
        Ok(Executable {
            inner: Arc::new(ExecutableState {
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

    /// Runs the program on tensors, given in the order of its parameters. Gives its results, in the
    /// order of `return` and in the formats that the program declares.
    ///
    /// The call is zero-copy: the kernel reads the tensors' arrays, and what it writes becomes the
    /// results.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// let y = double.call(&[&x])?.into_tensor()?;
    /// assert_eq!(y.to_dense()?, vec![6.0, 10.0].into());
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call(&self, tensors: &[&Tensor]) -> Result<Results, Diagnostics> {
        self.call_timed(tensors).map(|report| report.results)
    }

    /// [`Executable::call`], with the time of the kernel and what its workspaces did.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// let report = double.call_timed(&[&x])?;
    /// println!("{:?}", report.kernel);
    /// assert_eq!(report.results["y"].get(&[0]), Some(Value::F64(6.0)));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call_timed(&self, tensors: &[&Tensor]) -> Result<CallReport, Diagnostics> {
        let arguments = CallArgument::all(tensors);
        self.check_layouts(&arguments)?;
        self.call_fitting(&self.inner.program, tensors, &arguments)
    }

    /// [`Executable::call_timed`], with memory of the caller for its results: one place for each, none
    /// where the result shall be a tensor. The report has the results that were not written there.
    ///
    /// The kernel writes there directly where the result is dense in row-major order and has the
    /// place's type and shape, and where no operand has the same memory. An operand at exactly this
    /// memory is updated in place if each element is computed from itself alone. After an error, the
    /// contents of the memory are undefined. Calls in check mode write nowhere.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// use tamis::compile::OutputSlice;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// let mut y = [0.0; 2];
    /// let mut places = [Some(OutputSlice::new(&mut y, &[2])?)];
    /// let report = double.call_into(&[&x], &mut places)?;
    /// assert!(report.results.is_empty() && places[0].as_ref().is_some_and(OutputSlice::is_written));
    /// assert_eq!(y, [6.0, 10.0]);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn call_into(
        &self,
        tensors: &[&Tensor],
        outputs: &mut [Option<OutputSlice>],
    ) -> Result<CallReport, Diagnostics> {
        let arguments = CallArgument::all(tensors);
        self.check_layouts(&arguments)?;
        self.call_fitting_into(&self.inner.program, tensors, &arguments, outputs)
    }

    /// Calls it with tensors whose layouts fit. Diagnostics point into `program`, which equals the
    /// compiled one, but may have another source text.
    pub(crate) fn call_fitting(
        &self,
        program: &Program,
        tensors: &[&Tensor],
        arguments: &[CallArgument],
    ) -> Result<CallReport, Diagnostics> {
        self.call_fitting_into(program, tensors, arguments, &mut [])
    }

    /// [`Executable::call_fitting`], with memory for results where there is some. The report has the
    /// results that were not written to it.
    pub(crate) fn call_fitting_into(
        &self,
        program: &Program,
        tensors: &[&Tensor],
        arguments: &[CallArgument],
        outputs: &mut [Option<OutputSlice>],
    ) -> Result<CallReport, Diagnostics> {
        let ready = self.ready(program, arguments)?;
        let options = &self.inner.options;
        let donations = match &ready.code.engine {
            Engine::Machine(machine) if !outputs.is_empty() && !options.check => {
                let program = ready.code.with_workspaces.as_ref().unwrap_or(&self.inner.scheduled);
                let kernels = &ready.code.in_place;
                Donations::new(program, machine, kernels, (&ready.results, options.strict), arguments, outputs)
            }
            _ => Donations::default(),
        };
        let report = match &ready.code.engine {
            Engine::Interpreter => {
                let start = Instant::now();
                let program = if self.inner.is_as_written() { program } else { &self.inner.scheduled };
                let results = interpret::run(program, tensors, options.strict)?;
                return Ok(CallReport { results, kernel: start.elapsed(), workspaces: Vec::new(), chunks: 1 });
            }
            Engine::Machine(machine) => match self.call_parallel(&ready, arguments, &donations) {
                // Private results that cannot be combined may still be computed sequentially.
                None | Some((Err(CallError::Combination(_)), _)) => {
                    let start = Instant::now();
                    call::call(machine, &ready, arguments, &donations, options.check)
                        .inspect(|_| ready.heuristic.record_call(false, start.elapsed()))
                        .map_err(|error| error.diagnostics(program, tensors, machine))?
                }
                Some((outcome, kernel)) => {
                    outcome.map_err(|error| error.diagnostics(program, tensors, &kernel.machine))?
                }
            },
        };
        if let Engine::Machine(machine) = &ready.code.engine {
            donations.mark(machine, &report.results, outputs);
        }
        if options.check {
            crate::check::compare(program, tensors, &report.results, options.strict, options.check_limit)?;
        }
        Ok(report)
    }

    /// Calls the parallel kernel, if the heuristic chooses it.
    fn call_parallel<'a>(
        &self,
        ready: &'a ReadySizes,
        arguments: &[CallArgument],
        donations: &Donations,
    ) -> Option<(Result<CallReport, CallError>, &'a ParallelKernel)> {
        // Chunks number the elements of results from their own first row, and those of operands
        // from the first.
        if donations.in_place.is_some() {
            return None;
        }
        // The time includes partitioning and concatenation.
        let start = Instant::now();
        let (kernel, sizes, threads) = self.choose_parallel(ready, arguments)?;
        let outcome = kernel.invoke(sizes, &ready.scalars, arguments, threads, &ready.heuristic, donations);
        let check = self.inner.options.check;
        let finish = |outcome| call::finish(&kernel.machine, outcome, &ready.results, arguments, donations, check);
        let report = outcome.and_then(finish);
        Some((report.inspect(|_| ready.heuristic.record_call(true, start.elapsed())), kernel))
    }

    /// The parallel kernel, the sizes and the number of threads, if a parallel call is expected to
    /// be faster, or is requested.
    fn choose_parallel<'a>(
        &self,
        ready: &'a ReadySizes,
        arguments: &[CallArgument],
    ) -> Option<(&'a ParallelKernel, &'a ParallelSizes, usize)> {
        let threads = tamis_tensor::threads();
        if threads < 2 {
            return None;
        }
        let inner = &*self.inner;
        let nnz = arguments.iter().map(CallArgument::nnz).sum();
        let requested = parallel::is_requested(&inner.scheduled) || tamis_tensor::threads::always();
        let types = || -> Vec<ParamType> { arguments.iter().map(|a| crate::signature::param_type(a.tensor)).collect() };
        let kernel = match ready.code.parallel.get() {
            Some(kernel) => kernel.as_ref().ok()?,
            None if !requested && !ready.heuristic.is_worth_compiling(nnz) => return None,
            None => {
                let compile = || {
                    let types = types();
                    let checked = inner.scheduled.check(&types)?;
                    let modes = (inner.options.strict, inner.options.check);
                    ParallelKernel::compile(&inner.scheduled, &checked, &types, &inner.layouts, modes)
                };
                ready.code.parallel.get_or_init(compile).as_ref().ok()?
            }
        };
        if !requested && !ready.heuristic.is_worth_parallelising(nnz, kernel.rounds()) {
            return None;
        }
        let sizes = ready.parallel.get_or_init(|| kernel.sizes(&types()));
        sizes.as_ref().map(|sizes| (kernel, sizes, threads))
    }

    /// Why calls are sequential, whatever the number of threads; none if the outermost loop can be
    /// partitioned, or if no call needed to know yet.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// assert!(double.on_one_thread().is_none(), "the loop over i can be partitioned");
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn on_one_thread(&self) -> Option<&Diagnostics> {
        self.inner.first.parallel.get().and_then(|kernel| kernel.as_ref().err())
    }

    /// True if tensors have the layouts that this was compiled for.
    pub(crate) fn takes(&self, arguments: &[CallArgument]) -> bool {
        let layouts = &self.inner.layouts;
        arguments.len() == layouts.len() && arguments.iter().zip(layouts).all(|(a, layout)| a.fits(layout))
    }

    fn check_layouts(&self, arguments: &[CallArgument]) -> Result<(), Diagnostics> {
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

    /// The code for the sizes of these tensors, which are checked unless they were seen before.
    fn ready(&self, program: &Program, arguments: &[CallArgument]) -> Result<Arc<ReadySizes>, Diagnostics> {
        let inner = &*self.inner;
        let same = |ready: &&Arc<ReadySizes>| {
            let values = inner.values_matter.iter().zip(arguments).zip(&ready.values);
            arguments.iter().zip(&ready.shapes).all(|(argument, shape)| argument.tensor.shape() == shape)
                && values.into_iter().all(|((matters, argument), value)| !matters || integer(argument.tensor) == *value)
        };
        if let Ok(known) = inner.ready.read()
            && let Some(ready) = known.iter().rev().find(same)
        {
            return Ok(ready.clone());
        }
        let types: Vec<ParamType> = arguments.iter().map(|a| crate::signature::param_type(a.tensor)).collect();
        let checked = match inner.program.check(&types) {
            Ok(checked) => checked,
            // The same diagnostics, with places in the caller's own text.
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
            None => Arc::new(SpecialisedCode::new(&inner.scheduled, &checked, &types, &inner.layouts, &inner.options)?),
        };
        let shapes = arguments.iter().map(|argument| argument.tensor.shape().to_vec()).collect();
        let values = types.iter().map(|param| param.value).collect();
        let program = if inner.is_as_written() { program } else { &inner.scheduled };
        let ready = Arc::new(ReadySizes::new(program, &checked, &types, shapes, values, code)?);
        if let Ok(mut known) = inner.ready.write() {
            if known.len() >= KEPT {
                known.remove(0);
            }
            known.push(ready.clone());
        }
        Ok(ready)
    }

    /// The program.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// assert_eq!(double.program(), &program);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// The options it was compiled with.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let options = CompileOptions::new().strict(true);
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &options)?;
    /// assert_eq!(double.options(), &options);
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn options(&self) -> &CompileOptions {
        &self.inner.options
    }

    /// The report of its compilation, with the times of all stages.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// assert!(double.build().passes.iter().any(|pass| pass.name == "lower"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn build(&self) -> &crate::compile::Build {
        &self.inner.first.build
    }

    /// The program with its schedule applied.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let options = CompileOptions::new().schedule(Schedule::new().split("i", "i0", "i1", 8));
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &options)?;
    /// assert!(double.scheduled().to_string().contains("for i0"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn scheduled(&self) -> &Program {
        &self.inner.scheduled
    }

    /// The kernel that was translated to machine code; none if the program is interpreted.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// # let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
    /// let double = tamis::compile(&program, &Signature::of(&[&x]), &CompileOptions::new())?;
    /// assert!(double.kernel().is_some_and(|kernel| kernel.to_string().contains("for ")));
    /// # Ok::<(), Diagnostics>(())
    /// ```
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

/// The diagnostic for a tensor of another layout.
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
