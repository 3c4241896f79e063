//! Rendering of diagnostics as text for people.

use super::{Diagnostic, Severity};
use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind};

pub(super) fn render(d: &Diagnostic, colour: bool) -> String {
    match &d.source {
        Some(source) if !d.labels.is_empty() => in_text(d, &source.name, &source.text, colour),
        _ => in_file(d, colour),
    }
}

fn in_text(d: &Diagnostic, name: &str, text: &str, colour: bool) -> String {
    let (kind, shade) = match d.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let clamp = |range: std::ops::Range<usize>| {
        let start = range.start.min(text.len());
        start..range.end.clamp(start, text.len())
    };
    let config = Config::default().with_color(colour).with_index_type(IndexType::Byte).with_char_set(if colour {
        CharSet::Unicode
    } else {
        CharSet::Ascii
    });
    let first = clamp(d.labels[0].span.range());
    let mut report = Report::build(kind, (name, first)).with_config(config).with_code(d.code).with_message(&d.message);
    for (k, label) in d.labels.iter().enumerate() {
        let mut shown = Label::new((name, clamp(label.span.range()))).with_message(&label.message);
        shown = shown.with_color(if k == 0 { shade } else { Color::Blue }).with_order(k as i32);
        report = report.with_label(shown);
    }
    for note in &d.notes {
        report = report.with_note(note);
    }
    for help in &d.help {
        report = report.with_help(help);
    }
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = report.finish().write((name, ariadne::Source::from(text)), &mut out);
    tidy(&relocated(d, &String::from_utf8_lossy(&out)))
}

/// Moves the headers of related labels: each label of another line gets a header with its own line
/// and column.
fn relocated(d: &Diagnostic, text: &str) -> String {
    let Some(source) = &d.source else { return text.to_string() };
    let place = |label: &super::Label| source.line_column(label.span.start);
    let written = |(line, column): (usize, usize)| format!("{}:{line}:{column} ", source.name);
    let first = written(place(&d.labels[0]));
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    for (k, line) in lines.iter().enumerate() {
        let related = k > 1 && line.contains(&first) && (line.contains("|-[") || line.contains("├─["));
        // The number of the next quoted line identifies the label.
        let quoted = lines[k + 1..].iter().take(2).find_map(|next| number(next));
        let label = d.labels.iter().skip(1).find(|label| related && Some(place(label).0) == quoted);
        shown += &label.map_or_else(|| line.to_string(), |label| line.replacen(&first, &written(place(label)), 1));
        shown.push('\n');
    }
    shown
}

/// The line number at the start of a quoted line, which may be coloured.
fn number(line: &str) -> Option<usize> {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        plain += &rest[..at];
        rest = rest[at..].split_once('m').map_or("", |(_, after)| after);
    }
    plain += rest;
    let digits: String = plain.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Removes trailing blanks.
fn tidy(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

fn in_file(d: &Diagnostic, colour: bool) -> String {
    let paint = |code: &str, text: &str| {
        if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    };
    let (word, shade) = match d.severity {
        Severity::Error => ("Error", "31"),
        Severity::Warning => ("Warning", "33"),
    };
    let mut out = format!("{} {}\n", paint(shade, &format!("[{}] {word}:", d.code)), d.message);
    if let Some(place) = &d.place {
        let line = place.line.map(|l| format!(":{l}")).unwrap_or_default();
        out += &format!("   in {}{line}\n", place.file);
        if let (Some(line), Some(excerpt)) = (place.line, &place.excerpt) {
            out += &format!(" {} {excerpt}\n", paint("2", &format!("{line:>5} |")));
        }
    }
    for note in &d.notes {
        out += &format!("   {} {note}\n", paint("36", "Note:"));
    }
    for help in &d.help {
        out += &format!("   {} {help}\n", paint("32", "Help:"));
    }
    out
}
