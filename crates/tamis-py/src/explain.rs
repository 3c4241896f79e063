//! Explanations of compilations for Python; each stage is rendered when its property is read.

use crate::einsum::{CallArguments, CallOperand, EinsumRequest, or_raise, prepared};
use crate::program::PyProgram;
use crate::{errors, settings, work};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::OnceLock;
use tamis::compile::{CompileOptions, Signature};
use tamis::explain::Explanation;
use tamis::notation::NotationPlan;
use tamis::{Program, Tensor};

/// The stages of a compilation.
#[pyclass(name = "Explanation", module = "tamis._tamis", subclass, frozen)]
pub(crate) struct PyExplanation {
    #[pyo3(get)]
    subject: String,
    decisions: Option<String>,
    cost: Option<f64>,
    explanation: Explanation,
    machine: OnceLock<(String, String)>,
}

impl PyExplanation {
    fn machine(&self, py: Python<'_>) -> PyResult<&(String, String)> {
        if let Some(known) = self.machine.get() {
            return Ok(known);
        }
        let texts = work::run(py, || Ok(self.explanation.machine()?))?;
        Ok(self.machine.get_or_init(|| (texts.llvm, texts.assembly)))
    }
}

#[pymethods]
impl PyExplanation {
    /// The decisions, their reasons, and the alternatives.
    #[getter]
    fn schedule(&self) -> String {
        format!("{}{}", self.decisions.as_deref().unwrap_or_default(), self.explanation.schedule())
    }

    /// The loop program.
    #[getter]
    fn program(&self) -> &str {
        self.explanation.program()
    }

    /// The looplets of each access along each loop.
    #[getter]
    fn looplets(&self) -> String {
        self.explanation.looplets().join("\n")
    }

    #[getter]
    fn kernel(&self) -> String {
        self.explanation.kernel().to_string()
    }

    /// The kernel after each run of a pass.
    fn after(&self, py: Python<'_>, pass_name: &str) -> PyResult<Vec<String>> {
        let kernels = self.explanation.after(pass_name).map_err(|d| errors::raise_one(py, d))?;
        Ok(kernels.iter().map(|kernel| kernel.to_string()).collect())
    }

    #[getter]
    fn c(&self, py: Python<'_>) -> PyResult<String> {
        self.explanation.c().map_err(|d| errors::raise_one(py, d))
    }

    #[getter]
    fn llvm(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(&self.machine(py)?.0)
    }

    #[getter]
    fn asm(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(&self.machine(py)?.1)
    }

    /// The predicted cost of the schedule, in steps; none for programs.
    #[getter]
    fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// The passes with their times in seconds.
    #[getter]
    fn passes(&self) -> Vec<(&'static str, f64)> {
        self.explanation.passes().iter().map(|pass| (pass.name, pass.time.as_secs_f64())).collect()
    }

    /// Performance warnings.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.explanation.warnings().iter().map(|d| d.render(false)).collect()
    }
}

fn explanation(
    subject: String,
    plan: Option<&NotationPlan>,
    program: &Program,
    tensors: &[&Tensor],
    options: &CompileOptions,
) -> Result<PyExplanation, tamis::Diagnostics> {
    let explanation = tamis::explain(program, &Signature::of(tensors), options)?;
    let decisions = plan.map(NotationPlan::comments);
    Ok(PyExplanation { subject, decisions, cost: plan.map(|p| p.cost), explanation, machine: OnceLock::new() })
}

/// Explains index notation for these operands.
#[pyfunction]
#[pyo3(signature = (text, /, *operands, format=None, order=None, schedule=None, **tensors))]
pub(crate) fn explain_notation<'py>(
    py: Python<'py>,
    text: &str,
    operands: &Bound<'py, PyTuple>,
    format: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    schedule: Option<&str>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<PyExplanation> {
    let given = CallArguments::new(operands, tensors)?;
    let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
    let request = EinsumRequest::new(py, format, order, schedule)?;
    let (prepared, positions) = or_raise(py, prepared(text, operands.len(), &names, &request))?;
    let refs = in_order(&given.operands, &positions);
    let (notation, options) = (prepared.notation(), prepared.options());
    work::run(py, || {
        let plan = tamis::notation::plan(notation, &refs, &options.pins)?;
        let made = tamis::notation::converted_operands(&plan, notation, &refs)?;
        let made: Vec<&Tensor> = made.iter().map(|tensor| tensor.as_ref()).collect();
        explanation(text.to_string(), Some(&plan), &plan.program, &made, &options.compile)
    })
}

/// Explains a loop program for these operands.
#[pyfunction]
#[pyo3(signature = (program, /, *operands, **tensors))]
pub(crate) fn explain_program<'py>(
    py: Python<'py>,
    program: &Bound<'py, PyProgram>,
    operands: &Bound<'py, PyTuple>,
    tensors: Option<&Bound<'py, PyDict>>,
) -> PyResult<PyExplanation> {
    let given = CallArguments::new(operands, tensors)?;
    let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
    let program = program.get();
    let positions = or_raise(py, program.positions(operands.len(), &names).map_err(Into::into))?;
    let refs = in_order(&given.operands, &positions);
    let options = settings::current(py)?.compile_options(program.schedule.clone());
    let program = program.prepared.program();
    work::run(py, || explanation(program.name.clone(), None, program, &refs, &options))
}

fn in_order<'a>(operands: &'a [CallOperand<'_>], positions: &[usize]) -> Vec<&'a Tensor> {
    positions.iter().filter_map(|position| operands.get(*position)).map(CallOperand::tensor).collect()
}
