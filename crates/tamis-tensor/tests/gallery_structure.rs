//! Structure of generated tensors, checked against their definitions cell by cell.

use std::collections::{BTreeMap, BTreeSet};
use tamis_ir::{Code, Value};
use tamis_tensor::Coordinates;
use tamis_tensor::gallery::*;

/// Entries by coordinates; also checks that they are sorted, distinct, in bounds and narrow.
fn cells(a: &Coordinates) -> BTreeMap<Vec<u64>, f64> {
    assert_eq!(a.columns.len(), a.shape.len());
    let mut previous: Option<Vec<u64>> = None;
    let mut found = BTreeMap::new();
    for k in 0..a.len() {
        let at: Vec<u64> = a.columns.iter().map(|column| column.get(k)).collect();
        assert!(at.iter().zip(&a.shape).all(|(x, n)| x < n), "{at:?}");
        assert!(previous.is_none_or(|p| p < at), "{at:?}");
        let Value::F64(value) = a.values.get(k) else { panic!("not f64") };
        found.insert(at.clone(), value);
        previous = Some(at);
    }
    for (column, n) in a.columns.iter().zip(&a.shape) {
        assert_eq!(column.width().size(), if n.saturating_sub(1) <= u64::from(u32::MAX) { 4 } else { 8 });
    }
    found
}

/// The cells of an n x n matrix that satisfy `keep`.
fn pattern(n: u64, keep: impl Fn(u64, u64) -> bool) -> Vec<Vec<u64>> {
    (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| keep(*i, *j)).map(|(i, j)| vec![i, j]).collect()
}

fn places(a: &Coordinates) -> Vec<Vec<u64>> {
    cells(a).into_keys().collect()
}

#[test]
fn laplacians_are_stencils() {
    let grids: [&[u64]; 9] = [&[], &[1], &[5], &[3, 4], &[1, 1], &[4, 1, 3], &[2, 3, 4], &[0, 5], &[2, 2, 2, 3]];
    for grid in grids {
        let points: u64 = grid.iter().product();
        let place = |mut k: u64| -> Vec<i64> {
            let digit = |n: &u64| {
                let x = k % n;
                k /= n;
                x as i64
            };
            grid.iter().rev().map(digit).collect()
        };
        let mut expected = BTreeMap::new();
        for p in 0..points {
            for q in 0..points {
                let distance: i64 = place(p).iter().zip(place(q)).map(|(a, b)| (a - b).abs()).sum();
                if distance == 0 {
                    expected.insert(vec![p, q], 2.0 * grid.len() as f64);
                } else if distance == 1 {
                    expected.insert(vec![p, q], -1.0);
                }
            }
        }
        let made = laplacian_grid(grid).unwrap();
        assert_eq!(made.shape, [points, points]);
        assert_eq!(cells(&made), expected, "{grid:?}");
    }
    assert_eq!(laplacian(4).unwrap(), laplacian_grid(&[4, 4]).unwrap());
    assert_eq!(laplacian3(3).unwrap(), laplacian_grid(&[3, 3, 3]).unwrap());
    let large = laplacian(1000).unwrap();
    assert_eq!((large.shape.as_slice(), large.len()), (&[1_000_000, 1_000_000][..], 4_996_000));
}

#[test]
fn bands_and_triangles() {
    for n in 0..7u64 {
        for (lower, upper) in [(0, 0), (1, 1), (0, 2), (3, 1), (6, 6), (100, 2), (u64::MAX, u64::MAX)] {
            let band = banded_between(n, lower, upper, 1).unwrap();
            let keep = |i: u64, j: u64| i.saturating_sub(j) <= lower && j.saturating_sub(i) <= upper;
            assert_eq!(places(&band), pattern(n, keep), "{n} {lower} {upper}");
        }
        assert_eq!(places(&triangular(n, Triangle::Lower, 0).unwrap()), pattern(n, |i, j| j <= i));
        assert_eq!(places(&triangular(n, Triangle::Upper, 0).unwrap()), pattern(n, |i, j| i <= j));
        assert_eq!(places(&diagonal(n, 0).unwrap()), pattern(n, |i, j| i == j));
        assert_eq!(places(&identity(n).unwrap()), pattern(n, |i, j| i == j));
        assert!(cells(&identity(n).unwrap()).values().all(|x| *x == 1.0));
    }
    assert_eq!(banded(10_000, 100).unwrap().len(), 1_999_900);
}

#[test]
fn ones_of_any_rank() {
    assert_eq!(cells(&ones(&[]).unwrap()), BTreeMap::from([(vec![], 1.0)]));
    assert_eq!(ones(&[3, 0, 5]).unwrap().len(), 0);
    let cube = cells(&ones(&[2, 3, 4]).unwrap());
    assert_eq!(cube.len(), 24);
    assert!(cube.values().all(|x| *x == 1.0));
}

#[test]
fn random_has_exactly_the_requested_nnz() {
    let table: [(&[u64], f64, usize); 12] = [
        (&[], 0.0, 0),
        (&[], 1.0, 1),
        (&[10], 0.25, 3),
        (&[100, 200], 0.1, 2000),
        (&[7, 11], 0.9, 69),
        (&[7, 11], 1.0, 77),
        (&[0, 11], 1.0, 0),
        (&[4, 5, 6, 7], 0.5, 420),
        (&[1000, 2000, 3000], 1e-6, 6000),
        (&[1 << 40, 1 << 20], 1e-15, 1153),
        (&[1 << 62, 1 << 62], 1e-34, 2127),
        (&[1; 32], 1.0, 1),
    ];
    for (shape, density, count) in table {
        let made = random(shape, density, 9).unwrap();
        let found = cells(&made);
        assert_eq!(found.len(), count, "{shape:?} {density}");
        assert!(found.values().all(|x| 0.0 < *x && *x < 1.0));
        assert_eq!(made, random_nnz(shape, count as u64, 9).unwrap());
        if count > 1 {
            assert_ne!(made, random(shape, density, 10).unwrap(), "{shape:?} {density}");
        }
    }
}

#[test]
fn blocks_are_aligned_and_dense() {
    for (n, block, density) in [(8, 4, 0.5), (10, 3, 0.4), (5, 8, 1.0), (0, 2, 1.0), (6, 1, 0.5), (9, 3, 0.0)] {
        let made = blocked(n, block, density, 3).unwrap();
        let chosen: BTreeSet<_> = places(&made).iter().map(|at| (at[0] / block, at[1] / block)).collect();
        let per_side = n.div_ceil(block);
        assert_eq!(chosen.len() as f64, ((per_side * per_side) as f64 * density).round(), "{n} {block} {density}");
        assert_eq!(places(&made), pattern(n, |i, j| chosen.contains(&(i / block, j / block))));
    }
}

#[test]
fn permutations_permute() {
    for n in [0u64, 1, 2, 100] {
        let made = places(&permutation(n, 5).unwrap());
        let mut columns: Vec<u64> = made.iter().map(|at| at[1]).collect();
        columns.sort_unstable();
        assert_eq!(made.iter().map(|at| at[0]).collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
        assert_eq!(columns, (0..n).collect::<Vec<_>>());
    }
    let mut first = [0u32; 4];
    (0..8000).for_each(|seed| first[permutation(4, seed).unwrap().columns[1].get(0) as usize] += 1);
    assert!(first.iter().all(|hits| (1800..2200).contains(hits)), "{first:?}");
}

#[test]
fn rmat_has_graph500s_quadrants() {
    assert_eq!(cells(&rmat(0, 3, 0).unwrap()).len(), 1);
    assert_eq!(rmat(5, 0, 0).unwrap().len(), 0);
    // The first level of the recursion is visible in the quadrants' fractions; at one edge per node
    // there are few duplicates.
    let made = rmat(18, 1, 1).unwrap();
    let half = 1u64 << 17;
    let mut shares = [0f64; 4];
    let found = places(&made);
    found.iter().for_each(|at| shares[usize::from(at[0] >= half) * 2 + usize::from(at[1] >= half)] += 1.0);
    for (share, expected) in shares.iter().zip([0.57, 0.19, 0.19, 0.05]) {
        assert!((share / found.len() as f64 - expected).abs() < 0.01, "{shares:?}");
    }
}

/// These fingerprints are a contract: a seed means the same tensor in every version.
#[test]
fn published_tensors_never_change() {
    let fingerprint = |text: &&str| {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let made = generate(text).unwrap();
        for (at, value) in cells(&made) {
            for word in at.into_iter().chain([value.to_bits()]) {
                hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
            }
        }
        format!("{text}: {} entries, {hash:016x}", made.len())
    };
    let calls = [
        "rand(100,200; 0.1; 42)",
        "rand(1000,1000; 0.001; 1)",
        "rand(10,10; 0.9; 2)",
        "rand(4611686018427387904,4611686018427387904; 1e-35; 3)",
        "blocked(50, 4, 0.2, 7)",
        "permutation(100, 1)",
        "rmat(10, 8)",
        "banded(50, 3)",
        "triangular(20, upper, 5)",
    ];
    insta::assert_snapshot!(calls.iter().map(fingerprint).collect::<Vec<_>>().join("\n"));
}

#[test]
fn absurd_arguments_are_refused_at_once() {
    let refused = [
        ("density 2", random(&[3, 3], 2.0, 0)),
        ("density -1", random(&[3, 3], -0.1, 0)),
        ("density nan", random(&[3, 3], f64::NAN, 0)),
        ("too many entries", random_nnz(&[3, 3], 10, 0)),
        ("dimension", random(&[u64::MAX], 0.0, 0)),
        ("cells", random(&[1 << 60, 1 << 60, 1 << 60], 0.1, 0)),
        ("memory", random(&[1 << 30, 1 << 30], 0.5, 0)),
        ("rank", ones(&[1; 33])),
        ("ones", ones(&[1 << 40, 1 << 20])),
        ("laplacian", laplacian(u64::MAX)),
        ("laplacian memory", laplacian(1 << 31)),
        ("laplacian3", laplacian3(1 << 40)),
        ("banded", banded(1 << 62, 5)),
        ("triangular", triangular(u64::MAX, Triangle::Lower, 0)),
        ("permutation", permutation(u64::MAX, 0)),
        ("identity", identity(1 << 50)),
        ("block", blocked(10, 0, 0.5, 0)),
        ("blocks", blocked(u64::MAX, 1, 1.0, 0)),
        ("rmat", rmat(32, 16, 0)),
        ("rmat edges", rmat(31, u64::MAX, 0)),
    ];
    for (what, result) in refused {
        let d = result.expect_err(what);
        assert_eq!(d.code, Code::E0904, "{what}");
        assert!(!d.help.is_empty(), "{what}");
    }
}
