//! The policies `map` and `vector`, the two extremes, and the worked example of policies of one's own: an ordered map
//! keeps entries in order all the time; a vector sorts them once, at the end.
//!
//! Both are usually slower than the others, and both are whole policies: nothing but [`Policy`] is needed.

use super::policy::{Entries, Place, Policy};
use crate::runtime::typed::OutOfMemory;
use std::collections::BTreeMap;

/// An ordered map from coordinates to places.
#[derive(Debug, Default)]
pub(super) struct Map {
    places: BTreeMap<Vec<u64>, u32>,
    dimensions: usize,
}

impl Policy for Map {
    fn unique(&self) -> bool {
        true
    }

    fn patience(&self) -> usize {
        usize::MAX
    }

    fn start(&mut self, sizes: &[u64]) {
        self.dimensions = sizes.len();
    }

    fn place(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        if let Some(place) = self.places.get(coordinates) {
            return Ok(Place::Found(*place as usize));
        }
        if entries.is_full() {
            return Ok(Place::Full);
        }
        self.places.insert(coordinates.to_vec(), entries.len() as u32);
        Ok(Place::New)
    }

    fn sort(&mut self, _: &Entries<'_>, ids: &mut [u32]) -> bool {
        for (id, place) in ids.iter_mut().zip(self.places.values()) {
            *id = *place;
        }
        self.places.len() == ids.len()
    }

    fn clear(&mut self, _: &Entries<'_>) {
        self.places.clear();
    }

    fn bytes(&self) -> u64 {
        // About: nodes are two thirds full, and each key is an allocation of its own.
        let entry = size_of::<(Vec<u64>, u32)>() * 3 / 2 + 8 * self.dimensions + 16;
        (self.places.len() * entry) as u64
    }
}

/// Everything is appended.
#[derive(Debug)]
pub(super) struct Vector;

impl Policy for Vector {
    fn appends(&self) -> bool {
        true
    }

    fn patience(&self) -> usize {
        usize::MAX
    }

    fn place(&mut self, _: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        Ok(if entries.is_full() { Place::Full } else { Place::New })
    }

    fn clear(&mut self, _: &Entries<'_>) {}
}
