//! Interoperability with `ndarray` and `sprs`: round trips, layouts, value types and errors.
//!
//! `cargo test -p tamis --features ndarray,sprs --test interop` runs these tests.

use tamis::diagnostic::Code;
use tamis::interop::ndarray::{Array2, Array3, ArrayD, Axis, array, s};
use tamis::interop::sprs::{CsMat, CsMatI, TriMat};
use tamis::prelude::*;

#[test]
fn dense_arrays_keep_their_elements_in_any_layout() {
    let plain = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as f64);
    let reversed = plain.clone().reversed_axes();
    let mut inverted = plain.clone();
    inverted.invert_axis(Axis(1));
    let sliced = plain.clone().slice_move(s![1.., .., 1..3]);
    for array in [plain, reversed, inverted, sliced] {
        let tensor = Tensor::try_from(array.clone()).unwrap();
        assert!(tensor.shape().iter().zip(array.shape()).all(|(a, b)| *a == *b as u64));
        for ((i, j, k), value) in array.indexed_iter() {
            assert_eq!(tensor.get(&[i as u64, j as u64, k as u64]), Some(Value::F64(*value)));
        }
        assert_eq!(ArrayD::<f64>::try_from(&tensor).unwrap(), array.into_dyn());
    }
}

#[test]
fn a_row_major_array_is_moved() {
    let array = array![[1.0, 2.0], [3.0, 4.0]];
    let before = array.as_ptr();
    let tensor = Tensor::try_from(array).unwrap();
    assert_eq!(tensor.as_slice::<f64>().unwrap().as_ptr(), before);
}

#[test]
fn value_types_are_kept_and_never_cast() {
    let truths = Tensor::try_from(array![true, false]).unwrap();
    assert_eq!(truths.dtype(), DType::Bool);
    let small = Tensor::try_from(array![1i8, -2]).unwrap();
    assert_eq!(ArrayD::<i8>::try_from(&small).unwrap(), array![1i8, -2].into_dyn());
    let d = ArrayD::<i64>::try_from(&small).unwrap_err();
    assert!(d.code == Code::E0709 && !d.help.is_empty(), "{d}");
    let scalar = ArrayD::<f64>::try_from(&Tensor::scalar(2.5.into())).unwrap();
    assert_eq!((scalar.ndim(), scalar.sum()), (0, 2.5));
    let empty = Tensor::try_from(Array2::<f32>::zeros((0, 3))).unwrap();
    assert_eq!(ArrayD::<f32>::try_from(&empty).unwrap().shape(), [0, 3]);
}

#[test]
fn compressed_matrices_keep_their_format() {
    let mut entries = TriMat::new((3, 4));
    entries.add_triplet(0, 3, 1.5);
    entries.add_triplet(2, 0, -2.0);
    entries.add_triplet(2, 3, 4.0);
    for (matrix, format) in [(entries.to_csr::<usize>(), Format::csr()), (entries.to_csc(), Format::csc())] {
        let copied = Tensor::try_from(&matrix.view()).unwrap();
        let tensor = Tensor::try_from(matrix.clone()).unwrap();
        assert!(tensor.same_values(&copied) && *copied.format() == format);
        assert_eq!((tensor.format(), tensor.nnz(), tensor.shape()), (&format, 3, &[3, 4][..]));
        assert_eq!(tensor.get(&[2, 3]), Some(Value::F64(4.0)));
        assert_eq!(CsMat::<f64>::try_from(&tensor).unwrap(), matrix);
    }
    // Other formats become CSR, and slices of a matrix start at position 0.
    let matrix = entries.to_csr::<u32>();
    let rows = Tensor::try_from(&matrix.slice_outer(1..3)).unwrap();
    assert_eq!((rows.shape(), rows.get(&[1, 0])), (&[2, 4][..], Some(Value::F64(-2.0))));
    let dcsr = rows.convert(&Format::parse("dcsr", 2).unwrap()).unwrap();
    let back = CsMat::<f64>::try_from(&dcsr).unwrap();
    assert!(back.is_csr() && back.nnz() == 2);
}

#[test]
fn a_product_runs_on_converted_operands() {
    let a: CsMatI<f64, u32> = CsMatI::eye(3);
    let a = Tensor::try_from(a).unwrap();
    let x = Tensor::try_from(array![1.0, 2.0, 3.0]).unwrap();
    let y = tamis::einsum!("y[i] = A[i,j] * x[j]", A = &a, x = &x).unwrap().into_tensor().unwrap();
    assert_eq!(ArrayD::<f64>::try_from(&y).unwrap(), array![1.0, 2.0, 3.0].into_dyn());
}

#[test]
fn tensors_that_are_no_sparse_matrix_are_diagnostics() {
    let cube = Tensor::try_from(Array3::<f64>::zeros((1, 2, 3))).unwrap();
    let ones = Tensor::from_dense(&[1, 1], vec![2.0].into(), &Format::csr(), 1.0.into()).unwrap();
    for (tensor, code) in [(&cube, Code::E0707), (&ones, Code::E0707)] {
        let d = CsMat::<f64>::try_from(tensor).unwrap_err();
        assert!(d.code == code && !d.help.is_empty(), "{d}");
    }
    let single = ones.convert(&Format::dense(2)).unwrap().cast(DType::F32);
    let zero = Tensor::from_dense(&[1, 1], vec![2.0f32].into(), &Format::csr(), 0f32.into()).unwrap();
    assert_eq!(CsMat::<f64>::try_from(&zero).unwrap_err().code, Code::E0709);
    assert!(CsMat::<f32>::try_from(&single).is_err(), "its fill is 1");
}
