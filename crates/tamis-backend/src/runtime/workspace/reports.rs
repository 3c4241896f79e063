//! What workspaces have done and needed: their reports outlive them here, so that they can be asked for after a program ran.

use super::Report;
use std::sync::{Mutex, PoisonError};

static SINCE: Mutex<Option<Report>> = Mutex::new(None);

/// Keeps the report of a workspace that goes.
pub(super) fn keep(report: Report) {
    let mut since = SINCE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = since.unwrap_or_default();
    *since = Some(Report {
        inserts: before.inserts.saturating_add(report.inserts),
        flushes: before.flushes.saturating_add(report.flushes),
        merged: before.merged.saturating_add(report.merged),
        settles: before.settles.saturating_add(report.settles),
        accumulation_bytes: before.accumulation_bytes.max(report.accumulation_bytes),
        all_bytes: before.all_bytes.max(report.all_bytes),
        policy_bytes: before.policy_bytes.max(report.policy_bytes),
        sort_bytes: before.sort_bytes.max(report.sort_bytes),
        peak_bytes: before.peak_bytes.max(report.peak_bytes),
    });
}

/// What all workspaces that are gone have done since this was last asked, in all threads: counts of all of them,
/// and the bytes of whichever needed most. `None` if there were none.
///
/// ```
/// use tamis_backend::runtime::workspace::{Description, Merge, OwnWorkspace, take_report};
/// use tamis_ir::{DType, Value, algebra::Op};
/// let mut workspace =
///     OwnWorkspace::new(&Description::new(1, DType::I64, Value::I64(0), Some(Merge::Op(Op::Add)))).unwrap();
/// workspace.reset(&[10]).unwrap();
/// workspace.update(&[7], Value::I64(1)).unwrap();
/// workspace.settle().unwrap();
/// drop(workspace);
/// let report = take_report().unwrap();
/// assert_eq!((report.inserts, report.settles), (1, 1));
/// assert!(report.peak_bytes > 0);
/// assert_eq!(take_report(), None);
/// ```
pub fn take_report() -> Option<Report> {
    SINCE.lock().unwrap_or_else(PoisonError::into_inner).take()
}
