//! Tests of the intermediate representations and the operator table, in one binary.

mod adjoint;
mod derivatives;
mod elementary;
mod hostile_programs;
mod kernel_kinds;
mod kernel_text;
mod laws;
mod looplet_text;
mod operators;
mod programs;
