//! Conversions from and to `ndarray`: dense arrays of any number of dimensions.

use super::another_type;
use crate::{Tensor, ValueType};
use ndarray::{Array, ArrayD, ArrayRef, Dimension, IxDyn};
use tamis_ir::{Code, Diagnostic, Format, Value};

/// A dense tensor of an array's elements. An array in row-major order is moved, not copied.
///
/// ```
/// use ndarray::array;
/// use tamis_tensor::Tensor;
/// let a = Tensor::try_from(array![[1.0, 2.0], [3.0, 4.0]])?;
/// assert_eq!((a.shape(), a.as_slice::<f64>()), (&[2, 2][..], Some(&[1.0, 2.0, 3.0, 4.0][..])));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
impl<T: ValueType, D: Dimension> TryFrom<Array<T, D>> for Tensor {
    type Error = Diagnostic;

    fn try_from(array: Array<T, D>) -> Result<Tensor, Diagnostic> {
        if !array.is_standard_layout() {
            return Tensor::try_from(&*array);
        }
        let shape = shape_of(array.shape());
        let (mut values, offset) = array.into_raw_vec_and_offset();
        // A sliced array may own more elements than it shows.
        let (start, length) = (offset.unwrap_or(0), shape.iter().product::<u64>() as usize);
        values.truncate(start + length);
        values.drain(..start);
        dense(&shape, values)
    }
}

/// A dense tensor of a copy of the elements of an array or view, in row-major order.
impl<T: ValueType, D: Dimension> TryFrom<&ArrayRef<T, D>> for Tensor {
    type Error = Diagnostic;

    fn try_from(array: &ArrayRef<T, D>) -> Result<Tensor, Diagnostic> {
        dense(&shape_of(array.shape()), array.iter().copied().collect())
    }
}

/// An array of all elements of a tensor, in row-major order.
///
/// ```
/// use ndarray::{Array2, ArrayD, array};
/// use tamis_ir::Format;
/// use tamis_tensor::Tensor;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
/// let dense = ArrayD::<f64>::try_from(&a)?;
/// let matrix: Array2<f64> = dense.into_dimensionality().expect("a matrix");
/// assert_eq!(matrix, array![[1.0, 0.0], [0.0, 4.0]]);
/// assert!(ArrayD::<f32>::try_from(&a).is_err());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
impl<T: ValueType> TryFrom<&Tensor> for ArrayD<T> {
    type Error = Diagnostic;

    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>, Diagnostic> {
        let values = tensor.to_dense()?;
        let values = values.as_slice::<T>().ok_or_else(|| another_type::<T>(tensor))?;
        let shape: Vec<usize> = tensor.shape().iter().map(|n| *n as usize).collect();
        ArrayD::from_shape_vec(IxDyn(&shape), values.to_vec()).map_err(|error| {
            Diagnostic::new(Code::E0706, format!("an array of shape {shape:?} cannot be made: {error}"))
                .help("convert a smaller tensor")
        })
    }
}

fn shape_of(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|n| *n as u64).collect()
}

fn dense<T: ValueType>(shape: &[u64], values: Vec<T>) -> Result<Tensor, Diagnostic> {
    let format = Format::parse("dense", shape.len())?;
    Tensor::from_dense(shape, T::array(values), &format, Value::zero(T::DTYPE))
}
