//! Conformance tests of writes: results and temporaries in every format, written in and out of
//! storage order, by every kind of update, with other fill values, leaves and types, on edge-case
//! data.

use tamis_ir::{DType, Value};
use tamis_tensor::Tensor;
use tamis_tests::conform::{Data, Expected, Judge, edges, every_format, wild};

/// Forms of writes: an assignment of `value`.
const UPDATES: [&str; 8] = [
    "{place} = {value}",
    "{place} += {value}",
    "{place} min= {value}",
    "{place} max= {value}",
    "{place} |= {value} > 0",
    "{place} *= {value}",
    "{place} = choose({place}, {value}, 0)",
    "{place} -= {value}",
];

fn write(update: &str, place: &str, value: &str) -> String {
    update.replace("{place}", place).replace("{value}", value)
}

/// The declaration of a result for which an update is meaningful.
fn declared(update: &str, format: &str) -> String {
    match update {
        u if u.contains("|=") => format!("tensor(\"{format}\", dtype=\"bool\")"),
        u if u.contains("min=") => format!("tensor(\"{format}\", fill=inf)"),
        u if u.contains("*=") => format!("tensor(\"{format}\", fill=1)"),
        _ => format!("tensor(\"{format}\")"),
    }
}

fn sets(data: &[Data], formats: &[&str], dtype: DType) -> Vec<Vec<Tensor>> {
    let set = |data: &Data| formats.iter().map(|f| data.tensor(f, dtype, Value::zero(dtype))).collect();
    data.iter().filter_map(set).collect()
}

/// Every format of results, by every update, in order and transposed, from sparse and dense
/// operands.
#[test]
fn matrices_are_written() {
    let mut judge = Judge::sharing(3);
    let data = edges(2);
    for (number, format) in every_format(2).iter().enumerate() {
        for (u, update) in UPDATES.iter().enumerate() {
            for order in ["i, j", "j, i"] {
                let input = ["csr", "dense", "dcsr", "coo"][(number + u) % 4];
                let text = format!(
                    "def f(A):\n    C = {}\n    for {order} in _:\n        {}\n    return C\n",
                    declared(update, format),
                    write(update, "C[i,j]", "A[i,j]"),
                );
                let what = format!("{input} to {format}, loops {order}");
                let sets = sets(&data, &[input], DType::F64);
                judge.case(&what, &text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(3000);
}

/// Sums into every format: the reduced loop outermost, in the middle, innermost.
#[test]
fn matrices_are_summed_into() {
    let mut judge = Judge::sharing(3);
    let data = edges(3);
    for (number, format) in every_format(2).iter().enumerate() {
        for (o, order) in ["i, j, k", "i, k, j", "k, i, j", "k, j, i", "j, i, k"].iter().enumerate() {
            let update = UPDATES[(number + o) % UPDATES.len()];
            let input = ["csf", "dense, sparse, dense", "coo"][(number + o) % 3];
            let text = format!(
                "def f(A):\n    C = {}\n    for {order} in _:\n        {}\n    return C\n",
                declared(update, format),
                write(update, "C[i,j]", "A[i,j,k]"),
            );
            let what = format!("{input} to {format}, loops {order}");
            let sets = sets(&data, &[input], DType::F64);
            judge.case(&what, &text, &sets, Expected::Same);
        }
    }
    judge.verdict(1000);
}

/// Every format of three levels, in order and in two other orders.
#[test]
fn tensors_are_written() {
    let mut judge = Judge::sharing(3);
    let data = edges(3);
    for (number, format) in every_format(3).iter().enumerate() {
        for (o, order) in ["i, j, k", "k, j, i", "j, i, k"].iter().enumerate() {
            let update = UPDATES[(number + 3 * o) % UPDATES.len()];
            let input = ["csf", "dense", "coo"][(number + o) % 3];
            let text = format!(
                "def f(A):\n    C = {}\n    for {order} in _:\n        {}\n    return C\n",
                declared(update, format),
                write(update, "C[i,j,k]", "A[i,j,k]"),
            );
            let what = format!("{input} to {format}, loops {order}");
            let sets = sets(&data, &[input], DType::F64);
            judge.case(&what, &text, &sets, Expected::Same);
        }
    }
    judge.verdict(1500);
}

/// Vectors: in order, reversed, at computed subscripts, conditionally, repeatedly.
#[test]
fn vectors_are_written() {
    let mut judge = Judge::sharing(3);
    let data = edges(1);
    let places = ["C[i]", "C[A.shape[0] - 1 - i]", "C[(2*i + 1) % 4]"];
    for format in &every_format(1) {
        for update in &UPDATES {
            for (p, place) in places.iter().enumerate() {
                let shape = if p == 2 { ", shape=(4,))" } else { ", shape=(A.shape[0],))" };
                let declared = declared(update, format).replace(')', shape);
                for input in ["sparse", "dense"] {
                    let once = write(update, place, "A[i]");
                    let text =
                        format!("def f(A):\n    C = {declared}\n    for i in _:\n        {once}\n    return C\n");
                    let what = format!("{input} to {format}");
                    judge.case(&what, &text, &sets(&data, &[input], DType::F64), Expected::Same);
                }
                let (then, other) = (write(update, place, "A[i]"), write(update, place, "(3 - A[i])"));
                let text = format!(
                    "def f(A):\n    C = {declared}\n    for i in _:\n        if A[i] > 0:\n            {then}\n        elif i > 1:\n            {other}\n        {then}\n    return C\n"
                );
                judge.case(
                    &format!("{format}, several writes"),
                    &text,
                    &sets(&data, &["sparse"], DType::F64),
                    Expected::Same,
                );
            }
        }
    }
    judge.verdict(1500);
}

/// Elements that are written once, and results without writes.
#[test]
fn conditions_and_offsets() {
    let mut judge = Judge::sharing(3);
    let data = edges(2);
    let bodies = [
        (
            "some rows",
            "    for i in _:\n        if i == 2:\n            for j in _:\n                C[i,j] = A[i,j]\n",
        ),
        ("a triangle", "    for i, j in _:\n        if i <= j:\n            C[i,j] = A[i,j]\n"),
        ("large values", "    for i, j in _:\n        if A[i,j] > 1:\n            C[i,j] = A[i,j]\n"),
        ("fills, too", "    for i, j in _:\n        C[i,j] = A[i,j] + 1\n"),
        ("nothing", "    for i, j in _:\n        if i < 0:\n            C[i,j] = A[i,j]\n"),
        ("twice", "    for i, j in _:\n        C[i,j] = A[i,j]\n    for i, j in _:\n        C[i,j] += 2 * A[i,j]\n"),
        ("a column", "    for i in _:\n        for j in range(A.shape[1]):\n            C[i,0] += A[i,j]\n"),
        (
            "ahead of the loop",
            "    for i in _:\n        for j in _:\n            C[i,j] = A[i,j]\n            C[(i + 1) % A.shape[0], j] = 7\n",
        ),
        (
            "a row at the end",
            "    for i in _:\n        for j in _:\n            if i == A.shape[0] - 1:\n                C[i,j] = 4\n        for j in _:\n            C[i,j] += A[i,j]\n",
        ),
    ];
    for (number, format) in every_format(2).iter().enumerate() {
        for (b, (about, body)) in bodies.iter().enumerate() {
            // At least one column is needed.
            let fitting: Vec<Data> = data.iter().filter(|d| *about != "a column" || d.shape[1] > 0).cloned().collect();
            let text = format!(
                "def f(A):\n    C = tensor(\"{format}\", shape=(A.shape[0], A.shape[1]))\n{body}    return C\n"
            );
            let sets = sets(&fitting, &[["csr", "dcsr", "dense"][(number + b) % 3]], DType::F64);
            judge.case(&format!("{format}, {about}"), &text, &sets, Expected::Same);
        }
    }
    judge.verdict(1500);
}

/// Every value type, every leaf, other fill values.
#[test]
fn types_fills_and_leaves() {
    let mut judge = Judge::sharing(3);
    let data = edges(2);
    let dtypes =
        [DType::Bool, DType::I8, DType::I32, DType::I64, DType::U64, DType::F32, DType::F64, DType::C64, DType::C128];
    for (number, format) in every_format(2).iter().enumerate() {
        for (k, dtype) in dtypes.into_iter().enumerate() {
            let order = if (number + k) % 2 == 0 { "i, j" } else { "j, i" };
            let op = if dtype == DType::Bool { "|=" } else { ["=", "+="][k % 2] };
            let text = format!(
                "def f(A):\n    C = tensor(\"{format}\", dtype=\"{dtype}\")\n    for {order} in _:\n        C[i,j] {op} A[i,j]\n    return C\n"
            );
            let what = format!("{dtype} in {format}");
            judge.case(&what, &text, &sets(&data, &["csr"], dtype), Expected::Same);
        }
        for (k, fill) in ["1", "-2.5", "inf", "nan"].iter().enumerate() {
            let op = ["=", "+=", "min=", "max="][(number + k) % 4];
            let text = format!(
                "def f(A):\n    C = tensor(\"{format}\", fill={fill})\n    for i, j in _:\n        C[i,j] {op} A[i,j]\n    return C\n"
            );
            judge.case(&format!("fill {fill} in {format}"), &text, &sets(&data, &["dcsr"], DType::F64), Expected::Same);
        }
        for op in ["|= A[i,j] > 0", "= A[i,j] > 0", "= True"] {
            for order in ["i, j", "j, i"] {
                let body = if op == "= True" {
                    "if A[i,j] > 0:\n            C[i,j] = True".into()
                } else {
                    format!("C[i,j] {op}")
                };
                let text = format!(
                    "def f(A):\n    C = tensor(\"{format}; pattern\")\n    for {order} in _:\n        {body}\n    return C\n"
                );
                // A level that stores `false`, too, cannot hold it; the interpreter agrees.
                let what = format!("{format}; pattern, loops {order}");
                judge.case(&what, &text, &sets(&data, &["csr"], DType::F64), Expected::Same);
            }
        }
    }
    judge.verdict(3000);
}

/// Stored and computed NaNs and infinities.
#[test]
fn nans_and_infinities() {
    let mut judge = Judge::sharing(3);
    let data = [wild(2)];
    for (number, format) in every_format(2).iter().enumerate() {
        for (u, update) in UPDATES.iter().enumerate() {
            for dtype in [DType::F32, DType::F64] {
                let order = if (number + u) % 2 == 0 { "i, j" } else { "j, i" };
                let text = format!(
                    "def f(A):\n    C = {}\n    for {order} in _:\n        {}\n    return C\n",
                    declared(update, format),
                    write(update, "C[i,j]", "A[i,j]"),
                );
                let sets = sets(&data, &[["csr", "dense"][u % 2]], dtype);
                judge.case(&format!("{dtype} in {format}"), &text, &sets, Expected::Same);
            }
        }
    }
    judge.verdict(400);
}

/// Temporaries in loops are reset in each iteration, in every format.
#[test]
fn temporaries_are_reset() {
    let mut judge = Judge::sharing(3);
    let data = edges(2);
    for (number, format) in every_format(1).iter().enumerate() {
        for (u, update) in UPDATES.iter().enumerate() {
            for (p, place) in ["w[j]", "w[A.shape[1] - 1 - j]"].iter().enumerate() {
                let declared = declared(update, format).replace(')', ", shape=(A.shape[1],))");
                let input = ["csr", "dcsr", "dense"][(number + u + p) % 3];
                let text = format!(
                    "def f(A):\n    C = tensor(\"csr\")\n    y = tensor(\"dense\")\n    for i in _:\n        w = {declared}\n        for j in _:\n            {}\n        for j in _:\n            C[i,j] = w[j]\n        for j in _:\n            y[j] += w[follow(j)] * (i + 1)\n    return C, y\n",
                    write(update, place, "A[i,j]"),
                );
                // Temporaries with one coordinate per fiber get one or none.
                let mut fitting = data.clone();
                if format == "singleton" {
                    fitting.retain(|d| ["empty", "one in each row", "the last entry", "size 1"].contains(&d.what));
                    if input == "dense" {
                        continue;
                    }
                }
                let sets = sets(&fitting, &[input], DType::F64);
                judge.case(&format!("a temporary in {format}"), &text, &sets, Expected::Same);
            }
        }
    }
    // Two-dimensional temporaries: written transposed, and read in both orders.
    let data = edges(3);
    for (number, format) in every_format(2).iter().enumerate() {
        if format.contains("singleton") && !format.contains("nonunique") {
            continue;
        }
        for (o, order) in ["j, k", "k, j"].iter().enumerate() {
            let input = ["csf", "coo", "dense"][(number + o) % 3];
            let text = format!(
                "def f(A):\n    C = tensor(\"csf\")\n    s = scalar(0.0)\n    for i in _:\n        w = tensor(\"{format}\")\n        for {order} in _:\n            w[j,k] += A[i,j,k]\n        for j, k in _:\n            C[i,j,k] = w[j,k]\n        for k, j in _:\n            s += w[j,k] * (j + 2)\n    return C, s\n"
            );
            let sets = sets(&data, &[input], DType::F64);
            judge.case(&format!("a temporary in {format}"), &text, &sets, Expected::Same);
        }
    }
    judge.verdict(900);
}

/// Several results of different kinds from one loop nest.
#[test]
fn several_results() {
    let mut judge = Judge::sharing(3);
    let data = edges(2);
    let all = every_format(2);
    for (number, format) in all.iter().enumerate() {
        let other = &all[(number * 5 + 3) % 16];
        let text = format!(
            "def f(A, B):\n    C = tensor(\"{format}\")\n    D = tensor(\"{other}\")\n    y = tensor(\"sparse\")\n    s = scalar(0.0)\n    n = scalar(0)\n    for i, j in _:\n        C[i,j] = A[i,j] * B[i,j]\n        D[i,j] += A[i,j] + B[i,j]\n        y[i] max= A[i,j]\n        s += B[i,j]\n        n += A[i,j] > 0\n    return C, D, y, s, n\n"
        );
        let sets = sets(&data, &["csr", "dcsr"], DType::F64);
        judge.case(&format!("{format} and {other}"), &text, &sets, Expected::Same);
    }
    judge.verdict(200);
}

/// Scalars that record whether they were written, and scalars that end their loops.
#[test]
fn scalars() {
    let mut judge = Judge::sharing(3);
    let mut data = edges(2);
    data.push(wild(2));
    let bodies = [
        "    s = sparse_scalar(0.0)\n    for i, j in _:\n        s += A[i,j]\n",
        "    s = sparse_scalar(inf)\n    for i, j in _:\n        if A[i,j] > 1:\n            s min= A[i,j]\n",
        "    s = short_circuit_scalar(1.0)\n    for i, j in _:\n        s *= A[i,j]\n",
        "    s = short_circuit_scalar(False)\n    for i, j in _:\n        s |= A[i,j] > 2\n",
        "    s = short_circuit_scalar(True)\n    for i, j in _:\n        s &= A[i,j] < 2\n",
        "    s = short_circuit_scalar(-inf)\n    for j, i in _:\n        s max= A[i,j]\n",
        "    s = tensor(\"sparse\")\n    for i in _:\n        t = sparse_scalar(0.0)\n        for j in _:\n            t += A[i,j]\n        s[i] = t\n",
        "    s = tensor(\"sparse; pattern\")\n    for i in _:\n        t = short_circuit_scalar(False)\n        for j in _:\n            t |= A[i,j] > 1\n        s[i] = t\n",
        "    s = tensor(\"dense\")\n    for i in _:\n        t = scalar(2.5)\n        for j in _:\n            t = t * 0.5 + A[i,j]\n        s[i] = t\n",
    ];
    for format in &every_format(2) {
        for body in bodies {
            let text = format!("def f(A):\n{body}    return s\n");
            let sets = sets(&data, &[format], DType::F64);
            judge.case(&format!("scalars, {format}"), &text, &sets, Expected::Same);
        }
    }
    judge.verdict(1000);
}

/// Copies store as many entries as the operand: without padding levels, no format stores more, in
/// any write order.
#[test]
fn copies_keep_nnz() {
    for format in ["csr", "dcsr", "coo", "csc", "dcsc", "sparse, hash", "hash, hash"] {
        for (order, input) in [("i, j", "dcsr"), ("j, i", "dcsc")] {
            let text = format!(
                "def f(A):\n    C = tensor(\"{format}\")\n    for {order} in _:\n        C[i,j] = A[i,j]\n    return C\n"
            );
            let program = tamis::Program::parse(&text).unwrap();
            for data in edges(2) {
                let a = data.tensor(input, DType::F64, Value::F64(0.0)).unwrap();
                for check in [false, true] {
                    let options = tamis::run::RunOptions { check, ..tamis::run::RunOptions::default() };
                    let results = tamis::run(&program, &[("A", &a)], &options).unwrap();
                    let c = &results[0];
                    assert_eq!(c.nnz(), a.nnz(), "{format}, {order}, {}, check: {check}", data.what);
                }
            }
        }
    }
}
