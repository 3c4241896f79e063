//! Tests of the façade, in one binary. `memory` has one of its own, because it limits the memory of
//! its process.

mod advice;
mod calls;
mod certain;
mod donation;
mod engines;
mod schedules;
mod tiles;
