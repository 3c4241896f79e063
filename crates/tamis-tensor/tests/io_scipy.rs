//! Written files are read by SciPy and NumPy, if they are installed.

use std::process::Command;
use tamis_ir::{DType, Format, Value};
use tamis_tensor::io::{Symmetry, WriteOptions, write};
use tamis_tensor::{Tensor, ValueArray};

const SCRIPT: &str = r#"
import sys, pathlib, numpy as np, scipy.io, scipy.sparse as sp
a = np.array([[1, 0, 2, 0], [0, 0, 3, 0], [2, 3, 4, 5], [0, 0, 5, 0]])
count = 0
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    stem, dtype = path.name.split(".")[0].rsplit("-", 1)
    if path.name.endswith(".npy"):
        found = np.load(path)
        assert found.dtype == dtype, (path, found.dtype)
    elif path.name.endswith(".npz"):
        found = sp.load_npz(path)
        assert found.dtype == dtype, (path, found.dtype)
        if found.ndim == 2:
            assert found.format == stem.split("_")[0], (path, found.format)
        found = found.toarray()
    else:
        found = scipy.io.mmread(path)
        found = found.toarray() if sp.issparse(found) else found
    expected = a.astype(dtype)
    if found.ndim == 3:
        expected = expected.reshape(2, 2, 4)
    if found.ndim == 1:
        expected = expected.reshape(16)
    assert found.shape == expected.shape and (found == expected).all(), (path, found)
    count += 1
print(count)
"#;

#[test]
fn scipy_reads_what_is_written() {
    let installed =
        Command::new("python3").args(["-c", "import numpy, scipy.io, scipy.sparse as s; s.coo_array"]).output();
    if !installed.is_ok_and(|o| o.status.success()) {
        // Not `eprintln!`, which is only shown for failing tests.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("NOT TESTED: python3 with scipy is not installed\n"),
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let numbers = [1i64, 0, 2, 0, 0, 0, 3, 0, 2, 3, 4, 5, 0, 0, 5, 0].map(Value::I64);
    let mut count = 0;
    let mut save = |name: String, tensor: &Tensor, options: &WriteOptions| {
        write(directory.path().join(&name), tensor, options).unwrap_or_else(|d| panic!("{name}: {}", d.render(false)));
        count += 1;
    };
    let plain = WriteOptions::default();
    for (dtype, name) in [
        (DType::Bool, "bool"),
        (DType::I8, "int8"),
        (DType::I32, "int32"),
        (DType::I64, "int64"),
        (DType::U16, "uint16"),
        (DType::U64, "uint64"),
        (DType::F32, "float32"),
        (DType::F64, "float64"),
        (DType::C64, "complex64"),
        (DType::C128, "complex128"),
    ] {
        let values = ValueArray::from_values(&numbers, dtype);
        let zero = Value::zero(dtype);
        for format in ["csr", "csc", "coo", "dense"] {
            let tensor = Tensor::from_dense(&[4, 4], values.clone(), &Format::parse(format, 2).unwrap(), zero).unwrap();
            let stem = if format == "dense" { "csr_dense" } else { format };
            save(format!("{stem}-{name}.npz"), &tensor, &plain);
            save(format!("{stem}_stored-{name}.npz"), &tensor, &WriteOptions { compress: false, ..plain.clone() });
            save(format!("{stem}-{name}.npy"), &tensor, &plain);
            save(format!("{stem}-{name}.mtx"), &tensor, &plain);
            save(format!("{stem}_gz-{name}.mtx.gz"), &tensor, &plain);
            if format == "csr" {
                let options = WriteOptions { symmetry: Symmetry::Symmetric, ..plain.clone() };
                save(format!("{stem}_symmetric-{name}.mtx"), &tensor, &options);
            }
        }
        for shape in [vec![16], vec![2, 2, 4]] {
            let rank = shape.len();
            let tensor = Tensor::from_dense(&shape, values.clone(), &Format::coo(rank), zero).unwrap();
            save(format!("coo_{rank}-{name}.npz"), &tensor, &plain);
            save(format!("coo_{rank}-{name}.npy"), &tensor, &plain);
        }
    }
    let output = Command::new("python3").arg("-c").arg(SCRIPT).arg(directory.path()).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out.trim(), count.to_string(), "{error}");
}
