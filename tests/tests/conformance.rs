//! Conformance tests of reads: every level at every position, under every protocol, in every loop
//! order, on edge-case data.

use tamis_ir::format::LevelKind;
use tamis_ir::{Code, DType, Format, Value};
use tamis_tensor::Tensor;
use tamis_tensor::levels::level_type;
use tamis_tests::conform::{Data, Expected, Judge, edges, every_format, wild};

const INDICES: [&str; 3] = ["i", "j", "k"];

/// The data in a format, if they fit, each in a set with other operands.
fn sets(all: &[Data], format: &str, dtype: DType, others: &dyn Fn(&Data) -> Vec<Tensor>) -> Vec<Vec<Tensor>> {
    let tensor = |data: &Data| Some([vec![data.tensor(format, dtype, Value::zero(dtype))?], others(data)].concat());
    all.iter().filter_map(tensor).collect()
}

fn subscripts(rank: usize, protocol: &str) -> String {
    let one = |index: &&str| if protocol.is_empty() { (*index).to_string() } else { format!("{protocol}({index})") };
    INDICES[..rank].iter().map(one).collect::<Vec<String>>().join(", ")
}

/// The loop order that follows the levels of a format, and the reversed one.
fn orders(format: &str, rank: usize) -> [String; 2] {
    let order = Format::parse(format, rank).unwrap().dim_order().unwrap();
    let names: Vec<&str> = order.iter().map(|dim| INDICES[*dim]).collect();
    let reversed: Vec<&str> = names.iter().rev().copied().collect();
    [names.join(", "), reversed.join(", ")]
}

/// The expected outcome of `gallop` in storage order, as each level declares.
fn gallops(format: &str, rank: usize) -> bool {
    let format = Format::parse(format, rank).unwrap();
    format.levels().iter().all(|level| level_type(level.kind).is_ok_and(|row| row.capabilities.gallop))
}

/// A sum, a dense copy that reads fill values, and a product with another coordinate list.
fn read(judge: &mut Judge, format: &str, rank: usize, protocol: &str, order: &str, wanted: Expected) {
    let at = subscripts(rank, protocol);
    let bare = subscripts(rank, "");
    let last = INDICES[rank - 1];
    let what = format!("{format} by `{protocol}`, loops {order}");
    let all = edges(rank);
    let sum = format!("def f(A):\n    s = scalar(0)\n    for {order} in _:\n        s += A[{at}]\n    return s\n");
    judge.case(&what, &sum, &sets(&all, format, DType::I64, &|_| Vec::new()), wanted);
    if rank == 3 {
        return;
    }
    let copy = format!(
        "def f(A):\n    y = tensor(\"dense\")\n    for {order} in _:\n        y[{bare}] = 2 * A[{at}] + 1\n    return y\n"
    );
    judge.case(&what, &copy, &sets(&all, format, DType::F64, &|_| Vec::new()), wanted);
    let product = format!(
        "def f(A, x):\n    y = tensor(\"dense\")\n    for {order} in _:\n        y[{last}] += A[{at}] * x[{last}]\n    return y\n"
    );
    let vector = |data: &Data| {
        let n = data.shape[rank - 1];
        let cells: Vec<Vec<u64>> = (0..n).filter(|c| c % 2 == 1).map(|c| vec![c]).collect();
        let numbers = (0..cells.len()).map(|k| k as f64 + 1.0).collect();
        let x = Data { what: "a list", shape: vec![n], cells, numbers };
        x.tensor("sparse", DType::F64, Value::F64(0.0)).into_iter().collect()
    };
    let mut data = all;
    data.push(wild(rank));
    judge.case(&what, &product, &sets(&data, format, DType::F64, &vector), wanted);
}

fn read_all(rank: usize, protocols: &[&str]) -> Judge {
    let mut judge = Judge::default();
    for format in &every_format(rank) {
        for protocol in protocols {
            let [concordant, discordant] = orders(format, rank);
            let wanted = match *protocol {
                "gallop" if !gallops(format, rank) => Expected::Refused(Code::E0608),
                _ => Expected::Same,
            };
            read(&mut judge, format, rank, protocol, &concordant, wanted);
            // Against the level order a tensor is searched; levels that gallop are looked up, too.
            if rank > 1 && *protocol != "gallop" {
                read(&mut judge, format, rank, protocol, &discordant, Expected::Same);
            }
        }
    }
    judge
}

#[test]
fn vectors_are_read() {
    read_all(1, &["", "walk", "follow", "gallop"]).verdict(150);
}

#[test]
fn matrices_are_read() {
    read_all(2, &["", "follow"]).verdict(1000);
}

#[test]
fn matrices_are_read_by_protocol() {
    read_all(2, &["walk", "gallop"]).verdict(700);
}

#[test]
fn tensors_are_read() {
    read_all(3, &["", "gallop"]).verdict(1000);
}

/// The table says which levels gallop, and a diagnostic names the others.
#[test]
fn lists_gallop_and_others_do_not() {
    let gallop = |kind| level_type(kind).unwrap().capabilities.gallop;
    assert!(gallop(LevelKind::Sparse) && gallop(LevelKind::Hash) && gallop(LevelKind::Bytemap));
    assert!(gallop(LevelKind::SparseRuns) && gallop(LevelKind::Blocks));
    // Their segments are adjacent, or there is only one.
    assert!(!gallop(LevelKind::Runs) && !gallop(LevelKind::Interval) && !gallop(LevelKind::Band));
    assert!(!gallop(LevelKind::Dense) && !gallop(LevelKind::Singleton));
}

/// Each level between others, with one protocol per level.
#[test]
fn mixed_protocols() {
    let mut judge = Judge::default();
    let data = edges(2);
    for format in ["csr", "dcsr", "sparse, hash", "bytemap, sparse", "hash, bytemap", "coo"] {
        for (outer, inner) in [("walk", "gallop"), ("gallop", "follow"), ("follow", "walk"), ("follow", "follow")] {
            if outer == "gallop" && format == "csr" || inner == "gallop" && format == "coo" {
                continue;
            }
            let text = format!(
                "def f(A, B):\n    s = scalar(0.0)\n    y = tensor(\"dense\")\n    for i, j in _:\n        s += A[{outer}(i), {inner}(j)] * B[i,j]\n        y[i] max= A[{outer}(i), {inner}(j)]\n    return s, y\n"
            );
            let other = |data: &Data| data.tensor("dcsr", DType::F64, Value::F64(0.0)).into_iter().collect();
            let sets = sets(&data, format, DType::F64, &other);
            judge.case(&format!("{format} by {outer}, {inner}"), &text, &sets, Expected::Same);
        }
    }
    judge.verdict(150);
}

/// Any fill value.
#[test]
fn fills_are_read() {
    let mut judge = Judge::default();
    let data = edges(2);
    let texts = [
        "def f(A):\n    s = scalar(0.0)\n    m = scalar(inf)\n    for i, j in _:\n        s += A[i,j]\n        m min= A[i,j]\n    return s, m\n",
        "def f(A):\n    y = tensor(\"dense\", fill=1)\n    for i, j in _:\n        y[i] *= A[i,j]\n    return y\n",
        "def f(A):\n    y = tensor(\"dense\")\n    for j, i in _:\n        y[j] += A[i,j] * A[i,j]\n    return y\n",
    ];
    for (number, format) in every_format(2).iter().enumerate() {
        for (k, fill) in [1.0, -2.5, f64::INFINITY, f64::NAN].into_iter().enumerate() {
            let fill = Value::F64(fill);
            let sets: Vec<Vec<Tensor>> =
                data.iter().filter_map(|data| Some(vec![data.tensor(format, DType::F64, fill)?])).collect();
            let text = texts[(number + k) % texts.len()];
            judge.case(&format!("{format}, fill {fill}"), text, &sets, Expected::Same);
        }
    }
    judge.verdict(500);
}

/// Every value type, in every level as the innermost one, and patterns.
#[test]
fn types_are_read() {
    let mut judge = Judge::default();
    let dtypes =
        [DType::Bool, DType::I8, DType::I32, DType::I64, DType::U64, DType::F32, DType::F64, DType::C64, DType::C128];
    let mut data = edges(2);
    data.retain(|data| data.shape.iter().all(|n| *n > 0));
    let sum = "def f(A):\n    s = scalar(0)\n    y = tensor(\"dense\")\n    for i, j in _:\n        s += A[i,j]\n        y[i,j] = A[i,j]\n    return s, y\n";
    let float = "def f(A):\n    s = scalar(0.0, dtype=\"c128\")\n    y = tensor(\"dense\")\n    for i, j in _:\n        s += A[i,j]\n        y[i,j] = A[i,j]\n    return s, y\n";
    for format in ["dense", "csr", "dcsr", "coo", "dense, hash", "dense, bytemap", "bytemap, dense"] {
        for dtype in dtypes {
            let text = if dtype.kind() >= tamis_ir::Kind::Float { float } else { sum };
            let sets = sets(&data, format, dtype, &|_| Vec::new());
            judge.case(&format!("{format} of {dtype}"), text, &sets, Expected::Same);
        }
    }
    let count = "def f(A):\n    n = scalar(0)\n    y = tensor(\"dense\")\n    for i, j in _:\n        n += A[i,j]\n        if A[i,j]:\n            y[j] += 1\n    return n, y\n";
    for format in &every_format(2) {
        if format.ends_with("dense") {
            continue;
        }
        let sets = sets(&data, &format!("{format}; pattern"), DType::Bool, &|_| Vec::new());
        judge.case(&format!("{format}; pattern"), count, &sets, Expected::Same);
    }
    judge.verdict(400);
}
