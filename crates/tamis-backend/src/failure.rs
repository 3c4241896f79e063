//! Kernel failures: status codes of compiled code, and their diagnostics.
//!
//! Compiled code returns a status and fills a [`RawFailure`]. [`KernelFailure`] gives both a
//! meaning and a message.

use std::fmt;
use tamis_ir::kernel::{Elem, Kernel};
use tamis_ir::{Code, Diagnostic};

/// The operands of a failure, which a kernel writes before it returns a nonzero status. Kernels in
/// C have the same structure under the name `tamis_failure`.
///
/// ```
/// use tamis_backend::RawFailure;
/// let out_of_bounds = RawFailure { id: 1, index: 10, len: 4 };
/// assert!(out_of_bounds.index >= out_of_bounds.len);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawFailure {
    /// The id of the failed `require` message, or of the buffer.
    pub id: i64,
    /// The index, the requested number of elements, or the value that does not fit.
    pub index: i64,
    /// The number of elements of the buffer.
    pub len: i64,
}

/// Nonzero status codes that the function of a kernel returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Required = 1,
    Memory = 2,
    Bounds = 3,
    Width = 4,
    Policy = 5,
}

/// The reason why a kernel stopped.
///
/// ```
/// use tamis_backend::KernelFailure;
/// let failure = KernelFailure::Bounds { buffer: "x".into(), index: 10, len: 4 };
/// assert!(failure.to_string().contains("x"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum KernelFailure {
    /// The condition of a `require` was false; this is its message.
    Required(String),
    /// Allocation of `elements` elements of a buffer failed.
    Memory { buffer: String, elements: u64, bytes: u64 },
    /// An access out of bounds. Only check mode detects it, except in sorts.
    Bounds { buffer: String, index: i64, len: i64 },
    /// A stored index does not fit its width. Only check mode detects it.
    Width { buffer: String, value: i64, width: &'static str },
    /// The policy of the workspace with these values violated its contract.
    Policy { buffer: String, what: &'static str },
    /// The arguments of the call do not match the kernel.
    Call(String),
}

impl KernelFailure {
    pub(crate) fn from_raw(kernel: &Kernel, messages: &[String], status: i32, raw: RawFailure) -> KernelFailure {
        let id = usize::try_from(raw.id).unwrap_or(usize::MAX);
        let buffer = kernel.buffers.get(id);
        let name = || buffer.map_or_else(|| "?".to_string(), |buffer| buffer.name.clone());
        if status == Status::Required as i32 {
            return KernelFailure::Required(messages.get(id).cloned().unwrap_or_default());
        }
        if status == Status::Memory as i32 {
            let elements = raw.index.max(0) as u64;
            let bytes = elements.saturating_mul(buffer.map_or(1, |buffer| buffer.elem.size() as u64));
            return KernelFailure::Memory { buffer: name(), elements, bytes };
        }
        if status == Status::Policy as i32 {
            let what = ["panicked", "returned a position that holds no entry", "rejected the first entry as full"];
            return KernelFailure::Policy { buffer: name(), what: what[raw.index.clamp(0, 2) as usize] };
        }
        if status == Status::Width as i32 {
            let width = match buffer.map(|buffer| buffer.elem) {
                Some(Elem::Index(width)) => width.name(),
                _ => "its width",
            };
            return KernelFailure::Width { buffer: name(), value: raw.index, width };
        }
        KernelFailure::Bounds { buffer: name(), index: raw.index, len: raw.len }
    }

    /// This failure as a diagnostic.
    ///
    /// ```
    /// use tamis_backend::KernelFailure;
    /// let failure = KernelFailure::Required("`i` is out of bounds".into());
    /// assert_eq!(failure.diagnostic().code, tamis_ir::Code::E1001);
    /// ```
    pub fn diagnostic(&self) -> Diagnostic {
        let message = self.to_string();
        match self {
            // A value that its format cannot store is no subscript out of range.
            KernelFailure::Required(_) if message.contains("one coordinate per fiber") => {
                Diagnostic::new(Code::E0707, message).help("use `sparse` for this level, whose fibers have any number of elements")
            }
            KernelFailure::Required(_) if message.contains("written out of order") => Diagnostic::new(Code::E0706, message)
                .help("order the loops by its levels, or use a smaller shape"),
            KernelFailure::Required(_) => {
                Diagnostic::new(Code::E1001, message).help("bound the loop, or make the access permissive with `~`")
            }
            KernelFailure::Memory { buffer, .. } => Diagnostic::new(Code::E0706, message)
                // Levels with coordinate lists and runs are sparse already.
                .help(match ["_crd", "_start", "_end", "_ofs"].iter().any(|array| buffer.ends_with(array)) {
                    true => "adding a dense tensor or a run-time scalar makes the result dense: write the number into the program, and as the fill value (`tensor(\"csr\", fill=2.0)`), or multiply by a sparse operand",
                    false => "store the result in levels that store only nonzeros, such as `sparse`",
                })
                .help("close other programs, or use a machine with more memory"),
            KernelFailure::Bounds { .. } | KernelFailure::Width { .. } => Diagnostic::new(Code::E1101, message)
                .note("compiled code accessed an array out of bounds: an array breaks an invariant of its format, or this is a bug in Tamis")
                .help("check the tensors with `tamis info`; if they are valid, please report the program"),
            KernelFailure::Policy { .. } => Diagnostic::new(Code::E1101, message)
                .note("a registered policy violates its contract, or this is a bug in Tamis")
                .help("use a built-in policy, such as `coord` or `hash`"),
            KernelFailure::Call(_) => Diagnostic::new(Code::E1101, message)
                .note("this is a bug in Tamis")
                .help("please report the program"),
        }
    }
}

impl fmt::Display for KernelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelFailure::Required(message) => f.write_str(message),
            KernelFailure::Memory { buffer, elements, bytes } => {
                let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
                let unit = ((*bytes).max(1).ilog10() as usize / 3).min(units.len() - 1);
                let amount = *bytes as f64 / 1000f64.powi(unit as i32);
                let unit = units[unit];
                write!(f, "out of memory: {elements} elements of `{buffer}` need {amount:.1} {unit}")
            }
            KernelFailure::Bounds { buffer, index, len } => {
                write!(f, "`{buffer}[{index}]` is out of bounds: `{buffer}` has {len} elements")
            }
            KernelFailure::Width { buffer, value, width } => {
                write!(f, "{value} does not fit into the {width} of `{buffer}`")
            }
            KernelFailure::Policy { buffer, what } => write!(f, "the policy of the workspace of `{buffer}` {what}"),
            KernelFailure::Call(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for KernelFailure {}

/// The diagnostic of an internal error, which only a bug in Tamis can cause.
pub(crate) fn bug(what: impl fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::E1101, format!("code generation failed: {what}"))
        .note("this is a bug in Tamis")
        .help("please report the program; `--interpret` runs it without machine code")
}
