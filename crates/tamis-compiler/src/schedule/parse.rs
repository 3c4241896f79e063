//! Parser of schedules: `reorder(i,k,j); split(k,k0,k1,32)`, in Tamis's or TACO's spelling.

use super::{BoundKind, Command, LocatedCommand, Races};
use std::sync::Arc;
use tamis_ir::diag::{Code, Diagnostic, Diagnostics, Result, Source, Span, did_you_mean};
use tamis_ir::text::parser::is_name;

/// The maximum length of a text, and the maximum number of commands.
const MAX_TEXT: usize = 1 << 16;
const MAX_COMMANDS: usize = 1000;

/// Commands and their forms; `help` shows the first form of each name.
const FORMS: &[(&str, &str)] = &[
    ("reorder", "reorder(i, k, j)"),
    ("split", "split(i, i0, i1, 32)"),
    ("tile", "tile(i, j, i0, i1, j0, j1, 32, 32)"),
    ("fuse", "fuse(i, j, f)"),
    ("pos", "pos(j, p, A)"),
    ("bound", "bound(i, 100, exactly)"),
    ("unroll", "unroll(i, 4)"),
    ("vectorize", "vectorize(i)"),
    ("parallelize", "parallelize(i)"),
    ("precompute", "precompute(A[i,j] * B[j,k], k, kw, bytemap)"),
    ("convert", "convert(A, csc)"),
    ("insert_workspace", "insert_workspace(coord, 1024)"),
];

/// An argument: its trimmed, unquoted text and its span.
#[derive(Clone, Debug)]
struct CommandArgument<'a> {
    text: &'a str,
    span: Span,
}

pub(super) fn parse(source: &Arc<Source>) -> std::result::Result<Vec<LocatedCommand>, Diagnostics> {
    let mut reader = CommandReader { text: &source.text, at: 0 };
    let mut steps = Vec::new();
    let attach = |d: Diagnostic| Diagnostics(vec![d.with_source(source)]);
    if source.text.len() > MAX_TEXT {
        let d = Diagnostic::new(Code::E1201, "the schedule is longer than 64 KB");
        return Err(attach(d.help("write fewer commands")));
    }
    loop {
        reader.skip(|c| c.is_whitespace() || c == ';' || c == ',');
        if reader.at >= source.text.len() {
            return Ok(steps);
        }
        if steps.len() == MAX_COMMANDS {
            let d = Diagnostic::new(Code::E1201, format!("a schedule has at most {MAX_COMMANDS} commands"));
            return Err(attach(d.label(reader.rest(), "one too many").help("write fewer commands")));
        }
        steps.push(reader.command().map_err(attach)?);
    }
}

struct CommandReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> CommandReader<'a> {
    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !skipped(c)).unwrap_or(rest.len());
    }

    fn rest(&self) -> Span {
        Span::new(self.at..self.text.len())
    }

    fn command(&mut self) -> Result<LocatedCommand> {
        let start = self.at;
        self.skip(|c| c.is_alphanumeric() || c == '_');
        let name = &self.text[start..self.at];
        let name_span = Span::new(start..self.at);
        if name.is_empty() {
            let next = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
            return Err(Diagnostic::new(Code::E1201, "expected a scheduling command")
                .label(Span::new(start..start + next), "not a command")
                .help("write commands such as `reorder(i, k, j); split(k, k0, k1, 32)`"));
        }
        let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == canonical(name)) else {
            let known: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
            let d = Diagnostic::new(Code::E1201, format!("there is no scheduling command `{name}`"));
            let d = d.label(name_span, "unknown command");
            let d = match did_you_mean(name, known.iter().copied()) {
                Some(meant) => d.help(format!("did you mean `{meant}`?")),
                None => d,
            };
            return Err(d.help(format!("commands are {}", known.join(", "))));
        };
        self.skip(char::is_whitespace);
        if !self.text[self.at..].starts_with('(') {
            return Err(Diagnostic::new(Code::E1201, format!("`{name}` needs its arguments in parentheses"))
                .label(name_span, "no `(` follows")
                .help(format!("write `{form}`")));
        }
        let args = self.arguments(name_span, form)?;
        let span = Span::new(start..self.at);
        let command = CommandArguments { name, span, form, args: &args }.command()?;
        Ok(LocatedCommand { command, span: Some(span), args: args.iter().map(|arg| arg.span).collect() })
    }

    /// The text between the parentheses, split at top-level commas.
    fn arguments(&mut self, name: Span, form: &str) -> Result<Vec<CommandArgument<'a>>> {
        let text = self.text;
        let mut args = Vec::new();
        let mut open: Vec<char> = Vec::new();
        let mut quote: Option<char> = None;
        let mut start = self.at + 1;
        for (k, c) in text[self.at..].char_indices() {
            let here = self.at + k;
            match (quote, c) {
                (Some(q), c) => quote = Some(q).filter(|q| *q != c),
                (None, '"' | '\'') => quote = Some(c),
                (None, '(' | '[' | '{') => open.push(c),
                (None, ')' | ']' | '}') => {
                    let pair = matches!((open.pop(), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                    if !pair {
                        return Err(Diagnostic::new(Code::E1201, format!("`{c}` closes nothing here"))
                            .label(Span::new(here..here + 1), "does not fit")
                            .help(format!("write `{form}`")));
                    }
                    if open.is_empty() {
                        if !args.is_empty() || !text[start..here].trim().is_empty() {
                            args.push(argument(text, start, here));
                        }
                        self.at = here + 1;
                        return Ok(args);
                    }
                }
                (None, ',') if open.len() == 1 => {
                    args.push(argument(text, start, here));
                    start = here + 1;
                }
                _ => {}
            }
        }
        Err(Diagnostic::new(Code::E1201, "the arguments of the command do not end")
            .label(name, if quote.is_some() { "a quote is not closed" } else { "a `)` is missing" })
            .help(format!("write `{form}`")))
    }
}

fn argument(text: &str, start: usize, end: usize) -> CommandArgument<'_> {
    let all = &text[start..end];
    let trimmed = all.trim();
    let from = start + (all.len() - all.trim_start().len());
    let quoted = ['"', '\''].iter().find_map(|q| trimmed.strip_prefix(*q)?.strip_suffix(*q));
    let (shown, from) = match quoted {
        Some(inner) => (inner, from + 1),
        None => (trimmed, from),
    };
    CommandArgument { text: shown, span: Span::new(from..from + shown.len()) }
}

/// Alternative spellings of commands.
fn canonical(name: &str) -> &str {
    match name {
        "divide" | "strip_mine" => "split",
        "insertSparseWorkspace" | "insert_sparse_workspace" => "insert_workspace",
        "parallel" => "parallelize",
        "vectorise" => "vectorize",
        "parallelise" => "parallelize",
        other => other,
    }
}

/// The arguments of a command, with typed accessors.
struct CommandArguments<'a> {
    name: &'a str,
    span: Span,
    form: &'a str,
    args: &'a [CommandArgument<'a>],
}

impl CommandArguments<'_> {
    fn command(&self) -> Result<Command> {
        Ok(match canonical(self.name) {
            "reorder" => {
                self.count(2, 100)?;
                Command::Reorder { loops: (0..self.args.len()).map(|k| self.index(k)).collect::<Result<_>>()? }
            }
            "split" => {
                if self.name == "divide" {
                    let d = self.wrong("`divide` splits a loop into a given number of chunks, which is not supported");
                    return Err(d.help("`split(i, i0, i1, n)` splits it into chunks of n iterations"));
                }
                self.count(4, 4)?;
                let factor = self.number(3)?;
                Command::Split { index: self.index(0)?, outer: self.new_name(1)?, inner: self.new_name(2)?, factor }
            }
            "tile" => {
                self.count(8, 8)?;
                Command::Tile {
                    loops: [self.index(0)?, self.index(1)?],
                    first: [self.new_name(2)?, self.new_name(3)?],
                    second: [self.new_name(4)?, self.new_name(5)?],
                    factors: [self.number(6)?, self.number(7)?],
                }
            }
            "fuse" => {
                self.count(3, 3)?;
                Command::Fuse { outer: self.index(0)?, inner: self.index(1)?, fused: self.new_name(2)? }
            }
            "pos" => {
                self.count(3, 3)?;
                let access = self.args[2].text.to_string();
                Command::Pos { index: self.index(0)?, position: self.new_name(1)?, access }
            }
            "bound" => self.bound()?,
            "unroll" => {
                self.count(2, 2)?;
                Command::Unroll { index: self.index(0)?, factor: self.number(1)? }
            }
            "vectorize" => {
                self.count(1, 2)?;
                let lanes = if self.args.len() > 1 { Some(self.number(1)?) } else { None };
                Command::Vectorize { index: self.index(0)?, lanes }
            }
            "parallelize" => self.parallelize()?,
            "precompute" => {
                self.count(3, 4)?;
                let (indices, workspace) = (self.names(1)?, self.names(2)?);
                if indices.len() != workspace.len() {
                    let message = format!("{} indices, but {} for the workspace", indices.len(), workspace.len());
                    let d = Diagnostic::new(Code::E1201, message).label(self.args[2].span, "as many as before");
                    return Err(d.help("write `precompute(expression, [i, j], [iw, jw])`"));
                }
                if self.args[0].text.is_empty() {
                    return Err(self.wrong("there is no expression to precompute"));
                }
                let format = if self.args.len() > 3 { Some(self.format(3)?) } else { None };
                Command::Precompute { expression: self.args[0].text.to_string(), indices, workspace, format }
            }
            "convert" => {
                self.count(2, 100)?;
                // An unquoted format contains commas.
                let parts: Vec<String> = (1..self.args.len()).map(|k| self.format(k)).collect::<Result<_>>()?;
                Command::Convert { tensor: self.new_name(0)?, format: parts.join(", ") }
            }
            _ => {
                self.count(1, 3)?;
                let pipelined = self.args.len() > 1 && self.args.last().is_some_and(|last| last.text == "pipelined");
                let capacity = match self.args.len() - usize::from(pipelined) {
                    1 => None,
                    2 => Some(self.number(1)?),
                    _ => return Err(self.wrong("the word after the capacity can only be `pipelined`")),
                };
                // TACO's policies are capitalised; registered policies keep their spelling.
                let policy = match self.new_name(0)?.as_str() {
                    taco @ ("Coord" | "Hash" | "Bucket") => taco.to_lowercase(),
                    policy => policy.to_string(),
                };
                Command::InsertWorkspace { policy, capacity, pipelined }
            }
        })
    }

    fn wrong(&self, message: &str) -> Diagnostic {
        let d = Diagnostic::new(Code::E1201, message).label(self.span, "in this command");
        d.help(format!("write `{}`", self.form))
    }

    fn count(&self, least: usize, most: usize) -> Result<()> {
        let found = self.args.len();
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let takes = match (least, most) {
            (a, b) if a == b => format!("{a}"),
            (a, 100) => format!("at least {a}"),
            (a, b) => format!("{a} to {b}"),
        };
        Err(self.wrong(&format!("`{}` takes {takes} arguments, not {found}", self.name)))
    }

    /// The name of a loop, with an optional ordinal: `k#2`.
    fn index(&self, k: usize) -> Result<String> {
        let arg = &self.args[k];
        let (name, number) = arg.text.split_once('#').unwrap_or((arg.text, "1"));
        if is_name(name) && number.parse::<u32>().is_ok_and(|n| n > 0) {
            return Ok(arg.text.to_string());
        }
        Err(self.not_a_name(arg))
    }

    fn new_name(&self, k: usize) -> Result<String> {
        let arg = &self.args[k];
        if is_name(arg.text) { Ok(arg.text.to_string()) } else { Err(self.not_a_name(arg)) }
    }

    fn not_a_name(&self, arg: &CommandArgument) -> Diagnostic {
        let shown = if arg.text.is_empty() { "nothing".to_string() } else { format!("`{}`", arg.text) };
        Diagnostic::new(Code::E1201, format!("expected a name, found {shown}"))
            .label(arg.span, "not a name")
            .help(format!("write `{}`", self.form))
    }

    /// One name, or a list in brackets or braces.
    fn names(&self, k: usize) -> Result<Vec<String>> {
        let arg = &self.args[k];
        let inner = [('[', ']'), ('{', '}'), ('(', ')')]
            .iter()
            .find_map(|(open, close)| arg.text.strip_prefix(*open)?.strip_suffix(*close));
        let Some(inner) = inner else { return Ok(vec![self.index(k)?]) };
        let names: Vec<String> = inner.split(',').map(|name| name.trim().to_string()).collect();
        match names.iter().find(|name| !is_name(name.split('#').next().unwrap_or(""))) {
            None => Ok(names),
            Some(wrong) => Err(Diagnostic::new(Code::E1201, format!("`{wrong}` is not a name"))
                .label(arg.span, "a list of names")
                .help("write `[i, j]`")),
        }
    }

    /// The text of a format, which is parsed once its rank is known.
    fn format(&self, k: usize) -> Result<String> {
        let arg = &self.args[k];
        if arg.text.is_empty() || arg.text.contains(['"', '\'']) {
            return Err(Diagnostic::new(Code::E1201, format!("expected a format, found `{}`", arg.text))
                .label(arg.span, "not a format")
                .help("write a format as in `csr` or \"dense, sparse\", all of it in quotes or none"));
        }
        Ok(arg.text.to_string())
    }

    fn number(&self, k: usize) -> Result<i64> {
        let arg = &self.args[k];
        arg.text.parse().map_err(|_| {
            Diagnostic::new(Code::E1207, format!("expected a number, found `{}`", arg.text))
                .label(arg.span, "not an integer")
                .help(format!("write `{}`", self.form))
        })
    }

    /// `bound(i, 100, exactly)`, or TACO's `bound(i, i0, 100, MaxExact)`.
    fn bound(&self) -> Result<Command> {
        self.count(2, 4)?;
        let renamed = if self.args.len() == 4 { Some(self.new_name(1)?) } else { None };
        let at = 1 + usize::from(renamed.is_some());
        let kind = match self.args.get(at + 1) {
            None => BoundKind::Exactly,
            Some(arg) => match arg.text {
                "exactly" | "MaxExact" => BoundKind::Exactly,
                "at_most" | "MaxConstraint" => BoundKind::AtMost,
                other => {
                    let d = Diagnostic::new(Code::E1201, format!("`{other}` is not a kind of bound"));
                    let d = d.label(arg.span, "unknown kind");
                    return Err(d.help("write `exactly` (or MaxExact), or `at_most` (or MaxConstraint)"));
                }
            },
        };
        Ok(Command::Bound { index: self.index(0)?, renamed, length: self.number(at)?, kind })
    }

    /// `parallelize(i)`, or TACO's `parallelize(i, CPUThread, NoRaces)`.
    fn parallelize(&self) -> Result<Command> {
        self.count(1, 3)?;
        let index = self.index(0)?;
        if let Some(unit) = self.args.get(1) {
            match unit.text {
                "CPUThread" | "threads" => {}
                "CPUVector" => return Ok(Command::Vectorize { index, lanes: None }),
                other => {
                    let d = Diagnostic::new(Code::E1201, format!("`{other}` is not a unit of parallel execution"));
                    let d = d.label(unit.span, "unknown unit");
                    return Err(d.help("write `CPUThread` or `CPUVector`; there is no code for GPUs"));
                }
            }
        }
        let races = match self.args.get(2) {
            None => Races::Reductions,
            Some(arg) => match arg.text {
                "NoRaces" => Races::NoRaces,
                "Temporary" | "ParallelReduction" | "Atomics" => Races::Reductions,
                other => {
                    let d = Diagnostic::new(Code::E1201, format!("`{other}` is not a race strategy"));
                    let d = d.label(arg.span, "unknown strategy");
                    let d = if other == "IgnoreRaces" { d.note("a race is never ignored") } else { d };
                    return Err(d.help("write `NoRaces`, `Temporary`, `ParallelReduction` or `Atomics`"));
                }
            },
        };
        Ok(Command::Parallelize { index, races })
    }
}
