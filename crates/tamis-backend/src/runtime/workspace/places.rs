//! A place for each key of a small range, with flags that say which are taken: values are folded where they belong, and come
//! out in order, without being sorted.
//!
//! A flag is a byte, so that raising it needs nothing to be read. There are flags for places, for each 64 of those, and for
//! each 64 of these, so that few are looked at. Raising costs, too: whoever knows that many places are taken, or that there
//! are few places, says that only some of the `LEVELS` of flags are used.

use super::merge::Fold;
use crate::runtime::typed::{OutOfMemory, Room};

/// Places with values.
pub(super) struct Places<T: Copy> {
    values: Room<T>,
    /// For places, 64 of them, and 64 of those. All are 0 between uses.
    flags: [Room<u8>; 3],
    /// How many places there are.
    size: usize,
}

impl<T: Copy + Send + 'static> Places<T> {
    pub(super) fn new() -> Places<T> {
        Places { values: Room::new(), flags: [Room::new(), Room::new(), Room::new()], size: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.values.bytes() + self.flags.iter().map(Room::bytes).sum::<u64>()
    }

    /// Says that some may be taken, so that all are made anew.
    pub(super) fn spoil(&mut self) {
        self.size = 0;
    }

    /// There are at least so many places, none of which is taken.
    #[inline(always)]
    pub(super) fn make<F: Fold<T>>(&mut self, fold: F, size: usize) -> Result<(), OutOfMemory> {
        if size <= self.size { Ok(()) } else { self.make_anew(fold, size) }
    }

    #[cold]
    fn make_anew<F: Fold<T>>(&mut self, fold: F, size: usize) -> Result<(), OutOfMemory> {
        self.size = 0;
        match fold.neutral() {
            Some(neutral) => {
                self.values.make(size)?;
                for place in 0..size {
                    // SAFETY: there is room for so many.
                    unsafe { self.values.pointer().add(place).write(neutral) };
                }
            }
            None => self.values.zeroed(size)?,
        }
        let mut groups = size;
        for flags in &mut self.flags {
            // Whole groups of 64.
            flags.zeroed(groups.next_multiple_of(64))?;
            groups = groups.div_ceil(64);
        }
        self.size = size;
        Ok(())
    }

    /// Folds a value with the one at its place, if there is one.
    ///
    /// # Safety
    /// There is such a place; all that are taken before [`Places::take`] are with the same `LEVELS`, from 1 to 3.
    #[inline(always)]
    pub(super) unsafe fn put<F: Fold<T>, const LEVELS: usize>(&mut self, fold: F, place: usize, value: T) {
        let [flags, groups, all] = &self.flags;
        // SAFETY: promised by the caller.
        unsafe {
            let before = self.values.pointer().add(place);
            let flag = flags.pointer().add(place);
            if fold.neutral().is_some() || flag.read() != 0 {
                before.write(fold.fold(before.read(), value));
            } else {
                before.write(value);
            }
            flag.write(1);
            if LEVELS > 1 {
                groups.pointer().add(place / 64).write(1);
            }
            if LEVELS > 2 {
                all.pointer().add(place / 64 / 64).write(1);
            }
        }
    }

    /// Where the value of a place is, to be asked for in advance.
    #[inline(always)]
    pub(super) fn place(&self, place: usize) -> *const T {
        self.values.pointer().wrapping_add(place)
    }

    /// Visits the first `size` places that are taken, in order, with their values; none is taken afterwards.
    #[inline(always)]
    pub(super) fn take<F: Fold<T>, const LEVELS: usize>(
        &mut self,
        fold: F,
        size: usize,
        mut visit: impl FnMut(usize, T),
    ) {
        let [flags, groups, all] = self.flags.each_ref().map(Room::pointer);
        let lines = size.min(self.size).div_ceil(64);
        let pages = lines.div_ceil(64);
        // SAFETY: all flags are in groups of 64, and were written; places that are flagged are there.
        unsafe {
            let mut line = |line: usize| {
                for place in bits(take_flags(flags.add(64 * line))) {
                    let place = 64 * line + place;
                    let at = self.values.pointer().add(place);
                    visit(place, at.read());
                    if let Some(neutral) = fold.neutral() {
                        at.write(neutral);
                    }
                }
            };
            if LEVELS == 1 {
                (0..lines).for_each(line);
                return;
            }
            let mut page = |page: usize| bits(take_flags(groups.add(64 * page))).for_each(|k| line(64 * page + k));
            if LEVELS == 2 {
                (0..pages).for_each(page);
                return;
            }
            for top in (0..pages).step_by(64) {
                bits(take_flags(all.add(top))).for_each(|k| page(top + k));
            }
        }
    }
}

/// The numbers of the bits that are set.
#[inline(always)]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// 64 flags as bits; they are 0 afterwards.
///
/// # Safety
/// There are 64 bytes, each 0 or 1.
#[inline(always)]
unsafe fn take_flags(flags: *mut u8) -> u64 {
    // SAFETY: promised by the caller.
    let mask = unsafe { read_flags(flags) };
    if mask != 0 {
        // SAFETY: as above.
        unsafe { flags.write_bytes(0, 64) };
    }
    mask
}

/// 64 flags as bits.
///
/// # Safety
/// As for [`take_flags`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn read_flags(flags: *const u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpgt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_setzero_si128};
    let mut mask = 0;
    for k in 0..4 {
        // SAFETY: promised by the caller; every processor of this kind has these instructions.
        let bits = unsafe {
            let part = _mm_loadu_si128(flags.add(16 * k).cast());
            _mm_movemask_epi8(_mm_cmpgt_epi8(part, _mm_setzero_si128()))
        };
        mask |= (bits as u64) << (16 * k);
    }
    mask
}

/// 64 flags as bits.
///
/// # Safety
/// As for [`take_flags`].
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn read_flags(flags: *const u8) -> u64 {
    let mut mask = 0;
    for k in 0..8 {
        // SAFETY: promised by the caller.
        let word = unsafe { flags.cast::<u64>().add(k).read_unaligned() };
        // Byte b is moved to bit 56 + b, and nothing else reaches those bits with a carry.
        mask |= (word.to_le().wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * k);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_bits() {
        let mut state = 1u64;
        for _ in 0..1000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let wanted = state ^ state >> 32;
            let mut flags: [u8; 64] = std::array::from_fn(|k| (wanted >> k & 1) as u8);
            // SAFETY: there are 64 of them.
            assert_eq!(unsafe { take_flags(flags.as_mut_ptr()) }, wanted);
            assert_eq!(flags, [0; 64]);
            assert_eq!(bits(wanted).fold(0, |word, bit| word | 1 << bit), wanted);
        }
    }
}
