//! Legality of loop transformations: decides whether loops may be reordered or run in parallel.
//! - A nest can be reordered if only bindings and conditions stand between its loops ([`Chain`]);
//!   those stay inside all loops that enclosed them.
//! - A loop stays inside the loops that its bounds depend on.
//! - Writes to a tensor may be reordered if iterations that write the same element keep their
//!   order: loops whose indices the subscripts determine may move, the others keep their relative
//!   order; or if all writes are updates by one associative and commutative operator.
//! - A written scalar must not be read in the same nest, unless it is declared inside.
//! - Iterations may run in parallel if each writes elements of its own, or updates by one such
//!   operator.

use super::edit::{index_of, path_to};
use super::extents::{indices, lets};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::Value;
use tamis_ir::algebra::Op;
use tamis_ir::format::Format;
use tamis_ir::program::{
    Attributes, Block, Expr, ExprId, Extent, IndexId, Program, ScalarKind, Stmt, StmtId, StmtKind, Storage, TensorId,
    Update, VarId, visit_block,
};

/// A statement between a loop and an inner loop of its nest.
#[derive(Clone)]
pub(super) enum Link {
    Loop { id: StmtId, index: IndexId, extent: Extent, attributes: Attributes },
    Let(Stmt),
    If { id: StmtId, cond: ExprId },
}

/// A loop nest: its loops, the statements between them, and the innermost body.
pub(super) struct Chain {
    pub(super) links: Vec<Link>,
    pub(super) body: Block,
}

/// The reason why a transformation is illegal: the conflicting statement and a description.
pub(super) struct Conflict {
    pub(super) stmt: Box<Stmt>,
    pub(super) why: String,
    pub(super) help: String,
}

impl Chain {
    /// The chain from a loop to the loop over `innermost`.
    pub(super) fn of(outer: &Stmt, innermost: IndexId) -> Result<Chain, Conflict> {
        let mut links = Vec::new();
        let mut stmt = outer.clone();
        loop {
            let block = match stmt.kind {
                StmtKind::For { index, extent, attributes, body } => {
                    links.push(Link::Loop { id: stmt.id, index, extent, attributes });
                    if index == innermost {
                        return Ok(Chain { links, body });
                    }
                    body
                }
                StmtKind::If { cond, then, .. } => {
                    links.push(Link::If { id: stmt.id, cond });
                    then
                }
                _ => Block::new(),
            };
            let Some(next) = next(block, innermost, &mut links)? else {
                let why = "does not hold the inner loop".to_string();
                return Err(Conflict { stmt: Box::new(outer.clone()), why, help: "name loops of one nest".into() });
            };
            stmt = next;
        }
    }

    pub(super) fn loops(&self) -> Vec<IndexId> {
        let index = |link: &Link| match link {
            Link::Loop { index, .. } => Some(*index),
            _ => None,
        };
        self.links.iter().filter_map(index).collect()
    }
}

/// The statement that contains the next loop: the last of its block, after bindings only.
fn next(block: Block, innermost: IndexId, links: &mut Vec<Link>) -> Result<Option<Stmt>, Conflict> {
    let leads = |stmt: &Stmt| {
        let mut found = false;
        visit_block(std::slice::from_ref(stmt), &mut |s| {
            found |= matches!(&s.kind, StmtKind::For { index, .. } if *index == innermost);
        });
        found
    };
    let mut way = None;
    for stmt in block {
        let between = |why: &str| Conflict {
            stmt: Box::new(stmt.clone()),
            why: why.to_string(),
            help: "move it out of the loops in the program, or name adjacent loops".to_string(),
        };
        match &stmt.kind {
            _ if way.is_some() => return Err(between("follows the inner loop")),
            _ if leads(&stmt) => match &stmt.kind {
                StmtKind::If { otherwise, .. } if !otherwise.is_empty() => {
                    return Err(between("has an `else`, and is between the loops"));
                }
                _ => way = Some(stmt),
            },
            StmtKind::Let { .. } => links.push(Link::Let(stmt)),
            StmtKind::Declare(_) => return Err(between("declares a temporary between the loops")),
            _ => return Err(between("is between the loops")),
        }
    }
    Ok(way)
}

/// The writes of a statement to a tensor that is declared outside it.
struct WriteSet {
    tensor: TensorId,
    stmts: Vec<Stmt>,
    /// The first statement that reads it.
    read: Option<Stmt>,
    /// The common operator of all updates, if it is associative and commutative.
    operator: Option<Op>,
    /// Loop indices whose distinct values write distinct elements, with the dimensions that prove
    /// it.
    own: FxHashMap<IndexId, Vec<usize>>,
}

/// The reduction operator of an update; subtraction counts as addition.
fn operator(update: &Option<Update>) -> Option<Op> {
    let Update { op, extra } = update.as_ref()?;
    let info = op.info();
    match op {
        Op::Sub => Some(Op::Add),
        _ => (info.commutative && info.associative && extra.is_empty()).then_some(*op),
    }
}

fn effects(program: &Program, stmt: &Stmt) -> Vec<WriteSet> {
    let mut private: FxHashSet<TensorId> = FxHashSet::default();
    let mut found: Vec<WriteSet> = Vec::new();
    let all = std::slice::from_ref(stmt);
    visit_block(all, &mut |stmt| {
        if let StmtKind::Declare(tensor) = &stmt.kind {
            private.insert(*tensor);
        }
    });
    visit_block(all, &mut |stmt| {
        let StmtKind::Assign { target, update, .. } = &stmt.kind else { return };
        if private.contains(&target.tensor) {
            return;
        }
        let operator = operator(update);
        match found.iter_mut().find(|written| written.tensor == target.tensor) {
            Some(written) => {
                written.stmts.push(stmt.clone());
                written.operator = written.operator.filter(|op| operator == Some(*op));
            }
            None => found.push(WriteSet {
                tensor: target.tensor,
                stmts: vec![stmt.clone()],
                read: None,
                operator,
                own: FxHashMap::default(),
            }),
        }
    });
    visit_block(all, &mut |stmt| {
        program.visit_exprs(stmt, &mut |id| {
            if let Expr::Read(access) = program.expr(id)
                && let Some(written) = found.iter_mut().find(|written| written.tensor == access.tensor)
            {
                written.read.get_or_insert_with(|| stmt.clone());
            }
        });
    });
    let known = LoopFacts { program, lets: lets(program), windows: windows(program) };
    for written in &mut found {
        written.own = known.own(&common(written));
    }
    found
}

/// True if an assignment is the only one to its tensor and writes each element at most once per
/// declaration.
pub(super) fn writes_each_once(program: &Program, stmt: &Stmt) -> bool {
    let StmtKind::Assign { target, .. } = &stmt.kind else { return false };
    let mut writers = 0;
    program.visit(&mut |other| {
        writers += usize::from(matches!(&other.kind, StmtKind::Assign { target: t, .. } if t.tensor == target.tensor));
    });
    // The loops that enclose the assignment, and the number of them that enclose the declaration,
    // too.
    let mut path = Vec::new();
    path_to(&program.body, &|other| other.id == stmt.id && other.kind == stmt.kind, &mut path);
    let mut declaration = Vec::new();
    path_to(&program.body, &|other| other.kind == StmtKind::Declare(target.tensor), &mut declaration);
    let loops = |path: &[&Stmt]| -> Vec<IndexId> { path.iter().filter_map(|stmt| index_of(stmt)).collect() };
    let shared = loops(&declaration).len();
    let known = LoopFacts { program, lets: lets(program), windows: windows(program) };
    let own = known.own(&target.subscripts.iter().map(|s| s.expr).enumerate().collect::<Vec<_>>());
    let plain = target.subscripts.iter().all(|s| !s.permissive);
    writers == 1 && plain && loops(&path).iter().skip(shared).all(|index| own.contains_key(index))
}

/// Subscripts common to all writes, with their dimensions.
fn common(written: &WriteSet) -> Vec<(usize, ExprId)> {
    let of = |stmt: &Stmt| -> Vec<(usize, ExprId)> {
        match &stmt.kind {
            StmtKind::Assign { target, .. } => target.subscripts.iter().map(|s| s.expr).enumerate().collect(),
            _ => Vec::new(),
        }
    };
    let mut common = written.stmts.first().map(of).unwrap_or_default();
    for stmt in &written.stmts {
        let others = of(stmt);
        common.retain(|subscript| others.contains(subscript));
    }
    common
}

/// Facts about a program's loops and bound names.
struct LoopFacts<'a> {
    program: &'a Program,
    lets: FxHashMap<VarId, ExprId>,
    /// For loops over a tile of a range, the indices of the loops that select the tile.
    windows: FxHashMap<IndexId, Vec<IndexId>>,
}

impl LoopFacts<'_> {
    /// The loop indices that subscripts determine.
    fn own(&self, subscripts: &[(usize, ExprId)]) -> FxHashMap<IndexId, Vec<usize>> {
        let mut own: FxHashMap<IndexId, Vec<usize>> = FxHashMap::default();
        // `f // m` and `f % m` together determine `f`.
        let (mut quotients, mut remainders) = (Vec::new(), Vec::new());
        for (dim, id) in subscripts {
            match self.plain(*id) {
                Expr::Index(index) => {
                    own.entry(*index).or_default().push(*dim);
                }
                Expr::Call(Op::FloorDiv, operands) => quotients.push((*dim, operands.clone())),
                Expr::Call(Op::Mod, operands) => remainders.push((*dim, operands.clone())),
                _ => {}
            }
        }
        for (dim, operands) in &quotients {
            if let Some((other, _)) = remainders.iter().find(|(_, others)| others == operands)
                && let [whole, divisor] = operands[..]
                && let Expr::Index(index) = self.program.expr(whole)
                && indices(self.program, &self.lets, divisor).is_empty()
            {
                own.entry(*index).or_default().extend([*dim, *other]);
            }
        }
        let mut open: Vec<IndexId> = own.keys().copied().collect();
        while let Some(index) = open.pop() {
            let dims = own.get(&index).cloned().unwrap_or_default();
            for outer in self.windows.get(&index).into_iter().flatten() {
                if !own.contains_key(outer) {
                    own.insert(*outer, dims.clone());
                    open.push(*outer);
                }
            }
        }
        own
    }

    /// The definition of a bound name, without an added constant.
    fn plain(&self, id: ExprId) -> &Expr {
        let mut expr = self.program.expr(id);
        for _ in 0..100 {
            expr = match expr {
                Expr::Var(var) => match self.lets.get(var) {
                    Some(value) => self.program.expr(*value),
                    None => return expr,
                },
                Expr::Call(Op::Add, operands) => {
                    let moves = |e: &ExprId| !indices(self.program, &self.lets, *e).is_empty() || self.reads(*e);
                    match operands.iter().filter(|e| moves(e)).collect::<Vec<_>>()[..] {
                        [one] => self.program.expr(*one),
                        _ => return expr,
                    }
                }
                _ => return expr,
            };
        }
        expr
    }

    fn reads(&self, id: ExprId) -> bool {
        !super::extents::reads(self.program, &self.lets, id).is_empty()
    }
}

/// Loops over tiles: `range(s + a * n, min(s + a * n + n, e))` has disjoint values for each `a`,
/// and also for the indices that select an enclosing tile with bounds `s` and `e`.
fn windows(program: &Program) -> FxHashMap<IndexId, Vec<IndexId>> {
    let mut found = FxHashMap::default();
    let lets = lets(program);
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, extent: Extent::Range(start, stop), .. } = &stmt.kind
            && let Some(outer) = window(program, &lets, *start, Some(*stop))
        {
            found.insert(*index, outer);
        }
    });
    found
}

fn window(
    program: &Program,
    lets: &FxHashMap<VarId, ExprId>,
    start: ExprId,
    stop: Option<ExprId>,
) -> Option<Vec<IndexId>> {
    let times = |id: ExprId| match program.expr(id) {
        Expr::Call(Op::Mul, operands) => match (program.expr(operands[0]), operands.get(1).map(|b| program.expr(*b))) {
            (Expr::Index(index), Some(Expr::Literal(Value::I64(n)))) if *n > 0 => Some((*index, *n)),
            _ => None,
        },
        Expr::Index(index) => Some((*index, 1)),
        _ => None,
    };
    let (base, (outer, length)) = match program.expr(start) {
        Expr::Call(Op::Add, operands) => (operands.first().copied(), times(*operands.get(1)?)?),
        _ => (None, times(start)?),
    };
    let ends = |id: &ExprId| {
        matches!(program.expr(*id), Expr::Call(Op::Add, operands) if operands[..].first() == Some(&start)
            && operands.get(1).is_some_and(|n| *program.expr(*n) == Expr::Literal(Value::I64(length))))
    };
    let limit = match program.expr(stop?) {
        Expr::Call(Op::Min, operands) if operands.iter().any(ends) => {
            operands.iter().find(|operand| !ends(operand)).copied()
        }
        _ if ends(&stop?) => None,
        _ => return None,
    };
    let mut found = vec![outer];
    if let Some(base) = base
        && !indices(program, lets, base).is_empty()
    {
        found.extend(window(program, lets, base, limit)?);
    }
    Some(found)
}

fn is_plain_scalar(program: &Program, tensor: TensorId) -> bool {
    let declaration = program.tensor(tensor).declaration.as_ref();
    declaration.is_some_and(|d| d.storage == Storage::Scalar(ScalarKind::Plain))
}

fn read_and_written(program: &Program, written: &WriteSet, read: &Stmt) -> Conflict {
    let name = &program.tensor(written.tensor).name;
    let why = format!("reads `{name}`, which the same loops modify");
    let help = if is_plain_scalar(program, written.tensor) {
        format!("declare `{name}` inside the loops if each iteration has its own, or leave them as they are")
    } else {
        "keep the loops unchanged".to_string()
    };
    Conflict { stmt: Box::new(read.clone()), why, help }
}

/// The conflict of a write that depends on the iteration order.
fn ordered_write(written: &WriteSet) -> Stmt {
    let free = |stmt: &&Stmt| match &stmt.kind {
        StmtKind::Assign { update, .. } => operator(update).is_none(),
        _ => false,
    };
    // The conflicting write; otherwise two different operators conflict.
    let stmt = written.stmts.iter().find(free).or(written.stmts.last());
    stmt.cloned().unwrap_or(Stmt { id: StmtId(0), kind: StmtKind::Declare(written.tensor) })
}

fn what_it_does(program: &Program, written: &WriteSet, stmt: &Stmt) -> String {
    let name = &program.tensor(written.tensor).name;
    match &stmt.kind {
        StmtKind::Assign { update: None, .. } => format!("keeps the last value of `{name}`"),
        StmtKind::Assign { update: Some(update), .. } if operator(&Some(update.clone())).is_none() => {
            format!("updates `{name}` by `{}`, whose order matters", update.op.info().name)
        }
        _ => format!("updates `{name}` by a different operator than other statements"),
    }
}

/// Checks that the loops of a nest may be reordered.
pub(super) fn reorder(program: &Program, nest: &Stmt, old: &[IndexId], new: &[IndexId]) -> Result<(), Conflict> {
    for written in effects(program, nest) {
        if let Some(read) = &written.read {
            return Err(read_and_written(program, &written, read));
        }
        let rest = |order: &[IndexId]| -> Vec<IndexId> {
            order.iter().copied().filter(|index| !written.own.contains_key(index)).collect()
        };
        if written.operator.is_none() && rest(old) != rest(new) {
            let stmt = ordered_write(&written);
            let why = what_it_does(program, &written, &stmt);
            let help = "update by one operator that is associative and commutative, such as `+=` or `max=`; or keep the order of the loops that the result is not subscripted by";
            return Err(Conflict { stmt: Box::new(stmt), why, help: help.to_string() });
        }
    }
    Ok(())
}

/// Checks that the iterations of a loop may be partitioned among threads; otherwise the reason why
/// not.
pub(crate) fn parts(program: &Program, nest: &Stmt, index: IndexId, formats: &[Option<Format>]) -> Result<(), String> {
    at_once(program, nest, index, true, formats, true).map_err(|conflict| format!("a statement {}", conflict.why))
}

/// Checks that the iterations of a loop may run in parallel; with `reductions`, they may update
/// shared elements by one operator.
pub(super) fn at_once(
    program: &Program,
    nest: &Stmt,
    index: IndexId,
    reductions: bool,
    formats: &[Option<Format>],
    pieces: bool,
) -> Result<(), Conflict> {
    let loop_name = &program.indices[index.index()];
    for written in effects(program, nest) {
        if let Some(read) = &written.read {
            return Err(read_and_written(program, &written, read));
        }
        let name = &program.tensor(written.tensor).name;
        let outermost = formats.get(written.tensor.index()).and_then(|format| format.as_ref()).and_then(|format| {
            let order = format.dim_order()?;
            // Elements of a dense tensor have fixed positions; other tensors are assembled from
            // chunks along their outermost level.
            (pieces && !format.is_all_dense()).then(|| order.first().copied())?
        });
        let own = written.own.get(&index).is_some_and(|dims| outermost.is_none_or(|first| dims.contains(&first)));
        if own || (reductions && written.operator.is_some()) {
            continue;
        }
        let stmt = ordered_write(&written);
        let (why, help) = match (written.own.get(&index), written.operator) {
            (Some(_), _) => (
                format!("writes non-contiguous ranges of `{name}`: `{loop_name}` is not its outermost level"),
                format!("parallelise another loop, or store `{name}` with `{loop_name}` outermost"),
            ),
            (None, Some(_)) => (
                format!("updates elements of `{name}` that other iterations update, too"),
                "remove `NoRaces`: reductions are privatised and combined".to_string(),
            ),
            (None, None) => (
                format!("{}, and other iterations write it, too", what_it_does(program, &written, &stmt)),
                "parallelise a loop whose index subscripts the result, or update by `+=`, `max=` or the like"
                    .to_string(),
            ),
        };
        return Err(Conflict { stmt: Box::new(stmt), why, help });
    }
    Ok(())
}
