//! Kernels are reused for other sizes exactly when they are the same: programs whose
//! specialisations agree have equal kernels.

use tamis_compiler::lower::ParamLayout;
use tamis_compiler::pipeline::{self, Options, Specialisation};
use tamis_ir::{Format, Program, Value, interp};
use tamis_tensor::{Combine, Coordinates, Tensor, ValueArray};

/// A tensor without entries.
fn empty(shape: &[u64], format: &str) -> Tensor {
    let columns = vec![Vec::<u64>::new().into(); shape.len()];
    let values = ValueArray::from_values(&[], tamis_ir::DType::F64);
    let entries = Coordinates { shape: shape.to_vec(), columns, values };
    let format = Format::parse(format, shape.len()).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
}

/// The specialisation of the kernel, and the kernel as text.
fn compiled(text: &str, tensors: &[Tensor]) -> (Specialisation, String) {
    let program = Program::parse(text).unwrap();
    let types: Vec<_> = tensors.iter().map(|tensor| interp::param_type(tensor)).collect();
    let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
    let compilation = pipeline::compile(&program, &types, &layouts, Options::default()).unwrap();
    (Specialisation::of(&program, &compilation.checked, &layouts), compilation.lowered.kernel.to_string())
}

const SPMV: &str =
    "def f(A, x):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";
const BLUR: &str =
    "def f(x, w):\n    y = tensor('dense')\n    for i, k in _:\n        y[i] += x[i+k] * w[k]\n    return y\n";
const SHIFT: &str = "def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i-1] * x[i+1]\n    return s\n";
const BOUNDED: &str =
    "def f(x):\n    y = tensor('dense')\n    for i in range(2, x.shape[0]):\n        y[i] = x[i-2]\n    return y\n";
const SAME: &str =
    "def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += coalesce(x[~(i-1)], 0)\n    return s\n";
const EDGES: &str = "def f(x):\n    y = tensor('sparse')\n    for i in _:\n        y[i] = x[i] + coalesce(x[~(i-1)], 1)\n    return y\n";

/// A filter of 3 x 3 in the windows that a condition keeps inside.
fn guarded(rows: &str, columns: &str) -> String {
    let loops = "    for i in range(9):\n        for j in range(9):\n            for k in range(3):\n                for l in range(3):\n";
    format!(
        "def f(A):\n    O = tensor('dense', shape=(9, 9))\n{loops}                    if {rows} and {columns}:\n                        O[i,j] += A[i+k-1,j+l-1]\n    return O\n"
    )
}

/// Bounds as sizes serve every size that is not small; a number serves its size, or all above it.
#[test]
fn kernels_of_guarded_windows_know_the_sizes_they_rely_on() {
    let bounds = ("0 <= i+k-1 and i+k-1 < A.shape[0]", "0 <= j+l-1 and j+l-1 < A.shape[1]");
    let (sizes, numbers) = (guarded(bounds.0, bounds.1), guarded("0 <= i+k-1 < 8", "2 <= j+l-1 < 7"));
    let matrix = |m, n| vec![empty(&[m, n], "dcsr")];
    for (text, first, second, shared) in [
        (&sizes, matrix(9, 9), matrix(90, 12), true),
        (&sizes, matrix(9, 9), matrix(2, 9), false),
        (&numbers, matrix(9, 9), matrix(90, 12), true),
        (&numbers, matrix(8, 9), matrix(9, 9), false),
        (&numbers, matrix(9, 7), matrix(9, 9), false),
        (&numbers, matrix(7, 9), matrix(9, 9), false),
    ] {
        let ((a, x), (b, y)) = (compiled(text, &first), compiled(text, &second));
        assert_eq!(a == b, shared, "{text}\n{a:?}\n{b:?}");
        assert!(!shared || x == y, "{text}\n{x}\n{y}");
    }
}

#[test]
fn equal_specialisations_have_equal_kernels() {
    // A program, two sets of shapes, and whether one kernel serves both.
    let vectors = |sizes: &[u64]| -> Vec<Tensor> { sizes.iter().map(|n| empty(&[*n], "dense")).collect() };
    let matrix = |m, n| vec![empty(&[m, n], "csr"), empty(&[n], "dense")];
    let blocks = |m, n| vec![empty(&[m, n], "bsr(2,3)"), empty(&[n], "dense")];
    let table: Vec<(&str, Vec<Tensor>, Vec<Tensor>, bool)> = vec![
        (SPMV, matrix(3, 4), matrix(100, 7), true),
        (SPMV, matrix(3, 4), matrix(1, 0), true),
        (SPMV, blocks(4, 6), blocks(100, 9), true),
        (SPMV, blocks(5, 7), blocks(101, 11), true),
        (SPMV, blocks(4, 6), blocks(5, 6), false),
        (SPMV, blocks(4, 6), blocks(4, 7), false),
        (SPMV, blocks(5, 7), blocks(5, 2), false),
        (BLUR, vectors(&[10, 3]), vectors(&[99, 3]), true),
        (SHIFT, vectors(&[10]), vectors(&[10]), true),
        (SHIFT, vectors(&[10]), vectors(&[11]), false),
        (SHIFT, vectors(&[10]), vectors(&[2]), false),
        (BOUNDED, vectors(&[10]), vectors(&[11]), true),
        (EDGES, vectors(&[10]), vectors(&[12]), true),
        (EDGES, vectors(&[2]), vectors(&[1]), true),
        (EDGES, vectors(&[3]), vectors(&[4]), false),
        (SAME, vectors(&[10]), vectors(&[10]), true),
        (SAME, vectors(&[10]), vectors(&[12]), false),
    ];
    for (text, first, second, shared) in &table {
        let ((a, x), (b, y)) = (compiled(text, first), compiled(text, second));
        assert_eq!(a == b, *shared, "{text}\n{a:?}\n{b:?}");
        assert_eq!(x == y, *shared, "{text}\n{x}\n{y}");
    }
}

/// Positions and coordinates of results take 64 bits where 32 do not suffice.
#[test]
fn wide_shapes_are_others() {
    let text = "def f(x, w):\n    A = tensor('dense, dense')\n    for i, j in _:\n        A[i,j] = x[i] * w[j]\n    return A\n";
    let program = Program::parse(text).unwrap();
    let of = |m, n| {
        let tensors = [empty(&[m], "sparse"), empty(&[n], "sparse")];
        let types: Vec<_> = tensors.iter().map(|tensor| interp::param_type(tensor)).collect();
        let layouts: Vec<ParamLayout> = tensors.iter().map(ParamLayout::of).collect();
        Specialisation::of(&program, &program.check(&types).unwrap(), &layouts)
    };
    assert_eq!(of(3, 5), of(1000, 1000));
    assert_ne!(of(3, 5), of(1 << 20, 1 << 20), "more cells than 32 bits count");
    assert_eq!(of(1 << 20, 1 << 20), of(1 << 21, 1 << 22));
    assert_ne!(of(1, 1 << 33), of(1 << 20, 1 << 20), "coordinates of more than 32 bits");
}
