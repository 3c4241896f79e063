//! The command `convert(A, format)`: copies an operand into another format or order first and
//! redirects its reads.

use super::edit::ProgramEdit;
use super::precompute::literal;
use rustc_hash::FxHashMap;
use tamis_ir::diag::{Code, Result, did_you_mean};
use tamis_ir::format::Leaf;
use tamis_ir::program::{
    Access, Attributes, Block, Declaration, Expr, Extent, IndexId, Stmt, StmtId, StmtKind, Storage, Subscript,
    TensorId, TensorInfo,
};
use tamis_ir::{FormatSpec, Value};

/// Index names of the copy loops.
const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];

pub(super) fn run(work: &mut ProgramEdit, name: &str, format: &str) -> Result<()> {
    let program = &work.program;
    let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
    let Some(at) = names.iter().position(|other| *other == name) else {
        let d = work.fault(Code::E1202, format!("`{name}` is not a parameter"), Some(0), "no such operand");
        let d = match did_you_mean(name, names.iter().copied()) {
            Some(meant) => d.help(format!("did you mean `{meant}`?")),
            None => d,
        };
        return Err(d.help(format!(
            "the parameters are {}; declared tensors have the format of their declaration",
            names.join(", ")
        )));
    };
    let old = program.params[at];
    let rank = program.tensor(old).rank;
    if rank == 0 {
        let d = work.fault(Code::E1202, format!("`{name}` has no dimensions to convert"), Some(0), "a scalar");
        return Err(d.help("remove the command"));
    }
    let spec = FormatSpec::parse(format).and_then(|spec| spec.with_rank(rank).map(|_| spec)).map_err(|d| {
        let reported = work.fault(d.code, d.message.clone(), Some(1), "invalid format");
        d.help.iter().fold(reported, |reported, help| reported.help(help.clone()))
    })?;
    let stored = work.formats.get(at);
    let fill = match (spec.leaf(), stored.map(|format| format.leaf())) {
        (Leaf::Element(None), Some(Leaf::Element(Some(fill)))) => {
            Some(literal(fill)).filter(|fill| *fill != Value::I64(0))
        }
        (Leaf::Element(fill), _) => fill,
        (Leaf::Pattern, _) => None,
    };
    let dtype = (spec.leaf() == Leaf::Pattern).then_some(tamis_ir::DType::Bool);
    let order = stored.and_then(|format| format.dim_order()).unwrap_or_else(|| (0..rank).collect());
    let declaration = Declaration { storage: Storage::Tensor(spec), fill, dtype, shape: None };
    let new = TensorId(work.program.tensors.len() as u32);
    let new_name = work.fresh_name(&format!("{name}_converted"));
    work.program.tensors.push(TensorInfo { name: new_name, rank, declaration: Some(declaration) });
    let header = work.program.origin.tensor(old);
    work.program.origin.tensors.insert(new, header);

    redirect(work, old, new);

    let indices: Vec<IndexId> = (0..rank)
        .map(|dim| {
            let base = NAMES.get(dim).copied().unwrap_or("i");
            let taken = dim >= NAMES.len()
                || work.program.tensors.iter().any(|info| info.name == base)
                || work.program.vars.iter().any(|var| var == base);
            let name = if taken { work.fresh_name(base) } else { base.to_string() };
            let index = IndexId(work.program.indices.len() as u32);
            work.program.indices.push(name);
            work.program.origin.indices.insert(index, header);
            index
        })
        .collect();
    let subscripts: Vec<Subscript> = indices
        .iter()
        .map(|index| Subscript { expr: work.intern(Expr::Index(*index)), protocol: None, permissive: false })
        .collect();
    let value = work.intern(Expr::Read(Access { tensor: old, subscripts: subscripts.clone() }));
    let target = Access { tensor: new, subscripts };
    let first = work.program.body.first().map_or(StmtId(0), |stmt| stmt.id);
    let mut block: Block = vec![work.new_stmt(StmtKind::Assign { target, update: None, value }, first)];
    for dim in order.into_iter().rev() {
        let attributes = Attributes::default();
        let kind = StmtKind::For { index: indices[dim], extent: Extent::Infer, attributes, body: block };
        block = vec![work.new_stmt(kind, first)];
    }
    let declare = work.new_stmt(StmtKind::Declare(new), first);
    work.program.body.splice(0..0, [declare].into_iter().chain(block));
    Ok(())
}

/// Redirects all reads of one tensor to another one.
fn redirect(work: &mut ProgramEdit, old: TensorId, new: TensorId) {
    let mut known = FxHashMap::default();
    let mut body = std::mem::take(&mut work.program.body);
    // Subscripts may contain reads of the same tensor, so the innermost reads are replaced first.
    loop {
        let before = body.clone();
        body.iter_mut().for_each(|stmt| redirect_in(work, stmt, old, new, &mut known));
        if body == before {
            break;
        }
        known.clear();
    }
    work.program.body = body;
}

fn redirect_in(
    work: &mut ProgramEdit,
    stmt: &mut Stmt,
    old: TensorId,
    new: TensorId,
    known: &mut FxHashMap<tamis_ir::program::ExprId, tamis_ir::program::ExprId>,
) {
    let id = stmt.id;
    let mut change = |work: &mut ProgramEdit, expr: &mut tamis_ir::program::ExprId| {
        let by = |_: tamis_ir::program::ExprId, expr: &Expr| match expr {
            Expr::Read(access) if access.tensor == old => {
                Some(Expr::Read(Access { tensor: new, subscripts: access.subscripts.clone() }))
            }
            _ => None,
        };
        let before = *expr;
        *expr = work.replaced(before, &by, known);
        work.keep_span(id, before, *expr);
    };
    match &mut stmt.kind {
        StmtKind::Declare(_) => {}
        StmtKind::Let { value, .. } => change(work, value),
        StmtKind::For { extent, body, .. } => {
            if let Extent::Range(start, stop) = extent {
                change(work, start);
                change(work, stop);
            }
            body.iter_mut().for_each(|stmt| redirect_in(work, stmt, old, new, known));
        }
        StmtKind::If { cond, then, otherwise } => {
            change(work, cond);
            then.iter_mut().chain(otherwise).for_each(|stmt| redirect_in(work, stmt, old, new, known));
        }
        StmtKind::Assign { target, update, value } => {
            target.subscripts.iter_mut().for_each(|subscript| change(work, &mut subscript.expr));
            change(work, value);
            update.iter_mut().flat_map(|u| &mut u.extra).for_each(|extra| change(work, extra));
        }
    }
}
