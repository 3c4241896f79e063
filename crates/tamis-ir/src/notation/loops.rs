//! Loop programs as index notation: each assignment becomes a statement over all iterations of its loops.
//!
//! This holds where the order of iterations does not matter: tensors are written once for each element, or updated by an
//! associative operator, and what a statement reads is complete, or was written by the same iteration. Everything else is a
//! diagnostic (E0118) that names the statement. A tensor that is declared inside of loops has their indices as dimensions.
//! Conditions become values that change nothing: `if c: y[i] += e` is `y[i] += select(c, e, 0)`.

use super::adjoint::{expression_text, range_text};
use super::{IndexRange, Notation};
use crate::algebra::{DType, Op, Value};
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Span};
use crate::program::{Access, Expr, ExprId, Extent, IndexId, Program, Stmt, StmtId, StmtKind, TensorId, VarId};
use crate::text::syntax::{self, ExprKind, Name};
use rustc_hash::FxHashMap;

impl Notation {
    /// The index notation that a loop program is, and for each of its results the result of the notation.
    ///
    /// ```
    /// use tamis_ir::{Notation, Program};
    /// let program = Program::parse("\
    /// def f(A, x):
    ///     y = tensor('dense')
    ///     for i in _:
    ///         s = scalar(0.0)
    ///         for j in _:
    ///             s += A[i,j] * x[j]
    ///         y[i] = exp(s)
    ///     return y
    /// ")?;
    /// let (text, results) = Notation::of_loops(&program)?;
    /// assert_eq!(text, "s[i] += sum[j](A[i, j] * x[j])\ny[i] = exp(s[i])");
    /// assert_eq!(results, [("y".to_string(), "y".to_string())]);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn of_loops(program: &Program) -> std::result::Result<(String, Vec<(String, String)>), Diagnostics> {
        let mut reader = LoopReader {
            program,
            loops: Vec::new(),
            conditions: Vec::new(),
            lets: FxHashMap::default(),
            scopes: FxHashMap::default(),
            uses: Vec::new(),
            lines: Vec::new(),
        };
        let made = reader.block(&program.body).and_then(|()| reader.finish());
        made.map_err(|d| Diagnostics(vec![program.origin.attach(d)]))
    }
}

/// A read or a write of a declared tensor.
struct Use {
    tensor: TensorId,
    write: bool,
    loops: Vec<IndexId>,
    subscripts: Vec<ExprId>,
    /// The `if` that the statement is directly in, and whether it is its first branch.
    branch: Option<(StmtId, bool)>,
}

struct LoopReader<'p> {
    program: &'p Program,
    loops: Vec<(IndexId, Extent)>,
    conditions: Vec<(StmtId, syntax::Expr, bool)>,
    lets: FxHashMap<VarId, ExprId>,
    /// The loops around the declaration of each tensor.
    scopes: FxHashMap<TensorId, Vec<IndexId>>,
    uses: Vec<Use>,
    lines: Vec<(TensorId, Vec<TensorId>, String)>,
}

/// What is about to be written.
struct LoopTarget<'a> {
    access: &'a Access,
    stmt: StmtId,
    op: Option<Op>,
}

impl LoopReader<'_> {
    fn block(&mut self, block: &[Stmt]) -> Result<()> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Declare(tensor) => {
                self.scopes.insert(*tensor, self.loops.iter().map(|(index, _)| *index).collect());
                Ok(())
            }
            StmtKind::Let { var, value } => {
                self.lets.insert(*var, *value);
                Ok(())
            }
            StmtKind::For { index, extent, body, .. } => {
                self.loops.push((*index, *extent));
                self.block(body)?;
                self.loops.pop();
                Ok(())
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(*cond, stmt.id)?;
                for (body, holds) in [(then, true), (otherwise, false)] {
                    self.conditions.push((stmt.id, cond.clone(), holds));
                    self.block(body)?;
                    self.conditions.pop();
                }
                Ok(())
            }
            StmtKind::Assign { target, update, value } => {
                if update.as_ref().is_some_and(|update| !update.extra.is_empty()) {
                    return Err(self.refused(stmt.id, "the update has more than two operands"));
                }
                let op = update.as_ref().map(|update| update.op);
                self.assign(&LoopTarget { access: target, stmt: stmt.id, op }, *value)
            }
        }
    }

    fn assign(&mut self, target: &LoopTarget, value: ExprId) -> Result<()> {
        let tensor = target.access.tensor;
        let Some(scope) = self.scopes.get(&tensor).cloned() else {
            return Err(self.refused(target.stmt, "a parameter is changed in place"));
        };
        let mut reads = Vec::new();
        self.reads_of(value, &mut reads);
        let value = self.expr(value, target.stmt)?;
        for (_, condition, _) in &self.conditions {
            names_read(condition, self.program, &mut reads);
        }
        let subscripts = self.subscripts(target.access, target.stmt)?;
        self.check_order(target)?;
        let first = !self.uses.iter().any(|one| one.write && one.tensor == tensor);
        let own: Vec<IndexId> = self.loops.iter().map(|(index, _)| *index).collect();
        let written = |index: &IndexId| subscripts.iter().any(|s| mentions(s, &self.program.indices[index.index()]));
        let reduced: Vec<String> = own
            .iter()
            .filter(|index| !scope.contains(index) && !written(index))
            .map(|index| self.program.indices[index.index()].clone())
            .collect();
        let op = self.accumulation(target, first)?;
        let value = self.guarded(target, op, value)?;
        let (value, ranges) = self.bounded(value, &subscripts)?;
        let reduced: Vec<String> = match op {
            Some(Op::Min | Op::Max | Op::And | Op::Or) => reduced.into_iter().filter(|i| mentions(&value, i)).collect(),
            _ => reduced,
        };
        if let Some(index) = reduced.iter().find(|index| op.is_none() || !mentions(&value, index)) {
            let why = match op {
                None => format!("each iteration of the loop over `{index}` overwrites the value of the one before"),
                Some(_) => format!("the value does not depend on `{index}`, over which it is accumulated"),
            };
            return Err(self.refused(target.stmt, &why));
        }
        let whole = match (op, reduced.is_empty()) {
            (_, true) | (None, _) => value,
            (Some(op), false) => {
                let op = if op == Op::Sub { Op::Add } else { op };
                if !matches!(op, Op::Add | Op::Mul | Op::Min | Op::Max | Op::And | Op::Or) {
                    return Err(self.refused(target.stmt, "the result depends on the order of iterations"));
                }
                let indices = reduced.iter().map(|index| Name { text: index.clone(), span: value.span }).collect();
                let span = value.span;
                syntax::Expr { kind: ExprKind::Reduce { op, indices, body: Box::new(value) }, span }
            }
        };
        let line = self.line(target, op, subscripts, whole, &ranges, first)?;
        let branch = self.conditions.last().map(|(id, _, holds)| (*id, *holds));
        let subscripts = target.access.subscripts.iter().map(|s| s.expr).collect();
        self.uses.push(Use { tensor, write: true, loops: own, subscripts, branch });
        self.lines.push((tensor, reads, line));
        Ok(())
    }

    /// The operator that a statement accumulates by: assignments in both branches of an `if` are a sum of what each gives.
    fn accumulation(&self, target: &LoopTarget, first: bool) -> Result<Option<Op>> {
        let tensor = target.access.tensor;
        if target.op.is_some() {
            return Ok(target.op);
        }
        let zero = self.fill(tensor).is_none_or(|fill| !fill.is_truthy());
        match self.conditions.last() {
            None if first => Ok(None),
            Some(_) if first && zero => Ok(None),
            Some((id, _, false)) if zero => {
                let before = self.uses.iter().filter(|one| one.write && one.tensor == tensor);
                match before.clone().all(|one| one.branch == Some((*id, true))) {
                    true => Ok(Some(Op::Add)),
                    false => Err(self.refused(target.stmt, "an element is assigned a second time")),
                }
            }
            _ => Err(self.refused(target.stmt, "an element is assigned a second time")),
        }
    }

    /// A value that changes nothing where a condition does not hold.
    fn guarded(&self, target: &LoopTarget, op: Option<Op>, value: syntax::Expr) -> Result<syntax::Expr> {
        let mut value = value;
        for (_, condition, holds) in self.conditions.iter().rev() {
            let identity = match op {
                None | Some(Op::Sub) => Some(Value::I64(0)),
                Some(op) => op.start(DType::F64).map(|start| start.cast_exact(DType::I64).unwrap_or(start)),
            };
            let Some(identity) = identity else {
                return Err(
                    self.refused(target.stmt, "the operator has no identity, so it cannot be under a condition")
                );
            };
            let span = value.span;
            let identity = syntax::Expr { kind: ExprKind::Number(identity), span };
            let sums = matches!(op, None | Some(Op::Add | Op::Sub));
            let condition = condition.clone();
            value = match (sums && *holds && is_mask(&condition, &self.program.indices), holds) {
                (true, _) => syntax::Expr { kind: ExprKind::Operator(Op::Mul, vec![value, condition]), span },
                (false, true) => super::adjoint::selected(condition, value, identity),
                (false, false) => super::adjoint::selected(condition, identity, value),
            };
        }
        Ok(value)
    }

    /// The ranges of the loops around a statement. Bounds that depend on other loops become conditions.
    fn bounded(&self, value: syntax::Expr, subscripts: &[syntax::Expr]) -> Result<(syntax::Expr, Vec<IndexRange>)> {
        let (mut value, mut ranges) = (value, Vec::new());
        for (index, extent) in &self.loops {
            let Extent::Range(start, stop) = extent else { continue };
            let name = &self.program.indices[index.index()];
            if !mentions(&value, name) && !subscripts.iter().any(|s| mentions(s, name)) {
                continue;
            }
            let stmt = StmtId(0);
            let (start, stop) = (self.expr(*start, stmt)?, self.expr(*stop, stmt)?);
            let depends =
                |e: &syntax::Expr| self.loops.iter().any(|(i, _)| mentions(e, &self.program.indices[i.index()]));
            if !depends(&start) && !depends(&stop) {
                let zero = matches!(&start.kind, ExprKind::Number(Value::I64(0)));
                ranges.push(IndexRange { index: name.clone(), start: (!zero).then_some(start), stop });
                continue;
            }
            let span = value.span;
            let own = || syntax::Expr { kind: ExprKind::Name(name.clone()), span };
            for (op, bound) in [(Op::Ge, start), (Op::Lt, stop)] {
                let test = syntax::Expr { kind: ExprKind::Operator(op, vec![own(), bound]), span };
                value = syntax::Expr { kind: ExprKind::Operator(Op::Mul, vec![value, test]), span };
            }
        }
        Ok((value, ranges))
    }

    fn line(
        &self,
        target: &LoopTarget,
        op: Option<Op>,
        subscripts: Vec<syntax::Expr>,
        value: syntax::Expr,
        ranges: &[IndexRange],
        first: bool,
    ) -> Result<String> {
        let tensor = target.access.tensor;
        let span = value.span;
        let identity = op.and_then(|op| op.start(DType::F64)).unwrap_or(Value::F64(0.0));
        let fill = self.fill(tensor).unwrap_or(Value::F64(0.0));
        let (mut op, mut value) = (op, value);
        if first && op.is_some_and(|_| !fill.cast(DType::F64).same_number(identity)) {
            // It starts from the fill, and not from the identity.
            let start = syntax::Expr { kind: ExprKind::Number(fill), span };
            value = super::adjoint::combined(op.unwrap_or(Op::Add), start, value);
            op = None;
        } else if op.is_none() && fill.is_truthy() && !self.conditions.is_empty() {
            return Err(self.refused(target.stmt, "elements that are not assigned keep a fill other than 0"));
        }
        let name = &self.program.tensor(tensor).name;
        let access = match subscripts.is_empty() {
            true => syntax::Expr { kind: ExprKind::Name(name.clone()), span },
            false => {
                let base = Name { text: name.clone(), span };
                syntax::Expr { kind: ExprKind::Index { base, subscripts }, span }
            }
        };
        let symbol = op.map_or("", |op| op.info().symbol.unwrap_or(op.info().name));
        let space = if symbol.is_empty() { "" } else { " " };
        let equals = if symbol.is_empty() { " =" } else { "=" };
        let clauses: String = ranges.iter().map(|range| format!(" {}", range_text(range))).collect();
        Ok(format!("{}{space}{symbol}{equals} {}{clauses}", expression_text(&access), expression_text(&value)))
    }

    /// What is read is complete, or was written by the same iteration; and what is written was not read by another one.
    fn check_order(&self, target: &LoopTarget) -> Result<()> {
        let own: Vec<IndexId> = self.loops.iter().map(|(index, _)| *index).collect();
        let write = Use {
            tensor: target.access.tensor,
            write: true,
            loops: own,
            subscripts: target.access.subscripts.iter().map(|s| s.expr).collect(),
            branch: None,
        };
        match self.uses.iter().find(|read| !read.write && read.tensor == write.tensor && !self.same_place(read, &write))
        {
            None => Ok(()),
            Some(_) => {
                let name = &self.program.tensor(write.tensor).name;
                Err(self.refused(target.stmt, &format!("`{name}` is read by other iterations, before and after")))
            }
        }
    }

    /// True if two uses of a tensor are in no loop together, but such whose iterations use different elements.
    fn same_place(&self, a: &Use, b: &Use) -> bool {
        let scope = self.scopes.get(&a.tensor).map_or(&[][..], Vec::as_slice);
        let common = a.loops.iter().zip(&b.loops).take_while(|(x, y)| x == y).map(|(x, _)| *x);
        common.filter(|index| !scope.contains(index)).all(|index| {
            let plain = |id: &ExprId| matches!(self.program.expr(*id), Expr::Index(i) if *i == index);
            a.subscripts.iter().zip(&b.subscripts).any(|(x, y)| plain(x) && plain(y))
        })
    }

    fn fill(&self, tensor: TensorId) -> Option<Value> {
        let declaration = self.program.tensor(tensor).declaration.as_ref()?;
        let leaf = match &declaration.storage {
            crate::program::Storage::Tensor(spec) => match spec.leaf() {
                crate::format::Leaf::Element(fill) => fill,
                crate::format::Leaf::Pattern => None,
            },
            crate::program::Storage::Scalar(_) => None,
        };
        declaration.fill.or(leaf)
    }

    /// The subscripts of an access, after the indices of the loops that its tensor is declared in.
    fn subscripts(&mut self, access: &Access, stmt: StmtId) -> Result<Vec<syntax::Expr>> {
        let span = self.program.origin.target(stmt);
        let scope = self.scopes.get(&access.tensor).cloned().unwrap_or_default();
        let name = |index: &IndexId| self.program.indices[index.index()].clone();
        let mut subscripts: Vec<syntax::Expr> =
            scope.iter().map(|index| syntax::Expr { kind: ExprKind::Name(name(index)), span }).collect();
        for subscript in &access.subscripts {
            let own = self.expr(subscript.expr, stmt)?;
            subscripts.push(match subscript.permissive {
                true => syntax::Expr { kind: ExprKind::Operator(Op::BitNot, vec![own]), span },
                false => own,
            });
        }
        Ok(subscripts)
    }

    fn expr(&self, id: ExprId, stmt: StmtId) -> Result<syntax::Expr> {
        let span = self.program.origin.expr(stmt, id);
        let named = |tensor: TensorId| Name { text: self.program.tensor(tensor).name.clone(), span };
        let kind = match self.program.expr(id) {
            Expr::Literal(value) => ExprKind::Number(*value),
            Expr::Index(index) => ExprKind::Name(self.program.indices[index.index()].clone()),
            Expr::Var(var) => match self.lets.get(var) {
                Some(value) => return self.expr(*value, stmt),
                None => ExprKind::Name(self.program.vars[var.index()].clone()),
            },
            Expr::Size(tensor, dim) => ExprKind::Size { base: named(*tensor), dim: *dim as u64 },
            Expr::Entry(entry) => {
                let at = entry.at.iter().map(|e| self.expr(*e, stmt)).collect::<Result<_>>()?;
                ExprKind::Entry { base: named(entry.tensor), part: entry.what, at }
            }
            Expr::Call(op, operands) => {
                let args: Vec<syntax::Expr> = operands.iter().map(|e| self.expr(*e, stmt)).collect::<Result<_>>()?;
                match op.info().symbol {
                    Some(_) if args.len() <= 2 => ExprKind::Operator(*op, args),
                    _ => {
                        let function = Name { text: op.info().name.to_string(), span };
                        ExprKind::Call { function, args, keywords: Vec::new() }
                    }
                }
            }
            Expr::Read(access) => {
                let scope = self.scopes.get(&access.tensor);
                if scope.is_some() {
                    let own: Vec<IndexId> = self.loops.iter().map(|(index, _)| *index).collect();
                    let subscripts = access.subscripts.iter().map(|s| s.expr).collect();
                    let read = Use { tensor: access.tensor, write: false, loops: own, subscripts, branch: None };
                    let mut writes = self.uses.iter().filter(|one| one.write && one.tensor == access.tensor).peekable();
                    let name = &self.program.tensor(access.tensor).name;
                    if writes.peek().is_none() {
                        return Err(self.refused(stmt, &format!("`{name}` is read before it is written")));
                    }
                    if !writes.all(|write| self.same_place(&read, write)) {
                        return Err(
                            self.refused(stmt, &format!("`{name}` is read while other iterations still write it"))
                        );
                    }
                }
                let mut subscripts: Vec<syntax::Expr> = Vec::new();
                for index in scope.into_iter().flatten() {
                    let text = self.program.indices[index.index()].clone();
                    subscripts.push(syntax::Expr { kind: ExprKind::Name(text), span });
                }
                for subscript in &access.subscripts {
                    let own = self.expr(subscript.expr, stmt)?;
                    subscripts.push(match subscript.permissive {
                        true => syntax::Expr { kind: ExprKind::Operator(Op::BitNot, vec![own]), span },
                        false => own,
                    });
                }
                match subscripts.is_empty() {
                    true => ExprKind::Name(named(access.tensor).text),
                    false => ExprKind::Index { base: named(access.tensor), subscripts },
                }
            }
        };
        Ok(syntax::Expr { kind, span })
    }

    /// Notes the declared tensors that an expression reads.
    fn reads_of(&mut self, id: ExprId, found: &mut Vec<TensorId>) {
        match self.program.expr(id).clone() {
            Expr::Var(var) => {
                if let Some(value) = self.lets.get(&var).copied() {
                    self.reads_of(value, found);
                }
                return;
            }
            Expr::Read(access) if self.scopes.contains_key(&access.tensor) => {
                found.push(access.tensor);
                let loops = self.loops.iter().map(|(index, _)| *index).collect();
                let subscripts = access.subscripts.iter().map(|s| s.expr).collect();
                self.uses.push(Use { tensor: access.tensor, write: false, loops, subscripts, branch: None });
            }
            _ => {}
        }
        for operand in self.program.expr(id).operands() {
            self.reads_of(operand, found);
        }
    }

    /// The statements that results depend on; a result that is read again gets a copy.
    fn finish(&self) -> Result<(String, Vec<(String, String)>)> {
        let mut needed: Vec<TensorId> = self.program.results.clone();
        let mut kept: Vec<&str> = Vec::new();
        let mut read: Vec<TensorId> = Vec::new();
        for (tensor, reads, line) in self.lines.iter().rev() {
            if needed.contains(tensor) {
                needed.extend(reads);
                read.extend(reads);
                kept.push(line);
            }
        }
        kept.reverse();
        let mut text = kept.join("\n");
        let mut results = Vec::new();
        for result in &self.program.results {
            let info = self.program.tensor(*result);
            if !self.lines.iter().any(|(tensor, ..)| tensor == result) {
                return Err(self.refused(StmtId(0), &format!("`{}` is never assigned", info.name)));
            }
            if !read.contains(result) {
                results.push((info.name.clone(), info.name.clone()));
                continue;
            }
            let name = format!("{}_result", info.name);
            let indices: Vec<String> = (0..info.rank).map(|k| format!("{name}_{k}")).collect();
            let access = if indices.is_empty() { String::new() } else { format!("[{}]", indices.join(", ")) };
            text += &format!("\n{name}{access} = {}{access}", info.name);
            results.push((info.name.clone(), name));
        }
        Ok((text, results))
    }

    fn refused(&self, stmt: StmtId, why: &str) -> Diagnostic {
        let span: Span = self.program.origin.stmt(stmt);
        Diagnostic::new(Code::E0118, format!("the loop program is no index notation: {why}"))
            .label(span, "this statement")
            .help("write each element once, or update it by `+=`, `min=`, `max=` or `*=`")
            .help("read what other iterations write after their loop")
    }
}

/// True if a name occurs.
fn mentions(expr: &syntax::Expr, name: &str) -> bool {
    super::adjoint::mentions(expr, name)
}

/// True if a condition compares sums of indices and integers, so that it is structure.
fn is_mask(condition: &syntax::Expr, indices: &[String]) -> bool {
    match &condition.kind {
        ExprKind::Operator(Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge, operands) => {
            operands.iter().all(|e| super::is_of_indices(e, indices))
        }
        _ => false,
    }
}

/// Notes the tensors of a program that an expression names.
fn names_read(expr: &syntax::Expr, program: &Program, found: &mut Vec<TensorId>) {
    for (k, info) in program.tensors.iter().enumerate() {
        if info.declaration.is_some() && mentions(expr, &info.name) {
            found.push(TensorId(k as u32));
        }
    }
}
