//! Storage of tensors, array by array: the examples of the papers, widths, ranks, duplicates,
//! hostile shapes.

use tamis_ir::{Code, DType, Diagnostic, Format, Value};
use tamis_tensor::{Combine, Coordinates, IndexArray, Tensor, ValueArray};

fn format(text: &str, rank: usize) -> Format {
    Format::parse(text, rank).unwrap_or_else(|d| panic!("{text}: {d}"))
}

fn list(shape: &[u64], entries: &[(&[u64], f64)]) -> Coordinates {
    let column = |d: usize| entries.iter().map(|(c, _)| c[d]).collect::<Vec<u64>>().into();
    Coordinates {
        shape: shape.to_vec(),
        columns: (0..shape.len()).map(column).collect(),
        values: entries.iter().map(|(_, v)| *v).collect::<Vec<f64>>().into(),
    }
}

fn build(entries: &Coordinates, text: &str) -> Result<Tensor, Diagnostic> {
    Tensor::from_coordinates(entries, &format(text, entries.shape.len()), Value::I64(0), Combine::Error)
}

fn v1() -> Coordinates {
    list(&[3, 4], &[(&[0, 0], 1.0), (&[0, 3], 2.0), (&[2, 0], 3.0)])
}

/// Every array as `name=numbers`, then the values.
fn arrays(tensor: &Tensor) -> String {
    let mut out = Vec::new();
    for k in 0..tensor.levels().len() {
        for (name, array) in &tensor.level_arrays(k).arrays {
            let numbers: Vec<String> = array.to_vec().iter().map(u64::to_string).collect();
            out.push(format!("{name}{k}={}", numbers.join(",")));
        }
    }
    if let Some(values) = tensor.values() {
        let values: Vec<String> = (0..values.len()).map(|k| values.get(k).to_string()).collect();
        out.push(format!("values={}", values.join(",")));
    }
    out.join(" ")
}

#[test]
fn the_papers_matrix_in_every_format() {
    let table = [
        ("csr", "pos1=0,2,2,3 crd1=0,3,0 values=1.0,2.0,3.0"),
        ("csc", "pos1=0,2,2,2,3 crd1=0,2,0 values=1.0,3.0,2.0"),
        ("dcsc", "pos0=0,2 crd0=0,3 pos1=0,2,3 crd1=0,2,0 values=1.0,3.0,2.0"),
        ("dcsr", "pos0=0,2 crd0=0,2 pos1=0,2,3 crd1=0,3,0 values=1.0,2.0,3.0"),
        ("coo", "pos0=0,3 crd0=0,0,2 crd1=0,3,0 values=1.0,2.0,3.0"),
        ("hash, hash", "pos0=0,2 crd0=0,2 pos1=0,2,3 crd1=0,3,0 values=1.0,2.0,3.0"),
        ("sparse, dense", "pos0=0,2 crd0=0,2 values=1.0,0.0,0.0,2.0,3.0,0.0,0.0,0.0"),
        ("bytemap, sparse", "flags0=1,0,1 pos0=0,2 crd0=0,2 pos1=0,2,2,3 crd1=0,3,0 values=1.0,2.0,3.0"),
        (
            "dense, bytemap",
            "flags1=1,0,0,1,0,0,0,0,1,0,0,0 pos1=0,2,2,3 crd1=0,3,0 \
             values=1.0,0.0,0.0,2.0,0.0,0.0,0.0,0.0,3.0,0.0,0.0,0.0",
        ),
        ("csr; pattern", "pos1=0,2,2,3 crd1=0,3,0"),
        ("(i,j) -> (j,i): dense, dense", "values=1.0,0.0,3.0,0.0,0.0,0.0,0.0,0.0,0.0,2.0,0.0,0.0"),
    ];
    for (text, expected) in table {
        let tensor = build(&v1(), text).unwrap_or_else(|d| panic!("{text}: {d}"));
        assert_eq!(arrays(&tensor), expected, "{text}");
        assert_eq!(tensor.to_coordinates().shape, [3, 4]);
    }
}

#[test]
fn a_permutation_needs_no_positions() {
    let permutation = list(&[3, 3], &[(&[0, 2], 1.0), (&[1, 0], 1.0), (&[2, 1], 1.0)]);
    assert_eq!(arrays(&build(&permutation, "dense, singleton; pattern").unwrap()), "crd1=2,0,1");
    let missing = list(&[3, 3], &[(&[0, 2], 1.0), (&[2, 1], 5.0)]);
    assert_eq!(arrays(&build(&missing, "dense, singleton").unwrap()), "crd1=2,0,1 values=1.0,0.0,5.0");
    assert_eq!(build(&missing, "dense, singleton; pattern").unwrap_err().code, Code::E0707);
    let twice = list(&[2, 3], &[(&[0, 0], 1.0), (&[0, 2], 1.0)]);
    let refused = build(&twice, "dense, singleton").unwrap_err();
    assert_eq!(refused.code, Code::E0707);
    assert!(refused.message.contains("0 and 2"), "{refused}");
    assert_eq!(build(&list(&[2, 0], &[]), "dense, singleton").unwrap_err().code, Code::E0707);
    assert_eq!(build(&list(&[0, 0], &[]), "dense, singleton").unwrap().nnz(), 0);
}

#[test]
fn widths_never_wrap() {
    let far = list(&[1, 1000], &[(&[0, 300], 1.0)]);
    for text in
        ["dense, sparse[u32,u8]", "sparse(nonunique), singleton[u8]", "dense, singleton[u8]", "dense, hash[u8,u8]"]
    {
        let d = build(&far, text).unwrap_err();
        assert_eq!(d.code, Code::E0705, "{text}");
        assert!(d.message.contains("300") && !d.help.is_empty(), "{text}: {d}");
    }
    let near = list(&[1, 1000], &[(&[0, 255], 1.0)]);
    let narrow = build(&near, "dense, sparse[u8,u8]").unwrap();
    assert_eq!(narrow.level_arrays(1).get("crd"), Some(&IndexArray::U8(vec![255].into())));
    let many: Vec<(Vec<u64>, f64)> = (0..256).map(|i| (vec![i], 1.0)).collect();
    let many: Vec<(&[u64], f64)> = many.iter().map(|(c, v)| (&c[..], *v)).collect();
    for text in ["sparse[u8,u16]", "hash[u8,u16]"] {
        assert_eq!(build(&list(&[256], &many), text).unwrap_err().code, Code::E0705, "{text}");
        assert!(build(&list(&[256], &many[..255]), text).is_ok());
    }
    let csr = build(&list(&[2, 300], &[(&[1, 299], 1.0)]), "csr").unwrap();
    assert_eq!(csr.convert(&format("dense, sparse[u8,u8]", 2)).unwrap_err().code, Code::E0705);
    let wide = list(&[1 << 40, 1 << 33], &[(&[1 << 39, (1 << 33) - 1], 1.0)]);
    assert_eq!(arrays(&build(&wide, "coo").unwrap()), "pos0=0,1 crd0=549755813888 crd1=8589934591 values=1.0");
    assert_eq!(build(&wide, "sparse[u32,u32], sparse").unwrap_err().code, Code::E0705);
}

#[test]
fn duplicates_become_one() {
    let twice = list(&[2, 2], &[(&[1, 0], 2.0), (&[0, 1], 5.0), (&[1, 0], -3.0), (&[1, 0], 0.5)]);
    let table = [
        (Combine::Sum, -0.5),
        (Combine::Product, -3.0),
        (Combine::Min, -3.0),
        (Combine::Max, 2.0),
        (Combine::First, 2.0),
        (Combine::Last, 0.5),
        (Combine::Any, 1.0),
        (Combine::All, 1.0),
    ];
    for text in ["coo", "csr", "csc", "dcsr", "dense", "bytemap, hash"] {
        for (combine, expected) in table {
            let tensor = Tensor::from_coordinates(&twice, &format(text, 2), Value::F64(0.0), combine).unwrap();
            assert_eq!(tensor.get(&[1, 0]), Some(Value::F64(expected)), "{text} {combine:?}");
            assert_eq!(tensor.get(&[0, 1]), Some(Value::F64(5.0)), "{text} {combine:?}");
        }
        let d = build(&twice, text).unwrap_err();
        assert_eq!(d.code, Code::E0708);
        assert!(d.message.contains("(1, 0)") && d.message.contains("0 and 2"), "{d}");
    }
}

#[test]
fn combining_by_type() {
    let build = |values: ValueArray, combine| {
        let entries = Coordinates { shape: vec![1], columns: vec![vec![0u8; values.len()].into()], values };
        Tensor::from_coordinates(&entries, &format("sparse", 1), Value::I64(0), combine)
            .map(|t| t.get(&[0]).unwrap())
            .map_err(|d| d.code)
    };
    assert_eq!(build(vec![200u8, 100].into(), Combine::Sum), Ok(Value::U8(44)));
    assert_eq!(build(vec![i8::MIN, -1].into(), Combine::Product), Ok(Value::I8(-128)));
    assert_eq!(build(vec![true, true].into(), Combine::Sum), Ok(Value::Bool(true)));
    assert_eq!(build(vec![true, false].into(), Combine::Product), Ok(Value::Bool(false)));
    assert_eq!(build(vec![0i32, 0].into(), Combine::Any), Ok(Value::I32(0)));
    assert_eq!(build(vec![7i32, 0].into(), Combine::Any), Ok(Value::I32(1)));
    assert_eq!(build(vec![7i32, 0].into(), Combine::All), Ok(Value::I32(0)));
    assert!(build(vec![1.0, f64::NAN, 2.0].into(), Combine::Min).unwrap().is_nan());
    assert!(build(vec![f32::NAN, 2.0].into(), Combine::Max).unwrap().is_nan());
    let complex = |re| num_complex::Complex::new(re, 1.0);
    assert_eq!(build(vec![complex(1.0), complex(2.0)].into(), Combine::Max), Err(Code::E0301));
    assert_eq!(
        build(vec![complex(1.0), complex(2.0)].into(), Combine::Product),
        Ok(Value::C128(num_complex::Complex::new(1.0, 3.0)))
    );
}

#[test]
fn rank_zero() {
    let scalar = Tensor::scalar(Value::F32(2.5));
    assert_eq!((scalar.rank(), scalar.nnz(), scalar.get(&[])), (0, 1, Some(Value::F32(2.5))));
    assert_eq!(scalar.get(&[0]), None);
    assert_eq!(scalar.to_coordinates().len(), 1);
    let empty = Coordinates { shape: vec![], columns: vec![], values: Vec::<i64>::new().into() };
    let tensor = Tensor::from_coordinates(&empty, &Format::dense(0), Value::I64(9), Combine::Error).unwrap();
    assert_eq!(tensor.get(&[]), Some(Value::I64(9)));
    let three = Coordinates { shape: vec![], columns: vec![], values: vec![1i64, 2, 3].into() };
    assert_eq!(
        Tensor::from_coordinates(&three, &Format::dense(0), Value::I64(0), Combine::Error).unwrap_err().code,
        Code::E0708
    );
    let sum = Tensor::from_coordinates(&three, &Format::dense(0), Value::I64(0), Combine::Sum).unwrap();
    assert_eq!(sum.get(&[]), Some(Value::I64(6)));
    let pattern = format("dense; pattern", 0);
    assert_eq!(
        Tensor::from_coordinates(&empty, &pattern, Value::I64(0), Combine::Error).unwrap_err().code,
        Code::E0707
    );
    assert_eq!(sum.convert(&pattern).unwrap().get(&[]), Some(Value::Bool(true)));
    assert_eq!(sum.convert(&pattern).unwrap().convert(&Format::dense(0)).unwrap().get(&[]), Some(Value::Bool(true)));
}

#[test]
fn hostile_shapes_are_diagnostics() {
    let table: [(&[u64], &str, Code); 9] = [
        (&[1 << 40, 1 << 40], "dense", Code::E0404),
        (&[1 << 30, 1 << 30], "dense", Code::E0706),
        (&[1 << 50], "dense", Code::E0706),
        (&[1 << 62, 5], "csr", Code::E0706),
        (&[1 << 50], "bytemap", Code::E0706),
        (&[1 << 40, 1 << 40], "bytemap, bytemap", Code::E0706),
        (&[u64::MAX, 2], "coo", Code::E0404),
        (&[1 << 63], "sparse", Code::E0404),
        (&[1 << 50, 7], "dense, singleton", Code::E0706),
    ];
    for (shape, text, code) in table {
        let d = build(&list(shape, &[]), text).unwrap_err();
        assert_eq!(d.code, code, "{shape:?} {text}: {d}");
        assert!(!d.help.is_empty(), "{text}");
    }
    let far = list(&[i64::MAX as u64; 3], &[(&[5, i64::MAX as u64 - 1, 0], 2.0), (&[1, 2, 3], 1.0)]);
    let coo = build(&far, "coo").unwrap();
    assert_eq!(coo.cell_count(), None);
    let csf = coo.convert(&format("(i,j,k) -> (k,j,i): sparse, sparse, sparse", 3)).unwrap();
    assert!(csf.same_values(&coo) && csf.convert(&Format::coo(3)).unwrap().same_values(&csf));
    assert_eq!(csf.get(&[5, i64::MAX as u64 - 1, 0]), Some(Value::F64(2.0)));
    assert_eq!(csf.to_dense().unwrap_err().code, Code::E0404);
    let implied = Tensor::from_parts(
        &[1 << 50],
        &format("dense; pattern", 1),
        vec![Default::default()],
        None,
        Value::Bool(false),
    );
    assert_eq!(implied.unwrap_err().code, Code::E0706);
    // Nothing is stored, so nothing is visited, for any number of rows.
    let nothing = build(&list(&[1 << 40, 0], &[]), "dense").unwrap();
    assert_eq!(nothing.to_coordinates().len(), 0);
    assert!(nothing.convert(&Format::coo(2)).unwrap().same_values(&nothing));
    nothing.for_each(&mut |_, _| panic!("nothing is stored"));
    assert_eq!(nothing.convert(&format("(i,j) -> (j,i): dense, sparse", 2)).unwrap().nnz(), 0);
}

#[test]
fn mistakes_in_coordinates() {
    let mut entries = v1();
    entries.columns[1] = vec![0u8, 4, 0].into();
    let d = build(&entries, "csr").unwrap_err();
    assert_eq!(
        (d.code, d.message.contains("entry 1") && d.message.contains("dimension 1")),
        (Code::E0703, true),
        "{d}"
    );
    entries.columns[1] = vec![0u8, 3].into();
    assert_eq!(build(&entries, "csr").unwrap_err().code, Code::E0701);
    entries.columns.pop();
    assert_eq!(build(&entries, "csr").unwrap_err().code, Code::E0701);
    assert_eq!(
        Tensor::from_coordinates(&v1(), &Format::coo(3), Value::I64(0), Combine::Sum).unwrap_err().code,
        Code::E0603
    );
    let bytes =
        Coordinates { shape: vec![1], columns: vec![vec![0u8].into()], values: ValueArray::Bool(vec![2].into()) };
    assert_eq!(
        Tensor::from_coordinates(&bytes, &format("sparse", 1), Value::Bool(false), Combine::Sum).unwrap_err().code,
        Code::E0709
    );
    assert_eq!(
        Tensor::from_dense(&[2, 2], vec![1.0].into(), &Format::csr(), Value::I64(0)).unwrap_err().code,
        Code::E0701
    );
}

#[test]
fn fills() {
    let build = |text: &str, fill| Tensor::from_coordinates(&v1(), &format(text, 2), fill, Combine::Error);
    assert_eq!(build("csr", Value::Bool(true)).unwrap().fill(), Value::F64(1.0));
    assert_eq!(
        build("csr; element(inf)", Value::F64(f64::INFINITY)).unwrap().get(&[1, 1]),
        Some(Value::F64(f64::INFINITY))
    );
    assert_eq!(build("csr; element(inf)", Value::F64(0.0)).unwrap_err().code, Code::E0709);
    assert_eq!(build("csr; pattern", Value::F64(1.0)).unwrap_err().code, Code::E0709);
    let integers = Coordinates { values: vec![1i32, 2, 3].into(), ..v1() };
    let d = Tensor::from_coordinates(&integers, &Format::csr(), Value::F64(0.5), Combine::Error).unwrap_err();
    assert_eq!(d.code, Code::E0709);
    let infinite = build("csr", Value::F64(f64::INFINITY)).unwrap();
    assert_eq!(infinite.convert(&Format::csc()).unwrap().fill(), Value::F64(f64::INFINITY));
    assert_eq!(infinite.convert(&format("csc; element(1)", 2)).unwrap_err().code, Code::E0709);
    assert!(infinite.convert(&format("csc; element(inf)", 2)).is_ok());
    assert_eq!(infinite.convert(&format("csc; pattern", 2)).unwrap_err().code, Code::E0709);
    // If every coordinate is stored, the fill is irrelevant and may change.
    let full = Tensor::from_dense(&[2], vec![1.0, 5.0].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let other = full.convert(&format("sparse; element(1)", 1)).unwrap();
    assert_eq!((other.nnz(), other.fill(), other.same_values(&full)), (1, Value::F64(1.0), true));
    assert_eq!(infinite.to_dense().unwrap().get(1), Value::F64(f64::INFINITY));
}

#[test]
fn every_type_is_stored_cast_and_compared() {
    for dtype in DType::ALL {
        let values = ValueArray::from_values(&[Value::I64(1), Value::I64(0), Value::I64(3)], dtype);
        let entries = Coordinates { values, ..v1() };
        for text in ["csr", "csc", "coo", "dense", "dcsc", "dense, bytemap", "csr; pattern"] {
            let tensor = Tensor::from_coordinates(&entries, &format(text, 2), Value::I64(0), Combine::Error).unwrap();
            let pattern = text.ends_with("pattern");
            assert_eq!(tensor.dtype(), if pattern { DType::Bool } else { dtype });
            assert_eq!(tensor.get(&[0, 0]), Some(Value::I64(1).cast(tensor.dtype())), "{dtype} {text}");
            for other in DType::ALL {
                let cast = tensor.cast(other);
                assert_eq!((cast.dtype(), cast.nnz()), (other, tensor.nnz()));
                assert_eq!(cast.get(&[2, 0]), tensor.get(&[2, 0]).map(|v| v.cast(other)), "{dtype} {other} {text}");
                assert_eq!(
                    cast.same_values(&tensor),
                    other != DType::Bool
                        || tensor.get(&[2, 0]).unwrap().cast(DType::Bool).cast(dtype)
                            == tensor.get(&[2, 0]).unwrap().cast(dtype),
                    "{dtype} {other} {text}"
                );
                let again = Tensor::from_parts(
                    cast.shape(),
                    cast.format(),
                    (0..2).map(|k| cast.level_arrays(k)).collect(),
                    cast.values().cloned(),
                    cast.fill(),
                );
                assert!(again.unwrap().same_values(&cast));
            }
        }
    }
}

#[test]
fn comparing_meanings() {
    let ones = Tensor::from_dense(&[2], vec![1.0, 1.0].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let filled = Tensor::from_dense(&[2], vec![1i8, 1].into(), &format("sparse", 1), Value::I64(1)).unwrap();
    assert_eq!(filled.nnz(), 0);
    assert!(ones.same_values(&filled) && filled.same_values(&ones));
    let zeros = Tensor::from_dense(&[2], vec![0.0, -0.0].into(), &format("sparse", 1), Value::F64(0.0)).unwrap();
    assert!(!ones.same_values(&zeros) && zeros.nnz() == 0);
    let nan =
        |text| Tensor::from_dense(&[2], vec![f64::NAN, 1.0].into(), &format(text, 1), Value::F64(f64::NAN)).unwrap();
    assert!(nan("sparse").same_values(&nan("dense")) && nan("sparse").nnz() == 1);
    let longer = Tensor::from_dense(&[3], vec![1.0; 3].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    assert!(!ones.same_values(&longer));
    let big = |v: ValueArray| Tensor::from_dense(&[1], v, &Format::dense(1), Value::I64(0)).unwrap();
    assert!(!big(vec![u64::MAX].into()).same_values(&big(vec![u64::MAX as f64].into())));
    assert!(!big(vec![0.1f32].into()).same_values(&big(vec![0.1f64].into())));
    assert!(big(vec![1u64 << 60].into()).same_values(&big(vec![(1u64 << 60) as f64].into())));
}

#[test]
fn nothing_is_copied_where_layouts_agree() {
    fn pointer(array: &IndexArray) -> usize {
        match array {
            IndexArray::U32(x) => x.as_ptr() as usize,
            other => panic!("{other:?}"),
        }
    }
    fn values(t: &Tensor) -> usize {
        match t.values() {
            Some(ValueArray::F64(x)) => x.as_ptr() as usize,
            other => panic!("{other:?}"),
        }
    }
    let coo = build(&v1(), "coo").unwrap();
    let csr = coo.convert(&Format::csr()).unwrap();
    let back = csr.convert(&Format::coo(2)).unwrap();
    let hash = csr.convert(&format("dense, hash", 2)).unwrap();
    for other in [&csr, &back, &hash, &csr.convert(&Format::csr()).unwrap()] {
        assert_eq!(values(other), values(&coo));
        let crd = |t: &Tensor| pointer(t.level_arrays(1).get("crd").unwrap());
        assert_eq!(crd(other), crd(&coo));
    }
    let levels = vec![csr.level_arrays(0), csr.level_arrays(1)];
    let parts = Tensor::from_parts(&[3, 4], &Format::csr(), levels, csr.values().cloned(), Value::F64(0.0)).unwrap();
    assert_eq!(values(&parts), values(&coo));
    assert_eq!(pointer(parts.level_arrays(1).get("pos").unwrap()), pointer(csr.level_arrays(1).get("pos").unwrap()));
    let same = coo.convert(&Format::coo(2).with_leaf(tamis_ir::format::Leaf::Element(Some(Value::I64(0))))).unwrap();
    assert_eq!(values(&same), values(&coo));
}

#[test]
fn prints() {
    let csr = build(&v1(), "csr").unwrap();
    assert_eq!(
        csr.to_string(),
        "3x4 f64 csr, 3 stored\n  level 1 sparse: pos [0, 2, 2, 3] crd [0, 3, 0]\n  values [1.0, 2.0, 3.0]"
    );
    assert_eq!(format!("{:?}", Tensor::scalar(Value::I8(-1))), "scalar i8 dense, 1 stored\n  values [-1]");
    let big = Tensor::from_dense(&[100], vec![1.0; 100].into(), &format("sparse; pattern", 1), Value::I64(0)).unwrap();
    assert_eq!(big.to_string(), "100 bool sparse; pattern, 100 stored");
    let filled = Tensor::from_coordinates(&v1(), &Format::coo(2), Value::F64(f64::INFINITY), Combine::Error).unwrap();
    assert_eq!(filled.summary(), "3x4 f64 coo, 3 stored, fill inf");
}
