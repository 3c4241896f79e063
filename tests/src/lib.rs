//! Shared test support across the crates: generators of random programs, shrinking, and the
//! filetest runner.

pub mod affine;
pub mod blank;
pub mod compare;
pub mod conform;
pub mod convolve;
pub mod counted;
pub mod early_exit;
pub mod filetest;
pub mod fuzz;
pub mod gather;
pub mod generate;
pub mod lowered;
pub mod masks;
pub mod random;
pub mod schedules;
pub mod shrink;
pub mod statements;
pub mod wide;
