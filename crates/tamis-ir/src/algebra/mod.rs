//! Numbers and operators: value types, scalars, and the one table of operators with their laws.

mod complex;
mod dtype;
mod eval;
mod ops;
mod typing;
mod value;

pub use dtype::{DType, Kind, UnknownDType};
pub use eval::eval;
pub use ops::{Constant, Domain, NanPolicy, Op, OpInfo, TABLE, Typing};
pub use typing::{OpType, Ty, TypeError, can_store};
pub use value::Value;
