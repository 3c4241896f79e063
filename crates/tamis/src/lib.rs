//! Tamis: sparse and structured tensors. This is the crate that users import; it holds no algorithms.
//!
//! ```
//! use tamis::prelude::*;
//!
//! let program = Program::parse("
//! def spmv(A, x):
//!     y = tensor('dense')
//!     for i, j in _:
//!         y[i] += A[i,j] * x[j]
//!     return y
//! ")?;
//! let a = tamis::gallery::generate("laplacian(2)")?;
//! let a = Tensor::from_coordinates(&a, &Format::csr(), 0.0.into(), Combine::Error)?;
//! let x = Tensor::from_dense(&[4], vec![1.0; 4].into(), &Format::dense(1), 0.0.into())?;
//! let results = tamis::run(&program, &[("A", &a), ("x", &x)], &RunOptions::default())?;
//! assert_eq!(results[0].0, "y");
//! assert_eq!(results[0].1.get(&[0]), Some(Value::F64(2.0)));
//! # Ok::<(), Diagnostics>(())
//! ```

mod advise;
mod analyze;
pub mod calibrate;
mod call;
mod check;
mod compile;
mod explain;
mod interpret;
mod notation;
mod operator;
mod output;
mod parts;
mod remember;
mod run;
pub mod search;
mod signature;
mod warnings;

pub use advise::{Advice, AdviseOptions, Candidate, Outcome, Task, Times, advise, advise_with};
pub use analyze::{
    Analysis, ArrayAnalysis, LoopAnalysis, Moved, PartAnalysis, SURPRISING, analyze, analyze_notation, analyze_program,
};
pub use check::{CHECK_LIMIT, interpreter_points};
pub use compile::{Build, CompileOptions, Executable, Timed, compile};
pub use explain::{Explanation, explain};
pub use notation::{
    Convert, EinsumOptions, Prepared, PreparedProgram, Scheduled, einsum, meaning, operands_of, parse, plan, plan_for,
    schedule as schedule_notation,
};
pub use operator::op;
pub use run::{RunOptions, infer_shapes, run};
pub use signature::Signature;
pub use tamis_backend::cache::{Cache, CacheHit};
pub use tamis_backend::runtime::limit_arrays;
pub use tamis_backend::runtime::workspace::WorkspaceReport;
pub use tamis_compiler::auto::{self, Pins, Plan};
pub use tamis_compiler::pipeline::Pass;
pub use tamis_compiler::schedule::{self, Schedule};
pub use tamis_ir::Notation;
pub use tamis_ir::algebra::{Laws, Op};
pub use tamis_ir::kernel;
pub use tamis_ir::program::{parse_operators, parse_operators_with};
pub use tamis_ir::{Code, DType, Diagnostic, Diagnostics, Format, FormatSpec, Program, Source, Value, diag, program};
/// Index notation whose text is checked when the program is compiled.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = tamis::einsum!("y[i] = A[i,j] * x[j]", A = &a, x)?;
/// assert_eq!(results[0].1.get(&[1]), Some(Value::F64(20.0)));
/// assert_eq!(tamis::einsum!("ij,j->i", a, x)?[0].1.get(&[0]), Some(Value::F64(3.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
///
/// What is wrong does not compile: here `B` is not there, and `j` could be reduced in two places.
///
/// ```compile_fail
/// # let (a, x) = (tamis::Tensor::scalar(1.0.into()), tamis::Tensor::scalar(1.0.into()));
/// let results = tamis::einsum!("y[i] = B[i,j] * x[j]", A = &a, x);
/// ```
///
/// ```compile_fail
/// # let a = tamis::Tensor::scalar(1.0.into());
/// let results = tamis::einsum!("y[i] = abs(A[i,j])", A = &a);
/// ```
pub use tamis_macros::einsum;
pub use tamis_tensor::{
    Buffer, Combine, Coordinates, IndexArray, LevelArrays, Mirror, Part, Statistics, Structure, Tensor, ValueArray,
    gallery, io, levels, room, set_threads, threads, with_threads,
};
pub use warnings::with_counts;

/// What most programs need.
pub mod prelude {
    pub use crate::{
        Combine, CompileOptions, Coordinates, DType, Diagnostic, Diagnostics, EinsumOptions, Executable, Format, Laws,
        Notation, Op, Program, RunOptions, Schedule, Signature, Tensor, Value, ValueArray,
    };
}
