//! Sorting what has a key and a number: stable, by as many digits of the key as differ, or by comparison.

use super::super::typed::{OutOfMemory, Room};

/// Something with a key, and a number that tells equal keys apart.
pub(in super::super) trait Item: Copy + Send {
    /// The low bits of what is sorted by, from a bit on.
    fn digit(self, shift: u32) -> usize;
    /// Whether this comes before: by the key, then by the number.
    fn before(&self, other: &Self) -> bool;
}

/// Lists up to this length are compared.
const SHORT: usize = 96;

/// From this length on a digit may have 11 bits: the counters cost less than another pass.
const LONG: usize = 4096;

/// The digits to sort by, as (first bit, bits), lowest first: they cover all bits that differ, and skip others.
fn digits(mut differing: u128, widest: u32) -> impl Iterator<Item = (u32, u32)> {
    // As even as can be over each stretch of bits.
    std::iter::from_fn(move || {
        if differing == 0 {
            return None;
        }
        let low = differing.trailing_zeros();
        let stretch = (differing >> low).trailing_ones().max(1);
        let rest = u128::BITS - differing.leading_zeros() - low;
        let bits = if stretch < rest { widest.min(rest) } else { rest.div_ceil(rest.div_ceil(widest)) };
        differing &= if low + bits >= u128::BITS { 0 } else { u128::MAX << (low + bits) };
        Some((low, bits))
    })
}

/// Sorts the first `len` of `items`; `spare` gets as much room. `differing`: all bits of keys in which items differ, or
/// `None` if keys are too long for digits.
///
/// # Safety
/// So many items are written, and items that differ in no bit of `differing` have equal keys, and stand in the order of
/// their numbers.
pub(in super::super) unsafe fn sort<I: Item>(
    items: &mut Room<I>,
    spare: &mut Room<I>,
    len: usize,
    differing: Option<u128>,
) -> Result<(), OutOfMemory> {
    let compare = |a: &I, b: &I| {
        if a.before(b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    };
    let widest = if len >= LONG { 11 } else { 8 };
    let by_digits = differing.filter(|bits| {
        // A pass costs about as much as two steps of a comparison sort.
        len > SHORT && digits(*bits, widest).count() * 2 <= len.ilog2() as usize + 2
    });
    let Some(differing) = by_digits.filter(|_| u32::try_from(len).is_ok()) else {
        // SAFETY: promised by the caller. No two are equal: their numbers differ.
        unsafe { items.written_mut(len) }.sort_unstable_by(compare);
        return Ok(());
    };
    spare.make(len)?;
    let mut counts = [0u32; 1 << 11];
    let mut next_counts = [0u32; 1 << 11];
    let mut passes = digits(differing, widest).peekable();
    if let Some((low, bits)) = passes.peek() {
        let mask = (1 << bits) - 1;
        // SAFETY: promised by the caller.
        for item in unsafe { items.written(len) } {
            counts[item.digit(*low) & mask] += 1;
        }
    }
    while let Some((low, bits)) = passes.next() {
        let mask = (1usize << bits) - 1;
        let mut sum = 0;
        for count in &mut counts[..=mask] {
            sum += std::mem::replace(count, sum);
        }
        let (from, to) = (items.pointer(), spare.pointer());
        let next = passes.peek().copied();
        let (next_low, next_mask) = next.map_or((0, 0), |(low, bits)| (low, (1usize << bits) - 1));
        next_counts[..=next_mask].fill(0);
        for k in 0..len {
            // SAFETY: both have room for `len` items, of which those of `from` are written; digits are below the number of
            // counters, and each place is the number of items with smaller digits, or of those before with the same.
            unsafe {
                let item = from.add(k).read();
                let place = counts.get_unchecked_mut(item.digit(low) & mask);
                to.add(*place as usize).write(item);
                *place += 1;
                if next.is_some() {
                    *next_counts.get_unchecked_mut(item.digit(next_low) & next_mask) += 1;
                }
            }
        }
        std::mem::swap(items, spare);
        std::mem::swap(&mut counts, &mut next_counts);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_cover_what_differs() {
        assert_eq!(digits(0, 8).count(), 0);
        assert_eq!(digits((1 << 30) - 1, 11).collect::<Vec<_>>(), [(0, 10), (10, 10), (20, 10)]);
        for differing in [1, 0xff00ff, u128::MAX, 1 << 127, 0x8000_0000_0000_0001_0000_0001, 5 << 60] {
            let mut covered = 0u128;
            for (low, bits) in digits(differing, 11) {
                assert!(bits <= 11 && differing >> low & 1 == 1, "starts with a bit that differs");
                covered |= ((1u128 << bits) - 1) << low;
            }
            assert_eq!(differing & !covered, 0, "{differing:x}");
        }
    }
}
