//! Exhaustive tests of convolutions: every loop order, in every format, against the interpreter.
//!
//! Of the orders of three dimensions and more, each format is tried with a sample, the same in
//! every run; `TAMIS_ALL_ORDERS=1 cargo test -p tamis-tests --test convolutions` tries all of them.

use tamis_tests::convolve::{Family, check, random};
use tamis_tests::lowered::{Engine, count};

#[test]
fn every_order_of_one_dimension() {
    let formats = [
        "dense",
        "sparse",
        "hash",
        "bytemap",
        "runs",
        "sparse_runs",
        "blocks",
        "band",
        "coo",
        "(i) -> (i/4, i%4): sparse, dense",
    ];
    for body in [
        "O[i] += I[i+k] * F[k]",
        "O[i] += I[2*i+k+1] * F[k]",
        "O[i] += I[i+2*k] * F[k]",
        "O[i] += I[3*i+2*k] * F[k]",
        "O[i] += I[i-k+3] * F[k]",
        "O[i] += I[2*i-3*k+9] * F[k]",
        "O[i] += coalesce(I[~(i+k-2)], 0) * F[k]",
        "O[i] = max(O[i], I[i+k] * F[k])",
    ] {
        let results = ["\"dense\"", "\"sparse\"", "\"sparse_runs\""];
        let family = Family {
            loops: &["i", "k"],
            body,
            input: &[23],
            filter: &[4],
            formats: &formats,
            filters: &["dense", "sparse", "sparse"],
            results: &results,
            most: 2,
        };
        assert_eq!(family.check(), 2 * formats.len());
    }
}

/// Two-dimensional formats.
const TWO: [&str; 15] = [
    "csr",
    "csc",
    "dcsr",
    "dcsc",
    "coo",
    "dense",
    "dense, blocks",
    "blocks, sparse",
    "dense, sparse_runs",
    "sparse, sparse_runs",
    "sparse_runs, sparse",
    "runs, blocks",
    "sparse, band",
    "band, sparse",
    "bsr(2,2)",
];

#[test]
fn every_order_of_two_dimensions() {
    for body in [
        "O[i,j] += I[i+k,j+l] * F[k,l]",
        "O[i,j] += I[2*i+k,3*j+l] * F[k,l]",
        "O[i,j] += I[i+2*k,j+3*l] * F[k,l]",
        "O[i,j] += I[i-k+2,j+l] * F[k,l]",
        "O[i,j] += I[2*i-k+2,j-2*l+2] * F[k,l]",
        "O[i,j] += coalesce(I[~(i+k-1),~(j+l-1)], 0) * F[k,l]",
    ] {
        let family = Family {
            loops: &["i", "j", "k", "l"],
            body,
            input: &[9, 11],
            filter: &[3, 2],
            formats: &TWO,
            filters: &["dense", "csr", "csr"],
            results: &["\"dense\"", "\"csr\"", "\"coo\""],
            most: 24,
        };
        assert_eq!(family.check(), 24 * TWO.len());
    }
}

#[test]
fn every_order_of_three_dimensions() {
    let formats = [
        "csf",
        "coo",
        "dense, dense, sparse",
        "dense, sparse, sparse",
        "dense, sparse, dense",
        "sparse, dense, blocks",
        "dense, sparse, sparse_runs",
        "blocks, sparse, sparse",
        "sparse_runs, sparse, sparse",
        "(i,j,k) -> (k,j,i): sparse, sparse, sparse",
    ];
    let family = Family {
        loops: &["i", "j", "m", "k", "l", "n"],
        body: "O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]",
        input: &[5, 6, 5],
        filter: &[2, 3, 2],
        formats: &formats,
        filters: &["dense", "csf", "csf"],
        results: &["\"dense\"", "\"csf\""],
        most: 72,
    };
    assert!(family.check() >= 72 * formats.len());
}

/// Network layers: batches, channels, and padding.
#[test]
fn every_order_of_layers() {
    let formats = [
        "dense, dense, dense, sparse",
        "dense, sparse, sparse, sparse",
        "dense, sparse, sparse, dense",
        "csf",
        "coo",
        "dense, blocks, sparse, sparse_runs",
    ];
    let family = Family {
        loops: &["n", "h", "w", "g", "r", "q", "c"],
        body: "O[n,h,w,g] += I[n,h+r,w+q,c] * F[r,q,c,g]",
        input: &[2, 4, 5, 3],
        filter: &[3, 2, 3, 2],
        formats: &formats,
        filters: &["dense", "csf", "dense, dense, sparse, sparse"],
        results: &["\"dense\""],
        most: 60,
    };
    // All 5,040 orders are many, but all are distinct.
    assert!(family.check() >= 60 * formats.len());
    let bordered =
        Family { body: "O[n,h,w,g] += coalesce(I[n,~(h+r-1),~(w+q-1),c], 0) * F[r,q,c,g]", most: 20, ..family };
    assert!(bordered.check() >= 20 * formats.len());
}

/// Grouped convolutions: each group of channels has its own filters.
#[test]
fn every_order_of_groups() {
    let formats = ["dense, dense, sparse", "csf", "coo", "sparse, dense, blocks", "dense, sparse, sparse_runs"];
    let family = Family {
        loops: &["g", "o", "i", "c", "k"],
        body: "O[g,o,i] += I[g,c,2*i+k] * F[g,o,c,k]",
        input: &[2, 3, 9],
        filter: &[2, 2, 3, 3],
        formats: &formats,
        filters: &["dense", "csf", "dense, sparse, dense, sparse"],
        results: &["\"dense\"", "\"csf\""],
        most: 60,
    };
    assert!(family.check() >= 60 * formats.len());
}

/// Transposed convolutions: entries are scattered, into results that accept any order or use a
/// workspace.
#[test]
fn every_order_of_transposed_convolutions() {
    let one = Family {
        loops: &["i", "k"],
        body: "O[2*i+k] += I[i] * F[k]",
        input: &[9],
        filter: &[4],
        formats: &["sparse", "coo", "blocks", "sparse_runs", "dense"],
        filters: &["dense", "sparse"],
        results: &[
            "\"dense\", shape=(20,)",
            "\"sparse\", shape=(20,)",
            "\"bytemap\", shape=(20,)",
            "\"hash\", shape=(20,)",
        ],
        most: 2,
    };
    assert_eq!(one.check(), 10);
    let two = Family {
        loops: &["i", "j", "k", "l"],
        body: "O[i+k,j+l] += I[i,j] * F[k,l]",
        input: &[6, 7],
        filter: &[3, 2],
        formats: &TWO,
        filters: &["dense", "csr"],
        results: &[
            "\"dense\", shape=(8, 8)",
            "\"csr\", shape=(8, 8)",
            "\"coo\", shape=(8, 8)",
            "\"dense, bytemap\", shape=(8, 8)",
        ],
        most: 24,
    };
    assert_eq!(two.check(), 24 * TWO.len());
    let down = Family {
        body: "O[i-k+2,2*j+l] += I[i,j] * F[k,l]",
        results: &["\"dense\", shape=(8, 14)", "\"csr\", shape=(8, 14)"],
        ..two
    };
    assert_eq!(down.check(), 24 * TWO.len());
}

/// Several summed indices, in several operands.
#[test]
fn every_order_of_sums_of_indices() {
    for (body, input) in [
        ("O[i] += I[i+j+k] * F[j,k]", 12),
        ("O[i] += I[i+2*j+k] * F[j,k] * I[i+k]", 14),
        ("O[i] += I[i+j] * I[j+k] * F[j,k]", 12),
        ("O[i] += I[i-j+k+2] * F[j,k]", 12),
    ] {
        let formats = ["sparse", "coo", "blocks", "sparse_runs", "runs", "hash", "dense", "band"];
        let family = Family {
            loops: &["i", "j", "k"],
            body,
            input: &[input],
            filter: &[3, 2],
            formats: &formats,
            filters: &["dense", "csr", "coo"],
            results: &["\"dense\"", "\"sparse\""],
            most: 6,
        };
        assert_eq!(family.check(), 6 * formats.len());
    }
}

/// In machine code in check mode.
#[test]
fn machine_code_of_open_windows() {
    for (order, format) in [
        ("i, j, m, k, l, n", "csf"),
        ("i, j, m, k, l, n", "coo"),
        ("i, m, j, n, l, k", "dense, blocks, sparse"),
        ("j, i, m, k, n, l", "sparse_runs, sparse, sparse_runs"),
    ] {
        let text = format!(
            "def f(I, F):\n    O = tensor(\"csf\")\n    for {order} in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n"
        );
        let i = random(1, &[7, 8, 9], 9).tensor(format).unwrap();
        let f = random(2, &[3, 2, 3], 2).tensor("dense").unwrap();
        check(&text, &[i, f], Engine::Checked);
    }
}

/// A box filter over a run-length encoded image does work in proportion to its runs, along rows and
/// then down the columns: ten times as many pixels cost the same.
#[test]
fn box_filter_work_is_proportional_to_runs() {
    let text = "\
def f(I):
    T = tensor(\"dense, sparse_runs\")
    for y, x in _:
        for k in range(5):
            T[y,x] += I[y,x+k]
    O = tensor(\"dense, sparse_runs\", shape=(I.shape[0] - 2, I.shape[1] - 4))
    for y in range(I.shape[0] - 2):
        for x in _:
            O[y,x] = T[y,x] + T[y+1,x] + T[y+2,x]
    return O
";
    let program = tamis_ir::Program::parse(text).unwrap();
    let image = |scale: u64| {
        // Six rows of three runs, of which the second starts earlier in each row.
        let width = 120 * scale;
        let value = |y: u64, x: u64| match x / scale {
            10..30 => 1,
            at if (60 - 3 * y..90 - 3 * y).contains(&at) => 2,
            100..110 => 3 + y as i64,
            _ => 0,
        };
        let values = (0..6).flat_map(|y| (0..width).map(move |x| tamis_ir::Value::I64(value(y, x))));
        let shape = vec![6, width];
        tamis_tests::generate::Input { shape, values: values.collect(), dtype: tamis_ir::DType::I64 }
    };
    check(text, &[image(1).tensor("dense, sparse_runs").unwrap()], Engine::Interpreter(1_000_000));
    let cost = |scale| count(&program, &[image(scale).tensor("dense, sparse_runs").unwrap()], 1_000_000).unwrap();
    // Windows are short relative to the runs.
    let (small, large) = (cost(10), cost(100));
    assert_eq!(small, large);
    // A window of five and a run have four positions each where their overlap starts and ends.
    assert!(small < 6 * 3 * 500, "{small}");
}
