//! Bitmap sort: for lists that fill much of their range, a set of bits on the stack, read back in
//! order.

use super::{BitRange, Coordinate};

/// Maximum bits of the range; the bitmap is on the stack.
const MAX_BITS: u32 = 16;

/// The words of the largest bitmap.
const WORDS: usize = 1 << (MAX_BITS - u64::BITS.ilog2());

/// Maximum range per element. Reading the bitmap back costs a misprediction per word.
const MAX_RANGE_PER_ELEMENT: usize = 16;

pub(super) fn suits(len: usize, bits: BitRange) -> bool {
    bits.count() <= MAX_BITS && 1 << bits.count() <= len.saturating_mul(MAX_RANGE_PER_ELEMENT)
}

#[inline(never)]
pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has these instructions.
        return unsafe { with_bit_instructions(elements, bits) };
    }
    sort_by_bitmap(elements, bits);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,popcnt")]
fn with_bit_instructions<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    sort_by_bitmap(elements, bits);
}

#[inline(always)]
fn sort_by_bitmap<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    let Some(first) = elements.first() else { return };
    let mask = (1 << bits.count().min(MAX_BITS)) - 1;
    let common = first.wide() & !((mask as u64) << bits.low);
    let mut set = [const { std::mem::MaybeUninit::<u64>::uninit() }; WORDS];
    let words = (mask / 64 + 1).min(WORDS);
    // Initialise only the words in use.
    let set = &mut set[..words];
    set.fill(std::mem::MaybeUninit::new(0));
    // SAFETY: the slice was just initialised.
    let set = unsafe { &mut *(std::ptr::from_mut(set) as *mut [u64]) };
    for element in &*elements {
        let number = (element.wide() >> bits.low) as usize & mask;
        set[number / 64] |= 1 << (number % 64);
    }
    if set.iter().map(|word| word.count_ones() as usize).sum::<usize>() != elements.len() {
        // The list has duplicates.
        return elements.sort_unstable();
    }
    let mut remaining = elements.iter_mut();
    for (k, word) in set.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let number = (64 * k) as u64 + u64::from(word.trailing_zeros());
            if let Some(element) = remaining.next() {
                *element = T::narrow(common | number << bits.low);
            }
            word &= word - 1;
        }
    }
}
