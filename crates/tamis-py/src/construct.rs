//! Construction of tensors from arrays: Python decides what arrays mean, this module checks their
//! invariants.

use crate::tensor::{format, wrap};
use crate::{arrays, errors, work};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::diagnostic::Code;
use tamis::format::FormatSpec;
use tamis::tensor::{Combine, Coordinates, LevelArrays};
use tamis::{Diagnostic, Format, Tensor, Value};
use tamis_ir::format::MAX_RANK;

/// The words for combining elements with equal coordinates.
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
        let d = Diagnostic::new(Code::E0708, format!("`{word}` is not a way to combine duplicates"));
        errors::raise_one(py, d.help("write error, sum, prod, min, max, any, all, first or last"))
    })
}

/// The tensor of a dense array, borrowed if requested and possible.
pub(crate) fn dense(array: &Bound<'_, PyUntypedArray>, borrow: bool) -> PyResult<(Tensor, bool)> {
    let values = arrays::values(array, borrow)?;
    let shape: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
    let borrowed = borrow && !matches!(values, tamis::tensor::ValueArray::Bool(_));
    let fill = Value::zero(values.dtype());
    let tensor = Tensor::from_dense(&shape, values, &dense_format(array.py(), shape.len())?, fill);
    Ok((tensor.map_err(|d| errors::raise_one(array.py(), d))?, borrowed))
}

/// The dense format of a rank that tensors can have.
fn dense_format(py: Python<'_>, rank: usize) -> PyResult<Format> {
    if rank > MAX_RANK { format(py, "dense", rank) } else { Ok(Format::dense(rank)) }
}

/// A tensor of all values, in row-major order. `ours` says that the array was made for this call,
/// so that no other owner changes it.
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
    // A dense tensor may keep a borrowed array; any other format copies, and borrows meanwhile.
    let kept = format.is_all_dense();
    let values = arrays::values(array, borrow || ours || !kept)?;
    let borrowed = borrow && !ours && kept && !matches!(values, tamis::tensor::ValueArray::Bool(_));
    let tensor = work::run(py, || Ok(Tensor::from_dense(&shape, values, &format, fill)?))?;
    wrap(py, tensor, borrowed)
}

/// A tensor from coordinates in any order.
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
    let coordinates = Coordinates { shape, columns, values: arrays::values(values, false)? };
    let tensor = work::run(py, || Ok(Tensor::from_coordinates(&coordinates, &format, fill, combine)?))?;
    wrap(py, tensor, false)
}

/// A tensor from the arrays of every level. Values may be borrowed; all else is copied and checked.
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
        .map_err(|d| errors::raise_one(py, d.with_source(&tamis::diagnostic::Source::new("format", text))))?;
    let fill = arrays::value(fill)?;
    let mut given = Vec::with_capacity(levels.len());
    for level in &levels {
        let mut arrays_of = LevelArrays::default();
        for (name, array) in level.iter() {
            let name: String = name.extract()?;
            let Some(known) = names().find(|known| *known == name) else {
                let d = Diagnostic::new(Code::E0701, format!("no level has an array named `{name}`"));
                return Err(errors::raise_one(
                    py,
                    d.help("arrays have the names that `level_arrays` uses: pos, crd, start, end, ofs, flags"),
                ));
            };
            arrays_of.arrays.push((known, arrays::indices(array.cast::<PyUntypedArray>()?)?));
        }
        given.push(arrays_of);
    }
    let values = values.map(|values| arrays::values(values, borrow)).transpose()?;
    let borrowed =
        borrow && values.as_ref().is_some_and(|values| !matches!(values, tamis::tensor::ValueArray::Bool(_)));
    let tensor = work::run(py, || Ok(Tensor::from_parts(&shape, &format, given, values, fill)?))?;
    wrap(py, tensor, borrowed)
}

/// The names of the arrays of all levels.
fn names() -> impl Iterator<Item = &'static str> {
    tamis::tensor::levels::LEVELS.iter().flat_map(|level| level.arrays.iter().copied())
}
