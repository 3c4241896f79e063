//! Row operations on compressed matrices (CSR): concatenation along either axis, row gather, and
//! reversal of rows.
//!
//! Each copies the arrays of its operands in one pass, row by row. Operands are matrices in the
//! format `dense, sparse` with one leaf, type and fill; the callers in Python see to that, and an
//! operand of another kind is a diagnostic. Results keep every invariant because operands do, so
//! they are not checked again.

use crate::tensor::{PyTensor, wrap};
use crate::{arrays, work};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use std::ops::Range;
use tamis::diagnostic::Code;
use tamis::tensor::{IndexArray, LevelArrays, ValueArray};
use tamis::{Diagnostic, Diagnostics, Tensor};
use tamis_tensor::Index;

/// The arrays of a compressed matrix.
pub(crate) struct Rows {
    pub(crate) pos: IndexArray,
    pub(crate) crd: IndexArray,
    pub(crate) values: Option<ValueArray>,
}

impl Rows {
    /// The arrays of a tensor in the format `csr`.
    pub(crate) fn of(tensor: &Tensor) -> Result<Rows, Diagnostic> {
        let parts = tensor.level_arrays(1);
        let find = |wanted: &str| parts.arrays.iter().find(|(name, _)| *name == wanted).map(|(_, array)| array.clone());
        let csr = tensor.format().short_name().as_deref() == Some("csr");
        match (find("pos"), find("crd")) {
            (Some(pos), Some(crd)) if csr && tensor.rank() == 2 => {
                Ok(Rows { pos, crd, values: tensor.values().cloned() })
            }
            _ => {
                let d = Diagnostic::new(Code::E0707, format!("{} is not a matrix of compressed rows", tensor.format()));
                Err(d.help("convert it first: `t.convert('csr')`"))
            }
        }
    }

    fn row(&self, k: usize) -> Range<usize> {
        self.pos.get(k) as usize..self.pos.get(k + 1) as usize
    }
}

/// A source of one contiguous part of the result: an operand, a range of its stored elements, and
/// what is added to their coordinates.
struct RowRange {
    operand: usize,
    range: Range<usize>,
    shift: u64,
}

/// A tensor whose rows are these chunks; `starts` are the positions of its rows.
fn assembled(
    shape: [u64; 2],
    like: &Tensor,
    operands: &[Rows],
    chunks: &[RowRange],
    starts: Vec<u64>,
) -> Result<Tensor, Diagnostic> {
    let total = starts.last().copied().unwrap_or(0) as usize;
    let narrow = shape[1] <= u64::from(u32::MAX);
    let crd: IndexArray = if narrow {
        coordinates::<u32>(operands, chunks, total)?.into()
    } else {
        coordinates::<u64>(operands, chunks, total)?.into()
    };
    let pos: IndexArray = if total <= u32::MAX as usize {
        starts.iter().map(|x| *x as u32).collect::<Vec<_>>().into()
    } else {
        starts.into()
    };
    let values = like.values().map(|first| gathered_values(first, operands, chunks, total)).transpose()?;
    let levels = vec![LevelArrays::default(), LevelArrays::new([("pos", pos), ("crd", crd)])];
    // SAFETY: rows of the result are ranges of rows of checked tensors, in their order: coordinates
    // rise, and lie inside since each operand's width is added to the shift of the next. `starts`
    // counts them, values have the type of the first operand, whose fill it is, and booleans are
    // those of tensors.
    unsafe { Tensor::from_longer_parts_unchecked(&shape, like.format(), levels, values, like.fill()) }
}

fn coordinates<J: Index>(operands: &[Rows], chunks: &[RowRange], total: usize) -> Result<Vec<J>, Diagnostic> {
    let mut out: Vec<J> = reserve(total)?;
    for chunk in chunks {
        let crd = &operands[chunk.operand].crd;
        tamis_tensor::with_indices!(crd, x => {
            out.extend(x[chunk.range.clone()].iter().map(|c| J::from_u64(c.to_u64() + chunk.shift)))
        });
    }
    Ok(out)
}

/// Memory for so many elements, from the pool that tensors give theirs back to.
fn reserve<T>(count: usize) -> Result<Vec<T>, Diagnostic> {
    let out = tamis_tensor::with_capacity(count);
    if out.capacity() < count {
        let d = Diagnostic::new(Code::E0706, format!("there is no memory for {count} elements"));
        return Err(d.help("free some, or work in parts"));
    }
    Ok(out)
}

/// The values of all chunks; every operand has the type of the first.
fn gathered_values(
    first: &ValueArray,
    operands: &[Rows],
    chunks: &[RowRange],
    total: usize,
) -> Result<ValueArray, Diagnostic> {
    macro_rules! gather {
        ($($kind:ident),*) => {
            match first {
                $(ValueArray::$kind(_) => {
                    let mut out = reserve(total)?;
                    for chunk in chunks {
                        match &operands[chunk.operand].values {
                            Some(ValueArray::$kind(x)) => out.extend_from_slice(&x[chunk.range.clone()]),
                            _ => return Err(Diagnostic::new(Code::E0308, "the matrices have different types")
                                .help("convert them first: `t.astype('f64')`")),
                        }
                    }
                    ValueArray::$kind(out.into())
                })*
            }
        };
    }
    Ok(gather!(Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, C64, C128))
}

fn operands_of(tensors: &[Bound<'_, PyTensor>]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.get().tensor.clone()).collect()
}

/// Compressed matrices one below the other (axis 0) or side by side (axis 1), of sizes that fit.
#[pyfunction]
pub(crate) fn join_rows<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, PyTensor>>,
    axis: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let given = operands_of(&tensors);
    let made = work::run(py, || joined(&given, axis))?;
    wrap(py, made, false)
}

fn joined(given: &[Tensor], axis: usize) -> Result<Tensor, Diagnostics> {
    let Some(first) = given.first() else {
        return Err(Diagnostic::new(Code::E0401, "no tensors to concatenate").help("give one or more").into());
    };
    let operands = given.iter().map(Rows::of).collect::<Result<Vec<_>, _>>()?;
    let size = |d: usize| given.iter().map(|tensor| tensor.shape()[d]).try_fold(0u64, u64::checked_add);
    let Some(total) = size(usize::from(axis != 0)) else {
        let d = Diagnostic::new(Code::E0404, "the result would have more than 2^64 rows or columns");
        return Err(d.help("join fewer matrices").into());
    };
    let other = usize::from(axis == 0);
    if given.iter().any(|tensor| tensor.shape()[other] != first.shape()[other]) {
        let d = Diagnostic::new(Code::E0402, "the matrices have different sizes across the axis");
        return Err(d.help("join matrices of equally many rows or columns").into());
    }
    let (mut chunks, mut starts) = (Vec::new(), vec![0]);
    if axis == 0 {
        let mut before = 0;
        for (operand, rows) in operands.iter().enumerate() {
            let count = rows.pos.len().saturating_sub(1);
            let range = 0..rows.pos.get(count) as usize;
            tamis_tensor::with_indices!(&rows.pos, x => starts.extend(x[1..].iter().map(|p| before + p.to_u64())));
            before += range.end as u64;
            chunks.push(RowRange { operand, range, shift: 0 });
        }
        return Ok(assembled([total, first.shape()[1]], first, &operands, &chunks, starts)?);
    }
    let rows = first.shape()[0] as usize;
    chunks = reserve(rows.saturating_mul(operands.len()))?;
    let mut stored = 0;
    for row in 0..rows {
        let mut shift = 0;
        for (operand, part) in operands.iter().enumerate() {
            let range = part.row(row);
            stored += range.len() as u64;
            chunks.push(RowRange { operand, range, shift });
            shift += given[operand].shape()[1];
        }
        starts.push(stored);
    }
    Ok(assembled([rows as u64, total], first, &operands, &chunks, starts)?)
}

/// Rows of a compressed matrix by number, in any order and as often as they are named.
#[pyfunction]
pub(crate) fn take_rows<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    rows: &Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyAny>> {
    let (given, chosen) = (tensor.get().tensor.clone(), arrays::indices(rows)?);
    let made = work::run(py, || Ok(taken(&given, &chosen)?))?;
    wrap(py, made, false)
}

fn taken(given: &Tensor, chosen: &IndexArray) -> Result<Tensor, Diagnostic> {
    let rows = Rows::of(given)?;
    if let Some(row) = chosen.largest().filter(|row| *row >= given.shape()[0]) {
        let d = Diagnostic::new(Code::E1001, format!("row {row} is out of bounds for {} rows", given.shape()[0]));
        return Err(d.help("rows are counted from 0"));
    }
    let (mut chunks, mut starts, mut stored) = (reserve(chosen.len())?, vec![0], 0u64);
    for k in 0..chosen.len() {
        let range = rows.row(chosen.get(k) as usize);
        stored += range.len() as u64;
        starts.push(stored);
        chunks.push(RowRange { operand: 0, range, shift: 0 });
    }
    assembled([chosen.len() as u64, given.shape()[1]], given, &[rows], &chunks, starts)
}

/// A compressed matrix whose rows, columns or both are in reverse order.
#[pyfunction]
pub(crate) fn flip_rows<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    rows: bool,
    columns: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given = tensor.get().tensor.clone();
    let made = work::run(py, || Ok(flipped(&given, rows, columns)?))?;
    wrap(py, made, false)
}

fn flipped(given: &Tensor, rows: bool, columns: bool) -> Result<Tensor, Diagnostic> {
    let parts = Rows::of(given)?;
    let (height, width) = (given.shape()[0] as usize, given.shape()[1]);
    let source = |row: usize| parts.row(if rows { height - 1 - row } else { row });
    let mut starts: Vec<u64> = reserve(height + 1)?;
    starts.push(0);
    let mut stored = 0u64;
    for row in 0..height {
        stored += source(row).len() as u64;
        starts.push(stored);
    }
    if !columns {
        let chunks: Vec<RowRange> =
            (0..height).map(|row| RowRange { operand: 0, range: source(row), shift: 0 }).collect();
        return assembled([height as u64, width], given, &[parts], &chunks, starts);
    }
    // With both axes reversed, the arrays are; else each row is.
    let whole = parts.pos.get(height) as usize;
    let ranges: Vec<Range<usize>> =
        if rows { std::iter::once(0..whole).collect() } else { (0..height).map(source).collect() };
    let crd: IndexArray = tamis_tensor::with_indices!(&parts.crd, x => mirrored(x, &ranges, width, whole)?.into());
    let values = match &parts.values {
        None => None,
        Some(values) => Some(reversed(values, &ranges, whole)?),
    };
    let pos: IndexArray = tamis_tensor::with_indices!(&parts.pos, x => of_type(x, &starts).into());
    let levels = vec![LevelArrays::default(), LevelArrays::new([("pos", pos), ("crd", crd)])];
    // SAFETY: reversed rows with coordinates counted from the other end rise again, and lie inside;
    // `starts` counts them; values are those of the tensor.
    unsafe { Tensor::from_longer_parts_unchecked(given.shape(), given.format(), levels, values, given.fill()) }
}

/// Coordinates of reversed rows, counted from the other end.
fn mirrored<J: Index>(crd: &[J], ranges: &[Range<usize>], width: u64, total: usize) -> Result<Vec<J>, Diagnostic> {
    let mut out = reserve(total)?;
    for range in ranges {
        out.extend(crd[range.clone()].iter().rev().map(|c| J::from_u64(width - 1 - c.to_u64())));
    }
    Ok(out)
}

/// Positions in the type of others.
fn of_type<J: Index>(_like: &[J], starts: &[u64]) -> Vec<J> {
    starts.iter().map(|start| J::from_u64(*start)).collect()
}

fn reversed(values: &ValueArray, ranges: &[Range<usize>], total: usize) -> Result<ValueArray, Diagnostic> {
    macro_rules! reverse {
        ($($kind:ident),*) => {
            match values {
                $(ValueArray::$kind(x) => {
                    let mut out = reserve(total)?;
                    ranges.iter().for_each(|range| out.extend(x[range.clone()].iter().rev()));
                    ValueArray::$kind(out.into())
                })*
            }
        };
    }
    Ok(reverse!(Bool, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, C64, C128))
}
