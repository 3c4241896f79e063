//! Columns of coordinates: from dimensions to the levels of a map, and back.

use super::sort::gather_indices;
use super::{EntryColumns, words};
use crate::memory::reserve;
use crate::{Index, IndexArray, with_indices};
use tamis_ir::diag::Result;
use tamis_ir::format::{DimExpr, Width};

/// The dimensions in order, unsplit.
pub(crate) fn whole(rank: usize) -> Vec<DimExpr> {
    (0..rank).map(DimExpr::Dim).collect()
}

/// The stored coordinates of each entry, from the column of each dimension.
pub(crate) fn store(axes: &[DimExpr], dims: &[IndexArray], shape: &[u64]) -> Result<Vec<IndexArray>> {
    axes.iter()
        .map(|e| match *e {
            DimExpr::Dim(d) => Ok(dims[d].clone()),
            DimExpr::Div(d, k) => mapped(&dims[d], e.extent(shape)?, |c| c / k),
            DimExpr::Mod(d, k) => mapped(&dims[d], e.extent(shape)?, |c| c % k),
            DimExpr::Diff(a, b) => {
                let shift = shape[b].saturating_sub(1);
                zipped(&dims[a], &dims[b], e.extent(shape)?, |a, b| a + (shift - b))
            }
        })
        .collect()
}

/// The column of each dimension, from stored coordinates. Padding gets a coordinate that is out of
/// bounds.
fn restore(axes: &[DimExpr], columns: &[IndexArray], shape: &[u64]) -> Result<Vec<IndexArray>> {
    let place = |wanted: &dyn Fn(&DimExpr) -> bool| {
        axes.iter()
            .position(wanted)
            .and_then(|k| columns.get(k))
            .cloned()
            .unwrap_or(IndexArray::U32(Default::default()))
    };
    let whole = |d: usize| place(&|e| *e == DimExpr::Dim(d));
    (0..shape.len())
        .map(|d| {
            let of = |e: &&DimExpr| e.dimension() == d;
            match axes.iter().find(of).copied() {
                Some(DimExpr::Div(_, k) | DimExpr::Mod(_, k)) => {
                    let quotients = place(&|e| *e == DimExpr::Div(d, k));
                    let remainders = place(&|e| *e == DimExpr::Mod(d, k));
                    let most = shape[d].saturating_add(k);
                    zipped(&quotients, &remainders, most, |q, r| q.saturating_mul(k).saturating_add(r))
                }
                Some(DimExpr::Diff(a, b)) => {
                    let (differences, shift) = (place(&|e| *e == DimExpr::Diff(a, b)), shape[b].saturating_sub(1));
                    // A negative coordinate would be out of range as well.
                    zipped(&differences, &whole(b), u64::MAX, |x, b| (x + b).checked_sub(shift).unwrap_or(u64::MAX))
                }
                _ => Ok(whole(d)),
            }
        })
        .collect()
}

fn mapped(column: &IndexArray, extent: u64, f: impl Fn(u64) -> u64) -> Result<IndexArray> {
    fn typed<I: Index, J: Index>(column: &[I], f: impl Fn(u64) -> u64) -> Result<Vec<J>> {
        let mut out = reserve(column.len(), "coordinates")?;
        out.extend(column.iter().map(|c| J::from_u64(f(c.to_u64()))));
        Ok(out)
    }
    Ok(with_indices!(column, column => match Width::automatic(extent) {
        Width::U32 => typed::<_, u32>(column, f)?.into(),
        _ => typed::<_, u64>(column, f)?.into(),
    }))
}

fn zipped(a: &IndexArray, b: &IndexArray, extent: u64, f: impl Fn(u64, u64) -> u64) -> Result<IndexArray> {
    fn typed<I: Index, J: Index, K: Index>(a: &[I], b: &[J], f: impl Fn(u64, u64) -> u64) -> Result<Vec<K>> {
        let mut out = reserve(a.len(), "coordinates")?;
        out.extend(a.iter().zip(b).map(|(a, b)| K::from_u64(f(a.to_u64(), b.to_u64()))));
        Ok(out)
    }
    Ok(with_indices!(a, a => with_indices!(b, b => match Width::automatic(extent) {
        Width::U32 => typed::<_, _, u32>(a, b, f)?.into(),
        _ => typed::<_, _, u64>(a, b, f)?.into(),
    })))
}

impl EntryColumns {
    /// A column for each dimension, in order.
    pub fn dimensions(&self, shape: &[u64]) -> Result<Vec<IndexArray>> {
        restore(&self.axes, &self.columns()?, shape)
    }

    /// Drops padding.
    pub fn elements(self, shape: &[u64]) -> Result<EntryColumns> {
        if tamis_ir::format::map::is_onto(&self.axes, shape) {
            return Ok(self);
        }
        let mut inside: Vec<u8> = crate::memory::filled(self.len, 1, "the entries of a tensor")?;
        for (column, extent) in self.dimensions(shape)?.iter().zip(shape) {
            with_indices!(column, column => for (inside, c) in inside.iter_mut().zip(column.iter()) {
                *inside &= u8::from(c.to_u64() < *extent);
            });
        }
        let count = inside.iter().map(|x| *x as usize).sum();
        if count == self.len {
            return Ok(self);
        }
        let mut places: Vec<u64> = reserve(count, "the places of entries")?;
        places.extend(inside.iter().enumerate().filter(|(_, inside)| **inside == 1).map(|(at, _)| at as u64));
        let places: IndexArray = places.into();
        let columns = self.columns()?.iter().map(|c| gather_indices(c, &places)).collect::<Result<Vec<_>>>()?;
        let values = self.values.as_ref().map(|values| words::gather(values, &places)).transpose()?;
        Ok(EntryColumns::from_columns(self.axes, columns, values, count))
    }
}
