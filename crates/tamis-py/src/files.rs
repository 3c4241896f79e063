//! Files, generators and format advice for Python.

use crate::construct::combine;
use crate::tensor::{PyTensor, format, format_text, wrap};
use crate::{settings, work};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::time::Duration;
use tamis::advise::{AdviseOptions, Measurement};
use tamis::io::{ReadOptions, Symmetry, WriteOptions};
use tamis::tensor::{Combine, Coordinates};
use tamis::{Format, Tensor, Value, gallery};

/// Reads a file.
#[pyfunction]
#[pyo3(signature = (path, text=None, shape=None, duplicates="error"))]
pub(crate) fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<&str>,
    shape: Option<Vec<u64>>,
    duplicates: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (duplicates, threads) = (combine(py, duplicates)?, settings::current(py)?.threads);
    let tensor =
        work::run(py, || Ok(tamis::io::read(&path, &ReadOptions { duplicates, shape, progress: None, threads })?))?;
    let tensor = match text {
        Some(text) => {
            let format = format(py, text, tensor.rank())?;
            work::run(py, || Ok(tensor.convert(&format)?))?
        }
        None => tensor,
    };
    wrap(py, tensor, false)
}

/// Writes a file. Returns its size in bytes.
#[pyfunction]
#[pyo3(signature = (path, tensor, comments, header, compress, symmetric))]
pub(crate) fn write(
    py: Python<'_>,
    path: PathBuf,
    tensor: &Bound<'_, PyTensor>,
    comments: Vec<String>,
    header: bool,
    compress: bool,
    symmetric: bool,
) -> PyResult<u64> {
    let tensor = &tensor.get().tensor;
    let symmetry = if symmetric { Symmetry::Symmetric } else { Symmetry::General };
    let options = WriteOptions { symmetry, header, compress, comments };
    work::run(py, || Ok(tamis::io::write(&path, tensor, &options)?.bytes))
}

/// Generates a tensor from a call as text.
#[pyfunction]
#[pyo3(signature = (call, text=None))]
pub(crate) fn generate<'py>(py: Python<'py>, call: &str, text: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let coordinates: Coordinates = work::run(py, || Ok(gallery::generate(call)?))?;
    let rank = coordinates.shape.len();
    let format = match (text, rank) {
        (Some(text), _) => format(py, text, rank)?,
        (None, _) if is_dense(&coordinates) => Format::dense(rank),
        (None, 2) => Format::csr(),
        (None, _) => format(py, "csf", rank)?,
    };
    let fill = Value::zero(coordinates.values.dtype());
    let tensor = work::run(py, || Ok(Tensor::from_coordinates(&coordinates, &format, fill, Combine::Error)?))?;
    wrap(py, tensor, false)
}

/// True if every element is stored.
fn is_dense(coordinates: &Coordinates) -> bool {
    let elements = coordinates.shape.iter().try_fold(1u64, |elements, n| elements.checked_mul(*n));
    elements == Some(coordinates.len() as u64)
}

/// Every generator: name, signature, description.
#[pyfunction]
pub(crate) fn generators() -> Vec<(&'static str, &'static str, &'static str)> {
    gallery::GENERATORS.iter().map(|g| (g.name, g.signature, g.description)).collect()
}

/// Format advice for a tensor, one row per candidate.
#[pyfunction]
pub(crate) fn advise<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    measure: bool,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let tensor = &tensor.get().tensor;
    let time_limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let advice =
        work::run(py, || tamis::advise::advise_with(tensor, &AdviseOptions { measure, time_limit, progress: None }))?;
    let best = advice.best().map(|candidate| &candidate.format);
    let rows = PyList::empty(py);
    for candidate in &advice.candidates {
        let row = PyDict::new(py);
        row.set_item("format", format_text(&candidate.format))?;
        row.set_item("why", &candidate.why)?;
        row.set_item("bytes", candidate.bytes)?;
        row.set_item("whole", candidate.part == tamis::tensor::StoredPart::Whole)?;
        row.set_item("usual", candidate.usual)?;
        row.set_item("best", best == Some(&candidate.format))?;
        row.set_item("seconds", candidate.times().map(|times| times.run.as_secs_f64()))?;
        row.set_item("convert_seconds", candidate.times().map(|times| times.convert.as_secs_f64()))?;
        row.set_item("speedup", advice.speedup(candidate))?;
        let failed = match &candidate.outcome {
            Measurement::Failed(d) => Some(d.message.as_str()),
            _ => None,
        };
        row.set_item("failed", failed)?;
        rows.append(row)?;
    }
    let made = PyDict::new(py);
    made.set_item("task", advice.task.as_ref().map(|task| task.statement()))?;
    made.set_item("unmeasured", &advice.unmeasured)?;
    made.set_item("candidates", rows)?;
    Ok(made)
}
