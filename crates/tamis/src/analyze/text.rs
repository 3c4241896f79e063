//! The text form of an analysis: a table of loops, a table of arrays, and remarks.

use super::{Analysis, LoopAnalysis, NOTABLE_RATIO};
use std::fmt;

/// A table whose first column is left-aligned, the others right-aligned.
struct TextTable(Vec<Vec<String>>);

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, k: usize| row.get(k).cloned().unwrap_or_default();
        let width = |k| self.0.iter().map(|row| cell(row, k).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let mut line = format!("{:1$}", cell(row, 0), widths.first().copied().unwrap_or(0));
            for (k, width) in widths.iter().enumerate().skip(1) {
                line += &format!("  {:>width$}", cell(row, k));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Analysis {
    fn loop_table(&self) -> TextTable {
        let predicted = self.loops.iter().any(|row| row.predicted.is_some());
        let lines = self.loops.iter().any(|row| row.line.is_some());
        let steps = self.loops.iter().any(|row| row.steps > 0);
        let mut header = vec!["loop"];
        header.extend(lines.then_some("line"));
        header.extend(["entered", "visits"]);
        header.extend(predicted.then_some(["predicted", "ratio"]).into_iter().flatten());
        header.extend(steps.then_some("steps"));
        header.extend(["read", "written", "time"]);
        let mut table = vec![header.into_iter().map(String::from).collect::<Vec<String>>()];
        for row in &self.loops {
            let mut cells = vec![format!("{}for {}", "  ".repeat(row.depth), row.index)];
            if lines {
                cells.push(row.line.map_or("-".to_string(), |line| line.to_string()));
            }
            cells.extend([grouped(row.entered), grouped(row.visits)]);
            if predicted {
                cells.push(row.predicted.map_or("-".to_string(), |trips| grouped(trips.round() as u64)));
                cells.push(ratio(row));
            }
            if steps {
                cells.push(if row.steps > 0 { grouped(row.steps) } else { "-".to_string() });
            }
            let about = if row.measured { "" } else { "~" };
            cells.extend([bytes(row.moved.read), bytes(row.moved.written), format!("{about}{}", time(row.seconds))]);
            table.push(cells);
        }
        TextTable(table)
    }

    fn array_table(&self) -> TextTable {
        let mut table = vec![["array", "read", "written", "size", "moved/size"].map(String::from).to_vec()];
        for row in &self.arrays {
            let moved = row.moved.read.saturating_add(row.moved.written);
            let ratio = if row.size > 0 { format!("{:.2}", moved as f64 / row.size as f64) } else { "-".to_string() };
            table.push(vec![row.name.clone(), bytes(row.moved.read), bytes(row.moved.written), bytes(row.size), ratio]);
        }
        TextTable(table)
    }

    /// The loops of the kernel that each loop of the program was lowered to, with their iterations.
    ///
    /// ```
    /// # use tamis::prelude::*;
    /// # let a = tamis::gallery::generate("banded(200, 4)")?;
    /// # let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// let analysis = tamis::analyze("s = A[i,j]", &[("A", &a)], &EinsumOptions::new())?;
    /// assert!(analysis.kernel_loops().contains("loop of the kernel"));
    /// # Ok::<(), Diagnostics>(())
    /// ```
    pub fn kernel_loops(&self) -> String {
        let mut table = vec![["loop of the kernel", "entered", "iterations", "visits"].map(String::from).to_vec()];
        for row in &self.loops {
            table.push(vec![format!("{}for {}", "  ".repeat(row.depth), row.index)]);
            for part in &row.kernel_loops {
                let text = format!("{}  {}", "  ".repeat(row.depth), shortened(&part.text));
                let visits = if part.visits { "each" } else { "" };
                table.push(vec![text, grouped(part.entered), grouped(part.iterations), visits.to_string()]);
            }
        }
        TextTable(table).to_string()
    }
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.loop_table())?;
        if !self.arrays.is_empty() {
            write!(f, "\n{}", self.array_table())?;
        }
        writeln!(f)?;
        let runs = self.runs;
        writeln!(f, "kernel: {}, the least of {runs} runs without counters", time(self.time.as_secs_f64()))?;
        for (conversion, took) in &self.conversions {
            writeln!(f, "before: {conversion} took {}", time(took.as_secs_f64()))?;
        }
        writeln!(f, "{} operations, {} statements of the kernel", grouped(self.operations), grouped(self.statements))?;
        let how = match (self.nests_measured, self.nests) {
            (true, 0 | 1) => "the time of the outermost loop is measured",
            (true, _) => "times of outermost loops are measured, by running the kernel up to each",
            (false, _) => "only the whole kernel's time is measured",
        };
        writeln!(f, "{how}; those with ~ are apportioned by counted work")?;
        writeln!(f, "bytes are counted as the kernel moves them, caches or not; size is what the array takes")?;
        for remark in &self.remarks {
            writeln!(f, "note: {remark}")?;
        }
        Ok(())
    }
}

fn ratio(row: &LoopAnalysis) -> String {
    match row.ratio() {
        None => "-".to_string(),
        Some(ratio) => {
            let mark = if (1.0 / NOTABLE_RATIO..=NOTABLE_RATIO).contains(&ratio) { "" } else { "!" };
            if ratio >= 1000.0 { format!("{mark}{ratio:.1e}") } else { format!("{mark}{ratio:.2}") }
        }
    }
}

/// A number with separators between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn bytes(number: u64) -> String {
    match number {
        0 => "-".to_string(),
        1..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{:.1} kB", number as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", number as f64 / 1e6),
        _ => format!("{:.1} GB", number as f64 / 1e9),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// A line, truncated.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 72;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 7, 999, 1000, 1234567].map(grouped), ["0", "7", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 800, 80_000, 123_456_789].map(bytes), ["-", "800 B", "80.0 kB", "123.5 MB"]);
        assert_eq!([5e-8, 1.5e-6, 0.002, 3.0].map(time), ["50 ns", "1.5 us", "2.00 ms", "3.00 s"]);
    }
}
