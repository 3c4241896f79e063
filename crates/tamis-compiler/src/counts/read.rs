//! Execution counts of an instrumented kernel, per loop of the kernel and per loop of the program.

use super::{BulkKind, Counting, SymbolicCount};
use std::collections::BTreeMap;
use tamis_ir::kernel::{self, BufferId, Kernel};

/// Numbers of elements read and written.
///
/// ```
/// use tamis_compiler::counts::Traffic;
/// let copied = Traffic { loads: 10, stores: 10 };
/// assert_eq!(copied.loads + copied.stores, 20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of elements read.
    pub loads: u64,
    /// The number of elements written.
    pub stores: u64,
}

/// A loop of the kernel that was lowered from a loop of the program.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// # let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let options = pipeline::Options { count: true, ..Default::default() };
/// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
/// let (counting, kernel) = &*compilation.counting.unwrap();
/// let counts = counting.read(kernel, &vec![3; counting.len]);
/// let headers: Vec<&str> = counts.loops[0].parts.iter().map(|part| part.text.as_str()).collect();
/// assert!(headers.iter().all(|header| header.starts_with("for ")), "{headers:?}");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LoopPart {
    /// Its header as text.
    pub text: String,
    /// The number of entries.
    pub entered: u64,
    /// The number of iterations.
    pub iterations: u64,
    /// True if each iteration runs the body of the program's loop.
    pub visits: bool,
    /// True if it is a `while` loop that co-iterates sparse levels.
    pub walks: bool,
}

/// Counts of a loop of the program, without nested loops.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// # let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let options = pipeline::Options { count: true, ..Default::default() };
/// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
/// let (counting, kernel) = &*compilation.counting.unwrap();
/// let counts = counting.read(kernel, &vec![3; counting.len]);
/// assert!(counts.loops[0].visits >= 3);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopCounts {
    /// The number of entries: the maximum over its outermost kernel loops.
    pub entered: u64,
    /// The number of executions of its body.
    pub visits: u64,
    /// The number of steps of its co-iteration loops.
    pub steps: u64,
    /// The kernel loops that it was lowered to.
    pub parts: Vec<LoopPart>,
    /// The indices of other loops of the program that enclose its kernel loops; with tiling, these
    /// may be its inner loops.
    pub around: Vec<u32>,
    /// Elements read and written, by buffer.
    pub traffic: BTreeMap<BufferId, Traffic>,
    /// Operators applied.
    pub operations: u64,
    /// Its cost by a simple model, per top-level statement of the kernel.
    pub cost: BTreeMap<usize, f64>,
}

/// The execution counts of a kernel.
///
/// ```
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// # let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// # let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let options = pipeline::Options { count: true, ..Default::default() };
/// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
/// let (counting, kernel) = &*compilation.counting.unwrap();
/// let counts = counting.read(kernel, &vec![3; counting.len]);
/// assert_eq!(counts.loops.len(), program.indices.len());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Counts of each loop of the program, by index.
    pub loops: Vec<LoopCounts>,
    /// Counts outside of all loops of the program.
    pub outside: LoopCounts,
    /// The maximum length requested for each buffer.
    pub lengths: BTreeMap<BufferId, u64>,
    /// Numbers of executed statements and declarations, as the interpreter counts them.
    pub executed: kernel::ExecutionCounts,
}

impl Counting {
    /// Computes the counts from stored counters. `kernel`: the kernel before instrumentation.
    ///
    /// ```
    /// # use tamis_compiler::{lower::ParamLayout, pipeline};
    /// # use tamis_ir::{Format, Notation, Value, interp};
    /// # use tamis_tensor::Tensor;
    /// # let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// # let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
    /// let options = pipeline::Options { count: true, ..Default::default() };
    /// let compilation = pipeline::compile(&program, &params, &layouts, options)?;
    /// let (counting, kernel) = &*compilation.counting.unwrap();
    /// let counts = counting.read(kernel, &vec![0; counting.len]);
    /// assert!(counts.loops.iter().all(|counts| counts.visits == 0), "it did not run");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn read(&self, kernel: &Kernel, counters: &[i64]) -> Counts {
        let count = |times: SymbolicCount| {
            let base = times.counter.map_or(1, |place| counters.get(place).copied().unwrap_or(0).max(0) as u64);
            base.saturating_mul(times.factor)
        };
        let mut counts = Counts { loops: vec![LoopCounts::default(); self.indices], ..Counts::default() };
        counts.executed.declared = vec![0; kernel.vars.len()];
        for (k, loops) in counts.loops.iter_mut().enumerate() {
            loops.visits = counters.get(k).copied().unwrap_or(0).max(0) as u64;
        }
        for (k, row) in self.loops.iter().enumerate() {
            let (entered, iterations) = (count(row.entered), count(row.iterations));
            let around = self.around(k);
            let found = counts.of(row.index);
            found.around.extend(around.into_iter().filter(|_| iterations > 0));
            found.around.sort_unstable();
            found.around.dedup();
            found.parts.push(LoopPart {
                text: row.text.clone(),
                entered,
                iterations,
                visits: row.visits,
                walks: row.walks,
            });
            if row.visits {
                found.visits = found.visits.saturating_add(iterations);
            }
            if row.walks {
                found.steps = found.steps.saturating_add(iterations);
            }
            if !self.is_inside_its_own(k) {
                found.entered = found.entered.max(entered);
            }
        }
        for basic_block in &self.basic_blocks {
            let times = count(basic_block.times);
            counts.executed.statements += times.saturating_mul(basic_block.statements);
            for var in &basic_block.declares {
                if let Some(declared) = counts.executed.declared.get_mut(var.index()) {
                    *declared += times;
                }
            }
            let found = counts.of(basic_block.within.and_then(|k| self.loops[k].index));
            for (buffer, loads) in &basic_block.work.loads {
                found.traffic.entry(*buffer).or_default().loads += loads.saturating_mul(times);
            }
            for (buffer, stores) in &basic_block.work.stores {
                found.traffic.entry(*buffer).or_default().stores += stores.saturating_mul(times);
            }
            found.operations += basic_block.work.operations.saturating_mul(times);
            *found.cost.entry(basic_block.statement).or_default() += times as f64 * basic_block.work.cost();
        }
        for bulk in &self.bulk {
            let (times, elements) = (count(bulk.times), count(SymbolicCount::counted(bulk.counter)));
            let mean = if times > 0 { elements as f64 / times as f64 } else { 0.0 };
            let (loads, stores, cost) = match bulk.kind {
                BulkKind::Fill => (0, elements, elements as f64 * 0.5),
                BulkKind::Search => {
                    let probes = times as f64 * (mean + 1.0).log2().ceil();
                    (probes as u64, 0, 4.0 * probes)
                }
                BulkKind::Sort | BulkKind::Finalize => {
                    (elements, elements, elements as f64 * (4.0 + 2.0 * (mean + 1.0).log2()))
                }
            };
            let found = counts.of(bulk.within.and_then(|k| self.loops[k].index));
            let traffic = found.traffic.entry(bulk.buffer).or_default();
            traffic.loads += loads;
            traffic.stores += stores;
            *found.cost.entry(bulk.statement).or_default() += cost;
        }
        counts.lengths =
            self.lengths.iter().map(|(buffer, place)| (*buffer, count(SymbolicCount::counted(*place)))).collect();
        counts
    }

    /// The other loops of the program that enclose a kernel loop.
    fn around(&self, number: usize) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = self.loops[number].parent;
        while let Some(k) = open {
            found.extend(self.loops[k].index.filter(|index| Some(*index) != self.loops[number].index));
            open = self.loops[k].parent;
        }
        found
    }

    /// True if an enclosing kernel loop was lowered from the same loop of the program.
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

    /// The modelled cost of one top-level statement of the kernel.
    ///
    /// ```
    /// use tamis_compiler::counts::Counts;
    /// assert_eq!(Counts::default().cost_of(0), 0.0);
    /// ```
    pub fn cost_of(&self, statement: usize) -> f64 {
        let all = self.loops.iter().chain([&self.outside]);
        all.filter_map(|found| found.cost.get(&statement)).sum()
    }
}
