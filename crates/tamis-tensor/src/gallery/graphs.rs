//! Random graphs as adjacency matrices.

use super::entries::{EntryCollector, check_memory};
use super::sample::radix_sort;
use super::stream::{Stream, StreamPurpose, refuse, reserve};
use crate::Coordinates;
use tamis_ir::diag::Result;

/// An R-MAT graph as in Graph500: 2^`scale` nodes, `edges_per_node` * 2^`scale` directed edges
/// drawn with the quadrant probabilities a, b, c, d = 0.57, 0.19, 0.19, 0.05, and weights uniform
/// in (0, 1).
///
/// Duplicate edges are stored once, so nnz is somewhat below the number of drawn edges. Self loops
/// are kept, the matrix is not made symmetric, and nodes are not relabelled (low ids have high
/// degrees): each of these steps is easily done afterwards, and none could be undone.
///
/// ```
/// let a = tamis_tensor::gallery::rmat(10, 8, 1).unwrap();
/// assert_eq!(a.shape, [1024, 1024]);
/// assert!(a.len() > 6000 && a.len() <= 8192);
/// ```
pub fn rmat(scale: u32, edges_per_node: u64, seed: u64) -> Result<Coordinates> {
    if scale > 31 {
        let message = format!("a graph of 2^{scale} nodes is too large");
        return Err(refuse(message, "the first argument is the logarithm of the number of nodes, from 0 to 31"));
    }
    let nodes = 1u64 << scale;
    let drawn = u128::from(nodes) * u128::from(edges_per_node);
    // The edges, and the same amount for sorting.
    let drawn = check_memory(drawn, 16)?;
    let mut edges: Vec<u64> = reserve(drawn)?;
    let mut stream = Stream::new(seed, StreamPurpose::Structure);
    edges.extend((0..drawn).map(|_| edge(&mut stream, scale)));
    radix_sort(&mut edges, 2 * scale)?;
    edges.dedup();
    let mut entries = EntryCollector::new(&[nodes, nodes], edges.len() as u128)?;
    let mut weights = Stream::new(seed, StreamPurpose::Values);
    if let Some((rows, columns, values)) = entries.matrix() {
        for edge in edges {
            rows.push(edge >> scale);
            columns.push(edge & (nodes - 1));
            values.push(weights.unit());
        }
    }
    Ok(entries.finish())
}

/// The probabilities a, a+b and a+b+c in units of 2^-32: floats would round differently on other
/// platforms.
const A: u64 = (0.57 * (1u64 << 32) as f64) as u64;
const A_B: u64 = (0.76 * (1u64 << 32) as f64) as u64;
const A_B_C: u64 = (0.95 * (1u64 << 32) as f64) as u64;

/// One edge: row in the high half, column in the low half of 2 * `scale` bits.
fn edge(stream: &mut Stream, scale: u32) -> u64 {
    let (mut row, mut column, mut word) = (0u64, 0u64, 0u64);
    for level in 0..scale {
        // One word decides two levels.
        word = if level % 2 == 0 { stream.word() } else { word >> 32 };
        let draw = word & 0xffff_ffff;
        // Without branches, which would be mispredicted half of the time.
        let (past_a, past_b, past_c) = (u64::from(draw >= A), u64::from(draw >= A_B), u64::from(draw >= A_B_C));
        row = row << 1 | past_b;
        column = column << 1 | (past_a ^ past_b ^ past_c);
    }
    row << scale | column
}
