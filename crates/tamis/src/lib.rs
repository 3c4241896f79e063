//! Tamis: a compiler for sparse and structured tensors.
//!
//! A [`Tensor`] is a dense grid to its user; its [`Format`] says how it is stored. [`einsum!`]
//! takes index notation, chooses loops for the tensors at hand, compiles them to machine code, and
//! runs it:
//!
//! ```
//! use tamis::prelude::*;
//!
//! let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
//! let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), 0.0.into())?;
//! let y = tamis::einsum!("y[i] = A[i,j] * x[j]", A = &a, x = &x)?.into_tensor()?;
//! assert_eq!(y.get(&[1]), Some(Value::F64(20.0)));
//! # Ok::<(), Diagnostics>(())
//! ```
//!
//! A loop program fixes the loops, and leaves to the compiler how they visit what is stored.
//! [`run()`] compiles it when it meets tensors of a new layout, and reuses the machine code
//! afterwards:
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
//! assert_eq!(results["y"].get(&[0]), Some(Value::F64(2.0)));
//! # Ok::<(), Diagnostics>(())
//! ```
//!
//! # A tour
//!
//! The root holds the verbs; the module of the same name holds a verb's options and what it gives.
//!
//! | to | call | options and results |
//! |---|---|---|
//! | compute index notation | [`einsum!`], [`einsum()`] | [`notation`], [`Results`] |
//! | differentiate index notation | [`grad()`] | [`mod@grad`], [`Results`] |
//! | run a loop program | [`run()`] | [`mod@run`], [`Results`] |
//! | compile once, call often | [`compile()`] | [`mod@compile`] |
//! | read what the compiler made | [`explain()`] | [`mod@explain`] |
//! | count what a run did | [`analyze()`] | [`mod@analyze`] |
//! | find the best format for a tensor | [`advise()`] | [`mod@advise`] |
//! | measure all formats and loop orders | [`search()`] | [`mod@search`] |
//! | fit the cost model to this machine | [`calibrate()`] | [`mod@calibrate`] |
//!
//! The nouns have a module each: [`tensor`] (data and its arrays), [`mod@format`] (how data is
//! stored), [`program`] (loop programs), [`schedule`] (commands that change loops), [`algebra`]
//! (value types and operators), [`kernel`] (what programs are lowered to), [`io`] (files),
//! [`gallery`] (generated tensors), [`diagnostic`] (errors), [`threads`], [`cache`].
//! The features `ndarray` and `sprs` add conversions from and to these crates, in a module `interop`.
//!
//! Every mistake is a [`Diagnostic`]: a code, a place in the text, and something that would work.
//! This crate holds no algorithms; they are in `tamis-ir`, `tamis-tensor`, `tamis-compiler` and
//! `tamis-backend`.

pub mod advise;
pub mod analyze;
pub mod calibrate;
mod call;
pub mod check;
pub mod compile;
mod donate;
mod executable;
mod executable_cache;
pub mod explain;
pub mod grad;
mod interpret;
pub mod notation;
mod operator;
mod output;
mod parallel;
mod prepared_program;
mod results;
pub mod run;
pub mod search;
mod signature;
mod warnings;

#[doc(inline)]
pub use advise::advise;
#[doc(inline)]
pub use analyze::analyze;
#[doc(inline)]
pub use calibrate::calibrate;
#[doc(inline)]
pub use compile::compile;
#[doc(inline)]
pub use explain::explain;
#[doc(inline)]
pub use grad::grad;
#[doc(inline)]
pub use notation::einsum;
pub use results::Results;
#[doc(inline)]
pub use run::run;
#[doc(inline)]
pub use search::search;
/// Index notation whose text is checked when the program is compiled.
///
/// ```
/// use tamis::prelude::*;
/// let a = Tensor::from_dense(&[2, 2], vec![1.0, 0.0, 0.0, 4.0].into(), &Format::csr(), Value::F64(0.0))?;
/// let x = Tensor::from_dense(&[2], vec![3.0, 5.0].into(), &Format::dense(1), Value::F64(0.0))?;
/// let results = tamis::einsum!("y[i] = A[i,j] * x[j]", A = &a, x)?;
/// assert_eq!(results["y"].get(&[1]), Some(Value::F64(20.0)));
/// assert_eq!(tamis::einsum!("ij,j->i", a, x)?.into_tensor()?.get(&[0]), Some(Value::F64(3.0)));
/// # Ok::<(), Diagnostics>(())
/// ```
///
/// A mistake in the text does not compile: here `B` has no tensor, and `j` could be reduced in two
/// places.
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

#[doc(inline)]
pub use {
    algebra::{DType, Value},
    diagnostic::{Diagnostic, Diagnostics},
    format::Format,
    notation::Notation,
    program::Program,
    tensor::Tensor,
};

/// Tensors, the arrays that they are made of, and what is known of their structure.
pub mod tensor {
    #[doc(inline)]
    pub use tamis_tensor::{
        Buffer, Combine, Coordinates, Index, IndexArray, LevelArrays, Mirror, Statistics, StoredPart, Structure,
        Tensor, ValueArray, ValueType, levels, with_capacity,
    };
}

/// Formats: levels, leaves, and the map from a tensor's dimensions to its levels.
pub mod format {
    #[doc(inline)]
    pub use tamis_ir::format::{DimExpr, Format, FormatSpec, Leaf, LevelKind, LevelSpec, Width};
}

/// Loop programs.
pub mod program {
    #[doc(inline)]
    pub use tamis_ir::program::{
        Declaration, Expr, ParamType, Program, Stmt, StmtKind, TensorId, TensorInfo, parse_operators,
        parse_operators_with,
    };
}

/// Schedules: commands that split, reorder, tile, unroll, vectorise and parallelise the loops of a
/// program.
pub mod schedule {
    #[doc(inline)]
    pub use tamis_compiler::schedule::{BoundKind, Command, Races, Schedule};
}

/// Value types, values and operators, built in or defined by the user.
pub mod algebra {
    pub use crate::operator::{define, define_with_derivatives};
    #[doc(inline)]
    pub use tamis_ir::algebra::{DType, Kind, Laws, Op, Value};
}

/// Diagnostics: a code, a place in the user's text, and what would work.
pub mod diagnostic {
    #[doc(inline)]
    pub use tamis_ir::diag::{
        Code, Diagnostic, Diagnostics, FileLocation, Label, Result, Severity, Source, Span, UnknownCode,
    };
}

/// Kernels: typed loops over arrays, which programs are lowered to.
pub mod kernel {
    #[doc(inline)]
    pub use tamis_ir::kernel::*;
}

/// Files: Matrix Market, FROSTT, npz, Binsparse, npy and others.
pub mod io {
    #[doc(inline)]
    pub use tamis_tensor::io::*;
}

/// Generated tensors: Laplacians, random, banded and blocked matrices, R-MAT graphs.
pub mod gallery {
    #[doc(inline)]
    pub use tamis_tensor::gallery::*;
}

/// The number of threads.
pub mod threads {
    #[doc(inline)]
    pub use tamis_tensor::{set_threads, threads, with_threads};
}

/// The cache of machine code, in memory and on disk, and the memory that kernels take.
pub mod cache {
    #[doc(inline)]
    pub use tamis_backend::cache::{Cache, CacheHit};
    #[doc(inline)]
    pub use tamis_tensor::{PatternCacheInfo, pattern_cache_info, set_pattern_cache_limit};

    /// Sets the maximum bytes of one array of a kernel or a tensor; returns the previous limit. What
    /// needs a larger array is refused with a diagnostic. The default is no limit but the memory of
    /// the machine.
    ///
    /// ```
    /// let before = tamis::cache::limit_arrays(1 << 30);
    /// assert_eq!(tamis::cache::limit_arrays(before), 1 << 30);
    /// ```
    pub fn limit_arrays(bytes: usize) -> usize {
        tamis_tensor::limit_arrays(bytes);
        tamis_backend::runtime::limit_arrays(bytes)
    }
}

/// Conversions from and to the types of other crates, which this module re-exports: `ndarray` and
/// `sprs`, behind features of these names.
#[cfg(any(feature = "ndarray", feature = "sprs"))]
pub mod interop {
    #[cfg(feature = "ndarray")]
    pub use tamis_tensor::interop::ndarray;
    #[cfg(feature = "sprs")]
    pub use tamis_tensor::interop::sprs;
}

/// The types that most programs need.
pub mod prelude {
    pub use crate::algebra::{DType, Laws, Op, Value};
    pub use crate::compile::{CompileOptions, Executable, Signature};
    pub use crate::diagnostic::{Diagnostic, Diagnostics};
    pub use crate::format::Format;
    pub use crate::notation::{EinsumOptions, Notation};
    pub use crate::program::Program;
    pub use crate::results::Results;
    pub use crate::run::RunOptions;
    pub use crate::schedule::Schedule;
    pub use crate::tensor::{Combine, Coordinates, Tensor, ValueArray};
}
