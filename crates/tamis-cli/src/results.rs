//! Results of a run: shown as text, or as a JSON document, with times if requested.

use crate::request::{OutputTarget, RunRequest};
use crate::shell::{CommandResult, Shell};
use crate::times;
use serde_json::{Value as Json, json};
use std::io::Write;
use std::time::Duration;
use tamis::compile::{Build, WorkspaceReport};
use tamis_ir::{Kind, Value};
use tamis_tensor::Tensor;

/// The text form lists this many stored elements.
const SHOWN: usize = 12;

/// The JSON form has the elements of results up to this nnz.
const IN_JSON: usize = 10_000;

/// Times and statistics of a run.
pub(crate) struct RunReport<'a> {
    /// The phases of the run.
    pub(crate) times: &'a [(&'static str, Duration)],
    /// Statistics of each workspace.
    pub(crate) workspaces: &'a [(String, WorkspaceReport)],
    /// The report of compilation.
    pub(crate) build: &'a Build,
}

/// Shows results. If one of them goes to standard output, the text goes to standard error.
pub(crate) fn show(
    request: &RunRequest,
    results: &[(String, Tensor)],
    report: &RunReport,
    shell: &mut Shell,
) -> CommandResult {
    let RunReport { times, workspaces, build } = report;
    let on_standard_output = request.outputs.iter().any(|(_, to)| *to == OutputTarget::StandardOutput);
    if request.json {
        let mut document = json!({ "results": results.iter().map(as_json).collect::<Vec<Json>>() });
        if request.time {
            document["seconds"] = times::steps_as_json(times);
            document["workspaces"] = times::workspaces_as_json(workspaces);
        }
        if request.time_passes {
            document["compile"] = times::passes_as_json(build);
        }
        return shell.print_json(&document);
    }
    let mut text = String::new();
    if !on_standard_output {
        for (name, tensor) in results {
            text += &format!("{name}: {}\n{}", tensor.summary(), elements(tensor));
        }
    }
    if request.time_passes {
        text += &times::passes(build);
    }
    if request.time {
        text += &times::steps(times);
        text += &times::workspaces(workspaces);
    }
    if on_standard_output {
        let _ = std::io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    Ok(shell.out.write_all(text.as_bytes())?)
}

/// The first stored elements, one line each, and how many follow.
fn elements(tensor: &Tensor) -> String {
    let mut out = String::new();
    let stored = tensor.nnz();
    let mut left = stored.min(SHOWN);
    tensor.for_each_while(&mut |coordinates, value| {
        let at: Vec<String> = coordinates.iter().map(u64::to_string).collect();
        let at = if at.is_empty() { String::new() } else { format!("[{}] = ", at.join(", ")) };
        out += &format!("  {at}{value}\n");
        left = left.saturating_sub(1);
        left > 0
    });
    if stored > SHOWN {
        out += &format!("  ... and {} more\n", stored - SHOWN);
    }
    out
}

fn as_json((name, tensor): &(String, Tensor)) -> Json {
    let mut document = json!({
        "name": name,
        "shape": tensor.shape(),
        "dtype": tensor.dtype().name(),
        "format": tensor.format().to_string(),
        "stored": tensor.nnz(),
        "fill": number(tensor.fill()),
    });
    if tensor.nnz() <= IN_JSON {
        let (mut coordinates, mut values) = (Vec::new(), Vec::new());
        tensor.for_each(&mut |at, value| {
            coordinates.push(json!(at));
            values.push(number(value));
        });
        document["coordinates"] = Json::Array(coordinates);
        document["values"] = Json::Array(values);
    }
    document
}

/// A value as JSON; inf, nan and complex numbers become strings.
fn number(value: Value) -> Json {
    match value.dtype().kind() {
        Kind::Bool => json!(value.is_truthy()),
        Kind::Int => match value {
            Value::U64(x) => json!(x),
            other => json!(other.as_i64()),
        },
        Kind::Float if value.as_c128().re.is_finite() => json!(value.as_c128().re),
        _ => json!(value.to_string()),
    }
}
