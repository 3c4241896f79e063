//! Intermediate representations of Tamis, their text forms, verifiers and interpreters.
//!
//! This crate depends on no other crate of Tamis. Its modules: [`algebra`] (value types, scalars,
//! operators), [`mod@format`] (storage formats, as text and data), [`text`] (lexer and parser),
//! [`program`] (loop programs, type and dimension inference), [`interp`] (the reference
//! interpreter), [`looplet`] and [`kernel`] (the representations that programs are lowered through
//! and to), [`diag`] (diagnostics).

mod affine;
pub mod algebra;
mod conversions;
pub mod diag;
pub mod format;
mod intern;
pub mod interp;
pub mod kernel;
pub mod looplet;
pub mod notation;
pub mod program;
pub mod text;

pub use algebra::{DType, Kind, Value};
pub use diag::{Code, Diagnostic, Diagnostics, Source, Span};
pub use format::{Format, FormatSpec};
pub use notation::Notation;
pub use program::Program;
