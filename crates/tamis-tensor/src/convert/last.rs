//! Direct conversion between formats that differ in one kind of level only.
//!
//! If only the last level differs, fibers are rewritten one by one with their values; nothing is
//! deduplicated or sorted. If coordinate lists become blocks, or blocks become coordinate lists,
//! even the positions of the levels below stay.

use super::numbers::{BitMask, differing};
use super::structured::Unstored;
use super::words::{map_words, stored_form};
use super::{build, words};
use crate::levels::{self, Level, Shape, tree};
use crate::memory::{available, filled, product, too_large};
use crate::{Tensor, ValueArray};
use bytemuck::Pod;
use std::cell::OnceCell;
use std::sync::Arc;
use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec};
use tamis_ir::{Value, diag::Result};

/// Converts coordinate lists to blocks, or blocks to lists, at any level: the levels below keep
/// their positions, and are shared.
pub(super) fn relisted(tensor: &Tensor, format: &Format, fill: Value) -> Result<Option<Tensor>> {
    use LevelKind::{Blocks, Hash, Sparse};
    let (from, to) = (tensor.format().levels(), format.levels());
    let plain = |spec: &LevelSpec| matches!(spec.kind, Sparse | Hash | Blocks) && !spec.nonunique && !spec.nonordered;
    let comparable = from.len() == to.len()
        && tensor.format().map() == format.map()
        && from.iter().zip(to).all(|(a, b)| a == b || (plain(a) && plain(b)))
        && (format.leaf() == Leaf::Pattern) == tensor.values().is_none();
    // Between coordinate lists there are other routes, which share more.
    let blocks = from.iter().chain(to).any(|spec| spec.kind == Blocks);
    if !comparable || !blocks {
        return Ok(None);
    }
    let mut levels: tree::Levels = Vec::with_capacity(to.len());
    for (k, level) in tensor.levels().iter().enumerate() {
        if from[k] == to[k] {
            levels.push(level.clone());
            continue;
        }
        let shape = Shape { parents: tree::positions(&levels), extent: tensor.extents()[k] };
        let mut lists = Lists::default();
        for parent in 0..shape.parents {
            let mut done = Ok(());
            level.ranges(parent, &mut |range| {
                if done.is_ok() {
                    done = lists.push_contiguous(range.start, range.stop, to[k].kind == Blocks);
                }
            });
            done?;
            lists.end();
        }
        levels.push(lists.level(&to[k], shape).map_err(|d| tree::in_level(d, to, k))?);
    }
    Tensor::new(format.clone(), tensor.shape(), fill, levels, tensor.values().cloned()).map(Some)
}

/// Converts the last level only, or merges equal adjacent runs if no level differs.
pub(super) fn last_level(tensor: &Tensor, format: &Format, fill: Value) -> Result<Option<Tensor>> {
    use LevelKind::{Band, Blocks, Dense, Hash, Interval, Runs, Sparse, SparseRuns};
    let (from, to) = (tensor.format().levels(), format.levels());
    let (Some((source, above)), Some((target, same))) = (from.split_last(), to.split_last()) else { return Ok(None) };
    let structured = |spec: &LevelSpec| matches!(spec.kind, Runs | SparseRuns | Interval | Blocks | Band);
    let ordered = from.iter().chain(to).all(|spec| !spec.nonunique && !spec.nonordered);
    if above != same
        || !ordered
        || tree::shares(above)
        || tensor.format().map() != format.map()
        || !(structured(source) || structured(target))
        || !(structured(target) || matches!(target.kind, Dense | Sparse | Hash))
        || (format.leaf() == Leaf::Pattern) != tensor.values().is_none()
        || (target.kind == Dense && tensor.values().is_none())
    {
        return Ok(None);
    }
    let (Some((level, levels)), Some(extent)) = (tensor.levels().split_last(), tensor.extents().last()) else {
        return Ok(None);
    };
    if tree::stored(tensor.levels()) == Some(0) {
        // The number of fibers may exceed the memory.
        return Ok(None);
    }
    let shape = Shape { parents: tree::positions(levels), extent: *extent };
    let reached = match levels.iter().any(|level| level.level_type().capabilities.holes) {
        true => Some(tree::reached(levels)?),
        false => None,
    };
    let in_last = |d| tree::in_level(d, to, to.len() - 1);
    let source = LastLevel { level, shape, reached };
    let (found, mut count) = (OnceCell::new(), 0);
    let values = match tensor.values() {
        Some(values) => {
            let unstored = super::unstored(tensor, to, fill);
            let mask = match unstored {
                Unstored::Number(number) => Some(differing(values, number)?).filter(|mask| !mask.is_full()),
                _ => None,
            };
            Some(map_words!(values, words => {
                let bits = matches!(unstored, Unstored::Bits(_)).then(|| stored_form(fill));
                let kept = Kept { mask, bits };
                let rewritten = rewrite(&source, target, words, stored_form(fill), &kept).map_err(in_last)?;
                let _ = found.set(rewritten.level);
                rewritten.words
            }))
        }
        None => {
            let truths = vec![(); level.children()];
            let rewritten = rewrite(&source, target, &truths, (), &Kept { mask: None, bits: None }).map_err(in_last)?;
            let _ = found.set(rewritten.level);
            count = rewritten.count;
            None
        }
    };
    let Some(last) = found.into_inner() else { return Ok(None) };
    let levels = levels.iter().cloned().chain([last]).collect();
    let tensor = Tensor::new(format.clone(), tensor.shape(), fill, levels, values)?;
    if tensor.values().is_some() || !format.is_onto(tensor.shape()) {
        return Ok(Some(tensor));
    }
    build::check_pattern(tensor, Some(count)).map(Some)
}

/// The fibers of a last level.
struct LastLevel<'a> {
    level: &'a Arc<dyn Level>,
    shape: Shape,
    /// The stored parent positions; `None` if all are.
    reached: Option<Vec<usize>>,
}

/// The values that the result stores.
struct Kept<W> {
    /// Values whose bits are set.
    mask: Option<BitMask>,
    /// Values that differ from this one.
    bits: Option<W>,
}

struct Rewritten<W> {
    level: Arc<dyn Level>,
    words: Vec<W>,
    /// The number of stored coordinates.
    count: usize,
}

/// A consumer of the fibers of a level, in order.
trait FiberSink<W: Pod + PartialEq> {
    /// Coordinates with one value.
    fn run(&mut self, start: u64, stop: u64, word: W) -> Result<()>;

    /// Contiguous coordinates with a value each.
    fn block(&mut self, start: u64, words: &[W]) -> Result<()>;

    /// The end of the fiber.
    fn end(&mut self) -> Result<()>;

    /// Returns the level and its values.
    fn finish(self: Box<Self>, spec: &LevelSpec, shape: Shape) -> Result<(Arc<dyn Level>, Vec<W>)>;
}

fn rewrite<W: Pod + PartialEq>(
    source: &LastLevel,
    target: &LevelSpec,
    words: &[W],
    fill: W,
    kept: &Kept<W>,
) -> Result<Rewritten<W>> {
    let shape = source.shape;
    let mut sink: Box<dyn FiberSink<W>> = match target.kind {
        LevelKind::Runs => Box::new(RunSink::new(fill, Some(shape.extent), false)),
        LevelKind::SparseRuns => Box::new(RunSink::new(fill, None, false)),
        LevelKind::Interval => Box::new(RunSink::new(fill, None, true)),
        LevelKind::Band => Box::new(BandSink { last: Vec::new(), ofs: vec![0], words: Vec::new(), fill, first: None }),
        LevelKind::Dense => Box::new(DenseSink {
            words: filled(product(shape.parents, shape.extent)?, fill, "a dense tensor")?,
            base: 0,
            extent: shape.extent as usize,
        }),
        kind => Box::new(ListSink { lists: Lists::default(), words: Vec::new(), blocks: kind == LevelKind::Blocks }),
    };
    let runs = matches!(target.kind, LevelKind::Runs | LevelKind::SparseRuns | LevelKind::Interval);
    let everything = kept.mask.is_none() && kept.bits.is_none();
    let is_kept = |at: usize| {
        kept.mask.as_ref().is_none_or(|mask| mask.is_set(at)) && kept.bits.is_none_or(|bits| words[at] != bits)
    };
    let mut reached = source.reached.as_ref().map(|list| list.iter().copied().peekable());
    let mut count = 0usize;
    for parent in 0..shape.parents {
        let stored = reached.as_mut().is_none_or(|list| list.next_if_eq(&parent).is_some());
        let mut done = Ok(());
        if stored {
            source.level.ranges(parent, &mut |range| {
                if done.is_err() {
                    return;
                }
                let length = (range.stop - range.start) as usize;
                if range.shared {
                    if everything || is_kept(range.child) {
                        count = count.saturating_add(length);
                        done = sink.run(range.start, range.stop, words[range.child]);
                    }
                    return;
                }
                let children = &words[range.children()];
                if everything {
                    count = count.saturating_add(length);
                    done = sink.block(range.start, children);
                    return;
                }
                let mut at = 0;
                while runs && at < length && done.is_ok() {
                    // Runs of equal values are stored, or dropped, as a whole.
                    let from = at;
                    at += children[from..].iter().take_while(|word| **word == children[from]).count();
                    if is_kept(range.child + from) {
                        count = count.saturating_add(at - from);
                        done = sink.run(range.start + from as u64, range.start + at as u64, children[from]);
                    }
                }
                while at < length && done.is_ok() {
                    let from = at + (at..length).take_while(|k| !is_kept(range.child + k)).count();
                    at = from + (from..length).take_while(|k| is_kept(range.child + k)).count();
                    if at > from {
                        count = count.saturating_add(at - from);
                        done = sink.block(range.start + from as u64, &children[from..at]);
                    }
                }
            });
        }
        done?;
        sink.end()?;
    }
    let (level, words) = sink.finish(target, shape)?;
    Ok(Rewritten { level, words, count })
}

/// Reserves capacity for more values, or returns a diagnostic.
fn reserve_more<T>(values: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    let refused = || too_large(more as u64, size_of::<T>(), what);
    if !more.checked_mul(size_of::<T>()).is_some_and(available) {
        return Err(refused());
    }
    values.try_reserve(more).map_err(|_| refused())
}

/// Assembles runs; equal adjacent runs are merged.
struct RunSink<W> {
    /// The end of the runs of each fiber.
    pos: Vec<u64>,
    starts: Vec<u64>,
    stops: Vec<u64>,
    words: Vec<W>,
    /// The value of coordinates that are not stored.
    fill: W,
    /// Gaps become runs of the fill, up to this extent.
    gapless: Option<u64>,
    /// A fiber has at most one run.
    single: bool,
    /// The first run of the fiber.
    first: usize,
}

impl<W: Pod + PartialEq> RunSink<W> {
    fn new(fill: W, gapless: Option<u64>, single: bool) -> RunSink<W> {
        let (starts, stops, words) = (Vec::new(), Vec::new(), Vec::new());
        RunSink { pos: vec![0], starts, stops, words, fill, gapless, single, first: 0 }
    }

    #[inline(always)]
    fn push(&mut self, start: u64, stop: u64, word: W) -> Result<()> {
        let last = self.stops.len();
        if last > self.first && self.stops[last - 1] == start && self.words[last - 1] == word {
            self.stops[last - 1] = stop;
            return Ok(());
        }
        if self.single && last > self.first {
            let first = self.starts[last - 1]..self.stops[last - 1];
            return Err(levels::second_run(self.pos.len() - 1, first, start..stop));
        }
        self.starts.push(start);
        self.stops.push(stop);
        self.words.push(word);
        Ok(())
    }

    fn gap(&mut self, stop: u64) -> Result<()> {
        if self.gapless.is_none() {
            return Ok(());
        }
        let reached = if self.stops.len() > self.first { self.stops[self.stops.len() - 1] } else { 0 };
        if reached < stop { self.push(reached, stop, self.fill) } else { Ok(()) }
    }
}

impl<W: Pod + PartialEq> FiberSink<W> for RunSink<W> {
    fn run(&mut self, start: u64, stop: u64, word: W) -> Result<()> {
        self.gap(start)?;
        self.push(start, stop, word)
    }

    fn block(&mut self, start: u64, words: &[W]) -> Result<()> {
        self.gap(start)?;
        let mut at = 0;
        while at < words.len() {
            let word = words[at];
            let length = words[at..].iter().take_while(|other| **other == word).count();
            self.push(start + at as u64, start + (at + length) as u64, word)?;
            at += length;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if let Some(extent) = self.gapless {
            self.gap(extent)?;
        }
        self.first = self.stops.len();
        self.pos.push(self.first as u64);
        Ok(())
    }

    fn finish(mut self: Box<Self>, spec: &LevelSpec, shape: Shape) -> Result<(Arc<dyn Level>, Vec<W>)> {
        if !self.single {
            let level = levels::trusted_runs(&self.pos, &self.starts, &self.stops, spec, shape)?;
            return Ok((level, self.words));
        }
        // One run for each fiber, which is empty for fibers without one.
        let (mut starts, mut stops): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut words: Vec<W> = Vec::new();
        for (array, what) in [(&mut starts, "`start`"), (&mut stops, "`end`")] {
            reserve_more(array, shape.parents, what)?;
        }
        reserve_more(&mut words, shape.parents, "values")?;
        for w in self.pos.windows(2) {
            let at = (w[0] < w[1]).then_some(w[0] as usize);
            starts.push(at.map_or(0, |at| self.starts[at]));
            stops.push(at.map_or(0, |at| self.stops[at]));
            words.push(at.map_or(self.fill, |at| self.words[at]));
        }
        (self.starts, self.stops) = (starts, stops);
        let level = levels::trusted_runs(&self.pos, &self.starts, &self.stops, spec, shape)?;
        Ok((level, words))
    }
}

/// Assembles coordinate lists or blocks.
#[derive(Default)]
struct Lists {
    /// The end of the items of each fiber.
    pos: Vec<u64>,
    /// Every coordinate, or the last one of each block.
    crd: Vec<u64>,
    /// The end of the children of each block.
    ofs: Vec<u64>,
    children: u64,
    /// The first item of the fiber.
    first: usize,
}

impl Lists {
    #[inline(always)]
    fn push_contiguous(&mut self, start: u64, stop: u64, blocks: bool) -> Result<()> {
        self.children += stop - start;
        if !blocks {
            reserve_more(&mut self.crd, (stop - start) as usize, "coordinates")?;
            self.crd.extend(start..stop);
            return Ok(());
        }
        if self.crd.len() > self.first
            && let (Some(last), Some(end)) = (self.crd.last_mut(), self.ofs.last_mut())
            && *last + 1 == start
        {
            (*last, *end) = (stop - 1, self.children);
            return Ok(());
        }
        self.crd.push(stop - 1);
        self.ofs.push(self.children);
        Ok(())
    }

    fn end(&mut self) {
        self.first = self.crd.len();
        self.pos.push(self.first as u64);
    }

    fn level(mut self, spec: &LevelSpec, shape: Shape) -> Result<Arc<dyn Level>> {
        self.pos.insert(0, 0);
        self.ofs.insert(0, 0);
        levels::trusted_list(&self.pos, &self.crd, &self.ofs, spec, shape)
    }
}

struct ListSink<W> {
    lists: Lists,
    words: Vec<W>,
    blocks: bool,
}

impl<W: Pod + PartialEq> FiberSink<W> for ListSink<W> {
    fn run(&mut self, start: u64, stop: u64, word: W) -> Result<()> {
        self.lists.push_contiguous(start, stop, self.blocks)?;
        reserve_more(&mut self.words, (stop - start) as usize, "values")?;
        self.words.extend(std::iter::repeat_n(word, (stop - start) as usize));
        Ok(())
    }

    fn block(&mut self, start: u64, words: &[W]) -> Result<()> {
        self.lists.push_contiguous(start, start + words.len() as u64, self.blocks)?;
        reserve_more(&mut self.words, words.len(), "values")?;
        self.words.extend_from_slice(words);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.lists.end();
        Ok(())
    }

    fn finish(self: Box<Self>, spec: &LevelSpec, shape: Shape) -> Result<(Arc<dyn Level>, Vec<W>)> {
        Ok((self.lists.level(spec, shape)?, self.words))
    }
}

/// Assembles one block for each fiber, with the fill in its gaps.
struct BandSink<W> {
    last: Vec<u64>,
    ofs: Vec<u64>,
    words: Vec<W>,
    fill: W,
    /// The start of the fiber's block, and the next coordinate.
    first: Option<(u64, u64)>,
}

impl<W: Pod + PartialEq> BandSink<W> {
    fn reach(&mut self, start: u64, stop: u64) -> Result<()> {
        let next = self.first.map_or(start, |(_, next)| next);
        reserve_more(&mut self.words, (stop - next) as usize, "the values of a band")?;
        self.words.extend(std::iter::repeat_n(self.fill, (start - next) as usize));
        self.first = Some((self.first.map_or(start, |(first, _)| first), stop));
        Ok(())
    }
}

impl<W: Pod + PartialEq> FiberSink<W> for BandSink<W> {
    fn run(&mut self, start: u64, stop: u64, word: W) -> Result<()> {
        self.reach(start, stop)?;
        self.words.extend(std::iter::repeat_n(word, (stop - start) as usize));
        Ok(())
    }

    fn block(&mut self, start: u64, words: &[W]) -> Result<()> {
        self.reach(start, start + words.len() as u64)?;
        self.words.extend_from_slice(words);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.last.push(self.first.take().map_or(0, |(_, next)| next - 1));
        self.ofs.push(self.words.len() as u64);
        Ok(())
    }

    fn finish(self: Box<Self>, spec: &LevelSpec, shape: Shape) -> Result<(Arc<dyn Level>, Vec<W>)> {
        Ok((levels::trusted_band(&self.last, &self.ofs, spec, shape)?, self.words))
    }
}

/// Assembles every coordinate.
struct DenseSink<W> {
    words: Vec<W>,
    base: usize,
    extent: usize,
}

impl<W: Pod + PartialEq> FiberSink<W> for DenseSink<W> {
    fn run(&mut self, start: u64, stop: u64, word: W) -> Result<()> {
        self.words[self.base + start as usize..self.base + stop as usize].fill(word);
        Ok(())
    }

    fn block(&mut self, start: u64, words: &[W]) -> Result<()> {
        let start = self.base + start as usize;
        self.words[start..start + words.len()].copy_from_slice(words);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.base += self.extent;
        Ok(())
    }

    fn finish(self: Box<Self>, _: &LevelSpec, shape: Shape) -> Result<(Arc<dyn Level>, Vec<W>)> {
        Ok((levels::dense_level(shape.parents, shape.extent)?, self.words))
    }
}

/// True if the last level has equal adjacent runs: kernels may write them, conversions do not.
pub(super) fn has_equal_neighbours(level: &Arc<dyn Level>, parents: usize, values: Option<&ValueArray>) -> bool {
    let mut found = false;
    let mut look = |same: &dyn Fn(usize, usize) -> bool| {
        for parent in 0..parents {
            let mut before: Option<(u64, usize)> = None;
            level.ranges(parent, &mut |range| {
                found |= before.is_some_and(|(stop, child)| stop == range.start && same(child, range.child));
                before = Some((range.stop, range.child));
            });
            if found {
                return;
            }
        }
    };
    match values {
        Some(values) => words::with_words!(values, words => look(&|a, b| words[a] == words[b])),
        None => look(&|_, _| true),
    }
    found
}
