//! Programs that the compiler does not do yet, which the reference interpreter runs instead.

use tamis_ir::algebra::Op;
use tamis_ir::format::Leaf;
use tamis_ir::program::{
    Access, Block, Checked, Declaration, Expr, ExprId, Extent, LoopExtent, Program, ScalarKind, StmtKind, Storage,
};

/// Why a program that the pipeline takes is still interpreted: the lowerer writes dense arrays only, and relies on
/// subscripts that were found to stay in bounds before the program runs.
pub(crate) fn fallback(program: &Program, checked: &Checked) -> Option<String> {
    for (k, info) in program.tensors.iter().enumerate() {
        let name = &info.name;
        match &info.declaration {
            Some(Declaration { storage: Storage::Scalar(ScalarKind::Sparse), .. }) => {
                return Some(format!("`{name}` is a sparse scalar"));
            }
            Some(Declaration { storage: Storage::Tensor(_), .. }) => {
                let format = checked.formats[k].as_ref()?;
                let written = matches!(format.leaf(), Leaf::Element(_));
                if !format.is_all_dense() || !written || format.dim_order().is_none() {
                    return Some(format!("`{name}` is written in the format `{format}`"));
                }
            }
            _ => {}
        }
    }
    let dynamic = checked.extents.loops.contains(&LoopExtent::Dynamic);
    if dynamic && has_ranges(&program.body) {
        return Some("the bounds of a loop are computed while the program runs".to_string());
    }
    let mut free = None;
    visit(program, &program.body, false, &mut |access, guarded| {
        for subscript in access.subscripts.iter().filter(|subscript| !subscript.permissive) {
            let bare = matches!(program.expr(subscript.expr), Expr::Index(index) if inferred(&program.body, *index));
            if !bare && (guarded || !affine(program, subscript.expr)) {
                let shown = program.show(subscript.expr);
                free = Some(format!("`{shown}` subscripts `{}`", program.tensor(access.tensor).name));
            }
        }
    });
    free
}

fn has_ranges(block: &Block) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::For { extent, body, .. } => matches!(extent, Extent::Range(..)) || has_ranges(body),
        StmtKind::If { then, otherwise, .. } => has_ranges(then) || has_ranges(otherwise),
        _ => false,
    })
}

fn inferred(block: &Block, wanted: tamis_ir::program::IndexId) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::For { index, extent, body } => {
            (*index == wanted && *extent == Extent::Infer) || inferred(body, wanted)
        }
        StmtKind::If { then, otherwise, .. } => inferred(then, wanted) || inferred(otherwise, wanted),
        _ => false,
    })
}

fn affine(program: &Program, id: ExprId) -> bool {
    match program.expr(id) {
        Expr::Literal(_) | Expr::Index(_) | Expr::Size(..) => true,
        Expr::Call(Op::Add | Op::Sub, operands) => operands.iter().all(|e| affine(program, *e)),
        Expr::Call(Op::Mul, operands) => {
            let literal = |e: &ExprId| matches!(program.expr(*e), Expr::Literal(_));
            operands.iter().any(literal) && operands.iter().all(|e| affine(program, *e))
        }
        _ => false,
    }
}

/// Visits every access with whether it may not be reached for all indices.
fn visit(program: &Program, block: &Block, guarded: bool, see: &mut dyn FnMut(&Access, bool)) {
    for stmt in block {
        for root in program.roots(stmt) {
            reads(program, root, guarded, see);
        }
        match &stmt.kind {
            StmtKind::For { body, .. } => visit(program, body, guarded, see),
            StmtKind::If { then, otherwise, .. } => {
                visit(program, then, true, see);
                visit(program, otherwise, true, see);
            }
            StmtKind::Assign { target, .. } => see(target, guarded),
            _ => {}
        }
    }
}

fn reads(program: &Program, id: ExprId, guarded: bool, see: &mut dyn FnMut(&Access, bool)) {
    match program.expr(id) {
        Expr::Read(access) => {
            see(access, guarded);
            access.subscripts.iter().for_each(|s| reads(program, s.expr, guarded, see));
        }
        Expr::Call(op, operands) => {
            for (k, operand) in operands.iter().enumerate() {
                reads(program, *operand, guarded || (op.is_lazy() && k > 0), see);
            }
        }
        _ => {}
    }
}
