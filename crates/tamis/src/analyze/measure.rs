//! Compiling with and without counters, and running both.

use crate::call::{self, Machine, Problem, Ran};
use crate::signature::{Argument, Signature};
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

/// The kernel runs at most so often, and not again after so long.
const RUNS: usize = 10;
const LONGEST: Duration = Duration::from_millis(400);

/// It runs at least so often, unless that takes very long: the first run finds no memory that was used before, and may take many
/// times as long as those after it.
const FEWEST: usize = 3;
const VERY_LONG: Duration = Duration::from_secs(10);

/// Kernels with more loop nests are not taken apart: each nest is one more kernel to compile and run.
const NESTS: usize = 8;

/// A program, compiled twice, and what it is called with.
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

/// What was counted and timed.
pub(super) struct Measured {
    pub(super) counts: Counts,
    pub(super) results: Vec<(String, Tensor)>,
    /// How long each array is that the kernel was given.
    pub(super) given: Vec<u64>,
    pub(super) time: Duration,
    pub(super) time_counting: Duration,
    pub(super) runs: usize,
    /// The share of each loop nest in the time; nothing if they were not measured.
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
        crate::compile::share_memory();
        let compile = |count: bool| {
            let options = pipeline::Options { strict, count, part: false };
            pipeline::compile_checked(program, checked.clone(), &signature.types, &signature.layouts, options)
        };
        let mut counted = compile(true)?;
        let (counting, kernel) = *counted.counting.take().ok_or_else(lost)?;
        Ok(Run { program, checked, tensors, counted, counting, kernel, plain: compile(false)? })
    }

    fn machine(&self, compilation: &Compilation, lowered: &Lowered) -> Result<(Machine, Vec<Value>), Diagnostics> {
        let (compiled, _) = Cache::global().get_or_compile(&lowered.kernel, &llvm::CodegenOptions::host()?)?;
        let machine = Machine::new(&compilation.program, &compilation.checked, lowered, compiled)?;
        let scalars = machine.scalars(&compilation.program, &compilation.checked)?;
        Ok((machine, scalars))
    }

    fn told(&self, problem: Problem, machine: &Machine) -> Diagnostics {
        problem.diagnostics(self.program, self.tensors, machine)
    }

    pub(super) fn measure(&self) -> Result<Measured, Diagnostics> {
        let arguments = Argument::all(self.tensors);
        let (machine, scalars) = self.machine(&self.plain, &self.plain.lowered)?;
        let (last, time, runs) = self.best(&machine, &scalars, &arguments)?;
        let shapes: Vec<Vec<u64>> =
            self.program.results.iter().map(|id| self.checked.extents.shapes[id.index()].clone()).collect();
        let finished = call::finish(&machine, last, &shapes, &arguments, false).map_err(|p| self.told(p, &machine))?;

        let (machine, scalars) = self.machine(&self.counted, &self.counted.lowered)?;
        let mut ran = call::invoke(&machine, &scalars, &arguments).map_err(|p| self.told(p, &machine))?;
        let counters = ran.numbers(self.counting.buffer.index()).ok_or_else(lost)?;
        let counts = self.counting.read(&self.kernel, &counters);
        let (given, time_counting) = (std::mem::take(&mut ran.given), ran.kernel);
        drop(ran);
        let shares = self.shares(time, &arguments)?;
        Ok(Measured { counts, results: finished.results, given, time, time_counting, runs, shares })
    }

    /// Runs a kernel several times; gives what the last one left, the least time, and how many runs there were.
    fn best(
        &self,
        machine: &Machine,
        scalars: &[Value],
        arguments: &[Argument],
    ) -> Result<(Ran, Duration, usize), Diagnostics> {
        let start = Instant::now();
        let once = || call::invoke(machine, scalars, arguments).map_err(|p| self.told(p, machine));
        let mut last = once()?;
        let (mut least, mut runs) = (last.kernel, 1);
        while runs < RUNS && start.elapsed() < if runs < FEWEST { VERY_LONG } else { LONGEST } {
            // Its memory is free for the next one.
            drop(last);
            last = once()?;
            least = least.min(last.kernel);
            runs += 1;
        }
        Ok((last, least, runs))
    }

    /// The share of each loop nest: what the kernel takes up to its end, less what it takes up to its start.
    fn shares(&self, whole: Duration, arguments: &[Argument]) -> Result<Option<Vec<f64>>, Diagnostics> {
        let kernel = &self.plain.lowered.kernel;
        let found = nests(kernel);
        if found.is_empty() || found.len() > NESTS || nests(&self.kernel).len() != found.len() {
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
        // Noise may have a shorter kernel take longer.
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

fn lost() -> Diagnostic {
    Diagnostic::new(Code::E1101, "the kernel did not write its counters")
        .note("this is a bug in Tamis")
        .help("please report the program; it runs without `--analyze`")
}
