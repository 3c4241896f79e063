//! Graph traversals of adjacency matrices in CSR: connected components by union-find, breadth-first
//! search, Dijkstra's shortest paths, and core numbers by peeling.
//!
//! Row `i` holds the edges out of node `i`. What a kernel of loops cannot say is here: queues,
//! heaps and disjoint sets.

use crate::rows::Rows;
use crate::tensor::PyTensor;
use crate::{arrays, work};
use pyo3::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tamis::diagnostic::Code;
use tamis::tensor::{IndexArray, ValueArray};
use tamis::{Diagnostic, Tensor};

/// The edges of a graph.
struct Graph {
    rows: Rows,
    size: usize,
}

impl Graph {
    fn of(tensor: &Tensor) -> Result<Graph, Diagnostic> {
        let rows = Rows::of(tensor)?;
        match tensor.shape() {
            [a, b] if a == b => Ok(Graph { rows, size: *a as usize }),
            shape => {
                Err(Diagnostic::new(Code::E0402, format!("a graph has a square matrix, not one of shape {shape:?}"))
                    .help("give a row and a column for each node"))
            }
        }
    }

    /// Calls `visit` with arrays of 32 bits, where they are, and copies of others.
    fn with_arrays<R>(&self, visit: impl FnOnce(&[u32], &[u32]) -> R) -> Result<R, Diagnostic> {
        match (&self.rows.pos, &self.rows.crd) {
            (IndexArray::U32(pos), IndexArray::U32(crd)) => Ok(visit(pos, crd)),
            (pos, crd) => {
                let narrow = |array: &IndexArray| -> Result<Vec<u32>, Diagnostic> {
                    let wide = array.to_vec();
                    wide.into_iter()
                        .map(|x| {
                            u32::try_from(x).map_err(|_| {
                                Diagnostic::new(Code::E0404, "a graph has at most 2^32 - 1 nodes and edges")
                                    .help("take a part of it")
                            })
                        })
                        .collect()
                };
                Ok(visit(&narrow(pos)?, &narrow(crd)?))
            }
        }
    }
}

fn numbers<'py>(py: Python<'py>, values: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
    let count = values.len() as u64;
    arrays::give_values(py, ValueArray::I64(values.into()), &[count])
}

fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while parents[node as usize] != node {
        let above = parents[parents[node as usize] as usize];
        parents[node as usize] = above;
        node = above;
    }
    node
}

/// The weakly connected component of each node; components are numbered by their first node.
#[pyfunction]
pub(crate) fn components<'py>(py: Python<'py>, tensor: &Bound<'py, PyTensor>) -> PyResult<(usize, Bound<'py, PyAny>)> {
    let given = tensor.get().tensor.clone();
    let (count, labels) = work::run(py, || {
        let graph = Graph::of(&given)?;
        Ok(graph.with_arrays(|pos, crd| {
            let mut parents: Vec<u32> = (0..graph.size as u32).collect();
            for node in 0..graph.size {
                let mut mine = root(&mut parents, node as u32);
                for other in &crd[pos[node] as usize..pos[node + 1] as usize] {
                    let theirs = root(&mut parents, *other);
                    // The smaller root stays, so that components are numbered by their first node.
                    let (low, high) = (mine.min(theirs), mine.max(theirs));
                    parents[high as usize] = low;
                    mine = low;
                }
            }
            let (mut count, mut labels) = (0usize, vec![0i64; graph.size]);
            for node in 0..graph.size {
                let top = root(&mut parents, node as u32) as usize;
                labels[node] = if top == node {
                    count += 1;
                    count as i64 - 1
                } else {
                    labels[top]
                };
            }
            (count, labels)
        })?)
    })?;
    Ok((count, numbers(py, labels)?))
}

/// The distance in edges of each node from the sources, -1 where there is no path, and the node
/// before it on a shortest path, -1 for sources.
#[pyfunction]
pub(crate) fn breadth_first<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    sources: Vec<usize>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let given = tensor.get().tensor.clone();
    let (distances, before) = work::run(py, || {
        let graph = Graph::of(&given)?;
        inside(&sources, graph.size)?;
        Ok(graph.with_arrays(|pos, crd| {
            let (mut distances, mut before) = (vec![-1i64; graph.size], vec![-1i64; graph.size]);
            let mut queue: Vec<u32> = Vec::with_capacity(graph.size);
            for source in &sources {
                if distances[*source] < 0 {
                    distances[*source] = 0;
                    queue.push(*source as u32);
                }
            }
            let mut head = 0;
            while head < queue.len() {
                let node = queue[head] as usize;
                head += 1;
                for other in &crd[pos[node] as usize..pos[node + 1] as usize] {
                    if distances[*other as usize] < 0 {
                        distances[*other as usize] = distances[node] + 1;
                        before[*other as usize] = node as i64;
                        queue.push(*other);
                    }
                }
            }
            (distances, before)
        })?)
    })?;
    Ok((numbers(py, distances)?, numbers(py, before)?))
}

fn inside(sources: &[usize], size: usize) -> Result<(), Diagnostic> {
    match sources.iter().find(|source| **source >= size) {
        None => Ok(()),
        Some(source) => Err(Diagnostic::new(Code::E1001, format!("node {source} is out of bounds for {size} nodes"))
            .help("nodes are counted from 0")),
    }
}

/// The length of a shortest path to each node from the sources, infinite where there is none, and
/// the node before it, -1 for sources. Weights are of type `f64`, and none is negative.
#[pyfunction]
pub(crate) fn dijkstra<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyTensor>,
    sources: Vec<usize>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let given = tensor.get().tensor.clone();
    let (lengths, before) = work::run(py, || {
        let graph = Graph::of(&given)?;
        inside(&sources, graph.size)?;
        let Some(ValueArray::F64(weights)) = &graph.rows.values else {
            let d = Diagnostic::new(Code::E0308, "weights of edges have the type f64 here");
            return Err(d.help("convert them first: `t.astype('f64')`").into());
        };
        if let Some(weight) = weights.iter().find(|weight| **weight < 0.0 || weight.is_nan()) {
            let d = Diagnostic::new(Code::E0709, format!("an edge has the weight {weight}"));
            return Err(d.help("shortest paths need weights of 0 or more").into());
        }
        Ok(graph.with_arrays(|pos, crd| {
            let (mut lengths, mut before) = (vec![f64::INFINITY; graph.size], vec![-1i64; graph.size]);
            // Numbers of 0 or more are ordered as their bits are.
            let mut heap: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
            for source in &sources {
                lengths[*source] = 0.0;
                heap.push(Reverse((0, *source as u32)));
            }
            while let Some(Reverse((bits, node))) = heap.pop() {
                let (length, node) = (f64::from_bits(bits), node as usize);
                if length > lengths[node] {
                    continue;
                }
                for edge in pos[node] as usize..pos[node + 1] as usize {
                    let (other, new) = (crd[edge] as usize, length + weights[edge]);
                    if new < lengths[other] {
                        lengths[other] = new;
                        before[other] = node as i64;
                        heap.push(Reverse((new.to_bits(), other as u32)));
                    }
                }
            }
            (lengths, before)
        })?)
    })?;
    let count = lengths.len() as u64;
    Ok((arrays::give_values(py, ValueArray::F64(lengths.into()), &[count])?, numbers(py, before)?))
}

/// The core number of each node of an undirected graph without loops: the greatest `k` such that
/// it belongs to a subgraph in which every node has `k` neighbours.
#[pyfunction]
pub(crate) fn core_numbers<'py>(py: Python<'py>, tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let given = tensor.get().tensor.clone();
    let cores = work::run(py, || {
        let graph = Graph::of(&given)?;
        Ok(graph.with_arrays(|pos, crd| peeled(graph.size, pos, crd))?)
    })?;
    numbers(py, cores)
}

/// Batagelj and Zaversnik: nodes in order of degree, in buckets; removing a node lowers the degrees
/// of its neighbours.
fn peeled(size: usize, pos: &[u32], crd: &[u32]) -> Vec<i64> {
    let mut degree: Vec<usize> = (0..size).map(|node| (pos[node + 1] - pos[node]) as usize).collect();
    let most = degree.iter().copied().max().unwrap_or(0);
    let mut start = vec![0usize; most + 2];
    degree.iter().for_each(|d| start[d + 1] += 1);
    (0..=most).for_each(|d| start[d + 1] += start[d]);
    let (mut order, mut place, mut next) = (vec![0usize; size], vec![0usize; size], start.clone());
    for node in 0..size {
        place[node] = next[degree[node]];
        order[place[node]] = node;
        next[degree[node]] += 1;
    }
    for k in 0..size {
        let node = order[k];
        for other in &crd[pos[node] as usize..pos[node + 1] as usize] {
            let other = *other as usize;
            if degree[other] > degree[node] {
                let (first, mine) = (start[degree[other]], place[other]);
                let swapped = order[first];
                (order[first], order[mine]) = (other, swapped);
                (place[other], place[swapped]) = (first, mine);
                start[degree[other]] += 1;
                degree[other] -= 1;
            }
        }
    }
    degree.into_iter().map(|d| d as i64).collect()
}
