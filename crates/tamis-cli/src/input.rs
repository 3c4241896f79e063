//! Parsers for the arguments of the command line: `NAME=INPUT`, `NAME=FORMAT`, files, generators,
//! numbers.

use crate::shell::CommandError;
use num_complex::Complex;
use std::ffi::OsStr;
use std::path::PathBuf;
use tamis_ir::diag::{Code, Diagnostic, Result, Source, Span, did_you_mean};
use tamis_ir::text::lexer::{Tok, lex_line};
use tamis_ir::{DType, FormatSpec, Value};
use tamis_tensor::gallery;
use tamis_tensor::io::FileKind;

/// The input of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum InputSpec {
    /// A file.
    Path(PathBuf),
    /// A random tensor. A missing shape is inferred from the program; density and seed have
    /// defaults.
    Rand {
        /// The sizes of the dimensions.
        shape: Option<Vec<u64>>,
        /// The share of elements that are stored.
        density: Option<f64>,
        /// The seed of the generator.
        seed: Option<u64>,
    },
    /// A tensor of ones.
    Ones {
        /// The sizes of the dimensions; inferred from the program if left out.
        shape: Option<Vec<u64>>,
    },
    /// Any other generator.
    Gallery(gallery::GeneratorCall),
    /// A number, for a scalar parameter.
    Number(Value),
}

impl InputSpec {
    /// Parses the right side of `NAME=`.
    ///
    /// A word with parentheses is a generator, a number is a number, and everything else is a path;
    /// a file that is named like one of those can be written with its folder, as in `./2.5`.
    ///
    /// ```
    /// use tamis_cli::input::InputSpec;
    /// assert_eq!(InputSpec::parse("a/b.mtx").unwrap(), InputSpec::Path("a/b.mtx".into()));
    /// assert_eq!(InputSpec::parse("ones").unwrap(), InputSpec::Ones { shape: None });
    /// ```
    pub fn parse(text: &str) -> Result<InputSpec> {
        let trimmed = text.trim();
        match trimmed {
            "" => return Err(no_input()),
            "rand" | "random" => return Ok(InputSpec::Rand { shape: None, density: None, seed: None }),
            "ones" => return Ok(InputSpec::Ones { shape: None }),
            _ => {}
        }
        if let Some(number) = number(trimmed) {
            return Ok(InputSpec::Number(number));
        }
        if let Some(d) = malformed_number(trimmed) {
            return Err(d);
        }
        if !gallery::is_call(trimmed) {
            return match almost_call(text) {
                Some(d) => Err(d),
                None => Ok(InputSpec::Path(PathBuf::from(text))),
            };
        }
        let call = gallery::parse(trimmed)?;
        Ok(match (call.generator().name, call.loose()) {
            ("rand", Some(given)) => InputSpec::Rand { shape: given.shape, density: given.density, seed: given.seed },
            ("ones", Some(given)) => InputSpec::Ones { shape: given.shape },
            _ => InputSpec::Gallery(call),
        })
    }
}

/// The diagnostic for a text that is nearly a generator, and has no extension of a file.
pub(crate) fn almost_call(text: &str) -> Option<Diagnostic> {
    gallery::almost_call(text).filter(|_| FileKind::of(text).is_err())
}

/// The diagnostic for a number that fits no type.
fn malformed_number(text: &str) -> Option<Diagnostic> {
    let digits = text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
    let number = digits && text.parse::<f64>().is_ok();
    lex_line(text).1.into_iter().next().filter(|_| number)
}

fn no_input() -> Diagnostic {
    Diagnostic::new(Code::E0901, "there is nothing after the `=`")
        .help("write a file, as in `A=matrix.mtx`, or a generator, as in `A=laplacian(1000)` or `x=rand`")
}

/// Parses a number: `2`, `-2.5`, `1e-3`, `2j`, `1+2j`, `inf`, `nan`, `True`.
pub fn number(text: &str) -> Option<Value> {
    let (tokens, errors) = lex_line(text);
    if !errors.is_empty() {
        return None;
    }
    let (first, rest) = signed(&tokens.iter().map(|t| &t.tok).collect::<Vec<_>>(), true)?;
    match rest.as_slice() {
        [] => Some(first),
        // A complex number: both parts are written, the second one is imaginary.
        [Tok::Op("+" | "-"), ..] if !matches!(first, Value::C128(_) | Value::Bool(_)) => match signed(&rest, true)? {
            (Value::C128(second), end) if end.is_empty() => {
                Some(Value::C128(Complex::new(first.as_c128().re, second.im)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A number with its sign, and the tokens after it (without the end of the text).
fn signed<'a>(tokens: &[&'a Tok], sign_allowed: bool) -> Option<(Value, Vec<&'a Tok>)> {
    let tokens: Vec<&Tok> = tokens.iter().copied().filter(|t| **t != Tok::Eof).collect();
    let (negative, at) = match tokens.first()? {
        Tok::Op("-") if sign_allowed => (true, 1),
        Tok::Op("+") if sign_allowed => (false, 1),
        _ => (false, 0),
    };
    let sign = if negative { -1.0 } else { 1.0 };
    let value = match tokens.get(at)? {
        Tok::Int(x) => match i64::try_from(*x) {
            Ok(x) => Value::I64(if negative { -x } else { x }),
            Err(_) if negative => return (*x == 1 << 63).then(|| (Value::I64(i64::MIN), tokens[2..].to_vec())),
            Err(_) => Value::U64(*x),
        },
        Tok::Float(x) => Value::F64(sign * x),
        Tok::Imag(x) => Value::C128(Complex::new(0.0, sign * x)),
        Tok::Ident(word) => match word.as_str() {
            "inf" => Value::F64(sign * f64::INFINITY),
            "nan" => Value::F64(f64::NAN),
            "True" if at == 0 => Value::Bool(true),
            "False" if at == 0 => Value::Bool(false),
            _ => return None,
        },
        _ => return None,
    };
    Some((value, tokens[at + 1..].to_vec()))
}

/// Named values of the command line, in order, without duplicate names.
pub type Named<T> = Vec<(String, T)>;

/// Parses arguments of the form `NAME=...`, the right side with `read`. Errors are those of the
/// command line. The right side may be a path, which need not be UTF-8.
pub fn named<T>(
    arguments: &[impl AsRef<OsStr>],
    what: &str,
    read: impl Fn(&OsStr) -> Result<T>,
) -> std::result::Result<Named<T>, CommandError> {
    let mut found: Named<T> = Vec::new();
    let mut mistakes = Vec::new();
    for argument in arguments {
        let text = &*argument.as_ref().to_string_lossy();
        let pair = split(text, what).and_then(|(name, shown)| {
            Ok((name, read(right_side(argument.as_ref())).map_err(|d| in_argument(d, text, shown))?))
        });
        match pair {
            Ok((name, _)) if found.iter().any(|(n, _)| *n == name) => {
                let message = format!("`{name}` is given twice");
                let code = if what == "INPUT" { Code::E0901 } else { Code::E0905 };
                let d = Diagnostic::new(code, message).label(Span::new(0..name.len()), "given before");
                mistakes.push(in_argument(d.help("keep one of them"), text, text));
            }
            Ok(pair) => found.push(pair),
            Err(d) => mistakes.push(d),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(CommandError::usage(mistakes)) }
}

/// The argument after the first `=`.
fn right_side(argument: &OsStr) -> &OsStr {
    let bytes = argument.as_encoded_bytes();
    let start = bytes.iter().position(|b| *b == b'=').map_or(bytes.len(), |p| p + 1);
    // SAFETY: the bytes come from an `OsStr`, and are cut right behind a character of ASCII (or are
    // empty).
    unsafe { OsStr::from_encoded_bytes_unchecked(&bytes[start..]) }
}

/// Adapts a parser of text; clap has refused arguments that are not UTF-8.
pub(crate) fn as_text<T>(read: impl Fn(&str) -> Result<T>) -> impl Fn(&OsStr) -> Result<T> {
    move |argument| read(&argument.to_string_lossy())
}

fn split<'a>(text: &'a str, what: &str) -> Result<(String, &'a str)> {
    let wrong = |message: String, span: Span, label: &str| {
        let (code, example) = match what {
            "FORMAT" => (Code::E0905, "`-f A=csr`"),
            "PATH" => (Code::E0905, "`-o y=y.tns`"),
            "TYPE" => (Code::E0905, "`--dtype A=f32`"),
            "N,N,..." => (Code::E0905, "`--shape T=327,327,606`"),
            _ => (Code::E0901, "`A=matrix.mtx` or `x=rand`"),
        };
        let d = Diagnostic::new(code, message).label(span, label);
        in_argument(d.help(format!("write NAME={what}, as in {example}")), text, text)
    };
    let Some((name, rest)) = text.split_once('=') else {
        let message = format!("`{text}` has no `=`");
        return Err(wrong(message, Span::new(0..text.len()), "expected a name and `=` before this"));
    };
    let word = name.trim();
    let starts = word.starts_with(|c: char| c == '_' || c.is_alphabetic());
    if !starts || word.contains(|c: char| c != '_' && !c.is_alphanumeric()) {
        let message = if word.is_empty() {
            "there is no name before the `=`".to_string()
        } else {
            format!("`{word}` is not a name")
        };
        return Err(wrong(message, Span::new(0..name.len().max(1)), "expected a name"));
    }
    Ok((word.to_string(), rest))
}

/// Shows the whole argument as the text that the labels point into; they point into `part`, the end
/// of it, or into what the diagnostic itself says was read.
fn in_argument(mut d: Diagnostic, argument: &str, part: &str) -> Diagnostic {
    let read = d.source.as_ref().map_or(part, |source| source.text.as_str());
    let Some(offset) = argument.rfind(read) else { return d };
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    for label in &mut d.labels {
        label.span.start = label.span.start.saturating_add(offset);
        label.span.end = label.span.end.saturating_add(offset);
    }
    if d.labels.is_empty() {
        d = d.label(Span::new(0..argument.len()), "in this argument");
    }
    d.source = Some(Source::new("argument", argument));
    d
}

/// Reads `-f NAME=FORMAT` arguments.
pub fn formats(texts: &[String]) -> std::result::Result<Named<FormatSpec>, CommandError> {
    named(texts, "FORMAT", as_text(FormatSpec::parse))
}

/// Reads `--dtype NAME=TYPE` arguments.
pub fn dtypes(texts: &[String]) -> std::result::Result<Named<DType>, CommandError> {
    let read = |text: &str| {
        text.trim().parse::<DType>().map_err(|_| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            let d = Diagnostic::new(Code::E0308, format!("`{}` is not a value type", text.trim()));
            let d = d.label(Span::new(0..text.len()), "unknown");
            match did_you_mean(text.trim(), names.iter().copied()) {
                Some(meant) => d.help(format!("did you mean `{meant}`?")),
                None => d,
            }
            .help(format!("value types are {}", names.join(" ")))
        })
    };
    named(texts, "TYPE", as_text(read))
}

/// Reads `NAME=INPUT` arguments.
pub fn inputs(arguments: &[impl AsRef<OsStr>]) -> std::result::Result<Named<InputSpec>, CommandError> {
    named(arguments, "INPUT", |argument| match argument.to_str() {
        Some(text) => InputSpec::parse(text),
        None => Ok(InputSpec::Path(PathBuf::from(argument))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_every_kind() {
        let rand =
            |shape: Option<&[u64]>, density, seed| InputSpec::Rand { shape: shape.map(<[u64]>::to_vec), density, seed };
        let table = [
            ("rand", rand(None, None, None)),
            ("rand()", rand(None, None, None)),
            ("rand(100,200; 0.1; 42)", rand(Some(&[100, 200]), Some(0.1), Some(42))),
            ("rand(100,200; 0.1)", rand(Some(&[100, 200]), Some(0.1), None)),
            ("rand(100)", rand(Some(&[100]), None, None)),
            ("rand(; 0.5)", rand(None, Some(0.5), None)),
            ("rand(;; 7)", rand(None, None, Some(7))),
            ("rand(())", rand(Some(&[]), None, None)),
            ("ones", InputSpec::Ones { shape: None }),
            ("ones(3,4)", InputSpec::Ones { shape: Some(vec![3, 4]) }),
            ("2", InputSpec::Number(Value::I64(2))),
            ("-2.5", InputSpec::Number(Value::F64(-2.5))),
            ("1e-3", InputSpec::Number(Value::F64(1e-3))),
            ("18446744073709551615", InputSpec::Number(Value::U64(u64::MAX))),
            ("-9223372036854775808", InputSpec::Number(Value::I64(i64::MIN))),
            ("-inf", InputSpec::Number(Value::F64(f64::NEG_INFINITY))),
            ("nan", InputSpec::Number(Value::F64(f64::NAN))),
            ("True", InputSpec::Number(Value::Bool(true))),
            ("2j", InputSpec::Number(Value::C128(Complex::new(0.0, 2.0)))),
            ("1-2j", InputSpec::Number(Value::C128(Complex::new(1.0, -2.0)))),
            ("a.mtx", InputSpec::Path("a.mtx".into())),
            ("./2.5", InputSpec::Path("./2.5".into())),
            ("2.mtx", InputSpec::Path("2.mtx".into())),
            ("1+2", InputSpec::Path("1+2".into())),
            ("laplacian(1.mtx", InputSpec::Path("laplacian(1.mtx".into())),
            ("dir with space/a=b.mtx", InputSpec::Path("dir with space/a=b.mtx".into())),
        ];
        for (text, spec) in table {
            assert_eq!(InputSpec::parse(text).unwrap_or_else(|d| panic!("{text}: {d}")), spec, "{text}");
        }
        assert!(
            matches!(InputSpec::parse("laplacian(10)"), Ok(InputSpec::Gallery(call)) if call.text() == "laplacian(10)")
        );
    }

    #[test]
    fn labels_point_into_the_whole_argument() {
        let table = [
            ("A", "A", Code::E0901),
            ("=x", "=", Code::E0901),
            ("2A=x", "2A", Code::E0901),
            ("A b=x", "A b", Code::E0901),
            ("A=", "A=", Code::E0901),
            ("A=laplacien(3)", "laplacien", Code::E0904),
            ("A= laplacian(-3)", "-3", Code::E0904),
            ("A=laplacian", "laplacian", Code::E0904),
            ("A=laplacian(3", "laplacian(3", Code::E0904),
            ("A=laplacien(3", "laplacien(3", Code::E0904),
            ("s=1e400", "1e400", Code::E0103),
            ("s=-99999999999999999999", "99999999999999999999", Code::E0103),
        ];
        for (text, marked, code) in table {
            let failure = inputs(&[text.to_string()]).expect_err(text);
            let d = &failure.diagnostics()[0];
            assert_eq!(d.code, code, "{text}");
            assert_eq!(&text[d.labels[0].span.range()], marked, "{text}: {d}");
            assert!(!d.help.is_empty(), "{text}");
        }
        let failure = formats(&["A=csrr".to_string()]).unwrap_err();
        assert_eq!(&"A=csrr"[failure.diagnostics()[0].labels[0].span.range()], "csrr");
        let failure = inputs(&["A=ones".to_string(), "A=rand".to_string(), "B".to_string()]).unwrap_err();
        assert_eq!(failure.diagnostics().len(), 2);
    }
}
