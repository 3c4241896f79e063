//! Program texts: reads them from an argument, a file or standard input, and tells notation from
//! programs.
//!
//! Texts that are too long, not UTF-8, or have zero bytes are diagnostics; the parser sees none of
//! them.

use crate::operands;
use crate::request::{ProgramText, RunRequest};
use crate::shell::CommandError;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use tamis::Notation;
use tamis_ir::algebra::Op;
use tamis_ir::text::lexer::MAX_TEXT;
use tamis_ir::{Code, Diagnostic, Source};

/// True if a text is index notation. Python files hold loop programs.
pub(crate) fn is_notation(program: &ProgramText, source: &Source) -> bool {
    let python = matches!(program, ProgramText::File(path) if path.extension().is_some_and(|kind| kind == "py"));
    !python && Notation::looks_like(&source.text)
}

/// Parses index notation. NumPy's spelling takes the inputs in order; an ellipsis in it stands for
/// the dimensions that they have.
pub(crate) fn notation(source: &Arc<Source>, request: &RunRequest, operators: &[Op]) -> Result<Notation, CommandError> {
    let names: Vec<&str> = request.inputs.iter().map(|(name, _)| name.as_str()).collect();
    if Notation::has_ellipsis(source.text.trim_end()) {
        let expanded = Notation::expand_einsum(source.text.trim_end(), &operands::shapes(request)?, "out")?;
        return Ok(Notation::parse_given(&Source::new("notation", expanded.text()), operators, &names)?);
    }
    Ok(match Notation::is_einsum(&source.text) {
        true => Notation::einsum(source.text.trim_end(), &names, "out")?,
        false => Notation::parse_given(source, operators, &names)?,
    })
}

/// The text of a program.
pub(crate) fn source(program: &ProgramText) -> Result<Arc<Source>, CommandError> {
    match program {
        ProgramText::Text(text) => Ok(Source::new("program", text.clone())),
        ProgramText::StandardInput => limited("program", "standard input".into(), &mut std::io::stdin()),
        ProgramText::File(path) => file("program", path, "check the path, or give the program itself as the argument"),
    }
}

/// The text of a file; `what` names its kind in diagnostics.
pub(crate) fn file(what: &str, path: &Path, help: &str) -> Result<Arc<Source>, CommandError> {
    let name = path.display().to_string();
    let mut file = std::fs::File::open(path).map_err(|e| {
        Diagnostic::new(Code::E0801, format!("the {what} cannot be read: {e}")).in_file(name.clone()).help(help)
    })?;
    limited(what, name, &mut file)
}

/// Reads one byte more than a text may have, so that the parser sees that it is too long.
fn limited(what: &str, name: String, reader: &mut dyn Read) -> Result<Arc<Source>, CommandError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes);
    let unreadable = |message: String, help: &str| {
        CommandError::from(Diagnostic::new(Code::E0801, message).in_file(name.clone()).help(help))
    };
    read.map_err(|e| unreadable(format!("the {what} cannot be read: {e}"), "check the file and its permissions"))?;
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(unreadable(
            format!("the {what} is not text: it has zero bytes"),
            if what == "program" { "give a file with a loop program" } else { "give a file of text" },
        )),
        Ok(text) => Ok(Source::new(name, text)),
        Err(_) => Err(unreadable(format!("the {what} is not UTF-8 text"), "save it as UTF-8")),
    }
}
