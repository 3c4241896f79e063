//! Our side: a program and tensors become something that can be called, timed, and asked for its results.

use std::time::{Duration, Instant};
use tamis::prelude::*;
use tamis_backend::llvm;
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline;
use tamis_ir::interp;
use tamis_ir::program::ParamType;

/// A compiled program with its tensors.
#[derive(Debug)]
pub struct Ours {
    executable: Executable,
    tensors: Vec<Tensor>,
    results: Results,
    kernel: Duration,
    time: Duration,
    report: Option<tamis::compile::WorkspaceReport>,
}

/// What a compilation took: all of it, and the backend's part by stages.
#[derive(Clone, Copy, Debug)]
pub struct CompileTime {
    /// Text to runnable.
    pub total: Duration,
    /// The time of this thread alone: the same on a machine that does nothing else.
    pub thread: Duration,
    /// The backend's part.
    pub backend: llvm::Timings,
}

/// Compiles a program for tensors, in the order of its parameters. What is wrong is told as text.
pub fn ours(text: &str, tensors: &[Tensor]) -> Result<Ours, String> {
    let told = |d: Diagnostics| d.render(false);
    let time = compile_time(text, tensors)?.total;
    let program = Program::parse(text).map_err(told)?;
    let references: Vec<&Tensor> = tensors.iter().collect();
    let executable = tamis::compile(&program, &Signature::of(&references), &CompileOptions::default()).map_err(told)?;
    Ok(Ours {
        executable,
        tensors: tensors.to_vec(),
        results: Results::default(),
        report: None,
        kernel: Duration::ZERO,
        time,
    })
}

/// From text to something that runs, without any cache.
pub fn compile_time(text: &str, tensors: &[Tensor]) -> Result<CompileTime, String> {
    let told = |d: Diagnostics| d.render(false);
    let (start, thread) = (Instant::now(), thread_time());
    let program = Program::parse(text).map_err(told)?;
    let types: Vec<ParamType> = tensors.iter().map(|t| interp::param_type(t)).collect();
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    let compilation = pipeline::compile(&program, &types, &layouts, pipeline::Options::default()).map_err(told)?;
    let options = llvm::CodegenOptions::host().map_err(|d| d.render(false))?;
    let compiled = llvm::compile(&compilation.lowered.kernel, &options).map_err(|d| d.render(false))?;
    let (total, thread) = (start.elapsed(), thread_time().saturating_sub(thread));
    Ok(CompileTime { total, thread, backend: compiled.timings() })
}

/// How long this thread has been running.
fn thread_time() -> Duration {
    running(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long all threads of this process have been running.
pub fn process_time() -> Duration {
    running(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn running(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a place of its own.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Ours {
    /// Runs the program; the memory of the last results is free again.
    pub fn call(&mut self) -> Result<(), String> {
        self.results = Results::default();
        let tensors: Vec<&Tensor> = self.tensors.iter().collect();
        let timed = self.executable.call_timed(&tensors).map_err(|d| d.render(false))?;
        (self.results, self.kernel) = (timed.results, timed.kernel);
        self.report = timed.workspaces.into_iter().map(|(_, report)| report).next();
        Ok(())
    }

    /// Frees the last results, which is not part of what is measured, as it is not for a peer.
    pub fn forget(&mut self) {
        self.results = Results::default();
    }

    /// Text to runnable.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// What the kernel alone took when it was last called.
    pub fn kernel(&self) -> Duration {
        self.kernel
    }

    /// What the workspace of the last run did and needed, if it had one.
    pub fn report(&self) -> Option<tamis::compile::WorkspaceReport> {
        self.report
    }

    /// The results of the last run.
    pub fn results(&self) -> Result<Vec<Tensor>, String> {
        Ok(self.results.tensors().cloned().collect())
    }
}
