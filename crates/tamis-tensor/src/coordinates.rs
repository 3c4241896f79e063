//! Coordinate lists: entries with their coordinates, from files, generators and callers.

use crate::{IndexArray, ValueArray};

/// Entries of a tensor by their coordinates, in any order, possibly repeated.
///
/// This is unchecked data; [`crate::Tensor::from_coordinates`] checks it.
///
/// ```
/// use tamis_tensor::Coordinates;
/// let v1 = Coordinates {
///     shape: vec![3, 4],
///     columns: vec![vec![0u32, 0, 2].into(), vec![0u32, 3, 0].into()],
///     values: vec![1.0, 2.0, 3.0].into(),
/// };
/// assert_eq!(v1.len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// The size of each dimension.
    pub shape: Vec<u64>,
    /// For each dimension, the coordinate of every entry.
    pub columns: Vec<IndexArray>,
    /// The value of every entry.
    pub values: ValueArray,
}

impl Coordinates {
    /// The number of entries.
    ///
    /// ```
    /// assert_eq!(tamis_tensor::gallery::banded(5, 1)?.len(), 13);
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there are no entries.
    ///
    /// ```
    /// assert!(tamis_tensor::gallery::random(&[10, 10], 0.0, 0)?.is_empty());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The reduction of entries with equal coordinates.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{Combine, Coordinates, Tensor};
/// let entries = Coordinates { shape: vec![3], columns: vec![vec![1u32, 1].into()], values: vec![2.0, 5.0].into() };
/// let combine = |how| Tensor::from_coordinates(&entries, &Format::coo(1), 0.0.into(), how);
/// assert_eq!(combine(Combine::Sum)?.get(&[1]), Some(Value::F64(7.0)));
/// assert_eq!(combine(Combine::Last)?.get(&[1]), Some(Value::F64(5.0)));
/// assert!(combine(Combine::Error).is_err());
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Reject duplicates with a diagnostic.
    Error,
    /// Add them up (wrapping for integers; `or` for booleans).
    Sum,
    /// Multiply them (`and` for booleans).
    Product,
    /// Keep the least; NaN propagates. Not for complex numbers.
    Min,
    /// Keep the greatest; NaN propagates. Not for complex numbers.
    Max,
    /// 1 (`true`) if any value is not zero, else 0.
    Any,
    /// 1 (`true`) if all values are not zero, else 0.
    All,
    /// Keep the first value in input order.
    First,
    /// Keep the last value in input order.
    Last,
}
