//! The `hash` policy: an open-addressing hash table finds equal coordinates on insertion, so that
//! entries are unique.

use super::policy::{AccumulationView, InsertionPolicy, Lookup};
use crate::runtime::scratch::{OutOfMemory, ScratchVec};
use std::hash::{BuildHasher, RandomState};

/// A slot of the table. A slot of an earlier epoch is empty, so that clearing takes constant time.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The packed coordinates if they fit into 64 bits, else their hash.
    key: u64,
    position: u32,
    epoch: u32,
}

/// Open addressing with linear probing, and a load factor of at most one half; grows with the
/// entries.
#[derive(Debug)]
pub(super) struct Hash {
    slots: ScratchVec<Slot>,
    /// The number of slots, a power of two, or 0.
    size: usize,
    used: usize,
    epoch: u32,
    /// The bits of each dimension if all fit into 64: then the key alone identifies an entry.
    packed: Option<Vec<u32>>,
    /// A random seed per process against crafted collisions.
    seed: u64,
}

/// The minimum number of slots.
const MIN_SLOTS: usize = 64;

/// Flush threshold: a table of this many entries stays in a core's private cache.
pub(super) const FLUSH_THRESHOLD: usize = 1 << 14;

impl Default for Hash {
    fn default() -> Hash {
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        let seed = *SEED.get_or_init(|| RandomState::new().hash_one(0u64) | 1);
        Hash { slots: ScratchVec::new(), size: 0, used: 0, epoch: 1, packed: None, seed }
    }
}

/// Multiply-fold mixing: every bit of the operands reaches the high bits of the result.
#[inline(always)]
fn mix(x: u64, seed: u64) -> u64 {
    let product = u128::from(x ^ seed) * u128::from(0x9E37_79B9_7F4A_7C15u64);
    product as u64 ^ (product >> 64) as u64
}

impl Hash {
    #[inline(always)]
    fn key(&self, coordinates: impl Iterator<Item = u64>) -> u64 {
        match &self.packed {
            Some(bits) => coordinates.zip(bits).fold(0, |key, (coordinate, bits)| key << bits | coordinate),
            None => coordinates.fold(0, |key, coordinate| mix(key.rotate_left(23) ^ coordinate, self.seed)),
        }
    }

    #[inline(always)]
    fn home_slot(&self, key: u64) -> usize {
        // The table has at least two slots, so the shift is less than the width.
        (mix(key, self.seed) >> (u64::BITS - self.size.trailing_zeros())) as usize
    }

    /// Rehashes all entries into a table of another size.
    #[cold]
    fn resize(&mut self, size: usize) -> Result<(), OutOfMemory> {
        let mut old = std::mem::take(&mut self.slots);
        let old_size = std::mem::replace(&mut self.size, size);
        if let Err(out_of_memory) = self.slots.zeroed(size) {
            (self.slots, self.size) = (old, old_size);
            return Err(out_of_memory);
        }
        let old_epoch = std::mem::replace(&mut self.epoch, 1);
        // SAFETY: slots are zeroed on allocation.
        for slot in unsafe { old.initialized_mut(old_size) } {
            if slot.epoch == old_epoch {
                let mut index = self.home_slot(slot.key);
                // SAFETY: as above.
                let slots = unsafe { self.slots.initialized_mut(size) };
                // The new table has more slots than entries.
                while slots[index].epoch == 1 {
                    index = (index + 1) & (size - 1);
                }
                slots[index] = Slot { epoch: 1, ..*slot };
            }
        }
        Ok(())
    }

    /// Finds an entry, or inserts the next one unless the accumulation array is full.
    #[inline(always)]
    pub(super) fn find_or_insert(
        &mut self,
        coordinates: &[u64],
        entries: &AccumulationView<'_>,
    ) -> Result<Lookup, OutOfMemory> {
        self.find_or_insert_at(coordinates, entries, entries.len(), entries.is_full())
    }

    /// Like [`Hash::find_or_insert`], for an entry at a given position.
    #[inline(always)]
    pub(super) fn find_or_insert_at(
        &mut self,
        coordinates: &[u64],
        entries: &AccumulationView<'_>,
        position: usize,
        full: bool,
    ) -> Result<Lookup, OutOfMemory> {
        if 2 * self.used >= self.size {
            self.resize((2 * self.size).max(MIN_SLOTS))?;
        }
        let key = self.key(coordinates.iter().copied());
        let exact = self.packed.is_some();
        let (epoch, mask) = (self.epoch, self.size - 1);
        let mut index = self.home_slot(key);
        // SAFETY: slots are zeroed on allocation.
        let slots = unsafe { self.slots.initialized_mut(self.size) };
        // At most half of the slots are taken, so an empty one ends the probe.
        loop {
            // SAFETY: the slot index is masked to the size of the table.
            let slot = unsafe { slots.get_unchecked_mut(index & mask) };
            if slot.epoch != epoch {
                if full {
                    return Ok(Lookup::Full);
                }
                *slot = Slot { key, position: position as u32, epoch };
                self.used += 1;
                return Ok(Lookup::New);
            }
            if slot.key == key && (exact || entries.holds(slot.position as usize, coordinates)) {
                return Ok(Lookup::Found(slot.position as usize));
            }
            index += 1;
        }
    }

    pub(super) fn clear_slots(&mut self) {
        self.used = 0;
        if let Some(epoch) = self.epoch.checked_add(1) {
            self.epoch = epoch;
        } else {
            // The epoch wraps around after 2^32 clears: slots of the first epochs must not become
            // valid again.
            self.epoch = 1;
            // SAFETY: slots are zeroed on allocation.
            unsafe { self.slots.initialized_mut(self.size) }.fill(Slot { key: 0, position: 0, epoch: 0 });
        }
    }
}

impl InsertionPolicy for Hash {
    fn unique(&self) -> bool {
        true
    }

    fn flush_threshold(&self) -> usize {
        FLUSH_THRESHOLD
    }

    fn set_sizes(&mut self, sizes: &[u64]) {
        let bits = |size: &u64| u64::BITS - size.saturating_sub(1).leading_zeros();
        let packed = self.packed.get_or_insert_default();
        packed.clear();
        packed.extend(sizes.iter().map(bits));
        if packed.iter().sum::<u32>() > u64::BITS {
            self.packed = None;
        }
    }

    fn lookup(&mut self, coordinates: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        self.find_or_insert(coordinates, entries)
    }

    fn clear(&mut self, _: &AccumulationView<'_>) {
        self.clear_slots();
    }

    fn bytes(&self) -> u64 {
        self.slots.bytes()
    }
}
