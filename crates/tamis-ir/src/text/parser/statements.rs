//! Parser of statements and blocks.

use super::super::lexer::{Tok, Token};
use super::super::syntax::{Attribute, ExprKind, Extent, Stmt, StmtKind};
use super::{MAX_DEPTH, Parser};
use crate::algebra::{Op, Value};
use crate::diag::{Code, Diagnostic, Result, Span, did_you_mean};
use crate::program::Attributes;

impl Parser {
    pub(super) fn block(&mut self, of: &str) -> Vec<Stmt> {
        if !matches!(self.peek().tok, Tok::Newline | Tok::Indent | Tok::Dedent | Tok::Eof) && self.follows_colon() {
            return self.on_one_line();
        }
        if matches!(self.peek().tok, Tok::Newline) {
            self.at += 1;
        }
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

    fn follows_colon(&self) -> bool {
        matches!(self.tokens.get(self.at.wrapping_sub(1)), Some(Token { tok: Tok::Op(":"), .. }))
    }

    /// `if c: x = 1`: simple statements, separated by `;`, up to the end of the line.
    fn on_one_line(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        loop {
            if self.is_word("for") || self.is_word("if") {
                let error = self.unexpected("a simple statement").help("put the block on its own lines, indented");
                self.errors.push(error);
                self.recover();
                return body;
            }
            self.statement(&mut body);
            let ended = matches!(self.tokens.get(self.at.wrapping_sub(1)), Some(Token { tok: Tok::Newline, .. }));
            if ended || matches!(self.peek().tok, Tok::Newline | Tok::Dedent | Tok::Eof | Tok::Indent) {
                if matches!(self.peek().tok, Tok::Newline) {
                    self.at += 1;
                }
                return body;
            }
        }
    }

    pub(super) fn skip_block(&mut self) {
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

    pub(super) fn too_deep(&self) -> Diagnostic {
        Diagnostic::new(Code::E0105, format!("nested more than {MAX_DEPTH} deep"))
            .label(self.span(), "too deep")
            .help("bind inner expressions to names")
    }

    pub(super) fn statement(&mut self, body: &mut Vec<Stmt>) {
        match self.peek().tok {
            // An unexpected indentation is reported once, and its block parsed.
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
                // The block below a broken header may contain further mistakes.
                if matches!(self.peek().tok, Tok::Indent) {
                    self.block("this line");
                }
                // Progress is guaranteed.
                self.at = self.at.max(before + 1);
            }
        }
    }

    pub(super) fn statement_or_error(&mut self) -> Result<Option<Stmt>> {
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
                "loop over an index with `for i in range(n):`; a reduction into `short_circuit_scalar(...)` exits early",
            )),
            "break" | "continue" => Err(self.no_such_statement(
                &format!("`{word}`"),
                "use `if` to skip; a reduction into `short_circuit_scalar(...)` exits early",
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

    pub(super) fn no_such_statement(&self, what: &str, help: &str) -> Diagnostic {
        Diagnostic::new(Code::E0104, format!("loop programs have no {what}"))
            .label(self.span(), "not available here")
            .help(help)
    }

    pub(super) fn end_of_statement(&mut self) -> Result<()> {
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
            _ => Err(self.unexpected("the end of the statement").help("put each statement on its own line")),
        }
    }

    pub(super) fn for_loop(&mut self, start: Span) -> Result<Stmt> {
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
        let (attributes, extent) = self.attributed_extent(form)?;
        let span = start.to(self.last_end());
        self.colon(form)?;
        // Each index is a loop of its own.
        let inner = indices.len() - 1;
        if self.depth + inner > MAX_DEPTH {
            return Err(Diagnostic::new(Code::E0105, format!("nested more than {MAX_DEPTH} deep"))
                .label(span, format!("{} loops", indices.len()))
                .help("use fewer loops"));
        }
        self.depth += inner;
        let body = self.block("the loop");
        self.depth -= inner;
        Ok(Stmt { kind: StmtKind::For { indices, attributes, extent, body }, span })
    }

    /// An extent inside its attributes, as in `parallel(unroll(range(a, b), 4))`.
    fn attributed_extent(&mut self, form: &str) -> Result<(Vec<Attribute>, Extent)> {
        let mut attributes = Vec::new();
        while let Tok::Ident(word) = &self.peek().tok
            && Attributes::WORDS.contains(&word.as_str())
            && attributes.len() < Attributes::WORDS.len()
        {
            let name = self.name("an attribute")?;
            self.expect("(", &format!("write `{}(_)`", name.text))?;
            attributes.push(Attribute { name, number: None });
        }
        let extent = self.extent(form)?;
        for attribute in attributes.iter_mut().rev() {
            if self.eat(",") {
                let value = self.expr()?;
                let number = match value.kind {
                    ExprKind::Number(Value::I64(n)) => u64::try_from(n).ok(),
                    _ => None,
                };
                let Some(number) = number else {
                    return Err(Diagnostic::new(Code::E0106, "expected an integer literal")
                        .label(value.span, "not an integer literal")
                        .help("write a number, as in `unroll(_, 4)`; `parallel(_)` takes none"));
                };
                attribute.number = Some((number, value.span));
            }
            self.expect(")", &format!("close `{}(...)`", attribute.name.text))?;
        }
        Ok((attributes, extent))
    }

    pub(super) fn extent(&mut self, form: &str) -> Result<Extent> {
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
            .help(format!("the form is {form}; `_` infers the extent from the tensors that the index subscripts")));
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

    pub(super) fn conditional(&mut self, start: Span) -> Result<Stmt> {
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

    pub(super) fn assignment(&mut self, start: Span) -> Result<Stmt> {
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
    pub(super) fn assignment_operator(&mut self) -> Result<Option<Option<Op>>> {
        if self.eat("=") {
            return Ok(Some(None));
        }
        let update = match &self.peek().tok {
            Tok::Op(symbol) => symbol.strip_suffix('=').and_then(Op::infix),
            // `min=` and `max=` are not Python, but are accepted here as in index notation.
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
}
