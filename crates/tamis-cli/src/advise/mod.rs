//! `tamis advise`: formats for a tensor, tried out on it.

mod document;
mod table;

use crate::args::AdviseArgs;
use crate::info::{group, wrapped};
use crate::load::{LoadOptions, load};
use crate::progress::Progress;
use crate::shell::{CommandResult, Shell};
use std::io::Write;
use tamis::advise::{Advice, AdviseOptions, Candidate, advise_with};
use tamis::tensor::StoredPart;
use tamis_tensor::Tensor;

/// Proposes formats for a file or a generated tensor, and measures them.
pub(crate) fn advise(args: &AdviseArgs, shell: &mut Shell) -> CommandResult {
    let options = LoadOptions { duplicates: args.duplicates.into(), format: None, shape: args.shape.as_deref() };
    let loaded = load(&args.input, &options)?;
    let progress = Progress::start(format!("trying formats for {}", loaded.name));
    let tell = |done: u64, total: u64| progress.update(done, total);
    let options = AdviseOptions { measure: !args.no_measure, time_limit: args.time_limit, progress: Some(&tell) };
    let advice = advise_with(&loaded.tensor, &options)?;
    drop(progress);
    if args.json {
        return shell.print_json(&document::document(&loaded.name, &loaded.tensor, &advice));
    }
    let bold = |text: &str| if shell.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() };
    let mut text = format!("{}\n  {}\n", bold(&loaded.name), summary(&loaded.tensor, &advice));
    let Some(task) = &advice.task else {
        text += "\nA scalar is one number: there is nothing to choose.\n";
        return Ok(write!(shell.out, "{text}")?);
    };
    text += &format!("\n  {}\n\n", bold(&task.statement()));
    for line in table::table(&advice, shell.unicode, shell.colour) {
        text += &format!("  {line}\n");
    }
    if let Some(reason) = &advice.unmeasured {
        text += &format!("\n  {reason}\n");
    }
    text += "\n";
    for line in table::reasons(&advice) {
        text += &format!("  {line}\n");
    }
    text += &verdict(&loaded.name, &advice, &bold);
    Ok(write!(shell.out, "{text}")?)
}

/// A description of the tensor, in a few lines.
fn summary(tensor: &Tensor, advice: &Advice) -> String {
    let shape = match tensor.shape() {
        [] => "scalar".to_string(),
        shape => shape.iter().map(|n| group(*n)).collect::<Vec<_>>().join(" x "),
    };
    let structure = &advice.statistics.structure;
    let matrix = advice.statistics.matrix.as_ref().filter(|_| structure.entries > 0);
    let words = matrix.iter().flat_map(|m| m.shape_word().into_iter().chain(m.symmetry_word())).map(str::to_string);
    let remarks: Vec<String> = words.chain(structure.remarks(tensor.shape(), matrix)).collect();
    let entries = match structure.entries {
        1 => "1 entry".to_string(),
        n => format!("{} entries", group(n as u64)),
    };
    let mut text = format!("{shape} {}, {entries}", tensor.dtype());
    if !remarks.is_empty() {
        text += &format!("\n  {}", wrapped(&remarks.join("; "), "  "));
    }
    text
}

/// The recommended format, the text that requests it, and the programs.
fn verdict(name: &str, advice: &Advice, bold: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    let best = advice.best();
    // Where nothing was measured, the smallest is the best guess, and the usual one never is a
    // mistake.
    let chosen = best.or_else(|| advice.candidates.first()).or_else(|| advice.usual());
    let Some(chosen) = chosen else { return text };
    let shown = bold(&label(chosen));
    match (best, advice.speedup(chosen)) {
        (Some(best), _) if best.usual => text += &format!("\n  {shown}: nothing else is clearly faster.\n"),
        (Some(_), Some(times)) => {
            let pays = match advice.pays_after(chosen) {
                Some(0) | None => String::new(),
                Some(runs) => format!(", and pays for its conversion after {} runs", group(runs)),
            };
            text += &format!("\n  {shown} is the fastest here: {times:.2} times as fast as the usual format{pays}.\n");
        }
        _ => text += &format!("\n  {shown} is the smallest.\n"),
    }
    text += &usage(name, chosen);
    // One triangle is the only proposal that changes the program, so it is always shown.
    let triangle = advice.candidates.iter().find(|candidate| candidate.part != StoredPart::Whole);
    if let Some(triangle) = triangle.filter(|triangle| !std::ptr::eq(*triangle, chosen)) {
        text += "\n  One triangle is enough, with a program that uses each entry twice:\n";
        text += &usage(name, triangle);
    }
    text
}

/// The commands and programs for a format.
fn usage(name: &str, candidate: &Candidate) -> String {
    let mut text = String::new();
    let mut input = format!("A={name}");
    let format = argument(&format!("A={}", crate::info::format_name(&candidate.format)));
    let indented = |program: &str| program.lines().map(|line| format!("      {line}\n")).collect::<String>();
    if let Some(prepare) = candidate.prepare {
        text +=
            &format!("\n    tamis run lower.py {} -f A=csr -o L=lower.mtx\n\n{}", argument(&input), indented(prepare));
        input = "A=lower.mtx".to_string();
    }
    let program = candidate.program.split(['(', ' ']).nth(1).unwrap_or("program");
    text += &format!("\n    tamis run {program}.py {} x=rand -f {format}\n\n", argument(&input));
    text + &indented(&candidate.program)
}

/// An argument as a shell takes it.
fn argument(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./,:@%".contains(c);
    if text.chars().all(plain) { text.to_string() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The name of a candidate in tables.
fn label(candidate: &Candidate) -> String {
    let format = crate::info::format_name(&candidate.format);
    match candidate.part {
        StoredPart::Whole => format,
        StoredPart::Lower(_) => format!("{format}, lower triangle"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_shells() {
        assert_eq!(argument("A=a/b.mtx.gz"), "A=a/b.mtx.gz");
        assert_eq!(argument("A=dense, band"), "'A=dense, band'");
        assert_eq!(argument("A=it's.mtx"), "'A=it'\\''s.mtx'");
    }
}
