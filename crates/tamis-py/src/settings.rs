//! Settings: those of the process, and those of a `with tamis.config(...)` block.

use crate::hooks;
use pyo3::prelude::*;
use std::sync::RwLock;
use std::sync::atomic::{AtomicIsize, Ordering};
use tamis::compile::CompileOptions;
use tamis::schedule::Schedule;

/// The settings of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    pub(crate) strict: bool,
    pub(crate) check: bool,
    pub(crate) check_limit: Option<u64>,
    pub(crate) interpret: bool,
    pub(crate) threads: Option<usize>,
}

impl Settings {
    pub(crate) fn compile_options(&self, schedule: Schedule) -> CompileOptions {
        let Settings { strict, check, check_limit, interpret, .. } = *self;
        CompileOptions { strict, check, check_limit, interpret, schedule }
    }
}

static GLOBAL: RwLock<Settings> =
    RwLock::new(Settings { strict: false, check: false, check_limit: None, interpret: false, threads: None });

/// The number of `with` blocks with settings, in all threads.
static SCOPES: AtomicIsize = AtomicIsize::new(0);

type SettingsTuple = (bool, bool, Option<u64>, bool, Option<usize>);

fn of((strict, check, check_limit, interpret, threads): SettingsTuple) -> Settings {
    Settings { strict, check, check_limit, interpret, threads }
}

/// The settings of the caller. Reading a context variable is slow, so it is read only while there
/// are blocks.
pub(crate) fn current(py: Python<'_>) -> PyResult<Settings> {
    if SCOPES.load(Ordering::Relaxed) > 0
        && let Some(hooks) = hooks::get(py)
        && let Some(given) = hooks.scope.bind(py).call0()?.extract::<Option<SettingsTuple>>()?
    {
        return Ok(of(given));
    }
    Ok(*GLOBAL.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Sets the settings outside of blocks.
#[pyfunction]
pub(crate) fn set_settings(
    strict: bool,
    check: bool,
    check_limit: Option<u64>,
    interpret: bool,
    threads: Option<usize>,
) {
    let mut global = GLOBAL.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    *global = of((strict, check, check_limit, interpret, threads));
}

/// The error in the environment variable for threads, if any.
#[pyfunction]
pub(crate) fn threads_mistaken() -> Option<String> {
    tamis_tensor::threads::threads_from_environment().err().map(|d| format!("{}: {}", d.code, d.message))
}

/// Counts blocks that are entered and left.
#[pyfunction]
pub(crate) fn count_scopes(change: isize) {
    SCOPES.fetch_add(change, Ordering::Relaxed);
}
