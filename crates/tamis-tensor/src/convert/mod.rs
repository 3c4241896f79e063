//! Conversion of any format to any other.
//!
//! Every conversion is three steps, each linear in what is stored: take the `entries` out in storage
//! order, `reorder` them if the other format stores the dimensions in another order, and `build` the levels. Each
//! step has direct routes for `dense`, COO, CSR and CSC (and what is shaped like them) that share
//! arrays wherever the layouts agree; all other levels go through [`crate::levels::tree`].
//!
//! Fills: an entry that equals the fill stays stored, unless it comes from a format that stores every
//! coordinate asked or not (`dense`, or `singleton` below it), where nobody can tell; such entries are
//! dropped.

mod bucket;
mod build;
mod dense;
mod entries;
pub(crate) mod matrix;
pub(crate) mod numbers;
pub(crate) mod reorder;
pub(crate) mod sort;
pub(crate) mod words;

pub(crate) use build::build;
pub(crate) use entries::{Entries, First, entries, stored_entries};

use crate::levels::{storage_order, tree};
use crate::{Tensor, ValueArray};
use tamis_ir::format::{Format, Leaf};
use tamis_ir::{Code, DType, Diagnostic, Value, diag::Result};

/// The same tensor in another format; see [`Tensor::convert`].
pub(crate) fn convert(tensor: &Tensor, format: &Format) -> Result<Tensor> {
    let order = storage_order(format)?;
    if format.rank() != tensor.rank() {
        return Err(wrong_rank(format, tensor.rank()));
    }
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
    {
        let from = storage_order(tensor.format())?;
        let values = dense::permute(values, tensor.shape(), &from, &order)?;
        let assembly = tree::from_arrays(
            format.levels(),
            &extents(tensor.shape(), &order),
            vec![Default::default(); order.len()],
        )?;
        return Tensor::new(format.clone(), tensor.shape(), fill, assembly, Some(values));
    }
    // Padding is what equals the fill; a pattern drops zeros, which are of the source's type.
    let padding = if format.leaf() == Leaf::Pattern { Value::zero(tensor.dtype()) } else { fill };
    let entries = entries(tensor, padding)?;
    let entries = reorder::reorder(entries, tensor.shape(), &order)?;
    build(format, tensor.shape(), fill, entries)
}

/// The value type and fill of the result.
fn target(tensor: &Tensor, format: &Format) -> Result<(DType, Value)> {
    let fill = tensor.fill();
    match format.leaf() {
        Leaf::Pattern => {
            if fill.is_truthy() {
                let message = format!("a pattern is false where nothing is stored, but this tensor is {fill} there");
                return Err(Diagnostic::new(Code::E0709, message)
                    .help("convert to `element` values, or compare with the fill first, as in `A[i] != 1`"));
            }
            Ok((DType::Bool, Value::Bool(false)))
        }
        Leaf::Element(None) => Ok((tensor.dtype(), fill)),
        Leaf::Element(Some(written)) => match written.cast_exact(tensor.dtype()) {
            Some(written) if written.same_number(fill) => Ok((tensor.dtype(), fill)),
            // Nothing reads the fill of a tensor that stores every coordinate.
            Some(written) if tensor.cell_count() == Some(tensor.nnz() as u64) => Ok((tensor.dtype(), written)),
            _ => Err(crate::construct::another_fill(written, fill)),
        },
    }
}

pub(crate) fn wrong_rank(format: &Format, rank: usize) -> Diagnostic {
    tamis_ir::FormatSpec::from(format.clone()).with_rank(rank).err().unwrap_or_else(|| {
        Diagnostic::new(Code::E0603, format!("the format `{format}` is not for rank {rank}"))
            .help("write one level per dimension")
    })
}

/// The sizes of the dimensions that the levels store.
pub(crate) fn extents(shape: &[u64], order: &[usize]) -> Vec<u64> {
    order.iter().map(|d| shape[*d]).collect()
}

/// The value array that a pattern stands for: true where something is stored, false in the holes.
pub(crate) fn values_of_pattern(tensor: &Tensor) -> Result<ValueArray> {
    let count = tree::positions(tensor.levels());
    if count == tensor.nnz() {
        return words::repeat(Value::Bool(true), count);
    }
    let stored = tree::enumerate(tensor.levels())?;
    let values = words::repeat(Value::Bool(true), stored.positions.len())?;
    words::scatter(&values, &stored.positions, count, Value::Bool(false))
}
