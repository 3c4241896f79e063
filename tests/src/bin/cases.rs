//! Exports random programs, their inputs and the interpreter's results, one JSON object per line,
//! as test cases for other implementations.

use std::fmt::Write;
use std::process::ExitCode;
use tamis_ir::interp::{self, Grid, Operand, Options};
use tamis_ir::{Program, Value};
use tamis_tests::generate::{self, Case, Input};
use tamis_tests::wide;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize, default: u64| arguments.get(k).map_or(Some(default), |a| a.parse().ok());
    let generator = match arguments.get(2).map(String::as_str) {
        None | Some("wide") => wide::case,
        Some("plain") => generate::case,
        Some(_) => return usage(),
    };
    let strict = match arguments.get(3).map(String::as_str) {
        None | Some("strict") => true,
        Some("stored") => false,
        Some(_) => return usage(),
    };
    let (Some(first), Some(count)) = (number(0, 0), number(1, 100)) else { return usage() };
    for seed in first..first.saturating_add(count) {
        println!("{}", describe(seed, &generator(seed), strict));
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: cases [FIRST] [COUNT] [wide|plain] [strict|stored]");
    ExitCode::from(2)
}

/// A case and its result as JSON. Numbers are strings, since JSON has no inf, nan or complex
/// numbers.
fn describe(seed: u64, case: &Case, strict: bool) -> String {
    let mut out = format!("{{\"seed\": {seed}, \"text\": {}, \"inputs\": [", quoted(&case.text));
    for (k, (name, input)) in case.inputs.iter().enumerate() {
        let comma = if k > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{}", array(name, input.dtype.name(), &input.shape, &input.values));
    }
    out += "]";
    let program = match Program::parse(&case.text) {
        Ok(program) => program,
        Err(d) => return format!("{out}, \"error\": {}}}", quoted(&d.render(false))),
    };
    let _ = write!(out, ", \"printed\": {}", quoted(&program.to_string()));
    let format = |input: &Input| if strict || input.shape.is_empty() { "dense" } else { "coo" };
    let grids: Result<Vec<Grid>, _> =
        case.inputs.iter().map(|(_, input)| input.tensor(format(input)).map(|t| Grid::from_operand(&t))).collect();
    let Ok(grids) = grids else { return out + ", \"error\": \"the inputs are no tensors\"}" };
    let operands: Vec<&dyn Operand> = grids.iter().map(|g| g as &dyn Operand).collect();
    match interp::run(&program, &operands, Options { strict, budget: Some(1_000_000) }) {
        Err(d) => {
            let _ = write!(out, ", \"error\": {}}}", quoted(&d.render(false)));
        }
        Ok(outcome) => {
            let results: Vec<String> = program
                .results
                .iter()
                .zip(&outcome.results)
                .map(|(id, grid)| {
                    let values = grid.to_values().unwrap_or_default();
                    array(&program.tensor(*id).name, grid.dtype().name(), grid.shape(), &values)
                })
                .collect();
            let _ = write!(out, ", \"results\": [{}]}}", results.join(", "));
        }
    }
    out
}

fn array(name: &str, dtype: &str, shape: &[u64], values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
    format!(
        "{{\"name\": \"{name}\", \"dtype\": \"{dtype}\", \"shape\": {shape:?}, \"values\": [{}]}}",
        values.join(", ")
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
