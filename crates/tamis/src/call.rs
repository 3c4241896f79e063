//! Calls of machine code: the arrays of tensors become buffers, and buffers become tensors,
//! zero-copy.
//!
//! In: compiled code, and arguments whose layouts fit it. Out: results, or a diagnostic in the
//! words of the user's program. The caller has checked layouts and sizes.

use crate::donate::Donations;
use crate::executable::{CallReport, ReadySizes};
use crate::output::{self, Output};
use crate::results::Results;
use crate::signature::CallArgument;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tamis_backend::{CompiledKernel, KernelFailure, RawBuffer, RawStorage};
use tamis_compiler::lower::{BoundStorage, Lowered, SizeParam};
use tamis_ir::format::Format;
use tamis_ir::kernel::{Elem, Kernel, Role};
use tamis_ir::program::{Checked, Program, TensorId};
use tamis_ir::{Code, Diagnostic, Diagnostics, Value, interp};
use tamis_tensor::levels::{Placement, level_type};
use tamis_tensor::{IndexArray, Tensor, ValueArray, with_indices, with_values};

/// After a kernel fails, the interpreter visits this many points at most to find the failing
/// access.
const DIAGNOSIS_BUDGET: u64 = 20_000_000;

/// The most positions that dense levels may have. No memory holds as many, and a sum of a few such
/// numbers does not overflow.
const MAX_POSITIONS: u64 = 1 << 62;

/// Machine code, and the meaning of its buffers and scalars.
pub(crate) struct BoundKernel {
    compiled: Arc<CompiledKernel>,
    inputs: Vec<Input>,
    /// Buffers that the kernel allocates, which start empty.
    allocated: Vec<(usize, Elem)>,
    outputs: Vec<Output>,
    sizes: Vec<SizeParam>,
    /// The tensor that each buffer belongs to.
    owners: Vec<Option<TensorId>>,
    /// Formats of declared tensors as the kernel writes them, with the ranges of consecutive dense
    /// levels.
    dense_ranges: Vec<(TensorId, Format, Vec<Range<usize>>)>,
}

/// A buffer that is an array of a parameter.
struct Input {
    buffer: usize,
    param: usize,
    /// The level and the array within it; none for the values.
    array: Option<(usize, usize)>,
}

/// Why a call gave no result.
pub(crate) enum CallError {
    /// The kernel failed.
    Failure(KernelFailure),
    /// A result could not be made from what the kernel wrote.
    Result(TensorId, Diagnostic),
    /// Privatised results could not be combined.
    Combination(Diagnostics),
}

impl From<KernelFailure> for CallError {
    fn from(failure: KernelFailure) -> CallError {
        CallError::Failure(failure)
    }
}

impl BoundKernel {
    pub(crate) fn new(
        program: &Program,
        checked: &Checked,
        lowered: &Lowered,
        compiled: Arc<CompiledKernel>,
    ) -> Result<BoundKernel, Diagnostics> {
        let kernel = &lowered.kernel;
        let mut owners = vec![None; kernel.buffers.len()];
        for (k, bound) in lowered.bound.iter().enumerate() {
            let owner = Some(TensorId(k as u32));
            match &bound.storage {
                BoundStorage::Levels { arrays, values, .. } => {
                    let arrays = arrays.iter().flatten().map(|(_, buffer)| buffer);
                    // Parameters come first, so they own the arrays that results share.
                    arrays.chain(values).for_each(|buffer| owners[buffer.index()] = owners[buffer.index()].or(owner));
                }
                BoundStorage::Scalar { .. } => {}
            }
        }
        let outputs = output::plan(program, checked, lowered)?;
        for output in &outputs {
            output.buffers().for_each(|buffer| owners[buffer] = Some(output.tensor));
        }
        let allocated = kernel.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Output);
        Ok(BoundKernel {
            inputs: inputs(program, lowered),
            allocated: allocated.map(|(k, buffer)| (k, buffer.elem)).collect(),
            outputs,
            sizes: lowered.sizes.clone(),
            owners,
            dense_ranges: dense_ranges(program, lowered),
            compiled,
        })
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        self.compiled.kernel()
    }

    pub(crate) fn compiled(&self) -> &CompiledKernel {
        &self.compiled
    }

    /// The buffer of the values of a parameter.
    pub(crate) fn values_of_param(&self, param: usize) -> Option<usize> {
        self.inputs.iter().find(|input| input.param == param && input.array.is_none()).map(|input| input.buffer)
    }

    pub(crate) fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Buffers that the kernel allocates, which start empty.
    pub(crate) fn allocated(&self) -> &[(usize, Elem)] {
        &self.allocated
    }

    /// The arrays of the arguments, as the kernel's table of buffers.
    pub(crate) fn input_buffers(&self, arguments: &[CallArgument]) -> Vec<RawBuffer> {
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

    /// The kernel's scalar arguments for checked sizes. Sizes whose product overflows are refused:
    /// the kernel would compute with another number.
    pub(crate) fn scalars(&self, program: &Program, checked: &Checked) -> Result<Vec<Value>, Diagnostic> {
        let shapes = &checked.extents.shapes;
        for (id, format, ranges) in &self.dense_ranges {
            let shape = &shapes[id.index()];
            let located = |d: Diagnostic| program.origin.attach(d.label(program.origin.tensor(*id), "declared here"));
            let extents = format.level_extents(shape).map_err(located)?;
            for range in ranges {
                let positions = extents[range.clone()].iter().try_fold(1u64, |positions, n| {
                    // No position above means none below.
                    if positions == 0 { Some(0) } else { positions.checked_mul(*n).filter(|n| *n <= MAX_POSITIONS) }
                });
                if positions.is_none() {
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
                    return Err(located(Diagnostic::new(Code::E0404, message).help("declare it with a sparse format")));
                }
            }
        }
        Ok(self.sizes.iter().map(|(id, dim)| Value::I64(shapes[id.index()][*dim] as i64)).collect())
    }
}

/// The arrays of the parameters that the kernel reads.
fn inputs(program: &Program, lowered: &Lowered) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (param, id) in program.params.iter().enumerate() {
        let BoundStorage::Levels { arrays, values, .. } = &lowered.bound[id.index()].storage else { continue };
        for (level, arrays) in arrays.iter().enumerate() {
            for (k, (_, buffer)) in arrays.iter().enumerate() {
                inputs.push(Input { buffer: buffer.index(), param, array: Some((level, k)) });
            }
        }
        inputs.extend(values.map(|buffer| Input { buffer: buffer.index(), param, array: None }));
    }
    inputs
}

/// The ranges of consecutive dense levels of each declared tensor. Kernels multiply the extents of
/// such levels, and the product by the number of positions above; memory of that size exists, but
/// for the element that is being appended.
fn dense_ranges(program: &Program, lowered: &Lowered) -> Vec<(TensorId, Format, Vec<Range<usize>>)> {
    let declared = program.tensors.iter().zip(&lowered.bound).enumerate().filter(|(_, (i, _))| i.declaration.is_some());
    let ranges = declared.filter_map(|(k, (_, bound))| {
        let BoundStorage::Levels { format, .. } = &bound.storage else { return None };
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

/// The results of a call, and its statistics.
pub(crate) struct KernelOutcome {
    /// The arrays that it wrote, by buffer.
    pub(crate) storages: Vec<Option<RawStorage>>,
    /// Its time.
    pub(crate) kernel: Duration,
    pub(crate) workspaces: Vec<(String, tamis_backend::runtime::workspace::WorkspaceReport)>,
    /// The length of each array that it was called with.
    pub(crate) input_lengths: Vec<u64>,
    /// The number of chunks of the outermost loop; 1 for a sequential call.
    pub(crate) chunks: usize,
    /// Results that are tensors already, by their position among the results.
    pub(crate) tensors: Vec<(usize, Tensor)>,
}

impl KernelOutcome {
    /// Takes the integers that the kernel wrote to a buffer that belongs to no result.
    pub(crate) fn take_integers(&mut self, buffer: usize) -> Option<Vec<i64>> {
        self.storages.get_mut(buffer)?.take()?.into_vec().ok()
    }
}

/// Runs the kernel on the arrays of the arguments, and makes tensors of its outputs.
pub(crate) fn call(
    machine: &BoundKernel,
    ready: &ReadySizes,
    arguments: &[CallArgument],
    donations: &Donations,
    check: bool,
) -> Result<CallReport, CallError> {
    let outcome = invoke(machine, &ready.scalars, arguments, donations)?;
    finish(machine, outcome, &ready.results, arguments, donations, check)
}

/// Runs the kernel on the arrays of the arguments.
pub(crate) fn invoke(
    machine: &BoundKernel,
    scalars: &[Value],
    arguments: &[CallArgument],
    donations: &Donations,
) -> Result<KernelOutcome, CallError> {
    let mut buffers = machine.input_buffers(arguments);
    let input_lengths = buffers.iter().map(|buffer| buffer.len).collect();
    let mut storages: Vec<Option<RawStorage>> = Vec::new();
    storages.resize_with(buffers.len(), || None);
    for (k, elem) in &machine.allocated {
        let storage = donations.storage(machine, *k).unwrap_or_else(|| RawStorage::new(*elem));
        buffers[*k] = storage.raw();
        storages[*k] = Some(storage);
    }
    let start = Instant::now();
    let mut workspaces = Vec::new();
    let mut report = |name: &str, report| workspaces.push((name.to_string(), report));
    let compiled = donations.in_place.as_ref().unwrap_or(&machine.compiled);
    // SAFETY: inputs are the arrays of tensors with the layouts that the kernel was compiled for,
    // which keep the invariants that it relies on and live until the end of this function; outputs
    // are storages of their own, or memory that no argument has, except those that the kernel
    // updates in place and reads nowhere else.
    let status = unsafe { compiled.call_with_reports(&mut buffers, scalars, &mut report) };
    let kernel = start.elapsed();
    for (storage, raw) in storages.iter_mut().zip(&buffers) {
        if let Some(storage) = storage {
            // SAFETY: the descriptor is this storage's own, and only the kernel has changed it. It
            // is put back after a failure, too, so that reallocated memory is freed.
            unsafe { storage.set_raw(*raw) };
        }
    }
    status?;
    Ok(KernelOutcome { storages, kernel, workspaces, input_lengths, chunks: 1, tensors: Vec::new() })
}

/// Makes tensors of the outputs of a kernel that succeeded.
pub(crate) fn finish(
    machine: &BoundKernel,
    outcome: KernelOutcome,
    shapes: &[Vec<u64>],
    arguments: &[CallArgument],
    donations: &Donations,
    check: bool,
) -> Result<CallReport, CallError> {
    let KernelOutcome { mut storages, kernel, workspaces, chunks, mut tensors, .. } = outcome;
    let mut results = Vec::with_capacity(machine.outputs.len());
    for (k, (output, shape)) in machine.outputs.iter().zip(shapes).enumerate() {
        if let Some(at) = tensors.iter().position(|(of, _)| *of == k) {
            results.push((output.name.clone(), tensors.swap_remove(at).1));
            continue;
        }
        if donations.receive(k, output, &mut storages) {
            continue;
        }
        let tensor = output.tensor(shape, machine.kernel(), &mut storages, arguments, check);
        let tensor = tensor.map_err(|d| CallError::Result(output.tensor, d))?;
        results.push((output.name.clone(), tensor));
    }
    Ok(CallReport { results: Results::from(results), kernel, workspaces, chunks })
}

fn raw_indices(array: &IndexArray) -> RawBuffer {
    with_indices!(array, x => RawBuffer::input(x))
}

fn raw_values(values: &ValueArray) -> RawBuffer {
    with_values!(values, x => RawBuffer::input(x))
}

impl CallError {
    /// The diagnostics for the user.
    pub(crate) fn diagnostics(self, program: &Program, tensors: &[&Tensor], machine: &BoundKernel) -> Diagnostics {
        let named = |d: Diagnostic, id: Option<TensorId>, label: &str| match id {
            Some(id) => program.origin.attach(d.label(program.origin.tensor(id), label)),
            None => d,
        };
        let failure = match self {
            CallError::Result(id, d) => return named(d, Some(id), "this result").into(),
            CallError::Combination(errors) => return errors,
            CallError::Failure(failure) => failure,
        };
        match &failure {
            KernelFailure::Required(_) => {
                // The interpreter fails at the same access, or its results do not fit their formats
                // either; its diagnostic names the place.
                let options = interp::Options { strict: false, budget: Some(DIAGNOSIS_BUDGET) };
                match crate::interpret::run_with(program, tensors, options) {
                    Err(errors) if errors.0.iter().all(|d| d.code != Code::E1003) => errors,
                    _ => program.origin.attach(failure.diagnostic()).into(),
                }
            }
            KernelFailure::Memory { buffer, .. } => {
                let at = machine.kernel().buffers.iter().position(|b| b.name == *buffer);
                let owner = at.and_then(|at| machine.owners[at]);
                named(failure.diagnostic(), owner, "does not fit in memory").into()
            }
            KernelFailure::Bounds { .. }
            | KernelFailure::Width { .. }
            | KernelFailure::Policy { .. }
            | KernelFailure::Call(_) => failure.diagnostic().note(format!("the program is\n{program}")).into(),
        }
    }
}
