//! Tests of donated memory: results in memory of the caller, and updates in place.

use tamis::compile::OutputSlice;
use tamis::notation::{EinsumOptions, PreparedNotation, einsum_into};
use tamis::{Format, Tensor, Value};
use tamis_tensor::threads::with_threads_always;

const FORMATS: [&str; 8] = ["dense", "csr", "csc", "coo", "dcsr", "bsr(2,2)", "dense, blocks", "hash, hash"];

fn matrix(format: &str) -> Tensor {
    let values: Vec<f64> = (0..24).map(|k| if k % 3 == 1 { 0.0 } else { f64::from(k) - 7.0 }).collect();
    let format = Format::parse(format, 2).unwrap();
    Tensor::from_dense(&[6, 4], values.into(), &format, Value::F64(0.0)).unwrap()
}

fn vector(values: Vec<f64>) -> Tensor {
    Tensor::from_dense(&[values.len() as u64], values.into(), &Format::dense(1), Value::F64(0.0)).unwrap()
}

fn address(tensor: &Tensor) -> *const f64 {
    tensor.values().unwrap().as_slice::<f64>().unwrap().as_ptr()
}

#[test]
fn tensors_are_updated_in_place() {
    for format in FORMATS {
        let a = matrix(format);
        let sums = tamis::einsum("s[i] = A[i,j]", &[("A", &a)], &EinsumOptions::new()).unwrap();
        for (text, by) in [("x[i] += A[i,j]", 1.0), ("x[i] = x[i] - 2 * A[i,j]", -2.0), ("x[i] = A[i,j]", 1.0)] {
            let mut x = vector((0..6).map(f64::from).collect());
            let before = address(&x);
            einsum_into(text, &[("A", &a)], &mut x, &EinsumOptions::new()).unwrap();
            assert_eq!(address(&x), before, "{text} with {format}");
            for i in 0..6u64 {
                let start = if text == "x[i] = A[i,j]" { 0.0 } else { i as f64 };
                let Some(Value::F64(sum)) = sums["s"].get(&[i]) else { panic!() };
                assert_eq!(x.get(&[i]), Some(Value::F64(start + by * sum)), "{text} with {format}");
            }
        }
    }
}

#[test]
fn shared_values_are_copied() {
    let mut x = vector(vec![1.0, 2.0]);
    let other = x.clone();
    einsum_into("x[i] *= 3", &[], &mut x, &EinsumOptions::new()).unwrap();
    assert_eq!((x.to_dense().unwrap(), other.to_dense().unwrap()), (vec![3.0, 6.0].into(), vec![1.0, 2.0].into()));
}

#[test]
fn elements_that_are_read_elsewhere_have_their_old_values() {
    for (text, expected) in [
        ("x[i] = x[i] + x[0]", vec![2.0, 3.0, 4.0]),
        ("x[i] += x[j]", vec![7.0, 8.0, 9.0]),
        ("x[i] = select(x[i] > 1, 0, x[i])", vec![1.0, 0.0, 0.0]),
    ] {
        let mut x = vector(vec![1.0, 2.0, 3.0]);
        einsum_into(text, &[], &mut x, &EinsumOptions::new()).unwrap();
        assert_eq!(x.to_dense().unwrap(), expected.into(), "{text}");
    }
}

#[test]
fn results_are_written_to_slices() {
    let a = matrix("csr");
    let x = vector(vec![1.0, 2.0, 3.0, 4.0]);
    let options = EinsumOptions::new().format("y", Format::dense(1)).format("C", Format::csr());
    let both = PreparedNotation::new("y[i] = A[i,j] * x[j]; C[i,j] = 2 * A[i,j]", &["A", "x"], &[], options).unwrap();
    let wanted = both.call(&[&a, &x], &|_, format| a.convert(format)).unwrap();
    for threads in [1, 3] {
        with_threads_always(threads, || {
            let (mut y, mut c) = ([7.0; 6], [7.0; 24]);
            let places =
                &mut [Some(OutputSlice::new(&mut y, &[6]).unwrap()), Some(OutputSlice::new(&mut c, &[6, 4]).unwrap())];
            let rest = both.call_into(&[&a, &x], &|_, format| a.convert(format), places).unwrap();
            // A sparse result is a tensor.
            assert!(places[0].as_ref().unwrap().is_written() && !places[1].as_ref().unwrap().is_written());
            assert_eq!(rest.names().collect::<Vec<_>>(), ["C"]);
            assert_eq!(wanted["y"].to_dense().unwrap(), y.to_vec().into());
            assert_eq!(c, [7.0; 24]);
        });
    }
    // Places of another type or shape are left alone.
    let mut wrong = [0i32; 6];
    let places = &mut [Some(OutputSlice::new(&mut wrong, &[6]).unwrap()), None];
    let rest = both.call_into(&[&a, &x], &|_, format| a.convert(format), places).unwrap();
    assert_eq!(rest.len(), 2);
}

#[test]
fn mistakes_are_diagnostics() {
    let a = matrix("csr");
    let mut x = vector(vec![0.0; 5]);
    let wrong = einsum_into("x[i] = A[i,j]", &[("A", &a)], &mut x, &EinsumOptions::new()).unwrap_err();
    assert_eq!(wrong.0[0].code.name(), "E0402");
    assert_eq!(x.shape(), [5]);
    let two = einsum_into("x[i] = A[i,j]; y[j] = A[i,j]", &[("A", &a)], &mut x, &EinsumOptions::new()).unwrap_err();
    assert_eq!(two.0[0].code.name(), "E0903");
}
