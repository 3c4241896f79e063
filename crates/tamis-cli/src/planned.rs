//! `tamis explain` of index notation: the schedule, its alternatives, and their predicted costs.

use crate::args::{Duplicates, ExplainArgs, RunArgs};
use crate::input::Named;
use crate::request::RunRequest;
use crate::shell::{CommandError, Shell};
use crate::{execute, operands};
use std::sync::Arc;
use tamis::DType;
use tamis::compile::{CompileOptions, Signature};
use tamis::explain::Explanation;
use tamis::format::FormatSpec;
use tamis::notation::OperandStatistics;
use tamis::notation::{NotationPlan, Pins};
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Source};
use tamis_tensor::Tensor;

/// Index notation with its schedule.
pub(crate) struct PlannedNotation {
    pub(crate) plan: NotationPlan,
    signature: Signature,
    /// The operands, if the command line has any.
    operands: Option<Operands>,
}

/// Notation with its tensors.
struct Operands {
    notation: tamis::Notation,
    tensors: Vec<(String, Tensor)>,
    pins: Pins,
}

impl PlannedNotation {
    /// Schedules notation for inputs, or for tensors of which formats and types are known.
    pub(crate) fn new(
        source: &Arc<Source>,
        operators: &[Op],
        formats: &Named<FormatSpec>,
        dtypes: &Named<DType>,
        args: &ExplainArgs,
    ) -> Result<PlannedNotation, CommandError> {
        let specs = crate::input::inputs(&args.inputs)?;
        let notation = match (specs.is_empty(), tamis::Notation::is_einsum(&source.text)) {
            (true, true) => {
                let operands = source.text.split("->").next().unwrap_or_default().split(',').count();
                let names: Vec<String> = ('A'..='Z').take(operands).map(String::from).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                tamis::Notation::einsum(source.text.trim_end(), &names, "out")?
            }
            _ => crate::source::notation(source, &request(args)?, operators)?,
        };
        let plain = notation.interface()?;
        let pins = Pins {
            order: args.order.clone(),
            formats: execute::result_formats(&plain, formats)?,
            keep: args.keep,
            ..Pins::default()
        };
        if !specs.is_empty() {
            if let Some((name, _)) = dtypes.first() {
                let d = Diagnostic::new(Code::E0905, format!("the type of `{name}` is that of its input"));
                return Err(CommandError::usage(vec![d.help("leave out `--dtype`, or all inputs to assume types")]));
            }
            let request = request(args)?;
            operands::check_names(&plain, &request)?;
            let inputs = operands::inputs(&plain, &request)?;
            let tensors: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| tensor).collect();
            let plan = tamis::notation::plan(&notation, &tensors, &pins)?;
            let converted = tamis::notation::converted_operands(&plan, &notation, &tensors)?;
            let refs: Vec<&Tensor> = converted.iter().map(|tensor| tensor.as_ref()).collect();
            let signature = Signature::of(&refs);
            drop(converted);
            return Ok(PlannedNotation {
                signature,
                plan,
                operands: Some(Operands { notation, tensors: inputs, pins }),
            });
        }
        let params: Vec<&str> = notation.params();
        let known: Vec<(&str, FormatSpec)> = formats
            .iter()
            .filter(|(name, _)| params.contains(&name.as_str()))
            .map(|(name, spec)| (name.as_str(), spec.clone()))
            .collect();
        let typed = dtypes;
        let dtypes: Vec<(&str, DType)> = dtypes.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
        let of_params: Named<FormatSpec> =
            formats.iter().filter(|(name, _)| !notation.results().contains(&name.as_str())).cloned().collect();
        crate::stages::check_names(&plain, &of_params, typed)?;
        let signature = Signature::assumed(&plain, &known, &dtypes)?;
        let operands: Vec<OperandStatistics> = signature.operands(tamis::calibrate::costs()?.density);
        let plan = tamis::notation::plan_for(&notation, signature.types(), &operands, &pins)?;
        let mut given: Vec<(&str, FormatSpec)> = known.clone();
        given.extend(plan.conversions.iter().map(|c| (c.name.as_str(), FormatSpec::from(c.format.clone()))));
        let mut typed = dtypes.clone();
        for conversion in &plan.conversions {
            if let Some((_, dtype)) = dtypes.iter().find(|(name, _)| *name == conversion.source) {
                typed.push((conversion.name.as_str(), *dtype));
            }
        }
        let signature = Signature::assumed(&plan.program, &given, &typed)?;
        Ok(PlannedNotation { plan, signature, operands: None })
    }

    pub(crate) fn explain(&self, args: &ExplainArgs, shell: &Shell) -> Result<Explanation, CommandError> {
        let schedule = crate::request::schedule(&args.schedule).map_err(|errors| CommandError::usage(errors.0))?;
        let options = CompileOptions { check: args.check, schedule, ..CompileOptions::default() };
        let explanation = tamis::explain(&self.plan.program, &self.signature, &options)?;
        let warnings: Vec<Diagnostic> = explanation.warnings().iter().map(|d| self.plan.in_notation(d)).collect();
        shell.warn(&warnings);
        Ok(explanation)
    }

    /// Runs it, and analyses the run.
    pub(crate) fn analyze(&self, args: &ExplainArgs) -> Result<tamis::analyze::Analysis, CommandError> {
        let Some(Operands { notation, tensors, pins }) = &self.operands else {
            return Err(crate::analyze::no_inputs());
        };
        let schedule = crate::request::schedule(&args.schedule).map_err(|errors| CommandError::usage(errors.0))?;
        let compile = CompileOptions { schedule, ..CompileOptions::default() };
        let tensors: Vec<&Tensor> = tensors.iter().map(|(_, tensor)| tensor).collect();
        let options = tamis::notation::EinsumOptions { compile, pins: pins.clone() };
        Ok(tamis::analyze::analyze_notation(notation, &tensors, &options)?)
    }
}

/// The request of an equivalent `tamis run`.
pub(crate) fn request(args: &ExplainArgs) -> Result<RunRequest, CommandError> {
    RunRequest::parse(&RunArgs {
        program: args.subject.clone().unwrap_or_default(),
        operators: args.operators.clone(),
        inputs: args.inputs.clone(),
        formats: args.formats.clone(),
        shapes: Vec::new(),
        outputs: Vec::new(),
        header: false,
        time: false,
        time_passes: false,
        json: false,
        strict: false,
        duplicates: Duplicates::Error,
        interpret: false,
        schedule: Vec::new(),
        order: Vec::new(),
        keep: false,
        check: args.check,
        check_limit: 0,
    })
}
