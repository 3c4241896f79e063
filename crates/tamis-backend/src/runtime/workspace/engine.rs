//! Sorting and merging: the accumulation array's entries in order, and the all-array, ordered and without duplicates, twice.

use super::Stop;
use super::key::{Key, Packing, Pair};
use super::merge::Fold;
use super::policy::{Entries, Lane, Policy};
use crate::runtime::memory::{self, RawBuffer, Storage};
use crate::runtime::sort::ids::{self, Item};
use crate::runtime::typed::{Room, Shortage};
use std::marker::PhantomData;
use tamis_ir::kernel::Elem;

/// Entries of an accumulation array, and who found their places.
pub(super) struct Batch<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) values: *const u8,
    pub(super) count: usize,
    pub(super) policy: &'a mut dyn Policy,
}

/// The all-array and the memory to sort in, for some type of keys and values.
pub(super) trait Engine: Send {
    /// How many bits its keys have.
    fn key_bits(&self) -> u32;
    /// Forgets all entries.
    fn reset(&mut self);
    /// How many entries the all-array has.
    fn merged(&self) -> usize;
    /// How many bytes are held: for the all-array, and for sorting.
    fn bytes(&self) -> [u64; 2];
    /// Puts entries in order. `true`: they are in order, all different, and there are no others, so that nothing is to do.
    ///
    /// # Safety
    /// The lanes and the values have `count` elements.
    unsafe fn order(&mut self, batch: &mut Batch<'_>, packing: &Packing) -> Result<bool, Stop>;
    /// Merges the ordered entries into the all-array.
    ///
    /// # Safety
    /// `values` are those of the entries that were ordered last, which have not been merged.
    unsafe fn absorb(&mut self, values: *const u8) -> Result<(), Stop>;
    /// Swaps the values of the all-array with an array of the kernel, and writes its coordinates; the all-array is empty then.
    ///
    /// # Safety
    /// `values` owns its memory, or has none; the lanes have room for as many elements as there are merged entries.
    unsafe fn emit(&mut self, packing: &Packing, lanes: &[Lane], values: &mut RawBuffer);
}

/// An ordered list without duplicates.
struct Run<K: Copy> {
    keys: Room<K>,
    values: Storage,
}

impl<K: Copy> Run<K> {
    /// Room for so many entries; those that were there are lost.
    fn make(&mut self, len: usize, elem: Elem) -> Result<(), Shortage> {
        self.keys.make(len)?;
        let mut raw = self.values.raw();
        if raw.len < len as u64 {
            // Nothing of it is needed, so that nothing is copied.
            memory::release(&mut raw, elem.size(), memory::align(elem));
            let done = memory::grow(&mut raw, len as u64, elem.size(), memory::align(elem), None);
            // SAFETY: the descriptor is this storage's own.
            unsafe { self.values.set_raw(raw) };
            if !done {
                return Err(Shortage { elements: len as u64 });
            }
        }
        Ok(())
    }
}

/// Values are read in the order of their keys, which is none of the memory: so many entries ahead they are asked for.
const AHEAD: usize = 24;

/// Asks for memory that will be read soon.
#[inline(always)]
fn prefetch<T>(_place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_place.cast())
    };
}

/// How the ordered items are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordered {
    /// Key and number in one word, the number in so many low bits.
    Fused(u32),
    Pairs,
}

/// The engine for keys `K`, values `T`, combined by `F`.
pub(super) struct Machine<K: Key, T, F> {
    fold: F,
    elem: Elem,
    fused: [Room<u64>; 2],
    pairs: [Room<Pair<K>>; 2],
    ids: Room<u32>,
    /// The all-array and its other half.
    all: Run<K>,
    other: Run<K>,
    merged: usize,
    /// What was ordered last, and how many.
    ordered: Ordered,
    count: usize,
    values: PhantomData<T>,
}

/// What one pass over packed keys finds out.
struct Survey<I> {
    previous: Option<I>,
    differing: u128,
    disorder: bool,
    equal: bool,
}

impl<K: Key, T: Copy + Send + 'static, F: Fold<T>> Machine<K, T, F> {
    pub(super) fn new(elem: Elem, fold: F) -> Machine<K, T, F> {
        let run = || Run { keys: Room::new(), values: Storage::new(elem) };
        Machine {
            fold,
            elem,
            fused: [Room::new(), Room::new()],
            pairs: [Room::new(), Room::new()],
            ids: Room::new(),
            all: run(),
            other: run(),
            merged: 0,
            ordered: Ordered::Pairs,
            count: 0,
            values: PhantomData,
        }
    }

    /// Packs keys into one word each, with their numbers.
    ///
    /// # Safety
    /// As for [`Engine::order`].
    unsafe fn order_fused(&mut self, batch: &mut Batch<'_>, packing: &Packing, bits: u32) -> Result<bool, Stop> {
        let [items, spare] = &mut self.fused;
        items.make(batch.count)?;
        let to = items.pointer();
        let mut survey = Survey { previous: None, differing: 0, disorder: false, equal: false };
        // SAFETY: promised by the caller; there is room for `count` items.
        unsafe {
            packing.pack::<K>(batch.lanes, batch.count, |start, keys| {
                // The very first is compared with itself, and found equal once too often.
                let mut before = survey.previous.unwrap_or(keys[0].fuse(bits, 0));
                let mut equal = usize::from(survey.previous.is_none()).wrapping_neg();
                let (mut differing, mut disorder) = (0, false);
                for (k, key) in keys.iter().enumerate() {
                    let item = key.fuse(bits, (start + k) as u32);
                    to.add(start + k).write(item);
                    differing |= before ^ item;
                    // The number of a later item is larger, so items are out of order if their keys are.
                    disorder |= before > item;
                    equal = equal.wrapping_add(usize::from((before ^ item) >> bits == 0));
                    before = item;
                }
                let equal = equal > 0;
                survey.previous = Some(before);
                survey.differing |= u128::from(differing);
                survey.disorder |= disorder;
                survey.equal |= equal;
            })?;
        }
        self.ordered = Ordered::Fused(bits);
        if survey.disorder {
            self.ids.make(batch.count)?;
            if !by_policy(batch, packing, &mut self.ids, items, spare)? {
                let differing = survey.differing >> bits << bits;
                // SAFETY: all items are written, and are in the order of their numbers.
                unsafe { ids::sort(items, spare, batch.count, Some(differing))? };
            }
        }
        Ok(!survey.disorder && !survey.equal)
    }

    /// Packs keys beside their numbers.
    ///
    /// # Safety
    /// As for [`Engine::order`].
    unsafe fn order_pairs(&mut self, batch: &mut Batch<'_>, packing: &Packing) -> Result<bool, Stop> {
        let [items, spare] = &mut self.pairs;
        items.make(batch.count)?;
        let to = items.pointer();
        let mut survey: Survey<K> = Survey { previous: None, differing: 0, disorder: false, equal: false };
        // SAFETY: promised by the caller; there is room for `count` items.
        unsafe {
            packing.pack::<K>(batch.lanes, batch.count, |start, keys| {
                for (k, key) in keys.iter().enumerate() {
                    to.add(start + k).write(Pair { key: *key, id: (start + k) as u32 });
                    if let Some(before) = survey.previous {
                        survey.differing |= before.differing(*key);
                        survey.disorder |= before > *key;
                        survey.equal |= before == *key;
                    }
                    survey.previous = Some(*key);
                }
            })?;
        }
        self.ordered = Ordered::Pairs;
        if survey.disorder {
            self.ids.make(batch.count)?;
            if !by_policy(batch, packing, &mut self.ids, items, spare)? {
                // SAFETY: all items are written, and are in the order of their numbers.
                unsafe { ids::sort(items, spare, batch.count, K::DIGITS.then_some(survey.differing))? };
            }
        }
        Ok(!survey.disorder && !survey.equal)
    }

    /// Merges the ordered items, read by `item`, with the all-array into its other half.
    ///
    /// # Safety
    /// There are `count` items, whose numbers are those of elements of `values`; the other half has room for all entries.
    #[inline(always)]
    unsafe fn merge(&mut self, values: *const T, item: impl Fn(usize) -> (K, usize)) {
        let fold = self.fold;
        let (all_keys, all_values) = (self.all.keys.pointer(), self.all.values.raw().data.cast::<T>());
        let (keys, out) = (self.other.keys.pointer(), self.other.values.raw().data.cast::<T>());
        let (merged, count) = (self.merged, self.count);
        // SAFETY: every index is below the number of entries it is of, and what is written last is at most the sum of
        // both; all of that is promised by the caller.
        unsafe {
            let (mut a, mut b) = (0, 0);
            let mut last: usize;
            let (mut key, mut value);
            if merged > 0 && (count == 0 || all_keys.read() <= item(0).0) {
                (key, value, a) = (all_keys.read(), all_values.read(), 1);
            } else if count > 0 {
                let (first, id) = item(0);
                (key, value, b) = (first, values.add(id).read(), 1);
            } else {
                self.merged = 0;
                return;
            }
            last = 0;
            // The entry that is being made is written each time, and left behind when the next one has another key: no
            // branch depends on that.
            macro_rules! next {
                ($key:expr, $value:expr) => {{
                    let (next_key, next): (K, T) = ($key, $value);
                    keys.add(last).write(key);
                    let same = next_key == key;
                    if F::CHEAP {
                        out.add(last).write(value);
                        let folded = fold.fold(value, next);
                        value = if same { folded } else { next };
                        last += usize::from(!same);
                    } else if same {
                        value = fold.fold(value, next);
                    } else {
                        out.add(last).write(value);
                        value = next;
                        last += 1;
                    }
                    key = next_key;
                }};
            }
            while a < merged && b < count {
                let (key_a, (key_b, id)) = (all_keys.add(a).read(), item(b));
                let first = key_a <= key_b;
                prefetch(values.wrapping_add(item((b + AHEAD).min(count - 1)).1));
                let (from_all, from_batch) = (all_values.add(a).read(), values.add(id).read());
                a += usize::from(first);
                b += usize::from(!first);
                next!(if first { key_a } else { key_b }, if first { from_all } else { from_batch });
            }
            while b < count {
                let (next_key, id) = item(b);
                prefetch(values.wrapping_add(item((b + AHEAD).min(count - 1)).1));
                b += 1;
                next!(next_key, values.add(id).read());
            }
            // What is left of the all-array has no duplicates, but its first may be equal to the last of the batch: no,
            // since of equal keys that of the all-array goes first.
            keys.add(last).write(key);
            out.add(last).write(value);
            last += 1;
            let rest = merged - a;
            if rest > 0 {
                keys.add(last).copy_from_nonoverlapping(all_keys.add(a), rest);
                out.add(last).copy_from_nonoverlapping(all_values.add(a), rest);
            }
            self.merged = last + rest;
        }
        std::mem::swap(&mut self.all, &mut self.other);
    }
}

/// Puts items into the order that the policy says, if it says one that is one.
fn by_policy<I: Item>(
    batch: &mut Batch<'_>,
    packing: &Packing,
    ids: &mut Room<u32>,
    items: &mut Room<I>,
    spare: &mut Room<I>,
) -> Result<bool, Stop> {
    let count = batch.count;
    // SAFETY: there is room for `count` numbers, which are written here.
    let ids = unsafe {
        ids.pointer().write_bytes(0, count);
        ids.written_mut(count)
    };
    let entries = Entries { lanes: batch.lanes, sizes: &packing.sizes, count, full: false };
    if !batch.policy.sort(&entries, ids) {
        return Ok(false);
    }
    spare.make(count)?;
    // SAFETY: all items are written.
    let from = unsafe { items.written(count) };
    let mut before: Option<I> = None;
    for (k, id) in ids.iter().enumerate() {
        // In strictly ascending order, as many as there are: so each is there once.
        let Some(item) = from.get(*id as usize) else { return Ok(false) };
        if before.is_some_and(|before| !before.before(item)) {
            return Ok(false);
        }
        // SAFETY: there is room for `count` items.
        unsafe { spare.pointer().add(k).write(*item) };
        before = Some(*item);
    }
    std::mem::swap(items, spare);
    Ok(true)
}

impl<K: Key, T: Copy + Send + 'static, F: Fold<T>> Engine for Machine<K, T, F> {
    fn key_bits(&self) -> u32 {
        K::BITS
    }

    fn reset(&mut self) {
        (self.merged, self.count) = (0, 0);
    }

    fn merged(&self) -> usize {
        self.merged
    }

    fn bytes(&self) -> [u64; 2] {
        let run = |run: &Run<K>| run.keys.bytes() + run.values.raw().cap * self.elem.size() as u64;
        let fused: u64 = self.fused.iter().map(Room::bytes).sum();
        let pairs: u64 = self.pairs.iter().map(Room::bytes).sum();
        [run(&self.all) + run(&self.other), fused + pairs + self.ids.bytes()]
    }

    unsafe fn order(&mut self, batch: &mut Batch<'_>, packing: &Packing) -> Result<bool, Stop> {
        self.count = batch.count;
        if batch.count == 0 {
            return Ok(self.merged == 0);
        }
        let bits = usize::BITS - (batch.count - 1).leading_zeros();
        // SAFETY: promised by the caller.
        let done = unsafe {
            match K::fuses(packing.total, bits) {
                true => self.order_fused(batch, packing, bits),
                false => self.order_pairs(batch, packing),
            }
        };
        Ok(done? && self.merged == 0)
    }

    unsafe fn absorb(&mut self, values: *const u8) -> Result<(), Stop> {
        self.other.make(self.merged + self.count, self.elem)?;
        let values = values.cast::<T>();
        // SAFETY: the items are those of the entries that were ordered last.
        unsafe {
            match self.ordered {
                Ordered::Fused(bits) => {
                    let (items, mask) = (self.fused[0].pointer(), (1u64 << bits) - 1);
                    self.merge(values, |k| {
                        let item = items.add(k).read();
                        (K::split(item, bits), (item & mask) as usize)
                    });
                }
                Ordered::Pairs => {
                    let items = self.pairs[0].pointer();
                    self.merge(values, |k| {
                        let item = items.add(k).read();
                        (item.key, item.id as usize)
                    });
                }
            }
        }
        self.count = 0;
        Ok(())
    }

    unsafe fn emit(&mut self, packing: &Packing, lanes: &[Lane], values: &mut RawBuffer) {
        let own = self.all.values.raw();
        // SAFETY: both own their memory, or have none, of elements of the same type; as many keys are written as there
        // are merged entries, and the lanes have room for them.
        unsafe {
            self.all.values.set_raw(*values);
            *values = own;
            packing.unpack(self.all.keys.written(self.merged), lanes);
        }
        self.merged = 0;
    }
}
