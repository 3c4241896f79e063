//! Facts for people.

use super::facts::Facts;
use super::measure::{LevelFacts, MatrixFacts};

/// The widest label.
const LABEL: usize = 9;

/// All facts, a line each.
pub(super) fn describe(facts: &Facts, colour: bool) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() };
    let faint = |text: &str| if colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() };
    let mut out = format!("{}\n", bold(&facts.name));
    let mut line = |label: &str, text: String| out += &format!("  {} {text}\n", faint(&format!("{label:LABEL$}")));
    line("kind", facts.origin.clone());
    if let Some(comment) = facts.comments.iter().find(|comment| comment.contains(char::is_alphanumeric)) {
        line("comment", comment.chars().filter(|c| !c.is_control()).take(100).collect());
    }
    match facts.shape.as_slice() {
        [] => line("shape", "scalar".to_string()),
        shape => line("shape", shape.iter().map(|n| group(*n)).collect::<Vec<_>>().join(" x ")),
    }
    line("type", facts.dtype.clone());
    line("format", facts.format.clone());
    if let Some(value) = facts.value {
        line("value", value.to_string());
    }
    line("fill", facts.fill.to_string());
    line("stored", stored(facts));
    if let Some(density) = facts.density {
        line("density", percent(density));
    }
    line("memory", bytes(facts.bytes));
    if let Some(matrix) = facts.matrix.as_ref().filter(|_| facts.stored > 0) {
        line("structure", structure(matrix));
        line("band", format!("{} below the diagonal, {} above", group(matrix.lower), group(matrix.upper)));
        line(
            "diagonal",
            format!(
                "{} of {} stored",
                group(matrix.on_diagonal),
                group(facts.shape.iter().copied().min().unwrap_or(0))
            ),
        );
        let mean = format!("{:.2}", matrix.mean_in_row);
        let mean = mean.trim_end_matches('0').trim_end_matches('.');
        let empty = group(matrix.empty_rows);
        line("rows", format!("on average {mean}, at most {}, {empty} empty", group(matrix.most_in_row)));
        line("columns", format!("{} empty", group(matrix.empty_columns)));
    }
    if !facts.levels.is_empty() {
        out.push('\n');
        table(&facts.levels).iter().enumerate().for_each(|(k, row)| {
            out += &format!("  {}\n", if k == 0 { faint(row) } else { row.clone() });
        });
    }
    out
}

fn stored(facts: &Facts) -> String {
    let count = group(facts.stored);
    let zeros = group(facts.stored_fills);
    let word = if facts.fill.is_truthy() || facts.fill.is_nan() { "fill" } else { "zero" };
    let plural = if facts.stored_fills == 1 { "" } else { "s" };
    match (facts.stores_every_cell, facts.stored_fills) {
        (true, _) => format!("{count}, every cell; {} not {word}", group(facts.stored - facts.stored_fills)),
        (false, 0) => count,
        (false, _) => format!("{count}, of these {zeros} explicit {word}{plural}"),
    }
}

fn structure(matrix: &MatrixFacts) -> String {
    let mut words: Vec<&str> = matrix.name.into_iter().collect();
    let mirror = &matrix.mirror;
    words.extend(match () {
        () if mirror.symmetric => Some("symmetric"),
        () if mirror.hermitian => Some("hermitian"),
        () if mirror.skew => Some("skew-symmetric"),
        () if mirror.structural => Some("structurally symmetric"),
        () => None,
    });
    if words.is_empty() { "general".to_string() } else { words.join(", ") }
}

/// A row for each level, below a row of headings; numbers to the right.
fn table(levels: &[LevelFacts]) -> Vec<String> {
    let heading = ["level", "kind", "dim", "size", "fibers", "stored", "min", "mean", "max", "empty", "bytes"];
    let mut rows: Vec<Vec<String>> = vec![heading.iter().map(|h| h.to_string()).collect()];
    for (k, level) in levels.iter().enumerate() {
        let mean =
            if level.fibers > 0 { format!("{:.1}", level.stored as f64 / level.fibers as f64) } else { "-".into() };
        let spread = |pick: fn((u64, u64, u64)) -> u64| level.spread.map_or("-".to_string(), |s| group(pick(s)));
        rows.push(vec![
            k.to_string(),
            level.kind.to_string(),
            level.dimension.to_string(),
            group(level.size),
            group(level.fibers),
            group(level.stored),
            spread(|s| s.0),
            mean,
            spread(|s| s.1),
            spread(|s| s.2),
            bytes(level.bytes),
        ]);
    }
    let widths: Vec<usize> =
        (0..heading.len()).map(|c| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0)).collect();
    let show = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(c, (cell, w))| if c == 1 { format!("{cell:w$}") } else { format!("{cell:>w$}") });
        padded.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(show).collect()
}

/// Digits in groups of three, if there are more than four.
pub(super) fn group(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let first = (digits.len() - 1) % 3 + 1;
    let mut text = digits[..first].to_string();
    for k in (first..digits.len()).step_by(3) {
        text += &format!(",{}", &digits[k..k + 3]);
    }
    text
}

/// Bytes in units of 1000.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
    let (mut scaled, mut unit) = (count as f64, 0);
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && scaled < 99.95);
    format!("{scaled:.digits$} {}", UNITS[unit])
}

/// A share with three significant digits, or as many as it takes to tell it from 100 %.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        return "0 %".to_string();
    }
    let digits = 2 - percent.log10().floor() as i32;
    if digits > 7 {
        return format!("{percent:.2e} %");
    }
    let mut digits = digits.max(0) as usize;
    let show = |digits: usize| {
        let text = format!("{percent:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    };
    while share < 1.0 && digits < 12 && show(digits) == "100" {
        digits += 1;
    }
    format!("{} %", show(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let groups = [(0, "0"), (9999, "9999"), (10_000, "10,000"), (4_996_000, "4,996,000"), (123_456, "123,456")];
        groups.iter().for_each(|(n, text)| assert_eq!(group(*n), *text));
        let sizes = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 KB"),
            (999_999, "1.0 MB"),
            (123_456, "123 KB"),
            (u64::MAX, "18.4 EB"),
        ];
        sizes.iter().for_each(|(n, text)| assert_eq!(bytes(*n), *text));
        let shares = [
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.25, "25 %"),
            (1.0 / 3.0, "33.3 %"),
            (0.9999, "99.99 %"),
            (4.996e-6, "0.0005 %"),
            (1e-12, "1.00e-10 %"),
            (0.0123, "1.23 %"),
        ];
        shares.iter().for_each(|(share, text)| assert_eq!(percent(*share), *text));
    }
}
