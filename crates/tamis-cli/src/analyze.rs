//! `tamis explain --analyze`: analyses a run of a loop program; the JSON form of an analysis.

use crate::args::{ExplainArgs, Stage};
use crate::planned::request;
use crate::shell::{CommandError, CommandResult, Shell};
use crate::{operands, stages};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tamis::Program;
use tamis::analyze::{Analysis, BytesMoved};
use tamis::compile::{CompileOptions, Signature};
use tamis_ir::algebra::Op;
use tamis_ir::{Code, Diagnostic, Source};
use tamis_tensor::Tensor;

/// The error for `--analyze` without inputs.
pub(crate) fn no_inputs() -> CommandError {
    let d = Diagnostic::new(Code::E0902, "--analyze runs the program, which needs inputs");
    let d = d.help("give each parameter a tensor, as for `tamis run`: A=matrix.mtx x=rand");
    CommandError::usage(vec![d.help("leave --analyze out to see how the program is compiled")])
}

/// Shows stages of a loop program for its inputs, and the analysis of its run.
pub(crate) fn program(
    source: &Arc<Source>,
    operators: &[Op],
    wanted: &[Stage],
    args: &ExplainArgs,
    shell: &mut Shell,
) -> CommandResult {
    let program = Program::parse_source_with(source, operators)?;
    if args.inputs.is_empty() && !program.params.is_empty() {
        return Err(no_inputs());
    }
    let request = request(args)?;
    operands::check_names(&program, &request)?;
    let inputs = operands::inputs(&program, &request)?;
    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let schedule = crate::request::schedule(&args.schedule).map_err(|errors| CommandError::usage(errors.0))?;
    let options = CompileOptions { schedule, ..CompileOptions::default() };
    let explanation = tamis::explain(&program, &Signature::of(&tensors), &options)?;
    shell.warn(explanation.warnings());
    let analysis = tamis::analyze::analyze_program(&program, &tensors, &options)?;
    let mut texts = Vec::new();
    for stage in wanted {
        texts.push((stages::name(*stage).into(), stages::of_stage(*stage, &program, Some(&explanation))?));
    }
    stages::show(texts, Some(&analysis), args, shell)
}

fn moved(moved: BytesMoved) -> Json {
    json!({ "read": moved.read, "written": moved.written })
}

/// An analysis as JSON; times are in seconds.
pub(crate) fn as_json(analysis: &Analysis) -> Json {
    let loops: Vec<Json> = analysis
        .loops
        .iter()
        .map(|row| {
            let from = row.predicted_from.iter();
            let arrays = row.own_by_array.iter();
            let parts = row.kernel_loops.iter();
            json!({
                "index": row.index,
                "depth": row.depth,
                "line": row.line,
                "entered": row.entered,
                "visits": row.visits,
                "steps": row.steps,
                "predicted": row.predicted,
                "predicted_from": from
                    .map(|(name, counted)| json!({ "tensor": name, "counted": counted }))
                    .collect::<Vec<Json>>(),
                "bytes": moved(row.moved),
                "own_bytes": moved(row.own),
                "own_bytes_by_array": arrays
                    .map(|(name, bytes)| json!({ "array": name, "read": bytes.read, "written": bytes.written }))
                    .collect::<Vec<Json>>(),
                "seconds": row.seconds,
                "measured": row.measured,
                "parts": parts
                    .map(|part| {
                        json!({
                            "text": part.text,
                            "entered": part.entered,
                            "iterations": part.iterations,
                            "visits": part.visits,
                        })
                    })
                    .collect::<Vec<Json>>(),
            })
        })
        .collect();
    let arrays = analysis.arrays.iter().map(
        |row| json!({ "array": row.name, "read": row.moved.read, "written": row.moved.written, "size": row.size }),
    );
    let conversions = analysis.conversions.iter();
    json!({
        "program": analysis.program,
        "loops": loops,
        "outside": moved(analysis.outside),
        "arrays": arrays.collect::<Vec<Json>>(),
        "seconds": analysis.time.as_secs_f64(),
        "seconds_counting": analysis.time_counting.as_secs_f64(),
        "runs": analysis.runs,
        "nests": analysis.nests,
        "nests_measured": analysis.nests_measured,
        "conversions": conversions
            .map(|(what, took)| json!({ "what": what, "seconds": took.as_secs_f64() }))
            .collect::<Vec<Json>>(),
        "operations": analysis.operations,
        "statements": analysis.statements,
        "remarks": analysis.remarks,
    })
}
