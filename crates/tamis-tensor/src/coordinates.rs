//! A list of entries with their coordinates: what files hold, generators make, and tensors are built from.

use crate::{IndexArray, ValueArray};

/// Entries of a tensor by their coordinates, in any order, possibly repeated.
///
/// This is plain data that nobody has checked: [`crate::Tensor::from_coordinates`] does.
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
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// How entries with equal coordinates become one.
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
    /// Refuse them with a diagnostic.
    Error,
    /// Add them up (wrapping for integers; `or` for booleans).
    Sum,
    /// Multiply them (`and` for booleans).
    Product,
    /// Keep the least; a NaN wins. Not for complex numbers.
    Min,
    /// Keep the greatest; a NaN wins. Not for complex numbers.
    Max,
    /// 1 (`true`) if any is not zero, else 0.
    Any,
    /// 1 (`true`) if all are not zero, else 0.
    All,
    /// Keep the first that was given.
    First,
    /// Keep the last that was given.
    Last,
}
