//! Convolution benchmarks: cubes of one to three dimensions against C, and network layers against
//! PyTorch.

pub mod cubes;
pub mod layers;
pub mod variants;
