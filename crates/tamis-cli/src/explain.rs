//! The commands without tensors: `explain` of codes, `gallery`, `completions`.

use crate::args::{Cli, ExplainArgs};
use crate::input;
use crate::request::ProgramText;
use crate::shell::{CommandError, CommandResult, Shell};
use crate::stages;
use clap::CommandFactory;
use serde_json::{Value as Json, json};
use std::io::Write;
use tamis_ir::diag::{Code, Diagnostic, Source, Span, did_you_mean};
use tamis_tensor::gallery::GENERATORS;

/// `tamis explain`: a code's meaning, all codes, or a program's compilation.
pub(crate) fn explain(args: &ExplainArgs, shell: &mut Shell) -> CommandResult {
    input::formats(&args.formats)?;
    input::dtypes(&args.dtypes)?;
    let Some(argument) = args.subject.as_deref() else {
        return list_codes(args.json, shell);
    };
    // An argument that is not UTF-8 can only be a path.
    let subject = argument.to_str().unwrap_or_default().trim();
    match (subject.parse::<Code>(), looks_like_code(subject)) {
        (Ok(_), _) if has_program_options(args) => Err(options_of_code(subject)),
        (Ok(code), _) => explain_code(code, args.json, shell),
        (Err(_), true) => Err(unknown_code(subject)),
        (Err(_), false) => stages::explain(&ProgramText::parse(argument), args, shell),
    }
}

/// True if any option applies to programs only.
fn has_program_options(args: &ExplainArgs) -> bool {
    let ExplainArgs { subject: _, json: _, inputs, order, keep, operators, formats, dtypes, emit, schedule, .. } = args;
    let texts =
        order.len() + formats.len() + dtypes.len() + schedule.len() + inputs.len() + operators.len() + emit.len();
    let passes = !args.print_after.is_empty() || args.stop_after.is_some();
    texts > 0 || *keep || args.check || args.analyze || passes
}

fn options_of_code(code: &str) -> CommandError {
    let d = Diagnostic::new(Code::E0905, format!("`{code}` is a code, of which there is nothing else to say"));
    CommandError::usage(vec![
        d.help(format!("write `tamis explain {code}` alone")).help("codes are explained one at a time"),
    ])
}

/// True if a text is a letter followed by digits, which no program is.
fn looks_like_code(text: &str) -> bool {
    let mut characters = text.chars();
    let letter = characters.next().is_some_and(|c| c.is_ascii_alphanumeric());
    letter && text.len() > 1 && characters.all(|c| c.is_ascii_digit())
}

fn as_json(code: Code) -> Json {
    json!({ "code": code.name(), "title": code.title(), "explanation": code.explanation() })
}

fn explain_code(code: Code, json: bool, shell: &mut Shell) -> CommandResult {
    if json {
        return shell.print_json(&as_json(code));
    }
    let heading = if shell.colour {
        format!("\x1b[1m{code}: {}\x1b[0m", code.title())
    } else {
        format!("{code}: {}", code.title())
    };
    Ok(writeln!(shell.out, "{heading}\n\n{}", code.explanation())?)
}

fn list_codes(json: bool, shell: &mut Shell) -> CommandResult {
    if json {
        return shell.print_json(&Code::ALL.iter().map(|code| as_json(*code)).collect());
    }
    for code in Code::ALL {
        writeln!(shell.out, "{code}  {}", code.title())?;
    }
    Ok(())
}

fn unknown_code(text: &str) -> CommandError {
    let mut d = Diagnostic::new(Code::E0905, format!("there is no code `{text}`"))
        .label(Span::new(0..text.len()), "unknown")
        .with_source(&Source::new("argument", text));
    let meant = Code::ALL.iter().find(|code| code.name().trim_start_matches('E') == text).map(|code| code.name());
    if let Some(meant) = meant.or_else(|| did_you_mean(text, Code::ALL.iter().map(|code| code.name()))) {
        d = d.help(format!("did you mean `{meant}`?"));
    }
    CommandError::usage(vec![d.help("`tamis explain` lists all codes")])
}

/// `tamis gallery`: the table of generators.
pub(crate) fn gallery(json: bool, shell: &mut Shell) -> CommandResult {
    if json {
        let rows = GENERATORS
            .iter()
            .map(|g| json!({ "name": g.name, "signature": g.signature, "description": g.description }));
        return shell.print_json(&rows.collect());
    }
    let width = GENERATORS.iter().map(|g| g.signature.chars().count()).max().unwrap_or(0);
    for g in GENERATORS {
        writeln!(shell.out, "{:width$}  {}", g.signature, g.description)?;
    }
    writeln!(shell.out, "\nFor example: tamis info \"laplacian(100)\", tamis convert \"rmat(10, 8)\" graph.mtx")?;
    Ok(())
}

/// `tamis completions`.
pub(crate) fn completions(kind: clap_complete::Shell, shell: &mut Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(kind, &mut Cli::command(), "tamis", &mut script);
    Ok(shell.out.write_all(&script)?)
}
