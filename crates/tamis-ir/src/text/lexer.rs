//! Lexer: text to tokens, with Python's rules for lines, indentation and comments.

use crate::diag::{Code, Diagnostic, Span};

/// The kind of a token.
///
/// ```
/// use tamis_ir::text::lexer::{Tok, lex_line};
/// let (tokens, errors) = lex_line("2 * x");
/// assert!(errors.is_empty());
/// assert_eq!(tokens[0].tok, Tok::Int(2));
/// assert_eq!(tokens[2].tok, Tok::Ident("x".to_string()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    /// A name or keyword.
    Ident(String),
    /// An integer literal.
    Int(u64),
    /// A float literal.
    Float(f64),
    /// An imaginary literal, `2.0j`.
    Imag(f64),
    /// The contents of a string literal (quotes removed; no escapes).
    Str(String),
    /// An operator or a bracket.
    Op(&'static str),
    /// The end of a logical line.
    Newline,
    /// A block begins.
    Indent,
    /// A block ends.
    Dedent,
    /// The end of the text.
    Eof,
}

impl Tok {
    /// The name of this token in messages.
    ///
    /// ```
    /// use tamis_ir::text::lexer::Tok;
    /// assert_eq!(Tok::Op("+=").describe(), "`+=`");
    /// assert_eq!(Tok::Newline.describe(), "the end of the line");
    /// ```
    pub fn describe(&self) -> String {
        match self {
            Tok::Ident(name) => format!("`{name}`"),
            Tok::Int(x) => format!("`{x}`"),
            Tok::Float(x) => format!("`{x:?}`"),
            Tok::Imag(x) => format!("`{x:?}j`"),
            Tok::Str(_) => "a string".to_string(),
            Tok::Op(op) => format!("`{op}`"),
            Tok::Newline => "the end of the line".to_string(),
            Tok::Indent => "an indented block".to_string(),
            Tok::Dedent => "the end of the block".to_string(),
            Tok::Eof => "the end of the text".to_string(),
        }
    }
}

/// A token and its span.
///
/// ```
/// use tamis_ir::Span;
/// use tamis_ir::text::lexer::lex_line;
/// assert_eq!(lex_line("12 + x").0[1].span, Span::new(3..4));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Token {
    pub tok: Tok,
    pub span: Span,
}

/// Longest first, so that the first match is the longest.
const OPERATORS: &[&str] = &[
    "**=", "//=", "<<=", ">>=", "->", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",",
    ":", ";", ".", "@", "!",
];

/// The maximum length of a text.
///
/// ```
/// use tamis_ir::Program;
/// use tamis_ir::text::lexer::MAX_TEXT;
/// assert!(Program::parse(&" ".repeat(MAX_TEXT + 1)).is_err());
/// ```
pub const MAX_TEXT: usize = 1 << 20;

/// The tokens of a program; mistakes are collected, and lexing continues after them.
pub(crate) fn lex(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    Lexer::new(text, true).run()
}

/// The tokens of one line without indentation: a format, an input, an expression.
///
/// ```
/// use tamis_ir::text::lexer::lex_line;
/// let (tokens, errors) = lex_line("a + $");
/// assert_eq!((tokens[0].tok.describe().as_str(), errors.len()), ("`a`", 1));
/// ```
pub fn lex_line(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    Lexer::new(text, false).run()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Columns of the open blocks, outermost first.
    indents: Vec<usize>,
    /// Open brackets: newlines inside them do not count.
    brackets: usize,
    blocks: bool,
    tokens: Vec<Token>,
    errors: Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, blocks: bool) -> Lexer<'a> {
        Lexer { text, at: 0, indents: vec![0], brackets: 0, blocks, tokens: Vec::new(), errors: Vec::new() }
    }

    fn run(mut self) -> (Vec<Token>, Vec<Diagnostic>) {
        if self.text.len() > MAX_TEXT {
            let span = Span::new(MAX_TEXT..MAX_TEXT);
            self.error(Code::E0105, "the text is longer than 1 MB", span, "the limit is here", "split the program");
            self.push(Tok::Eof, span);
            return (self.tokens, self.errors);
        }
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        let mut line_start = true;
        while self.at < self.text.len() {
            if line_start && self.blocks && self.brackets == 0 {
                if !self.indentation() {
                    continue;
                }
                line_start = false;
            }
            line_start |= self.token();
        }
        let end = Span::new(self.text.len()..self.text.len());
        if self.blocks {
            if !matches!(self.tokens.last(), None | Some(Token { tok: Tok::Newline, .. })) {
                self.push(Tok::Newline, end);
            }
            while self.indents.len() > 1 {
                self.indents.pop();
                self.push(Tok::Dedent, end);
            }
        }
        self.push(Tok::Eof, end);
        (self.tokens, self.errors)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, tok: Tok, span: Span) {
        self.tokens.push(Token { tok, span });
    }

    fn error(&mut self, code: Code, message: impl Into<String>, span: Span, label: &str, help: &str) {
        self.errors.push(Diagnostic::new(code, message).label(span, label).help(help));
    }

    /// Measures the indentation of a line and opens or closes blocks. False for a blank line, which
    /// is skipped.
    fn indentation(&mut self) -> bool {
        let start = self.at;
        let mut column = 0;
        for c in self.rest().chars() {
            match c {
                ' ' => column += 1,
                '\t' => column = (column / 8 + 1) * 8,
                '\u{c}' => column = 0,
                _ => break,
            }
            self.at += 1;
        }
        if self.rest().starts_with(['#', '\n', '\r']) || self.rest().is_empty() {
            self.skip_to_newline();
            self.at = (self.at + 1).min(self.text.len());
            return false;
        }
        let span = Span::new(start..self.at);
        // A text may be indented as a whole: the first line sets the base indentation.
        if self.tokens.is_empty() {
            self.indents = vec![column];
        }
        let current = self.indents.last().copied().unwrap_or(0);
        if column > current {
            self.indents.push(column);
            self.push(Tok::Indent, span);
        } else if column < current {
            while self.indents.last().is_some_and(|open| *open > column) {
                self.indents.pop();
                self.push(Tok::Dedent, span);
            }
            if self.indents.last() != Some(&column) {
                self.indents.push(column);
                self.push(Tok::Indent, span);
                self.error(
                    Code::E0102,
                    "unindent does not match any block",
                    span,
                    "no enclosing block starts in this column",
                    "indent it like the lines before it",
                );
            }
        }
        true
    }

    fn skip_to_newline(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Reads one token (or skips white space); true when a logical line ended.
    fn token(&mut self) -> bool {
        let start = self.at;
        let Some(c) = self.rest().chars().next() else { return false };
        match c {
            '\n' => {
                self.at += 1;
                if !self.blocks || self.brackets > 0 {
                    return false;
                }
                if !matches!(
                    self.tokens.last(),
                    None | Some(Token { tok: Tok::Newline | Tok::Indent | Tok::Dedent, .. })
                ) {
                    self.push(Tok::Newline, Span::new(start..start));
                }
                return true;
            }
            ' ' | '\t' | '\r' | '\u{c}' => self.at += 1,
            '#' => self.skip_to_newline(),
            '\\' if self.rest()[1..].trim_start_matches('\r').starts_with('\n') => {
                self.at += 1 + self.rest()[1..].find('\n').unwrap_or(0) + 1;
            }
            '"' | '\'' => self.string(c),
            c if c.is_ascii_digit() => self.number(),
            '.' if self.rest()[1..].starts_with(|d: char| d.is_ascii_digit()) => self.number(),
            c if c == '_' || c.is_alphabetic() => {
                let len = self.rest().find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.rest().len());
                self.at += len;
                self.push(Tok::Ident(self.text[start..self.at].to_string()), Span::new(start..self.at));
            }
            c => match OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
                Some(op) => {
                    self.at += op.len();
                    match *op {
                        "(" | "[" | "{" => self.brackets += 1,
                        ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
                        _ => {}
                    }
                    self.push(Tok::Op(op), Span::new(start..self.at));
                }
                None => {
                    self.at += c.len_utf8();
                    let message = format!("the character {c:?} has no meaning here");
                    let span = Span::new(start..self.at);
                    self.error(Code::E0103, message, span, "not part of the language", "remove it");
                }
            },
        }
        false
    }

    fn string(&mut self, quote: char) {
        let start = self.at;
        let triple: String = [quote; 3].iter().collect();
        let (open, close) = if self.rest().starts_with(&triple) { (3, triple.as_str()) } else { (1, &triple[..1]) };
        let body = &self.rest()[open..];
        let end = body.find(close).filter(|end| open == 3 || !body[..*end].contains('\n'));
        match end {
            Some(end) => {
                self.at += open + end + open;
                self.push(Tok::Str(body[..end].to_string()), Span::new(start..self.at));
            }
            None => {
                self.skip_to_newline();
                let span = Span::new(start..self.at);
                let help = format!("close it with {close}");
                self.error(Code::E0103, "a string does not end", span, "starts here", &help);
                self.push(Tok::Str(String::new()), span);
            }
        }
    }

    /// `0x1f`, `0o17`, `0b101`: the base and its prefix, if this is one.
    fn radix(&self) -> Option<u32> {
        match self.rest().get(..2)? {
            "0x" | "0X" => Some(16),
            "0o" | "0O" => Some(8),
            "0b" | "0B" => Some(2),
            _ => None,
        }
    }

    fn number(&mut self) {
        let start = self.at;
        if let Some(radix) = self.radix() {
            let digits = &self.rest()[2..];
            let len = digits.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(digits.len());
            let text: String = digits[..len].chars().filter(|c| *c != '_').collect();
            self.at += 2 + len;
            let span = Span::new(start..self.at);
            let value = u64::from_str_radix(&text, radix);
            if value.is_err() {
                let message = format!("this is not a number in base {radix} that fits 64 bits");
                self.error(Code::E0103, message, span, "malformed", "write it in base 10, or correct its digits");
            }
            return self.push(Tok::Int(value.unwrap_or(0)), span);
        }
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
                at += 1;
            }
            at
        };
        let mut end = digits(start);
        let mut float = false;
        if bytes.get(end) == Some(&b'.') {
            float = true;
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                float = true;
                end = digits(end + 1 + sign);
            }
        }
        let text: String = self.text[start..end].chars().filter(|c| *c != '_').collect();
        let imaginary = matches!(bytes.get(end), Some(b'j' | b'J'));
        self.at = end + usize::from(imaginary);
        let span = Span::new(start..self.at);
        if self.rest().starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            let stop = self.rest().find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.rest().len());
            self.at += stop;
            let span = Span::new(start..self.at);
            let help = "separate the number from the name, as in `2*i`";
            self.error(Code::E0103, "a number runs into a name", span, "neither a number nor a name", help);
            self.push(Tok::Int(0), span);
        } else if imaginary || float {
            let x: f64 = text.parse().unwrap_or(f64::NAN);
            if !x.is_finite() {
                self.error(Code::E0103, "the number does not fit a 64-bit float", span, "too large", "write `inf`");
            }
            self.push(if imaginary { Tok::Imag(x) } else { Tok::Float(x) }, span);
        } else {
            match text.parse() {
                Ok(x) if x > 0 && text.starts_with('0') => {
                    let help = "leave out the leading zeros; base 8 is written `0o17`";
                    self.error(Code::E0103, "an integer has leading zeros", span, "ambiguous", help);
                    self.push(Tok::Int(x), span);
                }
                Ok(x) => self.push(Tok::Int(x), span),
                Err(_) => {
                    let help = "write a float, as in 1e30";
                    self.error(Code::E0103, "the integer does not fit 64 bits", span, "too large", help);
                    self.push(Tok::Int(0), span);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> String {
        let (tokens, errors) = lex(text);
        assert!(errors.is_empty(), "{errors:?}");
        let shown = tokens.iter().map(|t| match &t.tok {
            Tok::Newline => "⏎".to_string(),
            Tok::Indent => "{".to_string(),
            Tok::Dedent => "}".to_string(),
            Tok::Eof => "$".to_string(),
            other => other.describe().replace('`', ""),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn blocks_lines_and_comments() {
        assert_eq!(kinds("a:\n    b\n\n  # note\n    c\nd"), "a : ⏎ { b ⏎ c ⏎ } d ⏎ $");
        assert_eq!(kinds("f(a,\n  b)\nc"), "f ( a , b ) ⏎ c ⏎ $");
        assert_eq!(kinds("a = \\\n  b"), "a = b ⏎ $");
        assert_eq!(kinds("x **= 2.5e-3 // 1_000"), "x **= 0.0025 // 1000 ⏎ $");
        assert_eq!(kinds("a:\n  b:\n    c\n"), "a : ⏎ { b : ⏎ { c ⏎ } } $");
    }

    #[test]
    fn mistakes_are_collected() {
        for (text, code) in [
            ("a = 99999999999999999999", Code::E0103),
            ("a = \"abc\nb", Code::E0103),
            ("a = 2i", Code::E0103),
            ("a = ?", Code::E0103),
            ("a:\n    b\n  c", Code::E0102),
        ] {
            let (_, errors) = lex(text);
            assert_eq!(errors.len(), 1, "{text}");
            assert_eq!(errors[0].code, code, "{text}");
        }
    }
}
