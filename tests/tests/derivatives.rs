//! Tests of derivatives of index notation on tensors: gradients and tangents against central finite
//! differences of the compiled notation, in all formats, for every operator of the table, and for
//! random statements; and the number of visits of a sparse gradient.

use tamis::grad::{Differentiate, described, jvp, vjp};
use tamis::notation::{EinsumOptions, Pins};
use tamis::{Format, Notation, Tensor, Value};
use tamis_ir::algebra::{DType, Kind, TABLE, Ty};
use tamis_tests::lowered;
use tamis_tests::random::Random;

const N: usize = 4;

const MATRICES: &[&str] =
    &["dense", "csr", "csc", "coo", "dcsr", "bsr(2,2)", "sparse, dense", "dense, hash", "dense, blocks"];

const VECTORS: &[&str] = &["dense", "sparse", "hash", "blocks"];

fn tensor(shape: &[usize], values: &[f64], format: &str) -> Tensor {
    let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
    let format = Format::parse(format, shape.len()).unwrap();
    Tensor::from_dense(&shape, values.to_vec().into(), &format, Value::F64(0.0)).unwrap()
}

fn dense(tensor: &Tensor) -> Vec<f64> {
    let all = tensor.to_dense().unwrap();
    (0..all.len()).map(|k| all.get(k).as_c128().re).collect()
}

fn stored(tensor: &Tensor) -> Vec<f64> {
    let values = tensor.values().unwrap();
    (0..values.len()).map(|k| values.get(k).as_c128().re).collect()
}

fn total(text: &str, inputs: &[(&str, &Tensor)]) -> f64 {
    let results = tamis::einsum(text, inputs, &EinsumOptions::new());
    let results = results.unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
    dense(&results["L"])[0]
}

/// The derivative of `L` by each stored value of an operand, by central differences.
fn differences(text: &str, inputs: &[(&str, &Tensor)], name: &str) -> Vec<f64> {
    let (_, operand) = inputs.iter().find(|(known, _)| *known == name).unwrap();
    let values = stored(operand);
    let step = 1e-5;
    let at = |k: usize, by: f64| {
        let mut moved = values.clone();
        moved[k] += by;
        let moved = operand.with_values(moved.into(), operand.fill()).unwrap();
        let inputs: Vec<(&str, &Tensor)> =
            inputs.iter().map(|(n, t)| (*n, if *n == name { &moved } else { *t })).collect();
        total(text, &inputs)
    };
    (0..values.len()).map(|k| (at(k, step) - at(k, -step)) / (2.0 * step)).collect()
}

/// The coordinates and values of what a tensor stores, in the order of its value array.
fn elements(tensor: &Tensor) -> Vec<(Vec<u64>, f64)> {
    let mut numbered =
        tensor.with_values((0..stored(tensor).len()).map(|k| k as f64).collect::<Vec<_>>().into(), tensor.fill());
    let mut found = vec![(Vec::new(), 0.0); stored(tensor).len()];
    let values = stored(tensor);
    numbered.as_mut().unwrap().for_each(&mut |at, k| {
        let k = k.as_c128().re as usize;
        found[k] = (at.to_vec(), values[k]);
    });
    found
}

/// Checks gradients of `L` with respect to operands, and that tangents agree with them.
fn check(text: &str, inputs: &[(&str, &Tensor)], wrt: &[&str]) {
    let options = EinsumOptions::new();
    let one = Tensor::literal(Value::F64(1.0));
    let gradients = vjp(text, wrt, inputs, &[("L", &one)], &options);
    let gradients = gradients.unwrap_or_else(|d| panic!("{}\n{}", shown(text, inputs, wrt), d.render(false)));
    let mut along = 0.0;
    for name in wrt {
        let operand = inputs.iter().find(|(known, _)| known == name).unwrap().1;
        let expected = differences(text, inputs, name);
        for (k, (at, value)) in elements(operand).into_iter().enumerate() {
            // Zeros that are stored are where minima, maxima and `relu` have kinks.
            if value == 0.0 {
                continue;
            }
            let Some(got) = gradients[*name].get(&at) else { continue };
            let (got, wanted) = (got.as_c128().re, expected[k]);
            let scale = 1.0 + wanted.abs();
            assert!(
                (got - wanted).abs() < 1e-4 * scale,
                "{name}{at:?}: {got}, not {wanted}\n{}",
                shown(text, inputs, wrt)
            );
        }
        // Whole blocks are stored, whatever they hold.
        let blocked = operand.format().levels().len() > operand.rank();
        assert!(blocked || gradients[*name].nnz() <= operand.nnz(), "{name} is denser\n{}", shown(text, inputs, wrt));
        along += dense(&gradients[*name]).iter().zip(dense(operand)).map(|(g, x)| g * x).sum::<f64>();
    }
    // The tangent in the direction of the operands themselves.
    let tangents: Vec<(&str, &Tensor)> = inputs.iter().filter(|(name, _)| wrt.contains(name)).copied().collect();
    let tangents = jvp(text, inputs, &tangents, &options);
    let tangents = tangents.unwrap_or_else(|d| panic!("{}\n{}", shown(text, inputs, wrt), d.render(false)));
    let got = dense(&tangents["L"])[0];
    assert!((got - along).abs() < 1e-8 * (1.0 + along.abs()), "{got}, not {along}\n{}", shown(text, inputs, wrt));
}

fn shown(text: &str, inputs: &[(&str, &Tensor)], wrt: &[&str]) -> String {
    let formats: Vec<String> = inputs.iter().map(|(name, t)| format!("{name}: {}", t.format())).collect();
    let notation = tamis::notation::parse(text, inputs);
    let adjoint = notation.and_then(|n| described(Differentiate::new(wrt.iter().copied()), inputs).adjoint(&n));
    format!("{text}\nwith {}\n{}", formats.join(", "), adjoint.map_or_else(|d| d.render(false), |a| a.text))
}

fn number(random: &mut Random) -> f64 {
    (random.below(4000) as f64 - 2000.0) / 1000.0 + 0.000_317
}

fn numbers(random: &mut Random, count: usize, sparse: bool) -> Vec<f64> {
    (0..count).map(|_| if sparse && random.one_in(2) { 0.0 } else { number(random) }).collect()
}

/// The forms of statements, in all formats of a matrix and a vector.
#[test]
fn gradients_agree_with_differences_in_all_formats() {
    let forms = [
        "y[i] = A[i,j] * x[j]; L = y[i] * y[i]",
        "C[i,k] = A[i,j] * A[j,k]; L = C[i,k] * w[i] * w[k]",
        "C[i,k] = A[i,j] * B[j,k]; L = C[i,k] * C[i,k]",
        "X[i,j] = A[i,j] * B[i,k] * B[k,j]; L = X[i,j] * w[j]",
        "D[i] = A[i,j] + B[i,j] + x[i]; L = D[i] * D[i] * w[i]",
        "y[i] = max[j](A[i,j] * w[j]); L = y[i] * w[i]",
        "y[i] = min[j](A[i,j] + x[j]); L = y[i] * w[i]",
        "y[i] = prod[j](A[i,j] + w[j]); L = y[i] * w[i]",
        "y[i] = logaddexp2(A[i,i], x[i]); L = y[i] * y[i]",
        "L = A[i,i] * x[i] + A[0,j] * w[j]",
        "L = sum[i,j](exp(A[i,j]) * w[j])",
        "y[i] = A[i,j] * (j <= i) * x[j]; L = y[i] * y[i]",
        "S[i,j] = A[i,j] * B[i,k] * B[j,k]; P[i,j] = exp(S[i,j]) * A[i,j]; r[i] = P[i,j]; \
         O[i,d] = P[i,j] * B[j,d] / (2 + r[i] * r[i]); L = O[i,d] * w[d] * w[i]",
        "t[i] = A[i,j] * x[j]; t[i] max= w[i]; t[i] *= x[i]; L = t[i] * t[i]",
    ];
    let mut random = Random(11);
    let (a, b) = (numbers(&mut random, N * N, true), numbers(&mut random, N * N, false));
    let (x, w) = (numbers(&mut random, N, true), numbers(&mut random, N, false));
    let (b, w) = (tensor(&[N, N], &b, "dense"), tensor(&[N], &w, "dense"));
    for (k, text) in forms.iter().enumerate() {
        for (f, format) in MATRICES.iter().enumerate() {
            let a = tensor(&[N, N], &a, format);
            let x = tensor(&[N], &x, VECTORS[(k + f) % VECTORS.len()]);
            let all = [("A", &a), ("B", &b), ("x", &x), ("w", &w)];
            let notation = Notation::parse(text).unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
            let params = notation.params();
            let inputs: Vec<(&str, &Tensor)> = all.iter().filter(|(name, _)| params.contains(name)).copied().collect();
            let wrt: Vec<&str> = params.iter().copied().filter(|name| *name != "w").collect();
            check(text, &inputs, &wrt);
        }
    }
}

/// Windows, gathers, updates and permissive reads are transposed.
#[test]
fn subscripts_are_transposed() {
    let mut random = Random(5);
    let i = tensor(&[7], &numbers(&mut random, 7, false), "dense");
    let s = tensor(&[7], &numbers(&mut random, 7, true), "sparse");
    let f = tensor(&[3], &numbers(&mut random, 3, false), "dense");
    let p = Tensor::from_dense(&[4], vec![2i64, 0, 2, 6].into(), &Format::dense(1), Value::I64(0)).unwrap();
    let forms: &[(&str, &[&str])] = &[
        ("O[i] = I[i+k] * F[k]; L = O[i] * O[i]", &["I", "F"]),
        ("O[i] = S[i+k] * F[k]; L = O[i] * O[i]", &["S", "F"]),
        ("O[i+k] += I[i] * F[k]; L = O[i] * O[i]", &["I", "F"]),
        ("O[i] = I[2*i+k] * F[k] for i in range(3); L = O[i] * O[i]", &["I", "F"]),
        ("O[i] = I[p[i]] * I[p[i]]; L = O[i] * O[i]", &["I"]),
        ("O[i] = sum[k](coalesce(I[~(i+k)], 0) * I[i]) for k in range(-1, 2); L = O[i] * O[i]", &["I"]),
        ("O[~(i-1)] = I[i] * I[i]; L = O[i] * O[i]", &["I"]),
        ("O[i] = I[i] * sum[j](j * I[j]); L = O[i] * O[i]", &["I"]),
        ("O[i] = I[i+1] * F[0] for i in range(4); L = O[i] * O[i]", &["I", "F"]),
    ];
    for (text, wrt) in forms {
        let notation = Notation::parse(text).unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
        let params = notation.params();
        let all = [("I", &i), ("S", &s), ("F", &f), ("p", &p)];
        let inputs: Vec<(&str, &Tensor)> = all.iter().filter(|(name, _)| params.contains(name)).copied().collect();
        check(text, &inputs, wrt);
    }
}

/// Every operator with a derivative, on every float type and on complex numbers.
#[test]
fn every_operator_has_its_gradient() {
    for row in TABLE.iter().filter(|row| row.derivative.is_some()) {
        let count = row.arity.0;
        let operands = ["x[i]", "z[i]", "u[i]"][..count].join(", ");
        let text = format!("y[i] = {}({operands}); L = y[i] * w[i]", row.name);
        // Inside of the domains of all functions, away from kinks.
        let (x, z, u) = match row.name {
            "acosh" => ([1.3, 2.1, 4.2], [0.4; 3], [0.3; 3]),
            _ => ([0.31, 0.62, 0.87], [0.55, 0.44, 0.33], [1.5, -0.7, 0.2]),
        };
        let w = tensor(&[3], &[1.0, -2.0, 0.5], "dense");
        let vectors = [tensor(&[3], &x, "dense"), tensor(&[3], &z, "dense"), tensor(&[3], &u, "dense")];
        let names = ["x", "z", "u"];
        let mut inputs: Vec<(&str, &Tensor)> = names.iter().copied().zip(&vectors).take(count).collect();
        inputs.push(("w", &w));
        let zero = |k: usize| row.derivative.and_then(|partial| partial.get(k)).is_some_and(|text| *text == "0");
        let wrt: Vec<&str> = (0..count).filter(|k| !zero(*k)).map(|k| names[k]).collect();
        let takes = |dtype: DType| row.op.type_of(&vec![Ty::strong(dtype); count]);
        if !wrt.is_empty() && takes(DType::F64).is_ok() {
            check(&text, &inputs, &wrt);
        }
        // Also where the derivative on real numbers is zero, as that of `sign` and `imag`.
        let complex = takes(DType::C128).is_ok_and(|types| types.operand.kind() == Kind::Complex);
        if complex && row.name != "select" {
            complex_gradient(row.name, count);
        }
    }
}

/// `dL/d(re z) + i dL/d(im z)` for `L = re(w * f(z))`, as PyTorch has it.
fn complex_gradient(name: &str, count: usize) {
    use num_complex::Complex;
    let points = [Complex::new(0.4, 0.7), Complex::new(-0.3, 0.5)];
    let weights = [Complex::new(0.3, -0.8), Complex::new(1.1, 0.4)];
    let vector = |z: &[Complex<f64>]| {
        Tensor::from_dense(&[z.len() as u64], z.to_vec().into(), &Format::dense(1), Value::C128(Complex::new(0.0, 0.0)))
            .unwrap()
    };
    let operands = ["x[i]", "z[i]"][..count.min(2)].join(", ");
    let text = format!("L = sum[i](real(w[i] * {name}({operands})))");
    let (w, z) = (vector(&weights), vector(&[Complex::new(0.6, 0.2), Complex::new(0.5, -0.9)]));
    let loss = |x: &Tensor| {
        let mut inputs = vec![("w", &w), ("x", x)];
        if count > 1 {
            inputs.push(("z", &z));
        }
        total(&text, &inputs)
    };
    let x = vector(&points);
    let mut inputs = vec![("w", &w), ("x", &x)];
    if count > 1 {
        inputs.push(("z", &z));
    }
    let one = Tensor::literal(Value::F64(1.0));
    let gradient = vjp(&text, &["x"], &inputs, &[("L", &one)], &EinsumOptions::new());
    let gradient = gradient.unwrap_or_else(|d| panic!("{}\n{}", shown(&text, &inputs, &["x"]), d.render(false)));
    for k in 0..points.len() {
        let moved = |by: Complex<f64>| {
            let mut points = points;
            points[k] += by;
            loss(&vector(&points))
        };
        let step = 1e-6;
        let along = |unit: Complex<f64>| (moved(unit * step) - moved(-unit * step)) / (2.0 * step);
        let wanted = Complex::new(along(Complex::new(1.0, 0.0)), along(Complex::new(0.0, 1.0)));
        let got = gradient["x"].get(&[k as u64]).unwrap().as_c128();
        assert!(
            (got - wanted).norm() < 1e-6 * (1.0 + wanted.norm()),
            "{name}: {got}, not {wanted}\n{}",
            shown(&text, &inputs, &["x"])
        );
    }
}

/// Ties share a gradient evenly, also with elements that are not stored.
#[test]
fn ties_are_shared() {
    let a = tensor(&[2, 4], &[1.0, 5.0, 5.0, 0.0, -1.0, 0.0, 0.0, -2.0], "csr");
    let one = Tensor::literal(Value::F64(1.0));
    let text = "y[i] = max[j](A[i,j]); L = y[i]";
    let gradients = vjp(text, &["A"], &[("A", &a)], &[("L", &one)], &EinsumOptions::new()).unwrap();
    assert_eq!(dense(&gradients["A"]), [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

/// Derivatives are index notation, so they have derivatives.
#[test]
fn second_derivatives() {
    let x = tensor(&[3], &[0.3, -0.7, 1.1], "dense");
    let notation = Notation::parse("L = x[i] * x[i] * x[i]").unwrap();
    let first = Differentiate::new(["x"]).adjoint(&notation).unwrap();
    let v = tensor(&[3], &[1.0, 2.0, 3.0], "dense");
    let one = Tensor::literal(Value::F64(1.0));
    let text = format!("{}; H = gx[k] * v[k]", first.text.replace('\n', "; "));
    let inputs = [("x", &x), ("gL", &one), ("v", &v)];
    let second = vjp(&text, &["x"], &inputs, &[("H", &one)], &EinsumOptions::new());
    let second = second.unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    let wanted: Vec<f64> = dense(&x).iter().zip(dense(&v)).map(|(x, v)| 6.0 * x * v).collect();
    assert!(dense(&second["x"]).iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12));
}

/// What a gradient of a sparse operand does is proportional to what the operand stores.
#[test]
fn sparse_gradients_visit_what_is_stored() {
    let n = 2000u64;
    let a = tamis::gallery::generate("banded(2000, 2)").unwrap();
    let a = Tensor::from_coordinates(&a, &Format::csr(), Value::F64(0.0), tamis::tensor::Combine::Error).unwrap();
    let x = tensor(&[n as usize], &vec![1.0; n as usize], "dense");
    let notation = Notation::parse("y[i] = A[i,j] * x[j]").unwrap();
    let adjoint = Differentiate::new(["A"]).patterns(["A"]).adjoint(&notation).unwrap();
    let pattern = a.pattern().unwrap();
    let all = [("A_pattern", &pattern), ("gy", &x), ("x", &x)];
    let made = Notation::parse(&adjoint.text).unwrap();
    let tensors: Vec<&Tensor> =
        made.params().iter().map(|name| all.iter().find(|(known, _)| known == name).unwrap().1).collect();
    let plan = tamis::notation::plan(&made, &tensors, &Pins::default()).unwrap();
    let converted = tamis::notation::converted_operands(&plan, &made, &tensors).unwrap();
    let owned: Vec<Tensor> = converted.into_iter().map(|tensor| tensor.into_owned()).collect();
    let visits = lowered::count(&plan.program, &owned, 100_000_000).unwrap();
    assert!(visits < 4 * (a.nnz() as u64 + n), "{visits} for {} elements\n{}", a.nnz(), plan.program);
    let gradients =
        vjp("y[i] = A[i,j] * x[j]", &["A"], &[("A", &a), ("x", &x)], &[("y", &x)], &EinsumOptions::new()).unwrap();
    assert!(gradients["A"].same_pattern(&a));
}

/// A term of a random statement: a number for each `i`.
fn term(random: &mut Random, known: &[&str]) -> String {
    let mut x = || random.pick(known).to_string();
    let (a, b) = (x(), x());
    match random.below(16) {
        0 => format!("{:?} * {a}[i]", number(random)),
        1 => format!("{a}[i] * {b}[i]"),
        2 => format!("sum[j](M[i,j] * {a}[j])"),
        3 => format!("sum[j](M[j,i] * {a}[j] * {b}[i])"),
        4 => format!("sin({a}[i]) * {b}[i]"),
        5 => format!("tanh({a}[i] - {b}[i])"),
        6 => format!("relu({a}[i])"),
        7 => format!("max({a}[i], 0.4 * {b}[i], w[i])"),
        8 => format!("select({a}[i] > w[i], {a}[i] * {b}[i], {b}[i])"),
        9 => format!("max[j](M[i,j] + {a}[j])"),
        10 => "min[j](M[i,j] * w[j])".to_string(),
        11 => format!("{a}[p[i]] * {b}[i]"),
        12 => format!("coalesce({a}[~(i+1)], 0) * {b}[i]"),
        13 => format!("M[i,i] * {a}[i]"),
        14 => format!("prod[j](M[i,j] + {a}[j])"),
        _ => format!("{a}[i] / (1.5 + {b}[i] * {b}[i])"),
    }
}

/// Random programs of several statements; `TAMIS_ROUNDS` says how many.
#[test]
fn random_statements_agree_with_differences() {
    let rounds = std::env::var("TAMIS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    for seed in 0..rounds {
        let mut random = Random(seed + 77);
        let a = tensor(&[N], &numbers(&mut random, N, true), VECTORS[random.below(VECTORS.len())]);
        let b = tensor(&[N], &numbers(&mut random, N, false), "dense");
        let w = tensor(&[N], &numbers(&mut random, N, false), "dense");
        let m = tensor(&[N, N], &numbers(&mut random, N * N, true), MATRICES[random.below(MATRICES.len())]);
        let index: Vec<i64> = (0..N).map(|_| random.below(N) as i64).collect();
        let p = Tensor::from_dense(&[N as u64], index.into(), &Format::dense(1), Value::I64(0)).unwrap();
        let mut known = vec!["a", "b"];
        let mut lines: Vec<String> = Vec::new();
        for target in ["t", "u", "v"] {
            let terms: Vec<String> = (0..1 + random.below(2)).map(|_| term(&mut random, &known)).collect();
            // The first term determines the extent of `i`.
            lines.push(format!("{target}[i] = 0.3 * w[i] + {}", terms.join(" + ")));
            if random.one_in(3) {
                let op = ["+=", "*=", "min="][random.below(3)];
                lines.push(format!("{target}[i] {op} {}", term(&mut random, &known)));
            }
            known.push(target);
        }
        let last = random.pick(&known[2..]).to_string();
        lines.push(format!("L = sum[i](v[i] * w[i] + {last}[i] * {last}[i] * 0.1)"));
        let text = lines.join("; ");
        let notation = Notation::parse(&text).unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
        let params = notation.params();
        let all = [("a", &a), ("b", &b), ("w", &w), ("M", &m), ("p", &p)];
        let inputs: Vec<(&str, &Tensor)> = all.iter().filter(|(name, _)| params.contains(name)).copied().collect();
        let wrt: Vec<&str> = params.iter().copied().filter(|name| ["a", "b", "M"].contains(name)).collect();
        // A program whose results do not depend on an operand has no gradient.
        let differentiable: Vec<&str> = wrt
            .into_iter()
            .filter(|name| described(Differentiate::new([*name]), &inputs).results(["L"]).adjoint(&notation).is_ok())
            .collect();
        if !differentiable.is_empty() && notation.results().contains(&"L") {
            check(&text, &inputs, &differentiable);
        }
    }
}
