//! Generators of matrices and tensors for examples, tests and benchmarks.
