//! Machine code for kernels, and the runtime they call.
//!
//! This crate sees kernels only: no tensor, no looplet, no format. Rooms to come: `llvm/`, `c/`, the cache, and
//! `runtime/` (memory pool, sort, hash, search, threads, workspaces).
