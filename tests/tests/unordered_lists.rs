//! Tests of `sparse(nonordered)`: results that keep insertion order, lists that need no sorting for
//! them, and unordered operands, against the interpreter.

use tamis_ir::{Code, DType, Format, Value};
use tamis_tensor::{IndexArray, Tensor, ValueArray};
use tamis_tests::conform::{Data, Expected, Judge, edges};

const RESULTS: [&str; 4] = [
    "dense, sparse(nonordered)",
    "sparse, sparse(nonordered)",
    "(i,j) -> (j,i): dense, sparse(nonordered)",
    "bytemap, sparse(nonordered)[u32]",
];

/// The same tensor with reversed fibers in its last level.
fn reversed(tensor: Tensor) -> Tensor {
    if !tensor.format().levels().iter().any(|level| level.nonordered) {
        return tensor;
    }
    let last = tensor.levels().len() - 1;
    let mut arrays: Vec<_> = (0..=last).map(|k| tensor.level_arrays(k)).collect();
    let (pos, crd) = (arrays[last].get("pos").unwrap().to_vec(), arrays[last].get("crd").unwrap());
    let places: Vec<usize> = pos.windows(2).flat_map(|w| (w[0] as usize..w[1] as usize).rev()).collect();
    let coordinates: Vec<u64> = places.iter().map(|at| crd.get(*at)).collect();
    let crd = IndexArray::with_width(&coordinates, crd.width()).unwrap();
    arrays[last].arrays.iter_mut().filter(|(name, _)| *name == "crd").for_each(|(_, array)| *array = crd.clone());
    let values: Option<Vec<Value>> = tensor.values().map(|values| places.iter().map(|at| values.get(*at)).collect());
    let values = values.map(|values| ValueArray::from_values(&values, tensor.dtype()));
    Tensor::from_parts(tensor.shape(), tensor.format(), arrays, values, tensor.fill()).unwrap()
}

fn sets(data: &[Data], formats: &[&str], dtype: DType) -> Vec<Vec<Tensor>> {
    let tensor = |data: &Data, format: &str| data.tensor(format, dtype, Value::zero(dtype)).map(reversed);
    data.iter().filter_map(|data| formats.iter().map(|format| tensor(data, format)).collect()).collect()
}

/// Square matrices whose products touch columns out of order: some of every `part` cells, from
/// `first` on.
fn squares() -> Vec<Data> {
    let square = |what: &'static str, n: u64, first: u64, part: u64| {
        let cells: Vec<u64> = (0..n * n).filter(|k| (k * 7 + first) % part < 2).collect();
        let numbers = cells.iter().map(|k| [1.0, -0.5, 2.0, 0.0, 3.0][(*k + first) as usize % 5]).collect();
        Data { what, shape: vec![n, n], cells: cells.iter().map(|k| vec![k / n, k % n]).collect(), numbers }
    };
    vec![
        square("sparse", 9, 0, 11),
        square("denser", 7, 1, 5),
        square("full", 4, 0, 2),
        square("other", 8, 3, 6),
        square("size 1", 1, 0, 2),
        square("size 0", 0, 0, 2),
        Data { what: "empty", shape: vec![5, 5], cells: Vec::new(), numbers: Vec::new() },
    ]
}

/// The declaration of a result, and its writes.
const UPDATES: [(&str, &str); 7] = [
    ("", "{place} = {value}"),
    ("", "{place} += {value}"),
    ("", "{place} -= {value}"),
    (", fill=inf", "{place} min= {value}"),
    (", fill=1", "{place} *= {value}"),
    (", dtype=\"bool\"", "{place} |= {value} > 0"),
    ("", "{place} = choose({place}, {value}, 0)"),
];

fn write(update: &str, place: &str, value: &str) -> String {
    update.replace("{place}", place).replace("{value}", value)
}

#[test]
fn results_are_written() {
    let mut judge = Judge::sharing(3);
    let (matrices, cubes) = (edges(2), edges(3));
    for (number, format) in RESULTS.iter().enumerate() {
        for (u, (with, update)) in UPDATES.iter().enumerate() {
            for order in ["i, j", "j, i"] {
                let input = ["csr", "dense", "dcsr", "coo"][(number + u) % 4];
                let text = format!(
                    "def f(A):\n    C = tensor(\"{format}\"{with})\n    for {order} in _:\n        {}\n    return C\n",
                    write(update, "C[i,j]", "A[i,j]"),
                );
                judge.case(
                    &format!("{input} to {format}"),
                    &text,
                    &sets(&matrices, &[input], DType::F64),
                    Expected::Same,
                );
            }
            for order in ["i, j, k", "i, k, j", "k, i, j", "j, k, i"] {
                let input = ["csf", "dense, sparse, dense", "coo"][(number + u) % 3];
                let text = format!(
                    "def f(A):\n    C = tensor(\"{format}\"{with})\n    for {order} in _:\n        {}\n    return C\n",
                    write(update, "C[i,j]", "A[i,j,k]"),
                );
                judge.case(&format!("{input} to {format}"), &text, &sets(&cubes, &[input], DType::F64), Expected::Same);
            }
        }
    }
    judge.verdict(1000);
}

/// Byte maps that are filled out of order, and read by loops of which some depend on the order.
#[test]
fn lists_are_sorted_where_the_order_matters() {
    let mut judge = Judge::sharing(2);
    let data = squares();
    let readers = [
        "for k in _:\n            C[i,k] = w[k]",
        "for k in _:\n            C[i,k] = w[k]\n            y[i] += w[k]",
        "for k in _:\n            z[k] += w[k]\n            y[i] += w[k] * k",
        "for k in _:\n            z[k] = w[k]",
        "for k in _:\n            if w[k] != 0:\n                y[i] = k",
        "for k in _:\n            if w[k] != 0:\n                y[i] = choose(y[i], k, 0)",
        "for k in _:\n            y[i] += w[k]\n            y[i] max= w[k]",
        "for k in _:\n            C[i,k] = w[k] * v[k]",
        "for k in _:\n            C[i,k] = w[k] + v[k]",
        "for k in _:\n            D[i,k] = w[k]",
        "for k in _:\n            if k <= i:\n                C[i,k] = w[k]",
        "for k, l in _:\n            E[i,k,l] = w[k] * B[k,l]",
        "for k, l in _:\n            C[i,l] += w[k] * B[k,l]",
        "for k in _:\n            u = tensor(\"bytemap\")\n            for l in _:\n                u[l] += w[k] * B[k,l]\n            for l in _:\n                E[i,k,l] = u[l]",
        "for k in _:\n            C[i,k] = w[k]\n        for k in _:\n            y[i] += w[k] * v[k]",
        "for k in _:\n            s |= w[k] > 0",
        "for k in _:\n            b[k] = w[k]",
    ];
    for reader in readers {
        let text = format!(
            "def f(A, B, v):\n    C = tensor(\"dense, sparse(nonordered)\")\n    D = tensor(\"csr\")\n    E = tensor(\"dense, sparse, sparse(nonordered)\")\n    y = tensor(\"dense\")\n    z = tensor(\"dense\")\n    b = tensor(\"bytemap\")\n    for i in _:\n        w = tensor(\"bytemap\")\n        for j, k in _:\n            w[k] += A[i,j] * B[j,k]\n        {reader}\n    return RESULTS\n"
        );
        let used: Vec<&str> =
            ["C", "D", "E", "y", "z", "b"].into_iter().filter(|name| reader.contains(&format!("{name}["))).collect();
        let text: String = text
            .lines()
            .filter(|line| {
                let unused = |name: &&str| !used.contains(name) && line.starts_with(&format!("    {name} = tensor"));
                !["C", "D", "E", "y", "z", "b"].iter().any(unused)
            })
            .map(|line| line.replace("RESULTS", &used.join(", ")) + "\n")
            .collect();
        let text = if reader.contains("s |=") {
            text.replace(
                "    for i in _:\n        w =",
                "    s = short_circuit_scalar(False)\n    for i in _:\n        w =",
            )
            .replace("return ", "return s")
        } else {
            text
        };
        let text = if text.contains("v[") { text } else { text.replace("def f(A, B, v)", "def f(A, B)") };
        for b in ["csr", "dense, sparse(nonordered)"] {
            let mut given = sets(&data, &["csr", b], DType::F64);
            if text.contains("v[") {
                for set in &mut given {
                    let size = set[0].shape()[0];
                    let values: Vec<f64> = (0..size).map(|k| [0.0, 2.0, 3.0][k as usize % 3]).collect();
                    let format = Format::parse("sparse", 1).unwrap();
                    set.push(Tensor::from_dense(&[size], values.into(), &format, Value::F64(0.0)).unwrap());
                }
            }
            judge.case(reader, &text, &given, Expected::Same);
        }
    }
    judge.verdict(200);
}

/// Unordered operands: read where they are iterated alone, rejected elsewhere.
#[test]
fn operands_are_read_alone() {
    let mut judge = Judge::sharing(2);
    let (same, refused) = (Expected::Same, Expected::Refused(Code::E0610));
    let data = edges(2);
    let body = |declared: &str, body: &str| format!("def f(A):\n    C = {declared}\n    for {body}\n    return C\n");
    let cases = [
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] += A[i,j]"), same),
        (body("tensor(\"sparse\")", "i, j in _:\n        C[i] += A[i,j] * (j + 1)"), same),
        (body("tensor(\"dense\")", "i, j in _:\n        C[j] += A[i,j]"), same),
        (body("tensor(\"sparse\")", "i, j in _:\n        C[j] += A[i,j]"), same),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"csr\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"csc\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"dcsr\")", "i, j in _:\n        C[i,j] += A[i,j]"), same),
        (body("tensor(\"coo\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"dense, hash\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"dense, bytemap\")", "i, j in _:\n        C[i,j] = A[i,j]"), same),
        (body("tensor(\"csr\")", "i, j in _:\n        C[j,i] = A[i,j]"), same),
        (body("tensor(\"dense, sparse(nonordered)\")", "i, j in _:\n        C[i,j] = 2 * A[i,j]"), same),
        (body("scalar(0.0)", "i, j in _:\n        C += A[i,j]"), same),
        (body("tensor(\"dense\")", "j, i in _:\n        C[i] += A[i,j]"), refused),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] = j * (A[i,j] != 0)"), refused),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i,j] = A[i,j] + 1"), refused),
        (body("tensor(\"dense\")", "i in _:\n        C[i] = A[i,0]"), refused),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] += A[i,gallop(j)]"), same),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] += A[i,follow(j)]"), refused),
        (
            body(
                "tensor(\"dense\", shape=(A.shape[0],))",
                "p in range(A.nnz):\n        C[A.coords[0, p]] += A.data[p] * (p + 1)",
            ),
            same,
        ),
        (
            body(
                "tensor(\"dense\", shape=(A.shape[1],))",
                "p in range(A.nnz):\n        C[A.coords[1, p]] += A.data[p] * (p + 1)",
            ),
            same,
        ),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] += A[i,j] * A.first[i]"), same),
        (body("tensor(\"dense\")", "i, j in _:\n        C[i] += A[i,j] * A.first[i, j]"), refused),
        (body("tensor(\"dense\")", "i, j in _:\n        if j < i:\n            C[i] += A[i,j]"), refused),
        (body("tensor(\"dense\")", "i in _:\n        for j in range(0, 1):\n            C[i] += A[i,j]"), refused),
    ];
    for (text, wanted) in &cases {
        for format in ["dense, sparse(nonordered)", "sparse, sparse(nonordered)"] {
            let data: Vec<Data> = data
                .iter()
                .filter(|data| !text.contains("0]") && !text.contains("range") || data.shape[1] > 0)
                .cloned()
                .collect();
            judge.case(format, text, &sets(&data, &[format], DType::F64), *wanted);
        }
    }
    let text =
        "def f(A, B):\n    C = tensor(\"csr\")\n    for i, j in _:\n        C[i,j] = A[i,j] * B[i,j]\n    return C\n";
    for b in ["csr", "dense, sparse(nonordered)"] {
        judge.case("both", text, &sets(&data, &["dense, sparse(nonordered)", b], DType::F64), refused);
    }
    // Operands that are not iterated are looked up.
    judge.case("a dense one", text, &sets(&data, &["dense, sparse(nonordered)", "dense"], DType::F64), same);
    judge.case(
        "a byte map",
        &text.replace("B[i,j]", "B[i,follow(j)]"),
        &sets(&data, &["dense, sparse(nonordered)", "bytemap, bytemap"], DType::F64),
        same,
    );
    judge.verdict(100);
}

/// The rows of a product are in insertion order; a conversion sorts them.
#[test]
fn rows_keep_insertion_order() {
    let program = tamis::Program::parse(
        "def f(A, B):\n    C = tensor(\"dense, sparse(nonordered)\")\n    for i, j, k in _:\n        C[i,k] += A[i,j] * B[j,k]\n    return C\n",
    )
    .unwrap();
    let dense = |values: Vec<f64>| Tensor::from_dense(&[2, 2], values.into(), &Format::csr(), Value::F64(0.0)).unwrap();
    let (a, b) = (dense(vec![1.0, 1.0, 0.0, 1.0]), dense(vec![0.0, 3.0, 5.0, 7.0]));
    let run = |options: &tamis::run::RunOptions| {
        let results = tamis::run(&program, &[("A", &a), ("B", &b)], options).unwrap();
        results.into_tensor().unwrap()
    };
    let c = run(&tamis::run::RunOptions::default());
    assert_eq!(c.format().to_string(), "dense, sparse(nonordered)");
    assert_eq!(c.level_arrays(1).get("crd").unwrap().to_vec(), [1, 0, 0, 1], "not sorted");
    let sorted = c.convert(&Format::csr()).unwrap();
    assert_eq!(sorted.level_arrays(1).get("crd").unwrap().to_vec(), [0, 1, 0, 1]);
    let expected = run(&tamis::run::RunOptions { interpret: true, ..tamis::run::RunOptions::default() });
    assert!(c.same_values(&expected) && sorted.same_values(&expected));
}
