//! Array renaming: an element-wise update of a temporary becomes an assignment to a new version.
//!
//! In: a checked program. Out: the same program, in which no statement at the top level updates a
//! sparse tensor element by element from its old values, as `T[i] *= 2` does. Such a statement
//! writes the tensor anew: `T[i] = T_before[i] * 2`, where `T_before` is the tensor of the
//! statements before. So it visits what `T_before` stores, in order, and needs no search, and no
//! workspace.
//!
//! Dense tensors are updated in place, and so are tensors that take elements in any order (`hash`,
//! `bytemap`) where an operator such as `+=` leaves most elements alone. Tensors keep their ids;
//! versions come last.

use super::copy_in::{Copier, is_elementwise, writes};
use tamis_ir::algebra::Op;
use tamis_ir::format::LevelSpec;
use tamis_ir::program::{Checked, Expr, Program, Stmt, StmtKind, Storage, TensorId, TensorInfo, visit_block};
use tamis_tensor::levels::level_type;

/// A program with renamed versions of the tensors that it updates, or none if nothing changes.
///
/// ```
/// use tamis_compiler::schedule::rename_updated;
/// use tamis_ir::{FormatSpec, Program, interp};
/// use tamis_tensor::Tensor;
/// let program = Program::parse("
/// def f(A):
///     T = tensor('sparse')
///     for i in _:
///         T[i] = A[i]
///     for i in _:
///         T[i] *= 2
///     return T
/// ")?;
/// let format = FormatSpec::parse("sparse")?.with_rank(1)?;
/// let a = Tensor::from_dense(&[2], vec![0.0, 5.0].into(), &format, 0.0.into())?;
/// let checked = program.check(&[interp::param_type(&a)])?;
/// assert_eq!(rename_updated(&program, &checked).unwrap().to_string(), "\
/// def f(A):
///     T_before = tensor(\"sparse\", dtype=\"f64\")
///     for i in _:
///         T_before[i] = A[i]
///     T = tensor(\"sparse\", dtype=\"f64\")
///     for i in _:
///         T[i] = T_before[i] * 2
///     return T
/// ");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn rename_updated(program: &Program, checked: &Checked) -> Option<Program> {
    let mut renamed: Option<Program> = None;
    for k in 0..program.tensors.len() {
        let Some(format) = checked.formats[k].as_ref().filter(|format| !format.is_all_dense()) else { continue };
        let tensor = TensorId(k as u32);
        if !is_declared_tensor(program, tensor) {
            continue;
        }
        let inserts = |level: &LevelSpec| level_type(level.kind).is_ok_and(|row| row.capabilities.insert);
        let in_place = format.levels().iter().all(inserts);
        while let Some(update) = updated_at(renamed.as_ref().unwrap_or(program), tensor, in_place) {
            let program = renamed.get_or_insert_with(|| program.clone());
            rename(program, checked, tensor, update);
        }
    }
    let mut program = renamed?;
    program.compact();
    program.verify().ok()?;
    Some(program)
}

fn is_declared_tensor(program: &Program, tensor: TensorId) -> bool {
    let declaration = program.tensor(tensor).declaration.as_ref();
    declaration.is_some_and(|declaration| matches!(declaration.storage, Storage::Tensor(_)))
}

/// The first top-level statement that updates a tensor element by element after another one wrote
/// it. Sums and extrema do not count where elements are updated `in_place`.
fn updated_at(program: &Program, tensor: TensorId, in_place: bool) -> Option<usize> {
    let declared = program.body.iter().position(|stmt| stmt.kind == StmtKind::Declare(tensor))?;
    let mut written = (declared..program.body.len()).filter(|at| writes(&program.body[*at], tensor));
    written.next()?;
    written.find(|at| {
        let stmt = &program.body[*at];
        reads_old_values(program, tensor, stmt, in_place) && is_elementwise(program, tensor, stmt)
    })
}

/// Whether a statement updates a tensor, other than by sums and extrema `in_place`, or reads it.
fn reads_old_values(program: &Program, tensor: TensorId, stmt: &Stmt, in_place: bool) -> bool {
    let accumulates = |op: Op| matches!(op, Op::Add | Op::Sub | Op::Min | Op::Max | Op::Or | Op::And);
    let mut found = false;
    visit_block(std::slice::from_ref(stmt), &mut |stmt| {
        if let StmtKind::Assign { target, update: Some(update), .. } = &stmt.kind {
            found |= target.tensor == tensor && !(in_place && accumulates(update.op));
        }
        program.visit_exprs(stmt, &mut |id| {
            found |= matches!(program.expr(id), Expr::Read(access) if access.tensor == tensor);
        });
    });
    found
}

/// Gives the statements before an update a version of their own.
fn rename(program: &mut Program, checked: &Checked, tensor: TensorId, update: usize) {
    let info = program.tensor(tensor).clone();
    let mut name = format!("{}_before", info.name);
    while program.tensors.iter().any(|other| other.name == name)
        || program.indices.iter().chain(&program.vars).any(|other| *other == name)
    {
        name.push('_');
    }
    // Inference on fewer statements might give each version another type.
    let dtype = checked.types.tensors[tensor.index()];
    let mut declaration = info.declaration.clone();
    if let Some(declaration) = &mut declaration {
        declaration.dtype = Some(dtype);
    }
    let version = TensorId(program.tensors.len() as u32);
    program.tensors[tensor.index()].declaration.clone_from(&declaration);
    program.tensors.push(TensorInfo { name, rank: info.rank, declaration });
    if let Some(span) = program.origin.tensors.get(&tensor).copied() {
        program.origin.tensors.insert(version, span);
    }
    let mut body = std::mem::take(&mut program.body);
    let mut copier = Copier::new(program, tensor);
    for stmt in &mut body[..update] {
        if stmt.kind == StmtKind::Declare(tensor) {
            stmt.kind = StmtKind::Declare(version);
        }
        copier.rename(stmt, version);
    }
    // The update reads the version, and writes the tensor.
    copier.assign_from_operand(&mut body[update], tensor);
    copier.rename_reads(&mut body[update], version);
    let declare = copier.stmt(StmtKind::Declare(tensor));
    body.insert(update, declare);
    program.body = body;
}
