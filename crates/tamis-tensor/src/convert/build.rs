//! Assembly, the last step of a conversion: levels and values from sorted entries.

use super::blocked::Blocked;
use super::entries::{is_compressed_matrix, is_coordinate_list};
use super::matrix::compress;
use super::reorder::reorder;
use super::structured::FiberIds;
use super::words::scatter;
use super::{EntryColumns, First, dense, words};
use crate::levels::{Level, dense_level, tree, trusted_compressed, trusted_singleton};
use crate::{IndexArray, Tensor, ValueArray};
use std::sync::Arc;
use tamis_ir::format::{DimExpr, Format, Leaf, Width};
use tamis_ir::{Code, Diagnostic, Value, diag::Result};

/// The order of entries that [`build`] takes: the storage order of the format, unless blocks are
/// assembled faster from entries in row-major order.
pub(crate) fn axes(format: &Format) -> Vec<DimExpr> {
    Blocked::of(format).map_or_else(|| format.map().to_vec(), |blocked| blocked.axes())
}

/// A tensor of entries that are sorted by [`axes`].
///
/// `fill` is of the result's type; if the leaf is a pattern, zero values are dropped.
pub(crate) fn build(format: &Format, shape: &[u64], fill: Value, entries: EntryColumns) -> Result<Tensor> {
    super::check_fiber_count(format, shape, || entries.len)?;
    let entries = match (format.leaf(), &entries.values) {
        (Leaf::Pattern, Some(values)) => {
            let zero = Value::zero(values.dtype());
            EntryColumns { values: None, ..entries.without(zero)? }
        }
        _ => entries,
    };
    let entries = match Blocked::of(format) {
        None => entries,
        Some(blocked) => match blocked.build(format, shape, fill, &entries)? {
            Some(tensor) => return Ok(tensor),
            None => reorder(entries, shape, format.map())?,
        },
    };
    let values = match (&entries.values, format.leaf()) {
        (None, Leaf::Element(_)) => Some(words::repeat(Value::Bool(true), entries.len)?),
        (values, _) => values.clone(),
    };
    let extents = format.level_extents(shape)?;
    let specs = format.levels();
    let direct = if is_compressed_matrix(specs) {
        Some(compressed_matrix(format, &extents, &entries)?)
    } else if is_coordinate_list(specs) && (specs.len() == 1 || specs[0].nonunique) {
        Some(coordinate_list(format, &extents, &entries)?)
    } else {
        None
    };
    if let Some(levels) = direct {
        return Tensor::new(format.clone(), shape, fill, levels, values);
    }
    if let (true, Some(values)) = (format.is_all_dense(), &values) {
        let values = dense::fill_in(&entries, values, &extents, fill)?;
        let levels = tree::from_arrays(specs, &extents, vec![Default::default(); specs.len()])?;
        return Tensor::new(format.clone(), shape, fill, levels, Some(values));
    }
    if tree::shares(specs) {
        let entries = EntryColumns { values, ..entries };
        let structure = FiberIds::of_entries(&entries, fill, specs)?;
        return build_structure(format, shape, fill, &structure, entries.values.as_ref());
    }
    let assembly = tree::assemble(specs, &extents, &entries.columns()?, entries.len)?;
    let count = tree::positions(&assembly.levels);
    let values = values.map(|values| scatter(&values, &assembly.positions, count, fill)).transpose()?;
    let tensor = Tensor::new(format.clone(), shape, fill, assembly.levels, values)?;
    check_pattern(tensor, Some(entries.len))
}

/// A tensor of deduplicated fibers.
pub(super) fn build_structure(
    format: &Format,
    shape: &[u64],
    fill: Value,
    structure: &FiberIds,
    values: Option<&ValueArray>,
) -> Result<Tensor> {
    let (levels, values) = structure.build(format, &format.level_extents(shape)?, values, fill)?;
    let tensor = Tensor::new(format.clone(), shape, fill, levels, values)?;
    if tensor.values().is_some() { Ok(tensor) } else { check_pattern(tensor, structure.count()) }
}

/// Checks that a pattern stores this number of true values, and no others.
pub(super) fn check_pattern(tensor: Tensor, entries: Option<usize>) -> Result<Tensor> {
    if tensor.values().is_some() || Some(tensor.nnz()) == entries {
        return Ok(tensor);
    }
    let message = format!(
        "`{}` stores {} coordinates, all of which a pattern makes true, but only {} are",
        tensor.format(),
        tensor.nnz(),
        entries.unwrap_or(usize::MAX)
    );
    Err(Diagnostic::new(Code::E0707, message)
        .help("write the values out with the leaf `element(False)`")
        .help("or make the last level `sparse`, which stores only what is true"))
}

fn crd_width(array: &IndexArray, written: Option<Width>, extent: u64) -> Result<IndexArray> {
    array.to_width(written.unwrap_or(Width::automatic(extent.saturating_sub(1))))
}

fn pos_width(array: &IndexArray, written: Option<Width>, children: usize) -> Result<IndexArray> {
    array.to_width(written.unwrap_or(Width::automatic(children as u64)))
}

/// The levels of CSR and CSC: the coordinate list is shared.
fn compressed_matrix(format: &Format, extents: &[u64], entries: &EntryColumns) -> Result<Vec<Arc<dyn Level>>> {
    let (spec, Some(first), [crd]) = (format.levels()[1], &entries.first, &entries.rest[..]) else {
        return Err(crate::convert::wrong_rank(format, entries.axes.len()));
    };
    let outer = dense_level(1, extents[0])?;
    let pos = match first {
        First::Pos(pos) => pos_width(pos, spec.pos, entries.len)?,
        First::Crd(crd) => compress(crd, outer.children(), spec.pos)?,
    };
    let inner = trusted_compressed(pos, crd_width(crd, spec.crd, extents[1])?, &spec);
    Ok(vec![outer, inner])
}

/// The levels of COO of any rank: all columns are shared.
fn coordinate_list(format: &Format, extents: &[u64], entries: &EntryColumns) -> Result<Vec<Arc<dyn Level>>> {
    let specs = format.levels();
    let first = match &entries.first {
        Some(First::Pos(pos)) => {
            let width = specs[0].crd.unwrap_or(Width::automatic(extents[0].saturating_sub(1)));
            super::matrix::expand(pos, Some(width))?
        }
        Some(First::Crd(crd)) => crd_width(crd, specs[0].crd, extents[0])?,
        None => return Err(crate::convert::wrong_rank(format, 0)),
    };
    let pos =
        IndexArray::with_width(&[0, entries.len as u64], specs[0].pos.unwrap_or(Width::automatic(entries.len as u64)))?;
    let mut levels = vec![trusted_compressed(pos, first, &specs[0])];
    for ((column, spec), extent) in entries.rest.iter().zip(&specs[1..]).zip(&extents[1..]) {
        levels.push(trusted_singleton(crd_width(column, spec.crd, *extent)?));
    }
    Ok(levels)
}
