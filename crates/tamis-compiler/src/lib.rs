//! The passes of Tamis, from programs to kernels.
//!
//! Modules, in the order of compilation: [`auto`] (notation to programs), [`schedule`] (programs to
//! programs, by command), [`lower`] (looplets to kernels, one loop at a time) and [`opt`] (kernels
//! to kernels). [`pipeline`] is the list of all passes.

pub mod auto;
pub mod counts;
pub mod lower;
pub mod opt;
pub mod pipeline;
pub mod schedule;
