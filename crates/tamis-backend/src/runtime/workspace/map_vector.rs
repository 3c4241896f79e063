//! The `map` and `vector` policies, which are the worked examples of custom policies: an ordered
//! map keeps entries sorted at all times; a vector sorts them once, at the end.
//!
//! Both are usually slower than the other policies. Both are complete: they use nothing but
//! [`InsertionPolicy`].

use super::policy::{AccumulationView, InsertionPolicy, Lookup};
use crate::runtime::scratch::OutOfMemory;
use std::collections::BTreeMap;

/// An ordered map from coordinates to positions.
#[derive(Debug, Default)]
pub(super) struct Map {
    positions: BTreeMap<Vec<u64>, u32>,
    dimensions: usize,
}

impl InsertionPolicy for Map {
    fn unique(&self) -> bool {
        true
    }

    fn flush_threshold(&self) -> usize {
        usize::MAX
    }

    fn set_sizes(&mut self, sizes: &[u64]) {
        self.dimensions = sizes.len();
    }

    fn lookup(&mut self, coordinates: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        if let Some(position) = self.positions.get(coordinates) {
            return Ok(Lookup::Found(*position as usize));
        }
        if entries.is_full() {
            return Ok(Lookup::Full);
        }
        self.positions.insert(coordinates.to_vec(), entries.len() as u32);
        Ok(Lookup::New)
    }

    fn sort(&mut self, _: &AccumulationView<'_>, ids: &mut [u32]) -> bool {
        for (id, position) in ids.iter_mut().zip(self.positions.values()) {
            *id = *position;
        }
        self.positions.len() == ids.len()
    }

    fn clear(&mut self, _: &AccumulationView<'_>) {
        self.positions.clear();
    }

    fn bytes(&self) -> u64 {
        // An estimate: nodes are two thirds full, and each key is a separate allocation.
        let entry = size_of::<(Vec<u64>, u32)>() * 3 / 2 + 8 * self.dimensions + 16;
        (self.positions.len() * entry) as u64
    }
}

/// Appends every entry, and never flushes.
#[derive(Debug)]
pub(super) struct Vector;

impl InsertionPolicy for Vector {
    fn appends(&self) -> bool {
        true
    }

    fn flush_threshold(&self) -> usize {
        usize::MAX
    }

    fn lookup(&mut self, _: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        Ok(if entries.is_full() { Lookup::Full } else { Lookup::New })
    }

    fn clear(&mut self, _: &AccumulationView<'_>) {}
}
