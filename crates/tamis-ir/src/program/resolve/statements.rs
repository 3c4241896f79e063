//! Name resolution of statements: blocks and scopes, loops, assignments, updates, bound names.

use super::super::{
    Access, Attributes, Block, Expr, ExprId, Extent, IndexId, ScalarKind, Stmt, StmtId, StmtKind, Update, VarId,
};
use super::{Binding, Resolver};
use crate::algebra::{Op, Value};
use crate::diag::{Code, Diagnostic, Span};
use crate::text::syntax::{self, ExprKind, Name};
use rustc_hash::FxHashMap;

impl Resolver {
    pub(super) fn block(&mut self, stmts: &[syntax::Stmt]) -> Block {
        self.scopes.push(FxHashMap::default());
        let mut block = Block::new();
        for stmt in stmts {
            block.extend(self.statement(stmt));
        }
        // The outermost scope stays open for `return`.
        if self.scopes.len() > 2 {
            self.scopes.pop();
        }
        block
    }

    pub(super) fn start(&mut self, span: Span) -> StmtId {
        let id = StmtId(self.program.origin.stmts.len() as u32);
        self.program.origin.stmts.insert(id, span);
        self.stmt = id;
        id
    }

    pub(super) fn statement(&mut self, stmt: &syntax::Stmt) -> Option<Stmt> {
        match &stmt.kind {
            syntax::StmtKind::Assign { target, op, value } => self.assignment(stmt.span, target, *op, value),
            syntax::StmtKind::For { indices, attributes, extent, body } => {
                let attributes = self.attributes(indices, attributes)?;
                self.loops(stmt.span, indices, attributes, extent, body)
            }
            syntax::StmtKind::If { cond, then, otherwise } => {
                let id = self.start(stmt.span);
                let cond = self.expr(cond);
                let (then, otherwise) = (self.block(then), self.block(otherwise));
                Some(Stmt { id, kind: StmtKind::If { cond: cond?, then, otherwise } })
            }
            syntax::StmtKind::Return(_) => self.error(
                Diagnostic::new(Code::E0108, "`return` must be the last statement of the program")
                    .label(stmt.span, "not the last statement of the program")
                    .help("assign the results to tensors or scalars, and return them at the end"),
            ),
        }
    }

    /// The execution attributes of a loop.
    fn attributes(&mut self, indices: &[Name], written: &[syntax::Attribute]) -> Option<Attributes> {
        if let (Some(first), [_, second, ..]) = (written.first(), indices) {
            return self.error(
                Diagnostic::new(Code::E0106, format!("`{}` applies to one loop", first.name.text))
                    .label(first.name.span, "of which loop?")
                    .label(second.span, "a second loop")
                    .help("write each loop on its own line"),
            );
        }
        let mut attributes = Attributes::default();
        for attribute in written {
            let number = attribute.number.map(|(number, _)| number);
            if let Err(why) = attributes.add(&attribute.name.text, number) {
                let span = attribute.number.map_or(attribute.name.span, |(_, span)| span);
                let d = Diagnostic::new(Code::E0106, why).label(span, "here");
                return self.error(d.help("write `parallel(_)`, `vectorize(_)` or `vectorize(_, 8)`, `unroll(_, 4)`, `exactly(_, 100)` or `at_most(_, 100)`, each at most once"));
            }
        }
        Some(attributes)
    }

    pub(super) fn loops(
        &mut self,
        span: Span,
        indices: &[Name],
        attributes: Attributes,
        extent: &syntax::Extent,
        body: &[syntax::Stmt],
    ) -> Option<Stmt> {
        let (name, inner) = indices.split_first()?;
        let id = self.start(span);
        let extent_id = match extent {
            syntax::Extent::Infer => Some(Extent::Infer),
            syntax::Extent::Range(start, stop) => {
                let start = match start {
                    Some(start) => self.expr(start),
                    None => Some(self.program.exprs.intern(Expr::Literal(Value::I64(0)))),
                };
                let stop = self.expr(stop);
                start.zip(stop).map(|(start, stop)| Extent::Range(start, stop))
            }
        };
        let index = IndexId(self.program.indices.len() as u32);
        self.program.indices.push(name.text.clone());
        self.program.origin.indices.insert(index, name.span);
        self.scopes.push(FxHashMap::default());
        self.bind(name, Binding::Index(index), "loop index");
        let body = if inner.is_empty() {
            self.block(body)
        } else {
            self.loops(span, inner, attributes, extent, body).into_iter().collect()
        };
        self.scopes.pop();
        Some(Stmt { id, kind: StmtKind::For { index, extent: extent_id?, attributes, body } })
    }

    pub(super) fn assignment(
        &mut self,
        span: Span,
        target: &syntax::Expr,
        op: Option<Op>,
        value: &syntax::Expr,
    ) -> Option<Stmt> {
        let id = self.start(span);
        let (name, subscripts) = match &target.kind {
            ExprKind::Name(text) => (Name { text: text.clone(), span: target.span }, None),
            ExprKind::Index { base, subscripts } => (base.clone(), Some(subscripts)),
            // The parser accepts no other targets.
            _ => return None,
        };
        if let (None, None, ExprKind::Call { function, args, keywords }) = (subscripts, op, &value.kind) {
            if function.text == "tensor" {
                return self.declare(id, &name, span, |r| r.tensor_declaration(value.span, args, keywords));
            }
            if let Some(kind) = ScalarKind::ALL.into_iter().find(|kind| kind.name() == function.text) {
                return self.declare(id, &name, span, |r| r.scalar_declaration(kind, value.span, args, keywords));
            }
        }
        let binding = self.visible(&name.text);
        let tensor = match binding {
            Some((Binding::Tensor(tensor), _)) => tensor,
            _ if subscripts.is_none() => return self.let_binding(id, &name, binding, op, value),
            Some((_, declared)) => {
                return self.error(
                    Diagnostic::new(Code::E0204, format!("`{}` is not a tensor", name.text))
                        .label(target.span, "subscripted here")
                        .label(declared, "a single value")
                        .help("declare a tensor: `X = tensor(\"dense\")`"),
                );
            }
            None => {
                self.lookup(&name);
                return None;
            }
        };
        let subscripts = subscripts.map(|s| &s[..]).unwrap_or(&[]);
        let access = self.access(tensor, subscripts, target.span);
        if let (None, Some(access)) = (op, &access)
            && let Some(update) = self.update_by_function(access, value)
        {
            self.program.origin.targets.insert(id, target.span);
            return Some(Stmt { id, kind: update });
        }
        let value = self.expr(value);
        let (target_access, value) = access.zip(value)?;
        self.program.origin.targets.insert(id, target.span);
        let kind = match op {
            Some(op) => {
                StmtKind::Assign { target: target_access, update: Some(Update { op, extra: Vec::new() }), value }
            }
            None => self.recognise_update(target_access, value),
        };
        Some(Stmt { id, kind })
    }

    /// `X[i] = f(X[i], e)` is an update by `f` also if `f` is a function without laws, whose calls
    /// are otherwise inlined.
    fn update_by_function(&mut self, target: &Access, value: &syntax::Expr) -> Option<StmtKind> {
        let ExprKind::Call { function, args, keywords } = &value.kind else { return None };
        let user = self.operators.get(&function.text).copied().filter(|user| !user.laws().any())?;
        let [first, second] = &args[..] else { return None };
        if !matches!(first.kind, ExprKind::Name(_) | ExprKind::Index { .. })
            || !keywords.is_empty()
            || user.params().len() != 2
        {
            return None;
        }
        let errors = self.errors.len();
        let read = self.program.exprs.intern(Expr::Read(target.clone()));
        let first = self.expr(first);
        if first != Some(read) {
            // Mistakes are reported when the whole right-hand side is resolved.
            self.errors.truncate(errors);
            return None;
        }
        // If the body is an update by a built-in operator, its laws apply.
        let written_out = self.expr(value)?;
        if let update @ StmtKind::Assign { update: Some(_), value, .. } =
            self.recognise_update(target.clone(), written_out)
            && !self.uses(value, read)
        {
            return Some(update);
        }
        let value = self.expr(second)?;
        let update = Some(Update { op: Op::User(user), extra: Vec::new() });
        Some(StmtKind::Assign { target: target.clone(), update, value })
    }

    /// True if an expression contains another one.
    fn uses(&self, id: ExprId, part: ExprId) -> bool {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if id == part {
                return true;
            }
            open.extend(self.program.expr(id).operands());
        }
        false
    }

    /// `X[i] = op(X[i], e)` is an update by `op`.
    pub(super) fn recognise_update(&mut self, target: Access, value: ExprId) -> StmtKind {
        let read = self.program.exprs.intern(Expr::Read(target.clone()));
        if let Expr::Call(op, operands) = self.program.exprs.get(value).clone()
            && op.can_update()
            && let Some(at) = operands.iter().position(|operand| *operand == read)
        {
            let info = op.info();
            let mut others = operands.clone();
            others.remove(at);
            if at == 0 || (info.commutative && info.associative) {
                match others[..] {
                    [value] => {
                        return StmtKind::Assign { target, update: Some(Update { op, extra: Vec::new() }), value };
                    }
                    [value, ref extra @ ..] if op == Op::Choose => {
                        return StmtKind::Assign { target, update: Some(Update { op, extra: extra.to_vec() }), value };
                    }
                    // min(X, a, b) = min(X, min(a, b))
                    [_, _, ..] if info.associative => {
                        let value = self.program.exprs.intern(Expr::Call(op, others));
                        return StmtKind::Assign { target, update: Some(Update { op, extra: Vec::new() }), value };
                    }
                    _ => {}
                }
            }
        }
        StmtKind::Assign { target, update: None, value }
    }

    pub(super) fn let_binding(
        &mut self,
        id: StmtId,
        name: &Name,
        binding: Option<(Binding, Span)>,
        op: Option<Op>,
        value: &syntax::Expr,
    ) -> Option<Stmt> {
        let value = self.expr(value);
        let in_this_block = self.scopes.last().is_some_and(|scope| scope.contains_key(&name.text));
        match binding {
            Some((Binding::Index(_), declared)) => {
                self.error::<()>(
                    Diagnostic::new(Code::E0204, format!("the loop index `{}` cannot be assigned", name.text))
                        .label(name.span, "assigned here")
                        .label(declared, "a loop index")
                        .help("choose another name"),
                );
                return None;
            }
            Some((Binding::Var(_), declared)) if op.is_some() || !in_this_block => {
                self.error::<()>(
                    Diagnostic::new(Code::E0204, format!("`{}` is immutable: it is bound once", name.text))
                        .label(name.span, "changed here")
                        .label(declared, "bound here")
                        .help(format!("to make it a variable, declare `{} = scalar(0.0)` and assign to it", name.text)),
                );
                return None;
            }
            None if op.is_some() => {
                if self.declared.get(&name.text).is_some_and(|span| *span != name.span) {
                    self.lookup(name);
                } else {
                    self.error::<()>(
                        Diagnostic::new(Code::E0201, format!("`{}` is not defined", name.text))
                            .label(name.span, "updated before it is declared")
                            .help(format!("declare it before the loop: `{} = scalar(0.0)`", name.text)),
                    );
                }
                return None;
            }
            _ => {}
        }
        let var = VarId(self.program.vars.len() as u32);
        self.program.vars.push(name.text.clone());
        // Bound even if the value has a mistake, so that its uses are not reported as well.
        self.rebind(name, Binding::Var(var));
        if let Some(value) = value {
            self.lets.insert(var, value);
        }
        Some(Stmt { id, kind: StmtKind::Let { var, value: value? } })
    }
}
