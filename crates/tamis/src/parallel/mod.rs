//! Parallel calls: threads run the same kernel on chunks of the outermost loop, and the chunks'
//! results are combined.
//!
//! A result whose rows the loop iterates over is partitioned. Its chunks write in place where all
//! levels are dense, or are those of an operand; otherwise each chunk writes arrays of its own,
//! which `concatenate` appends. Any other result is privatised: each chunk reduces into its own
//! copy, and `combine` reduces the copies in the order of the chunks.
//!
//! `partition` balances the load, `heuristic` decides whether parallel calls are faster.

mod combine;
mod concatenate;
mod heuristic;
mod partition;

pub(crate) use heuristic::ParallelHeuristic;

use crate::call::{BoundKernel, CallError, KernelOutcome};
use crate::donate::Donations;
use crate::output::Output;
use crate::signature::CallArgument;
use partition::Chunk;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tamis_backend::cache::Cache;
use tamis_backend::{KernelFailure, RawBuffer, RawStorage, llvm};
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::lower::outer_partition::{OuterPartition, ResultShare, WHOLE_SHARE};
use tamis_compiler::pipeline;
use tamis_ir::algebra::Op;
use tamis_ir::program::{Attributes, Checked, LoopExtent, ParamType, Program, StmtKind};
use tamis_ir::{Diagnostics, Kind, Value};
use tamis_tensor::Tensor;

/// Machine code for a chunk of a loop, and how the results of chunks become those of the program.
pub(crate) struct ParallelKernel {
    pub(crate) machine: BoundKernel,
    partition: OuterPartition,
    /// For each result, the program that combines two private copies, if it is sparse.
    combiners: Vec<Option<Program>>,
    /// The program whose outermost loop is partitioned.
    program: Arc<Program>,
    strict: bool,
    check: bool,
}

/// The arguments of the kernel for one chunk.
struct ChunkCall {
    buffers: Vec<RawBuffer>,
    storages: Vec<Option<RawStorage>>,
    scalars: Vec<Value>,
}

// SAFETY: the arrays behind the buffers are either only read, or written by the one thread that
// runs the chunk.
unsafe impl Send for ChunkCall {}

/// The results of one chunk.
struct ChunkOutcome {
    storages: Vec<Option<RawStorage>>,
    status: Result<(), KernelFailure>,
    workspaces: Vec<(String, tamis_backend::runtime::workspace::WorkspaceReport)>,
}

/// The sizes of one set of arguments, for which the loop can be partitioned.
pub(crate) struct ParallelSizes {
    /// The extents of the levels of each result.
    levels: Vec<Vec<u64>>,
    /// The shape of each result.
    shapes: Vec<Vec<u64>>,
    /// The trip count of the partitioned loop.
    trip_count: u64,
}

impl ParallelKernel {
    /// Compiles the kernel of a chunk. The error says for users why the loop cannot be partitioned.
    pub(crate) fn compile(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        layouts: &[ParamLayout],
        (strict, check): (bool, bool),
    ) -> Result<ParallelKernel, Diagnostics> {
        let options = pipeline::Options { strict, part: true, ..pipeline::Options::default() };
        let compilation = pipeline::compile_checked(program, checked.clone(), types, layouts, options)?;
        let host = llvm::CodegenOptions::host()?;
        let (compiled, _) =
            Cache::global().get_or_compile(&compilation.lowered.kernel, &if check { host.checked() } else { host })?;
        let machine = BoundKernel::new(&compilation.program, &compilation.checked, &compilation.lowered, compiled)?;
        let partition = compilation.lowered.partition.ok_or_else(|| Diagnostics(Vec::new()))?;
        let combiner = |(output, share): (&Output, &ResultShare)| match share {
            ResultShare::Private(op) if !output.is_dense() => {
                combine::program(*op, &output.format_with_fill(), output.dtype()).map(Some)
            }
            _ => Ok(None),
        };
        let combiners: Result<_, Diagnostics> = machine.outputs().iter().zip(&partition.shares).map(combiner).collect();
        Ok(ParallelKernel { machine, partition, combiners: combiners?, program: compilation.program, strict, check })
    }

    /// True if a result is privatised.
    fn privatises(&self) -> bool {
        self.partition.shares.iter().any(|share| matches!(share, ResultShare::Private(_)))
    }

    /// True if the number of chunks changes how a privatised result is rounded.
    pub(crate) fn rounds(&self) -> bool {
        self.machine.outputs().iter().zip(&self.partition.shares).any(|(output, share)| match share {
            ResultShare::Private(op) => output.dtype().kind() > Kind::Int && !matches!(op, Op::Min | Op::Max),
            ResultShare::Rows(_) | ResultShare::Positions => false,
        })
    }

    /// The sizes for tensors of these types, if the trip count matches the rows of the partitioned
    /// results.
    pub(crate) fn sizes(&self, types: &[ParamType]) -> Option<ParallelSizes> {
        let checked = self.program.check(types).ok()?;
        let LoopExtent::Static { start: 0, stop } = checked.extents.loops[self.partition.index.index()] else {
            return None;
        };
        let trip_count = u64::try_from(stop).ok()?;
        let shape = |id: &tamis_ir::program::TensorId| &checked.extents.shapes[id.index()];
        let shapes: Vec<Vec<u64>> = self.program.results.iter().map(shape).cloned().collect();
        let levels: Vec<Vec<u64>> =
            self.machine.outputs().iter().zip(&shapes).map(|(output, shape)| output.level_extents(shape)).collect();
        let fits = self.partition.shares.iter().zip(&levels).all(|(share, levels)| match share {
            ResultShare::Rows(unit) => levels.first().is_some_and(|rows| rows.div_ceil(*unit) == trip_count),
            ResultShare::Private(_) | ResultShare::Positions => true,
        });
        fits.then_some(ParallelSizes { levels, shapes, trip_count })
    }

    /// Runs all chunks, and concatenates or combines their results.
    pub(crate) fn invoke(
        &self,
        sizes: &ParallelSizes,
        scalars: &[Value],
        arguments: &[CallArgument],
        threads: usize,
        heuristic: &ParallelHeuristic,
        donations: &Donations,
    ) -> Result<KernelOutcome, CallError> {
        let machine = &self.machine;
        // More chunks than threads balance the load; a privatised result costs a copy for each
        // chunk.
        let count = if self.privatises() { threads } else { threads * heuristic.chunks_per_thread() };
        let chunks = partition::partition(&self.program, &self.partition, sizes.trip_count, arguments, count);
        let inputs = machine.input_buffers(arguments);
        let start = Instant::now();
        let mut shared = self.shared(sizes, arguments, donations)?;
        let calls: Vec<Mutex<Option<ChunkCall>>> = chunks
            .iter()
            .enumerate()
            .map(|(k, chunk)| Mutex::new(Some(self.chunk_call(sizes, &inputs, scalars, &shared, k, chunk))))
            .collect();
        let outcomes: Vec<Mutex<Option<ChunkOutcome>>> = chunks.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        tamis_tensor::threads::share(threads.min(chunks.len()), &|_| {
            loop {
                let k = next.fetch_add(1, Ordering::Relaxed);
                let Some(call) = calls.get(k).and_then(|call| call.lock().ok()?.take()) else { break };
                if let Some(mut outcome) = outcomes.get(k).and_then(|outcome| outcome.lock().ok()) {
                    *outcome = Some(self.run(call));
                }
            }
        });
        let mut storages = Vec::with_capacity(outcomes.len());
        let mut workspaces = Vec::new();
        for outcome in outcomes {
            let outcome = outcome.into_inner().ok().flatten();
            let outcome = outcome.ok_or_else(|| KernelFailure::Call("a chunk of the loop did not run".to_string()))?;
            outcome.status?;
            workspaces.extend(outcome.workspaces);
            storages.push(outcome.storages);
        }
        let computed = start.elapsed();
        let tensors = self.collect(sizes, &chunks, storages, &mut shared, arguments, threads)?;
        heuristic.record_combination(computed, start.elapsed());
        let input_lengths = inputs.iter().map(|buffer| buffer.len).collect();
        Ok(KernelOutcome {
            storages: shared,
            kernel: start.elapsed(),
            workspaces,
            input_lengths,
            chunks: chunks.len(),
            tensors,
        })
    }

    /// Arrays that all chunks write, each its own elements: values of results whose levels are
    /// dense, or those of an operand.
    fn shared(
        &self,
        sizes: &ParallelSizes,
        arguments: &[CallArgument],
        donations: &Donations,
    ) -> Result<Vec<Option<RawStorage>>, KernelFailure> {
        let mut shared: Vec<Option<RawStorage>> = Vec::new();
        shared.resize_with(self.machine.kernel().buffers.len(), || None);
        for ((output, share), levels) in self.machine.outputs().iter().zip(&self.partition.shares).zip(&sizes.levels) {
            let Some(values) = output.values else { continue };
            let cells = match share {
                ResultShare::Rows(_) if output.is_dense() => {
                    if let Some(storage) = donations.storage(&self.machine, values) {
                        shared[values] = Some(storage);
                        continue;
                    }
                    levels.iter().try_fold(1u64, |cells, n| cells.checked_mul(*n))
                }
                ResultShare::Positions => output.shared_value_count(arguments, levels),
                ResultShare::Rows(_) | ResultShare::Private(_) => continue,
            };
            let cells = cells.unwrap_or(u64::MAX);
            let buffer = &self.machine.kernel().buffers[values];
            let mut storage = RawStorage::new(buffer.elem);
            if !usize::try_from(cells).is_ok_and(|cells| storage.grow(cells)) {
                let bytes = cells.saturating_mul(buffer.elem.size() as u64);
                return Err(KernelFailure::Memory { buffer: buffer.name.clone(), elements: cells, bytes });
            }
            shared[values] = Some(storage);
        }
        Ok(shared)
    }

    /// The buffers and scalars of one chunk.
    fn chunk_call(
        &self,
        sizes: &ParallelSizes,
        inputs: &[RawBuffer],
        scalars: &[Value],
        shared: &[Option<RawStorage>],
        k: usize,
        chunk: &Chunk,
    ) -> ChunkCall {
        let machine = &self.machine;
        let mut buffers = inputs.to_vec();
        let mut storages: Vec<Option<RawStorage>> = Vec::new();
        storages.resize_with(buffers.len(), || None);
        for (buffer, elem) in machine.allocated() {
            if shared[*buffer].is_none() {
                let storage = RawStorage::new(*elem);
                buffers[*buffer] = storage.raw();
                storages[*buffer] = Some(storage);
            }
        }
        for ((output, share), levels) in machine.outputs().iter().zip(&self.partition.shares).zip(&sizes.levels) {
            let Some((values, storage)) = output.values.and_then(|k| Some((k, shared[k].as_ref()?))) else { continue };
            let unit = match share {
                ResultShare::Rows(unit) => *unit,
                // Positions are those of the operand, in every chunk.
                ResultShare::Positions => {
                    buffers[values] = RawBuffer { cap: 0, ..storage.raw() };
                    continue;
                }
                ResultShare::Private(_) => continue,
            };
            let rows = chunk.rows(unit, levels[0]);
            let cells: u64 = levels[1..].iter().product();
            // SAFETY: the storage has all rows, and those of the chunk are some of them. A borrowed
            // buffer has no spare capacity.
            let data = unsafe { storage.raw().data.add((rows.start * cells) as usize * storage.element_size()) };
            buffers[values] = RawBuffer { data, len: (rows.end - rows.start) * cells, cap: 0 };
        }
        // The arrays of the first chunk become those of the result, so they reserve all of it.
        let share = if k == 0 { WHOLE_SHARE } else { chunk.share };
        let mut scalars = scalars.to_vec();
        scalars.extend([chunk.iterations.start as i64, chunk.iterations.end as i64, share].map(Value::I64));
        ChunkCall { buffers, storages, scalars }
    }

    /// Runs the kernel on one chunk.
    fn run(&self, call: ChunkCall) -> ChunkOutcome {
        let ChunkCall { mut buffers, mut storages, scalars } = call;
        let borrowed: Vec<(usize, *mut u8)> = self
            .machine
            .allocated()
            .iter()
            .map(|(k, _)| *k)
            .filter(|k| storages[*k].is_none())
            .map(|k| (k, buffers[k].data))
            .collect();
        let mut workspaces = Vec::new();
        let mut report = |name: &str, report| workspaces.push((name.to_string(), report));
        // SAFETY: as for a sequential call; buffers are the chunk's own, but for elements of shared
        // results, which no other chunk writes.
        let status = unsafe { self.machine.compiled().call_with_reports(&mut buffers, &scalars, &mut report) };
        for (storage, raw) in storages.iter_mut().zip(&buffers) {
            if let Some(storage) = storage {
                // SAFETY: the descriptor is this storage's own, and only the kernel has changed it.
                unsafe { storage.set_raw(*raw) };
            }
        }
        // A kernel does not reallocate a shared buffer: its capacity suffices.
        let moved = borrowed.into_iter().find(|(k, data)| buffers[*k].data != *data);
        let status = match moved {
            Some((k, _)) => {
                Err(KernelFailure::Call(format!("a chunk has reallocated `{}`", self.machine.kernel().buffers[k].name)))
            }
            None => status,
        };
        ChunkOutcome { storages, status, workspaces }
    }

    /// Concatenates partitioned results and combines privatised ones; sparse privatised ones are
    /// returned as tensors, with their places among the results.
    fn collect(
        &self,
        sizes: &ParallelSizes,
        chunks: &[Chunk],
        mut storages: Vec<Vec<Option<RawStorage>>>,
        joined: &mut [Option<RawStorage>],
        arguments: &[CallArgument],
        threads: usize,
    ) -> Result<Vec<(usize, Tensor)>, CallError> {
        let kernel = self.machine.kernel();
        let mut tensors = Vec::new();
        let outputs = self.machine.outputs().iter().zip(&self.partition.shares).zip(&sizes.levels).zip(&sizes.shapes);
        for (k, (((output, share), levels), shape)) in outputs.enumerate() {
            match share {
                ResultShare::Positions => {}
                ResultShare::Rows(unit) => {
                    if output.values.is_some_and(|values| joined[values].is_some()) {
                        continue;
                    }
                    let rows = chunks.iter().map(|chunk| chunk.rows(*unit, levels[0]));
                    let rows: Vec<u64> = rows.map(|rows| rows.end - rows.start).collect();
                    concatenate::rows(kernel, output, levels, &rows, &mut storages, joined, threads)?;
                }
                ResultShare::Private(op) => {
                    let Some(combiner) = &self.combiners[k] else {
                        let Some(values) = output.values else { continue };
                        let all = storages.iter_mut().filter_map(|chunk| chunk[values].take()).collect();
                        joined[values] = combine::combine(kernel.buffers[values].elem, *op, all, threads);
                        continue;
                    };
                    let private = |chunk: &mut Vec<Option<RawStorage>>| {
                        output.tensor(shape, kernel, chunk, arguments, self.check)
                    };
                    let private: Result<Vec<Tensor>, _> = storages.iter_mut().map(private).collect();
                    let private = private.map_err(|d| CallError::Result(output.tensor, d))?;
                    let all = combine::tensors(combiner, private, self.strict).map_err(CallError::Combination)?;
                    // The combining program states the fill value in its format, which the result does not.
                    let all = all.map(|all| all.convert(output.declared_format())).transpose();
                    let all = all.map_err(|d| CallError::Result(output.tensor, d))?;
                    tensors.extend(all.map(|all| (k, all)));
                }
            }
        }
        Ok(tensors)
    }
}

/// True if the program declares its outermost loop parallel.
pub(crate) fn is_requested(program: &Program) -> bool {
    program
        .body
        .iter()
        .any(|stmt| matches!(&stmt.kind, StmtKind::For { attributes: Attributes { parallel: true, .. }, .. }))
}
