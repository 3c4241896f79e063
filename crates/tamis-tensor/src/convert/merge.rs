//! Merging of equal adjacent runs in patterns that kernels wrote, fiber by fiber, in place.
//!
//! The last level is merged first; then sub-fibers are equal if their arrays are. The arrays are
//! the kernel's own; entries are moved within them.

use crate::levels::{self, LevelArrays, Shape, tree};
use crate::{IndexArray, Tensor};
use std::ops::Range;
use tamis_ir::diag::Result;
use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec, Width};

/// The runs of a level, fiber by fiber.
#[derive(Clone)]
struct PatternRuns {
    pos: Vec<u32>,
    start: Vec<u32>,
    end: Vec<u32>,
}

impl PatternRuns {
    fn fiber(&self, parent: usize) -> Range<usize> {
        self.pos[parent] as usize..self.pos[parent + 1] as usize
    }

    fn fibers(&self) -> usize {
        self.pos.len() - 1
    }

    /// The arrays of a level, which have 32 bits.
    fn of(mut arrays: LevelArrays) -> PatternRuns {
        let mut array = |name: &str| {
            let at = arrays.arrays.iter().position(|(other, _)| *other == name);
            match at.map(|at| arrays.arrays.swap_remove(at).1) {
                Some(IndexArray::U32(array)) => array.into_vec(),
                _ => Vec::new(),
            }
        };
        PatternRuns { pos: array("pos"), start: array("start"), end: array("end") }
    }
}

/// Converts a tensor to `format` if both are patterns of inner levels of runs, in 32 bits;
/// otherwise returns the tensor itself, for another route.
pub(super) fn pattern_of_runs(tensor: Tensor, format: &Format) -> Result<std::result::Result<Tensor, Tensor>> {
    let Some(above) = runs_from(&tensor, format) else { return Ok(Err(tensor)) };
    let (to, shape, fill) = (format.levels(), tensor.shape().to_vec(), tensor.fill());
    let extents = tensor.extents()[above..].to_vec();
    let mut levels: tree::Levels = tensor.levels()[..above].to_vec();
    let arrays: Vec<LevelArrays> = tensor.levels()[above..].iter().map(|level| level.arrays()).collect();
    // Arrays without another owner are not copied.
    drop(tensor);
    let mut runs: Vec<PatternRuns> = arrays.into_iter().map(PatternRuns::of).collect();
    for level in (0..runs.len()).rev() {
        let gapless = (to[above + level].kind == LevelKind::Runs).then_some(extents[level]);
        if level + 1 == runs.len() {
            merge_last(&mut runs[level]);
        } else {
            let (upper, lower) = runs.split_at_mut(level + 1);
            merge_upper(&mut upper[level], lower, gapless.map(|extent| extent as u32));
        }
    }
    for (k, merged) in runs.into_iter().enumerate() {
        let spec = &to[above + k];
        let shape = Shape { parents: tree::positions(&levels), extent: extents[k] };
        let mut arrays = vec![("pos", merged.pos.into()), ("end", merged.end.into())];
        if spec.kind == LevelKind::SparseRuns {
            arrays.push(("start", merged.start.into()));
        }
        levels.push((levels::level_type(spec.kind)?.finish)(LevelArrays { arrays }, spec, shape)?);
    }
    Tensor::new(format.clone(), &shape, fill, levels, None).map(Ok)
}

/// The first level of runs, if this route applies.
fn runs_from(tensor: &Tensor, format: &Format) -> Option<usize> {
    let (from, to) = (tensor.format().levels(), format.levels());
    let above = from.iter().take_while(|spec| spec.kind != LevelKind::SparseRuns).count();
    let narrow = |spec: &LevelSpec| [spec.pos, spec.crd].iter().all(|width| width.is_none_or(|w| w == Width::U32));
    let fits = |(k, (from, to)): (usize, (&LevelSpec, &LevelSpec))| {
        let wanted = to.kind == LevelKind::SparseRuns || (to.kind == LevelKind::Runs && k + 1 < format.levels().len());
        if k < above { from == to } else { from.kind == LevelKind::SparseRuns && wanted && narrow(to) }
    };
    if format.leaf() != Leaf::Pattern
        || tensor.values().is_some()
        || from.len() != to.len()
        || above == from.len()
        || tensor.format().map() != format.map()
        || tree::shares(&from[..above])
        || tensor.levels()[..above].iter().any(|level| level.level_type().capabilities.holes)
        || !from.iter().zip(to).enumerate().all(fits)
    {
        return None;
    }
    let narrow = tensor.levels()[above..].iter().zip(&tensor.extents()[above..]).all(|(level, extent)| {
        let arrays = level.arrays();
        let all = ["pos", "start", "end"].iter().all(|name| matches!(arrays.get(name), Some(IndexArray::U32(_))));
        // Gaps become runs, one before each and one after the last.
        let (runs, fibers) = (arrays.get("start").map_or(0, |a| a.len()), arrays.get("pos").map_or(0, |a| a.len()));
        all && u32::try_from(*extent).is_ok() && u32::try_from(2 * runs + fibers).is_ok()
    });
    narrow.then_some(above)
}

/// Merges adjacent runs, in place.
fn merge_last(runs: &mut PatternRuns) {
    // Without adjacent runs there is nothing to do: one scan over the arrays checks it,
    // disregarding pairs across fibers.
    let touching = |start: &[u32], end: &[u32]| start.iter().zip(end).filter(|(start, end)| start == end).count();
    let (first, last) = (runs.pos.first().map_or(0, |p| *p as usize), runs.pos.last().map_or(0, |p| *p as usize));
    if first == 0 && last > 0 {
        let all = touching(&runs.start[1..last], &runs.end[..last - 1]);
        let mut between = 0;
        for fiber in runs.pos.windows(2).filter(|fiber| fiber[0] < fiber[1] && fiber[0] > 0) {
            let at = fiber[0] as usize;
            between += usize::from(runs.start[at] == runs.end[at - 1]);
        }
        if all == between {
            runs.start.truncate(last);
            runs.end.truncate(last);
            return;
        }
    }
    let mut kept = 0;
    for parent in 0..runs.fibers() {
        // Positions before this fiber have changed; it starts at the end of the previous fiber in
        // the old arrays.
        let fiber = runs.pos[parent] as usize..runs.pos[parent + 1] as usize;
        runs.pos[parent] = kept as u32;
        // Branches on adjacency are hard to predict, so only the write position depends on it.
        let (mut first_of_run, mut reached) = (0, None);
        for q in fiber {
            let (start, end) = (runs.start[q], runs.end[q]);
            let touches = reached == Some(start);
            first_of_run = if touches { first_of_run } else { start };
            let at = kept - usize::from(touches);
            (runs.start[at], runs.end[at]) = (first_of_run, end);
            (kept, reached) = (at + 1, Some(end));
        }
    }
    if let Some(last) = runs.pos.last_mut() {
        *last = kept as u32;
    }
    runs.start.truncate(kept);
    runs.end.truncate(kept);
}

/// Merges adjacent runs with equal sub-fibers; with `gapless`, gaps become runs of empty
/// sub-fibers, up to that extent.
fn merge_upper(runs: &mut PatternRuns, below: &mut [PatternRuns], extent: Option<u32>) {
    let mut merged = PatternRuns {
        pos: vec![0],
        start: Vec::with_capacity(runs.start.len()),
        end: Vec::with_capacity(runs.end.len()),
    };
    // The sub-fiber of each merged run; none is empty.
    let mut children: Vec<Option<usize>> = Vec::with_capacity(runs.start.len());
    for parent in 0..runs.fibers() {
        let first = merged.start.len();
        let mut push = |start: u32, end: u32, child: Option<usize>| {
            let last = merged.end.len();
            if last > first && merged.end[last - 1] == start && same(below, children[last - 1], child) {
                merged.end[last - 1] = end;
                return;
            }
            merged.start.push(start);
            merged.end.push(end);
            children.push(child);
        };
        let mut reached = 0;
        for q in runs.fiber(parent) {
            if extent.is_some() && reached < runs.start[q] {
                push(reached, runs.start[q], None);
            }
            push(runs.start[q], runs.end[q], Some(q));
            reached = runs.end[q];
        }
        if let Some(extent) = extent.filter(|extent| reached < *extent) {
            push(reached, extent, None);
        }
        merged.pos.push(merged.start.len() as u32);
    }
    let unchanged = children.len() == runs.start.len() && children.iter().enumerate().all(|(k, c)| *c == Some(k));
    *runs = merged;
    if !unchanged {
        keep(below, &children);
    }
}

/// True if two sub-fibers are equal; `below` are their levels.
fn same(below: &[PatternRuns], a: Option<usize>, b: Option<usize>) -> bool {
    let Some((level, deeper)) = below.split_first() else { return true };
    let fiber = |child: Option<usize>| child.map_or(0..0, |child| level.fiber(child));
    let (a, b) = (fiber(a), fiber(b));
    level.start[a.clone()] == level.start[b.clone()]
        && level.end[a.clone()] == level.end[b.clone()]
        && (deeper.is_empty() || a.zip(b).all(|(a, b)| same(deeper, Some(a), Some(b))))
}

/// Keeps only these fibers of the first level, which are in order, and their children.
fn keep(levels: &mut [PatternRuns], fibers: &[Option<usize>]) {
    let Some((level, deeper)) = levels.split_first_mut() else { return };
    let (mut pos, mut kept) = (Vec::with_capacity(fibers.len() + 1), 0);
    let mut children = Vec::new();
    pos.push(0);
    for fiber in fibers {
        let runs = fiber.map_or(kept..kept, |fiber| level.fiber(fiber));
        if runs.start != kept {
            level.start.copy_within(runs.clone(), kept);
            level.end.copy_within(runs.clone(), kept);
        }
        kept += runs.len();
        pos.push(kept as u32);
        if !deeper.is_empty() {
            children.extend(runs.map(Some));
        }
    }
    level.start.truncate(kept);
    level.end.truncate(kept);
    level.pos = pos;
    if !deeper.is_empty() {
        keep(deeper, &children);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::Value;

    fn level(arrays: [&[u32]; 3]) -> LevelArrays {
        let [pos, start, end] = arrays.map(|array| IndexArray::from(array.to_vec()));
        LevelArrays::new([("pos", pos), ("start", start), ("end", end)])
    }

    fn written(shape: &[u64], format: &str, levels: Vec<LevelArrays>) -> Tensor {
        let format = Format::parse(format, shape.len()).unwrap();
        Tensor::from_parts(shape, &format, levels, None, Value::Bool(false)).unwrap()
    }

    fn array(tensor: &Tensor, level: usize, name: &str) -> Vec<u64> {
        tensor.level_arrays(level).get(name).unwrap().to_vec()
    }

    #[test]
    fn runs_that_touch_are_one() {
        let runs = level([&[0, 2, 2, 4, 5], &[0, 1, 3, 6, 0], &[1, 4, 5, 7, 8]]);
        let tensor = written(&[4, 8], "dense, sparse_runs; pattern", vec![LevelArrays::default(), runs]);
        let merged = pattern_of_runs(tensor.clone(), tensor.format()).unwrap().unwrap();
        assert_eq!(array(&merged, 1, "pos"), [0, 1, 1, 3, 4]);
        assert_eq!((array(&merged, 1, "start"), array(&merged, 1, "end")), (vec![0, 3, 6, 0], vec![4, 5, 7, 8]));
        assert!(merged.same_values(&tensor));
    }

    #[test]
    fn rows_that_are_equal_are_one_and_gaps_are_rows_without_runs() {
        // Rows 1..3 and 3..4 are equal once their runs are merged; row 4 differs; row 0 and those
        // from 5 on are empty.
        let rows = level([&[0, 3], &[1, 3, 4], &[3, 4, 5]]);
        let runs = level([&[0, 2, 3, 4], &[0, 1, 0, 2], &[1, 3, 3, 3]]);
        let tensor = written(&[6, 8], "sparse_runs, sparse_runs; pattern", vec![rows, runs]);
        let format = Format::parse("runs, sparse_runs; pattern", 2).unwrap();
        let merged = pattern_of_runs(tensor.clone(), &format).unwrap().unwrap();
        assert_eq!(array(&merged, 0, "end"), [1, 4, 5, 6]);
        assert_eq!(array(&merged, 1, "pos"), [0, 0, 1, 2, 2]);
        assert_eq!((array(&merged, 1, "start"), array(&merged, 1, "end")), (vec![0, 2], vec![3, 3]));
        assert!(merged.same_values(&tensor));
        let sparse = pattern_of_runs(tensor.clone(), tensor.format()).unwrap().unwrap();
        assert_eq!((array(&sparse, 0, "start"), array(&sparse, 0, "end")), (vec![1, 4], vec![4, 5]));
        assert!(sparse.same_values(&tensor));
    }

    #[test]
    fn what_it_does_not_know_goes_another_way() {
        let runs = level([&[0, 1], &[1], &[3]]);
        let tensor = written(&[4], "sparse_runs; pattern", vec![runs]);
        for format in ["runs; pattern", "sparse; pattern", "sparse_runs[u8]; pattern", "sparse_runs; element(False)"] {
            let format = Format::parse(format, 1).unwrap();
            assert!(pattern_of_runs(tensor.clone(), &format).unwrap().is_err(), "{format}");
        }
    }
}
