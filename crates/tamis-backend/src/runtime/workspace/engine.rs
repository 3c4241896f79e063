//! What entries are merged into, for some type of keys and values: shelves, or a place for each element, and the way out.

use super::Stop;
use super::combine::Combiner;
use super::flat::{self, Flat};
use super::key::{Key, Packing};
use super::merge::Fold;
use super::policy::{Entries, Lane, Policy};
use super::shelves::{SPLIT, Shelves};
use crate::runtime::memory::{self, RawBuffer};
use crate::runtime::typed::{OutOfMemory, Room};
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// Entries of an accumulation array, and who found their places.
pub(super) struct Batch<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) values: *const u8,
    pub(super) count: usize,
    pub(super) policy: &'a mut dyn Policy,
}

/// The kernel's arrays, to be written: those of coordinates, and then that of values.
pub(super) struct Target<'a> {
    pub(super) buffers: &'a [*mut RawBuffer],
    pub(super) elems: &'a [Elem],
}

impl Target<'_> {
    /// Makes room for `more` elements after the first `used`, which are kept.
    ///
    /// # Safety
    /// The descriptors are of arrays of these types, and nobody else uses them.
    unsafe fn make(&self, used: usize, more: usize) -> Result<(), OutOfMemory> {
        let len = (used + more) as u64;
        for (buffer, elem) in self.buffers.iter().zip(self.elems) {
            // SAFETY: promised by the caller.
            let raw = unsafe { &mut **buffer };
            let before = raw.len;
            if before < len {
                // Only these are worth copying.
                raw.len = used as u64;
                if !memory::grow(raw, len, elem.size(), memory::align(*elem), None) {
                    raw.len = before;
                    return Err(OutOfMemory { elements: len });
                }
            }
        }
        Ok(())
    }

    /// Where the arrays are now.
    ///
    /// # Safety
    /// As for [`Target::make`].
    unsafe fn find(&self, lanes: &mut Vec<Lane>) -> *mut u8 {
        lanes.clear();
        let mut values = std::ptr::null_mut();
        for (buffer, elem) in self.buffers.iter().zip(self.elems) {
            // SAFETY: promised by the caller.
            let data = unsafe { (**buffer).data };
            match elem {
                Elem::Index(Width::U32) => lanes.push(Lane::Narrow(data.cast())),
                Elem::Index(_) => lanes.push(Lane::Wide(data.cast())),
                Elem::Value(_) => values = data,
            }
        }
        values
    }
}

/// Asks for memory that will be read soon.
#[inline(always)]
pub(super) fn prefetch<T>(_place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_place.cast())
    };
}

/// Asks for memory that will be written soon.
#[inline(always)]
pub(super) fn prefetch_to_write<T>(_place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(_place.cast())
    };
}

/// What keeps entries, for some type of keys and values.
pub(super) trait Engine: Send {
    /// How many bits its keys have.
    fn key_bits(&self) -> u32;
    /// Forgets all entries.
    fn reset(&mut self);
    /// How many entries have been combined since this was asked last.
    fn take_combined(&mut self) -> u64;
    /// How many bytes are held: for entries, and to combine them in.
    fn bytes(&self) -> [u64; 2];
    /// Takes entries. `last`: they are the last ones. `true` then: they are in order, all different, and there are no others,
    /// so that they stay where they are, and nothing is to do.
    ///
    /// # Safety
    /// The lanes and the values have `count` elements.
    unsafe fn absorb(&mut self, batch: &mut Batch<'_>, packing: &Packing, last: bool) -> Result<bool, Stop>;
    /// Writes all entries that were taken, in order, each once; gives how many there are. There are none afterwards.
    ///
    /// # Safety
    /// The descriptors are of arrays of the described types, own their memory, and nobody else uses them.
    unsafe fn emit(&mut self, packing: &Packing, target: &Target<'_>) -> Result<usize, Stop>;
}

/// The engine for keys `K`, values `T`, combined by `F`.
pub(super) struct Machine<K: Key, T: Copy, F> {
    fold: F,
    shelves: Shelves<K, T>,
    flat: Flat<T>,
    combiner: Combiner<K, T>,
    /// The keys of entries that a policy puts in order, and that order.
    keys: Room<K>,
    ids: Room<u32>,
    /// How many entries went to places of their own since that was asked last.
    placed: u64,
}

impl<K: Key, T: Copy + Send + 'static, F: Fold<T>> Machine<K, T, F> {
    pub(super) fn new(fold: F) -> Machine<K, T, F> {
        Machine {
            fold,
            shelves: Shelves::new(),
            flat: Flat::new(),
            combiner: Combiner::new(),
            keys: Room::new(),
            ids: Room::new(),
            placed: 0,
        }
    }

    /// Takes entries in the order that their policy says, if it says one that is one.
    ///
    /// # Safety
    /// As for [`Engine::absorb`].
    unsafe fn absorb_ordered(&mut self, batch: &mut Batch<'_>, packing: &Packing) -> Result<bool, Stop> {
        let count = batch.count;
        self.ids.make(count)?;
        // SAFETY: there is room for `count` numbers, which are written here.
        let ids = unsafe {
            self.ids.pointer().write_bytes(0, count);
            self.ids.written_mut(count)
        };
        let entries = Entries { lanes: batch.lanes, sizes: &packing.sizes, count, full: false };
        if !batch.policy.sort(&entries, ids) {
            return Ok(false);
        }
        self.keys.make(count)?;
        let to = self.keys.pointer();
        // SAFETY: promised by the caller; there is room for `count` keys.
        unsafe {
            packing.pack::<K>(batch.lanes, count, |start, keys| {
                to.add(start).copy_from_nonoverlapping(keys.as_ptr(), keys.len());
                Ok(())
            })?;
        }
        // SAFETY: all of them were just written.
        let keys = unsafe { self.keys.written(count) };
        let mut before: Option<(K, u32)> = None;
        for id in ids.iter() {
            // In strictly ascending order, as many as there are: so each is there once.
            let Some(key) = keys.get(*id as usize) else { return Ok(false) };
            if before.is_some_and(|before| before >= (*key, *id)) {
                return Ok(false);
            }
            before = Some((*key, *id));
        }
        let values = batch.values.cast::<T>();
        for id in ids.iter() {
            // SAFETY: promised by the caller; the numbers are those of entries.
            self.shelves.append(keys[*id as usize], unsafe { values.add(*id as usize).read() })?;
        }
        Ok(true)
    }
}

/// Whether entries are in order, and all different.
///
/// # Safety
/// As for [`Engine::absorb`].
unsafe fn in_order<K: Key>(batch: &Batch<'_>, packing: &Packing) -> Result<bool, Stop> {
    let (mut before, mut done): (Option<K>, usize) = (None, 0);
    // Packed a few at a time, since most are out of order soon.
    while done < batch.count {
        let mut ordered = true;
        let len = (batch.count - done).min(if done == 0 { 16 } else { 4096 });
        // SAFETY: promised by the caller.
        unsafe {
            packing.pack_part::<K>(batch.lanes, done, len, |_, keys| {
                for key in keys {
                    ordered &= before.is_none_or(|before| before < *key);
                    before = Some(*key);
                }
                Ok(())
            })?;
        }
        if !ordered {
            return Ok(false);
        }
        done += len;
    }
    Ok(true)
}

impl<K: Key, T: Copy + Send + 'static, F: Fold<T>> Engine for Machine<K, T, F> {
    fn key_bits(&self) -> u32 {
        K::BITS
    }

    fn reset(&mut self) {
        self.shelves.reset();
        self.flat.reset();
    }

    fn take_combined(&mut self) -> u64 {
        std::mem::take(&mut self.placed) + self.shelves.take_combined()
    }

    fn bytes(&self) -> [u64; 2] {
        let sort = self.combiner.bytes() + self.keys.bytes() + self.ids.bytes();
        [self.shelves.bytes() + self.flat.bytes(), sort]
    }

    unsafe fn absorb(&mut self, batch: &mut Batch<'_>, packing: &Packing, last: bool) -> Result<bool, Stop> {
        let (count, fold) = (batch.count, self.fold);
        let waiting = if self.flat.used() || self.shelves.split() { 0 } else { self.shelves.len() };
        let alone = waiting == 0 && !self.flat.used() && !self.shelves.split();
        // SAFETY: promised by the caller.
        unsafe {
            if alone && last && in_order::<K>(batch, packing)? {
                return Ok(true);
            }
            let much = last || waiting + count > SPLIT;
            if !self.flat.used() && !self.shelves.split() && much && flat::suits(packing.total, waiting + count) {
                self.flat.open(fold, packing.total)?;
                self.flat.take(fold, self.shelves.all());
                self.shelves.reset();
            }
            let entries = (batch.lanes, batch.values.cast::<T>(), count);
            if self.flat.used() {
                self.placed += count as u64;
                self.flat.put::<K, F>(fold, packing, entries)?;
            } else if !(alone && last && self.absorb_ordered(batch, packing)?) {
                self.shelves.put(&mut self.combiner, fold, packing, entries)?;
            }
        }
        Ok(false)
    }

    unsafe fn emit(&mut self, packing: &Packing, target: &Target<'_>) -> Result<usize, Stop> {
        let mut lanes = Vec::with_capacity(target.elems.len());
        // SAFETY: promised by the caller; room is made for what is written.
        unsafe {
            if self.flat.used() {
                target.make(0, self.flat.most())?;
                let values = target.find(&mut lanes);
                return Ok(self.flat.empty::<K, F>(self.fold, packing, &lanes, values.cast()));
            }
            let room = |used: usize, more: usize| {
                target.make(used, more)?;
                let mut lanes = Vec::new();
                Ok(target.find(&mut lanes).cast::<T>().add(used))
            };
            self.shelves.empty(&mut self.combiner, self.fold, packing, room, |used, keys| {
                target.find(&mut lanes);
                packing.unpack(keys, &lanes, used);
            })
        }
    }
}
