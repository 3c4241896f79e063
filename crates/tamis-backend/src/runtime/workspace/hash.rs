//! The policy `hash`: a table finds the entry of a coordinate on insertion, so that each is there once.

use super::policy::{Entries, Place, Policy};
use crate::runtime::typed::{OutOfMemory, Room};
use std::hash::{BuildHasher, RandomState};

/// One place of the table. A slot of an earlier epoch is empty, so that clearing costs nothing.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The packed coordinates where they fit, else their hash.
    key: u64,
    place: u32,
    epoch: u32,
}

/// Open addressing, the next slot on a collision, at most half full; grows with the entries.
#[derive(Debug)]
pub(super) struct Hash {
    slots: Room<Slot>,
    /// How many slots are used, a power of two, or 0.
    size: usize,
    used: usize,
    epoch: u32,
    /// The bits of each dimension, if all fit into 64: then the key alone tells entries apart.
    packed: Option<Vec<u32>>,
    /// Different in each process, so that nobody can choose coordinates that collide.
    seed: u64,
}

/// The smallest table.
const MIN_POOLED_BYTES: usize = 64;

/// So many entries have a table that stays in a core's own cache.
pub(super) const PATIENCE: usize = 1 << 14;

impl Default for Hash {
    fn default() -> Hash {
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        let seed = *SEED.get_or_init(|| RandomState::new().hash_one(0u64) | 1);
        Hash { slots: Room::new(), size: 0, used: 0, epoch: 1, packed: None, seed }
    }
}

/// Both halves of a product: every bit of the operands reaches the high bits of the result.
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
    fn first(&self, key: u64) -> usize {
        // There are at least two slots, so the shift is less than the width.
        (mix(key, self.seed) >> (u64::BITS - self.size.trailing_zeros())) as usize
    }

    /// A table of another size with the same entries.
    #[cold]
    fn resize(&mut self, size: usize) -> Result<(), OutOfMemory> {
        let mut old = std::mem::take(&mut self.slots);
        let old_size = std::mem::replace(&mut self.size, size);
        if let Err(shortage) = self.slots.zeroed(size) {
            (self.slots, self.size) = (old, old_size);
            return Err(shortage);
        }
        let old_epoch = std::mem::replace(&mut self.epoch, 1);
        // SAFETY: all slots of a table are zeroed when it is made.
        for slot in unsafe { old.written_mut(old_size) } {
            if slot.epoch == old_epoch {
                let mut at = self.first(slot.key);
                // SAFETY: as above.
                let slots = unsafe { self.slots.written_mut(size) };
                // The new table has more slots than entries.
                while slots[at].epoch == 1 {
                    at = (at + 1) & (size - 1);
                }
                slots[at] = Slot { epoch: 1, ..*slot };
            }
        }
        Ok(())
    }

    /// Finds an entry, or remembers the next one if there is room for it.
    #[inline(always)]
    pub(super) fn look_up(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        self.look_up_as(coordinates, entries, entries.len(), entries.is_full())
    }

    /// Like [`Hash::look_up`], for an entry that is at a place already, or will be.
    #[inline(always)]
    pub(super) fn look_up_as(
        &mut self,
        coordinates: &[u64],
        entries: &Entries<'_>,
        place: usize,
        full: bool,
    ) -> Result<Place, OutOfMemory> {
        if 2 * self.used >= self.size {
            self.resize((2 * self.size).max(MIN_POOLED_BYTES))?;
        }
        let key = self.key(coordinates.iter().copied());
        let exact = self.packed.is_some();
        let (epoch, mask) = (self.epoch, self.size - 1);
        let mut at = self.first(key);
        // SAFETY: all slots of a table are zeroed when it is made.
        let slots = unsafe { self.slots.written_mut(self.size) };
        // No more than half of the slots are taken, so one ends the search.
        loop {
            // SAFETY: `at` is below the number of slots: it is masked, or has as many bits.
            let slot = unsafe { slots.get_unchecked_mut(at & mask) };
            if slot.epoch != epoch {
                if full {
                    return Ok(Place::Full);
                }
                *slot = Slot { key, place: place as u32, epoch };
                self.used += 1;
                return Ok(Place::New);
            }
            if slot.key == key && (exact || entries.holds(slot.place as usize, coordinates)) {
                return Ok(Place::Found(slot.place as usize));
            }
            at += 1;
        }
    }

    pub(super) fn forget(&mut self) {
        self.used = 0;
        if let Some(epoch) = self.epoch.checked_add(1) {
            self.epoch = epoch;
        } else {
            // Once in four billion times: slots of the first epochs must not come back to life.
            self.epoch = 1;
            // SAFETY: all slots of a table are zeroed when it is made.
            unsafe { self.slots.written_mut(self.size) }.fill(Slot { key: 0, place: 0, epoch: 0 });
        }
    }
}

impl Policy for Hash {
    fn unique(&self) -> bool {
        true
    }

    fn patience(&self) -> usize {
        PATIENCE
    }

    fn start(&mut self, sizes: &[u64]) {
        let bits = |size: &u64| u64::BITS - size.saturating_sub(1).leading_zeros();
        let packed = self.packed.get_or_insert_default();
        packed.clear();
        packed.extend(sizes.iter().map(bits));
        if packed.iter().sum::<u32>() > u64::BITS {
            self.packed = None;
        }
    }

    fn place(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        self.look_up(coordinates, entries)
    }

    fn clear(&mut self, _: &Entries<'_>) {
        self.forget();
    }

    fn bytes(&self) -> u64 {
        self.slots.bytes()
    }
}
