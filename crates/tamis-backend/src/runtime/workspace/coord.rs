//! The `coord` policy: appends every entry; equal ones are combined when they are sorted.

use super::policy::{AccumulationView, InsertionPolicy, Lookup};
use crate::runtime::scratch::OutOfMemory;

/// Appends every entry. Best where few coordinates occur more than once, or the capacity is small.
#[derive(Debug)]
pub(super) struct Coord;

impl InsertionPolicy for Coord {
    fn appends(&self) -> bool {
        true
    }

    fn lookup(&mut self, _: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        Ok(if entries.is_full() { Lookup::Full } else { Lookup::New })
    }

    fn clear(&mut self, _: &AccumulationView<'_>) {}
}
