//! Tensors: data types, levels, construction, conversion, generators and files.

mod arrays;
mod buffer;
mod construct;
pub mod convert;
mod coordinates;
pub mod gallery;
#[cfg(any(feature = "ndarray", feature = "sprs"))]
pub mod interop;
pub mod io;
pub mod levels;
mod memory;
mod operand;
mod stats;
mod structure;
mod tensor;
pub mod threads;
mod typed;

pub use arrays::{Index, IndexArray, ValueArray, bisect};
pub use buffer::Buffer;
pub use convert::{PatternCacheInfo, finalize, pattern_cache_info, set_pattern_cache_limit, written_as};
pub use coordinates::{Combine, Coordinates};
pub use levels::LevelArrays;
pub use memory::{MemoryPool, limit_arrays, set_memory_pool, with_capacity};
pub use stats::{LevelStatistics, Statistics};
pub use structure::{
    BLOCK_SIDES, BlockFit, Diagonals, Lines, MatrixStatistics, Mirror, Proposal, Slices, StoredPart, Structure, propose,
};
pub use tensor::{LiteralRange, Tensor};
pub use threads::{set_threads, threads, with_threads};
pub use typed::ValueType;
