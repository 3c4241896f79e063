//! `tamis explain PROGRAM`: prints the stages of a compilation, for tensors of assumed sizes.

use crate::args::{ExplainArgs, Stage};
use crate::input::{self, Named};
use crate::planned::PlannedNotation;
use crate::request::ProgramText;
use crate::shell::{CommandError, CommandResult, Shell};
use crate::source::{is_notation, source};
use crate::{analyze, operators};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::io::Write;
use tamis::analyze::Analysis;
use tamis::compile::{CompileOptions, Signature};
use tamis::explain::Explanation;
use tamis::format::FormatSpec;
use tamis::{DType, Program};
use tamis_ir::diag::{Code, Diagnostic, counted, did_you_mean};

/// Shows the requested stages, in the order of compilation.
pub(crate) fn explain(text: &ProgramText, args: &ExplainArgs, shell: &mut Shell) -> CommandResult {
    let (formats, dtypes) = (input::formats(&args.formats)?, input::dtypes(&args.dtypes)?);
    let mut stages = args.emit.clone();
    stages.sort();
    stages.dedup();
    let source = source(text)?;
    let operators = operators::read(&args.operators)?;
    if is_notation(text, &source) {
        if stages.is_empty() {
            stages.extend(default_stage(args, Stage::Schedule));
        }
        let planned = PlannedNotation::new(&source, &operators, &formats, &dtypes, args)?;
        let (explanation, mut texts) = after_passes(planned.explain(args, shell)?, args)?;
        for stage in stages {
            let text = match stage {
                Stage::Schedule => planned.plan.comments() + &explanation.schedule(),
                other => of_stage(other, &planned.plan.program, Some(&explanation))?,
            };
            texts.push((name(stage).into(), text));
        }
        let analysis = if args.analyze { Some(planned.analyze(args)?) } else { None };
        return show(texts, analysis.as_ref(), args, shell);
    }
    if args.analyze && args.order.is_empty() {
        return analyze::program(&source, &operators, &stages, args, shell);
    }
    if !args.inputs.is_empty() || !args.order.is_empty() {
        let d = Diagnostic::new(Code::E0905, "inputs and orders are for index notation");
        return Err(CommandError::usage(vec![d.help("give formats of a program's tensors: -f A=csr")]));
    }
    if stages.is_empty() {
        stages.extend(default_stage(args, Stage::Program));
    }
    let program = Program::parse_source_with(&source, &operators)?;
    check_names(&program, &formats, &dtypes)?;
    let explanation = match &stages[..] {
        [Stage::Program] if args.schedule.is_empty() && args.print_after.is_empty() => None,
        _ => Some(compile(&program, &formats, &dtypes, args, shell)?),
    };
    let (explanation, mut texts) = match explanation {
        Some(explanation) => {
            let (explanation, texts) = after_passes(explanation, args)?;
            (Some(explanation), texts)
        }
        None => (None, Vec::new()),
    };
    for stage in stages {
        texts.push((name(stage).into(), of_stage(stage, &program, explanation.as_ref())?));
    }
    show(texts, None, args, shell)
}

/// The stage to show where none is requested: the kernel that a pass leaves, if compilation ends
/// there, and nothing beside kernels after passes.
fn default_stage(args: &ExplainArgs, usual: Stage) -> Option<Stage> {
    match (&args.stop_after, args.print_after.is_empty()) {
        (Some(_), _) => Some(Stage::Kernel),
        (None, true) => Some(usual),
        (None, false) => None,
    }
}

/// A heading and a text.
pub(crate) type Titled = (Cow<'static, str>, String);

/// The kernels after the requested passes, and the explanation of a compilation that ends where it
/// is requested to.
fn after_passes(explanation: Explanation, args: &ExplainArgs) -> Result<(Explanation, Vec<Titled>), CommandError> {
    let usage = |d: Diagnostic| CommandError::usage(vec![d]);
    let mut texts = Vec::new();
    for pass in &args.print_after {
        let kernels = explanation.after(pass).map_err(usage)?;
        for (k, kernel) in kernels.iter().enumerate() {
            let heading = match kernels.len() {
                1 => format!("after {pass}"),
                runs => format!("after {pass}, run {} of {runs}", k + 1),
            };
            texts.push((heading.into(), kernel.to_string()));
        }
    }
    let explanation = match &args.stop_after {
        Some(pass) => explanation.stop_after(pass).map_err(usage)?,
        None => explanation,
    };
    Ok((explanation, texts))
}

/// Shows stages, and the analysis of a run.
pub(crate) fn show(
    mut texts: Vec<Titled>,
    analysis: Option<&Analysis>,
    args: &ExplainArgs,
    shell: &mut Shell,
) -> CommandResult {
    if args.json {
        let mut document: Map<String, Json> =
            texts.into_iter().map(|(name, text)| (name.to_string(), json!(text))).collect();
        document.extend(analysis.map(|analysis| ("analysis".to_string(), analyze::as_json(analysis))));
        return shell.print_json(&Json::Object(document));
    }
    if let Some(analysis) = analysis {
        texts.push(("analysis".into(), analysis.to_string()));
        texts.extend(args.parts.then(|| ("parts".into(), analysis.kernel_loops())));
    }
    // A single stage has no heading, so that other programs can read it.
    let headings = texts.len() > 1;
    for (k, (name, text)) in texts.iter().enumerate() {
        if headings {
            writeln!(shell.out, "{}== {name} ==", if k > 0 { "\n" } else { "" })?;
        }
        writeln!(shell.out, "{}", text.trim_end_matches('\n'))?;
    }
    Ok(())
}

pub(crate) fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Schedule => "schedule",
        Stage::Program => "program",
        Stage::Looplets => "looplets",
        Stage::Kernel => "kernel",
        Stage::C => "c",
        Stage::Llvm => "llvm",
        Stage::Asm => "asm",
    }
}

/// The text of a stage.
pub(crate) fn of_stage(
    stage: Stage,
    program: &Program,
    explanation: Option<&Explanation>,
) -> Result<String, CommandError> {
    let Some(explanation) = explanation else { return Ok(program.to_string()) };
    Ok(match stage {
        Stage::Schedule => explanation.schedule(),
        Stage::Program => explanation.program().to_string(),
        Stage::Looplets => explanation.looplets().join("\n"),
        Stage::Kernel => explanation.kernel().to_string(),
        Stage::C => explanation.c()?,
        Stage::Llvm => explanation.machine()?.llvm,
        Stage::Asm => explanation.machine()?.assembly,
    })
}

fn compile(
    program: &Program,
    formats: &Named<FormatSpec>,
    dtypes: &Named<DType>,
    args: &ExplainArgs,
    shell: &Shell,
) -> Result<Explanation, CommandError> {
    let formats: Vec<(&str, FormatSpec)> = formats.iter().map(|(name, spec)| (name.as_str(), spec.clone())).collect();
    let dtypes: Vec<(&str, DType)> = dtypes.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
    let signature = Signature::assumed(program, &formats, &dtypes)?;
    let schedule = crate::request::schedule(&args.schedule).map_err(|errors| CommandError::usage(errors.0))?;
    let options = CompileOptions { check: args.check, schedule, ..CompileOptions::default() };
    let explanation = tamis::explain(program, &signature, &options)?;
    shell.warn(explanation.warnings());
    Ok(explanation)
}

/// Checks that every name is a parameter, and every format has its rank.
pub(crate) fn check_names(program: &Program, formats: &Named<FormatSpec>, dtypes: &[(String, DType)]) -> CommandResult {
    let names = |ids: &[tamis_ir::program::TensorId]| -> Vec<&str> {
        ids.iter().map(|id| program.tensor(*id).name.as_str()).collect()
    };
    let params = names(&program.params);
    let mut mistakes = Vec::new();
    let given = formats.iter().map(|(name, _)| name).chain(dtypes.iter().map(|(name, _)| name));
    for name in given.filter(|name| !params.contains(&name.as_str())) {
        let d = Diagnostic::new(Code::E0903, format!("`{}` has no parameter `{name}`", program.name));
        let d = match did_you_mean(name, params.iter().copied()) {
            Some(meant) => d.help(format!("did you mean `{meant}`?")),
            None => d,
        };
        let d = if names(&program.results).contains(&name.as_str()) {
            d.note("the formats and types of results are those that the program declares")
        } else {
            d
        };
        mistakes.push(d.help(format!("it has {}", params.join(", "))));
    }
    for id in &program.params {
        let info = program.tensor(*id);
        let wanted = formats.iter().find(|(name, _)| *name == info.name);
        if let Some(Err(d)) = wanted.map(|(_, spec)| spec.with_rank(info.rank)) {
            mistakes.push(d.note(format!("`{}` has {} in the program", info.name, counted(info.rank, "subscript"))));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(CommandError::usage(mistakes)) }
}
