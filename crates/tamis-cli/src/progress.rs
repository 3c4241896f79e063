//! Progress bars on standard error: on terminals only, for work of more than half a second.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The bar appears after this time.
const DELAY: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(100);

/// Shows progress until it is dropped.
pub(crate) struct Progress {
    counts: Arc<ProgressCounts>,
    /// Dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ProgressCounts {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Starts a bar with a description.
    pub(crate) fn start(what: impl Into<String>) -> Progress {
        let counts = Arc::new(ProgressCounts::default());
        if !std::io::stderr().is_terminal() {
            return Progress { counts, stop: None, thread: None };
        }
        let (stop, stopped) = channel::<()>();
        let (shared, what) = (counts.clone(), what.into());
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::no_length().with_style(style("{spinner} {msg} {elapsed}")).with_message(what);
            let mut total_known = false;
            loop {
                let total = shared.total.load(Ordering::Relaxed);
                if total > 0 && !total_known {
                    bar.set_style(style("{spinner} {msg} [{bar:30}] {percent}% {eta}"));
                    total_known = true;
                }
                if total_known {
                    bar.set_length(total);
                    bar.set_position(shared.done.load(Ordering::Relaxed));
                }
                bar.tick();
                if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        Progress { counts, stop: Some(stop), thread: Some(thread) }
    }

    /// Updates the bar. Lock-free, so that inner loops on any thread may call it.
    pub(crate) fn update(&self, done: u64, total: u64) {
        self.counts.done.store(done, Ordering::Relaxed);
        self.counts.total.store(total, Ordering::Relaxed);
    }
}

fn style(template: &str) -> ProgressStyle {
    // ASCII characters, which every terminal has.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.progress_chars("=> ").tick_chars("|/-\\ ")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread only draws; if it failed, there is nothing to clean up.
            let _ = thread.join();
        }
    }
}
