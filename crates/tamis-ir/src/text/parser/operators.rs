//! Parser of user-defined operators: `@op(laws)` above a function that returns one expression.

use super::super::lexer::Tok;
use super::super::syntax::{Law, Name, Operator};
use super::Parser;
use crate::diag::{Code, Diagnostic, Result};

/// The form of an operator definition, for help texts.
const FORM: &str = "write `@op` or `@op(commutative, associative, identity=0)`, then `def name(a, b):`, then `return` and an expression of `a` and `b`";

impl Parser {
    /// True if the next decorator is `@op`, `@tm.op` or similar.
    pub(super) fn at_operator(&self) -> bool {
        let mut last = None;
        for token in self.tokens.iter().skip(self.at + 1) {
            match &token.tok {
                Tok::Ident(word) => last = Some(word.as_str()),
                Tok::Op(".") => {}
                _ => break,
            }
        }
        last == Some("op")
    }

    /// Parses a definition; one with a mistake is skipped.
    pub(super) fn operator_definition(&mut self) -> Option<Operator> {
        let start = self.at;
        self.operators = 0;
        match self.read_operator() {
            Ok(operator) => Some(operator),
            Err(error) => {
                self.errors.push(error);
                self.at = start;
                self.recover();
                if self.is_word("def") {
                    self.recover();
                    if matches!(self.peek().tok, Tok::Indent) {
                        self.skip_block();
                    }
                }
                None
            }
        }
    }

    fn read_operator(&mut self) -> Result<Operator> {
        let start = self.span();
        while !self.is("(") && !matches!(self.peek().tok, Tok::Newline | Tok::Eof) {
            self.at += 1;
        }
        let laws = if self.eat("(") { self.laws()? } else { Vec::new() };
        let decorator = start.to(self.last_end());
        if !matches!(self.peek().tok, Tok::Newline) {
            return Err(self.unexpected("the end of the line").help(FORM));
        }
        while matches!(self.peek().tok, Tok::Newline) {
            self.at += 1;
        }
        if !self.eat_word("def") {
            return Err(self.unexpected("`def`").help(FORM));
        }
        let (name, params) = self.function_header("the name of the operator", "`def name(a, b):`")?;
        let indented = matches!(self.peek().tok, Tok::Newline);
        while matches!(self.peek().tok, Tok::Newline | Tok::Indent | Tok::Str(_)) {
            self.at += 1;
        }
        if !self.eat_word("return") {
            let found = self.peek().tok.describe();
            return Err(Diagnostic::new(Code::E0110, format!("the body of an operator is one `return`, not {found}"))
                .label(self.span(), "expected `return`")
                .help(FORM));
        }
        let body = self.expr()?;
        self.end_of_statement()?;
        if indented && !matches!(self.peek().tok, Tok::Dedent | Tok::Eof) {
            return Err(Diagnostic::new(Code::E0110, "the body of an operator ends with its `return`")
                .label(self.span(), "after the end")
                .help(FORM));
        }
        if matches!(self.peek().tok, Tok::Dedent) {
            self.at += 1;
        }
        Ok(Operator { name, params, laws, body, decorator })
    }

    fn laws(&mut self) -> Result<Vec<Law>> {
        let mut laws = Vec::new();
        while !self.is(")") {
            let name: Name = self.name("a law")?;
            let value = if self.eat("=") { Some(self.expr()?) } else { None };
            laws.push(Law { name, value });
            if !self.eat(",") && !self.is(")") {
                return Err(self.unexpected("`,` or `)`").help(FORM));
            }
        }
        self.at += 1;
        Ok(laws)
    }
}
