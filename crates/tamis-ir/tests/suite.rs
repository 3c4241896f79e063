//! Tests of the intermediate representations and the operator table, in one binary.

mod adjoint;
mod derivatives;
mod hostile_programs;
mod laws;
mod operators;
mod programs;
