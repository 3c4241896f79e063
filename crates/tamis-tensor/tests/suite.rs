//! Tests of tensors, conversions and files, in one binary. `io_hostile` has one of its own, because
//! it counts allocations.

mod convert_large;
mod convert_pairs;
mod convert_properties;
mod gallery_structure;
mod gallery_text;
mod invariants_structured;
mod io_binsparse;
mod io_catalog;
mod io_corrupt;
mod io_read;
mod io_scipy;
mod io_write;
mod level_arrays;
mod structure;
mod structured;
mod tensor_invariants;
mod tensor_outputs;
mod tensor_statistics;
mod tensor_storage;
