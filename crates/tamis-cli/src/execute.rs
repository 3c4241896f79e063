//! Executing a [`RunRequest`]: the program is read, its inputs are found, it runs, its results are shown and written.

use crate::convert::{warn_of_shape, write_out};
use crate::input::{InputSpec, Named};
use crate::load::{Wish, load};
use crate::operators;
use crate::progress::Progress;
use crate::run::{OutputTarget, ProgramText, RunRequest};
use crate::shell::{Failure, Outcome, Shell};
use crate::times;
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tamis::{Build, CompileOptions, EinsumOptions, Executable, Notation, Pins, Scheduled, Signature, WorkspaceReport};
use tamis_ir::algebra::Op;
use tamis_ir::text::lexer::MAX_TEXT;
use tamis_ir::{Code, Diagnostic, Format, FormatSpec, Kind, Program, Source, Value, diag::did_you_mean};
use tamis_tensor::gallery;
use tamis_tensor::io::{FileKind, WriteOptions, write};
use tamis_tensor::{Combine, Tensor};

/// Results up to this many entries are shown, and part of the JSON.
const SHOWN: usize = 12;
const IN_JSON: usize = 10_000;

/// Runs a program.
pub(crate) fn run(request: &RunRequest, shell: &mut Shell) -> Outcome {
    let mut times = Vec::new();
    let start = Instant::now();
    let source = source(&request.program)?;
    let operators = operators::read(&request.operators)?;
    let notation = match is_notation(&request.program, &source) {
        true => Some(notation(&source, &request.inputs, &operators)?),
        false => None,
    };
    let program = match &notation {
        Some(notation) => notation.interface()?,
        None => Program::parse_source_with(&source, &operators)?,
    };
    check_names(&program, request)?;
    check_pins(notation.as_ref(), request)?;
    times.push(("parse", start.elapsed()));

    let start = Instant::now();
    let inputs = inputs(&program, request)?;
    times.push(("read", start.elapsed()));

    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let start = Instant::now();
    let options = CompileOptions {
        strict: request.strict,
        check: request.check,
        check_limit: Some(request.check_limit),
        interpret: request.interpret,
        schedule: request.schedule.clone(),
    };
    let compiled = match &notation {
        Some(notation) => {
            let formats = result_formats(&program, &request.formats)?;
            let pins = Pins { order: request.order.clone(), formats, keep: request.keep, ..Pins::default() };
            Compiled::Notation(tamis::schedule_notation(notation, &tensors, &EinsumOptions { compile: options, pins })?)
        }
        None => Compiled::Program(tamis::compile(&program, &Signature::of(&tensors), &options)?),
    };
    match &compiled {
        Compiled::Notation(scheduled) => {
            times.push(("schedule", scheduled.scheduling));
            times.push(("compile", start.elapsed().saturating_sub(scheduled.scheduling)));
        }
        Compiled::Program(_) => times.push(("compile", start.elapsed())),
    }
    let build = compiled.executable().build();
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    shell.warn(&tamis::with_counts(&build.warnings, &names, &tensors));
    if build.interpreted.is_some() {
        warn_if_slow(&program, &tensors, f64::INFINITY, shell);
    } else if request.check {
        warn_if_slow(&program, &tensors, request.check_limit as f64, shell);
    }
    let start = Instant::now();
    let called = {
        let _progress = Progress::start(if build.interpreted.is_some() { "interpreting" } else { "running" });
        match &compiled {
            Compiled::Notation(scheduled) => scheduled.call_timed(&tensors)?,
            Compiled::Program(executable) => executable.call_timed(&tensors)?,
        }
    };
    times.push((if build.interpreted.is_some() { "interpret" } else { "kernel" }, called.kernel));
    // What is not the kernel: arrays become tensors, in check mode compared with the interpreter's.
    let mut finishing = start.elapsed().saturating_sub(called.kernel);

    let start = Instant::now();
    let mut finished = Vec::new();
    for (name, tensor) in called.results {
        let wanted = request.formats.iter().find(|(n, _)| *n == name);
        let tensor = match wanted {
            Some((_, spec)) => stored_as(&name, &tensor, spec)?,
            None => tensor,
        };
        finished.push((name, tensor));
    }
    finishing += start.elapsed();
    times.push((if request.check { "check" } else { "finish" }, finishing));

    let start = Instant::now();
    for (name, target) in &request.outputs {
        let Some((_, tensor)) = finished.iter().find(|(n, _)| n == name) else { continue };
        let options = WriteOptions {
            header: request.header && target.kind() == Some(FileKind::Frostt),
            ..WriteOptions::default()
        };
        let (shown, written) = match target {
            OutputTarget::File(path) => {
                let shown = path.display().to_string();
                let _progress = Progress::start(format!("writing {shown}"));
                let written = write(path, tensor, &options)?;
                (shown, written)
            }
            OutputTarget::StandardOutput => {
                ("standard output".to_string(), write_out(FileKind::Frostt, &mut shell.out, tensor, &options)?)
            }
        };
        warn_of_shape(&shown, tensor, &written, shell);
    }
    times.push(("write", start.elapsed()));
    let on_standard_output = request.outputs.iter().any(|(_, to)| *to == OutputTarget::StandardOutput);
    let measured = Measured { times: &times, workspaces: &called.workspaces, build };
    show(request, &finished, &measured, on_standard_output, shell)
}

/// What runs.
enum Compiled {
    Program(Executable),
    Notation(Scheduled),
}

impl Compiled {
    fn executable(&self) -> &Executable {
        match self {
            Compiled::Program(executable) => executable,
            Compiled::Notation(scheduled) => &scheduled.executable,
        }
    }
}

/// Whether a text says what to compute, and not how. Python files hold programs.
pub(crate) fn is_notation(program: &ProgramText, source: &Source) -> bool {
    let python = matches!(program, ProgramText::File(path) if path.extension().is_some_and(|kind| kind == "py"));
    !python && Notation::looks_like(&source.text)
}

/// Reads index notation; operands of NumPy's spelling are the inputs, in order.
pub(crate) fn notation<T>(source: &Arc<Source>, inputs: &Named<T>, operators: &[Op]) -> Result<Notation, Failure> {
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    Ok(match Notation::is_einsum(&source.text) {
        true => Notation::einsum(source.text.trim_end(), &names, "out")?,
        false => Notation::parse_given(source, operators, &names)?,
    })
}

/// An order of loops is for index notation: programs have theirs.
fn check_pins(notation: Option<&Notation>, request: &RunRequest) -> Outcome {
    if notation.is_none() && !request.order.is_empty() {
        let d = Diagnostic::new(Code::E0905, "--order is for index notation: a program fixes the order of its loops");
        return Err(Failure::usage(vec![d.help("use -s \"reorder(i,j)\"")]));
    }
    if notation.is_none() && request.keep {
        let d = Diagnostic::new(Code::E0905, "--keep is for index notation: programs convert nothing");
        return Err(Failure::usage(vec![d.help("leave it out")]));
    }
    Ok(())
}

/// The formats that results are wanted in.
pub(crate) fn result_formats(program: &Program, wanted: &Named<FormatSpec>) -> Result<Vec<(String, Format)>, Failure> {
    let mut formats = Vec::new();
    for id in &program.results {
        let info = program.tensor(*id);
        if let Some((_, spec)) = wanted.iter().find(|(name, _)| *name == info.name)
            && info.rank > 0
        {
            formats.push((info.name.clone(), spec.with_rank(info.rank)?));
        }
    }
    Ok(formats)
}

/// The text of a program.
pub(crate) fn source(program: &ProgramText) -> Result<Arc<Source>, Failure> {
    match program {
        ProgramText::Text(text) => Ok(Source::new("program", text.clone())),
        ProgramText::StandardInput => limited("program", "standard input".into(), &mut std::io::stdin()),
        ProgramText::File(path) => file("program", path, "check the path, or give the program itself as the argument"),
    }
}

/// The text of a file that holds a program or the like.
pub(crate) fn file(what: &str, path: &Path, help: &str) -> Result<Arc<Source>, Failure> {
    let name = path.display().to_string();
    let mut file = std::fs::File::open(path).map_err(|e| {
        Diagnostic::new(Code::E0801, format!("the {what} cannot be read: {e}")).in_file(name.clone()).help(help)
    })?;
    limited(what, name, &mut file)
}

/// As much as the parser reads: one byte more than a text may have, so that it sees that there is too much.
fn limited(what: &str, name: String, reader: &mut dyn Read) -> Result<Arc<Source>, Failure> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes);
    let unreadable = |message: String, help: &str| {
        Failure::from(Diagnostic::new(Code::E0801, message).in_file(name.clone()).help(help))
    };
    read.map_err(|e| unreadable(format!("the {what} cannot be read: {e}"), "check the file and its permissions"))?;
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(unreadable(
            format!("the {what} is not text: it has zero bytes"),
            if what == "program" { "give a file with a loop program" } else { "give a file of text" },
        )),
        Ok(text) => Ok(Source::new(name, text)),
        Err(_) => Err(unreadable(format!("the {what} is not UTF-8 text"), "save it as UTF-8")),
    }
}

/// Every name on the command line is one of the program's, and every parameter has an input. What is not so is wrong
/// with the command line, not with the program.
pub(crate) fn check_names(program: &Program, request: &RunRequest) -> Outcome {
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
    // A format of another rank is told before anything is read or run.
    for id in program.params.iter().chain(&program.results) {
        let info = program.tensor(*id);
        let wanted = request.formats.iter().find(|(name, _)| *name == info.name);
        if let Some(Err(d)) = wanted.map(|(_, spec)| spec.with_rank(info.rank)) {
            mistakes.push(d.note(format!("`{}` has {} subscripts in the program", info.name, info.rank)));
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
            // Files and other generators are asked when they are read.
            _ => continue,
        };
        let d = Diagnostic::new(
            Code::E0905,
            format!(
                "the shape of `{name}` is already known: it is already known: it is already known: it is what {known}"
            ),
        );
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
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::usage(mistakes)) }
}

/// The tensors of all parameters; shapes that are not given follow from the others.
pub(crate) fn inputs(program: &Program, request: &RunRequest) -> Result<Vec<(String, Tensor)>, Failure> {
    let mut known: Vec<(String, &InputSpec, Option<Tensor>)> = Vec::new();
    for (position, id) in program.params.iter().enumerate() {
        let name = program.tensor(*id).name.clone();
        let Some((_, spec)) = request.inputs.iter().find(|(n, _)| *n == name) else { continue };
        let tensor = made_alone(position, &name, spec, request)?;
        known.push((name, spec, tensor));
    }
    if known.iter().any(|(_, _, tensor)| tensor.is_none()) {
        let tensors: Vec<Option<&Tensor>> = known.iter().map(|(_, _, tensor)| tensor.as_ref()).collect();
        let shapes = tamis::infer_shapes(program, &tensors)?;
        for (k, (name, spec, tensor)) in known.iter_mut().enumerate().filter(|(_, (_, _, t))| t.is_none()) {
            *tensor = Some(made_with_shape(k, name, spec, &shapes[k], request)?);
        }
    }
    Ok(known.into_iter().filter_map(|(name, _, tensor)| Some((name, tensor?))).collect())
}

/// An input that needs nothing from the program.
fn made_alone(position: usize, name: &str, spec: &InputSpec, request: &RunRequest) -> Result<Option<Tensor>, Failure> {
    let format = request.formats.iter().find(|(n, _)| n == name).map(|(_, spec)| spec);
    let shape = request.shapes.iter().find(|(n, _)| n == name).map(|(_, shape)| &shape[..]);
    let wish = Wish { duplicates: request.duplicates, format, shape };
    let loaded = match spec {
        InputSpec::Path(path) => load(path.as_os_str(), &wish)?.tensor,
        InputSpec::Gallery(call) => load(call.text().as_ref(), &wish)?.tensor,
        InputSpec::Number(value) => return Ok(Some(converted(name, Tensor::scalar(*value), request)?)),
        InputSpec::Rand { shape: Some(shape), .. } | InputSpec::Ones { shape: Some(shape) } => {
            return made_with_shape(position, name, spec, shape, request).map(Some);
        }
        InputSpec::Rand { .. } | InputSpec::Ones { .. } => {
            return shape.map(|shape| made_with_shape(position, name, spec, shape, request)).transpose();
        }
    };
    Ok(Some(loaded))
}

fn made_with_shape(
    position: usize,
    name: &str,
    spec: &InputSpec,
    shape: &[u64],
    request: &RunRequest,
) -> Result<Tensor, Failure> {
    let (entries, dense) = match spec {
        InputSpec::Rand { density, seed, .. } => {
            // Inputs without a seed still differ from each other.
            let seed = seed.unwrap_or(position as u64);
            (gallery::random(shape, density.unwrap_or(1.0), seed)?, density.is_none_or(|d| d == 1.0))
        }
        _ => (gallery::ones(shape)?, true),
    };
    let format = if dense { Format::dense(shape.len()) } else { Format::coo(shape.len()) };
    let tensor = Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error)?;
    converted(name, tensor, request)
}

fn converted(name: &str, tensor: Tensor, request: &RunRequest) -> Result<Tensor, Failure> {
    match request.formats.iter().find(|(n, _)| n == name) {
        Some((_, spec)) => Ok(stored_as(name, &tensor, spec)?),
        None => Ok(tensor),
    }
}

/// A tensor in a format of the command line; what does not fit says which of them that was.
fn stored_as(name: &str, tensor: &Tensor, spec: &FormatSpec) -> Result<Tensor, Diagnostic> {
    let converted = spec.with_rank(tensor.rank()).and_then(|format| tensor.convert(&format));
    converted.map_err(|d| d.note(format!("`{name}` was to be stored as `{spec}` (`-f {name}=...`)")))
}

/// The interpreter visits every point of every loop; somebody who waits should know for how long.
fn warn_if_slow(program: &Program, tensors: &[&Tensor], limit: f64, shell: &Shell) {
    let Ok(points) = tamis::interpreter_points(program, tensors) else { return };
    // What is above the limit is refused, when the code that checks has run.
    if points > tamis::CHECK_LIMIT as f64 && points <= limit {
        let d =
            Diagnostic::warning(Code::E1003, format!("the reference interpreter will visit about {points:.1e} points"))
                .note("it visits every point of every loop, stored or not: about three million in a second")
                .help("use smaller inputs");
        shell.warn(&[d]);
    }
}

/// How a run went.
struct Measured<'a> {
    times: &'a [(&'static str, Duration)],
    workspaces: &'a [(String, WorkspaceReport)],
    build: &'a Build,
}

fn show(
    request: &RunRequest,
    results: &[(String, Tensor)],
    measured: &Measured,
    on_standard_output: bool,
    shell: &mut Shell,
) -> Outcome {
    let Measured { times, workspaces, build } = measured;
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
    // A tensor on standard output is for another program; people look at standard error then.
    let mut text = String::new();
    if !on_standard_output {
        for (name, tensor) in results {
            text += &format!("{name}: {}\n{}", tensor.summary(), entries(tensor));
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

/// The first entries that are stored, one line each, and how many there are besides.
fn entries(tensor: &Tensor) -> String {
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

/// A number as JSON; what JSON has no number for (inf, nan, complex) becomes a string.
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
