//! Sorting coordinates: which way suits a list, and what kernels call.
//!
//! Kernels sort the coordinates that a row has touched: distinct integers, mostly a hundred or so, of which few bits
//! differ. Comparing them costs a mispredicted branch each, so all ways but the first do not compare and branch:
//!
//! - a few elements are inserted one by one;
//! - one pass says whether the list is in order already, and which bits differ at all;
//! - short lists: each element's place is the number of smaller ones ([`short`]);
//! - lists whose elements are flagged: the flags, read in order ([`flagged`]);
//! - lists that take up much of their range: a set of bits, read back in order ([`dense`]);
//! - all others: digit by digit, least significant first ([`radix`]).
//!
//! Equal elements are sorted, too, only not as fast. Keys with numbers, whose order must be kept, are sorted in [`ids`].

mod dense;
mod flagged;
pub(super) mod ids;
mod radix;
mod short;
#[cfg(test)]
mod tests;

use super::Address;
use std::ops::{BitOr, BitXor};

/// Unsigned integers of any width.
pub(super) trait Coordinate: Copy + Ord + BitXor<Output = Self> + BitOr<Output = Self> {
    const ZERO: Self;
    fn wide(self) -> u64;
    /// The low bits.
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

/// The bits in which elements of a list differ: all of them at `low..high`, counted from the least significant.
#[derive(Clone, Copy, Debug)]
struct Bits {
    low: u32,
    high: u32,
}

impl Bits {
    fn count(self) -> u32 {
        self.high - self.low
    }
}

/// Sorts a list.
#[inline(always)]
fn sort<T: Coordinate>(elements: &mut [T]) {
    if elements.len() <= short::TINY {
        return short::by_insertion(elements);
    }
    // Without leaving early: a vector at a time, and no branch to mispredict.
    let (mut varying, mut disorder) = (T::ZERO, false);
    for pair in elements.windows(2) {
        varying = varying | (pair[0] ^ pair[1]);
        disorder |= pair[0] > pair[1];
    }
    if !disorder {
        return;
    }
    let varying = varying.wide();
    let bits = Bits { low: varying.trailing_zeros(), high: u64::BITS - varying.leading_zeros() };
    if short::suits(elements.len(), bits) {
        short::sort(elements, bits);
    } else if dense::suits(elements.len(), bits) {
        dense::sort(elements, bits);
    } else if radix::suits::<T>(elements.len(), bits) {
        radix::sort(elements, bits);
    } else {
        elements.sort_unstable();
    }
}

/// Sorts `data[start..stop]`; `false` if that is not a part of the `len` elements.
///
/// # Safety
/// `data` points to `len` elements that nobody else uses.
#[inline(always)]
unsafe fn sort_part<T: Coordinate>(data: *mut T, len: u64, start: i64, stop: i64) -> bool {
    let (start, stop) = (start.max(0) as usize, stop.max(start).max(0) as usize);
    if stop as u64 > len {
        return false;
    }
    if start < stop {
        // SAFETY: promised by the caller; the range was just checked.
        sort(unsafe { std::slice::from_raw_parts_mut(data.add(start), stop - start) });
    }
    true
}

/// Sorts `data[start..stop]`, whose elements are the places of those `flags` that are 1; `false` if that is not a part of
/// the `len` elements, or the flags say something else.
///
/// # Safety
/// As for [`sort_part`]; `flags` points to `flag_count` bytes elsewhere.
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
        // SAFETY: promised by the caller; the range was just checked, and there is something in it.
        let (elements, flags) = unsafe {
            let elements = std::slice::from_raw_parts_mut(data.add(from), to - from);
            let flags = if flag_count == 0 { &[] } else { std::slice::from_raw_parts(flags, flag_count as usize) };
            (elements, flags)
        };
        match flagged::sort(elements, flags) {
            flagged::Outcome::Sorted => {}
            flagged::Outcome::Unsuitable => sort(elements),
            flagged::Outcome::Contradiction => return false,
        }
    }
    true
}

macro_rules! sorts {
    ($($function:ident $name:literal $flagged:ident $by_flags:literal $width:ty),*) => {
        $(
            /// # Safety
            /// As for [`sort_part`].
            unsafe extern "C" fn $function(data: *mut $width, len: u64, start: i64, stop: i64) -> bool {
                // SAFETY: promised by the caller.
                unsafe { sort_part(data, len, start, stop) }
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
                // SAFETY: promised by the caller.
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
