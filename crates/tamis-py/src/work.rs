//! Work that Python need not wait for: other Python threads run meanwhile, panics end here, and forked processes have threads.

use crate::{errors, settings};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tamis::{Code, Diagnostic, Diagnostics};

thread_local! {
    /// Where the last panic of this thread was.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps what a panic says for the exception that is made of it, instead of printing it.
pub(crate) fn catch_panics() {
    std::panic::set_hook(Box::new(|info| PANIC.with(|last| *last.borrow_mut() = Some(info.to_string()))));
}

/// Runs something with the interpreter released. What it reports, and a panic, becomes an exception.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Diagnostics> + Send) -> PyResult<T> {
    let threads = settings::current(py)?.threads;
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| with_threads(threads, work))));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(diagnostics)) => Err(errors::raise(py, &diagnostics)),
        Err(payload) => Err(errors::raise_one(py, bug(&*payload))),
    }
}

/// What is expected to take longer than this many steps, or to look at this many entries, can be interrupted.
pub(crate) const LONG: usize = 1 << 20;

/// How long the last call took, and how much it looked at: whether another one can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Waited {
    nanos: AtomicU64,
    entries: AtomicUsize,
}

/// Nobody loses patience before.
const SOON: u64 = 50_000_000;

impl Waited {
    /// Whether looking at so many entries is known not to take long.
    pub(crate) fn is_short(&self, entries: usize) -> bool {
        let (nanos, before) = (self.nanos.load(Ordering::Relaxed), self.entries.load(Ordering::Relaxed));
        nanos > 0 && (nanos as f64) * (entries as f64) / (before.max(1) as f64) < SOON as f64
    }

    /// Does some work, and remembers how long it took.
    pub(crate) fn time<T>(&self, entries: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let made = work();
        self.entries.store(entries, Ordering::Relaxed);
        self.nanos.store(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        made
    }
}

/// How often somebody who waits looks whether there was an interrupt.
const PATIENCE: Duration = Duration::from_millis(20);

/// [`run`] for what may take long. A kernel cannot be stopped, so it runs on a thread of its own: who presses Ctrl-C has the prompt
/// back at once, and what was computed is thrown away when it is done. Signals reach the main thread only, so others just run it.
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
        // Nobody listens after an interrupt.
        let _ = give.send(outcome.map_err(|payload| bug(&*payload)));
    };
    let builder = std::thread::Builder::new().name("tamis".to_string()).stack_size(STACK);
    if let Err(error) = builder.spawn(guarded) {
        let d = Diagnostic::new(Code::E0706, format!("there is no thread to run this on: {error}"));
        return Err(errors::raise_one(py, d.help("end other programs or threads, and try again")));
    }
    loop {
        let receiver = &mut take;
        match py.detach(move || receiver.recv_timeout(PATIENCE)) {
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

/// As large as the main thread's usually is: compiling nests deeply.
const STACK: usize = 8 << 20;

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    Ok(threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?))
}

/// Runs something short, with the interpreter held.
pub(crate) fn here<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Diagnostics>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(diagnostics)) => Err(errors::raise(py, &diagnostics)),
        Err(payload) => Err(errors::raise_one(py, bug(&*payload))),
    }
}

/// The diagnostic for a panic.
fn bug(payload: &(dyn Any + Send)) -> Diagnostic {
    let said = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let said = said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = PANIC.with(|last| last.borrow_mut().take()).unwrap_or_default();
    Diagnostic::new(Code::E1101, format!("internal error: {said}"))
        .note(place)
        .note("this is a bug in Tamis, and the process can go on")
        .help("please report it with the call that led here; `tamis.config(interpret=True)` runs without the compiler")
}

/// Whether this process was forked from one that may have had threads.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The threads of a forked process. Those of its parent are not there any more, though the shared pool believes so, and
/// whoever waits for them waits forever.
static POOL: AtomicPtr<rayon::ThreadPool> = AtomicPtr::new(null_mut());

/// Called in a process that was just forked.
#[pyfunction]
pub(crate) fn forked() {
    FORKED.store(true, Ordering::Relaxed);
    tamis_tensor::threads::forked();
    // The parent's pool, if it was forked itself, is not freed: that would wait for its threads.
    POOL.store(null_mut(), Ordering::Release);
}

/// Does some work on as many threads as the settings say, of a pool that is there.
fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> T {
    let work = || match threads {
        Some(threads) => tamis::with_threads(threads, work),
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
                // SAFETY: nobody else has seen the pool that was just made.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
    }
    // SAFETY: a pool that was stored is never freed.
    unsafe { &*pool }.install(work)
}
