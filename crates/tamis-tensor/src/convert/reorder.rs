//! The middle step of a conversion: entries sorted by another order of the dimensions.

use super::bucket::bucket;
use super::matrix::transpose;
use super::sort::{self, Order, gather_indices, permutation};
use super::{Entries, First, words};
use crate::{IndexArray, ValueArray};
use tamis_ir::diag::Result;

/// The entries sorted by `order`; as they are when that is their order.
pub(crate) fn reorder(entries: Entries, shape: &[u64], order: &[usize]) -> Result<Entries> {
    if entries.order == order {
        return Ok(entries);
    }
    if let ([major, minor], Some(first), [crd]) = (order, &entries.first, &entries.rest[..])
        && countable(shape[*major], entries.len)
    {
        let values = entries.values.as_ref();
        let sorted = transpose(first, crd, shape[*minor], shape[*major] as usize, values)?;
        return Ok(Entries {
            order: order.to_vec(),
            first: Some(First::Pos(sorted.pos)),
            rest: vec![sorted.crd],
            values: sorted.values,
            len: entries.len,
        });
    }
    let columns = entries.columns()?;
    let column = |d: &usize| entries.order.iter().position(|e| e == d).and_then(|k| columns.get(k)).cloned();
    let columns: Vec<IndexArray> = order.iter().filter_map(column).collect();
    sort(order.to_vec(), columns, entries.values, entries.len)
}

/// Entries in any order, sorted by their columns; equal tuples, of which the result says whether there are any, stand
/// next to each other in the order given.
pub(crate) fn sort_unsorted(
    shape: &[u64],
    order: &[usize],
    columns: Vec<IndexArray>,
    values: ValueArray,
) -> Result<(Entries, Order)> {
    let len = values.len();
    if let ([major, _], [rows, crd]) = (order, &columns[..])
        && countable(shape[*major], len)
    {
        let sorted = bucket(rows, crd, shape[*major] as usize, &values)?;
        let entries = Entries {
            order: order.to_vec(),
            first: Some(First::Pos(sorted.pos)),
            rest: vec![sorted.crd],
            values: Some(sorted.values),
            len,
        };
        return Ok((entries, if sorted.repeats { Order::Repeating } else { Order::Increasing }));
    }
    let entries = sort(order.to_vec(), columns, Some(values), len)?;
    let found = sort::order(&entries.columns()?.iter().collect::<Vec<_>>(), len);
    Ok((entries, found))
}

/// Distinct entries in any order, sorted by their columns; those that are sorted already stay as they are.
pub(super) fn in_any_order(
    shape: &[u64],
    order: Vec<usize>,
    columns: Vec<IndexArray>,
    values: Option<ValueArray>,
    len: usize,
) -> Result<Entries> {
    if sort::order(&columns.iter().collect::<Vec<_>>(), len) != Order::Unsorted {
        return Ok(Entries::from_columns(order, columns, values, len));
    }
    match values {
        Some(values) => Ok(sort_unsorted(shape, &order, columns, values)?.0),
        None => sort(order, columns, None, len),
    }
}

fn sort(order: Vec<usize>, columns: Vec<IndexArray>, values: Option<ValueArray>, len: usize) -> Result<Entries> {
    let places = permutation(&columns.iter().collect::<Vec<_>>(), len)?;
    let columns = columns.iter().map(|c| gather_indices(c, &places)).collect::<Result<Vec<_>>>()?;
    let values = values.map(|values| words::gather(&values, &places)).transpose()?;
    Ok(Entries::from_columns(order, columns, values, len))
}

/// Whether counters for a whole dimension cost no more than the entries do.
fn countable(extent: u64, entries: usize) -> bool {
    extent <= (entries as u64).saturating_mul(4).saturating_add(1024)
}
