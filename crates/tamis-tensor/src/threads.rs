//! How many threads share the work of reading, converting and computing, and how work is given to them.
//!
//! The number is, in this order: that of [`with_threads`] around the call, that of [`set_threads`], that of the variable
//! `TAMIS_NUM_THREADS`, and as many as there are cores.

mod team;

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tamis_ir::{Code, Diagnostic};

/// The variable of the environment that says how many threads there are.
pub const VARIABLE: &str = "TAMIS_NUM_THREADS";

/// More threads than this are never used.
const MOST: usize = 1024;

/// The number for the process; 0 if nothing is said.
static SET: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number for what this thread calls; 0 if nothing is said.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

thread_local! {
    /// Whether everything is shared that can be.
    static ALWAYS: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread calls is shared by threads whether it pays or not.
pub fn always() -> bool {
    ALWAYS.get()
}

/// [`with_threads`], where everything is shared that can be, whether it pays or not: for tests.
pub fn with_threads_always<T>(number: usize, work: impl FnOnce() -> T) -> T {
    /// Puts back what was said before.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALWAYS.set(self.0);
        }
    }
    let _before = Before(ALWAYS.replace(true));
    with_threads(number, work)
}

/// How many threads share the work of what this thread calls.
///
/// ```
/// use tamis_tensor::{threads, with_threads};
/// assert_eq!(with_threads(3, threads), 3);
/// ```
pub fn threads() -> usize {
    let said = [HERE.get(), SET.load(Ordering::Relaxed), said_outside()];
    said.into_iter().find(|n| *n > 0).unwrap_or_else(rayon::current_num_threads).clamp(1, MOST)
}

/// Sets the number for the whole process; none for as many as there are cores, or as the environment says.
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

/// Does some work with another number of threads than usual.
///
/// ```
/// use tamis_tensor::{threads, with_threads};
/// let usual = threads();
/// assert_eq!(with_threads(1, threads), 1);
/// assert_eq!(threads(), usual);
/// ```
pub fn with_threads<T>(number: usize, work: impl FnOnce() -> T) -> T {
    /// Puts back what was said before, whether the work ends well or not.
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _before = Before(HERE.replace(number.max(1)));
    work()
}

/// What the environment says; 0 if that is nothing, or nothing that makes sense.
fn said_outside() -> usize {
    static SAID: OnceLock<usize> = OnceLock::new();
    *SAID.get_or_init(|| threads_said().ok().flatten().unwrap_or(0))
}

/// The number of threads that the environment asks for.
pub fn threads_said() -> Result<Option<usize>, Diagnostic> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.trim().parse::<usize>() {
        _ if text.trim().is_empty() => Ok(None),
        Ok(number) if number > 0 => Ok(Some(number.min(MOST))),
        _ => Err(Diagnostic::new(Code::E0901, format!("{VARIABLE} is `{text}`, which is no number of threads"))
            .help(format!("set {VARIABLE} to 1 or more, or leave it out to use every core"))),
    }
}

/// To be called in a process that was just forked: threads of its parent that wait for work are not there.
pub fn forked() {
    team::leave_all();
}

/// Does `work(0)` to `work(workers - 1)` at once: the first here, the others on threads of the pool, or here if none comes in time. Ends when all have ended.
pub fn share(workers: usize, work: &(dyn Fn(usize) + Sync)) {
    let team = std::pin::pin!(team::Team::new(work));
    let team = team.as_ref();
    // Whoever has just worked is asked first; the others have to be woken.
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
    fn work_that_nobody_comes_for_is_done_here() {
        // All threads of the pool wait until this is over: if it waited for them, it would never be.
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
