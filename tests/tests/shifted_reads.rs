//! Tests of shifted reads over runs: windows over runs that touch, start and end at edges, and
//! repeated rows.

use tamis_ir::{DType, Format, Value};
use tamis_tensor::{IndexArray, LevelArrays, Tensor};
use tamis_tests::conform::{Expected, Judge, edges, structured};

/// A deterministic pseudo-random generator.
struct RunsRng(u64);

impl RunsRng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    /// Runs in `0..size`, one in three of which touches the previous one.
    fn runs(&mut self, size: u32) -> Vec<(u32, u32)> {
        let (mut runs, mut at) = (Vec::new(), 0);
        loop {
            let gap = if self.below(3) == 0 { 0 } else { self.below(3) as u32 };
            let (start, end) = (at + gap, at + gap + 1 + self.below(4) as u32);
            if end > size {
                return runs;
            }
            runs.push((start, end));
            at = end;
        }
    }
}

/// `dense, sparse_runs; pattern`, or with rows that repeat `runs, sparse_runs; pattern`.
fn image(random: &mut RunsRng, shape: [u32; 2], rows_once: bool) -> Tensor {
    let [rows, columns] = shape;
    let mut ends: Vec<u32> = Vec::new();
    match rows_once {
        true => {
            let mut end = 0;
            while end < rows {
                end = rows.min(end + 1 + random.below(4) as u32);
                ends.push(end);
            }
        }
        false => ends.extend(1..=rows),
    }
    let (mut pos, mut start, mut end) = (vec![0u32], Vec::new(), Vec::new());
    for _ in &ends {
        let runs = random.runs(columns);
        start.extend(runs.iter().map(|run| run.0));
        end.extend(runs.iter().map(|run| run.1));
        pos.push(start.len() as u32);
    }
    let outer = match rows_once {
        true => LevelArrays::new([("pos", IndexArray::from(vec![0u32, ends.len() as u32])), ("end", ends.into())]),
        false => LevelArrays::default(),
    };
    let inner = LevelArrays::new([("pos", IndexArray::from(pos)), ("start", start.into()), ("end", end.into())]);
    let format = if rows_once { "runs, sparse_runs; pattern" } else { "dense, sparse_runs; pattern" };
    let format = Format::parse(format, 2).expect("a format");
    let shape = shape.map(u64::from);
    Tensor::from_parts(&shape, &format, vec![outer, inner], None, Value::Bool(false)).expect("runs in order")
}

fn images(rows_once: bool) -> Vec<Vec<Tensor>> {
    let mut random = RunsRng(7);
    let shapes = [[0, 0], [1, 1], [1, 2], [2, 1], [3, 3], [4, 9], [9, 30], [17, 60], [5, 0], [0, 5]];
    shapes.into_iter().flat_map(|shape| [shape; 4]).map(|shape| vec![image(&mut random, shape, rows_once)]).collect()
}

/// Statements on `I[y,x]` and shifted rows and columns, into a result of this format.
fn program(format: &str, value: &str) -> String {
    format!("def f(I):\n    O = tensor(\"{format}\")\n    for y, x in _:\n        O[y,x] = {value}\n    return O\n")
}

/// A shifted access, with the value outside of bounds.
fn at(dy: i64, dx: i64, outside: &str) -> String {
    let sub = |name: &str, by: i64| match by {
        0 => name.to_string(),
        by if by < 0 => format!("~({name}-{})", -by),
        by => format!("~({name}+{by})"),
    };
    match (dy, dx) {
        (0, 0) => "I[y,x]".to_string(),
        _ => format!("coalesce(I[{}, {}], {outside})", sub("y", dy), sub("x", dx)),
    }
}

const WINDOWS: [&[i64]; 8] =
    [&[-1, 0, 1], &[0, 1], &[-1, 0], &[-2, -1, 0, 1], &[0, 2], &[-1, 1], &[1, 2, 3], &[-3, 0, 1]];

#[test]
fn windows_along_rows() {
    let mut judge = Judge::sharing(4);
    for rows_once in [false, true] {
        let sets = images(rows_once);
        for window in WINDOWS {
            for outside in ["True", "False"] {
                for word in [" and ", " or "] {
                    let value: Vec<String> = window.iter().map(|dx| at(0, *dx, outside)).collect();
                    for format in ["dense, sparse_runs; pattern", "runs, sparse_runs; pattern", "dense; element(False)"]
                    {
                        let text = program(format, &value.join(word));
                        judge.case(&format!("{window:?}, rows once: {rows_once}"), &text, &sets, Expected::Same);
                    }
                }
            }
        }
    }
    judge.verdict(2000);
}

#[test]
fn repeated_rows() {
    let mut judge = Judge::sharing(4);
    for rows_once in [false, true] {
        let sets = images(rows_once);
        for window in WINDOWS {
            for outside in ["True", "False"] {
                let value: Vec<String> = window.iter().map(|dy| at(*dy, 0, outside)).collect();
                for format in
                    ["sparse_runs, sparse_runs; pattern", "runs, sparse_runs; pattern", "dense; element(False)"]
                {
                    let text = program(format, &value.join(" and "));
                    judge.case(&format!("rows {window:?}, rows once: {rows_once}"), &text, &sets, Expected::Same);
                }
            }
        }
    }
    judge.verdict(1000);
}

/// Rows between two touching rows need not be read, for idempotent operators. With gaps between
/// rows, other operators, and rows that are used twice, they must be.
#[test]
fn rows_between_others() {
    let windows: [&[i64]; 6] = [&[-1, 0, 1], &[-2, -1, 0, 1, 2], &[-1, 0, 2], &[1, 2, 3], &[-3, -1, 0, 4], &[0, 2, 4]];
    let mut judge = Judge::sharing(4);
    let numbers = |image: &Tensor, format: &str| {
        let format = Format::parse(format, 2).expect("a format");
        image.cast(DType::F64).convert(&format).expect("numbers")
    };
    for (outer, values) in [
        ("runs, sparse_runs; pattern", "runs, sparse_runs"),
        ("sparse_runs, sparse_runs; pattern", "sparse_runs, sparse_runs"),
        ("runs, runs; element", "runs, sparse"),
    ] {
        let sets: Vec<Vec<Tensor>> = images(true).into_iter().chain(images(false)).step_by(3).collect();
        let outer = Format::parse(outer, 2).expect("a format");
        let convert = |set: &Vec<Tensor>| vec![set[0].convert(&outer).expect("the same image")];
        let truths: Vec<Vec<Tensor>> = sets.iter().map(convert).collect();
        let sums: Vec<Vec<Tensor>> = sets.iter().map(|set| vec![numbers(&set[0], values)]).collect();
        for window in windows {
            let joined =
                |outside: &str, word: &str| window.iter().map(|dy| at(*dy, 0, outside)).collect::<Vec<_>>().join(word);
            let some = at(window[1], 0, "True");
            for value in
                [joined("True", " and "), joined("False", " or "), format!("({}) or {some}", joined("True", " and "))]
            {
                for format in ["sparse_runs, sparse_runs; pattern", "dense; element(False)"] {
                    judge.case(&format!("{outer}: {window:?}"), &program(format, &value), &truths, Expected::Same);
                }
            }
            for value in [
                format!("min({})", joined("1", ", ")),
                format!("max({})", joined("0", ", ")),
                joined("1", " * "),
                joined("0", " + "),
            ] {
                for format in ["sparse_runs, sparse_runs", "dense"] {
                    judge.case(&format!("{values}: {window:?}"), &program(format, &value), &sums, Expected::Same);
                }
            }
        }
    }
    judge.verdict(2000);
}

/// Both directions, and another operand.
#[test]
fn squares_and_other_operands() {
    let mut judge = Judge::sharing(2);
    for rows_once in [false, true] {
        let sets = images(rows_once);
        let texts = [
            "def f(I):\n    T = tensor(\"runs, sparse_runs; pattern\")\n    O = tensor(\"sparse_runs, sparse_runs; pattern\")\n    for y, x in _:\n        T[y,x] = coalesce(I[y, ~(x-1)], True) and I[y,x] and coalesce(I[y, ~(x+1)], True)\n    for y, x in _:\n        O[y,x] = coalesce(T[~(y-1), x], True) and T[y,x] and coalesce(T[~(y+1), x], True)\n    return O\n",
            "def f(I):\n    s = scalar(0)\n    for y, x in _:\n        if I[y,x] and coalesce(I[y, ~(x+1)], False):\n            s += x\n    return s\n",
            "def f(I):\n    O = tensor(\"dense, sparse_runs; pattern\")\n    for y, x in _:\n        if x < 2*y + 3:\n            O[y,x] = I[y,x] and coalesce(I[y, ~(x+1)], True) and coalesce(I[~(y-1), x], True)\n    return O\n",
            "def f(I):\n    c = tensor(\"dense\", dtype=\"i64\", shape=(I.shape[0],))\n    for y, x in _:\n        if coalesce(I[y, ~(x-1)], False) and I[y,x]:\n            c[y] += 1\n    return c\n",
        ];
        for text in texts {
            judge.case(&format!("rows once: {rows_once}"), text, &sets, Expected::Same);
        }
    }
    judge.verdict(200);
}

/// Blocks store a value per coordinate: a segment of them is not one run of a result.
#[test]
fn blocks_into_runs() {
    let mut judge = Judge::sharing(2);
    for from in ["dense, blocks", "dense, band", "runs, blocks", "dense, runs", "bsr(2,2)"] {
        for to in ["dense, runs", "dense, sparse_runs", "sparse_runs, sparse_runs", "csr"] {
            let data = [edges(2), structured(2)].concat();
            let sets = data.iter().filter_map(|data| Some(vec![data.tensor(from, DType::F64, Value::F64(0.0))?]));
            let text = program(to, "I[y,x]");
            judge.case(&format!("{from} into {to}"), &text, &sets.collect::<Vec<_>>(), Expected::Same);
        }
    }
    judge.verdict(100);
}
