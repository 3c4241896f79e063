//! Loops cut as operands are: where a parameter stores quotients and remainders of its dimensions, the loops over these
//! dimensions go over its blocks, and then over what is in a block.

use super::edit::{Work, index_of};
use super::extents::accesses;
use super::reorder::reorder;
use super::split::split;
use super::{Command, Step};
use crate::lower::Policy;
use tamis_ir::Format;
use tamis_ir::format::DimExpr;
use tamis_ir::program::{Checked, Expr, Extent, IndexId, Program, Stmt, StmtKind, TensorId};

/// The program with its loops cut into the blocks of parameters of these formats, if there is anything to cut and it may be.
pub fn block(program: &Program, checked: &Checked, formats: &[&Format]) -> Option<Program> {
    let wanted = wanted(program, formats);
    if wanted.is_empty() {
        return None;
    }
    // Every nest of loops is cut by itself: one that cannot be stays as it is.
    let mut done: Option<Program> = None;
    for nest in nests(program, &wanted) {
        let from = done.as_ref().unwrap_or(program);
        if let Some(cut) = cut(from, program, checked, &nest, &wanted) {
            done = Some(cut);
        }
    }
    let mut cut = done?;
    cut.renumber();
    cut.verify().ok()?;
    Some(cut)
}

/// The loops over dimensions that are stored in blocks, and how long the blocks are.
fn wanted(program: &Program, formats: &[&Format]) -> Vec<(IndexId, u64)> {
    let mut found: Vec<(IndexId, u64)> = Vec::new();
    for id in program.exprs.ids() {
        let Expr::Read(access) = program.expr(id) else { continue };
        let Some(param) = program.params.iter().position(|p| *p == access.tensor) else { continue };
        for stored in formats.get(param).into_iter().flat_map(|format| format.map()) {
            let DimExpr::Div(dim, by) = *stored else { continue };
            let Some(subscript) = access.subscripts.get(dim).filter(|s| !s.permissive) else { continue };
            if let Expr::Index(index) = program.expr(subscript.expr)
                && found.iter().all(|(other, _)| other != index)
                && i64::try_from(by).is_ok_and(|by| by > 1)
            {
                found.push((*index, by));
            }
        }
    }
    found
}

/// For each loop whose bounds are inferred, the dimensions that it goes over, which are of one size.
pub fn sizes(program: &Program) -> Vec<Vec<(TensorId, usize)>> {
    let mut inferred = vec![false; program.indices.len()];
    program.visit(&mut |stmt| {
        if let StmtKind::For { index, extent: Extent::Infer, .. } = &stmt.kind {
            inferred[index.index()] = true;
        }
    });
    let mut classes: Vec<Vec<(TensorId, usize)>> = vec![Vec::new(); program.indices.len()];
    for access in accesses(program) {
        for (dim, subscript) in access.subscripts.iter().enumerate().filter(|(_, s)| !s.permissive) {
            if let Expr::Index(index) = program.expr(subscript.expr)
                && inferred[index.index()]
            {
                classes[index.index()].push((access.tensor, dim));
            }
        }
    }
    classes.retain(|class| class.len() > 1);
    classes
}

/// Chains of loops in each other, outermost first, from the first to the last that is to be cut.
fn nests(program: &Program, wanted: &[(IndexId, u64)]) -> Vec<Vec<IndexId>> {
    fn walk(block: &[Stmt], around: &[IndexId], wanted: &[(IndexId, u64)], found: &mut Vec<Vec<IndexId>>) {
        for stmt in block {
            match (&stmt.kind, index_of(stmt)) {
                (StmtKind::For { extent, body, .. }, Some(index)) => {
                    let cuts = matches!(extent, Extent::Infer) && wanted.iter().any(|(other, _)| *other == index);
                    let mut here = around.to_vec();
                    if cuts || !around.is_empty() {
                        here.push(index);
                    }
                    let inside = found.len();
                    walk(body, &here, wanted, found);
                    // The innermost loop that is cut ends a chain.
                    if cuts && found.len() == inside {
                        found.push(here);
                    }
                }
                (StmtKind::If { then, otherwise, .. }, _) => {
                    walk(then, around, wanted, found);
                    walk(otherwise, around, wanted, found);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(&program.body, &[], wanted, &mut found);
    found
}

fn cut(
    program: &Program,
    original: &Program,
    checked: &Checked,
    nest: &[IndexId],
    wanted: &[(IndexId, u64)],
) -> Option<Program> {
    // A command that nobody wrote; what it cannot do is not told.
    let command = Command::Reorder { loops: Vec::new() };
    let step = Step { command, span: None, args: Vec::new() };
    let mut work = Work::new(program.clone(), original, checked, &[], Policy::default(), &step, None);
    let (mut order, mut inside) = (Vec::new(), Vec::new());
    for index in nest {
        let by = wanted.iter().find(|(other, _)| other == index).map(|(_, by)| *by);
        match by.and_then(|by| i64::try_from(by).ok()) {
            Some(by) => {
                let name = work.program.indices[index.index()].clone();
                let outer = work.fresh_name(&format!("{name}_block"));
                let [pieces, inner] = split(&mut work, *index, 0, [(&outer, 1), (&name, 2)], (by, 3)).ok()?;
                order.push(pieces);
                inside.push(inner);
            }
            None => order.push(*index),
        }
    }
    order.extend(inside);
    reorder(&mut work, &order).ok()?;
    work.finish().ok()
}
