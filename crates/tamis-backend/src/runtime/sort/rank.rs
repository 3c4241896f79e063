//! Rank sort (enumeration sort) of short lists: an element's position is the number of smaller
//! ones. All pairs are compared with vector instructions, without a branch.

use super::{BitRange, Coordinate};

/// Maximum length for insertion sort. Vector loads would stall on the elements that were just
/// stored one by one, and the rows of a grid are so similar that branches are predicted.
pub(super) const TINY: usize = 16;

/// Maximum lengths for which rank sort beats radix sort: when at most 16 bits differ, and when at
/// most 32 do; with 32-byte vectors, and with 16-byte ones.
const MAX_LENGTHS: [[usize; 2]; 2] = [[128, 64], [48, 24]];

/// Maximum length for insertion sort, when more bits differ.
const MAX_WIDE_LENGTH: usize = TINY;

pub(super) fn suits(len: usize, bits: BitRange) -> bool {
    let [narrow, medium] = MAX_LENGTHS[usize::from(!wide_vectors())];
    len <= match bits.high {
        0..=16 => narrow,
        17..=32 => medium,
        _ => MAX_WIDE_LENGTH,
    }
}

/// True if the CPU has 32-byte vectors and the bit instructions (AVX2, BMI1, BMI2, POPCNT).
#[inline(always)]
pub(super) fn wide_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    if elements.len() > TINY && bits.high <= 32 {
        #[cfg(target_arch = "x86_64")]
        if wide_vectors() {
            // SAFETY: the processor has these instructions.
            return unsafe { with_wide_vectors(elements, bits) };
        }
        by_rank(elements, bits);
    } else {
        by_insertion(elements);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_wide_vectors<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    by_rank(elements, bits);
}

#[inline(always)]
fn by_rank<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    // The bits above the range are equal, so the low bits decide.
    let narrow = |x: T| (x.wide() as u16 ^ 1 << 15) as i16;
    let medium = |x: T| (x.wide() as u32 ^ 1 << 31) as i32;
    // Large blocks: LLVM vectorises only long loops.
    let done = match (elements.len(), bits.high) {
        (0..=64, 0..=16) => ranked::<T, i16, 64, 64>(elements, narrow),
        (65..=96, 0..=16) => ranked::<T, i16, 96, 48>(elements, narrow),
        (97..=128, 0..=16) => ranked::<T, i16, 128, 64>(elements, narrow),
        (0..=64, 17..=32) => ranked::<T, i32, 64, 64>(elements, medium),
        _ => false,
    };
    if !done {
        elements.sort_unstable();
    }
}

/// A vector lane: signed, since vector comparisons are.
trait RankLane: Copy + PartialOrd {
    const ZERO: Self;
    /// Decrements if `below`: a vector comparison yields minus one.
    fn less(self, below: bool) -> Self;
    /// The count below zero.
    fn count(self) -> usize;
}

macro_rules! lanes {
    ($($lane:ty),*) => {$(
        impl RankLane for $lane {
            const ZERO: $lane = 0;
            #[inline(always)]
            fn less(self, below: bool) -> $lane {
                self - <$lane>::from(below)
            }
            #[inline(always)]
            fn count(self) -> usize {
                -self as usize
            }
        }
    )*};
}
lanes!(i16, i32);

/// Sorts at most `N` elements whose keys have the order of the elements; returns `false`, with
/// nothing changed, if some are equal. `BLOCK` lanes, whose counters fit the registers, are counted
/// at a time; it divides `N`.
#[inline(always)]
fn ranked<T: Coordinate, L: RankLane, const N: usize, const BLOCK: usize>(
    elements: &mut [T],
    key: impl Fn(T) -> L,
) -> bool {
    let len = elements.len();
    let (mut saved, mut keys, mut ranks) = ([T::ZERO; N], [L::ZERO; N], [L::ZERO; N]);
    if len > N {
        return false;
    }
    saved[..len].copy_from_slice(elements);
    for (lane, element) in keys.iter_mut().zip(&saved) {
        *lane = key(*element);
    }
    for (ranks, lanes) in ranks.as_chunks_mut::<BLOCK>().0.iter_mut().zip(keys.as_chunks::<BLOCK>().0) {
        let mut counts = [L::ZERO; BLOCK];
        for one in &keys[..len] {
            for k in 0..BLOCK {
                counts[k] = counts[k].less(*one < lanes[k]);
            }
        }
        *ranks = counts;
    }
    let mut sum = 0;
    for (element, rank) in saved.iter().zip(&ranks[..len]) {
        let rank = rank.count();
        sum += rank;
        elements[rank] = *element;
    }
    // Distinct elements have the ranks 0..len; equal ones share a rank, which makes the sum
    // smaller.
    let distinct = sum == len * (len - 1) / 2;
    if !distinct {
        elements.copy_from_slice(&saved[..len]);
    }
    distinct
}

pub(super) fn by_insertion<T: Coordinate>(elements: &mut [T]) {
    for k in 1..elements.len() {
        let element = elements[k];
        let mut to = k;
        while to > 0 && elements[to - 1] > element {
            elements[to] = elements[to - 1];
            to -= 1;
        }
        elements[to] = element;
    }
}
