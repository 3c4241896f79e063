//! Recognition of structure: matrices that have it, and matrices that miss it by one entry.

use tamis_ir::{Format, Value};
use tamis_tensor::{Combine, Coordinates, Statistics, StoredPart, Tensor, gallery, propose};

/// A generated matrix with some entries changed: `None` removes an entry, a value sets it.
fn generated(call: &str, changes: &[(u64, u64, Option<f64>)]) -> Tensor {
    let entries = gallery::generate(call).unwrap_or_else(|d| panic!("{call}: {d}"));
    let (rows, columns) = (entries.columns[0].to_vec(), entries.columns[1].to_vec());
    let mut triples: Vec<(u64, u64, f64)> = rows
        .iter()
        .zip(&columns)
        .enumerate()
        .map(|(k, (i, j))| (*i, *j, entries.values.get(k).as_c128().re))
        .filter(|(i, j, _)| !changes.iter().any(|(a, b, _)| (a, b) == (i, j)))
        .collect();
    triples.extend(changes.iter().filter_map(|(i, j, value)| value.map(|value| (*i, *j, value))));
    matrix([entries.shape[0], entries.shape[1]], &triples)
}

fn matrix(shape: [u64; 2], triples: &[(u64, u64, f64)]) -> Tensor {
    let entries = Coordinates {
        shape: shape.to_vec(),
        columns: vec![
            triples.iter().map(|t| t.0).collect::<Vec<_>>().into(),
            triples.iter().map(|t| t.1).collect::<Vec<_>>().into(),
        ],
        values: triples.iter().map(|t| t.2).collect::<Vec<f64>>().into(),
    };
    Tensor::from_coordinates(&entries, &Format::coo(2), 0.0.into(), Combine::Error).unwrap()
}

fn statistics(tensor: &Tensor) -> Statistics {
    tensor.statistics().unwrap()
}

/// The proposed formats, as text; triangles are marked.
fn proposed(tensor: &Tensor) -> Vec<String> {
    let text = |part: StoredPart, format: &Format| match part {
        StoredPart::Whole => format.to_string(),
        StoredPart::Lower(mirror) => format!("lower {format} {mirror:?}"),
    };
    propose(tensor, &statistics(tensor)).unwrap().iter().map(|p| text(p.part, &p.format)).collect()
}

#[test]
fn bands() {
    let full = statistics(&generated("banded(40, 3, 2)", &[]));
    let m = full.matrix.unwrap();
    assert_eq!((m.lower_bandwidth, m.upper_bandwidth), (3, 2));
    assert_eq!(m.band_filled(&[40, 40], full.structure.entries), 1.0);
    assert_eq!(full.structure.lines[1].filled(), 1.0);
    assert_eq!(full.structure.lines[1].mean_range(), full.structure.entries as f64 / 40.0);
    let diagonals = full.structure.diagonals.unwrap();
    assert_eq!((diagonals.count, diagonals.filled), (6, 1.0));
    // One entry is missing: the band is the same, and not dense.
    let hole = statistics(&generated("banded(40, 3, 2)", &[(20, 20, None)]));
    let h = hole.matrix.unwrap();
    assert_eq!((h.lower_bandwidth, h.upper_bandwidth), (3, 2));
    assert!(h.band_filled(&[40, 40], hole.structure.entries) < 1.0);
    assert_eq!(hole.structure.lines[1].span, full.structure.lines[1].span);
    assert_eq!(hole.structure.lines[1].ranges, full.structure.lines[1].ranges + 1);
    // One entry is far away: the bandwidth is wide, but rows are still nearly dense between their
    // ends.
    let far = statistics(&generated("banded(40, 3, 2)", &[(0, 39, Some(1.0))]));
    assert_eq!(far.matrix.unwrap().upper_bandwidth, 39);
    assert_eq!(far.structure.diagonals.unwrap().count, 7);
    assert_eq!(far.structure.lines[1].span, full.structure.lines[1].span + 37);
    assert!(proposed(&generated("banded(40, 3, 2)", &[])).contains(&"dense, band".to_string()));
    assert!(!proposed(&generated("rand(60, 60; 0.05; 3)", &[])).contains(&"dense, band".to_string()));
}

#[test]
fn blocks() {
    let tensor = generated("blocked(48, 3, 0.2)", &[]);
    let best = statistics(&tensor).structure.blocks[0];
    assert_eq!((best.rows, best.columns, best.filled), (3, 3, 1.0));
    assert_eq!(best.blocks * 9, statistics(&tensor).structure.entries);
    assert!(proposed(&tensor).contains(&"bsr(3,3)".to_string()), "{:?}", proposed(&tensor));
    // One entry outside of the blocks makes one block more.
    let empty = (0..16).flat_map(|i| (0..16).map(move |j| (3 * i + 1, 3 * j + 1)));
    let (i, j) = empty.clone().find(|(i, j)| tensor.get(&[*i, *j]) == Some(Value::F64(0.0))).unwrap();
    let near = statistics(&generated("blocked(48, 3, 0.2)", &[(i, j, Some(1.0))])).structure.blocks[0];
    assert_eq!((near.rows, near.columns, near.blocks), (3, 3, best.blocks + 1));
    assert!(near.filled < 1.0);
    // Blocks of 4 are blocks of 2 as well; the larger ones come first.
    let four = statistics(&generated("blocked(48, 4, 0.2)", &[])).structure.blocks;
    assert_eq!((four[0].rows, four[0].columns), (4, 4));
    assert!(four.iter().any(|fit| (fit.rows, fit.columns) == (2, 2) && fit.filled == 1.0));
    assert!(four.iter().all(|fit| fit.filled >= 0.5));
    // Unaligned blocks are not recognised.
    let shifted: Vec<_> =
        (0..12u64).flat_map(|b| (0..16).map(move |k| (4 * b + 2 + k / 4, 4 * b + 2 + k % 4, 1.0))).collect();
    let fits = statistics(&matrix([52, 52], &shifted)).structure.blocks;
    assert!(fits.iter().all(|fit| fit.filled < 1.0 || (fit.rows, fit.columns) == (2, 2)), "{fits:?}");
    assert!(statistics(&generated("rand(60, 60; 0.02; 3)", &[])).structure.blocks.is_empty());
}

#[test]
fn blocks_are_counted_equally_with_and_without_marks() {
    // Far columns make the matrix too wide for a mark per block.
    let blocked = gallery::generate("blocked(48, 6, 0.3)").unwrap();
    let (rows, columns) = (blocked.columns[0].to_vec(), blocked.columns[1].to_vec());
    let at = |offset: u64| -> Vec<(u64, u64, f64)> {
        rows.iter().zip(&columns).map(|(i, j)| (*i, *j + offset, 1.0)).collect()
    };
    let near = statistics(&matrix([48, 48], &at(0))).structure;
    let far = statistics(&matrix([48, 1 << 50], &at(48 << 20))).structure;
    assert_eq!(near.blocks, far.blocks);
    assert_eq!(near.diagonals.unwrap().count, far.diagonals.unwrap().count);
}

#[test]
fn runs() {
    // Rows of runs of three equal values, with a gap of one between them.
    let runs: Vec<_> = (0..20u64)
        .flat_map(|i| (0..40u64).filter(|j| j % 4 != 3).map(move |j| (i, j, (1 + i % 3 + j / 4) as f64)))
        .collect();
    let lines = statistics(&matrix([20, 40], &runs)).structure.lines;
    assert_eq!((lines[1].runs, lines[1].ranges, lines[1].mean_run()), (200, 200, 3.0));
    assert_eq!(lines[1].gapless, 400);
    assert_eq!((lines[0].runs, lines[0].ranges, lines[0].mean_run()), (600, 30, 1.0));
    assert!(proposed(&matrix([20, 40], &runs)).contains(&"dense, sparse_runs".to_string()));
    // One different value splits a run into three.
    let mut near = runs.clone();
    near[1].2 = -1.0;
    assert_eq!(statistics(&matrix([20, 40], &near)).structure.lines[1].runs, 202);
    assert!(!proposed(&generated("laplacian(8)", &[])).iter().any(|f| f.contains("runs")));
}

#[test]
fn equal_rows() {
    let rows: Vec<_> = (0..30u64).flat_map(|i| (0..4).map(move |k| (i, i / 5 + 7 * k, (k + 1) as f64))).collect();
    let slices = statistics(&matrix([30, 40], &rows)).structure.slices.unwrap();
    assert_eq!((slices.equal, slices.runs, slices.entries), (24, 6, 24));
    assert!(proposed(&matrix([30, 40], &rows)).contains(&"runs, sparse".to_string()));
    let mut near = rows.clone();
    near[9].2 = 99.0;
    assert_eq!(statistics(&matrix([30, 40], &near)).structure.slices.unwrap().runs, 8);
    // Empty rows between and after are runs, too.
    let gapped = statistics(&matrix([10, 4], &[(2, 1, 1.0), (5, 1, 1.0)])).structure.slices.unwrap();
    assert_eq!((gapped.equal, gapped.runs, gapped.entries), (0, 5, 2));
    assert_eq!(statistics(&matrix([3, 4], &[])).structure.slices.unwrap().runs, 1);
}

#[test]
fn symmetry_and_triangles() {
    let of = |call: &str, changes: &[(u64, u64, Option<f64>)]| statistics(&generated(call, changes)).matrix.unwrap();
    assert!(of("laplacian(5)", &[]).symmetric);
    let values = of("laplacian(5)", &[(0, 1, Some(-1.5))]);
    assert!(values.structurally_symmetric && !values.symmetric && !values.hermitian);
    let pattern = of("laplacian(5)", &[(0, 1, None)]);
    assert!(!pattern.structurally_symmetric && !pattern.symmetric);
    let skew = matrix([3, 3], &[(0, 1, 2.0), (1, 0, -2.0)]);
    assert!(statistics(&skew).matrix.unwrap().skew_symmetric);
    assert!(proposed(&skew).contains(&"lower csr Minus".to_string()));
    assert!(proposed(&generated("laplacian(5)", &[])).contains(&"lower csr Same".to_string()));
    assert!(!proposed(&generated("laplacian(5)", &[(0, 1, None)])).iter().any(|f| f.starts_with("lower")));
    // A graph without weights needs no values, and weights that are not one do.
    let graph = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)];
    assert!(proposed(&matrix([3, 3], &graph)).contains(&"lower csr; pattern Same".to_string()));
    let weighted = graph.map(|(i, j, _)| (i, j, 2.0));
    assert!(proposed(&matrix([3, 3], &weighted)).contains(&"lower csr Same".to_string()));
    // A diagonal matrix is symmetric, and its triangle saves nothing.
    assert!(!proposed(&generated("diagonal(9)", &[])).iter().any(|f| f.starts_with("lower")));

    let lower = of("triangular(6)", &[]);
    assert!(lower.lower_triangular && !lower.upper_triangular && !lower.strictly_triangular && !lower.unit_diagonal);
    let above = of("triangular(6)", &[(0, 5, Some(1.0))]);
    assert!(!above.lower_triangular && above.shape_word().is_none());
    let diagonal: Vec<_> = (0..6).map(|i| (i, i, None)).collect();
    let strict = of("triangular(6)", &diagonal);
    assert_eq!(strict.shape_word(), Some("strictly lower triangular"));
    let ones: Vec<_> = (0..6).map(|i| (i, i, Some(1.0))).collect();
    assert_eq!(of("triangular(6)", &ones).shape_word(), Some("unit lower triangular"));
    let nearly: Vec<_> = (0..6).map(|i| (i, i, Some(if i == 3 { 2.0 } else { 1.0 }))).collect();
    assert_eq!(of("triangular(6)", &nearly).shape_word(), Some("lower triangular"));
    assert_eq!(of("triangular(6, \"upper\")", &[]).shape_word(), Some("upper triangular"));
}

#[test]
fn permutations_and_rows() {
    let of = |changes: &[(u64, u64, Option<f64>)]| {
        let tensor = generated("identity(9)", changes);
        (statistics(&tensor).matrix.unwrap(), proposed(&tensor))
    };
    let permutation = statistics(&generated("permutation(9)", &[])).matrix.unwrap();
    assert!(permutation.permutation);
    assert_eq!((permutation.rows_with_one, permutation.columns_with_one), (9, 9));
    assert!(proposed(&generated("permutation(9)", &[])).contains(&"dense, singleton; pattern".to_string()));
    let (value, formats) = of(&[(4, 4, Some(2.0))]);
    assert!(!value.permutation && value.rows_with_one == 9);
    assert!(formats.contains(&"dense, singleton".to_string()) && !formats.iter().any(|f| f.contains("pattern")));
    let (moved, _) = of(&[(4, 4, None), (4, 5, Some(1.0))]);
    assert_eq!((moved.permutation, moved.rows_with_one, moved.columns_with_one), (false, 9, 7));
    let (missing, formats) = of(&[(4, 4, None)]);
    assert_eq!((missing.permutation, missing.least_per_row, missing.most_per_row), (false, 0, 1));
    // In a pattern, the padding entry that `singleton` stores for an empty row would be true.
    assert!(formats.contains(&"dense, singleton".to_string()));
    assert!(!formats.contains(&"dense, singleton; pattern".to_string()), "{formats:?}");
    let (more, formats) = of(&[(4, 7, Some(1.0))]);
    assert_eq!((more.least_per_row, more.most_per_row), (1, 2));
    assert!(!formats.iter().any(|f| f.contains("singleton")));
}

#[test]
fn diagonals_and_constants() {
    let laplacian = statistics(&generated("laplacian(6)", &[])).structure;
    assert_eq!(laplacian.diagonals.unwrap().count, 5);
    assert!(laplacian.diagonals.unwrap().filled > 0.9 && laplacian.constant.is_none());
    assert!(proposed(&generated("laplacian(6)", &[])).contains(&"(i,j) -> (j-i,i): sparse, dense".to_string()));
    let wide = statistics(&matrix([2, 5], &[(0, 4, 1.0), (1, 0, 1.0), (0, 0, 1.0), (1, 1, 1.0)])).structure;
    // Lengths 1, 1 and 2.
    assert_eq!((wide.diagonals.unwrap().count, wide.diagonals.unwrap().filled), (3, 1.0));
    assert_eq!(wide.constant, Some(Value::F64(1.0)));
    let tall = statistics(&matrix([5, 2], &[(4, 0, 1.0), (3, 0, 1.0), (2, 0, 2.0)])).structure;
    assert_eq!((tall.diagonals.unwrap().filled, tall.constant), (3.0 / 5.0, None));
    // Explicit zeros are values, but no pattern.
    let zeros = matrix([3, 3], &[(0, 0, 0.0), (1, 1, 0.0)]);
    assert!(!proposed(&zeros).iter().any(|f| f.contains("pattern")));
}

/// The sizes of proposals are those of tensors in these formats.
#[test]
fn bytes_are_those_of_the_tensors() {
    let mut tensors: Vec<(String, Tensor)> = [
        "laplacian(9)",
        "banded(30, 2)",
        "banded(31, 0, 4)",
        "blocked(50, 4, 0.2)",
        "blocked(47, 6, 0.3)",
        "triangular(20)",
        "triangular(20, \"upper\")",
        "diagonal(17)",
        "identity(17)",
        "permutation(300)",
        "rmat(7, 6)",
        "rand(30, 70; 0.05)",
        "rand(70, 3; 0.01)",
        "rand(70, 3000; 0.01)",
        "rand(6, 70000; 0.001)",
        "ones(12, 13)",
        "rand(40; 0.3)",
        "ones(40)",
        "rand(8, 9, 10; 0.05)",
        "ones(4, 5, 6)",
        "rand(4, 5, 6, 7; 0.1)",
    ]
    .iter()
    .map(|call| {
        let entries = gallery::generate(call).unwrap();
        let fill = Value::zero(entries.values.dtype());
        let format = Format::coo(entries.shape.len());
        (call.to_string(), Tensor::from_coordinates(&entries, &format, fill, Combine::Error).unwrap())
    })
    .collect();
    let image: Vec<_> = (0..40u64)
        .flat_map(|i| (0..60u64).filter(move |j| (j + i / 4) % 16 < 6).map(move |j| (i, j, (1 + i / 8) as f64)))
        .collect();
    tensors.push(("image".into(), matrix([40, 60], &image)));
    tensors.push(("empty".into(), matrix([5, 4], &[])));
    tensors.push(("no rows".into(), matrix([0, 4], &[])));
    tensors.push(("no columns".into(), matrix([4, 0], &[])));
    let intervals: Vec<_> =
        (0..30u64).flat_map(|i| (i / 2..i / 2 + 5).map(move |j| (i, j, 1.5 + (i % 7) as f64))).collect();
    tensors.push(("intervals".into(), matrix([30, 20], &intervals)));
    let mut seen = std::collections::BTreeSet::new();
    for (name, tensor) in &tensors {
        for kept in [tensor.clone(), tensor.cast(tamis_ir::DType::F32)] {
            for proposal in propose(&kept, &statistics(&kept)).unwrap() {
                let stored = match proposal.part {
                    StoredPart::Whole => kept.clone(),
                    StoredPart::Lower(_) => {
                        let mut below = Vec::new();
                        kept.for_each(&mut |at, value| {
                            if at[1] <= at[0] {
                                below.push((at[0], at[1], value.as_c128().re));
                            }
                        });
                        matrix([kept.shape()[0], kept.shape()[1]], &below).cast(kept.dtype())
                    }
                };
                let converted =
                    stored.convert(&proposal.format).unwrap_or_else(|d| panic!("{name}: {}: {d}", proposal.format));
                assert_eq!(converted.nbytes() as u64, proposal.bytes, "{name} as {}", proposal.format);
                assert!(proposal.exact, "{name}");
                seen.insert(proposal.format.to_string());
            }
        }
    }
    for format in [
        "csr",
        "dcsr",
        "dense, dense",
        "dense, band",
        "dense, blocks",
        "dense, sparse_runs",
        "dense, runs",
        "dense, interval",
        "dense, singleton",
        "csr; pattern",
        "runs, sparse",
        "bsr(4,4)",
        "(i,j) -> (j-i,i): sparse, dense",
        "dense, sparse[u16,u8]",
        "dense, sparse[u16,u16]",
        "sparse, sparse, sparse",
        "dense, sparse, sparse",
        "sparse, sparse, dense",
        "band; pattern",
        "blocks; pattern",
        "dense, sparse_runs; pattern",
        "dense, singleton; pattern",
    ] {
        assert!(seen.contains(format), "no tensor was proposed {format}: {seen:?}");
    }
}

#[test]
fn other_ranks_and_huge_sizes() {
    let scalar = Tensor::scalar(Value::F64(2.0));
    let structure = statistics(&scalar).structure;
    assert_eq!((structure.entries, structure.lines.len(), structure.slices), (1, 0, None));
    assert!(propose(&scalar, &statistics(&scalar)).unwrap().is_empty());
    let cube = gallery::generate("ones(3, 4, 5)").unwrap();
    let cube = Tensor::from_coordinates(&cube, &Format::coo(3), 0.0.into(), Combine::Error).unwrap();
    let structure = statistics(&cube).structure;
    assert_eq!(structure.prefixes, [3, 12, 60]);
    assert_eq!(
        structure.lines.iter().map(|l| (l.dimension, l.lines, l.runs)).collect::<Vec<_>>(),
        [(0, 20, 20), (1, 15, 15), (2, 12, 12)]
    );
    assert_eq!(structure.slices.unwrap().runs, 1);
    // Nothing is proportional to the dimensions.
    let n = 1u64 << 62;
    let far = matrix([n, n], &[(0, n - 1, 1.0), (n - 1, 0, 2.0), (n - 1, n - 1, 3.0)]);
    let found = statistics(&far).structure;
    assert_eq!((found.diagonals.unwrap().count, found.lines[1].span), (3, 1 + n));
    assert_eq!(found.slices.unwrap().runs, 3);
    let proposals = propose(&far, &statistics(&far)).unwrap();
    assert_eq!(proposals[0].format.to_string(), "dcsr");
    assert!(proposals.iter().all(|p| p.bytes < 1000), "{proposals:?}");
}
