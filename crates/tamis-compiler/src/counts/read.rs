//! What counters say, once a kernel has run: by loops of the kernel, and by loops of the program.

use super::{BulkKind, Counting, Times};
use std::collections::BTreeMap;
use tamis_ir::kernel::{self, BufferId, Kernel};

/// Elements that were read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many were read.
    pub loads: u64,
    /// How many were written.
    pub stores: u64,
}

/// A loop of the kernel that is part of one of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its first line.
    pub text: String,
    /// How often it was entered.
    pub entered: u64,
    /// How often it went around.
    pub turns: u64,
    /// Whether each turn runs the body of the program's loop.
    pub visits: bool,
    /// Whether it walks along lists until a condition holds no more.
    pub walks: bool,
}

/// What happened in a loop of the program, without the loops inside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopCounts {
    /// How often it was entered: all of its parts that are in no other part of it, those with the most entries.
    pub entered: u64,
    /// How often its body ran.
    pub visits: u64,
    /// How often it went on along its lists, where it merges or searches.
    pub steps: u64,
    /// The loops of the kernel that it became.
    pub parts: Vec<Part>,
    /// The indices of other loops of the program that parts of this one are inside of; those of loops inside it, too, where
    /// their tiles are outermost.
    pub around: Vec<u32>,
    /// Elements read and written, by buffer.
    pub traffic: BTreeMap<BufferId, Traffic>,
    /// Operators applied.
    pub operations: u64,
    /// What it costs by a simple model, by the statement of the kernel that it is in.
    pub cost: BTreeMap<usize, f64>,
}

/// What a kernel did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// What happened in each loop of the program, by the numbers of indices.
    pub loops: Vec<LoopCounts>,
    /// What happened outside of all loops of the program.
    pub outside: LoopCounts,
    /// The greatest length that each buffer was asked to have.
    pub lengths: BTreeMap<BufferId, u64>,
    /// How many statements ran, and how often each variable was declared: what the interpreter counts, too.
    pub executed: kernel::Counts,
}

impl Counting {
    /// What counters mean that a kernel has stored. `kernel` is the one that counters were added to.
    pub fn read(&self, kernel: &Kernel, counters: &[i64]) -> Counts {
        let count = |times: Times| {
            let base = times.counter.map_or(1, |place| counters.get(place).copied().unwrap_or(0).max(0) as u64);
            base.saturating_mul(times.factor)
        };
        let mut counts = Counts { loops: vec![LoopCounts::default(); self.indices], ..Counts::default() };
        counts.executed.declared = vec![0; kernel.vars.len()];
        for (k, loops) in counts.loops.iter_mut().enumerate() {
            loops.visits = counters.get(k).copied().unwrap_or(0).max(0) as u64;
        }
        for (k, row) in self.loops.iter().enumerate() {
            let (entered, turns) = (count(row.entered), count(row.turns));
            let around = self.around(k);
            let found = counts.of(row.index);
            found.around.extend(around.into_iter().filter(|_| turns > 0));
            found.around.sort_unstable();
            found.around.dedup();
            found.parts.push(Part { text: row.text.clone(), entered, turns, visits: row.visits, walks: row.walks });
            if row.visits {
                found.visits = found.visits.saturating_add(turns);
            }
            if row.walks {
                found.steps = found.steps.saturating_add(turns);
            }
            if !self.is_inside_its_own(k) {
                found.entered = found.entered.max(entered);
            }
        }
        for stretch in &self.stretches {
            let times = count(stretch.times);
            counts.executed.statements += times.saturating_mul(stretch.statements);
            for var in &stretch.declares {
                if let Some(declared) = counts.executed.declared.get_mut(var.index()) {
                    *declared += times;
                }
            }
            let found = counts.of(stretch.within.and_then(|k| self.loops[k].index));
            for (buffer, loads) in &stretch.work.loads {
                found.traffic.entry(*buffer).or_default().loads += loads.saturating_mul(times);
            }
            for (buffer, stores) in &stretch.work.stores {
                found.traffic.entry(*buffer).or_default().stores += stores.saturating_mul(times);
            }
            found.operations += stretch.work.operations.saturating_mul(times);
            *found.cost.entry(stretch.statement).or_default() += times as f64 * stretch.work.cost();
        }
        for bulk in &self.bulk {
            let (times, elements) = (count(bulk.times), count(Times::counted(bulk.counter)));
            let mean = if times > 0 { elements as f64 / times as f64 } else { 0.0 };
            let (loads, stores, cost) = match bulk.kind {
                BulkKind::Fill => (0, elements, elements as f64 * 0.5),
                BulkKind::Search => {
                    let probes = times as f64 * (mean + 1.0).log2().ceil();
                    (probes as u64, 0, 4.0 * probes)
                }
                BulkKind::Sort | BulkKind::Settle => {
                    (elements, elements, elements as f64 * (4.0 + 2.0 * (mean + 1.0).log2()))
                }
            };
            let found = counts.of(bulk.within.and_then(|k| self.loops[k].index));
            let traffic = found.traffic.entry(bulk.buffer).or_default();
            traffic.loads += loads;
            traffic.stores += stores;
            *found.cost.entry(bulk.statement).or_default() += cost;
        }
        counts.lengths = self.lengths.iter().map(|(buffer, place)| (*buffer, count(Times::counted(*place)))).collect();
        counts
    }

    /// The other loops of the program that a loop is inside of.
    fn around(&self, number: usize) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = self.loops[number].parent;
        while let Some(k) = open {
            found.extend(self.loops[k].index.filter(|index| Some(*index) != self.loops[number].index));
            open = self.loops[k].parent;
        }
        found
    }

    /// Whether a loop around this one is part of the same loop of the program.
    fn is_inside_its_own(&self, number: usize) -> bool {
        let index = self.loops[number].index;
        let mut around = self.loops[number].parent;
        while let Some(k) = around {
            if self.loops[k].index == index {
                return true;
            }
            around = self.loops[k].parent;
        }
        false
    }
}

impl Counts {
    fn of(&mut self, index: Option<u32>) -> &mut LoopCounts {
        match index.and_then(|index| self.loops.get_mut(index as usize)) {
            Some(found) => found,
            None => &mut self.outside,
        }
    }

    /// What everything costs in one statement of the kernel, by the model.
    pub fn cost_of(&self, statement: usize) -> f64 {
        let all = self.loops.iter().chain([&self.outside]);
        all.filter_map(|found| found.cost.get(&statement)).sum()
    }
}
