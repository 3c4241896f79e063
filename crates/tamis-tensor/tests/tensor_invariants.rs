//! Violations of each invariant of levels: the diagnostic, with help.

use tamis_ir::{Code, Diagnostic, Format, Value};
use tamis_tensor::{IndexArray, LevelArrays, Tensor, ValueArray};

type Arrays = Vec<Vec<(&'static str, IndexArray)>>;

fn parts(shape: &[u64], format: &str, levels: Arrays, values: Option<ValueArray>) -> Result<Tensor, Diagnostic> {
    let format = Format::parse(format, shape.len()).unwrap_or_else(|d| panic!("{format}: {d}"));
    let levels = levels.into_iter().map(LevelArrays::new).collect();
    Tensor::from_parts(shape, &format, levels, values, Value::Bool(false))
}

fn numbers(text: &str) -> IndexArray {
    let numbers: Vec<u64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
    numbers.into()
}

fn refuse(what: &str, result: Result<Tensor, Diagnostic>, code: Code) {
    let d = result.expect_err(what);
    assert_eq!(d.code, code, "{what}: {}", d.render(false));
    assert!(!d.help.is_empty(), "{what}");
}

#[test]
fn compressed_levels() {
    for level in ["sparse", "hash"] {
        let csr = |pos: &str, crd: &str, count: usize| {
            let inner = vec![("pos", numbers(pos)), ("crd", numbers(crd))];
            parts(&[3, 4], &format!("dense, {level}"), vec![vec![], inner], Some(vec![1.0; count].into()))
        };
        assert!(csr("0 2 2 3", "0 3 0", 3).is_ok());
        assert!(csr("0 0 0 0", "", 0).is_ok());
        refuse("pos too short", csr("0 2 3", "0 3 0", 3), Code::E0701);
        refuse("pos too long", csr("0 2 2 3 3", "0 3 0", 3), Code::E0701);
        refuse("pos empty", csr("", "", 0), Code::E0701);
        refuse("pos starts late", csr("1 2 2 3", "0 3 0", 3), Code::E0702);
        refuse("pos decreases", csr("0 2 1 3", "0 3 0", 3), Code::E0702);
        refuse("pos beyond crd in the middle", csr("0 9 9 3", "0 3 0", 3), Code::E0702);
        refuse("pos ends early", csr("0 1 1 2", "0 3 0", 3), Code::E0702);
        refuse("pos ends late", csr("0 2 2 4", "0 3 0", 3), Code::E0702);
        refuse("pos huge", csr("0 2 2 18446744073709551615", "0 3 0", 3), Code::E0702);
        refuse("coordinate out of range", csr("0 2 2 3", "0 4 0", 3), Code::E0703);
        refuse("coordinate huge", csr("0 2 2 3", "0 18446744073709551615 0", 3), Code::E0703);
        refuse("coordinates decrease", csr("0 2 2 3", "3 0 0", 3), Code::E0704);
        refuse("coordinate repeats", csr("0 2 2 3", "3 3 0", 3), Code::E0704);
        refuse("values missing", csr("0 2 2 3", "0 3 0", 2), Code::E0701);
        refuse("values too many", csr("0 2 2 3", "0 3 0", 4), Code::E0701);
    }
}

#[test]
fn names_and_widths_of_arrays() {
    let csr = |format: &str, inner| parts(&[1, 4], format, vec![vec![], inner], Some(vec![1.0].into()));
    let pos = || ("pos", numbers("0 1"));
    let crd = || ("crd", numbers("2"));
    assert!(csr("csr", vec![crd(), pos()]).is_ok(), "the order of arrays does not matter");
    refuse("array missing", csr("csr", vec![pos()]), Code::E0701);
    refuse("array twice", csr("csr", vec![pos(), crd(), crd()]), Code::E0701);
    refuse("array unknown", csr("csr", vec![pos(), crd(), ("flags", numbers("1"))]), Code::E0701);
    refuse("wrong width", csr("dense, sparse[u32,u64]", vec![pos(), crd()]), Code::E0701);
    refuse("wrong width", csr("dense, sparse[u64,u8]", vec![pos(), crd()]), Code::E0701);
    assert!(csr("dense, sparse[u64,u64]", vec![pos(), crd()]).is_ok());
    refuse("level missing", parts(&[1, 4], "csr", vec![vec![pos(), crd()]], Some(vec![1.0].into())), Code::E0701);
    let dense = parts(&[2], "dense", vec![vec![pos()]], Some(vec![1.0, 2.0].into()));
    refuse("dense has no arrays", dense, Code::E0701);
    let rank = Tensor::from_parts(&[1, 4, 4], &Format::csr(), vec![], None, Value::I64(0));
    refuse("another rank", rank, Code::E0603);
}

#[test]
fn coordinate_lists() {
    let coo = |pos: &str, rows: &str, columns: &str| {
        let levels = vec![vec![("pos", numbers(pos)), ("crd", numbers(rows))], vec![("crd", numbers(columns))]];
        parts(&[3, 4], "coo; pattern", levels, None)
    };
    assert!(coo("0 4", "0 0 2 2", "0 3 0 1").is_ok());
    refuse("singleton too short", coo("0 3", "0 0 2", "0 3"), Code::E0701);
    refuse("singleton too long", coo("0 3", "0 0 2", "0 3 0 0"), Code::E0701);
    refuse("singleton out of range", coo("0 3", "0 0 2", "0 4 0"), Code::E0703);
    refuse("row out of range", coo("0 3", "0 0 3", "0 3 0"), Code::E0703);
    refuse("rows decrease", coo("0 3", "0 2 0", "0 3 0"), Code::E0704);
    refuse("tuples decrease", coo("0 3", "0 0 2", "3 0 0"), Code::E0704);
    refuse("tuple repeats", coo("0 3", "0 0 2", "3 3 0"), Code::E0708);
    refuse("pos", coo("0 2", "0 0 2", "0 3 0"), Code::E0702);
    // Fibers are independent of each other: the first coordinate of a fiber need not follow the
    // last one of the previous fiber.
    let batched = |columns: &str| {
        let middle = vec![("pos", numbers("0 2 4")), ("crd", numbers("1 2 0 2"))];
        parts(
            &[2, 3, 4],
            "dense, sparse(nonunique), singleton; pattern",
            vec![vec![], middle, vec![("crd", numbers(columns))]],
            None,
        )
    };
    assert!(batched("3 0 0 0").is_ok());
    let last = |crd: &str| {
        parts(&[4], "sparse(nonunique); pattern", vec![vec![("pos", numbers("0 2")), ("crd", numbers(crd))]], None)
    };
    assert!(last("1 2").is_ok());
    refuse("nothing tells equal ones apart", last("2 2"), Code::E0708);
}

#[test]
fn lists_in_any_order() {
    let list = |pos: &str, crd: &str| {
        let level = vec![("pos", numbers(pos)), ("crd", numbers(crd))];
        parts(&[2, 4], "dense, sparse(nonordered); pattern", vec![vec![], level], None)
    };
    let tensor = list("0 3 4", "3 0 2 2").unwrap();
    let got: Vec<bool> = (0..8).map(|k| tensor.get(&[k / 4, k % 4]) == Some(Value::Bool(true))).collect();
    assert_eq!(got, [true, false, true, true, false, false, true, false]);
    let mut visited = Vec::new();
    tensor.for_each(&mut |at, _| visited.push(at.to_vec()));
    assert_eq!(visited, [[0, 3], [0, 0], [0, 2], [1, 2]], "as stored");
    assert!(list("0 0 0", "").is_ok() && list("0 4 8", "3 2 1 0 0 1 2 3").is_ok());
    refuse("twice, apart", list("0 3 4", "3 0 3 2"), Code::E0708);
    refuse("twice, together", list("0 1 4", "3 0 2 2"), Code::E0708);
    refuse("out of range", list("0 3 4", "3 0 4 2"), Code::E0703);
    refuse("partition", list("0 3 3", "3 0 1 2"), Code::E0702);
    refuse("short pos", list("0 4", "3 0 1 2"), Code::E0701);
    let message = list("0 3 4", "3 0 3 2").unwrap_err().message.clone();
    assert_eq!(message, "coordinate 3 occurs twice in fiber 0 (indices 0 and 2 of `crd`)");
    let sorted = tensor.convert(&Format::parse("csr; pattern", 2).unwrap()).unwrap();
    assert_eq!(sorted.level_arrays(1).get("crd").unwrap().to_vec(), [0, 2, 3, 2]);
    // Converting back, nothing is moved.
    let back = sorted.convert(tensor.format()).unwrap();
    assert_eq!(back.level_arrays(1), sorted.level_arrays(1));
    assert!(back.same_values(&tensor));
}

/// The structure of a matrix does not depend on the storage order of its entries.
#[test]
fn statistics_of_lists_in_any_order() {
    let level = vec![("pos", numbers("0 2 4")), ("crd", numbers("1 0 1 0"))];
    let values = Some(vec![2.0, 1.0, 0.0, 2.0].into());
    let tensor = parts(&[2, 2], "dense, sparse(nonordered)", vec![vec![], level], values).unwrap();
    let matrix = tensor.statistics().unwrap().matrix.unwrap();
    assert!(matrix.symmetric && matrix.structurally_symmetric && !matrix.diagonal);
    assert_eq!((matrix.diagonal_nonzeros, matrix.most_per_row, matrix.most_per_column), (1, 2, 2));
    assert_eq!(tensor.statistics().unwrap().levels[1].name, "sparse(nonordered)");
}

/// Files list entries in order, for tensors in any order.
#[test]
fn files_of_lists_in_any_order() {
    use tamis_tensor::io::{FileKind, WriteOptions, write_to};
    let level = vec![("pos", numbers("0 2 3")), ("crd", numbers("2 0 1"))];
    let tensor = parts(&[2, 3], "dense, sparse(nonordered)", vec![vec![], level], Some(vec![5.0, 6.0, 7.0].into()));
    let tensor = tensor.unwrap();
    let sorted = tensor.convert(&Format::csr()).unwrap();
    for kind in [FileKind::MatrixMarket, FileKind::Frostt, FileKind::ScipyArchive] {
        let write = |tensor: &Tensor| {
            let mut out = Vec::new();
            write_to(kind, &mut out, tensor, &WriteOptions::default()).unwrap();
            out
        };
        assert_eq!(write(&tensor), write(&sorted), "{kind:?}");
    }
}

#[test]
fn bytemaps() {
    let bytemap = |flags: &[u8], pos: &str, crd: &str, values: usize| {
        let level = vec![("flags", flags.to_vec().into()), ("pos", numbers(pos)), ("crd", numbers(crd))];
        parts(&[4], "bytemap", vec![level], Some(vec![1.0; values].into()))
    };
    assert!(bytemap(&[1, 0, 0, 1], "0 2", "0 3", 4).is_ok());
    refuse("flags too short", bytemap(&[1, 0, 0], "0 2", "0 3", 4), Code::E0701);
    refuse("flag that is none", bytemap(&[2, 0, 0, 1], "0 2", "0 3", 4), Code::E0701);
    refuse("flag missing", bytemap(&[1, 0, 0, 0], "0 2", "0 3", 4), Code::E0701);
    refuse("flag elsewhere", bytemap(&[1, 1, 0, 0], "0 2", "0 3", 4), Code::E0701);
    refuse("list out of order", bytemap(&[1, 0, 0, 1], "0 2", "3 0", 4), Code::E0704);
    refuse("list out of range", bytemap(&[1, 0, 0, 1], "0 2", "0 4", 4), Code::E0703);
    refuse("partition", bytemap(&[1, 0, 0, 1], "0 1", "0 3", 4), Code::E0702);
    refuse("values as for sparse", bytemap(&[1, 0, 0, 1], "0 2", "0 3", 2), Code::E0701);
    let wide = vec![("flags", numbers("1 0 0 1")), ("pos", numbers("0 2")), ("crd", numbers("0 3"))];
    refuse("flags that are not bytes", parts(&[4], "bytemap", vec![wide], Some(vec![1.0; 4].into())), Code::E0701);
    let below = |pos: &str, crd: &str| {
        let outer = vec![("flags", vec![1u8, 0].into()), ("pos", numbers("0 1")), ("crd", numbers("0"))];
        parts(
            &[2, 2],
            "bytemap, sparse; pattern",
            vec![outer, vec![("pos", numbers(pos)), ("crd", numbers(crd))]],
            None,
        )
    };
    assert!(below("0 1 1", "1").is_ok());
    refuse("stored below a hole", below("0 1 2", "1 1"), Code::E0701);
}

#[test]
fn leaves() {
    let sparse = || vec![vec![("pos", numbers("0 1")), ("crd", numbers("2"))]];
    refuse("values of a pattern", parts(&[4], "sparse; pattern", sparse(), Some(vec![true].into())), Code::E0701);
    refuse("no values", parts(&[4], "sparse", sparse(), None), Code::E0701);
    refuse(
        "byte that is no boolean",
        parts(&[4], "sparse", sparse(), Some(ValueArray::Bool(vec![3].into()))),
        Code::E0709,
    );
    refuse("another fill", parts(&[4], "sparse; element(1)", sparse(), Some(vec![1.0].into())), Code::E0709);
    let format = Format::parse("sparse", 1).unwrap();
    let arrays = || sparse().into_iter().map(LevelArrays::new).collect::<Vec<_>>();
    let fill = Tensor::from_parts(&[4], &format, arrays(), Some(vec![1i8].into()), Value::I64(300));
    refuse("fill of another type", fill, Code::E0709);
    let large = Tensor::from_parts(&[u64::MAX], &format, arrays(), Some(vec![1i8].into()), Value::I64(0));
    refuse("dimension too large", large, Code::E0404);
    let overflow = parts(&[1 << 40, 1 << 40], "dense", vec![vec![], vec![]], Some(vec![1.0].into()));
    refuse("size overflows", overflow, Code::E0404);
}
