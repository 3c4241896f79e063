//! Diagnostics: reports of users' mistakes, as data.
//!
//! A [`Diagnostic`] holds a stable [`Code`], a message, labelled spans in the user's own text or a
//! line of the user's own file, notes, and at least one alternative that would work. Rendering is
//! separate ([`Diagnostic::render`]); the other interfaces (Python, JSON) read the fields. Every
//! mistake of a user is reported by a diagnostic, never by a panic.

mod codes;
mod render;

pub use codes::{Code, UnknownCode};

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// A range of bytes in a [`Source`].
///
/// ```
/// use tamis_ir::diag::Span;
/// assert_eq!(Span::new(2..4).to(Span::new(7..9)).range(), 2..9);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The span of a byte range.
    ///
    /// ```
    /// use tamis_ir::Span;
    /// assert_eq!(Span::new(2..4), Span { start: 2, end: 4 });
    /// ```
    pub fn new(range: Range<usize>) -> Span {
        let clamp = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span { start: clamp(range.start), end: clamp(range.end) }
    }

    /// The smallest span that covers both.
    ///
    /// ```
    /// use tamis_ir::Span;
    /// assert_eq!(Span::new(2..4).to(Span::new(7..9)), Span::new(2..9));
    /// ```
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// This span as a range of bytes.
    ///
    /// ```
    /// use tamis_ir::Span;
    /// assert_eq!(&"y[i] = x[i]"[Span::new(7..11).range()], "x[i]");
    /// ```
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A text with spans, and the name that messages show for it.
///
/// ```
/// use tamis_ir::diag::{Source, Span};
/// let source = Source::new("notation", "y[i] = A[i,j]\nz = y[i]");
/// assert_eq!(source.line_column(14), (2, 1));
/// assert_eq!(source.find(Span::new(7..13), "j").range(), 11..12);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Source {
    pub name: String,
    pub text: String,
}

impl Source {
    /// The first occurrence of a word inside a span, or the span.
    ///
    /// ```
    /// use tamis_ir::{Source, Span};
    /// let source = Source::new("notation", "y[i] = A[i,j]");
    /// assert_eq!(source.find(Span::new(7..13), "j"), Span::new(11..12));
    /// ```
    pub fn find(&self, span: Span, word: &str) -> Span {
        let at = self.text.get(span.range()).and_then(|text| text.find(word));
        at.filter(|_| !word.is_empty()).map_or(span, |at| {
            let start = span.range().start + at;
            Span::new(start..start + word.len())
        })
    }

    /// A source to be shared by the spans that point into it.
    ///
    /// ```
    /// use tamis_ir::Source;
    /// let source = Source::new("notation", "y[i] = A[i,j]");
    /// assert_eq!((source.name.as_str(), source.text.len()), ("notation", 13));
    /// ```
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }

    /// Line and column (both from 1) of a byte offset.
    ///
    /// ```
    /// use tamis_ir::Source;
    /// assert_eq!(Source::new("notation", "a = b\nc = d").line_column(10), (2, 5));
    /// ```
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let mut end = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// The severity.
///
/// ```
/// use tamis_ir::diag::{Code, Diagnostic, Severity};
/// assert_eq!(Diagnostic::new(Code::E0402, "sizes differ").severity, Severity::Error);
/// assert_eq!(Diagnostic::warning(Code::E0607, "a level is searched").severity, Severity::Warning);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Severity {
    Error,
    Warning,
}

/// A span of the user's text, with a message.
///
/// ```
/// use tamis_ir::diag::{Code, Diagnostic, Source, Span};
/// let d = Diagnostic::new(Code::E0201, "`B` is not defined")
///     .label(Span::new(7..8), "unknown name")
///     .with_source(&Source::new("notation", "y[i] = B[i]"));
/// assert_eq!(d.labels[0].message, "unknown name");
/// assert!(d.render(false).contains("notation:1:8"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Label {
    pub span: Span,
    pub message: String,
}

/// A location in a data file.
///
/// ```
/// use tamis_ir::{Code, Diagnostic};
/// let d = Diagnostic::new(Code::E0806, "row 7 is out of bounds").at_line("a.mtx", 12, "7 1 3.5");
/// let place = d.place.as_ref().unwrap();
/// assert_eq!((place.file.as_str(), place.line), ("a.mtx", Some(12)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileLocation {
    pub file: String,
    /// The line, counted from 1, if it exists.
    pub line: Option<u64>,
    /// The offending line (shortened), if the file is text.
    pub excerpt: Option<String>,
}

/// The contents of a [`Diagnostic`].
///
/// ```
/// use tamis_ir::{Code, Program};
/// let errors = Program::parse("def f(A):\n    return y\n").unwrap_err();
/// let first = &errors.0[0];
/// assert!(first.code == Code::E0201 && !first.labels.is_empty() && !first.help.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DiagnosticParts {
    pub code: Code,
    pub severity: Severity,
    pub message: String,
    /// The text that `labels` point into.
    pub source: Option<Arc<Source>>,
    /// The first label is the location of the mistake; others are related locations.
    pub labels: Vec<Label>,
    pub place: Option<FileLocation>,
    pub notes: Vec<String>,
    pub help: Vec<String>,
}

/// A report of a user's mistake, with a way to correct it.
///
/// ```
/// use tamis_ir::diag::{Code, Diagnostic};
/// let d = Diagnostic::new(Code::E0806, "row index 7 is outside 1..=5")
///     .at_line("a.mtx", 12, "7 1 3.5")
///     .help("correct the entry, or the size line");
/// assert!(d.render(false).contains("a.mtx:12"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic(Box<DiagnosticParts>);

/// A result whose error is a user's mistake.
///
/// ```
/// use tamis_ir::diag::Result;
/// use tamis_ir::{Code, Diagnostic};
/// fn half(n: u64) -> Result<u64> {
///     let d = Diagnostic::new(Code::E0404, format!("{n} is odd")).help("choose an even size");
///     if n % 2 == 0 { Ok(n / 2) } else { Err(d) }
/// }
/// assert!(half(4).is_ok() && half(5).is_err());
/// ```
pub type Result<T> = std::result::Result<T, Diagnostic>;

impl Diagnostic {
    /// An error with a code and a message, to be completed by the methods below.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic};
    /// let d = Diagnostic::new(Code::E0402, "`A` has 3 columns, but `x` has 4 elements");
    /// assert_eq!(d.to_string(), "[E0402] `A` has 3 columns, but `x` has 4 elements");
    /// ```
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic(Box::new(DiagnosticParts {
            code,
            severity: Severity::Error,
            message: message.into(),
            source: None,
            labels: Vec::new(),
            place: None,
            notes: Vec::new(),
            help: Vec::new(),
        }))
    }

    /// A warning instead of an error.
    ///
    /// ```
    /// use tamis_ir::diag::{Code, Diagnostic, Severity};
    /// let d = Diagnostic::warning(Code::E0607, "the level is searched in every iteration");
    /// assert_eq!(d.severity, Severity::Warning);
    /// ```
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        let mut d = Diagnostic::new(code, message);
        d.severity = Severity::Warning;
        d
    }

    /// Adds a labelled span; the first one is the location of the mistake.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic, Span};
    /// let d = Diagnostic::new(Code::E0201, "`B` is not defined");
    /// let d = d.label(Span::new(7..8), "unknown name");
    /// assert_eq!(d.labels[0].message, "unknown name");
    /// ```
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Sets the text of the labels.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic, Source, Span};
    /// let d = Diagnostic::new(Code::E0201, "`B` is not defined")
    ///     .label(Span::new(7..8), "unknown name")
    ///     .with_source(&Source::new("notation", "y[i] = B[i]"));
    /// assert!(d.render(false).contains("y[i] = B[i]"));
    /// ```
    pub fn with_source(mut self, source: &Arc<Source>) -> Diagnostic {
        self.source.get_or_insert_with(|| source.clone());
        self
    }

    /// Sets the file of the mistake.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic};
    /// let d = Diagnostic::new(Code::E0813, "a vector has no columns").in_file("x.mtx");
    /// assert!(d.to_string().ends_with("(x.mtx)"));
    /// ```
    pub fn in_file(mut self, file: impl Into<String>) -> Diagnostic {
        let file = file.into();
        self.place.get_or_insert(FileLocation { file, line: None, excerpt: None });
        self
    }

    /// Sets the file and the line (from 1) of the mistake, and quotes the line.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic};
    /// let d = Diagnostic::new(Code::E0806, "row 7 is out of bounds");
    /// let d = d.at_line("a.mtx", 12, "7 1 3.5");
    /// assert!(d.to_string().ends_with("(a.mtx:12)"));
    /// ```
    pub fn at_line(mut self, file: impl Into<String>, line: u64, text: &str) -> Diagnostic {
        let shown: String = text.trim_end().chars().take(100).collect();
        let excerpt = Some(if shown.len() < text.trim_end().len() { shown + "…" } else { shown });
        self.place = Some(FileLocation { file: file.into(), line: Some(line), excerpt });
        self
    }

    /// Adds a fact that helps to understand the mistake.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic};
    /// let d = Diagnostic::new(Code::E0402, "sizes differ").note("`A` has 3 columns");
    /// assert_eq!(d.notes, ["`A` has 3 columns"]);
    /// ```
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Adds an alternative that would work.
    ///
    /// ```
    /// use tamis_ir::{Code, Diagnostic};
    /// let d = Diagnostic::new(Code::E0402, "sizes differ").help("transpose `A`");
    /// assert!(d.render(false).contains("transpose `A`"));
    /// ```
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help.push(help.into());
        self
    }

    /// Renders for people: the mistake, its location, and an alternative; with or without ANSI
    /// colours.
    ///
    /// ```
    /// let errors = tamis_ir::Notation::parse("y[i] = x[i").unwrap_err();
    /// assert!(errors.0[0].render(false).contains("y[i] = x[i"));
    /// ```
    pub fn render(&self, colour: bool) -> String {
        render::render(self, colour)
    }
}

impl Deref for Diagnostic {
    type Target = DiagnosticParts;

    fn deref(&self) -> &DiagnosticParts {
        &self.0
    }
}

impl DerefMut for Diagnostic {
    fn deref_mut(&mut self) -> &mut DiagnosticParts {
        &mut self.0
    }
}

/// One line: code and message.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)?;
        match &self.place {
            Some(FileLocation { file, line: Some(line), .. }) => write!(f, " ({file}:{line})"),
            Some(FileLocation { file, .. }) => write!(f, " ({file})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// Several mistakes of one run (never empty).
///
/// ```
/// use tamis_ir::Program;
/// let errors = Program::parse("def f(A):\n    return y, z\n").unwrap_err();
/// assert_eq!(errors.0.len(), 2);
/// for diagnostic in &errors.0 {
///     println!("{}: {}", diagnostic.code, diagnostic.message);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// All of them rendered, one after the other.
    ///
    /// ```
    /// let errors = tamis_ir::Program::parse("def f(A):\n    return y, z\n").unwrap_err();
    /// eprintln!("{}", errors.render(true));
    /// assert!(errors.render(false).contains("`y`") && errors.render(false).contains("`z`"));
    /// ```
    pub fn render(&self, colour: bool) -> String {
        self.0.iter().map(|d| d.render(colour)).collect::<Vec<_>>().join("\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(d: Diagnostic) -> Diagnostics {
        Diagnostics(vec![d])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if k > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The candidate that is closest to `word` in spelling, if one is close.
///
/// ```
/// use tamis_ir::diag::did_you_mean;
/// assert_eq!(did_you_mean("sparce", ["dense", "sparse"]), Some("sparse"));
/// // Two letters that were swapped are one mistake.
/// assert_eq!(did_you_mean("sqtr", ["shr", "sqrt"]), Some("sqrt"));
/// ```
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    candidates
        .into_iter()
        .filter(|c| *c != word)
        .map(|c| (edit_distance(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(d, c)| *d <= limit && *d < c.chars().count().min(word.chars().count()))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words
/// (optimal string alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        (before, last) = (last, row);
    }
    last[b.len()]
}

/// A count with its noun, in the singular or the plural.
///
/// ```
/// use tamis_ir::diag::counted;
/// assert_eq!(format!("{}, {}", counted(1, "operand"), counted(2, "operand")), "1 operand, 2 operands");
/// ```
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
