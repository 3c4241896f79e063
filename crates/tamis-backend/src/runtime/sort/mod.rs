//! Sorting of coordinates: algorithm selection by length and bit range, and the entry points for
//! kernels.
//!
//! Kernels sort the coordinates that a row has touched: distinct integers, typically about a
//! hundred, that differ in few bits. Each comparison costs a mispredicted branch, so all algorithms
//! but the first are branch-free:
//!
//! - tiny lists: insertion sort;
//! - one pass finds whether the list is sorted, and which bits differ at all;
//! - short lists: rank sort, where an element's position is the number of smaller ones ([`rank`]);
//! - lists with flags: the flags, read in order ([`flagged`]);
//! - lists that fill much of their range: a bitmap, read back in order ([`bitmap`]);
//! - all others: least-significant-digit radix sort ([`radix`]).
//!
//! Equal elements are sorted correctly, but not as fast. Stable sorting of keys with ids is in
//! [`ids`].

mod bitmap;
mod flagged;
pub(super) mod ids;
mod radix;
mod rank;
#[cfg(test)]
mod tests;

use super::Address;
use std::ops::{BitOr, BitXor};

/// An unsigned integer of any width.
pub(super) trait Coordinate: Copy + Ord + BitXor<Output = Self> + BitOr<Output = Self> {
    const ZERO: Self;
    fn wide(self) -> u64;
    /// Truncates to the low bits.
    fn narrow(wide: u64) -> Self;
}

macro_rules! coordinates {
    ($($width:ty),*) => {$(
        impl Coordinate for $width {
            const ZERO: $width = 0;
            #[inline(always)]
            fn wide(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn narrow(wide: u64) -> $width {
                wide as $width
            }
        }
    )*};
}
coordinates!(u8, u16, u32, u64);

/// The bits in which the elements of a list differ: all of them are in `low..high`, counted from
/// the least significant.
#[derive(Clone, Copy, Debug)]
struct BitRange {
    low: u32,
    high: u32,
}

impl BitRange {
    fn count(self) -> u32 {
        self.high - self.low
    }
}

/// Sorts a list.
#[inline(always)]
fn sort<T: Coordinate>(elements: &mut [T]) {
    if elements.len() <= rank::TINY {
        return rank::by_insertion(elements);
    }
    // No early exit: the loop vectorises and has no branch to mispredict.
    let (mut varying, mut unsorted) = (T::ZERO, false);
    for pair in elements.windows(2) {
        varying = varying | (pair[0] ^ pair[1]);
        unsorted |= pair[0] > pair[1];
    }
    if !unsorted {
        return;
    }
    let varying = varying.wide();
    let bits = BitRange { low: varying.trailing_zeros(), high: u64::BITS - varying.leading_zeros() };
    if rank::suits(elements.len(), bits) {
        rank::sort(elements, bits);
    } else if bitmap::suits(elements.len(), bits) {
        bitmap::sort(elements, bits);
    } else if radix::suits::<T>(elements.len(), bits) {
        radix::sort(elements, bits);
    } else {
        elements.sort_unstable();
    }
}

/// Sorts `data[start..stop]`; returns `false` if that is no subrange of the `len` elements.
///
/// # Safety
/// `data` points to `len` elements and is not aliased.
#[inline(always)]
unsafe fn sort_range<T: Coordinate>(data: *mut T, len: u64, start: i64, stop: i64) -> bool {
    let (start, stop) = (start.max(0) as usize, stop.max(start).max(0) as usize);
    if stop as u64 > len {
        return false;
    }
    if start < stop {
        // SAFETY: guaranteed by the caller; the range was just checked.
        sort(unsafe { std::slice::from_raw_parts_mut(data.add(start), stop - start) });
    }
    true
}

/// Sorts `data[start..stop]`, whose elements are the positions of the `flags` that are 1. Returns
/// `false` if that is no subrange of the `len` elements, or the flags contradict the elements.
///
/// # Safety
/// As for [`sort_range`]; `flags` points to `flag_count` bytes elsewhere.
#[inline(always)]
unsafe fn sort_flagged<T: Coordinate>(
    data: *mut T,
    len: u64,
    start: i64,
    stop: i64,
    flags: *const u8,
    flag_count: u64,
) -> bool {
    let (from, to) = (start.max(0) as usize, stop.max(start).max(0) as usize);
    if to as u64 > len {
        return false;
    }
    if to - from > 1 {
        // SAFETY: guaranteed by the caller; the range was just checked, and there is something in
        // it.
        let (elements, flags) = unsafe {
            let elements = std::slice::from_raw_parts_mut(data.add(from), to - from);
            let flags = if flag_count == 0 { &[] } else { std::slice::from_raw_parts(flags, flag_count as usize) };
            (elements, flags)
        };
        match flagged::sort(elements, flags) {
            flagged::FlagSort::Sorted => {}
            flagged::FlagSort::NotApplicable => sort(elements),
            flagged::FlagSort::Contradiction => return false,
        }
    }
    true
}

macro_rules! sorts {
    ($($function:ident $name:literal $flagged:ident $by_flags:literal $width:ty),*) => {
        $(
            /// # Safety
            /// As for [`sort_range`].
            unsafe extern "C" fn $function(data: *mut $width, len: u64, start: i64, stop: i64) -> bool {
                // SAFETY: guaranteed by the caller.
                unsafe { sort_range(data, len, start, stop) }
            }

            /// # Safety
            /// As for [`sort_flagged`].
            unsafe extern "C" fn $flagged(
                data: *mut $width,
                len: u64,
                start: i64,
                stop: i64,
                flags: *const u8,
                flag_count: u64,
            ) -> bool {
                // SAFETY: guaranteed by the caller.
                unsafe { sort_flagged(data, len, start, stop, flags, flag_count) }
            }
        )*

        pub(super) static SYMBOLS: &[(&str, Address)] = &[
            $(($name, Address($function as *const ())), ($by_flags, Address($flagged as *const ()))),*
        ];
    };
}
sorts!(
    sort_u8 "tamis_sort_u8" flagged_u8 "tamis_sort_by_flags_u8" u8,
    sort_u16 "tamis_sort_u16" flagged_u16 "tamis_sort_by_flags_u16" u16,
    sort_u32 "tamis_sort_u32" flagged_u32 "tamis_sort_by_flags_u32" u32,
    sort_u64 "tamis_sort_u64" flagged_u64 "tamis_sort_by_flags_u64" u64
);
