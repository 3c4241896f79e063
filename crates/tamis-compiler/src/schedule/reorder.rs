//! The command `reorder(i, k, j)`: permutes the loops of one nest.

use super::edit::{ProgramEdit, index_of};
use super::extents::{indices, lets};
use super::legal::{self, Chain, Conflict, Link};
use tamis_ir::diag::{Code, Diagnostic, Result};
use tamis_ir::program::{Block, Expr, Extent, IndexId, Stmt, StmtKind, VarId};

pub(super) fn run(work: &mut ProgramEdit, names: &[String]) -> Result<()> {
    let wanted = work.find_nest(names)?;
    reorder(work, &wanted)
}

/// Reorders the named loops of one nest; the others keep their places.
pub(super) fn reorder(work: &mut ProgramEdit, wanted: &[IndexId]) -> Result<()> {
    let depth = |work: &ProgramEdit, index: &IndexId| work.around(*index).len();
    let (Some(outer), Some(inner)) = (
        wanted.iter().copied().min_by_key(|index| depth(work, index)),
        wanted.iter().copied().max_by_key(|index| depth(work, index)),
    ) else {
        return Ok(());
    };
    let nest = work.loop_of(outer)?.clone();
    let chain = Chain::of(&nest, inner).map_err(|conflict| obstacle(work, &conflict))?;
    let old = chain.loops();
    let mut next = wanted.iter().copied();
    let new: Vec<IndexId> =
        old.iter().map(|index| if wanted.contains(index) { next.next().unwrap_or(*index) } else { *index }).collect();
    if new == old {
        return Ok(());
    }
    check_bounds(work, &chain, &new)?;
    legal::reorder(&work.program, &nest, &old, &new).map_err(|conflict| {
        let d = work.fault(
            Code::E1204,
            "these loops cannot be interchanged: the result would change",
            None,
            "illegal order",
        );
        d.note(format!("{} {}", work.place(&conflict.stmt), conflict.why)).help(conflict.help)
    })?;
    let arranged = arrange(&chain, &new);
    let stmt = rebuild(arranged, chain.body);
    if let Some(stmt) = stmt {
        work.edit_loop(outer, |_, block, at| block[at] = stmt);
    }
    Ok(())
}

/// A diagnostic for loops that are not perfectly nested.
pub(super) fn obstacle(work: &ProgramEdit, conflict: &Conflict) -> Diagnostic {
    let d = work.fault(Code::E1203, "the loops do not form one nest", None, "not perfectly nested");
    d.note(format!("{} {}", work.place(&conflict.stmt), conflict.why)).help(conflict.help.clone())
}

/// Checks that a loop stays inside the loops and after the bindings that its bounds depend on.
fn check_bounds(work: &ProgramEdit, chain: &Chain, new: &[IndexId]) -> Result<()> {
    let program = &work.program;
    let lets = lets(program);
    for link in &chain.links {
        let Link::Loop { index, extent: Extent::Range(start, stop), .. } = link else { continue };
        let mut needed = indices(program, &lets, *start);
        needed.extend(indices(program, &lets, *stop));
        // A binding between the loops stays inside all loops that enclose it now.
        for bound in bound_names(work, &[*start, *stop]) {
            let mut around = Vec::new();
            for link in &chain.links {
                match link {
                    Link::Loop { index, .. } => around.push(*index),
                    Link::Let(Stmt { kind: StmtKind::Let { var, .. }, .. }) if *var == bound => {
                        needed.extend(around.iter().copied());
                    }
                    _ => {}
                }
            }
        }
        let place = |index: &IndexId| new.iter().position(|other| other == index);
        if let Some(outer) = chain.loops().iter().find(|outer| needed.contains(outer) && place(outer) > place(index)) {
            let (inner, outer) = (&program.indices[index.index()], &program.indices[outer.index()]);
            let message = format!("the bounds of `{inner}` depend on `{outer}`, so `{inner}` stays inside of it");
            let d = work.fault(Code::E1204, message, None, "illegal order");
            return Err(d.help(format!(
                "let `{inner}` iterate over all values, and put its body under an `if`, as in `if {inner} < {outer}:`"
            )));
        }
    }
    Ok(())
}

/// The bound names that expressions use.
fn bound_names(work: &ProgramEdit, ids: &[tamis_ir::program::ExprId]) -> Vec<VarId> {
    let mut open = ids.to_vec();
    let mut found = Vec::new();
    while let Some(id) = open.pop() {
        match work.program.expr(id) {
            Expr::Var(var) => found.push(*var),
            other => open.extend(other.operands()),
        }
    }
    found
}

/// Arranges loops in their new order. Bindings and conditions stay inside all loops that enclosed
/// them, as far out as possible and in their old order.
fn arrange(chain: &Chain, new: &[IndexId]) -> Vec<Link> {
    let mut waiting: Vec<(Vec<IndexId>, Link)> = Vec::new();
    let mut around = Vec::new();
    for link in &chain.links {
        match link {
            Link::Loop { index, .. } => around.push(*index),
            other => waiting.push((around.clone(), other.clone())),
        }
    }
    waiting.reverse();
    let mut arranged: Vec<Link> = Vec::new();
    let mut open: Vec<IndexId> = Vec::new();
    for wanted in new {
        let header = chain.links.iter().find(|link| matches!(link, Link::Loop { index, .. } if index == wanted));
        arranged.extend(header.cloned());
        open.push(*wanted);
        while waiting.last().is_some_and(|(around, _)| around.iter().all(|index| open.contains(index))) {
            arranged.extend(waiting.pop().map(|(_, link)| link));
        }
    }
    arranged
}

/// Rebuilds the statements of a chain around a block.
pub(super) fn rebuild(links: Vec<Link>, body: Block) -> Option<Stmt> {
    let mut block = body;
    for link in links.into_iter().rev() {
        match link {
            Link::Loop { id, index, extent, attributes } => {
                block = vec![Stmt { id, kind: StmtKind::For { index, extent, attributes, body: block } }];
            }
            Link::Let(stmt) => block.insert(0, stmt),
            Link::If { id, cond } => {
                block = vec![Stmt { id, kind: StmtKind::If { cond, then: block, otherwise: Vec::new() } }];
            }
        }
    }
    block.into_iter().next().filter(|stmt| index_of(stmt).is_some())
}
