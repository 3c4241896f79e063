//! Compiled programs against the reference interpreter: ranks, formats, value types and kinds of
//! results, with edge data.

use tamis::prelude::*;

/// Checks that both are the same tensor, and hold the same numbers up to rounding.
fn assert_same(what: &str, a: &Results, b: &Results) {
    assert_eq!(a.len(), b.len(), "{what}");
    for ((name, x), (other, y)) in a.iter().zip(b) {
        assert_eq!((name, x.shape(), x.dtype(), x.format()), (other, y.shape(), y.dtype(), y.format()), "{what}");
        assert!(x.fill() == y.fill(), "{what}: {name}");
        let close = |a: Value, b: Value| {
            let (p, q) = (a.as_c128(), b.as_c128());
            a.same_number(b) || (p - q).norm() <= 1e-5 * (1.0 + p.norm())
        };
        assert_eq!(x.first_difference(y, &close).unwrap(), None, "{what}: {name}");
    }
}

/// Runs a program in every way there is, on tensors in the order of its parameters.
fn everywhere(what: &str, program: &Program, tensors: &[&Tensor]) {
    let inputs: Vec<(&str, &Tensor)> =
        program.params.iter().zip(tensors).map(|(id, tensor)| (program.tensor(*id).name.as_str(), *tensor)).collect();
    let run = |options: RunOptions| {
        tamis::run(program, &inputs, &options).unwrap_or_else(|d| panic!("{what} {options:?}\n{}", d.render(false)))
    };
    let expected = run(RunOptions { interpret: true, ..RunOptions::default() });
    assert_same(what, &run(RunOptions::default()), &expected);
    assert_same(what, &run(RunOptions::default()), &expected);
    assert_same(what, &run(RunOptions { check: true, ..RunOptions::default() }), &expected);
}

/// A tensor with some entries, none in the first row; as many as `shape` says.
fn sample(shape: &[u64], format: &str, dtype: DType) -> Tensor {
    let cells: u64 = shape.iter().product();
    let value =
        |k: u64| if k.is_multiple_of(3) || k < shape.last().copied().unwrap_or(0) { 0.0 } else { (k % 7) as f64 - 2.0 };
    let values: Vec<Value> = (0..cells).map(|k| Value::F64(value(k)).cast(dtype)).collect();
    let values = ValueArray::from_values(&values, dtype);
    let format = Format::parse(format, shape.len()).unwrap();
    Tensor::from_dense(shape, values, &format, Value::zero(dtype)).unwrap()
}

const FORMATS: [&[&str]; 4] = [
    &["dense"],
    &["dense", "sparse", "hash", "bytemap", "sparse[u8,u16]"],
    &[
        "dense",
        "csr",
        "csc",
        "dcsr",
        "coo",
        "dense, bytemap",
        "hash, hash",
        "(i,j) -> (j,i): dense, dense",
        "sparse, dense",
    ],
    &[
        "dense",
        "csf",
        "coo",
        "dense, sparse, dense",
        "bytemap, dense, sparse",
        "(i,j,k) -> (k,i,j): dense, sparse, sparse",
    ],
];

#[test]
fn every_rank_and_format() {
    let programs = [
        "def f(A):\n    s = scalar(1.0)\n    s += 2 * A\n    return s\n",
        "def f(A):\n    y = tensor('dense')\n    s = scalar(0.0)\n    for i in _:\n        y[i] = 2 * A[i] + 1\n        s += A[i]\n    return s, y\n",
        "def f(A):\n    y = tensor('dense')\n    t = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j]\n        t[j,i] = A[i,j]\n    return y, t\n",
        "def f(A):\n    y = tensor('dense')\n    for i, j, k in _:\n        y[i,k] += A[i,j,k] * A[i,j,k]\n    return y\n",
    ];
    for (rank, text) in programs.iter().enumerate() {
        let program = Program::parse(text).unwrap();
        for format in FORMATS[rank] {
            for sizes in [[4, 5, 3], [1, 1, 1], [3, 0, 2], [0, 0, 0]] {
                let tensor = sample(&sizes[..rank], format, DType::F64);
                everywhere(&format!("{format} {:?}", &sizes[..rank]), &program, &[&tensor]);
            }
        }
    }
}

#[test]
fn every_value_type() {
    let sum = Program::parse(
        "def f(A, x):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n",
    );
    let any = Program::parse(
        "def f(A, x):\n    y = tensor('dense; element(False)')\n    s = scalar(False)\n    for i, j in _:\n        y[i] |= A[i,j] & x[j]\n        s |= A[i,j]\n    return y, s\n",
    );
    let (sum, any) = (sum.unwrap(), any.unwrap());
    for dtype in DType::ALL {
        for format in ["csr", "dense", "coo"] {
            let (a, x) = (sample(&[6, 5], format, dtype), sample(&[5], "dense", dtype));
            everywhere(&format!("{format} {dtype}"), if dtype == DType::Bool { &any } else { &sum }, &[&a, &x]);
        }
        // Two types at once: the result has the joined one.
        if dtype != DType::Bool {
            let (a, x) = (sample(&[6, 5], "csr", dtype), sample(&[5], "dense", DType::F32));
            everywhere(&format!("{dtype} and f32"), &sum, &[&a, &x]);
        }
    }
}

#[test]
fn fills_and_patterns() {
    let least = "def f(A):\n    y = tensor('dense', fill=inf)\n    for i, j in _:\n        y[i] = min(y[i], A[i,j])\n    return y\n";
    let least = Program::parse(least).unwrap();
    for fill in [0.0, f64::INFINITY, -3.5, f64::NAN] {
        let values: Vec<f64> = (0..12).map(|k| if k % 2 == 0 { fill } else { f64::from(k) }).collect();
        let a = Tensor::from_dense(&[3, 4], values.into(), &Format::csr(), Value::F64(fill)).unwrap();
        everywhere(&format!("fill {fill}"), &least, &[&a]);
    }
    let count = Program::parse("def f(A):\n    n = scalar(0)\n    for i, j in _:\n        n += A[i,j]\n    return n\n")
        .unwrap();
    for format in ["csr; pattern", "coo; pattern", "dense, bytemap; pattern"] {
        let a = sample(&[4, 4], format, DType::Bool);
        everywhere(format, &count, &[&a]);
    }
}

/// Results in formats that differ from how they are computed, and several at once.
#[test]
fn every_format_of_results() {
    for format in FORMATS[2] {
        let text = format!(
            "def f(A):\n    B = tensor('{format}')\n    s = scalar(0.0)\n    for i, j in _:\n        B[i,j] = A[i,j]\n        s += A[i,j]\n    return B, s\n"
        );
        let program = Program::parse(&text).unwrap();
        for input in ["dense", "csr", "dcsr"] {
            let a = sample(&[5, 4], input, DType::F32);
            everywhere(&format!("{input} to {format}"), &program, &[&a]);
        }
    }
}

#[test]
fn the_same_tensor_twice_and_parameters_that_are_not_read() {
    let program = Program::parse(
        "def f(A, B, C):\n    y = tensor('dense')\n    for i in _:\n        for j in range(B.shape[1]):\n            y[i] += A[i,j] * A[i,j]\n    return y\n",
    );
    let program = program.unwrap();
    let a = sample(&[4, 4], "csr", DType::F64);
    everywhere("twice", &program, &[&a, &a, &sample(&[2, 2, 2], "csf", DType::C64)]);
    let program = "def f(A, B):\n    y = tensor('dense')\n    for i, j, k in _:\n        y[i,k] += A[i,j] * B[j,k]\n    return y\n";
    everywhere("squared", &Program::parse(program).unwrap(), &[&a, &a]);
}
