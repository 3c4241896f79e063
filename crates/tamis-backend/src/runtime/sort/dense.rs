//! Lists that take up much of their range: a set of bits, read back in order.

use super::{Bits, Coordinate};

/// Ranges up to so many bits of an element; their set lies on the stack.
const LARGEST: u32 = 16;

/// How many words that set has.
const WORDS: usize = 1 << (LARGEST - u64::BITS.ilog2());

/// How much of the range must be there: one element of so many. Reading the set back costs a misprediction per word.
const SPARSEST: usize = 16;

pub(super) fn suits(len: usize, bits: Bits) -> bool {
    bits.count() <= LARGEST && 1 << bits.count() <= len.saturating_mul(SPARSEST)
}

#[inline(never)]
pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: Bits) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has these instructions.
        return unsafe { with_bit_instructions(elements, bits) };
    }
    by_set(elements, bits);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,popcnt")]
fn with_bit_instructions<T: Coordinate>(elements: &mut [T], bits: Bits) {
    by_set(elements, bits);
}

#[inline(always)]
fn by_set<T: Coordinate>(elements: &mut [T], bits: Bits) {
    let Some(first) = elements.first() else { return };
    let mask = (1 << bits.count().min(LARGEST)) - 1;
    let common = first.wide() & !((mask as u64) << bits.low);
    let mut set = [const { std::mem::MaybeUninit::<u64>::uninit() }; WORDS];
    let words = (mask / 64 + 1).min(WORDS);
    // Only the part that is used.
    let set = &mut set[..words];
    set.fill(std::mem::MaybeUninit::new(0));
    // SAFETY: all of the part was just written.
    let set = unsafe { &mut *(std::ptr::from_mut(set) as *mut [u64]) };
    for element in &*elements {
        let number = (element.wide() >> bits.low) as usize & mask;
        set[number / 64] |= 1 << (number % 64);
    }
    if set.iter().map(|word| word.count_ones() as usize).sum::<usize>() != elements.len() {
        // Some are equal.
        return elements.sort_unstable();
    }
    let mut rest = elements.iter_mut();
    for (k, word) in set.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let number = (64 * k) as u64 + u64::from(word.trailing_zeros());
            if let Some(element) = rest.next() {
                *element = T::narrow(common | number << bits.low);
            }
            word &= word - 1;
        }
    }
}
