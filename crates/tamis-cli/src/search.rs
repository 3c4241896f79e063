//! `tamis search`: measures every format and loop order, and ranks them beside the scheduler's
//! choice.

use crate::args::{RunArgs, SearchArgs};
use crate::progress::Progress;
use crate::request::{ProgramText, RunRequest};
use crate::shell::{CommandError, CommandResult, Shell};
use crate::{operands, operators, source};
use serde_json::json;
use std::io::Write;
use tamis::search::{SearchOptions, SearchReport, SearchState, search};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_tensor::Tensor;

/// Searches, and shows a ranked table and a heat map.
pub(crate) fn run(args: &SearchArgs, shell: &mut Shell) -> CommandResult {
    let request = RunRequest::parse(&RunArgs {
        program: args.notation.clone(),
        operators: args.operators.clone(),
        inputs: args.inputs.clone(),
        formats: args.formats.clone(),
        shapes: args.shapes.clone(),
        outputs: Vec::new(),
        header: false,
        time: false,
        time_passes: false,
        json: false,
        strict: false,
        duplicates: args.duplicates,
        interpret: false,
        schedule: Vec::new(),
        order: Vec::new(),
        keep: false,
        check: false,
        check_limit: 0,
    })?;
    let text = ProgramText::parse(&args.notation);
    let program = source::source(&text)?;
    if !source::is_notation(&text, &program) {
        let d = Diagnostic::new(Code::E0905, "only index notation can be searched: a program fixes its loops");
        return Err(CommandError::usage(vec![
            d.help("for example `tamis search \"y[i] = A[i,j] * x[j]\" A=matrix.mtx x=rand`"),
        ]));
    }
    let notation = source::notation(&program, &request, &operators::read(&args.operators)?)?;
    let plain = notation.interface()?;
    operands::check_names(&plain, &request)?;
    let inputs = operands::inputs(&plain, &request)?;
    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let progress = Progress::start("searching");
    let tell = |done: u64, total: u64| progress.update(done, total);
    let options = SearchOptions { time_limit: args.time_limit, repeats: 5, progress: Some(&tell) };
    let found = search(&notation, &tensors, &options)?;
    drop(progress);
    let names: Vec<&str> = notation.params();
    if args.json {
        return shell.print_json(&document(&names, &found));
    }
    let mut out = format!("{}\n\n", program.text.trim());
    out += &table(&names, &found, args.top);
    out += &map(&names, &found, shell.unicode);
    Ok(shell.out.write_all(out.as_bytes())?)
}

fn document(names: &[&str], found: &SearchReport) -> serde_json::Value {
    let states: Vec<_> = found
        .states
        .iter()
        .map(|state| {
            let formats: serde_json::Map<String, serde_json::Value> = names
                .iter()
                .zip(&state.formats)
                .map(|(name, format)| (name.to_string(), json!(format.to_string())))
                .collect();
            json!({
                "formats": formats,
                "order": state.order,
                "schedule": state.schedule,
                "results": state.results,
                "kernel_seconds": state.kernel.as_secs_f64(),
                "compile_seconds": state.compile.as_secs_f64(),
                "chosen": state.chosen,
            })
        })
        .collect();
    json!({ "states": states, "total": found.total, "skipped": found.skipped, "ended": found.ended })
}

/// The operands that are not the same everywhere, with their formats.
fn formats(names: &[&str], found: &SearchReport, state: &SearchState) -> String {
    let varies = |k: &usize| found.states.iter().any(|other| other.formats.get(*k) != state.formats.get(*k));
    let shown: Vec<String> = (0..names.len())
        .filter(varies)
        .filter_map(|k| Some(format!("{}={}", names[k], short(&state.formats.get(k)?.to_string()))))
        .collect();
    if shown.is_empty() { "as given".to_string() } else { shown.join(" ") }
}

/// Formats as people call them.
fn short(format: &str) -> String {
    match format {
        "sparse(nonunique), singleton" | "sparse(nonunique), singleton, singleton" => "coo".to_string(),
        "sparse, sparse" => "dcsr".to_string(),
        "sparse, sparse, sparse" => "csf".to_string(),
        other => other.replace(": sparse, sparse, sparse", ": csf"),
    }
}

fn table(names: &[&str], found: &SearchReport, top: usize) -> String {
    let best = found.states.first().map_or(1.0, |state| state.kernel.as_secs_f64().max(1e-9));
    let width = found.states.iter().map(|state| formats(names, found, state).chars().count()).max().unwrap_or(0);
    let mut out = format!("{:>4}  {:>10}  {:>8}  {:width$}  loops\n", "rank", "kernel", "of best", "formats");
    for (k, state) in found.states.iter().enumerate() {
        if k >= top && !state.chosen {
            continue;
        }
        let seconds = state.kernel.as_secs_f64();
        let mark = if state.chosen { "   <- chosen" } else { "" };
        out += &format!(
            "{:>4}  {:>7.3} ms  {:>8.2}  {:width$}  {}{}{mark}\n",
            k + 1,
            seconds * 1e3,
            seconds / best,
            formats(names, found, state),
            state.order.join(","),
            if state.schedule.is_empty() { String::new() } else { format!(" with {}", state.schedule) },
        );
    }
    let left = found.total.saturating_sub(found.states.len() + found.skipped);
    out += &format!(
        "\n{} measured and compared with each other, {} the same as another one or not possible{}\n",
        found.states.len(),
        found.skipped,
        if found.ended { format!(", {left} not measured for lack of time") } else { String::new() },
    );
    if found.conversion.as_micros() > 0 {
        out += &format!("converting to the chosen formats takes {:.3} ms\n", found.conversion.as_secs_f64() * 1e3);
    }
    out
}

/// The slowdown of each state relative to the best one: rows are formats, columns are orders.
fn map(names: &[&str], found: &SearchReport, unicode: bool) -> String {
    let (mut rows, mut columns): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    // The map is of formats and orders: what was tried beyond those is in the table.
    let plain = |state: &&SearchState| {
        let widths = state.formats.iter().any(|f| f.levels().iter().any(|level| level.crd.is_some()));
        state.chosen || state.schedule.is_empty() && !widths
    };
    for state in found.states.iter().filter(plain) {
        let (row, column) = (formats(names, found, state), state.order.join(","));
        if !rows.contains(&row) {
            rows.push(row);
        }
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if rows.len() < 2 || columns.len() < 2 {
        return String::new();
    }
    let best = found.states.first().map_or(1.0, |state| state.kernel.as_secs_f64().max(1e-9));
    let width = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let cell = columns.iter().map(|column| column.chars().count()).max().unwrap_or(0).max(6);
    let mut out = format!("\ntimes the best:\n{:width$}", "");
    columns.iter().for_each(|column| out += &format!("  {column:>cell$}"));
    out += "\n";
    for row in &rows {
        out += &format!("{row:width$}");
        for column in &columns {
            let state = found
                .states
                .iter()
                .filter(plain)
                .find(|state| formats(names, found, state) == *row && state.order.join(",") == *column);
            let text = match state {
                Some(state) => {
                    let ratio = state.kernel.as_secs_f64() / best;
                    let shade = match (ratio, unicode) {
                        (_, false) => "",
                        (r, _) if r < 1.3 => "█",
                        (r, _) if r < 2.0 => "▓",
                        (r, _) if r < 5.0 => "▒",
                        _ => "░",
                    };
                    let star = if state.chosen { "*" } else { "" };
                    format!("{star}{shade}{ratio:.1}")
                }
                None => if unicode { "·" } else { "." }.to_string(),
            };
            out += &format!("  {text:>cell$}");
        }
        out += "\n";
    }
    out
}
