//! Running a lowered program: in the kernel interpreter, or as machine code.

use tamis_backend::{llvm, runtime::run_on_arrays};
use tamis_compiler::lower::{Lowered, ParamLayout, Stored, lower};
use tamis_ir::kernel::{self, Array, Failure, Kernel, Memory};
use tamis_ir::program::ParamType;
use tamis_ir::{Diagnostics, Program, Value, interp};
use tamis_tensor::Tensor;

/// What runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    /// The kernel interpreter, for so many statements.
    Interpreter(u64),
    /// Machine code that checks every access.
    Checked,
    /// Machine code.
    Native,
}

fn execute(kernel: &Kernel, memory: Memory, engine: Engine) -> Result<Memory, Problem> {
    let mut options = match engine {
        Engine::Interpreter(budget) => {
            return kernel::run(kernel, memory, budget).map_err(|failure| match failure {
                Failure::Budget => Problem::Budget,
                other => Problem::Wrong(format!("{other:?}\n{kernel}")),
            });
        }
        _ => llvm::Options::host().map_err(|d| Problem::Wrong(d.to_string()))?,
    };
    if engine == Engine::Checked {
        options = options.checked();
    }
    let compiled = llvm::compile(kernel, &options).map_err(|d| Problem::Wrong(format!("{d}\n{kernel}")))?;
    run_on_arrays(kernel, memory, |buffers, scalars| {
        // SAFETY: the arrays are those of the kernel, which the interpreter accepts, too.
        unsafe { compiled.call(buffers, scalars) }
    })
    .map_err(|failure| Problem::Wrong(format!("{failure:?}\n{kernel}")))
}

/// Lowers a program for tensors, checks the kernel, runs it, and gives the values of each result in row-major order.
pub fn run(program: &Program, params: &[Tensor], engine: Engine) -> Result<(Lowered, Vec<Vec<Value>>), Problem> {
    let types: Vec<ParamType> = params.iter().map(|t| interp::param_type(t)).collect();
    let checked = program.check(&types).map_err(Problem::Refused)?;
    let layouts: Vec<ParamLayout> = params.iter().map(ParamLayout::of).collect();
    let lowered = lower(program, &checked, &layouts);
    let kernel = &lowered.kernel;
    kernel.verify().map_err(|wrong| Problem::Wrong(format!("{wrong}\n{kernel}")))?;
    let mut memory = Memory { arrays: vec![Array::default(); kernel.buffers.len()], scalars: Vec::new() };
    for (id, tensor) in program.params.iter().zip(params) {
        if let Stored::Levels { arrays, values, .. } = &lowered.bound[id.index()].storage {
            for (k, level) in arrays.iter().enumerate() {
                for (name, buffer) in level {
                    let array = tensor.level_arrays(k).get(name).map(|a| a.to_vec()).unwrap_or_default();
                    memory.arrays[buffer.index()] = Array::from_indices(&array);
                }
            }
            if let (Some(buffer), Some(values)) = (values, tensor.values()) {
                memory.arrays[buffer.index()] = Array::from_values((0..values.len()).map(|k| values.get(k)));
            }
        }
    }
    for (id, dim) in &lowered.sizes {
        memory.scalars.push(Value::I64(checked.extents.shapes[id.index()][*dim] as i64));
    }
    // Results of rank 0 have an output of one element, the last buffers of the kernel.
    let scalars: Vec<usize> = (0..kernel.buffers.len()).filter(|k| kernel.buffers[*k].name.ends_with("_out")).collect();
    for k in &scalars {
        memory.arrays[*k] = Array::from_values([Value::zero(kernel.buffers[*k].elem.dtype())]);
    }
    let after = execute(kernel, memory, engine)?;
    let mut outputs = scalars.into_iter();
    let results = program.results.iter().map(|id| match &lowered.bound[id.index()].storage {
        Stored::Dense(buffer) => {
            let cells: u64 = checked.extents.shapes[id.index()].iter().product();
            after.arrays[buffer.index()].values()[..cells as usize].to_vec()
        }
        _ => outputs.next().map(|k| after.arrays[k].values().to_vec()).unwrap_or_default(),
    });
    let results = results.collect();
    Ok((lowered, results))
}

/// Why there is no result.
#[derive(Debug)]
pub enum Problem {
    /// The program is not right for these tensors.
    Refused(Diagnostics),
    /// The kernel is wrong.
    Wrong(String),
    /// It takes too long.
    Budget,
}
