//! Algebra: value types, scalars, and the operator table with its laws.

mod complex;
mod dtype;
mod elementary;
mod eval;
mod laws;
mod lowering;
mod ops;
mod scalar;
mod table;
mod typing;
mod user;
mod value;

pub use dtype::{DType, Kind, UnknownDType};
pub use elementary::{BitOp, Elementary, FloatBuilder};
pub use eval::{Binary, ComplexBinary, ComplexUnary, Evaluation, Unary, eval};
pub use laws::LawViolation;
pub use lowering::{BoolExpansion, C, ComparisonOp, ComplexExpansion, Elementwise, FloatExpansion, Form, IntExpansion};
pub use lowering::{Lowering, Predicate};
pub use ops::{Absorbing, Constant, Domain, NanPolicy, OpCost, OpInfo, Python, Typing};
pub use table::{Op, TABLE};
pub(crate) use typing::can_store;
pub use typing::{OpType, Ty, TypeError};
pub use user::{BodyTerm, Laws, MAX_DEFINITIONS, MAX_TERMS, Undefinable, UserOp};
pub use value::Value;
