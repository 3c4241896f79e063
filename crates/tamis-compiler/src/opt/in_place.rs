//! In-place updates: a kernel whose result is written to the memory of an operand.
//!
//! In: an optimised kernel, and pairs of dense arrays, an operand's and a result's. The program
//! computes each element of the result once, and reads no other element of the operand meanwhile
//! ([`is_elementwise_of`](crate::schedule::is_elementwise_of)). Out: the kernel that reads the
//! result's array instead, whose elements are the operand's when it is called; none if an element
//! of the result is written before the operand's is read. Copies of elements to themselves are
//! dropped.

use super::{Editor, Options, fold};
use tamis_ir::algebra::Op;
use tamis_ir::kernel::{Block, BufferId, Expr, ExprId, Kernel, Stmt, VarId};

/// The kernel that updates the second array of each pair in place of reading the first.
///
/// ```
/// use tamis_compiler::opt::in_place;
/// use tamis_ir::DType;
/// use tamis_ir::algebra::Op;
/// use tamis_ir::kernel::{Builder, Elem, Role};
/// let mut b = Builder::new("double");
/// let x = b.buffer("x", Elem::Value(DType::F64), Role::Input);
/// let y = b.buffer("y", Elem::Value(DType::F64), Role::Output);
/// let n = b.param("n", DType::I64);
/// let (zero, stop) = (b.int(0), b.get(n));
/// b.count("i", zero, stop, |b, i| {
///     let value = b.load(x, i);
///     let twice = b.call(Op::Add, &[value, value]);
///     b.store(y, i, twice);
/// });
/// let updated = in_place(&b.finish(), &Default::default(), &[(x, y)]).unwrap();
/// assert!(updated.to_string().contains("y[i] = y[i] + y[i]"), "{updated}");
/// ```
pub fn in_place(kernel: &Kernel, options: &Options, pairs: &[(BufferId, BufferId)]) -> Option<Kernel> {
    if !kernel.is_plain() || !pairs.iter().all(|pair| reads_first(kernel, *pair)) {
        return None;
    }
    let (mut editor, mut body) = Editor::new(kernel.clone(), options);
    // Fills before the loops that store everything are dead, which was checked.
    let is_result = |buffer: &BufferId| pairs.iter().any(|(_, result)| result == buffer);
    let filled = |at: usize| match &kernel.body[at] {
        Stmt::Fill { buffer, .. } => is_result(buffer) && is_dead_fill(kernel, at),
        _ => false,
    };
    let mut at = 0;
    body.retain(|_| {
        at += 1;
        !filled(at - 1)
    });
    replace_in(&mut editor, &mut body, pairs);
    drop_self_copies(&editor, &mut body, pairs);
    let updated = editor.finish(body);
    updated.verify().is_ok().then_some(updated)
}

/// True if each element of the operand is read before that of the result is written.
fn reads_first(kernel: &Kernel, (operand, result): (BufferId, BufferId)) -> bool {
    let Some(last) = kernel.body.iter().rposition(|stmt| reads(kernel, stmt, operand)) else { return true };
    let ordered = |(k, stmt): (usize, &Stmt)| match stmt {
        Stmt::Fill { buffer, .. } if *buffer == result => is_dead_fill(kernel, k),
        _ => in_order(kernel, std::slice::from_ref(stmt), (operand, result)),
    };
    kernel.body[..=last].iter().enumerate().all(ordered)
}

/// True if the loop after a fill at the top of a kernel stores to every element of the filled range.
fn is_dead_fill(kernel: &Kernel, at: usize) -> bool {
    let Stmt::Fill { buffer, start, len, .. } = &kernel.body[at] else { return false };
    let user = kernel.body[at + 1..].iter().find(|stmt| touches(kernel, stmt, *buffer));
    is_zero(kernel, *start) && user.is_some_and(|user| stores_all(kernel, user, (*buffer, *len), &mut Vec::new()))
}

fn touches(kernel: &Kernel, stmt: &Stmt, buffer: BufferId) -> bool {
    let mut found = reads(kernel, stmt, buffer);
    stmt.visit(&mut |stmt| found |= stmt.writes().any(|written| written == buffer));
    found
}

fn is_zero(kernel: &Kernel, id: ExprId) -> bool {
    matches!(kernel.expr(id), Expr::Const(value) if value.as_i64() == Some(0))
}

/// True if a perfect nest of loops from 0 stores to all of the first elements of a buffer, in
/// row-major order of its variables. `loops` are those around it, with their stops.
fn stores_all(
    kernel: &Kernel,
    stmt: &Stmt,
    (buffer, len): (BufferId, ExprId),
    loops: &mut Vec<(VarId, ExprId)>,
) -> bool {
    match stmt {
        Stmt::For { var, start, stop, body, .. } if is_zero(kernel, *start) => {
            loops.push((*var, *stop));
            let found = body.iter().any(|stmt| stores_all(kernel, stmt, (buffer, len), loops));
            loops.pop();
            found && body.iter().all(|stmt| !leaves(stmt))
        }
        Stmt::Store { buffer: of, index, .. } if *of == buffer => is_row_major(kernel, *index, len, loops),
        _ => false,
    }
}

fn leaves(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.visit(&mut |stmt| found |= matches!(stmt, Stmt::Break(_)));
    found
}

/// True if an index is `(i*m + j)*n + k`, and the length `l*m*n`, for loops `i` below `l` and so on.
fn is_row_major(kernel: &Kernel, index: ExprId, len: ExprId, loops: &[(VarId, ExprId)]) -> bool {
    let stop_of = |id: ExprId| match kernel.expr(id) {
        Expr::Var(var) => loops.iter().find(|(other, _)| other == var).map(|(_, stop)| *stop),
        _ => None,
    };
    if stop_of(index) == Some(len) {
        return true;
    }
    let (Expr::Call(Op::Add, _, terms), Expr::Call(Op::Mul, _, sizes)) = (kernel.expr(index), kernel.expr(len)) else {
        return false;
    };
    let ([outer, inner], [rest, size]) = (&terms[..], &sizes[..]) else { return false };
    let Expr::Call(Op::Mul, _, scaled) = kernel.expr(*outer) else { return false };
    let [row, by] = &scaled[..] else { return false };
    by == size && stop_of(*inner) == Some(*size) && is_row_major(kernel, *row, *rest, loops)
}

/// True if no statement of a block reads the operand after one that stores to the result, except a
/// store of what is computed from the operand.
fn in_order(kernel: &Kernel, block: &[Stmt], (operand, result): (BufferId, BufferId)) -> bool {
    block.iter().enumerate().all(|(k, stmt)| {
        let ordered = match stmt {
            Stmt::Store { buffer, value, .. } if *buffer == result => {
                loads(kernel, *value, operand) || !block[k + 1..].iter().any(|later| reads(kernel, later, operand))
            }
            // A dense result has all its elements.
            Stmt::Grow { buffer, fill, .. } if *buffer == result => fill.is_none(),
            other => !other.writes().chain(other.scans()).any(|buffer| buffer == result || buffer == operand),
        };
        let mut reads_result = false;
        stmt.each_expr(|id| reads_result |= loads(kernel, id, result));
        ordered && !reads_result && stmt.blocks().all(|inner| in_order(kernel, inner, (operand, result)))
    })
}

fn reads(kernel: &Kernel, stmt: &Stmt, buffer: BufferId) -> bool {
    let mut found = false;
    stmt.visit(&mut |stmt| {
        stmt.each_expr(|id| found |= loads(kernel, id, buffer));
        found |= stmt.scans().any(|scanned| scanned == buffer);
    });
    found
}

fn loads(kernel: &Kernel, id: ExprId, buffer: BufferId) -> bool {
    let mut found = false;
    kernel.visit_expr(id, &mut |expr| found |= matches!(expr, Expr::Load(of, _) if *of == buffer));
    found
}

/// Replaces every load of an operand's array by one of the result's.
fn replace_in(editor: &mut Editor, block: &mut Block, pairs: &[(BufferId, BufferId)]) {
    let replaced = |buffer: BufferId| pairs.iter().find(|(operand, _)| *operand == buffer).map(|(_, result)| *result);
    for stmt in block {
        stmt.map_exprs(|id| {
            fold::rewrite(editor, id, &mut |editor, id| match *editor.kernel().expr(id) {
                // A dense tensor is subscripted by no element of itself.
                Expr::Load(buffer, index) => replaced(buffer).map(|result| editor.load(result, index)),
                _ => None,
            })
        });
        if let Stmt::Prefetch { buffer, .. } = stmt {
            *buffer = replaced(*buffer).unwrap_or(*buffer);
        }
        stmt.blocks_mut().for_each(|inner| replace_in(editor, inner, pairs));
    }
}

/// Drops `y[i] = y[i]`, and loops that do nothing else.
fn drop_self_copies(editor: &Editor, block: &mut Block, pairs: &[(BufferId, BufferId)]) {
    block.retain_mut(|stmt| {
        if let Stmt::Store { buffer, index, value } = stmt {
            let is_result = pairs.iter().any(|(_, result)| result == buffer);
            return !(is_result && *editor.kernel().expr(*value) == Expr::Load(*buffer, *index));
        }
        if let Stmt::For { body, .. } = stmt {
            let before = body.len();
            drop_self_copies(editor, body, pairs);
            return before == 0 || !body.is_empty();
        }
        true
    });
}
