//! The case studies: what structure buys, measured on real data. One file per study; `turns` times several sides of one task.

pub mod compile;
pub mod graphs;
pub mod images;
pub mod load;
pub mod spgemm;
pub mod spmv;
pub mod turns;
