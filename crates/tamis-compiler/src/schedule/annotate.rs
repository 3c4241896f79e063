//! The commands `unroll(i, n)`, `vectorize(i)` and `parallelize(i)`: loop attributes, set only
//! where they are legal.

use super::Races;
use super::edit::ProgramEdit;
use super::legal;
use tamis_ir::Format;
use tamis_ir::diag::{Code, Result};
use tamis_ir::program::{Attributes, IndexId, StmtKind, Storage, visit_block};

pub(super) fn unroll(work: &mut ProgramEdit, index: &str, factor: i64) -> Result<()> {
    let index = work.find(index, 0)?;
    let factor = work.factor(factor, "the unroll factor", 1)?;
    attribute(work, index, "unroll", Some(factor))
}

pub(super) fn vectorize(work: &mut ProgramEdit, index: &str, lanes: Option<i64>) -> Result<()> {
    let index = work.find(index, 0)?;
    let lanes = lanes.map(|lanes| work.factor(lanes, "the vector length", 1)).transpose()?;
    let nest = work.loop_of(index)?.clone();
    let mut inner = None;
    if let StmtKind::For { body, .. } = &nest.kind {
        visit_block(body, &mut |stmt| {
            if matches!(stmt.kind, StmtKind::For { .. }) {
                inner.get_or_insert(stmt);
            }
        });
    }
    if let Some(inner) = inner {
        let d = work.fault(Code::E1206, "only an innermost loop can be vectorised", Some(0), "contains loops");
        let d = d.note(format!("{} is inside of it", work.place(inner)));
        return Err(d.help("vectorize the innermost loop, or reorder the loops first"));
    }
    legal::at_once(&work.program, &nest, index, true, &[], false).map_err(|conflict| refused(work, &conflict))?;
    attribute(work, index, "vectorize", lanes)
}

pub(super) fn parallelize(work: &mut ProgramEdit, index: &str, races: Races) -> Result<()> {
    let index = work.find(index, 0)?;
    let nest = work.loop_of(index)?.clone();
    let formats: Vec<Option<Format>> = work
        .program
        .tensors
        .iter()
        .map(|info| match info.declaration.as_ref().map(|declaration| &declaration.storage) {
            Some(Storage::Tensor(spec)) => spec.with_rank(info.rank).ok(),
            _ => None,
        })
        .collect();
    let reductions = races == Races::Reductions;
    legal::at_once(&work.program, &nest, index, reductions, &formats, true)
        .map_err(|conflict| refused(work, &conflict))?;
    attribute(work, index, "parallel", None)
}

fn refused(work: &ProgramEdit, conflict: &legal::Conflict) -> tamis_ir::Diagnostic {
    let message = "the iterations of this loop depend on each other";
    let d = work.fault(Code::E1206, message, Some(0), "cannot run in parallel");
    d.note(format!("{} {}", work.place(&conflict.stmt), conflict.why)).help(conflict.help.clone())
}

fn attribute(work: &mut ProgramEdit, index: IndexId, word: &str, number: Option<i64>) -> Result<()> {
    let mut added = Attributes::default();
    let number = number.and_then(|number| u64::try_from(number).ok());
    let arg = usize::from(number.is_some());
    added
        .add(word, number)
        .map_err(|why| work.fault(Code::E1207, why, Some(arg), "here").help("write a smaller number"))?;
    work.edit_loop(index, |_, block, at| {
        if let StmtKind::For { attributes, .. } = &mut block[at].kind {
            attributes.parallel |= added.parallel;
            attributes.unroll = added.unroll.or(attributes.unroll);
            attributes.vectorize = added.vectorize.or(attributes.vectorize);
        }
    });
    Ok(())
}
