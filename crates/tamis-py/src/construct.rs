//! Tensors made of arrays; what the arrays mean was sorted out in Python, and whether it is so is checked here.

use crate::tensor::{format, wrap};
use crate::{arrays, errors, work};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::{Code, Combine, Coordinates, Diagnostic, Format, FormatSpec, LevelArrays, Tensor, Value};
use tamis_ir::format::MAX_RANK;

/// The words for combining entries with equal coordinates.
const COMBINE: [(&str, Combine); 9] = [
    ("error", Combine::Error),
    ("sum", Combine::Sum),
    ("prod", Combine::Product),
    ("min", Combine::Min),
    ("max", Combine::Max),
    ("any", Combine::Any),
    ("all", Combine::All),
    ("first", Combine::First),
    ("last", Combine::Last),
];

pub(crate) fn combine(py: Python<'_>, word: &str) -> PyResult<Combine> {
    let found = COMBINE.iter().find(|(name, _)| *name == word).map(|(_, combine)| *combine);
    found.ok_or_else(|| {
        let d = Diagnostic::new(Code::E0708, format!("`{word}` does not say how equal coordinates are combined"));
        errors::raise_one(py, d.help("say error, sum, prod, min, max, any, all, first or last"))
    })
}

/// The tensor of a dense array, borrowed if that is asked for and possible.
pub(crate) fn dense(array: &Bound<'_, PyUntypedArray>, borrow: bool) -> PyResult<(Tensor, bool)> {
    let values = arrays::values(array, borrow)?;
    let shape: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
    let borrowed = borrow && !matches!(values, tamis::ValueArray::Bool(_));
    let fill = Value::zero(values.dtype());
    let tensor = Tensor::from_dense(&shape, values, &dense_format(array.py(), shape.len())?, fill);
    Ok((tensor.map_err(|d| errors::raise_one(array.py(), d))?, borrowed))
}

/// The dense format of a rank that tensors can have.
fn dense_format(py: Python<'_>, rank: usize) -> PyResult<Format> {
    if rank > MAX_RANK { format(py, "dense", rank) } else { Ok(Format::dense(rank)) }
}

/// Every value, in row-major order. An array that was made for this may be borrowed, too, and is nobody else's.
#[pyfunction]
pub(crate) fn from_dense<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyUntypedArray>,
    text: Option<&str>,
    fill: &Bound<'py, PyAny>,
    borrow: bool,
    ours: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
    let format = match text {
        Some(text) => format(py, text, shape.len())?,
        None => dense_format(py, shape.len())?,
    };
    let fill = arrays::value(fill)?;
    // What is stored as it is may be borrowed; everything else is copied anyhow, and borrowed meanwhile.
    let kept = format.is_all_dense();
    let values = arrays::values(array, borrow || ours || !kept)?;
    let borrowed = borrow && !ours && kept && !matches!(values, tamis::ValueArray::Bool(_));
    let tensor = work::run(py, || Ok(Tensor::from_dense(&shape, values, &format, fill)?))?;
    wrap(py, tensor, borrowed)
}

/// Entries in any order.
#[pyfunction]
pub(crate) fn from_coordinates<'py>(
    py: Python<'py>,
    columns: Vec<Bound<'py, PyUntypedArray>>,
    values: &Bound<'py, PyUntypedArray>,
    shape: Vec<u64>,
    text: &str,
    fill: &Bound<'py, PyAny>,
    duplicates: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let combine = combine(py, duplicates)?;
    let format = format(py, text, shape.len())?;
    let fill = arrays::value(fill)?;
    let columns = columns.iter().map(arrays::indices).collect::<PyResult<Vec<_>>>()?;
    let entries = Coordinates { shape, columns, values: arrays::values(values, false)? };
    let tensor = work::run(py, || Ok(Tensor::from_coordinates(&entries, &format, fill, combine)?))?;
    wrap(py, tensor, false)
}

/// The arrays of every level. Values may be borrowed; everything else is copied and checked.
#[pyfunction]
pub(crate) fn from_parts<'py>(
    py: Python<'py>,
    shape: Vec<u64>,
    text: &str,
    levels: Vec<Bound<'py, PyDict>>,
    values: Option<&Bound<'py, PyUntypedArray>>,
    fill: &Bound<'py, PyAny>,
    borrow: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let format = FormatSpec::parse(text)
        .and_then(|spec| spec.with_rank(shape.len()))
        .map_err(|d| errors::raise_one(py, d.with_source(&tamis::Source::new("format", text))))?;
    let fill = arrays::value(fill)?;
    let mut given = Vec::with_capacity(levels.len());
    for level in &levels {
        let mut arrays_of = LevelArrays::default();
        for (name, array) in level.iter() {
            let name: String = name.extract()?;
            let Some(known) = names().find(|known| *known == name) else {
                let d = Diagnostic::new(Code::E0701, format!("no level has an array called `{name}`"));
                return Err(errors::raise_one(
                    py,
                    d.help("arrays are called as `level_arrays` calls them: pos, crd, start, end, ofs, flags"),
                ));
            };
            arrays_of.arrays.push((known, arrays::indices(array.cast::<PyUntypedArray>()?)?));
        }
        given.push(arrays_of);
    }
    let values = values.map(|values| arrays::values(values, borrow)).transpose()?;
    let borrowed = borrow && values.as_ref().is_some_and(|values| !matches!(values, tamis::ValueArray::Bool(_)));
    let tensor = work::run(py, || Ok(Tensor::from_parts(&shape, &format, given, values, fill)?))?;
    wrap(py, tensor, borrowed)
}

/// What the arrays of levels are called.
fn names() -> impl Iterator<Item = &'static str> {
    tamis::levels::LEVELS.iter().flat_map(|level| level.arrays.iter().copied())
}
