//! Generators of random structure: uniform entries, dense blocks, permutations.

use super::entries::{EntryCollector, cells, check_memory};
use super::sample::sorted_sample;
use super::stream::{Stream, StreamPurpose, refuse, reserve};
use crate::Coordinates;
use tamis_ir::diag::Result;

/// A tensor with exactly `round(density * cells)` uniformly distributed entries, and values uniform
/// in (0, 1).
///
/// The density is from 0 to 1; at 1, every cell has an entry.
///
/// ```
/// let a = tamis_tensor::gallery::random(&[100, 200], 0.1, 42).unwrap();
/// assert_eq!((a.shape.as_slice(), a.len()), (&[100, 200][..], 2000));
/// assert!(tamis_tensor::gallery::random(&[100, 200], 2.0, 42).is_err());
/// ```
pub fn random(shape: &[u64], density: f64, seed: u64) -> Result<Coordinates> {
    check_density(density)?;
    let cells = cells(shape)?;
    sampled(shape, cells, round_share(density, cells), seed)
}

/// A tensor with exactly `count` uniformly distributed entries, and values uniform in (0, 1).
///
/// ```
/// let a = tamis_tensor::gallery::random_nnz(&[1 << 40, 1 << 40], 1000, 7).unwrap();
/// assert_eq!(a.len(), 1000);
/// ```
pub fn random_nnz(shape: &[u64], count: u64, seed: u64) -> Result<Coordinates> {
    let cells = cells(shape)?;
    if u128::from(count) > cells {
        let message = format!("{count} entries do not fit {cells} elements");
        return Err(refuse(message, format!("request at most {cells} entries, or a larger shape")));
    }
    sampled(shape, cells, u128::from(count), seed)
}

fn sampled(shape: &[u64], cells: u128, count: u128, seed: u64) -> Result<Coordinates> {
    let mut entries = EntryCollector::new(shape, count)?;
    let mut values = Stream::new(seed, StreamPurpose::Values);
    sorted_sample(&mut Stream::new(seed, StreamPurpose::Structure), cells, count, |cell| {
        entries.push_cell(cell, values.unit());
    })?;
    Ok(entries.finish())
}

/// A square matrix of dense `block` x `block` blocks: exactly `round(density * blocks)` of the
/// aligned blocks are stored, with values uniform in (0, 1). Blocks at the right and lower edge are
/// cut off if `block` does not divide `n`.
///
/// ```
/// let a = tamis_tensor::gallery::blocked(8, 4, 0.5, 1).unwrap();
/// assert_eq!(a.len(), 2 * 16);
/// ```
pub fn blocked(n: u64, block: u64, density: f64, seed: u64) -> Result<Coordinates> {
    check_density(density)?;
    if block == 0 {
        return Err(refuse("a block has at least one row", "choose a block size of 1 or more"));
    }
    let per_side = n.div_ceil(block);
    let blocks = u128::from(per_side) * u128::from(per_side);
    let count = round_share(density, blocks);
    let mut chosen: Vec<(u64, u64)> = reserve(check_memory(count, 16)?)?;
    sorted_sample(&mut Stream::new(seed, StreamPurpose::Structure), blocks, count, |k| {
        chosen.push(((k / u128::from(per_side)) as u64, (k % u128::from(per_side)) as u64));
    })?;
    let extent = |k: u64| k * block..(k + 1).saturating_mul(block).min(n);
    let length = |k: u64| extent(k).end - extent(k).start;
    let total = chosen.iter().fold(0u128, |sum, (i, j)| sum + u128::from(length(*i)) * u128::from(length(*j)));
    let mut entries = EntryCollector::new(&[n, n], total)?;
    let mut stream = Stream::new(seed, StreamPurpose::Values);
    if let Some((rows, columns, values)) = entries.matrix() {
        for block_row in chosen.chunk_by(|a, b| a.0 == b.0) {
            for row in extent(block_row[0].0) {
                for (_, j) in block_row {
                    rows.repeat(row, length(*j));
                    columns.range(extent(*j));
                    values.extend(extent(*j).map(|_| stream.unit()));
                }
            }
        }
    }
    Ok(entries.finish())
}

/// A permutation matrix: one 1 in each row and in each column, uniformly distributed.
///
/// ```
/// assert_eq!(tamis_tensor::gallery::permutation(5, 3).unwrap().len(), 5);
/// ```
pub fn permutation(n: u64, seed: u64) -> Result<Coordinates> {
    let mut entries = EntryCollector::new(&[n, n], u128::from(n))?;
    let mut order: Vec<u64> = reserve(check_memory(u128::from(n), 8)?)?;
    order.extend(0..n);
    let mut stream = Stream::new(seed, StreamPurpose::Structure);
    for k in (1..order.len()).rev() {
        order.swap(k, stream.below(k as u64 + 1) as usize);
    }
    if let Some((rows, columns, values)) = entries.matrix() {
        rows.range(0..n);
        order.iter().for_each(|column| columns.push(*column));
        values.resize(order.len(), 1.0);
    }
    Ok(entries.finish())
}

fn check_density(density: f64) -> Result<()> {
    if (0.0..=1.0).contains(&density) {
        return Ok(());
    }
    Err(refuse(
        format!("the density {density:?} is not between 0 and 1"),
        "write a fraction of all elements, such as 0.1",
    ))
}

/// `density * whole`, rounded; `whole` itself for density 1, without rounding errors.
fn round_share(density: f64, whole: u128) -> u128 {
    if density == 1.0 { whole } else { ((density * whole as f64).round() as u128).min(whole) }
}
