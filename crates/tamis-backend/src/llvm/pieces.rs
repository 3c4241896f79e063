//! Large kernels are compiled in pieces, each a function of its own: code generation takes longer for one function than for its halves, and
//! halves can be compiled at the same time.
//!
//! Pieces are cut between statements of the kernel itself, never inside a loop, so nothing is slower for it. They are called one after the other with
//! the same buffers; variables that a later piece reads are handed on in memory.

use std::cell::Cell;
use std::collections::BTreeSet;
use tamis_ir::kernel::{BufferId, Expr, Kernel, Role, Stmt, VarId};

/// How many statements a piece has, or more: each costs a millisecond or two of its own, as much as thirty statements.
const SIZE: usize = 70;

/// More pieces than this are never made.
const MOST: usize = 2;

/// Bytes between variables that are handed on: the largest is a complex number.
pub(super) const STRIDE: usize = 16;

thread_local! {
    /// Whether what this thread compiles is compiled by it alone.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Compiles without the help of other threads, if so asked: whoever wants one thread wants no others here either.
pub fn single_threaded<T>(alone: bool, work: impl FnOnce() -> T) -> T {
    /// Puts back what was said before.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(alone));
    work()
}

/// Whether other threads may help.
pub(super) fn helped() -> bool {
    !ALONE.get() && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// Some statements of a kernel.
pub(super) struct Piece<'a> {
    pub(super) stmts: &'a [Stmt],
    /// The variables that earlier pieces have declared, by the places where they are handed on.
    pub(super) takes: Vec<(usize, VarId)>,
    /// Those that later pieces need.
    pub(super) gives: Vec<(usize, VarId)>,
}

/// What a statement, or anything in it, speaks of.
#[derive(Default)]
struct Mentions {
    vars: BTreeSet<VarId>,
    tiles: BTreeSet<BufferId>,
    size: usize,
}

fn mentions(kernel: &Kernel, stmt: &Stmt) -> Mentions {
    let mut found = Mentions::default();
    stmt.visit(&mut |stmt| {
        found.size += 1;
        found.vars.extend(declared(stmt));
        if let Stmt::Assign { var, .. } = stmt {
            found.vars.insert(*var);
        }
        let buffers = match stmt {
            Stmt::Store { buffer, .. }
            | Stmt::Grow { buffer, .. }
            | Stmt::Fill { buffer, .. }
            | Stmt::Search { buffer, .. }
            | Stmt::Sort { buffer, .. } => Some(*buffer),
            _ => None,
        };
        let is_tile = |buffer: &BufferId| matches!(kernel.buffer(*buffer).role, Role::Tile(_));
        found.tiles.extend(buffers.filter(is_tile));
        stmt.each_expr(|id| {
            kernel.visit_expr(id, &mut |expr| match expr {
                Expr::Var(var) => _ = found.vars.insert(*var),
                Expr::Load(buffer, _) => found.tiles.extend(Some(*buffer).filter(is_tile)),
                _ => {}
            });
        });
    });
    found
}

/// The variable that a statement declares for those after it.
fn declared(stmt: &Stmt) -> Option<VarId> {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Search { var, .. } | Stmt::Insert { var, .. } | Stmt::Finalize { var, .. } => {
            Some(*var)
        }
        _ => None,
    }
}

/// Cuts a kernel into pieces of at least this many statements: one, if that is all there are, or nothing can be handed on.
pub(super) fn cut(kernel: &Kernel, size: Option<usize>) -> Vec<Piece<'_>> {
    let size = size.unwrap_or(SIZE).max(1);
    let all: Vec<Mentions> = kernel.body.iter().map(|stmt| mentions(kernel, stmt)).collect();
    let total: usize = all.iter().map(|found| found.size).sum();
    let number = (total / size).clamp(1, MOST);
    // Tiles are a function's own.
    let tiles =
        |range: &[Mentions]| -> BTreeSet<BufferId> { range.iter().flat_map(|f| f.tiles.iter().copied()).collect() };
    let possible = |at: &usize| tiles(&all[..*at]).is_disjoint(&tiles(&all[*at..]));
    let before = |at: usize| all[..at].iter().map(|found| found.size).sum::<usize>();
    let mut cuts: Vec<usize> = vec![0];
    for piece in 1..number {
        let wanted = total * piece / number;
        let possible = (cuts[cuts.len() - 1] + 1..all.len()).filter(possible);
        let best = possible.min_by_key(|at| before(*at).abs_diff(wanted));
        cuts.extend(
            best.filter(|at| before(*at) - before(cuts[cuts.len() - 1]) >= size / 2 && total - before(*at) >= size / 2),
        );
    }
    cuts.push(all.len());
    let ranges: Vec<std::ops::Range<usize>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
    let vars = |range: std::ops::Range<usize>| -> BTreeSet<VarId> {
        all[range].iter().flat_map(|found| found.vars.iter().copied()).collect()
    };
    // Parameters that change are no longer what they were given as.
    let params = || kernel.params.iter().copied().filter(|var| kernel.var(*var).mutable);
    let known = |end: usize| -> BTreeSet<VarId> {
        if end == 0 {
            BTreeSet::new()
        } else {
            kernel.body[..end].iter().filter_map(declared).chain(params()).collect()
        }
    };
    let handed: BTreeSet<VarId> = ranges
        .iter()
        .flat_map(|range| known(range.start).intersection(&vars(range.clone())).copied().collect::<Vec<_>>())
        .collect();
    let piece = |range: &std::ops::Range<usize>| {
        let (before, after) = (known(range.start), known(range.end));
        let (here, later) = (vars(range.clone()), vars(range.end..all.len()));
        let of = |wanted: &dyn Fn(&VarId) -> bool| -> Vec<(usize, VarId)> {
            handed.iter().copied().enumerate().filter(|(_, var)| wanted(var)).collect()
        };
        let may_be_new = |var: &VarId| !before.contains(var) || kernel.var(*var).mutable;
        Piece {
            stmts: &kernel.body[range.clone()],
            takes: of(&|var| before.contains(var) && here.contains(var)),
            gives: of(&|var| {
                after.contains(var)
                    && later.contains(var)
                    && may_be_new(var)
                    && (here.contains(var) || !before.contains(var))
            }),
        }
    };
    ranges.iter().map(piece).collect()
}

/// Several objects as one.
pub(super) fn joined(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::with_capacity(8 + objects.iter().map(|object| object.len() + 8).sum::<usize>());
    for object in objects {
        all.extend((object.len() as u64).to_le_bytes());
        all.extend(object);
    }
    all
}

/// The objects in what [`joined`] has made; nothing if it has not.
pub(super) fn parted(mut all: &[u8]) -> Option<Vec<&[u8]>> {
    let mut objects = Vec::new();
    while !all.is_empty() {
        let (len, rest) = all.split_first_chunk::<8>()?;
        let (object, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        objects.push(object);
        all = rest;
    }
    (!objects.is_empty()).then_some(objects)
}
