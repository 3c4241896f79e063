//! What is decided about a program before it is lowered, as programs: every decision can be printed, changed and run.

pub mod classify;
pub mod insert;
