//! Lifecycles of tensors: in each statement of its declaring block, a tensor is read or updated,
//! not both.
//!
//! So a tensor can be frozen and thawed between those statements, and iterated over while it cannot
//! change. Plain scalars live in registers and are exempt. So are tensors whose levels are all
//! dense: each element has its own storage, and holds its last written value, or the fill.

use super::{Block, Expr, Program, ScalarKind, Stmt, StmtKind, Storage, TensorId};
use crate::diag::{Code, Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) fn check(program: &Program) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    check_block(program, &program.body, &mut errors);
    errors
}

fn check_block(program: &Program, block: &Block, errors: &mut Vec<Diagnostic>) {
    let updated = read_and_written(program, block);
    for (k, stmt) in block.iter().enumerate() {
        match &stmt.kind {
            StmtKind::Declare(tensor) if !is_free(program, *tensor) => {
                for at in updated.get(tensor).into_iter().flatten().filter(|at| **at > k) {
                    check_statement(program, *tensor, &block[*at], errors);
                }
            }
            StmtKind::For { body, .. } => check_block(program, body, errors),
            StmtKind::If { then, otherwise, .. } => {
                check_block(program, then, errors);
                check_block(program, otherwise, errors);
            }
            _ => {}
        }
    }
}

/// True if writes are visible to reads at once.
fn is_free(program: &Program, tensor: TensorId) -> bool {
    let info = program.tensor(tensor);
    match info.declaration.as_ref().map(|declaration| &declaration.storage) {
        Some(Storage::Scalar(kind)) => *kind == ScalarKind::Plain,
        Some(Storage::Tensor(spec)) => spec.with_rank(info.rank).is_ok_and(|format| format.is_all_dense()),
        None => false,
    }
}

/// For each tensor, the statements of a block that both read and write it, in order.
fn read_and_written(program: &Program, block: &Block) -> FxHashMap<TensorId, Vec<usize>> {
    let mut found: FxHashMap<TensorId, Vec<usize>> = FxHashMap::default();
    for (at, stmt) in block.iter().enumerate() {
        let (mut read, mut written) = (FxHashSet::default(), FxHashSet::default());
        super::visit::visit_stmt(stmt, &mut |stmt| {
            if let StmtKind::Assign { target, .. } = &stmt.kind {
                written.insert(target.tensor);
            }
            program.visit_exprs(stmt, &mut |id| {
                if let Expr::Read(access) = program.expr(id) {
                    read.insert(access.tensor);
                }
            });
        });
        for tensor in read.intersection(&written) {
            found.entry(*tensor).or_default().push(at);
        }
    }
    found
}

impl Program {
    /// True if a declared tensor is read in a statement that writes it, as in `x[i] = a[i] +
    /// x[i-1]`: every read then sees the last write.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// assert!(!program.is_read_while_written(program.results[0]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_read_while_written(&self, tensor: TensorId) -> bool {
        self.read_while_written()[tensor.index()]
    }

    /// [`Program::is_read_while_written`] of every tensor, in one pass.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let program = Notation::parse("y[i] = 2 * x[i]")?.plain()?;
    /// assert_eq!(program.read_while_written(), [false, false]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn read_while_written(&self) -> Vec<bool> {
        let mut found = vec![false; self.tensors.len()];
        let mut look = |block: &Block| {
            let updated = read_and_written(self, block);
            for (at, stmt) in block.iter().enumerate() {
                if let StmtKind::Declare(tensor) = &stmt.kind {
                    found[tensor.index()] |= updated.get(tensor).is_some_and(|list| list.iter().any(|k| *k > at));
                }
            }
        };
        look(&self.body);
        self.visit(&mut |stmt| match &stmt.kind {
            StmtKind::For { body, .. } => look(body),
            StmtKind::If { then, otherwise, .. } => {
                look(then);
                look(otherwise);
            }
            _ => {}
        });
        found
    }
}

fn check_statement(program: &Program, tensor: TensorId, stmt: &Stmt, errors: &mut Vec<Diagnostic>) {
    let mut uses = FirstUses { read: None, written: None };
    uses.collect(program, tensor, stmt);
    if let FirstUses { read: Some(read), written: Some(written) } = uses {
        let name = &program.tensor(tensor).name;
        let d = Diagnostic::new(Code::E0501, format!("`{name}` is read and written in the same scope"))
            .label(written, "written here")
            .label(read, "read here")
            .label(program.origin.tensor(tensor), "declared here")
            .note("within one statement of the block that declares it, a tensor is either read or updated")
            .help(format!("finish writing `{name}` before the statement that reads it, or declare a second tensor for the new values"));
        let d = match program.tensor(tensor).declaration.as_ref().map(|d| &d.storage) {
            Some(Storage::Tensor(_)) => d.help(format!(
                "or store it densely: elements of `{name} = tensor(\"dense\")` can be read as soon as they are written"
            )),
            _ => d.help(format!("or declare `{name} = scalar(...)`, which can be read as soon as it is written")),
        };
        let d = match updates_itself(program, tensor, stmt) {
            Some(place) => d.help(format!(
                "to update an element, write `{place} += ...`, `{place} = max({place}, ...)` or another operator"
            )),
            None => d,
        };
        errors.push(program.origin.attach(d));
    }
}

/// The target of an assignment whose value reads the same element, as in `y[i] = y[i] + a + b`.
fn updates_itself(program: &Program, tensor: TensorId, stmt: &Stmt) -> Option<String> {
    let mut found = None;
    let mut look = |stmt: &Stmt| {
        if let StmtKind::Assign { target, .. } = &stmt.kind
            && target.tensor == tensor
        {
            program.visit_exprs(stmt, &mut |id| {
                if matches!(program.expr(id), Expr::Read(read) if read == target) {
                    found.get_or_insert_with(|| program.access(target));
                }
            });
        }
    };
    super::visit::visit_stmt(stmt, &mut look);
    found
}

/// The first read and the first write of a tensor.
struct FirstUses {
    read: Option<Span>,
    written: Option<Span>,
}

impl FirstUses {
    fn collect(&mut self, program: &Program, tensor: TensorId, stmt: &Stmt) {
        program.visit_exprs(stmt, &mut |id| {
            if matches!(program.expr(id), Expr::Read(access) if access.tensor == tensor) {
                self.read.get_or_insert_with(|| program.origin.expr(stmt.id, id));
            }
        });
        match &stmt.kind {
            StmtKind::Assign { target, .. } if target.tensor == tensor => {
                self.written.get_or_insert_with(|| program.origin.target(stmt.id));
            }
            StmtKind::For { body, .. } => body.iter().for_each(|s| self.collect(program, tensor, s)),
            StmtKind::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).for_each(|s| self.collect(program, tensor, s));
            }
            _ => {}
        }
    }
}
