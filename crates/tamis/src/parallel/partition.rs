//! Load balancing: partitions the outermost loop into chunks of about equal estimated work.
//!
//! In: a program, the loop, its trip count, the operands. Out: consecutive, non-empty chunks that
//! cover all iterations. The estimate counts the stored elements of the largest sparse operand
//! that the loop iterates over; for a sparse matrix product it counts multiplications.

use crate::signature::CallArgument;
use std::ops::Range;
use tamis_compiler::lower::outer_partition::{OuterPartition, WHOLE_SHARE};
use tamis_ir::format::DimExpr;
use tamis_ir::program::{Expr, Extent, IndexId, Program, StmtKind};
use tamis_tensor::{Index, IndexArray, bisect, with_indices};

/// A contiguous range of a loop's iterations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) iterations: Range<u64>,
    /// Its share of the work, in units of 1 / [`WHOLE_SHARE`].
    pub(crate) share: i64,
}

impl Chunk {
    /// The rows of a result that it writes, where each iteration writes `unit` of `all` rows.
    pub(crate) fn rows(&self, unit: u64, all: u64) -> Range<u64> {
        let end = |iteration: u64| iteration.saturating_mul(unit).min(all);
        end(self.iterations.start)..end(self.iterations.end)
    }
}

/// Partitions a loop of `trip_count` iterations into at most `count` chunks, none of them empty.
pub(crate) fn partition(
    program: &Program,
    outer: &OuterPartition,
    trip_count: u64,
    arguments: &[CallArgument],
    count: usize,
) -> Vec<Chunk> {
    let estimate = WorkEstimate::new(program, outer.index, trip_count, arguments);
    let all = estimate.before(trip_count).max(1);
    let mut chunks: Vec<Chunk> = Vec::with_capacity(count);
    let mut start = 0;
    for k in 1..=count as u64 {
        let goal = (u128::from(all) * u128::from(k) / count as u128) as u64;
        let end = if k == count as u64 { trip_count } else { estimate.iteration(goal) };
        if end > start {
            let work = estimate.before(end).saturating_sub(estimate.before(start));
            // Reserve an eighth more: equal estimates may produce different numbers of elements.
            let share = (u128::from(work) * WHOLE_SHARE as u128 / u128::from(all)) as i64;
            chunks.push(Chunk { iterations: start..end, share: share + share / 8 + 1 });
            start = end;
        }
    }
    if chunks.is_empty() {
        chunks.push(Chunk { iterations: 0..trip_count, share: WHOLE_SHARE });
    }
    chunks
}

/// An estimate of the work before each iteration of a loop.
struct WorkEstimate<'a> {
    trip_count: u64,
    /// The sparse operand with the most stored elements whose outermost level the loop iterates
    /// over, and how many of its rows an iteration covers. Dense operands add the same work to
    /// every iteration, so they do not matter.
    driver: Option<(&'a CallArgument<'a>, u64)>,
    /// The extents of its levels.
    extents: Vec<u64>,
    /// The multiplications before each iteration, if the elements of a row select rows of another
    /// operand.
    products: Option<Vec<u64>>,
}

impl<'a> WorkEstimate<'a> {
    fn new(program: &Program, index: IndexId, trip_count: u64, arguments: &'a [CallArgument<'a>]) -> WorkEstimate<'a> {
        let mut driver: Option<(&CallArgument, u64)> = None;
        for id in program.exprs.ids() {
            let Expr::Read(access) = program.expr(id) else { continue };
            let Some(param) = program.params.iter().position(|param| *param == access.tensor) else { continue };
            let argument = &arguments[param];
            if argument.levels.iter().all(|level| level.arrays.is_empty()) {
                continue;
            }
            let subscript = |dim: usize| access.subscripts.get(dim).map(|s| program.expr(s.expr));
            let unit = match argument.tensor.format().map().first() {
                Some(DimExpr::Dim(dim)) => match subscript(*dim) {
                    Some(Expr::Index(i)) if *i == index => Some(1),
                    Some(Expr::Index(i)) => {
                        tile_of(program, *i).filter(|(outer, _)| *outer == index).map(|(_, length)| length)
                    }
                    _ => None,
                },
                Some(DimExpr::Div(dim, by)) => match subscript(*dim) {
                    Some(Expr::Index(i)) => tile_of(program, *i).filter(|tile| *tile == (index, *by)).map(|_| 1),
                    _ => None,
                },
                _ => None,
            };
            let larger = driver.is_none_or(|(other, _)| argument.nnz() > other.nnz());
            if let (Some(unit), true) = (unit, larger) {
                driver = Some((argument, unit));
            }
        }
        let products =
            driver.filter(|(_, unit)| *unit == 1).and_then(|(a, _)| products(program, index, trip_count, a, arguments));
        let extents = driver.map(|(a, _)| a.tensor.format().level_extents(a.tensor.shape()).unwrap_or_default());
        WorkEstimate { trip_count, driver, extents: extents.unwrap_or_default(), products }
    }

    /// The work of all iterations before one. A stored element counts as much as an empty
    /// iteration.
    fn before(&self, iteration: u64) -> u64 {
        if let Some(products) = &self.products {
            return products.get(iteration as usize).copied().unwrap_or(iteration);
        }
        let Some((argument, unit)) = self.driver else { return iteration };
        let (levels, extents) = (&argument.levels, &self.extents);
        let row = iteration.saturating_mul(unit);
        let mut position = match levels.first().map(|level| (level.get("pos"), level.get("crd"), level.get("end"))) {
            Some((None, None, None)) => row.min(extents.first().copied().unwrap_or(0)),
            // An end is one past its last coordinate.
            Some((_, Some(crd), _)) => first_at_least(crd, row),
            Some((_, None, Some(end))) => first_at_least(end, row.saturating_add(1)),
            _ => return iteration,
        };
        for (level, extent) in levels.iter().zip(extents).skip(1) {
            position = match (level.get("pos"), level.arrays.is_empty()) {
                (Some(pos), _) => at(pos, position),
                (None, true) => position.saturating_mul(*extent),
                (None, false) => position,
            };
        }
        position.saturating_add(iteration)
    }

    /// The first iteration before which at least `work` is done, found by bisection.
    fn iteration(&self, work: u64) -> u64 {
        bisect(self.trip_count, |iteration| self.before(iteration) < work)
    }
}

/// The multiplications of a sparse matrix product `A[i,k] * B[k,...]` before each row of `A`: a
/// prefix sum over the lengths of the rows of `B` that the elements of `A` select.
fn products(
    program: &Program,
    index: IndexId,
    trip_count: u64,
    a: &CallArgument,
    arguments: &[CallArgument],
) -> Option<Vec<u64>> {
    let reads = |argument: &CallArgument, level: usize| -> Vec<IndexId> {
        let Some(DimExpr::Dim(dim)) = argument.tensor.format().map().get(level) else { return Vec::new() };
        let accesses = program.exprs.ids().filter_map(|id| match program.expr(id) {
            Expr::Read(access) => Some(access),
            _ => None,
        });
        let of_argument = accesses.filter(|access| {
            let param = program.params.iter().position(|param| *param == access.tensor);
            param.is_some_and(|param| std::ptr::eq(arguments[param].tensor, argument.tensor))
        });
        of_argument
            .filter_map(|access| match program.expr(access.subscripts.get(*dim)?.expr) {
                Expr::Index(index) => Some(*index),
                _ => None,
            })
            .collect()
    };
    let [top, inner] = &a.levels[..] else { return None };
    let (pos, crd) = (inner.get("pos")?, inner.get("crd")?);
    let selecting = reads(a, 1);
    if !top.arrays.is_empty() || !reads(a, 0).contains(&index) {
        return None;
    }
    let is_selected = |b: &&CallArgument| {
        let shares_index = reads(b, 0).iter().any(|k| *k != index && selecting.contains(k));
        shares_index
            && b.levels.first().is_some_and(|level| level.arrays.is_empty())
            && b.levels.get(1).is_some_and(|l| l.get("pos").is_some())
    };
    let b = arguments.iter().find(is_selected)?;
    let rows = b.levels[1].get("pos")?;
    let mut before = Vec::with_capacity(trip_count as usize + 1);
    let mut sum = 0u64;
    before.push(0);
    with_indices!(rows, rows => with_indices!(crd, crd => {
        let length = |k: u64| match rows.get(k as usize..k as usize + 2) {
            Some([start, stop]) => stop.to_u64() - start.to_u64(),
            _ => 0,
        };
        for row in 0..trip_count {
            let columns = crd.get(at(pos, row) as usize..at(pos, row + 1) as usize).unwrap_or_default();
            sum += 1 + columns.iter().map(|k| 1 + length(k.to_u64())).sum::<u64>();
            before.push(sum);
        }
    }));
    Some(before)
}

/// The outer loop whose tiles a loop iterates over, and their length, if strip-mining made the
/// loop.
fn tile_of(program: &Program, index: IndexId) -> Option<(IndexId, u64)> {
    let mut found = None;
    program.visit(&mut |stmt| {
        if let StmtKind::For { index: i, extent, .. } = &stmt.kind
            && *i == index
            && matches!(extent, Extent::Range(..))
        {
            found = program.piece_of(extent);
        }
    });
    found
}

/// The element at a position; the last one beyond the end.
fn at(array: &IndexArray, position: u64) -> u64 {
    with_indices!(array, x => x.get(position as usize).or(x.last()).map_or(0, |n| n.to_u64()))
}

/// The first position whose element is at least `row`, found by bisection.
fn first_at_least(array: &IndexArray, row: u64) -> u64 {
    with_indices!(array, x => x.partition_point(|n| n.to_u64() < row)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::{FormatSpec, Value};
    use tamis_tensor::{Combine, Coordinates, Tensor};

    fn tensor(shape: [u64; 2], format: &str, lengths: impl Fn(u64) -> u64) -> Tensor {
        let format = FormatSpec::parse(format).unwrap().with_rank(2).unwrap();
        let stored: Vec<(u64, u64)> = (0..shape[0]).flat_map(|i| (0..lengths(i)).map(move |j| (i, j))).collect();
        let columns = [stored.iter().map(|e| e.0).collect::<Vec<_>>(), stored.iter().map(|e| e.1).collect()];
        let values = vec![1.0; stored.len()].into();
        let coordinates =
            Coordinates { shape: shape.to_vec(), columns: columns.map(IndexArray::from).to_vec(), values };
        Tensor::from_coordinates(&coordinates, &format, Value::F64(0.0), Combine::Error).unwrap()
    }

    /// The first iterations of the chunks of a loop over `i`.
    fn starts(text: &str, tensors: &[&Tensor], count: usize) -> Vec<u64> {
        let program = Program::parse(text).unwrap();
        let outermost = program.body.iter().find_map(|stmt| match stmt.kind {
            StmtKind::For { index, .. } => Some(index),
            _ => None,
        });
        let index = outermost.unwrap();
        let trip_count = tensors[0].shape()[0];
        let chunks = partition(
            &program,
            &OuterPartition { index, shares: Vec::new() },
            trip_count,
            &CallArgument::all(tensors),
            count,
        );
        assert_eq!(chunks.last().unwrap().iterations.end, trip_count);
        chunks.iter().map(|chunk| chunk.iterations.start).collect()
    }

    /// The first ten rows of a sampled product hold most of its samples: chunks follow the samples,
    /// whatever the size of the dense operands.
    #[test]
    fn dense_operands_do_not_change_the_balance() {
        let text = "
def sddmm(S, A, B):
    C = tensor('csr')
    for i, j, k in _:
        C[i,j] += S[i,j] * A[i,k] * B[j,k]
    return C
";
        let s = tensor([100, 100], "csr", |i| if i < 10 { 91 } else { 1 });
        let dense = tensor([100, 64], "dense", |_| 64);
        assert_eq!(starts(text, &[&s, &dense, &dense], 2), [0, 6]);
        let sums = "
def sums(A, B):
    y = tensor('dense')
    for i, k in _:
        y[i] += A[i,k] * B[i,k]
    return y
";
        assert_eq!(starts(sums, &[&dense, &dense], 2), [0, 50]);
    }
}
