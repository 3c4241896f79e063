//! Parse errors of files: a byte offset, which becomes a line number only when it is reported.

use tamis_ir::{Code, Diagnostic};

/// A parse error at a byte of the text. Computing the line means scanning the file again, which
/// only [`Fault::diagnose`] does.
#[derive(Debug)]
pub(super) struct Fault(Box<FaultParts>);

#[derive(Debug)]
struct FaultParts {
    code: Code,
    offset: usize,
    message: String,
    notes: Vec<String>,
    help: Vec<String>,
}

pub(super) type Parsed<T> = std::result::Result<T, Fault>;

impl Fault {
    #[cold]
    pub(super) fn new(code: Code, offset: usize, message: impl Into<String>) -> Fault {
        Fault(Box::new(FaultParts { code, offset, message: message.into(), notes: Vec::new(), help: Vec::new() }))
    }

    /// The fault for a refused allocation.
    #[cold]
    pub(super) fn refused(refusal: &Diagnostic) -> Fault {
        Fault::new(refusal.code, 0, refusal.message.clone())
            .help("read the file in chunks, or on a machine with more memory")
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Fault {
        self.0.notes.push(note.into());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Fault {
        self.0.help.push(help.into());
        self
    }

    pub(super) fn code(&self) -> Code {
        self.0.code
    }

    pub(super) fn offset(&self) -> usize {
        self.0.offset
    }

    /// The same fault, for a text in which the parsed chunk starts at `start`.
    pub(super) fn shifted(mut self, start: usize) -> Fault {
        self.0.offset += start;
        self
    }

    /// The diagnostic for a file without lines.
    pub(super) fn in_file(self, name: &str) -> Diagnostic {
        let FaultParts { code, message, notes, help, .. } = *self.0;
        let mut diagnostic = Diagnostic::new(code, message).in_file(name);
        diagnostic.notes.extend(notes);
        diagnostic.help.extend(help);
        diagnostic
    }

    /// The diagnostic, with the line of `text` at the offset.
    pub(super) fn diagnose(self, name: &str, text: &[u8]) -> Diagnostic {
        let FaultParts { code, offset, message, notes, help } = *self.0;
        let (line, excerpt) = line_at(text, offset);
        let mut diagnostic = Diagnostic::new(code, message).at_line(name, line, &excerpt);
        diagnostic.notes.extend(notes);
        diagnostic.help.extend(help);
        diagnostic
    }
}

/// The line (from 1) of a byte, and its text, shortened. A byte past the end belongs to the last
/// line.
pub(super) fn line_at(text: &[u8], offset: usize) -> (u64, String) {
    let mut offset = offset.min(text.len());
    if offset == text.len() && offset > 0 && text[offset - 1] == b'\n' {
        offset -= 1;
    }
    let start = text[..offset].iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    let line = 1 + count_newlines(&text[..start]) as u64;
    let rest = &text[start..];
    let end = rest.iter().take(400).position(|b| *b == b'\n').unwrap_or(rest.len().min(400));
    (line, printable(&rest[..end]))
}

/// Bytes of a file as text without control characters.
pub(super) fn printable(bytes: &[u8]) -> String {
    let shown = |c: char| if c.is_control() && c != '\t' && c != '\r' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// The number of line ends.
pub(super) fn count_newlines(text: &[u8]) -> usize {
    // Sums of at most 192 ones fit a byte, so this becomes byte-wise vector arithmetic.
    text.chunks(192).map(|part| part.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>() as usize).sum()
}

/// The word at the start of `text`, for a message: up to a blank or line end, shortened, printable.
pub(super) fn word(text: &[u8]) -> String {
    let end = text.iter().take(40).position(|b| b.is_ascii_whitespace()).unwrap_or(text.len().min(40));
    let shown = printable(&text[..end]);
    if end == 40 { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found() {
        let text = b"one\ntwo\n\nfour";
        for (offset, line, excerpt) in
            [(0, 1, "one"), (3, 1, "one"), (4, 2, "two"), (8, 3, ""), (9, 4, "four"), (13, 4, "four"), (99, 4, "four")]
        {
            assert_eq!(line_at(text, offset), (line, excerpt.to_string()), "{offset}");
        }
        assert_eq!(line_at(b"", 0), (1, String::new()));
        assert_eq!(line_at(b"a\nb\n", 4), (2, "b".to_string()));
    }

    #[test]
    fn newlines_are_counted() {
        let text: Vec<u8> = (0..10_000u32).map(|k| if k % 7 == 0 { b'\n' } else { b'x' }).collect();
        assert_eq!(count_newlines(&text), text.iter().filter(|b| **b == b'\n').count());
    }
}
