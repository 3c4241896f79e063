//! Tests of the command, in one binary.

mod advise;
mod analyze;
mod catalog;
mod command_line;
mod common;
mod compile;
mod convert;
mod grad;
mod info;
mod notation;
mod run;
