//! The case studies: the benefit of structured formats on real data. One file per study;
//! `interleaved` times several variants of one task.

pub mod compile;
pub mod graphs;
pub mod images;
pub mod interleaved;
pub mod load;
pub mod spgemm;
pub mod spmv;
