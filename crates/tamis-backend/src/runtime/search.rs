//! Galloping search for a coordinate in a fiber: exponential search, then branch-free bisection.
//!
//! Kernels call these functions instead of inlining them: a kernel often has several searches, and
//! each would be as much code as its loops.

use super::Address;

/// Returns the first position in `start..stop` whose element is at least the key. Exponential
/// search from the start finds near keys fast; branch-free bisection follows.
///
/// # Safety
/// `data` has elements from `start` to `stop`, unless there are none between.
unsafe fn search<T: Copy + Into<u64>>(data: *const T, start: i64, stop: i64, key: i64) -> i64 {
    // Elements are coordinates and never negative, so none is below a negative key.
    let Ok(key) = u64::try_from(key) else { return start };
    // SAFETY: callers stay within the range, which the caller of `search` guarantees.
    let below = |position: i64| unsafe { (*data.offset(position as isize)).into() < key };
    let (mut low, mut high, mut step) = (start, stop, 1);
    // Invariant: all elements before `low` are below the key.
    while low < high && step <= high - low {
        let probe = low + (step - 1);
        if !below(probe) {
            high = probe;
            break;
        }
        low = probe + 1;
        step *= 2;
    }
    let mut count = high - low;
    while count > 1 {
        let half = count / 2;
        low = if below(low + half - 1) { low + half } else { low };
        count -= half;
    }
    if count > 0 && below(low) { low + 1 } else { low }
}

/// Returns the same position by exponential search from the stop.
///
/// # Safety
/// As [`search`].
unsafe fn search_back<T: Copy + Into<u64>>(data: *const T, start: i64, stop: i64, key: i64) -> i64 {
    let (mut low, mut high, mut step) = (start, stop.max(start), 1);
    // Invariant: no element from `high` on is below the key. No element is below a negative key.
    while let Ok(key) = u64::try_from(key)
        && step <= high - low
    {
        // SAFETY: the position is one of the range.
        if unsafe { (*data.offset((high - step) as isize)).into() } < key {
            low = high - step + 1;
            break;
        }
        high -= step;
        step *= 2;
    }
    // SAFETY: a subrange of the range.
    unsafe { search(data, low, high, key) }
}

macro_rules! searches {
    ($($name:ident: $function:ident of $elem:ty),*) => {
        $(
            /// # Safety
            /// As [`search`].
            unsafe extern "C" fn $name(data: *const $elem, start: i64, stop: i64, key: i64) -> i64 {
                // SAFETY: guaranteed by the caller.
                unsafe { $function(data, start, stop, key) }
            }
        )*
        pub(super) static SYMBOLS: &[(&str, Address)] =
            &[$((concat!("tamis_", stringify!($name)), Address($name as *const ()))),*];
    };
}

searches!(
    search_i8: search of u8,
    search_i16: search of u16,
    search_i32: search of u32,
    search_i64: search of u64,
    search_back_i8: search_back of u8,
    search_back_i16: search_back of u16,
    search_back_i32: search_back of u32,
    search_back_i64: search_back of u64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_agrees_with_partition_point() {
        let data: Vec<u8> = (0..100).map(|k: u8| k / 3 * 2).collect();
        for start in 0..=data.len() {
            for stop in start..=data.len() {
                for key in -1..70 {
                    let found = data[start..stop].partition_point(|x| i64::from(*x) < key) + start;
                    // SAFETY: the range is one of the array.
                    let position = unsafe { search_i8(data.as_ptr(), start as i64, stop as i64, key) };
                    assert_eq!(position, found as i64, "{key} in {start}..{stop}");
                    // SAFETY: as above.
                    let position = unsafe { search_back_i8(data.as_ptr(), start as i64, stop as i64, key) };
                    assert_eq!(position, found as i64, "{key} back in {start}..{stop}");
                }
            }
        }
    }

    #[test]
    fn an_empty_range_is_not_read() {
        // SAFETY: there is nothing in the range.
        assert_eq!(unsafe { search_i64(std::ptr::null(), 5, 3, 7) }, 5);
        // SAFETY: as above.
        assert_eq!(unsafe { search_back_i64(std::ptr::null(), 5, 3, 7) }, 5);
    }
}
