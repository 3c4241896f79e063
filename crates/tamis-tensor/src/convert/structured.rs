//! Deduplication of fibers (hash consing): equal sub-fibers have one id.
//!
//! A fiber becomes a list of *spans*: contiguous ranges of coordinates with equal children. Ids are
//! assigned bottom-up, from the leaves, so that two fibers are equal exactly if their lists are; a
//! hash table of lists decides. Levels of runs are then built top-down. The time is linear in the
//! stored size on either side, and a run of any length counts as one.

use super::EntryColumns;
use super::numbers::{BitMask, differing};
use super::words::{map_words, stored_form, with_words};
use crate::levels::{Assemble, Level, Nodes, Runs, level_type, tree};
use crate::memory::{filled, reserve, too_large};
use crate::{Index, ValueArray, with_indices};
use bytemuck::Pod;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use tamis_ir::format::{Format, LevelSpec};
use tamis_ir::{Value, diag::Result};

/// The id of a sub-fiber that is not stored.
const EMPTY: usize = 0;

/// In levels that store every coordinate, the id of a stored sub-fiber that holds only the fill:
/// the level above stores its coordinate, although the sub-fiber equals padding.
const BLANK: usize = 1;

/// A contiguous range of coordinates with equal children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoordinateSpan {
    start: u64,
    stop: u64,
    /// The id of the child.
    below: usize,
}

/// The fibers of one level, with ids from 1 on.
#[derive(Debug, Default)]
struct FiberTable {
    spans: Vec<CoordinateSpan>,
    /// The end of the spans of each fiber.
    ends: Vec<usize>,
}

impl FiberTable {
    fn get(&self, number: usize) -> &[CoordinateSpan] {
        match number.checked_sub(1) {
            None => &[],
            Some(0) => &self.spans[..self.ends[0]],
            Some(at) => &self.spans[self.ends[at - 1]..self.ends[at]],
        }
    }

    fn add(&mut self, spans: &[CoordinateSpan]) -> usize {
        self.spans.extend_from_slice(spans);
        self.ends.push(self.spans.len());
        self.ends.len()
    }
}

/// A whole tensor.
#[derive(Debug)]
pub(super) struct FiberIds {
    /// The fibers of each level, outermost first.
    levels: Vec<FiberTable>,
    /// The id of the outermost fiber, or of the leaf if there are no levels.
    root: usize,
    /// The position of the value of each leaf id, from 1 on.
    leaves: Vec<usize>,
}

/// The leaves that are not stored.
pub(super) enum Unstored {
    /// None.
    Nothing,
    /// Leaves with the bits of this value.
    Bits(Value),
    /// Leaves that equal this number.
    Number(Value),
}

impl FiberIds {
    /// Deduplicates the levels and values of a tensor. Ids are unique below the outermost level of
    /// runs of the `target`; other levels need no deduplication.
    ///
    /// The levels are neither nonunique nor nonordered. The fill is of the values' type; a pattern
    /// has none.
    pub fn of_levels(
        levels: &[Arc<dyn Level>],
        values: Option<&ValueArray>,
        unstored: Unstored,
        fill: Option<Value>,
        target: &[LevelSpec],
    ) -> Result<FiberIds> {
        if tree::stored(levels) == Some(0) {
            // A dimension of size 0 below a huge dense one: nothing is stored, but parents exist.
            let levels = levels.iter().map(|_| FiberTable::default()).collect();
            return Ok(FiberIds { levels, root: EMPTY, leaves: Vec::new() });
        }
        let first = first_run(target);
        let (blank, filled) = blank(values, fill, target);
        with_leaves(values, unstored, blank, first < target.len(), |leaves| {
            let mut all: Vec<FiberTable> = Vec::with_capacity(levels.len());
            // The ids of the children of each position; ids of leaves are assigned on the fly.
            let mut numbers: Option<Vec<usize>> = None;
            for (k, level) in levels.iter().enumerate().rev() {
                let parents = tree::positions(&levels[..k]);
                let mut table = SpanTable::new(first < k, filled <= k);
                let mut above: Vec<usize> = reserve(parents, "the numbers of fibers")?;
                let mut list = SpanList::new(filled <= k);
                for parent in 0..parents {
                    match &numbers {
                        None => level.ranges(parent, &mut |range| {
                            list.push_range(range.start..range.stop, range.shared, |at| leaves.number(range.child + at))
                        }),
                        Some(numbers) => level.ranges(parent, &mut |range| {
                            list.push_range(range.start..range.stop, range.shared, |at| numbers[range.child + at])
                        }),
                    }
                    above.push(list.finish(&mut table));
                }
                all.push(table.fibers);
                numbers = Some(above);
            }
            all.reverse();
            let root = match numbers {
                Some(numbers) => numbers.first().copied().unwrap_or(EMPTY),
                None => leaves.number(0),
            };
            Ok(FiberIds { levels: all, root, leaves: Vec::new() })
        })
    }

    /// Deduplicates sorted entries, whose columns are the levels of the `target`.
    pub fn of_entries(entries: &EntryColumns, fill: Value, target: &[LevelSpec]) -> Result<FiberIds> {
        let first = first_run(target);
        let (blank, filled) = blank(entries.values.as_ref(), Some(fill), target);
        let columns = entries.columns()?;
        let differs = tree::first_difference(&columns, entries.len)?;
        with_leaves(entries.values.as_ref(), Unstored::Nothing, blank, first < target.len(), |leaves| {
            let mut all: Vec<FiberTable> = Vec::with_capacity(columns.len());
            // The first entry of each node, and the id of its child; below the last level every
            // entry is a node.
            let mut nodes: Option<(Vec<usize>, Vec<usize>)> = None;
            for (k, column) in columns.iter().enumerate().rev() {
                let count = nodes.as_ref().map_or(entries.len, |(starts, _)| starts.len());
                let mut table = SpanTable::new(first < k, filled <= k);
                let (mut starts, mut numbers): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
                let mut list = SpanList::new(filled <= k);
                with_indices!(column, column => for node in 0..count {
                    let (entry, below) = match &nodes {
                        None => (node, leaves.number(node)),
                        Some((starts, numbers)) => (starts[node], numbers[node]),
                    };
                    if node == 0 || (differs[entry] as usize) < k {
                        if node > 0 {
                            numbers.push(list.finish(&mut table));
                        }
                        starts.push(entry);
                    }
                    let c = column[entry].to_u64();
                    list.push(CoordinateSpan { start: c, stop: c + 1, below });
                });
                if count > 0 {
                    numbers.push(list.finish(&mut table));
                }
                all.push(table.fibers);
                nodes = Some((starts, numbers));
            }
            all.reverse();
            let root = match nodes {
                Some((_, numbers)) => numbers.first().copied().unwrap_or(EMPTY),
                None if entries.len > 0 => leaves.number(0),
                None => EMPTY,
            };
            Ok(FiberIds { levels: all, root, leaves: Vec::new() })
        })
    }

    /// The number of stored coordinates; `None` on overflow.
    pub fn count(&self) -> Option<usize> {
        let mut below: Option<Vec<usize>> = None;
        for fibers in self.levels.iter().rev() {
            let mut counts = Vec::with_capacity(fibers.ends.len());
            for number in 1..=fibers.ends.len() {
                let spans = fibers.get(number).iter().map(|span| {
                    let each = below.as_ref().map_or(1, |below| below[span.below - 1]);
                    ((span.stop - span.start) as usize).checked_mul(each)
                });
                counts.push(spans.into_iter().try_fold(0usize, |sum, count| sum.checked_add(count?))?);
            }
            below = Some(counts);
        }
        Some(match (self.root, below) {
            (EMPTY, _) => 0,
            (_, None) => 1,
            (root, Some(counts)) => counts[root - 1],
        })
    }

    /// Builds levels and values: given values for stored coordinates, the fill elsewhere.
    pub fn build(
        &self,
        format: &Format,
        extents: &[u64],
        values: Option<&ValueArray>,
        fill: Value,
    ) -> Result<(tree::Levels, Option<ValueArray>)> {
        let specs = format.levels();
        let mut levels: tree::Levels = Vec::with_capacity(specs.len());
        let mut frontier = Frontier::default();
        if self.root != EMPTY {
            frontier = Frontier { positions: vec![0], numbers: vec![self.root] };
        }
        let mut k = 0;
        while k < specs.len() {
            let parents = tree::positions(&levels);
            if specs[k].nonunique {
                let chain = tree::chain(specs, k);
                frontier = self.tuples(&mut levels, frontier, specs, extents, chain.clone())?;
                k = chain.end;
                continue;
            }
            let (level, next) = match level_type(specs[k].kind)?.assemble {
                Assemble::Coordinates(_) => self.coordinates(frontier, specs, k, parents, extents[k])?,
                Assemble::Runs(assemble) => {
                    let (runs, numbers) = self.runs(&frontier, k)?;
                    let (parent_count, extent) = (parents, extents[k]);
                    let (owners, starts, stops) = (&runs.parents[..], &runs.starts[..], &runs.stops[..]);
                    let runs = Runs { parents: owners, starts, stops, parent_count, extent };
                    let assembled = assemble(runs, &specs[k]).map_err(|d| tree::in_level(d, specs, k))?;
                    (assembled.level, Frontier { positions: assembled.positions, numbers })
                }
            };
            levels.push(level);
            frontier = next;
            k += 1;
        }
        let count = tree::positions(&levels);
        let values = values.map(|values| self.values(values, &frontier, count, fill)).transpose()?;
        Ok((levels, values))
    }

    fn values(&self, values: &ValueArray, frontier: &Frontier, count: usize, fill: Value) -> Result<ValueArray> {
        let same = frontier.positions.len() == count
            && values.len() == count
            && (frontier.positions.iter().zip(&frontier.numbers))
                .enumerate()
                .all(|(k, (position, number))| k == *position && self.leaves[number - 1] == k);
        if same {
            return Ok(values.clone());
        }
        Ok(map_words!(values, words => {
            let mut out = filled(count, stored_form(fill), "the values of a tensor")?;
            for (position, number) in frontier.positions.iter().zip(&frontier.numbers) {
                out[*position] = words[self.leaves[number - 1]];
            }
            out
        }))
    }

    /// The number of coordinates of the fibers of level k at these positions.
    fn expanded(&self, frontier: &Frontier, k: usize) -> Result<usize> {
        let lengths = frontier.numbers.iter().flat_map(|number| self.levels[k].get(*number));
        let total = lengths.map(|s| (s.stop - s.start) as usize).try_fold(0usize, usize::checked_add);
        total.ok_or_else(|| too_large(u64::MAX, 8, "the coordinates of a level"))
    }

    /// Level k, with a child for every coordinate.
    fn coordinates(
        &self,
        frontier: Frontier,
        specs: &[LevelSpec],
        k: usize,
        parent_count: usize,
        extent: u64,
    ) -> Result<(Arc<dyn Level>, Frontier)> {
        let count = self.expanded(&frontier, k)?;
        let mut parents: Vec<usize> = reserve(count, "the nodes of a level")?;
        let mut coordinates: Vec<u64> = reserve(count, "the nodes of a level")?;
        let mut numbers: Vec<usize> = reserve(count, "the nodes of a level")?;
        for (position, number) in frontier.positions.iter().zip(&frontier.numbers) {
            for span in self.levels[k].get(*number) {
                let length = (span.stop - span.start) as usize;
                parents.extend(std::iter::repeat_n(*position, length));
                coordinates.extend(span.start..span.stop);
                numbers.extend(std::iter::repeat_n(span.below, length));
            }
        }
        let nodes = Nodes { parents: &parents, coordinates: &coordinates, parent_count, extent };
        let assembled = tree::assemble_level(nodes, specs, k)?;
        Ok((assembled.level, Frontier { positions: assembled.positions, numbers }))
    }

    /// The runs of the fibers of level k at these positions, and the ids of their children.
    fn runs(&self, frontier: &Frontier, k: usize) -> Result<(RunLists, Vec<usize>)> {
        let fibers = &self.levels[k];
        let count = frontier.numbers.iter().map(|number| fibers.get(*number).len()).sum();
        let mut runs = RunLists {
            parents: reserve(count, "the runs of a level")?,
            starts: reserve(count, "the runs of a level")?,
            stops: reserve(count, "the runs of a level")?,
        };
        let mut numbers: Vec<usize> = reserve(count, "the runs of a level")?;
        for (position, number) in frontier.positions.iter().zip(&frontier.numbers) {
            for span in fibers.get(*number) {
                runs.parents.push(*position);
                runs.starts.push(span.start);
                runs.stops.push(span.stop);
                numbers.push(span.below);
            }
        }
        Ok((runs, numbers))
    }

    /// A nonunique level and the singletons below it, which together store one tuple for each
    /// entry.
    fn tuples(
        &self,
        levels: &mut tree::Levels,
        frontier: Frontier,
        specs: &[LevelSpec],
        extents: &[u64],
        chain: std::ops::Range<usize>,
    ) -> Result<Frontier> {
        let parent_count = tree::positions(levels);
        // The partial column of each level, and the parent position of each tuple.
        let mut owners = frontier.positions;
        let mut numbers = frontier.numbers;
        let mut columns: Vec<Vec<u64>> = Vec::with_capacity(chain.len());
        for k in chain.clone() {
            let held = Frontier { positions: Vec::new(), numbers };
            let count = self.expanded(&held, k)?;
            let mut next: Vec<usize> = reserve(count, "the nodes of a level")?;
            let mut column: Vec<u64> = reserve(count, "the nodes of a level")?;
            let mut places: Vec<usize> = reserve(count, "the nodes of a level")?;
            for (tuple, number) in held.numbers.iter().enumerate() {
                for span in self.levels[k].get(*number) {
                    let length = (span.stop - span.start) as usize;
                    places.extend(std::iter::repeat_n(tuple, length));
                    column.extend(span.start..span.stop);
                    next.extend(std::iter::repeat_n(span.below, length));
                }
            }
            owners = places.iter().map(|tuple| owners[*tuple]).collect();
            for above in &mut columns {
                *above = places.iter().map(|tuple| above[*tuple]).collect();
            }
            columns.push(column);
            numbers = next;
        }
        for (k, column) in chain.zip(&columns) {
            let (parents, parent_count) = match k {
                k if specs[k].nonunique => (&owners, parent_count),
                // The position of each tuple's child.
                _ => (&owners, column.len()),
            };
            let nodes = Nodes { parents, coordinates: column, parent_count, extent: extents[k] };
            let assembled = tree::assemble_level(nodes, specs, k)?;
            owners = assembled.positions;
            levels.push(assembled.level);
        }
        Ok(Frontier { positions: owners, numbers })
    }
}

/// The outermost level of runs; the number of levels, if there is none.
fn first_run(specs: &[LevelSpec]) -> usize {
    let runs = |spec: &LevelSpec| level_type(spec.kind).is_ok_and(|row| row.capabilities.shared);
    specs.iter().position(runs).unwrap_or(specs.len())
}

/// The value that cannot be distinguished from padding, and the first level with padding. `None`
/// without values.
fn blank(values: Option<&ValueArray>, fill: Option<Value>, target: &[LevelSpec]) -> (Option<Value>, usize) {
    let filled = tree::filled_from(target);
    match fill.filter(|_| values.is_some() && filled < target.len()) {
        Some(fill) => (Some(fill), filled),
        None => (None, target.len()),
    }
}

/// Positions in order, and the ids of their fibers.
#[derive(Default)]
struct Frontier {
    positions: Vec<usize>,
    numbers: Vec<usize>,
}

struct RunLists {
    parents: Vec<usize>,
    starts: Vec<u64>,
    stops: Vec<u64>,
}

/// The spans of one fiber under construction.
struct SpanList {
    spans: Vec<CoordinateSpan>,
    /// Every coordinate is stored.
    filled: bool,
    /// An explicit fill is stored.
    explicit: bool,
}

impl SpanList {
    fn new(filled: bool) -> SpanList {
        SpanList { spans: Vec::new(), filled, explicit: false }
    }

    /// The id of the completed fiber; the list is empty for the next one.
    fn finish(&mut self, table: &mut SpanTable) -> usize {
        let number = match table.number(&self.spans) {
            EMPTY if self.explicit => BLANK,
            number => number,
        };
        self.spans.clear();
        self.explicit = false;
        number
    }

    /// Appends a span, which may extend the last one.
    #[inline(always)]
    fn push(&mut self, span: CoordinateSpan) {
        if span.below <= BLANK && (span.below == EMPTY || self.filled) {
            self.explicit |= span.below == BLANK;
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.stop == span.start && last.below == span.below => last.stop = span.stop,
            _ => self.spans.push(span),
        }
    }

    /// Appends a range of a level, with the id of its n-th child.
    #[inline(always)]
    fn push_range(&mut self, range: std::ops::Range<u64>, shared: bool, mut number: impl FnMut(usize) -> usize) {
        if shared {
            return self.push(CoordinateSpan { start: range.start, stop: range.end, below: number(0) });
        }
        for (at, c) in range.enumerate() {
            self.push(CoordinateSpan { start: c, stop: c + 1, below: number(at) });
        }
    }
}

/// The fibers of a level; with deduplication, each list of spans once.
struct SpanTable {
    fibers: FiberTable,
    /// The last fiber by hash, if fibers are deduplicated.
    ids: Option<HashMap<u64, usize, Seeded>>,
    /// For each fiber, the previous one with the same hash.
    before: Vec<usize>,
    seed: Seeded,
}

impl SpanTable {
    /// Fibers of a level that is `filled` may be blank.
    fn new(distinguishes: bool, filled: bool) -> SpanTable {
        let seed = Seeded::new();
        let (mut fibers, mut before) = (FiberTable::default(), Vec::new());
        if filled {
            fibers.add(&[]);
            before.push(EMPTY);
        }
        SpanTable { fibers, ids: distinguishes.then(|| HashMap::with_hasher(seed)), before, seed }
    }

    fn number(&mut self, spans: &[CoordinateSpan]) -> usize {
        if spans.is_empty() {
            return EMPTY;
        }
        let Some(ids) = &mut self.ids else { return self.fibers.add(spans) };
        let mut hasher = self.seed.build_hasher();
        for span in spans {
            hasher.write_u64(span.start);
            hasher.write_u64(span.stop);
            hasher.write_u64(span.below as u64);
        }
        let last = ids.entry(hasher.finish()).or_insert(EMPTY);
        let mut number = *last;
        while number != EMPTY {
            if self.fibers.get(number) == spans {
                return number;
            }
            number = self.before[number - 1];
        }
        self.before.push(*last);
        *last = self.fibers.add(spans);
        *last
    }
}

/// Assigns ids to leaves by their values.
trait Leaves {
    fn number(&mut self, place: usize) -> usize;
}

/// Values as words: equal ones have one id, with deduplication.
struct Values<'a, W> {
    words: &'a [W],
    stored: Option<BitMask>,
    unstored: Option<W>,
    blank: Option<W>,
    ids: Option<HashMap<W, usize, Seeded>>,
    last: Option<(W, usize)>,
    places: Vec<usize>,
}

impl<W: Pod + Eq + Hash> Leaves for Values<'_, W> {
    #[inline]
    fn number(&mut self, place: usize) -> usize {
        let word = self.words[place];
        if self.unstored == Some(word) || self.stored.as_ref().is_some_and(|stored| !stored.is_set(place)) {
            return EMPTY;
        }
        if self.blank == Some(word) {
            return BLANK;
        }
        let Some(ids) = &mut self.ids else {
            self.places.push(place);
            return self.places.len();
        };
        match self.last {
            Some((last, number)) if last == word => return number,
            _ => {}
        }
        let number = *ids.entry(word).or_insert_with(|| {
            self.places.push(place);
            self.places.len()
        });
        self.last = Some((word, number));
        number
    }
}

/// Leaves without values: all are equal.
struct Truth;

impl Leaves for Truth {
    fn number(&mut self, _: usize) -> usize {
        1
    }
}

/// Runs `build` with the ids of leaves, and returns the positions of their values.
fn with_leaves(
    values: Option<&ValueArray>,
    unstored: Unstored,
    blank: Option<Value>,
    distinguishes: bool,
    build: impl FnOnce(&mut dyn Leaves) -> Result<FiberIds>,
) -> Result<FiberIds> {
    let Some(values) = values else { return Ok(FiberIds { leaves: vec![0], ..build(&mut Truth)? }) };
    let stored = match &unstored {
        Unstored::Number(number) => Some(differing(values, *number)?).filter(|mask| !mask.is_full()),
        _ => None,
    };
    with_words!(values, words => {
        let unstored = match unstored {
            Unstored::Bits(value) => Some(stored_form(value)),
            _ => None,
        };
        let ids = distinguishes.then(|| HashMap::with_hasher(Seeded::new()));
        // The blank leaf has an id, but is never written.
        let (blank, places) = (blank.map(stored_form), vec![0; usize::from(blank.is_some())]);
        let mut leaves = Values { words, stored, unstored, blank, ids, last: None, places };
        let structure = build(&mut leaves)?;
        Ok(FiberIds { leaves: leaves.places, ..structure })
    })
}

/// A fast hash with a random seed, so that no input can force collisions.
#[derive(Clone, Copy)]
struct Seeded(u64);

struct Mixed(u64);

impl Seeded {
    fn new() -> Seeded {
        Seeded(RandomState::new().hash_one(0u8))
    }
}

impl BuildHasher for Seeded {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0)
    }
}

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(23);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
