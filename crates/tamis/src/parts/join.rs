//! Rows that several threads wrote, each to arrays of its own, become one result: lists follow each other, and positions count on.

use crate::output::Output;
use std::sync::Mutex;
use tamis_backend::runtime::Element;
use tamis_backend::{KernelFailure, Storage};
use tamis_ir::format::Width;
use tamis_ir::kernel::{Elem, Kernel};

/// Below so many elements one thread copies.
const LONG: usize = 1 << 15;

/// Joins the arrays of a result, of which the parts have so many rows each; `levels` are the extents of its levels.
pub(crate) fn rows(
    kernel: &Kernel,
    output: &Output,
    levels: &[u64],
    rows: &[u64],
    parts: &mut [Vec<Option<Storage>>],
    joined: &mut [Option<Storage>],
    threads: usize,
) -> Result<(), KernelFailure> {
    // How many positions each part has above the level at hand.
    let mut above: Vec<usize> = vec![1; parts.len()];
    for (level, arrays) in output.arrays.iter().enumerate() {
        let mut below: Vec<usize> = match arrays.is_empty() {
            true if level == 0 => rows.iter().map(|n| *n as usize).collect(),
            true => above.iter().map(|n| n.saturating_mul(levels[level] as usize)).collect(),
            false => above.clone(),
        };
        for (_, pos) in arrays.iter().filter(|(name, _)| *name == "pos") {
            let array = Array { kernel, buffer: *pos, threads };
            let width = array.width()?;
            for ((part, count), above) in parts.iter().zip(&mut below).zip(&above) {
                *count = part[*pos].as_ref().map_or(0, |pos| number(pos, width, *above));
            }
            joined[*pos] = Some(array.positions(level == 0, parts, &above, &below)?);
        }
        for (_, buffer) in arrays.iter().filter(|(name, _)| *name != "pos") {
            joined[*buffer] = Some(Array { kernel, buffer: *buffer, threads }.list(parts, &below)?);
        }
        above = below;
    }
    if let Some(values) = output.values {
        joined[values] = Some(Array { kernel, buffer: values, threads }.list(parts, &above)?);
    }
    Ok(())
}

/// An array that is joined.
struct Array<'a> {
    kernel: &'a Kernel,
    buffer: usize,
    threads: usize,
}

impl Array<'_> {
    fn width(&self) -> Result<Width, KernelFailure> {
        match self.kernel.buffers[self.buffer].elem {
            Elem::Index(width) => Ok(width),
            Elem::Value(_) => Err(KernelFailure::Call("positions are no indices".to_string())),
        }
    }

    /// One list after the other, of these lengths.
    fn list(&self, parts: &mut [Vec<Option<Storage>>], lens: &[usize]) -> Result<Storage, KernelFailure> {
        let (mut all, rest) = self.take(parts, lens.iter().sum())?;
        let size = all.element_size();
        let start = lens.first().map_or(0, |len| len * size);
        let from = rest.iter().zip(lens.iter().skip(1));
        let from = from.map(|(part, len)| (part.as_ref().map_or(&[][..], |part| &part.bytes()[..len * size]), ()));
        let from: Vec<(&[u8], ())> = from.collect();
        copy(&mut all.bytes_mut()[start..], &from, LONG * size, self.threads, |to, from, ()| to.copy_from_slice(from));
        Ok(all)
    }

    /// Positions, which count on from part to part. There is one list only, if it is that of the outermost level.
    fn positions(
        &self,
        outermost: bool,
        parts: &mut [Vec<Option<Storage>>],
        fibers: &[usize],
        counts: &[usize],
    ) -> Result<Storage, KernelFailure> {
        let entries: usize = counts.iter().sum();
        let width = self.width()?;
        if entries as u64 > width.max() {
            let buffer = self.kernel.buffers[self.buffer].name.clone();
            return Err(KernelFailure::Width { buffer, value: entries as i64, width: width.name() });
        }
        let total = if outermost { 2 } else { fibers.iter().sum::<usize>() + 1 };
        let (mut all, rest) = self.take(parts, total)?;
        macro_rules! typed {
            ($rust:ty) => {{
                let to: &mut [$rust] = all.indices_mut().unwrap_or_default();
                match outermost {
                    true => to[1] = entries as $rust,
                    false => {
                        count_on(to, &rest, fibers, counts, self.threads, |n, before| n.wrapping_add(before as $rust))
                    }
                }
            }};
        }
        match width {
            Width::U8 => typed!(u8),
            Width::U16 => typed!(u16),
            Width::U32 => typed!(u32),
            Width::U64 => typed!(u64),
        }
        Ok(all)
    }

    /// The array of the first part, as long as all together, and those of the others.
    fn take(
        &self,
        parts: &mut [Vec<Option<Storage>>],
        total: usize,
    ) -> Result<(Storage, Vec<Option<Storage>>), KernelFailure> {
        let described = &self.kernel.buffers[self.buffer];
        let mut arrays = parts.iter_mut().map(|part| part[self.buffer].take());
        let mut all = arrays.next().flatten().unwrap_or(Storage::new(described.elem));
        if !all.grow(total) {
            let (buffer, elements) = (described.name.clone(), total as u64);
            let bytes = elements.saturating_mul(described.elem.size() as u64);
            return Err(KernelFailure::Memory { buffer, elements, bytes });
        }
        all.truncate(total);
        Ok((all, arrays.collect()))
    }
}

/// Appends the positions of further parts.
fn count_on<T: Element + Into<u64> + Send + Sync>(
    to: &mut [T],
    rest: &[Option<Storage>],
    fibers: &[usize],
    counts: &[usize],
    threads: usize,
    add: impl Fn(T, usize) -> T + Sync,
) {
    let mut before = counts.first().copied().unwrap_or(0);
    let mut from: Vec<(&[T], usize)> = Vec::new();
    for ((part, fibers), count) in rest.iter().zip(fibers.iter().skip(1)).zip(counts.iter().skip(1)) {
        let array = part.as_ref().and_then(Storage::indices::<T>).unwrap_or_default();
        from.push((array.get(1..fibers + 1).unwrap_or_default(), before));
        before += count;
    }
    let start = fibers.first().map_or(0, |n| n + 1);
    copy(&mut to[start..], &from, LONG, threads, |to, from, before| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = add(*from, before));
    });
}

/// Writes parts one after the other, on several threads if they are long.
fn copy<T: Send + Sync, X: Copy + Send + Sync>(
    mut to: &mut [T],
    from: &[(&[T], X)],
    long: usize,
    threads: usize,
    write: impl Fn(&mut [T], &[T], X) + Sync,
) {
    let total: usize = from.iter().map(|(part, _)| part.len()).sum();
    let workers = if total < long { 1 } else { threads.max(1) };
    let step = total.div_ceil(workers).max(1);
    let mut jobs = Vec::new();
    for (part, extra) in from {
        for piece in part.chunks(step) {
            let (here, rest) = std::mem::take(&mut to).split_at_mut(piece.len());
            jobs.push(Mutex::new(Some((here, piece, *extra))));
            to = rest;
        }
    }
    tamis_tensor::threads::share(workers, &|worker| {
        for job in jobs.iter().skip(worker).step_by(workers) {
            if let Some((to, from, extra)) = job.lock().ok().and_then(|mut job| job.take()) {
                write(to, from, extra);
            }
        }
    });
}

/// The number at some place of an array of positions.
fn number(array: &Storage, width: Width, place: usize) -> usize {
    let found = match width {
        Width::U8 => array.indices::<u8>().and_then(|x| x.get(place)).map(|n| u64::from(*n)),
        Width::U16 => array.indices::<u16>().and_then(|x| x.get(place)).map(|n| u64::from(*n)),
        Width::U32 => array.indices::<u32>().and_then(|x| x.get(place)).map(|n| u64::from(*n)),
        Width::U64 => array.indices::<u64>().and_then(|x| x.get(place)).copied(),
    };
    found.unwrap_or(0) as usize
}
