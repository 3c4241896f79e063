//! Typed access to arrays: slices of the Rust type that matches the value type, zero-copy.
//!
//! The value type of a [`ValueArray`] is known at run time. [`ValueArray::as_slice`] borrows it as
//! a slice if the requested type is the stored one, and never converts. Booleans are stored as
//! bytes and have no slice.

use crate::levels::LevelArrays;
use crate::{Coordinates, Index, IndexArray, Tensor, ValueArray, with_indices};
use num_complex::Complex;
use tamis_ir::{DType, Value};

/// A Rust type of stored values.
///
/// ```
/// use tamis_ir::DType;
/// use tamis_tensor::{ValueArray, ValueType};
/// fn sum<T: ValueType + std::iter::Sum>(values: &ValueArray) -> Option<T> {
///     Some(T::slice(values)?.iter().copied().sum())
/// }
/// assert_eq!(f64::DTYPE, DType::F64);
/// assert_eq!(sum::<f64>(&vec![1.0, 2.5].into()), Some(3.5));
/// assert_eq!(sum::<i64>(&vec![1.0, 2.5].into()), None);
/// ```
pub trait ValueType: Copy + Send + Sync + Into<Value> + 'static {
    /// The corresponding value type.
    const DTYPE: DType;

    /// An array of this type.
    ///
    /// ```
    /// use tamis_tensor::ValueType;
    /// assert_eq!(f32::array(vec![1.0, 2.0]).len(), 2);
    /// ```
    fn array(values: Vec<Self>) -> ValueArray;

    /// The values of an array as a slice, if this is their type; `None` for `bool`.
    ///
    /// ```
    /// use tamis_tensor::ValueType;
    /// assert_eq!(f32::slice(&vec![1.0f32].into()), Some(&[1.0][..]));
    /// assert_eq!(f64::slice(&vec![1.0f32].into()), None);
    /// ```
    fn slice(array: &ValueArray) -> Option<&[Self]>;
}

impl ValueType for bool {
    const DTYPE: DType = DType::Bool;

    fn array(values: Vec<bool>) -> ValueArray {
        values.into()
    }

    fn slice(_: &ValueArray) -> Option<&[bool]> {
        None
    }
}

impl FromIterator<bool> for ValueArray {
    fn from_iter<I: IntoIterator<Item = bool>>(values: I) -> ValueArray {
        values.into_iter().collect::<Vec<bool>>().into()
    }
}

macro_rules! value_types {
    ($($variant:ident: $rust:ty),*) => {$(
        impl ValueType for $rust {
            const DTYPE: DType = DType::$variant;

            fn array(values: Vec<$rust>) -> ValueArray {
                values.into()
            }

            fn slice(array: &ValueArray) -> Option<&[$rust]> {
                match array {
                    ValueArray::$variant(values) => Some(values),
                    _ => None,
                }
            }
        }

        impl FromIterator<$rust> for ValueArray {
            fn from_iter<I: IntoIterator<Item = $rust>>(values: I) -> ValueArray {
                values.into_iter().collect::<Vec<$rust>>().into()
            }
        }
    )*};
}
value_types!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
    F32: f32, F64: f64, C64: Complex<f32>, C128: Complex<f64>);

impl ValueArray {
    /// The values as a slice, if `T` is their type. Booleans are stored as bytes, and have no
    /// slice.
    ///
    /// ```
    /// use tamis_tensor::ValueArray;
    /// let values = ValueArray::from(vec![1.0, 2.0]);
    /// assert_eq!(values.as_slice::<f64>(), Some(&[1.0, 2.0][..]));
    /// assert_eq!(values.as_slice::<f32>(), None);
    /// ```
    pub fn as_slice<T: ValueType>(&self) -> Option<&[T]> {
        T::slice(self)
    }
}

impl IndexArray {
    /// The numbers as a slice, if `T` is their type.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// let positions = IndexArray::from(vec![0u32, 2, 3]);
    /// assert_eq!(positions.as_slice::<u32>(), Some(&[0, 2, 3][..]));
    /// assert_eq!(positions.as_slice::<u64>(), None);
    /// ```
    pub fn as_slice<T: Index>(&self) -> Option<&[T]> {
        if self.width() != T::WIDTH {
            return None;
        }
        with_indices!(self, numbers => bytemuck::try_cast_slice(numbers).ok())
    }
}

impl<T: Index> FromIterator<T> for IndexArray
where
    IndexArray: From<Vec<T>>,
{
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> IndexArray {
        numbers.into_iter().collect::<Vec<T>>().into()
    }
}

impl Tensor {
    /// The stored values as a slice, in storage order, if `T` is their type; `None` for patterns.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::Tensor;
    /// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
    /// assert_eq!(a.as_slice::<f64>(), Some(&[1.0, 4.0][..]));
    /// assert_eq!(a.level_arrays(1).get("crd").and_then(|crd| crd.as_slice::<u32>()), Some(&[0, 1][..]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn as_slice<T: ValueType>(&self) -> Option<&[T]> {
        self.values()?.as_slice()
    }
}

impl Coordinates {
    /// Coordinates from pairs of a coordinate and a value, in any order.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// use tamis_tensor::{Combine, Coordinates, Tensor};
    /// let a = Coordinates::from_entries([3, 4], [([0, 0], 1.0), ([0, 3], 2.0), ([2, 0], 3.0)]);
    /// let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
    /// assert_eq!(a.get(&[0, 3]), Some(2.0.into()));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn from_entries<const RANK: usize, T: ValueType>(
        shape: [u64; RANK],
        entries: impl IntoIterator<Item = ([u64; RANK], T)>,
    ) -> Coordinates {
        let mut columns: [Vec<u64>; RANK] = std::array::from_fn(|_| Vec::new());
        let mut values = Vec::new();
        for (coordinate, value) in entries {
            columns.iter_mut().zip(coordinate).for_each(|(column, x)| column.push(x));
            values.push(value);
        }
        let narrow = |column: Vec<u64>| match column.iter().all(|x| *x <= u64::from(u32::MAX)) {
            true => column.into_iter().map(|x| x as u32).collect(),
            false => IndexArray::from(column),
        };
        Coordinates { shape: shape.to_vec(), columns: columns.map(narrow).to_vec(), values: T::array(values) }
    }
}

impl FromIterator<(&'static str, IndexArray)> for LevelArrays {
    fn from_iter<I: IntoIterator<Item = (&'static str, IndexArray)>>(arrays: I) -> LevelArrays {
        LevelArrays { arrays: arrays.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_the_stored_type_or_none() {
        let bytes = ValueArray::from(vec![1u8, 2]);
        assert_eq!(bytes.as_slice::<u8>(), Some(&[1, 2][..]));
        assert_eq!(bytes.as_slice::<i8>(), None);
        let truths = ValueArray::from(vec![true, false]);
        assert_eq!((truths.as_slice::<bool>(), truths.as_slice::<u8>()), (None, None));
        let empty: ValueArray = std::iter::empty::<f32>().collect();
        assert_eq!((empty.as_slice::<f32>(), empty.as_slice::<f64>()), (Some(&[][..]), None));
        let wide: IndexArray = [1u64, 2].into_iter().collect();
        assert_eq!((wide.as_slice::<u64>(), wide.as_slice::<u32>()), (Some(&[1, 2][..]), None));
    }

    #[test]
    fn entries_choose_the_narrow_width_that_fits() {
        let narrow = Coordinates::from_entries([5], [([4], 1i64)]);
        assert!(matches!(narrow.columns[0], IndexArray::U32(_)));
        let wide = Coordinates::from_entries([1 << 40], [([1 << 39], 1i64)]);
        assert!(matches!(wide.columns[0], IndexArray::U64(_)));
        assert_eq!(Coordinates::from_entries([], [([], true)]).values, ValueArray::from(vec![true]));
    }
}
