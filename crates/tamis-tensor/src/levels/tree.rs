//! The fiber tree: enumeration, assembly, checks and search of all levels of a tensor.

use super::{Assemble, Assembled, Enumeration, Level, LevelArrays, Nodes, Padding, Shape, level_type};
use crate::convert::sort::visit_descents;
use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::LevelSpec;
use tamis_ir::{Code, Diagnostic, diag::Result};

/// The levels of a tensor, outermost first.
pub(crate) type Levels = Vec<Arc<dyn Level>>;

/// Entries in storage order: the coordinate of every entry in each level, and the positions of
/// values.
#[derive(Debug)]
pub(crate) struct TreeEntries {
    /// For each level, the coordinate of every entry.
    pub columns: Vec<IndexArray>,
    /// For each entry, its position below the last level.
    pub positions: Vec<usize>,
}

/// The number of positions below the last level.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Tensor, levels::tree};
/// let values = vec![1.0, 0.0, 0.0, 4.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// assert_eq!(tree::positions(&a.levels()[..1]), 2, "rows");
/// assert_eq!(tree::positions(a.levels()), 2, "stored elements");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn positions(levels: &[Arc<dyn Level>]) -> usize {
    levels.last().map_or(1, |level| level.children())
}

/// True if these levels may store padding, as `dense` does.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::levels::tree;
/// assert!(tree::pads(Format::dense(2).levels()) && !tree::pads(Format::csr().levels()));
/// ```
pub fn pads(specs: &[LevelSpec]) -> bool {
    specs.iter().fold(true, |padded, spec| match level_type(spec.kind).map(|row| row.capabilities.padding) {
        Ok(Padding::Adds | Padding::Between) => true,
        Ok(Padding::Keeps) => padded,
        _ => false,
    })
}

/// The first of the trailing levels that store every coordinate, below which explicit and implicit
/// fills are indistinguishable; the number of levels, if the last level does not.
pub(crate) fn filled_from(specs: &[LevelSpec]) -> usize {
    let padding = |spec: &LevelSpec| level_type(spec.kind).map(|row| row.capabilities.padding);
    let fills = |spec: &&LevelSpec| matches!(padding(spec), Ok(Padding::Adds | Padding::Keeps));
    let start = specs.len() - specs.iter().rev().take_while(fills).count();
    // A level that keeps padding has some only if a level above adds it.
    let kept = specs[start..].iter().take_while(|spec| matches!(padding(spec), Ok(Padding::Keeps))).count();
    start + kept
}

/// True if some coordinates of these levels share a child position.
pub(crate) fn shares(specs: &[LevelSpec]) -> bool {
    specs.iter().any(|spec| level_type(spec.kind).is_ok_and(|row| row.capabilities.shared))
}

/// The number of stored entries, each coordinate of a run counted; `None` on overflow.
pub(crate) fn stored(levels: &[Arc<dyn Level>]) -> Option<usize> {
    let Some(first) = levels.iter().position(|level| level.level_type().capabilities.shared) else {
        return levels.iter().try_fold(1, |parents, level| level.stored(parents));
    };
    let mut below = PositionCounts::Equal(1);
    for k in (first..levels.len()).rev() {
        below = below.above(&levels[k], positions(&levels[..k]))?;
    }
    if has_holes(&levels[..first]) {
        let reached = reached(&levels[..first]).ok()?;
        return match below {
            PositionCounts::Equal(count) => reached.len().checked_mul(count),
            PositionCounts::Each(counts) => reached.iter().try_fold(0usize, |sum, p| sum.checked_add(counts[*p])),
        };
    }
    match below {
        PositionCounts::Equal(count) => positions(&levels[..first]).checked_mul(count),
        PositionCounts::Each(counts) => counts.into_iter().try_fold(0usize, usize::checked_add),
    }
}

/// The number of entries stored below each position.
enum PositionCounts {
    /// The same number below each.
    Equal(usize),
    /// One number for each position.
    Each(Vec<usize>),
}

impl PositionCounts {
    /// The counts one level higher, for its `parents` positions.
    fn above(self, level: &Arc<dyn Level>, parents: usize) -> Option<PositionCounts> {
        let capabilities = level.level_type().capabilities;
        if level.children() == 0 {
            // The number of parents may exceed the memory.
            return Some(PositionCounts::Equal(0));
        }
        if let (PositionCounts::Equal(count), true) = (&self, capabilities.full || capabilities.one_per_fiber) {
            return level.fiber_length(0).checked_mul(*count).map(PositionCounts::Equal);
        }
        // Every other level has arrays of at least this length, or a level below has.
        let mut counts: Vec<usize> = reserve(parents, "counters").ok()?;
        let below = match self {
            PositionCounts::Equal(count) => {
                for parent in 0..parents {
                    counts.push(level.fiber_length(parent).checked_mul(count)?);
                }
                return Some(PositionCounts::Each(counts));
            }
            PositionCounts::Each(below) => below,
        };
        for parent in 0..parents {
            let mut sum = Some(0usize);
            level.ranges(parent, &mut |range| {
                let length = (range.stop - range.start) as usize;
                let more = if range.shared {
                    length.checked_mul(below[range.child])
                } else {
                    below[range.children()].iter().try_fold(0usize, |sum, count| sum.checked_add(*count))
                };
                sum = sum.zip(more).and_then(|(sum, more)| sum.checked_add(more));
            });
            counts.push(sum?);
        }
        Some(PositionCounts::Each(counts))
    }
}

/// The number of entries of each position below the last level: the length of a run, or 0 for
/// padding.
pub(crate) fn weights(levels: &[Arc<dyn Level>]) -> Result<Vec<usize>> {
    levels.iter().try_fold(vec![1usize], |above, level| {
        let mut weights: Vec<usize> = zeroed(level.children(), "counters")?;
        for (parent, weight) in above.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            level.ranges(parent, &mut |range| {
                let times = if range.shared { (range.stop - range.start) as usize } else { 1 };
                weights[range.children()].fill(weight.saturating_mul(times));
            });
        }
        Ok(weights)
    })
}

fn has_holes(levels: &[Arc<dyn Level>]) -> bool {
    levels.iter().any(|level| level.level_type().capabilities.holes)
}

/// The stored positions below the last level, distinct and in order.
pub(crate) fn reached(levels: &[Arc<dyn Level>]) -> Result<Vec<usize>> {
    levels.iter().try_fold(vec![0], |parents, level| reached_below(level, &parents))
}

/// The child positions of these positions, distinct and in order.
pub(crate) fn reached_below(level: &Arc<dyn Level>, parents: &[usize]) -> Result<Vec<usize>> {
    let bound = match level.level_type().capabilities.shared {
        true => level.children(),
        false => level.stored(parents.len()).unwrap_or(usize::MAX).min(level.children()),
    };
    let mut found: Vec<usize> = reserve(bound, "the positions of entries")?;
    for parent in parents {
        level.ranges(*parent, &mut |range| found.extend(range.children()));
    }
    Ok(found)
}

/// All stored entries in storage order, in time linear in nnz and the number of parents.
pub(crate) fn enumerate(levels: &[Arc<dyn Level>]) -> Result<TreeEntries> {
    if stored(levels) == Some(0) {
        // A dimension of size 0 below a huge dense one: nothing is stored, but parents exist.
        let columns = levels.iter().map(|_| IndexArray::U32(Vec::new().into())).collect();
        return Ok(TreeEntries { columns, positions: Vec::new() });
    }
    let mut lists: Vec<Enumeration> = Vec::with_capacity(levels.len());
    let mut positions = vec![0];
    for (k, level) in levels.iter().enumerate() {
        // Runs repeat positions and holes skip them, so only a sum gives the number of entries.
        let plain = levels[..=k].iter().all(|level| {
            let capabilities = level.level_type().capabilities;
            !capabilities.shared && !capabilities.holes
        });
        let count = match plain {
            true => level.stored(positions.len()),
            false => positions.iter().try_fold(0usize, |sum, p| sum.checked_add(level.fiber_length(*p))),
        };
        let mut list = below(level, &positions, count)?;
        positions = std::mem::take(&mut list.positions);
        lists.push(list);
    }
    // From the last level upwards, `entry_of[e]` is the stored coordinate above entry e.
    let mut columns = Vec::with_capacity(levels.len());
    let mut entry_of: Option<Vec<usize>> = None;
    for list in lists.into_iter().rev() {
        columns.push(match &entry_of {
            None => narrow(list.coordinates.iter().copied(), &list.coordinates),
            Some(entry_of) => narrow(entry_of.iter().map(|e| list.coordinates[*e]), &list.coordinates),
        });
        entry_of = Some(match entry_of {
            None => list.parents,
            Some(entry_of) => entry_of.into_iter().map(|e| list.parents[e]).collect(),
        });
    }
    columns.reverse();
    Ok(TreeEntries { columns, positions })
}

/// The coordinates stored below these parent positions; `count` is their number, if it is known.
fn below(level: &Arc<dyn Level>, parents: &[usize], count: Option<usize>) -> Result<Enumeration> {
    let count = count.unwrap_or(usize::MAX);
    let mut list = Enumeration {
        parents: reserve(count, "the entries of a tensor")?,
        coordinates: reserve(count, "the entries of a tensor")?,
        positions: reserve(count, "the entries of a tensor")?,
    };
    level.enumerate(parents, &mut list);
    Ok(list)
}

/// The numbers in 32 bits if they fit, to halve the memory traffic of later passes.
fn narrow(numbers: impl Iterator<Item = u64>, all: &[u64]) -> IndexArray {
    if all.iter().all(|x| *x <= u32::MAX as u64) {
        numbers.map(|x| x as u32).collect::<Vec<u32>>().into()
    } else {
        numbers.collect::<Vec<u64>>().into()
    }
}

/// Calls `each` with the storage coordinates and the position of every entry, in storage order.
pub(crate) fn visit(levels: &[Arc<dyn Level>], each: &mut dyn FnMut(&[u64], usize)) {
    visit_while(levels, &mut |coordinates, position| {
        each(coordinates, position);
        true
    });
}

/// [`visit`] until `each` is false. Later entries cost nothing, except for the segments of their
/// fibers.
pub(crate) fn visit_while(levels: &[Arc<dyn Level>], each: &mut dyn FnMut(&[u64], usize) -> bool) {
    if stored(levels) != Some(0) {
        let coordinates = vec![0; levels.len()];
        Traversal { levels, coordinates, each, entries: 0, stopped: false }.below(0, 0);
    }
}

/// A traversal of the entries of some levels.
struct Traversal<'a> {
    levels: &'a [Arc<dyn Level>],
    coordinates: Vec<u64>,
    each: &'a mut dyn FnMut(&[u64], usize) -> bool,
    /// The number of visited entries.
    entries: u64,
    stopped: bool,
}

impl Traversal<'_> {
    fn below(&mut self, depth: usize, parent: usize) {
        let Some(level) = self.levels.get(depth) else {
            self.entries = self.entries.wrapping_add(1);
            self.stopped = !(self.each)(&self.coordinates, parent);
            return;
        };
        level.ranges(parent, &mut |range| {
            let before = self.entries;
            for coordinate in range.start..range.stop {
                // All coordinates of a run share one sub-fiber: if it is empty, there is nothing to
                // visit.
                if self.stopped || range.shared && coordinate > range.start && self.entries == before {
                    return;
                }
                self.coordinates[depth] = coordinate;
                let offset = if range.shared { 0 } else { (coordinate - range.start) as usize };
                self.below(depth + 1, range.child + offset);
            }
        });
    }
}

/// The position of the entry with these storage coordinates, if it is stored.
pub(crate) fn locate(levels: &[Arc<dyn Level>], coordinates: impl Iterator<Item = u64>) -> Option<usize> {
    let found = levels.iter().zip(coordinates).fold(0..1, |parents, (level, c)| level.locate(parents, c));
    (!found.is_empty()).then_some(found.start)
}

/// Levels assembled from entries.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// The levels.
    pub levels: Levels,
    /// The position below the last level of each entry.
    pub positions: Vec<usize>,
}

/// Builds all levels from entries in storage order: `columns[k]` holds the coordinates of level k,
/// the tuples are strictly increasing, and every coordinate is below its extent. Levels of runs
/// need deduplication: [`crate::convert`] builds them.
pub(crate) fn assemble(
    specs: &[LevelSpec],
    extents: &[u64],
    columns: &[IndexArray],
    entries: usize,
) -> Result<Assembly> {
    let differs = first_difference(columns, entries)?;
    let mut levels: Levels = Vec::with_capacity(specs.len());
    let mut positions = vec![0; entries.min(1)];
    let mut parent_count = 1;
    let mut parent_depth = None;
    for (k, (extent, column)) in extents.iter().zip(columns).enumerate() {
        let depth = Some(node_depth(specs, k) as u8);
        let mut parents: Vec<usize> = reserve(entries, "the nodes of a level")?;
        let mut coordinates: Vec<u64> = reserve(entries, "the nodes of a level")?;
        let mut parent = 0;
        with_indices!(column, column => for (e, (c, differs)) in column.iter().zip(&differs).enumerate() {
            parent += usize::from(e > 0 && Some(*differs) <= parent_depth);
            if Some(*differs) <= depth {
                parents.push(positions[parent]);
                coordinates.push(c.to_u64());
            }
        });
        let nodes = Nodes { parents: &parents, coordinates: &coordinates, parent_count, extent: *extent };
        let assembled = assemble_level(nodes, specs, k)?;
        positions = assembled.positions;
        parent_count = assembled.level.children();
        parent_depth = depth;
        levels.push(assembled.level);
    }
    Ok(Assembly { levels, positions })
}

/// Assembles level k from coordinates.
pub(crate) fn assemble_level(nodes: Nodes<'_>, specs: &[LevelSpec], k: usize) -> Result<Assembled> {
    match level_type(specs[k].kind)?.assemble {
        Assemble::Coordinates(assemble) => assemble(nodes, &specs[k]).map_err(|d| in_level(d, specs, k)),
        Assemble::Runs(_) => {
            let message = format!("`{}` was built from coordinates instead of runs", specs[k]);
            Err(Diagnostic::new(Code::E1101, message).help("report this"))
        }
    }
}

/// The last level whose coordinates distinguish the nodes of level k: itself, or for a nonunique
/// level and the singletons directly below it, the last of these.
fn node_depth(specs: &[LevelSpec], k: usize) -> usize {
    match (0..=k).rev().find(|j| specs[*j].nonunique) {
        Some(start) if k < chain(specs, start).end => chain(specs, start).end - 1,
        _ => k,
    }
}

/// A nonunique level and the singletons directly below it.
pub(crate) fn chain(specs: &[LevelSpec], start: usize) -> Range<usize> {
    let one = |spec: &&LevelSpec| level_type(spec.kind).is_ok_and(|row| row.capabilities.one_per_fiber);
    start..start + 1 + specs[start + 1..].iter().take_while(one).count()
}

/// For each entry, the first level at which it differs from the previous one (0 for the first
/// entry).
pub(crate) fn first_difference(columns: &[IndexArray], entries: usize) -> Result<Vec<u8>> {
    let mut first: Vec<u8> = crate::memory::filled(entries, columns.len() as u8, "the entries of a tensor")?;
    for (k, column) in columns.iter().enumerate().rev() {
        with_indices!(column, column => for (first, w) in first.iter_mut().skip(1).zip(column.windows(2)) {
            *first = if w[0] != w[1] { k as u8 } else { *first };
        });
    }
    if let Some(first) = first.first_mut() {
        *first = 0;
    }
    Ok(first)
}

/// Constructs all levels from foreign arrays, after checking every invariant.
pub(crate) fn from_arrays(specs: &[LevelSpec], extents: &[u64], arrays: Vec<LevelArrays>) -> Result<Levels> {
    if arrays.len() != specs.len() {
        let message = format!("arrays are given for {} levels, but the format has {}", arrays.len(), specs.len());
        return Err(Diagnostic::new(Code::E0701, message)
            .help("give the arrays of each level, outermost first; none for `dense`"));
    }
    let mut levels: Levels = Vec::with_capacity(specs.len());
    for (k, ((spec, extent), arrays)) in specs.iter().zip(extents).zip(arrays).enumerate() {
        let shape = Shape { parents: positions(&levels), extent: *extent };
        levels.push((level_type(spec.kind)?.from_arrays)(arrays, spec, shape).map_err(|d| in_level(d, specs, k))?);
    }
    for start in (0..specs.len()).filter(|k| specs[*k].nonunique) {
        check_tuples(&levels[chain(specs, start)]).map_err(|d| in_level(d, specs, start))?;
    }
    if has_holes(&levels) {
        check_reachable(&levels, specs)?;
    }
    Ok(levels)
}

/// Constructs all levels from arrays that a kernel wrote, truncated to the lengths that the levels
/// above determine. Other invariants are trusted.
pub(crate) fn finish(specs: &[LevelSpec], extents: &[u64], arrays: Vec<LevelArrays>) -> Result<Levels> {
    let mut levels: Levels = Vec::with_capacity(specs.len());
    for (k, ((spec, extent), arrays)) in specs.iter().zip(extents).zip(arrays).enumerate() {
        let shape = Shape { parents: positions(&levels), extent: *extent };
        levels.push((level_type(spec.kind)?.finish)(arrays, spec, shape).map_err(|d| in_level(d, specs, k))?);
    }
    Ok(levels)
}

/// Checks that the tuples of a nonunique level and the singletons below it are strictly increasing
/// within each fiber.
fn check_tuples(chain: &[Arc<dyn Level>]) -> Result<()> {
    let arrays: Vec<LevelArrays> = chain.iter().map(|level| level.arrays()).collect();
    let columns: Vec<&IndexArray> = arrays.iter().filter_map(|arrays| arrays.get("crd")).collect();
    let pos = arrays.first().and_then(|arrays| arrays.get("pos"));
    let starts_fiber = |entry: usize| {
        pos.is_some_and(
            |pos| with_indices!(pos, pos => pos.binary_search_by_key(&(entry as u64), |p| p.to_u64()).is_ok()),
        )
    };
    let mut broken = None;
    visit_descents(&columns, &mut |entry, ordering| {
        if broken.is_none() && !starts_fiber(entry) {
            broken = Some((entry, ordering));
        }
        broken.is_none()
    });
    let Some((entry, ordering)) = broken else { return Ok(()) };
    let tuple = |entry: usize| columns.iter().map(|c| c.get(entry).to_string()).collect::<Vec<_>>().join(", ");
    let (code, message) = match ordering {
        Ordering::Equal => {
            (Code::E0708, format!("coordinates ({}) are stored twice, at {} and {entry}", tuple(entry), entry - 1))
        }
        _ => (Code::E0704, format!("coordinates ({}) at {entry} follow ({})", tuple(entry), tuple(entry - 1))),
    };
    Err(Diagnostic::new(code, message)
        .note("together, the coordinates of a nonunique level and the singletons below it increase")
        .help("build the tensor from coordinates instead, which sorts them and combines duplicates"))
}

/// Checks that no coordinates are stored below positions that are not stored (the holes of a
/// bytemap, empty intervals).
fn check_reachable(levels: &[Arc<dyn Level>], specs: &[LevelSpec]) -> Result<()> {
    let mut parents = vec![0];
    for (k, level) in levels.iter().enumerate() {
        let stored = level.occupied(parents.len());
        if stored == Some(0) {
            return Ok(());
        }
        let found = reached_below(level, &parents)?;
        // Levels that store every coordinate do so below every position.
        let full = level.level_type().capabilities.padding == Padding::Adds;
        if !full && stored != Some(found.len()) {
            let message = format!(
                "{} positions are stored, but only {} of them below positions that are stored",
                stored.unwrap_or(usize::MAX),
                found.len()
            );
            let d = Diagnostic::new(Code::E0701, message)
                .help("leave the fibers empty that lie below flags that are 0, or below empty intervals");
            return Err(in_level(d, specs, k));
        }
        parents = found;
    }
    Ok(())
}

pub(crate) fn in_level(d: Diagnostic, specs: &[LevelSpec], k: usize) -> Diagnostic {
    d.note(format!("in level {k} (of {}, the outermost is 0), `{}`", specs.len(), specs[k]))
}
