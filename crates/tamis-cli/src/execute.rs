//! `tamis run`: executes a [`RunRequest`] in phases (parse, read, schedule, compile, call, finish,
//! write).
//!
//! Every phase is timed. Nothing is written before all results exist.

use crate::convert::{warn_of_shape, write_out};
use crate::input::Named;
use crate::progress::Progress;
use crate::request::{OutputTarget, RunRequest};
use crate::results::{RunReport, show};
use crate::shell::{CommandError, CommandResult, Shell};
use crate::{operands, operators, source};
use std::time::{Duration, Instant};
use tamis::Notation;
use tamis::compile::{CallReport, CompileOptions, Executable, Signature};
use tamis::notation::{CompiledNotation, EinsumOptions, Pins};
use tamis_ir::{Code, Diagnostic, Diagnostics, Format, FormatSpec, Program};
use tamis_tensor::Tensor;
use tamis_tensor::io::{FileKind, WriteOptions, write};

/// The phases of a run with their times.
type StageTimes = Vec<(&'static str, Duration)>;

/// Runs a program or index notation, shows its results, and writes those that have a target.
pub(crate) fn run(request: &RunRequest, shell: &mut Shell) -> CommandResult {
    let mut times = StageTimes::new();
    let start = Instant::now();
    let parsed = ParsedProgram::parse(request)?;
    times.push(("parse", start.elapsed()));

    let start = Instant::now();
    let inputs = operands::inputs(&parsed.program, request)?;
    times.push(("read", start.elapsed()));

    let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
    let compiled = parsed.compile(&tensors, request, &mut times)?;
    let build = compiled.executable().build();
    let names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
    shell.warn(&tamis::compile::annotate_warnings(&compiled.warnings(), &names, &tensors));

    let interpreted = build.interpreted.is_some();
    if interpreted {
        warn_if_slow(&parsed.program, &tensors, f64::INFINITY, shell);
    } else if request.check {
        warn_if_slow(&parsed.program, &tensors, request.check_limit as f64, shell);
    }
    let start = Instant::now();
    let report = {
        let _progress = Progress::start(if interpreted { "interpreting" } else { "running" });
        compiled.call(&tensors)?
    };
    times.push((if interpreted { "interpret" } else { "kernel" }, report.kernel));
    // The rest of the call: arrays become tensors, and the check compares them with the
    // interpreter's.
    let finishing = start.elapsed().saturating_sub(report.kernel);

    let start = Instant::now();
    let CallReport { results, workspaces, .. } = report;
    let results = results.into_iter().map(|(name, tensor)| in_requested_format(name, tensor, request));
    let results = results.collect::<Result<Vec<(String, Tensor)>, Diagnostic>>()?;
    times.push((if request.check { "check" } else { "finish" }, finishing + start.elapsed()));

    let start = Instant::now();
    write_outputs(&results, request, shell)?;
    times.push(("write", start.elapsed()));
    show(request, &results, &RunReport { times: &times, workspaces: &workspaces, build }, shell)
}

/// Index notation or a loop program, parsed, with its names checked against the command line.
struct ParsedProgram {
    /// The index notation, if it is one.
    notation: Option<Notation>,
    /// The loop program, or the interface of the notation.
    program: Program,
}

impl ParsedProgram {
    fn parse(request: &RunRequest) -> Result<ParsedProgram, CommandError> {
        let text = source::source(&request.program)?;
        let operators = operators::read(&request.operators)?;
        let notation = match source::is_notation(&request.program, &text) {
            true => Some(source::notation(&text, request, &operators)?),
            false => None,
        };
        let program = match &notation {
            Some(notation) => notation.interface()?,
            None => Program::parse_source_with(&text, &operators)?,
        };
        operands::check_names(&program, request)?;
        if notation.is_none() {
            refuse_notation_options(request)?;
        }
        Ok(ParsedProgram { notation, program })
    }

    fn compile(
        &self,
        tensors: &[&Tensor],
        request: &RunRequest,
        times: &mut StageTimes,
    ) -> Result<CompiledProgram, CommandError> {
        let start = Instant::now();
        let options = CompileOptions {
            strict: request.strict,
            check: request.check,
            check_limit: Some(request.check_limit),
            interpret: request.interpret,
            schedule: request.schedule.clone(),
        };
        let Some(notation) = &self.notation else {
            let executable = tamis::compile(&self.program, &Signature::of(tensors), &options)?;
            times.push(("compile", start.elapsed()));
            return Ok(CompiledProgram::Loops(executable));
        };
        let formats = result_formats(&self.program, &request.formats)?;
        let pins = Pins { order: request.order.clone(), formats, keep: request.keep, ..Pins::default() };
        let compiled = tamis::notation::compile(notation, tensors, &EinsumOptions { compile: options, pins })?;
        times.push(("schedule", compiled.scheduling));
        times.push(("compile", start.elapsed().saturating_sub(compiled.scheduling)));
        Ok(CompiledProgram::Notation(compiled))
    }
}

/// A compiled loop program, or compiled index notation.
enum CompiledProgram {
    Loops(Executable),
    Notation(CompiledNotation),
}

impl CompiledProgram {
    fn executable(&self) -> &Executable {
        match self {
            CompiledProgram::Loops(executable) => executable,
            CompiledProgram::Notation(compiled) => &compiled.executable,
        }
    }

    fn warnings(&self) -> Vec<Diagnostic> {
        match self {
            CompiledProgram::Loops(executable) => executable.build().warnings.clone(),
            CompiledProgram::Notation(compiled) => compiled.warnings(),
        }
    }

    fn call(&self, tensors: &[&Tensor]) -> Result<CallReport, Diagnostics> {
        match self {
            CompiledProgram::Loops(executable) => executable.call_timed(tensors),
            CompiledProgram::Notation(compiled) => compiled.call_timed(tensors),
        }
    }
}

/// A result in the format of the command line, if that names one.
fn in_requested_format(name: String, tensor: Tensor, request: &RunRequest) -> Result<(String, Tensor), Diagnostic> {
    let tensor = match request.formats.iter().find(|(n, _)| *n == name) {
        Some((_, spec)) => operands::stored_as(&name, &tensor, spec)?,
        None => tensor,
    };
    Ok((name, tensor))
}

/// Writes the results that have a target.
fn write_outputs(results: &[(String, Tensor)], request: &RunRequest, shell: &mut Shell) -> CommandResult {
    for (name, target) in &request.outputs {
        let Some((_, tensor)) = results.iter().find(|(n, _)| n == name) else { continue };
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
    Ok(())
}

/// Refuses options of index notation for a loop program.
fn refuse_notation_options(request: &RunRequest) -> CommandResult {
    if !request.order.is_empty() {
        let d = Diagnostic::new(Code::E0905, "--order is for index notation: a program fixes the order of its loops");
        return Err(CommandError::usage(vec![d.help("use -s \"reorder(i,j)\"")]));
    }
    if request.keep {
        let d = Diagnostic::new(Code::E0905, "--keep is for index notation: programs convert nothing");
        return Err(CommandError::usage(vec![d.help("leave it out")]));
    }
    Ok(())
}

/// The formats that the command line gives to results.
pub(crate) fn result_formats(
    program: &Program,
    wanted: &Named<FormatSpec>,
) -> Result<Vec<(String, Format)>, CommandError> {
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

/// Warns of the time that the interpreter takes: it visits every point of every loop.
fn warn_if_slow(program: &Program, tensors: &[&Tensor], limit: f64, shell: &Shell) {
    let Ok(points) = tamis::check::interpreter_points(program, tensors) else { return };
    // Above the limit, the check fails with a diagnostic of its own.
    if points > tamis::check::CHECK_LIMIT as f64 && points <= limit {
        let d =
            Diagnostic::warning(Code::E1003, format!("the reference interpreter will visit about {points:.1e} points"))
                .note("it visits every point of every loop, stored or not: about three million in a second")
                .help("use smaller inputs");
        shell.warn(&[d]);
    }
}
