//! Short lists: an element's place is how many are smaller. All are compared with all, many at a time, without a branch.

use super::{Bits, Coordinate};

/// Up to this length everything else costs more than inserting: vectors would wait for the elements that were just
/// written one by one, and rows of a grid are so much like each other that branches are predicted.
pub(super) const TINY: usize = 16;

/// The longest lists for which comparing all with all is faster than digits: when no more than 16 bits differ, and when
/// no more than 32 do; with vectors of 32 bytes, and with those that every processor has.
const LONGEST: [[usize; 2]; 2] = [[128, 64], [48, 24]];

/// The longest list that is sorted by insertion, when any bits differ.
const WIDE: usize = TINY;

pub(super) fn suits(len: usize, bits: Bits) -> bool {
    let [narrow, middle] = LONGEST[usize::from(!wide_vectors())];
    len <= match bits.high {
        0..=16 => narrow,
        17..=32 => middle,
        _ => WIDE,
    }
}

/// Vectors of 32 bytes, and the instructions for bits that came with them.
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

pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: Bits) {
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
fn with_wide_vectors<T: Coordinate>(elements: &mut [T], bits: Bits) {
    by_rank(elements, bits);
}

#[inline(always)]
fn by_rank<T: Coordinate>(elements: &mut [T], bits: Bits) {
    // The bits above those that differ are the same in all, so the low ones decide.
    let narrow = |x: T| (x.wide() as u16 ^ 1 << 15) as i16;
    let middle = |x: T| (x.wide() as u32 ^ 1 << 31) as i32;
    // Blocks of many lanes: the optimiser makes vectors of long loops only.
    let done = match (elements.len(), bits.high) {
        (0..=64, 0..=16) => ranked::<T, i16, 64, 64>(elements, narrow),
        (65..=96, 0..=16) => ranked::<T, i16, 96, 48>(elements, narrow),
        (97..=128, 0..=16) => ranked::<T, i16, 128, 64>(elements, narrow),
        (0..=64, 17..=32) => ranked::<T, i32, 64, 64>(elements, middle),
        _ => false,
    };
    if !done {
        elements.sort_unstable();
    }
}

/// Signed integers, since that is how vectors are compared.
trait Lane: Copy + PartialOrd {
    const ZERO: Self;
    /// This number, one less if `below`: a comparison of vectors gives all bits, that is minus one.
    fn less(self, below: bool) -> Self;
    /// How much less than zero.
    fn count(self) -> usize;
}

macro_rules! lanes {
    ($($lane:ty),*) => {$(
        impl Lane for $lane {
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

/// Sorts at most `N` elements whose keys are in the order of the elements; `false`, and nothing done, if some are equal.
/// So many lanes are counted at once as have their counters in registers: `BLOCK`, of which `N` is a multiple.
#[inline(always)]
fn ranked<T: Coordinate, L: Lane, const N: usize, const BLOCK: usize>(
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
    // Distinct elements have the ranks from zero on; equal ones share a rank, which makes the sum smaller.
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
