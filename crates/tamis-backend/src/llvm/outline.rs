//! Function outlining: a large kernel is split into several functions, which are compiled in
//! parallel. Code generation is superlinear, so two halves also take less time than the whole.
//!
//! Functions are split between top-level statements, never inside a loop, so run time does not
//! change. They are called in sequence with the same buffers. Variables that are live across a
//! split are passed in memory.

use std::cell::Cell;
use std::collections::BTreeSet;
use tamis_ir::kernel::{BufferId, Expr, Kernel, Role, Stmt, VarId};

/// Minimum statements of an outlined function: each costs one or two milliseconds by itself, as
/// much as thirty statements.
const MIN_STATEMENTS: usize = 70;

/// Maximum number of outlined functions.
const MAX_FUNCTIONS: usize = 2;

/// Stride of the live variables in memory: the size of the largest, a complex number.
pub(super) const LIVE_VAR_BYTES: usize = 16;

thread_local! {
    /// True if this thread compiles without helper threads.
    static SINGLE_THREADED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without helper threads for compilation if `enabled`: a user of one thread wants no
/// others here either.
pub fn single_threaded<T>(enabled: bool, work: impl FnOnce() -> T) -> T {
    /// Restores the previous setting.
    struct PreviousSetting(bool);
    impl Drop for PreviousSetting {
        fn drop(&mut self) {
            SINGLE_THREADED.set(self.0);
        }
    }
    let _previous = PreviousSetting(SINGLE_THREADED.replace(enabled));
    work()
}

/// True if other threads may compile.
pub(super) fn uses_threads() -> bool {
    !SINGLE_THREADED.get() && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// A range of top-level statements that becomes a function.
pub(super) struct OutlinedFunction<'a> {
    pub(super) stmts: &'a [Stmt],
    /// Variables that earlier functions define, with their slots in memory.
    pub(super) live_in: Vec<(usize, VarId)>,
    /// Variables that later functions need.
    pub(super) live_out: Vec<(usize, VarId)>,
}

/// The variables and tiles that a statement uses, including nested ones.
#[derive(Default)]
struct StmtUses {
    vars: BTreeSet<VarId>,
    tiles: BTreeSet<BufferId>,
    size: usize,
}

fn uses_of(kernel: &Kernel, stmt: &Stmt) -> StmtUses {
    let mut found = StmtUses::default();
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

/// The variable that a statement declares for the statements after it.
fn declared(stmt: &Stmt) -> Option<VarId> {
    match stmt {
        Stmt::Let { var, .. } | Stmt::Search { var, .. } | Stmt::Insert { var, .. } | Stmt::Finalize { var, .. } => {
            Some(*var)
        }
        _ => None,
    }
}

/// Splits a kernel into functions of at least this many statements. The result is one function if
/// the kernel is small, or no split is possible.
pub(super) fn outline(kernel: &Kernel, size: Option<usize>) -> Vec<OutlinedFunction<'_>> {
    let size = size.unwrap_or(MIN_STATEMENTS).max(1);
    let all: Vec<StmtUses> = kernel.body.iter().map(|stmt| uses_of(kernel, stmt)).collect();
    let total: usize = all.iter().map(|found| found.size).sum();
    let count = (total / size).clamp(1, MAX_FUNCTIONS);
    // Tiles are local to a function.
    let tiles =
        |range: &[StmtUses]| -> BTreeSet<BufferId> { range.iter().flat_map(|f| f.tiles.iter().copied()).collect() };
    let possible = |at: &usize| tiles(&all[..*at]).is_disjoint(&tiles(&all[*at..]));
    let before = |at: usize| all[..at].iter().map(|found| found.size).sum::<usize>();
    let mut cuts: Vec<usize> = vec![0];
    for k in 1..count {
        let wanted = total * k / count;
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
    // Mutable parameters may have other values than the arguments.
    let params = || kernel.params.iter().copied().filter(|var| kernel.var(*var).mutable);
    let defined = |end: usize| -> BTreeSet<VarId> {
        if end == 0 {
            BTreeSet::new()
        } else {
            kernel.body[..end].iter().filter_map(declared).chain(params()).collect()
        }
    };
    let live: BTreeSet<VarId> = ranges
        .iter()
        .flat_map(|range| defined(range.start).intersection(&vars(range.clone())).copied().collect::<Vec<_>>())
        .collect();
    let function = |range: &std::ops::Range<usize>| {
        let (before, after) = (defined(range.start), defined(range.end));
        let (here, later) = (vars(range.clone()), vars(range.end..all.len()));
        let of = |wanted: &dyn Fn(&VarId) -> bool| -> Vec<(usize, VarId)> {
            live.iter().copied().enumerate().filter(|(_, var)| wanted(var)).collect()
        };
        let may_be_new = |var: &VarId| !before.contains(var) || kernel.var(*var).mutable;
        OutlinedFunction {
            stmts: &kernel.body[range.clone()],
            live_in: of(&|var| before.contains(var) && here.contains(var)),
            live_out: of(&|var| {
                after.contains(var)
                    && later.contains(var)
                    && may_be_new(var)
                    && (here.contains(var) || !before.contains(var))
            }),
        }
    };
    ranges.iter().map(function).collect()
}

/// Concatenates object files, with length prefixes.
pub(super) fn join_objects(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::with_capacity(8 + objects.iter().map(|object| object.len() + 8).sum::<usize>());
    for object in objects {
        all.extend((object.len() as u64).to_le_bytes());
        all.extend(object);
    }
    all
}

/// Splits the result of [`join_objects`]; `None` if it is truncated.
pub(super) fn split_objects(mut all: &[u8]) -> Option<Vec<&[u8]>> {
    let mut objects = Vec::new();
    while !all.is_empty() {
        let (len, rest) = all.split_first_chunk::<8>()?;
        let (object, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        objects.push(object);
        all = rest;
    }
    (!objects.is_empty()).then_some(objects)
}
