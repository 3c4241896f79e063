//! Reordering, the middle step of a conversion: entries sorted by the storage order of another map.

use super::axes::store;
use super::bucket::bucket;
use super::matrix::transpose;
use super::sort::{self, Order, gather_indices, permutation};
use super::{EntryColumns, First, words};
use tamis_ir::diag::Result;
use tamis_ir::format::DimExpr;

/// The entries in the storage order of another map; unchanged if that is their map.
pub(crate) fn reorder(entries: EntryColumns, shape: &[u64], axes: &[DimExpr]) -> Result<EntryColumns> {
    if entries.axes == axes {
        return Ok(entries);
    }
    let transposed = axes.len() == 2 && entries.axes.iter().rev().eq(axes);
    if let (true, Some(first), [crd]) = (transposed, &entries.first, &entries.rest[..]) {
        let (major, minor) = (axes[0].extent(shape)?, axes[1].extent(shape)?);
        if countable(major, entries.len) {
            let values = entries.values.as_ref();
            let sorted = transpose(first, crd, minor, major as usize, values)?;
            return Ok(EntryColumns {
                axes: axes.to_vec(),
                first: Some(First::Pos(sorted.pos)),
                rest: vec![sorted.crd],
                values: sorted.values,
                len: entries.len,
            });
        }
    }
    let columns = store(axes, &entries.dimensions(shape)?, shape)?;
    in_any_order(EntryColumns::from_columns(axes.to_vec(), columns, entries.values, entries.len), shape)
}

/// Unordered entries, sorted by their columns. The flag says whether there are duplicates, which
/// are adjacent in input order.
pub(crate) fn sort_unsorted(entries: EntryColumns, shape: &[u64]) -> Result<(EntryColumns, Order)> {
    let len = entries.len;
    if let ([major, _], [crd], Some(First::Crd(rows)), Some(values)) =
        (&entries.axes[..], &entries.rest[..], &entries.first, &entries.values)
        && let extent = major.extent(shape)?
        && countable(extent, len)
    {
        let sorted = bucket(rows, crd, extent as usize, values)?;
        let entries = EntryColumns {
            axes: entries.axes,
            first: Some(First::Pos(sorted.pos)),
            rest: vec![sorted.crd],
            values: Some(sorted.values),
            len,
        };
        return Ok((entries, if sorted.repeats { Order::Repeating } else { Order::Increasing }));
    }
    let entries = sort(entries)?;
    let found = sort::order(&entries.columns()?.iter().collect::<Vec<_>>(), len);
    Ok((entries, found))
}

/// Distinct unordered entries, sorted by their columns; sorted ones are unchanged.
pub(super) fn in_any_order(entries: EntryColumns, shape: &[u64]) -> Result<EntryColumns> {
    if sort::order(&entries.columns()?.iter().collect::<Vec<_>>(), entries.len) != Order::Unsorted {
        return Ok(entries);
    }
    match entries.values {
        Some(_) => Ok(sort_unsorted(entries, shape)?.0),
        None => sort(entries),
    }
}

fn sort(entries: EntryColumns) -> Result<EntryColumns> {
    let columns = entries.columns()?;
    let places = permutation(&columns.iter().collect::<Vec<_>>(), entries.len)?;
    let columns = columns.iter().map(|c| gather_indices(c, &places)).collect::<Result<Vec<_>>>()?;
    let values = entries.values.map(|values| words::gather(&values, &places)).transpose()?;
    Ok(EntryColumns::from_columns(entries.axes, columns, values, entries.len))
}

/// True if counters for a whole dimension cost no more than the entries do.
fn countable(extent: u64, entries: usize) -> bool {
    extent <= (entries as u64).saturating_mul(4).saturating_add(1024)
}
