//! Measurement for an analysis: compiles the kernel with and without counters, and runs both.
//!
//! The kernel without counters is timed, several times; the one with counters runs once. The time
//! of each loop nest is the difference of two prefixes of the kernel.

use crate::call::{self, BoundKernel, CallError, KernelOutcome};
use crate::donate::Donations;
use crate::results::Results;
use crate::signature::{CallArgument, Signature};
use std::time::{Duration, Instant};
use tamis_backend::cache::Cache;
use tamis_backend::llvm;
use tamis_compiler::counts::{Counting, Counts, nests, prefix};
use tamis_compiler::lower::Lowered;
use tamis_compiler::pipeline::{self, Compilation};
use tamis_ir::kernel::Kernel;
use tamis_ir::program::{Checked, Program};
use tamis_ir::{Code, Diagnostic, Diagnostics, Value};
use tamis_tensor::Tensor;

/// The most runs of the kernel.
const MAX_RUNS: usize = 10;

/// No further run starts after this time.
const TIME_LIMIT: Duration = Duration::from_millis(400);

/// The least runs within [`LONG_TIME_LIMIT`]: the first run takes fresh memory, and may take many
/// times as long as later ones.
const MIN_RUNS: usize = 3;

/// No further run starts after this time, whatever their number.
const LONG_TIME_LIMIT: Duration = Duration::from_secs(10);

/// The nests of kernels with more of them are not timed: each is one more kernel to compile and
/// run.
const MAX_NESTS: usize = 8;

/// A program, compiled with and without counters, and its tensors.
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    checked: &'a Checked,
    tensors: &'a [&'a Tensor],
    pub(super) counted: Compilation,
    pub(super) counting: Counting,
    /// The kernel that counters were added to.
    pub(super) kernel: Kernel,
    plain: Compilation,
}

/// Counters and times of a run.
pub(super) struct Measured {
    pub(super) counts: Counts,
    pub(super) results: Results,
    /// The length of each array that the kernel was called with.
    pub(super) input_lengths: Vec<u64>,
    pub(super) time: Duration,
    pub(super) time_counting: Duration,
    pub(super) runs: usize,
    /// The share of each loop nest in the time; none if they were not measured.
    pub(super) shares: Option<Vec<f64>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        program: &'a Program,
        checked: &'a Checked,
        signature: &Signature,
        tensors: &'a [&'a Tensor],
        strict: bool,
    ) -> Result<Run<'a>, Diagnostics> {
        crate::compile::share_memory_pool();
        let compile = |count: bool| {
            let options = pipeline::Options { strict, count, ..pipeline::Options::default() };
            pipeline::compile_checked(program, checked.clone(), &signature.types, &signature.layouts, options)
        };
        let mut counted = compile(true)?;
        let (counting, kernel) = *counted.counting.take().ok_or_else(missing_counters)?;
        Ok(Run { program, checked, tensors, counted, counting, kernel, plain: compile(false)? })
    }

    fn machine(&self, compilation: &Compilation, lowered: &Lowered) -> Result<(BoundKernel, Vec<Value>), Diagnostics> {
        let (compiled, _) = Cache::global().get_or_compile(&lowered.kernel, &llvm::CodegenOptions::host()?)?;
        let machine = BoundKernel::new(&compilation.program, &compilation.checked, lowered, compiled)?;
        let scalars = machine.scalars(&compilation.program, &compilation.checked)?;
        Ok((machine, scalars))
    }

    fn diagnostics(&self, error: CallError, machine: &BoundKernel) -> Diagnostics {
        error.diagnostics(self.program, self.tensors, machine)
    }

    pub(super) fn measure(&self) -> Result<Measured, Diagnostics> {
        let arguments = CallArgument::all(self.tensors);
        let (machine, scalars) = self.machine(&self.plain, &self.plain.lowered)?;
        let (last, time, runs) = self.best(&machine, &scalars, &arguments)?;
        let shapes: Vec<Vec<u64>> =
            self.program.results.iter().map(|id| self.checked.extents.shapes[id.index()].clone()).collect();
        let none = Donations::default();
        let finished = call::finish(&machine, last, &shapes, &arguments, &none, false)
            .map_err(|p| self.diagnostics(p, &machine))?;

        let (machine, scalars) = self.machine(&self.counted, &self.counted.lowered)?;
        let mut ran = call::invoke(&machine, &scalars, &arguments, &none).map_err(|p| self.diagnostics(p, &machine))?;
        let counters = ran.take_integers(self.counting.buffer.index()).ok_or_else(missing_counters)?;
        let counts = self.counting.read(&self.kernel, &counters);
        let (input_lengths, time_counting) = (std::mem::take(&mut ran.input_lengths), ran.kernel);
        drop(ran);
        let shares = self.shares(time, &arguments)?;
        Ok(Measured { counts, results: finished.results, input_lengths, time, time_counting, runs, shares })
    }

    /// Runs a kernel several times. Gives the outcome of the last run, the least time, and the
    /// number of runs.
    fn best(
        &self,
        machine: &BoundKernel,
        scalars: &[Value],
        arguments: &[CallArgument],
    ) -> Result<(KernelOutcome, Duration, usize), Diagnostics> {
        let start = Instant::now();
        let once = || {
            call::invoke(machine, scalars, arguments, &Donations::default()).map_err(|p| self.diagnostics(p, machine))
        };
        let mut last = once()?;
        let (mut least, mut runs) = (last.kernel, 1);
        while runs < MAX_RUNS && start.elapsed() < if runs < MIN_RUNS { LONG_TIME_LIMIT } else { TIME_LIMIT } {
            // The next run reuses its memory.
            drop(last);
            last = once()?;
            least = least.min(last.kernel);
            runs += 1;
        }
        Ok((last, least, runs))
    }

    /// The share of each loop nest: the time of the kernel up to its end, less the time up to its
    /// start.
    fn shares(&self, whole: Duration, arguments: &[CallArgument]) -> Result<Option<Vec<f64>>, Diagnostics> {
        let kernel = &self.plain.lowered.kernel;
        let found = nests(kernel);
        if found.is_empty() || found.len() > MAX_NESTS || nests(&self.kernel).len() != found.len() {
            return Ok(None);
        }
        let mut ends = Vec::new();
        for nest in &found[..found.len() - 1] {
            let lowered = Lowered { kernel: prefix(kernel, nest.stop), ..self.plain.lowered.clone() };
            if lowered.kernel.verify().is_err() {
                return Ok(None);
            }
            let (machine, scalars) = self.machine(&self.plain, &lowered)?;
            let (_, time, _) = self.best(&machine, &scalars, arguments)?;
            ends.push(time.as_secs_f64());
        }
        ends.push(whole.as_secs_f64());
        // With noise, a shorter kernel may take longer.
        let mut before = 0.0;
        let mut shares = Vec::new();
        for end in ends {
            shares.push((end - before).max(0.0));
            before = before.max(end);
        }
        let sum: f64 = shares.iter().sum();
        Ok((sum > 0.0).then(|| shares.into_iter().map(|share| share / sum).collect()))
    }
}

fn missing_counters() -> Diagnostic {
    Diagnostic::new(Code::E1101, "the kernel did not write its counters")
        .note("this is a bug in Tamis")
        .help("please report the program; it runs without `--analyze`")
}
