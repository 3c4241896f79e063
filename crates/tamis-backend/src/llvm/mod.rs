//! LLVM back end: compiles a kernel to machine code in memory.
//!
//! [`compile`] emits IR as text (`emit/`), splits large kernels into functions (`outline`), runs
//! passes and code generation (`target_machine`), and links the object (`jit`). Listings of all
//! stages are available through [`listings`].

mod cpu_names;
mod emit;
mod jit;
mod outline;
mod target_machine;

pub use outline::single_threaded;
pub use target_machine::TargetCpu;

use crate::facts::KernelFacts;
use crate::failure::{KernelFailure, RawFailure, bug};
use crate::runtime::memory::{align, release};
use crate::runtime::{RawBuffer, memory::element_bytes, workspace};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tamis_ir::kernel::{Elem, Kernel, Merge, Role, Workspace};
use tamis_ir::{Diagnostic, Value};

/// The optimisation level.
///
/// ```
/// use tamis_backend::llvm::OptLevel;
/// assert_eq!(OptLevel::default(), OptLevel::Tuned);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// No passes, to inspect the emitted IR.
    None,
    /// A pass pipeline tuned for kernels.
    #[default]
    Tuned,
    /// LLVM's O2 pipeline.
    O2,
}

/// Options of code generation.
///
/// ```
/// use tamis_backend::llvm::{CodegenOptions, OptLevel, TargetCpu};
/// let target = TargetCpu::host()?;
/// let readable = CodegenOptions { check: false, opt_level: OptLevel::None, target };
/// assert_ne!(readable, CodegenOptions::host()?);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct CodegenOptions {
    /// Checks every buffer access, and every stored coordinate.
    pub check: bool,
    pub opt_level: OptLevel,
    pub target: Arc<TargetCpu>,
}

impl CodegenOptions {
    /// Optimised code for the host CPU.
    ///
    /// ```
    /// use tamis_backend::llvm::{CodegenOptions, OptLevel};
    /// let options = CodegenOptions::host()?;
    /// assert!(!options.check && options.opt_level == OptLevel::Tuned);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn host() -> Result<CodegenOptions, Diagnostic> {
        Ok(CodegenOptions { check: false, opt_level: OptLevel::default(), target: TargetCpu::host()? })
    }

    /// The same options with every access checked.
    ///
    /// ```
    /// use tamis_backend::llvm::CodegenOptions;
    /// assert!(CodegenOptions::host()?.checked().check);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn checked(self) -> CodegenOptions {
        CodegenOptions { check: true, ..self }
    }
}

/// Times of the compilation stages; stages that a cache hit skipped have time 0.
///
/// ```
/// use std::time::Duration;
/// use tamis_backend::llvm::Timings;
/// let (emit, link) = (Duration::from_millis(1), Duration::from_millis(2));
/// let timings = Timings { emit, link, ..Timings::default() };
/// assert!(timings.to_string().ends_with("link 2.00 ms, total 3.00 ms"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Timings {
    pub emit: Duration,
    pub parse: Duration,
    pub optimise: Duration,
    pub generate: Duration,
    pub link: Duration,
}

impl Timings {
    /// The total time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis_backend::llvm::Timings;
    /// let (emit, link) = (Duration::from_millis(1), Duration::from_millis(2));
    /// assert_eq!(Timings { emit, link, ..Timings::default() }.total(), Duration::from_millis(3));
    /// ```
    pub fn total(&self) -> Duration {
        self.emit + self.parse + self.optimise + self.generate + self.link
    }
}

impl fmt::Display for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = [
            ("emit", self.emit),
            ("parse", self.parse),
            ("optimise", self.optimise),
            ("generate", self.generate),
            ("link", self.link),
        ];
        for (name, time) in stages {
            write!(f, "{name} {:.2} ms, ", time.as_secs_f64() * 1e3)?;
        }
        write!(f, "total {:.2} ms", self.total().as_secs_f64() * 1e3)
    }
}

/// The machine code of a kernel, ready to be called from any thread.
///
/// ```
/// # use tamis_ir::kernel::{Array, Kernel, Memory};
/// # use tamis_ir::Value;
/// # use tamis_backend::llvm::{self, CodegenOptions};
/// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
/// let kernel = Kernel::parse(text)?;
/// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
/// assert_eq!(compiled.kernel().name, "f");
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub struct CompiledKernel {
    kernel: Arc<Kernel>,
    messages: Vec<String>,
    workspaces: Vec<Arc<Workspace>>,
    /// Outlined functions, called in sequence.
    code: Arc<Vec<jit::LoadedCode>>,
    timings: Timings,
}

impl fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledKernel").field("kernel", &self.kernel.name).field("timings", &self.timings).finish()
    }
}

/// Compiles a kernel, without the cache (see [`crate::cache`]). Concurrent loops run serially; one
/// with loops over the threads of a block is legalised first ([`Kernel::legalized`]).
///
/// ```
/// use tamis_backend::RawBuffer;
/// # use tamis_ir::kernel::{Array, Kernel, Memory};
/// # use tamis_ir::Value;
/// # use tamis_backend::llvm::{self, CodegenOptions};
/// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
/// let kernel = Kernel::parse(text)?;
/// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
/// let (x, mut y) = ([1.0, 2.0], [0.0]);
/// let mut buffers = [RawBuffer::input(&x), RawBuffer::output(&mut y)];
/// // SAFETY: the buffers are of `f64`, and hold the elements that the kernel accesses.
/// unsafe { compiled.call(&mut buffers, &[]) }.unwrap();
/// assert_eq!(y, [2.0]);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn compile(kernel: &Kernel, options: &CodegenOptions) -> Result<CompiledKernel, Diagnostic> {
    compile_outlined(kernel, options, None)
}

/// [`compile`], split into functions of about `size` statements: for tests.
#[doc(hidden)]
pub fn compile_outlined(
    kernel: &Kernel,
    options: &CodegenOptions,
    size: Option<usize>,
) -> Result<CompiledKernel, Diagnostic> {
    let facts = KernelFacts::new(kernel)?;
    let mut timings = Timings::default();
    let object = object_of(kernel, &facts, options, size, &mut timings)?;
    // SAFETY: the object was just made, for the CPU of the options.
    unsafe { load(Arc::new(kernel.clone()), &facts, &object, timings) }
}

/// Compiles a kernel to one or more concatenated object files.
pub(crate) fn object(
    kernel: &Kernel,
    facts: &KernelFacts,
    options: &CodegenOptions,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    object_of(kernel, facts, options, None, timings)
}

fn object_of(
    kernel: &Kernel,
    facts: &KernelFacts,
    options: &CodegenOptions,
    size: Option<usize>,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    let start = Instant::now();
    let emitted = emit::emit(kernel, facts, options, size)?;
    timings.emit = start.elapsed();
    let one = |ir: &emit::FunctionIr| {
        let mut timings = Timings::default();
        target_machine::object(ir, &options.target, options.opt_level, &mut timings).map(|object| (object, timings))
    };
    if emitted.is_empty() {
        return Err(bug("a kernel without functions"));
    }
    let made = in_parallel(&emitted, &one);
    let made: Vec<(Vec<u8>, Timings)> = made.into_iter().collect::<Result<_, _>>()?;
    for (_, times) in &made {
        // Parallel stages of two functions take as long as the slower one.
        let combine = if outline::uses_threads() && made.len() <= 2 { Duration::max } else { |a, b| a + b };
        timings.parse = combine(timings.parse, times.parse);
        timings.optimise = combine(timings.optimise, times.optimise);
        timings.generate = combine(timings.generate, times.generate);
    }
    let objects: Vec<Vec<u8>> = made.into_iter().map(|(object, _)| object).collect();
    Ok(outline::join_objects(&objects))
}

/// The results of some work on each function of a kernel, in order; with helper threads, if they
/// are permitted.
fn in_parallel<T: Send>(emitted: &[emit::FunctionIr], work: &(dyn Fn(&emit::FunctionIr) -> T + Sync)) -> Vec<T> {
    let threads = match outline::uses_threads() {
        true => std::thread::available_parallelism().map_or(1, usize::from).min(emitted.len()),
        false => 1,
    };
    if threads < 2 {
        return emitted.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done: Vec<(usize, T)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(ir) = emitted.get(at) else { break done };
            done.push((at, work(ir)));
        }
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        // LLVM needs a deep stack; if no thread can be spawned, this one compiles everything.
        let thread = || std::thread::Builder::new().stack_size(8 << 20);
        let others: Vec<_> = (1..threads).filter_map(|_| thread().spawn_scoped(scope, share).ok()).collect();
        let mut done = share();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Loads an object file.
///
/// # Safety
/// The object was made from a kernel with this structure by this version of the backend, for this
/// CPU.
pub(crate) unsafe fn load(
    kernel: Arc<Kernel>,
    facts: &KernelFacts,
    object: &[u8],
    mut timings: Timings,
) -> Result<CompiledKernel, Diagnostic> {
    let start = Instant::now();
    // SAFETY: guaranteed by the caller.
    let load = |object| unsafe { jit::LoadedCode::new(object) };
    let objects = outline::split_objects(object).ok_or_else(|| bug("a truncated object file"))?;
    let code = Arc::new(objects.into_iter().map(load).collect::<Result<Vec<_>, _>>()?);
    timings.link = start.elapsed();
    Ok(CompiledKernel { kernel, messages: facts.messages.clone(), workspaces: facts.workspaces.clone(), code, timings })
}

/// The specification of a workspace for the runtime.
pub(crate) fn workspace_spec(kernel: &Kernel, workspace: &Workspace) -> workspace::WorkspaceSpec {
    let width = |buffer: &tamis_ir::kernel::BufferId| match kernel.buffer(*buffer).elem {
        Elem::Index(width) => width,
        Elem::Value(_) => tamis_ir::format::Width::U64,
    };
    workspace::WorkspaceSpec {
        widths: workspace.coordinates.iter().map(width).collect(),
        dtype: workspace.start.dtype(),
        init: workspace.start,
        merge: match workspace.merge {
            Merge::Never => None,
            Merge::Later => Some(workspace::MergeOp::KeepLast),
            Merge::With(op) => Some(workspace::MergeOp::Op(op)),
        },
        policy: workspace.policy.clone().unwrap_or_else(|| "coord".to_string()),
        capacity: workspace.capacity.and_then(std::num::NonZero::new),
        pipelined: workspace.pipelined,
    }
}

/// Readable listings of a kernel.
///
/// ```
/// # use tamis_ir::kernel::{Array, Kernel, Memory};
/// # use tamis_ir::Value;
/// # use tamis_backend::llvm::{self, CodegenOptions};
/// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
/// let kernel = Kernel::parse(text)?;
/// let listings = llvm::listings(&kernel, &CodegenOptions::host()?)?;
/// assert!(!listings.assembly.is_empty());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Listings {
    /// The emitted LLVM IR.
    pub emitted: String,
    /// The optimised LLVM IR.
    pub llvm: String,
    pub assembly: String,
}

/// Compiles a kernel to listings: LLVM IR before and after the passes, and assembly.
///
/// ```
/// # use tamis_ir::kernel::{Array, Kernel, Memory};
/// # use tamis_ir::Value;
/// # use tamis_backend::llvm::{self, CodegenOptions};
/// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
/// let kernel = Kernel::parse(text)?;
/// let listings = llvm::listings(&kernel, &CodegenOptions::host()?)?;
/// assert!(listings.emitted.contains("define") && listings.llvm.contains("define"));
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn listings(kernel: &Kernel, options: &CodegenOptions) -> Result<Listings, Diagnostic> {
    let facts = KernelFacts::new(kernel)?;
    let mut all = Listings { emitted: String::new(), llvm: String::new(), assembly: String::new() };
    for (k, emitted) in emit::emit(kernel, &facts, options, None)?.iter().enumerate() {
        let (llvm, assembly) = target_machine::listings(emitted, &options.target, options.opt_level)?;
        for (text, listing) in
            [(&mut all.emitted, &emitted.text), (&mut all.llvm, &llvm), (&mut all.assembly, &assembly)]
        {
            text.push_str(if k > 0 { "\n" } else { "" });
            text.push_str(listing);
        }
    }
    Ok(all)
}

impl CompiledKernel {
    /// The compiled kernel.
    ///
    /// ```
    /// # use tamis_ir::kernel::{Array, Kernel, Memory};
    /// # use tamis_ir::Value;
    /// # use tamis_backend::llvm::{self, CodegenOptions};
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
    /// let kernel = Kernel::parse(text)?;
    /// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
    /// assert_eq!(compiled.kernel(), &kernel);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The times of its compilation.
    ///
    /// ```
    /// # use tamis_ir::kernel::{Array, Kernel, Memory};
    /// # use tamis_ir::Value;
    /// # use tamis_backend::llvm::{self, CodegenOptions};
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
    /// let kernel = Kernel::parse(text)?;
    /// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
    /// assert!(compiled.timings().generate.as_nanos() > 0);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// The same code for a kernel that differs only in names and messages.
    pub(crate) fn renamed(&self, kernel: Arc<Kernel>, facts: KernelFacts) -> CompiledKernel {
        let (messages, workspaces) = (facts.messages, facts.workspaces);
        CompiledKernel { kernel, messages, workspaces, code: self.code.clone(), timings: Timings::default() }
    }

    /// Runs the kernel on one buffer for each of its own (ignored for scratch and tiles, which the
    /// kernel allocates) and one scalar for each parameter. Outputs that grew have new descriptors
    /// afterwards, even when the kernel fails.
    ///
    /// # Safety
    /// Each input and output describes elements of its buffer's type. No other code writes inputs
    /// or accesses outputs during the call, and buffers do not overlap. The memory of outputs is as
    /// [`RawBuffer`] describes. The kernel stays within its buffers, unless it was compiled with
    /// [`CodegenOptions::check`].
    ///
    /// ```
    /// # use tamis_ir::kernel::{Array, Kernel, Memory};
    /// # use tamis_ir::Value;
    /// # use tamis_backend::llvm::{self, CodegenOptions};
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
    /// let kernel = Kernel::parse(text)?;
    /// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
    /// let memory = [vec![1.0, 2.0], vec![0.0]];
    /// let arrays = memory.map(|x| Array::from_values(x.into_iter().map(Value::F64))).to_vec();
    /// let memory = Memory { arrays, scalars: Vec::new() };
    /// let after = tamis_backend::runtime::run_on_arrays(&kernel, memory, |buffers, scalars| {
    ///     // SAFETY: the arrays have the kernel's types, and the elements that it accesses.
    ///     unsafe { compiled.call(buffers, scalars) }
    /// });
    /// assert_eq!(after.unwrap().arrays[1].get(0), Some(Value::F64(2.0)));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub unsafe fn call(&self, buffers: &mut [RawBuffer], scalars: &[Value]) -> Result<(), KernelFailure> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.call_with_reports(buffers, scalars, &mut |_, _| {}) }
    }

    /// [`CompiledKernel::call`], which reports the counters and memory of each workspace, even when
    /// the kernel fails.
    ///
    /// # Safety
    /// As for [`CompiledKernel::call`].
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_ir::kernel::{Array, Kernel, Memory};
    /// # use tamis_ir::Value;
    /// # use tamis_backend::llvm::{self, CodegenOptions};
    /// let text = "kernel f\n    in x: f64[]\n    out y: f64[]\nbegin\n    y[0] = x[1]\n";
    /// let kernel = Kernel::parse(text)?;
    /// let compiled = llvm::compile(&kernel, &CodegenOptions::host()?)?;
    /// let (x, mut y, mut workspaces) = ([1.0, 2.0], [0.0], 0);
    /// let mut buffers = [RawBuffer::input(&x), RawBuffer::output(&mut y)];
    /// let mut count = |_: &str, _| workspaces += 1;
    /// // SAFETY: the buffers are of `f64`, and hold the elements that the kernel accesses.
    /// unsafe { compiled.call_with_reports(&mut buffers, &[], &mut count) }.unwrap();
    /// assert_eq!((y, workspaces), ([2.0], 0));
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub unsafe fn call_with_reports(
        &self,
        buffers: &mut [RawBuffer],
        scalars: &[Value],
        report: &mut dyn FnMut(&str, workspace::WorkspaceReport),
    ) -> Result<(), KernelFailure> {
        let kernel = &*self.kernel;
        if buffers.len() != kernel.buffers.len() || scalars.len() != kernel.params.len() {
            let (a, b) = (kernel.buffers.len(), kernel.params.len());
            return Err(KernelFailure::Call(format!(
                "`{}` takes {a} buffers and {b} scalars, not {} and {}",
                kernel.name,
                buffers.len(),
                scalars.len()
            )));
        }
        let mut bytes: Vec<[u8; 16]> = Vec::with_capacity(scalars.len());
        for (param, value) in kernel.params.iter().zip(scalars) {
            let var = kernel.var(*param);
            if var.dtype != value.dtype() {
                let (name, dtype) = (&var.name, var.dtype);
                return Err(KernelFailure::Call(format!("the scalar `{name}` is {dtype}, not {}", value.dtype())));
            }
            bytes.push(element_bytes(Elem::Value(var.dtype), *value).0);
        }
        let mut pointers: Vec<*const u8> = bytes.iter().map(|bytes| bytes.as_ptr()).collect();
        let own = |role: Role| matches!(role, Role::Scratch | Role::Tile(_));
        for (buffer, raw) in kernel.buffers.iter().zip(buffers.iter_mut()) {
            if own(buffer.role) {
                *raw = RawBuffer::empty();
            }
        }
        let mut workspaces = Vec::with_capacity(self.workspaces.len());
        for workspace in &self.workspaces {
            let buffer_ids: Vec<usize> = workspace.buffers().map(|buffer| buffer.index()).collect();
            // SAFETY: the buffers are the kernel's, outlive the workspace, and do not move.
            let made = unsafe {
                workspace::RuntimeWorkspace::new(&workspace_spec(kernel, workspace), buffers.as_mut_ptr(), &buffer_ids)
            };
            workspaces.push(made.map_err(|wrong| KernelFailure::Call(format!("`{}`: {wrong}", workspace.name)))?);
        }
        // The scalar table continues with the pointers to workspaces, ...
        pointers.extend(workspaces.iter_mut().map(|workspace| std::ptr::from_mut(workspace).cast_const().cast::<u8>()));
        // ... and ends with the memory of live variables between outlined functions.
        let outlined = self.code.len() > 1;
        let slots = kernel.vars.iter().map(|var| usize::from(var.lanes)).sum();
        let mut live_vars = vec![0u128; if outlined { slots } else { 0 }];
        pointers.push(live_vars.as_mut_ptr().cast_const().cast());
        let mut failure = RawFailure::default();
        let mut status = 0;
        for code in self.code.iter() {
            // SAFETY: the tables have the entries that the kernel reads; the caller guarantees the
            // rest.
            status = unsafe { (code.entry)(buffers.as_mut_ptr(), pointers.as_ptr(), &mut failure) };
            if status != 0 {
                break;
            }
        }
        for (made, workspace) in workspaces.iter().zip(&self.workspaces) {
            report(&workspace.name, made.report());
        }
        drop(workspaces);
        for (buffer, raw) in kernel.buffers.iter().zip(buffers.iter_mut()) {
            if own(buffer.role) {
                release(raw, buffer.elem.size(), align(buffer.elem));
            }
        }
        if status == 0 { Ok(()) } else { Err(KernelFailure::from_raw(kernel, &self.messages, status, failure)) }
    }
}
