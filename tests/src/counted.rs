//! Running instrumented kernels: their counters, and the counts of the kernel interpreter.

use crate::lowered::{Engine, RunError, copied, dense_values, execute, memory_of};
use tamis_compiler::counts::Counts;
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline;
use tamis_ir::kernel;
use tamis_ir::program::ParamType;
use tamis_ir::{Program, Value, interp};
use tamis_tensor::Tensor;

/// The counts from both sources.
pub struct Counted {
    /// The counters of the kernel.
    pub counts: Counts,
    /// The counts of the interpreter for the kernel without counters.
    pub interpreted: kernel::ExecutionCounts,
    /// The results of the instrumented kernel.
    pub results: Vec<Vec<Value>>,
    /// The names of the loops.
    pub indices: Vec<String>,
}

impl Counted {
    /// The trip count of the first loop over this index.
    pub fn visits(&self, index: &str) -> u64 {
        let place = self.indices.iter().position(|name| name == index);
        place.map_or(0, |place| self.counts.loops[place].visits)
    }
}

/// Compiles an instrumented program, and runs it.
pub fn count(program: &Program, params: &[Tensor], engine: Engine) -> Result<Counted, RunError> {
    let program = &*copied(program, params)?;
    let types: Vec<ParamType> = params.iter().map(|t| interp::param_type(t)).collect();
    let layouts: Vec<ParamLayout> = params.iter().map(ParamLayout::of).collect();
    let options = pipeline::Options { count: true, ..pipeline::Options::default() };
    let made = pipeline::compile(program, &types, &layouts, options).map_err(RunError::Refused)?;
    let Some((counting, plain)) = made.counting.as_deref() else {
        return Err(RunError::Wrong("nothing is counted".into()));
    };
    let memory = memory_of(program, params, &made.lowered, &made.checked);
    let (_, interpreted) = match kernel::run_counted(plain, memory.clone(), 20_000_000) {
        Ok(ran) => ran,
        Err(kernel::Failure::Budget) => return Err(RunError::Budget),
        Err(kernel::Failure::Required(message)) => return Err(RunError::Required(message)),
        Err(other) => return Err(RunError::Wrong(format!("{other:?}\n{plain}"))),
    };
    let after = execute(&made.lowered.kernel, memory, engine)?;
    let counters: Option<Vec<i64>> =
        after.arrays[counting.buffer.index()].values().iter().map(|value| value.as_i64()).collect();
    let counts = counting.read(plain, &counters.unwrap_or_default());
    let results = program.results.iter().map(|id| {
        let shape = &made.checked.extents.shapes[id.index()];
        dense_values(&made.lowered.bound[id.index()], shape, &after).map_err(RunError::Wrong)
    });
    Ok(Counted {
        counts,
        interpreted,
        results: results.collect::<Result<_, _>>()?,
        indices: made.program.indices.clone(),
    })
}
