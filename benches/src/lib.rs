//! Benchmarks of Tamis beside its peers: run by command, never asserted in tests.
