//! Conversion of any format to any other.
//!
//! Every conversion has three steps, each linear in nnz: enumerate the `entries` in storage order,
//! `reorder` them if the other format stores the dimensions in another order, and `build` the
//! levels. Each step has direct routes for `dense`, COO, CSR and CSC (and formats of the same
//! structure) that share arrays if the layouts agree; all other levels go through
//! [`crate::levels::tree`].
//!
//! Fills: an entry that equals the fill stays stored, unless its source stores every coordinate
//! (`dense`, or `singleton` below it), where explicit and implicit fills cannot be distinguished;
//! such entries are dropped.

pub(crate) mod axes;
mod blocked;
mod bucket;
mod build;
mod dense;
mod entries;
mod finalize;
mod last;
pub(crate) mod matrix;
mod merge;
pub(crate) mod numbers;
mod permutation;
pub(crate) mod reorder;
pub(crate) mod sort;
mod structured;
pub(crate) mod words;

pub(crate) use build::{axes as build_axes, build};
pub use finalize::{finalize, written_as};
pub(crate) use permutation::PatternCache;
pub use permutation::{PatternCacheInfo, pattern_cache_info, set_pattern_cache_limit};

pub(crate) use entries::{EntryColumns, First, entries, stored_entries};

use crate::levels::tree;
use crate::{Tensor, ValueArray, memory};
use structured::{FiberIds, Unstored};
use tamis_ir::format::{Format, Leaf, LevelSpec};
use tamis_ir::{Code, DType, Diagnostic, Value, diag::Result};

/// The same tensor in another format; see [`Tensor::convert`].
pub(crate) fn convert(tensor: &Tensor, format: &Format) -> Result<Tensor> {
    match permutation::convert(tensor, format)? {
        Some(converted) => Ok(converted),
        None => convert_directly(tensor, format),
    }
}

/// [`convert`], without the cache of patterns.
fn convert_directly(tensor: &Tensor, format: &Format) -> Result<Tensor> {
    if format.rank() != tensor.rank() {
        return Err(wrong_rank(format, tensor.rank()));
    }
    check_fiber_count(format, tensor.shape(), || tensor.nnz())?;
    let (dtype, fill) = target(tensor, format)?;
    let same_levels = format.levels() == tensor.format().levels() && format.map() == tensor.format().map();
    if same_levels && dtype == tensor.dtype() && (format.leaf() == Leaf::Pattern) == tensor.values().is_none() {
        return Tensor::new(format.clone(), tensor.shape(), fill, tensor.levels().to_vec(), tensor.values().cloned());
    }
    if same_levels && tensor.values().is_none() {
        let values = values_of_pattern(tensor)?;
        return Tensor::new(format.clone(), tensor.shape(), fill, tensor.levels().to_vec(), Some(values));
    }
    if tensor.format().is_all_dense()
        && format.is_all_dense()
        && let (Some(values), Leaf::Element(_)) = (tensor.values(), format.leaf())
        && let (Some(from), Some(to)) = (tensor.format().dim_order(), format.dim_order())
    {
        let values = dense::permute(values, tensor.shape(), &from, &to)?;
        let extents = format.level_extents(tensor.shape())?;
        let levels = tree::from_arrays(format.levels(), &extents, vec![Default::default(); to.len()])?;
        return Tensor::new(format.clone(), tensor.shape(), fill, levels, Some(values));
    }
    if let Some(found) = last::relisted(tensor, format, fill)? {
        return Ok(found);
    }
    by_any_route(tensor, format, fill)
}

/// As [`convert`], for the output of a kernel: equal adjacent runs are merged, and entries of
/// coordinate lists stay stored even if they equal the fill.
pub(crate) fn convert_written(tensor: &Tensor, format: &Format) -> Result<Tensor> {
    if format.rank() != tensor.rank() {
        return Err(wrong_rank(format, tensor.rank()));
    }
    let (_, fill) = target(tensor, format)?;
    if !tree::shares(format.levels())
        && let Some(found) = last::relisted(tensor, format, fill)?
    {
        return Ok(found);
    }
    if let Some(found) = last::last_level(tensor, format, fill)? {
        return Ok(found);
    }
    match structured(tensor, format, fill)? {
        Some(found) => Ok(found),
        None => by_any_route(tensor, format, fill),
    }
}

fn by_any_route(tensor: &Tensor, format: &Format, fill: Value) -> Result<Tensor> {
    if let Some(found) = last::last_level(tensor, format, fill)? {
        return Ok(found);
    }
    if (tree::shares(tensor.format().levels()) || tree::shares(format.levels()))
        && let Some(found) = structured(tensor, format, fill)?
    {
        return Ok(found);
    }
    // Values that equal the fill are padding; a pattern drops zeros, which are of the source's
    // type.
    let padding = if format.leaf() == Leaf::Pattern { Value::zero(tensor.dtype()) } else { fill };
    let entries = entries(tensor, padding)?;
    let entries = reorder::reorder(entries, tensor.shape(), &build::axes(format))?;
    build(format, tensor.shape(), fill, entries)
}

/// Converts between formats of one map level by level, so that a run costs no more than a
/// coordinate does.
fn structured(tensor: &Tensor, format: &Format, fill: Value) -> Result<Option<Tensor>> {
    let (from, to) = (tensor.format().levels(), format.levels());
    let listed = from.iter().any(|level| level.nonunique || level.nonordered);
    if listed || tensor.format().map() != format.map() {
        return Ok(None);
    }
    let mut values = tensor.values();
    let truths;
    if values.is_none() && format.leaf() != Leaf::Pattern {
        truths = values_of_pattern(tensor)?;
        values = Some(&truths);
    }
    let unstored = match (values, format.leaf()) {
        (None, _) => Unstored::Nothing,
        (Some(_), Leaf::Pattern) => Unstored::Number(Value::zero(tensor.dtype())),
        _ => unstored(tensor, to, fill),
    };
    let blank = Some(fill).filter(|_| format.leaf() != Leaf::Pattern);
    let structure = FiberIds::of_levels(tensor.levels(), values, unstored, blank, to)?;
    let kept = values.filter(|_| format.leaf() != Leaf::Pattern);
    build::build_structure(format, tensor.shape(), fill, &structure, kept).map(Some)
}

/// The values of a tensor that these levels do not store: padding, unless they would store it
/// again.
fn unstored(tensor: &Tensor, to: &[LevelSpec], fill: Value) -> Unstored {
    let from = tensor.format().levels();
    let padded = tree::pads(from) && tensor.values().is_some();
    if padded && (tree::filled_from(to)..to.len()).contains(&tree::filled_from(from)) {
        // Padding stays padding, and explicit fills of outer levels stay stored.
        return Unstored::Nothing;
    }
    match (padded, tree::pads(to)) {
        // Padding of the result has the bits of the fill.
        (true, true) => Unstored::Bits(fill),
        (true, false) => Unstored::Number(fill),
        (false, _) => Unstored::Nothing,
    }
}

/// The value type and fill of the result.
fn target(tensor: &Tensor, format: &Format) -> Result<(DType, Value)> {
    let fill = tensor.fill();
    match format.leaf() {
        Leaf::Pattern => {
            if fill.is_truthy() {
                let message = format!("a pattern is false at unstored elements, but this tensor is {fill} there");
                return Err(Diagnostic::new(Code::E0709, message)
                    .help("convert to `element` values, or compare with the fill first, as in `A[i] != 1`"));
            }
            Ok((DType::Bool, Value::Bool(false)))
        }
        Leaf::Element(None) => Ok((tensor.dtype(), fill)),
        Leaf::Element(Some(written)) => match written.cast_exact(tensor.dtype()) {
            Some(written) if written.same_number(fill) => Ok((tensor.dtype(), fill)),
            // The fill of a tensor that stores every coordinate is never read.
            Some(written) if tensor.cell_count() == Some(tensor.nnz() as u64) => Ok((tensor.dtype(), written)),
            _ => Err(crate::construct::another_fill(written, fill)),
        },
    }
}

/// Maximum fibers of a level that are assembled whatever they hold.
const MAX_EMPTY_FIBERS: u64 = 1 << 28;

/// Refuses levels that would mostly be positions of empty fibers, and take more than their share of
/// the free memory: `csr` of a matrix with 2^32 rows and a few entries.
pub(crate) fn check_fiber_count(format: &Format, shape: &[u64], nnz: impl Fn() -> usize) -> Result<()> {
    let extents = format.level_extents(shape)?;
    let mut fibers = 1u64;
    for (level, extent) in format.levels().iter().zip(extents) {
        let full = crate::levels::level_type(level.kind)?.capabilities.full;
        let bytes = usize::try_from(fibers.saturating_mul(4)).unwrap_or(usize::MAX);
        if !full && fibers > MAX_EMPTY_FIBERS && fibers / 64 > nnz() as u64 && !memory::is_modest(bytes) {
            return Err(memory::too_large(fibers, 4, "positions of empty fibers"));
        }
        fibers = fibers.saturating_mul(extent);
        if !full && fibers > MAX_EMPTY_FIBERS {
            fibers = fibers.min(nnz() as u64);
        }
    }
    Ok(())
}

pub(crate) fn wrong_rank(format: &Format, rank: usize) -> Diagnostic {
    tamis_ir::FormatSpec::from(format.clone()).with_rank(rank).err().unwrap_or_else(|| {
        Diagnostic::new(Code::E0603, format!("the format `{format}` is not for rank {rank}"))
            .help("write one level per dimension")
    })
}

/// The values of a pattern: true for stored coordinates, false for padding.
pub(crate) fn values_of_pattern(tensor: &Tensor) -> Result<ValueArray> {
    let count = tree::positions(tensor.levels());
    if !tensor.levels().iter().any(|level| level.level_type().capabilities.holes) {
        return words::repeat(Value::Bool(true), count);
    }
    let reached = tree::reached(tensor.levels())?;
    let values = words::repeat(Value::Bool(true), reached.len())?;
    words::scatter(&values, &reached, count, Value::Bool(false))
}
