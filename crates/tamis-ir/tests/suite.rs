//! Tests of the languages and the operator table, in one binary.

mod derivatives;
mod hostile_programs;
mod kernel_kinds;
mod kernel_text;
mod laws;
mod looplet_text;
mod operators;
mod programs;
