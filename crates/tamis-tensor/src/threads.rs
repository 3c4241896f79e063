//! The number of threads, and fork-join parallelism over the thread pool.
//!
//! The number is the first specified one of: [`with_threads`] around the call, [`set_threads`], the
//! variable `TAMIS_NUM_THREADS`, the number of cores.

mod team;

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tamis_ir::{Code, Diagnostic};

/// The environment variable for the number of threads.
///
/// ```
/// use tamis_tensor::threads::{VARIABLE, threads_from_environment};
/// assert_eq!(VARIABLE, "TAMIS_NUM_THREADS");
/// assert!(std::env::var_os(VARIABLE).is_some() || threads_from_environment()?.is_none());
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub const VARIABLE: &str = "TAMIS_NUM_THREADS";

/// The maximum number of threads.
const MOST: usize = 1024;

/// The number for the process; 0 if unspecified.
static SET: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number for calls of this thread; 0 if unspecified.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

thread_local! {
    /// True if all parallel code runs in parallel, regardless of size.
    static ALWAYS: Cell<bool> = const { Cell::new(false) };
}

/// True if calls of this thread run in parallel regardless of size.
///
/// ```
/// use tamis_tensor::threads::{always, with_threads_always};
/// assert!(!always() && with_threads_always(2, always));
/// ```
pub fn always() -> bool {
    ALWAYS.get()
}

/// [`with_threads`] with all parallel code in parallel regardless of size: for tests.
///
/// ```
/// use tamis_tensor::threads::{threads, with_threads_always};
/// assert_eq!(with_threads_always(2, threads), 2);
/// ```
pub fn with_threads_always<T>(number: usize, work: impl FnOnce() -> T) -> T {
    /// Restores the previous value on drop.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALWAYS.set(self.0);
        }
    }
    let _before = Before(ALWAYS.replace(true));
    with_threads(number, work)
}

/// The number of threads for calls of this thread.
///
/// ```
/// use tamis_tensor::{threads, with_threads};
/// assert_eq!(with_threads(3, threads), 3);
/// ```
pub fn threads() -> usize {
    let specified = [HERE.get(), SET.load(Ordering::Relaxed), from_environment()];
    specified.into_iter().find(|n| *n > 0).unwrap_or_else(rayon::current_num_threads).clamp(1, MOST)
}

/// Sets the number for the whole process; `None` for the environment variable, or the number of
/// cores.
///
/// ```
/// use tamis_tensor::{set_threads, threads};
/// set_threads(Some(2));
/// assert_eq!(threads(), 2);
/// set_threads(None);
/// ```
pub fn set_threads(number: Option<usize>) {
    SET.store(number.unwrap_or(0), Ordering::Relaxed);
}

/// Runs `work` with another number of threads.
///
/// ```
/// use tamis_tensor::{threads, with_threads};
/// let usual = threads();
/// assert_eq!(with_threads(1, threads), 1);
/// assert_eq!(threads(), usual);
/// ```
pub fn with_threads<T>(number: usize, work: impl FnOnce() -> T) -> T {
    /// Restores the previous value on drop, also in a panic.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _before = Before(HERE.replace(number.max(1)));
    work()
}

/// The number in the environment variable; 0 if it is not set or invalid.
fn from_environment() -> usize {
    static ENVIRONMENT: OnceLock<usize> = OnceLock::new();
    *ENVIRONMENT.get_or_init(|| threads_from_environment().ok().flatten().unwrap_or(0))
}

/// The number of threads in the environment variable.
///
/// ```
/// match tamis_tensor::threads::threads_from_environment()? {
///     Some(number) => println!("TAMIS_NUM_THREADS is {number}"),
///     None => println!("TAMIS_NUM_THREADS is not set"),
/// }
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn threads_from_environment() -> Result<Option<usize>, Diagnostic> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.trim().parse::<usize>() {
        _ if text.trim().is_empty() => Ok(None),
        Ok(number) if number > 0 => Ok(Some(number.min(MOST))),
        _ => Err(Diagnostic::new(Code::E0901, format!("{VARIABLE} is `{text}`, which is no number of threads"))
            .help(format!("set {VARIABLE} to 1 or more, or leave it out to use every core"))),
    }
}

/// Resets the thread pool in a process that was just forked: the waiting threads of its parent do
/// not exist there.
///
/// ```
/// // In the child of a fork, before its first parallel call:
/// tamis_tensor::threads::forked();
/// ```
pub fn forked() {
    team::free_all();
}

/// Fork-join: runs `work(0)` to `work(workers - 1)` concurrently, the first here, the others on
/// threads of the pool, or here if no thread is available in time. Returns when all are done.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// tamis_tensor::threads::share(3, &|worker| _ = sum.fetch_add(worker, Ordering::Relaxed));
/// assert_eq!(sum.into_inner(), 0 + 1 + 2);
/// ```
pub fn share(workers: usize, work: &(dyn Fn(usize) + Sync)) {
    let team = std::pin::pin!(team::Team::new(work));
    let team = team.as_ref();
    // Threads that still spin are asked first; the others have to be woken.
    for worker in 1..workers {
        if !team.ask(worker) {
            team.call(worker);
        }
    }
    work(0);
    team.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn the_nearest_number_counts() {
        let inner = with_threads(2, || (threads(), with_threads(5, threads), threads()));
        assert_eq!(inner, (2, 5, 2));
        assert_eq!(with_threads(0, threads), 1, "there is always one");
        let caught = std::panic::catch_unwind(|| with_threads(7, || panic!("on purpose")));
        assert!(caught.is_err() && HERE.get() == 0, "a panic changes nothing");
    }

    #[test]
    fn every_worker_works_once() {
        for workers in [1, 2, 9] {
            let seen = Mutex::new(Vec::new());
            share(workers, &|worker| seen.lock().unwrap().push(worker));
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen, (0..workers).collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_share_at_once_and_again() {
        let sums: Vec<usize> = std::thread::scope(|scope| {
            let many = |k: usize| {
                let mut all = 0;
                for round in 0..300 {
                    let sum = AtomicUsize::new(0);
                    share(3, &|worker| _ = sum.fetch_add(k + round + worker, Ordering::Relaxed));
                    all += sum.into_inner();
                }
                all
            };
            let threads: Vec<_> = (0..4).map(|k| scope.spawn(move || many(k))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let expected = |k: usize| (0..300).map(|round| 3 * (k + round) + 3).sum::<usize>();
        assert_eq!(sums, (0..4).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn work_without_a_free_thread_is_done_here() {
        // All threads of the pool block until this is over: waiting for them would be a deadlock.
        let threads = rayon::current_num_threads();
        let (all, over) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(AtomicUsize::new(0)));
        for _ in 0..threads {
            let (all, over) = (all.clone(), over.clone());
            rayon::spawn(move || {
                all.fetch_add(1, Ordering::Relaxed);
                while over.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
            });
        }
        while all.load(Ordering::Relaxed) < threads {
            std::thread::yield_now();
        }
        let here = std::thread::current().id();
        let seen = Mutex::new(Vec::new());
        share(3, &|worker| seen.lock().unwrap().push((worker, std::thread::current().id())));
        over.store(1, Ordering::Relaxed);
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable_by_key(|(worker, _)| *worker);
        assert_eq!(seen, [(0, here), (1, here), (2, here)]);
    }

    #[test]
    fn a_worker_that_panics_is_heard_of() {
        for who in [0, 1, 2] {
            for _ in 0..20 {
                share(3, &|_| {});
                let work = |worker: usize| assert_ne!(worker, who, "on purpose");
                assert!(std::panic::catch_unwind(|| share(3, &work)).is_err(), "{who}");
            }
        }
        every_worker_works_once();
    }
}
