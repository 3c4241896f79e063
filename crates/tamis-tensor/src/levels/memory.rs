//! Allocation that may be refused: every array whose length follows from a shape is made here.

use bytemuck::{Pod, Zeroable};
use std::alloc::Layout;
use tamis_ir::{Code, Diagnostic, diag::Result};

/// Arrays from this size on are backed by large pages where the system has them: filling fresh
/// memory page by page costs more than converting a matrix.
const LARGE: usize = 4 << 20;

/// Below this size the system is not asked how much memory is left.
const ASK: usize = 256 << 20;

/// An empty vector with room for `len` values, or a diagnostic that says what did not fit.
pub(crate) fn reserve<T>(len: usize, what: &str) -> Result<Vec<T>> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    let Some(bytes) = bytes.filter(|bytes| available(*bytes)) else {
        return Err(too_large(len as u64, size_of::<T>(), what));
    };
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| too_large(len as u64, size_of::<T>(), what))?;
    prefer_large_pages(values.as_mut_ptr() as *mut u8, bytes);
    Ok(values)
}

/// `len` copies of `value`.
pub(crate) fn filled<T: Pod>(len: usize, value: T, what: &str) -> Result<Vec<T>> {
    if bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0) {
        return zeroed(len, what);
    }
    let mut values = reserve(len, what)?;
    values.resize(len, value);
    Ok(values)
}

/// `len` zeros, from pages that the system has already cleared when there are many.
pub(crate) fn zeroed<T: Zeroable>(len: usize, what: &str) -> Result<Vec<T>> {
    let refused = || too_large(len as u64, size_of::<T>(), what);
    let layout = Layout::array::<T>(len).map_err(|_| refused())?;
    if layout.size() == 0 || !available(layout.size()) {
        return if layout.size() == 0 { Ok(Vec::new()) } else { Err(refused()) };
    }
    // SAFETY: the layout has a size above zero.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) } as *mut T;
    if memory.is_null() {
        return Err(refused());
    }
    prefer_large_pages(memory as *mut u8, layout.size());
    // SAFETY: the memory comes from the global allocator with the layout of `len` values of `T`, and
    // all bytes zero are a value of `T`.
    Ok(unsafe { Vec::from_raw_parts(memory, len, len) })
}

/// The diagnostic for an array of `count` values that cannot be had.
pub(crate) fn too_large(count: u64, size: usize, what: &str) -> Diagnostic {
    let bytes = count as f64 * size as f64;
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let unit = (bytes.max(1.0).log10() as usize / 3).min(units.len() - 1);
    let amount = bytes / 1000f64.powi(unit as i32);
    Diagnostic::new(Code::E0706, format!("{what} would need {amount:.1} {}, more than this machine can give", units[unit]))
        .help("store the large dimensions in levels that hold only what is there, such as `sparse` (short names: `coo`, `csf`)")
}

/// The product of two sizes, or a diagnostic that the size of a dense level overflows.
pub(crate) fn product(parents: usize, extent: u64) -> Result<usize> {
    let total = (parents as u64).checked_mul(extent).ok_or_else(|| {
        Diagnostic::new(
            Code::E0404,
            format!("a dense level of size {extent} below {parents} positions has more than 2^64 positions"),
        )
        .help("store the large dimensions in levels that hold only what is there, such as `sparse` (short names: `coo`, `csf`)")
    })?;
    usize::try_from(total).map_err(|_| too_large(total, 1, "the positions of a dense level"))
}

/// Whether the system says that this many bytes are left. When it says nothing, allocation will tell.
fn available(bytes: usize) -> bool {
    if bytes < ASK || !cfg!(target_os = "linux") {
        return true;
    }
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return true };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    kilobytes.is_none_or(|kilobytes| bytes / 1024 <= kilobytes)
}

#[cfg(target_os = "linux")]
fn prefer_large_pages(memory: *mut u8, bytes: usize) {
    if bytes < LARGE {
        return;
    }
    let start = (memory as usize).next_multiple_of(4096);
    let end = (memory as usize + bytes) & !4095;
    if end > start {
        // SAFETY: the range lies within memory that the caller has just allocated; the advice does
        // not change its contents, and failure leaves everything as it was.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_large_pages(_memory: *mut u8, _bytes: usize) {
    let _ = LARGE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_diagnostics() {
        assert_eq!(reserve::<u64>(usize::MAX, "it").unwrap_err().code, Code::E0706);
        assert_eq!(reserve::<u64>(1 << 50, "it").unwrap_err().code, Code::E0706);
        assert_eq!(zeroed::<u64>(1 << 50, "it").unwrap_err().code, Code::E0706);
        assert_eq!(filled::<f64>(1 << 60, 1.0, "it").unwrap_err().code, Code::E0706);
        assert_eq!(product(1 << 40, 1 << 40).unwrap_err().code, Code::E0404);
        assert_eq!(filled(3, 7u8, "it").unwrap(), [7, 7, 7]);
        assert_eq!(zeroed::<u32>(0, "it").unwrap(), []);
        assert!(zeroed::<u64>(1 << 20, "it").unwrap().iter().all(|x| *x == 0));
    }
}
