//! The passes of Tamis, from programs to kernels.
//!
//! Rooms, in the order a program walks through them: `schedule/` (index notation to programs, to come), `normalize/`
//! (to come), [`lower`] (looplets to kernels, one loop at a time), `opt/` (to come). [`pipeline`] is the list of all passes.

pub mod lower;
pub mod opt;
pub mod pipeline;
