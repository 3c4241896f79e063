//! Direct-address table: a slot for each key of a small range, with occupancy flags. Values are
//! folded in place and drained in key order, without sorting.
//!
//! A flag is a byte, so that setting it reads nothing. Flags form a hierarchy: one per slot, one
//! per 64 slots, and one per 4096 slots, so that a scan reads few of them. Setting them costs time,
//! too: a caller that knows the table to be small or well filled uses fewer `LEVELS` of flags.

use super::merge_op::Fold;
use crate::runtime::scratch::{OutOfMemory, ScratchVec};

/// A table of values by key.
pub(super) struct DirectTable<T: Copy> {
    values: ScratchVec<T>,
    /// Flags per slot, per 64 slots, and per 4096 slots. All are 0 between uses.
    flags: [ScratchVec<u8>; 3],
    /// The number of slots.
    size: usize,
}

impl<T: Copy + Send + 'static> DirectTable<T> {
    pub(super) fn new() -> DirectTable<T> {
        DirectTable {
            values: ScratchVec::new(),
            flags: [ScratchVec::new(), ScratchVec::new(), ScratchVec::new()],
            size: 0,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.values.bytes() + self.flags.iter().map(ScratchVec::bytes).sum::<u64>()
    }

    /// Marks the table as dirty, so that the next use clears it.
    pub(super) fn invalidate(&mut self) {
        self.size = 0;
    }

    /// Ensures at least `size` slots, all of them free.
    #[inline(always)]
    pub(super) fn prepare<F: Fold<T>>(&mut self, fold: F, size: usize) -> Result<(), OutOfMemory> {
        if size <= self.size { Ok(()) } else { self.rebuild(fold, size) }
    }

    #[cold]
    fn rebuild<F: Fold<T>>(&mut self, fold: F, size: usize) -> Result<(), OutOfMemory> {
        self.size = 0;
        match fold.identity() {
            Some(identity) => {
                self.values.reserve(size)?;
                for slot in 0..size {
                    // SAFETY: the vector has space for `size` values.
                    unsafe { self.values.as_ptr().add(slot).write(identity) };
                }
            }
            None => self.values.zeroed(size)?,
        }
        let mut groups = size;
        for flags in &mut self.flags {
            // Whole groups of 64 flags.
            flags.zeroed(groups.next_multiple_of(64))?;
            groups = groups.div_ceil(64);
        }
        self.size = size;
        Ok(())
    }

    /// Folds a value into its slot, or stores it if the slot is free.
    ///
    /// # Safety
    /// The slot exists. All slots taken before [`DirectTable::drain`] use the same `LEVELS`, from 1
    /// to 3.
    #[inline(always)]
    pub(super) unsafe fn fold_into<F: Fold<T>, const LEVELS: usize>(&mut self, fold: F, slot: usize, value: T) {
        let [flags, groups, all] = &self.flags;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let before = self.values.as_ptr().add(slot);
            let flag = flags.as_ptr().add(slot);
            if fold.identity().is_some() || flag.read() != 0 {
                before.write(fold.fold(before.read(), value));
            } else {
                before.write(value);
            }
            flag.write(1);
            if LEVELS > 1 {
                groups.as_ptr().add(slot / 64).write(1);
            }
            if LEVELS > 2 {
                all.as_ptr().add(slot / 64 / 64).write(1);
            }
        }
    }

    /// The address of the value of a slot, for prefetching.
    #[inline(always)]
    pub(super) fn address(&self, slot: usize) -> *const T {
        self.values.as_ptr().wrapping_add(slot)
    }

    /// Visits the occupied ones among the first `size` slots in order, with their values, and frees
    /// them.
    #[inline(always)]
    pub(super) fn drain<F: Fold<T>, const LEVELS: usize>(
        &mut self,
        fold: F,
        size: usize,
        mut visit: impl FnMut(usize, T),
    ) {
        let [flags, groups, all] = self.flags.each_ref().map(ScratchVec::as_ptr);
        let lines = size.min(self.size).div_ceil(64);
        let pages = lines.div_ceil(64);
        // SAFETY: flags are initialised in groups of 64, and flagged slots exist.
        unsafe {
            let mut line = |line: usize| {
                for slot in set_bits(take_flags(flags.add(64 * line))) {
                    let slot = 64 * line + slot;
                    let at = self.values.as_ptr().add(slot);
                    visit(slot, at.read());
                    if let Some(identity) = fold.identity() {
                        at.write(identity);
                    }
                }
            };
            if LEVELS == 1 {
                (0..lines).for_each(line);
                return;
            }
            let mut page = |page: usize| set_bits(take_flags(groups.add(64 * page))).for_each(|k| line(64 * page + k));
            if LEVELS == 2 {
                (0..pages).for_each(page);
                return;
            }
            for top in (0..pages).step_by(64) {
                set_bits(take_flags(all.add(top))).for_each(|k| page(top + k));
            }
        }
    }
}

/// Iterates over the positions of the set bits.
#[inline(always)]
fn set_bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

/// Reads and clears 64 flags as a bit mask.
///
/// # Safety
/// There are 64 bytes, each 0 or 1.
#[inline(always)]
unsafe fn take_flags(flags: *mut u8) -> u64 {
    // SAFETY: guaranteed by the caller.
    let mask = unsafe { read_flags(flags) };
    if mask != 0 {
        // SAFETY: as above.
        unsafe { flags.write_bytes(0, 64) };
    }
    mask
}

/// Reads 64 flags as a bit mask.
///
/// # Safety
/// As for [`take_flags`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn read_flags(flags: *const u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpgt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_setzero_si128};
    let mut mask = 0;
    for k in 0..4 {
        // SAFETY: guaranteed by the caller; SSE2 is part of x86-64.
        let bits = unsafe {
            let part = _mm_loadu_si128(flags.add(16 * k).cast());
            _mm_movemask_epi8(_mm_cmpgt_epi8(part, _mm_setzero_si128()))
        };
        mask |= (bits as u64) << (16 * k);
    }
    mask
}

/// Reads 64 flags as a bit mask.
///
/// # Safety
/// As for [`take_flags`].
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn read_flags(flags: *const u8) -> u64 {
    let mut mask = 0;
    for k in 0..8 {
        // SAFETY: guaranteed by the caller.
        let word = unsafe { flags.cast::<u64>().add(k).read_unaligned() };
        // The product moves the low bit of byte b to bit 56 + b; no carry reaches those bits.
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
            assert_eq!(set_bits(wanted).fold(0, |word, bit| word | 1 << bit), wanted);
        }
    }
}
