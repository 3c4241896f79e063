//! Tensors: data types, levels, construction, conversion, generators and files.

mod arrays;
mod buffer;
pub mod convert;
mod coordinates;
pub mod gallery;
pub mod io;
pub mod levels;

pub use arrays::{Index, IndexArray, ValueArray};
pub use buffer::Buffer;
pub use coordinates::{Combine, Coordinates};
