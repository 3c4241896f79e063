//! What the tests across the crates share: random programs and how to shrink them, and the reader of filetests.

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
pub mod wide;
