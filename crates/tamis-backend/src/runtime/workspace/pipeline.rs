//! Pipelined flushing: a worker thread sorts and merges one accumulation array while the kernel
//! fills another (double buffering).

use super::engine::{Batch, MergeEngine};
use super::packed_key::Packing;
use super::policy::{CoordArray, InsertionPolicy};
use super::{PolicyViolation, WorkspaceError};
use crate::runtime::memory::RawStorage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The merge engine, with the layout of its keys.
pub(super) struct MergeState {
    pub(super) engine: Box<dyn MergeEngine>,
    pub(super) packing: Packing,
}

/// The back buffer: a spare accumulation array and its policy.
pub(super) struct SpareArrays {
    /// One coordinate array per dimension, then the values.
    pub(super) arrays: Vec<RawStorage>,
    pub(super) policy: Box<dyn InsertionPolicy>,
}

/// A flush for the worker thread, which returns it when done.
pub(super) struct FlushJob {
    pub(super) state: Box<MergeState>,
    pub(super) spare: SpareArrays,
    pub(super) coord_arrays: Vec<CoordArray>,
    pub(super) count: usize,
}

// SAFETY: the coordinate arrays point into `spare.arrays`, which the job owns.
unsafe impl Send for FlushJob {}

impl MergeState {
    /// Absorbs entries, and clears the policy.
    ///
    /// # Safety
    /// As for [`MergeEngine::absorb`].
    pub(super) unsafe fn absorb(&mut self, mut batch: Batch<'_>) -> Result<(), WorkspaceError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.engine.absorb(&mut batch, &self.packing, false)? };
        let Batch { coord_arrays, count, policy, .. } = batch;
        policy.clear(&super::AccumulationView { coord_arrays, sizes: &self.packing.sizes, count, full: false });
        Ok(())
    }
}

impl FlushJob {
    pub(super) fn run(&mut self) -> Result<(), WorkspaceError> {
        let values = self.spare.arrays.last().map_or(std::ptr::null_mut(), |values| values.raw().data);
        let batch =
            Batch { coord_arrays: &self.coord_arrays, values, count: self.count, policy: &mut *self.spare.policy };
        // SAFETY: the arrays have `count` entries, all written before the job was created.
        unsafe { self.state.absorb(batch) }
    }
}

type FlushOutcome = (Box<FlushJob>, Result<(), WorkspaceError>);

/// The worker thread with its input and output channels.
type Worker = (Sender<Box<FlushJob>>, Receiver<FlushOutcome>, JoinHandle<()>);

/// The worker thread; it ends when this is dropped.
#[derive(Default)]
pub(super) struct Pipeline {
    thread: Option<Worker>,
    busy: bool,
}

impl Pipeline {
    /// Starts a job; the previous one has finished. If no thread can be spawned, the job runs here.
    pub(super) fn start(&mut self, mut job: Box<FlushJob>) -> Result<(), FlushOutcome> {
        if self.thread.is_none() {
            self.thread = spawn();
        }
        if let Some((jobs, _, _)) = &self.thread {
            match jobs.send(job) {
                Ok(()) => {
                    self.busy = true;
                    return Ok(());
                }
                Err(unsent) => job = unsent.0,
            }
        }
        let result = job.run();
        Err((job, result))
    }

    #[cfg(test)]
    pub(super) fn started(&self) -> bool {
        self.thread.is_some()
    }

    /// Waits for the running job and returns its outcome; `None` if there is none.
    pub(super) fn finish(&mut self) -> Option<Result<FlushOutcome, WorkspaceError>> {
        if !std::mem::take(&mut self.busy) {
            return None;
        }
        let outcome = self.thread.as_ref().and_then(|(_, outcomes, _)| outcomes.recv().ok());
        if outcome.is_none() {
            // The worker has ended, and the job is lost.
            self.thread = None;
        }
        Some(outcome.ok_or(WorkspaceError::PolicyViolation(PolicyViolation::Panicked)))
    }
}

fn spawn() -> Option<Worker> {
    let (jobs, next_job) = channel::<Box<FlushJob>>();
    let (done, outcomes) = channel();
    let work = move || {
        for mut job in next_job {
            let result = catch_unwind(AssertUnwindSafe(|| job.run()));
            // A job that panicked is returned, too: its arrays are intact, only its policy may not
            // be.
            let result = result.unwrap_or(Err(WorkspaceError::PolicyViolation(PolicyViolation::Panicked)));
            if done.send((job, result)).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("tamis-merge".into()).spawn(work).ok()?;
    Some((jobs, outcomes, thread))
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some((jobs, outcomes, thread)) = self.thread.take() {
            drop((jobs, outcomes));
            // A panic of the worker has already been reported.
            let _ = thread.join();
        }
    }
}
