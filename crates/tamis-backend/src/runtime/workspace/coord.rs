//! The policy `coord`: every entry is appended, and equal ones are combined when they are sorted.

use super::policy::{Entries, Place, Policy};
use crate::runtime::typed::OutOfMemory;

/// Appends. Best where few coordinates come more than once, or the capacity is small.
#[derive(Debug)]
pub(super) struct Coord;

impl Policy for Coord {
    fn appends(&self) -> bool {
        true
    }

    fn place(&mut self, _: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        Ok(if entries.is_full() { Place::Full } else { Place::New })
    }

    fn clear(&mut self, _: &Entries<'_>) {}
}
