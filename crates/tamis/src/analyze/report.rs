//! What was counted, put together by loops of the program and by arrays of its tensors.

use super::measure::{Measured, Run};
use super::{Analysis, ArrayAnalysis, LoopAnalysis, Moved, PartAnalysis, SURPRISING};
use std::collections::BTreeMap;
use tamis_compiler::auto::Prediction;
use tamis_compiler::counts::{Counts, LoopCounts, Traffic, nests};
use tamis_compiler::lower::{Lowered, Stored};
use tamis_ir::kernel::{BufferId, Kernel, Role};
use tamis_ir::program::{Block, IndexId, Program, StmtKind};

pub(super) fn report(run: &Run, measured: Measured, expected: &[Option<Prediction>], written: bool) -> Analysis {
    let compilation = &run.counted;
    let program = &*compilation.program;
    let names = names(program, &compilation.lowered);
    let Measured { counts, results, given, time, time_counting, runs, shares } = measured;
    let (counting, kernel) = (&run.counting, &run.kernel);
    let shown = |buffer: &BufferId| *buffer != counting.buffer && !matches!(kernel.buffer(*buffer).role, Role::Tile(_));
    let own = |counts: &LoopCounts| -> Vec<(BufferId, Moved)> {
        counts.traffic.iter().filter(|(buffer, _)| shown(buffer)).map(|(b, t)| (*b, moved(kernel, *b, *t))).collect()
    };
    let seconds = Seconds::new(kernel, &counts, time.as_secs_f64(), shares.as_deref());
    let mut loops: Vec<LoopAnalysis> = Vec::new();
    let mut tree = Vec::new();
    outline(&program.body, 0, &mut tree);
    let mut pure = Vec::new();
    for (place, (index, depth, stmt)) in tree.iter().enumerate() {
        let none = LoopCounts::default();
        let found = counts.loops.get(index.index()).unwrap_or(&none);
        let own = own(found);
        let prediction = expected.get(index.index()).cloned().flatten();
        let span = program.origin.stmt(*stmt);
        let source = program.origin.source.as_ref().filter(|_| written && span.range() != (0..0));
        let inside = tree[place + 1..].iter().take_while(|(_, inner, _)| inner > depth);
        let tiled = inside.map(|(inner, ..)| inner).find(|inner| found.around.contains(&inner.0));
        let total = sum(own.iter().map(|(_, moved)| *moved));
        loops.push(LoopAnalysis {
            index: program.indices[index.index()].clone(),
            depth: *depth,
            line: source.map(|source| source.line_column(span.start).0),
            entered: found.entered,
            visits: found.visits,
            steps: found.steps,
            predicted: prediction.as_ref().map(|p| p.trips),
            predicted_from: prediction.map(|p| p.from).unwrap_or_default(),
            in_tiles_of: tiled.map(|inner| program.indices[inner.index()].clone()),
            own: total,
            own_by_array: own.into_iter().map(|(b, moved)| (names[b.index()].clone(), moved)).collect(),
            moved: total,
            seconds: seconds.of(found),
            measured: false,
            parts: found
                .parts
                .iter()
                .map(|part| PartAnalysis {
                    text: part.text.clone(),
                    entered: part.entered,
                    turns: part.iterations,
                    visits: part.visits,
                })
                .collect(),
        });
        pure.push(found.cost.keys().map(|statement| seconds.nest(*statement)).collect::<Vec<Option<usize>>>());
    }
    enclose(&mut loops);
    // A nest that is one loop of the program with all that is in it was measured as such.
    if shares.is_some() {
        for k in (0..loops.len()).filter(|k| loops[*k].depth == 0).collect::<Vec<usize>>() {
            let end = k + 1 + loops[k + 1..].iter().take_while(|row| row.depth > 0).count();
            let within: Vec<Option<usize>> = pure[k..end].iter().flatten().copied().collect();
            let others = pure.iter().enumerate().filter(|(other, _)| !(k..end).contains(other));
            let shared = others.flat_map(|(_, nests)| nests).any(|nest| within.contains(nest));
            loops[k].measured = !shared && !within.contains(&None);
        }
    }
    let outside_by = own(&counts.outside);
    let mut by_array: BTreeMap<BufferId, Moved> = BTreeMap::new();
    for (buffer, more) in counts.loops.iter().flat_map(own).chain(outside_by.iter().copied()) {
        let all = by_array.entry(buffer).or_default();
        *all = sum([*all, more].into_iter());
    }
    let size = |buffer: BufferId| {
        let len =
            given.get(buffer.index()).copied().unwrap_or(0).max(counts.lengths.get(&buffer).copied().unwrap_or(0));
        len.saturating_mul(kernel.buffer(buffer).elem.size() as u64)
    };
    let arrays = by_array
        .into_iter()
        .map(|(buffer, moved)| ArrayAnalysis { name: names[buffer.index()].clone(), moved, size: size(buffer) })
        .collect();
    let remarks = (0..loops.len()).filter_map(|k| remark(&loops[..=k])).collect();
    Analysis {
        program: program.to_string(),
        arrays,
        outside: sum(outside_by.iter().map(|(_, moved)| *moved)),
        time,
        time_counting,
        runs,
        nests: nests(kernel).len(),
        nests_measured: shares.is_some(),
        conversions: Vec::new(),
        operations: counts.loops.iter().chain([&counts.outside]).map(|found| found.operations).sum(),
        statements: counts.executed.statements,
        remarks,
        results,
        loops,
    }
}

/// Loops in the order of the program: their indices, how deep they are, and their statements.
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

/// Adds to each loop what the loops inside it moved and took.
fn enclose(loops: &mut [LoopAnalysis]) {
    for k in (0..loops.len()).rev() {
        let depth = loops[k].depth;
        let inner = loops[k + 1..].iter().take_while(|row| row.depth > depth).filter(|row| row.depth == depth + 1);
        let (more, seconds) = inner.fold((Moved::default(), 0.0), |(moved, seconds), row| {
            (sum([moved, row.moved].into_iter()), seconds + row.seconds)
        });
        loops[k].moved = sum([loops[k].moved, more].into_iter());
        loops[k].seconds += seconds;
    }
}

fn sum(all: impl Iterator<Item = Moved>) -> Moved {
    all.fold(Moved::default(), |sum, more| Moved {
        read: sum.read.saturating_add(more.read),
        written: sum.written.saturating_add(more.written),
    })
}

fn moved(kernel: &Kernel, buffer: BufferId, traffic: Traffic) -> Moved {
    let size = kernel.buffer(buffer).elem.size() as u64;
    Moved { read: traffic.loads.saturating_mul(size), written: traffic.stores.saturating_mul(size) }
}

/// What buffers are of tensors. The level is said where several have such an array.
fn names(program: &Program, lowered: &Lowered) -> Vec<String> {
    let mut names: Vec<String> = lowered.kernel.buffers.iter().map(|buffer| buffer.name.clone()).collect();
    // Parameters come first, so that arrays that results share have their names.
    for (info, bound) in program.tensors.iter().zip(&lowered.bound).rev() {
        let mut name = |buffer: &BufferId, what: String| {
            if let Some(place) = names.get_mut(buffer.index()) {
                *place = format!("{} {what}", info.name);
            }
        };
        match &bound.storage {
            Stored::Levels { arrays, values, .. } => {
                let among = |name: &str| arrays.iter().flatten().filter(|(other, _)| *other == name).count();
                for (level, arrays) in arrays.iter().enumerate() {
                    for (array, buffer) in arrays {
                        let several = among(array) > 1;
                        name(buffer, if several { format!("{array}[{level}]") } else { array.to_string() });
                    }
                }
                values.iter().for_each(|buffer| name(buffer, "values".to_string()));
            }
            Stored::Scalar { output, .. } => output.iter().for_each(|buffer| name(buffer, "value".to_string())),
        }
    }
    names
}

/// Time by counted work, in each loop nest for itself where these were measured.
struct Seconds {
    /// For each statement of the kernel, its nest and seconds for each unit of its work.
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

/// What to think of a loop, the last of these, that took far more or fewer turns than expected.
fn remark(loops: &[LoopAnalysis]) -> Option<String> {
    let row = loops.last()?;
    let (ratio, predicted) = (row.ratio()?, row.predicted?);
    if (1.0 / SURPRISING..=SURPRISING).contains(&ratio) {
        return None;
    }
    let named = |counted: bool| {
        let names = row.predicted_from.iter().filter(|(_, known)| *known == counted);
        names.map(|(name, _)| name.as_str()).collect::<Vec<&str>>().join(", ")
    };
    let (counted, assumed) = (named(true), named(false));
    let more = ratio > 1.0;
    let far = match row.visits {
        0 => "never ran".to_string(),
        _ if more => format!("ran {ratio:.1} times as often as expected"),
        _ => format!("ran {:.1} times less often than expected", 1.0 / ratio),
    };
    let why = if let Some(inner) = row.in_tiles_of.as_ref().filter(|_| more) {
        format!("it runs once for each tile of {inner}, which stays in registers meanwhile")
    } else if counted.is_empty() && assumed.is_empty() {
        "no tensor says how often, so its whole extent was expected".to_string()
    } else if assumed.is_empty() {
        let how = if more { "they meet more often than that" } else { "they lie closer together, or meet less often" };
        format!("entries of {counted} were counted, but assumed to lie anywhere: {how}")
    } else {
        let known = if counted.is_empty() { String::new() } else { format!("; those of {counted} were counted") };
        format!("how many entries {assumed} would have was estimated, not counted{known}")
    };
    Some(format!("{} {far} ({} of {predicted:.3e}): {why}", place(loops), row.visits))
}

/// A loop, by its index and those of the loops around it.
fn place(loops: &[LoopAnalysis]) -> String {
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
