//! Tests of dilated windows and of windows of fibers that a loop enters: each loop visits exactly
//! the iterations below which an element is read.

use std::collections::BTreeSet;
use tamis_ir::{Program, Value};
use tamis_tensor::Tensor;
use tamis_tests::convolve::{check, random};
use tamis_tests::counted::count;
use tamis_tests::lowered::Engine;

/// A tensor with an element at each place of a set.
fn tensor(shape: &[u64], places: &BTreeSet<Vec<i64>>, format: &str) -> Tensor {
    let mut input = random(1, shape, 1);
    input.values.fill(Value::I64(0));
    for (k, place) in places.iter().enumerate() {
        let cell = place.iter().zip(shape).fold(0, |cell, (at, size)| cell * *size as i64 + at);
        input.values[cell as usize] = Value::I64(k as i64 % 5 + 1);
    }
    input.tensor(format).unwrap()
}

/// A loop: its index and its trip count.
type Loop = (&'static str, i64);

/// Indices with their coefficients.
type Terms = &'static [(&'static str, i64)];

/// A subscript `sum(coefficient * index) + constant`.
#[derive(Clone)]
struct Subscript {
    terms: Vec<(&'static str, i64)>,
    constant: i64,
}

impl Subscript {
    fn new(terms: &[(&'static str, i64)], constant: i64) -> Subscript {
        Subscript { terms: terms.to_vec(), constant }
    }

    fn text(&self) -> String {
        let terms: Vec<String> = self.terms.iter().map(|(name, by)| format!("{by}*{name}")).collect();
        format!("{} + {}", terms.join(" + "), self.constant)
    }

    fn at(&self, loops: &[Loop], iteration: &[i64]) -> i64 {
        let value = |name: &str| loops.iter().zip(iteration).find(|((n, _), _)| *n == name).map_or(0, |(_, x)| *x);
        self.constant + self.terms.iter().map(|(name, by)| by * value(name)).sum::<i64>()
    }

    fn range(&self, loops: &[Loop]) -> (i64, i64) {
        let extremes = self.terms.iter().map(|(name, by)| {
            let count = loops.iter().find(|(n, _)| n == name).map_or(1, |(_, count)| *count);
            by * (count - 1)
        });
        extremes.fold((self.constant, self.constant), |(low, high), x| (low + x.min(0), high + x.max(0)))
    }
}

/// The iterations of each loop below which an element is read, by brute force.
fn wanted(loops: &[Loop], subscripts: &[Subscript], places: &BTreeSet<Vec<i64>>) -> Vec<u64> {
    let mut found: Vec<BTreeSet<Vec<i64>>> = vec![BTreeSet::new(); loops.len()];
    let mut iterations: Vec<Vec<i64>> = vec![Vec::new()];
    for (_, count) in loops {
        iterations = iterations.iter().flat_map(|i| (0..*count).map(move |x| [&i[..], &[x]].concat())).collect();
    }
    for iteration in iterations {
        let place: Vec<i64> = subscripts.iter().map(|s| s.at(loops, &iteration)).collect();
        if places.contains(&place) {
            found.iter_mut().enumerate().for_each(|(k, prefixes)| {
                prefixes.insert(iteration[..=k].to_vec());
            });
        }
    }
    found.iter().map(|prefixes| prefixes.len() as u64).collect()
}

/// Runs the sum over all loops, of results with the indices `i`, `j`, and checks the visits of each
/// loop but the innermost.
fn exact(loops: &[Loop], subscripts: &[Subscript], permissive: bool, every: usize, formats: &[&str]) {
    let outer: Vec<&str> = ["i", "j"].into_iter().filter(|n| loops.iter().any(|(name, _)| name == n)).collect();
    let sizes: Vec<String> =
        outer.iter().map(|n| loops.iter().find(|(name, _)| name == n).unwrap().1.to_string()).collect();
    let shape: Vec<u64> = subscripts
        .iter()
        .map(|s| if permissive { s.range(loops).1 - 2 } else { s.range(loops).1 + 1 } as u64)
        .collect();
    assert!(permissive || subscripts.iter().all(|s| s.range(loops).0 >= 0));
    let cells: u64 = shape.iter().product();
    let places: BTreeSet<Vec<i64>> = (0..cells as usize)
        .filter(|cell| (cell * cell + 3 * cell) % every < 1 + usize::from(cell % 7 == 3))
        .map(|cell| {
            let (mut rest, mut place) = (cell as i64, Vec::new());
            for size in shape.iter().rev() {
                place.insert(0, rest % *size as i64);
                rest /= *size as i64;
            }
            place
        })
        .collect();
    let mut text = format!("def f(C):\n    O = tensor(\"dense\", shape=({},))\n", sizes.join(","));
    let mut pad = "    ".to_string();
    for (name, count) in loops {
        text += &format!("{pad}for {name} in range({count}):\n");
        pad += "    ";
    }
    let read: Vec<String> =
        subscripts.iter().map(|s| if permissive { format!("~({})", s.text()) } else { s.text() }).collect();
    let read = format!("C[{}]", read.join(", "));
    let read = if permissive { format!("coalesce({read}, 0)") } else { read };
    let inner: Vec<String> = loops.iter().enumerate().map(|(k, (name, _))| format!("{}*{name}", k + 1)).collect();
    text += &format!("{pad}O[{}] += {read} * ({} + 1)\n    return O\n", outer.join(","), inner.join(" + "));
    let wanted = wanted(loops, subscripts, &places);
    let program = Program::parse(&text).unwrap();
    for format in formats {
        let c = tensor(&shape, &places, format);
        check(&text, std::slice::from_ref(&c), Engine::Interpreter(1 << 26));
        let counted = count(&program, std::slice::from_ref(&c), Engine::Interpreter(1 << 26)).unwrap();
        for ((name, _), wanted) in loops.iter().zip(&wanted).take(loops.len() - 1) {
            let seen = counted.visits(name);
            assert_eq!(seen, *wanted, "{format}: visits of {name}\n{text}");
        }
    }
}

/// Formats of a vector that locate entries without a scan of all coordinates.
const LISTS: [&str; 5] = ["sparse", "hash", "bytemap", "sparse_runs", "blocks"];

/// The same for both dimensions of a matrix.
const MATRICES: [&str; 7] =
    ["dcsr", "coo", "hash, hash", "bytemap, sparse", "sparse, blocks", "sparse, sparse_runs", "sparse_runs, sparse"];

/// In a dilated window only the coordinates that inner loops reach count.
#[test]
fn dilated_windows_are_exact() {
    let cases: &[(&[Loop], Terms, i64)] = &[
        (&[("i", 25), ("k", 3)], &[("i", 1), ("k", 2)], 0),
        (&[("i", 25), ("k", 5)], &[("k", 2), ("i", 1)], 0),
        (&[("i", 25), ("k", 4)], &[("i", 1), ("k", 3)], 0),
        (&[("i", 25), ("k", 3)], &[("i", 2), ("k", 2)], 1),
        (&[("i", 25), ("k", 4)], &[("i", 3), ("k", 2)], 0),
        (&[("i", 25), ("k", 3)], &[("i", 1), ("k", -2)], 8),
        (&[("i", 25), ("k", 3)], &[("i", -1), ("k", 2)], 24),
        (&[("i", 25), ("k", 3)], &[("i", -2), ("k", -3)], 60),
        (&[("i", 25), ("k", 3), ("l", 2)], &[("i", 1), ("k", 2), ("l", 5)], 0),
        (&[("i", 25), ("k", 2), ("l", 3)], &[("i", 1), ("k", 4), ("l", 6)], 0),
        (&[("i", 25), ("k", 4), ("l", 2)], &[("i", 2), ("k", 3), ("l", 7)], 0),
        (&[("i", 25), ("k", 2), ("l", 2)], &[("i", 1), ("k", 2), ("l", 2)], 0),
        (&[("i", 25), ("k", 2), ("l", 3)], &[("i", -1), ("k", 4), ("l", 7)], 25),
        (&[("i", 25), ("k", 2), ("l", 3)], &[("i", 1), ("k", 1), ("l", 5)], 0),
        (&[("i", 25), ("k", 3), ("l", 3)], &[("i", 1), ("k", 2), ("l", 1)], 0),
        (&[("i", 25), ("k", 2), ("l", 2), ("m", 2)], &[("i", 1), ("k", 2), ("l", 7), ("m", 17)], 0),
        (&[("i", 25), ("k", 2), ("l", 3), ("m", 2)], &[("i", -1), ("k", 3), ("l", -5), ("m", 11)], 60),
    ];
    for (loops, terms, constant) in cases {
        let subscript = Subscript::new(terms, *constant);
        exact(loops, std::slice::from_ref(&subscript), false, 11, &LISTS);
        exact(loops, &[Subscript { constant: constant - 3, ..subscript }], true, 11, &LISTS);
    }
}

/// Windows over columns of several rows at once: those whose rows hold no element in them are not
/// visited, nor is a row without one in the window at hand.
#[test]
fn rows_without_elements_in_a_window_are_not_visited() {
    let cases: &[([i64; 2], [i64; 2])] = &[([1, 1], [1, 1]), ([1, 2], [1, 2]), ([2, 1], [1, 3]), ([1, 3], [-1, 2])];
    for (rows, columns) in cases {
        let start = if columns[0] < 0 { 13 } else { 0 };
        let subscripts = [
            Subscript::new(&[("i", rows[0]), ("k", rows[1])], 0),
            Subscript::new(&[("j", columns[0]), ("l", columns[1])], start),
        ];
        // Groups of equal coordinates are searched for at strides.
        let formats: Vec<&str> = MATRICES.into_iter().filter(|format| *format != "coo" || rows[1] == 1).collect();
        for order in [["i", "j", "k", "l"], ["i", "k", "j", "l"]] {
            let loops = order.map(|name| (name, if "ij".contains(name) { 14 } else { 3 }));
            exact(&loops, &subscripts, false, 29, &formats);
            let outside = subscripts.clone().map(|s| Subscript { constant: s.constant - 2, ..s });
            exact(&loops, &outside, true, 29, &formats);
        }
    }
}

/// The number of visits does not grow with what lies between the coordinates of windows.
#[test]
fn elements_between_coordinates_cost_no_visits() {
    let text = "def f(C):\n    O = tensor(\"dense\", shape=(64,))\n    for i in range(64):\n        for k in range(8):\n            O[i] += C[1024*i + 64*k] * (k + 1)\n    return O\n";
    let places: BTreeSet<Vec<i64>> = (0..64 * 1024i64).filter(|x| x % 64 != 0).step_by(3).map(|x| vec![x]).collect();
    for format in ["sparse", "hash", "bytemap", "sparse_runs", "blocks"] {
        let c = tensor(&[65536], &places, format);
        let counted = count(&Program::parse(text).unwrap(), &[c], Engine::Interpreter(1 << 26)).unwrap();
        assert_eq!(counted.visits("i"), 0, "{format}");
    }
}
