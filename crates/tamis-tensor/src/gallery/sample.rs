//! Sampling without replacement: sorted, in linear time, and in memory proportional to the sample.

use super::entries::check_memory;
use super::stream::{Stream, reserve};
use tamis_ir::diag::Result;

/// Calls `visit` with `count` distinct numbers below `cells`, in increasing order, uniformly
/// distributed over all subsets.
///
/// By definition the sample is the first `count` distinct numbers among `stream.below(cells)`, or,
/// if `count` is more than half of `cells`, the complement of such a sample. The algorithm (a
/// bitmap, or sorting) depends on memory and does not change the result. The caller has checked
/// that `count <= cells`.
pub(super) fn sorted_sample(stream: &mut Stream, cells: u128, count: u128, mut visit: impl FnMut(u128)) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    if count > cells / 2 {
        let map = bitmap(stream, cells, cells - count)?;
        for_each_bit(&map, cells, false, visit);
        return Ok(());
    }
    // A bitmap that is no larger than an array of the numbers.
    if cells / 64 <= count {
        let map = bitmap(stream, cells, count)?;
        for_each_bit(&map, cells, true, visit);
        return Ok(());
    }
    match u64::try_from(cells) {
        Ok(cells) => distinct(count, 64 - (cells - 1).leading_zeros(), || stream.below(cells))?
            .into_iter()
            .for_each(|cell| visit(u128::from(cell))),
        Err(_) => {
            distinct(count, 128 - (cells - 1).leading_zeros(), || stream.below_wide(cells))?.into_iter().for_each(visit)
        }
    }
    Ok(())
}

/// Marks the first `count` distinct numbers of the stream below `cells`.
fn bitmap(stream: &mut Stream, cells: u128, count: u128) -> Result<Vec<u64>> {
    let words = check_memory(cells.div_ceil(64), 8)?;
    let mut map: Vec<u64> = reserve(words)?;
    map.resize(words, 0);
    // The bitmap is in memory, so its number of bits fits 64 bits.
    let cells = cells as u64;
    let mut left = count;
    while left > 0 {
        let cell = stream.below(cells);
        let (word, bit) = ((cell / 64) as usize, 1u64 << (cell % 64));
        left -= u128::from(map[word] & bit == 0);
        map[word] |= bit;
    }
    Ok(map)
}

fn for_each_bit(map: &[u64], cells: u128, set: bool, mut visit: impl FnMut(u128)) {
    for (k, word) in map.iter().enumerate() {
        let first = k as u128 * 64;
        let mut bits = if set { *word } else { !*word };
        // No number lies beyond the last cell.
        if cells - first < 64 {
            bits &= (1u64 << (cells - first)) - 1;
        }
        while bits != 0 {
            visit(first + u128::from(bits.trailing_zeros()));
            bits &= bits - 1;
        }
    }
}

/// The first `count` distinct numbers that `draw` returns, sorted; numbers have at most `bits`
/// bits.
///
/// Each round draws only the number of missing elements, so that no round draws too many.
fn distinct<K: SampleKey>(count: u128, bits: u32, mut draw: impl FnMut() -> K) -> Result<Vec<K>> {
    let count = check_memory(count, 2 * size_of::<K>() as u64)?;
    let mut kept: Vec<K> = reserve(count)?;
    let mut fresh: Vec<K> = reserve(count)?;
    while kept.len() < count {
        fresh.clear();
        fresh.extend((kept.len()..count).map(|_| draw()));
        radix_sort(&mut fresh, bits)?;
        fresh.dedup();
        merge_new(&mut kept, &fresh);
    }
    Ok(kept)
}

/// Merges sorted `fresh` into sorted `kept`, in place from the end, without duplicates.
fn merge_new<K: SampleKey>(kept: &mut Vec<K>, fresh: &[K]) {
    if kept.is_empty() {
        kept.extend_from_slice(fresh);
        return;
    }
    let mut old = kept.len();
    kept.extend_from_slice(fresh);
    let mut at = kept.len();
    for key in fresh.iter().rev() {
        while old > 0 && kept[old - 1] > *key {
            (old, at) = (old - 1, at - 1);
            kept[at] = kept[old];
        }
        at -= 1;
        kept[at] = *key;
    }
    // Everything is sorted now, and numbers that were drawn again are adjacent duplicates.
    kept.dedup();
}

/// An integer key of a radix sort.
pub(super) trait SampleKey: Copy + Ord + Default {
    /// The digit of [`DIGIT_BITS`] bits at this shift.
    fn digit(self, shift: u32) -> usize;
}

/// Digits small enough that the counters stay in the fastest cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

impl SampleKey for u64 {
    #[inline]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize & (DIGITS - 1)
    }
}

impl SampleKey for u128 {
    #[inline]
    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize & (DIGITS - 1)
    }
}

/// Radix sort of numbers of at most `bits` bits, least significant digit first.
pub(super) fn radix_sort<K: SampleKey>(keys: &mut Vec<K>, bits: u32) -> Result<()> {
    // For a few numbers, clearing the counters would dominate.
    if keys.len() < 2 * DIGITS {
        keys.sort_unstable();
        return Ok(());
    }
    let mut other: Vec<K> = reserve(keys.len())?;
    other.resize(keys.len(), K::default());
    let mut starts = vec![0usize; DIGITS];
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        starts.fill(0);
        keys.iter().for_each(|key| starts[key.digit(shift)] += 1);
        let mut start = 0;
        for slot in &mut starts {
            start += std::mem::replace(slot, start);
        }
        for key in keys.iter() {
            let slot = &mut starts[key.digit(shift)];
            other[*slot] = *key;
            *slot += 1;
        }
        std::mem::swap(keys, &mut other);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::stream::StreamPurpose;
    use super::*;

    fn sample(seed: u64, cells: u128, count: u128) -> Vec<u128> {
        let mut found = Vec::new();
        sorted_sample(&mut Stream::new(seed, StreamPurpose::Structure), cells, count, |cell| found.push(cell)).unwrap();
        found
    }

    #[test]
    fn exact_distinct_and_sorted() {
        let cases: [(u128, u128); 10] = [
            (1, 0),
            (1, 1),
            (64, 64),
            (65, 64),
            (100, 3),
            (100, 97),
            (1 << 20, 1 << 12),
            (1 << 40, 50_000),
            (u64::MAX as u128, 10_000),
            (1 << 90, 10_000),
        ];
        for (cells, count) in cases {
            let found = sample(3, cells, count);
            assert_eq!(found.len() as u128, count, "{cells} {count}");
            assert!(found.windows(2).all(|w| w[0] < w[1]), "{cells} {count}");
            assert!(found.iter().all(|cell| *cell < cells), "{cells} {count}");
        }
    }

    #[test]
    fn sorting_and_the_bitmap_give_the_same_sample() {
        let (cells, count) = (20_000u64, 5_000u128);
        let mut stream = Stream::new(5, StreamPurpose::Structure);
        let sorted = distinct(count, 15, || stream.below(cells)).unwrap();
        let widened: Vec<u128> = sorted.into_iter().map(u128::from).collect();
        assert_eq!(widened, sample(5, u128::from(cells), count));
    }

    #[test]
    fn every_cell_is_equally_likely() {
        for count in [2u128, 8] {
            let mut hits = [0u32; 10];
            (0..20_000).for_each(|seed| sample(seed, 10, count).iter().for_each(|cell| hits[*cell as usize] += 1));
            let expected = 2000.0 * count as f64;
            for hit in hits {
                assert!((f64::from(hit) - expected).abs() < 5.0 * expected.sqrt(), "{count}: {hits:?}");
            }
        }
    }

    #[test]
    fn radix_sort_sorts() {
        let mut stream = Stream::new(1, StreamPurpose::Structure);
        let mut keys: Vec<u128> = (0..10_000).map(|_| stream.below_wide(1 << 100)).collect();
        let mut expected = keys.clone();
        expected.sort_unstable();
        radix_sort(&mut keys, 100).unwrap();
        assert_eq!(keys, expected);
    }
}
