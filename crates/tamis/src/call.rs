//! Calling machine code: tensors become buffers, and buffers become tensors, without copying.

use crate::compile::{Ready, Timed};
use crate::output::{self, Output};
use crate::signature::Argument;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tamis_backend::{CompiledKernel, KernelFailure, RawBuffer, Storage};
use tamis_compiler::lower::{Lowered, SizeParam, Stored};
use tamis_ir::format::Format;
use tamis_ir::kernel::{Elem, Kernel, Role};
use tamis_ir::program::{Checked, Program, TensorId};
use tamis_ir::{Code, Diagnostic, Diagnostics, Value, interp};
use tamis_tensor::levels::{Placement, level_type};
use tamis_tensor::{IndexArray, Tensor, ValueArray, with_indices, with_values};

/// A program has this long (in loop iterations) to say again, in its own words, what went wrong.
const RETELLING: u64 = 20_000_000;

/// Positions of dense levels at most. No memory holds as many, and a sum of a few such numbers is a number that kernels compute with.
const MOST_CELLS: u64 = 1 << 62;

/// Machine code, and what its buffers and scalars are.
pub(crate) struct Machine {
    compiled: Arc<CompiledKernel>,
    inputs: Vec<Input>,
    /// Buffers that the kernel writes, which start empty.
    starts: Vec<(usize, Elem)>,
    outputs: Vec<Output>,
    sizes: Vec<SizeParam>,
    /// Which tensor each buffer belongs to.
    owners: Vec<Option<TensorId>>,
    /// Declared tensors as the kernel writes them: their formats, and the ranges of levels that have a position for every coordinate.
    dense: Vec<(TensorId, Format, Vec<Range<usize>>)>,
}

/// A buffer that is an array of a parameter.
struct Input {
    buffer: usize,
    param: usize,
    /// Which level, and which of its arrays; none for the values.
    array: Option<(usize, usize)>,
}

/// Why a call gave no result.
pub(crate) enum Problem {
    /// The kernel failed.
    Failure(KernelFailure),
    /// A result could not be made from what the kernel wrote.
    Result(TensorId, Diagnostic),
    /// The results of parts could not be combined.
    Combined(Diagnostics),
}

impl From<KernelFailure> for Problem {
    fn from(failure: KernelFailure) -> Problem {
        Problem::Failure(failure)
    }
}

impl Machine {
    pub(crate) fn new(
        program: &Program,
        checked: &Checked,
        lowered: &Lowered,
        compiled: Arc<CompiledKernel>,
    ) -> Result<Machine, Diagnostics> {
        let kernel = &lowered.kernel;
        let mut owners = vec![None; kernel.buffers.len()];
        for (k, bound) in lowered.bound.iter().enumerate() {
            let owner = Some(TensorId(k as u32));
            match &bound.storage {
                Stored::Levels { arrays, values, .. } => {
                    let arrays = arrays.iter().flatten().map(|(_, buffer)| buffer);
                    // Parameters come first: arrays that results share are theirs.
                    arrays.chain(values).for_each(|buffer| owners[buffer.index()] = owners[buffer.index()].or(owner));
                }
                Stored::Scalar { .. } => {}
            }
        }
        let outputs = output::plan(program, checked, lowered)?;
        for output in &outputs {
            output.buffers().for_each(|buffer| owners[buffer] = Some(output.tensor));
        }
        let starts = kernel.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Output);
        Ok(Machine {
            inputs: inputs(program, lowered),
            starts: starts.map(|(k, buffer)| (k, buffer.elem)).collect(),
            outputs,
            sizes: lowered.sizes.clone(),
            owners,
            dense: dense_levels(program, lowered),
            compiled,
        })
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        self.compiled.kernel()
    }

    pub(crate) fn compiled(&self) -> &CompiledKernel {
        &self.compiled
    }

    pub(crate) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Buffers that the kernel writes, which start empty.
    pub(crate) fn starts(&self) -> &[(usize, Elem)] {
        &self.starts
    }

    /// The arrays of the arguments, where the kernel looks for them.
    pub(crate) fn input_buffers(&self, arguments: &[Argument]) -> Vec<RawBuffer> {
        let mut buffers = vec![RawBuffer::empty(); self.owners.len()];
        for input in &self.inputs {
            let argument = &arguments[input.param];
            buffers[input.buffer] = match input.array {
                Some((level, k)) => raw_indices(&argument.levels[level].arrays[k].1),
                None => argument.tensor.values().map_or(RawBuffer::empty(), raw_values),
            };
        }
        buffers
    }

    /// The kernel's scalar arguments for sizes that were checked. Sizes whose product is not a number that kernels
    /// compute with are refused here, since a kernel would see another one.
    pub(crate) fn scalars(&self, program: &Program, checked: &Checked) -> Result<Vec<Value>, Diagnostic> {
        let shapes = &checked.extents.shapes;
        for (id, format, ranges) in &self.dense {
            let shape = &shapes[id.index()];
            let told = |d: Diagnostic| program.origin.attach(d.label(program.origin.tensor(*id), "declared here"));
            let extents = format.level_extents(shape).map_err(told)?;
            for range in ranges {
                let cells = extents[range.clone()].iter().try_fold(1u64, |cells, n| {
                    // Where nothing has a position, nothing further in has one.
                    if cells == 0 { Some(0) } else { cells.checked_mul(*n).filter(|cells| *cells <= MOST_CELLS) }
                });
                if cells.is_none() {
                    let message = match range.start {
                        0 => format!("a dense tensor of shape {shape:?} is too large to exist"),
                        _ => {
                            let sizes: Vec<String> = extents[range.clone()].iter().map(u64::to_string).collect();
                            let sizes = sizes.join(" x ");
                            format!(
                                "a tensor of shape {shape:?} does not fit in memory as `{format}`: each entry above its dense levels holds {sizes} elements"
                            )
                        }
                    };
                    return Err(told(Diagnostic::new(Code::E0404, message).help("declare it with a sparse format")));
                }
            }
        }
        Ok(self.sizes.iter().map(|(id, dim)| Value::I64(shapes[id.index()][*dim] as i64)).collect())
    }
}

/// Which arrays of the parameters the kernel reads.
fn inputs(program: &Program, lowered: &Lowered) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (param, id) in program.params.iter().enumerate() {
        let Stored::Levels { arrays, values, .. } = &lowered.bound[id.index()].storage else { continue };
        for (level, arrays) in arrays.iter().enumerate() {
            for (k, (_, buffer)) in arrays.iter().enumerate() {
                inputs.push(Input { buffer: buffer.index(), param, array: Some((level, k)) });
            }
        }
        inputs.extend(values.map(|buffer| Input { buffer: buffer.index(), param, array: None }));
    }
    inputs
}

/// The levels of each declared tensor that have a position for every coordinate, one range for those that follow each other. Kernels multiply
/// the sizes of such levels, and one more time by the number of entries above: that product is that of memory that exists,
/// but for the entry that is being appended.
fn dense_levels(program: &Program, lowered: &Lowered) -> Vec<(TensorId, Format, Vec<Range<usize>>)> {
    let declared = program.tensors.iter().zip(&lowered.bound).enumerate().filter(|(_, (i, _))| i.declaration.is_some());
    let ranges = declared.filter_map(|(k, (_, bound))| {
        let Stored::Levels { format, .. } = &bound.storage else { return None };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (level, spec) in format.levels().iter().enumerate() {
            match ranges.last_mut() {
                _ if !level_type(spec.kind).is_ok_and(|row| row.write.placement() == Placement::Computed) => {}
                Some(last) if last.end == level => last.end += 1,
                _ => ranges.push(level..level + 1),
            }
        }
        Some((TensorId(k as u32), format.clone(), ranges))
    });
    ranges.collect()
}

/// What a kernel left behind.
pub(crate) struct Ran {
    /// The arrays that it wrote, by buffer.
    pub(crate) storages: Vec<Option<Storage>>,
    /// How long it ran.
    pub(crate) kernel: Duration,
    pub(crate) workspaces: Vec<(String, tamis_backend::runtime::workspace::WorkspaceReport)>,
    /// How long each array is that it was given.
    pub(crate) given: Vec<u64>,
    /// How many parts of the outermost loop were done one by one.
    pub(crate) parts: usize,
    /// Results that are tensors already, by their place among the results.
    pub(crate) made: Vec<(usize, Tensor)>,
}

impl Ran {
    /// Numbers that the kernel wrote to a buffer that is no part of a result.
    pub(crate) fn numbers(&mut self, buffer: usize) -> Option<Vec<i64>> {
        self.storages.get_mut(buffer)?.take()?.into_vec().ok()
    }
}

/// Runs the kernel on the arrays of the arguments, and makes tensors of what it wrote.
pub(crate) fn call(machine: &Machine, ready: &Ready, arguments: &[Argument], check: bool) -> Result<Timed, Problem> {
    let ran = invoke(machine, &ready.scalars, arguments)?;
    finish(machine, ran, &ready.results, arguments, check)
}

/// Runs the kernel on the arrays of the arguments.
pub(crate) fn invoke(machine: &Machine, scalars: &[Value], arguments: &[Argument]) -> Result<Ran, Problem> {
    let mut buffers = machine.input_buffers(arguments);
    let given = buffers.iter().map(|buffer| buffer.len).collect();
    let mut storages: Vec<Option<Storage>> = Vec::new();
    storages.resize_with(buffers.len(), || None);
    for (k, elem) in &machine.starts {
        let storage = Storage::new(*elem);
        buffers[*k] = storage.raw();
        storages[*k] = Some(storage);
    }
    let start = Instant::now();
    let mut workspaces = Vec::new();
    let mut report = |name: &str, report| workspaces.push((name.to_string(), report));
    // SAFETY: inputs are the arrays of tensors with the layouts that the kernel was made for, which keep the invariants
    // that it relies on and live until the end of this function; outputs are storages of their own.
    let outcome = unsafe { machine.compiled.call_with_reports(&mut buffers, scalars, &mut report) };
    let kernel = start.elapsed();
    for (storage, raw) in storages.iter_mut().zip(&buffers) {
        if let Some(storage) = storage {
            // SAFETY: the descriptor is this storage's own, and only the kernel has changed it. It is put back after a
            // failure, too, so that what has grown is freed.
            unsafe { storage.set_raw(*raw) };
        }
    }
    outcome?;
    Ok(Ran { storages, kernel, workspaces, given, parts: 1, made: Vec::new() })
}

/// Makes tensors of what a kernel wrote that ran to its end.
pub(crate) fn finish(
    machine: &Machine,
    ran: Ran,
    shapes: &[Vec<u64>],
    arguments: &[Argument],
    check: bool,
) -> Result<Timed, Problem> {
    let Ran { mut storages, kernel, workspaces, parts, mut made, .. } = ran;
    let mut results = Vec::with_capacity(machine.outputs.len());
    for (k, (output, shape)) in machine.outputs.iter().zip(shapes).enumerate() {
        if let Some(place) = made.iter().position(|(of, _)| *of == k) {
            results.push((output.name.clone(), made.swap_remove(place).1));
            continue;
        }
        let tensor = output.tensor(shape, machine.kernel(), &mut storages, arguments, check);
        let tensor = tensor.map_err(|d| Problem::Result(output.tensor, d))?;
        results.push((output.name.clone(), tensor));
    }
    Ok(Timed { results, kernel, workspaces, parts })
}

fn raw_indices(array: &IndexArray) -> RawBuffer {
    with_indices!(array, x => RawBuffer::input(x))
}

fn raw_values(values: &ValueArray) -> RawBuffer {
    with_values!(values, x => RawBuffer::input(x))
}

impl Problem {
    /// What is told to the user.
    pub(crate) fn diagnostics(self, program: &Program, tensors: &[&Tensor], machine: &Machine) -> Diagnostics {
        let named = |d: Diagnostic, id: Option<TensorId>, label: &str| match id {
            Some(id) => program.origin.attach(d.label(program.origin.tensor(id), label)),
            None => d,
        };
        let failure = match self {
            Problem::Result(id, d) => return named(d, Some(id), "this result").into(),
            Problem::Combined(errors) => return errors,
            Problem::Failure(failure) => failure,
        };
        match &failure {
            KernelFailure::Required(_) => {
                // The interpreter stops at the same place, or its results do not fit their formats either; it says where.
                let options = interp::Options { strict: false, budget: Some(RETELLING) };
                match crate::interpret::run_with(program, tensors, options) {
                    Err(errors) if errors.0.iter().all(|d| d.code != Code::E1003) => errors,
                    _ => program.origin.attach(failure.diagnostic()).into(),
                }
            }
            KernelFailure::Memory { buffer, .. } => {
                let place = machine.kernel().buffers.iter().position(|b| b.name == *buffer);
                let owner = place.and_then(|place| machine.owners[place]);
                named(failure.diagnostic(), owner, "does not fit in memory").into()
            }
            KernelFailure::Bounds { .. }
            | KernelFailure::Width { .. }
            | KernelFailure::Policy { .. }
            | KernelFailure::Call(_) => failure.diagnostic().note(format!("the program is\n{program}")).into(),
        }
    }
}
