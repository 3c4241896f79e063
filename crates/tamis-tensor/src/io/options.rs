//! How files are to be read.

use super::entries::Progress;
use super::fault::{Fault, Parsed};
use crate::Combine;
use tamis_ir::Code;

/// How a file is to be read.
///
/// ```
/// use tamis_tensor::{Combine, io::ReadOptions};
/// let options = ReadOptions { duplicates: Combine::Sum, ..ReadOptions::default() };
/// assert!(options.shape.is_none());
/// ```
#[derive(Clone)]
pub struct ReadOptions<'a> {
    /// What becomes of entries with the same coordinates.
    pub duplicates: Combine,
    /// The size of each dimension, for files that do not state it (`.tns`); others must agree with it.
    pub shape: Option<Vec<u64>>,
    /// Told from time to time how many bytes of how many are done; calls may come from several threads at once.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// How many threads parse; [`threads`](crate::threads()) if not said.
    pub threads: Option<usize>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        ReadOptions { duplicates: Combine::Error, shape: None, progress: None, threads: None }
    }
}

impl ReadOptions<'_> {
    pub(super) fn progress(&self) -> Progress<'_> {
        self.progress
    }

    /// Runs `work` with the number of threads asked for.
    pub(super) fn in_pool<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let threads = self.threads.unwrap_or_else(crate::threads);
        let pool = (threads != rayon::current_num_threads()).then(|| {
            // Without threads of our own (the system may refuse them) the shared ones do.
            rayon::ThreadPoolBuilder::new().num_threads(threads.clamp(1, 1024)).build().ok()
        });
        let pool = pool.flatten();
        match pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// The shape that a file states is the one asked for, if any was.
pub(super) fn agree(options: &ReadOptions, shape: &[u64], at: usize) -> Parsed<()> {
    match &options.shape {
        Some(wanted) if wanted != shape => {
            let message = format!("the file states the shape {}, not {}", show(shape), show(wanted));
            Err(Fault::new(Code::E0803, at, message).help("leave the shape out: this kind of file states its own"))
        }
        _ => Ok(()),
    }
}

/// A shape for people.
pub(super) fn show(shape: &[u64]) -> String {
    match shape {
        [] => "()".to_string(),
        _ => shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}
