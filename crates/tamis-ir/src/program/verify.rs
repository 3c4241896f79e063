//! Program verifier. It checks these invariants of parsed and of built programs:
//!
//! - every id is an entry of its table, and operands of an expression come before it;
//! - every operator has as many operands as it takes, every access as many subscripts as its tensor
//!   has dimensions;
//! - every loop has an index of its own, used only inside it; a bound name is used only after its
//!   binding, in its block; a tensor only after its declaration, in its block; parameters are never
//!   declared, and written only if they are results;
//! - only entries of parameters are queried, with as many numbers as the query takes;
//! - an update's operator can update;
//! - every result is declared in the outermost block or is a parameter that is written, and there
//!   is at least one.
//!
//! A parsed program satisfies most of these by construction; passes that build programs are checked
//! by the same list.

use super::{Access, Block, EntryPart, Expr, ExprId, Program, StmtId, StmtKind, TensorId};
use crate::diag::{Code, Diagnostic};
use crate::format::MAX_RANK;

pub(super) fn verify(program: &Program) -> Vec<Diagnostic> {
    let mut verifier = ProgramVerifier { program, errors: Vec::new(), scope: Scope::default(), loops: Vec::new() };
    if verifier.tables() {
        verifier.scope.tensors.extend(program.params.iter().map(|p| p.0));
        verifier.block(&program.body);
        verifier.results();
    }
    verifier.errors
}

/// The names in scope.
#[derive(Clone, Default)]
struct Scope {
    tensors: Vec<u32>,
    indices: Vec<u32>,
    vars: Vec<u32>,
}

struct ProgramVerifier<'a> {
    program: &'a Program,
    errors: Vec<Diagnostic>,
    scope: Scope,
    /// Indices with a loop.
    loops: Vec<u32>,
}

impl ProgramVerifier<'_> {
    fn fail(&mut self, code: Code, message: String, stmt: Option<StmtId>) {
        let mut d = Diagnostic::new(code, message).help("see the invariants at the top of program/verify.rs");
        if let Some(stmt) = stmt.filter(|_| self.program.origin.source.is_some()) {
            d = d.label(self.program.origin.stmt(stmt), "in this statement");
        }
        self.errors.push(self.program.origin.attach(d));
    }

    fn tables(&mut self) -> bool {
        let p = self.program;
        for id in p.exprs.ids() {
            let fine = match p.expr(id) {
                Expr::Literal(_) => true,
                Expr::Index(index) => index.index() < p.indices.len(),
                Expr::Var(var) => var.index() < p.vars.len(),
                Expr::Size(tensor, _) => tensor.index() < p.tensors.len(),
                Expr::Entry(entry) => {
                    let accepted = match entry.what {
                        EntryPart::Count => 0..=0,
                        EntryPart::Coordinate(_) | EntryPart::Value => 1..=1,
                        EntryPart::First => 1..=MAX_RANK,
                    };
                    p.params.contains(&entry.tensor)
                        && entry.tensor.index() < p.tensors.len()
                        && accepted.contains(&entry.at.len())
                        && entry.at.iter().all(|operand| *operand < id)
                }
                Expr::Read(access) => self.access_fits(access) && access.subscripts.iter().all(|s| s.expr < id),
                Expr::Call(op, operands) => {
                    let (least, most) = op.info().arity;
                    (least..=most).contains(&operands.len()) && operands.iter().all(|operand| *operand < id)
                }
            };
            if !fine {
                let expr = format!("{:?}", p.expr(id));
                self.fail(Code::E0401, format!("the expression {expr} does not fit the program's tables"), None);
            }
        }
        self.errors.is_empty()
    }

    fn access_fits(&self, access: &Access) -> bool {
        let info = self.program.tensors.get(access.tensor.index());
        info.is_some_and(|info| info.rank == access.subscripts.len())
    }

    fn block(&mut self, block: &Block) {
        let outer = self.scope.clone();
        for stmt in block {
            let mut missing = None;
            self.program.visit_exprs(stmt, &mut |id| missing = missing.or(self.out_of_scope(id)));
            if let Some(id) = missing {
                let text = self.program.show(id);
                self.fail(Code::E0202, format!("`{text}` is used outside its scope"), Some(stmt.id));
            }
            match &stmt.kind {
                StmtKind::Declare(tensor) => {
                    let info = self.program.tensors.get(tensor.index());
                    if info.is_none_or(|info| info.declaration.is_none()) || self.scope.tensors.contains(&tensor.0) {
                        self.fail(Code::E0203, "a second declaration of the same name".into(), Some(stmt.id));
                    }
                    self.scope.tensors.push(tensor.0);
                }
                StmtKind::Let { var, .. } => self.scope.vars.push(var.0),
                StmtKind::For { index, body, .. } => {
                    if self.loops.contains(&index.0) || index.index() >= self.program.indices.len() {
                        self.fail(Code::E0203, "two loops share one index".into(), Some(stmt.id));
                    }
                    self.loops.push(index.0);
                    self.scope.indices.push(index.0);
                    self.block(body);
                    self.scope.indices.pop();
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StmtKind::Assign { target, update, .. } => {
                    if !self.access_fits(target) || !self.scope.tensors.contains(&target.tensor.0) {
                        self.fail(
                            Code::E0202,
                            "assignment to a tensor that is not declared here".into(),
                            Some(stmt.id),
                        );
                    } else if self.program.tensor(target.tensor).declaration.is_none()
                        && !self.program.results.contains(&target.tensor)
                    {
                        self.fail(Code::E0502, "an updated parameter is not a result".into(), Some(stmt.id));
                    }
                    if let Some(update) = update
                        && !update.op.can_update()
                    {
                        let message = format!("`{}` cannot update", update.op.info().name);
                        self.fail(Code::E0307, message, Some(stmt.id));
                    }
                }
            }
        }
        self.scope = Scope { indices: self.scope.indices.clone(), ..outer };
    }

    fn out_of_scope(&self, id: ExprId) -> Option<ExprId> {
        let inside = match self.program.expr(id) {
            Expr::Index(index) => self.scope.indices.contains(&index.0),
            Expr::Var(var) => self.scope.vars.contains(&var.0),
            Expr::Read(access) => self.scope.tensors.contains(&access.tensor.0),
            Expr::Size(tensor, _) => self.scope.tensors.contains(&tensor.0),
            _ => true,
        };
        (!inside).then_some(id)
    }

    fn results(&mut self) {
        let declared: Vec<u32> = self
            .program
            .body
            .iter()
            .filter_map(|stmt| match &stmt.kind {
                StmtKind::Declare(tensor) => Some(tensor.0),
                _ => None,
            })
            .collect();
        let computed = |id: &TensorId| {
            declared.contains(&id.0) || self.program.params.contains(id) && self.program.first_write(*id).is_some()
        };
        let missing = !self.program.results.iter().all(computed);
        if missing || self.program.results.is_empty() {
            self.fail(Code::E0108, "a result is not declared in the outermost block".into(), None);
        }
    }
}
