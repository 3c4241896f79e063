//! A team of spinning worker threads: threads that have just worked spin briefly for more work,
//! because waking a sleeping thread takes longer than many kernels.
//!
//! A spinning thread owns a seat. A caller takes a seat with a spinning thread, stores a job there,
//! and later waits for all jobs. Sleeping threads are called through the pool, which takes longer:
//! calls that have not started when all other jobs are done are taken back.

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomPinned;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The spinning time of a thread.
const LINGER: Duration = Duration::from_micros(300);

/// The maximum number of spinning threads.
const MOST: usize = 64;

/// No thread spins at this seat.
const FREE: u8 = 0;
/// A thread spins for a job.
const WAITING: u8 = 1;
/// A caller is storing a job.
const TAKEN: u8 = 2;
/// A job is stored.
const READY: u8 = 3;

/// A job for a spinning thread, of a team that outlives it.
#[derive(Clone, Copy)]
struct Job {
    team: *const Team<'static>,
    worker: usize,
}

struct Seat {
    state: AtomicU8,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: a job is written by the caller that has set the seat to `TAKEN`, and read by the spinning
// thread when it is `READY`.
unsafe impl Sync for Seat {}

static SEATS: [Seat; MOST] = [const { Seat { state: AtomicU8::new(FREE), job: UnsafeCell::new(None) } }; MOST];

/// The work of a fork-join, and the number of jobs that other threads have not finished.
pub(super) struct Team<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    open: AtomicUsize,
    /// The calls of sleeping threads.
    called: Mutex<Vec<Arc<ThreadCall>>>,
    /// The payload of the first panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Other threads hold its address.
    _stays: PhantomPinned,
}

/// A call of a sleeping thread.
struct ThreadCall {
    job: Job,
    /// True once a thread has answered it, or it was taken back.
    over: AtomicBool,
    at: Instant,
}

// SAFETY: the team is used only by the thread that sets `over`, which happens once; if that is the
// called thread, the team waits for it.
unsafe impl Send for ThreadCall {}
// SAFETY: as above.
unsafe impl Sync for ThreadCall {}

impl ThreadCall {
    /// True if this call claims the job: no other thread has.
    fn take(&self) -> bool {
        !self.over.swap(true, Ordering::AcqRel)
    }

    /// The entry point of the called thread.
    fn answer(&self) {
        let mine = self.take();
        if mine {
            // SAFETY: the call was open, so the team waits for it.
            unsafe { work_for(self.job) };
        }
        // A recent caller may call again soon.
        if mine || self.at.elapsed() < LINGER {
            wait();
        }
    }
}

impl<'a> Team<'a> {
    pub(super) fn new(work: &'a (dyn Fn(usize) + Sync)) -> Team<'a> {
        let (open, called) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        Team { work, open, called, panic: Mutex::new(None), _stays: PhantomPinned }
    }

    /// Calls a sleeping thread to run `work(worker)`. The team is pinned from now on.
    pub(super) fn call(self: Pin<&Self>, worker: usize) {
        let team = std::ptr::from_ref(self.get_ref()).cast::<Team<'static>>();
        let call = Arc::new(ThreadCall { job: Job { team, worker }, over: AtomicBool::new(false), at: Instant::now() });
        // Counted before the call: if the call fails, it is taken back.
        self.open.fetch_add(1, Ordering::Relaxed);
        self.called.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        rayon::spawn(move || call.answer());
    }

    /// The jobs of calls that have not started, which are cancelled.
    fn take_back(&self) -> Vec<usize> {
        let called = std::mem::take(&mut *self.called.lock().unwrap_or_else(PoisonError::into_inner));
        let mine: Vec<usize> = called.iter().filter(|call| call.take()).map(|call| call.job.worker).collect();
        self.open.fetch_sub(mine.len(), Ordering::Relaxed);
        mine
    }

    /// Asks a spinning thread to run `work(worker)`; false if there is none. The team is pinned
    /// from now on.
    pub(super) fn ask(self: Pin<&Self>, worker: usize) -> bool {
        let taken = |seat: &&Seat| {
            seat.state.load(Ordering::Relaxed) == WAITING
                && seat.state.compare_exchange(WAITING, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(seat) = SEATS.iter().find(taken) else { return false };
        self.open.fetch_add(1, Ordering::Relaxed);
        let team = std::ptr::from_ref(self.get_ref()).cast::<Team<'static>>();
        // SAFETY: the seat is taken, so no other thread writes or reads its job.
        unsafe { *seat.job.get() = Some(Job { team, worker }) };
        seat.state.store(READY, Ordering::Release);
        true
    }

    /// Runs the jobs that have not started, and waits for all others; propagates a panic.
    pub(super) fn end(&self) {
        for worker in self.take_back() {
            (self.work)(worker);
        }
        self.all_done();
        let panic = self.panic.lock().ok().and_then(|mut panic| panic.take());
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn all_done(&self) {
        let mut spins = 0u32;
        while self.open.load(Ordering::Acquire) > 0 {
            pause(&mut spins);
        }
    }
}

impl Drop for Team<'_> {
    /// Other threads use the work until they are done, even if this thread panics.
    fn drop(&mut self) {
        self.take_back();
        self.all_done();
    }
}

/// Frees all seats: a forked process has only the thread that forked it.
pub(super) fn free_all() {
    SEATS.iter().for_each(|seat| seat.state.store(FREE, Ordering::Relaxed));
}

/// Spins briefly, and occasionally yields to other threads.
fn pause(spins: &mut u32) {
    *spins = spins.wrapping_add(1);
    if spins.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
}

/// Spins for jobs and runs them, until none has arrived for a while.
pub(super) fn wait() {
    let free = |seat: &&Seat| {
        seat.state.load(Ordering::Relaxed) == FREE
            && seat.state.compare_exchange(FREE, WAITING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let Some(seat) = SEATS.iter().find(free) else { return };
    let (mut since, mut spins) = (Instant::now(), 0u32);
    loop {
        if seat.state.load(Ordering::Acquire) == READY {
            // SAFETY: the seat is ready, so its job belongs to this thread.
            let job = unsafe { (*seat.job.get()).take() };
            if let Some(job) = job {
                // SAFETY: the team waits for all of its jobs before it ends.
                unsafe { work_for(job) };
            }
            seat.state.store(WAITING, Ordering::Release);
            since = Instant::now();
        }
        pause(&mut spins);
        let late = spins.is_multiple_of(16) && since.elapsed() > LINGER;
        if late && seat.state.compare_exchange(WAITING, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Runs a job of a team.
///
/// # Safety
/// The team has not ended.
unsafe fn work_for(job: Job) {
    // SAFETY: guaranteed by the caller.
    let team = unsafe { &*job.team };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (team.work)(job.worker)))
        && let Ok(mut first) = team.panic.lock()
    {
        first.get_or_insert(panic);
    }
    // The team is not used after this.
    team.open.fetch_sub(1, Ordering::Release);
}
