//! Calls of the reference interpreter, with tensors in and out.

use crate::results::Results;
use tamis_ir::{Diagnostics, Format, Program, interp};
use tamis_tensor::Tensor;

/// Interprets a program on tensors in the order of its parameters. Gives its results in the formats
/// that it declares.
pub(crate) fn run(program: &Program, tensors: &[&Tensor], strict: bool) -> Result<Results, Diagnostics> {
    run_with(program, tensors, interp::Options { strict, budget: None })
}

/// [`run()`], with a budget of points, after which it fails with E1003.
pub(crate) fn run_with(
    program: &Program,
    tensors: &[&Tensor],
    options: interp::Options,
) -> Result<Results, Diagnostics> {
    let operands: Vec<&dyn interp::Operand> = tensors.iter().map(|t| *t as &dyn interp::Operand).collect();
    let outcome = interp::run(program, &operands, options)?;
    let mut results = Vec::new();
    for (id, grid) in program.results.iter().zip(&outcome.results) {
        let info = program.tensor(*id);
        // A parameter that the program updates keeps its format.
        let given = program.params.iter().position(|param| param == id).map(|k| tensors[k].format().clone());
        let declared = outcome.checked.formats[id.index()].clone();
        let format = declared.or(given).unwrap_or_else(|| Format::dense(info.rank)).without_workspace();
        let tensor = Tensor::from_grid(grid, &format)
            .map_err(|d| program.origin.attach(d.label(program.origin.tensor(*id), "this result")))?;
        results.push((info.name.clone(), tensor));
    }
    Ok(results.into())
}
