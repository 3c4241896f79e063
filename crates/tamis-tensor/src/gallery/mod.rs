//! Generators of matrices and tensors for examples, tests and benchmarks.
//!
//! Each is a function that returns [`Coordinates`](crate::Coordinates) in row-major order without
//! duplicates, and a row of [`GENERATORS`], so that it can be called by a text: `laplacian(1000)`.
//! The same seed gives the same tensor on every platform, in every version.

mod call;
mod entries;
mod graphs;
mod grids;
mod random;
mod sample;
mod stream;
mod structured;
mod table;

pub use call::{Arguments, GeneratorCall, almost_call, generate, is_call, parse};
pub use graphs::rmat;
pub use grids::{laplacian, laplacian_grid, laplacian3};
pub use random::{blocked, permutation, random, random_nnz};
pub use structured::{Triangle, banded, banded_between, diagonal, identity, ones, triangular};
pub use table::{GENERATORS, Generate, Generator, Loose};
