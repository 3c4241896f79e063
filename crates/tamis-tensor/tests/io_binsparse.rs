//! Binsparse archives: round trips, archives of other writers, and diagnostics.

use num_complex::Complex;
use std::io::{Cursor, Write};
use tamis_ir::{Code, DType, Format, Value};
use tamis_tensor::io::{FileKind, ReadOptions, WriteOptions, read_data_from, read_from, write_to};
use tamis_tensor::{Tensor, ValueArray};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn written(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_to(FileKind::Binsparse, &mut bytes, tensor, &WriteOptions::default()).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Tensor, tamis_ir::Diagnostic> {
    read_from("a.bsp.npz", bytes, &ReadOptions::default())
}

fn descriptor(bytes: &[u8]) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    std::io::read_to_string(archive.by_name("binsparse.json").unwrap()).unwrap()
}

/// A vector as a member of an archive.
fn npy(code: &str, count: usize, data: &[u8]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({count},), }}");
    text.push_str(&" ".repeat(63 - (text.len() + 10) % 64));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    npy("<i8", numbers.len(), &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

fn floats(numbers: &[f64]) -> Vec<u8> {
    npy("<f8", numbers.len(), &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

fn archive(json: &str, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("binsparse.json", SimpleFileOptions::default()).unwrap();
    zip.write_all(json.as_bytes()).unwrap();
    for (name, bytes) in members {
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn descriptor_text(format: &str, shape: &str, entries: usize, values: &str, more: &str) -> String {
    format!(
        r#"{{"binsparse": {{"version": "0.1", "format": {format}, "shape": {shape}, "number_of_stored_values": {entries}, "data_types": {{"values": "{values}"}}{more}}}}}"#
    )
}

#[test]
fn every_format_and_type_reads_back() {
    let formats = [
        (1, "dense", "DVEC"),
        (1, "sparse", "CVEC"),
        (2, "dense", "DMATR"),
        (2, "(i,j) -> (j,i): dense, dense", "DMATC"),
        (2, "csr", "CSR"),
        (2, "csc", "CSC"),
        (2, "dcsr", "DCSR"),
        (2, "dcsc", "DCSC"),
        (2, "coo", "COOR"),
        (2, "(i,j) -> (j,i): sparse(nonunique), singleton", "COOC"),
        (3, "csf", "custom"),
        (3, "coo", "custom"),
        (3, "dense, sparse, dense", "custom"),
        (3, "(i,j,k) -> (k,i,j): sparse, dense, sparse", "custom"),
        (0, "dense", "custom"),
    ];
    for (rank, text, name) in formats {
        let shape = &[3u64, 4, 2][..rank];
        let count: u64 = shape.iter().product();
        let numbers: Vec<Value> = (0..count as i64).map(|k| Value::I64(if k % 3 == 1 { k % 5 } else { 0 })).collect();
        let format = Format::parse(text, rank).unwrap();
        for dtype in DType::ALL {
            let values = ValueArray::from_values(&numbers, dtype);
            let tensor = Tensor::from_dense(shape, values, &format, Value::zero(dtype)).unwrap();
            let bytes = written(&tensor);
            let again = read(&bytes).unwrap_or_else(|d| panic!("{text} {dtype}: {d}"));
            assert_eq!((again.format(), again.dtype(), again.shape()), (tensor.format(), dtype, shape), "{text}");
            assert!(again.same_values(&tensor), "{text} {dtype}");
            assert!(descriptor(&bytes).contains(&format!("\"{name}\"")), "{text}: {}", descriptor(&bytes));
            let data = read_data_from("a.bsp.npz", &bytes, &ReadOptions::default()).unwrap();
            assert_eq!(data.content.shape(), shape);
        }
    }
}

#[test]
fn fills_patterns_and_other_levels() {
    let values = || ValueArray::from(vec![f64::INFINITY, 1.0, f64::INFINITY, 2.0]);
    let tensor = Tensor::from_dense(&[2, 2], values(), &Format::csr(), Value::F64(f64::INFINITY)).unwrap();
    let again = read(&written(&tensor)).unwrap();
    assert_eq!((again.fill(), again.nnz()), (Value::F64(f64::INFINITY), 2));
    assert!(again.same_values(&tensor));
    let pattern = Format::parse("csr; pattern", 2).unwrap();
    let truths = Tensor::from_dense(&[2, 2], vec![true, false, true, true].into(), &pattern, false.into()).unwrap();
    let bytes = written(&truths);
    assert!(descriptor(&bytes).contains("iso[bint8]"));
    assert_eq!(read(&bytes).unwrap().format(), &pattern);
    let runs = Format::parse("dense, runs", 2).unwrap();
    let tensor = Tensor::from_dense(&[2, 2], vec![1.0, 1.0, 0.0, 2.0].into(), &runs, 0.0.into()).unwrap();
    assert!(read(&written(&tensor)).unwrap().same_values(&tensor));
}

#[test]
fn the_examples_of_the_specification() {
    let same = archive(
        &descriptor_text("\"CSR\"", "[5, 5]", 6, "iso[float64]", ""),
        &[
            ("pointers_to_1", integers(&[0, 1, 3, 3, 5, 6])),
            ("indices_1", integers(&[3, 1, 4, 1, 2, 3])),
            ("values", floats(&[7.0])),
        ],
    );
    let tensor = read(&same).unwrap();
    assert_eq!((tensor.nnz(), tensor.get(&[1, 4]), tensor.get(&[4, 4])), (6, Some(7.0.into()), Some(0.0.into())));
    let members = [
        ("pointers_to_1", integers(&[0, 1, 3, 5, 7, 9])),
        ("indices_1", integers(&[0, 0, 1, 0, 2, 1, 3, 2, 4])),
        ("values", floats(&[1.0, 2.0, 9.0, 7.0, 2.0, 2.0, 3.0, 3.0, 7.0])),
    ];
    let symmetric = |word: &str| {
        read(&archive(
            &descriptor_text("\"CSR\"", "[5, 5]", 9, "float64", &format!(", \"structure\": \"{word}\"")),
            &members,
        ))
    };
    let tensor = symmetric("symmetric_lower").unwrap();
    assert_eq!((tensor.nnz(), tensor.get(&[0, 2]), tensor.get(&[2, 0])), (13, Some(7.0.into()), Some(7.0.into())));
    let skew = symmetric("skew_symmetric_lower").unwrap();
    assert_eq!(skew.get(&[0, 2]), Some(Value::F64(-7.0)));
    assert_eq!(symmetric("symmetric_upper").unwrap_err().code, Code::E0808);
    assert_eq!(symmetric("triangular").unwrap_err().code, Code::E0809);
}

#[test]
fn what_others_write() {
    // Pairs of numbers, indices from 1, the older location of `custom`, and unsorted lists.
    let complex = archive(
        &descriptor_text("\"CVEC\"", "[4]", 2, "complex[float64]", ", \"index_base\": 1"),
        &[("indices_0", integers(&[1, 4])), ("values", floats(&[1.0, 2.0, 3.0, 4.0]))],
    );
    assert_eq!(read(&complex).unwrap().get(&[3]), Some(Value::C128(Complex::new(3.0, 4.0))));
    let level = r#"{"custom": {"transpose": [1, 0], "level": {"level_desc": "dense", "rank": 1, "level": {"level_desc": "sparse", "rank": 1, "level": {"level_desc": "element"}}}}}"#;
    let older = archive(
        &descriptor_text(level, "[2, 3]", 2, "float64", ""),
        &[
            ("pointers_to_1", integers(&[0, 0, 2, 2])),
            ("indices_1", integers(&[1, 0])),
            ("values", floats(&[5.0, 6.0])),
        ],
    );
    let tensor = read(&older).unwrap();
    assert_eq!(
        (tensor.format(), tensor.get(&[1, 1]), tensor.get(&[0, 1])),
        (&Format::csc(), Some(5.0.into()), Some(6.0.into()))
    );
    let unsorted = archive(
        &descriptor_text("\"COO\"", "[2, 3]", 2, "float64", ""),
        &[("indices_0", integers(&[1, 0])), ("indices_1", integers(&[0, 2])), ("values", floats(&[5.0, 6.0]))],
    );
    assert_eq!(read(&unsorted).unwrap().get(&[0, 2]), Some(6.0.into()));
}

#[test]
fn mistakes_are_reported() {
    let members = |values: Vec<u8>| {
        [("pointers_to_1", integers(&[0, 1, 2])), ("indices_1", integers(&[0, 1])), ("values", values)]
    };
    let good = || members(floats(&[1.0, 2.0]));
    let csr = |shape: &str, entries: usize, values: &str, more: &str| {
        descriptor_text("\"CSR\"", shape, entries, values, more)
    };
    assert!(read(&archive(&csr("[2, 2]", 2, "float64", ""), &good())).is_ok());
    for (json, code) in [
        ("{".to_string(), Code::E0810),
        ("[[[[".repeat(10_000), Code::E0810),
        ("{}".to_string(), Code::E0809),
        (csr("[2, 2]", 3, "float64", ""), Code::E0804),
        (csr("[2, 1]", 2, "float64", ""), Code::E0703),
        (csr("[3, 2]", 2, "float64", ""), Code::E0701),
        (csr("[2, 2, 2]", 2, "float64", ""), Code::E0803),
        (csr("[-2, 2]", 2, "float64", ""), Code::E0803),
        (csr("[2, 2]", 2, "float32", ""), Code::E0810),
        (csr("[2, 2]", 2, "complex[float32]", ""), Code::E0810),
        (csr("[2, 2]", 2, "iso[float64]", ""), Code::E0810),
        (csr("[2, 2]", 2, "float64", ", \"fill\": true"), Code::E0810),
        (csr("[2, 2]", 2, "float64", ", \"index_base\": 1"), Code::E0810),
        (csr("[2, 2]", 2, "float64", ", \"index_base\": 2"), Code::E0803),
        (descriptor_text("\"ELL\"", "[2, 2]", 2, "float64", ""), Code::E0809),
        (descriptor_text("\"DCSR\"", "[2, 2]", 2, "float64", ""), Code::E0810),
        (descriptor_text(r#"{"custom": {"level": {"level_desc": "runs"}}}"#, "[2, 2]", 2, "float64", ""), Code::E0809),
        (
            descriptor_text(r#"{"custom": {"level": {"level_desc": "dense", "rank": 0}}}"#, "[2]", 2, "float64", ""),
            Code::E0803,
        ),
        (
            descriptor_text(
                r#"{"custom": {"transpose": [0, 0], "level": {"level_desc": "dense", "rank": 2, "level": {"level_desc": "element"}}}}"#,
                "[2, 2]",
                2,
                "float64",
                "",
            ),
            Code::E0803,
        ),
        (csr("[2, 2]", 2, "float64", "").replace("0.1", "7.0"), Code::E0809),
    ] {
        let error = read(&archive(&json, &good())).unwrap_err();
        assert_eq!(error.code, code, "{}: {error}", &json[..json.len().min(200)]);
        assert!(!error.help.is_empty() && error.place.is_some(), "{error}");
    }
    let dense = descriptor_text("\"DVEC\"", "[1000000000000]", 1_000_000_000_000, "iso[float64]", "");
    assert_eq!(read(&archive(&dense, &[("values", floats(&[1.0]))])).unwrap_err().code, Code::E0809);
    let negative =
        [("pointers_to_1", integers(&[0, 1, 2])), ("indices_1", integers(&[0, -1])), ("values", floats(&[1.0, 2.0]))];
    assert_eq!(read(&archive(&csr("[2, 2]", 2, "float64", ""), &negative)).unwrap_err().code, Code::E0810);
    assert_eq!(read(b"no archive").unwrap_err().code, Code::E0810);
}
