//! Concatenation of sparse results: the rows that chunks wrote to their own arrays become one
//! tensor.
//!
//! Coordinates and values are appended chunk by chunk; positions are offset by the number of
//! elements before. The arrays of the first chunk grow and become those of the result.

use crate::output::Output;
use std::sync::Mutex;
use tamis_backend::runtime::Element;
use tamis_backend::{KernelFailure, RawStorage};
use tamis_ir::format::Width;
use tamis_ir::kernel::{Elem, Kernel};
use tamis_tensor::levels::ArrayRole;

/// Shorter arrays are copied by one thread.
const LONG: usize = 1 << 15;

/// Concatenates the arrays of a result. `rows` says how many rows each chunk wrote; `levels` are
/// the extents of the result's levels.
pub(crate) fn rows(
    kernel: &Kernel,
    output: &Output,
    levels: &[u64],
    rows: &[u64],
    chunks: &mut [Vec<Option<RawStorage>>],
    joined: &mut [Option<RawStorage>],
    threads: usize,
) -> Result<(), KernelFailure> {
    // The number of positions of each chunk above the current level.
    let mut above: Vec<usize> = vec![1; chunks.len()];
    for (level, arrays) in output.arrays.iter().enumerate() {
        let mut below: Vec<usize> = match arrays.is_empty() {
            true if level == 0 => rows.iter().map(|n| *n as usize).collect(),
            true => above.iter().map(|n| n.saturating_mul(levels[level] as usize)).collect(),
            false => above.clone(),
        };
        let offsets = output.array(level, ArrayRole::FiberOffsets);
        if let Some(pos) = offsets {
            let array = OutputArray { kernel, buffer: pos, threads };
            let width = array.width()?;
            for ((chunk, count), above) in chunks.iter().zip(&mut below).zip(&above) {
                *count = chunk[pos].as_ref().map_or(0, |pos| element(pos, width, *above));
            }
            joined[pos] = Some(array.positions(level == 0, chunks, &above, &below)?);
        }
        for (_, buffer) in arrays.iter().filter(|(_, buffer)| Some(*buffer) != offsets) {
            joined[*buffer] = Some(OutputArray { kernel, buffer: *buffer, threads }.append(chunks, &below)?);
        }
        above = below;
    }
    if let Some(values) = output.values {
        joined[values] = Some(OutputArray { kernel, buffer: values, threads }.append(chunks, &above)?);
    }
    Ok(())
}

/// An array that is concatenated.
struct OutputArray<'a> {
    kernel: &'a Kernel,
    buffer: usize,
    threads: usize,
}

impl OutputArray<'_> {
    fn width(&self) -> Result<Width, KernelFailure> {
        match self.kernel.buffers[self.buffer].elem {
            Elem::Index(width) => Ok(width),
            Elem::Value(_) => Err(KernelFailure::Call("positions are not indices".to_string())),
        }
    }

    /// Appends the arrays of all chunks, which have these lengths.
    fn append(&self, chunks: &mut [Vec<Option<RawStorage>>], lens: &[usize]) -> Result<RawStorage, KernelFailure> {
        let (mut all, rest) = self.take(chunks, lens.iter().sum())?;
        let size = all.element_size();
        let start = lens.first().map_or(0, |len| len * size);
        let from = rest.iter().zip(lens.iter().skip(1));
        let from = from.map(|(chunk, len)| (chunk.as_ref().map_or(&[][..], |chunk| &chunk.bytes()[..len * size]), ()));
        let from: Vec<(&[u8], ())> = from.collect();
        copy(&mut all.bytes_mut()[start..], &from, LONG * size, self.threads, |to, from, ()| to.copy_from_slice(from));
        Ok(all)
    }

    /// Appends positions, offset by the elements of earlier chunks. The outermost level has one
    /// fiber, whose end is the total.
    fn positions(
        &self,
        outermost: bool,
        chunks: &mut [Vec<Option<RawStorage>>],
        fibers: &[usize],
        counts: &[usize],
    ) -> Result<RawStorage, KernelFailure> {
        let nnz: usize = counts.iter().sum();
        let width = self.width()?;
        if nnz as u64 > width.max() {
            let buffer = self.kernel.buffers[self.buffer].name.clone();
            return Err(KernelFailure::Width { buffer, value: nnz as i64, width: width.name() });
        }
        let total = if outermost { 2 } else { fibers.iter().sum::<usize>() + 1 };
        let (mut all, rest) = self.take(chunks, total)?;
        macro_rules! typed {
            ($rust:ty) => {{
                let to: &mut [$rust] = all.indices_mut().unwrap_or_default();
                match outermost {
                    true => to[1] = nnz as $rust,
                    false => append_positions(to, &rest, fibers, counts, self.threads, |n, before| {
                        n.wrapping_add(before as $rust)
                    }),
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

    /// The array of the first chunk, grown to the total length, and the arrays of the others.
    fn take(
        &self,
        chunks: &mut [Vec<Option<RawStorage>>],
        total: usize,
    ) -> Result<(RawStorage, Vec<Option<RawStorage>>), KernelFailure> {
        let buffer = &self.kernel.buffers[self.buffer];
        let mut arrays = chunks.iter_mut().map(|chunk| chunk[self.buffer].take());
        let mut all = arrays.next().flatten().unwrap_or(RawStorage::new(buffer.elem));
        if !all.grow(total) {
            let elements = total as u64;
            let bytes = elements.saturating_mul(buffer.elem.size() as u64);
            return Err(KernelFailure::Memory { buffer: buffer.name.clone(), elements, bytes });
        }
        all.truncate(total);
        Ok((all, arrays.collect()))
    }
}

/// Appends the positions of all chunks after the first, each offset by the elements before it.
fn append_positions<T: Element + Into<u64> + Send + Sync>(
    to: &mut [T],
    rest: &[Option<RawStorage>],
    fibers: &[usize],
    counts: &[usize],
    threads: usize,
    add: impl Fn(T, usize) -> T + Sync,
) {
    let mut before = counts.first().copied().unwrap_or(0);
    let mut from: Vec<(&[T], usize)> = Vec::new();
    for ((chunk, fibers), count) in rest.iter().zip(fibers.iter().skip(1)).zip(counts.iter().skip(1)) {
        let array = chunk.as_ref().and_then(RawStorage::indices::<T>).unwrap_or_default();
        from.push((array.get(1..fibers + 1).unwrap_or_default(), before));
        before += count;
    }
    let start = fibers.first().map_or(0, |n| n + 1);
    copy(&mut to[start..], &from, LONG, threads, |to, from, before| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = add(*from, before));
    });
}

/// Writes arrays contiguously, in parallel if they are long.
fn copy<T: Send + Sync, X: Copy + Send + Sync>(
    mut to: &mut [T],
    from: &[(&[T], X)],
    long: usize,
    threads: usize,
    write: impl Fn(&mut [T], &[T], X) + Sync,
) {
    let total: usize = from.iter().map(|(array, _)| array.len()).sum();
    let workers = if total < long { 1 } else { threads.max(1) };
    let step = total.div_ceil(workers).max(1);
    let mut jobs = Vec::new();
    for (array, extra) in from {
        for block in array.chunks(step) {
            let (here, rest) = std::mem::take(&mut to).split_at_mut(block.len());
            jobs.push(Mutex::new(Some((here, block, *extra))));
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

/// The element of a position array at an index.
fn element(array: &RawStorage, width: Width, index: usize) -> usize {
    let found = match width {
        Width::U8 => array.indices::<u8>().and_then(|x| x.get(index)).map(|n| u64::from(*n)),
        Width::U16 => array.indices::<u16>().and_then(|x| x.get(index)).map(|n| u64::from(*n)),
        Width::U32 => array.indices::<u32>().and_then(|x| x.get(index)).map(|n| u64::from(*n)),
        Width::U64 => array.indices::<u64>().and_then(|x| x.get(index)).copied(),
    };
    found.unwrap_or(0) as usize
}
