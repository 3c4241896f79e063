//! Tests of programs of several statements in index notation: reassignment, updates, self-reference
//! and sharing, against an independent dense evaluator. A right-hand side reads the values before
//! its statement.

use std::collections::HashMap;
use tamis::compile::CompileOptions;
use tamis::notation::EinsumOptions;
use tamis::notation::Pins;
use tamis::{Format, Notation, Tensor, Value};
use tamis_tests::lowered;
use tamis_tests::random::Random;
use tamis_tests::statements::{Form, N, Statement, Statements, Term};

const FORMATS: &[&str] = &["dense", "sparse", "hash", "blocks"];

const MATRICES: &[&str] = &["dense", "csr", "csc", "coo", "dcsr"];

fn vector(values: &[f64], format: &str) -> Tensor {
    let format = Format::parse(format, 1).unwrap();
    Tensor::from_dense(&[values.len() as u64], values.to_vec().into(), &format, Value::F64(0.0)).unwrap()
}

fn matrix(values: &[f64], format: &str) -> Tensor {
    let n = values.len().isqrt() as u64;
    let format = Format::parse(format, 2).unwrap();
    Tensor::from_dense(&[n, n], values.to_vec().into(), &format, Value::F64(0.0)).unwrap()
}

fn dense(tensor: &Tensor) -> Vec<f64> {
    let all = tensor.to_dense().unwrap();
    (0..all.len()).map(|k| all.get(k).as_c128().re).collect()
}

fn checked() -> EinsumOptions {
    let compile = CompileOptions { check: true, ..CompileOptions::default() };
    EinsumOptions { compile, ..EinsumOptions::default() }
}

/// The results of a program, by name.
fn computed(text: &str, inputs: &[(&str, &Tensor)]) -> HashMap<String, Vec<f64>> {
    let results = tamis::einsum(text, inputs, &checked());
    let results = results.unwrap_or_else(|d| panic!("{text}: {}", d.render(false)));
    results.into_iter().map(|(name, tensor)| (name, dense(&tensor))).collect()
}

#[test]
fn right_hand_sides_read_the_values_before_their_statement() {
    let (a, c) = ([1.0, 2.0, 3.0], [10.0, 0.0, 30.0]);
    let m = [1.0, 2.0, 0.0, 4.0, 5.0, 6.0, 7.0, 0.0, 9.0];
    // A program, the name of a result, and its values.
    let cases: &[(&str, &str, &[f64])] = &[
        ("T[l]=A[l]; U[l]=T[l]*2; T[l]+=C[l]; V[l]=U[l]+T[l]", "V", &[13.0, 6.0, 39.0]),
        ("T[i,j]=M[i,j]; T[i,j]+=T[j,i]; R[i,j]=T[i,j]", "R", &[2.0, 6.0, 7.0, 6.0, 10.0, 6.0, 7.0, 6.0, 18.0]),
        ("y[i]=A[i]; y[i]+=y[j]; z[i]=y[i]", "z", &[7.0, 8.0, 9.0]),
        ("x[i]=A[i]; x[i]+=x[i]*2", "x", &[3.0, 6.0, 9.0]),
        ("T0[i]=A[i]; T1[i]=T0[i]+C[i]; T0[i]+=T1[i]*3", "T0", &[34.0, 8.0, 102.0]),
        ("A[i] *= 3", "A", &[3.0, 6.0, 9.0]),
        ("A[i] = A[i]*3", "A", &[3.0, 6.0, 9.0]),
        ("A[i] -= C[i]", "A", &[-9.0, 2.0, -27.0]),
        ("A[i] max= M[i,j]", "A", &[2.0, 6.0, 9.0]),
        ("A[i] += M[i,j] * C[j]", "A", &[11.0, 222.0, 343.0]),
        ("A[i] += A[j]; B[i] = A[i]; A[i] = A[i] - A[j]", "A", &[-17.0, -16.0, -15.0]),
        ("M[i,j] += M[j,i]", "M", &[2.0, 6.0, 7.0, 6.0, 10.0, 6.0, 7.0, 6.0, 18.0]),
        ("M[i,i] += A[i]", "M", &[2.0, 2.0, 0.0, 4.0, 7.0, 6.0, 7.0, 0.0, 12.0]),
        ("s = A[i]; s += s; s *= s", "s", &[144.0]),
        ("T[m,k] = M[m,i]*k + M[m,k]", "T", &[1.0, 5.0, 6.0, 4.0, 20.0, 36.0, 7.0, 16.0, 41.0]),
        ("y[i] = A[i] + sum[j](j*j) for j in range(3)", "y", &[6.0, 7.0, 8.0]),
        ("y[i] = M[i,j] * sum[j](j)", "y", &[9.0, 45.0, 48.0]),
        ("y[i] = M[i,j] * max[j](M[i,j])", "y", &[6.0, 90.0, 144.0]),
        ("y[i] = A[i+k] for i in range(2) for k in range(2)", "y", &[3.0, 5.0]),
        ("y[i] = sum[k](coalesce(A[~(i+k)], 0)) for k in range(-1, 2), i in range(3)", "y", &[3.0, 6.0, 5.0]),
        ("y[~(i-1)] = A[i]", "y", &[2.0, 3.0]),
        // An equal reduction is computed once, whatever the order of its indices in each statement.
        (
            "P[j] = sum[i](A[j] * max[k](M[i,k] * M[k,j])); R[i,j] = M[i,j] * max[k](M[i,k] * M[k,j])",
            "R",
            &[8.0, 20.0, 0.0, 168.0, 125.0, 324.0, 441.0, 0.0, 729.0],
        ),
        (
            "t[i,k]=M[i,k]+A[k]; m[i]=max[k](t[i,k]); o[i,k]=t[i,k]-m[i]",
            "o",
            &[-2.0, 0.0, -1.0, -4.0, -2.0, 0.0, -4.0, -10.0, 0.0],
        ),
    ];
    for vectors in ["dense", "sparse", "hash", "runs"] {
        for matrices in ["dense", "csr", "csc", "dcsr", "coo"] {
            let (a, c, m) = (vector(&a, vectors), vector(&c, vectors), matrix(&m, matrices));
            let given = [("A", &a), ("C", &c), ("M", &m)];
            for (text, name, wanted) in cases {
                let notation =
                    Notation::parse_given(&tamis::diagnostic::Source::new("notation", *text), &[], &["A", "C", "M"]);
                let params = notation.unwrap_or_else(|d| panic!("{text}: {d}"));
                let params = params.params();
                let inputs: Vec<_> = given.iter().filter(|(name, _)| params.contains(name)).copied().collect();
                let results = computed(text, &inputs);
                assert_eq!(results.get(*name).map(Vec::as_slice), Some(*wanted), "{text} {vectors} {matrices}");
            }
        }
    }
}

/// Comparisons of indices are structure: only the diagonal is computed.
#[test]
fn comparisons_of_indices_are_masks() {
    let n = 500;
    let (d, e) = (vector(&vec![2.0; n], "dense"), vector(&vec![3.0; n], "dense"));
    let notation = Notation::parse("D[i,j] = d[i] * e[j] * (i == j)").unwrap();
    let plan = tamis::notation::plan(&notation, &[&d, &e], &Pins::default()).unwrap();
    let visits = lowered::count(&plan.program, &[d.clone(), e.clone()], 100_000_000).unwrap();
    assert!(visits < 50 * n as u64, "{visits}: {}", plan.program);
    let results = tamis::einsum("D[i,j] = d[i] * e[j] * (i == j)", &[("d", &d), ("e", &e)], &checked()).unwrap();
    assert_eq!(results[0].nnz(), n);
    assert_eq!(results[0].get(&[7, 7]), Some(Value::F64(6.0)));
    let m = matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "csr");
    assert_eq!(computed("t = M[i,j] * (i == j)", &[("M", &m)])["t"], [15.0]);
    assert_eq!(computed("y[i] = M[i,j] * (j <= i)", &[("M", &m)])["y"], [1.0, 9.0, 24.0]);
    assert_eq!(computed("y[i] = M[i,j] * (j == i + 1)", &[("M", &m)])["y"], [2.0, 6.0, 0.0]);
}

/// An update starts from its target only if the target is defined.
#[test]
fn updates_start_from_defined_targets() {
    let (x, y) = (vector(&[1.0, 2.0], "dense"), vector(&[5.0, 5.0], "dense"));
    assert_eq!(computed("y[i] += x[i]", &[("x", &x)])["y"], [1.0, 2.0]);
    assert_eq!(computed("y[i] += x[i]", &[("x", &x), ("y", &y)])["y"], [6.0, 7.0]);
    // Operands are never modified.
    assert_eq!(dense(&y), [5.0, 5.0]);
}

#[test]
fn mistakes_are_reported() {
    let code = |text: &str| match Notation::parse(text) {
        Ok(_) => panic!("{text} was accepted"),
        Err(d) => d.0[0].code.to_string(),
    };
    assert_eq!(code("T[i] = A[i]; T[i] = B[i]"), "E0114");
    assert_eq!(code("y[i] = x[i]; x[i] = A[i]"), "E0114");
    assert_eq!(code("s = sum[j](j)"), "E0113");
    assert_eq!(code("y[i] = x[i] for k in range(3)"), "E0113");
    assert_eq!(code("y[i] = x[i+k] for k in range(3) for k in range(2)"), "E0113");
    assert_eq!(code("y[i] = x[i] for i"), "E0101");
}

/// The values after the statements so far.
struct DenseModel {
    vectors: HashMap<String, Vec<f64>>,
    matrices: HashMap<String, Vec<f64>>,
}

impl DenseModel {
    fn eval(&self, term: &Term) -> Vec<f64> {
        let x = |name: &String| &self.vectors[name];
        match term {
            Term::Scaled(c, name) => x(name).iter().map(|v| c * v).collect(),
            Term::Product(a, b) => x(a).iter().zip(x(b)).map(|(a, b)| a * b).collect(),
            Term::MatVec(m, transposed, v) => {
                let (m, v) = (&self.matrices[m], x(v));
                let at = |i: usize, j: usize| if *transposed { m[j * N + i] } else { m[i * N + j] };
                (0..N).map(|i| (0..N).map(|j| at(i, j) * v[j]).sum()).collect()
            }
            Term::Total(name) => vec![x(name).iter().sum(); N],
        }
    }
}

/// Random statements over a few names, so that reassignments, updates and self-references are
/// frequent.
#[test]
fn random_programs_agree_with_a_dense_evaluator() {
    let rounds = std::env::var("TAMIS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    for seed in 0..rounds {
        let program = Statements::new(seed);
        let text = program.text();
        let mut random = Random(seed ^ 0xf0);
        let mut model = DenseModel { vectors: HashMap::new(), matrices: HashMap::new() };
        let mut tensors = HashMap::new();
        for (name, values) in &program.operands {
            if *name == "M" {
                tensors.insert(*name, matrix(values, random.pick::<&str>(MATRICES)));
                model.matrices.insert(name.to_string(), values.clone());
            } else {
                tensors.insert(*name, vector(values, random.pick::<&str>(FORMATS)));
                model.vectors.insert(name.to_string(), values.clone());
            }
        }
        for Statement { target, form, terms } in &program.statements {
            let mut value = vec![0.0; N];
            for term in terms {
                model.eval(term).iter().zip(&mut value).for_each(|(x, sum)| *sum += x);
            }
            if let Some(old) = model.vectors.get(target) {
                let sign = if *form == Form::Subtract { -1.0 } else { 1.0 };
                value = old.iter().zip(&value).map(|(x, y)| x + sign * y).collect();
            }
            model.vectors.insert(target.clone(), value);
        }
        let notation = program.notation();
        let inputs: Vec<(&str, &Tensor)> = notation.params().into_iter().map(|name| (name, &tensors[name])).collect();
        let results = computed(&text, &inputs);
        assert!(!results.is_empty(), "{text}");
        for (name, values) in results {
            assert_eq!(values, model.vectors[&name], "{name} of\n{text}");
        }
    }
}

/// Programs grow linearly with the text: a temporary that is read twice is not inlined twice.
#[test]
fn long_programs_grow_linearly() {
    let x = vector(&[1.0, 2.0], "dense");
    // The loop program is about as long as the statements.
    let planned = |text: &str, inputs: &[(&str, &Tensor)]| {
        let notation = Notation::parse(text).unwrap();
        let tensors: Vec<&Tensor> =
            notation.params().iter().map(|name| inputs.iter().find(|(given, _)| given == name).unwrap().1).collect();
        let length = tamis::notation::plan(&notation, &tensors, &Pins::default()).unwrap().program.to_string().len();
        assert!(length < 10 * text.len(), "{length} characters for {}", text.len());
    };
    let chain: Vec<String> = (0..100).map(|k| format!("t{}[i] = t{k}[i]*0.5 + 0.5*t{k}[i]", k + 1)).collect();
    planned(&chain.join("; "), &[("t0", &x)]);
    assert_eq!(computed(&chain.join("; "), &[("t0", &x)])["t100"], [1.0, 2.0]);
    let sum = format!("y[i] = {}", vec!["x[i]"; 1000].join(" + "));
    assert_eq!(computed(&sum, &[("x", &x)])["y"], [1000.0, 2000.0]);
    let many: Vec<String> = (0..300).map(|k| format!("y{k}[i] = x[i] + {k}")).collect();
    assert_eq!(computed(&many.join("; "), &[("x", &x)])["y299"], [300.0, 301.0]);
    // A product of many matrices is contracted pairwise.
    let a = matrix(&[1.0, 1.0, 0.0, 1.0], "csr");
    let names: Vec<String> = (0..40).map(|k| format!("A{k}")).collect();
    let factors: Vec<String> = names.iter().enumerate().map(|(k, name)| format!("{name}[i{k},i{}]", k + 1)).collect();
    let inputs: Vec<(&str, &Tensor)> = names.iter().map(|name| (name.as_str(), &a)).collect();
    let product = format!("P[i0,i40] = {}", factors.join(" * "));
    let results = tamis::einsum(&product, &inputs, &EinsumOptions::default());
    assert_eq!(dense(&results.unwrap_or_else(|d| panic!("{}", d.render(false)))[0]), [1.0, 40.0, 0.0, 1.0]);
    planned(&product, &inputs);
}
