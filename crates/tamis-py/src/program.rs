//! Loop programs called from Python, and the registry of user-defined operators.

use crate::einsum::{CallArguments, DetachedOperand, or_raise, to_python, total_nnz};
use crate::{arrays, errors, settings, work};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use tamis::algebra::{Laws, Op};
use tamis::compile::PreparedProgram;
use tamis::diagnostic::{Code, Source};
use tamis::schedule::Schedule;
use tamis::{Diagnostic, Program, Tensor};

/// A loop program as a Python callable.
#[pyclass(name = "Program", module = "tamis._tamis", subclass, frozen)]
pub(crate) struct PyProgram {
    pub(crate) prepared: Arc<PreparedProgram>,
    pub(crate) params: Vec<String>,
    results: Vec<String>,
    text: String,
    source: String,
    pub(crate) schedule: Schedule,
    call_times: Arc<work::CallTimes>,
}

impl PyProgram {
    /// For each parameter, the position of its operand.
    pub(crate) fn positions(&self, positional: usize, names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
        let (params, name) = (&self.params, &self.prepared.program().name);
        if let Some(unknown) = names.iter().find(|name| !params.iter().any(|param| param == *name)) {
            let d = Diagnostic::new(Code::E0903, format!("`{name}` has no parameter `{unknown}`"));
            return Err(d.help(format!("its parameters are {}", params.join(", "))));
        }
        if positional > params.len() {
            let d = Diagnostic::new(Code::E0902, format!("`{name}` takes {} tensors, not {positional}", params.len()));
            return Err(d.help(format!("pass {}", params.join(", "))));
        }
        let position = |(k, param): (usize, &String)| {
            let named = names.iter().position(|name| name == param);
            match (k < positional, named) {
                (true, None) => Ok(k),
                (false, Some(named)) => Ok(positional + named),
                (true, Some(_)) => {
                    Err(Diagnostic::new(Code::E0903, format!("`{param}` is given twice, by position and by name"))
                        .help("give it once"))
                }
                (false, None) => Err(Diagnostic::new(
                    Code::E0902,
                    format!("the parameter `{param}` of `{name}` was given no tensor"),
                )
                .help(format!("pass {}", params.join(", ")))),
            }
        };
        params.iter().enumerate().map(position).collect()
    }
}

#[pymethods]
impl PyProgram {
    /// Parses a program. `source` names the text in errors.
    #[new]
    #[pyo3(signature = (text, source = "program", schedule = None))]
    fn new(py: Python<'_>, text: &str, source: &str, schedule: Option<&str>) -> PyResult<PyProgram> {
        let program = or_raise(py, Program::parse_source_with(&Source::new(source, text), &operators()))?;
        let schedule = or_raise(py, Schedule::parse(schedule.unwrap_or_default()))?;
        let name = |id: &tamis::program::TensorId| program.tensor(*id).name.clone();
        let (params, results) = (program.params.iter().map(name).collect(), program.results.iter().map(name).collect());
        Ok(PyProgram {
            call_times: Arc::default(),
            prepared: Arc::new(PreparedProgram::new(program)),
            params,
            results,
            text: text.to_string(),
            source: source.to_string(),
            schedule,
        })
    }

    /// The name of the program.
    #[getter]
    fn name(&self) -> &str {
        &self.prepared.program().name
    }

    /// The text of the program.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The index notation that the loops are, and for each result that of the notation.
    fn notation(&self, py: Python<'_>) -> PyResult<crate::grad::LoopNotation> {
        or_raise(py, tamis::Notation::of_loops(self.prepared.program()))
    }

    /// The name of the text in errors.
    #[getter]
    fn source(&self) -> &str {
        &self.source
    }

    /// The scheduling commands.
    #[getter]
    fn schedule(&self) -> String {
        self.schedule.to_string()
    }

    /// The names of the parameters, in order.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.params)
    }

    /// The names of the results, in the order of ``return``.
    #[getter]
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.results)
    }

    fn __str__(&self) -> String {
        self.prepared.program().to_string()
    }

    #[pyo3(signature = (*operands, **tensors))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyTuple>,
        tensors: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = CallArguments::new(operands, tensors)?;
        let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
        let options = settings::current(py)?.compile_options(self.schedule.clone());
        let positions = work::run_attached(py, || Ok(self.positions(operands.len(), &names)?))?;
        drop(names);
        let detached: Vec<DetachedOperand> = given.operands.into_iter().map(DetachedOperand::from).collect();
        let prepared = self.prepared.clone();
        let compute = move |detached: &[DetachedOperand]| {
            let refs: Vec<&Tensor> =
                positions.iter().filter_map(|position| detached.get(*position)).map(DetachedOperand::tensor).collect();
            prepared.call(&refs, &options)
        };
        let (nnz, call_times) = (total_nnz(&detached), self.call_times.clone());
        let long = nnz > work::LONG && !call_times.is_short(nnz);
        let compute = move || call_times.time(nnz, || compute(&detached));
        let results = match long {
            false => work::run(py, compute)?,
            true => work::run_long(py, compute)?,
        };
        errors::warn(py, &self.prepared.take_warnings())?;
        to_python(py, results)
    }
}

/// The user-defined operators, which texts refer to by name. A later definition replaces an earlier
/// one of the same name.
static OPERATORS: RwLock<Vec<Op>> = RwLock::new(Vec::new());
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The user-defined operators.
pub(crate) fn operators() -> Vec<Op> {
    OPERATORS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// The generation of the operators: the number of definitions.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// A user-defined operator.
#[pyclass(name = "Operator", module = "tamis._tamis", frozen)]
pub(crate) struct PyOperator {
    /// The name by which texts call it.
    #[pyo3(get)]
    name: String,
    /// The names of its operands.
    #[pyo3(get)]
    parameters: Vec<String>,
    /// The expression that it returns.
    #[pyo3(get)]
    body: String,
}

#[pymethods]
impl PyOperator {
    fn __repr__(&self) -> String {
        format!("<tamis operator {}({}): {}>", self.name, self.parameters.join(", "), self.body)
    }
}

/// Defines an operator for later texts.
#[pyfunction]
#[pyo3(signature = (name, parameters, body, *, commutative=false, associative=false, idempotent=false, identity=None, left_identity=None, right_identity=None, annihilator=None, derivative=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn define(
    py: Python<'_>,
    name: &str,
    parameters: Vec<String>,
    body: &str,
    commutative: bool,
    associative: bool,
    idempotent: bool,
    identity: Option<&Bound<'_, PyAny>>,
    left_identity: Option<&Bound<'_, PyAny>>,
    right_identity: Option<&Bound<'_, PyAny>>,
    annihilator: Option<&Bound<'_, PyAny>>,
    derivative: Option<Vec<String>>,
) -> PyResult<PyOperator> {
    let number = |given: Option<&Bound<'_, PyAny>>| given.map(arrays::value).transpose();
    let laws = Laws {
        commutative,
        associative,
        idempotent,
        left_identity: number(left_identity.or(identity))?,
        right_identity: number(right_identity.or(identity))?,
        annihilator: number(annihilator)?,
    };
    let names: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let derivative = derivative.unwrap_or_default();
    let derivative: Vec<&str> = derivative.iter().map(String::as_str).collect();
    let op = or_raise(py, tamis::algebra::define_with_derivatives(name, &names, body, laws, &derivative))?;
    let mut known = OPERATORS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let same = |other: &Op| matches!((other, op), (Op::User(a), Op::User(b)) if a.name() == b.name());
    known.retain(|other| !same(other));
    known.push(op);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    Ok(PyOperator { name: name.to_string(), parameters: parameters.clone(), body: body.to_string() })
}
