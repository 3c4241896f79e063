//! Conversions of every format to every other, on edge cases, against a dense grid.

use std::collections::BTreeMap;
use tamis_ir::format::Leaf;
use tamis_ir::{Code, DType, Format, Value};
use tamis_tensor::{Combine, Coordinates, Tensor, ValueArray};

const FORMATS: [(usize, &[&str]); 5] = [
    (0, &["dense", "dense; pattern"]),
    (
        1,
        &[
            "dense",
            "sparse",
            "hash",
            "bytemap",
            "singleton",
            "sparse[u8,u8]",
            "sparse(nonunique)",
            "sparse(nonordered)",
            "sparse(nonordered); pattern",
            "sparse; pattern",
            "bytemap; pattern",
            "dense; pattern",
            "singleton; pattern",
            "runs",
            "sparse_runs",
            "interval",
            "blocks",
            "band",
            "runs[u8,u16]",
            "sparse_runs[u64,u8]",
            "interval[u8]",
            "blocks[u8,u64]",
            "band[u16,u8]",
            "runs; pattern",
            "sparse_runs; pattern",
            "interval; pattern",
            "blocks; pattern",
            "band; pattern",
            "(i) -> (i/3, i%3): dense, dense",
            "(i) -> (i%2, i/2): sparse, runs",
            "(i) -> (i/2, i%2): sparse, dense; pattern",
        ],
    ),
    (
        2,
        &[
            "dense",
            "(i,j) -> (j,i): dense, dense",
            "csr",
            "csc",
            "dcsr",
            "dcsc",
            "coo",
            "(i,j) -> (j,i): sparse(nonunique), singleton",
            "dense, singleton",
            "(i,j) -> (j,i): dense, singleton",
            "dense, hash",
            "hash, hash",
            "(i,j) -> (j,i): hash, dense",
            "bytemap, dense",
            "dense, bytemap",
            "bytemap, sparse",
            "(i,j) -> (j,i): sparse, bytemap",
            "bytemap, bytemap",
            "singleton, dense",
            "singleton, singleton",
            "sparse, singleton",
            "bytemap, singleton",
            "sparse, dense",
            "dense, sparse[u64,u8]",
            "sparse[u16,u16], sparse[u8,u64]",
            "sparse(nonunique)[u8,u16], singleton[u8]",
            "dense, sparse(nonunique)",
            "dense, sparse(nonordered)",
            "(i,j) -> (j,i): dense, sparse(nonordered)",
            "sparse, sparse(nonordered)[u8,u64]",
            "bytemap, sparse(nonordered); pattern",
            "csr; pattern",
            "csc; pattern",
            "coo; pattern",
            "dense, bytemap; pattern",
            "bytemap, hash; pattern",
            "sparse, dense; pattern",
            "dense, singleton; pattern",
            "bytemap, dense; pattern",
            "dense, runs",
            "runs, dense",
            "runs, runs",
            "runs, sparse",
            "(i,j) -> (j,i): dense, sparse_runs",
            "sparse_runs, sparse_runs",
            "sparse_runs, singleton",
            "sparse_runs, sparse(nonordered)",
            "dense, interval",
            "interval, dense",
            "interval, bytemap",
            "bytemap, interval",
            "dense, blocks",
            "blocks, blocks",
            "(i,j) -> (j,i): blocks, runs",
            "dense, band",
            "(i,j) -> (j,i): band, sparse",
            "band, band",
            "sparse, band",
            "singleton, runs",
            "dense, sparse_runs; pattern",
            "runs, sparse_runs; pattern",
            "dense, blocks; pattern",
            "dense, band; pattern",
            "dense, interval; pattern",
            "bsr(2,2)",
            "bsr(2,3)",
            "bsr(1,4); pattern",
            "(i,j) -> (i/2, j%3, j/3, i%2): sparse, dense, runs, blocks",
            "(i,j) -> (j-i, i): sparse, dense",
            "(i,j) -> (j-i, i): dense, sparse_runs",
            "(i,j) -> (i-j, j): sparse, band",
            "(i,j) -> (i/2, i%2, j): sparse(nonunique), singleton, singleton",
        ],
    ),
    (
        3,
        &[
            "dense",
            "coo",
            "csf",
            "(i,j,k) -> (i,k,j): dense, dense, dense",
            "(i,j,k) -> (j,i,k): dense, dense, dense",
            "(i,j,k) -> (j,k,i): dense, dense, dense",
            "(i,j,k) -> (k,i,j): dense, dense, dense",
            "(i,j,k) -> (k,j,i): dense, dense, dense",
            "(i,j,k) -> (k,i,j): sparse(nonunique), singleton, singleton",
            "(i,j,k) -> (j,k,i): sparse, sparse, sparse",
            "dense, sparse, dense",
            "sparse(nonunique), singleton, dense",
            "sparse(nonunique), singleton, sparse",
            "sparse, dense, sparse(nonordered)",
            "sparse(nonunique), singleton, sparse(nonordered)",
            "dense, sparse(nonunique), singleton",
            "(i,j,k) -> (k,j,i): sparse, dense, hash",
            "bytemap, dense, sparse",
            "dense, bytemap, singleton",
            "bytemap, bytemap, bytemap",
            "hash, sparse, singleton",
            "csf; pattern",
            "dense, dense, sparse; pattern",
            "runs, runs, runs",
            "dense, runs, sparse",
            "runs, sparse(nonunique), singleton",
            "sparse(nonunique), singleton, sparse_runs",
            "sparse_runs, dense, interval",
            "interval, runs, blocks",
            "(i,j,k) -> (k,i,j): blocks, band, sparse_runs",
            "band, sparse_runs, dense",
            "bytemap, runs, band",
            "singleton, sparse_runs, blocks",
            "sparse_runs, sparse, sparse; pattern",
            "(i,j,k) -> (i/2, j/2, k/2, i%2, j%2, k%2): sparse, sparse, sparse, dense, dense, dense",
            "(i,j,k) -> (k-i, j-i, i): sparse, sparse, dense",
        ],
    ),
    (
        4,
        &[
            "dense",
            "coo",
            "csf",
            "dense, sparse, dense, hash",
            "(i,j,k,l) -> (l,k,j,i): sparse, bytemap, dense, sparse",
            "sparse(nonunique), singleton, dense, bytemap",
            "coo; pattern",
        ],
    ),
];

type Grid = BTreeMap<Vec<u64>, Value>;

struct Case {
    name: String,
    entries: Coordinates,
    fill: Value,
}

fn coordinates(shape: &[u64], points: &[Vec<u64>], values: &[Value], dtype: DType) -> Coordinates {
    Coordinates {
        shape: shape.to_vec(),
        columns: (0..shape.len()).map(|d| points.iter().map(|p| p[d] as u32).collect::<Vec<u32>>().into()).collect(),
        values: ValueArray::from_values(values, dtype),
    }
}

/// Shapes of a rank, and for each: no entries, all, one, every third in reverse order, duplicates.
fn cases(rank: usize, dtype: DType, fill: Value) -> Vec<Case> {
    let shapes: &[&[u64]] = match rank {
        0 => &[&[]],
        1 => &[&[0], &[1], &[7]],
        2 => &[&[0, 3], &[3, 0], &[1, 1], &[4, 4], &[3, 5]],
        3 => &[&[2, 3, 4], &[2, 0, 2], &[1, 3, 1]],
        _ => &[&[2, 1, 3, 2]],
    };
    let mut cases = Vec::new();
    for shape in shapes {
        let mut all: Vec<Vec<u64>> = vec![vec![]];
        for n in shape.iter() {
            all = all.iter().flat_map(|p| (0..*n).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>()).collect();
        }
        let number = |k: usize| Value::I64([3, 1, 0, 5, 2][k % 5]);
        let mut add = |name: &str, points: Vec<Vec<u64>>| {
            let values: Vec<Value> = (0..points.len()).map(number).collect();
            let entries = coordinates(shape, &points, &values, dtype);
            cases.push(Case { name: format!("{name} of {shape:?}"), entries, fill: fill.cast(dtype) });
        };
        add("nothing", vec![]);
        add("all", all.clone());
        add("one", all.last().cloned().into_iter().collect());
        add("reversed thirds", all.iter().rev().step_by(3).cloned().collect());
        add("repeated", all.iter().step_by(2).chain(all.iter().rev().step_by(3)).cloned().collect());
        add("a diagonal", all.iter().filter(|p| p.windows(2).all(|w| w[0] == w[1])).cloned().collect());
    }
    cases
}

/// The meaning of a case, computed naively.
fn grid(case: &Case) -> Grid {
    let mut all: Vec<Vec<u64>> = vec![vec![]];
    for n in &case.entries.shape {
        all = all.iter().flat_map(|p| (0..*n).map(|i| [&p[..], &[i]].concat()).collect::<Vec<_>>()).collect();
    }
    let mut grid: Grid = all.into_iter().map(|p| (p, case.fill)).collect();
    for e in 0..case.entries.len() {
        let point: Vec<u64> = case.entries.columns.iter().map(|c| c.get(e)).collect();
        grid.insert(point, case.entries.values.get(e));
    }
    grid
}

/// All accessors agree with the grid; a pattern with its truth values.
fn check(tensor: &Tensor, grid: &Grid, context: &str) {
    let pattern = tensor.format().leaf() == Leaf::Pattern;
    let expected = |v: &Value| if tensor.dtype() == v.dtype() { *v } else { v.cast(DType::Bool) };
    let dense = tensor.to_dense().unwrap_or_else(|d| panic!("{context}: {d}"));
    assert_eq!(dense.len(), grid.len(), "{context}");
    for (k, (point, value)) in grid.iter().enumerate() {
        let value = expected(value);
        assert!(dense.get(k).same_number(value), "{context} at {point:?}: {:?} is not {value:?}", dense.get(k));
        assert!(tensor.get(point).unwrap().same_number(value), "{context} at {point:?}");
    }
    let list = tensor.to_coordinates();
    assert_eq!(list.len(), tensor.nnz(), "{context}");
    let points: Vec<Vec<u64>> = (0..list.len()).map(|e| list.columns.iter().map(|c| c.get(e)).collect()).collect();
    assert!(points.windows(2).all(|w| w[0] < w[1]), "{context}: {points:?}");
    let mut visited: Vec<(Vec<u64>, Value)> = Vec::new();
    tensor.for_each(&mut |point, value| visited.push((point.to_vec(), value)));
    visited.sort_by(|a, b| a.0.cmp(&b.0));
    for (e, (point, value)) in visited.iter().enumerate() {
        assert_eq!((point, *value), (&points[e], list.values.get(e)), "{context}");
        assert!(!pattern || *value == Value::Bool(true));
    }
    assert_eq!(visited.len(), list.len(), "{context}");
    for (point, value) in grid {
        assert!(visited.iter().any(|(p, _)| p == point) || expected(value).same_number(tensor.fill()), "{context}");
    }
    let arrays = (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect();
    let again = Tensor::from_parts(tensor.shape(), tensor.format(), arrays, tensor.values().cloned(), tensor.fill());
    let again = again.unwrap_or_else(|d| panic!("{context}: {}", d.render(false)));
    assert!(again.same_values(tensor) && again.nnz() == tensor.nnz(), "{context}");
}

fn formats(rank: usize) -> Vec<Format> {
    let texts = FORMATS.iter().find(|(r, _)| *r == rank).unwrap().1;
    texts.iter().map(|text| Format::parse(text, rank).unwrap_or_else(|d| panic!("{text}: {d}"))).collect()
}

/// The same tensor with the fibers of a nonordered level reversed, so that none of two entries or
/// more is in order.
fn disordered(tensor: Tensor) -> Tensor {
    if !tensor.format().levels().iter().any(|level| level.nonordered) {
        return tensor;
    }
    let last = tensor.levels().len() - 1;
    let mut arrays: Vec<_> = (0..=last).map(|k| tensor.level_arrays(k)).collect();
    let (pos, crd) = (arrays[last].get("pos").unwrap().to_vec(), arrays[last].get("crd").unwrap());
    let positions: Vec<usize> = pos.windows(2).flat_map(|w| (w[0] as usize..w[1] as usize).rev()).collect();
    let reversed: Vec<u64> = positions.iter().map(|at| crd.get(*at)).collect();
    let crd = tamis_tensor::IndexArray::with_width(&reversed, crd.width()).unwrap();
    arrays[last].arrays.iter_mut().filter(|(name, _)| *name == "crd").for_each(|(_, array)| *array = crd.clone());
    let values = tensor.values().map(|values| {
        let reversed: Vec<Value> = positions.iter().map(|at| values.get(*at)).collect();
        ValueArray::from_values(&reversed, tensor.dtype())
    });
    let reversed = Tensor::from_parts(tensor.shape(), tensor.format(), arrays, values, tensor.fill()).unwrap();
    assert!(reversed.same_values(&tensor) && tensor.same_values(&reversed));
    reversed
}

fn check_all_pairs(case: &Case, dtype: DType) {
    let grid = grid(case);
    let rank = case.entries.shape.len();
    let build = |format: &Format| Tensor::from_coordinates(&case.entries, format, case.fill, Combine::Last);
    // Some formats drop entries that equal the fill (or zero, for patterns), so the expected
    // outcome is for the entries that must be stored.
    let without_fill: Vec<(&Vec<u64>, &Value)> = grid.iter().filter(|(_, v)| !v.same_number(case.fill)).collect();
    let points: Vec<Vec<u64>> = without_fill.iter().map(|(p, _)| p.to_vec()).collect();
    let values: Vec<Value> = without_fill.iter().map(|(_, v)| **v).collect();
    let needed = coordinates(&case.entries.shape, &points, &values, dtype);
    for from in formats(rank) {
        let context = format!("{} as {from}", case.name);
        let source = match build(&from) {
            Ok(source) => disordered(source),
            Err(d) => {
                assert!(matches!(d.code, Code::E0707 | Code::E0709), "{context}: {d}");
                assert!(!d.help.is_empty());
                continue;
            }
        };
        check(&source, &grid, &context);
        for to in formats(rank) {
            let context = format!("{context} to {to}");
            let possible = Tensor::from_coordinates(&needed, &to, case.fill, Combine::Error);
            match source.convert(&to) {
                Ok(target) => {
                    assert_eq!(target.format(), &to, "{context}");
                    check(&target, &grid, &context);
                    let back = target.convert(&from);
                    if from.leaf() != Leaf::Pattern && to.leaf() != Leaf::Pattern {
                        let back = back.unwrap_or_else(|d| panic!("{context} and back: {d}"));
                        assert!(back.same_values(&source), "{context} and back");
                        assert_eq!(back.dtype(), dtype);
                    }
                }
                Err(d) => {
                    assert!(matches!(d.code, Code::E0707 | Code::E0709), "{context}: {d}");
                    // Explicit fills may exceed the capacity of a singleton.
                    let explicit = source.nnz() > needed.len();
                    assert!(explicit || possible.is_err() || source.format().leaf() == Leaf::Pattern, "{context}: {d}");
                }
            }
        }
    }
}

#[test]
fn every_pair_of_formats() {
    assert!(FORMATS.iter().map(|(_, texts)| texts.len()).sum::<usize>() >= 25);
    for rank in 0..=4 {
        for case in cases(rank, DType::F64, Value::I64(0)) {
            check_all_pairs(&case, DType::F64);
        }
    }
}

#[test]
fn every_pair_with_another_fill() {
    for fill in [Value::F64(1.0), Value::F64(f64::NAN), Value::F64(f64::INFINITY)] {
        for rank in [0, 1, 2] {
            for case in cases(rank, DType::F64, fill) {
                check_all_pairs(&case, DType::F64);
            }
        }
    }
}

#[test]
fn every_pair_of_every_type() {
    for dtype in DType::ALL {
        for case in cases(2, dtype, Value::I64(0)).into_iter().filter(|c| c.entries.shape == [3, 5]) {
            check_all_pairs(&case, dtype);
        }
    }
}
