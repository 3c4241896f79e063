//! Where a loop is cut: into parts of about as much work each, as far as the entries of its operands tell.

use crate::signature::Argument;
use std::ops::Range;
use tamis_compiler::lower::part::{Cut, SHARES};
use tamis_ir::format::DimExpr;
use tamis_ir::program::{Expr, Extent, IndexId, Program, StmtKind};
use tamis_tensor::{Index, IndexArray, with_indices};

/// How many parts there are for each thread: those that take longer than was thought hold up the others less.
pub(crate) const PER_THREAD: usize = 4;

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
            let work = measure.before(end) - measure.before(start);
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
    /// The operand with the most entries whose outermost level the loop goes over, and how many of its rows a turn has.
    along: Option<(&'a Argument<'a>, u64)>,
}

impl<'a> Measure<'a> {
    fn new(program: &Program, index: IndexId, turns: u64, arguments: &'a [Argument<'a>]) -> Measure<'a> {
        let mut along: Option<(&Argument, u64)> = None;
        for id in program.exprs.ids() {
            let Expr::Read(access) = program.expr(id) else { continue };
            let Some(param) = program.params.iter().position(|param| *param == access.tensor) else { continue };
            let argument = &arguments[param];
            let subscript = |dim: usize| access.subscripts.get(dim).map(|s| program.expr(s.expr));
            let unit = match argument.tensor.format().map().first() {
                Some(DimExpr::Dim(dim)) => match subscript(*dim) {
                    Some(Expr::Index(i)) if *i == index => Some(1),
                    Some(Expr::Index(i)) => piece_of(program, *i).filter(|(number, _)| *number == index).map(|(_, n)| n),
                    _ => None,
                },
                Some(DimExpr::Div(dim, by)) => match subscript(*dim) {
                    Some(Expr::Index(i)) => piece_of(program, *i).filter(|piece| *piece == (index, *by)).map(|_| 1),
                    _ => None,
                },
                _ => None,
            };
            let more = along.is_none_or(|(other, _)| argument.tensor.nnz() > other.tensor.nnz());
            if let (Some(unit), true) = (unit, more) {
                along = Some((argument, unit));
            }
        }
        // A dense operand says nothing.
        let along = along.filter(|(argument, _)| argument.levels.iter().any(|level| !level.arrays.is_empty()));
        Measure { turns, along }
    }

    /// What the turns before one have to do: an entry is as much as a turn without any.
    fn before(&self, turn: u64) -> u64 {
        let Some((argument, unit)) = self.along else { return turn };
        let levels = &argument.levels;
        let extents = argument.tensor.format().level_extents(argument.tensor.shape()).unwrap_or_default();
        let row = turn.saturating_mul(unit);
        let mut position = match levels.first().map(|level| (level.get("pos"), level.get("crd"), level.get("end"))) {
            Some((None, None, None)) => row.min(extents.first().copied().unwrap_or(0)),
            // Ends are above their coordinates.
            Some((_, Some(list), _)) => first_at_least(list, row),
            Some((_, None, Some(list))) => first_at_least(list, row.saturating_add(1)),
            _ => return turn,
        };
        for (level, extent) in levels.iter().zip(&extents).skip(1) {
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
        let (mut low, mut high) = (0, self.turns);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.before(middle) < work { low = middle + 1 } else { high = middle }
        }
        low
    }
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
