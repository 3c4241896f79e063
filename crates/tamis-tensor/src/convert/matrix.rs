//! Matrices as two columns: compression, expansion and transposition by counting sort.

use super::First;
use super::words::map_words;
use crate::memory::{recycle, reserve, too_large, zeroed};
use crate::{Index, IndexArray, ValueArray, with_indices};
use bytemuck::Pod;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;
use tamis_ir::diag::Result;
use tamis_ir::format::Width;

/// Entries by outer coordinate: those of c are `crd[pos[c]..pos[c+1]]`.
pub(crate) struct CompressedMatrix {
    pub pos: IndexArray,
    pub crd: IndexArray,
    pub values: Option<ValueArray>,
}

/// The outer coordinate of every entry, in the given width (which must hold them) or the narrowest
/// automatic one.
pub(crate) fn expand(pos: &IndexArray, width: Option<Width>) -> Result<IndexArray> {
    let width = width.unwrap_or(Width::automatic(pos.len() as u64));
    Ok(with_indices!(pos, pos => match width {
        Width::U8 => expand_typed::<_, u8>(pos)?.into(),
        Width::U16 => expand_typed::<_, u16>(pos)?.into(),
        Width::U32 => expand_typed::<_, u32>(pos)?.into(),
        Width::U64 => expand_typed::<_, u64>(pos)?.into(),
    }))
}

fn expand_typed<P: Index, C: Index>(pos: &[P]) -> Result<Vec<C>> {
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

/// Runs `$body` with `$i` as the index type that fits all of these numbers.
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
pub(super) use with_common_index;

/// The numbers as one type, zero-copy if they have it.
pub(super) fn as_type<I: Index>(array: &IndexArray) -> Result<IndexArray> {
    array.to_width(I::WIDTH)
}

pub(super) fn slice<I: Index>(array: &IndexArray) -> &[I] {
    // The caller has converted the array to this width, so the bytes are whole elements.
    with_indices!(array, x => bytemuck::try_cast_slice(&x[..]).unwrap_or(&[]))
}

/// Transposes entries: sorted by (outer, `minor`) coordinate, to sorted by (`minor`, outer).
/// `outers` and `minors` are the sizes of the dimensions. Linear time: one pass to count, one to
/// scatter.
pub(crate) fn transpose(
    outer: &First,
    minor: &IndexArray,
    outers: u64,
    minors: usize,
    values: Option<&ValueArray>,
) -> Result<CompressedMatrix> {
    let largest = outers.max(minors as u64).max(minor.len() as u64);
    with_common_index!(largest, I => {
        let minor = as_type::<I>(minor)?;
        let minor = slice::<I>(&minor);
        match outer {
            First::Pos(pos) => {
                let pos = as_type::<I>(pos)?;
                transpose_typed(OuterRows(slice::<I>(&pos)), minor, minors, values)
            }
            First::Crd(crd) => {
                let crd = as_type::<I>(crd)?;
                transpose_typed(OuterList(slice::<I>(&crd)), minor, minors, values)
            }
        }
    })
}

/// The outer coordinates of entries.
trait Outer<I: Clone>: Sync {
    /// Ranges of outer indices of about equal nnz, and their entries.
    fn split(&self, parts: usize) -> Vec<(Range<usize>, Range<usize>)>;

    /// Calls `each` with every entry of a range of outer indices, and its outer coordinate.
    fn for_each(&self, range: Range<usize>, each: impl FnMut(usize, I));

    /// The outer coordinate of every entry.
    fn list(&self) -> Result<Cow<'_, [I]>>;
}

/// Compressed: outer coordinate c has the entries from `pos[c]` to `pos[c+1]`.
struct OuterRows<'a, I>(&'a [I]);

/// Expanded: every entry's outer coordinate.
struct OuterList<'a, I>(&'a [I]);

impl<I: Index> Outer<I> for OuterRows<'_, I> {
    fn split(&self, parts: usize) -> Vec<(Range<usize>, Range<usize>)> {
        let rows = self.0.len().saturating_sub(1);
        let total = self.0.last().map_or(0, |last| last.to_usize());
        let bound = |part: usize| match part {
            0 => 0,
            part if part == parts => rows,
            part => self.0.partition_point(|p| p.to_usize() < total / parts * part).min(rows),
        };
        let ranges = (0..parts).map(|part| bound(part)..bound(part + 1));
        ranges.map(|rows| (rows.clone(), self.0[rows.start].to_usize()..self.0[rows.end].to_usize())).collect()
    }

    #[inline(always)]
    fn for_each(&self, range: Range<usize>, mut each: impl FnMut(usize, I)) {
        for (row, w) in range.clone().zip(self.0[range.start..=range.end].windows(2)) {
            for e in w[0].to_usize()..w[1].to_usize() {
                each(e, I::from_u64(row as u64));
            }
        }
    }

    fn list(&self) -> Result<Cow<'_, [I]>> {
        expand_typed(self.0).map(Cow::Owned)
    }
}

impl<I: Index> Outer<I> for OuterList<'_, I> {
    fn split(&self, parts: usize) -> Vec<(Range<usize>, Range<usize>)> {
        let bound = |part: usize| if part == parts { self.0.len() } else { self.0.len() / parts * part };
        (0..parts).map(|part| (bound(part)..bound(part + 1), bound(part)..bound(part + 1))).collect()
    }

    #[inline(always)]
    fn for_each(&self, range: Range<usize>, mut each: impl FnMut(usize, I)) {
        for (e, row) in range.clone().zip(&self.0[range]) {
            each(e, *row);
        }
    }

    fn list(&self) -> Result<Cow<'_, [I]>> {
        Ok(Cow::Borrowed(self.0))
    }
}

fn transpose_typed<I: Index, O: Outer<I>>(
    outer: O,
    minor: &[I],
    minors: usize,
    values: Option<&ValueArray>,
) -> Result<CompressedMatrix>
where
    IndexArray: From<Vec<I>>,
{
    let arrays;
    let values = match values {
        Some(values) => Some(map_words!(values, words => {
            let (pos, crd, words) = scatter(&outer, minor, minors, words)?;
            arrays = (pos, crd);
            words
        })),
        None => {
            // Patterns scatter coordinates only; their "values" have no size.
            let (pos, crd, _) = scatter(&outer, minor, minors, &vec![(); minor.len()])?;
            arrays = (pos, crd);
            None
        }
    };
    let (pos, crd) = arrays;
    Ok(CompressedMatrix { pos: pos.into(), crd: crd.into(), values })
}

/// The number of scatter targets up to which the ends of all of them fit some cache.
const NEAR: usize = 1 << 18;

/// Below this many entries, starting threads costs more than it gains.
pub(super) const PARALLEL: usize = 1 << 18;

/// Scatters entries by the prefix sums of the counts of their minor coordinates; returns positions,
/// outer coordinates and words.
fn scatter<I: Index, O: Outer<I>, W: Pod + Send + Sync>(
    outer: &O,
    minor: &[I],
    minors: usize,
    words: &[W],
) -> Result<(Vec<I>, Vec<I>, Vec<W>)> {
    let total = minor.len();
    let scattered = is_scattered(minor);
    if minors > NEAR && scattered {
        // A direct scatter would miss the cache for each entry; bucket sort does not.
        let (pos, crd, words, _) = super::bucket::sort(minor, &outer.list()?, minors, words)?;
        return Ok((pos, crd, words));
    }
    let mut crd: Vec<I> = reserve(total, "coordinates")?;
    let mut moved: Vec<W> = reserve(total, "values")?;
    let target = ScatterTarget { crd: crd.as_mut_ptr(), words: moved.as_mut_ptr() };
    let threads = crate::threads();
    let pos = if threads > 1 && total >= PARALLEL && minors.saturating_mul(threads) / 4 <= total {
        scatter_parallel(outer, minor, minors, words, &target, threads, scattered)?
    } else {
        let mut pos = count(minor, minors)?;
        let all = outer.split(1).pop().map_or(0..0, |(all, _)| all);
        // SAFETY: `count` has counted all of `minor`, shifted by one, so from index 1 on `pos`
        // holds the start of each coordinate; the target has capacity for `total` entries.
        unsafe { scatter_range(outer, all, minor, words, &mut pos[1..], &target, scattered) };
        // The write position of coordinate c has advanced to its end, which is the start of c + 1.
        pos.truncate(pos.len() - 1);
        pos
    };
    // SAFETY: the positions of entries, by counts of the same coordinates, are distinct and below
    // `total`, so every position was written.
    unsafe {
        crd.set_len(total);
        moved.set_len(total);
    }
    Ok((pos, crd, moved))
}

/// True if adjacent entries of a long list have scattered coordinates. Takes samples.
fn is_scattered<I: Index>(crd: &[I]) -> bool {
    const SAMPLES: usize = 32;
    const WINDOW: usize = 512;
    if crd.len() < PARALLEL {
        return false;
    }
    let mut distinct = 0;
    for sample in 0..SAMPLES {
        let start = crd.len() / SAMPLES * sample;
        // Coordinates that share a few cache lines count as one.
        let mut places: Vec<u64> = crd[start..start + WINDOW].iter().map(|c| c.to_u64() / 16).collect();
        places.sort_unstable();
        places.dedup();
        distinct += places.len();
    }
    distinct > SAMPLES * WINDOW / 3
}

/// The target of a scatter. Threads write at disjoint positions.
struct ScatterTarget<I, W> {
    crd: *mut I,
    words: *mut W,
}

// SAFETY: writers through the pointers guarantee that no other thread writes there.
unsafe impl<I: Send, W: Send> Sync for ScatterTarget<I, W> {}

/// Scatters the entries of a range of outer indices; `next[c]` is the next write position of minor
/// coordinate c. Scattered writes are prefetched.
///
/// # Safety
/// `next` is longer than every coordinate in `minor`; `outer` visits entries below the length of
/// `minor` and `words`; the positions that `next` yields lie within the target, and no other thread
/// writes there.
#[inline(always)]
unsafe fn scatter_range<I: Index, O: Outer<I>, W: Pod + Send + Sync>(
    outer: &O,
    range: Range<usize>,
    minor: &[I],
    words: &[W],
    next: &mut [I],
    target: &ScatterTarget<I, W>,
    scattered: bool,
) {
    // SAFETY: guaranteed by the caller.
    let to_its_place = |next: &mut [I], e: usize, row: I| unsafe {
        let next = next.get_unchecked_mut(minor.get_unchecked(e).to_usize());
        let at = next.to_usize();
        *next = I::from_u64(at as u64 + 1);
        target.crd.add(at).write(row);
        target.words.add(at).write(*words.get_unchecked(e));
    };
    if !scattered {
        return outer.for_each(range, |e, row| to_its_place(next, e, row));
    }
    let last = minor.len().saturating_sub(1);
    outer.for_each(range, |e, row| {
        // SAFETY: guaranteed by the caller; prefetching any address is harmless.
        let ahead = unsafe { next.get_unchecked(minor.get_unchecked((e + AHEAD).min(last)).to_usize()) }.to_usize();
        prefetch(target.crd.wrapping_add(ahead));
        prefetch(target.words.wrapping_add(ahead));
        to_its_place(next, e, row);
    });
}

/// The prefetch distance, in entries.
const AHEAD: usize = 64;

#[inline(always)]
fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that never faults, for any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(place as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Parallel scatter: each thread counts and moves its own chunk of the entries; chunks are in
/// order, so the result is the same.
fn scatter_parallel<I: Index, O: Outer<I>, W: Pod + Send + Sync>(
    outer: &O,
    minor: &[I],
    minors: usize,
    words: &[W],
    target: &ScatterTarget<I, W>,
    threads: usize,
    scattered: bool,
) -> Result<Vec<I>> {
    let parts = outer.split(threads);
    let mut counts: Vec<Vec<I>> = parts
        .par_iter()
        .map(|(_, entries)| {
            let mut counts: Vec<I> = zeroed(minors, "counters")?;
            add_counts(&minor[entries.clone()], &mut counts);
            Ok(counts)
        })
        .collect::<Result<_>>()?;
    let mut pos: Vec<I> = reserve(minors + 1, "`pos`")?;
    let mut sum = 0;
    pos.push(I::default());
    for c in 0..minors {
        for counts in &mut counts {
            sum += std::mem::replace(&mut counts[c], I::from_u64(sum)).to_u64();
        }
        pos.push(I::from_u64(sum));
    }
    parts.par_iter().zip(&mut counts).for_each(|((range, _), next)| {
        // SAFETY: the counts are of the same entries, by coordinate and then by chunk, so the
        // positions of all chunks are distinct and below the number of entries.
        unsafe { scatter_range(outer, range.clone(), minor, words, next, target, scattered) }
    });
    counts.into_iter().for_each(recycle);
    Ok(pos)
}

fn add_counts<I: Index>(crd: &[I], counts: &mut [I]) {
    for c in crd {
        let count = &mut counts[c.to_usize()];
        *count = I::from_u64(count.to_u64() + 1);
    }
}

/// The start of the entries of each coordinate, shifted by one: in index c + 1.
pub(super) fn count<I: Index>(crd: &[I], extent: usize) -> Result<Vec<I>> {
    let length = extent.checked_add(2).ok_or_else(|| too_large(u64::MAX, size_of::<I>(), "`pos`"))?;
    let mut counts: Vec<I> = zeroed(length, "`pos`")?;
    add_counts(crd, &mut counts[2..]);
    let mut sum = 0;
    for count in &mut counts {
        sum += count.to_u64();
        *count = I::from_u64(sum);
    }
    Ok(counts)
}
