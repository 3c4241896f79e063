//! Blocking of loops for blocked operands: where a parameter stores quotients and remainders of its
//! dimensions, the loops over these dimensions are split into a loop over blocks and a loop inside
//! a block.

use super::edit::{ProgramEdit, index_of};
use super::extents::accesses;
use super::idle::busy_without;
use super::reorder::reorder;
use super::split::split;
use super::{Command, LocatedCommand};
use crate::lower::Policy;
use crate::lower::saturate::is_huge;
use tamis_ir::Format;
use tamis_ir::format::DimExpr;
use tamis_ir::program::{Checked, Expr, Extent, IndexId, Program, Stmt, StmtKind, TensorId};
use tamis_tensor::levels::level_type;

/// Splits loops by the blocks of parameters with these formats; none if no split is useful and
/// legal.
pub fn block(program: &Program, checked: &Checked, formats: &[&Format]) -> Option<Program> {
    let wanted = wanted(program, formats);
    if wanted.is_empty() {
        return None;
    }
    // Each loop nest is split independently; one that cannot be split stays unchanged.
    let mut done: Option<Program> = None;
    for nest in nests(program, &wanted) {
        let from = done.as_ref().unwrap_or(program);
        if let Some(cut) = cut(from, program, checked, &nest, &wanted, formats) {
            done = Some(cut);
        }
    }
    let mut cut = done?;
    cut.renumber();
    cut.verify().ok()?;
    Some(cut)
}

/// The loops over dimensions that are stored in blocks, and the block lengths.
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

/// For each loop with inferred bounds, the dimensions that it iterates over, which have equal
/// sizes.
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

/// Chains of nested loops, outermost first, from the first to the last that is to be split.
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
                    // The innermost split loop ends a chain.
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

/// True if splitting a loop is free: its body does nothing outside stored blocks, or it visits
/// every coordinate anyway. Otherwise the split loop would visit every possible block.
fn leads(work: &ProgramEdit, index: IndexId, by: u64, formats: &[&Format]) -> bool {
    // The number of blocks is a quotient rounded up.
    let size = work.checked.extents.shapes.iter().flatten().copied().max().unwrap_or(0);
    if is_huge(size) {
        return false;
    }
    let (mut blocked, mut dense) = (Vec::new(), false);
    let all = accesses(&work.program);
    for access in &all {
        let param = work.program.params.iter().position(|p| *p == access.tensor).and_then(|p| formats.get(p).copied());
        let Some(format) = param.or(work.checked.formats.get(access.tensor.index()).and_then(Option::as_ref)) else {
            continue;
        };
        for (stored, level) in format.map().iter().zip(format.levels()) {
            let along = |dim: usize| {
                access.subscripts.get(dim).is_some_and(|s| work.program.expr(s.expr) == &Expr::Index(index))
            };
            match *stored {
                DimExpr::Div(dim, other) if along(dim) && other == by && param.is_some() => {
                    blocked.push((access, format));
                    dense |= level_type(level.kind).is_ok_and(|row| row.capabilities.full);
                }
                DimExpr::Dim(dim) if along(dim) => {
                    dense |= level_type(level.kind).is_ok_and(|row| row.capabilities.full && row.arrays.is_empty());
                }
                _ => {}
            }
        }
    }
    dense || busy_without(work, index, &blocked).is_none()
}

fn cut(
    program: &Program,
    original: &Program,
    checked: &Checked,
    nest: &[IndexId],
    wanted: &[(IndexId, u64)],
    formats: &[&Format],
) -> Option<Program> {
    // This command is implicit, so its refusal is not reported.
    let command = Command::Reorder { loops: Vec::new() };
    let step = LocatedCommand { command, span: None, args: Vec::new() };
    let mut work = ProgramEdit::new(program.clone(), original, checked, &[], Policy::default(), &step, None);
    let (mut order, mut inside) = (Vec::new(), Vec::new());
    for index in nest {
        let by = wanted.iter().find(|(other, _)| other == index).map(|(_, by)| *by);
        let by = by.filter(|by| leads(&work, *index, *by, formats));
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
