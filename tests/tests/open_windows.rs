//! Tests of windows below open levels: how many are visited, in which formats, and with which other
//! operands.

use std::collections::BTreeSet;
use tamis_ir::{Program, Value};
use tamis_tests::convolve::{check, random, visited};
use tamis_tests::generate::Input;
use tamis_tests::lowered::{Engine, Stage, compile};

/// An input with nonzeros at a regular distance.
fn scattered(shape: &[u64], every: usize) -> Input {
    let mut input = random(1, shape, 1);
    for (at, value) in input.values.iter_mut().enumerate() {
        if at % every != 0 {
            *value = Value::I64(0);
        }
    }
    input
}

/// The coordinates of entries.
fn places(input: &Input) -> Vec<Vec<i64>> {
    let is_stored = |value: &&(usize, &Value)| value.1.as_i64() != Some(0);
    let stored = input.values.iter().enumerate().collect::<Vec<_>>();
    let place = |at: usize| {
        let (mut at, mut place) = (at as i64, Vec::new());
        for size in input.shape.iter().rev() {
            place.push(at % *size as i64);
            at /= *size as i64;
        }
        place.reverse();
        place
    };
    stored.iter().filter(is_stored).map(|(at, _)| place(*at)).collect()
}

/// The windows of three per side that contain an entry, inside the tensor or with a border of one.
fn windows(input: &Input, dims: &[usize], border: bool) -> u64 {
    let mut found: BTreeSet<Vec<i64>> = BTreeSet::new();
    for place in places(input) {
        let mut some = vec![Vec::new()];
        for dim in dims {
            let (x, size) = (place[*dim], input.shape[*dim] as i64);
            let range = if border { (x - 1).max(0)..=(x + 1).min(size - 1) } else { (x - 2).max(0)..=x.min(size - 3) };
            some =
                some.into_iter().flat_map(|w: Vec<i64>| range.clone().map(move |i| [&w[..], &[i]].concat())).collect();
        }
        found.extend(some);
    }
    found.len() as u64
}

const ROWS_FIRST: &str = "\
def f(I, F):
    O = tensor(\"csr\")
    for i, j, k, l in _:
        O[i,j] += I[i+k,j+l] * F[k,l]
    return O
";

/// While windows over rows are open, those over columns resume from a cursor per row, in every
/// format.
#[test]
fn windows_over_several_rows() {
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let image = scattered(&[30, 100], 217);
    let wanted = windows(&image, &[0, 1], false);
    for format in [
        "csr",
        "dcsr",
        "coo",
        "dense, hash",
        "hash, hash",
        "bytemap, sparse",
        "sparse, bytemap",
        "dense, blocks",
        "sparse, blocks",
        "blocks, sparse",
        "blocks, blocks",
        "dense, sparse_runs",
        "sparse_runs, sparse",
        "sparse_runs, sparse_runs",
        "runs, sparse",
        "runs, sparse_runs",
        "band, sparse",
        "sparse, band",
    ] {
        let i = image.tensor(format).unwrap();
        let exact = !format.contains("band");
        let j = visited(ROWS_FIRST, &[i, f.clone()], "j");
        // A band stores zeros, too.
        assert!(if exact { j == wanted } else { j >= wanted }, "{format}: {j} visits for {wanted} windows");
    }
}

/// The same with a padding of one, as in network layers.
#[test]
fn windows_across_the_border() {
    let text = "\
def f(I, F):
    O = tensor(\"csr\", shape=(I.shape[0], I.shape[1]))
    for i, j, k, l in _:
        O[i,j] += coalesce(I[~(i+k-1),~(j+l-1)], 0) * F[k,l]
    return O
";
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let image = scattered(&[20, 60], 109);
    let wanted = windows(&image, &[0, 1], true);
    for format in ["csr", "dcsr", "coo", "dense, blocks", "sparse, sparse_runs"] {
        let i = image.tensor(format).unwrap();
        assert_eq!(visited(text, &[i, f.clone()], "j"), wanted, "{format}");
    }
}

/// With negative coefficients fibers are iterated backwards.
#[test]
fn descending_windows() {
    let text = ROWS_FIRST.replace("I[i+k,j+l]", "I[i-k+2,j-l+2]");
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let image = scattered(&[30, 100], 217);
    let wanted = windows(&image, &[0, 1], false);
    for format in ["csr", "dcsr", "coo", "dense, blocks", "sparse, sparse_runs", "sparse_runs, sparse"] {
        let i = image.tensor(format).unwrap();
        assert_eq!(visited(&text, &[i, f.clone()], "j"), wanted, "{format}");
    }
}

/// Strides and dilations.
#[test]
fn strided_and_dilated_windows() {
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let image = scattered(&[31, 101], 53);
    for (subscripts, stride) in [("2*i+k,2*j+l", 2), ("3*i+k,3*j+l", 3)] {
        let text = ROWS_FIRST.replace("i+k,j+l", subscripts);
        let mut found = BTreeSet::new();
        for place in places(&image) {
            let starts =
                |x: i64, size: i64| (0..=(size - 3) / stride).filter(move |i| (0..3).contains(&(x - stride * i)));
            found.extend(starts(place[0], 31).flat_map(|i| starts(place[1], 101).map(move |j| (i, j))));
        }
        for format in ["csr", "dcsr", "coo", "dense, blocks", "sparse, sparse_runs"] {
            let i = image.tensor(format).unwrap();
            assert_eq!(visited(&text, &[i, f.clone()], "j"), found.len() as u64, "{format} {subscripts}");
        }
    }
}

/// Three dimensions: two levels are open when the third is reduced.
#[test]
fn windows_below_two_open_levels() {
    let f = random(2, &[3, 3, 3], 1).tensor("dense").unwrap();
    let scan = scattered(&[12, 14, 40], 397);
    for order in ["i, j, m, k, l, n", "i, j, m, l, k, n", "i, j, k, m, l, n", "i, m, j, k, l, n"] {
        let text = format!(
            "def f(I, F):\n    O = tensor(\"dense\")\n    for {order} in _:\n        O[i,j,m] += I[i+k,j+l,m+n] * F[k,l,n]\n    return O\n"
        );
        let (two, three) = (windows(&scan, &[0, 1], false), windows(&scan, &[0, 1, 2], false));
        for format in [
            "csf",
            "coo",
            "dense, sparse, sparse",
            "dense, dense, sparse",
            "sparse, dense, sparse",
            "sparse, sparse, sparse_runs",
            "dense, sparse, blocks",
            "blocks, sparse, sparse",
        ] {
            let tensors = [scan.tensor(format).unwrap(), f.clone()];
            match order {
                // The level in the middle is open throughout.
                "i, m, j, k, l, n" => {
                    assert_eq!(visited(&text, &tensors, "m"), windows(&scan, &[0, 2], false), "{format}, {order}");
                }
                // Each row in a window over `k` is descended into.
                "i, j, k, m, l, n" => {
                    assert_eq!(visited(&text, &tensors, "j"), two_or_all(&scan, format, two), "{format}, {order}")
                }
                _ => {
                    assert_eq!(visited(&text, &tensors, "j"), two_or_all(&scan, format, two), "{format}, {order}");
                    assert_eq!(visited(&text, &tensors, "m"), three, "{format}, {order}");
                }
            }
        }
    }
}

/// A dense level has every window: below a dense one, all of them; below a list, those of its
/// windows.
fn two_or_all(scan: &Input, format: &str, two: u64) -> u64 {
    let columns = scan.shape[1] - 2;
    match format {
        "dense, dense, sparse" => (scan.shape[0] - 2) * columns,
        "sparse, dense, sparse" => windows(scan, &[0], false) * columns,
        _ => two,
    }
}

/// Lists, runs and masks that the same loop co-iterates are intersected; where every iteration has
/// an effect, windows are segments of the loop.
#[test]
fn windows_of_several_rows_beside_other_operands() {
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let bodies = [
        "O[i,j] += B[i,j] * I[i+k,j+l] * F[k,l]",
        "O[i,j] += (B[i,j] + I[i+k,j+l]) * F[k,l]",
        "O[i,j] += max(B[i,j], I[i+k,j+l])  * F[k,l]",
        "O[i,j] += I[i+k,j+l] * I[i+k,j+l+1] * F[k,l]",
        "O[i,j] += (I[i+k,j+l] + I[i+k,j+l+1]) * F[k,l]",
        "O[i,j] += (I[i+k,j+l] + I[i+k+1,j+l]) * F[k,l] * B[i,j]",
        "O[i,j] += (I[i+k,j+l] if j <= i else 0) * F[k,l]",
        "O[i,j] max= I[i+k,j+l] * F[k,l]",
    ];
    for body in bodies {
        for order in ["i, j, k, l", "j, i, l, k", "i, j, l, k"] {
            for (n, format) in
                ["csr", "coo", "dcsr", "csc", "dense, blocks", "sparse, sparse_runs", "runs, sparse"].iter().enumerate()
            {
                for other in ["csr", "dense", "dense, sparse_runs", "coo"] {
                    let result = ["dense", "csr"][n % 2];
                    let text = format!(
                        "def f(I, F, B):\n    O = tensor(\"{result}\", shape=(B.shape[0], B.shape[1]))\n    for {order} in _:\n        {body}\n    return O\n"
                    );
                    let i = random(n as u64, &[9, 12], 5).tensor(format).unwrap();
                    let b = random(9, &[6, 9], 4).tensor(other).unwrap();
                    check(&text, &[i, f.clone(), b], Engine::Interpreter(5_000_000));
                }
            }
        }
    }
}

/// Entries of a list and windows of several rows are intersected.
#[test]
fn windows_over_several_rows_intersect_a_list() {
    let text = "\
def f(I, F, B):
    O = tensor(\"csr\")
    for i, j, k, l in _:
        O[i,j] += B[i,j] * I[i+k,j+l] * F[k,l]
    return O
";
    let f = random(2, &[3, 3], 1).tensor("dense").unwrap();
    let image = scattered(&[30, 100], 217);
    let mask = scattered(&[28, 98], 3);
    let met: BTreeSet<Vec<i64>> = places(&mask).into_iter().collect();
    let mut wanted = BTreeSet::new();
    for place in places(&image) {
        let around = |x: i64| (x - 2).max(0)..=x;
        let both = around(place[0]).flat_map(|i| around(place[1]).map(move |j| vec![i, j]));
        wanted.extend(both.filter(|window| met.contains(window)));
    }
    for format in ["csr", "dcsr", "coo", "dense, blocks"] {
        let tensors = [image.tensor(format).unwrap(), f.clone(), mask.tensor("csr").unwrap()];
        assert_eq!(visited(text, &tensors, "j"), wanted.len() as u64, "{format}");
    }
}

/// Along columns only: the window in a column is compared with the cursor of its row, without a
/// search.
#[test]
fn windows_of_one_column() {
    let text = "\
def f(I, F):
    O = tensor(\"csr\")
    for i, j, k in _:
        O[i,j] += I[i+k,j] * F[k]
    return O
";
    let f = random(2, &[3], 1).tensor("dense").unwrap();
    let image = scattered(&[30, 100], 17);
    let columns: BTreeSet<(i64, i64)> =
        places(&image).iter().flat_map(|p| ((p[0] - 2).max(0)..=p[0].min(27)).map(|i| (i, p[1]))).collect();
    for format in ["csr", "dcsr", "coo", "dense, blocks", "sparse, sparse_runs", "sparse_runs, sparse", "dense, hash"] {
        let tensors = [image.tensor(format).unwrap(), f.clone()];
        assert_eq!(visited(text, &tensors, "j"), columns.len() as u64, "{format}");
    }
    let program = Program::parse(text).unwrap();
    let (lowered, _) = compile(&program, &[image.tensor("csr").unwrap(), f], Stage::Lowered).unwrap();
    assert!(lowered.warnings.is_empty(), "{:?}", lowered.warnings);
    assert!(!lowered.kernel.to_string().contains("search"), "{}", lowered.kernel);
}

/// Remaining searches are reported.
#[test]
fn searches_of_windows_are_reported() {
    let text = ROWS_FIRST.replace("csr", "dense").replace("i, j, k, l", "j, i, k, l");
    let i = random(1, &[6, 7], 3).tensor("csr").unwrap();
    let f = random(2, &[3, 3], 2).tensor("dense").unwrap();
    let reported = |text: &str| -> Vec<String> {
        let program = Program::parse(text).unwrap();
        let (lowered, _) = compile(&program, &[i.clone(), f.clone()], Stage::Lowered).unwrap();
        lowered.warnings.iter().map(|d| d.to_string()).collect()
    };
    let searched = reported(&text);
    assert!(searched.iter().any(|d| d.contains("still active when `j` starts")), "{searched:?}");
    for better in ["i, k, j, l", "i, j, k, l"] {
        assert_eq!(reported(&text.replace("j, i, k, l", better)), Vec::<String>::new(), "{better}");
    }
}
