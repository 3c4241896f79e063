//! Tests of updated parameters (copy-in): programs that write their parameters return new tensors,
//! which start as copies.

use tamis::Program;
use tamis::compile::{CompileOptions, Signature};
use tamis_ir::{Code, FormatSpec, Value};
use tamis_tensor::Tensor;
use tamis_tensor::threads::with_threads_always;
use tamis_tests::compare::{close, oracle};
use tamis_tests::convolve::check;
use tamis_tests::counted::count;
use tamis_tests::lowered::{self, Engine};

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|d| panic!("{}", d.render(false)))
}

fn tensor(shape: &[u64], format: &str) -> Tensor {
    let cells = shape.iter().product::<u64>();
    let values: Vec<f64> = (0..cells).map(|k| if k % 3 == 1 { 0.0 } else { ((k * 7) % 11) as f64 - 5.0 }).collect();
    let format = FormatSpec::parse(format).unwrap().with_rank(shape.len()).unwrap();
    Tensor::from_dense(shape, values.into(), &format, Value::F64(0.0)).unwrap()
}

const VECTORS: [&str; 8] = ["dense", "sparse", "hash", "bytemap", "runs", "sparse_runs", "blocks", "band"];
const MATRICES: [&str; 10] = [
    "dense",
    "csr",
    "csc",
    "dcsr",
    "coo",
    "hash, hash",
    "dense, blocks",
    "bsr(2,3)",
    "dense, bytemap",
    "sparse_runs, band",
];

/// Programs over a vector `x`, a matrix `A` and a scalar `c`.
const PROGRAMS: [&str; 14] = [
    "def f(x, A, c):\n    for i in _:\n        x[i] *= c\n    return x\n",
    "def f(x, A, c):\n    for i in _:\n        x[i] = x[i]*c\n    return x\n",
    "def f(x, A, c):\n    for i in _:\n        x[i] = exp(x[i]) - c*x[i]\n    return x\n",
    "def f(x, A, c):\n    for i, j in _:\n        x[i] += A[i,j]\n    return x\n",
    "def f(x, A, c):\n    for i in range(1, 4):\n        x[i] = c\n    return x\n",
    "def f(x, A, c):\n    for i in _:\n        if x[i] > 0:\n            x[i] -= 2*x[i]\n    return x\n",
    "def f(x, A, c):\n    for i, j in _:\n        A[i,j] *= x[i]\n    return A\n",
    "def f(x, A, c):\n    for j, i in _:\n        A[i,j] = A[i,j] + x[i]*c\n    return A\n",
    "def f(x, A, c):\n    for i, j in _:\n        if i <= j:\n            A[i,j] += x[j]\n    return A\n",
    "def f(x, A, c):\n    for i, j in _:\n        A[i,j] *= x[j]\n    for i, j in _:\n        x[i] += A[i,j]\n    return x, A\n",
    "def f(x, A, c):\n    for i in _:\n        x[i] max= c\n    y = tensor(\"dense\")\n    for i, j in _:\n        y[i] += A[i,j]*x[i]\n    return x, y\n",
    "def f(x, A, c):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    for i in _:\n        x[i] = x[i]/s\n    return x, s\n",
    "def f(x, A, c):\n    for i in _:\n        c += x[i]\n    return c\n",
    "def f(x, A, c):\n    for i in _:\n        x[~(i + 2)] += 1\n    return x\n",
];

#[test]
fn every_format() {
    for text in PROGRAMS {
        let program = parse(text);
        for (k, vector) in VECTORS.into_iter().enumerate() {
            for (l, matrix) in MATRICES.into_iter().enumerate() {
                // All pairs of adjacent elements, not all pairs.
                if (k + l) % 4 != 0 {
                    continue;
                }
                let tensors = [tensor(&[6], vector), tensor(&[6, 6], matrix), Tensor::scalar(Value::F64(2.5))];
                let refs: Vec<&Tensor> = tensors.iter().collect();
                let reported = |d: &tamis_ir::Diagnostics| format!("{text}{vector}; {matrix}\n{}", d.render(false));
                let options = CompileOptions { check: true, ..CompileOptions::default() };
                let executable = tamis::compile(&program, &Signature::of(&refs), &options)
                    .unwrap_or_else(|d| panic!("{}", reported(&d)));
                let wanted = oracle(&program, &tensors).unwrap();
                let before: Vec<_> = tensors.iter().map(|t| t.to_dense().unwrap()).collect();
                for threads in [1, 3] {
                    let results = with_threads_always(threads, || executable.call(&refs))
                        .unwrap_or_else(|d| panic!("{}", reported(&d)));
                    for ((name, result), wanted) in results.iter().zip(&wanted) {
                        let got = result.to_dense().unwrap();
                        for (k, wanted) in wanted.iter().enumerate() {
                            let got = got.get(k);
                            assert!(close(*wanted, got, 1e-9), "{text}{vector}; {matrix}: {name}: {wanted} is {got}");
                        }
                        if let Some(given) =
                            refs.iter().position(|t| ["x", "A"].contains(&name) && t.shape() == result.shape())
                        {
                            assert_eq!(result.format(), refs[given].format(), "{text}");
                            assert_eq!(result.dtype(), refs[given].dtype(), "{text}");
                        }
                    }
                }
                let after: Vec<_> = tensors.iter().map(|t| t.to_dense().unwrap()).collect();
                assert!(before == after, "an operand changed\n{text}");
            }
        }
    }
}

/// The type, the fill value and the sizes of the next call are those of its operand.
#[test]
fn types_fills_and_sizes() {
    let program = parse("def f(x):\n    for i in _:\n        x[i] min= 2\n    return x\n");
    let format = FormatSpec::parse("sparse").unwrap().with_rank(1).unwrap();
    let of = |n: usize| {
        let values: Vec<f32> = (0..n).map(|k| if k % 2 == 0 { f32::INFINITY } else { k as f32 }).collect();
        Tensor::from_dense(&[n as u64], values.into(), &format, Value::F32(f32::INFINITY)).unwrap()
    };
    let short = of(5);
    let executable = tamis::compile(&program, &Signature::of(&[&short]), &CompileOptions::default()).unwrap();
    for n in [5, 1, 0, 100] {
        let x = of(n);
        let results = executable.call(&[&x]).unwrap();
        let result = &results["x"];
        assert_eq!((result.shape(), result.dtype(), result.fill()), (x.shape(), x.dtype(), x.fill()));
        for k in 0..n as u64 {
            assert_eq!(
                result.get(&[k]),
                Some(Value::F32((k as f32).min(2.0)).cast(x.dtype())).filter(|_| k % 2 == 1).or(Some(Value::F32(2.0)))
            );
        }
    }
}

/// An element-wise update visits stored elements, and its result has the levels of the operand.
#[test]
fn element_wise_updates_visit_stored_elements() {
    let n = 10_000u64;
    let format = FormatSpec::parse("sparse").unwrap().with_rank(1).unwrap();
    let mut values = vec![0.0; n as usize];
    values[7] = 1.0;
    values[5000] = 2.0;
    let x = Tensor::from_dense(&[n], values.into(), &format, Value::F64(0.0)).unwrap();
    for update in ["x[i] *= 3", "x[i] = x[i]*3 + x[i]", "x[i] = sqrt(x[i])", "x[i] -= x[i]*0.5"] {
        let program = parse(&format!("def f(x):\n    for i in _:\n        {update}\n    return x\n"));
        let visits = lowered::visits(&program, std::slice::from_ref(&x), "i").unwrap();
        assert_eq!(visits, 2, "{update}");
        let result = &tamis::run(&program, &[("x", &x)], &Default::default()).unwrap()[0];
        let (ours, given) = (result.level_arrays(0), x.level_arrays(0));
        let place = |arrays: &tamis::tensor::LevelArrays| tamis_tensor::with_indices!(&arrays.arrays[1].1, a => a.as_ptr() as usize);
        assert_eq!(place(&ours), place(&given), "{update}");
    }
}

/// An element-wise update of a temporary or result visits what it stores, too, and stores no more.
#[test]
fn element_wise_updates_of_declared_tensors_visit_stored_elements() {
    let n = 1000u64;
    let mut values = vec![0.0; n as usize];
    values[7] = 1.0;
    values[500] = 2.0;
    let vector = |format: &str| {
        let format = FormatSpec::parse(format).unwrap().with_rank(1).unwrap();
        Tensor::from_dense(&[n], values.clone().into(), &format, Value::F64(0.0)).unwrap()
    };
    for (update, most) in [("T[l] *= 2", 2)] {
        for format in ["sparse", "hash", "sparse_runs", "blocks", "bytemap", "runs", "band"] {
            for twice in [false, true] {
                let again = if twice { format!("    for l in _:\n        {update}\n") } else { String::new() };
                let text = format!(
                    "def f(A, B):\n    T = tensor(\"{format}\")\n    for i in _:\n        T[i] = A[i]\n    for l in _:\n        {update}\n{again}    y = scalar(0.0)\n    for k in _:\n        y += T[k]\n    return T, y\n"
                );
                for operand in ["sparse", "sparse_runs"] {
                    let tensors = [vector(operand), vector("sparse")];
                    check(&text, &tensors, Engine::Interpreter(1 << 20));
                    check(&text, &tensors, Engine::Native);
                    if ["runs", "band"].contains(&format) {
                        continue;
                    }
                    let counted = count(&parse(&text), &tensors, Engine::Interpreter(1 << 20)).unwrap();
                    let seen = counted.visits("l");
                    assert!(seen <= most, "{seen} visits, not {most}\n{text}");
                }
            }
        }
    }
}

#[test]
fn programs_that_are_rejected() {
    let refused = |text: &str| Program::parse(text).unwrap_err().0[0].code;
    assert_eq!(
        refused("def f(x):\n    y = scalar(0)\n    for i in _:\n        x[i] = 1\n        y += 1\n    return y\n"),
        Code::E0502
    );
    assert_eq!(refused("def f(x):\n    for i in _:\n        x[i] += 1\n    return x, x\n"), Code::E0203);
    assert_eq!(refused("def f(x):\n    return x\n"), Code::E0206);
    // The old values of a sparse operand are lost while it is written; elements of a dense one hold
    // the last write.
    let shifted = parse("def f(x):\n    for i in range(1, 6):\n        x[i] = x[i-1]\n    return x\n");
    let call = |format: &str| tamis::run(&shifted, &[("x", &tensor(&[6], format))], &Default::default());
    assert_eq!(call("sparse").unwrap_err().0[0].code, Code::E0501);
    let first = Some(Value::F64(-5.0));
    assert!((0..6).all(|k| call("dense").unwrap()[0].get(&[k]) == first));
}
