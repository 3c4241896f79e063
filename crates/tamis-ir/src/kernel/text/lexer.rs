//! KernelLexer of kernel text: lines, each with its indentation and its tokens.
//!
//! A statement is one line. Blank lines are skipped, and `#` begins a comment. Indentation is in
//! spaces; the parser decides what it means.

use super::names::{begins_identifier, continues_identifier};
use crate::diag::{Code, Diagnostic, Span};

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KernelTokenKind {
    /// A plain word: a keyword, an operator or a name.
    Word(String),
    /// A quoted name.
    Quoted(String),
    /// A number, as written.
    Number(String),
    /// A string.
    Str(String),
    /// An operator or a bracket.
    Punct(&'static str),
}

impl KernelTokenKind {
    /// The token in messages.
    pub(super) fn describe(&self) -> String {
        match self {
            KernelTokenKind::Word(text) | KernelTokenKind::Quoted(text) | KernelTokenKind::Number(text) => {
                format!("`{text}`")
            }
            KernelTokenKind::Str(_) => "a string".to_string(),
            KernelTokenKind::Punct(text) => format!("`{text}`"),
        }
    }
}

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KernelToken {
    pub(super) tok: KernelTokenKind,
    pub(super) span: Span,
}

/// A line that is not blank.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The number of spaces before the first token.
    pub(super) indent: usize,
    pub(super) tokens: Vec<KernelToken>,
    /// From the first token to the last.
    pub(super) span: Span,
}

/// Longest first, so that the first match is the right one.
const PUNCTUATION: &[&str] = &[
    "..", "->", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">",
    "=", "(", ")", "[", "]", ",", ":", ";", "@",
];

/// The lines of a text.
pub(super) fn lex(text: &str) -> Result<Vec<Line>, Diagnostic> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start_matches(' ').len();
        let mut lexer = KernelLexer { text, at: start + indent, end: start + content.len() };
        let mut tokens: Vec<KernelToken> = Vec::new();
        while let Some(token) = lexer.next()? {
            tokens.push(token);
        }
        if let (Some(first), Some(last)) = (tokens.first(), tokens.last()) {
            let span = first.span.to(last.span);
            lines.push(Line { indent, tokens, span });
        }
        start += line.len();
    }
    Ok(lines)
}

struct KernelLexer<'a> {
    text: &'a str,
    at: usize,
    /// The end of the line.
    end: usize,
}

fn malformed(message: impl Into<String>, span: Span, help: &str) -> Diagnostic {
    Diagnostic::new(Code::E1301, message).label(span, "here").help(help)
}

impl KernelLexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..self.end]
    }

    /// The length of the prefix whose characters all satisfy a condition.
    fn prefix(&self, from: usize, holds: impl Fn(char) -> bool) -> usize {
        let rest = &self.rest()[from..];
        rest.find(|c| !holds(c)).unwrap_or(rest.len())
    }

    fn next(&mut self) -> Result<Option<KernelToken>, Diagnostic> {
        self.at += self.prefix(0, |c| c == ' ');
        let start = self.at;
        let Some(c) = self.rest().chars().next() else { return Ok(None) };
        let tok = match c {
            '#' => return Ok(None),
            '"' => KernelTokenKind::Str(self.quoted('"')?),
            '`' => KernelTokenKind::Quoted(self.quoted('`')?),
            c if c.is_ascii_digit() => {
                let len = self.number();
                let text = self.rest()[..len].to_string();
                self.at += len;
                KernelTokenKind::Number(text)
            }
            c if begins_identifier(c) => {
                let len = self.prefix(0, continues_identifier);
                let text = self.rest()[..len].to_string();
                self.at += len;
                KernelTokenKind::Word(text)
            }
            c => match PUNCTUATION.iter().find(|p| self.rest().starts_with(**p)) {
                Some(punct) => {
                    self.at += punct.len();
                    KernelTokenKind::Punct(punct)
                }
                None => {
                    let span = Span::new(start..start + c.len_utf8());
                    let help = "kernel text has names, numbers, strings, operators and brackets";
                    return Err(malformed(format!("{c:?} has no meaning here"), span, help));
                }
            },
        };
        Ok(Some(KernelToken { tok, span: Span::new(start..self.at) }))
    }

    /// The length of a number: an integer, a float, or hexadecimal bits.
    fn number(&self) -> usize {
        let digit = |c: char| c.is_ascii_digit();
        if self.rest().starts_with("0x") {
            return 2 + self.prefix(2, |c| c.is_ascii_hexdigit());
        }
        let mut len = self.prefix(0, digit);
        let fraction = |from: usize| self.rest()[from..].strip_prefix('.').is_some_and(|rest| rest.starts_with(digit));
        if fraction(len) {
            len += 1;
            len += self.prefix(len, digit);
        }
        if let Some(exponent) = self.rest()[len..].strip_prefix('e') {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            if exponent[sign..].starts_with(digit) {
                len += 1 + sign;
                len += self.prefix(len, digit);
            }
        }
        len
    }

    /// The text between quotes, with its escapes replaced.
    fn quoted(&mut self, quote: char) -> Result<String, Diagnostic> {
        let start = self.at;
        let mut out = String::new();
        let rest = &self.text[self.at + 1..self.end];
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += 1 + at + c.len_utf8();
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some(c @ ('\\' | '"' | '`')) => out.push(c),
                    Some('u') => {
                        let digits: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|c| *c == '{')
                            .take_while(|c| *c != '}')
                            .collect();
                        let found = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        out.push(found.ok_or_else(|| self.unknown_escape(start, at))?);
                    }
                    _ => return Err(self.unknown_escape(start, at)),
                },
                c => out.push(c),
            }
        }
        let span = Span::new(start..self.end);
        Err(malformed("a quoted text does not end on its line", span, "close it with the quote that opens it"))
    }

    fn unknown_escape(&self, start: usize, at: usize) -> Diagnostic {
        let span = Span::new(start + 1 + at..start + 2 + at);
        malformed("there is no such escape", span, r#"the escapes are \n, \t, \r, \\, \", \` and \u{HEX}"#)
    }
}
