//! Enumeration, the first step of a conversion: stored entries, as columns of coordinates in
//! storage order.

use super::matrix::expand;
use super::numbers::differing;
use super::sort::gather_indices;
use super::{blocked, dense, words};
use crate::levels::tree;
use crate::{IndexArray, Tensor, ValueArray};
use tamis_ir::format::{DimExpr, LevelKind, LevelSpec};
use tamis_ir::{Value, diag::Result};

/// The coordinates of the outermost level.
#[derive(Clone, Debug)]
pub(crate) enum First {
    /// The coordinate of every entry.
    Crd(IndexArray),
    /// The entries of coordinate c are those from `pos[c]` to `pos[c+1]`.
    Pos(IndexArray),
}

/// Entries in strictly increasing order of their tuples of coordinates, as the levels of some map
/// store them.
#[derive(Clone, Debug)]
pub(crate) struct EntryColumns {
    /// The axes of the columns, most significant first.
    pub axes: Vec<DimExpr>,
    /// The coordinates of the first axis; `None` for a scalar.
    pub first: Option<First>,
    /// The coordinate of every entry along each other axis.
    pub rest: Vec<IndexArray>,
    /// The values; `None` if all are `true`.
    pub values: Option<ValueArray>,
    /// The number of entries.
    pub len: usize,
}

impl EntryColumns {
    /// Entries with a column for each of `axes`.
    pub fn from_columns(
        axes: Vec<DimExpr>,
        columns: Vec<IndexArray>,
        values: Option<ValueArray>,
        len: usize,
    ) -> EntryColumns {
        let mut columns = columns.into_iter();
        let first = columns.next().map(First::Crd);
        EntryColumns { axes, first, rest: columns.collect(), values, len }
    }

    /// A column for each of `axes`.
    pub fn columns(&self) -> Result<Vec<IndexArray>> {
        let first = match &self.first {
            None => None,
            Some(First::Crd(crd)) => Some(crd.clone()),
            Some(First::Pos(pos)) => Some(expand(pos, None)?),
        };
        Ok(first.into_iter().chain(self.rest.iter().cloned()).collect())
    }

    /// The entries at these increasing positions.
    pub fn select(&self, places: &IndexArray) -> Result<EntryColumns> {
        let columns = self.columns()?.iter().map(|c| gather_indices(c, places)).collect::<Result<Vec<_>>>()?;
        let values = self.values.as_ref().map(|values| words::gather(values, places)).transpose()?;
        Ok(EntryColumns::from_columns(self.axes.clone(), columns, values, places.len()))
    }

    /// Drops the entries whose value is the same number as `value`.
    pub fn without(self, value: Value) -> Result<EntryColumns> {
        let Some(values) = &self.values else { return Ok(self) };
        let mask = differing(values, value)?;
        if mask.is_full() { Ok(self) } else { self.select(&mask.places()?) }
    }
}

/// True for levels that store columns of entries directly: `sparse` (or `hash`), then singletons.
pub(super) fn is_coordinate_list(levels: &[LevelSpec]) -> bool {
    matches!(levels, [first, rest @ ..] if matches!(first.kind, LevelKind::Sparse | LevelKind::Hash)
        && rest.iter().all(|l| l.kind == LevelKind::Singleton))
}

/// True for `dense` above a coordinate list: CSR, and CSC if the order is reversed.
pub(super) fn is_compressed_matrix(levels: &[LevelSpec]) -> bool {
    matches!(levels, [outer, inner] if outer.kind == LevelKind::Dense && matches!(inner.kind, LevelKind::Sparse | LevelKind::Hash))
}

/// The entries of a tensor; from formats with padding, without those that equal `padding`, which is
/// of the tensor's type. Every ordered format enumerates its values in the order of its levels, so
/// the entries are sorted.
pub(crate) fn entries(tensor: &Tensor, padding: Value) -> Result<EntryColumns> {
    let (format, shape) = (tensor.format(), tensor.shape());
    let axes = format.map().to_vec();
    let arrays = |k: usize, name: &str| tensor.levels().get(k).and_then(|level| level.arrays().get(name).cloned());
    if format.is_all_dense()
        && let Some(values) = tensor.values()
    {
        return dense::entries(values, tensor.extents(), axes, Some(padding))?.elements(shape);
    }
    if is_nonordered(format.levels()) {
        // The last level stores no padding.
        return stored_entries(tensor);
    }
    if let Some(found) = blocked::entries(tensor, Some(padding))? {
        return Ok(found);
    }
    let values = tensor.values().cloned();
    let len = tree::positions(tensor.levels());
    if is_compressed_matrix(format.levels())
        && let (Some(pos), Some(crd)) = (arrays(1, "pos"), arrays(1, "crd"))
    {
        return EntryColumns { axes, first: Some(First::Pos(pos)), rest: vec![crd], values, len }.elements(shape);
    }
    if is_coordinate_list(format.levels()) {
        let columns: Vec<IndexArray> = (0..axes.len()).filter_map(|k| arrays(k, "crd")).collect();
        return EntryColumns::from_columns(axes, columns, values, len).elements(shape);
    }
    let entries = stored_entries(tensor)?;
    // Only the value distinguishes an entry from padding in these formats.
    if tree::pads(format.levels()) { entries.without(padding) } else { Ok(entries) }
}

/// True if some level stores coordinates in any order.
pub(super) fn is_nonordered(levels: &[LevelSpec]) -> bool {
    levels.iter().any(|level| level.nonordered)
}

/// All entries of a tensor in the order of its levels, padding included.
pub(crate) fn stored_entries(tensor: &Tensor) -> Result<EntryColumns> {
    let (axes, shape) = (tensor.format().map().to_vec(), tensor.shape());
    if let (true, Some(values)) = (tensor.format().is_all_dense(), tensor.values()) {
        return dense::entries(values, tensor.extents(), axes, None)?.elements(shape);
    }
    if let Some(found) = blocked::entries(tensor, None)? {
        return Ok(found);
    }
    let stored = tree::enumerate(tensor.levels())?;
    let values = tensor.values().map(|values| words::gather_positions(values, &stored.positions)).transpose()?;
    let len = stored.positions.len();
    let entries = EntryColumns::from_columns(axes, stored.columns, values, len);
    if is_nonordered(tensor.format().levels()) {
        return super::reorder::in_any_order(entries.elements(shape)?, shape);
    }
    entries.elements(shape)
}
