//! Runs, blocks, bands and split dimensions: storage, merging, and finalization of kernels'
//! results.

use tamis_ir::{Code, Format, Value};
use tamis_tensor::{Combine, Coordinates, LevelArrays, Tensor, ValueArray, finalize, written_as};

fn format(text: &str, rank: usize) -> Format {
    Format::parse(text, rank).unwrap_or_else(|d| panic!("{text}: {d}"))
}

fn dense(shape: &[u64], values: &[f64], text: &str) -> Tensor {
    let format = format(text, shape.len());
    Tensor::from_dense(shape, values.to_vec().into(), &format, Value::F64(0.0))
        .unwrap_or_else(|d| panic!("{text}: {d}"))
}

fn array(tensor: &Tensor, level: usize, name: &str) -> Vec<u64> {
    tensor.level_arrays(level).get(name).unwrap_or_else(|| panic!("no {name} in level {level}")).to_vec()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    match tensor.values() {
        Some(ValueArray::F64(values)) => values.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The examples of the papers, counted from 0 and with ends one past the last coordinate.
#[test]
fn the_vectors_of_the_papers() {
    let steps = [5.0, 5.0, 5.0, 2.0, 2.0, 0.0, 0.0, 0.0, 7.0];
    let runs = dense(&[9], &steps, "runs");
    assert_eq!((array(&runs, 0, "pos"), array(&runs, 0, "end")), (vec![0, 4], vec![3, 5, 8, 9]));
    assert_eq!((values(&runs), runs.nnz()), (vec![5.0, 2.0, 0.0, 7.0], 9));
    let sparse_runs = dense(&[9], &steps, "sparse_runs");
    assert_eq!((array(&sparse_runs, 0, "start"), array(&sparse_runs, 0, "end")), (vec![0, 3, 8], vec![3, 5, 9]));
    assert_eq!((values(&sparse_runs), sparse_runs.nnz()), (vec![5.0, 2.0, 7.0], 6));
    let interval = dense(&[6], &[0.0, 0.0, 9.0, 9.0, 9.0, 0.0], "interval");
    assert_eq!((array(&interval, 0, "start"), array(&interval, 0, "end")), (vec![2], vec![5]));
    let blocks = dense(&[10], &[0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 7.0, 0.0], "blocks");
    assert_eq!((array(&blocks, 0, "crd"), array(&blocks, 0, "ofs")), (vec![3, 8], vec![0, 2, 5]));
    let band = dense(&[10], &[0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "band");
    assert_eq!((array(&band, 0, "crd"), array(&band, 0, "ofs")), (vec![3], vec![0, 2]));
    let holes = dense(&[6], &[0.0, 1.0, 0.0, 0.0, 2.0, 0.0], "band");
    assert_eq!((values(&holes), holes.nnz()), (vec![1.0, 0.0, 0.0, 2.0], 4));
}

/// Triangles and ragged rows are bands.
#[test]
fn triangles_and_ragged_rows_are_bands() {
    let lower = dense(&[3, 3], &[1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0], "dense, band");
    assert_eq!((array(&lower, 1, "crd"), array(&lower, 1, "ofs")), (vec![0, 1, 2], vec![0, 1, 3, 6]));
    assert_eq!(values(&lower), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let upper = dense(&[3, 3], &[1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 0.0, 0.0, 6.0], "dense, band");
    assert_eq!((array(&upper, 1, "crd"), array(&upper, 1, "ofs")), (vec![2, 2, 2], vec![0, 3, 5, 6]));
    let ragged = dense(&[3, 4], &[1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 5.0, 6.0], "dense, band");
    assert_eq!((array(&ragged, 1, "crd"), array(&ragged, 1, "ofs")), (vec![1, 0, 3], vec![0, 2, 2, 6]));
}

/// Equal adjacent rows are merged, above any levels.
#[test]
fn equal_rows_are_merged() {
    #[rustfmt::skip]
    let rows = [
        0.0, 1.0, 0.0, 2.0,
        0.0, 1.0, 0.0, 2.0,
        0.0, 0.0, 0.0, 0.0,
        0.0, 1.0, 0.0, 2.0,
        5.0, 5.0, 5.0, 5.0,
        5.0, 5.0, 5.0, 5.0,
    ];
    for below in ["sparse", "dense", "bytemap", "hash", "runs", "sparse_runs", "blocks", "band", "sparse(nonunique)"] {
        let runs = dense(&[6, 4], &rows, &format!("runs, {below}"));
        assert_eq!(array(&runs, 0, "end"), [2, 3, 4, 6], "{below}");
        let sparse_runs = dense(&[6, 4], &rows, &format!("sparse_runs, {below}"));
        assert_eq!(array(&sparse_runs, 0, "start"), [0, 3, 4], "{below}");
        assert_eq!(array(&sparse_runs, 0, "end"), [2, 4, 6], "{below}");
        assert_eq!(sparse_runs.to_dense().unwrap(), rows.to_vec().into());
    }
    let runs = dense(&[6, 4], &rows, "runs, sparse");
    assert_eq!((array(&runs, 1, "pos"), array(&runs, 1, "crd")), (vec![0, 2, 2, 4, 8], vec![1, 3, 1, 3, 0, 1, 2, 3]));
    assert_eq!((values(&runs).len(), runs.nnz()), (8, 2 * 2 + 2 + 2 * 4));
    // Three levels: planes are equal only if all of their rows are.
    let plane = [1.0, 1.0, 2.0, 2.0];
    let other = [1.0, 1.0, 2.0, 3.0];
    let cube = dense(&[3, 2, 2], &[plane, plane, other].concat(), "runs, sparse, runs");
    assert_eq!(array(&cube, 0, "end"), [2, 3]);
    assert_eq!((array(&cube, 1, "pos"), array(&cube, 2, "end")), (vec![0, 2, 4], vec![2, 2, 2, 1, 2]));
    assert_eq!(values(&cube), [1.0, 2.0, 1.0, 2.0, 3.0]);
}

/// Values are distinguished by their bits.
#[test]
fn zeros_of_either_sign_and_numbers_that_are_none() {
    let given = [0.0, -0.0, f64::NAN, f64::NAN, 1.0];
    let runs = dense(&[5], &given, "runs");
    assert_eq!(array(&runs, 0, "end"), [1, 2, 4, 5]);
    assert!(runs.get(&[1]).is_some_and(|v| matches!(v, Value::F64(x) if x.is_sign_negative())));
    assert!(runs.same_values(&dense(&[5], &given, "dense")));
}

/// An explicit fill stays stored in a coordinate list, and becomes implicit in a dense level.
#[test]
fn explicit_fills() {
    let entries = Coordinates {
        shape: vec![2, 4],
        columns: vec![vec![0u32, 0, 1].into(), vec![1u32, 2, 3].into()],
        values: vec![0.0, 3.0, 0.0].into(),
    };
    let build =
        |text: &str| Tensor::from_coordinates(&entries, &format(text, 2), Value::F64(0.0), Combine::Error).unwrap();
    let lists = build("dense, sparse_runs");
    assert_eq!((array(&lists, 1, "start"), values(&lists)), (vec![1, 2, 3], vec![0.0, 3.0, 0.0]));
    let runs = build("dense, runs");
    assert_eq!((array(&runs, 1, "end"), values(&runs)), (vec![2, 3, 4, 4], vec![0.0, 3.0, 0.0, 0.0]));
    // A stored row of fills stays stored; an unwritten row is not stored.
    assert_eq!(array(&build("sparse_runs, runs"), 0, "start"), [0, 1]);
    assert_eq!(array(&build("runs, runs"), 0, "end"), [1, 2]);
    assert_eq!(array(&lists.convert(&format("sparse_runs, runs", 2)).unwrap(), 0, "start"), [0, 1]);
    assert_eq!(array(&runs.convert(&format("sparse_runs, runs", 2)).unwrap(), 0, "start"), [0]);
    assert_eq!(values(&build("dense, band")), [0.0, 3.0, 0.0]);
}

#[test]
fn two_runs_are_no_interval() {
    let error = Tensor::from_dense(
        &[2, 5],
        vec![1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 2.0, 0.0].into(),
        &format("dense, interval", 2),
        Value::F64(0.0),
    )
    .unwrap_err();
    assert_eq!(error.code, Code::E0707);
    assert_eq!(error.message, "`interval` holds one run per fiber, but fiber 1 has 0..1 and 2..4");
    assert!(error.help[0].contains("`sparse_runs`"));
    let above = dense(&[3, 1], &[1.0, 0.0, 1.0], "dense").convert(&format("interval, sparse", 2)).unwrap_err();
    assert_eq!(above.code, Code::E0707);
}

#[test]
fn blocks_of_two_dimensions() {
    let a = [1.0, 2.0, 0.0, 0.0, 5.0, 3.0, 4.0, 0.0, 0.0, 6.0, 0.0, 0.0, 7.0, 8.0, 0.0];
    let bsr = dense(&[3, 5], &a, "bsr(2,2)");
    assert_eq!((array(&bsr, 1, "pos"), array(&bsr, 1, "crd")), (vec![0, 2, 3], vec![0, 2, 1]));
    assert_eq!(values(&bsr), [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 6.0, 0.0, 7.0, 8.0, 0.0, 0.0]);
    assert_eq!((bsr.nnz(), bsr.extents()), (4 + 2 + 2, &[2, 3, 2, 2][..]));
    assert_eq!(bsr.get(&[1, 4]), Some(Value::F64(6.0)));
    assert_eq!(bsr.to_dense().unwrap(), a.to_vec().into());
    // The arrays of SciPy are used directly.
    let pos: tamis_tensor::IndexArray = vec![0u32, 1, 2].into();
    let data: ValueArray = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].into();
    let lists = LevelArrays::new([("pos", pos.clone()), ("crd", vec![1u32, 0].into())]);
    let levels = vec![LevelArrays::default(), lists, LevelArrays::default(), LevelArrays::default()];
    let taken =
        Tensor::from_parts(&[4, 4], &format("bsr(2,2)", 2), levels, Some(data.clone()), Value::F64(0.0)).unwrap();
    let (ValueArray::F64(ours), ValueArray::F64(theirs)) = (taken.values().unwrap(), &data) else { panic!() };
    assert_eq!(ours.as_ptr(), theirs.as_ptr());
    assert_eq!(taken.get(&[1, 2]), Some(Value::F64(3.0)));
    assert_eq!(taken.get(&[2, 1]), Some(Value::F64(6.0)));
    // Blocks along columns, and blocks that are themselves stored by columns.
    for text in [
        "(i,j) -> (j/2, i/2, j%2, i%2): dense, sparse, dense, dense",
        "(i,j) -> (i/2, j/2, j%2, i%2): dense, sparse, dense, dense",
        "(i,j) -> (i/2, j/3, i%2, j%3): dense, sparse[u8,u8], dense, dense",
    ] {
        let other = bsr.convert(&format(text, 2)).unwrap();
        assert_eq!(other.to_dense().unwrap(), a.to_vec().into(), "{text}");
        assert!(other.convert(bsr.format()).unwrap().values() == bsr.values(), "{text}");
    }
}

/// Padding outside of the tensor holds the fill.
#[test]
fn blocks_that_reach_beyond_the_tensor() {
    let build = |data: Vec<f64>| {
        let lists = LevelArrays::new([("pos", vec![0u32, 0, 1].into()), ("crd", vec![1u32].into())]);
        let levels = vec![LevelArrays::default(), lists, LevelArrays::default(), LevelArrays::default()];
        Tensor::from_parts(&[3, 4], &format("bsr(2,2)", 2), levels, Some(data.into()), Value::F64(0.0))
    };
    let inside = build(vec![1.0, 2.0, 0.0, -0.0]).unwrap();
    assert_eq!(inside.nnz(), 2);
    let error = build(vec![1.0, 2.0, 0.0, 9.0]).unwrap_err();
    assert_eq!(error.code, Code::E0701);
    assert_eq!(error.message, "value 3 is 9.0, but its stored coordinates (1, 1, 1, 1) are out of bounds");
    assert_eq!(error.help.len(), 2);
}

#[test]
fn diagonals() {
    let a = [1.0, 2.0, 0.0, 3.0, 4.0, 5.0, 0.0, 6.0, 7.0];
    let diagonals = dense(&[3, 3], &a, "(i,j) -> (j-i, i): sparse, dense");
    assert_eq!(array(&diagonals, 0, "crd"), [1, 2, 3]);
    assert_eq!(values(&diagonals), [0.0, 3.0, 6.0, 1.0, 4.0, 7.0, 2.0, 5.0, 0.0]);
    assert_eq!(diagonals.nnz(), 7);
    assert_eq!(diagonals.to_dense().unwrap(), a.to_vec().into());
    let banded = dense(&[3, 3], &a, "(i,j) -> (j-i, i): sparse, band");
    assert_eq!(values(&banded), [3.0, 6.0, 1.0, 4.0, 7.0, 2.0, 5.0]);
}

#[test]
fn what_kernels_write() {
    let written = |text: &str| written_as(&format(text, 2)).long_name();
    assert_eq!(written("runs, interval[u16]; pattern"), "sparse_runs, sparse_runs[_,u16]; pattern");
    assert_eq!(written("blocks[u8,u16], band"), "sparse[_,u16], sparse");
    assert_eq!(written("(i,j) -> (j,i): dense, band; element(1)"), "(i,j) -> (j,i): dense, sparse; element(1)");
    assert_eq!(written("dense, sparse_runs[u8,u8]"), "dense, sparse_runs[u8,u8]");
    assert_eq!(written("(i,j) -> (i/2, j, i%2): dense, dense, dense; element(3)"), "dense, dense; element(3)");
    assert_eq!(written("(i,j) -> (j-i, i): sparse, dense"), "sparse(nonunique), singleton");
    assert_eq!(written("ism(coord)"), "ism(coord)");
}

/// Runs as a kernel writes them: in order, with gaps, and with equal adjacent runs.
fn written_runs(format: &Format) -> Tensor {
    let level = LevelArrays::new([
        ("pos", vec![0u32, 3, 3, 5].into()),
        ("start", vec![0u32, 1, 2, 1, 3].into()),
        ("end", vec![1u32, 2, 4, 3, 4].into()),
    ]);
    let values = Some(vec![7.0, 7.0, 8.0, 5.0, 5.0].into());
    let format = written_as(format);
    Tensor::from_parts(&[3, 4], &format, vec![LevelArrays::default(), level], values, Value::F64(0.0)).unwrap()
}

#[test]
fn results_are_finalized() {
    let lists = format("dense, sparse_runs", 2);
    let finalized = finalize(written_runs(&lists), &lists).unwrap();
    assert_eq!((array(&finalized, 1, "pos"), array(&finalized, 1, "end")), (vec![0, 2, 2, 3], vec![2, 4, 4]));
    assert_eq!((array(&finalized, 1, "start"), values(&finalized)), (vec![0, 2, 1], vec![7.0, 8.0, 5.0]));
    // There is nothing to convert, so nothing is copied.
    let (ValueArray::F64(once), ValueArray::F64(twice)) =
        (finalized.values().unwrap().clone(), finalize(finalized.clone(), &lists).unwrap().values().unwrap().clone())
    else {
        panic!()
    };
    assert_eq!(once.as_ptr(), twice.as_ptr());
    let runs = format("dense, runs", 2);
    let finalized = finalize(written_runs(&runs), &runs).unwrap();
    assert_eq!((array(&finalized, 1, "pos"), array(&finalized, 1, "end")), (vec![0, 2, 3, 5], vec![2, 4, 4, 1, 4]));
    let interval = format("dense, interval", 2);
    let error = finalize(written_runs(&interval), &interval).unwrap_err();
    assert_eq!(error.message, "`interval` holds one run per fiber, but fiber 0 has 0..2 and 2..4");
    let pattern = format("sparse_runs, sparse_runs; pattern", 2);
    let outer = LevelArrays::new([
        ("pos", vec![0u32, 3].into()),
        ("start", vec![0u32, 1, 3].into()),
        ("end", vec![1u32, 3, 4].into()),
    ]);
    let inner = LevelArrays::new([
        ("pos", vec![0u32, 2, 3, 4].into()),
        ("start", vec![0u32, 1, 0, 0].into()),
        ("end", vec![1u32, 2, 2, 2].into()),
    ]);
    let written = Tensor::from_parts(&[4, 2], &pattern, vec![outer, inner], None, Value::Bool(false)).unwrap();
    let finalized = finalize(written.clone(), &pattern).unwrap();
    assert_eq!((array(&finalized, 0, "start"), array(&finalized, 0, "end")), (vec![0], vec![4]));
    assert_eq!((array(&finalized, 1, "start"), array(&finalized, 1, "end")), (vec![0], vec![2]));
    assert!(finalized.same_values(&written) && finalized.nnz() == 8);
}

/// Coordinate lists become blocks without changes to the levels below.
#[test]
fn finalized_blocks_share_their_values() {
    let rows = [0.0, 1.0, 2.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 7.0, 8.0, 9.0];
    for (text, arrays) in [
        ("dense, blocks", [vec![0, 2, 2, 3], vec![2, 4, 5], vec![0, 2, 3, 6]]),
        ("blocks, sparse", [vec![0, 1], vec![1], vec![0, 2]]),
    ] {
        let shape: &[u64] = if text == "dense, blocks" { &[3, 6] } else { &[2, 6] };
        let data = if shape[0] == 3 { [&rows[..6], &[0.0; 6], &rows[6..]].concat() } else { rows.to_vec() };
        let target = format(text, 2);
        let written = dense(shape, &data, &written_as(&target).to_string());
        let finalized = finalize(written.clone(), &target).unwrap();
        let k = usize::from(shape[0] == 3);
        assert_eq!(
            [array(&finalized, k, "pos"), array(&finalized, k, "crd"), array(&finalized, k, "ofs")],
            arrays,
            "{text}"
        );
        let (ValueArray::F64(a), ValueArray::F64(b)) = (written.values().unwrap(), finalized.values().unwrap()) else {
            panic!()
        };
        assert_eq!(a.as_ptr(), b.as_ptr(), "{text}");
        assert!(finalized.same_values(&written));
    }
    let target = format("dense, band", 2);
    let finalized = finalize(dense(&[2, 6], &rows, "csr"), &target).unwrap();
    assert_eq!((array(&finalized, 1, "crd"), array(&finalized, 1, "ofs")), (vec![4, 5], vec![0, 4, 7]));
    let target = format("bsr(2,4)", 2);
    let finalized = finalize(dense(&[2, 6], &rows, "coo"), &target).unwrap();
    assert_eq!((finalized.format(), finalized.nnz()), (&target, 12));
    assert_eq!(finalized.to_dense().unwrap(), rows.to_vec().into());
}

/// Nothing is proportional to a dimension, or to the length of a run, unless the format is.
#[test]
fn long_runs_cost_nothing() {
    let n = 1u64 << 40;
    let level = |end: Vec<u64>| LevelArrays::new([("pos", vec![0u32, end.len() as u32].into()), ("end", end.into())]);
    let outer = level(vec![n / 2, n]);
    let inner = LevelArrays::new([("pos", vec![0u32, 2, 3].into()), ("end", vec![1u64, 1 << 20, 1 << 20].into())]);
    let runs = format("runs, runs", 2);
    let values = Some(vec![1.0, 0.0, 0.0].into());
    let tensor = Tensor::from_parts(&[n, 1 << 20], &runs, vec![outer, inner], values, Value::F64(0.0)).unwrap();
    assert_eq!(tensor.nnz(), 1 << 60);
    let lists = tensor.convert(&format("sparse_runs, sparse_runs", 2)).unwrap();
    assert_eq!((lists.nnz() as u64, array(&lists, 0, "end")), (n / 2, vec![n / 2]));
    assert_eq!(lists.get(&[n / 2 - 1, 0]), Some(Value::F64(1.0)));
    let back = lists.convert(&runs).unwrap();
    assert_eq!((array(&back, 0, "end"), array(&back, 1, "end")), (vec![n / 2, n], vec![1, 1 << 20, 1 << 20]));
    let statistics = lists.statistics();
    assert_eq!(tensor.convert(&Format::csr()).unwrap_err().code, Code::E0706);
    assert_eq!(tensor.convert(&Format::coo(2)).unwrap_err().code, Code::E0706);
    assert!(statistics.is_err_and(|d| d.code == Code::E0706), "its entries cannot be listed");
    let overflow = Tensor::from_parts(
        &[1 << 62, 8],
        &format("runs, dense", 2),
        vec![level(vec![1 << 62])],
        Some(vec![1.0; 8].into()),
        Value::F64(0.0),
    );
    assert_eq!(overflow.unwrap_err().code, Code::E0701, "a level is missing");
    let overflow = Tensor::from_parts(
        &[1 << 62, 8],
        &format("runs, dense", 2),
        vec![level(vec![1 << 62]), LevelArrays::default()],
        Some(vec![1.0; 8].into()),
        Value::F64(0.0),
    );
    assert_eq!(overflow.unwrap_err().code, Code::E0706);
    let spread = Coordinates {
        shape: vec![1, 1 << 60],
        columns: vec![vec![0u32, 0].into(), vec![0u64, (1 << 60) - 1].into()],
        values: vec![1.0, 2.0].into(),
    };
    let band = Tensor::from_coordinates(&spread, &format("dense, band", 2), Value::F64(0.0), Combine::Error);
    assert_eq!(band.unwrap_err().code, Code::E0706);
}

#[test]
fn statistics_count_the_coordinates_of_runs() {
    let a = [1.0, 1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0];
    let runs = dense(&[3, 3], &a, "dense, runs").statistics().unwrap();
    assert_eq!((runs.stored, runs.explicit_zeros, runs.explicit_fills), (9, 2, 2));
    assert_eq!((runs.levels[1].fibers, runs.levels[1].coordinates), (3, 9));
    let merged = dense(&[3, 3], &[1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 3.0, 3.0, 3.0], "runs, sparse").statistics().unwrap();
    assert_eq!((merged.stored, merged.levels[0].coordinates, merged.levels[1].fibers), (7, 3, 2));
    assert_eq!(merged.levels[1].coordinates, 5);
    let bsr = dense(&[3, 3], &a, "bsr(2,2)").statistics().unwrap();
    assert_eq!((bsr.stored, bsr.levels[3].size, bsr.levels[3].dimension), (9, 2, 1));
    assert_eq!(bsr.matrix, dense(&[3, 3], &a, "csr").statistics().unwrap().matrix);
}
