//! Shared checks of level invariants. Each reports the first violation.

use super::{LevelArrays, LevelType};
use crate::{Index, IndexArray, with_indices};
use tamis_ir::format::{LevelSpec, Width};
use tamis_ir::{Code, Diagnostic, diag::Result};

const REBUILD: &str = "build the tensor from coordinates instead, which sorts, checks and chooses widths";

/// Takes the arrays of a level in the order of its type; rejects missing and additional ones.
pub(super) fn take<const N: usize>(arrays: LevelArrays, row: &LevelType) -> Result<[IndexArray; N]> {
    let name = row.kind.name();
    let names: Vec<&str> = row.arrays.iter().map(|array| array.name).collect();
    let expected = || match &names[..] {
        [] => format!("give `{name}` no arrays"),
        names => format!("give `{name}` exactly these arrays: {}", names.join(", ")),
    };
    let wrong = |message: String| Err(Diagnostic::new(Code::E0701, message).help(expected()));
    if let Some((other, _)) = arrays.arrays.iter().find(|(n, _)| !names.contains(n)) {
        return wrong(format!("`{name}` has no array `{other}`"));
    }
    if let Some(missing) = names.iter().find(|n| arrays.get(n).is_none()) {
        return wrong(format!("`{name}` lacks its array `{missing}`"));
    }
    let mut taken = Vec::with_capacity(N);
    for wanted in &names {
        taken.extend(arrays.arrays.iter().filter(|(n, _)| n == wanted).map(|(_, array)| array.clone()));
    }
    match taken.try_into() {
        Ok(taken) => Ok(taken),
        Err(_) => wrong(format!("an array of `{name}` is given twice")),
    }
}

/// The array has the specified width, if the format specifies one.
pub(super) fn width(name: &str, array: &IndexArray, written: Option<Width>) -> Result<()> {
    match written {
        Some(width) if width != array.width() => {
            let message =
                format!("`{name}` has width {}, but the format specifies {}", array.width().name(), width.name());
            Err(Diagnostic::new(Code::E0701, message)
                .help(format!("convert the array to {}, or leave the widths out of the format", width.name())))
        }
        _ => Ok(()),
    }
}

/// The array has the length that the levels above determine.
pub(super) fn length(name: &str, array: &IndexArray, expected: Option<usize>, because: &str) -> Result<()> {
    match expected {
        Some(expected) if array.len() == expected => Ok(()),
        _ => {
            let expected = expected.map_or("more than memory holds".to_string(), |n| n.to_string());
            let message = format!("`{name}` has length {}, expected {expected}: {because}", array.len());
            Err(Diagnostic::new(Code::E0701, message)
                .help("check the shape and the arrays of the levels above")
                .help(REBUILD))
        }
    }
}

/// The first `len` numbers, zero-copy; the array must have that many.
pub(super) fn first(name: &str, array: IndexArray, len: Option<usize>) -> Result<IndexArray> {
    match len {
        Some(len) if len <= array.len() => Ok(array.truncated(len)),
        _ => {
            let needed = len.map_or("more than memory holds".to_string(), |n| n.to_string());
            let message = format!("`{name}` has length {}, but {needed} are needed", array.len());
            Err(Diagnostic::new(Code::E0701, message).help("check the shape and the arrays of the levels above"))
        }
    }
}

/// `pos` starts at 0, is non-decreasing, and ends at `children`, the length of `list`.
pub(super) fn partition(pos: &IndexArray, list: &str, children: usize) -> Result<()> {
    let wrong = |message: String| {
        Err(Diagnostic::new(Code::E0702, message)
            .help(format!("`pos` starts at 0, never decreases, and ends at the length of `{list}`"))
            .help(REBUILD))
    };
    with_indices!(pos, pos => {
        match pos.first() {
            Some(first) if first.to_u64() == 0 => {}
            Some(first) => return wrong(format!("`pos` starts at {}, not 0", first.to_u64())),
            None => return wrong("`pos` is empty".to_string()),
        }
        if !pos.is_sorted() {
            let at = pos.windows(2).position(|w| w[0] > w[1]).unwrap_or(0);
            return wrong(format!("`pos` decreases from {} to {} at index {}", pos[at].to_u64(), pos[at + 1].to_u64(), at + 1));
        }
        match pos.last() {
            Some(last) if last.to_u64() != children as u64 => {
                wrong(format!("`pos` ends at {}, but `{list}` has length {children}", last.to_u64()))
            }
            _ => Ok(()),
        }
    })
}

/// Every coordinate is below `extent`.
pub(super) fn in_range(crd: &IndexArray, extent: u64) -> Result<()> {
    if crd.largest() < Some(extent) {
        return Ok(());
    }
    with_indices!(crd, crd => match crd.iter().position(|c| c.to_u64() >= extent) {
        Some(at) => {
            let message = format!(
                "coordinate {} at index {at} of `crd` is not below {extent}, the size of its dimension",
                crd[at].to_u64()
            );
            let help = format!("every coordinate lies in 0..{extent}; correct it, or enlarge the shape");
            Err(Diagnostic::new(Code::E0703, message).help(help))
        }
        None => Ok(()),
    })
}

/// Every end, one past a coordinate, is at most `extent`.
pub(super) fn ends_in_range(end: &IndexArray, extent: u64) -> Result<()> {
    if end.largest() <= Some(extent) {
        return Ok(());
    }
    with_indices!(end, end => match end.iter().position(|e| e.to_u64() > extent) {
        Some(at) => {
            let message =
                format!("run {at} ends at {}, beyond {extent}, the size of its dimension", end[at].to_u64());
            let help = format!("every run lies in 0..{extent}; correct it, or enlarge the shape");
            Err(Diagnostic::new(Code::E0703, message).help(help))
        }
        None => Ok(()),
    })
}

/// `ofs` starts at 0 and increases: strictly, unless blocks may be empty.
pub(super) fn offsets(ofs: &IndexArray, empty: bool) -> Result<()> {
    let wrong = |message: String| {
        let rule = if empty { "never decreases" } else { "increases, for every block has a coordinate" };
        Err(Diagnostic::new(Code::E0702, message).help(format!("`ofs` starts at 0 and {rule}")).help(REBUILD))
    };
    with_indices!(ofs, ofs => {
        match ofs.first() {
            Some(first) if first.to_u64() == 0 => {}
            Some(first) => return wrong(format!("`ofs` starts at {}, not 0", first.to_u64())),
            None => return wrong("`ofs` is empty".to_string()),
        }
        if let Some(last) = ofs.last().filter(|last| usize::try_from(last.to_u64()).is_err()) {
            return wrong(format!("`ofs` ends at {}, more than memory holds", last.to_u64()));
        }
        match ofs.windows(2).position(|w| w[0] > w[1] || (!empty && w[0] == w[1])) {
            Some(at) if ofs[at] == ofs[at + 1] => wrong(format!("block {at} has no coordinates (`ofs` is {} twice)", ofs[at].to_u64())),
            Some(at) => wrong(format!("`ofs` decreases from {} to {} at index {}", ofs[at].to_u64(), ofs[at + 1].to_u64(), at + 1)),
            None => Ok(()),
        }
    })
}

/// The diagnostic for runs or blocks that overlap or are out of order.
pub(super) fn misplaced(message: String, rule: &str) -> Diagnostic {
    Diagnostic::new(Code::E0704, message).note(rule).help(REBUILD)
}

/// The coordinates of each fiber are increasing; `pos` is a partition of `crd`.
pub(super) fn increasing(pos: &IndexArray, crd: &IndexArray, spec: &LevelSpec) -> Result<()> {
    with_indices!(pos, pos => with_indices!(crd, crd => {
        for (fiber, w) in pos.windows(2).enumerate() {
            let start = w[0].to_usize();
            let coordinates = &crd[start..w[1].to_usize()];
            let broken = |w: &[_]| if spec.nonunique { w[0] > w[1] } else { w[0] >= w[1] };
            if let Some(at) = coordinates.windows(2).position(broken) {
                let (a, b) = (coordinates[at].to_u64(), coordinates[at + 1].to_u64());
                let message = format!("coordinate {b} follows {a} in fiber {fiber} (index {} of `crd`)", start + at + 1);
                return Err(Diagnostic::new(Code::E0704, message)
                    .note(if spec.nonunique { "the coordinates of a fiber never decrease" } else { "the coordinates of a fiber are strictly increasing" })
                    .help(REBUILD));
            }
        }
        Ok(())
    }))
}

/// The coordinates of each fiber are distinct, in any order; `pos` is a partition of `crd`.
pub(super) fn distinct(pos: &IndexArray, crd: &IndexArray) -> Result<()> {
    with_indices!(pos, pos => with_indices!(crd, crd => {
        let longest = pos.windows(2).map(|w| w[1].to_usize() - w[0].to_usize()).max().unwrap_or(0);
        let mut sorted = crate::memory::reserve(longest, "the coordinates of a fiber")?;
        for (fiber, w) in pos.windows(2).enumerate() {
            let coordinates = &crd[w[0].to_usize()..w[1].to_usize()];
            if coordinates.windows(2).all(|w| w[0] < w[1]) {
                continue;
            }
            sorted.clear();
            sorted.extend_from_slice(coordinates);
            sorted.sort_unstable();
            if let Some(w) = sorted.windows(2).find(|w| w[0] == w[1]) {
                let twice = w[0];
                let mut places = (pos[fiber].to_usize()..).zip(coordinates).filter(|(_, c)| **c == twice).map(|(at, _)| at);
                let (first, second) = (places.next().unwrap_or(0), places.next().unwrap_or(0));
                let message = format!("coordinate {} occurs twice in fiber {fiber} (indices {first} and {second} of `crd`)", twice.to_u64());
                return Err(Diagnostic::new(Code::E0708, message)
                    .note("the coordinates of a nonordered fiber are in any order, each at most once")
                    .help("build the tensor from coordinates instead, which combines duplicates"));
            }
        }
        Ok(())
    }))
}
