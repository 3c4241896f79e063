//! Threads that have just worked wait a moment for more: waking one that sleeps takes longer than many a kernel.
//!
//! A thread that waits has a seat. Whoever has work takes a seat whose thread waits, puts the work there, and looks later whether all that
//! was asked for is done. Threads that sleep are called, which takes a while: work that they have not begun when all else is done is taken back.

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomPinned;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread waits.
const LINGER: Duration = Duration::from_micros(300);

/// How many may wait at a time.
const MOST: usize = 64;

/// Nobody waits here.
const FREE: u8 = 0;
/// A thread waits for work.
const WAITING: u8 = 1;
/// Somebody is about to give it work.
const TAKEN: u8 = 2;
/// It has been given work.
const READY: u8 = 3;

/// Work for somebody who waits, of a team that ends only when it is done.
#[derive(Clone, Copy)]
struct Job {
    team: *const Team<'static>,
    worker: usize,
}

struct Seat {
    state: AtomicU8,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: a job is written by whoever has made the seat `TAKEN`, and read by the thread that waits when it is `READY`.
unsafe impl Sync for Seat {}

static SEATS: [Seat; MOST] = [const { Seat { state: AtomicU8::new(FREE), job: UnsafeCell::new(None) } }; MOST];

/// Work, and how much of it others have been asked for and have not done yet.
pub(super) struct Team<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    open: AtomicUsize,
    /// Those who were called.
    called: Mutex<Vec<Arc<Call>>>,
    /// What the first of them panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Others know where it is.
    _stays: PhantomPinned,
}

/// A call for somebody who sleeps.
struct Call {
    job: Job,
    /// Whether somebody has answered it, or it was taken back.
    over: AtomicBool,
    at: Instant,
}

// SAFETY: the team is used by whoever makes the call be over, which happens once; if that is who was called, it is one of those that the team waits for.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl Call {
    /// Whether the work is the caller's of this function: nobody else has taken it.
    fn take(&self) -> bool {
        !self.over.swap(true, Ordering::AcqRel)
    }

    /// What the thread does that was called.
    fn answer(&self) {
        let mine = self.take();
        if mine {
            // SAFETY: the call was open, so the team waits for this.
            unsafe { work_for(self.job) };
        }
        // Whoever called a moment ago may call again.
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

    /// Calls a thread that sleeps to do `work(worker)`. From now on the team stays where it is.
    pub(super) fn call(self: Pin<&Self>, worker: usize) {
        let team = std::ptr::from_ref(self.get_ref()).cast::<Team<'static>>();
        let call = Arc::new(Call { job: Job { team, worker }, over: AtomicBool::new(false), at: Instant::now() });
        // Known before anybody is called: if that fails, it is taken back.
        self.open.fetch_add(1, Ordering::Relaxed);
        self.called.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        rayon::spawn(move || call.answer());
    }

    /// The work that was not begun by those who were called, and will not be.
    fn take_back(&self) -> Vec<usize> {
        let called = std::mem::take(&mut *self.called.lock().unwrap_or_else(PoisonError::into_inner));
        let mine: Vec<usize> = called.iter().filter(|call| call.take()).map(|call| call.job.worker).collect();
        self.open.fetch_sub(mine.len(), Ordering::Relaxed);
        mine
    }

    /// Asks a thread that waits to do `work(worker)`; false if none does. From now on the team stays where it is.
    pub(super) fn ask(self: Pin<&Self>, worker: usize) -> bool {
        let taken = |seat: &&Seat| {
            seat.state.load(Ordering::Relaxed) == WAITING
                && seat.state.compare_exchange(WAITING, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(seat) = SEATS.iter().find(taken) else { return false };
        self.open.fetch_add(1, Ordering::Relaxed);
        let team = std::ptr::from_ref(self.get_ref()).cast::<Team<'static>>();
        // SAFETY: the seat is taken, so nobody else writes or reads its job.
        unsafe { *seat.job.get() = Some(Job { team, worker }) };
        seat.state.store(READY, Ordering::Release);
        true
    }

    /// Does what nobody has begun, and waits until all that was asked for is done; panics if some of it did.
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
        let mut turns = 0u32;
        while self.open.load(Ordering::Acquire) > 0 {
            pause(&mut turns);
        }
    }
}

impl Drop for Team<'_> {
    /// Others use the work until they have done it, whatever happens here.
    fn drop(&mut self) {
        self.take_back();
        self.all_done();
    }
}

/// Nobody waits any more: of a process that was forked, only the thread that forked it is there.
pub(super) fn leave_all() {
    SEATS.iter().for_each(|seat| seat.state.store(FREE, Ordering::Relaxed));
}

/// Waits a moment; now and then, other threads may run here.
fn pause(turns: &mut u32) {
    *turns = turns.wrapping_add(1);
    if turns.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
}

/// Waits for work, and does what comes, until none has come for a while.
pub(super) fn wait() {
    let free = |seat: &&Seat| {
        seat.state.load(Ordering::Relaxed) == FREE
            && seat.state.compare_exchange(FREE, WAITING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let Some(seat) = SEATS.iter().find(free) else { return };
    let (mut since, mut turns) = (Instant::now(), 0u32);
    loop {
        if seat.state.load(Ordering::Acquire) == READY {
            // SAFETY: the seat is ready, so its job is this thread's.
            let job = unsafe { (*seat.job.get()).take() };
            if let Some(job) = job {
                // SAFETY: the team waits for all that it has asked for before it ends.
                unsafe { work_for(job) };
            }
            seat.state.store(WAITING, Ordering::Release);
            since = Instant::now();
        }
        pause(&mut turns);
        let late = turns.is_multiple_of(16) && since.elapsed() > LINGER;
        if late && seat.state.compare_exchange(WAITING, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Does what a team has asked for.
///
/// # Safety
/// The team has not ended.
unsafe fn work_for(job: Job) {
    // SAFETY: promised by the caller.
    let team = unsafe { &*job.team };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (team.work)(job.worker)))
        && let Ok(mut first) = team.panic.lock()
    {
        first.get_or_insert(panic);
    }
    // Nothing of the team is used after this.
    team.open.fetch_sub(1, Ordering::Release);
}
