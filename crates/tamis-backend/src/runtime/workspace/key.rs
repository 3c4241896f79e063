//! Keys: the coordinates of an entry packed into one number that is ordered as they are, and back.

use super::Stop;
use super::policy::Lane;
use crate::runtime::sort::ids::Item;

/// A number that holds packed coordinates.
pub(super) trait Key: Copy + Ord + Send + 'static {
    /// How many bits it has.
    const BITS: u32;
    /// Whether keys are sorted by their digits.
    const DIGITS: bool;
    const ZERO: Self;
    /// Makes room for `bits` low bits (at most 63), and writes a number that fits there.
    fn push(self, bits: u32, number: u64) -> Self;
    /// The number in the low `bits` bits (at most 63), and the key without them.
    fn pop(self, bits: u32) -> (u64, Self);
    /// The low bits from a bit on.
    fn digit(self, shift: u32) -> usize;
    /// The bits in which both differ, if there are not too many.
    fn differing(self, other: Self) -> u128;
}

impl Key for u64 {
    const BITS: u32 = 64;
    const DIGITS: bool = true;
    const ZERO: u64 = 0;
    #[inline(always)]
    fn push(self, bits: u32, number: u64) -> u64 {
        self << bits | number
    }
    #[inline(always)]
    fn pop(self, bits: u32) -> (u64, u64) {
        (self & ((1 << bits) - 1), self >> bits)
    }
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    #[inline(always)]
    fn differing(self, other: u64) -> u128 {
        u128::from(self ^ other)
    }
}

impl Key for u128 {
    const BITS: u32 = 128;
    const DIGITS: bool = true;
    const ZERO: u128 = 0;
    #[inline(always)]
    fn push(self, bits: u32, number: u64) -> u128 {
        self << bits | u128::from(number)
    }
    #[inline(always)]
    fn pop(self, bits: u32) -> (u64, u128) {
        (self as u64 & ((1 << bits) - 1), self >> bits)
    }
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    #[inline(always)]
    fn differing(self, other: u128) -> u128 {
        self ^ other
    }
}

/// The most significant word first, so that arrays compare as numbers do.
impl<const N: usize> Key for [u64; N] {
    const BITS: u32 = 64 * N as u32;
    const DIGITS: bool = false;
    const ZERO: [u64; N] = [0; N];
    fn push(mut self, bits: u32, number: u64) -> [u64; N] {
        if bits > 0 {
            for k in 0..N {
                let below = if k + 1 < N { self[k + 1] } else { 0 };
                self[k] = self[k] << bits | below >> (u64::BITS - bits);
            }
            self[N - 1] |= number;
        }
        self
    }
    fn pop(mut self, bits: u32) -> (u64, [u64; N]) {
        let number = self[N - 1] & ((1 << bits) - 1);
        if bits > 0 {
            for k in (0..N).rev() {
                let above = if k > 0 { self[k - 1] } else { 0 };
                self[k] = self[k] >> bits | above << (u64::BITS - bits);
            }
        }
        (number, self)
    }
    fn digit(self, _: u32) -> usize {
        0
    }
    fn differing(self, _: [u64; N]) -> u128 {
        0
    }
}

/// A key and the number of its entry, side by side.
#[derive(Clone, Copy)]
pub(super) struct Pair<K> {
    pub(super) key: K,
    pub(super) id: u32,
}

impl<K: Key> Item for Pair<K> {
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        self.key.digit(shift)
    }
    #[inline(always)]
    fn before(&self, other: &Pair<K>) -> bool {
        (self.key, self.id) < (other.key, other.id)
    }
}

/// A key and the number of its entry in one word: the key above.
impl Item for u64 {
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    #[inline(always)]
    fn before(&self, other: &u64) -> bool {
        self < other
    }
}

/// How coordinates are packed: dimension by dimension, the first one in the highest bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) sizes: Vec<u64>,
    bits: Vec<u32>,
    /// All bits together.
    pub(super) total: u32,
}

/// So many entries are packed at a time, which stay in the cache.
const BLOCK: usize = 512;

impl Packing {
    /// For dimensions of these sizes, none above 2^63.
    pub(super) fn set(&mut self, sizes: impl Iterator<Item = u64>) {
        self.sizes.clear();
        self.sizes.extend(sizes);
        self.bits.clear();
        self.bits.extend(self.sizes.iter().map(|size| u64::BITS - size.saturating_sub(1).leading_zeros()));
        self.total = self.bits.iter().sum();
    }

    /// How many bits the innermost coordinate has.
    pub(super) fn inner(&self) -> u32 {
        self.bits.last().copied().unwrap_or(0)
    }

    /// Packs the coordinates of the entries `0..count` and hands them over in order, a block at a time, with the number of
    /// the first. A coordinate that its dimension does not have is refused.
    ///
    /// # Safety
    /// There is one lane per dimension, each with `count` elements.
    #[inline(always)]
    pub(super) unsafe fn pack<K: Key>(
        &self,
        lanes: &[Lane],
        count: usize,
        take: impl FnMut(usize, &[K]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        // SAFETY: promised by the caller.
        unsafe { self.pack_part(lanes, 0, count, take) }
    }

    /// [`Packing::pack`] for the entries from `first` on.
    ///
    /// # Safety
    /// There is one lane per dimension, each with `first + count` elements.
    #[inline(always)]
    pub(super) unsafe fn pack_part<K: Key>(
        &self,
        lanes: &[Lane],
        first: usize,
        count: usize,
        mut take: impl FnMut(usize, &[K]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut block = [K::ZERO; BLOCK];
        let mut start = first;
        while start < first + count {
            let len = BLOCK.min(first + count - start);
            let keys = &mut block[..len];
            if lanes.is_empty() {
                keys.fill(K::ZERO);
            }
            // SAFETY: promised by the caller.
            let packed = unsafe { self.pack_two(lanes, start, keys) };
            for (dimension, ((lane, bits), size)) in lanes.iter().zip(&self.bits).zip(&self.sizes).enumerate() {
                if packed {
                    break;
                }
                // SAFETY: promised by the caller.
                let inside = unsafe {
                    match *lane {
                        Lane::Narrow(data) => push_all(keys, data.add(start), *bits, *size, dimension == 0),
                        Lane::Wide(data) => push_all(keys, data.add(start), *bits, *size, dimension == 0),
                    }
                };
                if !inside {
                    let outside = |place: &usize| lane.get(*place) >= *size;
                    let coordinate = (start..start + len).find(outside).map_or(0, |place| lane.get(place));
                    return Err(Stop::Range { dimension, coordinate, size: *size });
                }
            }
            take(start, keys)?;
            start += len;
        }
        Ok(())
    }

    /// Packs the coordinates of entries of two dimensions, as most have; `false` if there are others, or one coordinate is not
    /// one of its dimension.
    ///
    /// # Safety
    /// As for [`Packing::pack`].
    #[inline(always)]
    unsafe fn pack_two<K: Key>(&self, lanes: &[Lane], start: usize, keys: &mut [K]) -> bool {
        let ([Lane::Narrow(a), Lane::Narrow(b)], [a_bits, b_bits], [a_size, b_size]) =
            (lanes, &self.bits[..], &self.sizes[..])
        else {
            return false;
        };
        let (a_last, b_last, mut outside) = (a_size.wrapping_sub(1), b_size.wrapping_sub(1), 0);
        for (k, key) in keys.iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            let (a, b) = unsafe { (u64::from(a.add(start + k).read()), u64::from(b.add(start + k).read())) };
            outside |= a_last.wrapping_sub(a) | b_last.wrapping_sub(b);
            *key = K::ZERO.push(*a_bits, a).push(*b_bits, b);
        }
        *a_size > 0 && *b_size > 0 && outside >> 63 == 0
    }

    /// Writes the coordinates of keys, those of the first one at place `first`.
    ///
    /// # Safety
    /// There is one lane per dimension, each with room for as many elements from there on as there are keys, that nobody else
    /// uses.
    pub(super) unsafe fn unpack<K: Key>(&self, keys: &[K], lanes: &[Lane], first: usize) {
        if let ([Lane::Narrow(a), Lane::Narrow(b)], [a_bits, b_bits]) = (lanes, &self.bits[..]) {
            for (k, key) in keys.iter().enumerate() {
                let (inner, rest) = key.pop(*b_bits);
                // SAFETY: promised by the caller.
                unsafe {
                    a.add(first + k).write(rest.pop(*a_bits).0 as u32);
                    b.add(first + k).write(inner as u32);
                }
            }
            return;
        }
        let mut block = [K::ZERO; BLOCK];
        for (number, part) in keys.chunks(BLOCK).enumerate() {
            let start = first + number * BLOCK;
            let block = &mut block[..part.len()];
            block.copy_from_slice(part);
            for (lane, bits) in lanes.iter().zip(&self.bits).rev() {
                // SAFETY: promised by the caller.
                unsafe {
                    match *lane {
                        Lane::Narrow(data) => pop_all(block, data.add(start), *bits, |x| x as u32),
                        Lane::Wide(data) => pop_all(block, data.add(start), *bits, |x| x),
                    }
                }
            }
        }
    }
}

/// Pushes one coordinate onto each key, or onto nothing if it is the first; `false` if one is not below `size`.
///
/// # Safety
/// There are as many coordinates as keys.
#[inline(always)]
unsafe fn push_all<K: Key, C: Copy + Into<u64>>(
    keys: &mut [K],
    data: *const C,
    bits: u32,
    size: u64,
    first: bool,
) -> bool {
    // Sizes are at most 2^63. A coordinate that is larger than the last one makes the difference negative, or is negative
    // itself: this takes no comparison, so that several are done at once.
    let (last, mut outside) = (size.wrapping_sub(1), 0);
    // SAFETY: promised by the caller.
    let coordinate = |k: usize| unsafe { data.add(k).read() }.into();
    if first {
        for (k, key) in keys.iter_mut().enumerate() {
            let coordinate: u64 = coordinate(k);
            outside |= last.wrapping_sub(coordinate) | coordinate;
            *key = K::ZERO.push(bits, coordinate);
        }
    } else {
        for (k, key) in keys.iter_mut().enumerate() {
            let coordinate: u64 = coordinate(k);
            outside |= last.wrapping_sub(coordinate) | coordinate;
            *key = key.push(bits, coordinate);
        }
    }
    size > 0 && outside >> 63 == 0
}

/// Pops one coordinate from each key.
///
/// # Safety
/// There is room for as many coordinates as there are keys.
#[inline(always)]
unsafe fn pop_all<K: Key, C>(keys: &mut [K], data: *mut C, bits: u32, narrow: impl Fn(u64) -> C) {
    for (k, key) in keys.iter_mut().enumerate() {
        let (coordinate, rest) = key.pop(bits);
        *key = rest;
        // SAFETY: promised by the caller.
        unsafe { data.add(k).write(narrow(coordinate)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: Key + std::fmt::Debug>(sizes: &[u64]) {
        let mut packing = Packing::default();
        packing.set(sizes.iter().copied());
        assert!(packing.total <= K::BITS);
        let count = 1500;
        let value = |k: usize, d: usize| {
            (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7 * d as u32) % sizes[d]
        };
        let mut columns: Vec<Vec<u64>> = (0..sizes.len()).map(|d| (0..count).map(|k| value(k, d)).collect()).collect();
        let lanes: Vec<Lane> = columns.iter_mut().map(|column| Lane::Wide(column.as_mut_ptr())).collect();
        let mut keys = Vec::new();
        // SAFETY: the columns are that long.
        unsafe {
            packing.pack::<K>(&lanes, count, |_, block| {
                keys.extend_from_slice(block);
                Ok(())
            })
        }
        .unwrap();
        for (a, b) in (0..count - 1).map(|k| (k, k + 1)) {
            let tuple = |k: usize| columns.iter().map(|column| column[k]).collect::<Vec<_>>();
            assert_eq!(keys[a].cmp(&keys[b]), tuple(a).cmp(&tuple(b)));
        }
        let mut back: Vec<Vec<u64>> = vec![vec![0; count]; sizes.len()];
        let lanes: Vec<Lane> = back.iter_mut().map(|column| Lane::Wide(column.as_mut_ptr())).collect();
        // SAFETY: as above.
        unsafe { packing.unpack(&keys, &lanes, 0) };
        assert_eq!(back, columns);
    }

    #[test]
    fn keys_are_ordered_as_coordinates_and_come_back() {
        round_trip::<u64>(&[1 << 63, 1]);
        round_trip::<u64>(&[1000, 3, 1 << 40]);
        round_trip::<u128>(&[1 << 62, 1 << 63]);
        round_trip::<u128>(&[7, 1 << 33, 1, 1 << 32]);
        round_trip::<[u64; 4]>(&[1 << 62, 1 << 63, 1, 1 << 62, 5]);
        round_trip::<[u64; 16]>(&[1 << 63; 16]);
    }
}
