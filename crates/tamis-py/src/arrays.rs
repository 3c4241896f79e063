//! Conversion between NumPy arrays and buffers, zero-copy where that is safe.
//!
//! *In:* values may be borrowed, since any bits are values (booleans excepted). Positions and
//! coordinates are copied: compiled code relies on what was checked about them, and their owner
//! might change them afterwards. *Out:* arrays are given as read-only views that keep their memory
//! alive, or, where no other object shares that memory, as arrays that own it and may be written.

use crate::errors;
use num_complex::Complex;
use numpy::npyffi::{self, PY_ARRAY_API};
use numpy::{Element, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::c_void;
use tamis::compile::OutputSlice;
use tamis::diagnostic::Code;
use tamis::tensor::{Buffer, IndexArray, ValueArray};
use tamis::{DType, Diagnostic, Value};

/// Our type for NumPy's, if there is one.
pub(crate) fn dtype_of(descr: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    if descr.is_native_byteorder() == Some(false) {
        return None;
    }
    Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'c', 8) => DType::C64,
        (b'c', 16) => DType::C128,
        _ => return None,
    })
}

/// NumPy's type for ours.
pub(crate) fn descr_of(py: Python<'_>, dtype: DType) -> Bound<'_, PyArrayDescr> {
    match dtype {
        DType::Bool => numpy::dtype::<bool>(py),
        DType::I8 => numpy::dtype::<i8>(py),
        DType::I16 => numpy::dtype::<i16>(py),
        DType::I32 => numpy::dtype::<i32>(py),
        DType::I64 => numpy::dtype::<i64>(py),
        DType::U8 => numpy::dtype::<u8>(py),
        DType::U16 => numpy::dtype::<u16>(py),
        DType::U32 => numpy::dtype::<u32>(py),
        DType::U64 => numpy::dtype::<u64>(py),
        DType::F32 => numpy::dtype::<f32>(py),
        DType::F64 => numpy::dtype::<f64>(py),
        DType::C64 => numpy::dtype::<Complex<f32>>(py),
        DType::C128 => numpy::dtype::<Complex<f64>>(py),
    }
}

/// True if values can be used as they lie in memory.
pub(crate) fn is_plain(array: &Bound<'_, PyUntypedArray>) -> bool {
    array.is_c_contiguous() && array.is_aligned()
}

fn not_plain(py: Python<'_>, array: &Bound<'_, PyUntypedArray>) -> PyErr {
    let message = format!("an array of {} with strides {:?} cannot be used as it is", array.dtype(), array.strides());
    errors::raise_one(
        py,
        Diagnostic::new(Code::E0308, message)
            .help("values are bool, int8 to int64, uint8 to uint64, float32, float64, complex64 or complex128")
            .help("convert it first: `numpy.ascontiguousarray(x, dtype=float)`"),
    )
}

/// The elements of an array, which the caller knows to be of this type.
fn elements<'a, T>(array: &'a Bound<'_, PyUntypedArray>) -> &'a [T] {
    if array.is_empty() {
        return &[];
    }
    // SAFETY: the array is contiguous, aligned and of this type, which was checked by `values` or
    // `indices`; it lives as long as the borrow, during which the interpreter is held, so that
    // no other owner frees its memory.
    unsafe { std::slice::from_raw_parts((*array.as_array_ptr()).fields.data as *const T, array.len()) }
}

/// Numbers in memory of our own.
fn copied<T>(numbers: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut copy = tamis::tensor::with_capacity(numbers.len());
    copy.extend(numbers);
    copy
}

fn buffer<T: Copy + Send + Sync + 'static>(array: &Bound<'_, PyUntypedArray>, borrow: bool) -> Buffer<T> {
    let found: &[T] = elements(array);
    if !borrow || found.is_empty() {
        return copied(found.iter().copied()).into();
    }
    // SAFETY: as for `elements`, and the owner keeps the array alive, whose memory does not move
    // while it is referred to. Its owner may change values, which are only ever read as values: any
    // bits of these types are.
    unsafe { Buffer::from_foreign(found.as_ptr(), found.len(), Box::new(array.clone().unbind())) }
}

/// The values of an array, in memory order: borrowed, if that is requested and they are not
/// booleans, whose bits matter.
pub(crate) fn values(array: &Bound<'_, PyUntypedArray>, borrow: bool) -> PyResult<ValueArray> {
    let dtype = dtype_of(&array.dtype()).filter(|_| is_plain(array));
    Ok(match dtype.ok_or_else(|| not_plain(array.py(), array))? {
        DType::Bool => {
            let bytes: Vec<u8> = elements::<u8>(array).iter().map(|byte| u8::from(*byte != 0)).collect();
            ValueArray::Bool(bytes.into())
        }
        DType::I8 => ValueArray::I8(buffer(array, borrow)),
        DType::I16 => ValueArray::I16(buffer(array, borrow)),
        DType::I32 => ValueArray::I32(buffer(array, borrow)),
        DType::I64 => ValueArray::I64(buffer(array, borrow)),
        DType::U8 => ValueArray::U8(buffer(array, borrow)),
        DType::U16 => ValueArray::U16(buffer(array, borrow)),
        DType::U32 => ValueArray::U32(buffer(array, borrow)),
        DType::U64 => ValueArray::U64(buffer(array, borrow)),
        DType::F32 => ValueArray::F32(buffer(array, borrow)),
        DType::F64 => ValueArray::F64(buffer(array, borrow)),
        DType::C64 => ValueArray::C64(buffer(array, borrow)),
        DType::C128 => ValueArray::C128(buffer(array, borrow)),
    })
}

/// Positions or coordinates, copied. Signed ones are given the smaller of 32 and 64 bits that holds
/// them, as everywhere without a specified width; unsigned ones keep theirs.
pub(crate) fn indices(array: &Bound<'_, PyUntypedArray>) -> PyResult<IndexArray> {
    let py = array.py();
    let dtype = dtype_of(&array.dtype()).filter(|_| is_plain(array));
    let signed = |least: i64, found: Vec<u64>| -> PyResult<IndexArray> {
        if least < 0 {
            let d = Diagnostic::new(Code::E0703, format!("{least} is not a position or coordinate"));
            return Err(errors::raise_one(
                py,
                d.help("they are counted from 0, and negative ones do not count from the end"),
            ));
        }
        let small = found.iter().all(|x| *x <= u32::MAX as u64);
        Ok(if small { found.into_iter().map(|x| x as u32).collect::<Vec<_>>().into() } else { found.into() })
    };
    Ok(match dtype.ok_or_else(|| not_plain(py, array))? {
        DType::U8 => copied(elements::<u8>(array).iter().copied()).into(),
        DType::U16 => copied(elements::<u16>(array).iter().copied()).into(),
        DType::U32 => copied(elements::<u32>(array).iter().copied()).into(),
        DType::U64 => copied(elements::<u64>(array).iter().copied()).into(),
        DType::I32 => {
            let found = elements::<i32>(array);
            let least = found.iter().fold(0, |least, x| if *x < least { *x } else { least });
            if least < 0 {
                return signed(i64::from(least), Vec::new());
            }
            copied(found.iter().map(|x| *x as u32)).into()
        }
        DType::I64 => {
            let found = elements::<i64>(array);
            let range = found.iter().fold((0, 0), |(least, most), x| ((*x).min(least), (*x).max(most)));
            match range {
                (0, most) if most <= i64::from(u32::MAX) => copied(found.iter().map(|x| *x as u32)).into(),
                (least, _) => signed(least, found.iter().map(|x| *x as u64).collect())?,
            }
        }
        DType::I8 => {
            let found = elements::<i8>(array);
            signed(found.iter().copied().min().unwrap_or(0).into(), found.iter().map(|x| *x as u64).collect())?
        }
        DType::I16 => {
            let found = elements::<i16>(array);
            signed(found.iter().copied().min().unwrap_or(0).into(), found.iter().map(|x| *x as u64).collect())?
        }
        other => {
            let d = Diagnostic::new(Code::E0305, format!("positions and coordinates are integers, not {other}"));
            return Err(errors::raise_one(py, d.help("give an array of int32 or int64")));
        }
    })
}

/// A writable array of NumPy's that receives a result, usable while the interpreter is released.
pub(crate) struct Place {
    data: *mut u8,
    dtype: DType,
    shape: Vec<u64>,
    _array: Py<PyAny>,
}

// SAFETY: the memory of an array does not move while it is referred to.
unsafe impl Send for Place {}
// SAFETY: as above; elements are written by one call, through `slice`.
unsafe impl Sync for Place {}

impl Place {
    /// The place of an array that a kernel can write; none if its elements lie otherwise.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> Option<Place> {
        let array = given.cast::<PyUntypedArray>().ok().filter(|array| is_plain(array))?;
        // SAFETY: the interpreter is held, and the object is an array.
        let fields = unsafe { &(*array.as_array_ptr()).fields };
        if fields.flags & npyffi::NPY_ARRAY_WRITEABLE == 0 {
            return None;
        }
        let shape = array.shape().iter().map(|n| *n as u64).collect();
        let dtype = dtype_of(&array.dtype())?;
        Some(Place { data: fields.data.cast(), dtype, shape, _array: given.clone().unbind() })
    }

    /// The elements, for one call.
    ///
    /// # Safety
    /// No other code writes or reads them during the call, except as operands of the same call.
    pub(crate) unsafe fn slice(&self) -> OutputSlice<'_> {
        // SAFETY: the array is contiguous, aligned and writable, and kept alive.
        unsafe { OutputSlice::from_raw(self.data, self.dtype, &self.shape) }
    }
}

/// Keeps memory alive for the arrays that show it: a share of one of our arrays.
#[pyclass(frozen, module = "tamis._tamis", name = "Memory")]
struct SharedMemory {
    _owner: Box<dyn Any + Send + Sync>,
}

/// An array that shows memory which `owner` keeps alive.
fn view<'py, T>(
    py: Python<'py>,
    data: &[T],
    descr: Bound<'py, PyArrayDescr>,
    shape: &[u64],
    owner: Box<dyn Any + Send + Sync>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `data` holds as many elements as the shape says, in row-major order, and lives as
    // long as the owner; without the flag that says so, NumPy does not write to it.
    unsafe { array_of(py, data.as_ptr() as *mut c_void, descr, shape, owner, 0) }
}

/// An array of memory which `owner` keeps alive.
///
/// # Safety
/// `data` holds as many elements as the shape says, in row-major order, for as long as the owner
/// lives; if the flags say that it may be written, no other code reads or writes it.
unsafe fn array_of<'py>(
    py: Python<'py>,
    data: *mut c_void,
    descr: Bound<'py, PyArrayDescr>,
    shape: &[u64],
    owner: Box<dyn Any + Send + Sync>,
    flags: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let owner = Bound::new(py, SharedMemory { _owner: owner })?;
    let mut dims: Vec<npyffi::npy_intp> = shape.iter().map(|n| *n as npyffi::npy_intp).collect();
    // SAFETY: guaranteed by the caller. `NewFromDescr` takes the descriptor, `SetBaseObject` the
    // owner.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            npyffi::get_type_object(py, npyffi::NpyTypes::PyArray_Type),
            descr.into_dtype_ptr(),
            dims.len() as i32,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// Memory of a writable array. It goes back to the memory pool with the array.
struct Given<T>(Vec<T>);

impl<T> Drop for Given<T> {
    fn drop(&mut self) {
        drop(Buffer::from(std::mem::take(&mut self.0)));
    }
}

/// Values as a writable array of this shape, which must have as many elements. Nothing is copied
/// if no tensor shares them.
pub(crate) fn give_values<'py>(py: Python<'py>, values: ValueArray, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    let descr = descr_of(py, values.dtype());
    tamis_tensor::with_values!(values, x => {
        let mut given = Given(x.into_vec());
        let data = given.0.as_mut_ptr().cast::<c_void>();
        // SAFETY: the vector has as many elements as the shape says, does not move with its owner,
        // and no other reference to it exists.
        unsafe { array_of(py, data, descr, shape, Box::new(given), npyffi::NPY_ARRAY_WRITEABLE) }
    })
}

/// Values as a read-only array of this shape, which must have as many elements.
pub(crate) fn show_values<'py>(py: Python<'py>, values: &ValueArray, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    let descr = descr_of(py, values.dtype());
    tamis_tensor::with_values!(values, x => view(py, x, descr, shape, Box::new(x.clone())))
}

/// Positions or coordinates as a read-only array.
pub(crate) fn show_indices<'py>(py: Python<'py>, array: &IndexArray) -> PyResult<Bound<'py, PyAny>> {
    fn shown<'py, T: Element + Send + Sync + 'static>(
        py: Python<'py>,
        data: &Buffer<T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        view(py, data, numpy::dtype::<T>(py), &[data.len() as u64], Box::new(data.clone()))
    }
    tamis_tensor::with_indices!(array, x => shown(py, x))
}

/// One value as NumPy's scalar of its type.
pub(crate) fn scalar<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    let plain = match value {
        Value::Bool(x) => x.into_pyobject(py)?.to_owned().into_any(),
        Value::U64(x) => x.into_pyobject(py)?.into_any(),
        Value::F32(x) => x.into_pyobject(py)?.into_any(),
        Value::F64(x) => x.into_pyobject(py)?.into_any(),
        Value::C64(_) | Value::C128(_) => {
            let x = value.as_c128();
            pyo3::types::PyComplex::from_doubles(py, x.re, x.im).into_any()
        }
        other => other.as_i64().unwrap_or_default().into_pyobject(py)?.into_any(),
    };
    descr_of(py, value.dtype()).typeobj().call1((plain,))
}

/// A Python or NumPy number as a value.
pub(crate) fn value(number: &Bound<'_, PyAny>) -> PyResult<Value> {
    use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
    if let Ok(x) = number.cast::<PyBool>() {
        return Ok(Value::Bool(x.is_true()));
    }
    if number.is_instance_of::<PyFloat>() {
        return Ok(Value::F64(number.extract()?));
    }
    if number.is_instance_of::<PyInt>() {
        return match (number.extract::<i64>(), number.extract::<u64>()) {
            (Ok(x), _) => Ok(Value::I64(x)),
            (_, Ok(x)) => Ok(Value::U64(x)),
            _ => {
                let d = Diagnostic::new(Code::E0709, "this integer does not fit 64 bits");
                Err(errors::raise_one(number.py(), d.help("give a smaller one, or a float")))
            }
        };
    }
    if let Ok(x) = number.cast::<PyComplex>() {
        use pyo3::types::PyComplexMethods;
        return Ok(Value::C128(Complex::new(x.real(), x.imag())));
    }
    if number.hasattr("dtype")? && number.hasattr("item")? {
        return value(&number.call_method0("item")?);
    }
    let d = Diagnostic::new(Code::E0709, format!("{} is not a number", number.repr()?));
    Err(errors::raise_one(number.py(), d.help("give a number, such as 0 or 0.0")))
}
