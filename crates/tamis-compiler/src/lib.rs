//! The passes of Tamis, from programs to kernels.
//!
//! Rooms to come, in the order a program walks through them: `schedule/` (index notation to programs), `normalize/`
//! (wrapperise, dimensionalise, concordise, lifecycles), `lower/` (looplets to kernels, one loop at a time, one
//! file per looplet; it names no level), `opt/`, and `pipeline`, the ordered list of passes.
//!
//! Until then programs run in the reference interpreter, `tamis_ir::interp`.
