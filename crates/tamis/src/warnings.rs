//! Performance warnings of executables: completed with counts of stored elements, and handed out
//! once.
//!
//! In: the warnings that the compiler attached to an executable, and the operands of a call. Out:
//! the same warnings with one note per sparse operand that they name, so that a reader sees how
//! much of an iteration space is stored. Small operands raise none, because a dense loop over them
//! costs nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tamis_ir::{Code, Diagnostic};
use tamis_tensor::Tensor;

/// Operands with fewer elements than this, stored or not, are not worth a warning.
const SMALL: u128 = 4096;

/// Warnings that no caller has taken yet.
#[derive(Debug, Default)]
pub(crate) struct WarningQueue {
    reported: AtomicBool,
    pending: AtomicBool,
    queue: Mutex<Vec<Diagnostic>>,
}

impl WarningQueue {
    /// Adds the warnings of an executable, the first time that it is called with operands that
    /// matter.
    pub(crate) fn push(&self, warnings: &[Diagnostic], names: &[&str], tensors: &[&Tensor]) {
        if warnings.is_empty() || self.reported.load(Ordering::Relaxed) || tensors.iter().all(|t| elements(t) < SMALL) {
            return;
        }
        self.reported.store(true, Ordering::Relaxed);
        let counted = annotate_warnings(warnings, names, tensors);
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(counted);
        self.pending.store(true, Ordering::Release);
    }

    /// Takes the warnings that were added since the last time.
    pub(crate) fn take(&self) -> Vec<Diagnostic> {
        if !self.pending.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// Adds the nnz of the operands that a warning names, as notes. Warnings of dense loops (E0611)
/// over small operands are left out.
///
/// ```
/// use tamis::prelude::*;
/// let program = Program::parse("
/// def f(A):
///     C = tensor('sparse')
///     for i in _:
///         C[i] = A[i] + 1
///     return C
/// ")?;
/// let a = Tensor::from_dense(&[5000], vec![0.0; 5000].into(), &Format::parse("sparse", 1)?, Value::F64(0.0))?;
/// let compiled = tamis::compile(&program, &Signature::of(&[&a]), &CompileOptions::default())?;
/// let warnings = tamis::compile::annotate_warnings(&compiled.build().warnings, &["A"], &[&a]);
/// assert!(warnings[0].notes.iter().any(|note| note == "`A` stores 0 of 5000 elements"));
/// # Ok::<(), Diagnostics>(())
/// ```
pub fn annotate_warnings(warnings: &[Diagnostic], names: &[&str], tensors: &[&Tensor]) -> Vec<Diagnostic> {
    let complete = |warning: &Diagnostic| {
        let named = names.iter().zip(tensors).filter(|(name, _)| warning.message.contains(&format!("`{name}`")));
        named.fold(warning.clone(), |warning, (name, tensor)| {
            warning.note(format!("`{name}` stores {} of {} elements", tensor.nnz(), elements(tensor)))
        })
    };
    let small = tensors.iter().all(|t| elements(t) < SMALL);
    warnings.iter().filter(|d| !small || d.code != Code::E0611).map(complete).collect()
}

/// The number of elements of a tensor, stored or not.
fn elements(tensor: &Tensor) -> u128 {
    tensor.shape().iter().map(|n| u128::from(*n)).fold(1, u128::saturating_mul)
}
