//! The Tamis side of benchmarks: compiles a program for tensors, times its calls, and returns its
//! results.

use std::time::{Duration, Instant};
use tamis::prelude::*;
use tamis_backend::llvm;
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline;
use tamis_ir::interp;
use tamis_ir::program::ParamType;

/// A compiled program with its tensors.
#[derive(Debug)]
pub struct TamisCall {
    executable: Executable,
    tensors: Vec<Tensor>,
    results: Results,
    kernel: Duration,
    time: Duration,
    report: Option<tamis::compile::WorkspaceReport>,
}

/// The times of a compilation: the total, and the back end's stages.
#[derive(Clone, Copy, Debug)]
pub struct CompileTime {
    /// From text to an executable.
    pub total: Duration,
    /// The CPU time of this thread, which does not depend on the load of the machine.
    pub thread: Duration,
    /// The stages of the back end.
    pub backend: llvm::Timings,
}

/// Compiles a program for tensors, in the order of its parameters. Returns diagnostics as text.
pub fn ours(text: &str, tensors: &[Tensor]) -> Result<TamisCall, String> {
    let rendered = |d: Diagnostics| d.render(false);
    let time = compile_time(text, tensors)?.total;
    let program = Program::parse(text).map_err(rendered)?;
    let references: Vec<&Tensor> = tensors.iter().collect();
    let executable =
        tamis::compile(&program, &Signature::of(&references), &CompileOptions::default()).map_err(rendered)?;
    Ok(TamisCall {
        executable,
        tensors: tensors.to_vec(),
        results: Results::default(),
        report: None,
        kernel: Duration::ZERO,
        time,
    })
}

/// Compiles from text to an executable, without any cache.
pub fn compile_time(text: &str, tensors: &[Tensor]) -> Result<CompileTime, String> {
    let rendered = |d: Diagnostics| d.render(false);
    let (start, thread) = (Instant::now(), thread_time());
    let program = Program::parse(text).map_err(rendered)?;
    let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    let compilation = pipeline::compile(&program, &types, &layouts, pipeline::Options::default()).map_err(rendered)?;
    let options = llvm::CodegenOptions::host().map_err(|d| d.render(false))?;
    let compiled = llvm::compile(&compilation.lowered.kernel, &options).map_err(|d| d.render(false))?;
    let (total, thread) = (start.elapsed(), thread_time().saturating_sub(thread));
    Ok(CompileTime { total, thread, backend: compiled.timings() })
}

/// The CPU time of this thread.
fn thread_time() -> Duration {
    running(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The CPU time of all threads of this process.
pub fn process_time() -> Duration {
    running(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn running(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl TamisCall {
    /// Runs the program; the memory of the previous results is free again.
    pub fn call(&mut self) -> Result<(), String> {
        self.results = Results::default();
        let tensors: Vec<&Tensor> = self.tensors.iter().collect();
        let timed = self.executable.call_timed(&tensors).map_err(|d| d.render(false))?;
        (self.results, self.kernel) = (timed.results, timed.kernel);
        self.report = timed.workspaces.into_iter().map(|(_, report)| report).next();
        Ok(())
    }

    /// Frees the last results outside of the timing, as for the other side.
    pub fn forget(&mut self) {
        self.results = Results::default();
    }

    /// From text to an executable.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The time of the kernel alone in the last call.
    pub fn kernel(&self) -> Duration {
        self.kernel
    }

    /// The workspace report of the last call, if it had a workspace.
    pub fn report(&self) -> Option<tamis::compile::WorkspaceReport> {
        self.report
    }

    /// The results of the last call.
    pub fn results(&self) -> Result<Vec<Tensor>, String> {
        Ok(self.results.tensors().cloned().collect())
    }
}
