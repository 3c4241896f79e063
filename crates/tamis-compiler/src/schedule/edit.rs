//! Program editing for scheduling commands: finds and rewrites loops, and reports what a command
//! cannot do.

use super::LocatedCommand;
use super::describe::statement;
use super::extents::{Classes, lets};
use crate::lower::Policy;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Result, Source, did_you_mean};
use tamis_ir::program::{
    Access, Block, Checked, EntryPart, Expr, ExprId, IndexId, Program, Stmt, StmtId, StmtKind, TensorId, VarId,
    visit_block,
};
use tamis_ir::text::parser::is_name;
use tamis_ir::{Diagnostics, Format, Value};

/// A program under transformation by a scheduling command.
pub(super) struct ProgramEdit<'a> {
    pub(super) program: Program,
    /// The program before any command; its tensor ids are still valid.
    original: &'a Program,
    /// The inferred properties of the program before any command; its tensor ids are still valid.
    pub(super) checked: &'a Checked,
    /// The formats of the parameters, if they are known.
    pub(super) formats: &'a [Format],
    /// The permitted arithmetic assumptions.
    pub(super) policy: Policy,
    pub(super) step: &'a LocatedCommand,
    source: Option<&'a Arc<Source>>,
    next_stmt: u32,
}

impl<'a> ProgramEdit<'a> {
    pub(super) fn new(
        program: Program,
        original: &'a Program,
        checked: &'a Checked,
        formats: &'a [Format],
        policy: Policy,
        step: &'a LocatedCommand,
        source: Option<&'a Arc<Source>>,
    ) -> ProgramEdit<'a> {
        let mut next_stmt = 0;
        program.visit(&mut |stmt| next_stmt = next_stmt.max(stmt.id.0.saturating_add(1)));
        ProgramEdit { program, original, checked, formats, policy, step, source, next_stmt }
    }

    /// The transformed program, verified.
    pub(super) fn finish(self) -> std::result::Result<Program, Diagnostics> {
        self.program.verify()?;
        Ok(self.program)
    }

    // Diagnostics

    /// A diagnostic that points to the command or to one of its arguments.
    pub(super) fn fault(&self, code: Code, message: impl Into<String>, arg: Option<usize>, label: &str) -> Diagnostic {
        let mut d = Diagnostic::new(code, message);
        let span = arg.and_then(|arg| self.step.args.get(arg).copied()).or(self.step.span);
        match (span, self.source) {
            (Some(span), Some(source)) => d = d.label(span, label).with_source(source),
            _ => d = d.note(format!("in the scheduling command `{}`", self.step.command)),
        }
        d
    }

    /// A statement as the user knows it: its text and its location.
    pub(super) fn place(&self, stmt: &Stmt) -> String {
        let text = statement(&self.program, stmt);
        let origin = &self.program.origin;
        match (&origin.source, origin.stmts.get(&stmt.id)) {
            (Some(source), Some(span)) => {
                format!("`{text}` (line {} of {})", source.line_column(span.start).0, source.name)
            }
            _ => format!("`{text}`"),
        }
    }

    // Loops by name

    fn loops(&self) -> Vec<(IndexId, String)> {
        let mut loops = Vec::new();
        self.program.visit(&mut |stmt| {
            if let StmtKind::For { index, .. } = &stmt.kind {
                loops.push((*index, self.program.indices[index.index()].clone()));
            }
        });
        loops
    }

    /// All loops that a name matches; `k#2` is the second loop over `k`.
    fn candidates(&self, name: &str, arg: usize) -> Result<Vec<IndexId>> {
        let loops = self.loops();
        let (wanted, number) = match name.split_once('#') {
            Some((wanted, number)) => (wanted, number.parse::<usize>().ok()),
            None => (name, None),
        };
        let all: Vec<IndexId> = loops.iter().filter(|(_, name)| name == wanted).map(|(index, _)| *index).collect();
        let found = match number {
            None => all,
            Some(number) => all.into_iter().skip(number.wrapping_sub(1)).take(1).collect(),
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let mut names: Vec<&str> = loops.iter().map(|(_, name)| name.as_str()).collect();
        names.dedup();
        let d = self.fault(Code::E1202, format!("there is no loop over `{name}`"), Some(arg), "no such loop");
        let d = match did_you_mean(name, names.iter().copied()) {
            Some(meant) => d.help(format!("did you mean `{meant}`?")),
            None => d,
        };
        Err(d.help(format!("the loops are {}", names.join(", "))))
    }

    /// The unique loop that a name matches.
    pub(super) fn find(&self, name: &str, arg: usize) -> Result<IndexId> {
        match self.candidates(name, arg)?[..] {
            [one] => Ok(one),
            ref several => Err(self.ambiguous(name, several.len(), arg)),
        }
    }

    fn ambiguous(&self, name: &str, count: usize, arg: usize) -> Diagnostic {
        let message = format!("{count} loops iterate over `{name}`");
        let d = self.fault(Code::E1202, message, Some(arg), "which one?");
        d.help(format!("choose one, in the order of the program text: `{name}#1` to `{name}#{count}`"))
    }

    /// The loops that the names match, all of which enclose the innermost one.
    pub(super) fn find_nest(&self, names: &[String]) -> Result<Vec<IndexId>> {
        for (k, name) in names.iter().enumerate() {
            if let Some(first) = names[..k].iter().position(|other| other == name) {
                let message = format!("`{name}` is named twice");
                let d = self.fault(Code::E1202, message, Some(k), "named before");
                return Err(d.help(format!("name each loop once; argument {} is the same", first + 1)));
            }
        }
        let mut candidates = Vec::new();
        for (k, name) in names.iter().enumerate() {
            candidates.push(self.candidates(name, k)?);
        }
        let mut found: Vec<Vec<IndexId>> = Vec::new();
        for innermost in candidates.iter().flatten() {
            let around: Vec<IndexId> = self.around(*innermost).iter().filter_map(|stmt| index_of(stmt)).collect();
            let pick = |loops: &Vec<IndexId>| loops.iter().find(|index| around.contains(index)).copied();
            let nest: Option<Vec<IndexId>> = candidates.iter().map(pick).collect();
            if let Some(nest) = nest
                && !found.contains(&nest)
            {
                found.push(nest);
            }
        }
        match &found[..] {
            [one] => Ok(one.clone()),
            [] => {
                let d = self.fault(Code::E1203, "these loops are not nested", None, "not one nest");
                Err(d.help("name loops of one nest"))
            }
            several => {
                let at = candidates.iter().position(|all| all.len() > 1).unwrap_or(0);
                Err(self.ambiguous(&names[at], candidates[at].len().max(several.len()), at))
            }
        }
    }

    /// The statements that enclose a loop, outermost first, and the loop itself.
    pub(super) fn around(&self, index: IndexId) -> Vec<&Stmt> {
        let mut path = Vec::new();
        path_to(&self.program.body, &|stmt| index_of(stmt) == Some(index), &mut path);
        path
    }

    /// The loop over an index.
    pub(super) fn loop_of(&self, index: IndexId) -> Result<&Stmt> {
        self.around(index).pop().ok_or_else(|| {
            let name = &self.program.indices[index.index()];
            self.fault(Code::E1202, format!("there is no loop over `{name}`"), None, "here").help("name another loop")
        })
    }

    /// Edits the block that contains the first statement that satisfies a predicate.
    pub(super) fn edit<R>(
        &mut self,
        is_it: &dyn Fn(&Stmt) -> bool,
        change: impl FnOnce(&mut ProgramEdit<'a>, &mut Block, usize) -> R,
    ) -> Option<R> {
        let mut body = std::mem::take(&mut self.program.body);
        let changed = holder(&mut body, is_it).map(|(block, at)| change(self, block, at));
        self.program.body = body;
        changed
    }

    /// Edits the loop over an index.
    pub(super) fn edit_loop<R>(
        &mut self,
        index: IndexId,
        change: impl FnOnce(&mut ProgramEdit<'a>, &mut Block, usize) -> R,
    ) -> Option<R> {
        self.edit(&|stmt| index_of(stmt) == Some(index), change)
    }

    // Fresh names and nodes

    /// Refuses a name that is not an identifier, or that is already bound at a loop or inside it.
    pub(super) fn check_new(&self, name: &str, arg: usize, at: IndexId, freed: &[IndexId]) -> Result<()> {
        if !is_name(name) {
            let d = self.fault(Code::E1202, format!("`{name}` cannot be a name"), Some(arg), "not a name");
            return Err(d.help("names are letters, digits and `_`, not starting with a digit, and not keywords"));
        }
        let program = &self.program;
        let mut taken = program.tensors.iter().any(|info| info.name == name) || program.vars.iter().any(|v| v == name);
        let path = self.around(at);
        let mut see = |stmt: &Stmt| {
            if let Some(index) = index_of(stmt) {
                taken |= program.indices[index.index()] == name && !freed.contains(&index);
            }
        };
        path.iter().for_each(|stmt| see(stmt));
        if let Some(StmtKind::For { body, .. }) = path.last().map(|stmt| &stmt.kind) {
            visit_block(body, &mut see);
        }
        if !taken {
            return Ok(());
        }
        let d = self.fault(Code::E1202, format!("the name `{name}` is already in use here"), Some(arg), "in use");
        Err(d.help("choose another name"))
    }

    /// An unused name, derived from `base`.
    pub(super) fn fresh_name(&self, base: &str) -> String {
        let program = &self.program;
        let taken = |name: &str| {
            program.tensors.iter().any(|info| info.name == name)
                || program.vars.iter().chain(&program.indices).any(|other| other == name)
                || !is_name(name)
        };
        let mut name = base.to_string();
        let mut k = 1;
        while taken(&name) {
            k += 1;
            name = format!("{base}{k}");
        }
        name
    }

    /// Checks that a number is a valid positive factor.
    pub(super) fn factor(&self, number: i64, what: &str, arg: usize) -> Result<i64> {
        if (1..=i64::from(i32::MAX)).contains(&number) {
            return Ok(number);
        }
        let message = format!("{what} is a positive number below 2^31, not {number}");
        let d = self.fault(Code::E1207, message, Some(arg), "out of range");
        Err(d.help("write a number such as 32"))
    }

    pub(super) fn new_index(&mut self, name: &str, like: IndexId) -> IndexId {
        let index = IndexId(self.program.indices.len() as u32);
        self.program.indices.push(name.to_string());
        if let Some(span) = self.program.origin.indices.get(&like).copied() {
            self.program.origin.indices.insert(index, span);
        }
        index
    }

    pub(super) fn new_var(&mut self, name: &str) -> VarId {
        let var = VarId(self.program.vars.len() as u32);
        self.program.vars.push(name.to_string());
        var
    }

    /// Creates a statement with the source location of another one.
    pub(super) fn new_stmt(&mut self, kind: StmtKind, like: StmtId) -> Stmt {
        let id = StmtId(self.next_stmt);
        self.next_stmt = self.next_stmt.saturating_add(1);
        if let Some(span) = self.program.origin.stmts.get(&like).copied() {
            self.program.origin.stmts.insert(id, span);
        }
        if let Some(span) = self.program.origin.targets.get(&like).copied() {
            self.program.origin.targets.insert(id, span);
        }
        Stmt { id, kind }
    }

    // Expressions

    pub(super) fn intern(&mut self, expr: Expr) -> ExprId {
        self.program.exprs.intern(expr)
    }

    pub(super) fn int(&mut self, value: i64) -> ExprId {
        self.intern(Expr::Literal(Value::I64(value)))
    }

    /// Builds a binary operation, folding identities.
    pub(super) fn binary(&mut self, op: Op, a: ExprId, b: ExprId) -> ExprId {
        let number = |id: ExprId| match self.program.expr(id) {
            Expr::Literal(Value::I64(n)) => Some(*n),
            _ => None,
        };
        match (op, number(a), number(b)) {
            (Op::Add, Some(0), _) => b,
            (Op::Add | Op::Sub, _, Some(0)) | (Op::Mul | Op::FloorDiv, _, Some(1)) => a,
            (Op::Mul, Some(1), _) => b,
            (Op::Add, Some(x), Some(y)) if x.checked_add(y).is_some() => self.int(x.wrapping_add(y)),
            (Op::Sub, Some(x), Some(y)) if x.checked_sub(y).is_some() => self.int(x.wrapping_sub(y)),
            (Op::Mul, Some(x), Some(y)) if x.checked_mul(y).is_some() => self.int(x.wrapping_mul(y)),
            (Op::FloorDiv, Some(x), Some(y)) if x >= 0 && y > 0 => self.int(x / y),
            _ => self.intern(Expr::Call(op, vec![a, b])),
        }
    }

    /// Widens an integer expression to 64 bits, so that the sums that commands build do not
    /// overflow.
    pub(super) fn wide(&mut self, id: ExprId) -> ExprId {
        if self.is_wide(id) {
            return id;
        }
        self.intern(Expr::Call(Op::Cast(tamis_ir::DType::I64), vec![id]))
    }

    fn is_wide(&self, id: ExprId) -> bool {
        match self.program.expr(id) {
            Expr::Index(_) | Expr::Size(..) | Expr::Literal(Value::I64(_)) => true,
            Expr::Entry(entry) => entry.what != EntryPart::Value,
            Expr::Var(var) => lets(&self.program).get(var).is_some_and(|value| self.is_wide(*value)),
            Expr::Call(Op::Cast(tamis_ir::DType::I64), _) => true,
            Expr::Call(Op::Add | Op::Sub | Op::Mul | Op::FloorDiv | Op::Mod | Op::Min | Op::Max, operands) => {
                operands.iter().all(|operand| self.is_wide(*operand))
            }
            _ => false,
        }
    }

    /// Substitutes expressions for loop indices in all expressions of statements.
    pub(super) fn substitute(&mut self, block: &mut Block, by: &FxHashMap<IndexId, Expr>) {
        self.rewrite(block, &|_, expr| expr_for(expr, by));
    }

    /// Substitutes sub-expressions, outermost first, in all expressions of statements.
    pub(super) fn rewrite(&mut self, block: &mut Block, by: &dyn Fn(ExprId, &Expr) -> Option<Expr>) {
        let mut known = FxHashMap::default();
        block.iter_mut().for_each(|stmt| self.rewrite_in(stmt, by, &mut known));
    }

    fn rewrite_in(
        &mut self,
        stmt: &mut Stmt,
        by: &dyn Fn(ExprId, &Expr) -> Option<Expr>,
        known: &mut FxHashMap<ExprId, ExprId>,
    ) {
        let old = stmt.clone();
        let mut change = |work: &mut ProgramEdit<'a>, id: &mut ExprId| {
            let new = work.replaced(*id, by, known);
            work.keep_span(old.id, *id, new);
            *id = new;
        };
        match &mut stmt.kind {
            StmtKind::Declare(_) => {}
            StmtKind::Let { value, .. } => change(self, value),
            StmtKind::For { extent, body, .. } => {
                if let tamis_ir::program::Extent::Range(start, stop) = extent {
                    change(self, start);
                    change(self, stop);
                }
                body.iter_mut().for_each(|stmt| self.rewrite_in(stmt, by, known));
            }
            StmtKind::If { cond, then, otherwise } => {
                change(self, cond);
                then.iter_mut().chain(otherwise).for_each(|stmt| self.rewrite_in(stmt, by, known));
            }
            StmtKind::Assign { target, update, value } => {
                target.subscripts.iter_mut().for_each(|subscript| change(self, &mut subscript.expr));
                change(self, value);
                update.iter_mut().flat_map(|u| &mut u.extra).for_each(|extra| change(self, extra));
            }
        }
    }

    /// A rewritten expression keeps the source location of the original.
    pub(super) fn keep_span(&mut self, stmt: StmtId, old: ExprId, new: ExprId) {
        if let Some(span) = self.program.origin.exprs.get(&(stmt, old)).copied() {
            self.program.origin.exprs.entry((stmt, new)).or_insert(span);
        }
    }

    /// Rewrites an expression top-down; `known` memoises the results.
    pub(super) fn replaced(
        &mut self,
        id: ExprId,
        by: &dyn Fn(ExprId, &Expr) -> Option<Expr>,
        known: &mut FxHashMap<ExprId, ExprId>,
    ) -> ExprId {
        if let Some(new) = known.get(&id) {
            return *new;
        }
        let mut expr = self.program.expr(id).clone();
        match by(id, &expr) {
            Some(other) => expr = other,
            None => match &mut expr {
                Expr::Call(_, operands) => {
                    operands.iter_mut().for_each(|operand| *operand = self.replaced(*operand, by, known));
                }
                Expr::Read(Access { subscripts, .. }) => {
                    subscripts.iter_mut().for_each(|s| s.expr = self.replaced(s.expr, by, known));
                }
                Expr::Entry(entry) => entry.at.iter_mut().for_each(|at| *at = self.replaced(*at, by, known)),
                _ => {}
            },
        }
        let new = self.intern(expr);
        known.insert(id, new);
        new
    }

    /// True if two dimensions have equal sizes in every call of the program.
    pub(super) fn same_size(&self, a: (TensorId, usize), b: (TensorId, usize)) -> bool {
        a == b || Classes::of(self.original).same(a, b)
    }

    /// The equivalence classes of dimensions that meet in bare subscripts.
    pub(super) fn classes(&self) -> Classes {
        Classes::of(&self.program)
    }
}

fn expr_for(expr: &Expr, by: &FxHashMap<IndexId, Expr>) -> Option<Expr> {
    match expr {
        Expr::Index(index) => by.get(index).cloned(),
        _ => None,
    }
}

/// The index of a loop.
pub(super) fn index_of(stmt: &Stmt) -> Option<IndexId> {
    match &stmt.kind {
        StmtKind::For { index, .. } => Some(*index),
        _ => None,
    }
}

/// Appends the first statement that satisfies a predicate, and its enclosing statements, to a path.
pub(super) fn path_to<'p>(block: &'p Block, is_it: &dyn Fn(&Stmt) -> bool, path: &mut Vec<&'p Stmt>) -> bool {
    for stmt in block {
        path.push(stmt);
        let inside = match &stmt.kind {
            _ if is_it(stmt) => true,
            StmtKind::For { body, .. } => path_to(body, is_it, path),
            StmtKind::If { then, otherwise, .. } => path_to(then, is_it, path) || path_to(otherwise, is_it, path),
            _ => false,
        };
        if inside {
            return true;
        }
        path.pop();
    }
    false
}

/// The block that contains the first statement that satisfies a predicate, and its position in it.
fn holder<'b>(block: &'b mut Block, is_it: &dyn Fn(&Stmt) -> bool) -> Option<(&'b mut Block, usize)> {
    if let Some(at) = block.iter().position(is_it) {
        return Some((block, at));
    }
    for stmt in block {
        let found = match &mut stmt.kind {
            StmtKind::For { body, .. } => holder(body, is_it),
            StmtKind::If { then, otherwise, .. } => match holder(then, is_it) {
                Some(found) => Some(found),
                None => holder(otherwise, is_it),
            },
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
