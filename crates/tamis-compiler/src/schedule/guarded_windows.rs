//! Guarded windows: bounds checks in conditions become permissive reads.
//!
//! In: a program with statements such as
//!
//! ```text
//! if i + k - 1 >= 0 and i + k - 1 < A.shape[0] and k != 1:
//!     O[i,j] max= A[i+k-1, j+l] * F[k,l]
//! ```
//!
//! Out: the same statements without those comparisons, under the condition that the read is not
//! missing:
//!
//! ```text
//! if coalesce(select(A[~(i+k-1), j+l] != 0, True, True), False) and k != 1:
//!     O[i,j] max= coalesce(A[~(i+k-1), j+l], 0) * F[k,l]
//! ```
//!
//! A comparison of several indices is a mask of the innermost loop alone, so the loops around it
//! would visit every window. A permissive read is padding: its windows are found by what is stored,
//! and the new condition is a constant in bounds and out of bounds. A comparison disappears only if
//! it is exactly a bound of the dimension. One that implies a bound, such as `i + k < 10` or
//! `3 <= i + k`, stays beside the permissive read, and so do the comparisons around a read that is
//! permissive in another dimension. Both bounds must be there. A number is compared with the size of
//! the dimension, which the kernel is then specialised for ([`sizes_in_guards`]). Other comparisons
//! stay, and nothing changes if another subscript needs the check.

use tamis_ir::algebra::Op;
use tamis_ir::program::{
    Access, Block, Checked, Comparison, Expr, ExprId, Extent, IndexId, Mask, Masks, Program, Stmt, StmtId, StmtKind,
    TensorId, visit_block,
};
use tamis_ir::{DType, Value};

/// A program without bounds checks around windows over tensors of several dimensions, or none if
/// nothing changes.
///
/// ```
/// use tamis_compiler::schedule::relax_guards;
/// use tamis_ir::{Format, Program, interp};
/// use tamis_tensor::Tensor;
/// let program = Program::parse("
/// def f(A):
///     O = tensor('dense', shape=(4, 4))
///     for i in range(4):
///         for j in range(4):
///             for k in range(3):
///                 if j != 2 and i + k >= 1 and i + k - 1 < A.shape[0]:
///                     O[i,j] += A[i+k-1,j] * 2
///     return O
/// ")?;
/// let a = Tensor::from_dense(&[4, 4], vec![1.0; 16].into(), &Format::csr(), 0.0.into())?;
/// let checked = program.check(&[interp::param_type(&a)])?;
/// let relaxed = relax_guards(&program, &checked).unwrap().to_string();
/// assert!(relaxed.contains("if j != 2 and coalesce(select(A[~(i + k - 1), j] != 0, "), "{relaxed}");
/// assert!(relaxed.contains("O[i, j] += coalesce(A[~(i + k - 1), j], 0) * 2"), "{relaxed}");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn relax_guards(program: &Program, checked: &Checked) -> Option<Program> {
    let mut guards: Vec<Guard> = Vec::new();
    program.visit(&mut |stmt| guards.extend(Guard::of(program, stmt)));
    if guards.is_empty() {
        return None;
    }
    let mut relaxed = program.clone();
    for guard in &mut guards {
        guard.state_bounds(&mut relaxed, checked);
    }
    let mut masks = Masks::new(&relaxed);
    for guard in &mut guards {
        guard.match_bounds(&mut masks);
    }
    guards.retain(|guard| guard.is_relaxable(program, checked));
    if guards.is_empty() {
        return None;
    }
    let mut body = std::mem::take(&mut relaxed.body);
    rewrite(&mut relaxed, checked, &mut body, &guards);
    relaxed.body = body;
    relaxed.compact();
    relaxed.verify().ok()?;
    Some(relaxed)
}

/// For each subscript of several indices under a condition, the size of its dimension if a number in
/// the condition is that size, and [`u64::MAX`] if one is below it: kernels are specialised for
/// that.
pub(crate) fn sizes_in_guards(program: &Program, checked: &Checked) -> Vec<Option<u64>> {
    let mut guards: Vec<Guard> = Vec::new();
    program.visit(&mut |stmt| guards.extend(Guard::of(program, stmt)));
    if guards.is_empty() {
        return Vec::new();
    }
    let mut stated = program.clone();
    guards.iter_mut().for_each(|guard| guard.state_bounds(&mut stated, checked));
    let mut masks = Masks::new(&stated);
    guards.iter_mut().for_each(|guard| guard.match_bounds(&mut masks));
    let size = |window: &GuardedWindow| match window.checked_by[1]? {
        Check { by_number: false, .. } => None,
        Check { exact: false, .. } => Some(u64::MAX),
        Check { .. } => checked.extents.shapes[window.tensor.index()].get(window.dim).copied(),
    };
    guards.iter().flat_map(|guard| &guard.windows).map(size).collect()
}

/// Statements under a condition that may hold bounds checks.
struct Guard {
    /// The conditional statement.
    stmt: StmtId,
    /// The conjuncts of the condition, and of the conditions that are all that it guards.
    conjuncts: Vec<ExprId>,
    /// The expressions and the targets of the guarded statements.
    roots: Vec<ExprId>,
    targets: Vec<Access>,
    /// The subscripts of several indices in them and in the conjuncts.
    windows: Vec<GuardedWindow>,
}

/// A subscript of several indices, and its bounds as expressions.
struct GuardedWindow {
    read: ExprId,
    tensor: TensorId,
    dim: usize,
    subscript: ExprId,
    /// From below, from above, and from above as a number.
    bounds: Option<[ExprId; 3]>,
    /// The conjuncts that are or imply its bounds.
    checked_by: [Option<Check>; 2],
}

/// A conjunct that implies a bound.
#[derive(Clone, Copy)]
struct Check {
    conjunct: usize,
    /// It is the bound.
    exact: bool,
    /// It is compared with the bound as a number.
    by_number: bool,
}

impl GuardedWindow {
    fn is_guarded(&self) -> bool {
        self.checked_by.iter().all(Option::is_some)
    }
}

impl Guard {
    fn of(program: &Program, stmt: &Stmt) -> Option<Guard> {
        let mut found = Vec::new();
        let body = guarded_body(program, stmt, &mut found)?;
        let (mut roots, mut targets) = (Vec::new(), Vec::new());
        visit_block(body, &mut |stmt| {
            roots.extend(program.roots(stmt));
            if let StmtKind::Assign { target, .. } = &stmt.kind {
                targets.push(target.clone());
            }
        });
        let mut guard = Guard { stmt: stmt.id, conjuncts: found, roots, targets, windows: Vec::new() };
        let mut all: Vec<ExprId> = guard.conjuncts.iter().chain(&guard.roots).copied().collect();
        visit_reads(program, &mut all, &mut |read, access| guard.add_windows(program, read, access));
        (!guard.windows.is_empty()).then_some(guard)
    }

    fn add_windows(&mut self, program: &Program, read: ExprId, access: &Access) {
        for (dim, subscript) in access.subscripts.iter().enumerate().filter(|(_, subscript)| !subscript.permissive) {
            let mut indices: Vec<IndexId> = Vec::new();
            indices_of(program, subscript.expr, &mut indices);
            let known = self.windows.iter().any(|window| window.read == read && window.dim == dim);
            if indices.len() > 1 && !known {
                let (tensor, subscript) = (access.tensor, subscript.expr);
                let (bounds, checked_by) = (None, [None, None]);
                self.windows.push(GuardedWindow { read, tensor, dim, subscript, bounds, checked_by });
            }
        }
    }

    /// The reads with windows that are checked, in order.
    fn guarded_reads(&self) -> Vec<ExprId> {
        let mut reads: Vec<ExprId> = Vec::new();
        for window in self.windows.iter().filter(|window| window.is_guarded()) {
            if !reads.contains(&window.read) {
                reads.push(window.read);
            }
        }
        reads
    }

    /// The conjuncts that imply the bounds of a read.
    fn checks_of(&self, read: ExprId) -> impl Iterator<Item = Check> {
        let windows = self.windows.iter().filter(move |window| window.read == read && window.is_guarded());
        windows.flat_map(|window| window.checked_by.into_iter().flatten())
    }

    /// The conjuncts that a read replaces: its bounds, unless it may be missing for other reasons,
    /// so that it does not tell whether they hold.
    fn replaced_by(&self, program: &Program, read: ExprId) -> Vec<usize> {
        match is_permissive(program, read) {
            true => Vec::new(),
            false => self.checks_of(read).filter(|check| check.exact).map(|check| check.conjunct).collect(),
        }
    }

    /// True if some window of a tensor of several dimensions is checked, and no other subscript of
    /// the statements or the condition needs the checks: each is an index, a number, permissive,
    /// checked like this one, or inside anyway.
    fn is_relaxable(&self, program: &Program, checked: &Checked) -> bool {
        let guarded = |read: ExprId, dim: usize| {
            self.windows.iter().any(|window| window.read == read && window.dim == dim && window.is_guarded())
        };
        let several = |window: &GuardedWindow| match program.expr(window.read) {
            Expr::Read(access) => access.subscripts.len() > 1,
            _ => false,
        };
        let safe = |access: &Access, read: Option<ExprId>| {
            access.subscripts.iter().enumerate().all(|(dim, subscript)| {
                subscript.permissive
                    || matches!(program.expr(subscript.expr), Expr::Index(_) | Expr::Literal(_))
                    || read.is_some_and(|read| guarded(read, dim))
                    || checked.extents.is_inside(access.tensor, dim, subscript.expr)
            })
        };
        let mut relaxable = self.windows.iter().any(|window| several(window) && window.is_guarded())
            && self.targets.iter().all(|target| safe(target, None));
        let subscripts = self.targets.iter().flat_map(|target| target.subscripts.iter().map(|s| s.expr));
        let mut all: Vec<ExprId> = self.roots.iter().copied().chain(subscripts).collect();
        visit_reads(program, &mut all, &mut |read, access| relaxable &= safe(access, Some(read)));
        for (place, conjunct) in self.conjuncts.iter().enumerate() {
            // A read is checked after its last bound only.
            let mut open = vec![*conjunct];
            visit_reads(program, &mut open, &mut |read, access| {
                let checked = self.checks_of(read).all(|check| check.conjunct < place);
                relaxable &= safe(access, Some(read).filter(|_| checked));
            });
        }
        relaxable
    }

    /// Writes `subscript >= 0` and `subscript < size` for each window.
    fn state_bounds(&mut self, program: &mut Program, checked: &Checked) {
        for window in &mut self.windows {
            let number = checked.extents.shapes[window.tensor.index()].get(window.dim).copied();
            let number = program.exprs.intern(Expr::Literal(Value::I64(number.unwrap_or(0) as i64)));
            let zero = program.exprs.intern(Expr::Literal(Value::I64(0)));
            let size = program.exprs.intern(Expr::Size(window.tensor, window.dim));
            let low = program.exprs.intern(Expr::Call(Op::Ge, vec![window.subscript, zero]));
            let high = program.exprs.intern(Expr::Call(Op::Lt, vec![window.subscript, size]));
            let literal = program.exprs.intern(Expr::Call(Op::Lt, vec![window.subscript, number]));
            window.bounds = Some([low, high, literal]);
        }
    }

    fn match_bounds(&mut self, masks: &mut Masks) {
        let known: Vec<Option<Comparison>> =
            self.conjuncts.iter().map(|conjunct| masks.comparison(*conjunct)).collect();
        for window in &mut self.windows {
            let Some(bounds) = window.bounds else { continue };
            let [low, high, literal] = bounds.map(|bound| {
                let wanted = masks.comparison(bound)?;
                let check = |(conjunct, comparison): (usize, &Option<Comparison>)| {
                    let exact = implies(comparison.as_ref()?, &wanted)?;
                    Some(Check { conjunct, exact, by_number: false })
                };
                let mut checks: Vec<Check> = known.iter().enumerate().filter_map(check).collect();
                checks.sort_by_key(|check| !check.exact);
                checks.first().copied()
            });
            let literal = literal.map(|check| Check { by_number: true, ..check });
            window.checked_by = [low, high.or(literal)];
        }
    }
}

/// True if a comparison is the same as another one, false if it only implies it, none if it does
/// not.
fn implies(comparison: &Comparison, wanted: &Comparison) -> Option<bool> {
    let (Comparison::One(mask), Comparison::One(wanted)) = (comparison, wanted) else { return None };
    if (mask.index, mask.divisor, &mask.bound.terms) != (wanted.index, wanted.divisor, &wanted.bound.terms) {
        return None;
    }
    let [low, high] = range_of(mask)?;
    match range_of(wanted)? {
        [Some(least), None] => low.filter(|low| *low >= least).map(|low| low == least && high.is_none()),
        [None, Some(stop)] => high.filter(|high| *high <= stop).map(|high| high == stop && low.is_none()),
        _ => None,
    }
}

/// The least constant of the range that a mask permits, and one past the greatest.
fn range_of(mask: &Mask) -> Option<[Option<i64>; 2]> {
    let (here, after) = (mask.bound.constant, mask.bound.constant + 1);
    Some(match mask.op {
        Op::Ge => [Some(here), None],
        Op::Gt => [Some(after), None],
        Op::Lt => [None, Some(here)],
        Op::Le => [None, Some(after)],
        Op::Eq => [Some(here), Some(after)],
        _ => return None,
    })
}

fn is_permissive(program: &Program, read: ExprId) -> bool {
    matches!(program.expr(read), Expr::Read(access) if access.subscripts.iter().any(|subscript| subscript.permissive))
}

fn conjuncts(program: &Program, id: ExprId, found: &mut Vec<ExprId>) {
    match program.expr(id) {
        Expr::Call(Op::And, operands) => operands.iter().for_each(|operand| conjuncts(program, *operand, found)),
        _ => found.push(id),
    }
}

fn visit_reads(program: &Program, open: &mut Vec<ExprId>, visit: &mut dyn FnMut(ExprId, &Access)) {
    while let Some(id) = open.pop() {
        let expr = program.expr(id);
        if let Expr::Read(access) = expr {
            visit(id, access);
        }
        open.extend(expr.operands());
    }
}

fn indices_of(program: &Program, id: ExprId, found: &mut Vec<IndexId>) {
    match program.expr(id) {
        Expr::Index(index) if !found.contains(index) => found.push(*index),
        expr => expr.operands().into_iter().for_each(|operand| indices_of(program, operand, found)),
    }
}

/// The statements under a condition without an alternative, and the conjuncts of the condition;
/// those of a condition that is all that another one guards come after those of the other.
fn guarded_body<'a>(program: &Program, stmt: &'a Stmt, found: &mut Vec<ExprId>) -> Option<&'a Block> {
    let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return None };
    if !otherwise.is_empty() {
        return None;
    }
    conjuncts(program, *cond, found);
    match &then[..] {
        [only] => Some(guarded_body(program, only, found).unwrap_or(then)),
        _ => Some(then),
    }
}

fn rewrite(program: &mut Program, checked: &Checked, block: &mut Block, guards: &[Guard]) {
    for stmt in block {
        if let Some(guard) = guards.iter().find(|guard| guard.stmt == stmt.id) {
            let Some(mut body) = guarded_body(program, stmt, &mut Vec::new()).cloned() else { continue };
            let cond = relaxed_condition(program, checked, guard);
            let reads = guard.guarded_reads();
            let relaxed: Vec<(ExprId, ExprId)> =
                reads.into_iter().map(|read| (read, with_default(program, checked, guard, read))).collect();
            replace_reads(program, &mut body, &relaxed);
            if let StmtKind::If { cond: before, then, .. } = &mut stmt.kind {
                (*before, *then) = (cond, body);
            }
            continue;
        }
        match &mut stmt.kind {
            StmtKind::For { body, .. } => rewrite(program, checked, body, guards),
            StmtKind::If { then, otherwise, .. } => {
                rewrite(program, checked, then, guards);
                rewrite(program, checked, otherwise, guards);
            }
            StmtKind::Declare(_) | StmtKind::Let { .. } | StmtKind::Assign { .. } => {}
        }
    }
}

/// The condition of a guard, in which a read that is not missing stands for the first of its
/// bounds.
fn relaxed_condition(program: &mut Program, checked: &Checked, guard: &Guard) -> ExprId {
    let reads = guard.guarded_reads();
    let (mut covered, mut places): (Vec<usize>, Vec<(usize, ExprId)>) = (Vec::new(), Vec::new());
    for read in &reads {
        let bounds = guard.replaced_by(program, *read);
        if let Some(first) = bounds.iter().min()
            && bounds.iter().any(|bound| !covered.contains(bound))
        {
            places.push((*first, *read));
            covered.extend(bounds);
        }
    }
    let mut conjuncts = Vec::new();
    for (place, conjunct) in guard.conjuncts.iter().enumerate() {
        for (_, read) in places.iter().filter(|(first, _)| *first == place) {
            conjuncts.push(is_inside(program, checked, guard, *read));
        }
        if !covered.contains(&place) {
            let relaxed: Vec<(ExprId, ExprId)> =
                reads.iter().map(|read| (*read, with_default(program, checked, guard, *read))).collect();
            conjuncts.push(replaced(program, *conjunct, &relaxed));
        }
    }
    let all = conjuncts.into_iter().reduce(|a, b| program.exprs.intern(Expr::Call(Op::And, vec![a, b])));
    all.unwrap_or_else(|| program.exprs.intern(Expr::Literal(Value::Bool(true))))
}

/// The permissive read of a guarded one, and a literal of its kind.
fn permissive(program: &mut Program, checked: &Checked, guard: &Guard, read: ExprId) -> Option<(ExprId, ExprId)> {
    let Expr::Read(Access { tensor, mut subscripts }) = program.expr(read).clone() else { return None };
    for window in guard.windows.iter().filter(|window| window.read == read && window.is_guarded()) {
        subscripts[window.dim].permissive = true;
    }
    let zero = match checked.types.tensors[tensor.index()] {
        DType::Bool => Value::Bool(false),
        _ => Value::I64(0),
    };
    let read = program.exprs.intern(Expr::Read(Access { tensor, subscripts }));
    Some((read, program.exprs.intern(Expr::Literal(zero))))
}

/// A permissive read with a value out of bounds, unless it has one where it may be missing anyway.
fn with_default(program: &mut Program, checked: &Checked, guard: &Guard, read: ExprId) -> ExprId {
    let given = is_permissive(program, read);
    match permissive(program, checked, guard, read) {
        Some((read, _)) if given => read,
        Some((read, zero)) => program.exprs.intern(Expr::Call(Op::Coalesce, vec![read, zero])),
        None => read,
    }
}

/// True where a permissive read is in bounds, whatever its value is.
fn is_inside(program: &mut Program, checked: &Checked, guard: &Guard, read: ExprId) -> ExprId {
    let [no, yes] = [false, true].map(|truth| program.exprs.intern(Expr::Literal(Value::Bool(truth))));
    let Some((read, zero)) = permissive(program, checked, guard, read) else { return yes };
    let any = program.exprs.intern(Expr::Call(Op::Ne, vec![read, zero]));
    let any = program.exprs.intern(Expr::Call(Op::Select, vec![any, yes, yes]));
    program.exprs.intern(Expr::Call(Op::Coalesce, vec![any, no]))
}

/// An expression with other reads.
fn replaced(program: &mut Program, id: ExprId, reads: &[(ExprId, ExprId)]) -> ExprId {
    if let Some((_, by)) = reads.iter().find(|(read, _)| *read == id) {
        return *by;
    }
    let expr = match program.expr(id).clone() {
        Expr::Call(op, operands) => {
            Expr::Call(op, operands.into_iter().map(|operand| replaced(program, operand, reads)).collect())
        }
        Expr::Read(Access { tensor, mut subscripts }) => {
            subscripts.iter_mut().for_each(|subscript| subscript.expr = replaced(program, subscript.expr, reads));
            Expr::Read(Access { tensor, subscripts })
        }
        Expr::Entry(mut entry) => {
            entry.at = entry.at.iter().map(|at| replaced(program, *at, reads)).collect();
            Expr::Entry(entry)
        }
        Expr::Literal(_) | Expr::Index(_) | Expr::Var(_) | Expr::Size(..) => return id,
    };
    program.exprs.intern(expr)
}

fn replace_reads(program: &mut Program, block: &mut Block, reads: &[(ExprId, ExprId)]) {
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::Declare(_) => {}
            StmtKind::Let { value, .. } => *value = replaced(program, *value, reads),
            StmtKind::For { extent, body, .. } => {
                if let Extent::Range(start, stop) = extent {
                    (*start, *stop) = (replaced(program, *start, reads), replaced(program, *stop, reads));
                }
                replace_reads(program, body, reads);
            }
            StmtKind::If { cond, then, otherwise } => {
                *cond = replaced(program, *cond, reads);
                replace_reads(program, then, reads);
                replace_reads(program, otherwise, reads);
            }
            StmtKind::Assign { target, update, value } => {
                *value = replaced(program, *value, reads);
                for subscript in &mut target.subscripts {
                    subscript.expr = replaced(program, subscript.expr, reads);
                }
                for extra in update.iter_mut().flat_map(|update| &mut update.extra) {
                    *extra = replaced(program, *extra, reads);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::{Format, interp};
    use tamis_tensor::Tensor;

    /// A read of another tensor in the rest of a condition needs the bounds checks, which then
    /// stay. One of the same element is permissive, too.
    #[test]
    fn checks_of_other_conditions_stay() {
        let tensor = |shape: &[u64]| {
            let count = shape.iter().product::<u64>() as usize;
            Tensor::from_dense(shape, vec![1.0; count].into(), &Format::csr(), 0.0.into()).unwrap()
        };
        let (a, b) = (tensor(&[4, 4]), tensor(&[4, 4]));
        let n = Tensor::scalar(Value::I64(4));
        let relaxes = |rest: &str| {
            let text = format!(
                "def f(A, B, n):\n    O = tensor('dense', shape=(4, 4))\n    for i in range(n):\n        for j in range(4):\n            for k in range(3):\n                if i + k >= 0 and i + k < A.shape[0] and {rest}:\n                    O[i,j] += A[i+k,j] * 2\n    return O\n"
            );
            let program = Program::parse(&text).unwrap();
            let checked = program.check(&[&a, &b, &n].map(|t| interp::param_type(t))).unwrap();
            relax_guards(&program, &checked).is_some()
        };
        assert!(relaxes("j != 2"));
        assert!(relaxes("B[i,j] > 0"));
        assert!(!relaxes("B[i+k,j] > 0"));
        assert!(relaxes("A[i+k,j] > 0"));
    }
}
