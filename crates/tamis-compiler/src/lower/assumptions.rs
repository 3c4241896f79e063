//! Assumptions about parameters, for the passes after lowering: equal sizes, lengths of arrays,
//! sorted arrays and bounds of their elements.
//!
//! Every tensor whose levels keep their invariants fulfils them, so callers need not check
//! anything. Equal sizes are checked when the program is.

use super::bind::{BoundStorage, BoundTensor};
use tamis_ir::algebra::{DType, Op};
use tamis_ir::format::Format;
use tamis_ir::kernel::{Assumption, BufferId, Builder, ExprId};
use tamis_ir::program::{Access, Expr, Extent, Program, StmtKind};
use tamis_tensor::levels::{ArrayLength, Children, level_type};

/// Records what is known about the parameters of a program.
pub(super) fn assume(b: &mut Builder, program: &Program, bound: &[BoundTensor]) {
    sizes(b, program, bound);
    for id in &program.params {
        let bound = &bound[id.index()];
        if let BoundStorage::Levels { format, arrays, values } = &bound.storage {
            levels(b, format, &bound.extents, arrays, *values);
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

/// The arrays of levels have the lengths that their levels declare, and fulfil their guarantees.
fn levels(
    b: &mut Builder,
    format: &Format,
    extents: &[ExprId],
    arrays: &[Vec<(&'static str, BufferId)>],
    values: Option<BufferId>,
) {
    // The number of positions above a level: a product of extents, or the length of an array.
    let mut count = Some(b.int(1));
    let mut list: Option<BufferId> = None;
    for ((level, named), extent) in format.levels().iter().zip(arrays).zip(extents) {
        let Ok(row) = level_type(level.kind) else { return };
        for array in row.arrays {
            let Some(buffer) = row.find(array.role, named) else { continue };
            if array.nondecreasing {
                b.assume(Assumption::Nondecreasing(buffer));
            }
            if array.below_extent {
                b.assume(Assumption::Below { buffer, bound: *extent });
            }
            match array.length {
                ArrayLength::Parents => at_least_positions(b, buffer, count, list, 0),
                ArrayLength::ParentsPlusOne => at_least_positions(b, buffer, count, list, 1),
                // No expression of parameters counts stored elements.
                ArrayLength::Stored | ArrayLength::StoredPlusOne => {}
                ArrayLength::Cells => {
                    let cells = count.map(|count| b.call_in(Op::Mul, DType::I64, &[count, *extent]));
                    at_least_positions(b, buffer, cells, None, 0);
                }
            }
        }
        (count, list) = match row.children {
            Children::Cells => (count.map(|count| b.call_in(Op::Mul, DType::I64, &[count, *extent])), None),
            Children::Elements(role) => (None, row.find(role, named)),
            Children::LastOffset(_) => (None, None),
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
