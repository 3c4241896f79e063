//! Finalization of kernel outputs: conversion from the written format to the requested one.
//!
//! Kernels append coordinates, or runs of them, in order. Equal adjacent fibers, block lengths, and
//! blocks of a split dimension are known only at the end, so kernels write simpler formats.

use super::{convert_written, last, merge};
use crate::Tensor;
use crate::levels::tree;
use tamis_ir::diag::Result;
use tamis_ir::format::{Format, Leaf, LevelKind, LevelSpec};

/// The format that a kernel writes for a tensor of this format; [`finalize`] converts it.
///
/// Runs of any kind are written as `sparse_runs`, blocks and bands as `sparse`, and formats whose
/// map splits or combines dimensions as coordinate lists (or `dense`, if all their levels are). A
/// pattern stores only true values while it is written, so if the levels of a pattern pad (`dense`,
/// a `singleton` below it), its last level is `sparse` until then. Other formats are written
/// directly. The width of coordinates stays; positions of a changed level have any width, because
/// there may be more of them.
///
/// ```
/// use tamis_ir::Format;
/// use tamis_tensor::written_as;
/// let written = |text: &str| Format::parse(text, 2).map(|format| written_as(&format).to_string());
/// assert_eq!(written("dense, runs; pattern")?, "dense, sparse_runs; pattern");
/// assert_eq!(written("dense, band")?, "csr");
/// assert_eq!(written("dense, dense; pattern")?, "csr; pattern");
/// assert_eq!(written("bsr(4,4)")?, "sparse(nonunique), singleton");
/// assert_eq!(written("csc")?, "csc");
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn written_as(format: &Format) -> Format {
    let list = || Format::coo(format.rank()).with_leaf(format.leaf());
    let pattern = format.leaf() == Leaf::Pattern;
    if format.dim_order().is_none() {
        let dense = format.is_all_dense() && !pattern;
        return if dense { Format::dense(format.rank()).with_leaf(format.leaf()) } else { list() };
    }
    let replace = |spec: &LevelSpec| {
        let kind = match spec.kind {
            LevelKind::Runs | LevelKind::Interval => LevelKind::SparseRuns,
            LevelKind::Blocks | LevelKind::Band => LevelKind::Sparse,
            _ => return *spec,
        };
        LevelSpec { kind, pos: None, ..*spec }
    };
    let mut levels: Vec<LevelSpec> = format.levels().iter().map(replace).collect();
    if pattern
        && tree::pads(&levels)
        && let Some(last) = levels.last_mut()
    {
        *last = LevelSpec { crd: last.crd, ..LevelSpec::new(LevelKind::Sparse) };
    }
    if levels == format.levels() {
        return format.clone();
    }
    Format::new(format.rank(), format.map().to_vec(), levels, format.leaf()).unwrap_or_else(|_| list())
}

/// Converts the output of a kernel from its [`written_as`] format to `format`: it is sorted, but
/// may have equal adjacent runs. A fiber that does not fit its level, such as two runs in an
/// `interval`, is a diagnostic.
///
/// ```
/// use tamis_ir::{Format, Value};
/// use tamis_tensor::{LevelArrays, Tensor, finalize, written_as};
/// let format = Format::parse("runs", 1)?;
/// let arrays = [("pos", vec![0u32, 2].into()), ("start", vec![1u32, 2].into()), ("end", vec![2u32, 4].into())];
/// let values = Some(vec![7.0, 7.0].into());
/// let written = Tensor::from_parts(&[6], &written_as(&format), vec![LevelArrays::new(arrays)], values, Value::F64(0.0))?;
/// let finalized = finalize(written, &format)?;
/// assert_eq!(finalized.level_arrays(0).get("end").unwrap().to_vec(), [1, 4, 6]);
/// # Ok::<(), tamis_ir::Diagnostic>(())
/// ```
pub fn finalize(tensor: Tensor, format: &Format) -> Result<Tensor> {
    let specs = format.levels();
    let tensor = match merge::pattern_of_runs(tensor, format)? {
        Ok(merged) => return Ok(merged),
        Err(tensor) => tensor,
    };
    if tensor.format() != format {
        return convert_written(&tensor, format);
    }
    if !tree::shares(specs) {
        return Ok(tensor);
    }
    let last_only = specs.split_last().is_some_and(|(_, above)| !tree::shares(above));
    if let (true, Some((level, above))) = (last_only, tensor.levels().split_last())
        && !last::has_equal_neighbours(level, tree::positions(above), tensor.values())
    {
        return Ok(tensor);
    }
    convert_written(&tensor, format)
}
