//! Copy-in of updated parameters: a program that writes its operands becomes one that writes copies
//! of them.
//!
//! In: a program whose parameters may be targets of assignments (`x[i] *= c`), and the layouts of
//! its operands. Out: the same program over declared tensors, which start as copies of these
//! operands, in their format, type and fill. A tensor that is given to a program never changes. The
//! declared tensor keeps the name; the operand is called `x_in`.
//!
//! No copy is made where the first statement that writes the tensor computes each element once from
//! its old value: then `x[i] *= c` is `x[i] = x_in[i] * c`, which visits stored elements only, and
//! a condition becomes a `select` (if-conversion).

use crate::lower::ParamLayout;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use tamis_ir::algebra::Op;
use tamis_ir::program::{
    Access, Attributes, Block, Declaration, Expr, ExprId, Extent, IndexId, Program, ScalarKind, Stmt, StmtId, StmtKind,
    Storage, Subscript, TensorId, TensorInfo, Update, visit_block,
};
use tamis_ir::{Diagnostics, FormatSpec, Value};

/// Replaces parameters that a program writes by copies, for operands of these layouts.
///
/// ```
/// use tamis_compiler::{lower::ParamLayout, schedule::copy_in};
/// use tamis_ir::{Format, Program, Value};
/// use tamis_tensor::Tensor;
/// let program = Program::parse("
/// def scale(x, c):
///     for i in _:
///         x[i] *= c
///     return x
/// ")?;
/// let x = Tensor::from_dense(&[2], vec![0.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let c = Tensor::scalar(Value::F64(2.0));
/// let copied = copy_in(&program, &[ParamLayout::of(&x), ParamLayout::of(&c)])?;
/// assert_eq!(copied.to_string(), "\
/// def scale(x_in, c):
///     x = tensor(\"dense\", dtype=\"f64\", shape=(x_in.shape[0],))
///     for i in _:
///         x[i] = x_in[i] * c
///     return x
/// ");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn copy_in<'p>(program: &'p Program, layouts: &[ParamLayout]) -> Result<Cow<'p, Program>, Diagnostics> {
    let mut written = Vec::new();
    program.visit(&mut |stmt| {
        if let StmtKind::Assign { target, .. } = &stmt.kind {
            written.push(target.tensor);
        }
    });
    let updated = program.params.iter().zip(layouts).filter(|(id, _)| written.contains(id));
    let mut result = Cow::Borrowed(program);
    for (id, layout) in updated {
        Copier::new(result.to_mut(), *id).copy(layout);
    }
    if let Cow::Owned(program) = &mut result {
        program.renumber();
        program.verify()?;
    }
    Ok(result)
}

/// The replacement of a tensor by another in parts of a program.
pub(super) struct Copier<'p> {
    program: &'p mut Program,
    operand: TensorId,
    next_stmt: u32,
}

impl<'p> Copier<'p> {
    pub(super) fn new(program: &'p mut Program, operand: TensorId) -> Copier<'p> {
        let mut next_stmt = 0;
        program.visit(&mut |stmt| next_stmt = next_stmt.max(stmt.id.0.saturating_add(1)));
        Copier { program, operand, next_stmt }
    }

    fn copy(mut self, layout: &ParamLayout) {
        let copy = self.declare(layout);
        let mut body = std::mem::take(&mut self.program.body);
        // Statements before the first one that writes the tensor read the operand.
        let first = body.iter().position(|stmt| writes(stmt, self.operand)).unwrap_or(body.len());
        let (_, after) = body.split_at_mut(first);
        let declare = self.stmt(StmtKind::Declare(copy));
        let mut start = vec![declare];
        match after.split_first_mut() {
            Some((update, after)) if is_elementwise(self.program, self.operand, update) => {
                self.assign_from_operand(update, copy);
                after.iter_mut().for_each(|stmt| self.rename(stmt, copy));
            }
            _ => {
                start.push(self.copy_loop(copy));
                after.iter_mut().for_each(|stmt| self.rename(stmt, copy));
            }
        }
        body.splice(first..first, start);
        self.program.body = body;
        for result in &mut self.program.results {
            if *result == self.operand {
                *result = copy;
            }
        }
    }

    /// Declares the copy under the operand's name, and gives the operand another.
    fn declare(&mut self, layout: &ParamLayout) -> TensorId {
        let rank = self.program.tensor(self.operand).rank;
        let program = &mut *self.program;
        let name = program.tensor(self.operand).name.clone();
        let mut renamed = format!("{name}_in");
        while program.tensors.iter().any(|info| info.name == renamed)
            || program.indices.iter().chain(&program.vars).any(|other| *other == renamed)
        {
            renamed.push('_');
        }
        let shape = (0..rank).map(|dim| program.exprs.intern(Expr::Size(self.operand, dim))).collect();
        let storage = match rank {
            0 => Storage::Scalar(ScalarKind::Plain),
            _ => Storage::Tensor(FormatSpec::Fixed(layout.format.clone())),
        };
        let fill = (layout.fill != Value::zero(layout.dtype)).then_some(layout.fill);
        let dtype = (layout.literal.is_none()).then_some(layout.dtype);
        let shape = (rank > 0).then_some(shape);
        let copy = TensorId(program.tensors.len() as u32);
        let declaration = Some(Declaration { storage, fill, dtype, shape });
        program.tensors.push(TensorInfo { name, rank, declaration });
        program.tensors[self.operand.index()].name = renamed;
        if let Some(span) = program.origin.tensors.get(&self.operand).copied() {
            program.origin.tensors.insert(copy, span);
        }
        copy
    }

    /// A new statement, at the place of the tensor.
    pub(super) fn stmt(&mut self, kind: StmtKind) -> Stmt {
        let id = StmtId(self.next_stmt);
        self.next_stmt = self.next_stmt.saturating_add(1);
        if let Some(span) = self.program.origin.tensors.get(&self.operand).copied() {
            self.program.origin.stmts.insert(id, span);
        }
        Stmt { id, kind }
    }

    /// `for i, j in _: x[i,j] = x_in[i,j]`.
    fn copy_loop(&mut self, copy: TensorId) -> Stmt {
        let rank = self.program.tensor(copy).rank;
        let indices: Vec<IndexId> = (0..rank)
            .map(|k| {
                let names = &mut self.program.indices;
                names.push(format!("{}{k}", ["i", "j", "k", "l"].get(k).unwrap_or(&"m")));
                IndexId(names.len() as u32 - 1)
            })
            .collect();
        let subscript = |program: &mut Program, index: &IndexId| Subscript {
            expr: program.exprs.intern(Expr::Index(*index)),
            protocol: None,
            permissive: false,
        };
        let subscripts: Vec<Subscript> = indices.iter().map(|index| subscript(self.program, index)).collect();
        let read = Access { tensor: self.operand, subscripts: subscripts.clone() };
        let value = self.program.exprs.intern(Expr::Read(read));
        let target = Access { tensor: copy, subscripts };
        let mut stmt = self.stmt(StmtKind::Assign { target, update: None, value });
        // Storage order is the order that a copy is written in.
        let order = self.program.tensor(copy).declaration.as_ref().and_then(|declaration| match &declaration.storage {
            Storage::Tensor(FormatSpec::Fixed(format)) => format.dim_order(),
            _ => None,
        });
        let order = order.unwrap_or_else(|| (0..rank).collect());
        for dim in order.into_iter().rev() {
            let attributes = Attributes::default();
            stmt =
                self.stmt(StmtKind::For { index: indices[dim], extent: Extent::Infer, attributes, body: vec![stmt] });
        }
        stmt
    }

    /// Makes an element-wise update of the operand an assignment to its copy, without conditions
    /// around it.
    pub(super) fn assign_from_operand(&mut self, stmt: &mut Stmt, copy: TensorId) {
        let mut conditions = Vec::new();
        self.assign_under(stmt, copy, &mut conditions);
    }

    fn assign_under(&mut self, stmt: &mut Stmt, copy: TensorId, conditions: &mut Vec<ExprId>) {
        match &mut stmt.kind {
            StmtKind::For { body, .. } => self.assign_in(body, copy, conditions),
            StmtKind::Assign { target, update, value } => {
                let old = self.program.exprs.intern(Expr::Read(target.clone()));
                if let Some(span) = self.program.origin.targets.get(&stmt.id).copied() {
                    self.program.origin.exprs.entry((stmt.id, old)).or_insert(span);
                }
                if let Some(Update { op, extra }) = update.take() {
                    let operands = [old, *value].into_iter().chain(extra).collect();
                    *value = self.program.exprs.intern(Expr::Call(op, operands));
                }
                for condition in conditions.iter().rev() {
                    *value = self.program.exprs.intern(Expr::Call(Op::Select, vec![*condition, *value, old]));
                }
                target.tensor = copy;
            }
            _ => {}
        }
    }

    fn assign_in(&mut self, block: &mut Block, copy: TensorId, conditions: &mut Vec<ExprId>) {
        while let Some(Stmt { kind: StmtKind::If { .. }, .. }) = block.last() {
            let Some(Stmt { kind: StmtKind::If { cond, then, .. }, .. }) = block.pop() else { return };
            conditions.push(cond);
            block.extend(then);
        }
        if let Some(last) = block.last_mut() {
            self.assign_under(last, copy, conditions);
        }
    }

    /// Replaces the operand by the copy. Queries about stored elements still refer to the operand.
    pub(super) fn rename(&mut self, stmt: &mut Stmt, copy: TensorId) {
        let mut renamed = FxHashMap::default();
        self.rename_in(stmt, copy, &mut renamed);
    }

    /// [`Copier::rename`], for a statement that goes on writing the operand.
    pub(super) fn rename_reads(&mut self, stmt: &mut Stmt, copy: TensorId) {
        self.rename(stmt, copy);
        set_target(stmt, copy, self.operand);
    }

    fn rename_in(&mut self, stmt: &mut Stmt, copy: TensorId, renamed: &mut FxHashMap<ExprId, ExprId>) {
        let id = stmt.id;
        let mut change = |copier: &mut Copier, expr: &mut ExprId| {
            let new = copier.renamed(*expr, copy, renamed);
            for (old, new) in renamed.iter() {
                if let Some(span) = copier.program.origin.exprs.get(&(id, *old)).copied() {
                    copier.program.origin.exprs.entry((id, *new)).or_insert(span);
                }
            }
            *expr = new;
        };
        match &mut stmt.kind {
            // Shapes of declared tensors depend on operands as they come.
            StmtKind::Declare(_) => {}
            StmtKind::Let { value, .. } => change(self, value),
            StmtKind::For { extent, body, .. } => {
                if let Extent::Range(start, stop) = extent {
                    change(self, start);
                    change(self, stop);
                }
                body.iter_mut().for_each(|stmt| self.rename_in(stmt, copy, renamed));
            }
            StmtKind::If { cond, then, otherwise } => {
                change(self, cond);
                then.iter_mut().chain(otherwise).for_each(|stmt| self.rename_in(stmt, copy, renamed));
            }
            StmtKind::Assign { target, update, value } => {
                target.subscripts.iter_mut().for_each(|subscript| change(self, &mut subscript.expr));
                change(self, value);
                update.iter_mut().flat_map(|update| &mut update.extra).for_each(|extra| change(self, extra));
                if target.tensor == self.operand {
                    target.tensor = copy;
                }
            }
        }
    }

    fn renamed(&mut self, id: ExprId, copy: TensorId, renamed: &mut FxHashMap<ExprId, ExprId>) -> ExprId {
        if let Some(new) = renamed.get(&id) {
            return *new;
        }
        let mut expr = self.program.expr(id).clone();
        match &mut expr {
            Expr::Call(_, operands) => {
                operands.iter_mut().for_each(|operand| *operand = self.renamed(*operand, copy, renamed));
            }
            Expr::Read(Access { tensor, subscripts }) => {
                subscripts.iter_mut().for_each(|s| s.expr = self.renamed(s.expr, copy, renamed));
                if *tensor == self.operand {
                    *tensor = copy;
                }
            }
            Expr::Entry(entry) => entry.at.iter_mut().for_each(|at| *at = self.renamed(*at, copy, renamed)),
            Expr::Literal(_) | Expr::Index(_) | Expr::Var(_) | Expr::Size(..) => {}
        }
        let new = self.program.exprs.intern(expr);
        renamed.insert(id, new);
        new
    }
}

/// Whether a statement or one inside it writes a tensor.
pub(super) fn writes(stmt: &Stmt, tensor: TensorId) -> bool {
    let mut found = false;
    visit_block(std::slice::from_ref(stmt), &mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Assign { target, .. } if target.tensor == tensor);
    });
    found
}

/// Whether a program computes each element of a result once, from the element of a parameter at the
/// same subscripts, and reads the parameter nowhere else. Then the result may be written to the
/// memory of the parameter.
///
/// ```
/// use tamis_compiler::schedule::is_elementwise_of;
/// use tamis_ir::Program;
/// let of = |update: &str| {
///     let text = format!("
/// def f(x):
///     y = tensor('dense')
///     for i in _:
///         y[i] = {update}
///     return y
/// ");
///     let program = Program::parse(&text).unwrap();
///     is_elementwise_of(&program, program.params[0], program.results[0])
/// };
/// assert!(of("2 * x[i]"));
/// assert!(!of("x[i] + x[0]"));
/// ```
pub fn is_elementwise_of(program: &Program, param: TensorId, result: TensorId) -> bool {
    let reads = |stmt: &Stmt| {
        let mut found = false;
        visit_block(std::slice::from_ref(stmt), &mut |stmt| {
            program.visit_exprs(stmt, &mut |id| match program.expr(id) {
                Expr::Read(access) => found |= access.tensor == param,
                Expr::Entry(entry) => found |= entry.tensor == param,
                _ => {}
            });
        });
        found
    };
    let mut nests = program.body.iter().filter(|stmt| reads(stmt));
    let (Some(nest), None) = (nests.next(), nests.next()) else { return false };
    let first = program.body.iter().find(|stmt| writes(stmt, result));
    let others = |stmt: &Stmt| !writes(stmt, result);
    first.is_some_and(|first| std::ptr::eq(first, nest))
        && is_elementwise_between(program, (param, result), nest, &others)
}

/// Whether a nest computes each element once, from old values of that element alone. Under a
/// condition, an element that is not computed keeps its value.
pub(super) fn is_elementwise(program: &Program, tensor: TensorId, nest: &Stmt) -> bool {
    is_elementwise_between(program, (tensor, tensor), nest, &|stmt| matches!(stmt.kind, StmtKind::Let { .. }))
}

/// [`is_elementwise`], for a nest that reads the first tensor and writes the second, after such
/// statements.
fn is_elementwise_between(
    program: &Program,
    (from, tensor): (TensorId, TensorId),
    nest: &Stmt,
    allowed: &dyn Fn(&Stmt) -> bool,
) -> bool {
    let (mut loops, mut conditional) = (Vec::new(), false);
    let mut block = std::slice::from_ref(nest);
    let target = loop {
        let Some((last, before)) = block.split_last() else { return false };
        if !before.iter().all(allowed) {
            return false;
        }
        match &last.kind {
            StmtKind::For { index, extent: Extent::Infer, body, .. } => {
                loops.push(*index);
                block = body;
            }
            StmtKind::If { then, otherwise, .. } if otherwise.is_empty() => {
                conditional = true;
                block = then;
            }
            StmtKind::Assign { target, .. } if target.tensor == tensor => break target,
            _ => return false,
        }
    };
    let mut indices: Vec<IndexId> = Vec::new();
    for subscript in &target.subscripts {
        match program.expr(subscript.expr) {
            Expr::Index(index) if !subscript.permissive && !indices.contains(index) => indices.push(*index),
            _ => return false,
        }
    }
    let covers = indices.len() == loops.len() && loops.iter().all(|index| indices.contains(index));
    let (mut reads, mut same) = (false, true);
    visit_block(std::slice::from_ref(nest), &mut |stmt| {
        program.visit_exprs(stmt, &mut |id| {
            if let Expr::Read(access) = program.expr(id)
                && access.tensor == from
            {
                reads = true;
                same &= access.subscripts == target.subscripts;
            }
        });
    });
    // A condition that does not read the tensor cuts the loop over what changes; the rest is
    // copied.
    covers && same && (reads || !conditional)
}

/// Makes assignments to one tensor assignments to another.
fn set_target(stmt: &mut Stmt, from: TensorId, to: TensorId) {
    match &mut stmt.kind {
        StmtKind::Assign { target, .. } if target.tensor == from => target.tensor = to,
        StmtKind::For { body, .. } => body.iter_mut().for_each(|stmt| set_target(stmt, from, to)),
        StmtKind::If { then, otherwise, .. } => {
            then.iter_mut().chain(otherwise).for_each(|stmt| set_target(stmt, from, to));
        }
        StmtKind::Assign { .. } | StmtKind::Declare(_) | StmtKind::Let { .. } => {}
    }
}
