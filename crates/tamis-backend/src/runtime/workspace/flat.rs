//! A place for each element there could be: for few of them, or many entries.

use super::Stop;
use super::blocks::{Entry, Piece};
use super::combine::{put, take_all};
use super::key::{Key, Packing};
use super::merge::Fold;
use super::policy::Lane;
use crate::runtime::typed::{Room, Shortage};

/// Keys of up to so many bits may have a place each.
const MOST: u32 = 20;

/// There are at most so many places for each entry: memory stays proportional to entries.
const PLACES: usize = 16;

/// So many entries ahead, the memory of their places is asked for.
const AHEAD: usize = 16;

/// A value, and a bit that says whether it is there, for each key.
pub(super) struct Flat<T: Copy> {
    values: Room<T>,
    present: Room<u64>,
    /// 0: not in use.
    places: usize,
}

/// Whether there should be a place for each key of so many bits, with so many entries.
pub(super) fn suits(bits: u32, entries: usize) -> bool {
    bits <= MOST && 1usize << bits <= entries.saturating_mul(PLACES)
}

impl<T: Copy + Send + 'static> Flat<T> {
    pub(super) fn new() -> Flat<T> {
        Flat { values: Room::new(), present: Room::new(), places: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.places = 0;
    }

    pub(super) fn used(&self) -> bool {
        self.places > 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.values.bytes() + self.present.bytes()
    }

    /// Starts to be used, for keys of so many bits.
    pub(super) fn open(&mut self, bits: u32) -> Result<(), Shortage> {
        let places = 1usize << bits.min(MOST);
        if self.values.capacity() < places {
            // What is read and not used must have been written, too.
            self.values.zeroed(places)?;
        }
        let words = places.div_ceil(64);
        self.present.make(words)?;
        // SAFETY: there is room for so many words.
        unsafe { self.present.pointer().write_bytes(0, words) };
        self.places = places;
        Ok(())
    }

    /// Takes entries of an accumulation array.
    ///
    /// # Safety
    /// The lanes and the values have so many elements.
    pub(super) unsafe fn put<K: Key, F: Fold<T>>(
        &mut self,
        fold: F,
        packing: &Packing,
        (lanes, values, count): (&[Lane], *const T, usize),
    ) -> Result<(), Stop> {
        let (places, present, mask) = (self.values.pointer(), self.present.pointer(), self.places - 1);
        // SAFETY: promised by the caller; places are below their number.
        unsafe {
            packing.pack::<K>(lanes, count, |start, keys| {
                for (k, key) in keys.iter().enumerate() {
                    let soon = keys[(k + AHEAD).min(keys.len() - 1)];
                    super::engine::prefetch(places.wrapping_add(soon.digit(0) & mask));
                    put(fold, places, present, key.digit(0) & mask, values.add(start + k).read());
                }
                Ok(())
            })
        }
    }

    /// Takes entries that were on a shelf.
    ///
    /// # Safety
    /// They are written.
    pub(super) unsafe fn take<K: Key, F: Fold<T>>(&mut self, fold: F, pieces: &[Piece<Entry<K, T>>]) {
        let (places, present, mask) = (self.values.pointer(), self.present.pointer(), self.places - 1);
        for piece in pieces {
            for k in 0..piece.len {
                // SAFETY: promised by the caller; places are below their number.
                unsafe {
                    let Entry { key, value } = piece.first.add(k).read();
                    put(fold, places, present, key.digit(0) & mask, value);
                }
            }
        }
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        // SAFETY: all words were written when this was opened.
        let words = unsafe { self.present.written(self.places.div_ceil(64)) };
        words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Hands all elements over in order, and is not in use any more.
    ///
    /// # Safety
    /// There is room for so many values.
    pub(super) unsafe fn empty<K: Key>(&mut self, packing: &Packing, lanes: &[Lane], to: *mut T) {
        let from = self.values.pointer();
        let mut done = 0;
        let mut keys = [K::ZERO; 512];
        let mut waiting = 0;
        // SAFETY: as above; and promised by the caller.
        unsafe {
            take_all(self.present.written_mut(self.places.div_ceil(64)), |place| {
                to.add(done).write(from.add(place).read());
                done += 1;
                keys[waiting] = K::ZERO.push(63, place as u64);
                waiting += 1;
                if waiting == keys.len() {
                    packing.unpack(&keys, lanes, done - waiting);
                    waiting = 0;
                }
            });
            packing.unpack(&keys[..waiting], lanes, done - waiting);
        }
        self.places = 0;
    }
}
