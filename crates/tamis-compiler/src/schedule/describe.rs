//! One-line descriptions of statements, for diagnostics.

use tamis_ir::program::{Extent, Program, Stmt, StmtKind};

/// The first line of a statement's text.
pub(super) fn statement(program: &Program, stmt: &Stmt) -> String {
    match &stmt.kind {
        StmtKind::Declare(tensor) => format!("{} = ...", program.tensor(*tensor).name),
        StmtKind::Let { var, value } => format!("{} = {}", program.vars[var.index()], program.show(*value)),
        StmtKind::For { index, extent, attributes, .. } => {
            let extent = match extent {
                Extent::Infer => "_".to_string(),
                Extent::Range(start, stop) => format!("range({}, {})", program.show(*start), program.show(*stop)),
            };
            format!("for {} in {}:", program.indices[index.index()], attributes.around(extent))
        }
        StmtKind::If { cond, .. } => format!("if {}:", program.show(*cond)),
        StmtKind::Assign { target, update, value } => {
            let (target, value) = (program.access(target), program.show(*value));
            match update {
                None => format!("{target} = {value}"),
                Some(update) => match update.op.info().symbol {
                    Some(symbol) if update.extra.is_empty() => format!("{target} {symbol}= {value}"),
                    _ => format!("{target} = {}({target}, {value}, ...)", update.op.info().name),
                },
            }
        }
    }
}
