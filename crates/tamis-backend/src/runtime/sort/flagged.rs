//! Sorting by flags: for lists whose elements are flagged, the flags are read in order, 64 at a
//! time.
//!
//! If the list fills much of its range, all flags of the range are read. Otherwise the elements
//! first mark their groups of 64, and only the flags of marked groups are read. Marks are bytes, so
//! that marking has no read-modify-write dependency. Either way an element costs one or two
//! nanoseconds on the Zen 4 it was measured on, however many bits it has.

use super::{Coordinate, rank};
use std::mem::MaybeUninit;

/// Flags per group, read together.
const GROUP: usize = 64;

/// Minimum length; shorter lists are rank sorted.
const MIN_LENGTH: usize = 48;

/// Maximum range per element for which all flags of the range are read.
const MAX_DENSE_RANGE: usize = 20;

/// Maximum number of groups that can be marked: the marks are on the stack.
const MAX_MARKS: usize = 1 << 14;

/// Maximum range per element for which clearing the marks pays, ...
const MAX_MARKED_RANGE: usize = 4096;

/// ... and the minimum length for it: radix sort is faster for shorter lists.
const MIN_MARKED_LENGTH: usize = 256;

/// The result of sorting by flags.
pub(super) enum FlagSort {
    Sorted,
    /// Another algorithm is faster; nothing has changed.
    NotApplicable,
    /// The flags contradict the elements.
    Contradiction,
}

/// Sorts a list of the set flags, if this algorithm is applicable.
#[inline(always)]
pub(super) fn sort<T: Coordinate>(elements: &mut [T], flags: &[u8]) -> FlagSort {
    if elements.len() <= MIN_LENGTH {
        return FlagSort::NotApplicable;
    }
    let (mut first, mut last) = (elements[0], elements[0]);
    for element in &*elements {
        first = first.min(*element);
        last = last.max(*element);
    }
    let (Ok(first), Ok(last)) = (usize::try_from(first.wide()), usize::try_from(last.wide())) else {
        return FlagSort::Contradiction;
    };
    if last >= flags.len() {
        return FlagSort::Contradiction;
    }
    let groups = GroupRange { first: first / GROUP, last: last / GROUP };
    let range = last - first;
    let marked = if range / MAX_DENSE_RANGE <= elements.len() {
        false
    } else if elements.len() > MIN_MARKED_LENGTH
        && groups.last - groups.first < MAX_MARKS
        && range / MAX_MARKED_RANGE <= elements.len()
    {
        true
    } else {
        return FlagSort::NotApplicable;
    };
    if read(elements, flags, groups, marked) { FlagSort::Sorted } else { FlagSort::Contradiction }
}

/// An inclusive range of groups.
#[derive(Clone, Copy)]
struct GroupRange {
    first: usize,
    last: usize,
}

#[inline(never)]
fn read<T: Coordinate>(elements: &mut [T], flags: &[u8], groups: GroupRange, marked: bool) -> bool {
    #[cfg(target_arch = "x86_64")]
    if rank::wide_vectors() {
        // SAFETY: the processor has these instructions.
        return unsafe { x86::with_wide_vectors(elements, flags, groups, marked) };
    }
    by_flags(elements, flags, groups, marked, &Portable)
}

/// The vector operations of the target.
trait FlagVectors {
    /// Gathers 64 flags into a bit mask.
    fn bits(&self, flags: &[u8; GROUP]) -> u64;
}

struct Portable;

impl FlagVectors for Portable {
    #[inline(always)]
    fn bits(&self, flags: &[u8; GROUP]) -> u64 {
        let mut bits = 0;
        for (k, chunk) in flags.as_chunks::<8>().0.iter().enumerate() {
            // The product moves the low bit of byte `k` to bit `k` of the highest byte, without
            // carries.
            let gathered =
                (u64::from_le_bytes(*chunk) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            bits |= gathered << (8 * k);
        }
        bits
    }
}

/// Overwrites the list with the positions of the set flags; returns `false` if their number differs
/// from its length.
#[inline(always)]
fn by_flags<T: Coordinate>(
    elements: &mut [T],
    flags: &[u8],
    groups: GroupRange,
    marked: bool,
    vectors: &impl FlagVectors,
) -> bool {
    let mut output = OutputCursor { elements, at: 0 };
    let load = |group: usize| group_of(flags, group);
    if !marked {
        for group in groups.first..=groups.last {
            let bits = vectors.bits(load(group).get());
            if bits != 0 && !output.put(bits, group) {
                return false;
            }
        }
        return output.full();
    }
    let mut marks = [const { MaybeUninit::<u8>::uninit() }; MAX_MARKS];
    let used = (groups.last - groups.first + 1).next_multiple_of(GROUP).min(MAX_MARKS);
    let marks = &mut marks[..used];
    marks.fill(MaybeUninit::new(0));
    // SAFETY: the slice was just initialised.
    let marks = unsafe { &mut *(std::ptr::from_mut(marks) as *mut [u8]) };
    for element in &*output.elements {
        let mark = marks.get_mut((element.wide() as usize / GROUP).wrapping_sub(groups.first));
        // All elements are within the range; `get_mut` saves a second check.
        if let Some(mark) = mark {
            *mark = 1;
        }
    }
    for (k, some) in marks.as_chunks::<GROUP>().0.iter().enumerate() {
        let mut bits = vectors.bits(some);
        while bits != 0 {
            let group = groups.first + GROUP * k + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if !output.put(vectors.bits(load(group).get()), group) {
                return false;
            }
        }
    }
    output.full()
}

/// A group in place, or a zero-padded copy of the last one.
enum FlagGroup<'a> {
    InPlace(&'a [u8; GROUP]),
    Copied([u8; GROUP]),
}

impl FlagGroup<'_> {
    #[inline(always)]
    fn get(&self) -> &[u8; GROUP] {
        match self {
            FlagGroup::InPlace(flags) => flags,
            FlagGroup::Copied(flags) => flags,
        }
    }
}

#[inline(always)]
fn group_of(flags: &[u8], group: usize) -> FlagGroup<'_> {
    let rest = flags.get(GROUP * group..).unwrap_or_default();
    match rest.first_chunk() {
        Some(flags) => FlagGroup::InPlace(flags),
        None => {
            let mut some = [0; GROUP];
            some[..rest.len()].copy_from_slice(rest);
            FlagGroup::Copied(some)
        }
    }
}

/// An output cursor over the list.
struct OutputCursor<'a, T> {
    elements: &'a mut [T],
    at: usize,
}

impl<T: Coordinate> OutputCursor<'_, T> {
    /// Writes the positions of the set bits of a group; returns `false` if they do not fit.
    #[inline(always)]
    fn put(&mut self, bits: u64, group: usize) -> bool {
        let (base, count) = ((GROUP * group) as u64, bits.count_ones() as usize);
        let rest = self.elements.get_mut(self.at..).unwrap_or_default();
        if count <= MAX_FIXED_STORES
            && let Some(rest) = rest.first_chunk_mut::<MAX_FIXED_STORES>()
        {
            // A fixed number of stores: branching on the count would be mispredicted.
            let mut left = bits;
            for element in rest {
                *element = T::narrow(base + u64::from(left.trailing_zeros()));
                left &= left.wrapping_sub(1);
            }
        } else if let Some(rest) = rest.first_chunk_mut::<GROUP>() {
            // Eight stores at a time, for the same reason; surplus ones are overwritten.
            let mut left = bits;
            for some in rest.as_chunks_mut::<8>().0 {
                if left == 0 {
                    break;
                }
                for element in some {
                    *element = T::narrow(base + u64::from(left.trailing_zeros()));
                    left &= left.wrapping_sub(1);
                }
            }
        } else if count <= rest.len() {
            let mut left = bits;
            for element in &mut rest[..count] {
                *element = T::narrow(base + u64::from(left.trailing_zeros()));
                left &= left.wrapping_sub(1);
            }
        } else {
            return false;
        }
        self.at += count;
        true
    }

    fn full(&self) -> bool {
        self.at == self.elements.len()
    }
}

/// Set bits per group up to which the fixed number of stores is used.
const MAX_FIXED_STORES: usize = 4;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Coordinate, FlagVectors, GROUP, GroupRange, by_flags};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn with_wide_vectors<T: Coordinate>(
        elements: &mut [T],
        flags: &[u8],
        groups: GroupRange,
        marked: bool,
    ) -> bool {
        by_flags(elements, flags, groups, marked, &Avx2)
    }

    struct Avx2;

    impl FlagVectors for Avx2 {
        #[inline(always)]
        fn bits(&self, flags: &[u8; GROUP]) -> u64 {
            let [low, high] = [0, 32].map(|start| {
                // SAFETY: used only if the CPU has these instructions; there are 32 bytes from
                // `start` on.
                unsafe {
                    let some = _mm256_loadu_si256(flags.as_ptr().add(start).cast());
                    // Flags are 0 or 1: the shift moves their low bits to the sign bits that
                    // movemask gathers.
                    _mm256_movemask_epi8(_mm256_slli_epi16::<7>(some)) as u32
                }
            });
            u64::from(low) | u64::from(high) << 32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type FlagReader<T> = fn(&mut [T], &[u8], GroupRange, bool) -> bool;

    /// Every implementation that this CPU supports.
    fn readers<T: Coordinate>() -> Vec<FlagReader<T>> {
        let mut readers: Vec<FlagReader<T>> = vec![|e, f, g, m| by_flags(e, f, g, m, &Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if rank::wide_vectors() {
                // SAFETY: the processor has these instructions.
                readers.push(|e, f, g, m| unsafe { x86::with_wide_vectors(e, f, g, m) });
            }
        }
        readers
    }

    /// A sparse, unordered subset of `0..extent`, about one of every `of` numbers.
    fn list(extent: u64, of: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            (0..extent).filter(|k| (k ^ extent).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 < (1 << 24) / of).collect();
        numbers.sort_by_key(|k| k.wrapping_mul(0xff51_afd7_ed55_8ccd));
        numbers
    }

    fn flags(list: &[u64], extent: u64) -> Vec<u8> {
        let mut flags = vec![0; extent as usize];
        list.iter().for_each(|k| flags[*k as usize] = 1);
        flags
    }

    fn check<T: Coordinate + std::fmt::Debug>(extent: u64, of: u64) {
        let numbers = list(extent, of);
        let (Some(first), Some(last)) = (numbers.iter().min(), numbers.iter().max()) else { return };
        let groups = GroupRange { first: *first as usize / GROUP, last: *last as usize / GROUP };
        let mut expected = numbers.clone();
        expected.sort_unstable();
        let narrow = |numbers: &[u64]| numbers.iter().map(|k| T::narrow(*k)).collect::<Vec<T>>();
        let flags = flags(&numbers, extent);
        for marked in [false, true] {
            if marked && groups.last - groups.first >= MAX_MARKS {
                continue;
            }
            for (k, read) in readers::<T>().into_iter().enumerate() {
                let mut elements = narrow(&numbers);
                assert!(read(&mut elements, &flags, groups, marked), "{extent}, one of {of}, reader {k}");
                assert_eq!(elements, narrow(&expected), "{extent}, one of {of}, reader {k}, marked {marked}");
                // A missing or extra flag is detected, and nothing is written past the list.
                for at in [*first, *first + 1] {
                    // GroupRange without elements are not read.
                    if at as usize / GROUP != groups.first || at >= extent {
                        continue;
                    }
                    let mut wrong = flags.clone();
                    wrong[at as usize] = 1 - wrong[at as usize];
                    let consistent = read(&mut narrow(&numbers), &wrong, groups, marked);
                    assert!(!consistent, "{extent}, one of {of}, reader {k}, marked {marked}, flag {at}");
                }
            }
        }
        let mut elements = narrow(&numbers);
        match sort(&mut elements, &flags) {
            FlagSort::Sorted => assert_eq!(elements, narrow(&expected)),
            FlagSort::NotApplicable => {
                assert!(numbers.len() <= MIN_MARKED_LENGTH || extent > 1 << 19, "{extent}, one of {of}")
            }
            FlagSort::Contradiction => panic!("{extent}, one of {of}: the flags are correct"),
        }
    }

    #[test]
    fn flags_are_read_in_order() {
        for extent in [1, 2, 63, 64, 65, 128, 255] {
            [1, 2, 7, 64].into_iter().for_each(|of| check::<u8>(extent, of));
        }
        for extent in [64, 100, 1000, 4095, 4096, 5000, 65_535] {
            [1, 3, 10, 30, 100, 1000].into_iter().for_each(|of| check::<u16>(extent, of));
        }
        for extent in [200, 70_000, 1 << 20, (1 << 20) + 77] {
            for of in [1, 16, 50, 300, 5000] {
                check::<u32>(extent, of);
                check::<u64>(extent, of);
            }
        }
    }

    #[test]
    fn wrong_flags_are_detected() {
        let mut elements: Vec<u32> = (0..100).rev().collect();
        assert!(matches!(sort(&mut elements, &[1; 99]), FlagSort::Contradiction));
        assert!(matches!(sort(&mut elements, &[]), FlagSort::Contradiction));
        assert!(matches!(sort(&mut elements, &[0; 100]), FlagSort::Contradiction));
    }
}
