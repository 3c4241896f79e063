//! Pattern matching: finds an expression of the user's text in the statements of a program.

use super::edit::ProgramEdit;
use super::extents::lets;
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Result, Source};
use tamis_ir::program::{Access, Entry, EntryPart, Expr, ExprId, Program, Protocol, Stmt, StmtKind};
use tamis_ir::text::parser::parse_expression;
use tamis_ir::text::syntax::{self, ExprKind};

/// A matched expression in a statement.
pub(super) struct Match {
    pub(super) stmt: Stmt,
    /// The expression.
    pub(super) part: ExprId,
    /// The right-hand side that contains it.
    pub(super) value: ExprId,
}

/// Finds the unique assignment whose right-hand side contains an expression. Operands of an
/// associative and commutative operator match in any order and as a subset.
pub(super) fn find(work: &mut ProgramEdit, text: &str) -> Result<Match> {
    let source = Source::new("expression", text);
    let pattern = parse_expression(&source).map_err(|errors| {
        let why = errors.0.first().map_or_else(String::new, |d| d.message.clone());
        let d = work.fault(Code::E1201, format!("`{text}` is not an expression: {why}"), Some(0), "cannot be read");
        d.help("write it as in the program, for example `A[i,j] * B[j,k]`")
    })?;
    let mut assignments = Vec::new();
    work.program.visit(&mut |stmt| {
        if let StmtKind::Assign { value, .. } = &stmt.kind {
            assignments.push((stmt.clone(), *value));
        }
    });
    let mut found = Vec::new();
    for (stmt, value) in assignments {
        if let Some(part) = exact(&work.program, value, &pattern) {
            found.push(Match { stmt, part, value });
        } else if let Some((part, value)) = regroup(work, value, &pattern) {
            found.push(Match { stmt, part, value });
        }
    }
    let several = found.len();
    match (found.pop(), several) {
        (Some(one), 1) => Ok(one),
        (None, _) => Err(nowhere(work, text)),
        (Some(last), _) => {
            let message = format!("`{text}` occurs in {several} statements");
            let d = work.fault(Code::E1202, message, Some(0), "which one?");
            let d = d.note(format!("one of them is {}", work.place(&last.stmt)));
            Err(d.help("rename the loops in the program so that the statements differ"))
        }
    }
}

fn nowhere(work: &ProgramEdit, text: &str) -> Diagnostic {
    let d = work.fault(Code::E1202, format!("`{text}` is not part of any assignment"), Some(0), "not found");
    let mut shown = Vec::new();
    work.program.visit(&mut |stmt| {
        if let StmtKind::Assign { value, .. } = &stmt.kind
            && shown.len() < 5
        {
            shown.push(format!("`{}`", work.program.show(*value)));
        }
    });
    d.help(format!("write it as in the program; the values are {}", shown.join(", ")))
}

/// The first sub-expression that matches the pattern.
fn exact(program: &Program, id: ExprId, pattern: &syntax::Expr) -> Option<ExprId> {
    if is(program, id, pattern) {
        return Some(id);
    }
    match program.expr(id) {
        Expr::Call(_, operands) => operands.iter().find_map(|operand| exact(program, *operand, pattern)),
        _ => None,
    }
}

pub(super) fn is(program: &Program, id: ExprId, pattern: &syntax::Expr) -> bool {
    let all = |ids: &[ExprId], patterns: &[syntax::Expr]| {
        ids.len() == patterns.len() && ids.iter().zip(patterns).all(|(id, pattern)| is(program, *id, pattern))
    };
    let named = |access: &Access, name: &str, patterns: &[syntax::Expr]| {
        program.tensor(access.tensor).name == name
            && access.subscripts.len() == patterns.len()
            && access.subscripts.iter().zip(patterns).all(|(s, pattern)| is(program, s.expr, subscript(pattern)))
    };
    match (program.expr(id), &pattern.kind) {
        (Expr::Literal(value), ExprKind::Number(written)) => value.same_number(*written),
        (Expr::Index(index), ExprKind::Name(name)) => program.indices[index.index()] == *name,
        (Expr::Var(var), ExprKind::Name(name)) => program.vars[var.index()] == *name,
        (Expr::Read(access), ExprKind::Name(name)) => named(access, name, &[]),
        (Expr::Read(access), ExprKind::Index { base, subscripts }) => named(access, &base.text, subscripts),
        // TACO spells accesses with parentheses.
        (Expr::Read(access), ExprKind::Call { function, args, .. }) => named(access, &function.text, args),
        (Expr::Size(tensor, dim), ExprKind::Size { base, dim: written }) => {
            program.tensor(*tensor).name == base.text && u64::try_from(*dim) == Ok(*written)
        }
        (Expr::Entry(entry), ExprKind::Entry { base, part, at }) => {
            program.tensor(entry.tensor).name == base.text && entry.what == *part && all(&entry.at, at)
        }
        // An access in a position loop still matches its original subscripts.
        (Expr::Entry(entry), ExprKind::Index { base, subscripts }) => is_entry(program, entry, &base.text, subscripts),
        (Expr::Entry(entry), ExprKind::Call { function, args, .. }) => is_entry(program, entry, &function.text, args),
        (Expr::Call(op, operands), ExprKind::Operator(written, patterns)) => op == written && all(operands, patterns),
        (Expr::Call(op, operands), ExprKind::Call { function, args, .. }) => {
            let named = match op {
                Op::User(user) => user.name() == function.text,
                _ => Op::named(&function.text) == Some(*op),
            };
            named && all(operands, args)
        }
        _ => false,
    }
}

/// True if a stored value is the element at these subscripts: each is bound to the coordinate of
/// that position, or determines the bounds of the position loops.
fn is_entry(program: &Program, entry: &Entry, name: &str, patterns: &[syntax::Expr]) -> bool {
    let info = program.tensor(entry.tensor);
    if entry.what != EntryPart::Value || info.name != name || info.rank != patterns.len() {
        return false;
    }
    let lets = lets(program);
    patterns.iter().enumerate().all(|(dim, pattern)| {
        let pattern = subscript(pattern);
        let coordinate = Expr::Entry(Entry { what: EntryPart::Coordinate(dim), ..entry.clone() });
        let mut bound = lets.iter().filter(|(_, value)| *program.expr(**value) == coordinate).peekable();
        if bound.peek().is_some() {
            let name = match &pattern.kind {
                ExprKind::Name(name) => name,
                _ => return false,
            };
            return bound.any(|(var, _)| program.vars[var.index()] == *name);
        }
        program.exprs.ids().any(|id| match program.expr(id) {
            Expr::Entry(first) => {
                first.tensor == entry.tensor
                    && first.what == EntryPart::First
                    && first.at.iter().any(|at| is(program, *at, pattern))
            }
            _ => false,
        })
    })
}

/// A subscript without its access protocol.
fn subscript(pattern: &syntax::Expr) -> &syntax::Expr {
    match &pattern.kind {
        ExprKind::Operator(Op::BitNot, operands) if operands.len() == 1 => subscript(&operands[0]),
        ExprKind::Call { function, args, .. }
            if args.len() == 1 && Protocol::ALL.iter().any(|protocol| protocol.name() == function.text) =>
        {
            subscript(&args[0])
        }
        _ => pattern,
    }
}

/// If the pattern's operands are a subset of a chain of one operator, regroups the chain. Returns
/// the matched part and the whole.
fn regroup(work: &mut ProgramEdit, value: ExprId, pattern: &syntax::Expr) -> Option<(ExprId, ExprId)> {
    let ExprKind::Operator(op, _) = &pattern.kind else { return None };
    let op = *op;
    if !(op.info().associative && op.info().commutative) {
        return None;
    }
    let mut wanted = Vec::new();
    flatten_pattern(pattern, op, &mut wanted);
    let mut chains = Vec::new();
    outermost_chains(&work.program, value, op, &mut chains);
    for chain in chains {
        let mut rest = Vec::new();
        flatten(&work.program, chain, op, &mut rest);
        let mut taken = Vec::new();
        for pattern in &wanted {
            let Some(at) = rest.iter().position(|id| is(&work.program, *id, pattern)) else { break };
            taken.push(rest.remove(at));
        }
        if taken.len() < wanted.len() {
            continue;
        }
        let join = |work: &mut ProgramEdit, ids: &[ExprId]| {
            ids.iter().copied().reduce(|a, b| work.intern(Expr::Call(op, vec![a, b])))
        };
        let part = join(work, &taken)?;
        let all: Vec<ExprId> = [part].into_iter().chain(rest).collect();
        let whole = join(work, &all)?;
        let expr = work.program.expr(whole).clone();
        let value = work.replaced(value, &|id, _| (id == chain).then(|| expr.clone()), &mut Default::default());
        return Some((part, value));
    }
    None
}

fn flatten_pattern<'p>(pattern: &'p syntax::Expr, op: Op, found: &mut Vec<&'p syntax::Expr>) {
    match &pattern.kind {
        ExprKind::Operator(other, operands) if *other == op => {
            operands.iter().for_each(|operand| flatten_pattern(operand, op, found));
        }
        _ => found.push(pattern),
    }
}

fn flatten(program: &Program, id: ExprId, op: Op, found: &mut Vec<ExprId>) {
    match program.expr(id) {
        Expr::Call(other, operands) if *other == op => {
            operands.iter().for_each(|operand| flatten(program, *operand, op, found));
        }
        _ => found.push(id),
    }
}

fn outermost_chains(program: &Program, id: ExprId, op: Op, found: &mut Vec<ExprId>) {
    match program.expr(id) {
        Expr::Call(other, _) if *other == op => found.push(id),
        Expr::Call(_, operands) => operands.iter().for_each(|operand| outermost_chains(program, *operand, op, found)),
        _ => {}
    }
}
