//! Parallelisation heuristic: decides from operand sizes and measured call times whether threads
//! share a call.
//!
//! In: the number of elements that the operands store, and the time of each call. Out: whether to
//! compile parallel code, whether to use it for this call, and how many chunks each thread gets.
//! The decision for a reduction whose rounding depends on the number of chunks uses sizes alone, so
//! that equal calls give equal bits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// With this many stored elements in all operands, threads share the work from the first call on.
const LARGE: u64 = 1 << 20;

/// A privatised floating-point reduction is parallel from this many stored elements on, whatever
/// calls took: its rounding must not depend on timings.
const LARGE_SUM: u64 = 1 << 19;

/// A shorter kernel stays on one thread.
const SHORT: Duration = Duration::from_micros(30);

/// Parallel code is compiled once sequential calls have taken this long in total, which is about
/// the time to compile it.
const COMPILE_AFTER: Duration = Duration::from_millis(10);

/// The number of parallel calls before their time is compared: the first ones allocate fresh memory
/// and wake sleeping threads.
const TRIES: u64 = 16;

/// If parallel calls took longer, one is tried again after this many sequential calls: the load of
/// the machine changes.
const RETRY_AFTER: u64 = 64;

/// Times of the calls of one executable for one set of sizes, in nanoseconds; 0 where there was no
/// call yet.
#[derive(Debug, Default)]
pub(crate) struct ParallelHeuristic {
    /// The least time of a sequential call.
    sequential: AtomicU64,
    /// The least time of a parallel call.
    parallel: AtomicU64,
    /// The time of all sequential calls.
    sequential_total: AtomicU64,
    parallel_calls: AtomicU64,
    /// Sequential calls since the last parallel one.
    sequential_since: AtomicU64,
    /// True if combining the results of many chunks takes too long.
    coarse: AtomicBool,
}

impl ParallelHeuristic {
    /// True if to compile parallel code for operands that store `nnz` elements.
    pub(crate) fn is_worth_compiling(&self, nnz: u64) -> bool {
        let spent = Duration::from_nanos(self.sequential_total.load(Ordering::Relaxed));
        nnz >= LARGE || (spent >= COMPILE_AFTER && self.least_sequential() >= SHORT)
    }

    /// True if threads should share a call. `rounds` says that the number of chunks changes how the
    /// result is rounded.
    pub(crate) fn is_worth_parallelising(&self, nnz: u64, rounds: bool) -> bool {
        if rounds {
            return nnz >= LARGE_SUM;
        }
        let (sequential, parallel) = (self.sequential.load(Ordering::Relaxed), self.parallel.load(Ordering::Relaxed));
        match (sequential, parallel) {
            (0, _) => nnz >= LARGE,
            (_, 0) => self.least_sequential() >= SHORT,
            _ => {
                parallel < sequential
                    || self.parallel_calls.load(Ordering::Relaxed) < TRIES
                    || self.sequential_since.load(Ordering::Relaxed) >= RETRY_AFTER
            }
        }
    }

    fn least_sequential(&self) -> Duration {
        Duration::from_nanos(self.sequential.load(Ordering::Relaxed))
    }

    /// Chunks per thread: several, for load balancing where work estimates are off; one, where
    /// combining chunks takes longer than that gains.
    pub(crate) fn chunks_per_thread(&self) -> usize {
        if self.coarse.load(Ordering::Relaxed) { 1 } else { 4 }
    }

    /// Records the time until all chunks were computed, and until their results were combined.
    pub(crate) fn record_combination(&self, computed: Duration, combined: Duration) {
        if combined.saturating_sub(computed) * 8 > combined {
            self.coarse.store(true, Ordering::Relaxed);
        }
    }

    /// Records the time of a call.
    pub(crate) fn record_call(&self, parallel: bool, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let least = if parallel { &self.parallel } else { &self.sequential };
        if least.fetch_min(nanos, Ordering::Relaxed) == 0 {
            least.store(nanos, Ordering::Relaxed);
        }
        if parallel {
            self.parallel_calls.fetch_add(1, Ordering::Relaxed);
            self.sequential_since.store(0, Ordering::Relaxed);
        } else {
            self.sequential_since.fetch_add(1, Ordering::Relaxed);
            self.sequential_total.fetch_add(nanos, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_calls_are_chosen_where_they_are_faster() {
        let heuristic = ParallelHeuristic::default();
        assert!(!heuristic.is_worth_compiling(1000), "no time of a small call is known");
        assert!(
            heuristic.is_worth_compiling(1 << 21) && heuristic.is_worth_parallelising(1 << 21, false),
            "large from the start"
        );
        for _ in 0..10_000 {
            heuristic.record_call(false, Duration::from_micros(5));
        }
        assert!(!heuristic.is_worth_compiling(1000), "short calls stay sequential, however many there are");
        let heuristic = ParallelHeuristic::default();
        heuristic.record_call(false, Duration::from_millis(20));
        assert!(
            heuristic.is_worth_compiling(1000) && heuristic.is_worth_parallelising(1000, false),
            "one long call is enough"
        );
        for k in 0..TRIES {
            assert!(heuristic.is_worth_parallelising(1000, false), "{k}: the first parallel calls are not compared");
            heuristic.record_call(true, Duration::from_millis(30));
        }
        assert!(!heuristic.is_worth_parallelising(1000, false), "parallel calls took longer");
        for _ in 0..RETRY_AFTER {
            assert!(!heuristic.is_worth_parallelising(1000, false));
            heuristic.record_call(false, Duration::from_millis(20));
        }
        assert!(heuristic.is_worth_parallelising(1000, false), "a parallel call is tried again");
        heuristic.record_call(true, Duration::from_millis(11));
        assert!(heuristic.is_worth_parallelising(1000, false));
        assert!(!heuristic.is_worth_parallelising(1000, true), "rounding depends on sizes alone");
        assert!(heuristic.is_worth_parallelising(1 << 19, true));
    }
}
