//! The shell: standard output, colour, diagnostics on standard error, exit status.

use clap::ColorChoice;
use serde_json::{Value as Json, json};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use tamis_ir::diag::{Code, Diagnostic, Diagnostics, Severity};

/// Why a command failed.
#[derive(Debug)]
pub enum CommandError {
    /// The program or the data is wrong: status 1.
    Wrong(Vec<Diagnostic>),
    /// The command line is wrong: status 2.
    Usage(Vec<Diagnostic>),
    /// The reader closed the pipe: status 0.
    ClosedPipe,
}

/// The result of a command.
pub type CommandResult = std::result::Result<(), CommandError>;

impl CommandError {
    /// An error of the command line.
    pub fn usage(diagnostics: Vec<Diagnostic>) -> CommandError {
        CommandError::Usage(diagnostics)
    }

    /// The diagnostics.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            CommandError::Wrong(diagnostics) | CommandError::Usage(diagnostics) => diagnostics,
            CommandError::ClosedPipe => &[],
        }
    }
}

/// Unknown extensions and environment variables are errors of the command line; all others are
/// errors of the program or the data.
impl From<Diagnostic> for CommandError {
    fn from(d: Diagnostic) -> CommandError {
        match d.code {
            Code::E0802 | Code::E0906 => CommandError::Usage(vec![d]),
            _ => CommandError::Wrong(vec![d]),
        }
    }
}

impl From<Diagnostics> for CommandError {
    fn from(all: Diagnostics) -> CommandError {
        match &all.0[..] {
            [only] => only.clone().into(),
            _ => CommandError::Wrong(all.0),
        }
    }
}

/// For errors of standard output; files report their own.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> CommandError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandError::ClosedPipe;
        }
        let d = Diagnostic::new(Code::E0811, format!("standard output cannot be written: {error}"));
        d.help("redirect the output to a file on a device with free space").into()
    }
}

/// An error of clap as a diagnostic: its first paragraph is the message, the others are help.
pub(crate) fn clap_diagnostic(error: &clap::Error) -> Diagnostic {
    let text = error.render().to_string();
    let one_line = |paragraph: &str| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.trim().split("\n\n").map(one_line).filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    paragraphs.fold(Diagnostic::new(Code::E0905, message), |d, help| d.help(help.trim_start_matches("tip: ")))
}

/// Standard output, and what it can show.
pub struct Shell {
    /// Standard output.
    pub out: Box<dyn Write>,
    /// True if standard output may have ANSI colours.
    pub colour: bool,
    /// True if the locale can show characters beyond ASCII.
    pub unicode: bool,
    colour_errors: bool,
    json: bool,
}

impl Shell {
    /// The process' own output.
    pub fn new(choice: ColorChoice, json: bool) -> Shell {
        let out = io::stdout();
        Shell {
            colour: colour(choice, out.is_terminal()),
            colour_errors: colour(choice, io::stderr().is_terminal()),
            unicode: locale_is_utf8(|name| std::env::var(name).ok()),
            out: Box::new(io::BufWriter::new(out)),
            json,
        }
    }

    /// Prints a JSON document.
    pub fn print_json(&mut self, document: &Json) -> CommandResult {
        serde_json::to_writer_pretty(&mut self.out, document).map_err(io::Error::from)?;
        Ok(writeln!(self.out)?)
    }

    /// Shows warnings that do not stop a command.
    pub fn warn(&self, diagnostics: &[Diagnostic]) {
        for d in diagnostics {
            // Standard error may be closed.
            let _ = write!(io::stderr(), "{}", d.render(self.colour_errors));
        }
    }

    /// Shows diagnostics, and gives the exit status.
    pub fn finish(mut self, outcome: CommandResult) -> ExitCode {
        let outcome = outcome.and_then(|()| Ok(self.out.flush()?));
        let (diagnostics, status) = match outcome {
            Ok(()) | Err(CommandError::ClosedPipe) => return ExitCode::SUCCESS,
            Err(CommandError::Wrong(diagnostics)) => (diagnostics, 1),
            Err(CommandError::Usage(diagnostics)) => (diagnostics, 2),
        };
        if self.json {
            // A closed pipe does not change the status.
            let _ = self.print_json(&errors_as_json(&diagnostics));
            let _ = self.out.flush();
        } else {
            self.warn(&diagnostics);
        }
        ExitCode::from(status)
    }
}

fn colour(choice: ColorChoice, terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// True if the locale is UTF-8. The first of the variables that is set decides, as in POSIX.
fn locale_is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
    set.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// `{"error": {...}}` with the first diagnostic, and `"others"` if there are more.
fn errors_as_json(diagnostics: &[Diagnostic]) -> Json {
    let mut all = diagnostics.iter().map(diagnostic_as_json);
    let mut document = json!({ "error": all.next() });
    let others: Vec<Json> = all.collect();
    if !others.is_empty() {
        document["others"] = Json::Array(others);
    }
    document
}

/// All fields of a diagnostic; places in text have lines and columns from 1, ends exclusive.
fn diagnostic_as_json(d: &Diagnostic) -> Json {
    let labels: Vec<Json> = d
        .labels
        .iter()
        .map(|label| {
            let mut shown = json!({ "message": label.message, "start": label.span.start, "end": label.span.end });
            if let Some(source) = &d.source {
                let ((line, column), (end_line, end_column)) =
                    (source.line_column(label.span.start), source.line_column(label.span.end));
                shown["line"] = line.into();
                shown["column"] = column.into();
                shown["end_line"] = end_line.into();
                shown["end_column"] = end_column.into();
            }
            shown
        })
        .collect();
    let place = d.place.as_ref();
    json!({
        "code": d.code.name(),
        "severity": if d.severity == Severity::Error { "error" } else { "warning" },
        "title": d.code.title(),
        "message": d.message,
        "source": d.source.as_ref().map(|s| json!({ "name": s.name, "text": s.text })),
        "labels": labels,
        "file": place.map(|p| p.file.clone()),
        "line": place.and_then(|p| p.line),
        "excerpt": place.and_then(|p| p.excerpt.clone()),
        "notes": d.notes,
        "help": d.help,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales() {
        let utf8 = |all: &str, ctype: &str, lang: &str| {
            locale_is_utf8(|name| {
                Some(match name {
                    "LC_ALL" => all.to_string(),
                    "LC_CTYPE" => ctype.to_string(),
                    _ => lang.to_string(),
                })
            })
        };
        assert!(utf8("", "", "en_US.UTF-8"));
        assert!(utf8("C.utf8", "", "C"));
        assert!(!utf8("C", "en_US.UTF-8", "en_US.UTF-8"));
        assert!(!utf8("", "", ""));
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let failure = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, CommandError::ClosedPipe));
        assert!(
            matches!(CommandError::from(io::Error::other("full")), CommandError::Wrong(d) if d[0].code == Code::E0811)
        );
    }
}
