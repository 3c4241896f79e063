//! Violations of each invariant of runs, blocks and bands: the exact diagnostic, with help.

use tamis_ir::{Code, Diagnostic, Format, Value};
use tamis_tensor::{IndexArray, LevelArrays, Tensor};

const NAMES: [&str; 4] = ["pos", "start", "end", "crd"];

/// A tensor of shape 3 x 6 with `dense` above one level, whose arrays are given as `name: numbers;
/// name: numbers`.
fn rows(level: &str, arrays: &str) -> Result<Tensor, Diagnostic> {
    with_shape(&[3, 6], level, arrays)
}

fn with_shape(shape: &[u64], level: &str, text: &str) -> Result<Tensor, Diagnostic> {
    let mut arrays: Vec<(&'static str, IndexArray)> = Vec::new();
    for part in text.split(';').filter(|part| !part.trim().is_empty()) {
        let (name, numbers) = part.split_once(':').unwrap();
        let name = NAMES.into_iter().chain(["ofs"]).find(|n| *n == name.trim()).unwrap();
        let numbers: Vec<u64> = numbers.split_whitespace().map(|n| n.parse().unwrap()).collect();
        arrays.push((name, numbers.into()));
    }
    let format = Format::parse(&format!("dense, {level}; pattern"), 2).unwrap();
    Tensor::from_parts(shape, &format, vec![LevelArrays::default(), LevelArrays::new(arrays)], None, Value::Bool(false))
}

fn refuse(level: &str, table: &[(&str, Code, &str)]) {
    for (arrays, code, message) in table {
        let d = rows(level, arrays).expect_err(arrays);
        assert_eq!((d.code, &d.message[..]), (*code, *message), "{level} {arrays}");
        assert!(!d.help.is_empty(), "{level} {arrays}");
        assert!(d.notes.iter().any(|note| note.contains("in level 1")), "{level} {arrays}");
    }
}

#[test]
fn runs() {
    let good = rows("runs", "pos: 0 2 3 6; end: 1 6 6 2 4 6").unwrap();
    assert_eq!(good.nnz(), 18);
    assert!(with_shape(&[3, 0], "runs", "pos: 0 0 0 0; end:").is_ok());
    refuse(
        "runs",
        &[
            ("pos: 0 1 2 3", Code::E0701, "`runs` lacks its array `end`"),
            (
                "pos: 0 1 2; end: 6 6",
                Code::E0701,
                "`pos` has length 3, expected 4: one number more than there are fibers",
            ),
            ("pos: 1 1 2 3; end: 6 6 6", Code::E0702, "`pos` starts at 1, not 0"),
            ("pos: 0 2 1 3; end: 6 6 6", Code::E0702, "`pos` decreases from 2 to 1 at index 2"),
            ("pos: 0 1 2 4; end: 6 6 6", Code::E0702, "`pos` ends at 4, but `end` has length 3"),
            ("pos: 0 1 2 3; end: 6 7 6", Code::E0703, "run 1 ends at 7, beyond 6, the size of its dimension"),
            ("pos: 0 2 3 4; end: 0 6 6 6", Code::E0704, "run 0, the first of fiber 0, ends at 0"),
            ("pos: 0 1 3 4; end: 6 3 3 6", Code::E0704, "end 3 follows 3 in fiber 1 (index 2 of `end`)"),
            ("pos: 0 1 3 4; end: 6 4 3 6", Code::E0704, "end 3 follows 4 in fiber 1 (index 2 of `end`)"),
            (
                "pos: 0 1 2 3; end: 6 5 6",
                Code::E0704,
                "the runs of fiber 1 end at 5, not at 6, the size of the dimension",
            ),
            (
                "pos: 0 1 1 2; end: 6 6",
                Code::E0704,
                "the runs of fiber 1 end at 0, not at 6, the size of the dimension",
            ),
        ],
    );
    refuse(
        "runs[u8,u64]",
        &[("pos: 0 1 2 3; end: 6 6 6", Code::E0701, "`pos` has width u64, but the format specifies u8")],
    );
    refuse(
        "runs[u64,u8]",
        &[("pos: 0 1 2 3; end: 6 6 6", Code::E0701, "`end` has width u64, but the format specifies u8")],
    );
}

#[test]
fn sparse_runs() {
    let good = rows("sparse_runs", "pos: 0 2 2 3; start: 0 2 5; end: 2 3 6").unwrap();
    assert_eq!((good.nnz(), good.get(&[0, 2]), good.get(&[2, 4])), (4, Some(true.into()), Some(false.into())));
    refuse(
        "sparse_runs",
        &[
            ("pos: 0 1 1 1; start: 0", Code::E0701, "`sparse_runs` lacks its array `end`"),
            ("pos: 0 1 1 2; start: 0; end: 1", Code::E0702, "`pos` ends at 2, but `start` has length 1"),
            (
                "pos: 0 1 1 2; start: 0 1; end: 1",
                Code::E0701,
                "`end` has length 1, expected 2: one for each run, as in `start`",
            ),
            ("pos: 0 1 1 2; start: 0 1; end: 1 9", Code::E0703, "run 1 ends at 9, beyond 6, the size of its dimension"),
            (
                "pos: 0 1 1 2; start: 0 3; end: 1 3",
                Code::E0704,
                "run 1 of fiber 2 starts at 3 and ends at 3, so it is empty",
            ),
            (
                "pos: 0 1 1 2; start: 0 4; end: 1 3",
                Code::E0704,
                "run 1 of fiber 2 starts at 4 and ends at 3, so it is empty",
            ),
            (
                "pos: 0 2 2 2; start: 0 1; end: 2 3",
                Code::E0704,
                "run 1 of fiber 0 starts at 1, before the end 2 of the run before",
            ),
        ],
    );
}

#[test]
fn intervals() {
    let good = rows("interval", "start: 0 0 2; end: 6 0 3").unwrap();
    assert_eq!((good.nnz(), good.get(&[2, 2]), good.get(&[1, 0])), (7, Some(true.into()), Some(false.into())));
    assert!(with_shape(&[2, 0], "interval", "start: 0 0; end: 0 0").is_ok());
    refuse(
        "interval",
        &[
            (
                "start: 0 0; end: 1 0 0",
                Code::E0701,
                "`start` has length 2, expected 3: one run for each position of the level above",
            ),
            (
                "start: 0 0 0; end: 1 0",
                Code::E0701,
                "`end` has length 2, expected 3: one run for each position of the level above",
            ),
            ("start: 0 0 0; end: 1 0 7", Code::E0703, "run 2 ends at 7, beyond 6, the size of its dimension"),
            ("start: 0 3 0; end: 1 2 0", Code::E0704, "the run of fiber 1 starts at 3 and ends at 2"),
            ("start: 0 3 0; end: 1 3 0", Code::E0704, "the run of fiber 1 starts at 3 and ends at 3"),
        ],
    );
    // Below an empty interval there is a position that is not stored.
    let below = |pos: Vec<u32>, crd: Vec<u32>| {
        let format = Format::parse("dense, interval, sparse; pattern", 3).unwrap();
        let middle = LevelArrays::new([("start", vec![1u8, 0].into()), ("end", vec![3u8, 0].into())]);
        let last = LevelArrays::new([("pos", pos.into()), ("crd", crd.into())]);
        Tensor::from_parts(&[2, 4, 4], &format, vec![LevelArrays::default(), middle, last], None, Value::Bool(false))
    };
    assert_eq!(below(vec![0, 2, 2], vec![0, 1]).unwrap().nnz(), 4);
    let error = below(vec![0, 2, 3], vec![0, 1, 1]).unwrap_err();
    assert_eq!(error.message, "3 positions are stored, but only 2 of them below positions that are stored");
}

#[test]
fn blocks() {
    let good = rows("blocks", "pos: 0 2 2 3; crd: 1 4 5; ofs: 0 2 3 9").unwrap();
    assert_eq!((good.nnz(), good.get(&[0, 3]), good.get(&[0, 4])), (9, Some(false.into()), Some(true.into())));
    assert!(rows("blocks", "pos: 0 2 2 2; crd: 1 4; ofs: 0 2 5").is_ok(), "blocks may touch");
    refuse(
        "blocks",
        &[
            ("pos: 0 1 1 1; crd: 1", Code::E0701, "`blocks` lacks its array `ofs`"),
            ("pos: 0 1 1 2; crd: 1; ofs: 0 1", Code::E0702, "`pos` ends at 2, but `crd` has length 1"),
            (
                "pos: 0 1 1 1; crd: 1; ofs: 0",
                Code::E0701,
                "`ofs` has length 1, expected 2: one number more than there are blocks",
            ),
            ("pos: 0 1 1 1; crd: 1; ofs: 1 2", Code::E0702, "`ofs` starts at 1, not 0"),
            ("pos: 0 2 2 2; crd: 1 3; ofs: 0 2 1", Code::E0702, "`ofs` decreases from 2 to 1 at index 2"),
            ("pos: 0 2 2 2; crd: 1 3; ofs: 0 2 2", Code::E0702, "block 1 has no coordinates (`ofs` is 2 twice)"),
            (
                "pos: 0 1 1 1; crd: 6; ofs: 0 1",
                Code::E0703,
                "coordinate 6 at index 0 of `crd` is not below 6, the size of its dimension",
            ),
            ("pos: 0 1 1 1; crd: 1; ofs: 0 3", Code::E0704, "block 0 has 3 coordinates up to 1, so it starts below 0"),
            (
                "pos: 0 2 2 2; crd: 2 4; ofs: 0 1 4",
                Code::E0704,
                "block 1 of fiber 0 starts at 2, but the one before ends with 2",
            ),
            (
                "pos: 0 2 2 2; crd: 4 1; ofs: 0 1 2",
                Code::E0704,
                "block 1 of fiber 0 starts at 1, but the one before ends with 4",
            ),
            (
                "pos: 0 1 1 1; crd: 1; ofs: 0 18446744073709551615",
                Code::E0704,
                "block 0 has 18446744073709551615 coordinates up to 1, so it starts below 0",
            ),
        ],
    );
}

#[test]
fn bands() {
    let good = rows("band", "crd: 1 0 5; ofs: 0 2 2 5").unwrap();
    assert_eq!((good.nnz(), good.get(&[1, 0]), good.get(&[2, 3])), (5, Some(false.into()), Some(true.into())));
    assert!(with_shape(&[2, 0], "band", "crd: 0 0; ofs: 0 0 0").is_ok());
    refuse(
        "band",
        &[
            (
                "crd: 1 0; ofs: 0 2 2 5",
                Code::E0701,
                "`crd` has length 2, expected 3: the last coordinate for each position of the level above",
            ),
            (
                "crd: 1 0 5; ofs: 0 2 2",
                Code::E0701,
                "`ofs` has length 3, expected 4: one number more than there are blocks",
            ),
            ("crd: 1 0 5; ofs: 1 2 2 5", Code::E0702, "`ofs` starts at 1, not 0"),
            ("crd: 1 0 5; ofs: 0 2 1 5", Code::E0702, "`ofs` decreases from 2 to 1 at index 2"),
            (
                "crd: 1 0 6; ofs: 0 2 2 5",
                Code::E0703,
                "coordinate 6 at index 2 of `crd` is not below 6, the size of its dimension",
            ),
            ("crd: 1 2 5; ofs: 0 2 2 5", Code::E0704, "the block of fiber 1 is empty, but ends with coordinate 2"),
            (
                "crd: 1 0 5; ofs: 0 3 3 5",
                Code::E0704,
                "the block of fiber 0 has 3 coordinates up to 1, so it starts below 0",
            ),
        ],
    );
    let none = with_shape(&[1, 0], "band", "crd: 0; ofs: 0 1").unwrap_err();
    assert_eq!(
        (none.code, &none.message[..]),
        (Code::E0704, "the block of fiber 0 has 1 coordinates up to 0, so it starts below 0")
    );
}

/// Foreign arrays may have equal adjacent runs: they are valid, and conversion merges them.
#[test]
fn equal_neighbours_from_outside() {
    let two = rows("sparse_runs", "pos: 0 2 2 2; start: 0 2; end: 2 3").unwrap();
    let converted = two.convert(&Format::parse("dense, runs", 2).unwrap().with_leaf(two.format().leaf()));
    assert_eq!(converted.unwrap_err().code, Code::E0707, "not everything is true");
    let one = two.convert(&Format::parse("dense, interval; pattern", 2).unwrap()).unwrap();
    assert_eq!(one.level_arrays(1).get("end").unwrap().to_vec(), [3, 0, 0]);
    assert!(one.same_values(&two));
}
