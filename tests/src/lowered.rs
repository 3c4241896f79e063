//! Running compiled programs: the kernel as lowered or as optimised, in the kernel interpreter or
//! as machine code.

use std::borrow::Cow;
use tamis_backend::{llvm, runtime::run_on_arrays};
use tamis_compiler::lower::{BoundStorage, BoundTensor, Lowered, ParamLayout, Policy, lower};
use tamis_compiler::pipeline;
use tamis_compiler::schedule::copy_in;
use tamis_ir::format::{LevelSpec, Width};
use tamis_ir::kernel::{self, Array, Failure, Kernel, Memory};
use tamis_ir::program::{Checked, ParamType};
use tamis_ir::{Diagnostics, Program, Value, interp};
use tamis_tensor::levels::{Shape, level_type};
use tamis_tensor::{IndexArray, LevelArrays, Tensor};

/// The engine that runs a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    /// The kernel interpreter, with a budget of statements.
    Interpreter(u64),
    /// Machine code in check mode.
    Checked,
    /// Machine code.
    Native,
}

pub(crate) fn execute(kernel: &Kernel, memory: Memory, engine: Engine) -> Result<Memory, RunError> {
    let mut options = match engine {
        Engine::Interpreter(budget) => {
            return kernel::run(kernel, memory, budget).map_err(|failure| match failure {
                Failure::Budget => RunError::Budget,
                Failure::Required(message) => RunError::Required(message),
                other => RunError::Wrong(format!("{other:?}\n{kernel}")),
            });
        }
        _ => llvm::CodegenOptions::host().map_err(|d| RunError::Wrong(d.to_string()))?,
    };
    if engine == Engine::Checked {
        options = options.checked();
    }
    let compiled = llvm::compile(kernel, &options).map_err(|d| RunError::Wrong(format!("{d}\n{kernel}")))?;
    run_on_arrays(kernel, memory, |buffers, scalars| {
        // SAFETY: the arrays are those of the kernel, which the interpreter accepts, too.
        unsafe { compiled.call(buffers, scalars) }
    })
    .map_err(|failure| RunError::Wrong(format!("{failure:?}\n{kernel}")))
}

/// The compiler stage of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The kernel right after lowering.
    Lowered,
    /// The kernel after the whole pipeline.
    Optimised,
    /// The same, with strict IEEE arithmetic.
    Strict,
}

/// Compiles a program for tensors.
pub fn compile(program: &Program, params: &[Tensor], stage: Stage) -> Result<(Lowered, Checked), RunError> {
    let types: Vec<ParamType> = params.iter().map(|t| interp::param_type(t)).collect();
    let layouts: Vec<ParamLayout> = params.iter().map(ParamLayout::of).collect();
    if stage != Stage::Lowered {
        let options = pipeline::Options { strict: stage == Stage::Strict, ..pipeline::Options::default() };
        let made = pipeline::compile(program, &types, &layouts, options);
        let made = made.map_err(RunError::Refused)?;
        return Ok((made.lowered, made.checked));
    }
    let checked = program.check(&types).map_err(RunError::Refused)?;
    let lowered = lower(program, &checked, &layouts, Policy::default()).map_err(RunError::Refused)?;
    Ok((lowered, checked))
}

/// Lowers a program for tensors, verifies the kernel, runs it, and returns the values of each
/// result in row-major order.
pub fn run(program: &Program, params: &[Tensor], engine: Engine) -> Result<(Lowered, Vec<Vec<Value>>), RunError> {
    run_stage(program, params, Stage::Lowered, engine)
}

/// [`run`], for the kernel of either stage.
pub fn run_stage(
    program: &Program,
    params: &[Tensor],
    stage: Stage,
    engine: Engine,
) -> Result<(Lowered, Vec<Vec<Value>>), RunError> {
    let program = &*copied(program, params)?;
    let (lowered, checked) = compile(program, params, stage)?;
    lowered.kernel.verify().map_err(|wrong| RunError::Wrong(format!("{wrong}\n{}", lowered.kernel)))?;
    let results = run_compiled(program, params, &lowered, &checked, engine)?;
    Ok((lowered, results))
}

/// The program with copies of the parameters that it updates.
pub fn copied<'p>(program: &'p Program, params: &[Tensor]) -> Result<Cow<'p, Program>, RunError> {
    let layouts: Vec<ParamLayout> = params.iter().map(ParamLayout::of).collect();
    copy_in(program, &layouts).map_err(RunError::Refused)
}

/// Runs a kernel on tensors of the layouts and the specialisation that it was compiled for.
pub fn run_compiled(
    program: &Program,
    params: &[Tensor],
    lowered: &Lowered,
    checked: &Checked,
    engine: Engine,
) -> Result<Vec<Vec<Value>>, RunError> {
    let kernel = &lowered.kernel;
    let memory = memory_of(program, params, lowered, checked);
    let after = execute(kernel, memory, engine)?;
    let results = program.results.iter().map(|id| {
        let shape = &checked.extents.shapes[id.index()];
        dense_values(&lowered.bound[id.index()], shape, &after)
            .map_err(|message| RunError::Wrong(format!("{message}\n{kernel}")))
    });
    results.collect()
}

/// The number of statements that the kernel of a program executes.
pub fn count(program: &Program, params: &[Tensor], budget: u64) -> Result<u64, RunError> {
    let program = &*copied(program, params)?;
    let (lowered, checked) = compile(program, params, Stage::Optimised)?;
    let memory = memory_of(program, params, &lowered, &checked);
    match kernel::run_counted(&lowered.kernel, memory, budget) {
        Ok((_, counts)) => Ok(counts.statements),
        Err(Failure::Budget) => Err(RunError::Budget),
        Err(other) => Err(RunError::Wrong(format!("{other:?}"))),
    }
}

/// The trip count of each loop over an index of this name, summed over the kernel loops that it
/// became.
pub fn visits(program: &Program, params: &[Tensor], index: &str) -> Result<u64, RunError> {
    let program = &*copied(program, params)?;
    let (lowered, checked) = compile(program, params, Stage::Lowered)?;
    let kernel = &lowered.kernel;
    let memory = memory_of(program, params, &lowered, &checked);
    let counted = kernel::run_counted(kernel, memory, 50_000_000);
    let (_, counts) = counted.map_err(|failure| RunError::Wrong(format!("{failure:?}\n{kernel}")))?;
    let is_index = |name: &str| {
        let copy = name.strip_prefix(index).map(|rest| rest.strip_prefix('_').unwrap_or(rest));
        copy.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
    };
    Ok(kernel.vars.iter().zip(&counts.declared).filter(|(var, _)| is_index(&var.name)).map(|(_, count)| count).sum())
}

/// The arrays and sizes of tensors.
pub(crate) fn memory_of(program: &Program, params: &[Tensor], lowered: &Lowered, checked: &Checked) -> Memory {
    let kernel = &lowered.kernel;
    let mut memory = Memory { arrays: vec![Array::default(); kernel.buffers.len()], scalars: Vec::new() };
    for (id, tensor) in program.params.iter().zip(params) {
        if let BoundStorage::Levels { arrays, values, .. } = &lowered.bound[id.index()].storage {
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
    memory
}

/// The values of a result in row-major order, after its arrays were validated.
pub(crate) fn dense_values(bound: &BoundTensor, shape: &[u64], after: &Memory) -> Result<Vec<Value>, String> {
    let (format, arrays, values) = match &bound.storage {
        BoundStorage::Scalar { output, .. } => {
            return Ok(output.map(|b| after.arrays[b.index()].values().to_vec()).unwrap_or_default());
        }
        BoundStorage::Levels { format, arrays, values } => (format, arrays, values),
    };
    let order = format.dim_order().ok_or("no order")?;
    let mut parents = 1usize;
    let mut levels = Vec::new();
    for (k, level) in arrays.iter().enumerate() {
        let extent = shape[order[k]];
        let row = level_type(format.levels()[k].kind).map_err(|d| d.to_string())?;
        let array = |name: &str| -> Option<Vec<u64>> {
            let (_, buffer) = level.iter().find(|(n, _)| *n == name)?;
            after.arrays[buffer.index()].values().iter().map(|v| v.as_i64().map(|x| x as u64)).collect()
        };
        let cut = |name: &str, len: usize| -> Result<Vec<u64>, String> {
            let mut a = array(name).ok_or("no array")?;
            if a.len() < len {
                return Err(format!("{name} of level {k} has {} elements, not {len}", a.len()));
            }
            a.truncate(len);
            Ok(a)
        };
        let mut named = Vec::new();
        for name in row.arrays {
            let len = match *name {
                "pos" => parents + 1,
                "flags" => parents * extent as usize,
                _ if row.arrays.contains(&"pos") => cut("pos", parents + 1)?[parents] as usize,
                _ => parents,
            };
            let width = match *name {
                "flags" => Width::U8,
                _ => Width::U64,
            };
            let array = IndexArray::with_width(&cut(name, len)?, width).map_err(|d| d.to_string())?;
            named.push((*name, array));
        }
        let spec = LevelSpec { pos: None, crd: None, ..format.levels()[k] };
        let made = (row.from_arrays)(LevelArrays::new(named), &spec, Shape { parents, extent });
        let made = made.map_err(|d| format!("level {k}: {d}"))?;
        parents = made.children();
        levels.push(made);
    }
    let cells: u64 = shape.iter().product();
    let mut out = vec![bound.fill; cells as usize];
    let mut pending = vec![(0usize, 0usize, vec![0u64; shape.len()])];
    while let Some((k, position, at)) = pending.pop() {
        if k == levels.len() {
            let cell = at.iter().zip(shape).fold(0, |c, (i, n)| c * n + i);
            out[cell as usize] = match values {
                Some(buffer) => *after.arrays[buffer.index()].values().get(position).ok_or("too few values")?,
                None => Value::Bool(true),
            };
            continue;
        }
        levels[k].visit(position, &mut |c, child| {
            let mut at = at.clone();
            at[order[k]] = c;
            pending.push((k + 1, child, at));
        });
    }
    Ok(out)
}

/// The reason why there is no result.
#[derive(Debug)]
pub enum RunError {
    /// The program is invalid for these tensors.
    Refused(Diagnostics),
    /// The kernel reports invalid tensors.
    Required(String),
    /// The kernel is wrong.
    Wrong(String),
    /// The budget is exhausted.
    Budget,
}
