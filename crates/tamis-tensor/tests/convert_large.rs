//! Conversions of large matrices: threads, chunks, long rows, wide indices.

use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, IndexArray, Tensor};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

type Triples = Vec<(u64, u64, i32)>;

/// Entries in random order, with duplicates; the value is the input position of an entry.
fn random(rows: u64, columns: u64, count: usize) -> Triples {
    let mut random = Random(88_172_645_463_325_252);
    (0..count).map(|e| (random.below(rows), random.below(columns), e as i32)).collect()
}

/// A few diagonals of a square matrix, row by row: accesses are local.
fn banded(n: u64) -> Triples {
    let offsets = [-40i64, -1, 0, 1, 40];
    let entry = |i: u64, d: &i64| i.checked_add_signed(*d).filter(|j| *j < n).map(|j| (i, j, (i * 7 + j) as i32));
    (0..n).flat_map(|i| offsets.iter().filter_map(move |d| entry(i, d)).collect::<Vec<_>>()).collect()
}

/// One row and one column are dense.
fn arrow(n: u64) -> Triples {
    (0..n).map(|i| (i, 0, 1)).chain((1..n).map(|j| (0, j, j as i32))).chain((1..n).map(|i| (i, i, 3))).collect()
}

fn entries(shape: [u64; 2], triples: &Triples) -> Coordinates {
    Coordinates {
        shape: shape.to_vec(),
        columns: vec![
            triples.iter().map(|t| t.0 as u32).collect::<Vec<_>>().into(),
            triples.iter().map(|t| t.1).collect::<Vec<u64>>().into(),
        ],
        values: triples.iter().map(|t| t.2).collect::<Vec<i32>>().into(),
    }
}

/// The expected arrays: sorted by a comparison sort, the last of duplicates kept.
fn expected(triples: &Triples, by_column: bool) -> Triples {
    let key = |t: &(u64, u64, i32)| if by_column { (t.1, t.0) } else { (t.0, t.1) };
    let mut sorted = triples.clone();
    sorted.sort_by_key(key);
    let mut distinct: Triples = Vec::new();
    for t in sorted {
        match distinct.last_mut() {
            Some(last) if key(last) == key(&t) => *last = t,
            _ => distinct.push(t),
        }
    }
    distinct
}

fn check(tensor: &Tensor, expected: &Triples, by_column: bool, name: &str) {
    let outer = |t: &(u64, u64, i32)| if by_column { t.1 } else { t.0 };
    let inner = |t: &(u64, u64, i32)| if by_column { t.0 } else { t.1 };
    let arrays = tensor.level_arrays(1);
    let crd = arrays.get("crd").unwrap().to_vec();
    assert!(crd.iter().copied().eq(expected.iter().map(inner)), "{name}: coordinates");
    let pos = arrays.get("pos").unwrap().to_vec();
    let extent = tensor.shape()[usize::from(by_column)] as usize;
    let mut counts = vec![0u64; extent + 1];
    expected.iter().for_each(|t| counts[outer(t) as usize + 1] += 1);
    for k in 0..extent {
        counts[k + 1] += counts[k];
    }
    assert!(pos == counts, "{name}: positions");
    let values = tensor.values().unwrap();
    assert!((0..crd.len()).all(|k| values.get(k) == Value::I32(expected[k].2)), "{name}: values");
}

fn with_threads(threads: usize, run: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run);
}

#[test]
fn large_matrices_are_sorted_and_transposed() {
    let cases = [
        ("random", [70_000, 50_000], random(70_000, 50_000, 400_000)),
        ("random with long rows and repetitions", [300, 900], random(300, 900, 300_000)),
        ("banded", [70_000, 70_000], banded(70_000)),
        ("banded, shuffled", [70_000, 70_000], {
            let mut triples = banded(70_000);
            let mut random = Random(5);
            (1..triples.len()).rev().for_each(|k| triples.swap(k, random.below(k as u64 + 1) as usize));
            triples
        }),
        ("arrow", [150_000, 150_000], arrow(150_000)),
        ("few entries in a wide matrix", [100_000_000, 3], random(100_000_000, 3, 5_000)),
    ];
    for (name, shape, triples) in &cases {
        for threads in [1, 2, 5] {
            with_threads(threads, || {
                let name = format!("{name}, {threads} threads");
                let build = |format: &Format| {
                    Tensor::from_coordinates(&entries(*shape, triples), format, Value::I32(0), Combine::Last).unwrap()
                };
                let (by_row, by_column) = (expected(triples, false), expected(triples, true));
                let coo = build(&Format::coo(2));
                assert_eq!(coo.nnz(), by_row.len());
                let csc = build(&Format::csc());
                check(&csc, &by_column, true, &name);
                check(&coo.convert(&Format::csc()).unwrap(), &by_column, true, &name);
                if shape[0] > 1_000_000 {
                    return;
                }
                let csr = build(&Format::csr());
                check(&csr, &by_row, false, &name);
                check(&csr.convert(&Format::csc()).unwrap(), &by_column, true, &name);
                check(&csc.convert(&Format::csr()).unwrap(), &by_row, false, &name);
                check(&coo.convert(&Format::csr()).unwrap(), &by_row, false, &name);
                let pattern =
                    csr.cast(tamis_ir::DType::Bool).convert(&Format::parse("csr; pattern", 2).unwrap()).unwrap();
                let back = pattern.convert(&Format::parse("csc; pattern", 2).unwrap()).unwrap();
                assert!(back.nbytes() > 0 && back.values().is_none() && back.nnz() == pattern.nnz());
                assert!(back.same_values(&pattern), "{name}: pattern");
            });
        }
    }
}

#[test]
fn wide_indices_take_the_same_routes() {
    let triples = random(1 << 12, 1 << 12, 20_000);
    let spread = |t: &(u64, u64, i32)| (t.0, t.1 << 30, t.2);
    let wide: Triples = triples.iter().map(spread).collect();
    let shape = [1 << 12, 1 << 42];
    let csr = Tensor::from_coordinates(&entries(shape, &wide), &Format::csr(), Value::I32(0), Combine::Last).unwrap();
    check(&csr, &expected(&wide, false), false, "wide");
    assert!(matches!(csr.level_arrays(1).get("crd"), Some(IndexArray::U64(_))));
    let dcsc = csr.convert(&Format::parse("dcsc", 2).unwrap()).unwrap();
    assert!(dcsc.same_values(&csr) && dcsc.convert(&Format::csr()).unwrap().same_values(&csr));
    assert_eq!(
        dcsc.level_arrays(1).get("crd").unwrap().to_vec(),
        expected(&wide, true).iter().map(|t| t.0).collect::<Vec<_>>()
    );
}

#[test]
fn large_dense_tensors_change_order() {
    let shape = [37u64, 61, 53];
    let count = 37 * 61 * 53;
    let values: Vec<u16> = (0..count).map(|k| (k * 7919 % 65_521) as u16).collect();
    let a = Tensor::from_dense(&shape, values.into(), &Format::dense(3), Value::U16(0)).unwrap();
    for map in ["i,k,j", "j,i,k", "j,k,i", "k,i,j", "k,j,i"] {
        let format = Format::parse(&format!("(i,j,k) -> ({map}): dense, dense, dense"), 3).unwrap();
        let b = a.convert(&format).unwrap();
        for point in [[0, 0, 0], [36, 60, 52], [1, 2, 3], [35, 0, 51], [7, 33, 32]] {
            assert_eq!(a.get(&point), b.get(&point), "{map} {point:?}");
        }
        assert_eq!(b.to_dense().unwrap(), a.to_dense().unwrap(), "{map}");
    }
}
