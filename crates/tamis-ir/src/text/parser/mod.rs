//! Parser of loop programs, a subset of Python: tokens to syntax trees.
//!
//! Mistakes are collected and parsing continues, so that one run reports several.

pub(crate) mod expressions;
mod notation;
mod operators;
mod statements;

pub(crate) use notation::parse_notation;

use super::lexer::{Tok, Token, lex};
use super::syntax::{Expr, File, Function, Name};
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Source, Span};
use std::sync::Arc;

/// The maximum nesting depth of blocks and expressions.
pub(crate) const MAX_DEPTH: usize = 100;

/// The maximum number of operators of a statement.
pub(crate) const MAX_OPERATORS: usize = 1000;

/// The maximum number of reported mistakes.
pub(crate) const MAX_ERRORS: usize = 20;

/// Parses a loop program and the operators that are defined before it.
pub(crate) fn parse_file(source: &Arc<Source>) -> std::result::Result<File, Diagnostics> {
    let (tokens, errors) = lex(&source.text);
    let mut parser = Parser { tokens, at: 0, errors, depth: 0, operators: 0 };
    let file = parser.file();
    let mut errors = parser.errors;
    if errors.is_empty() {
        return Ok(file);
    }
    errors.sort_by_key(|d| d.labels.first().map(|l| l.span));
    errors.dedup();
    errors.truncate(MAX_ERRORS);
    Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect()))
}

/// The diagnostic for a text without a program.
pub(crate) fn no_program(source: &Arc<Source>) -> Diagnostics {
    let end = source.text.len();
    let d = Diagnostic::new(Code::E0101, "expected a program, found the end of the text")
        .label(Span::new(end..end), "expected a program")
        .help("a program starts with `def name(A, B):`");
    Diagnostics(vec![d.with_source(source)])
}

/// Parses one expression of a loop program.
///
/// ```
/// use tamis_ir::Source;
/// use tamis_ir::text::{parser::parse_expression, syntax::ExprKind};
/// let expr = parse_expression(&Source::new("access", "A[i,j] * 2"))?;
/// assert!(matches!(expr.kind, ExprKind::Operator(_, operands) if operands.len() == 2));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn parse_expression(source: &Arc<Source>) -> std::result::Result<Expr, Diagnostics> {
    let (tokens, mut errors) = lex(&source.text);
    let mut parser = Parser { tokens, at: 0, errors: Vec::new(), depth: 0, operators: 0 };
    let read = parser.expr().and_then(|expr| match parser.tokens.get(parser.at..) {
        Some([Token { tok: Tok::Eof, .. }] | [Token { tok: Tok::Newline, .. }, Token { tok: Tok::Eof, .. }]) => {
            Ok(expr)
        }
        _ => Err(parser.unexpected("the end of the expression").help("give one expression, as in `A[i,j] * x[j]`")),
    });
    errors.append(&mut parser.errors);
    match read {
        Ok(expr) if errors.is_empty() => Ok(expr),
        Ok(_) => Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect())),
        Err(d) => {
            errors.push(d);
            Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect()))
        }
    }
}

/// True if the text is a valid name of a loop index or a tensor.
///
/// ```
/// use tamis_ir::text::parser::is_name;
/// assert!(is_name("i0") && !is_name("for") && !is_name("0i") && !is_name("_"));
/// ```
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text != "_"
        && !KEYWORDS.contains(&text)
}

const KEYWORDS: &[&str] = &[
    "def", "for", "in", "if", "elif", "else", "return", "pass", "and", "or", "not", "True", "False", "while", "break",
    "continue", "import", "from", "class", "with", "try", "lambda", "yield", "global", "del", "assert", "raise", "is",
    "None", "async", "await", "except", "finally", "nonlocal", "as",
];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    errors: Vec<Diagnostic>,
    depth: usize,
    /// The number of operators in the current statement.
    operators: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn span(&self) -> Span {
        self.peek().span
    }

    /// The end of the previous token.
    fn last_end(&self) -> Span {
        self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].span
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn is(&self, op: &str) -> bool {
        matches!(&self.peek().tok, Tok::Op(o) if *o == op)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.peek().tok, Tok::Ident(w) if w == word)
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = self.is(op);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, what: &str) -> Diagnostic {
        let token = self.peek();
        Diagnostic::new(Code::E0101, format!("expected {what}, found {}", token.tok.describe()))
            .label(token.span, format!("expected {what}"))
    }

    fn expect(&mut self, op: &str, help: &str) -> Result<()> {
        if self.eat(op) { Ok(()) } else { Err(self.unexpected(&format!("`{op}`")).help(help)) }
    }

    fn name(&mut self, what: &str) -> Result<Name> {
        match self.peek() {
            Token { tok: Tok::Ident(text), span } if !KEYWORDS.contains(&text.as_str()) => {
                let name = Name { text: text.clone(), span: *span };
                self.at += 1;
                Ok(name)
            }
            Token { tok: Tok::Ident(text), span } => {
                Err(Diagnostic::new(Code::E0101, format!("expected {what}, but `{text}` is a keyword"))
                    .label(*span, "a keyword of Python")
                    .help("choose another name"))
            }
            _ => Err(self.unexpected(what).help("names are letters, digits and `_`, not starting with a digit")),
        }
    }

    /// Error recovery: skips to the end of the line.
    fn recover(&mut self) {
        while !matches!(self.peek().tok, Tok::Newline | Tok::Eof | Tok::Dedent | Tok::Indent) {
            self.at += 1;
        }
        if matches!(self.peek().tok, Tok::Newline) {
            self.at += 1;
        }
    }

    // Files

    /// `import` lines, decorators and a docstring may precede a `def`. A function with `@op` is an
    /// operator; one other `def` is the program.
    fn file(&mut self) -> File {
        let mut file = File { operators: Vec::new(), function: None };
        loop {
            match &self.peek().tok {
                Tok::Eof => break,
                Tok::Newline | Tok::Dedent => self.at += 1,
                Tok::Str(_) => self.recover(),
                Tok::Op("@") if self.at_operator() => {
                    let at = self.span();
                    let operator = self.operator_definition();
                    if file.function.is_some() {
                        self.errors.push(
                            Diagnostic::new(Code::E0110, "operators are defined before the program that uses them")
                                .label(at, "after the program")
                                .help("move it up"),
                        );
                    }
                    file.operators.extend(operator);
                }
                Tok::Op("@") => self.recover(),
                Tok::Ident(word) if word == "import" || word == "from" => self.recover(),
                Tok::Ident(word) if word == "def" => {
                    let span = self.span();
                    let parsed = self.function();
                    if file.function.is_some() {
                        self.errors.push(
                            Diagnostic::new(Code::E0104, "a source file has one program")
                                .label(span, "a second `def`")
                                .help("put each program into its own file")
                                .help("or write `@op` above a function that is used as an operator"),
                        );
                    }
                    file.function = file.function.or(parsed);
                }
                _ => {
                    let error = self.not_a_program();
                    self.errors.push(error);
                    self.recover();
                    self.skip_block();
                    return file;
                }
            }
        }
        file
    }

    fn not_a_program(&self) -> Diagnostic {
        let line = self.tokens[self.at..].iter().take_while(|t| !matches!(t.tok, Tok::Newline | Tok::Eof));
        let mut line = line.skip_while(|t| !matches!(t.tok, Tok::Op("=")));
        if line.next().is_some() {
            return Diagnostic::new(Code::E0109, "this is index notation, but a loop program is expected")
                .label(self.span(), "expected `def`")
                .help("write a loop program:\n    def f(A, x):\n        y = tensor(\"dense\")\n        for i, j in _:\n            y[i] += A[i,j] * x[j]\n        return y");
        }
        self.unexpected("`def`").help("a program starts with `def name(A, B):`")
    }

    fn function(&mut self) -> Option<Function> {
        let start = self.span();
        self.at += 1;
        let header = self.function_header("the name of the program", "`def name(A, B):`");
        let span = start.to(self.last_end());
        let header = header.map_err(|d| self.errors.push(d));
        if header.is_err() {
            self.recover();
        }
        let body = self.block("the program");
        let (name, params) = header.ok()?;
        Some(Function { name, params, body, span })
    }

    fn function_header(&mut self, what: &str, form: &str) -> Result<(Name, Vec<Name>)> {
        let name = self.name(what)?;
        self.expect("(", &format!("the form is {form}"))?;
        let mut params = Vec::new();
        while !self.is(")") {
            params.push(self.name("a parameter")?);
            if self.is(":") || self.is("=") {
                return Err(self.unexpected("`,` or `)`").help("parameters have no annotations or defaults"));
            }
            if !self.eat(",") && !self.is(")") {
                return Err(self.unexpected("`,` or `)`").help("separate parameters by commas"));
            }
        }
        self.at += 1;
        if self.eat("->") {
            return Err(self.unexpected("`:`").help("results are named by `return`, without annotations"));
        }
        self.colon(form)?;
        Ok((name, params))
    }

    /// The colon that opens a block; the block follows on lines of its own, or is one statement on
    /// this line.
    fn colon(&mut self, form: &str) -> Result<()> {
        self.expect(":", &format!("the form is {form}"))
    }
}
