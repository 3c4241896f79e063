//! Sorting coordinates.

use super::Address;

/// Sorts `data[start..stop]`; `false` if that is not a part of the `len` elements.
///
/// # Safety
/// `data` points to `len` elements that nobody else uses.
unsafe fn sort<T: Ord>(data: *mut T, len: u64, start: i64, stop: i64) -> bool {
    let (start, stop) = (start.max(0) as usize, stop.max(start).max(0) as usize);
    if stop as u64 > len {
        return false;
    }
    if start < stop {
        // SAFETY: promised by the caller; the range was just checked.
        let elements = unsafe { std::slice::from_raw_parts_mut(data.add(start), stop - start) };
        elements.sort_unstable();
    }
    true
}

macro_rules! sorts {
    ($($function:ident $name:literal $width:ty),*) => {
        $(
            /// # Safety
            /// As for [`sort`].
            unsafe extern "C" fn $function(data: *mut $width, len: u64, start: i64, stop: i64) -> bool {
                // SAFETY: promised by the caller.
                unsafe { sort(data, len, start, stop) }
            }
        )*

        pub(super) static SYMBOLS: &[(&str, Address)] = &[$(($name, Address($function as *const ()))),*];
    };
}
sorts!(sort_u8 "tamis_sort_u8" u8, sort_u16 "tamis_sort_u16" u16, sort_u32 "tamis_sort_u32" u32,
    sort_u64 "tamis_sort_u64" u64);
