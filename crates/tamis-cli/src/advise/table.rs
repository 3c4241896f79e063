//! Candidates as a table with bars, the best marked.

use super::label;
use crate::info::{bytes, group, wrapped};
use std::time::Duration;
use tamis::advise::{Advice, Candidate, Measurement};

/// The longest bar, in characters.
const BAR: usize = 24;
/// Bars end in steps of an eighth of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A row for each candidate below a row of headings. Bars show the time of a run, or bytes where
/// nothing ran.
pub(super) fn table(advice: &Advice, unicode: bool, colour: bool) -> Vec<String> {
    let measured = advice.candidates.iter().any(|candidate| candidate.times().is_some());
    let heading: &[&str] = if measured {
        &["", "format", "bytes", "convert", "run", "speed", "pays after", ""]
    } else {
        &["", "format", "bytes", "", "of usual", ""]
    };
    let best = advice.best();
    let most = advice.candidates.iter().map(|candidate| weight(candidate, measured)).fold(0.0, f64::max);
    let mut rows: Vec<Vec<String>> = vec![heading.iter().map(|h| h.to_string()).collect()];
    for candidate in &advice.candidates {
        let mark = if best.is_some_and(|best| std::ptr::eq(best, candidate)) { "*" } else { "" };
        let mut row = vec![mark.to_string(), label(candidate), bytes(candidate.bytes)];
        if measured {
            row.extend(measured_cells(advice, candidate));
        } else {
            row.push(if candidate.exact { "exactly" } else { "about" }.to_string());
            let usual = advice.usual().map_or(0, |usual| usual.bytes).max(1);
            row.push(format!("{:.0} %", 100.0 * candidate.bytes as f64 / usual as f64));
        }
        let share = if most > 0.0 { weight(candidate, measured) / most } else { 0.0 };
        row.push(bar(share, unicode));
        rows.push(row);
    }
    let widths: Vec<usize> =
        (0..heading.len()).map(|c| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0)).collect();
    let show = |(k, row): (usize, &Vec<String>)| {
        let cells = row.iter().zip(&widths).enumerate();
        let left = |c: usize| c < 2 || c + 1 == heading.len();
        let padded = cells.map(|(c, (cell, w))| if left(c) { format!("{cell:w$}") } else { format!("{cell:>w$}") });
        let line = padded.collect::<Vec<_>>().join("  ").trim_end().to_string();
        match (colour, k, row[0].as_str()) {
            (true, 0, _) => format!("\x1b[2m{line}\x1b[0m"),
            (true, _, "*") => format!("\x1b[1m{line}\x1b[0m"),
            _ => line,
        }
    };
    rows.iter().enumerate().map(show).collect()
}

/// The quantity of a bar.
fn weight(candidate: &Candidate, measured: bool) -> f64 {
    match candidate.times() {
        Some(times) => times.run.as_secs_f64(),
        None if measured => 0.0,
        None => candidate.bytes as f64,
    }
}

fn measured_cells(advice: &Advice, candidate: &Candidate) -> Vec<String> {
    let Some(times) = candidate.times() else {
        let word = if matches!(candidate.outcome, Measurement::Failed(_)) { "cannot run" } else { "no time" };
        return vec![String::new(), word.to_string(), String::new(), String::new()];
    };
    let speed = advice.speedup(candidate).map(|x| format!("{x:.2}x")).unwrap_or_default();
    let pays = match advice.pays_after(candidate) {
        _ if candidate.usual => String::new(),
        None => "never".to_string(),
        Some(0) => "at once".to_string(),
        Some(1) => "1 run".to_string(),
        Some(runs) => format!("{} runs", group(runs)),
    };
    vec![duration(times.convert), duration(times.run), speed, pays]
}

/// Why each format was proposed, and why it could not be run.
pub(super) fn reasons(advice: &Advice) -> Vec<String> {
    let width = advice.candidates.iter().map(|candidate| label(candidate).chars().count()).max().unwrap_or(0);
    let indent = " ".repeat(width + 6);
    let reason = |candidate: &Candidate| {
        let mut why = candidate.why.clone();
        if let Measurement::Failed(d) = &candidate.outcome {
            why += &format!(" (cannot run: {})", d.message);
        }
        format!("  {:width$}  {}", label(candidate), wrapped(&why, &indent))
    };
    advice.candidates.iter().map(reason).collect()
}

fn bar(share: f64, unicode: bool) -> String {
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    match (unicode, share > 0.0) {
        (_, false) => String::new(),
        // Every nonzero bar is visible.
        (true, true) => "█".repeat(eighths.max(1) / 8) + EIGHTHS[eighths.max(1) % 8],
        (false, true) => "#".repeat((eighths / 8).max(1)),
    }
}

/// A time with three digits.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (scaled, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_times() {
        assert_eq!((bar(1.0, true), bar(0.0, true)), ("█".repeat(BAR), String::new()));
        assert_eq!((bar(1e-9, true), bar(1e-9, false)), ("▏".to_string(), "#".to_string()));
        assert_eq!(bar(0.5, false), "#".repeat(12));
        let times = [(1, "1.00 ns"), (1_500, "1.50 us"), (12_340_000, "12.3 ms"), (2_000_000_000, "2.00 s")];
        times.iter().for_each(|(n, text)| assert_eq!(duration(Duration::from_nanos(*n)), *text));
    }
}
