//! Facts for people.

use super::facts::TensorReport;
use tamis_tensor::{LevelStatistics, MatrixStatistics, Statistics};

/// The widest label.
const LABEL: usize = 9;

/// All facts, a line each.
pub(super) fn describe(facts: &TensorReport, colour: bool) -> String {
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() };
    let faint = |text: &str| if colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() };
    let mut out = format!("{}\n", bold(&facts.name));
    let mut line = |label: &str, text: String| out += &format!("  {} {text}\n", faint(&format!("{label:LABEL$}")));
    line("kind", facts.origin.clone());
    if let Some(comment) = facts.comments().iter().find(|comment| comment.contains(char::is_alphanumeric)) {
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
    let statistics = &facts.statistics;
    line("stored", stored(facts));
    if !facts.shape.contains(&0) {
        line("density", percent(statistics.density));
    }
    line("memory", bytes(statistics.nbytes as u64));
    if let Some(matrix) = statistics.matrix.as_ref().filter(|_| statistics.stored > 0) {
        line("structure", structure(matrix));
        // The next line counts stored entries, which may include explicit fills.
        let counted = match statistics.explicit_fills {
            0 => String::new(),
            _ if facts.stores_every_cell => String::new(),
            _ => format!(" (stored entries, explicit {}s included)", fill_word(facts)),
        };
        let (lower, upper) = (group(matrix.lower_bandwidth), group(matrix.upper_bandwidth));
        line("band", format!("{lower} below the diagonal, {upper} above{counted}"));
        let length = facts.shape.iter().copied().min().unwrap_or(0);
        line("diagonal", format!("{} of {} not zero", group(matrix.diagonal_nonzeros as u64), group(length)));
        line(
            "rows",
            fullness(matrix.mean_per_row, matrix.least_per_row, matrix.most_per_row, matrix.empty_rows) + &counted,
        );
        line(
            "columns",
            fullness(matrix.mean_per_column, matrix.least_per_column, matrix.most_per_column, matrix.empty_columns)
                + &counted,
        );
    }
    let remarks = facts.remarks();
    if !remarks.is_empty() {
        line("found", wrapped(&remarks.join("; "), &" ".repeat(LABEL + 3)));
    }
    if !statistics.levels.is_empty() {
        out.push('\n');
        table(&statistics.levels).iter().enumerate().for_each(|(k, row)| {
            out += &format!("  {}\n", if k == 0 { faint(row) } else { row.clone() });
        });
    }
    out
}

/// Text in lines that are not too long; those after the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 100;
    let (mut out, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        let size = word.chars().count();
        if length > 0 && length + 1 + size > WIDTH {
            out += &format!("\n{indent}");
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += size;
    }
    out
}

fn stored(facts: &TensorReport) -> String {
    let Statistics { stored, explicit_zeros: zeros, explicit_fills: fills, .. } = facts.statistics;
    let count = group(stored as u64);
    let word = fill_word(facts);
    let same = if word == "zero" { zeros } else { fills };
    if facts.stores_every_cell {
        return format!("{count}, every cell; {} not {word}", group((stored - same) as u64));
    }
    match same {
        0 => count,
        1 => format!("{count}, of these 1 explicit {word}"),
        _ => format!("{count}, of these {} explicit {word}s", group(same as u64)),
    }
}

/// The name of a redundant explicit entry.
fn fill_word(facts: &TensorReport) -> &'static str {
    let Statistics { explicit_zeros: zeros, explicit_fills: fills, .. } = facts.statistics;
    if zeros == fills && !facts.fill.is_truthy() { "zero" } else { "fill" }
}

fn structure(matrix: &MatrixStatistics) -> String {
    let words: Vec<&str> = matrix.shape_word().into_iter().chain(matrix.symmetry_word()).collect();
    if words.is_empty() { "general".to_string() } else { words.join(", ") }
}

fn fullness(mean: f64, least: usize, most: usize, empty: u64) -> String {
    if least == most && empty == 0 {
        return format!("{} each, none empty", group(most as u64));
    }
    let range = match least {
        0 => format!("at most {}", group(most as u64)),
        _ => format!("{} to {}", group(least as u64), group(most as u64)),
    };
    format!("{} on average, {range}, {} empty", average(mean), group(empty))
}

/// A mean with two decimals, if it needs any.
fn average(mean: f64) -> String {
    if mean.fract() == 0.0 && mean < 1e15 {
        return group(mean as u64);
    }
    match (mean - mean.round()).abs() {
        _ if mean < 0.005 => format!("{mean:.2e}"),
        // A mean just beside an integer must not look like one.
        beside if beside < 0.005 => format!("{mean:.4}").trim_end_matches('0').trim_end_matches('.').to_string(),
        _ => format!("{mean:.2}"),
    }
}

/// A row for each level, below a row of headings; numbers to the right.
fn table(levels: &[LevelStatistics]) -> Vec<String> {
    let heading = ["level", "kind", "dim", "size", "fibers", "stored", "min", "mean", "max", "empty", "bytes"];
    let mut rows: Vec<Vec<String>> = vec![heading.iter().map(|h| h.to_string()).collect()];
    let count = |n: usize| group(n as u64);
    for (k, level) in levels.iter().enumerate() {
        rows.push(vec![
            k.to_string(),
            level.name.clone(),
            level.dimension.to_string(),
            group(level.size),
            count(level.fibers),
            count(level.coordinates),
            count(level.least),
            average(level.mean),
            count(level.most),
            count(level.empty_fibers),
            bytes(level.nbytes as u64),
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
pub(crate) fn group(number: u64) -> String {
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
pub(crate) fn bytes(count: u64) -> String {
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
        let means =
            [(5.0, "5"), (0.0, "0"), (4.996, "4.996"), (3.28125, "3.28"), (1e-5, "1.00e-5"), (12345.0, "12,345")];
        means.iter().for_each(|(mean, text)| assert_eq!(average(*mean), *text));
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
