//! A second thread that sorts and merges one accumulation array while another one is filled.

use super::engine::{Batch, Engine};
use super::key::Packing;
use super::policy::{Lane, Policy};
use super::{Broken, Stop};
use crate::runtime::memory::Storage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What entries are merged into.
pub(super) struct Core {
    pub(super) engine: Box<dyn Engine>,
    pub(super) packing: Packing,
}

/// An accumulation array that nobody fills, and the policy that goes with it.
pub(super) struct Side {
    /// One array per dimension, and that of the values.
    pub(super) arrays: Vec<Storage>,
    pub(super) policy: Box<dyn Policy>,
}

/// What the second thread does, and gives back.
pub(super) struct Job {
    pub(super) core: Box<Core>,
    pub(super) side: Side,
    pub(super) lanes: Vec<Lane>,
    pub(super) count: usize,
}

// SAFETY: the lanes point into the arrays, which the job owns.
unsafe impl Send for Job {}

impl Core {
    /// Takes entries; the policy forgets them.
    ///
    /// # Safety
    /// As for [`Engine::absorb`].
    pub(super) unsafe fn absorb(&mut self, mut batch: Batch<'_>) -> Result<(), Stop> {
        // SAFETY: promised by the caller.
        unsafe { self.engine.absorb(&mut batch, &self.packing, false)? };
        let Batch { lanes, count, policy, .. } = batch;
        policy.clear(&super::Entries { lanes, sizes: &self.packing.sizes, count, full: false });
        Ok(())
    }
}

impl Job {
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        let values = self.side.arrays.last().map_or(std::ptr::null_mut(), |values| values.raw().data);
        let batch = Batch { lanes: &self.lanes, values, count: self.count, policy: &mut *self.side.policy };
        // SAFETY: the arrays have as many entries, which were all written before the job was made.
        unsafe { self.core.absorb(batch) }
    }
}

type Outcome = (Box<Job>, Result<(), Stop>);

/// The second thread, how it is given jobs, and how it gives them back.
type Thread = (Sender<Box<Job>>, Receiver<Outcome>, JoinHandle<()>);

/// The second thread; it ends when this is dropped.
#[derive(Default)]
pub(super) struct Pipeline {
    thread: Option<Thread>,
    busy: bool,
}

impl Pipeline {
    /// Starts a job; the one before has been waited for. Where there is no other thread to be had, the job is done now.
    pub(super) fn start(&mut self, mut job: Box<Job>) -> Result<(), Outcome> {
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

    /// What the job that was started has become; `None` if there is none.
    pub(super) fn finish(&mut self) -> Option<Result<Outcome, Stop>> {
        if !std::mem::take(&mut self.busy) {
            return None;
        }
        let outcome = self.thread.as_ref().and_then(|(_, outcomes, _)| outcomes.recv().ok());
        if outcome.is_none() {
            // The thread is gone, and the job with it.
            self.thread = None;
        }
        Some(outcome.ok_or(Stop::Broken(Broken::Panicked)))
    }
}

fn spawn() -> Option<Thread> {
    let (jobs, next_job) = channel::<Box<Job>>();
    let (done, outcomes) = channel();
    let work = move || {
        for mut job in next_job {
            let result = catch_unwind(AssertUnwindSafe(|| job.run()));
            // A job that panicked is given back, too: its arrays are whole, whatever its policy is.
            let result = result.unwrap_or(Err(Stop::Broken(Broken::Panicked)));
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
            // Whatever it panicked about has been reported.
            let _ = thread.join();
        }
    }
}
