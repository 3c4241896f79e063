//! Kernel verifier. It checks these invariants:
//!
//! - every id is an entry of its table, and operands of an expression come before it;
//! - every operator has as many operands as it takes; conditions are `bool`; indices and bounds are `i64`;
//! - a variable is declared before it is used, once, and in a block around its uses; only mutable ones are assigned, with
//!   values of their type; parameters are not declared;
//! - stored values have the buffer's type; inputs are not written; only outputs and scratch grow; a tile's elements are
//!   addressed below its size where the index is constant;
//! - no two buffers or variables have one name, and no two workspaces share a name or an array of values;
//! - assumptions are about parameters and inputs;
//! - a break is inside the block of its label, and names one block;
//! - lanes: vectors have a power of two of them, at most 64; operands of an operator have the same number, or are
//!   single values; conditions, bounds and sizes are single values; a store has as many lanes as its index;
//! - a reduction across lanes is the whole value of a declaration or an assignment;
//! - a parallel loop, and the loops of grids, blocks and lanes, assign no variable from outside, grow nothing, use no
//!   workspace, and are not left by a break; their counters are constant;
//! - a vector loop consists of declarations, stores, conditionals and reductions; a variable from outside that it
//!   assigns is updated by one associative and commutative operator, and read nowhere else; iterations that an
//!   overlapping tail repeats update nothing and read no buffer that they write;
//! - a barrier stands in the body of a loop over the threads of a block, and no variable lives across it;
//! - an atomic update is by an associative and commutative operator on values of the buffer's type.

use super::build::result_type;
use super::loops::reductions;
use super::{
    Assumption, Block, BufferId, Chunks, Elem, Expr, ExprId, Gemm, Kernel, LabelId, LoopKind, MAX_LANES, Role, Stmt,
    Tail, VarId, VectorExpr, Workspace,
};
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

/// True if a number of lanes can be that of a vector.
fn is_vector(lanes: u16) -> bool {
    (2..=MAX_LANES).contains(&lanes) && lanes.is_power_of_two()
}

/// True if the types and lanes of a vector's operands fit.
pub(super) fn vector_fits(kernel: &Kernel, vector: VectorExpr) -> bool {
    let (dtype, lanes_of) = (|id| kernel.exprs.dtype(id), |id| kernel.exprs.lanes(id));
    match vector {
        VectorExpr::Ramp { start, lanes, .. } => dtype(start) == DType::I64 && lanes_of(start) == 1 && is_vector(lanes),
        VectorExpr::Splat { value, lanes } => lanes_of(value) == 1 && is_vector(lanes),
        VectorExpr::Masked { buffer, index, mask, otherwise } => {
            let lanes = lanes_of(index);
            let elem = kernel.buffers.get(buffer.index()).map(|info| info.elem.dtype());
            is_vector(lanes)
                && lanes_of(mask) == lanes
                && [1, lanes].contains(&lanes_of(otherwise))
                && (dtype(index), dtype(mask)) == (DType::I64, DType::Bool)
                && elem == Some(dtype(otherwise))
        }
        VectorExpr::Reduce { op, value } => is_vector(lanes_of(value)) && combines(op, dtype(value)),
    }
}

/// True if an operator combines two values of a type into one, whatever their order.
pub(super) fn combines(op: Op, dtype: DType) -> bool {
    let info = op.info();
    let lawful = info.associative && info.commutative && accepts(op, dtype, 2);
    lawful && result_type(op, dtype, 2) == dtype
}

/// [`verify`], which also says where.
pub(super) fn verify_at(kernel: &Kernel) -> Result<(), Misformed> {
    tables(kernel).map_err(|reason| (None, reason))?;
    let mut verifier = KernelVerifier {
        kernel,
        scope: kernel.params.clone(),
        visible: vec![false; kernel.vars.len()],
        declared: vec![false; kernel.vars.len()],
        labels: Vec::new(),
        used: FxHashSet::default(),
        workspaces: Vec::new(),
        threads: None,
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
                let lanes = kernel.exprs.lanes(id);
                let fit = |operand: &ExprId| *operand < id && [1, lanes].contains(&kernel.exprs.lanes(*operand));
                accepts(*op, *operand, operands.len()) && operands.iter().all(fit)
            }
            Expr::Vector(vector) => vector.operands().all(|operand| operand < id) && vector_fits(kernel, *vector),
        };
        if !fine {
            return Err(format!("the expression {:?} is not well-formed", kernel.expr(id)));
        }
    }
    for assumption in &kernel.assumptions {
        let mut fine = true;
        if let Some(expr) = assumption.expr() {
            let expected = if matches!(assumption, Assumption::Holds(_)) { DType::Bool } else { DType::I64 };
            fine = kernel.exprs.dtype(expr) == expected;
            kernel.visit_expr(expr, &mut |expr| match expr {
                Expr::Var(var) => fine &= kernel.params.contains(var) && !kernel.var(*var).mutable,
                Expr::Load(..) => fine = false,
                _ => {}
            });
        }
        let inputs = match *assumption {
            Assumption::Holds(_) => [None, None],
            Assumption::SpareCapacity(buffer) => {
                fine &= kernel.buffers.get(buffer.index()).is_some_and(|info| info.role != Role::Input);
                [None, None]
            }
            Assumption::Length { buffer, .. }
            | Assumption::Nondecreasing(buffer)
            | Assumption::Below { buffer, .. } => [Some(buffer), None],
            Assumption::Longer { buffer, other, .. } => [Some(buffer), Some(other)],
        };
        for buffer in inputs.into_iter().flatten() {
            fine &= kernel.buffers.get(buffer.index()).is_some_and(|info| info.role == Role::Input);
        }
        if !fine {
            let known = inputs.into_iter().flatten().all(|buffer| buffer.index() < kernel.buffers.len());
            let shown = if known { kernel.show_assumption(*assumption) } else { format!("{assumption:?}") };
            return Err(format!("the assumption `{shown}` is not about parameters and inputs"));
        }
    }
    Ok(())
}

struct KernelVerifier<'a> {
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
    /// Directly in the body of a loop over threads of a block: the number of variables in scope before its first
    /// statement.
    threads: Option<usize>,
    /// The number of statements so far.
    stmts: usize,
}

impl<'a> KernelVerifier<'a> {
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

    /// A variable of one lane.
    fn declare(&mut self, var: VarId, dtype: DType) -> Result<(), String> {
        self.declare_lanes(var, dtype, 1)
    }

    fn declare_lanes(&mut self, var: VarId, dtype: DType, lanes: u16) -> Result<(), String> {
        let Some(info) = self.kernel.vars.get(var.index()) else { return Err(format!("{var:?} does not exist")) };
        if self.declared[var.index()] {
            return Err(format!("`{}` is declared twice", info.name));
        }
        if info.dtype != dtype {
            return Err(format!("`{}` is {}, but starts as {dtype}", info.name, info.dtype));
        }
        if info.lanes != lanes {
            return Err(format!("`{}` has {} lanes, but starts with {lanes}", info.name, info.lanes));
        }
        self.declared[var.index()] = true;
        self.visible[var.index()] = true;
        self.scope.push(var);
        Ok(())
    }

    /// The expression is a single value of the type, and uses only what is in scope.
    fn expr(&self, id: ExprId, expected: Option<DType>) -> Result<DType, String> {
        self.lanes(id, &[1])?;
        self.typed(id, expected)
    }

    /// The expression has one of these numbers of lanes.
    fn lanes(&self, id: ExprId, expected: &[u16]) -> Result<(), String> {
        let lanes = self.kernel.exprs.lanes(id);
        match expected.contains(&lanes) {
            true => Ok(()),
            false => Err(format!("`{}` has {lanes} lanes, not {}", self.kernel.show(id), expected[expected.len() - 1])),
        }
    }

    /// The index and the value of a store: a value for each lane of the index, or one for all.
    fn stored(&self, id: BufferId, index: ExprId, value: ExprId) -> Result<(), String> {
        let info = self.kernel.buffers.get(id.index()).ok_or(format!("{id:?} does not exist"))?;
        if info.role == Role::Input {
            return Err(format!("the input `{}` is written", info.name));
        }
        self.typed(index, Some(DType::I64))?;
        self.lanes(value, &[1, self.kernel.exprs.lanes(index)])?;
        self.typed(value, Some(info.elem.dtype())).map(|_| ())
    }

    /// The expression is of the type, and uses only what is in scope.
    fn typed(&self, id: ExprId, expected: Option<DType>) -> Result<DType, String> {
        let dtype = self.kernel.exprs.dtype(id);
        if let Some(expected) = expected.filter(|expected| *expected != dtype) {
            return Err(format!("`{}` is {dtype}, not {expected}", self.kernel.show(id)));
        }
        let whole = id;
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
                    if let (Some(size), Expr::Const(Value::I64(k))) = (buffer.role.size(), self.kernel.expr(*index))
                        && !(0..i64::from(size)).contains(k)
                    {
                        return Err(format!("`{}` has no element {k}", buffer.name));
                    }
                    open.push(*index);
                }
                Expr::Call(_, _, operands) => open.extend(operands),
                Expr::Vector(VectorExpr::Reduce { .. }) if id != whole => {
                    return Err(format!("`{}` is not the whole value of a variable", self.kernel.show(id)));
                }
                Expr::Vector(vector) => open.extend(vector.operands()),
                Expr::Const(_) | Expr::Var(_) => {}
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

    /// What a loop's kind needs by the form of its body.
    fn loop_kind(&self, counter: VarId, kind: LoopKind, body: &'a Block) -> Result<(), String> {
        let kernel = self.kernel;
        let info = kernel.vars.get(counter.index()).ok_or(format!("{counter:?} does not exist"))?;
        let name = &info.name;
        match kind {
            LoopKind::Serial | LoopKind::Unrolled => return Ok(()),
            _ if info.mutable => return Err(format!("the counter `{name}` changes, so its loop must be serial")),
            LoopKind::Vector { lanes, .. } if !is_vector(lanes) => {
                return Err(format!("a vector loop cannot have {lanes} lanes"));
            }
            LoopKind::Parallel { chunks: Chunks::Work(positions), .. } => {
                let positions = kernel.buffers.get(positions.index());
                if !positions.is_some_and(|info| matches!(info.elem, Elem::Index(_))) {
                    return Err(format!("the work of the loop over `{name}` is not that of positions"));
                }
            }
            LoopKind::Vector { .. } | LoopKind::Parallel { .. } | LoopKind::Grid | LoopKind::Block | LoopKind::Lane => {
            }
        }
        let mut reason = None;
        let mut declared = Vec::new();
        let mut written = Vec::new();
        let vector = matches!(kind, LoopKind::Vector { .. });
        for stmt in body {
            stmt.visit(&mut |stmt| {
                declared.extend(stmt.declares());
                written.extend(stmt.writes());
                let permitted = match stmt {
                    Stmt::Grow { .. } | Stmt::Reset { .. } | Stmt::Insert { .. } | Stmt::Finalize { .. } => false,
                    Stmt::Let { var, .. } if vector => kernel.vars.get(var.index()).is_some_and(|v| v.lanes == 1),
                    Stmt::Assign { var, .. } if !vector => !self.visible.get(var.index()).is_some_and(|seen| *seen),
                    Stmt::Store { index, .. } | Stmt::Update { index, .. } if vector => kernel.exprs.lanes(*index) == 1,
                    Stmt::Assign { .. } | Stmt::If { .. } | Stmt::Prefetch { .. } => true,
                    _ => !vector,
                };
                if !permitted && reason.is_none() {
                    reason =
                        Some(format!("the loop over `{name}` cannot be {}, because of `{}`", kind.name(), stmt.kind()));
                }
            });
        }
        if let Some(reason) = reason {
            return Err(reason);
        }
        let LoopKind::Vector { tail, .. } = kind else { return Ok(()) };
        let found = reductions(kernel, body, &declared)
            .map_err(|var| format!("`{}` is assigned by a vector loop, but is no reduction", kernel.var(var).name))?;
        let mut read = None;
        let mut repeats = tail == Tail::Overlapping && !found.is_empty();
        for stmt in body {
            stmt.visit(&mut |stmt| {
                repeats |= tail == Tail::Overlapping && matches!(stmt, Stmt::Update { .. });
                stmt.each_expr(|expr| {
                    kernel.visit_expr(expr, &mut |expr| match expr {
                        Expr::Var(var) => {
                            let own = matches!(stmt, Stmt::Assign { var: assigned, .. } if assigned == var);
                            if !own && found.iter().any(|reduction| reduction.var == *var) {
                                read = Some(*var);
                            }
                        }
                        Expr::Load(buffer, _) => repeats |= tail == Tail::Overlapping && written.contains(buffer),
                        _ => {}
                    });
                });
            });
        }
        match (read, repeats) {
            (Some(var), _) => Err(format!("`{}` is read before its reduction is complete", kernel.var(var).name)),
            (None, true) => Err(format!("the iterations of the loop over `{name}` cannot be repeated by its tail")),
            (None, false) => Ok(()),
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<(), String> {
        self.stmts += 1;
        let kernel = self.kernel;
        let buffer = |id: &super::BufferId| kernel.buffers.get(id.index()).ok_or(format!("{id:?} does not exist"));
        match stmt {
            Stmt::Let { var, value } => {
                let dtype = self.typed(*value, None)?;
                self.declare_lanes(*var, dtype, kernel.exprs.lanes(*value))
            }
            Stmt::Assign { var, value } => {
                let info = kernel.var(*var);
                if !info.mutable || !self.visible[var.index()] {
                    return Err(format!("`{}` cannot be assigned here", info.name));
                }
                self.lanes(*value, &[info.lanes])?;
                self.typed(*value, Some(info.dtype)).map(|_| ())
            }
            Stmt::Store { buffer: id, index, value } => self.stored(*id, *index, *value),
            Stmt::MaskedStore { buffer: id, index, value, mask } => {
                self.lanes(*mask, &[kernel.exprs.lanes(*index)])?;
                self.typed(*mask, Some(DType::Bool))?;
                self.stored(*id, *index, *value)
            }
            Stmt::Update { buffer: id, index, op, value } => {
                let info = buffer(id)?;
                match info.elem {
                    Elem::Value(dtype) if combines(*op, dtype) => self.stored(*id, *index, *value),
                    _ => Err(format!("`{}` cannot be updated atomically by `{}`", info.name, op.info().name)),
                }
            }
            Stmt::Prefetch { buffer: id, index, locality, .. } => {
                let info = buffer(id)?;
                if *locality > 3 {
                    return Err(format!("`{}` is prefetched with locality {locality}, more than 3", info.name));
                }
                self.index(*index)
            }
            Stmt::Barrier => match self.threads {
                Some(outer) => {
                    self.leave(outer);
                    Ok(())
                }
                None => Err("a barrier is not in the body of a loop over the threads of a block".to_string()),
            },
            Stmt::For { var, start, stop, body, hint } => {
                self.index(*start)?;
                self.index(*stop)?;
                self.loop_kind(*var, hint.kind, body)?;
                let (outer, threads) = (self.scope.len(), self.threads.take());
                let labels = if hint.kind.is_concurrent() { std::mem::take(&mut self.labels) } else { Vec::new() };
                self.declare(*var, DType::I64)?;
                if hint.kind == LoopKind::Block {
                    // Not by `block`: statements know that they are in it directly.
                    let inner = self.scope.len();
                    for stmt in body {
                        self.threads = Some(inner);
                        self.stmt(stmt)?;
                    }
                } else {
                    self.block(body)?;
                }
                self.threads = threads;
                if hint.kind.is_concurrent() {
                    self.labels = labels;
                }
                self.leave(outer);
                Ok(())
            }
            Stmt::While { cond, body } => {
                self.threads = None;
                self.expr(*cond, Some(DType::Bool))?;
                self.block(body)
            }
            Stmt::If { cond, then, otherwise } => {
                self.threads = None;
                self.expr(*cond, Some(DType::Bool))?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::Labelled { label, body } => {
                if self.used.contains(label) || label.0 >= kernel.labels {
                    return Err(format!("`l{}` names two blocks, or none", label.0));
                }
                self.threads = None;
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
            Stmt::Gemm(gemm) => {
                let name = |id: BufferId| kernel.buffers.get(id.index()).map_or("?", |info| info.name.as_str());
                let dtype = gemm.dtype(kernel).filter(|dtype| Gemm::DTYPES.contains(dtype));
                let Some(dtype) = dtype else {
                    return Err(format!("`{}` is no matrix of floats", name(gemm.c.buffer)));
                };
                for view in gemm.views() {
                    if buffer(&view.buffer)?.elem != Elem::Value(dtype) {
                        return Err(format!("`{}` is no matrix of {dtype}", name(view.buffer)));
                    }
                    [view.offset, view.strides[0], view.strides[1]].into_iter().try_for_each(|e| self.index(e))?;
                }
                let written = gemm.c.buffer;
                if buffer(&written)?.role == Role::Input || [gemm.a.buffer, gemm.b.buffer].contains(&written) {
                    return Err(format!("`{}` cannot be updated by a product", name(written)));
                }
                gemm.sizes.into_iter().try_for_each(|e| self.index(e))?;
                self.expr(gemm.alpha, Some(dtype)).map(|_| ())
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
