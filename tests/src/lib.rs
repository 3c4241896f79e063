//! What the tests across the crates share: random programs, and the reader of filetests.

pub mod filetest;
pub mod fuzz;
pub mod generate;
pub mod lowered;
pub mod random;
pub mod wide;
