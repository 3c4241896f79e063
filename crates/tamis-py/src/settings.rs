//! Settings: those of the process, and those of a `with tamis.config(...)` block.

use crate::hooks;
use pyo3::prelude::*;
use std::sync::RwLock;
use std::sync::atomic::{AtomicIsize, Ordering};
use tamis::CompileOptions;
use tamis::schedule::Schedule;

/// How calls are made.
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

/// How many blocks with settings of their own there are, in all threads.
static SCOPES: AtomicIsize = AtomicIsize::new(0);

type Given = (bool, bool, Option<u64>, bool, Option<usize>);

fn of((strict, check, check_limit, interpret, threads): Given) -> Settings {
    Settings { strict, check, check_limit, interpret, threads }
}

/// The settings that hold where this is called. Asking Python takes longer than most calls may, so it is only asked while
/// there are blocks.
pub(crate) fn current(py: Python<'_>) -> PyResult<Settings> {
    if SCOPES.load(Ordering::Relaxed) > 0
        && let Some(hooks) = hooks::get(py)
        && let Some(given) = hooks.scope.bind(py).call0()?.extract::<Option<Given>>()?
    {
        return Ok(of(given));
    }
    Ok(*GLOBAL.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Sets what holds outside of blocks.
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

/// What is wrong with the number of threads that the environment asks for, if anything is.
#[pyfunction]
pub(crate) fn threads_mistaken() -> Option<String> {
    tamis_tensor::threads::threads_said().err().map(|d| format!("{}: {}", d.code, d.message))
}

/// Counts blocks that are entered and left.
#[pyfunction]
pub(crate) fn count_scopes(change: isize) {
    SCOPES.fetch_add(change, Ordering::Relaxed);
}
