//! Storage maps: from the dimensions of a tensor to the coordinates that its levels store, and
//! back.
//!
//! | expression | stores | size |
//! |---|---|---|
//! | `i` | i | n |
//! | `i/k` | i divided by k, rounding down | n/k, rounding up |
//! | `i%k` | i modulo k | the smaller of k and n |
//! | `i-j` | i - j + (m - 1), which is never negative | n + m - 1; 0 if either is 0 |
//!
//! where n is the size of dimension i and m that of j. If k does not divide n, and for differences,
//! some tuples of stored coordinates are padding: they belong to no element, hold the fill, and are
//! skipped by enumeration.

use super::{DimExpr, Format};
use crate::diag::{Code, Diagnostic, Result};

impl DimExpr {
    /// The dimension that it stores, completely or partially; of a difference, the first one.
    ///
    /// ```
    /// use tamis_ir::format::DimExpr;
    /// assert_eq!(DimExpr::Div(1, 4).dimension(), 1);
    /// ```
    pub const fn dimension(self) -> usize {
        match self {
            DimExpr::Dim(d) | DimExpr::Div(d, _) | DimExpr::Mod(d, _) | DimExpr::Diff(d, _) => d,
        }
    }

    /// The number of coordinates of a level that stores it.
    ///
    /// ```
    /// use tamis_ir::format::DimExpr;
    /// let shape = [10, 3];
    /// assert_eq!(DimExpr::Div(0, 4).extent(&shape)?, 3);
    /// assert_eq!(DimExpr::Mod(1, 4).extent(&shape)?, 3);
    /// assert_eq!(DimExpr::Diff(1, 0).extent(&shape)?, 12);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn extent(self, shape: &[u64]) -> Result<u64> {
        let size = |d: usize| shape.get(d).copied().unwrap_or(0);
        Ok(match self {
            DimExpr::Dim(d) => size(d),
            DimExpr::Div(d, k) => size(d).div_ceil(k.max(1)),
            DimExpr::Mod(d, k) => size(d).min(k),
            DimExpr::Diff(a, b) if size(a) == 0 || size(b) == 0 => 0,
            DimExpr::Diff(a, b) => {
                let total = size(a).checked_add(size(b) - 1).filter(|total| *total <= i64::MAX as u64);
                total.ok_or_else(|| {
                    let message = format!("the difference of dimensions of size {} and {} overflows", size(a), size(b));
                    Diagnostic::new(Code::E0404, message).help(
                        "a level has at most 9223372036854775807 coordinates; store each dimension in its own level",
                    )
                })?
            }
        })
    }

    /// The stored coordinate for the coordinates of an element.
    ///
    /// ```
    /// use tamis_ir::format::DimExpr;
    /// assert_eq!(DimExpr::Div(0, 4).store(&[10, 3], &[9, 2]), 2);
    /// assert_eq!(DimExpr::Mod(0, 4).store(&[10, 3], &[9, 2]), 1);
    /// ```
    pub fn store(self, shape: &[u64], coordinates: &[u64]) -> u64 {
        match self {
            DimExpr::Dim(d) => coordinates[d],
            DimExpr::Div(d, k) => coordinates[d] / k.max(1),
            DimExpr::Mod(d, k) => coordinates[d] % k.max(1),
            // Not negative: the second coordinate is below its size.
            DimExpr::Diff(a, b) => (coordinates[a] + shape[b].saturating_sub(1)).saturating_sub(coordinates[b]),
        }
    }
}

/// The number of coordinates of each level.
///
/// ```
/// use tamis_ir::format::{DimExpr, map};
/// assert_eq!(map::extents(&[DimExpr::Div(0, 4), DimExpr::Mod(0, 4)], &[10])?, [3, 4]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn extents(map: &[DimExpr], shape: &[u64]) -> Result<Vec<u64>> {
    map.iter().map(|e| e.extent(shape)).collect()
}

/// True if every tuple of stored coordinates is an element.
///
/// ```
/// use tamis_ir::format::{DimExpr, map};
/// let blocks = [DimExpr::Div(0, 4), DimExpr::Mod(0, 4)];
/// assert!(map::is_onto(&blocks, &[12]) && !map::is_onto(&blocks, &[10]));
/// ```
pub fn is_onto(map: &[DimExpr], shape: &[u64]) -> bool {
    let size = |d: usize| shape.get(d).copied().unwrap_or(0);
    // A tensor without elements has no padding.
    shape.contains(&0)
        || map.iter().all(|e| match *e {
            DimExpr::Dim(_) => true,
            DimExpr::Div(d, k) | DimExpr::Mod(d, k) => size(d) <= k || size(d).is_multiple_of(k.max(1)),
            DimExpr::Diff(_, b) => size(b) <= 1,
        })
}

/// The element of a tuple of stored coordinates; `false` for padding, and `coordinates` are
/// meaningless then.
///
/// ```
/// use tamis_ir::format::{DimExpr, map};
/// let blocks = [DimExpr::Div(0, 4), DimExpr::Mod(0, 4)];
/// let mut element = [0];
/// assert!(map::restore(&blocks, &[10], &[2, 1], &mut element) && element == [9]);
/// assert!(!map::restore(&blocks, &[10], &[2, 3], &mut element), "padding");
/// ```
pub fn restore(map: &[DimExpr], shape: &[u64], stored: &[u64], coordinates: &mut [u64]) -> bool {
    coordinates.fill(0);
    for (e, c) in map.iter().zip(stored) {
        match *e {
            DimExpr::Dim(d) => coordinates[d] = *c,
            DimExpr::Div(d, k) => coordinates[d] = coordinates[d].saturating_add(c.saturating_mul(k)),
            DimExpr::Mod(d, _) => coordinates[d] = coordinates[d].saturating_add(*c),
            DimExpr::Diff(..) => {}
        }
    }
    // The subtracted dimension is stored completely, so it is already restored.
    for (e, c) in map.iter().zip(stored) {
        if let DimExpr::Diff(a, b) = *e {
            match c.saturating_add(coordinates[b]).checked_sub(shape[b].saturating_sub(1)) {
                Some(found) => coordinates[a] = found,
                None => return false,
            }
        }
    }
    coordinates.iter().zip(shape).all(|(c, n)| c < n)
}

impl Format {
    /// The number of coordinates of each level, for a tensor of this shape.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// assert_eq!(Format::parse("bsr(4,2)", 2)?.level_extents(&[10, 5])?, [3, 3, 4, 2]);
    /// let diagonals = Format::parse("(i,j) -> (j-i, i): sparse, dense", 2)?;
    /// assert_eq!(diagonals.level_extents(&[3, 4])?, [6, 3]);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn level_extents(&self, shape: &[u64]) -> Result<Vec<u64>> {
        extents(&self.map, shape)
    }

    /// The stored coordinates of an element: one for each level.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// let format = Format::parse("bsr(4,2)", 2)?;
    /// assert_eq!(format.to_storage(&[10, 5], &[9, 4]), [2, 2, 1, 0]);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    pub fn to_storage(&self, shape: &[u64], coordinates: &[u64]) -> Vec<u64> {
        self.map.iter().map(|e| e.store(shape, coordinates)).collect()
    }

    /// The element of a tuple of stored coordinates; `None` for padding.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// let format = Format::parse("bsr(4,2)", 2)?;
    /// assert_eq!(format.from_storage(&[10, 5], &[2, 2, 1, 0]), Some(vec![9, 4]));
    /// assert_eq!(format.from_storage(&[10, 5], &[2, 2, 1, 1]), None);
    /// # Ok::<(), tamis_ir::Diagnostic>(())
    /// ```
    #[allow(clippy::wrong_self_convention)]
    pub fn from_storage(&self, shape: &[u64], stored: &[u64]) -> Option<Vec<u64>> {
        let mut coordinates = vec![0; self.rank];
        restore(&self.map, shape, stored, &mut coordinates).then_some(coordinates)
    }

    /// True if every tuple of stored coordinates is an element of a tensor of this shape.
    ///
    /// ```
    /// use tamis_ir::Format;
    /// let blocks = Format::parse("bsr(4,4)", 2)?;
    /// assert!(blocks.is_onto(&[8, 12]) && !blocks.is_onto(&[10, 12]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn is_onto(&self, shape: &[u64]) -> bool {
        is_onto(&self.map, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map is a bijection between elements and tuples of stored coordinates without padding,
    /// and padding is counted.
    #[test]
    fn there_and_back() {
        let maps = [
            ("(i,j) -> (j,i): dense, dense", 2),
            ("bsr(2,3)", 2),
            ("(i,j) -> (i%2, j, i/2): dense, dense, dense", 2),
            ("(i,j) -> (j-i, i): dense, dense", 2),
            ("(i,j) -> (i-j, j): dense, dense", 2),
            ("(i,j,k) -> (k/4, j-i, i, k%4): dense, dense, dense, dense", 3),
            ("(i) -> (i/3, i%3): dense, dense", 1),
        ];
        for (text, rank) in maps {
            let format = Format::parse(text, rank).unwrap();
            for shape in [[4u64, 6, 8], [5, 3, 7], [1, 1, 1], [2, 1, 3], [0, 3, 2], [3, 0, 2]] {
                let shape = &shape[..rank];
                let extents = format.level_extents(shape).unwrap();
                let grid = |sizes: &[u64]| {
                    sizes.iter().fold(vec![vec![]], |all: Vec<Vec<u64>>, n| {
                        all.iter().flat_map(|p| (0..*n).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>()).collect()
                    })
                };
                let elements = grid(shape);
                for element in &elements {
                    let stored = format.to_storage(shape, element);
                    assert!(stored.iter().zip(&extents).all(|(c, n)| c < n), "{text} {shape:?} {element:?}");
                    assert_eq!(format.from_storage(shape, &stored).as_ref(), Some(element), "{text} {shape:?}");
                }
                let places = grid(&extents);
                let found = places.iter().filter(|place| format.from_storage(shape, place).is_some()).count();
                assert_eq!(found, elements.len(), "{text} {shape:?}");
                assert_eq!(format.is_onto(shape), found == places.len(), "{text} {shape:?}");
            }
        }
    }

    #[test]
    fn sizes_that_overflow() {
        let format = Format::parse("(i,j) -> (j-i, i): sparse, dense", 2).unwrap();
        let large = i64::MAX as u64;
        assert_eq!(format.level_extents(&[large, large]).unwrap_err().code, Code::E0404);
        assert_eq!(format.level_extents(&[1, large]).unwrap(), [large, 1]);
        assert_eq!(format.level_extents(&[0, large]).unwrap(), [0, 0]);
        let blocks = Format::parse("bsr(4,1)", 2).unwrap();
        assert_eq!(blocks.level_extents(&[large, large]).unwrap(), [large / 4 + 1, large, 4, 1]);
        assert_eq!(blocks.from_storage(&[large, 1], &[u64::MAX, 0, 3, 0]), None);
    }
}
