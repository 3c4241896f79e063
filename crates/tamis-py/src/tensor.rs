//! The tensor class of Python. The package derives `tamis.Tensor` from it, the class of all
//! results.

use crate::{arrays, errors, hooks, work};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Mutex;
use tamis::diagnostic::Code;
use tamis::format::FormatSpec;
use tamis::{DType, Diagnostic, Format, Tensor};
use tamis_ir::format::Leaf;

/// The maximum number of memoised conversions of one tensor.
const CONVERSIONS: usize = 2;

#[pyclass(name = "Tensor", module = "tamis._tamis", subclass, frozen)]
pub(crate) struct PyTensor {
    pub(crate) tensor: Tensor,
    /// True if the values are borrowed, so that their owner can change them.
    pub(crate) borrowed: bool,
    /// Memoised conversions, which live as long as the tensor.
    conversions: Mutex<Vec<(Format, Tensor)>>,
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor, borrowed: bool) -> PyTensor {
        PyTensor { tensor, borrowed, conversions: Mutex::default() }
    }

    /// Converts it, memoised unless the values are borrowed.
    pub(crate) fn converted(&self, format: &Format) -> Result<Tensor, Diagnostic> {
        if self.borrowed {
            return self.tensor.convert(format);
        }
        if let Ok(known) = self.conversions.lock()
            && let Some((_, tensor)) = known.iter().find(|(of, _)| of == format)
        {
            return Ok(tensor.clone());
        }
        let tensor = self.tensor.convert(format)?;
        if let Ok(mut known) = self.conversions.lock() {
            if known.len() >= CONVERSIONS {
                known.remove(0);
            }
            known.push((format.clone(), tensor.clone()));
        }
        Ok(tensor)
    }

    /// A tensor derived from this one, which may share its memory.
    fn derived<'py>(&self, py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, tensor, self.borrowed)
    }
}

/// A tensor as a Python object.
pub(crate) fn wrap(py: Python<'_>, tensor: Tensor, borrowed: bool) -> PyResult<Bound<'_, PyAny>> {
    let plain = Bound::new(py, PyTensor::new(tensor, borrowed))?;
    match hooks::get(py) {
        Some(hooks) => hooks.tensor.bind(py).call1((plain,)),
        None => Ok(plain.into_any()),
    }
}

/// Parses a format for a tensor of this rank.
pub(crate) fn format(py: Python<'_>, text: &str, rank: usize) -> PyResult<Format> {
    let source = tamis::diagnostic::Source::new("format", text);
    let read = FormatSpec::parse(text).map_err(|d| d.with_source(&source)).and_then(|spec| spec.with_rank(rank));
    read.map_err(|d| errors::raise_one(py, d))
}

/// The text of a format, by its short name if it has one.
pub(crate) fn format_text(format: &Format) -> String {
    let bare = format.clone().with_leaf(Leaf::Element(None));
    let name = bare.short_name().unwrap_or_else(|| bare.to_string());
    match format.leaf() {
        Leaf::Element(None) => name,
        leaf => format!("{name}; {leaf}"),
    }
}

#[pymethods]
impl PyTensor {
    /// Another object for the same tensor.
    #[new]
    fn py_new(source: &Bound<'_, PyTensor>) -> PyTensor {
        PyTensor::new(source.get().tensor.clone(), source.get().borrowed)
    }

    /// The size of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// NumPy's type of the values.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        arrays::descr_of(py, self.tensor.dtype()).into_any()
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.rank()
    }

    /// The number of stored elements; explicit zeros count.
    #[getter]
    fn nnz(&self, py: Python<'_>) -> PyResult<usize> {
        work::run(py, || Ok(self.tensor.nnz()))
    }

    /// The number of elements, stored or not.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // A sparse tensor may have more than 2^64 elements; Python's integers are unbounded.
        let one = 1u64.into_pyobject(py)?.into_any();
        self.tensor.shape().iter().try_fold(one, |product, n| product.mul(n))
    }

    /// The bytes of all arrays: positions, coordinates and values.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.nbytes()
    }

    /// The value of elements that are not stored.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::scalar(py, self.tensor.fill())
    }

    /// The format, by its short name if it has one, such as ``csr``.
    #[getter]
    fn format(&self) -> String {
        format_text(self.tensor.format())
    }

    /// The levels of the format, outermost first.
    #[getter]
    fn levels(&self) -> Vec<String> {
        self.tensor.format().levels().iter().map(|level| level.to_string()).collect()
    }

    /// The format in full: levels, map and leaf.
    #[getter]
    fn full_format(&self) -> String {
        self.tensor.format().to_string()
    }

    /// Whether the values are the memory of another library, whose changes are seen here.
    #[getter]
    fn is_borrowed(&self) -> bool {
        self.borrowed
    }

    /// Whether every element is stored in row-major order.
    #[getter]
    fn is_dense(&self) -> bool {
        is_row_major(&self.tensor)
    }

    /// Whether only coordinates are stored: all stored elements are ``True``.
    #[getter]
    fn is_pattern(&self) -> bool {
        self.tensor.values().is_none()
    }

    /// The arrays of a level by name, as read-only views.
    fn level_arrays<'py>(&self, py: Python<'py>, level: isize) -> PyResult<Bound<'py, PyDict>> {
        let count = self.tensor.levels().len();
        let place = if level < 0 { level + count as isize } else { level };
        if place < 0 || place as usize >= count {
            return Err(PyIndexError::new_err(format!("there are {count} levels, counted from 0: not {level}")));
        }
        let arrays = PyDict::new(py);
        for (name, array) in &self.tensor.level_arrays(place as usize).arrays {
            arrays.set_item(name, arrays::show_indices(py, array)?)?;
        }
        Ok(arrays)
    }

    /// The stored values, as a read-only view; none for a pattern.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let show = |values| arrays::show_values(py, values, &[values.len() as u64]);
        self.tensor.values().map(show).transpose()
    }

    /// Every value as a read-only array; refused beyond so many bytes unless the tensor is dense
    /// already.
    #[pyo3(name = "_dense_array")]
    fn dense_array<'py>(&self, py: Python<'py>, limit: u64) -> PyResult<Bound<'py, PyAny>> {
        let tensor = &self.tensor;
        let dense = match is_row_major(tensor) {
            true => tensor.clone(),
            false => {
                check_dense(tensor, limit).map_err(|d| errors::raise_one(py, d))?;
                work::run(py, || Ok(tensor.convert(&Format::dense(tensor.rank()))?))?
            }
        };
        let Some(values) = dense.values() else {
            return Err(errors::raise_one(
                py,
                Diagnostic::new(Code::E1101, "a dense tensor has values").help("report this"),
            ));
        };
        arrays::show_values(py, values, tensor.shape())
    }

    /// Every value as a writable array that shares no memory with the tensor; refused beyond so many
    /// bytes unless the tensor is dense already.
    #[pyo3(name = "_written_array")]
    fn written_array<'py>(&self, py: Python<'py>, limit: u64) -> PyResult<Bound<'py, PyAny>> {
        let tensor = &self.tensor;
        if is_row_major(tensor) {
            return give(py, tensor.clone());
        }
        check_dense(tensor, limit).map_err(|d| errors::raise_one(py, d))?;
        give(py, work::run(py, || Ok(tensor.convert(&Format::dense(tensor.rank()))?))?)
    }

    /// The coordinates of each dimension, and the values, of what is stored, sorted by coordinates.
    fn coordinates<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyAny>)> {
        let tensor = &self.tensor;
        let entries = work::run(py, || Ok(tensor.try_to_coordinates()?))?;
        let columns = entries.columns.iter().map(|column| arrays::show_indices(py, column));
        let columns = PyList::new(py, columns.collect::<PyResult<Vec<_>>>()?)?;
        Ok((columns, arrays::show_values(py, &entries.values, &[entries.len() as u64])?))
    }

    /// The same tensor in another format, as in ``t.convert("csc")``; ``tm.advise`` recommends one.
    fn convert<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        let format = self::format(py, format, self.tensor.rank())?;
        let tensor = work::run(py, || Ok(self.tensor.convert(&format)?))?;
        self.derived(py, tensor)
    }

    /// The tensor with values of another type, by its name in Tamis, such as ``f32``.
    fn cast<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let dtype: DType = name.parse().map_err(|_| {
            let d = Diagnostic::new(Code::E0308, format!("`{name}` is not a value type"));
            errors::raise_one(py, d.help("types are bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128"))
        })?;
        let tensor = work::run(py, || Ok(self.tensor.cast(dtype)))?;
        self.derived(py, tensor)
    }

    /// The same coordinates with another fill and other values, those of a dense tensor of one
    /// dimension; nothing is copied.
    fn with_values<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyTensor>,
        fill: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (source, fill) = (values.get(), arrays::value(fill)?);
        let Some(values) = source.tensor.values().filter(|_| is_row_major(&source.tensor)) else {
            let d = Diagnostic::new(Code::E0701, "values are given by a dense tensor");
            return Err(errors::raise_one(py, d.help("convert it before: `t.convert('dense')`")));
        };
        let tensor = self.tensor.with_values(values.clone(), fill).map_err(|d| errors::raise_one(py, d))?;
        wrap(py, tensor, source.borrowed)
    }

    /// The sparsity pattern, which shares the coordinate arrays.
    fn sparsity_pattern<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pattern = self.tensor.pattern().map_err(|d| errors::raise_one(py, d))?;
        wrap(py, pattern, false)
    }

    /// Whether the format stores every element, in dense levels only.
    #[getter(_stores_all)]
    fn stores_all(&self) -> bool {
        self.tensor.format().is_all_dense()
    }

    /// Whether both store the same coordinates, in the same arrays or in equal ones.
    fn same_pattern(&self, other: &Bound<'_, PyTensor>) -> bool {
        self.tensor.same_pattern(&other.get().tensor)
    }

    /// A view with the dimensions in another order.
    #[pyo3(name = "_permuted")]
    fn permuted<'py>(&self, py: Python<'py>, axes: Vec<usize>) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor.permuted(&axes).map_err(|d| errors::raise_one(py, d))?;
        self.derived(py, tensor)
    }

    /// The element at coordinates that lie inside.
    fn element<'py>(&self, py: Python<'py>, coordinates: Vec<u64>) -> PyResult<Bound<'py, PyAny>> {
        match self.tensor.get(&coordinates) {
            Some(value) => arrays::scalar(py, value),
            None => {
                let d = Diagnostic::new(
                    Code::E1001,
                    format!(
                        "the coordinates {coordinates:?} are out of bounds for the shape {:?}",
                        self.tensor.shape()
                    ),
                );
                Err(errors::raise_one(
                    py,
                    d.help("coordinates are counted from 0, and there is one for each dimension"),
                ))
            }
        }
    }

    /// True if both have equal elements, whatever their formats and types.
    fn same_values(&self, py: Python<'_>, other: &Bound<'_, PyTensor>) -> PyResult<bool> {
        let other = &other.get().tensor;
        work::run(py, || Ok(self.tensor.same_values(other)))
    }

    /// Shape, value type, format and stored elements, in a few lines.
    fn summary(&self) -> String {
        self.tensor.summary()
    }
}

/// True if values lie in memory as NumPy's do.
pub(crate) fn is_row_major(tensor: &Tensor) -> bool {
    let format = tensor.format();
    let ordered = || format.dim_order().is_some_and(|order| order.iter().enumerate().all(|(k, d)| k == *d));
    format.is_all_dense() && tensor.values().is_some() && ordered()
}

/// A row-major tensor as a writable array, without a copy if no other tensor shares its values.
pub(crate) fn give(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    let shape = tensor.shape().to_vec();
    let Some(values) = tensor.values().cloned() else {
        let d = Diagnostic::new(Code::E1101, "a dense tensor has values").help("report this");
        return Err(errors::raise_one(py, d));
    };
    drop(tensor);
    arrays::give_values(py, values, &shape)
}

fn check_dense(tensor: &Tensor, limit: u64) -> Result<(), Diagnostic> {
    let cells = tensor.shape().iter().fold(1f64, |cells, n| cells * *n as f64);
    let bytes = cells * tensor.dtype().size() as f64;
    if bytes <= limit as f64 {
        return Ok(());
    }
    let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    let message = format!(
        "{} stored entries would become a dense array of {} {} values, {}",
        tensor.nnz(),
        shape.join(" x "),
        tensor.dtype(),
        size(bytes)
    );
    Err(Diagnostic::new(Code::E0706, message)
        .note(format!("arrays of more than {} need permission", size(limit as f64)))
        .help("keep it sparse: `t.to_scipy()`, `t.to_coo()`, or slices of it")
        .help("`tamis.config(dense_limit=...)` allows more bytes"))
}

/// A number of bytes for people.
fn size(bytes: f64) -> String {
    let units = [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes / unit < 1e4 => format!("{:.1} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1e} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}
