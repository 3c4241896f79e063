//! Benchmark inputs: generated tensors, and their arrays in the form that C takes.

use tamis::tensor::{Buffer, Combine, Coordinates, IndexArray, ValueArray};
use tamis::{DType, Diagnostic, Format, Tensor, Value, gallery};

/// A tensor of these entries in the named format.
pub fn tensor(entries: &Coordinates, format: &str) -> Result<Tensor, Diagnostic> {
    let format = Format::parse(format, entries.shape.len())?;
    Tensor::from_coordinates(entries, &format, Value::F64(0.0), Combine::Error)
}

/// A random square matrix with a number of entries per row.
pub fn random_rows(n: u64, per_row: u64, seed: u64) -> Result<Coordinates, Diagnostic> {
    gallery::random_nnz(&[n, n], n * per_row, seed)
}

/// The same entries shifted by one column; those out of bounds are dropped.
pub fn shifted(entries: &Coordinates) -> Coordinates {
    let columns = entries.shape[1];
    let kept: Vec<usize> = (0..entries.len()).filter(|k| entries.columns[1].get(*k) + 1 < columns).collect();
    let pick = |dim: usize, by: u64| -> IndexArray {
        kept.iter().map(|k| (entries.columns[dim].get(*k) + by) as u32).collect::<Vec<u32>>().into()
    };
    let values: Vec<Value> = kept.iter().map(|k| entries.values.get(*k)).collect();
    Coordinates {
        shape: entries.shape.clone(),
        columns: vec![pick(0, 0), pick(1, 1)],
        values: ValueArray::from_values(&values, entries.values.dtype()),
    }
}

/// A dense tensor of random numbers.
pub fn dense(shape: &[u64], dtype: DType, format: &str, seed: u64) -> Result<Tensor, Diagnostic> {
    let entries = gallery::random(shape, 1.0, seed)?;
    Ok(tensor(&entries, format)?.cast(dtype))
}

/// A CSR matrix: positions, coordinates, values, shared with its tensor.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct CsrArrays<T> {
    pub pos: Buffer<u32>,
    pub crd: Buffer<u32>,
    pub val: Buffer<T>,
}

impl<T: BaselineValue> CsrArrays<T> {
    /// The arrays of a matrix in CSR.
    pub fn of(tensor: &Tensor) -> Result<CsrArrays<T>, String> {
        Ok(CsrArrays { pos: index(tensor, 1, "pos")?, crd: index(tensor, 1, "crd")?, val: values(tensor)? })
    }
}

/// A CSF tensor of rank 3: its arrays, shared with it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct CsfArrays {
    pub pos: [Buffer<u32>; 3],
    pub crd: [Buffer<u32>; 3],
    pub val: Buffer<f64>,
}

impl CsfArrays {
    /// The arrays of a tensor in CSF.
    pub fn of(tensor: &Tensor) -> Result<CsfArrays, String> {
        let all = |name| Ok::<_, String>([index(tensor, 0, name)?, index(tensor, 1, name)?, index(tensor, 2, name)?]);
        Ok(CsfArrays { pos: all("pos")?, crd: all("crd")?, val: values(tensor)? })
    }
}

/// The value types of the baseline.
pub trait BaselineValue: Copy {
    /// The array, if it has this type.
    fn array(values: &ValueArray) -> Option<Buffer<Self>>;
    /// Converts to the wider type.
    fn wide(self) -> f64;
}

impl BaselineValue for f32 {
    fn array(values: &ValueArray) -> Option<Buffer<f32>> {
        if let ValueArray::F32(array) = values { Some(array.clone()) } else { None }
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl BaselineValue for f64 {
    fn array(values: &ValueArray) -> Option<Buffer<f64>> {
        if let ValueArray::F64(array) = values { Some(array.clone()) } else { None }
    }

    fn wide(self) -> f64 {
        self
    }
}

/// The values of a tensor.
pub fn values<T: BaselineValue>(tensor: &Tensor) -> Result<Buffer<T>, String> {
    tensor.values().and_then(T::array).ok_or_else(|| format!("values are {}, which was not expected", tensor.dtype()))
}

/// An array of a level; all inputs here have 32-bit arrays.
fn index(tensor: &Tensor, level: usize, name: &str) -> Result<Buffer<u32>, String> {
    match tensor.level_arrays(level).get(name) {
        Some(IndexArray::U32(array)) => Ok(array.clone()),
        _ => Err(format!("level {level} has no `{name}` of 32 bits")),
    }
}
