//! Options of file readers.

use super::entries::ProgressFn;
use super::fault::{Fault, Parsed};
use crate::Combine;
use tamis_ir::Code;

/// The options of reading a file.
///
/// ```
/// use tamis_tensor::{Combine, io::ReadOptions};
/// let options = ReadOptions { duplicates: Combine::Sum, ..ReadOptions::default() };
/// assert!(options.shape.is_none());
/// ```
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// The reduction of entries with equal coordinates.
    pub duplicates: Combine,
    /// The size of each dimension, for files without one (`.tns`); the sizes of other files must
    /// agree with it.
    pub shape: Option<Vec<u64>>,
    /// A callback that reports the bytes done and the total; it may be called from several threads
    /// concurrently.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// The number of parser threads; [`threads`](crate::threads()) by default.
    pub threads: Option<usize>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        ReadOptions { duplicates: Combine::Error, shape: None, progress: None, threads: None }
    }
}

impl ReadOptions<'_> {
    pub(super) fn progress(&self) -> ProgressFn<'_> {
        self.progress
    }

    /// Runs `work` with the requested number of threads.
    pub(super) fn in_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let threads = self.threads.unwrap_or_else(crate::threads);
        let pool = (threads != rayon::current_num_threads()).then(|| {
            // If the system refuses new threads, the shared pool is used.
            rayon::ThreadPoolBuilder::new().num_threads(threads.clamp(1, 1024)).build().ok()
        });
        let pool = pool.flatten();
        match pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Checks that the shape of a file agrees with the requested one, if any.
pub(super) fn agree(options: &ReadOptions, shape: &[u64], at: usize) -> Parsed<()> {
    match &options.shape {
        Some(wanted) if wanted != shape => {
            let message = format!("the file states the shape {}, not {}", show(shape), show(wanted));
            Err(Fault::new(Code::E0803, at, message).help("leave the shape out: this kind of file states its own"))
        }
        _ => Ok(()),
    }
}

/// A shape, formatted for people.
pub(super) fn show(shape: &[u64]) -> String {
    match shape {
        [] => "()".to_string(),
        _ => shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}
