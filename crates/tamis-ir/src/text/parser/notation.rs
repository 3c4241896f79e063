//! Parser of index notation: statements without loops, also in TACO's syntax.

use super::super::lexer::{Tok, lex};
use super::super::syntax::{Expr, ExprKind, Extent, Name, Operator, Stmt, StmtKind};
use super::{MAX_ERRORS, Parser};
use crate::algebra::Op;
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Source, Span};
use std::sync::Arc;

/// Parses index notation, and the operators that are defined before it.
pub(crate) fn parse_notation(source: &Arc<Source>) -> std::result::Result<(Vec<Operator>, Vec<Stmt>), Diagnostics> {
    let (tokens, errors) = lex(&source.text);
    let mut parser = Parser { tokens, at: 0, errors, depth: 0, operators: 0 };
    let (mut operators, mut statements) = (Vec::new(), Vec::new());
    loop {
        match &parser.peek().tok {
            Tok::Eof => break,
            Tok::Newline | Tok::Dedent | Tok::Indent | Tok::Op(";") => parser.at += 1,
            Tok::Op("@") if parser.at_operator() => operators.extend(parser.operator_definition()),
            _ => {
                let before = parser.at;
                parser.operators = 0;
                match parser.notation_statement() {
                    Ok(statement) => statements.push(statement),
                    Err(error) => {
                        parser.errors.push(error);
                        parser.recover();
                        parser.at = parser.at.max(before + 1);
                    }
                }
            }
        }
    }
    if statements.is_empty() && parser.errors.is_empty() {
        let end = source.text.len();
        let d = Diagnostic::new(Code::E0101, "expected index notation, found the end of the text");
        let d = d.label(Span::new(end..end), "expected a statement").help("for example `y[i] = A[i,j] * x[j]`");
        parser.errors.push(d);
    }
    let mut errors = parser.errors;
    if errors.is_empty() {
        return Ok((operators, statements));
    }
    errors.sort_by_key(|d| d.labels.first().map(|l| l.span));
    errors.dedup();
    errors.truncate(MAX_ERRORS);
    Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect()))
}

impl Parser {
    fn notation_statement(&mut self) -> Result<Stmt> {
        let start = self.span();
        if self.is_word("for") || self.is_word("def") || self.is_word("return") || self.is_word("if") {
            let d = self.unexpected("a statement of index notation");
            return Err(d.help("index notation has no loops: `y[i] = A[i,j] * x[j]`"));
        }
        let target = self.expr()?;
        let Some(op) = self.assignment_operator()? else {
            let d = self.unexpected("`=` or an update such as `+=`");
            return Err(d.help("a statement is `y[i] = A[i,j] * x[j]`, or `y[i] min= ...`"));
        };
        let round = matches!(&target.kind, ExprKind::Call { .. });
        let target = as_access(target, true);
        if !matches!(target.kind, ExprKind::Name(_) | ExprKind::Index { .. }) {
            return Err(Diagnostic::new(Code::E0111, "only a name or a subscripted tensor can be assigned")
                .label(target.span, "cannot be assigned")
                .help("write `y[i] = ...`, or `s = ...` for a single number"));
        }
        let value = as_access(self.expr()?, round);
        let ranges = self.index_ranges()?;
        let span = start.to(self.last_end());
        if self.is("=") {
            return Err(self.unexpected("the end of the statement").help("to compare, write `==`"));
        }
        self.end_of_statement()?;
        let mut stmt = Stmt { kind: StmtKind::Assign { target, op, value }, span };
        for (index, extent) in ranges.into_iter().rev() {
            let (indices, attributes, body) = (vec![index], Vec::new(), vec![stmt]);
            stmt = Stmt { kind: StmtKind::For { indices, attributes, extent, body }, span };
        }
        Ok(stmt)
    }

    /// The ranges of indices after a statement: `for i in range(10) for k in range(-1, 2)`, also
    /// separated by commas.
    fn index_ranges(&mut self) -> Result<Vec<(Name, Extent)>> {
        let form = "`y[i] = x[i+k] for k in range(3)`";
        let mut ranges: Vec<(Name, Extent)> = Vec::new();
        while self.is_word("for") || (!ranges.is_empty() && self.is(",")) {
            let comma = self.eat(",");
            if !self.eat_word("for") && !comma {
                break;
            }
            let index = self.name("an index")?;
            if !self.eat_word("in") {
                return Err(self.unexpected("`in`").help(format!("the form is {form}")));
            }
            let extent = self.extent(form)?;
            if ranges.iter().any(|(other, _)| other.text == index.text) {
                return Err(Diagnostic::new(Code::E0113, format!("index `{}` has two ranges", index.text))
                    .label(index.span, "again")
                    .help("write one range for each index"));
            }
            ranges.push((index, extent));
        }
        Ok(ranges)
    }
}

/// Converts `A(i, j)` to `A[i, j]` if `A` is no function and one of two conditions holds: the
/// target of the statement has parentheses, or the operands are all indices.
fn as_access(expr: Expr, round: bool) -> Expr {
    let Expr { kind, span } = expr;
    let each = |list: Vec<Expr>| list.into_iter().map(|e| as_access(e, round)).collect::<Vec<_>>();
    let kind = match kind {
        ExprKind::Call { function, args, keywords }
            if keywords.is_empty()
                && Op::named(&function.text).is_none()
                && !["walk", "follow", "gallop"].contains(&function.text.as_str())
                && !args.is_empty()
                && (round || args.iter().all(is_affine)) =>
        {
            ExprKind::Index { base: function, subscripts: each(args) }
        }
        ExprKind::Call { function, args, keywords } => ExprKind::Call { function, args: each(args), keywords },
        ExprKind::Operator(op, operands) => ExprKind::Operator(op, each(operands)),
        ExprKind::Index { base, subscripts } => ExprKind::Index { base, subscripts: each(subscripts) },
        ExprKind::Reduce { op, indices, body } => {
            ExprKind::Reduce { op, indices, body: Box::new(as_access(*body, round)) }
        }
        other => other,
    };
    Expr { kind, span }
}

fn is_affine(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Number(_) => true,
        ExprKind::Operator(Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::BitNot, operands) => {
            operands.iter().all(is_affine)
        }
        _ => false,
    }
}
