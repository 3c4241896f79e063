//! Runtime library of compiled kernels: growable buffers, a memory pool, search, sorting,
//! workspaces, and math functions that are not inlined.
//!
//! Kernels reach the runtime only through the symbol table of `symbols`. No function here
//! unwinds, and every one reports failure by its result, so that a kernel always returns.

mod arrays;
mod gemm;
pub(crate) mod math;
pub(crate) mod memory;
mod pool;
mod scratch;
mod search;
mod sort;
pub mod workspace;

pub use arrays::run_on_arrays;
pub use memory::{Element, RawBuffer, RawStorage};
pub use pool::{MIN_POOLED_BYTES, acquire_memory, limit_arrays, release_memory};
pub use scratch::OutOfMemory;

/// The symbols that machine code may call, with their addresses.
pub(crate) fn symbols() -> impl Iterator<Item = (&'static str, usize)> {
    let own = [&gemm::SYMBOLS, &memory::SYMBOLS, &search::SYMBOLS, &sort::SYMBOLS, &workspace::SYMBOLS];
    let own = own.into_iter().flat_map(|rows| rows.iter()).map(|(name, function)| (*name, function.0 as usize));
    math::symbols().chain(own)
}

/// The address of a function.
pub(crate) struct Address(pub(crate) *const ());

// SAFETY: functions do not change, and calling them is up to the holder.
unsafe impl Sync for Address {}
