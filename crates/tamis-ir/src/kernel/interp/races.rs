//! Race detector of the kernel interpreter: which iterations of a parallel loop access which elements.
//!
//! Two iterations race if they access one element and one of them writes it, unless both update it
//! atomically. Between barriers, the threads of a block are iterations of one loop.
//!
//! Registers are private to an iteration, and shared buffers to a block. The interpreter has one copy
//! of them, so an iteration must not read what another one left there.

use crate::kernel::{LoopKind, Space};
use rustc_hash::FxHashMap;

/// The way in which an element is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedAccess {
    Read,
    Write,
    /// An atomic update.
    Update,
}

/// Up to two different iterations: enough to know whether another one than the running one is there.
#[derive(Clone, Copy, Debug, Default)]
struct Iterations([Option<i64>; 2]);

impl Iterations {
    fn add(&mut self, iteration: i64) {
        let known = self.0.contains(&Some(iteration));
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()).filter(|_| !known) {
            *free = Some(iteration);
        }
    }

    /// An iteration other than this one.
    fn other(&self, iteration: i64) -> Option<i64> {
        self.0.into_iter().flatten().find(|other| *other != iteration)
    }
}

/// The iterations that accessed one element so far.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    readers: Iterations,
    writers: Iterations,
    updaters: Iterations,
}

/// The accesses of one loop that is running.
#[derive(Debug)]
pub(super) struct Log {
    /// The name of the loop's counter.
    pub(super) name: String,
    /// The kind of the loop.
    kind: LoopKind,
    /// The iteration that is running.
    pub(super) iteration: i64,
    elements: FxHashMap<(usize, i64), History>,
}

impl Log {
    pub(super) fn new(name: String, kind: LoopKind) -> Log {
        Log { name, kind, iteration: 0, elements: FxHashMap::default() }
    }

    /// True if each iteration has a copy of buffers in this memory.
    fn is_private(&self, space: Space) -> bool {
        match space {
            Space::Global => false,
            Space::Shared => self.kind == LoopKind::Grid,
            Space::Local => true,
        }
    }

    /// Records an access of the running iteration; gives the other iteration of a race.
    pub(super) fn record(&mut self, buffer: usize, space: Space, index: i64, access: RecordedAccess) -> Option<i64> {
        let (now, private) = (self.iteration, self.is_private(space));
        let history = self.elements.entry((buffer, index)).or_default();
        let (read, written) = (history.readers.other(now), history.writers.other(now));
        let updated = history.updaters.other(now);
        if private {
            if access == RecordedAccess::Write {
                history.writers = Iterations([Some(now), None]);
            }
            return history.writers.other(now);
        }
        match access {
            RecordedAccess::Read => {
                history.readers.add(now);
                written.or(updated)
            }
            RecordedAccess::Write => {
                history.writers.add(now);
                written.or(updated).or(read)
            }
            RecordedAccess::Update => {
                history.updaters.add(now);
                written.or(read)
            }
        }
    }

    /// Forgets what happened: all threads have arrived at a barrier.
    pub(super) fn clear(&mut self, space_of: impl Fn(usize) -> Space) {
        let mut elements = std::mem::take(&mut self.elements);
        elements.retain(|(buffer, _), _| self.is_private(space_of(*buffer)));
        self.elements = elements;
    }
}
