//! Least-significant-digit radix sort: as many passes as the differing bits need.

use super::super::pool;
use super::{BitRange, Coordinate};
use std::alloc::Layout;
use std::mem::MaybeUninit;

/// Maximum length for one-byte counters, whose prefix sums are computed eight at a time, and for a
/// small buffer on the stack.
const MAX_BYTE_COUNTED: usize = 255;

/// Maximum length for a second buffer on the stack.
const MAX_STACK_ELEMENTS: usize = 4096;

/// Minimum length for wide digits: their counters cost less than a pass over the list.
const MIN_WIDE_DIGIT_LENGTH: usize = 1024;

/// The bits of a narrow and of a wide digit.
const DIGIT_BITS: [u32; 2] = [8, 11];

/// Maximum bytes that stay in the cache between passes.
const MAX_CACHED_BYTES: usize = 2 << 20;

/// True if radix sort beats comparison sort: long lists amortise more passes, but lists beyond the
/// cache fewer.
pub(super) fn suits<T: Coordinate>(len: usize, bits: BitRange) -> bool {
    let passes = pass_plan(len, bits).0 as usize;
    passes.pow(3) * 5 / 2 <= len && (passes <= 3 || size_of::<T>().saturating_mul(len) <= MAX_CACHED_BYTES)
}

/// The number of passes, and the bits of each.
fn pass_plan(len: usize, bits: BitRange) -> (u32, u32) {
    let count = bits.count().max(1);
    let mut passes = count.div_ceil(DIGIT_BITS[0]);
    if len >= MIN_WIDE_DIGIT_LENGTH {
        passes = passes.min(count.div_ceil(DIGIT_BITS[1]));
    }
    (passes, count.div_ceil(passes))
}

pub(super) fn sort<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    let len = elements.len();
    if len <= MAX_BYTE_COUNTED {
        on_stack::<T, u8, 256, 256>(elements, bits);
    } else if len <= MAX_STACK_ELEMENTS {
        on_stack::<T, u32, MAX_STACK_ELEMENTS, 2048>(elements, bits);
    } else {
        in_pool(elements, bits);
    }
}

/// Sorts with the second buffer on the stack: `N` elements.
#[inline(never)]
fn on_stack<T: Coordinate, C: RadixCounter, const N: usize, const DIGITS: usize>(elements: &mut [T], bits: BitRange) {
    let mut spare = [const { MaybeUninit::<T>::uninit() }; N];
    match spare.get_mut(..elements.len()) {
        Some(spare) => by_digits::<T, C, DIGITS>(elements, spare, bits),
        None => elements.sort_unstable(),
    }
}

/// Sorts with the second buffer from the memory pool.
#[inline(never)]
fn in_pool<T: Coordinate>(elements: &mut [T], bits: BitRange) {
    let block = Layout::array::<T>(elements.len()).ok().and_then(|layout| pool::allocate(layout, size_of::<T>()));
    let Some(block) = block.filter(|_| u32::try_from(elements.len()).is_ok()) else {
        return elements.sort_unstable();
    };
    // SAFETY: the block has space for at least as many elements, is not aliased, and is aligned for
    // them.
    let spare = unsafe { std::slice::from_raw_parts_mut(block.data.as_ptr().cast(), elements.len()) };
    by_digits::<T, u32, 2048>(elements, spare, bits);
    pool::free(block);
}

/// Sorts by digits of at most `log2(DIGITS)` bits; `spare` has the length of the list, and the
/// counters do not overflow.
#[inline(always)]
fn by_digits<T: Coordinate, C: RadixCounter, const DIGITS: usize>(
    elements: &mut [T],
    spare: &mut [MaybeUninit<T>],
    bits: BitRange,
) {
    let len = elements.len();
    let (passes, width) = pass_plan(len, bits);
    let used = 1 << width;
    if used > DIGITS || spare.len() != len {
        return elements.sort_unstable();
    }
    let mut counts = [const { MaybeUninit::<C>::uninit() }; DIGITS];
    let mut positions = [const { MaybeUninit::<C>::uninit() }; DIGITS];
    // Only the counters of existing digits are initialised; others are never read.
    let (mut counts, mut positions) = (clear(&mut counts[..used]), clear(&mut positions[..used]));
    let digit = |element: T, shift: u32| (element.wide() >> shift) as usize & (used - 1);
    for element in &*elements {
        let count = &mut counts[digit(*element, bits.low)];
        *count = count.next();
    }
    let (mut from, mut to) = (elements.as_mut_ptr(), spare.as_mut_ptr().cast::<T>());
    for pass in 0..passes {
        std::mem::swap(&mut counts, &mut positions);
        C::sums(positions);
        let shift = bits.low + pass * width;
        let next = shift + width;
        let last = pass + 1 == passes;
        if !last {
            counts.fill(C::ZERO);
        }
        for k in 0..len {
            // SAFETY: both lists have `len` elements, of which those of `from` are initialised.
            // Digits are below `used`. Positions are below `len`, since each is the number of
            // elements with smaller digits, or of earlier ones with the same digit.
            unsafe {
                let element = from.add(k).read();
                let position = positions.get_unchecked_mut(digit(element, shift));
                to.add(position.index()).write(element);
                *position = position.next();
                if !last {
                    let count = counts.get_unchecked_mut(digit(element, next));
                    *count = count.next();
                }
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    if passes % 2 == 1 {
        // SAFETY: the sorted list is in `spare` now, which has the same length and does not
        // overlap.
        unsafe { to.copy_from_nonoverlapping(from, len) };
    }
}

/// Initialises the counters with zeros.
fn clear<C: RadixCounter>(counts: &mut [MaybeUninit<C>]) -> &mut [C] {
    counts.fill(MaybeUninit::new(C::ZERO));
    // SAFETY: all counters were just written.
    unsafe { &mut *(std::ptr::from_mut(counts) as *mut [C]) }
}

/// A counter of elements, wide enough for the longest list it is used for.
trait RadixCounter: Copy {
    const ZERO: Self;
    fn next(self) -> Self;
    fn index(self) -> usize;
    /// Exclusive prefix sum. The length is a power of two, and no sum overflows.
    fn sums(counts: &mut [Self]);
}

/// Several prefix sums in one word: a multiplication by ones adds all lower lanes to each lane.
macro_rules! packed {
    ($counter:ty, $lanes:literal, $ones:literal) => {
        impl RadixCounter for $counter {
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
