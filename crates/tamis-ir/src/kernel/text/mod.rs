//! Text form of kernels: the printer and its inverse, the parser.
//!
//! `Kernel::parse(&kernel.to_string())` is the same kernel, up to the numbers of expressions,
//! variables and labels, and its text is the same text. A kernel is a header and a body:
//!
//! ```text
//! kernel spmv                                   # the name
//!     in A_pos: index u32[]                     # buffers: in, out, scratch, tile(SIZE)
//!     in A_val: f64[]                           # index: positions or coordinates of a width
//!     out y: f64[]
//!     in n: i64                                 # scalar parameters
//!     assume length(A_pos) >= n + 1             # preconditions
//! begin
//!     for i in 0..n                             # the body; blocks are indented by four spaces
//!         var sum: f64 = 0.0
//!         for q in A_pos[i]..A_pos[i + 1] vector
//!             sum = sum + A_val[q]
//!         y[i] = sum
//! ```
//!
//! - **Names** that are no identifiers, or keywords, stand between backquotes.
//! - **Constants** are `i64`, `f64` or `bool`, unless a type follows: `0.0:f32`, `255:u8`. Complex
//!   ones are `c128(RE, IM)` and `c64(RE, IM)`.
//! - **Operators** have at most two operands; others are parenthesised. Operands are converted to
//!   one type: the type of the operands, unless the operator names another, as in `a +:f64 b` and
//!   `max:i64(a, b)`.
//! - **Preconditions** are `assume CONDITION`, `assume length(BUFFER) >= NUMBER`,
//!   `assume length(BUFFER) >= length(BUFFER) + NUMBER`, `assume increasing(BUFFER)`,
//!   `assume elements(BUFFER) < NUMBER` and `assume reserved(BUFFER)`.
//! - **Workspaces** are declared by `workspace NAME(COORDINATES; VALUES) from START`, with
//!   `by POLICY`, `capacity N`, `pipelined`, `keeping later` or `merging OPERATOR`.
//! - **Loops** may be vectorised (`vector`, `vector(short_trip)`), and have a kind: `unroll`,
//!   `vector(8 lanes, masked)` (or `overlapping`, `remainder`), `parallel(extent, grain 64)` or
//!   `parallel(work POSITIONS, grain 64)`, `grid`, `block`, `lane`.
//! - **Vectors** have types such as `f64x8`. `ramp(START, STEP, LANES)`, `splat(VALUE, LANES)`,
//!   `masked(BUFFER[INDEX], MASK, OTHERWISE)` and `reduce(OPERATOR, VECTOR)` make and use them;
//!   `BUFFER[INDEX] = VALUE where MASK` stores some lanes.
//! - **Other statements** are `atomic BUFFER[INDEX] OPERATOR VALUE`, `barrier`, and
//!   `prefetch BUFFER[INDEX] ahead DISTANCE locality 0..3`. `shared(SIZE)` buffers are those of a
//!   block.
//! - **Variables** that are assigned are declared by `var`. `@loop(N)` and `@loop(N, visits)` say
//!   which loop of the program a variable belongs to, where loops are counted.

mod expressions;
mod header;
mod lexer;
mod names;
mod print;
mod statements;

pub(crate) use names::{quoted, spelled};

use super::{BufferId, Builder, Kernel, VarId, Workspace};
use crate::diag::{Code, Diagnostic, Source, Span};
pub(crate) use lexer::KernelTokenKind;
use lexer::{KernelToken, Line};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The deepest nesting of blocks and of expressions.
pub(crate) const MAX_DEPTH: usize = 200;

/// The longest text.
const MAX_TEXT: usize = 1 << 22;

impl Kernel {
    /// Parses the text of a kernel and verifies it.
    ///
    /// ```
    /// use tamis_ir::kernel::Kernel;
    /// let text = "kernel f\n    out y: f64[]\n    in n: i64\nbegin\n    for i in 0..n\n        y[i] = 1.0\n";
    /// let kernel = Kernel::parse(text)?;
    /// assert_eq!(kernel.to_string(), text);
    /// assert!(Kernel::parse("kernel f\nbegin\n    y[0] = 1.0\n").is_err());
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn parse(text: &str) -> Result<Kernel, Diagnostic> {
        let source = Source::new("kernel", text);
        parse(text).map_err(|d| d.with_source(&source))
    }
}

fn parse(text: &str) -> Result<Kernel, Diagnostic> {
    if text.len() > MAX_TEXT {
        let message = format!("the kernel is longer than {} MB", MAX_TEXT >> 20);
        return Err(Diagnostic::new(Code::E1301, message)
            .label(Span::new(MAX_TEXT..MAX_TEXT), "the limit is here")
            .help("split the kernel"));
    }
    let end = Span::new(text.len()..text.len());
    let mut parser = KernelParser::new(lexer::lex(text)?, end);
    parser.header()?;
    let body = parser.block(1)?;
    if let Some(line) = parser.lines.get(parser.at) {
        return Err(wrong("the kernel ends before this line", line.span, "indent the statements of the body"));
    }
    let kernel = Kernel { body, ..parser.kernel };
    match super::verify::verify_at(&kernel) {
        Ok(()) => Ok(kernel),
        Err((stmt, reason)) => {
            let span = stmt.and_then(|k| parser.spans.get(k)).copied().unwrap_or(parser.first);
            Err(wrong(reason, span, "the list of what must hold is at the top of the kernel verifier"))
        }
    }
}

/// A diagnostic about a place in kernel text.
pub(crate) fn wrong(message: impl Into<String>, span: Span, help: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E1301, message).label(span, "here").help(help)
}

/// The thing that a name stands for.
#[derive(Clone, Copy, Debug)]
enum NamedEntries {
    BufferInfo(BufferId),
    Var(VarId),
}

pub(crate) struct KernelParser {
    lines: Vec<Line>,
    /// The next line.
    at: usize,
    /// The tables so far; the body is put in place at the end.
    pub(crate) kernel: Kernel,
    names: FxHashMap<String, NamedEntries>,
    workspaces: FxHashMap<String, Arc<Workspace>>,
    /// The line of each statement, in the order of the text.
    spans: Vec<Span>,
    /// The line of the kernel's name.
    first: Span,
    end: Span,
}

impl KernelParser {
    fn new(lines: Vec<Line>, end: Span) -> KernelParser {
        KernelParser {
            lines,
            at: 0,
            kernel: Builder::new("").finish(),
            names: FxHashMap::default(),
            workspaces: FxHashMap::default(),
            spans: Vec::new(),
            first: end,
            end,
        }
    }

    /// A parser of one line whose names are those of a kernel, and its tokens. The parser takes the
    /// kernel if the line has tokens.
    pub(crate) fn within(kernel: &mut Kernel, text: &str) -> Result<(KernelParser, TokenCursor), Diagnostic> {
        let end = Span::new(text.len()..text.len());
        let lines = lexer::lex(text)?;
        let mut parser = KernelParser::new(lines, end);
        let buffers = kernel.buffers.iter().enumerate();
        let buffers = buffers.map(|(k, buffer)| (buffer.name.clone(), NamedEntries::BufferInfo(BufferId(k as u32))));
        let vars =
            kernel.vars.iter().enumerate().map(|(k, var)| (var.name.clone(), NamedEntries::Var(VarId(k as u32))));
        parser.names = buffers.chain(vars).collect();
        let indent = parser.lines.first().map_or(0, |line| line.indent);
        match parser.line(indent) {
            Some(c) if parser.lines.len() == 1 => {
                std::mem::swap(&mut parser.kernel, kernel);
                Ok((parser, c))
            }
            _ => Err(wrong("one line is expected", end, "write one line")),
        }
    }

    /// The variable that a name stands for.
    pub(crate) fn var(&self, c: &mut TokenCursor) -> Result<VarId, Diagnostic> {
        let (name, span) = c.name()?;
        match self.names.get(&name) {
            Some(NamedEntries::Var(var)) => Ok(*var),
            _ => Err(wrong(format!("there is no variable `{name}`"), span, "write the name of a variable")),
        }
    }

    /// The tokens of the next line, if its indentation is `indent`.
    fn line(&mut self, indent: usize) -> Option<TokenCursor> {
        let line = self.lines.get_mut(self.at).filter(|line| line.indent == indent)?;
        self.at += 1;
        let end = Span::new(line.span.end as usize..line.span.end as usize);
        Some(TokenCursor { tokens: std::mem::take(&mut line.tokens), at: 0, end, line: line.span, depth: 0 })
    }

    /// Gives a name its meaning; a name has one.
    fn name(&mut self, name: &str, span: Span, named: NamedEntries) -> Result<(), Diagnostic> {
        match self.names.insert(name.to_string(), named) {
            None => Ok(()),
            Some(_) => {
                Err(wrong(format!("`{name}` is declared twice"), span, "every name of a kernel is declared once"))
            }
        }
    }

    /// The buffer that a name stands for.
    pub(crate) fn buffer(&self, c: &mut TokenCursor) -> Result<BufferId, Diagnostic> {
        let (name, span) = c.name()?;
        match self.names.get(&name) {
            Some(NamedEntries::BufferInfo(buffer)) => Ok(*buffer),
            _ => Err(wrong(format!("there is no buffer `{name}`"), span, "buffers are declared before `begin`")),
        }
    }
}

/// The tokens of a line.
pub(crate) struct TokenCursor {
    tokens: Vec<KernelToken>,
    pub(crate) at: usize,
    /// The place behind the last token.
    end: Span,
    /// The whole line.
    line: Span,
    /// The nesting of the expression so far.
    depth: usize,
}

impl TokenCursor {
    pub(crate) fn peek(&self) -> Option<&KernelTokenKind> {
        self.tokens.get(self.at).map(|token| &token.tok)
    }

    /// The token after the next.
    pub(crate) fn peek_second(&self) -> Option<&KernelTokenKind> {
        self.tokens.get(self.at + 1).map(|token| &token.tok)
    }

    /// The place of the next token.
    pub(crate) fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.end, |token| token.span)
    }

    pub(crate) fn expected(&self, what: &str) -> Diagnostic {
        let found = self.peek().map_or("the end of the line".to_string(), KernelTokenKind::describe);
        wrong(format!("expected {what}, found {found}"), self.span(), format!("write {what} here"))
    }

    pub(crate) fn is_punct(&self, punct: &str) -> bool {
        matches!(self.peek(), Some(KernelTokenKind::Punct(found)) if *found == punct)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(KernelTokenKind::Word(found)) if found == word)
    }

    /// Skips an operator or bracket, if it is next.
    pub(crate) fn eat(&mut self, punct: &str) -> bool {
        let found = self.is_punct(punct);
        self.at += usize::from(found);
        found
    }

    /// Skips a keyword, if it is next.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, punct: &str) -> Result<(), Diagnostic> {
        if self.eat(punct) { Ok(()) } else { Err(self.expected(&format!("`{punct}`"))) }
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), Diagnostic> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// A name, plain or quoted, and its place.
    fn name(&mut self) -> Result<(String, Span), Diagnostic> {
        let span = self.span();
        let name = match self.peek() {
            Some(KernelTokenKind::Word(word)) if !names::is_reserved(word) => word.clone(),
            Some(KernelTokenKind::Quoted(name)) => name.clone(),
            _ => return Err(self.expected("a name")),
        };
        self.at += 1;
        Ok((name, span))
    }

    /// A number that is not negative and fits a type.
    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Result<T, Diagnostic> {
        let parsed = match self.peek() {
            Some(KernelTokenKind::Number(text)) => text.parse().ok(),
            _ => return Err(self.expected("a number")),
        };
        let number = parsed.ok_or_else(|| wrong("the number does not fit", self.span(), "write a smaller integer"))?;
        self.at += 1;
        Ok(number)
    }

    /// Nothing may follow.
    pub(crate) fn finish(&self) -> Result<(), Diagnostic> {
        if self.at == self.tokens.len() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }
}
