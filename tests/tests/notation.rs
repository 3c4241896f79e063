//! Tests of index notation: schedules preserve semantics in every format, and the chosen schedule
//! is never much slower than the best.

use tamis::compile::CompileOptions;
use tamis::notation::EinsumOptions;
use tamis::notation::Pins;
use tamis::tensor::{Combine, Coordinates};
use tamis::{Format, Notation, Tensor, Value};
use tamis_tests::lowered;
use tamis_tests::random::Random;

/// Statements, and the shapes of their operands in order: letters are sizes.
const STATEMENTS: &[(&str, &[&str])] = &[
    ("y[i] = A[i,j] * x[j]", &["ij", "j"]),
    ("y[j] = A[i,j] * x[i]", &["ij", "i"]),
    ("s = A[i,j]", &["ij"]),
    ("s = x[i] * y[i]", &["i", "i"]),
    ("y[i] = A[i,j]", &["ij"]),
    ("y[j] = A[i,j]", &["ij"]),
    ("C[i,k] = A[i,j] * B[j,k]", &["ij", "jk"]),
    ("C[i,k] = A[i,j] * B[k,j]", &["ij", "kj"]),
    ("C[i,k] = A[j,i] * B[j,k]", &["ji", "jk"]),
    ("C[k,i] = A[i,j] * B[j,k]", &["ij", "jk"]),
    ("C[i,j] = A[i,j] + B[i,j]", &["ij", "ij"]),
    ("C[i,j] = A[i,j] - B[j,i]", &["ij", "ji"]),
    ("C[i,j] = A[i,j] * B[i,j]", &["ij", "ij"]),
    ("C[i,j] = A[i,j] * B[i,j] + D[i,j]", &["ij", "ij", "ij"]),
    ("C[i,j] = (A[i,j] + B[i,j]) * D[i,j]", &["ij", "ij", "ij"]),
    ("C[i,j] = A[i,j] + B[i,j] + D[i,j]", &["ij", "ij", "ij"]),
    ("C[i,j] = x[i] * y[j]", &["i", "j"]),
    ("C[i,j] = x[i] * A[i,j] * y[j]", &["i", "ij", "j"]),
    ("C[i,j] = x[i] + A[i,j]", &["i", "ij"]),
    ("T[j,i] = A[i,j]", &["ij"]),
    ("X[i,j] = S[i,j] * A[i,k] * B[k,j]", &["ij", "ik", "kj"]),
    ("X[i,j] = S[i,j] * A[i,k] * B[j,k]", &["ij", "ik", "jk"]),
    ("D[i] = A[i,j] + B[i,j] + C[i]", &["ij", "ij", "i"]),
    ("D[i] = C[i] + A[i,j] - B[i,j]", &["i", "ij", "ij"]),
    ("D[i] = 2 * A[i,j] * x[j] + 3 * z[i]", &["ij", "j", "i"]),
    ("y[i] = A[i,j] * x[j] + B[i,k] * z[k]", &["ij", "j", "ik", "k"]),
    ("y[i] = (A[i,j] * x[j]) * (B[i,k] * z[k])", &["ij", "j", "ik", "k"]),
    ("d[i] = min[j](A[i,j] + x[j])", &["ij", "j"]),
    ("d[i] min= A[i,j] + x[j]", &["ij", "j"]),
    ("d[i] = max[j](A[i,j] * x[j])", &["ij", "j"]),
    ("p[i] = prod[j](A[i,j])", &["ij"]),
    ("b[i] = any[j](A[i,j] > 0)", &["ij"]),
    ("b = all[i,j](A[i,j] < 5)", &["ij"]),
    ("y[i] = sqrt(sum[j](A[i,j] * A[i,j]))", &["ij"]),
    ("y[i] = A[i,j] / sum[k](A[i,k] + 1)", &["ij"]),
    ("n = sqrt(sum[i](x[i] * x[i]))", &["i"]),
    ("C[i,j] = exp(A[i,j])", &["ij"]),
    ("C[i,j] = A[i,j] / 2 - 1", &["ij"]),
    ("C[i,j] = max(A[i,j], B[i,j])", &["ij", "ij"]),
    ("C[i,j] = select(A[i,j] > 0, A[i,j], B[i,j])", &["ij", "ij"]),
    ("C[i,j] = A[i,j] * (i + 2 * j)", &["ij"]),
    ("d[i] = A[i,i]", &["ii"]),
    ("t = A[i,i]", &["ii"]),
    ("C[i,j] = A[i,j] + A[j,i]", &["ii"]),
    ("C[i,k] = A[i,j] * A[j,k]", &["ii"]),
    ("C[i,k] = A[j,i] * A[j,k]", &["ij"]),
    ("t = A[i,j] * A[j,k] * A[k,i]", &["ii"]),
    ("y[i] = A[i,j] * B[j,k] * x[k]", &["ij", "jk", "k"]),
    ("y[i] = A[i,j] * B[j,k] * C[k,l] * x[l]", &["ij", "jk", "kl", "l"]),
    ("E[i,l] = A[i,j] * B[j,k] * C[k,l]", &["ij", "jk", "kl"]),
    ("X[i,l] = A[i,j] * B[j,k] * C[k,l] * S[i,l]", &["ij", "jk", "kl", "il"]),
    ("A[i,j] = B[i,k,l] * C[k,j] * D[l,j]", &["ikl", "kj", "lj"]),
    ("A[k,j] = B[i,k,l] * C[i,j] * D[l,j]", &["ikl", "ij", "lj"]),
    ("A[i,j] = B[i,j,k] * x[k]", &["ijk", "k"]),
    ("A[j,k] = B[i,j,k] * x[i]", &["ijk", "i"]),
    ("A[i,j,l] = B[i,j,k] * C[k,l]", &["ijk", "kl"]),
    ("A[i,l,k] = B[i,j,k] * C[j,l]", &["ijk", "jl"]),
    ("A[i,j,k] = B[i,j,k] + C[i,j,k]", &["ijk", "ijk"]),
    ("A[k,i,j] = B[i,j,k]", &["ijk"]),
    ("s = B[i,j,k] * C[i,j,k]", &["ijk", "ijk"]),
    ("A[i,l] = B[i,j,k] * C[j,k,l]", &["ijk", "jkl"]),
    ("C[i,j] = A[i,j] * B[i,j]; y[i] = C[i,j] * x[j]", &["ij", "ij", "j"]),
    ("C[i,k] = A[i,j] * B[j,k]; y[i] = C[i,k] * x[k]", &["ij", "jk", "k"]),
    ("C[i,k] = A[i,j] * B[j,k]; X[i,k] = C[i,k] * S[i,k]", &["ij", "jk", "ik"]),
    ("r[i] = A[i,j]; B[i,j] = A[i,j] / (r[i] + 1)", &["ij"]),
    (
        "P[i,j] = S[i,j] * exp(sum[k](Q[i,k] * K[j,k])); z[i] = P[i,j]; O[i,d] = P[i,j] * V[j,d] / (z[i] + 1)",
        &["ij", "ik", "jk", "jd"],
    ),
    ("y[i] = A[i,j] * x[j]; y[i] += B[i,j] * x[j]", &["ij", "j", "ij"]),
    ("g[i] = x[p[i]]", &["j", "i"]),
    ("O[i] = I[i+k] * F[k]", &["i", "k"]),
    ("O[i,j] = I[i+k,j+l] * F[k,l]", &["ij", "kl"]),
    ("O[i] = I[2*i+k] * F[k]", &["i", "k"]),
    ("O[i+k] += I[i] * F[k]", &["i", "k"]),
    ("d[j] = max[i](A[i,j])", &["ij"]),
    ("y[l] = A[i,j] - B[k,j] + C[k,j] * D[l,i,k] + E[k,i]", &["ij", "kj", "kj", "lik", "ki"]),
    ("y[l] = sum[k](sum[j](sum[i](A[k,j] * B[l,i,k]) - C[k,j]) + sum[i](D[k,i])) + 1", &["kj", "lik", "kj", "ki"]),
    ("b[i] = all[j](A[i,j])", &["ij"]),
    ("b[j] = any[i](A[i,j])", &["ij"]),
    ("b[i] and= A[i,j] + x[j]", &["ij", "j"]),
    ("b = any[i,j](A[i,j] * x[j])", &["ij", "j"]),
    ("y[i] = any[j](A[i,j]) * x[i]", &["ij", "i"]),
];

const SIZES: &[(char, u64)] = &[('i', 7), ('j', 6), ('k', 4), ('l', 3), ('d', 2)];

fn formats(rank: usize) -> &'static [&'static str] {
    match rank {
        1 => &["dense", "sparse", "sparse_runs", "dense"],
        2 => &[
            "dense",
            "csr",
            "csc",
            "dcsr",
            "coo",
            "csr",
            "(i,j) -> (j,i): dense, dense",
            "dense, blocks",
            "dense, hash",
        ],
        _ => &["dense", "csf", "coo", "dense, dense, sparse", "(i,j,k) -> (k,j,i): sparse, sparse, sparse"],
    }
}

/// Random tensors for a statement.
fn operands(random: &mut Random, notation: &Notation, shapes: &[&str], text: &str, scale: u64) -> Vec<Tensor> {
    let size = |c: char| scale * SIZES.iter().find(|(name, _)| *name == c).map_or(5, |(_, n)| *n);
    let make = |(name, letters): (&str, &&str)| {
        let shape: Vec<u64> = letters.chars().map(size).collect();
        let format = *random.pick(formats(shape.len()));
        let whole = name == "p" && text.contains("x[p[");
        let cells: u64 = shape.iter().product();
        let mut columns: Vec<Vec<u64>> = vec![Vec::new(); shape.len()];
        let mut values = Vec::new();
        for cell in 0..cells {
            if !random.one_in(1 + scale as usize) && !whole {
                continue;
            }
            let mut rest = cell;
            for (column, n) in columns.iter_mut().zip(&shape).rev() {
                column.push(rest % n);
                rest /= n;
            }
            values.push(random.below(6) as i64 - if whole { 0 } else { 2 });
        }
        let values = if whole { values.into() } else { values.iter().map(|x| *x as f64).collect::<Vec<f64>>().into() };
        let fill = if whole { Value::I64(0) } else { Value::F64(0.0) };
        let columns = columns.into_iter().map(Into::into).collect();
        let coordinates = Coordinates { shape: shape.clone(), columns, values };
        let format = if whole { Format::dense(1) } else { Format::parse(format, shape.len()).unwrap() };
        Tensor::from_coordinates(&coordinates, &format, fill, Combine::Error).unwrap()
    };
    notation.params().into_iter().zip(shapes).map(make).collect()
}

/// Every statement, with tensors in random formats: compiled code, the interpreted loops, and a
/// dense evaluation agree.
#[test]
fn schedules_preserve_semantics() {
    let rounds = std::env::var("TAMIS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let mut failures = Vec::new();
    for (k, (text, shapes)) in STATEMENTS.iter().enumerate() {
        let notation = Notation::parse(text).unwrap_or_else(|d| panic!("{text}: {d}"));
        for round in 0..rounds {
            let mut random = Random(k as u64 * 1000 + round);
            let tensors = operands(&mut random, &notation, shapes, text, 1);
            let named: Vec<(&str, &Tensor)> = notation.params().into_iter().zip(&tensors).collect();
            let options = EinsumOptions {
                compile: CompileOptions { check: true, ..CompileOptions::default() },
                ..EinsumOptions::default()
            };
            if let Err(errors) = tamis::einsum(text, &named, &options) {
                let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
                let refs: Vec<&Tensor> = tensors.iter().collect();
                let plan = tamis::notation::plan(&notation, &refs, &Pins::default()).map(|p| p.program.to_string());
                failures.push(format!("{text} {formats:?}\n{errors}\n{}", plan.unwrap_or_default()));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        STATEMENTS.len() as u64 * rounds,
        failures[..failures.len().min(5)].join("\n\n")
    );
}

fn orders(names: &[String]) -> Vec<Vec<String>> {
    match names {
        [] => vec![Vec::new()],
        _ => (0..names.len())
            .flat_map(|k| {
                let mut rest = names.to_vec();
                let first = rest.remove(k);
                orders(&rest).into_iter().map(move |mut order| {
                    order.insert(0, first.clone());
                    order
                })
            })
            .collect(),
    }
}

/// The chosen schedule executes at most twice the statements of the best loop order.
#[test]
fn no_schedule_is_much_slower_than_the_best() {
    let mut table = String::new();
    let mut worst: f64 = 1.0;
    let mut seen = 0;
    for (k, (text, shapes)) in STATEMENTS.iter().enumerate() {
        let notation = Notation::parse(text).unwrap();
        let mut random = Random(k as u64 + 77);
        let tensors = operands(&mut random, &notation, shapes, text, 5);
        let refs: Vec<&Tensor> = tensors.iter().collect();
        let executed = |pins: &Pins| -> Option<u64> {
            let plan = tamis::notation::plan(&notation, &refs, pins).ok()?;
            let made = tamis::notation::converted_operands(&plan, &notation, &refs).unwrap();
            let params: Vec<Tensor> = made.into_iter().map(|tensor| tensor.into_owned()).collect();
            let converted: u64 = plan
                .conversions
                .iter()
                .filter_map(|c| notation.params().iter().position(|p| *p == c.source))
                .map(|at| 4 * tensors[at].nnz() as u64)
                .sum();
            lowered::count(&plan.program, &params, 100_000_000).ok().map(|count| count + converted)
        };
        let Some(chosen) = executed(&Pins::default()) else { continue };
        let mut names: Vec<String> = notation.assignments.iter().flat_map(|a| a.indices()).collect();
        names.sort();
        names.dedup();
        if names.len() > 4 {
            continue;
        }
        let pinned = |order: &Vec<String>| Pins { order: order.clone(), separate: true, ..Pins::default() };
        let tried: Vec<(u64, Vec<String>)> =
            orders(&names).into_iter().filter_map(|order| Some((executed(&pinned(&order))?, order))).collect();
        let Some((best, order)) = tried.into_iter().min() else { continue };
        let ratio = chosen as f64 / best as f64;
        if ratio > 2.0 {
            let shown = |pins: &Pins| {
                tamis::notation::plan(&notation, &refs, pins).map(|p| format!("{}\n{:?}", p.program, p.decisions))
            };
            println!("{}\n{}", shown(&Pins::default()).unwrap(), shown(&pinned(&order)).unwrap());
        }
        worst = worst.max(ratio);
        seen += 1;
        let formats: Vec<String> = tensors.iter().map(|t| t.format().to_string()).collect();
        table += &format!("{ratio:5.2} {chosen:7} {best:7}  {text}  {formats:?}\n");
    }
    println!("ratio  chosen    best  statement\n{table}");
    assert!(seen >= 60, "{seen}");
    assert!(worst <= 2.0, "{worst}");
}

/// Of two loops over equally sparse sets, the one over `(A or B) and C` comes before the one over
/// `(A and B) or C`, since it is more selective.
#[test]
fn the_stronger_filter_goes_first() {
    let sparse = |seed: u64| {
        let entries: Coordinates = tamis::gallery::generate(&format!("random(300, density=0.1, seed={seed})")).unwrap();
        let format = Format::parse("sparse", 1).unwrap();
        Tensor::from_coordinates(&entries, &format, Value::F64(0.0), Combine::Error).unwrap()
    };
    let tensors: Vec<Tensor> = (0..6).map(sparse).collect();
    let refs: Vec<&Tensor> = tensors.iter().collect();
    let (weak, strong) = ("(A[i] * B[i] + C[i])", "((D[j] + E[j]) * F[j])");
    for text in [format!("X[i,j] = {weak} * {strong}"), format!("X[i,j] = {strong} * {weak}")] {
        let notation = Notation::parse(&text).unwrap();
        let plan = tamis::notation::plan(&notation, &refs, &Pins::default()).unwrap();
        let loops = plan.program.to_string();
        assert!(loops.contains("for j, i in _:"), "{loops}");
    }
}

/// The first result of a statement on operands of these types, element by element.
fn computed(text: &str, operands: &[(&str, &[u64], &[f64], tamis::DType)]) -> Vec<Value> {
    let tensor = |shape: &[u64], values: &[f64], dtype| {
        Tensor::from_dense(shape, values.to_vec().into(), &Format::dense(shape.len()), Value::F64(0.0))
            .unwrap()
            .cast(dtype)
    };
    let tensors: Vec<(&str, Tensor)> = operands.iter().map(|o| (o.0, tensor(o.1, o.2, o.3))).collect();
    let inputs: Vec<(&str, &Tensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let results = tamis::einsum(text, &inputs, &EinsumOptions::default());
    let all = results.unwrap_or_else(|d| panic!("{text}: {}", d.render(false)))[0].to_dense().unwrap();
    (0..all.len()).map(|k| all.get(k)).collect()
}

fn numbers(values: &[Value], wanted: &[f64]) -> bool {
    values.len() == wanted.len() && values.iter().zip(wanted).all(|(a, b)| a.as_c128().re == *b)
}

/// Each term is summed over its own indices, wherever they occur: the index sets of terms overlap.
#[test]
fn the_order_of_terms_does_not_matter() {
    use tamis::DType::F64;
    let (a, b, p) = ([10.0, 20.0, 30.0], [1.0, 2.0], [1.0; 6]);
    let operands: [(&str, &[u64], &[f64], _); 3] =
        [("a", &[3], &a, F64), ("b", &[2], &b, F64), ("P", &[3, 2], &p, F64)];
    for (text, wanted) in [
        ("y = a[i] + b[j] + P[i,j]", 69.0),
        ("y = b[j] + a[i] + P[i,j]", 69.0),
        ("y = P[i,j] + b[j] + a[i]", 69.0),
        ("y = P[i,j] - b[j] - a[i]", -57.0),
        ("y = b[j] - P[i,j] - a[i]", -63.0),
        ("y = a[i] - P[i,j] + b[j]", 57.0),
        ("y = sum[i,j](a[i] + b[j] + P[i,j])", 135.0),
        ("y = b[j] + sum[i](P[i,j] + a[i])", 69.0),
    ] {
        let mut used: Vec<_> = operands.to_vec();
        used.retain(|(name, ..)| text.contains(&format!("{name}[")));
        let got = computed(text, &used);
        assert!(numbers(&got, &[wanted]), "{text}: {got:?}");
    }
    // Products of terms have no such rule, and neither have sums in parentheses, whose multiplicity
    // is ambiguous.
    let ambiguous = [
        "y *= a[i] + b[j] + P[i,j]",
        "y = b[j] - 2 * (P[i,j] + a[i])",
        "y = b[j] + -(P[i,j] - a[i])",
        "y = b[j] + sum[i](P[i,j] + a[i] + 1)",
    ];
    let tensors = operands.map(|(_, shape, values, _)| {
        Tensor::from_dense(shape, values.to_vec().into(), &Format::dense(shape.len()), Value::F64(0.0)).unwrap()
    });
    let inputs = [("a", &tensors[0]), ("b", &tensors[1]), ("P", &tensors[2])];
    for text in ambiguous {
        let reported = tamis::einsum(text, &inputs, &EinsumOptions::default());
        assert_eq!(reported.map(|_| text).unwrap_err().0[0].code, tamis::diagnostic::Code::E0112, "{text}");
    }
}

/// The negation of a subtrahend may not be representable in its type.
#[test]
fn sums_of_unsigned_integers_are_subtracted() {
    use tamis::DType::{F64, I64, U8, U32};
    let u = [1.0, 0.0, 2.0, 3.0];
    let x: (&str, &[u64], &[f64], _) = ("x", &[4], &[0.0; 4], F64);
    let got = computed("y[k] = x[k] - U[k,l]", &[x, ("U", &[4, 1], &u, U8)]);
    assert!(numbers(&got, &[-1.0, 0.0, -2.0, -3.0]), "{got:?}");
    let got = computed("y[k] = x[k] - U[k,l] - V[k,l]", &[x, ("U", &[4, 1], &u, U8), ("V", &[4, 1], &u, U8)]);
    assert!(numbers(&got, &[-2.0, 0.0, -4.0, -6.0]), "{got:?}");
    let got = computed("y[i] = a[i] - b[j,i]", &[("a", &[2], &[0.0; 2], I64), ("b", &[3, 2], &[1.0; 6], U32)]);
    assert!(numbers(&got, &[-3.0, -3.0]), "{got:?}");
    let got = computed("y[k] = max[l](x[k] - U[k,l])", &[x, ("U", &[4, 1], &u, U8)]);
    assert!(numbers(&got, &[-1.0, 0.0, -2.0, -3.0]), "{got:?}");
}

/// Reductions start from their identity, in every type: computed by hand, since the reference
/// interpreter shares that code.
#[test]
fn reductions_on_every_type() {
    let rows = [0.0, 0.0, 0.0, 2.0, 3.0, 5.0, 0.0, 4.0, 0.0];
    let vectors: [(&str, [f64; 3]); 7] = [
        ("all", [0.0, 1.0, 0.0]),
        ("any", [0.0, 1.0, 1.0]),
        ("sum", [0.0, 10.0, 4.0]),
        ("prod", [0.0, 30.0, 0.0]),
        ("min", [0.0, 2.0, 0.0]),
        ("max", [0.0, 5.0, 4.0]),
        ("and=", [0.0, 1.0, 0.0]),
    ];
    for dtype in tamis::DType::ALL {
        for (word, wanted) in &vectors {
            let logical = matches!(*word, "all" | "any" | "and=");
            let ordered = matches!(*word, "min" | "max");
            if dtype.kind() == tamis_ir::Kind::Complex && ordered || dtype == tamis::DType::Bool && !logical {
                continue;
            }
            let text = match word.strip_suffix('=') {
                Some(op) => format!("y[i] {op}= A[i,j]"),
                None => format!("y[i] = {word}[j](A[i,j])"),
            };
            let got = computed(&text, &[("A", &[3, 3], &rows, dtype)]);
            assert!(numbers(&got, wanted), "{text} on {dtype}: {got:?}");
            let expected = if logical { tamis::DType::Bool } else { dtype };
            assert_eq!(got[0].dtype(), expected, "{text} on {dtype}");
        }
    }
}

/// Literal operands adapt to the types of the other operands.
#[test]
fn literals_have_weak_types() {
    use tamis::DType::{C64, F32, F64, I32};
    let tensor = |dtype| {
        Tensor::from_dense(&[2], vec![1.0, 2.0].into(), &Format::dense(1), Value::F64(0.0)).unwrap().cast(dtype)
    };
    let number = |value: Value| Tensor::literal(value);
    let cases = [
        (F32, number(Value::F64(2.5)), F32),
        (F32, number(Value::I64(3)), F32),
        (F32, number(Value::C128(num_complex::Complex::new(1.0, 2.0))), C64),
        (I32, number(Value::F64(2.5)), F64),
        (I32, number(Value::I64(3)), I32),
        (F32, Tensor::scalar(Value::F64(2.5)), F64),
    ];
    for (dtype, s, expected) in cases {
        let a = tensor(dtype);
        let got = tamis::einsum("y[i] = a[i] * s", &[("a", &a), ("s", &s)], &EinsumOptions::default()).unwrap();
        assert_eq!(got[0].dtype(), expected, "{dtype} with {}", s.dtype());
    }
}

/// Integers wrap around in their type, in whatever order a schedule multiplies and adds.
#[test]
fn narrow_integers_are_not_refactored() {
    use tamis::DType::{F64, U8};
    let hundreds = [100.0; 6];
    let (u, v): (&[u64], &[u64]) = (&[2, 3], &[3, 2]);
    // 100 * 100 is 16, six times.
    let operands = [("U", u, &hundreds[..], U8), ("V", v, &hundreds[..], U8), ("x", &[2][..], &[1.0; 2][..], F64)];
    let got = computed("y[i] = U[i,j] * V[j,k] * x[k]", &operands);
    assert!(numbers(&got, &[96.0, 96.0]), "{got:?}");
    let got = computed("t[i] = U[i,j]; y[i] = t[i] * x[i]", &[operands[0], operands[2]]);
    assert!(numbers(&got, &[44.0, 44.0]), "{got:?}");
}

/// A diagonal assignment leaves the fill value everywhere else.
#[test]
fn diagonals_keep_the_fill_value() {
    use tamis::DType::F64;
    // Reused memory is dirty.
    for n in 1..200u64 {
        drop(computed("y[i] = 7 * x[i]", &[("x", &[n], &vec![1.0; n as usize], F64)]));
    }
    let x: (&str, &[u64], &[f64], _) = ("x", &[3], &[1.0, 2.0, 3.0], F64);
    let a: (&str, &[u64], &[f64], _) = ("A", &[2, 2], &[1.0, 2.0, 3.0, 4.0], F64);
    let cases: [(&str, _, &[f64]); 6] = [
        ("y[i,i] = x[i]", x, &[1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0]),
        ("y[i,i] += x[i]", x, &[1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0]),
        ("y[i,i] = A[i,j]", a, &[3.0, 0.0, 0.0, 7.0]),
        ("y[i,i,j] = A[i,j]", a, &[1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 4.0]),
        ("y[i,j,j] = A[i,j]", a, &[1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0]),
        ("t[i,i] = x[i]; y[i] = t[i,j]", x, &[1.0, 2.0, 3.0]),
    ];
    for (text, operand, wanted) in cases {
        let got = computed(text, &[operand]);
        assert!(numbers(&got, wanted), "{text}: {got:?}");
    }
}
