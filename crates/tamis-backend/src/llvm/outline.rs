//! Function outlining: a large kernel is split into several functions, which are compiled in
//! parallel. Code generation is superlinear, so the functions also take less time than the whole.
//!
//! Functions are split between top-level statements, never inside a loop, so run time does not
//! change. They are called in sequence with the same buffers. Variables that are live across a
//! split are passed in memory. The analysis is linear in the size of the kernel.

use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::BTreeSet;
use tamis_ir::kernel::{BufferId, Expr, Kernel, Role, Stmt, VarId, VectorExpr};

/// Minimum statements of an outlined function: each costs one or two milliseconds by itself, as
/// much as thirty statements.
const MIN_STATEMENTS: usize = 70;

/// Number of functions of a kernel that one function could hold, too: one for each of two threads.
const HALVES: usize = 2;

/// Statements beyond which a kernel is split into more functions than threads: the time of code
/// generation for a function of this size is still about linear.
const MAX_STATEMENTS: usize = 500;

/// The size of a slot of the memory of live variables: the largest value is a complex number. A
/// vector takes a slot for each lane.
pub(super) const LIVE_VAR_BYTES: usize = 16;

thread_local! {
    /// True if this thread compiles without helper threads.
    static SINGLE_THREADED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without helper threads for compilation if `enabled`: a user of one thread wants no
/// others here either.
///
/// ```
/// use tamis_backend::llvm::{CodegenOptions, compile, single_threaded};
/// use tamis_ir::kernel::Builder;
/// let options = CodegenOptions::host()?;
/// single_threaded(true, || compile(&Builder::new("f").finish(), &options))?;
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
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
    /// The buffers that its statements use, in ascending order.
    pub(super) buffers: Vec<BufferId>,
}

/// The variables and buffers that a statement uses, including nested ones.
#[derive(Default)]
struct StmtUses {
    vars: BTreeSet<VarId>,
    buffers: BTreeSet<BufferId>,
    size: usize,
}

fn uses_of(kernel: &Kernel, stmt: &Stmt) -> StmtUses {
    let mut found = StmtUses::default();
    stmt.visit(&mut |stmt| {
        found.size += 1;
        found.vars.extend(declared(stmt));
        match stmt {
            Stmt::Assign { var, .. } => _ = found.vars.insert(*var),
            Stmt::Store { buffer, .. }
            | Stmt::MaskedStore { buffer, .. }
            | Stmt::Update { buffer, .. }
            | Stmt::Prefetch { buffer, .. }
            | Stmt::Grow { buffer, .. }
            | Stmt::Fill { buffer, .. }
            | Stmt::Search { buffer, .. } => _ = found.buffers.insert(*buffer),
            Stmt::Sort { buffer, flags, .. } => found.buffers.extend([Some(*buffer), *flags].into_iter().flatten()),
            Stmt::Gemm(gemm) => found.buffers.extend(gemm.views().map(|view| view.buffer)),
            Stmt::Reset { workspace, .. } | Stmt::Insert { workspace, .. } | Stmt::Finalize { workspace, .. } => {
                found.buffers.extend(workspace.buffers());
            }
            Stmt::Let { .. }
            | Stmt::For { .. }
            | Stmt::While { .. }
            | Stmt::If { .. }
            | Stmt::Labelled { .. }
            | Stmt::Break(_)
            | Stmt::Barrier
            | Stmt::Require { .. } => {}
        }
        stmt.each_expr(|id| {
            kernel.visit_expr(id, &mut |expr| match expr {
                Expr::Var(var) => _ = found.vars.insert(*var),
                Expr::Load(buffer, _) | Expr::Vector(VectorExpr::Masked { buffer, .. }) => {
                    _ = found.buffers.insert(*buffer);
                }
                Expr::Vector(VectorExpr::Ramp { .. } | VectorExpr::Splat { .. } | VectorExpr::Reduce { .. })
                | Expr::Const(_)
                | Expr::Call(..) => {}
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
    let most = size.map_or(MAX_STATEMENTS, |size| size.max(1));
    let size = size.unwrap_or(MIN_STATEMENTS).max(1);
    let all: Vec<StmtUses> = kernel.body.iter().map(|stmt| uses_of(kernel, stmt)).collect();
    let cuts = cuts(kernel, &all, size, most);
    let ranges: Vec<std::ops::Range<usize>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
    // The functions that use each variable, in order, and the first one that defines it. Mutable
    // parameters may have other values than the arguments, so the first function defines them.
    let mut used_in: FxHashMap<VarId, Vec<usize>> = FxHashMap::default();
    let mut defined_in: FxHashMap<VarId, usize> =
        kernel.params.iter().filter(|var| kernel.var(**var).mutable).map(|var| (*var, 0)).collect();
    for (number, range) in ranges.iter().enumerate() {
        for (stmt, uses) in kernel.body[range.clone()].iter().zip(&all[range.clone()]) {
            if let Some(var) = declared(stmt) {
                defined_in.entry(var).or_insert(number);
            }
            for var in &uses.vars {
                let list = used_in.entry(*var).or_default();
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
    }
    let live: BTreeSet<VarId> = defined_in
        .iter()
        .filter(|(var, first)| used_in.get(var).and_then(|list| list.last()).is_some_and(|last| last > first))
        .map(|(var, _)| *var)
        .collect();
    let mut functions: Vec<OutlinedFunction<'_>> = ranges
        .iter()
        .map(|range| {
            let buffers: BTreeSet<BufferId> = all[range.clone()].iter().flat_map(|uses| uses.buffers.clone()).collect();
            OutlinedFunction {
                stmts: &kernel.body[range.clone()],
                live_in: Vec::new(),
                live_out: Vec::new(),
                buffers: buffers.into_iter().collect(),
            }
        })
        .collect();
    let mut next = 0;
    for var in live {
        let slot = next;
        next += usize::from(kernel.var(var).lanes);
        let (Some(users), Some(first)) = (used_in.get(&var), defined_in.get(&var).copied()) else { continue };
        let last = users.last().copied().unwrap_or(first);
        for user in users.iter().copied().filter(|user| *user > first) {
            functions[user].live_in.push((slot, var));
        }
        // An immutable variable has one value; a mutable one may change wherever it is used.
        functions[first].live_out.push((slot, var));
        if kernel.var(var).mutable {
            for user in users.iter().copied().filter(|user| (first + 1..last).contains(user)) {
                functions[user].live_out.push((slot, var));
            }
        }
    }
    functions
}

/// Where functions begin and end, as statement numbers.
fn cuts(kernel: &Kernel, all: &[StmtUses], size: usize, most: usize) -> Vec<usize> {
    // The number of statements before each top-level statement.
    let mut before = vec![0];
    for uses in all {
        before.push(before[before.len() - 1] + uses.size);
    }
    let total = before[all.len()];
    let count = (total / size).clamp(1, HALVES.max(total / most.max(size)));
    // Tiles are local to a function.
    let mut tiles: FxHashMap<BufferId, (usize, usize)> = FxHashMap::default();
    for (at, uses) in all.iter().enumerate() {
        for buffer in uses.buffers.iter().filter(|buffer| matches!(kernel.buffer(**buffer).role, Role::Tile(_))) {
            tiles.entry(*buffer).or_insert((at, at)).1 = at;
        }
    }
    let mut open = vec![0i64; all.len() + 1];
    for (first, last) in tiles.into_values() {
        open[first + 1] += 1;
        open[last + 1] -= 1;
    }
    let mut around = 0;
    let mut cuts: Vec<usize> = vec![0];
    let mut candidates: Vec<usize> = Vec::new();
    for (at, change) in open.iter().enumerate().take(all.len()) {
        around += change;
        if at > 0 && around == 0 {
            candidates.push(at);
        }
    }
    for k in 1..count {
        let wanted = total * k / count;
        let last = cuts[cuts.len() - 1];
        // Candidates are in order, as are the statements before them.
        let at = candidates.partition_point(|at| before[*at] < wanted);
        let nearby = candidates[at.saturating_sub(1)..candidates.len().min(at + 1)].iter().copied();
        let best = nearby.filter(|at| *at > last).min_by_key(|at| before[*at].abs_diff(wanted));
        cuts.extend(best.filter(|at| before[*at] - before[last] >= size / 2 && total - before[*at] >= size / 2));
    }
    cuts.push(all.len());
    cuts
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
