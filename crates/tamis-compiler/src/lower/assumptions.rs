//! Assumptions about parameters, for the passes after lowering: equal sizes, lengths of arrays,
//! sorted arrays and bounds of their elements.
//!
//! Every tensor whose levels keep their invariants fulfils them, so callers need not check
//! anything. Equal sizes are checked when the program is.

use super::bind::{BoundStorage, BoundTensor};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::kernel::{Assumption, BufferId, Builder, ExprId};
use tamis_ir::program::{Access, Expr, Extent, Program, StmtKind};

/// Records what is known about the parameters of a program.
pub(super) fn assume(b: &mut Builder, program: &Program, bound: &[BoundTensor]) {
    sizes(b, program, bound);
    for id in &program.params {
        let bound = &bound[id.index()];
        if let BoundStorage::Levels { arrays, values, .. } = &bound.storage {
            levels(b, &bound.extents, arrays, *values);
        }
    }
}

/// Sizes are not negative, and sizes that one index ranges over are equal.
fn sizes(b: &mut Builder, program: &Program, bound: &[BoundTensor]) {
    let zero = b.int(0);
    for size in bound.iter().flat_map(|bound| &bound.dims) {
        let fact = b.call_in(Op::Ge, DType::I64, &[*size, zero]);
        b.assume(Assumption::Holds(fact));
    }
    let mut inferred = vec![false; program.indices.len()];
    let mut accesses: Vec<Access> = Vec::new();
    program.visit(&mut |stmt| match &stmt.kind {
        StmtKind::For { index, extent: Extent::Infer, .. } => inferred[index.index()] = true,
        StmtKind::Assign { target, .. } => accesses.push(target.clone()),
        _ => {}
    });
    accesses.extend(program.exprs.ids().filter_map(|id| match program.expr(id) {
        Expr::Read(access) => Some(access.clone()),
        _ => None,
    }));
    let mut first: Vec<Option<ExprId>> = vec![None; program.indices.len()];
    for access in accesses {
        for (dim, subscript) in access.subscripts.iter().enumerate().filter(|(_, s)| !s.permissive) {
            if let Expr::Index(index) = program.expr(subscript.expr)
                && inferred[index.index()]
                && let Some(size) = bound[access.tensor.index()].dims.get(dim)
            {
                let one = *first[index.index()].get_or_insert(*size);
                if one != *size {
                    let equal = b.call_in(Op::Eq, DType::I64, &[one, *size]);
                    b.assume(Assumption::Holds(equal));
                }
            }
        }
    }
}

fn levels(b: &mut Builder, sizes: &[ExprId], arrays: &[Vec<(&'static str, BufferId)>], values: Option<BufferId>) {
    // The number of positions above a level: a product of sizes, or the length of an array.
    let mut count = Some(b.int(1));
    let mut list: Option<BufferId> = None;
    for (level, size) in arrays.iter().zip(sizes) {
        let named = |name: &str| level.iter().find(|(other, _)| *other == name).map(|(_, buffer)| *buffer);
        let plain = level.iter().all(|(name, _)| ["pos", "crd"].contains(name));
        let (pos, crd) = (named("pos"), named("crd"));
        if let Some(pos) = pos {
            b.assume(Assumption::Nondecreasing(pos));
            at_least_positions(b, pos, count, list, 1);
        }
        if let Some(crd) = crd {
            // A fiber that holds one block has a last coordinate even if it is empty.
            if plain || pos.is_some() {
                b.assume(Assumption::Below { buffer: crd, bound: *size });
            }
            if pos.is_none() {
                at_least_positions(b, crd, count, list, 0);
            }
        }
        (count, list) = match (level.is_empty(), plain, crd, count) {
            (true, _, _, Some(count)) => (Some(b.call_in(Op::Mul, DType::I64, &[count, *size])), None),
            (false, true, Some(crd), _) => (None, Some(crd)),
            // Other levels count the positions below differently.
            _ => (None, None),
        };
    }
    if let Some(values) = values {
        at_least_positions(b, values, count, list, 0);
    }
}

/// An array has an element for each position above it, and `more` others.
fn at_least_positions(b: &mut Builder, buffer: BufferId, count: Option<ExprId>, list: Option<BufferId>, more: u32) {
    if let Some(count) = count {
        let more = b.int(i64::from(more));
        let least = b.add(count, more);
        b.assume(Assumption::Length { buffer, least });
    }
    if let Some(other) = list {
        b.assume(Assumption::Longer { buffer, other, more });
    }
}
