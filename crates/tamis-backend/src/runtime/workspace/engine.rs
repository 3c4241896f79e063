//! Merge engine: flushed entries in radix partitions or a dense accumulator, and their sorted
//! output, for one key and value type.

use super::WorkspaceError;
use super::combine::Combiner;
use super::dense_accumulator::{self, DenseAccumulator};
use super::merge_op::Fold;
use super::packed_key::{Packing, SortKey};
use super::partitions::{Partitions, SPLIT_ENTRIES};
use super::policy::{AccumulationView, CoordArray, InsertionPolicy};
use crate::runtime::memory::{self, RawBuffer};
use crate::runtime::scratch::{OutOfMemory, ScratchVec};
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// The entries of an accumulation array, and the policy that found their positions.
pub(super) struct Batch<'a> {
    pub(super) coord_arrays: &'a [CoordArray],
    pub(super) values: *const u8,
    pub(super) count: usize,
    pub(super) policy: &'a mut dyn InsertionPolicy,
}

/// The kernel's output arrays: the coordinates of each dimension, then the values.
pub(super) struct OutputArrays<'a> {
    pub(super) buffers: &'a [*mut RawBuffer],
    pub(super) elems: &'a [Elem],
}

impl OutputArrays<'_> {
    /// Reserves `more` elements after the first `used`, which are kept.
    ///
    /// # Safety
    /// The descriptors are of arrays of the described types, own their memory, and are not aliased.
    unsafe fn reserve(&self, used: usize, more: usize) -> Result<(), OutOfMemory> {
        let len = (used + more) as u64;
        for (buffer, elem) in self.buffers.iter().zip(self.elems) {
            // SAFETY: guaranteed by the caller.
            let raw = unsafe { &mut **buffer };
            let previous = raw.len;
            if previous < len {
                // Only the used elements are copied.
                raw.len = used as u64;
                if !memory::grow(raw, len, elem.size(), memory::align(*elem), None) {
                    raw.len = previous;
                    return Err(OutOfMemory { elements: len });
                }
            }
        }
        Ok(())
    }

    /// Returns the current addresses: of the coordinate arrays, and of the values.
    ///
    /// # Safety
    /// As for [`OutputArrays::reserve`].
    unsafe fn locate(&self, coord_arrays: &mut Vec<CoordArray>) -> *mut u8 {
        coord_arrays.clear();
        let mut values = std::ptr::null_mut();
        for (buffer, elem) in self.buffers.iter().zip(self.elems) {
            // SAFETY: guaranteed by the caller.
            let data = unsafe { (**buffer).data };
            match elem {
                Elem::Index(Width::U32) => coord_arrays.push(CoordArray::U32(data.cast())),
                Elem::Index(_) => coord_arrays.push(CoordArray::U64(data.cast())),
                Elem::Value(_) => values = data,
            }
        }
        values
    }
}

/// Prefetches memory for a read.
#[inline(always)]
pub(super) fn prefetch<T>(_address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_address.cast())
    };
}

/// Prefetches memory for a write.
#[inline(always)]
pub(super) fn prefetch_to_write<T>(_address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never fails, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(_address.cast())
    };
}

/// A type-erased merge engine.
pub(super) trait MergeEngine: Send {
    /// The width of its keys in bits.
    fn key_bits(&self) -> u32;
    /// Removes all entries.
    fn reset(&mut self);
    /// Returns and resets the number of entries combined since the last call.
    fn take_combined(&mut self) -> u64;
    /// The allocated bytes: of entries, and of scratch memory for combining.
    fn bytes(&self) -> [u64; 2];
    /// Absorbs entries. `last` marks the final batch. Returns `true` if this batch is the only one,
    /// in key order and without duplicates: then the entries stay in the accumulation array, and no
    /// output is needed.
    ///
    /// # Safety
    /// The coordinate arrays and the values have `count` elements.
    unsafe fn absorb(&mut self, batch: &mut Batch<'_>, packing: &Packing, last: bool) -> Result<bool, WorkspaceError>;
    /// Writes all absorbed entries in key order, each key once; returns their number. The engine is
    /// empty afterwards.
    ///
    /// # Safety
    /// The descriptors are of arrays of the described types, own their memory, and are not aliased.
    unsafe fn emit(&mut self, packing: &Packing, target: &OutputArrays<'_>) -> Result<usize, WorkspaceError>;
}

/// The engine for keys `K` and values `T`, combined by `F`.
pub(super) struct TypedEngine<K: SortKey, T: Copy, F> {
    fold: F,
    partitions: Partitions<K, T>,
    dense: DenseAccumulator<T>,
    combiner: Combiner<K, T>,
    /// The keys of entries that a policy sorts, and the order of their ids.
    keys: ScratchVec<K>,
    ids: ScratchVec<u32>,
    /// The number of entries folded into the dense accumulator since the last report.
    folded_densely: u64,
}

impl<K: SortKey, T: Copy + Send + 'static, F: Fold<T>> TypedEngine<K, T, F> {
    pub(super) fn new(fold: F) -> TypedEngine<K, T, F> {
        TypedEngine {
            fold,
            partitions: Partitions::new(),
            dense: DenseAccumulator::new(),
            combiner: Combiner::new(),
            keys: ScratchVec::new(),
            ids: ScratchVec::new(),
            folded_densely: 0,
        }
    }

    /// Absorbs entries in the order that their policy gives, if it is a valid order.
    ///
    /// # Safety
    /// As for [`MergeEngine::absorb`].
    unsafe fn absorb_ordered(&mut self, batch: &mut Batch<'_>, packing: &Packing) -> Result<bool, WorkspaceError> {
        let count = batch.count;
        self.ids.reserve(count)?;
        // SAFETY: the vector has space for `count` ids, which are initialised here.
        let ids = unsafe {
            self.ids.as_ptr().write_bytes(0, count);
            self.ids.initialized_mut(count)
        };
        let entries = AccumulationView { coord_arrays: batch.coord_arrays, sizes: &packing.sizes, count, full: false };
        if !batch.policy.sort(&entries, ids) {
            return Ok(false);
        }
        self.keys.reserve(count)?;
        let to = self.keys.as_ptr();
        // SAFETY: guaranteed by the caller; the vector has space for `count` keys.
        unsafe {
            packing.pack::<K>(batch.coord_arrays, count, |start, keys| {
                to.add(start).copy_from_nonoverlapping(keys.as_ptr(), keys.len());
                Ok(())
            })?;
        }
        // SAFETY: all keys were just written.
        let keys = unsafe { self.keys.initialized(count) };
        let mut previous: Option<(K, u32)> = None;
        for id in ids.iter() {
            // A strictly ascending sequence of `count` ids contains each of them once.
            let Some(key) = keys.get(*id as usize) else { return Ok(false) };
            if previous.is_some_and(|previous| previous >= (*key, *id)) {
                return Ok(false);
            }
            previous = Some((*key, *id));
        }
        let values = batch.values.cast::<T>();
        for id in ids.iter() {
            // SAFETY: guaranteed by the caller; the ids are those of entries.
            self.partitions.append(keys[*id as usize], unsafe { values.add(*id as usize).read() })?;
        }
        Ok(true)
    }
}

/// True if entries are in key order without duplicates.
///
/// # Safety
/// As for [`MergeEngine::absorb`].
unsafe fn is_sorted_unique<K: SortKey>(batch: &Batch<'_>, packing: &Packing) -> Result<bool, WorkspaceError> {
    let (mut previous, mut done): (Option<K>, usize) = (None, 0);
    // A short block first: most batches are out of order early.
    while done < batch.count {
        let mut ordered = true;
        let len = (batch.count - done).min(if done == 0 { 16 } else { 4096 });
        // SAFETY: guaranteed by the caller.
        unsafe {
            packing.pack_range::<K>(batch.coord_arrays, done, len, |_, keys| {
                for key in keys {
                    ordered &= previous.is_none_or(|previous| previous < *key);
                    previous = Some(*key);
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

impl<K: SortKey, T: Copy + Send + 'static, F: Fold<T>> MergeEngine for TypedEngine<K, T, F> {
    fn key_bits(&self) -> u32 {
        K::BITS
    }

    fn reset(&mut self) {
        self.partitions.reset();
        self.dense.reset();
    }

    fn take_combined(&mut self) -> u64 {
        std::mem::take(&mut self.folded_densely) + self.partitions.take_combined()
    }

    fn bytes(&self) -> [u64; 2] {
        let sort = self.combiner.bytes() + self.keys.bytes() + self.ids.bytes();
        [self.partitions.bytes() + self.dense.bytes(), sort]
    }

    unsafe fn absorb(&mut self, batch: &mut Batch<'_>, packing: &Packing, last: bool) -> Result<bool, WorkspaceError> {
        let (count, fold) = (batch.count, self.fold);
        let pending = if self.dense.in_use() || self.partitions.is_split() { 0 } else { self.partitions.len() };
        let is_empty = pending == 0 && !self.dense.in_use() && !self.partitions.is_split();
        // SAFETY: guaranteed by the caller.
        unsafe {
            if is_empty && last && is_sorted_unique::<K>(batch, packing)? {
                return Ok(true);
            }
            let worth_deciding = last || pending + count > SPLIT_ENTRIES;
            if !self.dense.in_use()
                && !self.partitions.is_split()
                && worth_deciding
                && dense_accumulator::suits(packing.total, pending + count)
            {
                self.dense.open(fold, packing.total)?;
                self.dense.fold_runs(fold, self.partitions.all());
                self.partitions.reset();
            }
            let entries = (batch.coord_arrays, batch.values.cast::<T>(), count);
            if self.dense.in_use() {
                self.folded_densely += count as u64;
                self.dense.fold_batch::<K, F>(fold, packing, entries)?;
            } else if !(is_empty && last && self.absorb_ordered(batch, packing)?) {
                self.partitions.append_batch(&mut self.combiner, fold, packing, entries)?;
            }
        }
        Ok(false)
    }

    unsafe fn emit(&mut self, packing: &Packing, target: &OutputArrays<'_>) -> Result<usize, WorkspaceError> {
        let mut coord_arrays = Vec::with_capacity(target.elems.len());
        // SAFETY: guaranteed by the caller; space is reserved for the output.
        unsafe {
            if self.dense.in_use() {
                target.reserve(0, self.dense.max_entries())?;
                let values = target.locate(&mut coord_arrays);
                return Ok(self.dense.drain::<K, F>(self.fold, packing, &coord_arrays, values.cast()));
            }
            let reserve = |used: usize, more: usize| {
                target.reserve(used, more)?;
                let mut coord_arrays = Vec::new();
                Ok(target.locate(&mut coord_arrays).cast::<T>().add(used))
            };
            self.partitions.drain(&mut self.combiner, self.fold, packing, reserve, |used, keys| {
                target.locate(&mut coord_arrays);
                packing.unpack(keys, &coord_arrays, used);
            })
        }
    }
}
