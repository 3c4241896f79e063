//! Static single assignment form of index notation: one version of a name for each value it takes.
//!
//! In: statements, in which a name may be assigned, updated and read in any order. Out: assignments
//! whose operands never change afterwards, so that passes may move and substitute them freely. A
//! right-hand side means the values before its statement, also if it reads its own target. The last
//! version of a name keeps the name; earlier ones are called `T_1`, `T_2`, and an operand with a
//! new value `T_in`.
//!
//! An update of an unread version is done in place ([`Assignment::again`]). Otherwise the new
//! version is computed from the old one element by element, or starts as a copy of it if the
//! subscripts are not plain indices.

use super::{Assignment, IndexRange, indices_in, reduce};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Result, Span};
use crate::text::syntax::{Expr, ExprKind, Extent, Name, Stmt, StmtKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Assignments in static single assignment form, with the callers' names.
pub(super) struct SsaForm {
    pub(super) assignments: Vec<Assignment>,
    pub(super) params: Vec<Name>,
    pub(super) operands: Vec<String>,
    pub(super) results: Vec<Name>,
}

/// The newest version of a name.
struct NameVersion {
    /// The name in the assignments.
    name: String,
    /// The span of the first assignment; for a parameter, of the first read.
    span: Span,
    param: bool,
    /// True if a statement reads it.
    read: bool,
}

/// A statement, and its trailing ranges.
struct Statement<'a> {
    target: Name,
    subscripts: &'a [Expr],
    op: Option<Op>,
    value: &'a Expr,
    ranges: Vec<IndexRange>,
    span: Span,
    /// Every index of the statement.
    indices: Vec<Name>,
}

/// Converts statements to static single assignment form.
pub(super) fn name(statements: &[Stmt], given: &[&str]) -> Result<SsaForm> {
    let statements = statements.iter().filter_map(Statement::of).collect::<Vec<_>>();
    let mut names = Names::default();
    for statement in &statements {
        names.maker.reserve(&statement.target.text);
        statement.indices.iter().for_each(|index| names.maker.reserve(&index.text));
        for name in statement.reads() {
            names.maker.reserve(&name.text);
        }
    }
    for statement in &statements {
        names.statement(statement, given)?;
    }
    Ok(names.finish())
}

/// The indices of a body without a range that subscript no access.
pub(super) fn unbounded(subscripts: &[Expr], body: &Expr, ranges: &[IndexRange]) -> Vec<Name> {
    let mut all = Vec::new();
    subscripts.iter().for_each(|s| indices_in(s, true, &mut all));
    indices_in(body, false, &mut all);
    let mut bounds = Vec::new();
    subscripted(body, &mut bounds);
    // A gather on the left bounds its indices, too.
    subscripts.iter().for_each(|s| subscripted(s, &mut bounds));
    all.retain(|name| {
        !bounds.iter().any(|bound: &Name| bound.text == name.text)
            && !ranges.iter().any(|range| range.index == name.text)
    });
    all
}

/// The indices that subscript an access, each once. Indices of reductions do not count by
/// themselves.
fn subscripted(expr: &Expr, found: &mut Vec<Name>) {
    match &expr.kind {
        ExprKind::Index { subscripts, .. } => subscripts.iter().for_each(|s| indices_in(s, true, found)),
        ExprKind::Operator(_, operands) => operands.iter().for_each(|e| subscripted(e, found)),
        ExprKind::Call { args, .. } => args.iter().for_each(|e| subscripted(e, found)),
        ExprKind::Reduce { body, .. } => subscripted(body, found),
        _ => {}
    }
}

impl<'a> Statement<'a> {
    fn of(stmt: &'a Stmt) -> Option<Statement<'a>> {
        let (mut ranges, mut inner) = (Vec::new(), stmt);
        while let StmtKind::For { indices, extent, body, .. } = &inner.kind {
            if let Extent::Range(start, stop) = extent {
                let range =
                    |name: &Name| IndexRange { index: name.text.clone(), start: start.clone(), stop: stop.clone() };
                ranges.extend(indices.iter().map(range));
            }
            inner = body.first()?;
        }
        let StmtKind::Assign { target, op, value } = &inner.kind else { return None };
        let (name, subscripts): (Name, &[Expr]) = match &target.kind {
            ExprKind::Index { base, subscripts } => (base.clone(), subscripts),
            ExprKind::Name(text) => (Name { text: text.clone(), span: target.span }, &[]),
            _ => return None,
        };
        let mut indices = Vec::new();
        indices_in(value, false, &mut indices);
        subscripts.iter().for_each(|s| indices_in(s, true, &mut indices));
        for range in &ranges {
            if !indices.iter().any(|index| index.text == range.index) {
                indices.push(Name { text: range.index.clone(), span: stmt.span });
            }
        }
        Some(Statement { target: name, subscripts, op: *op, value, ranges, span: stmt.span, indices })
    }

    /// The tensors and scalars that it reads, in source order.
    fn reads(&self) -> Vec<Name> {
        let mut found = Vec::new();
        tensors_in(self.value, &self.indices, &mut found);
        self.subscripts.iter().for_each(|s| tensors_in(s, &self.indices, &mut found));
        for range in &self.ranges {
            range.start.iter().chain([&range.stop]).for_each(|bound| tensors_in(bound, &self.indices, &mut found));
        }
        found
    }
}

#[derive(Default)]
struct Names {
    maker: reduce::Maker,
    current: FxHashMap<String, NameVersion>,
    /// Names in the order of their first assignment.
    targets: Vec<Name>,
    /// The same names.
    targeted: FxHashSet<String>,
    params: Vec<Name>,
    assignments: Vec<Assignment>,
}

impl Names {
    fn statement(&mut self, statement: &Statement, given: &[&str]) -> Result<()> {
        let Statement { target, subscripts, op, value, ranges, span, indices } = statement;
        subscripts.iter().try_for_each(|s| reduce::target_subscript(s, op.is_some()))?;
        let reads = statement.reads();
        let reads_self = reads.iter().any(|name| name.text == target.text);
        // An update starts from an existing tensor, or from one whose size only the update
        // determines.
        let unknown = !self.current.contains_key(&target.text);
        let starts_from_given = op.is_some()
            && unknown
            && (given.contains(&target.text.as_str()) || !unbounded(subscripts, value, ranges).is_empty());
        if starts_from_given {
            self.param(target);
        }
        reads
            .iter()
            .filter(|name| !self.current.contains_key(&name.text))
            .cloned()
            .collect::<Vec<_>>()
            .iter()
            .for_each(|name| self.param(name));
        let old = self.current.get(&target.text);
        if let Some(old) = old.filter(|old| op.is_none() && !reads_self && (old.param || !old.read)) {
            return Err(overwritten(target, old));
        }
        // Every read is of the version before the statement.
        let mut renamed: FxHashMap<String, String> = FxHashMap::default();
        for name in reads.iter().chain([target]) {
            if let Some(version) = self.current.get(&name.text) {
                renamed.insert(name.text.clone(), version.name.clone());
            }
        }
        let is_index = |text: &str| indices.iter().any(|index| index.text == text);
        let rename = |expr: &Expr| renamed_tensors(expr, &|text| renamed.get(text).filter(|_| !is_index(text)));
        let value = rename(value);
        let subscripts: &[Expr] = &subscripts.iter().map(rename).collect::<Vec<_>>();
        let mut ranges = ranges.clone();
        for range in &mut ranges {
            range.start = range.start.as_ref().map(rename);
            range.stop = rename(&range.stop);
        }
        let in_place = op.is_some() && old.is_some_and(|old| !old.param && !old.read) && !reads_self;
        let old = old.map(|old| old.name.clone());
        for name in &reads {
            if let Some(version) = self.current.get_mut(&name.text) {
                version.read = true;
            }
        }
        let written = match &old {
            None => target.text.clone(),
            Some(old) if in_place => old.clone(),
            Some(_) => self.maker.numbered(&target.text),
        };
        if !in_place {
            if self.targeted.insert(target.text.clone()) {
                self.targets.push(target.clone());
            }
            let version = NameVersion { name: written.clone(), span: target.span, param: false, read: false };
            self.current.insert(target.text.clone(), version);
        }
        let written = Name { text: written, span: target.span };
        let (mut start, mut again) = (None, in_place);
        if let Some(old) = old.filter(|_| op.is_some() && !in_place) {
            let base = Name { text: old, span: target.span };
            if plain(subscripts) {
                start = Some(access(base, subscripts.to_vec(), *span));
            } else {
                let elements: Vec<Expr> = (0..subscripts.len())
                    .map(|d| Expr {
                        kind: ExprKind::Name(self.maker.numbered(&format!("{}_d{d}", target.text))),
                        span: *span,
                    })
                    .collect();
                self.assignments.push(Assignment {
                    target: written.clone(),
                    subscripts: elements.clone(),
                    op: None,
                    body: access(base, elements, *span),
                    span: *span,
                    temporary: false,
                    again: false,
                    ranges: Vec::new(),
                });
                again = true;
            }
        }
        let statement =
            reduce::StatementUpdate { target: &written, subscripts, op: *op, start, again, ranges: &ranges };
        self.assignments.extend(self.maker.statement(statement, &value, *span)?);
        Ok(())
    }

    fn param(&mut self, name: &Name) {
        if self.current.contains_key(&name.text) {
            return;
        }
        self.params.push(name.clone());
        let version = NameVersion { name: name.text.clone(), span: name.span, param: true, read: true };
        self.current.insert(name.text.clone(), version);
    }

    /// Renames the last version of each name to that name, and lists results and parameters.
    fn finish(mut self) -> SsaForm {
        let mut renames: FxHashMap<String, String> = FxHashMap::default();
        let mut operands: Vec<String> = self.params.iter().map(|name| name.text.clone()).collect();
        for target in &self.targets {
            let Some(last) = self.current.get(&target.text).filter(|last| last.name != target.text) else { continue };
            let param = operands.iter().position(|name| *name == target.text);
            let first = match param {
                Some(_) => self.maker.suffixed(&target.text, "in"),
                None => self.maker.numbered(&target.text),
            };
            if let Some(at) = param {
                operands[at] = first.clone();
            }
            renames.insert(target.text.clone(), first);
            renames.insert(last.name.clone(), target.text.clone());
        }
        if !renames.is_empty() {
            for assignment in &mut self.assignments {
                let indices = assignment.indices();
                let to = |text: &str| renames.get(text).filter(|_| !indices.iter().any(|index| index == text));
                let rename = |expr: &Expr| renamed_tensors(expr, &to);
                assignment.body = rename(&assignment.body);
                assignment.subscripts = assignment.subscripts.iter().map(rename).collect();
                if let Some(name) = renames.get(&assignment.target.text) {
                    assignment.target.text = name.clone();
                }
                for range in &mut assignment.ranges {
                    range.start = range.start.as_ref().map(rename);
                    range.stop = rename(&range.stop);
                }
            }
        }
        let unread = |target: &&Name| self.current.get(&target.text).is_some_and(|last| !last.read);
        let results = self.targets.iter().filter(unread).cloned().collect();
        SsaForm { assignments: self.assignments, params: self.params, operands, results }
    }
}

fn overwritten(target: &Name, old: &NameVersion) -> Diagnostic {
    let name = &target.text;
    if old.param {
        return Diagnostic::new(Code::E0114, format!("`{name}` is read before it is assigned"))
            .label(target.span, "assigned here")
            .label(old.span, "read here")
            .help("choose another name for the result");
    }
    Diagnostic::new(Code::E0114, format!("`{name}` is assigned twice, and its first value is never read"))
        .label(target.span, "assigned again")
        .label(old.span, "first assigned here")
        .help("choose another name")
        .help(format!("or add to it: `{name} += ...`"))
}

/// True if subscripts are distinct indices.
fn plain(subscripts: &[Expr]) -> bool {
    let mut seen = FxHashSet::default();
    subscripts.iter().all(|s| matches!(&s.kind, ExprKind::Name(text) if seen.insert(text)))
}

fn access(base: Name, subscripts: Vec<Expr>, span: Span) -> Expr {
    let kind = match subscripts.is_empty() {
        true => ExprKind::Name(base.text),
        false => ExprKind::Index { base, subscripts },
    };
    Expr { kind, span }
}

/// An expression with tensors and scalars renamed.
fn renamed_tensors<'m>(expr: &Expr, to: &dyn Fn(&str) -> Option<&'m String>) -> Expr {
    let each = |list: &[Expr]| list.iter().map(|e| renamed_tensors(e, to)).collect::<Vec<_>>();
    let named = |name: &Name| Name { text: to(&name.text).unwrap_or(&name.text).clone(), span: name.span };
    let kind = match &expr.kind {
        ExprKind::Name(text) => ExprKind::Name(to(text).unwrap_or(text).clone()),
        ExprKind::Index { base, subscripts } => ExprKind::Index { base: named(base), subscripts: each(subscripts) },
        ExprKind::Size { base, dim } => ExprKind::Size { base: named(base), dim: *dim },
        ExprKind::Entry { base, part, at } => ExprKind::Entry { base: named(base), part: *part, at: each(at) },
        ExprKind::Operator(op, operands) => ExprKind::Operator(*op, each(operands)),
        ExprKind::Call { function, args, keywords } => {
            ExprKind::Call { function: function.clone(), args: each(args), keywords: keywords.clone() }
        }
        ExprKind::Reduce { op, indices, body } => {
            ExprKind::Reduce { op: *op, indices: indices.clone(), body: Box::new(renamed_tensors(body, to)) }
        }
        other => other.clone(),
    };
    Expr { kind, span: expr.span }
}

/// An expression with an index renamed, except under reductions that bind it again.
pub(super) fn renamed_indices(expr: &Expr, from: &str, to: &str) -> Expr {
    let each = |list: &[Expr]| list.iter().map(|e| renamed_indices(e, from, to)).collect::<Vec<_>>();
    let kind = match &expr.kind {
        ExprKind::Name(text) if text == from => ExprKind::Name(to.to_string()),
        ExprKind::Index { base, subscripts } => ExprKind::Index { base: base.clone(), subscripts: each(subscripts) },
        ExprKind::Entry { base, part, at } => ExprKind::Entry { base: base.clone(), part: *part, at: each(at) },
        ExprKind::Operator(op, operands) => ExprKind::Operator(*op, each(operands)),
        ExprKind::Call { function, args, keywords } => {
            ExprKind::Call { function: function.clone(), args: each(args), keywords: keywords.clone() }
        }
        ExprKind::Reduce { op, indices, body } if !indices.iter().any(|i| i.text == from) => {
            ExprKind::Reduce { op: *op, indices: indices.clone(), body: Box::new(renamed_indices(body, from, to)) }
        }
        other => other.clone(),
    };
    Expr { kind, span: expr.span }
}

/// The tensors and scalars that an expression reads, each once.
fn tensors_in(expr: &Expr, indices: &[Name], found: &mut Vec<Name>) {
    let mut add = |name: &Name| {
        if !found.iter().any(|other| other.text == name.text) {
            found.push(name.clone());
        }
    };
    match &expr.kind {
        ExprKind::Name(text) if !indices.iter().any(|index| index.text == *text) => {
            add(&Name { text: text.clone(), span: expr.span });
        }
        ExprKind::Index { base, subscripts } => {
            add(base);
            subscripts.iter().for_each(|s| tensors_in(s, indices, found));
        }
        ExprKind::Size { base, .. } | ExprKind::Entry { base, .. } => add(base),
        ExprKind::Operator(_, operands) => operands.iter().for_each(|e| tensors_in(e, indices, found)),
        ExprKind::Call { args, .. } => args.iter().for_each(|e| tensors_in(e, indices, found)),
        ExprKind::Reduce { body, .. } => tensors_in(body, indices, found),
        _ => {}
    }
}
