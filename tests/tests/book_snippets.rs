//! The Rust of the book, compiled and run: each `rust` block of a page is a part of this file.

use ::tamis::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};

/// The crate, with the files that the pages speak of.
mod tamis {
    pub use ::tamis::*;

    pub mod io {
        pub use ::tamis::io::ReadOptions;

        pub fn read(path: &str, options: &ReadOptions) -> Result<::tamis::Tensor, ::tamis::Diagnostic> {
            ::tamis::io::read(super::super::shelf().join(path), options)
        }
    }
}

/// The README's program is an example of the crate.
#[path = "../../crates/tamis/examples/quickstart.rs"]
mod quickstart;

/// A folder with the matrix of the pages.
fn shelf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

fn operands() -> Result<(Tensor, Tensor), Diagnostic> {
    let a = Tensor::from_dense(&[2, 2], vec![3.0, 0.0, 0.0, 4.0].into(), &Format::csr(), 0.0.into())?;
    let x = Tensor::from_dense(&[2], vec![1.0, 10.0].into(), &Format::dense(1), 0.0.into())?;
    Ok((a, x))
}

#[test]
fn quickstart_runs() -> Result<(), Box<dyn Error>> {
    Ok(quickstart::main()?)
}

#[test]
fn notation() -> Result<(), Box<dyn Error>> {
    {
        let a = tamis::io::read("matrix.mtx", &Default::default())?.convert(&Format::csr())?;
        let y = tamis::einsum!("y[i] = A[i,j] * A[i,j]", A = &a)?.into_tensor()?;
        assert_eq!(y.get(&[1]), Some(Value::F64(16.0)));
    }
    let (a, x) = operands()?;
    let y = tamis::einsum!("y[i] = A[i,j] * x[j]", A = &a, x = &x)?;
    assert_eq!(y["y"].get(&[1]), Some(Value::F64(40.0)));
    Ok(())
}

#[test]
fn derivatives() -> Result<(), Box<dyn Error>> {
    let (a, _) = operands()?;
    let x =
        Tensor::from_dense(&[a.shape()[1]], vec![1.0; a.shape()[1] as usize].into(), &Format::dense(1), 0.0.into())?;
    let inputs = [("A", &a), ("x", &x)];
    let gradients = tamis::grad("L = A[i,j] * x[j]", &["A"], &inputs, &Default::default())?;
    assert_eq!(gradients["A"].nnz(), a.nnz());
    Ok(())
}

#[test]
fn other_crates() -> Result<(), Box<dyn Error>> {
    let a = Tensor::try_from(tamis::interop::sprs::CsMat::<f64>::eye(3))?;
    let b = Tensor::try_from(tamis::interop::ndarray::Array2::<f64>::ones((3, 2)))?;
    let c = tamis::einsum!("C[i,k] = A[i,j] * B[j,k]", A = &a, B = &b)?.into_tensor()?;
    let c = tamis::interop::ndarray::ArrayD::<f64>::try_from(&c)?;
    assert_eq!(c.shape(), [3, 2]);
    Ok(())
}

#[test]
fn results() -> Result<(), Box<dyn Error>> {
    let (a, _) = operands()?;
    let results = tamis::einsum!("rows[i] = A[i,j]; columns[j] = A[i,j]", A = &a)?;
    let first = results["rows"].get(&[0]);
    let [rows, columns]: [Tensor; 2] = results.try_into()?;
    assert_eq!(first, Some(Value::F64(3.0)));
    assert!(rows.same_values(&columns));
    Ok(())
}

#[test]
fn programs() -> Result<(), Box<dyn Error>> {
    let (a, x) = operands()?;
    let program = Program::parse(
        "
def spmv(A, x):
    y = tensor('dense')
    for i, j in _:
        y[i] += A[i,j] * x[j]
    return y
",
    )?;
    let y = tamis::run(&program, &[("A", &a), ("x", &x)], &RunOptions::default())?.into_tensor()?;
    assert_eq!(y.get(&[0]), Some(Value::F64(3.0)));
    let spmv = tamis::compile(&program, &Signature::of(&[&a, &x]), &CompileOptions::default())?;
    let y = spmv.call(&[&a, &x])?.into_tensor()?;
    let text = tamis::explain(&program, &Signature::of(&[&a, &x]), &CompileOptions::default())?.c()?;
    assert_eq!(y.get(&[1]), Some(Value::F64(40.0)));
    assert!(text.contains("y_value"));
    let n = a.shape()[0];
    let mut y = Tensor::from_dense(&[n], vec![0.0; n as usize].into(), &Format::dense(1), 0.0.into())?;
    tamis::notation::einsum_into("y[i] += A[i,j] * x[j]", &[("A", &a), ("x", &x)], &mut y, &Default::default())?;

    let mut values = vec![0.0; n as usize];
    let mut places = [Some(tamis::compile::OutputSlice::new(&mut values, &[n])?)];
    spmv.call_into(&[&a, &x], &mut places)?;
    assert_eq!(y.get(&[1]), Some(Value::F64(40.0)));
    drop(places);
    assert_eq!(values, [3.0, 40.0]);
    Ok(())
}

#[test]
fn schedules() -> Result<(), Box<dyn Error>> {
    let schedule = Schedule::new().reorder(["i", "k", "j"]).split("k", "k0", "k1", 32);
    let options = CompileOptions { schedule, ..CompileOptions::default() };
    assert!(!options.schedule.to_string().is_empty());
    Ok(())
}

#[test]
fn tensors() -> Result<(), Box<dyn Error>> {
    // from coordinates, in any order; equal coordinates are combined as specified, or refused
    let entries = Coordinates {
        shape: vec![3, 4],
        columns: vec![vec![2u32, 0, 0].into(), vec![0u32, 3, 0].into()],
        values: vec![3.0, 2.0, 1.0].into(),
    };
    let a = Tensor::from_coordinates(&entries, &Format::csr(), 0.0.into(), Combine::Sum)?;

    // from dense data; elements that differ from the fill value are stored
    let sparse = Format::parse("sparse", 1)?;
    let x = Tensor::from_dense(&[4], vec![0.0, 1.0, 0.0, 2.0].into(), &sparse, 0.0.into())?;

    // from the arrays of each level: every invariant is checked, nothing is copied
    let levels = vec![a.level_arrays(0), a.level_arrays(1)];
    let b = Tensor::from_parts(&[3, 4], &Format::csr(), levels, a.values().cloned(), 0.0.into())?;
    assert_eq!(x.nnz(), 2);
    assert!(a.same_values(&b));
    Ok(())
}
