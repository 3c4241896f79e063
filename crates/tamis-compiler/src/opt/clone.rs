//! Cloning of statements with fresh variables.

use super::{Editor, fold};
use rustc_hash::FxHashMap;
use tamis_ir::kernel::{Block, Expr, ExprId, Stmt, VarId};

/// Declares a fresh variable of the same type and maps the old one to it.
pub(super) fn renew(editor: &mut Editor, var: VarId, again: &mut FxHashMap<VarId, VarId>) -> VarId {
    let info = editor.kernel().var(var);
    let (name, dtype, mutable, origin) = (info.name.clone(), info.dtype, info.mutable, info.origin);
    let new = editor.new_var(name, dtype, mutable);
    editor.set_origin(new, origin);
    again.insert(var, new);
    new
}

/// Clones a statement; its declarations get fresh variables. The statement must not contain a
/// label.
pub(super) fn copy(editor: &mut Editor, stmt: &Stmt, again: &mut FxHashMap<VarId, VarId>) -> Stmt {
    let mut copy = stmt.clone();
    rename_in(editor, &mut copy, again);
    if let Some(var) = stmt.declares() {
        renew(editor, var, again);
    }
    if let Stmt::Let { var, .. }
    | Stmt::Assign { var, .. }
    | Stmt::Search { var, .. }
    | Stmt::For { var, .. }
    | Stmt::Insert { var, .. }
    | Stmt::Finalize { var, .. } = &mut copy
    {
        *var = again.get(var).copied().unwrap_or(*var);
    }
    for block in copy.blocks_mut() {
        *block = block.iter().map(|stmt| self::copy(editor, stmt, again)).collect();
    }
    copy
}

/// Substitutes variables in a whole block.
pub(super) fn rename(editor: &mut Editor, block: &mut Block, again: &FxHashMap<VarId, VarId>) {
    for stmt in block {
        rename_in(editor, stmt, again);
        stmt.blocks_mut().for_each(|inner| rename(editor, inner, again));
    }
}

fn rename_in(editor: &mut Editor, stmt: &mut Stmt, again: &FxHashMap<VarId, VarId>) {
    stmt.map_exprs(|id| renamed(editor, id, again));
}

/// Substitutes variables in an expression.
pub(super) fn renamed(editor: &mut Editor, id: ExprId, again: &FxHashMap<VarId, VarId>) -> ExprId {
    fold::rewrite(editor, id, &mut |editor, id| match editor.kernel().expr(id) {
        Expr::Var(var) => again.get(var).copied().map(|var| editor.get(var)),
        _ => None,
    })
}
