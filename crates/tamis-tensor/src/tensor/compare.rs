//! Comparing tensors of any formats by what they mean, without densifying either.

use super::Tensor;
use crate::{Coordinates, IndexArray};
use std::cmp::Ordering;
use tamis_ir::{Format, Value, diag::Result};

/// Coordinates, and what both tensors hold there.
type Difference = (Vec<u64>, Value, Value);

/// The first coordinates, row by row, whose values are not the `same`; none if the shapes differ.
pub(super) fn first_difference(
    a: &Tensor,
    b: &Tensor,
    same: &dyn Fn(Value, Value) -> bool,
) -> Result<Option<Difference>> {
    if a.shape() != b.shape() {
        return Ok(None);
    }
    // Next to a dense tensor, another one like it is no burden, and comparing goes cell by cell.
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
    // Where neither stores anything the fills meet; the first such place only matters if they differ.
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

/// The coordinates of a row-major number.
fn coordinates_of(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut coordinates = vec![0; shape.len()];
    for (i, n) in coordinates.iter_mut().zip(shape).rev() {
        *i = number % n;
        number /= n;
    }
    coordinates
}

/// The coordinates that follow, row by row.
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
