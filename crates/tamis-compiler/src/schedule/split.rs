//! The command `split(i, i0, i1, n)`: strip-mining of a loop by n. `i0` iterates over strips and
//! `i1` over the coordinates of a strip, so subscripts stay unchanged and the last strip needs no
//! guard.

use super::edit::ProgramEdit;
use tamis_ir::algebra::Op;
use tamis_ir::diag::Result;
use tamis_ir::program::{Attributes, Expr, Extent, IndexId, StmtKind};

pub(super) fn run(work: &mut ProgramEdit, index: &str, [outer, inner]: [&String; 2], factor: i64) -> Result<()> {
    let index = work.find(index, 0)?;
    split(work, index, 0, [(outer, 1), (inner, 2)], (factor, 3)).map(|_| ())
}

/// Splits a loop; returns the indices of the outer and the inner loop. The numbers are the
/// arguments of the command that name them.
pub(super) fn split(
    work: &mut ProgramEdit,
    index: IndexId,
    arg: usize,
    [(outer, outer_arg), (inner, inner_arg)]: [(&str, usize); 2],
    (factor, factor_arg): (i64, usize),
) -> Result<[IndexId; 2]> {
    let factor = work.factor(factor, "the chunk length", factor_arg)?;
    work.check_new(outer, outer_arg, index, &[index])?;
    work.check_new(inner, inner_arg, index, &[index])?;
    if outer == inner {
        let message = format!("`{outer}` is named twice");
        let d = work.fault(tamis_ir::Code::E1202, message, Some(inner_arg), "named before");
        return Err(d.help("give the two loops different names"));
    }
    let before = work.classes();
    let (start, stop) = work.bounds(index, arg)?;
    let n = work.int(factor);
    let rest = work.int(factor - 1);
    let length = work.binary(Op::Sub, stop, start);
    let length = work.binary(Op::Add, length, rest);
    let pieces = work.binary(Op::FloorDiv, length, n);
    let piece = work.new_index(outer, index);
    let at = work.intern(Expr::Index(piece));
    let at = work.binary(Op::Mul, at, n);
    let from = work.binary(Op::Add, start, at);
    let to = work.binary(Op::Add, from, n);
    let to = work.intern(Expr::Call(Op::Min, vec![to, stop]));
    let zero = work.int(0);
    work.program.indices[index.index()] = inner.to_string();
    work.edit_loop(index, |work, block, at| {
        if let StmtKind::For { extent, attributes, .. } = &mut block[at].kind {
            *extent = Extent::Range(from, to);
            // The asserted bound applies to the unsplit loop.
            attributes.bound = None;
        }
        let inside = block[at].clone();
        let like = inside.id;
        let attributes = Attributes::default();
        let kind = StmtKind::For { index: piece, extent: Extent::Range(zero, pieces), attributes, body: vec![inside] };
        block[at] = work.new_stmt(kind, like);
    });
    work.pin(&before, &[index], arg)?;
    Ok([piece, index])
}
