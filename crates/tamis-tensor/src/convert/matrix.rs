//! Matrices as two columns: compressing, expanding, transposing and bucketing by counting.

use super::First;
use super::words::map_words;
use crate::levels::memory::{reserve, too_large, zeroed};
use crate::{Index, IndexArray, ValueArray, with_indices};
use bytemuck::Pod;
use tamis_ir::diag::Result;
use tamis_ir::format::Width;

/// Entries by outer coordinate: those of c are `crd[pos[c]..pos[c+1]]`.
pub(crate) struct Compressed {
    pub pos: IndexArray,
    pub crd: IndexArray,
    pub values: Option<ValueArray>,
}

/// The outer coordinate of every entry, in the given width (which must hold them) or the narrowest automatic one.
pub(crate) fn expand(pos: &IndexArray, width: Option<Width>) -> Result<IndexArray> {
    fn typed<P: Index, C: Index>(pos: &[P]) -> Result<Vec<C>> {
        let total = pos.last().map_or(0, |last| last.to_usize());
        let mut crd: Vec<C> = reserve(total, "coordinates")?;
        for (c, w) in pos.windows(2).enumerate() {
            let count = w[1].to_usize() - w[0].to_usize();
            if count > 0 && c as u64 > C::WIDTH.max() {
                return Err(crate::arrays::too_wide(c as u64, C::WIDTH));
            }
            crd.extend(std::iter::repeat_n(C::from_u64(c as u64), count));
        }
        Ok(crd)
    }
    let width = width.unwrap_or(Width::automatic(pos.len() as u64));
    Ok(with_indices!(pos, pos => match width {
        Width::U8 => typed::<_, u8>(pos)?.into(),
        Width::U16 => typed::<_, u16>(pos)?.into(),
        Width::U32 => typed::<_, u32>(pos)?.into(),
        Width::U64 => typed::<_, u64>(pos)?.into(),
    }))
}

/// The inverse of [`expand`]: sorted coordinates below `extent` as positions.
pub(crate) fn compress(crd: &IndexArray, extent: usize, width: Option<Width>) -> Result<IndexArray> {
    fn typed<C: Index, P: Index>(crd: &[C], extent: usize) -> Result<Vec<P>> {
        let total = crd.len() as u64;
        if total > P::WIDTH.max() {
            return Err(crate::arrays::too_wide(total, P::WIDTH));
        }
        let length = extent.checked_add(1).ok_or_else(|| too_large(u64::MAX, size_of::<P>(), "`pos`"))?;
        let mut pos: Vec<P> = reserve(length, "`pos`")?;
        pos.push(P::default());
        let mut last = 0;
        for (e, c) in crd.iter().enumerate() {
            let c = c.to_usize();
            if c != last {
                pos.resize(c + 1, P::from_u64(e as u64));
                last = c;
            }
        }
        pos.resize(length, P::from_u64(total));
        Ok(pos)
    }
    let width = width.unwrap_or(Width::automatic(crd.len() as u64));
    Ok(with_indices!(crd, crd => match width {
        Width::U8 => typed::<_, u8>(crd, extent)?.into(),
        Width::U16 => typed::<_, u16>(crd, extent)?.into(),
        Width::U32 => typed::<_, u32>(crd, extent)?.into(),
        Width::U64 => typed::<_, u64>(crd, extent)?.into(),
    }))
}

/// Runs `$body` with `$i` as the one index type that holds all of these numbers.
macro_rules! with_common_index {
    ($largest:expr, $i:ident => $body:expr) => {
        if $largest <= u32::MAX as u64 {
            type $i = u32;
            $body
        } else {
            type $i = u64;
            $body
        }
    };
}

/// The numbers as one type, without copying where they have it.
fn as_type<I: Index>(array: &IndexArray) -> Result<IndexArray> {
    array.to_width(I::WIDTH)
}

fn slice<I: Index>(array: &IndexArray) -> &[I] {
    // The caller has brought the array to this width, so the bytes are whole numbers of it.
    with_indices!(array, x => bytemuck::try_cast_slice(&x[..]).unwrap_or(&[]))
}

/// Entries sorted by (outer, `minor`) coordinate, sorted by (`minor`, outer) instead; `outers` and `minors` are the
/// sizes of the dimensions. Linear: one pass to count, one to move.
pub(crate) fn transpose(
    outer: &First,
    minor: &IndexArray,
    outers: u64,
    minors: usize,
    values: Option<&ValueArray>,
) -> Result<Compressed> {
    let largest = outers.max(minors as u64).max(minor.len() as u64);
    with_common_index!(largest, I => {
        let minor = as_type::<I>(minor)?;
        let minor = slice::<I>(&minor);
        match outer {
            First::Pos(pos) => {
                let pos = as_type::<I>(pos)?;
                transpose_typed(Rows(slice::<I>(&pos)), minor, minors, values)
            }
            First::Crd(crd) => {
                let crd = as_type::<I>(crd)?;
                transpose_typed(List(slice::<I>(&crd)), minor, minors, values)
            }
        }
    })
}

/// How the outer coordinate of each entry is given.
trait Outer<I> {
    /// Calls `each` with every entry and its outer coordinate.
    fn for_each(&self, each: impl FnMut(usize, I));
}

struct Rows<'a, I>(&'a [I]);
struct List<'a, I>(&'a [I]);

impl<I: Index> Outer<I> for Rows<'_, I> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(usize, I)) {
        for (row, w) in self.0.windows(2).enumerate() {
            for e in w[0].to_usize()..w[1].to_usize() {
                each(e, I::from_u64(row as u64));
            }
        }
    }
}

impl<I: Index> Outer<I> for List<'_, I> {
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(usize, I)) {
        for (e, row) in self.0.iter().enumerate() {
            each(e, *row);
        }
    }
}

fn transpose_typed<I: Index, O: Outer<I>>(
    outer: O,
    minor: &[I],
    minors: usize,
    values: Option<&ValueArray>,
) -> Result<Compressed>
where
    IndexArray: From<Vec<I>>,
{
    let pos = count(minor, minors)?;
    let arrays;
    let values = match values {
        Some(values) => Some(map_words!(values, words => {
            let (pos, crd, words) = scatter(&outer, minor, words, pos)?;
            arrays = (pos, crd);
            words
        })),
        None => {
            // Patterns move coordinates only; their "values" have no size.
            let (pos, crd, _) = scatter(&outer, minor, &vec![(); minor.len()], pos)?;
            arrays = (pos, crd);
            None
        }
    };
    let (pos, crd) = arrays;
    Ok(Compressed { pos: pos.into(), crd: crd.into(), values })
}

/// Where the entries of each coordinate start, in `counts[c + 1]`: see [`scatter`].
fn count<I: Index>(crd: &[I], extent: usize) -> Result<Vec<I>> {
    let length = extent.checked_add(2).ok_or_else(|| too_large(u64::MAX, size_of::<I>(), "`pos`"))?;
    let mut counts: Vec<I> = zeroed(length, "`pos`")?;
    for c in crd {
        let count = &mut counts[c.to_usize() + 2];
        *count = I::from_u64(count.to_u64() + 1);
    }
    let mut sum = 0;
    for count in &mut counts {
        sum += count.to_u64();
        *count = I::from_u64(sum);
    }
    Ok(counts)
}

/// Moves entries to where [`count`] says. Counting one place further makes `pos[c + 1]` the next free place of
/// coordinate c, which ends where c + 1 starts: the counters become `pos` by themselves.
fn scatter<I: Index, O: Outer<I>, W: Pod>(
    outer: &O,
    minor: &[I],
    words: &[W],
    mut pos: Vec<I>,
) -> Result<(Vec<I>, Vec<I>, Vec<W>)> {
    let total = minor.len();
    let mut crd: Vec<I> = reserve(total, "coordinates")?;
    let mut moved: Vec<W> = reserve(total, "values")?;
    let (crd_room, moved_room) = (crd.spare_capacity_mut(), moved.spare_capacity_mut());
    outer.for_each(|e, row| {
        let next = &mut pos[minor[e].to_usize() + 1];
        let at = next.to_usize();
        *next = I::from_u64(at as u64 + 1);
        crd_room[at].write(row);
        moved_room[at].write(words[e]);
    });
    // SAFETY: `pos` partitions 0..total by the counts of the same coordinates, and `outer` visits each of the
    // `total` entries once, so every place was written.
    unsafe {
        crd.set_len(total);
        moved.set_len(total);
    }
    pos.truncate(pos.len() - 1);
    Ok((pos, crd, moved))
}

/// Entries in any order, sorted by (row, column); equal ones keep their order. One pass moves them into their
/// rows, another sorts each row.
pub(crate) fn bucket(
    rows: &IndexArray,
    columns: &IndexArray,
    extent: usize,
    values: &ValueArray,
) -> Result<Compressed> {
    let widest = |array: &IndexArray| with_indices!(array, x => x.iter().max().map_or(0, |x| x.to_u64()));
    let largest = (extent as u64).max(rows.len() as u64).max(widest(columns));
    with_common_index!(largest, I => {
        let (rows, columns) = (as_type::<I>(rows)?, as_type::<I>(columns)?);
        let (rows, columns) = (slice::<I>(&rows), slice::<I>(&columns));
        let arrays: (Vec<I>, Vec<I>);
        let values = map_words!(values, words => {
            let (pos, crd, words) = bucket_typed(rows, columns, extent, words)?;
            arrays = (pos, crd);
            words
        });
        Ok(Compressed { pos: arrays.0.into(), crd: arrays.1.into(), values: Some(values) })
    })
}

fn bucket_typed<I: Index, W: Pod>(
    rows: &[I],
    columns: &[I],
    extent: usize,
    words: &[W],
) -> Result<(Vec<I>, Vec<I>, Vec<W>)> {
    let total = rows.len();
    let mut pos = count(rows, extent)?;
    let mut pairs: Vec<(I, W)> = reserve(total, "entries")?;
    let room = pairs.spare_capacity_mut();
    for ((row, column), word) in rows.iter().zip(columns).zip(words) {
        let next = &mut pos[row.to_usize() + 1];
        let at = next.to_usize();
        *next = I::from_u64(at as u64 + 1);
        room[at].write((*column, *word));
    }
    // SAFETY: `pos` partitions 0..total by the counts of the same rows, so every place was written once.
    unsafe { pairs.set_len(total) };
    pos.truncate(pos.len() - 1);
    for w in pos.windows(2) {
        sort_row(&mut pairs[w[0].to_usize()..w[1].to_usize()]);
    }
    let mut crd = reserve(total, "coordinates")?;
    crd.extend(pairs.iter().map(|(column, _)| *column));
    let mut moved = reserve(total, "values")?;
    moved.extend(pairs.iter().map(|(_, word)| *word));
    Ok((pos, crd, moved))
}

/// Stable; most rows are short.
fn sort_row<I: Index, W: Pod>(row: &mut [(I, W)]) {
    if row.len() > 24 {
        row.sort_by_key(|(column, _)| *column);
        return;
    }
    for k in 1..row.len() {
        let entry = row[k];
        let mut hole = k;
        while hole > 0 && row[hole - 1].0 > entry.0 {
            row[hole] = row[hole - 1];
            hole -= 1;
        }
        row[hole] = entry;
    }
}
