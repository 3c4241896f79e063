//! Repeated calls of executables: other sizes, other tensors, several threads, wrong arguments.

use tamis::cache::CacheHit;
use tamis::diagnostic::Code;
use tamis::prelude::*;

const SPMV: &str =
    "def spmv(A, x):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";

const BLUR: &str =
    "def blur(x, w):\n    y = tensor('dense')\n    for i, k in _:\n        y[i] += x[i+k] * w[k]\n    return y\n";

fn vector(n: u64) -> Tensor {
    let values: Vec<f64> = (0..n).map(|k| k as f64).collect();
    Tensor::from_dense(&[n], values.into(), &Format::dense(1), Value::F64(0.0)).unwrap()
}

fn banded(n: u64, format: &Format) -> Tensor {
    let entries = tamis::gallery::generate(&format!("banded({n}, 1)")).unwrap();
    Tensor::from_coordinates(&entries, format, 0.0.into(), Combine::Error).unwrap()
}

/// True if both hold the same numbers up to rounding: sums may be reassociated.
fn same(a: &Tensor, b: &Tensor) -> bool {
    let close = |a: Value, b: Value| (a.as_c128() - b.as_c128()).norm() <= 1e-12 * (1.0 + b.as_c128().norm());
    a.shape() == b.shape() && a.first_difference(b, &close).unwrap().is_none()
}

fn interpreted(program: &Program, tensors: &[&Tensor]) -> Results {
    let options = CompileOptions { interpret: true, ..CompileOptions::default() };
    tamis::compile(program, &Signature::of(tensors), &options).unwrap().call(tensors).unwrap()
}

fn compiled(text: &str, tensors: &[&Tensor]) -> Executable {
    let executable =
        tamis::compile(&Program::parse(text).unwrap(), &Signature::of(tensors), &CompileOptions::default()).unwrap();
    assert!(executable.kernel().is_some(), "{:?}", executable.build().interpreted);
    executable
}

#[test]
fn sizes_change_from_call_to_call() {
    let executable = compiled(SPMV, &[&banded(5, &Format::csr()), &vector(5)]);
    // More sizes than an executable keeps, each twice.
    for n in (1..40).chain(1..40) {
        let (a, x) = (banded(n, &Format::csr()), vector(n));
        let (found, expected) = (executable.call(&[&a, &x]).unwrap(), interpreted(executable.program(), &[&a, &x]));
        assert!(same(&found[0], &expected[0]), "{n}");
    }
}

/// Extents that no dimension states are constants of the kernel, which is made anew when they
/// change.
#[test]
fn constants_of_the_kernel_change_with_the_sizes() {
    let executable = compiled(BLUR, &[&vector(10), &vector(3)]);
    for (n, m) in [(10, 3), (20, 3), (20, 7), (10, 3), (7, 7), (100, 1), (5, 3), (2, 3), (1, 3), (2, 5), (0, 7), (3, 3)]
    {
        let (x, w) = (vector(n), vector(m));
        let (found, expected) = (executable.call(&[&x, &w]).unwrap(), interpreted(executable.program(), &[&x, &w]));
        // A filter that does not fit has no place: one element too short or more, the result is
        // empty.
        assert_eq!(found[0].shape(), [(n + 1).saturating_sub(m)]);
        assert!(same(&found[0], &expected[0]), "{n} {m}");
    }
}

/// The value of a number that only takes part in arithmetic may change freely; one that is a bound
/// changes what is inferred.
#[test]
fn numbers_change_from_call_to_call() {
    let scale = compiled(
        "def f(x, s):\n    y = tensor('dense')\n    for i in _:\n        y[i] = s * x[i]\n    return y\n",
        &[&vector(3), &Tensor::scalar(2i64.into())],
    );
    for s in [2i64, 3, -1, 2] {
        let results = scale.call(&[&vector(3), &Tensor::scalar(s.into())]).unwrap();
        assert_eq!(results[0].get(&[2]), Some(Value::F64(2.0 * s as f64)));
    }
    let text = "def f(n):\n    y = tensor('dense', shape=(n,))\n    for i in _:\n        y[i] = 2 * i\n    return y\n";
    let program = Program::parse(text).unwrap();
    for n in [3i64, 5, 0, 3] {
        let results = tamis::run(&program, &[("n", &Tensor::scalar(n.into()))], &RunOptions::default()).unwrap();
        assert_eq!(results[0].shape(), [n as u64]);
    }
    let errors = tamis::run(&program, &[("n", &Tensor::scalar((-1i64).into()))], &RunOptions::default()).unwrap_err();
    assert_eq!(errors.0[0].code, Code::E0404, "{errors}");
}

#[test]
fn results_are_new_each_time() {
    let (a, x) = (banded(50, &Format::csr()), vector(50));
    let executable = compiled(SPMV, &[&a, &x]);
    let first = executable.call(&[&a, &x]).unwrap();
    let copy = first[0].to_dense().unwrap();
    // A result is an input of the next call.
    let mut y = first[0].clone();
    for _ in 0..10 {
        y = executable.call(&[&a, &y]).unwrap().into_tensor().unwrap();
    }
    assert!(!y.same_values(&first[0]));
    assert_eq!(first[0].to_dense().unwrap(), copy, "earlier results stay as they were");
}

#[test]
fn several_threads_at_once() {
    let program = Program::parse(SPMV).unwrap();
    let expected: Vec<Tensor> = (1..=8)
        .map(|n| interpreted(&program, &[&banded(10 * n, &Format::csr()), &vector(10 * n)]).into_tensor().unwrap())
        .collect();
    let executable = compiled(SPMV, &[&banded(5, &Format::csr()), &vector(5)]);
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (program, expected, executable) = (&program, &expected, &executable);
            scope.spawn(move || {
                for round in 0..60 {
                    let n = 10 * ((thread + round) % 8 + 1) as u64;
                    let format = if round % 3 == 0 { Format::csc() } else { Format::csr() };
                    let (a, x) = (banded(n, &format), vector(n));
                    let results = match round % 2 {
                        0 => tamis::run(program, &[("x", &x), ("A", &a)], &RunOptions::default()).unwrap(),
                        _ if round % 3 == 0 => continue,
                        _ => executable.call(&[&a, &x]).unwrap(),
                    };
                    assert!(same(&results[0], &expected[(n / 10 - 1) as usize]), "{n}");
                }
            });
        }
    });
}

#[test]
fn tensors_that_it_was_not_compiled_for() {
    let (a, x) = (banded(5, &Format::csr()), vector(5));
    let executable = compiled(SPMV, &[&a, &x]);
    let refused = |tensors: &[&Tensor]| executable.call(tensors).unwrap_err().0.remove(0);
    assert_eq!(refused(&[&a]).code, Code::E0902);
    let table = [
        (banded(5, &Format::csc()), "convert it to `csr`"),
        (a.cast(DType::F32), "cast it to f64"),
        (banded(5, &Format::parse("dense, sparse[u64,u64]", 2).unwrap()), "convert it to `csr`"),
        (
            Tensor::from_dense(&[5, 5], vec![1.0; 25].into(), &Format::csr(), Value::F64(1.0)).unwrap(),
            "compile the program",
        ),
    ];
    for (tensor, help) in table {
        let d = refused(&[&tensor, &x]);
        assert!(d.code == Code::E0907 && d.help.iter().any(|h| h.contains(help)), "{}", d.render(false));
    }
    assert_eq!(refused(&[&a, &vector(6)]).code, Code::E0402);
    // And still does what it was made for.
    assert!(executable.call(&[&a, &x]).is_ok());
}

/// Equal programs share code; diagnostics point into each program's own text.
#[test]
fn diagnostics_point_into_the_text_of_the_caller() {
    let (a, x) = (banded(5, &Format::csr()), vector(5));
    let first = Program::parse(SPMV).unwrap();
    let second = Program::parse(&format!("# moved down\n\n{SPMV}")).unwrap();
    tamis::run(&first, &[("A", &a), ("x", &x)], &RunOptions::default()).unwrap();
    for (program, line) in [(&first, ":4:"), (&second, ":6:")] {
        let errors = tamis::run(program, &[("A", &a), ("x", &vector(6))], &RunOptions::default()).unwrap_err();
        assert!(errors.0[0].code == Code::E0402 && errors.render(false).contains(line), "{}", errors.render(false));
    }
}

/// Subscripts that leave their tensor at run time give the interpreter's diagnostic.
#[test]
fn failures_while_running() {
    let text = "def gather(x, I):\n    y = tensor('dense')\n    for i in _:\n        y[i] = x[I[i]]\n    return y\n";
    let program = Program::parse(text).unwrap();
    let indices = |list: Vec<i64>| {
        Tensor::from_dense(&[list.len() as u64], list.into(), &Format::dense(1), Value::I64(0)).unwrap()
    };
    let run = |list: Vec<i64>, options: RunOptions| {
        tamis::run(&program, &[("x", &vector(3)), ("I", &indices(list))], &options)
    };
    let interpret = RunOptions { interpret: true, ..RunOptions::default() };
    let check = RunOptions { check: true, ..RunOptions::default() };
    for list in [vec![0, 3], vec![-1], vec![2, 1, i64::MAX]] {
        let expected = run(list.clone(), interpret).unwrap_err();
        assert_eq!(expected.0[0].code, Code::E1001);
        assert_eq!(run(list.clone(), RunOptions::default()).unwrap_err(), expected, "{list:?}");
        assert_eq!(run(list.clone(), check).unwrap_err(), expected, "{list:?}");
    }
    assert_eq!(run(vec![2, 0], RunOptions::default()).unwrap()[0].get(&[0]), Some(Value::F64(2.0)));
}

#[test]
fn machine_code_is_made_once() {
    // A program of its own, so that no other test compiles its kernel.
    let text = "def f(A, x):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j] * x[j] + 0.123456789 * A[i,j]\n    return y\n";
    let (a, x) = (banded(5, &Format::csr()), vector(5));
    let found = |text: &str| compiled(text, &[&a, &x]).build().found;
    assert!(matches!(found(text), Some(CacheHit::Miss | CacheHit::OnDisk)));
    assert_eq!(found(text), Some(CacheHit::InMemory));
    // Names do not matter to machine code.
    let renamed = text.replace('A', "matrix").replace("x", "vector").replace("def f", "def g");
    assert_eq!(found(&renamed), Some(CacheHit::InMemory));
    assert!(matches!(found(&text.replace("0.123456789", "0.987654321")), Some(CacheHit::Miss | CacheHit::OnDisk)));
}

#[test]
fn strict_programs_are_exact() {
    let text =
        "def f(A, x):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j] * x[j]\n    return y\n";
    let program = Program::parse(text).unwrap();
    let a = banded(3, &Format::csr());
    let x = Tensor::from_dense(&[3], vec![1.0, 1.0, f64::NAN].into(), &Format::dense(1), Value::F64(0.0)).unwrap();
    let first = |strict| {
        let options = RunOptions { strict, ..RunOptions::default() };
        tamis::run(&program, &[("A", &a), ("x", &x)], &options).unwrap()[0].get(&[0]).unwrap()
    };
    assert!(!first(false).same_number(Value::F64(f64::NAN)), "what is not stored annihilates");
    assert!(first(true).same_number(Value::F64(f64::NAN)), "in strict programs it does not");
}

/// A number that does not fit the width that a format says is an error, whichever way the level is
/// written.
#[test]
fn narrow_numbers_do_not_wrap_around() {
    for (format, rank) in [
        ("sparse[u8,u8]", 1),
        ("hash[u8,u8]", 1),
        ("bytemap[u8,u8]", 1),
        ("sparse[u64,u8]", 1),
        ("sparse[u8,u64]", 1),
        ("dense, sparse[u8,u16]", 2),
        ("(i,j) -> (j,i): dense, sparse[u8,u8]", 2),
        ("dense, bytemap[u8,u8]", 2),
    ] {
        let (access, value) = if rank == 1 { ("y[i]", "x[i]") } else { ("y[0,i]", "x[i]") };
        let shape = if rank == 1 { "" } else { ", shape=(1, x.shape[0])" };
        let text = format!(
            "def f(x):\n    y = tensor('{format}'{shape})\n    for i in _:\n        {access} += {value}\n    return y\n"
        );
        let program = Program::parse(&text).unwrap();
        for n in [200, 300] {
            let text_of = |program: &Program| program.to_string();
            let x = vector(n);
            let result = tamis::run(&program, &[("x", &x)], &RunOptions::default());
            match (n, result) {
                (200, result) => assert!(result.is_ok(), "{}", text_of(&program)),
                (_, Err(errors)) => assert_eq!(errors.0[0].code, Code::E0705, "{}", text_of(&program)),
                (_, Ok(_)) => panic!("{} wraps around", text_of(&program)),
            }
        }
    }
}
