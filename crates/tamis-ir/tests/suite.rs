//! Tests of the languages and the operator table, in one binary.

mod adjoint;
mod derivatives;
mod hostile_programs;
mod laws;
mod operators;
mod programs;
