//! Corrupt files: the diagnostic and its line.

use std::io::Write;
use tamis_ir::Code::{self, *};
use tamis_tensor::io::{ReadOptions, read, read_data_from};

/// Name, content, code, line (0: none).
const TABLE: &[(&str, &[u8], Code, u64)] = &[
    // The first line of Matrix Market.
    ("a.mtx", b"", E0803, 1),
    ("a.mtx", b"\n", E0803, 1),
    ("a.mtx", b"1 1 1\n1 1 1\n", E0803, 1),
    ("a.mtx", b"%MatrixMarket matrix coordinate real general\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket tensor coordinate real general\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix sparse real general\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate float general\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real triangular\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general extra\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix array pattern general\n1 1\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate unsigned-integer skew-symmetric\n1 1 0\n", E0803, 1),
    ("a.mtx", b"%%MatrixMarket vector array real symmetric\n1\n1\n", E0803, 1),
    ("a.mtx", b"\xff\xfe%%MatrixMarket matrix\n", E0803, 1),
    // Its line of sizes.
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general", E0803, 1),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n% c\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n% c\n1 1\n", E0803, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n1 1 1 1\n1 1 1\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n-1 1 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n1.5 1 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n1 x 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n9223372036854775808 1 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n99999999999999999999 1 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n2 2 4\n1\n1\n1\n1\n", E0803, 2),
    // The number of its entries.
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", E0804, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n\n2 2 2\n", E0804, 5),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 0\n1 1 1\n", E0804, 3),
    (
        "a.mtx",
        b"%%MatrixMarket matrix coordinate real general\n2 2 1000000000000000000\n1 1 1\n1 2 1\n2 1 1\n",
        E0804,
        2,
    ),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", E0804, 2),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n", E0804, 5),
    ("a.mtx", b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n4\n", E0804, 6),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n9000000000000000000 9000000000000000000\n1\n", E0804, 2),
    ("a.mtx", b"%%MatrixMarket matrix array real symmetric\n9000000000000000000 9000000000000000000\n1\n", E0804, 2),
    // Its entries.
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\nx 1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1,5\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1.0 1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n\n%\n1,2,3\n", E0805, 6),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0x10\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1e\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\r1 1 1\r2 2 2\r", E0803, 2),
    ("a.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 9223372036854775808\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate unsigned-integer general\n2 2 1\n1 1 -1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 2 3\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix array real general\n2 1\n1 2\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 -9223372036854775808\n", E0805, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n-1 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n99999999999999999999999 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n4294967297 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n0 0 1\n1 1 1\n", E0806, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n", E0807, 4),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 3\n2 2 1\n% c\n1 1 1\n2 2 2\n", E0807, 6),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n1 2 1\n", E0807, 4),
    ("a.mtx", b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", E0808, 3),
    ("a.mtx", b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n2 1 1 1\n1 1 1 1\n", E0808, 4),
    ("a.mtx", b"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n1 0\n1 1\n", E0808, 5),
    // FROSTT.
    ("a.tns", b"", E0803, 1),
    ("a.tns", b"# nothing\n\n", E0803, 2),
    ("a.tns", b"1 1 x\n", E0805, 1),
    ("a.tns", b"1 1 1\n1 1 1 1\n", E0805, 2),
    ("a.tns", b"1 1 1\n1 1\n", E0805, 2),
    ("a.tns", b"1 1 1\n2 2 1 # no comments here\n", E0805, 2),
    ("a.tns", b"0 1 1\n", E0806, 1),
    ("a.tns", b"1 1 1\n1 -2 1\n", E0806, 2),
    ("a.tns", b"9223372036854775808 1 1\n", E0806, 1),
    ("a.tns", b"2 1\n3 4\n4 4 1\n", E0806, 3),
    ("a.tns", b"1 1 1\n2 2 2\n1 1 3\n", E0807, 3),
    ("a.tns", b"5\n6\n", E0807, 2),
    ("a.tns", b"3 5\n4 4 4\n1 1 1 1\n", E0804, 1),
    ("a.tns", b"3 1\n4 4 4\n1 1 1 1\n2 2 2 2\n", E0804, 4),
    ("a.tns", b"2 1\n3 9999999999999999999\n1 1 1\n", E0803, 2),
    ("a.tns", b"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", E0809, 1),
    // The Deep Learning Matrix Collection.
    ("a.smtx", b"", E0803, 1),
    ("a.smtx", b"2, 4\n0 2 3\n0 3 1\n", E0803, 1),
    ("a.smtx", b"2, 4, x\n0 2 3\n0 3 1\n", E0803, 1),
    ("a.smtx", b"2, 4, 3\n0 2\n", E0804, 2),
    ("a.smtx", b"2, 4, 3\n0 2 3\n0 3\n", E0804, 3),
    ("a.smtx", b"2, 4, 3\n0 2 3\n0 3 1 1\n", E0804, 3),
    ("a.smtx", b"2, 4, 3\n1 2 3\n0 3 1\n", E0805, 2),
    ("a.smtx", b"2, 4, 3\n0 4 3\n0 3 1\n", E0805, 2),
    ("a.smtx", b"2, 4, 3\n0 2 3\n0 3 x\n", E0805, 3),
    ("a.smtx", b"2, 4, 3\n0 2 3\n0 4 1\n", E0806, 3),
    ("a.smtx", b"2, 4, 3\n0 2 3\n3 3 1\n", E0807, 3),
    ("a.smtx", b"1000000000000000000, 4, 3\n0 2 3\n", E0804, 2),
    // Tables.
    ("a.txt", b"1 2\n3\n", E0805, 2),
    ("a.txt", b"1 2\n3 x\n", E0805, 2),
    ("a.txt", b"1 2\n3 4 5\n", E0805, 2),
    ("a.txt", b"1;2\n", E0805, 1),
    // Images.
    ("a.pbm", b"", E0803, 1),
    ("a.pbm", b"P8 1 1\n1\n", E0803, 1),
    ("a.pgm", b"P6\n1 1\n255\n\x00\x00\x00", E0809, 1),
    ("a.pbm", b"P4\nx 1\n\x00", E0803, 2),
    ("a.pbm", b"P4\n8 1", E0803, 2),
    ("a.pbm", b"P4\n8 2\n\x00", E0804, 1),
    ("a.pbm", b"P4\n8 1\n\x00\x00", E0804, 1),
    ("a.pbm", b"P4\n1000000000000 1000000000000\n\x00", E0804, 1),
    ("a.pgm", b"P5\n2 1\n0\n\x00\x00", E0803, 3),
    ("a.pgm", b"P5\n2 1\n70000\n\x00\x00", E0803, 3),
    ("a.pgm", b"P5\n2 1\n5\n\x00\x06", E0806, 4),
    ("a.pgm", b"P2\n2 1\n5\n1 6\n", E0806, 4),
    ("a.pgm", b"P2\n2 1\n5\n1\n", E0804, 4),
    ("a.pgm", b"P2\n2 1\n5\n1 2\n3\n", E0804, 5),
    ("a.pbm", b"P1\n2 1\n1 2\n", E0805, 3),
    // Arrays.
    ("a.idx", b"", E0803, 0),
    ("a.idx", b"\x00\x01\x08\x01", E0803, 0),
    ("a.idx", b"\x00\x00\x0a\x00", E0803, 0),
    ("a.idx", b"\x00\x00\x08\x01\x00\x00", E0803, 0),
    ("a.idx", b"\x00\x00\x08\x01\x00\x00\x00\x02\x00", E0804, 0),
    ("a.idx", b"\x00\x00\x08\xff", E0809, 0),
    ("a.npy", b"", E0803, 0),
    ("a.npy", b"\x93NUMPY", E0803, 0),
    ("a.npy", b"\x93NUMPY\x09\x00\x00\x00", E0809, 0),
    ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{}", E0803, 0),
    ("a.npy", b"\x93NUMPY\x01\x00\x02\x00{}", E0803, 0),
    ("a.npz", b"", E0810, 0),
    ("a.npz", b"PK\x03\x04 not an archive", E0810, 0),
    // Names.
    ("a.csv", b"1,2\n", E0802, 0),
    ("a", b"1,2\n", E0802, 0),
    ("a.mtx.gz", b"%%MatrixMarket", E0812, 0),
    ("a.mtx.gz", b"", E0812, 0),
    ("a.mtx.gz", b"\x1f\x8b\x08\x00", E0812, 0),
    ("a.mtx.gz", b"\x1f\x8bnonsense that is no gzip", E0812, 0),
];

#[test]
fn each_is_reported_with_code_and_line() {
    assert!(TABLE.len() >= 60);
    let mut wrong = Vec::new();
    for (name, bytes, code, line) in TABLE {
        let shown = String::from_utf8_lossy(bytes);
        match read_data_from(name, bytes, &ReadOptions::default()) {
            Ok(_) => wrong.push(format!("{name} {shown:?} reads")),
            Err(d) => {
                let found = d.place.as_ref().and_then(|p| p.line).unwrap_or(0);
                if (d.code, found) != (*code, *line) {
                    wrong.push(format!("{name} {shown:?} is {} in line {found}, not {code} in {line}", d.code));
                }
                if d.help.is_empty() || d.message.is_empty() || (*code != E0802 && d.place.is_none()) {
                    wrong.push(format!("{name} {shown:?} does not help: {}", d.render(false)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The message, for texts whose code and line alone do not identify the mistake.
fn diagnostic_of(name: &str, text: &str) -> (Code, String, String) {
    let d = match read_data_from(name, text.as_bytes(), &ReadOptions::default()) {
        Ok(data) => panic!("{text:?} reads as {data:?}"),
        Err(d) => d,
    };
    (d.code, d.message.clone(), d.help.join("; "))
}

#[test]
fn a_decimal_beyond_all_numbers_is_not_infinity() {
    let long = "9".repeat(1_000_000);
    let fraction = format!("{}.5", "7".repeat(400));
    for huge in ["1e400", "-1e400", "+1.5d309", "1E+99999999999", "179769313486231590000e289", &fraction, &long] {
        for (name, text) in [
            ("a.mtx", format!("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 {huge}\n")),
            ("a.mtx", format!("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 {huge} 1\n")),
            ("a.mtx", format!("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 {huge}\n")),
            ("a.mtx", format!("%%MatrixMarket matrix array real general\n2 1\n1\n{huge}\n")),
            ("a.tns", format!("1 1 1\n2 2 {huge}\n")),
            ("a.tns", format!("1 1 1.5\n2 2 {huge}\n")),
            ("a.txt", format!("1 2\n3 {huge}\n")),
            ("a.txt", format!("1.5,2\n{huge},3\n")),
        ] {
            let (code, message, help) = diagnostic_of(name, &text);
            let shown: String = text.chars().take(90).collect();
            assert_eq!(code, E0805, "{shown}");
            let start = &huge[..huge.len().min(20)];
            assert!(message.contains(start) && message.contains("largest"), "{shown}: {message}");
            assert!(help.contains("`inf`"), "{shown}: {help}");
        }
    }
    // Special values are read, and an underflow is zero.
    let text = "1 inf\n2 -Infinity\n3 nan\n4 1e-400\n5 1.7976931348623157e308\n6 +inf\n7 INF\n";
    for name in ["a.tns", "a.txt"] {
        read_data_from(name, text.as_bytes(), &ReadOptions::default()).unwrap_or_else(|d| panic!("{d}"));
    }
}

#[test]
fn the_index_that_is_wrong_is_named() {
    let market = |field: &str, line: &str| {
        diagnostic_of("a.mtx", &format!("%%MatrixMarket matrix coordinate {field} general\n9 9 1\n{line}\n")).1
    };
    for (field, value) in [("real", " 1"), ("integer", " 1"), ("complex", " 1 1"), ("pattern", "")] {
        let message = market(field, &format!("1.5 2{value}"));
        assert!(message.contains("`1.5`") && message.contains("the row index"), "{field}: {message}");
        let message = market(field, &format!("1 2.5{value}"));
        assert!(message.contains("`2.5`") && message.contains("the column index"), "{field}: {message}");
        let message = market(field, "1");
        assert!(message.contains("ends") && message.contains("the column index"), "{field}: {message}");
        let message = market(field, &format!("1 x{value}"));
        assert!(message.contains("`x`") && message.contains("the column index"), "{field}: {message}");
    }
    assert!(market("real", "1 2").contains("ends where a real number"));
    assert!(diagnostic_of("a.tns", "1.5 2 3\n").1.contains("index 1"));
    assert!(diagnostic_of("a.tns", "1 2.5 3\n").1.contains("index 2"));
}

#[test]
fn a_ragged_line_is_reported_with_both_lengths() {
    for (text, found, first) in [
        ("1 1 1 5\n# c\n1 1 5\n", "2 indices", "3"),
        ("1 1 1 5\n1 5.5\n", "1 index", "3"),
        ("1 1 5\n1 1 1 2.5\n", "3 indices", "2"),
        ("1 1 5\n7\n", "0 indices", "2"),
        ("5\n1 5\n", "1 index", "0"),
    ] {
        let (code, message, help) = diagnostic_of("a.tns", text);
        assert_eq!(code, E0805, "{text:?}");
        assert_eq!(message, format!("this line has {found}, but the first entry has {first}"), "{text:?}");
        assert!(!help.is_empty());
    }
    // With a header, the header specifies the rank.
    let (_, message, _) = diagnostic_of("a.tns", "3 2\n4 4 4\n1 1 1 5\n1 1 5\n");
    assert_eq!(message, "this line has 2 indices, but the shape 4 x 4 x 4 has 3");
    // A line with another mistake is reported for it.
    assert!(diagnostic_of("a.tns", "1 1 5\n1 1 x 5\n").1.contains("`x 5`"));
}

#[test]
fn an_empty_file_says_how_its_shape_is_given() {
    assert!(diagnostic_of("a.tns", "").2.contains("--shape"));
}

#[test]
fn the_line_is_right_in_any_piece_of_a_large_file() {
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n% c\n200000 1 200000\n");
    for k in 1..=200_000 {
        text += &format!("{k} 1 0.5\n");
    }
    for bad in [1usize, 2, 99_999, 150_000, 200_000] {
        let corrupt = text.replace(&format!("\n{bad} 1 0.5\n"), &format!("\n{bad} 1 zero\n"));
        let d = read_data_from("a.mtx", corrupt.as_bytes(), &ReadOptions::default()).unwrap_err();
        let place = d.place.clone().unwrap();
        assert_eq!((d.code, place.line), (E0805, Some(bad as u64 + 3)));
        assert_eq!(place.excerpt.as_deref(), Some(format!("{bad} 1 zero").as_str()));
    }
    // The first of several mistakes is reported.
    let both = text.replace("\n150000 1 0.5\n", "\nx\n").replace("\n100000 1 0.5\n", "\n0 1 1\n");
    let d = read_data_from("a.mtx", both.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!((d.code, d.place.clone().unwrap().line), (E0806, Some(100_003)));
}

/// A device has no end, and is not read.
#[cfg(target_os = "linux")]
#[test]
fn devices_are_not_files() {
    let directory = tempfile::tempdir().unwrap();
    for (device, name) in [("/dev/zero", "zero.mtx"), ("/dev/zero", "zero.npz.gz"), ("/dev/null", "null.tns")] {
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(device, &link).unwrap();
        let d = read(&link, &ReadOptions::default()).unwrap_err();
        assert_eq!(d.code, E0801, "{name}");
        assert!(d.message.contains("device") && !d.help.is_empty(), "{name}: {d}");
    }
}

#[test]
fn what_the_operating_system_refuses() {
    let directory = tempfile::tempdir().unwrap();
    for (path, code) in [("missing.mtx", E0801), ("directory.mtx", E0801), ("x/missing.tns.gz", E0801)] {
        std::fs::create_dir_all(directory.path().join("directory.mtx")).unwrap();
        let d = read(directory.path().join(path), &ReadOptions::default()).unwrap_err();
        assert_eq!(d.code, code, "{path}");
        assert!(!d.help.is_empty() && d.place.is_some());
    }
    let empty = directory.path().join("empty.mtx");
    std::fs::File::create(&empty).unwrap();
    assert_eq!(read(&empty, &ReadOptions::default()).unwrap_err().code, E0803);
    // Compressed contents without `.gz` in the name are accepted.
    let quiet = directory.path().join("quiet.tns");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"1 1 5\n").unwrap();
    std::fs::write(&quiet, encoder.finish().unwrap()).unwrap();
    assert_eq!(read(&quiet, &ReadOptions::default()).unwrap().nnz(), 1);
}

#[test]
fn a_shape_that_the_file_contradicts() {
    let options = ReadOptions { shape: Some(vec![3, 3]), ..ReadOptions::default() };
    for (name, bytes) in [
        ("a.mtx", &b"%%MatrixMarket matrix coordinate real general\n2 2 0\n"[..]),
        ("a.tns", b"2 0\n2 2\n"),
        ("a.smtx", b"1, 1, 0\n0 0\n"),
        ("a.txt", b"1 2\n"),
        ("a.pbm", b"P1 1 1 1"),
        ("a.idx", b"\x00\x00\x08\x00\x01"),
    ] {
        assert_eq!(read_data_from(name, bytes, &options).unwrap_err().code, E0803, "{name}");
    }
    assert_eq!(read_data_from("a.tns", b"1 1 1\n4 1 1\n", &options).unwrap_err().code, E0806);
    assert_eq!(read_data_from("a.tns", b"1 1 1 1\n", &options).unwrap_err().code, E0805);
    assert_eq!(read_data_from("a.tns", b"1 1 1\n", &options).unwrap().content.shape(), [3, 3]);
}

#[test]
fn nothing_in_a_file_reaches_the_terminal_raw() {
    for (name, bytes) in [
        ("a.mtx", &b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \x1b[31mred\x07\n"[..]),
        ("a.mtx", b"%%MatrixMarket \x1b[2J\n"),
        ("a.tns", b"1 \x1b]0;title\x07 1\n"),
        ("a.pgm", b"P5\n2 1\n5\n\x1b\x06"),
        ("a.txt", b"\x1b[31m\n"),
        ("a.smtx", b"1, 1, 1\n0 1\n\x1b[31m\n"),
    ] {
        let d = read_data_from(name, bytes, &ReadOptions::default()).unwrap_err();
        let shown = d.render(false);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{name} {shown:?}");
    }
}
