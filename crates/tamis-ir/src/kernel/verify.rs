//! Kernel verifier. It checks these invariants:
//!
//! - every id is an entry of its table, and operands of an expression come before it;
//! - every operator has as many operands as it takes; conditions are `bool`; indices and bounds are `i64`;
//! - a variable is declared before it is used, once, and in a block around its uses; only mutable ones are assigned, with
//!   values of their type; parameters are not declared;
//! - stored values have the buffer's type; inputs are not written; only outputs and scratch grow; a tile's elements are
//!   addressed below its size where the index is constant;
//! - no two buffers or variables have one name, and no two workspaces share a name or an array of values;
//! - promises are about parameters and inputs;
//! - a label is left only from within its block, and names one block.

use super::{Block, Elem, Expr, ExprId, Fact, Kernel, LabelId, Role, Stmt, VarId, Workspace};
use crate::algebra::{DType, Form, Op, Value};
use crate::format::Width;
use rustc_hash::FxHashSet;

/// Why a kernel is not well-formed, and the statement where that is, counted in the order of the text.
pub(super) type Misformed = (Option<usize>, String);

pub(super) fn verify(kernel: &Kernel) -> Result<(), String> {
    verify_at(kernel).map_err(|(_, reason)| reason)
}

/// True if a kernel can hold an operator on so many operands that are converted to a type.
pub(super) fn accepts(op: Op, operand: DType, count: usize) -> bool {
    let info = op.info();
    let (least, most) = info.arity;
    let lowered = match &info.form {
        Form::Elementwise(function) => function.is_defined_on(operand.kind()),
        // The builder replaces user-defined operators by their bodies.
        Form::Defined(_) => false,
        Form::Comparison(_) | Form::Predicate(_) | Form::And | Form::Or | Form::Not => true,
        Form::Select | Form::Coalesce | Form::Choose | Form::Conversion(_) => true,
    };
    lowered && (least..=most).contains(&count)
}

/// [`verify`], which also says where.
pub(super) fn verify_at(kernel: &Kernel) -> Result<(), Misformed> {
    tables(kernel).map_err(|reason| (None, reason))?;
    let mut verifier = Verifier {
        kernel,
        scope: kernel.params.clone(),
        visible: vec![false; kernel.vars.len()],
        declared: vec![false; kernel.vars.len()],
        labels: Vec::new(),
        used: FxHashSet::default(),
        workspaces: Vec::new(),
        stmts: 0,
    };
    for param in &kernel.params {
        verifier.visible[param.index()] = true;
        verifier.declared[param.index()] = true;
    }
    verifier.block(&kernel.body).map_err(|reason| (verifier.stmts.checked_sub(1), reason))
}

/// Checks the tables: names, expressions and preconditions.
fn tables(kernel: &Kernel) -> Result<(), String> {
    let mut names = FxHashSet::default();
    for name in kernel.buffers.iter().map(|b| &b.name).chain(kernel.vars.iter().map(|v| &v.name)) {
        if !names.insert(name.as_str()) {
            return Err(format!("`{name}` names two things"));
        }
    }
    if let Some(param) = kernel.params.iter().find(|param| param.index() >= kernel.vars.len()) {
        return Err(format!("{param:?} does not exist"));
    }
    for id in kernel.exprs.ids() {
        let fine = match kernel.expr(id) {
            Expr::Const(value) => value.dtype() == kernel.exprs.dtype(id),
            Expr::Var(var) => var.index() < kernel.vars.len(),
            Expr::Load(buffer, index) => {
                buffer.index() < kernel.buffers.len() && *index < id && kernel.exprs.dtype(*index) == DType::I64
            }
            Expr::Call(op, operand, operands) => {
                accepts(*op, *operand, operands.len()) && operands.iter().all(|operand| *operand < id)
            }
        };
        if !fine {
            return Err(format!("the expression {:?} is not well-formed", kernel.expr(id)));
        }
    }
    for fact in &kernel.facts {
        let mut fine = true;
        if let Some(expr) = fact.expr() {
            let expected = if matches!(fact, Fact::Holds(_)) { DType::Bool } else { DType::I64 };
            fine = kernel.exprs.dtype(expr) == expected;
            kernel.visit_expr(expr, &mut |expr| match expr {
                Expr::Var(var) => fine &= kernel.params.contains(var) && !kernel.var(*var).mutable,
                Expr::Load(..) => fine = false,
                _ => {}
            });
        }
        let inputs = match *fact {
            Fact::Holds(_) => [None, None],
            Fact::Spare(buffer) => {
                fine &= kernel.buffers.get(buffer.index()).is_some_and(|info| info.role != Role::Input);
                [None, None]
            }
            Fact::Length { buffer, .. } | Fact::Increasing(buffer) | Fact::Below { buffer, .. } => [Some(buffer), None],
            Fact::Longer { buffer, other, .. } => [Some(buffer), Some(other)],
        };
        for buffer in inputs.into_iter().flatten() {
            fine &= kernel.buffers.get(buffer.index()).is_some_and(|info| info.role == Role::Input);
        }
        if !fine {
            let known = inputs.into_iter().flatten().all(|buffer| buffer.index() < kernel.buffers.len());
            let shown = if known { kernel.show_fact(*fact) } else { format!("{fact:?}") };
            return Err(format!("the assumption `{shown}` is not about parameters and inputs"));
        }
    }
    Ok(())
}

struct Verifier<'a> {
    kernel: &'a Kernel,
    /// The variables in scope, outer ones first.
    scope: Vec<VarId>,
    /// For each variable, whether it is in scope.
    visible: Vec<bool>,
    /// For each variable, whether it has been declared.
    declared: Vec<bool>,
    /// Labels around this place.
    labels: Vec<LabelId>,
    used: FxHashSet<LabelId>,
    /// The workspaces so far.
    workspaces: Vec<&'a Workspace>,
    /// The number of statements so far.
    stmts: usize,
}

impl<'a> Verifier<'a> {
    fn block(&mut self, block: &'a Block) -> Result<(), String> {
        let outer = self.scope.len();
        block.iter().try_for_each(|stmt| self.stmt(stmt))?;
        self.leave(outer);
        Ok(())
    }

    /// Ends the scope of all variables but the outermost `outer`.
    fn leave(&mut self, outer: usize) {
        for var in self.scope.drain(outer..) {
            self.visible[var.index()] = false;
        }
    }

    fn declare(&mut self, var: VarId, dtype: DType) -> Result<(), String> {
        let Some(info) = self.kernel.vars.get(var.index()) else { return Err(format!("{var:?} does not exist")) };
        if self.declared[var.index()] {
            return Err(format!("`{}` is declared twice", info.name));
        }
        if info.dtype != dtype {
            return Err(format!("`{}` is {}, but starts as {dtype}", info.name, info.dtype));
        }
        self.declared[var.index()] = true;
        self.visible[var.index()] = true;
        self.scope.push(var);
        Ok(())
    }

    /// The expression is of the type, and uses only what is in scope.
    fn expr(&self, id: ExprId, expected: Option<DType>) -> Result<DType, String> {
        let dtype = self.kernel.exprs.dtype(id);
        if let Some(expected) = expected.filter(|expected| *expected != dtype) {
            return Err(format!("`{}` is {dtype}, not {expected}", self.kernel.show(id)));
        }
        // Operands are shared: each is looked at once, or a small kernel could take forever.
        let mut open = vec![id];
        let mut seen = FxHashSet::default();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.kernel.expr(id) {
                Expr::Var(var) if !self.visible[var.index()] => {
                    return Err(format!("`{}` is used out of scope", self.kernel.var(*var).name));
                }
                Expr::Load(buffer, index) => {
                    let buffer = self.kernel.buffer(*buffer);
                    if let (Role::Tile(size), Expr::Const(Value::I64(k))) = (buffer.role, self.kernel.expr(*index))
                        && !(0..i64::from(size)).contains(k)
                    {
                        return Err(format!("`{}` has no element {k}", buffer.name));
                    }
                    open.push(*index);
                }
                Expr::Call(_, _, operands) => open.extend(operands),
                _ => {}
            }
        }
        Ok(dtype)
    }

    fn index(&self, id: ExprId) -> Result<(), String> {
        self.expr(id, Some(DType::I64)).map(|_| ())
    }

    /// The arrays of a workspace can grow, are of its own, and hold what it says.
    fn workspace(&mut self, workspace: &'a Workspace) -> Result<(), String> {
        let mut seen = Vec::new();
        for id in workspace.buffers() {
            let info = self.kernel.buffers.get(id.index()).ok_or(format!("{id:?} does not exist"))?;
            let wide = !matches!(info.elem, Elem::Index(crate::format::Width::U8 | crate::format::Width::U16));
            let fits = match info.elem {
                _ if id == workspace.values => info.elem == Elem::Value(workspace.start.dtype()),
                Elem::Index(_) => wide,
                Elem::Value(_) => false,
            };
            if !fits || !matches!(info.role, Role::Output | Role::Scratch) || seen.contains(&id) {
                return Err(format!("`{}` cannot be an array of `{}`", info.name, workspace.name));
            }
            seen.push(id);
        }
        if self.workspaces.iter().any(|other| std::ptr::eq(*other, workspace)) {
            return Ok(());
        }
        let same = |other: &&&Workspace| other.name == workspace.name || other.values == workspace.values;
        match self.workspaces.iter().find(same) {
            Some(other) if **other != *workspace => Err(format!("`{}` is two workspaces", workspace.name)),
            _ => {
                self.workspaces.push(workspace);
                Ok(())
            }
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), String> {
        self.stmts += 1;
        let kernel = self.kernel;
        let buffer = |id: &super::BufferId| kernel.buffers.get(id.index()).ok_or(format!("{id:?} does not exist"));
        match stmt {
            Stmt::Let { var, value } => {
                let dtype = self.expr(*value, None)?;
                self.declare(*var, dtype)
            }
            Stmt::Assign { var, value } => {
                let info = kernel.var(*var);
                if !info.mutable || !self.visible[var.index()] {
                    return Err(format!("`{}` cannot be assigned here", info.name));
                }
                self.expr(*value, Some(info.dtype)).map(|_| ())
            }
            Stmt::Store { buffer: id, index, value } => {
                let info = buffer(id)?;
                if info.role == Role::Input {
                    return Err(format!("the input `{}` is written", info.name));
                }
                self.index(*index)?;
                self.expr(*value, Some(info.elem.dtype())).map(|_| ())
            }
            Stmt::For { var, start, stop, body, .. } => {
                self.index(*start)?;
                self.index(*stop)?;
                let outer = self.scope.len();
                self.declare(*var, DType::I64)?;
                self.block(body)?;
                self.leave(outer);
                Ok(())
            }
            Stmt::While { cond, body } => {
                self.expr(*cond, Some(DType::Bool))?;
                self.block(body)
            }
            Stmt::If { cond, then, otherwise } => {
                self.expr(*cond, Some(DType::Bool))?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::Labelled { label, body } => {
                if self.used.contains(label) || label.0 >= kernel.labels {
                    return Err(format!("`l{}` names two blocks, or none", label.0));
                }
                self.used.insert(*label);
                self.labels.push(*label);
                self.block(body)?;
                self.labels.pop();
                Ok(())
            }
            Stmt::Break(label) if self.labels.contains(label) => Ok(()),
            Stmt::Break(label) => Err(format!("`l{}` is not a label of an enclosing block", label.0)),
            Stmt::Grow { buffer: id, len, fill } => {
                let info = buffer(id)?;
                if !matches!(info.role, Role::Output | Role::Scratch) {
                    return Err(format!("`{}` cannot grow", info.name));
                }
                if let Some(fill) = fill.filter(|fill| info.elem.dtype() != fill.dtype()) {
                    return Err(format!("`{}` cannot grow with {fill}", info.name));
                }
                self.index(*len)
            }
            Stmt::Fill { buffer: id, start, len, value } => {
                let info = buffer(id)?;
                if info.role == Role::Input {
                    return Err(format!("the input `{}` is written", info.name));
                }
                self.index(*start)?;
                self.index(*len)?;
                self.expr(*value, Some(info.elem.dtype())).map(|_| ())
            }
            Stmt::Search { var, buffer: id, start, stop, key, back: _ } => {
                let info = buffer(id)?;
                if !matches!(info.elem, Elem::Index(_)) {
                    return Err(format!("`{}` does not hold coordinates to search", info.name));
                }
                [start, stop, key].into_iter().try_for_each(|e| self.index(*e))?;
                self.declare(*var, DType::I64)
            }
            Stmt::Sort { buffer: id, start, stop, flags } => {
                let info = buffer(id)?;
                if info.role == Role::Input || !matches!(info.elem, Elem::Index(_)) {
                    return Err(format!("`{}` cannot be sorted", info.name));
                }
                if let Some(flags) = flags {
                    let info = buffer(flags)?;
                    if info.elem != Elem::Index(Width::U8) || flags == id {
                        return Err(format!("`{}` cannot be flags of a list", info.name));
                    }
                }
                self.index(*start)?;
                self.index(*stop)
            }
            Stmt::Reset { workspace, sizes: exprs } | Stmt::Insert { workspace, coordinates: exprs, .. } => {
                self.workspace(workspace)?;
                if exprs.len() != workspace.coordinates.len() {
                    return Err(format!("`{}` has {} dimensions", workspace.name, workspace.coordinates.len()));
                }
                exprs.iter().try_for_each(|e| self.index(*e))?;
                stmt.declares().map_or(Ok(()), |var| self.declare(var, DType::I64))
            }
            Stmt::Finalize { var, workspace } => {
                self.workspace(workspace)?;
                self.declare(*var, DType::I64)
            }
            Stmt::Require { cond, .. } => self.expr(*cond, Some(DType::Bool)).map(|_| ()),
        }
    }
}
