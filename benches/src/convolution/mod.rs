//! Convolutions beside dense ones: cubes of one to three dimensions beside C, and layers of a network beside PyTorch.

pub mod cubes;
pub mod layers;
pub mod ways;
