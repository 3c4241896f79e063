//! Spy plots: where the entries of a tensor are, in a terminal or as an image.

mod bins;
pub(crate) mod image;
mod points;
pub(crate) mod terminal;

pub(crate) use bins::Plane;
pub(crate) use points::for_each_point;
