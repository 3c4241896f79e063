//! Insert-sort-merge workspaces: entries are inserted in any order, and finalizing yields them in
//! coordinate order, each once.
//!
//! Entries are collected in an *accumulation array* in the kernel's own buffers: one array of
//! coordinates per dimension, and one of values. The [`InsertionPolicy`] determines how an
//! insertion finds an existing entry: `coord`, `hash`, `bucket`, `map` or `vector`.
//!
//! A full accumulation array is *flushed*. The coordinates are packed into keys (`packed_key`). The
//! entries go to radix partitions by the highest bits of their keys (`partitions`, in
//! `block_lists`), or for small key spaces into a `dense_accumulator`. A partition that has grown
//! to a few times its combined size is combined again (`combine`): radix sorted (`sort::ids`), or
//! folded in a `direct_table`, always in insertion order and with specialised loops per operator
//! (`merge_op`). Results therefore do not depend on the capacity of the accumulation array, which
//! only needs to fit the cache. All of that is an `engine`, and can run on a worker thread
//! (`pipeline`). Compiled code calls a workspace through `abi`.

mod abi;
mod block_lists;
mod bucket;
mod combine;
mod coord;
mod dense_accumulator;
mod direct_table;
mod engine;
mod hash;
mod map_vector;
mod merge_op;
mod owned;
mod packed_key;
mod partitions;
mod pipeline;
mod policy;
mod spec;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_combining;

pub(super) use abi::SYMBOLS;
pub use merge_op::MergeOp;
pub use owned::OwnedWorkspace;
pub use policy::{AccumulationView, InsertionPolicy, Lookup, PolicyConstructor, appends, policies, register};
pub use spec::{PolicyViolation, WorkspaceError, WorkspaceReport, WorkspaceSpec};

use super::memory::{self, RawBuffer, RawStorage, element_bytes};
use super::scratch::OutOfMemory;
use crate::failure::{RawFailure, Status};
use engine::{Batch, OutputArrays};
use packed_key::Packing;
use pipeline::{FlushJob, MergeState, Pipeline, SpareArrays};
use policy::CoordArray;
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// Default number of entries after which an accumulation array without a capacity is flushed: it
/// fits the L1 cache.
pub(super) const DEFAULT_FLUSH_THRESHOLD: usize = 1 << 12;

/// Minimum flush threshold with a worker thread: smaller batches cost more to hand over than they
/// save.
const MIN_PIPELINED_ENTRIES: usize = 1 << 16;

/// Initial capacity of an accumulation array.
const INITIAL_CAPACITY: usize = 64;

/// Maximum number of entries: entry ids have 32 bits.
const MAX_ENTRIES: usize = u32::MAX as usize - 1;

/// A workspace in use by a kernel.
///
/// Compiled code reads and writes the first two fields, and appends inline where the policy always
/// appends ([`WorkspaceSpec::appends`]). While `count < capacity`, it writes the coordinates,
/// `init` and then the value at `count`, and increments it. Otherwise it first calls
/// `tamis_workspace_reserve`. All arrays have at least `capacity` elements.
///
/// ```
/// use tamis_backend::RawBuffer;
/// use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), Some(MergeOp::Op(Op::Add)));
/// let mut arrays = [RawBuffer::empty(); 2];
/// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
/// let workspace = unsafe { RuntimeWorkspace::new(&spec, arrays.as_mut_ptr(), &[0, 1]) }.unwrap();
/// assert_eq!(workspace.report().inserts, 0);
/// ```
#[repr(C)]
pub struct RuntimeWorkspace {
    /// The number of entries in the accumulation array.
    pub(super) count: u64,
    /// The number of entries up to which insertions need no call of `reserve`.
    pub(super) capacity: u64,
    /// The kernel's buffer descriptors: those of the coordinates, then that of the values.
    buffers: Vec<*mut RawBuffer>,
    elems: Vec<Elem>,
    /// Their buffer ids, for failures.
    buffer_ids: Vec<usize>,
    /// The current addresses of the coordinate arrays.
    coord_arrays: Vec<CoordArray>,
    init: [u8; 16],
    spec: WorkspaceSpec,
    constructor: PolicyConstructor,
    policy: Box<dyn InsertionPolicy>,
    appends: bool,
    flush_threshold: usize,
    built_in: bool,
    sizes: Vec<u64>,
    /// The number of finalized entries in the kernel's arrays if nothing was inserted since;
    /// `coord_arrays` is empty then.
    finalized: Option<u64>,
    /// `None` while the worker thread has it.
    merge_state: Option<Box<MergeState>>,
    spare: Option<SpareArrays>,
    pipeline: Pipeline,
    report: WorkspaceReport,
}

impl std::fmt::Debug for RuntimeWorkspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace")
            .field("spec", &self.spec)
            .field("count", &self.count)
            .field("capacity", &self.capacity)
            .field("report", &self.report)
            .finish()
    }
}

impl RuntimeWorkspace {
    /// Creates a workspace on the kernel's arrays: those of the coordinates, then that of the
    /// values, as ids in a table of descriptors. Returns the reason if there is no such policy or
    /// operator.
    ///
    /// Nothing is allocated before the first entry.
    ///
    /// # Safety
    /// The descriptors are distinct, stay at their addresses while the workspace is used, and are
    /// of arrays of the specified types. Only the workspace and the code that inserts into it use
    /// them. Their memory is as [`RawBuffer`] describes.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// # let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), sum);
    /// let mut arrays = [RawBuffer::empty(); 2];
    /// let arrays = arrays.as_mut_ptr();
    /// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
    /// let workspace = unsafe { RuntimeWorkspace::new(&spec, arrays, &[0, 1]) }.unwrap();
    /// assert_eq!(workspace.report().inserts, 0);
    /// ```
    pub unsafe fn new(
        spec: &WorkspaceSpec,
        buffers: *mut RawBuffer,
        buffer_ids: &[usize],
    ) -> Result<RuntimeWorkspace, String> {
        let dimensions = spec.widths.len();
        if buffer_ids.len() != dimensions + 1 {
            return Err(format!("{dimensions} dimensions need {} arrays, not {}", dimensions + 1, buffer_ids.len()));
        }
        if spec.widths.iter().any(|width| width.size() < 4) {
            return Err("coordinates of workspaces are `u32` or `u64`".into());
        }
        if spec.init.dtype() != spec.dtype {
            return Err(format!("the initial value is {}, not {}", spec.dtype, spec.init.dtype()));
        }
        let name = spec.effective_policy();
        let (constructor, built_in) = policy::find(name).ok_or_else(|| format!("unknown policy `{name}`"))?;
        let policy = constructor();
        // A policy that finds entries on insertion folds values before flushes, so the point of a
        // flush would change sums.
        let pipelined = spec.pipelined && policy.appends();
        let engine = merge_op::engine(0, spec.dtype, spec.merge, spec.init);
        let engine = engine.ok_or_else(|| format!("two {} cannot be merged by {:?}", spec.dtype, spec.merge))?;
        let mut elems: Vec<Elem> = spec.widths.iter().map(|width| Elem::Index(*width)).collect();
        elems.push(Elem::Value(spec.dtype));
        let (init, _) = element_bytes(Elem::Value(spec.dtype), spec.init);
        Ok(RuntimeWorkspace {
            count: 0,
            capacity: 0,
            // SAFETY: guaranteed by the caller.
            buffers: buffer_ids.iter().map(|k| unsafe { buffers.add(*k) }).collect(),
            elems,
            buffer_ids: buffer_ids.to_vec(),
            coord_arrays: Vec::new(),
            init,
            spec: spec.clone(),
            constructor,
            appends: policy.appends(),
            flush_threshold: policy.flush_threshold().max(if pipelined { MIN_PIPELINED_ENTRIES } else { 0 }),
            policy,
            built_in,
            sizes: Vec::new(),
            finalized: None,
            merge_state: Some(Box::new(MergeState { engine, packing: Packing::default() })),
            spare: None,
            pipeline: Pipeline::default(),
            report: WorkspaceReport::default(),
        })
    }

    /// The counters and memory use so far.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// # let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), sum);
    /// let mut arrays = [RawBuffer::empty(); 2];
    /// let arrays = arrays.as_mut_ptr();
    /// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
    /// let workspace = unsafe { RuntimeWorkspace::new(&spec, arrays, &[0, 1]) }.unwrap();
    /// assert_eq!(workspace.report().peak_bytes, 0, "nothing is allocated yet");
    /// ```
    pub fn report(&self) -> WorkspaceReport {
        self.report
    }

    /// Removes all entries, and sets the sizes of the dimensions.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// # let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), sum);
    /// let mut arrays = [RawBuffer::empty(); 2];
    /// let arrays = arrays.as_mut_ptr();
    /// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
    /// let mut workspace = unsafe { RuntimeWorkspace::new(&spec, arrays, &[0, 1]) }.unwrap();
    /// workspace.reset([100].into_iter()).unwrap();
    /// assert_eq!(workspace.finalize(), Ok(0));
    /// ```
    pub fn reset(&mut self, sizes: impl ExactSizeIterator<Item = u64> + Clone) -> Result<(), WorkspaceError> {
        // The outcome of discarded entries does not matter, but their memory does.
        let _ = self.wait();
        self.clear();
        self.finalized = None;
        if self.merge_state.is_none() || !sizes.clone().eq(self.sizes.iter().copied()) {
            // Until `resize` succeeds no entry can be inserted.
            (self.capacity, self.coord_arrays) = (0, Vec::new());
            self.resize(sizes)?;
        }
        if let Some(state) = &mut self.merge_state {
            state.engine.reset();
        }
        self.reload_arrays();
        Ok(())
    }

    /// Removes the entries of the accumulation array.
    fn clear(&mut self) {
        let count = std::mem::take(&mut self.count) as usize;
        if count > 0 {
            self.policy.clear(&AccumulationView {
                coord_arrays: &self.coord_arrays,
                sizes: &self.sizes,
                count,
                full: false,
            });
        }
    }

    /// Adapts to new sizes.
    fn resize(&mut self, sizes: impl ExactSizeIterator<Item = u64>) -> Result<(), WorkspaceError> {
        self.sizes.clear();
        self.sizes.extend(sizes);
        self.sizes.resize(self.spec.widths.len(), 1);
        for (dimension, (size, width)) in self.sizes.iter().zip(&self.spec.widths).enumerate() {
            if *size > 1 << 63 || size.saturating_sub(1) > Width::max(*width) {
                let error = WorkspaceError::Width { dimension, size: *size };
                self.sizes.clear();
                return Err(error);
            }
        }
        let mut packing = Packing::default();
        packing.set(self.sizes.iter().copied());
        let (dtype, merge, init) = (self.spec.dtype, self.spec.merge, self.spec.init);
        let bits = match packing.total {
            0..=64 => 64,
            65..=128 => 128,
            129..=256 => 256,
            257..=1024 => 1024,
            _ => 4096,
        };
        match &mut self.merge_state {
            Some(state) if state.engine.key_bits() == bits => state.packing = packing,
            state => {
                let engine = merge_op::engine(packing.total, dtype, merge, init);
                let engine = engine.ok_or(WorkspaceError::Memory { entries: u64::MAX })?;
                *state = Some(Box::new(MergeState { engine, packing }));
            }
        }
        self.policy.set_sizes(&self.sizes);
        if let Some(spare) = &mut self.spare {
            spare.policy.set_sizes(&self.sizes);
        }
        Ok(())
    }

    /// Reloads the addresses and the capacity of the kernel's arrays.
    fn reload_arrays(&mut self) {
        self.coord_arrays.clear();
        let mut capacity = usize::MAX;
        for (buffer, elem) in self.buffers.iter().zip(&self.elems) {
            // SAFETY: the descriptors belong to the workspace, as the caller of `new` guarantees.
            let raw = unsafe { &mut **buffer };
            if raw.cap == 0 {
                // Borrowed memory cannot be swapped with spare arrays.
                *raw = RawBuffer::empty();
            }
            capacity = capacity.min(raw.len as usize);
            match elem {
                Elem::Index(Width::U32) => self.coord_arrays.push(CoordArray::U32(raw.data.cast())),
                Elem::Index(_) => self.coord_arrays.push(CoordArray::U64(raw.data.cast())),
                Elem::Value(_) => {}
            }
        }
        let limit = self.fixed_capacity().unwrap_or(if self.flushes() { self.flush_threshold } else { MAX_ENTRIES });
        self.capacity = capacity.min(limit).min(MAX_ENTRIES) as u64;
    }

    fn fixed_capacity(&self) -> Option<usize> {
        let capacity = self.spec.capacity.filter(|_| self.flushes());
        capacity.map(|capacity| usize::try_from(capacity.get()).unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES))
    }

    /// True if entries may be flushed and merged.
    fn flushes(&self) -> bool {
        self.spec.merge.is_some()
    }

    fn values(&self) -> *mut u8 {
        // SAFETY: the descriptors belong to the workspace, as the caller of `new` guarantees.
        self.buffers.last().map_or(std::ptr::null_mut(), |buffer| unsafe { (**buffer).data })
    }

    /// Returns the position of the entry with these coordinates; a new entry holds `init`.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// # let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), sum);
    /// let mut arrays = [RawBuffer::empty(); 2];
    /// let arrays = arrays.as_mut_ptr();
    /// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
    /// let mut workspace = unsafe { RuntimeWorkspace::new(&spec, arrays, &[0, 1]) }.unwrap();
    /// workspace.reset([100].into_iter()).unwrap();
    /// assert_eq!((workspace.insert(&[7]), workspace.insert(&[3])), (Ok(0), Ok(1)));
    /// assert!(workspace.insert(&[100]).is_err());
    /// ```
    #[inline]
    pub fn insert(&mut self, coordinates: &[u64]) -> Result<u64, WorkspaceError> {
        let inside = coordinates.iter().zip(&self.sizes).all(|(coordinate, size)| coordinate < size);
        if !inside || coordinates.len() != self.coord_arrays.len() || coordinates.is_empty() {
            return self.insert_slow(coordinates);
        }
        self.insert_in_range(coordinates)
    }

    /// Inserts coordinates that are in range.
    #[inline(always)]
    fn insert_in_range(&mut self, coordinates: &[u64]) -> Result<u64, WorkspaceError> {
        if self.appends {
            if self.count >= self.capacity {
                self.reserve(false)?;
            }
            return Ok(self.append(coordinates));
        }
        self.report.inserts += 1;
        match self.lookup(coordinates)? {
            Lookup::Found(position) => Ok(position as u64),
            Lookup::New if self.count < self.capacity => Ok(self.append(coordinates)),
            outcome => self.retry_insert(coordinates, outcome),
        }
    }

    #[inline]
    fn lookup(&mut self, coordinates: &[u64]) -> Result<Lookup, WorkspaceError> {
        let (count, full) = (self.count as usize, self.count >= self.capacity);
        let outcome = self.policy.lookup(
            coordinates,
            &AccumulationView { coord_arrays: &self.coord_arrays, sizes: &self.sizes, count, full },
        )?;
        match outcome {
            Lookup::Found(position) if position >= count => {
                Err(WorkspaceError::PolicyViolation(PolicyViolation::InvalidPosition))
            }
            outcome => Ok(outcome),
        }
    }

    /// Reserves capacity, and retries the insertion once.
    #[cold]
    fn retry_insert(&mut self, coordinates: &[u64], outcome: Lookup) -> Result<u64, WorkspaceError> {
        let flushed = self.reserve(self.count < self.capacity)?;
        if outcome == Lookup::New && !flushed {
            // The policy has recorded it already.
            return Ok(self.append(coordinates));
        }
        match self.lookup(coordinates)? {
            Lookup::Found(position) => Ok(position as u64),
            Lookup::New if self.count < self.capacity => Ok(self.append(coordinates)),
            _ => Err(WorkspaceError::PolicyViolation(PolicyViolation::FullWhenEmpty)),
        }
    }

    /// The slow path: insertions after finalizing, without coordinates, or out of range.
    #[cold]
    fn insert_slow(&mut self, coordinates: &[u64]) -> Result<u64, WorkspaceError> {
        if let Some(count) = self.finalized.take() {
            self.resume(count)?;
        }
        let inside = coordinates.iter().zip(&self.sizes).all(|(coordinate, size)| coordinate < size);
        if !inside || coordinates.len() != self.coord_arrays.len() {
            return Err(self.out_of_range(coordinates));
        }
        self.insert_in_range(coordinates)
    }

    /// Resumes after finalizing: the finalized entries become the first entries of the accumulation
    /// array.
    #[cold]
    fn resume(&mut self, count: u64) -> Result<(), WorkspaceError> {
        if let Some(state) = &mut self.merge_state {
            state.engine.reset();
        }
        self.reload_arrays();
        if self.appends {
            // They will be counted again when flushed.
            self.report.inserts = self.report.inserts.saturating_sub(count);
        } else {
            let mut coordinates = vec![0; self.coord_arrays.len()];
            for position in 0..count as usize {
                for (coordinate, array) in coordinates.iter_mut().zip(&self.coord_arrays) {
                    *coordinate = array.get(position);
                }
                let entries = AccumulationView {
                    coord_arrays: &self.coord_arrays,
                    sizes: &self.sizes,
                    count: position,
                    full: false,
                };
                if self.policy.lookup(&coordinates, &entries)? != Lookup::New {
                    return Err(WorkspaceError::PolicyViolation(PolicyViolation::InvalidPosition));
                }
                // Counted from now on, so that the policy is asked to clear them if the next lookup
                // fails.
                self.count = position as u64 + 1;
            }
        }
        self.count = count;
        Ok(())
    }

    #[cold]
    fn out_of_range(&self, coordinates: &[u64]) -> WorkspaceError {
        let pairs = coordinates.iter().zip(&self.sizes).enumerate();
        let mut out_of_range = pairs.filter(|(_, (coordinate, size))| coordinate >= size);
        // Too few coordinates: report the missing one.
        let missing =
            WorkspaceError::Range { dimension: coordinates.len().min(self.coord_arrays.len()), coordinate: 0, size: 0 };
        out_of_range.next().map_or(missing, |(dimension, (coordinate, size))| WorkspaceError::Range {
            dimension,
            coordinate: *coordinate,
            size: *size,
        })
    }

    /// Appends a new entry within the capacity.
    #[inline]
    fn append(&mut self, coordinates: &[u64]) -> u64 {
        let position = self.count as usize;
        // SAFETY: all arrays have at least `capacity` elements, which is more than `count`; their
        // types are those specified.
        unsafe {
            for (array, coordinate) in self.coord_arrays.iter().zip(coordinates) {
                match *array {
                    CoordArray::U32(data) => data.add(position).write(*coordinate as u32),
                    CoordArray::U64(data) => data.add(position).write(*coordinate),
                }
            }
            let values = self.values();
            match self.spec.dtype.size() {
                8 => values.add(8 * position).cast::<[u8; 8]>().write(*self.init.as_ptr().cast()),
                4 => values.add(4 * position).cast::<[u8; 4]>().write(*self.init.as_ptr().cast()),
                size => values.add(size * position).copy_from_nonoverlapping(self.init.as_ptr(), size),
            }
        }
        self.count += 1;
        position as u64
    }

    /// Reserves capacity for at least one more entry: by growing, or by flushing, which `force`
    /// requests. Returns whether the entries were flushed, so that the accumulation array is empty
    /// now.
    #[cold]
    pub(super) fn reserve(&mut self, force: bool) -> Result<bool, WorkspaceError> {
        if let Some(count) = self.finalized.take() {
            self.resume(count)?;
            if self.count < self.capacity {
                return Ok(false);
            }
        }
        let capacity = self.capacity as usize;
        let limit = match self.fixed_capacity() {
            Some(capacity) => capacity,
            None if !self.flushes() => MAX_ENTRIES,
            None => self.flush_threshold.min(MAX_ENTRIES),
        };
        if capacity < limit && !force {
            self.grow(limit.min(capacity.saturating_mul(2).max(INITIAL_CAPACITY)), limit)?;
            return Ok(false);
        }
        if !self.flushes() || self.coord_arrays.len() != self.spec.widths.len() {
            return Err(WorkspaceError::Memory { entries: self.count + 1 });
        }
        self.flush()?;
        if self.capacity == 0 {
            self.grow(limit.min(capacity.max(INITIAL_CAPACITY)), limit)?;
        }
        Ok(true)
    }

    /// Grows the kernel's arrays.
    fn grow(&mut self, target: usize, limit: usize) -> Result<(), WorkspaceError> {
        let count = self.count;
        for (buffer, elem) in self.buffers.iter().zip(&self.elems) {
            // SAFETY: the descriptors belong to the workspace, as the caller of `new` guarantees.
            let raw = unsafe { &mut **buffer };
            let before = raw.len;
            // Only entries are copied.
            raw.len = before.min(count);
            if !memory::grow(raw, target as u64, elem.size(), memory::align(*elem), None) {
                raw.len = before;
                return Err(WorkspaceError::Memory { entries: target as u64 });
            }
            raw.len = raw.len.max(before.min(raw.cap));
        }
        self.reload_arrays();
        let lengths = self.buffers.iter().map(|buffer| {
            // SAFETY: as above.
            unsafe { (**buffer).len as usize }
        });
        self.capacity = lengths.min().unwrap_or(0).min(limit) as u64;
        self.record_memory();
        Ok(())
    }

    /// Flushes the accumulation array, on this thread or on the worker thread.
    fn flush(&mut self) -> Result<(), WorkspaceError> {
        self.wait()?;
        let count = self.count as usize;
        self.note_inserts(count);
        self.report.flushes += 1;
        let Some(mut state) = self.merge_state.take() else {
            return Err(WorkspaceError::PolicyViolation(PolicyViolation::Panicked));
        };
        if !self.spec.pipelined {
            let batch =
                Batch { coord_arrays: &self.coord_arrays, values: self.values(), count, policy: &mut *self.policy };
            // SAFETY: all arrays have `count` initialised entries.
            let done = unsafe { state.absorb(batch) };
            self.merge_state = Some(state);
            self.record_memory();
            done?;
            self.count = 0;
            self.reload_arrays();
            return Ok(());
        }
        let mut spare = self.spare.take().unwrap_or_else(|| self.spare_arrays());
        std::mem::swap(&mut spare.policy, &mut self.policy);
        for (buffer, storage) in self.buffers.iter().zip(&mut spare.arrays) {
            let own = storage.raw();
            // SAFETY: the descriptors belong to the workspace and own their memory, as the storage
            // does, with elements of the same type.
            unsafe {
                storage.set_raw(**buffer);
                **buffer = own;
            }
        }
        let job = Box::new(FlushJob { state, spare, coord_arrays: std::mem::take(&mut self.coord_arrays), count });
        self.count = 0;
        self.reload_arrays();
        match self.pipeline.start(job) {
            Ok(()) => Ok(()),
            Err(outcome) => self.take_back(outcome),
        }
    }

    fn spare_arrays(&self) -> SpareArrays {
        let mut policy = (self.constructor)();
        policy.set_sizes(&self.sizes);
        SpareArrays { arrays: self.elems.iter().map(|elem| RawStorage::new(*elem)).collect(), policy }
    }

    /// Waits for the worker thread.
    fn wait(&mut self) -> Result<(), WorkspaceError> {
        match self.pipeline.finish() {
            Some(outcome) => outcome.and_then(|outcome| self.take_back(outcome)),
            None => Ok(()),
        }
    }

    fn take_back(&mut self, (job, result): (Box<FlushJob>, Result<(), WorkspaceError>)) -> Result<(), WorkspaceError> {
        let FlushJob { state, mut spare, .. } = *job;
        if result.is_err() {
            // The state of its policy is unknown.
            spare.policy = (self.constructor)();
            spare.policy.set_sizes(&self.sizes);
        }
        (self.merge_state, self.spare) = (Some(state), Some(spare));
        self.record_memory();
        result
    }

    fn note_inserts(&mut self, count: usize) {
        if self.appends {
            self.report.inserts += count as u64;
        }
    }

    /// Finalizes: writes all entries into the kernel's arrays, in coordinate order, each once;
    /// returns their number. They remain entries of the workspace, and others can be inserted,
    /// until it is reset.
    ///
    /// ```
    /// use tamis_backend::RawBuffer;
    /// # use tamis_backend::runtime::workspace::{MergeOp, RuntimeWorkspace, WorkspaceSpec};
    /// # use tamis_ir::{DType, Value, algebra::Op};
    /// # let sum = Some(MergeOp::Op(Op::Add));
    /// let spec = WorkspaceSpec::new(1, DType::F64, Value::F64(0.0), sum);
    /// let mut arrays = [RawBuffer::empty(); 2];
    /// let arrays = arrays.as_mut_ptr();
    /// // SAFETY: the descriptors are empty and distinct, and outlive the workspace.
    /// let mut workspace = unsafe { RuntimeWorkspace::new(&spec, arrays, &[0, 1]) }.unwrap();
    /// workspace.reset([100].into_iter()).unwrap();
    /// for i in [7, 3, 7] {
    ///     workspace.insert(&[i]).unwrap();
    /// }
    /// assert_eq!(workspace.finalize(), Ok(2), "equal coordinates are one entry");
    /// ```
    pub fn finalize(&mut self) -> Result<u64, WorkspaceError> {
        if let Some(count) = self.finalized {
            return Ok(count);
        }
        self.wait()?;
        let count = self.count as usize;
        self.note_inserts(count);
        self.report.finalizations += 1;
        let Some(mut state) = self.merge_state.take() else {
            return Err(WorkspaceError::PolicyViolation(PolicyViolation::Panicked));
        };
        let done = self.finalize_into(&mut state, count);
        self.merge_state = Some(state);
        self.record_memory();
        self.clear();
        self.finalized = done.ok();
        self.close_fast_path();
        done
    }

    /// Forces every insertion through the slow path until `reset` or `resume`.
    fn close_fast_path(&mut self) {
        self.capacity = 0;
        self.coord_arrays.clear();
    }

    fn finalize_into(&mut self, state: &mut MergeState, count: usize) -> Result<u64, WorkspaceError> {
        let mut batch =
            Batch { coord_arrays: &self.coord_arrays, values: self.values(), count, policy: &mut *self.policy };
        // SAFETY: all arrays have `count` initialised entries.
        if unsafe { state.engine.absorb(&mut batch, &state.packing, true)? } {
            return Ok(count as u64);
        }
        // The engine has copied the entries, so their arrays can be overwritten. The policy forgets
        // them first.
        self.clear();
        // SAFETY: the descriptors belong to the workspace, as the caller of `new` guarantees.
        let merged =
            unsafe { state.engine.emit(&state.packing, &OutputArrays { buffers: &self.buffers, elems: &self.elems })? };
        Ok(merged as u64)
    }

    /// Updates the peak memory counters.
    fn record_memory(&mut self) {
        let mut accumulation = 0;
        for (k, (buffer, elem)) in self.buffers.iter().zip(&self.elems).enumerate() {
            let spare = self.spare.as_ref().and_then(|spare| spare.arrays.get(k)).map_or(0, |array| array.raw().cap);
            // SAFETY: the descriptors belong to the workspace, as the caller of `new` guarantees.
            accumulation += (unsafe { (**buffer).cap } + spare) * elem.size() as u64;
        }
        let [flushed, sort] = self.merge_state.as_ref().map_or([0, 0], |state| state.engine.bytes());
        self.report.merged += self.merge_state.as_mut().map_or(0, |state| state.engine.take_combined());
        let policy = self.policy.bytes() + self.spare.as_ref().map_or(0, |spare| spare.policy.bytes());
        let report = &mut self.report;
        report.accumulation_bytes = report.accumulation_bytes.max(accumulation);
        report.flushed_bytes = report.flushed_bytes.max(flushed);
        report.sort_bytes = report.sort_bytes.max(sort);
        report.policy_bytes = report.policy_bytes.max(policy);
        report.peak_bytes = report.peak_bytes.max(accumulation + flushed + sort + policy);
    }

    /// True if the policy is built-in, and so never panics.
    pub(super) fn has_built_in_policy(&self) -> bool {
        self.built_in
    }

    /// Translates an error into the status of the kernel and its operands.
    pub(super) fn failure(&self, error: WorkspaceError) -> (Status, RawFailure) {
        let values = self.buffer_ids.last().copied().unwrap_or(0) as i64;
        let array = |dimension: usize| self.buffer_ids.get(dimension).map_or(values, |id| *id as i64);
        match error {
            WorkspaceError::Memory { entries } => {
                (Status::Memory, RawFailure { id: values, index: i64::try_from(entries).unwrap_or(i64::MAX), len: 0 })
            }
            WorkspaceError::Range { dimension, coordinate, size } => {
                let raw = RawFailure { id: array(dimension), index: coordinate as i64, len: size as i64 };
                (Status::Bounds, raw)
            }
            WorkspaceError::Width { dimension, size } => {
                let raw = RawFailure { id: array(dimension), index: size.wrapping_sub(1) as i64, len: 0 };
                (Status::Width, raw)
            }
            WorkspaceError::PolicyViolation(violation) => {
                (Status::Policy, RawFailure { id: values, index: violation as i64, len: 0 })
            }
        }
    }
}
