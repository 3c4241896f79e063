//! Operands of a run: checks the names on the command line, and makes a tensor for each parameter.
//!
//! In: a program and a [`RunRequest`]. Out: tensors in the order of the parameters. Shapes that the
//! command line does not give are inferred through the program.

use crate::input::InputSpec;
use crate::load::{LoadOptions, load};
use crate::request::RunRequest;
use crate::shell::{CommandError, CommandResult};
use tamis_ir::diag::{counted, did_you_mean};
use tamis_ir::notation::EinsumOperand;
use tamis_ir::{Code, DType, Diagnostic, Format, FormatSpec, Program, Value};
use tamis_tensor::gallery;
use tamis_tensor::io::FileKind;
use tamis_tensor::{Combine, Tensor};

/// Checks that every name on the command line is one of the program's, and that every parameter has
/// an input. Mistakes are those of the command line (status 2).
pub(crate) fn check_names(program: &Program, request: &RunRequest) -> CommandResult {
    let names = |ids: &[tamis_ir::program::TensorId]| -> Vec<&str> {
        ids.iter().map(|id| program.tensor(*id).name.as_str()).collect()
    };
    let (params, results) = (names(&program.params), names(&program.results));
    let mut mistakes = Vec::new();
    let mut unknown = |name: &str, what: &str, known: &[&str]| {
        if !known.contains(&name) {
            let d = Diagnostic::new(Code::E0903, format!("`{}` has no {what} `{name}`", program.name));
            let d = match did_you_mean(name, known.iter().copied()) {
                Some(meant) => d.help(format!("did you mean `{meant}`?")),
                None => d,
            };
            mistakes.push(d.help(format!("it has {}", known.join(", "))));
        }
    };
    request.inputs.iter().for_each(|(name, _)| unknown(name, "parameter", &params));
    request.shapes.iter().for_each(|(name, _)| unknown(name, "parameter", &params));
    request.outputs.iter().for_each(|(name, _)| unknown(name, "result", &results));
    let both: Vec<&str> = params.iter().chain(&results).copied().collect();
    request.formats.iter().for_each(|(name, _)| unknown(name, "parameter or result", &both));
    // Formats of another rank are refused before anything is read or run.
    for id in program.params.iter().chain(&program.results) {
        let info = program.tensor(*id);
        let wanted = request.formats.iter().find(|(name, _)| *name == info.name);
        if let Some(Err(d)) = wanted.map(|(_, spec)| spec.with_rank(info.rank)) {
            mistakes.push(d.note(format!("`{}` has {} in the program", info.name, counted(info.rank, "subscript"))));
        }
    }
    for param in &params {
        if !request.inputs.iter().any(|(name, _)| name == param) {
            let d = Diagnostic::new(Code::E0902, format!("the parameter `{param}` has no input"));
            mistakes.push(d.help(format!("add `{param}=FILE`, `{param}=rand`, `{param}=ones` or a generator")));
        }
    }
    for (name, _) in &request.shapes {
        let spec = request.inputs.iter().find(|(n, _)| n == name).map(|(_, spec)| spec);
        let known = match spec {
            Some(InputSpec::Rand { shape: Some(_), .. } | InputSpec::Ones { shape: Some(_) }) => "its generator says",
            Some(InputSpec::Number(_)) => "a number has",
            // Files and other generators are checked when they are read.
            _ => continue,
        };
        let d = Diagnostic::new(Code::E0905, format!("the shape of `{name}` is already known: it is what {known}"));
        mistakes.push(d.help(format!("leave out `--shape {name}=...`")));
    }
    for (name, spec) in &request.inputs {
        if let InputSpec::Path(path) = spec
            && params.contains(&name.as_str())
            && let Err(d) = FileKind::of(path)
        {
            mistakes.push(d);
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(CommandError::usage(mistakes)) }
}

/// The tensors of all parameters. Missing shapes are inferred through the program.
pub(crate) fn inputs(program: &Program, request: &RunRequest) -> Result<Vec<(String, Tensor)>, CommandError> {
    let mut known: Vec<(String, &InputSpec, Option<Tensor>)> = Vec::new();
    for (position, id) in program.params.iter().enumerate() {
        let name = program.tensor(*id).name.clone();
        let Some((_, spec)) = request.inputs.iter().find(|(n, _)| *n == name) else { continue };
        let tensor = of_known_shape(position, &name, spec, request)?;
        known.push((name, spec, tensor));
    }
    if known.iter().any(|(_, _, tensor)| tensor.is_none()) {
        let tensors: Vec<Option<&Tensor>> = known.iter().map(|(_, _, tensor)| tensor.as_ref()).collect();
        let shapes = tamis::run::infer_shapes(program, &tensors)?;
        for (k, (name, spec, tensor)) in known.iter_mut().enumerate().filter(|(_, (_, _, t))| t.is_none()) {
            *tensor = Some(of_shape(k, name, spec, &shapes[k], request)?);
        }
    }
    Ok(known.into_iter().filter_map(|(name, _, tensor)| Some((name, tensor?))).collect())
}

/// The shapes and kinds of all inputs, which must be known without the program.
pub(crate) fn shapes(request: &RunRequest) -> Result<Vec<EinsumOperand>, CommandError> {
    let of = |(position, (name, spec)): (usize, &(String, InputSpec))| {
        let tensor = of_known_shape(position, name, spec, request)?.ok_or_else(|| {
            let message = format!("`...` stands for the other dimensions of `{name}`, and its rank is not known");
            let d = Diagnostic::new(Code::E0902, message);
            CommandError::usage(vec![d.help(format!("give its shape: `--shape {name}=3,4,5`"))])
        })?;
        let boolean = tensor.dtype() == DType::Bool;
        Ok(EinsumOperand { name: name.clone(), shape: tensor.shape().to_vec(), boolean })
    };
    request.inputs.iter().enumerate().map(of).collect()
}

/// An input whose shape is known without the program; none if it must be inferred.
fn of_known_shape(
    position: usize,
    name: &str,
    spec: &InputSpec,
    request: &RunRequest,
) -> Result<Option<Tensor>, CommandError> {
    let format = request.formats.iter().find(|(n, _)| n == name).map(|(_, spec)| spec);
    let shape = request.shapes.iter().find(|(n, _)| n == name).map(|(_, shape)| &shape[..]);
    let options = LoadOptions { duplicates: request.duplicates, format, shape };
    let loaded = match spec {
        InputSpec::Path(path) => load(path.as_os_str(), &options)?.tensor,
        InputSpec::Gallery(call) => load(call.text().as_ref(), &options)?.tensor,
        InputSpec::Number(value) => return Ok(Some(converted(name, Tensor::scalar(*value), request)?)),
        InputSpec::Rand { shape: Some(shape), .. } | InputSpec::Ones { shape: Some(shape) } => {
            return of_shape(position, name, spec, shape, request).map(Some);
        }
        InputSpec::Rand { .. } | InputSpec::Ones { .. } => {
            return shape.map(|shape| of_shape(position, name, spec, shape, request)).transpose();
        }
    };
    Ok(Some(loaded))
}

/// A generated input of a shape.
fn of_shape(
    position: usize,
    name: &str,
    spec: &InputSpec,
    shape: &[u64],
    request: &RunRequest,
) -> Result<Tensor, CommandError> {
    let (coordinates, dense) = match spec {
        InputSpec::Rand { density, seed, .. } => {
            // Inputs without a seed differ from each other.
            let seed = seed.unwrap_or(position as u64);
            (gallery::random(shape, density.unwrap_or(1.0), seed)?, density.is_none_or(|d| d == 1.0))
        }
        _ => (gallery::ones(shape)?, true),
    };
    let format = if dense { Format::dense(shape.len()) } else { Format::coo(shape.len()) };
    let tensor = Tensor::from_coordinates(&coordinates, &format, Value::F64(0.0), Combine::Error)?;
    converted(name, tensor, request)
}

/// A tensor in the format of the command line, if that names one.
fn converted(name: &str, tensor: Tensor, request: &RunRequest) -> Result<Tensor, CommandError> {
    match request.formats.iter().find(|(n, _)| n == name) {
        Some((_, spec)) => Ok(stored_as(name, &tensor, spec)?),
        None => Ok(tensor),
    }
}

/// A tensor in a format of the command line, which a diagnostic then names.
pub(crate) fn stored_as(name: &str, tensor: &Tensor, spec: &FormatSpec) -> Result<Tensor, Diagnostic> {
    let converted = spec.with_rank(tensor.rank()).and_then(|format| tensor.convert(&format));
    converted.map_err(|d| d.note(format!("`{name}` was to be stored as `{spec}` (`-f {name}=...`)")))
}
