//! Conversion of dense tensors: to entries, from entries, and between orders of dimensions.

use super::numbers::{BitMask, differing};
use super::words::{map_words, stored_form};
use super::{EntryColumns, First};
use crate::memory::{filled, product, reserve};
use crate::{Index, IndexArray, ValueArray, with_indices};
use bytemuck::Pod;
use tamis_ir::format::DimExpr;
use tamis_ir::{Value, diag::Result};

/// The values that differ from `padding`, in storage order; all values without it.
pub(super) fn entries(
    values: &ValueArray,
    extents: &[u64],
    axes: Vec<DimExpr>,
    padding: Option<Value>,
) -> Result<EntryColumns> {
    let mask = match padding {
        Some(padding) => differing(values, padding)?,
        None => BitMask::full(values.len())?,
    };
    let len = mask.count();
    let extents: Vec<usize> = extents.iter().map(|n| *n as usize).collect();
    let all = len == values.len();
    let values = Some(if all { values.clone() } else { map_words!(values, words => select(words, &mask, len)?) });
    let Some((inner, outer)) = extents.split_last() else {
        return Ok(EntryColumns { axes, first: None, rest: Vec::new(), values, len });
    };
    if len == 0 {
        // Some dimension may be 0, and another one huge.
        let columns = axes.iter().map(|_| IndexArray::U32(Vec::new().into())).collect();
        return Ok(EntryColumns::from_columns(axes, columns, values, 0));
    }
    let widest = extents.iter().copied().max().unwrap_or(0);
    Ok(if widest as u64 <= u32::MAX as u64 && len as u64 <= u32::MAX as u64 {
        let (first, rest) = columns::<u32>(&mask, len, outer, *inner)?;
        EntryColumns { axes, first: Some(first), rest, values, len }
    } else {
        let (first, rest) = columns::<u64>(&mask, len, outer, *inner)?;
        EntryColumns { axes, first: Some(first), rest, values, len }
    })
}

fn select<W: Pod>(words: &[W], mask: &BitMask, len: usize) -> Result<Vec<W>> {
    let mut out = reserve(len, "values")?;
    mask.for_each(0..words.len(), |at| out.push(words[at]));
    Ok(out)
}

/// The coordinates of the set bits: `outer` dimensions around rows of length `inner`.
fn columns<I: Index>(mask: &BitMask, len: usize, outer: &[usize], inner: usize) -> Result<(First, Vec<IndexArray>)>
where
    IndexArray: From<Vec<I>>,
{
    let rows: usize = outer.iter().product();
    let mut crd: Vec<I> = reserve(len, "coordinates")?;
    let mut pos: Vec<I> = reserve(rows + 1, "`pos`")?;
    pos.push(I::default());
    for row in 0..rows {
        mask.for_each(row * inner..(row + 1) * inner, |at| crd.push(I::from_u64((at - row * inner) as u64)));
        pos.push(I::from_u64(crd.len() as u64));
    }
    match outer {
        [] => return Ok((First::Crd(crd.into()), Vec::new())),
        [_] => return Ok((First::Pos(pos.into()), vec![crd.into()])),
        _ => {}
    }
    let mut columns: Vec<Vec<I>> = outer.iter().map(|_| reserve(len, "coordinates")).collect::<Result<_>>()?;
    let mut at = vec![0usize; outer.len()];
    for w in pos.windows(2) {
        let count = w[1].to_usize() - w[0].to_usize();
        for (column, at) in columns.iter_mut().zip(&at) {
            column.extend(std::iter::repeat_n(I::from_u64(*at as u64), count));
        }
        for (at, extent) in at.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    let mut columns = columns.into_iter().map(IndexArray::from);
    let first = columns.next().unwrap_or(IndexArray::U32(Vec::new().into()));
    Ok((First::Crd(first), columns.chain([crd.into()]).collect()))
}

/// A dense array of these extents with the entries scattered into it, and the fill elsewhere.
pub(super) fn fill_in(entries: &EntryColumns, values: &ValueArray, extents: &[u64], fill: Value) -> Result<ValueArray> {
    let count = extents.iter().try_fold(1, |count, extent| product(count, *extent))?;
    if entries.len == count {
        // Sorted, distinct and as many as there are cells: already in place.
        return Ok(values.clone());
    }
    if let (Some(First::Pos(pos)), [crd]) = (&entries.first, &entries.rest[..]) {
        let inner = extents.last().map_or(0, |extent| *extent as usize);
        return Ok(map_words!(values, words => with_indices!(pos, pos => with_indices!(crd, crd => {
            fill_rows(pos, crd, words, inner, filled(count, stored_form(fill), "a dense tensor")?)
        }))));
    }
    let mut offsets: Vec<usize> = filled(entries.len, 0, "the positions of entries")?;
    for (column, extent) in entries.columns()?.iter().zip(extents) {
        with_indices!(column, column => for (offset, c) in offsets.iter_mut().zip(column.iter()) {
            *offset = *offset * *extent as usize + c.to_usize();
        });
    }
    super::words::scatter(values, &offsets, count, fill)
}

fn fill_rows<P: Index, C: Index, W: Pod>(pos: &[P], crd: &[C], words: &[W], inner: usize, mut out: Vec<W>) -> Vec<W> {
    for (row, w) in pos.windows(2).enumerate() {
        let fiber = w[0].to_usize()..w[1].to_usize();
        let start = row * inner;
        for (c, word) in crd[fiber.clone()].iter().zip(&words[fiber]) {
            out[start + c.to_usize()] = *word;
        }
    }
    out
}

/// Dense values in the order `from` of the dimensions, permuted to the order `to`.
pub(super) fn permute(values: &ValueArray, shape: &[u64], from: &[usize], to: &[usize]) -> Result<ValueArray> {
    let extents: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    // Dimensions of size 1 are irrelevant.
    let moving = |order: &[usize]| order.iter().copied().filter(|d| extents[*d] != 1).collect::<Vec<_>>();
    let (from, to) = (moving(from), moving(to));
    if from == to || values.is_empty() {
        return Ok(values.clone());
    }
    let source = strides(&extents, &from);
    let plan: Vec<(usize, usize)> = to.iter().map(|d| (extents[*d], source[*d])).collect();
    Ok(map_words!(values, words => permute_words(words, &plan)?))
}

/// The stride of each dimension in this order.
fn strides(extents: &[usize], order: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; extents.len()];
    let mut stride = 1;
    for d in order.iter().rev() {
        strides[*d] = stride;
        stride *= extents[*d];
    }
    strides
}

const TILE: usize = 32;

/// `plan` is the extent and the source stride of each dimension of the result, outermost first.
fn permute_words<W: Pod>(words: &[W], plan: &[(usize, usize)]) -> Result<Vec<W>> {
    let mut out: Vec<W> = filled(words.len(), W::zeroed(), "a dense tensor")?;
    let Some(((inner, inner_stride), outer)) = plan.split_last() else { return Ok(words.to_vec()) };
    // The contiguous dimension of the source; tiles of it and the inner one fit the cache.
    let along = outer.iter().position(|(_, stride)| *stride == 1);
    let mut target = vec![0; outer.len()];
    let mut stride = *inner;
    for (k, (extent, _)) in outer.iter().enumerate().rev() {
        target[k] = stride;
        stride *= extent;
    }
    let loops: Vec<(usize, usize, usize)> =
        (0..outer.len()).filter(|k| Some(*k) != along).map(|k| (outer[k].0, outer[k].1, target[k])).collect();
    for_each_offset(&loops, &mut |from, to| match along {
        None => {
            for i in 0..*inner {
                out[to + i] = words[from + i * inner_stride];
            }
        }
        Some(along) => {
            let (rows, row_target) = (outer[along].0, target[along]);
            for row in (0..rows).step_by(TILE) {
                for column in (0..*inner).step_by(TILE) {
                    for r in row..rows.min(row + TILE) {
                        for c in column..(*inner).min(column + TILE) {
                            out[to + r * row_target + c] = words[from + r + c * inner_stride];
                        }
                    }
                }
            }
        }
    });
    Ok(out)
}

/// Calls `each` with the source and target offset of every point of a loop nest: extent, source and
/// target stride.
fn for_each_offset(loops: &[(usize, usize, usize)], each: &mut dyn FnMut(usize, usize)) {
    fn below(loops: &[(usize, usize, usize)], from: usize, to: usize, each: &mut dyn FnMut(usize, usize)) {
        let Some(((extent, source, target), inner)) = loops.split_first() else { return each(from, to) };
        for i in 0..*extent {
            below(inner, from + i * source, to + i * target, each);
        }
    }
    below(loops, 0, 0, each);
}
