//! Parser of expressions, by precedence climbing.

use super::super::lexer::{Tok, Token};
use super::super::syntax::{Expr, ExprKind, Name};
use super::{KEYWORDS, MAX_DEPTH, MAX_OPERATORS, Parser};
use crate::algebra::{Op, Value};
use crate::diag::{Code, Diagnostic, Result};
use crate::program::EntryPart;

/// The names of reductions.
pub(crate) const REDUCTIONS: &[(&str, Op)] =
    &[("sum", Op::Add), ("prod", Op::Mul), ("min", Op::Min), ("max", Op::Max), ("any", Op::Or), ("all", Op::And)];

/// Binary operators by precedence, lowest first; comparisons are separate.
const LEVELS: &[&[&str]] = &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

impl Parser {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH { Err(self.too_deep()) } else { self.ternary() };
        self.depth -= 1;
        result
    }

    pub(super) fn ternary(&mut self) -> Result<Expr> {
        let value = self.or()?;
        if !self.eat_word("if") {
            return Ok(value);
        }
        let cond = self.or()?;
        if !self.eat_word("else") {
            return Err(self.unexpected("`else`").help("the form is `a if condition else b`"));
        }
        let otherwise = self.expr()?;
        let span = value.span.to(otherwise.span);
        Ok(Expr { kind: ExprKind::Operator(Op::Select, vec![cond, value, otherwise]), span })
    }

    /// An operator and its operands. The number of operators is bounded, and so is the height of
    /// the tree.
    pub(super) fn operator(&mut self, op: Op, operands: Vec<Expr>) -> Result<Expr> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(Diagnostic::new(Code::E0105, format!("a statement has more than {MAX_OPERATORS} operators"))
                .label(operands[operands.len() - 1].span, "too many")
                .help("bind subexpressions to names"));
        }
        let span = operands[0].span.to(operands[operands.len() - 1].span);
        Ok(Expr { kind: ExprKind::Operator(op, operands), span })
    }

    /// True if this token is the operator of an update, as in `x or= y`.
    pub(super) fn before_assignment(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Token { tok: Tok::Op("="), .. }))
    }

    pub(super) fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while !self.before_assignment() && self.eat_word("or") {
            let right = self.and()?;
            left = self.operator(Op::Or, vec![left, right])?;
        }
        Ok(left)
    }

    pub(super) fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        while !self.before_assignment() && self.eat_word("and") {
            let right = self.not()?;
            left = self.operator(Op::And, vec![left, right])?;
        }
        Ok(left)
    }

    pub(super) fn not(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut count = 0;
        while self.eat_word("not") {
            count += 1;
        }
        let mut inner = self.comparison()?;
        if count > MAX_DEPTH {
            return Err(self.too_deep());
        }
        for _ in 0..count {
            let span = start.to(inner.span);
            inner = Expr { kind: ExprKind::Operator(Op::Not, vec![inner]), span };
        }
        Ok(inner)
    }

    /// `a < b <= c` means `a < b and b <= c`, as in Python.
    pub(super) fn comparison(&mut self) -> Result<Expr> {
        let first = self.binary(0)?;
        let mut left = first.clone();
        let mut chain: Option<Expr> = None;
        loop {
            let op = match &self.peek().tok {
                Tok::Op(symbol) if ["==", "!=", "<", "<=", ">", ">="].contains(symbol) => Op::infix(symbol),
                _ => None,
            };
            let Some(op) = op else { break };
            self.at += 1;
            let right = self.binary(0)?;
            if chain.is_some() {
                // The middle operand occurs in both comparisons.
                self.operators += count(&left);
            }
            let test = self.operator(op, vec![left, right.clone()])?;
            chain = Some(match chain {
                Some(before) => self.operator(Op::And, vec![before, test])?,
                None => test,
            });
            left = right;
        }
        Ok(chain.unwrap_or(first))
    }

    pub(super) fn binary(&mut self, level: usize) -> Result<Expr> {
        let Some(symbols) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let op = match &self.peek().tok {
                Tok::Op(symbol) if symbols.contains(symbol) => Op::infix(symbol),
                _ => None,
            };
            let Some(op) = op else { return Ok(left) };
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = self.operator(op, vec![left, right])?;
        }
    }

    pub(super) fn unary(&mut self) -> Result<Expr> {
        let start = self.span();
        let op = match self.peek().tok {
            Tok::Op("-") => Op::Neg,
            Tok::Op("~") => Op::BitNot,
            Tok::Op("+") => {
                self.at += 1;
                return self.deeper(Parser::unary);
            }
            _ => return self.power(),
        };
        self.at += 1;
        let inner = self.deeper(Parser::unary)?;
        let span = start.to(inner.span);
        if op == Op::Neg
            && let ExprKind::Number(value) = inner.kind
            && let Some(negative) = negate(value)
        {
            return Ok(Expr { kind: ExprKind::Number(negative), span });
        }
        Ok(Expr { kind: ExprKind::Operator(op, vec![inner]), span })
    }

    pub(super) fn deeper(&mut self, rule: fn(&mut Parser) -> Result<Expr>) -> Result<Expr> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH { Err(self.too_deep()) } else { rule(self) };
        self.depth -= 1;
        result
    }

    pub(super) fn power(&mut self) -> Result<Expr> {
        let base = self.postfix()?;
        if !self.eat("**") {
            return Ok(base);
        }
        let exponent = self.deeper(Parser::unary)?;
        self.operator(Op::Pow, vec![base, exponent])
    }

    pub(super) fn postfix(&mut self) -> Result<Expr> {
        let atom = self.atom()?;
        let ExprKind::Name(text) = &atom.kind else {
            if self.is("[") || self.is("(") {
                return Err(self
                    .unexpected("an operator")
                    .help("only a named tensor can be subscripted, and only a named function can be called"));
            }
            return Ok(atom);
        };
        let mut name = Name { text: text.clone(), span: atom.span };
        // `tm.tensor(...)` in a Python file is `tensor(...)`.
        while self.is(".") {
            self.at += 1;
            let attribute = self.name("a name after `.`")?;
            match attribute.text.as_str() {
                "shape" => return self.size(name),
                "nnz" => return self.entry(name, EntryPart::Count),
                "coords" => return self.entry(name, EntryPart::Coordinate(0)),
                "data" => return self.entry(name, EntryPart::Value),
                "first" => return self.entry(name, EntryPart::First),
                _ => {}
            }
            name = Name { span: name.span.to(attribute.span), ..attribute };
            if !self.is("(") && !self.is(".") {
                return Err(Diagnostic::new(
                    Code::E0101,
                    format!("`.{}` is not an attribute in loop programs", name.text),
                )
                .label(name.span, "unknown attribute")
                .help("the size of a dimension is `A.shape[0]`")
                .help("stored elements are `A.nnz`, `A.coords[0, p]`, `A.data[p]` and `A.first[i]`"));
            }
        }
        if self.eat("[") {
            let subscripts = self.list("]", "a subscript")?;
            if self.is("(")
                && let Some(op) = reduction(&name.text)
            {
                return self.reduction(name, op, subscripts);
            }
            let span = name.span.to(self.last_end());
            return Ok(Expr { kind: ExprKind::Index { base: name, subscripts }, span });
        }
        if self.eat("(") {
            return self.call(name);
        }
        Ok(atom)
    }

    /// `min[j, k](e)`, after the brackets.
    fn reduction(&mut self, name: Name, op: Op, subscripts: Vec<Expr>) -> Result<Expr> {
        let form = format!("write `{}[j](A[i,j])`", name.text);
        let mut indices = Vec::new();
        for subscript in subscripts {
            match subscript.kind {
                ExprKind::Name(text) => indices.push(Name { text, span: subscript.span }),
                _ => {
                    let d = Diagnostic::new(Code::E0111, "only an index can be reduced over");
                    return Err(d.label(subscript.span, "not an index").help(form));
                }
            }
        }
        self.at += 1;
        let body = Box::new(self.expr()?);
        self.expect(")", &form)?;
        let span = name.span.to(self.last_end());
        self.operators += 1;
        Ok(Expr { kind: ExprKind::Reduce { op, indices, body }, span })
    }

    pub(super) fn size(&mut self, base: Name) -> Result<Expr> {
        self.expect("[", "write `A.shape[0]`")?;
        let dim = match self.next().tok {
            Tok::Int(dim) => dim,
            _ => {
                self.at -= 1;
                return Err(self.unexpected("a dimension number").help("write `A.shape[0]`"));
            }
        };
        self.expect("]", "write `A.shape[0]`")?;
        let span = base.span.to(self.last_end());
        Ok(Expr { kind: ExprKind::Size { base, dim }, span })
    }

    /// `A.nnz`, `A.data[p]` and similar queries, after the attribute name.
    pub(super) fn entry(&mut self, base: Name, part: EntryPart) -> Result<Expr> {
        let form = format!("write `{}`", part.form());
        let mut at = Vec::new();
        let mut part = part;
        if part != EntryPart::Count {
            self.expect("[", &form)?;
            if let EntryPart::Coordinate(dim) = &mut part {
                *dim = match self.next().tok {
                    Tok::Int(number) => usize::try_from(number).unwrap_or(usize::MAX),
                    _ => {
                        self.at -= 1;
                        return Err(self.unexpected("a dimension number").help(form));
                    }
                };
                self.expect(",", &form)?;
            }
            at = self.list("]", "an expression")?;
        }
        let span = base.span.to(self.last_end());
        if at.len() != 1 && matches!(part, EntryPart::Coordinate(_) | EntryPart::Value)
            || at.is_empty() && part == EntryPart::First
        {
            let message = match at.len() {
                0 => "the position of the element is missing".to_string(),
                n => format!("an element has one position, not {n}"),
            };
            return Err(Diagnostic::new(Code::E0101, message).label(span, "here").help(form));
        }
        Ok(Expr { kind: ExprKind::Entry { base, part, at }, span })
    }

    /// Expressions separated by commas, up to the closing bracket.
    pub(super) fn list(&mut self, close: &str, what: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.is(close) {
            if self.is(":") {
                return Err(self
                    .unexpected(what)
                    .help("slices are not supported: loop over an index, as in `for i in range(a, b):`"));
            }
            items.push(self.expr()?);
            if !self.eat(",") && !self.is(close) {
                let help = if self.is(":") {
                    "slices are not supported: loop over an index, as in `for i in range(a, b):`".to_string()
                } else {
                    format!("close it with `{close}`")
                };
                return Err(self.unexpected(&format!("`,` or `{close}`")).help(help));
            }
        }
        self.at += 1;
        Ok(items)
    }

    pub(super) fn call(&mut self, function: Name) -> Result<Expr> {
        let mut args = Vec::new();
        let mut keywords = Vec::new();
        while !self.is(")") {
            let keyword = matches!(self.tokens.get(self.at + 1), Some(Token { tok: Tok::Op("="), .. }));
            if keyword {
                let name = self.name("a keyword")?;
                self.at += 1;
                keywords.push((name, self.expr()?));
            } else {
                args.push(self.expr()?);
            }
            if !self.eat(",") && !self.is(")") {
                return Err(self.unexpected("`,` or `)`").help("close the call with `)`"));
            }
        }
        self.at += 1;
        let span = function.span.to(self.last_end());
        Ok(Expr { kind: ExprKind::Call { function, args, keywords }, span })
    }

    pub(super) fn atom(&mut self) -> Result<Expr> {
        let Token { tok, span } = self.peek().clone();
        let kind = match tok {
            Tok::Int(x) => ExprKind::Number(i64::try_from(x).map_or(Value::U64(x), Value::I64)),
            Tok::Float(x) => ExprKind::Number(Value::F64(x)),
            Tok::Imag(x) => ExprKind::Number(Value::C128(num_complex::Complex::new(0.0, x))),
            Tok::Str(text) => ExprKind::Str(text),
            Tok::Ident(word) => match word.as_str() {
                "True" => ExprKind::Number(Value::Bool(true)),
                "False" => ExprKind::Number(Value::Bool(false)),
                "inf" => ExprKind::Number(Value::F64(f64::INFINITY)),
                "nan" => ExprKind::Number(Value::F64(f64::NAN)),
                _ if KEYWORDS.contains(&word.as_str()) => {
                    return Err(self.unexpected("an expression").help(format!("`{word}` cannot be used here")));
                }
                _ => ExprKind::Name(word),
            },
            Tok::Op("(") => {
                self.at += 1;
                let mut items = vec![];
                let mut tuple = self.is(")");
                while !self.is(")") {
                    items.push(self.expr()?);
                    if self.eat(",") {
                        tuple = true;
                    } else if !self.is(")") {
                        return Err(self.unexpected("`)`").help("close the parenthesis"));
                    }
                }
                self.at += 1;
                let span = span.to(self.last_end());
                return Ok(match items.pop() {
                    Some(only) if !tuple => Expr { span, ..only },
                    last => {
                        items.extend(last);
                        Expr { kind: ExprKind::Tuple(items), span }
                    }
                });
            }
            _ => return Err(self.unexpected("an expression").help("for example `A[i,j] * x[j]`")),
        };
        self.at += 1;
        Ok(Expr { kind, span })
    }
}

/// The operator of a reduction by this name.
fn reduction(word: &str) -> Option<Op> {
    REDUCTIONS.iter().find(|(name, _)| *name == word).map(|(_, op)| *op)
}

/// The number of operators of an expression.
fn count(expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Operator(_, operands) => 1 + operands.iter().map(count).sum::<usize>(),
        ExprKind::Index { subscripts, .. } => subscripts.iter().map(count).sum(),
        ExprKind::Entry { at, .. } => at.iter().map(count).sum(),
        ExprKind::Call { args, keywords, .. } => {
            1 + args.iter().chain(keywords.iter().map(|(_, value)| value)).map(count).sum::<usize>()
        }
        ExprKind::Tuple(items) => items.iter().map(count).sum(),
        ExprKind::Reduce { body, .. } => 1 + count(body),
        _ => 0,
    }
}

fn negate(value: Value) -> Option<Value> {
    match value {
        Value::I64(x) => x.checked_neg().map(Value::I64),
        Value::U64(x) if x == i64::MAX as u64 + 1 => Some(Value::I64(i64::MIN)),
        // The sign of NaN is not observable.
        Value::F64(x) => Some(Value::F64(if x.is_nan() { x } else { -x })),
        Value::C128(c) => Some(Value::C128(num_complex::Complex::new(0.0 - c.re, -c.im))),
        _ => None,
    }
}
