//! Where a loop is cut: into parts of about as much work each, as far as the entries of its operands tell.

use crate::signature::Argument;
use std::ops::Range;
use tamis_compiler::lower::part::{Cut, SHARES};
use tamis_ir::format::DimExpr;
use tamis_ir::program::{Expr, Extent, IndexId, Program, StmtKind};
use tamis_tensor::{Index, IndexArray, bisect, with_indices};

/// A part of a loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) turns: Range<u64>,
    /// What it has of the work, in [`SHARES`].
    pub(crate) share: i64,
}

impl Piece {
    /// The rows of a result that it writes, where each turn writes `unit` of `all`.
    pub(crate) fn rows(&self, unit: u64, all: u64) -> Range<u64> {
        let end = |turn: u64| turn.saturating_mul(unit).min(all);
        end(self.turns.start)..end(self.turns.end)
    }
}

/// Cuts a loop of so many turns into at most `count` parts, none of them empty.
pub(crate) fn cut(program: &Program, cut: &Cut, turns: u64, arguments: &[Argument], count: usize) -> Vec<Piece> {
    let measure = Measure::new(program, cut.index, turns, arguments);
    let all = measure.before(turns).max(1);
    let mut pieces: Vec<Piece> = Vec::with_capacity(count);
    let mut start = 0;
    for k in 1..=count as u64 {
        let goal = (u128::from(all) * u128::from(k) / count as u128) as u64;
        let end = if k == count as u64 { turns } else { measure.turn(goal) };
        if end > start {
            let work = measure.before(end).saturating_sub(measure.before(start));
            // A little more, since the first rows of two parts need not be alike.
            let share = (u128::from(work) * SHARES as u128 / u128::from(all)) as i64;
            pieces.push(Piece { turns: start..end, share: share + share / 8 + 1 });
            start = end;
        }
    }
    if pieces.is_empty() {
        pieces.push(Piece { turns: 0..turns, share: SHARES });
    }
    pieces
}

/// How much is to be done before each turn of a loop.
struct Measure<'a> {
    turns: u64,
    /// The sparse operand with the most entries whose outermost level the loop goes over, and how many of its rows a turn has. Full
    /// operands have as much for every turn, however much that is: what turns differ by is in the others.
    along: Option<(&'a Argument<'a>, u64)>,
    /// How far its levels go.
    extents: Vec<u64>,
    /// What there is to do before each turn, if every entry of a row leads to a row of another operand.
    products: Option<Vec<u64>>,
}

impl<'a> Measure<'a> {
    fn new(program: &Program, index: IndexId, turns: u64, arguments: &'a [Argument<'a>]) -> Measure<'a> {
        let mut along: Option<(&Argument, u64)> = None;
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
                        piece_of(program, *i).filter(|(number, _)| *number == index).map(|(_, n)| n)
                    }
                    _ => None,
                },
                Some(DimExpr::Div(dim, by)) => match subscript(*dim) {
                    Some(Expr::Index(i)) => piece_of(program, *i).filter(|piece| *piece == (index, *by)).map(|_| 1),
                    _ => None,
                },
                _ => None,
            };
            let more = along.is_none_or(|(other, _)| argument.entries() > other.entries());
            if let (Some(unit), true) = (unit, more) {
                along = Some((argument, unit));
            }
        }
        let products =
            along.filter(|(_, unit)| *unit == 1).and_then(|(a, _)| products(program, index, turns, a, arguments));
        let extents = along.map(|(a, _)| a.tensor.format().level_extents(a.tensor.shape()).unwrap_or_default());
        Measure { turns, along, extents: extents.unwrap_or_default(), products }
    }

    /// What the turns before one have to do: an entry is as much as a turn without any.
    fn before(&self, turn: u64) -> u64 {
        if let Some(products) = &self.products {
            return products.get(turn as usize).copied().unwrap_or(turn);
        }
        let Some((argument, unit)) = self.along else { return turn };
        let (levels, extents) = (&argument.levels, &self.extents);
        let row = turn.saturating_mul(unit);
        let mut position = match levels.first().map(|level| (level.get("pos"), level.get("crd"), level.get("end"))) {
            Some((None, None, None)) => row.min(extents.first().copied().unwrap_or(0)),
            // Ends are above their coordinates.
            Some((_, Some(list), _)) => first_at_least(list, row),
            Some((_, None, Some(list))) => first_at_least(list, row.saturating_add(1)),
            _ => return turn,
        };
        for (level, extent) in levels.iter().zip(extents).skip(1) {
            position = match (level.get("pos"), level.arrays.is_empty()) {
                (Some(pos), _) => at(pos, position),
                (None, true) => position.saturating_mul(*extent),
                (None, false) => position,
            };
        }
        position.saturating_add(turn)
    }

    /// The first turn before which so much is done.
    fn turn(&self, work: u64) -> u64 {
        bisect(self.turns, |turn| self.before(turn) < work)
    }
}

/// Before each row of a matrix `A[i, k]`, how many entries the rows of another operand have that its entries lead to, `B[k, ...]`: what
/// a product of both has to do.
fn products(program: &Program, index: IndexId, turns: u64, a: &Argument, arguments: &[Argument]) -> Option<Vec<u64>> {
    let reads = |argument: &Argument, level: usize| -> Vec<IndexId> {
        let Some(DimExpr::Dim(dim)) = argument.tensor.format().map().get(level) else { return Vec::new() };
        let accesses = program.exprs.ids().filter_map(|id| match program.expr(id) {
            Expr::Read(access) => Some(access),
            _ => None,
        });
        let here = accesses.filter(|access| {
            let param = program.params.iter().position(|param| *param == access.tensor);
            param.is_some_and(|param| std::ptr::eq(arguments[param].tensor, argument.tensor))
        });
        here.filter_map(|access| match program.expr(access.subscripts.get(*dim)?.expr) {
            Expr::Index(index) => Some(*index),
            _ => None,
        })
        .collect()
    };
    let [top, inner] = &a.levels[..] else { return None };
    let (pos, crd) = (inner.get("pos")?, inner.get("crd")?);
    let through = reads(a, 1);
    if !top.arrays.is_empty() || !reads(a, 0).contains(&index) {
        return None;
    }
    let of_rows = |b: &&Argument| {
        let leads = reads(b, 0).iter().any(|k| *k != index && through.contains(k));
        leads
            && b.levels.first().is_some_and(|level| level.arrays.is_empty())
            && b.levels.get(1).is_some_and(|l| l.get("pos").is_some())
    };
    let b = arguments.iter().find(of_rows)?;
    let rows = b.levels[1].get("pos")?;
    let mut before = Vec::with_capacity(turns as usize + 1);
    let mut sum = 0u64;
    before.push(0);
    with_indices!(rows, rows => with_indices!(crd, crd => {
        let length = |k: u64| match rows.get(k as usize..k as usize + 2) {
            Some([start, stop]) => stop.to_u64() - start.to_u64(),
            _ => 0,
        };
        for row in 0..turns {
            let entries = crd.get(at(pos, row) as usize..at(pos, row + 1) as usize).unwrap_or_default();
            sum += 1 + entries.iter().map(|k| 1 + length(k.to_u64())).sum::<u64>();
            before.push(sum);
        }
    }));
    Some(before)
}

/// The loop whose pieces a loop goes over one by one, and how long they are.
fn piece_of(program: &Program, index: IndexId) -> Option<(IndexId, u64)> {
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

fn at(array: &IndexArray, position: u64) -> u64 {
    with_indices!(array, x => x.get(position as usize).or(x.last()).map_or(0, |n| n.to_u64()))
}

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
        let entries: Vec<(u64, u64)> = (0..shape[0]).flat_map(|i| (0..lengths(i)).map(move |j| (i, j))).collect();
        let columns = [entries.iter().map(|e| e.0).collect::<Vec<_>>(), entries.iter().map(|e| e.1).collect()];
        let values = vec![1.0; entries.len()].into();
        let entries = Coordinates { shape: shape.to_vec(), columns: columns.map(IndexArray::from).to_vec(), values };
        Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
    }

    /// The first turns of the parts of a loop over `i`.
    fn starts(text: &str, tensors: &[&Tensor], count: usize) -> Vec<u64> {
        let program = Program::parse(text).unwrap();
        let outermost = program.body.iter().find_map(|stmt| match stmt.kind {
            StmtKind::For { index, .. } => Some(index),
            _ => None,
        });
        let index = outermost.unwrap();
        let turns = tensors[0].shape()[0];
        let pieces = cut(&program, &Cut { index, shares: Vec::new() }, turns, &Argument::all(tensors), count);
        assert_eq!(pieces.last().unwrap().turns.end, turns);
        pieces.iter().map(|piece| piece.turns.start).collect()
    }

    /// The first ten rows of a sampled product have most of its samples: they are cut, however large the full operands are.
    #[test]
    fn full_operands_do_not_hide_where_the_work_is() {
        let text = "
def sddmm(S, A, B):
    C = tensor('csr')
    for i, j, k in _:
        C[i,j] += S[i,j] * A[i,k] * B[j,k]
    return C
";
        let s = tensor([100, 100], "csr", |i| if i < 10 { 91 } else { 1 });
        let full = tensor([100, 64], "dense", |_| 64);
        assert_eq!(starts(text, &[&s, &full, &full], 2), [0, 6]);
        let sums = "
def sums(A, B):
    y = tensor('dense')
    for i, k in _:
        y[i] += A[i,k] * B[i,k]
    return y
";
        assert_eq!(starts(sums, &[&full, &full], 2), [0, 50]);
    }
}
