//! Digit by digit, least significant first: as many passes as the bits that differ need.

use super::super::pool;
use super::{Bits, Coordinate};
use std::alloc::Layout;
use std::mem::MaybeUninit;

/// Lists up to this length have counters of one byte, whose sums are taken eight at a time, and little on the stack.
const TINY: usize = 255;

/// Lists up to this length have their second place on the stack.
const SMALL: usize = 4096;

/// From this length on digits may be large: their counters cost less than a pass over the list.
const LARGE_DIGITS: usize = 1024;

/// The bits of a small and of a large digit.
const DIGIT: [u32; 2] = [8, 11];

/// Lists with more bytes do not stay in the caches between passes.
const CACHED: usize = 2 << 20;

/// Longer lists are worth more passes, where comparing would take more steps; long ones fewer.
pub(super) fn suits<T: Coordinate>(len: usize, bits: Bits) -> bool {
    let passes = plan(len, bits).0 as usize;
    passes.pow(3) * 5 / 2 <= len && (passes <= 3 || size_of::<T>().saturating_mul(len) <= CACHED)
}

/// How many passes, of how many bits.
fn plan(len: usize, bits: Bits) -> (u32, u32) {
    let count = bits.count().max(1);
    let mut passes = count.div_ceil(DIGIT[0]);
    if len >= LARGE_DIGITS {
        passes = passes.min(count.div_ceil(DIGIT[1]));
    }
    (passes, count.div_ceil(passes))
}

pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: Bits) {
    let len = elements.len();
    if len <= TINY {
        on_stack::<T, u8, 256, 256>(elements, bits);
    } else if len <= SMALL {
        on_stack::<T, u32, SMALL, 2048>(elements, bits);
    } else {
        in_pool(elements, bits);
    }
}

/// With the list's second place on the stack: `N` elements.
#[inline(never)]
fn on_stack<T: Coordinate, C: Counter, const N: usize, const DIGITS: usize>(elements: &mut [T], bits: Bits) {
    let mut spare = [const { MaybeUninit::<T>::uninit() }; N];
    match spare.get_mut(..elements.len()) {
        Some(spare) => by_digits::<T, C, DIGITS>(elements, spare, bits),
        None => elements.sort_unstable(),
    }
}

/// With the list's second place among the memory that is kept.
#[inline(never)]
fn in_pool<T: Coordinate>(elements: &mut [T], bits: Bits) {
    let block = Layout::array::<T>(elements.len()).ok().and_then(|layout| pool::take(layout, size_of::<T>()));
    let Some(block) = block.filter(|_| u32::try_from(elements.len()).is_ok()) else {
        return elements.sort_unstable();
    };
    // SAFETY: the block has room for at least as many elements, is theirs alone, and is aligned for them.
    let spare = unsafe { std::slice::from_raw_parts_mut(block.data.as_ptr().cast(), elements.len()) };
    by_digits::<T, u32, 2048>(elements, spare, bits);
    pool::give_back(block);
}

/// Sorts by digits of at most `log2(DIGITS)` bits; `spare` is as long as the list, and counters count so far.
#[inline(always)]
fn by_digits<T: Coordinate, C: Counter, const DIGITS: usize>(
    elements: &mut [T],
    spare: &mut [MaybeUninit<T>],
    bits: Bits,
) {
    let len = elements.len();
    let (passes, width) = plan(len, bits);
    let used = 1 << width;
    if used > DIGITS || spare.len() != len {
        return elements.sort_unstable();
    }
    let mut counts = [const { MaybeUninit::<C>::uninit() }; DIGITS];
    let mut places = [const { MaybeUninit::<C>::uninit() }; DIGITS];
    // Only as many as there are digits, of which each element has one: others are never looked at.
    let (mut counts, mut places) = (clear(&mut counts[..used]), clear(&mut places[..used]));
    let digit = |element: T, shift: u32| (element.wide() >> shift) as usize & (used - 1);
    for element in &*elements {
        let count = &mut counts[digit(*element, bits.low)];
        *count = count.next();
    }
    let (mut from, mut to) = (elements.as_mut_ptr(), spare.as_mut_ptr().cast::<T>());
    for pass in 0..passes {
        std::mem::swap(&mut counts, &mut places);
        C::sums(places);
        let shift = bits.low + pass * width;
        let next = shift + width;
        let last = pass + 1 == passes;
        if !last {
            counts.fill(C::ZERO);
        }
        for k in 0..len {
            // SAFETY: both lists have `len` elements, of which those of `from` are written; digits are below `used`,
            // and places are below `len`, since each is the number of elements with smaller digits or of those before
            // with the same digit.
            unsafe {
                let element = from.add(k).read();
                let place = places.get_unchecked_mut(digit(element, shift));
                to.add(place.index()).write(element);
                *place = place.next();
                if !last {
                    let count = counts.get_unchecked_mut(digit(element, next));
                    *count = count.next();
                }
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    if passes % 2 == 1 {
        // SAFETY: the sorted list is in `spare` now, which is as long and elsewhere.
        unsafe { to.copy_from_nonoverlapping(from, len) };
    }
}

/// Writes zeros.
fn clear<C: Counter>(counts: &mut [MaybeUninit<C>]) -> &mut [C] {
    counts.fill(MaybeUninit::new(C::ZERO));
    // SAFETY: all of them were just written.
    unsafe { &mut *(std::ptr::from_mut(counts) as *mut [C]) }
}

/// Counts elements; none counts further than the longest list it is used for.
trait Counter: Copy {
    const ZERO: Self;
    fn next(self) -> Self;
    fn index(self) -> usize;
    /// Replaces each number by the sum of those before it. There are a power of two of them, and no sum is too large.
    fn sums(counts: &mut [Self]);
}

/// Several sums at once: a multiplication by ones adds to each lane all lower ones.
macro_rules! packed {
    ($counter:ty, $lanes:literal, $ones:literal) => {
        impl Counter for $counter {
            const ZERO: $counter = 0;
            #[inline(always)]
            fn next(self) -> $counter {
                self.wrapping_add(1)
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn sums(counts: &mut [$counter]) {
                const BITS: u32 = <$counter>::BITS;
                let mut before = 0u64;
                let (chunks, rest) = counts.as_chunks_mut::<$lanes>();
                for chunk in chunks {
                    let mut packed = 0u64;
                    for (k, count) in chunk.iter().enumerate() {
                        packed |= u64::from(*count) << (k as u32 * BITS);
                    }
                    let through = packed.wrapping_mul($ones);
                    let sums = (through - packed).wrapping_add(before.wrapping_mul($ones));
                    for (k, count) in chunk.iter_mut().enumerate() {
                        *count = (sums >> (k as u32 * BITS)) as $counter;
                    }
                    before += through >> (u64::BITS - BITS);
                }
                for count in rest {
                    let sum = before;
                    before += u64::from(*count);
                    *count = sum as $counter;
                }
            }
        }
    };
}
packed!(u8, 8, 0x0101_0101_0101_0101);
packed!(u32, 2, 0x0000_0001_0000_0001);
