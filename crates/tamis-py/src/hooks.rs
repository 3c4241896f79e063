//! Hooks: classes and functions that the Python package passes to this module.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

pub(crate) struct Hooks {
    /// The class that tensors come out as.
    pub(crate) tensor: Py<PyType>,
    /// Makes an exception of the parts of a diagnostic.
    pub(crate) error: Py<PyAny>,
    /// Makes one value of several results and their names.
    pub(crate) results: Py<PyAny>,
    /// Makes a tensor of anything that it can be made of, sharing memory.
    pub(crate) asarray: Py<PyAny>,
    /// Issues a performance warning at the line of the user that calls the package.
    pub(crate) warn: Py<PyAny>,
    /// The settings of the `with` block that the caller is in, or none.
    pub(crate) scope: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Called once, when the package is imported.
#[pyfunction]
pub(crate) fn install(
    py: Python<'_>,
    tensor: Py<PyType>,
    error: Py<PyAny>,
    results: Py<PyAny>,
    asarray: Py<PyAny>,
    warn: Py<PyAny>,
    scope: Py<PyAny>,
) {
    HOOKS.get_or_init(py, || Hooks { tensor, error, results, asarray, warn, scope });
}

/// The hooks; none if the module is used without its package.
pub(crate) fn get(py: Python<'_>) -> Option<&Hooks> {
    HOOKS.get(py)
}
