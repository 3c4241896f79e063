//! Collection of generated entries: memory is checked before allocation, columns get the narrowest
//! width.

use super::stream::{refuse, reserve};
use crate::{Coordinates, IndexArray};
use tamis_ir::diag::Result;
use tamis_ir::format::{MAX_RANK, Width};

/// The largest size of a dimension.
const MAX_DIMENSION: u64 = i64::MAX as u64;

/// Entries in the order of generation, with capacity for all of them.
pub(super) struct EntryCollector {
    shape: Vec<u64>,
    columns: Vec<Column>,
    pub(super) values: Vec<f64>,
}

/// The coordinates of one dimension.
pub(super) enum Column {
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Column {
    fn new(dimension: u64, count: usize) -> Result<Column> {
        match Width::automatic(dimension.saturating_sub(1)) {
            Width::U64 => Ok(Column::U64(reserve(count)?)),
            _ => Ok(Column::U32(reserve(count)?)),
        }
    }

    /// Adds one coordinate, which is below the dimension's size and so fits the width.
    #[inline]
    pub(super) fn push(&mut self, coordinate: u64) {
        match self {
            Column::U32(column) => column.push(coordinate as u32),
            Column::U64(column) => column.push(coordinate),
        }
    }

    /// Adds the same coordinate `count` times.
    pub(super) fn repeat(&mut self, coordinate: u64, count: u64) {
        match self {
            Column::U32(column) => column.extend(std::iter::repeat_n(coordinate as u32, count as usize)),
            Column::U64(column) => column.extend(std::iter::repeat_n(coordinate, count as usize)),
        }
    }

    /// Adds the coordinates of a range.
    pub(super) fn range(&mut self, range: std::ops::Range<u64>) {
        match self {
            Column::U32(column) => column.extend(range.map(|x| x as u32)),
            Column::U64(column) => column.extend(range),
        }
    }
}

impl EntryCollector {
    /// Reserves capacity for `count` entries of a tensor of this shape, or returns a diagnostic.
    pub(super) fn new(shape: &[u64], count: u128) -> Result<EntryCollector> {
        check_shape(shape)?;
        let bytes_each: u64 =
            8 + shape.iter().map(|n| Width::automatic(n.saturating_sub(1)).size() as u64).sum::<u64>();
        let count = check_memory(count, bytes_each)?;
        let columns = shape.iter().map(|n| Column::new(*n, count)).collect::<Result<_>>()?;
        Ok(EntryCollector { shape: shape.to_vec(), columns, values: reserve(count)? })
    }

    /// The two columns of a matrix and its values, for writing.
    pub(super) fn matrix(&mut self) -> Option<(&mut Column, &mut Column, &mut Vec<f64>)> {
        match self.columns.as_mut_slice() {
            [rows, columns] => Some((rows, columns, &mut self.values)),
            _ => None,
        }
    }

    /// Adds an entry by its row-major offset.
    #[inline]
    pub(super) fn push_cell(&mut self, mut cell: u128, value: f64) {
        for (column, n) in self.columns.iter_mut().zip(&self.shape).rev() {
            let n = *n;
            // Most shapes have fewer than 2^64 cells, and narrow division is several times faster.
            let coordinate = match u64::try_from(cell) {
                Ok(narrow) => {
                    cell = u128::from(narrow / n);
                    narrow % n
                }
                Err(_) => {
                    let coordinate = (cell % u128::from(n)) as u64;
                    cell /= u128::from(n);
                    coordinate
                }
            };
            column.push(coordinate);
        }
        self.values.push(value);
    }

    /// The entries as a coordinate list.
    pub(super) fn finish(self) -> Coordinates {
        let columns = self.columns.into_iter().map(|column| match column {
            Column::U32(column) => IndexArray::from(column),
            Column::U64(column) => IndexArray::from(column),
        });
        Coordinates { shape: self.shape, columns: columns.collect(), values: self.values.into() }
    }
}

fn check_shape(shape: &[u64]) -> Result<()> {
    if shape.len() > MAX_RANK {
        let message = format!("a tensor has at most {MAX_RANK} dimensions, not {}", shape.len());
        return Err(refuse(message, "give fewer dimensions"));
    }
    match shape.iter().find(|n| **n > MAX_DIMENSION) {
        Some(n) => {
            let message = format!("a dimension of size {n} is larger than 2^63-1");
            Err(refuse(message, "choose a smaller size"))
        }
        None => Ok(()),
    }
}

/// The number of cells of a tensor of this shape.
pub(super) fn cells(shape: &[u64]) -> Result<u128> {
    check_shape(shape)?;
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1u128, |product, n| product.checked_mul(u128::from(*n)))
        .ok_or_else(|| refuse("the shape has more than 2^128 cells", "choose smaller sizes, or fewer dimensions"))
}

/// Checks that `count` elements of `bytes_each` bytes fit this machine's free memory, if it is
/// known.
pub(super) fn check_memory(count: u128, bytes_each: u64) -> Result<usize> {
    let needed = count.checked_mul(u128::from(bytes_each));
    let limit = available_memory().unwrap_or(u64::MAX / 2);
    match (usize::try_from(count), needed) {
        (Ok(count), Some(needed)) if needed <= u128::from(limit) => Ok(count),
        _ => {
            let needed = needed.map_or("more than 2^128 bytes".to_string(), bytes);
            let message = format!("{count} entries need {needed} of memory, and {} are free", bytes(u128::from(limit)));
            Err(refuse(message, "generate something smaller, or with a lower density"))
        }
    }
}

/// A number of bytes, formatted for people.
fn bytes(count: u128) -> String {
    const UNITS: [&str; 9] = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    let mut scaled = count as f64;
    let mut unit = 0;
    while scaled >= 1000.0 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && scaled < 100.0);
    format!("{scaled:.digits$} {}", UNITS[unit])
}

/// The bytes that can be allocated without swapping, if the system reports it.
///
/// Systems that overcommit grant far more than they have and kill the process on use, so the answer
/// of the allocator alone is not sufficient.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_shapes() {
        assert_eq!(cells(&[]).unwrap(), 1);
        assert_eq!(cells(&[3, 0, 1 << 40]).unwrap(), 0);
        assert_eq!(cells(&[1 << 40, 1 << 40]).unwrap(), 1 << 80);
        assert!(cells(&[1 << 62, 1 << 62, 1 << 62]).is_err());
        assert!(cells(&[u64::MAX]).is_err());
        assert!(cells(&[1; 33]).is_err());
    }

    #[test]
    fn memory_is_checked_before_it_is_taken() {
        for count in [1u128 << 50, 1 << 64, u128::MAX] {
            assert_eq!(check_memory(count, 16).unwrap_err().code, tamis_ir::Code::E0904);
        }
        assert_eq!(check_memory(1000, 16).unwrap(), 1000);
    }

    #[test]
    fn bytes_read_well() {
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(16_000_000), "16.0 MB");
        assert_eq!(bytes(3 << 80), "3.6 YB");
    }
}
