//! The report of an analysis: counters and times, by loops of the program and by arrays of its
//! tensors.
//!
//! In: counters of the kernel's statements, times, and the cost model's predictions. Out: an
//! [`Analysis`]. Time is measured for each outermost loop where possible, and apportioned to inner
//! loops by counted work.

use super::measure::{Measured, Run};
use super::{Analysis, ArrayAnalysis, BytesMoved, LoopAnalysis, LoopReport, NOTABLE_RATIO};
use std::collections::BTreeMap;
use tamis_compiler::auto::Prediction;
use tamis_compiler::counts::{Counts, LoopCounts, Traffic, nests};
use tamis_compiler::lower::{BoundStorage, Lowered};
use tamis_ir::kernel::{BufferId, Kernel, Role};
use tamis_ir::program::{Block, IndexId, Program, StmtKind};

/// Reports what was measured. `written` says that a person wrote the program, so that lines of its
/// text mean something.
pub(super) fn report(run: &Run, measured: Measured, expected: &[Option<Prediction>], written: bool) -> Analysis {
    let program = &*run.counted.program;
    let traffic = ArrayTraffic { run, names: names(program, &run.counted.lowered) };
    let Measured { counts, results, input_lengths, time, time_counting, runs, shares } = measured;
    let seconds = Seconds::new(&run.kernel, &counts, time.as_secs_f64(), shares.as_deref());
    let (mut loops, nests_of_loops) = loop_rows(&traffic, &counts, &seconds, expected, written);
    enclose(&mut loops);
    if shares.is_some() {
        mark_measured(&mut loops, &nests_of_loops);
    }
    let arrays = array_rows(&traffic, &counts, &input_lengths);
    let remarks = (0..loops.len()).filter_map(|k| remark(&loops[..=k])).collect();
    Analysis {
        program: program.to_string(),
        arrays,
        outside: sum(traffic.of(&counts.outside).iter().map(|(_, moved)| *moved)),
        time,
        time_counting,
        runs,
        nests: nests(&run.kernel).len(),
        nests_measured: shares.is_some(),
        conversions: Vec::new(),
        operations: counts.loops.iter().chain([&counts.outside]).map(|found| found.operations).sum(),
        statements: counts.executed.statements,
        remarks,
        results,
        loops,
    }
}

/// The bytes that loops move, by array.
struct ArrayTraffic<'a> {
    run: &'a Run<'a>,
    /// The name of each buffer.
    names: Vec<String>,
}

impl ArrayTraffic<'_> {
    /// The bytes that a loop itself moves; register tiles and counters are left out.
    fn of(&self, counts: &LoopCounts) -> Vec<(BufferId, BytesMoved)> {
        let kernel = &self.run.kernel;
        let counters = self.run.counting.buffer;
        let shown = |buffer: BufferId| buffer != counters && !matches!(kernel.buffer(buffer).role, Role::Tile(_));
        let traffic = counts.traffic.iter().filter(|(buffer, _)| shown(**buffer));
        traffic.map(|(buffer, traffic)| (*buffer, bytes_moved(kernel, *buffer, *traffic))).collect()
    }
}

/// A row for each loop of the program, in its order; and the loop nests of the kernel that each one
/// became, none for statements outside of all nests.
fn loop_rows(
    traffic: &ArrayTraffic,
    counts: &Counts,
    seconds: &Seconds,
    expected: &[Option<Prediction>],
    written: bool,
) -> (Vec<LoopAnalysis>, Vec<Vec<Option<usize>>>) {
    let program = &*traffic.run.counted.program;
    let mut tree = Vec::new();
    outline(&program.body, 0, &mut tree);
    let (mut rows, mut nests) = (Vec::new(), Vec::new());
    let none = LoopCounts::default();
    for (at, (index, depth, stmt)) in tree.iter().enumerate() {
        let counted = counts.loops.get(index.index()).unwrap_or(&none);
        let own = traffic.of(counted);
        let prediction = expected.get(index.index()).cloned().flatten();
        let span = program.origin.stmt(*stmt);
        let source = program.origin.source.as_ref().filter(|_| written && span.range() != (0..0));
        let inside = tree[at + 1..].iter().take_while(|(_, inner, _)| inner > depth);
        let tiled = inside.map(|(inner, ..)| inner).find(|inner| counted.around.contains(&inner.0));
        let total = sum(own.iter().map(|(_, moved)| *moved));
        let kernel_loops = counted.parts.iter().map(|part| LoopReport {
            text: part.text.clone(),
            entered: part.entered,
            iterations: part.iterations,
            visits: part.visits,
        });
        rows.push(LoopAnalysis {
            index: program.indices[index.index()].clone(),
            depth: *depth,
            line: source.map(|source| source.line_column(span.start).0),
            entered: counted.entered,
            visits: counted.visits,
            steps: counted.steps,
            predicted: prediction.as_ref().map(|p| p.trips),
            predicted_from: prediction.map(|p| p.from).unwrap_or_default(),
            in_tiles_of: tiled.map(|inner| program.indices[inner.index()].clone()),
            own: total,
            own_by_array: own.into_iter().map(|(b, moved)| (traffic.names[b.index()].clone(), moved)).collect(),
            moved: total,
            seconds: seconds.of(counted),
            measured: false,
            kernel_loops: kernel_loops.collect(),
        });
        nests.push(counted.cost.keys().map(|statement| seconds.nest(*statement)).collect());
    }
    (rows, nests)
}

/// Marks the outermost loops whose time was measured: those that share no loop nest of the kernel
/// with another one.
fn mark_measured(loops: &mut [LoopAnalysis], nests: &[Vec<Option<usize>>]) {
    for k in (0..loops.len()).filter(|k| loops[*k].depth == 0).collect::<Vec<usize>>() {
        let end = k + 1 + loops[k + 1..].iter().take_while(|row| row.depth > 0).count();
        let within: Vec<Option<usize>> = nests[k..end].iter().flatten().copied().collect();
        let others = nests.iter().enumerate().filter(|(other, _)| !(k..end).contains(other));
        let shared = others.flat_map(|(_, nests)| nests).any(|nest| within.contains(nest));
        loops[k].measured = !shared && !within.contains(&None);
    }
}

/// A row for each array, in the order of the kernel's buffers.
fn array_rows(traffic: &ArrayTraffic, counts: &Counts, input_lengths: &[u64]) -> Vec<ArrayAnalysis> {
    let mut by_array: BTreeMap<BufferId, BytesMoved> = BTreeMap::new();
    for (buffer, more) in counts.loops.iter().chain([&counts.outside]).flat_map(|counts| traffic.of(counts)) {
        let all = by_array.entry(buffer).or_default();
        *all = sum([*all, more].into_iter());
    }
    let size = |buffer: BufferId| {
        let input = input_lengths.get(buffer.index()).copied().unwrap_or(0);
        let length = input.max(counts.lengths.get(&buffer).copied().unwrap_or(0));
        length.saturating_mul(traffic.run.kernel.buffer(buffer).elem.size() as u64)
    };
    by_array
        .into_iter()
        .map(|(buffer, moved)| ArrayAnalysis { name: traffic.names[buffer.index()].clone(), moved, size: size(buffer) })
        .collect()
}

/// The loops in the order of the program: their indices, depths, and statements.
fn outline(block: &Block, depth: usize, found: &mut Vec<(IndexId, usize, tamis_ir::program::StmtId)>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::For { index, body, .. } => {
                if found.iter().all(|(other, ..)| other != index) {
                    found.push((*index, depth, stmt.id));
                }
                outline(body, depth + 1, found);
            }
            StmtKind::If { then, otherwise, .. } => {
                outline(then, depth, found);
                outline(otherwise, depth, found);
            }
            _ => {}
        }
    }
}

/// Adds the bytes and the time of inner loops to the loops around them.
fn enclose(loops: &mut [LoopAnalysis]) {
    for k in (0..loops.len()).rev() {
        let depth = loops[k].depth;
        let inner = loops[k + 1..].iter().take_while(|row| row.depth > depth).filter(|row| row.depth == depth + 1);
        let (more, seconds) = inner.fold((BytesMoved::default(), 0.0), |(moved, seconds), row| {
            (sum([moved, row.moved].into_iter()), seconds + row.seconds)
        });
        loops[k].moved = sum([loops[k].moved, more].into_iter());
        loops[k].seconds += seconds;
    }
}

fn sum(all: impl Iterator<Item = BytesMoved>) -> BytesMoved {
    all.fold(BytesMoved::default(), |sum, more| BytesMoved {
        read: sum.read.saturating_add(more.read),
        written: sum.written.saturating_add(more.written),
    })
}

fn bytes_moved(kernel: &Kernel, buffer: BufferId, traffic: Traffic) -> BytesMoved {
    let size = kernel.buffer(buffer).elem.size() as u64;
    BytesMoved { read: traffic.loads.saturating_mul(size), written: traffic.stores.saturating_mul(size) }
}

/// The names of buffers as arrays of tensors, as in `A crd`; with the level, where several levels
/// have such an array.
fn names(program: &Program, lowered: &Lowered) -> Vec<String> {
    let mut names: Vec<String> = lowered.kernel.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    // Parameters last, so that shared arrays get their names.
    for (info, bound) in program.tensors.iter().zip(&lowered.bound).rev() {
        let mut name = |buffer: &BufferId, what: String| {
            if let Some(name) = names.get_mut(buffer.index()) {
                *name = format!("{} {what}", info.name);
            }
        };
        match &bound.storage {
            BoundStorage::Levels { arrays, values, .. } => {
                let among = |name: &str| arrays.iter().flatten().filter(|(other, _)| *other == name).count();
                for (level, arrays) in arrays.iter().enumerate() {
                    for (array, buffer) in arrays {
                        let ambiguous = among(array) > 1;
                        name(buffer, if ambiguous { format!("{array}[{level}]") } else { array.to_string() });
                    }
                }
                values.iter().for_each(|buffer| name(buffer, "values".to_string()));
            }
            BoundStorage::Scalar { output, .. } => output.iter().for_each(|buffer| name(buffer, "value".to_string())),
        }
    }
    names
}

/// Apportions time by counted work; within each loop nest, where the nests' times were measured.
struct Seconds {
    /// For each statement of the kernel, its nest, and its seconds per unit of work.
    by_statement: Vec<(Option<usize>, f64)>,
}

impl Seconds {
    fn new(kernel: &Kernel, counts: &Counts, time: f64, shares: Option<&[f64]>) -> Seconds {
        let nests = nests(kernel);
        let nest_of = |k: usize| nests.iter().rposition(|nest| nest.first <= k).or((!nests.is_empty()).then_some(0));
        let costs: Vec<f64> = (0..kernel.body.len()).map(|k| counts.cost_of(k)).collect();
        let total: f64 = costs.iter().sum();
        let rate = |time: f64, cost: f64| if cost > 0.0 { time / cost } else { 0.0 };
        let by_statement = (0..kernel.body.len()).map(|k| match (shares, nest_of(k)) {
            (Some(shares), Some(nest)) => {
                let cost: f64 = (0..costs.len()).filter(|j| nest_of(*j) == Some(nest)).map(|j| costs[j]).sum();
                (Some(nest), rate(time * shares.get(nest).copied().unwrap_or(0.0), cost))
            }
            _ => (None, rate(time, total)),
        });
        Seconds { by_statement: by_statement.collect() }
    }

    fn nest(&self, statement: usize) -> Option<usize> {
        self.by_statement.get(statement).and_then(|(nest, _)| *nest)
    }

    fn of(&self, counts: &LoopCounts) -> f64 {
        let each =
            |(statement, cost): (&usize, &f64)| self.by_statement.get(*statement).map_or(0.0, |(_, rate)| rate * cost);
        counts.cost.iter().map(each).sum()
    }
}

/// A remark on the last of these loops, if its visits are far from the prediction.
fn remark(loops: &[LoopAnalysis]) -> Option<String> {
    let row = loops.last()?;
    let (ratio, predicted) = (row.ratio()?, row.predicted?);
    if (1.0 / NOTABLE_RATIO..=NOTABLE_RATIO).contains(&ratio) {
        return None;
    }
    let named = |counted: bool| {
        let names = row.predicted_from.iter().filter(|(_, known)| *known == counted);
        names.map(|(name, _)| name.as_str()).collect::<Vec<&str>>().join(", ")
    };
    let (counted, assumed) = (named(true), named(false));
    let more = ratio > 1.0;
    let deviation = match row.visits {
        0 => "never ran".to_string(),
        _ if more => format!("ran {ratio:.1} times as often as expected"),
        _ => format!("ran {:.1} times less often than expected", 1.0 / ratio),
    };
    let why = if let Some(inner) = row.in_tiles_of.as_ref().filter(|_| more) {
        format!("it runs once for each tile of {inner}, which stays in registers meanwhile")
    } else if counted.is_empty() && assumed.is_empty() {
        "no sparse operand bounds it, so its whole extent was expected".to_string()
    } else if assumed.is_empty() {
        let how = if more { "they coincide more often" } else { "they are clustered, or coincide less often" };
        format!("the stored elements of {counted} were counted, but assumed to be uniformly distributed: {how}")
    } else {
        let known = if counted.is_empty() { String::new() } else { format!("; that of {counted} was counted") };
        format!("the nnz of {assumed} was estimated, not counted{known}")
    };
    Some(format!("{} {deviation} ({} of {predicted:.3e}): {why}", loop_name(loops), row.visits))
}

/// A loop, by its index and those of the loops around it.
fn loop_name(loops: &[LoopAnalysis]) -> String {
    let Some(row) = loops.last() else { return String::new() };
    let (mut depth, mut around) = (row.depth, Vec::new());
    for outer in loops.iter().rev().skip(1) {
        if outer.depth < depth {
            depth = outer.depth;
            around.insert(0, outer.index.as_str());
        }
    }
    match around.is_empty() {
        true => format!("the loop over {}", row.index),
        false => format!("the loop over {} in {}", row.index, around.join(", ")),
    }
}
