//! Interoperation with other crates: conversions from and to `ndarray` and `sprs`, behind features
//! of these names.
//!
//! Conversions to a tensor copy no values if the memory layouts agree. Conversions from a tensor
//! need its value type: a tensor of another type is a diagnostic (E0709), not a cast.

#[cfg(feature = "sprs")]
mod compressed;
#[cfg(feature = "ndarray")]
mod dense;

#[cfg(feature = "ndarray")]
pub use ndarray;
#[cfg(feature = "sprs")]
pub use sprs;

use crate::{Tensor, ValueType};
use tamis_ir::{Code, Diagnostic};

/// The diagnostic for a tensor of another value type than the requested one.
fn another_type<T: ValueType>(tensor: &Tensor) -> Diagnostic {
    let (found, wanted) = (tensor.dtype(), T::DTYPE);
    Diagnostic::new(Code::E0709, format!("the tensor holds {found}, not {wanted}"))
        .help(format!("cast it: `tensor.cast(DType::{wanted:?})`"))
}
