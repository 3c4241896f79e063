//! Advice as JSON.

use super::label;
use crate::info::{format_name, structure_as_json};
use serde_json::{Value as Json, json};
use tamis::advise::{Advice, Candidate, Measurement};
use tamis::tensor::StoredPart;
use tamis_tensor::Tensor;

/// Everything; what was not measured is null.
pub(super) fn document(name: &str, tensor: &Tensor, advice: &Advice) -> Json {
    json!({
        "name": name,
        "shape": tensor.shape(),
        "dtype": tensor.dtype().name(),
        "entries": advice.statistics.structure.entries,
        "remarks": advice.statistics.structure.remarks(tensor.shape(), advice.statistics.matrix.as_ref()),
        "structure": structure_as_json(&advice.statistics.structure),
        "task": advice.task.as_ref().map(|task| task.statement()),
        "best": advice.best().map(label),
        "usual": advice.usual().map(label),
        "unmeasured": advice.unmeasured,
        "candidates": advice.candidates.iter().map(|candidate| candidate_as_json(advice, candidate)).collect::<Vec<_>>(),
    })
}

fn candidate_as_json(advice: &Advice, candidate: &Candidate) -> Json {
    let times = candidate.times();
    let error = match &candidate.outcome {
        Measurement::Failed(d) => Some(json!({ "code": d.code.to_string(), "message": d.message, "help": d.help })),
        _ => None,
    };
    json!({
        "name": label(candidate),
        "format": format_name(&candidate.format),
        "part": match candidate.part {
            StoredPart::Whole => "whole",
            StoredPart::Lower(_) => "lower triangle",
        },
        "why": candidate.why,
        "bytes": candidate.bytes,
        "exact": candidate.exact,
        "usual": candidate.usual,
        "prepare": candidate.prepare,
        "program": candidate.program,
        "convert_seconds": times.map(|times| times.convert.as_secs_f64()),
        "compile_seconds": times.map(|times| times.compile.as_secs_f64()),
        "run_seconds": times.map(|times| times.run.as_secs_f64()),
        "least_seconds": times.map(|times| times.least.as_secs_f64()),
        "runs": times.map(|times| times.runs),
        "speedup": advice.speedup(candidate),
        "pays_after": advice.pays_after(candidate).filter(|_| !candidate.usual),
        "error": error,
    })
}
