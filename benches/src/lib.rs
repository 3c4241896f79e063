//! Benchmarks of Tamis against other systems: run by command, never asserted in tests.

pub mod baseline;
pub mod convolution;
pub mod inputs;
pub mod measure;
pub mod ours;
pub mod structures;
