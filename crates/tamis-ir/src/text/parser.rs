//! Tokens to syntax: loop programs, a subset of Python. Mistakes are collected and parsing goes on, so
//! that one run reports several.

use super::lexer::{Tok, Token, lex};
use super::syntax::{Expr, ExprKind, Extent, Function, Name, Stmt, StmtKind};
use crate::algebra::{Op, Value};
use crate::diag::{Code, Diagnostic, Diagnostics, Result, Source, Span, did_you_mean};
use std::sync::Arc;

/// How deep blocks and expressions may be nested.
pub const MAX_DEPTH: usize = 100;

/// How many operators a statement may have.
pub const MAX_OPERATORS: usize = 1000;

/// The most mistakes that one run reports.
pub const MAX_ERRORS: usize = 20;

/// Reads a loop program.
pub fn parse_function(source: &Arc<Source>) -> std::result::Result<Function, Diagnostics> {
    let (tokens, errors) = lex(&source.text);
    let mut parser = Parser { tokens, at: 0, errors, depth: 0, operators: 0 };
    let function = parser.file();
    let mut errors = parser.errors;
    match function {
        Some(function) if errors.is_empty() => Ok(function),
        _ => {
            errors.sort_by_key(|d| d.labels.first().map(|l| l.span));
            errors.dedup();
            errors.truncate(MAX_ERRORS);
            Err(Diagnostics(errors.into_iter().map(|d| d.with_source(source)).collect()))
        }
    }
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
    /// Operators in the statement being read.
    operators: usize,
}

/// Binary operators by how tightly they bind, loosest first; comparisons are handled apart.
const LEVELS: &[&[&str]] = &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn span(&self) -> Span {
        self.peek().span
    }

    /// Where the token before this one ends.
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

    /// After a mistake: on to the end of the line.
    fn recover(&mut self) {
        while !matches!(self.peek().tok, Tok::Newline | Tok::Eof | Tok::Dedent | Tok::Indent) {
            self.at += 1;
        }
        if matches!(self.peek().tok, Tok::Newline) {
            self.at += 1;
        }
    }

    // Files

    /// `import` lines, decorators and a docstring may stand before the one `def`.
    fn file(&mut self) -> Option<Function> {
        let mut function = None;
        loop {
            match &self.peek().tok {
                Tok::Eof => break,
                Tok::Newline | Tok::Dedent => self.at += 1,
                Tok::Str(_) => self.recover(),
                Tok::Op("@") => self.recover(),
                Tok::Ident(word) if word == "import" || word == "from" => self.recover(),
                Tok::Ident(word) if word == "def" => {
                    let span = self.span();
                    let parsed = self.function();
                    if function.is_some() {
                        self.errors.push(
                            Diagnostic::new(Code::E0104, "a text holds one program")
                                .label(span, "a second `def`")
                                .help("keep each program in a file of its own"),
                        );
                    }
                    function = function.or(parsed);
                }
                _ => {
                    let error = self.not_a_program();
                    self.errors.push(error);
                    self.recover();
                    self.skip_block();
                    return function;
                }
            }
        }
        if function.is_none() && self.errors.is_empty() {
            let error = self.unexpected("a program").help("a program starts with `def name(A, B):`");
            self.errors.push(error);
        }
        function
    }

    fn not_a_program(&self) -> Diagnostic {
        let line = self.tokens[self.at..].iter().take_while(|t| !matches!(t.tok, Tok::Newline | Tok::Eof));
        let mut line = line.skip_while(|t| !matches!(t.tok, Tok::Op("=")));
        if line.next().is_some() {
            return Diagnostic::new(Code::E0109, "this looks like index notation, which needs its loops written out here")
                .label(self.span(), "expected `def`")
                .help("write a loop program:\n    def f(A, x):\n        y = tensor(\"dense\")\n        for i, j in _:\n            y[i] += A[i,j] * x[j]\n        return y");
        }
        self.unexpected("`def`").help("a program starts with `def name(A, B):`")
    }

    fn function(&mut self) -> Option<Function> {
        let start = self.span();
        self.at += 1;
        let header = self.function_header();
        let span = start.to(self.last_end());
        let header = header.map_err(|d| self.errors.push(d));
        if header.is_err() {
            self.recover();
        }
        let body = self.block("the program");
        let (name, params) = header.ok()?;
        Some(Function { name, params, body, span })
    }

    fn function_header(&mut self) -> Result<(Name, Vec<Name>)> {
        let name = self.name("the name of the program")?;
        self.expect("(", "a program starts with `def name(A, B):`")?;
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
        self.colon("`def name(A, B):`")?;
        Ok((name, params))
    }

    /// The colon that opens a block, and the end of its line.
    fn colon(&mut self, form: &str) -> Result<()> {
        self.expect(":", &format!("the form is {form}"))?;
        match self.peek().tok {
            Tok::Newline => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.unexpected("the end of the line").help("put the block on lines of its own, indented")),
        }
    }

    // Statements

    fn block(&mut self, of: &str) -> Vec<Stmt> {
        if !matches!(self.peek().tok, Tok::Indent) {
            let error = Diagnostic::new(Code::E0102, format!("the block of {of} is missing"))
                .label(self.span(), "expected an indented line before this")
                .help("indent its statements by four spaces, or write `pass`");
            self.errors.push(error);
            return Vec::new();
        }
        self.at += 1;
        self.depth += 1;
        let mut body = Vec::new();
        if self.depth > MAX_DEPTH {
            let error = self.too_deep();
            self.errors.push(error);
            self.at -= 1;
            self.skip_block();
        } else {
            while !matches!(self.peek().tok, Tok::Dedent | Tok::Eof) {
                self.statement(&mut body);
            }
            if matches!(self.peek().tok, Tok::Dedent) {
                self.at += 1;
            }
        }
        self.depth -= 1;
        body
    }

    fn skip_block(&mut self) {
        let mut open = 0;
        loop {
            match self.peek().tok {
                Tok::Indent => open += 1,
                Tok::Dedent if open > 0 => open -= 1,
                Tok::Eof => return,
                _ => {}
            }
            if open == 0 && !matches!(self.peek().tok, Tok::Dedent) {
                return;
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn too_deep(&self) -> Diagnostic {
        Diagnostic::new(Code::E0105, format!("nested more than {MAX_DEPTH} deep"))
            .label(self.span(), "too deep")
            .help("bind inner expressions to names")
    }

    fn statement(&mut self, body: &mut Vec<Stmt>) {
        match self.peek().tok {
            // A block that nothing opened: say so once, and read on inside it.
            Tok::Indent => {
                let error = Diagnostic::new(Code::E0102, "this line is indented, but no block starts here")
                    .label(self.span(), "unexpected indentation")
                    .help("indent it like the line before");
                self.errors.push(error);
                body.extend(self.block("this line"));
                return;
            }
            Tok::Newline => {
                self.at += 1;
                return;
            }
            _ => {}
        }
        let before = self.at;
        self.operators = 0;
        match self.statement_or_error() {
            Ok(statement) => body.extend(statement),
            Err(error) => {
                self.errors.push(error);
                self.recover();
                // The block below a broken header may hold more mistakes.
                if matches!(self.peek().tok, Tok::Indent) {
                    self.block("this line");
                }
                // Always get further.
                self.at = self.at.max(before + 1);
            }
        }
    }

    fn statement_or_error(&mut self) -> Result<Option<Stmt>> {
        let start = self.span();
        let word = match &self.peek().tok {
            Tok::Ident(word) => word.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "for" => self.for_loop(start).map(Some),
            "if" => self.conditional(start).map(Some),
            "pass" => {
                self.at += 1;
                self.end_of_statement().map(|()| None)
            }
            "return" => {
                self.at += 1;
                let mut names = Vec::new();
                let tuple = self.eat("(");
                loop {
                    names.push(self.name("the name of a result")?);
                    if !self.eat(",") || self.is(")") {
                        break;
                    }
                }
                if tuple {
                    self.expect(")", "close the tuple of results")?;
                }
                let span = start.to(self.last_end());
                self.end_of_statement()?;
                Ok(Some(Stmt { kind: StmtKind::Return(names), span }))
            }
            "elif" | "else" => {
                Err(self.unexpected("a statement").help(format!("`{word}` follows the block of an `if`")))
            }
            "while" => Err(self.no_such_statement(
                "`while`",
                "loop over an index with `for i in range(n):`; to stop early, reduce into `short_circuit_scalar(...)`",
            )),
            "break" | "continue" => Err(self.no_such_statement(
                &format!("`{word}`"),
                "to leave a loop early, reduce into `short_circuit_scalar(...)`; to skip, use `if`",
            )),
            "def" | "class" | "import" | "from" | "with" | "try" | "global" | "nonlocal" | "del" | "assert"
            | "raise" | "yield" | "async" | "lambda" => Err(self.no_such_statement(
                &format!("`{word}`"),
                "loop programs have declarations, assignments, `for`, `if`, `pass`, `return`",
            )),
            _ => {
                if matches!(self.peek().tok, Tok::Str(_)) {
                    self.at += 1;
                    return self.end_of_statement().map(|()| None);
                }
                self.assignment(start).map(Some)
            }
        }
    }

    fn no_such_statement(&self, what: &str, help: &str) -> Diagnostic {
        Diagnostic::new(Code::E0104, format!("loop programs have no {what}"))
            .label(self.span(), "not available here")
            .help(help)
    }

    fn end_of_statement(&mut self) -> Result<()> {
        match self.peek().tok {
            Tok::Newline => {
                self.at += 1;
                Ok(())
            }
            Tok::Eof | Tok::Dedent => Ok(()),
            Tok::Op(";") => {
                self.at += 1;
                if matches!(self.peek().tok, Tok::Newline) {
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(self.unexpected("the end of the statement").help("put each statement on a line of its own")),
        }
    }

    fn for_loop(&mut self, start: Span) -> Result<Stmt> {
        self.at += 1;
        let form = "`for i in _:` or `for i in range(a, b):`";
        let mut indices = Vec::new();
        loop {
            indices.push(self.name("a loop index")?);
            if !self.eat(",") {
                break;
            }
        }
        if !self.eat_word("in") {
            return Err(self.unexpected("`in`").help(format!("the form is {form}")));
        }
        let extent = self.extent(form)?;
        let span = start.to(self.last_end());
        self.colon(form)?;
        let body = self.block("the loop");
        Ok(Stmt { kind: StmtKind::For { indices, extent, body }, span })
    }

    fn extent(&mut self, form: &str) -> Result<Extent> {
        let start = self.span();
        if self.eat_word("_") {
            return Ok(Extent::Infer);
        }
        if !self.is_word("range") {
            return Err(Diagnostic::new(
                Code::E0106,
                format!("expected `_` or `range(a, b)`, found {}", self.peek().tok.describe()),
            )
            .label(start, "not an extent")
            .help(format!("the form is {form}; `_` takes the extent from the tensors that the index subscripts")));
        }
        self.at += 1;
        self.expect("(", "write `range(n)` or `range(a, b)`")?;
        let mut bounds = vec![self.expr()?];
        while self.eat(",") {
            bounds.push(self.expr()?);
        }
        self.expect(")", "close the `range`")?;
        let mut bounds = bounds.into_iter();
        match (bounds.next(), bounds.next(), bounds.next()) {
            (Some(stop), None, _) => Ok(Extent::Range(None, stop)),
            (first, Some(stop), None) => Ok(Extent::Range(first, stop)),
            _ => Err(Diagnostic::new(Code::E0106, "`range` takes one or two bounds here")
                .label(start.to(self.last_end()), "a step is not supported")
                .help("write the stride in the subscript: `for i in range(n): ... A[2*i]`")),
        }
    }

    fn conditional(&mut self, start: Span) -> Result<Stmt> {
        self.at += 1;
        let cond = self.expr()?;
        let span = start.to(self.last_end());
        if self.is("=") {
            return Err(self.unexpected("`:`").help("to compare, write `==`"));
        }
        self.colon("`if condition:`")?;
        let then = self.block("the `if`");
        let mut otherwise = Vec::new();
        let next = self.span();
        if self.is_word("elif") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                self.depth -= 1;
                return Err(self.too_deep());
            }
            let chained = self.conditional(next);
            self.depth -= 1;
            otherwise.push(chained?);
        } else if self.eat_word("else") {
            self.colon("`else:`")?;
            otherwise = self.block("the `else`");
        }
        Ok(Stmt { kind: StmtKind::If { cond, then, otherwise }, span })
    }

    fn assignment(&mut self, start: Span) -> Result<Stmt> {
        let target = self.expr()?;
        let op = self.assignment_operator()?;
        let Some(op) = op else {
            let mut d = self.unexpected("`=` or an update such as `+=`");
            if let ExprKind::Name(word) = &target.kind
                && let Some(keyword) = did_you_mean(word, ["for", "if", "return", "pass", "else"])
            {
                d = d.help(format!("did you mean `{keyword}`?"));
            }
            return Err(
                d.help("a statement is `X[i,j] = ...`, `X[i,j] += ...`, `x = ...`, `for`, `if`, `pass` or `return`")
            );
        };
        if !matches!(target.kind, ExprKind::Name(_) | ExprKind::Index { .. }) {
            return Err(Diagnostic::new(Code::E0101, "only a name or a subscripted tensor can be assigned")
                .label(target.span, "cannot be assigned")
                .help("write `X[i,j] = ...` or `x = ...`"));
        }
        let value = self.expr()?;
        let span = start.to(self.last_end());
        if self.is("=") {
            return Err(self.unexpected("the end of the statement").help("assign one target at a time"));
        }
        self.end_of_statement()?;
        Ok(Stmt { kind: StmtKind::Assign { target, op, value }, span })
    }

    /// `=` is `Some(None)`, an update `Some(Some(op))`, anything else `None`.
    fn assignment_operator(&mut self) -> Result<Option<Option<Op>>> {
        if self.eat("=") {
            return Ok(Some(None));
        }
        let update = match &self.peek().tok {
            Tok::Op(symbol) => symbol.strip_suffix('=').and_then(Op::infix),
            // `min=` and `max=` are not Python, but section 2 has them, and they read well here, too.
            Tok::Ident(word) => {
                let op = if word == "and" || word == "or" { Op::infix(word) } else { Op::named(word) };
                let next = self.tokens.get(self.at + 1);
                let assigns = matches!(next, Some(Token { tok: Tok::Op("="), .. }));
                op.filter(|op| assigns && op.can_update()).inspect(|_| self.at += 1)
            }
            _ => None,
        };
        Ok(update.map(|op| {
            self.at += 1;
            Some(op)
        }))
    }

    // Expressions

    fn expr(&mut self) -> Result<Expr> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH { Err(self.too_deep()) } else { self.ternary() };
        self.depth -= 1;
        result
    }

    fn ternary(&mut self) -> Result<Expr> {
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

    /// An operator and its operands. Their number is bounded, and with it the height of the tree.
    fn operator(&mut self, op: Op, operands: Vec<Expr>) -> Result<Expr> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(Diagnostic::new(Code::E0105, format!("a statement has more than {MAX_OPERATORS} operators"))
                .label(operands[operands.len() - 1].span, "too many")
                .help("bind parts of it to names"));
        }
        let span = operands[0].span.to(operands[operands.len() - 1].span);
        Ok(Expr { kind: ExprKind::Operator(op, operands), span })
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        while self.eat_word("or") {
            let right = self.and()?;
            left = self.operator(Op::Or, vec![left, right])?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        while self.eat_word("and") {
            let right = self.not()?;
            left = self.operator(Op::And, vec![left, right])?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
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
    fn comparison(&mut self) -> Result<Expr> {
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
            let test = self.operator(op, vec![left, right.clone()])?;
            chain = Some(match chain {
                Some(before) => self.operator(Op::And, vec![before, test])?,
                None => test,
            });
            left = right;
        }
        Ok(chain.unwrap_or(first))
    }

    fn binary(&mut self, level: usize) -> Result<Expr> {
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

    fn unary(&mut self) -> Result<Expr> {
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

    fn deeper(&mut self, rule: fn(&mut Parser) -> Result<Expr>) -> Result<Expr> {
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH { Err(self.too_deep()) } else { rule(self) };
        self.depth -= 1;
        result
    }

    fn power(&mut self) -> Result<Expr> {
        let base = self.postfix()?;
        if !self.eat("**") {
            return Ok(base);
        }
        let exponent = self.deeper(Parser::unary)?;
        self.operator(Op::Pow, vec![base, exponent])
    }

    fn postfix(&mut self) -> Result<Expr> {
        let atom = self.atom()?;
        let ExprKind::Name(text) = &atom.kind else {
            if self.is("[") || self.is("(") {
                return Err(self
                    .unexpected("an operator")
                    .help("only a named tensor is subscripted, and only a named function called"));
            }
            return Ok(atom);
        };
        let mut name = Name { text: text.clone(), span: atom.span };
        // `tm.tensor(...)` in a Python file is `tensor(...)`.
        while self.is(".") {
            self.at += 1;
            let attribute = self.name("a name after `.`")?;
            if attribute.text == "shape" {
                return self.size(name);
            }
            name = Name { span: name.span.to(attribute.span), ..attribute };
            if !self.is("(") && !self.is(".") {
                return Err(Diagnostic::new(Code::E0101, format!("`.{}` has no meaning in a loop program", name.text))
                    .label(name.span, "unknown attribute")
                    .help("the size of a dimension is `A.shape[0]`"));
            }
        }
        if self.eat("[") {
            let subscripts = self.list("]", "a subscript")?;
            let span = name.span.to(self.last_end());
            return Ok(Expr { kind: ExprKind::Index { base: name, subscripts }, span });
        }
        if self.eat("(") {
            return self.call(name);
        }
        Ok(atom)
    }

    fn size(&mut self, base: Name) -> Result<Expr> {
        self.expect("[", "write `A.shape[0]`")?;
        let dim = match self.next().tok {
            Tok::Int(dim) => dim,
            _ => {
                self.at -= 1;
                return Err(self.unexpected("the number of a dimension").help("write `A.shape[0]`"));
            }
        };
        self.expect("]", "write `A.shape[0]`")?;
        let span = base.span.to(self.last_end());
        Ok(Expr { kind: ExprKind::Size { base, dim }, span })
    }

    /// Expressions separated by commas, up to the closing bracket.
    fn list(&mut self, close: &str, what: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.is(close) {
            if self.is(":") {
                return Err(self
                    .unexpected(what)
                    .help("there are no slices here: loop over an index, as in `for i in range(a, b):`"));
            }
            items.push(self.expr()?);
            if !self.eat(",") && !self.is(close) {
                let help = if self.is(":") {
                    "there are no slices here: loop over an index, as in `for i in range(a, b):`".to_string()
                } else {
                    format!("close it with `{close}`")
                };
                return Err(self.unexpected(&format!("`,` or `{close}`")).help(help));
            }
        }
        self.at += 1;
        Ok(items)
    }

    fn call(&mut self, function: Name) -> Result<Expr> {
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

    fn atom(&mut self) -> Result<Expr> {
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

fn negate(value: Value) -> Option<Value> {
    match value {
        Value::I64(x) => x.checked_neg().map(Value::I64),
        Value::U64(x) if x == i64::MAX as u64 + 1 => Some(Value::I64(i64::MIN)),
        Value::F64(x) => Some(Value::F64(-x)),
        Value::C128(c) => Some(Value::C128(num_complex::Complex::new(0.0 - c.re, -c.im))),
        _ => None,
    }
}
