//! A place for each element there could be: for few of them, or many entries.

use super::Stop;
use super::blocks::{Entry, Piece};
use super::engine::prefetch;
use super::key::{Key, Packing};
use super::merge::Fold;
use super::places::Places;
use super::policy::Lane;
use crate::runtime::typed::OutOfMemory;

/// Keys of up to so many bits may have a place each.
const MOST: u32 = 20;

/// There are at most so many places for each entry: memory stays proportional to entries.
const PLACES: usize = 16;

/// So many entries ahead, the memory of their places is asked for.
const AHEAD: usize = 16;

/// Whether there should be a place for each key of so many bits, with so many entries.
pub(super) fn suits(bits: u32, entries: usize) -> bool {
    bits <= MOST && 1usize << bits <= entries.saturating_mul(PLACES)
}

/// A place for each key.
pub(super) struct Flat<T: Copy> {
    places: Places<T>,
    /// How many keys there are. 0: not in use.
    size: usize,
    /// There are no more elements.
    most: usize,
}

impl<T: Copy + Send + 'static> Flat<T> {
    pub(super) fn new() -> Flat<T> {
        Flat { places: Places::new(), size: 0, most: 0 }
    }

    pub(super) fn reset(&mut self) {
        if self.used() {
            self.places.spoil();
        }
        (self.size, self.most) = (0, 0);
    }

    pub(super) fn used(&self) -> bool {
        self.size > 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.places.bytes()
    }

    /// Starts to be used, for keys of so many bits.
    pub(super) fn open<F: Fold<T>>(&mut self, fold: F, bits: u32) -> Result<(), OutOfMemory> {
        let size = 1usize << bits.min(MOST);
        self.places.make(fold, size)?;
        (self.size, self.most) = (size, 0);
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
        self.most = self.size.min(self.most.saturating_add(count));
        let (places, mask) = (&mut self.places, self.size - 1);
        // SAFETY: promised by the caller; places are below their number.
        unsafe {
            packing.pack::<K>(lanes, count, |start, keys| {
                let (now, last) = keys.split_at(keys.len().saturating_sub(AHEAD));
                for (k, key) in now.iter().enumerate() {
                    prefetch(places.place(keys[k + AHEAD].digit(0) & mask));
                    places.put::<F, 3>(fold, key.digit(0) & mask, values.add(start + k).read());
                }
                for (k, key) in last.iter().enumerate() {
                    places.put::<F, 3>(fold, key.digit(0) & mask, values.add(start + now.len() + k).read());
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
        for piece in pieces {
            self.most = self.size.min(self.most.saturating_add(piece.len));
            for k in 0..piece.len {
                // SAFETY: promised by the caller; places are below their number.
                unsafe {
                    let Entry { key, value } = piece.first.add(k).read();
                    self.places.put::<F, 3>(fold, key.digit(0) & (self.size - 1), value);
                }
            }
        }
    }

    /// How many elements there are at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Writes all elements in order, gives how many there are, and is not in use any more.
    ///
    /// # Safety
    /// There is room for as many as there are at most.
    pub(super) unsafe fn empty<K: Key, F: Fold<T>>(
        &mut self,
        fold: F,
        packing: &Packing,
        lanes: &[Lane],
        to: *mut T,
    ) -> usize {
        let (mut done, mut waiting, mut keys) = (0, 0, [K::ZERO; 512]);
        self.places.take::<F, 3>(fold, self.size, |place, value| {
            keys[waiting] = K::ZERO.push(63, place as u64);
            waiting += 1;
            // SAFETY: promised by the caller.
            unsafe {
                to.add(done).write(value);
                done += 1;
                if waiting == keys.len() {
                    packing.unpack(&keys, lanes, done - waiting);
                    waiting = 0;
                }
            }
        });
        // SAFETY: as above.
        unsafe { packing.unpack(&keys[..waiting], lanes, done - waiting) };
        (self.size, self.most) = (0, 0);
        done
    }
}
