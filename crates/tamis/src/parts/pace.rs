//! Whether several threads pay: told by how large the operands are, and by how long calls took.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// With so many entries in all operands, threads share the work from the first call on.
const LARGE: u64 = 1 << 20;

/// A sum of floats of which each part has its own is cut for so many entries, always: how it is rounded must not depend on
/// how long a call took.
const LARGE_SUM: u64 = 1 << 19;

/// A kernel that takes less does not wait for other threads.
const SHORT: Duration = Duration::from_micros(30);

/// Code for parts is made when calls on one thread have taken so long in all, which is about what making it takes.
const PATIENCE: Duration = Duration::from_millis(10);

/// Sharing is tried so often before it is compared: the first calls find no memory that was used before, and threads that sleep.
const TRIES: u64 = 16;

/// Where sharing took longer, it is tried again after so many calls: what else the machine does changes.
const AGAIN: u64 = 64;

/// The least times that calls took, in nanoseconds; 0 if there was none.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    alone: AtomicU64,
    together: AtomicU64,
    all_alone: AtomicU64,
    tries: AtomicU64,
    /// Calls on one thread since sharing was tried.
    since: AtomicU64,
    /// Joining many parts takes too long.
    coarse: AtomicBool,
}

impl Pace {
    /// Whether parts should be compiled for operands with so many entries.
    pub(crate) fn is_worth_compiling(&self, entries: u64) -> bool {
        let spent = Duration::from_nanos(self.all_alone.load(Ordering::Relaxed));
        entries >= LARGE || (spent >= PATIENCE && self.least_alone() >= SHORT)
    }

    /// Whether a call should be shared by threads.
    pub(crate) fn is_worth_sharing(&self, entries: u64, rounds: bool) -> bool {
        if rounds {
            return entries >= LARGE_SUM;
        }
        let (alone, together) = (self.alone.load(Ordering::Relaxed), self.together.load(Ordering::Relaxed));
        match (alone, together) {
            (0, _) => entries >= LARGE,
            (_, 0) => self.least_alone() >= SHORT,
            _ => {
                together < alone
                    || self.tries.load(Ordering::Relaxed) < TRIES
                    || self.since.load(Ordering::Relaxed) >= AGAIN
            }
        }
    }

    fn least_alone(&self) -> Duration {
        Duration::from_nanos(self.alone.load(Ordering::Relaxed))
    }

    /// How many parts there are for each thread: several, so that those that take longer than was thought hold up the others
    /// less; one, if joining them takes longer than that gains.
    pub(crate) fn parts_per_thread(&self) -> usize {
        if self.coarse.load(Ordering::Relaxed) { 1 } else { 4 }
    }

    /// Remembers when parts were computed, and when they were joined.
    pub(crate) fn joined(&self, computed: Duration, joined: Duration) {
        if joined.saturating_sub(computed) * 8 > joined {
            self.coarse.store(true, Ordering::Relaxed);
        }
    }

    /// Remembers how long a call took.
    pub(crate) fn took(&self, shared: bool, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let least = if shared { &self.together } else { &self.alone };
        if least.fetch_min(nanos, Ordering::Relaxed) == 0 {
            least.store(nanos, Ordering::Relaxed);
        }
        if shared {
            self.tries.fetch_add(1, Ordering::Relaxed);
            self.since.store(0, Ordering::Relaxed);
        } else {
            self.since.fetch_add(1, Ordering::Relaxed);
            self.all_alone.fetch_add(nanos, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_asked_when_they_pay() {
        let pace = Pace::default();
        assert!(!pace.is_worth_compiling(1000), "nothing is known of a small call");
        assert!(pace.is_worth_compiling(1 << 21) && pace.is_worth_sharing(1 << 21, false), "large from the start");
        for _ in 0..10_000 {
            pace.took(false, Duration::from_micros(5));
        }
        assert!(!pace.is_worth_compiling(1000), "many short calls stay where they are");
        let pace = Pace::default();
        pace.took(false, Duration::from_millis(20));
        assert!(pace.is_worth_compiling(1000) && pace.is_worth_sharing(1000, false), "one long call is enough");
        for k in 0..TRIES {
            assert!(pace.is_worth_sharing(1000, false), "{k}: the first calls say little");
            pace.took(true, Duration::from_millis(30));
        }
        assert!(!pace.is_worth_sharing(1000, false), "sharing was tried, and took longer");
        for _ in 0..AGAIN {
            assert!(!pace.is_worth_sharing(1000, false));
            pace.took(false, Duration::from_millis(20));
        }
        assert!(pace.is_worth_sharing(1000, false), "much may have changed");
        pace.took(true, Duration::from_millis(11));
        assert!(pace.is_worth_sharing(1000, false));
        assert!(!pace.is_worth_sharing(1000, true), "sums depend on sizes alone");
        assert!(pace.is_worth_sharing(1 << 19, true));
    }
}
