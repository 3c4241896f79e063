//! Packed keys: the coordinates of an entry in one integer that preserves their lexicographic
//! order, and back.

use super::WorkspaceError;
use super::policy::CoordArray;
use crate::runtime::sort::ids::SortItem;

/// An integer of packed coordinates.
pub(super) trait SortKey: Copy + Ord + Send + 'static {
    /// The width in bits.
    const BITS: u32;
    /// True if keys have digits for radix sort; wider keys are compared.
    const HAS_DIGITS: bool;
    const ZERO: Self;
    /// Shifts left by `bits` (at most 63), and writes a number into the low bits.
    fn push(self, bits: u32, number: u64) -> Self;
    /// Returns the low `bits` bits (at most 63), and the key shifted right by them.
    fn pop(self, bits: u32) -> (u64, Self);
    /// The low word of the key shifted right by `shift`.
    fn digit(self, shift: u32) -> usize;
    /// The bits in which both keys differ; 0 if keys have no digits.
    fn differing(self, other: Self) -> u128;
}

impl SortKey for u64 {
    const BITS: u32 = 64;
    const HAS_DIGITS: bool = true;
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

impl SortKey for u128 {
    const BITS: u32 = 128;
    const HAS_DIGITS: bool = true;
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

/// The most significant word comes first, so that arrays compare as integers do.
impl<const N: usize> SortKey for [u64; N] {
    const BITS: u32 = 64 * N as u32;
    const HAS_DIGITS: bool = false;
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

/// A key and its entry id.
#[derive(Clone, Copy)]
pub(super) struct KeyedId<K> {
    pub(super) key: K,
    pub(super) id: u32,
}

impl<K: SortKey> SortItem for KeyedId<K> {
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        self.key.digit(shift)
    }
    #[inline(always)]
    fn before(&self, other: &KeyedId<K>) -> bool {
        (self.key, self.id) < (other.key, other.id)
    }
}

/// A key and its entry id fused into one word, the key in the high bits.
impl SortItem for u64 {
    #[inline(always)]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
    #[inline(always)]
    fn before(&self, other: &u64) -> bool {
        self < other
    }
}

/// The bit layout of keys: dimension by dimension, the outermost one in the highest bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) sizes: Vec<u64>,
    bits: Vec<u32>,
    /// The sum of all bits.
    pub(super) total: u32,
}

/// Entries packed at a time; they stay in the L1 cache.
const BLOCK: usize = 512;

impl Packing {
    /// Sets the layout for dimensions of these sizes, none above 2^63.
    pub(super) fn set(&mut self, sizes: impl Iterator<Item = u64>) {
        self.sizes.clear();
        self.sizes.extend(sizes);
        self.bits.clear();
        self.bits.extend(self.sizes.iter().map(|size| u64::BITS - size.saturating_sub(1).leading_zeros()));
        self.total = self.bits.iter().sum();
    }

    /// The bits of the innermost coordinate.
    pub(super) fn innermost_bits(&self) -> u32 {
        self.bits.last().copied().unwrap_or(0)
    }

    /// Packs the coordinates of the entries `0..count`, and passes them to `take` in order: one
    /// block at a time, with the id of its first entry. Returns an error for a coordinate out of
    /// range.
    ///
    /// # Safety
    /// There is one coordinate array per dimension, each with `count` elements.
    #[inline(always)]
    pub(super) unsafe fn pack<K: SortKey>(
        &self,
        coord_arrays: &[CoordArray],
        count: usize,
        take: impl FnMut(usize, &[K]) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.pack_range(coord_arrays, 0, count, take) }
    }

    /// [`Packing::pack`] for `count` entries from `first` on.
    ///
    /// # Safety
    /// There is one coordinate array per dimension, each with `first + count` elements.
    #[inline(always)]
    pub(super) unsafe fn pack_range<K: SortKey>(
        &self,
        coord_arrays: &[CoordArray],
        first: usize,
        count: usize,
        mut take: impl FnMut(usize, &[K]) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        let mut block = [K::ZERO; BLOCK];
        let mut start = first;
        while start < first + count {
            let len = BLOCK.min(first + count - start);
            let keys = &mut block[..len];
            if coord_arrays.is_empty() {
                keys.fill(K::ZERO);
            }
            // SAFETY: guaranteed by the caller.
            let packed = unsafe { self.pack_two(coord_arrays, start, keys) };
            for (dimension, ((array, bits), size)) in coord_arrays.iter().zip(&self.bits).zip(&self.sizes).enumerate() {
                if packed {
                    break;
                }
                // SAFETY: guaranteed by the caller.
                let inside = unsafe {
                    match *array {
                        CoordArray::U32(data) => push_all(keys, data.add(start), *bits, *size, dimension == 0),
                        CoordArray::U64(data) => push_all(keys, data.add(start), *bits, *size, dimension == 0),
                    }
                };
                if !inside {
                    let outside = |position: &usize| array.get(*position) >= *size;
                    let coordinate = (start..start + len).find(outside).map_or(0, |position| array.get(position));
                    return Err(WorkspaceError::Range { dimension, coordinate, size: *size });
                }
            }
            take(start, keys)?;
            start += len;
        }
        Ok(())
    }

    /// Fast path for two dimensions of 32-bit coordinates. Returns `false` if the entries have
    /// another shape, or a coordinate is out of range.
    ///
    /// # Safety
    /// As for [`Packing::pack`].
    #[inline(always)]
    unsafe fn pack_two<K: SortKey>(&self, coord_arrays: &[CoordArray], start: usize, keys: &mut [K]) -> bool {
        let ([CoordArray::U32(a), CoordArray::U32(b)], [a_bits, b_bits], [a_size, b_size]) =
            (coord_arrays, &self.bits[..], &self.sizes[..])
        else {
            return false;
        };
        let (a_last, b_last, mut outside) = (a_size.wrapping_sub(1), b_size.wrapping_sub(1), 0);
        for (k, key) in keys.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            let (a, b) = unsafe { (u64::from(a.add(start + k).read()), u64::from(b.add(start + k).read())) };
            outside |= a_last.wrapping_sub(a) | b_last.wrapping_sub(b);
            *key = K::ZERO.push(*a_bits, a).push(*b_bits, b);
        }
        *a_size > 0 && *b_size > 0 && outside >> 63 == 0
    }

    /// Unpacks keys into the coordinate arrays, from position `first` on.
    ///
    /// # Safety
    /// There is one coordinate array per dimension, each with space for all keys from there on, and
    /// not aliased.
    pub(super) unsafe fn unpack<K: SortKey>(&self, keys: &[K], coord_arrays: &[CoordArray], first: usize) {
        if let ([CoordArray::U32(a), CoordArray::U32(b)], [a_bits, b_bits]) = (coord_arrays, &self.bits[..]) {
            for (k, key) in keys.iter().enumerate() {
                let (inner, rest) = key.pop(*b_bits);
                // SAFETY: guaranteed by the caller.
                unsafe {
                    a.add(first + k).write(rest.pop(*a_bits).0 as u32);
                    b.add(first + k).write(inner as u32);
                }
            }
            return;
        }
        let mut block = [K::ZERO; BLOCK];
        for (index, chunk) in keys.chunks(BLOCK).enumerate() {
            let start = first + index * BLOCK;
            let block = &mut block[..chunk.len()];
            block.copy_from_slice(chunk);
            for (array, bits) in coord_arrays.iter().zip(&self.bits).rev() {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    match *array {
                        CoordArray::U32(data) => pop_all(block, data.add(start), *bits, |x| x as u32),
                        CoordArray::U64(data) => pop_all(block, data.add(start), *bits, |x| x),
                    }
                }
            }
        }
    }
}

/// Pushes one coordinate onto each key, or starts the keys with it if it is the `first`. Returns
/// `false` if one is not below `size`.
///
/// # Safety
/// There are as many coordinates as keys.
#[inline(always)]
unsafe fn push_all<K: SortKey, C: Copy + Into<u64>>(
    keys: &mut [K],
    data: *const C,
    bits: u32,
    size: u64,
    first: bool,
) -> bool {
    // Sizes are at most 2^63. A coordinate out of range makes the difference or itself negative.
    // This check needs no comparison, so that the loop vectorises.
    let (last, mut outside) = (size.wrapping_sub(1), 0);
    // SAFETY: guaranteed by the caller.
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
/// There is space for as many coordinates as there are keys.
#[inline(always)]
unsafe fn pop_all<K: SortKey, C>(keys: &mut [K], data: *mut C, bits: u32, narrow: impl Fn(u64) -> C) {
    for (k, key) in keys.iter_mut().enumerate() {
        let (coordinate, rest) = key.pop(bits);
        *key = rest;
        // SAFETY: guaranteed by the caller.
        unsafe { data.add(k).write(narrow(coordinate)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: SortKey + std::fmt::Debug>(sizes: &[u64]) {
        let mut packing = Packing::default();
        packing.set(sizes.iter().copied());
        assert!(packing.total <= K::BITS);
        let count = 1500;
        let value = |k: usize, d: usize| {
            (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7 * d as u32) % sizes[d]
        };
        let mut columns: Vec<Vec<u64>> = (0..sizes.len()).map(|d| (0..count).map(|k| value(k, d)).collect()).collect();
        let coord_arrays: Vec<CoordArray> =
            columns.iter_mut().map(|column| CoordArray::U64(column.as_mut_ptr())).collect();
        let mut keys = Vec::new();
        // SAFETY: the columns are that long.
        unsafe {
            packing.pack::<K>(&coord_arrays, count, |_, block| {
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
        let coord_arrays: Vec<CoordArray> =
            back.iter_mut().map(|column| CoordArray::U64(column.as_mut_ptr())).collect();
        // SAFETY: as above.
        unsafe { packing.unpack(&keys, &coord_arrays, 0) };
        assert_eq!(back, columns);
    }

    #[test]
    fn keys_preserve_order_and_round_trip() {
        round_trip::<u64>(&[1 << 63, 1]);
        round_trip::<u64>(&[1000, 3, 1 << 40]);
        round_trip::<u128>(&[1 << 62, 1 << 63]);
        round_trip::<u128>(&[7, 1 << 33, 1, 1 << 32]);
        round_trip::<[u64; 4]>(&[1 << 62, 1 << 63, 1, 1 << 62, 5]);
        round_trip::<[u64; 16]>(&[1 << 63; 16]);
    }
}
