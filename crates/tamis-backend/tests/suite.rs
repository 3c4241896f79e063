//! Test suite of the back end, in one binary. `workspace_memory` has its own, because it limits the
//! memory of its process.

mod cache;
mod common;
mod gemm;
mod kernels;
mod kinds;
mod lanes;
mod operators;
mod random_kernels;
mod sorting;
mod vectors;
mod workspaces;
