//! Numbers and operators: value types, scalars, and the one table of operators with their laws.

mod dtype;
mod value;

pub use dtype::{DType, Kind, UnknownDType};
pub use value::Value;
