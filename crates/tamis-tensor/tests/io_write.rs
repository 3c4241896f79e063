//! Writers of every kind of file: round trips of tensors of every type and rank.

use num_complex::Complex;
use std::fs;
use std::path::Path;
use tamis_ir::{Code, DType, Format, Kind, Value};

use tamis_tensor::io::{
    FileKind, ReadOptions, Symmetry, WriteOptions, read, read_from, write, write_as, write_file, write_to,
};
use tamis_tensor::{Combine, Coordinates, Tensor, ValueArray};

fn written(kind: FileKind, tensor: &Tensor, options: &WriteOptions) -> Vec<u8> {
    let mut out = Vec::new();
    write_to(kind, &mut out, tensor, options).unwrap_or_else(|d| panic!("{}", d.render(false)));
    out
}

fn back(kind: FileKind, bytes: &[u8], shape: Option<&[u64]>) -> Tensor {
    let options = ReadOptions { shape: shape.map(<[u64]>::to_vec), ..ReadOptions::default() };
    let name = format!("a.{}", kind.extension());
    read_from(&name, bytes, &options)
        .unwrap_or_else(|d| panic!("{}\n{}", d.render(false), String::from_utf8_lossy(bytes)))
}

/// Values at the edges of each type.
fn edges(dtype: DType) -> Vec<Value> {
    let integers = [0i64, 1, -1, 127, -128, 255, 32767, -32768, i64::from(i32::MAX), i64::MIN, i64::MAX];
    match dtype {
        DType::Bool => vec![Value::Bool(true), Value::Bool(true)],
        DType::U64 => vec![Value::U64(0), Value::U64(7), Value::U64(u64::MAX)],
        DType::F32 => [0.1f32, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, f32::INFINITY, f32::NAN, 16_777_217.0]
            .map(Value::F32)
            .to_vec(),
        DType::F64 => [
            0.1,
            -0.0,
            1.0 / 3.0,
            f64::MIN_POSITIVE,
            5e-324,
            f64::MAX,
            f64::NEG_INFINITY,
            f64::NAN,
            9007199254740993.0,
            1e23,
            123456.789,
        ]
        .map(Value::F64)
        .to_vec(),
        DType::C64 => vec![Value::C64(Complex::new(0.1, -0.0)), Value::C64(Complex::new(f32::INFINITY, 1e-45))],
        DType::C128 => vec![Value::C128(Complex::new(0.1, f64::NAN)), Value::C128(Complex::new(-0.0, 1e300))],
        _ => integers.iter().filter_map(|n| Value::I64(*n).cast_exact(dtype)).collect(),
    }
}

/// A vector, a matrix and a cube with the edge values.
fn tensors(dtype: DType) -> Vec<Tensor> {
    let values = edges(dtype);
    let n = values.len() as u64;
    let ramp = |scale: u64| -> Vec<u32> { (0..n).map(|k| (k * scale) as u32).collect() };
    let array = ValueArray::from_values(&values, dtype);
    let zero = Value::zero(dtype);
    let mut out = Vec::new();
    for (shape, columns) in [
        (vec![3 * n], vec![ramp(3)]),
        (vec![n + 2, 2 * n], vec![ramp(1), ramp(2)]),
        (vec![n, 5, n + 1], vec![ramp(1), vec![4; values.len()], ramp(1)]),
    ] {
        let columns = columns.into_iter().map(Into::into).collect();
        let entries = Coordinates { shape: shape.clone(), columns, values: array.clone() };
        let tensor = Tensor::from_coordinates(&entries, &Format::coo(shape.len()), zero, Combine::Error).unwrap();
        out.push(tensor.convert(&Format::dense(shape.len())).unwrap());
        if shape.len() == 2 {
            out.push(tensor.convert(&Format::csr()).unwrap());
            out.push(tensor.convert(&Format::csc()).unwrap());
            out.push(tensor.convert(&Format::parse("dcsr", 2).unwrap()).unwrap());
        }
        out.push(tensor);
    }
    out
}

/// Bits of every value, in order; all NaNs are equal.
fn bits(tensor: &Tensor, dtype: DType) -> Vec<Value> {
    let dense = tensor.to_dense().unwrap();
    let plain = |x: f64| if x.is_nan() { f64::NAN } else { x };
    (0..dense.len())
        .map(|k| match dense.get(k).cast(dtype) {
            Value::F64(x) => Value::F64(plain(x)),
            Value::F32(x) => Value::F32(if x.is_nan() { f32::NAN } else { x }),
            Value::C128(c) => Value::C128(Complex::new(plain(c.re), plain(c.im))),
            other => other,
        })
        .collect()
}

#[test]
fn every_type_and_rank_reads_back_bit_for_bit() {
    for dtype in DType::ALL {
        for tensor in tensors(dtype) {
            let shown = format!("{dtype} {:?} {}", tensor.shape(), tensor.format());
            let expected = bits(&tensor, dtype);
            let numpy = back(FileKind::NumpyArray, &written(FileKind::NumpyArray, &tensor, &Default::default()), None);
            assert_eq!((numpy.dtype(), bits(&numpy, dtype)), (dtype, expected.clone()), "{shown}");
            for compress in [true, false] {
                let options = WriteOptions { compress, ..Default::default() };
                let scipy = back(FileKind::ScipyArchive, &written(FileKind::ScipyArchive, &tensor, &options), None);
                assert_eq!(scipy.dtype(), dtype, "{shown}");
                assert_eq!(scipy.shape(), tensor.shape(), "{shown}");
                // Coordinates that are not stored are +0, so a dense -0 may lose its sign.
                assert!(scipy.same_values(&tensor), "{shown}");
                if !tensor.format().is_all_dense() {
                    assert_eq!(bits(&scipy, dtype), expected, "{shown}");
                }
            }
            if tensor.rank() <= 2 {
                let text = written(FileKind::MatrixMarket, &tensor, &Default::default());
                let market = back(FileKind::MatrixMarket, &text, None);
                assert_eq!(bits(&market, dtype), expected, "{shown}");
                let kind = if dtype == DType::Bool { market.dtype().kind() } else { dtype.kind() };
                assert_eq!(market.dtype().kind(), kind, "{shown}");
                assert_eq!(market.format().is_all_dense(), tensor.format().is_all_dense(), "{shown}");
            }
            if dtype.kind() != Kind::Complex && dtype != DType::U64 {
                for header in [false, true] {
                    let options = WriteOptions { header, ..Default::default() };
                    let text = written(FileKind::Frostt, &tensor, &options);
                    let shape = (!header).then_some(tensor.shape());
                    assert_eq!(bits(&back(FileKind::Frostt, &text, shape), dtype), expected, "{shown}");
                }
            }
        }
    }
}

#[test]
fn scalars_and_empty_tensors() {
    for value in [Value::F64(2.5), Value::I64(-3), Value::U8(7), Value::Bool(true)] {
        let scalar = Tensor::scalar(value);
        for kind in [FileKind::Frostt, FileKind::NumpyArray] {
            for header in [false, true] {
                let text = written(kind, &scalar, &WriteOptions { header, ..Default::default() });
                let found = back(kind, &text, None);
                assert!(found.rank() == 0 && found.same_values(&scalar), "{kind:?} {value}");
            }
        }
        for kind in [FileKind::MatrixMarket, FileKind::ScipyArchive, FileKind::Image] {
            let d = write_to(kind, &mut Vec::new(), &scalar, &Default::default()).unwrap_err();
            assert_eq!(d.code, Code::E0813);
            assert!(d.help[0].contains(".tns"), "{d}");
        }
    }
    for shape in [vec![0u64], vec![0, 5], vec![5, 0], vec![3, 4], vec![0, 0, 0], vec![2, 3, 4]] {
        for format in [Format::coo(shape.len()), Format::dense(shape.len())] {
            let columns = shape.iter().map(|_| Vec::<u32>::new().into()).collect();
            let entries = Coordinates { shape: shape.clone(), columns, values: Vec::<f64>::new().into() };
            let tensor = Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap();
            for kind in [FileKind::Frostt, FileKind::NumpyArray, FileKind::ScipyArchive, FileKind::MatrixMarket] {
                if kind == FileKind::MatrixMarket && shape.len() != 2 {
                    continue;
                }
                let options = WriteOptions { header: true, ..Default::default() };
                let found = back(kind, &written(kind, &tensor, &options), None);
                assert_eq!(found.shape(), shape, "{kind:?} {format}");
                assert!(found.same_values(&tensor), "{kind:?} {shape:?} {format}");
            }
        }
    }
}

#[test]
fn images() {
    for (width, height) in [(1u64, 1u64), (8, 2), (9, 3), (17, 1), (0, 4), (4, 0)] {
        let n = (width * height) as usize;
        let bools: Vec<bool> = (0..n).map(|k| k % 3 == 0).collect();
        let bytes: Vec<u8> = (0..n).map(|k| (k * 37) as u8).collect();
        let words: Vec<u16> = (0..n).map(|k| (k * 7919) as u16).collect();
        for values in [ValueArray::from(bools), bytes.into(), words.into()] {
            let zero = Value::zero(values.dtype());
            let tensor = Tensor::from_dense(&[height, width], values, &Format::dense(2), zero).unwrap();
            let found = back(FileKind::Image, &written(FileKind::Image, &tensor, &Default::default()), None);
            assert_eq!(found.dtype(), tensor.dtype());
            assert_eq!(found.shape(), tensor.shape());
            assert!(found.same_values(&tensor));
        }
    }
}

fn matrix(rows: &[&[f64]]) -> Tensor {
    let shape = [rows.len() as u64, rows[0].len() as u64];
    let values: Vec<f64> = rows.concat();
    Tensor::from_dense(&shape, values.into(), &Format::csr(), Value::F64(0.0)).unwrap()
}

#[test]
fn one_triangle_on_request_if_symmetric() {
    let symmetric = matrix(&[&[1., 2., 0.], &[2., 0., 3.], &[0., 3., 4.]]);
    let skew = matrix(&[&[0., 2., 0.], &[-2., 0., 3.], &[0., -3., 0.]]);
    let neither = matrix(&[&[1., 2., 5.], &[2., 0., 3.], &[0., 3., 4.]]);
    let lopsided = matrix(&[&[1., 2., 0.], &[2., 0., 3.], &[5., 3., 4.]]);
    let wide = matrix(&[&[1., 2., 0.], &[2., 0., 3.]]);
    for (tensor, symmetry, stored) in [
        (&symmetric, Symmetry::Symmetric, Some(4)),
        (&symmetric, Symmetry::Hermitian, Some(4)),
        (&symmetric, Symmetry::General, Some(6)),
        (&skew, Symmetry::SkewSymmetric, Some(2)),
        (&skew, Symmetry::Symmetric, None),
        (&symmetric, Symmetry::SkewSymmetric, None),
        (&neither, Symmetry::Symmetric, None),
        (&lopsided, Symmetry::Symmetric, None),
        (&wide, Symmetry::Symmetric, None),
    ] {
        let options = WriteOptions { symmetry, comments: vec!["two\nlines".to_string()], ..Default::default() };
        let mut out = Vec::new();
        match (write_to(FileKind::MatrixMarket, &mut out, tensor, &options), stored) {
            (Ok(_), Some(stored)) => {
                let text = String::from_utf8(out).unwrap();
                assert!(text.contains(symmetry.name()) && text.contains("% two\n% lines\n"), "{text}");
                assert!(text.contains(&format!("3 3 {stored}\n")), "{text}");
                assert!(back(FileKind::MatrixMarket, text.as_bytes(), None).same_values(tensor));
            }
            (Err(d), None) => assert_eq!(d.code, Code::E0813),
            (result, _) => panic!("{symmetry:?} {result:?}"),
        }
    }
}

#[test]
fn what_a_kind_cannot_hold() {
    let cube = Tensor::from_dense(&[1, 1, 1], vec![1.0].into(), &Format::dense(3), Value::F64(0.0)).unwrap();
    let complex = ValueArray::from(vec![Complex::new(1.0, 2.0)]);
    let complex = Tensor::from_dense(&[1], complex, &Format::dense(1), Value::zero(DType::C128)).unwrap();
    let large = Tensor::from_dense(&[1], vec![u64::MAX].into(), &Format::dense(1), Value::U64(0)).unwrap();
    let filled = Tensor::from_dense(&[2, 2], vec![7.0, 1.0, 7.0, 7.0].into(), &Format::csr(), Value::F64(7.0)).unwrap();
    for (kind, tensor, word) in [
        (FileKind::MatrixMarket, &cube, ".tns"),
        (FileKind::Image, &cube, ".tns"),
        (FileKind::Frostt, &complex, ".mtx"),
        (FileKind::Frostt, &large, ".npz"),
        (FileKind::MatrixMarket, &filled, "dense"),
        (FileKind::Frostt, &filled, "dense"),
        (FileKind::ScipyArchive, &filled, "dense"),
        (FileKind::Dlmc, &cube, ".tns"),
        (FileKind::Idx, &cube, ".npy"),
        (FileKind::Table, &cube, ".npy"),
    ] {
        let d = write_to(kind, &mut Vec::new(), tensor, &Default::default()).unwrap_err();
        assert_eq!(d.code, Code::E0813, "{kind:?}");
        assert!(d.help[0].contains(word), "{kind:?} {d} {:?}", d.help);
    }
    // Every value is stored, so the fill does not matter.
    let dense = filled.convert(&Format::dense(2)).unwrap();
    for kind in [FileKind::MatrixMarket, FileKind::Frostt, FileKind::ScipyArchive, FileKind::NumpyArray] {
        assert!(back(kind, &written(kind, &dense, &Default::default()), None).same_values(&filled), "{kind:?}");
    }
    for kind in [FileKind::NumpyArray, FileKind::Binsparse] {
        assert!(back(kind, &written(kind, &filled, &Default::default()), None).same_values(&filled), "{kind:?}");
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_whole_or_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let a = matrix(&[&[1., 2.], &[0., 3.]]);
    let cube = Tensor::from_dense(&[1, 1, 1], vec![1.0].into(), &Format::dense(3), Value::F64(0.0)).unwrap();
    let names_written = ["a.mtx", "a.mtx.gz", "a.tns", "a.tns.gz", "a.npz", "a.npz.gz", "a.npy", "a.npy.gz"];
    for name in names_written {
        let path = directory.path().join(name);
        write(&path, &a, &WriteOptions::default()).unwrap();
        write(&path, &a, &WriteOptions::default()).unwrap();
        assert!(read(&path, &ReadOptions::default()).unwrap().same_values(&a), "{name}");
        assert_eq!(fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]), name.ends_with(".gz"), "{name}");
    }
    assert_eq!(names(directory.path()).len(), names_written.len());
    // Rejected: the old file stays, and no temporary file is left.
    let path = directory.path().join("a.mtx");
    let before = fs::read(&path).unwrap();
    assert_eq!(write(&path, &cube, &WriteOptions::default()).unwrap_err().code, Code::E0813);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(names(directory.path()).len(), names_written.len());
    for (name, code) in [("no/such/a.mtx", Code::E0811), ("a.xyz", Code::E0802), ("a.pgm", Code::E0813)] {
        let d = write(directory.path().join(name), &a, &WriteOptions::default()).unwrap_err();
        assert_eq!(d.code, code, "{name}");
        assert!(!d.help.is_empty());
    }
    fs::create_dir(directory.path().join("d.mtx")).unwrap();
    let d = write(directory.path().join("d.mtx"), &a, &WriteOptions::default()).unwrap_err();
    assert_eq!(d.code, Code::E0811);
    let grey = Tensor::from_dense(&[1, 1], vec![1u8].into(), &Format::dense(2), Value::U8(0)).unwrap();
    let d = write(directory.path().join("a.pbm"), &grey, &WriteOptions::default()).unwrap_err();
    assert!(d.code == Code::E0813 && d.help[0].contains(".pgm"));
}

#[cfg(unix)]
#[test]
fn links_and_permissions_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real.mtx"), directory.path().join("link.mtx"));
    let a = matrix(&[&[1., 2.], &[0., 3.]]);
    write(&real, &a, &WriteOptions::default()).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, &a, &WriteOptions::default()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    write("/dev/null", &a, &WriteOptions::default()).unwrap_err();
}

/// True if files without a name are supported here.
#[cfg(target_os = "linux")]
fn unnamed_files_work(directory: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    fs::File::options().write(true).custom_flags(libc::O_TMPFILE).open(directory).is_ok()
}

/// A process that is killed while writing leaves nothing behind, because the file has no name until
/// the end.
#[cfg(target_os = "linux")]
#[test]
fn a_file_has_no_name_until_it_is_complete() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    if !unnamed_files_work(directory.path()) {
        // Not `eprintln!`, which is only shown for failing tests.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("SKIPPED: the file system has no files without a name\n"),
        );
        return;
    }
    let path = directory.path().join("a.txt");
    for (round, before) in [vec![], vec!["a.txt".to_string()]].into_iter().enumerate() {
        let text = format!("round {round}");
        let bytes = write_file(&path, &|out| {
            out.write_all(text.as_bytes())?;
            out.flush()?;
            assert_eq!(names(directory.path()), before);
            Ok(())
        });
        assert_eq!(bytes.unwrap(), 7);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(names(directory.path()), ["a.txt"]);
    }
    // A new file has the permissions of any other new file.
    let plain = directory.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
    let d = write_file(&path, &|_| Err(std::io::ErrorKind::StorageFull.into())).unwrap_err();
    assert_eq!((d.code, names(directory.path()).len()), (Code::E0811, 2));
}

/// Standard output and other open files are appended to, not replaced by a file.
#[cfg(target_os = "linux")]
#[test]
fn open_files_are_appended_to() {
    use std::os::fd::AsRawFd;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, "before\n").unwrap();
    let open = fs::File::options().append(true).open(&path).unwrap();
    let scalar = Tensor::scalar(Value::I64(7));
    for folder in ["/dev/fd", "/proc/self/fd"] {
        let name = format!("{folder}/{}", open.as_raw_fd());
        assert_eq!(write_as(FileKind::Frostt, name, &scalar, &Default::default()).unwrap().bytes, 2);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\n7\n7\n");
}

#[test]
fn any_name_will_do_for_an_explicit_kind() {
    let directory = tempfile::tempdir().unwrap();
    let a = matrix(&[&[1., 2.], &[0., 3.]]);
    for (name, gzip) in [("data", false), ("data.bin", false), ("data.gz", true), ("a.tns", false)] {
        let path = directory.path().join(name);
        let written = write_as(FileKind::MatrixMarket, &path, &a, &Default::default()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(written.bytes, bytes.len() as u64, "{name}");
        assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), gzip, "{name}");
        assert_eq!(bytes.starts_with(b"%%Matrix"), !gzip, "{name}");
    }
    assert_eq!(write_as(FileKind::Dlmc, "x", &a, &Default::default()).unwrap_err().code, Code::E0813);
}

#[test]
fn a_shape_that_a_list_of_entries_does_not_tell() {
    let entries = |shape: &[u64], at: &[u64]| {
        let columns = at.iter().map(|i| vec![*i].into()).collect();
        let list = Coordinates { shape: shape.to_vec(), columns, values: vec![1.0].into() };
        Tensor::from_coordinates(&list, &Format::coo(shape.len()), Value::F64(0.0), Combine::Error).unwrap()
    };
    let with_header = WriteOptions { header: true, ..Default::default() };
    // The shape, the only entry, and the shape after a round trip.
    let table: [[&[u64]; 3]; 5] = [
        [&[3, 4], &[2, 3], &[3, 4]],
        [&[3, 4], &[2, 2], &[3, 3]],
        [&[3, 4], &[0, 3], &[1, 4]],
        [&[9], &[7], &[8]],
        [&[2, 2, 2], &[0, 0, 0], &[1, 1, 1]],
    ];
    for [shape, at, read] in table {
        let expected = (read != shape).then_some(read);
        let tensor = entries(shape, at);
        let mut text = Vec::new();
        let reported = write_to(FileKind::Frostt, &mut text, &tensor, &Default::default()).unwrap().reads_back_as;
        assert_eq!(reported.as_deref(), expected, "{shape:?} {at:?}");
        // The reported shape is that of the round trip.
        assert_eq!(back(FileKind::Frostt, &text, None).shape(), read);
        assert_eq!(write_to(FileKind::Frostt, &mut text, &tensor, &with_header).unwrap().reads_back_as, None);
        if shape.len() == 2 {
            let market = write_to(FileKind::MatrixMarket, &mut text, &tensor, &Default::default()).unwrap();
            assert_eq!(market.reads_back_as, None);
        }
    }
    // Without entries there is a header, and a scalar has no shape to lose.
    let nothing = Tensor::from_dense(&[0, 3], Vec::<f64>::new().into(), &Format::coo(2), Value::F64(0.0)).unwrap();
    for tensor in [nothing, Tensor::scalar(Value::F64(0.0))] {
        let written = write_to(FileKind::Frostt, &mut Vec::new(), &tensor, &Default::default()).unwrap();
        assert_eq!(written.reads_back_as, None);
    }
}

/// A writer that fails after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    let a = matrix(&[&[1., 2.], &[0., 3.]]);
    for kind in [FileKind::MatrixMarket, FileKind::Frostt, FileKind::ScipyArchive, FileKind::NumpyArray] {
        let size = written(kind, &a, &Default::default()).len();
        for space in [0, 1, size / 2, size - 1] {
            let d = write_to(kind, &mut Full(space), &a, &Default::default()).unwrap_err();
            assert_eq!(d.code, Code::E0811, "{kind:?} {space}");
        }
        write_to(kind, &mut Full(size), &a, &Default::default()).unwrap();
    }
}

#[test]
fn long_files_are_written_in_order() {
    let n = 300_000u64;
    let values: Vec<f64> = (0..n).map(|k| (k as f64).sqrt()).collect();
    let tensor = Tensor::from_dense(&[n], values.into(), &Format::dense(1), Value::F64(-1.0)).unwrap();
    for kind in [FileKind::MatrixMarket, FileKind::Frostt] {
        let found = back(kind, &written(kind, &tensor, &Default::default()), None);
        assert_eq!(found.to_dense().unwrap(), tensor.to_dense().unwrap());
    }
}
