//! Machine code through LLVM.
//!
//! [`compile`] takes a kernel to a function in memory: IR as text (`emit/`), passes and code generation
//! (`machine`), linking (`jit`).

mod emit;
mod jit;
mod machine;
mod names;
mod pieces;

pub use machine::TargetCpu;
pub use pieces::single_threaded;

use crate::facts::Facts;
use crate::failure::{KernelFailure, RawFailure, bug};
use crate::runtime::memory::{align, release};
use crate::runtime::{RawBuffer, memory::element_bytes, workspace};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tamis_ir::kernel::{Elem, Kernel, Merge, Role, Workspace};
use tamis_ir::{Diagnostic, Value};

/// How much work goes into machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// None, to see what was emitted.
    None,
    /// The passes that kernels gain from.
    #[default]
    Tuned,
    /// LLVM's O2.
    O2,
}

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct CodegenOptions {
    /// Check every access of a buffer, and every number stored as a coordinate.
    pub check: bool,
    pub optimise: OptLevel,
    pub target: Arc<TargetCpu>,
}

impl CodegenOptions {
    /// Fast code for this machine.
    pub fn host() -> Result<CodegenOptions, Diagnostic> {
        Ok(CodegenOptions { check: false, optimise: OptLevel::default(), target: TargetCpu::host()? })
    }

    /// The same with every access checked.
    pub fn checked(self) -> CodegenOptions {
        CodegenOptions { check: true, ..self }
    }
}

/// How long the stages of a compilation took; what was not done (because the cache had it) took no time.
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
    /// The sum of all stages.
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
pub struct CompiledKernel {
    kernel: Arc<Kernel>,
    messages: Vec<String>,
    workspaces: Vec<Arc<Workspace>>,
    /// One after the other.
    code: Arc<Vec<jit::Loaded>>,
    timings: Timings,
}

impl fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledKernel").field("kernel", &self.kernel.name).field("timings", &self.timings).finish()
    }
}

/// Compiles a kernel, without looking into the cache (see [`crate::cache`]).
pub fn compile(kernel: &Kernel, options: &CodegenOptions) -> Result<CompiledKernel, Diagnostic> {
    in_pieces(kernel, options, None)
}

/// [`compile`], in pieces of about so many statements: for tests.
#[doc(hidden)]
pub fn in_pieces(kernel: &Kernel, options: &CodegenOptions, size: Option<usize>) -> Result<CompiledKernel, Diagnostic> {
    let facts = Facts::new(kernel)?;
    let mut timings = Timings::default();
    let object = object_of(kernel, &facts, options, size, &mut timings)?;
    // SAFETY: the object was just made, for the processor that the options name.
    unsafe { load(Arc::new(kernel.clone()), &facts, &object, timings) }
}

/// The object file of a kernel, or files, one after the other.
pub(crate) fn object(
    kernel: &Kernel,
    facts: &Facts,
    options: &CodegenOptions,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    object_of(kernel, facts, options, None, timings)
}

fn object_of(
    kernel: &Kernel,
    facts: &Facts,
    options: &CodegenOptions,
    size: Option<usize>,
    timings: &mut Timings,
) -> Result<Vec<u8>, Diagnostic> {
    let start = Instant::now();
    let emitted = emit::emit(kernel, facts, options, size)?;
    timings.emit = start.elapsed();
    let one = |ir: &emit::Emitted| {
        let mut timings = Timings::default();
        machine::object(ir, &options.target, options.optimise, &mut timings).map(|object| (object, timings))
    };
    let Some((first, rest)) = emitted.split_first() else { return Err(bug("a kernel without pieces")) };
    let made: Vec<Result<(Vec<u8>, Timings), Diagnostic>> = if pieces::helped() && !rest.is_empty() {
        std::thread::scope(|scope| {
            // LLVM goes deep; where there is no other thread to be had, this one does it all.
            let thread = || std::thread::Builder::new().stack_size(8 << 20);
            let others: Vec<_> =
                rest.iter().map(|ir| (ir, thread().spawn_scoped(scope, move || one(ir)).ok())).collect();
            let first = one(first);
            let ended = |(ir, thread): (&emit::Emitted, Option<std::thread::ScopedJoinHandle<'_, _>>)| match thread {
                Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                None => one(ir),
            };
            std::iter::once(first).chain(others.into_iter().map(ended)).collect()
        })
    } else {
        emitted.iter().map(one).collect()
    };
    let made: Vec<(Vec<u8>, Timings)> = made.into_iter().collect::<Result<_, _>>()?;
    for (_, piece) in &made {
        // What is done at the same time takes as long as the longest of it.
        let both = if pieces::helped() { Duration::max } else { |a, b| a + b };
        timings.parse = both(timings.parse, piece.parse);
        timings.optimise = both(timings.optimise, piece.optimise);
        timings.generate = both(timings.generate, piece.generate);
    }
    let objects: Vec<Vec<u8>> = made.into_iter().map(|(object, _)| object).collect();
    Ok(pieces::joined(&objects))
}

/// Loads an object file.
///
/// # Safety
/// The object was made from a kernel with this structure by this version of the backend, for this processor.
pub(crate) unsafe fn load(
    kernel: Arc<Kernel>,
    facts: &Facts,
    object: &[u8],
    mut timings: Timings,
) -> Result<CompiledKernel, Diagnostic> {
    let start = Instant::now();
    // SAFETY: promised by the caller.
    let load = |object| unsafe { jit::Loaded::new(object) };
    let objects = pieces::parted(object).ok_or_else(|| bug("an object that is cut off"))?;
    let code = Arc::new(objects.into_iter().map(load).collect::<Result<Vec<_>, _>>()?);
    timings.link = start.elapsed();
    Ok(CompiledKernel { kernel, messages: facts.messages.clone(), workspaces: facts.workspaces.clone(), code, timings })
}

/// A workspace of a kernel, as the runtime makes it.
pub(crate) fn description(kernel: &Kernel, workspace: &Workspace) -> workspace::Description {
    let width = |buffer: &tamis_ir::kernel::BufferId| match kernel.buffer(*buffer).elem {
        Elem::Index(width) => width,
        Elem::Value(_) => tamis_ir::format::Width::U64,
    };
    workspace::Description {
        widths: workspace.coordinates.iter().map(width).collect(),
        dtype: workspace.start.dtype(),
        init: workspace.start,
        merge: match workspace.merge {
            Merge::Never => None,
            Merge::Later => Some(workspace::Merge::Later),
            Merge::With(op) => Some(workspace::Merge::Op(op)),
        },
        policy: workspace.policy.clone().unwrap_or_else(|| "coord".to_string()),
        capacity: workspace.capacity.and_then(std::num::NonZero::new),
        pipelined: workspace.pipelined,
    }
}

/// A kernel's texts, to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Listings {
    /// LLVM IR as it is emitted.
    pub emitted: String,
    /// LLVM IR after all passes.
    pub llvm: String,
    pub assembly: String,
}

/// The texts of a kernel: LLVM IR before and after the passes, and assembly.
pub fn listings(kernel: &Kernel, options: &CodegenOptions) -> Result<Listings, Diagnostic> {
    let facts = Facts::new(kernel)?;
    let mut all = Listings { emitted: String::new(), llvm: String::new(), assembly: String::new() };
    for (k, emitted) in emit::emit(kernel, &facts, options, None)?.iter().enumerate() {
        let (llvm, assembly) = machine::texts(emitted, &options.target, options.optimise)?;
        for (text, piece) in [(&mut all.emitted, &emitted.text), (&mut all.llvm, &llvm), (&mut all.assembly, &assembly)]
        {
            text.push_str(if k > 0 { "\n" } else { "" });
            text.push_str(piece);
        }
    }
    Ok(all)
}

impl CompiledKernel {
    /// The kernel that this is the code of.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// How long it took to make.
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// The same code for a kernel that differs only in names and messages.
    pub(crate) fn renamed(&self, kernel: Arc<Kernel>, facts: Facts) -> CompiledKernel {
        let (messages, workspaces) = (facts.messages, facts.workspaces);
        CompiledKernel { kernel, messages, workspaces, code: self.code.clone(), timings: Timings::default() }
    }

    /// Runs the kernel on one buffer for each of its own (anything for scratch and tiles, which come and go) and one
    /// scalar for each parameter. Outputs that grew have new descriptors afterwards, also when the kernel fails.
    ///
    /// # Safety
    /// Each input and output describes elements of its buffer's type, which nobody writes (nor reads, for outputs)
    /// meanwhile and which do not overlap; memory of outputs is as [`RawBuffer`] says. The kernel stays within
    /// its buffers, unless it was compiled with [`CodegenOptions::check`].
    pub unsafe fn call(&self, buffers: &mut [RawBuffer], scalars: &[Value]) -> Result<(), KernelFailure> {
        // SAFETY: promised by the caller.
        unsafe { self.call_with_reports(buffers, scalars, &mut |_, _| {}) }
    }

    /// [`CompiledKernel::call`], which tells of each workspace what it did and needed, also when the kernel fails.
    ///
    /// # Safety
    /// As for [`CompiledKernel::call`].
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
            let which: Vec<usize> = workspace.buffers().map(|buffer| buffer.index()).collect();
            // SAFETY: the buffers are the kernel's, outlive the workspace, and stay where they are.
            let made =
                unsafe { workspace::Workspace::new(&description(kernel, workspace), buffers.as_mut_ptr(), &which) };
            workspaces.push(made.map_err(|wrong| KernelFailure::Call(format!("`{}`: {wrong}", workspace.name)))?);
        }
        // Pointers to workspaces follow those to scalars.
        pointers.extend(workspaces.iter_mut().map(|workspace| std::ptr::from_mut(workspace).cast_const().cast::<u8>()));
        // And one to where variables are handed on.
        let several = self.code.len() > 1;
        let mut handed = vec![0u128; if several { kernel.vars.len() } else { 0 }];
        pointers.push(handed.as_mut_ptr().cast_const().cast());
        let mut failure = RawFailure::default();
        let mut status = 0;
        for code in self.code.iter() {
            // SAFETY: the tables have the entries that the kernel reads; the rest is promised by the caller.
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
