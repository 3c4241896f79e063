//! Numbers and operators: value types, scalars, and the one table of operators with their laws.

mod complex;
mod dtype;
mod eval;
mod laws;
mod ops;
mod typing;
mod user;
mod value;

pub use dtype::{DType, Kind, UnknownDType};
pub use eval::eval;
pub use laws::Failure;
pub use ops::{Absorbing, Constant, Domain, NanPolicy, Op, OpInfo, TABLE, Typing};
pub use typing::{OpType, Ty, TypeError, can_store};
pub use user::{Laws, MAX_DEFINITIONS, MAX_TERMS, Term, Undefinable, UserOp};
pub use value::Value;
