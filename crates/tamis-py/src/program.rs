//! Loop programs called from Python, and operators that users define.

use crate::einsum::{Free, Given, entries, give, told};
use crate::{arrays, errors, settings, work};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use tamis::schedule::Schedule;
use tamis::{Code, Diagnostic, Laws, Op, PreparedProgram, Program, Source, Tensor};

/// A loop program that can be called.
#[pyclass(name = "Program", module = "tamis._tamis", subclass, frozen)]
pub(crate) struct PyProgram {
    pub(crate) prepared: Arc<PreparedProgram>,
    pub(crate) params: Vec<String>,
    results: Vec<String>,
    text: String,
    source: String,
    pub(crate) schedule: Schedule,
    waited: Arc<work::Waited>,
}

impl PyProgram {
    /// For each parameter, which operand it is.
    pub(crate) fn places(&self, positional: usize, names: &[&str]) -> Result<Vec<usize>, Diagnostic> {
        let (params, name) = (&self.params, &self.prepared.program().name);
        if let Some(unknown) = names.iter().find(|name| !params.iter().any(|param| param == *name)) {
            let d = Diagnostic::new(Code::E0903, format!("`{name}` has no parameter `{unknown}`"));
            return Err(d.help(format!("its parameters are {}", params.join(", "))));
        }
        if positional > params.len() {
            let d = Diagnostic::new(Code::E0902, format!("`{name}` takes {} tensors, not {positional}", params.len()));
            return Err(d.help(format!("pass {}", params.join(", "))));
        }
        let place = |(k, param): (usize, &String)| {
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
        params.iter().enumerate().map(place).collect()
    }
}

#[pymethods]
impl PyProgram {
    /// Reads a program. `source` is what errors call the text.
    #[new]
    #[pyo3(signature = (text, source = "program", schedule = None))]
    fn new(py: Python<'_>, text: &str, source: &str, schedule: Option<&str>) -> PyResult<PyProgram> {
        let program = told(py, Program::parse_source_with(&Source::new(source, text), &operators()))?;
        let schedule = told(py, Schedule::parse(schedule.unwrap_or_default()))?;
        let name = |id: &tamis::program::TensorId| program.tensor(*id).name.clone();
        let (params, results) = (program.params.iter().map(name).collect(), program.results.iter().map(name).collect());
        Ok(PyProgram {
            waited: Arc::default(),
            prepared: Arc::new(PreparedProgram::new(program)),
            params,
            results,
            text: text.to_string(),
            source: source.to_string(),
            schedule,
        })
    }

    /// The program's own name.
    #[getter]
    fn name(&self) -> &str {
        &self.prepared.program().name
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// What errors call the text.
    #[getter]
    fn source(&self) -> &str {
        &self.source
    }

    /// The scheduling commands.
    #[getter]
    fn schedule(&self) -> String {
        self.schedule.to_string()
    }

    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.params)
    }

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
        let given = Given::new(operands, tensors)?;
        let names = given.names.iter().map(|name| name.to_str()).collect::<PyResult<Vec<_>>>()?;
        let options = settings::current(py)?.compile_options(self.schedule.clone());
        let places = work::here(py, || Ok(self.places(operands.len(), &names)?))?;
        drop(names);
        let free: Vec<Free> = given.operands.into_iter().map(Free::from).collect();
        let prepared = self.prepared.clone();
        let compute = move |free: &[Free]| {
            let refs: Vec<&Tensor> = places.iter().filter_map(|place| free.get(*place)).map(Free::tensor).collect();
            prepared.call(&refs, &options)
        };
        let (looked_at, waited) = (entries(&free), self.waited.clone());
        let long = looked_at > work::LONG && !waited.is_short(looked_at);
        let compute = move || waited.time(looked_at, || compute(&free));
        let results = match long {
            false => work::run(py, compute)?,
            true => work::run_long(py, compute)?,
        };
        errors::warn(py, &self.prepared.take_warnings())?;
        give(py, results)
    }
}

/// Operators that were defined, which later texts know by name. One that is defined again takes the place of the first.
static OPERATORS: RwLock<Vec<Op>> = RwLock::new(Vec::new());
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The operators that texts know.
pub(crate) fn operators() -> Vec<Op> {
    OPERATORS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// Counts changes of the operators.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// An operator that a user defined.
#[pyclass(name = "Operator", module = "tamis._tamis", frozen)]
pub(crate) struct PyOperator {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    parameters: Vec<String>,
    #[pyo3(get)]
    body: String,
}

#[pymethods]
impl PyOperator {
    fn __repr__(&self) -> String {
        format!("<tamis operator {}({}): {}>", self.name, self.parameters.join(", "), self.body)
    }
}

/// Defines an operator for the texts that come after.
#[pyfunction]
#[pyo3(signature = (name, parameters, body, *, commutative=false, associative=false, idempotent=false, identity=None, left_identity=None, right_identity=None, annihilator=None))]
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
    let op = told(py, tamis::op(name, &names, body, laws))?;
    let mut known = OPERATORS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let same = |other: &Op| matches!((other, op), (Op::User(a), Op::User(b)) if a.name() == b.name());
    known.retain(|other| !same(other));
    known.push(op);
    GENERATION.fetch_add(1, Ordering::AcqRel);
    Ok(PyOperator { name: name.to_string(), parameters: parameters.clone(), body: body.to_string() })
}
