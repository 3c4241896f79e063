//! Several threads for one call: each does a part of the outermost loop with the same code, and the parts become the results.
//!
//! Rows that parts write follow each other. Where all levels are dense, or those of an operand, they are written to their places; otherwise each part has arrays of
//! its own, which are joined: lists one after the other, positions moved on by what came before. A result that is not cut by rows is
//! one of its own for each part, and these are combined in the order of the parts.

mod combine;
mod cuts;
mod join;
mod pace;

pub(crate) use pace::Pace;

use crate::call::{Machine, Problem, Ran};
use crate::output::Output;
use crate::signature::Argument;
use cuts::Piece;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tamis_backend::cache::Cache;
use tamis_backend::{KernelFailure, RawBuffer, Storage, llvm};
use tamis_compiler::lower::ParamLayout;
use tamis_compiler::lower::part::{Cut, SHARES, Share};
use tamis_compiler::pipeline;
use tamis_ir::algebra::Op;
use tamis_ir::program::{Attributes, Checked, LoopExtent, ParamType, Program, StmtKind};
use tamis_ir::{Diagnostics, Kind, Value};
use tamis_tensor::Tensor;

/// Machine code for a part of a loop, and how parts become the whole.
pub(crate) struct Parts {
    pub(crate) machine: Machine,
    cut: Cut,
    /// For each result, the program that combines those of two parts, if that takes one.
    combiners: Vec<Option<Program>>,
    /// The program that was cut.
    program: Arc<Program>,
    strict: bool,
    check: bool,
}

/// Buffers of a part, for whichever thread does it.
struct Given {
    buffers: Vec<RawBuffer>,
    storages: Vec<Option<Storage>>,
    scalars: Vec<Value>,
}

// SAFETY: the arrays behind the buffers are either only read, or written by the one thread that has the part.
unsafe impl Send for Given {}

/// What a thread made of its part.
struct Done {
    storages: Vec<Option<Storage>>,
    outcome: Result<(), KernelFailure>,
    workspaces: Vec<(String, tamis_backend::runtime::workspace::WorkspaceReport)>,
}

/// Sizes that a loop was cut for.
pub(crate) struct Sizes {
    /// The extents of levels of each result.
    levels: Vec<Vec<u64>>,
    /// The shape of each result.
    shapes: Vec<Vec<u64>>,
    /// How far the loop goes that is cut.
    turns: u64,
}

impl Parts {
    /// Compiles a program so that it can be cut; what it says if it cannot be is for people to read.
    pub(crate) fn compile(
        program: &Program,
        checked: &Checked,
        types: &[ParamType],
        layouts: &[ParamLayout],
        (strict, check): (bool, bool),
    ) -> Result<Parts, Diagnostics> {
        let wish = pipeline::Options { strict, part: true, ..pipeline::Options::default() };
        let compilation = pipeline::compile_checked(program, checked.clone(), types, layouts, wish)?;
        let host = llvm::CodegenOptions::host()?;
        let (compiled, _) =
            Cache::global().get_or_compile(&compilation.lowered.kernel, &if check { host.checked() } else { host })?;
        let machine = Machine::new(&compilation.program, &compilation.checked, &compilation.lowered, compiled)?;
        let cut = compilation.lowered.cut.ok_or_else(|| Diagnostics(Vec::new()))?;
        let combiner = |(output, share): (&Output, &Share)| match share {
            Share::Own(op) if !output.is_dense() => {
                combine::program(*op, &output.format_with_fill(), output.dtype()).map(Some)
            }
            _ => Ok(None),
        };
        let combiners: Result<_, Diagnostics> = machine.outputs().iter().zip(&cut.shares).map(combiner).collect();
        Ok(Parts { machine, cut, combiners: combiners?, program: compilation.program, strict, check })
    }

    /// Whether results of the parts are combined.
    fn combines(&self) -> bool {
        self.cut.shares.iter().any(|share| matches!(share, Share::Own(_)))
    }

    /// Whether they are combined so that rounding depends on how many there are.
    pub(crate) fn rounds(&self) -> bool {
        self.machine.outputs().iter().zip(&self.cut.shares).any(|(output, share)| match share {
            Share::Own(op) => output.dtype().kind() > Kind::Int && !matches!(op, Op::Min | Op::Max),
            Share::Rows(_) | Share::Places => false,
        })
    }

    /// The sizes for tensors of these types, if the loop is as long for them as the rows of the results say.
    pub(crate) fn sizes(&self, types: &[ParamType]) -> Option<Sizes> {
        let checked = self.program.check(types).ok()?;
        let LoopExtent::Static { start: 0, stop } = checked.extents.loops[self.cut.index.index()] else { return None };
        let turns = u64::try_from(stop).ok()?;
        let shape = |id: &tamis_ir::program::TensorId| &checked.extents.shapes[id.index()];
        let shapes: Vec<Vec<u64>> = self.program.results.iter().map(shape).cloned().collect();
        let levels: Vec<Vec<u64>> =
            self.machine.outputs().iter().zip(&shapes).map(|(output, shape)| output.level_extents(shape)).collect();
        let fits = self.cut.shares.iter().zip(&levels).all(|(share, levels)| match share {
            Share::Rows(unit) => levels.first().is_some_and(|rows| rows.div_ceil(*unit) == turns),
            Share::Own(_) | Share::Places => true,
        });
        fits.then_some(Sizes { levels, shapes, turns })
    }

    /// Runs all parts, and joins what they wrote.
    pub(crate) fn invoke(
        &self,
        sizes: &Sizes,
        scalars: &[Value],
        arguments: &[Argument],
        threads: usize,
        pace: &Pace,
    ) -> Result<Ran, Problem> {
        let machine = &self.machine;
        // Parts that are built in pieces may be many, so that no thread waits long for another; parts that are all of a
        // result may not.
        let count = if self.combines() { threads } else { threads * pace.parts_per_thread() };
        let pieces = cuts::cut(&self.program, &self.cut, sizes.turns, arguments, count);
        let inputs = machine.input_buffers(arguments);
        let start = Instant::now();
        let mut shared = self.shared(sizes, arguments)?;
        let given: Vec<Mutex<Option<Given>>> = pieces
            .iter()
            .enumerate()
            .map(|(k, piece)| Mutex::new(Some(self.given(sizes, &inputs, scalars, &shared, k, piece))))
            .collect();
        let done: Vec<Mutex<Option<Done>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        tamis_tensor::threads::share(threads.min(pieces.len()), &|_| {
            loop {
                let k = next.fetch_add(1, Ordering::Relaxed);
                let Some(given) = given.get(k).and_then(|given| given.lock().ok()?.take()) else { break };
                if let Some(mut place) = done.get(k).and_then(|place| place.lock().ok()) {
                    *place = Some(self.run(given));
                }
            }
        });
        let mut parts = Vec::with_capacity(done.len());
        let mut workspaces = Vec::new();
        for place in done {
            let done = place.into_inner().ok().flatten();
            let done = done.ok_or_else(|| KernelFailure::Call("a part of the loop was not done".to_string()))?;
            done.outcome?;
            workspaces.extend(done.workspaces);
            parts.push(done.storages);
        }
        let computed = start.elapsed();
        let made = self.join(sizes, &pieces, parts, &mut shared, arguments, threads)?;
        pace.joined(computed, start.elapsed());
        let given = inputs.iter().map(|buffer| buffer.len).collect();
        Ok(Ran { storages: shared, kernel: start.elapsed(), workspaces, given, parts: pieces.len(), made })
    }

    /// Arrays that all parts write, each its own elements: those of results that are dense, or have the levels of an operand.
    fn shared(&self, sizes: &Sizes, arguments: &[Argument]) -> Result<Vec<Option<Storage>>, KernelFailure> {
        let mut shared: Vec<Option<Storage>> = Vec::new();
        shared.resize_with(self.machine.kernel().buffers.len(), || None);
        for ((output, share), levels) in self.machine.outputs().iter().zip(&self.cut.shares).zip(&sizes.levels) {
            let Some(values) = output.values else { continue };
            let cells = match share {
                Share::Rows(_) if output.is_dense() => levels.iter().try_fold(1u64, |cells, n| cells.checked_mul(*n)),
                Share::Places => output.values_alike(arguments, levels),
                Share::Rows(_) | Share::Own(_) => continue,
            };
            let cells = cells.unwrap_or(u64::MAX);
            let buffer = &self.machine.kernel().buffers[values];
            let mut storage = Storage::new(buffer.elem);
            if !usize::try_from(cells).is_ok_and(|cells| storage.grow(cells)) {
                let bytes = cells.saturating_mul(buffer.elem.size() as u64);
                return Err(KernelFailure::Memory { buffer: buffer.name.clone(), elements: cells, bytes });
            }
            shared[values] = Some(storage);
        }
        Ok(shared)
    }

    fn given(
        &self,
        sizes: &Sizes,
        inputs: &[RawBuffer],
        scalars: &[Value],
        shared: &[Option<Storage>],
        k: usize,
        piece: &Piece,
    ) -> Given {
        let machine = &self.machine;
        let mut buffers = inputs.to_vec();
        let mut storages: Vec<Option<Storage>> = Vec::new();
        storages.resize_with(buffers.len(), || None);
        for (buffer, elem) in machine.starts() {
            if shared[*buffer].is_none() {
                let storage = Storage::new(*elem);
                buffers[*buffer] = storage.raw();
                storages[*buffer] = Some(storage);
            }
        }
        for ((output, share), levels) in machine.outputs().iter().zip(&self.cut.shares).zip(&sizes.levels) {
            let Some((values, storage)) = output.values.and_then(|k| Some((k, shared[k].as_ref()?))) else { continue };
            let unit = match share {
                Share::Rows(unit) => *unit,
                // Positions are those of the operand, in every part.
                Share::Places => {
                    buffers[values] = RawBuffer { cap: 0, ..storage.raw() };
                    continue;
                }
                Share::Own(_) => continue,
            };
            let rows = piece.rows(unit, levels[0]);
            let cells: u64 = levels[1..].iter().product();
            // SAFETY: the storage has all rows, and those of the part are some of them. What is borrowed has no room to grow in.
            let data = unsafe { storage.raw().data.add((rows.start * cells) as usize * storage.element_size()) };
            buffers[values] = RawBuffer { data, len: (rows.end - rows.start) * cells, cap: 0 };
        }
        // The arrays of the first part become those of the result, so they have room for all of it.
        let share = if k == 0 { SHARES } else { piece.share };
        let mut scalars = scalars.to_vec();
        scalars.extend([piece.turns.start as i64, piece.turns.end as i64, share].map(Value::I64));
        Given { buffers, storages, scalars }
    }

    fn run(&self, given: Given) -> Done {
        let Given { mut buffers, mut storages, scalars } = given;
        let lent: Vec<(usize, *mut u8)> = self
            .machine
            .starts()
            .iter()
            .map(|(k, _)| *k)
            .filter(|k| storages[*k].is_none())
            .map(|k| (k, buffers[k].data))
            .collect();
        let mut workspaces = Vec::new();
        let mut report = |name: &str, report| workspaces.push((name.to_string(), report));
        // SAFETY: as for a whole call; what is written is the part's own, but for elements of results that parts share, which no
        // other part writes.
        let outcome = unsafe { self.machine.compiled().call_with_reports(&mut buffers, &scalars, &mut report) };
        for (storage, raw) in storages.iter_mut().zip(&buffers) {
            if let Some(storage) = storage {
                // SAFETY: the descriptor is this storage's own, and only the kernel has changed it.
                unsafe { storage.set_raw(*raw) };
            }
        }
        // Rows of a result that all parts write stay where they are: there is room for them.
        let moved = lent.into_iter().find(|(k, data)| buffers[*k].data != *data);
        let outcome = match moved {
            Some((k, _)) => {
                Err(KernelFailure::Call(format!("a part has moved `{}`", self.machine.kernel().buffers[k].name)))
            }
            None => outcome,
        };
        Done { storages, outcome, workspaces }
    }

    fn join(
        &self,
        sizes: &Sizes,
        pieces: &[Piece],
        mut parts: Vec<Vec<Option<Storage>>>,
        joined: &mut [Option<Storage>],
        arguments: &[Argument],
        threads: usize,
    ) -> Result<Vec<(usize, Tensor)>, Problem> {
        let kernel = self.machine.kernel();
        let mut made = Vec::new();
        let outputs = self.machine.outputs().iter().zip(&self.cut.shares).zip(&sizes.levels).zip(&sizes.shapes);
        for (k, (((output, share), levels), shape)) in outputs.enumerate() {
            match share {
                Share::Places => {}
                Share::Rows(unit) => {
                    if output.values.is_some_and(|values| joined[values].is_some()) {
                        continue;
                    }
                    let rows = pieces.iter().map(|piece| piece.rows(*unit, levels[0]));
                    let rows: Vec<u64> = rows.map(|rows| rows.end - rows.start).collect();
                    join::rows(kernel, output, levels, &rows, &mut parts, joined, threads)?;
                }
                Share::Own(op) => {
                    let Some(combiner) = &self.combiners[k] else {
                        let Some(values) = output.values else { continue };
                        let all = parts.iter_mut().filter_map(|part| part[values].take()).collect();
                        joined[values] = combine::combine(kernel.buffers[values].elem, *op, all, threads);
                        continue;
                    };
                    let own =
                        |part: &mut Vec<Option<Storage>>| output.tensor(shape, kernel, part, arguments, self.check);
                    let own: Result<Vec<Tensor>, _> = parts.iter_mut().map(own).collect();
                    let own = own.map_err(|d| Problem::Result(output.tensor, d))?;
                    let all = combine::tensors(combiner, own, self.strict).map_err(Problem::Combined)?;
                    made.extend(all.map(|all| (k, all)));
                }
            }
        }
        Ok(made)
    }
}

/// Whether the program says that its outermost loop is to run on several threads.
pub(crate) fn is_asked_for(program: &Program) -> bool {
    program
        .body
        .iter()
        .any(|stmt| matches!(&stmt.kind, StmtKind::For { attributes: Attributes { parallel: true, .. }, .. }))
}
