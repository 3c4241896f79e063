//! Sorting of entries by their coordinates: a check for sorted input, then radix sort.

use crate::memory::{reserve, zeroed};
use crate::{Index, IndexArray, with_indices};
use std::cmp::Ordering;
use std::ops::Range;
use tamis_ir::diag::Result;

/// The order of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Tuples of coordinates are strictly increasing.
    Increasing,
    /// Tuples are non-decreasing, with duplicates.
    Repeating,
    /// Unsorted.
    Unsorted,
}

const BLOCK: usize = 4096;

/// Calls `found` with each entry whose tuple is at most the previous one, until it returns `false`.
/// The columns have one length; the first is the most significant.
pub(crate) fn visit_descents(columns: &[&IndexArray], found: &mut dyn FnMut(usize, Ordering) -> bool) {
    let entries = columns.first().map_or(0, |column| column.len());
    // -1, 0 or 1 if the previous entry is less, equal or greater. Blocks are compared column by
    // column without branches; that is several times faster than tuple by tuple.
    let mut relation = [0i8; BLOCK];
    let mut start = 1;
    while start < entries {
        let end = entries.min(start + BLOCK);
        if pairs_increase(columns, start - 1..end) {
            start = end;
            continue;
        }
        let relation = &mut relation[..end - start];
        relation.fill(0);
        for column in columns.iter().rev() {
            with_indices!(column, column => {
                for (relation, w) in relation.iter_mut().zip(column[start - 1..end].windows(2)) {
                    let this = (w[0] > w[1]) as i8 - (w[0] < w[1]) as i8;
                    *relation = if this != 0 { this } else { *relation };
                }
            });
        }
        if relation.iter().fold(i8::MIN, |largest, r| largest.max(*r)) >= 0 {
            for (k, r) in relation.iter().enumerate().filter(|(_, r)| **r >= 0) {
                let ordering = if *r == 0 { Ordering::Equal } else { Ordering::Greater };
                if !found(start + k, ordering) {
                    return;
                }
            }
        }
        start = end;
    }
}

/// True if tuples of two 32-bit columns increase strictly in a range; `false` for other widths.
fn pairs_increase(columns: &[&IndexArray], range: Range<usize>) -> bool {
    let [IndexArray::U32(outer), IndexArray::U32(inner)] = columns else { return false };
    let (outer, inner) = (&outer[range.clone()], &inner[range]);
    let broken = outer.windows(2).zip(inner.windows(2)).fold(false, |broken, (o, i)| {
        let key = |outer: u32, inner: u32| (outer as u64) << 32 | inner as u64;
        broken | (key(o[0], i[0]) >= key(o[1], i[1]))
    });
    !broken
}

/// Determines the order of entries.
pub(crate) fn order(columns: &[&IndexArray], entries: usize) -> Order {
    if columns.is_empty() {
        return if entries > 1 { Order::Repeating } else { Order::Increasing };
    }
    let mut order = Order::Increasing;
    visit_descents(columns, &mut |_, ordering| {
        order = if ordering == Ordering::Equal { Order::Repeating } else { Order::Unsorted };
        order != Order::Unsorted
    });
    order
}

/// The permutation that sorts the tuples; equal tuples keep their order.
pub(crate) fn permutation(columns: &[&IndexArray], entries: usize) -> Result<IndexArray> {
    Ok(if entries as u64 <= u32::MAX as u64 {
        sorted_order::<u32>(columns, entries)?.into()
    } else {
        sorted_order::<u64>(columns, entries)?.into()
    })
}

/// Sorts by packing as many columns as fit into one 64-bit key, least significant columns first.
fn sorted_order<I: Index>(columns: &[&IndexArray], entries: usize) -> Result<Vec<I>> {
    let mut order: Vec<I> = reserve(entries, "the order of entries")?;
    order.extend((0..entries).map(|e| I::from_u64(e as u64)));
    let bits: Vec<u32> = columns.iter().map(|column| 64 - column.largest().unwrap_or(0).leading_zeros()).collect();
    let mut end = columns.len();
    while end > 0 {
        let mut start = end - 1;
        let mut total = bits[start];
        while start > 0 && total + bits[start - 1] <= 64 {
            start -= 1;
            total += bits[start];
        }
        let mut keys: Vec<u64> = zeroed(entries, "the keys of entries")?;
        for (column, bits) in columns[start..end].iter().zip(&bits[start..end]) {
            with_indices!(column, column => for (key, e) in keys.iter_mut().zip(&order) {
                // A 64-bit key is a single column, for which the shift would overflow.
                *key = key.checked_shl(*bits).unwrap_or(0) | column[e.to_usize()].to_u64();
            });
        }
        radix_sort(keys, &mut order, total)?;
        end = start;
    }
    Ok(order)
}

const DIGIT: u32 = 11;
const BUCKETS: usize = 1 << DIGIT;

/// Stable radix sort of `order` by `keys`: one counting pass per digit; constant digits are
/// skipped.
fn radix_sort<I: Index>(keys: Vec<u64>, order: &mut Vec<I>, bits: u32) -> Result<()> {
    let digits = bits.div_ceil(DIGIT) as usize;
    let digit = |key: u64, d: usize| (key >> (d as u32 * DIGIT)) as usize & (BUCKETS - 1);
    let mut counts: Vec<usize> = zeroed(digits * BUCKETS, "counters")?;
    for key in &keys {
        for d in 0..digits {
            counts[d * BUCKETS + digit(*key, d)] += 1;
        }
    }
    let mut from = (keys, std::mem::take(order));
    let entries = from.0.len();
    let mut to: (Vec<u64>, Vec<I>) =
        (zeroed(entries, "the keys of entries")?, zeroed(entries, "the order of entries")?);
    for d in 0..digits {
        let next = &mut counts[d * BUCKETS..(d + 1) * BUCKETS];
        if next.contains(&entries) {
            continue;
        }
        let mut sum = 0;
        for count in next.iter_mut() {
            sum += std::mem::replace(count, sum);
        }
        for (key, e) in from.0.iter().zip(&from.1) {
            let slot = &mut next[digit(*key, d)];
            to.0[*slot] = *key;
            to.1[*slot] = *e;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    *order = from.1;
    Ok(())
}

/// Gathers the numbers at these positions.
pub(crate) fn gather_indices(array: &IndexArray, places: &IndexArray) -> Result<IndexArray> {
    fn gather<I: Index, P: Index>(array: &[I], places: &[P]) -> Result<Vec<I>> {
        let mut out = reserve(places.len(), "coordinates")?;
        out.extend(places.iter().map(|p| array[p.to_usize()]));
        Ok(out)
    }
    Ok(with_indices!(array, array => with_indices!(places, places => gather(array, places)?.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(columns: &[&IndexArray]) -> Vec<u64> {
        permutation(columns, columns[0].len()).unwrap().to_vec()
    }

    #[test]
    fn looks_before_it_sorts() {
        let a: IndexArray = vec![0u8, 0, 1, 1].into();
        let b: IndexArray = vec![0u64, 5, 0, 1].into();
        let c: IndexArray = vec![0u64, 5, 1, 1].into();
        assert_eq!(order(&[&a, &b], 4), Order::Increasing);
        assert_eq!(order(&[&a, &c], 4), Order::Repeating);
        assert_eq!(order(&[&b, &a], 4), Order::Unsorted);
        assert_eq!(order(&[], 2), Order::Repeating);
        let long: IndexArray = (0..10_000u32).collect::<Vec<_>>().into();
        assert_eq!(order(&[&long], 10_000), Order::Increasing);
        let mut late: Vec<u32> = (0..10_000).collect();
        late[BLOCK + 1] = BLOCK as u32;
        assert_eq!(order(&[&late.into()], 10_000), Order::Repeating);
    }

    #[test]
    fn sorts_stably_over_several_keys() {
        let huge: IndexArray = vec![u64::MAX, 3, u64::MAX, 3].into();
        let small: IndexArray = vec![1u8, 2, 0, 2].into();
        assert_eq!(sort(&[&huge, &small]), [1, 3, 2, 0]);
        assert_eq!(sort(&[&small, &huge]), [2, 0, 1, 3]);
        let scattered: Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let order = sort(&[&scattered.clone().into()]);
        assert!(order.windows(2).all(|w| scattered[w[0] as usize] <= scattered[w[1] as usize]));
    }
}
