//! Comparison of tensors of any formats by their elements, without densifying either.

use super::Tensor;
use crate::{Coordinates, IndexArray};
use std::cmp::Ordering;
use tamis_ir::{Format, Value, diag::Result};

/// Coordinates, and the values of both tensors there.
type Difference = (Vec<u64>, Value, Value);

/// The first coordinates, in row-major order, whose values are not the `same`; `None` if the shapes
/// differ.
pub(super) fn first_difference(
    a: &Tensor,
    b: &Tensor,
    same: &dyn Fn(Value, Value) -> bool,
) -> Result<Option<Difference>> {
    if a.shape() != b.shape() {
        return Ok(None);
    }
    // Beside a dense tensor, another one of its size is affordable, and the comparison is cell by
    // cell.
    if a.format().is_all_dense() || b.format().is_all_dense() {
        let dense = Format::dense(a.rank());
        if let (Ok(a), Ok(b)) = (a.convert(&dense), b.convert(&dense))
            && let (Some(x), Some(y)) = (a.values(), b.values())
        {
            let different = (0..x.len()).find(|k| !same(x.get(*k), y.get(*k)));
            return Ok(different.map(|k| (coordinates_of(k as u64, a.shape()), x.get(k), y.get(k))));
        }
    }
    let (x, y) = (a.try_to_coordinates()?, b.try_to_coordinates()?);
    // Coordinates that neither tensor stores compare the fills; only the first such coordinates
    // matter, and only if the fills differ.
    let mut unstored = Some(vec![0; a.rank()]).filter(|_| a.cell_count() != Some(0) && !same(a.fill(), b.fill()));
    let (mut i, mut j) = (0, 0);
    while i < x.len() || j < y.len() {
        let ordering = compare(&x, i, &y, j);
        let (from, entry) = if ordering == Ordering::Greater { (&y, j) } else { (&x, i) };
        let at = || from.columns.iter().map(|column| column.get(entry)).collect::<Vec<u64>>();
        if let Some(place) = unstored {
            if place != at() {
                unstored = Some(place);
                break;
            }
            unstored = after(place, a.shape());
        }
        let left = if ordering == Ordering::Greater { a.fill() } else { x.values.get(i) };
        let right = if ordering == Ordering::Less { b.fill() } else { y.values.get(j) };
        if !same(left, right) {
            return Ok(Some((at(), left, right)));
        }
        i += usize::from(ordering != Ordering::Greater);
        j += usize::from(ordering != Ordering::Less);
    }
    Ok(unstored.map(|at| (at, a.fill(), b.fill())))
}

/// The coordinates of a row-major offset.
fn coordinates_of(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut coordinates = vec![0; shape.len()];
    for (i, n) in coordinates.iter_mut().zip(shape).rev() {
        *i = number % n;
        number /= n;
    }
    coordinates
}

/// The next coordinates in row-major order.
fn after(mut coordinates: Vec<u64>, shape: &[u64]) -> Option<Vec<u64>> {
    for (i, n) in coordinates.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < *n {
            return Some(coordinates);
        }
        *i = 0;
    }
    None
}

/// The order of two entries; one past the end is greater than all.
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
