//! Work without the interpreter lock: other Python threads run meanwhile.
//!
//! Panics become exceptions, long calls react to Ctrl-C, and forked processes get a thread pool of
//! their own.

use crate::{errors, settings};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tamis::diagnostic::Code;
use tamis::{Diagnostic, Diagnostics};

thread_local! {
    /// The message of the last panic of this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the message of a panic for its exception, instead of printing it.
pub(crate) fn catch_panics() {
    std::panic::set_hook(Box::new(|info| PANIC.with(|last| *last.borrow_mut() = Some(info.to_string()))));
}

/// Runs work with the interpreter released. Diagnostics and panics become exceptions.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Diagnostics> + Send) -> PyResult<T> {
    let threads = settings::current(py)?.threads;
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| with_threads(threads, work))));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(diagnostics)) => Err(errors::raise(py, &diagnostics)),
        Err(payload) => Err(errors::raise_one(py, bug(&*payload))),
    }
}

/// Calls with more stored elements than this in all operands are interruptible.
pub(crate) const LONG: usize = 1 << 20;

/// The time and the nnz of the last call, which predict the time of the next one.
#[derive(Debug, Default)]
pub(crate) struct CallTimes {
    nanos: AtomicU64,
    nnz: AtomicUsize,
}

/// Calls below this time, in nanoseconds, need not be interruptible.
const SHORT_NANOS: u64 = 50_000_000;

impl CallTimes {
    /// True if a call with this nnz is predicted to be short.
    pub(crate) fn is_short(&self, nnz: usize) -> bool {
        let (nanos, before) = (self.nanos.load(Ordering::Relaxed), self.nnz.load(Ordering::Relaxed));
        nanos > 0 && (nanos as f64) * (nnz as f64) / (before.max(1) as f64) < SHORT_NANOS as f64
    }

    /// Runs work, and records its time.
    pub(crate) fn time<T>(&self, nnz: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let made = work();
        self.nnz.store(nnz, Ordering::Relaxed);
        self.nanos.store(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        made
    }
}

/// The interval of checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// [`run`] for interruptible work. A kernel cannot be stopped, so it runs on a thread of its own:
/// Ctrl-C returns immediately, and the result is dropped later. Python delivers signals to its main
/// thread only, so other threads run the work directly.
pub(crate) fn run_long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Diagnostics> + Send + 'static,
) -> PyResult<T> {
    if !is_main_thread(py)? {
        return run(py, work);
    }
    let (give, mut take) = mpsc::sync_channel(1);
    let threads = settings::current(py)?.threads;
    let guarded = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| with_threads(threads, work)));
        // After an interrupt, there is no receiver.
        let _ = give.send(outcome.map_err(|payload| bug(&*payload)));
    };
    let builder = std::thread::Builder::new().name("tamis".to_string()).stack_size(STACK);
    if let Err(error) = builder.spawn(guarded) {
        let d = Diagnostic::new(Code::E0706, format!("there is no thread to run this on: {error}"));
        return Err(errors::raise_one(py, d.help("end other programs or threads, and try again")));
    }
    loop {
        let receiver = &mut take;
        match py.detach(move || receiver.recv_timeout(POLL_INTERVAL)) {
            Ok(Ok(Ok(value))) => return Ok(value),
            Ok(Ok(Err(diagnostics))) => return Err(errors::raise(py, &diagnostics)),
            Ok(Err(bug)) => return Err(errors::raise_one(py, bug)),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let d = Diagnostic::new(Code::E1101, "a thread ended without a result").help("please report it");
                return Err(errors::raise_one(py, d));
            }
        }
    }
}

/// The usual size of a main thread's stack: compilation is deeply recursive.
const STACK: usize = 8 << 20;

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
}

/// Runs short work with the interpreter held.
pub(crate) fn run_attached<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Diagnostics>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(diagnostics)) => Err(errors::raise(py, &diagnostics)),
        Err(payload) => Err(errors::raise_one(py, bug(&*payload))),
    }
}

/// The diagnostic for a panic.
fn bug(payload: &(dyn Any + Send)) -> Diagnostic {
    let message = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = PANIC.with(|last| last.borrow_mut().take()).unwrap_or_default();
    Diagnostic::new(Code::E1101, format!("internal error: {message}"))
        .note(place)
        .note("this is a bug in Tamis, and the process can go on")
        .help("please report it with the call that led here; `tamis.config(interpret=True)` runs without the compiler")
}

/// True if this process was forked from one that may have had threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The thread pool of a forked process. The threads of its parent do not exist in it, and waiting
/// for them would never end.
static POOL: AtomicPtr<rayon::ThreadPool> = AtomicPtr::new(null_mut());

/// Python calls this in the child process after a fork.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, Ordering::Relaxed);
    tamis_tensor::threads::forked();
    // The parent's pool, if it was forked itself, is not freed: that would wait for its threads.
    POOL.store(null_mut(), Ordering::Release);
}

/// Runs work on the configured number of threads, in a forked process on its own pool.
fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> T {
    let work = || match threads {
        Some(threads) => tamis::threads::with_threads(threads, work),
        None => work(),
    };
    if !FORKED.load(Ordering::Relaxed) {
        return work();
    }
    let mut pool = POOL.load(Ordering::Acquire);
    if pool.is_null() {
        let Ok(made) = rayon::ThreadPoolBuilder::new().build() else { return work() };
        let made = Box::into_raw(Box::new(made));
        pool = match POOL.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: no other thread has seen the new pool.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
    }
    // SAFETY: a pool that was stored is never freed.
    unsafe { &*pool }.install(work)
}
