//! Tensors: data types, levels, construction, conversion, generators and files.

mod arrays;
mod buffer;
mod construct;
pub mod convert;
mod coordinates;
pub mod gallery;
pub mod io;
pub mod levels;
mod memory;
mod operand;
mod stats;
mod tensor;

pub use arrays::{Index, IndexArray, ValueArray};
pub use buffer::Buffer;
pub use convert::{settle, written_as};
pub use coordinates::{Combine, Coordinates};
pub use levels::LevelArrays;
pub use memory::{Keeper, keep_memory_with};
pub use stats::{LevelStatistics, MatrixStatistics, Statistics};
pub use tensor::Tensor;
