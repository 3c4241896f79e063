//! Stable sort of items with a key and an id: radix sort by the digits that differ, or comparison
//! sort.

use super::super::scratch::{OutOfMemory, ScratchVec};

/// An item with a key, and an id that orders equal keys.
pub(in super::super) trait SortItem: Copy + Send {
    /// The key shifted right by `shift`, truncated to a word.
    fn digit(self, shift: u32) -> usize;
    /// True if this item precedes another: by key, then by id.
    fn before(&self, other: &Self) -> bool;
}

/// Maximum length for comparison sort.
const MAX_COMPARED: usize = 96;

/// Minimum length for 11-bit digits: the counters cost less than another pass.
const MIN_WIDE_DIGIT_LENGTH: usize = 4096;

/// The digits of all passes as (first bit, bits), lowest first. They cover all bits that differ,
/// and skip the others.
fn digits(mut differing: u128, widest: u32) -> impl Iterator<Item = (u32, u32)> {
    // Digits are balanced within each run of differing bits.
    std::iter::from_fn(move || {
        if differing == 0 {
            return None;
        }
        let low = differing.trailing_zeros();
        let run = (differing >> low).trailing_ones().max(1);
        let remaining = u128::BITS - differing.leading_zeros() - low;
        let bits = if run < remaining { widest.min(remaining) } else { remaining.div_ceil(remaining.div_ceil(widest)) };
        differing &= if low + bits >= u128::BITS { 0 } else { u128::MAX << (low + bits) };
        Some((low, bits))
    })
}

/// Sorts the first `len` of `items`; `spare` is the second buffer. `differing` has all key bits in
/// which items differ; `None` if keys have no digits.
///
/// # Safety
/// `len` items are initialised. Items that differ in no bit of `differing` have equal keys, and are
/// in the order of their ids.
pub(in super::super) unsafe fn sort<I: SortItem>(
    items: &mut ScratchVec<I>,
    spare: &mut ScratchVec<I>,
    len: usize,
    differing: Option<u128>,
) -> Result<(), OutOfMemory> {
    let compare = |a: &I, b: &I| {
        if a.before(b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    };
    let widest = if len >= MIN_WIDE_DIGIT_LENGTH { 11 } else { 8 };
    let by_digits = differing.filter(|bits| {
        // A pass costs about as much as two steps of a comparison sort.
        len > MAX_COMPARED && digits(*bits, widest).count() * 2 <= len.ilog2() as usize + 2
    });
    let Some(differing) = by_digits.filter(|_| u32::try_from(len).is_ok()) else {
        // SAFETY: guaranteed by the caller. No two items are equal: their ids differ.
        unsafe { items.initialized_mut(len) }.sort_unstable_by(compare);
        return Ok(());
    };
    spare.reserve(len)?;
    let mut counts = [0u32; 1 << 11];
    let mut next_counts = [0u32; 1 << 11];
    let mut passes = digits(differing, widest).peekable();
    if let Some((low, bits)) = passes.peek() {
        let mask = (1 << bits) - 1;
        // SAFETY: guaranteed by the caller.
        for item in unsafe { items.initialized(len) } {
            counts[item.digit(*low) & mask] += 1;
        }
    }
    while let Some((low, bits)) = passes.next() {
        let mask = (1usize << bits) - 1;
        let mut sum = 0;
        for count in &mut counts[..=mask] {
            sum += std::mem::replace(count, sum);
        }
        let (from, to) = (items.as_ptr(), spare.as_ptr());
        let next = passes.peek().copied();
        let (next_low, next_mask) = next.map_or((0, 0), |(low, bits)| (low, (1usize << bits) - 1));
        next_counts[..=next_mask].fill(0);
        for k in 0..len {
            // SAFETY: both buffers have space for `len` items, of which those of `from` are
            // initialised. Digits are masked to the number of counters. Each position is the number
            // of items with smaller digits, or of earlier ones with the same digit.
            unsafe {
                let item = from.add(k).read();
                let position = counts.get_unchecked_mut(item.digit(low) & mask);
                to.add(*position as usize).write(item);
                *position += 1;
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
