//! The `bucket` policy: bucket hashing by the leading coordinate, with short chains that also sort
//! the entries.

use super::hash::{FLUSH_THRESHOLD, Hash};
use super::policy::{AccumulationView, InsertionPolicy, Lookup};
use crate::runtime::scratch::{OutOfMemory, ScratchVec};

/// Maximum chain length. A longer chain moves to a hash table, which bounds the steps of an
/// insertion.
const MAX_CHAIN: usize = 16;

/// Minimum binary logarithm of the number of buckets, if the dimension is that large.
const MIN_BUCKET_BITS: u32 = 6;

/// The end of a chain.
const NONE: u32 = 0;

/// The head of a bucket whose entries are in the hash table.
const OVERFLOWED: u32 = u32::MAX;

/// A bucket per leading coordinate, or per range of leading coordinates: at most about twice as
/// many buckets as entries.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Per bucket: the position of its last entry, plus one.
    heads: ScratchVec<u32>,
    /// Per entry: the position of the previous entry in its bucket, plus one.
    links: ScratchVec<u32>,
    /// The binary logarithm of the number of buckets.
    bits: u32,
    /// The first dimension with more than one coordinate, and the bits of its coordinates.
    dimension: usize,
    width: u32,
    /// The number of entries for which links and buckets suffice.
    capacity_limit: usize,
    /// The entries of overflowed buckets.
    overflow: Hash,
    has_overflow: bool,
}

impl Bucket {
    #[inline(always)]
    fn bucket(&self, coordinate: u64) -> usize {
        // The caller has checked coordinates against the size, so the result is below the number of
        // buckets.
        (coordinate >> self.width.saturating_sub(self.bits)) as usize & ((1 << self.bits) - 1)
    }

    #[inline(always)]
    fn heads(&mut self) -> &mut [u32] {
        // SAFETY: heads are zeroed on allocation.
        unsafe { self.heads.initialized_mut(1 << self.bits) }
    }

    /// Prepends a position to the chain of a bucket; the link array has space for it.
    #[inline(always)]
    fn link(&mut self, bucket: usize, position: usize) {
        let head = self.heads()[bucket];
        // SAFETY: the link array has space for all entries and one more.
        unsafe { self.links.as_ptr().add(position).write(head) };
        self.heads()[bucket] = position as u32 + 1;
    }

    /// Grows the link array for another entry, and the number of buckets with the entries.
    #[cold]
    fn grow(&mut self, entries: &AccumulationView<'_>) -> Result<(), OutOfMemory> {
        self.links.reserve_keeping((2 * entries.len()).max(64), entries.len())?;
        let wanted = self.width.min((usize::BITS - entries.len().leading_zeros() + 1).max(MIN_BUCKET_BITS));
        if wanted > self.bits || self.heads.capacity() == 0 {
            let mut heads = ScratchVec::new();
            heads.zeroed(1 << wanted)?;
            (self.heads, self.bits) = (heads, wanted);
            // Splitting buckets may have shortened all chains.
            self.overflow.clear_slots();
            self.has_overflow = false;
            for position in 0..entries.len() {
                let bucket = self.bucket(entries.coordinate(position, self.dimension).unwrap_or(0));
                self.link(bucket, position);
            }
        }
        self.capacity_limit = self.links.capacity();
        if self.bits < self.width {
            self.capacity_limit = self.capacity_limit.min((entries.len() + 1).max(1 << self.bits));
        }
        Ok(())
    }

    /// Moves the entries of a bucket into the hash table.
    #[cold]
    fn overflow_bucket(&mut self, bucket: usize, entries: &AccumulationView<'_>) -> Result<(), OutOfMemory> {
        let mut link = self.heads()[bucket];
        let mut coordinates = vec![0; entries.sizes().len()];
        while link != NONE {
            let position = link as usize - 1;
            for (dimension, coordinate) in coordinates.iter_mut().enumerate() {
                *coordinate = entries.coordinate(position, dimension).unwrap_or(0);
            }
            self.overflow.find_or_insert_at(&coordinates, entries, position, false)?;
            // SAFETY: the link of every entry is initialised.
            link = unsafe { self.links.as_ptr().add(position).read() };
        }
        self.heads()[bucket] = OVERFLOWED;
        self.has_overflow = true;
        Ok(())
    }
}

impl InsertionPolicy for Bucket {
    fn unique(&self) -> bool {
        true
    }

    fn flush_threshold(&self) -> usize {
        FLUSH_THRESHOLD
    }

    fn set_sizes(&mut self, sizes: &[u64]) {
        self.dimension = sizes.iter().position(|size| *size > 1).unwrap_or(0);
        let size = sizes.get(self.dimension).copied().unwrap_or(0);
        let width = u64::BITS - size.saturating_sub(1).leading_zeros();
        if width < self.bits {
            // All heads are empty, so a prefix of them is, too.
            self.bits = width;
        }
        self.width = width;
        self.capacity_limit = 0;
        self.overflow.set_sizes(sizes);
    }

    fn lookup(&mut self, coordinates: &[u64], entries: &AccumulationView<'_>) -> Result<Lookup, OutOfMemory> {
        if entries.len() >= self.capacity_limit {
            self.grow(entries)?;
        }
        let bucket = self.bucket(coordinates.get(self.dimension).copied().unwrap_or(0));
        let mut link = self.heads()[bucket];
        let mut steps = 0;
        if link != OVERFLOWED {
            while link != NONE {
                let position = link as usize - 1;
                if entries.holds(position, coordinates) {
                    return Ok(Lookup::Found(position));
                }
                steps += 1;
                if steps > MAX_CHAIN {
                    self.overflow_bucket(bucket, entries)?;
                    break;
                }
                // SAFETY: the link of every entry is initialised.
                link = unsafe { self.links.as_ptr().add(position).read() };
            }
        }
        if steps > MAX_CHAIN || link == OVERFLOWED {
            return self.overflow.find_or_insert(coordinates, entries);
        }
        if entries.is_full() {
            return Ok(Lookup::Full);
        }
        self.link(bucket, entries.len());
        Ok(Lookup::New)
    }

    fn sort(&mut self, entries: &AccumulationView<'_>, ids: &mut [u32]) -> bool {
        if self.has_overflow || self.heads.capacity() == 0 || 1usize << self.bits > 4 * ids.len() {
            return false;
        }
        let mut done = 0;
        for bucket in 0..1usize << self.bits {
            let start = done;
            let mut link = self.heads()[bucket];
            while link != NONE && done < ids.len() {
                let position = link - 1;
                let after = |other: u32| {
                    let pairs = entries
                        .coord_arrays
                        .iter()
                        .map(|array| (array.get(other as usize), array.get(position as usize)));
                    pairs.map(|(a, b)| a.cmp(&b)).find(|order| order.is_ne()).is_some_and(|order| order.is_gt())
                };
                let mut to = done;
                while to > start && after(ids[to - 1]) {
                    ids[to] = ids[to - 1];
                    to -= 1;
                }
                ids[to] = position;
                done += 1;
                // SAFETY: the link of every entry is initialised.
                link = unsafe { self.links.as_ptr().add(position as usize).read() };
            }
        }
        done == ids.len()
    }

    fn clear(&mut self, entries: &AccumulationView<'_>) {
        if self.heads.capacity() > 0 {
            for position in 0..entries.len() {
                let bucket = self.bucket(entries.coordinate(position, self.dimension).unwrap_or(0));
                self.heads()[bucket] = NONE;
            }
        }
        self.overflow.clear_slots();
        self.has_overflow = false;
    }

    fn bytes(&self) -> u64 {
        self.heads.bytes() + self.links.bytes() + self.overflow.bytes()
    }
}
