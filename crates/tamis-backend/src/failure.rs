//! Why a kernel stopped, and how that is told to the user.

use std::fmt;
use tamis_ir::kernel::{Elem, Kernel};
use tamis_ir::{Code, Diagnostic};

/// What a kernel writes before it returns a failure. Kernels in C have the same structure under the name `tamis_failure`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawFailure {
    /// The number of the `require` that did not hold, or of the buffer.
    pub which: i64,
    /// The index, or the number of elements asked for, or the number that does not fit.
    pub index: i64,
    /// How many elements there are.
    pub len: i64,
}

/// What the function of a kernel returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Required = 1,
    Memory = 2,
    Bounds = 3,
    Width = 4,
    Policy = 5,
}

/// Why a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum KernelFailure {
    /// A `require` did not hold; this is its message.
    Required(String),
    /// There is no memory for so many elements of a buffer.
    Memory { buffer: String, elements: u64, bytes: u64 },
    /// An element that is not there was accessed (found in check mode only, but for sorting).
    Bounds { buffer: String, index: i64, len: i64 },
    /// A number was stored that its width does not hold (found in check mode only).
    Width { buffer: String, value: i64, width: &'static str },
    /// The policy of the workspace with these values broke its contract.
    Policy { buffer: String, what: &'static str },
    /// The call does not fit the kernel; see the text.
    Call(String),
}

impl KernelFailure {
    pub(crate) fn from_raw(kernel: &Kernel, messages: &[String], status: i32, raw: RawFailure) -> KernelFailure {
        let which = usize::try_from(raw.which).unwrap_or(usize::MAX);
        let buffer = kernel.buffers.get(which);
        let name = || buffer.map_or_else(|| "?".to_string(), |buffer| buffer.name.clone());
        if status == Status::Required as i32 {
            return KernelFailure::Required(messages.get(which).cloned().unwrap_or_default());
        }
        if status == Status::Memory as i32 {
            let elements = raw.index.max(0) as u64;
            let bytes = elements.saturating_mul(buffer.map_or(1, |buffer| buffer.elem.size() as u64));
            return KernelFailure::Memory { buffer: name(), elements, bytes };
        }
        if status == Status::Policy as i32 {
            let what = ["panicked", "located an element that does not exist", "had no capacity for a first element"];
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
    pub fn diagnostic(&self) -> Diagnostic {
        let message = self.to_string();
        match self {
            // What does not fit a format is no subscript out of range.
            KernelFailure::Required(_) if message.contains("one coordinate per fiber") => {
                Diagnostic::new(Code::E0707, message).help("use `sparse` for this level, whose fibers have any number of elements")
            }
            KernelFailure::Required(_) if message.contains("written out of order") => Diagnostic::new(Code::E0706, message)
                .help("order the loops by its levels, or use a smaller shape"),
            KernelFailure::Required(_) => {
                Diagnostic::new(Code::E1001, message).help("bound the loop, or make the access permissive with `~`")
            }
            KernelFailure::Memory { buffer, .. } => Diagnostic::new(Code::E0706, message)
                // Lists of coordinates and runs are what such levels have already.
                .help(match ["_crd", "_start", "_end", "_ofs"].iter().any(|array| buffer.ends_with(array)) {
                    true => "what dense tensors and numbers given at run time are added to is stored everywhere: write the number into the program, and as the fill (`tensor(\"csr\", fill=2.0)`), or multiply by something that is mostly 0",
                    false => "store the result in sparse levels, such as `sparse`",
                })
                .help("close other programs, or use a machine with more memory"),
            KernelFailure::Bounds { .. } | KernelFailure::Width { .. } => Diagnostic::new(Code::E1101, message)
                .note("generated code accessed an array out of bounds: an array violates an invariant of its format, or this is a bug in Tamis")
                .help("check the tensors (`tamis info`); if they are fine, please report the program that was run"),
            KernelFailure::Policy { .. } => Diagnostic::new(Code::E1101, message)
                .note("a registered policy is wrong, or this is a bug in Tamis")
                .help("use a built-in one, such as `coord` or `hash`"),
            KernelFailure::Call(_) => Diagnostic::new(Code::E1101, message)
                .note("this is a bug in Tamis")
                .help("please report the program that was run"),
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
                write!(f, "there is no memory for {elements} elements of `{buffer}` ({amount:.1} {unit})")
            }
            KernelFailure::Bounds { buffer, index, len } => {
                write!(f, "`{buffer}[{index}]` is accessed, but `{buffer}` has {len} elements")
            }
            KernelFailure::Width { buffer, value, width } => {
                write!(f, "{value} does not fit the {width} of `{buffer}`")
            }
            KernelFailure::Policy { buffer, what } => write!(f, "the policy of the workspace of `{buffer}` {what}"),
            KernelFailure::Call(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for KernelFailure {}

/// The diagnostic for something that only a bug of ours can cause.
pub(crate) fn bug(what: impl fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::E1101, format!("code generation failed: {what}"))
        .note("this is a bug in Tamis")
        .help("please report the program that was compiled; `--interpret` runs it in the interpreter")
}
