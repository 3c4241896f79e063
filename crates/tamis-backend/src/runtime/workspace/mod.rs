//! Insert-sort-merge workspaces: entries come in any order, and are there in order, each once, when the workspace is settled.
//!
//! Entries are collected in an *accumulation array*, which is the kernel's own: one array of coordinates per dimension, and
//! one of values. How an entry is found there on insertion is the [`Policy`]: `coord`, `hash`, `bucket`, and the two `extremes`.
//!
//! When it is full it is *flushed*: coordinates are packed into keys (`key`), and its entries go to *shelves* by the highest bits
//! of those (`shelves`, lists of `blocks`), or, where there are few elements, straight to their places (`flat`). A shelf is
//! combined (`combine`) each time it has grown to a few times what was left of it: sorted by digits (`sort::ids`), or put
//! into a window of `places`, and folded in the order of insertion by loops of their own for each operator (`merge`). So nothing
//! depends on how large the accumulation array is, but that it stays in the cache. All of that is an `engine`, and
//! runs on a second thread if wanted (`pipeline`). CompiledKernel code uses a workspace by the functions in `abi`.

mod abi;
mod blocks;
mod bucket;
mod combine;
mod coord;
mod engine;
mod extremes;
mod flat;
mod hash;
mod key;
mod merge;
mod own;
mod pipeline;
mod places;
mod policy;
mod shelves;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_combining;

pub use abi::RawDescription;
pub(super) use abi::SYMBOLS;
pub use merge::Merge;
pub use own::OwnedWorkspace;
pub use policy::{Constructor, Entries, Place, Policy, appends, policies, register};

use super::memory::{self, RawBuffer, Storage, element_bytes};
use super::typed::OutOfMemory;
use crate::failure::{RawFailure, Status};
use engine::{Batch, Target};
use key::Packing;
use pipeline::{Core, Job, Pipeline, Side};
use policy::Lane;
use std::num::NonZero;
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Value};

/// Without a capacity: so many entries are collected before they are put elsewhere. They stay in the cache until then.
pub(super) const CACHED: usize = 1 << 12;

/// At least as many if a second thread takes them: handing over less costs more than it saves.
const HANDED_OVER: usize = 1 << 16;

/// The room that an accumulation array starts with.
const START: usize = 64;

/// Numbers of entries have 32 bits.
const MOST: usize = u32::MAX as usize - 1;

/// What a workspace is: fixed when a kernel is compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The width of the coordinates of each dimension, outermost first: `u32` or `u64`.
    pub widths: Vec<Width>,
    /// The type of values.
    pub dtype: DType,
    /// What new entries hold.
    pub init: Value,
    /// How equal entries become one. Without it entries must be found on insertion, and never be merged: then the policy is
    /// `hash`, without a capacity, whatever is asked for.
    pub merge: Option<Merge>,
    /// The name of the policy.
    pub policy: String,
    /// How many entries the accumulation array holds; by default it grows.
    pub capacity: Option<NonZero<u64>>,
    /// Whether a second thread sorts and merges.
    pub pipelined: bool,
}

impl Description {
    /// Dimensions with 32-bit coordinates, by the policy `coord`, growing, on one thread.
    pub fn new(dimensions: usize, dtype: DType, init: Value, merge: Option<Merge>) -> Description {
        let widths = vec![Width::U32; dimensions];
        Description { widths, dtype, init, merge, policy: "coord".into(), capacity: None, pipelined: false }
    }

    /// The policy that is used in fact.
    pub fn effective_policy(&self) -> &str {
        if self.merge.is_some() { &self.policy } else { "hash" }
    }

    /// Whether compiled code may append by itself; see [`Workspace`].
    pub fn appends(&self) -> bool {
        appends(self.effective_policy()).unwrap_or(false)
    }
}

/// What a policy did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Broken {
    /// It panicked.
    Panicked,
    /// It located an element that does not exist.
    Lost,
    /// It had no room when there were no entries.
    Full,
}

/// Why a workspace cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Stop {
    /// There is no memory for so many entries.
    Memory { entries: u64 },
    /// A coordinate is not one of its dimension.
    Range { dimension: usize, coordinate: u64, size: u64 },
    /// Coordinates of a dimension of this size do not fit the width they are stored in.
    Width { dimension: usize, size: u64 },
    /// A policy broke its contract.
    Broken(Broken),
}

impl From<OutOfMemory> for Stop {
    fn from(shortage: OutOfMemory) -> Stop {
        Stop::Memory { entries: shortage.elements }
    }
}

/// What a workspace has done and needed, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceReport {
    /// How many entries were inserted.
    pub inserts: u64,
    /// How often a full accumulation array was merged.
    pub flushes: u64,
    /// How many entries were combined with others, each as often as it was.
    pub merged: u64,
    /// How often the workspace was settled.
    pub finalizations: u64,
    /// The most bytes at one time: of accumulation arrays, ...
    pub accumulation_bytes: u64,
    /// ... of what was flushed, ...
    pub flushed_bytes: u64,
    /// ... of the tables of policies, ...
    pub policy_bytes: u64,
    /// ... of what combining takes, ...
    pub sort_bytes: u64,
    /// ... and of all together.
    pub peak_bytes: u64,
}

/// A workspace in use by a kernel.
///
/// Its first two fields are read and written by compiled code, which appends entries by itself where the policy always
/// does ([`Description::appends`]): while `count < room`, it writes the coordinates, `init` and then the value at `count` and
/// adds 1 to it; else it asks for room first (`tamis_workspace_room`). All arrays have at least `room` elements.
#[repr(C)]
pub struct Workspace {
    /// How many entries the accumulation array has.
    pub(super) count: u64,
    /// How many it may have before room must be made.
    pub(super) room: u64,
    /// The kernel's descriptors: those of the coordinates, and that of the values.
    buffers: Vec<*mut RawBuffer>,
    elems: Vec<Elem>,
    /// Which buffers of the kernel they are, to report failures.
    which: Vec<usize>,
    /// Where the arrays are now.
    lanes: Vec<Lane>,
    init: [u8; 16],
    description: Description,
    constructor: Constructor,
    policy: Box<dyn Policy>,
    appends: bool,
    patience: usize,
    trusted: bool,
    sizes: Vec<u64>,
    /// So many entries were settled, in the kernel's arrays, and nothing was inserted since; `lanes` is empty then.
    finalized: Option<u64>,
    /// Not here while the second thread has it.
    core: Option<Box<Core>>,
    spare: Option<Side>,
    pipeline: Pipeline,
    report: WorkspaceReport,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace")
            .field("description", &self.description)
            .field("count", &self.count)
            .field("room", &self.room)
            .field("report", &self.report)
            .finish()
    }
}

impl Workspace {
    /// A workspace on the kernel's arrays: those of the coordinates and then that of the values, by their numbers in a table
    /// of descriptors. Refused, with a reason, if there is no such policy or operator.
    ///
    /// Nothing is allocated for entries before there are any.
    ///
    /// # Safety
    /// The descriptors stay where they are while the workspace is used, are of arrays of the described types, are
    /// distinct, and belong to the workspace and the code that inserts into it; memory of theirs is as [`RawBuffer`] says.
    pub unsafe fn new(
        description: &Description,
        buffers: *mut RawBuffer,
        which: &[usize],
    ) -> Result<Workspace, String> {
        let dimensions = description.widths.len();
        if which.len() != dimensions + 1 {
            return Err(format!("{dimensions} dimensions need {} arrays, not {}", dimensions + 1, which.len()));
        }
        if description.widths.iter().any(|width| width.size() < 4) {
            return Err("coordinates of workspaces are `u32` or `u64`".into());
        }
        if description.init.dtype() != description.dtype {
            return Err(format!("new entries are {}, not {}", description.dtype, description.init.dtype()));
        }
        let name = description.effective_policy();
        let (constructor, trusted) = policy::find(name).ok_or_else(|| format!("there is no policy `{name}`"))?;
        let policy = constructor();
        // Where entries are found on insertion, sums depend on when they are put aside.
        let handed_over = description.pipelined && policy.appends();
        let engine = merge::engine(0, description.dtype, description.merge, description.init);
        let engine =
            engine.ok_or_else(|| format!("two {} cannot be merged by {:?}", description.dtype, description.merge))?;
        let mut elems: Vec<Elem> = description.widths.iter().map(|width| Elem::Index(*width)).collect();
        elems.push(Elem::Value(description.dtype));
        let (init, _) = element_bytes(Elem::Value(description.dtype), description.init);
        Ok(Workspace {
            count: 0,
            room: 0,
            // SAFETY: promised by the caller.
            buffers: which.iter().map(|k| unsafe { buffers.add(*k) }).collect(),
            elems,
            which: which.to_vec(),
            lanes: Vec::new(),
            init,
            description: description.clone(),
            constructor,
            appends: policy.appends(),
            patience: policy.patience().max(if handed_over { HANDED_OVER } else { 0 }),
            policy,
            trusted,
            sizes: Vec::new(),
            finalized: None,
            core: Some(Box::new(Core { engine, packing: Packing::default() })),
            spare: None,
            pipeline: Pipeline::default(),
            report: WorkspaceReport::default(),
        })
    }

    /// What was done and needed so far.
    pub fn report(&self) -> WorkspaceReport {
        self.report
    }

    /// Forgets all entries, and learns the sizes of the dimensions.
    pub fn reset(&mut self, sizes: impl ExactSizeIterator<Item = u64> + Clone) -> Result<(), Stop> {
        // What became of entries that nobody wants does not matter, but their memory does.
        let _ = self.wait();
        self.forget();
        self.finalized = None;
        if self.core.is_none() || !sizes.clone().eq(self.sizes.iter().copied()) {
            // Until that is done nothing can be inserted.
            (self.room, self.lanes) = (0, Vec::new());
            self.resize(sizes)?;
        }
        if let Some(core) = &mut self.core {
            core.engine.reset();
        }
        self.refresh();
        Ok(())
    }

    /// Forgets the entries of the accumulation array.
    fn forget(&mut self) {
        let count = std::mem::take(&mut self.count) as usize;
        if count > 0 {
            self.policy.clear(&Entries { lanes: &self.lanes, sizes: &self.sizes, count, full: false });
        }
    }

    /// Gets ready for other sizes.
    fn resize(&mut self, sizes: impl ExactSizeIterator<Item = u64>) -> Result<(), Stop> {
        self.sizes.clear();
        self.sizes.extend(sizes);
        self.sizes.resize(self.description.widths.len(), 1);
        for (dimension, (size, width)) in self.sizes.iter().zip(&self.description.widths).enumerate() {
            if *size > 1 << 63 || size.saturating_sub(1) > Width::max(*width) {
                let stop = Stop::Width { dimension, size: *size };
                self.sizes.clear();
                return Err(stop);
            }
        }
        let mut packing = Packing::default();
        packing.set(self.sizes.iter().copied());
        let (dtype, merge, init) = (self.description.dtype, self.description.merge, self.description.init);
        let bits = match packing.total {
            0..=64 => 64,
            65..=128 => 128,
            129..=256 => 256,
            257..=1024 => 1024,
            _ => 4096,
        };
        match &mut self.core {
            Some(core) if core.engine.key_bits() == bits => core.packing = packing,
            core => {
                let engine = merge::engine(packing.total, dtype, merge, init);
                let engine = engine.ok_or(Stop::Memory { entries: u64::MAX })?;
                *core = Some(Box::new(Core { engine, packing }));
            }
        }
        self.policy.start(&self.sizes);
        if let Some(spare) = &mut self.spare {
            spare.policy.start(&self.sizes);
        }
        Ok(())
    }

    /// Looks where the kernel's arrays are, and how much room they have.
    fn refresh(&mut self) {
        self.lanes.clear();
        let mut room = usize::MAX;
        for (buffer, elem) in self.buffers.iter().zip(&self.elems) {
            // SAFETY: the descriptors are the workspace's, by the promise of `new`.
            let raw = unsafe { &mut **buffer };
            if raw.cap == 0 {
                // Borrowed memory could not be swapped.
                *raw = RawBuffer::empty();
            }
            room = room.min(raw.len as usize);
            match elem {
                Elem::Index(Width::U32) => self.lanes.push(Lane::Narrow(raw.data.cast())),
                Elem::Index(_) => self.lanes.push(Lane::Wide(raw.data.cast())),
                Elem::Value(_) => {}
            }
        }
        let limit = self.capacity().unwrap_or(if self.flushes() { self.patience } else { MOST });
        self.room = room.min(limit).min(MOST) as u64;
    }

    fn capacity(&self) -> Option<usize> {
        let capacity = self.description.capacity.filter(|_| self.flushes());
        capacity.map(|capacity| usize::try_from(capacity.get()).unwrap_or(MOST).min(MOST))
    }

    /// Whether entries may be merged.
    fn flushes(&self) -> bool {
        self.description.merge.is_some()
    }

    fn values(&self) -> *mut u8 {
        // SAFETY: the descriptors are the workspace's, by the promise of `new`.
        self.buffers.last().map_or(std::ptr::null_mut(), |buffer| unsafe { (**buffer).data })
    }

    /// The place of the entry with these coordinates, which is new or not; a new one holds `init`.
    #[inline]
    pub fn insert(&mut self, coordinates: &[u64]) -> Result<u64, Stop> {
        let inside = coordinates.iter().zip(&self.sizes).all(|(coordinate, size)| coordinate < size);
        if !inside || coordinates.len() != self.lanes.len() || coordinates.is_empty() {
            return self.insert_elsewhere(coordinates);
        }
        self.insert_here(coordinates)
    }

    /// An insertion of coordinates that are those of an element.
    #[inline(always)]
    fn insert_here(&mut self, coordinates: &[u64]) -> Result<u64, Stop> {
        if self.appends {
            if self.count >= self.room {
                self.make_room(false)?;
            }
            return Ok(self.append(coordinates));
        }
        self.report.inserts += 1;
        match self.ask(coordinates)? {
            Place::Found(place) => Ok(place as u64),
            Place::New if self.count < self.room => Ok(self.append(coordinates)),
            refused => self.insert_again(coordinates, refused),
        }
    }

    #[inline]
    fn ask(&mut self, coordinates: &[u64]) -> Result<Place, Stop> {
        let (count, full) = (self.count as usize, self.count >= self.room);
        let place = self.policy.place(coordinates, &Entries { lanes: &self.lanes, sizes: &self.sizes, count, full })?;
        match place {
            Place::Found(place) if place >= count => Err(Stop::Broken(Broken::Lost)),
            place => Ok(place),
        }
    }

    /// Makes room, and repeats an insertion once.
    #[cold]
    fn insert_again(&mut self, coordinates: &[u64], refused: Place) -> Result<u64, Stop> {
        let flushed = self.make_room(self.count < self.room)?;
        if refused == Place::New && !flushed {
            // It is remembered already.
            return Ok(self.append(coordinates));
        }
        match self.ask(coordinates)? {
            Place::Found(place) => Ok(place as u64),
            Place::New if self.count < self.room => Ok(self.append(coordinates)),
            _ => Err(Stop::Broken(Broken::Full)),
        }
    }

    /// An insertion after entries were settled, one without coordinates, or one that is refused.
    #[cold]
    fn insert_elsewhere(&mut self, coordinates: &[u64]) -> Result<u64, Stop> {
        if let Some(count) = self.finalized.take() {
            self.resume(count)?;
        }
        let inside = coordinates.iter().zip(&self.sizes).all(|(coordinate, size)| coordinate < size);
        if !inside || coordinates.len() != self.lanes.len() {
            return Err(self.outside(coordinates));
        }
        self.insert_here(coordinates)
    }

    /// Goes on after entries were settled: they are the first ones of the accumulation array.
    #[cold]
    fn resume(&mut self, count: u64) -> Result<(), Stop> {
        if let Some(core) = &mut self.core {
            core.engine.reset();
        }
        self.refresh();
        if self.appends {
            // They will be counted again.
            self.report.inserts = self.report.inserts.saturating_sub(count);
        } else {
            let mut coordinates = vec![0; self.lanes.len()];
            for place in 0..count as usize {
                for (coordinate, lane) in coordinates.iter_mut().zip(&self.lanes) {
                    *coordinate = lane.get(place);
                }
                let entries = Entries { lanes: &self.lanes, sizes: &self.sizes, count: place, full: false };
                if self.policy.place(&coordinates, &entries)? != Place::New {
                    return Err(Stop::Broken(Broken::Lost));
                }
                // Known to the policy from now on, so that it forgets them if the next one fails.
                self.count = place as u64 + 1;
            }
        }
        self.count = count;
        Ok(())
    }

    #[cold]
    fn outside(&self, coordinates: &[u64]) -> Stop {
        let pairs = coordinates.iter().zip(&self.sizes).enumerate();
        let mut outside = pairs.filter(|(_, (coordinate, size))| coordinate >= size);
        // Too few coordinates: one is missing.
        let missing = Stop::Range { dimension: coordinates.len().min(self.lanes.len()), coordinate: 0, size: 0 };
        outside.next().map_or(missing, |(dimension, (coordinate, size))| Stop::Range {
            dimension,
            coordinate: *coordinate,
            size: *size,
        })
    }

    /// Writes a new entry, for which there is room.
    #[inline]
    fn append(&mut self, coordinates: &[u64]) -> u64 {
        let place = self.count as usize;
        // SAFETY: all arrays have at least `room` elements, which is more than `count`; their types are those described.
        unsafe {
            for (lane, coordinate) in self.lanes.iter().zip(coordinates) {
                match *lane {
                    Lane::Narrow(data) => data.add(place).write(*coordinate as u32),
                    Lane::Wide(data) => data.add(place).write(*coordinate),
                }
            }
            let values = self.values();
            match self.description.dtype.size() {
                8 => values.add(8 * place).cast::<[u8; 8]>().write(*self.init.as_ptr().cast()),
                4 => values.add(4 * place).cast::<[u8; 4]>().write(*self.init.as_ptr().cast()),
                size => values.add(size * place).copy_from_nonoverlapping(self.init.as_ptr(), size),
            }
        }
        self.count += 1;
        place as u64
    }

    /// Makes room for at least one more entry: by growing, or by merging what is there, which `force` asks for.
    /// Gives whether entries were merged, so that there are none now.
    #[cold]
    pub(super) fn make_room(&mut self, force: bool) -> Result<bool, Stop> {
        if let Some(count) = self.finalized.take() {
            self.resume(count)?;
            if self.count < self.room {
                return Ok(false);
            }
        }
        let room = self.room as usize;
        let limit = match self.capacity() {
            Some(capacity) => capacity,
            None if !self.flushes() => MOST,
            None => self.patience.min(MOST),
        };
        if room < limit && !force {
            self.grow(limit.min(room.saturating_mul(2).max(START)), limit)?;
            return Ok(false);
        }
        if !self.flushes() || self.lanes.len() != self.description.widths.len() {
            return Err(Stop::Memory { entries: self.count + 1 });
        }
        self.flush()?;
        if self.room == 0 {
            self.grow(limit.min(room.max(START)), limit)?;
        }
        Ok(true)
    }

    /// Makes the kernel's arrays longer.
    fn grow(&mut self, target: usize, limit: usize) -> Result<(), Stop> {
        let count = self.count;
        for (buffer, elem) in self.buffers.iter().zip(&self.elems) {
            // SAFETY: the descriptors are the workspace's, by the promise of `new`.
            let raw = unsafe { &mut **buffer };
            let before = raw.len;
            // Only entries are worth copying.
            raw.len = before.min(count);
            if !memory::grow(raw, target as u64, elem.size(), memory::align(*elem), None) {
                raw.len = before;
                return Err(Stop::Memory { entries: target as u64 });
            }
            raw.len = raw.len.max(before.min(raw.cap));
        }
        self.refresh();
        let lengths = self.buffers.iter().map(|buffer| {
            // SAFETY: as above.
            unsafe { (**buffer).len as usize }
        });
        self.room = lengths.min().unwrap_or(0).min(limit) as u64;
        self.account();
        Ok(())
    }

    /// Empties the accumulation array, now or on the second thread.
    fn flush(&mut self) -> Result<(), Stop> {
        self.wait()?;
        let count = self.count as usize;
        self.note_inserts(count);
        self.report.flushes += 1;
        let Some(mut core) = self.core.take() else { return Err(Stop::Broken(Broken::Panicked)) };
        if !self.description.pipelined {
            let batch = Batch { lanes: &self.lanes, values: self.values(), count, policy: &mut *self.policy };
            // SAFETY: all arrays have as many entries, which are written.
            let done = unsafe { core.absorb(batch) };
            self.core = Some(core);
            self.account();
            done?;
            self.count = 0;
            self.refresh();
            return Ok(());
        }
        let mut side = self.spare.take().unwrap_or_else(|| self.other_side());
        std::mem::swap(&mut side.policy, &mut self.policy);
        for (buffer, storage) in self.buffers.iter().zip(&mut side.arrays) {
            let own = storage.raw();
            // SAFETY: the descriptors are the workspace's, and own their memory, as the storage does, of elements of the
            // same type.
            unsafe {
                storage.set_raw(**buffer);
                **buffer = own;
            }
        }
        let job = Box::new(Job { core, side, lanes: std::mem::take(&mut self.lanes), count });
        self.count = 0;
        self.refresh();
        match self.pipeline.start(job) {
            Ok(()) => Ok(()),
            Err(outcome) => self.take_back(outcome),
        }
    }

    fn other_side(&self) -> Side {
        let mut policy = (self.constructor)();
        policy.start(&self.sizes);
        Side { arrays: self.elems.iter().map(|elem| Storage::new(*elem)).collect(), policy }
    }

    /// Waits for the second thread.
    fn wait(&mut self) -> Result<(), Stop> {
        match self.pipeline.finish() {
            Some(outcome) => outcome.and_then(|outcome| self.take_back(outcome)),
            None => Ok(()),
        }
    }

    fn take_back(&mut self, (job, result): (Box<Job>, Result<(), Stop>)) -> Result<(), Stop> {
        let Job { core, mut side, .. } = *job;
        if result.is_err() {
            // What its policy remembers is not known.
            side.policy = (self.constructor)();
            side.policy.start(&self.sizes);
        }
        (self.core, self.spare) = (Some(core), Some(side));
        self.account();
        result
    }

    fn note_inserts(&mut self, count: usize) {
        if self.appends {
            self.report.inserts += count as u64;
        }
    }

    /// Puts all entries in order, each once, into the kernel's arrays; gives how many there are. They stay entries of
    /// the workspace, to which others may be inserted, until it is reset.
    pub fn finalize(&mut self) -> Result<u64, Stop> {
        if let Some(count) = self.finalized {
            return Ok(count);
        }
        self.wait()?;
        let count = self.count as usize;
        self.note_inserts(count);
        self.report.finalizations += 1;
        let Some(mut core) = self.core.take() else { return Err(Stop::Broken(Broken::Panicked)) };
        let done = self.finalize_into(&mut core, count);
        self.core = Some(core);
        self.account();
        self.forget();
        self.finalized = done.ok();
        self.close();
        done
    }

    /// Until it is reset, or goes on, every insertion has to ask.
    fn close(&mut self) {
        self.room = 0;
        self.lanes.clear();
    }

    fn finalize_into(&mut self, core: &mut Core, count: usize) -> Result<u64, Stop> {
        let mut batch = Batch { lanes: &self.lanes, values: self.values(), count, policy: &mut *self.policy };
        // SAFETY: all arrays have as many entries, which are written.
        if unsafe { core.engine.absorb(&mut batch, &core.packing, true)? } {
            return Ok(count as u64);
        }
        // The entries have been copied, so that their arrays can be written. Policies forget them first.
        self.forget();
        // SAFETY: the descriptors are the workspace's, by the promise of `new`; borrowed memory was let go of.
        let merged =
            unsafe { core.engine.emit(&core.packing, &Target { buffers: &self.buffers, elems: &self.elems })? };
        Ok(merged as u64)
    }

    /// Takes down how many bytes there are.
    fn account(&mut self) {
        let mut accumulation = 0;
        for (k, (buffer, elem)) in self.buffers.iter().zip(&self.elems).enumerate() {
            let spare = self.spare.as_ref().and_then(|side| side.arrays.get(k)).map_or(0, |array| array.raw().cap);
            // SAFETY: the descriptors are the workspace's, by the promise of `new`.
            accumulation += (unsafe { (**buffer).cap } + spare) * elem.size() as u64;
        }
        let [all, sort] = self.core.as_ref().map_or([0, 0], |core| core.engine.bytes());
        self.report.merged += self.core.as_mut().map_or(0, |core| core.engine.take_combined());
        let policy = self.policy.bytes() + self.spare.as_ref().map_or(0, |side| side.policy.bytes());
        let report = &mut self.report;
        report.accumulation_bytes = report.accumulation_bytes.max(accumulation);
        report.flushed_bytes = report.flushed_bytes.max(all);
        report.sort_bytes = report.sort_bytes.max(sort);
        report.policy_bytes = report.policy_bytes.max(policy);
        report.peak_bytes = report.peak_bytes.max(accumulation + all + sort + policy);
    }

    /// Whether no policy of somebody else is in use, which may panic.
    pub(super) fn trusted(&self) -> bool {
        self.trusted
    }

    /// Why the kernel stops: its status, and what it tells.
    pub(super) fn failure(&self, stop: Stop) -> (Status, RawFailure) {
        let values = self.which.last().copied().unwrap_or(0) as i64;
        let array = |dimension: usize| self.which.get(dimension).map_or(values, |which| *which as i64);
        match stop {
            Stop::Memory { entries } => (
                Status::Memory,
                RawFailure { which: values, index: i64::try_from(entries).unwrap_or(i64::MAX), len: 0 },
            ),
            Stop::Range { dimension, coordinate, size } => {
                let raw = RawFailure { which: array(dimension), index: coordinate as i64, len: size as i64 };
                (Status::Bounds, raw)
            }
            Stop::Width { dimension, size } => {
                let raw = RawFailure { which: array(dimension), index: size.wrapping_sub(1) as i64, len: 0 };
                (Status::Width, raw)
            }
            Stop::Broken(broken) => (Status::Policy, RawFailure { which: values, index: broken as i64, len: 0 }),
        }
    }
}
