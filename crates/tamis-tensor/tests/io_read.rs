//! Readers of every kind of file: contents and formats.

use std::path::{Path, PathBuf};
use tamis_ir::{Code, DType, Value};
use tamis_tensor::io::{Content, FileData, Layout, ReadOptions, Symmetry, ValueField, read, read_data, read_from};
use tamis_tensor::{Combine, IndexArray, Tensor};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn data(name: &str) -> FileData {
    read_data(fixture(name), &ReadOptions::default()).unwrap_or_else(|d| panic!("{name}: {}", d.render(false)))
}

fn tensor(name: &str) -> Tensor {
    read(fixture(name), &ReadOptions::default()).unwrap_or_else(|d| panic!("{name}: {}", d.render(false)))
}

fn parse(name: &str, text: &str) -> Tensor {
    read_from(name, text.as_bytes(), &ReadOptions::default())
        .unwrap_or_else(|d| panic!("{text:?}: {}", d.render(false)))
}

/// All values in row-major order, as real numbers.
fn reals(tensor: &Tensor) -> Vec<f64> {
    let dense = tensor.to_dense().expect("small");
    (0..dense.len()).map(|k| dense.get(k).as_c128().re).collect()
}

const A: [f64; 16] = [1., 0., 0., 2., 0., 0., 0., 0., 3., 0., 4., 0., 0., 5., 0., 6.];

#[test]
fn scipy_writes_it_and_it_reads() {
    // Name, format of the tensor, entries.
    let table = [
        ("csr-f64", "csr", 6),
        ("csc-f64", "csc", 6),
        ("coo-f64", "coo", 6),
        ("bsr-f64", "coo", 6),
        ("bsr-2x2", "coo", 16),
        ("dia-f64", "coo", 6),
        ("csr-stored", "csr", 6),
        ("csr-int64-indices", "csr", 6),
        ("csr-array", "csr", 6),
        ("csr-big-endian", "csr", 6),
    ];
    for (name, format, entries) in table {
        let tensor = tensor(&format!("{name}.npz"));
        assert_eq!(tensor.shape(), [4, 4], "{name}");
        assert_eq!(tensor.dtype(), DType::F64, "{name}");
        assert_eq!(reals(&tensor), A, "{name}");
        assert_eq!(tensor.nnz(), entries, "{name}");
        let expected = tamis_ir::Format::parse(format, 2).unwrap();
        assert_eq!(tensor.format(), &expected, "{name}");
    }
}

#[test]
fn every_type_of_scipy() {
    for (name, dtype) in [
        ("bool", DType::Bool),
        ("int8", DType::I8),
        ("int16", DType::I16),
        ("int32", DType::I32),
        ("int64", DType::I64),
        ("uint8", DType::U8),
        ("uint16", DType::U16),
        ("uint32", DType::U32),
        ("uint64", DType::U64),
        ("float32", DType::F32),
        ("complex64", DType::C64),
        ("complex128", DType::C128),
    ] {
        let tensor = tensor(&format!("csr-{name}.npz"));
        assert_eq!(tensor.dtype(), dtype);
        let dense = tensor.to_dense().unwrap();
        for (k, a) in A.iter().enumerate() {
            let value = dense.get(k).as_c128();
            let expected = if dtype == DType::Bool { f64::from(*a != 0.0) } else { *a };
            let found = if dtype.kind() == tamis_ir::Kind::Complex { value.im } else { value.re };
            assert_eq!(found, expected, "{name} {k}");
        }
    }
}

#[test]
fn odd_matrices_of_scipy() {
    assert_eq!(tensor("csr-empty.npz").shape(), [0, 5]);
    assert_eq!((tensor("csr-no-entries.npz").shape(), tensor("csr-no-entries.npz").nnz()), (&[3, 5][..], 0));
    let cube = tensor("coo-3d.npz");
    assert_eq!(cube.shape(), [2, 4, 5]);
    assert_eq!(cube.get(&[1, 2, 0]), Some(Value::F64(2.0)));
    assert_eq!(reals(&tensor("coo-1d.npz")), [1., 0., 0., 2., 0., 0.]);
    assert_eq!(reals(&tensor("csr-1d.npz")), [0., 1., 0., 2.]);
    assert_eq!(reals(&tensor("csr-unsorted.npz")), [2., 0., 1., 0., 3., 0.]);
    assert_eq!(tensor("csr-unsorted.npz").format(), &tamis_ir::Format::csr());
    // The output of scipy.sparse.dia_matrix(...).toarray().
    let diagonals = [1., 0., 0., 0., 5., 2., 0., 9., 0., 6., 3., 0., 0., 0., 7., 4.];
    assert_eq!(reals(&tensor("dia-offsets.npz")), diagonals);
    assert_eq!(reals(&tensor("plain-array.npz")), A);
}

#[test]
fn repetitions_are_refused_or_combined() {
    for name in ["coo-duplicates.npz", "csr-duplicates.npz"] {
        for diagnostic in [
            read_data(fixture(name), &ReadOptions::default()).unwrap_err(),
            read(fixture(name), &ReadOptions::default()).unwrap_err(),
        ] {
            assert_eq!(diagnostic.code, Code::E0807, "{name}");
            assert!(diagnostic.help[0].contains("sum"), "{name}");
        }
    }
    let sum = ReadOptions { duplicates: Combine::Sum, ..ReadOptions::default() };
    assert_eq!(reals(&read(fixture("coo-duplicates.npz"), &sum).unwrap()), [0., 5., 2., 0.]);
    assert_eq!(reals(&read(fixture("csr-duplicates.npz"), &sum).unwrap()), [0., 0., 3., 0., 3., 0.]);

    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n2 1 1\n1 1 5\n1 2 10\n";
    let refused = read_from("a.mtx", text.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!((refused.code, refused.place.as_ref().unwrap().line), (Code::E0807, Some(5)));
    assert!(refused.message.contains("line 3"), "{refused}");
    assert_eq!(reals(&read_from("a.mtx", text.as_bytes(), &sum).unwrap()), [5., 11., 11., 0.]);
    for (duplicates, value) in [(Combine::First, 1.0), (Combine::Last, 10.0), (Combine::Max, 10.0)] {
        let options = ReadOptions { duplicates, ..ReadOptions::default() };
        let found = reals(&read_from("a.mtx", text.as_bytes(), &options).unwrap());
        assert_eq!(found, [5., value, value, 0.], "{duplicates:?}");
    }
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n1 2\n";
    assert_eq!(read_from("a.mtx", pattern.as_bytes(), &sum).unwrap().nnz(), 1);
    let smtx = "1, 3, 3\n0 3\n1 1 0\n";
    assert_eq!(read_from("a.smtx", smtx.as_bytes(), &sum).unwrap().nnz(), 2);
}

#[test]
fn arrays_of_numpy() {
    let ramp: Vec<f64> = (0..24).map(f64::from).collect();
    assert_eq!(reals(&tensor("c-order.npy")), ramp);
    assert_eq!(reals(&tensor("fortran.npy")), ramp);
    assert_eq!(reals(&tensor("fortran-2d.npy")), ramp[..6]);
    assert_eq!(tensor("fortran-2d.npy").dtype(), DType::I64);
    assert_eq!((tensor("scalar.npy").rank(), reals(&tensor("scalar.npy"))), (0, vec![2.5]));
    assert_eq!(tensor("big-endian.npy").dtype(), DType::I16);
    assert_eq!(reals(&tensor("big-endian.npy")), [0., 1., 2.]);
    assert_eq!(tensor("half.npy").dtype(), DType::F32);
    assert_eq!(reals(&tensor("half.npy")), [0.5, -2.0, f64::INFINITY]);
    assert_eq!(tensor("complex-big.npy").get(&[0]), Some(Value::C128(num_complex::Complex::new(1.0, 2.0))));
    assert_eq!(tensor("empty.npy").shape(), [0, 3]);
    for name in ["text.npy", "records.npy"] {
        assert_eq!(read(fixture(name), &ReadOptions::default()).unwrap_err().code, Code::E0809, "{name}");
    }
    assert_eq!(read(fixture("two-arrays.npz"), &ReadOptions::default()).unwrap_err().code, Code::E0810);
}

#[test]
fn matrix_market_fixtures() {
    for name in ["karate.mtx", "karate.mtx.gz"] {
        let data = data(name);
        assert_eq!(data.header.gzip, name.ends_with(".gz"));
        assert_eq!(data.header.symmetry, Symmetry::Symmetric);
        assert_eq!(data.header.field, ValueField::Pattern);
        assert_eq!(data.header.stored, 4);
        assert_eq!(data.header.comments[1], "a small graph");
        assert_eq!(data.content.values().len(), 7);
        let tensor = tensor(name);
        assert_eq!(tensor.format().to_string(), "sparse(nonunique), singleton; pattern");
        let expected = [0., 1., 1., 0., 1., 0., 0., 1., 1., 0., 1., 0., 0., 1., 0., 0.];
        assert_eq!(reals(&tensor), expected);
    }
    let crlf = tensor("crlf.mtx");
    assert_eq!(crlf.shape(), [3, 4]);
    assert_eq!(crlf.get(&[1, 2]), Some(Value::F64(-2e-3)));
    assert_eq!(crlf.get(&[2, 3]), Some(Value::F64(f64::INFINITY)));
    let hermitian = tensor("hermitian-array.mtx");
    assert_eq!(hermitian.get(&[0, 1]), Some(Value::C128(num_complex::Complex::new(2.0, -3.0))));
    assert_eq!(hermitian.get(&[1, 0]), Some(Value::C128(num_complex::Complex::new(2.0, 3.0))));
    let skew = tensor("skew.mtx");
    assert_eq!(reals(&skew), [0., -5., -7., 5., 0., 0., 7., 0., 0.]);
    assert_eq!(skew.dtype(), DType::I64);
}

#[test]
fn matrix_market_headers() {
    // Banner and sizes, entries, type, values.
    let table: &[(&str, &str, DType, &[f64])] = &[
        ("matrix coordinate real general\n2 2 1", "2 1 3", DType::F64, &[0., 0., 3., 0.]),
        ("matrix coordinate double general\n2 2 1", "2 1 3", DType::F64, &[0., 0., 3., 0.]),
        ("matrix coordinate integer general\n2 2 1", "2 1 -3", DType::I64, &[0., 0., -3., 0.]),
        (
            "matrix coordinate unsigned-integer general\n1 1 1",
            "1 1 18446744073709551615",
            DType::U64,
            &[1.8446744073709552e19],
        ),
        ("matrix coordinate complex general\n1 2 1", "1 2 3 4", DType::C128, &[0., 3.]),
        ("matrix coordinate complex symmetric\n2 2 1", "2 1 3 4", DType::C128, &[0., 3., 3., 0.]),
        ("matrix coordinate complex skew-symmetric\n2 2 1", "2 1 3 4", DType::C128, &[0., -3., 3., 0.]),
        ("matrix coordinate real hermitian\n2 2 1", "2 1 3", DType::F64, &[0., 3., 3., 0.]),
        ("matrix coordinate pattern general\n1 2 1", "1 2", DType::Bool, &[0., 1.]),
        ("matrix array real general\n2 3", "1\n2\n3\n4\n5\n6", DType::F64, &[1., 3., 5., 2., 4., 6.]),
        ("matrix array integer symmetric\n2 2", "1\n2\n3", DType::I64, &[1., 2., 2., 3.]),
        ("matrix array real skew-symmetric\n3 3", "1\n2\n3", DType::F64, &[0., -1., -2., 1., 0., -3., 2., 3., 0.]),
        ("matrix array real skew-symmetric\n1 1", "", DType::F64, &[0.]),
        ("matrix array unsigned-integer general\n1 1", "7", DType::U64, &[7.]),
        ("matrix array real general\n3 1", "1\n2\n3", DType::F64, &[1., 2., 3.]),
        ("matrix array real general\n0 5", "", DType::F64, &[]),
        ("matrix coordinate real general\n0 0 0", "", DType::F64, &[]),
        ("matrix coordinate real general\n1 2 0", "", DType::F64, &[0., 0.]),
        ("vector coordinate real general\n3 1", "2 5", DType::F64, &[0., 5., 0.]),
        ("vector array integer\n2", "4\n5", DType::I64, &[4., 5.]),
        ("matrix coordinate real symmetric\n2 2 1", "1 2 7", DType::F64, &[0., 7., 7., 0.]),
    ];
    for (header, body, dtype, values) in table {
        for ending in ["", "\n", "\n\n  \n% end\n"] {
            let text = format!("%%MatrixMarket {header}\n{body}{ending}");
            let tensor = parse("a.mtx", &text);
            assert_eq!(tensor.dtype(), *dtype, "{text}");
            assert_eq!(reals(&tensor), *values, "{text}");
            let crlf = text.to_uppercase().replace('\n', "\r\n");
            assert_eq!(reals(&parse("a.mtx", &crlf)), *values, "{crlf}");
        }
    }
    let nan = parse("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 NaN\n");
    assert!(nan.get(&[0, 0]).unwrap().is_nan());
    let bom = parse("a.mtx", "\u{feff}%%MatrixMarket matrix array integer general\n1 1\n7\n");
    assert_eq!(reals(&bom), [7.0]);
}

#[test]
fn large_dimensions_are_fine_when_sparse() {
    let n = i64::MAX as u64;
    let text = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} 2\n{n} {n} 1\n1 1 2\n");
    let tensor = parse("a.mtx", &text);
    assert_eq!(tensor.shape(), [n, n]);
    assert_eq!(tensor.get(&[n - 1, n - 1]), Some(Value::F64(1.0)));
    let text = format!("{n} 1 5\n4294967297 2 6\n");
    let tensor = parse("a.tns", &text);
    assert_eq!(tensor.shape(), [n, 2]);
    let text = "4294967296 1 5\n".to_string();
    let Content::Coordinates(narrow) =
        tamis_tensor::io::read_data_from("a.tns", text.as_bytes(), &ReadOptions::default()).unwrap().content
    else {
        panic!("entries")
    };
    assert_eq!(narrow.columns[0], IndexArray::from(vec![u32::MAX]));
}

#[test]
fn frostt() {
    for name in ["small.tns", "small.tns.gz"] {
        let small = data(name);
        assert_eq!(small.content.shape(), [2, 3, 4]);
        assert_eq!(small.header.field, ValueField::Real);
        assert_eq!(small.header.comments, ["a tensor"]);
    }
    assert_eq!(data("members.tns.gz").content.shape(), [3, 3, 4]);
    let extended = tensor("extended.tns");
    assert_eq!((extended.shape(), extended.dtype()), (&[4, 4, 4][..], DType::I64));
    let table: &[(&str, &[u64], usize)] = &[
        ("5\n", &[], 1),
        ("0 1\n\n5\n", &[], 1),
        ("0 1\n5\n", &[], 1),
        ("1 5\n", &[1], 1),
        ("2 3\n3 4\n", &[3], 2),
        ("2 0\n3 4\n", &[3, 4], 0),
        ("1 0\n7\n", &[7], 0),
        ("3 0\n4 5 6\n", &[4, 5, 6], 0),
        ("2 1\n3 4\n1 1 9\n", &[3, 4], 1),
        ("2 1\n3 4\n1 9\n", &[3], 3),
        ("1 1\n7\n3 2.5\n", &[7], 1),
        ("  1\t2   3\r\n# c\r\n\r\n2 1 4\r\n", &[2, 2], 2),
        ("1 1 1 1 1 1 1 1 2\n", &[1; 8], 1),
    ];
    for (text, shape, entries) in table {
        let tensor = parse("a.tns", text);
        assert_eq!(tensor.shape(), *shape, "{text:?}");
        assert_eq!(tensor.nnz(), *entries, "{text:?}");
    }
    let vector = ReadOptions { shape: Some(vec![9]), ..ReadOptions::default() };
    assert_eq!(read_from("a.tns", b"2 0\n3 4\n", &vector).unwrap().nnz(), 2);
    let empty = ReadOptions { shape: Some(vec![2, 3]), ..ReadOptions::default() };
    assert_eq!(read_from("a.tns", b"# nothing\n", &empty).unwrap().shape(), [2, 3]);
    for (text, dtype) in [
        ("1 1\n2 2\n", DType::I64),
        ("1 1\n2 2.0\n", DType::F64),
        ("1 -9223372036854775808\n", DType::I64),
        ("1 9223372036854775808\n", DType::F64),
        ("1 nan\n2 1\n", DType::F64),
    ] {
        assert_eq!(parse("a.tns", text).dtype(), dtype, "{text:?}");
    }
}

#[test]
fn mixed_numbers_across_pieces_are_all_real() {
    let mut text = String::new();
    for k in 1..=50_000u32 {
        text += &if k == 40_000 { format!("{k} 0.5\n") } else { format!("{k} {k}\n") };
    }
    let tensor = parse("a.tns", &text);
    assert_eq!(tensor.dtype(), DType::F64);
    let values = reals(&tensor);
    assert_eq!((values[0], values[39_999], values[49_999]), (1.0, 0.5, 50_000.0));
    let table = parse("a.txt", &text);
    assert_eq!((table.shape(), table.dtype()), (&[50_000, 2][..], DType::F64));
    assert_eq!(table.get(&[49_999, 1]), Some(Value::F64(50_000.0)));
}

#[test]
fn other_kinds() {
    let smtx = data("small.smtx");
    assert_eq!(smtx.header.layout, Layout::Rows);
    assert_eq!(tensor("small.smtx").format().to_string(), "csr; pattern");
    assert_eq!(reals(&tensor("small.smtx")), [1., 0., 0., 1., 0., 1., 0., 0.]);
    assert_eq!(reals(&tensor("text.pbm")), [1., 0., 1., 0., 1., 1.]);
    assert_eq!((tensor("text.pgm").dtype(), reals(&tensor("text.pgm"))), (DType::U16, vec![0., 1., 299., 300.]));
    let bits = tensor("bits.pbm");
    assert_eq!((bits.shape(), bits.dtype()), (&[2, 10][..], DType::Bool));
    assert_eq!(reals(&bits).iter().sum::<f64>(), 11.0);
    assert_eq!(bits.get(&[1, 7]), Some(Value::Bool(true)));
    assert_eq!((tensor("grey.pgm").dtype(), reals(&tensor("grey.pgm"))), (DType::U8, vec![0., 1., 2., 255.]));
    assert_eq!(reals(&tensor("grey16.pgm")), [258., 65535.]);
    let idx = tensor("small.idx2-short");
    assert_eq!((idx.shape(), idx.dtype()), (&[2, 3][..], DType::I16));
    assert_eq!(reals(&idx), [1., 2., 3., -1., 0., 6.]);
    assert_eq!(reals(&tensor("table.txt")), [1., 2., 3., 4., 5., 6.]);
    assert_eq!(parse("a.labels.txt", "3\n1\n2\n").shape(), [3]);
    assert_eq!(parse("a.txt", "").shape(), [0]);
    assert_eq!(parse("a.txt", "# c\n1, 2.5\n3,4\n").shape(), [2, 2]);
}

#[test]
fn every_type_of_idx() {
    for (code, dtype, one) in [
        (8u8, DType::U8, &[1u8][..]),
        (9, DType::I8, &[255]),
        (11, DType::I16, &[255, 255]),
        (12, DType::I32, &[0, 0, 1, 0]),
        (13, DType::F32, &[0x3f, 0x80, 0, 0]),
        (14, DType::F64, &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
    ] {
        let mut bytes = vec![0, 0, code, 1, 0, 0, 0, 1];
        bytes.extend(one);
        let tensor = read_from("a.idx1", &bytes, &ReadOptions::default()).unwrap();
        assert_eq!(tensor.dtype(), dtype);
        let expected = [1., -1., -1., 256., 1., 1.][match code {
            8 => 0,
            9 => 1,
            c => c as usize - 9,
        }];
        assert_eq!(reals(&tensor), [expected], "{dtype}");
    }
    assert_eq!(reals(&read_from("a.idx", &[0, 0, 8, 0, 7], &ReadOptions::default()).unwrap()), [7.0]);
}

#[test]
fn threads_and_progress() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let mut text = String::from("%%MatrixMarket matrix coordinate integer general\n100000 1 100000\n");
    for k in 1..=100_000 {
        text += &format!("{k} 1 {k}\n");
    }
    let most = AtomicU64::new(0);
    let report = |done: u64, total: u64| {
        assert!(done <= total);
        most.fetch_max(done, Ordering::Relaxed);
    };
    let mut results = Vec::new();
    for threads in [None, Some(0), Some(1), Some(3), Some(usize::MAX)] {
        most.store(0, Ordering::Relaxed);
        let options = ReadOptions { threads: threads.map(|t| t.min(8)), progress: Some(&report), ..Default::default() };
        results.push(read_from("a.mtx", text.as_bytes(), &options).unwrap());
        assert!(most.load(Ordering::Relaxed) > 1_000_000);
    }
    assert!(results.windows(2).all(|w| w[0].same_values(&w[1])));
}
