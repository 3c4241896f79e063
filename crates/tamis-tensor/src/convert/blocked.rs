//! Conversion of matrices of small dense blocks (BSR), in linear time: blocks to row-major entries,
//! and row-major entries to blocks. Only the blocks of a row are sorted.

use super::matrix::{PARALLEL, compress, with_common_index};
use super::numbers::BitMask;
use super::words::{map_words, stored_form};
use super::{EntryColumns, First};
use crate::levels::{Level, dense_level, trusted_compressed};
use crate::memory::{filled, product, reserve, zeroed};
use crate::{Index, IndexArray, Tensor, bisect, with_indices};
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use tamis_ir::format::{DimExpr, Format, Leaf, LevelKind, LevelSpec, Width};
use tamis_ir::{Value, diag::Result};

/// A format with rows of blocks, a coordinate list of stored blocks, and two dense levels inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    /// The dimension of block rows, and the block size along it.
    outer: (usize, u64),
    /// The other dimension, and the block size along it.
    inner: (usize, u64),
    /// Blocks are stored transposed: along the outer dimension.
    transposed: bool,
    list: LevelSpec,
}

/// The sizes of blocks, and of the matrix.
#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    columns: usize,
    /// The sizes of one block; at most those of the matrix.
    block: (usize, usize),
    /// The strides of a block in memory, along both dimensions.
    stride: (usize, usize),
    /// The divisors of coordinates.
    by: (u64, u64),
}

impl Sizes {
    fn area(&self) -> usize {
        self.block.0 * self.block.1
    }
}

impl Blocked {
    pub fn of(format: &Format) -> Option<Blocked> {
        let [rows, list, one, other] = format.levels() else { return None };
        let [DimExpr::Div(a, m), DimExpr::Div(b, n), inside @ ..] = format.map() else { return None };
        let (along, across) = (DimExpr::Mod(*a, *m), DimExpr::Mod(*b, *n));
        let dense = |spec: &LevelSpec| spec.kind == LevelKind::Dense;
        let listed = matches!(list.kind, LevelKind::Sparse | LevelKind::Hash) && !list.nonunique && !list.nonordered;
        let fits = dense(rows) && listed && dense(one) && dense(other);
        let transposed = inside == [across, along];
        (fits && (transposed || inside == [along, across])).then_some(Blocked {
            outer: (*a, *m),
            inner: (*b, *n),
            transposed,
            list: *list,
        })
    }

    /// The order of entries that blocks are built from.
    pub fn axes(&self) -> Vec<DimExpr> {
        vec![DimExpr::Dim(self.outer.0), DimExpr::Dim(self.inner.0)]
    }

    fn sizes(&self, shape: &[u64]) -> Option<Sizes> {
        let (rows, columns) = (shape[self.outer.0], shape[self.inner.0]);
        let size = |x: u64| usize::try_from(x).ok();
        let block = (size(self.outer.1.min(rows))?, size(self.inner.1.min(columns))?);
        block.0.checked_mul(block.1)?;
        let stride = if self.transposed { (1, block.0) } else { (block.1, 1) };
        Some(Sizes { rows: size(rows)?, columns: size(columns)?, block, stride, by: (self.outer.1, self.inner.1) })
    }

    /// The row-major entries of the mask.
    pub fn entries(&self, tensor: &Tensor, kept: Option<BitMask>) -> Result<Option<EntryColumns>> {
        let arrays = tensor.level_arrays(1);
        let (Some(pos), Some(crd), Some(sizes)) = (arrays.get("pos"), arrays.get("crd"), self.sizes(tensor.shape()))
        else {
            return Ok(None);
        };
        let rows_of_blocks = pos.len().saturating_sub(1);
        // Rows without blocks are enumerated as well, so there must not be too many of them.
        if sizes.rows > (crd.len().saturating_mul(sizes.area())).saturating_mul(4).saturating_add(1024) {
            return Ok(None);
        }
        let most = crd.len() * sizes.area();
        let count = kept.as_ref().map_or(most, BitMask::count);
        let (pos, crd, kept) = (pos.to_width(Width::U64)?, crd, kept.as_ref());
        let IndexArray::U64(pos) = &pos else { return Ok(None) };
        let largest = (sizes.rows.max(sizes.columns) as u64).max(most as u64);
        with_common_index!(largest, I => {
            let mut row_pos: Vec<I> = reserve(sizes.rows + 1, "`pos`")?;
            let mut columns: Vec<I> = reserve(count, "coordinates")?;
            row_pos.push(I::default());
            // Every selected value, in row-major order.
            let each = |push: &mut dyn FnMut(usize, u64), end: &mut dyn FnMut()| with_indices!(crd, crd => {
                for block_row in 0..rows_of_blocks {
                    let blocks = pos[block_row] as usize..pos[block_row + 1] as usize;
                    let first = block_row * sizes.by.0 as usize;
                    for row in 0..sizes.block.0.min(sizes.rows - first) {
                        for q in blocks.clone() {
                            let start = crd[q].to_u64() * sizes.by.1;
                            let width = sizes.block.1.min(sizes.columns - start as usize);
                            let base = q * sizes.area() + row * sizes.stride.0;
                            for column in 0..width {
                                let at = base + column * sizes.stride.1;
                                if kept.is_none_or(|kept| kept.is_set(at)) {
                                    push(at, start + column as u64);
                                }
                            }
                        }
                        end();
                    }
                }
            });
            let done = std::cell::Cell::new(0usize);
            let mut add = |column: u64| {
                columns.push(I::from_u64(column));
                done.set(done.get() + 1);
            };
            let mut end_row = || row_pos.push(I::from_u64(done.get() as u64));
            let values = match tensor.values() {
                None => {
                    each(&mut |_, column| add(column), &mut end_row);
                    None
                }
                Some(values) => Some(map_words!(values, words => {
                    let mut out = reserve(count, "values")?;
                    each(&mut |at, column| { out.push(words[at]); add(column) }, &mut end_row);
                    out
                })),
            };
            let len = done.get();
            row_pos.resize(sizes.rows + 1, I::from_u64(len as u64));
            let first = Some(First::Pos(row_pos.into()));
            Ok(Some(EntryColumns { axes: self.axes(), first, rest: vec![columns.into()], values, len }))
        })
    }

    /// Builds a tensor from entries that are sorted by [`Blocked::axes`]; `None` if counting
    /// columns would cost more than sorting entries.
    pub fn build(&self, format: &Format, shape: &[u64], fill: Value, entries: &EntryColumns) -> Result<Option<Tensor>> {
        let (Some(sizes), Some(values), Leaf::Element(_)) = (self.sizes(shape), &entries.values, format.leaf()) else {
            return Ok(None);
        };
        let extents = format.level_extents(shape)?;
        let limit = (entries.len as u64).saturating_mul(4).saturating_add(1024);
        let ([crd], true) = (&entries.rest[..], sizes.rows as u64 <= limit && extents[1] <= limit) else {
            return Ok(None);
        };
        let pos = match &entries.first {
            Some(First::Pos(pos)) => pos.clone(),
            Some(First::Crd(rows)) => compress(rows, sizes.rows, None)?,
            None => return Ok(None),
        };
        let (blocks, values) = with_indices!(&pos, pos => with_indices!(crd, crd => {
            let parts = cut(pos, sizes, extents[0]);
            let blocks = find(pos, crd, sizes, &extents, &parts)?;
            let count = product(blocks.crd.len(), sizes.area() as u64)?;
            let values = map_words!(values, words => {
                let mut out = filled(count, stored_form(fill), "the values of blocks")?;
                scatter(pos, crd, words, sizes, &blocks, &extents, &parts, &mut out)?;
                out
            });
            (blocks, values)
        }));
        let levels = self.levels(&blocks, &extents)?;
        Tensor::new(format.clone(), shape, fill, levels, Some(values)).map(Some)
    }

    fn levels(&self, blocks: &StoredBlocks, extents: &[u64]) -> Result<Vec<Arc<dyn Level>>> {
        let count = blocks.crd.len();
        let pos = IndexArray::with_width(&blocks.pos, self.list.pos.unwrap_or(Width::automatic(count as u64)))?;
        let width = self.list.crd.unwrap_or(Width::automatic(extents[1].saturating_sub(1)));
        let list = trusted_compressed(pos, IndexArray::with_width(&blocks.crd, width)?, &self.list);
        let rows = dense_level(count, extents[2])?;
        let inside = dense_level(rows.children(), extents[3])?;
        Ok(vec![dense_level(1, extents[0])?, list, rows, inside])
    }
}

/// The stored blocks: for each block row, its block columns in order.
struct StoredBlocks {
    pos: Vec<u64>,
    crd: Vec<u64>,
}

/// Partitions block rows into chunks of about equal nnz: one for each thread, if there is enough
/// work.
fn cut<P: Index>(pos: &[P], sizes: Sizes, rows: u64) -> Vec<Range<u64>> {
    let entries = pos.last().map_or(0, |last| last.to_usize());
    let parts = if entries < PARALLEL { 1 } else { crate::threads() };
    let before = |row: u64| pos[rows_of(row, sizes).start].to_usize();
    let end = |part: usize| match part {
        part if part == parts => rows,
        part => bisect(rows, |row| before(row) < entries / parts * part),
    };
    (0..parts).map(|part| end(part)..end(part + 1)).collect()
}

fn find<P: Index, C: Index>(
    pos: &[P],
    crd: &[C],
    sizes: Sizes,
    extents: &[u64],
    parts: &[Range<u64>],
) -> Result<StoredBlocks> {
    let by = Divisor::new(sizes.by.1, extents[1]);
    let one = |part: &Range<u64>| -> Result<StoredBlocks> {
        let mut stored = StoredBlocks { pos: reserve((part.end - part.start) as usize, "`pos`")?, crd: Vec::new() };
        // The last block row, counted from 1, with an entry in each block column.
        let mut seen: Vec<u64> = zeroed(extents[1] as usize, "counters")?;
        for block_row in part.clone() {
            let start = stored.crd.len();
            let rows = rows_of(block_row, sizes);
            for c in &crd[pos[rows.start].to_usize()..pos[rows.end].to_usize()] {
                let column = by.quotient(c.to_u64());
                let last = &mut seen[column as usize];
                if *last != block_row + 1 {
                    *last = block_row + 1;
                    stored.crd.push(column);
                }
            }
            stored.crd[start..].sort_unstable();
            stored.pos.push(stored.crd.len() as u64);
        }
        Ok(stored)
    };
    let stored: Vec<StoredBlocks> = match parts {
        [all] => vec![one(all)?],
        parts => parts.par_iter().map(one).collect::<Result<_>>()?,
    };
    let mut all = StoredBlocks { pos: reserve(extents[0] as usize + 1, "`pos`")?, crd: Vec::new() };
    all.pos.push(0);
    for part in stored {
        let before = all.crd.len() as u64;
        all.pos.extend(part.pos.iter().map(|end| before + end));
        if before == 0 { all.crd = part.crd } else { all.crd.extend(part.crd) }
    }
    Ok(all)
}

/// Division by an invariant divisor: a multiplication, if numbers are small enough.
#[derive(Clone, Copy)]
struct Divisor {
    by: u64,
    /// 2^64 divided by the divisor, rounded up; `None` if numbers may have more than 32 bits, or
    /// the divisor is 1.
    inverse: Option<u64>,
}

impl Divisor {
    /// A divisor for numbers whose quotients are below `quotients`.
    fn new(by: u64, quotients: u64) -> Divisor {
        let small = quotients.checked_mul(by).is_some_and(|most| most <= 1 << 32) && by > 1;
        Divisor { by, inverse: small.then(|| u64::MAX / by + 1) }
    }

    #[inline(always)]
    fn quotient(self, number: u64) -> u64 {
        match self.inverse {
            Some(inverse) => ((u128::from(inverse) * u128::from(number)) >> 64) as u64,
            None => number / self.by,
        }
    }
}

fn rows_of(block_row: u64, sizes: Sizes) -> Range<usize> {
    let start = (block_row * sizes.by.0) as usize;
    start..sizes.rows.min(start.saturating_add(sizes.by.0 as usize))
}

#[expect(clippy::too_many_arguments, reason = "two matrices, in parts")]
fn scatter<P: Index, C: Index, W: Pod + Send + Sync>(
    pos: &[P],
    crd: &[C],
    words: &[W],
    sizes: Sizes,
    blocks: &StoredBlocks,
    extents: &[u64],
    parts: &[Range<u64>],
    out: &mut [W],
) -> Result<()> {
    let by = Divisor::new(sizes.by.1, extents[1]);
    let one = |(part, out): (&Range<u64>, &mut [W])| -> Result<()> {
        let first = blocks.pos[part.start as usize] as usize;
        // The position of the block of each column, in the current block row.
        let mut place: Vec<usize> = zeroed(extents[1] as usize, "counters")?;
        for block_row in part.clone() {
            let (start, stop) = (blocks.pos[block_row as usize] as usize, blocks.pos[block_row as usize + 1] as usize);
            for (q, column) in (start..stop).zip(&blocks.crd[start..stop]) {
                place[*column as usize] = (q - first) * sizes.area();
            }
            for (row, within) in rows_of(block_row, sizes).zip(0..) {
                let fiber = pos[row].to_usize()..pos[row + 1].to_usize();
                for (c, word) in crd[fiber.clone()].iter().zip(&words[fiber]) {
                    let column = by.quotient(c.to_u64());
                    let rest = (c.to_u64() - column * by.by) as usize;
                    out[place[column as usize] + within * sizes.stride.0 + rest * sizes.stride.1] = *word;
                }
            }
        }
        Ok(())
    };
    let mut rest = out;
    let mut jobs = Vec::with_capacity(parts.len());
    for part in parts {
        let count = (blocks.pos[part.end as usize] - blocks.pos[part.start as usize]) as usize * sizes.area();
        let (here, after) = rest.split_at_mut(count);
        jobs.push((part, here));
        rest = after;
    }
    match jobs.len() {
        1 => jobs.into_iter().try_for_each(one),
        _ => jobs.into_par_iter().try_for_each(one),
    }
}

/// The entries of a tensor whose format is [`Blocked`], without those that equal `padding`.
pub(super) fn entries(tensor: &Tensor, padding: Option<Value>) -> Result<Option<EntryColumns>> {
    let Some(blocked) = Blocked::of(tensor.format()) else { return Ok(None) };
    let mask = match (tensor.values(), padding) {
        (Some(values), Some(padding)) => Some(super::numbers::differing(values, padding)?),
        _ => None,
    };
    blocked.entries(tensor, mask)
}
