//! The command `fuse(i, j, f)`: collapses two nested loops into one loop over all pairs.

use super::edit::ProgramEdit;
use super::extents::{indices, lets};
use super::legal::{Chain, Link};
use super::reorder::obstacle;
use rustc_hash::FxHashMap;
use tamis_ir::Value;
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Result};
use tamis_ir::program::{Attributes, EntryPart, Expr, ExprId, Extent, Program, Stmt, StmtKind};

pub(super) fn run(work: &mut ProgramEdit, outer: &str, inner: &str, fused: &str) -> Result<()> {
    let nest = work.find_nest(&[outer.to_string(), inner.to_string()])?;
    let [i, j] = nest[..] else { return Ok(()) };
    let (outer, inner) = (work.program.indices[i.index()].clone(), work.program.indices[j.index()].clone());
    let depth = |index| work.around(index).len();
    if depth(i) >= depth(j) {
        let message = format!("`{outer}` is inside `{inner}`, not around it");
        let d = work.fault(Code::E1203, message, None, "the outer loop comes first");
        return Err(d.help(format!("write `fuse({inner}, {outer}, {fused})`, or reorder the loops before")));
    }
    work.check_new(fused, 2, i, &[])?;
    let stmt = work.loop_of(i)?.clone();
    let chain = Chain::of(&stmt, j).map_err(|conflict| obstacle(work, &conflict))?;
    if let [_, .., between] = &chain.loops()[..chain.loops().len() - 1] {
        let name = &work.program.indices[between.index()];
        let d = work.fault(Code::E1203, format!("the loop over `{name}` is in between"), None, "not adjacent");
        return Err(d.help(format!("fuse `{name}` first, or reorder the loops before")));
    }
    let before = work.classes();
    let (start, stop) = work.bounds(i, 0)?;
    let (inner_start, inner_stop) = work.bounds(j, 1)?;
    let names = lets(&work.program);
    let between = chain.links.iter().filter_map(|link| match link {
        Link::Let(Stmt { kind: StmtKind::Let { var, .. }, .. }) => Some(*var),
        _ => None,
    });
    let between: Vec<Expr> = between.map(Expr::Var).collect();
    let depends = [inner_start, inner_stop]
        .iter()
        .any(|bound| indices(&work.program, &names, *bound).contains(&i) || mentions(work, *bound, &between));
    if depends {
        let message = format!("the bounds of `{inner}` depend on `{outer}`, so the iteration space is not rectangular");
        let d = work.fault(Code::E1204, message, None, "cannot be one loop");
        return Err(d.help(format!(
            "let `{inner}` iterate over all values, and put its body under an `if`, as in `if {inner} < {outer}:`"
        )));
    }
    let width = length(work, inner_start, inner_stop);
    let height = length(work, start, stop);
    let count = work.binary(Op::Mul, height, width);
    let index = work.new_index(fused, i);
    let f = work.intern(Expr::Index(index));
    let (row, column) =
        (work.intern(Expr::Call(Op::FloorDiv, vec![f, width])), work.intern(Expr::Call(Op::Mod, vec![f, width])));
    let (row, column) = (work.binary(Op::Add, start, row), work.binary(Op::Add, inner_start, column));
    let (row_name, column_name) = (work.new_var(&outer), work.new_var(&inner));
    let by: FxHashMap<_, _> = [(i, Expr::Var(row_name)), (j, Expr::Var(column_name))].into_iter().collect();
    let mut body = vec![
        work.new_stmt(StmtKind::Let { var: row_name, value: row }, stmt.id),
        work.new_stmt(StmtKind::Let { var: column_name, value: column }, stmt.id),
    ];
    // Bindings and conditions between the loops move to the start of the fused body.
    let mut inside = chain.body;
    for link in chain.links.into_iter().rev() {
        match link {
            Link::Loop { .. } => {}
            Link::Let(name) => inside.insert(0, name),
            Link::If { id, cond } => {
                inside = vec![Stmt { id, kind: StmtKind::If { cond, then: inside, otherwise: Vec::new() } }];
            }
        }
    }
    work.substitute(&mut inside, &by);
    body.extend(inside);
    let zero = work.int(0);
    let extent = Extent::Range(zero, count);
    let kind = StmtKind::For { index, extent, attributes: Attributes::default(), body };
    let fused = work.new_stmt(kind, stmt.id);
    work.edit_loop(i, |_, block, at| block[at] = fused);
    // The indices are gone; the sizes that they defined are pinned in declarations.
    work.pin(&before, &[index], 0)
}

fn mentions(work: &ProgramEdit, id: ExprId, names: &[Expr]) -> bool {
    let expr = work.program.expr(id);
    names.contains(expr) || expr.operands().iter().any(|operand| mentions(work, *operand, names))
}

/// The length of a range, clamped at 0, so that the product of two lengths is correct.
fn length(work: &mut ProgramEdit, start: ExprId, stop: ExprId) -> ExprId {
    let length = work.binary(Op::Sub, stop, start);
    if is_count(&work.program, length) {
        return length;
    }
    let zero = work.int(0);
    work.intern(Expr::Call(Op::Max, vec![length, zero]))
}

/// True if an expression is a size, or a product of sizes, and therefore non-negative.
fn is_count(program: &Program, id: ExprId) -> bool {
    match program.expr(id) {
        Expr::Size(..) => true,
        Expr::Entry(entry) => entry.what == EntryPart::Count,
        Expr::Literal(Value::I64(n)) => *n >= 0,
        Expr::Call(Op::Mul, operands) => operands.iter().all(|operand| is_count(program, *operand)),
        _ => false,
    }
}
