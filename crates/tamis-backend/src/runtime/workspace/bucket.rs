//! The policy `bucket`: entries with the same leading coordinate are in one short chain, which finds them and orders them.

use super::hash::{Hash, PATIENCE};
use super::policy::{Entries, Place, Policy};
use crate::runtime::typed::{OutOfMemory, Room};

/// A chain longer than this is replaced by a hash table, so that no insertion takes more steps.
const LONGEST: usize = 16;

/// There are at least so many buckets, as a power of two, if the dimension is that large.
const FEWEST: u32 = 6;

/// The end of a chain.
const NONE: u32 = 0;

/// A bucket whose entries are in the hash table.
const CROWDED: u32 = u32::MAX;

/// A bucket per leading coordinate, or per range of them: there are never more than about twice as many as entries.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Per bucket: one more than the place of its last entry.
    heads: Room<u32>,
    /// Per entry: one more than the place of the one before it in its bucket.
    links: Room<u32>,
    /// The binary logarithm of the number of buckets.
    bits: u32,
    /// The first dimension that has more than one coordinate, and the bits of its coordinates.
    dimension: usize,
    width: u32,
    /// For so many entries there are links and buckets enough.
    enough: usize,
    /// Entries of crowded buckets.
    crowd: Hash,
    crowded: bool,
}

impl Bucket {
    #[inline(always)]
    fn bucket(&self, coordinate: u64) -> usize {
        // Coordinates have been compared with the size, so that this is below the number of buckets.
        (coordinate >> self.width.saturating_sub(self.bits)) as usize & ((1 << self.bits) - 1)
    }

    #[inline(always)]
    fn heads(&mut self) -> &mut [u32] {
        // SAFETY: all heads are zeroed when they are made.
        unsafe { self.heads.written_mut(1 << self.bits) }
    }

    /// Links to a place, for which there is room.
    #[inline(always)]
    fn link(&mut self, bucket: usize, place: usize) {
        let head = self.heads()[bucket];
        // SAFETY: there is room for the links of all entries and one more.
        unsafe { self.links.pointer().add(place).write(head) };
        self.heads()[bucket] = place as u32 + 1;
    }

    /// Room for the link of another entry, and as many buckets as so many entries deserve.
    #[cold]
    fn grow(&mut self, entries: &Entries<'_>) -> Result<(), OutOfMemory> {
        self.links.keep((2 * entries.len()).max(64), entries.len())?;
        let wanted = self.width.min((usize::BITS - entries.len().leading_zeros() + 1).max(FEWEST));
        if wanted > self.bits || self.heads.capacity() == 0 {
            let mut heads = Room::new();
            heads.zeroed(1 << wanted)?;
            (self.heads, self.bits) = (heads, wanted);
            // Buckets were split, so that crowds may be none any more.
            self.crowd.forget();
            self.crowded = false;
            for place in 0..entries.len() {
                let bucket = self.bucket(entries.coordinate(place, self.dimension).unwrap_or(0));
                self.link(bucket, place);
            }
        }
        self.enough = self.links.capacity();
        if self.bits < self.width {
            self.enough = self.enough.min((entries.len() + 1).max(1 << self.bits));
        }
        Ok(())
    }

    /// Moves the entries of a bucket into the hash table.
    #[cold]
    fn crowd(&mut self, bucket: usize, entries: &Entries<'_>) -> Result<(), OutOfMemory> {
        let mut at = self.heads()[bucket];
        let mut coordinates = vec![0; entries.sizes().len()];
        while at != NONE {
            let place = at as usize - 1;
            for (dimension, coordinate) in coordinates.iter_mut().enumerate() {
                *coordinate = entries.coordinate(place, dimension).unwrap_or(0);
            }
            self.crowd.look_up_as(&coordinates, entries, place, false)?;
            // SAFETY: links of entries are written when they are remembered.
            at = unsafe { self.links.pointer().add(place).read() };
        }
        self.heads()[bucket] = CROWDED;
        self.crowded = true;
        Ok(())
    }
}

impl Policy for Bucket {
    fn unique(&self) -> bool {
        true
    }

    fn patience(&self) -> usize {
        PATIENCE
    }

    fn start(&mut self, sizes: &[u64]) {
        self.dimension = sizes.iter().position(|size| *size > 1).unwrap_or(0);
        let size = sizes.get(self.dimension).copied().unwrap_or(0);
        let width = u64::BITS - size.saturating_sub(1).leading_zeros();
        if width < self.bits {
            // All heads are clear, and so are the first of them.
            self.bits = width;
        }
        self.width = width;
        self.enough = 0;
        self.crowd.start(sizes);
    }

    fn place(&mut self, coordinates: &[u64], entries: &Entries<'_>) -> Result<Place, OutOfMemory> {
        if entries.len() >= self.enough {
            self.grow(entries)?;
        }
        let bucket = self.bucket(coordinates.get(self.dimension).copied().unwrap_or(0));
        let mut at = self.heads()[bucket];
        let mut steps = 0;
        if at != CROWDED {
            while at != NONE {
                let place = at as usize - 1;
                if entries.holds(place, coordinates) {
                    return Ok(Place::Found(place));
                }
                steps += 1;
                if steps > LONGEST {
                    self.crowd(bucket, entries)?;
                    break;
                }
                // SAFETY: links of entries are written when they are remembered.
                at = unsafe { self.links.pointer().add(place).read() };
            }
        }
        if steps > LONGEST || at == CROWDED {
            return self.crowd.look_up(coordinates, entries);
        }
        if entries.is_full() {
            return Ok(Place::Full);
        }
        self.link(bucket, entries.len());
        Ok(Place::New)
    }

    fn sort(&mut self, entries: &Entries<'_>, ids: &mut [u32]) -> bool {
        if self.crowded || self.heads.capacity() == 0 || 1usize << self.bits > 4 * ids.len() {
            return false;
        }
        let mut done = 0;
        for bucket in 0..1usize << self.bits {
            let start = done;
            let mut at = self.heads()[bucket];
            while at != NONE && done < ids.len() {
                let place = at - 1;
                let after = |other: u32| {
                    let pairs = entries.lanes.iter().map(|lane| (lane.get(other as usize), lane.get(place as usize)));
                    pairs.map(|(a, b)| a.cmp(&b)).find(|order| order.is_ne()).is_some_and(|order| order.is_gt())
                };
                let mut to = done;
                while to > start && after(ids[to - 1]) {
                    ids[to] = ids[to - 1];
                    to -= 1;
                }
                ids[to] = place;
                done += 1;
                // SAFETY: links of entries are written when they are remembered.
                at = unsafe { self.links.pointer().add(place as usize).read() };
            }
        }
        done == ids.len()
    }

    fn clear(&mut self, entries: &Entries<'_>) {
        if self.heads.capacity() > 0 {
            for place in 0..entries.len() {
                let bucket = self.bucket(entries.coordinate(place, self.dimension).unwrap_or(0));
                self.heads()[bucket] = NONE;
            }
        }
        self.crowd.forget();
        self.crowded = false;
    }

    fn bytes(&self) -> u64 {
        self.heads.bytes() + self.links.bytes() + self.crowd.bytes()
    }
}
