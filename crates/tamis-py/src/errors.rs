//! Python exceptions and warnings from diagnostics.

use crate::hooks;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tamis::diagnostic::{Code, Severity, UnknownCode};
use tamis::{Diagnostic, Diagnostics};

/// The exception for diagnostics: the first one, with the others beside it.
pub(crate) fn raise(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let Some(hooks) = hooks::get(py) else { return PyRuntimeError::new_err(diagnostics.to_string()) };
    let made = || -> PyResult<PyErr> {
        let errors = diagnostics.0.iter().filter(|d| d.severity == Severity::Error);
        let parts = errors.map(|d| parts(py, d)).collect::<PyResult<Vec<_>>>()?;
        let text = diagnostics.render(false);
        let exception = hooks.error.bind(py).call1((text.trim_end(), PyList::new(py, parts)?))?;
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|error| error)
}

/// The exception for one diagnostic.
pub(crate) fn raise_one(py: Python<'_>, diagnostic: Diagnostic) -> PyErr {
    raise(py, &diagnostic.into())
}

/// Issues performance warnings, which a filter may convert to exceptions.
pub(crate) fn warn(py: Python<'_>, warnings: &[Diagnostic]) -> PyResult<()> {
    let Some(hooks) = hooks::get(py) else { return Ok(()) };
    warnings.iter().try_for_each(|d| {
        let text = d.render(false);
        hooks.warn.bind(py).call1((text.trim_end(), parts(py, d)?)).map(drop)
    })
}

/// Code, message, span, notes and help.
fn parts<'py>(py: Python<'py>, d: &Diagnostic) -> PyResult<Bound<'py, PyTuple>> {
    let span = match (&d.source, d.labels.first(), &d.place) {
        (Some(source), Some(label), _) => {
            let (line, column) = source.line_column(label.span.start);
            let (end_line, end_column) = source.line_column(label.span.end);
            Some((source.name.clone(), Some(line as u64), Some(column), Some(end_line), Some(end_column)))
        }
        (_, _, Some(place)) => Some((place.file.clone(), place.line, None, None, None)),
        _ => None,
    };
    (
        d.code.name(),
        &d.message,
        span,
        PyTuple::new(py, &d.notes)?,
        PyTuple::new(py, &d.help)?,
        d.render(false).trim_end(),
    )
        .into_pyobject(py)
}

/// Raises a diagnostic that the Python package has found.
#[pyfunction]
pub(crate) fn raise_error(py: Python<'_>, code: &str, message: &str, help: Vec<String>) -> PyResult<()> {
    let code: Code = code.parse().map_err(|unknown: UnknownCode| PyValueError::new_err(unknown.to_string()))?;
    let d = help.into_iter().fold(Diagnostic::new(code, message), |d, help| d.help(help));
    Err(raise_one(py, d))
}

/// Every code with its title and explanation.
#[pyfunction]
pub(crate) fn codes() -> Vec<(&'static str, &'static str, &'static str)> {
    Code::ALL.iter().map(|code| (code.name(), code.title(), code.explanation())).collect()
}
