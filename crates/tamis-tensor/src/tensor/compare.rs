//! Comparing tensors of any formats by what they mean, without densifying either.

use super::Tensor;
use crate::{Coordinates, IndexArray};
use std::cmp::Ordering;
use tamis_ir::Value;
use tamis_ir::format::Leaf;

/// Whether the tensors hold the same numbers, as `same` says, at every coordinate.
pub(super) fn same_values(a: &Tensor, b: &Tensor, same: fn(Value, Value) -> bool) -> bool {
    if a.shape() != b.shape() {
        return false;
    }
    // Next to a dense tensor, another one like it is no burden, and comparing goes cell by cell.
    for (dense, other) in [(a, b), (b, a)] {
        let format = dense.format().clone().with_leaf(Leaf::Element(None));
        if let (true, Some(x), Ok(other)) = (format.is_all_dense(), dense.values(), other.convert(&format)) {
            return other.values().is_some_and(|y| (0..x.len()).all(|k| same(x.get(k), y.get(k))));
        }
    }
    let (x, y) = (a.to_coordinates(), b.to_coordinates());
    let (mut i, mut j) = (0, 0);
    let mut covered = 0u64;
    while i < x.len() || j < y.len() {
        let ordering = compare(&x, i, &y, j);
        let left = if ordering == Ordering::Greater { a.fill() } else { x.values.get(i) };
        let right = if ordering == Ordering::Less { b.fill() } else { y.values.get(j) };
        if !same(left, right) {
            return false;
        }
        i += usize::from(ordering != Ordering::Greater);
        j += usize::from(ordering != Ordering::Less);
        covered += 1;
    }
    // Where neither stores anything, the fills meet.
    a.cell_count() == Some(covered) || same(a.fill(), b.fill())
}

/// Which of two entries comes first; one past the end comes after all.
fn compare(x: &Coordinates, i: usize, y: &Coordinates, j: usize) -> Ordering {
    match (i < x.len(), j < y.len()) {
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        _ => {}
    }
    let at = |columns: &[IndexArray], d: usize, e: usize| columns[d].get(e);
    (0..x.columns.len())
        .fold(Ordering::Equal, |ordering, d| ordering.then_with(|| at(&x.columns, d, i).cmp(&at(&y.columns, d, j))))
}
