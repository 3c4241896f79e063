//! Guarded windows: bounds checks in conditions become permissive reads.
//!
//! In: a program with updates such as
//!
//! ```text
//! if i + k - 1 >= 0 and i + k - 1 < A.shape[0] and k != 1:
//!     O[i,j] += A[i+k-1, j+l] * F[k,l]
//! ```
//!
//! Out: the same updates without those comparisons, where reads out of bounds are missing and leave
//! the target as it is:
//!
//! ```text
//! if k != 1:
//!     O[i,j] += coalesce(A[~(i+k-1), j+l], 0) * F[k,l]
//! ```
//!
//! A comparison of several indices is a mask of the innermost loop alone, so the loops around it
//! would visit every window. A permissive read is padding: its windows are found by what is stored.
//! A comparison disappears only if it is exactly a bound of the dimension, and both bounds are
//! there. A number is a bound if it is the size of the dimension, which the kernel is then
//! specialised for ([`sizes_in_guards`]). Other comparisons stay. Nothing changes unless the read is a
//! factor of a sum's term, so that 0 leaves the target as it is, or if another subscript needs the
//! check. In strict arithmetic 0 does not annihilate infinities, so this pass does not run.

use tamis_ir::algebra::Op;
use tamis_ir::program::{
    Access, Block, Checked, Comparison, Expr, ExprId, IndexId, Masks, Program, Stmt, StmtId, StmtKind, TensorId, Update,
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
/// assert!(relaxed.contains("if j != 2:\n"), "{relaxed}");
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
/// the condition may be that size: kernels are specialised for it.
pub fn sizes_in_guards(program: &Program, checked: &Checked) -> Vec<Option<u64>> {
    let mut found = Vec::new();
    program.visit(&mut |stmt| {
        let Some(guard) = Guard::of(program, stmt) else { return };
        let numbers: Vec<i64> = guard.conjuncts.iter().flat_map(|id| numbers_in(program, *id)).collect();
        for window in &guard.windows {
            let size = checked.extents.shapes[window.tensor.index()].get(window.dim).copied();
            // Sums move constants from one side of a comparison to the other.
            let is_near = |number: &i64| size.is_some_and(|size| number.abs_diff(size as i64) <= NEAR);
            found.push(numbers.iter().any(is_near).then_some(size).flatten());
        }
    });
    found
}

/// How far the constants of a subscript may move a bound.
const NEAR: u64 = 64;

fn numbers_in(program: &Program, id: ExprId) -> Vec<i64> {
    let mut found = Vec::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        match program.expr(id) {
            Expr::Literal(value) => found.extend(value.as_i64()),
            expr => open.extend(expr.operands()),
        }
    }
    found
}

/// An update under a condition that may hold bounds checks.
struct Guard {
    /// The conditional statement.
    stmt: StmtId,
    /// The conjuncts of the condition.
    conjuncts: Vec<ExprId>,
    /// The target, and the value.
    target: Access,
    value: ExprId,
    /// The subscripts of several indices in the value.
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
    /// The conjuncts that are its bounds.
    checked_by: [Option<ExprId>; 2],
}

impl GuardedWindow {
    fn is_guarded(&self) -> bool {
        self.checked_by.iter().all(Option::is_some)
    }
}

impl Guard {
    fn of(program: &Program, stmt: &Stmt) -> Option<Guard> {
        let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return None };
        let [Stmt { kind: StmtKind::Assign { target, update: Some(update), value }, .. }] = &then[..] else {
            return None;
        };
        if !otherwise.is_empty() || !matches!(update, Update { op: Op::Add | Op::Sub, .. }) {
            return None;
        }
        let (target, value) = (target.clone(), *value);
        let mut guard = Guard { stmt: stmt.id, conjuncts: Vec::new(), target, value, windows: Vec::new() };
        conjuncts(program, *cond, &mut guard.conjuncts);
        guard.collect_windows(program, value);
        (!guard.windows.is_empty()).then_some(guard)
    }

    /// Collects the windows of the factors of a product.
    fn collect_windows(&mut self, program: &Program, id: ExprId) {
        match program.expr(id) {
            Expr::Read(access) => {
                for (dim, subscript) in access.subscripts.iter().enumerate() {
                    let mut indices: Vec<IndexId> = Vec::new();
                    indices_of(program, subscript.expr, &mut indices);
                    if !subscript.permissive && indices.len() > 1 {
                        let (tensor, subscript) = (access.tensor, subscript.expr);
                        let (bounds, checked_by) = (None, [None, None]);
                        self.windows.push(GuardedWindow { read: id, tensor, dim, subscript, bounds, checked_by });
                    }
                }
            }
            Expr::Call(Op::Mul | Op::Neg, operands) => {
                operands.iter().for_each(|operand| self.collect_windows(program, *operand));
            }
            _ => {}
        }
    }

    /// True if some window of a tensor of several dimensions is checked, and no other subscript of
    /// the update or the condition needs the checks: each is an index, a number, permissive, checked
    /// like this one, or inside anyway.
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
        let mut all = self.target.subscripts.iter().map(|subscript| subscript.expr).chain([self.value]).collect();
        let mut relaxable =
            self.windows.iter().any(|window| several(window) && window.is_guarded()) && safe(&self.target, None);
        visit_reads(program, &mut all, &mut |read, access| relaxable &= safe(access, Some(read)));
        // The rest of the condition is evaluated without the checks.
        let mut conditions = self.conjuncts.clone();
        visit_reads(program, &mut conditions, &mut |_, access| relaxable &= safe(access, None));
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
        let known: Vec<(ExprId, Option<Comparison>)> =
            self.conjuncts.iter().map(|conjunct| (*conjunct, masks.comparison(*conjunct))).collect();
        for window in &mut self.windows {
            let Some(bounds) = window.bounds else { continue };
            let [low, high, literal] = bounds.map(|bound| {
                let wanted = masks.comparison(bound)?;
                known.iter().find(|(_, comparison)| comparison.as_ref() == Some(&wanted)).map(|(id, _)| *id)
            });
            window.checked_by = [low, high.or(literal)];
        }
    }
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

fn rewrite(program: &mut Program, checked: &Checked, block: &mut Block, guards: &[Guard]) {
    for stmt in block {
        let guard = guards.iter().find(|guard| guard.stmt == stmt.id);
        match &mut stmt.kind {
            StmtKind::For { body, .. } => rewrite(program, checked, body, guards),
            StmtKind::If { cond, then, otherwise } => match (guard, then.first_mut()) {
                (Some(guard), Some(inner)) => {
                    if let StmtKind::Assign { value, .. } = &mut inner.kind {
                        *value = relaxed(program, checked, *value, guard);
                    }
                    let checks =
                        |id: &ExprId| guard.windows.iter().any(|w| w.is_guarded() && w.checked_by.contains(&Some(*id)));
                    let left: Vec<ExprId> = guard.conjuncts.iter().copied().filter(|id| !checks(id)).collect();
                    match left.into_iter().reduce(|a, b| program.exprs.intern(Expr::Call(Op::And, vec![a, b]))) {
                        Some(rest) => *cond = rest,
                        None => {
                            let Some(inner) = then.pop() else { continue };
                            *stmt = inner;
                        }
                    }
                }
                _ => {
                    rewrite(program, checked, then, guards);
                    rewrite(program, checked, otherwise, guards);
                }
            },
            StmtKind::Declare(_) | StmtKind::Let { .. } | StmtKind::Assign { .. } => {}
        }
    }
}

/// The value with permissive reads of its guarded windows, which are 0 out of bounds.
fn relaxed(program: &mut Program, checked: &Checked, id: ExprId, guard: &Guard) -> ExprId {
    match program.expr(id).clone() {
        Expr::Read(Access { tensor, mut subscripts }) => {
            let mut guarded = false;
            for window in guard.windows.iter().filter(|window| window.read == id && window.is_guarded()) {
                subscripts[window.dim].permissive = true;
                guarded = true;
            }
            if !guarded {
                return id;
            }
            let zero = match checked.types.tensors[tensor.index()] {
                DType::Bool => Value::Bool(false),
                _ => Value::I64(0),
            };
            let read = program.exprs.intern(Expr::Read(Access { tensor, subscripts }));
            let zero = program.exprs.intern(Expr::Literal(zero));
            program.exprs.intern(Expr::Call(Op::Coalesce, vec![read, zero]))
        }
        Expr::Call(op @ (Op::Mul | Op::Neg), operands) => {
            let operands = operands.into_iter().map(|operand| relaxed(program, checked, operand, guard)).collect();
            program.exprs.intern(Expr::Call(op, operands))
        }
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_ir::{Format, interp};
    use tamis_tensor::Tensor;

    /// A read in the rest of a condition needs the bounds checks, which then stay.
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
        assert!(!relaxes("A[i+k,j] > 0"));
    }
}
