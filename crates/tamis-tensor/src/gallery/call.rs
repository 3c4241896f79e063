//! Parser of generator calls: `laplacian(1000)`, `rand(100,200; 0.1; 42)`, with a span for every
//! mistake.

use super::table::{GENERATORS, Generator, Loose, find};
use crate::Coordinates;
use std::fmt;
use std::sync::Arc;
use tamis_ir::diag::{Result, did_you_mean};
use tamis_ir::text::lexer::{Tok, Token, lex_line};
use tamis_ir::{Code, Diagnostic, Source, Span};

/// A call of a generator with checked name and arguments, ready to [`GeneratorCall::generate`].
///
/// ```
/// let call = tamis_tensor::gallery::parse("laplacian(3)")?;
/// assert_eq!((call.to_string().as_str(), call.generate()?.len()), ("laplacian(3)", 33));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeneratorCall {
    generator: &'static Generator,
    arguments: Vec<Argument>,
    source: Arc<Source>,
}

impl GeneratorCall {
    /// The row of [`GENERATORS`].
    ///
    /// ```
    /// let call = tamis_tensor::gallery::parse("laplacian(3)")?;
    /// assert_eq!(call.generator().signature, "laplacian(n[, m])");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn generator(&self) -> &'static Generator {
        self.generator
    }

    /// The source text.
    ///
    /// ```
    /// let call = tamis_tensor::gallery::parse(" laplacian(3) ")?;
    /// assert_eq!(call.text(), "laplacian(3)");
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn text(&self) -> &str {
        self.source.text.trim()
    }

    /// The arguments of `rand` or `ones`, which may be omitted; `None` for other generators.
    ///
    /// ```
    /// let call = tamis_tensor::gallery::parse("rand(; 0.1)").unwrap();
    /// let arguments = call.loose().unwrap();
    /// assert_eq!((arguments.shape, arguments.density, arguments.seed), (None, Some(0.1), None));
    /// ```
    pub fn loose(&self) -> Option<Loose> {
        let mut arguments = Arguments::new(self);
        match self.generator.name {
            "rand" => Loose::random(&mut arguments).ok(),
            "ones" => Loose::ones(&mut arguments).ok(),
            _ => None,
        }
    }

    /// Generates the entries. Labels of a diagnostic point into [`GeneratorCall::text`]'s source.
    ///
    /// ```
    /// let entries = tamis_tensor::gallery::parse("banded(5, 1)")?.generate()?;
    /// assert_eq!((entries.shape.as_slice(), entries.len()), (&[5, 5][..], 13));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn generate(&self) -> Result<Coordinates> {
        let everything = Span::new(0..self.source.text.len());
        (self.generator.bind)(&mut Arguments::new(self)).and_then(|plan| plan()).map_err(|mut d| {
            if d.labels.is_empty() {
                d = d.label(everything, "used here");
            }
            d.with_source(&self.source)
        })
    }
}

/// Two calls are equal if their texts are.
impl PartialEq for GeneratorCall {
    fn eq(&self, other: &GeneratorCall) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Display for GeneratorCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// True if a text has the form `word(...)` and so calls a generator (known or not), rather than
/// naming a file.
///
/// ```
/// use tamis_tensor::gallery::is_call;
/// assert!(is_call("laplacian(1000)"));
/// assert!(!is_call("data(1).mtx") && !is_call("laplacian"));
/// ```
pub fn is_call(text: &str) -> bool {
    let Some((name, rest)) = text.trim().split_once('(') else { return false };
    let name = name.trim_end();
    let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    rest.ends_with(')') && !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The diagnostic for a text that names no file, and is nearly a call: a generator without
/// arguments, or with an unclosed parenthesis.
///
/// ```
/// use tamis_tensor::gallery::almost_call;
/// assert!(almost_call("laplacian(3").unwrap().help[0].contains("`laplacian(3)`"));
/// assert!(almost_call("laplacian").is_some() && almost_call("laplacian(3)").is_none());
/// ```
pub fn almost_call(text: &str) -> Option<Diagnostic> {
    let trimmed = text.trim();
    let whole = Span::new(0..text.len());
    let mistake = |message: String, label: &str| {
        Diagnostic::new(Code::E0904, message).label(whole, label).with_source(&Source::new("generator", text))
    };
    if let Some(generator) = find(trimmed) {
        let message = format!("`{trimmed}` is a generator, which is called with its arguments");
        return Some(mistake(message, "without arguments").help(format!("write `{}`", generator.signature)));
    }
    let (name, _) = trimmed.split_once('(')?;
    let name = name.trim_end();
    let known = GENERATORS.iter().map(|g| g.name);
    if is_call(trimmed) || (find(name).is_none() && did_you_mean(name, known).is_none()) {
        return None;
    }
    let closed = format!("{trimmed})");
    let d = mistake(format!("the parenthesis after `{name}` is not closed"), "neither a generator nor a file");
    Some(match parse(&closed) {
        Ok(_) => d.help(format!("write `{closed}`")),
        Err(further) => further.help.iter().fold(d, |d, help| d.help(help.clone())),
    })
}

/// Parses a call, and checks the name, and the number and types of the arguments.
///
/// ```
/// use tamis_tensor::gallery::parse;
/// assert_eq!(parse("rmat(17, 16)").unwrap().generator().name, "rmat");
/// let d = parse("laplacien(1000)").unwrap_err();
/// assert!(d.help[0].contains("did you mean `laplacian`?"));
/// ```
pub fn parse(text: &str) -> Result<GeneratorCall> {
    let source = Source::new("generator", text);
    let call = read(text, &source).map_err(|d| d.with_source(&source))?;
    // Only the check counts here; the generator is bound again when it runs.
    let _plan = (call.generator.bind)(&mut Arguments::new(&call)).map_err(|d| d.with_source(&source))?;
    Ok(call)
}

/// Parses a call and generates its entries.
///
/// ```
/// assert_eq!(tamis_tensor::gallery::generate("laplacian(1000)").unwrap().len(), 4_996_000);
/// ```
pub fn generate(text: &str) -> Result<Coordinates> {
    parse(text)?.generate()
}

#[derive(Clone, Debug)]
struct Argument {
    name: Option<(String, Span)>,
    value: ArgumentValue,
    span: Span,
    /// The number of `;` before it.
    group: usize,
}

#[derive(Clone, Debug)]
enum ArgumentValue {
    Integer(u64),
    /// A number that is no count: negative or a float.
    Number(f64),
    Word(String),
    Tuple(Vec<(ArgumentValue, Span)>),
}

fn read(text: &str, source: &Arc<Source>) -> Result<GeneratorCall> {
    let (tokens, errors) = lex_line(text);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let mut reader = CallParser { tokens, at: 0 };
    let token = reader.next();
    let Tok::Ident(name) = &token.tok else {
        return Err(expected("the name of a generator", &token).help("for example `laplacian(1000)`"));
    };
    let Some(generator) = find(name) else {
        let mut d =
            Diagnostic::new(Code::E0904, format!("there is no generator `{name}`")).label(token.span, "unknown");
        if let Some(meant) = did_you_mean(name, GENERATORS.iter().map(|g| g.name)) {
            d = d.help(format!("did you mean `{meant}`?"));
        }
        let names: Vec<&str> = GENERATORS.iter().map(|g| g.name).collect();
        return Err(d.help(format!("generators are {}", names.join(" "))));
    };
    let arguments = reader.arguments().map_err(|d| d.help(format!("write `{}`", generator.signature)))?;
    Ok(GeneratorCall { generator, arguments, source: source.clone() })
}

struct CallParser {
    tokens: Vec<Token>,
    at: usize,
}

fn expected(what: &str, found: &Token) -> Diagnostic {
    Diagnostic::new(Code::E0904, format!("expected {what}, found {}", found.tok.describe()))
        .label(found.span, format!("expected {what}"))
}

impl CallParser {
    /// The next token; the end of the text repeats.
    fn next(&mut self) -> Token {
        let token = self.tokens.get(self.at).or(self.tokens.last()).cloned();
        self.at += 1;
        token.unwrap_or(Token { tok: Tok::Eof, span: Span::default() })
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token { tok: Tok::Op(o), .. }) if *o == op);
        self.at += usize::from(found);
        found
    }

    fn arguments(&mut self) -> Result<Vec<Argument>> {
        if !self.eat("(") {
            return Err(expected("`(`", &self.next()));
        }
        let mut arguments = Vec::new();
        let mut group = 0;
        if !self.eat(")") {
            loop {
                // A group may be empty, as the shape of a scalar: `rand(; 1; 42)`.
                while self.eat(";") {
                    group += 1;
                }
                if self.eat(")") {
                    break;
                }
                arguments.push(self.argument(group)?);
                let token = self.next();
                match token.tok {
                    Tok::Op(")") => break,
                    Tok::Op(",") => {}
                    Tok::Op(";") => group += 1,
                    _ => return Err(expected("`,`, `;` or `)`", &token)),
                }
            }
        }
        let token = self.next();
        match token.tok {
            Tok::Eof => Ok(arguments),
            _ => Err(expected("nothing after the `)`", &token)),
        }
    }

    fn argument(&mut self, group: usize) -> Result<Argument> {
        let mut name = None;
        if let [Token { tok: Tok::Ident(word), span }, Token { tok: Tok::Op("="), .. }, ..] = &self.tokens[self.at..] {
            name = Some((word.clone(), *span));
            self.at += 2;
        }
        let (value, span) = self.value(true)?;
        Ok(Argument { name, value, span, group })
    }

    fn value(&mut self, tuple_allowed: bool) -> Result<(ArgumentValue, Span)> {
        let token = self.next();
        let mut span = token.span;
        let value = match &token.tok {
            Tok::Int(x) => ArgumentValue::Integer(*x),
            Tok::Float(x) => ArgumentValue::Number(*x),
            Tok::Str(word) | Tok::Ident(word) => ArgumentValue::Word(word.clone()),
            Tok::Op("-") => {
                let number = self.next();
                span = span.to(number.span);
                match number.tok {
                    Tok::Int(x) => ArgumentValue::Number(-(x as f64)),
                    Tok::Float(x) => ArgumentValue::Number(-x),
                    _ => return Err(expected("a number", &number)),
                }
            }
            Tok::Op("(") if tuple_allowed => {
                let mut parts = Vec::new();
                while !self.eat(")") {
                    parts.push(self.value(false)?);
                    if !self.eat(",") && !matches!(self.tokens.get(self.at), Some(Token { tok: Tok::Op(")"), .. })) {
                        return Err(expected("`,` or `)`", &self.next()));
                    }
                }
                let close = self.tokens.get(self.at - 1).map_or(span, |t| t.span);
                span = span.to(close);
                ArgumentValue::Tuple(parts)
            }
            _ => return Err(expected("an argument", &token)),
        };
        Ok((value, span))
    }
}

/// The arguments of a call, consumed in order (or by name) by the binding function.
///
/// ```
/// use tamis_tensor::gallery::{Arguments, Generate, GENERATORS};
/// // Each generator binds the arguments of a call to its parameters.
/// let bind: fn(&mut Arguments) -> tamis_ir::diag::Result<Generate> = GENERATORS[0].bind;
/// # let _ = bind;
/// ```
pub struct Arguments {
    left: Vec<Argument>,
    signature: &'static str,
    /// The span of a missing argument.
    end: Span,
}

impl Arguments {
    fn new(call: &GeneratorCall) -> Arguments {
        let end = call.source.text.trim_end().len();
        let end = Span::new(end.saturating_sub(1)..end);
        Arguments { left: call.arguments.clone(), signature: call.generator.signature, end }
    }

    fn wrong(&self, message: String, span: Span, label: &str) -> Diagnostic {
        let help = format!("write `{}`", self.signature);
        Diagnostic::new(Code::E0904, message).label(span, label).help(help)
    }

    /// The keyword argument of this name, else the next positional one.
    fn take(&mut self, name: &str) -> Option<Argument> {
        self.take_up_to(name, usize::MAX)
    }

    /// As [`Arguments::take`], but not beyond a group: in `rand(3;; 7)` the density is omitted.
    fn take_up_to(&mut self, name: &str, group: usize) -> Option<Argument> {
        let named = self.left.iter().position(|a| a.name.as_ref().is_some_and(|(n, _)| n == name));
        let at = named
            .or_else(|| self.left.iter().position(|a| a.name.is_none()).filter(|at| self.left[*at].group <= group))?;
        Some(self.left.remove(at))
    }

    fn missing(&self, name: &str) -> Diagnostic {
        self.wrong(format!("the argument `{name}` is missing"), self.end, "expected before this")
    }

    fn integer(&self, name: &str, value: &ArgumentValue, span: Span) -> Result<u64> {
        match value {
            ArgumentValue::Integer(x) => Ok(*x),
            ArgumentValue::Number(x) if *x < 0.0 => {
                Err(self.wrong(format!("`{name}` must not be negative"), span, "a count from 0"))
            }
            _ => Err(self.wrong(format!("`{name}` must be an integer"), span, "not an integer")),
        }
    }

    /// A required integer.
    pub(super) fn count(&mut self, name: &str) -> Result<u64> {
        self.optional_count(name)?.ok_or_else(|| self.missing(name))
    }

    /// An optional integer.
    pub(super) fn optional_count(&mut self, name: &str) -> Result<Option<u64>> {
        self.take(name).map(|a| self.integer(name, &a.value, a.span)).transpose()
    }

    /// The seed, 0 by default.
    pub(super) fn seed(&mut self) -> Result<u64> {
        Ok(self.optional_count("seed")?.unwrap_or(0))
    }

    /// An optional fraction from 0 to 1, in the second group if there are groups.
    pub(super) fn share(&mut self, name: &str) -> Result<Option<f64>> {
        let Some(argument) = self.take_up_to(name, 1) else { return Ok(None) };
        match argument.value {
            ArgumentValue::Integer(x @ (0 | 1)) => Ok(Some(x as f64)),
            ArgumentValue::Number(x) if (0.0..=1.0).contains(&x) => Ok(Some(x)),
            _ => {
                let message = format!("`{name}` must be a number from 0 to 1");
                Err(self.wrong(message, argument.span, "not a density"))
            }
        }
    }

    /// One of several keywords, quoted or not; the first one by default.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)], default: T) -> Result<T> {
        let Some(argument) = self.take(name) else { return Ok(default) };
        let listed: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let wrong =
            || self.wrong(format!("`{name}` must be {}", listed.join(" or ")), argument.span, "not one of them");
        match &argument.value {
            ArgumentValue::Word(given) => {
                words.iter().find(|(word, _)| word == given).map(|(_, meaning)| *meaning).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    /// The sizes of the dimensions: a tuple, or everything up to the first `;`; `None` if omitted.
    pub(super) fn shape(&mut self) -> Result<Option<Vec<u64>>> {
        let tuple = self.left.iter().position(|a| match &a.name {
            Some((name, _)) => name == "shape",
            None => a.group == 0 && matches!(a.value, ArgumentValue::Tuple(_)),
        });
        if let Some(at) = tuple {
            let argument = self.left.remove(at);
            return match argument.value {
                ArgumentValue::Tuple(parts) => {
                    parts.iter().map(|(value, span)| self.integer("shape", value, *span)).collect()
                }
                value => self.integer("shape", &value, argument.span).map(|n| vec![n]),
            }
            .map(Some);
        }
        let mut shape = Vec::new();
        while let Some(at) = self.left.iter().position(|a| a.name.is_none() && a.group == 0) {
            let argument = self.left.remove(at);
            shape.push(
                self.integer("shape", &argument.value, argument.span)
                    .map_err(|d| d.help("a `;` ends the shape, as in `rand(100,200; 0.1; 42)`"))?,
            );
        }
        Ok(Some(shape).filter(|shape| !shape.is_empty()))
    }

    /// Checks that all arguments are consumed.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(Argument { name: Some((name, span)), .. }) => {
                Err(self.wrong(format!("there is no argument `{name}`, or it was given twice"), *span, "not expected"))
            }
            Some(extra) => Err(self.wrong("too many arguments".to_string(), extra.span, "not expected")),
        }
    }
}
