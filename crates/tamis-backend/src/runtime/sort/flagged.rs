//! Lists whose elements are flagged: the flags are read in order instead, 64 at a time.
//!
//! Where a list takes up much of its range, all flags of that range are read. Where it does not, its elements first mark
//! their groups of 64, and only flags of marked groups are read: by bytes, too, so that no mark waits for another.
//! Either way an element costs a nanosecond or two, however many bits it has.

use super::{Coordinate, short};
use std::mem::MaybeUninit;

/// Flags that are read at once.
const GROUP: usize = 64;

/// Shorter lists are compared.
const SHORT: usize = 48;

/// A list of one element for so many of its range has all flags of that range read.
const DENSE: usize = 20;

/// The most groups that can be marked: their marks lie on the stack.
const MARKS: usize = 1 << 14;

/// A list of one element for so many of its range is worth clearing the marks, ...
const SPARSE: usize = 4096;

/// ... if it is longer than this: digits sort shorter ones sooner.
const LONG: usize = 256;

/// What came of it.
pub(super) enum Outcome {
    Sorted,
    /// Another way is faster; nothing is done.
    Unsuitable,
    /// The flags say something else.
    Contradiction,
}

/// Sorts a list of those flags that are set, if this is the way to do so.
#[inline(always)]
pub(super) fn sort<T: Coordinate>(elements: &mut [T], flags: &[u8]) -> Outcome {
    if elements.len() <= SHORT {
        return Outcome::Unsuitable;
    }
    let (mut first, mut last) = (elements[0], elements[0]);
    for element in &*elements {
        first = first.min(*element);
        last = last.max(*element);
    }
    let (Ok(first), Ok(last)) = (usize::try_from(first.wide()), usize::try_from(last.wide())) else {
        return Outcome::Contradiction;
    };
    if last >= flags.len() {
        return Outcome::Contradiction;
    }
    let groups = Groups { first: first / GROUP, last: last / GROUP };
    let range = last - first;
    let marked = if range / DENSE <= elements.len() {
        false
    } else if elements.len() > LONG && groups.last - groups.first < MARKS && range / SPARSE <= elements.len() {
        true
    } else {
        return Outcome::Unsuitable;
    };
    if read(elements, flags, groups, marked) { Outcome::Sorted } else { Outcome::Contradiction }
}

/// Groups of flags, both ends included.
#[derive(Clone, Copy)]
struct Groups {
    first: usize,
    last: usize,
}

#[inline(never)]
fn read<T: Coordinate>(elements: &mut [T], flags: &[u8], groups: Groups, marked: bool) -> bool {
    #[cfg(target_arch = "x86_64")]
    if short::wide_vectors() {
        // SAFETY: the processor has these instructions.
        return unsafe { x86::with_wide_vectors(elements, flags, groups, marked) };
    }
    by_flags(elements, flags, groups, marked, &Portable)
}

/// What vectors are good for.
trait Vectors {
    /// One bit for each flag.
    fn bits(&self, flags: &[u8; GROUP]) -> u64;
}

struct Portable;

impl Vectors for Portable {
    #[inline(always)]
    fn bits(&self, flags: &[u8; GROUP]) -> u64 {
        let mut bits = 0;
        for (k, chunk) in flags.as_chunks::<8>().0.iter().enumerate() {
            // The product moves the low bit of byte `k` to bit `k` of the highest byte; no two meet.
            let gathered =
                (u64::from_le_bytes(*chunk) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            bits |= gathered << (8 * k);
        }
        bits
    }
}

/// Writes which flags are set over the list; `false` if they are not as many as it has elements.
#[inline(always)]
fn by_flags<T: Coordinate>(
    elements: &mut [T],
    flags: &[u8],
    groups: Groups,
    marked: bool,
    vectors: &impl Vectors,
) -> bool {
    let mut sink = Sink { elements, at: 0 };
    let load = |group: usize| group_of(flags, group);
    if !marked {
        for group in groups.first..=groups.last {
            let bits = vectors.bits(load(group).get());
            if bits != 0 && !sink.put(bits, group) {
                return false;
            }
        }
        return sink.full();
    }
    let mut marks = [const { MaybeUninit::<u8>::uninit() }; MARKS];
    let used = (groups.last - groups.first + 1).next_multiple_of(GROUP).min(MARKS);
    let marks = &mut marks[..used];
    marks.fill(MaybeUninit::new(0));
    // SAFETY: all of the part was just written.
    let marks = unsafe { &mut *(std::ptr::from_mut(marks) as *mut [u8]) };
    for element in &*sink.elements {
        let mark = marks.get_mut((element.wide() as usize / GROUP).wrapping_sub(groups.first));
        // All are between the first and the last, which this need not be told a second time.
        if let Some(mark) = mark {
            *mark = 1;
        }
    }
    for (k, some) in marks.as_chunks::<GROUP>().0.iter().enumerate() {
        let mut bits = vectors.bits(some);
        while bits != 0 {
            let group = groups.first + GROUP * k + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if !sink.put(vectors.bits(load(group).get()), group) {
                return false;
            }
        }
    }
    sink.full()
}

/// Flags where they are, or a copy of the last ones, which are fewer.
enum Loaded<'a> {
    There(&'a [u8; GROUP]),
    Copied([u8; GROUP]),
}

impl Loaded<'_> {
    #[inline(always)]
    fn get(&self) -> &[u8; GROUP] {
        match self {
            Loaded::There(flags) => flags,
            Loaded::Copied(flags) => flags,
        }
    }
}

#[inline(always)]
fn group_of(flags: &[u8], group: usize) -> Loaded<'_> {
    let rest = flags.get(GROUP * group..).unwrap_or_default();
    match rest.first_chunk() {
        Some(flags) => Loaded::There(flags),
        None => {
            let mut some = [0; GROUP];
            some[..rest.len()].copy_from_slice(rest);
            Loaded::Copied(some)
        }
    }
}

/// The list, as far as it is written.
struct Sink<'a, T> {
    elements: &'a mut [T],
    at: usize,
}

impl<T: Coordinate> Sink<'_, T> {
    /// Writes the numbers of the bits of a group; `false` if there is no room.
    #[inline(always)]
    fn put(&mut self, bits: u64, group: usize) -> bool {
        let (base, count) = ((GROUP * group) as u64, bits.count_ones() as usize);
        let rest = self.elements.get_mut(self.at..).unwrap_or_default();
        if count <= FEW
            && let Some(rest) = rest.first_chunk_mut::<FEW>()
        {
            // Few are written without asking how many there are, which could not be predicted.
            let mut left = bits;
            for element in rest {
                *element = T::narrow(base + u64::from(left.trailing_zeros()));
                left &= left.wrapping_sub(1);
            }
        } else if let Some(rest) = rest.first_chunk_mut::<GROUP>() {
            // Eight at a time, for the same reason; what is too much is written over.
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

/// What is few for a group.
const FEW: usize = 4;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Coordinate, GROUP, Groups, Vectors, by_flags};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn with_wide_vectors<T: Coordinate>(
        elements: &mut [T],
        flags: &[u8],
        groups: Groups,
        marked: bool,
    ) -> bool {
        by_flags(elements, flags, groups, marked, &Wide)
    }

    struct Wide;

    impl Vectors for Wide {
        #[inline(always)]
        fn bits(&self, flags: &[u8; GROUP]) -> u64 {
            let [low, high] = [0, 32].map(|start| {
                // SAFETY: used only where the processor has these instructions; there are 32 bytes from `start` on.
                unsafe {
                    let some = _mm256_loadu_si256(flags.as_ptr().add(start).cast());
                    // Flags are 0 or 1: their low bits become the high ones that are gathered.
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

    type Reader<T> = fn(&mut [T], &[u8], Groups, bool) -> bool;

    /// Every way of reading flags that this processor has.
    fn readers<T: Coordinate>() -> Vec<Reader<T>> {
        let mut readers: Vec<Reader<T>> = vec![|e, f, g, m| by_flags(e, f, g, m, &Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if short::wide_vectors() {
                // SAFETY: the processor has these instructions.
                readers.push(|e, f, g, m| unsafe { x86::with_wide_vectors(e, f, g, m) });
            }
        }
        readers
    }

    /// Some of the numbers below `extent`, one of about `of`, without an order.
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
        let groups = Groups { first: *first as usize / GROUP, last: *last as usize / GROUP };
        let mut expected = numbers.clone();
        expected.sort_unstable();
        let narrow = |numbers: &[u64]| numbers.iter().map(|k| T::narrow(*k)).collect::<Vec<T>>();
        let flags = flags(&numbers, extent);
        for marked in [false, true] {
            if marked && groups.last - groups.first >= MARKS {
                continue;
            }
            for (k, read) in readers::<T>().into_iter().enumerate() {
                let mut elements = narrow(&numbers);
                assert!(read(&mut elements, &flags, groups, marked), "{extent}, one of {of}, reader {k}");
                assert_eq!(elements, narrow(&expected), "{extent}, one of {of}, reader {k}, marked {marked}");
                // One flag too few or too many is found out, and nothing is written past the list.
                for at in [*first, *first + 1] {
                    // Groups without elements are not looked at.
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
            Outcome::Sorted => assert_eq!(elements, narrow(&expected)),
            Outcome::Unsuitable => assert!(numbers.len() <= LONG || extent > 1 << 19, "{extent}, one of {of}"),
            Outcome::Contradiction => panic!("{extent}, one of {of}: the flags are right"),
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
    fn what_is_not_a_flag_is_told() {
        let mut elements: Vec<u32> = (0..100).rev().collect();
        assert!(matches!(sort(&mut elements, &[1; 99]), Outcome::Contradiction));
        assert!(matches!(sort(&mut elements, &[]), Outcome::Contradiction));
        assert!(matches!(sort(&mut elements, &[0; 100]), Outcome::Contradiction));
    }
}
