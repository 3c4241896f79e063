//! Discrete Laplacians on rectangular grids.

use super::entries::EntryCollector;
use super::stream::refuse;
use crate::Coordinates;
use tamis_ir::diag::Result;

/// The 5-point Laplacian of an `n` x `n` grid: `n`² rows, 4 on the diagonal, -1 for each neighbour.
///
/// ```
/// let a = tamis_tensor::gallery::laplacian(3).unwrap();
/// assert_eq!((a.shape.as_slice(), a.len()), (&[9, 9][..], 33));
/// ```
pub fn laplacian(n: u64) -> Result<Coordinates> {
    laplacian_grid(&[n, n])
}

/// The 7-point Laplacian of an `n` x `n` x `n` grid: `n`³ rows, 6 on the diagonal, -1 for each
/// neighbour.
///
/// ```
/// let a = tamis_tensor::gallery::laplacian3(3)?;
/// assert_eq!((a.shape.as_slice(), a.len()), (&[27, 27][..], 27 + 2 * 54));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn laplacian3(n: u64) -> Result<Coordinates> {
    laplacian_grid(&[n, n, n])
}

/// The Laplacian of a rectangular grid of any rank: twice the rank on the diagonal, -1 for each
/// neighbour, with Dirichlet boundaries. Points are in row-major order.
///
/// ```
/// let a = tamis_tensor::gallery::laplacian_grid(&[4]).unwrap();
/// assert_eq!(a.len(), 4 + 2 * 3);
/// ```
pub fn laplacian_grid(grid: &[u64]) -> Result<Coordinates> {
    let too_large = || refuse("the grid has more than 2^63-1 points", "choose a smaller grid");
    let product = |sizes: &[u64]| sizes.iter().try_fold(1u64, |product, n| product.checked_mul(*n));
    // A product with a zero factor is zero, also if its other factors overflow.
    let points = if grid.contains(&0) { 0 } else { product(grid).ok_or_else(too_large)? };
    if points > i64::MAX as u64 {
        return Err(too_large());
    }
    let links: u128 =
        grid.iter().map(|n| 2 * u128::from(points) / u128::from((*n).max(1)) * u128::from(n.saturating_sub(1))).sum();
    let mut entries = EntryCollector::new(&[points, points], u128::from(points) + links)?;
    if points == 0 {
        return Ok(entries.finish());
    }
    // The row-major strides of neighbours, the largest first.
    let strides: Vec<u64> = (0..grid.len()).map(|d| grid[d + 1..].iter().product()).collect();
    let centre = 2.0 * grid.len() as f64;
    let mut at = vec![0u64; grid.len()];
    if let Some((rows, columns, values)) = entries.matrix() {
        for point in 0..points {
            let before = values.len();
            for (stride, x) in strides.iter().zip(&at) {
                if *x > 0 {
                    columns.push(point - stride);
                    values.push(-1.0);
                }
            }
            columns.push(point);
            values.push(centre);
            for ((stride, x), n) in strides.iter().zip(&at).zip(grid).rev() {
                if x + 1 < *n {
                    columns.push(point + stride);
                    values.push(-1.0);
                }
            }
            rows.repeat(point, (values.len() - before) as u64);
            for (x, n) in at.iter_mut().zip(grid).rev() {
                *x += 1;
                if *x < *n {
                    break;
                }
                *x = 0;
            }
        }
    }
    Ok(entries.finish())
}
